"""A consistent copy of a database as a new SQLite file, while others write; and the way back.

Rows are copied table by table as the tables are declared, from either kind of database, inside one snapshot. Tables
that are PASSING come along empty: otherwise sessions, invitations, keys and tokens that ended later would be valid
again in a copy.

A copy is loaded into a database in one transaction, so all of it is there or nothing. It is refused if the database has any
record that the copy lacks or has with other content: nothing that was confirmed gets lost. Accounts are the exception: those that
exist stay as they are, so that nobody whose access has ended gets in again.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import Boolean, Integer

from cranfield.base.errors import DataError
from cranfield.store import tables
from cranfield.store.database import BUSY, Database, in_words, open_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sqlalchemy import Table
    from sqlalchemy.engine import Connection

AT_ONCE = 5000  # rows fetched from a server at a time
RECORDS = (
    "events",
    "pseudonyms",
    "rounds",
    "round_changes",
    "guidelines",
    "versions",
    "comparisons",
    "series",
    "questions",
)
"""A copy that lacks one of these is older."""
KEPT = ("accounts",)  # of the database, not of the copy


def copy_into(database: Database, path: str) -> int:
    """Copy a database into a new SQLite file and return the number of its events."""
    open_database(path).close()
    try:
        url = f"file:{quote(path)}?mode=rw"
        with closing(sqlite3.connect(url, uri=True, timeout=BUSY, isolation_level=None)) as copy:
            for pragma in ("journal_mode=DELETE", "synchronous=OFF"):  # nobody reads the copy before it is complete
                copy.execute(f"PRAGMA {pragma}")
            if database.dialect == "postgresql":
                _from_server(database, copy)
            else:
                _from_file(database, copy)
            return int(copy.execute("SELECT count(*) FROM events").fetchone()[0])
    except sqlite3.Error as error:
        raise DataError(f"{path}: {in_words(str(error))}") from None


def _copied_tables() -> Iterator[tuple[Table, str, str]]:
    """The tables to copy, with their quoted names and columns."""
    for table in tables.metadata.tables.values():  # as they are declared: referenced tables first
        if not table.info.get("passing"):
            yield table, f'"{table.name}"', ", ".join(f'"{column.name}"' for column in table.columns)


def _from_file(database: Database, copy: sqlite3.Connection) -> None:
    """Copy from a file in one transaction, which blocks nobody."""
    url = database.engine.url
    options = "&".join(f"{name}={value}" for name, value in url.query.items() if name != "uri")
    source = f"{url.database}?{options}" if options else f"file:{quote(str(url.database))}?mode=rw"
    copy.execute("ATTACH ? AS source", (source,))
    copy.execute("BEGIN")
    for _, name, columns in _copied_tables():
        copy.execute(f"INSERT INTO main.{name} ({columns}) SELECT {columns} FROM source.{name}")
    copy.execute("COMMIT")


def _from_server(database: Database, copy: sqlite3.Connection) -> None:
    with database.reading() as connection:
        copy.execute("BEGIN")
        for table, name, columns in _copied_tables():
            marks = ", ".join("?" * len(table.columns))
            rows = connection.execution_options(yield_per=AT_ONCE).exec_driver_sql(f"SELECT {columns} FROM {name}")
            for some in rows.partitions():
                copy.executemany(f"INSERT INTO {name} ({columns}) VALUES ({marks})", map(tuple, some))
        copy.execute("COMMIT")


class OlderCopyError(DataError):
    """A copy that lacks records of the database that it should be loaded into."""


def refuse_other_objects(path: str) -> None:
    """Raise DataError for a SQLite file with views, triggers or virtual tables: a log has none, and they run code."""
    with _readable(path) as copy:
        rows = copy.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    for kind, name, sql in rows:
        if kind not in ("table", "index") or str(sql or "").lstrip().upper().startswith("CREATE VIRTUAL"):
            raise DataError(f"{path}: holds a {kind} {str(name)[:60]!r}, which no log has")


def load_from(database: Database, path: str, progress: Callable[[int, int | None], None] | None = None) -> int:
    """Load a copy into a database in one transaction and return the number of its events.

    OlderCopyError if the database has records that the copy lacks; nothing is changed then.
    """

    def work(connection: Connection) -> int:
        with _readable(path) as copy:
            if database.dialect == "postgresql":
                names = ", ".join(name for _, name, _ in _copied_tables())
                connection.exec_driver_sql(f"LOCK TABLE {names} IN EXCLUSIVE MODE")
            _refuse_older(connection, copy)
            return _load(connection, copy, progress)

    return database.write(work)


def refuse_older(database: Database, path: str) -> None:
    """Raise OlderCopyError if a database has records that a copy lacks."""
    with database.reading() as connection, _readable(path) as copy:
        _refuse_older(connection, copy)


@contextmanager
def _readable(path: str) -> Iterator[sqlite3.Connection]:
    """A copy to read from, with the errors of SQLite as sentences."""
    try:
        with closing(
            sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=BUSY, isolation_level=None)
        ) as copy:
            yield copy
    except sqlite3.Error as error:
        raise DataError(f"{path}: {in_words(str(error))}") from None


def _refuse_older(connection: Connection, copy: sqlite3.Connection) -> None:
    """Raise OlderCopyError at the first record that the copy lacks or has otherwise. Keys are the first columns."""
    for name in RECORDS:
        columns = [f'"{column.name}"' for column in tables.metadata.tables[name].columns]
        query = f'SELECT {", ".join(columns)} FROM "{name}" ORDER BY {columns[0]}'
        others = iter(copy.execute(query))
        with closing(connection.exec_driver_sql(query, execution_options={"yield_per": AT_ONCE})) as rows:
            for row in rows:
                other = next((each for each in others if _in_order(each[0]) >= _in_order(row[0])), None)
                if other is None or tuple(other) != tuple(row):
                    problem = f"the log has {name} that the backup lacks or has otherwise"
                    raise OlderCopyError(f"{problem}; nothing was restored. Restore it into a new workspace")


def _in_order(key: str | int) -> Any:
    """A key as both kinds of database compare it: texts byte by byte."""
    return key.encode() if isinstance(key, str) else key


def _load(connection: Connection, copy: sqlite3.Connection, progress: Callable[..., None] | None) -> int:
    """Replace the rows of all tables by those of a copy, except accounts that exist."""
    copied = list(_copied_tables())
    counts = {table.name: int(copy.execute(f"SELECT count(*) FROM {name}").fetchone()[0]) for table, name, _ in copied}
    done, total = 0, sum(counts.values())
    for table, name, _ in reversed(copied):
        if table.name not in KEPT:
            connection.exec_driver_sql(f"DELETE FROM {name}")
    for table, name, columns in copied:
        mark = "?" if connection.dialect.name == "sqlite" else "%s"
        marks = ", ".join([mark] * len(table.columns))
        skip = " ON CONFLICT DO NOTHING" if table.name in KEPT else ""
        statement = f"INSERT INTO {name} ({columns}) VALUES ({marks}){skip}"
        for rows in _batches(copy.execute(f"SELECT {columns} FROM {name}")):
            connection.exec_driver_sql(statement, [_typed(table, row) for row in rows])
            done += len(rows)
            if progress is not None:
                progress(done, total)
    if connection.dialect.name == "postgresql":
        _advance_numbers(connection, [table for table, _, _ in copied])
    return counts["events"]


def _batches(rows: sqlite3.Cursor) -> Iterable[list[tuple[Any, ...]]]:
    while batch := rows.fetchmany(AT_ONCE):
        yield batch


def _typed(table: Table, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row of SQLite with the types of the table: SQLite has no truth values."""
    return tuple(
        bool(value) if isinstance(column.type, Boolean) and value is not None else value
        for column, value in zip(table.columns, row, strict=True)
    )


def _advance_numbers(connection: Connection, copied: list[Table]) -> None:
    """Let the server's number sequences continue after the numbers of the copy."""
    for table in copied:
        keys = list(table.primary_key)
        if len(keys) == 1 and isinstance((column := keys[0]).type, Integer):
            largest = f"(SELECT max({column.name}) FROM {table.name})"
            sequence = f"pg_get_serial_sequence('{table.name}', '{column.name}')"
            connection.exec_driver_sql(f"SELECT setval({sequence}, coalesce({largest}, 1), {largest} IS NOT NULL)")
