"""How much two ranked lists overlap, from the top down: rank-biased overlap and its plainer relatives.

Lists may differ in length and in their items, and may hold ties. The treatment of ties depends on their meaning (Corsi
and Urbano, "The Treatment of Ties in Rank-Biased Overlap", SIGIR 2024):

- `a`: the true order is unknown; the value is the expectation over all orders of the tied items
- `b`: as `a`, corrected for the information that ties lose, so that a list has an overlap of 1 with itself
- `w`: the items are equals; a tied group is taken in whole as soon as its first rank is reached

At any depth at most one group of each list is cut by that depth, so that four counts of shared items
(entered or complete in one list or the other) give the overlap at every depth in linear time.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cranfield.base.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cranfield.stats.ties import Floats, Ints


Ties: TypeAlias = Literal["a", "b", "w"]


class TiedRanking:
    """Items from first to last, some of them tied. Make it from a list in which tied items form a set or a list.

    >>> ranking = TiedRanking(["red", {"blue"}, ["green", "pink"]])
    >>> ranking.items, ranking.top.tolist(), ranking.bottom.tolist()
    (['red', 'blue', 'green', 'pink'], [1, 2, 3, 3], [1, 2, 4, 4])
    """

    def __init__(self, groups: Iterable[Any]) -> None:
        items: list[Hashable] = []
        sizes: list[int] = []
        for group in groups:
            tied = isinstance(group, Collection) and not isinstance(group, (str, bytes, tuple))
            members = list(group) if tied else [group]
            items += members
            sizes += [len(members)] if members else []
        self._fill(items, sizes)

    @classmethod
    def by_score(cls, scores: Mapping[Any, float]) -> TiedRanking:
        """Items by score, highest first; items of equal score are tied.

        >>> TiedRanking.by_score({"red": 1, "blue": 3, "green": 1}).top.tolist()
        [1, 2, 2]
        """
        best = sorted(scores, key=lambda item: -scores[item])
        return cls.of_sorted(best, np.array([scores[item] for item in best], np.float64))

    @classmethod
    def of_sorted(cls, items: Sequence[Any], scores: npt.NDArray[Any]) -> TiedRanking:
        """Items that are already sorted; neighbours of equal score are tied."""
        starts = np.flatnonzero(np.r_[True, scores[1:] != scores[:-1]]) if len(items) else np.zeros(0, np.int64)
        ranking = cls.__new__(cls)
        ranking._fill(list(items), np.diff(np.r_[starts, len(items)]).tolist())
        return ranking

    def _fill(self, items: list[Hashable], sizes: list[int]) -> None:
        try:
            self.place = {item: i for i, item in enumerate(items)}
        except TypeError as error:
            raise DataError(f"a ranking's items must be hashable ({error})") from None
        if len(self.place) < len(items):
            again = next(item for i, item in enumerate(items) if self.place[item] != i)
            raise DataError(f"item {again!r} occurs twice in one ranking")
        ends = np.cumsum(np.array(sizes, np.int64))
        self.items = items
        self.top: Ints = np.repeat(ends - sizes + 1, sizes) if sizes else np.zeros(0, np.int64)
        self.bottom: Ints = np.repeat(ends, sizes) if sizes else np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def tied(self) -> bool:
        """Whether any two items are tied."""
        return bool((self.top < self.bottom).any())

    @cached_property
    def part(self) -> Floats:
        """At each depth, the share of its tied group that lies at or above this depth."""
        return np.asarray((np.arange(2, len(self.items) + 2) - self.top) / (self.bottom - self.top + 1), np.float64)

    @cached_property
    def squares(self) -> Floats:
        """At each depth, the sum of the items' squared probabilities to be at or above it."""
        return np.asarray(np.square(self.part) * (self.bottom - self.top + 1) + (self.top - 1), np.float64)

    def head(self, k: int | None) -> TiedRanking:
        """The first k items; if k divides a tied group, its first items in the given order."""
        if k is None or k >= len(self.items):
            return self
        return TiedRanking.of_sorted(self.items[:k], self.top[:k])

    def broken(self) -> TiedRanking:
        """The same items in the same order, without ties."""
        return TiedRanking.of_sorted(self.items, np.arange(len(self.items)))


