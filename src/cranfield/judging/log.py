"""The interface of a log of judgments, which a file of JSON lines, SQLite and PostgreSQL implement.

Events are only added, and adding is idempotent. Rounds, leases, versions and the questions of LLM judges are records
that lie where the events are. A log that is not a database computes their tables in memory
(`judging.table_changes.RecordTables`). Code outside `judging` and `store` uses the methods here and functions of
`judging`, never SQL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypedDict, TypeVar, Unpack

from cranfield.judging.current_labels import (
    GradedLabel,
    LabelKey,
    RatedLabel,
    current_events,
    graded_labels,
    rated_labels,
)
from cranfield.judging.event import RELEVANCE, Event
from cranfield.judging.event import AddedEvents as AddedEvents
from cranfield.judging.policies import judgments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cranfield.formats.label_files import Judgment
    from cranfield.judging.table_changes import Transaction as Transaction
    from cranfield.judging.version_cache import VersionCache

T = TypeVar("T")


LABELS = ("judgment", "cannot-judge")


class LogEntry(NamedTuple):
    """An event, its place in the log, whether it is current, and whether it was withdrawn."""

    place: int
    event: Event
    stands: bool
    withdrawn: bool


class EventFilter(TypedDict, total=False):
    """The filters of `Log.find`: subject, assessor, round, events before a place, the last n, only current labels."""

    topic: str | None
    document: str | None
    assessor: str | None
    round: str | None
    before: int | None
    n: int | None
    current: bool


class Log(ABC):
    """A log of judgments; `name` is its location without the password."""

    name: str
    version_cache: VersionCache | None = None  # of the workspace that the log belongs to

    def add(self, events: Sequence[Event]) -> AddedEvents:
        """Add events, all or none; they are on disk when this returns.

        An event whose id is already in the log is skipped if its content is the same, and refused if it differs.
        """
        return self.write(lambda transaction: transaction.add(events, self.name))

    def add_if(self, event: Event, fits: Callable[[list[Event]], bool]) -> bool:
        """Add an event outside rounds if `fits` accepts the current labels of its document; other writers wait meanwhile."""

        def work(transaction: Transaction) -> bool:
            transaction.alone()
            if not fits(list(current_events(transaction.of_subject(event)).values())):
                return False
            transaction.add([event], self.name)
            return True

        return self.write(work)

    @abstractmethod
    def events(self, after: int = 0, up_to: int | None = None) -> list[Event]:
        """The events after a place, in the order in which they were added."""

    @abstractmethod
    def place(self) -> int:
        """The place up to which the log is complete: later events get a higher place.

        On a server, events after this place may already be visible while somebody else still adds one before it.
        """

    def count(self, after: int = 0) -> int:
        """The number of events after a place."""
        return len(self.events(after))

    def find(self, **where: Unpack[EventFilter]) -> list[LogEntry]:
        """Events by subject, assessor and round, the newest first; `current`: only current labels."""
        events, before = self.events(), where.get("before")
        current = {event.id for event in self.current_events().values()}
        gone = {event.refers for event in events if event.kind == "withdrawal"}
        entries = [
            LogEntry(place, event, event.id in current, event.id in gone)
            for place, event in enumerate(events, 1)
            if where.get("topic") in (None, event.topic)
            and where.get("document") in (None, event.document, event.other)
            and where.get("assessor") in (None, event.assessor)
            and where.get("round") in (None, event.round)
            and (before is None or place < before)
            and (not where.get("current") or (event.id in current and event.kind in LABELS))
        ]
        return entries[::-1][: where.get("n")]

    def current_grades(self, aspect: str = RELEVANCE) -> list[GradedLabel]:
        """The current labels, adjudications and collection judgments of an aspect, with the fields that policies read."""
        return graded_labels(self.current_events(), aspect)

    def grades_by_topic(self, aspect: str = RELEVANCE) -> Iterator[Sequence[GradedLabel]]:
        """`current_grades` in parts; all labels of a topic are in one part. A database reads one topic at a time."""
        yield self.current_grades(aspect)

    def rated_labels(self) -> list[RatedLabel]:
        """The current labels of all aspects with repeats, without adjudications; grouped by document, then by time."""
        return rated_labels(self.current_events())

    @abstractmethod
    def current_events(self) -> dict[LabelKey, Event]:
        """The current events by their keys."""

    @abstractmethod
    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run a change of rounds, assignments or versions in a transaction; it is on disk when this returns."""

    @abstractmethod
    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction to read rounds, assignments and versions in one consistent state."""

    def snapshot(self) -> AbstractContextManager[Transaction]:
        """Like `reading`, but for long reading while others add events: the state has every event up to its position."""
        return self.reading()

    def has_records(self) -> bool:
        """Whether there may be anything but events, such as a round or a version."""
        return True

    @abstractmethod
    def verify(self) -> None:
        """Read the whole log; DataError if it is damaged, or a record was changed after it was written."""

    @abstractmethod
    def close(self) -> None:
        """Close the file or the connections."""

    def labels(self) -> list[Judgment]:
        """People's current judgments of relevance, without repeats, for pools and sessions.

        They come in the order of their times, adjudications last.
        """
        return judgments_of(self.current_grades())
