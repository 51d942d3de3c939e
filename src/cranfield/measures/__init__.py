"""The measures: what each is, what it is called, and how it is computed. One file per family."""

from __future__ import annotations

from cranfield.measures import average, counts, first, gain, incomplete, precision, user
from cranfield.measures.measure import REGISTRY, Measure, measure, measures

__all__ = [
    "REGISTRY",
    "Measure",
    "average",
    "counts",
    "first",
    "gain",
    "incomplete",
    "measure",
    "measures",
    "precision",
    "user",
]
