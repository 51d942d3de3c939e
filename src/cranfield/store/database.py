"""An open database: SQLite or PostgreSQL behind one interface.

`write` runs work in a transaction and returns when it is on disk. In SQLite one thread writes for all others of a
process and commits what waits together (group commit); in PostgreSQL each has a connection of its own, and work
that lost a race is run again. Work may therefore run more than once: it must change nothing but the database.

A commit costs one sync of the disk, however much it holds: ten labels in one commit cost as much as one. Work that fails is
rolled back alone (a savepoint); the rest of its batch stays.
"""

from __future__ import annotations

import os
import re
import threading
import time
from concurrent.futures import Future
from contextlib import closing, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from cranfield.base.errors import DataError, UnavailableError
from cranfield.base.optional_packages import needed
from cranfield.base.parameters import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import ColumnElement
    from sqlalchemy.engine import URL, Connection, Engine, Row
    from sqlalchemy.sql import Select

    Task = tuple[Callable[[Connection], Any], Future[Any]]


T = TypeVar("T")

TOGETHER = 256


class GroupCommitWriter:
    """The queue of work and the thread that commits it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.queue: SimpleQueue[Task | None] = SimpleQueue()
        self.thread = threading.Thread(target=self._loop, name="cranfield-writer", daemon=True)
        self.thread.start()

    def put(self, work: Callable[[Connection], T]) -> Future[T]:
        """Queue work for a transaction; the future has its result after the commit. Not allowed after `close`."""
        future: Future[T] = Future()
        self.queue.put((work, future))
        return future

    def close(self) -> None:
        """Commit the queued work and end the thread."""
        self.queue.put(None)
        self.thread.join()

    def _loop(self) -> None:
        while (first := self.queue.get()) is not None:
            batch = [first]
            task: Task | None = first
            while task is not None and len(batch) < TOGETHER and not self.queue.empty():
                if (task := self.queue.get()) is not None:
                    batch.append(task)
            self._commit(batch)
            if task is None:
                return

    def _commit(self, batch: list[Task]) -> None:
        """Commit a batch in one transaction; if the database fails, each item in its own transaction."""
        from sqlalchemy.exc import DBAPIError, OperationalError

        answers: list[tuple[Future[Any], Any, BaseException | None]] = []
        begun = False
        try:
            with self.engine.begin() as connection:
                begun = True
                for work, future in batch:
                    connection.exec_driver_sql("SAVEPOINT own")
                    try:
                        answers.append((future, work(connection), None))
                    except DBAPIError:  # SQLite may have rolled the whole transaction back
                        raise
                    except Exception as error:
                        connection.exec_driver_sql("ROLLBACK TO own")
                        answers.append((future, None, error))
                    connection.exec_driver_sql("RELEASE own")
        except BaseException as failure:  # nothing of the batch was committed
            refused = isinstance(failure, DBAPIError) and not isinstance(failure, OperationalError)
            if len(batch) > 1 and begun and refused:
                for task in batch:
                    self._commit([task])
                return
            answers = [(future, None, failure) for _, future in batch]
        for future, answer, problem in answers:
            if problem is None:
                future.set_result(answer)
            else:
                future.set_exception(problem)


KEPT = 20  # pool size: more than a server has threads, because connections beyond it are opened and closed every time
BUSY = 30.0  # seconds to wait for another transaction
TURN = 50  # milliseconds that SQLite waits by itself before it is asked again
AGAIN = {"40001", "40P01", "23505", "55P03"}  # lost a race: serialisation, deadlock, unique, lock
TRIES = 12
MIGRATING = 0x6372616E  # the advisory lock of migrations
APPLICATION = 0x6372616E  # in the head of a SQLite file, at byte 68: "cran"
HEAD = 100  # bytes
MOST_TOLD = 100  # maximum number of reported problems of a file
QUIET: dict[str, Any] = {"hide_parameters": True}  # keeps password hashes out of logs
SERVERS_TIME = """to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""

_opening = threading.Lock()
_opened: WeakSet[Database] = WeakSet()


def is_open(path: str) -> bool:
    """Whether this process has a file open as a database.

    Closing such a file by other means than SQLite releases SQLite's locks. Another process may then remove the journal
    with the latest changes.
    """
    number = _number(path)
    return number is not None and any(database.file == number for database in list(_opened))


