"""Split-half reliability: would the other half of the blocks have told the same story of the groups?

Blocks are split at random, many times; each time the groups' means on one half are correlated with those on the other.
Spearman and Brown's formula steps Pearson's r up from half the blocks to all of them; it is a statement about
that coefficient only, and the rank correlations are given as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import DataError
from cranfield.stats.correlation import COEFFICIENTS, correlation
from cranfield.stats.tables import block_table, even, probability

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.random import Generator

    from cranfield.stats.ties import Floats

__all__ = ["SplitHalf", "spearman_brown", "split_half", "split_sizes"]


@dataclass(frozen=True)
class SplitHalf:
    """The correlation between two separate sets of blocks, over many splits."""

    kind: str
    size: int  # blocks in each set
    trials: int
    mean: float  # NaN where it cannot be had; then `reason` says why
    low: float  # the interval that holds `level` of the splits
    high: float
    stepped_up: float  # Spearman–Brown: of two such sets together; NaN for rank correlations
    level: float
    values: Floats  # of the single splits
    undefined: int = 0  # splits without a value
    reason: str = ""


def spearman_brown(r: float, factor: float = 2.0) -> float:
    """The reliability of a measurement `factor` times as long.

    >>> spearman_brown(0.6)
    0.7499999999999999
    """
    return factor * r / (1 + (factor - 1) * r) if 1 + (factor - 1) * r > 0 else nan


def split_half(
    table: Any,
    kind: str = "pearson",
    trials: int = 1_000,
    rng: Generator | None = None,
    level: float = 0.95,
    size: int | None = None,
) -> SplitHalf:
    """Correlate the groups' means on random halves of the blocks; of an odd number one block is left out each time.

    `kind` is any correlation by name; `size` asks for smaller sets than halves.

    >>> found = split_half([[1, 2, 3], [2, 3, 4], [0, 1, 2], [4, 5, 6]], rng=np.random.default_rng(0))
    >>> round(found.mean, 6), round(found.stepped_up, 6)
    (1.0, 1.0)
    """
    probability("level", level)
    values = block_table(table)
    size = len(values) // 2 if size is None else size
    if kind not in COEFFICIENTS:
        raise DataError(f"no correlation {kind!r}; there are {', '.join(COEFFICIENTS)}")
    if not 1 <= size <= len(values) // 2:
        raise DataError(f"split-half: a set must hold 1 to {len(values) // 2} of {len(values)} blocks, got {size}")
    if trials < 1:
        raise DataError(f"split-half: expected one trial or more, got {trials}")
    rng = np.random.default_rng(0) if rng is None else rng
    correlations = np.array([correlation(kind, *_two_means(values, size, rng)) for _ in range(trials)])
    kept = correlations[~np.isnan(correlations)]
    if not len(kept):
        reason = "the groups have equal means in one half of every split"
        return SplitHalf(kind, size, trials, nan, nan, nan, nan, level, correlations, trials, reason)
    tail = (1 - level) / 2
    low, high = np.quantile(kept, [tail, 1 - tail]).tolist()
    stepped_up = spearman_brown(float(kept.mean())) if kind == "pearson" else nan
    undefined = trials - len(kept)
    return SplitHalf(kind, size, trials, float(kept.mean()), low, high, stepped_up, level, correlations, undefined)


def split_sizes(
    table: Any,
    sizes: Iterable[int],
    kind: str = "tau",
    trials: int = 200,
    rng: Generator | None = None,
    level: float = 0.95,
    progress: Callable[[int, int | None], None] | None = None,
) -> list[SplitHalf]:
    """The same for several sizes of the two sets: how agreement grows with the number of blocks."""
    rng = np.random.default_rng(0) if rng is None else rng
    wanted = list(sizes)
    splits = []
    for done, size in enumerate(wanted, 1):
        splits.append(split_half(table, kind, trials, rng, level, size))
        if progress:
            progress(done, len(wanted))
    return splits


def _two_means(values: Floats, size: int, rng: Generator) -> tuple[Floats, Floats]:
    order = rng.permutation(len(values))
    first, second = values[order[:size]], values[order[size : 2 * size]]
    return even(first.mean(axis=0), values), even(second.mean(axis=0), values)
