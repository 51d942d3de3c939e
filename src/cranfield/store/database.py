"""A database, opened: SQLite or PostgreSQL behind the same few words.

`write` runs work in a transaction and returns when it is on disk. In SQLite one thread writes for all others of a
process and commits what waits together (`store.writer`); in PostgreSQL each has a connection of its own, and work
that lost a race is run again. Work may therefore run more than once: it must change nothing but the database.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from cranfield.errors import DataError, MissingExtraError
from cranfield.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy.engine import URL, Connection, Engine

T = TypeVar("T")

BUSY = 30.0  # seconds to wait for somebody else's transaction
AGAIN = {"40001", "40P01", "23505", "55P03"}  # lost a race: serialisation, deadlock, unique, lock
TRIES = 12
MIGRATING = 0x6372616E  # the advisory lock of whoever brings the tables up to date
APPLICATION = 0x6372616E  # in the head of a SQLite file: "cran"
PASSWORD = re.compile(r"(?<=://)([^/@:\s]*):(?!\d+/)([^@\s]+)@(?:[^/\s]*@)?|(?<=password=)[^&\s]+", re.IGNORECASE)


def masked(text: str) -> str:
    """A text without the passwords of the URLs in it.

    >>> masked("cannot open postgresql://ann:secret@db/work")
    'cannot open postgresql://ann:***@db/work'
    """
    return PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[2] is not None else "***", text)


def open_database(location: str) -> Database:
    """A database by its URL or file; made where there is none, and brought up to date."""
    try:
        import sqlalchemy  # noqa: F401
    except ImportError:
        raise MissingExtraError("databases need SQLAlchemy: pip install 'cranfield[store]'") from None
    return Database(location)


class Database:
    """Tables in a file or on a server; `location` is a path, `:memory:`, or `postgresql://user@host/name`."""

    def __init__(self, location: str) -> None:
        url = _url(location)
        self.name = masked(location)
        self.dialect = url.get_backend_name()
        self.engine = _engine(url)
        self._writer: Writer | None = None
        with self._errors():
            self._migrate()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say in a sentence what a driver complains about."""
        from sqlalchemy.exc import DBAPIError

        try:
            yield
        except DBAPIError as error:
            raise DataError(f"{self.name}: {_reason(error)}") from None

    def _migrate(self) -> None:
        from sqlalchemy import text

        from cranfield.store.migrations import due

        with self.engine.begin() as connection:
            if self.dialect == "postgresql":
                connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATING})"))
            todo = due(self._version(connection), self.dialect, self.name)
            for number, statements in todo.items():
                for statement in statements:
                    connection.exec_driver_sql(statement)
                connection.exec_driver_sql("DELETE FROM cranfield_schema")
                connection.exec_driver_sql(f"INSERT INTO cranfield_schema VALUES ({number})")

    def _version(self, connection: Connection) -> int:
        from sqlalchemy import inspect

        tables = inspect(connection).get_table_names()
        if "cranfield_schema" not in tables:
            if "events" in tables or (tables and self.dialect == "sqlite"):
                raise DataError(f"{self.name}: holds tables of another program ({tables[0]}); name another database")
            connection.exec_driver_sql("CREATE TABLE cranfield_schema (version INTEGER NOT NULL)")
            return 0
        found = connection.exec_driver_sql("SELECT version FROM cranfield_schema").scalar()
        return 0 if found is None else int(found)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read by: one state of the database from the first look to the last."""
        with self._errors(), self.engine.connect().execution_options(reading=True) as connection:
            if self.dialect == "postgresql":
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run work in a transaction; what it did is on disk when this returns."""
        with self._errors():
            if self.dialect == "postgresql":
                return self._write_alone(work)
            if self._writer is None:
                self._writer = Writer(self.engine)
            return self._writer.run(work)

    def _write_alone(self, work: Callable[[Connection], T]) -> T:
        import random
        import time

        from sqlalchemy.exc import DBAPIError

        for attempt in range(TRIES):
            try:
                with self.engine.begin() as connection:
                    return work(connection)
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) not in AGAIN or attempt == TRIES - 1:
                    raise
            time.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 6)))
        raise AssertionError("the last try returns or raises")

    def now(self, connection: Connection) -> str:
        """The database's own clock, as events write times."""
        if self.dialect == "postgresql":
            shape = """'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'"""
            query = f"SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', {shape})"
        else:
            query = "SELECT strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')"
        return str(connection.exec_driver_sql(query).scalar_one())

    def close(self) -> None:
        """Let go of every connection."""
        if self._writer is not None:
            self._writer.close()
        self.engine.dispose()


def _url(location: str) -> URL:
    from sqlalchemy.engine import URL, make_url
    from sqlalchemy.exc import ArgumentError

    if not re.match(r"postgres(ql)?://", location):
        return URL.create("sqlite", database=location)
    try:
        return make_url(location).set(drivername="postgresql+psycopg")
    except (ArgumentError, ValueError):
        raise DataError(f"{masked(location)}: expected postgresql://user@host:port/name") from None


def _engine(url: URL) -> Engine:
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import StaticPool

    if url.get_backend_name() == "postgresql":
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise MissingExtraError("PostgreSQL needs psycopg: pip install 'cranfield[postgres]'") from None
        timeout = {} if "connect_timeout" in url.query else {"connect_timeout": 10}
        return create_engine(url, pool_size=20, max_overflow=40, pool_pre_ping=True, connect_args=timeout)
    folder = os.path.dirname(os.path.abspath(url.database or ""))
    if url.database != ":memory:" and not os.path.isdir(folder):
        raise DataError(f"{url.database}: cannot be opened: there is no folder {folder}")
    alone: dict[str, Any] = {"poolclass": StaticPool} if url.database == ":memory:" else {}
    engine = create_engine(url, connect_args={"timeout": BUSY, "check_same_thread": False}, **alone)
    event.listen(engine, "connect", _settings)
    event.listen(engine, "begin", _begin)
    return engine


def _settings(connection: Any, _record: Any) -> None:
    """What a label needs to be on disk when it is confirmed, and readers not to wait for the writer."""
    connection.isolation_level = None  # transactions are begun by `_begin`
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"application_id={APPLICATION}"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    reading = connection.get_execution_options().get("reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def _reason(error: Any) -> str:
    """What went wrong and what to do, without a password."""
    said = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
    for sign, told in REASONS.items():
        if sign in said.lower():
            return told.format(said=masked(said))
    return f"the database says: {masked(said)}"


REASONS = {
    "database is locked": f"another program has held it locked for {BUSY:.0f} seconds; nothing was written, try again",
    "disk is full": "cannot be written: the disk is full; nothing was written",
    "file is not a database": "is no SQLite database; name another file",
    "readonly database": "cannot be written: it is read-only",
    "unable to open": "cannot be opened: {said}",
    "connection refused": "cannot be reached: connection refused; is the server running there?",
    "password authentication failed": "refuses the password; give it in PGPASSWORD or .pgpass",
    "no password supplied": "asks for a password; give it in PGPASSWORD or .pgpass",
}
