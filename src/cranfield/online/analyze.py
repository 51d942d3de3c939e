"""A log and a plan → a verdict: health first, then what each metric shows, by the plan's one method.

The time that is looked at ends at the horizon, or at the last planned look: asking again later, or between looks, gives the
same answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.answer import Answer, Cell, Layout, Lines, Part, Table, plain
from cranfield.errors import ConventionError, DataError
from cranfield.online import health
from cranfield.online.choice import MEAN_OF_RATIOS
from cranfield.online.decide import (
    EXIT_CODES,
    Finding,
    cannot_decide,
    compared,
    findings,
    overall,
    rule_at,
    undecided,
    verdict_of,
)
from cranfield.online.event import instant
from cranfield.online.gather import Asked, Filtered, Gathering, day_windows, days, midnight
from cranfield.online.health import BROKEN, EARLY, NOTE, Check
from cranfield.online.lists import read_lists
from cranfield.online.log import Log
from cranfield.online.preferences import Preferences, preferences
from cranfield.parameters import refuse_below
from cranfield.stats.correction import correct
from cranfield.stats.limits import Limits
from cranfield.stats.sequential import FIXED, information

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cranfield.online.gather import Numbers
    from cranfield.online.log import EventSource
    from cranfield.online.plan import Plan
    from cranfield.online.token import Keys
    from cranfield.stats.sequential import Rule

MOST_DAYS = 30  # of a history
MOST_ON_SCREEN = 6  # slices
MOST_NAMED = 3  # metrics in a sentence
MOST_SINCE = 14  # days since the first exposure that are told apart


class Moment(NamedTuple):
    """Where an experiment stands."""

    start: datetime
    until: datetime  # what is looked at ends here
    ended: bool
    open: bool  # whether the method allows a verdict now
    shares: tuple[float, ...]  # the information at the looks so far that had units
    cuts: tuple[datetime, ...] = ()  # of those looks


class SliceFinding(NamedTuple):
    """What a metric shows among units of one kind, corrected over all slices by Benjamini and Hochberg."""

    field: str
    value: str
    metric: str
    variant: str
    units: tuple[int, int]
    difference: Limits
    p: float
    corrected: float


class Point(NamedTuple):
    """An effect at some time: until a day, or on a day since the first exposure."""

    metric: str
    variant: str
    at: str
    day: float  # since the start, or since the first exposure
    units: int
    effect: Limits


class WithoutLate(NamedTuple):
    """The verdict without events that happened before the horizon and arrived after it, and how many these are."""

    events: int
    verdict: str
    reason: str


@dataclass(frozen=True)
class Analysis(Answer):
    """What `online analyze` answers with."""

    page_has_charts = True

    experiment: str
    plan: str  # its hash
    verdict: str
    reason: str
    variants: dict[str, str]  # the verdict on each but the control
    method: str
    alpha: float
    start: str
    until: str
    ended: bool
    units: dict[str, int]  # before filters
    kept: dict[str, int]  # after them
    checks: tuple[Check, ...]
    filters: tuple[Filtered, ...] = ()
    winsorised: dict[str, tuple[float, int]] | None = None
    findings: tuple[Finding, ...] = ()
    preferences: Preferences | None = None
    slices: tuple[SliceFinding, ...] = ()
    rare: int = 0  # values of slices that too few units have
    history: tuple[Point, ...] = ()
    since: tuple[Point, ...] = ()
    events: int = 0  # of these units, up to the time that is looked at
    after: int = 0  # events of these units that happened after the horizon, and are not looked at
    without_late: WithoutLate | None = None

    @property
    def exit_code(self) -> int:
        """0 ship; 1 stop, same, not shown; 3 broken or still running."""
        return EXIT_CODES[self.verdict]

    def sentence(self) -> str:
        """The verdict and why."""
        return f"{self.verdict}: {self.reason}"

    def content(self, how: Layout) -> Iterator[Part]:
        facts = f"{self.experiment}, plan {self.plan[:12]}, {self.method}, alpha {self.alpha:g}, {self._span()}"
        late = self.without_late
        lines = [f"{_arrived(late.events)} without them: {late.verdict}: {late.reason}"] if late is not None else []
        yield Lines([self.sentence(), facts, *lines])
        if self.findings:
            yield self._table(how)
        if self.preferences is not None:
            yield from self.preferences.parts(how)
        if told := self._told_slices(how):
            yield self._slices(how, told)
        bad = [each for each in self.checks if each.state in (BROKEN, EARLY)]
        shown = self.checks if how.told else bad
        if shown:
            yield Table(["health", "", "what was found"], [[*each] for each in shown], names=2, tail=True)
        yield from self._left_out(how)

    def _span(self) -> str:
        units = ", ".join(f"{name} {n:,}" for name, n in self.kept.items())
        return f"{self.start[:10]} to {self.until[:16].replace('T', ' ')} UTC; units: {units}"

    def _left_out(self, how: Layout) -> Iterator[Part]:
        before, after = sum(self.units.values()), sum(self.kept.values())
        lines = [f"filter {each.name}: {_several(each.number, each.drop)} left out" for each in self.filters]
        if self.filters:
            lines.append(f"units: {before:,} before filters, {after:,} after")
        lines += [
            f"{name}: {_several(n, 'units')} pulled in to {limit:.6g}"
            for name, (limit, n) in (self.winsorised or {}).items()
        ]
        if self.after:
            lines.append(f"{_several(self.after, 'events')} after the horizon left out")
        if self.rare:
            lines.append(f"{self.rare:,} more values of slices are too rare to be shown")
        if lines:
            yield Lines(lines, dim=True)

    def _table(self, how: Layout) -> Table:
        several = len(self.variants) > 1
        head = [
            "metric",
            *(["variant"] if several else []),
            "control",
            "here",
            "difference",
            "interval",
            "relative",
            "interval",
            "p",
            "it is",
        ]
        rows: list[list[Cell | str]] = []
        for each in self.findings:
            name = f"{each.metric}{'' if each.window is None else f', {each.window} days'}"
            level = f"{100 * (1 - (2 if each.guards else 1) * self.alpha):g} %"
            rows.append(
                [
                    name,
                    *([each.variant] if several else []),
                    how.cell(each.control),
                    how.cell(each.value),
                    how.cell(each.difference.value, signed=True),
                    how.interval(each.difference.low, each.difference.high, signed=True),
                    _percent(each.ratio.value),
                    f"[{_percent(each.ratio.low)}, {_percent(each.ratio.high)}]"
                    if each.ratio.low == each.ratio.low
                    else how.undefined,
                    Cell("-" if each.p != each.p else f"{each.p:.2g}", each.p),
                    f"{each.state} ({'guardrail' if each.guards else 'primary'}, {level})",
                ]
            )
        return Table(
            head,
            rows,
            names=2 if several else 1,
            tail=True,
            title="what each metric shows",
            spare=(len(head) - 4, len(head) - 3),
        )

    def _told_slices(self, how: Layout) -> list[SliceFinding]:
        """On a screen those that differ, the surest first; elsewhere all."""
        if how.told or how.every:
            return list(self.slices)
        differing = [each for each in self.slices if each.corrected < self.alpha]
        return sorted(differing, key=lambda each: each.corrected)[:MOST_ON_SCREEN]

    def _slices(self, how: Layout, told: list[SliceFinding]) -> Table:
        head = ["slice", "metric", "variant", "units", "difference", "interval", "p, corrected"]
        rows: list[list[Cell | str]] = [
            [
                f"{each.field} {each.value}",
                each.metric,
                each.variant,
                f"{sum(each.units):,}",
                how.cell(each.difference.value, signed=True),
                how.interval(each.difference.low, each.difference.high, signed=True),
                Cell(f"{each.corrected:.2g}", each.corrected),
            ]
            for each in told
        ]
        return Table(head, rows, names=3, caption="slices, corrected by Benjamini and Hochberg; they decide nothing")

    def page_title(self) -> str:
        """The experiment and its verdict."""
        return f"{self.experiment}: {self.verdict}"

    def plain(self, how: Layout) -> dict[str, Any]:
        facts = {name: value for name, value in vars(self).items() if name not in ("preferences",)}
        values: dict[str, Any] = {key: _values(value, how.digits) for key, value in facts.items()}
        values["exit_code"] = self.exit_code
        values["preferences"] = None if self.preferences is None else _values(self.preferences, how.digits)
        return values

    def records(self, how: Layout) -> Iterable[list[Any]]:
        yield [
            "metric",
            "variant",
            "role",
            "control",
            "value",
            "difference",
            "low",
            "high",
            "relative",
            "relative_low",
            "relative_high",
            "p",
            "state",
        ]
        for each in self.findings:
            role = "guardrail" if each.guards else "primary"
            yield [
                each.metric,
                each.variant,
                role,
                each.control,
                each.value,
                *each.difference,
                *each.ratio,
                each.p,
                each.state,
            ]

    def notes(self, shell: bool = False) -> list[str]:
        return [f"{each.name}: {each.words}" for each in self.checks if each.state == NOTE]


def _several(number: int, what: str) -> str:
    """How many of what, by its plural."""
    return f"{number:,} {what.removesuffix('s') if number == 1 else what}"


def _arrived(number: int) -> str:
    return f"{_several(number, 'events')} of before the horizon arrived after it;"


def _percent(value: float) -> str:
    return "-" if value != value else f"{100 * value:+.2f} %"


def _values(value: Any, digits: int | None) -> Any:
    """Plain values; named tuples become objects."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {key: _values(each, digits) for key, each in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [_values(each, digits) for each in value]
    if isinstance(value, (Finding, Preferences)):
        return {key: _values(each, digits) for key, each in vars(value).items()}
    return plain(value, digits)


