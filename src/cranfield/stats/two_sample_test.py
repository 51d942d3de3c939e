"""The base class of two-sample tests, their settings and their results.

One class is one test: its arithmetic and its description. `a` holds the baseline's values, `b` the other's; the
difference is always b − a, and "greater" means that b is greater. A test's arithmetic takes whole tables, one row for
each pair of samples, so that one call tests one pair or twenty thousand by the same code. All checks of the data are
here, before the arithmetic: a p-value that cannot be computed is NaN with a reason in words, and a test of data without
variance says so instead of returning 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cranfield.base.errors import DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.registry import Registry
from cranfield.stats.method import SignificanceTest
from cranfield.stats.ties import NEAR, Bools, Floats, differences, rounding, two_samples
from cranfield.stats.weighted_means import checked

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from cranfield.stats.sampled_means import ProbabilitySample


Alternative: TypeAlias = Literal["two-sided", "less", "greater"]
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "less", "greater")
KEPT = 2**23  # resampled numbers kept at once: 64 MB
NO_SPREAD = "there is no spread to measure"


@dataclass(frozen=True)
class SignificanceResult:
    """The result of a test of one pair of samples."""

    test: str
    """The name of the test in the registry."""
    p: float
    """The p-value; NaN if it cannot be computed, and `reason` then says why."""
    statistic: float
    low: float = math.nan
    """The interval of the difference by this test, at the chosen level. It is open on one side if the alternative is
    one-sided, and NaN if the test gives no interval."""
    high: float = math.nan
    exact: bool = True
    """Whether the p-value is exact; otherwise it comes from samples or from an approximation for many values."""
    resamples: int = 0
    reason: str = ""
    """A remark about the data, such as "all differences are 0" or "one pair only"; empty if there is nothing to say."""
    extra: Mapping[str, float] = field(default_factory=dict)
    """Further numbers of this test, such as the probabilities of a Bayesian analysis."""
    direction: int = 0
    """1 if b is greater by the statistic that the test compares (means, ranks or wins), -1 if it is less, else 0."""


@dataclass(frozen=True)
class SignificanceSettings:
    """The settings of a test: the alternative, the level, the number of resamples, and the random generator."""

    alternative: Alternative
    level: float
    resamples: int
    rng: np.random.Generator
    weights: Floats | None = field(default=None, compare=False)  # how much each pair counts; None: all alike
    # how the pairs were drawn, if the mean is that of a population; it has the weights
    sample: ProbabilitySample | None = field(default=None, compare=False)
    draws: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)
    """Random draws, stored so that further rows and tests with the same draws can reuse them."""

    def __post_init__(self) -> None:
        check_alternative(self.alternative)
        if not 0 < self.level < 1:
            raise DataError(f"level must be between 0 and 1, got {self.level}")
        if self.resamples < 1:
            raise DataError(f"resamples must be at least 1, got {self.resamples}")
        refuse_below(1, resamples=self.resamples)

    @property
    def tails(self) -> tuple[float, float]:
        """The tail probabilities below and above the interval: 0 on the open side of a one-sided one."""
        outside = 1 - self.level
        both = {"two-sided": (outside / 2, outside / 2), "greater": (outside, 0.0), "less": (0.0, outside)}
        return both[self.alternative]

    def asked_again(self) -> SignificanceSettings:
        """The same settings for another test, with a copy of the random generator."""
        return replace(self, rng=deepcopy(self.rng))

    def in_batches(
        self, method: Callable[[Floats, SignificanceSettings], tuple[Floats, ...]], d: Floats
    ) -> tuple[Floats, ...]:
        """A method applied to some rows at a time, so that memory stays bounded; every batch sees the same resamples."""
        step = max(1, KEPT // self.resamples)
        parts = []
        for start in range(0, len(d), step):
            rng = deepcopy(self.rng) if start + step < len(d) else self.rng
            parts.append(method(d[start : start + step], replace(self, rng=rng)))
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


@dataclass(frozen=True)
class Prospect:
    """Expected differences: their mean in standard deviations, and the probabilities of being above 0 and exactly 0."""

    effect: float
    up: float  # of one that is not 0
    tied: float


@dataclass(frozen=True)
class SignificanceValues:
    """The result of a test's arithmetic, one entry per row."""

    p: Floats
    statistic: Floats
    low: Floats | float = math.nan
    high: Floats | float = math.nan
    exact: Bools | bool = True
    resamples: int = 0
    reason: str | Sequence[str] = ""  # one for all rows, or one per row
    extra: Mapping[str, Floats] = field(default_factory=dict)
    # above 0 if b is greater by the compared statistic; None: `statistic` itself has that sign
    lean: Floats | None = None


