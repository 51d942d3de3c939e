"""The files of an event log: segments of JSON lines, and the manifest of the Parquet files.

Segments hold events that are synced to disk and wait for compaction. A writer appends to its own locked segment, never to
one of another writer. A killed process therefore leaves whole lines and at most one torn line at the end, which was never
confirmed.

The manifest lists the Parquet files of each day with their number of events and their hashes. Every reader checks the
files against it, so a missing, cut, changed or foreign file is an error. Files change in three steps: the manifest names
the future content, the files are moved into place, the manifest names the new content alone. Between the first and the
last step both contents are valid; a kill at any point leaves a readable log.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple, TypeVar

from cranfield.base.errors import DataError, UnavailableError
from cranfield.base.parameters import shortened
from cranfield.base.schemas import Between, Text, read_json
from cranfield.base.text_layout import counted
from cranfield.formats.event_files.format import imported
from cranfield.formats.frames import arrow_in_words
from cranfield.formats.streams import name_beside, reason, replacement, sync_folder, synced_file, write_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from io import FileIO


FOLDER = "segments"
ENDING = ".jsonl"
ROLL = 64_000_000  # bytes after which a writer begins another segment


class SegmentWriter:
    """Appends lines to a segment, and returns when they are on disk. Not thread-safe."""

    def __init__(self, folder: str, roll: int = ROLL) -> None:
        self.folder = folder
        self.roll = roll
        self._file: FileIO | None = None
        self._path = ""
        self._size = 0

    def append(self, lines: Sequence[bytes]) -> None:
        """Append lines, each with its end, and sync once; on UnavailableError none of them is stored."""
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
                f"{self._path}: {len(lines):,} events cannot be written: {reason(error)}; none of them is stored"
            ) from error
        self._size += len(data)
        if self._size >= self.roll:
            self.seal()

    def seal(self) -> None:
        """Seal the segment, so that it can be compacted; the next event begins another."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> FileIO:
        if self._file is None:
            name = f"{time.time_ns():016x}-{os.getpid()}{ENDING}"
            path = os.path.join(self.folder, name)
            beside = name_beside(path)  # a hidden name until the file is locked
            with write_errors(path, UnavailableError):
                number = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY, 0o666)
                file = os.fdopen(number, "ab", buffering=0)
                lock_file(file)
                os.rename(beside, path)
                sync_folder(self.folder)
            self._file, self._path, self._size = file, path, 0
        return self._file

    def _cut_back(self, file: FileIO) -> None:
        """Remove partly written lines; if even that fails, seal the segment."""
        try:
            os.ftruncate(file.fileno(), self._size)
            os.fdatasync(file.fileno())
        except OSError:
            self.seal()


def start_of_segment(path: str) -> datetime | None:
    """When a segment (or the Parquet file made from it) was begun, by its name; None for other names."""
    begun = re.match(r"[0-9a-f]{16}(?=[-.])", os.path.basename(path))
    return None if begun is None else datetime.fromtimestamp(int(begun[0], 16) / 1e9, UTC)


def lock_file(file: BinaryIO | FileIO) -> bool:
    """Lock a file until it is closed; False if another process holds the lock."""
    import fcntl

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def exclusive_lock(path: str) -> Iterator[None]:
    """Wait for the lock on a path, and hold it."""
    import fcntl

    with open(path, "ab") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield


def segments_in(folder: str) -> list[str]:
    """The segments in a folder, the oldest first."""
    there = os.listdir(folder) if os.path.isdir(folder) else []
    names = sorted(name for name in there if name.endswith(ENDING) and not name.startswith("."))
    return [os.path.join(folder, name) for name in names]


def is_open_segment(path: str) -> bool:
    """Whether a writer still holds a segment."""
    with open(path, "rb") as file:
        return not lock_file(file)


def whole_lines(path: str) -> list[bytes]:
    """The complete lines of a segment, without their ends; a torn last line is dropped."""
    with open(path, "rb") as file:
        *lines, _torn = file.read().split(b"\n")
    return lines