def _number(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def open_database(location: str, clock: Callable[[], str] | None = None) -> Database:
    """Open a database by its URL or file; it is created or migrated if necessary. `clock` replaces its clock."""
    needed("sqlalchemy", "databases need")
    return Database(location, clock)


class Database:
    """Tables in a file or on a server; `location` is a path, `:memory:`, or `postgresql://user@host/name`."""

    def __init__(self, location: str, clock: Callable[[], str] | None = None) -> None:
        url = _url(location)
        self.name = masked(location)
        self.dialect = url.get_backend_name()
        self._clock = clock
        self._writer: GroupCommitWriter | None = None
        self._starting = threading.Lock()
        with _opening if self.dialect == "sqlite" else nullcontext():
            self.engine = _engine(url, self.name)
            try:
                with self.in_words():
                    self._migrate()
            except BaseException:
                self.engine.dispose()
                raise
            self.file = _number(url.database or "") if self.dialect == "sqlite" else None
            _opened.add(self)

    @contextmanager
    def in_words(self) -> Iterator[None]:
        """Turn errors of the database driver into errors with a clear sentence."""
        import sqlite3

        from sqlalchemy.exc import DBAPIError, OperationalError, TimeoutError

        try:
            yield
        except OperationalError as error:
            raise UnavailableError(f"{self.name}: {_reason(error)}") from None
        except DBAPIError as error:
            raise DataError(f"{self.name}: {_reason(error)}") from None
        except TimeoutError:
            raise UnavailableError(f"{self.name}: every connection is in use; try again") from None
        except (sqlite3.Error, UnicodeDecodeError) as error:  # while rows are fetched; SQLAlchemy does not wrap them
            raise DataError(f"{self.name}: {in_words(str(error))}") from None

    def _migrate(self) -> None:
        """Migrate the tables. The version is read first, so that readers need neither a lock nor write access."""
        from cranfield.store import hashes
        from cranfield.store.migrations import due

        with self.engine.connect().execution_options(begin="BEGIN") as connection:
            if not due(self._version(connection), self.dialect, self.name):
                return
        if self.dialect == "sqlite" and self.engine.url.query:
            problem = "was written by an earlier cranfield and is read-only"
            raise DataError(f"{self.name}: {problem}; copy it to where it can be brought up to date")
        with self.engine.begin() as connection:
            if self.dialect == "postgresql":
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATING})")
            version = self._version(connection)  # another process may have migrated meanwhile
            if not version:
                connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS cranfield_schema (version INTEGER NOT NULL)")
            if not version and self.dialect == "sqlite":
                connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION}")
            steps = due(version, self.dialect, self.name)
            for number, statements in steps.items():
                for statement in statements:
                    connection.exec_driver_sql(statement)
                if version and number == hashes.STEP:
                    hashes.keep_hashes_of_before(connection)
            if steps:
                connection.exec_driver_sql("DELETE FROM cranfield_schema")
                connection.exec_driver_sql(f"INSERT INTO cranfield_schema VALUES ({max(steps)})")

    def _version(self, connection: Connection) -> int:
        from sqlalchemy import inspect

        tables = inspect(connection).get_table_names()
        if "cranfield_schema" not in tables:
            if "events" in tables or (tables and self.dialect == "sqlite"):
                raise DataError(f"{self.name}: holds tables of another program ({tables[0]}); name another database")
            return 0
        version = connection.exec_driver_sql("SELECT version FROM cranfield_schema").scalar()
        return 0 if version is None else int(version)

    @contextmanager
    def reading(self, server_lock: str = "") -> Iterator[Connection]:
        """A connection for reading from one snapshot of the database; on a server it is taken while a lock is held.

        SQLite has one writer at a time, so any of its snapshots holds every change that came before the last one.
        """
        with self.in_words(), self._snapshot(server_lock) as connection:
            yield connection
            connection.commit()  # after a rollback psycopg prepares every statement anew

    def _snapshot(self, server_lock: str) -> Connection:
        if not server_lock or self.dialect != "postgresql":
            return self._connected()

        def tried() -> Connection:
            with self.engine.connect() as holder:
                holder.exec_driver_sql(f"SELECT {server_lock}")
                return self._connected()

        return _alive(tried)

    def _connected(self) -> Connection:
        if self.dialect != "postgresql":
            return self.engine.connect().execution_options(begin="BEGIN")

        def tried() -> Connection:
            connection = self.engine.connect().execution_options(isolation_level="REPEATABLE READ")
            try:
                connection.exec_driver_sql("SELECT 1")
            except BaseException:
                connection.close()
                raise
            return connection

        return _alive(tried)

    def damage(self) -> list[str]:
        """The problems that SQLite finds in its file; empty for a server."""
        if self.dialect != "sqlite":
            return []
        with self.reading() as connection:
            reports = [str(row[0]) for row in connection.exec_driver_sql(f"PRAGMA integrity_check({MOST_TOLD})")]
        lines = [line for each in reports for line in each.splitlines() if not line.startswith("***")]  # its headings
        return [] if lines == ["ok"] else lines

    def first(self, query: Select[Any], values: dict[str, Any]) -> Row[Any] | None:
        """The first row of a query, without a transaction around the single statement."""
        alone = {"isolation_level": "AUTOCOMMIT"} if self.dialect == "postgresql" else {"begin": ""}

        def look() -> Row[Any] | None:
            with self.engine.connect().execution_options(**alone) as connection:
                return connection.execute(query, values).first()

        with self.in_words():
            return _alive(look)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run work in a transaction, which is on disk when this returns."""
        with self.in_words():
            if self.dialect == "postgresql":
                return self._write_alone(work)
            with self._starting:
                writer = self._writer = self._writer or GroupCommitWriter(self.engine)
                done = writer.put(work)  # before another thread can close it
            return done.result()

    def _write_alone(self, work: Callable[[Connection], T]) -> T:
        import random

        from sqlalchemy.exc import DBAPIError

        for attempt in range(TRIES):
            ending = False
            try:
                with self.engine.connect() as connection:
                    answer = work(connection)
                    ending = True
                    connection.commit()
                    return answer
            except DBAPIError as error:
                lost = error.connection_invalidated and not (ending or attempt)  # before anything was written
                raced = getattr(error.orig, "sqlstate", None) in AGAIN
                if not (lost or raced) or attempt == TRIES - 1:
                    raise
            time.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 6)))
        raise AssertionError("the last try returns or raises")

    def now(self, connection: Connection) -> str:
        """The time of the database's clock, in the format of event times."""
        if self.tells_time:
            return str(connection.exec_driver_sql(f"SELECT {SERVERS_TIME}").scalar_one())
        return self.own_time()

    def own_time(self) -> str:
        """The time of this process: a file has no clock."""
        if self._clock is not None:
            return self._clock()
        return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

    def moment(self) -> ColumnElement[str]:
        """The time of the database's clock as an SQL expression."""
        from sqlalchemy import literal, literal_column

        return literal_column(SERVERS_TIME) if self.tells_time else literal(self.own_time())

    @property
    def tells_time(self) -> bool:
        """Whether an SQL statement can read the server's clock (`SERVERS_TIME`)."""
        return self.dialect == "postgresql" and self._clock is None

    def close(self) -> None:
        """Write what is queued and close all connections; later use opens them again."""
        with self._starting:
            writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        self.engine.dispose()


