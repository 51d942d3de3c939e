"""What one assessor may see of a round: its progress and their own labels, but no labels of others and no gold grades."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, bindparam, func, literal, select, true

from cranfield.judging.assignments import ON
from cranfield.judging.event import RELEVANCE, Event
from cranfield.judging.round_plan import OPEN
from cranfield.store.tables import events, items, places, standing

if TYPE_CHECKING:
    from collections.abc import Collection

    from cranfield.judging.policies import Subject
    from cranfield.judging.round_plan import Round
    from cranfield.judging.table_changes import Transaction

ANSWERED = ("done", "extra")


class RoundTally(NamedTuple):
    """The progress of a round. Gold and repeats count like other documents, so that the count does not reveal them."""

    done: int
    all: int | None  # None: the strategy of the round says as it goes
    documents: int
    at_work: int  # people who hold a document


class OwnAssignment(NamedTuple):
    """One assessor's assignment of a document."""

    item: int
    repeat: bool
    state: str  # of their place; empty if they have none
    event: str


def tally(transaction: Transaction, plan: Round) -> RoundTally:
    """The progress of a round."""
    execute, here = transaction.connection.execute, places.c.round == plan.name
    done = execute(select(func.count()).where(here, places.c.state.in_(ANSWERED))).scalar_one()
    out = and_(here, places.c.state == "leased", places.c.until >= transaction.now)
    people_of = select(func.count(places.c.assessor.distinct()))
    at_work = execute(people_of.where(out)).scalar_one()
    by_role = select(items.c.role, func.count().label("n"), func.sum(items.c.wanted).label("labels"))
    wanted = items.c.round == plan.name, (items.c.wanted > 0) | (items.c.role == "gold")
    roles = {row.role: row for row in execute(by_role.where(*wanted).group_by("role"))}
    documents = sum(row.n for row in roles.values())
    if plan.strategy:
        return RoundTally(done, None, documents, at_work)
    labels = roles["pool"].labels if "pool" in roles else 0
    gold = roles["gold"].n if "gold" in roles else 0
    people = len(plan.assessors) or execute(people_of.where(here)).scalar_one() if gold else 0
    golden = gold * max(1, people)
    if plan.gold_share and plan.passing is None:  # the share of all questions, as long as there is gold
        golden = min(golden, round(plan.gold_share / max(1 - plan.gold_share, 0.01) * labels))
    total = labels + golden + round(plan.repeat_share * labels)
    to_do = select(places.c.item).where(here, places.c.counted, places.c.state.in_(("free", "leased"))).limit(1)
    if plan.passing is None and execute(to_do).first() is None:
        total = done  # the pool is done, and what gold is left is not asked
    return RoundTally(min(done, total), total, documents, at_work)


WHO = places.c.round == bindparam("name"), places.c.assessor == bindparam("who")
COUNT = select(func.count()).where(*WHO, places.c.state.in_(ANSWERED))


def own_count(transaction: Transaction, name: str, assessor: str) -> int:
    """The number of documents of a round that an assessor has answered."""
    return int(transaction.connection.execute(COUNT, {"name": name, "who": assessor}).scalar_one())


def own_labels(transaction: Transaction, name: str, assessor: str, most: int, first: int = 0) -> list[Event]:
    """An assessor's last label of each document of a round, the newest first."""
    mine = places.c.round == name, places.c.assessor == assessor, places.c.state.in_((*ANSWERED, "skipped"))
    query = select(events).join(places, places.c.event == events.c.id).where(*mine)
    return transaction.read_events(query.order_by(events.c.seq.desc()).limit(most).offset(first))


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


class OwnPace(NamedTuple):
    """The number of documents that an assessor has answered in a round, and the seconds the last ones took."""

    done: int
    seconds: list[float]


# the count in each row, and one row per document with seconds; one row without seconds if there is none
LAST, ONE = SECONDS.subquery(), select(literal(1).label("one")).subquery()
OWN = select(COUNT.scalar_subquery().label("n"), LAST.c.seconds).select_from(ONE.outerjoin(LAST, true()))


def own_pace(transaction: Transaction, name: str, assessor: str, most: int) -> OwnPace:
    """An assessor's progress in a round, and how long their last documents took."""
    rows = transaction.connection.execute(OWN, {"name": name, "who": assessor, "most": most}).all()
    return OwnPace(int(rows[0].n), [row.seconds for row in rows if row.seconds is not None])


def own_label(transaction: Transaction, name: str, assessor: str, subject: Subject) -> Event | None:
    """An assessor's label of one document of a round; the later one if they labelled it twice."""
    topic, document = subject
    here = items.c.round == name, items.c.topic == topic, items.c.document == document
    query = select(events).join(places, places.c.event == events.c.id).join(items, ON)
    last = query.where(*here, places.c.assessor == assessor).order_by(events.c.seq.desc()).limit(1)
    return next(iter(transaction.read_events(last)), None)


ASSIGNMENTS = (
    select(items.c.item, places.c.repeat, places.c.state, places.c.event)
    .outerjoin(places, and_(ON, places.c.assessor == bindparam("who")))
    .where(*(items.c[name] == bindparam(name) for name in ("round", "topic", "document")))
)


def own_assignments(transaction: Transaction, name: str, assessor: str, subject: Subject) -> list[OwnAssignment]:
    """An assessor's assignments of a document, or one empty assignment; an empty list if the round lacks the document."""
    values = {"round": name, "topic": subject[0], "document": subject[1], "who": assessor}
    rows = transaction.connection.execute(ASSIGNMENTS, values)
    return [OwnAssignment(row.item, bool(row.repeat), row.state or "", row.event or "") for row in rows]


def own_current_labels(
    transaction: Transaction, assessor: str, topic: str, documents: Collection[str]
) -> dict[str, Event]:
    """An assessor's current labels of some documents of a topic, inside rounds and outside, by document."""
    label = standing.c.side == "label", standing.c.aspect == RELEVANCE, ~standing.c.repeat
    here = standing.c.topic == topic, standing.c.document.in_(documents), standing.c.assessor == assessor
    query = select(events).join(standing, standing.c.event == events.c.id).where(*label, *here)
    return {event.document: event for event in transaction.read_events(query)}


def own_open_round(transaction: Transaction, assessor: str, subject: Subject) -> str:
    """The open round that leased a document to the assessor, else one in which they answered it; empty if there is none.

    Repeats do not count: a second label on purpose comes from the round itself.
    """
    answered = ""
    for plan, state in transaction.all_rounds():
        if state != OPEN or (plan.assessors and assessor not in plan.assessors):
            continue
        states = {each.state for each in own_assignments(transaction, plan.name, assessor, subject) if not each.repeat}
        if "leased" in states:
            return plan.name
        answered = answered or (plan.name if states & {*ANSWERED, "skipped"} else "")
    return answered
