"""A metric that a plan names: how it is measured, and what decides about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

DIRECTIONS = ("up", "down")
MEAN_OF_RATIOS, MANN_WHITNEY = "mean-of-ratios", "mann-whitney"
ESTIMATES = ("plain", "cuped", "bootstrap", MANN_WHITNEY, MEAN_OF_RATIOS)


@dataclass(frozen=True)
class Choice:
    """A metric of a plan: its name and parameters, the good direction, the margin, the window in days, what estimate decides."""

    metric: str
    direction: str | None = None  # the metric's own, unless told
    margin: float | None = None
    relative: bool = False  # whether the margin is a share of the control's value
    window: int | None = None  # a unit's first so many days; None: open
    estimate: str = ESTIMATES[0]
    parameters: Mapping[str, Any] = field(default_factory=dict)
