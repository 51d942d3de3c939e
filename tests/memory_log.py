"""A fourth kind of log, for the tests: records in a list.

It shows what a log has to implement (`judging.log.Log`), and runs in the promise suite with the three that come along.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from cranfield.judging import current_events
from cranfield.judging.log import AddedEvents, Log
from cranfield.judging.table_changes import RecordTables, Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cranfield.judging import Event
    from cranfield.judging.current_labels import LabelKey

T = TypeVar("T")
SCHEME = "memory:"
logs: dict[str, list[dict[str, Any]]] = {}


class MemoryLog(Log):
    """The records of a log in a list, which every log of the same name shares."""

    def __init__(self, name: str, clock: Callable[[], str] | None = None) -> None:
        self.name = name
        self._records = logs.setdefault(name, [])
        self._tables = RecordTables(clock)
        self._turn = threading.RLock()

    def add(self, events: Sequence[Event]) -> AddedEvents:
        return self.write(lambda transaction: transaction.add(events, self.name))

    def add_if(self, event: Event, fits: Callable[[list[Event]], bool]) -> bool:
        about = [each for each in self.events() if each.kind == "withdrawal" or each.subject == event.subject]
        if not fits(list(current_events(about).values())):
            return False
        self.add([event])
        return True

    def events(self, after: int = 0, up_to: int | None = None) -> list[Event]:
        return [record["event"] for record in self._records if "event" in record][after:up_to]

    def place(self) -> int:
        return len(self.events())

    def current_events(self) -> dict[LabelKey, Event]:
        return current_events(self.events())

    def write(self, work: Callable[[Transaction], T]) -> T:
        with self._turn, self._tables.transaction(self._records, Transaction.apply) as transaction:
            answer = work(transaction)
            self._records += transaction.done
        return answer

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self._turn, self._tables.transaction(self._records, Transaction.apply) as transaction:
            yield transaction

    def verify(self) -> None:
        """Nothing in memory can be damaged."""

    def close(self) -> None:
        self._tables.close()


def open_any_log(location: str, clock: Callable[[], str] | None = None) -> Log:
    """A log of any of the four kinds."""
    from cranfield.judging import open_log

    return MemoryLog(location, clock) if location.startswith(SCHEME) else open_log(location, clock=clock)
