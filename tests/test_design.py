"""The design of experiments: topics needed, power at hand, smallest difference, and where the variance comes from."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest
from scipy import stats

import cranfield as library
from cranfield.base.errors import ConventionError, DataError
from cranfield.comparison.design import design
from cranfield.evaluation.scores import Scores
from shell import EXAMPLES, cranfield

QRELS, BM25, DENSE = EXAMPLES / "qrels.txt", EXAMPLES / "bm25.run", EXAMPLES / "dense.run"


def power_of_t(effect: float, n: int, alpha: float = 0.05) -> float:
    """By the noncentral t distribution, as in every textbook."""
    critical = stats.t.isf(alpha / 2, n - 1)
    shift = effect * math.sqrt(n)
    return float(stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift))


@pytest.mark.parametrize("effect", [0.2, 0.25, 0.5, 0.8])
def test_topics_needed_by_t_are_the_fewest_with_the_power_against_scipy(effect):
    [plan] = design(sd=1, difference=effect, tests="t").plans
    needed = plan.tests[0].needed
    assert needed is not None
    assert power_of_t(effect, needed) >= 0.8 > power_of_t(effect, needed - 1)


def test_a_textbook_sample_size_comes_out_against_cohen():
    """Cohen (1988): 34 pairs for a medium effect of 0.5 with power 0.8 at 0.05, two-sided."""
    assert design(sd=1, difference=0.5, tests="t").plans[0].tests[0].needed == 34


def test_power_and_smallest_difference_at_hand_belong_together():
    [plan] = design(sd=0.2, difference=0.05, n=50, tests="t").plans
    assert plan.tests[0].power == pytest.approx(power_of_t(0.25, 50))
    assert power_of_t(plan.tests[0].detectable / 0.2, 50) == pytest.approx(0.8, abs=1e-6)


def test_two_runs_lend_the_differences_of_their_topics():
    [plan] = design(QRELS, [BM25, DENSE], "AP", tests="t").plans
    scores = library.evaluate(QRELS, [BM25, DENSE], "AP")
    difference = scores["dense"] - scores["bm25"]
    assert plan.n == 7
    assert plan.sd == pytest.approx(difference.std(ddof=1))
    assert plan.difference == pytest.approx(difference.mean())
    assert plan.observed
    assert plan.tests[0].power == pytest.approx(power_of_t(difference.mean() / difference.std(ddof=1), 7))


def test_which_run_comes_first_changes_nothing():
    one, other = (design(QRELS, runs, "AP", trials=200, resamples=200) for runs in ([BM25, DENSE], [DENSE, BM25]))
    for a, b in zip(one.plans[0].tests, other.plans[0].tests, strict=True):
        assert (a.needed, a.power, a.detectable) == (b.needed, b.power, b.detectable)


def test_more_runs_lend_the_residual_variance_of_their_anova():
    rng = np.random.default_rng(5)
    values = rng.uniform(0, 1, (400, 1)) + np.array([0, 0.02, 0.1]) + rng.normal(0, 0.15, (400, 3))
    [plan] = design(Scores.from_table(values), difference=0.05, tests="t", correction="none").plans
    assert plan.sd == pytest.approx(0.15 * math.sqrt(2), rel=0.05)
    anova = plan.tests[-1]
    assert (anova.test, plan.systems) == ("ANOVA of 3", 3)
    assert anova.needed is not None
    assert anova.needed > plan.tests[0].needed  # the third system costs topics


def test_the_anova_of_two_systems_is_the_paired_t_test():
    [plan] = design(sd=0.2, difference=0.05, n=80, systems=2, tests="t").plans
    t, anova = plan.tests
    assert anova.needed == t.needed
    assert anova.power == pytest.approx(t.power, abs=1e-6)
    assert anova.detectable == pytest.approx(t.detectable, rel=1e-4)


def test_the_anova_of_many_systems_against_simulation():
    rng = np.random.default_rng(2)
    k, n, sd, apart = 4, 30, 0.1, 0.09
    shift = np.array([-apart / 2, 0, 0, apart / 2])
    values = rng.normal(0, sd, (4000, n, k)) + shift
    groups, blocks = values.mean(axis=1, keepdims=True), values.mean(axis=2, keepdims=True)
    residual = values - groups - blocks + values.mean(axis=(1, 2), keepdims=True)
    mse = np.square(residual).sum(axis=(1, 2)) / ((k - 1) * (n - 1))
    f = n * values.mean(axis=1).var(axis=1, ddof=1) / mse
    rate = (stats.f.sf(f, k - 1, (k - 1) * (n - 1)) < 0.05).mean()
    [plan] = design(sd=sd * math.sqrt(2), difference=apart, n=n, systems=k, tests="t").plans
    assert plan.tests[-1].power == pytest.approx(rate, abs=0.025)


def test_the_randomisation_test_needs_about_as_many_topics_as_t():
    [plan] = design(sd=0.2, difference=0.1, n=40, sizes=[40], trials=1000, resamples=500).plans
    t, sign, randomisation = plan.tests
    assert randomisation.simulated
    assert randomisation.needed == pytest.approx(t.needed, rel=0.1)
    assert sign.needed > t.needed  # of normal differences it sees the signs only
    assert randomisation.power == pytest.approx(t.power, abs=0.05)


@pytest.mark.parametrize("systems", [None, 4])
def test_tests_are_planned_at_the_level_that_compare_leaves_to_one_of_them(systems):
    plans = design(QRELS, [BM25, DENSE], "AP nDCG@10 RR", difference=0.1, systems=systems, tests="t").plans
    pairs = 6 if systems else 1
    for plan in plans:
        assert (plan.correction, plan.family, plan.alpha) == ("holm", 3 * pairs, 0.05)
        assert plan.level == pytest.approx(0.05 / (3 * pairs))
        assert plan.tests[0].power == pytest.approx(power_of_t(0.1 / plan.sd, 7, plan.level))
    assert library.compare(QRELS, [BM25, DENSE], "AP nDCG@10 RR").family == 3


@pytest.mark.parametrize(("name", "level"), [("none", 0.05), ("bonferroni", 0.005), ("bh", 0.005), ("sidak", 0.005116)])
def test_the_family_and_the_correction_can_be_given(name, level):
    [plan] = design(sd=0.2, difference=0.05, n=50, tests="t", family=10, correction=name).plans
    assert plan.level == pytest.approx(level, abs=1e-6)
    needed = plan.tests[0].needed
    assert power_of_t(0.25, needed, plan.level) >= 0.8 > power_of_t(0.25, needed - 1, plan.level)


def test_the_corrected_level_is_said():
    [plan] = design(sd=0.2, difference=0.05, tests="t", systems=3).plans
    assert "with power 0.8 at level 0.0167 (Holm over 3 p-values) takes" in plan.sentence()
    asked = {"sd": 0.2, "difference": 0.05, "tests": "t sign", "trials": 100}
    assert "each test at level 0.0167 (Holm over 3 p-values)" in design(**asked, systems=3).to_text()
    assert "level" not in design(**asked).to_text()


def test_too_few_resamples_for_a_corrected_level_are_said_to_be():
    plans = design(sd=0.2, difference=0.1, n=40, family=1000, tests="randomisation t")
    assert math.isnan(plans.plans[0].tests[0].power)
    assert any("1,000 resamples give no p of 5e-05 or less; 400,000 do" in note for note in plans.notes())


def test_each_test_says_what_it_is_about():
    [plan] = design(sd=0.2, difference=0.1, tests="t sign wilcoxon", trials=100).plans
    assert [each.centre for each in plan.tests] == ["mean", "median", "pseudomedian"]


@pytest.mark.parametrize("resamples", [200, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", ["skewed", "steps"])
def test_a_lopsided_table_is_no_effect(shape, resamples):
    """Scores whose differences are lopsided and hold on average nothing: power is the level, whatever the test is about."""
    rng = np.random.default_rng(7)
    d = rng.exponential(0.1, 51) - 0.1 if shape == "skewed" else rng.choice([0.0, 0.5, 0.5, 0.5, -1.0], 51)
    scores = Scores.from_table(np.column_stack([np.zeros(51), d - d.mean() * (d != 0)]))
    tests = "t sign wilcoxon randomisation"
    [plan] = design(scores, difference=1e-9, n=50, sizes=[50], tests=tests, trials=1000, resamples=resamples).plans
    for each in plan.tests:
        assert each.power < 0.05 + 2 * math.sqrt(0.05 * 0.95 / 1000)


def test_power_grows_along_the_curve_and_passes_the_target_where_it_is_needed():
    [plan] = design(sd=0.2, difference=0.05, tests="t").plans
    curve = plan.tests[0].curve
    assert list(curve) == sorted(curve)
    for size, power in zip(plan.sizes, curve, strict=True):
        assert (power >= 0.8) == (size >= 128)
    assert plan.sizes[-1] > 128


def test_sizes_of_the_curve_can_be_given():
    [plan] = design(sd=0.2, difference=0.05, tests="t", sizes=[100, 25]).plans
    assert plan.sizes == (25, 100)


def test_one_sided_needs_fewer_topics():
    two, one = (
        design(sd=0.2, difference=0.05, tests="t", alternative=side).plans[0] for side in ("two-sided", "greater")
    )
    assert one.tests[0].needed < two.tests[0].needed


def test_a_difference_too_small_to_simulate_is_said_to_be():
    plans = design(sd=1, difference=0.01, n=50, trials=100, resamples=100)
    randomisation = plans.plans[0].tests[-1]
    assert randomisation.needed is None
    assert any("not simulated beyond 2,000 topics" in note for note in plans.notes())
    assert plans.plans[0].tests[0].needed == pytest.approx(78_490, rel=0.01)  # 7.849 / d²


def test_too_few_topics_for_any_sign_test_are_said_to_be():
    plans = design(sd=0.2, difference=0.1, n=4, tests="sign")
    assert math.isnan(plans.plans[0].tests[0].detectable)
    assert any("sign" in note and "4 topics" in note for note in plans.notes())


def test_a_plan_in_one_line_says_what_is_needed_and_what_is_there():
    [plan] = design(sd=0.2, difference=0.05, n=50, tests="t").plans
    assert plan.sentence() == (
        "t: to find a difference of 0.05 with power 0.8 takes 128 topics; the 50 at hand find it with power 0.41, and 0.08084 "
        "or more with 0.8"
    )


def test_a_difference_that_no_number_of_topics_finds_is_said_to_be():
    plans = design(sd=1, difference=1e-6, n=3_000, sizes=[100], tests="t randomisation", trials=100)
    t, randomisation = plans.plans[0].tests
    assert (t.needed, randomisation.needed) == (None, None)
    assert math.isnan(randomisation.power)
    assert "no number of topics" in plans.plans[0].sentence()
    assert any("needs more than 10,000,000 topics" in note for note in plans.notes())


def test_tests_are_told_as_they_are_done():
    told = []
    design(sd=0.2, difference=0.05, tests="t sign", progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


def test_plans_are_written_for_a_wiki_too():
    text = design(sd=0.2, difference=0.05, n=50, tests="t", sizes=[50]).to_markdown()
    assert "| t | mean | 128 | 0.410 | 0.0808 |" in text


def test_the_observed_difference_is_called_that():
    assert any("only repeats the p-value" in note for note in design(QRELS, [BM25, DENSE], "AP", tests="t").notes())
    assert not design(sd=0.2, difference=0.05, tests="t").notes()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "either scores to take the variance from, or sd"),
        ({"sd": 0.1}, "say which difference"),
        ({"sd": 0, "difference": 0.1}, "sd must be above 0"),
        ({"sd": 1e300, "difference": 0.1, "systems": 3}, "sd must be between"),
        ({"sd": 0.1, "difference": 1e-300}, "difference must be between"),
        ({"sd": 0.1, "difference": 0}, "difference must be above 0"),
        ({"sd": 0.1, "difference": -0.1}, "difference must be above 0"),
        ({"sd": 0.1, "difference": 0.1, "power": 1}, "power must lie between"),
        ({"sd": 0.1, "difference": 0.1, "alpha": 0}, "alpha must lie between"),
        ({"sd": 0.1, "difference": 0.1, "n": 1}, "2 or more, got 1"),
        ({"sd": 0.1, "difference": 0.1, "tests": "guess"}, "expected some of t, sign"),
        ({"sd": 0.1, "difference": 0.1, "systems": 1}, "systems must be 2 or more"),
        ({"sd": 0.1, "difference": 0.1, "family": 0}, "family must be 1 or more"),
        ({"sd": 0.1, "difference": 0.1, "correction": "guess"}, "no correction 'guess'"),
        ({"sd": 0.1, "difference": 0.1, "alternative": "less"}, "two-sided or greater"),
        ({"sd": 0.1, "difference": 0.1, "sizes": [1, 5]}, "2 or more, got 1"),
    ],
)
def test_what_makes_no_sense_is_refused(given, said):
    with pytest.raises(ConventionError, match=said):
        design(**given)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([[0.1], [0.2]], "two runs or more"),
        ([[0.1, 0.2]], "two topics or more"),
        ([[0.1, 0.2], [0.3, 0.4]], "tells no variance"),
        ([[0.1, 0.2], [0.2, 0.1]], "do not differ at all"),
        ([[0.1, 0.2, 0.3], [0.2, 0.3, 0.4]], "no residual|same"),
    ],
)
def test_scores_that_tell_no_variance_are_refused(values, said):
    with pytest.raises(DataError, match=said):
        design(Scores.from_table(values))


# the command


def test_the_command_takes_given_numbers():
    answer = cranfield("design", "--sd", 0.2, "--difference", 0.05, "--topic-count", 50, "--test", "t")
    assert answer.code == 0
    assert "128" in answer.out
    assert "0.410" in answer.out
    assert "█" in answer.out


def test_the_command_takes_runs_and_tables(tmp_path):
    answer = cranfield("design", QRELS, BM25, DENSE, "-m", "AP", "--test", "t", "--format", "json")
    told = json.loads(answer.out)
    assert (
        told["plans"][0]["tests"][0]["needed"] == design(QRELS, [BM25, DENSE], "AP", tests="t").plans[0].tests[0].needed
    )
    (tmp_path / "ap.csv").write_text("topic,x,y\n1,0.1,0.3\n2,0.2,0.5\n3,0.3,0.3\n")
    answer = cranfield("design", "--table", tmp_path / "ap.csv", "--difference", 0.05, "--test", "t", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert {row["measure"] for row in rows} == {"ap"}
    assert all(0 < float(row["power"]) <= 1 for row in rows)


def test_the_command_refuses_both_numbers_and_runs():
    assert cranfield("design", QRELS, BM25, "--sd", 0.2, "--difference", 0.1).code == 2
    assert cranfield("design").code == 2
    answer = cranfield("design", "--sd", 0.2, "--difference", 0.1, "--sizes", "10,x")
    assert (answer.code, "25,50,100" in answer.err) == (2, True)


def test_a_chart_of_power_is_drawn(tmp_path):
    command = ["design", "--sd", 0.2, "--difference", 0.05, "--test", "t sign", "-o"]
    assert cranfield(*command, tmp_path / "power.vl.json").code == 0
    spec = json.loads((tmp_path / "power.vl.json").read_text())
    assert {row["run"] for row in spec["data"]["values"]} == {"t", "sign"}
    pytest.importorskip("vl_convert")
    assert cranfield(*command, tmp_path / "power.svg").code == 0
    assert (tmp_path / "power.svg").read_bytes().startswith(b"<svg")


def test_real_systems_lend_their_variance(shared):
    path = shared / "urbano-robust2004" / "robust2004_ap.csv"
    told = json.loads(cranfield("design", "--table", path, "--difference", 0.02, "--test", "t", "--format", "json").out)
    [plan] = told["plans"]
    assert (plan["n"], plan["systems"]) == (249, 110)
    assert plan["tests"][0]["needed"] > 249  # two systems 0.02 apart: not with the topics there are
