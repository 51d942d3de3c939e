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

if TYPE_CHECKING:
    from cranfield.collection import Qrels
    from cranfield.conventions import Conventions
    from cranfield.kernels import Found
    from cranfield.kernels.table import Floats, Ints

__all__ = ["Hits", "Judgments", "join", "ratio"]

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

    def __init__(self, qrels: Qrels, negative: str = "unjudged") -> None:
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
        self.topic: Ints = qrels.topic[once]
        self.grade: Floats = grade[once]
        self._relevant: dict[float, Ints] = {}

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

    def best(self, worth: Floats) -> Hits:
        """The hits of a perfect run where each judged document is worth this much: those above 0, best first."""
        kept = worth > 0
        topic, grade = self.topic[kept], self.grade[kept]
        order = np.lexsort((-worth[kept], topic))
        topic, grade = topic[order], grade[order]
        counts = np.bincount(topic, minlength=self.size)
        rank = _within(counts, topic)
        return Hits(self, topic, rank, grade, rank, rank, counts.astype(np.int32))


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
    retrieved: Ints
    _relevant: dict[float, Hits]
    _wider: Hits
    _kept: Any

    def __init__(
        self, judgments: Judgments, topic: Ints, rank: Ints, grade: Floats, first: Ints, last: Ints, retrieved: Ints
    ) -> None:
        self.judgments = judgments
        self.topic = topic
        self.rank = rank
        self.grade = grade
        self.tied_from = first
        self.tied_to = last
        self.retrieved = retrieved
        self._relevant: dict[float, Hits] = {}

    def __getattr__(self, column: str) -> Any:
        """The columns of a narrowed view are cut out of the wider one when they are first asked for."""
        wider = self.__dict__.get("_wider")
        if wider is None or column not in ("topic", "rank", "grade", "tied_from", "tied_to"):
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

    # narrowing

    def where(self, mask: Mask) -> Hits:
        """The hits that `mask` marks; ranks and the number retrieved stay."""
        view = Hits.__new__(Hits)
        view.judgments, view.retrieved, view._relevant = self.judgments, self.retrieved, {}
        view._wider, view._kept = self, np.flatnonzero(mask)
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
        return Hits(self.judgments, kept.topic, rank, kept.grade, first, last.astype(np.int32), counts)

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

    # down the ranks

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


def join(found: Found, judgments: Judgments, conventions: Conventions) -> Hits:
    """Hits from what a kernel found."""
    grade = judgments.of_row[found.row]
    hits = Hits(judgments, found.topic, found.rank, grade, found.first, found.last, found.retrieved)
    return hits.condensed() if conventions.unjudged == "drop" else hits
