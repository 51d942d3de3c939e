"""Privacy of an event log: pseudonyms for incoming units, erasure of units, retention.

Erasure rewrites every file with events of the unit, Parquet or segment, each atomically; after an interruption, run it again. If
another process writes to a segment, erasure stops with an error before anything is changed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from cranfield.base.errors import DataError, UnavailableError
from cranfield.base.notifications import say
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Answer, Layout
from cranfield.base.results import plain as plain_values
from cranfield.base.schemas import OneOf
from cranfield.base.text_layout import counted
from cranfield.experiments.event import UserEvent, instant
from cranfield.experiments.log_files import read_stored, refuse_open_segments, replace_file, segments_in, whole_lines
from cranfield.formats.event_files.format import imported
from cranfield.formats.frames import arrow_in_words
from cranfield.formats.streams import read_secret, sync_folder, synced_file, unfinished, write_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from cranfield.base.results import Part
    from cranfield.experiments.log import EventLog

LEAST_KEY = 16  # bytes
UNITS = "units.json"  # in a log: whether its units are pseudonyms, and the fingerprint of their key
CONSTANT = b"\0cranfield: the fingerprint of a key\0"  # no unit has this name
PSEUDONYM = re.compile("[0-9a-f]{64}")
PERSONAL = ("user_id",)  # attributes that identify a person
PLAIN_UNITS, HIDDEN_UNITS = "plain", "pseudonyms"


@dataclass(frozen=True)
class UnitsTable:
    """All keys of units.json."""

    units: Annotated[str, OneOf((PLAIN_UNITS, HIDDEN_UNITS))]
    fingerprint: str


class Pseudonyms:
    """Pseudonyms of units: a keyed hash (HMAC-SHA-256), the same for the same key, and not computable without it.

    >>> Pseudonyms(b"sixteen bytes or more").of("alice")[:8]
    '1f5c6a2a'
    """

    def __init__(self, key: bytes, path: str = "") -> None:
        if len(key) < LEAST_KEY:
            where = f"{path}: " if path else ""
            raise DataError(f"{where}expected a key of {LEAST_KEY} bytes or more, found {len(key)}")
        self._key = key

    @classmethod
    def from_file(cls, path: str) -> Pseudonyms:
        """Pseudonyms by the key in a file, without white space around it; the file must be readable by its owner alone."""
        return cls(read_secret(path).strip(), path)

    def of(self, unit: str) -> str:
        """The pseudonym of a unit, 64 hexadecimal digits."""
        return hmac.new(self._key, unit.encode(), hashlib.sha256).hexdigest()

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the key, which reveals neither the key nor a pseudonym."""
        return hmac.new(self._key, CONSTANT, hashlib.sha256).hexdigest()[:32]

    def event(self, event: UserEvent) -> UserEvent:
        """The event with pseudonyms for its unit and for the attribute `user_id` of UBI."""
        attributes = event.attributes or {}
        users = {name: self.of(attributes[name]) for name in PERSONAL if name in attributes}
        return replace(event, unit=self.of(event.unit), attributes={**attributes, **users})


def agree_on_units(log: EventLog, pseudonyms: Pseudonyms | None) -> None:
    """Refuse a key other than the log's before events are added. The first writer decides which key, or that there is none.

    A log of an earlier version has no recorded key; it records the first key that is used.
    """
    if _fingerprint_in(log) is None:
        before = bool(log.parts() or segments_in(log.segments))
        if before and pseudonyms is None:
            return
        if before:
            say([f"{log.folder}: the key of earlier events is not recorded; from now on only this key is accepted"])
        _record_key(log, pseudonyms)
    refuse_other_key(log, pseudonyms)


def refuse_other_key(log: EventLog, pseudonyms: Pseudonyms | None) -> None:
    """Raise DataError if the log's units have pseudonyms by another key, or if only one side uses pseudonyms."""
    recorded = _fingerprint_in(log)
    if recorded is None or recorded == _fingerprint(pseudonyms):
        return
    if pseudonyms is None:
        problem = "its units are pseudonyms: give their key (--pseudonym-key FILE)"
    elif recorded:
        problem = "its units are pseudonyms by another key: give that one, or begin another log"
    else:
        no_key = "its units have no pseudonyms, and a key would split each unit in two"
        problem = f"{no_key}: give none, or begin another log"
    raise DataError(f"{log.folder}: {problem}; nothing was changed")


def _fingerprint(pseudonyms: Pseudonyms | None) -> str:
    return "" if pseudonyms is None else pseudonyms.fingerprint


def _fingerprint_in(log: EventLog) -> str | None:
    """The fingerprint of the log's key; empty if its units have no pseudonyms, None if it is not recorded."""
    path, advice = os.path.join(log.folder, UNITS), "restore it from a copy"
    table = read_stored(path, UnitsTable, advice)
    if table is None:
        return None
    if (table.units == PLAIN_UNITS) != (table.fingerprint == ""):
        raise DataError(f"{path}: expected the fingerprint of a key with units = {HIDDEN_UNITS!r} alone; {advice}")
    return table.fingerprint