# making it


def analyze(
    log: Log,
    plan: Plan,
    now: datetime,
    *,
    at: datetime | None = None,
    seed: int = 0,
    history: bool = False,
    memory: str | None = None,
    expected: str | None = None,
    keys: Keys | None = None,
) -> Analysis:
    """The verdict on an experiment; `at` an earlier time, what it would have been then.

    `now` is the clock, which no event may be ahead of. `history` also has the interval over time and by day since the first
    exposure; `memory` is DuckDB's limit (3GB); `expected` is the hash that the plan had when the experiment began.
    """
    refuse_below(0, seed=seed)
    if not plan.primary and plan.interleave is None:
        raise DataError(f"{plan.path or plan.name}: expected a [[primary]] metric, by which it is decided; found none")
    found = _analyze(log, plan, now, at or now, np.random.default_rng(seed), history, memory, expected, keys)
    if found.ended and isinstance(log, Log):
        on_time = log.as_of(datetime.fromisoformat(found.until))
        if on_time is not None:
            rng = np.random.default_rng(seed)
            before = _analyze(on_time, plan, now, at or now, rng, memory=memory, keys=keys)
            return replace(found, without_late=_without_late(found, before))
    return found


def _without_late(found: Analysis, before: Analysis) -> WithoutLate | None:
    """What the events that arrived in time say; None where none did, as of a log that was brought in afterwards."""
    late = found.events - before.events
    return WithoutLate(late, before.verdict, before.reason) if late and before.events else None


