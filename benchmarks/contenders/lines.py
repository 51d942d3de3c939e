"""How long lines that are not the usual ones take to read and join with judgments, on one thread.

Arguments: how often, qrels, run. Prints nanoseconds of processor time a line for each kind of lines, by turns: the run as it is,
its lines shuffled within topics, scores of 17 digits, lines of a hundred bytes, lines that end as on Windows.
"""

from __future__ import annotations

import json
import random
import sys
from time import process_time
from typing import TYPE_CHECKING

from cranfield import Evaluator

if TYPE_CHECKING:
    from collections.abc import Callable

Line = list[str]


def shuffled(lines: list[Line], rng: random.Random) -> list[Line]:
    topics: dict[str, list[Line]] = {}
    for line in lines:
        topics.setdefault(line[0], []).append(line)
    return [line for block in topics.values() for line in rng.sample(block, len(block))]


def exact(lines: list[Line], rng: random.Random) -> list[Line]:
    return [[*line[:4], f"{float(line[4]) + rng.random() / 1e7:.17g}", line[5]] for line in lines]


def long(lines: list[Line], rng: random.Random) -> list[Line]:
    return [
        [*line[:2], f"urn:collection:news:articles:english:plain-text:{line[2]:>24}".replace(" ", "0"), *line[3:]]
        for line in lines
    ]


def text(lines: list[Line], end: str = "\n") -> bytes:
    return "".join(" ".join(line) + end for line in lines).encode()


def kinds(path: str) -> dict[str, bytes]:
    """The same run in several shapes."""
    with open(path) as file:
        lines = [line.split() for line in file]
    rng = random.Random(0)
    changed: dict[str, Callable[[list[Line], random.Random], list[Line]]] = {
        "shuffled within topics": shuffled,
        "scores of 17 digits": exact,
        "lines of 100 bytes": long,
    }
    shapes = {name: text(change(lines, rng)) for name, change in changed.items()}
    return {"usual": text(lines), **shapes, "CRLF": text(lines, "\r\n")}


def main(repeats: int, qrels: str, path: str) -> None:
    evaluator = Evaluator(qrels, ["NumRet"], threads=1)
    taken: dict[str, list[float]] = {}
    shapes = kinds(path)
    for _ in range(repeats + 1):
        for name, content in shapes.items():
            start = process_time()
            evaluator.evaluate(content)
            taken.setdefault(name, []).append((process_time() - start) / content.count(b"\n"))
    print(json.dumps({name: times[1:] for name, times in taken.items()}))


main(int(sys.argv[1]), *sys.argv[2:])
