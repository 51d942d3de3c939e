"""TREC runs and qrels: columns separated by any run of spaces and tabs, one line a document; trec_eval's other files.

These are never read into Python: the bytes go to the kernels as they are. What is decided here is only
what a file looks like, by its first lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from cranfield.errors import FormatError
from cranfield.formats.format import (
    Evidence,
    Head,
    Kind,
    LineFormat,
    Strength,
    fits,
    in_batches,
    is_number,
    rows_of,
    run_in_lines,
)
from cranfield.kernels import Layout, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.kernels.table import Buffer
    from cranfield.run import Text


RUN = Layout("topic Q0 document rank score tag", topic=0, document=2, value=4, label=5, most=6)
QRELS = Layout("topic iteration document grade", topic=0, document=2, value=3, label=1, most=4, finite=True)
LEVELS = Layout("topic group subgroup document level", topic=0, document=3, value=4, label=1, most=5, finite=True)


class Trec(LineFormat):
    """The six columns of a run and the four of qrels that trec_eval reads.

    Any run of spaces and tabs separates columns; lines may end with CRLF, the last one need not end; lines that start
    with `#` and blank lines are passed over. The score decides the order, the rank column decides nothing.
    """

    name = "trec"
    about = "white-space separated columns: topic Q0 document rank score tag, or topic iteration document grade"
    place = 7
    endings: ClassVar[tuple[str, ...]] = (".run", ".qrels", ".trec", ".res", ".txt", ".qrel")
    examples = {
        "run": b"301 Q0 FBIS3-1 1 9.5 bm25\n301 Q0 LA-7 2 7.25 bm25\n302\tQ0\tFT-3\t1\t4\tbm25\n",
        "qrels": b"301 0 FBIS3-1 1\n301 0 FT-3 0\n302 0 FT-3 2\n",
    }
    layouts = {"run": RUN, "qrels": QRELS}

    def sniff(self, head: Head) -> Evidence | None:
        """Whichever of the two more of the first lines fit."""
        runs, qrels = (sum(fits(row, layout) for row in head.rows) for layout in (RUN, QRELS))
        if not runs and not qrels:
            return None
        return Strength.COLUMNS.of("run" if runs >= qrels else "qrels")

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Text:
        if kind == "qrels":
            _refuse_smart(Head(buffer), where)
        return super().read(buffer, kind, where, lenient)

    def write(self, table: Table, kind: Kind, tag: str) -> Iterator[bytes]:
        """One line a row; ranks count from 1, scores read back to the same double."""
        if kind == "qrels":
            return in_batches(b"%b %b %b %r\n" % row for row in rows_of(table, "qrels"))
        return run_in_lines(table, tag)


class JudgmentGroups(Trec):
    """trec_eval's `qrels_jg`: several judges' qrels in one file."""

    name = "qrels_jg"
    about = (
        "qrels whose second column is the judgment group (trec_eval -R qrels_jg); never guessed, as it looks like trec"
    )
    kinds = ("qrels",)
    place = 12
    endings = ()
    examples = {"qrels": b"301 judge1 FBIS3-1 1\n301 judge2 FBIS3-1 0\n302 judge1 FT-3 2\n"}

    def sniff(self, head: Head) -> None:
        """Never: it cannot be told from plain qrels."""


class QrelsPrefs(JudgmentGroups):
    """trec_eval's `qrels_prefs`: grades that are read as preferences within each judgment group."""

    name = "qrels_prefs"
    about = (
        "qrels whose grades are preferences within a judgment group (trec_eval -R qrels_prefs); "
        "never guessed, as it looks like trec"
    )
    place = 13
    examples = {"qrels": b"301 1 FBIS3-1 2.5\n301 1 FT-3 1\n302 1 FT-3 2\n"}


class Prefs(LineFormat):
    """trec_eval's `prefs`: of two documents in the same subgroup the one at the higher level is preferred."""

    name = "prefs"
    about = "preferences, read only: topic group subgroup document level (trec_eval -R prefs)"
    kinds = ("prefs",)
    place = 11
    examples = {"prefs": b"301 judge1 a FBIS3-1 2.0\n301 judge1 a FT-3 1\n302 judge1 b FT-3 1\n"}
    layouts = {"prefs": LEVELS}

    def sniff(self, head: Head) -> Evidence | None:
        """Five columns in most lines, the last of them a number."""
        fitting = sum(fits(row, LEVELS) for row in head.rows)
        return Strength.COUNT.of("prefs") if fitting * 2 > len(head.rows) else None

    def write(self, table: Table, kind: Kind, tag: str) -> Iterator[bytes]:
        """Never: the columns of a run or of qrels have no place for groups and subgroups."""
        raise FormatError("prefs can be read, not written")


TREC = Trec()


def _refuse_smart(head: Head, where: str) -> None:
    """SMART's .REL files have four columns too, but the document is the second and the others say nothing."""
    if len(head.rows) > 2 and all(
        len(row) == 4 and row[2] == b"0" and is_number(row[3]) and not float(row[3]) for row in head.rows
    ):
        raise FormatError(
            f"{where}: looks like a SMART relevance file (topic document 0 0), whose columns 3 and 4 are no judgments; "
            "write it as: topic 0 document 1"
        )
