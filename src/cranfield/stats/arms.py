"""Two arms of an experiment: the level of each, and by how much they differ, as a difference or as a ratio.

The unit is what was randomised, one row each. A level is a mean, a ratio of two sums over units (its variance by the
delta method: Deng, Knoblich and Lu, 2018), or a proportion; covariates from before the experiment make it more
precise (CUPED: Deng, Xu, Kohavi and Walker, 2013), with one θ pooled over the arms. `a` is the baseline's arm, and a
positive effect means that b is greater.

The certainty of an effect depends on the number of looks at the data. Every `ArmEffect` takes a rule
(`sequential.Fixed`, `GroupSequentialRule`, `Sequence`) and gives its p-value and its interval under that rule; the
interval excludes 0 exactly if p is below alpha.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.stats.block_tables import probability
from cranfield.stats.correction import correct, holm_limits
from cranfield.stats.sequential import FIXED, LookRule
from cranfield.stats.two_sample_test import Alternative, check_alternative, p_from_tails

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from cranfield.stats.moments import Moments
    from cranfield.stats.ties import Floats

ROUNDING = 1e-9  # smaller errors, relative to the level, are rounding


class MetricColumn(NamedTuple):
    """A metric of units: the mean of a column, or the sum of a column over the sum of another."""

    numerator: str
    denominator: str | None = None


class ArmEffect(ABC):
    """The difference of two arms; p-values and intervals depend on a rule of looks."""

    value: Floats

    @abstractmethod
    def limits(self, tails: tuple[float, float], rule: LookRule = FIXED) -> tuple[Floats, Floats]:
        """The limits with these tail probabilities below and above; a tail of 0 leaves that side open."""

    @abstractmethod
    def tails(self, null: float = 0.0, rule: LookRule = FIXED) -> tuple[Floats, Floats]:
        """The one-sided p-values of an effect below `null`, and of one above it."""

    def p(self, rule: LookRule = FIXED, alternative: Alternative = "two-sided", null: float = 0.0) -> Floats:
        """The p-value of the hypothesis that the effect is `null`, two-sided or one-sided."""
        check_alternative(alternative)
        return np.minimum(1.0, p_from_tails(*self.tails(null, rule), alternative))

    def interval(self, level: float = 0.95, rule: LookRule = FIXED) -> tuple[Floats, Floats]:
        """The two-sided interval."""
        outside = 1 - probability("level", level)
        return self.limits((outside / 2, outside / 2), rule)


@dataclass(frozen=True)
class ArmLevel:
    """The level of one arm: its value, standard error and degrees of freedom (infinite: normal)."""

    value: Floats
    error: Floats
    df: Floats


@dataclass(frozen=True)
class EffectEstimate(ArmEffect):
    """An effect with a standard error, t-distributed; with `log` it is the logarithm of a ratio, shown as ratio − 1."""

    centre: Floats
    error: Floats
    df: Floats
    log: bool = False

    @property
    def value(self) -> Floats:  # type: ignore[override]
        """The point estimate; of a ratio as ratio − 1."""
        return self._on_scale(self.centre)

    def limits(self, tails: tuple[float, float], rule: LookRule = FIXED) -> tuple[Floats, Floats]:
        below, above = (self._reach(rule.critical(tail)) if tail else np.inf for tail in tails)
        return self._on_scale(self.centre - self.error * below), self._on_scale(self.centre + self.error * above)

    def tails(self, null: float = 0.0, rule: LookRule = FIXED) -> tuple[Floats, Floats]:
        from scipy.special import ndtri, stdtr  # type: ignore[import-untyped, unused-ignore]

        with np.errstate(divide="ignore", invalid="ignore"):
            t = (self.centre - (math.log1p(null) if self.log else null)) / self.error
        size = -ndtri(stdtr(self.df, -np.abs(t)))
        far, near = rule.tail(size), rule.tail(-size)
        return np.where(t < 0, far, near), np.where(t < 0, near, far)

    def _reach(self, z: float) -> Floats:
        """The t value with the same tail probability as this z. For an infinite z SciPy returns either sign, or NaN."""
        from scipy.special import ndtr, stdtrit

        if math.isinf(z):
            return np.full(np.shape(self.df), z)
        return np.where(np.isfinite(self.df), -stdtrit(self.df, ndtr(-z)), z)

    def _on_scale(self, number: npt.ArrayLike) -> Floats:
        with np.errstate(over="ignore"):  # the limits of a ratio of few units may overflow
            return np.asarray(np.expm1(number) if self.log else number, np.float64)


def level(
    arm: Moments,
    column: MetricColumn | str,
    covariates: Sequence[MetricColumn | str] = (),
    pooled: Moments | None = None,
) -> ArmLevel:
    """The level of an arm; with covariates by CUPED: the part that they explain (in `pooled`, both arms) is removed.

    A covariate that some units lack becomes two columns: its value, with 0 if missing, and whether the unit has it (see
    `present`).

    >>> from cranfield.stats.moments import Moments
    >>> arm = Moments.of(clicks=[1.0, 0.0, 3.0], views=[2.0, 1.0, 5.0])
    >>> found = level(arm, MetricColumn("clicks", "views"))
    >>> float(found.value), round(float(found.error), 4)
    (0.5, 0.1083)
    """
    value, weights = _linearised(arm, column)
    if covariates:
        if pooled is None:
            raise DataError("a covariate's θ is pooled: give the moments of both arms together")
        theta = _theta(pooled, column, covariates)
        for i, covariate in enumerate(covariates):
            own, own_weights = _linearised(arm, covariate)
            value = value - theta[..., i] * (own - _linearised(pooled, covariate)[0])
            weights = weights - theta[..., i, None] * own_weights
    variance = np.einsum("...i,...ij,...j->...", weights, arm.covariance, weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ArmLevel(value, np.sqrt(np.maximum(variance, 0.0) / arm.n), arm.n - 1)


def difference(a: ArmLevel, b: ArmLevel) -> EffectEstimate:
    """The difference b − a of two levels, by Welch's t.

    >>> from cranfield.stats.moments import Moments
    >>> a, b = (level(Moments.of(x=x), "x") for x in ([1.0, 2.0, 3.0], [3.0, 5.0, 7.0]))
    >>> found = difference(a, b)
    >>> float(found.value), [round(float(end), 3) for end in found.interval()], round(float(found.p()), 4)
    (3.0, [-1.155, 7.155], 0.1045)
    """
    return EffectEstimate(b.value - a.value, *_welch(a.error, b.error, a.df, b.df))


def against_0(own: ArmLevel) -> EffectEstimate:
    """A single level as an effect against 0, by Student's t."""
    return EffectEstimate(own.value, own.error, own.df)


