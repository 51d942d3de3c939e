"""The possible orders of tied documents, and the mean of a measure over these orders.

A measure that distinguishes documents of the same grade (by their labels) needs every order of documents. For all other
measures the orders of grades suffice, which are far fewer.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from cranfield.base.kernels import encode
from cranfield.evaluation.hits import Hits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.evaluation.hits import TieGroups

    Mask = npt.NDArray[np.bool_]

Case = TypeVar("Case")

EVERY_CASE = 256  # topics with at most so many orders are enumerated
DRAWN = 200  # random orders for the other topics
SEED = 0


class MeanOverOrders(NamedTuple):
    """One value per topic: the mean over orders, and its standard error (0 where the mean is exact)."""

    value: Floats
    error: Floats


def mean_over_orders(score: Callable[[Hits], Floats], hits: Hits, by_document: bool) -> MeanOverOrders:
    """The mean of a score over the orders of ties: over all of them if they are few, else over `DRAWN` random ones."""
    orders = Orders(hits, by_document)
    value, error = score(hits).astype(np.float64), np.zeros(hits.size)
    few, many = orders.enumerable, orders.free & ~orders.enumerable
    total, number = np.zeros(hits.size), np.zeros(hits.size)
    for new_topics, order in orders.every():
        total[new_topics] += score(order)[new_topics]
        number[new_topics] += 1
    value[few] = total[few] / number[few]
    if many.any():
        draw = _RandomKeys(hits, orders.ties)
        scores = np.array([score(orders.random_order(draw.keys()))[many] for _ in range(DRAWN)])
        value[many] = scores.mean(axis=0)
        error[many] = scores.std(axis=0, ddof=1) / sqrt(DRAWN)
    return MeanOverOrders(value, error)


class _RandomKeys:
    """Random numbers for every place of every tie. Those of a topic do not depend on the other topics."""

    def __init__(self, hits: Hits, ties: TieGroups) -> None:
        self.places = np.bincount(ties.topic, weights=ties.size, minlength=hits.size).astype(int).tolist()
        names = hits.judgments.qrels.topics
        from zlib import crc32

        self.generators = [np.random.default_rng([SEED, crc32(encode(name))]) for name in names]

    def keys(self) -> Floats:
        """One random number per place, by topic and rank."""
        return np.concatenate([rng.random(n) for rng, n in zip(self.generators, self.places, strict=True)])


class Orders:
    """The possible orders of ties: extreme orders, all orders if they are few, and random orders."""

    def __init__(self, hits: Hits, by_document: bool, few: int = EVERY_CASE) -> None:
        self.hits = hits
        ties = hits.ties
        self.group = np.repeat(np.arange(len(ties.size)), ties.number)  # of each hit
        self.start = starts(ties.number)  # the first hit of each group
        self.kind = hits.row.astype(np.float64) if by_document else hits.grade
        self.ties = ties
        self.ways = [self._ways(g) for g in range(len(ties.size))]
        orders = [1] * hits.size
        for topic, ways in zip(ties.topic.tolist(), self.ways, strict=True):
            orders[topic] *= ways
        self.free = np.array([number > 1 for number in orders], bool)
        self.enumerable = np.array([1 < number <= few for number in orders], bool)

    def _kinds(self, g: int) -> dict[float, list[int]]:
        """The hits of a group by what a measure can distinguish: the grade, or the document."""
        kinds: dict[float, list[int]] = {}
        for hit in range(int(self.start[g]), int(self.start[g] + self.ties.number[g])):
            kinds.setdefault(float(self.kind[hit]), []).append(hit)
        return kinds

    def _ways(self, g: int) -> int:
        """The number of orders of a group that a measure could distinguish."""
        left = int(self.ties.size[g])
        if left == 1:
            return 1
        ways = 1
        for hits in self._kinds(g).values():
            ways *= comb(left, len(hits))
            left -= len(hits)
        return ways

    def _ranked(self, rank: Ints) -> Hits:
        """The same hits at these ranks."""
        order = np.lexsort((rank, self.hits.topic))
        return Hits.of(self.hits.judgments, self.hits.columns.part(order, rank=rank[order]), self.hits.retrieved)

    def extreme(self, pivot: float, best: bool) -> Hits:
        """Hits of grade `pivot` or more first in their ties, best first, the others last; reversed if not `best`."""
        hits = self.hits
        up = hits.grade >= pivot if best else hits.grade < pivot
        order = np.lexsort((-hits.grade if best else hits.grade, ~up, self.group))
        group = self.group[order]
        nth = np.arange(len(order)) - self.start[group]
        top = self.ties.first[group] + nth
        bottom = self.ties.first[group] + self.ties.size[group] - self.ties.number[group] + nth
        rank = np.empty(len(order), np.int32)
        rank[order] = np.where(up[order], top, bottom)
        return self._ranked(rank)

    def random_order(self, keys: Floats) -> Hits:
        """Every group in the order of these random numbers (one per place)."""
        group, place = self.ties.places()
        shuffled = place[np.lexsort((keys, group))]
        first_place = starts(self.ties.size)
        nth = np.arange(len(self.group)) - self.start[self.group]
        rank = self.ties.first[self.group] + shuffled[first_place[self.group] + nth]
        return self._ranked(rank.astype(np.int32))

    def every(self) -> Iterator[tuple[Mask, Hits]]:
        """All orders of the topics that have few, in parallel; each with a mask of the topics that still have a new one."""
        cases = {t: self._cases(t) for t in np.flatnonzero(self.enumerable).tolist()}
        for new, orders in in_parallel(cases, self.hits.size):
            rank = self.hits.rank.copy()
            for moves in orders.values():
                for hit, place in moves:
                    rank[hit] = place
            yield new, self._ranked(rank)

    def _cases(self, topic: int) -> list[list[tuple[int, int]]]:
        """All orders of one topic: (hit, rank) of each hit that can move."""
        groups = []
        for g in np.flatnonzero(self.ties.topic == topic).tolist():
            if self.ways[g] > 1:
                first = int(self.ties.first[g])
                ranks = list(range(first, first + int(self.ties.size[g])))
                groups.append(list(_placements(list(self._kinds(g).values()), ranks)))
        return [[moved for group in case for moved in group] for case in product(*groups)]


def extreme_order(hits: Hits, best: bool) -> Hits:
    """The same hits with each tie group in its best or worst order, which gives the highest or lowest nDCG.

    In the best order, grades fall from the top of the group's ranks; in the worst, they rise to the bottom. Unjudged
    documents of the group take the other ranks.
    """
    rows = np.flatnonzero(hits.tied_to > hits.tied_from)  # hits of a group are adjacent, in any order
    topic, first, last = hits.topic[rows], hits.tied_from[rows], hits.tied_to[rows]
    new = np.r_[True, (topic[1:] != topic[:-1]) | (first[1:] != first[:-1])][: len(rows)]
    number = np.diff(np.r_[np.flatnonzero(new), len(rows)])
    nth = np.arange(len(rows)) - np.repeat(starts(number), number)
    sign = -1 if best else 1
    order = rows[np.lexsort((sign * hits.grade[rows], np.cumsum(new)))]
    rank, grade, row = hits.rank.copy(), hits.grade.copy(), hits.row.copy()
    rank[rows] = first + nth if best else last - np.repeat(number, number) + 1 + nth
    grade[rows], row[rows] = hits.grade[order], hits.row[order]
    return Hits(hits.judgments, hits.topic, rank, grade, hits.tied_from, hits.tied_to, hits.retrieved, row)


class DecisiveTies(NamedTuple):
    """Tie groups whose order can matter because they contain relevant documents that can move: topics and ranks."""

    topic: npt.NDArray[Any]
    first: npt.NDArray[Any]
    last: npt.NDArray[Any]

    @classmethod
    def of(cls, hits: Hits) -> DecisiveTies:
        """The decisive tie groups of a run."""
        rows = np.flatnonzero(hits.tied_to > hits.tied_from)
        topic, first, last, grade = hits.topic[rows], hits.tied_from[rows], hits.tied_to[rows], hits.grade[rows]
        start = np.flatnonzero(np.r_[True, (np.diff(topic) != 0) | (np.diff(first) != 0)][: len(rows)])
        if not len(start):
            return cls(topic, first, last)
        size = last[start] - first[start] + 1
        best, worst = np.maximum.reduceat(grade, start), np.minimum.reduceat(grade, start)
        full = np.diff(np.r_[start, len(rows)]) == size
        loose = start[(best > 0) & ~(full & (best == worst))]
        return cls(topic[loose], first[loose], last[loose])

    def weight(self, size: int) -> float:
        """How much ties leave open, 0 to 1: the mean over `size` topics of Σ (last − first) / last, at most 1 each."""
        share = (self.last - self.first) / self.last
        return float(np.minimum(np.bincount(self.topic, share, size), 1).mean())

    def topics(self, size: int, depth: float) -> Mask:
        """A mask over `size` topics: those with such a group at ranks 1 to `depth`."""
        answer = np.zeros(size, bool)
        answer[self.topic[self.first <= depth]] = True
        return answer


def _placements(kinds: list[list[int]], ranks: list[int]) -> Iterator[list[tuple[int, int]]]:
    """Every assignment of ranks to hits, where hits of one kind are interchangeable."""
    if not kinds:
        yield []
        return
    for places in combinations(ranks, len(kinds[0])):
        left = [rank for rank in ranks if rank not in places]
        for rest in _placements(kinds[1:], left):
            yield [*zip(kinds[0], places, strict=True), *rest]


def in_parallel(cases: Mapping[int, list[Case]], size: int) -> Iterator[tuple[Mask, dict[int, Case]]]:
    """The first case of every topic, then the second …; each with a mask of the topics that have such a case."""
    for i in range(max(map(len, cases.values()), default=0)):
        here = {topic: each[i] for topic, each in cases.items() if i < len(each)}
        new = np.zeros(size, bool)
        new[list(here)] = True
        yield new, here


def starts(number: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The index at which each group begins, from the sizes of the groups."""
    return np.asarray(np.cumsum(number) - number)
