"""Tests of pairs by formula: Student's t, Wilcoxon's signed ranks, the sign test, McNemar's test.

The last three are exact if possible. Zeros are dropped, as Wilcoxon did and as SciPy and R do by default. Ties share
their mean rank; the distribution is then that of these ranks under random signs, computed by adding one rank after the
other, not that of a table for untied ranks.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from cranfield.stats.sampled_means import ALL_CERTAIN, NO_CHANGE, ProbabilitySample, sampled_mean_and_error
from cranfield.stats.ties import NEAR, Bools, Floats, differences, mid_ranks, rounding
from cranfield.stats.two_sample_test import (
    Alternative,
    Prospect,
    SignificanceResult,
    SignificanceSettings,
    SignificanceValues,
    Test,
    normal_tails,
    p_from_tails,
)
from cranfield.stats.weighted_means import weighted_freedom, weighted_mean_and_error

EXACT_RANKS = 250  # up to so many differences other than 0 Wilcoxon's test is exact; beyond, normal
FEW = 20  # with so few the normal limit would reject where the test cannot


def mean_and_error(d: Floats) -> tuple[Floats, Floats]:
    """The mean of each row and its standard error."""
    return d.mean(axis=1), d.std(axis=1, ddof=1) / np.sqrt(d.shape[1])


def t_limits(mean: Floats, error: Floats, freedom: Floats | float, tails: tuple[float, float]) -> tuple[Floats, Floats]:
    """The interval between the tails of a t distribution; a tail of 0 leaves that side open."""
    from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

    below, above = (stdtrit(freedom, tail) if tail else -np.inf for tail in tails)
    return mean + error * below, mean - error * above


def t_test(mean: Floats, error: Floats, freedom: Floats | float, question: SignificanceSettings) -> SignificanceValues:
    """Student's test and interval of each mean with its standard error and degrees of freedom."""
    t = mean / error
    limits = t_limits(mean, error, freedom, question.tails)
    return SignificanceValues(t_p(t, freedom, question.alternative), t, *limits)


def sampled_t_test(d: Floats, sample: ProbabilitySample, question: SignificanceSettings) -> SignificanceValues:
    """The t-test of the population's mean, by the variance of the sampling design.

    Without an estimate of the error there is no p-value. The mean is then its own interval if all items were certain.
    """
    mean, error = sampled_mean_and_error(d, sample)
    undefined = np.full(len(d), math.nan)
    if sample.no_interval:
        ends = mean if sample.no_interval == ALL_CERTAIN else undefined
        return SignificanceValues(undefined, undefined, ends, ends, reason=sample.no_interval, lean=mean)
    fixed = error <= NEAR * np.abs(d).max(axis=1, initial=0)
    values = t_test(mean, np.where(fixed, math.nan, error), sample.freedom, question)
    reasons = [NO_CHANGE if same else "" for same in fixed.tolist()]
    return replace(values, reason=reasons, lean=mean)


def t_p(t: Floats | float, freedom: Floats | float, alternative: Alternative) -> Floats:
    """The p-value of t values."""
    from scipy.special import stdtr

    return p_from_tails(stdtr(freedom, t), stdtr(freedom, -t), alternative)


class T(Test):
    """Is the mean difference 0, measured against the spread of the differences?

    Assumes that the mean is about normally distributed, which is true from a few dozen pairs on. The interval is
    Student's.
    """

    name = "t"
    title = "paired t-test"
    short = "paired t"
    reference = "Student (1908)"
    aliases = ("t-test", "student", "ttest")
    p_from = "formula"
    needs_spread = True
    interval = "t"
    weighable = True
    design_based = True
    power = "formula"

    def compute(self, a: Floats, b: Floats, question: SignificanceSettings) -> SignificanceValues:
        d, weights = differences(a, b), question.weights
        if question.sample is not None:
            return sampled_t_test(d, question.sample, question)
        if weights is None:
            return t_test(*mean_and_error(d), d.shape[1] - 1, question)
        return t_test(*weighted_mean_and_error(d, weights), weighted_freedom(weights), question)

    def power_at(self, n: int, prospect: Prospect, alpha: float, alternative: Alternative) -> float:
        """By the noncentral t distribution."""
        return t_power(n - 1, prospect.effect * math.sqrt(n), alpha, alternative)


def t_power(df: float, shift: float, alpha: float, alternative: Alternative) -> float:
    """The power of a t-test by the noncentral t distribution; `shift` is the true mean in standard errors."""
    from scipy.special import stdtrit

    shift = -shift if alternative == "less" else shift
    if alternative != "two-sided":
        return 1 - _below(stdtrit(df, 1 - alpha), df, shift)
    critical, shift = stdtrit(df, 1 - alpha / 2), abs(shift)
    return min(1.0, 1 - _below(critical, df, shift) + _below(-critical, df, shift))


