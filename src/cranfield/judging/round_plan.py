"""The plan of a round: which documents it asks about, how often, by whom, in which order, and the cost.

What was stored when the round was opened never changes. People, topics, overlap, depth and order change by further records
(`RoundChange`), each with a hash of its own; the plan as it is now is the first one with all changes applied.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from sqlalchemy import Engine, select

from cranfield.base.errors import DataError
from cranfield.base.parameters import refuse_below, shortened
from cranfield.base.results import Answer, Layout, Part, Table, plain
from cranfield.base.schemas import Between, Id, OneOf, Share, Text, read_json
from cranfield.judging.event import LAST_RANK
from cranfield.judging.policies import flat
from cranfield.pooling.strategy import Candidates, Rankings
from cranfield.store.hashes import CHANGE, ROUND, refuse_changed
from cranfield.store.tables import round_changes, rounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy.engine import Connection

    from cranfield.formats.pool_files import PoolItem


def plan_items(
    items: Sequence[PoolItem],
    *,
    overlap: int = 1,
    double: float = 0.0,
    sample: int | None = None,
    sample_topics: int | None = None,
    gold: Mapping[str, Mapping[str, float]] | None = None,
    seed: int = 0,
) -> list[RoundItem]:
    """The documents of a round in the order of the pool; `double` is the share that gets one label more than the others.

    A sample is drawn with equal probabilities from all items, or from all topics with their items; each item keeps its
    probability.

    >>> from cranfield.formats.pool_files import PoolItem
    >>> [asked.probability for asked in plan_items([PoolItem("q", "a", 1), PoolItem("q", "b", 2)], sample=1)]
    [0.5]
    """
    refuse_below(1, overlap=overlap)
    if not 0 <= double <= 1:
        raise DataError(f"--double-share: expected a share of 0 to 100%, found {double:.0%}")
    rng = np.random.default_rng(seed)
    unique = list({(item.topic, item.document): item for item in items}.values())
    chosen = any(item.priority for item in unique)
    pool = [item for item in unique if item.priority or not chosen]
    chance = 1.0
    if sample is not None and sample_topics is not None:
        raise DataError("--sample draws documents, --sample-topics topics: give one of them")
    if sample is not None:
        numbers, chance = _lot(len(pool), sample, "--sample", "documents", rng)
        pool = [pool[i] for i in numbers]
    elif sample_topics is not None:
        pool, chance = _of_topics(pool, sample_topics, rng)
    pool.sort(key=lambda item: item.priority)
    twice = set(rng.permutation(len(pool))[: round(double * len(pool))].tolist())
    round_items = [
        RoundItem(item.topic, item.document, overlap + (number in twice), item.probability * chance)
        for number, item in enumerate(pool)
    ]
    return round_items + _gold(gold or {}, {(each.topic, each.document) for each in round_items})


def count_judged(candidates: Mapping[str, Candidates], judged: Mapping[str, Mapping[str, float]]) -> int:
    """The number of candidates that are judged already, and that a plan leaves out."""
    return sum(document in judged.get(topic, ()) for topic, each in candidates.items() for document in each.documents)


def without_judged(
    lists: Mapping[str, Mapping[str, Sequence[str]]], judged: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, list[str]]]:
    """The lists of runs by topic, without the documents that are judged already.

    >>> without_judged({"q": {"bm25": ["a", "b"], "dense": ["b"]}}, {"q": {"b": 1.0}})
    {'q': {'bm25': ['a'], 'dense': []}}
    """
    return {
        topic: {run: [name for name in names if name not in judged.get(topic, ())] for run, names in runs.items()}
        for topic, runs in lists.items()
    }


def frame_of(items: Sequence[PoolItem]) -> dict[str, list[str]]:
    """The sampling frame of a round: every document of the pool, also those that the pool did not sample.

    >>> from cranfield.formats.pool_files import PoolItem
    >>> frame_of([PoolItem("q", "a", 1), PoolItem("q", "b", 2, priority=0)])
    {'q': ['a', 'b']}
    """
    frame: dict[str, dict[str, None]] = {}
    for item in items:
        frame.setdefault(item.topic, {})[item.document] = None
    return {topic: list(documents) for topic, documents in frame.items()}


def _lot(all_of_them: int, count: int, option: str, what: str, rng: np.random.Generator) -> tuple[list[int], float]:
    """A random sample of `count` of the numbers below `all_of_them`, sorted, and the probability of each."""
    if not 1 <= count <= all_of_them:
        raise DataError(f"{option}: expected 1 to {all_of_them}, the {what} of the pool, found {count}")
    return np.sort(rng.choice(all_of_them, count, replace=False)).tolist(), count / all_of_them


def _of_topics(items: list[PoolItem], count: int, rng: np.random.Generator) -> tuple[list[PoolItem], float]:
    """The items of randomly chosen topics; a pool that is itself a sample is refused, since all items of a topic count."""
    part = next((item for item in items if item.probability < 1), None)
    if part is not None:
        item = f"topic {part.topic!r}, document {part.document!r} is in the pool with a chance of {part.probability:g}"
        raise DataError(f"--sample-topics: {item}; draw topics from a pool that is whole")
    topics = list(dict.fromkeys(item.topic for item in items))
    numbers, chance = _lot(len(topics), count, "--sample-topics", "topics", rng)
    names = {topics[i] for i in numbers}
    return [item for item in items if item.topic in names], chance


def _gold(gold: Mapping[str, Mapping[str, float]], pool: set[tuple[str, str]]) -> list[RoundItem]:
    """The gold items; one that is in the pool as well is refused, since it would be asked twice."""
    grades = flat(gold)
    for topic, document in grades:
        if (topic, document) in pool:
            item = f"topic {topic!r}, document {document!r}"
            raise DataError(f"{item} is gold and in the pool; take it out of one of them")
    return [RoundItem(*subject, 0, 1.0, "gold", grade) for subject, grade in grades.items()]


def positions(order: str, seed: int, subjects: Sequence[tuple[str, str]]) -> list[int]:
    """The position of each document in the order of judging: that of the pool, or shuffled within topics.

    A shuffled order depends on the seed and the ids alone: it tells nothing about ranks, and documents that are added later
    leave the others in their order. Topics take turns, so that assessors who begin at once begin with different topics.

    >>> positions(SHUFFLED, 1, [("q", "a"), ("q", "b"), ("r", "a")]), positions(PRIORITY, 1, [("q", "a"), ("q", "b")])
    ([2, 1, 0], [0, 1])
    """
    if order == PRIORITY:
        return list(range(len(subjects)))
    lots = {topic: drawn(seed, topic) for topic, _ in subjects}
    turns: Counter[str] = Counter()
    turn = {}
    for topic, document in sorted(subjects, key=lambda each: drawn(seed, *each)):
        turn[topic, document] = turns[topic]
        turns[topic] += 1
    ordered = sorted(subjects, key=lambda each: (turn[each], lots[each[0]]))
    place = {subject: number for number, subject in enumerate(ordered)}
    return [place[subject] for subject in subjects]


def drawn(*parts: object) -> bytes:
    """A random value that depends on these parts alone."""
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()


def working_hours(labels: int, seconds: float) -> float:
    """The hours of one person for labels at a pace: planning and status show this figure.

    >>> working_hours(3, 60)
    0.05
    """
    return labels * seconds / 3600


@dataclass(frozen=True, repr=False)
class RoundPlan(Answer):
    """The cost of a round: documents, labels, hours."""

    strategy: str
    topics: dict[str, int]  # topic → documents
    labels: int
    twice: int  # documents that more than one person labels
    seconds: float  # a label
    source: str  # where the seconds come from
    judged: int  # documents that are left out because they are judged

    @classmethod
    def of(cls, items: Sequence[RoundItem], strategy: str, seconds: float, source: str, judged: int = 0) -> RoundPlan:
        """The plan of a round's documents.

        >>> plan = RoundPlan.of([RoundItem("q", "a", 2), RoundItem("q", "b")], "depth", 60, "a guess")
        >>> plan.documents, plan.labels, plan.hours
        (2, 3, 0.05)
        """
        topics = dict(Counter(each.topic for each in items))
        labels = sum(each.overlap for each in items)
        return cls(strategy, topics, labels, sum(each.overlap > 1 for each in items), seconds, source, judged)

    @property
    def documents(self) -> int:
        """The number of documents."""
        return sum(self.topics.values())

    @property
    def hours(self) -> float:
        """The working hours of one person."""
        return working_hours(self.labels, self.seconds)

    def content(self, how: Layout) -> Iterator[Part]:
        counts = list(self.topics.values()) or [0]
        rows = [
            ["documents", f"{self.documents:,}"],
            ["topics", f"{len(self.topics):,}"],
            ["documents per topic", f"{min(counts):,} to {max(counts):,}"],
            ["labels", f"{self.labels:,}"],
            ["labelled by several people", f"{self.twice:,}"],
            ["left out, judged already", f"{self.judged:,}"],
            ["hours of one person", f"{self.hours:,.1f}"],
            ["seconds per label", f"{round(self.seconds, 1):g} ({self.source})"],
        ]
        yield Table(["strategy", self.strategy], rows, left=1, title="What the round takes")

    def plain(self, how: Layout) -> Any:
        return plain({**vars(self), "documents": self.documents, "hours": self.hours}, how.digits)


Lists = dict[str, dict[str, list[Id]]]  # topic → run → documents
DOCUMENTS, TOPICS = "documents", "topics"
OPEN, PAUSED, CLOSED = STATES = ("open", "paused", "closed")
SHUFFLED, PRIORITY = ORDERS = ("shuffled", "priority")
Order = Annotated[str, OneOf(ORDERS)]
ItemCount = Annotated[int, Between(0, LAST_RANK)]
SampleUnit = Annotated[str, OneOf((DOCUMENTS, TOPICS))]  # what was drawn: documents, or topics with all of theirs


class RoundItem(NamedTuple):
    """A document of a round and its planned number of labels; gold has a known grade."""

    topic: Id
    document: Id
    overlap: ItemCount = 1
    probability: Annotated[float, Between(0, 1, above=True)] = 1.0  # with which it was drawn
    role: Annotated[str, OneOf(("pool", "gold"))] = "pool"
    grade: float | None = None


@dataclass(frozen=True, kw_only=True)
class Round:
    """The plan of a round, as it was opened or as it is after changes."""

    name: Text
    assessors: tuple[str, ...] = ()  # nobody in particular: everybody may
    lease: Annotated[float, Between(0)] = 1800.0  # seconds
    overlap: ItemCount = 1
    gold_share: Share = 0.0
    repeat_share: Share = 0.0
    seed: int = 0
    strategy: str = ""  # of an adaptive round; empty for one whose documents are all known
    rel: float = 1.0
    lists: Lists = field(default_factory=dict)  # for the strategy
    cap: ItemCount = 0  # maximum number of documents per topic, also of those that a strategy may ask for; 0: all
    sample: str = ""  # how documents were drawn at random; empty if they were not
    unit: SampleUnit = DOCUMENTS
    frame: dict[str, list[Id]] = field(default_factory=dict)  # what a sample was drawn from: topic → documents
    passing: Share | None = None  # of a round that qualifies: the share of gold one must get right
    after: str = ""  # the round that must be passed first
    guideline: str = ""
    scale: tuple[float, ...] = ()  # the grades that may be given; empty: any
    order: Order = PRIORITY  # in which documents come: as the pool has them, or shuffled within topics
    topics: tuple[str, ...] = ()  # to judge; empty: all
    topic_people: dict[str, tuple[str, ...]] = field(default_factory=dict)  # who judges each topic; empty: anybody
    choose_topics: bool = False  # whether people choose their topics
    runs: tuple[str, ...] = ()  # that documents were pooled from; empty: not known
    pooling: str = ""  # the strategy of that pool
    depth: ItemCount = 0  # of that pool, or of the lists of an adaptive round; 0: not known
    dropped: tuple[ItemCount, ...] = ()  # numbers of documents that are not to be judged any more

    @cached_property
    def rankings(self) -> Rankings:
        """The ranked lists in the form that pooling uses."""
        runs = sorted({run for lists in self.lists.values() for run in lists})
        place = {run: i for i, run in enumerate(runs)}
        candidates = {}
        for topic, lists in self.lists.items():
            if self.topics and topic not in self.topics:
                continue
            documents = list(dict.fromkeys(document for ranked in lists.values() for document in ranked))
            number = {document: i for i, document in enumerate(documents)}
            rows = [(place[run], number[name], rank) for run, top in lists.items() for rank, name in enumerate(top, 1)]
            run, document, rank = np.asarray(sorted(rows), np.int32).reshape(-1, 3).T
            candidates[topic] = Candidates(topic, runs, documents, run, document, rank, -rank.astype(np.float64))
        depth = max((len(ranked) for lists in self.lists.values() for ranked in lists.values()), default=1)
        return Rankings(runs, [depth] * len(runs), candidates)

    def refuse(self, assessor: str, grade: float | None = None) -> None:
        """Raise DataError for an assessor who does not belong to the round, or a grade that is not on its scale."""
        if not assessor:
            raise DataError("a round needs an assessor: name one with --assessor")
        if self.assessors and assessor not in self.assessors:
            names = ", ".join(self.assessors)
            raise DataError(f"round {self.name!r} is for {names}; {assessor!r} is not among them")
        if self.scale and grade is not None and grade not in self.scale:
            grades = ", ".join(f"{each:g}" for each in self.scale)
            raise DataError(f"round {self.name!r} grades by {grades}; found {grade:g}")

    def topics_of(self, assessor: str) -> list[str] | None:
        """The topics that are assigned to an assessor; None if topics are not assigned."""
        if not self.topic_people:
            return None
        return [topic for topic, people in self.topic_people.items() if assessor in people]

    def labels_wanted(self, opened: Round, item: int, topic: str, planned: int) -> int:
        """The number of labels that a document needs now; `planned` is the number in the first plan."""
        if item in self._dropped or (self.topics and topic not in self.topics):
            return 0
        more = 0 if self.strategy else planned - opened.overlap  # one, for the share that gets a label more
        return self.overlap + max(0, more)

    @cached_property
    def _dropped(self) -> frozenset[int]:
        return frozenset(self.dropped)


@dataclass(frozen=True, kw_only=True)
class RoundChange:
    """One change of an open round: who made it and when, and the new value of each field that changed."""

    round: Text
    number: ItemCount
    at: Text
    by: str = ""
    assessors: tuple[str, ...] | None = None
    overlap: ItemCount | None = None
    topics: tuple[str, ...] | None = None
    topic_people: dict[str, tuple[str, ...]] | None = None
    choose_topics: bool | None = None
    order: Order | None = None
    depth: ItemCount | None = None
    runs: tuple[str, ...] | None = None
    pooling: str | None = None
    lists: Lists | None = None
    dropped: tuple[ItemCount, ...] | None = None
    items: tuple[RoundItem, ...] = ()  # documents that were added
    offered: tuple[ItemCount, ...] = ()  # numbers of skipped documents that everybody may get again

    @property
    def id(self) -> str:
        """The key of the change in its table."""
        return f"{self.number}/{self.round}"

    def of(self, plan: Round) -> Round:
        """The plan after this change."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name in CHANGEABLE}
        return replace(plan, **{name: value for name, value in values.items() if value is not None})


