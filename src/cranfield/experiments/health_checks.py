"""Health checks of an experiment, made before any metric: sample ratio mismatch (SRM), bad units, missing impressions.

Each check gives one sentence. A broken check means that no number of the experiment is trustworthy.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.text_layout import counted
from cranfield.experiments.assignment import PLAN
from cranfield.experiments.event import AHEAD, instant
from cranfield.experiments.metrics.metric import MEAN_OF_RATIOS
from cranfield.experiments.metrics.plan_metrics import literal
from cranfield.experiments.unit_queries import PlannedMetric, UnitQueries, VariantStatistics, midnight, naive
from cranfield.stats.sample_ratio import anytime_p, chi_square_p, exact_p

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime


RATIO_LEVEL = 0.001  # a smaller p-value means a sample ratio mismatch
MOST_DAYS = 1_000  # days whose counts enter the sequential test
LEFT_OUT = 0.01  # the share of units that may be left out: see `tolerated`
HEAVY = 0.1  # one unit with more of a denominator can decide the verdict
ROBUST_ESTIMATES = ("bootstrap", MEAN_OF_RATIOS)  # their intervals hold, or nearly so, with such a unit
NOBODY = "SELECT number, unit AS example FROM cranfield_entered WHERE false"
OK, NOTE, EARLY, BROKEN = "ok", "note", "early", "broken"


class HealthCheck(NamedTuple):
    """The name of a check, its state and a sentence."""

    name: str
    state: str  # ok, note, early (no verdict yet), broken
    words: str


def broken_at_end(name: str, words: str, ended: bool) -> HealthCheck:
    """A check that is `broken` at the end of the experiment, and `early` before the end, as more units may come."""
    return HealthCheck(name, BROKEN, words) if ended else HealthCheck(name, EARLY, f"too early: {words}")


# units that are left out


class UnitFault(NamedTuple):
    """A fault that units may have, and a query for the units that have it, by `number`, each with an example."""

    name: str
    words: str  # what such units did
    query: str
    cause: str = ""  # the likely cause if there are many
    healthy: str = ""  # the sentence if there are none


def tolerated(units: int) -> int:
    """How many units an experiment may leave out before it counts as broken.

    Units that are left out may differ from the rest, and a variant may have caused them. Suppose that they differ by one
    standard deviation. An imbalance that the test between variants misses (p < 0.001) then shifts a difference by at most
    3.3 √share standard errors: a third of one at 1 %. A few units, all in one of two equal variants, shift it by
    number / √units: a third of a standard error as well. A test at 5 % then errs in 6.3 %.

    >>> tolerated(5), tolerated(200), tolerated(20_000)
    (1, 4, 200)
    """
    return max(1, int(LEFT_OUT * units), int(math.sqrt(units) / 3))


def leave_out(queries: UnitQueries, now: datetime) -> list[HealthCheck]:
    """Leave out faulty units, count them, and compare the variants; broken if they are too many or unevenly spread."""
    before = queries.counts()
    (units,) = queries.one("SELECT count(*) FROM cranfield_entered")
    cases = [(fault, *_bad_units(queries, fault)) for fault in _faults(queries, now)]
    number = sum(sum(by_variant.values()) for _, by_variant, _ in cases)
    return [_fault_check(each, before, number > tolerated(units), units) for each in cases]


def _bad_units(queries: UnitQueries, fault: UnitFault) -> tuple[dict[str, int], str]:
    """The number of units per variant with a fault, and an example; units left out before are not counted again."""
    if fault.query == NOBODY:
        return {}, ""
    bad = f"SELECT number, min(example) AS example FROM ({fault.query}) GROUP BY number"
    units = f"cranfield_entered JOIN ({bad}) USING (number)"
    rows = queries.rows(f"SELECT variant, count(*), min(example) FROM {units} GROUP BY variant")
    if rows:
        queries.leave_out(f"SELECT number FROM ({fault.query})")
    return {variant: n for variant, n, _ in rows}, min((str(example) for *_, example in rows), default="")


def _fault_check(case: Any, before: dict[str, int], too_many: bool, units: int) -> HealthCheck:
    fault, by_variant, example = case
    number = sum(by_variant.values())
    if not number:
        return HealthCheck(fault.name, OK, fault.healthy)
    lost = [by_variant.get(name, 0) for name in before]
    compared = ", ".join(f"{name} {by_variant.get(name, 0):,} of {n:,}" for name, n in before.items())
    words = f"{counted(number, 'unit')} {fault.words}, such as {example}"
    if too_many:
        most = f"at most {tolerated(units):,} of {units:,} units can be left out"
        return HealthCheck(fault.name, BROKEN, f"{fault.cause}{words}; {most}")
    shares = [n / max(sum(before.values()), 1) for n in before.values()]
    if sum(lost) and min(shares) > 0 and len(lost) > 1 and exact_p(lost, shares) < RATIO_LEVEL:
        return HealthCheck(fault.name, BROKEN, f"{words} ({compared}): more in one variant than chance allows")
    return HealthCheck(fault.name, NOTE, f"{words}; left out ({compared})")


def _faults(queries: UnitQueries, now: datetime) -> Iterator[UnitFault]:
    """The faults to look for, the gravest first; a unit is left out for the first fault that it has."""
    plan = queries.plan
    hash = f"attributes[{literal(PLAN)}]"
    exposures = f"FROM cranfield_theirs WHERE kind = 'exposure' AND experiment = {literal(plan.name)}"
    variants = ", ".join(map(literal, plan.variants))
    (marked,) = queries.one(f"SELECT count(*) {exposures} AND {hash} IS NOT NULL")
    yield UnitFault(
        "plan",
        "entered by an exposure of another plan",
        f"SELECT number, concat({hash}, ', this one is {plan.hash[:12]}') AS example {exposures} "
        f"AND {hash} IS NOT NULL AND ({hash} = '' OR NOT starts_with({literal(plan.hash)}, {hash}))"
        if marked
        else NOBODY,
        "the plan changed during the experiment; begin a new one: ",
        f"{marked:,} exposures carry its hash" if marked else "no exposure carries the hash of a plan",
    )
    yield UnitFault(
        "variants",
        f"entered with a variant other than {', '.join(plan.variants)}",
        f"SELECT number, concat(unit, ' to ', variant) AS example FROM cranfield_entered WHERE variant NOT IN ({variants})",
        "was the plan changed? ",
        f"all exposures are to {', '.join(plan.variants)}",
    )
    yield UnitFault(
        "one variant a unit",
        "saw two variants or more",
        f"SELECT number, min(unit) AS example {exposures} GROUP BY number HAVING count(DISTINCT variant) > 1",
        healthy="no unit has seen two variants",
    )
    yield UnitFault(
        "clock",
        "had events more than an hour in the future",
        "SELECT number, concat(event_id, ' of ', e.time, ' UTC') AS example FROM cranfield_events e "
        f"JOIN cranfield_entered USING (unit) WHERE e.time > TIMESTAMP {literal(str(naive(now + AHEAD)))}",
        f"is the clock of this machine right ({instant(now)})? ",
        "no event is in the future",
    )
    yield _repeats(queries)
    yield UnitFault(
        "clicks on a search",
        "had clicks that name no search",
        _events_where(queries, "kind = 'click' AND search IS NULL"),
        healthy="every click names its search",
    )
    conditions = dict.fromkeys(condition for each in queries.metrics for condition in each.definition.unreadable)
    if conditions:
        yield UnitFault(
            "numbers",
            "had numbers that cannot be read",
            _events_where(queries, " OR ".join(conditions)),
            healthy="every number that a metric adds up can be read",
        )


def _events_where(queries: UnitQueries, condition: str) -> str:
    """A query for the units with events that meet a condition, and an event's id; cheap if there are none."""
    (number,) = queries.one(f"SELECT count(*) FROM cranfield_seen WHERE {condition}")
    return f"SELECT number, event_id AS example FROM cranfield_theirs WHERE {condition}" if number else NOBODY