def _analyze(
    log: EventSource,
    plan: Plan,
    now: datetime,
    then: datetime,
    rng: np.random.Generator,
    history: bool = False,
    memory: str | None = None,
    expected: str | None = None,
    keys: Keys | None = None,
) -> Analysis:
    with Gathering(log, plan, memory) as gathering:
        first = gathering.first_exposure()
        if first is None:
            return _broken(
                plan, now, [health.Check("exposures", BROKEN, f"no exposure of {plan.name!r} is in the log")]
            )
        moment = _moment(gathering, first, then)
        gathering.enter(moment.start, moment.until)
        events = gathering.events()
        checks = [*_expected(plan, expected), *_early(gathering, moment), *health.leave_out(gathering, now)]
        once = plan.method == "fixed" and moment.ended
        checks += [health.sample_ratio(gathering, once, moment.ended), *health.of_events(gathering, moment.ended)]
        units, kept = gathering.counts("all"), gathering.counts()
        if any(each.state == BROKEN for each in checks):
            return replace(_broken(plan, then, checks, moment, units, kept), events=events)
        filters = gathering.filter()
        if filters:
            checks.append(health.sample_ratio(gathering, once, moment.ended, "entered"))
        if any(each.state == BROKEN for each in checks):
            return replace(_broken(plan, then, checks, moment, units, gathering.counts(), filters), events=events)
        base = _base(plan, moment, checks, units, gathering.counts(), filters)
        base = replace(base, events=events, after=gathering.events_after() if moment.ended else 0)
        if any(each.state == EARLY for each in checks):
            return _too_early(gathering, base, moment, then)
        if plan.interleave is not None:
            return _interleaved(gathering, base, moment, then, keys, rng)
        if not moment.open:
            return replace(base, verdict="continue", reason=_so_far(gathering, moment, then))
        return _decided(gathering, base, moment, then, rng, history)


