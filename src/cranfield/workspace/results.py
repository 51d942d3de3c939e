"""Answers kept on disk by the hash of their question, each whole or not there.

A file is a line with the hash of the rest, then JSON. What does not fit its hash is taken for absent and removed. All
together take no more than so many bytes: those that nobody has asked for the longest go first.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from cranfield.formats.streams import write_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

ROOM = 256 << 20  # bytes
NAME = re.compile(r"[0-9a-f]{64}")
FRESH = 3600.0  # seconds for which a look at a file need not be noted


@dataclass(frozen=True)
class Result:
    """An answer in every form that a page has: `json`, `csv` (None where it is no table), a fragment of `html`, `notes`."""

    json: str
    csv: str | None
    html: str
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Kept:
    """A result with the place of the log that it is of, and when and how long it was worked out."""

    verb: str
    answer: Result
    place: int
    made: float  # seconds since 1970
    seconds: float


class Results:
    """A folder of results."""

    def __init__(self, folder: str, room: int = ROOM, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.room = room
        self.clock = clock
        os.makedirs(folder, mode=0o700, exist_ok=True)

    def _path(self, question: str) -> str:
        if not NAME.fullmatch(question):
            raise ValueError(question)
        return os.path.join(self.folder, question)

    def read(self, question: str) -> Kept | None:
        """The result of a question; None where there is none that can be trusted."""
        path = self._path(question)
        try:
            with open(path, "rb") as file:
                known = os.fstat(file.fileno())
                head, _, body = file.read().partition(b"\n")
        except OSError:
            return None
        if hashlib.sha256(body).hexdigest().encode() != head:
            with suppress(OSError):
                os.unlink(path)
            return None
        if self.clock() - known.st_mtime > FRESH:
            with suppress(OSError):
                os.utime(path, (self.clock(), self.clock()))
        fields = json.loads(body)
        return Kept(**{**fields, "answer": Result(**fields["answer"])})

    def write(self, question: str, kept: Kept) -> None:
        """Keep a result, in place of the one before; older ones make room."""
        body = json.dumps(asdict(kept)).encode()
        head = hashlib.sha256(body).hexdigest().encode()
        write_bytes(self._path(question), [head, b"\n", body])
        self.sweep(question)

    def sweep(self, but: str = "") -> None:
        """Remove the oldest until the others have room."""
        files = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if NAME.fullmatch(entry.name):
                        known = entry.stat()
                        files.append((known.st_mtime, known.st_size, entry.name))
        left = sum(size for _, size, _ in files) - self.room
        for _, size, name in sorted(files):
            if left <= 0:
                return
            if name != but:
                with suppress(OSError):
                    os.unlink(os.path.join(self.folder, name))
                    left -= size
