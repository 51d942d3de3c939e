"""Places: how rounds, leases and labels change the tables.

Every document has as many places as it is to get labels; a place is free, leased to somebody until a time of the
database's clock, or done. Labels and open leases can therefore never be more than places. What stands beside the count
(gold, repeats, labels that came too late, documents that somebody skipped) has places of its own behind those.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from sqlalchemy import and_, bindparam, delete, insert, select, update

from cranfield.errors import DataError
from cranfield.judge.event import RELEVANCE, instant
from cranfield.judge.gold import passed
from cranfield.judge.plan import OPEN, STATES, Asked, Places, Round, find_round
from cranfield.judge.policy import PEOPLE
from cranfield.shapes import Between, OneOf, Text
from cranfield.store.hashes import ROUND, VERSION, keep_documents, keep_hash
from cranfield.store.tables import events, items, places, rounds, versions, withdrawn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from sqlalchemy.engine import Connection, Row
    from sqlalchemy.sql import ColumnElement

    from cranfield.judge.event import Event

    class Place(Protocol):
        """A row that says which place it is, or was read with one."""

        round: str
        item: int
        slot: int


ANSWERS = ("judgment", "cannot-judge")
PLACE = ("round", "item", "slot")
FREE = {"assessor": None, "state": "free", "until": None, "event": None}


class Change(NamedTuple):
    """A kind of record: the class that declares its keys, and what it changes in the tables."""

    shape: type
    apply: Callable[[Connection, dict[str, Any]], None]


def _apply_round(connection: Connection, record: dict[str, Any]) -> None:
    name = record["name"]
    if connection.execute(select(rounds.c.name).where(rounds.c.name == name)).first():
        raise DataError(f"there is a round {name!r} already; give this one another --name")
    plan = {key: record[key] for key in Round.__dataclass_fields__ if key in record}
    values = {"name": name, "definition": json.dumps(plan), "state": OPEN, "created": record["at"]}
    connection.execute(insert(rounds).values(values))
    keep_hash(connection, ROUND, name, values["definition"])
    _add_items(connection, name, [Asked(*each) for each in record["items"]], 0)
    keep_documents(connection, name, len(record["items"]))


def _apply_items(connection: Connection, record: dict[str, Any]) -> None:
    _add_items(connection, record["round"], [Asked(*each) for each in record["items"]], record["first"])


def _add_items(connection: Connection, name: str, asked: list[Asked], first: int) -> None:
    numbered = list(enumerate(asked, first))
    if not numbered:
        return
    rows = [{"round": name, "item": number, **each._asdict()} for number, each in numbered]
    connection.execute(insert(items), rows)
    free = [
        {
            "round": name,
            "item": number,
            "slot": slot,
            "repeat": False,
            "state": "free",
            "topic": each.topic,
            "counted": True,
        }
        for number, each in numbered
        for slot in range(each.overlap)
    ]
    if free:
        connection.execute(insert(places), free)


HERE = and_(*(places.c[name] == bindparam(f"at_{name}") for name in PLACE))
LEASE = (
    update(places)
    .where(HERE)
    .values({name: bindparam(name) for name in ("assessor", "repeat", "until")} | {"state": "leased", "event": None})
)


def apply_leases(connection: Connection, records: Sequence[dict[str, Any]]) -> None:
    """Put somebody into places, which are made where they do not exist."""
    rows = [
        {f"at_{name}": record[name] for name in PLACE}
        | {name: record[name] for name in ("assessor", "repeat", "until")}
        for record in records
    ]
    if connection.execute(LEASE, rows).rowcount == len(rows):
        return
    for row, record in zip(rows, records, strict=True):
        if not connection.execute(LEASE, row).rowcount:
            _open_place(connection, record)


def _open_place(connection: Connection, record: dict[str, Any]) -> None:
    """A place beside the count, or of a document that a strategy named, leased."""
    where = items.c.round == record["round"], items.c.item == record["item"]
    item = connection.execute(select(items.c.topic, items.c.overlap).where(*where)).one()
    values = {name: record[name] for name in (*PLACE, "assessor", "repeat", "until")}
    beside = {"topic": item.topic, "counted": record["slot"] < item.overlap, "state": "leased"}
    connection.execute(insert(places), values | beside)


def _apply_lease(connection: Connection, record: dict[str, Any]) -> None:
    apply_leases(connection, [record])


def _apply_release(connection: Connection, record: dict[str, Any]) -> None:
    """Take somebody out of a place that they have not filled; one beside the count is no more."""
    where = [places.c[name] == record[name] for name in (*PLACE, "assessor")]
    here = and_(*where, places.c.state == "leased")
    connection.execute(delete(places).where(here, ~places.c.counted))
    connection.execute(update(places).where(here).values(FREE))


def _apply_state(connection: Connection, record: dict[str, Any]) -> None:
    values = {"state": record["state"]}
    connection.execute(update(rounds).where(rounds.c.name == record["round"]).values(values))


def _apply_version(connection: Connection, record: dict[str, Any]) -> None:
    """Write a frozen version down."""
    name = record["name"]
    if connection.execute(select(versions.c.name).where(versions.c.name == name)).first():
        raise DataError(f"there is a version {name!r} already; a frozen one does not change: choose another name")
    fields = {key: value for key, value in record.items() if key not in ("record", "kind")}
    values = {"name": name, "definition": json.dumps(fields), "created": record["created"]}
    connection.execute(insert(versions).values(values))
    keep_hash(connection, VERSION, name, values["definition"])


@dataclass(frozen=True, kw_only=True)
class RoundRecord(Round):
    """A round and its first documents, as a log writes them down."""

    items: tuple[Asked, ...]
    at: Text


class ItemsRecord(NamedTuple):
    """Documents that a strategy named."""

    round: Text
    first: Places
    items: tuple[Asked, ...]


class LeaseRecord(NamedTuple):
    """Somebody who is to judge a document until a time."""

    round: Text
    item: Places
    slot: Places
    assessor: Text
    repeat: bool
    until: Text


class ReleaseRecord(NamedTuple):
    """Somebody who gives a document back."""

    round: Text
    item: Places
    slot: Places
    assessor: Text


class StateRecord(NamedTuple):
    """A round that is paused, closed, or open again."""

    round: Text
    state: Annotated[str, OneOf(STATES)]


@dataclass(frozen=True)
class Version:
    """What was frozen."""

    name: Text
    policy: Text
    settings: dict[str, Any]
    place: Annotated[int, Between(0)]  # in the log: events up to here count
    hash: Text
    documents: Annotated[int, Between(0)]
    created: Text
    note: str = ""
    gold: list[str] | None = None  # the rounds whose gold counted; None: all there are


APPLIED = {
    "round": Change(RoundRecord, _apply_round),
    "items": Change(ItemsRecord, _apply_items),
    "lease": Change(LeaseRecord, _apply_lease),
    "release": Change(ReleaseRecord, _apply_release),
    "state": Change(StateRecord, _apply_state),
    "version": Change(Version, _apply_version),
}


FILL = update(places).where(HERE).values(state="done", event=bindparam("said"))
HELD = (
    select(*(places.c[name] for name in PLACE))
    .join(items, and_(items.c.round == places.c.round, items.c.item == places.c.item))
    .where(
        *(items.c[name] == bindparam(name) for name in ("round", "topic", "document")),
        *(places.c[name] == bindparam(name) for name in ("assessor", "repeat")),
        places.c.state == "leased",
    )
    .with_for_update(of=places)
)


def fill(connection: Connection, place: Place, event: Event) -> None:
    """Let an answer fill the place that its assessor holds."""
    at = {f"at_{name}": getattr(place, name) for name in PLACE}
    connection.execute(FILL, at | {"said": event.id})


def settle(connection: Connection, now: str, event: Event) -> None:
    """Give an event of a round its place: its own, a free one if the lease was over, else one beside the count."""
    if event.kind not in (*ANSWERS, "skip") or event.aspect != RELEVANCE:
        return
    plan = find_round(connection, event.round)[0]
    if event.kind in ANSWERS:
        who = {name: getattr(event, name) for name in ("round", "topic", "document", "assessor", "repeat")}
        held = connection.execute(HELD, who).first()
        if held is not None:
            plan.refuse(event.assessor, event.grade)
            fill(connection, held, event)
            return
    _settle_unheld(connection, now, event, plan)


def _settle_unheld(connection: Connection, now: str, event: Event, plan: Round) -> None:
    """Give an event a place that is not leased to its assessor; a model, to whom none is leased, takes none away."""
    item = _item(connection, event)
    if item is None:
        told = f"topic {event.topic!r}, document {event.document!r}"
        raise DataError(f"{told} is not in round {event.round!r}; leave the round away to judge it all the same")
    plan.refuse(event.assessor, event.grade)
    if event.source not in PEOPLE:
        return
    here = and_(places.c.round == item.round, places.c.item == item.item)
    rows = connection.execute(select(places).where(here).order_by(places.c.slot).with_for_update()).all()
    own = [row for row in rows if (row.assessor, bool(row.repeat)) == (event.assessor, event.repeat)]
    if event.kind == "skip":
        _skip(connection, event, item, own, _behind(rows, item))
    elif own and own[0].state == "skipped":
        connection.execute(delete(places).where(_at(own[0])))
        _late(connection, now, event, item, [row for row in rows if row is not own[0]])
    elif own:
        state = "extra" if own[0].state == "extra" else "done"
        said = _last_word(connection, event) or event.id
        connection.execute(update(places).where(_at(own[0])).values(state=state, event=said))
    else:
        qualified = not plan.after or passed(connection, find_round(connection, plan.after)[0], event.assessor) is None
        _late(connection, now, event, item, rows, may_count=qualified)


def owns(connection: Connection, event: Event) -> bool:
    """Whether the assessor of an event has a place of its document, filled, skipped or leased."""
    query = (
        select(places.c.slot)
        .join(items, and_(items.c.round == places.c.round, items.c.item == places.c.item))
        .where(
            *(items.c[name] == getattr(event, name) for name in ("round", "topic", "document")),
            *(places.c[name] == getattr(event, name) for name in ("assessor", "repeat")),
        )
    )
    return connection.execute(query).first() is not None


def _item(connection: Connection, event: Event) -> Row[Any] | None:
    """The document of a round that an event is about; nobody else opens or fills a place of it meanwhile."""
    c = items.c
    where = c.round == event.round, c.topic == event.topic, c.document == event.document
    return connection.execute(select(items).where(*where).with_for_update()).first()


def _at(place: Row[Any]) -> ColumnElement[bool]:
    return and_(places.c.round == place.round, places.c.item == place.item, places.c.slot == place.slot)


def _behind(rows: Sequence[Row[Any]], item: Row[Any]) -> int:
    """The next slot beside the count."""
    return max([int(item.overlap), *(int(row.slot) + 1 for row in rows)])


def _beside(item: Row[Any], slot: int) -> dict[str, Any]:
    """A place beside the count."""
    return {"round": item.round, "item": item.item, "slot": slot, "topic": item.topic, "counted": False}


def _late(
    connection: Connection, now: str, event: Event, item: Row[Any], rows: Sequence[Row[Any]], may_count: bool = True
) -> None:
    """A label of somebody who holds no place of the document."""
    values = {"assessor": event.assessor, "repeat": event.repeat, "event": event.id}
    for row in rows:
        free = row.state == "free" or (row.state == "leased" and row.until < now)
        if free and row.slot < item.overlap and may_count and not event.repeat:
            connection.execute(update(places).where(_at(row)).values(state="done", **values))
            return
    state = "done" if item.role == "gold" or event.repeat else "extra"
    connection.execute(insert(places).values(**_beside(item, _behind(rows, item)), **values, state=state))


def _skip(connection: Connection, event: Event, item: Row[Any], own: Sequence[Row[Any]], behind: int) -> None:
    """Free the place, and remember that this person does not want the document."""
    if own and own[0].state in ("done", "extra"):
        return
    for place in own:
        if place.slot < item.overlap:
            connection.execute(update(places).where(_at(place)).values(FREE))
        else:
            connection.execute(delete(places).where(_at(place)))
    values = {"assessor": event.assessor, "repeat": event.repeat, "state": "skipped", "event": event.id}
    connection.execute(insert(places).values(**_beside(item, behind), **values))


def _last_word(connection: Connection, event: Event) -> str | None:
    """The id of the last answer that somebody gave to a document of a round and did not take back."""
    c = events.c
    same = [c[name] == getattr(event, name) for name in ("topic", "document", "round", "assessor", "repeat")]
    query = select(c.id).where(*same, c.aspect == RELEVANCE, c.kind.in_(ANSWERS), c.id.not_in(select(withdrawn.c.id)))
    return connection.execute(query.order_by(c.time.desc(), c.id.desc()).limit(1)).scalar()


def unsettle(connection: Connection, now: str, event: Event) -> None:
    """An event was taken back: an answer before it has the place again, else its holder for a lease's time, then anybody."""
    item = _item(connection, event)
    if item is None:
        return
    here = places.c.round == item.round, places.c.item == item.item, places.c.event == event.id
    place = connection.execute(select(places).where(*here).with_for_update()).first()
    if place is None:
        return
    before = None if place.state == "skipped" else _last_word(connection, event)
    if before is not None:
        connection.execute(update(places).where(_at(place)).values(event=before))
    elif place.state in ("extra", "skipped"):
        connection.execute(delete(places).where(_at(place)))
    else:
        plan, _ = find_round(connection, place.round)
        until = instant(datetime.fromisoformat(now) + timedelta(seconds=plan.lease))
        connection.execute(update(places).where(_at(place)).values(state="leased", until=until, event=None))
