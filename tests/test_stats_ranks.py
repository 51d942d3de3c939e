"""Rank intervals by the bootstrap over blocks: against exact enumeration, and what must hold for ties."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata

from cranfield.base.errors import DataError
from cranfield.stats.rank_intervals import first_in_redraws, rank_intervals
from cranfield.stats.ties import mid_ranks, tied_ranks


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_the_chance_of_being_first_against_exact_enumeration(rng):
    table = np.array([[0.1, 0.5, 0.3], [0.9, 0.2, 0.6], [0.4, 0.4, 0.5], [0.3, 0.7, 0.1]])
    first, place = np.zeros(3), np.zeros(3)
    for draw in product(range(4), repeat=4):
        means = table[list(draw)].mean(axis=0).round(12)
        leads = means == means.max()
        first += leads / leads.sum() / 4**4
        place += [(1 + (means > one).sum() + (means >= one).sum()) / 2 / 4**4 for one in means]
    found = rank_intervals(table, resamples=60_000, rng=rng)
    assert found.first == pytest.approx(first, abs=0.01)
    assert found.expected == pytest.approx(place, abs=0.02)


def test_the_interval_against_the_quantiles_of_drawn_ranks(rng):
    table = rng.normal(0, 1, (30, 6)) + 0.2 * np.arange(6)
    found = rank_intervals(table, level=0.9, resamples=4000, rng=rng)
    ranks = []
    for _ in range(4000):
        means = table[rng.integers(0, 30, 30)].mean(axis=0)
        ranks.append(6 - means.argsort().argsort())
    low, high = np.quantile(ranks, [0.05, 0.95], axis=0)
    assert np.abs(found.low - low).max() <= 1
    assert np.abs(found.high - high).max() <= 1
    assert (found.low <= found.ranks).all()
    assert (found.ranks <= found.high).all()


def test_equal_groups_share_rank_and_chance(rng):
    one = rng.random((40, 1))
    found = rank_intervals(np.hstack([one, one, one - 1]), rng=rng)
    assert found.ranks.tolist() == [1.5, 1.5, 3]
    assert found.low.tolist() == [1, 1, 3]
    assert found.high.tolist() == [2, 2, 3]
    assert found.first.tolist() == [0.5, 0.5, 0]
    assert found.above[0].tolist() == [0.5, 0.5, 1]


def test_the_share_of_redraws_is_that_of_the_intervals():
    table = np.random.default_rng(1).random((25, 7)).round(1)
    found = rank_intervals(table, resamples=500, rng=np.random.default_rng(2))
    assert first_in_redraws(table, 500, np.random.default_rng(2)) == pytest.approx(found.first)


def test_chances_add_up(rng):
    found = rank_intervals(rng.random((25, 7)).round(1), rng=rng, resamples=500)
    assert found.first.sum() == pytest.approx(1)
    assert found.expected.sum() == pytest.approx(28)
    assert found.above + found.above.T == pytest.approx(np.ones((7, 7)))


def test_more_blocks_make_a_rank_surer(rng):
    few = rng.normal(0, 1, (10, 5)) + 0.5 * np.arange(5)
    many = rng.normal(0, 1, (1000, 5)) + 0.5 * np.arange(5)
    wide, narrow = (rank_intervals(table, rng=rng, resamples=2000) for table in (few, many))
    assert (narrow.high - narrow.low).sum() < (wide.high - wide.low).sum()
    assert narrow.first[4] == 1


def test_the_same_seed_gives_the_same_intervals():
    table = np.random.default_rng(0).random((20, 4))
    one, other = (rank_intervals(table, rng=np.random.default_rng(5), resamples=100) for _ in range(2))
    assert (one.first == other.first).all()


def test_one_group_is_first(rng):
    found = rank_intervals([[1.0], [2.0]], rng=rng)
    assert (found.low.tolist(), found.high.tolist(), found.first.tolist()) == ([1], [1], [1.0])


@pytest.mark.parametrize(
    ("table", "arguments", "problem"),
    [
        ([[1, 2]], {}, "at least 2 blocks"),
        ([[1, 2], [np.nan, 1]], {}, "found nan"),
        ([[1, 2], [1, 2]], {"level": 1}, "level must lie between"),
        ([[1, 2], [1, 2]], {"resamples": 0}, "resamples must be 1 or more"),
    ],
)
def test_bad_input_is_refused(table, arguments, problem):
    with pytest.raises(DataError, match=problem):
        rank_intervals(table, **arguments)


@pytest.mark.parametrize(("table", "resamples", "problem"), [([[1, 2]], 9, "2 blocks"), ([[1], [2]], 0, "1 or more")])
def test_bad_input_has_no_share_of_redraws(table, resamples, problem):
    with pytest.raises(DataError, match=problem):
        first_in_redraws(table, resamples)


def test_the_ranks_of_ties_against_scipy():
    values = np.random.default_rng(2).integers(0, 4, (5, 9)).astype(float)
    first, last = tied_ranks(values)
    assert (first == rankdata(values, method="min", axis=1)).all()
    assert (last == rankdata(values, method="max", axis=1)).all()
    assert (mid_ranks(values) == rankdata(values, axis=1)).all()
