"""A log of judgments: a file of JSON lines, a SQLite file or a PostgreSQL database, behind the same words.

Events are only added; the same event twice is one. A round, a lease and a frozen version are records beside them
(`judge.records`), kept where the events are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cranfield.formats.judgments import Judgment
from cranfield.judge.event import RELEVANCE
from cranfield.judge.standing import said_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cranfield.judge.adding import Added
    from cranfield.judge.event import Event
    from cranfield.judge.records import Transaction
    from cranfield.judge.standing import Key, Said

T = TypeVar("T")


LABELS = ("judgment", "cannot-judge")


class Found(NamedTuple):
    """An event, its place in the log, whether it stands, and whether it was taken back."""

    place: int
    event: Event
    stands: bool
    withdrawn: bool


class Log(ABC):
    """Events and what stands of them; `name` says where, without a password."""

    name: str

    @abstractmethod
    def add(self, events: Sequence[Event]) -> Added:
        """Add events, all or none; they are on disk when this returns.

        An event whose id is there already is passed over if it says the same, and refused if it says something else.
        """

    @abstractmethod
    def add_if(self, event: Event, fits: Callable[[list[Event]], bool]) -> bool:
        """Add an event of no round if what stands about the same documents lets it; nobody else adds in between."""

    @abstractmethod
    def events(self, after: int = 0, up_to: int | None = None) -> list[Event]:
        """Every event in the order in which it came, from a place on."""

    @abstractmethod
    def place(self) -> int:
        """How far the log is complete: whatever comes later has a place behind this one.

        On a server an event may be seen already that is behind it, while somebody else still adds one before.
        """

    def count(self, after: int = 0) -> int:
        """How many events there are from a place on."""
        return len(self.events(after))

    def find(
        self,
        *,
        topic: str | None = None,
        document: str | None = None,
        assessor: str | None = None,
        round: str | None = None,
        before: int | None = None,
        n: int | None = None,
        standing: bool = False,
    ) -> list[Found]:
        """Events by what they are about and whose they are, the newest first; `standing`: only labels that stand."""
        events = self.events()
        stand = {event.id for event in self.standing().values()}
        gone = {event.refers for event in events if event.kind == "withdrawal"}
        found = [
            Found(place, event, event.id in stand, event.id in gone)
            for place, event in enumerate(events, 1)
            if topic in (None, event.topic)
            and (document is None or document in (event.document, event.other))
            and assessor in (None, event.assessor)
            and round in (None, event.round)
            and (before is None or place < before)
            and (not standing or (event.id in stand and event.kind in LABELS))
        ]
        return found[::-1][:n]

    def said(self, aspect: str = RELEVANCE) -> list[Said]:
        """The labels and adjudications of an aspect that stand, repeats left out, with no more than policies read."""
        return said_of(self.standing(), aspect)

    @abstractmethod
    def standing(self) -> dict[Key, Event]:
        """The events that stand."""

    @abstractmethod
    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run work on rounds, places and versions, alone; what it did is on disk when this returns."""

    @abstractmethod
    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Look at rounds, places and versions in one state."""

    def has_records(self) -> bool:
        """Whether there may be anything but events: a round, a version."""
        return True

    @abstractmethod
    def verify(self) -> None:
        """Read all of it; DataError where it is damaged, or a record is not what it was when it was written."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file or the connections."""

    def labels(self) -> list[Judgment]:
        """The judgments that stand, as pools and sessions read them: people's, of relevance, repeats left out.

        They come in the order of their times, adjudications last.
        """
        from cranfield.judge.policy import labels_of

        stand = self.standing()
        decided = [event for key, event in stand.items() if key.side == "adjudication" and key.aspect == RELEVANCE]
        return [
            Judgment(event.topic, event.document, event.grade or 0.0, event.assessor, event.time)
            for event in (*labels_of(stand), *decided)
        ]
