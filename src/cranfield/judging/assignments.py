"""Assignments: how rounds, leases and labels change the tables `items` and `places`.

Every document has as many assignments (rows of `places`) as it should get labels. An assignment is free, leased to an
assessor until a time of the database's clock, or done. So labels and open leases never exceed the assignments. Gold, repeats,
late labels and skipped documents get additional assignments, which do not count (`counted` is false).

A change of a round adds and removes assignments. Labels stay and count. A document that is being judged may be finished:
its lease no longer counts, its label is an extra one, and the lease is not renewed.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol

from sqlalchemy import and_, bindparam, case, delete, func, insert, select, update

from cranfield.base.errors import DataError
from cranfield.base.schemas import Between, OneOf, Text
from cranfield.judging.event import RELEVANCE, Event, instant
from cranfield.judging.policies import PEOPLE
from cranfield.judging.round_plan import (
    OPEN,
    PRIORITY,
    STATES,
    ItemCount,
    NoLease,
    Round,
    RoundChange,
    RoundItem,
    find_round,
    opened_round,
    positions,
)
from cranfield.store.hashes import CHANGE, ROUND, VERSION, keep_documents, keep_hash
from cranfield.store.tables import events, items, places, pseudonyms, round_changes, rounds, versions, withdrawn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Table
    from sqlalchemy.engine import Connection, Row
    from sqlalchemy.sql import ColumnElement

    class AssignmentKey(Protocol):
        """A row with the key of an assignment."""

        round: str
        item: int
        slot: int


ON = and_(items.c.round == places.c.round, items.c.item == places.c.item)


ANSWERS = ("judgment", "cannot-judge")
ANOTHER_NAME = "a frozen one does not change: choose another name"


class GoldAnswer(NamedTuple):
    """An assessor's answer to gold, a document whose grade is known."""

    assessor: str
    topic: str
    document: str
    right: float
    grade: float | None  # None: could not judge


def answers_to_gold(connection: Connection, name: str) -> list[GoldAnswer]:
    """All answers to the gold of a round."""
    query = (
        select(places.c.assessor, items.c.topic, items.c.document, items.c.grade, events.c.grade.label("said"))
        .join(items, ON)
        .join(events, events.c.id == places.c.event)
        .where(places.c.round == name, places.c.state == "done", items.c.role == "gold")
        .order_by(events.c.seq)
    )
    return [GoldAnswer(*row) for row in connection.execute(query)]


def why_unqualified(connection: Connection, after: str, assessor: str) -> NoLease | None:
    """Why an assessor has not passed a qualifying round; None if they have, or if no round needs to be passed.

    The answers count as they were when the last document was first answered: later changes neither pass nor fail, because
    somebody who changes one answer after the other would learn the grades of gold. For the same reason there are no counts.
    """
    if not after:
        return None
    plan = find_round(connection, after)[0]
    here = (getattr(events.c, name) == getattr(items.c, name) for name in ("round", "topic", "document"))
    answer = events.c.kind.in_((*ANSWERS, "skip")), events.c.aspect == RELEVANCE, ~events.c.repeat
    query = (
        select(items.c.item, items.c.grade, events.c.seq, events.c.kind, events.c.grade.label("said"))
        .outerjoin(events, and_(*here, *answer, events.c.assessor == assessor))
        .where(items.c.round == plan.name, items.c.role == "gold")
        .order_by(events.c.seq)
    )
    answers: dict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(query):
        answers[row.item].append(row)
    if any(rows[0].seq is None for rows in answers.values()):
        return NoLease(f"{assessor} first judges all documents of round {plan.name!r}")
    end = max((rows[0].seq for rows in answers.values()), default=0)
    last = [[row for row in rows if row.seq <= end][-1] for rows in answers.values()]
    right = sum(row.kind in ANSWERS and row.said == row.grade for row in last)  # who skips does not get it right
    if right < (plan.passing or 0) * len(answers):
        return NoLease(f"{assessor} did not pass round {plan.name!r}")
    return None


