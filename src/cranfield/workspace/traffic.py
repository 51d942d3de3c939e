"""Verbs on event logs and plans: take events in, write them out, erase, assign."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cranfield.errors import ConventionError
from cranfield.workspace.inputs import once

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cranfield.online.assign import Assignments
    from cranfield.online.ingest import Ingested
    from cranfield.online.privacy import Erasure, Pseudonyms


def ingest(
    log: str,
    files: Sequence[str],
    *,
    format: str | None = None,
    time: str | None = None,
    lenient: bool = False,
    key: str | None = None,
    now: datetime | None = None,
) -> Ingested:
    """Add the events of files to a log, which is made where there is none; `key` is a file, for pseudonyms of units."""
    from cranfield.online.event import instant
    from cranfield.online.ingest import ingest
    from cranfield.online.log import Log

    once(*files)
    moment = None if time is None else instant(time)
    with Log(log, create=True) as opened:
        return ingest(
            opened,
            files,
            format,
            now=now or datetime.now(UTC),
            time=moment,
            lenient=lenient,
            pseudonyms=_pseudonyms(key),
        )


def export(log: str, *, format: str | None = None, output: str = "-") -> Iterator[bytes]:
    """The events of a log by time as the bytes of a file, in a format by its name or by the ending of the output's."""
    from cranfield.formats.events.format import format_to_write
    from cranfield.online.log import Log

    chosen = format_to_write(output, format)
    with Log(log) as opened:
        yield from chosen.write(opened.events())


def erase(log: str, units: Sequence[str], *, key: str | None = None) -> Erasure:
    """Take all events of these units out of a log; with a key, those of their pseudonyms."""
    from cranfield.online.log import Log
    from cranfield.online.privacy import erase

    if not all(units):
        raise ConventionError("expected units to erase, found an empty text")
    pseudonyms = _pseudonyms(key)
    with Log(log) as opened:
        return erase(opened, units, pseudonyms)


def retain(log: str, days: int, *, now: datetime | None = None) -> Erasure:
    """Take all events out of a log that are older than so many days."""
    from cranfield.online.log import Log
    from cranfield.online.privacy import retain

    with Log(log) as opened:
        return retain(opened, days, now or datetime.now(UTC))


def assign(plans: Sequence[str], units: Sequence[str]) -> Assignments:
    """The experiments that units are in, by plans in files and folders, and their variants."""
    from cranfield.online.assign import assignments
    from cranfield.online.plan import read_plans

    return assignments(read_plans(plans), units)


def _pseudonyms(key: str | None) -> Pseudonyms | None:
    from cranfield.online.privacy import Pseudonyms

    return None if key is None else Pseudonyms.from_file(key)
