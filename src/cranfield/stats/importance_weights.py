"""Means under another distribution: weighted values, their errors over clusters, and how much the weights rest on.

A value drawn with probability p counts with the weight q / p, and so describes draws with probability q. Such a mean is
as good as its weights: a few large ones carry all of it. Rows of one cluster (a user's searches) are dependent, so
errors sum each cluster first. The number of rows of a cluster is random too, so the mean is a ratio of two sums
(linearised; Cochran, 1977, section 6.3). With one row per cluster this is Student's error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.stats.paired import t_limits

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.stats.ties import Floats, Ints


class MeanInterval(NamedTuple):
    """A mean with its standard error and the limits of its interval."""

    value: float
    error: float
    low: float
    high: float


def clustered_error(values: Floats, cluster: Ints) -> float:
    """The standard error of the mean of values whose clusters are independent; NaN with fewer than two clusters.

    >>> round(clustered_error(np.array([1.0, 2.0, 6.0]), np.arange(3)), 4)  # Student's
    1.5275
    >>> round(clustered_error(np.array([1.0, 1.0, 3.0, 3.0]), np.array([0, 0, 1, 1])), 4)
    1.0
    """
    sums = np.bincount(cluster, weights=values - values.mean()) if len(values) else np.zeros(0)
    clusters = len(np.unique(cluster))
    if clusters < 2:
        return float("nan")
    return float(np.sqrt(np.square(sums).sum() * clusters / (clusters - 1)) / len(values))


def clustered_interval(values: Floats, cluster: Ints, level: float = 0.95, variance: float = 0.0) -> MeanInterval:
    """The mean of values in independent clusters, with a t interval on clusters - 1 degrees of freedom.

    `variance` is added to that of the mean: from quantities that the values take over with an error of their own.

    >>> [round(number, 2) for number in clustered_interval(np.array([1.0, 2.0, 6.0]), np.arange(3))]
    [3.0, 1.53, -3.57, 9.57]
    """
    mean, error = float(np.mean(values)), float(np.hypot(clustered_error(values, cluster), np.sqrt(variance)))
    if error != error:
        return MeanInterval(mean, error, error, error)
    freedom = max(1, len(np.unique(cluster)) - 1)
    tail = (1 - level) / 2
    low, high = t_limits(np.array([mean]), np.array([error]), freedom, (tail, tail))
    return MeanInterval(mean, error, float(low[0]), float(high[0]))


class WeightSupport(NamedTuple):
    """The support of a weighted mean: its effective size, its effective rewards, and its weights."""

    effective_size: float  # (Σw)² / Σw²
    effective_rewards: float  # (Σwy)² / Σ(wy)²
    largest: float
    largest_share: float  # of the sum of weights
    mean: float
    mean_error: float


def effective_number(parts: Floats) -> float:
    """The number of equal parts that vary as much as these: (Σx)² / Σx²; 0 if all are 0.

    >>> effective_number(np.array([2.0, 2.0, 0.0])), effective_number(np.zeros(3)), effective_number(np.array([1e200]))
    (2.0, 0.0, 1.0)
    """
    most = np.abs(parts).max(initial=0.0)
    scaled = parts / most if most > 0 else parts  # squares of large weights could be beyond a double
    squares = float(np.square(scaled).sum())
    return float(scaled.sum() ** 2 / squares) if squares > 0 else 0.0


def weight_support(weights: Floats, rewards: Floats, cluster: Ints, rows: Floats | None = None) -> WeightSupport:
    """What the mean of weighted rewards rests on.

    `weights` and `rewards` (already multiplied by their weights) have one value per draw; `rows` are the single weights
    if a draw's weight is a mean of several.

    >>> support = weight_support(np.array([1.0, 3.0, 0.0]), np.array([1.0, 3.0, 0.0]), np.arange(3))
    >>> round(support.effective_size, 2), support.largest, support.largest_share, round(support.mean, 2)
    (1.6, 3.0, 0.75, 1.33)
    """
    single = weights if rows is None else rows
    largest, total = float(single.max(initial=0.0)), float(single.sum())
    return WeightSupport(
        effective_number(weights),
        effective_number(rewards),
        largest,
        largest / total if total > 0 else 0.0,
        float(weights.mean()) if len(weights) else float("nan"),
        clustered_error(weights, cluster),
    )


def centred(weights: Floats, rewards: Floats, group: Ints) -> Floats:
    """The weighted rewards with the spread that they have if the weights of each group were counted from the group itself.

    Counting fixes the sum of each group's weights, so that the mean reward of the group no longer adds to the spread. The
    mean over all stays the same.

    >>> centred(np.array([2.0, 0.0, 2.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0]), np.zeros(4, int)).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    weighted = weights * rewards
    total, size = np.bincount(group, weights=weights), np.maximum(np.bincount(group), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(total > 0, np.bincount(group, weights=weighted) / total, 0.0)
    return np.asarray(weighted - mean[group] * (weights - (total / size)[group]), np.float64)


def self_normalised(weights: Floats, rewards: Floats) -> tuple[float, Floats]:
    """The weighted mean Σwy / Σw, and values whose mean it is and whose spread is that of its linearisation.

    >>> mean, values = self_normalised(np.array([1.0, 3.0]), np.array([0.0, 1.0]))
    >>> mean, values.tolist()
    (0.75, [0.375, 1.125])
    """
    total = weights.sum()
    if not total > 0:
        return float("nan"), np.full(len(weights), np.nan)
    mean = float(weights @ rewards / total)
    values: npt.NDArray[np.float64] = mean + weights * (rewards - mean) * (len(weights) / total)
    return mean, values
