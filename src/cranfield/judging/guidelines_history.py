"""The versions of the guidelines in a log: storing one before it is used or after an edit, the history, and uses of grades."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from cranfield.judging.assignments import record
from cranfield.judging.event import CLICKS, RELEVANCE
from cranfield.judging.guidelines import VERSION, Guidelines, read_version
from cranfield.store.tables import events, guidelines, rows_with, standing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.judging.log import Log
    from cranfield.judging.table_changes import Transaction


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
    stored = connection.execute(select(guidelines.c.number).where(guidelines.c.hash == version.hash)).first()
    if stored is not None and (author is None or connection.execute(last).scalar() == version.hash):
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
    """The number of current labels with each grade; repeats and judgments of models count as well, those of clicks do not."""
    query = (
        select(events.c.grade, func.count())
        .join(standing, standing.c.event == events.c.id)
        .where(
            standing.c.aspect == RELEVANCE, standing.c.side.not_in(["preference", CLICKS]), events.c.grade.is_not(None)
        )
        .group_by(events.c.grade)
    )
    return {float(row[0]): int(row[1]) for row in transaction.connection.execute(query)}
