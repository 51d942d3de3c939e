"""Judging rounds: open a round, lease documents to assessors, take their labels, release leases.

Within one transaction an assessor gets, in this order: documents that they hold already, gold, repeats, and documents
of the pool. A lease is requested for every judgment, so there are few statements: one reads the leases that the
assessor holds, one writes all new leases, and expired leases are looked for only if there are any.

Gold comes by chance, so that the share of gold is the same in every stretch of an assessor's work: each draw has the
probability that a random order of the gold and of the documents that are planned for this assessor would give it. Gold
that is left when the pool is done is not asked, since it would come in a row; only a qualifying round asks for all of it.

In an adaptive round a strategy chooses the next document (`judging.adaptive_choice`): a label that was changed, withdrawn or
adjudicated counts as it is now. Documents that are leased already are passed over.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, bindparam, case, func, literal_column, or_, select

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.judging.adaptive_choice import held_at_once, next_document
from cranfield.judging.assignments import ANSWERS, ON, owns, record, why_unqualified
from cranfield.judging.event import RELEVANCE, Event, instant
from cranfield.judging.event_intake import KEPT, EventOutcome, Refusal, submit
from cranfield.judging.round_plan import OPEN, Lease, NoLease, Round, RoundItem, drawn, find_round, pick_round
from cranfield.pooling.strategy import STRATEGIES
from cranfield.store.accounts import Account
from cranfield.store.roles import ROLES
from cranfield.store.tables import accounts, events, invitations, items, places, rounds, rows_with

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy.engine import Connection, Row
    from sqlalchemy.sql import ColumnElement, Select

    from cranfield.judging.log import Log
    from cranfield.judging.table_changes import Transaction


LEASED: ColumnElement[str] = literal_column("'leased'")  # as the indexes say it
FREE: ColumnElement[str] = literal_column("'free'")
ASSIGNMENTS = select(places, items.c.document, items.c.role).join(items, ON).where(places.c.round == bindparam("name"))
MINE = places.c.assessor == bindparam("who")
HELD = ASSIGNMENTS.where(MINE, places.c.state == LEASED).order_by(places.c.until, places.c.position, places.c.item)
HELD = HELD.with_for_update(of=places)
LAST = (
    select(places.c.topic, places.c.position)
    .where(places.c.round == bindparam("name"), MINE, places.c.until.is_not(None))
    .order_by(places.c.until.desc(), places.c.position.desc(), places.c.slot.desc())
    .limit(1)
)
COUNT = select(func.count()).where(places.c.round == bindparam("name"), MINE)
OWN_COUNT = select(func.count()).where(places.c.round == bindparam("name"), MINE, ~places.c.repeat)
SCOPE = places.c.topic.in_(bindparam("topics", expanding=True))


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


AHEAD, TOPIC, SOME, ALL = "ahead", "topic", "some", "all"  # where a person looks for a document, one after the other


@cache
def _claimable(over: bool, where: str, skip_locked: bool) -> Select[Any]:
    """The first assignment that is free or has an expired lease, if the assessor has no other one of the document."""
    query = ASSIGNMENTS.where(~_elsewhere(own_slot=True))
    if over:
        query = query.where(places.c.state == LEASED, places.c.counted, places.c.until < bindparam("now"))
        order = [places.c.position + 0, places.c.slot]  # no index is to be read for this order: few leases are over
    else:
        query = query.where(places.c.state == FREE)
        order = [places.c.position, places.c.slot]
    if where in (AHEAD, TOPIC):
        query = query.where(places.c.topic == bindparam("topic"))
    if where == AHEAD:
        query = query.where(places.c.position > bindparam("at"))
    if where == SOME:
        query = query.where(SCOPE)
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


OPEN_TO_ME = (places.c.round == bindparam("name"), places.c.counted, ~_elsewhere(own_slot=False))
CHOICES = (
    select(places.c.topic, func.count(places.c.item.distinct()).label("left"))
    .where(*OPEN_TO_ME, or_(places.c.state == FREE, (places.c.state == LEASED) & (places.c.until < bindparam("now"))))
    .group_by(places.c.topic)
)
AT_WORK = (
    select(places.c.topic, func.count(places.c.assessor.distinct()).label("people"))
    .where(places.c.round == bindparam("name"), places.c.assessor != bindparam("who"))
    .where(places.c.state == LEASED, places.c.until >= bindparam("now"))
    .group_by(places.c.topic)
)


OTHERS = select(func.min(places.c.until)).where(
    places.c.round == bindparam("name"),
    places.c.assessor != bindparam("who"),
    places.c.state == LEASED,
    places.c.until >= bindparam("now"),
)


class TopicChoice(NamedTuple):
    """A topic that an assessor may choose: the documents that are left for them, and whether it is taken at the moment."""

    topic: str
    left: int
    taken: bool

    def in_words(self) -> str:
        """The topic and what is left of it."""
        return f"{self.topic}: {'others are judging it' if self.taken else f'{self.left:,} documents left'}"


class RoundShape(NamedTuple):
    """The size of a round: its gold, and for each topic its documents and the labels that they need."""

    gold: dict[int, str]  # item → topic
    documents: dict[str, int]
    labels: dict[str, int]

    def share(self, plan: Round, scope: Sequence[str] | None) -> int:
        """The number of documents of the pool that are planned for one assessor."""
        topics = self.documents if scope is None else [topic for topic in scope if topic in self.documents]
        documents = sum(self.documents[topic] for topic in topics)
        if scope is not None or not plan.assessors:  # an assessor judges all of a topic
            return documents
        return min(documents, -(-sum(self.labels[topic] for topic in topics) // len(plan.assessors)))


SHAPES: WeakKeyDictionary[Engine, dict[tuple[str, str, str], RoundShape]] = WeakKeyDictionary()


def _shape(connection: Connection, plan: Round, key: tuple[str, str, str]) -> RoundShape:
    """The size of a round; it is counted again only after a change of the round."""
    shapes = SHAPES.setdefault(connection.engine, {})
    if key not in shapes:
        here = items.c.round == plan.name
        gold = connection.execute(select(items.c.item, items.c.topic).where(here, items.c.role == "gold")).all()
        query = select(items.c.topic, func.count().label("n"), func.sum(items.c.wanted).label("labels"))
        pool = query.where(here, items.c.role == "pool", items.c.wanted > 0).group_by(items.c.topic)
        counts = {row.topic: (row.n, row.labels) for row in connection.execute(pool)}
        if plan.strategy:
            sizes = {topic: len(each.documents) for topic, each in plan.rankings.candidates.items()}
            counts = {topic: (n, n * plan.overlap) for topic, n in sizes.items()}
        documents, labels = ({topic: each[i] for topic, each in counts.items()} for i in (0, 1))
        shapes[key] = RoundShape({row.item: row.topic for row in gold}, documents, labels)
    return shapes[key]


class Leaseholder:
    """One assessor in a round, within a transaction: what they hold, and what they can be leased."""

    def __init__(self, transaction: Transaction, name: str, assessor: str) -> None:
        self.plan, self.state, row = pick_round(transaction.connection, transaction.round_rows(), name)
        self.key = row.name, row.created, row.changed
        self.transaction = transaction
        self.assessor = assessor
        self.connection = transaction.connection
        self.over = row.over is not None and row.over < transaction.now  # whether any lease of the round is
        self.who = {"name": self.plan.name, "who": assessor}
        self._mine: list[Row[Any]] | None = None
        self._last: tuple[str, int] | None = None  # topic and position that this person was at last
        self._new_leases: list[dict[str, Any]] = []  # leases that are not written yet
        self._leases = 0  # of this transaction; the next ends a microsecond later, so that their order is known
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
        self._last = place.topic, place.position

    def changed(self) -> None:
        """Read the assignments again when they are next needed."""
        self._mine = None

    def held(self, n: int) -> list[Lease]:
        """Renew the assessor's leases; an expired lease is renewed only if nobody else can get the assignment."""
        rows = [row for row in self.mine() if row.until >= self.transaction.now or row.repeat or row.role == "gold"]
        return [self._lease(row, row.slot, row.repeat, row.position) for row in rows[:n]]

    def scope(self) -> list[str] | None:
        """The topics that this assessor may judge: assigned ones, or the one that they chose; None means all."""
        if self.plan.choose_topics:
            return [self._at()[0]]
        return self.plan.topics_of(self.assessor)

    def claim(self) -> Lease | None:
        """Lease one more document: gold and repeats at random, else from the pool."""
        if self._claimed:
            self.write()
        self._claimed = True
        if self.plan.choose_topics and not self._at()[0]:
            return None
        gold = self._unseen_gold(self.scope())
        rate = self._gold_rate(len(gold)) if gold else 0.0
        chance = self._chance() if gold or self.plan.repeat_share else 1.0
        if chance < rate:
            return self._gold(gold)
        if rate <= chance < rate + self.plan.repeat_share and (again := self._again()) is not None:
            return again
        free = self._free(skip_locked=True)
        if free is None and self.plan.strategy:
            free = self._opened()
        if free is None and self.transaction.concurrent:
            free = self._free(skip_locked=False)  # others had it locked: ask again and wait for them
        if free is not None:
            return self._lease(free, free.slot, False)
        return self._gold(gold) if gold and self.plan.passing is not None else None  # all of it qualifies

    def write(self) -> None:
        """Write the new leases."""
        self.transaction.lease(self._new_leases)
        self._new_leases = []

    def _lease(self, row: Row[Any], slot: int, repeat: bool, position: int | None = None) -> Lease:
        key = {"round": self.plan.name, "item": row.item, "slot": slot, "assessor": self.assessor}
        place = {} if position is None else {"position": position}
        length = timedelta(seconds=self.plan.lease, microseconds=self._leases)
        until = instant(datetime.fromisoformat(self.transaction.now) + length)
        self._leases += 1
        self._new_leases.append(record("lease", **key, repeat=bool(repeat), until=until, **place))
        self._last = row.topic, row.position if position is None else position
        where = self.plan.name, row.topic, row.document, self.assessor, until, bool(repeat)
        return Lease(*where, row.item, slot)

    def _chance(self) -> float:
        """A reproducible number below 1 that depends on the assessor and the number of their assignments."""
        count = self.connection.execute(COUNT, self.who).scalar_one()
        lot = drawn(f"{self.plan.seed}/{self.plan.name}/{self.assessor}/{count}")
        return int.from_bytes(lot[:6], "big") / 2**48

    def _unseen_gold(self, scope: Sequence[str] | None) -> list[int]:
        """The gold that this assessor has not had, of some topics or of all."""
        gold = _shape(self.connection, self.plan, self.key).gold
        numbers = [item for item, topic in gold.items() if scope is None or topic in scope]
        mine = select(places.c.item).where(places.c.round == self.plan.name, places.c.assessor == self.assessor)
        seen = {row.item for row in rows_with(self.connection, mine, places.c.item, numbers)}
        return [item for item in numbers if item not in seen]

    def _gold_rate(self, left: int) -> float:
        """The probability that the next document is gold, if so many are left.

        Until the round changes, it is the probability in a random order of the gold and the planned documents. Somebody who
        does more than was planned, or whose plan has changed, gets gold at the planned rate.
        """
        shape, scope = _shape(self.connection, self.plan, self.key), self.scope()
        gold = sum(scope is None or topic in scope for topic in shape.gold.values())
        share, others = shape.share(self.plan, scope), 1 - self.plan.repeat_share
        query, values = (
            (OWN_COUNT, self.who) if scope is None else (OWN_COUNT.where(SCOPE), self.who | {"topics": scope})
        )
        done = self.connection.execute(query, values).scalar_one() - (gold - left)
        by_order = not self.key[2] and done <= share
        rate = (left / (left + share - done) if by_order else gold / (gold + share)) * others
        return rate if not self.plan.gold_share or self.plan.passing is not None else min(self.plan.gold_share, rate)

    def _gold(self, numbers: Sequence[int]) -> Lease:
        """A lease of gold, of the current topic if possible; every assessor gets gold in another order."""
        topic, position = self._at()
        gold = _shape(self.connection, self.plan, self.key).gold
        here = [item for item in numbers if gold[item] == topic] or numbers
        item = min(here, key=lambda number: drawn(self.plan.seed, self.assessor, number))
        row = self.connection.execute(select(items).where(items.c.round == self.plan.name, items.c.item == item)).one()
        return self._lease(row, self._next_slot(item), False, max(position, 0))

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
        scope = self.scope()
        query = query if scope is None else query.where(places.c.topic.in_(scope))
        row = self.connection.execute(query.order_by(events.c.seq).limit(1), self.who).first()
        return None if row is None else self._lease(row, self._next_slot(row.item), True, max(self._at()[1], 0))

    def _next_slot(self, item: int) -> int:
        """The next slot of an item, locked against others."""
        one = select(items.c.item).where(items.c.round == self.plan.name, items.c.item == item)
        self.connection.execute(one.with_for_update())
        query = select(func.max(places.c.slot)).where(places.c.round == self.plan.name, places.c.item == item)
        last = self.connection.execute(query).scalar()
        return 0 if last is None else last + 1

    def _at(self) -> tuple[str, int]:
        """The topic and position of this assessor's last document; an empty topic if there was none."""
        if self._last is None:
            row = self.connection.execute(LAST, self.who).first()
            self._last = ("", -1) if row is None else (row.topic, row.position)
        return self._last

    def _free(self, skip_locked: bool) -> Row[Any] | None:
        """A free assignment: later in the assessor's current topic, else anywhere in it, else in any of their topics.

        Continuing from the current document avoids a scan over all documents that the assessor has judged and others
        have not.
        """
        (topic, at), scope = self._at(), self.scope()
        values = self.who | {"topic": topic, "at": at, "now": self.transaction.now, "topics": scope}
        looks = (False, True) if self.over else (False,)
        here = [AHEAD, TOPIC] if topic and (scope is None or topic in scope) else []
        for where in [*here, ALL if scope is None else SOME]:
            rows = [self.connection.execute(_claimable(over, where, skip_locked), values).first() for over in looks]
            free = [row for row in rows if row is not None]
            if free:
                return min(free, key=lambda row: (row.position, row.slot))
        return None

    def _opened(self) -> Row[Any] | None:
        """Add the strategy's next document to the round, and return one of its assignments."""
        self.connection.execute(select(rounds.c.name).where(rounds.c.name == self.plan.name).with_for_update())
        free = self._free(skip_locked=True)  # somebody may have opened one meanwhile
        if free is not None:
            return free
        item = next_document(self.transaction, self.plan, self._at()[0], self.scope())
        if item is None:
            return None
        first = self.connection.execute(select(func.count()).where(items.c.round == self.plan.name)).scalar_one()
        self.transaction.apply(record("items", round=self.plan.name, first=first, items=[tuple(item)]))
        return self._free(skip_locked=False)

    def nothing(self) -> NoLease | None:
        """Why there is nothing to judge, and when the first lease of a suitable document ends.

        This looks at all assignments; the result is None if one of them turns out to be free.
        """
        choices = [each for each in self.choices() if each.left] if self.plan.choose_topics else []
        if any(not each.taken for each in choices):
            return NoLease(f"choose a topic of round {self.plan.name!r}")
        if choices:
            until = self.connection.execute(OTHERS, self.who | {"now": self.transaction.now}).scalar()
            return NoLease(f"all topics that are left for {self.assessor} are being judged by others", until)
        scope = None if self.plan.choose_topics else self.scope()
        query, values = (LEFT, self.who) if scope is None else (LEFT.where(SCOPE), self.who | {"topics": scope})
        earliest = self.connection.execute(query, values).scalar()
        if earliest is None:
            return NoLease(f"nothing is left for {self.assessor} in round {self.plan.name!r}")
        if earliest < self.transaction.now:
            self.over = True
            return None
        return NoLease(f"all documents that are left for {self.assessor} are leased to others", earliest)

    def choices(self) -> list[TopicChoice]:
        """The topics of a round in which people choose; a topic is taken while as many work on it as labels are wanted.

        What is left includes gold that may come, and no repeats, so that the number does not tell which document is which.
        """
        values = self.who | {"now": self.transaction.now}
        left = {row.topic: row.left for row in self.connection.execute(CHOICES, values)}
        people = {row.topic: row.people for row in self.connection.execute(AT_WORK, values)}
        shape = _shape(self.connection, self.plan, self.key)
        gold = Counter(shape.gold[item] for item in self._unseen_gold(None)) if shape.gold else Counter()
        held = {row.topic for row in self.mine()}
        own = Counter(row.topic for row in self.mine() if not row.repeat)
        to_come = self._to_come() if self.plan.strategy else {}
        answer = []
        for topic in shape.documents:
            count = left.get(topic, 0) + own[topic] + to_come.get(topic, 0)
            taken = topic not in held and people.get(topic, 0) >= self.plan.overlap
            answer.append(TopicChoice(topic, count + gold[topic] if count else 0, taken))
        return answer

    def _to_come(self) -> dict[str, int]:
        """The documents of each topic that a strategy has not chosen yet."""
        query = select(items.c.topic, func.count().label("n")).where(items.c.round == self.plan.name)
        there = {row.topic: row.n for row in self.connection.execute(query.group_by(items.c.topic))}
        sizes = _shape(self.connection, self.plan, self.key).documents
        return {topic: max(0, size - there.get(topic, 0)) for topic, size in sizes.items()}

    def choose(self, topic: str) -> None:
        """Go to another topic: leases of other topics are released. DataError if the topic cannot be chosen."""
        if not self.plan.choose_topics:
            raise DataError(f"people do not choose topics in round {self.plan.name!r}")
        choice = next((each for each in self.choices() if each.topic == topic), None)
        if choice is None:
            raise DataError(f"round {self.plan.name!r} has no topic {shortened(topic)!r}")
        if choice.taken:
            raise DataError(f"topic {shortened(topic)!r} is being judged by others; choose another")
        if choice.left == 0:
            raise DataError(f"topic {shortened(topic)!r} has nothing left for {self.assessor}; choose another")
        for row in self.mine():
            if row.topic != topic:
                key = {"round": self.plan.name, "item": row.item, "slot": row.slot, "assessor": self.assessor}
                self.transaction.apply(record("release", **key))
        self._mine, self._last = None, (topic, -1)