def _repeats(queries: UnitQueries) -> UnitFault:
    """The fault that two events have the same id. They are of different days, as the log keeps one event per id and day."""
    total, distinct = queries.one("SELECT count(*), count(DISTINCT id) FROM cranfield_seen")
    if total != distinct:  # by the hashes of the ids, which can collide
        (distinct,) = queries.one("SELECT count(DISTINCT event_id) FROM cranfield_theirs")
    query = NOBODY
    if total != distinct:
        again = "SELECT event_id FROM cranfield_theirs GROUP BY 1 HAVING count(*) > 1"
        example = "concat(event_id, ' of ', time, ' UTC') AS example"
        query = f"SELECT number, {example} FROM cranfield_theirs WHERE event_id IN ({again})"
    healthy = f"{total:,} events, each id once"
    return UnitFault("repeats", "had events with the id of another event", query, healthy=healthy)


# events, leverage, coverage, sample ratio


def clicks(queries: UnitQueries) -> HealthCheck:
    """A note with the number of clicks on searches without an impression, and of clicks without a position."""
    (placeless,) = queries.one("SELECT count(*) FROM cranfield_seen WHERE kind = 'click' AND position IS NULL")
    (unshown,) = queries.one(
        "SELECT count(*) FROM (SELECT search FROM cranfield_seen WHERE kind = 'click') "
        "ANTI JOIN (SELECT search FROM cranfield_seen WHERE kind = 'impression') USING (search)"
    )
    notes = [f"{unshown:,} clicks are on a search without an impression, and left out"] if unshown else []
    notes += [f"{placeless:,} clicks have no position: metrics of ranks ignore them"] if placeless else []
    return HealthCheck("clicks", NOTE if notes else OK, "; ".join(notes) or "every click is on a search that was shown")


