"""Answers to gold: questions whose grade is known, asked to see who can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, select

from cranfield.judge.plan import Nothing
from cranfield.store.tables import events, items, places

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from cranfield.judge.plan import Round


class GoldAnswer(NamedTuple):
    """What somebody said of a document whose grade is known."""

    assessor: str
    topic: str
    document: str
    right: float
    said: float | None  # None: could not judge


def answers(connection: Connection, name: str) -> list[GoldAnswer]:
    """All answers to the gold of a round."""
    on = and_(items.c.round == places.c.round, items.c.item == places.c.item)
    query = (
        select(places.c.assessor, items.c.topic, items.c.document, items.c.grade, events.c.grade.label("said"))
        .join(items, on)
        .join(events, events.c.id == places.c.event)
        .where(places.c.round == name, places.c.state == "done", items.c.role == "gold")
        .order_by(events.c.seq)
    )
    return [GoldAnswer(*row) for row in connection.execute(query)]


def passed(connection: Connection, plan: Round, assessor: str) -> Nothing | None:
    """None if somebody has passed a qualifying round, else why not."""
    on = and_(
        places.c.round == items.c.round,
        places.c.item == items.c.item,
        places.c.assessor == assessor,
        places.c.state.in_(["done", "skipped"]),  # who passes over a question does not get it right
    )
    query = (
        select(items.c.grade, places.c.state, events.c.grade.label("said"))
        .outerjoin(places, on)
        .outerjoin(events, events.c.id == places.c.event)
        .where(items.c.round == plan.name, items.c.role == "gold")
    )
    rows = connection.execute(query).all()
    wanted = len(rows)
    answered = sum(row.state is not None for row in rows)
    right = sum(row.state == "done" and row.said == row.grade for row in rows)
    if answered < wanted:
        return Nothing(f"{assessor} first answers round {plan.name!r}: {answered} of {wanted} so far")
    if right < (plan.passing or 0) * wanted:
        told = f"{right} of {wanted} right, {plan.passing:.0%} needed"
        return Nothing(f"{assessor} did not pass round {plan.name!r}: {told}")
    return None
