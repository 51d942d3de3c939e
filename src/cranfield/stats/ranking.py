"""What can be said of a group's true rank, so that it holds: 1 + how many are shown to be above it, to all − how many below.

The true rank of groups with equal means is the span that they share, and an interval covers it if it holds the whole
span. Pairs are shown to differ by a step-down test of the largest t over tables whose blocks were drawn again (Romano
and Wolf, 2005), as in Mogstad, Romano, Shaikh and Wilhelm (2024): one family of all pairs for all ranks at once, or the
pairs of one group for its rank alone. Each drawn difference is measured in the standard error of its own draw, which
keeps skewed differences honest; no drawn variance counts as less than a share of the data's (`least_variance`), for else
one pair that differs on few blocks only would make the largest t boundless, and all other pairs blind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cranfield.errors import DataError
from cranfield.stats.bootstrap import resample_counts
from cranfield.stats.method import Method
from cranfield.stats.ranks import rank_intervals
from cranfield.stats.tables import block_table, probability
from cranfield.stats.weighing import checked, weighted_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    from numpy.random import Generator

    from cranfield.stats.ties import Floats, Ints

    Singles = npt.NDArray[np.float32]

CELLS, DRAWN = 1 << 18, 512  # drawn t values held at once, and draws
MOST, FEWEST = 1 << 24, 2_000  # drawn t values in all, and draws where there are very many pairs
ROUNDING = 1e-14  # differences by less, relative to the largest value, are none
SAME = 1e-5  # statistics that differ by less, relative to the larger, are equal: they are single precision


@dataclass(frozen=True)
class RankRanges:
    """The ranks that each group may have, from 1 for the highest mean; one entry a group, in the table's order."""

    low: Ints
    high: Ints
    p: Floats  # groups × groups: the row's group against the column's, corrected within the row's family; 1 on the diagonal
    level: float
    resamples: int


class RankInterval(Method, ABC):
    """Intervals of ranks by name: what they promise, and how they come about."""

    kind = "rank interval"
    registry: ClassVar[dict[str, RankInterval]] = {}

    promise: ClassVar[str]  # what the level is the chance of, after "95 % intervals"
    way: ClassVar[str]
    holds: ClassVar[bool] = True  # whether the promise is kept however close the groups are
    facts = ("promise", "way", "holds")

    @abstractmethod
    def ranges(
        self, table: Any, level: float, resamples: int, rng: Generator, weights: Floats | None = None
    ) -> tuple[Ints, Ints, int]:
        """The lowest and the highest rank of each group, and how many draws that took; `weights` are those of blocks."""


RANK_INTERVALS = RankInterval.registry


class Simultaneous(RankInterval):
    """Holds for the ranks of all groups at once: in 95 of 100 samples of blocks not one of them is wrong."""

    name = "simultaneous"
    title = "simultaneous"
    reference = "Mogstad, Romano, Shaikh and Wilhelm (2024)"
    promise = "for all ranks at once"
    way = "step-down max-t"
    together: ClassVar[bool] = True  # whether all pairs are one family

    def ranges(
        self, table: Any, level: float, resamples: int, rng: Generator, weights: Floats | None = None
    ) -> tuple[Ints, Ints, int]:
        found = rank_ranges(table, level, resamples, rng, self.together, weights)
        return found.low, found.high, found.resamples


class Marginal(Simultaneous):
    """Holds for the rank of one group that was chosen beforehand; of many such intervals, some are wrong."""

    name = "marginal"
    title = "marginal"
    promise = "for each rank alone"
    together = False


class Redrawn(RankInterval):
    """The middle of the ranks in tables whose blocks were drawn again; holds less often than it says among close groups."""

    name = "bootstrap"
    title = "bootstrap"
    reference = "Efron (1979)"
    promise = "of redrawn ranks, too narrow where means are close"
    way = "percentiles"
    holds = False

    def ranges(
        self, table: Any, level: float, resamples: int, rng: Generator, weights: Floats | None = None
    ) -> tuple[Ints, Ints, int]:
        found = rank_intervals(table, level, resamples, rng, weights)
        return found.low, found.high, resamples


