"""Many groups on the same blocks, tested together: two-way ANOVA, Tukey's HSD, its randomised twin, max-t, Friedman, Nemenyi.

Letters (compact letter display by insert and absorb; Piepho, 2004) say which groups do not differ: they share a letter.

A table holds one value for each block (row) and group (column). The model has no interaction, as it cannot be estimated
from one value per cell. Tests of all pairs include a correction for their number; do not correct their p-values again.
If the data have no variance to test against, p is NaN and `reason` says why.

Tukey's and Nemenyi's tests need the studentised range: how far apart the means of k equal groups lie, in standard errors.
SciPy integrates each value on its own, some 15 ms apiece; thousands of pairs are integrated here together by
Gauss-Legendre quadrature. The survival function is written so that small tails keep their digits:

    P(range > r) = k ∫ φ(z) [A^(k-1) - (A - B)^(k-1)] dz,   A = 1 - Φ(z), B = 1 - Φ(z + r)

and for a finite number of degrees of freedom it is averaged over s, the estimated standard deviation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from inspect import signature
from itertools import count, permutations, product
from math import factorial, inf, lgamma, nan
from string import ascii_letters
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.registry import Registry
from cranfield.stats.block_tables import block_table, no_error, probability, refuse_no_resamples
from cranfield.stats.bootstrap import resample_counts
from cranfield.stats.method import SignificanceTest, Source
from cranfield.stats.rank_intervals import FEWEST, MOST, least_variance
from cranfield.stats.sequential import legendre_nodes
from cranfield.stats.ties import mid_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.random import Generator

    from cranfield.stats.ties import Bools, Floats


MOST_LETTERED_GROUPS = 2_000


def letters(means: Any, differ: Any) -> list[str]:
    """The letters of each group: two groups share a letter exactly if they do not differ; `a` marks the highest mean.

    >>> letters([0.3, 0.5, 0.4], [[False, True, False], [True, False, False], [False, False, False]])
    ['b', 'a', 'ab']
    """
    values, apart = np.asarray(means, np.float64), np.asarray(differ, bool)
    if values.ndim != 1 or apart.shape != (len(values), len(values)):
        raise DataError(
            f"expected a mean for each group and a groups × groups matrix, found {values.shape} and {apart.shape}"
        )
    if np.isnan(values).any():
        raise DataError("expected a mean for each group, found NaN; leave that group out")
    if (apart != apart.T).any() or apart.diagonal().any():
        raise DataError("expected a symmetric matrix of differences in which no group differs from itself")
    order = np.argsort(-values, kind="stable")
    sets = sorted(_needed([_members(one) for one in _together(apart[np.ix_(order, order)])], len(values)))
    display = [""] * len(values)
    alphabet = (f"{letter}{number or ''}" for number in count() for letter in ascii_letters)  # a … Z, a1 … Z1, a2 …
    for letter, members in zip(alphabet, sets, strict=False):
        for member in members:
            display[order[member]] += letter
    return display


def _together(apart: Any) -> list[int]:
    """The maximal sets of groups without a differing pair, as bits: split at each such pair, drop subsets of other sets."""
    sets = [(1 << len(apart)) - 1] if len(apart) else []
    for i, j in np.argwhere(np.triu(apart)).tolist():
        both = (1 << i) | (1 << j)
        remaining = [one for one in sets if one & both != both]
        split = [one & ~bit for one in sets if one & both == both for bit in (1 << i, 1 << j)]
        for one in split:
            if not any(one & other == one for other in remaining):
                remaining.append(one)
        sets = remaining
        if len(sets) > MOST_LETTERED_GROUPS:
            raise DataError(
                f"these differences need more than {MOST_LETTERED_GROUPS} letters: no display of them is readable"
            )
    return sets


def _needed(sets: list[list[int]], groups: int) -> list[list[int]]:
    """The sets without redundant ones, whose pairs all occur in other sets; the smallest are tried first."""
    times = np.zeros((groups, groups), np.int64)
    for members in sets:
        times[np.ix_(members, members)] += 1
    needed = []
    for members in sorted(sets, key=lambda one: (len(one), one)):
        pairs = np.ix_(members, members)
        if (times[pairs] > 1).all():
            times[pairs] -= 1
        else:
            needed.append(members)
    return needed


def _members(bits: int) -> list[int]:
    return [i for i in range(bits.bit_length()) if bits >> i & 1]


QUADRATURE_CELLS = 1 << 20  # cells of the quadrature in memory at once


def range_survival(q: Any, groups: int, df: float) -> Floats:
    """P(Q ≥ q) of the studentised range of k groups; `df` may be infinite.

    >>> range_survival([3.314493], 3, np.inf).round(6).tolist()  # the tables' 5 % point
    [0.05]
    """
    sizes = np.abs(np.asarray(q, np.float64))
    if groups == 2:
        from scipy.special import ndtr, stdtr  # type: ignore[import-untyped, unused-ignore]

        tail = ndtr(-sizes / np.sqrt(2)) if np.isinf(df) else stdtr(df, -sizes / np.sqrt(2))
        return np.asarray(2 * tail, np.float64)
    values, back = np.unique(sizes, return_inverse=True)
    s, share = _spread(float(df))
    step = max(1, QUADRATURE_CELLS // (len(s) * len(legendre_nodes(96)[0])))
    parts = [_survival(values[i : i + step, None] * s, groups) @ share for i in range(0, len(values), step)]
    survival = np.concatenate(parts) if parts else values
    return np.asarray(np.clip(survival, 0.0, 1.0)[back].reshape(sizes.shape), np.float64)


@lru_cache(maxsize=256)
def critical_range(alpha: float, groups: int, df: float) -> float:
    """The value that Q exceeds with probability `alpha`.

    >>> round(critical_range(0.05, 3, 10), 2)
    3.88
    """
    from scipy.optimize import brentq  # type: ignore[import-untyped, unused-ignore]

    high = 8.0
    while range_survival(high, groups, df) > alpha:
        high *= 2
    return float(brentq(lambda q: float(range_survival(q, groups, df)) - alpha, 0.0, high, xtol=1e-12))


def _survival(r: Floats, groups: int) -> Floats:
    """P(range > r) of k standard normal values."""
    from scipy.special import ndtr, ndtri

    top = -ndtri(1e-20 ** (1 / groups))  # beyond it the smallest value never lies
    z, weight = legendre_nodes(96)
    half = (top + 14) / 2
    z = -14 + half * (z + 1)
    above = ndtr(-z)
    weight = weight * half * groups * np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * above ** (groups - 1)
    lost = np.log1p(-np.minimum(ndtr(-(z + r[..., None])) / above, 1 - 1e-16))
    return np.asarray(-(np.expm1((groups - 1) * lost) @ weight), np.float64)


@lru_cache(maxsize=64)
def _spread(df: float) -> tuple[Floats, Floats]:
    """The quadrature nodes and weights of s = chi / sqrt(df)."""
    if np.isinf(df):
        return np.ones(1), np.ones(1)
    from scipy.special import gammainccinv, gammaincinv, gammaln

    low = max(0.5 * float(np.log(2 * gammaincinv(df / 2, 1e-18) / df)), -40.0)
    high = 0.5 * float(np.log(2 * float(gammainccinv(df / 2, 1e-18)) / df))
    nodes, weight = legendre_nodes(400 if df < 10 else 160 if df < 30 else 48)
    half = (high - low) / 2
    u = low + half * (nodes + 1)
    log_density = df / 2 * np.log(df) - gammaln(df / 2) - (df / 2 - 1) * np.log(2) + df * u - df * np.exp(2 * u) / 2
    share = weight * half * np.exp(log_density)
    return np.exp(u), share / share.sum()


CELLS = 1 << 21  # cells of permuted tables in memory at once: 16 MB
DRAWN_AT_ONCE = 256  # draws
SAME = 1e-10  # statistics that differ by less, relative to the larger, are equal


@dataclass(frozen=True)
class Anova:
    """A two-way analysis of variance without interaction: the effects of groups and blocks."""

    blocks: int
    groups: int
    ss_groups: float
    ss_blocks: float
    ss_error: float
    f_groups: float  # NaN if undefined; then `reason` says why
    p_groups: float
    f_blocks: float
    p_blocks: float
    reason: str = ""

    @property
    def overall(self) -> tuple[str, float]:
        """The statistic in words, and the p-value of "all groups are equal"."""
        return f"F({self.df_groups}, {self.df_error}) = {self.f_groups:.4g}", self.p_groups

    @property
    def df_groups(self) -> int:
        """Degrees of freedom of the groups."""
        return self.groups - 1

    @property
    def df_blocks(self) -> int:
        """Degrees of freedom of the blocks."""
        return self.blocks - 1

    @property
    def df_error(self) -> int:
        """Degrees of freedom of the residuals."""
        return self.df_groups * self.df_blocks

    @property
    def ss_total(self) -> float:
        """The sum of squares around the grand mean."""
        return self.ss_groups + self.ss_blocks + self.ss_error

    @property
    def ms_groups(self) -> float:
        """The groups' mean square."""
        return self.ss_groups / self.df_groups

    @property
    def ms_blocks(self) -> float:
        """The blocks' mean square."""
        return self.ss_blocks / self.df_blocks

    @property
    def mse(self) -> float:
        """The residuals' mean square."""
        return self.ss_error / self.df_error

    @property
    def eta2(self) -> float:
        """η²: the groups' share of the total sum of squares."""
        return _share(self.ss_groups, self.ss_total)

    @property
    def partial_eta2(self) -> float:
        """Partial η²: the groups' share of the sum of squares without the blocks."""
        return _share(self.ss_groups, self.ss_groups + self.ss_error)

    @property
    def omega2(self) -> float:
        """ω²: the groups' share of the variance, minus the share expected by chance; may be below 0."""
        return _share(self.ss_groups - self.df_groups * self.mse, self.ss_total + self.mse)

    @property
    def partial_omega2(self) -> float:
        """Partial ω²: the same share without the variance of the blocks."""
        beyond_chance = self.ss_groups - self.df_groups * self.mse
        return _share(beyond_chance, beyond_chance + self.blocks * self.groups * self.mse)


