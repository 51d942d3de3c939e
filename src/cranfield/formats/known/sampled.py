"""Qrels of sampled pools, in five columns: `prels` say how likely each document was to be judged, `strata` from where it came.

Their judgments are qrels like others; what they say of the sampling goes into the qrels' `extras`,
where statAP and xinfAP find it. Two files look alike to the eye and differ in their columns, so each
line is held to its format before a number is made from it.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from cranfield.collection import Extras
from cranfield.errors import BadLineError
from cranfield.formats.format import (
    BOM,
    Evidence,
    Head,
    Kind,
    LineFormat,
    Strength,
    fits,
    in_batches,
    is_number,
    rows_of,
    whole,
)
from cranfield.kernels import Layout, Table, decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.kernels.table import Buffer
    from cranfield.run import Text


METHODS = (b"0", b"1", b"2", b"3", b"4")
CERTAIN = (b"0", b"2")  # chosen by a method without chance (alone, or besides the sample): judged for certain
PLACEHOLDERS = (b"0", b"Q0")  # what stands in a column that says nothing
LINE = re.compile(rb"[^\n]+")


class Sample(LineFormat):
    """What the two have in common: a line that says nothing sound of the sampling stops the reading, or is left out."""

    kinds = ("qrels",)
    labels = ()
    twice = False
    samples = True
    unsampled: ClassVar[str]  # the stratum of a document that is judged for certain

    def problem(self, fields: list[bytes]) -> str | None:
        """What is wrong with a line of five columns, beyond what the kernels see."""
        return None

    @abstractmethod
    def line(self, topic: bytes, document: bytes, grade: float, chance: float, stratum: str) -> bytes:
        """A judgment as it is written."""

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Text:
        """The bytes as they are; for a lenient reader, lines with unsound sampling are made unreadable as a whole."""
        return super().read(LINE.sub(self._blotted, bytes(buffer)) if lenient else buffer, kind, where, lenient)

    def _blotted(self, line: re.Match[bytes]) -> bytes:
        fields = line[0].split()
        return b"?" * len(line[0]) if len(fields) == 5 and self.problem(fields) else line[0]

    def rows(self, buffer: Buffer, where: str, lenient: bool) -> Iterator[list[bytes]]:
        """The columns of each sound line; BadLineError at one that is not."""
        for number, line in enumerate(bytes(buffer).removeprefix(BOM).split(b"\n"), 1):
            fields = line.split()
            if len(fields) != 5 or fields[0].startswith(b"#"):
                continue  # a blank line or a comment; the kernels have refused, or left out, all others
            wrong = self.problem(fields) or (None if fits(fields, self.layouts["qrels"]) else "no grade")
            if wrong is None:
                yield fields
            elif not lenient:
                raise BadLineError(where, number, wrong)

    def write(self, table: Table, kind: Kind, tag: str) -> Iterator[bytes]:
        """Judgments of which nothing else is known: judged for certain, all from one stratum."""
        return self.write_known(table, Extras())

    def write_known(self, table: Table, extras: Extras) -> Iterator[bytes]:
        known = extras.probabilities or {}
        return in_batches(
            self.line(topic, document, grade, *known.get((decode(topic), decode(document)), (1.0, self.unsampled)))
            for topic, _, document, grade in rows_of(table, "qrels")
        )


class Prels(Sample):
    """The `prels` of the Million Query and Web tracks, which statAP reads.

    `method` says who chose the document: 1 the sample (then `probability`, above 0 and no more than 1, is that of being
    drawn), 0 another method without chance, 2 both. A document of method 0 or 2 counts as judged for certain, whatever
    its last column says, as in the tracks' own script.
    """

    name = "prels"
    about = "qrels of a sample: topic document grade method probability; methods 0 and 2 chose without chance"
    place = 9
    unsampled = "0"
    examples = {"qrels": b"1 enwp01-75 1 0 1\n1 en0009-84 0 1 0.0136\n2 en0003-55 2 1 0.5\n"}
    layouts = {
        "qrels": Layout("topic document grade method probability", topic=0, document=1, value=2, most=5, finite=True)
    }

    def sniff(self, head: Head) -> Evidence | None:
        """Five columns: a document in the second, a method in the fourth, a probability in the fifth."""
        named = all(len(row) == 5 and not is_number(row[1]) and row[1] not in PLACEHOLDERS for row in head.rows)
        if not named or not all(is_number(row[2]) and not self.problem(row) for row in head.rows):
            return None
        return Strength.VALUES.of("qrels") if head.rows else None

    def problem(self, fields: list[bytes]) -> str | None:
        """The method, and the probability where the method leaves it to chance."""
        method, probability = fields[3:]
        if method not in METHODS:
            return f"expected 0 to 4 in column 4 (method), found {decode(method)[:60]!r}"
        if method in CERTAIN or (is_number(probability) and 0 < float(probability) <= 1):
            return None
        wanted = "a probability above 0 and no more than 1 in column 5 (probability)"
        return f"expected {wanted}, found {decode(probability)[:60]!r}"

    def known(self, buffer: Buffer, where: str, lenient: bool = False) -> Extras:
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


class Strata(Sample):
    """The qrels of NIST's sample_eval: a pool in strata, each sampled at its own rate.

    A grade of -1 marks a document of the pool that was not drawn. The probability of a document is the share of its
    stratum that was drawn.
    """

    name = "strata"
    about = "qrels of a stratified pool (sample_eval): topic 0 document stratum grade; grade -1 was not drawn"
    place = 10
    unsampled = "1"
    examples = {"qrels": b"1 0 PMC-17 1 2\n1 0 PMC-4 2 -1\n1 0 PMC-9 2 0\n2 0 PMC-17 1 1\n"}
    layouts = {
        "qrels": Layout("topic iteration document stratum grade", topic=0, document=2, value=4, most=5, finite=True)
    }

    def sniff(self, head: Head) -> Evidence | None:
        """Five columns: 0 in the second, whole numbers in the last two; where documents are numbers, more than strata."""
        rows = head.rows
        if not rows or not all(fits(row, self.layouts["qrels"]) and row[3].isdigit() for row in rows):
            return None
        if not all(row[1] in PLACEHOLDERS for row in rows):
            return None
        documents, strata = {(row[0], row[2]) for row in rows}, {(row[0], row[3]) for row in rows}
        if any(is_number(row[2]) for row in rows) and not len(rows) == len(documents) > len(strata):
            return None
        return Strength.VALUES.of("qrels")

    def known(self, buffer: Buffer, where: str, lenient: bool = False) -> Extras:
        """The stratum of each document; its probability is the share of its stratum that was drawn."""
        rows = list(self.rows(buffer, where, lenient))
        pooled = Counter((topic, stratum) for topic, _, _, stratum, _ in rows)
        drawn = Counter((topic, stratum) for topic, _, _, stratum, grade in rows if float(grade) >= 0)
        share = {place: (drawn[place] or size) / size for place, size in pooled.items()}
        return Extras(
            probabilities={
                (decode(topic), decode(document)): (share[topic, stratum], decode(stratum))
                for topic, _, document, stratum, _ in rows
            }
        )

    def line(self, topic: bytes, document: bytes, grade: float, chance: float, stratum: str) -> bytes:
        return b"%b 0 %b %b %r\n" % (topic, document, encode(stratum or "1"), grade)
