"""A log of judgments: a file of JSON lines, a SQLite file or a PostgreSQL database, behind the same words.

Events are only added; the same event twice is one. A round, a lease and a frozen version are records beside them
(`judge.records`), kept where the events are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from cranfield.formats.judgments import Judgment
from cranfield.judge.event import RELEVANCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cranfield.judge.adding import Added
    from cranfield.judge.event import Event
    from cranfield.judge.records import Transaction
    from cranfield.judge.standing import Key

T = TypeVar("T")


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
    def events(self, after: int = 0) -> list[Event]:
        """Every event in the order in which it came, from a place on."""

    @abstractmethod
    def place(self) -> int:
        """How far the log goes: the `after` that would give no event."""

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
