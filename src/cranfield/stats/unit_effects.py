"""Effects that need the units themselves, or how many units have each value: quantiles, the bootstrap, rank sums.

A sample is `DistinctRows`: distinct rows and how many units hold each, so that a database can count repeated values.
The bootstrap draws units. The quantiles of resamples are drawn from the distribution of their order statistics, which
is exact and takes no resampling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import refuse_below
from cranfield.stats.arms import ArmEffect, EffectEstimate
from cranfield.stats.block_tables import probability
from cranfield.stats.bootstrap import resample_counts, tail_shares
from cranfield.stats.sequential import FIXED, Fixed, LookRule
from cranfield.stats.tests_by_name import TESTS
from cranfield.stats.two_sample_test import normal_tails, p_from_tails
from cranfield.stats.unpaired import EXACT_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from cranfield.stats.ties import Floats

FEW = 50  # units to a distinct row, from which on drawing counts is quicker than drawing units
CELLS = 2**22  # of a table of counts kept at once


@dataclass(frozen=True)
class DistinctRows:
    """Distinct rows of numbers, and how many units hold each.

    >>> sample = DistinctRows.of([3.0, 1.0, 3.0])
    >>> sample.rows.tolist(), sample.counts.tolist()
    ([[1.0], [3.0]], [1.0, 2.0])
    """

    rows: Floats  # distinct rows × columns, in ascending order of the first column
    counts: Floats

    @classmethod
    def of(cls, values: npt.ArrayLike, counts: npt.ArrayLike | None = None) -> DistinctRows:
        """Distinct rows from one value or row per unit, or per group of counted units."""
        rows = np.asarray(values, np.float64)
        rows = rows[:, None] if rows.ndim == 1 else rows
        number = np.ones(len(rows)) if counts is None else np.asarray(counts, np.float64)
        if rows.ndim != 2 or number.shape != rows.shape[:1]:
            raise DataError(f"expected a row and a count for each, found {rows.shape} and {number.shape}")
        if not np.isfinite(rows).all() or not ((number >= 0) & (number == np.rint(number))).all():
            raise DataError("expected finite values and whole counts of 0 or more; leave other units out")
        if number.sum() < 2:
            raise DataError(f"expected two units or more in each arm, found {number.sum():.0f}")
        single = rows.shape[1] == 1  # sorting numbers is many times quicker than sorting rows
        distinct, place = np.unique(rows, axis=None if single else 0, return_inverse=True)
        return cls(distinct.reshape(-1, rows.shape[1]), _tallied(place.ravel(), number, len(distinct)))

    @property
    def n(self) -> int:
        """The number of units."""
        return round(float(self.counts.sum()))

    @property
    def values(self) -> Floats:
        """The only column."""
        if self.rows.shape[1] != 1:
            raise DataError(f"expected one value a unit, found {self.rows.shape[1]}")
        return self.rows[:, 0]


@dataclass(frozen=True)
class Resampled(ArmEffect):
    """An effect and its resamples: the interval for one look is the middle part of them.

    Tails with too few resamples are computed from their standard deviation: under rules other than `Fixed`, and if
    fewer than ten resamples lie beyond.
    """

    centre: float
    resampled: Floats

    @property
    def value(self) -> Floats:  # type: ignore[override]
        """The effect itself."""
        return np.asarray(self.centre)

    @property
    def normal(self) -> EffectEstimate:
        """The effect with the standard deviation of the resamples as its error."""
        return EffectEstimate(np.asarray(self.centre), np.asarray(self.resampled.std(ddof=1)), np.asarray(np.inf))

    def limits(self, tails: tuple[float, float], rule: LookRule = FIXED) -> tuple[Floats, Floats]:
        if not isinstance(rule, Fixed) or min(tail for tail in (*tails, 0.5) if tail) * len(self.resampled) < 10:
            return self.normal.limits(tails, rule)
        low, high = np.quantile(self.resampled, [tails[0], 1 - tails[1]])
        return np.asarray(low if tails[0] else -np.inf), np.asarray(high if tails[1] else np.inf)

    def tails(self, null: float = 0.0, rule: LookRule = FIXED) -> tuple[Floats, Floats]:
        less, greater = (float(each[0]) for each in tail_shares(self.resampled[None], np.array([null])))
        if not isinstance(rule, Fixed) or min(less, greater) * len(self.resampled) < 10:
            return self.normal.tails(null, rule)
        return np.asarray(greater), np.asarray(less)


def bootstrap(
    a: DistinctRows,
    b: DistinctRows,
    statistic: Callable[[Floats], Floats],
    rng: np.random.Generator,
    resamples: int = 2_000,
    *,
    relative: bool = False,
) -> Resampled:
    """The difference of a statistic of column means between two arms, units redrawn within each (Efron, 1979).

    `statistic` takes rows of means, one for each resample: `lambda mean: mean[:, 0] / mean[:, 1]` is a ratio of sums.

    >>> a, b = DistinctRows.of([1.0, 2.0, 3.0, 4.0]), DistinctRows.of([3.0, 4.0, 5.0, 6.0])
    >>> float(bootstrap(a, b, lambda mean: mean[:, 0], np.random.default_rng(1)).value)
    2.0
    """
    refuse_below(1, resamples=resamples)
    one, other = (np.r_[_means(each), _redrawn_means(each, rng, resamples)] for each in (a, b))
    return _resampled(statistic(one), statistic(other), relative)


def quantile(
    a: DistinctRows,
    b: DistinctRows,
    q: float,
    rng: np.random.Generator,
    resamples: int = 2_000,
    *,
    relative: bool = False,
) -> Resampled:
    """The difference of a quantile of the units' values between two arms, by the bootstrap of units.

    >>> a, b = DistinctRows.of([1.0, 2.0, 3.0]), DistinctRows.of([2.0, 5.0, 9.0])
    >>> float(quantile(a, b, 0.5, np.random.default_rng(1)).value)
    3.0
    """
    probability("q", q)
    refuse_below(1, resamples=resamples)
    one, other = (np.r_[_quantile_of(each, q), _redrawn_quantiles(each, q, rng, resamples)] for each in (a, b))
    return _resampled(one, other, relative)


def mann_whitney(a: DistinctRows, b: DistinctRows) -> float:
    """The p-value of Mann and Whitney's test; the same as from the units one by one.

    >>> round(mann_whitney(DistinctRows.of([1.0, 2.0]), DistinctRows.of([3.0, 4.0])), 4)
    0.3333
    """
    if a.n + b.n <= EXACT_VALUES:
        test, one, other = TESTS["mann-whitney"], *(np.repeat(each.values, each.counts.astype(int)) for each in (a, b))
        return test(one, other, rng=np.random.default_rng(0)).p
    in_a, in_b, ranks = _ranked(a, b)
    total = a.n + b.n
    spread = float((in_a + in_b) @ (ranks - (total + 1) / 2) ** 2) / (total - 1)
    deviation = math.sqrt(a.n * b.n / total * spread)
    tails = normal_tails(np.array(in_b @ ranks), b.n * (total + 1) / 2, np.array(deviation))
    return float(p_from_tails(*tails, "two-sided"))


def superiority(a: DistinctRows, b: DistinctRows) -> EffectEstimate:
    """The probability that a unit of b is above one of a, ties counting half, minus ½ (Brunner and Munzel, 2000).

    >>> found = superiority(DistinctRows.of([1.0, 2.0, 3.0]), DistinctRows.of([2.0, 3.0, 4.0]))
    >>> round(float(found.value), 4)
    0.2778
    """
    in_a, in_b, ranks = _ranked(a, b)
    levels = []
    for own, n, other in ((in_a, a.n, b.n), (in_b, b.n, a.n)):
        within = np.cumsum(own) - (own - 1) / 2
        placed = (ranks - within) / other  # the share of the other arm below, ties by half
        mean = own @ placed / n
        levels.append((mean, math.sqrt(float(own @ (placed - mean) ** 2) / (n - 1) / n)))
    (_, one), (share, other_error) = levels
    error = math.hypot(one, other_error)
    df = error**4 / (one**4 / (a.n - 1) + other_error**4 / (b.n - 1)) if error else math.nan
    return EffectEstimate(np.asarray(share - 0.5), np.asarray(error), np.asarray(df))


def _resampled(one: Floats, other: Floats, relative: bool) -> Resampled:
    with np.errstate(divide="ignore", invalid="ignore"):
        effects = other / one - 1 if relative else other - one
    if not np.isfinite(effects).all():
        raise DataError(
            "bootstrap: the statistic does not exist in the sample or in some resamples; a denominator is 0"
        )
    return Resampled(float(effects[0]), effects[1:])


def _means(sample: DistinctRows) -> Floats:
    return np.asarray(sample.counts @ sample.rows / sample.n, np.float64)[None]


def _redrawn_means(sample: DistinctRows, rng: np.random.Generator, resamples: int) -> Floats:
    """Column means of each resample; by counts of distinct rows where those are few."""
    distinct, n = len(sample.rows), sample.n
    if FEW * distinct <= n:
        return np.asarray(rng.multinomial(n, sample.counts / n, resamples) @ sample.rows / n, np.float64)
    rows = np.repeat(sample.rows, sample.counts.astype(int), axis=0)
    blocks = resample_counts(n, resamples, rng, max(1, CELLS // n))
    return np.concatenate([counts @ rows / n for counts in blocks])


def _quantile_of(sample: DistinctRows, q: float) -> float:
    """By linear interpolation, as NumPy's default."""
    place = q * (sample.n - 1)
    ends = _at(sample, np.array([math.floor(place), math.ceil(place)]))
    return float(ends[0] + (place - math.floor(place)) * (ends[1] - ends[0]))


