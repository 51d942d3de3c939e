"""Qrels of sampled pools, in five columns: `prels` say how likely each document was to be judged, `strata` from where it came.

Their judgments are qrels like others; what they say of the sampling goes into the qrels' `extras`,
where statAP and xinfAP find it. Two files look alike to the eye and differ in their columns, so each
line is held to its format before a number is made from it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cranfield.collection import Extras
from cranfield.errors import BadLineError
from cranfield.formats.format import BOM, NEITHER, QRELS_ONLY, Format, Kind, Kinds
from cranfield.formats.trec import first_lines, is_number, whole
from cranfield.kernels import Layout, Table, decode
from cranfield.run import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.kernels.table import Buffer


METHODS = (b"0", b"1", b"2", b"3", b"4")
CERTAIN = (b"0", b"2")  # chosen by a method without chance (alone, or besides the sample): judged for certain
LINE = re.compile(rb"[^\n]+")

Sampled = dict[tuple[str, str], tuple[float, str]]


class Sample(Format):
    """What the two have in common: a line that says nothing sound of the sampling stops the reading, or is left out."""

    kinds = ("qrels",)
    words = True
    layout: Layout

    def problem(self, fields: list[bytes]) -> str | None:
        """What is wrong with a line of five columns, beyond what the kernels see."""
        return None

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Text:
        """The bytes as they are; for a lenient reader, lines with unsound sampling are made unreadable as a whole."""
        if lenient:
            buffer = LINE.sub(self._blotted, bytes(buffer))
        return Text(buffer, self.layout, where, lenient)

    def _blotted(self, line: re.Match[bytes]) -> bytes:
        fields = line[0].split()
        return b"?" * len(line[0]) if len(fields) == 5 and self.problem(fields) else line[0]

    def rows(self, buffer: Buffer, where: str, lenient: bool) -> Iterator[list[bytes]]:
        """The columns of each sound line; BadLineError at one that is not."""
        for number, line in enumerate(bytes(buffer).removeprefix(BOM).split(b"\n"), 1):
            fields = line.split()
            if len(fields) != 5 or fields[0].startswith(b"#"):
                continue  # a blank line or a comment; the kernels have refused, or left out, all others
            wrong = self.problem(fields) or (None if is_number(fields[self.layout.value]) else "no grade")
            if wrong is None:
                yield fields
            elif not lenient:
                raise BadLineError(where, number, wrong)


class Prels(Sample):
    """The `prels` of the Million Query and Web tracks, which statAP reads."""

    name = "prels"
    about = "qrels of a sample: topic document grade method probability; methods 0 and 2 chose without chance"
    labels = ()
    twice = False
    examples = {"qrels": b"1 enwp01-75 1 0 1\n1 en0009-84 0 1 0.0136\n2 en0003-55 2 1 0.5\n"}
    layout = Layout("topic document grade method probability", topic=0, document=1, value=2, most=5, finite=True)

    def sniff(self, head: bytes) -> Kinds:
        """Five columns: no number in the second, a method in the fourth, a probability in the fifth."""
        rows = [line.split() for line in first_lines(head)]
        fit = [len(row) == 5 and not is_number(row[1]) and is_number(row[2]) and not self.problem(row) for row in rows]
        return QRELS_ONLY if rows and all(fit) else NEITHER

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
        sampled: Sampled = {}
        for topic, document, _, method, probability in self.rows(buffer, where, lenient):
            chance = 1.0 if method in CERTAIN else float(probability)
            sampled[decode(topic), decode(document)] = chance, decode(method)
        return Extras(probabilities=sampled)

    def write(self, table: Table, kind: Kind, tag: str) -> Iterator[bytes]:
        """Judgments of which nothing else is known: judged for certain."""
        return self.write_known(table, Extras())

    def write_known(self, table: Table, extras: Extras) -> Iterator[bytes]:
        """One line a judgment."""
        known = extras.probabilities or {}
        for topic, document, grade in _judgments(table):
            chance, method = known.get((decode(topic), decode(document)), (1.0, "0"))
            shown = method.encode() if method.encode() in METHODS else b"1"
            yield b"%b %b %r %b %r\n" % (topic, document, whole(grade), shown, whole(chance))


class Strata(Sample):
    """The qrels of NIST's sample_eval: a pool in strata, each sampled at its own rate."""

    name = "strata"
    about = "qrels of a stratified pool (sample_eval): topic 0 document stratum grade; grade -1 was not drawn"
    labels = ()
    twice = False
    examples = {"qrels": b"1 0 PMC-17 1 2\n1 0 PMC-4 2 -1\n1 0 PMC-9 2 0\n2 0 PMC-17 1 1\n"}
    layout = Layout("topic iteration document stratum grade", topic=0, document=2, value=4, most=5, finite=True)

    def sniff(self, head: bytes) -> Kinds:
        """Five columns: 0 in the second, whole numbers in the last two, and more documents than strata."""
        rows = [line.split() for line in first_lines(head)]
        fit = [len(row) == 5 and row[1] in (b"0", b"Q0") and row[3].isdigit() and is_number(row[4]) for row in rows]
        if not rows or not all(fit):
            return NEITHER
        documents = {(row[0], row[2]) for row in rows}
        numbers = any(is_number(row[2]) for row in rows)  # then it could be the subgroup of preferences
        telling = not numbers or len(rows) == len(documents) > len({(row[0], row[3]) for row in rows})
        return QRELS_ONLY if telling else NEITHER

    def known(self, buffer: Buffer, where: str, lenient: bool = False) -> Extras:
        """The stratum of each document; its probability is the share of its stratum that was drawn."""
        pooled: dict[tuple[bytes, bytes], int] = {}
        drawn: dict[tuple[bytes, bytes], int] = {}
        rows = list(self.rows(buffer, where, lenient))
        for topic, _, _, stratum, grade in rows:
            place = topic, stratum
            pooled[place] = pooled.get(place, 0) + 1
            drawn[place] = drawn.get(place, 0) + (float(grade) >= 0)
        return Extras(
            probabilities={
                (decode(row[0]), decode(row[2])): (
                    (drawn[row[0], row[3]] or pooled[row[0], row[3]]) / pooled[row[0], row[3]],
                    decode(row[3]),
                )
                for row in rows
            }
        )

    def write(self, table: Table, kind: Kind, tag: str) -> Iterator[bytes]:
        """Judgments of which nothing else is known: one stratum."""
        return self.write_known(table, Extras())

    def write_known(self, table: Table, extras: Extras) -> Iterator[bytes]:
        """One line a judgment."""
        known = extras.probabilities or {}
        for topic, document, grade in _judgments(table):
            _, stratum = known.get((decode(topic), decode(document)), (1.0, ""))
            yield b"%b 0 %b %b %r\n" % (
                topic,
                document,
                stratum.encode("utf-8", "surrogateescape") or b"1",
                whole(grade),
            )


def _judgments(table: Table) -> Iterator[tuple[bytes, bytes, float]]:
    topics = list(table.topics)
    for t, document, grade in zip(table.topic.tolist(), table.documents, table.value.tolist(), strict=True):
        yield topics[t], document, grade


PRELS = Prels()
STRATA = Strata()