ASSIGNMENT = ("round", "item", "slot")
FREE = {"assessor": None, "state": "free", "until": None, "event": None}


def record(kind: str, /, **fields: Any) -> dict[str, Any]:
    """A record as a log stores it."""
    return {"record": kind, "kind": kind, **fields}


class RecordKind(NamedTuple):
    """A kind of record: the class that declares its keys, and the function that changes the tables."""

    shape: type
    apply: Callable[[Connection, dict[str, Any]], None]


def _apply_round(connection: Connection, record: dict[str, Any]) -> None:
    name = record["name"]
    plan = {key: record[key] for key in Round.__dataclass_fields__ if key in record}
    values = {"name": name, "definition": json.dumps(plan), "state": OPEN, "created": record["at"]}
    _insert_new(connection, rounds, ROUND, values, "give this one another --name")
    order = plan.get("order", PRIORITY), plan.get("seed", 0)
    _insert_items(connection, name, 0, [RoundItem(*each) for each in record["items"]], *order)
    keep_documents(connection, name, len(record["items"]))


def _insert_new(connection: Connection, table: Table, kind: str, values: dict[str, str], advice: str) -> None:
    """Insert a round or a version with its hash; raise DataError if the name is taken."""
    name = values["name"]
    if connection.execute(select(table.c.name).where(table.c.name == name)).first():
        raise taken(kind, name, advice)
    connection.execute(insert(table).values(values))
    keep_hash(connection, kind, name, values["definition"])


def taken(kind: str, name: str, advice: str) -> DataError:
    """The DataError for a name that another round or version already has."""
    return DataError(f"there is a {kind} {name!r} already; {advice}")


def _apply_items(connection: Connection, record: dict[str, Any]) -> None:
    _insert_items(connection, record["round"], record["first"], [RoundItem(*each) for each in record["items"]])


def _insert_items(
    connection: Connection, name: str, first: int, new: Sequence[RoundItem], order: str = PRIORITY, seed: int = 0
) -> None:
    """Add documents to a round with their assignments; gold comes at random, so its position does not matter."""
    place = dict(zip(_subjects(new), positions(order, seed, _subjects(new)), strict=True))
    rows = [
        {"round": name, "item": number, **each._asdict(), "wanted": each.overlap}
        | {"position": first + place.get((each.topic, each.document), number - first)}
        for number, each in enumerate(new, first)
    ]
    if rows:
        connection.execute(insert(items), rows)
    _insert_free(connection, [row | {"slot": slot} for row in rows for slot in range(row["wanted"])])


def _subjects(documents: Sequence[Any]) -> list[tuple[str, str]]:
    """Topic and document of each item of the pool."""
    return [(each.topic, each.document) for each in documents if each.role == "pool"]


def _insert_free(connection: Connection, slots: Sequence[dict[str, Any]]) -> None:
    """Add free assignments; `slots` have their keys, their topics and their positions."""
    names = (*ASSIGNMENT, "topic", "position")
    free = {"repeat": False, "state": "free", "counted": True}
    if slots:
        connection.execute(insert(places), [{name: slot[name] for name in names} | free for slot in slots])


HERE = and_(*(places.c[name] == bindparam(f"at_{name}") for name in ASSIGNMENT))
LEASE = (
    update(places)
    .where(HERE)
    .values({name: bindparam(name) for name in ("assessor", "repeat", "until")} | {"state": "leased", "event": None})
)


NAMED = ("assessor", "repeat", "until")


def apply_leases(connection: Connection, records: Sequence[dict[str, Any]]) -> None:
    """Lease assignments; those that do not exist are created."""
    rows = [
        {f"at_{name}": record[name] for name in ASSIGNMENT} | {name: record[name] for name in NAMED}
        for record in records
    ]
    if connection.execute(LEASE, rows).rowcount == len(rows):
        return
    for row, record in zip(rows, records, strict=True):
        if not connection.execute(LEASE, row).rowcount:
            _open_place(connection, record)


