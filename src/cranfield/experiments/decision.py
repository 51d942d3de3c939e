"""Decide an experiment: from statistics per variant to effects, intervals and the verdict, by the plan's method.

A primary is judged by its corrected interval (Holm over all primaries and variants), a guardrail by a non-inferiority
test against its margin, each at alpha. The boundary of the plan's method applies at the horizon too; a fixed test gives
no verdict before it. Nothing is read here: `unit_queries` gets the statistics, `analyze` reports the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.stats.arms import ArmEffect, MetricColumn, difference, doubt, level, log_ratio, simultaneous
from cranfield.stats.interval_limits import EffectInterval
from cranfield.stats.proportions import ProportionDifference, proportion
from cranfield.stats.sequential import FIXED, Fixed, GroupSequentialRule, LookRule, Sequence
from cranfield.stats.unit_effects import bootstrap, quantile, superiority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Sequence as Several

    from cranfield.experiments.plan import Plan
    from cranfield.experiments.unit_queries import PlannedMetric, VariantStatistics

EXIT_CODES = {"ship": 0, "stop": 1, "same": 1, "not shown": 1, "broken": 3, "continue": 3}
POWER = 0.8  # of the "detectable" effect
ALIKE = "all units of each arm are alike"


class VariantEffect(NamedTuple):
    """A variant against the control on one metric: both levels, the difference, and the ratio less 1."""

    control: float
    value: float
    difference: ArmEffect | None
    ratio: ArmEffect | None
    doubt: str = ""  # why the variants cannot be compared


Comparison = tuple["PlannedMetric", str, VariantEffect, tuple[int, int]]  # metric, variant, effects, both arms' units


@dataclass(frozen=True)
class MetricFinding:
    """The effect of one variant on one metric, against the control, and the conclusion."""

    metric: str
    variant: str
    guards: bool
    direction: str
    window: int | None
    estimate: str
    margin: float | None
    relative: bool  # whether the ratio decides; the margin is then a share as well
    units: tuple[int, int]
    control: float
    value: float
    difference: EffectInterval
    ratio: EffectInterval
    p: float  # of a primary, corrected; of a guardrail, of the non-inferiority test
    state: str  # good, bad, unclear; of a guardrail within, beyond, unclear
    same: bool  # whether the effect is equivalent to 0, that is, within the margin on both sides
    detectable: float  # the effect that would be detected with power 0.8
    needed: int | None  # units that would detect the margin, or half of the detectable effect
    covered: tuple[int, int] | None = None  # of a quantile: the units that have a value

    @property
    def role(self) -> str:
        """The role of the metric in the plan: primary or guardrail."""
        return "guardrail" if self.guards else "primary"

    @property
    def deciding(self) -> EffectInterval:
        """The interval that decides: that of the ratio if the plan asks for a relative effect, else that of the difference."""
        return self.ratio if self.relative else self.difference


# effects


def compare_variant(
    metric: PlannedMetric, numbers: VariantStatistics, control: str, variant: str, rng: np.random.Generator
) -> VariantEffect:
    """A variant against the control on one metric, by the plan's estimate."""
    if metric.needs_values:
        return _by_units(metric, numbers, control, variant, rng)
    a, b = numbers.moments[control], numbers.moments[variant]
    column = _column(metric, "x", "y")
    if metric.definition.kind == "proportion" and not metric.covariate:
        counts = [round(float(arm.mean[arm.place(metric.column("x"))] * arm.n)) for arm in (a, b)]
        one, other = proportion(counts[0], a.n), proportion(counts[1], b.n)
        effect: ArmEffect = ProportionDifference(counts[0], a.n, counts[1], b.n)
    else:
        pooled = a + b
        covariates = _covariates(metric, pooled)
        one, other = (level(arm, column, covariates, pooled) for arm in (a, b))
        effect = difference(one, other)
    levels = float(one.value), float(other.value)
    why = doubt(one, other).replace("first arm", f"variant {control!r}").replace("second arm", f"variant {variant!r}")
    if why.startswith(ALIKE) and isinstance(effect, ProportionDifference) and levels[0] != levels[1]:
        why = ""
    if why:
        return VariantEffect(*levels, None, None, why)
    ratio = log_ratio(one, other)
    return VariantEffect(*levels, effect, ratio if np.isfinite([ratio.centre, ratio.error]).all() else None)


def _column(metric: PlannedMetric, above: str, below: str) -> MetricColumn:
    ratio = metric.definition.denominator is not None
    return MetricColumn(metric.column(above), metric.column(below) if ratio else None)


def _covariates(metric: PlannedMetric, pooled: Any) -> list[MetricColumn]:
    """The CUPED covariates: the metric before the first exposure, and whether a unit has such a past.

    There are none if no unit has a past.
    """
    if not metric.covariate or not pooled.n:
        return []
    column = _column(metric, "xp", "yp")
    lacking = column.denominator is not None and not pooled.mean[pooled.place(column.denominator)]
    return [] if lacking else [column, MetricColumn(metric.column("there"))]


