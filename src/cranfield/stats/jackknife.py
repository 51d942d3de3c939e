"""The jackknife over clusters: statistics of clustered items, with intervals from leaving out each cluster in turn.

Items of one cluster depend on each other: a hundred items of five clusters carry hardly more information than five
items. Every statistic here is a function of sums over items, with one row of sums per cluster; to leave out a cluster,
its row is subtracted from the total. The error is Tukey's (1958), t-distributed with one degree of freedom less than
there are clusters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import DataError
from cranfield.stats.arms import EffectEstimate

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from cranfield.stats.ties import Bools, Floats, Ints

NEAR = 1e-9  # smaller spreads are rounding


def without_each(sums: Floats, figure: Callable[[Floats], Floats]) -> EffectEstimate:
    """A statistic of sums over all clusters, with its standard error; NaN if it is undefined without one of the clusters.

    `figure` takes rows of sums and gives one number per row, or several (the last axis). A cluster whose sums are all 0
    is ignored.

    >>> found = without_each(np.array([[2.0, 2.0], [3.0, 1.0], [4.0, 3.0]]), lambda sums: sums[:, 0] / sums[:, 1])
    >>> float(found.value), round(float(found.error), 4), float(found.df)
    (1.5, 0.3423, 2.0)
    """
    rows = sums[(sums != 0).any(axis=1)]
    number = len(rows)
    whole = figure(rows.sum(axis=0, keepdims=True))[0]
    if number < 2:
        return EffectEstimate(whole, np.full(np.shape(whole), np.nan), np.asarray(1.0))
    return jackknife(whole, figure(rows.sum(axis=0) - rows))


def jackknife(whole: Floats, others: Floats, df: float | None = None, log: bool = False) -> EffectEstimate:
    """A statistic with its standard error, from its values without each cluster.

    The degrees of freedom are one less than the number of clusters, unless `df` says otherwise. With `log`, figures are
    logarithms.

    >>> found = jackknife(np.array(2.0), np.array([2.5, 2.0, 1.5]))  # the mean of 1, 2 and 3
    >>> round(float(found.error), 4), float(found.df)  # √(1 / 3)
    (0.5774, 2.0)
    """
    number = len(others)
    spread = np.square(others - others.mean(axis=0)).sum(axis=0)
    degrees = np.asarray(number - 1.0 if df is None else df)
    return EffectEstimate(whole, np.sqrt((number - 1) / number * spread), degrees, log)


def sums_by_cluster(cluster: Ints, *columns: npt.ArrayLike) -> Floats:
    """The sums of columns over the items of each cluster: clusters × columns. A column may have columns of its own.

    >>> sums_by_cluster(np.array([0, 1, 0]), [1.0, 2.0, 3.0], 1.0).tolist()
    [[4.0, 2.0], [2.0, 1.0]]
    """
    table = np.column_stack([np.broadcast_to(column, (len(cluster), *np.shape(column)[1:])) for column in columns])
    answer = np.zeros((int(cluster.max(initial=-1)) + 1, table.shape[1]))
    np.add.at(answer, cluster, table)
    return answer


def mean_of_items(values: npt.ArrayLike, cluster: Ints) -> EffectEstimate:
    """The mean over items, with its standard error over clusters.

    >>> found = mean_of_items([1.0, 0.0, 1.0, 1.0], np.array([0, 0, 1, 2]))
    >>> float(found.value), round(float(found.error), 4)
    (0.75, 0.2222)
    """
    return without_each(sums_by_cluster(cluster, values, 1.0), ratio)


def ratio(sums: Floats) -> Floats:
    """The first column over the second; NaN if that is 0."""
    return _quotient(sums[:, 0], sums[:, 1], sums[:, 1] > 0)


def slope_within(x: npt.ArrayLike, y: npt.ArrayLike, stratum: Ints, cluster: Ints) -> EffectEstimate:
    """The slope of y on x within strata; for an x of 0 and 1 a difference of two means.

    >>> found = slope_within([0, 1, 0, 1], [1.0, 3.0, 5.0, 7.0], np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0]))
    >>> float(found.value)
    2.0
    """
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if not len(xs) == len(ys) == len(stratum) == len(cluster):
        raise DataError(f"expected columns of one length, found {len(xs)}, {len(ys)}, {len(stratum)}, {len(cluster)}")
    xs = xs - xs.mean() if len(xs) else xs
    inside = np.eye(int(stratum.max(initial=-1)) + 1)[stratum]
    columns = (np.ones(len(xs)), xs, ys, xs * xs, xs * ys)
    sums = sums_by_cluster(cluster, *(inside * column[:, None] for column in columns))
    return without_each(sums, _slope)


def _slope(sums: Floats) -> Floats:
    n, x, y, xx, xy = np.moveaxis(sums.reshape(len(sums), 5, -1), 1, 0)
    n = np.where(n > 0.5, n, np.inf)
    spread = (xx - x * x / n).sum(axis=-1)
    shared = (xy - x * y / n).sum(axis=-1)
    varies = spread > NEAR * np.maximum(xx.sum(axis=-1), 1.0)
    return _quotient(shared, spread, varies)


def effect_beside(x: npt.ArrayLike, y: npt.ArrayLike, counts: Floats, values: Floats, cluster: Ints) -> EffectEstimate:
    """The slope of y on x at equal true values, which two or more raters measured with error.

    y = a + b · truth + effect · x. A reading is the truth plus an error, so among items with the same reading, x may
    still go with the truth and look like an effect. Two readings of an item share the truth but not their errors, so
    one reading is used as the instrument of the other. `counts` are the numbers of raters who gave each item each
    value.

    >>> x, truth = np.array([0.0, 1, 0, 1, 2, 0]), np.array([0, 0, 1, 1, 1, 0])
    >>> counts = 2 * np.eye(2)[truth]  # without errors, it is least squares
    >>> round(float(effect_beside(x, 3.0 * truth + 0.5 * x, counts, np.array([0.0, 1.0]), np.arange(6)).value), 6)
    0.5
    """
    xs, ys = (np.asarray(each, np.float64) for each in (x, y))
    number = counts.sum(axis=1)
    if (number < 2).any():
        raise DataError("expected two readings of each item or more, found one")
    xs, ys, centred = xs - xs.mean(), ys - ys.mean(), values - values.mean()
    total = counts @ centred
    reading, product = total / number, (total**2 - counts @ centred**2) / (number * (number - 1))
    sums = sums_by_cluster(cluster, 1.0, xs, ys, reading, xs * xs, xs * ys, xs * reading, reading * ys, product)
    return without_each(sums, _effect)


def _effect(sums: Floats) -> Floats:
    x, y, reading, xx, xy, xr, ry, rr = (sums[:, 1:] / sums[:, :1]).T
    xx, xy, xr, ry, rr = xx - x * x, xy - x * y, xr - x * reading, ry - reading * y, rr - reading * reading
    room = xx * rr - xr * xr
    return _quotient(xy * rr - xr * ry, room, room > NEAR * np.abs(xx * rr))


def pairs_of_counts(one: Floats, other: Floats | None = None) -> Floats:
    """Pairs of two labels of an item, with weights that add up to 1 per item: items × (labels of one · of the other).

    Rows say how many raters gave each label. With one side, the pairs are all pairs of its raters, in both orders.

    >>> pairs_of_counts(np.array([[1.0, 1.0]])).tolist(), pairs_of_counts(np.array([[0.0, 1.0]]), np.array([[1.0, 1.0]])).tolist()
    ([[0.0, 0.5, 0.5, 0.0]], [[0.0, 0.0, 0.5, 0.5]])
    """
    second = one if other is None else other
    pairs = one[:, :, None] * second[:, None, :]
    if other is None:
        diagonal = np.arange(one.shape[1])
        pairs[:, diagonal, diagonal] -= one
    total = pairs.sum(axis=(1, 2), keepdims=True)
    shares = np.divide(pairs, total, out=np.zeros_like(pairs), where=total > 0)
    return np.asarray(shares.reshape(len(one), -1), np.float64)


def _quotient(above: Floats, below: Floats, there: Bools) -> Floats:
    """The quotient; NaN if the divisor is 0."""
    return np.asarray(np.divide(above, below, out=np.full(len(below), np.nan), where=there), np.float64)
