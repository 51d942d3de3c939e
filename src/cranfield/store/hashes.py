"""Hashes of what is decided once and read ever after: rounds and their documents, versions, comparisons, series.

They are written with the record in one transaction and held against it when it is read, so that a row that was changed by
other means is noticed. Records of an earlier cranfield get theirs when the tables are brought up to date.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from sqlalchemy import Column, insert, select

from cranfield.errors import DataError
from cranfield.parameters import masked, shortened
from cranfield.store.tables import comparisons, hashes, items, rounds, series, versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.engine import Connection

STEP = 9  # of the migrations, which makes the table
ROUND, DOCUMENTS, VERSION, COMPARISON, SERIES = "round", "documents of round", "version", "comparison", "series"
DEFINED: dict[str, tuple[Column[str], Column[str]]] = {
    ROUND: (rounds.c.name, rounds.c.definition),
    VERSION: (versions.c.name, versions.c.definition),
    COMPARISON: (comparisons.c.name, comparisons.c.definition),
    SERIES: (series.c.id, series.c.definition),
}


def keep_hash(connection: Connection, kind: str, name: str, text: str) -> None:
    """Write down the hash of a record's text."""
    connection.execute(insert(hashes), {"kind": kind, "name": name, "hash": _hash(text)})


def refuse_changed(connection: Connection, kind: str, name: str, text: str) -> None:
    """Stop where a record is not what it was when it was written."""
    if _kept(connection, kind, name) != _hash(text):
        raise _changed(connection, kind, name)


def keep_documents(connection: Connection, name: str, count: int) -> None:
    """Write down the hash of the documents with which a round was opened; a strategy may name more later."""
    values = {"kind": DOCUMENTS, "name": name, "hash": f"{count}:{_hash(_documents(connection, name, count))}"}
    connection.execute(insert(hashes), values)


def refuse_changed_documents(connection: Connection, name: str) -> None:
    """Stop where the documents of a round, their chances or grades are not what they were when it was opened."""
    count, _, kept = (_kept(connection, DOCUMENTS, name) or "").partition(":")
    if not count.isdigit() or kept != _hash(_documents(connection, name, int(count))):
        raise _changed(connection, DOCUMENTS, name)


def refuse_any_changed(connection: Connection) -> None:
    """Stop at the first record that is not what it was, or is gone."""
    there = {(kind, name): text for kind, name, text in _records(connection)}
    for (kind, name), text in there.items():
        refuse_changed(connection, kind, name, text)
        if kind == ROUND:
            refuse_changed_documents(connection, name)
    for row in connection.execute(select(hashes).order_by(hashes.c.kind, hashes.c.name)).all():
        kind = ROUND if row.kind == DOCUMENTS else row.kind
        if (kind, row.name) not in there:
            raise DataError(f"{_where(connection)}: {kind} {shortened(row.name)!r} is missing; restore it from a copy")


def keep_hashes_of_before(connection: Connection) -> None:
    """Write down the hashes of all records that an earlier cranfield wrote."""
    for kind, name, text in list(_records(connection)):
        keep_hash(connection, kind, name, text)
        if kind == ROUND:
            keep_documents(
                connection, name, len(connection.execute(select(items.c.item).where(items.c.round == name)).all())
            )


def _records(connection: Connection) -> Iterator[tuple[str, str, str]]:
    for kind, (name, definition) in DEFINED.items():
        for row in connection.execute(select(name, definition).order_by(name)).all():
            yield kind, row[0], row[1]


def _documents(connection: Connection, name: str, count: int) -> str:
    """The first documents of a round as text."""
    query = select(items).where(items.c.round == name, items.c.item < count).order_by(items.c.item)
    return json.dumps(
        [
            [row.item, row.topic, row.document, row.role, row.grade, row.overlap, row.probability]
            for row in connection.execute(query)
        ]
    )


def _kept(connection: Connection, kind: str, name: str) -> str | None:
    return connection.execute(select(hashes.c.hash).where(hashes.c.kind == kind, hashes.c.name == name)).scalar()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _changed(connection: Connection, kind: str, name: str) -> DataError:
    told = f"{kind} {shortened(name)!r} was changed after it was written: its hash is another"
    return DataError(f"{_where(connection)}: {told}; restore it from a copy")


def _where(connection: Connection) -> str:
    url = connection.engine.url
    server = url.get_backend_name() == "postgresql"
    return masked(url.set(drivername="postgresql").render_as_string()) if server else str(url.database)
