"""The bootstrap of a mean difference: what other samples of the same kind would have given.

A resample is a row of counts, how often each pair was drawn; counts times differences is a matrix product, so that many
pairs of samples share one table of counts. Weighted pairs are drawn with their weights, and the mean of a resample is
the ratio of two sums. There are three kinds of intervals, and each test inverts its interval: the p-value is the
smallest level at which the interval still excludes 0.

Labels that may be wrong can be redrawn too (`redrawn_mean`). Wrong labels shrink differences towards 0, and redrawing
shrinks them once more; the second step is estimated and undone.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import DataError
from cranfield.stats.block_tables import probability
from cranfield.stats.paired import mean_and_error
from cranfield.stats.ties import Floats, differences
from cranfield.stats.two_sample_test import SignificanceSettings, SignificanceValues, Test, p_from_tails
from cranfield.stats.weighted_means import linearised_error, weighted_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt


@dataclass(frozen=True)
class RedrawnMean:
    """A mean over units: by the current labels, by redrawn labels, and corrected by the step between the two."""

    units: int
    draws: int
    difference: float  # by the current labels
    redrawn: float  # the mean over units and redraws
    corrected: float  # difference + (that of the likeliest labels − redrawn)
    low: float  # the interval around `corrected`, for other units with labels of their own; NaN for a single unit
    high: float
    level: float
    from_units: float  # parts of the variance of a mean of units and labels both drawn anew
    from_labels: float

    @property
    def share_of_labels(self) -> float:
        """The share of that variance that comes from labels; NaN if nothing varies."""
        both = self.from_units + self.from_labels
        return self.from_labels / both if both > 0 else nan


def redrawn_mean(
    current: npt.ArrayLike, redraws: npt.ArrayLike, level: float = 0.95, likeliest: npt.ArrayLike | None = None
) -> RedrawnMean:
    """The mean of units by the current labels (one value per unit), and by redraws (rows) of the same units (columns).

    Let m be the mean of a unit over its redraws. The unit counts as `current + (likeliest − m)`, and the interval is
    Student's t over these values. `likeliest` is the value by the most likely labels; the default is the current value.

    By the law of total variance, if units and labels are both drawn anew, the variance of the mean is var(m) / n
    (units) plus the mean variance within units / n (labels).

    >>> found = redrawn_mean([0.2, 0.4, 0.6], [[0.1, 0.4, 0.5], [0.2, 0.2, 0.6]])
    >>> round(found.difference, 3), round(found.redrawn, 3), round(found.corrected, 3)
    (0.4, 0.333, 0.467)
    >>> redrawn_mean([0.2, 0.4], [[0.2, 0.4], [0.2, 0.4]]).share_of_labels
    0.0
    """
    probability("level", level)
    d, table = np.asarray(current, np.float64), np.asarray(redraws, np.float64)
    if table.ndim != 2 or d.shape != table.shape[1:] or len(table) < 2 or not len(d):
        raise DataError(f"expected two redraws or more of {len(d)} units, found a table of {table.shape}")
    n, draws = len(d), len(table)
    m = table.mean(axis=0)
    within = table.var(axis=0, ddof=1)
    corrected = d + (d if likeliest is None else np.asarray(likeliest, np.float64)) - m
    low, high = _interval(corrected, level)
    between = m.var(ddof=1) - within.mean() / draws if n > 1 else nan  # m itself is a mean of few draws
    return RedrawnMean(
        units=n,
        draws=draws,
        difference=float(d.mean()),
        redrawn=float(m.mean()),
        corrected=float(corrected.mean()),
        low=low,
        high=high,
        level=level,
        from_units=max(0.0, float(between)) / n if n > 1 else nan,
        from_labels=float(within.mean()) / n,
    )


def _interval(values: npt.NDArray[np.float64], level: float) -> tuple[float, float]:
    if len(values) < 2:
        return nan, nan
    from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

    mean, error = float(values.mean()), float(values.std(ddof=1)) / sqrt(len(values))
    reach = float(stdtrit(len(values) - 1, (1 + level) / 2)) * error
    return mean - reach, mean + reach


BLOCK = 1024
DRAWN = 2**25  # maximum size of shared counts, in bytes


def resample_counts(n: int, resamples: int, rng: np.random.Generator, block: int = BLOCK) -> Iterator[Floats]:
    """How often each of n items is drawn, one row for each resample, in blocks of rows."""
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        cells = rng.integers(0, n, (rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(cells.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def _counts(n: int, question: SignificanceSettings) -> Iterator[Floats]:
    """The counts for a test; small ones are drawn once and shared by all tests and rows."""
    small = np.min_scalar_type(n)
    if n * question.resamples * small.itemsize > DRAWN:
        yield from resample_counts(n, question.resamples, question.rng)
        return
    key = ("counts", n, str(question.rng.bit_generator.state))
    if key not in question.draws:
        blocks = [counts.astype(small) for counts in resample_counts(n, question.resamples, question.rng)]
        question.draws[key] = blocks, question.rng.bit_generator.state
    blocks, question.rng.bit_generator.state = question.draws[key]
    yield from (counts.astype(np.float64) for counts in blocks)


def quantiles(values: Floats, tails: Floats) -> Floats:
    """The quantiles of each row at its own probabilities, by linear interpolation as NumPy's default.

    >>> quantiles(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]), np.array([[0.5, 0.0], [0.75, 1.0]])).tolist()
    [[2.0, 1.0], [2.5, 3.0]]
    """
    place = tails * (values.shape[1] - 1)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, values.shape[1] - 1)
    low, high = np.empty(place.shape), np.empty(place.shape)
    for row, each in enumerate(values):
        parted = np.partition(each, np.unique([below[row], above[row]]))
        low[row], high[row] = parted[below[row]], parted[above[row]]
    with np.errstate(invalid="ignore"):
        between = low + (place - below) * (high - low)
    return np.asarray(np.where(low == high, low, between), np.float64)  # also where both are infinite


def _means(d: Floats, question: SignificanceSettings) -> Floats:
    weights = question.weights
    if weights is None:
        return _resampled(d, question, lambda rows, counts: rows @ counts.T / rows.shape[1])
    return _resampled(d * weights, question, lambda rows, counts: rows @ counts.T / (counts @ weights))


def _t_values(d: Floats, question: SignificanceSettings) -> Floats:
    n = d.shape[1]
    if question.weights is not None:
        return _weighted_t_values(d, question.weights, question)
    centred = d - d.mean(axis=1, keepdims=True)
    squares = centred**2
    least = 1e-14 * squares.mean(axis=1, keepdims=True)

    def t_values(rows: Floats, counts: Floats) -> Floats:
        mean, spread = rows @ counts.T, squares @ counts.T
        mean /= n
        spread /= n
        spread -= mean**2
        spread[spread <= least] = 0.0  # a resample of one value only
        spread /= n - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            t: Floats = np.divide(mean, np.sqrt(spread, out=spread), out=mean)
        t[np.isnan(t)] = 0.0
        return t

    return _resampled(centred, question, t_values)


def _weighted_t_values(d: Floats, weights: Floats, question: SignificanceSettings) -> Floats:
    """The t value of each resample: its mean minus that of the data, over its own standard error."""
    n, squared = d.shape[1], np.square(weights)
    centred = d - weighted_mean(d, weights)[:, None]
    least = 1e-14 * (np.square(centred) @ squared / n)[:, None]

    def t_values(rows: Floats, counts: Floats) -> Floats:
        total = counts @ weights
        mean = (rows * weights) @ counts.T / total
        spread = (np.square(rows) * squared) @ counts.T
        spread -= mean * (2 * ((rows * squared) @ counts.T) - mean * (counts @ squared))  # Σ c w² (d − mean)²
        spread[spread <= n * least] = 0.0  # a resample of one value only
        with np.errstate(divide="ignore", invalid="ignore"):
            t: Floats = mean * total / np.sqrt(spread * n / (n - 1))
        t[np.isnan(t)] = 0.0
        return t

    return _resampled(centred, question, t_values)


def _resampled(d: Floats, question: SignificanceSettings, statistic: Callable[[Floats, Floats], Floats]) -> Floats:
    """The statistic of every resample for each row; all rows share the resamples."""
    answer = np.empty((len(d), question.resamples))
    start = 0
    for counts in _counts(d.shape[1], question):
        answer[:, start : start + len(counts)] = statistic(d, counts)
        start += len(counts)
    return answer


def tail_shares(values: Floats, at: Floats) -> tuple[Floats, Floats]:
    """The share of each row's values at or below, and at or above, a number; the data count as one of them."""
    total = values.shape[1] + 1
    near = 1e-12 * (np.abs(at) + _largest(values))
    lower = 1 + (values <= (at + near)[:, None]).sum(axis=1)
    upper = 1 + (values >= (at - near)[:, None]).sum(axis=1)
    return lower / total, upper / total


