"""Rank intervals that hold: against brute force, what must hold for ties, and how often they cover the true ranks."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from cranfield.base.errors import DataError
from cranfield.stats.bootstrap import resample_counts
from cranfield.stats.rank_intervals import RANK_INTERVALS, least_variance, rank_ranges


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def brute_force(table: np.ndarray, draws: int, rng: np.random.Generator, pairs: list[tuple[int, int]]) -> list[float]:
    """Corrected p-values of pairs, by the definition of a step-down test: the largest t² among those no further apart."""
    n = len(table)

    def squared_t(values: np.ndarray, pair: tuple[int, int], centre: float, least: float) -> float:
        gap = values[:, pair[0]] - values[:, pair[1]]
        return (gap.mean() - centre) ** 2 / max(gap.var(), least)

    gaps = [table[:, i] - table[:, j] for i, j in pairs]
    seen = np.array([squared_t(table, pair, 0.0, 0.0) for pair in pairs])
    drawn = []
    for times in resample_counts(n, draws, rng, 512):
        for row in times.astype(int):
            values = table[np.repeat(np.arange(n), row)]
            each = zip(pairs, gaps, strict=True)
            drawn.append([squared_t(values, pair, gap.mean(), least_variance(n) * gap.var()) for pair, gap in each])
    all_drawn = np.array(drawn)
    raw = {}
    for k, statistic in enumerate(seen):
        largest = all_drawn[:, seen <= statistic].max(axis=1)
        raw[k] = (1 + (largest >= statistic).sum()) / (1 + draws)
    return [max(raw[other] for other in raw if seen[other] >= seen[k]) for k in raw]


@pytest.mark.parametrize("blocks", [8, 30])
def test_p_of_all_pairs_against_brute_force(blocks):
    table = np.random.default_rng(blocks).gamma(0.5, 1, (blocks, 5)) + 0.4 * np.arange(5)
    pairs = list(combinations(range(5), 2))
    expected = brute_force(table, 700, np.random.default_rng(4), pairs)
    found = rank_ranges(table, resamples=700, rng=np.random.default_rng(4))
    assert [found.p[pair] for pair in pairs] == pytest.approx(expected, abs=2 / 700)
    assert (found.p == found.p.T).all()


def test_p_of_one_group_s_pairs_against_brute_force():
    table = np.random.default_rng(8).gamma(0.5, 1, (20, 5)) + 0.4 * np.arange(5)
    found = rank_ranges(table, resamples=700, rng=np.random.default_rng(4), together=False)
    for group in range(5):
        pairs = [(group, other) for other in range(5) if other != group]
        expected = brute_force(table, 700, np.random.default_rng(4), pairs)
        assert [found.p[pair] for pair in pairs] == pytest.approx(expected, abs=2 / 700)


def test_a_range_counts_who_is_shown_to_be_above_and_below(rng):
    found = rank_ranges(rng.normal([9, 0, 0, 6, 3], 1, (60, 5)), rng=rng)
    assert found.low.tolist() == [1, 4, 4, 2, 3]
    assert found.high.tolist() == [1, 5, 5, 2, 3]


def test_one_rank_alone_is_never_wider_than_among_all(rng):
    table = rng.normal(0, 1, (30, 9)) + 0.2 * np.arange(9)
    all_at_once, alone = (rank_ranges(table, rng=np.random.default_rng(1), together=each) for each in (True, False))
    assert (all_at_once.low <= alone.low).all()
    assert (all_at_once.high >= alone.high).all()
    assert (all_at_once.high - all_at_once.low).sum() > (alone.high - alone.low).sum()


def test_equal_columns_share_their_ranks_and_a_constant_gap_is_proof(rng):
    one = rng.random((40, 1))
    found = rank_ranges(np.hstack([one, one, one - 1]), rng=rng)
    assert (found.low.tolist(), found.high.tolist()) == ([1, 1, 3], [2, 2, 3])


@pytest.mark.parametrize(("blocks", "ranks"), [(5, ([1, 1], [2, 2])), (6, ([2, 1], [2, 1]))])
def test_so_few_blocks_that_all_signs_may_agree_by_chance_show_nothing(blocks, ranks):
    found = rank_ranges(np.tile([0.25, 0.5], (blocks, 1)))
    assert (found.low.tolist(), found.high.tolist()) == ranks


def test_a_pair_that_differs_on_one_block_does_not_blind_the_others(rng):
    table = rng.normal([0, 0.5, 1], 0.1, (30, 3))
    twin = table[:, [0]] + (np.arange(30)[:, None] == 7) * 0.3 + rng.normal(0, 1e-6, (30, 1))
    found = rank_ranges(np.hstack([table, twin]), rng=rng)
    assert found.high.tolist() == [4, 2, 1, 4]


def test_no_rank_depends_on_the_unit_or_on_what_a_block_adds_to_all(rng):
    table = rng.gamma(1, 1, (30, 6)) + 0.3 * np.arange(6)
    moved = 1000 * (table + rng.random((30, 1)))
    one, other = (rank_ranges(each, rng=np.random.default_rng(1)) for each in (table, moved))
    assert (one.low == other.low).all()
    assert (one.high == other.high).all()


def test_the_same_seed_gives_the_same_ranges():
    table = np.random.default_rng(0).random((20, 4))
    one, other = (rank_ranges(table, rng=np.random.default_rng(5)) for _ in range(2))
    assert (one.p == other.p).all()


def test_very_many_pairs_take_fewer_draws_and_the_answer_says_how_many(rng):
    assert rank_ranges(rng.random((9, 110))).resamples == 2798
    assert rank_ranges(rng.random((9, 8))).resamples == 10_000


def test_one_group_has_one_rank():
    for together in (True, False):
        found = rank_ranges([[1.0], [2.0]], together=together)
        assert (found.low.tolist(), found.high.tolist()) == ([1], [1])


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
        rank_ranges(table, **arguments)


# coverage: the true rank of equal groups is the span they share, and an interval must hold all of it


def true_ranks(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return 1 + (means > means[:, None]).sum(axis=1), (means >= means[:, None]).sum(axis=1)


def skewed(rng: np.random.Generator, blocks: int, lost: np.ndarray) -> np.ndarray:
    """Eight groups between 0 and 1, most values low, blocks of unequal difficulty; `lost` is what a group loses of each."""
    easy = np.clip(rng.beta(0.8, 2, (blocks, 1)), 0.02, 0.98)
    return rng.beta(6 * easy, 6 - 6 * easy, (blocks, 8)) * (1 - lost)


def discrete(rng: np.random.Generator, blocks: int, lost: np.ndarray) -> np.ndarray:
    """The same of ten trials each: many ties, and pairs that differ on few blocks."""
    return rng.binomial(10, skewed(rng, blocks, lost)) / 10


def coverage(kind: str, drawn, blocks: int, lost: np.ndarray, tables: int, seed: int = 0) -> float:
    """How often the ranges hold: all of them, or one's own rank on average where they stand alone."""
    rng = np.random.default_rng(seed)
    best, worst = true_ranks(-lost)
    held = []
    for _ in range(tables):
        low, high, _ = RANK_INTERVALS[kind].ranges(drawn(rng, blocks, lost), 0.95, 499, rng)
        covered = (low <= best) & (high >= worst)
        held.append(covered.all() if kind == "simultaneous" else covered.mean())
    return float(np.mean(held))


