"""A consistent copy of a database as a new SQLite file, while others write.

Rows are copied table by table as the tables are declared, from either kind of database, inside one snapshot. Tables
that are PASSING come along empty: otherwise sessions, invitations, keys and tokens that ended later would be valid
again in a copy.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import quote

from cranfield.base.errors import DataError
from cranfield.store import tables
from cranfield.store.database import BUSY, Database, in_words, open_database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Table

AT_ONCE = 5000  # rows fetched from a server at a time


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
    for table in tables.metadata.sorted_tables:
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
