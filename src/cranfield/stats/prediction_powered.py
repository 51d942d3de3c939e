"""The mean of values that were measured for few units and predicted for all: valid whatever the bias of predictions.

Predictions never count as the truth. They are known for every unit, and the measured units show how far they are off:
the mean of the measured values is moved by slope · (mean of all predictions − mean prediction of the measured units).
This is survey sampling's regression estimator in two phases (Cochran, 1977, 12.6) and prediction-powered inference with
its weight tuned (Angelopoulos, Duchi and Zrnic, 2023). It holds only if the measured units are a random sample.

For `predicted_mean`, all predicted units are a sample from a population, and the mean is that of the population. For
`calibrated_total`, the units are the whole population, each measured with a known probability, and the total is that of
these units (Särndal, Swensson and Wretman, 1992, chapter 6; the variance is Hájek's, 1964, exact where all chances are
equal). All numbers may have leading axes, one entry for each of many samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.stats.arms import EffectEstimate

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.stats.ties import Bools, Floats

LEAST = 3  # measured units: two go into the line
UNSEEN = 0.5  # of the square that a unit can miss by at the most: without it 4 misses in a sample cover 90 %, not 94 %
CARRIERS = 5  # effective measured units on which predictions must vary to be used
FEWEST = 2  # effective units that make an interval
FEW = 20  # measured units: of fewer, these two are lower in proportion
ROUNDING = 1e-9  # of a scale
SINGULAR = 1e-10  # of the greatest: what is explained by less than this is explained by nothing


class Predicted(NamedTuple):
    """The combined estimate, the estimates from each source alone, and how many measurements predictions replace."""

    both: EffectEstimate
    measured: EffectEstimate
    predicted: EffectEstimate  # as if predictions were true: its interval knows nothing of their bias
    worth: Floats  # measured units that would be as precise without predictions, those that were measured among them; at most all
    used: Bools  # whether predictions had a part in the estimate


def predicted_mean(measured: npt.ArrayLike, predicted: npt.ArrayLike, every: npt.ArrayLike) -> Predicted:
    """The mean of a population: some units have a measured value and a prediction, all have a prediction (`every`).

    `every` includes the measured units. The error is the jackknife's: each unit is left out of the whole estimate,
    including its slope. If most values are the same, a few units may decide everything. In that case:

    - predictions that vary on too few measured units (`CARRIERS`) are not used: the slope would be those units' alone;
    - measured units keep a part of their own variance, (`CARRIERS` / effective units)² of it: a few hits in a row do not prove a
      line without misses;
    - degrees of freedom follow the effective number of units, and below `FEWEST` the error is NaN.

    >>> estimate = predicted_mean([1.0, 2.0, 3.0, 5.0], [2.0, 3.0, 4.0, 6.0], [2.0, 3.0, 4.0, 6.0, 5.0, 7.0])
    >>> float(estimate.measured.value), float(estimate.predicted.value), round(float(estimate.both.value), 4)
    (2.75, 4.5, 3.5)
    """
    y, f, whole = (np.asarray(values, np.float64) for values in (measured, predicted, every))
    _refuse(y, f, whole)
    n, size = y.shape[-1], whole.shape[-1]
    part = min(1.0, n / FEW)
    carriers, fewest = CARRIERS * part, FEWEST * part
    used = effective_units(f) >= carriers
    value, others, elsewhere = _without_each(y, f, whole, used)
    pulls = others - others.mean(axis=-1, keepdims=True)
    alone = np.square(y.std(axis=-1, ddof=1)) / n
    number = np.minimum(effective_units(y), np.where(used, effective_units(f), np.inf))
    least = np.square(carriers / np.maximum(number, carriers)) * alone
    variance = np.maximum((n - 1) / n * np.square(pulls).sum(axis=-1), least) + elsewhere
    number = np.minimum(number, effective_units(pulls))
    error = np.where(number < fewest - ROUNDING, np.nan, np.sqrt(variance))
    return Predicted(
        EffectEstimate(value, error, _freedom(pulls, number, n - 1.0 - used)),
        EffectEstimate(y.mean(axis=-1), np.sqrt(alone), np.asarray(n - 1.0)),
        EffectEstimate(whole.mean(axis=-1), whole.std(axis=-1, ddof=1) / np.sqrt(size), np.asarray(size - 1.0)),
        np.minimum(n * _quotient(alone, variance), size),
        used,
    )


def _without_each(y: Floats, f: Floats, whole: Floats, used: Bools) -> tuple[Floats, Floats, Floats]:
    """The estimate, the estimates without each measured unit, and the variance due to all other units."""
    n, size = y.shape[-1], whole.shape[-1]
    yc, fc = (values - values.mean(axis=-1, keepdims=True) for values in (y, f))
    squares, products = np.square(fc).sum(axis=-1), (yc * fc).sum(axis=-1)
    slope = np.where(used, _ratio(products, squares, squares), 0.0)
    value = y.mean(axis=-1) + slope * (whole.mean(axis=-1) - f.mean(axis=-1))
    own_squares, own_products = (n / (n - 1) * fc * c for c in (fc, yc))
    left_squares, left_products = squares[..., None] - own_squares, products[..., None] - own_products
    slopes = np.where(used[..., None], _ratio(left_products, left_squares, squares[..., None]), 0.0)
    mean_y, mean_f = (v.mean(axis=-1, keepdims=True) - c / (n - 1) for v, c in ((y, yc), (f, fc)))
    mean_all = (whole.sum(axis=-1, keepdims=True) - f) / (size - 1)
    rest = size - n
    centre = whole.mean(axis=-1, keepdims=True)
    away, away_drawn = whole - centre, f - centre
    sums = away.sum(axis=-1) - away_drawn.sum(axis=-1)
    spread = np.square(away).sum(axis=-1) - np.square(away_drawn).sum(axis=-1) - np.square(sums) / max(rest, 1)
    elsewhere = np.square(slope / (size - 1)) * np.maximum(spread, 0.0) * (1 - 1 / max(rest, 1))
    return value, mean_y + slopes * (mean_all - mean_f), elsewhere


def _ratio(above: Floats, below: Floats, scale: Floats) -> Floats:
    """The quotient; 0 if the divisor is only rounding error at this scale."""
    there = np.broadcast_to(below > ROUNDING * scale, np.shape(above))
    return np.asarray(np.divide(above, below, out=np.zeros(np.shape(above)), where=there), np.float64)


def effective_units(values: Floats) -> Floats:
    """The effective number of units away from the median: (Σ|x − median|)² / Σ(x − median)².

    For three equal values among zeros it is 3; for normal values it is two thirds of them.

    >>> float(effective_units(np.array([0.0, 0.0, 0.5, 0.0, 0.5, 0.0, 0.5])))
    3.0
    """
    away = np.abs(values - np.median(values, axis=-1, keepdims=True))
    away[away <= ROUNDING * np.maximum(1.0, np.abs(values).max(axis=-1, keepdims=True))] = 0.0
    squares = np.square(away).sum(axis=-1)
    return np.asarray(np.square(away.sum(axis=-1)) / np.where(squares > 0, squares, 1.0), np.float64)


def _freedom(pulls: Floats, number: Floats, most: Floats) -> Floats:
    """Degrees of freedom: the geometric mean of Satterthwaite's for these influences and the effective units minus 1.

    Satterthwaite's alone (2n / (kurtosis − 1)) are too many if few units have influence; effective units alone are too
    few if there are only two different values.
    """
    n = pulls.shape[-1]
    squares = np.square(pulls).sum(axis=-1)
    kurtosis = n * _quotient(np.square(np.square(pulls)).sum(axis=-1), np.square(squares))
    by_kurtosis = np.minimum(2 * n / np.maximum(kurtosis - 1, ROUNDING), most)
    by_number = np.clip(number - 1, 0.0, most)
    return np.asarray(np.maximum(np.sqrt(by_kurtosis * by_number), 1.0), np.float64)


def predicted_total(
    measured: npt.ArrayLike,
    predicted: npt.ArrayLike,
    weight: npt.ArrayLike,
    probability: npt.ArrayLike,
    *,
    every: npt.ArrayLike,
    weights: npt.ArrayLike,
) -> Predicted:
    """The total of all units, some of which were drawn and measured; `weight` is the most that a unit can add.

    The first four arguments belong to the drawn units, `every` and `weights` the predictions and weights of all units.

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
    model = EffectEstimate(total, np.zeros(total.shape), np.full(total.shape, np.inf))
    return Predicted(both, alone, model, worth, np.ones(total.shape, np.bool_))


