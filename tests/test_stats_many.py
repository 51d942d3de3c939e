"""Two-way ANOVA, Tukey's HSD and its randomised twin, Friedman, Nemenyi: against other programs and published tables."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from cranfield.base.errors import DataError
from cranfield.stats.many_groups import (
    critical_range,
    friedman,
    max_t,
    nemenyi,
    randomised_tukey_hsd,
    range_survival,
    tukey_hsd,
    two_way_anova,
)
from cranfield.stats.randomisation import sign_flip_p
from cranfield.stats.tests_by_name import TESTS_OF_MANY, any_test, find_test

# Montgomery, Design and Analysis of Experiments: six batches of resin × four extrusion pressures.
GRAFTS = np.array(
    [
        [90.3, 92.5, 85.5, 82.5],
        [89.2, 89.5, 90.8, 89.5],
        [98.2, 90.6, 89.6, 85.6],
        [93.9, 94.7, 86.2, 87.4],
        [87.4, 87.0, 88.0, 78.9],
        [97.9, 95.8, 93.4, 90.7],
    ]
)

# Demšar (2006), table 6: fourteen data sets × four classifiers. In the row of voting the paper's ranks tell two
# values apart that are printed alike.
CLASSIFIERS = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def drawn(blocks=20, groups=5, seed=1, effect=0.0):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, (blocks, groups)) + rng.normal(0, 2, (blocks, 1)) + effect * np.arange(groups)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_anova_against_montgomery_s_vascular_grafts():
    found = two_way_anova(GRAFTS)
    assert (found.ss_groups, found.ss_blocks, found.ss_error) == pytest.approx((178.17, 192.25, 109.89), abs=0.005)
    assert (found.ms_groups, found.ms_blocks, found.mse) == pytest.approx((59.39, 38.45, 7.33), abs=0.005)
    assert found.f_groups == pytest.approx(8.11, abs=0.005)
    assert found.p_groups == pytest.approx(0.0019, abs=0.00005)
    assert (found.df_groups, found.df_blocks, found.df_error) == (3, 5, 15)


@pytest.mark.parametrize("shape", [(2, 2), (3, 7), (50, 4)])
def test_anova_against_statsmodels(shape):
    import pandas as pd
    import statsmodels.formula.api as smf
    from statsmodels.stats.anova import anova_lm

    table = drawn(*shape, effect=0.3)
    rows = [(b, g, table[b, g]) for b, g in np.ndindex(*shape)]
    model = smf.ols("y ~ C(g) + C(b)", pd.DataFrame(rows, columns=["b", "g", "y"])).fit()
    theirs, ours = anova_lm(model), two_way_anova(table)
    assert [ours.ss_groups, ours.ss_blocks, ours.ss_error] == pytest.approx(theirs["sum_sq"].tolist())
    assert [ours.f_groups, ours.f_blocks] == pytest.approx(theirs["F"].tolist()[:2])
    assert [ours.p_groups, ours.p_blocks] == pytest.approx(theirs["PR(>F)"].tolist()[:2])


def test_effect_sizes_by_hand():
    found = two_way_anova([[1, 2, 3], [2, 4, 3], [1, 3, 5]])  # sums of squares 26/3, 2, 10/3; residual mean square 5/6
    assert found.eta2 == pytest.approx((26 / 3) / 14)
    assert found.partial_eta2 == pytest.approx((26 / 3) / 12)
    assert found.omega2 == pytest.approx((26 / 3 - 2 * 5 / 6) / (14 + 5 / 6))
    assert found.partial_omega2 == pytest.approx(2 * (found.f_groups - 1) / (2 * (found.f_groups - 1) + 9))


@pytest.mark.parametrize("df", [1, 2, 5, 60, 1000, np.inf])
@pytest.mark.parametrize("groups", [2, 3, 10, 50])
def test_the_studentised_range_against_scipy(groups, df):
    q = np.array([0.3, 1.0, 2.5, 3.5, 5.0, 8.0])
    assert range_survival(q, groups, df) == pytest.approx(
        stats.studentized_range.sf(q, groups, df), rel=1e-6, abs=1e-10
    )


def test_the_studentised_range_against_the_printed_tables():
    demsar = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]  # table 5 of Demšar: q / sqrt(2)
    ours = [critical_range(0.05, groups, np.inf) / 2**0.5 for groups in range(2, 11)]
    assert ours == pytest.approx(demsar, abs=0.0015)
    assert critical_range(0.05, 4, 20) == pytest.approx(3.96, abs=0.005)
    assert critical_range(0.01, 10, 120) == pytest.approx(5.30, abs=0.005)


def test_small_tails_of_the_studentised_range_keep_their_digits():
    assert range_survival(16.0, 3, np.inf) == pytest.approx(3 * stats.norm.sf(16 / 2**0.5) * 2, rel=1e-3)
    assert range_survival(12.0, 2, 30) == pytest.approx(2 * stats.t.sf(12 / 2**0.5, 30), rel=1e-12)


def test_tukey_of_two_groups_against_the_paired_t_test():
    for seed in range(5):
        table = drawn(15, 2, seed, 0.5)
        theirs = stats.ttest_rel(table[:, 1], table[:, 0])
        found = tukey_hsd(table)
        interval = theirs.confidence_interval(0.95)
        assert found.p[0, 1] == pytest.approx(theirs.pvalue, rel=1e-10)
        assert found.statistic[0, 1] == pytest.approx(2**0.5 * abs(theirs.statistic))
        assert (found.low[0, 1], found.high[0, 1]) == pytest.approx((interval.low, interval.high))


def test_tukey_against_statsmodels_residual_variance_and_scipy_s_range():
    found = tukey_hsd(GRAFTS)
    error = (7.32575 / 6) ** 0.5
    q = abs(GRAFTS[:, 0].mean() - GRAFTS[:, 3].mean()) / error
    assert found.p[0, 3] == pytest.approx(stats.studentized_range.sf(q, 4, 15), rel=1e-6)
    assert found.critical == pytest.approx(stats.studentized_range.isf(0.05, 4, 15) * error, rel=1e-6)
    assert found.differ().sum() / 2 == 2  # 8500 and 8700 against 9100
    assert (found.differ() == ((found.low > 0) | (found.high < 0))).all()


def test_tukey_keeps_its_family_wise_error():
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(3000):
        found = two_way_anova(table := rng.normal(0, 1, (10, 6)) + rng.normal(0, 3, (10, 1)))
        means = table.mean(axis=0)
        wrong += np.ptp(means) > critical_range(0.05, 6, 45) * (found.mse / 10) ** 0.5
    assert 0.04 < wrong / 3000 < 0.06


def test_randomised_tukey_against_exact_enumeration():
    table = np.array([[1.0, 4.0, 2.0], [0.0, 3.0, 3.0], [2.0, 6.0, 1.0]])
    ranges = []
    for way in product(permutations(range(3)), repeat=3):
        means = np.array([row[list(order)] for row, order in zip(table, way, strict=True)]).mean(axis=0)
        ranges.append(np.ptp(means))
    found = randomised_tukey_hsd(table)
    apart = abs(table.mean(axis=0)[1] - table.mean(axis=0)[0])
    assert found.exact
    assert found.p[0, 1] == pytest.approx(np.mean(np.array(ranges) >= apart - 1e-12))
    assert found.p[0, 0] == 1


def test_randomised_tukey_sampled_against_exact_enumeration(rng):
    table = drawn(4, 3, 5, 1.0)
    exact = randomised_tukey_hsd(table, resamples=216)
    sampled = randomised_tukey_hsd(np.repeat(table, 1, axis=0), resamples=215, rng=rng)
    many = [randomised_tukey_hsd(table, 215, np.random.default_rng(i)).p[0, 2] for i in range(40)]
    assert (exact.exact, sampled.exact, sampled.resamples) == (True, False, 215)
    assert np.mean(many) == pytest.approx(exact.p[0, 2], abs=0.02)


def test_randomised_tukey_of_two_groups_against_the_randomisation_test():
    table = drawn(9, 2, 11, 0.8)
    p = sign_flip_p((table[:, 1] - table[:, 0])[None], 1000, np.random.default_rng(0))
    assert randomised_tukey_hsd(table, 1000).p[0, 1] == pytest.approx(p[0])


def test_randomised_tukey_is_close_to_tukey_where_values_are_normal(rng):
    table = drawn(40, 4, 2, 0.25)
    ours = randomised_tukey_hsd(table, 20_000, rng)
    assert ours.p == pytest.approx(tukey_hsd(table).p, abs=0.02)
    assert ours.critical == pytest.approx(tukey_hsd(table).critical, rel=0.05)


def test_randomised_tukey_is_never_0_and_repeats():
    table = drawn(30, 4, 2, 5.0)
    one, other = (randomised_tukey_hsd(table, 99, np.random.default_rng(3)) for _ in range(2))
    assert one.p.min() == 0.01
    assert (one.p == other.p).all()


def test_randomised_tukey_keeps_its_family_wise_error():
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(1500):
        table = rng.exponential(1, (8, 4)) + rng.normal(0, 3, (8, 1))
        wrong += randomised_tukey_hsd(table, 199, rng).smallest_p <= 0.05
    assert 0.036 < wrong / 1500 < 0.064


def test_randomised_tukey_tells_its_progress():
    seen = []
    randomised_tukey_hsd(np.random.default_rng(0).random((300, 100)), 150, progress=lambda n, of: seen.append((n, of)))
    assert seen[-1] == (150, 150)
    assert len(seen) > 1


def test_max_t_of_two_groups_against_the_studentised_bootstrap_of_both_sides(rng):
    table = rng.normal([0, 0.3], 1, (60, 2))
    found = max_t(table, resamples=20_000, rng=np.random.default_rng(1))
    d = table[:, 1] - table[:, 0]
    centred = d - d.mean()
    drawn = centred[np.random.default_rng(2).integers(0, 60, (20_000, 60))]
    t = np.abs(drawn.mean(axis=1) / (drawn.std(axis=1, ddof=1) / 60**0.5))
    observed = abs(d.mean() / (d.std(ddof=1) / 60**0.5))
    assert found.statistic[0, 1] == pytest.approx(observed)
    assert found.p[0, 1] == pytest.approx((t >= observed).mean(), abs=0.006)
    assert found.critical == pytest.approx(np.quantile(t, 0.95), abs=0.05)


@pytest.mark.parametrize("seed", range(8))
def test_max_t_rejects_where_its_interval_leaves_out_0(seed):
    rng = np.random.default_rng(seed)
    found = max_t(rng.gamma(1, 1, (20, 6)) + np.linspace(0, 1.5, 6), resamples=999, rng=rng)
    outside = (found.low > 0) | (found.high < 0)
    np.testing.assert_array_equal(outside, found.differ(0.05))
    np.testing.assert_allclose(found.low, -found.high.T)


def test_max_t_keeps_its_family_wise_error_where_spreads_differ():
    alarms = 0
    for replicate in range(400):
        rng = np.random.default_rng([7, replicate])
        table = rng.normal(0, 1, (25, 1)) + rng.normal(0, [0.1, 0.1, 0.1, 1.0, 1.0], (25, 5))
        alarms += max_t(table, resamples=500, rng=rng).smallest_p <= 0.05
    assert alarms / 400 <= 0.05 + 2 * (0.05 * 0.95 / 400) ** 0.5


def test_max_t_tells_like_groups_apart_that_tukey_does_not():
    rng = np.random.default_rng(3)
    table = rng.normal(0, 1, (40, 1)) + rng.normal(0, [0.05, 0.05, 1.0, 1.0], (40, 4)) + [0, 0.1, 0, 0]
    assert max_t(table, rng=rng).p[0, 1] < 0.01
    assert tukey_hsd(table).p[0, 1] > 0.5


def test_max_t_of_five_blocks_shows_nothing_and_constant_pairs_do_not_move_it():
    table = np.random.default_rng(0).normal([0, 1, 2], 0.01, (5, 3))
    found = max_t(table)
    assert not found.differ(0.05).any()
    assert np.isinf(found.critical)
    varied = np.random.default_rng(0).normal(size=(30, 3))
    same = np.column_stack([varied, varied[:, 0], varied[:, 1] + 1])
    np.testing.assert_allclose(max_t(same).p[:3, :3], max_t(varied).p, atol=0.2)
    assert max_t(same).p[0, 3] == 1


@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_friedman_against_scipy(decimals):
    for seed in range(5):
        table = drawn(12, 4, seed, 0.2).round(decimals)
        theirs = stats.friedmanchisquare(*table.T)
        ours = friedman(table)
        assert (ours.chi2, ours.p) == pytest.approx((theirs.statistic, theirs.pvalue))


def test_friedman_against_the_anova_of_ranks():
    """Iman and Davenport's F is the two-way ANOVA of the ranks, whose blocks all have the same mean."""
    table = drawn(12, 4, 3, 0.4)
    ours, theirs = friedman(table), two_way_anova(stats.rankdata(table, axis=1))
    assert (ours.f, ours.p_f) == pytest.approx((theirs.f_groups, theirs.p_groups))
    assert ours.w == pytest.approx(ours.chi2 / (12 * 3))


