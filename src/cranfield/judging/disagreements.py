"""Documents on which people disagree and nobody has adjudicated: read from the current labels once, then kept up to date.

Reading a million labels takes seconds, and the page of disputes is loaded after each decision. So the list stays in
memory, and only the documents of new events are read again.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from cranfield.judging.event import RELEVANCE, Event
from cranfield.judging.log_queries import newer
from cranfield.judging.policies import PEOPLE, Subject
from cranfield.store.tables import events, one_of, rows_with, standing, withdrawn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy.sql import ColumnElement

    from cranfield.judging.database_log import DatabaseLog
    from cranfield.judging.table_changes import Transaction

RECENT = 500  # of somebody's last events, those in which their last decisions are looked for
OF_PEOPLE = (standing.c.repeat == False, standing.c.source.in_(PEOPLE))  # noqa: E712  a column


class Dispute(NamedTuple):
    """A document on which people disagree; the largest difference sorts first."""

    nearness: float  # the lowest grade less the highest
    topic: str
    document: str

    @property
    def subject(self) -> Subject:
        """Topic and document."""
        return self.topic, self.document


class Disputes:
    """The documents with contradicting labels that nobody has adjudicated."""

    def __init__(self, log: DatabaseLog) -> None:
        self.log = log
        self._lock = threading.Lock()
        self._place: int | None = None
        self._loader: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._order: list[Dispute] = []
        self._by_subject: dict[Subject, Dispute] = {}

    def ready(self, patience: float) -> bool:
        """Whether the list is loaded; if not, load it in a thread and wait up to `patience` seconds."""
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
                disputes = _disputes(transaction)
            with self._lock:
                self._order = sorted(disputes)
                self._by_subject = {each.subject: each for each in disputes}
                self._place = place
        except BaseException as error:
            self._failure = error
        finally:
            self._loader = None

    def refresh(self, also: Iterable[Subject] = ()) -> None:
        """Update the disputes about documents of new events, and about the documents `also`."""
        with self._lock:
            if self._place is None:
                return
            news = newer(self.log, self._place)
            with self.log.reading() as transaction:
                subjects = _subjects(transaction, news.events) | set(also)
                disputes = {each.subject: each for each in _disputes(transaction, subjects)} if subjects else {}
            for subject in subjects:
                self._put(subject, disputes.get(subject))
            self._place = news.place

    def _put(self, subject: Subject, dispute: Dispute | None) -> None:
        before = self._by_subject.pop(subject, None)
        if before is not None:
            del self._order[bisect_left(self._order, before)]
        if dispute is not None:
            self._by_subject[subject] = dispute
            insort(self._order, dispute)

    def open(self, topic: str = "", without: Sequence[Subject] = (), n: int | None = None) -> list[Dispute]:
        """The first n disputes, the largest difference first; of one topic if given; `without` leaves documents out."""
        with self._lock:
            fitting = (each for each in self._order if topic in ("", each.topic) and each.subject not in without)
            return list(islice(fitting, n))

    def by_topic(self) -> dict[str, int]:
        """The number of disputes per topic."""
        with self._lock:
            return dict(sorted(Counter(topic for topic, _ in self._by_subject).items()))


def _disputes(transaction: Transaction, subjects: Iterable[Subject] | None = None) -> list[Dispute]:
    """The disputes about these documents; None: about all."""
    if subjects is None:
        return _some(transaction, ())
    by_topic: dict[str, list[str]] = {}
    for topic, document in subjects:
        by_topic.setdefault(topic, []).append(document)
    return [
        dispute
        for topic, documents in by_topic.items()
        for here in one_of(standing.c.document, documents)
        for dispute in _some(transaction, (standing.c.topic == topic, here))
    ]


def _some(transaction: Transaction, where: tuple[ColumnElement[bool], ...]) -> list[Dispute]:
    """The disputes among the current labels that satisfy the conditions."""
    lowest, highest = func.min(standing.c.grade), func.max(standing.c.grade)
    decision = standing.alias()
    decided = select(decision.c.event).where(
        decision.c.side == "adjudication",
        decision.c.topic == standing.c.topic,
        decision.c.document == standing.c.document,
        decision.c.aspect == RELEVANCE,
    )
    query = (
        select(standing.c.topic, standing.c.document, lowest, highest)
        .where(
            standing.c.side == "label",
            *where,
            standing.c.aspect == RELEVANCE,
            *OF_PEOPLE,
            standing.c.grade.is_not(None),
            ~decided.exists(),
        )
        .group_by(standing.c.topic, standing.c.document)
        .having(lowest < highest)
    )
    rows = transaction.connection.execute(query)
    return [Dispute(low - high, topic, document) for topic, document, low, high in rows]


def _subjects(transaction: Transaction, news: Sequence[Event]) -> set[Subject]:
    """The documents that events are about; for a withdrawal, that of the withdrawn event."""
    subjects = {(event.topic, event.document) for event in news if event.kind != "withdrawal"}
    refers = [event.refers for event in news if event.kind == "withdrawal"]
    rows = rows_with(transaction.connection, select(events.c.topic, events.c.document), events.c.id, refers)
    return subjects | {(row.topic, row.document) for row in rows}


def _current(
    transaction: Transaction, side: str, topic: str, document: str, *where: ColumnElement[bool]
) -> list[Event]:
    c = standing.c
    here = c.side == side, c.topic == topic, c.document == document, c.aspect == RELEVANCE
    return transaction.read_events(select(events).join(standing, c.event == events.c.id).where(*here, *where))


def opinions(transaction: Transaction, topic: str, document: str) -> list[Event]:
    """People's current labels of a document, including cannot-judge."""
    return _current(transaction, "label", topic, document, *OF_PEOPLE)


def decision(transaction: Transaction, topic: str, document: str) -> Event | None:
    """The adjudication of a document."""
    return next(iter(_current(transaction, "adjudication", topic, document)), None)


def decided_count(transaction: Transaction) -> int:
    """The number of adjudicated documents."""
    query = select(func.count()).where(standing.c.side == "adjudication", standing.c.aspect == RELEVANCE)
    return int(transaction.connection.execute(query).scalar_one())


def last_decisions(transaction: Transaction, assessor: str, n: int) -> list[Event]:
    """An assessor's last adjudications that were not withdrawn, the newest first."""
    recent = select(events).where(events.c.assessor == assessor).order_by(events.c.seq.desc()).limit(RECENT)
    own_events = transaction.read_events(recent)
    decisions = [event for event in own_events if event.kind == "adjudication" and event.aspect == RELEVANCE]
    gone = select(withdrawn.c.id).where(withdrawn.c.id.in_([event.id for event in decisions]))
    taken_back = set(transaction.connection.execute(gone).scalars())
    latest = {(event.topic, event.document): event for event in reversed(decisions) if event.id not in taken_back}
    return [event for event in decisions if latest.get((event.topic, event.document)) is event][:n]
