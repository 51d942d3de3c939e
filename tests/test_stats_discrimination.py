"""Achieved significance levels, discriminative power, swap rates: by hand and against exact enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from cranfield.base.errors import DataError
from cranfield.stats.many_groups import tukey_hsd
from cranfield.stats.reliability import (
    achieved_levels,
    bootstrap_difference_needed,
    discrimination,
    swap_rates,
)


@pytest.fixture
def rng():
    return np.random.default_rng(9)


def test_the_curve_holds_each_pair_once_from_high_to_low(rng):
    p = tukey_hsd(rng.random((20, 6))).p
    curve = achieved_levels(p)
    assert len(curve) == 15
    assert (np.diff(curve) <= 0).all()
    assert curve.tolist() == sorted((p[i, j] for i, j in combinations(range(6), 2)), reverse=True)


def test_discriminative_power_by_hand():
    p = np.array([[1, 0.04, 0.3], [0.04, 1, 0.05], [0.3, 0.05, 1]])
    differences = np.array([[0, 0.2, 0.1], [-0.2, 0, -0.15], [-0.1, 0.15, 0]])
    found = discrimination(p, differences)
    assert (found.significant, found.pairs, found.power) == (1, 3, pytest.approx(1 / 3))  # 0.05 is not below 0.05
    assert found.needed == 0.15
    assert discrimination(p, alpha=0.06).significant == 2
    assert np.isnan(discrimination(p).needed)


def test_a_pair_without_a_p_value_counts_as_not_told_apart():
    found = discrimination([0.01, np.nan, 0.5])
    assert (found.power, found.without, found.levels.tolist()) == (pytest.approx(1 / 3), 1, [0.5, 0.01])


def test_every_pair_further_apart_than_needed_is_significant(rng):
    found = tukey_hsd(rng.random((30, 8)) + 0.05 * np.arange(8))
    needed = discrimination(found.p, found.differences).needed
    assert (found.p[np.abs(found.differences) > needed] < 0.05).all()


def test_the_difference_needed_against_the_normal_distribution(rng):
    """Of one pair: 1.96 standard errors, the standard deviation being that of the data, not of a sample."""
    table = rng.normal(0, 0.1, (200, 2))
    error = (table[:, 1] - table[:, 0]).std() / 200**0.5
    assert bootstrap_difference_needed(table, resamples=20_000, rng=rng) == pytest.approx(1.96 * error, rel=0.03)


def test_the_difference_needed_is_the_largest_of_all_pairs(rng):
    table = rng.normal(0, [0.1, 0.1, 0.3], (60, 3))
    each = [
        bootstrap_difference_needed(table[:, pair], rng=np.random.default_rng(1)) for pair in ([0, 1], [0, 2], [1, 2])
    ]
    assert bootstrap_difference_needed(table, rng=np.random.default_rng(1)) == pytest.approx(max(each))


def test_swap_rates_against_exact_enumeration(rng):
    table = np.array([[0.1, 0.3], [0.4, 0.2], [0.3, 0.9], [0.6, 0.5]])
    d = table[:, 0] - table[:, 1]
    swaps, compared = {}, {}
    for half in combinations(range(4), 2):
        first = round(float(d[list(half)].mean()), 12)
        second = d.sum() - 2 * first
        place = int(abs(first) / 0.1 + 1e-9)
        compared[place] = compared.get(place, 0) + 1
        swaps[place] = swaps.get(place, 0) + (first * second < 0)
    found = swap_rates(table, width=0.1, trials=6000, rng=rng)
    for place, number in compared.items():
        assert found.compared[place] / 6000 == pytest.approx(number / 6, abs=0.03)
        assert found.rates[place] == pytest.approx(swaps[place] / number, abs=0.05)
    assert found.compared.sum() == 6000


def test_equal_groups_swap_in_half_of_all_sets(rng):
    found = swap_rates(rng.normal(0, 1, (400, 2)), size=5, trials=4000, rng=rng)
    assert found.overall == pytest.approx(0.5, abs=0.05)


def test_swaps_become_rare_as_the_difference_grows(rng):
    table = rng.normal(0, 0.2, (50, 20)) + rng.normal(0, 0.05, 20)
    found = swap_rates(table, trials=300, rng=rng)
    needed = found.needed(0.05)
    assert found.rates[0] > 0.2
    assert 0.02 < needed < 0.3
    beyond = found.edges >= needed
    assert np.nanmax(found.rates[beyond]) <= 0.05
    assert found.sensitivity() == pytest.approx(found.compared[beyond].sum() / found.compared.sum())


def test_ties_do_not_swap(rng):
    table = np.repeat(rng.random((10, 1)), 3, axis=1)
    found = swap_rates(table, trials=50, rng=rng)
    assert found.overall == 0
    assert found.compared.tolist() == [150]


def test_no_difference_suffices_where_the_last_bin_swaps_too_often(rng):
    found = swap_rates(rng.normal(0, 1, (4, 2)), width=100.0, trials=100, rng=rng)
    if found.overall > 0:
        assert np.isnan(found.needed(0.0))
        assert found.sensitivity(0.0) == 0


def test_bins_are_as_wide_as_the_values_ask_for(rng):
    table = rng.random((20, 4))
    assert swap_rates(table, trials=5, rng=rng).edges[1] == 0.01
    assert swap_rates(table * 1e9, trials=5, rng=rng).edges[1] == pytest.approx(1e7 * np.ptp(table))


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (lambda: achieved_levels([0.1, 1.2]), "between 0 and 1"),
        (lambda: achieved_levels(np.ones((2, 3))), "square matrix or a list"),
        (lambda: discrimination([]), "found none"),
        (lambda: discrimination([[1.0]]), "found none"),
        (lambda: discrimination([0.1, 0.2], [0.3]), "a difference for each p-value"),
        (lambda: discrimination([0.1], alpha=0), "alpha must lie"),
        (lambda: bootstrap_difference_needed([[1, 2]]), "at least 2 blocks"),
        (lambda: bootstrap_difference_needed([[1, 2], [1, 3]], resamples=0), "resamples must be"),
        (lambda: swap_rates([[1, 2], [1, 3]], size=2), "1 to 1 of 2 blocks, got 2"),
        (lambda: swap_rates([[1, 2], [1, np.nan]]), "found nan"),
        (lambda: swap_rates([[1, 2], [1, 3]], width=0), "a width above 2e-06"),
    ],
)
def test_bad_input_is_refused(ask, problem):
    with pytest.raises(DataError, match=problem):
        ask()