def test_friedman_with_all_blocks_alike_against_exact_enumeration():
    assert friedman([[1, 2, 3]] * 4).p_f == pytest.approx(6.0**-3)
    assert friedman([[1, 2, 2]] * 3).p_f == pytest.approx(3.0**-2)
    assert friedman([[1, 2, 3]] * 4).w == 1


def test_nemenyi_against_demsar_table_6():
    found = nemenyi(CLASSIFIERS)
    assert found.means == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=0.0005)
    assert found.critical == pytest.approx(1.25, abs=0.005)
    assert nemenyi(CLASSIFIERS, level=0.9).critical == pytest.approx(1.12, abs=0.005)
    assert not found.differ().any()
    assert nemenyi(CLASSIFIERS, level=0.9).differ()[0].tolist() == [False, True, False, True]


def test_nemenyi_against_scikit_posthocs():
    theirs = [  # posthoc_nemenyi_friedman, version 0.17.1
        [1.0, 0.088672709, 0.956177175, 0.074184795],
        [0.088672709, 1.0, 0.25922807, 0.999859449],
        [0.956177175, 0.25922807, 1.0, 0.226696886],
        [0.074184795, 0.999859449, 0.226696886, 1.0],
    ]
    assert nemenyi(CLASSIFIERS).p == pytest.approx(np.array(theirs), abs=1e-8)


