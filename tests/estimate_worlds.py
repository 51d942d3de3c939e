"""Made worlds of topics: what people score, what a model scores, and the true mean; for estimates from both.

A value is one topic's score of a run, or the difference of two runs. A world draws trials × topics of both at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = ((20, 50), (30, 250), (50, 250))  # topics that people labelled, and all


@dataclass(frozen=True)
class World:
    """How people's and the model's values of topics are drawn, and people's true mean."""

    draw: Callable[..., tuple[np.ndarray, np.ndarray]]
    truth: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """What came of many trials: shares of those that had an interval, and how many had none."""

    none: float
    covered: float
    claimed: float  # the interval leaves out 0
    width: float  # mean, of trials with an interval here and by the textbook


def few_differ(share, bias, effect=0.0):
    """Runs that differ on a share of the topics; the model sees every difference with a bias."""

    def draw(rng, shape):
        on, d = rng.random(shape) < share, 0.2 * rng.standard_normal(shape)
        return on * (d + effect), on * (0.7 * d + bias + 0.14 * rng.standard_normal(shape))

    return World(draw, share * effect)


def model_takes_sides(share, effect=0.0):
    """The model prefers the second run wherever the two differ."""

    def draw(rng, shape):
        on, d = rng.random(shape) < share, 0.2 * rng.standard_normal(shape)
        return on * (d + effect), on * np.abs(0.3 * d + 0.15 + 0.05 * rng.standard_normal(shape))

    return World(draw, share * effect)


def won_or_lost(share, effect=0.0):
    """A run finds the answer where the other does not, or the reverse; the model nearly always sees the first."""

    def draw(rng, shape):
        on = rng.random(shape) < share
        sign = np.where(rng.random(shape) < 0.5 + effect / 2, 1.0, -1.0)
        return on * sign, on * np.where(rng.random(shape) < 0.8, 1.0, sign)

    return World(draw, share * effect)


def mostly_zero(a, b, bias=0.1):
    """A run that scores 0 on 80 % of the topics, which the model does not see."""

    def draw(rng, shape):
        y = (rng.random(shape) < 0.2) * rng.beta(a, b, shape)
        return y, np.clip(0.7 * y + bias + 0.15 * rng.standard_normal(shape), 0, 1)

    return World(draw, 0.2 * a / (a + b))


def difference_of_mostly_zero(bias=0.1):
    """Two runs that both score 0 on 80 % of the topics; the model prefers the second on the others."""

    def draw(rng, shape):
        on, ease = rng.random(shape) < 0.2, rng.beta(2, 3, shape)
        one, two = (np.clip(ease + 0.15 * rng.standard_normal(shape), 0, 1) for _ in range(2))
        return on * (two - one), on * (0.7 * (two - one) + bias + 0.1 * rng.standard_normal(shape))

    return World(draw)


def saturating_scores(lower, found=1.0):
    """A model that gives a full score to all topics but a few."""

    def draw(rng, shape):
        y = (rng.random(shape) < found) * rng.beta(2, 2, shape)
        below = rng.random(shape) < lower * (1.8 - 1.6 * y)
        return y, np.where(below, 1 - rng.integers(1, 4, shape) / 10, 1.0)

    return World(draw, found / 2)


def saturating_differences(seen, share=1.0, effect=0.0):
    """A model that gives both runs a full score, and sees few of their differences with a bias."""

    def draw(rng, shape):
        on, d = rng.random(shape) < share, 0.2 * rng.standard_normal(shape)
        visible = on & (rng.random(shape) < seen)
        return on * (d + effect), visible * np.round(0.5 * d + 0.1 + 0.1 * rng.standard_normal(shape), 1)

    return World(draw, share * effect)


def differ_everywhere(correlation, skewed=False):
    """Healthy values that differ on every topic, and a model that is too high by a tenth."""

    def draw(rng, shape):
        y = rng.beta(0.8, 1.2, shape) - 0.4 if skewed else 0.2 * rng.standard_normal(shape)
        return y, 0.1 + correlation * y + np.sqrt(1 - correlation**2) * y.std() * rng.standard_normal(shape)

    return World(draw)


FEW_DIFFER = {
    f"{name} {share:.0%}": make(share, *rest)
    for share in (0.1, 0.15, 0.2)
    for name, make, *rest in (
        ("small bias", few_differ, 0.1),
        ("bias", few_differ, 0.2),
        ("bias and effect", few_differ, 0.2, 0.1),
        ("takes sides", model_takes_sides),
        ("takes sides and effect", model_takes_sides, 0.15),
        ("won or lost", won_or_lost),
        ("won or lost and effect", won_or_lost, 0.5),
    )
}
ZEROS = {
    "scores": mostly_zero(1.0, 1.5),
    "skewed scores": mostly_zero(0.6, 2.0),
    "strong bias": mostly_zero(1.0, 1.5, 0.3),
    "differences": difference_of_mostly_zero(),
}
SATURATING = {
    f"{name} {seen:.0%}": make(seen, *rest)
    for seen in (0.02, 0.1)
    for name, make, *rest in (
        ("scores", saturating_scores),
        ("rare scores", saturating_scores, 0.3),
        ("differences", saturating_differences),
        ("effect", saturating_differences, 1.0, 0.1),
        ("few differences", saturating_differences, 0.2),
    )
}
HEALTHY = {
    f"{'beta' if skewed else 'normal'} {correlation}": differ_everywhere(correlation, skewed)
    for skewed in (False, True)
    for correlation in (0.0, 0.6, 0.9)
}
WORLDS = {"few differ": FEW_DIFFER, "zeros": ZEROS, "saturating": SATURATING, "healthy": HEALTHY}


def textbook(y, f, every):
    """The line's value and half its interval by Cochran (1977, 12.6): t on n − 2, every topic counted alike."""
    n, size = y.shape[-1], every.shape[-1]
    yc, fc = (values - values.mean(axis=-1, keepdims=True) for values in (y, f))
    spread = np.square(fc).sum(axis=-1)
    seen = np.where(spread > 0, spread, np.inf)
    slope, gap = (yc * fc).sum(axis=-1) / seen, every.mean(axis=-1) - f.mean(axis=-1)
    left = np.square(yc - slope[..., None] * fc).sum(axis=-1) / (n - 2)
    error = np.sqrt(left * (1 / n + gap**2 / seen) + slope**2 * every.var(axis=-1, ddof=1) / size)
    return y.mean(axis=-1) + slope * gap, stats.t.ppf(0.975, n - 2) * error


def outcomes(world, n, size, trials, seed, estimate):
    """What `estimate` (measured, predicted, every → value and half an interval) comes to, and the textbook's, in turn."""
    y, f = world.draw(np.random.default_rng([seed, n, size]), (trials, size))
    return [
        outcome(*method(y[:, :n], f[:, :n], f), world.truth, textbook(y[:, :n], f[:, :n], f)[1])
        for method in (estimate, textbook)
    ]


def outcome(value, half, truth, other):
    """Shares over trials; a half of 0 or NaN is no interval."""
    there = (half > 1e-9) & (other > 1e-9)
    value, half = value[there], half[there]
    return Outcome(
        float(1 - there.mean()),
        float((np.abs(value - truth) <= half).mean()),
        float((np.abs(value) > half).mean()),
        float(half.mean()),
    )