def _too_early(gathering: Gathering, base: Analysis, moment: Moment, now: datetime, lacking: str = "") -> Analysis:
    """An experiment that goes on, with the words of what cannot be seen yet; `lacking` says that this look cannot decide."""
    early = [each.words for each in base.checks if each.state == EARLY]
    words = [*([lacking] if lacking else []), *early, _so_far(gathering, moment, now)]
    return replace(base, verdict="continue", reason="; ".join(words))


def _decided(
    gathering: Gathering, base: Analysis, moment: Moment, now: datetime, rng: np.random.Generator, history: bool
) -> Analysis:
    plan = gathering.plan
    rule = rule_at(plan, moment.shares, moment.ended, len(moment.cuts))
    gathering.tabulate()
    base = replace(base, winsorised=gathering.winsorise())
    numbers = [(each, gathering.numbers_to_decide(each)) for each in gathering.asked]
    outcome = judge(plan, numbers, rule, moment.ended, rng)
    base = replace(base, checks=(*base.checks, *outcome.checks))
    base = replace(base, verdict=outcome.verdict, variants=outcome.variants, findings=tuple(outcome.findings))
    if outcome.verdict == "broken":
        return replace(base, reason="; ".join(each.words for each in outcome.checks if each.state == BROKEN))
    if any(each.state == EARLY for each in outcome.checks):
        tests = len(plan.primary) * (len(plan.variants) - 1)
        return _too_early(gathering, base, moment, now, cannot_decide(rule, plan.alpha / (2 * tests)))
    slices, rare = _slices(gathering, rule, rng)
    found, made = outcome.findings, replace(base, slices=slices, rare=rare)
    if plan.aa and any(each.state in ("good", "bad") for each in found):
        reason = f"all variants are the same, and yet {_differing(found)} differs; look for the mistake before any experiment"
        made = replace(made, verdict="broken", reason=reason)
    else:
        made = replace(made, reason=_reason(gathering, made, moment, now, undecided(found, plan, rule)))
    if not history:
        return made
    return replace(made, history=_history(gathering, moment, rng), since=_since(gathering, moment, rng))


class Outcome(NamedTuple):
    """What the numbers of metrics come to: checks of them, findings, the verdict on each variant and on all."""

    checks: list[Check]
    findings: list[Finding]
    variants: dict[str, str]
    verdict: str


def judge(
    plan: Plan, numbers: Iterable[tuple[Asked, Numbers]], rule: Rule, ended: bool, rng: np.random.Generator
) -> Outcome:
    """The verdict on the numbers of a plan's metrics: broken or too early where one of them cannot be believed."""
    known = list(numbers)
    others = [name for name in plan.variants if name != plan.control]
    covered = [check for asked, own in known for check in health.coverage(asked, own)]
    try:
        found = _findings(plan, known, rule, rng)
    except _Doubtful as error:
        state, words = (BROKEN, str(error)) if ended else (EARLY, f"too early: {error}")
        verdict = "broken" if ended else "continue"
        return Outcome([Check("metrics", state, words), *covered], [], dict.fromkeys(others, verdict), verdict)
    heavy = {asked.name: health.leverage(asked, own, ended) for asked, own in known}
    decided_by_one = {name for name, own in heavy.items() if any(each.state != health.OK for each in own)}
    found = [replace(each, state="unclear", same=False) if each.metric in decided_by_one else each for each in found]
    checks = [*(check for own in heavy.values() for check in own), *covered]
    states = {each.state for each in checks}
    if BROKEN in states or EARLY in states:
        verdict = "broken" if BROKEN in states else "continue"
        return Outcome(checks, found, dict.fromkeys(others, verdict), verdict)
    verdicts = {name: verdict_of([each for each in found if each.variant == name], ended) for name in others}
    return Outcome(checks, found, verdicts, overall(list(verdicts.values()), ended))


class _Doubtful(Exception):
    """A metric that cannot be compared, in words."""