@pytest.mark.parametrize("test", [two_way_anova, tukey_hsd, randomised_tukey_hsd, friedman, nemenyi])
@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ([[1, 2, 3]], "at least 2 blocks"),
        ([[1], [2]], "at least 2 groups"),
        ([1, 2, 3], "blocks × groups"),
        ([[1, 2], [np.nan, 3]], "found nan in block 2 of group 1"),
        ([[1, np.inf], [1, 3]], "found inf in block 1 of group 2"),
    ],
)
def test_a_table_that_cannot_be_tested_is_refused(test, table, problem):
    with pytest.raises(DataError, match=problem):
        test(table)


@pytest.mark.parametrize("test", [tukey_hsd, randomised_tukey_hsd, nemenyi])
@pytest.mark.parametrize("table", [np.full((4, 3), 0.1), np.arange(4.0)[:, None] * np.ones(3) / 3])
def test_groups_that_are_all_alike_get_no_p_value_but_a_reason(test, table):
    found = test(table)
    assert np.isnan(found.p).all()
    assert "are the same" in found.reason
    assert not found.differ().any()


def test_constant_differences_get_no_p_value_but_a_reason():
    table = np.arange(5.0)[:, None] / 7 + np.array([0.0, 0.1, 0.3])
    found = two_way_anova(table)
    assert np.isnan([found.f_groups, found.p_groups, found.p_blocks]).all()
    assert "no variance" in found.reason
    assert "no variance" in tukey_hsd(table).reason
    assert friedman(np.ones((3, 3))).reason == "all values of each block are the same"


