"""Pool files: one JSON line for each document to judge, with who returned it and how it was chosen.

A sheet for assessors (`formats.sheets`) is read as a pool as well; it knows documents and assessors alone.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cranfield.errors import BadLineError, DataError
from cranfield.formats.sheets import begins_sheet, read_sheet
from cranfield.formats.tables import DETECTED, HEAD, open_table
from cranfield.shapes import Between, Expected, Id, check_line, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


BATCH = 4096  # lines written together


Rank = Annotated[int, Between(0)]
Probability = Annotated[float, Between(0, 1, above=True), Expected("a probability in (0, 1]")]


class Item(NamedTuple):
    """A document to judge for a topic."""

    topic: Id
    document: Id
    rank: Rank  # its best, in any run
    runs: tuple[Id, ...] = ()  # that returned it within their depth
    priority: Rank = 0  # 1 is to be judged first; 0 was not drawn, and is listed for what estimates need to know
    probability: Probability = 1.0  # with which it came into the pool
    stratum: str = ""  # from which it was drawn
    assessor: str = ""


QUERY = "query"  # on a line for whoever reads the file; the topics say what counts


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
            more += f', "{QUERY}": {spelt[asked[topic]]}'
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
    file = open_table(where)
    raw = bytes(file.buffer)
    if begins_sheet(raw[:HEAD]):
        marks = {(mark.topic, mark.document): mark for mark in read_sheet(raw, where, DETECTED.of(file))}
        return [Item(mark.topic, mark.document, 0, priority=1, assessor=mark.assessor) for mark in marks.values()]
    answer = []
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            wanted = "expected a JSON object with topic, document, rank, runs, priority, probability"
            raise BadLineError(where, number, f"{wanted} ({error}), found {line[:60]!r}") from None
        answer.append(check_line(row, Item, where, number, (QUERY,), rank=0))
    if not answer:
        raise DataError(f"{where}: no items")
    return answer
