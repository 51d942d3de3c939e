"""What a browser sends to be kept, one by one: its id, when it was said, and whether it is there already.

The same said twice is one event, whatever the hour of the second; one that is refused spoils no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError, UnavailableError
from cranfield.judge.event import Event, instant
from cranfield.judge.rounds import KEPT, REFUSED, REPEATED, Outcome
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from cranfield.judge.database import DatabaseLog
    from cranfield.judge.records import Transaction

MOST = 500  # events in one request
LONGEST = {"id": 100, "note": 10_000}  # characters
OLDEST = timedelta(days=366)
Make = Callable[[Mapping[str, Any], "dict[str, Any]"], Event]  # what was said, and the fields that every event has


def keep(
    log: DatabaseLog,
    assessor: str,
    said: Sequence[Any],
    known: Sequence[str],
    make: Make,
    refuse: Callable[[Transaction, Event], str],
    now: datetime | None = None,
) -> tuple[list[Outcome], list[Event]]:
    """Keep what somebody says: what became of each, and the events that are there now.

    `known` are the fields that may be sent, `make` makes an event of a row, `refuse` says why it cannot be kept.
    """
    if len(said) > MOST:
        raise DataError(f"expected at most {MOST} events at once, found {len(said)}")
    outcomes: dict[str, Outcome] = {}
    kept: list[Event] = []
    for place, row in enumerate(said):
        key = _id_of(row)
        if key in outcomes:
            continue
        try:
            _check(row, known)
            time = _time(row, (now or datetime.now(UTC)) + timedelta(microseconds=place))
            if row.get("kind") == "withdrawal":
                event = Event(
                    id=key, kind="withdrawal", refers=str(row.get("refers", "")), assessor=assessor, time=time
                )
            else:
                event = make(row, {"id": key, "assessor": assessor, "time": time, "seconds": _seconds(row)})
            outcomes[key] = log.write(_one(log, event, refuse))
        except UnavailableError:  # nothing is wrong with what was said: it is sent again
            raise
        except DataError as error:
            outcomes[key] = Outcome(key, REFUSED, "event", str(error))
        else:
            if outcomes[key].kept:
                kept.append(event)
    return list(outcomes.values()), kept


def _one(
    log: DatabaseLog, event: Event, refuse: Callable[[Transaction, Event], str]
) -> Callable[[Transaction], Outcome]:
    def work(transaction: Transaction) -> Outcome:
        transaction.alone()
        there = transaction.known([event.id, event.refers])
        if event.id in there:
            if _says_the_same(there[event.id], event):
                return Outcome(event.id, REPEATED)
            return Outcome(event.id, REFUSED, "id", "an event of that id says something else")
        if event.kind == "withdrawal" and event.refers in there and there[event.refers].assessor != event.assessor:
            return Outcome(event.id, REFUSED, "assessor", "it is somebody else's")
        why = refuse(transaction, event)
        if why:
            return Outcome(event.id, REFUSED, "event", why)
        transaction.try_to_add(event, log.name)
        return Outcome(event.id, KEPT)

    return work


def _says_the_same(one: Event, other: Event) -> bool:
    """Whether two events differ at most in their times."""
    return all(getattr(one, each.name) == getattr(other, each.name) for each in fields(one) if each.name != "time")


def _id_of(row: Any) -> str:
    key = row.get("id") if isinstance(row, Mapping) else None
    return key if isinstance(key, str) else ""


def _check(row: Any, known: Sequence[str]) -> None:
    fields = ("id", "kind", "refers", "seconds", "age", *known)
    if not isinstance(row, Mapping):
        raise DataError(f"expected a JSON object with {', '.join(fields)}")
    unknown = row.keys() - set(fields)
    if unknown:
        raise DataError(f"expected fields of {', '.join(fields)}, found {shortened(str(min(unknown)))!r}")
    if not _id_of(row):
        raise DataError("expected an id of your own making, so that the same said twice is one event")
    for name, most in LONGEST.items():
        if isinstance(row.get(name), str) and len(row[name]) > most:
            raise DataError(f"expected at most {most:,} characters as {name}, found {len(row[name]):,}")


def _number(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise DataError(f"expected {name} of 0 or more, found {value!r:.60}")
    return float(value)


def _seconds(row: Mapping[str, Any]) -> float | None:
    return _number(row, "seconds")


def _time(row: Mapping[str, Any], now: datetime) -> str:
    """When it was said: now, unless the browser had to wait."""
    age = _number(row, "age") or 0.0
    return instant(now - timedelta(seconds=min(age, OLDEST.total_seconds())))
