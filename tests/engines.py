"""Servers for tests: each speaks the request and the response that an engine documents, over a handful of documents.

They check what they are asked as the engine would and answer by counting common words, so a test sees whether the
template sends what the engine expects and finds what it answers. Faults can be injected: slowness, statuses, dropped
connections, garbage.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

DOCUMENTS = {
    "d1": "wing flutter at high speed",
    "d2": "flutter of a delta wing",
    "d3": "heat transfer in a boundary layer",
    "d4": "boundary layer over a wing",
}


def found(text: str, k: int) -> list[tuple[str, float]]:
    """Documents by the number of common words, the shorter id first where that is equal."""
    asked = set(text.lower().split())
    scored = [(name, float(len(asked & set(words.split())))) for name, words in DOCUMENTS.items()]
    return sorted((pair for pair in scored if pair[1] > 0), key=lambda pair: (-pair[1], pair[0]))[:k]


class BadRequest(Exception):
    """What an engine would refuse with status 400."""


def wanted(condition: object, why: str) -> None:
    if not condition:
        raise BadRequest(why)


def elasticsearch(method, path, query, headers, body):
    wanted(method in ("GET", "POST") and path == "/papers/_search", path)
    wanted(headers.get("Content-Type", "").startswith("application/json"), "Content-Type header is not supported")
    match = body["query"]["multi_match"]
    wanted(set(match) <= {"query", "fields", "type", "operator"}, "unknown key in [multi_match]")
    wanted(isinstance(match["fields"], list) and isinstance(body["size"], int), "failed to parse")
    wanted(0 < body["size"] <= 10_000, "Result window is too large")
    hits = [{"_index": "papers", "_id": d, "_score": s} for d, s in found(match["query"], body["size"])]
    total = {"value": len(hits), "relation": "eq"}
    shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    return {"took": 1, "timed_out": False, "_shards": shards, "hits": {"total": total, "max_score": 1.0, "hits": hits}}


def solr(method, path, query, headers, body):
    wanted(path == "/solr/papers/select", path)
    wanted(query["wt"] == "json" and query["defType"] == "edismax" and query["qf"], "undefined field")
    hits = found(query["q"], int(query["rows"]))
    docs = [{"id": d, "score": s} for d, s in hits]
    wanted(set(query["fl"].split(",")) == {"id", "score"}, "fl")
    return {
        "responseHeader": {"status": 0, "QTime": 1},
        "response": {"numFound": len(docs), "start": 0, "maxScore": 1.0, "numFoundExact": True, "docs": docs},
    }


def vespa_id(name: str) -> str:
    return f"id:papers:paper::{name}"


def vespa(method, path, query, headers, body):
    wanted(method == "POST" and path == "/search/", path)
    wanted("userQuery()" in body["yql"] and isinstance(body["hits"], int), "could not parse yql")
    hits = [
        {
            "id": vespa_id(d),
            "relevance": s,
            "source": "papers",
            "fields": {"documentid": vespa_id(d)},
        }
        for d, s in found(body["query"], body["hits"])
    ]
    root = {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": len(hits)}, "coverage": {"coverage": 100}}
    return {"root": {**root, "children": hits}}


def typesense(method, path, query, headers, body):
    wanted(method == "GET" and path == "/collections/papers/documents/search", path)
    if headers.get("X-TYPESENSE-API-KEY") != "secret":
        return 401, {"message": "Forbidden - a valid `x-typesense-api-key` header must be sent."}
    wanted(query["query_by"].split(",") == ["title", "text"], "Could not find a field named")
    per_page, page = int(query["per_page"]), int(query["page"])
    wanted(per_page <= 250, "Only upto 250 hits can be fetched per page.")
    hits = found(query["q"], 1000)[(page - 1) * per_page : page * per_page]
    rows = [{"document": {"id": d}, "highlights": [], "text_match": int(s * 1000)} for d, s in hits]
    return {"found": 4, "hits": rows, "out_of": 4, "page": page, "search_time_ms": 1}


def meilisearch(method, path, query, headers, body):
    wanted(method == "POST" and path == "/indexes/papers/search", path)
    if headers.get("Authorization") != "Bearer secret":
        return 403, {"message": "The provided API key is invalid.", "code": "invalid_api_key"}
    wanted(body["matchingStrategy"] in ("last", "all", "frequency"), "Unknown value")
    hits = [
        dict.fromkeys(body["attributesToRetrieve"], d) | {"_rankingScore": s / 10 if body["showRankingScore"] else None}
        for d, s in found(body["q"], body["limit"])
    ]
    return {"hits": hits, "query": body["q"], "processingTimeMs": 0, "limit": body["limit"], "offset": 0}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """A client that hangs up is what some tests are about."""


@contextmanager
def serving(answer, faults=()):
    """A server on a free port: its URL, and a list of the requests it saw. Each fault is spent on one request."""
    seen: list[tuple[str, dict]] = []
    spent = deque(faults)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            url = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            seen.append((url.path, {"query": query, "body": body, "headers": dict(self.headers)}))
            fault = spent.popleft() if spent else None
            if callable(fault):
                fault = fault(self)
            if fault == "handled":
                return
            try:
                made = answer(self.command, url.path, query, self.headers, body)
                status, content = made if isinstance(made, tuple) else (200, made)
            except (BadRequest, KeyError, TypeError) as error:
                status, content = 400, {"error": {"reason": str(error)}, "status": 400}
            self.send(status, json.dumps(content).encode())

        do_GET = do_POST

        def send(self, status: int, content: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# faults


def status(code: int, **headers: str):
    def fault(handler) -> str:
        handler.send(code, b'{"error": "on purpose"}', **headers)
        return "handled"

    return fault


def garbage(handler) -> str:
    handler.send(200, b"<html>502 Bad Gateway</html>")
    return "handled"


def dropped(handler) -> str:
    handler.close_connection = True
    handler.connection.close()
    return "handled"


def cut_short(handler) -> str:
    handler.send_response(200)
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"hits": ')
    handler.wfile.flush()
    handler.close_connection = True
    handler.connection.close()
    return "handled"


def slow(seconds: float):
    def fault(handler) -> None:
        time.sleep(seconds)

    return fault


def dripping(seconds: float):
    """Sends a byte now and then: no single wait is long, all of them are."""

    def fault(handler) -> str:
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(seconds / 100)
        return "handled"

    return fault
