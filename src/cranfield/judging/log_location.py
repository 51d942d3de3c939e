"""Open the log at a location, whatever its kind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cranfield.base.errors import DataError
from cranfield.base.parameters import masked
from cranfield.formats.collection_folder import may_hold_log
from cranfield.formats.log_kind import POSTGRESQL, SQLITE, WORK_DB, log_kind
from cranfield.judging.jsonl_log import LinesLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.judging.log import Log


def is_database(location: str) -> bool:
    """Whether a location names a database and not a file of lines."""
    return log_kind(location) in (SQLITE, POSTGRESQL)


def open_log(location: str | os.PathLike[str], *, new: bool = True, clock: Callable[[], str] | None = None) -> Log:
    """The log at a path or a URL, or of a workspace; with `new=False` it must exist. `clock` replaces its clock.

    A folder that is no workspace gets no log: whoever names it means another folder, or the log itself.
    """
    where = os.fspath(location)
    if os.path.isdir(where):
        folder, where = where, os.path.join(where, WORK_DB)
        if not os.path.exists(where) and not (new and may_hold_log(folder)):
            without = (
                f"there is no {WORK_DB} in it" if may_hold_log(folder) else f"it has no {WORK_DB} and no documents"
            )
            raise DataError(f"{folder}: expected a log or a workspace, found a folder; {without}")
    kind = log_kind(where)
    if "://" in where and kind != POSTGRESQL:
        raise DataError(f"{masked(where)}: expected a file, or a database as postgresql://user@host:port/name")
    if not new and kind != POSTGRESQL and not os.path.exists(where):
        raise DataError(f"{where}: there is no such log")
    if kind not in (SQLITE, POSTGRESQL):
        return LinesLog(where, clock)
    from cranfield.judging.database_log import DatabaseLog

    if not new and os.path.isfile(where) and not os.path.getsize(where):  # opening it would fill it
        raise DataError(f"{where}: is empty, and no log")
    return DatabaseLog(where, clock)
