"""Simulated users on runs → a log of events, as a real service would have written it.

Units are assigned by the plan, as real ones are; each sees the lists of its variant, or lists interleaved for it, and
clicks as its model says. What it clicks on it reads: longer the better it is, and now and then it buys. Everything
follows from the seed.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.answer import Answer, Cell, Layout, Lines, Part, Table, plain
from cranfield.columns import counted
from cranfield.errors import ConventionError, DataError
from cranfield.formats.streams import refuse_unwritable
from cranfield.online.assign import assign_one
from cranfield.online.event import KINDS, Event
from cranfield.online.interleave.packed import packed
from cranfield.online.plan import Plan, interleaving_method, read_plan
from cranfield.online.privacy import agree_on_units
from cranfield.online.token import Keys, seal
from cranfield.online.visits import DAY, Audience, Visits
from cranfield.online.world import method_named, users_named
from cranfield.parameters import refuse_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from cranfield.kernels.table import Floats
    from cranfield.online.interleave import Method
    from cranfield.online.log import Log
    from cranfield.online.users import User
    from cranfield.online.world import World

START = "2025-01-06"  # a Monday, long enough ago for logs of months
EXPERIMENT = "simulated"
INTERLEAVED = "interleaved"  # the variant of a plan that interleaves
READING = (8.0, 60.0)  # seconds that half of all read at least: what is irrelevant, and what has the highest grade
READING_SPREAD = 0.8  # of their logarithm
BUYS = 0.05  # of those who click on a document of the highest grade
PRICE, PRICE_SPREAD = 20.0, 0.7  # half of all sales are of so much at least
GLANCE = 2.0  # seconds that a document on a result page is looked at
AT_ONCE = 20_000  # events that are added together


class Tally(NamedTuple):
    """What happened in a variant, by its units' searches within the experiment."""

    variant: str
    units: int
    searches: int
    clicked: int  # searches with a click
    clicks: int


@dataclass(frozen=True)
class Simulated(Answer):
    """What `online simulate` answers with: what went into the log."""

    log: str
    experiment: str
    design: str
    users: str
    seed: int
    days: tuple[str, str]
    events: Mapping[str, int]
    tallies: tuple[Tally, ...]
    passed_over: tuple[str, ...]

    def content(self, how: Layout) -> Iterable[Part]:
        total = sum(self.events.values())
        first, last = self.days
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.events.items())
        yield Lines(
            [
                f"{total:,} events of {first} to {last} in {self.log}: {kinds}.",
                f"Experiment {self.experiment}: {self.design}; {self.users} users, seed {self.seed}.",
            ]
        )
        head = ["variant", "units", "searches", "searches with a click", "clicks per search"]
        rows: list[list[Cell | str]] = [
            [
                each.variant,
                f"{each.units:,}",
                f"{each.searches:,}",
                how.cell(each.clicked / max(each.searches, 1)),
                how.cell(each.clicks / max(each.searches, 1)),
            ]
            for each in self.tallies
        ]
        yield Table(head, rows, title="what happened, by variant")

    def notes(self, shell: bool = False) -> list[str]:
        if not self.passed_over:
            return []
        few = ", ".join(self.passed_over[:3])
        return [f"{counted(len(self.passed_over), 'judged topic')} that a run lacks: nobody asks about them ({few} …)"]

    def plain(self, how: Layout) -> dict[str, Any]:
        answer: dict[str, Any] = plain(
            {
                "log": self.log,
                "experiment": self.experiment,
                "design": self.design,
                "users": self.users,
                "seed": self.seed,
                "days": list(self.days),
                "events": dict(self.events),
                "variants": [each._asdict() for each in self.tallies],
                "passed_over": list(self.passed_over),
            },
            how.digits,
        )
        return answer


