"""Whether a location (a path or a URL) is a log of judgments, and of which kind. No other module decides this.

The content of a file decides, whatever its name: a copy of work.db is a log under any name. Only a file that does not
exist yet, or is empty, goes by its ending. Commands ask this about every qrels file, so this module imports little.
"""

from __future__ import annotations

import os
import stat
import sys

LINES, SQLITE, POSTGRESQL = "lines", "sqlite", "postgresql"
WORK_DB = "work.db"  # the log of a workspace, in its folder
ENDINGS = (".db", ".sqlite", ".sqlite3")  # of a SQLite file that is not there yet
SERVERS = ("postgresql://", "postgres://")
HEAD = b"SQLite format 3\x00"
TAIL = 1 << 16  # bytes that hold a file's first or last line


def log_kind(location: str) -> str | None:
    """LINES, SQLITE or POSTGRESQL; None if a location is not a log of judgments.

    JSON lines are a log if the first or the last line is an event or another record of a log. A file of labels without
    ids, as `pool judge` once wrote it, is a file of labels and not a log.

    >>> log_kind("postgresql://ann@db/work"), log_kind("new.db"), log_kind("qrels.txt")
    ('postgresql', 'sqlite', None)
    """
    if location.startswith(SERVERS):
        return POSTGRESQL
    store = sys.modules.get("cranfield.store.database")  # without it this process has no database open
    if store is not None and store.is_open(location):  # to open and close the file here would release SQLite's locks
        return SQLITE
    first, last = _first_and_last_line(location)
    if first.startswith(HEAD):
        return SQLITE
    if _is_record(first) or _is_record(last):
        return LINES
    return SQLITE if location.lower().endswith(ENDINGS) else None


def _first_and_last_line(path: str) -> tuple[bytes, bytes]:
    """The first line of a file and its last whole one; empty for a pipe, which can be read only once."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b"", b""
        with open(path, "rb") as file:
            first = file.read(TAIL)
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            last = file.read().rstrip(b"\n")
    except (OSError, ValueError):
        return b"", b""
    return first.partition(b"\n")[0], last.rpartition(b"\n")[2]


def _is_record(line: bytes) -> bool:
    """Whether a line of JSON is an event, or another record of a log."""
    if b'"' not in line:
        return False
    import json

    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(row, dict):
        return False
    event = {"id", "time"} <= row.keys() and ("kind" in row or {"topic", "document"} <= row.keys())
    return event or isinstance(row.get("record"), str)