def leverage(metric: PlannedMetric, numbers: VariantStatistics, ended: bool) -> list[HealthCheck]:
    """Check that no single unit decides a ratio: `broken` at the end, and `early` before the end, as more units may come.

    The interval of a ratio of sums is valid if many units make up the denominator. A unit with a tenth of the
    denominator pulls the ratio towards its own ratio, and the variance is then too small, because it counts this unit
    once. The mean of ratios gives every unit the same weight, and the bootstrap resamples without it.
    """
    if not numbers.heaviest or metric.choice.estimate in ROBUST_ESTIMATES:
        return []
    variant, (unit, share) = max(numbers.heaviest.items(), key=lambda each: each[1].share)
    words = f"{metric.name}: unit {unit!r} alone has {100 * share:.3g} % of the denominator in variant {variant!r}"
    if share <= HEAVY:
        return [HealthCheck("leverage", OK, words)]
    decides = f"above {100 * HEAVY:g} %, one unit can decide the verdict"
    advice = f'plan [winsorise] for this metric, or estimate = "{MEAN_OF_RATIOS}" or "bootstrap"'
    remedy = f": {advice}" if ended else f"; if more units do not settle this, {advice}"
    return [broken_at_end("leverage", f"{words}; {decides}{remedy}", ended)]


def coverage(metric: PlannedMetric, numbers: VariantStatistics) -> list[HealthCheck]:
    """How many units a quantile covers (those with a value), with a caution if variants differ in that share."""
    if numbers.covered is None:
        return []
    units, covered = (np.array([own[name] for name in numbers.units]) for own in (numbers.units, numbers.covered))
    by_variant = ", ".join(f"{name} {numbers.covered[name]:,} of {n:,}" for name, n in numbers.units.items())
    words = f"{metric.name} is of the {covered.sum():,} of {units.sum():,} units that have a value ({by_variant})"
    if 0 < covered.sum() < units.sum() and _uneven(units - covered, units.astype(np.float64)):
        words += "; the share differs between variants, so the quantile does not compare like with like"
    return [HealthCheck("units covered", NOTE, words)]


