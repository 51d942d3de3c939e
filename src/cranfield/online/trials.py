"""Many simulated experiments in memory: how often a test errs, how often it finds what is there, what each design needs.

Nothing is written. Units return as they do in a simulated log, so that tests by unit and tests that take a search for a
unit can be told apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.answer import Answer, Cell, Layout, Part, Table, plain
from cranfield.errors import ConventionError
from cranfield.online.visits import Audience
from cranfield.online.world import SIGNALS, World, method_named, users_named
from cranfield.parameters import refuse_below
from cranfield.stats.arms import Column, against_0, difference, level
from cranfield.stats.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from cranfield.kernels.table import Floats
    from cranfield.online.users import User
    from cranfield.online.visits import Places
    from cranfield.stats.arms import Level

SURE = 3.0  # standard errors that an effect must be from 0 before it is planned with


class Rate(NamedTuple):
    """How often a test found a difference, and for which side."""

    test: str
    first: int
    second: int
    replicates: int

    @property
    def share(self) -> float:
        """Of all replicates, those in which anything was found."""
        return (self.first + self.second) / self.replicates

    @property
    def error(self) -> float:
        """The standard error of the share."""
        return math.sqrt(self.share * (1 - self.share) / self.replicates)


@dataclass(frozen=True)
class Trials(Answer):
    """How often each test found a difference in simulated experiments."""

    systems: tuple[str, str]  # of the arms; the same twice in A/A
    users: str
    units: int
    alpha: float
    rates: tuple[Rate, ...]

    def content(self, how: Layout) -> Iterable[Part]:
        one, other = self.systems
        design = f"A/A of {one}" if one == other else f"{one} against {other}"
        yield f"{design}: {self.units:,} units, {self.users} users, alpha {self.alpha:g}"
        sides = ["for the first arm", "for the second"] if one == other else [f"for {one}", f"for {other}"]
        rows: list[list[Cell | str]] = [
            [each.test, how.cell(each.share), how.cell(each.error), str(each.first), str(each.second)]
            for each in self.rates
        ]
        replicates = self.rates[0].replicates
        yield Table(["test", "found", "standard error", *sides], rows, caption=f"{replicates:,} experiments")

    def plain(self, how: Layout) -> dict[str, Any]:
        rates = [{**each._asdict(), "share": each.share, "error": each.error} for each in self.rates]
        facts = {
            "systems": list(self.systems),
            "users": self.users,
            "units": self.units,
            "alpha": self.alpha,
            "rates": rates,
        }
        answer: dict[str, Any] = plain(facts, how.digits)
        return answer


def false_alarms(
    world: World,
    users: str | User = "navigational",
    audience: Audience | None = None,
    *,
    replicates: int = 1_000,
    alpha: float = 0.05,
    seed: int = 0,
) -> Trials:
    """A/A: two arms that see the same system, the first of the world. Tests by unit, and one that takes a search for a unit."""
    return _trials(world, (0, 0), users, audience or Audience(), None, replicates, alpha, seed)


def power(
    world: World,
    users: str | User = "navigational",
    audience: Audience | None = None,
    *,
    method: str = "team-draft",
    replicates: int = 200,
    alpha: float = 0.05,
    seed: int = 0,
) -> Trials:
    """A/B of the first two systems, and the same number of units on lists interleaved of both."""
    if len(world.systems) < 2:
        raise ConventionError("power: expected two systems, found one")
    return _trials(world, (0, 1), users, audience or Audience(), method, replicates, alpha, seed)


def _trials(
    world: World,
    pair: tuple[int, int],
    users: str | User,
    audience: Audience,
    method: str | None,
    replicates: int,
    alpha: float,
    seed: int,
) -> Trials:
    refuse_below(1, replicates=replicates)
    chosen, rng = users_named(users), np.random.default_rng(seed)
    counts: dict[str, list[int]] = {}
    for _ in range(replicates):
        visits = audience.visits(len(world.topics), rng)
        signs = _split(world, pair, chosen, visits.unit, visits.topic, alpha, rng)
        if method is not None:
            values = world.preferences(chosen, pair, visits.topic, rng, method_named(method))
            signs[f"interleaved, {method}, by unit"] = -_preference(visits.unit, values, alpha)
        for test, sign in signs.items():
            tally = counts.setdefault(test, [0, 0])
            tally[0] += sign < 0
            tally[1] += sign > 0
    rates = tuple(Rate(test, first, second, replicates) for test, (first, second) in counts.items())
    return Trials((world.systems[pair[0]], world.systems[pair[1]]), str(chosen), audience.units, alpha, rates)


def _split(
    world: World,
    pair: tuple[int, int],
    users: User,
    unit: Places,
    topic: Places,
    alpha: float,
    rng: np.random.Generator,
) -> dict[str, int]:
    """One experiment that splits traffic: of each test 1 where the second arm is found to be better, -1, or 0."""
    arm = rng.permutation(int(unit.max()) + 1) % 2
    second = arm[unit] == 1
    clicks = np.where(
        second[:, None], world.clicks(users, pair[1], topic, rng), world.clicks(users, pair[0], topic, rng)
    )
    signs = {}
    for name in ("click-through", "reciprocal-rank"):
        values = SIGNALS[name](clicks)
        by_unit = [_by_unit(unit, values, arm == side) for side in (0, 1)]
        by_search = [
            Moments.of(sum=values[second == side], searches=np.ones((second == side).sum())) for side in (0, 1)
        ]
        column = Column("sum", "searches")
        signs[f"A/B, {name}, by unit"] = _sign(level(by_unit[0], column), level(by_unit[1], column), alpha)
        signs[f"A/B, {name}, by search (naive)"] = _sign(level(by_search[0], "sum"), level(by_search[1], "sum"), alpha)
    return signs


def _by_unit(unit: Places, values: Floats, chosen: npt.NDArray[np.bool_]) -> Moments:
    sums, searches = np.bincount(unit, values), np.bincount(unit).astype(np.float64)
    return Moments.of(sum=sums[chosen], searches=searches[chosen])


def _sign(a: Level, b: Level, alpha: float) -> int:
    effect = difference(a, b)
    return int(np.sign(effect.value)) if float(effect.p()) < alpha else 0


def _preference(unit: Places, values: Floats, alpha: float) -> int:
    """1 where units prefer the first system, by their sums over searches; -1, or 0."""
    every = np.ones(int(unit.max()) + 1, bool)
    effect = against_0(level(_by_unit(unit, values, every), Column("sum", "searches")))
    return int(np.sign(effect.value)) if float(effect.error) > 0 and float(effect.p()) < alpha else 0


# what each design needs


class Need(NamedTuple):
    """What a design measures of two systems, and how many searches it takes to tell them apart, each another unit's."""

    one: str
    other: str
    design: str
    effect: float  # the second less the first
    error: float
    needed: float  # NaN where the effect could not be told from 0

    @property
    def slack(self) -> float:
        """The standard error of what is needed, as a share of it."""
        return 2 * self.error / abs(self.effect) if self.effect else math.nan


