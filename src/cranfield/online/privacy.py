"""Who stands behind a log: pseudonyms at the door, erasure of a unit, retention.

Erasing rewrites every file that holds the unit, packed or waiting, each whole or not at all: a run that was interrupted is
run again. What cannot be reached, because another process is writing to it, is an error before anything is changed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Layout
from cranfield.answer import plain as plain_values
from cranfield.columns import counted
from cranfield.errors import DataError
from cranfield.formats.events.format import imported
from cranfield.formats.streams import reason
from cranfield.online.event import instant
from cranfield.online.log import write_part
from cranfield.online.segments import refuse_written_to, replace_file, segments_in, sync_folder, whole_lines
from cranfield.parameters import refuse_below

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from cranfield.answer import Part
    from cranfield.online.event import Event
    from cranfield.online.log import Log

LEAST_KEY = 16  # bytes
PERSONAL = ("user_id",)  # attributes that say who it is


class Pseudonyms:
    """Another name for every unit: a keyed hash (HMAC-SHA-256), the same for the same key, and unknown without it.

    >>> Pseudonyms(b"sixteen bytes or more").of("alice")[:8]
    '1f5c6a2a'
    """

    def __init__(self, key: bytes) -> None:
        if len(key) < LEAST_KEY:
            raise DataError(f"expected a key of {LEAST_KEY} bytes or more, found {len(key)}")
        self._key = key

    @classmethod
    def from_file(cls, path: str) -> Pseudonyms:
        """With the key that a file holds, less white space around it."""
        try:
            with open(path, "rb") as file:
                key = file.read().strip()
        except OSError as error:
            raise DataError(f"{path}: {reason(error)}") from error
        if len(key) < LEAST_KEY:
            raise DataError(f"{path}: expected a key of {LEAST_KEY} bytes or more, found {len(key)}")
        return cls(key)

    def of(self, unit: str) -> str:
        """The pseudonym of a unit, 64 hexadecimal digits."""
        return hmac.new(self._key, unit.encode(), hashlib.sha256).hexdigest()

    def event(self, event: Event) -> Event:
        """The event under its unit's pseudonym, and that of the user whom UBI names beside it."""
        attributes = event.attributes or {}
        users = {name: self.of(attributes[name]) for name in PERSONAL if name in attributes}
        return replace(event, unit=self.of(event.unit), attributes={**attributes, **users})


@dataclass(frozen=True)
class Erasure(Answer):
    """What was taken out of a log: events, the files and segments that were written again, and those that are gone."""

    what: str
    packed: int
    waiting: int
    rewritten: int
    removed: int
    segments: int
    days: tuple[str, ...]

    @property
    def events(self) -> int:
        """How many events are gone."""
        return self.packed + self.waiting

    def content(self, how: Layout) -> Iterable[Part]:
        if not self.events:
            yield f"No events {self.what} are in the log; nothing was changed."
            return
        span = f" of {self.days[0]}" if len(self.days) == 1 else f" of {self.days[0]} to {self.days[-1]}"
        yield (
            f"{counted(self.events, 'event')} {self.what} erased: {self.packed:,} in Parquet, "
            f"{self.waiting:,} in segments not yet packed."
        )
        yield (
            f"{counted(self.rewritten, 'file')} written again, {self.removed:,} removed{span}; "
            f"{counted(self.segments, 'segment')} written again."
        )

    def plain(self, how: Layout) -> dict[str, Any]:
        values: dict[str, Any] = {"events": self.events, **plain_values(self)}
        return values

    def notes(self, shell: bool = False) -> list[str]:
        if not self.events:
            return []
        return ["copies elsewhere (backups, exports, what a client still keeps to send again) are not reached"]


def erase(log: Log, units: Collection[str]) -> Erasure:
    """Take all events of these units out of a log."""
    wanted = set(units)
    arrow, compute = imported("pyarrow"), imported("pyarrow.compute")

    def stays(table: Any) -> Any:
        return compute.invert(compute.is_in(table["unit"], arrow.array(sorted(wanted), arrow.string())))

    return _rewrite(log, f"of {counted(len(wanted), 'unit')}", stays, lambda row: row["unit"] not in wanted)


def retain(log: Log, days: int, now: datetime) -> Erasure:
    """Take out all events of days before the one that was so many days ago."""
    refuse_below(1, days=days)
    first = instant(now - timedelta(days=days))[:10]

    def stays(table: Any) -> Any:
        moment = datetime.fromisoformat(f"{first}T00:00:00+00:00")
        return imported("pyarrow.compute").greater_equal(table["time"], moment)

    return _rewrite(log, f"older than {counted(days, 'day')}", stays, lambda row: row["time"][:10] >= first)


def _rewrite(log: Log, what: str, stays: Callable[[Any], Any], line_stays: Callable[[Any], bool]) -> Erasure:
    """Write files again without what is not to stay."""
    log.seal()
    if not os.path.isdir(log.segments):  # nothing was ever added
        return Erasure(what, 0, 0, 0, 0, 0, ())
    with log.alone():
        refuse_written_to(segments_in(log.segments))
        packed, rewritten, removed, days = 0, 0, 0, set()
        for day, files in log.parts().items():
            for path in files:
                gone, left = _rewrite_part(path, stays)
                packed += gone
                rewritten += bool(gone and left)
                removed += bool(gone and not left)
                days |= {day} if gone else set()
        waiting, segments = 0, 0
        for path in segments_in(log.segments):
            lines = whole_lines(path)
            kept = [line for line in lines if line_stays(json.loads(line))]
            if len(kept) < len(lines):
                _replace_segment(path, kept)
                waiting, segments = waiting + len(lines) - len(kept), segments + 1
                dropped = {*lines} - {*kept}
                days |= {json.loads(line)["time"][:10] for line in dropped}
        return Erasure(what, packed, waiting, rewritten, removed, segments, tuple(sorted(days)))


def _rewrite_part(path: str, stays: Callable[[Any], Any]) -> tuple[int, int]:
    """How many events of a Parquet file are gone, and how many are left."""
    parquet = imported("pyarrow.parquet")
    with parquet.ParquetFile(path) as file:
        looked_at = stays(file.read(columns=["unit", "time"]))
        left = int(imported("pyarrow.compute").sum(looked_at).as_py() or 0)
        gone = len(looked_at) - left
        table = file.read().filter(looked_at) if gone and left else None
    if table is not None:
        write_part(path, table)
    elif gone:
        os.unlink(path)
        sync_folder(os.path.dirname(path))
    return gone, left


def _replace_segment(path: str, lines: list[bytes]) -> None:
    replace_file(path, lambda file: file.write(b"".join(line + b"\n" for line in lines)))