def _by_units(
    metric: PlannedMetric, numbers: VariantStatistics, control: str, variant: str, rng: np.random.Generator
) -> VariantEffect:
    few = next((name for name in (control, variant) if name not in numbers.values), None)
    if few is not None:
        why = f"variant {few!r} holds fewer than two units with such a value"
        return VariantEffect(math.nan, math.nan, None, None, why)
    a, b = numbers.values[control], numbers.values[variant]
    if metric.definition.kind == "quantile":
        q = metric.definition.q
        levels = tuple(np.quantile(np.repeat(each.values, each.counts.astype(int)), q) for each in (a, b))
        return _spread(levels, quantile(a, b, q, rng), _existing(quantile, a, b, q, rng, relative=True))
    means = tuple(_statistic(each.counts[None] @ each.rows / each.n)[0] for each in (a, b))
    if metric.choice.estimate == "mann-whitney":
        if a.rows.shape[1] > 1:
            problem = "ranks need one value per unit, and this is a ratio of sums; use the bootstrap"
            raise DataError(f"{metric.name}: {problem}")
        return _spread(means, superiority(a, b), None)
    absolute = _existing(bootstrap, a, b, _statistic, rng)
    return _spread(means, absolute, _existing(bootstrap, a, b, _statistic, rng, relative=True))


def _existing(resample: Callable[..., ArmEffect], *arguments: Any, **how: Any) -> ArmEffect | None:
    """An effect by resampling; None if a denominator is 0 in some resamples."""
    try:
        return resample(*arguments, **how)
    except DataError:
        return None


def _spread(levels: tuple[Any, ...], absolute: ArmEffect | None, relative: ArmEffect | None) -> VariantEffect:
    control, value = map(float, levels)
    if absolute is None:
        return VariantEffect(control, value, None, None, "a denominator is 0 in some resamples")
    low, high = absolute.interval()
    if not (np.isfinite(low) and np.isfinite(high)) or low == high:
        return VariantEffect(control, value, None, None, f"{ALIKE}, so there is no spread")
    return VariantEffect(control, value, absolute, relative)


