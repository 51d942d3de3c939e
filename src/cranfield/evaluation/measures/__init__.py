"""The measures: definition, names and formula of each. One file per family.

The families of nDCG, AP and RR are loaded at once, the other common ones when a name is not among them, and all files of
this folder when it is not found there or when all measures are listed: a command that scores five topics should not wait
for fairness. In the descriptions, `lecture 000`
to `lecture 004` are lectures on information retrieval; tests compute the figures of their examples.
"""

from __future__ import annotations

from cranfield.base.parameters import Choice, Depth, Flag, Real, Whole
from cranfield.evaluation.measures import average, first_relevant, gain  # noqa: F401  (at once)
from cranfield.evaluation.measures.definition import REGISTRY, Gain, Inner, Measure, measure, measures

__all__ = ["REGISTRY", "Choice", "Depth", "Flag", "Gain", "Inner", "Measure", "Real", "Whole", "measure", "measures"]
