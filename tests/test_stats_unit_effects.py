"""Levels and effects of two arms: published numbers, SciPy, statsmodels and tea-tasting on the same data."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from cranfield.base.errors import DataError
from cranfield.stats.arms import (
    ArmLevel,
    MetricColumn,
    against_0,
    difference,
    doubt,
    level,
    linear_ratio,
    log_ratio,
    present,
)
from cranfield.stats.moments import Moments
from cranfield.stats.proportions import ProportionDifference, adjusted_wald, proportion, wilson
from cranfield.stats.sample_ratio import chi_square_p, exact_p
from cranfield.stats.sequential import GroupSequentialRule, Sequence
from cranfield.stats.tests_by_name import TESTS
from cranfield.stats.unit_effects import (
    DistinctRows,
    bootstrap,
    mann_whitney,
    quantile,
    superiority,
)

if TYPE_CHECKING:
    from types import ModuleType

Z = 1.959963984540054


@pytest.fixture(scope="module")
def tea() -> ModuleType:
    """tea-tasting, which warns of what it imports."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("tea_tasting")


@pytest.fixture(scope="module")
def users(tea):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tea.make_users_data(rng=42, covariates=True)


def told(tea, metric, table):
    """What tea-tasting says of a metric."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tea.Experiment(it=metric).analyze(table)["it"]


def by_arm(table) -> dict[str, Moments]:
    columns = {name: table[name].to_numpy() for name in table.column_names if name not in ("user", "variant")}
    arms = table["variant"].to_numpy()
    return {
        str(arm): Moments.of(**{name: values[arms == arm] for name, values in columns.items()})
        for arm in np.unique(arms)
    }


def ends(effect, level: float = 0.95, **given) -> tuple[float, float]:
    low, high = effect.interval(level, **given)
    return float(low), float(high)


# published


def test_the_published_difference_of_sums():
    a = Moments.from_sums(3407, {"x": 1396.87}, {("x", "x"): 52377.9767})
    b = Moments.from_sums(3461, {"x": 2422.7}, {("x", "x"): 134698.29})
    found = difference(level(a, "x"), level(b, "x"))
    assert float(found.value) == pytest.approx(0.29, abs=5e-5)
    assert ends(found) == pytest.approx((0.04538, 0.53462), abs=5e-6)
    assert float(found.p()) == pytest.approx(0.02016, abs=5e-6)


def test_the_published_confidence_sequence_of_a_relative_difference():
    a, b = proportion(1396, 3000), proportion(2422, 3461)
    found = linear_ratio(a, b)
    assert float(found.value) == pytest.approx(0.50386, abs=5e-6)
    assert ends(found, rule=Sequence(6461 / 5000)) == pytest.approx((0.40098, 0.60675), abs=5e-6)


def test_the_published_orders_per_session(tea):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arms = by_arm(tea.make_users_data(rng=42))
    a, b = (level(arms[arm], MetricColumn("orders", "sessions")) for arm in "01")
    relative = log_ratio(a, b)
    assert float(relative.value) == pytest.approx(0.0877, abs=5e-5)
    assert ends(relative) == pytest.approx((-0.0089, 0.1938), abs=5e-5)
    assert float(difference(a, b).p()) == pytest.approx(0.07624, abs=5e-6)


# tea-tasting, live


@pytest.mark.parametrize(
    ("top", "below", "covariates"),
    [
        ("revenue", None, ()),
        ("orders", "sessions", ()),
        ("revenue", None, ("revenue_covariate", None)),
        ("orders", "sessions", ("orders_covariate", "sessions_covariate")),
        ("revenue", "orders", ("sessions_covariate", None)),
    ],
)
def test_means_ratios_and_cuped_against_tea_tasting(tea, users, top, below, covariates):
    wanted = told(tea, tea.RatioOfMeans(top, below, *covariates), users)
    arms = by_arm(users)
    given = {"covariates": [MetricColumn(*covariates)], "pooled": arms["0"] + arms["1"]} if covariates else {}
    a, b = (level(arms[arm], MetricColumn(top, below), **given) for arm in "01")
    found, relative = difference(a, b), log_ratio(a, b)
    assert (float(a.value), float(b.value)) == pytest.approx((wanted.control, wanted.treatment))
    assert float(found.p()) == pytest.approx(wanted.pvalue)
    assert ends(found) == pytest.approx((wanted.effect_size_ci_lower, wanted.effect_size_ci_upper))
    assert ends(relative) == pytest.approx((wanted.rel_effect_size_ci_lower, wanted.rel_effect_size_ci_upper))


def test_proportions_against_tea_tasting(tea, users):
    """Newcombe's interval is another one than its pooled normal one, but with 4,000 units they are close."""
    import pyarrow as pa

    bought = np.minimum(users["orders"].to_numpy(), 1)
    wanted = told(
        tea, tea.Proportion("it", method="norm", correction=False), users.append_column("it", pa.array(bought))
    )
    arm = users["variant"].to_numpy()
    counts = [number for side in (0, 1) for number in (bought[arm == side].sum(), (arm == side).sum())]
    found = ProportionDifference(*counts)
    assert float(found.value) == pytest.approx(wanted.effect_size)
    assert ends(found) == pytest.approx((wanted.effect_size_ci_lower, wanted.effect_size_ci_upper), abs=2e-4)
    assert float(found.p()) == pytest.approx(wanted.pvalue, rel=0.01)
    relative = log_ratio(proportion(*counts[:2]), proportion(*counts[2:]))
    assert ends(relative) == pytest.approx((wanted.rel_effect_size_ci_lower, wanted.rel_effect_size_ci_upper), abs=2e-3)


