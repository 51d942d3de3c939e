"""Two groups that were each tried several times on the same blocks: a difference that must hold for new blocks and new tries.

If the tries are averaged and the test is over blocks, these tries replace the group: with more blocks the test
becomes ever more certain of a difference that another try would not show. Here the standard error of the mean
difference has a part for blocks and a part for the tries of each group, with Satterthwaite's degrees of freedom. A
group that was tried once is treated as deterministic, because its variance is unknown; `reason` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import DataError
from cranfield.stats.block_tables import block_table, no_error, probability
from cranfield.stats.equivalence import Equivalence, decision
from cranfield.stats.paired import t_p
from cranfield.stats.two_sample_test import Alternative, check_alternative

if TYPE_CHECKING:
    from cranfield.stats.ties import Floats


@dataclass(frozen=True)
class CrossedDifference:
    """The mean difference b − a, and its uncertainty due to blocks and replicates."""

    difference: float
    error: float  # standard error
    df: float
    statistic: float
    p: float  # NaN where it cannot be had; then `reason` says why
    low: float
    high: float
    level: float
    blocks: int
    replicates: tuple[int, int]
    from_blocks: float  # parts of the squared standard error
    from_replicates: tuple[float, float]
    p_blocks: float  # what the paired t-test of the averages says, which knows of no replicates
    reason: str = ""


def crossed_difference(
    a: Any, b: Any, level: float = 0.95, alternative: Alternative = "two-sided"
) -> CrossedDifference:
    """Test b − a where `a` is blocks × its replicates and `b` the same blocks × its own.

    >>> a = [[0.1, 0.2], [0.3, 0.4], [0.2, 0.2], [0.5, 0.6]]
    >>> b = [[0.3, 0.2], [0.4, 0.5], [0.5, 0.3], [0.6, 0.8]]
    >>> found = crossed_difference(a, b)
    >>> round(found.difference, 4), round(found.p, 3), round(found.p_blocks, 3)
    (0.1375, 0.113, 0.01)
    """
    probability("level", level)
    check_alternative(alternative)
    first, second = block_table(a, groups=1), block_table(b, groups=1)
    if len(first) != len(second):
        raise DataError(f"expected the same blocks for both groups, found {len(first)} and {len(second)}")
    blocks = len(first)
    averages = second.mean(axis=1) - first.mean(axis=1)
    difference, block_part = float(averages.mean()), float(averages.var(ddof=1)) / blocks
    parts = [_replicate_part(values) for values in (first, second)]
    from_replicates = (parts[0][0], parts[1][0])
    shape = (blocks, (first.shape[1], second.shape[1]), block_part, from_replicates)
    spread = sum(float(np.square(values - values.mean(axis=1, keepdims=True)).sum()) for values in (first, second))
    both = np.hstack([first, second])
    if no_error(both, spread + block_part * blocks * (blocks - 1)):
        reason = "all differences are 0" if no_error(both, difference**2) else "all differences are equal"
        return CrossedDifference(difference, 0.0, nan, nan, nan, nan, nan, level, *shape, nan, reason)
    squared = block_part + sum(from_replicates)
    terms = [(block_part, blocks - 1), *parts[0][1], *parts[1][1]]
    df = squared**2 / sum(part**2 / own for part, own in terms if part)
    error = sqrt(squared)
    p = float(t_p(difference / error, df, alternative))
    p_blocks = float(t_p(difference / sqrt(block_part), blocks - 1, alternative)) if block_part > 0 else nan
    low, high = _interval(difference, error, df, level, alternative)
    return CrossedDifference(
        difference, error, df, difference / error, p, low, high, level, *shape, p_blocks, _once(first, second)
    )


def _replicate_part(values: Floats) -> tuple[float, list[tuple[float, int]]]:
    """The part of replicates in the squared error of a group's mean, and its mean squares with degrees of freedom.

    The variance of the replicates' means includes the residual, which the variance over blocks already contains.
    """
    blocks, replicates = values.shape
    if replicates == 1:
        return 0.0, []
    means = values.mean(axis=0)
    residual = values - means - values.mean(axis=1, keepdims=True) + values.mean()
    of_means = float(means.var(ddof=1)) / replicates
    residual_share = float(np.square(residual).sum()) / ((blocks - 1) * (replicates - 1)) / (blocks * replicates)
    if of_means <= residual_share:
        return 0.0, []
    return of_means - residual_share, [(of_means, replicates - 1), (residual_share, (blocks - 1) * (replicates - 1))]


def _interval(difference: float, error: float, df: float, level: float, alternative: str) -> tuple[float, float]:
    from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

    margin = error * float(stdtrit(df, (1 + level) / 2 if alternative == "two-sided" else level))
    low = -inf if alternative == "less" else difference - margin
    high = inf if alternative == "greater" else difference + margin
    return low, high


def _once(first: Floats, second: Floats) -> str:
    single = [name for name, values in (("first", first), ("second", second)) if values.shape[1] == 1]
    if not single:
        return ""
    if len(single) == 2:
        return "both groups have one replicate and are taken to be deterministic"
    return f"the {single[0]} group has one replicate and is taken to be deterministic"


def crossed_equivalence(kind: str, a: Floats, b: Floats, margin: float, alpha: float) -> Equivalence:
    """Equivalence or non-inferiority of b with respect to blocks and replicates: the difference moved by the margin.

    >>> a = np.array([[0.1, 0.2], [0.3, 0.4], [0.2, 0.2], [0.5, 0.6]])
    >>> crossed_equivalence("equivalence", a, a[:, ::-1] + 0.01, 0.2, 0.05).decision
    'equivalent'
    """
    within = crossed_difference(a, b, 1 - 2 * alpha)
    p_above = crossed_difference(a, b + margin, alternative="greater").p
    p_below = crossed_difference(a, b - margin, alternative="less").p
    p = max(p_above, p_below) if kind == "equivalence" else p_above
    verdict = decision(kind, p <= alpha, within.low, within.high, margin)
    numbers = (margin, alpha, len(a), within.difference, within.low, within.high, p_above, p_below, p)
    return Equivalence(kind, *numbers, p <= alpha, verdict, within.reason if p != p else "")
