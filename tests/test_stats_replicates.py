"""Two groups with several replicates each: against the t-test, the model by hand, and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cranfield.base.errors import DataError
from cranfield.stats.replicates import crossed_difference


def simulated(rng, blocks, replicates, replicate_sd, group_sd=0.1, residual_sd=0.1):
    """Two groups without a difference, replicates of each differing by `replicate_sd` in the mean."""
    block = rng.normal(0, 0.2, (blocks, 1))
    return [
        block
        + rng.normal(0, group_sd, (blocks, 1))
        + rng.normal(0, replicate_sd, (1, n)) * (n > 1)
        + rng.normal(0, residual_sd, (blocks, n))
        for n in replicates
    ]


def test_one_replicate_of_each_against_the_paired_t_test():
    a, b = simulated(np.random.default_rng(0), 20, (1, 1), 0.0)
    for alternative in ("two-sided", "greater", "less"):
        found = crossed_difference(a, b, alternative=alternative)
        theirs = stats.ttest_rel(b[:, 0], a[:, 0], alternative=alternative)
        interval = theirs.confidence_interval(0.95)
        assert (found.statistic, found.p, found.df) == pytest.approx((theirs.statistic, theirs.pvalue, theirs.df))
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
        assert "deterministic" in found.reason


def test_replicates_that_are_copies_against_the_paired_t_test():
    a, b = simulated(np.random.default_rng(0), 20, (1, 1), 0.0)
    found = crossed_difference(np.repeat(a, 3, axis=1), np.repeat(b, 4, axis=1))
    assert found.p == pytest.approx(stats.ttest_rel(b[:, 0], a[:, 0]).pvalue)
    assert found.from_replicates == (0.0, 0.0)
    assert found.reason == ""


def test_where_only_replicates_vary_against_welch_s_test():
    """Every block says the same: the replicates' means are all there is, and Welch's t-test is the answer."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(0, 1, 5), rng.normal(1, 2, 7)
    found = crossed_difference(np.tile(a, (10, 1)), np.tile(b, (10, 1)))
    theirs = stats.ttest_ind(b, a, equal_var=False)
    assert (found.statistic, found.df, found.p) == pytest.approx((theirs.statistic, theirs.df, theirs.pvalue))


def test_the_squared_error_is_the_sum_of_its_parts():
    found = crossed_difference(*simulated(np.random.default_rng(2), 30, (4, 5), 0.05))
    assert found.error**2 == pytest.approx(found.from_blocks + sum(found.from_replicates))
    assert found.high - found.low == pytest.approx(2 * stats.t.ppf(0.975, found.df) * found.error)


def test_the_parts_of_the_error_are_unbiased_in_simulation():
    rng = np.random.default_rng(3)
    found = [crossed_difference(*simulated(rng, 40, (4, 4), 0.2)) for _ in range(600)]
    assert np.mean([one.from_blocks for one in found]) == pytest.approx((2 * 0.1**2 + 2 * 0.1**2 / 4) / 40, rel=0.05)
    assert np.mean([one.from_replicates[0] for one in found]) == pytest.approx(0.2**2 / 4, rel=0.1)


@pytest.mark.parametrize(
    ("blocks", "replicates", "replicate_sd", "naive_errs"),
    [
        (50, (5, 5), 0.05, True),
        (200, (3, 3), 0.02, True),
        (25, (2, 2), 0.05, True),
        (50, (5, 1), 0.05, True),
        (50, (5, 5), 0.0, False),
    ],
)
@pytest.mark.parametrize("times", [400, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_true_null_is_rejected_as_often_as_said_where_averaging_replicates_errs(
    blocks, replicates, replicate_sd, naive_errs, times
):
    rng = np.random.default_rng(4)
    found = [crossed_difference(*simulated(rng, blocks, replicates, replicate_sd)) for _ in range(times)]
    rejected = np.mean([one.p <= 0.05 for one in found])
    naive = np.mean([one.p_blocks <= 0.05 for one in found])
    assert abs(rejected - 0.05) < 3 * np.sqrt(0.05 * 0.95 / times)
    assert (naive > 0.1) == naive_errs


def test_swapping_the_groups_swaps_the_sign():
    a, b = simulated(np.random.default_rng(5), 30, (3, 4), 0.05)
    one, other = crossed_difference(a, b), crossed_difference(b, a)
    assert one.difference == pytest.approx(-other.difference)
    assert one.p == pytest.approx(other.p)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


def test_no_spread_gives_no_p_value_but_a_reason():
    same = crossed_difference(np.full((5, 2), 0.1), np.full((5, 3), 0.1))
    moved = crossed_difference(np.full((5, 2), 0.1), np.full((5, 3), 0.4))
    assert np.isnan([same.p, moved.p, same.low, moved.high]).all()
    assert (same.reason, moved.reason) == ("all differences are 0", "all differences are equal")
    assert moved.difference == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("a", "b", "arguments", "problem"),
    [
        ([[1, 2]], [[1, 2]], {}, "at least 2 blocks"),
        ([[1], [2]], [[1], [2], [3]], {}, "the same blocks for both groups, found 2 and 3"),
        ([[1], [np.nan]], [[1], [2]], {}, "found nan"),
        ([1, 2], [1, 2], {}, "blocks × groups"),
        ([[1], [2]], [[1], [3]], {"level": 95}, "level must lie"),
        ([[1], [2]], [[1], [3]], {"alternative": "up"}, "alternative must be"),
    ],
)
def test_bad_input_is_refused(a, b, arguments, problem):
    with pytest.raises(DataError, match=problem):
        crossed_difference(a, b, **arguments)