def _findings(
    plan: Plan, known: Iterable[tuple[Asked, Numbers]], rule: Rule, rng: np.random.Generator
) -> list[Finding]:
    comparisons, covered = [], []
    for asked, numbers in known:
        for variant in list(plan.variants)[1:]:
            found = compared(asked, numbers, plan.control, variant, rng)
            lacking = found.ratio is None and asked.choice.relative
            if found.doubt or lacking:
                why = found.doubt or "a relative effect needs levels above 0"
                raise _Doubtful(f"{asked.name}, {variant} against {plan.control}: {why}")
            comparisons.append((asked, variant, found, (numbers.units[plan.control], numbers.units[variant])))
            counts = numbers.covered
            covered.append(None if counts is None else (counts[plan.control], counts[variant]))
    made = findings(plan, comparisons, rule)
    return [replace(each, covered=counts) for each, counts in zip(made, covered, strict=True)]


def _moment(gathering: Gathering, first: datetime, now: datetime) -> Moment:
    """Where an experiment stands, by its horizon and its looks."""
    plan = gathering.plan
    start = datetime.fromisoformat(instant(plan.start)) if plan.start else midnight(first)
    if plan.days is None and plan.units is None:
        raise DataError(
            f"{plan.path or plan.name}: expected a [horizon] of days or units, or nobody knows when it ends"
        )

    def when(share: float) -> datetime | None:
        """When a share of the horizon was or will be had."""
        if plan.days is not None:
            return start + days(share * plan.days)
        entry = gathering.entry_of(math.ceil(share * (plan.units or 1)), start)
        return None if entry is None else entry + timedelta(microseconds=1)

    end = when(1.0)
    ended = end is not None and end <= now
    until = end if ended and end is not None else now
    if plan.method == "looks":
        cuts = tuple(time for share in plan.looks if (time := when(share)) is not None and time <= now)
        gathering.let_in(start, cuts[-1] if cuts else until)
        entered = [sum(counts) for counts in gathering.entered_by(cuts)]
        passed = [(cut - start).total_seconds() for cut in cuts]
        empty = entered.count(0)  # looks before the first unit
        shares = information(entered[empty:], passed[empty:])
        return Moment(start, cuts[-1] if cuts else until, ended, bool(shares), shares, cuts)
    if plan.method == "sequence":
        tuned = plan.tuned or plan.units
        if tuned is None:
            raise DataError(f'{plan.path or plan.name}: method = "sequence" needs tuned, or units in its [horizon]')
        gathering.let_in(start, until)
        share = sum(gathering.counts("all").values()) / tuned
        return Moment(start, until, ended, share > 0, (share,))
    return Moment(start, until, ended, ended, (1.0,))


def _expected(plan: Plan, expected: str | None) -> list[Check]:
    if expected is None:
        return []
    if len(expected) < 8:
        raise ConventionError(f"expected 8 digits or more of a plan's hash, found {expected!r}")
    if plan.hash.startswith(expected.lower()):
        return [Check("hash", health.OK, "the plan is the one that was expected")]
    words = (
        f"the plan was changed mid-way: its hash is {plan.hash[:12]}, expected {expected[:12]}; begin a new experiment"
    )
    return [Check("hash", BROKEN, words)]


def _early(gathering: Gathering, moment: Moment) -> list[Check]:
    """Units that were exposed before the plan's start are left out, and counted."""
    start = moment.start.replace(tzinfo=None)
    early = gathering.one("SELECT count(*) FROM cranfield_exposed WHERE NOT override AND first < ?", start)[0]
    words = f"{early:,} units were exposed before the start and are left out"
    return [Check("start", NOTE, words)] if early else []


def _base(plan: Plan, moment: Moment | None, checks: list[Check], units: Any, kept: Any, filters: Any) -> Analysis:
    return Analysis(
        experiment=plan.name,
        plan=plan.hash,
        verdict="continue",
        reason="",
        variants=dict.fromkeys(list(plan.variants)[1:], ""),
        method=plan.method,
        alpha=plan.alpha,
        start="" if moment is None else moment.start.isoformat(),
        until="" if moment is None else moment.until.isoformat(),
        ended=moment is not None and moment.ended,
        units=units,
        kept=kept,
        checks=tuple(checks),
        filters=tuple(filters),
    )