def test_the_bootstrap_of_units_against_tea_tasting(tea, users):
    both = ("orders", "sessions")

    def ratio(sample, axis):
        means = np.mean(sample, axis=axis)
        return means[0] / means[1]

    wanted = told(tea, tea.Bootstrap(both, ratio, method="percentile", n_resamples=4000, rng=1), users)
    table = np.column_stack([users[name].to_numpy() for name in both])
    a, b = (DistinctRows.of(table[users["variant"].to_numpy() == side]) for side in (0, 1))
    for relative in (False, True):
        found = bootstrap(a, b, lambda mean: mean[:, 0] / mean[:, 1], np.random.default_rng(2), 4000, relative=relative)
        name = "rel_effect_size" if relative else "effect_size"
        assert float(found.value) == pytest.approx(getattr(wanted, name))
        limits = (getattr(wanted, f"{name}_ci_lower"), getattr(wanted, f"{name}_ci_upper"))
        width = limits[1] - limits[0]
        assert ends(found) == pytest.approx(limits, abs=0.06 * width)


@pytest.mark.parametrize("q", [0.5, 0.9])
def test_quantiles_against_tea_tasting(tea, users, q):
    spent = users.filter(np.asarray(users["revenue"]) > 0)
    wanted = told(tea, tea.Quantile("revenue", q, method="percentile", n_resamples=4000, rng=1), spent)
    a, b = (DistinctRows.of(spent["revenue"].to_numpy()[spent["variant"].to_numpy() == side]) for side in (0, 1))
    found = quantile(a, b, q, np.random.default_rng(2), 4000)
    assert float(found.value) == pytest.approx(wanted.effect_size)
    limits = (wanted.effect_size_ci_lower, wanted.effect_size_ci_upper)
    assert ends(found) == pytest.approx(limits, abs=0.08 * (limits[1] - limits[0]))


def test_the_sample_ratio_against_tea_tasting(tea, users):
    wanted = told(tea, tea.SampleRatio(method="norm", correction=False), users)
    counts = [(users["variant"].to_numpy() == side).sum() for side in (0, 1)]
    assert float(chi_square_p(counts, [0.5, 0.5])) == pytest.approx(wanted.pvalue)


# SciPy and statsmodels


