"""Who said what about one document, and what of it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Table
from cranfield.judge.event import RELEVANCE
from cranfield.judge.looking import about

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.answer import Layout, Part
    from cranfield.judge.event import Event
    from cranfield.judge.log import Log


@dataclass(frozen=True, repr=False)
class Blame(Answer):
    """Every event about one document of a topic, in the order of their times; which of them stand."""

    topic: str
    document: str
    events: list[Event]
    stand: set[str]
    withdrawn: set[str]

    def content(self, how: Layout) -> Iterator[Part]:
        if not self.events:
            yield f"nobody has said anything about document {self.document!r} of topic {self.topic!r}"
            return
        several = {event.aspect for event in self.events} != {RELEVANCE}
        head = ["time", "assessor", "kind", *["aspect"] * several, "grade", "stands", "note", "from"]
        yield Table(head, [self._row(event, several, how) for event in self.events])

    def _row(self, event: Event, several: bool, how: Layout) -> list[str]:
        stands = "yes" if event.id in self.stand else "withdrawn" if event.id in self.withdrawn else ""
        grade = how.undefined if event.grade is None else f"{event.grade:g}{'' if event.sure else '?'}"
        when = how.undefined if event.time < "0002" else event.time[:19].replace("T", " ")
        where = event.origin.partition(" sha256:")[0] or event.round or event.source
        aspect = [event.aspect] * several
        return [when, event.assessor or how.undefined, event.kind, *aspect, grade, stands, event.note, where]

    def plain(self, how: Layout) -> Any:
        rows = [
            {
                **event.row(),
                "kind": event.kind,
                "stands": event.id in self.stand,
                "withdrawn": event.id in self.withdrawn,
            }
            for event in self.events
        ]
        return {"topic": self.topic, "document": self.document, "events": rows}


def blame(log: Log, topic: str, document: str) -> Blame:
    """Every event about a document."""
    found = about(log, topic, document)
    stand = {each.event.id for each in found if each.stands}
    gone = {each.event.id for each in found if each.withdrawn}
    return Blame(topic, document, [each.event for each in found], stand, gone)
