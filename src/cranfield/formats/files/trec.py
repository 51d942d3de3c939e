"""TREC runs and qrels, trec_eval's other files, qrels of sampled pools, MS MARCO: columns between blanks, a document per line.

Runs and qrels are never read into Python: the bytes go to the kernels as they are. This module only recognises the
format by the first lines.

Qrels of sampled pools have five columns: `prels` give the probability that a document was judged, `strata` its stratum.
Both go into the qrels' `extras`, where statAP and xinfAP find them. The two formats look alike, so each line is checked
against its format before any number is computed.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from cranfield.base.errors import BadLineError, FormatError
from cranfield.base.kernels import LineLayout, RowTable, decode, encode
from cranfield.base.qrels import Extras
from cranfield.formats.format import (
    BOM,
    FormatEvidence,
    Head,
    Kind,
    LineFormat,
    Strength,
    fits,
    in_batches,
    is_number,
    rows_of,
    run_in_lines,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.base.kernels.table import Buffer
    from cranfield.base.run import TextSource


RUN = LineLayout("topic Q0 document rank score tag", topic=0, document=2, value=4, label=5, most=6)
QRELS = LineLayout("topic iteration document grade", topic=0, document=2, value=3, label=1, most=4, finite=True)
LEVELS = LineLayout("topic group subgroup document level", topic=0, document=3, value=4, label=1, most=5, finite=True)


class TrecFormat(LineFormat):
    """The six columns of a run and the four of qrels that trec_eval reads.

    Spaces and tabs separate columns. Lines may end with CRLF, and the last one may lack its end. Blank lines and lines
    that start with `#` are skipped. The score decides the order; the rank column is ignored.
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

    def sniff(self, head: Head) -> FormatEvidence | None:
        """Run or qrels, whichever fits more of the first lines."""
        runs, qrels = (sum(fits(row, layout) for row in head.rows) for layout in (RUN, QRELS))
        if not runs and not qrels:
            return None
        return Strength.COLUMNS.of("run" if runs >= qrels else "qrels")

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> TextSource:
        if kind == "qrels":
            _refuse_smart(Head(buffer), where)
        return super().read(buffer, kind, where, lenient)

    def write(self, table: RowTable, kind: Kind, tag: str) -> Iterator[bytes]:
        """One line per row; ranks start with 1, scores read back as the same double."""
        if kind == "qrels":
            return in_batches(b"%b %b %b %r\n" % row for row in rows_of(table, "qrels"))
        return run_in_lines(table, tag)


class JudgmentGroups(TrecFormat):
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
        """Never: it cannot be distinguished from plain qrels."""


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
    """trec_eval's `prefs`: if two documents share a subgroup, the one at the higher level is preferred."""

    name = "prefs"
    about = "preferences, read only: topic group subgroup document level (trec_eval -R prefs)"
    kinds = ("prefs",)
    place = 11
    examples = {"prefs": b"301 judge1 a FBIS3-1 2.0\n301 judge1 a FT-3 1\n302 judge1 b FT-3 1\n"}
    layouts = {"prefs": LEVELS}

    def sniff(self, head: Head) -> FormatEvidence | None:
        """Five columns in most lines, the last of them a number."""
        fitting = sum(fits(row, LEVELS) for row in head.rows)
        return Strength.COUNT.of("prefs") if fitting * 2 > len(head.rows) else None

    def write(self, table: RowTable, kind: Kind, tag: str) -> Iterator[bytes]:
        """Never: runs and qrels have no groups and subgroups."""
        raise FormatError("prefs can be read, not written")


TREC = TrecFormat()


def _refuse_smart(head: Head, where: str) -> None:
    """Refuse SMART's .REL files: they have four columns too, but the document is the second."""
    if len(head.rows) > 2 and all(
        len(row) == 4 and row[2] == b"0" and is_number(row[3]) and not float(row[3]) for row in head.rows
    ):
        raise FormatError(
            f"{where}: looks like a SMART relevance file (topic document 0 0), whose columns 3 and 4 are not judgments; "
            "write it as: topic 0 document 1"
        )


METHODS = (b"0", b"1", b"2", b"3", b"4")
CERTAIN = (b"0", b"2")  # methods without randomness (alone, or besides the sample): judged with probability 1
PLACEHOLDERS = (b"0", b"Q0")  # the values of a column without meaning
LINE = rb"[^\n]+"


class SampledQrels(LineFormat):
    """The base of the two formats: a line with invalid sampling data is an error, or skipped if lenient."""

    kinds = ("qrels",)
    labels = ()
    twice = False
    samples = True
    unsampled: ClassVar[str]  # the stratum of a document that was not sampled

    def problem(self, fields: list[bytes]) -> str | None:
        """What is wrong with a line of five columns, apart from what the kernels check."""
        return None

    @abstractmethod
    def line(self, topic: bytes, document: bytes, grade: float, chance: float, stratum: str) -> bytes:
        """A judgment as a line of the file."""

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> TextSource:
        """The bytes unchanged; a lenient reader replaces lines with invalid sampling data by unreadable ones."""
        return super().read(re.sub(LINE, self._blotted, bytes(buffer)) if lenient else buffer, kind, where, lenient)

    def _blotted(self, line: re.Match[bytes]) -> bytes:
        fields = line[0].split()
        return b"?" * len(line[0]) if len(fields) == 5 and self.problem(fields) else line[0]

    def rows(self, buffer: Buffer, where: str, lenient: bool) -> Iterator[list[bytes]]:
        """The columns of each valid line; BadLineError for an invalid one."""
        for number, line in enumerate(bytes(buffer).removeprefix(BOM).split(b"\n"), 1):
            fields = line.split()
            if len(fields) != 5 or fields[0].startswith(b"#"):
                continue  # a blank line or a comment; the kernels have handled all others
            wrong = self.problem(fields) or (None if fits(fields, self.layouts["qrels"]) else "no grade")
            if wrong is None:
                yield fields
            elif not lenient:
                raise BadLineError(where, number, wrong)

    def write(self, table: RowTable, kind: Kind, tag: str) -> Iterator[bytes]:
        """Judgments without sampling data: judged with probability 1, all from one stratum."""
        return self.write_with_extras(table, Extras())

    def write_with_extras(self, table: RowTable, extras: Extras) -> Iterator[bytes]:
        probabilities = extras.probabilities or {}
        return in_batches(
            self.line(
                topic, document, grade, *probabilities.get((decode(topic), decode(document)), (1.0, self.unsampled))
            )
            for topic, _, document, grade in rows_of(table, "qrels")
        )


