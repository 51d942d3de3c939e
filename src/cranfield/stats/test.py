"""What a test of two samples is, what it is asked, and what it says.

One class is one test: its arithmetic, and all that is said of it. `a` holds the baseline's values, `b` the other's; the
difference is always b − a, and "greater" means that b is greater. A test's arithmetic takes whole tables, one row for
each pair of samples, so that one call tests one pair or twenty thousand, by the same lines. All checks of the data
stand here, above the arithmetic: a p-value that cannot be had is NaN with a reason in words, and a test without spread
to measure against says so instead of answering 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cranfield.errors import DataError
from cranfield.stats.method import SignificanceTest
from cranfield.stats.ties import differences, rounding

if TYPE_CHECKING:
    from collections.abc import Mapping


Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Alternative: TypeAlias = Literal["two-sided", "less", "greater"]
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "less", "greater")


@dataclass(frozen=True)
class Outcome:
    """What a test says of one pair of samples."""

    test: str
    """Its name in the registry."""
    p: float
    """NaN where it cannot be had; then `reason` says why."""
    statistic: float
    low: float = math.nan
    """The interval of the difference that belongs to the test, at the level asked, open on one side if the
    alternative is one-sided; NaN if the test has none."""
    high: float = math.nan
    exact: bool = True
    """Whether the p-value comes from the whole distribution of the statistic rather than from samples or a limit."""
    resamples: int = 0
    reason: str = ""
    """What must be said of the data: "all differences are 0", "one pair only" …"""
    extra: Mapping[str, float] = field(default_factory=dict)
    """What only this test knows, such as the probabilities of a Bayesian analysis."""


@dataclass(frozen=True)
class Question:
    """What a test is asked: which alternative, which level, how many resamples from which source of chance."""

    alternative: Alternative
    level: float
    resamples: int
    rng: np.random.Generator

    def __post_init__(self) -> None:
        if self.alternative not in ALTERNATIVES:
            raise DataError(f"alternative must be one of {', '.join(ALTERNATIVES)}, got {self.alternative!r}")
        if not 0 < self.level < 1:
            raise DataError(f"level must be between 0 and 1, got {self.level}")
        if self.resamples < 1:
            raise DataError(f"resamples must be at least 1, got {self.resamples}")

    @property
    def tails(self) -> tuple[float, float]:
        """The chance that an interval leaves out below and above: none on the open side of a one-sided one."""
        outside = 1 - self.level
        both = {"two-sided": (outside / 2, outside / 2), "greater": (outside, 0.0), "less": (0.0, outside)}
        return both[self.alternative]


@dataclass(frozen=True)
class Figures:
    """What a test's arithmetic gives, one entry for each row."""

    p: Floats
    statistic: Floats
    low: Floats | float = math.nan
    high: Floats | float = math.nan
    exact: Bools | bool = True
    resamples: int = 0
    reason: str = ""
    extra: Mapping[str, Floats] = field(default_factory=dict)


