"""Analyze an experiment: from an event log and a plan to a verdict. Health checks come first, then each metric.

The analysed time ends at the horizon, or at the last planned look. Asking again later, or between looks, therefore gives
the same answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Answer, Cell, Layout, Lines, Part, Table, as_dicts, plain
from cranfield.base.text_layout import counted
from cranfield.experiments import health_checks
from cranfield.experiments.decision import (
    EXIT_CODES,
    MetricFinding,
    cannot_decide,
    compare_variant,
    interval_of,
    metric_findings,
    overall_verdict,
    rule_at,
    undecided_reason,
    verdict_of,
)
from cranfield.experiments.event import instant
from cranfield.experiments.health_checks import BROKEN, EARLY, NOTE, HealthCheck
from cranfield.experiments.list_preferences import ListPreferences, effect_cells, preferences, read_lists
from cranfield.experiments.log import EventLog, EventSource
from cranfield.experiments.metrics.metric import MEAN_OF_RATIOS
from cranfield.experiments.unit_queries import FilterCount, PlannedMetric, UnitQueries, midnight, naive
from cranfield.stats.correction import correct
from cranfield.stats.sequential import FIXED, LookRule, information

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.random import Generator

    from cranfield.experiments.interleaving.token import Keys
    from cranfield.experiments.plan import Plan
    from cranfield.experiments.unit_queries import VariantStatistics
    from cranfield.stats.arms import ArmEffect
    from cranfield.stats.interval_limits import EffectInterval

MOST_DAYS = 30  # points in time of a history
MOST_ON_SCREEN = 6  # slices
MOST_NAMED = 3  # metrics in a sentence
MOST_SINCE = 14  # days since the first exposure that get an effect of their own


class AnalysisTime(NamedTuple):
    """The analysed time of an experiment, and whether the plan's method allows a verdict at its end."""

    now: datetime  # when the verdict is asked for
    start: datetime
    until: datetime  # later events are ignored
    ended: bool
    open: bool  # whether the method allows a verdict now
    shares: tuple[float, ...]  # information fraction at each look so far that had units
    cuts: tuple[datetime, ...] = ()  # times of the looks so far

    def rule(self, plan: Plan) -> LookRule:
        """The decision rule of the plan at this time."""
        return rule_at(plan, self.shares, self.ended, len(self.cuts))


class SliceFinding(NamedTuple):
    """The effect on a metric in one slice of the units, corrected over all slices by Benjamini and Hochberg."""

    field: str
    value: str
    metric: str
    variant: str
    units: tuple[int, int]
    difference: EffectInterval
    p: float
    corrected: float


class EffectPoint(NamedTuple):
    """An effect at one point in time: until a day, or on the n-th day since the first exposure."""

    metric: str
    variant: str
    at: str
    day: float  # since the start, or since the first exposure
    units: int
    effect: EffectInterval


class VerdictWithoutLate(NamedTuple):
    """The verdict without late events, which happened before the horizon but arrived after it, and their number."""

    events: int
    verdict: str
    reason: str


