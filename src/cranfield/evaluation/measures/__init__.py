"""The measures: definition, names and formula of each. One file per family.

The common families are loaded at once. The other files of this folder are loaded when a name is not found or when all
measures are listed: a command that scores five topics should not wait for fairness. In the descriptions, `lecture 000`
to `lecture 004` are lectures on information retrieval; tests compute the figures of their examples.
"""

from __future__ import annotations

from cranfield.base.parameters import Choice, Depth, Flag, Real, Whole
from cranfield.evaluation.measures import (  # noqa: F401  (at once)
    average,
    counts,
    first_relevant,
    gain,
    incomplete_judgments,
    precision,
    user_models,
)
from cranfield.evaluation.measures.definition import REGISTRY, Gain, Inner, Measure, measure, measures

__all__ = ["REGISTRY", "Choice", "Depth", "Flag", "Gain", "Inner", "Measure", "Real", "Whole", "measure", "measures"]
