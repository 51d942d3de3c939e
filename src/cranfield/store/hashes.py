"""Hashes of records that never change: rounds, their documents and changes, versions, comparisons, series of questions.

The hash of the collection's file of judgments that was imported last is here, too.

They are written with the record in one transaction and compared when the record is read, so that a row changed by other
means is detected. Records of an earlier version get their hashes when the tables are migrated.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from sqlalchemy import Column, delete, func, insert, select

from cranfield.base.errors import DataError
from cranfield.base.parameters import masked, shortened
from cranfield.store.tables import comparisons, hashes, items, round_changes, rounds, series, versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy.engine import Connection

STEP = 9  # the migration that creates the table
IMPORTED = "imported judgments"  # of no record: which file the collection's judgments in the log come from
ROUND, DOCUMENTS, VERSION, COMPARISON, SERIES = "round", "documents of round", "version", "comparison", "series"
CHANGE = "change of round"
DEFINED: dict[str, tuple[Column[str], Column[str]]] = {
    ROUND: (rounds.c.name, rounds.c.definition),
    VERSION: (versions.c.name, versions.c.definition),
    COMPARISON: (comparisons.c.name, comparisons.c.definition),
    SERIES: (series.c.id, series.c.definition),
    CHANGE: (round_changes.c.id, round_changes.c.definition),
}


def keep_hash(connection: Connection, kind: str, name: str, text: str) -> None:
    """Store the hash of a record's text."""
    connection.execute(insert(hashes), {"kind": kind, "name": name, "hash": _hash(text)})


def refuse_changed(connection: Connection, kind: str, name: str, text: str) -> None:
    """Raise DataError if a record was changed after it was written."""
    if _stored_hash(connection, kind, name) != _hash(text):
        raise _changed(connection, kind, name)


def imported_file(connection: Connection) -> str:
    """The hash of the file whose judgments the log holds as the collection's; empty if there is none."""
    return _stored_hash(connection, IMPORTED, "") or ""


def keep_imported_file(connection: Connection, digest: str) -> None:
    """Store the hash of the file that was imported; empty if the file no longer exists."""
    connection.execute(delete(hashes).where(hashes.c.kind == IMPORTED))
    connection.execute(insert(hashes), {"kind": IMPORTED, "name": "", "hash": digest})


def keep_documents(connection: Connection, name: str, count: int) -> None:
    """Store the hash of a round's first documents; a strategy may add more later."""
    values = {"kind": DOCUMENTS, "name": name, "hash": f"{count}:{_hash(_documents(connection, name, count))}"}
    connection.execute(insert(hashes), values)


def refuse_changed_documents(connection: Connection, name: str) -> None:
    """Raise DataError if a round's first documents, their probabilities or gold grades were changed."""
    count, _, expected = (_stored_hash(connection, DOCUMENTS, name) or "").partition(":")
    if not count.isdigit() or expected != _hash(_documents(connection, name, int(count))):
        raise _changed(connection, DOCUMENTS, name)


def refuse_any_changed(connection: Connection) -> None:
    """Raise DataError at the first record that was changed or removed."""
    there = {(kind, name): text for kind, name, text in _records(connection)}
    for (kind, name), text in there.items():
        refuse_changed(connection, kind, name, text)
        if kind == ROUND:
            refuse_changed_documents(connection, name)
    of_records = select(hashes).where(hashes.c.kind != IMPORTED).order_by(hashes.c.kind, hashes.c.name)
    for row in connection.execute(of_records).all():
        kind = ROUND if row.kind == DOCUMENTS else row.kind
        if (kind, row.name) not in there:
            raise DataError(f"{_where(connection)}: {kind} {shortened(row.name)!r} is missing; restore it from a copy")


def keep_hashes_of_before(connection: Connection) -> None:
    """Store the hashes of records that an earlier version of cranfield wrote."""
    for kind, name, text in list(_records(connection, (ROUND, VERSION, COMPARISON, SERIES))):
        keep_hash(connection, kind, name, text)
        if kind == ROUND:
            count = select(func.count()).where(items.c.round == name)
            keep_documents(connection, name, connection.execute(count).scalar_one())


def _records(connection: Connection, kinds: Iterable[str] = tuple(DEFINED)) -> Iterator[tuple[str, str, str]]:
    for kind in kinds:
        name, definition = DEFINED[kind]
        for row in connection.execute(select(name, definition).order_by(name)).all():
            yield kind, row[0], row[1]


def _documents(connection: Connection, name: str, count: int) -> str:
    """The first documents of a round as text."""
    columns = [items.c[name] for name in ("item", "topic", "document", "role", "grade", "overlap", "probability")]
    query = select(*columns).where(items.c.round == name, items.c.item < count).order_by(items.c.item)
    return json.dumps([list(row) for row in connection.execute(query)])


def _stored_hash(connection: Connection, kind: str, name: str) -> str | None:
    return connection.execute(select(hashes.c.hash).where(hashes.c.kind == kind, hashes.c.name == name)).scalar()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _changed(connection: Connection, kind: str, name: str) -> DataError:
    problem = f"{kind} {shortened(name)!r} was changed after it was written: its hash is another"
    return DataError(f"{_where(connection)}: {problem}; restore it from a copy")


def _where(connection: Connection) -> str:
    url = connection.engine.url
    server = url.get_backend_name() == "postgresql"
    return masked(url.set(drivername="postgresql").render_as_string()) if server else str(url.database)
