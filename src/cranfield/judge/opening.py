"""Which kind of log a location names."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from cranfield.errors import DataError
from cranfield.judge.lines import LinesLog

if TYPE_CHECKING:
    from cranfield.judge.log import Log

SQLITE = (".db", ".sqlite", ".sqlite3")
HEAD = b"SQLite format 3\x00"


def is_database(location: str) -> bool:
    """Whether a location names a database and not a file of lines."""
    if re.match(r"postgres(ql)?://", location) or location.lower().endswith(SQLITE):
        return True
    try:
        with open(location, "rb") as file:
            return file.read(len(HEAD)) == HEAD
    except OSError:
        return False


def open_log(location: str | os.PathLike[str], *, new: bool = True) -> Log:
    """The log at a path or a URL; with `new=False` it must be there already."""
    where = os.fspath(location)
    if is_database(where):
        from cranfield.judge.database import DatabaseLog

        if not new and "://" not in where and not os.path.exists(where):
            raise DataError(f"{where}: there is no such log")
        return DatabaseLog(where)
    if not new and not os.path.exists(where):
        raise DataError(f"{where}: there is no such log")
    return LinesLog(where)
