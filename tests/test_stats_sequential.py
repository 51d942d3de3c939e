"""Rules for more than one look: published bounds, known closed forms, simulation; and counts against shares."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from scipy.special import betaln, ndtr, ndtri

from cranfield.base.errors import CranfieldError, DataError
from cranfield.stats.arms import EffectEstimate, simultaneous
from cranfield.stats.correction import correct, holm_limits
from cranfield.stats.sample_ratio import anytime_p, anytime_share, chi_square_p, log_evidence, sign_p
from cranfield.stats.sequential import (
    FIXED,
    SCHEDULES,
    SPENDINGS,
    GroupSequentialRule,
    Sequence,
    bounds,
    crossing,
    information,
    schedule,
    spending,
)

FIVE = (0.2, 0.4, 0.6, 0.8, 1.0)
TAIL = 0.025


def paths(walks: int, steps: int, drift: float = 0.0, seed: int = 0) -> np.ndarray:
    """Standardised estimates at evenly spaced looks, one row a walk."""
    rng = np.random.default_rng(seed)
    sums = np.cumsum(rng.normal(drift / steps, 1 / math.sqrt(steps), (walks, steps)), axis=1)
    return sums / np.sqrt(np.arange(1, steps + 1) / steps)


# bounds


def test_obrien_fleming_spending_against_the_published_bounds():
    assert bounds(FIVE).tolist() == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=5e-4)


def test_pocock_and_linear_spending_against_demets_and_lan():
    """Their table of 1994, five even looks, 0.025 on a side."""
    assert bounds(FIVE, "pocock").round(2).tolist() == [2.44, 2.43, 2.41, 2.40, 2.39]
    assert bounds(FIVE, "linear").round(2).tolist() == [2.58, 2.49, 2.41, 2.34, 2.28]


@pytest.mark.parametrize("by", ["obrien-fleming", "pocock", "power(rho=1)", "power(rho=3)"])
@pytest.mark.parametrize("shares", [(1.0,), FIVE, (0.13, 0.5, 0.55, 0.97, 1.0), tuple((k + 1) / 40 for k in range(40))])
def test_bounds_spend_what_is_due_and_all_of_it_by_the_end(by, shares):
    spent = np.cumsum(crossing(shares, bounds(shares, by).tolist()))
    assert spent == pytest.approx(spending(by).spent(np.array(shares), TAIL), abs=1e-7)
    assert spent[-1] == pytest.approx(TAIL, abs=1e-7)


def test_two_looks_against_the_bivariate_normal():
    first, second = bounds([0.3, 1.0], "pocock")
    normal = scipy.stats.multivariate_normal([0, 0], [[1, math.sqrt(0.3)], [math.sqrt(0.3), 1]])
    assert 1 - normal.cdf([first, second]) == pytest.approx(TAIL, abs=1e-5)


def test_a_look_does_not_move_the_bounds_before_it():
    assert bounds([0.2, 0.7])[:1] == pytest.approx(bounds([0.2]))
    extra = bounds([0.2, 0.4, 0.5, 0.6, 0.8, 1.0])
    assert extra[:2] == pytest.approx(bounds(FIVE)[:2])
    assert extra[-1] > bounds(FIVE)[-1] - 1e-9  # one more look costs a little


def test_the_last_look_spends_what_is_left_be_it_early_or_late():
    for shares in ((0.5, 0.9), (0.5, 1.3)):
        spent = crossing(shares, bounds(shares, last=True).tolist()).sum()
        assert spent == pytest.approx(TAIL, abs=1e-7)
    assert bounds([0.5, 0.9], last=True)[-1] < bounds([0.5, 0.9])[-1]


def test_after_all_is_spent_nothing_is_found_any_more():
    assert bounds([0.5, 1.0, 1.5])[-1] == math.inf
    assert GroupSequentialRule((0.5, 1.0, 1.5)).critical(TAIL) == math.inf


def test_a_look_without_new_information_has_the_bound_of_the_one_before():
    found = bounds([0.5, 0.5, 1.0])
    assert found[0] == found[1]
    assert found[2] == pytest.approx(bounds([0.5, 1.0])[1])
    assert crossing([0.5, 0.5, 1.0], found.tolist())[1] == 0


def test_a_look_without_new_information_spends_its_share_by_one_normal_estimate():
    """The estimate stays, so the bound falls to where one look would have it that spends all so far."""
    spend_at = (0.2, 0.4, 0.6, 0.8, 1.0)
    found = bounds([1.0] * 5, spend_at=spend_at)
    assert found == pytest.approx(-ndtri(spending("obf").spent(np.array(spend_at), TAIL)), abs=1e-6)
    assert crossing([1.0] * 5, found.tolist()).cumsum() == pytest.approx(ndtr(-found), abs=1e-9)


def test_a_look_with_hardly_any_new_information_is_no_easier_than_the_bivariate_normal_has_it():
    found = bounds([0.5, 0.5002], "pocock", spend_at=[0.3, 0.6])
    alike = math.sqrt(0.5 / 0.5002)
    crossed = 1 - scipy.stats.multivariate_normal([0, 0], [[1, alike], [alike, 1]]).cdf(found)
    assert 0.97 < crossed / float(spending("pocock").spent(np.array(0.6), TAIL)) <= 1


# what is spent when


RAMPS = {
    "steep": (0.01, 0.03, 0.1, 0.4, 1.0),
    "doubling": tuple(2.0 ** (k - 9) for k in range(10)),
    "more units than planned": (0.5, 1.05, 1.6),
    "fourteen": tuple(1.5 ** (k - 13) for k in range(14)),
}


def by_days(shares):
    return tuple((k + 1) / len(shares) for k in range(len(shares)))


def errs(shares, limits, walks, seed=0):
    """How often a walk whose looks have so much information leaves its bounds."""
    steps = np.diff(shares, prepend=0.0)
    sums = np.cumsum(np.random.default_rng(seed).normal(0, np.sqrt(steps), (walks, len(steps))), axis=1)
    return float((np.abs(sums / np.sqrt(shares)) >= limits).any(axis=1).mean())


@pytest.mark.parametrize("by", ["obrien-fleming", "pocock"])
@pytest.mark.parametrize("shares", RAMPS.values(), ids=RAMPS)
@pytest.mark.parametrize("walks", [20_000, pytest.param(400_000, marks=pytest.mark.slow)])
def test_looks_by_days_err_in_5_percent_however_units_come(shares, by, walks):
    limits = bounds(shares, by, spend_at=by_days(shares))
    assert math.isfinite(limits[-1])
    assert errs(shares, limits, walks) == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / walks))
    assert 2 * crossing(shares, limits.tolist()).sum() == pytest.approx(0.05, abs=1e-6)


def test_days_taken_for_information_err_in_more_than_6_percent_where_units_ramp_up():
    for name in ("doubling", "fourteen"):
        assert errs(RAMPS[name], bounds(by_days(RAMPS[name])), 20_000) > 0.065


def test_a_look_before_the_last_spends_its_planned_share_so_that_the_last_can_decide():
    shares = RAMPS["more units than planned"]
    assert bounds(shares, last=True)[-1] == math.inf  # by units alone, the second look has spent all
    limits = bounds(shares, spend_at=by_days(shares))
    assert limits == pytest.approx([3.710, 2.512, 1.995], abs=5e-4)
    spent = crossing(shares, limits.tolist()).cumsum()
    assert spent == pytest.approx(spending("obf").spent(np.array(by_days(shares)), TAIL), abs=1e-7)
    rules = [schedule("looks(looks=3)").rule(shares[:k], last=k == 3) for k in (1, 2, 3)]  # a method knows its plan
    assert [rule.critical(TAIL) for rule in rules] == pytest.approx(limits)


def test_a_look_that_may_spend_next_to_nothing_has_no_bound_and_says_what_it_may_spend():
    rule = GroupSequentialRule((1.0,), spend_at=(1 / 14,))
    assert rule.critical(TAIL) == math.inf
    assert rule.spends(TAIL) == pytest.approx(2 * ndtr(ndtri(TAIL / 2) * math.sqrt(14)))
    assert rule.tail(np.array([3.0, math.inf])).min() > TAIL  # no estimate is far enough out, not even an endless one
    assert GroupSequentialRule((0.5, 1.0)).spends(TAIL) == pytest.approx(
        TAIL - spending("obf").spent(np.array(0.5), TAIL)
    )


def accumulating(new_units, own, noise):
    """The correlations of ratios at looks, where units that have come go on adding: `own` spread between, `noise` within."""
    looks = np.arange(len(new_units))
    rows = np.maximum(looks - looks[:, None] + 1, 0.0)  # of a unit, by when it came and by look
    total = new_units @ rows
    shared = np.minimum(rows[:, :, None], rows[:, None, :])
    covariance = np.einsum("c,cij->ij", new_units, own * rows[:, :, None] * rows[:, None, :] + noise * shared)
    covariance /= total[:, None] * total
    deviation = np.sqrt(np.diag(covariance))
    return covariance / deviation[:, None] / deviation


@pytest.mark.parametrize(("by", "most"), [("obrien-fleming", 0.0535), ("pocock", 0.0545)])
@pytest.mark.parametrize("new_units", [(1.0, 0, 0, 0, 0), (0.6, 0.2, 0.1, 0.07, 0.03), (0.01, 0.03, 0.1, 0.3, 0.56)])
def test_units_that_come_early_and_go_on_adding_do_not_break_the_level(new_units, by, most):
    """By new units alone, looks at units that all came first would err in up to 10 %."""
    units, times = np.cumsum(new_units), np.arange(1, 6)
    limits = bounds(information(units, times), by, spend_at=by_days(units))
    for own, noise in ((1.0, 0.0), (1.0, 1.0), (1.0, 4.0), (0.0, 1.0)):
        alike = accumulating(np.array(new_units), own, noise) + 1e-10 * np.eye(5)
        z = np.random.default_rng(1).normal(0, 1, (40_000, 5)) @ np.linalg.cholesky(alike).T
        assert (np.abs(z) >= limits).any(axis=1).mean() <= most


def test_crossing_against_simulation():
    for drift in (0.0, 2.0, 3.5):
        crossed = paths(40_000, 5, drift) >= bounds(FIVE)
        first = np.bincount(crossed.argmax(axis=1)[crossed.any(axis=1)], minlength=5) / 40_000
        assert crossing(FIVE, bounds(FIVE).tolist(), drift) == pytest.approx(first, abs=0.008)


def test_one_look_is_the_fixed_test():
    assert GroupSequentialRule((1.0,)).critical(TAIL) == pytest.approx(FIXED.critical(TAIL))
    assert bounds([0.4], "pocock", 0.01, last=True)[0] == pytest.approx(FIXED.critical(0.01))


# rules


@pytest.mark.parametrize(
    "rule",
    [FIXED, GroupSequentialRule((0.2, 0.5)), GroupSequentialRule((0.3, 1.0), "pocock"), Sequence(0.2), Sequence(2.0)],
)
def test_the_tail_of_a_bound_is_the_chance_it_was_made_for(rule):
    for chance in (0.2, 0.025, 0.001):
        assert float(rule.tail(np.array(rule.critical(chance)))) == pytest.approx(chance, rel=1e-4)
    assert rule.tail(np.array([-1.0, 0.0])).min() >= 0.5
    assert rule.critical(0.001) > rule.critical(0.01) > rule.critical(0.2) > 0


def test_the_normal_mixture_against_its_martingale():
    """At the bound, the likelihood mixed over normal effects is 1/α times that of no effect."""
    share, alpha = 0.7, 0.05
    rule = Sequence(share)
    z, spread = rule.critical(alpha / 2), math.sqrt(rule.mixed)  # of the effect, in units of the standard error
    mixed = scipy.stats.norm.pdf(z, 0, math.hypot(1, spread)) / scipy.stats.norm.pdf(z)
    assert mixed == pytest.approx(1 / alpha)


def test_the_sequence_is_tightest_near_the_planned_size():
    def width(share):
        return Sequence(share).critical(TAIL) / math.sqrt(share)

    def relative_to_best(share):
        """Over the width of the sequence that is tuned to this very size."""
        return Sequence(share).critical(TAIL) / Sequence(1.0).critical(TAIL)

    assert width(2.0) < width(1.0) < width(0.5)
    assert min((relative_to_best(share), share) for share in np.geomspace(0.2, 5, 81))[1] == pytest.approx(
        1.0, abs=0.15
    )


@pytest.mark.parametrize(
    ("name", "most"),
    [("fixed", 0.055), ("looks", 0.055), ("looks(looks=3, by=pocock)", 0.055), ("sequence(peeks=100)", 0.03)],
)
def test_a_method_errs_as_seldom_as_it_says(name, most):
    method = schedule(name)
    z = paths(20_000, len(method.shares))
    false = (np.abs(z) >= method.bounds(TAIL)).any(axis=1).mean()
    assert false <= most
    assert 2 * method.detection_chances(0.0, TAIL).sum() == pytest.approx(false, abs=0.006)


def test_naive_peeking_errs_far_more_often():
    assert 0.33 < (np.abs(paths(10_000, 100)) >= FIXED.critical(TAIL)).any(axis=1).mean() < 0.41


def test_units_that_go_on_adding_make_looks_safer():
    """A unit's own level is in every estimate: they are more alike than sums of new units, and err no more often."""
    rng = np.random.default_rng(3)
    own = rng.normal(0, 1, (20_000, 1))
    noise = np.cumsum(rng.normal(0, 1, (20_000, 5)), axis=1) / np.arange(1, 6)
    estimates = own + noise
    z = estimates / np.sqrt(1 + 1 / np.arange(1, 6))
    assert (np.abs(z) >= bounds(FIVE)).any(axis=1).mean() < 0.05


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_method_says_what_it_is_and_ends_at_1(name):
    method = schedule(name)
    assert method.shares[-1] == 1
    assert method.about
    assert len(method.bounds(TAIL)) == len(method.shares)
    assert method.rule(method.shares, last=True).critical(TAIL) == pytest.approx(method.bounds(TAIL)[-1])


