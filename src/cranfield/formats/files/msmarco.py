"""MS MARCO's files: a run is `topic, document, rank` with tabs and no score; qrels are TREC's with tabs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.base.kernels import LineLayout, RowTable
from cranfield.formats.files.trec import QRELS
from cranfield.formats.format import FormatEvidence, Head, Kind, LineFormat, Strength, in_batches, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator


class MsMarcoFormat(LineFormat):
    """The files of the MS MARCO ranking tasks.

    A run has no scores: the rank decides the order, and the score is the rank with a minus sign.
    """

    name = "msmarco"
    about = "tab separated, no header: topic document rank (no scores), or topic 0 document grade"
    place = 8
    examples = {
        "run": b"1048585\t7187158\t1\n1048585\t7187157\t2\n2\t4339068\t1\n",
        "qrels": b"300674\t0\t7067032\t1\n125705\t0\t7067056\t1\n",
    }
    layouts = {
        "run": LineLayout("topic document rank", topic=0, document=1, value=2, most=3, descending=False),
        "qrels": QRELS,
    }
    scores = False
    labels = ("qrels",)

    def sniff(self, head: Head) -> FormatEvidence | None:
        """A run: three columns with tabs, the third an integer. MS MARCO's qrels are plain TREC qrels."""
        rows = [line.split() for line in head.lines if b"\t" in line]
        fitting = sum(len(row) == 3 and row[2].isdigit() for row in rows)
        return Strength.COUNT.of("run") if rows and fitting * 2 > len(rows) else None

    def write(self, table: RowTable, kind: Kind, tag: str) -> Iterator[bytes]:
        """Ranks from 1, or qrels with tabs."""
        if kind == "qrels":
            return in_batches(b"%b\t%b\t%b\t%r\n" % row for row in rows_of(table, "qrels"))
        return in_batches(b"%b\t%b\t%d\n" % row[:3] for row in rows_of(table, "run", tag))
