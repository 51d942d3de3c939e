"""A mean from few values that were measured and many that were predicted: as precise as predictions allow, whatever their bias.

Predictions are never taken for the truth. They are known for every unit, and the units that were measured as well say by how
much they are off: a mean of measured values is moved by slope · (mean of all predictions − mean of those that were measured).
This is survey sampling's regression estimator in two phases (Cochran, 1977, 12.6) and prediction-powered inference with its
weight tuned (Angelopoulos, Duchi and Zrnic, 2023). It holds where chance alone chose what is measured, and only there.

`predicted_mean` takes units as drawn from a population, of which all that were predicted are a sample: the mean is the
population's. `calibrated_total` takes the units as all there are, each drawn with a probability that is known: the total is
theirs (Särndal, Swensson and Wretman, 1992, chapter 6; the variance is Hájek's, 1964, exact where all chances are equal).
All numbers may have leading axes, one entry for each of many samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.errors import DataError
from cranfield.stats.arms import Estimate

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.stats.ties import Floats

__all__ = ["LEAST", "Predicted", "calibrated_total", "predicted_mean", "predicted_total"]

LEAST = 3  # measured units: two go into the line
UNSEEN = 0.5  # of the square that a unit can miss by at the most: without it 4 misses in a sample cover 90 %, not 94 %
SINGULAR = 1e-10  # of the greatest: what is explained by less than this is explained by nothing


class Predicted(NamedTuple):
    """An estimate from both, those from one of the two alone, and how many measured units the predictions were worth."""

    both: Estimate
    measured: Estimate
    predicted: Estimate  # as if predictions were true: its interval knows nothing of their bias
    worth: Floats  # measured units that would be as precise without predictions, those that were measured among them


def predicted_mean(measured: npt.ArrayLike, predicted: npt.ArrayLike, every: npt.ArrayLike) -> Predicted:
    """The mean of a population of units: of some a measured value and a prediction, and the predictions of every unit.

    `every` holds the predictions of the units that were measured as well.

    >>> found = predicted_mean([1.0, 2.0, 3.0, 5.0], [2.0, 3.0, 4.0, 6.0], [2.0, 3.0, 4.0, 6.0, 5.0, 7.0])
    >>> float(found.measured.value), float(found.predicted.value), round(float(found.both.value), 4)
    (2.75, 4.5, 3.5)
    """
    y, f, whole = (np.asarray(values, np.float64) for values in (measured, predicted, every))
    n, size = y.shape[-1], whole.shape[-1]
    _refuse(y, f, whole)
    yc, fc = (values - values.mean(axis=-1, keepdims=True) for values in (y, f))
    spread = np.square(fc).sum(axis=-1)
    slope = np.divide((yc * fc).sum(axis=-1), spread, out=np.zeros(spread.shape), where=spread > 0)
    gap = whole.mean(axis=-1) - f.mean(axis=-1)
    left = np.square(yc - slope[..., None] * fc).sum(axis=-1) / (n - 2)
    off = np.divide(np.square(gap), spread, out=np.zeros(spread.shape), where=spread > 0)
    error = np.sqrt(left * (1 / n + off) + np.square(slope) * whole.var(axis=-1, ddof=1) / size)
    alone = y.std(axis=-1, ddof=1) / np.sqrt(n)
    return Predicted(
        Estimate(y.mean(axis=-1) + slope * gap, error, np.asarray(n - 2.0)),
        Estimate(y.mean(axis=-1), alone, np.asarray(n - 1.0)),
        Estimate(whole.mean(axis=-1), whole.std(axis=-1, ddof=1) / np.sqrt(size), np.asarray(size - 1.0)),
        n * _quotient(np.square(alone), np.square(error)),
    )


def predicted_total(
    measured: npt.ArrayLike,
    predicted: npt.ArrayLike,
    weight: npt.ArrayLike,
    probability: npt.ArrayLike,
    *,
    every: npt.ArrayLike,
    weights: npt.ArrayLike,
) -> Predicted:
    """The total of all units, of which some were drawn and measured; `weight` is how much a unit can add at the most.

    The first four are those of the units that were drawn, `every` and `weights` the predictions and weights of all units.

    >>> found = predicted_total([1, 0, 1], [1, 0, 0], [1, 1, 1], [0.5] * 3, every=[1, 0, 0, 1, 1, 0], weights=[1] * 6)
    >>> round(float(found.measured.value), 4), float(found.predicted.value), round(float(found.both.value), 4)
    (4.0, 3.0, 4.5)
    """
    y, f, w, chance = np.broadcast_arrays(
        *(np.asarray(values, np.float64) for values in (measured, predicted, weight, probability))
    )
    whole, every_weight = np.broadcast_arrays(np.asarray(every, np.float64), np.asarray(weights, np.float64))
    _refuse(y, f, whole)
    sums = np.stack([every_weight.sum(axis=-1), whole.sum(axis=-1)], axis=-1)
    both = calibrated_total(y, np.stack([w, f], axis=-1), sums, chance)
    alone = calibrated_total(y, w[..., None], sums[..., :1], chance)
    n, size = y.shape[-1], whole.shape[-1]
    ratio = _quotient(np.square(both.error), np.square(alone.error))
    worth = 1 / (1 / size + ratio * (1 / n - 1 / size))
    total = whole.sum(axis=-1)
    return Predicted(both, alone, Estimate(total, np.zeros(total.shape), np.full(total.shape, np.inf)), worth)


def calibrated_total(y: Floats, known: Floats, totals: Floats, probability: Floats) -> Estimate:
    """The total of y over all units from those drawn; `known` are columns (the last axis) whose totals are known.

    The first column is how much a unit can add at the most. The coefficients are those of the least variance; squares of
    what the line misses are raised by how far each unit pulls it (HC2), and `UNSEEN` is added, lest an interval vanish
    where a sample happens to show few misses. Degrees of freedom are the effective number of units by the squares of the
    first column, less the columns.

    >>> estimate = calibrated_total(np.array([1.0, 2.0]), np.ones((2, 1)), np.array([4.0]), np.array([0.5, 0.5]))
    >>> float(estimate.value)
    6.0
    """
    if not ((probability > 0) & (probability <= 1)).all():
        raise DataError("expected probabilities above 0, and of 1 at the most")
    spare = 1 - probability  # what is drawn for certain adds no variance
    expanded, columns = y / probability, known / probability[..., None]
    middle = np.maximum(spare.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
    yc = expanded - (spare * expanded).sum(axis=-1, keepdims=True) / middle
    xc = columns - ((spare[..., None] * columns).sum(axis=-2) / middle)[..., None, :]
    inverse = _inverse(np.einsum("...n,...ni,...nj->...ij", spare, xc, xc, optimize=True))
    slope = np.einsum("...ij,...n,...nj,...n->...i", inverse, spare, xc, yc, optimize=True)
    value = expanded.sum(axis=-1) + ((totals - columns.sum(axis=-2)) * slope).sum(axis=-1)
    left = yc - np.einsum("...ni,...i->...n", xc, slope)
    pull = spare * np.einsum("...ni,...ij,...nj->...n", xc, inverse, xc, optimize=True)
    by_chance = np.maximum((spare > 0).sum(axis=-1), 2)
    squares = (spare * np.square(left) / np.maximum(1 - pull, SINGULAR)).sum(axis=-1)
    most = spare * np.square(columns[..., 0])
    one_miss = most.sum(axis=-1) / np.maximum((most > 0).sum(axis=-1), 1)
    error = np.sqrt((squares + UNSEEN * one_miss) * by_chance / (by_chance - 1))
    effective = _quotient(np.square(most.sum(axis=-1)), np.square(most).sum(axis=-1))
    freedom = np.maximum(effective - known.shape[-1], 1.0)
    return Estimate(value, error, freedom)


def _inverse(matrix: Floats) -> Floats:
    """The inverse of each symmetric matrix, or its like where columns say the same."""
    scale = np.sqrt(np.diagonal(matrix, axis1=-2, axis2=-1))
    scale = np.where(scale > 0, scale, 1.0)
    outer = scale[..., :, None] * scale[..., None, :]
    return np.asarray(np.linalg.pinv(matrix / outer, rcond=SINGULAR, hermitian=True) / outer, np.float64)


def _quotient(above: Floats, below: Floats) -> Floats:
    """One over the other: 1 where both are 0."""
    alike = np.where(above > 0, np.inf, 1.0)
    return np.asarray(np.divide(above, below, out=alike, where=below > 0), np.float64)


def _refuse(y: Floats, f: Floats, whole: Floats) -> None:
    if y.shape[-1:] != f.shape[-1:] or whole.shape[-1] < y.shape[-1]:
        told = f"{y.shape[-1]} measured, {f.shape[-1]} of them predicted, {whole.shape[-1]} in all"
        raise DataError(f"expected a prediction for each measured unit and for all, found {told}")
    if y.shape[-1] < LEAST:
        raise DataError(f"expected {LEAST} measured units or more, found {y.shape[-1]}")
    if not all(np.isfinite(values).all() for values in (y, f, whole)):
        raise DataError("expected finite numbers, found NaN or infinity")
