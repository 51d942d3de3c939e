"""Queries on a log for pages and commands: qrels, the history of a document, own labels, counts of labels, new events.

Each query reads what it returns by an index, not the whole log.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import func, literal_column, select

from cranfield.base.errors import DataError
from cranfield.base.qrels import Qrels
from cranfield.base.results import Answer, Layout, Part, Table
from cranfield.base.text_layout import counted, name_list
from cranfield.judging.collection_judgments import with_judgments
from cranfield.judging.current_labels import SOURCE_SIDES
from cranfield.judging.event import CLICKS, COLLECTION, RELEVANCE, Event
from cranfield.judging.guidelines_history import versions_by_hash
from cranfield.judging.log_location import open_log
from cranfield.judging.policies import (
    PEOPLE,
    Latest,
    PolicySettings,
    decide,
    decide_by_topic,
    decide_labels,
    goes_by_labels,
)
from cranfield.store.tables import events, items, standing

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from sqlalchemy.sql import ColumnElement

    from cranfield.judging.guidelines import GradeMeaning, Guidelines
    from cranfield.judging.log import Log, LogEntry
    from cranfield.judging.policies import DecidedGrades, Subject
    from cranfield.store import Database


COUNTED_KINDS = ("judgment", "preference", "adjudication", "withdrawal", "cannot-judge")  # can change a result
GRADES = ("label", "adjudication")  # sides of current labels that hold a grade of a person or a model
SIDES = (*GRADES, COLLECTION)
MODEL: ColumnElement[str] = literal_column("'model'")  # spelled as in the partial index, so that the database uses it


def has_labels_of_people(database: Database) -> bool:
    """Whether a person's grade, or an adjudication, is among the current labels."""
    s = standing.c
    graded = s.aspect == RELEVANCE, ~s.repeat, s.grade.is_not(None), s.source != MODEL
    query = select(s.event).where(s.side.in_(GRADES), *graded)
    with database.reading() as connection:
        return connection.execute(query.limit(1)).first() is not None


def documents_labelled_by_people(database: Database) -> dict[str, int]:
    """The number of documents that people have labelled, by topic."""
    query = (
        select(standing.c.topic, func.count(standing.c.document.distinct()))
        .where(standing.c.side.in_(GRADES), standing.c.aspect == RELEVANCE, ~standing.c.repeat)
        .where(standing.c.source != MODEL)
        .group_by(standing.c.topic)
    )
    with database.reading() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


class JudgmentCounts(NamedTuple):
    """The numbers of current judgments by source, and the number of their topics."""

    label: int  # of people
    adjudication: int
    collection: int
    topics: int

    def in_words(self) -> str:
        """The counts that are not 0.

        >>> JudgmentCounts(1, 0, 1837, 225).in_words()
        '1 label of people and 1,837 judgments of the collection, on 225 topics'
        """
        texts = [
            *[f"{counted(self.label, 'label')} of people"] * bool(self.label),
            *[counted(self.adjudication, "adjudication")] * bool(self.adjudication),
            *[f"{counted(self.collection, 'judgment')} of the collection"] * bool(self.collection),
        ]
        return f"{name_list(texts)}, on {counted(self.topics, 'topic')}" if texts else "none yet"


def count_current(database: Database, topic: str | None = None) -> JudgmentCounts:
    """The number of current judgments of relevance by source, of one topic or of all; labels of models do not count."""
    s = standing.c
    where = [s.aspect == RELEVANCE, s.side.in_(SIDES), ~s.repeat, s.grade.is_not(None), s.source != MODEL]
    where += [] if topic is None else [s.topic == topic]
    query = select(s.side, func.count()).where(*where).group_by(s.side)
    with database.reading() as connection:
        counts = {row[0]: row[1] for row in connection.execute(query)}
        topics = connection.execute(select(func.count(s.topic.distinct())).where(*where)).scalar_one()
    return JudgmentCounts(**{side: counts.get(side, 0) for side in SIDES}, topics=topics)


def topics_in_use(database: Database) -> set[str]:
    """The topics of events and rounds, without topics that only the collection's own judgments or clicks have."""
    own = select(events.c.topic).where(events.c.topic != "", events.c.source.not_in(SOURCE_SIDES)).distinct()
    with database.reading() as connection:
        rows = [*connection.execute(own), *connection.execute(select(items.c.topic).distinct())]
    return {row[0] for row in rows}


def count_changes_since(database: Database, place: int, of_models: bool = False) -> int:
    """The number of events after a place of the log that can change a result; events of models only if `of_models`."""
    query = select(func.count()).where(events.c.seq > place, events.c.kind.in_(COUNTED_KINDS))
    query = query.where(events.c.source != CLICKS)
    if not of_models:
        query = query.where(events.c.source.in_(PEOPLE))
    with database.reading() as connection:
        return int(connection.execute(query).scalar_one())


LONGEST_PASSAGE = 300  # characters in a table
ON_REQUEST = "with --sources clicks"  # how a current judgment from clicks counts


