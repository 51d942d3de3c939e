"""A log in a database: each event, what stands because of it, and the place it fills in one transaction."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from cranfield.judge.event import DEFAULTS, Event
from cranfield.judge.log import Log
from cranfield.judge.records import Transaction, event_of
from cranfield.judge.standing import Key, standing
from cranfield.store import open_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy.engine import Connection

    from cranfield.judge.adding import Added

T = TypeVar("T")


class DatabaseLog(Log):
    """Events in SQLite or PostgreSQL."""

    def __init__(self, location: str, clock: Callable[[], str] | None = None) -> None:
        self.database = open_database(location, clock)
        self.name = self.database.name

    def add(self, events: Sequence[Event]) -> Added:
        def work(connection: Connection) -> Added:
            return Transaction(connection, self.database).add(events, self.name)

        return self.database.write(work)

    def add_if(self, event: Event, fits: Callable[[list[Event]], bool]) -> bool:
        def work(connection: Connection) -> bool:
            transaction = Transaction(connection, self.database)
            transaction.alone()
            if not fits(list(standing(transaction.of_subject(event)).values())):
                return False
            transaction.add([event], self.name)
            return True

        return self.database.write(work)

    def events(self, after: int = 0) -> list[Event]:
        from sqlalchemy import select

        from cranfield.store.tables import events

        with self.database.reading() as connection:
            rows = connection.execute(select(events).where(events.c.seq > after).order_by(events.c.seq)).mappings()
            return [event_of(row) for row in rows]

    def place(self) -> int:
        from sqlalchemy import func, select

        from cranfield.store.tables import events

        with self.database.reading() as connection:
            return connection.execute(select(func.max(events.c.seq))).scalar() or 0

    def standing(self) -> dict[Key, Event]:
        from sqlalchemy import select

        from cranfield.store import tables

        keys = [tables.standing.c[name].label(f"key_{name}") for name in Key._fields]
        fields = [tables.events.c[name] for name in DEFAULTS]
        query = select(*keys, *fields).join(tables.events, tables.events.c.id == tables.standing.c.event)
        with self.database.reading() as connection:
            return {
                Key(*(row[f"key_{name}"] for name in Key._fields)): event_of(row)
                for row in connection.execute(query).mappings()
            }

    def write(self, work: Callable[[Transaction], T]) -> T:
        return self.database.write(lambda connection: work(Transaction(connection, self.database)))

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self.database.reading() as connection:
            yield Transaction(connection, self.database)

    def close(self) -> None:
        self.database.close()
