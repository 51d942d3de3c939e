"""Risk: how much a system hurts single topics compared with a baseline, even if its mean is better.

These measures compare another measure's values topic by topic, and a loss counts 1 + alpha times as much as a gain. The
baseline is a run scored under the same conventions; a topic that it lacks gets the measure's value for an empty list.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.parameters import Real
from cranfield.evaluation.hits import ratio
from cranfield.evaluation.measures.definition import Inner, Measure

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
    from cranfield.evaluation.hits import Hits


def _weighed(difference: Floats, alpha: float) -> Floats:
    """Gains unchanged, losses times 1 + alpha."""
    return np.where(difference < 0, (1 + alpha) * difference, difference)


class _Risk(Measure):
    """Measures of another measure's values in which a loss counts more than a gain."""

    family = "risk"
    at = None
    of = Inner("nDCG@20", "the measure whose values are compared")
    alpha = Real(1, "how much more a loss counts than a gain", low=0)


class URisk(_Risk):
    """Risk-sensitive utility: how much better than the baseline the run is, where a loss counts 1 + alpha times.

    A topic's value is the difference to the baseline, or 1 + alpha times it where that is below 0; their mean is the
    utility. alpha = 0 is the plain difference of means; the web tracks of 2013 and 2014 used alpha = 5.

    Use it to choose between changes to a system whose users would notice a loss more than a gain; not to compare
    systems that share no baseline, because every value depends on it, nor as evidence without a test: lecture 003
    shows that many comparisons turn out significant by chance.

    >>> from cranfield import evaluate
    >>> qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    >>> run, old = {"q1": {"a": 1}, "q2": {"b": 2, "a": 1}}, {"q1": {"b": 2, "a": 1}, "q2": {"a": 1}}
    >>> scores = evaluate(qrels, run, "URisk(of=RR, alpha=1)", baseline=old)
    >>> scores.at().tolist(), scores.mean()
    ([0.5, -1.0], -0.25)
    """

    formula = "1/n · (Σ over topics with Δ ≥ 0 of Δ + (1 + alpha) · Σ over topics with Δ < 0 of Δ),  Δ = run − baseline"
    reference = "Wang, Bennett & Collins-Thompson (2012), Robust ranking models via risk-sensitive optimization, SIGIR"
    peers = {"gdeval": ("urisk",), "papers": ("U_risk",)}
    needs = ("baseline",)
    low, high = -np.inf, np.inf
    empty_is_zero = False

    def score(self, hits: Hits) -> Floats:
        baseline: Hits = hits.judgments.extras.baseline
        difference = self.of(hits) - self.of(baseline.condensed() if self.judged_only else baseline)
        return _weighed(difference, self.alpha)


class TRisk(URisk):
    """Risk as a t statistic: URisk over its standard error, so that it can be compared with chance.

    Below −2 the run is a significant risk, above 2 it is significantly better without one (alpha of 0.05, many topics);
    with alpha = 0 it is the statistic of the paired t-test. A topic's value is that of URisk. The summary is undefined
    unless two topics differ.

    Use it to ask whether a loss on single topics could be luck; not with few topics (lecture 003 asks for fifty or more), and
    not on differences that are far from normal.

    >>> from cranfield import evaluate
    >>> qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    >>> run, old = {"q1": {"a": 1}, "q2": {"b": 2, "a": 1}}, {"q1": {"b": 2, "a": 1}, "q2": {"a": 1}}
    >>> round(evaluate(qrels, run, "TRisk(of=RR, alpha=1)", baseline=old).mean(), 4)
    -0.3333
    """

    formula = "URisk / (s / √n),  s the sample standard deviation of the topics' weighed differences"
    reference = "Dinçer, Macdonald & Ounis (2014), Hypothesis testing for risk-sensitive evaluation, SIGIR"
    peers = {"papers": ("T_Risk",)}

    def summarise(self, values: Floats) -> float:
        """The t statistic; NaN if the topics do not differ."""
        spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        return math.sqrt(len(values)) * float(values.mean()) / spread if spread > 0 else math.nan


class GeoRisk(_Risk):
    """Risk among all runs scored together: the geometric mean of a run's mean score and of its risk against the others.

    The expected score of a run on a topic follows from the run's mean and the topic's mean over these runs. Deviations
    from it, in standard deviations, are summed, and losses count 1 + alpha times. A topic's value is the plain score;
    the summary of a run depends on the other runs, and is √(mean / 2) for a single run.

    Use it to rank many systems when none of them is the natural baseline; not to compare numbers between tables of
    different runs, and only with measures that are never negative.

    >>> from cranfield import evaluate
    >>> runs = {"steady": {"q1": {"b": 2, "a": 1}, "q2": {"b": 2, "a": 1}}, "wild": {"q1": {"a": 1}, "q2": {"b": 1}}}
    >>> scores = evaluate({"q1": {"a": 1}, "q2": {"a": 1}}, runs, "GeoRisk(of=RR, alpha=1)")
    >>> [round(scores.mean(run=run), 4) for run in scores.runs]
    [0.4922, 0.4249]
    """

    formula = "√(S/n · Φ(Z/n)),  Z = Σ z where z ≥ 0 + (1 + alpha) · Σ z where z < 0,  z = (x − e)/√e,  e = S · T / N"
    reference = "Dinçer, Macdonald & Ounis (2016), Risk-sensitive evaluation and learning to rank using multiple baselines, SIGIR"
    peers = {"papers": ("Geo_Risk",)}

    def score(self, hits: Hits) -> Floats:
        """One value per topic: that of the inner measure."""
        return self.of(hits)

    def summarise(self, values: Floats) -> float:
        """The value of a single run."""
        return math.sqrt(max(float(values.mean()), 0.0) / 2) if len(values) else math.nan

    def summarise_runs(self, values: Floats) -> Floats:
        """One number per run, from the topics that count for all runs; NaN if a run's mean is below 0."""
        x = values[:, ~np.isnan(values).any(axis=0)]
        if not x.size:
            return np.full(len(values), np.nan)
        expected = ratio(np.outer(x.sum(axis=1), x.sum(axis=0)), x.sum())
        z = ratio(x - expected, np.sqrt(np.maximum(expected, 0)))
        risk = _weighed(z, self.alpha).mean(axis=1)
        normal = np.array([0.5 * (1 + math.erf(each / math.sqrt(2))) for each in risk.tolist()])
        mean = x.mean(axis=1)
        return np.where(mean >= 0, np.sqrt(np.maximum(mean, 0) * normal), np.nan)
