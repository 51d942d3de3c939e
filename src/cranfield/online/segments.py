"""Segments: files of JSON lines in which events wait, synced to disk, to be packed into the days of a log.

A writer appends to a segment of its own, which it keeps locked, and never to one that another has left: whatever a
killed process left behind is whole lines and at most one torn line at the end, which nobody was told is kept.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO

from cranfield.errors import DataError, UnavailableError
from cranfield.formats.streams import name_beside, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import FileIO

FOLDER = "segments"
ENDING = ".jsonl"
ROLL = 64_000_000  # bytes at which a writer begins another segment


class Writer:
    """Appends lines to a segment, and returns when they are on disk. One thread at a time may use it."""

    def __init__(self, folder: str, roll: int = ROLL) -> None:
        self.folder = folder
        self.roll = roll
        self._file: FileIO | None = None
        self._path = ""
        self._size = 0

    def append(self, lines: Sequence[bytes]) -> None:
        """Add lines, each with its end, and sync once; UnavailableError where they do not fit, and none of them is kept."""
        if not lines:
            return
        file = self._opened()
        data = b"".join(lines)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file.fileno(), view) :]
            os.fdatasync(file.fileno())
        except OSError as error:
            self._cut_back(file)
            raise UnavailableError(
                f"{self._path}: {len(lines):,} events cannot be written: {reason(error)}; none of them is kept"
            ) from error
        self._size += len(data)
        if self._size >= self.roll:
            self.seal()

    def seal(self) -> None:
        """End the segment, so that it can be packed; the next event begins another."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> FileIO:
        if self._file is None:
            name = f"{time.time_ns():016x}-{os.getpid()}{ENDING}"
            path = os.path.join(self.folder, name)
            beside = name_beside(path)  # hidden until it is locked
            try:
                number = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY, 0o666)
                file = os.fdopen(number, "ab", buffering=0)
                locked(file)
                os.rename(beside, path)
                sync_folder(self.folder)
            except OSError as error:
                raise UnavailableError(f"{path}: cannot be written: {reason(error)}") from error
            self._file, self._path, self._size = file, path, 0
        return self._file

    def _cut_back(self, file: FileIO) -> None:
        """Take back what was written of lines that did not fit; where even that fails, nothing more goes into the file."""
        try:
            os.ftruncate(file.fileno(), self._size)
            os.fdatasync(file.fileno())
        except OSError:
            self.seal()


def begun_at(path: str) -> datetime | None:
    """When a segment was begun, by its name, or that of a part that was packed from it; None of a file of another name."""
    begun = re.match(r"[0-9a-f]{16}(?=[-.])", os.path.basename(path))
    return None if begun is None else datetime.fromtimestamp(int(begun[0], 16) / 1e9, UTC)


def locked(file: BinaryIO | FileIO) -> bool:
    """Lock a file until it is closed; False where another has it."""
    import fcntl

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def alone(path: str) -> Iterator[None]:
    """Wait until nobody else holds this lock, and hold it."""
    import fcntl

    with open(path, "ab") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield


def segments_in(folder: str) -> list[str]:
    """The segments there are, the oldest first."""
    there = os.listdir(folder) if os.path.isdir(folder) else []
    names = sorted(name for name in there if name.endswith(ENDING) and not name.startswith("."))
    return [os.path.join(folder, name) for name in names]


def is_written_to(path: str) -> bool:
    """Whether a writer still has a segment."""
    with open(path, "rb") as file:
        return not locked(file)


def whole_lines(path: str) -> list[bytes]:
    """The lines of a segment without their ends; one that a killed writer left torn is none."""
    with open(path, "rb") as file:
        *lines, _torn = file.read().split(b"\n")
    return lines


def sync_folder(folder: str) -> None:
    """Let names in a folder be on disk as well."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def replace_file(path: str, write: Callable[[BinaryIO], object]) -> None:
    """Write a file whole and move it into its place, synced; UnavailableError where it cannot be, and all is as it was."""
    beside = name_beside(path)
    try:
        with open(beside, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        sync_folder(os.path.dirname(path))
    except OSError as error:
        with suppress(OSError):
            os.unlink(beside)
        raise UnavailableError(f"{path}: cannot be written: {reason(error)}") from error


def refuse_written_to(paths: Sequence[str]) -> None:
    """Stop where a segment is still written to: what must be complete cannot leave it out."""
    for path in paths:
        if is_written_to(path):
            raise DataError(
                f"{path}: another process is writing to it, so not all events can be reached; "
                "stop it, or try again when the segment is packed"
            )
