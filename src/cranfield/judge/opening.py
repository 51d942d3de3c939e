"""Which kind of log a location names."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from cranfield.errors import DataError
from cranfield.judge.lines import LinesLog
from cranfield.parameters import masked

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.judge.log import Log

SQLITE = (".db", ".sqlite", ".sqlite3")
HEAD = b"SQLite format 3\x00"


def is_database(location: str) -> bool:
    """Whether a location names a database and not a file of lines."""
    if re.match(r"postgres(ql)?://", location) or location.lower().endswith(SQLITE):
        return True
    from cranfield.store.database import is_open

    if is_open(location):
        return True
    try:
        with open(location, "rb") as file:
            return file.read(len(HEAD)) == HEAD
    except OSError:
        return False


def open_log(location: str | os.PathLike[str], *, new: bool = True, clock: Callable[[], str] | None = None) -> Log:
    """The log at a path or a URL; with `new=False` it must be there already. `clock` stands in for the database's."""
    where = os.fspath(location)
    if "://" in where and not is_database(where):
        raise DataError(f"{masked(where)}: expected a file, or a database as postgresql://user@host:port/name")
    if is_database(where):
        from cranfield.judge.database import DatabaseLog

        if not new and "://" not in where and not os.path.exists(where):
            raise DataError(f"{where}: there is no such log")
        if not new and os.path.isfile(where) and not os.path.getsize(where):  # opening it would fill it
            raise DataError(f"{where}: is empty, and no log")
        return DatabaseLog(where, clock)
    if not new and not os.path.exists(where):
        raise DataError(f"{where}: there is no such log")
    return LinesLog(where, clock)
