"""Simulated experiments: units that search more or less often and click more or less often, so that searches of one are alike.

Everything is drawn for many experiments at a time: replicates × units, or replicates × units × days.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

RATE = 4.0  # searches that a unit makes beside its first
CLICKS = 0.8 / 3  # of a search, on average


class Arm(NamedTuple):
    """Searches and clicks of each unit, within the experiment and before it."""

    searches: np.ndarray
    clicks: np.ndarray
    searches_before: np.ndarray
    clicks_before: np.ndarray


def arm(rng: np.random.Generator, shape: tuple[int, int], lift: float = 0.0) -> Arm:
    """One arm of each experiment; `lift` is by what share clicks are likelier."""
    rate, taste = rng.exponential(RATE, shape), 0.8 * rng.beta(0.6, 1.2, shape)
    before, within = rng.poisson(rate), 1 + rng.poisson(rate)
    clicks = rng.binomial(within, taste * (1 + lift))
    return Arm(*(each.astype(np.float64) for each in (within, clicks, before, rng.binomial(before, taste))))


def days(rng: np.random.Generator, shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Searches and clicks of each unit by the end of each day: all are there from the first day, and return."""
    rate, taste = rng.exponential(RATE, shape[:2]), 0.8 * rng.beta(0.6, 1.2, shape[:2])
    searches = rng.poisson(np.broadcast_to(rate[..., None] / shape[2], shape))
    searches[..., 0] += 1
    clicks = rng.binomial(searches, taste[..., None])
    return np.cumsum(searches, axis=2, dtype=np.float64), np.cumsum(clicks, axis=2, dtype=np.float64)


def arrivals(rng: np.random.Generator, shape: tuple[int, int], peeks: int) -> Arm:
    """An arm whose units come in even groups, one group a peek, each with all that it will do: its own window."""
    own = arm(rng, shape)
    return Arm(*(each.reshape(shape[0], peeks, -1) for each in own))
