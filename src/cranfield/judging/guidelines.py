"""Versions of the guidelines and of the meanings of grades: each label records the hash of the version it was given under.

A version is stored in the log under the hash of its content, so that what a label meant can be read even after guidelines
and grades have changed. The hash covers the text, the grades with their labels and meanings, and the lowest relevant grade;
a text without grades has the hash of its bytes, as earlier versions of cranfield recorded it. A version is stored when it is
first used, and once more whenever somebody edits back to it, so that the table is also the history.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from sqlalchemy import insert

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.base.schemas import Between, Text, read_json
from cranfield.judging.assignments import RecordKind
from cranfield.store.tables import guidelines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.engine import Connection

    from cranfield.base.collection import Grade

MOST_LINES = 3000  # of a text whose changes are shown line by line
AROUND = 2  # unchanged lines around a change


class GradeMeaning(NamedTuple):
    """A grade with its label and its meaning for assessors."""

    grade: float
    label: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class Guidelines:
    """One version: the text of the guidelines, the grades with their meanings, and the lowest relevant grade."""

    text: str = ""
    grades: tuple[GradeMeaning, ...] = ()
    relevant_from: float = 1.0

    @classmethod
    def of(cls, text: str, grades: Mapping[float, Grade], relevant_from: float) -> Guidelines:
        """The version of a text and of the grades of a collection."""
        meanings = tuple(GradeMeaning(float(key), each.label, each.meaning) for key, each in sorted(grades.items()))
        return cls(text, meanings, float(relevant_from) if meanings else 1.0)

    @cached_property
    def hash(self) -> str:
        """The hash of the content; empty if there are neither guidelines nor grades."""
        if not self.grades:
            content = self.text.encode("utf-8", "surrogateescape")
        else:
            grades = [[float(each.grade), each.label, each.meaning] for each in self.grades]
            content = json.dumps([self.text, grades, float(self.relevant_from)]).encode()
        return f"sha256:{hashlib.sha256(content).hexdigest()}" if content else ""

    def meaning(self, grade: float | None) -> GradeMeaning | None:
        """The meaning of a grade; None if this version does not name the grade."""
        return next((each for each in self.grades if each.grade == grade), None)

    def lines(self) -> list[str]:
        """The version as lines, to compare it with another."""
        about = [f"grade {each.grade:g}: {': '.join(filter(None, each[1:]))}" for each in reversed(self.grades)]
        lowest = [f"relevant from grade {self.relevant_from:g}"] if self.grades else []
        return [*about, *lowest, *self.text.splitlines()]


class ChangedLine(NamedTuple):
    """A line of a difference: `+` added, `-` removed, a blank if unchanged, `…` in place of unchanged lines."""

    sign: str
    line: str


def changed_lines(old: Guidelines, new: Guidelines) -> list[ChangedLine]:
    """What changed from one version to another, line by line; empty if nothing did.

    >>> changed_lines(Guidelines("Read.\\nJudge."), Guidelines("Read twice.\\nJudge."))
    [ChangedLine(sign='-', line='Read.'), ChangedLine(sign='+', line='Read twice.'), ChangedLine(sign=' ', line='Judge.')]
    """
    before, after = old.lines(), new.lines()
    if before == after:
        return []
    if max(len(before), len(after)) > MOST_LINES:
        return [*(ChangedLine("-", line) for line in before), *(ChangedLine("+", line) for line in after)]
    answer = []
    for line in list(difflib.unified_diff(before, after, n=AROUND, lineterm=""))[2:]:
        sign, text = line[0], line[1:]
        if sign == "@":
            sign, text = "…", ""
        answer.append(ChangedLine(sign, text))
    first_gap = answer[0].sign == "…"
    return answer[1:] if first_gap else answer


# in a log


class GuidelinesRecord(NamedTuple):
    """A version as a log stores it; `number` is its place in the history."""

    number: Annotated[int, Between(1)]
    hash: Text
    text: str
    grades: tuple[GradeMeaning, ...]
    relevant_from: float
    author: str
    at: Text


def version_of(record: Mapping[str, Any]) -> Guidelines:
    """The version of a record; DataError if it was changed after it was written."""
    grades = tuple(GradeMeaning(*each) for each in record["grades"])
    version = Guidelines(record["text"], grades, record["relevant_from"])
    _refuse_changed(record["hash"], version)
    return version


def _apply_guidelines(connection: Connection, record: dict[str, Any]) -> None:
    version = version_of(record)
    values = {"number": record["number"], "hash": record["hash"], "definition": json.dumps(asdict(version))}
    connection.execute(insert(guidelines), {**values, "author": record["author"], "created": record["at"]})


def _refuse_changed(stored: str, version: Guidelines) -> None:
    if version.hash != stored:
        problem = f"guidelines {shortened(stored)} were changed after they were written: their hash is another"
        raise DataError(f"{problem}; restore them from a copy")


VERSION = "guidelines"  # the kind of record
APPLIED = {VERSION: RecordKind(GuidelinesRecord, _apply_guidelines)}


def read_version(stored: str, definition: str) -> Guidelines:
    """A version from its row; DataError if it was changed after it was written."""
    version = read_json(definition, Guidelines, f"guidelines {shortened(stored)}")
    _refuse_changed(stored, version)
    return version
