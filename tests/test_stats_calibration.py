"""How often the statistics of experiments are wrong: A/A and coverage, over thousands of simulated experiments.

`make test-all` runs them at 10,000 replicates of 1,000 units an arm; `make test` a small sister of each.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import stdtr

from cranfield.stats.arms import ArmEffect, MetricColumn, difference, level, linear_ratio, log_ratio
from cranfield.stats.moments import Moments
from cranfield.stats.proportions import ProportionDifference, proportion
from cranfield.stats.sequential import FIXED, GroupSequentialRule, Sequence, bounds
from cranfield.stats.unit_effects import DistinctRows, bootstrap, mann_whitney, quantile, superiority
from simulated import CLICKS, RATE, Arm, arm, arrivals, days

if TYPE_CHECKING:
    from collections.abc import Iterator

LOT = 500  # experiments at a time
LIFT = 0.1
PER_UNIT = (1 + RATE) * CLICKS  # clicks
RATIO = MetricColumn("clicks", "searches")
BEFORE = MetricColumn("clicks_before", "searches_before")

quick = pytest.param(1_000, 400, id="quick")
full = pytest.param(10_000, 1_000, id="full", marks=pytest.mark.slow)
both = pytest.mark.parametrize(("replicates", "units"), [quick, full])


def moments(one: Arm) -> Moments:
    return Moments.of(**one._asdict())


def effects(a: Arm, b: Arm) -> dict[str, tuple[ArmEffect, float]]:
    """Each effect of many experiments at once, and by how much clicks per search or unit move it: what is true at a lift."""
    one, other = moments(a), moments(b)
    pooled = one + other
    levels = {
        "mean": [level(each, "clicks") for each in (one, other)],
        "ratio": [level(each, RATIO) for each in (one, other)],
        "mean, CUPED": [level(each, "clicks", ["clicks_before"], pooled) for each in (one, other)],
        "ratio, CUPED": [level(each, RATIO, [BEFORE], pooled) for each in (one, other)],
    }
    found: dict[str, tuple[ArmEffect, float]] = {
        name: (difference(*pair), CLICKS if "ratio" in name else PER_UNIT) for name, pair in levels.items()
    }
    found["log ratio"] = log_ratio(*levels["ratio"]), 1.0
    found["linear ratio"] = linear_ratio(*levels["mean"]), 1.0
    capped = [level(Moments.of(clicks=np.minimum(each.clicks, 5.0)), "clicks") for each in (a, b)]
    found["winsorised mean"] = difference(*capped), math.nan
    counts = [number for each in (a, b) for number in ((each.clicks > 0).sum(axis=1), each.clicks.shape[1])]
    found["proportion"] = ProportionDifference(*counts), math.nan
    found["log ratio of proportions"] = log_ratio(proportion(*counts[:2]), proportion(*counts[2:])), math.nan
    return found


def lots(replicates: int, units: int, lift: float, seed: int, lot: int = LOT) -> Iterator[tuple[Arm, Arm]]:
    rng = np.random.default_rng(seed)
    for _ in range(replicates // lot):
        yield arm(rng, (lot, units)), arm(rng, (lot, units), lift)


def sure(share: float, replicates: int) -> float:
    """Four standard errors of a share."""
    return 4 * math.sqrt(share * (1 - share) / replicates)


@cache
def false_alarms(replicates: int, units: int) -> dict[str, float]:
    """The share of A/A experiments in which each fixed test finds something."""
    alarms: dict[str, list[float]] = {}
    for a, b in lots(replicates, units, 0.0, seed=1):
        for name, (effect, _) in effects(a, b).items():
            low, high = effect.interval(0.95)
            alarms.setdefault(name, []).append(float(np.mean((low > 0) | (high < 0))))
    return {name: float(np.mean(each)) for name, each in alarms.items()}


@both
def test_a_fixed_test_cries_wolf_in_one_of_twenty(replicates, units):
    reach = 0.007 if units == 1_000 else sure(0.05, replicates)
    rates = false_alarms(replicates, units)
    assert len(rates) == 9
    assert {name: rate for name, rate in rates.items() if abs(rate - 0.05) > reach} == {}


@both
def test_intervals_hold_what_is_true(replicates, units):
    held: dict[str, list[float]] = {}
    for a, b in lots(replicates, units, LIFT, seed=2):
        for name, (effect, unit) in effects(a, b).items():
            low, high = effect.interval(0.95)
            truth = LIFT * unit
            if not math.isnan(truth):
                held.setdefault(name, []).append(float(np.mean((low <= truth) & (truth <= high))))
    coverage = {name: float(np.mean(each)) for name, each in held.items()}
    reach = 0.007 if units == 1_000 else sure(0.05, replicates)
    assert len(coverage) == 6
    assert {name: share for name, share in coverage.items() if abs(share - 0.95) > reach} == {}


@pytest.mark.parametrize(
    ("replicates", "units"),
    [pytest.param(1_000, 60, id="quick"), pytest.param(10_000, 60, id="full", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(("one", "other"), [(0.02, 0.02), (0.3, 0.3), (0.1, 0.35), (0.95, 0.99)])
def test_newcombe_s_interval_holds_with_few_units_and_near_the_ends(replicates, units, one, other):
    rng = np.random.default_rng(3)
    found = ProportionDifference(
        rng.binomial(units, one, replicates), units, rng.binomial(units, other, replicates), units
    )
    low, high = found.interval(0.95)
    assert np.mean((low <= other - one) & (other - one <= high)) > 0.94 - sure(0.05, replicates) / 2


def test_taking_searches_for_units_errs_in_a_quarter():
    """The naive test, by search: what a click-through rate without its units gives."""
    alarms = []
    for a, b in lots(1_000, 1_000, 0.0, seed=4):
        counts = [each.sum(axis=1) for side in (a, b) for each in (side.clicks, side.searches)]
        alarms.append(np.mean(ProportionDifference(*counts).p() < 0.05))
    assert 0.2 < np.mean(alarms) < 0.32


# ranks, quantiles and the bootstrap


@pytest.mark.parametrize(("replicates", "units"), [pytest.param(500, 400, id="quick"), full])
def test_ranks_cry_wolf_in_one_of_twenty(replicates, units):
    alarms = np.zeros(2)
    for a, b in lots(replicates, units, 0.0, seed=5):
        for one, other in zip(a.clicks, b.clicks, strict=True):
            samples = DistinctRows.of(one), DistinctRows.of(other)
            alarms += [mann_whitney(*samples) < 0.05, float(superiority(*samples).p()) < 0.05]
    reach = 0.007 if units == 1_000 else sure(0.05, replicates)
    assert alarms / replicates == pytest.approx([0.05, 0.05], abs=reach)


@pytest.mark.parametrize(
    ("replicates", "units"),
    [pytest.param(200, 100, id="quick"), pytest.param(2_000, 1_000, id="full", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("kind", ["ratio", "median", "90 %"])
def test_the_bootstrap_of_units_cries_wolf_in_one_of_twenty_and_holds_what_is_true(kind, replicates, units):
    """Quantiles of a continuous value, as times are: of counts they jump, and their interval is wider than it need be."""
    rng = np.random.default_rng(6)
    wrong = np.zeros(2)
    for lift in (0.0, LIFT):
        for a, b in lots(replicates, units, lift, seed=7, lot=200):
            for i in range(200):
                if kind == "ratio":
                    rows = [DistinctRows.of(np.column_stack([each.clicks[i], each.searches[i]])) for each in (a, b)]
                    found = bootstrap(*rows, lambda mean: mean[:, 0] / mean[:, 1], rng, 400)
                    truth = lift * CLICKS
                else:
                    q = 0.5 if kind == "median" else 0.9
                    times = [DistinctRows.of(scale * rng.exponential(1.0, units)) for scale in (1.0, 1.0 + lift)]
                    found, truth = quantile(*times, q, rng, 400), -lift * math.log(1 - q)
                low, high = found.interval(0.95)
                wrong[int(lift > 0)] += not low <= truth <= high
    reach = 0.015 if units == 1_000 else sure(0.05, replicates)
    assert wrong / replicates == pytest.approx([0.05, 0.05], abs=reach)


# looks and sequences


def looked_at(replicates: int, units: int, number: int, seed: int) -> Iterator[dict[str, np.ndarray]]:
    """Standardised differences at each of so many days, units returning."""
    rng, lot = np.random.default_rng(seed), max(1, 2_000_000 // (units * number))
    for _ in range(-(-replicates // lot)):
        sides = []
        for _ in range(2):
            searches, clicks = (np.moveaxis(each, 2, 1) for each in days(rng, (lot, units, number)))
            sides.append(Moments.of(searches=searches, clicks=clicks))
        for name, column in (("mean", "clicks"), ("ratio", RATIO)):
            found = difference(*(level(side, column) for side in sides))
            yield {name: found.centre / found.error}


@pytest.mark.parametrize(("replicates", "units"), [pytest.param(1_000, 200, id="quick"), full])
def test_five_looks_at_returning_units_err_in_at_most_one_of_twenty(replicates, units):
    crossed: dict[str, list[np.ndarray]] = {}
    limit = bounds([0.2, 0.4, 0.6, 0.8, 1.0])
    for lot in looked_at(replicates, units, 5, seed=8):
        for name, z in lot.items():
            crossed.setdefault(name, []).append((np.abs(z) >= limit).any(axis=1))
    for alarms in crossed.values():
        assert np.mean(np.concatenate(alarms)) <= (0.057 if units == 1_000 else 0.05 + sure(0.05, replicates))


@pytest.mark.parametrize(
    ("replicates", "units"),
    [pytest.param(200, 50, id="quick"), pytest.param(1_000, 1_000, id="full", marks=pytest.mark.slow)],
)
def test_a_sequence_of_returning_units_peeked_at_daily_for_a_hundred_days_errs_in_less_than_one_of_twenty(
    replicates, units
):
    crossed: dict[str, list[np.ndarray]] = {}
    limit = np.array([Sequence((k + 1) / 100).critical(0.025) for k in range(100)])
    for lot in looked_at(replicates, units, 100, seed=11):
        for name, z in lot.items():
            crossed.setdefault(name, []).append((np.abs(z) >= limit).any(axis=1))
    for alarms in crossed.values():
        assert np.mean(np.concatenate(alarms)) < 0.05


@cache
def peeked(replicates: int, units: int, peeks: int = 100) -> dict[str, np.ndarray]:
    """The standardised difference at each of a hundred peeks, new units at each, and its degrees of freedom."""
    rng, found = np.random.default_rng(9), []
    for _ in range(replicates // LOT):
        sides = []
        for _ in range(2):
            groups = moments(arrivals(rng, (LOT, units), peeks))
            so_far, kept = None, []
            for k in range(peeks):
                group = Moments(groups.names, groups.n[:, k], groups.mean[:, k], groups.products[:, k])
                so_far = group if so_far is None else so_far + group
                kept.append(level(so_far, RATIO))
            sides.append(kept)
        found.append(
            np.array([(e.centre, e.error, e.df) for e in (difference(*pair) for pair in zip(*sides, strict=True))])
        )
    centre, error, df = np.moveaxis(np.concatenate(found, axis=2), 1, 0)
    z = np.divide(centre, error, out=np.zeros(centre.shape), where=error > 0)  # few units may all be alike
    return {"z": z, "df": np.where(error > 0, df, np.inf)}


@both
def test_a_sequence_peeked_at_a_hundred_times_errs_in_less_than_one_of_twenty(replicates, units):
    z = peeked(replicates, units)["z"]
    limit = np.array([Sequence((k + 1) / 100).critical(0.025) for k in range(100)])
    assert (np.abs(z) >= limit[:, None]).any(axis=0).mean() < 0.05


@both
def test_a_fixed_test_peeked_at_a_hundred_times_errs_in_a_third(replicates, units):
    found = peeked(replicates, units)
    assert 0.3 < (2 * stdtr(found["df"], -np.abs(found["z"])) < 0.05).any(axis=0).mean() < 0.47


@both
def test_looks_where_new_units_come_err_in_one_of_twenty(replicates, units):
    z = peeked(replicates, units)["z"][19::20]
    alarms = (np.abs(z) >= bounds([0.2, 0.4, 0.6, 0.8, 1.0])[:, None]).any(axis=0).mean()
    assert alarms == pytest.approx(0.05, abs=0.007 if units == 1_000 else sure(0.05, replicates))


@both
def test_a_fixed_test_at_the_end_of_looks_or_a_sequence_errs_more_often(replicates, units):
    """So the method's own bound decides at the horizon too."""
    z = np.abs(peeked(replicates, units)["z"])
    looks = (z[19::20][:-1] >= bounds([0.2, 0.4, 0.6, 0.8])[:, None]).any(axis=0)
    sequence = (z >= np.array([Sequence((k + 1) / 100).critical(0.025) for k in range(100)])[:, None]).any(axis=0)
    end = z[-1] >= FIXED.critical(0.025)
    for before in (looks, sequence):
        assert (before | end).mean() > end.mean()


def test_repeated_intervals_hold_at_all_looks_together():
    rng = np.random.default_rng(10)
    shares = (0.2, 0.4, 0.6, 0.8, 1.0)
    groups = rng.normal(0.3, 1, (20_000, 5, 20))
    sums = np.cumsum(groups.sum(axis=2), axis=1)
    n = np.arange(20, 101, 20)
    limit = np.array([GroupSequentialRule(shares[: k + 1]).critical(0.025) for k in range(5)])
    held = (np.abs(sums / n - 0.3) <= limit / np.sqrt(n)).all(axis=1).mean()
    assert held == pytest.approx(0.95, abs=0.006)
