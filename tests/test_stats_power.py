"""Power and sample sizes: against statsmodels, exact enumeration and simulation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from cranfield.base.errors import DataError
from cranfield.stats.power import (
    Design,
    _reaches,
    anova_power,
    anova_sample_size,
    detectable_difference,
    interval_width,
    power,
    power_curve,
    power_tests,
    sample_size,
    width_sample_size,
)
from cranfield.stats.tests_by_name import TESTS
from cranfield.stats.two_sample_test import Prospect

OTHER = {"two-sided": "two-sided", "greater": "larger", "less": "smaller"}


def outlook_drawn(design: Design, difference: float) -> np.ndarray:
    """Many of the differences that a design expects."""
    return design.outlook(difference).draw((200, 1000), [9])


@pytest.mark.parametrize("alternative", OTHER)
@pytest.mark.parametrize(
    ("effect", "n", "alpha"), [(0.5, 20, 0.05), (0.1, 250, 0.01), (-0.3, 40, 0.1), (0.0, 30, 0.05)]
)
def test_the_power_of_t_against_statsmodels(effect, n, alpha, alternative):
    from statsmodels.stats.power import TTestPower

    theirs = TTestPower().power(effect, n, alpha, alternative=OTHER[alternative])
    ours = power(Design("t", sd=0.25, alpha=alpha, alternative=alternative), n, 0.25 * effect)
    assert ours == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(("effect", "target"), [(0.2, 0.8), (0.5, 0.9), (1.5, 0.95)])
def test_the_sample_size_of_t_against_statsmodels(effect, target):
    from statsmodels.stats.power import TTestPower

    theirs = TTestPower().solve_power(effect_size=effect, power=target, alpha=0.05)
    assert sample_size(Design("t", sd=1.0), effect, target) == int(np.ceil(theirs))


def test_the_power_of_t_against_simulation():
    rng = np.random.default_rng(0)
    drawn = rng.normal(0.1, 0.3, (20_000, 40))
    found = (stats.ttest_1samp(drawn, 0, axis=1).pvalue <= 0.05).mean()
    assert power(Design("t", sd=0.3), 40, 0.1) == pytest.approx(found, abs=0.012)


def test_t_with_a_sample_uses_its_standard_deviation():
    sample = [0.1, -0.2, 0.3, 0.0, 0.05]
    assert power(Design("t", sample=sample), 30, 0.1) == power(Design("t", sd=float(np.std(sample, ddof=1))), 30, 0.1)


def test_a_huge_effect_is_always_found():
    assert power(Design("t", sd=0.001), 100, 1.0) == 1
    assert power(Design("t", sd=0.001, alternative="less"), 100, 1.0) == 0


@pytest.mark.parametrize("alternative", OTHER)
def test_the_power_of_the_sign_test_against_exact_enumeration(alternative):
    n, tied = 9, 0.2
    sample = np.r_[np.random.default_rng(3).exponential(1.0, 80), np.zeros(20)]
    design = Design("sign", sample=sample, alpha=0.2, alternative=alternative)
    up = design.prospect(0.3).up
    assert up == pytest.approx((outlook_drawn(design, 0.3) > 0).mean() / 0.8, abs=0.005)
    found = 0.0
    for ups, ties in product(range(n + 1), range(n + 1)):
        if ups + ties > n:
            continue
        chance = stats.multinomial.pmf([ups, ties, n - ups - ties], n, [up * (1 - tied), tied, (1 - up) * (1 - tied)])
        untied = n - ties
        p = stats.binomtest(ups, untied, alternative=alternative).pvalue if untied else 1.0
        found += chance * (p <= 0.2)
    assert power(design, n, 0.3) == pytest.approx(found)


@pytest.mark.parametrize("tied", [0.0, 0.1, 3 / 7])
@pytest.mark.parametrize("n", [2, 7, 50, 1000])
def test_the_power_of_the_sign_test_against_scipy_s_binomial(n, tied):
    for up, alpha in product((0.3, 0.5, 0.7, 1.0), (0.01, 0.05, 0.2)):
        m = np.arange(n + 1)
        least = stats.binom.isf(alpha / 2, m, 0.5) + 1
        chance = stats.binom.sf(least - 1, m, up) + stats.binom.cdf(m - least, m, up)
        expected = float((chance * stats.binom.pmf(m, n, 1 - tied)).sum())
        assert TESTS["sign"].power_at(n, Prospect(0.0, up, tied), alpha, "two-sided") == pytest.approx(expected)


@pytest.mark.parametrize("difference", [0.02, 0.08, 0.2])
def test_a_simulation_that_ends_early_answers_as_the_whole_one(difference):
    design = Design("randomisation", sd=0.2, trials=1100, resamples=100)
    found = power(design, 30, difference)
    for target in (found - 1e-9, found, found + 1e-9, 0.01, 0.99):
        assert _reaches(design, 30, difference, target) == (found >= target)


def test_the_sample_size_of_the_sign_test_suffices_from_there_on():
    design = Design("sign", sd=1.0)
    n = sample_size(design, 0.5)
    assert power(design, n - 1, 0.5) < 0.8
    assert power_curve(design, range(n, n + 60), 0.5).min() >= 0.8


def test_the_sign_test_finds_nothing_with_too_few_blocks():
    assert power(Design("sign", sd=1.0), 5, 100.0) == 0  # five of five up is p = 0.0625
    with pytest.raises(DataError, match="cannot reach p < 0.05 with 5 blocks"):
        detectable_difference(Design("sign", sd=1.0), 5)


@pytest.mark.parametrize("test", ["randomisation", "wilcoxon"])
@pytest.mark.parametrize("alternative", OTHER)
def test_simulated_power_of_normal_differences_is_near_that_of_t(test, alternative):
    """Wilcoxon's efficiency is 95.5 %: 40 blocks do for it what 38 do for t. The randomisation test's is that of t."""
    n, by = 40, 0.1 if alternative != "less" else -0.1
    exact = power(Design("t", sd=0.25, alternative=alternative), 38 if test == "wilcoxon" else 40, by)
    drawn = Design(test, sd=0.25, alternative=alternative, trials=4000, resamples=500)
    assert power(drawn, n, by) == pytest.approx(exact, abs=0.025)


LOPSIDED = {
    "skewed": np.random.default_rng(4).exponential(0.2, 51) - 0.05,
    "one huge": np.r_[np.full(24, -0.02), 0.9] + np.linspace(0, 0.01, 25),
    "steps": np.repeat([0.5, -0.25, 0.0, -1.0], [20, 5, 10, 6]),
}


@pytest.mark.parametrize("alternative", OTHER)
@pytest.mark.parametrize("shape", LOPSIDED)
@pytest.mark.parametrize("test", ["t", "randomisation", "wilcoxon", "sign"])
def test_without_a_difference_power_is_the_level_however_lopsided_the_sample(test, shape, alternative):
    trials, n = 2000, 40
    design = Design(test, sample=LOPSIDED[shape], alternative=alternative, trials=trials, resamples=500)
    found, error = power(design, n, 0.0), (0.05 * 0.95 / trials) ** 0.5
    assert found <= 0.05 + 2 * error
    discrete = test == "sign" or shape != "skewed"  # few values: the test rejects less often than it may
    assert found >= (0.01 if discrete else 0.05 - 2 * error)
    assert power(design, n, 1e-9 if alternative != "less" else -1e-9) == pytest.approx(found, abs=2 * error)


def test_wilcoxon_finds_nothing_where_it_cannot():
    assert power(Design("wilcoxon", sd=0.1, trials=300), 5, 1.0) == 0  # all five up is p = 0.0625


def test_simulated_power_against_scipy_s_wilcoxon():
    rng = np.random.default_rng(1)
    sample = rng.exponential(0.1, 60) - 0.08
    design = Design("wilcoxon", sample=sample, trials=2000)
    drawn = design.outlook(0.03).draw((3000, 80), [5])
    theirs = (stats.wilcoxon(drawn, axis=1, method="asymptotic").pvalue <= 0.05).mean()
    assert power(design, 80, 0.03) == pytest.approx(theirs, abs=0.04)


def test_zeros_of_the_sample_stay_zeros_and_the_mean_is_as_asked():
    design = Design("randomisation", sample=[0.0, 0.0, 0.1, -0.1, 0.3])
    outlook = design.outlook(0.05)
    assert outlook.tied == 0.4
    drawn = outlook_drawn(design, 0.05)
    assert drawn.mean() == pytest.approx(0.05, abs=0.002)
    assert (drawn == 0).mean() == pytest.approx(0.4, abs=0.005)
    middle = np.sort(outlook.centres - 0.05 / 0.6)
    np.testing.assert_allclose(middle, -middle[::-1], atol=1e-12)


def test_the_sample_spreads_as_the_standard_deviation_of_t_does():
    sample = np.random.default_rng(0).exponential(0.2, 9)
    drawn = outlook_drawn(Design("sign", sample=sample), 0.1)
    assert drawn.std() == pytest.approx(sample.std(ddof=1), rel=0.01)


def test_where_nothing_is_left_to_move_nothing_is_found():
    for test in ("sign", "randomisation", "wilcoxon"):
        assert power(Design(test, sample=[0.0, 0.5], trials=300), 20, 0.0) == 0


def test_the_same_seed_gives_the_same_power_and_another_a_slightly_different_one():
    sample = np.random.default_rng(2).normal(0, 0.2, 50)
    one, again, other = (
        power(Design("randomisation", sample=sample, seed=seed, trials=500, resamples=200), 30, 0.08)
        for seed in (1, 1, 2)
    )
    assert one == again != other
    assert one == pytest.approx(other, abs=0.1)


def test_simulated_sample_size_reaches_the_power():
    sample = np.random.default_rng(2).normal(0, 0.2, 100)
    design = Design("randomisation", sample=sample, trials=1000, resamples=300)
    n = sample_size(design, 0.1)
    exact = sample_size(Design("t", sample=sample), 0.1)
    assert power(design, n, 0.1) >= 0.8
    assert n == pytest.approx(exact, abs=6)


@pytest.mark.parametrize("alternative", OTHER)
@pytest.mark.parametrize("test", ["t", "sign", "randomisation"])
def test_the_detectable_difference_is_detected_with_that_power(test, alternative):
    design = Design(test, sd=0.2, alternative=alternative, trials=500, resamples=200)
    found = detectable_difference(design, 60, 0.8)
    assert (found < 0) == (alternative == "less")
    assert power(design, 60, found) == pytest.approx(0.8, abs=0.01)


def test_power_grows_with_blocks():
    curve = power_curve(Design("t", sd=0.2), [10, 20, 40, 80, 160], 0.05)
    assert (np.diff(curve) > 0).all()


@pytest.mark.parametrize(("groups", "n", "spread"), [(2, 30, 0.1), (5, 50, 0.08), (20, 25, 0.2)])
def test_the_power_of_one_way_anova_against_statsmodels(groups, n, spread):
    from statsmodels.stats.power import FTestAnovaPower

    sd = 0.2
    f = (spread**2 / (2 * groups)) ** 0.5 / sd  # Cohen's f of two groups spread apart, the others half-way
    theirs = FTestAnovaPower().power(f, n * groups, 0.05, k_groups=groups)
    assert anova_power(n, groups, spread, sd, crossed=False) == pytest.approx(theirs, abs=1e-6)


def test_anova_of_two_groups_against_the_paired_t_test():
    """The residual's standard deviation is that of the differences over the root of 2."""
    assert anova_power(40, 2, 0.1, 0.3 / 2**0.5) == pytest.approx(power(Design("t", sd=0.3), 40, 0.1), abs=1e-9)


