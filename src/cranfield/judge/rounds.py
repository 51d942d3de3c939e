"""A round: who is asked about what, how often, and what is out at the moment (`judge.places` keeps the count)."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, case, func, or_, select

from cranfield.errors import DataError
from cranfield.judge.adaptive import named
from cranfield.judge.event import instant
from cranfield.judge.gold import passed
from cranfield.judge.plan import OPEN, Asked, Lease, Nothing, Round, find_round
from cranfield.store.tables import events, items, places, rounds

if TYPE_CHECKING:
    from sqlalchemy.engine import Row
    from sqlalchemy.sql import ColumnElement, Select

    from cranfield.judge.log import Log
    from cranfield.judge.records import Transaction


def open_round(log: Log, plan: Round, asked: list[Asked]) -> None:
    """Begin a round: all its documents and places, or nothing."""
    record = {
        "record": "round",
        "kind": "round",
        **asdict(plan),
        "items": [tuple(each) for each in asked],
    }
    if plan.passing is not None and not any(each.role == "gold" for each in asked):
        raise DataError(f"round {plan.name!r} is to be passed, and has no gold to answer: give --gold")

    def work(transaction: Transaction) -> None:
        if plan.after and find_round(transaction.connection, plan.after)[0].passing is None:
            raise DataError(f"round {plan.after!r} is not one to pass: open one with --gold and --pass first")
        transaction.apply(record | {"at": transaction.now})

    log.write(work)


def set_state(log: Log, name: str, state: str) -> None:
    """Pause a round, go on with it, or close it; labels of what is out are still taken."""

    def work(transaction: Transaction) -> None:
        find_round(transaction.connection, name)
        transaction.apply({"record": "state", "kind": "state", "round": name, "state": state})

    log.write(work)


def lease(log: Log, assessor: str, name: str = "", n: int = 1) -> list[Lease] | Nothing:
    """Up to n documents for somebody: those that they hold already, then new ones; or why there is none."""

    def work(transaction: Transaction) -> list[Lease] | Nothing:
        plan, state = find_round(transaction.connection, name)
        refusal = _refused(transaction, plan, state, assessor)
        if refusal is not None:
            return refusal
        desk = Desk(transaction, plan, assessor)
        answer = desk.held(n)
        while True:
            while len(answer) < n and (another := desk.claim()) is not None:
                answer.append(another)
            told = answer or desk.nothing()
            if told is not None:  # else something came free between two looks
                return told

    return log.write(work)


def _refused(transaction: Transaction, plan: Round, state: str, assessor: str) -> Nothing | None:
    plan.refuse(assessor)
    if state != OPEN:
        return Nothing(f"round {plan.name!r} is {state}")
    if plan.after:
        return passed(transaction.connection, find_round(transaction.connection, plan.after)[0], assessor)
    return None


class Desk:
    """What one person can be given in a round, within one transaction."""

    def __init__(self, transaction: Transaction, plan: Round, assessor: str) -> None:
        self.transaction = transaction
        self.plan = plan
        self.assessor = assessor
        self.connection = transaction.connection
        self.until = instant(datetime.fromisoformat(transaction.now) + timedelta(seconds=plan.lease))

    def held(self, n: int) -> list[Lease]:
        """What this person holds and has not answered, its time renewed; beside the count nobody else can have it."""
        mine = or_(places.c.until >= self.transaction.now, places.c.slot >= items.c.overlap)
        query = self._joined().where(places.c.assessor == self.assessor, places.c.state == "leased", mine)
        ordered = query.order_by(places.c.item, places.c.slot).limit(n).with_for_update(of=places)
        return [self._give(row, row.slot, row.repeat) for row in self.connection.execute(ordered).all()]

    def claim(self) -> Lease | None:
        """One more document: gold and repeats by chance, else what the pool has."""
        chance = self._chance()
        if chance < self.plan.gold_share and (gold := self._gold()) is not None:
            return gold
        if self.plan.gold_share <= chance < self.plan.gold_share + self.plan.repeat_share:
            again = self._again()
            if again is not None:
                return again
        free = self._free(skip_locked=True)
        if free is None and self.plan.strategy:
            free = self._opened()
        if free is None and self.transaction.database.dialect == "postgresql":
            free = self._free(skip_locked=False)  # others had it locked: ask again and wait for them
        if free is not None:
            return self._give(free, free.slot, False)
        return self._gold()  # the pool is done: what gold is left

    def _give(self, row: Row[Any], slot: int, repeat: bool) -> Lease:
        record = {
            "record": "lease",
            "kind": "lease",
            "round": self.plan.name,
            "item": row.item,
            "slot": slot,
            "assessor": self.assessor,
            "repeat": bool(repeat),
            "until": self.until,
        }
        self.transaction.apply(record)
        where = self.plan.name, row.topic, row.document, self.assessor, self.until, bool(repeat)
        return Lease(*where, row.item, slot)

    def _joined(self) -> Select[Any]:
        on = and_(items.c.round == places.c.round, items.c.item == places.c.item)
        return (
            select(places, items.c.topic, items.c.document, items.c.role)
            .join(items, on)
            .where(places.c.round == self.plan.name)
        )

    def _chance(self) -> float:
        """A number below 1 that depends on the person and how much they have been given, so that it can be repeated."""
        if not self.plan.gold_share + self.plan.repeat_share:
            return 1.0
        count = select(func.count()).where(places.c.round == self.plan.name, places.c.assessor == self.assessor)
        given = self.connection.execute(count).scalar_one()
        text = f"{self.plan.seed}/{self.plan.name}/{self.assessor}/{given}".encode("utf-8", "surrogatepass")
        return int(hashlib.sha256(text).hexdigest()[:13], 16) / 16**13

    def _mine(self) -> Select[Any]:
        return select(places.c.item).where(places.c.round == self.plan.name, places.c.assessor == self.assessor)

    def _gold(self) -> Lease | None:
        """Gold that this person has not seen, in an order of their own."""
        query = select(items).where(
            items.c.round == self.plan.name, items.c.role == "gold", items.c.item.not_in(self._mine())
        )
        rows = self.connection.execute(query).all()
        if not rows:
            return None
        row = min(
            rows, key=lambda row: hashlib.sha256(f"{self.assessor}/{row.item}".encode("utf-8", "replace")).digest()
        )
        return self._give(row, self._next_slot(row.item), False)

    def _again(self) -> Lease | None:
        """The document that this person judged longest ago and was not asked about again."""
        repeated = select(places.c.item).where(
            places.c.round == self.plan.name, places.c.assessor == self.assessor, places.c.repeat
        )
        query = (
            self._joined()
            .join(events, events.c.id == places.c.event)
            .where(
                places.c.assessor == self.assessor,
                places.c.state == "done",
                events.c.kind == "judgment",
                items.c.role == "pool",
                places.c.item.not_in(repeated),
            )
        )
        row = self.connection.execute(query.order_by(events.c.seq).limit(1)).first()
        return None if row is None else self._give(row, self._next_slot(row.item), True)

    def _next_slot(self, item: int) -> int:
        """The slot behind all others, which nobody else gets meanwhile."""
        one = select(items.c.item).where(items.c.round == self.plan.name, items.c.item == item)
        self.connection.execute(one.with_for_update())
        query = select(func.max(places.c.slot)).where(places.c.round == self.plan.name, places.c.item == item)
        last = self.connection.execute(query).scalar()
        return 0 if last is None else last + 1

    def _claimable(self) -> ColumnElement[bool]:
        """Places within the count that are free or whose lease is over, of documents this person has no other place of."""
        mine = places.alias()
        other = select(mine.c.slot).where(
            mine.c.round == places.c.round,
            mine.c.item == places.c.item,
            mine.c.assessor == self.assessor,
            mine.c.slot != places.c.slot,
            mine.c.repeat == False,  # noqa: E712  a column
        )
        over = and_(places.c.state == "leased", places.c.until < self.transaction.now)
        return and_(places.c.slot < items.c.overlap, or_(places.c.state == "free", over), ~other.exists())

    def _free(self, skip_locked: bool) -> Row[Any] | None:
        """A place within the count, of the topic this person is at if there is one."""
        query = self._joined().where(self._claimable()).order_by(places.c.item, places.c.slot).limit(1)
        query = query.with_for_update(skip_locked=skip_locked, of=places)
        topic = self._topic()
        same = self.connection.execute(query.where(items.c.topic == topic)).first() if topic else None
        return same or self.connection.execute(query).first()

    def _topic(self) -> str:
        """The topic of what this person was given last."""
        given = self._joined().where(places.c.assessor == self.assessor, places.c.until.is_not(None))
        last = given.order_by(places.c.until.desc(), places.c.item.desc(), places.c.slot.desc())
        row = self.connection.execute(last.limit(1)).first()
        return "" if row is None else str(row.topic)

    def _opened(self) -> Row[Any] | None:
        """Let the strategy name one more document, given the labels that stand, and open its places."""
        self.connection.execute(select(rounds.c.name).where(rounds.c.name == self.plan.name).with_for_update())
        free = self._free(skip_locked=True)  # somebody may have opened one meanwhile
        if free is not None:
            return free
        asked = named(self.connection, self.plan, self._topic())
        if asked is None:
            return None
        count = select(func.count()).where(items.c.round == self.plan.name)
        first = self.connection.execute(count).scalar_one()
        record = {"record": "items", "kind": "items", "round": self.plan.name, "first": first, "items": [tuple(asked)]}
        self.transaction.apply(record)
        return self._free(skip_locked=False)

    def nothing(self) -> Nothing | None:
        """Why there is nothing, and when the first lease of a document that this person could judge is over.

        One look at all places: None if it finds one that is free after all.
        """
        mine = places.alias()
        has = select(mine.c.slot).where(
            mine.c.round == places.c.round,
            mine.c.item == places.c.item,
            mine.c.assessor == self.assessor,
            mine.c.repeat == False,  # noqa: E712  a column
        )
        on = and_(items.c.round == places.c.round, items.c.item == places.c.item)
        query = (
            select(func.min(case((places.c.state == "free", ""), else_=places.c.until)))
            .join(items, on)
            .where(
                places.c.round == self.plan.name,
                places.c.slot < items.c.overlap,
                places.c.state.in_(["free", "leased"]),
                ~has.exists(),
            )
        )
        earliest = self.connection.execute(query).scalar()
        if earliest is None:
            return Nothing(f"nothing is left for {self.assessor} in round {self.plan.name!r}")
        if earliest < self.transaction.now:
            return None
        return Nothing(f"all that is left for {self.assessor} is with others", earliest)
