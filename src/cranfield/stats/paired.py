"""Tests of pairs by formula: Student's t, Wilcoxon's signed ranks, the sign test, McNemar's test.

The last three are exact wherever that can be had. Zeros are dropped, as Wilcoxon did and as SciPy and R do by
default; ties share their mean rank, and the distribution is then that of these very ranks under random signs,
found by adding one rank after the other, not that of a table for untied ranks.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cranfield.stats.test import Bools, Figures, Floats, Question, Test, p_from_tails
from cranfield.stats.ties import differences, mid_ranks, rounding

EXACT_RANKS = 250  # up to so many differences other than 0 Wilcoxon's test is exact; beyond, normal


def t_limits(mean: Floats, error: Floats, freedom: Floats | float, tails: tuple[float, float]) -> tuple[Floats, Floats]:
    """The interval that a t distribution leaves between its tails; a tail of 0 leaves it open."""
    from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

    below, above = (stdtrit(freedom, tail) if tail else -np.inf for tail in tails)
    return mean + error * below, mean - error * above


class T(Test):
    """Is the mean difference 0, measured against the spread of the differences?

    Assumes that their mean is about normally distributed, which some dozens of pairs ensure. The interval is Student's.
    """

    name = "t"
    title = "paired t-test"
    short = "paired t"
    reference = "Student (1908)"
    aliases = ("t-test", "student", "ttest")
    p_from = "formula"
    spread = True
    interval = "t"
    power = "formula"

    def compute(self, a: Floats, b: Floats, question: Question) -> Figures:
        from scipy.special import stdtr  # type: ignore[import-untyped, unused-ignore]

        d = differences(a, b)
        n = d.shape[1]
        mean, error = d.mean(axis=1), d.std(axis=1, ddof=1) / np.sqrt(n)
        t = mean / error
        p = p_from_tails(stdtr(n - 1, t), stdtr(n - 1, -t), question.alternative)
        return Figures(p, t, *t_limits(mean, error, n - 1, question.tails))


class Wilcoxon(Test):
    """Do the differences, ranked by size, lie as much above 0 as below?

    Assumes that they are symmetric about their middle, which is not the mean in skewed data. Exact up to 250 differences
    other than 0, ties included; zeros are dropped.
    """

    name = "wilcoxon"
    title = "Wilcoxon signed-rank test"
    short = "Wilcoxon"
    reference = "Wilcoxon (1945)"
    aliases = ("signed-rank", "wilcoxon-signed-rank")
    compares = "ranks"
    p_from = "exact or approximate"
    power = "simulated"

    def compute(self, a: Floats, b: Floats, question: Question) -> Figures:
        d = differences(a, b)
        zeros = (d == 0).sum(axis=1, keepdims=True)
        ranks = np.where(d == 0, 0.0, mid_ranks(np.abs(d), rounding(a, b)) - zeros)
        positive = np.where(d > 0, ranks, 0.0).sum(axis=1)
        exact: Bools = (d.shape[1] - zeros[:, 0]) <= EXACT_RANKS
        lower, upper = np.ones(len(d)), np.ones(len(d))
        doubled = np.sort(np.rint(2 * ranks).astype(np.int64), axis=1)
        for row in np.flatnonzero(exact):
            lower[row], upper[row] = signed_rank_tails(doubled[row].tobytes(), round(2 * positive[row]))
        if not exact.all():
            lower[~exact], upper[~exact] = _normal_tails(positive[~exact], ranks[~exact])
        return Figures(p_from_tails(lower, upper, question.alternative), positive, exact=exact)


class _Wins(Test):
    compares = "wins"
    discrete = True

    def compute(self, a: Floats, b: Floats, question: Question) -> Figures:
        from scipy.special import bdtr, bdtrc  # type: ignore[import-untyped, unused-ignore]

        d = differences(a, b)
        up, down = (d > 0).sum(axis=1), (d < 0).sum(axis=1)
        lower = bdtr(up, up + down, 0.5)
        upper = np.where(up > 0, bdtrc(np.maximum(up - 1, 0), up + down, 0.5), 1.0)
        return Figures(p_from_tails(lower, upper, question.alternative), up.astype(np.float64))


class Sign(_Wins):
    """Are there as many pairs above 0 as below?

    Looks at signs only: weak, and safe against any size of a difference. Zeros are dropped.
    """

    name = "sign"
    title = "sign test"
    reference = "Arbuthnot (1710)"
    power = "formula"


class McNemar(_Wins):
    """Of the pairs in which just one succeeded, did each win as many? For values 0 and 1 only; exact."""

    name = "mcnemar"
    title = "McNemar's test"
    short = "McNemar"
    reference = "McNemar (1947)"
    binary = True


def _normal_tails(positive: Floats, ranks: Floats) -> tuple[Floats, Floats]:
    """Both tails by the normal distribution, with half a rank for continuity; the ranks' own squares allow for ties."""
    from scipy.special import ndtr  # type: ignore[import-untyped, unused-ignore]

    mean, deviation = ranks.sum(axis=1) / 2, np.sqrt((ranks**2).sum(axis=1)) / 2
    return ndtr((positive - mean + 0.5) / deviation), ndtr(-(positive - mean - 0.5) / deviation)


@lru_cache(maxsize=4096)
def signed_rank_tails(doubled_ranks: bytes, found: int) -> tuple[float, float]:
    """The chances that these ranks (doubled, as the bytes of whole numbers), each kept or not, sum to at most, or at least.

    >>> signed_rank_tails(np.array([2, 4, 6]).tobytes(), 2)  # none or the first, of eight; all but none
    (0.25, 0.875)
    """
    ranks = np.frombuffer(doubled_ranks, np.int64)
    ranks = ranks[ranks > 0]
    total = int(ranks.sum())
    if 2 * found > total:  # the distribution is symmetric: the smaller tail has fewer sums
        lower, upper = signed_rank_tails(doubled_ranks, total - found)
        return upper, lower
    ways = np.zeros(found + 1)
    ways[0] = 1.0
    for rank in ranks[ranks <= found]:
        ways[rank:] += ways[:-rank]  # NumPy reads before it writes where the two overlap
    whole = 0.5 ** len(ranks)
    return float(ways.sum() * whole), 1.0 - float(ways[:found].sum() * whole)