def _statistic(mean: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return mean[:, 0] if mean.shape[1] == 1 else mean[:, 0] / mean[:, 1]


# the plan's one method


def rule_at(plan: Plan, shares: Several[float], last: bool, had: int | None = None) -> LookRule:
    """The decision rule after looks with these information fractions; `last` says that this is the horizon.

    The plan allots an error rate to each look, by its share of the horizon's days or units; the look spends that much,
    however many units there are. `had` is the number of planned looks so far; the first of them are not among
    `shares` if they had no units.
    """
    if plan.method == "looks":
        number = len(shares) if had is None else had
        return GroupSequentialRule(tuple(shares), plan.spending, last, plan.looks[number - len(shares) : number])
    return Sequence(shares[-1], plan.alpha) if plan.method == "sequence" else FIXED


def metric_findings(
    plan: Plan, comparisons: Iterable[Comparison], rule: LookRule, *, p: bool = True
) -> list[MetricFinding]:
    """The finding on each comparison under a rule; a comparison is a metric, a variant, its effects, both arms' units."""
    listed = list(comparisons)
    primary = [(metric, effect) for metric, _, effect, _ in listed if not metric.guards]
    corrected = _corrected([_deciding(*each) for each in primary], plan.alpha, rule, p)
    others = _corrected([_other(*each) for each in primary], plan.alpha, rule, False)
    intervals = iter(zip(corrected, others, strict=True))
    return [
        _guardrail(plan, each, rule, p) if each[0].guards else _primary(plan, each, next(intervals), rule, len(primary))
        for each in listed
    ]


def undecided_reason(findings: Several[MetricFinding], plan: Plan, rule: LookRule) -> str:
    """Why some primaries have no interval at this look; empty if all have one."""
    primaries = [each for each in findings if not each.guards]
    lacking = [each.metric for each in primaries if not each.deciding.exists]
    if not lacking:
        return ""
    too_few = f"{', '.join(dict.fromkeys(lacking))}: too few units for a finite interval"
    return cannot_decide(rule, plan.alpha / (2 * len(primaries))) or too_few


def cannot_decide(rule: LookRule, tail: float) -> str:
    """Why a look cannot decide: it may spend too little of the error rate. Empty if it can decide."""
    if not isinstance(rule, GroupSequentialRule) or math.isfinite(rule.critical(tail)):
        return ""
    return f"this look cannot decide: it may spend only {2 * rule.spends(tail):.0e} of the error rate of {2 * tail:.2g}"


def _deciding(metric: PlannedMetric, comparison: VariantEffect) -> ArmEffect:
    effect = comparison.ratio if metric.choice.relative else comparison.difference
    if effect is None:
        raise DataError(f"{metric.name}: {comparison.doubt or 'a relative effect needs levels above 0'}")
    return effect


def _other(metric: PlannedMetric, comparison: VariantEffect) -> ArmEffect | None:
    return comparison.difference if metric.choice.relative else comparison.ratio


def _corrected(effects: list[Any], alpha: float, rule: LookRule, p: bool) -> list[tuple[EffectInterval, float]]:
    """Simultaneous intervals and corrected p-values (Holm)."""
    there = [effect for effect in effects if effect is not None]
    if len(there) == 1:
        intervals = iter([(interval_of(there[0], alpha / 2, rule), float(there[0].p(rule)) if p else math.nan)])
    else:
        limits = zip(there, simultaneous(there, alpha, rule), strict=True)
        intervals = ((EffectInterval(float(effect.value), own.low, own.high), own.p) for effect, own in limits)
    return [(EffectInterval(math.nan), math.nan) if effect is None else next(intervals) for effect in effects]


def _primary(plan: Plan, one: Comparison, intervals: Any, rule: LookRule, tests: int) -> MetricFinding:
    metric = one[0]
    (own, p), (other, _) = intervals
    effect = _deciding(metric, one[2])
    good, bad = (own.above(), own.below()) if metric.direction == "up" else (own.below(), own.above())
    same = own.exists and interval_of(effect, plan.alpha, rule).inside(metric.choice.margin)
    could = _detectable(effect, plan.alpha / (2 * tests), rule)
    return _finding(one, own, other, could, p=p, state="good" if good else "bad" if bad else "unclear", same=same)


def _guardrail(plan: Plan, one: Comparison, rule: LookRule, p: bool) -> MetricFinding:
    """The non-inferiority test of a guardrail at alpha: within its margin, beyond it, or unclear."""
    metric = one[0]
    effect, other = _deciding(metric, one[2]), _other(metric, one[2])
    own = interval_of(effect, plan.alpha, rule)
    beside = EffectInterval(math.nan) if other is None else interval_of(other, plan.alpha, rule)
    margin = metric.choice.margin
    assert margin is not None
    if metric.direction == "up":
        within, beyond = own.above(-margin), own.below(-margin)
        chance = effect.p(rule, "greater", -margin) if p and (not metric.choice.relative or margin < 1) else math.nan
    else:
        within, beyond = own.below(margin), own.above(margin)
        chance = effect.p(rule, "less", margin) if p else math.nan
    state = "within" if within else "beyond" if beyond else "unclear"
    could = _detectable(effect, plan.alpha, rule)
    return _finding(one, own, beside, could, p=float(chance), state=state, same=own.inside(margin))


def _finding(
    one: Comparison, own: EffectInterval, other: EffectInterval, could: float, **outcome: Any
) -> MetricFinding:
    metric, variant, comparison, units = one
    choice = metric.choice
    target = choice.margin or could / 2
    units_needed = sum(units) * (could / target) ** 2 if could and math.isfinite(could) else math.nan
    planned = (metric.name, variant, metric.guards, metric.direction)
    chosen = (choice.window, choice.estimate, choice.margin, choice.relative)
    levels = (units, comparison.control, comparison.value)
    intervals = (other, own) if choice.relative else (own, other)
    needed = round_up(units_needed) if math.isfinite(units_needed) else None
    return MetricFinding(*planned, *chosen, *levels, *intervals, **outcome, detectable=could, needed=needed)


def interval_of(effect: ArmEffect, tail: float, rule: LookRule = FIXED) -> EffectInterval:
    """The effect with its interval, whose tail probability is the same on both sides."""
    return EffectInterval(float(effect.value), *(float(end) for end in effect.limits((tail, tail), rule)))


def _detectable(effect: ArmEffect, tail: float, rule: LookRule) -> float:
    """The effect detected with power 0.8: the critical value plus the quantile of the power, in standard errors."""
    half = Fixed().critical(0.025)
    low, high = (float(end) for end in effect.interval(0.95))
    return (high - low) / (2 * half) * (rule.critical(tail) + Fixed().critical(1 - POWER))


def round_up(number: float) -> int:
    """A number of units rounded up to two digits; a plan is no more precise than that.

    >>> round_up(12_345), round_up(7)
    (13000, 7)
    """
    step = int(10 ** max(0, len(str(int(number))) - 2))
    return math.ceil(number / step) * step


# verdicts


def verdict_of(findings: Several[MetricFinding], ended: bool) -> str:
    """The verdict on one variant."""
    primaries = [each for each in findings if not each.guards]
    rails = [each for each in findings if each.guards]
    if any(each.state in ("bad", "beyond") for each in findings):
        return "stop"
    if any(each.state == "good" for each in primaries) and all(each.state == "within" for each in rails):
        return "ship"
    if primaries and all(each.same for each in primaries):
        return "same"
    return "not shown" if ended else "continue"


def overall_verdict(verdicts: Several[str], ended: bool) -> str:
    """The verdict on an experiment with several variants: ship if one of them ships."""
    if "ship" in verdicts:
        return "ship"
    if verdicts and {*verdicts} <= {"stop", "same"}:
        return "same" if "same" in verdicts else "stop"
    return "not shown" if ended else "continue"