def test_the_difference_of_means_against_scipy():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, 30), rng.normal(0.5, 2, 20)
    found = difference(*(level(Moments.of(x=x), "x") for x in (a, b)))
    wanted = scipy.stats.ttest_ind(b, a, equal_var=False)
    assert float(found.p()) == pytest.approx(wanted.pvalue)
    assert ends(found, 0.9) == pytest.approx(tuple(wanted.confidence_interval(0.9)))
    for side in ("less", "greater"):
        one_sided = scipy.stats.ttest_ind(b, a, equal_var=False, alternative=side).pvalue
        assert float(found.p(alternative=side)) == pytest.approx(one_sided)


def test_one_level_against_0_against_scipy():
    x = np.random.default_rng(3).normal(0.3, 1, 25)
    found = against_0(level(Moments.of(x=x), "x"))
    wanted = scipy.stats.ttest_1samp(x, 0)
    assert float(found.p()) == pytest.approx(wanted.pvalue)
    assert ends(found) == pytest.approx(tuple(wanted.confidence_interval(0.95)))


def test_a_ratio_s_error_against_the_jackknife():
    rng = np.random.default_rng(1)
    views = rng.poisson(5, 400) + 1.0
    clicks = rng.binomial(views.astype(int), rng.beta(2, 5, 400))
    found = level(Moments.of(clicks=clicks, views=views), MetricColumn("clicks", "views"))
    without = (clicks.sum() - clicks) / (views.sum() - views)
    jackknife = math.sqrt(399 / 400 * np.square(without - without.mean()).sum())
    assert float(found.value) == pytest.approx(clicks.sum() / views.sum())
    assert float(found.error) == pytest.approx(jackknife, rel=0.01)


def test_the_linear_ratio_by_hand():
    a, b = (ArmLevel(np.array(v), np.array(e), np.array(np.inf)) for v, e in ((2.0, 0.1), (3.0, 0.2)))
    found = linear_ratio(a, b)
    assert float(found.value) == 0.5
    assert float(found.error) == pytest.approx(math.sqrt(0.2**2 / 4 + 9 * 0.1**2 / 16))
    assert float(log_ratio(a, b).error) == pytest.approx(math.sqrt(0.05**2 + (0.2 / 3) ** 2))


@pytest.mark.parametrize("counts", [(30, 100, 45, 100), (0, 20, 3, 25), (50, 50, 49, 50), (0, 10, 0, 10)])
def test_newcombe_against_statsmodels(counts):
    x, n, y, m = counts
    wanted = confint_proportions_2indep(y, m, x, n, method="newcomb", compare="diff")
    assert ends(ProportionDifference(x, n, y, m)) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(("count", "n"), [(0, 10), (3, 10), (10, 10), (450, 1000)])
def test_intervals_of_one_proportion_against_statsmodels(count, n):
    assert wilson(count, n, Z) == pytest.approx(proportion_confint(count, n, method="wilson"), abs=1e-12)
    wanted = proportion_confint(count, n, method="agresti_coull")
    assert adjusted_wald(count, n, Z) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("size", [4, 15, 60])
def test_rank_sums_of_counted_values_are_those_of_the_units(size):
    rng = np.random.default_rng(size)
    a, b = rng.integers(0, 6, size).astype(float), rng.integers(0, 7, size + 3).astype(float)
    values = np.arange(8.0)
    counted = [DistinctRows.of(values, [(each == value).sum() for value in values]) for each in (a, b)]
    wanted = TESTS["mann-whitney"](a, b, rng=np.random.default_rng(0)).p
    assert mann_whitney(*counted) == pytest.approx(wanted)
    assert mann_whitney(DistinctRows.of(a), DistinctRows.of(b)) == pytest.approx(wanted)


def test_superiority_against_scipy_s_brunner_munzel():
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 9, 40), rng.integers(1, 11, 55)
    found = superiority(DistinctRows.of(a), DistinctRows.of(b))
    wanted = scipy.stats.brunnermunzel(a, b)
    assert float(found.centre / found.error) == pytest.approx(wanted.statistic)
    assert float(found.p()) == pytest.approx(wanted.pvalue)
    above = (b[:, None] > a).mean() + (b[:, None] == a).mean() / 2
    assert float(found.value) == pytest.approx(above - 0.5)