EQUAL, CLOSE = np.zeros(8), 0.02 * np.arange(8)


@pytest.mark.parametrize("kind", ["simultaneous", "marginal"])
def test_the_ranks_of_eight_equal_groups_are_covered(kind):
    assert coverage(kind, skewed, 25, EQUAL, 150) >= 0.93


def test_the_redrawn_ranks_of_eight_equal_groups_are_not_covered():
    assert coverage("bootstrap", skewed, 25, EQUAL, 60) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [10, 25, 50])
@pytest.mark.parametrize("lost", [EQUAL, CLOSE], ids=["equal", "close"])
@pytest.mark.parametrize("drawn", [skewed, discrete])
@pytest.mark.parametrize("kind", ["simultaneous", "marginal"])
def test_coverage_is_at_most_two_points_below_its_claim(kind, drawn, lost, blocks):
    assert coverage(kind, drawn, blocks, lost, 1000) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [10, 25, 50])
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "close"])
def test_coverage_on_topics_drawn_from_a_real_track(equal, blocks, shared):
    """AP of Robust 2004: eight of the better half of its systems, as they are or moved to one mean."""
    scores = np.loadtxt(
        shared / "urbano-robust2004" / "robust2004_ap.csv", delimiter=",", skiprows=1, usecols=range(1, 111)
    )
    better = np.argsort(-scores.mean(axis=0))[:55]
    rng = np.random.default_rng(1)
    held = []
    for _ in range(800):
        population = scores[:, rng.choice(better, 8, replace=False)]
        population = population - population.mean(axis=0) * equal
        best, worst = true_ranks(population.mean(axis=0).round(12))
        found = rank_ranges(population[rng.integers(0, len(scores), blocks)], resamples=499, rng=rng)
        held.append(((found.low <= best) & (found.high >= worst)).all())
    assert np.mean(held) >= 0.93
