"""What stands: of all that was said, each person's last word that was not taken back.

A pure function of the set of events. Last is by the event's time and then its id, whatever the order in the log. The
databases keep the same as a table in each event's own transaction; a test holds the two equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cranfield.judge.event import decided_by_a_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cranfield.judge.event import Event

SIDES = {"judgment": "label", "cannot-judge": "label", "preference": "preference", "adjudication": "adjudication"}


class Key(NamedTuple):
    """What only one event at a time can stand for."""

    side: str  # label, preference or adjudication
    topic: str
    document: str
    other: str
    aspect: str
    assessor: str  # empty for an adjudication: the last one binds everybody
    repeat: bool


class Said(NamedTuple):
    """A label that stands, by what a policy reads of it."""

    topic: str
    document: str
    grade: float
    assessor: str
    time: str
    id: str
    source: str
    side: str  # label or adjudication


def key_of(event: Event) -> Key | None:
    """The place an event can stand in; None for what never stands: some kinds, and what a model decided."""
    side = SIDES.get(event.kind)
    if side is None or decided_by_a_model(event):
        return None
    assessor = "" if side == "adjudication" else event.assessor
    return Key(side, *event.subject, assessor, event.repeat)


def standing(events: Iterable[Event]) -> dict[Key, Event]:
    """The events that stand, by their places.

    >>> from cranfield.judge.event import Event
    >>> first = Event(topic="q", document="d", grade=1, assessor="ann", time="2026-01-01")
    >>> second = Event(topic="q", document="d", grade=2, assessor="ann", time="2026-01-02")
    >>> [event.grade for event in standing([second, first]).values()]
    [2.0]
    >>> [event.grade for event in standing([first, second, Event(kind="withdrawal", refers=second.id)]).values()]
    [1.0]
    """
    events = list(events)
    withdrawn = {event.refers for event in events if event.kind == "withdrawal"}
    answer: dict[Key, Event] = {}
    for event in events:
        key = key_of(event)
        if key is None or event.id in withdrawn:
            continue
        before = answer.get(key)
        if before is None or (before.time, before.id) < (event.time, event.id):
            answer[key] = event
    return answer


def said_of(standing: Mapping[Key, Event], aspect: str) -> list[Said]:
    """The labels of an aspect that stand, repeats left out, and its adjudications."""
    return [
        Said(event.topic, event.document, event.grade, event.assessor, event.time, event.id, event.source, key.side)
        for key, event in standing.items()
        if key.aspect == aspect
        and event.grade is not None
        and (key.side == "adjudication" or (key.side == "label" and not key.repeat))
    ]
