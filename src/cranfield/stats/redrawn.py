"""A mean difference of units that are themselves unsure: what each would be was drawn again several times.

Units are measured through labels that may be wrong. Their spread already holds the noise of the labels, for labels of
different units err by themselves, so that the usual interval is wide enough; what it lacks is where it stands. Wrong
labels pull differences towards 0. Redrawn labels are wrong once more, and pull once more: how far the mean moves from
the likeliest labels to redrawn ones is taken for how far it had moved before, and taken back (as the bootstrap corrects
for bias; Efron & Tibshirani, 1993, chapter 10).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from cranfield.errors import DataError
from cranfield.stats.tables import probability

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Redrawn:
    """A mean over units: as they stand, as they were redrawn, and with the step between the two taken back."""

    units: int
    draws: int
    difference: float  # as the units stand
    redrawn: float  # the mean over units and redraws
    corrected: float  # difference + (that of the likeliest labels − redrawn)
    low: float  # the interval around `corrected`, for other units with labels of their own; NaN for a single unit
    high: float
    level: float
    from_units: float  # parts of the variance of a mean of units and labels both drawn anew
    from_labels: float

    @property
    def share_of_labels(self) -> float:
        """What part of that variance comes from labels; NaN where nothing varies."""
        both = self.from_units + self.from_labels
        return self.from_labels / both if both > 0 else nan


def redrawn_mean(
    standing: npt.ArrayLike, redraws: npt.ArrayLike, level: float = 0.95, likeliest: npt.ArrayLike | None = None
) -> Redrawn:
    """The mean of units as they stand (one value a unit), and of redraws (rows) of the same units (columns).

    With m the mean of a unit over its redraws, a unit counts as `standing + (likeliest − m)`, and the interval is that of
    Student's t over them. `likeliest` is the unit by the likeliest labels; as it stands, unless told.

    By the law of total variance the mean of units and labels both drawn anew varies by var(m) / n over units and by the mean
    variance within units / n over labels.

    >>> found = redrawn_mean([0.2, 0.4, 0.6], [[0.1, 0.4, 0.5], [0.2, 0.2, 0.6]])
    >>> round(found.difference, 3), round(found.redrawn, 3), round(found.corrected, 3)
    (0.4, 0.333, 0.467)
    >>> redrawn_mean([0.2, 0.4], [[0.2, 0.4], [0.2, 0.4]]).share_of_labels
    0.0
    """
    probability("level", level)
    d, drawn = np.asarray(standing, np.float64), np.asarray(redraws, np.float64)
    if drawn.ndim != 2 or d.shape != drawn.shape[1:] or len(drawn) < 2 or not len(d):
        raise DataError(f"expected two redraws or more of {len(d)} units, found a table of {drawn.shape}")
    n, draws = len(d), len(drawn)
    m = drawn.mean(axis=0)
    within = drawn.var(axis=0, ddof=1)
    corrected = d + (d if likeliest is None else np.asarray(likeliest, np.float64)) - m
    low, high = _interval(corrected, level)
    between = m.var(ddof=1) - within.mean() / draws if n > 1 else nan  # m itself is a mean of few draws
    return Redrawn(
        units=n,
        draws=draws,
        difference=float(d.mean()),
        redrawn=float(m.mean()),
        corrected=float(corrected.mean()),
        low=low,
        high=high,
        level=level,
        from_units=max(0.0, float(between)) / n if n > 1 else nan,
        from_labels=float(within.mean()) / n,
    )


def _interval(values: npt.NDArray[np.float64], level: float) -> tuple[float, float]:
    if len(values) < 2:
        return nan, nan
    from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

    mean, error = float(values.mean()), float(values.std(ddof=1)) / sqrt(len(values))
    reach = float(stdtrit(len(values) - 1, (1 + level) / 2)) * error
    return mean - reach, mean + reach
