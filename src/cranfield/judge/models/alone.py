"""One process at a time asks a model in a log: another would take the questions that are under way for lost.

On a server it is an advisory lock of a connection, beside a file the lock of a file of its own: whoever is killed lets go of it.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cranfield.errors import DataError
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.judge.log import Log
    from cranfield.store import Database

ASKING = 0x6372616F  # the advisory lock of whoever asks; the model is its second number
PATIENCE = 5.0  # seconds for a server to notice that somebody was killed
GLANCE = 0.1


@contextmanager
def alone(log: Log, model: str) -> Iterator[None]:
    """Ask, unless somebody else does."""
    number = int.from_bytes(hashlib.sha256(model.encode("utf-8", "surrogatepass")).digest()[:4], "big", signed=True)
    database: Database | None = getattr(log, "database", None)
    if database is not None and database.dialect == "postgresql":
        held = _on_server(database, number)
    else:
        held = _beside(f"{os.path.realpath(log.name)}.asking-{number & 0xFFFFFFFF:08x}")
    with held as mine:
        if not mine:
            told = f"{log.name}: another process is asking {shortened(model)!r}"
            raise DataError(f"{told}; wait until it has ended, or end it. Nothing was asked or written")
        yield


@contextmanager
def _on_server(database: Database, number: int) -> Iterator[bool]:
    with (
        database.in_words(),
        database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
    ):
        until = time.monotonic() + PATIENCE
        take = f"SELECT pg_try_advisory_lock({ASKING}, {number})"
        while not (mine := bool(connection.exec_driver_sql(take).scalar())) and time.monotonic() < until:
            time.sleep(GLANCE)
        try:
            yield mine
        finally:
            if mine:
                connection.exec_driver_sql(f"SELECT pg_advisory_unlock({ASKING}, {number})")


@contextmanager
def _beside(path: str) -> Iterator[bool]:
    if sys.platform == "win32" or not os.access(os.path.dirname(path) or ".", os.W_OK):  # writing says why
        yield True
        return
    import fcntl

    while True:
        with open(path, "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            except OSError:  # a disk that knows no locks does without
                yield True
                return
            if not os.path.exists(path) or os.stat(path).st_ino != os.fstat(file.fileno()).st_ino:
                continue  # whoever had it has taken it away meanwhile
            try:
                yield True
            finally:
                os.unlink(path)
            return
