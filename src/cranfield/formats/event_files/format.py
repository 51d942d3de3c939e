"""The base class of event log formats, the fields of an event, and the detection of a file's format.

A format is one class in a file of this folder; reading, writing, help and messages find it there.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from cranfield.base.errors import ConventionError, DataError, FormatError
from cranfield.base.optional_packages import needed
from cranfield.base.registry import Registered, Registry
from cranfield.formats.streams import COMPRESSED, lines, plain_ending

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FIELDS: dict[str, str] = {  # every field of an event and its SQL type
    "event_id": "VARCHAR",
    "time": "TIMESTAMP",
    "kind": "VARCHAR",
    "unit": "VARCHAR",
    "session": "VARCHAR",
    "search": "VARCHAR",
    "query": "VARCHAR",
    "shown": "VARCHAR[]",
    "credit": "VARCHAR",
    "document": "VARCHAR",
    "position": "INTEGER",
    "value": "DOUBLE",
    "experiment": "VARCHAR",
    "variant": "VARCHAR",
    "application": "VARCHAR",
    "attributes": "MAP(VARCHAR, VARCHAR)",
}
HEAD = 4096  # characters of the first line that decide


def arrow_schema() -> Any:
    """The fields as an Arrow schema: time is UTC to the microsecond, attributes are texts by name."""
    arrow = imported("pyarrow")
    types = {
        "VARCHAR": arrow.string(),
        "TIMESTAMP": arrow.timestamp("us", "UTC"),
        "VARCHAR[]": arrow.list_(arrow.string()),
        "INTEGER": arrow.int32(),
        "DOUBLE": arrow.float64(),
        "MAP(VARCHAR, VARCHAR)": arrow.map_(arrow.string(), arrow.string()),
    }
    return arrow.schema([(name, types[kind]) for name, kind in FIELDS.items()])


def imported(name: str) -> Any:
    """A module of the extra `online`; an error that names the extra if it is not installed."""
    return needed(name, "event logs need", "online")


@dataclass
class EventReading:
    """The reading of one file: its path, what the file itself does not say, and notes on it."""

    path: str
    time: str | None = None  # for the events of a format without times
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The file name without folder and compression, so that a compressed file gives the same ids."""
        stem, ending = os.path.splitext(os.path.basename(self.path))
        return stem if ending.lower() in COMPRESSED else stem + ending


def line_id(name: str, number: int, *more: str) -> str:
    """An id for an event without one: a hash of the file name, the line number and the line's content."""
    import hashlib

    return hashlib.sha256("\0".join([name, str(number), *more]).encode("utf-8", "surrogatepass")).hexdigest()[:32]


EVENT_FORMATS: Registry[type[EventFormat]] = Registry(
    "format of events", "event_formats", "cranfield.formats.event_files"
)


class EventFormat(Registered):
    """A format of event logs. The docstring of a subclass describes it."""

    registry = EVENT_FORMATS
    name: ClassVar[str]
    endings: ClassVar[tuple[str, ...]] = ()  # usual endings, for choosing how to write
    place: ClassVar[int] = 100  # specific formats are tried before general ones

    def begins(self, head: str) -> bool:
        """Whether a file with this first line may be in this format."""
        return False

    @abstractmethod
    def rows(self, reading: EventReading) -> Iterator[tuple[int, dict[str, Any]]]:
        """The events of a file with the names of FIELDS, each with its line or row number."""

    def write(self, rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
        """The bytes of a file with these events; ConventionError if the format cannot be written."""
        raise ConventionError(f"{self.name} is read, not written; there are {', '.join(writable())}")


def writable() -> list[str]:
    """The names of formats that can be written."""
    return [name for name, each in EVENT_FORMATS.items() if each.write is not EventFormat.write]


def event_format(path: str, name: str | None = None) -> EventFormat:
    """The format of that name, or the format detected from the start of the file."""
    if name is not None:
        return EVENT_FORMATS.named(name)
    if os.path.isdir(path):
        raise DataError(f"{path}: a folder; expected a file of events")
    head = _head(path)
    for each in sorted(EVENT_FORMATS.values(), key=lambda cls: cls.place):
        if each().begins(head):
            return each()
    names = ", ".join(EVENT_FORMATS)
    raise FormatError(f"{path}: no format of events is recognised in {head[:60]!r}; --from names one of {names}")


def format_to_write(path: str, name: str | None = None) -> EventFormat:
    """The format of that name, or by the file's ending; JSON lines by default."""
    if name is not None:
        return EVENT_FORMATS.named(name)
    ending = plain_ending(path)
    return next((each() for each in EVENT_FORMATS.values() if ending in each.endings), EVENT_FORMATS.named("jsonl"))


def _head(path: str) -> str:
    for line in lines(path):
        if line.strip():
            return line[:HEAD].decode("utf-8", "replace").strip()
    raise DataError(f"{path}: the file is empty; expected events")