def _largest(values: Floats) -> Floats:
    """The largest absolute finite value of each row."""
    largest = np.maximum(values.max(axis=1), -values.min(axis=1))
    for row in np.flatnonzero(np.isinf(largest)):
        largest[row] = np.abs(values[row][np.isfinite(values[row])]).max(initial=0.0)
    return np.asarray(np.abs(largest), np.float64)


def _below(values: Floats, at: Floats) -> Floats:
    """The share of each row's values below a number, ties counted half, bounded away from 0 and 1."""
    lower, upper = tail_shares(values, at)
    edge = 1 / (values.shape[1] + 1)
    return np.clip((lower + 1 - upper) / 2, edge, 1 - edge)


def _limits(values: Floats, chance: Callable[[float], Floats], question: SignificanceSettings) -> tuple[Floats, Floats]:
    """The limits of each row's interval at the tail probabilities of the method; a tail of 0 leaves that side open."""
    below, above = question.tails
    chances = [chance(each) for each in ([below] if below else []) + ([1 - above] if above else [])]
    ends = list(quantiles(values, np.stack(chances, axis=1)).T)
    low = ends[0] if below else np.full(len(values), -np.inf)
    high = ends[-1] if above else np.full(len(values), np.inf)
    return low, high


class _Bootstrap(Test):
    p_from = "drawn"
    sampled = True
    needs_spread = True
    weighable = True

    def compute(self, a: Floats, b: Floats, question: SignificanceSettings) -> SignificanceValues:
        d = differences(a, b)
        p, low, high = question.in_batches(self.resampled, d)
        return SignificanceValues(p, weighted_mean(d, question.weights), low, high, False, question.resamples)

    @abstractmethod
    def resampled(self, d: Floats, question: SignificanceSettings) -> tuple[Floats, Floats, Floats]:
        """p, low and high of each row of differences."""


