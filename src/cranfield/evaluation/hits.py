"""A run seen through judgments: the judged documents it returned, and where.

Every measure reads hits and nothing else. A few measures also need unjudged documents; `returned_documents` lists those.
Unjudged documents are absent rather than given a magic grade: real collections use grades of -1 and -2. Rows are
ordered by topic and then by rank, so sums, counts and products per topic are one NumPy call each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from cranfield.base.kernels import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import numpy.typing as npt

    from cranfield.base.conventions import Conventions
    from cranfield.base.kernels import HitRows, Index, Order
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.base.qrels import Extras, Qrels
    from cranfield.base.run import Run


HUGE = 900  # grades up to this are safe: 2^900 can be added up more often than there are documents
LEAST = math.ulp(0.0)  # the smallest number above 0
Mask: TypeAlias = "npt.NDArray[np.bool_]"
T = TypeVar("T")


def ratio(part: npt.ArrayLike, whole: npt.ArrayLike, otherwise: float = 0.0) -> Floats:
    """Part / whole; 0 (or `otherwise`) where the whole is 0."""
    part, whole = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
    answer: Floats = np.divide(part, whole, out=np.full(part.shape, otherwise, np.float64), where=whole != 0)
    return answer


@dataclass(eq=False, repr=False)
class Judgments:
    """The grades of all judged documents, ordered by topic. Measures compare a run with these."""

    qrels: Qrels
    extras: Extras
    size: int  # the number of topics
    of_row: Floats  # the grade of each row of the qrels' index
    row: Ints  # for each judged document: its row in that index,
    topic: Ints  # its topic,
    grade: Floats  # and its grade
    _cache: dict[Hashable, Any] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, qrels: Qrels, negative: str = "unjudged", extras: Extras | None = None) -> Judgments:
        """The judgments of some qrels. A document judged under several labels counts once, with its highest grade."""
        first = qrels.index.first
        once = first == np.arange(len(first))
        grade = qrels.grade
        if not once.all():
            grade = grade.copy()
            np.maximum.at(grade, first, qrels.grade)
        if negative == "irrelevant":
            grade = np.maximum(grade, 0)
        all_extras = qrels.extras if extras is None else extras.over(qrels.extras)
        row = np.flatnonzero(once).astype(np.int32)
        return cls(qrels, all_extras, len(qrels.topics), grade, row, qrels.topic[once], grade[once])

    @cached_property
    def huge(self) -> bool:
        """Whether sums of grades, or of 2^grade, may exceed the largest double."""
        return bool(np.abs(self.grade).max(initial=0) > HUGE)

    def under(self, negative: str) -> Judgments:
        """These judgments with negative grades counted as 0, if the convention `negative` asks for it."""
        if negative != "irrelevant" or not (self.grade < 0).any():
            return self
        work = lambda: replace(self, of_row=np.maximum(self.of_row, 0), grade=np.maximum(self.grade, 0))  # noqa: E731
        return self.once(("negative", negative), work)

    def only(self, row: Ints, topic: Ints, grade: Floats) -> Judgments:
        """The same topics with these judgments alone, ordered by topic: those of one label or one judge."""
        return replace(self, row=row, topic=topic, grade=grade)

    def once(self, key: Hashable, work: Callable[[], T]) -> T:
        """The result of `work`, computed for the first run and cached for the next."""
        if key not in self._cache:
            self._cache[key] = work()
        answer: T = self._cache[key]
        return answer

    def sum(self, topic: Ints, values: npt.ArrayLike) -> Floats:
        """Add up values within each topic, in the order given."""
        weights = np.broadcast_to(np.asarray(values, np.float64), topic.shape)
        totals = np.asarray(np.bincount(topic, weights=weights, minlength=self.size), np.float64)
        if self.huge and np.geterr()["over"] == "raise" and np.isinf(totals).any() and np.isfinite(weights).all():
            raise FloatingPointError("overflow encountered in sum")  # bincount does not check
        return totals

    def count(self, mask: Mask) -> Ints:
        """The number of judged documents in each topic that `mask` marks."""
        return np.bincount(self.topic[mask], minlength=self.size).astype(np.int32)

    def relevant(self, rel: float) -> Ints:
        """The number of documents of grade `rel` or more in each topic."""
        return self.once(("relevant", rel), lambda: self.count(self.grade >= rel))

    def only_relevant(self, rel: float = 1) -> bool:
        """Whether no document is judged below `rel`. Then a document without a judgment may have been seen and rejected."""
        return self.once(("only", rel), lambda: not ((self.grade >= 0) & (self.grade < rel)).any())

    def nonrelevant(self, rel: float) -> Ints:
        """The number of documents judged below `rel` in each topic; negative grades are not judgments."""
        return self.count((self.grade >= 0) & (self.grade < rel))

    @property
    def ideal(self) -> Hits:
        """The hits of a perfect run: every document of a grade above 0, best first."""
        return Hits.of(self, *self.once("ideal", lambda: self._best(self.grade)))

    def best(self, worth: Floats, above: float = 0.0) -> Hits:
        """The hits of a perfect run for these worths of the judged documents: those worth more than `above`, best first."""
        return Hits.of(self, *self._best(worth, above))

    def _best(self, worth: Floats, above: float = 0.0) -> tuple[HitColumns, Ints]:
        order = np.flatnonzero(worth > above)
        order = order[np.lexsort((-worth[order], self.topic[order]))]
        topic = self.topic[order]
        counts = np.bincount(topic, minlength=self.size).astype(np.int32)
        rank = _number_within_topics(counts, topic)
        return HitColumns(topic, rank, self.grade[order], rank, rank, self.row[order]), counts


def _number_within_topics(counts: npt.NDArray[Any], topic: Ints) -> Ints:
    """Number the rows of each topic 1, 2, 3 …"""
    start = np.cumsum(counts) - counts
    rank: Ints = (np.arange(len(topic)) - start[topic] + 1).astype(np.int32)
    return rank


class HitColumns:
    """The columns of hits. The columns of a part are cut out of the whole when they are first used.

    Views hold columns and not each other, so there are no reference cycles and memory is freed with the run.
    """

    NAMES = ("topic", "rank", "grade", "tied_from", "tied_to", "row")

    def __init__(self, *columns: npt.NDArray[Any]) -> None:
        self.__dict__.update(zip(self.NAMES, columns, strict=True))

    def part(self, rows: npt.NDArray[np.intp], **others: npt.NDArray[Any]) -> HitColumns:
        """The same columns at these rows only; `others` replace some of the columns."""
        answer = HitColumns.__new__(HitColumns)
        answer.__dict__.update(_whole=self, _rows=rows, **others)
        return answer

    def __getattr__(self, name: str) -> Any:
        if name not in self.NAMES:
            raise AttributeError(f"'Columns' object has no attribute {name!r}")
        self.__dict__[name] = getattr(self._whole, name)[self._rows]
        return self.__dict__[name]


def _column(name: str) -> Any:
    return property(lambda hits: getattr(hits.columns, name))


@dataclass(eq=False, repr=False)
class RunOrigin:
    """The run that hits come from, for measures that need more than hits."""

    run: Run
    order: Order
    condensed: bool = False  # unjudged documents have been removed
    listing: ReturnedDocuments | None = None  # the result of `returned_documents`
    match: tuple[Index, HitRows] | None = None  # the last result of `match_index`


class Hits:
    """The judged documents that a run returned: topic, rank, grade, and the ranks that the document's tie group covers.

    Select hits with `top(k)`, `relevant(rel)`, `nonrelevant(rel)` and `where(mask)`. Sum up per topic with `sum` and
    `count`. Walk down the ranks with `nth`, `running_sum` and `running_product`. Arrays have one value per hit (like
    `rank`) or one per topic (like `sum`).
    """

    topic: Ints = _column("topic")
    rank: Ints = _column("rank")
    grade: Floats = _column("grade")
    tied_from: Ints = _column("tied_from")
    tied_to: Ints = _column("tied_to")
    row: Ints = _column("row")  # the document's row in the qrels; -1 where it has none
    retrieved: Ints
    origin: RunOrigin | None = None
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
        self.columns = HitColumns(topic, rank, grade, first, last, row)

    @classmethod
    def of(cls, judgments: Judgments, columns: HitColumns, retrieved: Ints) -> Hits:
        """Hits made of existing columns."""
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
        """The hits that `mask` marks; their ranks and the number retrieved do not change."""
        view = Hits.of(self.judgments, self.columns.part(np.flatnonzero(mask)), self.retrieved)
        view.origin = self.origin
        return view

    def top(self, k: int | None) -> Hits:
        """The hits at ranks 1 to k, as if only k documents had been retrieved; all hits if k is None."""
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
        """The hits judged below `rel`; negative grades are not judgments."""
        return self.where((self.grade < rel) & (self.grade >= 0))

    def judged(self) -> Hits:
        """The hits that have a judgment; negative grades are not judgments."""
        return self.where(self.grade >= 0)

    def condensed(self) -> Hits:
        """The condensed list: unjudged documents are removed and ranks are counted again."""
        judged = self.judged()
        counts = judged.count()
        rank = _number_within_topics(counts, judged.topic)
        group = np.r_[True, (judged.tied_from[1:] != judged.tied_from[:-1]) | (judged.topic[1:] != judged.topic[:-1])]
        start = np.flatnonzero(group[: len(rank)])
        size = np.diff(np.r_[start, len(rank)])
        first, last = np.repeat(rank[start], size), np.repeat(rank[start] + size - 1, size)
        view = Hits(self.judgments, judged.topic, rank, judged.grade, first, last.astype(np.int32), counts, judged.row)
        view.origin = None if self.origin is None else RunOrigin(self.origin.run, self.origin.order, condensed=True)
        return view

    # per topic

    def sum(self, values: npt.ArrayLike) -> Floats:
        """Add up one value per hit within each topic, down the ranks."""
        return self.judgments.sum(self.topic, values)

    def count(self) -> Ints:
        """The number of hits in each topic."""
        return np.bincount(self.topic, minlength=self.size).astype(np.int32)

    def n_relevant(self, rel: float = 1) -> Ints:
        """The number of documents of grade `rel` or more in each topic, retrieved or not."""
        return self.judgments.relevant(rel)

    @property
    def ideal(self) -> Hits:
        """The hits of a perfect run for the same topics: every document of a grade above 0, best first."""
        return self.judgments.ideal

    # for the few measures that need more

    def grid(self, depth: int) -> Floats:
        """The grade at every rank, topics × `depth`; NaN where the document is unjudged or there is none."""
        answer = np.full((self.size, depth), np.nan)
        within = self.rank <= depth
        answer[self.topic[within], self.rank[within] - 1] = self.grade[within]
        return answer

    @cached_property
    def labelled(self) -> LabelledHits:
        """Each hit once per label (qrels column 2: a subtopic or a judgment group) under which it was judged."""
        qrels = self.judgments.qrels
        rows_of = np.argsort(qrels.index.first, kind="stable")  # rows by the first row of their document
        starts = np.searchsorted(qrels.index.first[rows_of], self.row)
        times = np.searchsorted(qrels.index.first[rows_of], self.row, side="right") - starts
        hit = np.repeat(np.arange(len(self.row)), times)
        nth = np.arange(len(hit)) - np.repeat(np.cumsum(times) - times, times)
        row = rows_of[starts[hit] + nth]
        label = qrels.label[row] if len(qrels.label) else np.zeros(len(row), np.int32)
        return LabelledHits(hit, self.topic[hit], self.rank[hit], label, qrels.grade[row])

    # over the orders of ties

    def chance_within(self, cut: npt.ArrayLike) -> Floats:
        """For each hit, the share of its tie group's ranks that lie at `cut` or above."""
        size = self.tied_to - self.tied_from + 1.0
        return np.clip(np.asarray(cut) - self.tied_from + 1, 0, size) / size

    @cached_property
    def ties(self) -> TieGroups:
        """The tie groups of these hits; a document without a tie is a group of one."""
        new = np.r_[True, (np.diff(self.topic) != 0) | (np.diff(self.tied_from) != 0)][: len(self.topic)]
        start = np.flatnonzero(new)
        number = np.diff(np.r_[start, len(self.topic)])
        topic, first = self.topic[start], self.tied_from[start]
        return TieGroups(topic, first, self.tied_to[start] - first + 1, number, self.nth[start] - 1)

    # down the ranks

    def total_at(self, values: npt.ArrayLike, topic: Ints, rank: Ints) -> Floats:
        """For each (topic, rank), the sum of the values of the hits at that rank and above."""
        depth = 1 + int(self.rank.max(initial=0))
        place = self.topic.astype(np.int64) * depth + self.rank
        start = np.searchsorted(place, topic.astype(np.int64) * depth)
        here = np.searchsorted(place, topic.astype(np.int64) * depth + np.minimum(rank, depth - 1), side="right")
        return np.where(here > start, np.r_[0.0, self.running_sum(values)][here], 0.0)

    @cached_property
    def nth(self) -> Ints:
        """The number of each hit within its topic: 1, 2, 3 …"""
        return _number_within_topics(self.count(), self.topic)

    def running_sum(self, values: npt.ArrayLike) -> Floats:
        """For each hit, the sum of its value and of those above it in its topic."""
        return self._running(values, 0.0, np.cumsum)

    def running_product(self, values: npt.ArrayLike) -> Floats:
        """For each hit, the product of its value and of those above it in its topic."""
        return self._running(values, 1.0, np.cumprod)

    def product_above(self, values: npt.ArrayLike) -> Floats:
        """For each hit, the product of the values above it in its topic; 1 for the first hit."""
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
        """For each hit, how many of `other`'s hits are above its rank (or above the given `rank`) in its topic."""
        rank = self.rank if rank is None else rank
        depth = 1 + int(max(rank.max(initial=0), other.rank.max(initial=0)))
        place = other.topic.astype(np.int64) * depth + other.rank
        start = np.searchsorted(other.topic, np.arange(self.size))[self.topic]
        here = np.searchsorted(place, self.topic.astype(np.int64) * depth + rank)
        return (here - start).astype(np.int32)


