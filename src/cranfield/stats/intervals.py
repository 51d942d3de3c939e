"""The interval of a mean, by formula or by resampling.

The methods are those of the tests: "t" of the t-test, "percentile", "bca" and "studentised" of the bootstraps,
"randomisation" of the randomisation test (the shifts it does not reject). Of paired values, give the differences.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cranfield.errors import DataError
from cranfield.stats.test import Floats, Question

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.stats.test import Alternative


def mean_interval(
    x: npt.ArrayLike,
    level: float = 0.95,
    method: str = "t",
    resamples: int = 10_000,
    rng: np.random.Generator | None = None,
    alternative: Alternative = "two-sided",
) -> tuple[float, float]:
    """The interval of the mean of some values; NaN where it does not exist (fewer than two values, or NaN among them).

    Values that are all equal have the interval of that value alone. "less" and "greater" leave it open below and above.

    >>> low, high = mean_interval([1, 2, 3, 4])
    >>> round(low, 3), round(high, 3)
    (0.446, 4.554)
    """
    values = np.asarray(x, np.float64)
    if values.ndim != 1:
        raise DataError(f"expected a sequence of numbers, found the shape {values.shape}")
    low, high = mean_intervals(values[None], level, method, resamples, rng, alternative)
    return float(low[0]), float(high[0])


def mean_intervals(
    x: npt.ArrayLike,
    level: float = 0.95,
    method: str = "t",
    resamples: int = 10_000,
    rng: np.random.Generator | None = None,
    alternative: Alternative = "two-sided",
) -> tuple[Floats, Floats]:
    """The same for each row of a table: all lows, all highs."""
    if method not in METHODS:
        raise DataError(f"no interval {method!r}; there are {', '.join(METHODS)}")
    if rng is None and method != "t":
        raise DataError(f"the interval {method!r} is sampled: give it rng=np.random.default_rng(seed)")
    asked = Question(alternative, level, resamples, rng or np.random.default_rng(0))
    values = np.asarray(x, np.float64)
    low, high = np.full(len(values), math.nan), np.full(len(values), math.nan)
    if values.shape[1] < 2:
        return low, high
    whole = np.logical_and.reduce(np.isfinite(values), axis=1)
    flat = whole & (np.ptp(np.where(whole[:, None], values, 0.0), axis=1) == 0)
    low[flat] = high[flat] = values[flat, 0]
    fit = whole & ~flat
    if fit.any():
        low[fit], high[fit] = METHODS[method](values[fit], asked)
    return low, high


def _t(x: Floats, asked: Question) -> tuple[Floats, Floats]:
    from cranfield.stats.paired import t_limits

    n = x.shape[1]
    return t_limits(x.mean(axis=1), x.std(axis=1, ddof=1) / np.sqrt(n), n - 1, asked.tails)


def _bootstrap(name: str) -> Callable[[Floats, Question], tuple[Floats, Floats]]:
    def interval(x: Floats, asked: Question) -> tuple[Floats, Floats]:
        from cranfield.stats import bootstrap

        _, low, high = bootstrap.in_batches(getattr(bootstrap, name), x, asked)
        return low, high

    return interval


def _randomisation(x: Floats, asked: Question) -> tuple[Floats, Floats]:
    from cranfield.stats.randomisation import sign_flip_interval

    return sign_flip_interval(x, asked.tails, asked.resamples, asked.rng)


METHODS: dict[str, Callable[[Floats, Question], tuple[Floats, Floats]]] = {
    "t": _t,
    "percentile": _bootstrap("percentile"),
    "bca": _bootstrap("bca"),
    "studentised": _bootstrap("studentised"),
    "randomisation": _randomisation,
}
