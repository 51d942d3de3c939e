"""BEIR's qrels: tab separated, with the header `query-id corpus-id score`, where score is a grade."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.formats.delimited import Delimited, header_of, holds_returns, rows_of
from cranfield.formats.format import NEITHER, QRELS_ONLY, Kind, Kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.kernels import Table


HEADER = ("query-id", "corpus-id", "score")


class Beir(Delimited):
    """The qrels files of the BEIR benchmark."""

    name = "beir"
    about = "BEIR qrels: tab separated with the header query-id corpus-id score"
    kinds = ("qrels",)
    examples = {"qrels": b"query-id\tcorpus-id\tscore\nPLAIN-2\tMED-2427\t2\nPLAIN-2\tMED-10\t1\nPLAIN-3\tMED-10\t0\n"}
    labels = ()
    twice = False
    gap = "\t"

    def sniff(self, head: bytes) -> Kinds:
        """Its header, to the letter."""
        return QRELS_ONLY if header_of(head, self.gap) == [*HEADER] else NEITHER

    def write(self, table: Table, kind: Kind, tag: str) -> Iterator[bytes]:
        """The header, and one line a judgment."""
        rows = ((topic, document, grade) for topic, _, document, grade in rows_of(table, kind, tag))
        return self.lines(HEADER, rows, holds_returns(table))


BEIR = Beir()
