"""How well does a way of measuring tell groups apart? Achieved significance levels, discriminative power, swap rates.

The first two read the p-values of all pairs, whatever test gave them. The swap method (Voorhees and Buckley, 2002) needs
none: it asks how often two separate sets of blocks disagree on which of two groups is better, by how far apart the
first set has them. Neither says that what is measured is worth measuring.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import DataError
from cranfield.stats.tables import block_table, probability

if TYPE_CHECKING:
    from numpy.random import Generator

    from cranfield.stats.ties import Floats, Ints

__all__ = [
    "Discrimination",
    "SwapRates",
    "achieved_levels",
    "bootstrap_difference_needed",
    "discrimination",
    "swap_rates",
]


MOST_BINS = 1_000_000
ROUNDING = 1e-12  # means closer than this, relative to the largest value, are equal


@dataclass(frozen=True)
class Discrimination:
    """The pairs of groups that a test tells apart."""

    levels: Floats  # p-values of all pairs, largest first: the achieved significance level curve
    alpha: float
    significant: int
    pairs: int
    without: int = 0  # pairs without a p-value; they count as not told apart
    needed: float = nan  # every pair further apart than this was significant; NaN without differences

    @property
    def power(self) -> float:
        """The share of pairs with p below alpha."""
        return self.significant / self.pairs


@dataclass(frozen=True)
class SwapRates:
    """How often two sets of blocks disagree about a pair, by the difference in the first set: one entry a bin."""

    edges: Floats  # lower ends of the bins; the last is open
    compared: Ints
    swapped: Ints
    size: int  # blocks in each set
    trials: int

    @property
    def rates(self) -> Floats:
        """The share that swapped; NaN in empty bins."""
        out = np.full(len(self.compared), nan)
        np.divide(self.swapped, self.compared, out=out, where=self.compared > 0)
        return out

    @property
    def overall(self) -> float:
        """The share of all comparisons that swapped."""
        return float(self.swapped.sum() / self.compared.sum())

    def needed(self, rate: float = 0.05) -> float:
        """The smallest difference from which on every bin swaps at most this often; NaN if the last one does not."""
        above = np.flatnonzero(np.nan_to_num(self.rates, nan=0.0) > rate)
        first = int(above[-1]) + 1 if len(above) else 0
        last = int(np.flatnonzero(self.compared)[-1])
        return float(self.edges[first]) if first <= last else nan

    def sensitivity(self, rate: float = 0.05) -> float:
        """The share of comparisons that lie at least as far apart as needed."""
        needed = self.needed(rate)
        return float(self.compared[self.edges >= needed].sum() / self.compared.sum()) if needed == needed else 0.0


def achieved_levels(p: Any) -> Floats:
    """The p-values of all pairs, largest first, from a groups × groups matrix or a list of pairs; NaN are left out.

    >>> achieved_levels([[1, 0.02, 0.5], [0.02, 1, 0.3], [0.5, 0.3, 1]]).tolist()
    [0.5, 0.3, 0.02]
    """
    values = _of_pairs(p, "p-values")
    if ((values < 0) | (values > 1)).any():
        raise DataError("expected p-values between 0 and 1")
    return np.asarray(np.sort(values[~np.isnan(values)])[::-1], np.float64)


def discrimination(p: Any, differences: Any = None, alpha: float = 0.05) -> Discrimination:
    """Discriminative power (Sakai, 2006): the share of pairs that a test tells apart, and the difference that it takes.

    >>> found = discrimination([0.5, 0.3, 0.02, 0.001], [0.01, 0.02, 0.05, -0.08])
    >>> found.power, found.needed
    (0.5, 0.02)
    """
    probability("alpha", alpha)
    values, levels = _of_pairs(p, "p-values"), achieved_levels(p)
    if not len(values):
        raise DataError("expected the p-value of one pair or more, found none")
    apart = np.nan_to_num(values, nan=1.0) < alpha
    needed = nan
    if differences is not None:
        sizes = np.abs(_of_pairs(differences, "differences"))
        if sizes.shape != values.shape:
            raise DataError(f"expected a difference for each p-value, found {len(sizes)} for {len(values)}")
        needed = float(sizes[~apart].max(initial=0.0))
    return Discrimination(levels, alpha, int(apart.sum()), len(values), int(np.isnan(values).sum()), needed)


def bootstrap_difference_needed(
    table: Any, alpha: float = 0.05, resamples: int = 1_000, rng: Generator | None = None
) -> float:
    """Sakai's estimate of the difference in means it takes: the largest over pairs of what chance alone reaches.

    For each pair the blocks are drawn again from differences moved to a mean of 0; the pair's estimate is the value
    that a share `alpha` of the absolute means reaches.

    >>> table = np.random.default_rng(1).normal(0, [0.1, 0.1, 0.2], (50, 3))
    >>> round(bootstrap_difference_needed(table, rng=np.random.default_rng(0)), 3)
    0.053
    """
    probability("alpha", alpha)
    values = block_table(table)
    if resamples < 1:
        raise DataError(f"resamples must be 1 or more, got {resamples}")
    rng = np.random.default_rng(0) if rng is None else rng
    blocks = len(values)
    counts = rng.multinomial(blocks, np.full(blocks, 1 / blocks), size=resamples)
    chance = counts @ (values - values.mean(axis=0)) / blocks  # resamples × groups
    place = resamples - max(1, int(alpha * resamples))
    most = 0.0
    for i in range(values.shape[1] - 1):
        apart = np.abs(chance[:, i + 1 :] - chance[:, i, None])
        most = max(most, float(np.partition(apart, place, axis=0)[place].max()))
    return most


def swap_rates(
    table: Any, size: int | None = None, width: float | None = None, trials: int = 1_000, rng: Generator | None = None
) -> SwapRates:
    """Draw two separate sets of blocks, compare every pair of groups on each, and count where the order swaps.

    `size` is the number of blocks in a set, half of all unless told; bins are `width` wide, unless told 0.01 where the
    values span 1 at most, else a hundredth of what they span. A pair that is tied in either set does not swap.

    >>> found = swap_rates([[1, 2], [1, 2], [1, 3], [2, 4]], width=1.0, rng=np.random.default_rng(0))
    >>> found.overall, found.compared.tolist()
    (0.0, [0, 857, 143])
    """
    values = block_table(table)
    size = len(values) // 2 if size is None else size
    if not 1 <= size <= len(values) // 2:
        raise DataError(f"swap rates: a set must hold 1 to {len(values) // 2} of {len(values)} blocks, got {size}")
    span = float(np.ptp(values))
    width = max(0.01, span / 100 * (span > 1)) if width is None else width
    if not width > span / MOST_BINS or trials < 1:
        least = f"above {span / MOST_BINS:.3g}"
        raise DataError(f"swap rates: expected a width {least} and one trial or more, got {width} and {trials}")
    rng = np.random.default_rng(0) if rng is None else rng
    one, other = np.triu_indices(values.shape[1], 1)
    compared, swapped = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for _ in range(trials):
        order = rng.permutation(len(values))
        first, second = (
            _settled(part[one] - part[other], values)
            for part in (values[order[:size]].mean(axis=0), values[order[size : 2 * size]].mean(axis=0))
        )
        place = np.floor(np.abs(first) / width + 1e-9).astype(np.int64)
        compared = _added(compared, np.bincount(place))
        swapped = _added(swapped, np.bincount(place[first * second < 0]))
    swapped = _added(swapped, np.zeros(len(compared), np.int64))
    return SwapRates(np.arange(len(compared), dtype=np.float64) * width, compared, swapped, size, trials)


def _of_pairs(pairs: Any, what: str) -> Floats:
    values = np.asarray(pairs, np.float64)
    if values.ndim == 2 and values.shape[0] == values.shape[1]:
        return np.asarray(values[np.triu_indices(len(values), 1)], np.float64)
    if values.ndim != 1:
        raise DataError(f"expected the {what} of all pairs as a square matrix or a list, found {values.shape}")
    return values


def _settled(differences: Floats, values: Floats) -> Floats:
    """Differences of means, with those that are nothing but rounding set to 0."""
    return np.where(np.abs(differences) <= ROUNDING * np.abs(values).max(), 0.0, differences)


def _added(total: Ints, some: Ints) -> Ints:
    if len(some) > len(total):
        total = np.pad(total, (0, len(some) - len(total)))
    total[: len(some)] += some
    return total