CHANGEABLE = {each.name for each in fields(RoundChange)} & {each.name for each in fields(Round)}


class Lease(NamedTuple):
    """A document that is leased to an assessor until a time."""

    round: str
    topic: str
    document: str
    assessor: str
    until: str
    repeat: bool
    item: int
    slot: int


class NoLease(NamedTuple):
    """Why there is nothing to judge, and when the next lease ends."""

    why: str
    free_at: str | None = None


def find_round(connection: Connection, name: str = "") -> tuple[Round, str]:
    """A round and its state; without a name the only one that is open."""
    return pick_round(connection, connection.execute(KNOWN).all(), name)[:2]


def pick_round(connection: Connection, rows: Sequence[Any], name: str = "") -> tuple[Round, str, Any]:
    """The round of this name, or the only open one: its plan, state and row."""
    fitting = [row for row in rows if (row.name == name if name else row.state == OPEN)]
    if len(fitting) != 1:
        names = ", ".join(sorted(repr(row.name) for row in (fitting or rows))) or "none"
        problem = f"there is no round {name!r}" if name else f"{len(fitting)} rounds are open; name one with --round"
        raise DataError(f"{problem}; there are: {names}")
    row = fitting[0]
    return plan_of(connection, row), row.state, row


def all_rounds(connection: Connection) -> list[tuple[Round, str]]:
    """Every round and its state, the oldest first."""
    rows = sorted(connection.execute(KNOWN), key=lambda row: (row.created, row.name))
    return [(plan_of(connection, row), row.state) for row in rows]


