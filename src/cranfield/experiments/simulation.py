"""Simulate experiments: users click on the lists of runs, and their events go to an event log or stay in memory.

`simulate` writes the log that a real service would have written. The plan assigns units as it assigns real ones. A unit
sees the lists of its variant, or interleaved lists, and clicks by its user model. It reads what it clicks, longer if the
grade is higher, and sometimes buys. The seed determines everything.

`false_alarms`, `power` and `needs` run many experiments in memory: how often a test errs, how often it detects a difference,
how many searches each design needs. Units return as they do in a log, so tests by unit and naive tests by search differ.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import combinations, islice
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Answer, Cell, Layout, Lines, Part, Table, as_dicts, plain
from cranfield.base.text_layout import counted
from cranfield.experiments.assignment import assign_one
from cranfield.experiments.event import KINDS, UserEvent
from cranfield.experiments.interleaving.token import Keys, encode_contents, seal
from cranfield.experiments.plan import Plan, interleaving_method, read_plan
from cranfield.experiments.privacy import agree_on_units
from cranfield.experiments.simulated_world import DAY, SIGNALS, Audience, World, method_named, users_named
from cranfield.formats.streams import refuse_unwritable
from cranfield.stats.arms import ArmEffect, MetricColumn, against_0, difference, level
from cranfield.stats.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt
    from numpy.random import Generator

    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.interleaving import InterleavingMethod
    from cranfield.experiments.log import EventLog
    from cranfield.experiments.simulated_world import Places, User


START = "2025-01-06"  # a Monday in the past, so that months fit before today
EXPERIMENT = "simulated"
INTERLEAVED = "interleaved"  # the variant of a plan that interleaves
READING = (8.0, 60.0)  # median seconds on an irrelevant document, and on one of the highest grade
READING_SPREAD = 0.8  # standard deviation of the logarithm
BUYS = 0.05  # share of clicks on a document of the highest grade that end in a purchase
PRICE, PRICE_SPREAD = 20.0, 0.7  # median price, and standard deviation of its logarithm
GLANCE = 2.0  # seconds per document on a result page
AT_ONCE = 20_000  # events appended together


class VariantTally(NamedTuple):
    """The searches and clicks of a variant's units within the experiment."""

    variant: str
    units: int
    searches: int
    clicked: int  # searches with a click
    clicks: int


@dataclass(frozen=True)
class SimulatedLog(Answer):
    """The result of `cranfield online simulate`: what the log contains."""

    log: str
    experiment: str
    design: str
    users: str
    seed: int
    days: tuple[str, str]
    events: Mapping[str, int]
    tallies: tuple[VariantTally, ...]
    passed_over: tuple[str, ...]

    def content(self, how: Layout) -> Iterable[Part]:
        total = sum(self.events.values())
        first, last = self.days
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.events.items())
        events = f"{total:,} events of {first} to {last} in {self.log}: {kinds}."
        yield Lines([events, f"Experiment {self.experiment}: {self.design}; {self.users} users, seed {self.seed}."])
        head = ["variant", "units", "searches", "searches with a click", "clicks per search"]
        rows: list[list[Cell | str]] = []
        for each in self.tallies:
            per_search = [how.cell(count / max(each.searches, 1)) for count in (each.clicked, each.clicks)]
            rows.append([each.variant, f"{each.units:,}", f"{each.searches:,}", *per_search])
        yield Table(head, rows, title="searches and clicks by variant")

    def notes(self, shell: bool = False) -> list[str]:
        if not self.passed_over:
            return []
        few = ", ".join(self.passed_over[:3])
        return [f"{counted(len(self.passed_over), 'judged topic')} missing from a run: no user searches them ({few} …)"]

    def plain(self, how: Layout) -> Any:
        facts = {"variants" if name == "tallies" else name: as_dicts(value) for name, value in vars(self).items()}
        return plain(facts, how.digits)


