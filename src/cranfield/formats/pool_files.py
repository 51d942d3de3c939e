"""Pool files: JSON lines of the documents to judge, or a CSV sheet for assessors that is filled in and read back.

A line of JSON says who returned the document and how it was chosen; a sheet has only documents, texts and assessors.

A spreadsheet changes what looks like a number, a date or a formula. An id that it would change gets an apostrophe in
front, which is removed again on reading, so ids come back byte for byte. The byte order mark tells Excel that the
text is UTF-8. A returned sheet may have any dialect that `formats.csv_tables` reads.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cranfield.base.errors import BadLineError, DataError, FormatError
from cranfield.base.results import defused
from cranfield.base.schemas import Between, Expected, Id, check_line, parse_json
from cranfield.formats.csv_tables import (
    DELIMITERS,
    DETECTED,
    HEAD,
    Dialect,
    NumberReader,
    SeparatedValues,
    header_text,
    open_table,
    split_header,
)
from cranfield.formats.named_columns import refuse_events
from cranfield.formats.streams import BOM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


NEEDED = ("topic", "document", "grade", "note")  # the columns by which a sheet is recognised
LONGEST = 5000  # characters per text: a cell can hold 32,767, but nobody reads so much there
SAFE = re.compile(r"[^\W\d_][^\r\n\t]*|[1-9]\d{0,14}|0")  # a word, or a number that comes back with the same digits
TAKEN = re.compile(  # texts that look like a truth value or a date: MARCH1, SEPT-2
    r"true|false|(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-/. ]*\d.*", re.IGNORECASE
)


class SheetTexts(NamedTuple):
    """The texts of a sheet: the queries of topics, the titles and texts of documents."""

    queries: Mapping[str, str]
    documents: Mapping[str, tuple[str, str]]


class SheetRow(NamedTuple):
    """A row of a sheet: the grade that an assessor gave, or None."""

    line: int
    topic: str
    document: str
    grade: float | None
    assessor: str


def guarded(name: str) -> str:
    """An id as a cell that a spreadsheet does not change.

    >>> guarded("doc-7"), guarded("42"), guarded("007"), guarded("=1+1"), guarded("SEPT2"), guarded("'quoted")
    ('doc-7', '42', "'007", "'=1+1", "'SEPT2", "''quoted")
    """
    plain = SAFE.fullmatch(name) and not TAKEN.fullmatch(name) and name == name.strip()
    return name if plain else f"'{name}"


# a pool as a sheet


def sheet_lines(tasks: Sequence[tuple[str, str, str]], texts: SheetTexts | None = None) -> Iterator[bytes]:
    """A header and a row for each topic, document and assessor. Ids that are not UTF-8 are refused."""
    shared = any(assessor for _, _, assessor in tasks)
    head = ["topic", *(["query"] if texts else []), "document", *(["title", "text"] if texts else []), "grade", "note"]
    yield BOM + _row([*head, *(["assessor"] if shared else [])])
    for topic, document, assessor in tasks:
        cells = [guarded(topic), guarded(document)]
        if texts is not None:
            title, text = texts.documents.get(document, ("", ""))
            cells = [cells[0], _cell(texts.queries.get(topic, "")), cells[1], _cell(title), _cell(text)]
        yield _row([*cells, "", "", *([guarded(assessor)] if shared else [])])


def _cell(text: str) -> str:
    """A text on one line, cut to the length of a cell and defused if it looks like a formula."""
    line = " ".join(text.split())
    cut = line if len(line) <= LONGEST else f"{line[:LONGEST].rsplit(' ', 1)[0]} …"
    return defused(cut)


def _row(cells: list[str]) -> bytes:
    file = io.StringIO()
    csv.writer(file).writerow(cells)
    try:
        return file.getvalue().encode()
    except UnicodeEncodeError:
        odd = next(cell for cell in cells if not cell.isascii() and re.search("[\ud800-\udfff]", cell))
        problem = f"{odd!r} holds bytes that are not UTF-8, which no spreadsheet keeps"
        raise FormatError(f"{problem}; use jsonl") from None


def judged_lines(rows: Iterable[tuple[str, str, float | int]]) -> Iterator[bytes]:
    """Judgments as a sheet: topic, document, grade and an empty note."""
    yield BOM + _row(list(NEEDED))
    for topic, document, grade in rows:
        yield _row([guarded(topic), guarded(document), repr(grade), ""])


# a sheet read back


def is_sheet(names: Iterable[str]) -> bool:
    """Whether these are the column names of a sheet."""
    return {*NEEDED} <= {_name(name) for name in names}


def begins_sheet(head: bytes, dialect: Dialect = DETECTED) -> bool:
    """Whether a file with this start is a sheet."""
    line = header_text(head, dialect.encoding)
    return any(is_sheet(split_header(line, sign)) for sign in DELIMITERS if dialect.delimiter in (None, sign))


def _name(cell: str) -> str:
    return cell.strip().lower()


def read_sheet(raw: bytes, where: str, dialect: Dialect = DETECTED) -> Iterator[SheetRow]:
    """The rows of a sheet; rows without an id and grades that are not numbers are refused."""
    table = SeparatedValues(raw, where, is_sheet, dialect)
    names = [_name(name) for name in table.names]
    if not is_sheet(names):
        raise FormatError(f"{where}:1: expected a sheet with columns {', '.join(NEEDED)} in its first line")
    refuse_events(names, where)
    for row in table:
        if any(cell.strip() for cell in row.cells):
            yield _mark(dict(zip(names, row.cells, strict=False)), where, row.line, table.numbers)
    table.report()


def _mark(row: Mapping[str, str], where: str, line: int, numbers: NumberReader) -> SheetRow:
    ids = {name: row.get(name, "").removeprefix("'") for name in ("topic", "document", "assessor")}
    for name in ("topic", "document"):
        if not ids[name]:
            raise BadLineError(where, line, f"expected a {name}, found an empty cell")
    return SheetRow(line, grade=_grade(row.get("grade", ""), where, line, numbers), **ids)


def _grade(cell: str, where: str, line: int, numbers: NumberReader) -> float | None:
    """A grade, or None if the cell is empty."""
    if not cell.strip():
        return None
    try:
        return numbers.read(cell, line)
    except ValueError as error:
        raise BadLineError(where, line, f"expected a number or nothing in the column grade, {error}") from None


def graded(raw: bytes, where: str, dialect: Dialect = DETECTED) -> Iterator[SheetRow]:
    """The rows with a grade; a document with two different grades is refused."""
    first_marks: dict[tuple[str, str, str], SheetRow] = {}
    for mark in read_sheet(raw, where, dialect):
        if mark.grade is None:
            continue
        first = first_marks.setdefault((mark.topic, mark.document, mark.assessor), mark)
        if first.grade != mark.grade:
            problem = f"document {mark.document!r} of topic {mark.topic!r} has grade {mark.grade:g} here"
            raise BadLineError(where, mark.line, f"{problem}, and {first.grade:g} on line {first.line}")
        if first is mark:
            yield mark


BATCH = 4096  # lines written together


Rank = Annotated[int, Between(0)]
Probability = Annotated[float, Between(0, 1, above=True), Expected("a probability in (0, 1]")]


class PoolItem(NamedTuple):
    """A document to judge for a topic."""

    topic: Id
    document: Id
    rank: Rank  # the best rank in any run
    runs: tuple[Id, ...] = ()  # the runs that returned it within their depth
    priority: Rank = 0  # 1 is judged first; 0 was not sampled and is listed only for estimates
    probability: Probability = 1.0  # of being in the pool
    stratum: str = ""  # it was sampled from
    assessor: str = ""


QUERY = "query"  # only for readers of the file; the topics file has the query that counts


def pool_lines(items: Iterable[PoolItem], queries: Mapping[str, str] | None = None) -> Iterator[bytes]:
    """One line per item, in batches; empty fields and unknown queries are left out."""
    texts = queries or {}
    spelt = _Spelt()
    name_of, spell = spelt.__getitem__, json.encoder.encode_basestring_ascii  # half a million lines use these
    lines: list[str] = []
    for topic, document, rank, runs, priority, probability, stratum, assessor in items:
        who = ", ".join(map(name_of, runs))
        more = f', "stratum": {spelt[stratum]}' if stratum else ""
        if assessor:
            more += f', "assessor": {spelt[assessor]}'
        if topic in texts:
            more += f', "{QUERY}": {spelt[texts[topic]]}'
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
    """Texts as JSON, cached."""

    def __missing__(self, text: str) -> str:
        spelt = self[text] = json.dumps(text)
        return spelt


def read_pool(path: str | os.PathLike[str]) -> list[PoolItem]:
    """The items of a pool file."""
    where = os.fspath(path)
    file = open_table(where)
    raw = bytes(file.buffer)
    if begins_sheet(raw[:HEAD]):
        marks = {(mark.topic, mark.document): mark for mark in read_sheet(raw, where, DETECTED.of(file))}
        return [PoolItem(mark.topic, mark.document, 0, priority=1, assessor=mark.assessor) for mark in marks.values()]
    answer = []
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            expected = "expected a JSON object with topic, document, rank, runs, priority, probability"
            raise BadLineError(where, number, f"{expected} ({error}), found {line[:60]!r}") from None
        answer.append(check_line(row, PoolItem, where, number, (QUERY,), rank=0))
    if not answer:
        raise DataError(f"{where}: no items")
    return answer
