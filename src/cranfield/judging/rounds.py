"""Judging rounds: open a round, lease documents to assessors, take their labels, release leases.

Within one transaction an assessor gets, in this order: documents that they hold already, gold, repeats, and documents
of the pool. A lease is requested for every judgment, so there are few statements: one reads the leases that the
assessor holds, one writes all new leases, and expired leases are looked for only if there are any.

In an adaptive round a strategy chooses the next document (`judging.adaptive_choice`): a label that was changed, withdrawn or
adjudicated counts as it is now. Documents that are leased already are passed over.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, case, func, literal_column, or_, select

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.judging.adaptive_choice import held_at_once, next_document
from cranfield.judging.assignments import ANSWERS, ON, owns, record, why_unqualified
from cranfield.judging.event import RELEVANCE, Event, instant
from cranfield.judging.event_intake import KEPT, EventOutcome, Refusal, submit
from cranfield.judging.round_plan import OPEN, Lease, NoLease, Round, RoundItem, find_round, pick_round
from cranfield.pooling.strategy import STRATEGIES
from cranfield.store.tables import events, items, places, rounds

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy.engine import Row
    from sqlalchemy.sql import ColumnElement, Select

    from cranfield.judging.log import Log
    from cranfield.judging.table_changes import Transaction


LEASED: ColumnElement[str] = literal_column("'leased'")  # as the indexes say it
FREE: ColumnElement[str] = literal_column("'free'")
ASSIGNMENTS = select(places, items.c.document, items.c.role).join(items, ON).where(places.c.round == bindparam("name"))
MINE = places.c.assessor == bindparam("who")
HELD = ASSIGNMENTS.where(MINE, places.c.state == LEASED).order_by(places.c.item, places.c.slot)
HELD = HELD.with_for_update(of=places)
LAST = (
    select(places.c.topic, places.c.item)
    .where(places.c.round == bindparam("name"), MINE, places.c.until.is_not(None))
    .order_by(places.c.until.desc(), places.c.item.desc(), places.c.slot.desc())
    .limit(1)
)
COUNT = select(func.count()).where(places.c.round == bindparam("name"), MINE)


def _elsewhere(own_slot: bool) -> Any:
    """The SQL condition that the assessor has an assignment of the same document; `own_slot` ignores this row itself."""
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
    """The first assignment that is free or has an expired lease, if the assessor has no other one of the document."""
    query = ASSIGNMENTS.where(~_elsewhere(own_slot=True))
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


class Leaseholder:
    """One assessor in a round, within a transaction: what they hold, and what they can be leased."""

    def __init__(self, transaction: Transaction, name: str, assessor: str) -> None:
        self.plan, self.state, row = pick_round(transaction.connection, transaction.round_rows(), name)
        self.transaction = transaction
        self.assessor = assessor
        self.connection = transaction.connection
        self.until = instant(datetime.fromisoformat(transaction.now) + timedelta(seconds=self.plan.lease))
        self.over = row.over is not None and row.over < transaction.now  # whether any lease of the round is
        self.who = {"name": self.plan.name, "who": assessor}
        self._mine: list[Row[Any]] | None = None
        self._last: tuple[str, int] | None = None  # topic and item that this person was at last
        self._new_leases: list[dict[str, Any]] = []  # leases that are not written yet
        self._claimed = False  # whether those are of anything that was not theirs

    def mine(self) -> list[Row[Any]]:
        """The assignments that this assessor holds, including expired ones that nobody else has."""
        if self._mine is None:
            self._mine = list(self.connection.execute(HELD, self.who))
        return self._mine

    def holds(self, event: Event) -> Row[Any] | None:
        """The held assignment that an event would fill."""
        about = event.topic, event.document, event.repeat
        return next((row for row in self.mine() if (row.topic, row.document, bool(row.repeat)) == about), None)

    def filled(self, place: Row[Any]) -> None:
        """Record that an assignment is done and that the assessor is now at its topic."""
        self._mine = [row for row in self.mine() if row is not place]
        self._last = place.topic, place.item

    def changed(self) -> None:
        """Read the assignments again when they are next needed."""
        self._mine = None

    def held(self, n: int) -> list[Lease]:
        """Renew the assessor's leases; an expired lease is renewed only if its assignment does not count."""
        rows = [row for row in self.mine() if row.until >= self.transaction.now or not row.counted]
        return [self._lease(row, row.slot, row.repeat) for row in rows[:n]]

    def claim(self) -> Lease | None:
        """Lease one more document: gold and repeats at random, else from the pool."""
        if self._claimed:
            self.write()
        self._claimed = True
        chance = self._chance()
        if chance < self.plan.gold_share and (gold := self._gold()) is not None:
            return gold
        repeats = self.plan.gold_share <= chance < self.plan.gold_share + self.plan.repeat_share
        if repeats and (again := self._again()) is not None:
            return again
        free = self._free(skip_locked=True)
        if free is None and self.plan.strategy:
            free = self._opened()
        if free is None and self.transaction.concurrent:
            free = self._free(skip_locked=False)  # others had it locked: ask again and wait for them
        if free is not None:
            return self._lease(free, free.slot, False)
        return self._gold()  # the pool is done: what gold is left

    def write(self) -> None:
        """Write the new leases."""
        self.transaction.lease(self._new_leases)
        self._new_leases = []

    def _lease(self, row: Row[Any], slot: int, repeat: bool) -> Lease:
        key = {"round": self.plan.name, "item": row.item, "slot": slot, "assessor": self.assessor}
        self._new_leases.append(record("lease", **key, repeat=bool(repeat), until=self.until))
        self._last = row.topic, row.item
        where = self.plan.name, row.topic, row.document, self.assessor, self.until, bool(repeat)
        return Lease(*where, row.item, slot)

    def _chance(self) -> float:
        """A reproducible number below 1 that depends on the assessor and the number of their assignments."""
        if not self.plan.gold_share + self.plan.repeat_share:
            return 1.0
        count = self.connection.execute(COUNT, self.who).scalar_one()
        text = f"{self.plan.seed}/{self.plan.name}/{self.assessor}/{count}".encode("utf-8", "surrogatepass")
        return int(hashlib.sha256(text).hexdigest()[:13], 16) / 16**13

    def _gold(self) -> Lease | None:
        """A lease of gold that this assessor has not seen; every assessor gets gold in another order."""
        mine = select(places.c.item).where(places.c.round == self.plan.name, places.c.assessor == self.assessor)
        query = select(items).where(items.c.round == self.plan.name, items.c.role == "gold", items.c.item.not_in(mine))
        rows = self.connection.execute(query).all()
        if not rows:
            return None
        lots = [hashlib.sha256(f"{self.assessor}/{row.item}".encode("utf-8", "replace")).digest() for row in rows]
        row = rows[lots.index(min(lots))]
        return self._lease(row, self._next_slot(row.item), False)

    def _again(self) -> Lease | None:
        """A second lease of the document that this assessor judged longest ago and has not judged twice."""
        mine = places.c.round == self.plan.name, places.c.assessor == self.assessor
        repeated = select(places.c.item).where(*mine, places.c.repeat)
        query = ASSIGNMENTS.join(events, events.c.id == places.c.event).where(
            MINE,
            places.c.state == "done",
            events.c.kind == "judgment",
            items.c.role == "pool",
            places.c.item.not_in(repeated),
        )
        row = self.connection.execute(query.order_by(events.c.seq).limit(1), self.who).first()
        return None if row is None else self._lease(row, self._next_slot(row.item), True)

    def _next_slot(self, item: int) -> int:
        """The next slot of an item, locked against others."""
        one = select(items.c.item).where(items.c.round == self.plan.name, items.c.item == item)
        self.connection.execute(one.with_for_update())
        query = select(func.max(places.c.slot)).where(places.c.round == self.plan.name, places.c.item == item)
        last = self.connection.execute(query).scalar()
        return 0 if last is None else last + 1

    def _at(self) -> tuple[str, int]:
        """The topic and item that this assessor had last; an empty topic if none."""
        if self._last is None:
            row = self.connection.execute(LAST, self.who).first()
            self._last = ("", -1) if row is None else (row.topic, row.item)
        return self._last

    def _free(self, skip_locked: bool) -> Row[Any] | None:
        """A free assignment: later in the assessor's current topic, else anywhere in it, else in any topic.

        Continuing from the current document avoids a scan over all documents that the assessor has judged and others
        have not.
        """
        topic, at = self._at()
        values = self.who | {"topic": topic, "at": at, "now": self.transaction.now}
        looks = (False, True) if self.over else (False,)
        for where in (AHEAD, TOPIC, ALL) if topic else (ALL,):
            rows = [self.connection.execute(_claimable(over, where, skip_locked), values).first() for over in looks]
            free = [row for row in rows if row is not None]
            if free:
                return min(free, key=lambda row: (row.item, row.slot))
        return None

    def _opened(self) -> Row[Any] | None:
        """Add the strategy's next document to the round, and return one of its assignments."""
        self.connection.execute(select(rounds.c.name).where(rounds.c.name == self.plan.name).with_for_update())
        free = self._free(skip_locked=True)  # somebody may have opened one meanwhile
        if free is not None:
            return free
        item = next_document(self.transaction, self.plan, self._at()[0])
        if item is None:
            return None
        first = self.connection.execute(select(func.count()).where(items.c.round == self.plan.name)).scalar_one()
        self.transaction.apply(record("items", round=self.plan.name, first=first, items=[tuple(item)]))
        return self._free(skip_locked=False)

    def nothing(self) -> NoLease | None:
        """Why there is nothing to judge, and when the first lease of a suitable document ends.

        This looks at all assignments; the result is None if one of them turns out to be free.
        """
        earliest = self.connection.execute(LEFT, self.who).scalar()
        if earliest is None:
            return NoLease(f"nothing is left for {self.assessor} in round {self.plan.name!r}")
        if earliest < self.transaction.now:
            self.over = True
            return None
        return NoLease(f"all documents that are left for {self.assessor} are leased to others", earliest)