@dataclass(frozen=True)
class Needs(Answer):
    """How many searches each design needs to tell two systems apart."""

    users: str
    simulated: int
    alpha: float
    power: float
    rows: tuple[Need, ...]

    def content(self, how: Layout) -> Iterable[Part]:
        yield (
            f"Searches to find a difference with power {self.power:g} at {self.alpha:g}, each of another unit; "
            f"{self.users} users, {self.simulated:,} searches simulated of each."
        )
        head = ["systems", "design", "effect", "needed", "give or take"]
        rows: list[list[Cell | str]] = [
            [
                f"{each.other} - {each.one}",
                each.design,
                how.cell(each.effect, signed=True),
                "-" if math.isnan(each.needed) else f"{math.ceil(each.needed):,}",
                "-" if math.isnan(each.needed) else f"{each.slack:.0%}",
            ]
            for each in self.rows
        ]
        yield Table(head, rows, names=2, left=2)

    def notes(self, shell: bool = False) -> list[str]:
        if any(math.isnan(each.needed) for each in self.rows):
            return [f"a - stands where the effect is within {SURE:g} standard errors of 0: simulate more searches"]
        return []

    def plain(self, how: Layout) -> dict[str, Any]:
        rows = [{**each._asdict(), "slack": each.slack} for each in self.rows]
        facts = {
            "users": self.users,
            "simulated": self.simulated,
            "alpha": self.alpha,
            "power": self.power,
            "rows": rows,
        }
        answer: dict[str, Any] = plain(facts, how.digits)
        return answer


def needs(
    world: World,
    users: str | User = "navigational",
    *,
    methods: Sequence[str] = ("team-draft",),
    searches: int = 20_000,
    power: float = 0.8,
    alpha: float = 0.05,
    seed: int = 0,
) -> Needs:
    """How many searches A/B and interleaving need for each two systems, from simulated searches of each."""
    from scipy.special import ndtri  # type: ignore[import-untyped, unused-ignore]

    refuse_below(2, searches=searches)
    if len(world.systems) < 2:
        raise ConventionError("expected two systems or more, found one")
    if not (0 < alpha < 1 and 0 < power < 1):
        raise ConventionError(f"alpha and power must be between 0 and 1, got {alpha:g} and {power:g}")
    chosen, rng = users_named(users), np.random.default_rng(seed)
    reach = float(ndtri(1 - alpha / 2) + ndtri(power)) ** 2
    topics = rng.integers(len(world.topics), size=searches)
    clicks = [world.clicks(chosen, system, topics, rng) for system in range(len(world.systems))]
    rows = []
    for i, one in enumerate(world.systems):
        for j in range(i + 1, len(world.systems)):
            other = world.systems[j]
            for signal, of in SIGNALS.items():
                a, b = of(clicks[i]), of(clicks[j])
                spread = float(2 * (a.var() + b.var()))  # half of all searches in each arm
                rows.append(_need(one, other, f"A/B, {signal}", b - a, spread, reach))
            for method in methods:
                values = -world.preferences(chosen, (i, j), topics, rng, method_named(method))
                rows.append(_need(one, other, f"interleaved, {method}", values, float(values.var()), reach))
    return Needs(str(chosen), searches, alpha, power, tuple(rows))


def _need(one: str, other: str, design: str, effects: Floats, spread: float, reach: float) -> Need:
    """`effects` are those of single searches; `spread` is n times the variance of what n searches of a design tell."""
    effect, error = float(effects.mean()), float(effects.std() / math.sqrt(len(effects)))
    told = abs(effect) > SURE * error
    return Need(one, other, design, effect, error, reach * spread / effect**2 if told else math.nan)