def _url(location: str) -> URL:
    from sqlalchemy.engine import URL, make_url
    from sqlalchemy.exc import ArgumentError

    if not re.match(r"postgres(ql)?://", location):
        return URL.create("sqlite", database=location)
    parts = re.match(r"(postgres(?:ql)?://[^:/@]*:)([^?]*)(@[^@?]*(?:\?.*)?)$", location, re.DOTALL)
    if parts:  # a password may contain characters that end it in other URLs
        location = parts[1] + parts[2].replace("@", "%40").replace("/", "%2F") + parts[3]
    try:
        return make_url(location).set(drivername="postgresql+psycopg")
    except (ArgumentError, ValueError):
        raise DataError(f"{masked(location)}: expected postgresql://user@host:port/name") from None


def _engine(url: URL, name: str) -> Engine:
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import StaticPool

    if url.get_backend_name() == "postgresql":
        needed("psycopg", "PostgreSQL needs")
        timeout = {} if "connect_timeout" in url.query else {"connect_timeout": 10}
        return create_engine(url, pool_size=KEPT, max_overflow=40, pool_use_lifo=True, connect_args=timeout, **QUIET)
    alone: dict[str, Any] = {"poolclass": StaticPool}
    if url.database != ":memory:":
        path = url.database or ""
        _refuse_others(path, name)
        url = _read_only(path) or url
        _make_private(path)
        alone = {"pool_size": KEPT, "max_overflow": -1, "pool_use_lifo": True}
    engine = create_engine(url, connect_args={"timeout": BUSY, "check_same_thread": False}, **alone, **QUIET)
    event.listen(engine, "connect", _settings if not url.query else _settings_of_readers)
    event.listen(engine, "begin", _begin)
    return engine


def _alive(use: Callable[[], T]) -> T:
    """Open a connection; try again if the server has closed the pooled one."""
    from sqlalchemy.exc import DBAPIError

    try:
        return use()
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
    return use()