@dataclass(frozen=True)
class Analysis(Answer):
    """The result of `cranfield online analyze`."""

    page_has_charts = True

    experiment: str
    plan: str  # its hash
    verdict: str
    reason: str
    variants: dict[str, str]  # the verdict on each variant except the control
    method: str
    alpha: float
    start: str
    until: str
    ended: bool
    units: dict[str, int]  # per variant, before filters
    kept: dict[str, int]  # per variant, after filters
    checks: tuple[HealthCheck, ...]
    filters: tuple[FilterCount, ...] = ()
    winsorised: dict[str, tuple[float, int]] | None = None
    findings: tuple[MetricFinding, ...] = ()
    preferences: ListPreferences | None = None
    slices: tuple[SliceFinding, ...] = ()
    rare: int = 0  # slices with too few units to be reported
    history: tuple[EffectPoint, ...] = ()
    since: tuple[EffectPoint, ...] = ()
    events: int = 0  # of the units in the analysis, until the end of the analysed time
    after: int = 0  # of the same units, after the horizon; they are ignored
    without_late: VerdictWithoutLate | None = None

    @property
    def exit_code(self) -> int:
        """The exit code: 0 for ship; 1 for stop, same or not shown; 3 for broken or continue."""
        return EXIT_CODES[self.verdict]

    def sentence(self) -> str:
        """The verdict and its reason."""
        return f"{self.verdict}: {self.reason}"

    def content(self, how: Layout) -> Iterator[Part]:
        units = ", ".join(f"{name} {n:,}" for name, n in self.kept.items())
        span = f"{self.start[:10]} to {self.until[:16].replace('T', ' ')} UTC; units: {units}"
        facts = f"{self.experiment}, plan {self.plan[:12]}, {self.method}, alpha {self.alpha:g}, {span}"
        lines = [self.sentence(), facts]
        if late := self.without_late:
            events = f"{counted(late.events, 'event')} from before the horizon arrived after it"
            lines.append(f"{events}; without them: {late.verdict}: {late.reason}")
        yield Lines(lines)
        if self.findings:
            yield self._table(how)
        if self.preferences is not None:
            yield from self.preferences.parts(how)
        yield from self._slices(how)
        checks = [each for each in self.checks if how.states_defaults or each.state in (BROKEN, EARLY)]
        if checks:
            yield Table(["health", "", "result"], [[*each] for each in checks], names=2, tail=True)
        yield from self._left_out(how)

    def _left_out(self, how: Layout) -> Iterator[Part]:
        lines = [f"filter {name}: {counted(n, drop.removesuffix('s'))} left out" for name, drop, n in self.filters]
        if self.filters:
            before, after = sum(self.units.values()), sum(self.kept.values())
            lines.append(f"units: {before:,} before filters, {after:,} after")
        for name, (limit, number) in (self.winsorised or {}).items():
            lines.append(f"{name}: {counted(number, 'unit')} capped at {limit:.6g}")
        if self.after:
            lines.append(f"{counted(self.after, 'event')} after the horizon left out")
        if self.rare:
            lines.append(f"{self.rare:,} slices have too few units to be shown")
        if lines:
            yield Lines(lines, dim=True)

    def _table(self, how: Layout) -> Table:
        several = len(self.variants) > 1
        numbers = "control here difference interval relative interval p".split()
        head = ["metric", *(["variant"] if several else []), *numbers, "it is"]
        rows: list[list[Cell | str]] = []
        for each in self.findings:
            name = f"{each.metric}{'' if each.window is None else f', {each.window} days'}"
            names = [name, *([each.variant] if several else [])]
            levels = [how.cell(each.control), how.cell(each.value)]
            ends = f"[{_percent(each.ratio.low)}, {_percent(each.ratio.high)}]"
            relative = [_percent(each.ratio.value), ends if each.ratio.exists else how.undefined]
            p = Cell("-" if each.p != each.p else f"{each.p:.2g}", each.p)
            state = f"{each.state} ({each.role}, {100 * (1 - (2 if each.guards else 1) * self.alpha):g} %)"
            rows.append([*names, *levels, *effect_cells(each.difference, how), *relative, p, state])
        spare, count = (len(head) - 4, len(head) - 3), 2 if several else 1
        return Table(head, rows, names=count, tail=True, title="effects by metric", spare=spare)

    def _slices(self, how: Layout) -> Iterator[Table]:
        """The slices: on a screen those with a significant effect, smallest p first; in files all of them."""
        slices = list(self.slices)
        if not (how.states_defaults or how.every):
            differing = [each for each in self.slices if each.corrected < self.alpha]
            slices = sorted(differing, key=lambda each: each.corrected)[:MOST_ON_SCREEN]
        rows: list[list[Cell | str]] = []
        for each in slices:
            names = [f"{each.field} {each.value}", each.metric, each.variant, f"{sum(each.units):,}"]
            rows.append([*names, *effect_cells(each.difference, how), Cell(f"{each.corrected:.2g}", each.corrected)])
        if rows:
            head = ["slice", "metric", "variant", "units", "difference", "interval", "p, corrected"]
            caption = "slices, corrected by Benjamini and Hochberg; the verdict does not depend on them"
            yield Table(head, rows, names=3, caption=caption)

    def page_title(self) -> str:
        """The experiment and its verdict."""
        return f"{self.experiment}: {self.verdict}"

    def plain(self, how: Layout) -> dict[str, Any]:
        facts = {name: value for name, value in vars(self).items() if name != "preferences"}
        last = {"exit_code": self.exit_code, "preferences": self.preferences}
        return {key: plain(as_dicts(value), how.digits) for key, value in {**facts, **last}.items()}

    def records(self, how: Layout) -> Iterable[list[Any]]:
        head = "metric variant role control value difference low high relative relative_low relative_high p state"
        yield head.split()
        for each in self.findings:
            numbers = (each.control, each.value, *each.difference, *each.ratio, each.p)
            yield [each.metric, each.variant, each.role, *numbers, each.state]

    def notes(self, shell: bool = False) -> list[str]:
        return [f"{each.name}: {each.words}" for each in self.checks if each.state == NOTE]


