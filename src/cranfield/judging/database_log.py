"""A log in SQLite or PostgreSQL: one transaction adds an event, updates the current labels and fills its assignment."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from sqlalchemy import bindparam, exists, func, literal_column, select

from cranfield.base.errors import DataError
from cranfield.judging.current_labels import EVERY_SIDE, GradedLabel, LabelKey, RatedLabel
from cranfield.judging.event import DEFAULTS, RELEVANCE, Event
from cranfield.judging.guidelines_history import guidelines_history
from cranfield.judging.log import LABELS, EventFilter, Log, LogEntry
from cranfield.judging.table_changes import ALONE, COMPLETE, Transaction, event_of
from cranfield.store import open_database, tables
from cranfield.store.database import DAMAGED
from cranfield.store.hashes import refuse_any_changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy.sql import Select


T = TypeVar("T")


LAST = "SELECT max(seq) FROM events"


@cache
def _find_query(fields: frozenset[str], role: str, paged: bool, current: bool) -> Select[Any]:
    """The query for events with given values of these fields; `role` is the column to search for a document."""
    e, s = tables.events.c, tables.standing.c
    same = s.side.in_(EVERY_SIDE), s.topic == e.topic, s.document.in_([e.document, e.other])
    stands = exists().where(*same, s.event == e.id)  # no join: what is looked for leads, and not what stands
    gone = exists().where(tables.withdrawn.c.id == e.id)
    query = select(tables.events, stands.label("stands"), gone.label("gone"))
    query = query.where(*(e[name] == bindparam(name) for name in sorted(fields)))
    if role:
        query = query.where(e[role] == bindparam("about"))
    if role == "other":
        query = query.where(e.other != literal_column("''"))  # as the index says it
    if paged:
        query = query.where(e.seq < bindparam("before"))
    if current:
        query = query.where(e.kind.in_(LABELS), stands)
    return query.order_by(e.seq.desc())


class DatabaseLog(Log):
    """Events in SQLite or PostgreSQL."""

    def __init__(self, location: str, clock: Callable[[], str] | None = None) -> None:
        self.database = open_database(location, clock)
        self.name = self.database.name

    def events(self, after: int = 0, up_to: int | None = None) -> list[Event]:
        with self.reading() as transaction:
            return transaction.events(after, up_to)

    def place(self) -> int:
        with self.database.reading() as connection:
            server = self.database.dialect == "postgresql"
            return connection.exec_driver_sql(COMPLETE if server else LAST).scalar() or 0

    def count(self, after: int = 0) -> int:
        with self.database.reading() as connection:
            return connection.execute(select(func.count()).where(tables.events.c.seq > after)).scalar_one()

    def find(self, **where: Unpack[EventFilter]) -> list[LogEntry]:
        document, before, n = where.get("document"), where.get("before"), where.get("n")
        names = "topic", "assessor", "round"
        fields: dict[str, Any] = {name: value for name in names if (value := where.get(name)) is not None}
        roles = ("document", "other") if document is not None else ("",)
        entries: dict[int, LogEntry] = {}
        with self.database.reading() as connection:
            for role in roles:
                query = _find_query(frozenset(fields), role, before is not None, where.get("current", False))
                values = fields | {"about": document, "before": before}
                for row in connection.execute(query if n is None else query.limit(n), values).mappings():
                    entries[row["seq"]] = LogEntry(row["seq"], event_of(row), bool(row["stands"]), bool(row["gone"]))
        return [entries[place] for place in sorted(entries, reverse=True)][:n]

    def current_grades(self, aspect: str = RELEVANCE) -> list[GradedLabel]:
        with self.reading() as transaction:
            return transaction.current_grades(aspect)

    def grades_by_topic(self, aspect: str = RELEVANCE) -> Iterator[Sequence[GradedLabel]]:
        with self.reading() as transaction:
            yield from transaction.grades_by_topic(aspect)

    def rated_labels(self) -> list[RatedLabel]:
        with self.reading() as transaction:
            return transaction.rated_labels()

    def current_events(self) -> dict[LabelKey, Event]:
        keys = [tables.standing.c[name].label(f"key_{name}") for name in LabelKey._fields]
        fields = [tables.events.c[name] for name in DEFAULTS]
        query = select(*keys, *fields).join(tables.events, tables.events.c.id == tables.standing.c.event)
        with self.database.reading() as connection:
            return {
                LabelKey(*(row[f"key_{name}"] for name in LabelKey._fields)): event_of(row)
                for row in connection.execute(query).mappings()
            }

    def write(self, work: Callable[[Transaction], T]) -> T:
        return self.database.write(lambda connection: work(Transaction(connection, self.database)))

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self.database.reading() as connection:
            yield Transaction(connection, self.database)

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        with self.database.reading(ALONE) as connection:
            yield Transaction(connection, self.database)

    def verify(self) -> None:
        damage = self.database.damage()
        if damage:
            more = f" (and {len(damage) - 1:,} problems more)" if damage[1:] else ""
            raise DataError(f"{self.name}: {DAMAGED}; SQLite says: {damage[0]}{more}")
        with self.reading() as transaction:
            refuse_any_changed(transaction.connection)
            guidelines_history(transaction)  # reading a version compares it with its hash

    def close(self) -> None:
        self.database.close()