def simulate(
    world: World,
    log: EventLog,
    plan: Plan,
    users: str | User = "navigational",
    audience: Audience | None = None,
    *,
    seed: int = 0,
    before: int = 0,
    keys: Keys | None = None,
) -> SimulatedLog:
    """Let simulated users search, and append their events to a log.

    The variants of `plan` show the systems of the world, by name or in their order. A single system makes an A/A test; a
    plan that interleaves mixes the lists of all systems. During the `before` days before the start every unit sees the
    control, outside the experiment.
    """
    model, audience = users_named(users), audience or Audience()
    refuse_beyond(audience, before, seed, plan)
    stage = SimulatedExperiment(world, plan, model, replace(audience, days=audience.days + before), seed, before, keys)
    events: Counter[str] = Counter()
    agree_on_units(log, None)
    stream = stage.events()
    while batch := list(islice(stream, AT_ONCE)):
        log.append(batch)
        events.update(event.kind for event in batch)
    log.seal()
    log.pack()
    first, last = stage.start - timedelta(days=before), stage.start + timedelta(days=audience.days - 1)
    days = (first.date().isoformat(), last.date().isoformat())
    by_kind = {kind: events[kind] for kind in KINDS if events[kind]}
    facts = (log.folder, plan.name, stage.design, str(model), seed, days, by_kind)
    return SimulatedLog(*facts, stage.tallies(), world.passed_over)


def refuse_beyond(audience: Audience, before: int, seed: int, plan: Plan | None = None) -> None:
    """Refuse counts below the minimum, and days beyond the calendar."""
    refuse_below(0, before=before, seed=seed)
    start = _start_of(plan)
    try:
        start - timedelta(days=before), start + timedelta(days=audience.days)
    except OverflowError:
        problem = f"expected days within the years 1 to 9999, found {start.date()} as the start"
        raise ConventionError(problem) from None


def _start_of(plan: Plan | None) -> datetime:
    return datetime.fromisoformat((plan and plan.start) or START).replace(tzinfo=UTC)


