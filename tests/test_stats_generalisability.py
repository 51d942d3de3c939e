"""G-studies and D-studies: against Brennan's worked example, the analysis of variance and simulation."""

from __future__ import annotations

from math import ceil, inf

import numpy as np
import pytest

from cranfield.base.errors import DataError
from cranfield.stats.many_groups import two_way_anova
from cranfield.stats.reliability import GStudy, blocks_needed, d_study, g_study, g_study_from_mean_squares

BRENNAN = (10.2963, 11.6273, 2.7872, 12, 10)  # synthetic data 4: ten persons, twelve items


def simulated(rng, blocks, groups, replicates=None, sds=(0.1, 0.2, 0.15, 0.05, 0.1)):
    """Values whose groups, blocks, interaction, replicates and residual have these standard deviations."""
    r = replicates or 1
    values = (
        rng.normal(0, sds[0], (1, groups, 1))
        + rng.normal(0, sds[1], (blocks, 1, 1))
        + rng.normal(0, sds[2], (blocks, groups, 1))
        + rng.normal(0, sds[3], (1, groups, r))
        + rng.normal(0, sds[4], (blocks, groups, r))
    )
    return values if replicates else values[:, :, 0]


def test_components_against_brennan_table_6_2():
    found = g_study_from_mean_squares(*BRENNAN)
    assert (found.groups, found.blocks, found.residual) == pytest.approx((0.6258, 0.8840, 2.7872), abs=5e-5)


def test_coefficients_and_intervals_against_brennan_table_6_5():
    found = d_study(g_study_from_mean_squares(*BRENNAN), level=0.8)
    assert (found.e_rho2, found.e_rho2_low, found.e_rho2_high) == pytest.approx((0.729, 0.541, 0.876), abs=5e-4)
    assert (found.phi, found.phi_low, found.phi_high) == pytest.approx((0.672, 0.457, 0.845), abs=5e-4)


def test_a_table_gives_what_its_mean_squares_give():
    table = simulated(np.random.default_rng(0), 30, 8)
    anova = two_way_anova(table)
    assert g_study(table) == g_study_from_mean_squares(anova.ms_groups, anova.ms_blocks, anova.mse, 30, 8)


def test_e_rho2_of_the_study_itself_is_cronbach_s_alpha():
    table = simulated(np.random.default_rng(1), 25, 12)
    alpha = 25 / 24 * (1 - table.var(axis=1, ddof=1).sum() / table.sum(axis=0).var(ddof=1))
    assert d_study(g_study(table)).e_rho2 == pytest.approx(alpha)
    assert d_study(g_study(table)).e_rho2 == pytest.approx(1 - 1 / two_way_anova(table).f_groups)


def test_components_by_hand():
    found = g_study([[1, 2, 3], [2, 4, 3], [1, 3, 5]])  # mean squares 13/3, 1 and 5/6
    assert found.groups == pytest.approx((13 / 3 - 5 / 6) / 3)
    assert found.blocks == pytest.approx((1 - 5 / 6) / 3)
    assert sum(found.shares.values()) == pytest.approx(1)


def test_components_are_unbiased_in_simulation():
    rng = np.random.default_rng(2)
    studies = [g_study(simulated(rng, 20, 40, 3)) for _ in range(60)]
    for name, sd in zip(
        ("groups", "blocks", "interaction", "replicates", "residual"), (0.1, 0.2, 0.15, 0.05, 0.1), strict=True
    ):
        assert np.mean([getattr(one, name) for one in studies]) == pytest.approx(sd**2, rel=0.12), name


def test_replicates_that_are_copies_add_nothing():
    table = simulated(np.random.default_rng(3), 20, 6)
    one, copied = g_study(table), g_study(np.repeat(table[:, :, None], 3, axis=2))
    assert copied.residual == pytest.approx(0, abs=1e-12)
    assert copied.replicates == pytest.approx(0, abs=1e-12)
    assert copied.interaction == pytest.approx(one.residual)
    assert copied.groups == pytest.approx(one.groups)
    assert d_study(copied, 50, 3).e_rho2 == pytest.approx(d_study(one, 50).e_rho2)


def test_a_single_replicate_is_a_plain_table():
    table = simulated(np.random.default_rng(3), 20, 6)
    assert g_study(table[:, :, None]) == g_study(table)


def test_a_d_study_against_the_reliability_of_simulated_measurements():
    """E rho² is the expected squared correlation of the groups' means with what infinitely many blocks would give."""
    rng = np.random.default_rng(4)
    true = rng.normal(0, 0.1, 4000)
    measured = true + (rng.normal(0, 0.2, (4000, 30))).mean(axis=1)
    expected = d_study(GStudy(30, 4000, 1, groups=0.01, blocks=0.5, residual=0.04), 30).e_rho2
    assert np.corrcoef(true, measured)[0, 1] ** 2 == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("coefficient", ["e_rho2", "phi"])
