"""What a format of an event log is, the fields that every event has, and which format a file is in.

A format is one class in a file of this folder; reading, writing, help and messages find it there.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from cranfield.errors import ConventionError, DataError, FormatError
from cranfield.extras import needed
from cranfield.formats.streams import lines, plain_ending
from cranfield.registry import Registered, Registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FIELDS: dict[str, str] = {  # every field of an event, and what SQL calls its type
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
    """A module of the extra `online`; a sentence where it is not installed."""
    return needed(name, "event logs need", "online")


@dataclass
class Reading:
    """A file that is read: where, what it does not say itself, and what there is to know of it when it has been read."""

    path: str
    time: str | None = None  # of events in a format that has none
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The file's name without folder and packing, so that a packed file gives the same ids."""
        base = os.path.basename(self.path)
        return base[: -len(os.path.splitext(base)[1])] if plain_ending(base) != _ending(base) else base


def _ending(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def line_id(name: str, number: int, *more: str) -> str:
    """An id for an event that has none: a hash of the file's name, the line's number and what stands there."""
    import hashlib

    return hashlib.sha256("\0".join([name, str(number), *more]).encode("utf-8", "surrogatepass")).hexdigest()[:32]


EVENT_FORMATS: Registry[EventFormat] = Registry("format of events", "cranfield.formats.events")


class EventFormat(Registered):
    """A way of writing events down. The docstring of a subclass says what it is."""

    registry = EVENT_FORMATS
    name: ClassVar[str]
    endings: ClassVar[tuple[str, ...]] = ()  # usual endings, for choosing how to write
    place: ClassVar[int] = 100  # the particular are asked before the general

    def begins(self, head: str) -> bool:
        """Whether a file whose first line this is may be in it."""
        return False

    @abstractmethod
    def rows(self, reading: Reading) -> Iterator[tuple[int, dict[str, Any]]]:
        """The events of a file under the names of FIELDS, each with the number of its line or row."""

    def write(self, rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
        """The bytes of a file that holds these events; ConventionError where it is only read."""
        raise ConventionError(f"{self.name} is read, not written; there are {', '.join(writable())}")


def writable() -> list[str]:
    """The names of formats that can be written."""
    return [name for name, each in EVENT_FORMATS.items() if each.write is not EventFormat.write]


def event_format(path: str, name: str | None = None) -> EventFormat:
    """The format of that name, or the one that a file begins like."""
    if name is not None:
        return EVENT_FORMATS.named(name)
    if os.path.isdir(path):
        raise DataError(f"{path}: a folder; expected a file of events")
    head = _head(path)
    for each in sorted(EVENT_FORMATS.values(), key=lambda cls: cls.place):
        if each().begins(head):
            return each()
    known = ", ".join(EVENT_FORMATS)
    raise FormatError(f"{path}: no format of events is recognised in {head[:60]!r}; --from names one of {known}")


def format_to_write(path: str, name: str | None = None) -> EventFormat:
    """The format of that name, or by the file's ending; JSON lines where that says nothing."""
    if name is not None:
        return EVENT_FORMATS.named(name)
    ending = plain_ending(path)
    return next((each() for each in EVENT_FORMATS.values() if ending in each.endings), EVENT_FORMATS.named("jsonl"))


def _head(path: str) -> str:
    for line in lines(path):
        if line.strip():
            return line[:HEAD].decode("utf-8", "replace").strip()
    raise DataError(f"{path}: the file is empty; expected events")