def replace_file(path: str, content: bytes, mode: int | None = None) -> None:
    """Replace a file of a log; its bytes and its name are on disk afterwards. UnavailableError if that fails.

    `mode` are its permissions, if they differ from the usual ones.
    """
    with replacement(path, refusal=UnavailableError) as beside, synced_file(beside) as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        file.write(content)
    with write_errors(path, UnavailableError):
        sync_folder(os.path.dirname(path))


def refuse_open_segments(paths: Sequence[str]) -> None:
    """Raise DataError if a process still writes to a segment, as its later events would be missed."""
    for path in paths:
        if is_open_segment(path):
            raise DataError(
                f"{path}: another process is writing to it, so not all events can be reached; "
                "stop it, or try again when the segment is compacted"
            )


T = TypeVar("T")

MANIFEST = "manifest.json"
VERSION = 1
DAY = "day="


class FileContent(NamedTuple):
    """The number of events and bytes of a Parquet file, and its SHA-256."""

    events: Annotated[int, Between(0)]
    bytes: Annotated[int, Between(0)]
    sha256: Text


@dataclass(frozen=True)
class DayTable:
    """A day of manifest.json."""

    events: Annotated[int, Between(0)]
    files: dict[Text, FileContent]


@dataclass(frozen=True)
class ManifestTable:
    """All keys of manifest.json."""

    manifest: Annotated[int, Between(VERSION, VERSION)]
    days: dict[Text, DayTable]
    changing: dict[Text, FileContent | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """The content of each file by its path in the log; for files being changed, also the future content (None: removed)."""

    files: Mapping[str, FileContent] = field(default_factory=dict)
    changing: Mapping[str, FileContent | None] = field(default_factory=dict)

    def allowed(self, path: str) -> list[FileContent | None]:
        """The valid contents of a file; None in the list means that the file may be missing."""
        return [self.files.get(path), *([self.changing[path]] if path in self.changing else [])]

    def after(self, changes: Mapping[str, FileContent | None]) -> Manifest:
        """The manifest after files have changed."""
        files = {**self.files, **changes}
        return Manifest({path: content for path, content in files.items() if content is not None})

    def text(self) -> str:
        """The manifest as JSON, by day."""
        days: dict[str, Any] = {}
        for path, content in sorted(self.files.items()):
            folder, name = path.split("/", 1)
            day = days.setdefault(folder.removeprefix(DAY), {"events": 0, "files": {}})
            day["events"] += content.events
            day["files"][name] = content._asdict()
        changing = {path: content and content._asdict() for path, content in sorted(self.changing.items())}
        content_by_key = {"manifest": VERSION, "days": days, **({"changing": changing} if changing else {})}
        return json.dumps(content_by_key, ensure_ascii=False, indent=1) + "\n"


def read_stored(path: str, shape: type[T], advice: str) -> T | None:
    """The content of a JSON file of a log, or None if it is missing; errors end with `advice`."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {reason(error)}") from error
    except ValueError:
        raise DataError(f"{path}: expected utf-8; {advice}") from None
    try:
        return read_json(text, shape, path)
    except DataError as error:
        raise DataError(f"{error}; {advice}") from None


def read_manifest(folder: str) -> Manifest | None:
    """The manifest of a log; None if it has none, as in logs of earlier versions."""
    path = os.path.join(folder, MANIFEST)
    table = read_stored(path, ManifestTable, _advice(folder))
    if table is None:
        return None
    files: dict[str, FileContent] = {}
    for day, about in table.days.items():
        events = sum(content.events for content in about.files.values())
        if events != about.events:
            expected = f"expected as many events of {shortened(day)} as its files hold, {events:,}"
            raise DataError(f"{path}: {expected}, found {about.events:,}; {_advice(folder)}")
        files |= {f"{DAY}{day}/{name}": content for name, content in about.files.items()}
    return Manifest(files, table.changing)


def write_manifest(folder: str, manifest: Manifest) -> None:
    """Replace the manifest of a log atomically."""
    replace_file(os.path.join(folder, MANIFEST), manifest.text().encode())


def manifest_paths(folder: str, paths: Iterable[str]) -> list[str]:
    """Paths relative to the log, as the manifest writes them."""
    return [os.path.relpath(path, folder).replace(os.sep, "/") for path in paths]


class ManifestChecker:
    """Checks the files of a log against its manifest. Hashes are cached; a file that changed is hashed again."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._hashes: dict[str, tuple[tuple[int, int, int], str]] = {}

    def refuse_other(self, manifest: Manifest, there: Sequence[str], quick: bool = False) -> list[str]:
        """The files of `there` that still exist; DataError if one differs from the manifest.

        `quick` compares sizes only.
        """
        present = [path for path in there if self._refuse_changed(manifest, path, quick)]
        existing = {*there}
        for path in manifest.files:
            if path not in existing and None not in manifest.allowed(path):
                self._refuse(manifest, path, "is missing")
        return present

    def _refuse_changed(self, manifest: Manifest, path: str, quick: bool) -> bool:
        """Whether a file still exists; DataError if it is not in the manifest, is missing, or was changed."""
        allowed = manifest.allowed(path)
        if allowed == [None]:
            raise DataError(
                f"{os.path.join(self.folder, path)}: is not in the manifest of the log, so another program put it there; "
                "take it out of the folder, and add its events with cranfield online ingest"
            )
        size = self.size(path)
        if size is None:
            if None not in allowed:
                self._refuse(manifest, path, "is missing")
            return False
        fitting = [each for each in allowed if each is not None and each.bytes == size]
        if not fitting:
            before = next(each for each in allowed if each is not None)
            how = "was cut" if size < before.bytes else "was changed"
            self._refuse(manifest, path, f"{how}: it has {size:,} bytes, and was written with {before.bytes:,}")
        if quick:
            return True
        # The size was read a moment earlier: the file may have been replaced or removed since then.
        digest = self.hash(path)
        if digest is None and None in allowed:
            return False
        if digest not in [each.sha256 for each in allowed if each is not None]:
            self._refuse(manifest, path, "was changed after it was written: its hash is another")
        return True

    def _refuse(self, manifest: Manifest, path: str, how: str) -> None:
        content = next(each for each in manifest.allowed(path) if each is not None)
        where = os.path.join(self.folder, path)
        raise DataError(f"{where}: {how} ({counted(content.events, 'event')}); {_advice(self.folder)}")

    def size(self, path: str) -> int | None:
        """The size of a file in bytes; None if it is missing."""
        try:
            return os.stat(os.path.join(self.folder, path)).st_size
        except FileNotFoundError:
            return None

    def hash(self, path: str) -> str | None:
        """The SHA-256 of a file; None if it is missing."""
        where = os.path.join(self.folder, path)
        try:
            with open(where, "rb") as file:
                about = os.fstat(file.fileno())
                mark = (about.st_ino, about.st_size, about.st_mtime_ns)
                cached = self._hashes.get(path)
                if cached is None or cached[0] != mark:
                    cached = mark, hashlib.file_digest(file, "sha256").hexdigest()
                    self._hashes[path] = cached
                return cached[1]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DataError(f"{where}: cannot be read: {reason(error)}") from error

    def content(self, path: str) -> FileContent:
        """The content of a file that no manifest lists yet; DataError if it is not a complete Parquet file."""
        where = os.path.join(self.folder, path)
        with arrow_in_words(where):
            events = imported("pyarrow.parquet").read_metadata(where).num_rows
        return FileContent(events, self.size(path) or 0, self.hash(path) or "")

    def settled(self, manifest: Manifest) -> Manifest:
        """The manifest after an interrupted change: each file has either its old or its future content."""
        return manifest.after(
            {
                path: after
                for path, after in manifest.changing.items()
                if self.hash(path) == (None if after is None else after.sha256)
            }
        )


def _advice(folder: str) -> str:
    path = os.path.join(folder, MANIFEST)
    return f"restore it from a copy, or remove {path} to go on with the files that are there"
