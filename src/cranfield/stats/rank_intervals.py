"""Intervals of a group's true rank: from 1 + the number of groups shown to be above it, to all − the number below it.

The true rank of groups with equal means is the span that they share, and an interval covers it if it holds the whole
span. Pairs are shown to differ by a step-down test of the largest t over tables whose blocks were drawn again (Romano
and Wolf, 2005), as in Mogstad, Romano, Shaikh and Wilhelm (2024): one family of all pairs for all ranks at once, or the
pairs of one group for its rank alone. Each drawn difference is measured in the standard error of its own draw, which
keeps the level with skewed differences. The variance of a draw counts as at least a share of that of the data
(`least_variance`); otherwise one pair that differs on few blocks would make the largest t infinite, and no other pair
could be shown to differ.

Bootstrap ranks are the ranks that groups take when the blocks are drawn again, with replacement. Means that are equal but
for rounding share a rank: the interval then runs from the best to the worst rank they could take, and they share the
probability of being first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from cranfield.base.errors import DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.registry import Registry
from cranfield.stats.block_tables import block_table, even, probability, refuse_no_resamples
from cranfield.stats.bootstrap import resample_counts
from cranfield.stats.method import StatisticalMethod
from cranfield.stats.ties import tied_ranks
from cranfield.stats.weighted_means import checked, weighted_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator

    from cranfield.stats.ties import Floats, Ints

    Singles = npt.NDArray[np.float32]


RESAMPLED_CELLS = 1 << 20


@dataclass(frozen=True)
class RankIntervals:
    """Ranks from 1, the highest mean; one entry per group, in the table's order."""

    means: Floats
    ranks: Floats  # as observed; tied groups share the mean of theirs
    low: Ints  # the best rank of the interval
    high: Ints  # the worst
    first: Floats  # how often the group comes first
    expected: Floats  # the mean rank over all draws
    above: Floats  # groups × groups: how often the row's group comes above the column's; a tie is half
    level: float
    resamples: int


def rank_intervals(
    table: Any,
    level: float = 0.95,
    resamples: int = 10_000,
    rng: Generator | None = None,
    weights: Floats | None = None,
) -> RankIntervals:
    """The interval of each group's rank by the bootstrap over blocks (and their weights), and its chance of being first.

    >>> found = rank_intervals([[1, 2, 9], [3, 2, 9], [2, 1, 9], [1, 2, 9]], rng=np.random.default_rng(1))
    >>> found.ranks.tolist(), found.low.tolist(), found.high.tolist(), found.first.tolist()
    ([2.5, 2.5, 1.0], [2, 2, 1], [3, 3, 1], [0.0, 0.0, 1.0])
    """
    probability("level", level)
    values = block_table(table, groups=1)
    refuse_no_resamples(resamples)
    refuse_below(1, resamples=resamples)
    groups = values.shape[1]
    best, worst = np.empty((resamples, groups), np.int32), np.empty((resamples, groups), np.int32)
    above = np.zeros((groups, groups))
    at = 0
    for means in _drawn_means(values, resamples, rng, weights):
        rows = slice(at, at + len(means))
        best[rows], worst[rows] = _best_and_worst(means)
        above += _above(means)
        at += len(means)
    leads = best == 1
    tail = (1 - level) / 2
    means = values.mean(axis=0) if weights is None else weighted_mean(values.T, weights)
    observed = _best_and_worst(even(means[None], values))
    return RankIntervals(
        means=means,
        ranks=np.asarray((observed[0] + observed[1])[0] / 2, np.float64),
        low=np.quantile(best, tail, axis=0, method="lower").astype(np.int64),
        high=np.quantile(worst, 1 - tail, axis=0, method="higher").astype(np.int64),
        first=np.asarray((leads / leads.sum(axis=1, keepdims=True)).mean(axis=0), np.float64),
        expected=np.asarray((best.mean(axis=0) + worst.mean(axis=0)) / 2, np.float64),
        above=above / resamples,
        level=level,
        resamples=resamples,
    )


def first_in_redraws(
    table: Any, resamples: int = 10_000, rng: Generator | None = None, weights: Floats | None = None
) -> Floats:
    """How often each group has the highest mean when the blocks are drawn again; groups that tie share the draw.

    This is not the probability of being the best: among eight equal groups, the one that the data happen to favour
    leads in about half of the draws.

    >>> first_in_redraws([[1, 2, 9], [3, 2, 9], [2, 1, 9]], 100).tolist()
    [0.0, 0.0, 1.0]
    """
    values = block_table(table, groups=1)
    refuse_no_resamples(resamples)
    times = np.zeros(values.shape[1])
    for means in _drawn_means(values, resamples, rng, weights):
        leads = means == means.max(axis=1, keepdims=True)
        times += (leads / leads.sum(axis=1, keepdims=True)).sum(axis=0)
    return times / resamples


