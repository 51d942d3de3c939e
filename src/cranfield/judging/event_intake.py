"""The intake of events: the checks that every event passes before a log adds it.

Labels and preferences from the browser, the terminal and programs come through here. Adding is idempotent: an event that
is sent twice is one event. An event with the id of another event, but other content, is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cranfield.base.errors import DataError, UnavailableError
from cranfield.base.parameters import shortened
from cranfield.judging.event import Event, conflict, of_lists
from cranfield.judging.event import new_events as new_events

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container

    from cranfield.judging.table_changes import Transaction


KEPT, REPEATED, REFUSED = "kept", "repeated", "refused"
REASONS = {
    "id": "the id is that of an event that says something else",
    "assessor": "it is another person's, or the person is not an assessor of the round",
    "round": "the round is closed, paused, or not there",
    "scale": "the grade is not one of the round's",
    "lease": "the document is not leased to them, or not any more",
    "topic": "the workspace has no such topic",
    "document": "the collection has no such document",
    "event": "it refers to an event that is not there, or cannot be taken back",
}


class EventOutcome(NamedTuple):
    """The outcome of submitting an event: kept, repeated (the log had it already), or refused, with the reason."""

    id: str
    said: str  # kept, repeated or refused
    reason: str = ""  # one of REASONS
    why: str = ""

    @property
    def in_log(self) -> bool:
        """Whether the log holds the event."""
        return self.said != REFUSED


Refusal = tuple[str, str]  # one of REASONS, and a sentence


class KnownIds(NamedTuple):
    """The ids that exist in a workspace; None if no file lists them: then every id is accepted."""

    topics: Container[str] | None = None
    has_document: Callable[[str], bool] | None = None


def refuse_unknown_ids(event: Event, known: KnownIds) -> Refusal | None:
    """Why an event is refused whose topic or document does not exist; None if all exist.

    Preferences between result lists name runs in place of documents, so only their topic is checked. An assessor who
    gets a missing document in a round may skip it, because that adds no label.
    """
    if event.round and event.kind in ("skip", "cannot-judge"):
        return None
    if event.topic and known.topics is not None and event.topic not in known.topics:
        return "topic", f"there is no topic {shortened(event.topic)!r}"
    if known.has_document is None or of_lists(event.aspect):
        return None
    unknown = [each for each in (event.document, event.other) if each and not known.has_document(each)]
    return ("document", f"there is no document {shortened(unknown[0])!r}") if unknown else None


def submit(
    transaction: Transaction,
    event: Event,
    log_name: str,
    *,
    refuse: Callable[[Transaction, Event], Refusal | None] | None = None,
    server_fields: Collection[str] = (),
) -> EventOutcome:
    """Add one event, or return why the log refuses it; a refused event does not affect the others.

    `refuse` gives the caller's own reason to refuse a new event. `server_fields` are fields that the server fills in: an
    event that is sent again may differ in them.
    """
    there = transaction.events_by_id([event.id, event.refers])
    if event.id in there and there[event.id].assessor != event.assessor:  # what it says is not theirs to know
        return EventOutcome(event.id, REFUSED, "id", f"the id {shortened(event.id)!r} is that of another event")
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
        return EventOutcome(event.id, REFUSED, "event", str(error).removeprefix(f"{log_name}: "))
    return EventOutcome(event.id, KEPT)