def topic_choices(log: Log, assessor: str, name: str = "") -> list[TopicChoice]:
    """The topics that an assessor may choose in a round; empty if people do not choose in it."""
    with log.reading() as transaction:
        plan, _ = transaction.find_round(name)
        plan.refuse(assessor)
        return Leaseholder(transaction, plan.name, assessor).choices() if plan.choose_topics else []


def topic_sizes(plan: Round, subjects: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The number of documents of each topic that a round judges."""
    if plan.strategy:
        return {topic: len(each.documents) for topic, each in plan.rankings.candidates.items()}
    return dict(Counter(topic for topic, _ in subjects if not plan.topics or topic in plan.topics))


def refuse_strangers(transaction: Transaction, plan: Round, most: int) -> None:
    """Raise DataError for people without an account that may judge, or for more labels than there are people.

    `most` is the largest number of labels that a document needs. People with an open invitation count, by their number.
    Without any account nothing is checked.
    """
    rows = transaction.connection.execute(select(accounts.c.name, accounts.c.role, accounts.c.active)).all()
    known = {row.name for row in rows if Account(row.name, row.role, row.active).may(ROLES[1])}
    unknown = [name for name in plan.assessors if name not in known] if rows else []
    if unknown:
        names = ", ".join(sorted(known)) or "none"
        raise DataError(f"{shortened(unknown[0])!r} has no account that may judge; there are: {names}")
    invited = select(func.count()).where(~invitations.c.reset, invitations.c.until > transaction.now)
    invited = invited.where(invitations.c.role.in_(ROLES[1:]))
    if rows and most > (people := len(known) + transaction.connection.execute(invited).scalar_one()):
        there = f"{people} may judge here: invite more, or let them sign in"
        raise DataError(f"round {plan.name!r}: {most} labels per document need {most} people, and {there}")


def refuse_plan(plan: Round, most: int, topics: Collection[str]) -> None:
    """Raise DataError for more labels per document than people, or for topics that the round does not have.

    `most` is the largest number of labels that a document needs, `topics` are those of the round.
    """
    if plan.assessors and most > len(plan.assessors):
        problem = f"{most} labels per document need {most} people, and {len(plan.assessors)} are named"
        raise DataError(f"round {plan.name!r}: {problem}")
    if plan.topic_people and plan.choose_topics:
        raise DataError(f"round {plan.name!r}: topics are assigned, or people choose them: take one of both")
    if (plan.topic_people or plan.choose_topics) and plan.passing is not None:
        raise DataError(f"round {plan.name!r}: a qualifying round asks everybody about all topics")
    if plan.topic_people and (wrong := plan.topic_people.keys() ^ topics):
        problem = "is not in the round" if min(wrong) in plan.topic_people else "is assigned to nobody"
        raise DataError(f"round {plan.name!r}: topic {shortened(min(wrong))!r} {problem}")
    for topic, people in plan.topic_people.items():
        strangers = [name for name in people if name not in plan.assessors]
        if strangers:
            raise DataError(f"topic {shortened(topic)!r} is assigned to {strangers[0]!r}, who is not among the people")
        if len(set(people)) != most:
            problem = f"expected {most} people, one per label, found {len(set(people))}"
            raise DataError(f"topic {shortened(topic)!r}: {problem}")


def refuse_round(plan: Round, items_of_round: list[RoundItem]) -> None:
    """Raise DataError for a plan that no log can open, such as one whose strategy is unknown or finds no document."""
    if not plan.name.strip():
        raise DataError(f"expected a name for the round, found {plan.name!r}")
    if plan.passing is not None and not any(each.role == "gold" for each in items_of_round):
        raise DataError(f"round {plan.name!r} has a pass mark but no gold to answer: give --gold")
    if plan.strategy and STRATEGIES.named(plan.strategy) and not len(plan.rankings):
        raise DataError(f"round {plan.name!r}: the runs have no document for {plan.strategy} to choose from")
    pool = [each for each in items_of_round if each.role == "pool"]
    refuse_plan(plan, most_labels(plan, pool), topic_sizes(plan, [(each.topic, each.document) for each in pool]))


def most_labels(plan: Round, documents: Sequence[RoundItem]) -> int:
    """The largest number of labels that a document of a round needs."""
    return max([each.overlap for each in documents if each.role == "pool"], default=plan.overlap)


def open_round(log: Log, plan: Round, items_of_round: list[RoundItem]) -> None:
    """Open a round with all its documents and assignments, or nothing."""
    refuse_round(plan, items_of_round)

    def work(transaction: Transaction) -> None:
        if plan.after and find_round(transaction.connection, plan.after)[0].passing is None:
            raise DataError(f"round {plan.after!r} is not a qualifying round: open one with --gold and --pass first")
        refuse_strangers(transaction, plan, most_labels(plan, items_of_round))
        documents = [tuple(each) for each in items_of_round]
        transaction.apply(record("round", **asdict(plan), items=documents, at=transaction.now))

    log.write(work)


def set_state(log: Log, name: str, state: str) -> None:
    """Pause, reopen or close a round; labels of leased documents are still taken."""

    def work(transaction: Transaction) -> None:
        find_round(transaction.connection, name)
        transaction.apply(record("state", round=name, state=state))

    log.write(work)


def lease(log: Log, assessor: str, name: str = "", n: int = 1, topic: str = "") -> list[Lease] | NoLease:
    """Lease up to n documents to an assessor: those that they hold already, then new ones. NoLease says why there are none.

    An adaptive round gives one at a time, because the next depends on the answer; two if a model chooses. `topic` is the topic
    that the assessor chooses, in a round in which people choose.
    """

    def work(transaction: Transaction) -> list[Lease] | NoLease:
        desk = Leaseholder(transaction, name, assessor)
        desk.plan.refuse(assessor)
        if topic:
            desk.choose(topic)
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
