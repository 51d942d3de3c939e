"""Assignment by hashing and the plans that it reads: published vectors, four languages, promises over many units."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from cranfield.base.errors import BadLineError, DataError
from cranfield.experiments.assignment import Assignment, assign, assign_one, assignments, point, variant_at
from cranfield.experiments.plan import Filter, MetricChoice, read_plan, read_plans
from pages import blocks
from shell import EXAMPLES, cranfield

VECTORS = {
    ("ranker-2026", "alice"): 0.5096528845604891,
    ("ranker-2026", "bob"): 0.7542789715766121,
    ("checkout", "alice"): 0.6481778003865872,
    ("ranker-2026", "Zoë"): 0.16690588313629617,
}
PAGE = Path(__file__).resolve().parents[1] / "docs" / "assignment.md"
UNITS = [f"user-{i}" for i in range(4000)]
LEAST = 'name = "x"\n[variants]\na = 0.5\nb = 0.5\n'
NODE = "/usr/bin/node"


def from_page(language: str) -> str:
    return next(block.text for block in blocks(PAGE) if block.language == language)


def plan_of(folder: Path, text: str = LEAST, name: str = "plan.toml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_plan(str(path))


# the hash


@pytest.mark.parametrize(("pair", "expected"), VECTORS.items())
def test_a_point_is_the_published_one(pair, expected):
    assert point(*pair) == expected


def test_thirteen_digits_of_alice_are_as_published():
    assert f"{round(point('ranker-2026', 'alice') * 16**13):013x}" == "82789c877fd65"


def test_the_sql_of_the_page_gives_the_same_points():
    duckdb = pytest.importorskip("duckdb")
    points = [row[0] for row in duckdb.sql(from_page("sql")).fetchall()]
    assert points == [point("ranker-2026", unit) for unit in ("alice", "bob", "Zoë")]


def test_the_shell_of_the_page_gives_the_same_points():
    for (salt, unit), expected in VECTORS.items():
        script = f"{from_page('sh')}\npoint '{salt}' '{unit}'"
        answer = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
        assert float(answer.stdout) == expected


@pytest.mark.skipif(not Path(NODE).exists(), reason="needs node")
def test_the_javascript_of_the_page_gives_the_same_points_in_node():
    calls = f"Promise.all({json.dumps(list(VECTORS))}.map((pair) => point(...pair))).then((p) => console.log(JSON.stringify(p)))"
    script = "globalThis.crypto ??= require('node:crypto').webcrypto;\n" + from_page("js") + calls
    answer = subprocess.run([NODE, "-e", script], capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout) == list(VECTORS.values())


@pytest.mark.slow
def test_the_javascript_of_the_page_gives_the_same_points_in_chromium(browser):
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
    from threading import Thread

    class Empty(SimpleHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>x</title>")

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Empty) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_context().new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        run = f"(pairs) => {{ {from_page('js')} return Promise.all(pairs.map((pair) => point(...pair))); }}"
        assert page.evaluate(run, [list(pair) for pair in VECTORS]) == list(VECTORS.values())
        server.shutdown()


def test_points_are_uniform_and_independent_between_salts_against_scipy():
    from scipy import stats

    one, other = (np.array([point(salt, unit) for unit in UNITS]) for salt in ("one", "other"))
    assert stats.kstest(one, "uniform").pvalue > 0.001
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(len(UNITS))


@pytest.mark.parametrize("salt", ["", "a/b"])
def test_a_salt_with_a_slash_is_refused(salt):
    with pytest.raises(DataError, match="expected a salt without /"):
        point(salt, "alice")


def test_a_unit_that_is_no_unicode_is_refused():
    with pytest.raises(DataError, match="expected a unit in Unicode"):
        point("a", "\ud800")


def test_a_unit_may_hold_a_slash():
    assert point("a", "b/c") != point("a", "b")


def test_variants_lie_side_by_side_and_the_last_ends_at_one():
    thirds = {"a": 0.333333, "b": 0.333333, "c": 0.333333}
    assert [variant_at(thirds, where) for where in (0.0, 0.333332, 0.333333, 0.7, 0.9999999)] == [
        "a",
        "a",
        "b",
        "c",
        "c",
    ]


# layers, overrides, holdouts


def three(tmp_path, end=0.3):
    layer = '[layer]\nname = "l"\n'
    plan_of(tmp_path, f'name = "one"\ntraffic = [0.0, {end}]\n{layer}[variants]\na = 0.5\nb = 0.5\n', "1.toml")
    plan_of(tmp_path, f'name = "two"\ntraffic = [0.5, 1.0]\n{layer}[variants]\nc = 0.2\nd = 0.8\n', "2.toml")
    plan_of(tmp_path, 'name = "three"\n[variants]\ne = 0.5\nf = 0.5\n[overrides]\nuser-7 = "f"\n', "3.toml")
    return read_plans([str(tmp_path)])


def test_experiments_of_a_layer_exclude_each_other_and_layers_overlap(tmp_path):
    plans = three(tmp_path)
    of = {unit: {one.experiment: one.variant for one in assign(plans, unit)} for unit in UNITS}
    assert not any({"one", "two"} <= each.keys() for each in of.values())
    assert all("three" in each for each in of.values())
    shares = [sum("one" in each for each in of.values()), sum("two" in each for each in of.values())]
    assert np.allclose(np.array(shares) / len(UNITS), [0.3, 0.5], atol=0.03)
    both = [each for each in of.values() if "one" in each]
    assert abs(np.mean([(each["one"] == "a") == (each["three"] == "e") for each in both]) - 0.5) < 0.06
    assert abs(np.mean([each["two"] == "c" for each in of.values() if "two" in each]) - 0.2) < 0.03


def test_ramp_up_moves_nobody(tmp_path):
    before, after = three(tmp_path)[0], three(tmp_path, end=0.5)[0]
    was = {unit: assign_one(before, unit) for unit in UNITS}
    now = {unit: assign_one(after, unit) for unit in UNITS}
    assert all(now[unit] == one for unit, one in was.items() if one is not None)
    assert sum(one is not None for one in now.values()) > sum(one is not None for one in was.values())
    assert before.hash == after.hash


def test_an_override_is_marked_and_wins_over_traffic(tmp_path):
    plans = three(tmp_path)
    assert Assignment("three", "f", True) in assign(plans, "user-7")
    assert assign_one(plans[2], "user-7").exposure() == {
        "experiment": "three",
        "variant": "f",
        "attributes": {"override": "true"},
    }
    assert "attributes" not in assign_one(plans[2], "user-8").exposure()


def test_a_unit_put_into_an_experiment_by_hand_is_in_no_other_of_the_layer():
    plans = read_plans([str(EXAMPLES / "online" / "plans")])
    assert [one.experiment for one in assign(plans, "tester")] == ["holdout-2026", "ranker-2026"]
    snippets = next(plan for plan in plans if plan.name == "snippets")
    assert assign_one(snippets, "tester") is not None


def test_a_unit_that_is_held_out_is_in_no_other_experiment():
    plans = read_plans([str(EXAMPLES / "online" / "plans")])
    held = [unit for unit in UNITS if point("holdout-2026", unit) >= 0.95]
    assert abs(len(held) / len(UNITS) - 0.05) < 0.015
    for unit in held:
        assert assign(plans, unit) == [Assignment("holdout-2026", "held")]


def test_an_empty_unit_is_refused(tmp_path):
    with pytest.raises(DataError, match="expected a unit"):
        assign_one(plan_of(tmp_path), "")


def test_a_unit_in_no_experiment_has_a_row_that_says_so(tmp_path):
    plan = plan_of(tmp_path, "traffic = 0.000001\n" + LEAST)
    answer = assignments([plan], ["alice"])
    assert answer.to_dict() == [{"unit": "alice", "experiment": None, "variant": None, "override": False}]
    assert answer.to_csv() == "unit,experiment,variant,override\nalice,,,\n"
    assert "alice  -" in answer.to_text()


def test_the_command_assigns():
    answer = cranfield("online", "assign", "online/plans", "carol", "--format", "csv")
    assert answer.out.splitlines()[1:] == ["carol,holdout-2026,rest,no", "carol,ranker-2026,control,no"]
    assert cranfield("online", "assign", "online/nothing.toml", "carol").code == 3


# plans


def test_a_plan_holds_what_its_file_says(tmp_path):
    text = """
