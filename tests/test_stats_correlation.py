"""Rank correlations against ircor, SciPy, the lecture, and the definition applied to every order of the ties."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import DataError
from cranfield.stats.correlation import (
    COEFFICIENTS,
    correlation,
    pearson,
    spearman,
    tau_a,
    tau_ap,
    tau_ap_a,
    tau_ap_b,
    tau_b,
    tau_union,
    undefined,
    weighted_tau,
)

IRCOR = {
    "tau": "tau",
    "tau_a": "tau-a",
    "tau_b": "tau-b",
    "tauAP": "tau-ap",
    "tauAP_a": "tau-ap-a",
    "tauAP_b": "tau-ap-b",
}

few = st.integers(0, 4)  # so few values that ties abound
two_columns = st.lists(st.tuples(few, few), min_size=2, max_size=12).map(lambda rows: tuple(zip(*rows, strict=True)))
orders = st.integers(2, 9).flatmap(lambda n: st.tuples(st.permutations(range(n)), st.permutations(range(n))))


def slow_tau_ap(x, y) -> float:
    """The definition, item by item: x is the truth, no ties in either."""
    ranking = sorted(range(len(y)), key=lambda i: -y[i])
    parts = [
        sum(x[above] > x[item] for above in ranking[:place]) / place for place, item in enumerate(ranking) if place > 0
    ]
    return 2 * sum(parts) / (len(y) - 1) - 1


def orders_of_ties(y):
    """All rankings without ties that y allows."""
    values = sorted(set(y))
    groups = [[i for i, v in enumerate(y) if v == value] for value in values]
    for arranged in itertools.product(*(itertools.permutations(group) for group in groups)):
        flat = [i for group in arranged for i in group]
        yield [flat.index(i) for i in range(len(y))]


def test_all_45_values_against_ircor(shared):
    cases = json.loads((shared / "peer-cases" / "ircor.json").read_text(encoding="utf-8"))

    def column(name):
        which, part = name.split("$")
        return cases["sets"][which][part]

    assert len(cases["cases"]) == 45
    for case in cases["cases"]:
        value = correlation(IRCOR[case["fn"]], column(case["x"]), column(case["y"]))
        assert value == pytest.approx(case["expected"], abs=case["tolerance"]), case


def test_kendall_s_tau_against_the_lecture():
    a_b_c_d, c_d_a_b = [4, 3, 2, 1], [2, 1, 4, 3]
    assert tau_a(a_b_c_d, c_d_a_b) == pytest.approx(-1 / 3)
    assert tau_b(a_b_c_d, c_d_a_b) == pytest.approx(-1 / 3)


@given(two_columns)
def test_spearman_and_pearson_against_scipy(columns):
    x, y = columns
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert math.isnan(tau_b(x, y))
        assert math.isnan(weighted_tau(x, y))
        assert math.isnan(spearman(x, y))
        return
    assert spearman(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-12)
    assert pearson(x, y) == pytest.approx(scipy.stats.pearsonr(x, y).statistic, abs=1e-12)


@given(orders)
def test_weighted_tau_against_the_definition(two):
    """Additive hyperbolic weights by the ranks of x, then of y, averaged."""

    def by_ranks_of(reference, x, y):
        place = {i: r for r, i in enumerate(sorted(range(len(x)), key=lambda i: -reference[i]), 1)}
        pairs = list(itertools.combinations(range(len(x)), 2))
        weight = {(i, j): 1 / place[i] + 1 / place[j] for i, j in pairs}
        agreed = sum(w * np.sign((x[i] - x[j]) * (y[i] - y[j])) for (i, j), w in weight.items())
        return agreed / sum(weight.values())

    x, y = two
    expected = (by_ranks_of(x, x, y) + by_ranks_of(y, x, y)) / 2
    assert weighted_tau(x, y) == pytest.approx(expected, abs=1e-12)


@given(two_columns)
def test_tau_a_and_tau_b_against_counted_pairs(columns):
    x, y = columns
    pairs = list(itertools.combinations(range(len(x)), 2))
    excess = sum(int(np.sign((x[i] - x[j]) * (y[i] - y[j]))) for i, j in pairs)
    assert tau_a(x, y) == pytest.approx(excess / len(pairs), abs=1e-15)
    untied = [sum(side[i] != side[j] for i, j in pairs) for side in (x, y)]
    if all(untied):
        assert tau_b(x, y) == pytest.approx(excess / math.sqrt(math.prod(untied)), abs=1e-12)


@given(orders)
def test_tau_ap_against_the_definition(two):
    x, y = two
    assert tau_ap(x, y) == pytest.approx(slow_tau_ap(x, y), abs=1e-12)
    assert tau_ap_a(x, y) == pytest.approx(slow_tau_ap(x, y), abs=1e-12)
    assert tau_ap_b(x, y) == pytest.approx((slow_tau_ap(x, y) + slow_tau_ap(y, x)) / 2, abs=1e-12)


@given(st.integers(2, 6).flatmap(lambda n: st.tuples(st.permutations(range(n)), st.lists(few, min_size=n, max_size=n))))
def test_tau_ap_a_is_the_mean_over_all_orders_of_the_ties_against_exact_enumeration(two):
    x, y = two
    expected = np.mean([slow_tau_ap(x, order) for order in orders_of_ties(y)])
    assert tau_ap_a(x, y) == pytest.approx(expected, abs=1e-12)


def test_tau_ap_blocks_join_without_a_seam():
    rng = np.random.default_rng(1)
    x, y = rng.permutation(700), rng.permutation(700)
    assert tau_ap(x, y) == pytest.approx(slow_tau_ap(x.tolist(), y.tolist()), abs=1e-12)


@pytest.mark.parametrize("kind", COEFFICIENTS)
@given(two=orders)
def test_every_correlation_is_1_with_itself_and_minus_1_with_its_reverse_and_between(kind, two):
    x, y = two
    assert correlation(kind, x, x) == pytest.approx(1)
    assert correlation(kind, x, [-v for v in x]) == pytest.approx(-1)
    assert -1 <= correlation(kind, x, y) <= 1
    assert undefined(kind, x, y) == ""


@pytest.mark.parametrize("kind", COEFFICIENTS)
@given(columns=two_columns)
def test_a_correlation_is_nan_exactly_where_there_is_a_reason(kind, columns):
    x, y = columns
    assert math.isnan(correlation(kind, x, y)) == bool(undefined(kind, x, y))


@pytest.mark.parametrize("kind", COEFFICIENTS)
def test_one_item_or_none_has_no_order(kind):
    for items in ([], [1.0]):
        assert math.isnan(correlation(kind, items, items))
        assert "expected two items or more" in undefined(kind, items, items)


def test_reasons_are_worded():
    assert undefined("tau", [1, 2], [3, 3]) == "all 2 scores of the second are the same"
    assert undefined("pearson", [1, math.inf], [3, 4]) == "some scores of the first are infinite"
    assert math.isnan(pearson([1, math.inf], [3, 4]))
    assert undefined("tau-ap", [1, 2, 3], [3, 3, 4]).endswith("no ties in the second; use tau-ap-a or tau-ap-b")
    assert undefined("tau-ap-a", [1, 2, 2], [3, 3, 4]).endswith("no ties in the first; use tau-ap-b")


def test_pearson_takes_rounding_for_no_more_than_it_is():
    assert math.isnan(pearson([0.1, 0.1, 0.1], [1, 2, 3]))
    assert pearson([1e-200, 2e-200, 3e-200], [1e200, 2e200, 3e200]) == pytest.approx(1)


def test_bad_data_is_refused():
    with pytest.raises(DataError, match="same length"):
        tau_b([1, 2], [1, 2, 3])
    with pytest.raises(DataError, match="found NaN"):
        spearman([1, math.nan], [1, 2])
    with pytest.raises(DataError, match="no correlation 'gamma'; there are tau"):
        correlation("gamma", [1, 2], [1, 2])


def test_tau_union_takes_new_items_for_being_in_order_as_in_the_paper_s_example():
    assert tau_union("abc", "abd") == 1
    assert tau_union("abc", "xyz") == 1
    assert tau_union("abc", "cba") == -1
    assert math.isnan(tau_union("abc", "ab"))
    assert tau_union("abc", "bad", names="cabd") == tau_b([1, 2, 0], [2, 1, 3])


@pytest.mark.parametrize("size", [2, 3, 40, 128, 129])
def test_tau_b_of_tied_and_infinite_scores_against_scipy(size):
    rng = np.random.default_rng(size)
    for _ in range(10):
        x, y = rng.integers(0, max(2, size // 3), (2, size)) / 7
        x[0], x[1], y[0] = np.inf, 0, 9
        assert tau_b(x, y) == scipy.stats.kendalltau(x, y).statistic
