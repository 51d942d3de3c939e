"""Weighted means: the mean of each row under fixed weights, its standard error, and the effective number of items.

Weights state how much an item matters and are known beforehand; they are not sample sizes, so doubling all of them
changes nothing. The error of a weighted mean sums weighted squared deviations, each divided by its expectation under
equal variances. It is unbiased in that case, and right to the first order if the variance depends on the weights (HC2;
MacKinnon and White, 1985). Its degrees of freedom are Kish's effective number minus one: with heavy weights,
Satterthwaite's (Bell and McCaffrey, 2002) hardly ever reject, and n − 1 reject twice too often. With equal weights,
error and degrees of freedom are Student's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import DataError

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.stats.ties import Floats


def checked(weights: npt.ArrayLike, items: int) -> Floats:
    """Weights of so many items, scaled to a mean of 1; they must be finite, at least 0, and not all 0.

    >>> checked([1, 1, 4], 3).tolist()
    [0.5, 0.5, 2.0]
    """
    w = np.asarray(weights, np.float64)
    if w.shape != (items,):
        raise DataError(f"expected a weight for each of {items} items, found the shape {w.shape}")
    wrong = ~(np.isfinite(w) & (w >= 0))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise DataError(f"weights must be finite numbers of 0 or more, got {w[place]:g} at place {place + 1}")
    if items and not w.any():
        raise DataError("weights must not all be 0")
    w = w / w.max(initial=1e-300)  # their sum could be beyond a double
    return np.asarray(w / w.mean() if items else w, np.float64)


def effective_size(weights: npt.ArrayLike) -> float:
    """The effective number of items: so many items of equal weight give as precise a mean (Kish, 1965): (Σw)² / Σw².

    >>> effective_size([1, 1, 1, 1]), effective_size([1, 0]), round(effective_size([8, 1, 1]), 2)
    (4.0, 1.0, 1.52)
    """
    w = checked(weights, np.size(weights))
    return float(w.sum() ** 2 / np.square(w).sum()) if len(w) else 0.0


def weighted_mean(d: Floats, weights: Floats | None) -> Floats:
    """The weighted mean of each row; the plain mean without weights."""
    return np.asarray(d.mean(axis=1) if weights is None else d @ weights / weights.sum(), np.float64)


def weighted_mean_and_error(d: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The weighted mean of each row and its standard error: √ Σ p² (d − mean)² / (1 − 2p + Σp²), where p = w / Σw.

    >>> mean, error = weighted_mean_and_error(np.array([[1.0, 2.0, 6.0]]), np.ones(3))
    >>> mean.tolist(), error.round(4).tolist()  # of equal weights the usual ones
    ([3.0], [1.5275])
    """
    mean = weighted_mean(d, weights)
    return mean, np.sqrt(np.square(d - mean[:, None]) @ _squared_shares(weights))


def weighted_freedom(weights: Floats) -> float:
    """The degrees of freedom of that error: the effective number of items minus one, at least one.

    >>> weighted_freedom(np.ones(10)), round(weighted_freedom(np.array([4.0, 4, 1, 1, 1])), 2)
    (9.0, 2.46)
    """
    return max(1.0, effective_size(weights) - 1)


def _squared_shares(weights: Floats) -> Floats:
    """p² / (1 − 2p + Σp²), by which each squared deviation is multiplied, without loss of digits where p is near 1."""
    p = weights / weights.sum()
    squares = np.square(p)
    rest = np.maximum(squares.sum() - squares, 0.0)
    return np.asarray(squares / (np.square(1 - p) + rest), np.float64)


def linearised_error(d: Floats, weights: Floats) -> Floats:
    """The error of each row's mean as a ratio of two sums, if items are resampled together with their weights."""
    mean, n = weighted_mean(d, weights), d.shape[1]
    squares = np.square(d - mean[:, None]) @ np.square(weights)
    return np.asarray(np.sqrt(squares * n / (n - 1)) / weights.sum(), np.float64)


def weighted_t_without_each(d: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """For each value of a row: the weighted mean of the others, and the absolute value of its linearised t.

    >>> mean, t = weighted_t_without_each(np.array([1.0, 2.0, 6.0]), np.ones(3))
    >>> mean.tolist(), t.round(3).tolist()
    ([4.0, 3.5, 1.5], [2.0, 1.4, 3.0])
    """
    n, squared = d.shape[-1], np.square(weights)
    rest = [_rest(part) for part in (weights * d, squared * np.square(d), squared * d)]
    total, squares = _rest(weights), _rest(squared)
    mean = rest[0] / total
    spread = np.maximum(rest[1] - mean * (2 * rest[2] - mean * squares), 0.0) * (n - 1) / (n - 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(mean) * total / np.sqrt(spread)
    return mean, np.where(np.isnan(t), 0.0, t)


def _rest(values: Floats) -> Floats:
    """For each value, the sum of the others."""
    return np.asarray(values.sum(axis=-1, keepdims=True) - values, np.float64)
