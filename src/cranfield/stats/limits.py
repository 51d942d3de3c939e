"""The ends of an interval, and what they show.

An interval whose ends are not finite, or in the wrong order, shows nothing. This is the one place that says so: every
verdict, mark and sentence that goes by an interval asks `above` and `below`, or a `Limits`, whose ends are NaN then.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["Limits", "above", "below", "sound"]


def sound(low: float, high: float) -> bool:
    """Whether both ends of an interval are finite and in order.

    >>> sound(-1.0, 2.0), sound(-math.inf, 2.0), sound(2.0, -1.0), sound(math.nan, math.nan)
    (True, False, False, False)
    """
    return math.isfinite(low) and math.isfinite(high) and low <= high


def above(low: float, high: float, number: float = 0.0) -> bool:
    """Whether an interval lies above a number. The upper end may be open (infinite), as that of a one-sided question.

    >>> above(0.1, 0.3), above(0.1, math.inf), above(math.inf, -math.inf), above(math.nan, math.nan)
    (True, True, False, False)
    """
    return math.isfinite(low) and number < low <= high


def below(low: float, high: float, number: float = 0.0) -> bool:
    """Whether an interval lies below a number. The lower end may be open (infinite).

    >>> below(-0.3, -0.1), below(-math.inf, -0.1), below(math.inf, -math.inf)
    (True, True, False)
    """
    return math.isfinite(high) and low <= high < number


class _Limits(NamedTuple):
    value: float
    low: float
    high: float


class Limits(_Limits):
    """An effect and its interval. Both ends are NaN where there is no interval, or where its ends are not `sound`.

    >>> Limits(0.2, 0.1, 0.3), Limits(0.2, math.inf, -math.inf)
    (Limits(value=0.2, low=0.1, high=0.3), Limits(value=0.2, low=nan, high=nan))
    """

    __slots__ = ()

    def __new__(cls, value: float, low: float = math.nan, high: float = math.nan) -> Limits:
        """The effect, and its ends if they are sound."""
        ends = (float(low), float(high)) if sound(low, high) else (math.nan, math.nan)
        return super().__new__(cls, float(value), *ends)

    @property
    def exists(self) -> bool:
        """Whether there is an interval."""
        return sound(self.low, self.high)

    def above(self, number: float = 0.0) -> bool:
        """Whether the interval lies above a number."""
        return above(self.low, self.high, number)

    def below(self, number: float = 0.0) -> bool:
        """Whether the interval lies below a number."""
        return below(self.low, self.high, number)

    def inside(self, margin: float | None) -> bool:
        """Whether the interval lies between −margin and margin."""
        return margin is not None and self.above(-margin) and self.below(margin)