def _drawn_means(
    values: Floats, resamples: int, rng: Generator | None, weights: Floats | None = None
) -> Iterator[Floats]:
    """Means of tables whose blocks were drawn with replacement, with their weights if there are any, in batches."""
    rng = np.random.default_rng(0) if rng is None else rng
    for times in resample_counts(len(values), resamples, rng, max(1, RESAMPLED_CELLS // max(values.shape))):
        if weights is None:
            yield even(times @ values / len(values), values)
        else:
            yield even((times * weights) @ values / (times @ weights)[:, None], values)


def _best_and_worst(means: Floats) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    best, worst = tied_ranks(-means)
    return best.astype(np.int32), worst.astype(np.int32)


def _above(means: Floats) -> Floats:
    groups = means.shape[1]
    higher = np.zeros((groups, groups))
    step = max(1, RESAMPLED_CELLS // groups**2)
    for start in range(0, len(means), step):
        some = means[start : start + step]
        higher += (some[:, :, None] > some[:, None, :]).sum(axis=0)
    return np.asarray((higher + (len(means) - higher.T)) / 2, np.float64)


CELLS, DRAWN = 1 << 18, 512  # drawn t values held at once, and draws
MOST, FEWEST = 1 << 24, 2_000  # drawn t values in all, and draws where there are very many pairs
ROUNDING = 1e-14  # differences by less, relative to the largest value, are none
SAME = 1e-5  # statistics that differ by less, relative to the larger, are equal: they are single precision


@dataclass(frozen=True)
class RankRanges:
    """The possible ranks of each group, from 1 for the highest mean; one entry per group, in the table's order."""

    low: Ints
    high: Ints
    p: Floats  # groups × groups: the row's group against the column's, corrected within the row's family; 1 on the diagonal
    level: float
    resamples: int


class RankInterval(StatisticalMethod, ABC):
    """A kind of rank intervals: its promise, and how it is computed."""

    registry: ClassVar[Registry[RankInterval]] = Registry("rank interval", "rank_intervals", refusal=DataError)

    promise: ClassVar[str]  # what the level is the chance of, after "95 % intervals"
    way: ClassVar[str]
    holds: ClassVar[bool] = True  # whether the promise is kept however close the groups are
    facts = ("promise", "way", "holds")

    @abstractmethod
    def ranges(
        self, table: Any, level: float, resamples: int, rng: Generator, weights: Floats | None = None
    ) -> tuple[Ints, Ints, int]:
        """The lowest and highest rank of each group, and the number of draws used; `weights` are those of blocks."""


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
        result = rank_ranges(table, level, resamples, rng, self.together, weights)
        return result.low, result.high, result.resamples


class Marginal(Simultaneous):
    """Holds for the rank of one group that was chosen beforehand; of many such intervals, some are wrong."""

    name = "marginal"
    title = "marginal"
    promise = "for each rank alone"
    together = False


class BootstrapRanks(RankInterval):
    """The middle part of the ranks in redrawn tables; for close groups it holds less often than its level says."""

    name = "bootstrap"
    title = "bootstrap"
    reference = "Efron (1979)"
    promise = "of redrawn ranks, too narrow where means are close"
    way = "percentiles"
    holds = False

    def ranges(
        self, table: Any, level: float, resamples: int, rng: Generator, weights: Floats | None = None
    ) -> tuple[Ints, Ints, int]:
        result = rank_intervals(table, level, resamples, rng, weights)
        return result.low, result.high, resamples


def rank_ranges(
    table: Any,
    level: float = 0.95,
    resamples: int = 10_000,
    rng: Generator | None = None,
    together: bool = True,
    weights: Floats | None = None,
) -> RankRanges:
    """The range of each group's rank that holds at the level: for all groups together, or for each one alone.

    Five blocks or fewer show nothing at 95 %, because all signs agree by chance in one of 16 tables. For very many
    pairs fewer than `resamples` draws are made; the result says how many. Blocks with `weights` are drawn together with
    them, and each difference is a ratio of two sums with its linearised error.

    >>> rng = np.random.default_rng(1)
    >>> found = rank_ranges(rng.normal(0, 1, (40, 4)) + [0, 0, 1, 5], rng=rng)
    >>> found.low.tolist(), found.high.tolist()
    ([3, 3, 2, 1], [4, 4, 2, 1])
    """
    probability("level", level)
    values = block_table(table, groups=1)
    refuse_no_resamples(resamples)
    rng = np.random.default_rng(0) if rng is None else rng
    groups = values.shape[1]
    pairs = max(1, groups * (groups - 1) // 2)
    draws = min(resamples, max(FEWEST, MOST // pairs))
    w = None if weights is None or not np.ptp(weights) else checked(weights, len(values))
    p = _p_of_pairs(values, draws, rng, together, w)
    means = values.mean(axis=0) if w is None else weighted_mean(values.T, w)
    significant = (p <= 1 - level + 1e-12) if 2.0 ** (1 - len(values)) <= 1 - level else np.zeros(p.shape, np.bool_)
    better, worse = ((significant & way).sum(axis=1) for way in (means > means[:, None], means < means[:, None]))
    return RankRanges(1 + better, groups - worse, p, level, draws)


def least_variance(blocks: int) -> float:
    """The minimum variance of a draw, as a share of that of the data: a quarter, less for few blocks.

    >>> least_variance(10), least_variance(50)
    (0.1, 0.25)
    """
    return min(0.25, blocks / 100)


@dataclass(frozen=True)
class _Family:
    """Pairs of groups that are corrected together, the closest pair first."""

    one: Ints
    other: Ints
    t2: Floats  # the squared mean difference over its variance: t² but for a constant
    inverse: Floats  # 1 / that variance; 0 where the difference is the same in all blocks

    def chunks(self, blocks: int) -> Iterator[slice]:
        """The pairs in batches."""
        step = max(1, CELLS // max(DRAWN, blocks))
        return (slice(start, start + step) for start in range(0, len(self.one), step))

    def p(self, reached: Ints, draws: int) -> Floats:
        """The p-value of each pair from the draws that reached it; no smaller than that of a pair further apart."""
        return np.maximum.accumulate(((reached + 1) / (draws + 1))[::-1])[::-1]  # never 0: Phipson & Smyth (2010)


def _p_of_pairs(values: Floats, draws: int, rng: Generator, together: bool, weights: Floats | None = None) -> Floats:
    """The corrected p-value of every pair, in the family of all pairs or in that of the row's group."""
    families = list(_families(values, together, weights))
    reached = [np.zeros(len(family.one), np.int64) for family in families]
    middle = values.mean(axis=0) if weights is None else weighted_mean(values.T, weights)
    centred = np.asarray((values - middle).T / (np.abs(values).max() or 1.0), np.float32)
    for times in resample_counts(len(values), draws, rng, DRAWN):
        redraws = _redrawn_means(centred, times, weights)
        for family, count in zip(families, reached, strict=True):
            count += _times_reached(family, centred, redraws)
    p = np.ones((values.shape[1], values.shape[1]))
    for family, count in zip(families, reached, strict=True):
        p[family.one, family.other] = family.p(count, draws)
    return np.minimum(p, p.T) if together else p


@dataclass(frozen=True)
class _RedrawnMeans:
    """Some draws of blocks, one column per draw: the means of all groups, and the parts of their variances."""

    means: Singles  # groups × draws
    squared: Singles  # blocks × draws: what the square of a deviation counts
    moved: Singles  # groups × draws: the centred values by those
    size: Singles  # their sums

    def mean_part(self, one: Ints, other: Ints) -> Singles:
        """What to subtract from the mean square of a difference: m² if blocks have no weights."""
        mean = self.means[one] - self.means[other]
        return mean * (2 * (self.moved[one] - self.moved[other]) - mean * self.size)


def _redrawn_means(centred: Singles, times: Floats, weights: Floats | None) -> _RedrawnMeans:
    if weights is None:
        shares = np.asarray(times.T / times.shape[1], np.float32)
        means = centred @ shares
        return _RedrawnMeans(means, shares, means, np.ones(len(times), np.float32))
    total = times @ weights
    shares = np.asarray((times * weights).T / total, np.float32)
    squared = np.asarray((times * np.square(weights)).T * (times.shape[1] / total**2), np.float32)
    return _RedrawnMeans(centred @ shares, squared, centred @ squared, squared.sum(axis=0))


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


def _times_reached(family: _Family, centred: Singles, redraws: _RedrawnMeans) -> Ints:
    """For each pair, the number of draws in which the largest t² of the pairs up to it reaches its own t²."""
    means, squared = redraws.means, redraws.squared
    least = np.float32(least_variance(len(squared)))
    largest = np.zeros(squared.shape[1], np.float32)
    reached = np.empty(len(family.one), np.int64)
    for some in family.chunks(len(squared)):
        one, other, inverse = family.one[some], family.other[some], family.inverse[some, None].astype(np.float32)
        mean2 = np.square(means[one] - means[other]) * inverse
        square = (np.square(centred[one] - centred[other]) * inverse) @ squared
        variance = square - (mean2 if redraws.moved is means else redraws.mean_part(one, other) * inverse)
        t2 = mean2 / np.maximum(variance, least, out=variance)
        np.maximum(t2[0], largest, out=t2[0])
        np.maximum.accumulate(t2, axis=0, out=t2)
        reached[some] = np.count_nonzero(t2 >= (family.t2[some, None] * (1 - SAME)).astype(np.float32), axis=1)
        largest = t2[-1].copy()
    return reached
