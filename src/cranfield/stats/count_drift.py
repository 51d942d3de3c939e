"""Whether counts have drifted between two periods, seen through a sample that was drawn from the first.

Item i was drawn with probability π_i when it had the count f_i; later it has g_i. Three questions: the later total of the
items that could have been drawn, Σ g / π; whether the items' shares have moved more than chance moves counts (the total
variation distance against its distribution without drift); and the shares of which items have moved.

The decision to know: an item that was drawn in proportion to its count was drawn when its count was high by chance. A
Poisson count that is drawn with a probability proportional to itself is 1 more than a Poisson count, so 1 is taken off
before counts of the two periods are compared. Counts that need at least `least` to be drawn at all are redrawn under the
same condition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.stats.sampled_means import ProbabilitySample, sampled_mean_and_error

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats

DRAWS = 1000  # of counts without drift
LARGE = 10_000.0  # standard deviation of a count from which its distribution is taken for normal
CELLS = 1_000_000  # of these counts in memory at once
ATTEMPTS = 50  # to draw a count that is at least `least`


@dataclass(frozen=True, eq=False)
class CountsOfTwoPeriods:
    """The counts of sampled items in two periods, and how the items were drawn from the first.

    `favoured` are items that were drawn in proportion to `then`, and not certain. `repeats` is the variance of a count over
    its mean: 1 if what is counted is independent, more if one person is counted repeatedly.
    """

    then: Floats
    now: Floats
    probability: Floats
    favoured: npt.NDArray[np.bool_]
    least: int = 1
    repeats: float = 1.0

    @property
    def represented(self) -> Floats:
        """The share of the first total that each item represents."""
        weights = self.then / self.probability
        return np.asarray(weights / weights.sum(), np.float64)

    @property
    def earlier(self) -> Floats:
        """The earlier counts, less what chance favoured."""
        return np.maximum(self.then - self.excess, 0)

    @property
    def excess(self) -> Floats:
        """By how much chance is expected to have favoured the earlier counts: by one independent lot of counts."""
        return np.asarray(self.favoured * self.repeats, np.float64)


class EstimatedTotal(NamedTuple):
    """The later total of all items that could have been drawn, with its standard error and degrees of freedom."""

    total: float
    error: float  # NaN if a stratum has one item that was drawn by chance
    freedom: int


def later_total(counts: CountsOfTwoPeriods, strata: npt.ArrayLike | None = None) -> EstimatedTotal:
    """Horvitz and Thompson's estimate of the later total, with Deville's variance for designs of fixed size.

    >>> part = CountsOfTwoPeriods(np.array([8, 1.0]), np.array([6, 3.0]), np.array([1, 0.5]), np.array([False, True]))
    >>> later_total(part).total
    12.0
    """
    sample = ProbabilitySample.of(counts.then, counts.probability, strata)
    [ratio], [error] = sampled_mean_and_error((counts.now / counts.then)[None], sample)
    earlier = float((counts.then / counts.probability).sum())
    return EstimatedTotal(float(ratio) * earlier, float(error) * earlier, sample.freedom)


class DriftDistance(NamedTuple):
    """The total variation distance between the shares of two periods, its mean without drift, and the p-value of no drift."""

    distance: float
    noise: float
    p: float

    @property
    def excess(self) -> float:
        """The distance beyond the mean of the noise."""
        return max(self.distance - self.noise, 0.0)


def drift_distance(counts: CountsOfTwoPeriods, rng: np.random.Generator, draws: int = DRAWS) -> DriftDistance:
    """How far the shares of the items have moved, against counts that are redrawn without drift."""
    if not counts.now.any():
        return DriftDistance(1.0, 1.0, 1.0)
    block = max(1, CELLS // len(counts.now))
    sizes = [min(block, draws - start) for start in range(0, draws, block)]
    distances = np.concatenate([_distance(*_redrawn(counts, rng, size), counts) for size in sizes])
    distance = float(_distance(counts.then[None], counts.now[None], counts)[0])
    beyond = int(np.sum(distances >= distance * (1 - 1e-12)))
    return DriftDistance(distance, float(distances.mean()), (1 + beyond) / (1 + draws))


def _redrawn(counts: CountsOfTwoPeriods, rng: np.random.Generator, draws: int) -> tuple[Floats, Floats]:
    """Counts of both periods without drift, a row for each draw: an item keeps the sum of its two counts.

    The earlier count is at least `least`; an item that never reaches that keeps its own counts.
    """
    both = counts.earlier + counts.now
    most = both + counts.excess - counts.least  # of the later count
    share = _share_without_drift(counts, both, most)
    # What one person repeats is drawn together: counts are made of lots of that size, the last of which may be a part.
    lots = both / counts.repeats
    whole = np.floor(lots)
    shape = (draws, len(both))
    tickets = (whole + (rng.random(shape) < lots - whole)).astype(np.int64)
    now = np.minimum(rng.binomial(tickets, share) * counts.repeats, both)
    for _ in range(ATTEMPTS):
        again = np.nonzero(now > most)
        if not len(again[0]):
            break
        now[again] = np.minimum(rng.binomial(tickets[again], share) * counts.repeats, both[again[1]])
    now = np.where(now > most, counts.now, now)
    return both - now + counts.excess, now


def _share_without_drift(counts: CountsOfTwoPeriods, both: Floats, most: Floats) -> float:
    """The later period's share of counts, if it is the same for all items, and earlier counts below `least` are not seen.

    The mean of a binomial count that is at most m is n p P(count of n − 1 < m) / P(count ≤ m); the sum of these means is
    the sum of the later counts.
    """
    from scipy.special import betainc  # type: ignore[import-untyped, unused-ignore]

    n, m = np.rint(both / counts.repeats), np.floor(most / counts.repeats + 1e-9)
    free = (n > 0) & (m >= 0)
    n, m, later = n[free], np.minimum(m, n)[free], float(counts.now[free].sum()) / counts.repeats
    low, high = 0.0, 1.0
    for _ in range(50):
        share = (low + high) / 2
        # betainc(n - k, k + 1, 1 - p) is the probability that a binomial count is at most k.
        rest = np.maximum(n - m, 1)
        seen = np.maximum(betainc(rest, m + 1, 1 - share), 1e-300)
        unbound = np.where(m > 0, betainc(rest, np.maximum(m, 1), 1 - share), 0)
        mean = np.where(m >= n, n * share, np.minimum(n * share * unbound / seen, m))
        low, high = (share, high) if mean.sum() < later else (low, share)
    return (low + high) / 2


def _distance(then: Floats, now: Floats, counts: CountsOfTwoPeriods) -> Floats:
    """Half the sum of |share now − share then| over all items that could have been drawn, estimated from each row."""
    # An item that was drawn in proportion to its count represents the same share, whatever that count is.
    weights = np.where(counts.favoured, counts.represented, counts.represented * then / counts.then)
    ratios = now / np.maximum(then, 1)
    mean = (weights * ratios).sum(axis=1, keepdims=True)
    moved = np.abs(ratios / np.where(mean > 0, mean, 1) - 1)
    distance = (weights * moved).sum(axis=1) / weights.sum(axis=1) / 2
    return np.asarray(np.where(mean[:, 0] > 0, distance, 1.0), np.float64)


def shifted_shares(counts: CountsOfTwoPeriods) -> tuple[Floats, Floats]:
    """For each item, how often its count has grown compared with the other items', and the p-value of no change.

    The ratio compares the item's growth with that of all other items together. The p-value is Fisher's exact one with its
    smaller tail doubled; counts of repeats are divided by their repeats first.

    >>> counts = CountsOfTwoPeriods(np.full(3, 100.0), np.array([200.0, 100, 100]), np.ones(3), np.zeros(3, bool))
    >>> ratio, p = shifted_shares(counts)
    >>> ratio.round(2).tolist(), (p < 0.001).tolist()
    ([2.0, 0.67, 0.67], [True, False, False])
    """
    earlier, now = counts.earlier, counts.now
    rest_then, rest_now = earlier.sum() - earlier, now.sum() - now
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (now / earlier) / (rest_now / rest_then)
    a, b, c, d = (np.rint(each / counts.repeats) for each in (now, earlier, rest_now, rest_then))
    size, both, later = a + b + c + d, a + b, a + c
    tails = [
        _smaller_tail(*each) for each in zip(a.tolist(), both.tolist(), later.tolist(), size.tolist(), strict=True)
    ]
    return np.asarray(ratio, np.float64), np.minimum(2 * np.array(tails), 1.0)


def _smaller_tail(count: float, both: float, later: float, size: float) -> float:
    """The smaller tail of the hypergeometric distribution that includes a count: `both` drawn of `size`, `later` of a kind.

    Terms further than 12 standard deviations away are left out. SciPy adds all terms up, which takes long for large counts.

    >>> from scipy.stats import hypergeom
    >>> bool(abs(_smaller_tail(7, 9, 20, 40) - hypergeom.sf(6, 40, 20, 9)) < 1e-12)
    True
    """
    from scipy.special import gammaln, ndtr  # type: ignore[import-untyped, unused-ignore]

    share = later / size if size else 0.0
    mean, spread = both * share, math.sqrt(both * share * (1 - share) * (size - both) / max(size - 1, 1))
    if spread > LARGE:
        return float(ndtr(-(abs(count - mean) - 0.5) / spread))
    side = 1 if count >= mean else -1
    end = count + side * math.ceil(12 * spread + 50)
    low, high = max(min(count, end), 0, both - (size - later)), min(max(count, end), both, later)
    k = np.arange(low, high + 1)
    whole = gammaln(both + 1) + gammaln(size - both + 1) - gammaln(size + 1)
    inside = gammaln(later + 1) - gammaln(k + 1) - gammaln(later - k + 1)
    outside = gammaln(size - later + 1) - gammaln(both - k + 1) - gammaln(size - later - both + k + 1)
    return float(np.exp(whole + inside + outside).sum())
