"""Power of the t-test for a mean of items that were sampled in proportion to their size, at other sizes of the sample.

A sample tells what another one from the same population would: item i stands for 1 / π_i items, and a sample that is
larger by the factor k draws it with π'_i = min(1, k λ u_i), where λ u_i = π_i for the items drawn now. The expected size
is Σ π'_i / π_i, and the expected variance

    V' = Σ_h Σ_i c'_i (e'_i − ē'_h)² / (1 − Σ a'_i²),  c'_i = (π'_i / π_i) (1 − π'_i),  a'_i = c'_i / Σ c',
    e'_i = u_i (y_i − μ) / π'_i,  ē'_h = Σ a'_i e'_i

which at k = 1 is the variance of `sampled_means`. So a larger sample gains twice: more items are drawn, and more become
certain and add no error. Plans end where too few of the items at hand would still be drawn by chance (`largest`): nothing
is known of the spread of rarer ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import DataError
from cranfield.stats.paired import t_power
from cranfield.stats.sampled_means import sampled_mean

if TYPE_CHECKING:
    from cranfield.stats.sampled_means import ProbabilitySample
    from cranfield.stats.ties import Floats
    from cranfield.stats.two_sample_test import Alternative

STEPS = 60  # bisections
FEWEST, SHARE = 10, 0.8  # effective items that must remain of those drawn now, or this share of them if that is less
LARGEST = 1e12  # factor at which every item is certain


@dataclass(frozen=True, eq=False)
class SampledDifferences:
    """Differences of one or more pairs (rows) on a sample of items; the variance is the mean over the pairs.

    >>> import numpy as np
    >>> from cranfield.stats.sampled_means import ProbabilitySample
    >>> d = np.random.default_rng(1).normal(0.05, 0.2, (1, 100))
    >>> plan = SampledDifferences(d, ProbabilitySample.of(np.ones(100), np.full(100, 0.01)))
    >>> plan.population, round(plan.error(100), 4), round(plan.error(400), 4), plan.sample_size(0.05)
    (10000, 0.017, 0.0084, 94)
    """

    values: Floats
    sample: ProbabilitySample
    alpha: float = 0.05
    alternative: Alternative = "two-sided"

    def __post_init__(self) -> None:
        if self.sample.no_interval:
            raise DataError(self.sample.no_interval)

    @property
    def population(self) -> int:
        """The estimated number of items in the population."""
        return round(float((1 / self.sample.inclusion).sum()))

    def error(self, n: int) -> float:
        """The expected standard error of the mean difference with a sample of n items."""
        return self._outlook(n)[0]

    def power(self, n: int, difference: float) -> float:
        """The probability that a true difference is found with a sample of n items."""
        error, freedom = self._outlook(n)
        return self._power(error, freedom, difference)

    def sample_size(self, difference: float, power: float = 0.8) -> int:
        """The smallest sample that finds the difference with at least this power."""
        low, high = self._fewest, self.largest
        if self.power(high, difference) < power:
            raise DataError(f"{high:,} do not find it, and the sample does not support plans for more")
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.power(middle, difference) >= power else (middle + 1, high)
        return low

    @cached_property
    def largest(self) -> int:
        """The largest sample whose error can be planned."""
        low, high = len(self.sample.weights), self.population
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (low, middle - 1) if math.isnan(self.error(middle)) else (middle, high)
        return low

    def detectable(self, n: int, power: float = 0.8) -> float:
        """The smallest difference that n items find with this power."""
        error, freedom = self._outlook(n)
        if not error or math.isnan(error):
            return error
        low, high = 0.0, error
        while self._power(error, freedom, high) < power:
            high *= 2
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if self._power(error, freedom, middle) >= power else (middle, high)
        return high

    def _power(self, error: float, freedom: float, difference: float) -> float:
        if not error or math.isnan(error):
            return error or 1.0
        return t_power(freedom, difference / error, self.alpha, self.alternative)

    @property
    def _fewest(self) -> int:
        return 2 * len(self.sample.by_stratum)

    @cached_property
    def _uncapped(self) -> Floats:
        """λ u for each item: its inclusion probability if it could exceed 1; infinite in a stratum of certain items."""
        sizes = self.sample.weights * self.sample.inclusion
        answer = np.full(len(sizes), np.inf)
        for places in self.sample.by_stratum:
            same = self.sample.strata == self.sample.strata[places[0]]
            answer[same] = np.maximum(sizes[same] / self.sample.weights[places].mean(), self.sample.inclusion[same])
        return np.where(self.sample.drawn, self.sample.inclusion, answer)

    @cached_property
    def _residuals(self) -> Floats:
        """u (y − μ), one row per pair."""
        mean = sampled_mean(self.values, self.sample)
        return np.asarray(self.sample.weights * self.sample.inclusion * (self.values - mean[:, None]), np.float64)

    def _outlook(self, n: int) -> tuple[float, float]:
        """The expected standard error and degrees of freedom with a sample of n items; NaN if too little is known."""
        if n >= self.population:
            return 0.0, math.inf
        chances = np.minimum(1.0, self._factor(n) * self._uncapped)
        times, error, freedom = chances / self.sample.inclusion, 0.0, 0.0
        for places in self.sample.by_stratum:
            same = np.flatnonzero(self.sample.strata == self.sample.strata[places[0]])
            p, t = chances[same], times[same]
            c = t * (1 - p)
            if not c.any():
                continue
            a, e = c / c.sum(), self._residuals[:, same] / p
            now = 1 - self.sample.inclusion[places]
            if _effective(c) < min(FEWEST, SHARE * _effective(now)):
                return math.nan, math.nan
            centred = e - (e @ a)[:, None]
            error += float((np.square(centred) @ c).mean()) / float((a * (1 - a)).sum())
            freedom += float(t[p < 1].sum()) - 1
        return math.sqrt(error) / float(self.sample.weights.sum()), max(1.0, freedom)

    def _factor(self, n: int) -> float:
        """The factor of inclusion probabilities that gives a sample of n items."""
        low, high = 1 / LARGEST, LARGEST
        for _ in range(STEPS):
            middle = math.sqrt(low * high)
            size = float((np.minimum(1.0, middle * self._uncapped) / self.sample.inclusion).sum())
            low, high = (low, middle) if size >= n else (middle, high)
        return high


def _effective(parts: Floats) -> float:
    """The effective number of parts of a sum: (Σ c)² / Σ c²."""
    return float(parts.sum() ** 2 / np.square(parts).sum())
