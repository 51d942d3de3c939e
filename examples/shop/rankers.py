"""The shop's own search: two ways to rank its products, and the same behind HTTP (`python rankers.py 8000`)."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

with Path(__file__).with_name("products.csv").open(newline="", encoding="utf-8") as file:
    PRODUCTS = list(csv.DictReader(file))


def words(text: str) -> list[str]:
    """The words of a text, in lower case and without their plural."""
    return [word.removesuffix("s") for word in re.findall(r"[a-z0-9]+", text.lower())]


TITLES = {product["sku"]: words(product["title"]) for product in PRODUCTS}
TEXTS = {product["sku"]: words(product["description"]) for product in PRODUCTS}
KNOWN = Counter(word for sku in TITLES for word in {*TITLES[sku], *TEXTS[sku]})


def titles(query: str, k: int) -> list[tuple[str, float]]:
    """The products with most of the words in their titles."""
    return best({sku: sum(word in title for word in words(query)) for sku, title in TITLES.items()}, k)


def everything(query: str, k: int) -> list[tuple[str, float]]:
    """Titles and descriptions, rare words first."""
    weights = {word: math.log(len(PRODUCTS) / KNOWN[word]) for word in words(query) if word in KNOWN}
    return best(
        {
            sku: sum(w * (2 * (word in TITLES[sku]) + (word in TEXTS[sku])) for word, w in weights.items())
            for sku in TITLES
        },
        k,
    )


def best(scores: dict[str, float], k: int) -> list[tuple[str, float]]:
    """The k products with the highest scores above 0."""
    return sorted(((sku, score) for sku, score in scores.items() if score > 0), key=lambda row: (-row[1], row[0]))[:k]


class Endpoint(BaseHTTPRequestHandler):
    """GET /search?q=red+mug&k=10 finds words by their first four letters, wherever they stand."""

    def do_GET(self) -> None:
        """Answer one query in JSON."""
        asked = parse_qs(urlsplit(self.path).query)
        starts = [word[:4] for word in words(asked["q"][0])]
        all_words = {sku: [*TITLES[sku], *TEXTS[sku]] for sku in TITLES}
        counts = {s: sum(any(w.startswith(start) for w in all_words[s]) for start in starts) for s in all_words}
        found = best(counts, int(asked["k"][0]))
        hits = [{"sku": sku, "score": score} for sku, score in found]
        body = json.dumps({"hits": hits}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Say nothing of each request."""


if __name__ == "__main__":
    ThreadingHTTPServer(("localhost", int(sys.argv[1])), Endpoint).serve_forever()
