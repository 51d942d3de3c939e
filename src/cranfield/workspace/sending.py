"""What a browser sends to be kept, one by one: its id, when it was said, and whether it is there already.

The same said twice is one event, whatever the hour of the second; one that is refused spoils no other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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
LONGEST = {"id": 100, "note": 10_000, "passage": 20_000}  # characters
AHEAD_OF_US = timedelta(minutes=1)  # by which a clock may be
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
        key = id_of(row)
        if key in outcomes:
            continue
        try:
            check(row, known)
            time = said_at(row, (now or datetime.now(UTC)) + timedelta(microseconds=place))
            if row.get("kind") == "withdrawal":
                event = Event(
                    id=key, kind="withdrawal", refers=str(row.get("refers", "")), assessor=assessor, time=time
                )
            else:
                event = make(row, {"id": key, "assessor": assessor, "time": time, "seconds": _number(row, "seconds")})
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
            if says_the_same(there[event.id], event):
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


def says_the_same(one: Event, other: Event, added: Collection[str] = ("time",)) -> bool:
    """Whether two events differ at most in what the server adds."""
    return all(getattr(one, each.name) == getattr(other, each.name) for each in fields(one) if each.name not in added)


def id_of(row: Any) -> str:
    """The id of something said; empty where it has none."""
    key = row.get("id") if isinstance(row, Mapping) else None
    return key if isinstance(key, str) else ""


def check(row: Any, known: Sequence[str]) -> None:
    """Refuse what is no object, has other fields than those known, has no id, or is too long."""
    there = ("id", "kind", "refers", "seconds", "age", *known)
    if not isinstance(row, Mapping):
        raise DataError(f"expected a JSON object with {', '.join(there)}")
    unknown = row.keys() - set(there)
    if unknown:
        raise DataError(f"expected fields of {', '.join(there)}, found {shortened(str(min(unknown)))!r}")
    if not id_of(row):
        raise DataError("expected an id of your own making, so that the same said twice is one event")
    for name, most in LONGEST.items():
        if isinstance(row.get(name), str) and len(row[name]) > most:
            raise DataError(f"expected at most {most:,} characters as {name}, found {len(row[name]):,}")


def said_at(row: Mapping[str, Any], now: datetime) -> str:
    """When it was said: now, or so long ago as the browser had to wait, or the time that is told if that is not to come."""
    when = row.get("time")
    if when is None:
        return instant(now - timedelta(seconds=min(_number(row, "age") or 0.0, OLDEST.total_seconds())))
    if not isinstance(when, str):
        raise DataError(f"expected a time such as 2026-03-01T10:00:00Z, found {when!r:.60}")
    told = instant(when)
    if told > instant(now + AHEAD_OF_US):
        raise DataError(f"the time {told} is in the future; leave it away, and the server's is taken")
    return told


def _number(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise DataError(f"expected {name} of 0 or more, found {value!r:.60}")
    return float(value)