def refuse_round(plan: Round, items_of_round: list[RoundItem]) -> None:
    """Raise DataError for a plan that no log can open, such as one whose strategy is unknown or finds no document."""
    if not plan.name.strip():
        raise DataError(f"expected a name for the round, found {plan.name!r}")
    if plan.passing is not None and not any(each.role == "gold" for each in items_of_round):
        raise DataError(f"round {plan.name!r} has a pass mark but no gold to answer: give --gold")
    if plan.strategy and STRATEGIES.named(plan.strategy) and not len(plan.rankings):
        raise DataError(f"round {plan.name!r}: the runs have no document for {plan.strategy} to choose from")


def open_round(log: Log, plan: Round, items_of_round: list[RoundItem]) -> None:
    """Open a round with all its documents and assignments, or nothing."""
    refuse_round(plan, items_of_round)

    def work(transaction: Transaction) -> None:
        if plan.after and find_round(transaction.connection, plan.after)[0].passing is None:
            raise DataError(f"round {plan.after!r} is not a qualifying round: open one with --gold and --pass first")
        documents = [tuple(each) for each in items_of_round]
        transaction.apply(record("round", **asdict(plan), items=documents, at=transaction.now))

    log.write(work)


def set_state(log: Log, name: str, state: str) -> None:
    """Pause, reopen or close a round; labels of leased documents are still taken."""

    def work(transaction: Transaction) -> None:
        find_round(transaction.connection, name)
        transaction.apply(record("state", round=name, state=state))

    log.write(work)