def test_a_level_outside_0_and_1_is_refused():
    for test in (tukey_hsd, randomised_tukey_hsd, nemenyi):
        with pytest.raises(DataError, match="level must lie between 0 and 1"):
            test(GRAFTS, level=95)


def test_no_resamples_are_refused():
    with pytest.raises(DataError, match="resamples must be 1 or more, got 0"):
        randomised_tukey_hsd(GRAFTS, 0)


@pytest.mark.slow
def test_family_wise_errors_on_real_values_are_as_the_page_says(shared):
    """Ten of 61 groups, blocks drawn again, values shuffled within blocks; docs/many.md shows the shares."""
    table = np.genfromtxt(shared / "urbano-adhoc" / "adhoc5_ap.csv", delimiter=",", skip_header=1)
    rng, trials = np.random.default_rng(0), 3000
    wrong = np.zeros(6)
    for _ in range(trials):
        some = table[:, rng.choice(61, 10, replace=False)][rng.integers(0, 50, 50)]
        some = rng.permuted(some, axis=1)
        ranks, pairs = friedman(some), tukey_hsd(some)
        wrong += [
            two_way_anova(some).p_groups <= 0.05,
            pairs.smallest_p <= 0.05,
            randomised_tukey_hsd(some, 199, rng).smallest_p <= 0.05,
            ranks.p <= 0.05,
            ranks.p_f <= 0.05,
            nemenyi(some).smallest_p <= 0.05,
        ]
    assert wrong / trials == pytest.approx([0.045, 0.050, 0.052, 0.043, 0.044, 0.042], abs=0.01)


