"""The arithmetic of verdicts: what metrics show under each method, and how often the whole procedure errs where nothing is."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from cranfield.online.analyze import analyze
from cranfield.online.decide import EXIT_CODES, compared, findings, overall, rule_at, verdict_of
from cranfield.online.gather import Numbers, asked_of
from cranfield.online.metrics import problem
from cranfield.online.plan import read_plan
from cranfield.stats.arms import Column, difference, level
from cranfield.stats.moments import Moments
from online_events import AFTER, START, plan_file

CTR = '[[primary]]\nmetric = "click-through"\n'
METHODS = {"fixed": "", "looks": 'method = "looks"\nlooks = 5\n', "sequence": 'method = "sequence"\ntuned = 2000\n'}
NAMES = ("m0_x", "m0_y")


def plan_of(path, more=CTR):
    return read_plan(plan_file(path, more), problem)


def finding(state="unclear", guards=False, same=False):
    return SimpleNamespace(state=state, guards=guards, same=same)


def test_the_verdict_follows_from_states_as_the_docs_say():
    states = product(
        ("good", "bad", "unclear"), ("good", "bad", "unclear"), ("within", "beyond", "unclear"), (True, False)
    )
    for one, other, rail, same in states:
        found = [finding(one, same=same), finding(other, same=same), finding(rail, guards=True)]
        for ended in (True, False):
            if "bad" in (one, other) or rail == "beyond":
                wanted = "stop"
            elif "good" in (one, other) and rail == "within":
                wanted = "ship"
            elif same:
                wanted = "same"
            else:
                wanted = "not shown" if ended else "continue"
            assert verdict_of(found, ended) == wanted


def test_of_several_variants_one_that_ships_is_enough():
    assert overall(["stop", "ship"], ended=False) == "ship"
    assert overall(["stop", "stop"], ended=False) == "stop"
    assert overall(["stop", "same"], ended=True) == "same"
    assert overall(["stop", "not shown"], ended=True) == "not shown"
    assert overall(["stop", "continue"], ended=False) == "continue"


def test_exit_codes_are_those_of_a_gate():
    assert EXIT_CODES == {"ship": 0, "stop": 1, "same": 1, "not shown": 1, "broken": 3, "continue": 3}


# how often it errs


class Crowd:
    """Units that enter over days and come back, each with its own taste; clicks and searches of each up to each day."""

    def __init__(self, rng, units=2_000, periods=5):
        taste = rng.beta(0.8, 1.6, units)
        entry = np.arange(units) * periods // units
        searches = rng.poisson(1.2, (units, periods)) * (np.arange(periods) >= entry[:, None])
        searches[np.arange(units), entry] += 1
        clicks = rng.binomial(searches, taste[:, None])
        self.entry, self.new = entry, rng.random(units) < 0.5
        self.sums = np.stack([clicks, searches], -1).cumsum(axis=1).astype(float)

    def numbers(self, period):
        moments, units = {}, {}
        for name, arm in (("control", ~self.new), ("new", self.new)):
            rows = self.sums[arm & (self.entry <= period), period]
            moments[name] = Moments.of(**dict(zip(NAMES, rows.T, strict=True)))
            units[name] = len(rows)
        return Numbers(moments, {}, units)

    def at_all_times(self, arm):
        """The moments of an arm at the end of every period; who has not entered yet has sums of 0, and is not counted."""
        sums = self.sums[arm]
        n = (self.entry[arm][:, None] <= np.arange(sums.shape[1])).sum(axis=0).astype(float)
        mean = sums.sum(axis=0) / n[:, None]
        products = (
            np.einsum("upi,upj->pij", sums, sums, optimize=True) - n[:, None, None] * mean[:, :, None] * mean[:, None]
        )
        return Moments(NAMES, n, mean, products)


def shown(plan, numbers, shares, last):
    """The state of the only primary, by the arithmetic that `analyze` uses."""
    (asked,) = asked_of(plan)
    found = compared(asked, numbers, "control", "new", np.random.default_rng(0))
    one = findings(plan, [(asked, "new", found, (1, 1))], rule_at(plan, shares, last), p=False)
    return one[0].state


def false_alarms(plan, replicates, seed):
    rng = np.random.default_rng(seed)
    alarms = 0
    for _ in range(replicates):
        crowd = Crowd(rng)
        periods = range(5) if plan.method == "looks" else [4]
        shares = plan.looks or (1.0,)
        alarms += any(
            shown(plan, crowd.numbers(t), shares[: i + 1], i + 1 == len(shares)) != "unclear"
            for i, t in enumerate(periods)
        )
    return alarms / replicates


@pytest.mark.slow
@pytest.mark.parametrize(("method", "low", "high"), [("fixed", 0.043, 0.057), ("looks", 0.03, 0.057)])
def test_the_whole_procedure_errs_as_often_as_it_says(method, low, high, tmp_path):
    plan = plan_of(tmp_path, METHODS[method] + CTR)
    assert low <= false_alarms(plan, 10_000, seed=1) <= high


@pytest.mark.parametrize("method", ["fixed", "looks"])
def test_a_few_hundred_experiments_without_an_effect_seldom_show_one(method, tmp_path):
    plan = plan_of(tmp_path, METHODS[method] + CTR)
    assert 0.0 <= false_alarms(plan, 100, seed=2) <= 0.12  # 5 % with a standard error of 2.2


def peeked(plan, rng, peeks=100):
    """Whether a confidence sequence shows anything at any of its peeks: it does if it does at its farthest one."""
    crowd = Crowd(rng, periods=peeks)
    arms = [crowd.at_all_times(arm) for arm in (~crowd.new, crowd.new)]
    effect = difference(*(level(arm, Column(*NAMES)) for arm in arms))
    shares = (arms[0].n + arms[1].n) / plan.tuned
    bounds = np.array([rule_at(plan, (share,), False).critical(0.025) for share in shares])
    with np.errstate(divide="ignore", invalid="ignore"):
        farthest = int(np.nanargmax(np.where(effect.df > 1, np.abs(effect.value / effect.error) / bounds, 0.0)))
    return shown(plan, crowd.numbers(farthest), (float(shares[farthest]),), False) != "unclear"


@pytest.mark.slow
def test_a_sequence_that_is_peeked_at_100_times_errs_in_5_percent_at_most(tmp_path):
    plan, rng = plan_of(tmp_path, METHODS["sequence"] + CTR), np.random.default_rng(3)
    assert sum(peeked(plan, rng) for _ in range(10_000)) / 10_000 <= 0.05


def test_a_sequence_that_is_peeked_at_errs_seldom(tmp_path):
    plan, rng = plan_of(tmp_path, METHODS["sequence"] + CTR), np.random.default_rng(4)
    assert sum(peeked(plan, rng, 20) for _ in range(60)) <= 6


class Table:
    """Events as a table that stands for a log."""

    def __init__(self, rng, units):
        import pyarrow

        taste, new = rng.beta(0.8, 1.6, units), rng.random(units) < 0.5
        entry = rng.uniform(0, 13, units)
        number = 1 + rng.poisson(3, units)
        of = np.repeat(np.arange(units), number)
        when = entry[of] + np.minimum(rng.exponential(2.0, len(of)), 13.9 - entry[of])
        clicked = rng.random(len(of)) < taste[of]
        rows = [("exposure", np.arange(units), entry, None), ("impression", of, when + 1e-4, np.arange(len(of)))]
        rows.append(("click", of[clicked], when[clicked] + 2e-4, np.flatnonzero(clicked)))
        parts = []
        for kind, who, day, search in rows:
            time = [START + timedelta(days=float(each)) for each in day]
            exposed = kind == "exposure"
            table = {
                "event_id": [f"{kind}{i}" for i in range(len(who))],
                "time": pyarrow.array(time, pyarrow.timestamp("us", "UTC")),
                "kind": [kind] * len(who),
                "unit": [f"u{i}" for i in who],
                "search": [None] * len(who) if search is None else [f"s{i}" for i in search],
                "variant": [("control", "new")[int(new[i])] if exposed else None for i in who],
                "experiment": ["shop" if exposed else None] * len(who),
            }
            schema = {"search": pyarrow.string(), "variant": pyarrow.string(), "experiment": pyarrow.string()}
            parts.append(
                pyarrow.table({name: pyarrow.array(column, schema.get(name)) for name, column in table.items()})
            )
        self.table = pyarrow.concat_tables(parts)

    def relation(self, connection):
        connection.register("cranfield_table", self.table)
        rest = {
            "session": "VARCHAR",
            "query": "VARCHAR",
            "shown": "VARCHAR[]",
            "credit": "VARCHAR",
            "document": "VARCHAR",
        }
        rest |= {
            "position": "INTEGER",
            "value": "DOUBLE",
            "application": "VARCHAR",
            "attributes": "MAP(VARCHAR, VARCHAR)",
        }
        more = ", ".join(f"NULL::{kind} AS {name}" for name, kind in rest.items())
        return connection.sql(
            f"SELECT * REPLACE (make_timestamp(epoch_us(time)) AS time), {more}, time::DATE AS day FROM cranfield_table"
        )


def verdicts(path, replicates, units, seed, more=CTR):
    plan, rng = plan_of(path, more), np.random.default_rng(seed)
    return [analyze(Table(rng, units), plan, AFTER).verdict for _ in range(replicates)]


def test_experiments_without_an_effect_go_through_the_whole_of_it(tmp_path):
    found = verdicts(tmp_path, 5, 100, seed=5)
    assert "broken" not in found
    assert found.count("not shown") >= 3


@pytest.mark.slow
def test_whole_experiments_without_an_effect_err_in_5_percent(tmp_path):
    found = verdicts(tmp_path, 300, 300, seed=6)
    alarms = sum(each in ("ship", "stop") for each in found)
    assert "broken" not in found
    assert 0.015 <= alarms / len(found) <= 0.095  # a standard error of 1.3 points