@dataclass(frozen=True, repr=False)
class Blame(Answer):
    """The history of a document: every event by time, and which of them are current."""

    topic: str
    document: str
    events: list[Event]
    current: set[str]
    withdrawn: set[str]
    versions: Mapping[str, Guidelines] = field(default_factory=dict)  # under which labels were given, by hash

    def content(self, how: Layout) -> Iterator[Part]:
        if not self.events:
            yield f"nobody has labelled document {self.document!r} for topic {self.topic!r}"
            return
        several = {event.aspect for event in self.events} != {RELEVANCE}
        marked = any(event.passage for event in self.events)
        named = any(self._meaning(event) for event in self.events)
        head = ["time", "assessor", "kind", *["aspect"] * several, "grade", *["meant"] * named, "current", "note"]
        head += [*["passage"] * marked, "from"]
        yield Table(head, [self._row(event, several, marked, named, how) for event in self.events])

    def _meaning(self, event: Event) -> GradeMeaning | None:
        """What the grade of a label meant under the version of the guidelines that its assessor saw; None if unknown."""
        version = self.versions.get(event.guideline) if event.aspect == RELEVANCE else None
        return None if version is None else version.meaning(event.grade)

    def _row(self, event: Event, several: bool, marked: bool, named: bool, how: Layout) -> list[str]:
        current = "yes" if event.id in self.current else "withdrawn" if event.id in self.withdrawn else ""
        current = ON_REQUEST if current == "yes" and event.source == CLICKS else current
        grade = how.undefined if event.grade is None else f"{event.grade:g}{'' if event.sure else '?'}"
        when = how.undefined if event.time < "0002" else event.time[:19].replace("T", " ")
        where = event.origin.partition(" sha256:")[0] or event.round or event.source
        aspect, passage = [event.aspect] * several, [_cut(event.passage)] * marked
        meaning = self._meaning(event)
        meant = [meaning.label if meaning else ""] * named
        assessor = event.assessor or (event.source if event.source in SOURCE_SIDES else how.undefined)
        head = [when, assessor, event.kind, *aspect, grade, *meant]
        return [*head, current, event.note, *passage, where]

    def plain(self, how: Layout) -> Any:
        rows = [
            event.row()
            | {"kind": event.kind, "stands": event.id in self.current, "withdrawn": event.id in self.withdrawn}
            | ({} if (meaning := self._meaning(event)) is None else {"meant": meaning._asdict()})
            for event in self.events
        ]
        return {"topic": self.topic, "document": self.document, "events": rows}


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_PASSAGE else f"{text[:LONGEST_PASSAGE]}…"


def blame(log: Log, topic: str, document: str) -> Blame:
    """The history of a document."""
    entries = about(log, topic, document)
    current = {each.event.id for each in entries if each.stands}
    gone = {each.event.id for each in entries if each.withdrawn}
    hashes = {each.event.guideline for each in entries if each.event.guideline}
    versions: dict[str, Guidelines] = {}
    if hashes and log.has_records():
        with log.reading() as transaction:
            versions = versions_by_hash(transaction, hashes)
    return Blame(topic, document, [each.event for each in entries], current, gone, versions)


def qrels(log: str | os.PathLike[str], name: str | None = None, own: Qrels | None = None) -> Qrels:
    """The qrels of a version of a log; without a name, the current judgments: the latest label of each document.

    `own` are the collection's own judgments, in place of those in the log. The `remarks` say how many documents have
    labels that contradict each other, and by which policy that was resolved.

    >>> import os, tempfile
    >>> from cranfield.judging import Event
    >>> path = os.path.join(tempfile.mkdtemp(), "labels.jsonl")
    >>> log = open_log(path)
    >>> _ = log.add([Event(topic="q", document="d", grade=g, assessor=who) for who, g in (("ann", 0), ("bob", 2))])
    >>> qrels(path)["q"], qrels(path).remarks
    ({'d': 2.0}, ['1 document has labels that contradict each other; resolved by latest'])
    """
    with closing(open_log(log, new=False)) as opened:
        if name is None:
            decided, where = decide_log(opened, own=own), opened.name
            if own is not None and len(decided) == decided.of_collection and len(own):
                return own  # as its file says it, with everything that a log cannot hold
        else:
            from cranfield.judging.versions import thaw

            decided, where = thaw(opened, name), f"{opened.name}@{name}"
    if not len(decided):
        raise DataError(f"{where}: no judgments: no current label of a person, and none of a collection")
    answer = Qrels(decided.grades, where)
    answer.remarks = decided.notes()
    return answer


PAGE = 50


class News(NamedTuple):
    """The events between two places of a log."""

    place: int
    events: list[Event]


def mine(log: Log, assessor: str, round: str | None = None, before: int | None = None, n: int = PAGE) -> list[LogEntry]:
    """An assessor's last current labels, the newest first; `before` is the last place of the previous page."""
    return log.find(assessor=assessor, round=round, before=before, n=n, current=True)


def about(log: Log, topic: str, document: str | None = None) -> list[LogEntry]:
    """All events about a document, or about a topic, by time."""
    return sorted(log.find(topic=topic, document=document), key=lambda each: (each.event.time, each.event.id))


def newer(log: Log, place: int) -> News:
    """The events after a place, and the place to continue from: each event is returned once."""
    up_to = max(place, log.place())
    return News(up_to, log.events(place, up_to))


def waiting(log: Log, place: int) -> int:
    """The number of events after a place."""
    return log.count(place)


def decide_log(
    log: Log,
    policy: str = Latest.name,
    settings: PolicySettings | None = None,
    gold: Mapping[Subject, float] | None = None,
    own: Qrels | None = None,
) -> DecidedGrades:
    """The grades of a log by a policy, as from `decide(log.current_events(), …)`, but read from fewer columns.

    `own` are the collection's own judgments, in place of those in the log.
    """
    how = settings or PolicySettings()
    if not goes_by_labels(policy):
        return decide(log.current_events(), policy, how, gold)
    if own is None:
        return decide_by_topic(log.grades_by_topic(how.aspect), policy, how, gold)
    return decide_labels(with_judgments(log.current_grades(how.aspect), own), policy, how, gold)