def _broken(
    plan: Plan,
    now: datetime,
    checks: list[Check],
    moment: Moment | None = None,
    units: Any = None,
    kept: Any = None,
    filters: Any = (),
) -> Analysis:
    nobody = dict.fromkeys(plan.variants, 0)
    base = _base(plan, moment, checks, units or nobody, kept or units or nobody, filters)
    reason = "; ".join(each.words for each in checks if each.state == BROKEN)
    empty = {"start": now.isoformat(), "until": now.isoformat()} if moment is None else {}
    return replace(base, verdict="broken", reason=reason, **empty)  # type: ignore[arg-type]


# why


def _differing(found: list[Finding]) -> str:
    return ", ".join(dict.fromkeys(each.metric for each in found if each.state in ("good", "bad")))


def _reason(gathering: Gathering, made: Analysis, moment: Moment, now: datetime, lacking: str) -> str:
    """Why the verdict is what it is: what is shown of each variant, those first that have the verdict of the whole.

    `lacking` says why this look has no interval, and comes first where nothing is decided.
    """
    own = {name: [each for each in made.findings if each.variant == name] for name in made.variants}
    is_open = made.verdict in ("not shown", "continue")
    parts = [lacking] if lacking and is_open else []
    parts += [_so_far(gathering, moment, now)] if made.verdict == "continue" else []
    groups: dict[tuple[bool, str, str], list[str]] = {}
    for name, verdict in made.variants.items():
        key = (verdict != made.verdict, verdict, _shown(own[name], verdict))
        groups.setdefault(key, []).append(name)
    for (other, verdict, words), names in sorted(groups.items(), key=lambda each: each[0][0]):
        if is_open and not other and len(made.variants) == 1:
            parts += [words] if verdict == "not shown" and not lacking else []
            continue
        both = f" and {gathering.plan.control}" if verdict == "same" else ""
        parts.append(f"{' and '.join(names)}{both}{f' ({verdict})' if other else ''}: {words}")
    if made.verdict == "not shown" and not lacking:
        parts.append(_could(made))
    return "; ".join(parts)


def _shown(own: list[Finding], verdict: str) -> str:
    """What is shown of one variant, whose verdict this is."""
    good = [each for each in own if each.state == "good"]
    rails = [each for each in own if each.guards]
    if verdict == "ship":
        held = f"; within margins: {_some(dict.fromkeys(each.metric for each in rails))}" if rails else ""
        return f"{_some(f'{_called(each)} {_told(each)}' for each in good)}{held}"
    if verdict == "stop":
        worse = [f"{_called(each)} {_told(each)}" for each in own if each.state == "bad"]
        worse += [f"{each.metric} is beyond its margin, {_told(each)}" for each in own if each.state == "beyond"]
        return _some(worse)
    if verdict == "same":
        within = (
            f"{each.metric} {_told(each)} within ±{_sized(each, each.margin or 0)}" for each in own if not each.guards
        )
        return ", ".join(within)
    when = " at the horizon" if verdict == "not shown" else " so far"
    if good:
        unclear = ", ".join(each.metric for each in rails if each.state == "unclear")
        return f"{good[0].metric} is better, but {unclear} is not shown within its margin{when}"
    return f"no primary differs{when}"


def _could(made: Analysis) -> str:
    """What an experiment that shows nothing could have shown, and how many units a new one takes."""
    own = [each for each in made.findings if made.variants[each.variant] == "not shown"]
    good = [each for each in own if each.state == "good"]
    unclear = [each for each in own if each.guards and each.state == "unclear"]
    first = unclear[0] if good and unclear else next(each for each in own if not each.guards)
    could = f"it could have shown {_sized(first, first.detectable)} of {first.metric} (power 0.8)"
    target = f"its margin of {_sized(first, first.margin)}" if first.margin else "half of that"
    plan = f"; a new plan of about {first.needed:,} units would show {target}" if first.needed else ""
    return f"{could}{plan}"


