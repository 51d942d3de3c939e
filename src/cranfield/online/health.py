"""Whether an experiment can be believed at all, looked at before any number: a sentence for everything that breaks it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.errors import DataError
from cranfield.online.assign import PLAN
from cranfield.online.choice import MEAN_OF_RATIOS
from cranfield.online.event import AHEAD, instant
from cranfield.online.gather import days, midnight, naive
from cranfield.online.metrics.own import literal
from cranfield.stats.shares import anytime_p, chi_square_p, exact_p

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from cranfield.online.gather import Asked, Gathering, Numbers

RATIO_LEVEL = 0.001  # below which a sample ratio is a mistake
MOST_DAYS = 1_000  # whose ends are looked at
LEFT_OUT = 0.01  # the share of units that may be left out: see `tolerated`
HEAVY = 0.1  # the share of a denominator above which one unit decides
UNDECIDED_BY_ONE = ("bootstrap", MEAN_OF_RATIOS)  # estimates whose intervals hold, or nearly so, with such a unit
NOBODY = "SELECT number, unit AS example FROM cranfield_entered WHERE false"
OK, NOTE, EARLY, BROKEN = "ok", "note", "early", "broken"


class Check(NamedTuple):
    """What was looked at, and what came of it."""

    name: str
    state: str  # ok, note, early (no verdict yet), broken
    words: str


def of_events(gathering: Gathering, ended: bool) -> list[Check]:
    """What the events of units that are in tell: clicks on nothing that was shown, exposures without impressions."""
    return [_clicks(gathering), _impressions(gathering, ended)]


# units that are left out


class Fault(NamedTuple):
    """Something that single units may have got wrong, and a query for the number of each such unit and an example."""

    name: str
    words: str  # what such units did
    query: str
    cause: str = ""  # what it means where there are many
    healthy: str = ""  # what is said where there is none


def tolerated(units: int) -> int:
    """How many units may be left out of an experiment before nothing of it can be believed.

    Units that are left out may differ from the rest, and a variant may have caused them. Say that they differ by one
    standard deviation. What the comparison between variants cannot see (p < 0.001) then moves a difference by at most
    3.3 √share standard errors: a third of one at 1 %. A few units, were they all in one of two equal variants, move it by
    number / √units: a third of a standard error as well. A test at 5 % then errs in 6.3 %.

    >>> tolerated(5), tolerated(200), tolerated(20_000)
    (1, 4, 200)
    """
    return max(1, int(LEFT_OUT * units), int(math.sqrt(units) / 3))


def leave_out(gathering: Gathering, now: datetime) -> list[Check]:
    """Leave out units that something is wrong with, count them, and compare the variants; broken where they are too many."""
    before = gathering.counts()
    (units,) = gathering.one("SELECT count(*) FROM cranfield_entered")
    cases = [(fault, *_bad_units(gathering, fault)) for fault in _faults(gathering, now)]
    number = sum(sum(by_variant.values()) for _, by_variant, _ in cases)
    return [_fault_check(gathering, each, before, number > tolerated(units), units) for each in cases]


def _bad_units(gathering: Gathering, fault: Fault) -> tuple[dict[str, int], str]:
    """How many units of each variant have a fault, those left out before aside, and an example."""
    bad = f"SELECT number, min(example) AS example FROM ({fault.query}) GROUP BY number"
    rows = gathering.rows(
        f"SELECT variant, count(*), min(example) FROM cranfield_entered JOIN ({bad}) USING (number) GROUP BY variant"
    )
    if rows:
        gathering.leave_out(f"SELECT number FROM ({fault.query})")
    return {variant: n for variant, n, _ in rows}, min((str(example) for *_, example in rows), default="")


def _fault_check(gathering: Gathering, case: Any, before: dict[str, int], too_many: bool, units: int) -> Check:
    fault, by_variant, example = case
    number = sum(by_variant.values())
    if not number:
        return Check(fault.name, OK, fault.healthy)
    arms = [(by_variant.get(name, 0), n) for name, n in before.items()]
    compared = ", ".join(f"{name} {lost:,} of {n:,}" for name, (lost, n) in zip(before, arms, strict=True))
    words = f"{number:,} {'unit' if number == 1 else 'units'} {fault.words}, such as {example}"
    if too_many:
        most = f"of {units:,} units {tolerated(units):,} at most can be left out"
        return Check(fault.name, BROKEN, f"{fault.cause}{words}; {most}")
    shares = [n / max(sum(before.values()), 1) for _, n in arms]
    lost = [each for each, _ in arms]
    if sum(lost) and min(shares) > 0 and len(arms) > 1 and exact_p(lost, shares) < RATIO_LEVEL:
        return Check(fault.name, BROKEN, f"{words} ({compared}): more in one variant than chance allows")
    return Check(fault.name, NOTE, f"{words}; left out ({compared})")


def _faults(gathering: Gathering, now: datetime) -> Iterator[Fault]:
    """What may be wrong with a unit, the gravest first: a unit is left out for the first that it has."""
    plan = gathering.plan
    hash = f"attributes[{literal(PLAN)}]"
    exposures = f"FROM cranfield_theirs WHERE kind = 'exposure' AND experiment = {literal(plan.name)}"
    known = ", ".join(map(literal, plan.variants))
    (marked,) = gathering.one(f"SELECT count(*) {exposures} AND {hash} IS NOT NULL")
    yield Fault(
        "plan",
        "entered by an exposure of another plan",
        f"SELECT number, concat({hash}, ', this one is {plan.hash[:12]}') AS example {exposures} "
        f"AND {hash} IS NOT NULL AND ({hash} = '' OR NOT starts_with({literal(plan.hash)}, {hash}))",
        "the plan was changed mid-way; begin a new experiment: ",
        f"{marked:,} exposures carry its hash" if marked else "no exposure says by which plan",
    )
    yield Fault(
        "variants",
        f"entered with a variant other than {', '.join(plan.variants)}",
        f"SELECT number, concat(unit, ' to ', variant) AS example FROM cranfield_entered WHERE variant NOT IN ({known})",
        "was the plan changed? ",
        f"all exposures are to {', '.join(plan.variants)}",
    )
    yield Fault(
        "one variant a unit",
        "saw two variants or more",
        f"SELECT number, min(unit) AS example {exposures} GROUP BY number HAVING count(DISTINCT variant) > 1",
        healthy="no unit has seen two variants",
    )
    yield Fault(
        "clock",
        "had events more than an hour ahead of the clock here",
        "SELECT number, concat(event_id, ' of ', e.time, ' UTC') AS example FROM cranfield_events e "
        f"JOIN cranfield_entered USING (unit) WHERE e.time > TIMESTAMP {literal(str(naive(now + AHEAD)))}",
        f"is the clock here right ({instant(now)})? ",
        "no event is ahead of the clock here",
    )
    yield _repeats(gathering)
    yield Fault(
        "clicks on a search",
        "had clicks that name no search",
        _events_where(gathering, "kind = 'click' AND search IS NULL"),
        healthy="every click names its search",
    )
    conditions = dict.fromkeys(condition for each in gathering.asked for condition in each.metric.unreadable)
    if conditions:
        yield Fault(
            "numbers",
            "had numbers that cannot be read",
            _events_where(gathering, " OR ".join(conditions)),
            healthy="every number that a metric adds up can be read",
        )


def _events_where(gathering: Gathering, condition: str) -> str:
    """A query for units with such an event, and its id; the log itself is asked only if there is one."""
    (number,) = gathering.one(f"SELECT count(*) FROM cranfield_seen WHERE {condition}")
    return f"SELECT number, event_id AS example FROM cranfield_theirs WHERE {condition}" if number else NOBODY


def _repeats(gathering: Gathering) -> Fault:
    """The same id twice; within a day the log keeps one, so these are of two days. Ids whose hashes differ do."""
    total, distinct = gathering.one("SELECT count(*), count(DISTINCT id) FROM cranfield_seen")
    if total != distinct:
        (distinct,) = gathering.one("SELECT count(DISTINCT event_id) FROM cranfield_theirs")
    query = (
        "SELECT number, concat(event_id, ' of ', time, ' UTC') AS example FROM cranfield_theirs "
        "WHERE event_id IN (SELECT event_id FROM cranfield_theirs GROUP BY 1 HAVING count(*) > 1)"
    )
    words = "had events with the id of another event"
    return Fault("repeats", words, NOBODY if total == distinct else query, healthy=f"{total:,} events, each id once")


# what else can be seen


def _clicks(gathering: Gathering) -> Check:
    (placeless,) = gathering.one("SELECT count(*) FROM cranfield_seen WHERE kind = 'click' AND position IS NULL")
    (unshown,) = gathering.one(
        "SELECT count(*) FROM (SELECT search FROM cranfield_seen WHERE kind = 'click') "
        "ANTI JOIN (SELECT search FROM cranfield_seen WHERE kind = 'impression') USING (search)"
    )
    told = [f"{unshown:,} clicks are on a search without an impression, and left out"] if unshown else []
    told += [f"{placeless:,} clicks have no position: metrics of ranks do not see them"] if placeless else []
    return Check("clicks", NOTE if told else OK, "; ".join(told) or "every click is on a search that was shown")


def leverage(asked: Asked, numbers: Numbers, ended: bool) -> list[Check]:
    """Whether one unit decides a ratio: broken at the end, and a reason to go on before, as more units may come.

    The interval of a ratio of sums holds where many units make up the denominator. A unit with a tenth of it pulls the ratio
    to its own, while the variance, which sees it once, stays too small. The mean of ratios gives it the weight of any other,
    and the bootstrap knows that it might as well not have been there.
    """
    if not numbers.heaviest or asked.choice.estimate in UNDECIDED_BY_ONE:
        return []
    variant, (unit, share) = max(numbers.heaviest.items(), key=lambda each: each[1].share)
    words = f"{asked.name}: unit {unit!r} alone has {100 * share:.3g} % of the denominator in variant {variant!r}"
    if share <= HEAVY:
        return [Check("leverage", OK, words)]
    decides = f"above {100 * HEAVY:g} % one unit can decide the verdict"
    advice = f'plan [winsorise] for this metric, or estimate = "{MEAN_OF_RATIOS}" or "bootstrap"'
    if ended:
        return [Check("leverage", BROKEN, f"{words}; {decides}: {advice}")]
    return [Check("leverage", EARLY, f"too early: {words}; {decides}; if more units do not settle this, {advice}")]


def coverage(asked: Asked, numbers: Numbers) -> list[Check]:
    """How many units a quantile covers: those that have a value; a caution where variants differ in it."""
    if numbers.covered is None:
        return []
    units, covered = (np.array([own[name] for name in numbers.units]) for own in (numbers.units, numbers.covered))
    by_variant = ", ".join(f"{name} {numbers.covered[name]:,} of {n:,}" for name, n in numbers.units.items())
    words = f"{asked.name} is of the {covered.sum():,} of {units.sum():,} units that have a value ({by_variant})"
    if 0 < covered.sum() < units.sum() and _uneven(units - covered, units.astype(np.float64)):
        words += "; variants differ in who has one, so it does not compare like with like"
    return [Check("units covered", NOTE, words)]


def _impressions(gathering: Gathering, ended: bool) -> Check:
    """Units that were exposed and saw no result page since; a mistake where arms differ in it, or nobody saw any by the end."""
    names = list(gathering.plan.variants)
    rows = gathering.rows(
        "SELECT variant, count(*), count(s.number) FROM cranfield_entered n LEFT JOIN (SELECT DISTINCT number "
        "FROM cranfield_seen WHERE kind = 'impression' AND since >= 0) s ON s.number = n.number GROUP BY variant"
    )
    counts = {variant: (units, shown) for variant, units, shown in rows}
    units = np.array([counts.get(name, (0, 0))[0] for name in names], np.float64)
    shown = np.array([counts.get(name, (0, 0))[1] for name in names], np.float64)
    without = int((units - shown).sum())
    if not without:
        return Check("impressions", OK, "every unit that was exposed saw a result page")
    if not shown.sum():
        needed = any(_of_searches(each) for each in gathering.asked)
        words = "no unit that was exposed has an impression"
        if needed and not ended:
            return Check("impressions", EARLY, f"too early: {words}")
        return Check("impressions", BROKEN if needed else NOTE, words)
    by_arm = ", ".join(
        f"{name} {int(lost):,} of {int(all_):,}" for name, lost, all_ in zip(names, units - shown, units, strict=True)
    )
    told = f"{without:,} units were exposed without an impression since ({by_arm})"
    present = units > 0
    if present.sum() > 1 and shown.sum() > 0 and _uneven(units[present] - shown[present], units[present]):
        return Check("impressions", BROKEN, f"{told}: more in one arm than chance allows")
    return Check("impressions", NOTE, told)


def _of_searches(each: object) -> bool:
    metric = each.metric  # type: ignore[attr-defined]
    return bool(metric.numerator.of_searches)


def _uneven(lost: np.ndarray, units: np.ndarray) -> bool:
    """Whether the shares of units lost differ between arms, by Pearson's test at the level of the sample ratio."""
    from scipy.special import chdtrc  # type: ignore[import-untyped, unused-ignore]

    share = lost.sum() / units.sum()
    spread = units * share * (1 - share)
    return bool(
        share < 1 and chdtrc(len(units) - 1, float((np.square(lost - units * share) / spread).sum())) < RATIO_LEVEL
    )