def _record_key(log: EventLog, pseudonyms: Pseudonyms | None) -> None:
    """Record the key's fingerprint, or that there is none; if two processes do so at once, the first wins."""
    path = os.path.join(log.folder, UNITS)
    record = {"units": PLAIN_UNITS if pseudonyms is None else HIDDEN_UNITS, "fingerprint": _fingerprint(pseudonyms)}
    log.make()
    with write_errors(path, UnavailableError), unfinished(path) as beside:
        with synced_file(beside) as file:
            file.write(f"{json.dumps(record)}\n".encode())
        with suppress(FileExistsError):
            os.link(beside, path)
        sync_folder(log.folder)


@dataclass(frozen=True)
class Erasure(Answer):
    """The result of an erasure: the erased events, the rewritten files and segments, the removed files."""

    what: str
    packed: int
    waiting: int
    rewritten: int
    removed: int
    segments: int
    days: tuple[str, ...]

    @property
    def events(self) -> int:
        """The number of erased events."""
        return self.packed + self.waiting

    def content(self, how: Layout) -> Iterable[Part]:
        if not self.events:
            yield f"No events {self.what} are in the log; nothing was changed."
            return
        span = f" of {self.days[0]}" if len(self.days) == 1 else f" of {self.days[0]} to {self.days[-1]}"
        yield (
            f"{counted(self.events, 'event')} {self.what} erased: {self.packed:,} in Parquet, "
            f"{self.waiting:,} in segments not yet compacted."
        )
        yield (
            f"{counted(self.rewritten, 'file')} written again, {self.removed:,} removed{span}; "
            f"{counted(self.segments, 'segment')} written again."
        )

    def plain(self, how: Layout) -> Any:
        return {"events": self.events, **plain_values(self)}

    def notes(self, shell: bool = False) -> list[str]:
        if not self.events:
            return []
        return ["copies elsewhere (backups, exports, events that a client will send again) are not erased"]


def erase(log: EventLog, units: Collection[str], pseudonyms: Pseudonyms | None = None) -> Erasure:
    """Erase all events of these units from a log; without a key, `units` may be pseudonyms."""
    if pseudonyms is not None or not all(map(PSEUDONYM.fullmatch, units)):
        refuse_other_key(log, pseudonyms)
    unknown = pseudonyms is not None and _fingerprint_in(log) is None
    names = {*units} if pseudonyms is None else {pseudonyms.of(unit) for unit in units}

    def stays(table: Any) -> Any:
        arrow, compute = imported("pyarrow"), imported("pyarrow.compute")
        return compute.invert(compute.is_in(table["unit"], arrow.array(sorted(names), arrow.string())))

    erasure = _rewrite(log, f"of {counted(len(names), 'unit')}", stays, lambda row: row["unit"] not in names)
    if unknown and erasure.events:
        _record_key(log, pseudonyms)
    elif unknown:
        say([f"{log.folder}: the log records no fingerprint of a key, so a wrong key finds no events either"])
    return erasure


def retain(log: EventLog, days: int, now: datetime) -> Erasure:
    """Erase all events that are older than a number of days."""
    refuse_below(1, days=days)
    first = instant(now - timedelta(days=days))[:10]

    def stays(table: Any) -> Any:
        moment = datetime.fromisoformat(f"{first}T00:00:00+00:00")
        return imported("pyarrow.compute").greater_equal(table["time"], moment)

    return _rewrite(log, f"older than {counted(days, 'day')}", stays, lambda row: row["time"][:10] >= first)


def _rewrite(log: EventLog, what: str, stays: Callable[[Any], Any], line_stays: Callable[[Any], bool]) -> Erasure:
    """Rewrite the files without the events that must go."""
    log.seal()
    if not os.path.isdir(log.segments):  # nothing was ever added
        return Erasure(what, 0, 0, 0, 0, 0, ())
    with log.alone():
        refuse_open_segments(segments_in(log.segments))
        erased: list[tuple[str, int, bool]] = []  # of each changed file: its day, erased events, whether none is left

        def changes() -> Iterator[tuple[str, Any]]:
            for day, files in log.checked_parts().items():
                for path in files:
                    gone, table = _without(path, stays)
                    if gone:
                        erased.append((day, gone, table is None))
                        yield path, table

        log.change_parts(changes())
        removed, days = sum(empty for *_, empty in erased), {day for day, *_ in erased}
        packed, waiting, segments = sum(gone for _, gone, _ in erased), 0, 0
        for path in segments_in(log.segments):
            lines = whole_lines(path)
            remaining = [line for line in lines if line_stays(json.loads(line))]
            if len(remaining) < len(lines):
                replace_file(path, b"".join(line + b"\n" for line in remaining))
                waiting, segments = waiting + len(lines) - len(remaining), segments + 1
                days |= {json.loads(line)["time"][:10] for line in {*lines} - {*remaining}}
        return Erasure(what, packed, waiting, len(erased) - removed, removed, segments, tuple(sorted(days)))


def _without(path: str, stays: Callable[[Any], Any]) -> tuple[int, Any]:
    """The number of events to erase from a Parquet file, and a table of the rest; None if no event is erased, or if all are."""
    with arrow_in_words(path), imported("pyarrow.parquet").ParquetFile(path) as file:
        looked_at = stays(file.read(columns=["unit", "time"]))
        left = int(imported("pyarrow.compute").sum(looked_at).as_py() or 0)
        gone = len(looked_at) - left
        return gone, file.read().filter(looked_at) if gone and left else None
