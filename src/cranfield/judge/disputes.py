"""Documents on which people differ and nobody has decided: read from what stands once, then kept up with what comes.

A million labels take seconds to go through, and a lead asks after each decision: so the list is held in memory, and only
the documents of events that came since are looked at again.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from cranfield.judge.event import RELEVANCE
from cranfield.judge.looking import newer
from cranfield.judge.policy import PEOPLE
from cranfield.judge.records import MANY, event_of
from cranfield.store.tables import events, standing, withdrawn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql import ColumnElement

    from cranfield.judge.database import DatabaseLog
    from cranfield.judge.event import Event

Subject = tuple[str, str]  # topic and document
RECENT = 500  # of somebody's last events, those in which their last decisions are looked for


class Dispute(NamedTuple):
    """A document on which people differ; the widest apart sorts first."""

    nearness: float  # the lowest grade less the highest
    topic: str
    document: str

    @property
    def subject(self) -> Subject:
        """Topic and document."""
        return self.topic, self.document


class Disputes:
    """The documents whose labels contradict, without those that are decided."""

    def __init__(self, log: DatabaseLog) -> None:
        self.log = log
        self._lock = threading.Lock()
        self._place: int | None = None
        self._loader: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._order: list[Dispute] = []
        self._known: dict[Subject, Dispute] = {}

    def ready(self, patience: float) -> bool:
        """Whether they are read; if not, that is begun, and waited for as long as patience lasts."""
        with self._lock:
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            if self._place is not None:
                return True
            if self._loader is None:
                self._loader = threading.Thread(target=self._load, daemon=True)
                self._loader.start()
            loader = self._loader
        loader.join(patience)
        if not loader.is_alive() and self._failure is not None:
            return self.ready(patience)
        return not loader.is_alive()

    def _load(self) -> None:
        try:
            place = self.log.place()  # what comes while we read is looked at again
            with self.log.reading() as transaction:
                found = _disputes(transaction.connection)
            with self._lock:
                self._order = sorted(found)
                self._known = {each.subject: each for each in found}
                self._place = place
        except BaseException as error:
            self._failure = error
        finally:
            self._loader = None

    def refresh(self, also: Iterable[Subject] = ()) -> None:
        """Look again at the documents of which something was said since, and at some others."""
        with self._lock:
            if self._place is None:
                return
            news = newer(self.log, self._place)
            with self.log.reading() as transaction:
                subjects = _subjects(transaction.connection, news.events) | set(also)
                found = {each.subject: each for each in _disputes(transaction.connection, subjects)} if subjects else {}
            for subject in subjects:
                self._put(subject, found.get(subject))
            self._place = news.place

    def _put(self, subject: Subject, dispute: Dispute | None) -> None:
        before = self._known.pop(subject, None)
        if before is not None:
            del self._order[bisect_left(self._order, before)]
        if dispute is not None:
            self._known[subject] = dispute
            insort(self._order, dispute)

    def open(self, topic: str = "", without: Sequence[Subject] = (), n: int | None = None) -> list[Dispute]:
        """The first n, the widest apart first; of one topic if it is named."""
        with self._lock:
            answer: list[Dispute] = []
            for each in self._order:
                if n is not None and len(answer) >= n:
                    break
                if (not topic or each.topic == topic) and each.subject not in without:
                    answer.append(each)
            return answer

    def by_topic(self) -> dict[str, int]:
        """How many there are of each topic."""
        with self._lock:
            return dict(sorted(Counter(topic for topic, _ in self._known).items()))


def _disputes(connection: Connection, subjects: Iterable[Subject] | None = None) -> list[Dispute]:
    """The disputes of all documents, or of some."""
    if subjects is None:
        return _some(connection, ())
    by_topic: dict[str, list[str]] = {}
    for topic, document in subjects:
        by_topic.setdefault(topic, []).append(document)
    answer = []
    for topic, documents in by_topic.items():
        for start in range(0, len(documents), MANY):
            part = documents[start : start + MANY]
            answer += _some(connection, (standing.c.topic == topic, standing.c.document.in_(part)))
    return answer


def _some(connection: Connection, where: tuple[ColumnElement[bool], ...]) -> list[Dispute]:
    """One walk along the key of what stands: a document's labels lie side by side there."""
    lowest, highest = func.min(events.c.grade), func.max(events.c.grade)
    decision = standing.alias()
    decided = select(decision.c.event).where(
        decision.c.side == "adjudication",
        decision.c.topic == standing.c.topic,
        decision.c.document == standing.c.document,
        decision.c.aspect == RELEVANCE,
    )
    query = (
        select(standing.c.topic, standing.c.document, lowest, highest)
        .join(events, events.c.id == standing.c.event)
        .where(
            standing.c.side == "label",
            *where,
            standing.c.aspect == RELEVANCE,
            standing.c.repeat == False,  # noqa: E712  a column
            events.c.grade.is_not(None),
            events.c.source.in_(PEOPLE),
            ~decided.exists(),
        )
        .group_by(standing.c.topic, standing.c.document)
        .having(lowest < highest)
    )
    return [Dispute(low - high, topic, document) for topic, document, low, high in connection.execute(query)]


def _subjects(connection: Connection, news: Sequence[Event]) -> set[Subject]:
    """What events are about; a withdrawal is about what it takes back."""
    found = {(event.topic, event.document) for event in news if event.kind != "withdrawal"}
    refers = [event.refers for event in news if event.kind == "withdrawal"]
    for start in range(0, len(refers), MANY):
        query = select(events.c.topic, events.c.document).where(events.c.id.in_(refers[start : start + MANY]))
        found |= {(topic, document) for topic, document in connection.execute(query)}
    return found


def opinions(connection: Connection, topic: str, document: str) -> list[Event]:
    """What people say of a document, cannot-judge among it."""
    query = (
        select(events)
        .join(standing, standing.c.event == events.c.id)
        .where(
            standing.c.side == "label",
            standing.c.topic == topic,
            standing.c.document == document,
            standing.c.aspect == RELEVANCE,
            standing.c.repeat == False,  # noqa: E712  a column
            events.c.source.in_(PEOPLE),
        )
    )
    return [event_of(row) for row in connection.execute(query).mappings()]


def decision(connection: Connection, topic: str, document: str) -> Event | None:
    """What was decided of a document."""
    query = (
        select(events)
        .join(standing, standing.c.event == events.c.id)
        .where(
            standing.c.side == "adjudication",
            standing.c.topic == topic,
            standing.c.document == document,
            standing.c.aspect == RELEVANCE,
        )
    )
    row = connection.execute(query).mappings().first()
    return None if row is None else event_of(row)


def decided_count(connection: Connection) -> int:
    """How many documents are decided."""
    query = select(func.count()).where(standing.c.side == "adjudication", standing.c.aspect == RELEVANCE)
    return int(connection.execute(query).scalar_one())


def last_decisions(connection: Connection, assessor: str, n: int) -> list[Event]:
    """The last decisions of somebody, the newest first, of those among their last events that were not taken back."""
    recent = select(events).where(events.c.assessor == assessor).order_by(events.c.seq.desc()).limit(RECENT)
    said = [event_of(row) for row in connection.execute(recent).mappings()]
    made = [event for event in said if event.kind == "adjudication" and event.aspect == RELEVANCE]
    gone = select(withdrawn.c.id).where(withdrawn.c.id.in_([event.id for event in made]))
    taken_back = set(connection.execute(gone).scalars())
    latest = {(event.topic, event.document): event for event in reversed(made) if event.id not in taken_back}
    return [event for event in made if latest.get((event.topic, event.document)) is event][:n]
