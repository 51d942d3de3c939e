"""Is a mean below 0, or may that be chance? The one-sided decision that a gate rests on.

A drop fails only where it is larger than allowed and the one-sided interval of the mean lies below 0. Where all
values are equal there is no spread to make an interval of, and the signs decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

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


class Decision(NamedTuple):
    """What became of a mean, and why."""

    state: State
    reason: str
    bound: float = math.nan  # the good end of the one-sided interval of the mean gain
    p: float = math.nan
    visible: float = math.nan  # the smallest drop that would have been told from chance


def decided(gain: Floats, max_drop: float, settings: Settings) -> Decision:
    """Whether the gains of topics, negative where they lost, are a drop that is too large and no chance."""
    n = len(gain)
    if n == 0:
        return Decision("undecided", "no topic has a value in both runs")
    drop = -float(gain.mean())
    bound, p = _one_sided(gain, settings)

    def decision(state: State, reason: str) -> Decision:
        return Decision(state, reason, bound, p, bound + drop)

    if drop <= 0:
        return decision("passed", "it did not fall")
    if drop <= max_drop:
        return decision("passed", f"it fell by {drop:.4f}, within the {max_drop:g} allowed")
    fell = f"it fell by {drop:.4f}, more than the {max_drop:g} allowed"
    if n == 1:
        return decision("undecided", f"{fell}, but on one topic, from which chance cannot be told")
    if math.isnan(bound):
        signs = f"all {n} differences are equal, and by signs alone p = {shown_p(p)}"
        return decision("failed" if p <= settings.alpha else "undecided", f"{fell}; {signs}")
    if bound < 0:
        level = f"{100 * (1 - settings.alpha):g} %"
        return decision("failed", f"{fell}, and by at least {-bound:.4f} with {level} confidence ({n} topics)")
    return decision("passed", f"{fell}, but on {n} topics that may be chance (p = {shown_p(p)})")


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