def test_drawn_quantiles_are_distributed_as_those_of_real_resamples():
    rng = np.random.default_rng(2)
    values = rng.exponential(1, 41)
    real = np.quantile(rng.choice(values, (20_000, 41)), 0.8, axis=1)
    drawn = quantile(DistinctRows.of([0.0, 0.0]), DistinctRows.of(values), 0.8, rng, 20_000).resampled
    assert float(quantile(DistinctRows.of([0.0, 0.0]), DistinctRows.of(values), 0.8, rng).value) == np.quantile(
        values, 0.8
    )
    for chance in (0.025, 0.25, 0.5, 0.75, 0.975):
        assert np.mean(drawn <= np.quantile(real, chance)) == pytest.approx(
            np.mean(real <= np.quantile(real, chance)), abs=0.015
        )


def test_quantiles_of_counted_values_are_those_of_the_units():
    values, counts = [1.0, 4.0, 9.0], [5, 3, 2]
    expanded = np.repeat(values, counts)
    for q in (0.1, 0.5, 0.77, 0.95):
        found = quantile(DistinctRows.of([0.0, 0.0]), DistinctRows.of(values, counts), q, np.random.default_rng(0), 50)
        assert float(found.value) == pytest.approx(np.quantile(expanded, q))


def test_counted_rows_and_units_give_the_same_bootstrap():
    """Few distinct rows are drawn by their counts, many one by one: two ways to the same distribution."""
    rng = np.random.default_rng(4)
    few = rng.integers(0, 3, 500).astype(float)
    many = few + 1e-9 * np.arange(500)
    base = DistinctRows.of([0.0, 0.0])
    spreads = [
        bootstrap(base, DistinctRows.of(x), lambda mean: mean[:, 0], rng, 4000).resampled.std() for x in (few, many)
    ]
    assert spreads == pytest.approx([few.std() / math.sqrt(500)] * 2, rel=0.05)


# covariates


def test_a_covariate_takes_out_what_it_explains():
    rng = np.random.default_rng(6)
    x = rng.normal(10, 3, (2, 2000))
    y = x + rng.normal(0, 1, (2, 2000)) + np.array([[0.0], [0.1]])
    a, b = (Moments.of(x=x[i], y=y[i]) for i in (0, 1))
    plain, adjusted = (difference(level(a, "y", own, a + b), level(b, "y", own, a + b)) for own in ((), ("x",)))
    assert float(adjusted.error) == pytest.approx(math.sqrt(2 / 2000), rel=0.05)
    assert float(plain.error) == pytest.approx(math.sqrt(20 / 2000), rel=0.05)


def test_cuped_by_hand():
    a, b = Moments.of(x=[1.0, 2.0, 3.0], y=[1.0, 3.0, 5.0]), Moments.of(x=[2.0, 3.0, 4.0], y=[4.0, 6.0, 8.0])
    found = difference(*(level(arm, "y", ["x"], a + b) for arm in (a, b)))
    x, y = np.array([1, 2, 3, 2, 3, 4.0]), np.array([1, 3, 5, 4, 6, 8.0])
    theta = np.cov(x, y)[0, 1] / x.var(ddof=1)
    assert float(found.value) == pytest.approx(3 - theta * 1)


def test_units_without_a_covariate_lend_theirs_by_being_marked():
    """Half of the units are new; the rest explain as much as they would alone, and the level is right."""
    rng = np.random.default_rng(7)
    x = rng.normal(10, 3, (2, 4000))
    y = x + rng.normal(0, 1, (2, 4000))
    seen = np.where(rng.random((2, 4000)) < 0.5, x, np.nan)
    filled, there = present(seen)
    a, b = (Moments.of(x=filled[i], there=there[i], y=y[i]) for i in (0, 1))
    found = difference(*(level(arm, "y", ["x", "there"], a + b) for arm in (a, b)))
    expected = math.sqrt((0.5 * 1 + 0.5 * 10) * 2 / 4000)  # those with a covariate keep 1, those without 10
    assert float(found.error) == pytest.approx(expected, rel=0.05)
    naive = difference(*(level(arm, "y", ["x"], a + b) for arm in (a, b)))
    assert float(naive.error) > 1.2 * float(found.error)  # 0 for missing, unmarked, explains little


