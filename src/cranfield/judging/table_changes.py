"""Transactions on the tables of a log: every change is a record, and each transaction remembers its records.

A record is an event, a round, a lease, a version or a question to an LLM judge. Every change goes through `apply`, so
that replaying a file of records gives the same tables as a database.

On a server, several writers add events at once. Event numbers are assigned before transactions commit: number 10 may
become visible after 11. Therefore each writer holds a lock until its transaction ends, whose key is the highest number
that was there at its start; its own numbers are higher. The log is complete up to the lowest key that anyone holds. A
server releases locks after the rows are visible, so rows that are read after the locks are there. SQLite has one writer at
a time and needs no such lock.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from functools import cache
from heapq import merge
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Table, Text, bindparam, delete, func, insert, literal_column, select, type_coerce, update
from sqlalchemy.dialects import postgresql, sqlite

from cranfield.base.errors import DataError
from cranfield.judging import guidelines
from cranfield.judging.assignments import APPLIED, apply_leases, fill, settle, unsettle
from cranfield.judging.current_labels import SOURCE_SIDES, GradedLabel, LabelKey, RatedLabel, key_of
from cranfield.judging.event import (
    DEFAULTS,
    RELEVANCE,
    AddedEvents,
    Event,
    new_events,
    refuse_unknown_withdrawals,
)
from cranfield.judging.llm import question_store
from cranfield.judging.round_plan import Round, RoundChange, all_rounds, changes_of, find_round
from cranfield.store import Database, open_database, tables
from cranfield.store.database import SERVERS_TIME
from cranfield.store.tables import Exact, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Column
    from sqlalchemy.engine import Connection, Row
    from sqlalchemy.sql import ColumnElement, Select

    from cranfield.judging.assignments import AssignmentKey


ADDING = 1668440430  # shared by all who add, had alone by who freezes a version
FLOOR = ADDING + 1  # its second key is the number above which somebody adds

TOGETHER = f"pg_advisory_xact_lock_shared({ADDING})"
ABOVE = f"pg_advisory_xact_lock_shared({FLOOR}, (SELECT coalesce(max(seq), 0) FROM events))"
ALONE = f"pg_advisory_xact_lock({ADDING})"

COMPLETE = f"""SELECT least(
    (SELECT coalesce(max(seq), 0) FROM events),
    (SELECT min(objid::bigint) FROM pg_locks
        WHERE locktype = 'advisory' AND classid = {FLOOR} AND objsubid = 2
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())))"""
"""The place up to which every event can be seen by who looks after this; numbers come from before the look at locks."""


T = TypeVar("T")
ROWS = 5_000  # fetched at a time
GRADED_SIDES = ("label", "adjudication", *SOURCE_SIDES)  # of current labels with grades
LABELLED = ("judgment", "cannot-judge", "adjudication")  # kinds of events that have or end a label
LABEL_FIELDS = ("topic", "document", "grade", "assessor", "time", "id", "kind", "aspect", "source", "repeat")
OTHER_FIELDS = tuple((name, value) for name, value in DEFAULTS.items() if name not in LABEL_FIELDS)
CHANGES = APPLIED | guidelines.APPLIED | question_store.APPLIED


def event_of(row: Mapping[Any, Any]) -> Event:
    """The event of a table row, not validated again."""
    event = object.__new__(Event)
    for name in DEFAULTS:
        object.__setattr__(event, name, row[name])
    return event


def _label_event(row: tuple[Any, ...]) -> Event:
    """The event of a stored row of `LABEL_FIELDS`; its other fields have their defaults."""
    values = row if "\\" not in "".join(map(str, row)) else plain_row(row)
    event = object.__new__(Event)
    for name, value in OTHER_FIELDS:
        object.__setattr__(event, name, value)
    for name, value in zip(LABEL_FIELDS, values, strict=True):
        object.__setattr__(event, name, value)
    return event


def stored(*columns: Column[Any]) -> Select[Any]:
    """A query for columns in their stored form."""
    query: Select[Any] = select(
        *(type_coerce(each, Text) if isinstance(each.type, Exact) else each for each in columns)
    )
    return query


def plain_row(row: Iterable[Any]) -> tuple[Any, ...]:
    """A stored row without escapes."""
    return tuple(plain(each) if isinstance(each, str) else each for each in row)


class Transaction:
    """One consistent state of a log for reading (`Log.reading`), or one change of it, all or nothing (`Log.write`).

    `connection` leads to the log's tables, in its database or in memory, and is only for queries in `judging`.
    `concurrent` says whether others may change the log at the same time. `done` holds the records applied so far.
    """

    def __init__(self, connection: Connection, database: Database, replaying: bool = False) -> None:
        self.connection = connection
        self.database = database
        self.concurrent = database.dialect == "postgresql"
        self.replaying = replaying  # earlier records, in any order, instead of new ones
        self.done: list[dict[str, Any]] = []
        self._now: str | None = None

    @property
    def now(self) -> str:
        """The log's time when the transaction first asked for it."""
        if self._now is None:
            self._now = self.database.now(self.connection)
        return self._now

    def apply(self, record: dict[str, Any]) -> None:
        """Apply a record: an event, a round, its items, a lease, a release, a state, a version, or a question to an LLM judge."""
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

    def take(self, event: Event, assignment: AssignmentKey) -> bool:
        """Add the label for an assignment that its assessor holds; False if the log has an event of that id."""
        values = {name: getattr(event, name) for name in DEFAULTS} | {"received": self.now}
        if self.connection.execute(ONCE[self.database.dialect], values).first() is None:
            return False
        self._make_current(event)
        fill(self.connection, assignment, event)
        self.done.append({"event": event, "at": self.now})
        return True

    def add(self, events: Sequence[Event], name: str) -> AddedEvents:
        """Add the events that are new, all or none; `name` is the log's, for error messages."""
        self._with_others()
        new, repeated = new_events(events, self.events_by_id([event.id for event in events]), name)
        withdrawn = self.events_by_id([event.refers for event in new if event.kind == "withdrawal"])
        refuse_unknown_withdrawals(new, withdrawn, name)
        for event in sorted(new, key=lambda event: event.kind == "withdrawal"):
            self.apply({"event": event, "at": self.now})
        return AddedEvents(len(new), repeated)

    def try_to_add(self, event: Event, name: str) -> None:
        """Add an event; a DataError undoes this event alone, not the rest of the transaction."""
        before, own = len(self.done), self.connection.begin_nested()
        try:
            self.add([event], name)
        except DataError:
            own.rollback()
            del self.done[before:]
            raise
        own.commit()

    def place(self) -> int:
        """The place of the last event."""
        return self.connection.execute(select(func.max(tables.events.c.seq))).scalar() or 0

    def read_events(self, query: Select[Any]) -> list[Event]:
        """The events that a query selects from their table."""
        return [event_of(row) for row in self.connection.execute(query).mappings()]

    def events(self, after: int = 0, up_to: int | None = None) -> list[Event]:
        """The events after a place and up to another, in the order in which they were added."""
        seq = tables.events.c.seq
        query = select(tables.events).where(seq > after).order_by(seq)
        return self.read_events(query if up_to is None else query.where(seq <= up_to))

    def current_grades(self, aspect: str = RELEVANCE) -> list[GradedLabel]:
        """The current labels, adjudications and judgments of other sources of an aspect, with the fields that policies read."""
        return list(chain.from_iterable(self.grades_by_topic(aspect)))

    def grades_by_topic(self, aspect: str = RELEVANCE) -> Iterator[list[GradedLabel]]:
        """`current_grades` topic by topic, so that nobody needs a million labels in memory."""
        sides = [self._grades_of(side, aspect) for side in GRADED_SIDES]
        for _, groups in groupby(merge(*sides, key=itemgetter(0)), itemgetter(0)):
            yield [label for _, labels in groups for label in labels]

    def _grades_of(self, side: str, aspect: str) -> Iterator[tuple[str, list[GradedLabel]]]:
        """The current labels of a side by topic, in the order of the stored ids of topics."""
        c = tables.standing.c
        decision = side == "adjudication"  # its key has no assessor
        assessor = tables.events.c.assessor if decision else c.assessor
        query = stored(c.topic, c.document, c.grade, assessor, c.time, c.event, c.source, c.side)
        if decision:
            query = query.join(tables.events, tables.events.c.id == c.event)
        query = query.where(c.side == side, c.aspect == aspect, c.grade.is_not(None))
        if side == "label":
            query = query.where(~c.repeat)
        for topic, rows in groupby(self.stored_rows(query.order_by(c.topic)), itemgetter(0)):
            yield (
                topic,
                [
                    GradedLabel._make(row if "\\" not in row[0] + row[1] + row[3] + row[5] else plain_row(row))
                    for row in rows
                ],
            )

    def rated_labels(self) -> list[RatedLabel]:
        """The current labels of all aspects with repeats; grouped by document, then by time."""
        e, s = tables.events.c, tables.standing.c
        query = stored(*(e[name] for name in RatedLabel._fields)).join(tables.standing, s.event == e.id)
        rows = self.stored_rows(query.where(s.side == "label").order_by(s.topic, s.document, e.time, e.id))
        return [
            RatedLabel._make(
                row if "\\" not in row[0] + row[1] + row[3] + row[5] + row[8] + row[11] else plain_row(row)
            )
            for row in rows
        ]

    def label_events_by_topic(self, up_to: int, aspect: str) -> Iterator[list[Event]]:
        """By topic, the events of an aspect up to a place that were not withdrawn by then, with the fields that labels have.

        Those are the events from which the current labels at that place are computed.
        """
        c = tables.events.c
        refers = select(c.refers).where(c.kind == "withdrawal", c.seq <= up_to)
        gone = set(self.connection.execute(refers).scalars())
        query = stored(*(c[name] for name in LABEL_FIELDS)).where(
            c.seq <= up_to, c.aspect == aspect, c.kind.in_(LABELLED)
        )
        for _, rows in groupby(self.stored_rows(query.order_by(c.topic)), itemgetter(0)):
            yield [event for event in map(_label_event, rows) if event.id not in gone]

    def stored_rows(self, query: Select[Any]) -> Iterator[tuple[Any, ...]]:
        """The rows of a query as they are stored, a few thousand at a time: SQLAlchemy's rows would take twice as long."""
        with closing(self.connection.execute(query)) as answer:
            while rows := answer.cursor.fetchmany(ROWS):
                yield from rows

    def find_round(self, name: str = "") -> tuple[Round, str]:
        """A round and its state; without a name the only one that is open."""
        return find_round(self.connection, name)

    def round_changes(self, name: str) -> list[RoundChange]:
        """The changes of a round, the oldest first."""
        return changes_of(self.connection, name)

    def all_rounds(self) -> list[tuple[Round, str]]:
        """Every round and its state, the oldest first."""
        return all_rounds(self.connection)

    def round_rows(self) -> Sequence[Row[Any]]:
        """The row of every round (name, state, created), with `over`: the earliest end of its leases.

        On a server the query also takes the lock of those who add events, and reads the server's time.
        """
        rows = self.connection.execute(_listed(self.concurrent, self.database.tells_time)).all()
        if rows and self.database.tells_time and self._now is None:
            self._now = rows[0].now
        return rows

    def _with_others(self) -> None:
        """Let others add events at the same time, but prevent a freeze meanwhile (see `alone`)."""
        if not self.concurrent:
            return
        row = self.connection.exec_driver_sql(f"SELECT {TOGETHER}, {ABOVE}, {SERVERS_TIME}").one()
        if self.database.tells_time and self._now is None:
            self._now = row[2]

    def alone(self) -> None:
        """Wait until nobody else adds events: every event before the last place is then visible."""
        if self.concurrent:
            self.connection.exec_driver_sql(f"SELECT {ALONE}")

    def events_by_id(self, ids: list[str]) -> dict[str, Event]:
        """The events of these ids that the log holds."""
        parts = tables.one_of(tables.events.c.id, ids)
        return {event.id: event for here in parts for event in self.read_events(select(tables.events).where(here))}

    def _take(self, event: Event, at: str) -> None:
        values = {name: getattr(event, name) for name in DEFAULTS} | {"received": at}
        self.connection.execute(insert(tables.events), values)
        if event.kind == "withdrawal":
            self._withdraw(event.refers, at)
            return
        if self.replaying and self._gone(event.id):  # it was taken back by a line before its own
            return
        self._make_current(event)
        if event.round:
            settle(self.connection, at, event)

    def _gone(self, name: str) -> bool:
        """Whether an event was withdrawn."""
        gone = select(tables.withdrawn.c.id).where(tables.withdrawn.c.id == name)
        return self.connection.execute(gone).first() is not None

    def _make_current(self, event: Event) -> None:
        """Make an event current if it is later than the current one of its key."""
        key = key_of(event)
        if key is None:
            return
        values = {"event": event.id, "time": event.time, "grade": event.grade, "source": event.source}
        later = LATER[self.database.dialect]
        if self.connection.execute(later, {**key._asdict(), **values}).first() is not None:
            return
        where = _at(key)
        stands = select(tables.standing.c.time, tables.standing.c.event).where(*where).with_for_update()
        before = self.connection.execute(stands).one()
        if before.time == event.time and before.event < event.id:  # ids are compared as text, not as they are stored
            self.connection.execute(update(tables.standing).where(*where).values(values))

    def _withdraw(self, refers: str, at: str) -> None:
        """Withdraw an event: an earlier label becomes current again, and the assignment returns to its assessor."""
        if self._gone(refers):
            return
        self.connection.execute(insert(tables.withdrawn), {"id": refers})
        event = self.events_by_id([refers]).get(refers)
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
                self._make_current(earlier)

    def of_subject(self, event: Event) -> list[Event]:
        """The events about the same topic and document that were not withdrawn."""
        c = tables.events.c
        one = c.document.in_([event.document, event.other]) if event.other else c.document == event.document
        not_withdrawn = c.id.not_in(select(tables.withdrawn.c.id))
        return self.read_events(select(tables.events).where(c.topic == event.topic, one, not_withdrawn))


