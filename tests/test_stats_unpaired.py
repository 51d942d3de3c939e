"""Tests of unpaired samples, against SciPy and exact enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cranfield.stats.tests_by_name import TESTS
from cranfield.stats.two_sample_test import ALTERNATIVES

few = st.integers(0, 4)  # so few values that ties abound


def ask(name: str, a, b, **options):
    return TESTS[name](a, b, rng=np.random.default_rng(0), **options)


def two(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    return rng.random(n), rng.normal(0.6, 0.4, m)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize(("n", "m"), [(2, 2), (5, 9), (60, 40)])
def test_welch_against_scipy(n, m, alternative):
    a, b = two(n, m)
    outcome = ask("welch", a, b, alternative=alternative, level=0.9)
    wanted = scipy.stats.ttest_ind(b, a, equal_var=False, alternative=alternative)
    interval = wanted.confidence_interval(0.9)
    assert (outcome.p, outcome.statistic) == pytest.approx((wanted.pvalue, wanted.statistic))
    assert (outcome.low, outcome.high) == pytest.approx((interval.low, interval.high))


def test_mann_whitney_by_hand():
    """All of b above all of a: one of the six ways to choose two of four, and as many below."""
    outcome = ask("mann-whitney", [1, 2], [3, 4])
    assert outcome.p == pytest.approx(2 / 6)
    assert outcome.statistic == 4


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize(("n", "m"), [(3, 4), (12, 8), (20, 20)])
def test_mann_whitney_without_ties_against_scipy_exact(n, m, alternative):
    a, b = two(n, m)
    outcome = ask("mann-whitney", a, b, alternative=alternative)
    wanted = scipy.stats.mannwhitneyu(b, a, method="exact", alternative=alternative)
    assert (outcome.p, outcome.statistic) == pytest.approx((wanted.pvalue, wanted.statistic))
    assert outcome.exact


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_mann_whitney_of_many_values_with_ties_against_scipy_asymptotic(alternative):
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 8, 70) / 8, rng.integers(0, 9, 50) / 8
    outcome = ask("mann-whitney", a, b, alternative=alternative)
    wanted = scipy.stats.mannwhitneyu(b, a, method="asymptotic", alternative=alternative)
    assert not outcome.exact
    assert (outcome.p, outcome.statistic) == pytest.approx((wanted.pvalue, wanted.statistic))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("shift", [-0.1, 0.0, 0.1])
@pytest.mark.parametrize("steps", [8, 2**40])  # many ties, and none
def test_both_normal_tails_of_mann_whitney_against_scipy_asymptotic(steps, shift, alternative):
    rng = np.random.default_rng(2)
    a, b = (np.rint(rng.normal(mean, 1, size) * steps) / steps for mean, size in ((0, 60), (shift, 45)))
    outcome = ask("mann-whitney", a, b, alternative=alternative)
    wanted = scipy.stats.mannwhitneyu(b, a, method="asymptotic", alternative=alternative)
    assert 0.01 < wanted.pvalue <= 1
    assert (outcome.p, outcome.statistic) == pytest.approx((wanted.pvalue, wanted.statistic), rel=1e-9)


def divisions(a: np.ndarray, b: np.ndarray, statistic) -> np.ndarray:
    """A statistic under every division of all values into samples of these sizes."""
    both = np.concatenate([a, b])
    chosen = itertools.combinations(range(len(both)), len(b))
    return np.array([statistic(np.delete(both, list(own)), both[list(own)]) for own in chosen])


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@given(a=st.lists(few, min_size=2, max_size=4), b=st.lists(few, min_size=2, max_size=4))
def test_mann_whitney_with_ties_against_exact_enumeration(alternative, a, b):
    def u(x, y):
        return sum((q > p) + (q == p) / 2 for p in x for q in y)

    found, every = u(a, b), divisions(np.array(a), np.array(b), u)
    lower, upper = (every <= found).mean(), (every >= found).mean()
    wanted = {"less": lower, "greater": upper, "two-sided": min(1.0, 2 * min(lower, upper))}[alternative]
    assert ask("mann-whitney", a, b, alternative=alternative).p == pytest.approx(wanted)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@given(a=st.lists(few, min_size=2, max_size=4), b=st.lists(few, min_size=2, max_size=4))
def test_permutation_with_ties_against_exact_enumeration(alternative, a, b):
    def gap(x, y):
        return np.mean(y) - np.mean(x)

    found, every = gap(a, b), divisions(np.array(a), np.array(b), gap)
    wanted = {
        "less": (every <= found + 1e-9).mean(),
        "greater": (every >= found - 1e-9).mean(),
        "two-sided": (np.abs(every) >= abs(found) - 1e-9).mean(),
    }[alternative]
    outcome = ask("permutation", a, b, alternative=alternative)
    assert outcome.exact
    assert outcome.p == pytest.approx(wanted)


@pytest.mark.parametrize("alternative", ["less", "greater"])
def test_permutation_against_scipy_exact(alternative):
    a, b = two(6, 4)
    wanted = scipy.stats.permutation_test(
        (b, a), lambda x, y: x.mean() - y.mean(), vectorized=False, n_resamples=np.inf, alternative=alternative
    )
    outcome = ask("permutation", a, b, alternative=alternative)
    assert (outcome.p, outcome.statistic) == pytest.approx((wanted.pvalue, wanted.statistic))
    assert (outcome.exact, outcome.resamples) == (True, 210)


def test_permutation_sampled_is_near_exact_enumeration():
    a, b = two(9, 9)
    exact, sampled = ask("permutation", a, b, resamples=100_000), ask("permutation", a, b, resamples=40_000)
    assert (exact.exact, sampled.exact) == (True, False)
    assert sampled.p == pytest.approx(exact.p, abs=0.01)


def test_permutation_against_welch_on_many_values():
    a, b = two(60, 60)
    assert ask("permutation", a, b, resamples=20_000).p == pytest.approx(ask("welch", a, b).p, abs=0.01)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_mann_whitney_of_many_equal_values_is_1_on_either_side(alternative):
    assert ask("mann-whitney", np.ones(30), np.ones(25), alternative=alternative).p == 1
