"""The SHA-256 of files, worked out once: kept beside their size and time, and trusted as long as these stay.

A file that was changed within the last two seconds is hashed again when it is asked for next: its time may stay the
same while it is still being written.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from cranfield.errors import CranfieldError, DataError
from cranfield.formats.streams import reason, write_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

STILL = 2.0  # seconds for which a file must have been left alone
MANY = 10_000  # files that are remembered
PIECE = 1 << 22

Mark = tuple[int, int, int]  # size, time in nanoseconds, number on the disk


def mark_of(path: str) -> Mark:
    """What changes when a file changes, short of reading it."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise DataError(f"{path}: {reason(error)}") from None
    return found.st_size, found.st_mtime_ns, found.st_ino


class Hashes:
    """Content hashes by path, kept in one file."""

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Mark, str]] | None = None

    def of(self, path: str, told: Callable[[int], None] | None = None) -> str:
        """A file's hash; `told` hears of every piece that is read for it, in bytes."""
        mark = mark_of(path)
        with self._lock:
            kept = self._kept().get(path)
        if kept is not None and kept[0] == mark:
            return kept[1]
        found = _hash(path, told)
        if mark == mark_of(path) and self.clock() - mark[1] / 1e9 > STILL:
            self._keep(path, mark, found)
        return found

    def unknown(self, paths: list[str]) -> int:
        """How many bytes are yet to be read to know the hashes of files."""
        with self._lock:
            kept = self._kept()
            marks = {path: mark_of(path) for path in paths}
            return sum(mark[0] for path, mark in marks.items() if path not in kept or kept[path][0] != mark)

    def _kept(self) -> dict[str, tuple[Mark, str]]:
        if self._known is None:
            try:
                with open(self.path, encoding="utf-8", errors="surrogateescape") as file:
                    rows: Any = json.load(file)
                self._known = {
                    str(path): ((int(mark[0]), int(mark[1]), int(mark[2])), str(found))
                    for path, (mark, found) in rows.items()
                }
            except (OSError, ValueError, TypeError, AttributeError, IndexError, RecursionError):  # it only saves work
                self._known = {}
        return self._known

    def _keep(self, path: str, mark: Mark, found: str) -> None:
        with self._lock:
            known = self._kept()
            known.pop(path, None)
            known[path] = mark, found
            while len(known) > MANY:
                del known[next(iter(known))]
            text = json.dumps(known)
            try:
                write_bytes(self.path, [text.encode()])
            except CranfieldError:  # a full disk: it is known for as long as this process lives
                pass


def _hash(path: str, told: Callable[[int], None] | None) -> str:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while piece := file.read(PIECE):
                digest.update(piece)
                if told is not None:
                    told(len(piece))
    except OSError as error:
        raise DataError(f"{path}: {reason(error)}") from None
    return digest.hexdigest()