class RecordTables:
    """The tables of a log that is not a database, computed in memory from its records."""

    def __init__(self, clock: Callable[[], str] | None) -> None:
        self._clock = clock
        self._database: Database | None = None
        self._applied = 0  # records that the tables hold

    @contextmanager
    def transaction(self, records: list[T], replay: Callable[[Transaction, T], None]) -> Iterator[Transaction]:
        """A transaction on tables that hold these records; an error undoes it.

        `replay` applies one earlier record. Records that the log adds to the list during the transaction belong to the
        transaction.
        """
        if self._database is None:
            self._database = open_database(":memory:", self._clock)
        before = self._applied
        try:
            with self._database.in_words(), self._database.engine.begin() as connection:
                earlier = Transaction(connection, self._database, replaying=True)
                for record in records[before:]:
                    replay(earlier, record)
                self._applied = len(records)
                yield Transaction(connection, self._database)
                self._applied = len(records)
        except BaseException:
            self._applied = before
            raise

    def close(self) -> None:
        """Forget the tables."""
        if self._database is not None:
            self._database.close()
        self._database, self._applied = None, 0


def _once(insert: Any, table: Table, *key: str) -> Any:
    """A statement that inserts a row unless its key exists; it returns a row only if it inserted."""
    return insert(table).on_conflict_do_nothing(index_elements=key).returning(literal_column("1"))


