"""The questions of a gate, and the one-sided tests that answer them. One class is one question with its wording.

Each measure is tested against its allowed loss, by the same test that gives the interval. If one measure suffices to
fail, p-values are corrected for the number of measures (Holm), and intervals hold for all of them (Bonferroni). If all
differences are equal there is no spread for an interval, and the signs decide.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from cranfield.base.errors import ConventionError
from cranfield.base.registry import Registry
from cranfield.stats.correction import correct
from cranfield.stats.method import StatisticalMethod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.stats.sampled_means import ProbabilitySample


State: TypeAlias = Literal["passed", "failed", "undecided"]

ONE_TOPIC = "but one topic cannot show whether that is chance"


@dataclass(frozen=True)
class MeanLoss:
    """The mean loss by one measure, and its test against the allowed loss."""

    n: int
    drop: float  # the mean loss, below 0 where it rose
    allowed: float  # the allowed loss
    bound: float = math.nan  # the end of the one-sided interval of the mean gain
    p: float = math.nan
    level: float = 0.95  # of the interval
    even: bool = False  # every topic gained the same: the signs decide
    corrected: float = math.nan
    tests: int = 1  # measures that the p-value was corrected for
    untested: str = ""  # why the sample of topics gives no p-value

    @property
    def moved(self) -> str:
        """How the mean changed, in words."""
        if self.drop == 0:
            return "it stayed the same"
        return f"it {'fell' if self.drop > 0 else 'rose'} by {abs(self.drop):.4f}"

    @property
    def chance(self) -> str:
        """The p-value, and the corrected one if there are several measures."""
        corrected = f", Holm {p_text(self.corrected)}" if self.tests > 1 else ""
        return f"{_equals(self.p)}{corrected}"

    @property
    def evidence(self) -> str:
        """The p-value and the number of topics."""
        return f"{self.chance}, {self.n} topics"

    @property
    def by_signs(self) -> str:
        """The reason why there is no interval, and the p-value by signs."""
        return f"all {self.n} differences are equal, and by signs alone {_equals(self.p)}"


class GateQuestion(StatisticalMethod, ABC):
    """A question: the loss to test against, the side of the test, and the meaning of the answer."""

    registry: ClassVar[Registry[GateQuestion]] = Registry("question", "gate_questions")
    refusal = ConventionError

    alternative: ClassVar[Literal["less", "greater"]] = "less"  # the side of the test of the mean gain
    one_suffices: ClassVar[bool] = True  # one measure fails the gate, so p-values are corrected for their number
    end: ClassVar[str] = "at best"  # which end of the interval of the difference is shown
    shows: ClassVar[str]  # what a significant test shows

    def allowed(self, max_drop: float) -> float:
        """The loss that the test allows."""
        return max_drop

    @abstractmethod
    def answer(self, finding: MeanLoss, significant: bool) -> tuple[State, str]:
        """Whether the measure passes, and why."""

    @abstractmethod
    def how(self, test: str, alpha: float, measures: int) -> str:
        """How the gate decides, in one line."""


class _Fall(GateQuestion):
    """Fails if a fall is significant: without evidence the gate passes."""

    def answer(self, finding: MeanLoss, significant: bool) -> tuple[State, str]:
        if finding.drop <= 0:
            return "passed", "it did not fall"
        if finding.drop <= finding.allowed:
            return "passed", f"{finding.moved}, within the {finding.allowed:g} allowed"
        fell = finding.moved + (f", more than the {finding.allowed:g} allowed" if finding.allowed else "")
        if finding.n == 1:
            return "undecided", f"{fell}, {ONE_TOPIC}"
        if finding.untested:
            return "undecided", f"{fell}; there is no test: {finding.untested}"
        if finding.even:
            return "failed" if significant else "undecided", f"{fell}; {finding.by_signs}"
        if significant:
            return "failed", f"{fell}, and not by chance ({finding.evidence})"
        return "passed", f"{fell}, but on {finding.n} topics that may be chance ({finding.chance})"

    def how(self, test: str, alpha: float, measures: int) -> str:
        corrected = f" after Holm's correction for {measures} measures" if measures > 1 else ""
        return f"fails where a one-sided test ({test}) shows that {self.shows}: p of {alpha:g} or less{corrected}"


class Drop(_Fall):
    """Is it worse at all? Fails on any significant fall, however small; passes if the fall may be chance."""

    name = "drop"
    title = "worse at all?"
    shows = "the mean fell"

    def allowed(self, max_drop: float) -> float:
        return 0.0


class MaxDrop(_Fall):
    """Is it worse by more than allowed? Fails if that is significant; passes if it may be chance."""

    name = "max-drop"
    title = "worse by more than is allowed?"
    shows = "the mean fell by more than is allowed"


class NonInferior(GateQuestion):
    """Is it within the allowed loss? Fails unless every measure shows that, so with few topics it fails."""

    name = "non-inferior"
    title = "within what is allowed?"
    alternative = "greater"
    one_suffices = False
    end = "at worst"
    shows = "the mean fell by no more than is allowed"

    def answer(self, finding: MeanLoss, significant: bool) -> tuple[State, str]:
        within = f"within the {finding.allowed:g} allowed"
        if finding.n == 1:
            return "undecided", f"{finding.moved}, {ONE_TOPIC}"
        if finding.untested:
            return "undecided", f"{finding.moved}; there is no test: {finding.untested}"
        if finding.even:
            state: State = "passed" if significant else "undecided" if finding.drop < finding.allowed else "failed"
            return state, f"{finding.moved}; {finding.by_signs}"
        end = (
            f"it rises by {finding.bound:.4f} or more"
            if finding.bound > 0
            else f"it falls by {-finding.bound:.4f} at most"
        )
        more = f": with {100 * finding.level:g} % confidence {end}" if math.isfinite(finding.bound) else ""
        if significant:
            return "passed", f"{finding.moved}, and that it stays {within} is shown{more} ({finding.evidence})"
        return "failed", f"{finding.moved}, but that it stays {within} is not shown{more} ({finding.evidence})"

    def how(self, test: str, alpha: float, measures: int) -> str:
        every = " by every measure, which needs no correction" if measures > 1 else ""
        return f"passes where a one-sided test ({test}) shows that {self.shows}: p of {alpha:g} or less{every}"


QUESTIONS = GateQuestion.registry


def p_text(value: float) -> str:
    """A p-value as text; a small one is never shown as 0."""
    return "-" if math.isnan(value) else f"{value:.4f}" if value >= 0.00005 else "<0.0001"


def _equals(p: float) -> str:
    """A p-value in a sentence: p = 0.0123, p < 0.0001."""
    text = p_text(p)
    return f"p < {text[1:]}" if text.startswith("<") else f"p = {text}"


NOTABLE_ERROR = 0.02  # beyond alpha


@dataclass(frozen=True)
class GateSettings:
    """The settings of a gate: question, level, test, resamples and seed."""

    question: GateQuestion
    alpha: float
    test: str
    resamples: int
    seed: int


class MeasureDecision(NamedTuple):
    """The decision about one measure, and its reason."""

    state: State
    reason: str
    bound: float = math.nan  # the end of the one-sided interval of the mean gain
    p: float = math.nan
    corrected: float = math.nan  # p after correction for the number of measures
    half_found: float = math.nan  # the true drop that would be detected half of the time
    caution: str = ""  # why the error rate of the test may exceed alpha


def decide(
    gains: Sequence[Floats],
    max_drops: Sequence[float],
    settings: GateSettings,
    weights: Sequence[Floats] | None = None,
    samples: Sequence[ProbabilitySample] | None = None,
) -> list[MeasureDecision]:
    """Decide whether each measure passes, from the gains of its topics (losses are negative) and its allowed loss.

    `weights` are the weights of the topics of each measure; `samples` say how the topics were drawn, if they have design
    weights.

    >>> from cranfield.comparison.gate.questions import QUESTIONS
    >>> settings = GateSettings(QUESTIONS["max-drop"], 0.05, "t", 100, 0)
    >>> [one] = decide([np.array([-0.2, -0.1, -0.3, -0.2])], [0.01], settings)
    >>> one.state, round(one.p, 4)
    ('failed', 0.0094)
    """
    question, tests = settings.question, len(gains) if settings.question.one_suffices else 1
    weighed = [None] * len(gains) if weights is None else weights
    drawn = [None] * len(gains) if samples is None else samples
    each = zip(gains, max_drops, weighed, drawn, strict=True)
    findings = [_finding(gain, drop, tests, settings, w, sample) for gain, drop, w, sample in each]
    p = np.array([finding.p for finding in findings])
    corrected = correct(p, "holm") if question.one_suffices else p
    decisions = []
    for gain, finding, after, w, sample in zip(gains, findings, corrected.tolist(), weighed, drawn, strict=True):
        if not finding.n:
            decisions.append(MeasureDecision("undecided", "no topic has a value in both runs"))
            continue
        significant = after <= settings.alpha
        state, reason = question.answer(replace(finding, corrected=after), significant)
        half = finding.bound + finding.drop + finding.allowed if question.one_suffices else math.nan
        caution = _skewness_caution(gain, settings, w, sample) if significant and not finding.even else ""
        decisions.append(MeasureDecision(state, reason, finding.bound, finding.p, after, half, caution))
    return decisions


def _finding(
    gain: Floats,
    max_drop: float,
    tests: int,
    settings: GateSettings,
    weights: Floats | None,
    sample: ProbabilitySample | None,
) -> MeanLoss:
    """The test of one measure, and its interval at a level that holds jointly for so many tests."""
    n, allowed, level = len(gain), settings.question.allowed(max_drop), 1 - settings.alpha / tests
    if n == 0:
        return MeanLoss(0, math.nan, allowed)
    rounding = 1e-12 * max(float(np.abs(gain).max()), allowed)
    drop, even = -float(np.average(gain, weights=weights)), bool(np.ptp(gain) <= rounding)
    if abs(drop - allowed) <= rounding:
        drop = allowed
    above = gain + allowed
    above = np.where(np.abs(above) <= rounding, 0.0, above)
    bound, p, untested = _one_sided(above, even, level, settings, weights, sample)
    if even and not drop:
        bound = allowed
    return MeanLoss(n, drop, allowed, bound - allowed, p, level, even and n > 1, tests=tests, untested=untested)


def _one_sided(
    gain: Floats,
    even: bool,
    level: float,
    settings: GateSettings,
    weights: Floats | None,
    sample: ProbabilitySample | None,
) -> tuple[float, float, str]:
    """The end of the one-sided interval of the mean, the p-value of its test against 0, and why there is no p-value."""
    from cranfield.stats.randomisation import sign_flip_p
    from cranfield.stats.tests_by_name import test

    side, rng = settings.question.alternative, np.random.default_rng(settings.seed)
    if len(gain) < 2:
        return math.nan, math.nan, ""
    if even:  # no spread: the signs are all there is
        p = float(sign_flip_p(gain[None, :], settings.resamples, rng, side)[0]) if gain.any() else 1.0
        return math.nan, p, ""
    options: dict[str, Any] = {"alternative": side, "level": level, "resamples": settings.resamples, "rng": rng}
    outcome = test(settings.test)(np.zeros(len(gain)), gain, weights=weights, sample=sample, **options)
    reason = outcome.reason.replace("pair", "topic") if outcome.p != outcome.p else ""
    return outcome.high if side == "less" else outcome.low, outcome.p, reason


def _skewness_caution(
    gain: Floats, settings: GateSettings, weights: Floats | None, sample: ProbabilitySample | None
) -> str:
    """A caution if the gains are so skewed that the error rate of the test notably exceeds alpha; else empty."""
    deviation = gain - np.average(gain, weights=weights)
    deviation = deviation if weights is None else deviation * weights  # what each adds to the mean
    if sample is not None:  # certain topics add nothing to the error
        gain, deviation = gain[sample.drawn], deviation[sample.drawn]
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
    """The error rate of a one-sided t-test at this level on n skewed values, to the first order (Hall, 1987).

    >>> round(error_of_one_side(0.05, 2.0, 25), 3), error_of_one_side(0.05, 0.0, 25)
    (0.094, 0.05)
    """
    from scipy.special import ndtri  # type: ignore[import-untyped, unused-ignore]

    z = float(ndtri(1 - alpha))
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return min(1.0, max(0.0, alpha + skewness * (2 * z * z + 1) * density / (6 * math.sqrt(n))))