class Prels(SampledQrels):
    """The `prels` of the Million Query and Web tracks, which statAP reads.

    `method` says how the document was chosen: 1 by the sample (`probability`, above 0 and at most 1, is its sampling
    probability), 0 by another method without randomness, 2 by both. Documents of method 0 or 2 count as judged with
    probability 1, whatever the last column says, as in the tracks' own script.
    """

    name = "prels"
    about = "qrels of a sample: topic document grade method probability; methods 0 and 2 chose without chance"
    place = 9
    unsampled = "0"
    examples = {"qrels": b"1 enwp01-75 1 0 1\n1 en0009-84 0 1 0.0136\n2 en0003-55 2 1 0.5\n"}
    layouts = {
        "qrels": LineLayout(
            "topic document grade method probability", topic=0, document=1, value=2, most=5, finite=True
        )
    }

    def sniff(self, head: Head) -> FormatEvidence | None:
        """Five columns: a document in the second, a method in the fourth, a probability in the fifth."""
        named = all(len(row) == 5 and not is_number(row[1]) and row[1] not in PLACEHOLDERS for row in head.rows)
        if not named or not all(is_number(row[2]) and not self.problem(row) for row in head.rows):
            return None
        return Strength.VALUES.of("qrels") if head.rows else None

    def problem(self, fields: list[bytes]) -> str | None:
        """Check the method, and the probability if the method is the sample."""
        method, probability = fields[3:]
        if method not in METHODS:
            return f"expected 0 to 4 in column 4 (method), found {decode(method)[:60]!r}"
        if method in CERTAIN or (is_number(probability) and 0 < float(probability) <= 1):
            return None
        expected = "a probability above 0 and no more than 1 in column 5 (probability)"
        return f"expected {expected}, found {decode(probability)[:60]!r}"

    def extras(self, buffer: Buffer, where: str, lenient: bool = False) -> Extras:
        """The probability of each document; the method is its stratum."""
        return Extras(
            probabilities={
                (decode(topic), decode(document)): (1.0 if method in CERTAIN else float(chance), decode(method))
                for topic, document, _, method, chance in self.rows(buffer, where, lenient)
            }
        )

    def line(self, topic: bytes, document: bytes, grade: float, chance: float, stratum: str) -> bytes:
        method = encode(stratum) if encode(stratum) in METHODS else b"1"
        return b"%b %b %r %b %r\n" % (topic, document, grade, method, whole(chance))


class StrataFormat(SampledQrels):
    """The qrels of NIST's sample_eval: a pool in strata, each sampled at its own rate.

    A grade of -1 marks a document of the pool that was not sampled. The probability of a document is the share of its
    stratum that was sampled.
    """

    name = "strata"
    about = "qrels of a stratified pool (sample_eval): topic 0 document stratum grade; grade -1 was not drawn"
    place = 10
    unsampled = "1"
    examples = {"qrels": b"1 0 PMC-17 1 2\n1 0 PMC-4 2 -1\n1 0 PMC-9 2 0\n2 0 PMC-17 1 1\n"}
    layouts = {
        "qrels": LineLayout("topic iteration document stratum grade", topic=0, document=2, value=4, most=5, finite=True)
    }

    def sniff(self, head: Head) -> FormatEvidence | None:
        """Five columns: 0 in the second, integers in the last two; numeric documents must outnumber strata."""
        rows = head.rows
        if not rows or not all(fits(row, self.layouts["qrels"]) and row[3].isdigit() for row in rows):
            return None
        if not all(row[1] in PLACEHOLDERS for row in rows):
            return None
        documents, strata = {(row[0], row[2]) for row in rows}, {(row[0], row[3]) for row in rows}
        if any(is_number(row[2]) for row in rows) and not len(rows) == len(documents) > len(strata):
            return None
        return Strength.VALUES.of("qrels")

    def extras(self, buffer: Buffer, where: str, lenient: bool = False) -> Extras:
        """The stratum of each document; its probability is the sampled share of its stratum."""
        rows = list(self.rows(buffer, where, lenient))
        pooled = Counter((topic, stratum) for topic, _, _, stratum, _ in rows)
        sampled = Counter((topic, stratum) for topic, _, _, stratum, grade in rows if float(grade) >= 0)
        share = {place: (sampled[place] or size) / size for place, size in pooled.items()}
        return Extras(
            probabilities={
                (decode(topic), decode(document)): (share[topic, stratum], decode(stratum))
                for topic, _, document, stratum, _ in rows
            }
        )

    def line(self, topic: bytes, document: bytes, grade: float, chance: float, stratum: str) -> bytes:
        return b"%b 0 %b %b %r\n" % (topic, document, encode(stratum or "1"), grade)


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