def _later(insert: Any) -> Any:
    """A statement that makes an event current unless its key has an event as late; it returns a row if it did."""
    new = insert(tables.standing)
    columns = {name: new.excluded[name] for name in ("event", "time", "grade", "source")}
    before = tables.standing.c.time < new.excluded.time
    return new.on_conflict_do_update(index_elements=LabelKey._fields, set_=columns, where=before).returning(
        literal_column("1")
    )


def _new_event() -> Any:
    """SQLite's insert for new events; it avoids a conflict, which would use up a number and leave a gap in the places."""
    c = tables.events.c
    names = [*DEFAULTS, "received"]
    values = select(*(bindparam(name, type_=c[name].type) for name in names))
    there = select(c.id).where(c.id == bindparam("id")).exists()
    return sqlite.insert(tables.events).from_select(names, values.where(~there)).returning(literal_column("1"))


ONCE = {
    "sqlite": _new_event(),
    "postgresql": _once(postgresql.insert, tables.events, "id"),
}
LATER = {"sqlite": _later(sqlite.insert), "postgresql": _later(postgresql.insert)}
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
    """The query for every round, with locks and the server's time."""
    query = select(*(tables.rounds.c[name] for name in ("name", "state", "created", "changed")), OVER.label("over"))
    if locked:
        query = query.add_columns(literal_column(TOGETHER), literal_column(ABOVE))
    return query.add_columns(literal_column(SERVERS_TIME).label("now")) if timed else query


def _at(key: LabelKey) -> list[ColumnElement[bool]]:
    return [tables.standing.c[name] == value for name, value in key._asdict().items()]