@pytest.mark.parametrize("name", SPENDINGS)
def test_every_spending_function_rises_from_0_to_all(name):
    spent = spending(name).spent(np.linspace(0, 1, 51), TAIL)
    assert (spent[0], spent[-1]) == pytest.approx((0.0, TAIL))
    assert (np.diff(spent) >= 0).all()


def test_looks_may_be_uneven():
    assert schedule("looks(at=0.3/0.6/1)").shares == (0.3, 0.6, 1.0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: bounds([]), "shares of the planned information"),
        (lambda: bounds([0.5, 0.4]), "above 0 and rising"),
        (lambda: bounds([0.0, 1.0]), "above 0 and rising"),
        (lambda: bounds([0.5, 1.0], "guess"), "no spending function 'guess'"),
        (lambda: bounds([1.0], tail=0.7), "at most 0.5, got 0.7"),
        (lambda: bounds([0.5, 1.0], spend_at=[1.0]), "at each of 2 looks, found 1"),
        (lambda: GroupSequentialRule((0.5, 1.0), spend_at=(0.5, 0.4)), "above 0 and rising"),
        (lambda: crossing([1.0], [1.0, 2.0]), "a bound for each of 1 looks"),
        (lambda: GroupSequentialRule((1.0,), "guess"), "no spending function"),
        (lambda: Sequence(0.0), "a share of 0.0"),
        (lambda: Sequence(1.0, alpha=1.0), "alpha must lie"),
        (lambda: schedule("daily"), "no method 'daily'; there are fixed, looks, sequence"),
        (lambda: schedule("looks(at=0.5/x)").shares, "with slashes between"),
        (lambda: schedule("looks(at=0.5/0.9)").shares, "1 as the last share"),
        (lambda: schedule("looks(looks=0)"), "looks"),
        (lambda: spending("power(rho=0)"), "rho"),
    ],
)
def test_what_makes_no_sense_is_refused(make, said):
    with pytest.raises(CranfieldError, match=said):
        make()


