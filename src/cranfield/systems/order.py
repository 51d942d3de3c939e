"""The order of an answer, kept in a run, whose scores decide.

An engine knows more than its scores show: ties were broken by a second key, 64-bit numbers lost their last digits, a
re-ranker left the old scores. Where scores do not fall from one place to the next they are lowered by the least step of
32 bits, which is how some programs compare them, so that every program reads the order that the engine gave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


def falls(scores: Sequence[float]) -> bool:
    """Whether each score lies below the one before it, in 32 bits."""
    short = _short(scores)
    return bool((short[1:] < short[:-1]).all())


def rises(scores: Sequence[float]) -> bool:
    """Whether a score lies above the one before it."""
    return any(later > earlier for earlier, later in zip(scores, scores[1:], strict=False))


def falling(scores: Sequence[float]) -> list[float]:
    """The scores, each lowered as far as needed to lie below the one before it; 1/rank where they cannot be.

    >>> falling([3.0, 2.0, 1.5]), falling([2.0, 2.0, 1.0])
    ([3.0, 2.0, 1.5], [2.0, 1.9999998807907104, 1.0])
    """
    lowered: list[float] = []
    bound, lowest = np.float32(np.inf), np.float32(-np.inf)
    for score, short in zip(scores, _short(scores), strict=True):
        if lowered and not short < bound:
            with np.errstate(over="ignore"):  # below the least number of 32 bits there is −∞
                short = np.nextafter(bound, lowest)
            score = float(short)
        lowered.append(float(score))
        bound = short
    return lowered if falls(lowered) else [1.0 / rank for rank in range(1, len(lowered) + 1)]


def _short(scores: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    with np.errstate(over="ignore"):
        return np.asarray(scores, np.float64).astype(np.float32)
