"""What one assessor may know of a round: how far it is, and their own labels in it; nobody else's, and nothing of gold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, bindparam, func, literal, select, true

from cranfield.judge.event import RELEVANCE
from cranfield.judge.records import event_of
from cranfield.store.tables import events, items, places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql import Select

    from cranfield.judge.event import Event
    from cranfield.judge.plan import Round

ANSWERED = ("done", "extra")
ON = and_(items.c.round == places.c.round, items.c.item == places.c.item)
Subject = tuple[str, str]  # topic and document


class Tally(NamedTuple):
    """How far a round is. Gold and repeats count as all others do, lest the count tell which they are."""

    done: int
    all: int | None  # None: the strategy of the round says as it goes
    documents: int
    at_work: int  # people who hold a document


class Place(NamedTuple):
    """A document of a round as one assessor has it."""

    item: int
    repeat: bool
    state: str  # of their place; empty if they have none
    event: str


def tally(connection: Connection, plan: Round, now: str) -> Tally:
    """How far a round is."""
    here = places.c.round == plan.name
    done = connection.execute(select(func.count()).where(here, places.c.state.in_(ANSWERED))).scalar_one()
    out = and_(here, places.c.state == "leased", places.c.until >= now)
    at_work = connection.execute(select(func.count(places.c.assessor.distinct())).where(out)).scalar_one()
    by_role = select(items.c.role, func.count().label("n"), func.sum(items.c.overlap).label("labels"))
    roles = {row.role: row for row in connection.execute(by_role.where(items.c.round == plan.name).group_by("role"))}
    documents = sum(row.n for row in roles.values())
    if plan.strategy:
        return Tally(done, None, documents, at_work)
    wanted = roles["pool"].labels if "pool" in roles else 0
    gold = roles["gold"].n if "gold" in roles else 0
    people = len(plan.assessors) or _people(connection, plan.name) if gold else 0
    total = wanted + gold * max(1, people) + round(plan.repeat_share * wanted)
    return Tally(min(done, total), total, documents, at_work)


def _people(connection: Connection, name: str) -> int:
    """How many people have had a document of a round."""
    return int(
        connection.execute(select(func.count(places.c.assessor.distinct())).where(places.c.round == name)).scalar_one()
    )


WHO = places.c.round == bindparam("name"), places.c.assessor == bindparam("who")
COUNT = select(func.count()).where(*WHO, places.c.state.in_(ANSWERED))


def own_count(connection: Connection, name: str, assessor: str) -> int:
    """How many documents of a round somebody has answered."""
    return int(connection.execute(COUNT, {"name": name, "who": assessor}).scalar_one())


def own_labels(connection: Connection, name: str, assessor: str, most: int, first: int = 0) -> list[Event]:
    """What somebody says of the documents of a round, each document's last word, the newest first."""
    mine = places.c.round == name, places.c.assessor == assessor, places.c.state.in_((*ANSWERED, "skipped"))
    query = select(events).join(places, places.c.event == events.c.id).where(*mine)
    ordered = query.order_by(events.c.seq.desc()).limit(most).offset(first)
    return [event_of(row) for row in connection.execute(ordered).mappings()]


SECONDS = (
    select(events.c.seconds)
    .where(
        events.c.assessor == bindparam("who"),
        events.c.round == bindparam("name"),
        events.c.kind == "judgment",
        events.c.aspect == RELEVANCE,
        events.c.seconds.is_not(None),
    )
    .order_by(events.c.seq.desc())
    .limit(bindparam("most"))
)


class Own(NamedTuple):
    """How many documents of a round somebody has answered, and the seconds that the last ones were on their screen."""

    done: int
    seconds: list[float]


def _own() -> Select[Any]:
    """The count in each row, and a row for each document with seconds; one without where there is none."""
    last, one = SECONDS.subquery(), select(literal(1).label("one")).subquery()
    return select(COUNT.scalar_subquery().label("n"), last.c.seconds).select_from(one.outerjoin(last, true()))


OWN = _own()


def own_pace(connection: Connection, name: str, assessor: str, most: int) -> Own:
    """How far somebody is in a round, and how long their last documents took."""
    rows = connection.execute(OWN, {"name": name, "who": assessor, "most": most}).all()
    return Own(int(rows[0].n), [row.seconds for row in rows if row.seconds is not None])


def own_label(connection: Connection, name: str, assessor: str, subject: Subject) -> Event | None:
    """What somebody says of one document of a round; the later of two where it was asked again."""
    topic, document = subject
    query = (
        select(events)
        .join(places, places.c.event == events.c.id)
        .join(items, ON)
        .where(
            items.c.round == name, items.c.topic == topic, items.c.document == document, places.c.assessor == assessor
        )
    )
    row = connection.execute(query.order_by(events.c.seq.desc()).limit(1)).mappings().first()
    return None if row is None else event_of(row)


PLACES = (
    select(items.c.item, places.c.repeat, places.c.state, places.c.event)
    .outerjoin(places, and_(ON, places.c.assessor == bindparam("who")))
    .where(*(items.c[name] == bindparam(name) for name in ("round", "topic", "document")))
)


def own_places(connection: Connection, name: str, assessor: str, subject: Subject) -> list[Place]:
    """A document of a round as somebody has it, with or without a place; nothing if it is not in the round."""
    topic, document = subject
    rows = connection.execute(PLACES, {"round": name, "topic": topic, "document": document, "who": assessor})
    return [Place(row.item, bool(row.repeat), row.state or "", row.event or "") for row in rows]


def known_events(connection: Connection, ids: Sequence[str]) -> dict[str, Event]:
    """Events by their ids."""
    rows = connection.execute(select(events).where(events.c.id.in_(ids))).mappings() if ids else ()
    return {row["id"]: event_of(row) for row in rows}