@dataclass(frozen=True)
class Pairwise:
    """Every pair of groups under one test that covers them all; matrices are groups × groups.

    `differences[i, j]` is the mean of j minus that of i; `low` and `high` are simultaneous limits for all pairs.
    Nemenyi's means are mean ranks, 1 being the largest value.
    """

    test: str
    means: Floats
    differences: Floats
    statistic: Floats  # q: the difference in standard errors of a mean; for the randomised test the difference itself
    p: Floats  # 1 on the diagonal; NaN if it cannot be computed, then `reason` says why
    low: Floats
    high: Floats
    critical: float  # larger differences are significant at `level`; for max-t, a t value
    level: float
    exact: bool = True  # False: sampled
    resamples: int = 0
    reason: str = ""
    critical_of: str = "difference"

    @property
    def overall(self) -> tuple[str, float]:
        """The critical value in words, and the p-value of "all groups are equal"."""
        return f"critical {self.critical_of} {self.critical:.4g}", self.smallest_p

    @property
    def smallest_p(self) -> float:
        """The p-value of the pair that is furthest apart, which is also that of "all groups are equal"."""
        return float(self.p.min())

    def direction(self, one: int, other: int) -> int:
        """1 if `other` is ahead of `one` by the compared statistic, -1 if it is behind; a low mean rank is ahead."""
        turn = -1 if TestOfMany.registry[self.test].compares == "ranks" else 1
        return turn * int(np.sign(self.differences[one, other]))

    def differ(self, alpha: float | None = None) -> Bools:
        """Whether each pair differs: p at most alpha, by default 1 − level."""
        return np.asarray(self.p <= (1 - self.level if alpha is None else alpha) * (1 + SAME))


