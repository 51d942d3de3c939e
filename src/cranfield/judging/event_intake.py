"""The intake of events: what every way into a log checks before it adds an event.

Labels and preferences from the browser, the terminal and programs come through here. Adding is idempotent: an event that
is sent twice is one event. An event with the id of another event, but other content, is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from cranfield.base.errors import DataError, UnavailableError
from cranfield.base.parameters import shortened
from cranfield.judging.event import DEFAULTS, Event

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from cranfield.judging.log import Transaction


ORIGIN = re.compile(r"(?P<file>.*) (?P<digest>sha256:[0-9a-f]{64}) line \d+", re.DOTALL)


KEPT, REPEATED, REFUSED = "kept", "repeated", "refused"
REASONS = {
    "id": "the id is that of an event that says something else",
    "assessor": "it is somebody else's, or of somebody who is not asked",
    "round": "the round is closed, paused, or not there",
    "scale": "the grade is not one of the round's",
    "lease": "the document is not leased to them, or not any more",
    "event": "it refers to an event that is not there, or cannot be taken back",
}


class EventOutcome(NamedTuple):
    """What became of an event: kept, repeated (the log had it already), or refused, and why."""

    id: str
    said: str
    reason: str = ""  # one of REASONS
    why: str = ""

    @property
    def in_log(self) -> bool:
        """Whether the log holds the event."""
        return self.said != REFUSED


Refusal = tuple[str, str]  # one of REASONS, and a sentence


def submit(
    transaction: Transaction,
    event: Event,
    log_name: str,
    *,
    refuse: Callable[[Transaction, Event], Refusal | None] | None = None,
    server_fields: Collection[str] = (),
) -> EventOutcome:
    """Add one event, or say why the log does not take it; a refused event does not affect the others.

    `refuse` gives the caller's own reason to refuse a new event. `server_fields` are fields that the server fills in: an
    event that is sent again may differ in them.
    """
    there = transaction.events_by_id([event.id, event.refers])
    if event.id in there:
        problem = conflict(event, there[event.id], server_fields)
        return EventOutcome(event.id, REFUSED, "id", problem) if problem else EventOutcome(event.id, REPEATED)
    if event.kind == "withdrawal" and event.refers in there and there[event.refers].assessor != event.assessor:
        return EventOutcome(event.id, REFUSED, "assessor", "it is somebody else's")
    refusal = None if refuse is None else refuse(transaction, event)
    if refusal is not None:
        return EventOutcome(event.id, REFUSED, *refusal)
    try:
        transaction.try_to_add(event, log_name)
    except UnavailableError:  # nothing is wrong with the event: its sender tries again
        raise
    except DataError as error:
        return EventOutcome(event.id, REFUSED, "event", str(error))
    return EventOutcome(event.id, KEPT)


def conflict(event: Event, before: Event, server_fields: Collection[str] = ()) -> str:
    """How an event contradicts the event of the same id in the log; empty if both say the same."""
    for field in DEFAULTS:
        had, says = getattr(before, field), getattr(event, field)
        if had != says and field not in server_fields:
            change = f"its {field} was {had!r} and is now {says!r}"
            return f"an event with the id {shortened(event.id)!r} is there and says something else: {change}"
    return ""


def new_events(events: Iterable[Event], log_events: Mapping[str, Event], name: str) -> tuple[list[Event], int]:
    """The events that a log does not hold yet, and how many it does; DataError for an id with other content."""
    new: dict[str, Event] = {}
    repeated = 0
    for event in events:
        before = log_events.get(event.id) or new.get(event.id)
        if before is None:
            new[event.id] = event
            continue
        problem = conflict(event, before)
        if problem:
            _refuse_same_bytes(event, before, name)
            raise DataError(f"{name}: {problem}")
        repeated += 1
    return list(new.values()), repeated


def same_bytes(other: str, whose: str = "") -> str:
    """The message about a file that is a copy of another."""
    before = f", added before as labels of {whose!r}" if whose else ""
    return f"the same bytes as {other}{before}: a copy does not hold a second person's labels"


def _refuse_same_bytes(event: Event, before: Event, name: str) -> None:
    """Refuse a label from a file that was added before for another assessor, or under another name."""
    new, old = (ORIGIN.fullmatch(each.origin) for each in (event, before))
    if new is None or old is None or new["digest"] != old["digest"]:
        return
    if new["file"] != old["file"] or event.assessor != before.assessor:
        raise DataError(f"{name}: {new['file']}: {same_bytes(old['file'], before.assessor)}")


def refuse_unknown_withdrawals(events: Iterable[Event], kind_of: Callable[[str], str | None], name: str) -> None:
    """Refuse a withdrawal of an event that the log lacks, or of another withdrawal."""
    for event in events:
        if event.kind != "withdrawal":
            continue
        kind = kind_of(event.refers)
        if kind is None:
            raise DataError(f"{name}: there is no event {shortened(event.refers)!r} to withdraw")
        if kind == "withdrawal":
            raise DataError(f"{name}: {shortened(event.refers)!r} is a withdrawal itself; judge again instead")