class RBO(NamedTuple):
    """Rank-biased overlap: the extrapolated value, the lowest and highest possible value, and their gap."""

    ext: float
    min: float
    max: float
    res: float


def rbo(first: Any, second: Any, p: float = 0.9, ties: Ties = "a") -> RBO:
    """Rank-biased overlap (Webber, Moffat and Zobel, 2010): agreement at each depth d, weighted by (1 - p) p^(d-1).

    Lists may hold ties (a set or a list inside the list, or scores: `{item: score}`) and may differ in length and
    items. `ext` assumes that the agreement at the end of the lists continues below them; `min` and `max` are bounds.

    >>> [round(value, 4) for value in rbo(["a", "b", "c"], ["a", "c", "b"], p=0.5)]
    [0.875, 0.8294, 0.875, 0.0456]
    """
    if not 0 < p < 1:
        raise DataError(f"RBO: p must be between 0 and 1, ends excluded, got {p}")
    pair = _Pair(ranking(first), ranking(second), ties)
    weights = p ** np.arange(1, pair.longer + 1)
    scale = (1 - p) / p
    s, l, shared = pair.shorter, pair.longer, pair.shared  # noqa: E741 (the paper's letters)
    agreed = pair.agreement()
    low = (agreed * weights).sum() + shared * (-np.log1p(-p) - (weights / pair.depth).sum())
    full = l + s - shared  # the depth at which two lists that hold all of each other's items agree fully
    beyond = np.arange(l + 1, full + 1)
    high = (pair.agreement(pair.most()) * weights).sum()
    high += ((2 * beyond - full) / beyond * p**beyond).sum() + p ** (full + 1) / (1 - p)
    ends = agreed[s - 1]
    likely = (pair.agreement(pair.likely(ends)) * weights).sum()
    likely += (shared + (l - s) * ends) / l * p ** (l + 1) / (1 - p)
    return RBO(float(scale * likely), float(scale * low), float(scale * high), float(scale * (high - low)))


def rbo_cut(first: Any, second: Any, p: float = 0.9, k: int | None = None, ties: Ties = "a") -> float:
    """Agreement down to depth k only, with weights that sum to 1: RBO as in Clarke's Compatibility.

    >>> rbo_cut(["a", "b", "c"], ["a", "c", "b"], p=0.5, k=2)  # (1 + 0.5 × 1/2) / (1 + 0.5)
    0.8333333333333334
    """
    if not 0 < p < 1:
        raise DataError(f"RBO: p must be between 0 and 1, ends excluded, got {p}")
    values = agreement(first, second, ties, k)
    weights = p ** np.arange(len(values))
    return float((values * weights).sum() / weights.sum())


def agreement(first: Any, second: Any, ties: Ties = "a", k: int | None = None) -> Floats:
    """The share of items that two lists have in common at each depth, down to k or the longer list's end.

    >>> agreement(["a", "b", "c"], ["a", "c", "b"]).tolist()
    [1.0, 0.5, 1.0]
    """
    _refuse_depth(k)
    return _Pair(ranking(first), ranking(second), ties).agreement()[:k]


def overlap(first: Any, second: Any, k: int | None = None, ties: Ties = "a") -> float:
    """The share of the top k that two lists have in common; k is at most the longer list's length.

    >>> overlap(["a", "b", "c"], ["a", "c", "b"], k=2)
    0.5
    """
    return float(agreement(first, second, ties, k)[-1])


def average_overlap(first: Any, second: Any, k: int | None = None, ties: Ties = "a") -> float:
    """The mean of the overlaps at depths 1 to k (Wu and Crestani, 2003; Fagin et al., 2003).

    >>> average_overlap(["a", "b", "c"], ["a", "c", "b"], k=2)
    0.75
    """
    return float(agreement(first, second, ties, k).mean())


def jaccard(first: Any, second: Any, k: int | None = None) -> float:
    """Items in both top k, over items in either. Tied items keep their given order; a set has no certain order.

    >>> jaccard(["a", "b", "c"], ["a", "c", "d"], k=2)
    0.3333333333333333
    """
    _refuse_depth(k)
    one, other = set(_filled(ranking(first)).items[:k]), set(_filled(ranking(second)).items[:k])
    return len(one & other) / len(one | other)