def _open_place(connection: Connection, record: dict[str, Any]) -> None:
    """Create a leased assignment of gold or of a repeated document, which does not count."""
    where = items.c.round == record["round"], items.c.item == record["item"]
    item = connection.execute(select(items.c.topic, items.c.position).where(*where)).one()
    values = {name: record[name] for name in (*ASSIGNMENT, *NAMED)} | {"topic": item.topic}
    position = item.position if record.get("position") is None else record["position"]
    connection.execute(insert(places), values | {"counted": False, "state": "leased", "position": position})


def _apply_release(connection: Connection, record: dict[str, Any]) -> None:
    """End a lease without an answer; an assignment that does not count is deleted."""
    where = [places.c[name] == record[name] for name in (*ASSIGNMENT, "assessor")]
    _release(connection, and_(*where, places.c.state == "leased"))


def _release(connection: Connection, here: ColumnElement[bool]) -> None:
    connection.execute(delete(places).where(here, ~places.c.counted))
    connection.execute(update(places).where(here).values(FREE))


def _apply_state(connection: Connection, record: dict[str, Any]) -> None:
    connection.execute(update(rounds).where(rounds.c.name == record["round"]).values(state=record["state"]))


def _apply_change(connection: Connection, record: dict[str, Any]) -> None:
    """Store a change of a round, and give its documents the assignments that they need now."""
    values = {each.name: record[each.name] for each in fields(RoundChange) if each.name in record}
    change = RoundChange(**values | {"items": tuple(RoundItem(*each) for each in record.get("items", ()))})
    definition = json.dumps(asdict(change))
    keys = {"id": change.id, "round": change.round, "number": change.number}
    connection.execute(insert(round_changes), keys | {"definition": definition})
    keep_hash(connection, CHANGE, change.id, definition)
    changed = f"{change.number} {hashlib.sha256(definition.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    connection.execute(update(rounds).where(rounds.c.name == change.round).values(changed=changed))
    _rearrange(connection, find_round(connection, change.round)[0], change)


def _rearrange(connection: Connection, plan: Round, change: RoundChange) -> None:
    """Apply a change of a round to its assignments."""
    opened, here = opened_round(connection, plan.name), places.c.round == plan.name
    if change.items:
        last = connection.execute(select(items.c.item).where(items.c.round == plan.name)).scalars().all()
        _insert_items(connection, plan.name, len(last), change.items)
    if change.offered:
        again = here, places.c.item.in_(change.offered), places.c.state == "skipped"
        connection.execute(delete(places).where(*again))
    _return_leases(connection, plan)
    query = select(items).where(items.c.round == plan.name, items.c.role == "pool").order_by(items.c.item)
    documents = connection.execute(query).all()
    wanted = {
        each.item: number
        for each in documents
        if (number := plan.labels_wanted(opened, each.item, each.topic, each.overlap)) != each.wanted
    }
    if change.order or change.items:
        _reorder(connection, plan, documents)
    if wanted:
        _assign(connection, plan.name, wanted, change.at)


def _return_leases(connection: Connection, plan: Round) -> None:
    """Free the leases of people who do not belong to the round, or to the topic, any more."""
    leased = places.c.round == plan.name, places.c.state == "leased"
    for row in connection.execute(select(places).where(*leased)).all():
        topics = plan.topics_of(row.assessor)
        if (plan.assessors and row.assessor not in plan.assessors) or not (topics is None or row.topic in topics):
            _release(connection, _at(row))


