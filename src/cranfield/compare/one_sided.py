"""Is a mean below 0, or may that be chance? The one-sided decision that a gate rests on.

A drop fails only where it is larger than allowed and the one-sided interval of the mean lies below 0. Where all
values are equal there is no spread to make an interval of, and the signs decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from cranfield.kernels.table import Floats


State: TypeAlias = Literal["passed", "failed", "undecided"]


@dataclass(frozen=True)
class Settings:
    """How it is decided: the level, the test, and where its chance starts."""

    alpha: float
    test: str
    resamples: int
    seed: int


def decided(gain: Floats, max_drop: float, settings: Settings) -> tuple[State, str, float, float, float]:
    """State, reason, the good end of the interval, p, and the smallest drop that is visible."""
    n = len(gain)
    if n == 0:
        return "undecided", "no topic has a value in both runs", math.nan, math.nan, math.nan
    drop = -float(gain.mean())
    bound, p = _one_sided(gain, settings)
    visible = bound + drop
    said = "it did not fall" if drop <= 0 else f"it fell by {drop:.4f}"
    if drop <= max_drop:
        return "passed", said if drop <= 0 else f"{said}, within the {max_drop:g} allowed", bound, p, visible
    said = f"{said}, more than the {max_drop:g} allowed"
    if n == 1:
        return "undecided", f"{said}, but on one topic, from which chance cannot be told", bound, p, visible
    if math.isnan(bound):
        said = f"{said}; all {n} differences are equal, and by signs alone p = {shown_p(p)}"
        return ("failed" if p <= settings.alpha else "undecided"), said, bound, p, visible
    level = f"{100 * (1 - settings.alpha):g} %"
    if bound < 0:
        return "failed", f"{said}, and by at least {-bound:.4f} with {level} confidence ({n} topics)", bound, p, visible
    return "passed", f"{said}, but on {n} topics that may be chance (p = {shown_p(p)})", bound, p, visible


def _one_sided(gain: Floats, settings: Settings) -> tuple[float, float]:
    """The upper end of the one-sided interval of the mean gain, and p of the test that it is 0 or more."""
    from cranfield.stats.randomisation import sign_flip_p
    from cranfield.stats.testing import test

    rng = np.random.default_rng(settings.seed)
    if len(gain) < 2:
        return math.nan, math.nan
    if np.ptp(gain) <= 1e-12 * float(np.abs(gain).max()):  # no spread: the signs are all there is
        p = float(sign_flip_p(gain[None, :], settings.resamples, rng, "less")[0]) if gain.any() else 1.0
        return (math.nan if gain.any() else 0.0), p
    outcome = test(settings.test)(
        np.zeros(len(gain)), gain, alternative="less", level=1 - settings.alpha, resamples=settings.resamples, rng=rng
    )
    return outcome.high, outcome.p


def shown_p(value: float) -> str:
    """A p-value as text; a small one is never shown as 0."""
    return "-" if math.isnan(value) else f"{value:.4f}" if value >= 0.00005 else "<0.0001"
