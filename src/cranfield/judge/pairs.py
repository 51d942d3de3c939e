"""Comparisons: pairs of documents, or of the lists of two runs, that people are asked to prefer one of.

A comparison is frozen when it is opened: its pairs, and the lists as they were. The side that each person sees a pair's first
thing on is drawn by lot from the seed, the person and the pair, so that it is the same when a page is loaded again. In its events
`document` stood on the left and `other` on the right, and `list` says so.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, NamedTuple

from sqlalchemy import func, insert, select, update

from cranfield.errors import DataError
from cranfield.judge.event import LISTS, RELEVANCE
from cranfield.judge.plan import OPEN, STATES
from cranfield.judge.policy import PEOPLE
from cranfield.judge.records import MANY, event_of
from cranfield.parameters import shortened
from cranfield.shapes import Count, OneOf, Text, read_json
from cranfield.store.hashes import COMPARISON, keep_hash, refuse_changed
from cranfield.store.tables import comparisons, events, standing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.engine import Connection

    from cranfield.judge.event import Event
    from cranfield.judge.log import Log
    from cranfield.judge.records import Transaction

KINDS = ("lists", "documents")
LEFT = "document left"  # behind the comparison's name in an event's `list`
Things = tuple[str, str, str]  # topic and two documents or runs, in order


class Pair(NamedTuple):
    """Two things to compare: documents, or runs with the lists that are shown."""

    topic: Text
    one: Text
    other: Text
    lists: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def things(self) -> Things:
        """As what stands calls it: the same from both sides."""
        first, second = sorted((self.one, self.other))
        return self.topic, first, second


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What was decided when a comparison was opened; `one` and `other` are the runs behind its pairs."""

    name: Text
    kind: Annotated[str, OneOf(KINDS)]
    one: Text
    other: Text
    pairs: tuple[Pair, ...]
    depth: Count = 10
    overlap: Count = 1  # people for each pair
    assessors: tuple[str, ...] = ()  # nobody in particular: everybody may
    seed: int = 0
    hashes: tuple[str, str] = ("", "")  # of the runs' files

    @property
    def aspect(self) -> str:
        """Of its events: lists are those of this comparison, documents are compared for what they are."""
        return f"{LISTS}:{self.name}" if self.kind == "lists" else RELEVANCE

    def refuse(self, assessor: str) -> None:
        """Stop at somebody who is not asked."""
        if self.assessors and assessor not in self.assessors:
            raise DataError(
                f"comparison {shortened(self.name)!r} is for {', '.join(self.assessors)}, not for {assessor}"
            )

    def swapped(self, assessor: str, place: int) -> bool:
        """Whether somebody sees a pair's first thing on the right."""
        return bool(self._lot("side", assessor, f"{place}")[0] & 1)

    def order(self, assessor: str) -> list[int]:
        """The pairs in somebody's own order, topic by topic."""
        topics = {pair.topic: self._lot("topic", assessor, pair.topic) for pair in self.pairs}
        lots = [(topics[pair.topic], self._lot("pair", assessor, f"{i}"), i) for i, pair in enumerate(self.pairs)]
        return [place for _, _, place in sorted(lots)]

    def _lot(self, *parts: str) -> bytes:
        text = "\0".join((f"{self.seed}", self.name, *parts))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def open_comparison(log: Log, plan: Comparison) -> None:
    """Begin a comparison."""
    if plan.kind not in KINDS:
        raise DataError(f"expected a kind of {', '.join(KINDS)}, found {shortened(plan.kind)!r}")
    if not plan.name.strip():
        raise DataError("a comparison needs a name")
    if not plan.pairs:
        raise DataError("there is nothing to compare: the two runs return the same for each topic")

    def work(transaction: Transaction) -> None:
        if _row(transaction.connection, plan.name) is not None:
            raise DataError(f"there is a comparison {shortened(plan.name)!r} already; choose another name")
        values = {"name": plan.name, "definition": json.dumps(asdict(plan)), "state": OPEN, "created": transaction.now}
        transaction.connection.execute(insert(comparisons), values)
        keep_hash(transaction.connection, COMPARISON, plan.name, values["definition"])

    log.write(work)


def set_comparison(log: Log, name: str, state: str) -> None:
    """Pause a comparison, go on with it, or close it."""
    if state not in STATES:
        raise DataError(f"expected a state of {', '.join(STATES)}, found {shortened(state)!r}")

    def work(transaction: Transaction) -> None:
        find_comparison(transaction.connection, name)
        transaction.connection.execute(update(comparisons).where(comparisons.c.name == name).values(state=state))

    log.write(work)


@lru_cache(32)
def _read(definition: str) -> Comparison:
    return read_json(definition, Comparison, "a stored comparison")


def _checked(connection: Connection, name: str, definition: str) -> Comparison:
    refuse_changed(connection, COMPARISON, name, definition)
    return _read(definition)


def _row(connection: Connection, name: str) -> tuple[Comparison, str] | None:
    query = select(comparisons.c.definition, comparisons.c.state).where(comparisons.c.name == name)
    row = connection.execute(query).first()
    return None if row is None else (_checked(connection, name, row.definition), row.state)


def find_comparison(connection: Connection, name: str) -> tuple[Comparison, str]:
    """A comparison and its state."""
    found = _row(connection, name)
    if found is None:
        raise DataError(f"there is no comparison {shortened(name)!r}")
    return found


def all_comparisons(connection: Connection) -> list[tuple[Comparison, str]]:
    """Every comparison with its state, the newest last."""
    rows = connection.execute(select(comparisons).order_by(comparisons.c.created, comparisons.c.name)).all()
    return [(_checked(connection, row.name, row.definition), row.state) for row in rows]


def answered(connection: Connection, plan: Comparison, assessor: str) -> set[Things]:
    """The pairs of an aspect that somebody has answered."""
    query = select(standing.c.topic, standing.c.document, standing.c.other).where(
        standing.c.side == "preference",
        standing.c.aspect == plan.aspect,
        standing.c.assessor == assessor,
        standing.c.repeat == False,  # noqa: E712  a column
    )
    return {(row.topic, row.document, row.other) for row in connection.execute(query)}


def counts(connection: Connection, plan: Comparison, topics: Iterable[str]) -> dict[Things, int]:
    """How many people have answered each pair of some topics."""
    wanted = list(dict.fromkeys(topics))
    key = standing.c.topic, standing.c.document, standing.c.other
    answer: dict[Things, int] = {}
    for start in range(0, len(wanted), MANY):
        query = (
            select(*key, func.count().label("n"))
            .join(events, events.c.id == standing.c.event)
            .where(
                standing.c.side == "preference",
                standing.c.topic.in_(wanted[start : start + MANY]),
                standing.c.aspect == plan.aspect,
                standing.c.repeat == False,  # noqa: E712  a column
                events.c.source.in_(PEOPLE),
            )
            .group_by(*key)
        )
        answer |= {(row.topic, row.document, row.other): row.n for row in connection.execute(query)}
    return answer


def preferred(connection: Connection, plan: Comparison) -> list[Event]:
    """What people prefer of a comparison's pairs."""
    pairs = {pair.things for pair in plan.pairs}
    query = (
        select(events)
        .join(standing, standing.c.event == events.c.id)
        .where(
            standing.c.side == "preference",
            standing.c.aspect == plan.aspect,
            standing.c.repeat == False,  # noqa: E712  a column
            events.c.source.in_(PEOPLE),
        )
    )
    said = [event_of(row) for row in connection.execute(query).mappings()]
    return [event for event in said if event.subject[:3] in pairs]