def _below(t: float, df: float, shift: float) -> float:
    """The probability of a value below t; 0 or 1 in the far tails, where the distribution cannot be computed.

    scipy.special loads in a third of the time of scipy.stats and gives the same digits.
    """
    from scipy.special import nctdtr

    chance = float(nctdtr(df, shift, t))
    if not math.isfinite(chance):
        return 0.0 if t < shift else 1.0
    return min(1.0, max(0.0, chance))


class Wilcoxon(Test):
    """Do the differences, ranked by size, lie equally above and below 0?

    Assumes that they are symmetric about their middle, which differs from the mean in skewed data. Exact up to 250
    differences other than 0, ties included; zeros are dropped.
    """

    name = "wilcoxon"
    title = "Wilcoxon signed-rank test"
    short = "Wilcoxon"
    reference = "Wilcoxon (1945)"
    aliases = ("signed-rank", "wilcoxon-signed-rank")
    compares = "ranks"
    p_from = "exact or approximate"
    centre = "pseudomedian"
    power = "simulated"

    def compute(self, a: Floats, b: Floats, question: SignificanceSettings) -> SignificanceValues:
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
            many = ranks[~exact]  # their own squares allow for ties
            mean, deviation = many.sum(axis=1) / 2, np.sqrt((many**2).sum(axis=1)) / 2
            lower[~exact], upper[~exact] = normal_tails(positive[~exact], mean, deviation)
        lean = positive - ranks.sum(axis=1) / 2
        return SignificanceValues(p_from_tails(lower, upper, question.alternative), positive, exact=exact, lean=lean)

    def smallest_p(self, outcome: SignificanceResult, differing: int, sides: int) -> float:
        return float(sides / 2**differing)

    def simulated_p(self, d: Floats, question: SignificanceSettings) -> Floats:
        """Exact for few pairs, else the normal limit with a correction for ties; zeros are left out."""
        if d.shape[1] <= FEW:
            return super().simulated_p(d, question)
        from scipy.special import ndtr
        from scipy.stats import rankdata  # type: ignore[import-untyped, unused-ignore]

        untied = d != 0
        ranks = rankdata(np.where(untied, np.abs(d), np.inf), axis=1)
        signed = np.where(untied, ranks, 0.0) * np.sign(d)
        spread = np.sqrt(np.square(signed).sum(axis=1))
        z = np.divide(signed.sum(axis=1), spread, out=np.zeros(len(d)), where=spread > 0)
        return p_from_tails(ndtr(z), ndtr(-z), question.alternative)


def sign_tails(up: Any, down: Any) -> tuple[Floats, Floats]:
    """The probabilities of so few, and of so many, positive signs, if both signs are equally likely.

    >>> [float(chance) for chance in sign_tails(3, 0)]
    [1.0, 0.125]
    """
    from scipy.special import bdtr, bdtrc  # type: ignore[import-untyped, unused-ignore]

    rose, total = np.asarray(up), np.asarray(up) + np.asarray(down)
    upper = np.where(rose > 0, bdtrc(np.maximum(rose - 1, 0), total, 0.5), 1.0)
    return np.asarray(bdtr(rose, total, 0.5), np.float64), np.asarray(upper, np.float64)


class _Wins(Test):
    compares = "wins"
    centre = "median"
    discrete = True

    def compute(self, a: Floats, b: Floats, question: SignificanceSettings) -> SignificanceValues:
        d = differences(a, b)
        up, down = (d > 0).sum(axis=1), (d < 0).sum(axis=1)
        lean = (up - down).astype(np.float64)
        p = p_from_tails(*sign_tails(up, down), question.alternative)
        return SignificanceValues(p, up.astype(np.float64), lean=lean)

    def smallest_p(self, outcome: SignificanceResult, differing: int, sides: int) -> float:
        return float(sides / 2**differing)