def test_a_covariate_that_does_not_vary_changes_nothing():
    a, b = Moments.of(x=[5.0] * 3, y=[1.0, 2.0, 4.0]), Moments.of(x=[5.0] * 3, y=[2.0, 4.0, 6.0])
    one, other = (difference(*(level(arm, "y", own, a + b) for arm in (a, b))) for own in ((), ("x",)))
    assert float(one.p()) == pytest.approx(float(other.p()))


# rules


@pytest.mark.parametrize(
    "rule", [GroupSequentialRule((0.2, 0.45)), GroupSequentialRule((0.5, 1.0), "pocock"), Sequence(0.4), Sequence(1.3)]
)
def test_an_interval_leaves_out_0_exactly_where_p_is_below_its_level(rule):
    for z in (1.5, 2.2, 2.9, 3.6, 5.0):
        for effect in (
            difference(
                *(ArmLevel(np.array(v), np.array(0.1), np.array(50.0)) for v in (1.0, 1.0 + z * 0.1 * math.sqrt(2)))
            ),
            ProportionDifference(100, 1000, 100 + round(13.4 * z), 1000),
        ):
            p = float(effect.p(rule))
            for level_ in (0.9, 0.99):
                assert (ends(effect, level_, rule=rule)[0] > 0) == (p < 1 - level_)


def test_an_interval_widens_the_more_often_one_may_look():
    effect = difference(*(ArmLevel(np.array(v), np.array(0.1), np.array(np.inf)) for v in (1.0, 1.2)))
    widths = [
        np.ptp(ends(effect, rule=rule))
        for rule in (GroupSequentialRule((1.0,)), GroupSequentialRule((0.5, 1.0)), Sequence(1.0))
    ]
    assert widths[0] == pytest.approx(2 * Z * 0.1 * math.sqrt(2))
    assert widths[0] < widths[1] < widths[2]


def test_an_open_end_is_open():
    effect = difference(*(ArmLevel(np.array(v), np.array(0.1), np.array(9.0)) for v in (1.0, 1.2)))
    assert effect.limits((0.05, 0.0))[1] == np.inf
    assert effect.limits((0.0, 0.05))[0] == -np.inf
    shares = ProportionDifference(3, 10, 5, 10)
    assert shares.limits((0.05, 0.0))[1] == 1
    assert shares.limits((0.0, 0.05))[0] == -1
    drawn = bootstrap(
        DistinctRows.of([0.0, 1.0]), DistinctRows.of([1.0, 2.0]), lambda m: m[:, 0], np.random.default_rng(0)
    )
    assert drawn.limits((0.05, 0.0))[1] == np.inf


def test_non_inferiority_is_a_one_sided_test_against_the_margin():
    effect = difference(*(ArmLevel(np.array(v), np.array(0.1), np.array(np.inf)) for v in (1.0, 0.95)))
    margin = 0.4
    p = float(effect.p(alternative="greater", null=-margin))
    assert p == pytest.approx(scipy.stats.norm.sf((-0.05 + margin) / (0.1 * math.sqrt(2))))
    assert (effect.limits((0.05, 0.0))[0] > -margin) == (p < 0.05)


def test_thin_tails_of_a_bootstrap_come_from_its_standard_deviation():
    rng = np.random.default_rng(0)
    a, b = DistinctRows.of(rng.normal(0, 1, 200)), DistinctRows.of(rng.normal(2, 1, 200))
    found = bootstrap(a, b, lambda mean: mean[:, 0], rng, 1000)
    assert float(found.p()) < 1e-6
    for rule in (GroupSequentialRule((0.5,)), Sequence(0.5)):
        assert ends(found, rule=rule) == pytest.approx(ends(found.normal, rule=rule))
    assert ends(found, 0.9999) == pytest.approx(ends(found.normal, 0.9999))