@pytest.mark.parametrize("target", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("replicates", [1, 4])
def test_the_blocks_needed_reach_the_target_and_one_less_does_not(coefficient, target, replicates):
    found = GStudy(50, 20, 3, groups=0.01, blocks=0.02, residual=0.03, interaction=0.01, replicates=0.0)
    n = blocks_needed(found, target, coefficient, replicates)
    assert getattr(d_study(found, n, replicates), coefficient) >= target
    if n > 1:
        assert getattr(d_study(found, n - 1, replicates), coefficient) < target


def test_the_blocks_needed_against_the_closed_form():
    found = g_study_from_mean_squares(*BRENNAN)
    assert blocks_needed(found, 0.9) == ceil(0.9 * 2.7872 / (found.groups * 0.1))


def test_no_number_of_blocks_makes_up_for_replicates_that_differ_more_than_groups():
    found = GStudy(50, 20, 3, groups=0.01, blocks=0.02, residual=0.03, interaction=0.01, replicates=0.02)
    assert blocks_needed(found, 0.9, replicates=1) == inf
    assert blocks_needed(found, 0.9, replicates=50) < inf


@pytest.mark.parametrize("coefficient", ["e_rho2", "phi"])
def test_intervals_hold_the_truth_as_often_as_they_say(coefficient):
    rng = np.random.default_rng(5)
    truth = getattr(d_study(GStudy(25, 15, 1, groups=0.01, blocks=0.04, residual=0.0325), 25), coefficient)
    held = 0
    for _ in range(1500):
        found = d_study(g_study(simulated(rng, 25, 15, sds=(0.1, 0.2, 0.15, 0.0, 0.1))), level=0.9)
        held += getattr(found, f"{coefficient}_low") <= truth <= getattr(found, f"{coefficient}_high")
    assert 0.875 < held / 1500 < 0.925


def test_a_component_below_0_is_set_to_0_and_named():
    found = g_study([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [2.0, 3.0, 1.0]])
    assert found.groups == 0
    assert found.negative == ("groups", "blocks")
    assert d_study(found).e_rho2 == 0
    assert blocks_needed(found) == inf


def test_more_blocks_are_never_less_reliable():
    found = g_study(simulated(np.random.default_rng(6), 25, 15))
    curve = [d_study(found, n) for n in (1, 10, 50, 250, 1000)]
    assert all(a.e_rho2 < b.e_rho2 and a.phi < b.phi for a, b in zip(curve, curve[1:], strict=False))
    assert all(one.phi <= one.e_rho2 for one in curve)
    assert all(one.e_rho2_low <= one.e_rho2 <= one.e_rho2_high for one in curve)


@pytest.mark.parametrize("shape", [(7, 3), (7, 3, 2)])
def test_a_constant_table_has_no_coefficient(shape):
    found = g_study(np.full(shape, 0.1))
    assert found.total == 0
    assert np.isnan([d_study(found).e_rho2, d_study(found).phi, found.shares["groups"]]).all()


@pytest.mark.parametrize(("name", "e_rho2", "phi"), [("adhoc5", 0.9345, 0.8217), ("adhoc6", 0.9479, 0.9111)])
def test_real_systems_are_as_reliable_as_the_page_says(shared, name, e_rho2, phi):
    """docs/design-of-experiments.md shows these figures."""
    table = np.genfromtxt(shared / "urbano-adhoc" / f"{name}_ap.csv", delimiter=",", skip_header=1)
    alpha = 50 / 49 * (1 - table.var(axis=1, ddof=1).sum() / table.sum(axis=0).var(ddof=1))
    found = d_study(g_study(table))
    assert (found.e_rho2, found.phi) == pytest.approx((e_rho2, phi), abs=0.00005)
    assert found.e_rho2 == pytest.approx(alpha)


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (lambda: g_study([[1, 2]]), "at least 2 blocks"),
        (lambda: g_study([[1], [2]]), "at least 2 groups"),
        (lambda: g_study(np.ones((3, 1, 2))), "two groups or more"),
        (lambda: g_study([[1, np.nan], [2, 3]]), "found nan"),
        (lambda: g_study(np.full((3, 2, 2), np.nan)), "found nan"),
        (lambda: g_study_from_mean_squares(1, 1, 1, 1, 5), "two blocks and two groups"),
        (lambda: g_study_from_mean_squares(1, -1, 1, 5, 5), "mean squares of 0 or more"),
        (lambda: d_study(g_study_from_mean_squares(*BRENNAN), 0), "one block and one replicate"),
        (lambda: d_study(g_study_from_mean_squares(*BRENNAN), level=2), "level must lie"),
        (lambda: blocks_needed(g_study_from_mean_squares(*BRENNAN), 1.0), "target must lie"),
        (lambda: blocks_needed(g_study_from_mean_squares(*BRENNAN), 0.9, "rho"), "e_rho2 or phi"),
    ],
)
def test_bad_input_is_refused(ask, problem):
    with pytest.raises(DataError, match=problem):
        ask()
