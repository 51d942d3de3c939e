"""Bootstraps, plain and Bayesian: against SciPy, against every possible resample, against closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from cranfield.stats import bootstrap
from cranfield.stats.bayes import posterior_means
from cranfield.stats.bootstrap import quantiles, resample_counts
from cranfield.stats.tests_by_name import TESTS
from cranfield.stats.two_sample_test import SignificanceSettings

MANY = 40_000


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def skewed(n: int = 20, seed: int = 1) -> np.ndarray:
    return seeded(seed).exponential(1, n) - 0.6


def ask(name: str, d, resamples: int = MANY, **options):
    return TESTS[name](np.zeros(len(d)), d, resamples=resamples, rng=seeded(), **options)


@pytest.mark.parametrize(("name", "method"), [("bootstrap", "percentile"), ("bootstrap-bca", "BCa")])
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_the_interval_against_scipy(name, method, alternative):
    d = skewed()
    wanted = scipy.stats.bootstrap(
        (d,), np.mean, n_resamples=MANY, method=method, alternative=alternative, rng=seeded(9)
    ).confidence_interval
    outcome = ask(name, d, alternative=alternative)
    assert (outcome.low, outcome.high) == pytest.approx((wanted.low, wanted.high), abs=0.012)
    assert outcome.statistic == pytest.approx(d.mean())


def every_resample(d: np.ndarray) -> np.ndarray:
    return np.array(list(itertools.product(d, repeat=len(d))))


def test_the_percentile_test_against_exact_enumeration_of_resamples():
    d = np.array([-0.5, 0.3, 0.8, 1.1, 2.0])
    means = every_resample(d).mean(axis=1)
    outcome = ask("bootstrap", d)
    assert outcome.p == pytest.approx(2 * min((means <= 1e-12).mean(), (means >= -1e-12).mean()), abs=0.003)
    assert (outcome.low, outcome.high) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.03)


def test_the_studentised_interval_against_exact_enumeration_of_resamples():
    d = np.array([-0.5, 0.3, 0.8, 1.1, 2.0])
    every = every_resample(d)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (every.mean(axis=1) - d.mean()) / (every.std(axis=1, ddof=1) / math.sqrt(5))
    t = np.where(np.isnan(t), 0.0, t)
    error = d.std(ddof=1) / math.sqrt(5)
    outcome = ask("bootstrap-t", d, level=0.8)
    wanted = d.mean() - error * np.quantile(t, [0.9, 0.1])
    assert (outcome.low, outcome.high) == pytest.approx(wanted, abs=0.03)
    found = d.mean() / error
    assert outcome.p == pytest.approx(2 * min((t <= found).mean(), (t >= found).mean()), abs=0.005)


def test_a_bca_interval_leans_to_the_long_tail():
    plain, leaning = ask("bootstrap", skewed()), ask("bootstrap-bca", skewed())
    assert leaning.low > plain.low
    assert leaning.high > plain.high


def test_counts_of_a_resample_sum_to_its_size_and_are_fair():
    counts = np.concatenate(list(resample_counts(7, 3000, seeded())))
    assert counts.shape == (3000, 7)
    assert (counts.sum(axis=1) == 7).all()
    assert counts.mean(axis=0) == pytest.approx(1, abs=0.08)
    assert counts.var(axis=0) == pytest.approx(6 / 7, abs=0.1)


def test_quantiles_of_rows_against_numpy():
    values = seeded(3).random((4, 31))
    tails = np.array([0.0, 0.1, 0.5, 1.0])
    wanted = [np.quantile(row, tail) for row, tail in zip(values, tails, strict=True)]
    assert quantiles(values, tails) == pytest.approx(wanted)
    assert quantiles(np.array([[-np.inf, -np.inf, 1.0]]), np.array([0.25]))[0] == -np.inf


@pytest.mark.parametrize("name", ["bootstrap", "bootstrap-bca", "bootstrap-t", "bayes"])
def test_how_many_rows_are_worked_on_at_once_changes_nothing(name, monkeypatch):
    d = seeded(4).normal(0.2, 1, (12, 15))
    together = TESTS[name].many(0 * d, d, resamples=300, rng=seeded())
    monkeypatch.setattr("cranfield.stats.two_sample_test.KEPT", 1000)
    apart = TESTS[name].many(0 * d, d, resamples=300, rng=seeded())
    for one, other in zip(together, apart, strict=True):
        assert (one.p, one.low, one.high) == pytest.approx((other.p, other.low, other.high), nan_ok=True)


def test_posterior_draws_have_the_moments_of_the_dirichlet():
    """The weights' mean is 1/n each; the variance of the weighted mean is the variance (over n) by n + 1."""
    d = skewed(30)
    draws = posterior_means(d[None], MANY, seeded())[0]
    assert draws.mean() == pytest.approx(d.mean(), abs=0.003)
    assert draws.var() == pytest.approx(d.var() / 31, rel=0.03)


