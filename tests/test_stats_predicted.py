"""Means and totals from few measured values and many predictions: by hand, against SciPy, by enumeration, by simulation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from cranfield.base.errors import DataError
from cranfield.stats.prediction_powered import calibrated_total, effective_units, predicted_mean, predicted_total
from estimate_worlds import FEW_DIFFER, WORLDS, outcomes, textbook
from estimate_worlds import SIZES as estimate_sizes

TRUE, SPREAD, BIAS = 0.4, 0.2, 0.1
SIZES = ((20, 100), (30, 250), (50, 250))  # measured units, and all


def drawn(n, size, correlation, trials, seed=0, skewed=False):
    """True values of n units and predictions of all, which are too high by the bias."""
    rng = np.random.default_rng(seed)
    shape = trials, size
    y = rng.beta(0.8, 1.2, shape) if skewed else TRUE + SPREAD * rng.standard_normal(shape)
    noise = np.sqrt(1 - correlation**2) * y.std() * rng.standard_normal(shape)
    f = TRUE + BIAS + correlation * (y - TRUE) + noise
    return y, f, n


def covered(estimate, truth=TRUE):
    low, high = estimate.interval(0.95)
    return float(((low <= truth) & (truth <= high)).mean())


def test_the_slope_and_the_mean_of_an_example_worked_by_hand():
    found = predicted_mean([0.0, 2.0, 4.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0])
    assert float(found.both.value) == 3.0  # 2 + 2 · (2.5 − 2)
    assert float(found.measured.value) == 2.0
    assert float(found.predicted.value) == 2.5


def test_the_value_against_scipy_and_the_error_against_leaving_out_each_unit():
    rng = np.random.default_rng(3)
    y, f = rng.normal(size=(2, 12))
    every = np.r_[rng.normal(size=60), f]
    line = stats.linregress(f - every.mean(), y)
    estimate = predicted_mean(y, f, every).both
    assert float(estimate.value) == pytest.approx(line.intercept)

    def without(measured, others):
        whole = every[[*others, *(60 + measured)]]
        return stats.linregress(f[measured] - whole.mean(), y[measured]).intercept

    units, others = np.arange(12), np.arange(60)
    ours = [without(np.delete(units, i), others) for i in units]
    theirs = [without(units, np.delete(others, i)) for i in others]
    variance = sum((len(each) - 1) * np.var(each) for each in (ours, theirs))
    assert float(estimate.error) == pytest.approx(np.sqrt(variance))


def test_effective_units_are_those_away_from_the_median():
    zeros = np.zeros(17)
    assert effective_units(np.r_[zeros, 1, 1, -1]) == pytest.approx(3)
    assert effective_units(np.r_[zeros, 3, 1, 0]) == pytest.approx(1.6)  # 4² / 10
    assert effective_units(zeros) == 0
    assert effective_units(zeros + 0.1 + np.r_[1e-12, zeros[1:]]) == 0  # rounding
    many = effective_units(np.random.default_rng(0).normal(size=(200, 50)))
    assert np.mean(many) == pytest.approx(50 * 2 / np.pi, rel=0.03)


def test_predictions_that_vary_on_four_of_twenty_units_are_not_used_and_on_five_are():
    y = np.linspace(0, 1, 20)
    for number in (4, 5):
        f = np.r_[np.zeros(20 - number), np.ones(number)]
        estimate = predicted_mean(y, f, np.r_[f, np.ones(30)])
        assert bool(estimate.used) is (number == 5)
        assert (float(estimate.both.value) == float(estimate.measured.value)) is (number == 4)
    assert float(predicted_mean(y, np.eye(20)[0], np.r_[np.eye(20)[0], np.ones(30)]).worth) == pytest.approx(20)


def test_one_unit_that_differs_gives_no_interval_and_two_give_a_wide_one():
    """With one nonzero value among 20 the textbook's interval is as sure as with 20."""
    for number, there in ((1, False), (2, True)):
        y = np.r_[np.zeros(20 - number), np.ones(number)]
        estimate = predicted_mean(y, y, np.r_[y, np.zeros(30)]).both
        assert bool(np.isfinite(estimate.error)) is there
    assert float(estimate.df) < 3