def simulate(
    world: World,
    log: Log,
    plan: Plan,
    users: str | User = "navigational",
    audience: Audience | None = None,
    *,
    seed: int = 0,
    before: int = 0,
    keys: Keys | None = None,
) -> Simulated:
    """Let simulated users search and add what they do to a log.

    `plan` says who sees what: variants are the systems of the world, by name or in their order; one system alone makes
    it A/A; a plan that interleaves shows lists of all of them. For `before` days before the start everybody sees the
    control, in no experiment.
    """
    chosen, audience = users_named(users), audience or Audience()
    refuse_beyond(audience, before, seed, plan)
    rng = np.random.default_rng(seed)
    visits = Audience(**{**vars(audience), "days": audience.days + before}).visits(len(world.topics), rng)
    stage = Stage(world, plan, chosen, visits, rng, seed, before, keys)
    events: Counter[str] = Counter()
    agree_on_units(log, None)
    for batch in _batches(stage.events()):
        log.append(batch)
        events.update(event.kind for event in batch)
    log.seal()
    log.pack()
    last = stage.start + timedelta(days=audience.days - 1)
    return Simulated(
        log.folder,
        plan.name,
        stage.design,
        str(chosen),
        seed,
        ((stage.start - timedelta(days=before)).date().isoformat(), last.date().isoformat()),
        {kind: events[kind] for kind in KINDS if events[kind]},
        stage.tallies(),
        world.passed_over,
    )


def refuse_beyond(audience: Audience, before: int, seed: int, plan: Plan | None = None) -> None:
    """Stop at counts that are too small or too large, and at days that no calendar has."""
    refuse_below(0, before=before, seed=seed)
    start = _start_of(plan)
    try:
        start - timedelta(days=before), start + timedelta(days=audience.days)
    except OverflowError:
        years = "years 1 to 9999"
        raise ConventionError(f"expected days within the {years}, found {start.date()} as the start") from None


def _start_of(plan: Plan | None) -> datetime:
    return datetime.fromisoformat((plan and plan.start) or START).replace(tzinfo=UTC)


def _batches(events: Iterable[Event]) -> Iterator[list[Event]]:
    batch: list[Event] = []
    for event in events:
        batch.append(event)
        if len(batch) == AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


class Stage:
    """One simulation: who sees which list, what is clicked, and the events that tell of it."""

    def __init__(
        self,
        world: World,
        plan: Plan,
        users: User,
        visits: Visits,
        rng: np.random.Generator,
        seed: int,
        before: int,
        keys: Keys | None,
    ) -> None:
        self.world, self.plan, self.visits, self.rng = world, plan, visits, rng
        self.prefix = f"{plan.name}-{seed}"
        self.start = _start_of(plan)
        self.origin = self.start - timedelta(days=before)
        self.within = visits.time >= before * DAY
        self.method = interleaving(plan, world)
        self.keys = (keys or Keys.usual()) if self.method is not None else keys
        self.systems = {} if self.method is not None else shown_by(plan, world)
        self.control = world.systems.index(plan.systems[0]) if plan.systems else self.systems.get(plan.control, 0)
        self.units = [f"u{seed}-{n}" for n in range(int(visits.unit.max()) + 1)]
        self.assigned = [assign_one(plan, unit) for unit in self.units]
        self.shown, self.tokens = self._pages()
        gains = [world.gains_of(topic, page) for topic, page in zip(visits.topic.tolist(), self.shown, strict=True)]
        self.gains: Floats = np.array(gains, np.float64)
        self.clicks: npt.NDArray[np.bool_] = users.clicks(self.gains, rng)

    @property
    def design(self) -> str:
        """What kind of experiment it is, in words."""
        if self.method is not None:
            return f"{self.method} of {' and '.join(self.world.systems)}"
        if len(set(self.systems.values())) == 1:
            return f"A/A of {self.world.systems[0]}"
        shown = (f"{variant} shows {self.world.systems[system]}" for variant, system in self.systems.items())
        return f"A/B, {', '.join(shown)}"

    def _in(self, search: int) -> bool:
        """Whether a search is one of the experiment's."""
        return bool(self.within[search]) and self.assigned[int(self.visits.unit[search])] is not None

    def _pages(self) -> tuple[list[tuple[str, ...]], list[str | None]]:
        """What each search shows, and the token of what is interleaved."""
        coin = Random(int(self.rng.integers(2**63)))
        pages: list[tuple[str, ...]] = []
        tokens: list[str | None] = []
        for search, (unit, topic) in enumerate(zip(self.visits.unit.tolist(), self.visits.topic.tolist(), strict=True)):
            assigned, token = self.assigned[unit], None
            if assigned is None or not self._in(search):
                page = self.world.rankings[self.control][topic]
            elif self.method is None or self.keys is None:
                page = self.world.rankings[self.systems[assigned.variant]][topic]
            else:
                drawn = self.method.draw([lists[topic] for lists in self.world.rankings], self.world.k, coin)
                page = drawn.documents
                content = packed(self.method, self.world.systems, drawn.evidence, self.plan.name)
                token = seal(content, self.keys, self._search(search), random=coin.randbytes)
            pages.append(page)
            tokens.append(token)
        return pages, tokens

    def _search(self, number: int) -> str:
        return f"{self.prefix}-s{number}"

    def events(self) -> Iterator[Event]:
        """All events, unit by unit."""
        exposed: set[int] = set()
        for search, unit in enumerate(self.visits.unit.tolist()):
            if self._in(search) and unit not in exposed:
                exposed.add(unit)
                yield self._exposure(search, unit)
            yield from self._happenings(search, unit)

    def _event(self, kind: str, number: int, unit: int, seconds: float, suffix: str, **fields: Any) -> Event:
        return Event(
            event_id=f"{self.prefix}-{number}-{suffix}",
            time=(self.origin + timedelta(seconds=float(self.visits.time[number]) + seconds)).isoformat(),
            kind=kind,
            unit=self.units[unit],
            session=f"{self.prefix}-v{int(self.visits.session[number])}",
            **fields,
        )

    def _exposure(self, search: int, unit: int) -> Event:
        assigned = self.assigned[unit]
        return self._event(
            "exposure", search, unit, 0.0, "x", **(assigned.exposure(self.plan.hash) if assigned else {})
        )

    def _happenings(self, search: int, unit: int) -> Iterator[Event]:
        """One search: its page, then each click, how long it was read, and what it sold."""
        topic = self.world.topics[int(self.visits.topic[search])]
        page, name = self.shown[search], self._search(search)
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

    def tallies(self) -> tuple[Tally, ...]:
        """What happened, by variant."""
        variant = [each.variant if each is not None else "" for each in self.assigned]
        inside = np.array([self._in(search) for search in range(len(self.visits.unit))], bool)
        of_search = np.array([variant[unit] for unit in self.visits.unit.tolist()], object)
        answer = []
        for name in self.plan.variants:
            own = inside & (of_search == name)
            units = len(set(self.visits.unit[own].tolist()))
            clicks = self.clicks[own]
            answer.append(Tally(name, units, int(own.sum()), int(clicks.any(axis=1).sum()), int(clicks.sum())))
        return tuple(answer)