def test_the_power_of_two_way_anova_against_simulation():
    rng = np.random.default_rng(3)
    groups, n, spread, sd = 4, 20, 0.15, 0.15
    means = np.array([0, spread / 2, spread / 2, spread])
    values = rng.normal(0, sd, (8000, n, groups)) + means
    by_group, by_block = values.mean(axis=1), values.mean(axis=2)
    residual = values - by_group[:, None] - by_block[..., None] + values.mean(axis=(1, 2))[:, None, None]
    f = n * by_group.var(axis=1, ddof=1) / (np.square(residual).sum(axis=(1, 2)) / ((groups - 1) * (n - 1)))
    found = (f > stats.f.isf(0.05, groups - 1, (groups - 1) * (n - 1))).mean()
    assert anova_power(n, groups, spread, sd) == pytest.approx(found, abs=0.02)


def test_the_sample_size_of_anova_is_the_smallest_that_suffices():
    n = anova_sample_size(10, 0.1, 0.2, power=0.8)
    assert anova_power(n, 10, 0.1, 0.2) >= 0.8 > anova_power(n - 1, 10, 0.1, 0.2)


def test_the_expected_width_of_an_interval_against_simulation():
    drawn = np.random.default_rng(5).normal(0, 0.2, (50_000, 10))
    widths = 2 * stats.t.ppf(0.975, 9) * drawn.std(axis=1, ddof=1) / 10**0.5
    assert interval_width(10, 0.2) == pytest.approx(widths.mean(), rel=0.005)
    n = width_sample_size(0.05, 0.2)
    assert interval_width(n, 0.2) <= 0.05 < interval_width(n - 1, 0.2)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"test": "z", "sd": 1.0}, "expected a test of t, sign, randomisation, wilcoxon, found 'z'"),
        ({}, "either the standard deviation"),
        ({"sd": 1.0, "sample": [1, 2]}, "either the standard deviation"),
        ({"sd": 0.0}, "must be above 0"),
        ({"sd": np.nan}, "must be above 0"),
        ({"sample": [1.0]}, "two differences or more"),
        ({"sample": [0.5, 0.5, 0.5]}, "all 3 differences are 0.5"),
        ({"sample": [0.5, np.nan]}, "found NaN"),
        ({"sd": 1.0, "alpha": 5}, "alpha must lie between 0 and 1"),
        ({"sd": 1.0, "alternative": "both"}, "alternative must be one of"),
        ({"sd": 1.0, "trials": 0}, "trials must be 1 or more"),
    ],
)
def test_a_design_that_makes_no_sense_is_refused(arguments, problem):
    with pytest.raises(DataError, match=problem):
        Design(**arguments)


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (lambda: power(Design(sd=1.0), 1, 0.1), "two blocks or more"),
        (lambda: power(Design(sd=1.0), 10, np.nan), "must be a number"),
        (lambda: sample_size(Design(sd=1.0), 0.0), "finds a difference of 0"),
        (lambda: sample_size(Design(sd=1.0, alternative="greater"), -0.1), "finds a difference of -0.1"),
        (lambda: sample_size(Design(sd=1.0), 0.1, power=80), "power must lie between"),
        (lambda: sample_size(Design(sd=1.0), 1e-9), "more than 10,000,000 blocks"),
        (lambda: detectable_difference(Design(sd=1.0), 1), "two blocks or more"),
        (lambda: anova_power(10, 1, 0.1, 0.1), "two groups or more"),
        (lambda: anova_power(10, 3, 0.1, 0), "above 0"),
        (lambda: anova_sample_size(3, 0.0, 0.1), "spread of 0"),
        (lambda: interval_width(1, 0.1), "two blocks or more"),
        (lambda: width_sample_size(0, 0.1), "above 0"),
    ],
)
def test_a_question_without_an_answer_is_refused(ask, problem):
    with pytest.raises(DataError, match=problem):
        ask()


def test_anova_finds_no_difference_as_often_as_alpha_says():
    assert anova_power(20, 4, spread=0.0, sd=0.1, alpha=0.03) == 0.03


@pytest.mark.parametrize(("effect", "wanted"), [(1e9, 1.0), (-1e9, 0.0)])
def test_the_power_of_t_far_out_is_0_or_1(effect, wanted):
    assert power(Design("t", sd=1.0, alternative="greater"), 10, effect) == wanted


def test_the_tests_whose_power_is_known():
    assert power_tests() == (["t", "sign"], ["randomisation", "wilcoxon"])
