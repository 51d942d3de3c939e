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

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats

DRAWS = 1000  # of counts without drift
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
    ratios, chance = counts.now / counts.probability, 1 - counts.probability
    names = np.zeros(len(ratios)) if strata is None else np.unique(np.asarray(strata), return_inverse=True)[1]
    variance, freedom = 0.0, 0
    for name in np.unique(names):
        drawn = (names == name) & (chance > 0)
        if drawn.sum() == 1:
            variance = math.nan
        elif drawn.any():
            c = chance[drawn]
            a = c / c.sum()
            centred = ratios[drawn] - a @ ratios[drawn]
            variance += float(c @ np.square(centred)) / (1 - float(a @ a))
            freedom += int(drawn.sum()) - 1
    return EstimatedTotal(float(ratios.sum()), math.sqrt(variance), freedom)


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
    earlier, both = counts.earlier, counts.earlier + counts.now
    if not counts.now.any():
        return DriftDistance(1.0, 1.0, 1.0)
    share_now = counts.now.sum() / both.sum()
    # Counts of repeats are redrawn in lots of that size.
    lots = np.maximum(both / counts.repeats, 0)
    whole = np.floor(lots)
    distances = np.empty(draws)
    for i in range(draws):
        tickets = (whole + (rng.random(len(lots)) < lots - whole)).astype(np.int64)
        now = _redrawn(tickets, float(share_now), earlier, counts, rng)
        distances[i] = _distance(np.maximum(both - now, 0) + counts.excess, now, counts)
    distance = _distance(counts.then, counts.now, counts)
    beyond = int(np.sum(distances >= distance * (1 - 1e-12)))
    return DriftDistance(distance, float(distances.mean()), (1 + beyond) / (1 + draws))


def _redrawn(
    tickets: npt.NDArray[np.int64],
    share: float,
    earlier: Floats,
    counts: CountsOfTwoPeriods,
    rng: np.random.Generator,
) -> Floats:
    """Later counts without drift, such that the earlier ones are at least `least`; the own count if that never happens."""
    both = earlier + counts.now
    now = np.minimum(rng.binomial(tickets, share) * counts.repeats, both)
    for _ in range(ATTEMPTS):
        few = both - now + counts.excess < counts.least
        if not few.any():
            return np.asarray(now, np.float64)
        now[few] = np.minimum(rng.binomial(tickets[few], share) * counts.repeats, both[few])
    return np.where(both - now + counts.excess < counts.least, counts.now, now)


def _distance(then: Floats, now: Floats, counts: CountsOfTwoPeriods) -> float:
    """Half the sum of |share now − share then| over all items that could have been drawn, estimated from the sample."""
    # An item that was drawn in proportion to its count represents the same share, whatever that count is.
    weights = np.where(counts.favoured, counts.represented, counts.represented * then / counts.then)
    ratios = now / np.maximum(then, 1)
    mean = weights @ ratios
    return float(weights @ np.abs(ratios / mean - 1) / weights.sum() / 2) if mean > 0 else 1.0


def shifted_shares(counts: CountsOfTwoPeriods) -> tuple[Floats, Floats]:
    """For each item, how often its count has grown compared with the other items', and the p-value of no change.

    The ratio compares the item's growth with that of all other items together. The p-value is Fisher's exact one with its
    smaller tail doubled; counts of repeats are divided by their repeats first.

    >>> counts = CountsOfTwoPeriods(np.full(3, 100.0), np.array([200.0, 100, 100]), np.ones(3), np.zeros(3, bool))
    >>> ratio, p = shifted_shares(counts)
    >>> ratio.round(2).tolist(), (p < 0.001).tolist()
    ([2.0, 0.67, 0.67], [True, False, False])
    """
    from scipy.stats import hypergeom  # type: ignore[import-untyped, unused-ignore]

    earlier, now = counts.earlier, counts.now
    rest_then, rest_now = earlier.sum() - earlier, now.sum() - now
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (now / earlier) / (rest_now / rest_then)
    a, b, c, d = (np.rint(each / counts.repeats) for each in (now, earlier, rest_now, rest_then))
    size, both, later = a + b + c + d, a + b, a + c
    low, high = hypergeom.cdf(a, size, both, later), hypergeom.sf(a - 1, size, both, later)
    return np.asarray(ratio, np.float64), np.minimum(2 * np.minimum(low, high), 1.0)
