"""Who stands behind a log: pseudonyms at the door, erasure of a unit, retention.

Erasing rewrites every file that holds the unit, packed or waiting, each whole or not at all: a run that was interrupted is
run again. What cannot be reached, because another process is writing to it, is an error before anything is changed.
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

from cranfield.answer import Answer, Layout
from cranfield.answer import plain as plain_values
from cranfield.columns import counted
from cranfield.errors import DataError, UnavailableError
from cranfield.formats.arrow import arrow_in_words
from cranfield.formats.events.format import imported
from cranfield.formats.secrets import read_secret
from cranfield.formats.streams import name_beside, reason
from cranfield.hearing import say
from cranfield.online.event import instant
from cranfield.online.manifest import read_stored
from cranfield.online.segments import refuse_written_to, replace_file, segments_in, sync_folder, whole_lines
from cranfield.parameters import refuse_below
from cranfield.shapes import OneOf

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from cranfield.answer import Part
    from cranfield.online.event import Event
    from cranfield.online.log import Log

LEAST_KEY = 16  # bytes
UNITS = "units.json"  # in a log: whether its units are pseudonyms, and by which key
CONSTANT = b"\0cranfield: the fingerprint of a key\0"  # no unit is called so
PSEUDONYM = re.compile("[0-9a-f]{64}")
PERSONAL = ("user_id",)  # attributes that say who it is
PLAIN_UNITS, HIDDEN_UNITS = "plain", "pseudonyms"


@dataclass(frozen=True)
class UnitsTable:
    """All that units.json may say."""

    units: Annotated[str, OneOf((PLAIN_UNITS, HIDDEN_UNITS))]
    fingerprint: str


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
        """With the key that a file holds, less white space around it; nobody else may be able to read the file."""
        key = read_secret(path).strip()
        if len(key) < LEAST_KEY:
            raise DataError(f"{path}: expected a key of {LEAST_KEY} bytes or more, found {len(key)}")
        return cls(key)

    def of(self, unit: str) -> str:
        """The pseudonym of a unit, 64 hexadecimal digits."""
        return hmac.new(self._key, unit.encode(), hashlib.sha256).hexdigest()

    @property
    def fingerprint(self) -> str:
        """What tells this key from others without saying anything about it or about a pseudonym."""
        return hmac.new(self._key, CONSTANT, hashlib.sha256).hexdigest()[:32]

    def event(self, event: Event) -> Event:
        """The event under its unit's pseudonym, and that of the user whom UBI names beside it."""
        attributes = event.attributes or {}
        users = {name: self.of(attributes[name]) for name in PERSONAL if name in attributes}
        return replace(event, unit=self.of(event.unit), attributes={**attributes, **users})


def agree_on_units(log: Log, pseudonyms: Pseudonyms | None) -> None:
    """Before events are added: refuse another key than that of the log's units, which the first to add decides.

    Units of a log of before stay undecided until somebody comes with a key.
    """
    if _fingerprint_in(log) is None:
        before = bool(log.parts() or segments_in(log.segments))
        if before and pseudonyms is None:
            return
        if before:
            say(
                [
                    f"{log.folder}: earlier events were added before keys were written down; from now on this key alone is taken"
                ]
            )
        _write_down(log, pseudonyms)
    refuse_other_key(log, pseudonyms)


def refuse_other_key(log: Log, pseudonyms: Pseudonyms | None) -> None:
    """Stop where a log is known to name its units in another way: by another key, or by none."""
    found = _fingerprint_in(log)
    if found is None or found == _fingerprint(pseudonyms):
        return
    if pseudonyms is None:
        told = "its units are pseudonyms: give their key (--key FILE; --pseudonymise FILE of a service)"
    elif found:
        told = "its units are pseudonyms by another key: give that one, or begin another log"
    else:
        told = "its units have no pseudonyms, and a key would make two of each: give none, or begin another log"
    raise DataError(f"{log.folder}: {told}; nothing was changed")


def _fingerprint(pseudonyms: Pseudonyms | None) -> str:
    return "" if pseudonyms is None else pseudonyms.fingerprint


def _fingerprint_in(log: Log) -> str | None:
    """The fingerprint of the key of a log's units; empty where they have no pseudonyms, None where nobody wrote it down."""
    path, advice = os.path.join(log.folder, UNITS), "restore it from a copy"
    table = read_stored(path, UnitsTable, advice)
    if table is None:
        return None
    if (table.units == PLAIN_UNITS) != (table.fingerprint == ""):
        raise DataError(f"{path}: expected the fingerprint of a key with units = {HIDDEN_UNITS!r} alone; {advice}")
    return table.fingerprint


def _write_down(log: Log, pseudonyms: Pseudonyms | None) -> None:
    """Write down how units are named; whoever comes first decides."""
    path = os.path.join(log.folder, UNITS)
    told = {"units": PLAIN_UNITS if pseudonyms is None else HIDDEN_UNITS, "fingerprint": _fingerprint(pseudonyms)}
    log.make()
    beside = name_beside(path)
    try:
        with open(beside, "x", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(beside, path)
        sync_folder(log.folder)
    except OSError as error:
        raise UnavailableError(f"{path}: cannot be written: {reason(error)}") from error
    finally:
        with suppress(OSError):
            os.unlink(beside)


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


def erase(log: Log, units: Collection[str], pseudonyms: Pseudonyms | None = None) -> Erasure:
    """Take all events of these units out of a log; their pseudonyms are made by the key, or are given as such."""
    if pseudonyms is not None or not all(map(PSEUDONYM.fullmatch, units)):
        refuse_other_key(log, pseudonyms)
    unknown = pseudonyms is not None and _fingerprint_in(log) is None
    erasure = _erase(log, {*units} if pseudonyms is None else {pseudonyms.of(unit) for unit in units})
    if unknown and erasure.events:
        _write_down(log, pseudonyms)
    elif unknown:
        say([f"{log.folder}: no fingerprint of a key was written down here: a wrong key finds no events either"])
    return erasure


def _erase(log: Log, wanted: set[str]) -> Erasure:
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

        def changes() -> Iterator[tuple[str, Any]]:
            nonlocal packed, rewritten, removed
            for day, files in log.checked_parts().items():
                for path in files:
                    gone, table = _without(path, stays)
                    if gone:
                        packed += gone
                        rewritten += table is not None
                        removed += table is None
                        days.add(day)
                        yield path, table

        log.change_parts(changes())
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


def _without(path: str, stays: Callable[[Any], Any]) -> tuple[int, Any]:
    """How many events of a Parquet file are not to stay, and a table of those that are; None where none is."""
    with arrow_in_words(path), imported("pyarrow.parquet").ParquetFile(path) as file:
        looked_at = stays(file.read(columns=["unit", "time"]))
        left = int(imported("pyarrow.compute").sum(looked_at).as_py() or 0)
        gone = len(looked_at) - left
        return gone, file.read().filter(looked_at) if gone and left else None


def _replace_segment(path: str, lines: list[bytes]) -> None:
    replace_file(path, lambda file: file.write(b"".join(line + b"\n" for line in lines)))