class SimulatedExperiment:
    """One simulated experiment: the list of each search, its clicks, and their events."""

    def __init__(
        self, world: World, plan: Plan, users: User, audience: Audience, seed: int, before: int, keys: Keys | None
    ) -> None:
        self.world, self.plan, self.rng = world, plan, np.random.default_rng(seed)
        self.visits = visits = audience.visits(len(world.topics), self.rng)
        self.prefix = f"{plan.name}-{seed}"
        self.start = _start_of(plan)
        self.origin = self.start - timedelta(days=before)
        self.method = interleaving_of(plan, world)
        self.keys = (keys or Keys.usual()) if self.method is not None else keys
        self.systems = {} if self.method is not None else systems_by_variant(plan, world)
        self.control = world.systems.index(plan.systems[0]) if plan.systems else self.systems.get(plan.control, 0)
        self.units = [f"u{seed}-{n}" for n in range(int(visits.unit.max()) + 1)]
        self.assigned = [assign_one(plan, unit) for unit in self.units]
        enrolled = np.array([one is not None for one in self.assigned], bool)
        self.within = (visits.time >= before * DAY) & enrolled[visits.unit]  # searches in the experiment
        self.pages, self.tokens = self._pages()
        gains = [world.gains_of(topic, page) for topic, page in zip(visits.topic.tolist(), self.pages, strict=True)]
        self.gains: Floats = np.array(gains, np.float64)
        self.clicks: npt.NDArray[np.bool_] = users.clicks(self.gains, self.rng)

    @property
    def design(self) -> str:
        """The kind of experiment: A/A, A/B or interleaving, in a sentence."""
        if self.method is not None:
            return f"{self.method} of {' and '.join(self.world.systems)}"
        if len(set(self.systems.values())) == 1:
            return f"A/A of {self.world.systems[0]}"
        arms = (f"{variant} shows {self.world.systems[system]}" for variant, system in self.systems.items())
        return f"A/B, {', '.join(arms)}"

    def _pages(self) -> tuple[list[tuple[str, ...]], list[str | None]]:
        """The list of each search, and its token if it is interleaved."""
        coin = Random(int(self.rng.integers(2**63)))
        pages: list[tuple[str, ...]] = []
        tokens: list[str | None] = []
        for search, (unit, topic) in enumerate(zip(self.visits.unit.tolist(), self.visits.topic.tolist(), strict=True)):
            assigned, token = self.assigned[unit], None
            if assigned is None or not self.within[search]:
                page = self.world.rankings[self.control][topic]
            elif self.method is None or self.keys is None:
                page = self.world.rankings[self.systems[assigned.variant]][topic]
            else:
                mixed = self.method.draw([lists[topic] for lists in self.world.rankings], self.world.k, coin)
                page = mixed.documents
                content = encode_contents(self.method, self.world.systems, mixed.evidence, self.plan.name)
                token = seal(content, self.keys, f"{self.prefix}-s{search}", random=coin.randbytes)
            pages.append(page)
            tokens.append(token)
        return pages, tokens

    def events(self) -> Iterator[UserEvent]:
        """All events, by unit."""
        exposed: set[int] = set()
        for search, unit in enumerate(self.visits.unit.tolist()):
            if self.within[search] and unit not in exposed:
                exposed.add(unit)
                assigned = self.assigned[unit]
                fields = assigned.exposure(self.plan.hash) if assigned else {}
                yield self._event("exposure", search, unit, 0.0, "x", **fields)
            yield from self._happenings(search, unit)

    def _event(self, kind: str, number: int, unit: int, seconds: float, suffix: str, **fields: Any) -> UserEvent:
        return UserEvent(
            event_id=f"{self.prefix}-{number}-{suffix}",
            time=(self.origin + timedelta(seconds=float(self.visits.time[number]) + seconds)).isoformat(),
            kind=kind,
            unit=self.units[unit],
            session=f"{self.prefix}-v{int(self.visits.session[number])}",
            **fields,
        )

    def _happenings(self, search: int, unit: int) -> Iterator[UserEvent]:
        """The events of one search: its impression, then each click with its dwell and perhaps a conversion."""
        topic = self.world.topics[int(self.visits.topic[search])]
        page, name = self.pages[search], f"{self.prefix}-s{search}"
        query, token = self.world.queries.get(topic, topic), self.tokens[search]
        yield self._event("impression", search, unit, 0.001, "i", search=name, query=query, shown=page, credit=token)
        clock = 0.0
        for rank in np.flatnonzero(self.clicks[search]).tolist():
            what = {"search": name, "document": page[rank], "position": rank + 1}
            gain = float(self.gains[search, rank])
            clock = max(clock, GLANCE * (rank + 1))
            yield self._event("click", search, unit, clock, f"c{rank + 1}", **what)
            median = READING[0] * (READING[1] / READING[0]) ** gain
            seconds = round(median * float(np.exp(self.rng.normal(0, READING_SPREAD))), 1)
            clock += seconds
            yield self._event("dwell", search, unit, clock, f"d{rank + 1}", value=seconds, **what)
            if self.rng.random() < BUYS * gain:
                price = round(PRICE * float(np.exp(self.rng.normal(0, PRICE_SPREAD))), 2)
                yield self._event("conversion", search, unit, clock, f"b{rank + 1}", value=price, **what)

    def tallies(self) -> tuple[VariantTally, ...]:
        """The searches and clicks of each variant."""
        variant = np.array([each.variant if each is not None else "" for each in self.assigned], object)
        answer = []
        for name in self.plan.variants:
            own = self.within & (variant[self.visits.unit] == name)
            units, clicks = len(np.unique(self.visits.unit[own])), self.clicks[own]
            answer.append(VariantTally(name, units, int(own.sum()), int(clicks.any(axis=1).sum()), int(clicks.sum())))
        return tuple(answer)


def interleaving_of(plan: Plan, world: World) -> InterleavingMethod | None:
    """The interleaving method of a plan; None if the plan splits traffic."""
    if plan.interleave is None:
        return None
    if plan.systems and set(plan.systems) != set(world.systems):
        systems, runs = ", ".join(plan.systems), ", ".join(world.systems)
        raise DataError(f"{plan.path or plan.name}: expected runs of the systems {systems}; found {runs}")
    return _suitable_method(interleaving_method(plan.interleave), world)


