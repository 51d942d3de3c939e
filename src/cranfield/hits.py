"""A run seen through judgments: the judged documents it returned, and where.

Every measure reads this and nothing else, but for the few that ask for unjudged documents too (listing.py). Unjudged
documents are absent rather than given a magic grade: real collections use grades of -1 and -2. Rows are ordered by
topic and then by rank, so sums, counts and products per topic are one NumPy call each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from cranfield.collection import Extras, Qrels
    from cranfield.conventions import Conventions
    from cranfield.kernels import Found, Order
    from cranfield.kernels.table import Floats, Ints
    from cranfield.run import Run


HUGE = 900  # grades up to this are safe: 2^900 can be added up more often than there are documents
LEAST = math.ulp(0.0)  # the least number above 0
Mask = npt.NDArray[np.bool_]
T = TypeVar("T")


def ratio(part: npt.ArrayLike, whole: npt.ArrayLike, otherwise: float = 0.0) -> Floats:
    """Part / whole, and 0 (or `otherwise`) where the whole is 0."""
    part, whole = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
    answer: Floats = np.divide(part, whole, out=np.full(part.shape, otherwise, np.float64), where=whole != 0)
    return answer


@dataclass(eq=False)
class Judgments:
    """The grades of all judged documents, by topic: what a measure compares a run with."""

    qrels: Qrels
    extras: Extras
    size: int  # the number of topics
    of_row: Floats  # the grade of each row of the qrels' index
    row: Ints  # and of each judged document the row,
    topic: Ints
    grade: Floats
    _kept: dict[Hashable, Any] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, qrels: Qrels, negative: str = "unjudged", extras: Extras | None = None) -> Judgments:
        """Those of some qrels. A document judged under several labels counts once, with its highest grade."""
        first = qrels.index.first
        once = first == np.arange(len(first))
        grade = qrels.grade
        if not once.all():
            grade = grade.copy()
            np.maximum.at(grade, first, qrels.grade)
        if negative == "irrelevant":
            grade = np.maximum(grade, 0)
        known = qrels.extras if extras is None else extras.over(qrels.extras)
        row = np.flatnonzero(once).astype(np.int32)
        return cls(qrels, known, len(qrels.topics), grade, row, qrels.topic[once], grade[once])

    @cached_property
    def huge(self) -> bool:
        """Whether sums of grades, or of 2 to their power, may be more than a double can hold."""
        return bool(np.abs(self.grade).max(initial=0) > HUGE)

    def under(self, negative: str) -> Judgments:
        """The same judgments where negative grades count as 0, if they are to; else as they are."""
        if negative != "irrelevant" or not (self.grade < 0).any():
            return self
        work = lambda: replace(self, of_row=np.maximum(self.of_row, 0), grade=np.maximum(self.grade, 0))  # noqa: E731
        return self.once(("negative", negative), work)

    def only(self, row: Ints, topic: Ints, grade: Floats) -> Judgments:
        """The same topics judged by these judgments alone, by topic: those of one label, one judge."""
        return replace(self, row=row, topic=topic, grade=grade)

    def once(self, key: Hashable, work: Callable[[], T]) -> T:
        """What `work` makes of the judgments; worked out for the first run and kept for the next."""
        if key not in self._kept:
            self._kept[key] = work()
        answer: T = self._kept[key]
        return answer

    def sum(self, topic: Ints, values: npt.ArrayLike) -> Floats:
        """Add up values within each topic, in the order given."""
        weights = np.broadcast_to(np.asarray(values, np.float64), topic.shape)
        totals = np.asarray(np.bincount(topic, weights=weights, minlength=self.size), np.float64)
        if self.huge and np.geterr()["over"] == "raise" and np.isinf(totals).any() and np.isfinite(weights).all():
            raise FloatingPointError("overflow encountered in sum")  # bincount does not look
        return totals

    def count(self, mask: Mask) -> Ints:
        """How many of the judged documents that `mask` marks each topic has."""
        return np.bincount(self.topic[mask], minlength=self.size).astype(np.int32)

    def relevant(self, rel: float) -> Ints:
        """How many documents of grade `rel` or more each topic has."""
        return self.once(("relevant", rel), lambda: self.count(self.grade >= rel))

    def only_relevant(self, rel: float = 1) -> bool:
        """Whether nothing is judged below `rel`: then what is not named need not be unjudged."""
        return self.once(("only", rel), lambda: not ((self.grade >= 0) & (self.grade < rel)).any())

    def nonrelevant(self, rel: float) -> Ints:
        """How many documents judged below `rel` each topic has; negative grades are no judgments."""
        return self.count((self.grade >= 0) & (self.grade < rel))

    @property
    def ideal(self) -> Hits:
        """The hits of a perfect run: every document of a grade above 0, best first."""
        return Hits.of(self, *self.once("ideal", lambda: self._best(self.grade)))

    def best(self, worth: Floats, above: float = 0.0) -> Hits:
        """The hits of a perfect run where each judged document is worth this much: those above 0, best first."""
        return Hits.of(self, *self._best(worth, above))

    def _best(self, worth: Floats, above: float = 0.0) -> tuple[Columns, Ints]:
        kept = np.flatnonzero(worth > above)
        kept = kept[np.lexsort((-worth[kept], self.topic[kept]))]
        topic = self.topic[kept]
        counts = np.bincount(topic, minlength=self.size).astype(np.int32)
        rank = _within(counts, topic)
        return Columns(topic, rank, self.grade[kept], rank, rank, self.row[kept]), counts


def _within(counts: npt.NDArray[Any], topic: Ints) -> Ints:
    """Number the rows of each topic 1, 2, 3 …"""
    start = np.cumsum(counts) - counts
    rank: Ints = (np.arange(len(topic)) - start[topic] + 1).astype(np.int32)
    return rank


class Columns:
    """The columns of hits. Those of a part are cut out of the whole's when they are first asked for.

    Views hold columns and not each other, so that nothing goes in circles and all of a run's go with it.
    """

    NAMES = ("topic", "rank", "grade", "tied_from", "tied_to", "row")

    def __init__(self, *columns: npt.NDArray[Any]) -> None:
        self.__dict__.update(zip(self.NAMES, columns, strict=True))

    def part(self, kept: npt.NDArray[np.intp], **others: npt.NDArray[Any]) -> Columns:
        """The same columns at these rows only, with others in place of some."""
        answer = Columns.__new__(Columns)
        answer.__dict__.update(_whole=self, _kept=kept, **others)
        return answer

    def __getattr__(self, name: str) -> Any:
        if name not in self.NAMES:
            raise AttributeError(f"'Columns' object has no attribute {name!r}")
        self.__dict__[name] = getattr(self._whole, name)[self._kept]
        return self.__dict__[name]


def _column(name: str) -> Any:
    return property(lambda hits: getattr(hits.columns, name))


@dataclass
class Origin:
    """The run that hits come from, for those who ask for more than hits."""

    run: Run
    order: Order
    condensed: bool = False  # its unjudged documents have been taken out
    kept: dict[str, Any] = field(default_factory=dict)  # what listing.py has read from it


class Hits:
    """The judged documents that a run returned: topic, rank, grade, and the span of ranks their tie group covers.

    Narrow it with `top(k)`, `relevant(rel)`, `nonrelevant(rel)` and `where(mask)`; sum it up per topic with
    `sum` and `count`; walk down the ranks with `nth`, `running_sum` and `running_product`.
    All of these return arrays over hits (`rank`-like) or over topics (`sum`-like).
    """

    topic: Ints = _column("topic")
    rank: Ints = _column("rank")
    grade: Floats = _column("grade")
    tied_from: Ints = _column("tied_from")
    tied_to: Ints = _column("tied_to")
    row: Ints = _column("row")  # of the qrels, for what else is known of the document; -1 where there is none
    retrieved: Ints
    origin: Origin | None = None
    _relevant: dict[float, Hits]
    _tops: dict[int, Hits]

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
        row = row if row is not None else np.full(len(topic), -1, np.int32)
        self.judgments, self.retrieved, self._relevant, self._tops = judgments, retrieved, {}, {}
        self.columns = Columns(topic, rank, grade, first, last, row)

    @classmethod
    def of(cls, judgments: Judgments, columns: Columns, retrieved: Ints) -> Hits:
        """Hits from columns that are there already."""
        hits = cls.__new__(cls)
        hits.judgments, hits.columns, hits.retrieved, hits._relevant, hits._tops = judgments, columns, retrieved, {}, {}
        return hits

    @property
    def size(self) -> int:
        """The number of topics."""
        return self.judgments.size

    def __len__(self) -> int:
        return len(self.topic)

    # narrowing

    def where(self, mask: Mask) -> Hits:
        """The hits that `mask` marks; ranks and the number retrieved stay."""
        view = Hits.of(self.judgments, self.columns.part(np.flatnonzero(mask)), self.retrieved)
        view.origin = self.origin
        return view

    def top(self, k: int | None) -> Hits:
        """The hits at ranks 1 to k, as if no more than k had been retrieved; all of them if k is None."""
        if k is None or k >= self._deepest:
            return self
        if k not in self._tops:
            view = self._tops[k] = self.where(self.rank <= k)
            view.retrieved = np.minimum(self.retrieved, k)
        return self._tops[k]

    @cached_property
    def _deepest(self) -> int:
        return int(self.retrieved.max(initial=0))

    def relevant(self, rel: float = 1) -> Hits:
        """The hits of grade `rel` or more."""
        if rel not in self._relevant:
            self._relevant[rel] = self.where(self.grade >= rel)
        return self._relevant[rel]

    def above_zero(self) -> Hits:
        """The hits of a grade above 0."""
        return self.relevant(LEAST)

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
        view.origin = None if self.origin is None else replace(self.origin, condensed=True, kept={})
        return view

    # per topic

    def sum(self, values: npt.ArrayLike) -> Floats:
        """Add up one value a hit within each topic, down the ranks."""
        return self.judgments.sum(self.topic, values)

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

    def above(self, other: Hits, rank: Ints | None = None) -> Ints:
        """For each hit, how many of `other`'s hits stand above it in its topic, or above another rank a hit."""
        rank = self.rank if rank is None else rank
        depth = 1 + int(max(rank.max(initial=0), other.rank.max(initial=0)))
        place = other.topic.astype(np.int64) * depth + other.rank
        start = np.searchsorted(other.topic, np.arange(self.size))[self.topic]
        here = np.searchsorted(place, self.topic.astype(np.int64) * depth + rank)
        return (here - start).astype(np.int32)


