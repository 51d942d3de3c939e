"""MS MARCO's files: a run is `topic, document, rank` with tabs and no score; qrels are TREC's with tabs.

A rank decides the order here, the smaller the better: the rows' scores are the ranks with a minus sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.formats.format import NEITHER, RUN_ONLY, Format, Kind, Kinds, ranked
from cranfield.formats.trec import QRELS, first_lines, qrels_lines
from cranfield.kernels import Layout, Table
from cranfield.run import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.kernels.table import Buffer


RUN = Layout("topic document rank", topic=0, document=1, value=2, most=3, descending=False)


class MsMarco(Format):
    """The files of the MS MARCO ranking tasks."""

    name = "msmarco"
    about = "tab separated, no header: topic document rank (no scores), or topic 0 document grade"
    kinds = ("run", "qrels")
    examples = {
        "run": b"1048585\t7187158\t1\n1048585\t7187157\t2\n2\t4339068\t1\n",
        "qrels": b"300674\t0\t7067032\t1\n125705\t0\t7067056\t1\n",
    }
    scores = False
    labels = ("qrels",)
    words = True

    def sniff(self, head: bytes) -> Kinds:
        """A run: three columns with tabs, the third a whole number. Its qrels are plain TREC qrels."""
        rows = [line.split() for line in first_lines(head) if b"\t" in line]
        fitting = sum(len(row) == 3 and row[2].isdigit() for row in rows)
        return RUN_ONLY if rows and fitting * 2 > len(rows) else NEITHER

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Text:
        """The bytes as they are."""
        return Text(buffer, RUN if kind == "run" else QRELS, where, lenient)

    def write(self, table: Table, kind: Kind, tag: str) -> Iterator[bytes]:
        """Ranks from 1, or qrels with tabs."""
        if kind == "qrels":
            yield from qrels_lines(table, b"\t")
            return
        order, rank = ranked(table)
        topics, documents = list(table.topics), list(table.documents)
        for t, i, r in zip(table.topic[order].tolist(), order.tolist(), rank.tolist(), strict=True):
            yield b"%b\t%b\t%d\n" % (topics[t], documents[i], r)


MSMARCO = MsMarco()