@dataclass(frozen=True)
class Friedman:
    """Friedman's test of ranks, its sharper form by Iman and Davenport, and Kendall's W as the size of the effect."""

    blocks: int
    groups: int
    mean_ranks: Floats  # 1 is the largest value; tied values share
    chi2: float  # corrected for ties; NaN if it cannot be computed, then `reason` says why
    p: float  # of chi2
    f: float  # Iman and Davenport (1980)
    p_f: float
    w: float  # Kendall's W: 0 when the blocks rank at random, 1 when all rank alike
    reason: str = ""

    @property
    def overall(self) -> tuple[str, float]:
        """The statistic in words, and the p-value of "all groups are equal"."""
        return f"chi2({self.groups - 1}) = {self.chi2:.4g}, W = {self.w:.3g}", self.p


def two_way_anova(table: Any) -> Anova:
    """Blocks × groups, one value per cell: F and p for the groups, and for the blocks.

    >>> found = two_way_anova([[1, 2, 3], [2, 4, 3], [1, 3, 5]])
    >>> [round(one, 3) for one in (found.ss_groups, found.ss_blocks, found.ss_error, found.f_groups)]
    [8.667, 2.0, 3.333, 5.2]
    """
    values = block_table(table)
    blocks, groups = values.shape
    grand, by_group, by_block = values.mean(), values.mean(axis=0), values.mean(axis=1)
    residual = values - by_group - by_block[:, None] + grand
    sums = (
        float(blocks * np.square(by_group - grand).sum()),
        float(groups * np.square(by_block - grand).sum()),
        float(np.square(residual).sum()),
    )
    if no_error(values, sums[2]):
        return Anova(blocks, groups, *sums, nan, nan, nan, nan, _no_residual(values))
    from scipy.special import fdtrc  # type: ignore[import-untyped, unused-ignore]

    df = (groups - 1) * (blocks - 1)
    f_groups, f_blocks = (ss / d / (sums[2] / df) for ss, d in ((sums[0], groups - 1), (sums[1], blocks - 1)))
    p_groups, p_blocks = float(fdtrc(groups - 1, df, f_groups)), float(fdtrc(blocks - 1, df, f_blocks))
    return Anova(blocks, groups, *sums, f_groups, p_groups, f_blocks, p_blocks)