def _redrawn_quantiles(sample: DistinctRows, q: float, rng: np.random.Generator, resamples: int) -> Floats:
    """The quantile of each resample, from two neighbouring order statistics of uniform numbers."""
    n = sample.n
    place = q * (n - 1)
    first = math.floor(place) + 1  # from 1
    low = rng.beta(first, n - first + 1, resamples)
    high = 1 - (1 - low) * rng.random(resamples) ** (1 / (n - first)) if first < n else low
    lower, upper = (_at(sample, np.minimum(np.floor(each * n), n - 1)) for each in (low, high))
    return np.asarray(lower + (place - math.floor(place)) * (upper - lower), np.float64)


def _at(sample: DistinctRows, places: Floats) -> Floats:
    """The values at these positions, from 0, of all units in ascending order."""
    order = np.argsort(sample.values)
    upto = np.cumsum(sample.counts[order])
    return np.asarray(sample.values[order][np.searchsorted(upto, places, side="right")], np.float64)


def _ranked(a: DistinctRows, b: DistinctRows) -> tuple[Floats, Floats, Floats]:
    """For each distinct value of both arms: the number of units of each arm that have it, and its mid-rank."""
    values, place = np.unique(np.r_[a.values, b.values], return_inverse=True)
    in_a = _tallied(place[: len(a.values)], a.counts, len(values))
    in_b = _tallied(place[len(a.values) :], b.counts, len(values))
    both = in_a + in_b
    return in_a, in_b, np.asarray(np.cumsum(both) - (both - 1) / 2, np.float64)


def _tallied(place: npt.NDArray[np.intp], number: Floats, length: int) -> Floats:
    return np.asarray(np.bincount(place, number, length), np.float64)