def _suitable_method(typed: str | InterleavingMethod, world: World) -> InterleavingMethod:
    """The method with this name; DataError if it cannot mix as many systems as the world has."""
    method = method_named(typed)
    if len(world.systems) < 2 or (len(world.systems) > 2 and not method.many):
        expected = "two runs or more" if method.many else "two runs"
        raise DataError(f"{method.name} takes {expected}, found {len(world.systems)}")
    return method


def systems_by_variant(plan: Plan, world: World) -> dict[str, int]:
    """The system that each variant shows: the one with its name, or in its position; a single system is shown by all."""
    where, systems = plan.path or plan.name, world.systems
    if len(systems) == 1:
        return dict.fromkeys(plan.variants, 0)
    if plan.aa:
        raise DataError(f"{where}: a plan with aa = true shows one system to all, found {len(systems)} runs")
    if set(systems) == set(plan.variants):
        return {variant: systems.index(variant) for variant in plan.variants}
    if len(systems) != len(plan.variants):
        runs = f"{len(systems)} runs ({', '.join(systems)})"
        raise DataError(
            f"{where}: expected a run for each of {', '.join(plan.variants)}, or one for all of them; found {runs}"
        )
    return {variant: number for number, variant in enumerate(plan.variants)}


def plan_for(path: str | None, world: World, audience: Audience, method: str | None = None) -> Plan:
    """The plan in a file; if there is none, a plan for these systems (`plan_text`)."""
    if path == "-":
        raise ConventionError("the plan must be a file, which you need to analyse the log; found -")
    if method is not None:
        _suitable_method(method, world)
    if path is None or not os.path.exists(path):
        if path is not None:
            refuse_unwritable(path)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".toml") as file:
            file.write(plan_text(world.systems, audience, method))
            file.flush()
            return replace(read_plan(file.name), path=path or "")
    plan = read_plan(path)
    if method is not None and plan.interleave is None:
        raise DataError(
            f"{path}: expected a plan that interleaves, because you named a method; found one that splits traffic"
        )
    return plan


def plan_text(systems: Sequence[str], audience: Audience, method: str | None = None) -> str:
    """The TOML of a plan for systems: A/B for several, A/A for one, or interleaving by a method."""
    alone = len(systems) == 1
    variants = [INTERLEAVED] if method else [f"{systems[0]}-1", f"{systems[0]}-2"] if alone else [*systems]
    share = 1 / len(variants)
    lines = [
        "# An experiment with simulated users.",
        f"name = {json.dumps(EXPERIMENT)}",
        f"start = {START}",
        *(["aa = true"] if alone and not method else []),
        "",
        "[variants]",
        *(f"{json.dumps(variant, ensure_ascii=False)} = {share!r}" for variant in variants),
        "",
        "[horizon]",
        f"days = {audience.days}",
        "",
    ]
    if method:
        named = ", ".join(json.dumps(system, ensure_ascii=False) for system in systems)
        lines += ["[interleave]", f"method = {json.dumps(method)}", f"systems = [{named}]  # the first is the control"]
    else:
        lines += ["[[primary]]", 'metric = "click-through"']
    return "\n".join(lines) + "\n"


PER_SEARCH = MetricColumn("sum", "searches")
SURE = 3.0  # minimum distance of an effect from 0, in standard errors, for a sample size


class DetectionRate(NamedTuple):
    """How often a test detected a difference, in favour of the first or the second arm."""

    test: str
    first: int
    second: int
    replicates: int

    @property
    def share(self) -> float:
        """The share of replicates with a detected difference."""
        return (self.first + self.second) / self.replicates

    @property
    def error(self) -> float:
        """The standard error of the share."""
        return math.sqrt(self.share * (1 - self.share) / self.replicates)


