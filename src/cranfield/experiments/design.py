"""Power analysis of experiments: units and days needed, and the detectable effect, for all kinds of metrics.

Power is that of the difference between two arms (or of a preference against 0) under the method that will decide: at the
horizon only, at planned looks, or at any time. Only a difference detected in the right direction counts. Guardrails are
planned by their non-inferiority test at alpha, with no true difference; `power` is then the probability that the primary
is detected and every guardrail holds. Estimates are taken as normal: plan with hundreds of units, not with dozens.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Answer, Layout, Lines, Part, Table, plain
from cranfield.comparison.design import round_sizes
from cranfield.comparison.settings import refuse_extremes, refuse_nonpositive, refuse_shares
from cranfield.stats.arms import MetricColumn, level
from cranfield.stats.correction import correction
from cranfield.stats.power import smallest
from cranfield.stats.sequential import LookSchedule, schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cranfield.stats.moments import Moments

METHODS = ("fixed", "looks", "sequence")
KINDS = ("mean", "ratio", "proportion", "preference")
MOST = 10**12  # units
FEWEST_A_DAY = 1e-6  # units
BAR_WIDTH = 20


@dataclass(frozen=True)
class Spread:
    """A metric as it is before the experiment: its kind, its level, and its standard deviation between units."""

    kind: str
    level: float
    sd: float  # between units; for a ratio, of the linearised values
    sd_after: float | None = None  # in the second arm, if the effect changes it

    def error(self, n: float, shares: tuple[float, float], effect: float) -> float:
        """The standard error of the difference (or preference) with n units in total."""
        if self.kind == "preference":
            return self.sd / math.sqrt(n)
        one, other = self.sd**2, (self.sd if self.sd_after is None else self.sd_after) ** 2
        if self.kind == "proportion":
            there = self.level + effect
            other = there * (1 - there)
        return math.sqrt((one / shares[0] + other / shares[1]) / n)


def mean(level: float, sd: float, kind: str = "mean", sd_after: float | None = None) -> Spread:
    """The spread of a mean, or of a ratio of sums, with this standard deviation between units.

    `sd_after` is the standard deviation in the second arm; an effect that multiplies values also multiplies it.
    """
    refuse_extremes(sd=sd, **{"sd after": sd_after})
    if not math.isfinite(level):
        raise ConventionError(f"level must be a number, got {level}")
    return Spread(kind, float(level), float(sd), None if sd_after is None else float(sd_after))


def proportion(level: float) -> Spread:
    """The spread of a proportion of units."""
    refuse_shares(level=level)
    return Spread("proportion", float(level), math.sqrt(level * (1 - level)))


def preference(wins: float, losses: float) -> Spread:
    """The spread of a preference, from the shares of units that prefer the system (wins) or the control (losses).

    >>> preference(0.22, 0.18).level.__round__(4)
    0.04
    """
    if not (wins >= 0 and losses >= 0 and 0 < wins + losses <= 1):
        raise ConventionError(f"wins and losses must be shares, together at most 1, got {wins:g} and {losses:g}")
    if 1 in (wins, losses):
        raise ConventionError("wins and losses must leave something to chance; here one side wins every unit")
    lead = wins - losses
    return Spread("preference", lead, math.sqrt(wins + losses - lead**2))


def spread_of(arm: Moments, column: MetricColumn | str, covariates: Sequence[MetricColumn | str] = ()) -> Spread:
    """A metric's level and spread from the moments of a log; covariates reduce the spread."""
    own = level(arm, column, covariates, arm)
    if not (own.df >= 1 and np.isfinite(own.error) and own.error > 0):
        raise DataError(f"{column}: expected two units or more that differ, found {float(arm.n):.0f} without variance")
    kind = "mean" if isinstance(column, str) or column.denominator is None else "ratio"
    return Spread(kind, float(own.value), float(own.error * np.sqrt(arm.n)))


class Guardrail(NamedTuple):
    """A metric that must not get worse by more than a margin."""

    name: str
    spread: Spread
    margin: float


@dataclass(frozen=True)
class ByMethod:
    """The units that one method needs, and its power; NaN (None for units) if unknown or if no number suffices."""

    method: str
    needed: int | None  # units in total
    days: int | None
    expected: float  # units until the decision or the horizon, if the effect exists and `needed` units are planned
    power: float  # with the available units
    detectable: float  # the smallest effect that the available units detect with the target power
    guardrails: tuple[float, ...]  # the power of each with the needed units
    curve: tuple[float, ...]
    undecided_looks: tuple[int, ...] = ()  # numbers of the looks that cannot decide
    reason: str = ""