def log_ratio(a: ArmLevel, b: ArmLevel) -> EffectEstimate:
    """The relative difference b / a − 1, its interval by the logarithm of the ratio; NaN unless both are above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = np.where((a.value > 0) & (b.value > 0), np.log(b.value / a.value), np.nan)
        return EffectEstimate(centre, *_welch(a.error / a.value, b.error / b.value, a.df, b.df), log=True)


def linear_ratio(a: ArmLevel, b: ArmLevel) -> EffectEstimate:
    """The relative difference b / a − 1, its interval symmetric: by the delta method without a logarithm."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(a.value != 0, b.value / a.value, np.nan)
        return EffectEstimate(
            ratio - 1, *_welch(np.abs(ratio) * a.error / np.abs(a.value), b.error / np.abs(a.value), a.df, b.df)
        )


class Corrected(NamedTuple):
    """One of several effects with simultaneous limits, which agree with its corrected p-value."""

    low: float
    high: float
    p: float


def simultaneous(effects: Sequence[ArmEffect], alpha: float = 0.05, rule: LookRule = FIXED) -> list[Corrected]:
    """The two-sided intervals and p-values of several effects by Holm's procedure, α/2 for each direction.

    Each direction is a family of its own, so an interval that excludes 0 also shows the sign.

    >>> near, far = (difference(*(ArmLevel(np.array(v), np.array(0.1), np.array(np.inf)) for v in (0.0, d))) for d in (0.1, 0.5))
    >>> [(round(each.low, 3), round(each.high, 3), round(each.p, 4)) for each in simultaneous([near, far])]
    [(-0.177, 0.417, 0.4795), (0.183, 0.817, 0.0008)]
    """
    tail = probability("alpha", alpha) / 2
    sides = [[float(each) for each in effect.tails(0.0, rule)] for effect in effects]
    less, greater = ([side[i] for side in sides] for i in (0, 1))
    low = holm_limits(greater, [_end(effect, rule, 1) for effect in effects], tail)
    high = -holm_limits(less, [_end(effect, rule, -1) for effect in effects], tail)
    p = np.minimum(1.0, 2 * np.minimum(correct(np.minimum(less, 1.0)), correct(np.minimum(greater, 1.0))))
    return [Corrected(*each) for each in zip(low.tolist(), high.tolist(), p.tolist(), strict=True)]


