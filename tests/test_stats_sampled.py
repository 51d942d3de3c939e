"""Means of a population from unequal samples: enumeration of whole designs, Student as the limit, coverage, power."""

from __future__ import annotations

from itertools import combinations, cycle, permutations, product

import numpy as np
import pytest

from cranfield.base.errors import DataError
from cranfield.pooling.topic_sampling import TOPIC_DESIGNS
from cranfield.stats.sampled_means import (
    ALL_CERTAIN,
    NO_CHANGE,
    ONE_DRAWN,
    UNEVEN,
    ProbabilitySample,
    sampled_mean,
    sampled_mean_and_error,
    sampled_t_without_each,
)
from cranfield.stats.sampled_power import SampledDifferences
from cranfield.stats.tests_by_name import TESTS

SIZES = np.array([40.0, 9, 7, 3, 1])
VALUES = np.array([0.9, 0.1, 0.6, 0.0, 0.3])


# samples of a population


DESIGNS = {name: TOPIC_DESIGNS.named(name) for name in ("systematic", "pareto")}


def by_size(sizes: np.ndarray, n: int) -> np.ndarray:
    """Inclusion probabilities in proportion to size, for samples of n; items that would exceed 1 are certain."""
    return DESIGNS["pareto"].probabilities(sizes, n)