def _make_private(path: str) -> None:
    """Create a missing file that only its owner can read, because it will hold password hashes and labels.

    SQLite gives its journal the same mode. If the file cannot be created, SQLite reports why.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _read_only(path: str) -> URL | None:
    """The URL to read a file if the file or its folder is read-only; None if SQLite can write there."""
    from urllib.parse import quote

    from sqlalchemy.engine import URL

    if not os.path.exists(path) or (os.access(path, os.W_OK) and os.access(os.path.dirname(path) or ".", os.W_OK)):
        return None
    still = {} if os.path.exists(f"{path}-wal") else {"immutable": "1"}  # no process has it open for writing
    return URL.create("sqlite", database=f"file:{quote(path)}", query={"mode": "ro", "uri": "true", **still})


def _refuse_others(path: str, name: str) -> None:
    """Refuse a file of another program, before a connection's settings change it."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise DataError(f"{name}: cannot be opened: there is no folder {folder}")
    if is_open(path):
        return
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(f"{name}: cannot be opened: {(error.strerror or str(error)).lower()}") from None
    if head and not head.startswith(b"SQLite format 3\0"):
        raise DataError(f"{name}: {REASONS['file is not a database']}")
    owner = int.from_bytes(head[68:72], "big")
    if head and owner not in (0, APPLICATION):
        raise DataError(f"{name}: is the database of another program; name another file")
    if head and not owner:
        _refuse_strange_tables(path, name)


def _refuse_strange_tables(path: str, name: str) -> None:
    """Refuse a database with unknown tables."""
    import sqlite3
    from urllib.parse import quote

    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=BUSY)) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise DataError(f"{name}: {in_words(str(error))}") from None
    if tables and ("cranfield_schema",) not in tables:
        raise DataError(f"{name}: holds tables of another program ({tables[0][0]}); name another database")


def _settings(connection: Any, _record: Any) -> None:
    """Settings for durable commits, and for readers that do not wait for the writer."""
    _settings_of_readers(connection, _record)
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _settings_of_readers(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions are begun by `_begin`


def _begin(connection: Connection) -> None:
    """Begin a transaction; writers take their lock at once, not in the middle of their work."""
    statement = connection.get_execution_options().get("begin", "BEGIN IMMEDIATE")
    if statement == "BEGIN IMMEDIATE":
        _lock_for_writing(connection)
    elif statement:
        connection.exec_driver_sql(statement)


def _lock_for_writing(connection: Connection) -> None:
    """Take SQLite's write lock within `BUSY` seconds.

    SQLite's own waiting slows down to ten tries per second, and a process that commits without pause can then keep the
    others out. Waiting in short turns keeps trying often.
    """
    from sqlalchemy.exc import OperationalError

    driver: Any = connection.connection.dbapi_connection
    deadline = time.monotonic() + BUSY
    driver.execute(f"PRAGMA busy_timeout={TURN}")
    try:
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                return
            except OperationalError as error:
                if "database is locked" not in str(error.orig) or time.monotonic() > deadline:
                    raise
    finally:
        driver.execute(f"PRAGMA busy_timeout={BUSY * 1000:.0f}")


def _reason(error: Any) -> str:
    """The error as a sentence with advice, without a password."""
    return in_words(str(error.orig).strip() or type(error.orig).__name__)


def in_words(message: str) -> str:
    """The message of a database driver as a sentence with advice."""
    for sign, sentence in REASONS.items():
        if sign in message.lower():
            return sentence.format(said=masked(message.splitlines()[0]), busy=f"{BUSY:g}")
    return f"the database says: {masked(message.splitlines()[0])}"


DAMAGED = "is damaged; take it from a copy, or save what is left with sqlite3 FILE .recover"
REASONS = {
    "database is locked": "another program has held it locked for {busy} seconds; nothing was written, try again",
    "disk is full": "cannot be written: the disk is full; nothing was written",
    "disk i/o error": "cannot be written: the disk reports an error, or is full; nothing was written",
    "no space left": "cannot be written: the server's disk is full; nothing was written",
    "file is not a database": "is not a SQLite database; name another file",
    "disk image is malformed": DAMAGED,
    "malformed database schema": DAMAGED,
    "could not decode to utf-8": DAMAGED,
    "codec can't decode": DAMAGED,
    "readonly database": "cannot be written: it is read-only",
    "unable to open": "cannot be opened: {said}; are file and folder writable?",
    "connection refused": "cannot be reached: connection refused; is the server running there?",
    "no such file or directory": "cannot be reached: {said}; is the server running there?",
    "password authentication failed": "refuses the password; give it in PGPASSWORD or .pgpass",
    "no password supplied": "asks for a password; give it in PGPASSWORD or .pgpass",
    "terminating connection": "the server ended the connection; nothing was written, try again",
    "server closed the connection": "the server ended the connection; nothing was written, try again",
}