def plan_of(connection: Connection, row: Any) -> Round:
    """The plan of a round after its changes; it is read again only after a further change."""
    plans = READ.setdefault(connection.engine, {})
    key = (row.name, row.created, row.changed)
    if key not in plans:
        plan = opened_round(connection, row.name)
        for change in changes_of(connection, row.name) if row.changed else []:
            plan = change.of(plan)
        plans[key] = plan
    return plans[key]


def opened_round(connection: Connection, name: str) -> Round:
    """The plan with which a round was opened, without later changes."""
    definition = connection.execute(select(rounds.c.definition).where(rounds.c.name == name)).scalar_one()
    refuse_changed(connection, ROUND, name, definition)
    return read_json(definition, Round, f"round {shortened(name)!r}")


def changes_of(connection: Connection, name: str) -> list[RoundChange]:
    """The changes of a round, the oldest first."""
    c = round_changes.c
    rows = connection.execute(select(c.id, c.definition).where(c.round == name).order_by(c.number)).all()
    for row in rows:
        refuse_changed(connection, CHANGE, row.id, row.definition)
    return [read_json(row.definition, RoundChange, f"a change of round {shortened(name)!r}") for row in rows]


KNOWN = select(rounds.c.name, rounds.c.state, rounds.c.created, rounds.c.changed)
READ: WeakKeyDictionary[Engine, dict[tuple[str, str, str], Round]] = WeakKeyDictionary()