def test_a_line_without_a_miss_on_few_units_keeps_an_error():
    """Five wins of five that the model foresaw do not prove that it foresees every win."""
    y = np.r_[np.zeros(25), np.ones(5)]
    estimate = predicted_mean(y, y, np.r_[y, np.tile([0, 0, 0, 1.0], 50)])
    assert bool(estimate.used)
    assert estimate.both.error >= 0.7 * estimate.measured.error
    half = textbook(y, y, np.r_[y, np.tile([0, 0, 0, 1.0], 50)])[1]
    assert half < float(estimate.both.interval(0.95)[1] - estimate.both.value) / 2


def test_no_estimate_is_worth_more_units_than_there_are():
    """The ratio of two variances, both estimated, passes 250 of 250."""
    rng = np.random.default_rng(5)
    y = rng.normal(size=(500, 250))
    f = y + 0.02 * rng.normal(size=y.shape)
    worth = predicted_mean(y[:, :50], f[:, :50], f).worth
    ratio = (
        50
        * y[:, :50].var(axis=-1, ddof=1)
        / 50
        / np.square(textbook(y[:, :50], f[:, :50], f)[1] / stats.t.ppf(0.975, 48))
    )
    assert ratio.max() > 292
    assert worth.max() == 250
    assert 200 < np.median(worth) <= 250


def by_both(y, f, every):
    estimate = predicted_mean(y, f, every).both
    low, high = estimate.interval(0.95)
    return estimate.value, (high - low) / 2


def check_bars(group, n, size, trials, seed):
    """False claims in at most 6 %, coverage of at least 93 %, and 1.15 times the textbook's width where all topics differ."""
    for name, world in WORLDS[group].items():
        ours, old = outcomes(world, n, size, trials, seed, by_both)
        with_interval = trials * (1 - ours.none)
        spare = 0 if trials >= 4000 else 3 * np.sqrt(0.06 * 0.94 / with_interval)
        assert ours.covered >= 0.93 - spare, (name, ours)
        assert world.truth or ours.claimed <= 0.06 + spare, (name, ours)
        assert group != "healthy" or (ours.none == 0 and ours.width <= 1.15 * old.width), (name, ours, old)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "size"), estimate_sizes)
@pytest.mark.parametrize("group", WORLDS)
def test_estimates_hold_in_4000_trials_of_each_made_world(group, n, size):
    check_bars(group, n, size, 4000, 24)


@pytest.mark.parametrize("group", WORLDS)
def test_estimates_hold_in_300_trials_of_each_made_world(group):
    for n, size in estimate_sizes:
        check_bars(group, n, size, 300, 25)


def test_the_textbook_claims_differences_that_are_none_where_few_topics_differ():
    old = [outcomes(FEW_DIFFER[f"{name} 10%"], 30, 250, 300, 26, by_both)[1] for name in ("bias", "takes sides")]
    assert min(each.claimed for each in old) > 0.14
    assert max(each.covered for each in old) < 0.86


def test_people_alone_against_scipy():
    y = [0.1, 0.5, 0.4, 0.9]
    found = predicted_mean(y, [0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0])
    assert found.measured.interval(0.95) == pytest.approx(stats.ttest_1samp(y, 0).confidence_interval(0.95))


def test_predictions_shifted_and_stretched_make_no_difference():
    y, f, n = drawn(30, 100, 0.6, 1)
    one, other = (predicted_mean(y[0, :n], p[0, :n], p[0]) for p in (f, 5 - 3 * f))
    assert float(one.both.value) == pytest.approx(float(other.both.value))
    assert float(one.both.error) == pytest.approx(float(other.both.error))


def test_predictions_that_are_all_the_same_leave_the_measured_mean():
    found = predicted_mean([1.0, 2.0, 6.0], [2.0] * 3, [2.0] * 9)
    assert float(found.both.value) == float(found.measured.value) == 3.0


