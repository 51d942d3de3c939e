"""The studentised range: how far apart the means of k equal groups lie, in standard errors. Behind Tukey and Nemenyi.

SciPy integrates each value on its own, some 15 ms apiece; thousands of pairs are integrated here together by
Gauss-Legendre quadrature. The survival function is written so that small tails keep their digits:

    P(range > r) = k ∫ φ(z) [A^(k-1) - (A - B)^(k-1)] dz,   A = 1 - Φ(z), B = 1 - Φ(z + r)

and for a finite number of degrees of freedom is averaged over s, the estimated standard deviation.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cranfield.stats.ties import Floats

CELLS = 1 << 20  # of the quadrature held at once


def range_survival(q: Any, groups: int, df: float) -> Floats:
    """P(Q ≥ q) of the studentised range of so many groups; `df` may be infinite.

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
    step = max(1, CELLS // (len(s) * len(_nodes(96)[0])))
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
    """P(range > r) of so many standard normal values."""
    from scipy.special import ndtr, ndtri

    top = -ndtri(1e-20 ** (1 / groups))  # beyond it the smallest value never lies
    z, weight = _nodes(96)
    half = (top + 14) / 2
    z = -14 + half * (z + 1)
    above = ndtr(-z)
    weight = weight * half * groups * np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * above ** (groups - 1)
    lost = np.log1p(-np.minimum(ndtr(-(z + r[..., None])) / above, 1 - 1e-16))
    return np.asarray(-(np.expm1((groups - 1) * lost) @ weight), np.float64)


@lru_cache(maxsize=64)
def _spread(df: float) -> tuple[Floats, Floats]:
    """Where to evaluate s = chi / sqrt(df), and the weight of each place."""
    if np.isinf(df):
        return np.ones(1), np.ones(1)
    from scipy.special import gammaincinv, gammaln

    low = max(0.5 * float(np.log(2 * gammaincinv(df / 2, 1e-18) / df)), -40.0)
    high = 0.5 * float(np.log(2 * _upper(df) / df))
    nodes, weight = _nodes(400 if df < 10 else 160 if df < 30 else 48)
    half = (high - low) / 2
    u = low + half * (nodes + 1)
    log_density = df / 2 * np.log(df) - gammaln(df / 2) - (df / 2 - 1) * np.log(2) + df * u - df * np.exp(2 * u) / 2
    share = weight * half * np.exp(log_density)
    return np.exp(u), share / share.sum()


def _upper(df: float) -> float:
    from scipy.special import gammainccinv

    return float(gammainccinv(df / 2, 1e-18))


@lru_cache(maxsize=8)
def _nodes(n: int) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return nodes, weights
