"""Importance sampling: the clicks of each page count by how much more likely the new ranker shows its list."""

from __future__ import annotations

import numpy as np

from cranfield.base.parameters import Real
from cranfield.experiments.counterfactual.estimator import Estimator, PageValues, Question
from cranfield.stats.importance_weights import self_normalised

KNOWN = "the log chose each list at random, with the probabilities that it states, and could show every list of the new ranker"


class IPS(Estimator):
    """Inverse propensity scoring: clicks weighted by the probability of the list now, over that in the log."""

    name = "ips"
    place = 10
    verdict_place = 40
    aliases = ("inverse propensity scoring",)
    formula = "mean of w · clicks, w = P(list | new ranker) / P(list | log)"
    reference = (
        "Horvitz and Thompson (1952); Li et al., Counterfactual Estimation and Optimization of Click Metrics in Search "
        "Engines, WWW 2015"
    )
    conditions = KNOWN
    needs = "whole"

    def estimate(self, question: Question) -> PageValues:
        w = question.list_weights
        return PageValues(question.weighted(w, question.log.clicks), w, w * question.log.clicks, w)


class ClippedIPS(Estimator):
    """IPS with weights cut at a maximum: less spread, and an estimate that is too low.

    The bias bound is the share of the new ranker that is cut off, times the largest number of clicks on a page.
    """

    name = "clipped-ips"
    place = 20
    verdict_place = 80
    formula = "mean of min(w, M) · clicks; bias between −(1 − mean of min(w, M)) · most clicks and 0"
    reference = "Ionides, Truncated Importance Sampling, JCGS 2008; Bottou et al., JMLR 2013"
    conditions = (
        f"{KNOWN}; the interval is that of the clipped mean, which is lower than the truth by up to the bias bound"
    )
    needs = "whole"
    weights_tell = False
    unbiased = False
    maximum = Real(10.0, "the largest weight", low=0, open=True)

    def estimate(self, question: Question) -> PageValues:
        w = np.minimum(question.list_weights, self.maximum)
        rewards = w * question.log.clicks
        most = float(question.log.clicks.max(initial=1.0))
        return PageValues(
            question.weighted(w, question.log.clicks), w, rewards, w, max(0.0, 1 - float(w.mean())) * most
        )


class SelfNormalisedIPS(Estimator):
    """IPS divided by the mean weight: propensities may be wrong by a constant factor, and the spread is smaller."""

    name = "snips"
    place = 30
    verdict_place = 30
    aliases = ("self-normalised ips",)
    formula = "Σ w · clicks / Σ w"
    reference = "Swaminathan and Joachims, The Self-Normalized Estimator for Counterfactual Learning, NIPS 2015"
    conditions = f"{KNOWN}; the bias falls with the number of pages"
    needs = "whole"

    def estimate(self, question: Question) -> PageValues:
        w = question.list_weights
        mean, values = self_normalised(w, question.log.clicks)
        if question.probabilities is not None and question.probabilities.counted:
            values = mean + question.weighted(w / w.mean(), question.log.clicks - mean) if w.any() else values
        return PageValues(values, w, w * question.log.clicks, w)