def _reorder(connection: Connection, plan: Round, documents: Sequence[Row[Any]]) -> None:
    """Give every document its position in the order of a round as it is now."""
    place = positions(plan.order, plan.seed, _subjects(documents))
    rows = [
        {"at_item": each.item, "new": number}
        for each, number in zip(documents, place, strict=True)
        if number != each.position
    ]
    if not rows:
        return
    here = items.c.round == plan.name, items.c.item == bindparam("at_item")
    connection.execute(update(items).where(*here).values(position=bindparam("new")), rows)
    own = places.c.round == plan.name, places.c.item == bindparam("at_item"), ~places.c.repeat
    connection.execute(update(places).where(*own).values(position=bindparam("new")), rows)


def _assign(connection: Connection, name: str, wanted: dict[int, int], now: str) -> None:
    """Give documents as many assignments as labels are wanted; labels stay, and live leases may be finished."""
    rows: dict[int, list[Row[Any]]] = defaultdict(list)
    slots = select(places).where(places.c.round == name).order_by(places.c.item, places.c.slot)
    for row in connection.execute(slots).all():
        rows[row.item].append(row)
    here = items.c.round == name, items.c.item == bindparam("at_item")
    numbers = [{"at_item": item, "new": number} for item, number in wanted.items()]
    connection.execute(update(items).where(*here).values(wanted=bindparam("new")), numbers)
    query = select(items).where(items.c.round == name, items.c.role == "pool")
    for item in connection.execute(query).all():
        if item.item in wanted:
            _assign_one(connection, item, rows[item.item], now)


def _assign_one(connection: Connection, item: Row[Any], assigned: Sequence[Row[Any]], now: str) -> None:
    """Add or remove assignments of one document until those that count equal the labels wanted."""
    first = max((row.slot + 1 for row in assigned), default=0)  # a repeat has its slot, too
    rows = [row for row in assigned if not row.repeat]
    live = [row for row in rows if row.state == "leased" and row.until >= now]
    over = [row for row in rows if row.state == "leased" and row.until < now]
    counted = sum(row.counted for row in rows)
    free = [row for row in rows if row.state == "free"]
    for row in [*free, *(row for row in over if row.counted)][: max(0, counted - item.wanted)]:
        connection.execute(delete(places).where(_at(row)))
        counted -= 1
    for row in [row for row in live if row.counted][: max(0, counted - item.wanted)]:
        connection.execute(update(places).where(_at(row)).values(counted=False))
        counted -= 1
    late = [row for row in rows if row.state == "extra"]
    for row in [*late, *(row for row in live if not row.counted)][: max(0, item.wanted - counted)]:
        state = "done" if row.state == "extra" else row.state
        connection.execute(update(places).where(_at(row)).values(counted=True, state=state))
        counted += 1
    for row in over:
        if not row.counted:
            connection.execute(delete(places).where(_at(row)))
    slots = range(first, first + max(0, item.wanted - counted))
    _insert_free(connection, [{**item._mapping, "slot": slot} for slot in slots])


def _apply_version(connection: Connection, record: dict[str, Any]) -> None:
    """Store a frozen version."""
    fields = {key: value for key, value in record.items() if key not in ("record", "kind")}
    values = {"name": record["name"], "definition": json.dumps(fields), "created": record["created"]}
    _insert_new(connection, versions, VERSION, values, ANOTHER_NAME)


@dataclass(frozen=True, kw_only=True)
class RoundRecord(Round):
    """A round and its first documents, as a log stores them."""

    items: tuple[RoundItem, ...]
    at: Text


class ItemsRecord(NamedTuple):
    """Documents that a strategy added to a round."""

    round: Text
    first: ItemCount
    items: tuple[RoundItem, ...]


class LeaseRecord(NamedTuple):
    """A lease: an assessor may judge a document until a time."""

    round: Text
    item: ItemCount
    slot: ItemCount
    assessor: Text
    repeat: bool
    until: Text
    position: ItemCount | None = None  # when gold or a repeated document came; None: a document of the pool


class ReleaseRecord(NamedTuple):
    """The end of a lease without an answer."""

    round: Text
    item: ItemCount
    slot: ItemCount
    assessor: Text


