"""Pairs that count for more than others: formulas against NumPy and SciPy, tests against enumeration, and their level."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cranfield.base.errors import DataError
from cranfield.stats.tests_by_name import TESTS
from cranfield.stats.two_sample_test import SignificanceSettings
from cranfield.stats.weighted_means import checked, effective_size, weighted_freedom, weighted_mean_and_error

WEIGHABLE = [name for name in TESTS if TESTS[name].weighable]
OTHERS = [name for name in TESTS if not TESTS[name].weighable]
FIGURES = ("p", "statistic", "low", "high")


def pairs(n: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.random(n)
    return a, a + rng.normal(0.05, 0.15, n)


def traffic(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).permutation(1 / np.arange(1, n + 1))


def ask(name: str, a, b, **options):
    outcome = TESTS[name](a, b, rng=np.random.default_rng(1), **{"resamples": 2000, **options})
    return [getattr(outcome, figure) for figure in FIGURES]


def test_those_that_compare_means_of_pairs_by_t_signs_or_resamples_know_weights():
    assert WEIGHABLE == ["randomisation", "t", "bootstrap", "bootstrap-bca", "bootstrap-t"]


@pytest.mark.parametrize("name", WEIGHABLE)
@pytest.mark.parametrize("weight", [1.0, 0.1, 7, 1e300])
def test_equal_weights_give_exactly_what_none_give(name, weight):
    a, b = pairs()
    assert ask(name, a, b, weights=np.full(12, weight)) == ask(name, a, b)


@pytest.mark.parametrize("name", WEIGHABLE)
def test_weights_that_are_all_but_equal_give_all_but_the_same(name):
    a, b = pairs(40)
    weights = 1 + 1e-9 * traffic(40)
    assert ask(name, a, b, weights=weights) == pytest.approx(ask(name, a, b), rel=1e-6)


@pytest.mark.parametrize("name", WEIGHABLE)
@pytest.mark.parametrize("scale", [3.0, 1e-200, 1e200])
def test_weights_times_a_constant_change_nothing(name, scale):
    a, b = pairs()
    found = ask(name, a, b, weights=scale * traffic(12))
    assert found == pytest.approx(ask(name, a, b, weights=traffic(12)), rel=1e-9)


@pytest.mark.parametrize("name", WEIGHABLE)
def test_a_weight_of_0_leaves_the_pair_out(name):
    a, b = pairs()
    weights = np.where(np.arange(12) < 4, 0.0, traffic(12))
    assert ask(name, a, b, weights=weights) == ask(name, a[4:], b[4:], weights=traffic(12)[4:])


@pytest.mark.parametrize("name", WEIGHABLE)
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_p_is_the_same_with_and_without_the_interval_and_alone_or_among_others(name, alternative):
    a, b = pairs(25)
    question = SignificanceSettings(alternative, 0.95, 2000, np.random.default_rng(1), traffic(25))
    rows = np.stack([a, b, a]), np.stack([b, a, a[::-1]])
    p = [outcome.p for outcome in TESTS[name].without_interval(*rows, question.asked_again())]
    assert p == pytest.approx([outcome.p for outcome in TESTS[name].outcomes(*rows, question.asked_again())])
    alone = TESTS[name].outcomes(rows[0][:1], rows[1][:1], question.asked_again())
    assert alone[0].p == pytest.approx(p[0])


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_test_refuses_weights_by_name(name):
    a, b = pairs()
    with pytest.raises(DataError, match=f"{name} knows no weights; those that do are randomisation, t, bootstrap"):
        ask(name, a, b, weights=np.ones(12))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, -1, 1], "got -1 at place 2"),
        ([1, 1, float("nan")], "got nan at place 3"),
        ([float("inf"), 1, 1], "got inf at place 1"),
        ([0, 0, 0], "must not all be 0"),
        ([1, 1], "expected a weight for each of 3 items"),
    ],
)
def test_weights_that_are_none_are_refused(weights, words):
    with pytest.raises(DataError, match=words):
        checked(weights, 3)


@pytest.mark.parametrize("name", WEIGHABLE)
def test_the_statistic_is_the_weighted_mean_against_numpy_or_its_t(name):
    a, b = pairs()
    mean = np.average(b - a, weights=traffic(12))
    _, statistic, low, high = ask(name, a, b, weights=traffic(12))
    if name == "t":
        statistic = (low + high) / 2
    assert statistic == pytest.approx(mean)
    assert low < mean < high


def test_the_error_by_its_formula_worked_by_hand():
    """Shares .5 .25 .25; mean 1; deviations 1, 0, -2; 1 - 2p + Σp² = .375 and .875."""
    mean, error = weighted_mean_and_error(np.array([[2.0, 1.0, -1.0]]), np.array([2.0, 1.0, 1.0]))
    assert mean[0] == pytest.approx(1.0)
    assert error[0] ** 2 == pytest.approx(0.25 / 0.375 * 1 + 0.0625 / 0.875 * 4)
    assert effective_size([2, 1, 1]) == pytest.approx(16 / 6)
    assert weighted_freedom(np.array([2.0, 1.0, 1.0])) == pytest.approx(16 / 6 - 1)


def test_the_squared_error_is_unbiased_among_equal_variances_whatever_the_weights():
    rng = np.random.default_rng(0)
    weights = traffic(8)
    mean, error = weighted_mean_and_error(rng.normal(size=(200_000, 8)), weights)
    assert np.square(error).mean() == pytest.approx(mean.var(), rel=0.02)
    assert np.square(error).mean() == pytest.approx(1 / effective_size(weights), rel=0.02)


def test_t_against_scipy_by_its_definition():
    from scipy import stats

    a, b = pairs()
    d, p = b - a, traffic(12) / traffic(12).sum()
    mean = (p * d).sum()
    error = np.sqrt((p**2 * (d - mean) ** 2 / (1 - 2 * p + (p**2).sum())).sum())
    df = 1 / (p**2).sum() - 1
    expected = 2 * stats.t.sf(abs(mean / error), df)
    ends = stats.t.interval(0.95, df, mean, error)
    assert ask("t", a, b, weights=traffic(12)) == pytest.approx([expected, mean / error, *ends])


@pytest.mark.parametrize(("alternative", "sign"), [("two-sided", 0), ("greater", 1), ("less", -1)])
def test_randomisation_against_enumeration_of_all_signs(alternative, sign):
    a, b = pairs(10)
    weighed = (b - a) * traffic(10)
    sums = np.array([np.dot(signs, weighed) for signs in product((1, -1), repeat=10)])
    reached = np.abs(sums) >= abs(weighed.sum()) - 1e-12 if not sign else sign * sums >= sign * weighed.sum() - 1e-12
    assert ask("randomisation", a, b, weights=traffic(10), alternative=alternative)[0] == pytest.approx(reached.mean())


def test_the_interval_of_randomisation_holds_just_the_shifts_that_it_does_not_reject():
    a, b = pairs(10)
    _, _, low, high = ask("randomisation", a, b, weights=traffic(10))
    inside = [low + 1e-9, high - 1e-9]
    outside = [low - 1e-9, high + 1e-9]
    p = [ask("randomisation", a + shift, b, weights=traffic(10))[0] for shift in [*inside, *outside]]
    assert min(p[:2]) > 0.05 >= max(p[2:])


def test_randomisation_of_symmetric_differences_is_exact_whatever_the_weights():
    """Over all signs of the same sizes, p at most 1/8 comes up in just one case of eight, if no sums tie."""
    sizes, weights = pairs(8)[1], traffic(8)
    p = [ask("randomisation", np.zeros(8), sizes * signs, weights=weights)[0] for signs in product((1, -1), repeat=8)]
    for level in (1 / 32, 1 / 8, 1 / 2):
        assert np.mean(np.array(p) <= level + 1e-12) == pytest.approx(level)


@pytest.mark.parametrize("name", ["bootstrap", "bootstrap-bca", "bootstrap-t"])
def test_bootstraps_against_resamples_drawn_one_by_one(name):
    a, b = pairs(15)
    d, weights = b - a, traffic(15)
    rng = np.random.default_rng(5)
    drawn = rng.integers(0, 15, (20_000, 15))
    means = np.array([np.average(d[rows], weights=weights[rows]) for rows in drawn])
    _, _, low, high = ask(name, a, b, weights=weights, resamples=20_000)
    if name == "bootstrap":
        assert [low, high] == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.004)
        return
    mean = np.average(d, weights=weights)
    if name == "bootstrap-t":
        t = [(m - mean) / _error(d[rows], weights[rows]) for m, rows in zip(means, drawn, strict=True)]
        ends = mean - _error(d, weights) * np.quantile(t, [0.975, 0.025])
        assert [low, high] == pytest.approx(ends, abs=0.02)
        return
    from scipy.special import ndtr, ndtri

    left = np.array([np.average(np.delete(d, i), weights=np.delete(weights, i)) for i in range(15)])
    influence = (d - mean) * weights
    skew = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    assert np.sign(skew) == np.sign(((left.mean() - left) ** 3).sum())
    bias = ndtri((means < mean).mean())
    z = bias + ndtri([0.025, 0.975])
    assert [low, high] == pytest.approx(np.quantile(means, ndtr(bias + z / (1 - skew * z))), abs=0.01)


def _error(d: np.ndarray, weights: np.ndarray) -> float:
    mean = np.average(d, weights=weights)
    return float(np.sqrt((weights**2 * (d - mean) ** 2).sum() * len(d) / (len(d) - 1)) / weights.sum())


def rejected(name: str, n: int, kind: str, spread: float, rows: int, draws: int, resamples: int = 499) -> float:
    """How often a test at 5 % rejects where the mean is 0, the weights new in each of `draws` tables.

    The spread of a difference goes with its weight to the power of `spread` on the scale of its logarithm.
    """
    rng = np.random.default_rng(n)
    times = 0
    for _ in range(draws):
        weights = np.exp(rng.normal(0, 0.75, n)) if kind == "lognormal" else rng.permutation(1 / np.arange(1, n + 1))
        log = np.log(weights)
        d = rng.normal(size=(rows, n)) * np.exp(spread * (log - log.mean()) / log.std())
        question = SignificanceSettings("two-sided", 0.95, resamples, rng, weights)
        times += sum(outcome.p <= 0.05 for outcome in TESTS[name].without_interval(np.zeros_like(d), d, question))
    return times / (rows * draws)


@pytest.mark.parametrize("kind", ["lognormal", "zipf"])
@pytest.mark.parametrize("spread", [-0.4, 0.0, 0.4])
@pytest.mark.parametrize("n", [10, 50])
def test_t_of_weighed_pairs_keeps_its_level(n, kind, spread):
    assert 0.025 <= rejected("t", n, kind, spread, rows=100, draws=40) <= 0.075


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lognormal", "zipf"])
@pytest.mark.parametrize("spread", [-0.4, 0.0, 0.4])
@pytest.mark.parametrize("n", [10, 25, 50, 200])
def test_t_of_weighed_pairs_keeps_its_level_more_exactly(n, kind, spread):
    assert 0.03 <= rejected("t", n, kind, spread, rows=100, draws=300) <= 0.068


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lognormal", "zipf"])
@pytest.mark.parametrize("n", [10, 25])
def test_randomisation_of_weighed_pairs_keeps_its_level(n, kind):
    assert 0.04 <= rejected("randomisation", n, kind, 0.4, rows=100, draws=100) <= 0.06
