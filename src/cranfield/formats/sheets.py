"""Sheets for assessors: a pool as CSV with the texts to judge, opened, filled and saved by a spreadsheet, and read back.

A spreadsheet changes what it takes for a number, a date or a formula. An id that it would change gets an apostrophe in
front, which stands in the cell as any other letter and is taken off again, so that ids come back byte for byte. The byte
order mark tells Excel that the text is UTF-8. What comes back may have commas, semicolons or tabs between its cells.
"""

from __future__ import annotations

import csv
import io
import math
import re
from typing import TYPE_CHECKING, NamedTuple

from cranfield.answer import defused
from cranfield.errors import BadLineError, FormatError
from cranfield.formats.named import refuse_events
from cranfield.formats.streams import BOM, decoded
from cranfield.parameters import real

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


NEEDED = ("topic", "document", "grade", "note")  # the columns by which a sheet is recognised
DELIMITERS = (",", ";", "\t")
LONGEST = 5000  # characters of a text: a cell holds 32,767, and nobody reads them there
SAFE = re.compile(r"[^\W\d_][^\r\n\t]*|[1-9]\d{0,14}|0")  # a word, or a number that comes back with the same digits
TAKEN = re.compile(  # for a truth value or a date: MARCH1, SEPT-2
    r"true|false|(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-/. ]*\d.*", re.IGNORECASE
)
SAVE_AS = "save the sheet as CSV UTF-8"


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


def delimiter_of(head: bytes) -> str | None:
    """What stands between the cells of a sheet that begins like this; None where it is no sheet."""
    first = head.removeprefix(BOM).lstrip(b"\r\n").partition(b"\n")[0].decode("utf-8", "replace")
    for delimiter in DELIMITERS:
        if {*NEEDED} <= {_name(cell) for cell in first.split(delimiter)}:
            return delimiter
    return None


def _name(cell: str) -> str:
    return cell.strip().strip('"').strip().lower()


def read_sheet(raw: bytes, where: str) -> Iterator[Mark]:
    """The rows of a sheet; rows without an id, grades that are no numbers and other encodings are refused."""
    raw = raw.removeprefix(BOM)
    delimiter = delimiter_of(raw)
    if delimiter is None:
        raise FormatError(f"{where}: expected a sheet with columns {', '.join(NEEDED)} in its first line")
    text = _decoded(raw, where)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    names: list[str] = []
    start = 1
    try:
        for row in reader:
            line, start = start, reader.line_num + 1
            if not any(cell.strip() for cell in row):
                continue
            if not names:
                names = [_name(cell) for cell in row]
                refuse_events(names, where)
                continue
            yield _mark(dict(zip(names, row, strict=False)), where, line, delimiter)
    except csv.Error as error:
        raise BadLineError(where, start, f"expected cells of CSV, found something else ({error})") from None


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        line = raw.split(b"\n")[number - 1]
        return decoded(line, "utf-8", where, number, SAVE_AS)


def _mark(row: Mapping[str, str], where: str, line: int, delimiter: str) -> Mark:
    topic, document = (row.get(name, "").removeprefix("'") for name in ("topic", "document"))
    for name, value in (("topic", topic), ("document", document)):
        if not value:
            raise BadLineError(where, line, f"expected a {name}, found an empty cell")
    return Mark(line, topic, document, _grade(row.get("grade", ""), where, line, delimiter), _bare(row, "assessor"))


def _bare(row: Mapping[str, str], name: str) -> str:
    return row.get(name, "").removeprefix("'")


def _grade(cell: str, where: str, line: int, delimiter: str) -> float | None:
    """A grade, or None; where semicolons separate, a number may have a decimal comma."""
    typed = cell.strip()
    if not typed:
        return None
    try:
        grade = real(typed.replace(",", ".") if delimiter != "," else typed)
    except ValueError:
        grade = math.nan
    if not math.isfinite(grade):
        raise BadLineError(where, line, f"expected a number or nothing in the column grade, found {typed[:60]!r}")
    return grade


def graded(raw: bytes, where: str) -> Iterator[Mark]:
    """The rows that have a grade; a document with two different ones is refused."""
    seen: dict[tuple[str, str, str], Mark] = {}
    for mark in read_sheet(raw, where):
        if mark.grade is None:
            continue
        known = seen.setdefault((mark.topic, mark.document, mark.assessor), mark)
        if known.grade != mark.grade:
            problem = f"document {mark.document!r} of topic {mark.topic!r} has grade {mark.grade:g} here"
            raise BadLineError(where, mark.line, f"{problem}, and {known.grade:g} on line {known.line}")
        if known is mark:
            yield mark
