"""What changes in a log's tables, and how: one transaction applies records, and remembers which.

A record is an event, or what is kept beside the events: a round, a lease, a version, a question to a
model. Every change goes through `apply`, so that a file of records replayed gives the tables that a database has.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, func, insert, literal_column, select, update
from sqlalchemy.dialects import postgresql, sqlite

from cranfield.errors import DataError
from cranfield.judge import locks
from cranfield.judge.adding import Added, refuse_unknown_withdrawals, sorted_out
from cranfield.judge.event import DEFAULTS, Event
from cranfield.judge.models import kept
from cranfield.judge.places import APPLIED, apply_leases, fill, settle, unsettle
from cranfield.judge.standing import Key, key_of
from cranfield.store import tables
from cranfield.store.database import SERVERS_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Table
    from sqlalchemy.engine import Connection, Row
    from sqlalchemy.sql import ColumnElement, Select

    from cranfield.judge.places import Place
    from cranfield.store import Database

MANY = 500  # values in one statement
CHANGES = APPLIED | kept.APPLIED


def event_of(row: Mapping[Any, Any]) -> Event:
    """The event that a row of the table holds: it was looked at when it came, and is not looked at again."""
    event = object.__new__(Event)
    for name in DEFAULTS:
        object.__setattr__(event, name, row[name])
    return event


class Transaction:
    """Records applied together; `done` are those so far."""

    def __init__(self, connection: Connection, database: Database, replaying: bool = False) -> None:
        self.connection = connection
        self.database = database
        self.replaying = replaying  # records of before, in any order, and not what happens now
        self.done: list[dict[str, Any]] = []
        self._now: str | None = None

    @property
    def now(self) -> str:
        """The database's time at the first look."""
        if self._now is None:
            self._now = self.database.now(self.connection)
        return self._now

    def apply(self, record: dict[str, Any]) -> None:
        """Change the tables as a record says."""
        if "event" in record:
            self._take(record["event"], record["at"])
        else:
            CHANGES[record["record"]].apply(self.connection, record)
        self.done.append(record)

    def lease(self, records: list[dict[str, Any]]) -> None:
        """Apply records of leases together."""
        if records:
            apply_leases(self.connection, records)
            self.done += records

    def take(self, event: Event, place: Place) -> bool:
        """Add an answer whose place is held by its assessor; False if there is an event of that id."""
        values = {name: getattr(event, name) for name in DEFAULTS} | {"received": self.now}
        if self.connection.execute(self._once(tables.events), values).first() is None:
            return False
        self._stand(event)
        fill(self.connection, place, event)
        self.done.append({"event": event, "at": self.now})
        return True

    def add(self, events: Sequence[Event], name: str) -> Added:
        """Add events that are new; the same again is passed over."""
        self._with_others()
        known = self.known([event.id for event in events])
        new, repeated = sorted_out(events, known, name)
        refers = self.known([event.refers for event in new if event.kind == "withdrawal"])
        kinds = {event.id: event.kind for event in (*refers.values(), *new)}
        refuse_unknown_withdrawals(new, kinds.get, name)
        for event in sorted(new, key=lambda event: event.kind == "withdrawal"):
            self.apply({"event": event, "at": self.now})
        return Added(len(new), repeated)

    def try_to_add(self, event: Event, name: str) -> None:
        """Add an event; where it is refused nothing of it is left, and all else of the transaction is."""
        before, own = len(self.done), self.connection.begin_nested()
        try:
            self.add([event], name)
        except DataError:
            own.rollback()
            del self.done[before:]
            raise
        own.commit()

    def place(self) -> int:
        """How far the log goes."""
        return self.connection.execute(select(func.max(tables.events.c.seq))).scalar() or 0

    def events(self, up_to: int) -> list[Event]:
        """The events up to a place."""
        query = select(tables.events).where(tables.events.c.seq <= up_to).order_by(tables.events.c.seq)
        return [event_of(row) for row in self.connection.execute(query).mappings()]

    def rounds(self) -> Sequence[Row[Any]]:
        """Every round with the end of the lease that is over first; the time and the locks of who adds come along."""
        rows = self.connection.execute(_listed(self.database.dialect == "postgresql", self.database.tells_time)).all()
        if rows and self.database.tells_time and self._now is None:
            self._now = rows[0].now
        return rows

    def _with_others(self) -> None:
        """Others may add at the same time, but nobody may freeze a version in between (see `alone`)."""
        if self.database.dialect != "postgresql":
            return
        row = self.connection.exec_driver_sql(f"SELECT {locks.TOGETHER}, {locks.ABOVE}, {SERVERS_TIME}").one()
        if self.database.tells_time and self._now is None:
            self._now = row[2]

    def alone(self) -> None:
        """Wait until nobody adds: every event before the last has come."""
        if self.database.dialect == "postgresql":
            self.connection.exec_driver_sql(f"SELECT {locks.ALONE}")

    def _once(self, table: Table) -> Any:
        """Insert a row unless its key is there; it says so by a row, or none."""
        return ONCE[self.database.dialect, table.name]

    def known(self, ids: list[str]) -> dict[str, Event]:
        """The events of some ids that are there."""
        answer = {}
        for start in range(0, len(ids), MANY):
            query = select(tables.events).where(tables.events.c.id.in_(ids[start : start + MANY]))
            for row in self.connection.execute(query).mappings():
                answer[row["id"]] = event_of(row)
        return answer

    def _take(self, event: Event, at: str) -> None:
        values = {name: getattr(event, name) for name in DEFAULTS} | {"received": at}
        self.connection.execute(insert(tables.events), values)
        if event.kind == "withdrawal":
            self._withdraw(event.refers, at)
            return
        if self.replaying and self._gone(event.id):  # it was taken back by a line before its own
            return
        self._stand(event)
        if event.round:
            settle(self.connection, at, event)

    def _gone(self, name: str) -> bool:
        """Whether an event was taken back."""
        gone = select(tables.withdrawn.c.id).where(tables.withdrawn.c.id == name)
        return self.connection.execute(gone).first() is not None

    def _stand(self, event: Event) -> None:
        """Let an event stand, if it is later than the one in its place."""
        key = key_of(event)
        if key is None:
            return
        values = {**key._asdict(), "event": event.id, "time": event.time}
        before = None
        while before is None:  # again where what stood was taken back between two looks
            if self.connection.execute(self._once(tables.standing), values).first() is not None:
                return
            where = _at(key)
            before = self.connection.execute(
                select(tables.standing.c.time, tables.standing.c.event).where(*where).with_for_update()
            ).first()
        if (before.time, before.event) < (event.time, event.id):
            self.connection.execute(update(tables.standing).where(*where).values(event=event.id, time=event.time))

    def _withdraw(self, refers: str, at: str) -> None:
        """Take an event back: what stood before it stands again, and its place is free for its holder."""
        if self._gone(refers):
            return
        self.connection.execute(insert(tables.withdrawn), {"id": refers})
        event = self.known([refers]).get(refers)
        if event is None:
            return
        self._unstand(event)
        if event.round:
            unsettle(self.connection, at, event)

    def _unstand(self, event: Event) -> None:
        key = key_of(event)
        if key is None:
            return
        where = _at(key)
        before = self.connection.execute(select(tables.standing.c.event).where(*where).with_for_update()).first()
        if before is None or before.event != event.id:
            return
        self.connection.execute(delete(tables.standing).where(*where))
        for earlier in self.of_subject(event):
            if key_of(earlier) == key:
                self._stand(earlier)

    def of_subject(self, event: Event) -> list[Event]:
        """The events about the same topic and document that were not taken back."""
        c = tables.events.c
        one = c.document.in_([event.document, event.other]) if event.other else c.document == event.document
        query = select(tables.events).where(c.topic == event.topic, one, c.id.not_in(select(tables.withdrawn.c.id)))
        return [event_of(row) for row in self.connection.execute(query).mappings()]