@dataclass(frozen=True)
class ExperimentDesign(Answer):
    """The result of `cranfield online design`.

    >>> plan = design(proportion(0.3), effect=0.02, methods="fixed")
    >>> plan.methods[0].needed
    16781
    """

    kind: str
    level: float
    sd: float
    sd_after: float | None
    effect: float
    power: float  # the target
    alpha: float
    primaries: int
    tail: float  # error rate on one side of one primary
    shares: tuple[float, float]
    n: int | None
    per_day: float | None
    correlation: float
    guardrails: tuple[Guardrail, ...]
    sizes: tuple[int, ...]
    methods: tuple[ByMethod, ...]

    def sentence(self) -> str:
        """The plan in one line, by its first method."""
        first = self.methods[0]
        text = f"{first.method}: to find {self._what()} with power {self.power:g} takes "
        if first.needed is None:
            return text + f"no number of units ({first.reason})"
        text += f"{first.needed:,} units"
        if self.kind != "preference":
            one, other = (f"{math.ceil(first.needed * share):,}" for share in self.shares)
            text += f" ({one} in each arm)" if one == other else f" ({one} and {other} in the arms)"
        return text + (f", {first.days:,} days" if first.days is not None else "")

    def _what(self) -> str:
        if self.kind == "preference":
            return f"a preference of {self.effect:.4g}"
        share = f" ({self.effect / abs(self.level):.2%} of {self.level:.4g})" if self.level else ""
        return f"a difference of {self.effect:.4g}{share}"

    def content(self, how: Layout) -> Iterator[Part]:
        sd = f"{self.sd:.4g}" + (f" and then {self.sd_after:.4g}" if self.sd_after is not None else "")
        facts = f"{self.kind}, sd between units {sd}, alpha {self.alpha:g}, two-sided"
        if self.primaries > 1:
            facts += f"; Holm over {self.primaries} primaries, planned at {2 * self.tail:.3g}"
        if self.guardrails:
            rails = "one guardrail" if len(self.guardrails) == 1 else f"{len(self.guardrails)} guardrails each"
            facts += f"; the power is that of all together, {rails} at {self.alpha:g}"
        yield Lines([self.sentence(), facts])
        head = ["method", "units needed", "expected", *(["days"] if self.per_day is not None else [])]
        if self.n is not None:
            head += [f"power with {self.n:,}", f"smallest effect with {self.n:,}"]
        yield Table(head, [self._row(each, how) for each in self.methods])
        if self.guardrails:
            head = ["guardrail", "margin", "sd", *(f"power, {each.method}" for each in self.methods)]
            rows = []
            for i, rail in enumerate(self.guardrails):
                chances = (_share(each.guardrails[i]) for each in self.methods)
                rows.append([rail.name, f"{rail.margin:.4g}", f"{rail.spread.sd:.4g}", *chances])
            yield Table(head, rows, caption="guardrails, with the needed units")
        curve = []
        for i, size in enumerate(self.sizes):
            bar = "█" * round(BAR_WIDTH * self.methods[0].curve[i])
            curve.append([f"{size:,}", *(_share(each.curve[i]) for each in self.methods), bar])
        head = ["units", *(each.method for each in self.methods), ""]
        yield Table(head, curve, caption="power by number of units", tail=True)

    def _row(self, each: ByMethod, how: Layout) -> list[str]:
        days = [_units(each.days)] if self.per_day is not None else []
        available = [_share(each.power), how.number(each.detectable)] if self.n is not None else []
        return [each.method, _units(each.needed), _units(each.expected), *days, *available]

    def plain(self, how: Layout) -> Any:
        facts = {key: value for key, value in vars(self).items() if key not in ("methods", "guardrails")}
        rails = [{"name": rail.name, "margin": rail.margin, **vars(rail.spread)} for rail in self.guardrails]
        return plain({**facts, "guardrails": rails, "methods": self.methods}, how.digits)

    def records(self, how: Layout) -> Iterator[list[Any]]:
        """The power curves: one row per method and number of units."""
        yield ["method", "effect", "units", "power"]
        for each in self.methods:
            for size, power in zip(self.sizes, each.curve, strict=True):
                yield [each.method, self.effect, size, power]

    def notes(self, shell: bool = False) -> list[str]:
        notes = [f"{each.method}: {each.reason}" for each in self.methods if each.reason]
        notes += [f"{each.method}: {_undecided(each.undecided_looks)}" for each in self.methods if each.undecided_looks]
        if self.guardrails and not self.correlation:
            independent = "the estimates of primary and guardrails are taken as independent"
            notes.append(f"{independent}; give their correlation if you know it")
        if any(each.needed is not None and each.needed < 200 for each in self.methods):
            notes.append("fewer than 200 units: power is approximate, as estimates are not yet normal")
        return notes