def sample_ratio(gathering: Gathering, once: bool, ended: bool, table: str = "all") -> Check:
    """Whether variants have their shares of units: by Pearson's test looked at once, else at any time."""
    plan = gathering.plan
    counts = gathering.counts(table)
    name = "sample ratio" if table == "all" else "sample ratio after filters"
    told = ", ".join(f"{variant} {n:,}" for variant, n in counts.items())
    empty = [variant for variant, n in counts.items() if not n]
    if not sum(counts.values()):
        return Check(
            name, BROKEN, f"no unit has entered {plan.name!r}: no exposure of it is in the log, or all were left out"
        )
    if empty:
        words = f"variant {empty[0]!r} has no units ({told})"
        chance = exact_p(list(counts.values()), list(plan.variants.values()))
        if ended or chance < RATIO_LEVEL:
            return Check(name, BROKEN, words)
        return Check(name, EARLY, f"too early: {words}")
    if len(plan.variants) < 2:
        return Check(name, OK, told)
    shares = list(plan.variants.values())
    p = float(chi_square_p(list(counts.values()), shares)) if once else _at_any_time(gathering, counts, shares, table)
    how = "looked at once" if once else "at any time"
    told = f"{told}; planned {', '.join(f'{share:.4g}' for share in shares)}; p {p:.2g}, {how}"
    if p < RATIO_LEVEL:
        return Check(name, BROKEN, f"sample ratio mismatch: {told}")
    return Check(name, OK, told)


def _at_any_time(gathering: Gathering, counts: dict[str, int], shares: Sequence[float], table: str) -> float:
    """By the counts at the end of every day so far, and the last ones."""
    start = gathering.first_exposure()
    if start is None:
        raise DataError("no exposure is in the log")
    ends: list[datetime] = []
    while (end := midnight(start) + days(len(ends) + 1)) < gathering.until and len(ends) < MOST_DAYS:
        ends.append(end)
    looks = [look for look in gathering.entered_by(ends, table) if sum(look)]
    return anytime_p([*looks, list(counts.values())], shares)