def ranking(items: Any) -> TiedRanking:
    """A ranking from a list with ties or from scores."""
    if isinstance(items, TiedRanking):
        return items
    if isinstance(items, Mapping):
        return TiedRanking.by_score(items)
    if isinstance(items, (str, bytes)) or not hasattr(items, "__iter__"):
        raise DataError(f"expected a ranking as a list of items or as {{item: score}}, found {items!r:.60}")
    return TiedRanking(items)


def _filled(one: TiedRanking) -> TiedRanking:
    if not len(one):
        raise DataError("an empty ranking overlaps with nothing: expected at least one item")
    return one


def _refuse_depth(k: int | None) -> None:
    if k is not None and k < 1:
        raise DataError(f"the depth must be 1 or more, got {k}")


class _Pair:
    """Two rankings, the shorter first: at each depth of the longer, how many items they share."""

    def __init__(self, first: TiedRanking, second: TiedRanking, ties: Ties) -> None:
        if ties not in ("a", "b", "w"):
            raise DataError(f"ties must be a, b or w, got {ties!r}")
        short, long = (first, second) if len(_filled(first)) < len(_filled(second)) else (second, first)
        self.ties = ties if short.tied or long.tied else "w"  # all the same without ties, and w the fastest
        self.short, self.long = short, long
        self.shorter, self.longer = len(short), len(long)
        self.depth = np.arange(1, self.longer + 1)
        self.unseen = np.maximum(self.depth - self.shorter, 0)
        # `alone` are items that only the longer list holds: all that the shorter one's unseen rest could share.
        place = np.array([short.place.get(item, -1) for item in long.items])
        both, alone = place >= 0, place < 0
        place = place[both]
        self.shared = len(place)
        if self.ties == "w":
            [self.overlap] = self._reached(np.maximum(short.top[place], long.top[both]))
            self.part: Floats | float = 1.0
            return
        top, bottom, long_top, long_bottom = short.top[place], short.bottom[place], long.top[both], long.bottom[both]
        entered, short_complete, long_complete, complete, self.free, self.free_complete = self._reached(
            np.maximum(top, long_top),
            np.maximum(bottom, long_top),
            np.maximum(top, long_bottom),
            np.maximum(bottom, long_bottom),
            long.top[alone],
            long.bottom[alone],
        )
        self.part = long.part
        in_short, in_long = short_complete - complete, long_complete - complete  # complete there, cut in the other
        cut = entered - in_short - in_long - complete
        self.overlap = complete + long.part * in_short
        self.overlap[: self.shorter] += short.part * (in_long + long.part * cut)[: self.shorter]

    def _reached(self, *ranks: Ints) -> Floats:
        """For each of these columns of ranks: how many ranks lie at or above each depth."""
        cells = np.concatenate([column + (i * self.longer - 1) for i, column in enumerate(ranks)])
        counts = np.bincount(cells, minlength=len(ranks) * self.longer).reshape(len(ranks), self.longer)
        return counts.cumsum(axis=1, dtype=np.float64)

    @cached_property
    def size(self) -> npt.NDArray[Any]:
        """The divisor of the shared items at each depth; below its end a list continues without ties."""
        if self.ties == "a":
            return self.depth
        size = np.concatenate(
            [self.short.bottom if self.ties == "w" else self.short.squares, self.depth[self.shorter :]]
        )
        return (size + self.long.bottom) / 2 if self.ties == "w" else np.sqrt(size) * np.sqrt(self.long.squares)

    def agreement(self, more: Floats | float = 0.0) -> Floats:
        """The shared items, plus those assumed below the end, over the size of the lists at each depth."""
        return np.asarray((self.overlap + more) / self.size, np.float64)

    def most(self) -> Floats:
        """The most that the unseen rest of the shorter list could add: it continues with items of the longer list."""
        if self.ties == "w":
            return self.unseen.astype(np.float64)
        complete = np.minimum(self.unseen, self.free_complete)
        return np.asarray(complete + (self.unseen - complete) * self.part, np.float64)

    def likely(self, ends: float) -> Floats:
        """What the unseen rest of the shorter list adds if the agreement at its end continues."""
        if self.ties == "w":
            return np.asarray(self.unseen * ends, np.float64)
        share = (self.free_complete + self.part * (self.free - self.free_complete)) / np.maximum(self.free, 1)
        return np.asarray(self.unseen * ends * share, np.float64)