def _percent(value: float) -> str:
    return "-" if value != value else f"{100 * value:+.2f} %"


# analysis


def analyze(
    log: EventLog,
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
    """The verdict on an experiment, or with `at` the verdict at an earlier time.

    `now` is the current time; units with events after it are left out. `history` adds the interval over time and the
    effect by day since the first exposure. `memory` is DuckDB's limit (3GB). `expected` is the hash that the plan had
    when the experiment began.
    """
    refuse_below(0, seed=seed)
    if not plan.primary and plan.interleave is None:
        raise DataError(f"{plan.path or plan.name}: expected a [[primary]] metric, which decides; found none")

    def analysed(source: EventSource, history: bool = False, expected: str | None = None) -> Analysis:
        with UnitQueries(source, plan, memory) as queries:
            return _analyze(queries, now, at or now, np.random.default_rng(seed), keys, history, expected)

    analysis = analysed(log, history, expected)
    if not (analysis.ended and isinstance(log, EventLog)):
        return analysis
    on_time = log.as_of(datetime.fromisoformat(analysis.until))
    if on_time is not None:
        before = analysed(on_time)
        late = analysis.events - before.events
        if late and before.events:  # nothing is on time in a log that was ingested afterwards
            return replace(analysis, without_late=VerdictWithoutLate(late, before.verdict, before.reason))
    return analysis


def _analyze(
    queries: UnitQueries,
    now: datetime,
    at: datetime,
    rng: Generator,
    keys: Keys | None,
    history: bool,
    expected: str | None,
) -> Analysis:
    """The analysis at the time `at`; units with events after `now`, the current time, are left out."""
    plan = queries.plan
    first = queries.first_exposure()
    if first is None:
        check = HealthCheck("exposures", BROKEN, f"no exposure of {plan.name!r} is in the log")
        nobody = dict.fromkeys(plan.variants, 0)
        return _base(plan, [check], AnalysisTime(at, now, now, False, False, ()), nobody, nobody)
    moment = _moment(queries, first, at)
    queries.enter(moment.start, moment.until)
    events = queries.events()
    checks = [*_hash_check(plan, expected), *_early_units_check(queries, moment)]
    checks += health_checks.leave_out(queries, now)
    once = plan.method == "fixed" and moment.ended
    checks.append(health_checks.sample_ratio(queries, once, moment.ended))
    checks += [health_checks.clicks(queries), health_checks.impressions(queries, moment.ended)]
    units = queries.counts("all")
    base = _base(plan, checks, moment, units, queries.counts(), events=events)
    if base.verdict == "broken":
        return base
    if filters := queries.filter():
        checks.append(health_checks.sample_ratio(queries, once, moment.ended, "entered"))
        base = _base(plan, checks, moment, units, queries.counts(), events=events, filters=tuple(filters))
        if base.verdict == "broken":
            return base
    base = replace(base, after=queries.events_after() if moment.ended else 0)
    if any(each.state == EARLY for each in checks):
        return _too_early(queries, base, moment)
    if plan.interleave is not None:
        return _analyze_interleaved(queries, base, moment, keys, rng)
    if not moment.open:
        return replace(base, reason=_so_far(queries, moment))
    return _decide(queries, base, moment, rng, history)


def _too_early(queries: UnitQueries, base: Analysis, moment: AnalysisTime, lacking: str = "") -> Analysis:
    """The verdict `continue`, with the checks that need more data; `lacking` says why this look cannot decide."""
    early = [each.words for each in base.checks if each.state == EARLY]
    words = filter(None, [lacking, *early, _so_far(queries, moment)])
    return replace(base, verdict="continue", reason="; ".join(words))


def _decide(queries: UnitQueries, base: Analysis, moment: AnalysisTime, rng: Generator, history: bool) -> Analysis:
    """The analysis with the verdict of the metrics, their effects in slices and, with `history`, over time."""
    plan, rule = queries.plan, moment.rule(queries.plan)
    queries.tabulate()
    base = replace(base, winsorised=queries.winsorise())
    numbers = [(each, queries.numbers_to_decide(each)) for each in queries.metrics]
    checks, findings, variants, verdict = judge(plan, numbers, rule, moment.ended, rng)
    base = replace(base, checks=(*base.checks, *checks), verdict=verdict, variants=variants, findings=tuple(findings))
    if verdict == "broken":
        return replace(base, reason=_broken_words(checks))
    if any(each.state == EARLY for each in checks):
        tests = len(plan.primary) * (len(plan.variants) - 1)
        return _too_early(queries, base, moment, cannot_decide(rule, plan.alpha / (2 * tests)))
    slices, rare = _slices(queries, rule, rng)
    decided = replace(base, slices=slices, rare=rare)
    differing = ", ".join(dict.fromkeys(each.metric for each in findings if each.state in ("good", "bad")))
    if plan.aa and differing:
        reason = f"all variants are the same, yet {differing} differs; find the mistake before you experiment"
        decided = replace(decided, verdict="broken", reason=reason)
    else:
        decided = replace(decided, reason=_reason(queries, decided, moment, undecided_reason(findings, plan, rule)))
    if not history:
        return decided
    return replace(decided, history=_history(queries, moment, rng), since=_effect_by_day(queries, moment, rng))


class MetricDecision(NamedTuple):
    """What the metrics decide: their health checks and findings, the verdict on each variant and on all together."""

    checks: list[HealthCheck]
    findings: list[MetricFinding]
    variants: dict[str, str]
    verdict: str


def judge(
    plan: Plan, numbers: Iterable[tuple[PlannedMetric, VariantStatistics]], rule: LookRule, ended: bool, rng: Generator
) -> MetricDecision:
    """The verdict from the statistics of all metrics; if one is not trustworthy, `broken` at the end and `continue` before."""
    statistics = list(numbers)
    others = [name for name in plan.variants if name != plan.control]
    covered = [check for metric, own in statistics for check in health_checks.coverage(metric, own)]
    try:
        findings = _findings(plan, statistics, rule, rng)
    except _NotComparable as error:
        verdict = "broken" if ended else "continue"
        checks = [health_checks.broken_at_end("metrics", str(error), ended), *covered]
        return MetricDecision(checks, [], dict.fromkeys(others, verdict), verdict)
    heavy = {metric.name: health_checks.leverage(metric, own, ended) for metric, own in statistics}
    for i, each in enumerate(findings):
        if any(check.state != health_checks.OK for check in heavy[each.metric]):  # one unit can decide
            findings[i] = replace(each, state="unclear", same=False)
    checks = [*(check for own in heavy.values() for check in own), *covered]
    states = {each.state for each in checks}
    if {BROKEN, EARLY} & states:
        verdict = "broken" if BROKEN in states else "continue"
        return MetricDecision(checks, findings, dict.fromkeys(others, verdict), verdict)
    verdicts = {name: verdict_of([each for each in findings if each.variant == name], ended) for name in others}
    return MetricDecision(checks, findings, verdicts, overall_verdict(list(verdicts.values()), ended))


class _NotComparable(Exception):
    """A metric cannot be compared between variants; the message says why."""


def _findings(
    plan: Plan, statistics: Iterable[tuple[PlannedMetric, VariantStatistics]], rule: LookRule, rng: Generator
) -> list[MetricFinding]:
    comparisons, covered = [], []
    for metric, numbers in statistics:
        for variant in list(plan.variants)[1:]:
            effect = compare_variant(metric, numbers, plan.control, variant, rng)
            lacking = effect.ratio is None and metric.choice.relative
            if effect.doubt or lacking:
                why = effect.doubt or "a relative effect needs levels above 0"
                raise _NotComparable(f"{metric.name}, {variant} against {plan.control}: {why}")
            comparisons.append((metric, variant, effect, (numbers.units[plan.control], numbers.units[variant])))
            counts = numbers.covered
            covered.append(None if counts is None else (counts[plan.control], counts[variant]))
    findings = metric_findings(plan, comparisons, rule)
    return [replace(each, covered=counts) for each, counts in zip(findings, covered, strict=True)]


def _moment(queries: UnitQueries, first: datetime, now: datetime) -> AnalysisTime:
    """The analysed time of an experiment at `now`, from its horizon and its looks."""
    plan = queries.plan
    start = datetime.fromisoformat(instant(plan.start)) if plan.start else midnight(first)
    if plan.days is None and plan.units is None:
        raise DataError(f"{plan.path or plan.name}: expected a [horizon] of days or units, which ends the experiment")

    def when(share: float) -> datetime | None:
        """The time at which a share of the horizon is reached; None if that time is not known yet."""
        if plan.days is not None:
            return start + timedelta(days=share * plan.days)
        entry = queries.entry_of(math.ceil(share * (plan.units or 1)), start)
        return None if entry is None else entry + timedelta(microseconds=1)

    end = when(1.0)
    ended = end is not None and end <= now
    until = end if ended and end is not None else now
    if plan.method == "looks":
        cuts = tuple(time for share in plan.looks if (time := when(share)) is not None and time <= now)
        queries.let_in(start, cuts[-1] if cuts else until)
        entered = [sum(counts) for counts in queries.entered_by(cuts)]
        passed = [(cut - start).total_seconds() for cut in cuts]
        empty = entered.count(0)  # looks before the first unit
        shares = information(entered[empty:], passed[empty:])
        return AnalysisTime(now, start, cuts[-1] if cuts else until, ended, bool(shares), shares, cuts)
    if plan.method == "sequence":
        tuned = plan.tuned or plan.units
        if tuned is None:
            raise DataError(f'{plan.path or plan.name}: method = "sequence" needs tuned, or units in its [horizon]')
        queries.let_in(start, until)
        share = sum(queries.counts("all").values()) / tuned
        return AnalysisTime(now, start, until, ended, share > 0, (share,))
    return AnalysisTime(now, start, until, ended, ended, (1.0,))


def _hash_check(plan: Plan, expected: str | None) -> list[HealthCheck]:
    if expected is None:
        return []
    if len(expected) < 8:
        raise ConventionError(f"expected 8 digits or more of a plan's hash, found {expected!r}")
    if plan.hash.startswith(expected.lower()):
        return [HealthCheck("hash", health_checks.OK, "the plan is the one that was expected")]
    hashes = f"its hash is {plan.hash[:12]}, expected {expected[:12]}"
    words = f"the plan changed during the experiment: {hashes}; begin a new experiment"
    return [HealthCheck("hash", BROKEN, words)]


def _early_units_check(queries: UnitQueries, moment: AnalysisTime) -> list[HealthCheck]:
    """A note with the number of units that are left out because they were exposed before the plan's start."""
    early = queries.exposed_before(moment.start)
    words = f"{early:,} units were exposed before the start and are left out"
    return [HealthCheck("start", NOTE, words)] if early else []


def _base(
    plan: Plan, checks: list[HealthCheck], moment: AnalysisTime, units: Any, remaining: Any, **more: Any
) -> Analysis:
    """The analysis before any metric is read: `broken` if a health check is broken, else `continue`."""
    broken = _broken_words(checks)
    times = (moment.start.isoformat(), moment.until.isoformat(), moment.ended)
    head = (plan.name, plan.hash, "broken" if broken else "continue", broken)
    settings = (dict.fromkeys(list(plan.variants)[1:], ""), plan.method, plan.alpha)
    return Analysis(*head, *settings, *times, units, remaining, tuple(checks), **more)


def _broken_words(checks: Iterable[HealthCheck]) -> str:
    return "; ".join(each.words for each in checks if each.state == BROKEN)


# the reason for a verdict


def _reason(queries: UnitQueries, analysis: Analysis, moment: AnalysisTime, lacking: str) -> str:
    """The reason for the verdict: the evidence on each variant, first on the variants with the overall verdict.

    `lacking` says why this look has no interval, and comes first if nothing is decided.
    """
    is_open = analysis.verdict in ("not shown", "continue")
    parts = [lacking] if lacking and is_open else []
    parts += [_so_far(queries, moment)] if analysis.verdict == "continue" else []
    groups: dict[tuple[bool, str, str], list[str]] = {}
    for name, verdict in analysis.variants.items():
        own = [each for each in analysis.findings if each.variant == name]
        key = (verdict != analysis.verdict, verdict, _variant_reason(own, verdict))
        groups.setdefault(key, []).append(name)
    for (other, verdict, words), names in sorted(groups.items(), key=lambda each: each[0][0]):
        if is_open and not other and len(analysis.variants) == 1:
            parts += [words] if verdict == "not shown" and not lacking else []
            continue
        both = f" and {queries.plan.control}" if verdict == "same" else ""
        parts.append(f"{' and '.join(names)}{both}{f' ({verdict})' if other else ''}: {words}")
    if analysis.verdict == "not shown" and not lacking:
        parts.append(_detectable_effect(analysis))
    return "; ".join(parts)


def _variant_reason(own: list[MetricFinding], verdict: str) -> str:
    """The evidence for the verdict on one variant."""
    good = [each for each in own if each.state == "good"]
    rails = [each for each in own if each.guards]
    if verdict == "ship":
        held = f"; within margins: {_first_few(dict.fromkeys(each.metric for each in rails))}" if rails else ""
        return f"{_first_few(f'{each.metric} is better, {_effect_words(each)}' for each in good)}{held}"
    if verdict == "stop":
        how = {"bad": "worse", "beyond": "beyond its margin"}
        worse = sorted((each for each in own if each.state in how), key=lambda each: each.state)
        return _first_few(f"{each.metric} is {how[each.state]}, {_effect_words(each)}" for each in worse)
    if verdict == "same":
        primaries = (each for each in own if not each.guards)
        sizes = ((each, _effect_size(each, each.margin or 0)) for each in primaries)
        return ", ".join(f"{each.metric} {_effect_words(each)} within ±{size}" for each, size in sizes)
    when = " at the horizon" if verdict == "not shown" else " so far"
    if good:
        unclear = ", ".join(each.metric for each in rails if each.state == "unclear")
        return f"{good[0].metric} is better, but {unclear} is not shown within its margin{when}"
    return f"no primary differs{when}"


def _detectable_effect(analysis: Analysis) -> str:
    """The effect that an inconclusive experiment could have detected, and how many units a new one needs."""
    own = [each for each in analysis.findings if analysis.variants[each.variant] == "not shown"]
    good = [each for each in own if each.state == "good"]
    unclear = [each for each in own if each.guards and each.state == "unclear"]
    first = unclear[0] if good and unclear else next(each for each in own if not each.guards)
    could = f"it could have detected {_effect_size(first, first.detectable)} of {first.metric} (power 0.8)"
    target = f"its margin of {_effect_size(first, first.margin)}" if first.margin else "half of that"
    plan = f"; a new plan with about {first.needed:,} units would detect {target}" if first.needed else ""
    return f"{could}{plan}"


def _so_far(queries: UnitQueries, moment: AnalysisTime) -> str:
    """The progress of an experiment: days and units so far, and an estimate of what remains."""
    plan = queries.plan
    units = queries.exposed_before(moment.now)
    passed = max((moment.now - moment.start).total_seconds() / 86_400, 1e-9)
    if plan.days is not None:
        left = max(plan.days - passed, 0.0)
        more = units * left / passed
        progress = f"{passed:.1f} of {plan.days} days and {units:,} units so far"
    else:
        more = max((plan.units or 0) - units, 0)
        left = more * passed / units if units else math.inf
        progress = f"{units:,} of {plan.units:,} units in {passed:.1f} days so far"
    about = f"about {more:,.0f} units and {left:,.1f} days more"
    before = "the fixed method gives no verdict before its horizon; " if plan.method == "fixed" else ""
    look = f"{len(moment.cuts)} of {len(plan.looks)} looks; " if plan.method == "looks" else ""
    return f"{before}{look}{progress}, {about}"


def _first_few(words: Iterable[str]) -> str:
    """The first few of several texts, and how many more there are."""
    listed = list(words)
    more = f", and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
    return ", ".join(listed[:MOST_NAMED]) + more


def _effect_words(each: MetricFinding) -> str:
    value, low, high = each.deciding
    if each.relative:
        return f"{_percent(value)} [{_percent(low)}, {_percent(high)}]"
    return f"{value:+.4g} [{low:+.4g}, {high:+.4g}]"


def _effect_size(each: MetricFinding, size: float | None) -> str:
    return "-" if size is None else f"{100 * size:.3g} %" if each.relative else f"{size:.4g}"


# slices, history, effect by day


def _slices(queries: UnitQueries, rule: LookRule, rng: Generator) -> tuple[tuple[SliceFinding, ...], int]:
    """The effects on the primaries in each slice; slices with too few units are only counted.

    A slice holds the units with one value of a field, or the searches with one query.
    """
    plan = queries.plan
    findings: list[SliceFinding] = []
    hidden = 0
    for i, name in enumerate(plan.slices):
        values, rare = ([], 0) if name == "query" else queries.slices_of(i, name, plan.rare)
        for metric in (each for each in queries.metrics if not each.guards):
            own = metric
            if name == "query":
                below = metric.definition.denominator
                if below is None or not (metric.definition.numerator.of_searches and below.of_searches):
                    continue
                own = _without_covariate(metric)
                queries.tabulate([own], by="query")
                values, rare = queries.slices_of(i, name, plan.rare)
            for value, where in values:
                for variant, units, effect, interval in _effects(queries, own, where, rule, rng):
                    p = float(effect.p(rule))
                    findings.append(SliceFinding(name, value, own.name, variant, units, interval, p, p))
        hidden += rare
        if name == "query":
            queries.tabulate()
            queries.winsorise()
    corrected = correct([each.p for each in findings], "benjamini-hochberg").tolist()
    return tuple(each._replace(corrected=p) for each, p in zip(findings, corrected, strict=True)), hidden


def _without_covariate(metric: PlannedMetric) -> PlannedMetric:
    """The metric for a single day or query: with an estimate that uses neither a covariate nor resampling."""
    estimate = MEAN_OF_RATIOS if metric.choice.estimate == MEAN_OF_RATIOS else "plain"
    return replace(metric, choice=replace(metric.choice, estimate=estimate))


def _effects(
    queries: UnitQueries, metric: PlannedMetric, where: str, rule: LookRule, rng: Generator
) -> Iterator[tuple[str, tuple[int, int], ArmEffect, EffectInterval]]:
    """For each variant, the number of units in both arms, the effect on a metric and its interval, if there is an effect."""
    plan = queries.plan
    numbers = queries.numbers(metric, where)
    for variant in list(plan.variants)[1:]:
        effect = compare_variant(metric, numbers, plan.control, variant, rng).difference
        if effect is not None:
            interval = interval_of(effect, plan.alpha if metric.guards else plan.alpha / 2, rule)
            yield variant, (numbers.units[plan.control], numbers.units[variant]), effect, interval


def _history(queries: UnitQueries, moment: AnalysisTime, rng: Generator) -> tuple[EffectPoint, ...]:
    """The interval at the end of each day, or at each look, by the decision rule of that time."""
    plan = queries.plan
    if plan.method == "looks":
        cuts = list(moment.cuts)
    else:
        number = max(1, math.ceil((moment.until - moment.start).total_seconds() / 86_400))
        step = math.ceil(number / MOST_DAYS)
        cuts = [min(moment.start + timedelta(days=n), moment.until) for n in range(step, number + step, step)]
    entered = [sum(counts) for counts in queries.entered_by(cuts)]
    points: list[EffectPoint] = []
    had = [(cut, n) for cut, n in zip(cuts, entered, strict=True) if n]
    for i, (cut, n) in enumerate(had):
        shares = moment.shares[: i + 1] if plan.method == "looks" else (moment.shares[-1] * n / max(entered[-1], 1),)
        rule = rule_at(plan, shares, moment.ended and cut == moment.until, len(cuts) - len(had) + i + 1)
        queries.tabulate(until=cut)
        queries.winsorise()
        day = (cut - moment.start).total_seconds() / 86_400
        points += _points(queries, queries.metrics, cut.isoformat()[:16], day, rule, rng)
    return tuple(points)


def _effect_by_day(queries: UnitQueries, moment: AnalysisTime, rng: Generator) -> tuple[EffectPoint, ...]:
    """The effect on each day since a unit's first exposure, over units that were exposed so long ago; for exploration only."""
    lasted = int((moment.until - moment.start).total_seconds() / 86_400)
    points: list[EffectPoint] = []
    for n in range(min(lasted, MOST_SINCE)):
        metrics = [
            replace(_without_covariate(each), window=(float(n), n + 1.0))
            for each in queries.metrics
            if (each.choice.window is None or n < each.choice.window) and not each.needs_values
        ]
        if metrics:
            queries.tabulate(metrics)
            had = f"first <= TIMESTAMP '{naive(moment.until - timedelta(days=n + 1))}'"
            points += _points(queries, metrics, f"day {n + 1}", n + 1.0, FIXED, rng, had)
    return tuple(points)


def _points(
    queries: UnitQueries,
    metrics: Iterable[PlannedMetric],
    at: str,
    day: float,
    rule: LookRule,
    rng: Generator,
    where: str = "true",
) -> Iterator[EffectPoint]:
    """The effect of each variant on each metric at one point in time; effects without an interval are left out."""
    for each in metrics:
        for variant, units, _, interval in _effects(queries, each, where, rule, rng):
            if interval.exists:
                yield EffectPoint(each.name, variant, at, day, sum(units), interval)


def _analyze_interleaved(
    queries: UnitQueries, base: Analysis, moment: AnalysisTime, keys: Keys | None, rng: Generator
) -> Analysis:
    """The verdict on an interleaving experiment."""
    plan = queries.plan
    reading = read_lists(queries, keys)
    so_far = ListPreferences((), reading.tokens, reading.clicks)
    base = replace(base, checks=(*base.checks, *reading.checks), preferences=so_far)
    if broken := _broken_words(reading.checks):
        return replace(base, verdict="broken", reason=broken)
    if not moment.open:
        return replace(base, reason=_so_far(queries, moment))
    rule = moment.rule(plan)
    listed = preferences(reading, plan, rule, rng)
    if listed.broken:
        check = health_checks.broken_at_end("credit", listed.broken, moment.ended)
        base = replace(base, checks=(*base.checks, check), verdict="broken", reason=check.words)
        return base if moment.ended else _too_early(queries, base, moment)
    verdicts = {each.system: each.verdict(moment.ended) for each in listed.pairs}
    verdict = overall_verdict(list(verdicts.values()), moment.ended)
    lacking = ""
    if verdict in ("not shown", "continue"):
        lacking = cannot_decide(rule, plan.alpha / (2 * max(len(listed.pairs), 1))) or listed.undecided()
    going = _so_far(queries, moment) if verdict == "continue" else ""
    evidence = "" if lacking and verdict == "not shown" else listed.reason(verdict, moment.ended)
    reason = "; ".join(filter(None, (lacking, going, evidence, listed.blind())))
    return replace(base, verdict=verdict, reason=reason, variants=verdicts, preferences=listed)
