"""Metrics of experiments: each by an example worked by hand, own ones of a plan, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cranfield.base.errors import BadLineError, ConventionError
from cranfield.commands.listings import online_metric, online_metrics
from cranfield.experiments.decision import compare_variant
from cranfield.experiments.log import EventLog
from cranfield.experiments.metrics import METRICS, catalogue, metric_named, metric_problem
from cranfield.experiments.metrics.metric import KINDS
from cranfield.experiments.plan import MetricChoice, read_plan
from cranfield.experiments.unit_queries import UnitQueries
from online_events import AFTER, START, Trail, plan_file

DOCS = Path(__file__).resolve().parents[1] / "docs" / "experiments.md"


def example() -> Trail:
    """Two units an arm, three searches each; b2 comes back after a week."""
    trail = Trail()
    for unit, variant in (("a1", "control"), ("a2", "control"), ("b1", "new"), ("b2", "new")):
        trail.expose(unit, variant)
    trail.search("a1", "s1", clicks=[(2, 8, 40)])
    trail.search("a1", "s2", second=61, query="cup")
    trail.search("a2", "s3", clicks=[(1, 4, 10), (3, 20, 29)])
    trail.add("conversion", "a2", second=99, value=12.0, session="a2-0")
    trail.search("b1", "s4")
    trail.search("b2", "s5", clicks=[(1, 2, 31)])
    trail.search("b2", "s6", day=8, clicks=[(4, 6, None)])
    trail.add("conversion", "b2", second=70, value=5.0, session="b2-0")
    trail.add("conversion", "b2", day=8, second=70, value=7.0, session="b2-8")
    return trail


WORKED = {  # control, new; new in its first week
    "click-through": (2 / 3, 2 / 3, 1 / 2),
    "abandonment": (1 / 3, 1 / 3, 1 / 2),
    "clicks": (3 / 3, 2 / 3, 1 / 2),
    "clicks@1": (1 / 3, 1 / 3, 1 / 2),
    "reformulation": (1 / 3, 0.0, 0.0),
    "time-to-click": ((8 + 4) / 2, (2 + 6) / 2, 2.0),
    "reciprocal-rank": ((1 / 2 + 0 + 1) / 3, (0 + 1 + 1 / 4) / 3, 1 / 2),
    "pskip": ((1 + 1) / (2 + 3), (0 + 3) / (1 + 4), 0.0),
    "success": (1 / 3, 1 / 3, 1 / 2),
    "success(seconds=10)": (2 / 3, 1 / 3, 1 / 2),
    "searches": (3 / 2, 3 / 2, 1.0),
    "sessions": (1.0, 3 / 2, 1.0),
    "conversion": (1 / 2, 1 / 2, 1 / 2),
    "revenue": (12 / 2, 12 / 2, 5 / 2),
}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return example().write(tmp_path_factory.mktemp("log") / "log")


def levels(log, path, more, estimate="plain"):
    plan = read_plan(plan_file(path, more))
    with EventLog(log) as opened, UnitQueries(opened, plan) as gathering:
        gathering.enter(START, AFTER)
        gathering.tabulate()
        rng = np.random.default_rng(0)
        found = [compare_variant(each, gathering.numbers(each), "control", "new", rng) for each in gathering.metrics]
    return [(each.control, each.value) for each in found]


@pytest.mark.parametrize("name", WORKED)
def test_a_metric_is_what_one_works_out_by_hand(name, log, tmp_path):
    control, new, first_week = WORKED[name]
    asked = f'[[primary]]\nmetric = "{name}"\n[[guardrail]]\nmetric = "{name}"\nwindow = 7\nmargin = 1\n'
    whole, week = levels(log, tmp_path, asked)
    assert whole == pytest.approx((control, new))
    assert week == pytest.approx((control, first_week))


def test_every_metric_has_a_worked_example():
    assert {type(metric_named(name)) for name in WORKED} == {*METRICS.values()}


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_says_all_that_help_and_docs_show(name):
    page = next(row for row in catalogue() if row["name"] == name)
    assert page["about"].endswith(".")
    assert page["kind"] in KINDS
    assert page["direction"] in ("up", "down")
    assert page["formula"]
    assert metric_named(str(metric_named(name))).values == metric_named(name).values
    assert name in online_metrics().to_text()
    assert page["formula"] in online_metric(name).to_text()
    row = f"| `{name}` | {page['kind']} | {page['direction']} | {page['formula']} |"
    assert row in DOCS.read_text(encoding="utf-8"), row


OWN = {  # control, new, of the units' values by hand
    'event = "click"': (3 / 2, 2 / 2),
    'event = "dwell"\nfield = "value"': ((40 + 10 + 29) / 2, 31 / 2),
    'event = "dwell"\nfield = "value"\neach = "max"': ((40 + 29) / 2, 31 / 2),
    'event = "dwell"\nfield = "value"\neach = "mean"': ((40 + 19.5) / 2, 31 / 2),
    'event = "click"\nwhere = {field = "document", equals = ["d1", "d3"]}': (2 / 2, 1 / 2),
    'event = "impression"\nwhere = {field = "query", matches = "^c"}': (1 / 2, 0.0),
    'kind = "proportion"\nevent = "click"\nwhere = {field = "position", equals = "3"}': (1 / 2, 0.0),
    'kind = "ratio"\nevent = "conversion"\nfield = "value"\nover = {event = "impression"}': (12 / 3, 12 / 3),
    'kind = "ratio"\nevent = "click"\nover = {event = "dwell", field = "value"}': (3 / 79, 2 / 31),
    'kind = "quantile"\nevent = "impression"': (1.5, 1.5),
    'kind = "quantile"\nq = 0.9\nevent = "impression"': (1.9, 1.9),
}


@pytest.mark.parametrize("declared", OWN)
def test_a_metric_of_the_plan_is_what_one_works_out_by_hand(declared, log, tmp_path):
    (found,) = levels(log, tmp_path, f'[[primary]]\nmetric = "own"\n[[metric]]\nname = "own"\n{declared}\n')
    assert found == pytest.approx(OWN[declared])


BAD = {
    'kind = "median"\nevent = "click"': "expected kind as one of mean, ratio, proportion, quantile, found 'median'",
    'kind = "mean"': "expected event as text, found none",
    'event = "click"\nfield = "colour"': "expected a field of event_id, time",
    'event = "click"\nsql = "drop table"': "found 'sql'",
    'event = "click"\neach = "max"': "each only together with field",
    'event = "click"\nkind = "ratio"': "expected `over` with kind = 'ratio'",
    'event = "click"\nover = {event = "dwell"}': "expected `over` with kind = 'ratio'",
    'event = "click"\nkind = "ratio"\nover = 3': "expected over as a table",
    'event = "click"\nkind = "proportion"\nfield = "value"': "neither field nor each for a proportion",
    'event = "click"\nkind = "quantile"\nq = 1': "expected q as a number between 0 and 1, found 1",
    'event = "click"\nwhere = {field = "query"}': "either equals or matches",
    'event = "click"\nwhere = {field = "query", matches = "("}': "expected a regular expression",
    'event = "click"\nwhere = 3': "expected where as a table",
    'event = "click"\ndirection = "left"': "expected direction as one of up, down",
}


@pytest.mark.parametrize("declared", BAD)
def test_a_metric_of_the_plan_that_makes_no_sense_is_refused_with_file_and_line(declared, tmp_path):
    path = plan_file(tmp_path, f'[[primary]]\nmetric = "own"\n[[metric]]\nname = "own"\n{declared}\n')
    with pytest.raises(BadLineError, match=r"plan.toml:\d+: ") as refused:
        read_plan(path)
    assert BAD[declared] in str(refused.value)


def test_text_of_a_plan_never_becomes_sql(log, tmp_path):
    asked = """[[primary]]\nmetric = "own"\n[[metric]]\nname = "own"\nevent = "click' OR true --"
where = {field = "attributes.x'] OR true --", equals = ["' OR true --"]}\n"""
    assert levels(log, tmp_path, asked) == [(0.0, 0.0)]


def test_names_that_do_not_exist_and_parameters_that_do_not_fit_are_problems():
    assert metric_problem(MetricChoice("click-through"), ()) is None
    assert "no metric 'clickthru'; there are click-through" in str(metric_problem(MetricChoice("clickthru"), ()))
    assert "no parameter 'k'" in str(metric_problem(MetricChoice("revenue", parameters={"k": 3}), ()))
    assert "k must be a whole number" in str(metric_problem(MetricChoice("clicks", parameters={"k": 0}), ()))
    own = [{"name": "mine", "event": "click"}]
    assert "no parameters for a metric of the plan" in str(
        metric_problem(MetricChoice("mine", parameters={"k": 0}), own)
    )
    with pytest.raises(ConventionError, match="no metric"):
        online_metric("nonsense")
    assert json.loads(online_metric("clicks@5").to_json())["parameters"][0]["name"] == "k"
