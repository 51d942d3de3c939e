"""Sheets that assessors filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.collection import Duplicates, FileRow, Qrels
from cranfield.errors import DataError, FormatError
from cranfield.formats.format import Evidence, Format, Head, Kind, Strength, in_batches, rows_of
from cranfield.formats.named import Gathered
from cranfield.formats.sheets import begins_sheet, graded, judged_lines, read_sheet
from cranfield.kernels import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.formats.format import Source
    from cranfield.formats.streams import Opened
    from cranfield.kernels.table import Buffer, Table


class Sheet(Format):
    """A sheet for assessors, as `cranfield pool --format csv` writes it: CSV with the columns `topic`, `document`, `grade` and
    `note`, and others for people. Rows without a grade are left out. An apostrophe in front of an id keeps a spreadsheet from
    changing it and is taken off.
    """

    name = "sheet"
    about = "a pool as CSV that assessors filled in"
    kinds = ("qrels",)
    place = 45
    labels = ()
    any_bytes = False
    quotes = True
    twice = False
    examples = {
        "qrels": b"topic,query,document,title,grade,note\n"
        b"q1,when to sow,'007,Sowing,2,\nq1,when to sow,d2,Rain,,not sure\nq2,slugs,d2,Rain,0,\n"
    }

    def sniff(self, head: Head) -> Evidence | None:
        first = head.lines[0] if head.lines else b""
        return None if self.fields or not begins_sheet(first, self.dialect) else Strength.SIGNATURE.of("qrels")

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Source:
        """The grades; a sheet that nobody has filled in yet is refused."""
        grades: dict[str, dict[str, float]] = {}
        for mark in graded(bytes(buffer), where, self.dialect):
            grades.setdefault(mark.topic, {})[mark.document] = float(mark.grade or 0)
        if not grades:
            raise DataError(f"{where}: no row has a grade yet")
        return grades

    def read_qrels(self, file: Opened, name: str, lenient: bool = False, duplicates: Duplicates = "error") -> Qrels:
        """The grades; of a document with two different ones, `duplicates` says which counts."""
        if duplicates == "error":
            return super().read_qrels(file, name, lenient)
        rows = Gathered("qrels", file.where)
        for mark in read_sheet(bytes(file.buffer), file.where, self.dialect):
            if mark.grade is not None:
                rows.add(encode(mark.topic), encode(mark.document), mark.grade, None)
        return Qrels(rows.table(), name, duplicates)

    def file_rows(self, buffer: Buffer, kind: Kind, where: str) -> Iterator[FileRow]:
        for mark in read_sheet(bytes(buffer), where, self.dialect):
            if mark.grade is not None:
                yield FileRow(mark.line, mark.topic, mark.document, mark.grade)

    def write(self, table: Table, kind: Kind, tag: str) -> Iterator[bytes]:
        rows = ((topic, document, grade) for topic, _, document, grade in rows_of(table, kind, text=True))
        return in_batches(judged_lines(rows))

    def refuse(self, table: Table, kind: Kind, where: str) -> None:
        for ids in (table.topics, table.documents):
            for each in ids:
                if not each or decode(each).encode(errors="replace") != each:
                    raise FormatError(
                        f"{where}: {decode(each)!r} is empty or no UTF-8, which a sheet cannot hold; use jsonl"
                    )