def _so_far(gathering: Gathering, moment: Moment, now: datetime) -> str:
    """How far it is, and about how much is to come."""
    plan = gathering.plan
    units = gathering.one(
        "SELECT count(*) FROM cranfield_exposed WHERE NOT override AND first < ?",
        now.astimezone(UTC).replace(tzinfo=None),
    )[0]
    passed = max((now - moment.start).total_seconds() / 86_400, 1e-9)
    if plan.days is not None:
        left = max(plan.days - passed, 0.0)
        more = units * left / passed
        said = f"{passed:.1f} of {plan.days} days and {units:,} units so far"
    else:
        more = max((plan.units or 0) - units, 0)
        left = more * passed / units if units else math.inf
        said = f"{units:,} of {plan.units:,} units in {passed:.1f} days so far"
    about = f"about {more:,.0f} units and {left:,.1f} days more"
    before = "the fixed method says nothing before its horizon; " if plan.method == "fixed" else ""
    look = f"{len(moment.cuts)} of {len(plan.looks)} looks; " if plan.method == "looks" else ""
    return f"{before}{look}{said}, {about}"


def _some(words: Iterable[str]) -> str:
    """The first of several things, and how many more there are."""
    known = list(words)
    more = f", and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    return ", ".join(known[:MOST_NAMED]) + more


def _called(each: Finding) -> str:
    return f"{each.metric} is {'better' if each.state == 'good' else 'worse'},"


def _told(each: Finding) -> str:
    value, low, high = each.deciding
    if each.relative:
        return f"{_percent(value)} [{_percent(low)}, {_percent(high)}]"
    return f"{value:+.4g} [{low:+.4g}, {high:+.4g}]"


def _sized(each: Finding, size: float | None) -> str:
    return "-" if size is None else f"{100 * size:.3g} %" if each.relative else f"{size:.4g}"


# beside the verdict


def _slices(gathering: Gathering, rule: Rule, rng: np.random.Generator) -> tuple[tuple[SliceFinding, ...], int]:
    """Primaries among units of one kind, or searches of one query; those of too few units are counted and not named."""
    plan = gathering.plan
    found: list[SliceFinding] = []
    hidden = 0
    for i, name in enumerate(plan.slices):
        values, rare = ([], 0) if name == "query" else gathering.slices_of(i, name, plan.rare)
        for asked in (each for each in gathering.asked if not each.guards):
            own = asked
            if name == "query":
                if not _of_searches_only(asked):
                    continue
                own = replace(asked, choice=replace(asked.choice, estimate=_without_covariate(asked)))
                gathering.tabulate([own], by="query")
                values, rare = gathering.slices_of(i, name, plan.rare)
            for value, where in values:
                found += _slice(gathering, own, name, value, where, rule, rng)
        hidden += rare
        if name == "query":
            gathering.tabulate()
            gathering.winsorise()
    corrected = correct([each.p for each in found], "benjamini-hochberg").tolist()
    return tuple(each._replace(corrected=p) for each, p in zip(found, corrected, strict=True)), hidden


def _without_covariate(asked: Asked) -> str:
    """The estimate of a part of the time or of the searches, which has no covariate and is not resampled."""
    return MEAN_OF_RATIOS if asked.choice.estimate == MEAN_OF_RATIOS else "plain"


def _of_searches_only(asked: Asked) -> bool:
    below = asked.metric.denominator
    return below is not None and asked.metric.numerator.of_searches and below.of_searches


def _slice(
    gathering: Gathering, asked: Asked, name: str, value: str, where: str, rule: Rule, rng: np.random.Generator
) -> Iterator[SliceFinding]:
    plan = gathering.plan
    numbers = gathering.numbers(asked, where)
    for variant in list(plan.variants)[1:]:
        effect = compared(asked, numbers, plan.control, variant, rng).difference
        if effect is not None:
            low, high = (float(end) for end in effect.limits((plan.alpha / 2, plan.alpha / 2), rule))
            units = (numbers.units[plan.control], numbers.units[variant])
            p = float(effect.p(rule))
            yield SliceFinding(name, value, asked.name, variant, units, Limits(float(effect.value), low, high), p, p)