HOMES = tuple(f"cranfield.stats.{name}" for name in ("randomisation", "paired", "bootstrap", "bayes", "unpaired"))


def _home(test: Test) -> int:
    """The place of a test's module in lists; tests of other packages come last."""
    module = type(test).__module__
    return HOMES.index(module) if module in HOMES else len(HOMES)


class Test(SignificanceTest, ABC):
    """A test of two samples: its computation, its description, and the requirements on its data."""

    __test__: ClassVar[bool] = False  # pytest: this is not one of yours

    registry: ClassVar[Registry[Test]] = Registry(
        "test", "tests", HOMES, refusal=DataError, order=lambda test: (test.order, _home(test))
    )

    paired: ClassVar[bool] = True
    discrete: ClassVar[bool] = False  # few p-values are possible, so it rejects less often than its level allows
    sampled: ClassVar[bool] = False  # it draws resamples, so another seed gives a slightly different p
    needs_spread: ClassVar[bool] = False  # undefined if all differences are the same
    binary: ClassVar[bool] = False  # only for values 0 and 1
    bayesian: ClassVar[bool] = False  # gives probabilities and an interval, never a p-value
    interval: ClassVar[str] = ""  # the name of its interval of the mean difference; empty if it has none
    # the data on which it raises too many false alarms
    too_sure: ClassVar[Literal["", "few pairs", "huge differences"]] = ""
    false_alarms: ClassVar[str] = ""  # their rate at 5 % on such data; measured, see docs/tests.md
    shares_draws: ClassVar[bool] = False  # pairs share draws, so it may draw as many as a correction needs
    # the statistic that is 0 under its null hypothesis
    centre: ClassVar[Literal["mean", "median", "pseudomedian"]] = "mean"
    power: ClassVar[Literal["", "formula", "simulated"]] = ""  # how its power is computed; empty if it is not
    facts = (
        *SignificanceTest.facts,
        *("interval", "binary", "discrete", "sampled", "needs_spread", "bayesian"),
        *("too_sure", "false_alarms", "shares_draws", "power"),
    )

    @property
    def order(self) -> tuple[bool, ...]:
        """Tests of any pairs first, then those of successes and failures, then those of unpaired samples."""
        return not self.paired, self.binary

    @property
    def samples(self) -> str:
        """The kind of samples: paired or unpaired."""
        return "paired" if self.paired else "unpaired"

    def power_at(self, n: int, prospect: Prospect, alpha: float, alternative: Alternative) -> float:
        """The power with n pairs, for a test that has a formula for it."""
        raise DataError(f"{self.name} has no formula for its power")

    def simulated_p(self, d: Floats, question: SignificanceSettings) -> Floats:
        """The p-value of each row of differences, for simulation: quick rather than exact."""
        p = [outcome.p for outcome in self.without_interval(np.zeros_like(d), d, question)]
        return np.asarray(np.nan_to_num(p, nan=1.0), np.float64)

    def rejects(self, d: Floats, alpha: float, question: SignificanceSettings) -> Bools:
        """Whether the p-value of each row of differences is at most alpha, for simulation."""
        return self.simulated_p(d, question) <= alpha

    @abstractmethod
    def compute(self, a: Floats, b: Floats, question: SignificanceSettings) -> SignificanceValues:
        """The arithmetic, on rows that were checked."""

    def __call__(self, a: npt.ArrayLike, b: npt.ArrayLike, **options: Any) -> SignificanceResult:
        """Test b against a: two sequences of numbers, of one length and order if the test is paired; options of `many`."""
        one, other = two_samples(a, b, paired=False)
        return self.many(one[None], other[None], **options)[0]

    def many(
        self,
        a: npt.ArrayLike,
        b: npt.ArrayLike,
        *,
        alternative: Alternative = "two-sided",
        level: float = 0.95,
        resamples: int = 10_000,
        rng: np.random.Generator | None = None,
        weights: npt.ArrayLike | None = None,
        sample: ProbabilitySample | None = None,
        **parameters: Any,
    ) -> list[SignificanceResult]:
        """Test row by row: `a` and `b` are tables with one pair of samples in each row. Resamples are shared by all.

        Only a test that draws resamples needs `rng`, and raises DataError without it. `weights` are the weights of the
        pairs, the same in each row; a test that does not support weights refuses them. `sample` says how the pairs were
        drawn from a population, and replaces the weights.
        """
        one, other = np.asarray(a, np.float64), np.asarray(b, np.float64)
        pair_weights = None if weights is None else np.asarray(weights, np.float64)
        if rng is None and self.sampled:
            raise DataError(f"{self.name} draws resamples: pass rng=np.random.default_rng(1); any seed will do")
        rng = np.random.default_rng(0) if rng is None else rng  # a test without resamples draws nothing
        return self.with_parameters(**parameters).outcomes(
            one, other, SignificanceSettings(alternative, level, resamples, rng, pair_weights, sample)
        )

    def outcomes(self, a: Floats, b: Floats, question: SignificanceSettings) -> list[SignificanceResult]:
        """The result for each row."""
        self._check_shapes(a, b)
        a, b, question = self.weighed(a, b, question)
        reasons, fit = self._look(a, b)
        figures = self.compute(a[fit], b[fit], question) if fit.any() else SignificanceValues(np.empty(0), np.empty(0))
        return list(self._outcomes(figures, reasons, fit))

    def weighed(
        self, a: Floats, b: Floats, question: SignificanceSettings
    ) -> tuple[Floats, Floats, SignificanceSettings]:
        """The same without pairs of weight 0; the weights are scaled to a mean of 1, and dropped if all are equal."""
        if question.sample is not None:
            if not self.design_based:
                able = ", ".join(one.name for one in self.registry.values() if one.design_based)
                raise DataError(f"{self.name} knows no sampling design; those that do are {able}")
            return a, b, question
        if question.weights is None:
            return a, b, question
        if not self.weighable:
            able = ", ".join(one.name for one in self.registry.values() if one.weighable)
            raise DataError(f"{self.name} knows no weights; those that do are {able}")
        weights = checked(question.weights, a.shape[1])
        weighted = weights > 0
        weights = checked(weights[weighted], int(weighted.sum()))
        alike = np.ptp(weights) <= NEAR if len(weights) else True
        return a[:, weighted], b[:, weighted], replace(question, weights=None if alike else weights)

    def without_interval(self, a: Floats, b: Floats, question: SignificanceSettings) -> list[SignificanceResult]:
        """The same test without its interval, which may cost far more than the p-value."""
        return self.outcomes(a, b, question)

    def all_pairs(self, table: Floats, resamples: int, rng: np.random.Generator) -> tuple[Floats, str]:
        """The p-values of all pairs of columns, as a square, and the reason why there are none."""
        one, other = np.triu_indices(table.shape[1], 1)
        outcomes = self.many(table.T[one], table.T[other], resamples=resamples, rng=rng)
        p = np.full((table.shape[1], table.shape[1]), np.nan)
        p[one, other] = p[other, one] = [outcome.p for outcome in outcomes]
        return p, ""

    def smallest_p(self, outcome: SignificanceResult, differing: int, sides: int) -> float:
        """The smallest possible p-value with this number of differing pairs; 0 if there is no bound."""
        return 0.0 if outcome.exact or not outcome.resamples else 1 / (outcome.resamples + 1)

    def _check_shapes(self, a: Floats, b: Floats) -> None:
        if a.ndim != 2 or b.ndim != 2 or len(a) != len(b):
            raise DataError(f"{self.name}: expected two tables with the same rows, found {a.shape} and {b.shape}")
        if self.paired and a.shape != b.shape:
            raise DataError(
                f"{self.name} tests pairs: expected as many values in b as in a, found {a.shape[1]} and {b.shape[1]}"
            )

    def _look(self, a: Floats, b: Floats) -> tuple[list[str], Bools]:
        """The remark on each row, and which rows can be tested."""
        few = _too_few(min(a.shape[1], b.shape[1]), self.paired)
        if few:
            return [few] * len(a), np.zeros(len(a), np.bool_)
        wild = (~np.isfinite(a)).sum(axis=1) + (~np.isfinite(b)).sum(axis=1)
        fit: Bools = wild == 0
        a, b = np.where(fit[:, None], a, 0.0), np.where(fit[:, None], b, 0.0)
        same, zero = _equal_differences(a, b) if self.paired else _equal_values(a, b)
        reasons = np.where(zero, "all differences are 0" if self.paired else "all values are equal", "").astype(object)
        if self.needs_spread and self.paired:
            for row in np.flatnonzero(same & ~zero):
                reasons[row] = f"all differences are equal ({(b[row] - a[row]).mean():g}), so {NO_SPREAD} them against"
        elif self.needs_spread:
            reasons[same] = f"the values within each sample are equal, so {NO_SPREAD} a difference against"
        if self.needs_spread:
            fit &= ~same
        if self.binary:
            other = ~(np.isin(a, (0, 1)) & np.isin(b, (0, 1))).all(axis=1)
            reasons[other] = f"{self.title} compares successes (1) and failures (0), and there are other values"
            fit &= ~other
        for number in np.unique(wild[wild > 0]):
            reasons[wild == number] = f"{'1 value is' if number == 1 else f'{number} values are'} not a finite number"
        return reasons.tolist(), fit

    def _outcomes(self, figures: SignificanceValues, reasons: list[str], fit: Bools) -> Iterator[SignificanceResult]:
        direction = np.sign(figures.statistic if figures.lean is None else figures.lean).astype(np.int64)
        numbers = figures.p, figures.statistic, figures.low, figures.high, figures.exact, direction
        columns: tuple[Any, ...] = (*numbers, np.asarray(figures.reason, object), *figures.extra.values())
        rows = zip(*(np.broadcast_to(column, int(fit.sum())).tolist() for column in columns), strict=True)
        for testable, reason in zip(fit.tolist(), reasons, strict=True):
            if testable:
                p, statistic, low, high, exact, direction, remark, *rest = next(rows)
                extra = dict(zip(figures.extra, rest, strict=True))
                why = reason or remark
                yield SignificanceResult(
                    self.name, p, statistic, low, high, exact, figures.resamples, why, extra, direction
                )
            else:
                yield SignificanceResult(self.name, math.nan, math.nan, reason=reason)