class Test(SignificanceTest, ABC):
    """A test of two samples: its arithmetic, what it is, and what its data must be."""

    __test__: ClassVar[bool] = False  # pytest: this is not one of yours

    kind = "test"
    registry: ClassVar[dict[str, Test]] = {}

    paired: ClassVar[bool] = True
    discrete: ClassVar[bool] = False  # few possible p-values: it rejects less often than it may
    sampled: ClassVar[bool] = False  # it draws resamples, and another rng gives a slightly different p
    spread: ClassVar[bool] = False  # undefined where all differences are the same
    binary: ClassVar[bool] = False  # only for values 0 and 1
    bayesian: ClassVar[bool] = False  # gives probabilities and an interval, never a p-value
    interval: ClassVar[str] = ""  # what the interval of the mean difference that comes with it is called
    too_sure: ClassVar[Literal["", "few pairs", "huge differences"]] = (
        ""  # with what it raises more false alarms than alpha
    )
    shares_draws: ClassVar[bool] = False  # between thousands of pairs: it may draw as many as a correction needs
    power: ClassVar[Literal["", "formula", "simulated"]] = ""  # how its power is computed, if it is

    @property
    def order(self) -> tuple[bool, ...]:
        """Tests of any pairs first, then those of successes and failures, then those of unpaired samples."""
        return not self.paired, self.binary

    def facts(self) -> dict[str, Any]:
        return {
            **super().facts(),
            "samples": "paired" if self.paired else "unpaired",
            "values": "0 and 1" if self.binary else "any numbers",
            "interval": self.interval,
            "discrete": self.discrete,
            "sampled": self.sampled,
            "needs_spread": self.spread,
            "bayesian": self.bayesian,
            "too_sure_with": self.too_sure,
            "power": self.power,
        }

    @abstractmethod
    def compute(self, a: Floats, b: Floats, question: Question) -> Figures:
        """The arithmetic, on rows that were checked."""

    def __call__(
        self,
        a: npt.ArrayLike,
        b: npt.ArrayLike,
        *,
        alternative: Alternative = "two-sided",
        level: float = 0.95,
        resamples: int = 10_000,
        rng: np.random.Generator,
        **parameters: Any,
    ) -> Outcome:
        """Test b against a: two sequences of numbers, of one length and order if the test is paired."""
        one, other = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if one.ndim != 1 or other.ndim != 1:
            raise DataError(f"{self.name}: expected two sequences of numbers, found {one.shape} and {other.shape}")
        question = Question(alternative, level, resamples, rng)
        return self.given(**parameters).outcomes(one[None], other[None], question)[0]

    def many(
        self,
        a: npt.ArrayLike,
        b: npt.ArrayLike,
        *,
        alternative: Alternative = "two-sided",
        level: float = 0.95,
        resamples: int = 10_000,
        rng: np.random.Generator,
        **parameters: Any,
    ) -> list[Outcome]:
        """Test row by row: `a` and `b` are tables with one pair of samples in each row. Resamples are shared by all."""
        one, other = np.asarray(a, np.float64), np.asarray(b, np.float64)
        return self.given(**parameters).outcomes(one, other, Question(alternative, level, resamples, rng))

    def outcomes(self, a: Floats, b: Floats, question: Question) -> list[Outcome]:
        """What it says of each row."""
        self._check_shapes(a, b)
        reasons, fit = self._look(a, b)
        figures = self.compute(a[fit], b[fit], question) if fit.any() else None
        return self._outcomes(figures, reasons, fit)

    def without_interval(self, a: Floats, b: Floats, question: Question) -> list[Outcome]:
        """The same where nobody looks at the interval, which may cost far more than the p-value."""
        return self.outcomes(a, b, question)

    def all_pairs(self, table: Floats, resamples: int, rng: np.random.Generator) -> tuple[Floats, str]:
        """The p-values of all pairs of columns, as a square, and the reason why there are none."""
        one, other = np.triu_indices(table.shape[1], 1)
        outcomes = self.many(table.T[one], table.T[other], resamples=resamples, rng=rng)
        p = np.full((table.shape[1], table.shape[1]), np.nan)
        p[one, other] = p[other, one] = [outcome.p for outcome in outcomes]
        return p, ""

    def smallest_p(self, outcome: Outcome, differing: int, sides: int) -> float:
        """The smallest p that it could have given, with so many pairs that differ; 0 where nothing bounds it."""
        return 0.0 if outcome.exact or not outcome.resamples else 1 / (outcome.resamples + 1)

    def _check_shapes(self, a: Floats, b: Floats) -> None:
        if a.ndim != 2 or b.ndim != 2 or len(a) != len(b):
            raise DataError(f"{self.name}: expected two tables with the same rows, found {a.shape} and {b.shape}")
        if self.paired and a.shape != b.shape:
            raise DataError(
                f"{self.name} tests pairs: expected as many values in b as in a, found {a.shape[1]} and {b.shape[1]}"
            )

    def _look(self, a: Floats, b: Floats) -> tuple[list[str], Bools]:
        """What must be said of each row, and which rows can be tested."""
        few = _too_few(a.shape[1], b.shape[1], self.paired)
        if few:
            return [few] * len(a), np.zeros(len(a), np.bool_)
        wild = (~np.isfinite(a)).sum(axis=1) + (~np.isfinite(b)).sum(axis=1)
        fit: Bools = wild == 0
        a, b = np.where(fit[:, None], a, 0.0), np.where(fit[:, None], b, 0.0)
        same, zero = _all_same(a, b) if self.paired else _all_same_unpaired(a, b)
        reasons = [""] * len(a)
        for row in np.flatnonzero(zero):
            reasons[row] = "all differences are 0" if self.paired else "all values are equal"
        if self.spread:
            for row in np.flatnonzero(same):
                reasons[row] = _no_spread(a[row], b[row], self.paired)
            fit &= ~same
        if self.binary:
            other = (((a != 0) & (a != 1)) | ((b != 0) & (b != 1))).any(axis=1)
            for row in np.flatnonzero(other):
                reasons[row] = f"{self.title} compares successes (1) and failures (0), and there are other values"
            fit &= ~other
        for row in np.flatnonzero(wild):
            what = "1 value is" if wild[row] == 1 else f"{wild[row]} values are"
            reasons[row] = f"{what} not a finite number"
        return reasons, fit

    def _outcomes(self, figures: Figures | None, reasons: list[str], fit: Bools) -> list[Outcome]:
        if figures is None:
            return [Outcome(self.name, math.nan, math.nan, reason=reason) for reason in reasons]
        n = int(fit.sum())
        p, statistic, low, high = (
            np.broadcast_to(part, n).tolist() for part in (figures.p, figures.statistic, figures.low, figures.high)
        )
        exact = np.broadcast_to(figures.exact, n).tolist()
        extra = {key: np.broadcast_to(values, n).tolist() for key, values in figures.extra.items()}
        place = (np.cumsum(fit) - 1).tolist()
        return [
            Outcome(
                self.name,
                p[k],
                statistic[k],
                low[k],
                high[k],
                exact[k],
                figures.resamples,
                reason or figures.reason,
                {key: values[k] for key, values in extra.items()},
            )
            if testable
            else Outcome(self.name, math.nan, math.nan, reason=reason)
            for k, testable, reason in zip(place, fit.tolist(), reasons, strict=True)
        ]