class TieGroups(NamedTuple):
    """Tie groups: topic, first rank, size, the number of hits in the group, and the number of hits above it."""

    topic: npt.NDArray[Any]
    first: Ints
    size: Ints
    number: npt.NDArray[np.intp]
    above: npt.NDArray[Any]

    def places(self) -> tuple[npt.NDArray[np.intp], Ints]:
        """Every place of every group: the number of the group, and the place within it, counted from 0."""
        group = np.repeat(np.arange(len(self.size)), self.size)
        place = np.arange(len(group)) - np.repeat(np.cumsum(self.size) - self.size, self.size)
        return group, place.astype(np.int32)

    def precisions(self) -> tuple[npt.NDArray[np.intp], Ints, Floats]:
        """For every place of every group: its group, its rank, and precision there × the probability of a hit there.

        The sum over places is the expected sum of precisions at hits over all orders: McSherry & Najork (2008).
        """
        group, place = self.places()
        size, number, rank = self.size[group], self.number[group], self.first[group] + place
        others = ratio(place * (number - 1.0), size - 1)  # hits of the group expected above this place
        return group, rank, number / size * (self.above[group] + 1 + others) / rank

    def none_before(self) -> Floats:
        """For each place, the probability that no hit of its group is before it."""
        group, place = self.places()
        above = place - 1
        step = np.maximum(ratio((self.size - self.number)[group] - above, self.size[group] - above), 0.0)
        grid = np.ones((len(self.size), int(self.size.max(initial=1))))
        grid[group, place] = np.where(place > 0, step, 1.0)
        return np.asarray(np.cumprod(grid, axis=1)[group, place], np.float64)

    def first_places(self) -> tuple[Ints, Ints, Floats]:
        """Every place where the first hit of a topic may be: the topic, the rank, and the probability."""
        top = TieGroups(*(column[self.above == 0] for column in self))
        group, place = top.places()
        chance = top.number[group] / (top.size[group] - place) * top.none_before()
        return top.topic[group], top.first[group] + place, chance


