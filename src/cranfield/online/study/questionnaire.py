"""Questionnaires: items on a scale, some of them turned round, and one score for all. SUS is one of them.

The score is the mean of the items, those that are turned round turned back; or that as a share of the scale, times 100.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cranfield.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

MOST = 11  # steps of a scale


@dataclass(frozen=True)
class Questionnaire:
    """Items that are answered by whole numbers from `low` to `high`; `reversed` are those (from 1) where low is good."""

    name: str
    items: tuple[str, ...]
    low: int = 1
    high: int = 5
    reversed: tuple[int, ...] = ()
    percent: bool = False  # whether the score is from 0 to 100
    ends: tuple[str, str] = ("strongly disagree", "strongly agree")

    @property
    def questions(self) -> list[str]:
        """What the items are called in files of answers."""
        return [f"{self.name}{number}" for number in range(1, len(self.items) + 1)]

    def turned(self, answers: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The answers, items in the last dimension, with high as good everywhere."""
        values = np.asarray(answers, np.float64)
        if values.shape[-1:] != (len(self.items),):
            raise DataError(f"{self.name}: expected {len(self.items)} answers, found {values.shape[-1]}")
        known = values[~np.isnan(values)]
        wrong = known[(known < self.low) | (known > self.high) | (known != np.round(known))]
        if wrong.size:
            expected = f"whole numbers from {self.low} to {self.high}"
            raise DataError(f"{self.name}: expected answers as {expected}, found {wrong[0]:g}")
        signs = np.isin(np.arange(1, len(self.items) + 1), self.reversed)
        return np.where(signs, self.low + self.high - values, values)

    def score(self, answers: npt.ArrayLike) -> float:
        """One number for all items; NaN where one is missing.

        >>> SUS.score([5, 1] * 5), SUS.score([4, 2] * 5), SUS.score([5] * 10)
        (100.0, 75.0, 50.0)
        """
        mean = float(np.mean(self.turned(answers)))
        return 100 * (mean - self.low) / (self.high - self.low) if self.percent else mean


SUS = Questionnaire(
    "sus",
    (
        "I think that I would like to use this system frequently.",
        "I found the system unnecessarily complex.",
        "I thought the system was easy to use.",
        "I think that I would need the support of a technical person to be able to use this system.",
        "I found the various functions in this system were well integrated.",
        "I thought there was too much inconsistency in this system.",
        "I would imagine that most people would learn to use this system very quickly.",
        "I found the system very cumbersome to use.",
        "I felt very confident using the system.",
        "I needed to learn a lot of things before I could get going with this system.",
    ),
    reversed=(2, 4, 6, 8, 10),
    percent=True,
)
"""The System Usability Scale: Brooke, SUS: a quick and dirty usability scale, 1996."""


def cronbach(answers: Sequence[Sequence[float]] | npt.NDArray[np.float64]) -> float:
    """Cronbach's alpha: how far items measure the same; rows are people. NaN with fewer than two of either, or no spread.

    >>> round(cronbach([[1, 2], [2, 3], [4, 4], [5, 4]]), 4)
    0.8791
    """
    values = np.asarray(answers, np.float64)
    if values.ndim != 2 or min(values.shape) < 2:
        return math.nan
    total = float(values.sum(axis=1).var(ddof=1))
    n = values.shape[1]
    return n / (n - 1) * (1 - float(values.var(axis=0, ddof=1).sum()) / total) if total > 0 else math.nan