class StateRecord(NamedTuple):
    """A change of a round's state: open, paused or closed."""

    round: Text
    state: Annotated[str, OneOf(STATES)]


class PseudonymRecord(NamedTuple):
    """The record that somebody's name was replaced by a pseudonym; the name itself is gone."""

    name: Text
    by: str
    at: Text
    events: ItemCount


def _apply_pseudonym(connection: Connection, record: dict[str, Any]) -> None:
    values = {"name": record["name"], "author": record["by"], "created": record["at"], "events": record["events"]}
    connection.execute(insert(pseudonyms), values)


@dataclass(frozen=True)
class Version:
    """A frozen version: the policy, its settings, the place in the log, and the hash of the qrels."""

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
    "round": RecordKind(RoundRecord, _apply_round),
    "items": RecordKind(ItemsRecord, _apply_items),
    "lease": RecordKind(LeaseRecord, lambda connection, record: apply_leases(connection, [record])),
    "release": RecordKind(ReleaseRecord, _apply_release),
    "state": RecordKind(StateRecord, _apply_state),
    "change": RecordKind(RoundChange, _apply_change),
    "version": RecordKind(Version, _apply_version),
    "pseudonym": RecordKind(PseudonymRecord, _apply_pseudonym),
}


GOLD = select(items.c.item).where(ON, items.c.role == "gold").exists()
COUNTS = case((places.c.counted | places.c.repeat, "done"), (GOLD, "done"), else_="extra")  # no longer asked for: extra
FILL = update(places).where(HERE).values(state=COUNTS, event=bindparam("said"))
SUBJECT, WHO = ("round", "topic", "document"), ("assessor", "repeat")
OWN = (
    select(*(places.c[name] for name in ASSIGNMENT))
    .join(items, ON)
    .where(*(items.c[name] == bindparam(name) for name in SUBJECT))
    .where(*(places.c[name] == bindparam(name) for name in WHO))
)
HELD = OWN.where(places.c.state == "leased").with_for_update(of=places)


def fill(connection: Connection, place: AssignmentKey, event: Event) -> None:
    """Mark the assignment that an assessor holds as done by an answer."""
    at = {f"at_{name}": getattr(place, name) for name in ASSIGNMENT}
    connection.execute(FILL, at | {"said": event.id})


def settle(connection: Connection, now: str, event: Event) -> None:
    """Fill an assignment by an event: the assessor's own, a free one, or an additional one that does not count."""
    if event.kind not in (*ANSWERS, "skip") or event.aspect != RELEVANCE:
        return
    plan = find_round(connection, event.round)[0]
    if event.kind in ANSWERS:
        held = connection.execute(HELD, {name: getattr(event, name) for name in (*SUBJECT, *WHO)}).first()
        if held is not None:
            plan.refuse(event.assessor, event.grade)
            fill(connection, held, event)
            return
    _settle_unheld(connection, now, event, plan)


def _settle_unheld(connection: Connection, now: str, event: Event, plan: Round) -> None:
    """Find an assignment for an event whose assessor has no lease; labels of models never get one."""
    item = _item(connection, event)
    if item is None:
        subject = f"topic {event.topic!r}, document {event.document!r}"
        raise DataError(f"{subject} is not in round {event.round!r}; leave out the round to judge it anyway")
    plan.refuse(event.assessor, event.grade)
    if event.source not in PEOPLE:
        return
    here = and_(places.c.round == item.round, places.c.item == item.item)
    rows = connection.execute(select(places).where(here).order_by(places.c.slot).with_for_update()).all()
    own = [row for row in rows if (row.assessor, bool(row.repeat)) == (event.assessor, event.repeat)]
    if event.kind == "skip":
        _skip(connection, event, item, own, rows)
    elif own and own[0].state == "skipped":
        connection.execute(delete(places).where(_at(own[0])))
        _late(connection, now, event, item, [row for row in rows if row is not own[0]])
    elif own:
        state = "extra" if own[0].state == "extra" else "done"
        event_id = _last_word(connection, event) or event.id
        connection.execute(update(places).where(_at(own[0])).values(state=state, event=event_id))
    else:
        qualified = why_unqualified(connection, plan.after, event.assessor) is None
        _late(connection, now, event, item, rows, may_count=qualified)