def p_from_tails(lower: Any, upper: Any, alternative: Alternative) -> Floats:
    """The p-value from the chances of a statistic as low and as high as the one found; two-sided, twice the smaller.

    >>> float(p_from_tails(0.98, 0.03, "two-sided")), float(p_from_tails(0.98, 0.03, "greater"))
    (0.06, 0.03)
    """
    if alternative == "less":
        return np.asarray(lower, np.float64)
    if alternative == "greater":
        return np.asarray(upper, np.float64)
    p = 2 * np.minimum(lower, upper)
    return np.asarray(np.where(p > 1 - 1e-12, 1.0, p), np.float64)  # the middle itself is 1 but for rounding


def _too_few(a: int, b: int, paired: bool) -> str:
    least = min(a, b)
    if least >= 2:
        return ""
    if paired:
        return "one pair only" if least else "no pairs"
    return "one value only in one of the samples" if least else "no values in one of the samples"


def _all_same(a: Floats, b: Floats) -> tuple[Bools, Bools]:
    """Rows whose differences are all the same, and those whose differences are all 0."""
    d = differences(a, b)
    same = np.ptp(d, axis=1) <= rounding(a, b)
    return same, (d == 0).all(axis=1)


def _all_same_unpaired(a: Floats, b: Floats) -> tuple[Bools, Bools]:
    near = rounding(a, b)
    within = (np.ptp(a, axis=1) <= near) & (np.ptp(b, axis=1) <= near)
    return within, within & (np.abs(a[:, 0] - b[:, 0]) <= near)


def _no_spread(a: Floats, b: Floats, paired: bool) -> str:
    difference = float(f"{(b - a).mean() if paired else b.mean() - a.mean():.6g}")
    if not paired:
        return "the values within each sample are equal, so there is no spread to measure a difference against"
    if not differences(a[None], b[None]).any():
        return "all differences are 0"
    return f"all differences are equal ({difference:g}), so there is no spread to measure them against"
