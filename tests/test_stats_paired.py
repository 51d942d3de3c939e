"""Tests of pairs by formula, against SciPy, exact enumeration and the lecture."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cranfield.stats import paired
from cranfield.stats.tests_by_name import TESTS
from cranfield.stats.two_sample_test import ALTERNATIVES

few = st.integers(-4, 4)  # so few values that ties and zeros abound


def ask(name: str, a, b, **options):
    return TESTS[name](a, b, rng=np.random.default_rng(0), **options)


def two(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.random(n)
    return a, a + rng.normal(0.03, 0.1, n)


def test_the_sign_test_of_four_against_three_against_the_lecture():
    assert ask("sign", [0] * 7, [1, 1, 1, 1, -1, -1, -1]).p == 1.0


def test_the_sign_test_of_nine_against_one_by_hand():
    """Eleven of the 1024 ways to toss ten coins show nine heads or more."""
    outcome = ask("sign", [0] * 12, [1] * 9 + [-1] + [0] * 2)
    assert outcome.p == 2 * 11 / 1024
    assert outcome.statistic == 9


def test_wilcoxon_by_hand():
    """The ranks 1 2 3 4 are all above 0: one of the sixteen ways, and as many below."""
    outcome = ask("wilcoxon", [0] * 4, [0.1, 0.2, 0.3, 0.4])
    assert outcome.p == 2 / 16
    assert outcome.statistic == 10


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("n", [2, 3, 10, 249])
def test_t_against_scipy(n, alternative):
    a, b = two(n, n)
    outcome = ask("t", a, b, alternative=alternative, level=0.9)
    wanted = scipy.stats.ttest_rel(b, a, alternative=alternative)
    interval = wanted.confidence_interval(0.9)
    assert (outcome.p, outcome.statistic) == pytest.approx((wanted.pvalue, wanted.statistic))
    assert (outcome.low, outcome.high) == pytest.approx((interval.low, interval.high))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@given(differences=st.lists(few, min_size=2, max_size=30))
def test_sign_against_scipy(alternative, differences):
    d = np.array(differences)
    untied = int((d != 0).sum())
    outcome = ask("sign", np.zeros(len(d)), d, alternative=alternative)
    assert outcome.p == pytest.approx(
        scipy.stats.binomtest(int((d > 0).sum()), untied, alternative=alternative).pvalue if untied else 1.0
    )


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("n", [5, 20, 50])
def test_wilcoxon_without_ties_against_scipy_exact(n, alternative):
    a, b = two(n, n)
    wanted = scipy.stats.wilcoxon(b, a, method="exact", alternative=alternative)
    assert ask("wilcoxon", a, b, alternative=alternative).p == pytest.approx(wanted.pvalue)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_wilcoxon_of_many_pairs_with_ties_and_zeros_against_scipy_approximate(alternative):
    rng = np.random.default_rng(1)
    d = rng.integers(-6, 8, 400) / 8  # eighths are exact in binary, so that SciPy sees the same ties
    outcome = ask("wilcoxon", np.zeros(400), d, alternative=alternative)
    wanted = scipy.stats.wilcoxon(d, method="approx", zero_method="wilcox", correction=True, alternative=alternative)
    assert not outcome.exact
    assert outcome.p == pytest.approx(wanted.pvalue)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("shift", [-0.125, 0.0, 0.125])
@pytest.mark.parametrize("steps", [16, 2**40])  # many ties, and none
def test_both_normal_tails_of_wilcoxon_against_scipy_approximate(steps, shift, alternative):
    """Near the middle, where neither tail is 0 or 1: half a rank for continuity shows in the fourth digit."""
    d = np.rint((np.random.default_rng(3).normal(shift / 4, 1, 300)) * steps) / steps
    outcome = ask("wilcoxon", np.zeros(300), d, alternative=alternative)
    wanted = scipy.stats.wilcoxon(d, method="approx", zero_method="wilcox", correction=True, alternative=alternative)
    assert not outcome.exact
    assert 0.01 < wanted.pvalue <= 1
    assert outcome.p == pytest.approx(wanted.pvalue, rel=1e-9)
    assert outcome.statistic == pytest.approx(scipy.stats.rankdata(np.abs(d[d != 0]))[d[d != 0] > 0].sum())


def test_wilcoxon_exact_and_normal_meet_where_one_gives_way_to_the_other(monkeypatch):
    rng = np.random.default_rng(2)
    d = rng.integers(-6, 8, 240) / 8
    exact = ask("wilcoxon", np.zeros(240), d)
    monkeypatch.setattr(paired, "EXACT_RANKS", 0)
    normal = ask("wilcoxon", np.zeros(240), d)
    assert (exact.exact, normal.exact) == (True, False)
    assert exact.p == pytest.approx(normal.p, rel=0.02)


def test_wilcoxon_is_exact_up_to_250_differences_other_than_0():
    d = np.random.default_rng(4).normal(0.1, 1, 251)
    assert not ask("wilcoxon", np.zeros(251), d).exact
    d[7] = 0.0
    assert ask("wilcoxon", np.zeros(251), d).exact


def enumerated_wilcoxon(d: np.ndarray, alternative: str) -> float:
    """The definition: the ranks of what is not 0, under every choice of signs."""
    d = d[d != 0]
    ranks = scipy.stats.rankdata(np.abs(d))
    found = ranks[d > 0].sum()
    sums = [
        sum(r for r, up in zip(ranks, signs, strict=True) if up) for signs in itertools.product([0, 1], repeat=len(d))
    ]
    lower, upper = np.mean(np.array(sums) <= found), np.mean(np.array(sums) >= found)
    return {"less": lower, "greater": upper, "two-sided": min(1.0, 2 * min(lower, upper))}[alternative]


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@given(differences=st.lists(few, min_size=2, max_size=9))
def test_wilcoxon_with_ties_and_zeros_against_exact_enumeration(alternative, differences):
    d = np.array(differences, float)
    outcome = ask("wilcoxon", np.zeros(len(d)), d, alternative=alternative)
    assert outcome.p == pytest.approx(enumerated_wilcoxon(d, alternative))
    assert outcome.exact


def test_ties_are_ties_whatever_the_last_bit_of_a_subtraction_says():
    a, b = np.array([0.3, 0.1, 0.7, 0.5, 0.9]), np.array([0.4, 0.2, 0.8, 0.4, 1.0])
    assert len(set(np.abs(b - a).tolist())) > 1
    assert (
        ask("wilcoxon", a, b).p
        == ask("wilcoxon", 10 * a, np.rint(10 * b)).p
        == enumerated_wilcoxon(np.array([1.0, 1, 1, -1, 1]), "two-sided")
    )
    assert ask("sign", [0.3, 1.0], [0.1 + 0.2, 2.0]).statistic == 1


def test_the_tail_of_signed_ranks_keeps_the_digits_of_a_tiny_chance():
    ranks = np.arange(2, 402, 2)
    assert paired.signed_rank_tails(ranks.tobytes(), 0) == (0.5**200, 1.0)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_mcnemar_against_scipy_on_the_discordant_pairs(alternative):
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 2, 60), rng.integers(0, 3, 60) > 0
    won, lost = int((b > a).sum()), int((b < a).sum())
    wanted = scipy.stats.binomtest(won, won + lost, alternative=alternative).pvalue
    assert ask("mcnemar", a, b, alternative=alternative).p == pytest.approx(wanted)


def test_mcnemar_against_statsmodels():
    table = pytest.importorskip("statsmodels.stats.contingency_tables")
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 2, 40), rng.integers(0, 2, 40)
    counts = [[((a == i) & (b == j)).sum() for j in (0, 1)] for i in (0, 1)]
    assert ask("mcnemar", a, b).p == pytest.approx(table.mcnemar(counts, exact=True).pvalue)


def test_mcnemar_of_other_values_than_0_and_1_says_what_it_wants():
    outcome = ask("mcnemar", [0, 1, 0.5], [1, 1, 0])
    assert math.isnan(outcome.p)
    assert outcome.reason == "McNemar's test compares successes (1) and failures (0), and there are other values"


def test_pairs_all_of_which_tie_are_no_evidence():
    for name in ("sign", "wilcoxon", "randomisation"):
        outcome = ask(name, [1, 2, 3], [1, 2, 3])
        assert (outcome.p, outcome.reason) == (1.0, "all differences are 0")