def lease(log: Log, assessor: str, name: str = "", n: int = 1) -> list[Lease] | NoLease:
    """Lease up to n documents to an assessor: those that they hold already, then new ones. NoLease says why there are none.

    An adaptive round gives one at a time, because the next depends on the answer; two if a model chooses.
    """

    def work(transaction: Transaction) -> list[Lease] | NoLease:
        desk = Leaseholder(transaction, name, assessor)
        desk.plan.refuse(assessor)
        return _lease_to(desk, n)

    return log.write(work)


def _lease_to(desk: Leaseholder, n: int) -> list[Lease] | NoLease:
    plan = desk.plan
    if desk.state != OPEN:
        return NoLease(f"round {plan.name!r} is {desk.state}")
    if (refusal := why_unqualified(desk.connection, plan.after, desk.assessor)) is not None:
        return refusal
    most = min(n, held_at_once(plan)) if plan.strategy else n
    answer = desk.held(most)
    while True:
        while len(answer) < most and (another := desk.claim()) is not None:
            answer.append(another)
        desk.write()
        leases = answer or (desk.nothing() if most > 0 else [])
        if leases is not None:  # else something came free between two looks
            return leases


def answer(
    log: Log, events: Sequence[Event], assessor: str, name: str = "", n: int = 1
) -> tuple[list[EventOutcome], list[Lease] | NoLease]:
    """Submit an assessor's events and lease up to n documents, in one transaction; all is on disk when this returns.

    Unlike with `log.add`, a refused event does not affect the others. An answer to a document of a round is kept only
    while the round is open and the assessor has leased (even if the lease has expired, unless somebody else has taken
    the document), answered or skipped it.
    """
    return log.write(lambda transaction: answer_within(Leaseholder(transaction, name, assessor), events, n, log.name))


