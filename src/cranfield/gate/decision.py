"""Is a mean loss shown to be too large, or to be small enough? The one-sided tests that a gate rests on.

Each measure is tested against what it may lose, by the same test that gives the interval. Where one measure suffices
to fail, p-values are corrected for the number of measures (Holm), and intervals hold for all at once (Bonferroni). Where
all values are equal there is no spread to make an interval of, and the signs decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.gate.question import Finding, GateQuestion, State
from cranfield.stats.correction import correct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.kernels.table import Floats


NOTABLE_ERROR = 0.02  # beyond alpha


@dataclass(frozen=True)
class Settings:
    """How it is decided: what is asked, the level, the test, and where its chance starts."""

    question: GateQuestion
    alpha: float
    test: str
    resamples: int
    seed: int


class Decision(NamedTuple):
    """What became of a mean, and why."""

    state: State
    reason: str
    bound: float = math.nan  # the end of the one-sided interval of the mean gain
    p: float = math.nan
    corrected: float = math.nan  # p after correction for the number of measures
    half_found: float = math.nan  # the true drop that would have been found half of the time
    caution: str = ""  # why the test may err more often than alpha says


def decided(
    gains: Sequence[Floats],
    max_drops: Sequence[float],
    settings: Settings,
    weights: Sequence[Floats] | None = None,
) -> list[Decision]:
    """Whether each measure passes, by the gains of its topics, which are negative where they lost, and what it may lose.

    `weights` are those of the topics of each measure.

    >>> from cranfield.gate.question import QUESTIONS
    >>> settings = Settings(QUESTIONS["max-drop"], 0.05, "t", 100, 0)
    >>> [one] = decided([np.array([-0.2, -0.1, -0.3, -0.2])], [0.01], settings)
    >>> one.state, round(one.p, 4)
    ('failed', 0.0094)
    """
    question, tests = settings.question, len(gains) if settings.question.one_suffices else 1
    weighed = [None] * len(gains) if weights is None else weights
    each = zip(gains, max_drops, weighed, strict=True)
    findings = [_finding(gain, drop, tests, settings, w) for gain, drop, w in each]
    p = np.array([found.p for found in findings])
    corrected = correct(p, "holm") if question.one_suffices else p
    decisions = []
    for gain, found, after, w in zip(gains, findings, corrected.tolist(), weighed, strict=True):
        if not found.n:
            decisions.append(Decision("undecided", "no topic has a value in both runs"))
            continue
        significant = after <= settings.alpha
        state, reason = question.answer(replace(found, corrected=after), significant)
        half = found.bound + found.drop + found.allowed if question.one_suffices else math.nan
        caution = _lopsided(gain, settings, w) if significant and not found.even else ""
        decisions.append(Decision(state, reason, found.bound, found.p, after, half, caution))
    return decisions


def _finding(gain: Floats, max_drop: float, tests: int, settings: Settings, weights: Floats | None) -> Finding:
    """The test of one measure, and its interval at a level that holds for so many tests at once."""
    n, allowed, level = len(gain), settings.question.allowed(max_drop), 1 - settings.alpha / tests
    if n == 0:
        return Finding(0, math.nan, allowed)
    rounding = 1e-12 * max(float(np.abs(gain).max()), allowed)
    drop, even = (
        -float(gain.mean() if weights is None else np.average(gain, weights=weights)),
        bool(np.ptp(gain) <= rounding),
    )
    if abs(drop - allowed) <= rounding:
        drop = allowed
    above = gain + allowed
    bound, p = _one_sided(np.where(np.abs(above) <= rounding, 0.0, above), even, level, settings, weights)
    if even and not drop:
        bound = allowed
    return Finding(n, drop, allowed, bound - allowed, p, level, even and n > 1, tests=tests)


def _one_sided(
    gain: Floats, even: bool, level: float, settings: Settings, weights: Floats | None
) -> tuple[float, float]:
    """The end of the one-sided interval of the mean, and p of the test of it against 0."""
    from cranfield.stats.randomisation import sign_flip_p
    from cranfield.stats.testing import test

    side, rng = settings.question.alternative, np.random.default_rng(settings.seed)
    if len(gain) < 2:
        return math.nan, math.nan
    if even:  # no spread: the signs are all there is
        return math.nan, float(sign_flip_p(gain[None, :], settings.resamples, rng, side)[0]) if gain.any() else 1.0
    asked = {"alternative": side, "level": level, "resamples": settings.resamples, "rng": rng, "weights": weights}
    outcome = test(settings.test)(np.zeros(len(gain)), gain, **asked)
    return outcome.high if side == "less" else outcome.low, outcome.p


def _lopsided(gain: Floats, settings: Settings, weights: Floats | None) -> str:
    """What to say where the gains lean so that the test errs notably more often than alpha says, and not by chance alone."""
    deviation = gain - np.average(gain, weights=weights)
    deviation = deviation if weights is None else deviation * weights  # what each adds to the mean
    skewness = float((deviation**3).mean() / (deviation**2).mean() ** 1.5)
    toward = skewness if settings.question.alternative == "less" else -skewness
    error = error_of_one_side(settings.alpha, toward, len(gain))
    if error - settings.alpha < NOTABLE_ERROR or toward < 2 * math.sqrt(6 / len(gain)):
        return ""
    return (
        f"gains are lopsided (skewness {skewness:+.1f} on {len(gain)} topics), and where they truly are, a one-sided test at "
        f"{100 * settings.alpha:g} % errs in about {100 * error:.0f} %"
    )


def error_of_one_side(alpha: float, skewness: float, n: int) -> float:
    """How often a one-sided t-test at this level errs on n values that lean away from its side, to the first order (Hall, 1987).

    >>> round(error_of_one_side(0.05, 2.0, 25), 3), error_of_one_side(0.05, 0.0, 25)
    (0.094, 0.05)
    """
    from scipy.special import ndtri  # type: ignore[import-untyped, unused-ignore]

    z = float(ndtri(1 - alpha))
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return min(1.0, max(0.0, alpha + skewness * (2 * z * z + 1) * density / (6 * math.sqrt(n))))
