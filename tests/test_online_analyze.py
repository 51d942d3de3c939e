"""From a log and a plan to a verdict: each verdict, each fault, by any method, and the command."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from cranfield.errors import BadLineError, ConventionError, DataError
from cranfield.online import Keys, interleave
from cranfield.online.analyze import analyze
from cranfield.online.assign import Assignment
from cranfield.online.gather import Gathering
from cranfield.online.log import Log
from cranfield.online.metrics import problem
from cranfield.online.plan import read_plan
from cranfield.report.figures import chart
from cranfield.workspace.experiments import analyze as verb
from online_events import AFTER, PLAN, START, Trail, many, plan_file
from shell import cranfield

CTR = '[[primary]]\nmetric = "click-through"\n'


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """200 units; those who see the new one click much more."""
    return many(np.random.default_rng(3)).write(tmp_path_factory.mktemp("shop") / "log")


@pytest.fixture(scope="module")
def alike(tmp_path_factory):
    return many(np.random.default_rng(5), 400, lift=0.0).write(tmp_path_factory.mktemp("alike") / "log")


def asked(log, path, more=CTR, now=AFTER, text=PLAN, **how):
    plan = read_plan(plan_file(path, more, text), problem)
    with Log(log) as opened:
        return analyze(opened, plan, now, **how)


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
    assert f"it could have shown {one.detectable:.4g} of click-through (power 0.8)" in found.reason
    assert f"a new plan of about {one.needed:,} units would show half of that" in found.reason
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
    assert found.reason.startswith("the fixed method says nothing before its horizon; 7.0 of 14 days and ")
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


def test_a_sequence_decides_at_any_time_and_is_wider(shop, tmp_path):
    sequence = 'method = "sequence"\ntuned = 200\n' + CTR
    found, fixed = asked(shop, tmp_path, sequence), asked(shop, tmp_path)
    ratio = (found.findings[0].difference.high - found.findings[0].difference.value) / (
        fixed.findings[0].difference.high - fixed.findings[0].difference.value
    )
    assert ratio == pytest.approx(3.035 / 1.96, rel=0.01)
    assert asked(shop, tmp_path, sequence, at=START + timedelta(days=2)).findings
    with pytest.raises(DataError, match="needs tuned, or units"):
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


def test_an_experiment_of_the_same_variants_that_differ_is_broken(shop, alike, tmp_path):
    found = asked(shop, tmp_path, "aa = true\n" + CTR)
    assert (found.verdict, found.exit_code) == ("broken", 3)
    assert "all variants are the same, and yet click-through differs" in found.reason
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
    with pytest.raises(DataError, match="ranks need one value a unit"):
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


def test_orders_per_session_of_tea_tasting(tmp_path):
    tea = pytest.importorskip("tea_tasting")
    trail = Trail()
    for row in tea.make_users_data(rng=42).to_pylist():
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
    assert [round(100 * each, 2) for each in found.ratio] == [8.77, -0.89, 19.38]
    assert round(found.p, 5) == 0.07624


# who is in


def test_overrides_are_left_out_by_mark_and_by_plan(shop, tmp_path):
    trail = many(np.random.default_rng(3))
    trail.expose("tester", "new", 1, attributes={"override": "true"})
    trail.search("tester", "t1", 1, 5)
    log = trail.write(tmp_path / "log")
    assert asked(log, tmp_path).findings == asked(shop, tmp_path).findings
    fewer = asked(log, tmp_path, CTR + '[overrides]\nu0001 = "new"\n')
    assert fewer.units == {"control": 100, "new": 99}


def test_filters_say_what_they_left_out_and_the_sample_ratio_is_tested_again(tmp_path):
    trail = many(np.random.default_rng(3))
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
    trail = many(np.random.default_rng(3))
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
    assert "2 more values of slices are too rare to be shown" in everything
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


def test_a_unit_in_two_variants_is_broken(tmp_path):
    trail = many(np.random.default_rng(3), 40).expose("u0001", "control", 13.9)
    assert broken(trail, tmp_path) == "a unit has seen two variants or more, such as 'u0001'"


def test_a_plan_changed_midway_is_broken(tmp_path):
    made_by = "0123456789abcdef"
    trail = many(np.random.default_rng(3), 40)
    trail.events[0] = replace(trail.events[0], attributes=Assignment("shop", "new").exposure(made_by)["attributes"])
    said = broken(trail, tmp_path)
    assert said.startswith("the plan was changed mid-way: 1 exposures from 2025-03-")
    assert "were made by another plan (0123456789ab)" in said
    own = read_plan(str(tmp_path / "plan.toml")).hash
    trail.events[0] = replace(trail.events[0], attributes={"plan": own})
    found = asked(trail.write(tmp_path / "same"), tmp_path)
    assert found.checks[0].words == "1 exposures carry its hash"
    assert asked(str(tmp_path / "same"), tmp_path, expected=own).verdict == found.verdict
    other = asked(str(tmp_path / "same"), tmp_path, CTR + "margin = 0.3\n", expected=own)
    assert other.verdict == "broken"
    assert other.reason.startswith("the plan was changed mid-way: its hash is ")
    with pytest.raises(ConventionError, match="expected 8 digits or more"):
        asked(str(tmp_path / "same"), tmp_path, expected="abc")


def test_a_variant_that_the_plan_does_not_have_is_broken(tmp_path):
    trail = many(np.random.default_rng(3), 40).expose("x", "newer")
    assert "expected exposures to control, new, found 'newer' (1 units, such as 'x')" in broken(trail, tmp_path)


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


def test_a_clock_a_day_ahead_is_broken(tmp_path):
    trail = many(np.random.default_rng(3), 40).add(
        "click", "u0001", 16, search="u0001-0", document="d1", event_id="odd"
    )
    assert broken(trail, tmp_path).startswith(
        "1 events are more than an hour ahead: event 'odd' is of 2025-03-17T00:00:00Z, now it is 2025-03-16T"
    )


def test_a_click_without_a_search_is_broken(tmp_path):
    trail = many(np.random.default_rng(3), 40)
    at = next(i for i, each in enumerate(trail.events) if each.kind == "click")
    object.__setattr__(trail.events[at], "search", None)  # as another program may have written it
    assert broken(trail, tmp_path) == f"1 clicks name no search, such as event 'e{at}'"


def test_the_same_id_on_two_days_is_broken(tmp_path):
    trail = many(np.random.default_rng(3), 40).add("ping", "u0001", 13.5, event_id="e0")
    said = broken(trail, tmp_path)
    assert said.startswith("1 events repeat the id of another, such as 'e0' of 2025-03-")


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
    trail = many(np.random.default_rng(3))
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
        "impressions: 6 units were exposed without an impression since (control 3 of 100, new 3 of 100)"
        in found.notes()
    )
    only = Trail([each for each in trail.events if each.kind == "exposure"]).write(tmp_path / "only")
    assert asked(only, tmp_path).reason == "no unit that was exposed has an impression"


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
        with pytest.raises(BadLineError, match="expected slices as a list"):
            asked(shop, tmp_path, f"slices = {slices}\n{CTR}")


# over time


@pytest.mark.parametrize("method", ["", 'method = "looks"\nlooks = 4\n', 'method = "sequence"\ntuned = 200\n'])
def test_the_interval_over_time_ends_with_the_one_that_decides(method, shop, tmp_path):
    found = asked(shop, tmp_path, method + CTR, history=True)
    assert found.history[-1].effect == pytest.approx(found.findings[0].difference)
    assert len(found.history) == (4 if "looks" in method else 14)
    assert [each.day for each in found.since] == [1.0, 2.0, 3.0][: len(found.since)]
    spec = chart(found)
    assert len(spec["vconcat"]) == 2
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
    assert "tokens can be opened: are these the keys that sealed them?" in other.reason
    early = asked(log, tmp_path, table, text=MIXED, keys=keys, at=START + timedelta(days=8))
    assert early.verdict == "continue"
    with pytest.raises(DataError, match="expected credit of clicks, dwell"):
        asked(log, tmp_path, table + 'credit = "love"\n', text=MIXED, keys=keys)
    bare = Trail().expose("u", "mixed").search("u", "s").write(tmp_path / "bare")
    assert asked(bare, tmp_path, table, text=MIXED, keys=keys).reason.startswith("no impression of these units carries")


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
    assert running.out.startswith("continue: the fixed method says nothing")
    changed = cranfield("online", "analyze", shop, plan, "--hash", "0" * 12)
    assert changed.code == 3
    assert changed.out.startswith("broken: the plan was changed mid-way")


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
        with Log(shop) as opened, Gathering(opened, read_plan(plan_file(tmp_path, more), problem)) as gathering:
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
    for drawn in chart(found)["vconcat"]:
        axis = drawn["layer"][0]["encoding"]["x"]["axis"]
        assert axis["format"] == "d"
        assert all(day == int(day) for day in axis["values"])
