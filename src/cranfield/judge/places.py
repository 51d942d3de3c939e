"""Places: how rounds, leases and labels change the tables.

Every document has as many places as it is to get labels; a place is free, leased to somebody until a time of the
database's clock, or done. Labels and open leases can therefore never be more than places. What stands beside the count
(gold, repeats, labels that came too late, documents that somebody skipped) has places of its own behind those.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, func, insert, or_, select, update

from cranfield.errors import DataError
from cranfield.judge.event import instant
from cranfield.judge.plan import OPEN, Asked, Round, find_round
from cranfield.store.tables import items, places, rounds, versions

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.engine import Connection, Row
    from sqlalchemy.sql import ColumnElement

    from cranfield.judge.event import Event

ANSWERS = ("judgment", "cannot-judge")


def _apply_round(connection: Connection, record: dict[str, Any]) -> None:
    name = record["name"]
    if connection.execute(select(rounds.c.name).where(rounds.c.name == name)).first():
        raise DataError(f"there is a round {name!r} already; give this one another --name")
    plan = {key: record[key] for key in Round.__dataclass_fields__}
    values = {"name": name, "definition": json.dumps(plan), "state": OPEN, "created": record["at"]}
    connection.execute(insert(rounds).values(values))
    _add_items(connection, name, [Asked(*each) for each in record["items"]], 0)


def _apply_items(connection: Connection, record: dict[str, Any]) -> None:
    _add_items(connection, record["round"], [Asked(*each) for each in record["items"]], record["first"])


def _add_items(connection: Connection, name: str, asked: list[Asked], first: int) -> None:
    numbered = list(enumerate(asked, first))
    if not numbered:
        return
    rows = [{"round": name, "item": number, **each._asdict()} for number, each in numbered]
    connection.execute(insert(items), rows)
    free = [
        {"round": name, "item": number, "slot": slot, "repeat": False, "state": "free"}
        for number, each in numbered
        for slot in range(each.overlap)
    ]
    if free:
        connection.execute(insert(places), free)


def _apply_lease(connection: Connection, record: dict[str, Any]) -> None:
    """Put somebody into a place, which is made where it does not exist."""
    where = [places.c[name] == record[name] for name in ("round", "item", "slot")]
    values = {"assessor": record["assessor"], "repeat": record["repeat"], "state": "leased", "until": record["until"]}
    changed = connection.execute(update(places).where(*where).values(**values, event=None)).rowcount
    if not changed:
        at = {name: record[name] for name in ("round", "item", "slot")}
        connection.execute(insert(places).values(**at, **values))


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


APPLIED: dict[str, Callable[[Connection, dict[str, Any]], None]] = {
    "round": _apply_round,
    "items": _apply_items,
    "lease": _apply_lease,
    "state": _apply_state,
    "version": _apply_version,
}


def settle(connection: Connection, now: str, event: Event) -> None:
    """Give an event of a round its place: its own, a free one if the lease was over, else one beside the count."""
    name = event.round
    if event.kind not in (*ANSWERS, "skip"):
        return
    item = connection.execute(
        select(items)
        .where(items.c.round == name, items.c.topic == event.topic, items.c.document == event.document)
        .with_for_update()
    ).first()
    if item is None:
        told = f"topic {event.topic!r}, document {event.document!r}"
        raise DataError(f"{told} is not in round {name!r}; leave the round away to judge it all the same")
    scale = find_round(connection, name)[0].scale
    if scale and event.grade is not None and event.grade not in scale:
        shown = ", ".join(f"{grade:g}" for grade in scale)
        raise DataError(f"round {name!r} grades by {shown}; found {event.grade:g}")
    here = and_(places.c.round == name, places.c.item == item.item)
    own = and_(here, places.c.assessor == event.assessor, places.c.repeat == event.repeat)
    place = connection.execute(select(places).where(own).with_for_update()).first()
    if event.kind == "skip":
        _skip(connection, event, item, place)
        return
    if place is not None and place.state != "skipped":
        state = place.state if place.state == "extra" else "done"
        connection.execute(update(places).where(own).values(state=state, event=event.id))
        return
    if place is not None:
        connection.execute(delete(places).where(own))
    _late(connection, now, event, item, here)


def _late(connection: Connection, now: str, event: Event, item: Row[Any], here: ColumnElement[bool]) -> None:
    """A label of somebody who holds no place of the document."""
    over = and_(places.c.state == "leased", places.c.until < now)
    within = and_(here, places.c.slot < item.overlap, or_(places.c.state == "free", over))
    free = None
    if not event.repeat:
        free = connection.execute(
            select(places).where(within).order_by(places.c.slot).limit(1).with_for_update()
        ).first()
    values = {"assessor": event.assessor, "repeat": event.repeat, "event": event.id}
    if free is not None:
        at = and_(here, places.c.slot == free.slot)
        connection.execute(update(places).where(at).values(state="done", **values))
        return
    last = connection.execute(select(func.max(places.c.slot)).where(here)).scalar()
    slot = 0 if last is None else last + 1
    state = "done" if item.role == "gold" or event.repeat else "extra"
    values |= {"round": event.round, "item": item.item, "slot": slot, "state": state}
    connection.execute(insert(places).values(values))


def _skip(connection: Connection, event: Event, item: Row[Any], place: Row[Any] | None) -> None:
    """Free the place, and remember that this person does not want the document."""
    here = and_(places.c.round == event.round, places.c.item == item.item)
    if place is not None and place.state in ("done", "extra"):
        return
    if place is not None:
        at = and_(here, places.c.slot == place.slot)
        if place.slot < item.overlap:
            connection.execute(update(places).where(at).values(assessor=None, state="free", until=None))
        else:
            connection.execute(delete(places).where(at))
    last = connection.execute(select(func.max(places.c.slot)).where(here)).scalar()
    values = {"assessor": event.assessor, "repeat": event.repeat, "state": "skipped", "event": event.id}
    slot = max(item.overlap, 0 if last is None else last + 1)
    connection.execute(insert(places).values(round=event.round, item=item.item, slot=slot, **values))


def unsettle(connection: Connection, now: str, refers: str) -> None:
    """An event was taken back: its place is its holder's again for the time of a lease, then anybody's."""
    row = connection.execute(select(places).where(places.c.event == refers)).first()
    if row is None:
        return
    at = and_(places.c.round == row.round, places.c.item == row.item, places.c.slot == row.slot)
    if row.state in ("extra", "skipped"):
        connection.execute(delete(places).where(at))
        return
    plan, _ = find_round(connection, row.round)
    until = instant(datetime.fromisoformat(now) + timedelta(seconds=plan.lease))
    connection.execute(update(places).where(at).values(state="leased", until=until, event=None))
