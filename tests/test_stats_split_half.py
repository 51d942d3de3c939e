"""Split-half reliability: against exact enumeration and generalisability theory."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from cranfield.base.errors import DataError
from cranfield.stats.correlation import pearson, tau_b
from cranfield.stats.reliability import d_study, g_study, spearman_brown, split_half, split_sizes


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize(("kind", "coefficient"), [("pearson", pearson), ("tau", tau_b)])
def test_the_mean_correlation_against_all_splits(rng, kind, coefficient):
    table = rng.random((6, 5)) + 0.1 * np.arange(5)
    each = []
    for half in combinations(range(6), 3):
        rest = [i for i in range(6) if i not in half]
        each.append(coefficient(table[list(half)].mean(axis=0), table[rest].mean(axis=0)))
    found = split_half(table, kind, trials=1500, rng=rng)
    assert found.mean == pytest.approx(np.mean(each), abs=0.04)
    assert found.values.min() == pytest.approx(min(each))
    assert found.low <= found.mean <= found.high


def test_stepped_up_by_spearman_and_brown_against_generalisability(rng):
    """Both estimate how reliable the means over all blocks are."""
    table = rng.normal(0, 0.2, (50, 80)) + rng.normal(0, 0.08, 80) + rng.normal(0, 0.2, (50, 1))
    found = split_half(table, trials=300, rng=rng)
    assert found.stepped_up == pytest.approx(d_study(g_study(table)).e_rho2, abs=0.03)
    assert found.stepped_up == spearman_brown(found.mean)


def test_spearman_brown_by_hand():
    assert spearman_brown(0.5) == pytest.approx(2 / 3)
    assert spearman_brown(0.5, 3) == pytest.approx(0.75)
    assert spearman_brown(1.0) == 1
    assert np.isnan(spearman_brown(-1.0))


def test_rank_correlations_are_not_stepped_up(rng):
    assert np.isnan(split_half(rng.random((10, 4)), "tau", 20, rng).stepped_up)


def test_agreement_grows_with_the_size_of_the_sets(rng):
    table = rng.normal(0, 0.2, (200, 20)) + rng.normal(0, 0.05, 20)
    seen = []
    found = split_sizes(table, [5, 20, 100], trials=100, rng=rng, progress=lambda n, of: seen.append((n, of)))
    assert [one.size for one in found] == [5, 20, 100]
    assert found[0].mean < found[1].mean < found[2].mean
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_of_an_odd_number_one_block_is_left_out(rng):
    assert split_half(rng.random((7, 3)), trials=5, rng=rng).size == 3


def test_equal_means_have_no_correlation_but_a_reason(rng):
    found = split_half(np.repeat(rng.random((6, 1)), 3, axis=1), trials=10, rng=rng)
    assert np.isnan(found.mean)
    assert found.undefined == 10
    assert "equal means" in found.reason


def test_the_same_seed_gives_the_same_splits():
    table = np.random.default_rng(0).random((10, 5))
    one, other = (split_half(table, trials=20, rng=np.random.default_rng(1)) for _ in range(2))
    assert (one.values == other.values).all()


@pytest.mark.parametrize(
    ("table", "arguments", "problem"),
    [
        ([[1, 2]], {}, "at least 2 blocks"),
        ([[1, 2], [np.nan, 1]], {}, "found nan"),
        ([[1, 2], [3, 1]], {"kind": "rho"}, "no correlation 'rho'"),
        ([[1, 2], [3, 1]], {"size": 2}, "1 to 1 of 2 blocks, got 2"),
        ([[1, 2], [3, 1]], {"trials": 0}, "one trial or more"),
        ([[1, 2], [3, 1]], {"level": 0}, "level must lie"),
    ],
)
def test_bad_input_is_refused(table, arguments, problem):
    with pytest.raises(DataError, match=problem):
        split_half(table, **arguments)
