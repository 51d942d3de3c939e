"""Whether an experiment can be believed at all, looked at before any number: a sentence for everything that breaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.errors import DataError
from cranfield.online.assign import PLAN
from cranfield.online.event import AHEAD, instant
from cranfield.online.gather import days, midnight, naive
from cranfield.online.metrics.own import literal
from cranfield.stats.shares import anytime_p, chi_square_p

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cranfield.online.gather import Gathering

RATIO_LEVEL = 0.001  # below which a sample ratio is a mistake
MOST_DAYS = 1_000  # whose ends are looked at
OK, NOTE, BROKEN = "ok", "note", "broken"


class Check(NamedTuple):
    """What was looked at, and what came of it."""

    name: str
    state: str  # ok, note, broken
    words: str


def of_exposures(gathering: Gathering, now: datetime) -> list[Check]:
    """What can be seen before anything is counted: the plan's hash, variants, clocks, ids, units in two variants."""
    return [
        _plan(gathering),
        _variants(gathering),
        _two_variants(gathering),
        _clock(gathering, now),
    ]


def of_events(gathering: Gathering) -> list[Check]:
    """What the events of units that are in tell: repeats, clicks without a search, exposures without impressions."""
    return [_repeats(gathering), _searches(gathering), _impressions(gathering)]


def _plan(gathering: Gathering) -> Check:
    """The hashes that exposures carry, where they carry any."""
    plan = gathering.plan
    rows = gathering.rows(
        f"SELECT attributes[{literal(PLAN)}] AS hash, count(*), min(time) FROM cranfield_events "
        "WHERE kind = 'exposure' AND experiment = ? AND hash IS NOT NULL GROUP BY hash ORDER BY 3",
        plan.name,
    )
    others = [(hash, n, time) for hash, n, time in rows if not hash or not plan.hash.startswith(hash)]
    if not others:
        told = f"{sum(n for _, n, _ in rows):,} exposures carry its hash" if rows else "no exposure says by which plan"
        return Check("plan", OK, told)
    hash, n, time = others[0]
    was = f"{n:,} exposures from {time.isoformat()}Z on were made by another plan ({hash[:12]})"
    return Check(
        "plan", BROKEN, f"the plan was changed mid-way: {was}, this one is {plan.hash[:12]}; begin a new experiment"
    )


def _variants(gathering: Gathering) -> Check:
    plan = gathering.plan
    known = ", ".join(map(literal, plan.variants))
    others = gathering.rows(
        f"SELECT variant, count(*), min(unit) FROM cranfield_exposed WHERE variant NOT IN ({known}) GROUP BY 1 ORDER BY 1"
    )
    if not others:
        return Check("variants", OK, f"all exposures are to {', '.join(plan.variants)}")
    name, n, unit = others[0]
    found = f"found {name!r} ({n:,} units, such as {unit!r})"
    return Check(
        "variants", BROKEN, f"expected exposures to {', '.join(plan.variants)}, {found}; was the plan changed?"
    )


def _two_variants(gathering: Gathering) -> Check:
    n, unit = gathering.one("SELECT count(*), min(unit) FROM cranfield_exposed WHERE variants > 1 AND NOT override")
    if not n:
        return Check("one variant a unit", OK, "no unit has seen two variants")
    who = f"{n:,} units have" if n > 1 else "a unit has"
    return Check("one variant a unit", BROKEN, f"{who} seen two variants or more, such as {unit!r}")


def _clock(gathering: Gathering, now: datetime) -> Check:
    latest = naive(now + AHEAD)
    n, event, time = gathering.one(
        "SELECT count(*), arg_max(event_id, e.time), max(e.time) FROM cranfield_events e "
        "JOIN cranfield_exposed USING (unit) WHERE e.time > ?",
        latest,
    )
    if not n:
        return Check("clock", OK, "no event is ahead of the clock here")
    ahead = f"event {event!r} is of {time.isoformat()}Z, now it is {instant(now)}"
    return Check("clock", BROKEN, f"{n:,} events are more than an hour ahead: {ahead}")


def _repeats(gathering: Gathering) -> Check:
    """The same id twice; within a day the log keeps one, so these are of two days. Ids whose hashes differ do."""
    total, distinct = gathering.one("SELECT count(*), count(DISTINCT id) FROM cranfield_seen")
    if total != distinct:
        (distinct,) = gathering.one("SELECT count(DISTINCT event_id) FROM cranfield_theirs")
    if total == distinct:
        return Check("repeats", OK, f"{total:,} events, each id once")
    event, first, last = gathering.one(
        "SELECT event_id, min(time), max(time) FROM cranfield_theirs GROUP BY 1 HAVING count(*) > 1 ORDER BY 1 LIMIT 1"
    )
    found = f"such as {event!r} of {first.isoformat()}Z and {last.isoformat()}Z"
    return Check("repeats", BROKEN, f"{total - distinct:,} events repeat the id of another, {found}")


def _searches(gathering: Gathering) -> Check:
    without, placeless = gathering.one(
        "SELECT count(*) FILTER (search IS NULL), count(*) FILTER (position IS NULL) FROM cranfield_seen WHERE kind = 'click'"
    )
    if without:
        (event,) = gathering.one("SELECT min(event_id) FROM cranfield_theirs WHERE kind = 'click' AND search IS NULL")
        return Check("clicks", BROKEN, f"{without:,} clicks name no search, such as event {event!r}")
    (unshown,) = gathering.one(
        "SELECT count(*) FROM (SELECT search FROM cranfield_seen WHERE kind = 'click') "
        "ANTI JOIN (SELECT search FROM cranfield_seen WHERE kind = 'impression') USING (search)"
    )
    told = [f"{unshown:,} clicks are on a search without an impression, and left out"] if unshown else []
    told += [f"{placeless:,} clicks have no position: metrics of ranks do not see them"] if placeless else []
    return Check("clicks", NOTE if told else OK, "; ".join(told) or "every click is on a search that was shown")


def _impressions(gathering: Gathering) -> Check:
    """Units that were exposed and saw no result page since; a mistake where arms differ in it, or nobody saw any."""
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


def sample_ratio(gathering: Gathering, once: bool, table: str = "all") -> Check:
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
        return Check(name, BROKEN, f"variant {empty[0]!r} has no units ({told})")
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