def impressions(queries: UnitQueries, ended: bool) -> HealthCheck:
    """Check for units without an impression after their exposure: broken if their share differs between arms or is 100 %."""
    names = list(queries.plan.variants)
    rows = queries.rows(
        "SELECT variant, count(*), count(s.number) FROM cranfield_entered n LEFT JOIN (SELECT DISTINCT number "
        "FROM cranfield_seen WHERE kind = 'impression' AND since >= 0) s ON s.number = n.number GROUP BY variant"
    )
    counts = {variant: own for variant, *own in rows}
    units, with_page = np.array([counts.get(name, (0, 0)) for name in names], np.float64).T
    lost = units - with_page
    if not lost.any():
        return HealthCheck("impressions", OK, "every exposed unit saw a result page")
    if not with_page.sum():
        words = "no exposed unit has an impression"
        if any(each.definition.numerator.of_searches for each in queries.metrics):
            return broken_at_end("impressions", words, ended)
        return HealthCheck("impressions", NOTE, words)
    by_arm = ", ".join(f"{name} {lost[i]:,.0f} of {units[i]:,.0f}" for i, name in enumerate(names))
    words = f"{lost.sum():,.0f} units were exposed without a later impression ({by_arm})"
    present = units > 0
    if present.sum() > 1 and _uneven(lost[present], units[present]):
        return HealthCheck("impressions", BROKEN, f"{words}: more in one arm than chance allows")
    return HealthCheck("impressions", NOTE, words)


def _uneven(lost: np.ndarray, units: np.ndarray) -> bool:
    """Whether the share of lost units differs between arms, by Pearson's chi-square test at `RATIO_LEVEL`."""
    from scipy.special import chdtrc  # type: ignore[import-untyped, unused-ignore]

    share = lost.sum() / units.sum()
    if share >= 1:
        return False
    statistic = np.square(lost - units * share) / (units * share * (1 - share))
    return bool(chdtrc(len(units) - 1, float(statistic.sum())) < RATIO_LEVEL)


def sample_ratio(queries: UnitQueries, once: bool, ended: bool, table: str = "all") -> HealthCheck:
    """The check for sample ratio mismatch (SRM): Pearson's chi-square test if looked at `once`, else an anytime test."""
    plan = queries.plan
    counts = queries.counts(table)
    name = "sample ratio" if table == "all" else "sample ratio after filters"
    shares_words = ", ".join(f"{variant} {n:,}" for variant, n in counts.items())
    empty = [variant for variant, n in counts.items() if not n]
    if not sum(counts.values()):
        words = f"no unit has entered {plan.name!r}: no exposure of it is in the log, or all were left out"
        return HealthCheck(name, BROKEN, words)
    if empty:
        words = f"variant {empty[0]!r} has no units ({shares_words})"
        chance = exact_p(list(counts.values()), list(plan.variants.values()))
        return broken_at_end(name, words, ended or chance < RATIO_LEVEL)
    if len(plan.variants) < 2:
        return HealthCheck(name, OK, shares_words)
    shares = list(plan.variants.values())
    p = float(chi_square_p(list(counts.values()), shares)) if once else _at_any_time(queries, counts, shares, table)
    how = "looked at once" if once else "at any time"
    shares_words = f"{shares_words}; planned {', '.join(f'{share:.4g}' for share in shares)}; p {p:.2g}, {how}"
    mismatch = HealthCheck(name, BROKEN, f"sample ratio mismatch: {shares_words}")
    return mismatch if p < RATIO_LEVEL else HealthCheck(name, OK, shares_words)


def _at_any_time(queries: UnitQueries, counts: dict[str, int], shares: Sequence[float], table: str) -> float:
    """The anytime p-value from the counts at the end of every day so far, and the latest counts."""
    start = queries.first_exposure()
    if start is None:
        raise DataError("no exposure is in the log")
    ends: list[datetime] = []
    while (end := midnight(start) + timedelta(days=len(ends) + 1)) < queries.until and len(ends) < MOST_DAYS:
        ends.append(end)
    looks = [look for look in queries.entered_by(ends, table) if sum(look)]
    return anytime_p([*looks, list(counts.values())], shares)