@dataclass(frozen=True)
class Trials(Answer):
    """How often each test detected a difference in simulated experiments."""

    systems: tuple[str, str]  # of the arms; the same twice in A/A
    users: str
    units: int
    alpha: float
    rates: tuple[DetectionRate, ...]

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
        yield Table(["test", "detected", "standard error", *sides], rows, caption=f"{replicates:,} experiments")

    def plain(self, how: Layout) -> Any:
        rates = [{**each._asdict(), "share": each.share, "error": each.error} for each in self.rates]
        return plain({**vars(self), "rates": rates}, how.digits)


def false_alarms(
    world: World,
    users: str | User = "navigational",
    audience: Audience | None = None,
    *,
    replicates: int = 1_000,
    alpha: float = 0.05,
    seed: int = 0,
) -> Trials:
    """How often A/A tests, by unit or naively by search, detect a difference; both arms see the world's first system."""
    return _trials(world, (0, 0), users, audience, None, replicates, alpha, seed)


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
    """Power of A/B tests of the first two systems, and of interleaving them with the same number of units."""
    if len(world.systems) < 2:
        raise ConventionError("power: expected two systems, found one")
    return _trials(world, (0, 1), users, audience, method, replicates, alpha, seed)


def _trials(
    world: World,
    pair: tuple[int, int],
    users: str | User,
    audience: Audience | None,
    method: str | None,
    replicates: int,
    alpha: float,
    seed: int,
) -> Trials:
    refuse_below(1, replicates=replicates)
    model, audience, rng = users_named(users), audience or Audience(), np.random.default_rng(seed)
    counts: dict[str, list[int]] = {}
    for _ in range(replicates):
        visits = audience.visits(len(world.topics), rng)
        signs = _split(world, pair, model, visits.unit, visits.topic, alpha, rng)
        if method is not None:
            values = world.preferences(model, pair, visits.topic, rng, method_named(method))
            signs[f"interleaved, {method}, by unit"] = -_preference(visits.unit, values, alpha)
        for test, sign in signs.items():
            tally = counts.setdefault(test, [0, 0])
            tally[0] += sign < 0
            tally[1] += sign > 0
    rates = tuple(DetectionRate(test, first, second, replicates) for test, (first, second) in counts.items())
    return Trials((world.systems[pair[0]], world.systems[pair[1]]), str(model), audience.units, alpha, rates)


def _split(
    world: World, pair: tuple[int, int], users: User, unit: Places, topic: Places, alpha: float, rng: Generator
) -> dict[str, int]:
    """The result of each test in one A/B experiment: 1 if the second arm is significantly better, -1 if worse, else 0."""
    arm = rng.permutation(int(unit.max()) + 1) % 2
    second = arm[unit] == 1
    there, here = (world.clicks(users, system, topic, rng) for system in reversed(pair))
    clicks = np.where(second[:, None], there, here)
    signs = {}
    for name in ("click-through", "reciprocal-rank"):
        values = SIGNALS[name](clicks)
        by_unit = [level(_by_unit(unit, values, arm == side), PER_SEARCH) for side in (0, 1)]
        by_search = [level(Moments.of(sum=values[second == side]), "sum") for side in (0, 1)]
        signs[f"A/B, {name}, by unit"] = _sign(difference(*by_unit), alpha)
        signs[f"A/B, {name}, by search (naive)"] = _sign(difference(*by_search), alpha)
    return signs


def _by_unit(unit: Places, values: Floats, mask: npt.NDArray[np.bool_]) -> Moments:
    sums, searches = np.bincount(unit, values), np.bincount(unit).astype(np.float64)
    return Moments.of(sum=sums[mask], searches=searches[mask])


def _sign(effect: ArmEffect, alpha: float) -> int:
    return int(np.sign(effect.value)) if float(effect.p()) < alpha else 0


def _preference(unit: Places, values: Floats, alpha: float) -> int:
    """1 if units significantly prefer the first system, by their sums over searches; -1 if the second; else 0."""
    every = np.ones(int(unit.max()) + 1, bool)
    effect = against_0(level(_by_unit(unit, values, every), PER_SEARCH))
    return _sign(effect, alpha) if float(effect.error) > 0 else 0