# what cannot be had


def test_why_two_levels_cannot_be_compared_is_said():
    good = level(Moments.of(x=[1.0, 2.0], z=[0.0, 0.0]), "x")
    assert doubt(good, good) == ""
    assert doubt(good, level(Moments.of(x=[]), "x")) == "the second arm holds no units"
    assert doubt(level(Moments.of(x=[1.0]), "x"), good) == "the first arm holds one unit only"
    flat = level(Moments.of(x=[3.0, 3.0]), "x")
    assert "no spread" in doubt(flat, flat)
    rounded, spread = (ArmLevel(np.array(9.0), np.array(error), np.array(9.0)) for error in (1e-10, 1e-6))
    assert "no spread" in doubt(rounded, rounded)
    assert doubt(rounded, spread) == ""
    assert doubt(flat, good) == ""
    nowhere = level(Moments.of(x=[1.0, 2.0], z=[0.0, 0.0]), MetricColumn("x", "z"))
    assert doubt(good, nowhere) == "the second arm has no level: its denominator is 0"


def test_a_relative_effect_of_a_level_at_or_below_0_does_not_exist():
    a, b = (ArmLevel(np.array(v), np.array(0.1), np.array(9.0)) for v in (-1.0, 1.0))
    assert math.isnan(float(log_ratio(a, b).value))
    zero = ArmLevel(np.array(0.0), np.array(0.1), np.array(9.0))
    assert math.isnan(float(linear_ratio(zero, b).value))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: level(Moments.of(x=[1.0, 2.0]), "x", ["x"]), "pooled"),
        (lambda: level(Moments.of(x=[1.0, 2.0]), "y"), "a column of x"),
        (lambda: proportion(5, 4), "found 5 of 4"),
        (lambda: ProportionDifference(-1, 4, 1, 4), "found -1 of 4"),
        (lambda: DistinctRows.of([1.0]), "two units or more"),
        (lambda: DistinctRows.of([1.0, 2.0], [1.5, 2]), "whole counts"),
        (lambda: DistinctRows.of([1.0, 2.0], [1]), "a row and a count"),
        (lambda: DistinctRows.of([1.0, float("nan")]), "finite values"),
        (lambda: DistinctRows.of([[1.0, 2.0], [3.0, 4.0]]).values, "one value a unit, found 2"),
        (
            lambda: quantile(DistinctRows.of([1.0, 2.0]), DistinctRows.of([1.0, 2.0]), 1.0, np.random.default_rng(0)),
            "q must lie",
        ),
        (
            lambda: bootstrap(
                DistinctRows.of([0.0, 1.0]),
                DistinctRows.of([1.0, 1.0]),
                lambda m: m[:, 0],
                np.random.default_rng(0),
                relative=True,
            ),
            "a denominator is 0",
        ),
        (lambda: difference(*[proportion(1, 2)] * 2).p(alternative="up"), "alternative"),
        (lambda: difference(*[proportion(1, 2)] * 2).interval(1.0), "level must lie"),
    ],
)
def test_what_makes_no_sense_is_refused(make, said):
    with pytest.raises(DataError, match=said):
        make()


@pytest.mark.parametrize(
    ("counts", "share"), [((9, 1), 0.5), ((0, 12), 0.5), ((3, 3), 0.5), ((0, 1), 0.99), ((1, 4), 0.3)]
)
def test_few_counts_have_their_shares_by_twice_the_lesser_tail_of_scipys_binomial(counts, share):
    tails = [scipy.stats.binomtest(counts[0], sum(counts), share, each).pvalue for each in ("less", "greater")]
    assert exact_p(counts, [share, 1 - share]) == pytest.approx(min(1.0, 2 * min(tails)))


def test_few_counts_of_three_arms_err_at_most_as_often_as_they_say():
    rng, shares = np.random.default_rng(1), [0.6, 0.3, 0.1]
    assert np.mean([exact_p(rng.multinomial(6, shares), shares) < 0.05 for _ in range(2_000)]) <= 0.06
