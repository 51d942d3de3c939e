"""Intervals of effects, and whether they lie above, below or within margins.

An interval with infinite or swapped ends shows nothing. Only this module decides that: every verdict, mark and sentence
about an interval uses `above` and `below`, or an `EffectInterval`, whose ends are NaN in that case.
"""

from __future__ import annotations

import math
from typing import NamedTuple


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


class EffectInterval(_Limits):
    """An effect and its interval. Both ends are NaN if there is no interval or if its ends are not `sound`.

    >>> EffectInterval(0.2, 0.1, 0.3), EffectInterval(0.2, math.inf, -math.inf)
    (EffectInterval(value=0.2, low=0.1, high=0.3), EffectInterval(value=0.2, low=nan, high=nan))
    """

    __slots__ = ()

    def __new__(cls, value: float, low: float = math.nan, high: float = math.nan) -> EffectInterval:
        """The effect with its ends, or with NaN if they are not sound."""
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