def tukey_hsd(table: Any, level: float = 0.95) -> Pairwise:
    """Tukey's honestly significant difference without the variance between blocks: residuals of the two-way ANOVA.

    For two groups it is the paired t-test.

    >>> found = tukey_hsd([[1, 2, 3], [2, 4, 3], [1, 3, 5]])
    >>> round(float(found.p[0, 2]), 4), round(found.critical, 3)
    (0.0738, 2.656)
    """
    probability("level", level)
    values = block_table(table)
    anova = two_way_anova(values)
    differences = _differences(values.mean(axis=0))
    if anova.reason:
        return _untested("tukey", values.mean(axis=0), level, anova.reason)
    error = (anova.mse / anova.blocks) ** 0.5
    q = np.abs(differences) / error
    p = range_survival(q, anova.groups, anova.df_error)
    np.fill_diagonal(p, 1.0)
    margin = critical_range(1 - level, anova.groups, anova.df_error) * error
    return _pairwise("tukey", values.mean(axis=0), q, p, margin, level)


def randomised_tukey_hsd(
    table: Any,
    resamples: int = 10_000,
    rng: Generator | None = None,
    level: float = 0.95,
    progress: Callable[[int, int | None], None] | None = None,
) -> Pairwise:
    """Tukey's HSD without its normal distribution (Carterette, 2012): values change groups at random within each block.

    A pair's p is the share of shuffled tables whose largest and smallest mean lie at least as far apart as the pair.
    The p-value is exact if there are at most `resamples` shuffles; else it is sampled, and never 0. Memory stays
    bounded.

    >>> found = randomised_tukey_hsd([[1, 2], [1, 3], [2, 5], [0, 1]])
    >>> float(found.p[0, 1]), found.exact  # 2 of the 16 ways to swap reach a difference of 7 / 4
    (0.125, True)
    """
    probability("level", level)
    values = block_table(table)
    refuse_no_resamples(resamples)
    refuse_below(1, resamples=resamples)
    means = values.mean(axis=0)
    if no_error(values, float(np.square(values - values.mean(axis=1, keepdims=True)).sum())):
        return _untested("randomised-tukey", means, level, "all values of each block are the same")
    differences = np.abs(_differences(means))
    ways = factorial(values.shape[1]) ** (len(values) - 1)  # the first block may stay: only the grouping matters
    exact = ways <= resamples
    parts = _all_ranges(values) if exact else _drawn_ranges(values, resamples, rng, progress)
    ranges = np.sort(np.concatenate(list(parts)))
    reached = len(ranges) - np.searchsorted(ranges, differences * (1 - SAME))
    extra = 0 if exact else 1  # a sampled p-value is never 0: Phipson & Smyth (2010)
    p = (reached + extra) / (len(ranges) + extra)
    np.fill_diagonal(p, 1.0)
    margin = float(np.quantile(ranges, level, method="higher"))
    pairwise = _pairwise("randomised-tukey", means, differences, p, margin, level)
    return pairwise if exact else replace(pairwise, exact=False, resamples=resamples)