# Holm's intervals


def test_holm_s_limits_agree_with_its_tests_and_cover_together():
    rng = np.random.default_rng(0)
    truth = np.array([0.0, 1.0, 3.0])
    missed = 0
    for z in rng.normal(truth, 1, (2_000, 3)):
        p = ndtr(-z)
        low = holm_limits(p, [lambda tail, each=each: each + ndtri(tail) for each in z], 0.05)
        rejected = correct(p, "holm") <= 0.05
        assert ((low >= 0) == rejected).all()
        missed += (low > truth).any()
    assert missed / 2_000 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2_000)


def test_holm_s_limits_by_hand():
    """Two of three rejected: the third has all that is left, and the others are no lower than Bonferroni's, or 0."""
    limits = [lambda tail: 4.0 - 1 / tail / 100, lambda tail: 1.0 - 1 / tail / 50, lambda tail: -1.0 - 1 / tail / 100]
    assert holm_limits([0.001, 0.02, 0.4], limits, 0.05).tolist() == pytest.approx([3.4, 0.0, -1.2])


@pytest.mark.parametrize("times", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_simultaneous_intervals_agree_with_their_p_values_under_each_rule(times):
    rng = np.random.default_rng(1)
    for rule in (FIXED, GroupSequentialRule((0.5, 1.0), "pocock"), Sequence(1.0)):
        for z in rng.normal([-3.5, 0.0, 2.5, 4.5], 1, (times, 4)):
            effects = [EffectEstimate(np.array(each), np.array(1.0), np.array(np.inf)) for each in z]
            for own in simultaneous(effects, 0.05, rule):
                assert (own.low >= 0 or own.high <= 0) == (own.p <= 0.05)
                assert own.low < own.high


def test_one_effect_alone_is_corrected_by_nothing():
    effect = EffectEstimate(np.array(2.0), np.array(1.5), np.array(20.0))
    [own] = simultaneous([effect])
    assert [*own] == pytest.approx([float(each) for each in (*effect.interval(), effect.p())])


def test_simultaneous_intervals_cover_together():
    rng = np.random.default_rng(2)
    truth = np.array([-2.0, 0.0, 0.0, 3.0])
    missed = 0
    for z in rng.normal(truth, 1, (1_000, 4)):
        found = simultaneous([EffectEstimate(np.array(each), np.array(1.0), np.array(np.inf)) for each in z])
        missed += any(not own.low <= true <= own.high for own, true in zip(found, truth, strict=True))
    assert missed / 1_000 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1_000)


