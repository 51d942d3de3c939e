"""A value with the interval that an estimate gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.stats.limits import above, below

if TYPE_CHECKING:
    from cranfield.stats.arms import Estimate

NOTHING = 1e-9  # an error below this share of what is estimated is none


class Interval(NamedTuple):
    """A value and its interval; the ends are NaN where nothing varies that would give one."""

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan

    @property
    def apart(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.above() or self.below()

    def above(self, number: float = 0.0) -> bool:
        """Whether the interval lies above a number."""
        return above(self.low, self.high, number)

    def below(self, number: float = 0.0) -> bool:
        """Whether the interval lies below a number."""
        return below(self.low, self.high, number)


def interval_of(estimate: Estimate, level: float) -> Interval:
    """A value with its interval."""
    value, error = float(estimate.value), float(estimate.error)
    if not error > NOTHING * max(1.0, abs(value)):
        return Interval(value)
    low, high = estimate.interval(level)
    return Interval(value, float(low), float(high))


def within(interval: Interval, lowest: float, highest: float) -> Interval:
    """No end beyond what a figure can be, but for an estimate that is there itself.

    >>> within(Interval(0.9, 0.7, 1.1), 0, 1)
    Interval(value=0.9, low=0.7, high=1.0)
    """
    low, high = min(interval.value, lowest), max(interval.value, highest)
    return Interval(interval.value, *np.clip(interval[1:], low, high).tolist())