def test_the_bayesian_bootstrap_of_two_values_against_the_closed_form():
    """Of −1 and 2 the mean is 2 − 3u with u uniform: above 0 two times in three."""
    outcome = ask("bayes", np.array([-1.0, 2.0]), rope=0.5)
    assert outcome.extra["P(better)"] == pytest.approx(0.5, abs=0.01)
    assert outcome.extra["P(rope)"] == pytest.approx(1 / 3, abs=0.01)
    assert outcome.extra["P(worse)"] == pytest.approx(1 / 6, abs=0.01)
    assert (outcome.low, outcome.high) == pytest.approx((2 - 3 * 0.975, 2 - 3 * 0.025), abs=0.02)


def test_the_bayesian_t_against_scipy():
    d = skewed(25)
    posterior = scipy.stats.t(24, d.mean(), d.std(ddof=1) / 5)
    outcome = ask("bayes-t", d, rope=0.1)
    assert outcome.extra["P(better)"] == pytest.approx(posterior.sf(0.1))
    assert outcome.extra["P(worse)"] == pytest.approx(posterior.cdf(-0.1))
    assert (outcome.low, outcome.high) == pytest.approx(posterior.interval(0.95))
    assert outcome.extra["P(worse)"] + outcome.extra["P(rope)"] + outcome.extra["P(better)"] == pytest.approx(1)


def test_without_a_rope_nothing_lies_in_it():
    for name in ("bayes", "bayes-t"):
        assert ask(name, skewed(), resamples=1000).extra["P(rope)"] == pytest.approx(0)


def test_several_quantiles_of_rows_against_numpy():
    values = seeded(5).random((4, 31))
    tails = seeded(6).random((4, 3))
    wanted = [np.quantile(row, own) for row, own in zip(values, tails, strict=True)]
    assert quantiles(values, tails) == pytest.approx(np.array(wanted))


def test_bootstraps_of_one_question_draw_once_and_say_what_each_says_alone(monkeypatch):
    drawn = []
    draw = bootstrap.resample_counts
    monkeypatch.setattr(bootstrap, "resample_counts", lambda *given: drawn.append(1) or draw(*given))
    monkeypatch.setattr("cranfield.stats.two_sample_test.KEPT", 5000)
    b = seeded(4).normal(0.2, 1, (12, 15))
    question = SignificanceSettings("two-sided", 0.95, 1000, seeded())
    names = ("bootstrap", "bootstrap-bca", "bootstrap-t")
    together = [TESTS[name].outcomes(0 * b, b, question.asked_again()) for name in names]
    assert len(drawn) == 1
    assert together == [
        TESTS[name].outcomes(0 * b, b, SignificanceSettings("two-sided", 0.95, 1000, seeded())) for name in names
    ]


def test_a_source_of_chance_goes_on_where_the_draws_end():
    a, b, rng, other = np.zeros((3, 9)), seeded(1).random((3, 9)), seeded(), seeded()
    question = SignificanceSettings("two-sided", 0.95, 500, rng)
    TESTS["bootstrap"].outcomes(a, b, question.asked_again())
    TESTS["bootstrap"].outcomes(a, b, question)
    list(resample_counts(9, 500, other))
    assert rng.random() == other.random()
