"""Proportions of units: Wilson's interval of one, also over clusters, Newcombe's of the difference of two.

Newcombe's method 10 (1998) joins the Wilson intervals of both arms; it keeps its level with few units and near 0 and 1,
and stays within −1 … 1. The p-value inverts the interval: the smallest level at which it excludes the null. Intervals
of ratios of proportions use the logarithm (Katz et al., 1978), as for other levels: see `arms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import DataError
from cranfield.stats.arms import ArmEffect, ArmLevel
from cranfield.stats.sequential import FIXED, LookRule

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.stats.ties import Floats

STEPS = 60
FARTHEST = 38.0  # standard errors: a smaller chance than theirs is 0


def proportion(count: npt.ArrayLike, n: npt.ArrayLike) -> ArmLevel:
    """The level of an arm from the number of successes among n units, treated as normal.

    >>> found = proportion(30, 100)
    >>> float(found.value), round(float(found.error), 4)
    (0.3, 0.0458)
    """
    successes, units = _counts(count, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = successes / units
        return ArmLevel(share, np.sqrt(share * (1 - share) / units), np.where(units > 0, np.inf, -1.0))


def wilson(count: npt.ArrayLike, n: npt.ArrayLike, z: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Wilson's interval of a proportion, z standard errors wide on each side (1927).

    >>> [round(float(end), 4) for end in wilson(0, 10, 1.959964)]
    [0.0, 0.2775]
    """
    successes, units = _counts(count, n)
    squared = np.square(z)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (successes + squared / 2) / (units + squared)
        reach = np.asarray(z) * np.sqrt(successes * (units - successes) / units + squared / 4) / (units + squared)
        return np.maximum(centre - reach, 0.0), np.minimum(centre + reach, 1.0)


def wilson_over_clusters(count: Floats, n: Floats, level: float = 0.95) -> tuple[Floats, Floats, Floats]:
    """A proportion over all trials with Wilson's interval, for trials that depend on each other within a cluster.

    Rows are clusters; columns are proportions. Wilson's interval gets the effective number of trials: as many as would
    give the error over clusters if they were independent, and never more than there are (Korn and Graubard, 1998). The
    error has one degree of freedom less than there are clusters. If all trials agree, each cluster counts as one trial.

    >>> share, low, high = wilson_over_clusters(np.array([[1.0], [0.0], [1.0], [1.0]]), np.full((4, 1), 1.0))
    >>> share.tolist(), low.round(3).tolist(), high.round(3).tolist()
    ([0.75], [0.131], [0.984])
    """
    from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

    successes, trials = _counts(count, n)
    clusters, total = (trials > 0).sum(axis=0).astype(np.float64), trials.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = successes.sum(axis=0) / total
        variance = np.square((successes - share * trials) / total).sum(axis=0) * clusters / (clusters - 1)
        effective = np.where(variance > 0, np.minimum(share * (1 - share) / variance, total), clusters)
        t = stdtrit(np.maximum(clusters - 1, 1), (1 + level) / 2)
        low, high = wilson(share * effective, effective, t)
    known = clusters >= 2
    return share, np.where(known, low, np.nan), np.where(known, high, np.nan)


def mean_share(shares: Floats, level: float = 0.95, most: float = 1.0) -> tuple[float, float, float]:
    """The mean of shares with a score interval: the error of the mean is scaled as the mean of the interval's end would be.

    A share near 0 varies less than a larger one, so Student's interval is too short above and too long below (it covered
    the mean of rare clicks in 85 % of simulated logs). Here the variance of the mean is proportional to μ(1 − μ), as in
    Wilson's interval, or with `most` infinite to μ, as for counts. It has one degree of freedom less than there are shares.
    NaN limits for fewer than two shares, or if all are equal.

    >>> mean, low, high = mean_share(np.array([0.0, 0.1, 0.0, 0.3]))
    >>> round(mean, 3), round(low, 3), round(high, 3)
    (0.1, 0.013, 0.475)
    """
    from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

    number = len(shares)
    mean = float(shares.mean()) if number else np.nan
    if number < 2 or np.ptp(shares) == 0:
        return mean, np.nan, np.nan
    squared = float(np.square(stdtrit(number - 1, (1 + level) / 2)) * shares.var(ddof=1) / number)
    own = mean if np.isinf(most) else mean * (1 - mean / most)
    # (mean − μ)² = squared · v(μ) / v(mean), with v(μ) = μ (1 − μ / most): a quadratic equation
    k = squared / own
    a, b = 1 + (0.0 if np.isinf(most) else k / most), 2 * mean + k
    root = np.sqrt(b**2 - 4 * a * mean**2)
    return mean, float((b - root) / (2 * a)), float((b + root) / (2 * a))


