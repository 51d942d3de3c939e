"""Bayesian answers: how probable it is that the difference is above, within or below a region of no importance.

There is no p-value here, and no null hypothesis. The region of practical equivalence (ROPE) holds the differences
too small to matter, from −rope to rope; with a rope of 0 it is empty, and its probability is 0.
"""

from __future__ import annotations

import numpy as np

from cranfield.stats.outcome import Asked, Floats, Found, Test
from cranfield.stats.paired import t_limits
from cranfield.stats.ties import differences

NO_P = "a Bayesian analysis gives probabilities, not a p-value"
BLOCK = 1024
KEPT = 2**22  # posterior draws kept at once: 32 MB


def posterior_means(d: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Draws from the posterior of each row's mean: the items weighted by a flat Dirichlet (Rubin, 1981)."""
    answer = np.empty((len(d), draws))
    for start in range(0, draws, BLOCK):
        weights = rng.standard_exponential((min(BLOCK, draws - start), d.shape[1]))
        weights /= weights.sum(axis=1, keepdims=True)
        answer[:, start : start + len(weights)] = d @ weights.T
    return answer


def _bootstrap(a: Floats, b: Floats, asked: Asked) -> Found:
    from copy import deepcopy

    d = differences(a, b)
    step = max(1, KEPT // asked.resamples)
    parts = []
    for start in range(0, len(d), step):
        rng = deepcopy(asked.rng) if start + step < len(d) else asked.rng  # every batch sees the same weights
        draws = posterior_means(d[start : start + step], asked.resamples, rng)
        below, above = asked.tails
        parts.append(
            (
                np.quantile(draws, below, axis=1) if below else np.full(len(draws), -np.inf),
                np.quantile(draws, 1 - above, axis=1) if above else np.full(len(draws), np.inf),
                (draws < -asked.rope).mean(axis=1),
                (draws > asked.rope).mean(axis=1),
            )
        )
    low, high, worse, better = (np.concatenate(part) for part in zip(*parts, strict=True))
    return _found(d.mean(axis=1), low, high, worse, better, asked.resamples)


def _t(a: Floats, b: Floats, asked: Asked) -> Found:
    from scipy.special import stdtr  # type: ignore[import-untyped, unused-ignore]

    d = differences(a, b)
    n = d.shape[1]
    mean, error = d.mean(axis=1), d.std(axis=1, ddof=1) / np.sqrt(n)
    low, high = t_limits(mean, error, n - 1, asked.tails)
    worse, better = stdtr(n - 1, (-asked.rope - mean) / error), stdtr(n - 1, (mean - asked.rope) / error)
    return _found(mean, low, high, worse, better, 0)


def _found(mean: Floats, low: Floats, high: Floats, worse: Floats, better: Floats, resamples: int) -> Found:
    rope = np.clip(1 - worse - better, 0.0, 1.0)
    extra = {"P(better)": better, "P(rope)": rope, "P(worse)": worse}
    return Found(np.full(len(mean), np.nan), mean, low, high, resamples == 0, resamples, NO_P, extra)


BAYES = Test(
    "bayes",
    "Bayesian bootstrap",
    "How probable is a mean difference above, within and below the region of practical equivalence? Assumes nothing "
    "of the distribution but that the values seen are the values there are. No p-value; the interval is credible.",
    "Rubin (1981); Kruschke (2013)",
    _bootstrap,
    sampled=True,
    spread=True,
    bayesian=True,
    aliases=("bayesian-bootstrap",),
)
BAYES_T = Test(
    "bayes-t",
    "Bayesian t-test",
    "The same for normally distributed differences and a flat prior: the posterior of the mean is Student's t. No "
    "p-value; the interval is credible, and the same as the t-test's.",
    "Benavoli, Corani, Demšar and Zaffalon (2017)",
    _t,
    spread=True,
    bayesian=True,
)
