"""What one person can be given in a round, within one transaction: what they hold, then gold, repeats, the pool.

A lease is asked for once a judgment, so that statements are few and made once: what is held is read with one, what is
renewed and what is new is written with one, and leases that are over are looked for only where there are any.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, case, func, literal_column, or_, select

from cranfield.judge.adaptive import named
from cranfield.judge.event import instant
from cranfield.judge.plan import Lease, Nothing, chosen
from cranfield.store.tables import events, items, places, rounds

if TYPE_CHECKING:
    from sqlalchemy.engine import Row
    from sqlalchemy.sql import ColumnElement, Select

    from cranfield.judge.event import Event
    from cranfield.judge.plan import Round
    from cranfield.judge.records import Transaction

LEASED: ColumnElement[str] = literal_column("'leased'")  # as the indexes say it
FREE: ColumnElement[str] = literal_column("'free'")
ON = and_(items.c.round == places.c.round, items.c.item == places.c.item)
GIVEN = select(places, items.c.document, items.c.role).join(items, ON).where(places.c.round == bindparam("name"))
MINE = places.c.assessor == bindparam("who")
HELD = (
    GIVEN.where(MINE, places.c.state == LEASED)
    .order_by(places.c.item, places.c.slot)
    .with_for_update(of=places)
)  # fmt: skip
LAST = (
    select(places.c.topic, places.c.item)
    .where(places.c.round == bindparam("name"), MINE, places.c.until.is_not(None))
    .order_by(places.c.until.desc(), places.c.item.desc(), places.c.slot.desc())
    .limit(1)
)
COUNT = select(func.count()).where(places.c.round == bindparam("name"), MINE)


def _elsewhere(own_slot: bool) -> Any:
    """Whether somebody has a place of a document; not counting one place itself, if that may be their own."""
    mine = places.alias()
    same = select(mine.c.slot).where(
        mine.c.round == places.c.round,
        mine.c.item == places.c.item,
        mine.c.assessor == bindparam("who"),
        mine.c.repeat == False,  # noqa: E712  a column
    )
    return (same.where(mine.c.slot != places.c.slot) if own_slot else same).exists()


AHEAD, TOPIC, ALL = "ahead", "topic", "all"  # where a person looks for a document, one after the other


@cache
def _claimable(over: bool, where: str, skip_locked: bool) -> Select[Any]:
    """The first place within the count that is free, or whose lease is over, of a document one has no other place of."""
    query = GIVEN.where(~_elsewhere(own_slot=True))
    if over:
        query = query.where(places.c.state == LEASED, places.c.counted, places.c.until < bindparam("now"))
        order = [places.c.item + 0, places.c.slot]  # no index is to be read for this order: few leases are over
    else:
        query = query.where(places.c.state == FREE)
        order = [places.c.item, places.c.slot]
    if where != ALL:
        query = query.where(places.c.topic == bindparam("topic"))
    if where == AHEAD:
        query = query.where(places.c.item > bindparam("at"))
    return query.order_by(*order).limit(1).with_for_update(skip_locked=skip_locked, of=places)


LEFT = (
    select(func.min(case((places.c.state == FREE, ""), else_=places.c.until)))
    .where(
        places.c.round == bindparam("name"),
        places.c.counted,
        or_(places.c.state == FREE, places.c.state == LEASED),
        ~_elsewhere(own_slot=False),
    )
)  # fmt: skip


class Desk:
    """What one person holds in a round, and what else they can be given."""

    def __init__(self, transaction: Transaction, name: str, assessor: str) -> None:
        plan, self.state, row = chosen(transaction.connection, transaction.rounds(), name)
        self.transaction = transaction
        self.plan: Round = plan
        self.assessor = assessor
        self.connection = transaction.connection
        self.until = instant(datetime.fromisoformat(transaction.now) + timedelta(seconds=plan.lease))
        self.over = row.over is not None and row.over < transaction.now  # whether any lease of the round is
        self.who = {"name": plan.name, "who": assessor}
        self._mine: list[Row[Any]] | None = None
        self._last: tuple[str, int] | None = None  # topic and item that this person was at last
        self._given: list[dict[str, Any]] = []  # leases that are not written yet
        self._claimed = False  # whether those are of anything that was not theirs

    def mine(self) -> list[Row[Any]]:
        """The places that this person holds, those among them whose time is over and nobody else has taken."""
        if self._mine is None:
            self._mine = list(self.connection.execute(HELD, self.who))
        return self._mine

    def holds(self, event: Event) -> Row[Any] | None:
        """The place that an event would fill."""
        about = event.topic, event.document, event.repeat
        return next((row for row in self.mine() if (row.topic, row.document, bool(row.repeat)) == about), None)

    def filled(self, place: Row[Any]) -> None:
        """A place is held no more; its topic is where the person is at."""
        self._mine = [row for row in self.mine() if row is not place]
        self._last = place.topic, place.item

    def changed(self) -> None:
        """Places are to be read again."""
        self._mine = None

    def held(self, n: int) -> list[Lease]:
        """What this person holds and has not answered, its time renewed; beside the count nobody else can have it."""
        now = self.transaction.now
        rows = [row for row in self.mine() if row.until >= now or not row.counted]
        return [self._give(row, row.slot, row.repeat) for row in rows[:n]]

    def claim(self) -> Lease | None:
        """One more document: gold and repeats by chance, else what the pool has."""
        if self._claimed:
            self.write()
        self._claimed = True
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

    def write(self) -> None:
        """Write down what was given."""
        self.transaction.lease(self._given)
        self._given = []

    def _give(self, row: Row[Any], slot: int, repeat: bool) -> Lease:
        self._given.append(
            {
                "record": "lease",
                "kind": "lease",
                "round": self.plan.name,
                "item": row.item,
                "slot": slot,
                "assessor": self.assessor,
                "repeat": bool(repeat),
                "until": self.until,
            }
        )
        self._last = row.topic, row.item
        where = self.plan.name, row.topic, row.document, self.assessor, self.until, bool(repeat)
        return Lease(*where, row.item, slot)

    def _chance(self) -> float:
        """A number below 1 that depends on the person and how much they have been given, so that it can be repeated."""
        if not self.plan.gold_share + self.plan.repeat_share:
            return 1.0
        given = self.connection.execute(COUNT, self.who).scalar_one()
        text = f"{self.plan.seed}/{self.plan.name}/{self.assessor}/{given}".encode("utf-8", "surrogatepass")
        return int(hashlib.sha256(text).hexdigest()[:13], 16) / 16**13

    def _gold(self) -> Lease | None:
        """Gold that this person has not seen, in an order of their own."""
        mine = select(places.c.item).where(places.c.round == self.plan.name, places.c.assessor == self.assessor)
        query = select(items).where(items.c.round == self.plan.name, items.c.role == "gold", items.c.item.not_in(mine))
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
        query = GIVEN.join(events, events.c.id == places.c.event).where(
            MINE,
            places.c.state == "done",
            events.c.kind == "judgment",
            items.c.role == "pool",
            places.c.item.not_in(repeated),
        )
        row = self.connection.execute(query.order_by(events.c.seq).limit(1), self.who).first()
        return None if row is None else self._give(row, self._next_slot(row.item), True)

    def _next_slot(self, item: int) -> int:
        """The slot behind all others, which nobody else gets meanwhile."""
        one = select(items.c.item).where(items.c.round == self.plan.name, items.c.item == item)
        self.connection.execute(one.with_for_update())
        query = select(func.max(places.c.slot)).where(places.c.round == self.plan.name, places.c.item == item)
        last = self.connection.execute(query).scalar()
        return 0 if last is None else last + 1

    def _at(self) -> tuple[str, int]:
        """The topic and the item that this person was at last; no topic if they were at none."""
        if self._last is None:
            row = self.connection.execute(LAST, self.who).first()
            self._last = ("", -1) if row is None else (row.topic, row.item)
        return self._last

    def _free(self, skip_locked: bool) -> Row[Any] | None:
        """A place within the count: further down the topic this person is at, anywhere in it, then in any.

        Who goes on from where they are does not pass over all that they have judged and others have not.
        """
        topic, at = self._at()
        for where in (AHEAD, TOPIC, ALL) if topic else (ALL,):
            values = self.who | {"topic": topic, "at": at}
            rows = [self.connection.execute(_claimable(False, where, skip_locked), values).first()]
            if self.over:
                now = values | {"now": self.transaction.now}
                rows.append(self.connection.execute(_claimable(True, where, skip_locked), now).first())
            found = [row for row in rows if row is not None]
            if found:
                return min(found, key=lambda row: (row.item, row.slot))
        return None

    def _opened(self) -> Row[Any] | None:
        """Let the strategy name one more document, given the labels that stand, and open its places."""
        self.connection.execute(select(rounds.c.name).where(rounds.c.name == self.plan.name).with_for_update())
        free = self._free(skip_locked=True)  # somebody may have opened one meanwhile
        if free is not None:
            return free
        asked = named(self.connection, self.plan, self._at()[0])
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
        earliest = self.connection.execute(LEFT, self.who).scalar()
        if earliest is None:
            return Nothing(f"nothing is left for {self.assessor} in round {self.plan.name!r}")
        if earliest < self.transaction.now:
            self.over = True
            return None
        return Nothing(f"all that is left for {self.assessor} is with others", earliest)
