"""Bayesian answers: the probability that the difference is above, within or below a region of practical equivalence.

There is no p-value here, and no null hypothesis. The region of practical equivalence (ROPE) contains the differences
that are too small to matter, from −rope to rope; with a rope of 0 it is empty, and its probability is 0.
"""

from __future__ import annotations

import numpy as np

from cranfield.base.parameters import Real
from cranfield.stats.paired import mean_and_error, t_limits
from cranfield.stats.ties import Floats, differences
from cranfield.stats.two_sample_test import SignificanceSettings, SignificanceValues, Test

NO_P = "a Bayesian analysis gives probabilities, not a p-value"
BLOCK = 1024


def posterior_means(d: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Draws from the posterior of each row's mean: the items weighted by a flat Dirichlet (Rubin, 1981)."""
    answer = np.empty((len(d), draws))
    for start in range(0, draws, BLOCK):
        weights = rng.standard_exponential((min(BLOCK, draws - start), d.shape[1]))
        weights /= weights.sum(axis=1, keepdims=True)
        answer[:, start : start + len(weights)] = d @ weights.T
    return answer


class _Bayesian(Test):
    p_from = "none"
    needs_spread = True
    bayesian = True
    rope = Real(0.0, "the largest difference that does not matter", low=0)


class BayesianBootstrap(_Bayesian):
    """How probable is a mean difference above, within and below the region of practical equivalence?

    Assumes only that the observed values are all possible values. There is no p-value; the interval is credible.
    """

    name = "bayes"
    title = "Bayesian bootstrap"
    reference = "Rubin (1981); Kruschke (2013)"
    aliases = ("bayesian-bootstrap",)
    sampled = True
    too_sure = "few pairs"
    false_alarms = "6 to 11 % with 25 pairs, 26 % where 80 % of them tie, 13 % where 80 % of 50 do"

    def compute(self, a: Floats, b: Floats, question: SignificanceSettings) -> SignificanceValues:
        d = differences(a, b)
        low, high, worse, better = question.in_batches(self._probabilities, d)
        return _figures(d.mean(axis=1), low, high, worse, better, question.resamples)

    def _probabilities(self, d: Floats, question: SignificanceSettings) -> tuple[Floats, Floats, Floats, Floats]:
        draws = posterior_means(d, question.resamples, question.rng)
        below, above = question.tails
        low, high = np.quantile(draws, [below, 1 - above], axis=1)
        return (
            low if below else np.full(len(draws), -np.inf),
            high if above else np.full(len(draws), np.inf),
            (draws < -self.rope).mean(axis=1),
            (draws > self.rope).mean(axis=1),
        )


class BayesianT(_Bayesian):
    """How probable is a mean difference above, within and below the region, if differences are normally distributed?

    The prior is flat, so the posterior of the mean is Student's t. There is no p-value; the credible interval equals the
    interval of the t-test.
    """

    name = "bayes-t"
    title = "Bayesian t-test"
    short = "Bayesian t"
    reference = "Benavoli, Corani, Demšar and Zaffalon (2017)"

    def compute(self, a: Floats, b: Floats, question: SignificanceSettings) -> SignificanceValues:
        from scipy.special import stdtr  # type: ignore[import-untyped, unused-ignore]

        mean, error = mean_and_error(differences(a, b))
        df = a.shape[1] - 1
        low, high = t_limits(mean, error, df, question.tails)
        worse, better = stdtr(df, (-self.rope - mean) / error), stdtr(df, (mean - self.rope) / error)
        return _figures(mean, low, high, worse, better, 0)


def _figures(
    mean: Floats, low: Floats, high: Floats, worse: Floats, better: Floats, resamples: int
) -> SignificanceValues:
    rope = np.clip(1 - worse - better, 0.0, 1.0)
    extra = {"P(better)": better, "P(rope)": rope, "P(worse)": worse}
    return SignificanceValues(np.full(len(mean), np.nan), mean, low, high, resamples == 0, resamples, NO_P, extra)
