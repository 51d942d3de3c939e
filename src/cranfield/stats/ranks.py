"""How sure is a ranking? The ranks that groups take when the blocks are drawn again, with replacement.

Means that are equal but for rounding share a rank: the interval then runs from the best to the worst they could take,
and they share the chance of being first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cranfield.errors import DataError
from cranfield.parameters import refuse_below
from cranfield.stats.bootstrap import resample_counts
from cranfield.stats.tables import block_table, even, probability
from cranfield.stats.ties import tied_ranks
from cranfield.stats.weighing import weighted_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator

    from cranfield.stats.ties import Floats, Ints


CELLS = 1 << 20


@dataclass(frozen=True)
class RankIntervals:
    """Ranks from 1, the highest mean; one entry a group, in the table's order."""

    means: Floats
    ranks: Floats  # as observed; tied groups share the mean of theirs
    low: Ints  # the best rank of the interval
    high: Ints  # the worst
    first: Floats  # how often the group comes first
    expected: Floats  # the mean rank over all draws
    above: Floats  # groups × groups: how often the row's group comes above the column's; a tie is half
    level: float
    resamples: int


def rank_intervals(
    table: Any,
    level: float = 0.95,
    resamples: int = 10_000,
    rng: Generator | None = None,
    weights: Floats | None = None,
) -> RankIntervals:
    """The interval of each group's rank by the bootstrap over blocks (and their weights), and its chance of being first.

    >>> found = rank_intervals([[1, 2, 9], [3, 2, 9], [2, 1, 9], [1, 2, 9]], rng=np.random.default_rng(1))
    >>> found.ranks.tolist(), found.low.tolist(), found.high.tolist(), found.first.tolist()
    ([2.5, 2.5, 1.0], [2, 2, 1], [3, 3, 1], [0.0, 0.0, 1.0])
    """
    probability("level", level)
    values = block_table(table, groups=1)
    if resamples < 1:
        raise DataError(f"resamples must be 1 or more, got {resamples}")
    refuse_below(1, resamples=resamples)
    groups = values.shape[1]
    best, worst = np.empty((resamples, groups), np.int32), np.empty((resamples, groups), np.int32)
    above = np.zeros((groups, groups))
    at = 0
    for means in _drawn_means(values, resamples, rng, weights):
        rows = slice(at, at + len(means))
        best[rows], worst[rows] = _best_and_worst(means)
        above += _above(means)
        at += len(means)
    leads = best == 1
    tail = (1 - level) / 2
    means = values.mean(axis=0) if weights is None else weighted_mean(values.T, weights)
    observed = _best_and_worst(even(means[None], values))
    return RankIntervals(
        means=means,
        ranks=np.asarray((observed[0] + observed[1])[0] / 2, np.float64),
        low=np.quantile(best, tail, axis=0, method="lower").astype(np.int64),
        high=np.quantile(worst, 1 - tail, axis=0, method="higher").astype(np.int64),
        first=np.asarray((leads / leads.sum(axis=1, keepdims=True)).mean(axis=0), np.float64),
        expected=np.asarray((best.mean(axis=0) + worst.mean(axis=0)) / 2, np.float64),
        above=above / resamples,
        level=level,
        resamples=resamples,
    )


def first_in_redraws(
    table: Any, resamples: int = 10_000, rng: Generator | None = None, weights: Floats | None = None
) -> Floats:
    """How often each group has the highest mean when the blocks are drawn again; groups that tie share the draw.

    No chance of being the best: of eight equal groups one leads in about half of the draws, whichever the data favour.

    >>> first_in_redraws([[1, 2, 9], [3, 2, 9], [2, 1, 9]], 100).tolist()
    [0.0, 0.0, 1.0]
    """
    values = block_table(table, groups=1)
    if resamples < 1:
        raise DataError(f"resamples must be 1 or more, got {resamples}")
    times = np.zeros(values.shape[1])
    for means in _drawn_means(values, resamples, rng, weights):
        leads = means == means.max(axis=1, keepdims=True)
        times += (leads / leads.sum(axis=1, keepdims=True)).sum(axis=0)
    return times / resamples


def _drawn_means(
    values: Floats, resamples: int, rng: Generator | None, weights: Floats | None = None
) -> Iterator[Floats]:
    """Means of tables whose blocks were drawn with replacement, with their weights if they have any, some at a time."""
    rng = np.random.default_rng(0) if rng is None else rng
    for times in resample_counts(len(values), resamples, rng, max(1, CELLS // max(values.shape))):
        if weights is None:
            yield even(times @ values / len(values), values)
        else:
            yield even((times * weights) @ values / (times @ weights)[:, None], values)


def _best_and_worst(means: Floats) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    best, worst = tied_ranks(-means)
    return best.astype(np.int32), worst.astype(np.int32)


def _above(means: Floats) -> Floats:
    groups = means.shape[1]
    higher = np.zeros((groups, groups))
    step = max(1, CELLS // groups**2)
    for start in range(0, len(means), step):
        some = means[start : start + step]
        higher += (some[:, :, None] > some[:, None, :]).sum(axis=0)
    return np.asarray((higher + (len(means) - higher.T)) / 2, np.float64)
