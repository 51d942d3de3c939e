"""A measure whose values were computed elsewhere: it has a name, and nothing to compute.

It belongs to no family, so it is in no list of measures and no name means it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.errors import MeasureError
from cranfield.measures.measure import Measure, measure

if TYPE_CHECKING:
    from cranfield.hits import Hits
    from cranfield.kernels.table import Floats


class External(Measure):
    """Values from a table, under the name that they have there."""

    at = None
    low, high = -np.inf, np.inf

    def __init__(self, label: str, lower_is_better: bool = False) -> None:
        super().__init__()
        self.label = label
        self.lower_is_better = lower_is_better

    def score(self, hits: Hits) -> Floats:
        """There is nothing to compute from."""
        raise MeasureError(f"{self.label} is known from a table only; name a measure to compute")

    def __str__(self) -> str:
        return self.label

    def __eq__(self, other: object) -> bool:
        return isinstance(other, External) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((self.label, self.lower_is_better))


def named(name: str, lower_is_better: bool | None = None) -> Measure:
    """The measure of this name, or one that is nothing but the name.

    >>> named("nDCG@10"), named("clicks"), named("seconds", lower_is_better=True).lower_is_better
    (measure('nDCG@10'), measure('clicks'), True)
    """
    if lower_is_better is None:
        try:
            return measure(name)
        except MeasureError:
            return External(name)
    return External(name, lower_is_better)
