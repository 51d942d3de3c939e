"""The measures: what each is, what it is called, and how it is computed. One file per family.

The families that most people ask for are loaded at once, every other file of this folder when a name is not among them or
when all are listed: a command that scores five topics should not wait for fairness.
"""

from __future__ import annotations

from typing import Any

from cranfield.measures import average, counts, first, gain, incomplete, precision, user  # noqa: F401  (at once)
from cranfield.measures.measure import Gain, Inner, Measure, load_all, measure, measures
from cranfield.parameters import Choice, Depth, Flag, Real, Whole

__all__ = [
    "REGISTRY",
    "Choice",
    "Depth",
    "Flag",
    "Gain",
    "Inner",
    "Measure",
    "Real",
    "Whole",
    "measure",
    "measures",
]


def __getattr__(name: str) -> Any:
    if name == "REGISTRY":
        return load_all()
    raise AttributeError(f"module 'cranfield.measures' has no attribute {name!r}")