class Ties(NamedTuple):
    """Tie groups: their topic, first rank and size, how many of the hits stand in each, and how many above it."""

    topic: npt.NDArray[Any]
    first: Ints
    size: Ints
    number: npt.NDArray[np.intp]
    above: npt.NDArray[Any]

    def places(self) -> tuple[npt.NDArray[np.intp], Ints]:
        """Every place of every group: which group it is in, and which place of it, counted from 0."""
        group = np.repeat(np.arange(len(self.size)), self.size)
        place = np.arange(len(group)) - np.repeat(np.cumsum(self.size) - self.size, self.size)
        return group, place.astype(np.int32)

    def precisions(self) -> tuple[npt.NDArray[np.intp], Ints, Floats]:
        """Every place of every group: its group, its rank, and the precision there times the chance that a hit is there.

        McSherry & Najork (2008). The sum over places is the sum of precisions at hits, on average over the orders.
        """
        group, place = self.places()
        size, number, rank = self.size[group], self.number[group], self.first[group] + place
        others = ratio(place * (number - 1.0), size - 1)  # hits of the group expected above this place
        return group, rank, number / size * (self.above[group] + 1 + others) / rank

    def none_before(self) -> Floats:
        """For each place, the probability that none of the hits of its group stands before it."""
        group, place = self.places()
        above = place - 1
        step = np.maximum(ratio((self.size - self.number)[group] - above, self.size[group] - above), 0.0)
        grid = np.ones((len(self.size), int(self.size.max(initial=1))))
        grid[group, place] = np.where(place > 0, step, 1.0)
        return np.asarray(np.cumprod(grid, axis=1)[group, place], np.float64)

    def first_places(self) -> tuple[Ints, Ints, Floats]:
        """Every place where the first hit of a topic may stand: the topic, the rank, and how likely that is."""
        top = Ties(*(column[self.above == 0] for column in self))
        group, place = top.places()
        chance = top.number[group] / (top.size[group] - place) * top.none_before()
        return top.topic[group], top.first[group] + place, chance


class Labelled(NamedTuple):
    """Hits by label, in the order of the hits: `hit` says which hit each row is about."""

    hit: npt.NDArray[Any]
    topic: Ints
    rank: Ints
    label: Ints
    grade: Floats


def join(found: Found, judgments: Judgments, conventions: Conventions, run: Run | None = None) -> Hits:
    """Hits from what a kernel found. With the run they can list unjudged documents too."""
    grade = judgments.of_row[found.row]
    hits = Hits(judgments, found.topic, found.rank, grade, found.first, found.last, found.retrieved, found.row)
    hits.origin = None if run is None else Origin(run, conventions.order)
    return hits.condensed() if conventions.unjudged == "drop" else hits