# counts against shares


def test_the_sign_test_against_scipy():
    for wins, losses in ((15, 5), (0, 0), (3, 9), (400, 460)):
        wanted = scipy.stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
        assert sign_p(wins, losses) == pytest.approx(wanted)


def test_the_chi_square_against_scipy():
    for counts, shares in (([480, 520], [1, 1]), ([100, 210, 290], [0.2, 0.3, 0.5])):
        wanted = scipy.stats.chisquare(counts, np.array(shares) / sum(shares) * sum(counts)).pvalue
        assert float(chi_square_p(counts, shares)) == pytest.approx(wanted)
    assert chi_square_p([0, 0], [0.5, 0.5]) == 1


def test_the_evidence_of_two_shares_against_the_beta_function():
    a, b, k = 60, 40, 20.0
    wanted = betaln(a + k / 2, b + k / 2) - betaln(k / 2, k / 2) - 100 * math.log(0.5)
    assert float(log_evidence([a, b], [0.5, 0.5], k)) == pytest.approx(wanted)


def test_the_evidence_is_a_martingale():
    """Over all ways that six units may fall, its mean is 1."""
    shares = (0.2, 0.5, 0.3)
    total = 0.0
    for units in itertools.product(range(3), repeat=6):
        counts = np.bincount(units, minlength=3)
        total += math.exp(float(log_evidence(counts, shares, 3.0))) * math.prod(shares[i] for i in units)
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("shares", "replicates"),
    [
        ((0.5, 0.5), 4_000),
        *(pytest.param(s, 20_000, marks=pytest.mark.slow) for s in ((0.5, 0.5), (0.9, 0.1), (0.2, 0.3, 0.5))),
    ],
)
def test_the_sequential_sample_ratio_test_seldom_cries_wolf_at_a_hundred_looks(shares, replicates):
    rng = np.random.default_rng(1)
    counts = np.cumsum(rng.multinomial(200, shares, (replicates, 100)), axis=1)
    alarms = (log_evidence(counts, shares).max(axis=1) >= math.log(1000)).mean()
    assert alarms <= 0.001
    naive = (chi_square_p(counts[:4000], shares) < 0.001).any(axis=1).mean()
    assert 0.008 < naive < 0.022


