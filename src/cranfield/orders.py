"""The orders that ties leave open, and what a measure is on average over them.

A measure that tells documents of one grade apart (by their labels) must see every document moved; for all others the
orders of grades are enough, which are far fewer.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from zlib import crc32

import numpy as np

from cranfield.hits import Hits
from cranfield.kernels import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy.typing as npt

    from cranfield.hits import Ties
    from cranfield.kernels.table import Floats, Ints

    Mask = npt.NDArray[np.bool_]

Case = TypeVar("Case")

EVERY_CASE = 256  # topics with no more cases than this are tried out case by case
DRAWN = 200  # orders drawn for the others
SEED = 0


class Mean(NamedTuple):
    """One value a topic: the mean over orders, and its standard error where the orders were drawn; 0 where it is exact."""

    value: Floats
    error: Floats


def mean_over_orders(score: Callable[[Hits], Floats], hits: Hits, by_document: bool) -> Mean:
    """The mean of a score over the orders of ties: over all of them where they are few, over `DRAWN` elsewhere."""
    orders = Orders(hits, by_document)
    value, error = score(hits).astype(np.float64), np.zeros(hits.size)
    few, many = orders.counted_out, orders.free & ~orders.counted_out
    if few.any():
        total, seen = np.zeros(hits.size), np.zeros(hits.size)
        for counted, order in orders.every():
            total[counted] += score(order)[counted]
            seen[counted] += 1
        value[few] = total[few] / seen[few]
    if many.any():
        draw = _Draw(hits, orders.ties)
        drawn = np.array([score(orders.drawn(draw.keys()))[many] for _ in range(DRAWN)])
        value[many] = drawn.mean(axis=0)
        error[many] = drawn.std(axis=0, ddof=1) / sqrt(DRAWN)
    return Mean(value, error)


class _Draw:
    """Random numbers for every place of every tie: those of a topic are the same alone and in company."""

    def __init__(self, hits: Hits, ties: Ties) -> None:
        self.places = np.bincount(ties.topic, weights=ties.size, minlength=hits.size).astype(int).tolist()
        names = hits.judgments.qrels.topics
        self.generators = [np.random.default_rng([SEED, crc32(encode(name))]) for name in names]

    def keys(self) -> Floats:
        """One a place, by topic and rank."""
        return np.concatenate([rng.random(n) for rng, n in zip(self.generators, self.places, strict=True)])


class Orders:
    """The orders that ties leave open: extreme ones, all of them where they are few, and random ones."""

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
        self.counted_out = np.array([1 < number <= few for number in orders], bool)

    def _kinds(self, g: int) -> dict[float, list[int]]:
        """The hits of a group by what a measure sees of them."""
        kinds: dict[float, list[int]] = {}
        for hit in range(int(self.start[g]), int(self.start[g] + self.ties.number[g])):
            kinds.setdefault(float(self.kind[hit]), []).append(hit)
        return kinds

    def _ways(self, g: int) -> int:
        """In how many orders a group can stand that a measure could tell apart."""
        left = int(self.ties.size[g])
        if left == 1:
            return 1
        ways = 1
        for hits in self._kinds(g).values():
            ways *= comb(left, len(hits))
            left -= len(hits)
        return ways

    def _ranked(self, rank: Ints) -> Hits:
        """The hits at other ranks."""
        hits = self.hits
        order = np.lexsort((rank, hits.topic))
        topic, rank, row, first, last = (
            column[order] for column in (hits.topic, rank, hits.row, hits.tied_from, hits.tied_to)
        )
        return Hits(hits.judgments, topic, rank, hits.grade[order], first, last, hits.retrieved, row)

    def extreme(self, pivot: float, best: bool) -> Hits:
        """Hits of grade `pivot` or more at the top of their ties, the best first, the others at the bottom; or reversed."""
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

    def drawn(self, keys: Floats) -> Hits:
        """Every group in the order of these random numbers, one a place."""
        group, place = self.ties.places()
        shuffled = place[np.lexsort((keys, group))]
        first_place = starts(self.ties.size)
        nth = np.arange(len(self.group)) - self.start[self.group]
        rank = self.ties.first[self.group] + shuffled[first_place[self.group] + nth]
        return self._ranked(rank.astype(np.int32))

    def every(self) -> Iterator[tuple[Mask, Hits]]:
        """All orders of the topics that have few, side by side; with each the topics for which it is a new one."""
        cases = {t: self._cases(t) for t in np.flatnonzero(self.counted_out).tolist()}
        for new, orders in side_by_side(cases, self.hits.size):
            rank = self.hits.rank.copy()
            for moves in orders.values():
                for hit, place in moves:
                    rank[hit] = place
            yield new, self._ranked(rank)

    def _cases(self, topic: int) -> list[list[tuple[int, int]]]:
        """All orders of one topic: the rank of each hit that may move."""
        groups = []
        for g in np.flatnonzero(self.ties.topic == topic).tolist():
            if self.ways[g] > 1:
                first = int(self.ties.first[g])
                ranks = list(range(first, first + int(self.ties.size[g])))
                groups.append(list(_placed(list(self._kinds(g).values()), ranks)))
        return [[moved for group in case for moved in group] for case in product(*groups)]


def tied(hits: Hits, best: bool) -> Hits:
    """The same hits with each tie group in its best order, or in its worst: what nDCG could be at most, or at least.

    Within the ranks that a group covers, its grades stand from high to low at the top, or from low to high at the bottom;
    the unjudged documents of the group take the other ranks.
    """
    rows = np.flatnonzero(hits.tied_to > hits.tied_from)  # those of a group stand together, in whatever order
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


class Loose(NamedTuple):
    """Tie groups whose order can matter, as something relevant in them may change places: their topics and ranks."""

    topic: npt.NDArray[Any]
    first: npt.NDArray[Any]
    last: npt.NDArray[Any]

    @classmethod
    def of(cls, hits: Hits) -> Loose:
        """Those of a run."""
        rows = np.flatnonzero(hits.tied_to > hits.tied_from)
        topic, first, last, grade = hits.topic[rows], hits.tied_from[rows], hits.tied_to[rows], hits.grade[rows]
        start = np.flatnonzero(np.r_[True, (np.diff(topic) != 0) | (np.diff(first) != 0)][: len(rows)])
        if not len(start):
            return cls(topic, first, last)
        size = last[start] - first[start] + 1
        best, worst = np.maximum.reduceat(grade, start), np.minimum.reduceat(grade, start)
        full = np.diff(np.r_[start, len(rows)]) == size
        kept = start[(best > 0) & ~(full & (best == worst))]
        return cls(topic[kept], first[kept], last[kept])

    def weight(self, size: int) -> float:
        """How much is open, from 0 to 1: of each topic, of `size`, the sum of (last − first) / last, at most 1; their mean."""
        share = (self.last - self.first) / self.last
        return float(np.minimum(np.bincount(self.topic, share, size), 1).mean())

    def topics(self, size: int, depth: float) -> Mask:
        """The topics, of `size`, that have such a group at ranks 1 to `depth`."""
        answer = np.zeros(size, bool)
        answer[self.topic[self.first <= depth]] = True
        return answer


def _placed(kinds: list[list[int]], ranks: list[int]) -> Iterator[list[tuple[int, int]]]:
    """Every way to give ranks to hits, those of one kind being alike."""
    if not kinds:
        yield []
        return
    for chosen in combinations(ranks, len(kinds[0])):
        left = [rank for rank in ranks if rank not in chosen]
        for rest in _placed(kinds[1:], left):
            yield [*zip(kinds[0], chosen, strict=True), *rest]


def side_by_side(cases: Mapping[int, list[Case]], size: int) -> Iterator[tuple[Mask, dict[int, Case]]]:
    """The first case of every topic, then the second …; with each the topics that have one more."""
    for i in range(max(map(len, cases.values()), default=0)):
        here = {topic: each[i] for topic, each in cases.items() if i < len(each)}
        new = np.zeros(size, bool)
        new[list(here)] = True
        yield new, here


def starts(number: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Where each group begins, where so many stand in each."""
    return np.asarray(np.cumsum(number) - number)
