"""Sheets that assessors filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.errors import DataError, FormatError
from cranfield.formats.format import Evidence, Format, Head, Kind, Strength, in_batches, rows_of
from cranfield.formats.sheets import delimiter_of, graded, judged_lines
from cranfield.kernels import decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.formats.format import Source
    from cranfield.kernels.table import Buffer, Table


class Sheet(Format):
    """A sheet for assessors, as `cranfield pool --format csv` writes it: CSV with the columns `topic`, `document`, `grade` and
    `note`, and others for people. Rows without a grade are left out. An apostrophe in front of an id keeps a spreadsheet from
    changing it and is taken off. Commas, semicolons or tabs, with or without byte order mark; UTF-8 only.
    """

    name = "sheet"
    about = "a pool as CSV that assessors filled in"
    kinds = ("qrels",)
    place = 45
    labels = ()
    any_bytes = False
    twice = False
    examples = {
        "qrels": b"topic,query,document,title,grade,note\n"
        b"q1,when to sow,'007,Sowing,2,\nq1,when to sow,d2,Rain,,not sure\nq2,slugs,d2,Rain,0,\n"
    }

    def sniff(self, head: Head) -> Evidence | None:
        first = head.lines[0] if head.lines else b""
        return None if self.fields or delimiter_of(first) is None else Strength.SIGNATURE.of("qrels")

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Source:
        """The grades; a sheet that nobody has filled in yet is refused."""
        grades: dict[str, dict[str, float]] = {}
        for mark in graded(bytes(buffer), where):
            grades.setdefault(mark.topic, {})[mark.document] = float(mark.grade or 0)
        if not grades:
            raise DataError(f"{where}: no row has a grade yet")
        return grades

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