def check_alternative(alternative: str) -> None:
    """Refuse a word that is not an alternative."""
    if alternative not in ALTERNATIVES:
        raise DataError(f"alternative must be one of {', '.join(ALTERNATIVES)}, got {alternative!r}")


def p_from_tails(lower: Any, upper: Any, alternative: Alternative) -> Floats:
    """The p-value from the probabilities of a statistic as low and as high as observed; two-sided, twice the smaller.

    >>> float(p_from_tails(0.98, 0.03, "two-sided")), float(p_from_tails(0.98, 0.03, "greater"))
    (0.06, 0.03)
    """
    if alternative == "less":
        return np.asarray(lower, np.float64)
    if alternative == "greater":
        return np.asarray(upper, np.float64)
    p = 2 * np.minimum(lower, upper)
    return np.asarray(np.where(p > 1 - 1e-12, 1.0, p), np.float64)  # the middle itself is 1 but for rounding


def normal_tails(statistic: Floats, mean: Floats | float, deviation: Floats) -> tuple[Floats, Floats]:
    """Both tails by the normal distribution, with half a rank for continuity; both are 1 if nothing varies."""
    from scipy.special import ndtr  # type: ignore[import-untyped, unused-ignore]

    flat = deviation == 0
    scale = np.where(flat, 1.0, deviation)
    lower, upper = ndtr((statistic - mean + 0.5) / scale), ndtr(-(statistic - mean - 0.5) / scale)
    return np.where(flat, 1.0, lower), np.where(flat, 1.0, upper)


def _too_few(n: int, paired: bool) -> str:
    if n >= 2:
        return ""
    if paired:
        return "one pair only" if n else "no pairs"
    return "one value only in one of the samples" if n else "no values in one of the samples"


def _equal_differences(a: Floats, b: Floats) -> tuple[Bools, Bools]:
    """Rows whose differences are all the same, and rows whose differences are all 0."""
    d = differences(a, b)
    return np.ptp(d, axis=1) <= rounding(a, b), (d == 0).all(axis=1)


def _equal_values(a: Floats, b: Floats) -> tuple[Bools, Bools]:
    """Rows whose samples have one value each, and rows where this value is the same."""
    near = rounding(a, b)
    within = (np.ptp(a, axis=1) <= near) & (np.ptp(b, axis=1) <= near)
    return within, within & (np.abs(a[:, 0] - b[:, 0]) <= near)