def test_many_samples_at_once_are_each_as_alone():
    y, f, n = drawn(20, 50, 0.6, 4)
    together = predicted_mean(y[:, :n], f[:, :n], f)
    alone = [predicted_mean(y[i, :n], f[i, :n], f[i]) for i in range(4)]
    assert together.both.error.tolist() == pytest.approx([float(each.both.error) for each in alone])


@pytest.mark.parametrize("skewed", [False, True], ids=["normal", "beta"])
@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.9])
@pytest.mark.parametrize(("n", "size"), SIZES)
def test_intervals_of_means_cover_as_they_say_and_those_of_predictions_alone_never(n, size, correlation, skewed):
    y, f, n = drawn(n, size, correlation, 3000, seed=1, skewed=skewed)
    found = predicted_mean(y[:, :n], f[:, :n], f)
    assert 0.935 <= covered(found.both) <= 0.97
    assert 0.935 <= covered(found.measured) <= 0.965
    assert covered(found.predicted) < (0.07 if skewed and size == 100 else 0.01)


def test_good_predictions_are_worth_more_than_twice_the_measured_units_and_noise_nothing():
    for correlation, low, high in ((0.9, 2.5, 3.2), (0.0, 0.95, 1.0)):
        y, f, n = drawn(50, 250, correlation, 3000, seed=2)
        found = predicted_mean(y[:, :n], f[:, :n], f)
        assert low <= float(np.mean(found.worth)) / n <= high
        gained = found.measured.value.var() / found.both.value.var()  # what was really won
        assert gained == pytest.approx(np.mean(found.worth) / n, rel=0.1)


def test_units_chosen_where_predictions_err_most_are_not_covered():
    y, f, n = drawn(50, 250, 0.9, 500, seed=3)
    worst = np.argsort(-np.abs(f - y), axis=1)[:, :n]
    found = predicted_mean(np.take_along_axis(y, worst, 1), np.take_along_axis(f, worst, 1), f)
    assert covered(found.both) < 0.3


def test_totals_and_variances_against_enumeration():
    y, n = np.array([3.0, 1.0, 0.0, 4.0, 2.0, 7.0]), 3
    every = np.array(list(combinations(range(len(y)), n)))
    nothing_known = np.zeros((*every.shape, 1))
    found = calibrated_total(y[every], nothing_known, np.zeros(1), np.full(every.shape, n / len(y)))
    assert found.value.mean() == pytest.approx(y.sum())
    assert np.square(found.error).mean() == pytest.approx(found.value.var())


def test_a_total_of_which_all_is_drawn_is_known():
    found = predicted_total([1, 0, 1], [1, 1, 0], [1, 1, 1], [1, 1, 1], every=[1, 1, 0], weights=[1, 1, 1])
    assert (float(found.both.value), float(found.both.error)) == (2.0, 0.0)


def test_what_is_drawn_for_certain_adds_no_error():
    rng = np.random.default_rng(0)
    y, f = rng.integers(0, 4, (2, 40)).astype(float)
    half, ones = np.full(20, 0.5), np.ones(20)
    alone = predicted_total(y[:20], f[:20], ones, half, every=f[:40], weights=np.ones(40))
    sure = predicted_total(
        np.r_[y[:20], 5, 6], np.r_[f[:20], 0, 0], np.r_[ones, 1, 1], np.r_[half, 1, 1],
        every=np.r_[f[:40], 0, 0], weights=np.ones(42),
    )  # fmt: skip
    assert float(sure.both.value) == pytest.approx(float(alone.both.value) + 11)
    assert float(sure.both.error) == pytest.approx(float(alone.both.error))


def population(seed, topics=50, depth=30):
    """Ranks, true grades and those of a model that grades too high."""
    rng = np.random.default_rng(seed)
    rank = np.tile(np.arange(1, depth + 1), topics)
    grade = rng.binomial(3, 0.6 / (1 + np.exp(0.15 * rank - 0.5)))
    model = np.clip(grade + rng.binomial(2, 0.35, len(rank)) - rng.binomial(1, 0.1, len(rank)), 0, 3)
    return rank, grade, model, rng


