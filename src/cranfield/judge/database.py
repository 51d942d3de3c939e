"""A log in a database: each event, what stands because of it, and the place it fills in one transaction."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from cranfield.errors import DataError
from cranfield.judge.event import DEFAULTS, RELEVANCE, Event
from cranfield.judge.locks import COMPLETE
from cranfield.judge.log import LABELS, Found, Log
from cranfield.judge.records import Transaction, event_of
from cranfield.judge.standing import SIDES, Key, Said, standing
from cranfield.store import open_database
from cranfield.store.database import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql import Select

    from cranfield.judge.adding import Added

T = TypeVar("T")


LAST = "SELECT max(seq) FROM events"


@cache
def _found(wanted: frozenset[str], role: str, paged: bool, standing: bool) -> Select[Any]:
    """The query for events by some fields, and by a document in one of its roles."""
    from sqlalchemy import bindparam, exists, literal_column, select

    from cranfield.store import tables

    e, s = tables.events.c, tables.standing.c
    same = s.side.in_(sorted(set(SIDES.values()))), s.topic == e.topic, s.document.in_([e.document, e.other])
    stands = exists().where(*same, s.event == e.id)  # no join: what is looked for leads, and not what stands
    gone = exists().where(tables.withdrawn.c.id == e.id)
    query = select(tables.events, stands.label("stands"), gone.label("gone"))
    query = query.where(*(e[name] == bindparam(name) for name in sorted(wanted)))
    if role:
        query = query.where(e[role] == bindparam("about"))
    if role == "other":
        query = query.where(e.other != literal_column("''"))  # as the index says it
    if paged:
        query = query.where(e.seq < bindparam("before"))
    if standing:
        query = query.where(e.kind.in_(LABELS), stands)
    return query.order_by(e.seq.desc())


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

    def events(self, after: int = 0, up_to: int | None = None) -> list[Event]:
        from sqlalchemy import select

        from cranfield.store.tables import events

        query = select(events).where(events.c.seq > after).order_by(events.c.seq)
        if up_to is not None:
            query = query.where(events.c.seq <= up_to)
        with self.database.reading() as connection:
            return [event_of(row) for row in connection.execute(query).mappings()]

    def place(self) -> int:
        with self.database.reading() as connection:
            server = self.database.dialect == "postgresql"
            return connection.exec_driver_sql(COMPLETE if server else LAST).scalar() or 0

    def count(self, after: int = 0) -> int:
        from sqlalchemy import func, select

        from cranfield.store.tables import events

        with self.database.reading() as connection:
            return connection.execute(select(func.count()).where(events.c.seq > after)).scalar_one()

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
        given = {"topic": topic, "assessor": assessor, "round": round}
        wanted = {name: value for name, value in given.items() if value is not None}
        roles = ("document", "other") if document is not None else ("",)
        found: dict[int, Found] = {}
        with self.database.reading() as connection:
            for role in roles:
                query = _found(frozenset(wanted), role, before is not None, standing)
                values = wanted | {"about": document, "before": before}
                for row in connection.execute(query if n is None else query.limit(n), values).mappings():
                    found[row["seq"]] = Found(row["seq"], event_of(row), bool(row["stands"]), bool(row["gone"]))
        return [found[place] for place in sorted(found, reverse=True)][:n]

    def said(self, aspect: str = RELEVANCE) -> list[Said]:
        from sqlalchemy import Text, and_, or_, select, type_coerce

        from cranfield.store import tables
        from cranfield.store.exact import plain

        e, s = tables.events.c, tables.standing.c
        texts = [
            type_coerce(column, Text) for column in (e.topic, e.document, e.assessor, e.time, e.id, e.source, s.side)
        ]
        query = (
            select(*texts[:2], e.grade, *texts[2:])
            .join(tables.events, e.id == s.event)
            .where(s.aspect == aspect, e.grade.is_not(None))
            .where(or_(s.side == "adjudication", and_(s.side == "label", ~s.repeat)))
        )
        with self.database.reading() as connection:
            rows = connection.execute(query).cursor.fetchall()
        return [
            Said._make(row)
            if "\\" not in row[0] + row[1] + row[3] + row[5]
            else Said._make(plain(each) if isinstance(each, str) else each for each in row)
            for row in rows
        ]

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

    def verify(self) -> None:
        from cranfield.store.hashes import refuse_any_changed

        damage = self.database.damage()
        if damage:
            more = f" (and {len(damage) - 1:,} problems more)" if damage[1:] else ""
            raise DataError(f"{self.name}: {DAMAGED}; SQLite says: {damage[0]}{more}")
        with self.database.reading() as connection:
            refuse_any_changed(connection)

    def close(self) -> None:
        self.database.close()