def adjusted_wald(count: npt.ArrayLike, n: npt.ArrayLike, z: float) -> tuple[Floats, Floats]:
    """The adjusted Wald interval, for few trials: z²/2 successes and as many failures added (Agresti and Coull, 1998).

    >>> [round(float(end), 3) for end in adjusted_wald(9, 10, 1.959964)]
    [0.574, 1.0]
    """
    successes, units = _counts(count, n)
    total = units + z**2
    share = (successes + z**2 / 2) / total
    reach = z * np.sqrt(share * (1 - share) / total)
    return np.maximum(share - reach, 0.0), np.minimum(share + reach, 1.0)


@dataclass(frozen=True)
class ProportionDifference(ArmEffect):
    """The difference of two proportions, that of b minus that of a, from successes and numbers of units.

    >>> found = ProportionDifference(30, 100, 45, 100)
    >>> round(float(found.value), 3), [round(float(end), 4) for end in found.interval()], round(float(found.p()), 4)
    (0.15, [0.0159, 0.2768], 0.0283)
    """

    a: npt.ArrayLike
    n_a: npt.ArrayLike
    b: npt.ArrayLike
    n_b: npt.ArrayLike

    def __post_init__(self) -> None:
        for count, n in ((self.a, self.n_a), (self.b, self.n_b)):
            _counts(count, n)

    @property
    def value(self) -> Floats:  # type: ignore[override]
        """The share of b minus the share of a."""
        return np.asarray(proportion(self.b, self.n_b).value - proportion(self.a, self.n_a).value, np.float64)

    def limits(self, tails: tuple[float, float], rule: LookRule = FIXED) -> tuple[Floats, Floats]:
        below, above = (self._end(rule.critical(tail), side) if tail else None for side, tail in enumerate(tails))
        lower = np.full(self.value.shape, -1.0) if below is None else below
        return lower, np.full(self.value.shape, 1.0) if above is None else above

    def tails(self, null: float = 0.0, rule: LookRule = FIXED) -> tuple[Floats, Floats]:
        above = self.value > null
        low, high = np.zeros(self.value.shape), np.full(self.value.shape, FARTHEST)
        for _ in range(STEPS):
            z = (low + high) / 2
            ends = self._ends(z)
            outside = np.where(above, ends[0] > null, ends[1] < null)
            low, high = np.where(outside, z, low), np.where(outside, high, z)
        size = np.where(self.value == null, 0.0, low)
        far, near = rule.tail(size), rule.tail(-size)
        return np.where(above, near, far), np.where(above, far, near)

    def _end(self, z: float, side: int) -> Floats:
        """The lower end (side 0) or the upper end, at z standard errors; infinite if z is."""
        return np.full(self.value.shape, z if side else -z) if np.isinf(z) else self._ends(z)[side]

    def _ends(self, z: npt.ArrayLike) -> tuple[Floats, Floats]:
        p, q = proportion(self.a, self.n_a).value, proportion(self.b, self.n_b).value
        (p_low, p_high), (q_low, q_high) = wilson(self.a, self.n_a, z), wilson(self.b, self.n_b, z)
        down = np.sqrt((q - q_low) ** 2 + (p_high - p) ** 2)
        up = np.sqrt((q_high - q) ** 2 + (p - p_low) ** 2)
        return q - p - down, q - p + up


def _counts(count: npt.ArrayLike, n: npt.ArrayLike) -> tuple[Floats, Floats]:
    successes, units = np.asarray(count, np.float64), np.asarray(n, np.float64)
    if not ((successes >= 0) & (successes <= units)).all():
        raise DataError(f"a proportion: expected from 0 to n of n units, found {count!r} of {n!r}")
    return successes, units