def added(measure, rank, grade):
    if measure == "P@10":
        return (rank <= 10) * (grade >= 1) / 10
    return np.where(rank <= 10, grade / np.log2(rank + 1), 0.0)


@pytest.mark.parametrize("measure", ["P@10", "DCG@10"])
@pytest.mark.parametrize("pair", [False, True], ids=["score", "difference"])
@pytest.mark.parametrize("draws", [500, pytest.param(2000, marks=pytest.mark.slow)])
def test_intervals_of_totals_cover_as_they_say_and_the_model_is_far_off(measure, pair, draws):
    rank, grade, model, rng = population(1)
    other = np.concatenate([rng.permutation(30) + 1 for _ in range(50)])
    y, f, w = (
        added(measure, rank, each) - (added(measure, other, each) if pair else 0)
        for each in (grade, model, np.full(len(rank), 3))
    )
    n = int(0.3 * len(rank))
    chosen = np.argsort(rng.random((draws, len(rank))), axis=1)[:, :n]
    found = predicted_total(y[chosen], f[chosen], w[chosen], np.full(n, 0.3), every=f, weights=w)
    assert 0.93 <= covered(found.both, y.sum()) <= 0.97
    assert abs(found.both.value.mean() - y.sum()) < 0.05 * abs(f.sum() - y.sum())
    assert np.mean(found.worth) > 1.1 * n


def test_a_model_that_rarely_errs_is_not_believed_too_much():
    inside = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        counts, size, n = 150, 360, 120  # 50 of those drawn count, and on 4 of them the model errs
        w = (np.arange(size) < counts).astype(float)
        grade = rng.random(size) < 0.85
        y, f = w * grade, w * np.where(grade, True, rng.random(size) < 0.4)
        chosen = np.argsort(rng.random((500, size)), axis=1)[:, :n]
        found = predicted_total(y[chosen], f[chosen], w[chosen], np.full(n, n / size), every=f, weights=w)
        inside.append(covered(found.both, y.sum()))
    assert 0.925 <= np.mean(inside) <= 0.97


@pytest.mark.parametrize("draws", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_unequal_chances_are_covered_as_well(draws):
    rank, grade, model, rng = population(2)
    y, f, w = (added("DCG@10", rank, each) for each in (grade, model, np.full(len(rank), 3)))
    size = 1 / np.log2(rank + 1.0)
    chance = 300 * size / size.sum()
    inside = []
    for _ in range(draws):
        order = rng.permutation(len(rank))
        steps = np.floor(np.r_[0.0, np.cumsum(chance[order])] - rng.random())
        d = order[np.flatnonzero(np.diff(steps))]
        found = predicted_total(y[d], f[d], w[d], chance[d], every=f, weights=w)
        inside.append(covered(found.both, y.sum()))
    assert 0.925 <= np.mean(inside) <= 0.975


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([1.0, 2.0], [1.0, 2.0], [1.0, 2.0, 3.0]), "expected 3 measured units or more, found 2"),
        (([1.0, 2.0, 3.0], [1.0, 2.0], [1.0] * 5), "expected a prediction for each measured unit"),
        (([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0]), "expected a prediction for each measured unit and for all"),
        (([1.0, np.nan, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), "expected finite numbers"),
    ],
)
def test_what_cannot_be_estimated_from_is_refused(arguments, said):
    with pytest.raises(DataError, match=said):
        predicted_mean(*arguments)


@pytest.mark.parametrize("chance", [0.0, 1.5, np.nan])
def test_a_chance_that_is_none_is_refused(chance):
    with pytest.raises(DataError, match="probabilities above 0"):
        predicted_total([1, 0, 1], [1, 0, 1], [1] * 3, [0.5, 0.5, chance], every=[1] * 4, weights=[1] * 4)
