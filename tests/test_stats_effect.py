"""Effect sizes, intervals of a mean and equivalence: by hand, against SciPy and statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Scores, compare
from cranfield.base.errors import DataError
from cranfield.stats.effect_size import (
    cliffs_delta,
    cohens_d,
    common_language,
    d_z,
    d_z_intervals,
    d_z_of_rows,
    g_z,
    hedges_factor,
)
from cranfield.stats.equivalence import non_inferiority, tost
from cranfield.stats.tests_by_name import intervals

few = st.lists(st.integers(0, 5), min_size=1, max_size=8)


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def two(n: int = 30, m: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    rng = seeded(1)
    return rng.normal(0, 1, n), rng.normal(0.1, 1.2, m or n)


def test_d_z_is_t_over_the_root_of_n_against_scipy():
    a, b = two()
    assert d_z(a, b) == pytest.approx(scipy.stats.ttest_rel(b, a).statistic / math.sqrt(30))


def test_d_z_of_a_row_is_that_of_its_two_samples_alone():
    a, b = seeded(3).random((2, 50, 8))
    b[7] = a[7] + 0.25
    assert d_z_of_rows(a, b) == pytest.approx(np.array([d_z(x, y) for x, y in zip(a, b, strict=True)]), nan_ok=True)
    assert np.isnan(d_z_of_rows(a, b)[7])
    assert np.isnan(d_z_of_rows(a[:, :1], b[:, :1])).all()


def test_differences_equal_but_for_rounding_have_no_d_z_in_a_comparison():
    old = np.array([1000.1, 2000.7, 3000.3, 1500.9, 2500.2])
    found = compare(Scores.from_table(np.stack([old, old + 0.001], axis=1), ["old", "new"], measure="AP"))
    assert math.isnan(found.pairs[0].effect)
    assert found.to_dict()["pairs"][0]["effect"] is None
    lines = found.to_text().splitlines()
    place = next(place for place, line in enumerate(lines) if "d_z" in line.split())
    head, row = lines[place : place + 2]
    assert row[: head.index("d_z") + len("d_z")].endswith("  -")


def test_hedges_factor_by_hand_and_near_its_usual_approximation():
    assert hedges_factor(2) == pytest.approx(1 / math.sqrt(math.pi))
    assert hedges_factor(50) == pytest.approx(1 - 3 / (4 * 50 - 1), abs=1e-4)


def test_g_z_is_unbiased():
    """Of normal differences with mean 0.5 and deviation 1, the mean of many g_z is 0.5; that of d_z is not."""
    d = seeded(2).normal(0.5, 1, (4_000, 6))
    d_mean = np.mean([d_z(np.zeros(6), row) for row in d])
    g_mean = np.mean([g_z(np.zeros(6), row) for row in d])
    assert g_mean == pytest.approx(0.5, abs=0.03)
    assert d_mean > 0.56


def test_cohens_d_against_scipy_s_pooled_t():
    a, b = two(20, 30)
    assert cohens_d(a, b) == pytest.approx(scipy.stats.ttest_ind(b, a).statistic * math.sqrt(1 / 20 + 1 / 30))


@given(a=few, b=few)
def test_cliffs_delta_against_exact_enumeration(a, b):
    every = [(y > x) - (y < x) for x in a for y in b]
    assert cliffs_delta(a, b) == pytest.approx(np.mean(every))
    assert common_language(a, b, paired=False) == pytest.approx((np.mean(every) + 1) / 2)


def test_cliffs_delta_against_scipy_s_u():
    a, b = two(20, 30)
    assert cliffs_delta(a, b) == pytest.approx(2 * scipy.stats.mannwhitneyu(b, a).statistic / 600 - 1)


def test_an_effect_without_spread_is_undefined():
    assert math.isnan(d_z([1, 2, 3], [2, 3, 4]))
    assert math.isnan(d_z([0.1, 0.2, 0.3], [0.2, 0.3, 0.4]))  # equal but for rounding
    assert math.isnan(g_z([1], [2]))
    assert math.isnan(cohens_d([1, 1], [2, 2]))
    assert math.isnan(cohens_d([1], [2]))
    assert math.isnan(g_z([1, 2], [2, 5]))  # one degree of freedom is too few to take out the bias
    assert math.isnan(cliffs_delta([], [1]))
    assert math.isnan(common_language([], []))


def test_effects_refuse_what_is_no_pair_or_no_number():
    with pytest.raises(DataError, match="found 2 and 3"):
        d_z([1, 2], [1, 2, 3])
    with pytest.raises(DataError, match="found NaN or infinity"):
        cliffs_delta([1, math.nan], [1, 2])
    with pytest.raises(DataError, match="expected two sequences"):
        cohens_d([[1, 2]], [1, 2])


# Intervals of a mean: those that come with the tests

KINDS = intervals()


def mean_interval(x, level=0.95, method="t", resamples=2000, alternative="two-sided") -> tuple[float, float]:
    x = np.asarray(x, np.float64)
    found = KINDS[method](0 * x, x, level=level, resamples=resamples, alternative=alternative, rng=seeded(5))
    return found.low, found.high


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_the_t_interval_against_scipy(alternative):
    x = two()[1]
    wanted = scipy.stats.ttest_1samp(x, 0, alternative=alternative).confidence_interval(0.9)
    assert mean_interval(x, 0.9, alternative=alternative) == pytest.approx((wanted.low, wanted.high))


@pytest.mark.parametrize("method", KINDS)
def test_an_interval_of_each_row_is_the_row_s_own(method):
    x = seeded(4).normal(0, 1, (6, 20))
    x[2, 5] = math.nan
    rows = KINDS[method].many(0 * x, x, level=0.9, resamples=800, rng=seeded(5))
    for row in (0, 3, 5):
        assert mean_interval(x[row], 0.9, method, 800) == pytest.approx((rows[row].low, rows[row].high))
    assert np.isnan([rows[2].low, rows[2].high]).all()


@pytest.mark.parametrize("method", KINDS)
def test_a_higher_level_is_wider_and_one_value_has_no_interval(method):
    x = two()[1]
    narrow, wide = (mean_interval(x, level, method) for level in (0.8, 0.95))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert np.isnan(mean_interval([1.0], 0.95, method)).all()


# Equivalence and non-inferiority


@pytest.mark.parametrize("paired", [True, False])
def test_tost_against_scipy(paired):
    a, b = two()
    found = tost(a, b, 0.8, paired=paired)
    test = (
        scipy.stats.ttest_rel if paired else lambda x, y, **more: scipy.stats.ttest_ind(x, y, equal_var=False, **more)
    )
    assert found.p_above == pytest.approx(test(b + 0.8, a, alternative="greater").pvalue)
    assert found.p_below == pytest.approx(test(b - 0.8, a, alternative="less").pvalue)
    interval = test(b, a).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.p == max(found.p_above, found.p_below)


def test_tost_against_statsmodels():
    weights = pytest.importorskip("statsmodels.stats.weightstats")
    a, b = two(25, 40)
    assert tost(a, a + b[:25] / 9, 0.3).p == pytest.approx(weights.ttost_paired(a + b[:25] / 9, a, -0.3, 0.3)[0])
    wanted = weights.ttost_ind(b, a, -0.9, 0.9, usevar="unequal")[0]
    assert tost(a, b, 0.9, paired=False).p == pytest.approx(wanted)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("margin", [0.1, 0.3, 0.5, 0.8, 2.0])
def test_equivalence_is_shown_where_the_interval_lies_within_the_margins(margin, alpha):
    for shift in (-1.0, 0.0, 0.3, 1.0):
        a, b = two()
        found = tost(a, b + shift, margin, alpha=alpha)
        assert found.significant == (-margin < found.low and found.high < margin)
        assert found.significant == (found.decision == "equivalent")
        half = non_inferiority(a, b + shift, margin, alpha=alpha)
        assert half.significant == (half.low > -margin)


def test_decisions_in_words():
    a = seeded(6).random(40)
    noise = seeded(7).normal(0, 0.02, 40)
    assert tost(a, a + noise, 0.05).decision == "equivalent"
    assert tost(a, a + noise + 0.2, 0.05).decision == "different"
    assert tost(a, a + 10 * noise, 0.05).decision == "undecided"
    assert non_inferiority(a, a + noise, 0.05).decision == "not inferior"
    assert non_inferiority(a, a + noise + 0.1, 0.05).decision == "superior"
    assert non_inferiority(a, a + noise - 0.2, 0.05).decision == "inferior"
    assert non_inferiority(a, a + 10 * noise, 0.05).decision == "undecided"


@pytest.mark.parametrize(
    ("a", "b", "paired", "reason"),
    [
        ([1], [2], True, "one pair only"),
        ([], [], True, "no pairs"),
        ([1, 2], [2, 3], True, "all differences are equal, so there is no spread to measure them against"),
        ([1, math.nan], [2, 3], True, "some values are not finite numbers"),
        ([1], [2, 3], False, "fewer than two values in one of the samples"),
        ([1, 1], [2, 2], False, "the values within each sample are equal, so there is no spread"),
    ],
)
def test_what_cannot_be_tested_shows_nothing(a, b, paired, reason):
    found = tost(a, b, 0.1, paired=paired)
    assert not found.significant
    assert math.isnan(found.p)
    assert found.reason.startswith(reason)


def test_wrong_arguments_of_a_margin_test_are_named():
    with pytest.raises(DataError, match="margin must be a positive number, got 0"):
        tost([1, 2], [1, 3], 0)
    with pytest.raises(DataError, match=r"alpha must be between 0 and 0\.5, got 0\.95"):
        non_inferiority([1, 2], [1, 3], 0.1, alpha=0.95)
    with pytest.raises(DataError, match="found 2 and 3"):
        tost([1, 2], [1, 2, 3], 0.1)


# the interval of d_z


@pytest.mark.parametrize("n", [3, 5, 25, 250])
@pytest.mark.parametrize("effect", [-2.0, -0.3, 0.0, 0.1, 1.5])
def test_the_interval_of_d_z_against_scipy_s_noncentral_t(n, effect):
    low, high = (float(end[0]) for end in d_z_intervals(np.array([effect]), n))
    t, root = effect * math.sqrt(n), math.sqrt(n)
    assert scipy.stats.nct.sf(t, n - 1, low * root) == pytest.approx(0.025, abs=1e-8)
    assert scipy.stats.nct.cdf(t, n - 1, high * root) == pytest.approx(0.025, abs=1e-8)


def test_the_interval_of_d_z_leaves_out_0_where_the_t_test_rejects():
    for seed in range(40):
        d = seeded(seed).normal(0.3, 1, 20)
        low, high = (float(end[0]) for end in d_z_intervals(np.array([d.mean() / d.std(ddof=1)]), 20))
        assert (low > 0 or high < 0) == (scipy.stats.ttest_1samp(d, 0).pvalue < 0.05)


def test_the_interval_of_d_z_covers_what_it_should():
    d = seeded().normal(0.4, 1, (4000, 15))
    low, high = d_z_intervals(d.mean(axis=1) / d.std(axis=1, ddof=1), 15)
    assert ((low <= 0.4) & (high >= 0.4)).mean() == pytest.approx(0.95, abs=0.012)


def test_an_interval_of_d_z_is_open_undefined_or_far_out():
    effects = np.array([0.5, math.nan, 1e5])
    low, high = d_z_intervals(effects, 30, (0.05, 0.0))
    assert np.isinf(high[0])
    assert np.isnan(low[1])
    assert np.isnan(high[1])
    assert 0.7e5 < low[2] < 1e5


def test_a_comparison_has_the_interval_of_d_z_everywhere():
    values = seeded(1).normal(0.5, 0.1, (40, 2))
    found = compare(Scores.from_table(values, ["x", "y"], measure="AP"), level=0.9)
    [pair] = found.pairs
    expected = d_z_intervals(np.array([pair.effect]), 40, (0.05, 0.05))
    assert (pair.effect_low, pair.effect_high) == (float(expected[0][0]), float(expected[1][0]))
    assert f"[{pair.effect_low:+.2f}, {pair.effect_high:+.2f}]" in found.to_text(verbose=True)
    assert {"effect_low", "effect_high"} <= found.to_dict()["pairs"][0].keys()
    assert "effect_low" in found.to_csv().splitlines()[0]