@pytest.mark.slow
def test_the_family_wise_error_of_max_t_on_real_values_is_as_the_page_says(shared):
    """As above, with fewer tables; it errs to the safe side."""
    table = np.genfromtxt(shared / "urbano-adhoc" / "adhoc5_ap.csv", delimiter=",", skip_header=1)
    rng, trials, wrong = np.random.default_rng(0), 1000, 0
    for _ in range(trials):
        some = rng.permuted(table[:, rng.choice(61, 10, replace=False)][rng.integers(0, 50, 50)], axis=1)
        wrong += max_t(some, 499, rng).smallest_p <= 0.05
    assert 0.015 <= wrong / trials <= 0.055


def test_all_pairs_of_110_groups_are_tested_in_one_go(shared):
    table = np.genfromtxt(shared / "urbano-robust2004" / "robust2004_ap.csv", delimiter=",", skip_header=1)[:, 1:]
    assert table.shape == (249, 110)
    found = tukey_hsd(table)
    assert found.p.shape == (110, 110)
    for i, j in ((0, 1), (3, 77), (50, 109)):
        q = found.statistic[i, j]
        assert found.p[i, j] == pytest.approx(stats.studentized_range.sf(q, 110, 109 * 248), rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("name", TESTS_OF_MANY)
def test_a_test_of_many_says_what_it_is_and_what_it_found(name):
    test, table = TESTS_OF_MANY[name], np.random.default_rng(8).normal([0, 0.4, 1.5], 1, (12, 3))
    found = test(table, level=0.9, resamples=300, rng=np.random.default_rng(0))
    words, p = found.overall
    assert words == {
        "anova": f"F(2, 22) = {getattr(found, 'f_groups', 0):.4g}",
        "friedman": f"chi2(2) = {getattr(found, 'chi2', 0):.4g}, W = {getattr(found, 'w', 0):.3g}",
    }.get(name, f"critical {getattr(found, 'critical_of', '')} {getattr(found, 'critical', 0):.4g}")
    assert 0 < p < 0.1
    assert find_test(name) is any_test(name) is test
    assert test.of_pairs.pairs
    assert name in test.with_it
    assert test.of_pairs.name in test.with_it
    assert test.about.endswith(".")
    assert test.reference


@pytest.mark.parametrize("name", [name for name, one in TESTS_OF_MANY.items() if one.pairs])
def test_all_pairs_of_a_test_of_many_are_its_own(name):
    table = np.random.default_rng(9).random((8, 4))
    p, reason = TESTS_OF_MANY[name].all_pairs(table, 200, np.random.default_rng(1))
    assert reason == ""
    assert (p == TESTS_OF_MANY[name](table, resamples=200, rng=np.random.default_rng(1)).p).all()
    assert TESTS_OF_MANY[name].all_pairs(np.ones((4, 3)), 200, np.random.default_rng(1))[1]


def test_the_studentised_range_of_many_groups_with_few_degrees_of_freedom_against_scipy():
    assert critical_range(0.001, 20, 3) == pytest.approx(stats.studentized_range.ppf(0.999, 20, 3), rel=1e-3)
