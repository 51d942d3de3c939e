"""Comparisons: pairs of documents, or of result lists of two runs, of which people prefer one.

A comparison is frozen when it is opened: its pairs, and the lists as they were. Which side a person sees a pair's first
member on is drawn from the seed, the person and the pair, so it is the same when a page is loaded again. In its events
`document` is the left side and `other` the right one; the field `list` records that.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from sqlalchemy import func, insert, select, update

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.base.schemas import Count, OneOf, Text, read_json
from cranfield.judging.event import LISTS, RELEVANCE, Event
from cranfield.judging.policies import PEOPLE
from cranfield.judging.round_plan import CLOSED, OPEN, STATES
from cranfield.store.hashes import COMPARISON, keep_hash, refuse_changed
from cranfield.store.tables import comparisons, events, rows_with, standing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.engine import Row
    from sqlalchemy.sql import ColumnElement, Select

    from cranfield.judging.log import Log
    from cranfield.judging.table_changes import Transaction

KINDS = ("lists", "documents")
LEFT = "document left"  # behind the comparison's name in an event's `list`
PairKey = tuple[str, str, str]  # topic and two documents or runs, in order
PAIR = standing.c.topic, standing.c.document, standing.c.other


class PreferencePair(NamedTuple):
    """Two documents to compare, or two runs with the lists that are shown."""

    topic: Text
    one: Text
    other: Text
    lists: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def things(self) -> PairKey:
        """Key of a preference, independent of which member was shown on the left."""
        first, second = sorted((self.one, self.other))
        return self.topic, first, second


@dataclass(frozen=True, kw_only=True)
class PairComparison:
    """The plan of a comparison; `one` and `other` are the two runs behind its pairs."""

    name: Text
    kind: Annotated[str, OneOf(KINDS)]
    one: Text
    other: Text
    pairs: tuple[PreferencePair, ...]
    depth: Count = 10
    overlap: Count = 1  # people for each pair
    assessors: tuple[str, ...] = ()  # nobody in particular: everybody may
    seed: int = 0
    hashes: tuple[str, str] = ("", "")  # of the runs' files

    @property
    def aspect(self) -> str:
        """The aspect of its events: result lists belong to this comparison, documents are compared for relevance."""
        return f"{LISTS}:{self.name}" if self.kind == "lists" else RELEVANCE

    def refuse(self, assessor: str) -> None:
        """Raise DataError if the comparison names its assessors and this one is not among them."""
        if self.assessors and assessor not in self.assessors:
            names = ", ".join(self.assessors)
            raise DataError(f"comparison {shortened(self.name)!r} is for {names}, not for {assessor}")

    def swapped(self, assessor: str, place: int) -> bool:
        """Whether an assessor sees a pair's first member on the right."""
        return bool(self._lot("side", assessor, f"{place}")[0] & 1)

    def order(self, assessor: str) -> list[int]:
        """The pairs in an assessor's own random order, topic by topic."""
        topics = {pair.topic: self._lot("topic", assessor, pair.topic) for pair in self.pairs}
        lots = [(topics[pair.topic], self._lot("pair", assessor, f"{i}"), i) for i, pair in enumerate(self.pairs)]
        return [place for _, _, place in sorted(lots)]

    def _lot(self, *parts: str) -> bytes:
        text = "\0".join((f"{self.seed}", self.name, *parts))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def open_comparison(log: Log, plan: PairComparison) -> None:
    """Store a new comparison; raise DataError if its name is taken or it has no pairs."""
    if plan.kind not in KINDS:
        raise DataError(f"expected a kind of {', '.join(KINDS)}, found {shortened(plan.kind)!r}")
    if not plan.name.strip():
        raise DataError("a comparison needs a name")
    if not plan.pairs:
        raise DataError("there is nothing to compare: the two runs return the same for each topic")

    def work(transaction: Transaction) -> None:
        if transaction.connection.execute(_stored(plan.name)).first() is not None:
            raise DataError(f"there is a comparison {shortened(plan.name)!r} already; choose another name")
        values = {"name": plan.name, "definition": json.dumps(asdict(plan)), "state": OPEN, "created": transaction.now}
        transaction.connection.execute(insert(comparisons), values)
        keep_hash(transaction.connection, COMPARISON, plan.name, values["definition"])

    log.write(work)


def set_comparison(log: Log, name: str, state: str) -> None:
    """Pause, reopen or close a comparison."""
    if state not in STATES:
        raise DataError(f"expected a state of {', '.join(STATES)}, found {shortened(state)!r}")

    def work(transaction: Transaction) -> None:
        find_comparison(transaction, name)
        transaction.connection.execute(update(comparisons).where(comparisons.c.name == name).values(state=state))

    log.write(work)


@lru_cache(32)
def _read(definition: str) -> PairComparison:
    return read_json(definition, PairComparison, "a stored comparison")


def _checked(transaction: Transaction, row: Row[Any]) -> PairComparison:
    refuse_changed(transaction.connection, COMPARISON, row.name, row.definition)
    return _read(row.definition)


def _stored(name: str) -> Select[Any]:
    return select(comparisons).where(comparisons.c.name == name)


def find_comparison(transaction: Transaction, name: str) -> tuple[PairComparison, str]:
    """A comparison and its state."""
    row = transaction.connection.execute(_stored(name)).first()
    if row is None:
        raise DataError(f"there is no comparison {shortened(name)!r}")
    return _checked(transaction, row), row.state


def all_comparisons(transaction: Transaction) -> list[tuple[PairComparison, str]]:
    """Every comparison with its state, the newest last."""
    rows = transaction.connection.execute(select(comparisons).order_by(comparisons.c.created, comparisons.c.name)).all()
    return [(_checked(transaction, row), row.state) for row in rows]


def unclosed_comparisons(transaction: Transaction) -> list[PairComparison]:
    """Every comparison that is open or paused."""
    rows = transaction.connection.execute(select(comparisons).where(comparisons.c.state != CLOSED)).all()
    return [_checked(transaction, row) for row in rows]


def _current(plan: PairComparison) -> tuple[ColumnElement[bool], ...]:
    """The conditions for a current preference of a comparison."""
    c = standing.c
    return c.side == "preference", c.aspect == plan.aspect, c.repeat == False  # noqa: E712  a column


def answered_pairs(transaction: Transaction, plan: PairComparison, assessor: str) -> set[PairKey]:
    """The pairs of a comparison that an assessor has answered."""
    query = select(*PAIR).where(*_current(plan), standing.c.assessor == assessor)
    return {(row.topic, row.document, row.other) for row in transaction.connection.execute(query)}


def answer_counts(transaction: Transaction, plan: PairComparison, topics: Iterable[str]) -> dict[PairKey, int]:
    """The number of people who have answered each pair of these topics."""
    counts = select(*PAIR, func.count().label("n")).join(events, events.c.id == standing.c.event).group_by(*PAIR)
    query = counts.where(*_current(plan), events.c.source.in_(PEOPLE))
    rows = rows_with(transaction.connection, query, standing.c.topic, dict.fromkeys(topics))
    return {(row.topic, row.document, row.other): row.n for row in rows}


def preferences_in(transaction: Transaction, plan: PairComparison) -> list[Event]:
    """People's current preferences for the pairs of a comparison."""
    pairs = {pair.things for pair in plan.pairs}
    query = select(events).join(standing, standing.c.event == events.c.id)
    preferences = transaction.read_events(query.where(*_current(plan), events.c.source.in_(PEOPLE)))
    return [event for event in preferences if event.subject[:3] in pairs]
