"""Sheets for assessors: a pool as CSV with the texts to judge, opened, filled and saved by a spreadsheet, and read back.

A spreadsheet changes what it takes for a number, a date or a formula. An id that it would change gets an apostrophe in
front, which stands in the cell as any other letter and is taken off again, so that ids come back byte for byte. The byte
order mark tells Excel that the text is UTF-8. What comes back may be in any dialect that `formats.tables` reads.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, NamedTuple

from cranfield.answer import defused
from cranfield.errors import BadLineError, FormatError
from cranfield.formats.named import refuse_events
from cranfield.formats.streams import BOM
from cranfield.formats.tables import (
    DELIMITERS,
    DETECTED,
    Dialect,
    Numbers,
    SeparatedValues,
    header_text,
    split_header,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


NEEDED = ("topic", "document", "grade", "note")  # the columns by which a sheet is recognised
LONGEST = 5000  # characters of a text: a cell holds 32,767, and nobody reads them there
SAFE = re.compile(r"[^\W\d_][^\r\n\t]*|[1-9]\d{0,14}|0")  # a word, or a number that comes back with the same digits
TAKEN = re.compile(  # for a truth value or a date: MARCH1, SEPT-2
    r"true|false|(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-/. ]*\d.*", re.IGNORECASE
)


class Texts(NamedTuple):
    """What stands beside the ids: the queries of topics, the titles and texts of documents."""

    queries: Mapping[str, str]
    documents: Mapping[str, tuple[str, str]]


class Mark(NamedTuple):
    """A row of a sheet: what an assessor made of a document; no grade is None."""

    line: int
    topic: str
    document: str
    grade: float | None
    assessor: str


def guarded(name: str) -> str:
    """An id as a cell that a spreadsheet leaves alone.

    >>> guarded("doc-7"), guarded("42"), guarded("007"), guarded("=1+1"), guarded("SEPT2"), guarded("'quoted")
    ('doc-7', '42', "'007", "'=1+1", "'SEPT2", "''quoted")
    """
    plain = SAFE.fullmatch(name) and not TAKEN.fullmatch(name) and name == name.strip()
    return name if plain else f"'{name}"


# a pool as a sheet


def sheet_lines(asked: Sequence[tuple[str, str, str]], texts: Texts | None = None) -> Iterator[bytes]:
    """A header and a row for each topic, document and assessor. Ids that are no UTF-8 are refused."""
    shared = any(assessor for _, _, assessor in asked)
    head = ["topic", *(["query"] if texts else []), "document", *(["title", "text"] if texts else []), "grade", "note"]
    yield BOM + _row([*head, *(["assessor"] if shared else [])])
    for topic, document, assessor in asked:
        cells = [guarded(topic), guarded(document)]
        if texts is not None:
            title, text = texts.documents.get(document, ("", ""))
            cells = [cells[0], _told(texts.queries.get(topic, "")), cells[1], _told(title), _told(text)]
        yield _row([*cells, "", "", *([guarded(assessor)] if shared else [])])


def _told(text: str) -> str:
    """A text in one line, cut where it is too long for a cell, that is no formula."""
    line = " ".join(text.split())
    cut = line if len(line) <= LONGEST else f"{line[:LONGEST].rsplit(' ', 1)[0]} …"
    return defused(cut)


def _row(cells: list[str]) -> bytes:
    file = io.StringIO()
    csv.writer(file).writerow(cells)
    try:
        return file.getvalue().encode()
    except UnicodeEncodeError:
        shown = next(cell for cell in cells if not cell.isascii() and re.search("[\ud800-\udfff]", cell))
        raise FormatError(f"{shown!r} holds bytes that are no UTF-8, which no spreadsheet keeps; use jsonl") from None


def judged_lines(rows: Iterable[tuple[str, str, float | int]]) -> Iterator[bytes]:
    """Judgments as a sheet: topic, document, grade and an empty note."""
    yield BOM + _row(list(NEEDED))
    for topic, document, grade in rows:
        yield _row([guarded(topic), guarded(document), repr(grade), ""])


# and back


def is_sheet(names: Iterable[str]) -> bool:
    """Whether these are the names of the columns of a sheet."""
    return {*NEEDED} <= {_name(name) for name in names}


def begins_sheet(head: bytes, dialect: Dialect = DETECTED) -> bool:
    """Whether a file that begins like this is a sheet."""
    line = header_text(head, dialect.encoding)
    return any(is_sheet(split_header(line, sign)) for sign in DELIMITERS if dialect.delimiter in (None, sign))


def _name(cell: str) -> str:
    return cell.strip().lower()


def read_sheet(raw: bytes, where: str, dialect: Dialect = DETECTED) -> Iterator[Mark]:
    """The rows of a sheet; rows without an id and grades that are no numbers are refused."""
    table = SeparatedValues(raw, where, is_sheet, dialect)
    names = [_name(name) for name in table.names]
    if not is_sheet(names):
        raise FormatError(f"{where}:1: expected a sheet with columns {', '.join(NEEDED)} in its first line")
    refuse_events(names, where)
    for row in table:
        if any(cell.strip() for cell in row.cells):
            yield _mark(dict(zip(names, row.cells, strict=False)), where, row.line, table.numbers)
    table.report()


def _mark(row: Mapping[str, str], where: str, line: int, numbers: Numbers) -> Mark:
    topic, document = (row.get(name, "").removeprefix("'") for name in ("topic", "document"))
    for name, value in (("topic", topic), ("document", document)):
        if not value:
            raise BadLineError(where, line, f"expected a {name}, found an empty cell")
    return Mark(line, topic, document, _grade(row.get("grade", ""), where, line, numbers), _bare(row, "assessor"))


def _bare(row: Mapping[str, str], name: str) -> str:
    return row.get(name, "").removeprefix("'")


def _grade(cell: str, where: str, line: int, numbers: Numbers) -> float | None:
    """A grade, or None where the cell is empty."""
    if not cell.strip():
        return None
    try:
        return numbers.read(cell, line)
    except ValueError as error:
        raise BadLineError(where, line, f"expected a number or nothing in the column grade, {error}") from None


def graded(raw: bytes, where: str, dialect: Dialect = DETECTED) -> Iterator[Mark]:
    """The rows that have a grade; a document with two different ones is refused."""
    seen: dict[tuple[str, str, str], Mark] = {}
    for mark in read_sheet(raw, where, dialect):
        if mark.grade is None:
            continue
        known = seen.setdefault((mark.topic, mark.document, mark.assessor), mark)
        if known.grade != mark.grade:
            problem = f"document {mark.document!r} of topic {mark.topic!r} has grade {mark.grade:g} here"
            raise BadLineError(where, mark.line, f"{problem}, and {known.grade:g} on line {known.line}")
        if known is mark:
            yield mark