def rank_ranges(
    table: Any,
    level: float = 0.95,
    resamples: int = 10_000,
    rng: Generator | None = None,
    together: bool = True,
    weights: Floats | None = None,
) -> RankRanges:
    """The range of each group's rank that holds at the level: for all groups together, or for each one alone.

    Five blocks or fewer show nothing at 95 %: signs that fall alike by chance in one of 16 tables. Where there are so many
    pairs that `resamples` draws would take long, fewer are made; the answer says how many. Blocks that have `weights` are
    drawn with them, and each difference is a ratio of two sums in its linearised error.

    >>> rng = np.random.default_rng(1)
    >>> found = rank_ranges(rng.normal(0, 1, (40, 4)) + [0, 0, 1, 5], rng=rng)
    >>> found.low.tolist(), found.high.tolist()
    ([3, 3, 2, 1], [4, 4, 2, 1])
    """
    probability("level", level)
    values = block_table(table, groups=1)
    if resamples < 1:
        raise DataError(f"resamples must be 1 or more, got {resamples}")
    rng = np.random.default_rng(0) if rng is None else rng
    groups = values.shape[1]
    pairs = max(1, groups * (groups - 1) // 2)
    draws = min(resamples, max(FEWEST, MOST // pairs))
    w = None if weights is None or not np.ptp(weights) else checked(weights, len(values))
    p = _p_of_pairs(values, draws, rng, together, w)
    means = values.mean(axis=0) if w is None else weighted_mean(values.T, w)
    shown = (p <= 1 - level + 1e-12) if 2.0 ** (1 - len(values)) <= 1 - level else np.zeros(p.shape, np.bool_)
    better, worse = ((shown & way).sum(axis=1) for way in (means > means[:, None], means < means[:, None]))
    return RankRanges(1 + better, groups - worse, p, level, draws)


def least_variance(blocks: int) -> float:
    """The share of the data's variance that a draw's variance counts as at least: a quarter, for few blocks less.

    >>> least_variance(10), least_variance(50)
    (0.1, 0.25)
    """
    return min(0.25, blocks / 100)


@dataclass(frozen=True)
class _Family:
    """Pairs of groups that are corrected together, the one least apart first."""

    one: Ints
    other: Ints
    t2: Floats  # the squared mean difference over its variance: t² but for a constant
    inverse: Floats  # 1 / that variance; 0 where the difference is the same in all blocks

    def chunks(self, blocks: int) -> Iterator[slice]:
        """Some of the pairs at a time."""
        step = max(1, CELLS // max(DRAWN, blocks))
        return (slice(start, start + step) for start in range(0, len(self.one), step))

    def p(self, reached: Ints, draws: int) -> Floats:
        """p-values of the number of draws that reached each pair: none is below that of a pair further apart."""
        return np.maximum.accumulate(((reached + 1) / (draws + 1))[::-1])[::-1]  # never 0: Phipson & Smyth (2010)


def _p_of_pairs(values: Floats, draws: int, rng: Generator, together: bool, weights: Floats | None = None) -> Floats:
    """The corrected p-value of every pair, in the family of all pairs or in that of the row's group."""
    families = list(_families(values, together, weights))
    reached = [np.zeros(len(family.one), np.int64) for family in families]
    middle = values.mean(axis=0) if weights is None else weighted_mean(values.T, weights)
    centred = np.asarray((values - middle).T / (np.abs(values).max() or 1.0), np.float32)
    for times in resample_counts(len(values), draws, rng, DRAWN):
        drawn = _drawn(centred, times, weights)
        for family, count in zip(families, reached, strict=True):
            count += _times_reached(family, centred, drawn)
    p = np.ones((values.shape[1], values.shape[1]))
    for family, count in zip(families, reached, strict=True):
        p[family.one, family.other] = family.p(count, draws)
    return np.minimum(p, p.T) if together else p


@dataclass(frozen=True)
class _Drawn:
    """Some draws of blocks, a column a draw: the means of all groups, and what their variances are made of."""

    means: Singles  # groups × draws
    squared: Singles  # blocks × draws: what the square of a deviation counts
    moved: Singles  # groups × draws: the centred values by those
    size: Singles  # their sums

    def mean_part(self, one: Ints, other: Ints) -> Singles:
        """What the mean of a difference takes off its mean square: m² where blocks have no weights."""
        mean = self.means[one] - self.means[other]
        return mean * (2 * (self.moved[one] - self.moved[other]) - mean * self.size)


def _drawn(centred: Singles, times: Floats, weights: Floats | None) -> _Drawn:
    if weights is None:
        shares = np.asarray(times.T / times.shape[1], np.float32)
        means = centred @ shares
        return _Drawn(means, shares, means, np.ones(len(times), np.float32))
    total = times @ weights
    shares = np.asarray((times * weights).T / total, np.float32)
    squared = np.asarray((times * np.square(weights)).T * (times.shape[1] / total**2), np.float32)
    return _Drawn(centred @ shares, squared, centred @ squared, squared.sum(axis=0))


def _families(values: Floats, together: bool, weights: Floats | None) -> Iterator[_Family]:
    groups = np.arange(values.shape[1])
    if together:
        yield _family(values, *np.triu_indices(len(groups), 1), weights)
    else:
        others = ((np.full(len(groups) - 1, group), groups[groups != group]) for group in groups)
        yield from (_family(values, *pair, weights) for pair in others)


def _family(values: Floats, one: Ints, other: Ints, weights: Floats | None = None) -> _Family:
    scale = float(np.abs(values).max()) or 1.0
    near = ROUNDING**2
    mean2, variance = np.empty(len(one)), np.empty(len(one))
    step = max(1, CELLS // len(values))
    for start in range(0, len(one), step):
        some = slice(start, start + step)
        gap = (values[:, one[some]] - values[:, other[some]]) / scale
        if weights is None:
            mean2[some], variance[some] = gap.mean(axis=0) ** 2, gap.var(axis=0)
        else:
            mean, share = weighted_mean(gap.T, weights), weights / weights.sum()
            mean2[some], variance[some] = mean**2, len(gap) * (np.square(share) @ np.square(gap - mean))
    inverse = np.where(variance > near, 1 / np.maximum(variance, near), 0.0)
    t2 = np.where(variance > near, mean2 * inverse, np.where(mean2 > near, np.inf, 0.0))
    order = np.argsort(t2, kind="stable")
    return _Family(one[order], other[order], t2[order], inverse[order])


def _times_reached(family: _Family, centred: Singles, drawn: _Drawn) -> Ints:
    """In how many draws the largest t² among the pairs up to each one reaches that one's own."""
    means, squared = drawn.means, drawn.squared
    least = np.float32(least_variance(len(squared)))
    largest = np.zeros(squared.shape[1], np.float32)
    reached = np.empty(len(family.one), np.int64)
    for some in family.chunks(len(squared)):
        one, other, inverse = family.one[some], family.other[some], family.inverse[some, None].astype(np.float32)
        mean2 = np.square(means[one] - means[other]) * inverse
        square = (np.square(centred[one] - centred[other]) * inverse) @ squared
        variance = square - (mean2 if drawn.moved is means else drawn.mean_part(one, other) * inverse)
        t2 = mean2 / np.maximum(variance, least, out=variance)
        np.maximum(t2[0], largest, out=t2[0])
        np.maximum.accumulate(t2, axis=0, out=t2)
        reached[some] = np.count_nonzero(t2 >= (family.t2[some, None] * (1 - SAME)).astype(np.float32), axis=1)
        largest = t2[-1].copy()
    return reached
