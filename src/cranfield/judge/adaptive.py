"""What an adaptive strategy asks for next, given the labels that stand.

The session is built from the round's lists and the labels of the moment, so that a label that was changed, withdrawn or
decided by a third person counts as it stands now. Documents that are out already are passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from cranfield.errors import DataError
from cranfield.formats.judgments import Judgment
from cranfield.judge.event import RELEVANCE
from cranfield.judge.plan import Asked
from cranfield.judge.policy import PEOPLE
from cranfield.pool.session import Session
from cranfield.store.tables import events, items, standing

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from cranfield.judge.plan import Round


def refuse_strategy(plan: Round) -> None:
    """Refuse to begin what no document could be named in: an unknown strategy, or one that needs what a round lacks."""
    if Session(plan.rankings, plan.strategy, seed=plan.seed, rel=plan.rel).next() is None:
        raise DataError(f"round {plan.name!r}: the runs have no document for {plan.strategy} to choose from")


def named(connection: Connection, plan: Round, topic: str) -> Asked | None:
    """The next document of the strategy, of a topic if that has one left, else of the topic that has had the fewest."""
    query = select(items.c.topic, items.c.document).where(items.c.round == plan.name)
    out = {(row.topic, row.document) for row in connection.execute(query)}
    session = Session(plan.rankings, plan.strategy, seed=plan.seed, rel=plan.rel, labels=_labels(connection, plan))
    for wanted in ([topic] if topic in plan.lists else []) + [None]:
        while (item := session.next(wanted)) is not None:
            if (item.topic, item.document) not in out:
                return Asked(item.topic, item.document, plan.overlap)
    return None


def _labels(connection: Connection, plan: Round) -> list[Judgment]:
    """The labels of people that stand of the round's topics: the last word of each, an adjudication above all."""
    query = (
        select(standing.c.side, *(events.c[name] for name in (*Judgment.__slots__, "id")))
        .join(events, events.c.id == standing.c.event)
        .where(
            standing.c.side.in_(["label", "adjudication"]),
            standing.c.aspect == RELEVANCE,
            standing.c.repeat == False,  # noqa: E712  a column
            events.c.grade.is_not(None),
            events.c.source.in_(PEOPLE),
        )
    )
    rows = [row for row in connection.execute(query) if row.topic in plan.lists]
    rows.sort(key=lambda row: (row.side == "adjudication", row.time, row.id))
    known = {topic: set(each.documents) for topic, each in plan.rankings.candidates.items()}
    return [
        Judgment(row.topic, row.document, row.grade, row.assessor, row.time)
        for row in rows
        if row.document in known[row.topic]
    ]
