"""The manifest of a log: the Parquet files of each day, how many events each holds, and the hash of each.

Every reader holds the files against it, so that one that is missing, cut, changed or another's is an error. Files change in
three steps: the manifest says what they are about to be, the files are moved into place, the manifest says what they are.
Between the first and the last step either content is right; a kill at any point leaves a log that reads.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from cranfield.columns import counted
from cranfield.errors import DataError
from cranfield.formats.arrow import arrow_in_words
from cranfield.formats.events.format import imported
from cranfield.formats.streams import reason
from cranfield.online.segments import replace_file
from cranfield.parameters import shortened
from cranfield.shapes import Between, Text, read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

T = TypeVar("T")

MANIFEST = "manifest.json"
VERSION = 1
DAY = "day="


class Content(NamedTuple):
    """What a Parquet file holds: so many events in so many bytes of this hash (SHA-256)."""

    events: Annotated[int, Between(0)]
    bytes: Annotated[int, Between(0)]
    sha256: Text


@dataclass(frozen=True)
class DayTable:
    """A day of manifest.json."""

    events: Annotated[int, Between(0)]
    files: dict[Text, Content]


@dataclass(frozen=True)
class ManifestTable:
    """All that manifest.json may say."""

    manifest: Annotated[int, Between(VERSION, VERSION)]
    days: dict[Text, DayTable]
    changing: dict[Text, Content | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """The content of each file by its path within the log; of those that are being changed, what they will be (None: gone)."""

    files: Mapping[str, Content] = field(default_factory=dict)
    changing: Mapping[str, Content | None] = field(default_factory=dict)

    def allowed(self, path: str) -> list[Content | None]:
        """What a file may be; None: it may be missing."""
        return [self.files.get(path), *([self.changing[path]] if path in self.changing else [])]

    def about_to(self, changes: Mapping[str, Content | None]) -> Manifest:
        """While files change."""
        return replace(self, changing=changes)

    def after(self, changes: Mapping[str, Content | None]) -> Manifest:
        """When they have changed."""
        files = {**self.files, **changes}
        return Manifest({path: content for path, content in files.items() if content is not None})

    def text(self) -> str:
        """As JSON, by day."""
        days: dict[str, Any] = {}
        for path, content in sorted(self.files.items()):
            folder, name = path.split("/", 1)
            day = days.setdefault(folder.removeprefix(DAY), {"events": 0, "files": {}})
            day["events"] += content.events
            day["files"][name] = content._asdict()
        changing = {path: content and content._asdict() for path, content in sorted(self.changing.items())}
        told = {"manifest": VERSION, "days": days, **({"changing": changing} if changing else {})}
        return json.dumps(told, ensure_ascii=False, indent=1) + "\n"


def read_stored(path: str, shape: type[T], advice: str) -> T | None:
    """The table in a JSON file of a log, or None if there is no such file; an error ends with what to do."""
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
    """The manifest of a log; None where there is none, as in logs of before."""
    path = os.path.join(folder, MANIFEST)
    table = read_stored(path, ManifestTable, _advice(folder))
    if table is None:
        return None
    for day, about in table.days.items():
        events = sum(content.events for content in about.files.values())
        if events != about.events:
            told = f"expected as many events of {shortened(day)} as its files hold, {events:,}, found {about.events:,}"
            raise DataError(f"{path}: {told}; {_advice(folder)}")
    files = {
        f"{DAY}{day}/{name}": content for day, about in table.days.items() for name, content in about.files.items()
    }
    return Manifest(files, table.changing)


def write_manifest(folder: str, manifest: Manifest) -> None:
    """Write it whole, or leave the one that is there."""
    replace_file(os.path.join(folder, MANIFEST), lambda file: file.write(manifest.text().encode()))


def listed(folder: str, paths: Iterable[str]) -> list[str]:
    """Paths of files as the manifest has them."""
    return [os.path.relpath(path, folder).replace(os.sep, "/") for path in paths]


class Checker:
    """Holds the files of a log against its manifest. A file is read once, and again where it was written since."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._hashes: dict[str, tuple[tuple[int, int, int], str]] = {}

    def refuse_other(self, manifest: Manifest, there: Sequence[str], quick: bool = False) -> list[str]:
        """Of the files that are there, those that still are; DataError where one is not as the manifest has it.

        `quick` looks at the sizes alone.
        """
        present = []
        for path in there:
            content = self._refuse_changed(manifest, path, quick)
            if content is not None:
                present.append(path)
        known = {*there}
        for path in manifest.files:
            if path not in known and None not in manifest.allowed(path):
                self._refuse(manifest, path, "is missing")
        return present

    def _refuse_changed(self, manifest: Manifest, path: str, quick: bool) -> Content | None:
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
            return None
        fitting = [each for each in allowed if each is not None and each.bytes == size]
        if not fitting:
            before = next(each for each in allowed if each is not None)
            how = "was cut" if size < before.bytes else "was changed"
            self._refuse(manifest, path, f"{how}: it has {size:,} bytes, and was written with {before.bytes:,}")
        if quick:
            return fitting[0]
        found = self.hash(path)
        same = next((each for each in fitting if each.sha256 == found), None)
        if same is None:
            self._refuse(manifest, path, "was changed after it was written: its hash is another")
        return same

    def _refuse(self, manifest: Manifest, path: str, how: str) -> None:
        content = next(each for each in manifest.allowed(path) if each is not None)
        where = os.path.join(self.folder, path)
        raise DataError(f"{where}: {how} ({counted(content.events, 'event')}); {_advice(self.folder)}")

    def size(self, path: str) -> int | None:
        """How many bytes a file has; None where there is none."""
        try:
            return os.stat(os.path.join(self.folder, path)).st_size
        except FileNotFoundError:
            return None

    def hash(self, path: str) -> str | None:
        """The hash of a file; None where there is none."""
        where = os.path.join(self.folder, path)
        try:
            with open(where, "rb") as file:
                about = os.fstat(file.fileno())
                mark = (about.st_ino, about.st_size, about.st_mtime_ns)
                known = self._hashes.get(path)
                if known is None or known[0] != mark:
                    known = mark, hashlib.file_digest(file, "sha256").hexdigest()
                    self._hashes[path] = known
                return known[1]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DataError(f"{where}: cannot be read: {reason(error)}") from error

    def content(self, path: str) -> Content:
        """What a file of a log of before holds; DataError where it is no whole Parquet file."""
        where = os.path.join(self.folder, path)
        with arrow_in_words(where):
            events = imported("pyarrow.parquet").read_metadata(where).num_rows
        return Content(events, self.size(path) or 0, self.hash(path) or "")

    def settled(self, manifest: Manifest) -> Manifest:
        """The manifest after a change that a kill interrupted: each file is what it was, or what it was to be."""
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
