"""Is a difference too small to matter? "Not significant" does not say so; these tests can.

Equivalence is shown by two one-sided t-tests (TOST): the difference is significantly above −margin and significantly
below margin, which is the same as the interval of level 1 − 2 alpha lying within the margins. Non-inferiority is the
first half alone. The user must choose the margin before looking at the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cranfield.base.errors import DataError
from cranfield.stats.interval_limits import above, below
from cranfield.stats.paired import t_limits
from cranfield.stats.ties import differences, rounding, two_samples
from cranfield.stats.unpaired import welch_error

if TYPE_CHECKING:
    from cranfield.stats.ties import Floats


@dataclass(frozen=True)
class Equivalence:
    """The result of a test against margins. `p` is the larger p-value if both tests are needed."""

    kind: str
    """"equivalence" or "non-inferiority"."""
    margin: float
    alpha: float
    n: int
    difference: float
    low: float
    """The interval of the difference at level 1 − 2 alpha; equivalence is shown if it lies within the margins."""
    high: float
    p_above: float
    """The p-value of the test that the difference is above −margin."""
    p_below: float
    """The p-value of the test that the difference is below margin; non-inferiority does not use it."""
    p: float
    significant: bool
    decision: str
    reason: str = ""


def tost(a: npt.ArrayLike, b: npt.ArrayLike, margin: float, *, alpha: float = 0.05, paired: bool = True) -> Equivalence:
    """Whether b − a lies within −margin … margin, by two one-sided t-tests (unpaired: Welch's).

    >>> found = tost([0.50, 0.40, 0.60, 0.55], [0.51, 0.40, 0.59, 0.56], margin=0.05)
    >>> found.decision, round(found.p, 4)
    ('equivalent', 0.0011)
    """
    return _tested("equivalence", a, b, margin, alpha, paired)


def non_inferiority(
    a: npt.ArrayLike, b: npt.ArrayLike, margin: float, *, alpha: float = 0.05, paired: bool = True
) -> Equivalence:
    """Whether b is worse than a by less than the margin, higher values being better.

    >>> non_inferiority([0.50, 0.40, 0.60, 0.55], [0.51, 0.40, 0.59, 0.56], margin=0.05).decision
    'not inferior'
    """
    return _tested("non-inferiority", a, b, margin, alpha, paired)


def _tested(kind: str, a: npt.ArrayLike, b: npt.ArrayLike, margin: float, alpha: float, paired: bool) -> Equivalence:
    from scipy.special import stdtr  # type: ignore[import-untyped, unused-ignore]

    if not (margin > 0 and math.isfinite(margin)):
        raise DataError(f"margin must be a positive number, got {margin}")
    if not 0 < alpha < 0.5:
        raise DataError(f"alpha must be between 0 and 0.5, got {alpha}")
    one, other = two_samples(a, b, paired)
    n = min(len(one), len(other))
    reason = _undefined(one, other, paired)
    if reason:
        difference, nan = float(np.mean(other) - np.mean(one)) if n else math.nan, math.nan
        return Equivalence(kind, margin, alpha, n, difference, nan, nan, nan, nan, nan, False, "undecided", reason)
    mean, error, freedom = _measured(one, other, paired)
    low, high = t_limits(mean, error, freedom, (alpha, alpha))
    p_above = float(stdtr(freedom, -(mean + margin) / error))
    p_below = float(stdtr(freedom, (mean - margin) / error))
    p = max(p_above, p_below) if kind == "equivalence" else p_above
    verdict = decision(kind, p <= alpha, float(low), float(high), margin)
    return Equivalence(
        kind, margin, alpha, n, float(mean), float(low), float(high), p_above, p_below, p, p <= alpha, verdict
    )


def _measured(a: Floats, b: Floats, paired: bool) -> tuple[Floats, Floats, Floats]:
    if not paired:
        return np.asarray(b.mean() - a.mean()), *welch_error(a, b)
    d = differences(a, b)
    return np.asarray(d.mean()), np.asarray(d.std(ddof=1) / math.sqrt(len(d))), np.asarray(len(d) - 1.0)


def decision(kind: str, rejects: bool, low: float, high: float, margin: float) -> str:
    """The decision in one word, from the interval of level 1 − 2 alpha and whether the test `rejects`."""
    if kind == "equivalence":
        if rejects:
            return "equivalent"
        return "different" if above(low, high, margin) or below(low, high, -margin) else "undecided"
    if rejects:
        return "superior" if above(low, high) else "not inferior"
    return "inferior" if below(low, high, -margin) else "undecided"


def _undefined(a: Floats, b: Floats, paired: bool) -> str:
    n = min(len(a), len(b))
    if n < 2:
        return ("one pair only" if n else "no pairs") if paired else "fewer than two values in one of the samples"
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return "some values are not finite numbers"
    near = rounding(a, b)
    if paired and np.ptp(differences(a, b)) <= near:
        return "all differences are equal, so there is no spread to measure them against"
    if not paired and np.ptp(a) <= near and np.ptp(b) <= near:
        return "the values within each sample are equal, so there is no spread to measure a difference against"
    return ""