class Sign(_Wins):
    """Are there as many pairs above 0 as below?

    It uses signs only, so it has low power, but outliers do not matter. Zeros are dropped.
    """

    name = "sign"
    title = "sign test"
    reference = "Arbuthnot (1710)"
    power = "formula"

    def power_at(self, n: int, prospect: Prospect, alpha: float, alternative: Alternative) -> float:
        """By the binomial distribution, over the possible numbers of untied pairs among n."""
        from scipy.special import betaincc  # type: ignore[import-untyped, unused-ignore]

        m, weight = _numbers(n, 1 - prospect.tied)
        up = 1 - prospect.up if alternative == "less" else prospect.up
        most = _most_by_chance(m, alpha / 2 if alternative == "two-sided" else alpha)
        chance = _more_than(most, m, up)
        if alternative == "two-sided":
            chance = chance + np.where(most < m, betaincc(np.maximum(m - most, 1.0), most + 1, up), 0.0)
        return float(min(1.0, (chance * weight).sum()))


def _numbers(n: int, share: float) -> tuple[Floats, Floats]:
    """The values and probabilities of a binomial distribution, without negligible ones."""
    from scipy.special import gammaln, xlog1py, xlogy

    if share == 1:
        return np.array([float(n)]), np.ones(1)
    reach = 24 + 9 * math.sqrt(n * share * (1 - share))  # beyond it nothing exceeds 1e-15, by Bernstein's inequality
    m = np.arange(max(0, math.floor(n * share - reach)), min(n, math.ceil(n * share + reach)) + 1.0)
    log = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1) + xlogy(m, share) + xlog1py(n - m, -share)
    weight = np.exp(log)
    return m[weight > 1e-15], weight[weight > 1e-15]


def _more_than(k: Floats, m: Floats, up: float) -> Floats:
    """The probability that more than k of m signs are positive; 0 if k is at least m."""
    from scipy.special import betainc

    return np.where(k < m, betainc(np.minimum(k, m - 1) + 1, np.maximum(m - k, 1.0), up), 0.0)


def _most_by_chance(m: Floats, tail: float) -> Floats:
    """The largest number of positive signs among m that the sign test does not reject at this tail."""
    low, high = np.full(len(m), -1.0), m.copy()  # beyond m there is nothing
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        enough = (_more_than(middle, m, 0.5) <= tail * (1 + 1e-12)) & (high - low > 1)
        low, high = np.where((high - low > 1) & ~enough, middle, low), np.where(enough, middle, high)
    return high


class McNemar(_Wins):
    """Among pairs in which only one succeeded, did each win equally often? For values 0 and 1 only; exact."""

    name = "mcnemar"
    title = "McNemar's test"
    short = "McNemar"
    reference = "McNemar (1947)"
    binary = True


@lru_cache(maxsize=4096)
def signed_rank_tails(doubled_ranks: bytes, rank_sum: int) -> tuple[float, float]:
    """The probabilities that a random subset of these ranks (doubled, as bytes) has at most, or at least, this sum.

    >>> signed_rank_tails(np.array([2, 4, 6]).tobytes(), 2)  # none or the first, of eight; all but none
    (0.25, 0.875)
    """
    ranks = np.frombuffer(doubled_ranks, np.int64)
    ranks = ranks[ranks > 0]
    total = int(ranks.sum())
    if 2 * rank_sum > total:  # the distribution is symmetric: the smaller tail has fewer sums
        lower, upper = signed_rank_tails(doubled_ranks, total - rank_sum)
        return upper, lower
    ways = np.zeros(rank_sum + 1)
    ways[0] = 1.0
    for rank in ranks[ranks <= rank_sum]:
        ways[rank:] += ways[:-rank]  # NumPy reads before it writes where the two overlap
    whole = 0.5 ** len(ranks)
    return float(ways.sum() * whole), 1.0 - float(ways[:rank_sum].sum() * whole)


def t_without_each(d: Floats) -> tuple[Floats, Floats]:
    """For each difference of a row: the mean of the others and the absolute value of their t.

    >>> mean, t = t_without_each(np.array([1.0, 2.0, 6.0]))
    >>> mean.tolist(), t.round(3).tolist(), p_of_t(t, 2).round(3).tolist()
    ([4.0, 3.5, 1.5], [2.0, 1.4, 3.0], [0.295, 0.395, 0.205])
    """
    n = d.shape[-1]
    mean = (d.sum(axis=-1, keepdims=True) - d) / (n - 1)
    squares = np.square(d)
    others = squares.sum(axis=-1, keepdims=True) - squares
    variance = np.maximum(others - (n - 1) * np.square(mean), 0.0) / (n - 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(mean / np.sqrt(variance / (n - 1)))
    return mean, np.where(np.isnan(t), 0.0, t)


def p_of_t(t: Floats, n: float) -> Floats:
    """The two-sided p-value of the t-test of n pairs, or of weighted pairs with this effective number."""
    from scipy.special import stdtr

    return np.asarray(2 * stdtr(max(n - 1, 1), -t), np.float64)
