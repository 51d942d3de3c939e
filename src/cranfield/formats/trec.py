"""TREC runs and qrels: columns separated by any run of spaces and tabs, one line a document.

These are never read into Python: the bytes go to the kernels as they are. What is decided here is only
what a file looks like, by its first lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from cranfield.errors import FormatError
from cranfield.formats.format import NEITHER, QRELS_ONLY, RUN_ONLY, Format, Kind, Kinds
from cranfield.kernels import Layout, Table
from cranfield.run import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.kernels.table import Buffer


RUN = Layout("topic Q0 document rank score tag", topic=0, document=2, value=4, label=5, most=6)
QRELS = Layout("topic iteration document grade", topic=0, document=2, value=3, label=1, most=4, finite=True)
LEVELS = Layout("topic group subgroup document level", topic=0, document=3, value=4, label=1, most=5, finite=True)

LOOKED_AT = 20  # lines that decide what a file is
BATCH = 50_000  # lines written at a time


class Trec(Format):
    """The six columns of a run and the four of qrels that trec_eval reads."""

    name = "trec"
    about = "white-space separated columns: topic Q0 document rank score tag, or topic iteration document grade"
    kinds: ClassVar[tuple[Kind, ...]] = ("run", "qrels")
    endings: ClassVar[tuple[str, ...]] = (".run", ".qrels", ".trec", ".res", ".txt", ".qrel")
    examples = {
        "run": b"301 Q0 FBIS3-1 1 9.5 bm25\n301 Q0 LA-7 2 7.25 bm25\n302\tQ0\tFT-3\t1\t4\tbm25\n",
        "qrels": b"301 0 FBIS3-1 1\n301 0 FT-3 0\n302 0 FT-3 2\n",
    }
    words = True

    def sniff(self, head: bytes) -> Kinds:
        """Whichever of the two most of the first lines fit."""
        rows = [line.split() for line in first_lines(head)]
        runs = sum(len(row) == 6 and is_number(row[4]) for row in rows)
        qrels = sum(len(row) == 4 and is_number(row[3]) for row in rows)
        if not runs and not qrels:
            return NEITHER
        return RUN_ONLY if runs >= qrels else QRELS_ONLY

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Text:
        """The bytes as they are."""
        if kind == "qrels":
            _refuse_smart(bytes(buffer[:65536]), where)
        return Text(buffer, RUN if kind == "run" else QRELS, where, lenient)

    def write(self, table: Table, kind: Kind, tag: str) -> Iterator[bytes]:
        """One line a row; ranks count from 1, scores read back to the same double."""
        return _run_lines(table, tag) if kind == "run" else qrels_lines(table, b" ")


class JudgmentGroups(Trec):
    """trec_eval's `qrels_jg`: several judges' qrels in one file."""

    name = "qrels_jg"
    about = (
        "qrels whose second column is the judgment group (trec_eval -R qrels_jg); never guessed, as it looks like trec"
    )
    kinds = ("qrels",)
    endings = ()
    examples = {"qrels": b"301 judge1 FBIS3-1 1\n301 judge2 FBIS3-1 0\n302 judge1 FT-3 2\n"}

    def sniff(self, head: bytes) -> Kinds:
        """Never: it cannot be told from plain qrels."""
        return NEITHER


class QrelsPrefs(JudgmentGroups):
    """trec_eval's `qrels_prefs`: grades that are read as preferences within each judgment group."""

    name = "qrels_prefs"
    about = (
        "qrels whose grades are preferences within a judgment group (trec_eval -R qrels_prefs); "
        "never guessed, as it looks like trec"
    )
    examples = {"qrels": b"301 1 FBIS3-1 2.5\n301 1 FT-3 1\n302 1 FT-3 2\n"}


class Prefs(Format):
    """trec_eval's `prefs`: of two documents in the same subgroup the one at the higher level is preferred."""

    name = "prefs"
    about = "preferences, read only: topic group subgroup document level (trec_eval -R prefs)"
    kinds = ("prefs",)
    examples = {"prefs": b"301 judge1 a FBIS3-1 2.0\n301 judge1 a FT-3 1\n302 judge1 b FT-3 1\n"}
    words = True

    def sniff(self, head: bytes) -> Kinds:
        """Five columns, the last of them a number."""
        rows = [line.split() for line in first_lines(head)]
        fitting = sum(len(row) == 5 and is_number(row[4]) for row in rows)
        return frozenset({"prefs"}) if fitting * 2 > len(rows) else NEITHER

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Text:
        """The bytes as they are."""
        return Text(buffer, LEVELS, where, lenient)

    def write(self, table: Table, kind: Kind, tag: str) -> Iterator[bytes]:
        """Never: the columns of a run or of qrels have no place for groups and subgroups."""
        raise FormatError("prefs can be read, not written")


TREC = Trec()
QRELS_JG = JudgmentGroups()
QRELS_PREFS = QrelsPrefs()
PREFS = Prefs()


def first_lines(head: bytes) -> list[bytes]:
    """The first lines that hold data; a last line that may be cut off counts only if it is the only one."""
    lines = [line for line in head.split(b"\n") if line.strip() and not line.startswith(b"#")]
    if len(lines) > 1 and not head.endswith(b"\n") and len(head) >= 65536:
        lines.pop()
    return lines[:LOOKED_AT]


def is_number(text: bytes) -> bool:
    """Whether it looks like a number; what counts in the end is decided by the kernels."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def whole(value: float) -> int | float:
    """A whole number without its point; as text it reads back to the same double.

    >>> whole(2.0), whole(0.1)
    (2, 0.1)
    """
    return int(value) if value.is_integer() and abs(value) < 1e15 and str(value) != "-0.0" else value


def _refuse_smart(head: bytes, where: str) -> None:
    """SMART's .REL files have four columns too, but the document is the second and the others say nothing."""
    rows = [line.split() for line in first_lines(head)]
    if len(rows) > 2 and all(
        len(row) == 4 and row[2] == b"0" and is_number(row[3]) and not float(row[3]) for row in rows
    ):
        raise FormatError(
            f"{where}: looks like a SMART relevance file (topic document 0 0), whose columns 3 and 4 are no judgments; "
            "write it as: topic 0 document 1"
        )


def _run_lines(table: Table, tag: str) -> Iterator[bytes]:
    from cranfield.formats.format import ranked

    order, rank = ranked(table)
    tags = list(table.labels) or [tag.encode("utf-8", "surrogateescape")]
    topics, documents = list(table.topics), list(table.documents)
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        labels = table.label[rows].tolist() if len(table.labels) else [0] * len(rows)
        yield b"".join(
            b"%b Q0 %b %d %b %b\n" % (topics[t], documents[i], r, repr(v).encode(), tags[label])
            for t, i, r, v, label in zip(
                table.topic[rows].tolist(),
                rows.tolist(),
                rank[start : start + BATCH].tolist(),
                table.value[rows].tolist(),
                labels,
                strict=True,
            )
        )


def qrels_lines(table: Table, gap: bytes) -> Iterator[bytes]:
    """The four columns of qrels; 0 where there is no label."""
    labels = list(table.labels) or [b"0"]
    label = table.label.tolist() if len(table.labels) else [0] * len(table.value)
    topics = list(table.topics)
    rows = zip(table.topic.tolist(), label, table.documents, table.value.tolist(), strict=True)
    batch: list[bytes] = []
    for t, which, document, grade in rows:
        batch.append(gap.join((topics[t], labels[which], document, b"%r" % whole(grade))) + b"\n")
        if len(batch) == BATCH:
            yield b"".join(batch)
            batch.clear()
    yield b"".join(batch)