def _once(insert: Any, table: Table) -> Any:
    key = {"events": ["id"], "standing": list(Key._fields)}[table.name]
    return insert(table).on_conflict_do_nothing(index_elements=key).returning(literal_column("1"))


def _new_event() -> Any:
    """SQLite's way for events: an insert that meets its id uses up a number, and places in files count numbers."""
    c = tables.events.c
    names = [*DEFAULTS, "received"]
    given = select(*(bindparam(name, type_=c[name].type) for name in names))
    there = select(c.id).where(c.id == bindparam("id")).exists()
    return sqlite.insert(tables.events).from_select(names, given.where(~there)).returning(literal_column("1"))


ONCE = {
    (dialect, table.name): _once(insert, table)
    for dialect, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert))
    for table in (tables.events, tables.standing)
}
ONCE["sqlite", "events"] = _new_event()
OVER = (
    select(func.min(tables.places.c.until))
    .where(
        tables.places.c.round == tables.rounds.c.name,
        tables.places.c.state == literal_column("'leased'"),  # as the index says it
        tables.places.c.counted,
    )
    .scalar_subquery()
)


@cache
def _listed(locked: bool, timed: bool) -> Select[Any]:
    """Every round, with locks and the server's time."""
    query = select(*(tables.rounds.c[name] for name in ("name", "state", "created")), OVER.label("over"))
    if locked:
        query = query.add_columns(literal_column(locks.TOGETHER), literal_column(locks.ABOVE))
    return query.add_columns(literal_column(SERVERS_TIME).label("now")) if timed else query


def _at(key: Key) -> list[ColumnElement[bool]]:
    return [tables.standing.c[name] == value for name, value in key._asdict().items()]
