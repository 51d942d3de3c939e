"""The current labels of a log: each person's last label per document that was not withdrawn.

The collection's own judgments and those from clicks are kept separately, each on a side of their own, so that nothing which
compares or counts people's labels reads them.

This is a pure function of the set of events. The last event is the one with the latest time, then the highest id, whatever
its position in the log. Databases keep the current labels in a table (`standing`), which the transaction of each event
updates; a test checks that both are equal.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from cranfield.judging.event import CLICKS, COLLECTION, Event, decided_by_a_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


SIDES = {"judgment": "label", "cannot-judge": "label", "preference": "preference", "adjudication": "adjudication"}
SOURCE_SIDES = (COLLECTION, CLICKS)  # sources whose judgments have a side of their own, of the same name
EVERY_SIDE = (*sorted(set(SIDES.values())), *SOURCE_SIDES)
WITHOUT_ASSESSOR = ("adjudication", *SOURCE_SIDES)  # the last one counts for everybody


class LabelKey(NamedTuple):
    """The key of a current label: only one event at a time is current for it."""

    side: str  # label, preference, adjudication, collection or clicks
    topic: str
    document: str
    other: str
    aspect: str
    assessor: str  # empty for an adjudication, which binds everybody, and for the collection and clicks
    repeat: bool


class GradedLabel(NamedTuple):
    """A current label with the fields that policies read."""

    topic: str
    document: str
    grade: float
    assessor: str
    time: str
    id: str
    source: str
    side: str  # label, adjudication, collection or clicks


class RatedLabel(NamedTuple):
    """A person's or model's current label with the fields that agreement reads, as they are named in an event."""

    topic: str
    document: str
    grade: float | None
    assessor: str
    time: str
    id: str
    source: str
    kind: str
    aspect: str
    sure: bool
    seconds: float | None
    round: str
    repeat: bool


def key_of(event: Event) -> LabelKey | None:
    """The key under which an event can be current.

    It is None for events that are never current: notes, skips, withdrawals, and adjudications by a model.
    """
    side = SIDES.get(event.kind)
    if side is None or decided_by_a_model(event):
        return None
    if event.source in SOURCE_SIDES:
        side = event.source
    assessor = "" if side in WITHOUT_ASSESSOR else event.assessor
    return LabelKey(side, *event.subject, assessor, event.repeat)


def current_events(events: Iterable[Event]) -> dict[LabelKey, Event]:
    """The current events by their keys.

    >>> from cranfield.judging.event import Event
    >>> first = Event(topic="q", document="d", grade=1, assessor="ann", time="2026-01-01")
    >>> second = Event(topic="q", document="d", grade=2, assessor="ann", time="2026-01-02")
    >>> [event.grade for event in current_events([second, first]).values()]
    [2.0]
    >>> [event.grade for event in current_events([first, second, Event(kind="withdrawal", refers=second.id)]).values()]
    [1.0]
    """
    events = list(events)
    withdrawn = {event.refers for event in events if event.kind == "withdrawal"}
    answer: dict[LabelKey, Event] = {}
    for event in events:
        key = key_of(event)
        if key is None or event.id in withdrawn:
            continue
        before = answer.get(key)
        if before is None or (before.time, before.id) < (event.time, event.id):
            answer[key] = event
    return answer


def graded_labels(current: Mapping[LabelKey, Event], aspect: str) -> list[GradedLabel]:
    """The current labels, adjudications and judgments of the collection and of clicks, of an aspect, without repeats."""
    return [
        GradedLabel(
            event.topic, event.document, event.grade, event.assessor, event.time, event.id, event.source, key.side
        )
        for key, event in current.items()
        if key.aspect == aspect
        and event.grade is not None
        and (key.side in WITHOUT_ASSESSOR or (key.side == "label" and not key.repeat))
    ]


def rated_labels(current: Mapping[LabelKey, Event], side: str = "label") -> list[RatedLabel]:
    """The current labels of all aspects with repeats, without adjudications; grouped by document, then by time.

    With the side `clicks`, the judgments from clicks instead.
    """
    names = RatedLabel._fields
    labels = [
        RatedLabel(*(getattr(event, name) for name in names)) for key, event in current.items() if key.side == side
    ]
    return sorted(labels, key=attrgetter("topic", "document", "time", "id"))