def _history(gathering: Gathering, moment: Moment, rng: np.random.Generator) -> tuple[Point, ...]:
    """The interval as it was at the end of each day, or at each look, by the rule that held then."""
    plan = gathering.plan
    if plan.method == "looks":
        cuts = list(moment.cuts)
    else:
        number = max(1, math.ceil((moment.until - moment.start).total_seconds() / 86_400))
        step = math.ceil(number / MOST_DAYS)
        cuts = [min(moment.start + days(n), moment.until) for n in range(step, number + step, step)]
    entered = [sum(counts) for counts in gathering.entered_by(cuts)]
    points: list[Point] = []
    had = [(cut, n) for cut, n in zip(cuts, entered, strict=True) if n]
    for i, (cut, n) in enumerate(had):
        shares = moment.shares[: i + 1] if plan.method == "looks" else (moment.shares[-1] * n / max(entered[-1], 1),)
        rule = rule_at(plan, shares, moment.ended and cut == moment.until, len(cuts) - len(had) + i + 1)
        gathering.tabulate(until=cut)
        gathering.winsorise()
        day = (cut - moment.start).total_seconds() / 86_400
        points += _points(gathering, gathering.asked, (cut.isoformat()[:16], day), rule, rng)
    return tuple(points)


def _since(gathering: Gathering, moment: Moment, rng: np.random.Generator) -> tuple[Point, ...]:
    """The effect on each day since the first exposure, of units that have had that day; each by itself, for looking."""
    lasted = int((moment.until - moment.start).total_seconds() / 86_400)
    points: list[Point] = []
    for n, window in enumerate(day_windows(min(lasted, MOST_SINCE))):
        asked = [
            replace(each, window=window, choice=replace(each.choice, estimate=_without_covariate(each)))
            for each in gathering.asked
            if (each.choice.window is None or n < each.choice.window) and not each.counted
        ]
        if asked:
            gathering.tabulate(asked)
            had = f"first <= TIMESTAMP '{(moment.until - days(n + 1)).astimezone(UTC).replace(tzinfo=None)}'"
            points += _points(gathering, asked, (f"day {n + 1}", n + 1.0), FIXED, rng, had)
    return tuple(points)


def _points(
    gathering: Gathering,
    asked: Iterable[Asked],
    at: tuple[str, float],
    rule: Rule,
    rng: np.random.Generator,
    where: str = "true",
) -> Iterator[Point]:
    plan = gathering.plan
    for each in asked:
        numbers = gathering.numbers(each, where)
        for variant in list(plan.variants)[1:]:
            effect = compared(each, numbers, plan.control, variant, rng).difference
            if effect is not None:
                tail = plan.alpha if each.guards else plan.alpha / 2
                own = Limits(float(effect.value), *(float(end) for end in effect.limits((tail, tail), rule)))
                if own.exists:
                    units = numbers.units[plan.control] + numbers.units[variant]
                    yield Point(each.name, variant, *at, units, own)


def _interleaved(
    gathering: Gathering, base: Analysis, moment: Moment, now: datetime, keys: Keys | None, rng: np.random.Generator
) -> Analysis:
    """The verdict of an experiment that mixes lists."""
    plan = gathering.plan
    reading = read_lists(gathering, keys)
    so_far = Preferences((), reading.tokens, reading.clicks)
    base = replace(base, checks=(*base.checks, *reading.checks), preferences=so_far)
    if any(each.state == BROKEN for each in reading.checks):
        reason = "; ".join(each.words for each in reading.checks if each.state == BROKEN)
        return replace(base, verdict="broken", reason=reason)
    if not moment.open:
        return replace(base, verdict="continue", reason=_so_far(gathering, moment, now))
    rule = rule_at(plan, moment.shares, moment.ended, len(moment.cuts))
    found = preferences(reading, plan, rule, rng)
    if found.broken:
        state, words = (BROKEN, found.broken) if moment.ended else (EARLY, f"too early: {found.broken}")
        base = replace(base, checks=(*base.checks, Check("credit", state, words)))
        return (
            replace(base, verdict="broken", reason=words) if moment.ended else _too_early(gathering, base, moment, now)
        )
    verdicts = {each.system: each.verdict(moment.ended) for each in found.pairs}
    verdict = overall(list(verdicts.values()), moment.ended)
    lacking = ""
    if verdict in ("not shown", "continue"):
        lacking = cannot_decide(rule, plan.alpha / (2 * max(len(found.pairs), 1))) or found.undecided()
    going = _so_far(gathering, moment, now) if verdict == "continue" else ""
    told = "" if lacking and verdict == "not shown" else found.reason(verdict, moment.ended)
    reason = "; ".join(filter(None, (lacking, going, told, found.blind())))
    return replace(base, verdict=verdict, reason=reason, variants=verdicts, preferences=found)
