"""Posteriors of many quantities: SciPy's distributions and drawn values are the oracles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cranfield.base.errors import DataError
from cranfield.stats.posteriors import FAMILIES, BetaPosteriors, GammaPosteriors

ALPHA, BETA = np.array([0.4, 2.0, 15.0]), np.array([3.0, 2.0, 185.0])


def oracle(family: str):
    return stats.beta(ALPHA, BETA) if family == "beta" else stats.gamma(ALPHA, scale=1 / BETA)


@pytest.mark.parametrize("family", FAMILIES)
def test_mean_variance_and_interval_against_scipy(family: str) -> None:
    own, theirs = FAMILIES[family](ALPHA, BETA), oracle(family)
    np.testing.assert_allclose(own.mean, theirs.mean(), rtol=1e-12)
    np.testing.assert_allclose(own.variance, theirs.var(), rtol=1e-12)
    np.testing.assert_allclose(own.interval(0.9), theirs.ppf([[0.05], [0.95]]), rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_drawn_values_have_the_distribution_of_scipy(family: str) -> None:
    rng, own = np.random.default_rng(1), FAMILIES[family](ALPHA, BETA)
    values = np.array([own.draw(rng) for _ in range(2_000)])
    for column in range(len(ALPHA)):
        frozen = stats.beta(ALPHA[column], BETA[column])
        if family == "gamma":
            frozen = stats.gamma(ALPHA[column], scale=1 / BETA[column])
        assert stats.kstest(values[:, column], frozen.cdf).pvalue > 0.001


def test_a_product_has_the_mean_and_the_variance_of_drawn_products() -> None:
    one, other = BetaPosteriors(ALPHA, BETA), BetaPosteriors(BETA, ALPHA + 1)
    rng, product = np.random.default_rng(2), one.times(other)
    drawn = np.array([one.draw(rng) * other.draw(rng) for _ in range(40_000)])
    np.testing.assert_allclose(product.mean, drawn.mean(axis=0), rtol=0.03)
    np.testing.assert_allclose(product.variance, drawn.var(axis=0), rtol=0.05)


def test_a_redrawn_value_goes_towards_the_prior_as_its_estimate_did() -> None:
    """9 clicks in 10 views with a prior of one click in two: 10/12. A value of .9 would be estimated as 10/12 again."""
    own = BetaPosteriors(np.array([10.0]), np.array([2.0]), np.array([1.0]), np.array([1.0]))
    assert own.estimate(np.array([0.9])).tolist() == pytest.approx([10 / 12])
    rate = GammaPosteriors(np.array([5.0]), np.array([3.0]), np.array([1.0]), np.array([1.0]))
    assert rate.estimate(np.array([2.0])).tolist() == pytest.approx([5 / 3])
    rng = np.random.default_rng(3)
    drawn = np.array([own.redraw(rng)[0] for _ in range(4_000)])
    assert drawn.mean() == pytest.approx((10 / 12 * 10 + 1) / 12, abs=0.01)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_parameters_must_be_above_0(bad: float) -> None:
    with pytest.raises(DataError, match="alpha above 0"):
        BetaPosteriors(np.array([bad]), np.ones(1))
    with pytest.raises(DataError, match="beta above 0"):
        GammaPosteriors(np.ones(1), np.array([bad]))


def test_a_prior_is_a_part_of_the_posterior() -> None:
    with pytest.raises(DataError, match="from 0 to the whole of alpha"):
        BetaPosteriors(np.ones(1), np.ones(1), np.array([2.0]), np.ones(1))