def owns(connection: Connection, event: Event) -> bool:
    """Whether the assessor of an event has an assignment of its document: done, skipped or leased."""
    return connection.execute(OWN, {name: getattr(event, name) for name in (*SUBJECT, *WHO)}).first() is not None


def _item(connection: Connection, event: Event) -> Row[Any] | None:
    """The item of a round that an event is about, locked against other changes of its assignments."""
    where = (items.c[name] == getattr(event, name) for name in SUBJECT)
    return connection.execute(select(items).where(*where).with_for_update()).first()


def _at(place: Row[Any]) -> ColumnElement[bool]:
    return and_(places.c.round == place.round, places.c.item == place.item, places.c.slot == place.slot)


def _additional(item: Row[Any], rows: Sequence[Row[Any]]) -> dict[str, Any]:
    """The key columns of the next additional assignment of a document, which does not count."""
    slot = max([int(item.overlap), *(int(row.slot) + 1 for row in rows)])
    key = {"round": item.round, "item": item.item, "slot": slot}
    return key | {"topic": item.topic, "position": item.position, "counted": False}


def _late(
    connection: Connection, now: str, event: Event, item: Row[Any], rows: Sequence[Row[Any]], may_count: bool = True
) -> None:
    """Assign a label of an assessor without a lease: to a free or expired assignment, or to an additional one."""
    values = {"assessor": event.assessor, "repeat": event.repeat, "event": event.id}
    for row in rows:
        free = row.state == "free" or (row.state == "leased" and row.until < now)
        if free and row.counted and may_count and not event.repeat:
            connection.execute(update(places).where(_at(row)).values(state="done", **values))
            return
    state = "done" if item.role == "gold" or event.repeat else "extra"
    connection.execute(insert(places).values(**_additional(item, rows), **values, state=state))


def _skip(
    connection: Connection, event: Event, item: Row[Any], own: Sequence[Row[Any]], rows: Sequence[Row[Any]]
) -> None:
    """Free the assignment, and remember that this assessor skipped the document."""
    if own and own[0].state in ("done", "extra"):
        return
    for place in own:
        if place.counted:
            connection.execute(update(places).where(_at(place)).values(FREE))
        else:
            connection.execute(delete(places).where(_at(place)))
    values = {"assessor": event.assessor, "repeat": event.repeat, "state": "skipped", "event": event.id}
    connection.execute(insert(places).values(**_additional(item, rows), **values))


def _last_word(connection: Connection, event: Event) -> str | None:
    """The id of the last answer of the event's assessor to its document that was not withdrawn; None if there is none."""
    c = events.c
    same = [c[name] == getattr(event, name) for name in (*SUBJECT, *WHO)]
    query = select(c.id).where(*same, c.aspect == RELEVANCE, c.kind.in_(ANSWERS), c.id.not_in(select(withdrawn.c.id)))
    return connection.execute(query.order_by(c.time.desc(), c.id.desc()).limit(1)).scalar()


def unsettle(connection: Connection, now: str, event: Event) -> None:
    """Undo the assignment of a withdrawn event: an earlier answer fills it again, else its assessor gets a new lease."""
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
        others = select(func.count()).where(*here[:2], places.c.counted, places.c.slot != place.slot)
        wanted = (
            place.counted and connection.execute(others).scalar_one() < item.wanted
        )  # a change may want fewer labels
        connection.execute(
            update(places).where(_at(place)).values(state="leased", until=until, event=None, counted=wanted)
        )