def present(values: npt.ArrayLike) -> tuple[Floats, Floats]:
    """A covariate that some units lack (NaN) as two columns: its value, with 0 if missing, and whether the unit has it.

    >>> [column.tolist() for column in present([2.0, float("nan")])]
    [[2.0, 0.0], [1.0, 0.0]]
    """
    numbers = np.asarray(values, np.float64)
    there = np.isfinite(numbers)
    return np.where(there, numbers, 0.0), there.astype(np.float64)


def doubt(a: ArmLevel, b: ArmLevel) -> str:
    """Why two levels cannot be compared; empty if they can.

    >>> doubt(ArmLevel(np.array(1.0), np.array(0.0), np.array(9.0)), ArmLevel(np.array(1.0), np.array(0.0), np.array(4.0)))
    'all units of each arm are alike, so there is no spread to measure a difference against'
    """
    for arm, own in (("first", a), ("second", b)):
        if own.df < 1:
            return f"the {arm} arm holds {'no units' if own.df < 0 else 'one unit only'}"
        if not (np.isfinite(own.value) and np.isfinite(own.error)):
            return f"the {arm} arm has no level: its denominator is 0"
    if all(own.error <= ROUNDING * abs(own.value) for own in (a, b)):
        return "all units of each arm are alike, so there is no spread to measure a difference against"
    return ""


def _end(effect: ArmEffect, rule: LookRule, sign: int) -> Callable[[float], float]:
    """The lower limit of an effect as a function of its tail; with a sign of −1 the negated upper limit."""
    if sign > 0:
        return lambda tail: float(effect.limits((tail, 0.0), rule)[0])
    return lambda tail: -float(effect.limits((0.0, tail), rule)[1])


def _linearised(arm: Moments, column: MetricColumn | str) -> tuple[Floats, Floats]:
    """A level, and its derivative with respect to each column's mean (the delta method)."""
    metric = MetricColumn(column) if isinstance(column, str) else column
    weights = np.zeros(arm.mean.shape)
    top = arm.place(metric.numerator)
    if metric.denominator is None:
        weights[..., top] = 1.0
        return arm.mean[..., top], weights
    below = arm.place(metric.denominator)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = arm.mean[..., top] / arm.mean[..., below]
        weights[..., top] += 1 / arm.mean[..., below]
        weights[..., below] -= ratio / arm.mean[..., below]
    return ratio, weights


def _theta(pooled: Moments, column: MetricColumn | str, covariates: Sequence[MetricColumn | str]) -> Floats:
    """The regression coefficient of each covariate; 0 for a constant covariate."""
    own = _linearised(pooled, column)[1]
    others = np.stack([_linearised(pooled, covariate)[1] for covariate in covariates], axis=-2)
    spread = np.einsum("...ic,...cd,...jd->...ij", others, pooled.covariance, others)
    shared = np.einsum("...ic,...cd,...d->...i", others, pooled.covariance, own)
    return np.asarray((np.linalg.pinv(spread, hermitian=True) @ shared[..., None])[..., 0], np.float64)


def _welch(a: Floats, b: Floats, a_df: Floats, b_df: Floats) -> tuple[Floats, Floats]:
    """The standard error of a difference of two levels with these errors, and its degrees of freedom (Satterthwaite)."""
    one, other = np.square(a), np.square(b)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = (one + other) ** 2 / (one**2 / a_df + other**2 / b_df)
    freedom = np.where(np.isinf(a_df) & np.isinf(b_df), np.inf, freedom)
    return np.sqrt(one + other), np.asarray(freedom, np.float64)