def design(
    primary: Spread,
    *,
    effect: float | None = None,
    relative: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    methods: str | Iterable[str] = METHODS,
    primaries: int = 1,
    guardrails: Iterable[Guardrail] = (),
    correlation: float = 0.0,
    shares: tuple[float, float] = (0.5, 0.5),
    per_day: float | None = None,
    n: int | None = None,
    sizes: Iterable[int] | None = None,
) -> ExperimentDesign:
    """Plan an experiment: the units and days needed to detect an effect, and what the available units can detect.

    `primary` comes from `mean`, `proportion`, `preference` or, for a log, `spread_of`. `effect` is absolute, `relative` a
    share of the level; a negative effect is a decrease. The default effect of a preference is its level. `methods` are
    `fixed`, `looks` and `sequence`, with parameters in brackets: `looks(looks=3, by=pocock)`. `correlation` is that of the
    estimates of any two metrics.

    >>> design(mean(10.0, 20.0), relative=0.02, per_day=5_000, methods="fixed").sentence()
    'fixed: to find a difference of 0.2 (2.00% of 10) with power 0.8 takes 313,956 units (156,978 in each arm), 63 days'
    """
    rails = tuple(guardrails)
    refuse_shares(power=power, alpha=alpha)
    refuse_below(1, primaries=primaries)
    refuse_below(2, **{"the number of units": n})
    refuse_nonpositive(**{"units a day": per_day}, **{f"the margin of {rail.name}": rail.margin for rail in rails})
    if per_day is not None and per_day < FEWEST_A_DAY:
        raise ConventionError(f"units a day must be {FEWEST_A_DAY:g} or more, got {per_day:g}")
    if not 0 <= correlation < 1:
        raise ConventionError(f"correlation must be 0 or more and below 1, got {correlation:g}")
    target = _effect(primary, effect, relative)
    tail = correction("holm").level_of_one(alpha, primaries) / 2
    problem = _Problem(primary, target, rails, power, alpha, tail, _two_shares(shares), correlation)
    schedules = [(name, _method(name)) for name in _names(methods)]
    needed = [problem.needed(each) for _, each in schedules]
    grid = _sizes(sizes, [number for number in needed if number is not None], n)
    rows = [
        _by_method(problem, name, each, number, n, per_day, grid)
        for (name, each), number in zip(schedules, needed, strict=True)
    ]
    spread = (primary.kind, primary.level, primary.sd, primary.sd_after)
    facts = (*spread, target, power, alpha, primaries, tail, problem.shares, n, per_day, correlation)
    return ExperimentDesign(*facts, rails, grid, tuple(rows))


class _Problem(NamedTuple):
    """All that the power depends on, except the method and the number of units."""

    primary: Spread
    effect: float
    guardrails: tuple[Guardrail, ...]
    target: float  # the power to reach
    alpha: float
    tail: float
    shares: tuple[float, float]
    correlation: float

    def of_primary(self, method: LookSchedule, n: float) -> np.ndarray[Any, Any]:
        """The probability that each look is the first to detect the primary's effect."""
        error = self.primary.error(n, self.shares, self.effect)
        return np.array(_detection_chances(method, abs(self.effect) / error, self.tail, self.alpha))

    def of_guardrails(self, method: LookSchedule, n: float) -> tuple[float, ...]:
        """For each guardrail, the probability that it is shown to be within its margin by the end."""
        drifts = [rail.margin / rail.spread.error(n, self.shares, 0.0) for rail in self.guardrails]
        return tuple(sum(_detection_chances(method, drift, self.alpha, self.alpha)) for drift in drifts)

    def power(self, method: LookSchedule, n: float) -> float:
        """The probability that the primary is detected and all guardrails hold."""
        return together([float(self.of_primary(method, n).sum()), *self.of_guardrails(method, n)], self.correlation)

    def needed(self, method: LookSchedule) -> int | None:
        """The smallest number of units with the target power, by doubling and bisection; None if it is too large."""
        return smallest(lambda n: self.power(method, n) >= self.target, MOST)


def together(chances: Sequence[float], correlation: float = 0.0) -> float:
    """The probability that several equally correlated normal estimates are all beyond their bounds.

    >>> round(together([0.8, 0.9]), 4), round(together([0.8, 0.9], 0.5), 4)
    (0.72, 0.7515)
    """
    if len(chances) == 1 or not correlation:
        return math.prod(chances)
    from scipy.special import ndtr, ndtri  # type: ignore[import-untyped, unused-ignore]

    x, weights = np.polynomial.hermite_e.hermegauss(64)
    shared = math.sqrt(correlation) * x[:, None] + ndtri(np.array(chances))
    return float(weights @ ndtr(shared / math.sqrt(1 - correlation)).prod(axis=1) / math.sqrt(2 * math.pi))


@lru_cache(maxsize=4096)
def _detection_chances(method: LookSchedule, drift: float, tail: float, alpha: float) -> tuple[float, ...]:
    return tuple(method.detection_chances(min(drift, 40.0), tail, alpha).tolist())


