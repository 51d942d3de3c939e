"""From a log and a plan to a verdict: each verdict, each fault, by any method, and the command."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cranfield.base.errors import BadLineError, ConventionError, DataError
from cranfield.commands.experiments import analyze as verb
from cranfield.experiments import Keys, interleave
from cranfield.experiments.analyze import analyze
from cranfield.experiments.assignment import Assignment
from cranfield.experiments.health_checks import tolerated
from cranfield.experiments.log import EventLog
from cranfield.experiments.plan import read_plan
from cranfield.experiments.unit_queries import UnitQueries
from cranfield.reports.result_charts import chart
from cranfield.stats.sequential import bounds, information
from online_events import AFTER, PLAN, START, Trail, many, plan_file
from shell import cranfield

CTR = '[[primary]]\nmetric = "click-through"\n'


class SharedLog(str):
    """The folder of a log that several tests read and none changes."""


@cache
def usual_events():
    """What 200 units do, of which those who see the new one click much more."""
    return tuple(many(np.random.default_rng(3)).events)


def usual_trail():
    """A trail of its own that begins with the usual events."""
    return Trail([*usual_events()])


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """200 units; those who see the new one click much more."""
    return SharedLog(usual_trail().write(tmp_path_factory.mktemp("shop") / "log"))


@pytest.fixture(scope="module")
def alike(tmp_path_factory):
    trail = many(np.random.default_rng(5), 400, lift=0.0)
    return SharedLog(trail.write(tmp_path_factory.mktemp("alike") / "log"))


ANALYSES = {}


def asked(log, path, more=CTR, now=AFTER, text=PLAN, **how):
    """The analysis of a log by a plan; of a log that tests share, each is made once."""
    plan = read_plan(plan_file(path, more, text))
    question = (log, more, now, text, *sorted(how.items()))
    if question in ANALYSES:
        return ANALYSES[question]
    with EventLog(log) as opened:
        analysis = analyze(opened, plan, now, **how)
    if isinstance(log, SharedLog):
        ANALYSES[question] = analysis
    return analysis


# verdicts


def test_ship_where_a_primary_is_on_the_good_side_and_guardrails_hold(shop, tmp_path):
    found = asked(shop, tmp_path, CTR + '[[guardrail]]\nmetric = "abandonment"\nmargin = 0.1\n')
    assert (found.verdict, found.exit_code) == ("ship", 0)
    assert found.reason.startswith("new: click-through is better, +")
    assert found.reason.endswith("within margins: abandonment")
    first, second = found.findings
    assert first.state == "good"
    assert first.difference.low > 0
    assert first.ratio.low > 0
    assert second.state == "within"
    assert second.guards
    assert found.plan == read_plan(str(tmp_path / "plan.toml")).hash
    assert found.plan[:12] in found.to_text()


def test_stop_where_a_primary_is_on_the_bad_side(shop, tmp_path):
    found = asked(shop, tmp_path, '[[primary]]\nmetric = "click-through"\ndirection = "down"\n')
    assert (found.verdict, found.exit_code) == ("stop", 1)
    assert "click-through is worse" in found.reason


def test_stop_where_a_guardrail_is_beyond_its_margin_whatever_the_primary_says(shop, tmp_path):
    rail = '[[guardrail]]\nmetric = "abandonment"\ndirection = "up"\nmargin = 0.01\n'
    found = asked(shop, tmp_path, CTR + rail)
    assert found.verdict == "stop"
    assert "abandonment is beyond its margin" in found.reason


def test_same_where_the_interval_lies_inside_the_margin(alike, tmp_path):
    found = asked(alike, tmp_path, CTR + "margin = 0.2\n")
    assert (found.verdict, found.exit_code) == ("same", 1)
    assert "within ±0.2" in found.reason
    relative = asked(alike, tmp_path, CTR + "margin = 0.5\nrelative = true\n")
    assert relative.verdict == "same"
    assert "within ±50 %" in relative.reason


def test_not_shown_says_what_could_have_been_and_what_a_new_plan_takes(alike, tmp_path):
    found = asked(alike, tmp_path)
    assert (found.verdict, found.exit_code) == ("not shown", 1)
    (one,) = found.findings
    units = sum(one.units)
    error = (one.difference.high - one.difference.low) / 2 / 1.96
    assert one.detectable == pytest.approx(2.8 * error, rel=0.01)
    assert 4 * units <= one.needed <= 4.4 * units  # half the effect takes four times the units
    assert f"it could have detected {one.detectable:.4g} of click-through (power 0.8)" in found.reason
    assert f"a new plan with about {one.needed:,} units would detect half of that" in found.reason
    margin = asked(alike, tmp_path, CTR + "margin = 0.001\n")
    assert margin.findings[0].needed == pytest.approx(units * (one.detectable / 0.001) ** 2, rel=0.1)
    assert "continue" not in margin.reason


def test_a_good_primary_with_a_guardrail_that_is_not_shown_is_not_shown(shop, tmp_path):
    found = asked(shop, tmp_path, CTR + '[[guardrail]]\nmetric = "time-to-click"\nmargin = 0.001\n')
    assert found.verdict == "not shown"
    assert "click-through is better, but time-to-click is not shown within its margin" in found.reason


def test_fixed_says_nothing_before_the_horizon(shop, tmp_path):
    found = asked(shop, tmp_path, at=START + timedelta(days=7))
    assert (found.verdict, found.exit_code, found.findings) == ("continue", 3, ())
    assert found.reason.startswith("the fixed method gives no verdict before its horizon; 7.0 of 14 days and ")
    assert "about" in found.reason
    assert "units and 7.0 days more" in found.reason


def test_an_answer_after_the_horizon_stays_as_it_is(shop, tmp_path):
    sooner, later = (asked(shop, tmp_path, at=START + timedelta(days=n)).to_dict() for n in (14, 300))
    assert sooner == later


def test_the_horizon_may_be_a_number_of_units(shop, tmp_path):
    text = PLAN.replace("days = 14", "units = 150")
    found = asked(shop, tmp_path, text=text)
    assert sum(found.units.values()) == 150
    assert found.ended
    more = asked(shop, tmp_path, text=PLAN.replace("days = 14", "units = 1000"))
    assert more.verdict == "continue"
    assert "200 of 1,000 units in 15.0 days so far, about 800 units and 60.0 days more" in more.reason


def test_looks_decide_at_looks_only_and_by_their_own_bound_at_the_horizon(shop, alike, tmp_path):
    looks = 'method = "looks"\nlooks = [0.5, 1]\n' + CTR
    early = asked(shop, tmp_path, looks, at=START + timedelta(days=3))
    assert early.verdict == "continue"
    assert early.reason.startswith("0 of 2 looks; 3.0 of 14 days")
    first, between = (asked(shop, tmp_path, looks, at=START + timedelta(days=n)) for n in (7, 11))
    assert first.findings == between.findings
    assert first.until == (START + timedelta(days=7)).isoformat()
    last, fixed = asked(alike, tmp_path, looks), asked(alike, tmp_path)
    ratio = (last.findings[0].difference.high - last.findings[0].difference.value) / (
        fixed.findings[0].difference.high - fixed.findings[0].difference.value
    )
    assert ratio == pytest.approx(1.969 / 1.96, abs=2e-3)  # the bound of two looks at the last of them
    assert asked(shop, tmp_path, looks).verdict == "ship"


# looks that cannot decide


METRICS = {
    "a ratio": CTR,
    "a relative effect": CTR + "relative = true\nmargin = 0.1\n",
    "a mean": '[[primary]]\nmetric = "searches"\n',
    "with CUPED": CTR + 'estimate = "cuped"\n',
    "a proportion": '[[primary]]\nmetric = "conversion"\nmargin = 0.9\n',
    "ranks": '[[primary]]\nmetric = "searches"\nestimate = "mann-whitney"\n',
    "the bootstrap": CTR + 'estimate = "bootstrap"\n',
    "a quantile": '[[metric]]\nname = "reading"\nkind = "quantile"\nq = 0.5\nevent = "dwell"\nfield = "value"\n'
    'direction = "up"\n[[primary]]\nmetric = "reading"\n',
    "a guardrail": CTR + '[[guardrail]]\nmetric = "abandonment"\nmargin = 0.9\n',
}


@pytest.fixture(scope="module")
def worse(tmp_path_factory):
    """300 units that all come on the first day; those who see the new one click less."""
    rng, trail = np.random.default_rng(11), Trail()
    for i in range(300):
        unit, new = f"u{i:04d}", i % 2 == 1
        trail.expose(unit, "new" if new else "control", 0.1)
        for n in range(1 + rng.poisson(1.5)):
            clicked = rng.random() < 0.5 - 0.15 * new
            clicks = [(1, 3.0, float(rng.exponential(30)))] if clicked else []
            trail.search(unit, f"{unit}-{n}", 0.2 + n * 0.05, 2.0, clicks)
            if clicked and rng.random() < 0.4:
                trail.add("conversion", unit, 0.2 + n * 0.05, 300, value=5.0)
    return SharedLog(trail.write(tmp_path_factory.mktemp("worse") / "log"))


def decided_by_nothing(found):
    """No verdict, and no end of an interval that is not finite."""
    text = found.to_text()
    assert (found.verdict, found.exit_code) == ("continue", 3)
    assert "inf" not in text
    assert "nan" not in text
    for each in found.findings:
        assert each.state == "unclear" or each.guards
        assert not each.same or each.guards
    return found.reason


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_look_that_may_spend_nothing_cannot_decide_and_says_so(worse, metric, tmp_path):
    found = asked(worse, tmp_path, 'method = "looks"\nlooks = 14\n' + metric, at=START + timedelta(days=1))
    reason = decided_by_nothing(found)
    assert reason.startswith(
        "this look cannot decide: it may spend only 1e-16 of the error rate of 0.05; 1 of 14 looks"
    )
    assert math.isnan(found.findings[0].difference.low)
    assert math.isnan(found.findings[0].difference.high)
    assert json.loads(found.to_json())["findings"][0]["difference"]["low"] is None
    assert "this look cannot decide" in found.to_html()


def test_a_look_that_can_decide_stops_what_is_worse_by_as_much(worse, tmp_path):
    found = asked(worse, tmp_path, 'method = "looks"\nlooks = 2\n' + CTR, at=START + timedelta(days=7))
    assert found.verdict == "stop"


def test_experiments_without_an_effect_ship_nothing_at_a_look_that_cannot_decide(alike, tmp_path):
    for at in (1, 2):
        text = f'aa = true\nmethod = "looks"\nlooks = {14 * at}\n' + CTR
        decided_by_nothing(asked(alike, tmp_path, text, at=START + timedelta(days=1)))


def test_looks_that_share_the_level_between_primaries_cannot_decide_sooner(worse, tmp_path):
    """Of ten looks the first has a bound for one primary, and none for three."""
    three = CTR + '[[primary]]\nmetric = "searches"\n[[primary]]\nmetric = "conversion"\n'
    looks = 'method = "looks"\nlooks = 10\n'
    at = START + timedelta(days=1.4)
    assert decided_by_nothing(asked(worse, tmp_path, looks + three, at=at)).startswith("this look cannot decide")
    assert "cannot decide" not in asked(worse, tmp_path, looks + CTR, at=at).reason


def test_more_units_than_planned_leave_the_last_look_something_to_spend(shop, alike, tmp_path):
    looks = 'method = "looks"\nlooks = 3\n' + CTR
    over = PLAN.replace("days = 14", "days = 14\nunits = 60")
    for log, verdict in ((shop, "ship"), (alike, "not shown")):
        found = asked(log, tmp_path, looks, text=over)
        assert found.verdict == verdict
        assert found.findings[0].difference.low < found.findings[0].difference.high
    between = asked(alike, tmp_path, looks, text=over, at=START + timedelta(days=10))
    assert between.verdict == "continue"
    assert between.findings[0].difference.low < between.findings[0].difference.high


def test_few_units_at_an_early_look_ship_nothing(shop, tmp_path):
    """Far fewer units than planned, and a plan for days: the look spends by days, and t has few degrees of freedom."""
    text = PLAN.replace("days = 14", "days = 14\nunits = 1000000")
    for day in (1, 2, 3, 5):
        found = asked(shop, tmp_path, 'method = "looks"\nlooks = 14\n' + CTR, text=text, at=START + timedelta(days=day))
        reason = decided_by_nothing(found)
        assert reason.startswith("this look cannot decide: ") == (day == 1)
        assert "too early: click-through: unit 'u0" in reason or day > 3  # a handful of units
    assert asked(shop, tmp_path, 'method = "looks"\nlooks = 14\n' + CTR, text=text).verdict == "ship"


def test_looks_by_days_take_their_correlations_from_units(shop, tmp_path):
    """The bound of the last look is the one by the units at each, which come unevenly, or days where these grow more."""
    looks = 'method = "looks"\nlooks = 4\nspending = "pocock"\n' + CTR
    at_end, fixed = asked(shop, tmp_path, looks), asked(shop, tmp_path)
    units = [sum(asked(shop, tmp_path, looks, at=START + timedelta(days=3.5 * k)).units.values()) for k in (1, 2, 3, 4)]
    known = information(units, [1, 2, 3, 4])
    wanted = bounds(known, "pocock", spend_at=[0.25, 0.5, 0.75, 1.0])[-1]
    reach = [each.findings[0].difference.high - each.findings[0].difference.value for each in (at_end, fixed)]
    assert reach[0] / reach[1] == pytest.approx(wanted / 1.96, rel=0.01)  # t, not z


def test_a_sequence_decides_at_any_time_and_is_wider(shop, tmp_path):
    sequence = 'method = "sequence"\ntuned = 200\n' + CTR
    found, fixed = asked(shop, tmp_path, sequence), asked(shop, tmp_path)
    ratio = (found.findings[0].difference.high - found.findings[0].difference.value) / (
        fixed.findings[0].difference.high - fixed.findings[0].difference.value
    )
    assert ratio == pytest.approx(3.035 / 1.96, rel=0.01)
    assert asked(shop, tmp_path, sequence, at=START + timedelta(days=2)).findings
    with pytest.raises(DataError, match="expected tuned, or units"):
        asked(shop, tmp_path, 'method = "sequence"\n' + CTR)


def test_several_primaries_are_corrected_by_holm(shop, tmp_path):
    alone = asked(shop, tmp_path).findings[0]
    more = CTR + '[[primary]]\nmetric = "searches"\n[[primary]]\nmetric = "sessions"\n'
    first, *others = asked(shop, tmp_path, more).findings
    assert first.p == pytest.approx(3 * alone.p)
    assert first.difference.low < alone.difference.low
    assert {each.state for each in others} == {"unclear"}


def test_of_three_variants_the_one_that_is_better_ships(tmp_path):
    trail = many(np.random.default_rng(3), 300)
    third = [
        replace(each, variant="other") if each.kind == "exposure" and int(each.unit[1:]) % 4 == 0 else each
        for each in trail.events
    ]
    log = Trail(third).write(tmp_path / "log")
    text = PLAN.replace("control = 0.5\nnew = 0.5", "control = 0.25\nnew = 0.5\nother = 0.25")
    found = asked(log, tmp_path, text=text)
    assert found.verdict == "ship"
    assert found.variants == {"new": "ship", "other": "not shown"}
    assert found.reason.startswith("new: ")


def three_arms(path, shift):
    """A control and two variants of 200 units each, the second of which clicks less."""
    rng, trail = np.random.default_rng(8), Trail()
    for i in range(600):
        unit, arm = f"u{i}", ("control", "one", "two")[i % 3]
        trail.expose(unit, arm)
        for n in range(2):
            clicked = rng.random() < 0.5 + (shift if arm == "two" else 0)
            trail.search(unit, f"{unit}-{n}", n, clicks=[(1, 2.0, None)] * clicked)
    return trail.write(path / "log")


THREE = PLAN.replace("control = 0.5\nnew = 0.5", "control = 0.3333333\none = 0.3333333\ntwo = 0.3333334")


@pytest.mark.parametrize("more", ["", 'method = "sequence"\ntuned = 600\n'])
def test_the_headline_covers_each_variant(more, tmp_path):
    log = three_arms(tmp_path, -0.2)
    for at in (AFTER, START + timedelta(days=10)) if more else (AFTER,):
        found = asked(log, tmp_path, more + CTR, text=THREE, at=at)
        other = "not shown" if at == AFTER else "continue"
        assert found.variants == {"one": other, "two": "stop"}
        assert found.verdict == other
        two = next(each for each in found.findings if each.variant == "two").difference
        assert f"two (stop): click-through is worse, {two.value:+.4g} [{two.low:+.4g}, {two.high:+.4g}]" in found.reason
        assert f"one: no primary differs {'at the horizon' if at == AFTER else 'so far'}" in found.reason
        assert "primary differs" not in found.reason.replace("one: no primary differs", "")


def test_the_headline_names_what_does_not_ship_beside_what_does(tmp_path):
    log = three_arms(tmp_path, 0.25)
    found = asked(log, tmp_path, CTR, text=THREE)
    assert found.verdict == "ship"
    assert found.reason.startswith("two: click-through is better, +")
    assert found.reason.endswith("; one (not shown): no primary differs at the horizon")


def test_an_experiment_of_the_same_variants_that_differ_is_broken(shop, alike, tmp_path):
    found = asked(shop, tmp_path, "aa = true\n" + CTR)
    assert (found.verdict, found.exit_code) == ("broken", 3)
    assert "all variants are the same, yet click-through differs" in found.reason
    assert asked(alike, tmp_path, "aa = true\n" + CTR).verdict == "not shown"


# estimates


def test_estimates_of_every_kind_agree_on_what_is_plain(shop, tmp_path):
    found = {
        name: asked(shop, tmp_path, f'{CTR}estimate = "{name}"\n').findings[0].difference
        for name in ("plain", "bootstrap")
    }
    assert found["plain"] == pytest.approx(found["bootstrap"], abs=0.02)
    ranks = asked(shop, tmp_path, '[[primary]]\nmetric = "revenue"\nestimate = "mann-whitney"\n').findings[0]
    assert -0.5 < ranks.difference.low < ranks.difference.value < ranks.difference.high < 0.5
    assert math.isnan(ranks.ratio.value)
    with pytest.raises(DataError, match="expected one value per unit"):
        asked(shop, tmp_path, f'{CTR}estimate = "mann-whitney"\n')


def test_cuped_narrows_what_the_time_before_explains(tmp_path):
    rng, trail = np.random.default_rng(2), Trail()
    for i in range(200):
        unit, taste = f"u{i}", rng.normal(20, 6)
        trail.expose(unit, ("control", "new")[i % 2], day=5 + i / 100)
        trail.add("conversion", unit, day=1, value=float(taste + rng.normal()))
        trail.add("conversion", unit, day=8, value=float(taste + rng.normal() + (i % 2)))
    log = trail.write(tmp_path / "log")
    plain, cuped = (
        asked(log, tmp_path, f'[[primary]]\nmetric = "revenue"\nestimate = "{name}"\n').findings[0]
        for name in ("plain", "cuped")
    )
    assert cuped.difference.high - cuped.difference.low < 0.4 * (plain.difference.high - plain.difference.low)
    assert cuped.difference.low < 1 < cuped.difference.high
    log = many(np.random.default_rng(3), 40).write(tmp_path / "nothing-before")
    before, after = (asked(log, tmp_path, f'{CTR}estimate = "{name}"\n').findings[0] for name in ("plain", "cuped"))
    assert after.difference == pytest.approx(before.difference)  # nobody was seen before


@pytest.mark.slow
def test_the_numbers_are_those_of_tea_tasting(tmp_path):
    tea = pytest.importorskip("tea_tasting")
    data = tea.make_users_data(rng=42, covariates=True)
    trail = Trail()
    for row in data.to_pylist():
        unit = str(row["user"])
        trail.expose(unit, ("control", "new")[row["variant"]], day=5)
        trail.add("known", unit, day=1)
        for suffix, day in (("", 6), ("_covariate", 2)):
            for _ in range(row[f"sessions{suffix}"]):
                trail.add("visit", unit, day=day)
            for n in range(row[f"orders{suffix}"]):
                trail.add("conversion", unit, day=day, value=float(row[f"revenue{suffix}"]) if n == 0 else 0.0)
    log = trail.write(tmp_path / "log")
    own = '[[metric]]\nname = "orders"\nkind = "ratio"\nevent = "conversion"\nover = {event = "visit"}\n'
    for estimate in ("plain", "cuped"):
        before = {"": "", "cuped": "_covariate"} if estimate == "cuped" else {}
        covariates = ["orders_covariate", "sessions_covariate"] if before else []
        oracle = tea.Experiment(
            orders=tea.RatioOfMeans("orders", "sessions", *covariates),
            revenue=tea.Mean("revenue", *(["revenue_covariate"] if before else [])),
        ).analyze(data)
        for metric in ("orders", "revenue"):
            (found,) = asked(
                log, tmp_path, f'[[primary]]\nmetric = "{metric}"\nestimate = "{estimate}"\n{own}'
            ).findings
            one = oracle[metric]
            assert found.difference == pytest.approx(
                (one.effect_size, one.effect_size_ci_lower, one.effect_size_ci_upper), rel=1e-6
            )
            assert found.ratio == pytest.approx(
                (one.rel_effect_size, one.rel_effect_size_ci_lower, one.rel_effect_size_ci_upper), rel=1e-4
            )
            assert found.p == pytest.approx(one.pvalue, rel=1e-6)
            if (metric, estimate) == ("orders", "plain"):
                plain = tea.Experiment(orders=tea.RatioOfMeans("orders", "sessions")).analyze(
                    tea.make_users_data(rng=42)
                )
                assert round(100 * plain["orders"].rel_effect_size, 2) == 8.77


@pytest.mark.parametrize("users", [300, pytest.param(4_000, marks=pytest.mark.slow)])
def test_orders_per_session_against_tea_tasting(users, tmp_path):
    tea = pytest.importorskip("tea_tasting")
    data, trail = tea.make_users_data(rng=42, n_users=users), Trail()
    for row in data.to_pylist():
        unit = str(row["user"])
        trail.expose(unit, ("control", "new")[row["variant"]])
        trail.add("visit", unit, second=1, value=float(row["sessions"]))
        if row["orders"]:
            trail.add("order", unit, second=2, value=float(row["orders"]))
    log = trail.write(tmp_path / "log")
    own = (
        '[[metric]]\nname = "orders"\nkind = "ratio"\nevent = "order"\nfield = "value"\n'
        'over = {event = "visit", field = "value"}\n'
    )
    (found,) = asked(log, tmp_path, f'[[primary]]\nmetric = "orders"\n{own}').findings
    one = tea.Experiment(orders=tea.RatioOfMeans("orders", "sessions")).analyze(data)["orders"]
    wanted = (one.rel_effect_size, one.rel_effect_size_ci_lower, one.rel_effect_size_ci_upper)
    assert found.ratio == pytest.approx(wanted, rel=1e-4)
    assert found.p == pytest.approx(one.pvalue, rel=1e-6)
    if users == 4_000:  # as its guide prints them
        assert [round(100 * each, 2) for each in found.ratio] == [8.77, -0.89, 19.38]
        assert round(found.p, 5) == 0.07624


def test_a_quantile_says_how_many_units_it_covers(tmp_path):
    trail, rng = usual_trail(), np.random.default_rng(1)
    for i in [*range(60), *range(100, 141)]:
        trail.add("scroll", f"u{i:04d}", 13.9, attributes={"px": f"{rng.exponential(100):.2f}"})
    log = trail.write(tmp_path / "log")
    own = SCROLL.replace("event =", 'kind = "quantile"\nq = 0.9\nevent =')
    found = asked(log, tmp_path, own)
    assert found.findings[0].covered == (51, 50)
    assert found.findings[0].units == (100, 100)
    said = "depth is of the 101 of 200 units that have a value (control 51 of 100, new 50 of 100)"
    assert f"units covered: {said}" in found.notes()
    assert json.loads(found.to_json())["findings"][0]["covered"] == [51, 50]
    for i in range(61, 100, 2):
        trail.add("scroll", f"u{i:04d}", 13.9, attributes={"px": f"{rng.exponential(100):.2f}"})
    for i in range(141, 200, 2):
        trail.add("scroll", f"u{i:04d}", 13.9, attributes={"px": f"{rng.exponential(100):.2f}"})
    uneven = asked(trail.write(tmp_path / "uneven"), tmp_path, own)
    assert any("the share differs between variants" in note for note in uneven.notes())
    assert asked(log, tmp_path).findings[0].covered is None


# who is in


def test_overrides_are_left_out_by_mark_and_by_plan(shop, tmp_path):
    trail = usual_trail()
    trail.expose("tester", "new", 1, attributes={"override": "true"})
    trail.search("tester", "t1", 1, 5)
    log = trail.write(tmp_path / "log")
    assert asked(log, tmp_path).findings == asked(shop, tmp_path).findings
    fewer = asked(log, tmp_path, CTR + '[overrides]\nu0001 = "new"\n')
    assert fewer.units == {"control": 100, "new": 99}


def test_filters_say_what_they_left_out_and_the_sample_ratio_is_tested_again(tmp_path):
    trail = usual_trail()
    for i in range(1, 200, 2):  # half of the new variant's are called bots
        if i % 4 == 1:
            trail.add("ping", f"u{i:04d}", 13.9, attributes={"agent": "some bot"})
    log = trail.write(tmp_path / "log")
    bots = CTR + '[[filter]]\nname = "bots"\nfield = "attributes.agent"\nmatches = "bot"\n'
    found = asked(log, tmp_path, bots)
    assert found.verdict == "broken"
    assert found.reason.startswith("sample ratio mismatch: control 100, new 50; planned 0.5, 0.5; p ")
    assert "filter bots: 50 units left out" in found.to_text()
    assert "units: 200 before filters, 150 after" in found.to_text()
    events = asked(log, tmp_path, bots + 'drop = "events"\n')
    assert events.filters[0] == ("bots", "events", 50)
    assert events.verdict == "ship"
    running = asked(log, tmp_path, bots, at=START + timedelta(days=13.95))
    assert running.checks[-1].name == "sample ratio after filters"
    assert running.checks[-1].words.endswith("at any time")


def test_winsorising_pulls_in_and_says_how_many(tmp_path):
    trail = Trail()
    for i in range(20):
        trail.expose(f"u{i}", ("control", "new")[i % 2])
        trail.search(f"u{i}", f"s{i}")
        trail.add("conversion", f"u{i}", second=9, value=float(i + 1 if i < 19 else 1000))
    log = trail.write(tmp_path / "log")
    revenue = '[[primary]]\nmetric = "revenue"\n[winsorise]\nrevenue = 0.9\n'
    found = asked(log, tmp_path, revenue)
    limit = float(np.quantile([*range(1, 20), 1000], 0.9))
    assert found.winsorised == {"revenue": (pytest.approx(limit), 2)}
    assert found.findings[0].value == pytest.approx(np.minimum([*range(2, 20, 2), 1000], limit).mean())


def test_winsorising_a_ratio_caps_both_sums_at_quantiles_of_all_variants(tmp_path):
    trail, rng = Trail(), np.random.default_rng(4)
    clicks, searches = np.zeros(60), np.zeros(60)
    for i in range(60):
        unit, number = f"u{i}", 1 + int(rng.poisson(3)) if i != 7 else 40
        trail.expose(unit, ("control", "new")[i % 2])
        for n in range(number):
            clicked = i == 7 or rng.random() < 0.5
            trail.search(unit, f"{unit}-{n}", n / 10, clicks=[(1, 2.0, None)] * clicked)
            clicks[i] += clicked
        searches[i] = number
    log = trail.write(tmp_path / "log")
    found = asked(log, tmp_path, CTR + '[winsorise]\n"click-through" = 0.95\n')
    caps = np.quantile(clicks, 0.95), np.quantile(searches, 0.95)
    above, below = np.minimum(clicks, caps[0]), np.minimum(searches, caps[1])
    assert found.winsorised == {
        "click-through, numerator": (pytest.approx(caps[0]), int((clicks > caps[0]).sum())),
        "click-through, denominator": (pytest.approx(caps[1]), int((searches > caps[1]).sum())),
    }
    for shown, arm in ((found.findings[0].control, 0), (found.findings[0].value, 1)):
        assert shown == pytest.approx(above[arm::2].sum() / below[arm::2].sum())
    assert "click-through, denominator: " in found.to_text()


def crawled(units=60, heavy=200):
    """Equal variants, and a unit of the control that searches very often and never clicks."""
    trail, rng = Trail(), np.random.default_rng(4)
    for i in range(units):
        unit = f"u{i}"
        trail.expose(unit, ("control", "new")[i % 2])
        for n in range(heavy if i == 10 else 1 + int(rng.poisson(2))):
            trail.search(unit, f"{unit}-{n}", n / 100, clicks=[(1, 2.0, None)] * bool(i != 10 and rng.random() < 0.6))
    return trail


def test_one_unit_that_has_most_of_a_ratio_is_named_and_decides_nothing(tmp_path):
    log = crawled().write(tmp_path / "log")
    found = asked(log, tmp_path)
    assert (found.verdict, found.exit_code) == ("broken", 3)
    assert found.reason.startswith("click-through: unit 'u10' alone has ")
    assert "% of the denominator in variant 'control'; above 10 %, one unit can decide the verdict" in found.reason
    assert all(advice in found.reason for advice in ("[winsorise]", '"bootstrap"', '"mean-of-ratios"'))
    assert {each.state for each in found.findings} == {"unclear"}
    early = asked(log, tmp_path, 'method = "sequence"\ntuned = 60\n' + CTR, at=START + timedelta(days=3))
    assert (early.verdict, early.exit_code) == ("continue", 3)
    assert "unit 'u10' alone has" in early.reason
    guarded = '[[primary]]\nmetric = "searches"\n[[guardrail]]\nmetric = "click-through"\nmargin = 0.05\n'
    assert asked(log, tmp_path, guarded).verdict == "broken"


@pytest.mark.parametrize(
    "cure", ['[winsorise]\n"click-through" = 0.95\n', 'estimate = "bootstrap"\n', 'estimate = "mean-of-ratios"\n']
)
def test_what_the_message_on_one_heavy_unit_advises_gives_a_verdict(cure, tmp_path):
    log = crawled().write(tmp_path / "log")
    assert asked(log, tmp_path, CTR + cure).verdict == "not shown"


def test_the_mean_of_ratios_is_the_mean_of_each_units_own(tmp_path):
    trail, own = Trail(), {"control": [], "new": []}
    rng = np.random.default_rng(9)
    for i in range(40):
        unit, arm, number = f"u{i}", ("control", "new")[i % 2], int(rng.integers(0, 4))
        trail.expose(unit, arm)
        clicked = [bool(rng.random() < 0.5) for _ in range(number)]
        for n, each in enumerate(clicked):
            trail.search(unit, f"{unit}-{n}", n, clicks=[(1, 2.0, None)] * each)
        own[arm] += [np.mean(clicked)] if number else []
    log = trail.write(tmp_path / "log")
    (found,) = asked(log, tmp_path, CTR + 'estimate = "mean-of-ratios"\n').findings
    assert (found.control, found.value) == (pytest.approx(np.mean(own["control"])), pytest.approx(np.mean(own["new"])))
    with pytest.raises(BadLineError, match="revenue: expected a ratio with estimate = 'mean-of-ratios', found a mean"):
        asked(log, tmp_path, '[[primary]]\nmetric = "revenue"\nestimate = "mean-of-ratios"\n')


def test_a_unit_enters_by_its_first_exposure_and_events_before_do_not_count(tmp_path):
    trail = Trail()
    for i in range(8):
        trail.search(f"u{i}", f"before{i}", 1, clicks=[(1, 2, 3)])
        trail.expose(f"u{i}", ("control", "new")[i % 2], 3).expose(f"u{i}", ("control", "new")[i % 2], 5)
        trail.search(f"u{i}", f"after{i}", 4, clicks=[(1, 2, 3)] if i > 3 else [])
        trail.search(f"u{i}", f"late{i}", 14.5)
    trail.search("stranger", "x", 4)
    found = asked(trail.write(tmp_path / "log"), tmp_path)
    assert (found.findings[0].control, found.findings[0].value) == (0.5, 0.5)
    assert found.findings[0].units == (4, 4)


def test_units_exposed_before_the_start_are_left_out_with_a_note(shop, tmp_path):
    found = asked(shop, tmp_path, text=PLAN.replace("2025-03-01", "2025-03-03"), now=START + timedelta(days=40))
    assert 0 < sum(found.units.values()) < 200
    assert any("units were exposed before the start and are left out" in note for note in found.notes())


# slices


def test_slices_are_corrected_together_and_rare_ones_never_appear(tmp_path):
    trail = usual_trail()
    trail.search("u0001", "odd", 13.8, query="my neighbour's name")
    trail.expose("u9990", "new", attributes={"device": "my own machine"}).search("u9990", "o2")
    log = trail.write(tmp_path / "log")
    found = asked(log, tmp_path, 'slices = ["attributes.device", "query"]\n' + CTR)
    assert {(each.field, each.value) for each in found.slices} == {
        ("attributes.device", "phone"),
        ("attributes.device", "desk"),
        ("query", "mug"),
        ("query", "pan"),
    }
    everything = found.to_json() + found.to_text(verbose=True) + found.to_html(page=True)
    assert "neighbour" not in everything
    assert "my own machine" not in everything
    assert "2 slices have too few units to be shown" in everything
    ordered = sorted(found.slices, key=lambda each: each.p)
    assert all(one.corrected <= other.corrected for one, other in zip(ordered, ordered[1:], strict=False))
    assert ordered[-1].corrected == pytest.approx(ordered[-1].p)
    assert max(each.corrected / each.p for each in found.slices) <= 4
    one = asked(log, tmp_path, 'rare = 1\nslices = ["query"]\n' + CTR)
    assert one.rare == 0


# faults: a sentence, and never a silent number


def broken(trail, path, more=CTR, **how):
    found = asked(trail.write(path / "log"), path, more, **how)
    assert (found.verdict, found.exit_code, found.findings) == ("broken", 3, ())
    return found.reason


def exposed_twice(number):
    """Units of which some of the control have also seen the new one."""
    trail = usual_trail()
    for i in range(number):
        trail.expose(f"u{4 * i + 2 * (i % 2):04d}", "new", 13.9)
    return trail


def test_a_unit_in_two_variants_is_left_out_counted_and_compared(shop, tmp_path):
    log = exposed_twice(1).write(tmp_path / "log")
    found = asked(log, tmp_path)
    assert found.verdict == "ship"
    assert found.units == {"control": 100, "new": 100}
    assert found.kept == {"control": 99, "new": 100}
    assert found.notes() == [
        "one variant a unit: 1 unit saw two variants or more, such as u0000; left out (control 1 of 100, new 0 of 100)"
    ]
    without = Trail([each for each in usual_events() if each.unit != "u0000"])
    assert found.findings == asked(without.write(tmp_path / "without"), tmp_path).findings


def test_more_bad_units_than_can_be_left_out_are_broken(tmp_path):
    assert tolerated(200) == 4
    assert asked(exposed_twice(4).write(tmp_path / "four"), tmp_path).verdict == "ship"
    said = broken(exposed_twice(5), tmp_path)
    assert said == "5 units saw two variants or more, such as u0000; at most 4 of 200 units can be left out"


def test_a_few_bad_units_that_are_all_in_one_variant_are_broken(tmp_path):
    trail, units = Trail(), 1_300
    for i in range(units):
        trail.expose(f"u{i:04d}", ("control", "new")[i % 2]).search(
            f"u{i:04d}", f"s{i}", clicks=[(1, 2, 3)] * (i % 3 == 0)
        )
    for i in range(12):
        trail.expose(f"u{2 * i:04d}", "new", 1)
    said = broken(trail, tmp_path)
    assert tolerated(units) == 13
    assert said.endswith("(control 12 of 650, new 0 of 650): more in one variant than chance allows")


def test_one_wrong_exposure_does_not_break_an_experiment_and_many_do(shop, tmp_path):
    one = usual_trail().expose("x", "newer")
    found = asked(one.write(tmp_path / "one"), tmp_path)
    assert found.findings == asked(shop, tmp_path).findings
    (note,) = found.notes()
    assert note.startswith("variants: 1 unit entered with a variant other than control, new, such as x to newer;")
    for i in range(9):
        one.expose(f"x{i}", "newer")
    assert "was the plan changed? 10 units entered with a variant other than control, new" in broken(one, tmp_path)


def test_an_exposure_after_the_horizon_changes_nothing(shop, tmp_path):
    trail = usual_trail().expose("u0001", "control", 14.5)
    assert asked(trail.write(tmp_path / "log"), tmp_path).findings == asked(shop, tmp_path).findings


def test_exposures_of_another_plan_are_left_out_and_many_are_a_changed_plan(tmp_path):
    made_by = "0123456789abcdef"
    trail = many(np.random.default_rng(3), 40)
    places = [i for i, each in enumerate(trail.events) if each.kind == "exposure"]

    def marked(number, hash):
        attributes = Assignment("shop", "new").exposure(hash)["attributes"]
        chosen = {*places[:number]}
        return Trail(
            [replace(each, attributes=attributes) if i in chosen else each for i, each in enumerate(trail.events)]
        )

    few = asked(marked(1, made_by).write(tmp_path / "few"), tmp_path)
    assert few.verdict == "ship"
    own = read_plan(str(tmp_path / "plan.toml")).hash
    assert (
        f"1 unit entered by an exposure of another plan, such as {made_by}, this one is {own[:12]}; left out"
        in few.notes()[0]
    )
    said = broken(marked(9, made_by), tmp_path)
    assert said.startswith(
        "the plan changed during the experiment; begin a new one: 9 units entered by an exposure of another plan"
    )
    found = asked(marked(1, own).write(tmp_path / "same"), tmp_path)
    assert found.checks[0].words == "1 exposures carry its hash"
    assert asked(str(tmp_path / "same"), tmp_path, expected=own).verdict == found.verdict
    other = asked(str(tmp_path / "same"), tmp_path, CTR + "margin = 0.3\n", expected=own)
    assert other.verdict == "broken"
    assert other.reason.startswith("the plan changed during the experiment: its hash is ")
    with pytest.raises(ConventionError, match="expected 8 digits or more"):
        asked(str(tmp_path / "same"), tmp_path, expected="abc")


def test_an_empty_variant_or_none_at_all_is_broken(tmp_path):
    trail = Trail()
    for i in range(5):
        trail.expose(f"u{i}", "control").search(f"u{i}", f"s{i}")
    assert broken(trail, tmp_path) == "variant 'new' has no units (control 5, new 0)"
    nobody = Trail().search("u", "s")
    assert broken(nobody, tmp_path / "nobody" if (tmp_path / "nobody").mkdir() is None else tmp_path) == (
        "no exposure of 'shop' is in the log"
    )


def test_no_variance_is_broken(tmp_path):
    trail = Trail()
    for i in range(10):
        trail.expose(f"u{i}", ("control", "new")[i % 2]).search(f"u{i}", f"s{i}")
    said = broken(trail, tmp_path)
    assert said.startswith("click-through, new against control: all units of each arm are alike")
    for estimate in ("bootstrap", "cuped"):
        assert "alike" in asked(str(tmp_path / "log"), tmp_path, f'{CTR}estimate = "{estimate}"\n').reason
    relative = asked(str(tmp_path / "log"), tmp_path, '[[primary]]\nmetric = "time-to-click"\n')
    assert relative.reason.endswith("variant 'control' has no level: its denominator is 0")


def ahead(trail, unit, n):
    return trail.add("click", unit, 16, search=f"{unit}-0", document="d1", event_id=f"odd{n}")


def without_search(trail, unit, n):
    trail.add("click", unit, 13.9, search=f"{unit}-0", document="d1", event_id=f"odd{n}")
    object.__setattr__(trail.events[-1], "search", None)  # as another program may have written it
    return trail


def repeated(trail, unit, n):
    return trail.add("ping", unit, 13.5, event_id=f"odd{n}").add("ping", unit, 12.5, event_id=f"odd{n}")


def unreadable(trail, unit, n):
    return trail.add("scroll", unit, 13.5, attributes={"px": ("much", "nan", "inf")[n % 3]}, event_id=f"odd{n}")


SCROLL = '[[metric]]\nname = "depth"\nevent = "scroll"\nfield = "attributes.px"\n[[primary]]\nmetric = "depth"\n'


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (ahead, "had events more than an hour in the future, such as odd0 of 2025-03-17 00:00:00 UTC"),
        (without_search, "had clicks that name no search, such as odd0"),
        (repeated, "had events with the id of another event, such as odd0 of 2025-03-13 12:00:00 UTC"),
        (unreadable, "had numbers that cannot be read, such as odd0"),
    ],
)
def test_a_few_units_with_bad_events_are_left_out_and_many_are_broken(fault, words, shop, tmp_path):
    more = CTR
    few, many_ = usual_trail(), usual_trail()
    if fault is unreadable:
        more = CTR + SCROLL
        for trail in (few, many_):
            for i in range(200):
                trail.add("scroll", f"u{i:04d}", 13.4, attributes={"px": str(100 + i)})
    for n in range(3):
        fault(few, f"u{n:04d}", n)
    for n in range(10):
        fault(many_, f"u{n:04d}", n)
    found = asked(few.write(tmp_path / "few"), tmp_path, more)
    assert (found.verdict, found.kept) == ("ship", {"control": 98, "new": 99})
    assert any(note.endswith(f"3 units {words}; left out (control 2 of 100, new 1 of 100)") for note in found.notes())
    assert f"10 units {words}; at most 4 of 200 units can be left out" in broken(many_, tmp_path, more)


BUYS = '[[primary]]\nmetric = "conversion"\n'


@pytest.mark.parametrize("method", ['method = "sequence"\ntuned = 200\n', 'method = "looks"\nlooks = 4\n'])
def test_an_experiment_before_its_first_conversion_is_too_early_and_not_broken(method, tmp_path):
    trail = Trail([each for each in usual_events() if each.kind != "conversion"])
    log = trail.write(tmp_path / "log")
    found = asked(log, tmp_path, method + BUYS, at=START + timedelta(days=4))
    assert (found.verdict, found.exit_code, found.variants) == ("continue", 3, {"new": "continue"})
    assert found.reason.startswith("too early: conversion, new against control: all units of each arm are alike")
    assert "of 14 days" in found.reason
    over = asked(log, tmp_path, method + BUYS)
    assert (over.verdict, over.reason[:11]) == ("broken", "conversion,")


def test_an_experiment_with_its_first_units_in_one_variant_is_too_early_and_not_broken(tmp_path):
    trail = Trail()
    for i in range(5):
        trail.expose(f"u{i}", "control").search(f"u{i}", f"s{i}")
    found = asked(trail.write(tmp_path / "log"), tmp_path, at=START + timedelta(days=1))
    assert found.verdict == "continue"
    assert found.reason.startswith("too early: variant 'new' has no units (control 5, new 0); the fixed method")
    for i in range(5, 40):  # 0 of 40 by chance: once in 10¹²
        trail.expose(f"u{i}", "control").search(f"u{i}", f"s{i}")
    assert asked(trail.write(tmp_path / "more"), tmp_path, at=START + timedelta(days=1)).verdict == "broken"


# events that came late


def arriving(monkeypatch, when, write):
    """Write to a log as if it were another time."""
    with monkeypatch.context() as patched:
        patched.setattr("cranfield.experiments.log_files.time.time_ns", lambda: int(when.timestamp() * 1e9))
        return write()


@pytest.mark.parametrize("packed", [False, True])
def test_events_that_arrived_after_the_horizon_are_counted_and_the_verdict_without_them_is_given(
    packed, alike, monkeypatch, tmp_path
):
    trail = many(np.random.default_rng(5), 200, lift=0.0)
    folder = tmp_path / "log"
    arriving(monkeypatch, START + timedelta(days=13.99), lambda: trail.write(folder))
    on_time = asked(folder, tmp_path)
    assert (on_time.verdict, on_time.without_late) == ("not shown", None)
    late = Trail()
    for i in range(1, 200, 2):  # the new variant's clicks come in a week later
        late.search(f"u{i:04d}", f"late{i}", 13.5, clicks=[(1, 2.0, None)], event_id=f"late{i}")
        late.events[-1] = replace(late.events[-1], event_id=f"click{i}")
    arriving(monkeypatch, START + timedelta(days=21), lambda: late.write(folder))
    if packed:
        with EventLog(folder) as log:
            log.pack()
    found = asked(folder, tmp_path, now=START + timedelta(days=30))
    assert found.verdict == "ship"
    assert found.without_late == (200, "not shown", on_time.reason)
    assert "200 events from before the horizon arrived after it; without them: not shown: no primary" in found.to_text()
    assert json.loads(found.to_json())["without_late"]["verdict"] == "not shown"
    assert asked(alike, tmp_path).without_late is None  # a log that was brought in afterwards says nothing of arrivals


def test_events_that_happened_after_the_horizon_are_counted_and_left_out(shop, tmp_path):
    trail = usual_trail()
    for i in range(1, 200, 2):
        trail.search(f"u{i:04d}", f"after{i}", 14.2)
    found = asked(trail.write(tmp_path / "log"), tmp_path)
    assert found.findings == asked(shop, tmp_path).findings
    assert found.after - asked(shop, tmp_path).after == 100
    assert f"{found.after} events after the horizon left out" in found.to_text()


def test_leaving_out_what_is_tolerated_keeps_false_verdicts_near_the_nominal_level():
    """Units of one variant that differ by one standard deviation are left out: the level moves as `tolerated` says."""
    rng, level = np.random.default_rng(1), []
    for units in (60, 600):
        left_out = tolerated(units)
        values = rng.normal(size=(4_000, 2, units // 2))
        values[:, 0, :left_out] += 1.0
        kept, other = values[:, 0, left_out:], values[:, 1]
        kept = kept - 2 * left_out / units  # so that with the units that are left out both variants are equal
        error = np.sqrt(kept.var(axis=1, ddof=1) / kept.shape[1] + other.var(axis=1, ddof=1) / other.shape[1])
        level.append(float((np.abs(kept.mean(axis=1) - other.mean(axis=1)) > 1.97 * error).mean()))
    assert all(0.04 <= each <= 0.075 for each in level)  # 6.3 % with a standard error of 0.4


def test_a_wrong_sample_ratio_is_broken_at_any_time(tmp_path):
    trail = Trail()
    for i in range(600):
        trail.expose(f"u{i}", "control" if i % 3 else "new", day=i / 100).search(f"u{i}", f"s{i}", day=i / 100)
    log = trail.write(tmp_path / "log")
    for when, how in ((START + timedelta(days=8), "at any time"), (AFTER, "looked at once")):
        found = asked(log, tmp_path, at=when)
        assert found.verdict == "broken"
        assert found.reason.startswith("sample ratio mismatch: control 400, new 200;")
        assert found.reason.endswith(how)


def test_impressions_lost_in_one_arm_are_broken_and_elsewhere_a_note(tmp_path):
    trail = usual_trail()
    lost = {f"u{i:04d}" for i in range(1, 80, 2)}
    less = Trail([each for each in trail.events if each.kind == "exposure" or each.unit not in lost])
    assert "more in one arm than chance allows" in broken(less, tmp_path)
    even = {f"u{i:04d}" for i in range(6)}
    log = Trail([each for each in trail.events if each.kind == "exposure" or each.unit not in even]).write(
        tmp_path / "even"
    )
    found = asked(log, tmp_path)
    assert found.verdict == "ship"
    assert (
        "impressions: 6 units were exposed without a later impression (control 3 of 100, new 3 of 100)" in found.notes()
    )
    only = Trail([each for each in trail.events if each.kind == "exposure"]).write(tmp_path / "only")
    assert asked(only, tmp_path).reason == "no exposed unit has an impression"
    early = asked(only, tmp_path, at=START + timedelta(days=1))
    assert (early.verdict, early.reason[:45]) == ("continue", "too early: no exposed unit has an impression;")


def test_plans_that_cannot_be_decided_are_refused(shop, tmp_path):
    with pytest.raises(DataError, match=r"expected a \[\[primary\]\] metric"):
        asked(shop, tmp_path, "")
    with pytest.raises(DataError, match=r"expected a \[horizon\]"):
        asked(shop, tmp_path, text=PLAN.replace("days = 14", ""))
    with pytest.raises(DataError, match=r"expected a metric of the plan in \[winsorise\], found 'revenue'"):
        asked(shop, tmp_path, CTR + "[winsorise]\nrevenue = 0.9\n")
    with pytest.raises(DataError, match="expected a size such as 3GB"):
        asked(shop, tmp_path, memory="much")
    assert asked(shop, tmp_path, memory="500MB").verdict == "ship"
    for slices in ('"device"', '["time"]', "[3]"):
        with pytest.raises(BadLineError, match="expected slices"):
            asked(shop, tmp_path, f"slices = {slices}\n{CTR}")


# over time


@pytest.mark.parametrize("method", ["", 'method = "looks"\nlooks = 4\n', 'method = "sequence"\ntuned = 200\n'])
def test_the_interval_over_time_ends_with_the_one_that_decides(method, shop, tmp_path):
    found = asked(shop, tmp_path, method + CTR, history=True)
    assert found.history[-1].effect == pytest.approx(found.findings[0].difference)
    assert len(found.history) == (4 if "looks" in method else 14)
    assert [each.day for each in found.since] == [1.0, 2.0, 3.0][: len(found.since)]
    assert len(chart(found).vega_lite()["vconcat"]) == 2
    page = found.to_html(page=True)
    assert page.count("<svg") >= 2
    assert "difference so far, by day" in page
    with pytest.raises(ConventionError, match="no history to draw"):
        chart(replace(found, history=(), since=()))


# interleaving


def mixed(rng, keys, units=120, better=0.75, sealed_for=True):
    """Units whose lists are mixed, and who click on what the better one has brought."""
    trail, coin = Trail(), random.Random(1)
    for i in range(units):
        unit = f"u{i}"
        trail.expose(unit, "mixed", day=i / 20)
        for n in range(1 + int(rng.integers(3))):
            shown = interleave({"old": ["a", "b", "c", "d"], "new": ["w", "x", "y", "z"]}, 4, coin)
            search = f"{unit}-{n}"
            trail.add(
                *("impression", unit, i / 20, 1 + n),
                search=search,
                shown=shown.documents,
                credit=shown.seal(keys, search if sealed_for else ""),
            )
            wanted = "new" if rng.random() < better else "old"
            ranks = [rank for rank, team in enumerate(shown.teams, 1) if team == wanted]
            trail.add("click", unit, i / 20, 5 + n, search=search, document=shown.documents[ranks[0] - 1])
    return trail


MIXED = PLAN.replace("control = 0.5\nnew = 0.5", "mixed = 1.0")


@pytest.mark.parametrize(("better", "verdict"), [(0.75, "ship"), (0.25, "stop"), (0.5, "not shown")])
def test_interleaving_decides_by_what_units_prefer(better, verdict, tmp_path):
    keys = Keys.new()
    log = mixed(np.random.default_rng(1), keys, better=better, sealed_for=better != 0.5).write(tmp_path / "log")
    found = asked(log, tmp_path, '[interleave]\nmethod = "team-draft"\n', text=MIXED, keys=keys)
    assert found.verdict == verdict
    (pair,) = found.preferences.pairs
    assert (pair.system, pair.control) == ("new", "old")
    assert pair.wins + pair.losses + pair.ties == 120
    assert pair.delta.value == pytest.approx((pair.wins + pair.ties / 2) / 120 - 0.5)  # Chapelle et al. (2012)
    assert pair.by_search.value == pytest.approx(better - 0.5, abs=0.1)
    assert (pair.sign < 0.05) == (verdict != "not shown")
    assert "Δ" in found.reason
    assert json.loads(found.to_json())["preferences"]["pairs"][0]["wins"] == pair.wins
    assert "new against old" in found.to_text()


def test_interleaving_looks_and_margins_and_what_is_missing(tmp_path):
    keys = Keys.new()
    log = mixed(np.random.default_rng(1), keys, better=0.5).write(tmp_path / "log")
    table = '[interleave]\nmethod = "team-draft"\n'
    assert asked(log, tmp_path, table + "margin = 0.3\n", text=MIXED, keys=keys).verdict == "same"
    sequence = asked(log, tmp_path, 'method = "sequence"\ntuned = 120\n' + table, text=MIXED, keys=keys)
    assert sequence.verdict == "not shown"
    low, high = sequence.preferences.pairs[0].sequential
    assert low < 0.5 < high
    other = asked(log, tmp_path, table, text=MIXED, keys=Keys.new())
    assert other.verdict == "broken"
    assert "have a token that cannot be used: 242 unreadable" in other.reason
    early = asked(log, tmp_path, table, text=MIXED, keys=keys, at=START + timedelta(days=8))
    assert early.verdict == "continue"
    looks = asked(
        log, tmp_path, 'method = "looks"\nlooks = 14\n' + table, text=MIXED, keys=keys, at=START + timedelta(days=1)
    )
    assert decided_by_nothing(looks).startswith("this look cannot decide: it may spend only 1e-16 of the error rate")
    assert math.isnan(looks.preferences.pairs[0].delta.low)
    with pytest.raises(DataError, match="expected credit of clicks, dwell"):
        asked(log, tmp_path, table + 'credit = "love"\n', text=MIXED, keys=keys)
    bare = Trail().expose("u", "mixed").search("u", "s").write(tmp_path / "bare")
    assert asked(bare, tmp_path, table, text=MIXED, keys=keys).reason.startswith("no impression of these units carries")


SEQUENCE = 'method = "sequence"\ntuned = 120\n'


@pytest.mark.parametrize("method", [SEQUENCE, 'method = "looks"\nlooks = 2\n'])
def test_interleaving_before_its_first_click_is_too_early_and_not_broken(method, tmp_path):
    keys, table = Keys.new(), '[interleave]\nmethod = "team-draft"\n'
    events = mixed(np.random.default_rng(1), keys).events
    log = Trail([each for each in events if each.kind != "click"]).write(tmp_path / "log")
    early = asked(log, tmp_path, method + table, text=MIXED, keys=keys, at=START + timedelta(days=7))
    assert (early.verdict, early.exit_code) == ("continue", 3)
    assert early.reason.startswith("too early: new against old, 120 units: none prefers either; ")
    over = asked(log, tmp_path, method + table, text=MIXED, keys=keys)
    assert (over.verdict, over.reason) == ("broken", "new against old, 120 units: none prefers either")
    bare = Trail().expose("u", "mixed").search("u", "s").write(tmp_path / "bare")
    found = asked(bare, tmp_path, SEQUENCE + table, text=MIXED, keys=keys, at=START + timedelta(days=1))
    assert found.verdict == "continue"
    assert found.reason.startswith("too early: no impression of these units carries the token of an interleaved list; ")


def test_interleaving_without_an_interval_with_finite_ends_says_so(tmp_path):
    keys, table = Keys.new(), 'method = "sequence"\ntuned = 1000000000\n[interleave]\nmethod = "team-draft"\n'
    log = mixed(np.random.default_rng(1), keys).write(tmp_path / "log")
    over = asked(log, tmp_path, table, text=MIXED, keys=keys)
    assert over.sentence() == "not shown: new: too few units for a finite interval"
    early = asked(log, tmp_path, table, text=MIXED, keys=keys, at=START + timedelta(days=7))
    assert early.sentence().startswith("continue: new: too few units for a finite interval; 7.0 of 14 days")


# the command


def test_the_command_says_the_verdict_first_and_gates(shop, alike, tmp_path):
    plan = plan_file(tmp_path, CTR)
    said = cranfield("online", "analyze", shop, plan, columns=100)
    assert said.code == 0
    assert said.out.startswith("ship: new: click-through is better")
    assert len(said.both.splitlines()) <= 24
    assert cranfield("online", "analyze", shop, plan, "--gate").code == 0
    assert cranfield("online", "analyze", alike, plan, "--gate").code == 1
    assert cranfield("online", "analyze", alike, plan).code == 0
    running = cranfield("online", "analyze", shop, plan, "--gate", "--at", "2025-03-05")
    assert running.code == 3
    assert running.out.startswith("continue: the fixed method gives no verdict")
    changed = cranfield("online", "analyze", shop, plan, "--hash", "0" * 12)
    assert changed.code == 3
    assert changed.out.startswith("broken: the plan changed during the experiment")


def test_the_command_writes_json_csv_and_a_page(shop, tmp_path):
    plan = plan_file(tmp_path, CTR)
    values = json.loads(cranfield("online", "analyze", shop, plan, "--format", "json").out)
    assert values["verdict"] == "ship"
    assert values["plan"] == read_plan(plan).hash
    assert values["findings"][0]["difference"]["low"] > 0
    table = cranfield("online", "analyze", shop, plan, "--format", "csv").out.splitlines()
    assert table[0].startswith("metric,variant,role,control,value,difference,low,high,")
    page = tmp_path / "verdict.html"
    assert cranfield("online", "analyze", shop, plan, "--format", "html", "-o", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "<svg" in text
    assert read_plan(plan).hash[:12] in text
    assert "ship: new" in text


def test_what_cannot_be_read_is_a_sentence(shop, tmp_path):
    plan = plan_file(tmp_path, '[[primary]]\nmetric = "clickthru"\n')
    said = cranfield("online", "analyze", shop, plan)
    assert said.code == 3
    assert "plan.toml:13: no metric 'clickthru'; there are click-through" in said.err
    assert cranfield("online", "analyze", tmp_path / "nowhere", plan_file(tmp_path, CTR)).code == 3
    assert cranfield("online", "metrics").code == 0
    assert "Fox et al. (2005)" in cranfield("online", "metrics", "success").out
    assert verb(shop, plan_file(tmp_path, CTR), at="2025-03-20").verdict == "ship"
    assert Path(shop).exists()


def test_only_the_fields_that_a_plan_looks_at_are_read(shop, tmp_path):
    def fields(more):
        with EventLog(shop) as opened, UnitQueries(opened, read_plan(plan_file(tmp_path, more))) as gathering:
            gathering.enter(START, AFTER)
            return {row[0] for row in gathering.rows("DESCRIBE cranfield_kept")} - {"number", "first", "id"}

    usual = {"time", "kind", "search", "position"}
    assert fields(CTR) == usual
    assert fields('[[primary]]\nmetric = "revenue"\n') == usual | {"value"}
    assert fields('slices = ["query"]\n' + CTR) == usual | {"query"}
    bots = '[[filter]]\nname = "bots"\nfield = "attributes.agent"\nequals = "bot"\n'
    assert fields(CTR + bots) == usual | {"drop_0"}


def test_the_page_is_headed_by_its_verdict_and_counts_whole_days(shop, tmp_path):
    found = asked(shop, tmp_path, history=True)
    assert "<h1>shop: ship</h1>" in found.to_html(page=True)
    for drawn in chart(found).charts:
        assert drawn.x.format == "d"
        assert all(day == int(day) for day in drawn.x.ticks)