class LabelledHits(NamedTuple):
    """Hits by label, in the order of the hits; `hit` is the number of the hit that a row belongs to."""

    hit: npt.NDArray[Any]
    topic: Ints
    rank: Ints
    label: Ints
    grade: Floats


def join(match: HitRows, judgments: Judgments, conventions: Conventions, run: Run | None = None) -> Hits:
    """Make hits of the rows that a kernel matched. With the run, `returned_documents` can list unjudged ones too."""
    grade = judgments.of_row[match.row]
    hits = Hits(judgments, match.topic, match.rank, grade, match.first, match.last, match.retrieved, match.row)
    hits.origin = None if run is None else RunOrigin(run, conventions.order)
    return hits.condensed() if conventions.unjudged == "drop" else hits


class ReturnedDocuments(NamedTuple):
    """All documents that a run returned for the judged topics, judged or not, by topic and then by rank."""

    topic: Ints
    rank: Ints
    documents: list[str]


def returned_documents(hits: Hits) -> ReturnedDocuments:
    """Every document returned for a judged topic, judged or not.

    This costs as much as reading the run again; the result is cached for all measures of the run. The ideal list and
    condensed lists come from no file, so they are made from the hits.
    """
    origin, qrels = hits.origin, hits.judgments.qrels
    if origin is None or origin.condensed:
        if (hits.row < 0).any():
            raise TypeError("these hits do not come from a run")
        return ReturnedDocuments(hits.topic, hits.rank, [decode(qrels.documents[row]) for row in hits.row.tolist()])
    if origin.listing is None:
        origin.listing = _read(origin, qrels.topics)
    return origin.listing


def _read(origin: RunOrigin, topics: list[str]) -> ReturnedDocuments:
    answered = set(origin.run.topics)
    ranked = [origin.run.ranking(name, origin.order) if name in answered else [] for name in topics]
    sizes = [len(documents) for documents in ranked]
    topic = np.repeat(np.arange(len(topics), dtype=np.int32), sizes)
    rank = np.concatenate([np.zeros(0, np.int32), *(np.arange(1, size + 1, dtype=np.int32) for size in sizes)])
    return ReturnedDocuments(topic, rank, [document for documents in ranked for document, _ in documents])


def match_index(hits: Hits, index: Index) -> HitRows:
    """Match the run with a second index of documents, such as that of preference judgments."""
    origin = hits.origin
    if origin is None:
        raise TypeError("these hits do not come from a run")
    if origin.match is None or origin.match[0] is not index:
        origin.match = index, origin.run.hits(index, origin.order)
    return origin.match[1]
