"""Pool files: one JSON line for each document to judge, with who returned it and how it was chosen.

A sheet for assessors (`formats.sheets`) is read as a pool as well; it knows documents and assessors alone.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.errors import BadLineError, DataError
from cranfield.formats.sheets import delimiter_of, read_sheet
from cranfield.formats.streams import open_buffer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


BATCH = 4096  # lines written together


class Item(NamedTuple):
    """A document to judge for a topic."""

    topic: str
    document: str
    rank: int  # its best, in any run
    runs: tuple[str, ...] = ()  # that returned it within their depth
    priority: int = 0  # 1 is to be judged first; 0 was not drawn, and is listed for what estimates need to know
    probability: float = 1.0  # with which it came into the pool
    stratum: str = ""  # from which it was drawn
    assessor: str = ""


FIELDS: dict[str, Callable[[Any], Any]] = {
    "topic": str,
    "document": str,
    "rank": int,
    "runs": lambda names: tuple(map(str, names)),
    "priority": int,
    "probability": float,
    "stratum": str,
    "assessor": str,
}


def pool_lines(items: Iterable[Item], queries: Mapping[str, str] | None = None) -> Iterator[bytes]:
    """One line an item, some thousand at a time; what is empty is left out, as is a query that nobody knows."""
    asked = queries or {}
    spelt = _Spelt()
    name_of, spell = spelt.__getitem__, json.encoder.encode_basestring_ascii  # half a million lines are made of these
    lines: list[str] = []
    for topic, document, rank, runs, priority, probability, stratum, assessor in items:
        who = ", ".join(map(name_of, runs))
        more = f', "stratum": {spelt[stratum]}' if stratum else ""
        if assessor:
            more += f', "assessor": {spelt[assessor]}'
        if topic in asked:
            more += f', "query": {spelt[asked[topic]]}'
        lines.append(
            f'{{"topic": {spelt[topic]}, "document": {spell(document)}, "rank": {rank}, "runs": [{who}], '
            f'"priority": {priority}, "probability": {probability}{more}}}\n'
        )
        if len(lines) == BATCH:
            yield "".join(lines).encode()
            lines.clear()
    if lines:
        yield "".join(lines).encode()


class _Spelt(dict[str, str]):
    """Text as JSON, each made once."""

    def __missing__(self, text: str) -> str:
        spelt = self[text] = json.dumps(text)
        return spelt


def read_pool(path: str | os.PathLike[str]) -> list[Item]:
    """The items of a pool file."""
    where = os.fspath(path)
    raw = bytes(open_buffer(where))
    if delimiter_of(raw) is not None:
        marks = {(mark.topic, mark.document): mark for mark in read_sheet(raw, where)}
        return [Item(mark.topic, mark.document, 0, priority=1, assessor=mark.assessor) for mark in marks.values()]
    answer = []
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode("utf-8", "surrogateescape"))
            fields = {name: read(row[name]) for name, read in FIELDS.items() if name in row}
            item = Item(**{"rank": 0, **fields})
        except (ValueError, TypeError, OverflowError, RecursionError):
            wanted = "expected a JSON object with topic, document, rank, runs, priority, probability"
            raise BadLineError(where, number, f"{wanted}, found {line[:60]!r}") from None
        if not 0 < item.probability <= 1:
            raise BadLineError(where, number, f"expected a probability in (0, 1], found {item.probability!r}")
        answer.append(item)
    if not answer:
        raise DataError(f"{where}: no items")
    return answer
