"""A run seen through judgments: the judged documents it returned, and where.

Every measure reads this and nothing else. Unjudged documents are absent rather than given a magic
grade: real collections use grades of -1 and -2. Rows are ordered by topic and then by rank, so
sums, counts and products per topic are one NumPy call each.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cranfield.kernels import decode

if TYPE_CHECKING:
    from cranfield.collection import Extras, Qrels
    from cranfield.conventions import Conventions
    from cranfield.kernels import Found, Index, Order
    from cranfield.kernels.table import Floats, Ints
    from cranfield.run import Run


Mask = npt.NDArray[np.bool_]


def ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> Floats:
    """Part / whole, and 0 where the whole is 0."""
    part, whole = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
    answer: Floats = np.divide(part, whole, out=np.zeros(part.shape), where=whole != 0)
    return answer


class Judgments:
    """The grades of all judged documents, by topic: what a measure compares a run with.

    A document judged under several labels counts once, with its highest grade.
    """

    def __init__(self, qrels: Qrels, negative: str = "unjudged", extras: Extras | None = None) -> None:
        self.qrels = qrels
        self.extras = qrels.extras if extras is None else extras.over(qrels.extras)
        self.size = len(qrels.topics)
        first = qrels.index.first
        once = first == np.arange(len(first))
        grade = qrels.grade
        if not once.all():
            grade = grade.copy()
            np.maximum.at(grade, first, qrels.grade)
        if negative == "irrelevant":
            grade = np.maximum(grade, 0)
        self.of_row: Floats = grade  # the grade of each row of the index
        self.row: Ints = np.flatnonzero(once).astype(np.int32)
        self.topic: Ints = qrels.topic[once]
        self.grade: Floats = grade[once]
        self._relevant: dict[float, Ints] = {}
        self.kept: dict[Any, Any] = {}  # what measures have worked out of the judgments, for the next run

    def only(self, row: Ints, topic: Ints, grade: Floats) -> Judgments:
        """The same topics judged by these judgments alone, by topic: those of one label, one judge."""
        part = Judgments.__new__(Judgments)
        part.qrels, part.extras, part.size, part.of_row = self.qrels, self.extras, self.size, self.of_row
        part.row, part.topic, part.grade = row, topic, grade
        part._relevant, part.kept = {}, {}
        return part

    def count(self, mask: Mask) -> Ints:
        """How many of the judged documents that `mask` marks each topic has."""
        return np.bincount(self.topic[mask], minlength=self.size).astype(np.int32)

    def relevant(self, rel: float) -> Ints:
        """How many documents of grade `rel` or more each topic has."""
        if rel not in self._relevant:
            self._relevant[rel] = self.count(self.grade >= rel)
        return self._relevant[rel]

    @cached_property
    def ideal(self) -> Hits:
        """The hits of a perfect run: every document of a grade above 0, best first."""
        return self.best(self.grade)

    @cached_property
    def sampled(self) -> tuple[Floats, Ints]:
        """For each row of the index, the probability with which its document was sampled, and its stratum's number.

        Strata are numbered in the order of their names. A document of which nothing is known was judged for certain.
        """
        known = self.extras.probabilities or {}
        names, topics = self.qrels.documents, self.qrels.topics
        each = [
            known.get((topics[topic], decode(names[row])), (1.0, ""))
            for row, topic in enumerate(self.qrels.topic.tolist())
        ]
        numbers = {name: i for i, name in enumerate(sorted({name for _, name in each}))}
        return np.array([p for p, _ in each], np.float64), np.array([numbers[name] for _, name in each], np.int32)

    def best(self, worth: Floats, above: float = 0.0) -> Hits:
        """The hits of a perfect run where each judged document is worth this much: those above 0, best first."""
        kept = worth > above
        topic, grade, row = self.topic[kept], self.grade[kept], self.row[kept]
        order = np.lexsort((-worth[kept], topic))
        topic, grade, row = topic[order], grade[order], row[order]
        counts = np.bincount(topic, minlength=self.size)
        rank = _within(counts, topic)
        return Hits(self, topic, rank, grade, rank, rank, counts.astype(np.int32), row)


def _within(counts: npt.NDArray[Any], topic: Ints) -> Ints:
    """Number the rows of each topic 1, 2, 3 …"""
    start = np.cumsum(counts) - counts
    rank: Ints = (np.arange(len(topic)) - start[topic] + 1).astype(np.int32)
    return rank


class Hits:
    """The judged documents that a run returned: topic, rank, grade, and the span of ranks their tie group covers.

    Narrow it with `top(k)`, `relevant(rel)`, `nonrelevant(rel)` and `where(mask)`; sum it up per topic with
    `sum`, `count`, `first` and `last`; walk down the ranks with `nth`, `running_sum` and `running_product`.
    All of these return arrays over hits (`rank`-like) or over topics (`sum`-like).
    """

    judgments: Judgments
    topic: Ints
    rank: Ints
    grade: Floats
    tied_from: Ints
    tied_to: Ints
    row: Ints  # of the qrels, for what else is known of the document; -1 where there is none
    retrieved: Ints
    _elsewhere: tuple[Index, Found] | None = None
    _relevant: dict[float, Hits]
    _wider: Hits
    _kept: Any
    _source: tuple[Run, Order] | None
    _searched: tuple[Run, Order] | None  # the same, also of a condensed list

    def __init__(
        self,
        judgments: Judgments,
        topic: Ints,
        rank: Ints,
        grade: Floats,
        first: Ints,
        last: Ints,
        retrieved: Ints,
        row: Ints | None = None,
    ) -> None:
        self.judgments = judgments
        self.topic = topic
        self.rank = rank
        self.grade = grade
        self.tied_from = first
        self.tied_to = last
        self.retrieved = retrieved
        self.row = row if row is not None else np.full(len(topic), -1, np.int32)
        self._relevant = {}
        self._source = None
        self._searched = None

    def __getattr__(self, column: str) -> Any:
        """The columns of a narrowed view are cut out of the wider one when they are first asked for."""
        wider = self.__dict__.get("_wider")
        if wider is None or column not in ("topic", "rank", "grade", "tied_from", "tied_to", "row"):
            raise AttributeError(f"'Hits' object has no attribute {column!r}")
        values = getattr(wider, column)[self._kept]
        setattr(self, column, values)
        return values

    @property
    def size(self) -> int:
        """The number of topics."""
        return self.judgments.size

    def __len__(self) -> int:
        return len(self.topic)

    def let_go(self) -> None:
        """Forget the run and the views kept for later: they refer to one another, and would wait for the collector."""
        for view in self._relevant.values():
            view.let_go()
        self._relevant.clear()
        self._source = self._searched = None

    # narrowing

    def where(self, mask: Mask) -> Hits:
        """The hits that `mask` marks; ranks and the number retrieved stay."""
        view = Hits.__new__(Hits)
        view.judgments, view.retrieved, view._relevant = self.judgments, self.retrieved, {}
        view._wider, view._kept, view._source = self, np.flatnonzero(mask), None
        view._searched = self._searched
        return view

    def top(self, k: int | None) -> Hits:
        """The hits at ranks 1 to k, as if no more than k had been retrieved; all of them if k is None."""
        if k is None:
            return self
        if k >= self._deepest:
            return self
        kept = self.where(self.rank <= k)
        kept.retrieved = np.minimum(self.retrieved, k)
        return kept

    @cached_property
    def _deepest(self) -> int:
        return int(self.retrieved.max(initial=0))

    def relevant(self, rel: float = 1) -> Hits:
        """The hits of grade `rel` or more."""
        if rel not in self._relevant:
            self._relevant[rel] = self.where(self.grade >= rel)
        return self._relevant[rel]

    def nonrelevant(self, rel: float = 1) -> Hits:
        """The hits judged below `rel`; negative grades are no judgments."""
        return self.where((self.grade < rel) & (self.grade >= 0))

    def judged(self) -> Hits:
        """The hits that have a judgment: negative grades are none."""
        return self.where(self.grade >= 0)

    def condensed(self) -> Hits:
        """The run with its unjudged documents taken out: ranks are counted anew."""
        kept = self.judged()
        counts = kept.count()
        rank = _within(counts, kept.topic)
        group = np.r_[True, (kept.tied_from[1:] != kept.tied_from[:-1]) | (kept.topic[1:] != kept.topic[:-1])]
        start = np.flatnonzero(group[: len(rank)])
        size = np.diff(np.r_[start, len(rank)])
        first, last = np.repeat(rank[start], size), np.repeat(rank[start] + size - 1, size)
        view = Hits(self.judgments, kept.topic, rank, kept.grade, first, last.astype(np.int32), counts, kept.row)
        view._searched = self._searched
        return view

    # per topic

    def sum(self, values: npt.ArrayLike) -> Floats:
        """Add up one value a hit within each topic, down the ranks."""
        weights = np.broadcast_to(np.asarray(values, np.float64), self.topic.shape)
        return np.asarray(np.bincount(self.topic, weights=weights, minlength=self.size), np.float64)

    def count(self) -> Ints:
        """The number of hits in each topic."""
        return np.bincount(self.topic, minlength=self.size).astype(np.int32)

    def n_relevant(self, rel: float = 1) -> Ints:
        """How many documents of grade `rel` or more each topic has, retrieved or not."""
        return self.judgments.relevant(rel)

    @property
    def ideal(self) -> Hits:
        """The hits of a perfect run for the same topics: every document of a grade above 0, best first."""
        return self.judgments.ideal

    # what a few measures want beyond hits

    def grid(self, depth: int) -> Floats:
        """The grade at every rank, topics × `depth`; NaN where the document is unjudged or nothing was returned."""
        answer = np.full((self.size, depth), np.nan)
        shown = self.rank <= depth
        answer[self.topic[shown], self.rank[shown] - 1] = self.grade[shown]
        return answer

    @cached_property
    def labelled(self) -> Labelled:
        """The hits once for every label (qrels column 2: a subtopic, a judgment group) under which they were judged."""
        qrels = self.judgments.qrels
        rows_of = np.argsort(qrels.index.first, kind="stable")  # rows by the first row of their document
        starts = np.searchsorted(qrels.index.first[rows_of], self.row)
        times = np.searchsorted(qrels.index.first[rows_of], self.row, side="right") - starts
        hit = np.repeat(np.arange(len(self.row)), times)
        nth = np.arange(len(hit)) - np.repeat(np.cumsum(times) - times, times)
        row = rows_of[starts[hit] + nth]
        label = qrels.label[row] if len(qrels.label) else np.zeros(len(row), np.int32)
        return Labelled(hit, self.topic[hit], self.rank[hit], label, qrels.grade[row])

    @cached_property
    def listing(self) -> Listing:
        """Every document returned for a judged topic, judged or not. Costs as much as reading the run once more."""
        widest = self
        while "_wider" in widest.__dict__:
            widest = widest._wider
        if widest._source is None:
            return self._judged_listing()
        run, order = widest._source
        numbers = {name: i for i, name in enumerate(self.judgments.qrels.topics)}
        topic: list[int] = []
        rank: list[int] = []
        documents: list[str] = []
        for name in run.topics:
            if name not in numbers:
                continue
            ranked = [document for document, _ in run.ranking(name, order)]
            topic += [numbers[name]] * len(ranked)
            rank += range(1, len(ranked) + 1)
            documents += ranked
        by_topic = np.argsort(topic, kind="stable")
        return Listing(
            np.array(topic, np.int32)[by_topic], np.array(rank, np.int32)[by_topic], [documents[i] for i in by_topic]
        )

    def search(self, index: Index) -> Found:
        """Where the same run has other documents than the judged ones: those of a second index, such as preferences."""
        if self._searched is None:
            raise TypeError("these hits do not come from a run")
        if self._elsewhere is None or self._elsewhere[0] is not index:
            run, order = self._searched
            self._elsewhere = index, run.hits(index, order)
        return self._elsewhere[1]

    def _judged_listing(self) -> Listing:
        """The documents of a list that holds judged ones only: the ideal or the condensed list."""
        if (self.row < 0).any():
            raise TypeError("these hits do not come from a run")
        names = self.judgments.qrels.documents
        return Listing(self.topic, self.rank, [decode(names[row]) for row in self.row.tolist()])

    def costs(self, unknown: float = 1.0) -> tuple[Ints, Ints, Floats]:
        """The topic, rank and cost of every document returned; `unknown` where the collection gives it no cost.

        Without any costs there is nothing to list: every document then costs `unknown`.
        """
        known = self.judgments.extras.costs
        if known is None:
            return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0)
        listing = self.listing
        cost = np.array([known.get(document, unknown) for document in listing.documents], np.float64)
        return listing.topic, listing.rank, cost

    # over the orders of ties

    def chance_within(self, cut: npt.ArrayLike) -> Floats:
        """For each hit, the share of the ranks of its tie group that are no deeper than `cut`."""
        size = self.tied_to - self.tied_from + 1.0
        chance: Floats = np.clip(np.asarray(cut) - self.tied_from + 1, 0, size) / size
        return chance

    @cached_property
    def ties(self) -> Ties:
        """The tie groups that these hits stand in, a document without a tie being a group of one."""
        new = np.r_[True, (np.diff(self.topic) != 0) | (np.diff(self.tied_from) != 0)][: len(self.topic)]
        start = np.flatnonzero(new)
        number = np.diff(np.r_[start, len(self.topic)])
        topic, first = self.topic[start], self.tied_from[start]
        return Ties(topic, first, self.tied_to[start] - first + 1, number, self.nth[start] - 1)

    # down the ranks

    def total_at(self, values: npt.ArrayLike, topic: Ints, rank: Ints) -> Floats:
        """For each pair of a topic and a rank, the sum of the values of the hits at that rank and above."""
        depth = 1 + int(self.rank.max(initial=0))
        place = self.topic.astype(np.int64) * depth + self.rank
        start = np.searchsorted(place, topic.astype(np.int64) * depth)
        here = np.searchsorted(place, topic.astype(np.int64) * depth + np.minimum(rank, depth - 1), side="right")
        return np.where(here > start, np.r_[0.0, self.running_sum(values)][here], 0.0)

    @cached_property
    def nth(self) -> Ints:
        """The how-manieth hit of its topic each one is: 1, 2, 3 …"""
        return _within(self.count(), self.topic)

    def running_sum(self, values: npt.ArrayLike) -> Floats:
        """The sum of the values of this hit and of those above it in its topic."""
        return self._running(values, 0.0, np.cumsum)

    def running_product(self, values: npt.ArrayLike) -> Floats:
        """The product of the values of this hit and of those above it in its topic."""
        return self._running(values, 1.0, np.cumprod)

    def product_above(self, values: npt.ArrayLike) -> Floats:
        """The product of the values of the hits above this one in its topic; 1 for the first."""
        weights = np.broadcast_to(np.asarray(values, np.float64), self.topic.shape)
        shifted = np.r_[1.0, weights[:-1]][: len(weights)]
        return self.running_product(np.where(self.nth == 1, 1.0, shifted))

    def _running(self, values: npt.ArrayLike, neutral: float, step: Any) -> Floats:
        weights = np.broadcast_to(np.asarray(values, np.float64), self.topic.shape)
        if not len(weights):
            return np.zeros(0)
        column = self.nth - 1
        grid = np.full((self.size, int(column.max()) + 1), neutral)
        grid[self.topic, column] = weights
        walked: Floats = step(grid, axis=1)[self.topic, column]
        return walked

    def above(self, other: Hits) -> Ints:
        """For each hit, how many of `other`'s hits stand above it in its topic."""
        depth = 1 + int(max(self.rank.max(initial=0), other.rank.max(initial=0)))
        place = other.topic.astype(np.int64) * depth + other.rank
        start = np.searchsorted(place, self.topic.astype(np.int64) * depth)
        here = np.searchsorted(place, self.topic.astype(np.int64) * depth + self.rank)
        return (here - start).astype(np.int32)


