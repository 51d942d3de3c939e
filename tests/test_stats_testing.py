"""What every test of two samples promises, for each member of the registry."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from cranfield.base.errors import DataError
from cranfield.stats import tests_by_name
from cranfield.stats.tests_by_name import TESTS
from cranfield.stats.two_sample_test import ALTERNATIVES, Prospect, SignificanceSettings

NAMES = list(TESTS)
WITH_P = [name for name in NAMES if not TESTS[name].bayesian]


def two(name: str, seed: int = 0, n: int = 20, shift: float = 0.08) -> tuple[np.ndarray, np.ndarray]:
    """Two samples that differ a little, of the kind that the test takes."""
    rng = np.random.default_rng(seed)
    a = rng.random(n)
    b = a + rng.normal(shift, 0.15, n)
    return (np.where(a > 0.6, 1.0, 0.0), np.where(b > 0.4, 1.0, 0.0)) if TESTS[name].binary else (a, b)


def ask(name: str, a, b, seed: int = 1, **options):
    return TESTS[name](a, b, rng=np.random.default_rng(seed), **{"resamples": 2000, **options})


def same(one: float, other: float) -> bool:
    return one == pytest.approx(other, rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("name", WITH_P)
def test_p_lies_between_0_and_1_and_is_never_0(name, alternative):
    for seed in range(10):
        outcome = ask(name, *two(name, seed), alternative=alternative)
        assert 0 < outcome.p <= 1
        assert outcome.test == name
        assert outcome.reason == ""


@pytest.mark.parametrize("name", [name for name in NAMES if TESTS[name].bayesian])
def test_a_bayesian_analysis_says_why_it_gives_no_p_and_its_probabilities_sum_to_1(name):
    outcome = ask(name, *two(name), rope=0.02)
    assert math.isnan(outcome.p)
    assert outcome.reason == "a Bayesian analysis gives probabilities, not a p-value"
    assert sum(outcome.extra.values()) == pytest.approx(1)
    assert list(outcome.extra) == ["P(better)", "P(rope)", "P(worse)"]


@pytest.mark.parametrize("name", NAMES)
def test_swapping_the_samples_mirrors_everything(name):
    a, b = two(name)
    near = 0.03 if TESTS[name].sampled and not TESTS[name].paired else 1e-9  # other values are drawn into b
    forth, back = ask(name, a, b), ask(name, b, a)
    assert forth.p == pytest.approx(back.p, abs=near, nan_ok=True)
    assert forth.low == pytest.approx(-back.high, nan_ok=True)
    assert forth.high == pytest.approx(-back.low, nan_ok=True)
    less, greater = ask(name, a, b, alternative="less"), ask(name, b, a, alternative="greater")
    assert less.p == pytest.approx(greater.p, abs=near, nan_ok=True)


@pytest.mark.parametrize("name", WITH_P)
def test_greater_means_that_b_is_greater(name):
    a, b = two(name, shift=0.2)
    assert ask(name, a, b, alternative="greater").p < 0.1 < 0.9 < ask(name, a, b, alternative="less").p


@pytest.mark.parametrize("name", [name for name in NAMES if not TESTS[name].binary])
def test_a_constant_added_to_both_changes_nothing(name):
    a, b = two(name)
    here, there = ask(name, a, b), ask(name, a + 7.3, b + 7.3)
    assert (here.p, here.low, here.high) == pytest.approx((there.p, there.low, there.high), abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("name", [name for name in NAMES if not TESTS[name].binary])
def test_another_unit_changes_no_p(name):
    a, b = two(name)
    here, there = ask(name, a, b), ask(name, 1000 * a, 1000 * b)
    assert same(here.p, there.p)
    assert (1000 * here.low, 1000 * here.high) == pytest.approx((there.low, there.high), nan_ok=True)


@pytest.mark.parametrize("name", NAMES)
def test_one_seed_gives_one_answer(name):
    a, b = two(name, n=30)
    once, again, other = ask(name, a, b, 3), ask(name, a, b, 3), ask(name, a, b, 4)
    assert str(once) == str(again)
    assert (str(once) != str(other)) == TESTS[name].sampled


@pytest.mark.parametrize("name", NAMES)
def test_a_row_of_a_table_gives_what_it_gives_alone(name):
    pairs = [two(name, seed) for seed in range(5)]
    a, b = np.array([one for one, _ in pairs]), np.array([other for _, other in pairs])
    together = TESTS[name].many(a, b, resamples=500, rng=np.random.default_rng(5))
    for row, outcome in enumerate(together):
        alone = ask(name, a[row], b[row], 5, resamples=500)
        assert same(alone.p, outcome.p)
        assert (alone.low, alone.high) == pytest.approx((outcome.low, outcome.high), nan_ok=True)


@pytest.mark.parametrize("wild", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", NAMES)
def test_a_value_that_is_no_number_is_refused_and_spoils_no_other_row(name, wild):
    a, b = two(name)
    spoilt = b.copy()
    spoilt[3] = wild
    bad, good = TESTS[name].many([a, a], [spoilt, b], resamples=500, rng=np.random.default_rng(1))
    assert math.isnan(bad.p)
    assert bad.reason == "1 value is not a finite number"
    assert same(good.p, ask(name, a, b, resamples=500).p)


@pytest.mark.parametrize("name", NAMES)
def test_one_pair_or_none_is_no_test(name):
    for n in (0, 1):
        outcome = ask(name, np.ones(n), np.zeros(n))
        assert math.isnan(outcome.p)
        assert outcome.reason.startswith(("one pair", "no pairs", "one value", "no values"))


@pytest.mark.parametrize("name", NAMES)
def test_two_equal_samples_give_p_1_or_none_and_say_so(name):
    x = np.zeros(12) if TESTS[name].binary or not TESTS[name].paired else two(name, n=12)[0]
    outcome = ask(name, x, x.copy())
    assert outcome.p == 1 or (math.isnan(outcome.p) and (TESTS[name].needs_spread or TESTS[name].bayesian))
    assert outcome.reason in (
        "all differences are 0",
        "all values are equal",
        "the values within each sample are equal, so there is no spread to measure a difference against",
    )


@pytest.mark.parametrize("name", [name for name in NAMES if TESTS[name].needs_spread])
def test_differences_without_spread_are_not_called_significant(name):
    a = np.zeros(12) if not TESTS[name].paired else np.arange(12) / 10
    outcome = ask(name, a, a + 0.1)  # but for rounding all differences are the same
    assert math.isnan(outcome.p)
    assert "no spread" in outcome.reason


@pytest.mark.parametrize("name", [name for name in NAMES if TESTS[name].paired])
def test_samples_of_different_lengths_are_no_pairs(name):
    with pytest.raises(DataError, match=r"as many values in b as in a, found 3 and 2"):
        ask(name, [1, 0, 1], [1, 0])


@pytest.mark.parametrize("name", NAMES)
def test_the_interval_leaves_out_0_where_and_only_where_p_is_small(name):
    """The interval that comes with a test is the test turned round; sampled ones may differ at the very edge."""
    for seed in range(30):
        outcome = ask(name, *two(name, seed), level=0.9)
        if math.isnan(outcome.low) or math.isnan(outcome.p) or abs(outcome.p - 0.1) < 0.01:
            continue
        assert (outcome.p < 0.1) == (outcome.low > 0 or outcome.high < 0)
        assert outcome.low < outcome.high


@pytest.mark.parametrize("name", NAMES)
def test_a_one_sided_interval_is_open_on_the_other_side(name):
    a, b = two(name)
    whole, up, down = (
        ask(name, a, b, alternative=one, level=level)
        for one, level in (("two-sided", 0.9), ("greater", 0.95), ("less", 0.95))
    )
    if math.isnan(whole.low):
        pytest.skip("the test has no interval")
    assert (up.low, up.high) == pytest.approx((whole.low, math.inf))
    assert (down.low, down.high) == pytest.approx((-math.inf, whole.high))


@pytest.mark.parametrize("name", NAMES)
def test_few_false_alarms_under_the_null(name):
    """Quick and generous, so that a new test is checked at once; tests/test_calibration.py is the thorough one."""
    rng = np.random.default_rng(11)
    a, b = rng.random((500, 30)), rng.random((500, 30))
    if TESTS[name].binary:
        a, b = (a > 0.5) * 1.0, (b > 0.5) * 1.0
    found = TESTS[name].many(a, b, resamples=999, rng=rng)
    alarms = [o.low > 0 or o.high < 0 if TESTS[name].bayesian else o.p <= 0.1 for o in found]
    least = 0.02 if TESTS[name].discrete or TESTS[name].bayesian else 0.06
    assert least <= np.mean(alarms) <= 0.15


@pytest.mark.parametrize("name", [name for name in WITH_P if TESTS[name].paired and not TESTS[name].binary])
def test_all_pairs_of_columns_are_tested_as_each_alone(name):
    table = np.random.default_rng(2).random((9, 4))
    p, reason = TESTS[name].all_pairs(table, 2000, np.random.default_rng(1))
    assert reason == ""
    assert np.isnan(p.diagonal()).all()
    assert (p == p.T)[~np.eye(4, dtype=bool)].all()
    for one, other in ((0, 1), (1, 3), (2, 3)):
        assert p[one, other] == pytest.approx(ask(name, table[:, one], table[:, other]).p)


@pytest.mark.parametrize("name", NAMES)
def test_the_p_without_an_interval_is_the_same(name):
    a, b = (np.array([two(name, seed, n=12)[side] for seed in range(4)]) for side in (0, 1))
    question = [SignificanceSettings("two-sided", 0.95, 3000, np.random.default_rng(7)) for _ in range(2)]
    whole, quick = TESTS[name].outcomes(a, b, question[0]), TESTS[name].without_interval(a, b, question[1])
    for one, other in zip(whole, quick, strict=True):
        assert (one.p, one.statistic) == pytest.approx((other.p, other.statistic), nan_ok=True)
        assert (one.exact, one.resamples) == (other.exact, other.resamples)


@pytest.mark.parametrize("name", WITH_P)
def test_no_p_is_smaller_than_the_smallest_that_is_said(name):
    a = np.zeros(8)
    b = np.ones(8) if TESTS[name].binary or TESTS[name].by_order else 1 + np.arange(8) / 10
    for alternative, sides in (("two-sided", 2), ("greater", 1)):
        for resamples in (100, 5000):
            outcome = ask(name, a, b, alternative=alternative, resamples=resamples)
            least = TESTS[name].smallest_p(outcome, 8, sides)
            room = 1.5 if name == "bootstrap-bca" else 1 + 1e-12  # its correction reaches a little beyond the draws
            assert 0 <= least <= outcome.p * room
            if name == "randomisation":
                assert outcome.p == (least if outcome.exact else pytest.approx(least, abs=4 / 100))
                assert least == (sides / 2**8 if resamples > 2**8 else 1 / 101)


@pytest.mark.parametrize("name", [name for name in NAMES if TESTS[name].paired and not TESTS[name].binary])
def test_p_for_simulation_is_near_the_test_s_own(name):
    d = np.random.default_rng(5).normal(0.2, 1, (5, 30))
    quick = TESTS[name].simulated_p(d, SignificanceSettings("two-sided", 0.95, 2000, np.random.default_rng(1)))
    own = [outcome.p for outcome in TESTS[name].many(0 * d, d, resamples=2000, rng=np.random.default_rng(2))]
    assert quick == pytest.approx(np.nan_to_num(own, nan=1.0), abs=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_the_power_of_a_test_is_what_it_says_it_is(name):
    prospect = Prospect(effect=0.5, up=0.7, tied=0.0)
    if TESTS[name].power == "formula":
        assert 0.2 < TESTS[name].power_at(20, prospect, 0.05, "two-sided") < 0.8
    else:
        with pytest.raises(DataError, match=f"{name} has no formula for its power"):
            TESTS[name].power_at(20, prospect, 0.05, "two-sided")


@pytest.mark.parametrize("name", NAMES)
def test_a_test_says_what_it_is(name):
    one = TESTS[name]
    assert one.name == name
    assert one.title
    assert one.reference
    assert one.about.endswith(".")
    assert tests_by_name.test(name) is one
    assert all(tests_by_name.test(alias) is one for alias in one.aliases)
    assert tests_by_name.find_test(name) is tests_by_name.any_test(name) is one
    page = one.page()
    assert list(page)[:4] == ["name", "title", "short", "about"]
    assert json.loads(json.dumps(page)) == page


def test_no_two_tests_share_a_name_or_an_alias():
    names = [name for one in TESTS.values() for name in (one.name, *one.aliases)]
    assert len(names) == len(set(names))


def test_an_unknown_test_is_answered_with_the_names_there_are():
    with pytest.raises(DataError, match="no test 'tukey'; there are randomisation, t, wilcoxon"):
        tests_by_name.test("tukey")
    assert tests_by_name.test(" Signed_Rank ").name == "wilcoxon"
    assert tests_by_name.find_test("Tukey").name == "tukey"
    with pytest.raises(DataError, match=r"no test 'magic'; there are randomisation, t, .*, nemenyi$"):
        tests_by_name.find_test("magic")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alternative": "both"}, "alternative must be one of two-sided, less, greater, got 'both'"),
        ({"level": 95}, "level must be between 0 and 1, got 95"),
        ({"resamples": 0}, "resamples must be at least 1, got 0"),
        ({"rope": 0.1}, "t: no parameter 'rope'; it has no parameters"),
    ],
)
def test_a_wrong_option_is_named(options, message):
    with pytest.raises(DataError, match=message):
        ask("t", [1, 2], [2, 4], **options)


@pytest.mark.parametrize("rope", [-1, math.inf, math.nan])
def test_a_region_of_equivalence_that_is_none_is_refused(rope):
    with pytest.raises(DataError, match=f"bayes: rope must be 0 or more, got {rope}"):
        ask("bayes", [1, 2], [2, 4], rope=rope)
    with pytest.raises(DataError, match=f"bayes: rope must be 0 or more, got {rope}"):
        tests_by_name.test(f"bayes(rope={rope})")


def test_a_parameter_may_be_typed_with_the_name():
    a, b = two("bayes")
    typed = tests_by_name.test("bayes(rope=0.05)")(a, b, rng=np.random.default_rng(1), resamples=2000)
    assert typed.extra == ask("bayes", a, b, rope=0.05).extra
    assert typed.extra["P(rope)"] > ask("bayes", a, b).extra["P(rope)"] == 0


def test_tables_in_place_of_samples_are_refused():
    with pytest.raises(DataError, match="expected two sequences of numbers"):
        ask("t", [[1, 2]], [[1, 3]])
    with pytest.raises(DataError, match="expected two tables with the same rows"):
        TESTS["welch"].many([[1, 2]], [[1, 3], [1, 3]], rng=np.random.default_rng(0))


@pytest.mark.parametrize("name", TESTS)
def test_only_a_test_that_draws_needs_a_source_of_chance(name: str) -> None:
    one, other = [0.0, 1, 0, 1, 0, 0, 1, 0], [1.0, 1, 0, 0, 1, 1, 1, 0]
    if TESTS[name].sampled:
        with pytest.raises(DataError, match=rf"{name} draws resamples: pass rng=np.random.default_rng"):
            TESTS[name](one, other)
        return
    with_one = TESTS[name](one, other, rng=np.random.default_rng(5))
    assert repr(TESTS[name](one, other)) == repr(with_one)