# searches that each design needs


class SampleSize(NamedTuple):
    """The effect that a design measures for two systems, and the searches needed to detect it, one per unit."""

    one: str
    other: str
    design: str
    effect: float  # the second system less the first
    error: float
    needed: float  # NaN if the effect is too close to 0

    @property
    def slack(self) -> float:
        """The standard error of `needed`, as a share of it."""
        return 2 * self.error / abs(self.effect) if self.effect else math.nan


@dataclass(frozen=True)
class SampleSizes(Answer):
    """How many searches each design needs to detect the difference of two systems."""

    users: str
    simulated: int
    alpha: float
    power: float
    rows: tuple[SampleSize, ...]

    def content(self, how: Layout) -> Iterable[Part]:
        yield (
            f"Searches needed to detect the difference with power {self.power:g} at {self.alpha:g}, one per unit; "
            f"{self.users} users, {self.simulated:,} simulated searches per system."
        )
        head = ["systems", "design", "effect", "needed", "give or take"]
        rows: list[list[Cell | str]] = []
        for each in self.rows:
            needed = ["-", "-"] if math.isnan(each.needed) else [f"{math.ceil(each.needed):,}", f"{each.slack:.0%}"]
            rows.append([f"{each.other} - {each.one}", each.design, how.cell(each.effect, signed=True), *needed])
        yield Table(head, rows, names=2, left=2)

    def notes(self, shell: bool = False) -> list[str]:
        if any(math.isnan(each.needed) for each in self.rows):
            return [f"- means that the effect is within {SURE:g} standard errors of 0: simulate more searches"]
        return []

    def plain(self, how: Layout) -> Any:
        rows = [{**each._asdict(), "slack": each.slack} for each in self.rows]
        return plain({**vars(self), "rows": rows}, how.digits)


def needs(
    world: World,
    users: str | User = "navigational",
    *,
    methods: Sequence[str] = ("team-draft",),
    searches: int = 20_000,
    power: float = 0.8,
    alpha: float = 0.05,
    seed: int = 0,
) -> SampleSizes:
    """The searches that A/B tests and interleaving need for each two systems, estimated from simulated searches."""
    from scipy.special import ndtri  # type: ignore[import-untyped, unused-ignore]

    refuse_below(2, searches=searches)
    if len(world.systems) < 2:
        raise ConventionError("expected two systems or more, found one")
    if not (0 < alpha < 1 and 0 < power < 1):
        raise ConventionError(f"alpha and power must be between 0 and 1, got {alpha:g} and {power:g}")
    model, rng = users_named(users), np.random.default_rng(seed)
    reach = float(ndtri(1 - alpha / 2) + ndtri(power)) ** 2
    topics = rng.integers(len(world.topics), size=searches)
    clicks = [world.clicks(model, system, topics, rng) for system in range(len(world.systems))]
    rows = []
    for i, j in combinations(range(len(world.systems)), 2):
        one, other = world.systems[i], world.systems[j]
        for signal, of in SIGNALS.items():
            a, b = of(clicks[i]), of(clicks[j])
            spread = float(2 * (a.var() + b.var()))  # half of all searches in each arm
            rows.append(_need(one, other, f"A/B, {signal}", b - a, spread, reach))
        for method in methods:
            values = -world.preferences(model, (i, j), topics, rng, method_named(method))
            rows.append(_need(one, other, f"interleaved, {method}", values, float(values.var()), reach))
    return SampleSizes(str(model), searches, alpha, power, tuple(rows))


def _need(one: str, other: str, design: str, effects: Floats, spread: float, reach: float) -> SampleSize:
    """The searches needed; `effects` are those of single searches, `spread` is n times the variance of n searches' mean."""
    effect, error = float(effects.mean()), float(effects.std() / math.sqrt(len(effects)))
    significant = abs(effect) > SURE * error
    return SampleSize(one, other, design, effect, error, reach * spread / effect**2 if significant else math.nan)
