"""A log as one person at work sees it: read again before each document, only as far as it has grown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.judge.event import RELEVANCE
from cranfield.judge.policy import PEOPLE
from cranfield.judge.standing import standing

if TYPE_CHECKING:
    from cranfield.judge.event import Event
    from cranfield.judge.log import Log


class Follower:
    """What was said of each document, kept up to date by `refresh`."""

    def __init__(self, log: Log, assessor: str) -> None:
        self.log = log
        self.assessor = assessor
        self.withdrawn: set[str] = set()
        self._events: dict[str, Event] = {}
        self._about: dict[tuple[str, str], list[Event]] = {}
        self._place = 0
        self.refresh()

    def refresh(self) -> list[Event]:
        """Read what has come since the last look, and give it; what is behind the place is seen again, and known."""
        place = self.log.place()
        fresh = [event for event in self.log.events(self._place) if event.id not in self._events]
        self._place = place
        for event in fresh:
            self._events[event.id] = event
            if event.kind == "withdrawal":
                self.withdrawn.add(event.refers)
            else:
                self._about.setdefault((event.topic, event.document), []).append(event)
        return fresh

    def labels(self, topic: str, document: str) -> list[Event]:
        """The labels of people that stand for a document, an adjudication among them."""
        said = [event for event in self._about.get((topic, document), ()) if event.id not in self.withdrawn]
        return counted(list(standing(said).values()))

    def grade(self, topic: str, document: str) -> float | None:
        """The grade that stands: a third person's, or the latest."""
        labels = [label for label in self.labels(topic, document) if label.grade is not None]
        last = max(labels, key=lambda label: (label.kind == "adjudication", label.time, label.id), default=None)
        return None if last is None else last.grade

    def people(self, topic: str, document: str) -> set[str]:
        """Who else has judged a document."""
        return others(self.labels(topic, document), self.assessor)

    def last(self, round: str) -> Event | None:
        """The last thing that this person said in a round (or in none) and has not taken back."""
        own = [
            event
            for event in self._events.values()
            if event.assessor == self.assessor
            and event.round == round
            and event.source == "human"
            and event.kind in ("judgment", "adjudication", "cannot-judge", "skip", "note")
            and event.document
            and event.id not in self.withdrawn
        ]
        return max(own, key=lambda event: (event.time, event.id), default=None)

    def seen(self, topic: str) -> int:
        """How many documents of a topic this person has answered or skipped."""
        answers = ("judgment", "adjudication", "cannot-judge", "skip")
        return len(
            {
                event.document
                for event in self._events.values()
                if event.topic == topic
                and event.assessor == self.assessor
                and event.kind in answers
                and event.id not in self.withdrawn
            }
        )

    def elsewhere(self, since: str) -> set[str]:
        """The topics that others have been at since a time."""
        return {
            event.topic
            for event in self._events.values()
            if event.time >= since and event.assessor != self.assessor and event.source == "human"
        }


def counted(events: list[Event]) -> list[Event]:
    """Of what stands, the labels of people that speak of relevance, repeats left out."""
    sides = ("judgment", "cannot-judge", "adjudication")
    return [
        event
        for event in events
        if event.kind in sides and event.aspect == RELEVANCE and event.source in PEOPLE and not event.repeat
    ]


def others(labels: list[Event], assessor: str) -> set[str]:
    """Who of those that gave a grade is somebody else."""
    return {label.assessor for label in labels if label.grade is not None and label.assessor != assessor}
