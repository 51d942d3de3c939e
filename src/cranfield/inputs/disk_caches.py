"""Caches in the state folder: the SHA-256 of files, and computed results.

A hash is stored with the size and time of its file, and is valid as long as these stay the same. A file that changed
within the last two seconds is hashed again next time: its time may stay the same while it is still being written.

A result lies under the hash of its question. Its file is a line with the hash of the rest, then JSON; a file that does not
fit its hash counts as missing and is removed. All results together have a maximum size: the least recently used go first.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import CranfieldError, DataError
from cranfield.formats.streams import reason, write_bytes

if TYPE_CHECKING:
    from collections.abc import Callable


STILL = 2.0  # seconds since the last change of a file before its hash is stored
MANY = 10_000  # files in the cache
PIECE = 1 << 22

Mark = tuple[int, int, int]  # size, time in nanoseconds, number on the disk


def mark_of(path: str) -> Mark:
    """Size, time and inode of a file: they change when the file changes."""
    try:
        stat = os.stat(path)
    except OSError as error:
        raise DataError(f"{path}: {reason(error)}") from None
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


class FileHashes:
    """SHA-256 hashes by path, stored in one file."""

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.clock = clock
        self._lock = threading.Lock()
        self._entries: dict[str, tuple[Mark, str]] | None = None

    def of(self, path: str, progress: Callable[[int], None] | None = None) -> str:
        """The hash of a file; `progress` gets the size of every piece that is read."""
        mark = mark_of(path)
        with self._lock:
            entry = self._load().get(path)
        if entry is not None and entry[0] == mark:
            return entry[1]
        digest = _hash(path, progress)
        if mark == mark_of(path) and self.clock() - mark[1] / 1e9 > STILL:
            self._store(path, mark, digest)
        return digest

    def unknown(self, paths: list[str]) -> int:
        """How many bytes must be read to know the hashes of files."""
        with self._lock:
            entries = self._load()
            marks = {path: mark_of(path) for path in paths}
            return sum(mark[0] for path, mark in marks.items() if path not in entries or entries[path][0] != mark)

    def _load(self) -> dict[str, tuple[Mark, str]]:
        if self._entries is None:
            try:
                with open(self.path, encoding="utf-8", errors="surrogateescape") as file:
                    rows: Any = json.load(file)
                self._entries = {
                    str(path): ((int(mark[0]), int(mark[1]), int(mark[2])), str(digest))
                    for path, (mark, digest) in rows.items()
                }
            except (OSError, ValueError, TypeError, AttributeError, IndexError, RecursionError):
                self._entries = {}  # the cache only saves time
        return self._entries

    def _store(self, path: str, mark: Mark, digest: str) -> None:
        with self._lock:
            entries = self._load()
            entries.pop(path, None)
            entries[path] = mark, digest
            while len(entries) > MANY:
                del entries[next(iter(entries))]
            with suppress(CranfieldError):  # a full disk: the hash lives as long as this process
                write_bytes(self.path, [json.dumps(entries).encode()])


def _hash(path: str, progress: Callable[[int], None] | None) -> str:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while piece := file.read(PIECE):
                digest.update(piece)
                if progress is not None:
                    progress(len(piece))
    except OSError as error:
        raise DataError(f"{path}: {reason(error)}") from None
    return digest.hexdigest()


ROOM = 256 << 20  # bytes
NAME = re.compile(r"[0-9a-f]{64}")
FRESH = 3600.0  # seconds between two updates of the time at which a result was last read


@dataclass(frozen=True)
class RenderedResult:
    """A result in all forms: `json`, `csv` (None if it has no table), a fragment of `html`, and `notes`."""

    json: str
    csv: str | None
    html: str
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CachedResult:
    """A result with the place of the log for which it was computed, when that was, and how long it took."""

    verb: str
    answer: RenderedResult
    place: int
    created: float  # seconds since 1970
    seconds: float


class ResultCache:
    """A folder of cached results."""

    def __init__(self, folder: str, room: int = ROOM, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.room = room
        self.clock = clock
        os.makedirs(folder, mode=0o700, exist_ok=True)

    def _path(self, question: str) -> str:
        if not NAME.fullmatch(question):
            raise ValueError(question)
        return os.path.join(self.folder, question)

    def read(self, question: str) -> CachedResult | None:
        """The result of a question; None if there is none, or its file is damaged."""
        path = self._path(question)
        try:
            with open(path, "rb") as file:
                stat = os.fstat(file.fileno())
                head, _, body = file.read().partition(b"\n")
        except OSError:
            return None
        if hashlib.sha256(body).hexdigest().encode() != head:
            with suppress(OSError):
                os.unlink(path)
            return None
        if self.clock() - stat.st_mtime > FRESH:
            with suppress(OSError):
                os.utime(path, (self.clock(), self.clock()))
        fields = json.loads(body)
        return CachedResult(**{**fields, "answer": RenderedResult(**fields["answer"])})

    def write(self, question: str, cached: CachedResult) -> None:
        """Store a result in place of the one before; older results make room."""
        body = json.dumps(asdict(cached)).encode()
        head = hashlib.sha256(body).hexdigest().encode()
        write_bytes(self._path(question), [head, b"\n", body])
        self.sweep(question)

    def clear(self) -> None:
        """Remove every result."""
        for name in os.listdir(self.folder):
            with suppress(OSError):
                os.unlink(os.path.join(self.folder, name))

    def sweep(self, but: str = "") -> None:
        """Remove the oldest results until the others fit."""
        files = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if NAME.fullmatch(entry.name):
                        stat = entry.stat()
                        files.append((stat.st_mtime, stat.st_size, entry.name))
        left = sum(size for _, size, _ in files) - self.room
        for _, size, name in sorted(files):
            if left <= 0:
                return
            if name != but:
                with suppress(OSError):
                    os.unlink(os.path.join(self.folder, name))
                    left -= size