def interleaving(plan: Plan, world: World) -> Method | None:
    """The method by which a plan interleaves; None where it splits traffic."""
    if plan.interleave is None:
        return None
    if plan.systems and set(plan.systems) != set(world.systems):
        wanted, runs = ", ".join(plan.systems), ", ".join(world.systems)
        raise DataError(f"{plan.path or plan.name}: expected runs of the systems {wanted}; found {runs}")
    return _fitting(interleaving_method(plan.interleave), world)


def _fitting(typed: str | Method, world: World) -> Method:
    """A method by what one types, that takes as many systems as there are."""
    method = method_named(typed)
    if len(world.systems) < 2 or (len(world.systems) > 2 and not method.many):
        wanted = "two runs or more" if method.many else "two runs"
        raise DataError(f"{method.name} takes {wanted}, found {len(world.systems)}")
    return method


def shown_by(plan: Plan, world: World) -> dict[str, int]:
    """Which system each variant shows: the one of its name, or the one in its place; all the same where there is one."""
    where, systems = plan.path or plan.name, world.systems
    if len(systems) == 1:
        return dict.fromkeys(plan.variants, 0)
    if plan.aa:
        raise DataError(f"{where}: a plan with aa = true shows one system to all, found {len(systems)} runs")
    if set(systems) == set(plan.variants):
        return {variant: systems.index(variant) for variant in plan.variants}
    if len(systems) != len(plan.variants):
        found = f"{len(systems)} runs ({', '.join(systems)})"
        raise DataError(
            f"{where}: expected a run for each of {', '.join(plan.variants)}, or one for all of them; found {found}"
        )
    return {variant: number for number, variant in enumerate(plan.variants)}


def planned(path: str | None, world: World, audience: Audience, method: str | None = None) -> Plan:
    """The plan in a file; where there is none, one for these systems, which can be written there in the end."""
    if path == "-":
        raise ConventionError("the plan of a simulation stays in a file, to analyse the log by; found -")
    if method is not None:
        _fitting(method, world)
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
            f"{path}: expected a plan that interleaves, as a method is given, found one that splits traffic"
        )
    return plan


def plan_text(systems: Sequence[str], audience: Audience, method: str | None = None) -> str:
    """A plan for systems: A/B of several, A/A of one, or interleaved by a method."""
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
