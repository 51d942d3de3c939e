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

from sqlalchemy import func, insert, select

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.base.schemas import Between, Text, read_json
from cranfield.judging.assignments import RecordKind, record
from cranfield.judging.event import RELEVANCE
from cranfield.store.tables import events, guidelines, rows_with, standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy.engine import Connection

    from cranfield.base.collection import Grade
    from cranfield.judging.log import Log
    from cranfield.judging.table_changes import Transaction


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


class GuidelinesEntry(NamedTuple):
    """A version in the history: who stored it (empty: it was in the files) and when."""

    number: int
    hash: str
    author: str
    created: str
    version: Guidelines


def store_guidelines(transaction: Transaction, version: Guidelines, author: str | None = None) -> str:
    """Store a version unless the log has it, and return its hash.

    With an author (empty if unknown) it is an edit: the version is stored again if another one came after it.
    """
    connection = transaction.connection
    if not version.hash:
        return ""
    last = select(guidelines.c.hash).order_by(guidelines.c.number.desc()).limit(1)
    known = connection.execute(select(guidelines.c.number).where(guidelines.c.hash == version.hash)).first()
    if known is not None and (author is None or connection.execute(last).scalar() == version.hash):
        return version.hash
    number = (connection.execute(select(func.max(guidelines.c.number))).scalar() or 0) + 1
    values = {"text": version.text, "grades": version.grades, "relevant_from": version.relevant_from}
    about = {"number": number, "hash": version.hash, "author": author or "", "at": transaction.now}
    transaction.apply(record(VERSION, **about, **values))
    return version.hash


def keep_guidelines(log: Log, version: Guidelines) -> str:
    """Store a version that is about to be used, unless the log has it; return its hash, empty if there is nothing to store."""
    if not version.hash:
        return ""
    if log.has_records():
        with log.reading() as transaction:
            if versions_by_hash(transaction, [version.hash]):
                return version.hash
    return log.write(lambda transaction: store_guidelines(transaction, version))


def versions_by_hash(transaction: Transaction, hashes: Iterable[str]) -> dict[str, Guidelines]:
    """The stored versions with these hashes."""
    query = select(guidelines.c.hash, guidelines.c.definition)
    rows = rows_with(transaction.connection, query, guidelines.c.hash, {each for each in hashes if each})
    return {row.hash: read_version(row.hash, row.definition) for row in rows}


def guidelines_history(transaction: Transaction) -> list[GuidelinesEntry]:
    """Every stored version, the newest first."""
    rows = transaction.connection.execute(select(guidelines).order_by(guidelines.c.number.desc()))
    return [
        GuidelinesEntry(row.number, row.hash, row.author, row.created, read_version(row.hash, row.definition))
        for row in rows
    ]


def last_guidelines_of(transaction: Transaction, assessor: str) -> str:
    """The hash of the version under which an assessor labelled last; empty if there is none."""
    own = events.c.assessor == assessor, events.c.guideline != ""
    query = select(events.c.guideline).where(*own).order_by(events.c.seq.desc()).limit(1)
    return str(transaction.connection.execute(query).scalar() or "")


def grade_uses(transaction: Transaction) -> dict[float, int]:
    """The number of current labels with each grade; repeats and judgments of models count as well."""
    query = (
        select(events.c.grade, func.count())
        .join(standing, standing.c.event == events.c.id)
        .where(standing.c.aspect == RELEVANCE, standing.c.side != "preference", events.c.grade.is_not(None))
        .group_by(events.c.grade)
    )
    return {float(row[0]): int(row[1]) for row in transaction.connection.execute(query)}
