"""The measures: what each is, what it is called, and how it is computed. One file per family.

The families that most people ask for are loaded at once, the others when a name is not among them or when all are listed:
a command that scores five topics should not wait for fairness.
"""

from __future__ import annotations

import importlib
from typing import Any

from cranfield.measures import average, counts, first, gain, incomplete, precision, user
from cranfield.measures.measure import (
    LATER,
    Choice,
    Depth,
    Flag,
    Gain,
    Inner,
    Measure,
    Real,
    Whole,
    load_all,
    measure,
    measures,
)

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


def __getattr__(name: str) -> Any:
    if name == "REGISTRY":
        return load_all()
    if name in LATER:
        return importlib.import_module(f"cranfield.measures.{name}")
    raise AttributeError(f"module 'cranfield.measures' has no attribute {name!r}")