def calibrated_total(y: Floats, auxiliary: Floats, totals: Floats, probability: Floats) -> EffectEstimate:
    """The total of y over all units from those drawn; `known` are columns (the last axis) whose totals are known.

    The first column is the most that a unit can add. The coefficients minimise the variance. Squared residuals are
    raised by each unit's leverage (HC2), and `UNSEEN` is added, so that an interval does not vanish if a sample happens
    to have few errors. The degrees of freedom are the effective number of units by the squares of the first column,
    minus the number of columns.

    >>> estimate = calibrated_total(np.array([1.0, 2.0]), np.ones((2, 1)), np.array([4.0]), np.array([0.5, 0.5]))
    >>> float(estimate.value)
    6.0
    """
    if not ((probability > 0) & (probability <= 1)).all():
        raise DataError("expected probabilities above 0, and of 1 at the most")
    spare = 1 - probability  # what is drawn for certain adds no variance
    expanded, columns = y / probability, auxiliary / probability[..., None]
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
    freedom = np.maximum(effective - auxiliary.shape[-1], 1.0)
    return EffectEstimate(value, error, freedom)


def _inverse(matrix: Floats) -> Floats:
    """The inverse of each symmetric matrix, or its pseudo-inverse if columns are collinear."""
    scale = np.sqrt(np.diagonal(matrix, axis1=-2, axis2=-1))
    scale = np.where(scale > 0, scale, 1.0)
    outer = scale[..., :, None] * scale[..., None, :]
    return np.asarray(np.linalg.pinv(matrix / outer, rcond=SINGULAR, hermitian=True) / outer, np.float64)


def _quotient(above: Floats, below: Floats) -> Floats:
    """The quotient; 1 if both are 0."""
    alike = np.where(above > 0, np.inf, 1.0)
    return np.asarray(np.divide(above, below, out=alike, where=below > 0), np.float64)


def _refuse(y: Floats, f: Floats, whole: Floats) -> None:
    if y.shape[-1:] != f.shape[-1:] or whole.shape[-1] < y.shape[-1]:
        counts = f"{y.shape[-1]} measured, {f.shape[-1]} of them predicted, {whole.shape[-1]} in all"
        raise DataError(f"expected a prediction for each measured unit and for all, found {counts}")
    if y.shape[-1] < LEAST:
        raise DataError(f"expected {LEAST} measured units or more, found {y.shape[-1]}")
    if not all(np.isfinite(values).all() for values in (y, f, whole)):
        raise DataError("expected finite numbers, found NaN or infinity")