def answer_within(
    desk: Leaseholder, events: Sequence[Event], n: int, name: str, server_fields: Collection[str] = ()
) -> tuple[list[EventOutcome], list[Lease] | NoLease]:
    """Do the work of `answer` within a transaction; `name` is the log's name, `server_fields` are those of `submit`."""
    outcomes = [_submitted(desk, event, name, server_fields) for event in events]
    try:
        desk.plan.refuse(desk.assessor)
    except DataError as error:
        return outcomes, NoLease(str(error))
    return outcomes, _lease_to(desk, n)


def _submitted(desk: Leaseholder, event: Event, name: str, server_fields: Collection[str]) -> EventOutcome:
    """Submit one event; an answer to an assignment that its assessor holds needs fewer statements."""
    fills = event.round == desk.plan.name and event.kind in ANSWERS and event.aspect == RELEVANCE
    place = desk.holds(event) if fills else None
    if place is not None and _refusal(desk, event, held=True) is None and desk.transaction.take(event, place):
        desk.filled(place)
        return EventOutcome(event.id, KEPT)

    def refuse(_: Transaction, event: Event) -> Refusal | None:
        return _refusal(desk, event, held=place is not None)

    outcome = submit(desk.transaction, event, name, refuse=refuse, server_fields=server_fields)
    desk.changed()
    return outcome


def _refusal(desk: Leaseholder, event: Event, held: bool) -> Refusal | None:
    """Why a round does not take an event."""
    if event.assessor != desk.assessor:
        return "assessor", f"it is of {event.assessor or 'nobody'}, and was sent by {desk.assessor}"
    about = event
    if event.kind == "withdrawal":
        withdrawn = desk.transaction.events_by_id([event.refers]).get(event.refers)
        if withdrawn is None:
            return "event", f"there is no event {shortened(event.refers)!r} to withdraw"
        about = withdrawn
    if not about.round or about.kind not in (*ANSWERS, "skip"):
        return None
    plan, state = desk.plan, desk.state
    if about.round != plan.name:
        try:
            plan, state = find_round(desk.connection, about.round)
        except DataError as error:
            return "round", str(error)
    if state != OPEN:
        return "round", f"round {plan.name!r} is {state}"
    if about is not event:
        return None
    for reason, grade in (("assessor", None), ("scale", event.grade if event.aspect == RELEVANCE else None)):
        try:
            plan.refuse(event.assessor, grade)
        except DataError as error:
            return reason, str(error)
    if held or owns(desk.connection, event):
        return None
    subject = f"topic {shortened(event.topic)!r}, document {shortened(event.document)!r}"
    return "lease", f"{subject} is not leased to {event.assessor} in round {plan.name!r}, or not any more"


def release(log: Log, assessor: str, name: str = "", leases: Sequence[Lease] | None = None) -> int:
    """Release an assessor's leases in a round, or some of them; return their number."""

    def work(transaction: Transaction) -> int:
        desk = Leaseholder(transaction, name, assessor)
        keys = None if leases is None else {(each.item, each.slot) for each in leases}
        back = [place for place in desk.mine() if keys is None or (place.item, place.slot) in keys]
        for place in back:
            at = {"round": desk.plan.name, "item": place.item, "slot": place.slot, "assessor": assessor}
            transaction.apply(record("release", **at))
        return len(back)

    return log.write(work)
