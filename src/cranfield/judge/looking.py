"""Looks at a log that pages take: each reads what it shows by an index, and not the whole log."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cranfield.judge.policy import Latest, Settings, decide, decide_labels, goes_by_labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.judge.event import Event
    from cranfield.judge.log import Found, Log
    from cranfield.judge.policy import Decided, Subject

PAGE = 50


class News(NamedTuple):
    """What came between two places."""

    place: int
    events: list[Event]


def mine(log: Log, assessor: str, round: str | None = None, before: int | None = None, n: int = PAGE) -> list[Found]:
    """The last labels of somebody that stand, the newest first; `before` is the place of the last one of the page before."""
    return log.find(assessor=assessor, round=round, before=before, n=n, standing=True)


def about(log: Log, topic: str, document: str | None = None) -> list[Found]:
    """All that was said of a document, or of a topic, in the order of its times."""
    found = log.find(topic=topic, document=document)
    return sorted(found, key=lambda each: (each.event.time, each.event.id))


def newer(log: Log, place: int) -> News:
    """What has come since a place, and the place from which to ask next: whoever goes on so sees each event once."""
    up_to = max(place, log.place())
    return News(up_to, log.events(place, up_to))


def waiting(log: Log, place: int) -> int:
    """How many events have come since a place."""
    return log.count(place)


def decided(
    log: Log, policy: str = Latest.name, settings: Settings | None = None, gold: Mapping[Subject, float] | None = None
) -> Decided:
    """The grades that stand by a policy, as `decide(log.standing(), …)` gives them, from the few columns that it takes."""
    how = settings or Settings()
    if not goes_by_labels(policy):
        return decide(log.standing(), policy, how, gold)
    return decide_labels(log.said(how.aspect), policy, how, gold)