def max_t(
    table: Any,
    resamples: int = 10_000,
    rng: Generator | None = None,
    level: float = 0.95,
    progress: Callable[[int, int | None], None] | None = None,
) -> Pairwise:
    """Each pair's own t, against the largest of all pairs in tables whose blocks were drawn again (Romano and Wolf, 2005).

    Each pair has its own variance, so two similar groups are separated sooner than by Tukey's test. The variance of a
    draw counts as at least a quarter of that of the data (less for few blocks); otherwise a pair that differs on few
    blocks would make the largest t infinite. For very many pairs there are fewer draws; the result says how many.

    >>> rng = np.random.default_rng(1)
    >>> found = max_t(rng.normal(0, 1, (40, 3)) + [0, 0, 1], rng=rng)
    >>> found.differ().tolist()
    [[False, False, True], [False, False, True], [True, True, False]]
    """
    probability("level", level)
    values = block_table(table)
    refuse_below(1, resamples=resamples)
    blocks, groups = values.shape
    means = values.mean(axis=0)
    if no_error(values, float(np.square(values - values.mean(axis=1, keepdims=True)).sum())):
        return _untested("max-t", means, level, "all values of each block are the same")
    pairs = np.triu_indices(groups, 1)
    gaps = values[:, pairs[1]] - values[:, pairs[0]]
    error = gaps.std(axis=0, ddof=1) / blocks**0.5
    near = SAME * np.abs(values).max() / blocks**0.5
    error[error < near] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.nan_to_num(np.abs(gaps.mean(axis=0)) / error, nan=0.0, posinf=inf)
    draws = min(resamples, max(FEWEST, MOST // len(t)))
    largest = np.sort(np.concatenate(list(_largest_t(gaps, error > 0, draws, rng, progress))))
    floor = 2.0 ** (1 - blocks)  # the chance that all signs fall alike
    reached = len(largest) - np.searchsorted(largest, t * (1 - SAME))
    p = np.maximum((reached + 1) / (draws + 1), floor)  # never 0: Phipson & Smyth (2010)
    rejected = int((1 - level) * (draws + 1) * (1 + SAME))
    critical = float(largest[draws - rejected]) if rejected and floor <= 1 - level else inf
    margin = np.where(error > 0, error, 1.0) * np.where(error > 0, critical, inf if critical == inf else 0.0)
    square = _pairwise(
        "max-t", means, _square(t, pairs, 0.0), _square(p, pairs, 1.0), _square(margin, pairs, 0.0), level
    )
    return replace(square, critical=critical, exact=False, resamples=draws, critical_of="t")


def _square(values: Floats, pairs: tuple[Any, Any], diagonal: float) -> Floats:
    """Values of pairs as a symmetric matrix."""
    size = int(pairs[1].max()) + 1
    square = np.full((size, size), diagonal)
    square[pairs] = square[pairs[::-1]] = values
    return square


def _largest_t(
    gaps: Floats, varied: Bools, draws: int, rng: Generator | None, progress: Callable[[int, int | None], None] | None
) -> Iterator[Floats]:
    """The largest absolute t among pairs with varying differences, for each draw of blocks."""
    blocks = len(gaps)
    scale = gaps.std(axis=0)
    centred = ((gaps - gaps.mean(axis=0))[:, varied] / scale[varied]).T
    squares = np.square(centred)
    least = least_variance(blocks)
    done = 0
    for times in resample_counts(blocks, draws, np.random.default_rng(0) if rng is None else rng, DRAWN_AT_ONCE):
        shares = times.T / blocks
        mean = centred @ shares
        variance = squares @ shares
        variance -= np.square(mean)
        np.maximum(variance, least, out=variance)
        largest = np.square(mean) / variance
        yield np.sqrt(largest.max(axis=0, initial=0.0) * (blocks - 1))
        done += len(times)
        if progress:
            progress(done, draws)


def friedman(table: Any) -> Friedman:
    """Friedman's test: do the groups rank alike within blocks? Ties share ranks, with a corrected statistic.

    >>> found = friedman([[3, 2, 1], [3, 2, 1], [3, 1, 2], [2, 3, 1]])
    >>> found.mean_ranks.tolist(), found.chi2, found.f
    ([1.25, 2.0, 2.75], 4.5, 3.857142857142857)
    """
    values = block_table(table)
    blocks, groups = values.shape
    ranks = mid_ranks(-values)  # 1 is the largest
    between = float(np.square(ranks.sum(axis=0) - blocks * (groups + 1) / 2).sum())
    spread = float(np.square(ranks - (groups + 1) / 2).sum())
    if spread == 0:
        reason = "all values of each block are the same"
        return Friedman(blocks, groups, ranks.mean(axis=0), nan, nan, nan, nan, nan, reason)
    from scipy.special import chdtrc, fdtrc

    chi2 = (groups - 1) * between / spread
    most = blocks * (groups - 1)
    w = chi2 / most
    if w > 1 - SAME:  # all blocks rank alike: the chance of that is the exact p
        p_f = float(np.exp((1 - blocks) * _log_orders(ranks[0])))
        return Friedman(blocks, groups, ranks.mean(axis=0), chi2, float(chdtrc(groups - 1, chi2)), inf, p_f, 1.0)
    f = (blocks - 1) * chi2 / (most - chi2)
    p_f = float(fdtrc(groups - 1, (groups - 1) * (blocks - 1), f))
    return Friedman(blocks, groups, ranks.mean(axis=0), chi2, float(chdtrc(groups - 1, chi2)), f, p_f, w)


def nemenyi(table: Any, level: float = 0.95) -> Pairwise:
    """Nemenyi's test after Friedman's: two groups differ when their mean ranks lie further apart than the critical difference.

    The mean ranks are treated as normal (Demšar, 2006), which needs ten blocks or more.

    >>> found = nemenyi([[3, 2, 1], [3, 2, 1], [3, 1, 2], [2, 3, 1]])
    >>> found.means.tolist(), round(found.critical, 3)
    ([1.25, 2.0, 2.75], 1.657)
    """
    probability("level", level)
    values = block_table(table)
    blocks, groups = values.shape
    ranks = mid_ranks(-values)  # 1 is the largest
    means = ranks.mean(axis=0)
    if (ranks == ranks[0, 0]).all():
        return _untested("nemenyi", means, level, "all values of each block are the same")
    error = (groups * (groups + 1) / 12 / blocks) ** 0.5
    q = np.abs(_differences(means)) / error
    p = range_survival(q, groups, inf)
    np.fill_diagonal(p, 1.0)
    return _pairwise("nemenyi", means, q, p, critical_range(1 - level, groups, inf) * error, level)


class TestOfMany(SignificanceTest):
    """A test of many groups at once: whether it tests their pairs, and which tests run together with it."""

    __test__: ClassVar[bool] = False  # pytest: this is not one of yours

    registry: ClassVar[Registry[TestOfMany]] = Registry("test of many", "tests", refusal=DataError)

    samples: ClassVar[str] = "all groups at once"
    p_from: ClassVar[Source] = "formula"
    pairs: ClassVar[bool] = True
    with_it: ClassVar[tuple[str, ...]] = ()  # tests that are run together; by default only itself
    facts = (*SignificanceTest.facts, "pairs", "with_it")

    compute: ClassVar[Callable[..., Any]]  # the function: a table, and the options that it names

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.with_it = vars(cls).get("with_it", (cls.name,))

    @property
    def of_pairs(self) -> TestOfMany:
        """This test, or the test of pairs that is run with it."""
        return next(self.registry[name] for name in self.with_it if self.registry[name].pairs)

    def __call__(
        self,
        table: Any,
        *,
        level: float = 0.95,
        resamples: int = 10_000,
        rng: Generator | None = None,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> Any:
        """Test a table of blocks × groups, with the options that the test accepts."""
        options = {"level": level, "resamples": resamples, "rng": rng, "progress": progress}
        accepted = signature(self.compute).parameters
        return self.compute(table, **{name: value for name, value in options.items() if name in accepted})

    def all_pairs(self, table: Floats, resamples: int, rng: Generator) -> tuple[Floats, str]:
        """The p-values of all pairs of columns, as a square, and the reason why there are none."""
        pairwise = self(table, resamples=resamples, rng=rng)
        return pairwise.p, pairwise.reason


class TukeyHSD(TestOfMany):
    """Compares every pair of groups after a two-way analysis of variance."""

    name = "tukey"
    title = "Tukey HSD"
    reference = "Tukey (1949)"
    compute = staticmethod(tukey_hsd)


class RandomisedTukeyHSD(TestOfMany):
    """Compares every pair of groups by permuting the values within blocks."""

    name = "randomised-tukey"
    title = "randomised Tukey HSD"
    reference = "Carterette (2012)"
    p_from = "exact or drawn"
    compute = staticmethod(randomised_tukey_hsd)


class MaxT(TestOfMany):
    """Compares every pair of groups by its own t, against the largest t of all pairs in resampled blocks."""

    name = "max-t"
    title = "max-t test"
    short = "max-t"
    reference = "Romano and Wolf (2005)"
    aliases = ("maxt", "romano-wolf")
    p_from = "drawn"
    compute = staticmethod(max_t)


class TwoWayAnova(TestOfMany):
    """Tests whether any group differs; Tukey HSD then compares the pairs."""

    name = "anova"
    title = "two-way ANOVA"
    reference = "Fisher (1925)"
    pairs = False
    with_it = ("anova", "tukey")
    compute = staticmethod(two_way_anova)


class FriedmanTest(TestOfMany):
    """Tests by ranks whether any group differs; Nemenyi's test then compares the pairs."""

    name = "friedman"
    title = "Friedman"
    reference = "Friedman (1937)"
    compares = "ranks"
    pairs = False
    with_it = ("friedman", "nemenyi")
    compute = staticmethod(friedman)


class Nemenyi(TestOfMany):
    """Compares every pair of groups by their mean ranks."""

    name = "nemenyi"
    title = "Nemenyi"
    reference = "Nemenyi (1963); Demšar (2006)"
    compares = "ranks"
    with_it = ("friedman", "nemenyi")
    compute = staticmethod(nemenyi)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else nan


def _no_residual(values: Floats) -> str:
    if (values == values[0, 0]).all():
        return "all values are the same"
    if no_error(values, float(np.square(values - values.mean(axis=1, keepdims=True)).sum())):
        return "all values of each block are the same"
    return "the groups differ by the same amounts in every block, which leaves no variance to test against"


def _differences(means: Floats) -> Floats:
    return np.asarray(means[None, :] - means[:, None], np.float64)


def _pairwise(test: str, means: Floats, statistic: Floats, p: Floats, margin: float | Floats, level: float) -> Pairwise:
    differences = _differences(means)
    low, high = differences - margin, differences + margin
    np.fill_diagonal(low, 0.0)
    np.fill_diagonal(high, 0.0)
    critical = float(np.max(margin))
    return Pairwise(test, means, differences, statistic, np.asarray(p, np.float64), low, high, critical, level)


def _untested(test: str, means: Floats, level: float, reason: str) -> Pairwise:
    holes = np.full((len(means), len(means)), nan)
    return Pairwise(test, means, _differences(means), holes, holes, holes, holes, nan, level, reason=reason)


def _log_orders(ranks: Floats) -> float:
    """The logarithm of the number of possible orders of one block's ranks."""
    _, tied = np.unique(ranks, return_counts=True)
    return lgamma(len(ranks) + 1) - sum(lgamma(size + 1) for size in tied.tolist())


def _range_of_means(values: Floats) -> Floats:
    """The range of the group means of each table; the array is tables × blocks × groups."""
    return np.asarray(np.ptp(values.mean(axis=1), axis=1), np.float64)


def _all_ranges(values: Floats) -> Iterator[Floats]:
    """Every way to deal each block's values to the groups; the first block stays as it is."""
    orders = np.array(list(permutations(range(values.shape[1]))))
    for way in product(range(len(orders)), repeat=len(values) - 1):
        dealt = np.vstack([values[:1], np.take_along_axis(values[1:], orders[list(way)], axis=1)])
        yield _range_of_means(dealt[None])


def _drawn_ranges(
    values: Floats, resamples: int, rng: Generator | None, progress: Callable[[int, int | None], None] | None
) -> Iterator[Floats]:
    rng = np.random.default_rng(0) if rng is None else rng
    step = max(1, CELLS // values.size)
    tables = np.repeat(values[None], min(step, resamples), axis=0)
    for start in range(0, resamples, step):
        some = tables[: min(step, resamples - start)]
        rng.permuted(some, axis=2, out=some)  # a shuffle of a shuffle is as random as one of the original
        yield _range_of_means(some)
        if progress:
            progress(start + len(some), resamples)