def pareto(chances: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return DESIGNS["pareto"].draw(chances, rng)


def zipf(exponent: float, n: int = 20_000) -> np.ndarray:
    return 1e6 * np.arange(1.0, n + 1) ** -exponent


def scores(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Scores of the items from the largest to the smallest: four of five 0, or falling with rank, or both."""
    rank = np.log(np.arange(1, n + 1))
    if kind == "zeros":
        return np.where(rng.random(n) < 0.8, 0.0, rng.random(n))
    if kind == "falling":
        return np.clip(0.8 - 0.07 * rank + rng.normal(0, 0.15, n), 0, 1)
    return np.where(rng.random(n) < np.clip(0.6 - 0.06 * rank, 0.02, 1), rng.random(n), 0.0)


def t_of_sample(y, sizes, chances, items, strata=None):
    """The t-test of the mean of one sample, with its interval."""
    sample = ProbabilitySample.of(sizes[items], chances[items], None if strata is None else strata[items])
    return TESTS["t"](np.zeros(len(items)), y[items], sample=sample)


# the formula


def test_the_error_by_its_formula_worked_by_hand():
    """Weights 40, 10, 20 of 70; only the last two were drawn, with factors c of .1 and .65."""
    sample = ProbabilitySample.of([40, 9, 7], [1, 0.9, 0.35])
    mean, error = sampled_mean_and_error(np.array([[0.9, 0.1, 0.6]]), sample)
    expected = (40 * 0.9 + 10 * 0.1 + 20 * 0.6) / 70
    e = np.array([10 * (0.1 - expected), 20 * (0.6 - expected)])
    a = np.array([0.1, 0.65]) / 0.75
    variance = (0.75 * a * (e - (a * e).sum()) ** 2).sum() / (1 - (a**2).sum())
    assert mean[0] == pytest.approx(expected)
    assert error[0] == pytest.approx(np.sqrt(variance) / 70)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_the_test_of_small_equal_probabilities_against_students_by_scipy(alternative):
    from scipy import stats

    rng = np.random.default_rng(0)
    a, b = rng.random(25), rng.random(25) + 0.1
    outcome = TESTS["t"](a, b, sample=ProbabilitySample.of(np.ones(25), np.full(25, 1e-12)), alternative=alternative)
    peer = stats.ttest_rel(b, a, alternative=alternative)
    interval = peer.confidence_interval(0.95)
    assert [outcome.p, outcome.statistic] == pytest.approx([peer.pvalue, peer.statistic])
    assert [outcome.low, outcome.high] == pytest.approx([interval.low, interval.high])


def test_an_equal_sample_of_a_finite_population_has_the_finite_population_correction():
    y, n, size = np.array([[0.1, 0.5, 0.2, 0.9]]), 4, 10
    _, error = sampled_mean_and_error(y, ProbabilitySample.of(np.ones(n), np.full(n, n / size)))
    assert error[0] ** 2 == pytest.approx((1 - n / size) * y.var(ddof=1) / n)


def test_certain_items_move_the_mean_and_add_no_error():
    y = np.array([[0.2, 0.7, 0.4, 0.1], [0.2, 0.7, 0.4, 0.9]])
    sample = ProbabilitySample.of([5, 5, 5, 60], [0.2, 0.2, 0.2, 1])
    mean, error = sampled_mean_and_error(y, sample)
    assert mean[1] - mean[0] == pytest.approx(60 * 0.8 / 135)
    assert error[1] == pytest.approx(error[0])
    assert sample.freedom == 2


def test_variances_of_strata_add_up():
    rng = np.random.default_rng(3)
    y, sizes = rng.random((1, 12)), np.repeat([4.0, 1.0], 6)
    chances, strata = np.repeat([0.5, 0.1], 6), np.repeat(["head", "tail"], 6)
    whole = ProbabilitySample.of(sizes, chances, strata)
    mean, error = sampled_mean_and_error(y, whole)
    total = whole.weights.sum()
    parts = 0.0
    for name in ("head", "tail"):
        part = whole.part(strata == name)
        parts += (sampled_mean_and_error(y[:, strata == name], part)[1][0] * part.weights.sum() / total) ** 2
    assert error[0] ** 2 == pytest.approx(parts)
    assert whole.freedom == 10
    assert mean[0] == pytest.approx(np.average(y[0], weights=sizes / chances))


def test_the_unit_of_sizes_changes_nothing():
    rng = np.random.default_rng(4)
    y, sizes, chances = rng.random((3, 9)), rng.random(9), rng.random(9)
    one, other = (sampled_mean_and_error(y, ProbabilitySample.of(sizes * unit, chances)) for unit in (1, 1e250))
    np.testing.assert_allclose(one, other)


def test_rows_alone_and_in_company_are_the_same():
    rng = np.random.default_rng(5)
    y, sample = rng.random((4, 9)), ProbabilitySample.of(rng.random(9), rng.random(9), list("aaabbbccc"))
    together = np.array(sampled_mean_and_error(y, sample))
    alone = np.array([sampled_mean_and_error(row[None], sample) for row in y])[:, :, 0].T
    np.testing.assert_allclose(together, alone)


def test_each_mean_without_one_item_against_a_smaller_sample():
    rng = np.random.default_rng(6)
    y, sample = rng.random((2, 7)), ProbabilitySample.of(rng.random(7), [1, 0.5, 0.5, 0.2, 0.3, 1, 0.9])
    mean, t = sampled_t_without_each(y, sample)
    for i in range(7):
        rest = np.delete(np.arange(7), i)
        expected, error = sampled_mean_and_error(y[:, rest], sample.part(rest))
        np.testing.assert_allclose(mean[:, i], expected)
        np.testing.assert_allclose(t[:, i], expected / error)


# whole designs, enumerated


def test_equal_samples_enumerated_are_unbiased_in_mean_and_squared_error():
    samples = list(combinations(range(5), 3))
    means, errors = [], []
    for items in samples:
        sample = ProbabilitySample.of(np.ones(3), np.full(3, 3 / 5))
        mean, error = sampled_mean_and_error(VALUES[None, items], sample)
        means.append(mean[0])
        errors.append(error[0])
    assert np.mean(means) == pytest.approx(VALUES.mean())
    assert np.square(errors).mean() == pytest.approx(np.var(means))


def test_equal_samples_of_strata_enumerated_are_unbiased_in_mean_and_squared_error():
    """Two of three items of one size, three of four of another."""
    y, sizes = np.array([0.9, 0.1, 0.6, 0.0, 0.3, 0.8, 0.2]), np.array([5.0, 5, 5, 1, 1, 1, 1])
    chances, strata = np.repeat([2 / 3, 3 / 4], [3, 4]), np.repeat(["head", "tail"], [3, 4])
    means, errors = [], []
    for head in combinations(range(3), 2):
        for tail in combinations(range(3, 7), 3):
            items = np.array([*head, *tail])
            mean, error = sampled_mean_and_error(
                y[None, items], ProbabilitySample.of(sizes[items], chances[items], strata[items])
            )
            means.append(mean[0])
            errors.append(error[0])
    assert np.mean(means) == pytest.approx(np.average(y, weights=sizes))
    assert np.square(errors).mean() == pytest.approx(np.var(means))


def systematic_samples(chances: np.ndarray) -> list[tuple[float, list[int]]]:
    """Every systematic sample over all orders of the items, each with its probability."""
    answer = []
    orders = list(permutations(range(len(chances))))
    for order in orders:
        ends = np.cumsum(chances[list(order)])
        m = round(float(ends[-1]))
        starts = sorted({0.0, 1.0, *(round(float(end % 1), 9) for end in ends[:-1])})
        for low, high in zip(starts, starts[1:], strict=False):
            places = np.searchsorted(ends, np.arange(m) + (low + high) / 2)
            answer.append(((high - low) / len(orders), [order[place] for place in places]))
    return answer


def test_systematic_samples_enumerated_are_unbiased_in_the_mean():
    """Of five items one is certain and two of the others are drawn; all their orders and starts are tried."""
    chances = by_size(SIZES, 3)
    assert chances.tolist() == pytest.approx([1, 0.9, 0.7, 0.3, 0.1])
    samples = [(p, [0, *(1 + i for i in drawn)]) for p, drawn in systematic_samples(chances[1:])]
    means = [
        p * sampled_mean(VALUES[None, items], ProbabilitySample.of(SIZES[items], chances[items]))[0]
        for p, items in samples
    ]
    assert sum(p for p, _ in samples) == pytest.approx(1)
    assert sum(means) == pytest.approx(np.average(VALUES, weights=SIZES))


def test_the_most_random_samples_enumerated_are_nearly_unbiased_in_the_squared_error():
    """Conditional Poisson sampling, for which the formula is derived: four of ten items with odds 1, 2 … 10."""
    odds, y = np.arange(1.0, 11), np.random.default_rng(11).random(10)
    samples = [np.array(items) for items in combinations(range(10), 4)]
    p = np.array([odds[items].prod() for items in samples])
    p /= p.sum()
    chances = np.zeros(10)
    for chance, items in zip(p, samples, strict=True):
        chances[items] += chance
    sizes = chances  # drawn in proportion to size
    rows = [
        sampled_mean_and_error(y[None, items], ProbabilitySample.of(sizes[items], chances[items])) for items in samples
    ]
    means, errors = (np.array([row[side][0] for row in rows]) for side in (0, 1))
    true = np.average(y, weights=sizes)
    assert (p * means).sum() == pytest.approx(true)
    assert (p * errors**2).sum() == pytest.approx((p * (means - true) ** 2).sum(), rel=0.05)


# what has no interval


def test_a_sample_of_everything_is_its_own_interval_and_has_no_test():
    outcome = TESTS["t"]([0.1, 0.2, 0.3], [0.3, 0.2, 0.5], sample=ProbabilitySample.of([3, 2, 1], [1, 1, 1]))
    mean = np.average([0.2, 0.0, 0.2], weights=[3, 2, 1])
    assert np.isnan(outcome.p)
    assert outcome.reason == ALL_CERTAIN
    assert [outcome.low, outcome.high] == pytest.approx([mean, mean])
    assert outcome.direction == 1


@pytest.mark.parametrize(
    ("sizes", "chances", "strata", "reason"),
    [
        ([3, 2, 1], [1, 1, 0.5], None, ONE_DRAWN),
        ([3, 3, 1], [0.5, 0.5, 0.5], ["a", "a", "b"], ONE_DRAWN),
        ([90, 2, 1], [0.5, 0.5, 0.5], None, UNEVEN),
    ],
)
def test_a_sample_whose_error_is_unknown_says_why(sizes, chances, strata, reason):
    outcome = TESTS["t"]([0.1, 0.2, 0.3], [0.3, 0.1, 0.5], sample=ProbabilitySample.of(sizes, chances, strata))
    assert np.isnan([outcome.p, outcome.low, outcome.high]).all()
    assert outcome.reason == reason


def test_drawn_values_without_a_spread_give_no_test_even_if_certain_ones_differ():
    sample = ProbabilitySample.of([9, 3, 3, 3], [1, 0.5, 0.5, 0.5])
    rows = TESTS["t"].many([[0.0] * 4] * 2, [[0.4, 0.1, 0.1, 0.1], [0.4, 0.1, 0.1, 0.2]], sample=sample)
    assert [row.reason for row in rows] == [NO_CHANGE, ""]
    assert np.isnan(rows[0].p)
    assert rows[1].p > 0


@pytest.mark.parametrize("name", [name for name in TESTS if not TESTS[name].design_based])
def test_every_other_test_refuses_a_sample_by_name(name):
    sample = ProbabilitySample.of(np.ones(4), np.full(4, 0.5))
    with pytest.raises(DataError, match=f"{name} knows no sampling design; those that do are t"):
        TESTS[name]([0, 1, 0, 1], [1, 1, 0, 0], sample=sample, rng=np.random.default_rng(1))


@pytest.mark.parametrize(
    ("sizes", "chances", "words"),
    [
        ([1, 0], [0.5, 0.5], "sizes must be finite numbers above 0, got 0 at place 2"),
        ([1, float("inf")], [0.5, 0.5], "got inf at place 2"),
        ([1, 1], [0.5, 0.0], "inclusion probabilities must be above 0 and at most 1, got 0 at place 2"),
        ([1, 1], [1.5, 0.5], "got 1.5 at place 1"),
        ([1, 1], [float("nan"), 0.5], "got nan at place 1"),
        ([1, 1, 1], [0.5, 0.5], "expected a size and an inclusion probability per item"),
    ],
)
def test_numbers_that_describe_no_sample_are_refused(sizes, chances, words):
    with pytest.raises(DataError, match=words):
        ProbabilitySample.of(sizes, chances)


def test_effective_size_is_that_of_independent_draws_with_the_same_error():
    """With values of one variance, the mean's squared error is that variance over the effective size."""
    rng = np.random.default_rng(7)
    sizes = zipf(1.0, 2000)
    chances = by_size(sizes, 100)
    y = rng.normal(size=2000)
    means, sizes_found = [], []
    for _ in range(2000):
        items = pareto(chances, rng)
        sample = ProbabilitySample.of(sizes[items], chances[items])
        means.append(sampled_mean(y[None, items], sample)[0])
        sizes_found.append(sample.effective_size)
    assert 1 / np.var(means) == pytest.approx(np.mean(sizes_found), rel=0.15)
    assert np.mean(sizes_found) > 200


# coverage and level


def coverage(y: np.ndarray, sizes: np.ndarray, n: int, sampler: str, samples: int, seed: int) -> float:
    """The share of samples whose 95 % interval contains the mean of the population."""
    rng, chances = np.random.default_rng(seed), by_size(sizes, n)
    true, inside = np.average(y, weights=sizes), 0
    for _ in range(samples):
        outcome = t_of_sample(y, sizes, chances, DESIGNS[sampler].draw(chances, rng))
        inside += outcome.low <= true <= outcome.high
    return inside / samples


SETTINGS = pytest.mark.parametrize("exponent", [0.7, 1.0, 1.3])
KINDS = pytest.mark.parametrize("kind", ["zeros", "falling", "both"])
BY = pytest.mark.parametrize("sampler", DESIGNS)


# In make test each setting with each kind, by the designs in turn.
TURNS = zip(product([0.7, 1.0, 1.3], ["zeros", "falling", "both"]), cycle(DESIGNS))


@pytest.mark.parametrize(("exponent", "kind", "sampler"), [(*setting, sampler) for setting, sampler in TURNS])
def test_intervals_cover_the_mean_of_all_traffic(exponent, kind, sampler):
    y = scores(kind, 20_000, np.random.default_rng(1))
    assert 0.91 <= coverage(y, zipf(exponent), 200, sampler, 500, seed=1) <= 0.985


@pytest.mark.slow
@SETTINGS
@KINDS
@BY
def test_intervals_cover_the_mean_of_all_traffic_in_93_to_97_of_100_samples(exponent, kind, sampler):
    y = scores(kind, 20_000, np.random.default_rng(1))
    assert 0.93 <= coverage(y, zipf(exponent), 200, sampler, 5000, seed=2) <= 0.97


def difference(n: int, rng: np.random.Generator) -> np.ndarray:
    """Two runs that agree on most queries: one is better on frequent ones, the other on rare ones."""
    rank = np.log(np.arange(1, n + 1))
    return np.where(rng.random(n) < 0.5, 0.0, rng.normal(0.1 - 0.02 * rank, 0.3))


@SETTINGS
@pytest.mark.parametrize("samples", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_intervals_cover_the_difference_of_two_runs(exponent, samples):
    d = difference(20_000, np.random.default_rng(2))
    slack = 0.02 if samples < 5000 else 0
    assert 0.93 - slack <= coverage(d, zipf(exponent), 200, "pareto", samples, seed=3) <= 0.97 + slack


@BY
@pytest.mark.parametrize("samples", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_p_of_no_difference_is_at_most_a_twentieth_in_one_of_twenty_samples(sampler, samples):
    sizes, rng = zipf(1.0), np.random.default_rng(4)
    d = difference(20_000, rng)
    d -= np.average(d, weights=sizes)
    chances = by_size(sizes, 200)
    p = [t_of_sample(d, sizes, chances, DESIGNS[sampler].draw(chances, rng)).p for _ in range(samples)]
    slack = 0.02 if samples < 5000 else 0
    assert 0.03 - slack <= np.mean(np.array(p) <= 0.05) <= 0.07 + slack


@BY
@pytest.mark.parametrize("samples", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_intervals_of_a_stratified_sample_cover_the_mean_of_all_traffic(sampler, samples):
    """The head, torso and tail of the traffic, a third each: all 17 queries, 60 and 100."""
    sizes, rng = zipf(1.0), np.random.default_rng(5)
    y = scores("both", 20_000, rng)
    share = np.cumsum(sizes) / sizes.sum()
    strata = np.minimum((3 * share).astype(int), 2)
    chances = np.zeros(len(sizes))
    for h, n in enumerate((17, 60, 100)):
        chances[strata == h] = by_size(sizes[strata == h], n)
    assert (chances[strata == 0] == 1).all()
    true, inside = np.average(y, weights=sizes), 0
    for _ in range(samples):
        places = [np.flatnonzero(strata == h) for h in range(3)]
        items = np.concatenate([there[DESIGNS[sampler].draw(chances[there], rng)] for there in places])
        outcome = t_of_sample(y, sizes, chances, items, strata)
        inside += outcome.low <= true <= outcome.high
    slack = 0.02 if samples < 5000 else 0
    assert 0.93 - slack <= inside / samples <= 0.97 + slack


def test_the_usual_interval_of_a_uniform_sample_would_miss_the_mean_of_all_traffic():
    """What the refusal rests on: with scores that fall with rank it holds in 15 of 100 samples."""
    sizes, rng = zipf(1.3), np.random.default_rng(3)
    y = scores("falling", 20_000, rng)
    true, inside = np.average(y, weights=sizes), 0
    from scipy.special import stdtrit

    for _ in range(300):
        items = rng.choice(20_000, 200, replace=False)
        sample = ProbabilitySample.of(sizes[items], np.full(200, 0.01))
        assert sample.no_interval == UNEVEN
        mean, error = sampled_mean_and_error(y[None, items], sample)
        inside += abs(mean[0] - true) <= stdtrit(199, 0.975) * error[0]
    assert 0.08 <= inside / 300 <= 0.25


# power


def test_the_planned_error_at_the_present_size_is_the_present_error():
    rng = np.random.default_rng(8)
    sizes = zipf(1.0)
    chances = by_size(sizes, 200)
    items = pareto(chances, rng)
    sample = ProbabilitySample.of(sizes[items], chances[items])
    d = difference(20_000, rng)[None, items]
    plan = SampledDifferences(d, sample)
    assert plan.error(200) == pytest.approx(sampled_mean_and_error(d, sample)[1][0])
    assert plan.power(200, plan.detectable(200)) == pytest.approx(0.8)
    needed = plan.sample_size(0.03)
    assert plan.power(needed, 0.03) >= 0.8 > plan.power(needed - 1, 0.03)


def test_the_power_of_small_equal_probabilities_against_the_t_tests():
    from cranfield.stats.power import Design, power, sample_size

    d = np.random.default_rng(9).normal(0.05, 0.2, 60)
    plan = SampledDifferences(d[None], ProbabilitySample.of(np.ones(60), np.full(60, 1e-6)))
    by_t = Design("t", sd=float(d.std(ddof=1)))
    assert plan.sample_size(0.05) == sample_size(by_t, 0.05)
    assert plan.power(60, 0.05) == pytest.approx(power(by_t, 60, 0.05), abs=1e-4)


@pytest.mark.parametrize("n", [100, 400, 800])
def test_the_planned_error_against_samples_of_that_size(n):
    """Planned from samples of 200, on average; then drawn from the population itself."""
    rng = np.random.default_rng(10)
    sizes = zipf(1.0)
    d = difference(20_000, rng)
    chances, planned = by_size(sizes, 200), []
    for _ in range(30):
        items = pareto(chances, rng)
        sample = ProbabilitySample.of(sizes[items], chances[items])
        planned.append(SampledDifferences(d[None, items], sample).error(n) ** 2)
    larger, means = by_size(sizes, n), []
    for _ in range(400):
        items = pareto(larger, rng)
        means.append(np.average(d[items], weights=sizes[items] / larger[items]))
    assert np.sqrt(np.mean(planned)) == pytest.approx(np.std(means), rel=0.12)


def test_a_sample_of_all_items_has_no_error_and_full_power():
    plan = SampledDifferences(VALUES[None, 1:4], ProbabilitySample.of(SIZES[1:4], SIZES[1:4] / 20))
    assert plan.error(plan.population) == 0
    assert plan.power(plan.population, 1e-6) == 1
    assert plan.detectable(plan.population) == 0


def test_a_sample_without_an_interval_is_not_planned_from():
    with pytest.raises(DataError, match="not drawn in proportion"):
        SampledDifferences(VALUES[None], ProbabilitySample.of(SIZES, np.full(5, 0.5)))
