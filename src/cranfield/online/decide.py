"""Numbers by variant → what they show under the plan's one method, and the verdict.

A primary counts by its corrected interval (Holm over all primaries and variants), a guardrail by whether it is shown to be
within its margin, each at alpha. The boundary of the plan's method decides at the horizon too; a fixed test says nothing
before it. Nothing is read here: `gather` brings the numbers, `analyze` tells the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.errors import DataError
from cranfield.stats.arms import Column, Effect, Level, difference, doubt, level, log_ratio, simultaneous
from cranfield.stats.counted import bootstrap, quantile, superiority
from cranfield.stats.limits import Limits
from cranfield.stats.proportions import ProportionDifference, proportion
from cranfield.stats.sequential import FIXED, Fixed, Looks, Rule, Sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Sequence as Several

    from cranfield.online.gather import Asked, Numbers
    from cranfield.online.plan import Plan
    from cranfield.stats.counted import Counted

__all__ = ["EXIT_CODES", "Compared", "Finding", "compared", "findings", "overall", "rule_at", "undecided", "verdict_of"]

EXIT_CODES = {"ship": 0, "stop": 1, "same": 1, "not shown": 1, "broken": 3, "continue": 3}
POWER = 0.8  # with which an effect "could have been shown"
ALIKE = "all units of each arm are alike"


class Compared(NamedTuple):
    """A variant against the control by one metric: both levels, the effect as a difference and as a ratio less 1."""

    control: float
    value: float
    difference: Effect | None
    ratio: Effect | None
    doubt: str = ""  # why there is nothing to compare


@dataclass(frozen=True)
class Finding:
    """What one metric shows of one variant against the control."""

    metric: str
    variant: str
    guards: bool
    direction: str
    window: int | None
    estimate: str
    margin: float | None
    relative: bool  # whether the ratio decides, and the margin is one
    units: tuple[int, int]
    control: float
    value: float
    difference: Limits
    ratio: Limits
    p: float  # corrected, of a primary; of a guardrail, that it is within its margin
    state: str  # good, bad, unclear; of a guardrail within, beyond, unclear
    same: bool  # whether it is shown to be within the margin on both sides
    detectable: float  # the effect that would have been found with power 0.8
    needed: int | None  # units that would find the margin, or half of what these could
    covered: tuple[int, int] | None = None  # units that have a value, of a quantile

    @property
    def deciding(self) -> Limits:
        """The interval that decides."""
        return self.ratio if self.relative else self.difference


# effects


def compared(asked: Asked, numbers: Numbers, control: str, variant: str, rng: np.random.Generator) -> Compared:
    """A variant against the control by one metric, as the plan has it estimated."""
    if asked.counted:
        return _by_units(asked, numbers, control, variant, rng)
    a, b = numbers.moments[control], numbers.moments[variant]
    column = _column(asked, "x", "y")
    if asked.metric.kind == "proportion" and not asked.covariate:
        counts = [round(float(arm.mean[arm.place(asked.column("x"))] * arm.n)) for arm in (a, b)]
        one, other = proportion(counts[0], a.n), proportion(counts[1], b.n)
        effect: Effect = ProportionDifference(counts[0], a.n, counts[1], b.n)
    else:
        pooled = a + b
        covariates = _covariates(asked, pooled)
        one, other = (level(arm, column, covariates, pooled) for arm in (a, b))
        effect = difference(one, other)
    levels = float(one.value), float(other.value)
    why = doubt(one, other).replace("first arm", f"variant {control!r}").replace("second arm", f"variant {variant!r}")
    if why.startswith(ALIKE) and isinstance(effect, ProportionDifference) and levels[0] != levels[1]:
        why = ""
    if why:
        return Compared(*levels, None, None, why)
    return Compared(*levels, effect, _ratio(one, other))


def _ratio(one: Level, other: Level) -> Effect | None:
    ratio = log_ratio(one, other)
    return ratio if np.isfinite(ratio.centre) and np.isfinite(ratio.error) else None


def _column(asked: Asked, above: str, below: str) -> Column:
    ratio = asked.metric.denominator is not None
    return Column(asked.column(above), asked.column(below) if ratio else None)


def _covariates(asked: Asked, pooled: Any) -> list[Column]:
    """The metric before the first exposure, and whether there was such a time; none where nobody had one."""
    if not asked.covariate or not pooled.n:
        return []
    column = _column(asked, "xp", "yp")
    lacking = column.denominator is not None and not pooled.mean[pooled.place(column.denominator)]
    return [] if lacking else [column, Column(asked.column("there"))]


def _by_units(asked: Asked, numbers: Numbers, control: str, variant: str, rng: np.random.Generator) -> Compared:
    few = next((name for name in (control, variant) if name not in numbers.counted), None)
    if few is not None:
        return Compared(math.nan, math.nan, None, None, f"variant {few!r} holds fewer than two units with such a value")
    a, b = numbers.counted[control], numbers.counted[variant]
    if asked.metric.kind == "quantile":
        levels = tuple(_quantile(each, asked.metric.q) for each in (a, b))
        absolute: Effect | None = quantile(a, b, asked.metric.q, rng)
        return _spread(levels, absolute, _existing(quantile, a, b, asked.metric.q, rng, relative=True))
    means = tuple(_statistic(each.counts[None] @ each.rows / each.n)[0] for each in (a, b))
    if asked.choice.estimate == "mann-whitney":
        if a.rows.shape[1] > 1:
            raise DataError(
                f"{asked.name}: ranks need one value a unit, and this is a ratio of sums; take the bootstrap"
            )
        return _spread(means, superiority(a, b), None)
    absolute = _existing(bootstrap, a, b, _statistic, rng)
    return _spread(means, absolute, _existing(bootstrap, a, b, _statistic, rng, relative=True))


def _existing(resample: Callable[..., Effect], *given: Any, **how: Any) -> Effect | None:
    """An effect by resampling; None where a denominator is 0 in some resamples."""
    try:
        return resample(*given, **how)
    except DataError:
        return None


def _spread(levels: tuple[Any, ...], absolute: Effect | None, relative: Effect | None) -> Compared:
    if absolute is None:
        return Compared(float(levels[0]), float(levels[1]), None, None, "a denominator is 0, or nearly always so")
    low, high = absolute.interval()
    if not (np.isfinite(low) and np.isfinite(high)) or low == high:
        return Compared(float(levels[0]), float(levels[1]), None, None, f"{ALIKE}, so there is no spread")
    return Compared(float(levels[0]), float(levels[1]), absolute, relative)


def _statistic(mean: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return mean[:, 0] if mean.shape[1] == 1 else mean[:, 0] / mean[:, 1]


def _quantile(sample: Counted, q: float) -> float:
    return float(np.quantile(np.repeat(sample.values, sample.counts.astype(int)), q))


# the plan's one method


def rule_at(plan: Plan, shares: Several[float], last: bool, had: int | None = None) -> Rule:
    """The rule that decides, after looks with this much information each; `last` at the horizon.

    A look spends what the plan has for it, by its share of the days or units of the horizon, however many units there
    are. `had` is the number of planned looks so far, if some of the first had no units and are not among `shares`.
    """
    if plan.method == "looks":
        number = len(shares) if had is None else had
        return Looks(tuple(shares), plan.spending, last, plan.looks[number - len(shares) : number])
    return Sequence(shares[-1], plan.alpha) if plan.method == "sequence" else FIXED


def findings(
    plan: Plan, comparisons: Iterable[tuple[Asked, str, Compared, tuple[int, int]]], rule: Rule, *, p: bool = True
) -> list[Finding]:
    """What metrics show under a rule; each is given with its variant, its effects and the units of both arms."""
    known = list(comparisons)
    primary = [(asked, found) for asked, _, found, _ in known if not asked.guards]
    corrected = _corrected([_deciding(*each) for each in primary], plan.alpha, rule, p)
    others = _corrected([_other(*each) for each in primary], plan.alpha, rule, False)
    shown = iter(zip(corrected, others, strict=True))
    return [
        _guardrail(plan, each, rule, p) if each[0].guards else _primary(plan, each, next(shown), rule, len(primary))
        for each in known
    ]


def undecided(found: Several[Finding], plan: Plan, rule: Rule) -> str:
    """Why some primaries have no interval at this look, in words; nothing where all have one."""
    primaries = [each for each in found if not each.guards]
    lacking = [each.metric for each in primaries if not each.deciding.exists]
    if not lacking:
        return ""
    return cannot_decide(rule, plan.alpha / (2 * len(primaries))) or (
        f"{', '.join(dict.fromkeys(lacking))}: too few units for an interval with finite ends"
    )


def cannot_decide(rule: Rule, tail: float) -> str:
    """That a look cannot decide because it may spend next to nothing of the error rate; nothing where it can."""
    if not isinstance(rule, Looks) or math.isfinite(rule.critical(tail)):
        return ""
    return f"this look cannot decide: it may spend only {2 * rule.spends(tail):.0e} of the error rate of {2 * tail:.2g}"


def _deciding(asked: Asked, found: Compared) -> Effect:
    effect = found.ratio if asked.choice.relative else found.difference
    if effect is None:
        raise DataError(f"{asked.name}: {found.doubt or 'a relative effect needs levels above 0'}")
    return effect


def _other(asked: Asked, found: Compared) -> Effect | None:
    return found.difference if asked.choice.relative else found.ratio


def _corrected(effects: list[Any], alpha: float, rule: Rule, p: bool) -> list[tuple[Limits, float]]:
    """Intervals that hold together, and corrected p-values."""
    there = [effect for effect in effects if effect is not None]
    if len(there) == 1:
        low, high = (float(end) for end in there[0].limits((alpha / 2, alpha / 2), rule))
        limits = iter([(low, high, float(there[0].p(rule)) if p else math.nan)])
    else:
        limits = iter([(each.low, each.high, each.p) for each in simultaneous(there, alpha, rule)])
    answer = []
    for effect in effects:
        low, high, chance = (math.nan, math.nan, math.nan) if effect is None else next(limits)
        answer.append((Limits(math.nan if effect is None else float(effect.value), low, high), chance))
    return answer


def _primary(plan: Plan, one: Any, shown: Any, rule: Rule, tests: int) -> Finding:
    asked, variant, found, units = one
    (own, p), (other, _) = shown
    effect = _deciding(asked, found)
    good, bad = (own.above(), own.below()) if asked.direction == "up" else (own.below(), own.above())
    same = own.exists and _limits(effect, (plan.alpha, plan.alpha), rule).inside(asked.choice.margin)
    could = _detectable(effect, plan.alpha / (2 * tests), rule)
    return _finding(
        asked, variant, found, units, own, other, p, "good" if good else "bad" if bad else "unclear", same, could
    )


def _guardrail(plan: Plan, one: Any, rule: Rule, p: bool) -> Finding:
    """Non-inferiority at alpha: within its margin, beyond it, or neither shown."""
    asked, variant, found, units = one
    effect, other = _deciding(asked, found), _other(asked, found)
    tails = (plan.alpha, plan.alpha)
    own = _limits(effect, tails, rule)
    beside = Limits(math.nan) if other is None else _limits(other, tails, rule)
    margin = asked.choice.margin
    assert margin is not None
    if asked.direction == "up":
        state = "within" if own.above(-margin) else "beyond" if own.below(-margin) else "unclear"
        chance = effect.p(rule, "greater", -margin) if p and (not asked.choice.relative or margin < 1) else math.nan
    else:
        state = "within" if own.below(margin) else "beyond" if own.above(margin) else "unclear"
        chance = effect.p(rule, "less", margin) if p else math.nan
    same = own.inside(margin)
    could = _detectable(effect, plan.alpha, rule)
    return _finding(asked, variant, found, units, own, beside, float(chance), state, same, could)


def _finding(
    asked: Asked, variant: str, found: Compared, units: Any, own: Limits, other: Limits, *rest: Any
) -> Finding:
    p, state, same, could = rest
    choice = asked.choice
    target = choice.margin or could / 2
    wanted = sum(units) * (could / target) ** 2 if could and math.isfinite(could) else math.nan
    return Finding(
        metric=asked.name,
        variant=variant,
        guards=asked.guards,
        direction=asked.direction,
        window=choice.window,
        estimate=choice.estimate,
        margin=choice.margin,
        relative=choice.relative,
        units=units,
        control=found.control,
        value=found.value,
        difference=other if choice.relative else own,
        ratio=own if choice.relative else other,
        p=p,
        state=state,
        same=same,
        detectable=could,
        needed=round_up(wanted) if math.isfinite(wanted) else None,
    )


def _limits(effect: Effect, tails: tuple[float, float], rule: Rule) -> Limits:
    return Limits(float(effect.value), *(float(end) for end in effect.limits(tails, rule)))


def _detectable(effect: Effect, tail: float, rule: Rule) -> float:
    """The effect that is found with power 0.8: the reach of the interval, and what power asks beyond it."""
    half = Fixed().critical(0.025)
    low, high = (float(end) for end in effect.interval(0.95))
    return (high - low) / (2 * half) * (rule.critical(tail) + Fixed().critical(1 - POWER))


def round_up(number: float) -> int:
    """To two digits, as nobody knows more of a plan.

    >>> round_up(12_345), round_up(7)
    (13000, 7)
    """
    step = int(10 ** max(0, len(str(int(number))) - 2))
    return math.ceil(number / step) * step


# verdicts


def verdict_of(found: Several[Finding], ended: bool) -> str:
    """The verdict on one variant."""
    primaries = [each for each in found if not each.guards]
    rails = [each for each in found if each.guards]
    if any(each.state in ("bad", "beyond") for each in found):
        return "stop"
    if any(each.state == "good" for each in primaries) and all(each.state == "within" for each in rails):
        return "ship"
    if primaries and all(each.same for each in primaries):
        return "same"
    return "not shown" if ended else "continue"


def overall(verdicts: Several[str], ended: bool) -> str:
    """The verdict on an experiment of several variants: ship where one can be."""
    if "ship" in verdicts:
        return "ship"
    if {*verdicts} == {"stop"}:
        return "stop"
    if verdicts and {*verdicts} <= {"stop", "same"}:
        return "same"
    return "not shown" if ended else "continue"