name = "ranker"
salt = "s1"
unit = "visitor"
start = 2026-03-01
method = "looks"
looks = 4
spending = "pocock"
alpha = 0.1
traffic = 0.25
aa = true
[layer]
name = "ranking"
salt = "s2"
[variants]
control = 0.5
new = 0.5
[horizon]
days = 14
units = 2000
[[primary]]
metric = "clicks"
direction = "up"
window = 7
margin = 0.01
relative = true
estimate = "cuped"
k = 3
[[guardrail]]
metric = "abandonment"
margin = 0.02
[[filter]]
name = "bots"
field = "attributes.agent"
matches = "bot"
[[filter]]
name = "test traffic"
field = "application"
equals = "staging"
drop = "events"
[winsorise]
abandonment = 0.99
[[metric]]
name = "own"
event = "scroll"
"""
    plan = plan_of(tmp_path, text)
    assert (plan.name, plan.salt, plan.layer, plan.layer_salt, plan.traffic) == (
        "ranker",
        "s1",
        "ranking",
        "s2",
        (0, 0.25),
    )
    assert (plan.unit, plan.start, plan.days, plan.units, plan.control) == (
        "visitor",
        "2026-03-01",
        14,
        2000,
        "control",
    )
    assert (plan.method, plan.looks, plan.spending, plan.alpha, plan.aa) == (
        "looks",
        (0.25, 0.5, 0.75, 1),
        "pocock",
        0.1,
        True,
    )
    assert plan.primary == (MetricChoice("clicks", "up", 0.01, True, 7, "cuped", {"k": 3}),)
    assert plan.guardrails == (MetricChoice("abandonment", margin=0.02),)
    assert plan.filters == (
        Filter("bots", "attributes.agent", (), "bot", "units"),
        Filter("test traffic", "application", ("staging",), None, "events"),
    )
    assert plan.winsorise == {"abandonment": 0.99}
    assert plan.metrics == ({"name": "own", "event": "scroll"},)


def test_a_hash_stays_with_comments_and_traffic_and_changes_with_all_else(tmp_path):
    first = plan_of(tmp_path).hash
    assert re.fullmatch("[0-9a-f]{64}", first)
    for same in (f"# words\n{LEAST}", f"traffic = 0.5\n{LEAST}", f"{LEAST}[overrides]\nann = 'a'\n"):
        assert plan_of(tmp_path, same).hash == first
    swapped = 'name = "x"\n[variants]\nb = 0.5\na = 0.5\n'
    others = [swapped, f"alpha = 0.1\n{LEAST}", f'salt = "y"\n{LEAST}', f"{LEAST}[horizon]\ndays = 3\n"]
    others.append(f'{LEAST}[horizon]\ndays = 3\n[[primary]]\nmetric = "clicks"\n')
    assert len({plan_of(tmp_path, other).hash for other in others} | {first}) == len(others) + 1


BAD = {  # what is wrong, the line, what is said
    'nmae = "x"\n' + LEAST: (1, "found 'nmae'; did you mean 'name'?"),
    'name = "x"\n[variants]\na = 0.5\nb = 0.4\n': (2, "add up to 1, found 0.9"),
    'name = "x"\n[variants]\na = 1.0\n': (2, "expected 2 variants"),
    'name = "x"\n[variants]\na = 0.5\nb = "half"\n': (
        4,
        "expected variants.b as a share between 0 and 1, found 'half'",
    ),
    'name = "a/b"\n[variants]\na = 0.5\nb = 0.5\n': (1, "expected a salt without /"),
    'salt = "a/b"\n' + LEAST: (1, "expected a salt without /"),
    "salt = 3\n" + LEAST: (1, "expected salt as text, found 3"),
    LEAST.replace('"x"', '""'): (1, "expected name as text, found ''"),
    "traffic = 1.5\n" + LEAST: (1, "expected traffic as a share"),
    "traffic = [0.5, 0.2]\n" + LEAST: (1, "expected traffic as a share"),
    LEAST + "[overrides]\nann = 'z'\n": (6, "expected a variant of a, b for unit 'ann'"),
    LEAST + '[layer]\nname = "l"\nsalt = "x"\n': (7, "traffic decides the variant"),
    LEAST + '[layer]\nnam = "l"\n': (6, "in [layer], found 'nam'; did you mean 'name'?"),
    'method = "peek"\n' + LEAST: (1, "expected method as one of fixed, looks, sequence, found 'peek'"),
    'method = "looks"\n' + LEAST: (1, "expected looks with method"),
    "looks = 5\n" + LEAST: (None, "expected looks with method"),
    'method = "looks"\nlooks = [0.5, 0.4, 1]\n' + LEAST: (2, "rising shares"),
    "tuned = 500\n" + LEAST: (1, 'only with method = "sequence"'),
    "alpha = 0\n" + LEAST: (1, "expected alpha as a number between 0 and 0.5, found 0"),
    'start = "soon"\n' + LEAST: (1, "expected start as a date"),
    'aa = "yes"\n' + LEAST: (1, "expected aa as true or false, found 'yes'"),
    'holdout = "z"\n' + LEAST: (1, "expected holdout of a, b"),
    LEAST + "[horizon]\ndays = 0\n": (6, "expected horizon.days as a whole number of 1 or more, found 0"),
    LEAST + "[[primary]]\nwindow = 7\n": (5, "expected primary#1.metric as text, found none"),
    LEAST + '[[primary]]\nmetric = "clicks"\nwindow = 0\n': (
        7,
        "expected primary#1.window as a window of days or 'open', found 0",
    ),
    LEAST + '[[primary]]\nmetric = "clicks"\ndirection = "left"\n': (
        7,
        "expected primary#1.direction as one of up, down, found 'left'",
    ),
    LEAST + '[[primary]]\nmetric = "clicks"\nestimate = "x"\n': (
        7,
        "expected primary#1.estimate as one of plain, cuped",
    ),
    LEAST + '[[primary]]\nmetric = "clicks"\nrelative = 1\n': (
        7,
        "expected primary#1.relative as true or false, found 1",
    ),
    LEAST + '[[primary]]\nmetric = "clicks"\n[[primary]]\nmetric = "revenue"\nmargin = -1\n': (
        9,
        "expected primary#2.margin as a number above 0, found -1",
    ),
    LEAST + '[[primary]]\nmetric = "clicks"\n[[guardrail]]\nmetric = "clicks"\nmargin = 1\n': (None, "'clicks' twice"),
    LEAST + '[[guardrail]]\nmetric = "clicks"\n': (6, "how much worse the guardrail may become"),
    LEAST + '[[guardrail]]\nmetric = "clicks"\nmargn = 1\n': (
        7,
        "no parameter 'margn'; it has k; did you mean 'margin'?",
    ),
    LEAST + '[[guardrail]]\nmetric = "clicks"\nmargin = 1\n': (
        5,
        "expected a [[primary]] metric, which decides, in addition to guardrails",
    ),
    LEAST + '[[primary]]\nmetric = "clicks"\n': (None, "expected a [horizon] of days or units"),
    LEAST + '[horizon]\n[[primary]]\nmetric = "clicks"\n': (5, "expected a [horizon] of days or units"),
    'method = "sequence"\n' + LEAST + "[horizon]\ndays = 3\n": (
        1,
        "expected tuned, or units in [horizon], with method",
    ),
    LEAST + '[[primary]]\nmetric = "click-through"\nestimate = "mann-whitney"\n': (6, "expected one value per unit"),
    LEAST + '[[primary]]\nmetric = "searches"\nestimate = "mann-whitney"\nrelative = true\n': (
        6,
        "expected relative = false with estimate = 'mann-whitney'",
    ),
    "start = 2026-03-01T10:00:00\n" + LEAST: (1, "expected start as a date such as 2026-03-01"),
    'name = "x"\n[variants]\n" " = 0.5\nb = 0.5\n': (2, "expected variants as a table whose keys are not blank"),
    LEAST + '[[filter]]\nname = "f"\nfield = "colour"\nequals = "x"\n': (7, "expected a field of event_id"),
    LEAST + '[[filter]]\nname = "f"\nfield = "unit"\n': (6, "either equals or matches"),
    LEAST + '[[filter]]\nname = "f"\nfield = "unit"\nmatches = "("\n': (8, "expected a regular expression"),
    LEAST + '[[filter]]\nname = "f"\nfield = "unit"\nequals = "x"\ndrop = "all"\n': (
        9,
        "expected filter#1.drop as one of events, units, found 'all'",
    ),
    LEAST + "[winsorise]\nrevenue = 2\n": (6, "expected winsorise.revenue as a quantile from 0.5 to 1, found 2"),
    LEAST + "primary = 3\n": (5, "expected variants.primary as a share between 0 and 1, found 3"),
    "primary = 3\n" + LEAST: (1, "expected primary as a list, found 3"),
    "layer = 3\n" + LEAST: (1, "expected layer as a table, found 3"),
    'name = "x"\nname = "y"\n': (2, "expected TOML"),
    'name = "x\n': (1, "expected TOML"),
}


@pytest.mark.parametrize(("text", "expected"), BAD.items(), ids=[said for _, said in BAD.values()])
def test_a_plan_that_is_wrong_is_refused_with_its_line(text, expected, tmp_path):
    line, said = expected
    with pytest.raises(DataError) as caught:
        plan_of(tmp_path, text)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/plan.toml:{f'{line}:' if line else ''}")


def test_a_plan_that_is_no_utf8_or_not_there_is_refused(tmp_path):
    (tmp_path / "plan.toml").write_bytes(b'name = "\xff"\n')
    with pytest.raises(DataError, match="expected utf-8, found byte 0xff"):
        read_plan(str(tmp_path / "plan.toml"))
    with pytest.raises(DataError, match="no such file"):
        read_plan(str(tmp_path / "none.toml"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no plan"):
        read_plans([str(tmp_path / "empty")])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ('name = "one"', "experiment 'one' is also in"),
        ('name = "two"\nsalt = "one"', "salt 'one' is also that of 'one'"),
        ('name = "two"\ntraffic = [0.2, 0.4]', "slices of layer 'l' overlap: 'one' [0.0, 0.3] and 'two' [0.2, 0.4]"),
    ],
)
def test_plans_that_cannot_stand_side_by_side_are_refused(change, said, tmp_path):
    layer = '[layer]\nname = "l"\n[variants]\na = 0.5\nb = 0.5\n'
    (tmp_path / "1.toml").write_text(f'name = "one"\ntraffic = 0.3\n{layer}')
    (tmp_path / "2.toml").write_text(f"{change}\n{layer}")
    with pytest.raises(DataError, match=re.escape(said)):
        read_plans([str(tmp_path)])


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ((("l", "s1"), ("l", "s2")), "layer 'l' has another salt"),
        ((("l", "s1"), ("m", "s1")), "have the same salt"),
        ((("l", "s1"), ("m", "one")), "a layer has the salt of an experiment"),
    ],
)
def test_salts_of_layers_are_each_layer_s_own(layers, said, tmp_path):
    for name, (layer, salt) in zip(("one", "two"), layers, strict=True):
        text = f'name = "{name}"\n[layer]\nname = "{layer}"\nsalt = "{salt}"\n[variants]\na = 0.5\nb = 0.5\n'
        (tmp_path / f"{name}.toml").write_text(text)
    with pytest.raises(DataError, match=said):
        read_plans([str(tmp_path)])


WHOLE = {  # what was once told when the experiment was over: the table, the line, what is said
    '[[primary]]\nmetric = "clickthru"\n': (6, "no metric 'clickthru'; there are click-through"),
    '[[primary]]\nmetric = "clicks"\nmarign = 0.1\n': (7, "did you mean 'margin'?"),
    '[[primary]]\nmetric = "clicks"\nparameters = {k = 3}\n': (6, "no parameter 'parameters'"),
    '[[metric]]\nname = "depth"\nkind = "total"\n': (5, "expected kind as one of mean"),
    "[winsorise]\nrevenue = 0.9\n": (6, "expected a metric of the plan in [winsorise], found 'revenue'"),
    '[[filter]]\nname = "f"\nfield = "unit"\nmatches = "a(?!b)"\n': (8, "(?! is not known to DuckDB"),
    '[interleave]\nmehtod = "balanced"\n': (6, "did you mean 'method'?"),
}


@pytest.mark.parametrize(("table", "expected"), WHOLE.items(), ids=[said for _, said in WHOLE.values()])
def test_the_whole_plan_is_checked_when_units_are_assigned_from_it(table, expected, tmp_path):
    line, said = expected
    path = tmp_path / "plan.toml"
    path.write_text(LEAST + table)
    with pytest.raises(BadLineError) as caught:
        read_plans([str(path)])
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert said in str(caught.value)
    answer = cranfield("online", "assign", path, "ann")
    assert (answer.code, answer.out) == (3, "")
    assert f"{path}:{line}: " in answer.err