def test_a_sample_ratio_that_is_wrong_is_found():
    rng = np.random.default_rng(2)
    counts = np.cumsum(rng.multinomial(200, (0.515, 0.485), (500, 100)), axis=1)
    found = log_evidence(counts, (0.5, 0.5)).max(axis=1) >= math.log(1000)
    assert found.mean() > 0.5
    assert anytime_p(counts[int(found.argmax())], (0.5, 0.5)) < 0.001


def test_the_share_of_wins_at_any_time_leaves_out_a_half_where_its_test_says_so():
    for wins, losses in ((60, 40), (70, 30), (80, 41), (5, 0), (0, 12), (1000, 900)):
        low, high = anytime_share(wins, losses)
        assert low <= wins / (wins + losses) <= high
        assert (low > 0.5 or high < 0.5) == (anytime_p([wins, losses], [0.5, 0.5], 20.0) < 0.05)
    assert anytime_share(0, 0) == (0.0, 1.0)


def test_the_share_of_wins_is_covered_at_all_looks():
    rng = np.random.default_rng(4)
    for share in (0.5, 0.6, 0.85):
        wins = np.cumsum(rng.random((4_000, 400)) < share, axis=1)[:, 3::4]
        total = np.arange(4, 401, 4)
        even = log_evidence(np.stack([wins, total - wins], axis=-1), (0.5, 0.5), 20.0) + total * math.log(0.5)
        ruled_out = even - wins * math.log(share) - (total - wins) * math.log(1 - share) >= math.log(20)
        assert ruled_out.any(axis=1).mean() < 0.05


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: chi_square_p([1, 2], [1.0]), "two shares or more"),
        (lambda: chi_square_p([1, 2], [1.0, 0.0]), "each above 0"),
        (lambda: chi_square_p([1, 2, 3], [0.5, 0.5]), "a count for each of 2 shares, found 3"),
        (lambda: chi_square_p([-1, 2], [0.5, 0.5]), "counts of 0 or more"),
        (lambda: log_evidence([1, 2], [0.5, 0.5], 0.0), "concentration must be"),
        (lambda: anytime_p([[5, 5], [4, 9]], [0.5, 0.5]), "grow from look to look"),
        (lambda: anytime_share(1, 2, 1.5), "level must lie"),
    ],
)
def test_counts_that_make_no_sense_are_refused(make, said):
    with pytest.raises(DataError, match=said):
        make()
