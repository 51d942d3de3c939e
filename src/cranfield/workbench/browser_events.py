"""Events that browsers send: each row is checked, becomes an event, and is submitted to the log.

Adding is idempotent: an event that is sent twice is one event, whatever the time of the second. A refused event does not
affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.http.refusal import Refusal as HttpRefusal
from cranfield.judging.event import Event, instant
from cranfield.judging.event_intake import REFUSED, EventOutcome, KnownIds, Refusal, refuse_unknown_ids, submit

if TYPE_CHECKING:
    from cranfield.judging.log import Log, Transaction
    from cranfield.workbench.routes import PageRequest

MOST = 500  # events in one request
LONGEST = {"id": 100, "note": 10_000, "passage": 20_000}  # characters
FUTURE = timedelta(minutes=1)  # by which the clock of a client may be ahead
OLDEST = timedelta(days=366)
Make = Callable[[Mapping[str, Any], "dict[str, Any]"], Event]  # from a row, and the fields that every event has


def submit_rows(
    log: Log,
    assessor: str,
    rows: Sequence[Any],
    fields: Sequence[str],
    make: Make,
    refuse: Callable[[Transaction, Event], Refusal | None],
    known: KnownIds,
) -> tuple[list[EventOutcome], list[Event]]:
    """Add the events of some rows; return the outcome of each row, and the events that the log holds.

    `fields` are the names that a row may have, `make` turns a row into an event, `refuse` gives a reason to refuse it.
    """

    def event_of(row: Mapping[str, Any], time: str) -> Event:
        base: dict[str, Any] = {"id": id_of(row), "assessor": assessor, "time": time}
        if row.get("kind") == "withdrawal":
            return Event(**base, kind="withdrawal", refers=str(row.get("refers", "")))
        return make(row, {**base, "seconds": _number(row, "seconds")})

    events, refused = read_rows(rows, fields, event_of, known)
    outcomes = refused | {event.id: submit_alone(log, event, ("time", "guideline"), refuse) for event in events}
    return in_order(rows, outcomes), [event for event in events if outcomes[event.id].in_log]


def read_rows(
    rows: Sequence[Any],
    fields: Sequence[str],
    event_of: Callable[[Mapping[str, Any], str], Event],
    known: KnownIds,
) -> tuple[list[Event], dict[str, EventOutcome]]:
    """The events of rows, one per id, and the outcomes of the rows that are not events, or name what does not exist.

    `event_of` makes an event of a row and its time. DataError if a request holds too many rows.
    """
    if len(rows) > MOST:
        raise DataError(f"expected at most {MOST} events at once, found {len(rows)}")
    now = datetime.now(UTC)
    events: dict[str, Event] = {}
    refused: dict[str, EventOutcome] = {}
    for number, row in enumerate(rows):
        key = id_of(row)
        if key in events or key in refused:
            continue
        try:
            check_row(row, fields)
            event = event_of(row, event_time(row, now + timedelta(microseconds=number)))
        except DataError as error:
            refused[key] = EventOutcome(key, REFUSED, "event", str(error))
            continue
        refusal = refuse_unknown_ids(event, known)
        if refusal is None:
            events[key] = event
        else:
            refused[key] = EventOutcome(key, REFUSED, *refusal)
    return list(events.values()), refused


def in_order(rows: Sequence[Any], outcomes: Mapping[str, EventOutcome]) -> list[EventOutcome]:
    """The outcome of each row, in the order of the rows."""
    return [outcomes[key] for key in dict.fromkeys(map(id_of, rows))]


def submit_alone(
    log: Log,
    event: Event,
    server_fields: Collection[str],
    refuse: Callable[[Transaction, Event], Refusal | None] | None = None,
) -> EventOutcome:
    """Submit one event in a transaction of its own, while no other transaction writes."""

    def work(transaction: Transaction) -> EventOutcome:
        transaction.alone()
        return submit(transaction, event, log.name, refuse=refuse, server_fields=server_fields)

    return log.write(work)


def refuse_withdrawal(transaction: Transaction, event: Event, kind: str, name: str) -> Refusal | None:
    """Why the log refuses a withdrawal: there is no event of that kind under its id; None if there is one."""
    target = transaction.events_by_id([event.refers]).get(event.refers)
    exists = target is not None and target.kind == kind
    return None if exists else ("event", f"there is no such {name} to withdraw")


class ScriptEvents(NamedTuple):
    """What the script of a page sends: events, what the browser has already, and how many more it asks for."""

    events: list[Any]
    have: list[Any]
    n: int


def script_events(request: PageRequest, most: int) -> ScriptEvents:
    """The events that a script sends; Refusal if the form is wrong, or the events belong to another account."""
    events, have = request.form["events"], request.form.get("have", [])
    account, n = request.form.get("account", request.name), request.form.get("n", most)
    if not isinstance(events, list) or not isinstance(have, list) or type(n) is not int:
        raise HttpRefusal("expected events and have as lists and n as a whole number")
    if account != request.name:
        raise HttpRefusal(
            f"these events are from {str(account)[:60]}, and you are signed in as {request.name}",
            403,
            advice="They stay in this browser until their own account signs in.",
        )
    return ScriptEvents(events, have, min(max(n, 0), most))


def subjects_in(have: Sequence[Any]) -> list[tuple[str, str]]:
    """Pairs of topic and document that a browser has already."""
    return [(str(each[0]), str(each[1])) for each in have if isinstance(each, list) and len(each) == 2]


def refuse_first(outcomes: Sequence[EventOutcome], advice: str) -> None:
    """Raise Refusal for the first event that was refused: a form without scripts has no other way to show it."""
    for each in outcomes:
        if not each.in_log:
            raise HttpRefusal(each.why, 409, safe="What you submitted before is stored.", advice=advice)


def id_of(row: Any) -> str:
    """The id of a row; empty if it has none."""
    key = row.get("id") if isinstance(row, Mapping) else None
    return key if isinstance(key, str) else ""


def check_row(row: Any, fields: Sequence[str]) -> None:
    """Raise DataError for a row that is not an object, has unknown fields, has no id, or is too long."""
    names = ("id", "kind", "refers", "seconds", "age", *fields)
    if not isinstance(row, Mapping):
        raise DataError(f"expected a JSON object with {', '.join(names)}")
    unknown = row.keys() - set(names)
    if unknown:
        raise DataError(f"expected fields of {', '.join(names)}, found {shortened(str(min(unknown)))!r}")
    if not id_of(row):
        raise DataError("expected an id that the sender chooses, so that an event sent twice is one event")
    for name, most in LONGEST.items():
        if isinstance(row.get(name), str) and len(row[name]) > most:
            raise DataError(f"expected at most {most:,} characters as {name}, found {len(row[name]):,}")


def event_time(row: Mapping[str, Any], now: datetime) -> str:
    """The time of an event: its own time, or now minus the seconds that the browser held it back."""
    when = row.get("time")
    if when is None:
        return instant(now - timedelta(seconds=min(_number(row, "age") or 0.0, OLDEST.total_seconds())))
    if not isinstance(when, str):
        raise DataError(f"expected a time such as 2026-03-01T10:00:00Z, found {when!r:.60}")
    time = instant(when)
    if time > instant(now + FUTURE):
        raise DataError(f"the time {time} is in the future; leave it out to use the server's time")
    return time


def _number(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise DataError(f"expected {name} of 0 or more, found {value!r:.60}")
    return float(value)