class Ties:
    """Tie groups: their topic, first rank and size, how many of the hits stand in each, and how many above it."""

    def __init__(
        self, topic: Ints, first: Ints, size: Ints, number: npt.NDArray[np.intp], above: npt.NDArray[Any]
    ) -> None:
        self.topic = topic
        self.first = first
        self.size = size
        self.number = number
        self.above = above

    def places(self) -> tuple[npt.NDArray[np.intp], Ints]:
        """Every place of every group: which group it is in, and which place of it, counted from 0."""
        group = np.repeat(np.arange(len(self.size)), self.size)
        place = np.arange(len(group)) - np.repeat(np.cumsum(self.size) - self.size, self.size)
        return group, place.astype(np.int32)

    def none_before(self) -> Floats:
        """For each place, the probability that none of the hits of its group stands before it."""
        group, place = self.places()
        above = place - 1
        step = np.maximum(ratio((self.size - self.number)[group] - above, self.size[group] - above), 0.0)
        grid = np.ones((len(self.size), int(self.size.max(initial=1))))
        grid[group, place] = np.where(place > 0, step, 1.0)
        return np.asarray(np.cumprod(grid, axis=1)[group, place], np.float64)

    def topmost(self) -> Ties:
        """The first group of each topic."""
        kept = self.above == 0
        return Ties(self.topic[kept], self.first[kept], self.size[kept], self.number[kept], self.above[kept])


class Labelled:
    """Hits by label, in the order of the hits: `hit` says which hit each row is about."""

    def __init__(self, hit: npt.NDArray[Any], topic: Ints, rank: Ints, label: Ints, grade: Floats) -> None:
        self.hit = hit
        self.topic = topic
        self.rank = rank
        self.label = label
        self.grade = grade


class Listing:
    """All that a run returned for the judged topics, by topic and then by rank."""

    def __init__(self, topic: Ints, rank: Ints, documents: list[str]) -> None:
        self.topic = topic
        self.rank = rank
        self.documents = documents


def join(found: Found, judgments: Judgments, conventions: Conventions, run: Run | None = None) -> Hits:
    """Hits from what a kernel found. With the run they can list unjudged documents too."""
    grade = judgments.of_row[found.row]
    hits = Hits(judgments, found.topic, found.rank, grade, found.first, found.last, found.retrieved, found.row)
    hits._source = hits._searched = None if run is None else (run, conventions.order)
    return hits.condensed() if conventions.unjudged == "drop" else hits
