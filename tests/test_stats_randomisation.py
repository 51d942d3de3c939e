"""The sign-flip test: against enumeration, against SciPy, the same for one pair and for all, and in bounded memory."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import DataError
from cranfield.stats.randomisation import (
    sign_blocks,
    sign_flip_interval,
    sign_flip_p,
    sign_flip_p_all,
    sign_flip_p_rows,
    sign_flip_rejects,
)
from cranfield.stats.tests_by_name import TESTS
from cranfield.stats.ties import differences
from cranfield.stats.two_sample_test import ALTERNATIVES, SignificanceSettings

tenths = st.integers(-10, 10).map(lambda whole: whole / 10)


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def enumerated(d, alternative: str) -> float:
    """The definition: the sum under every choice of signs, in whole tenths so that equal is equal."""
    whole = [round(10 * value) for value in d]
    found = sum(whole)
    sums = [
        sum(s * v for s, v in zip(signs, whole, strict=True)) for signs in itertools.product([1, -1], repeat=len(d))
    ]
    hits = {
        "less": [value <= found for value in sums],
        "greater": [value >= found for value in sums],
        "two-sided": [abs(value) >= abs(found) for value in sums],
    }
    return float(np.mean(hits[alternative]))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@given(d=st.lists(tenths, min_size=1, max_size=9))
def test_randomisation_against_exact_enumeration(alternative, d):
    """Tenths are not exact in binary: 0.1 + 0.2 and 0.3 must count as equal."""
    assert sign_flip_p(np.array([d]), 1000, seeded(), alternative)[0] == enumerated(d, alternative)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_randomisation_against_scipy_exact(alternative):
    rng = seeded(1)
    d = rng.normal(0.3, 1, 12)
    wanted = scipy.stats.permutation_test(
        (d,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative=alternative, vectorized=True
    )
    outcome = TESTS["randomisation"](np.zeros(12), d, alternative=alternative, rng=rng)
    assert (outcome.p, outcome.statistic) == pytest.approx((wanted.pvalue, wanted.statistic))
    assert (outcome.exact, outcome.resamples) == (True, 4096)


def test_randomisation_sampled_is_near_exact_enumeration():
    d = seeded(2).normal(0.2, 1, (20, 13))
    exact, sampled = sign_flip_p(d, 8192, seeded()), sign_flip_p(d, 8191, seeded())
    assert (exact * 8192 == np.rint(exact * 8192)).all()
    assert not (sampled == exact).all()
    assert sampled == pytest.approx(exact, abs=0.02)


def test_a_sampled_p_is_never_0_and_counts_the_data_as_one_sample():
    assert sign_flip_p(np.full((1, 60), 0.5), 999, seeded())[0] == 1 / 1000


def test_signs_are_all_of_them_once_or_fair_coins():
    every = np.concatenate(list(sign_blocks(5, 32, seeded(), block=7)))
    assert sorted(map(tuple, every)) == sorted(itertools.product([-1.0, 1.0], repeat=5))
    drawn = np.concatenate(list(sign_blocks(13, 5000, seeded())))
    assert drawn.shape == (5000, 13)
    assert set(np.unique(drawn)) == {-1.0, 1.0}
    assert np.abs(drawn.mean(axis=0)).max() < 0.06
    assert np.abs(np.corrcoef(drawn.T) - np.eye(13)).max() < 0.06


@pytest.mark.parametrize("resamples", [64, 500])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_all_pairs_of_columns_give_what_each_pair_gives(alternative, resamples):
    rng = seeded(3)
    for n in (6, 40):
        table = np.round(rng.random((n, 7)), 1)  # tenths: ties abound
        p = sign_flip_p_all(table, resamples, seeded(5), alternative)
        pairs = list(itertools.permutations(range(7), 2))
        d = np.array([table[:, j] - table[:, i] for i, j in pairs])
        assert p[tuple(zip(*pairs, strict=True))] == pytest.approx(sign_flip_p(d, resamples, seeded(5), alternative))
        assert np.isnan(np.diag(p)).all()


def test_the_resamples_of_many_pairs_do_not_depend_on_how_many_there_are(monkeypatch):
    d = seeded(4).normal(0.1, 1, (600, 30))
    together = sign_flip_p(d, 3000, seeded())
    assert (together[:5] == sign_flip_p(d[:5], 3000, seeded())).all()
    low, high = sign_flip_interval(d, question(3000, 0.9))
    monkeypatch.setattr("cranfield.stats.two_sample_test.KEPT", 50_000)
    again = sign_flip_interval(d, question(3000, 0.9))
    assert (low == again[0]).all()
    assert (high == again[1]).all()


def test_a_value_that_is_no_number_spoils_its_own_pairs_only():
    table = seeded(6).random((20, 3))
    whole = sign_flip_p_all(table, 500, seeded())
    table[4, 2] = math.nan
    p = sign_flip_p_all(table, 500, seeded())
    assert p[0, 1] == whole[0, 1]
    assert np.isnan(p[[0, 1, 2, 2], [2, 2, 0, 1]]).all()
    assert np.isnan(sign_flip_p(np.array([[math.nan, 1.0], [1.0, 1.0]]), 10, seeded())).tolist() == [True, False]


def test_equal_columns_give_p_1():
    column = seeded(7).random((25, 1))
    assert sign_flip_p_all(np.hstack([column, column]), 500, seeded())[0, 1] == 1.0


def question(resamples: int, level: float) -> SignificanceSettings:
    return SignificanceSettings("two-sided", level, resamples, seeded())


def interval_by_search(d, tail: float) -> tuple[float, float]:
    """The definition: the shifts whose test by enumeration does not reject, tried on a fine grid."""
    grid = np.linspace(d.min() - 0.01, d.max() + 0.01, 2001)
    shifted = d[None, :] - grid[:, None]
    kept = (sign_flip_p(shifted, 2**12, seeded(), "greater") > tail) & (
        sign_flip_p(shifted, 2**12, seeded(), "less") > tail
    )
    return grid[kept].min(), grid[kept].max()


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_of_shifts_that_are_not_rejected_against_exact_enumeration(seed):
    d = seeded(seed).exponential(1, 9) - 0.5
    low, high = sign_flip_interval(d[None], question(2**12, 0.9))
    assert (low[0], high[0]) == pytest.approx(interval_by_search(d, 0.05), abs=0.005)


def test_the_interval_is_near_student_s_for_many_normal_differences():
    d = seeded(8).normal(0.3, 1, 200)
    low, high = sign_flip_interval(d[None], question(20_000, 0.95))
    wanted = scipy.stats.ttest_1samp(d, 0).confidence_interval()
    assert (low[0], high[0]) == pytest.approx((wanted.low, wanted.high), abs=0.01)


def test_too_few_pairs_for_a_level_leave_the_interval_open():
    """Of three pairs there are eight choices of signs: no tail is smaller than an eighth."""
    d = np.array([[1.0, 2.0, 3.0]])
    assert sign_flip_interval(d, question(100, 0.95))[0][0] == -math.inf
    assert sign_flip_interval(d, question(100, 0.75))[0][0] == 1.0


def test_memory_stays_bounded_however_many_resamples():
    table = seeded(9).random((100, 60))
    peaks = []
    for resamples in (2_000, 20_000):
        tracemalloc.start()
        sign_flip_p_all(table, resamples, seeded())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] < 20e6


def test_progress_is_told_how_many_sign_vectors_are_done():
    told: list[tuple[int, int | None]] = []
    sign_flip_p_all(np.eye(30, 3), 2500, seeded(), progress=lambda done, total: told.append((done, total)))
    assert told == [(1024, 2500), (2048, 2500), (2500, 2500)]


def test_wrong_arguments_are_named():
    with pytest.raises(DataError, match="resamples must be at least 1, got 0"):
        sign_flip_p(np.ones((1, 3)), 0, seeded())
    with pytest.raises(DataError, match="alternative must be one of"):
        sign_flip_p_all(np.ones((3, 3)), 10, seeded(), "both")  # type: ignore[arg-type]
    for function in (sign_flip_p, sign_flip_p_all):
        with pytest.raises(DataError, match=r"found the shape \(3,\)"):
            function(np.ones(3), 10, seeded())


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_rows_that_are_all_pairs_of_a_few_give_what_they_give_alone(alternative):
    table = seeded(9).random((5, 20))
    one, other = (np.array(side) for side in zip(*itertools.product(range(5), repeat=2), strict=True))
    p = sign_flip_p_rows(table[one], table[other], 800, seeded(1), alternative)
    alone = sign_flip_p(differences(table[one], table[other]), 800, seeded(1), alternative)
    assert p == pytest.approx(alone)
    assert (p[one == other] == 1).all()


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize(("n", "unit"), [(8, 0.0), (25, 0.0), (25, 0.5), (60, 1 / 3), (60, 1e-300), (300, 0.0)])
def test_the_quick_decision_is_that_of_the_p_value(n, unit, alternative):
    rng = np.random.default_rng(n)
    d = rng.normal(rng.normal(0, 0.3, (400, 1)), 1.0, (400, n))
    if unit:  # ties of sums, or numbers that single precision cannot hold
        d = np.rint(2 * d) * unit
    d[0] = 0.0
    for alpha in (0.0005, 0.01, 0.05, 0.2):
        slow = sign_flip_p(d, 1000, np.random.default_rng(1), alternative) <= alpha
        quick = sign_flip_rejects(d, alpha, 1000, np.random.default_rng(1), alternative)
        np.testing.assert_array_equal(quick, slow)


def test_columns_too_far_apart_to_be_reached_against_one_pair_at_a_time():
    table = seeded(3).normal(0, 0.1, (60, 9)) + np.array([0, 3, 0.02, 1, 0.01, 5, 0, 0.03, 1.01])
    p = sign_flip_p_all(table, 3001, seeded())
    for i, j in itertools.permutations(range(9), 2):
        assert p[i, j] == sign_flip_p(differences(table[None, :, i], table[None, :, j]), 3001, seeded())[0]


def test_the_interval_against_the_order_of_all_subset_means():
    """Also where the tail holds fewer means than there are empty subsets: that end is open."""
    d = seeded(5).normal(0.2, 1, (2, 6))
    chosen = np.array(list(itertools.product([0, 1], repeat=6)))[1:]
    for level in (0.5, 0.9, 0.99):
        low, high = sign_flip_interval(d, SignificanceSettings("two-sided", level, 1000, seeded()))
        for row in range(2):
            means = np.sort(chosen @ d[row] / chosen.sum(axis=1))
            k = math.floor(64 * (1 - level) / 2 + 1e-9)
            assert low[row] == pytest.approx(means[k - 1] if k else -np.inf)
            assert high[row] == pytest.approx(means[-k] if k else np.inf)
