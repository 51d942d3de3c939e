"""What is decided when a round is opened, and what is handed out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from sqlalchemy import Engine, select

from cranfield.errors import DataError
from cranfield.judge.event import LAST_RANK
from cranfield.parameters import shortened
from cranfield.pool.rankings import Candidates, Rankings
from cranfield.shapes import Between, Id, OneOf, Share, Text, read_json
from cranfield.store.hashes import ROUND, refuse_changed
from cranfield.store.tables import rounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.engine import Connection

Lists = dict[str, dict[str, list[Id]]]  # topic → run → documents
DOCUMENTS, TOPICS = "documents", "topics"
OPEN, PAUSED, CLOSED = STATES = ("open", "paused", "closed")
Places = Annotated[int, Between(0, LAST_RANK)]


class Asked(NamedTuple):
    """A document of a round: how many labels it is to get; gold has a grade that is known to be right."""

    topic: Id
    document: Id
    overlap: Places = 1
    probability: Annotated[float, Between(0, 1, above=True)] = 1.0  # with which it was drawn
    role: Annotated[str, OneOf(("pool", "gold"))] = "pool"
    grade: float | None = None


@dataclass(frozen=True, kw_only=True)
class Round:
    """What was decided when a round was opened."""

    name: Text
    assessors: tuple[str, ...] = ()  # nobody in particular: everybody may
    lease: Annotated[float, Between(0)] = 1800.0  # seconds
    overlap: Places = 1
    gold_share: Share = 0.0
    repeat_share: Share = 0.0
    seed: int = 0
    strategy: str = ""  # of an adaptive round; empty for one whose documents are all known
    rel: float = 1.0
    lists: Lists = field(default_factory=dict)  # for the strategy
    sample: str = ""  # how documents were drawn at random; empty if they were not
    unit: Annotated[str, OneOf((DOCUMENTS, TOPICS))] = (
        DOCUMENTS  # what was drawn: single documents, or topics with all of theirs
    )
    frame: dict[str, list[Id]] = field(default_factory=dict)  # what a sample was drawn from: topic → documents
    passing: Share | None = None  # of a round that qualifies: the share of gold one must get right
    after: str = ""  # the round that must be passed first
    guideline: str = ""
    scale: tuple[float, ...] = ()  # the grades that may be given; empty: any

    @cached_property
    def rankings(self) -> Rankings:
        """The lists as the pool reads them."""
        return rankings_of(self.lists)

    def refuse(self, assessor: str, grade: float | None = None) -> None:
        """Refuse somebody who is not asked, and a grade off the scale."""
        if not assessor:
            raise DataError("a round is judged by somebody: say who with --assessor")
        if self.assessors and assessor not in self.assessors:
            told = ", ".join(self.assessors)
            raise DataError(f"round {self.name!r} is for {told}; {assessor!r} is not among them")
        if self.scale and grade is not None and grade not in self.scale:
            shown = ", ".join(f"{each:g}" for each in self.scale)
            raise DataError(f"round {self.name!r} grades by {shown}; found {grade:g}")


def rankings_of(tops: Lists) -> Rankings:
    """Lists as the pool reads them."""
    runs = sorted({run for lists in tops.values() for run in lists})
    place = {run: i for i, run in enumerate(runs)}
    candidates = {}
    for topic, lists in tops.items():
        documents = list(dict.fromkeys(document for ranked in lists.values() for document in ranked))
        number = {document: i for i, document in enumerate(documents)}
        rows = [
            (place[run], number[document], rank)
            for run, ranked in lists.items()
            for rank, document in enumerate(ranked, 1)
        ]
        run, document, rank = np.asarray(sorted(rows), np.int32).reshape(-1, 3).T
        candidates[topic] = Candidates(topic, runs, documents, run, document, rank, -rank.astype(np.float64))
    depth = max((len(ranked) for lists in tops.values() for ranked in lists.values()), default=1)
    return Rankings(runs, [depth] * len(runs), candidates)


class Lease(NamedTuple):
    """A document that somebody is to judge until a time."""

    round: str
    topic: str
    document: str
    assessor: str
    until: str
    repeat: bool
    item: int
    slot: int


class Nothing(NamedTuple):
    """Why there is nothing to judge, and when something may come free."""

    why: str
    free_at: str | None = None


def find_round(connection: Connection, name: str = "") -> tuple[Round, str]:
    """A round and its state; without a name the only one that is open."""
    return chosen(connection, connection.execute(KNOWN).all(), name)[:2]


def chosen(connection: Connection, rows: Sequence[Any], name: str = "") -> tuple[Round, str, Any]:
    """Of all rounds the one of a name, or the only one that is open: what was decided, its state, its row."""
    fitting = [row for row in rows if (row.name == name if name else row.state == OPEN)]
    if len(fitting) != 1:
        names = ", ".join(sorted(repr(row.name) for row in (fitting or rows))) or "none"
        told = f"there is no round {name!r}" if name else f"{len(fitting)} rounds are open; name one with --round"
        raise DataError(f"{told}; there are: {names}")
    row = fitting[0]
    return _plan(connection, row.name, row.created), row.state, row


def plans(connection: Connection) -> list[tuple[Round, str]]:
    """Every round and its state, the oldest first."""
    rows = connection.execute(select(rounds.c.name, rounds.c.state, rounds.c.created)).all()
    ordered = sorted(rows, key=lambda row: (row.created, row.name))
    return [(_plan(connection, row.name, row.created), row.state) for row in ordered]


def _plan(connection: Connection, name: str, created: str) -> Round:
    """What a round was opened with, which never changes: read once for an engine, as lists may be long."""
    known = READ.setdefault(connection.engine, {})
    plan = known.get((name, created))
    if plan is None:
        definition = connection.execute(select(rounds.c.definition).where(rounds.c.name == name)).scalar_one()
        refuse_changed(connection, ROUND, name, definition)
        plan = known[name, created] = read_json(definition, Round, f"round {shortened(name)!r}")
    return plan


KNOWN = select(rounds.c.name, rounds.c.state, rounds.c.created)
READ: WeakKeyDictionary[Engine, dict[tuple[str, str], Round]] = WeakKeyDictionary()
