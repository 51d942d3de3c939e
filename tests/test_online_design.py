"""The design of experiments: known formulas, statsmodels, and the stated power against simulated experiments."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest
from statsmodels.stats.power import NormalIndPower

from cranfield.base.errors import CranfieldError, DataError
from cranfield.commands import experiments
from cranfield.experiments.design import Guardrail, design, mean, preference, proportion, spread_of, together
from cranfield.stats.arms import MetricColumn, difference, level
from cranfield.stats.moments import Moments
from cranfield.stats.proportions import ProportionDifference
from cranfield.stats.sequential import FIXED, schedule
from simulated import arm

METHODS = ("fixed", "looks", "looks(looks=3, by=pocock)", "sequence")


def test_the_size_for_a_mean_against_statsmodels():
    wanted = 2 * NormalIndPower().solve_power(0.1, alpha=0.05, power=0.8)
    [fixed] = design(mean(10, 20), effect=2.0, methods="fixed").methods
    assert fixed.needed == math.ceil(wanted)
    assert fixed.curve == tuple(sorted(fixed.curve))


def test_uneven_shares_against_statsmodels():
    wanted = NormalIndPower().solve_power(0.1, alpha=0.05, power=0.9, ratio=4)  # the smaller arm
    [fixed] = design(mean(10, 20), effect=2.0, power=0.9, shares=(0.2, 0.8), methods="fixed").methods
    assert fixed.needed == pytest.approx(5 * wanted, abs=2)


def test_an_effect_that_spreads_units_takes_more_of_them():
    one, other = (design(mean(10, 20, sd_after=after), effect=2.0, methods="fixed") for after in (None, 40.0))
    assert other.methods[0].needed == pytest.approx(one.methods[0].needed * (1 + 4) / 2, abs=2)
    assert "20 and then 40" in other.to_text()
    assert experiments.design(mean=10, sd=20, sd_after=40, effect=2.0, methods="fixed") == other


def test_half_the_traffic_doubles_the_units():
    whole, half = (
        design(mean(10, 20), effect=2.0, shares=shares, methods="fixed").methods[0].needed
        for shares in ((0.5, 0.5), (0.25, 0.25))
    )
    assert half == pytest.approx(2 * whole, abs=2)


def test_size_power_and_smallest_effect_agree():
    for primary, effect in ((mean(5, 3), 0.2), (proportion(0.2), 0.02), (preference(0.25, 0.2), 0.05)):
        plan = design(primary, effect=effect)
        again = design(primary, effect=effect, n=plan.methods[0].needed)
        assert again.methods[0].power == pytest.approx(0.8, abs=0.001)
        assert again.methods[0].detectable == pytest.approx(effect, rel=0.002)


def test_more_looks_need_more_units_and_often_fewer():
    plan = design(mean(1, 2), effect=0.1)
    fixed, looks, sequence = plan.methods
    assert fixed.needed < looks.needed < 1.05 * fixed.needed < sequence.needed
    assert looks.expected < fixed.expected == pytest.approx(fixed.needed)
    assert sequence.expected < sequence.needed


def test_a_fixed_test_of_80_keeps_79_with_five_looks_and_half_with_a_sequence():
    plan = design(mean(1, 2), effect=0.1, n=design(mean(1, 2), effect=0.1, methods="fixed").methods[0].needed)
    assert [each.power for each in plan.methods] == pytest.approx([0.80, 0.79, 0.50], abs=0.01)


def test_a_decrease_takes_the_units_of_its_own_variance_by_the_textbook_s_formula():
    """n = (z of α/2 + z of power)² (p q + p' q') / d² in each arm: a rate that falls varies less than one that rises."""
    reach = (FIXED.critical(0.025) + FIXED.critical(0.1)) ** 2
    for effect, per_arm in ((-0.01, 18_063), (0.01, 19_744)):
        there = 0.1 + effect
        assert per_arm == math.ceil(reach * (0.1 * 0.9 + there * (1 - there)) / effect**2)
        for how in ({"effect": effect}, {"relative": effect / 0.1}):
            plan = design(proportion(0.1), power=0.9, methods="fixed", **how)
            assert math.ceil(plan.methods[0].needed / 2) == per_arm
    assert "a difference of -0.01 (-10.00% of 0.1)" in design(proportion(0.1), effect=-0.01).sentence()
    again = design(proportion(0.1), effect=-0.01, power=0.9, n=36_126, methods="fixed looks").methods
    assert again[0].detectable == pytest.approx(-0.01, rel=1e-3)
    assert again[1].detectable < -0.01
    down, up = (design(mean(5, 3), effect=effect) for effect in (-0.2, 0.2))
    assert [each.needed for each in down.methods] == [each.needed for each in up.methods]


@pytest.mark.parametrize("replicates", [4_000, pytest.param(40_000, marks=pytest.mark.slow)])
def test_the_power_of_a_planned_decrease_against_simulation(replicates):
    rng = np.random.default_rng(7)
    a, b = (rng.binomial(18_063, rate, replicates) for rate in (0.1, 0.09))
    high = ProportionDifference(a, 18_063, b, 18_063).interval()[1]
    assert (high < 0).mean() == pytest.approx(0.9, abs=4 * math.sqrt(0.09 / replicates))


def test_looks_that_cannot_decide_are_named():
    plan = design(mean(1, 2), effect=0.1, methods="looks looks(looks=14) looks(looks=30)")
    assert [each.undecided_looks for each in plan.methods] == [(), (1,), (1, 2)]
    assert "looks(looks=14): look 1 cannot decide" in plan.to_text() + "".join(plan.notes())
    assert any("looks 1 to 2 cannot decide" in note for note in plan.notes())
    three = design(mean(1, 2), effect=0.1, primaries=3, methods="looks(looks=10)")
    assert three.methods[0].undecided_looks == (1,)
    assert json.loads(three.to_json())["methods"][0]["undecided_looks"] == [1]


def test_days_follow_from_the_units_of_a_day():
    plan = design(mean(1, 2), effect=0.1, per_day=500, methods="fixed")
    assert plan.methods[0].days == math.ceil(plan.methods[0].needed / 500)
    assert f"{plan.methods[0].days} days" in plan.sentence()


def test_a_relative_effect_is_a_share_of_the_level():
    one, other = design(mean(10, 20), effect=0.5), design(mean(10, 20), relative=0.05)
    assert one == other


def test_primaries_share_alpha_and_guardrails_the_power():
    alone = design(mean(1, 2), effect=0.1, methods="fixed").methods[0].needed
    three = design(mean(1, 2), effect=0.1, primaries=3, methods="fixed")
    assert three.tail == pytest.approx(0.05 / 6)
    assert three.methods[0].needed > alone
    rails = [Guardrail("time", mean(3, 2), 0.1), Guardrail("abandoned", proportion(0.3), 0.03)]
    guarded = design(mean(1, 2), effect=0.1, guardrails=rails, methods="fixed")
    assert guarded.methods[0].needed > alone
    found = guarded.methods[0]
    assert together([0.8 / math.prod(found.guardrails), *found.guardrails]) == pytest.approx(0.8)
    alike = design(mean(1, 2), effect=0.1, guardrails=rails, correlation=0.6, methods="fixed")
    assert alone < alike.methods[0].needed < found.needed


def test_guardrails_that_cannot_be_held_leave_no_effect_to_find():
    rails = [Guardrail("time", mean(3, 2), 0.001)]
    plan = design(mean(1, 2), effect=0.1, guardrails=rails, n=1_000, methods="fixed")
    assert math.isnan(plan.methods[0].detectable)
    assert any("find no effect of any size" in note for note in plan.notes())


def test_all_together_against_simulation():
    rng = np.random.default_rng(0)
    shared, own = rng.normal(0, 1, (200_000, 1)), rng.normal(0, 1, (200_000, 3))
    z = math.sqrt(0.4) * shared + math.sqrt(0.6) * own
    below = [0.7, 0.8, 0.95]
    passed = (z < [np.quantile(z[:, i], below[i]) for i in range(3)]).all(axis=1).mean()
    assert together(below, 0.4) == pytest.approx(passed, abs=0.004)


def test_variance_comes_from_a_log():
    own = arm(np.random.default_rng(1), (1, 50_000))
    moments = Moments.of(**{name: values[0] for name, values in own._asdict().items()})
    ratio = spread_of(moments, MetricColumn("clicks", "searches"))
    assert (ratio.kind, ratio.level) == ("ratio", pytest.approx(0.8 / 3, rel=0.02))
    plain, with_before = (spread_of(moments, "clicks", covariates) for covariates in ((), ("clicks_before",)))
    assert with_before.sd < 0.85 * plain.sd
    needed = [design(each, relative=0.05, methods="fixed").methods[0].needed for each in (plain, with_before)]
    assert needed[1] / needed[0] == pytest.approx((with_before.sd / plain.sd) ** 2, rel=0.001)
    with pytest.raises(DataError, match="without variance"):
        spread_of(Moments.of(x=[1.0, 1.0]), "x")


# the stated power, simulated


def standardised(kind: str, rng: np.random.Generator, replicates: int, n: int, effect: float, looks: int) -> np.ndarray:
    """z at each look of simulated experiments whose units come evenly: replicates × looks."""
    lots = []
    for _ in range(10):
        shape = (replicates // 10, n)
        if kind == "preference":
            x = np.cumsum(rng.choice([1.0, 0.0, -1.0], shape, p=[0.25, 0.55, 0.2]), axis=1)
            at = (np.arange(1, looks + 1) * n) // looks
            squares = 0.45 * at
            mean_ = x[:, at - 1] / at
            lots.append(mean_ / np.sqrt((squares / at - mean_**2) / at))
            continue
        z = []
        sides = [_drawn(kind, rng, shape, 0.0), _drawn(kind, rng, shape, effect)]
        for k in range(1, looks + 1):
            a, b = ({name: column[:, : k * n // looks] for name, column in side.items()} for side in sides)
            if kind == "proportion":
                counts = [number for side in (a, b) for number in (side["x"].sum(axis=1), side["x"].shape[1])]
                z.append(
                    np.sign(ProportionDifference(*counts).value) * -_quantile(ProportionDifference(*counts).p() / 2)
                )
            else:
                column = MetricColumn("x", "y") if kind == "ratio" else MetricColumn("x")
                found = difference(*(level(Moments.of(**side), column) for side in (a, b)))
                z.append(found.centre / found.error)
        lots.append(np.stack(z, axis=1))
    return np.concatenate(lots)


def _quantile(p: np.ndarray) -> np.ndarray:
    from scipy.special import ndtri

    return ndtri(np.maximum(p, 1e-300))


def _drawn(kind: str, rng: np.random.Generator, shape: tuple[int, int], effect: float) -> dict[str, np.ndarray]:
    if kind == "mean":
        return {"x": rng.exponential(1.0, shape) + effect}
    if kind == "proportion":
        return {"x": (rng.random(shape) < 0.2 + effect).astype(float)}
    own = arm(rng, shape, effect / (0.8 / 3))
    return {"x": own.clicks, "y": own.searches}


def primary_of(kind: str):
    if kind == "mean":
        return mean(1.0, 1.0), 0.15
    if kind == "proportion":
        return proportion(0.2), 0.06
    if kind == "preference":
        return preference(0.25, 0.2), 0.05
    rng, ratio = np.random.default_rng(2), MetricColumn("x", "y")
    now, then = (
        spread_of(Moments.of(x=own.clicks[0], y=own.searches[0]), ratio)
        for own in (arm(rng, (1, 400_000)), arm(rng, (1, 400_000), 0.03 / (0.8 / 3)))
    )
    return mean(now.level, now.sd, "ratio", sd_after=then.sd), 0.03


@pytest.mark.parametrize(
    ("kind", "method", "replicates"),
    [
        *((kind, "looks", 1_000) for kind in ("mean", "preference")),
        *(
            pytest.param(kind, method, 5_000, marks=pytest.mark.slow)
            for kind in ("mean", "proportion", "ratio", "preference")
            for method in METHODS
        ),
    ],
)
def test_the_stated_power_against_simulated_experiments(kind, method, replicates):
    primary, effect = primary_of(kind)
    plan = design(primary, effect=effect, methods=[method])
    needed = plan.methods[0].needed
    looks = schedule(method)
    units = needed if kind == "preference" else needed // 2
    z = standardised(kind, np.random.default_rng(3), replicates, units, effect, len(looks.shares))
    power = (z >= looks.bounds(0.025)).any(axis=1).mean()
    assert power == pytest.approx(0.8, abs=0.02 if replicates >= 5_000 else 0.05)


@pytest.mark.parametrize("replicates", [2_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_the_stated_power_of_all_together_against_simulated_experiments(replicates):
    rails = [Guardrail("time", mean(3, 2), 0.3), Guardrail("revenue", mean(1, 5), 0.6)]
    plan = design(mean(1, 2), effect=0.3, guardrails=rails, methods="fixed")
    n = plan.methods[0].needed // 2
    rng = np.random.default_rng(4)
    found = np.ones(replicates, np.bool_)
    for sd, shift, tail in ((2, 0.3, 0.025), (2, 0.3, 0.05), (5, 0.6, 0.05)):
        estimates = rng.normal(shift, sd * math.sqrt(2 / n), replicates)
        found &= estimates / (sd * math.sqrt(2 / n)) > FIXED.critical(tail)
    assert found.mean() == pytest.approx(0.8, abs=0.02 if replicates > 2_000 else 0.03)


# what it says


def test_a_plan_is_told_in_text_json_and_rows():
    rails = [Guardrail("time", mean(3, 2), 0.1)]
    plan = design(proportion(0.3), relative=0.1, guardrails=rails, per_day=1_000, n=5_000, sizes=[2_000, 8_000])
    text = plan.to_text()
    assert text.startswith("fixed: to find a difference of 0.03 (10.00% of 0.3) with power 0.8 takes")
    for words in (
        "smallest effect with 5,000",
        "days",
        "guardrails, with the needed units",
        "power by number of units",
    ):
        assert words in text
    told = json.loads(plan.to_json())
    assert [each["method"] for each in told["methods"]] == ["fixed", "looks", "sequence"]
    assert told["guardrails"][0]["margin"] == 0.1
    rows = list(csv.DictReader(io.StringIO(plan.to_csv())))
    assert len(rows) == 6
    assert float(rows[0]["power"]) == plan.methods[0].curve[0]
    assert any("independent" in note for note in plan.notes())


def test_few_units_are_said_to_be():
    assert any("fewer than 200 units" in note for note in design(mean(1, 1), effect=0.9, methods="fixed").notes())


def test_what_no_number_of_units_finds_is_said():
    plan = design(mean(1, 1), effect=1e-9, methods="fixed")
    assert plan.methods[0].needed is None
    assert "no number of units" in plan.sentence()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: design(mean(1, 1)), "expected the effect to detect"),
        (lambda: design(mean(1, 1), effect=0.1, relative=0.1), "found both"),
        (lambda: design(mean(0, 1), relative=0.1), "a level other than 0"),
        (lambda: design(mean(1, 1), effect=0.0), "effect must be a number other than 0, below 0 for a decrease"),
        (lambda: design(mean(1, 1), effect=math.inf), "effect must be a number"),
        (lambda: design(proportion(0.1), effect=-0.1), "a proportion of 0.1 cannot fall by 0.1"),
        (lambda: design(mean(1, 0), effect=0.1), "sd must be above 0"),
        (lambda: design(mean(1, 1e300), effect=0.1), "sd must be between"),
        (lambda: design(mean(1, 1, sd_after=1e-300), effect=0.1), "sd after must be between"),
        (lambda: design(preference(1, 0)), "leave something to chance"),
        (lambda: design(preference(0, 1)), "leave something to chance"),
        (lambda: design(mean(1, 1), effect=0.1, per_day=1e-308), "units a day must be 1e-06 or more"),
        (lambda: design(mean(math.inf, 1), effect=0.1), "level must be a number"),
        (lambda: design(proportion(1.2), effect=0.1), "level must lie between"),
        (lambda: design(proportion(0.9), effect=0.1), "cannot rise by 0.1"),
        (lambda: design(preference(0.9, 0.2)), "together at most 1"),
        (lambda: design(mean(1, 1), effect=0.1, power=1), "power must lie"),
        (lambda: design(mean(1, 1), effect=0.1, alpha=0), "alpha must lie"),
        (lambda: design(mean(1, 1), effect=0.1, primaries=0), "primaries must be 1 or more"),
        (lambda: design(mean(1, 1), effect=0.1, n=1), "units must be 2 or more"),
        (lambda: design(mean(1, 1), effect=0.1, sizes=[1]), "units must be 2 or more"),
        (lambda: design(mean(1, 1), effect=0.1, per_day=0), "units a day must be above 0"),
        (lambda: design(mean(1, 1), effect=0.1, shares=(0.7, 0.7)), "shares must be two numbers"),
        (lambda: design(mean(1, 1), effect=0.1, correlation=1), "correlation must be 0 or more"),
        (lambda: design(mean(1, 1), effect=0.1, methods=""), "expected some of fixed"),
        (lambda: design(mean(1, 1), effect=0.1, methods="daily"), "no method 'daily'"),
        (lambda: design(mean(1, 1), effect=0.1, guardrails=[Guardrail("x", mean(1, 1), 0)]), "the margin of x"),
        (lambda: experiments.design(effect=0.1), "expected one of"),
        (lambda: experiments.design(mean=1, proportion=0.5, effect=0.1), "expected one of"),
        (lambda: experiments.design(mean=1, effect=0.1), "needs its sd"),
        (lambda: experiments.design(proportion=0.2, sd=1, effect=0.1), "follows from it"),
        (lambda: experiments.design(mean=1, sd=1, effect=0.1, sizes="10,x"), "as in 1000,5000"),
        (lambda: experiments.design(mean=1, sd=1, effect=0.1, guardrails=["x"]), "NAME=MARGIN/SD"),
        (lambda: experiments.design(mean=1, sd=1, effect=0.1, guardrails=["x=1/0"]), "guardrail 'x=1/0': sd must"),
    ],
)
def test_what_makes_no_sense_is_refused(make, said):
    with pytest.raises(CranfieldError, match=said):
        make()


def test_the_verb_takes_given_numbers():
    rails = ["time=0.1/2", "abandoned=0.02/30%"]
    one = experiments.design(mean=1, sd=2, effect=0.1, guardrails=rails)
    assert [rail.spread.kind for rail in one.guardrails] == ["mean", "proportion"]
    assert experiments.design(ratio=0.3, sd=0.5, relative=0.1).kind == "ratio"
    assert experiments.design(ratio=0.3, sd=0.5, relative=0.1, sizes="500, 1000").sizes == (500, 1000)
    assert experiments.design(wins=0.25, losses=0.2).effect == pytest.approx(0.05)
    assert experiments.design(proportion=0.3, effect=0.02, methods="fixed").methods[0].needed == 16781
