"""How large a difference is, in units that do not grow with the number of pairs.

`a` is the baseline, `b` the other, and a positive effect means that b is greater. NaN if there is no variance.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from cranfield.base.errors import DataError
from cranfield.stats.ties import Floats, differences, rounding, two_samples

STEPS = 30
FAR = 1000.0  # beyond this t value the noncentral t distribution is approximated


def d_z(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """The mean difference of pairs in standard deviations of the differences.

    >>> d_z([0, 0, 0], [1, 2, 3])
    2.0
    """
    one, other = _finite(a, b)
    return float(d_z_of_rows(one[None], other[None])[0])


def d_z_of_rows(a: Floats, b: Floats) -> Floats:
    """d_z of each row of two tables."""
    d = differences(a, b)
    if d.shape[1] < 2:
        return np.full(len(d), math.nan)
    varied = np.ptp(d, axis=1) > rounding(a, b)
    d_z: Floats = np.divide(d.mean(axis=1), d.std(axis=1, ddof=1), out=np.full(len(d), math.nan), where=varied)
    return d_z


def d_z_intervals(effect: Floats, n: int, tails: tuple[float, float] = (0.025, 0.025)) -> tuple[Floats, Floats]:
    """The interval of each d_z over n pairs with these tail probabilities; a tail of 0 leaves that side open.

    d_z √n is a t value. The ends are the noncentralities under which a t value as high, or as low, has the tail
    probability (Steiger and Fouladi, 1997). As a z value, this probability is nearly linear in the noncentrality, with
    the slope of the normal limit, so the root is found in a few steps.

    >>> low, high = d_z_intervals(np.array([0.5]), 30)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.1161], [0.8763])
    """
    below, above = tails
    low = _noncentrality(effect, n, 1 - below) if below else np.full(len(effect), -np.inf)
    high = _noncentrality(effect, n, above) if above else np.full(len(effect), np.inf)
    return np.where(np.isnan(effect), np.nan, low), np.where(np.isnan(effect), np.nan, high)


def _noncentrality(effect: Floats, n: int, chance: float) -> Floats:
    """The true d_z for which smaller effects than this have the given probability; by the normal limit for large t."""
    from scipy.special import nctdtr, ndtri  # type: ignore[import-untyped, unused-ignore]

    df, t, z = n - 1, effect * math.sqrt(n), float(ndtri(chance))
    near = np.abs(t) < FAR
    slope = np.sqrt(1 + t**2 / (2 * df))
    shift = t - z * slope
    for _ in range(STEPS):
        miss = ndtri(nctdtr(df, shift, t)) - z
        step = np.where(near & np.isfinite(miss), miss * slope, 0.0)
        shift = shift + step
        if not np.any(np.abs(step) > 1e-9 * (1 + np.abs(shift))):
            break
    for row in np.flatnonzero(near & ~(np.abs(nctdtr(df, shift, t) - chance) < 1e-8)):
        shift[row] = _root(float(t[row]), df, chance, float(slope[row]))
    return np.asarray(shift / math.sqrt(n), np.float64)


def _root(t: float, df: int, chance: float, width: float) -> float:
    """The noncentrality by bisection, for few pairs."""
    from scipy.optimize import brentq  # type: ignore[import-untyped, unused-ignore]
    from scipy.special import nctdtr

    def above(shift: float) -> float:
        below = float(nctdtr(df, shift, t))
        return (below if math.isfinite(below) else float(t > shift)) - chance  # the probability is 0 or 1 there

    low, high = t - width, t + width
    while above(low) < 0:
        low -= width
    while above(high) > 0:
        high += width
    return float(brentq(above, low, high, xtol=1e-10))


def g_z(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """d_z without its bias upwards in small samples (Hedges, 1981).

    >>> round(g_z([0, 0, 0], [1, 2, 3]), 4)
    1.1284
    """
    d = d_z(a, b)
    return d if math.isnan(d) else d * hedges_factor(np.size(a) - 1)


def cohens_d(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """The difference of two unpaired means in pooled standard deviations.

    >>> cohens_d([0, 1, 2], [2, 3, 4])
    2.0
    """
    one, other = _finite(a, b, paired=False)
    if len(one) + len(other) < 3 or not len(one) or not len(other):
        return math.nan
    squares = ((one - one.mean()) ** 2).sum() + ((other - other.mean()) ** 2).sum()
    deviation = math.sqrt(squares / (len(one) + len(other) - 2))
    return float((other.mean() - one.mean()) / deviation) if deviation > rounding(one, other) else math.nan


def cliffs_delta(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """How much more often a value of b is above a value of a than below it, over all pairs of values.

    >>> cliffs_delta([1, 2], [2, 3])  # three of four above, one equal
    0.75
    """
    one, other = _finite(a, b, paired=False)
    if not len(one) or not len(other):
        return math.nan
    one, near = np.sort(one), rounding(one, other)
    above = np.searchsorted(one, other - near, side="left").sum()
    below = (len(one) - np.searchsorted(one, other + near, side="right")).sum()
    return float((above - below) / (len(one) * len(other)))


def common_language(a: npt.ArrayLike, b: npt.ArrayLike, paired: bool = True) -> float:
    """The share of pairs in which b is greater, ties counting half; for unpaired samples, over all pairs of values.

    >>> common_language([1, 2, 3, 4], [2, 2, 2, 5]), common_language([1, 2], [2, 3], paired=False)
    (0.625, 0.875)
    """
    if not paired:
        return (cliffs_delta(a, b) + 1) / 2
    d = differences(*_finite(a, b))
    return float(((d > 0) + (d == 0) / 2).mean()) if len(d) else math.nan


def hedges_factor(freedom: int) -> float:
    """The factor that makes a standardised difference unbiased, by degrees of freedom; NaN below 2."""
    if freedom < 2:
        return math.nan
    return math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom - 1) / 2)) / math.sqrt(freedom / 2)


def _finite(a: npt.ArrayLike, b: npt.ArrayLike, paired: bool = True) -> tuple[Floats, Floats]:
    one, other = two_samples(a, b, paired)
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise DataError("expected finite numbers, found NaN or infinity; leave those pairs out")
    return one, other