class Percentile(_Bootstrap):
    """Where do the means of resampled differences lie? The interval is their middle part; it is too narrow for few pairs."""

    name = "bootstrap"
    title = "bootstrap (percentile)"
    reference = "Efron (1979)"
    aliases = ("bootstrap-percentile", "percentile")
    interval = "percentile"
    too_sure = "few pairs"
    false_alarms = "6 to 8 % with 25 pairs, 9 % where 80 % of 25 or 50 tie"

    def resampled(self, d: Floats, question: SignificanceSettings) -> tuple[Floats, Floats, Floats]:
        means = _means(d, question)
        lower, upper = tail_shares(means, np.zeros(len(d)))
        low, high = _limits(means, lambda chance: np.full(len(d), chance), question)
        return p_from_tails(upper, lower, question.alternative), low, high


class BCa(_Bootstrap):
    """The percentile bootstrap corrected for bias and skewness; still somewhat narrow for few pairs."""

    name = "bootstrap-bca"
    title = "bootstrap (BCa)"
    reference = "Efron (1987)"
    aliases = ("bca",)
    interval = "bca"
    too_sure = "few pairs"
    false_alarms = "7 to 13 % with 25 pairs, 22 % where 80 % of them tie, 15 % where 80 % of 50 do"

    def resampled(self, d: Floats, question: SignificanceSettings) -> tuple[Floats, Floats, Floats]:
        from scipy.special import ndtr, ndtri  # type: ignore[import-untyped, unused-ignore]

        means, mean = _means(d, question), weighted_mean(d, question.weights)
        bias = ndtri(_below(means, mean))
        centred = d - mean[:, None] if question.weights is None else (d - mean[:, None]) * question.weights
        # The jackknife of a mean: leaving out one item moves it by that item's deviation, so its skewness is that of d.
        acceleration = (centred**3).sum(axis=1) / (6 * (centred**2).sum(axis=1) ** 1.5)

        def moved(chance: float) -> Floats:
            z = bias + ndtri(chance)
            return np.asarray(ndtr(bias + z / (1 - acceleration * z)), np.float64)

        low, high = _limits(means, moved, question)
        reach = ndtri(_below(means, np.zeros(len(d)))) - bias
        at_zero = ndtr(reach / (1 + acceleration * reach) - bias)  # the chance whose limit is 0
        return p_from_tails(1 - at_zero, at_zero, question.alternative), low, high


class Studentised(_Bootstrap):
    """The bootstrap of t values: each resampled mean is divided by its own standard error.

    This is the best of the three bootstraps if differences are skewed; it is too narrow if a few of them are huge.
    """

    name = "bootstrap-t"
    title = "bootstrap (studentised)"
    reference = "Efron (1982); Sakai (2006)"
    aliases = ("bootstrap-studentised", "bootstrap-studentized", "studentised")
    interval = "studentised"
    too_sure = "huge differences"
    false_alarms = "5 to 9 % with 25 pairs, 14 % where 80 % of them tie, 12 % where 80 % of 50 do"

    def resampled(self, d: Floats, question: SignificanceSettings) -> tuple[Floats, Floats, Floats]:
        weights = question.weights
        mean, error = (
            mean_and_error(d) if weights is None else (weighted_mean(d, weights), linearised_error(d, weights))
        )
        t = _t_values(d, question)
        lower, upper = tail_shares(t, mean / error)
        below, above = question.tails
        low, high = quantiles(t, np.tile([1 - below, above], (len(d), 1))).T
        ends = np.where(below > 0, mean - error * low, -np.inf), np.where(above > 0, mean - error * high, np.inf)
        return p_from_tails(lower, upper, question.alternative), *ends