def _by_method(
    problem: _Problem,
    name: str,
    method: LookSchedule,
    needed: int | None,
    n: int | None,
    per_day: float | None,
    grid: tuple[int, ...],
) -> ByMethod:
    expected, rails = math.nan, (math.nan,) * len(problem.guardrails)
    if needed is not None:
        chances = problem.of_primary(method, needed)
        expected = needed * float(np.array(method.shares) @ chances + 1 - chances.sum())
        rails = problem.of_guardrails(method, needed)
    days = None if needed is None or per_day is None else math.ceil(needed / per_day)
    now = math.nan if n is None else problem.power(method, n)
    least = math.nan if n is None else _detectable(problem, method, n)
    curve = tuple(problem.power(method, size) for size in grid)
    reason = "" if needed is not None else f"more than {MOST:,} units would not suffice"
    if n is not None and math.isnan(least):
        why = "the guardrails alone do not reach it" if problem.guardrails else "none is large enough"
        reason = reason or f"{n:,} units find no effect of any size with this power: {why}"
    bounds = method.bounds(problem.tail, problem.alpha)
    undecided_looks = tuple((np.flatnonzero(~np.isfinite(bounds)) + 1).tolist())
    return ByMethod(name, needed, days, expected, now, least, rails, curve, undecided_looks, reason)


def _detectable(problem: _Problem, method: LookSchedule, n: int) -> float:
    """The smallest detectable effect, by bisection; NaN if the guardrails alone miss the power, or no effect is enough."""
    sign, level = math.copysign(1.0, problem.effect), problem.primary.level
    room = {"proportion": 1 - level if sign > 0 else level, "preference": 1.0}.get(problem.primary.kind, math.inf)

    def enough(size: float) -> bool:
        return problem._replace(effect=sign * size).power(method, n) >= problem.target

    high = min(problem.primary.error(n, problem.shares, 0.0), room)
    while not enough(high):
        if high >= room or high > 1e6 * problem.primary.sd:
            return math.nan
        high = min(2 * high, room)
    low = 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return sign * high


def _effect(primary: Spread, effect: float | None, relative: float | None) -> float:
    if effect is not None and relative is not None:
        raise ConventionError("expected an absolute effect or a relative one, found both")
    if effect is None and relative is None and primary.kind == "preference":
        effect = abs(primary.level)
    if relative is not None:
        if not primary.level:
            raise ConventionError("a relative effect needs a level other than 0")
        effect = relative * abs(primary.level)
    if effect is None:
        raise ConventionError("expected the effect to detect: an absolute one, or one relative to the level")
    if not (effect and math.isfinite(effect)):
        raise ConventionError(f"effect must be a number other than 0, below 0 for a decrease; got {effect:g}")
    if primary.kind == "proportion" and not 0 < primary.level + effect < 1:
        how = "rise" if effect > 0 else "fall"
        raise ConventionError(f"a proportion of {primary.level:g} cannot {how} by {abs(effect):g}")
    return float(effect)


def _names(methods: str | Iterable[str]) -> list[str]:
    """The names of methods, from a list or from a text with blanks between them; parameters are in brackets."""
    names = re.findall(r"[^\s,(]+(?:\([^)]*\))?", methods) if isinstance(methods, str) else list(methods)
    if not names:
        raise ConventionError(f"methods: expected some of {', '.join(METHODS)}, found none")
    return names


def _method(name: str) -> LookSchedule:
    try:
        return schedule(name)
    except DataError as error:
        raise ConventionError(str(error)) from None


def _two_shares(shares: tuple[float, float]) -> tuple[float, float]:
    one, other = shares
    if not (one > 0 and other > 0 and one + other <= 1 + 1e-9):
        raise ConventionError(f"shares must be two numbers above 0, together at most 1, got {one:g} and {other:g}")
    return float(one), float(other)


def _sizes(sizes: Iterable[int] | None, needed: list[int], n: int | None) -> tuple[int, ...]:
    if sizes is None:
        return round_sizes(max(needed, default=n or 1_000), n)
    for size in (grid := sorted({int(each) for each in sizes})):
        refuse_below(2, **{"the number of units": size})
    return tuple(grid)


def _undecided(looks: tuple[int, ...]) -> str:
    """The sentence about looks that cannot decide; they are always the first ones."""
    named = f"look {looks[0]}" if len(looks) == 1 else f"looks {looks[0]} to {looks[-1]}"
    return f"{named} cannot decide: almost none of the error rate may be spent there; plan fewer looks or later ones"


def _units(number: float | None) -> str:
    return "-" if number is None or math.isnan(number) else f"{round(number):,}"


def _share(chance: float) -> str:
    return "-" if math.isnan(chance) else f"{chance:.3f}"
