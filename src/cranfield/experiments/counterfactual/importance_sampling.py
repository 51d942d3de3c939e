"""Estimators that weigh whole lists, and those with a model of clicks: the direct method, and doubly robust.

Importance sampling counts the clicks of each page by how much more likely the new ranker shows its list. The model of clicks
is plain: the click rate of the position, times how much more than expected the document was clicked for the query. A
document begins with a few clicks at the expected rate, so that rare ones stay near it. Where the model is wrong, the
direct method is wrong; doubly robust corrects it by the weighted errors that it makes on the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.parameters import Real, Whole
from cranfield.experiments.counterfactual.estimator import Estimator, PageValues, Question
from cranfield.stats.importance_weights import self_normalised

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.counterfactual.logged_pages import LoggedPages

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


PRIOR_VIEWS = 10.0  # views at the mean rate that every position begins with


@dataclass(frozen=True, eq=False)
class ClickRates:
    """The click rate of each position, and the factor of each pair (clicks over expected clicks)."""

    by_position: Floats
    factor: Floats
    expected: Floats  # clicks of each pair, with the prior

    @classmethod
    def fit(cls, log: LoggedPages, rows: Floats, prior: float) -> ClickRates:
        """The rates of the rows with weight 1 in `rows`; the others are left out."""
        size, pairs = int(log.position.max(initial=0)) + 1, len(log.pages.pairs)
        clicked = log.pages.clicked * rows
        mean = float(clicked.sum() / max(rows.sum(), 1.0))
        views = np.bincount(log.position, weights=rows, minlength=size)
        clicks = np.bincount(log.position, weights=clicked, minlength=size)
        by_position = (clicks + PRIOR_VIEWS * mean) / (views + PRIOR_VIEWS)
        expected = np.bincount(log.pages.pair, weights=rows * by_position[log.position], minlength=pairs) + prior
        own = np.bincount(log.pages.pair, weights=clicked, minlength=pairs) + prior
        return cls(*(np.asarray(each, np.float64) for each in (by_position, own / expected, expected)))

    def of_rows(self, log: LoggedPages) -> Floats:
        """The rates by position times the factors of pairs, for each row."""
        return np.asarray(self.by_position[log.position] * self.factor[log.pages.pair], np.float64)


def expected_clicks(question: Question, rates: ClickRates) -> Floats:
    """The clicks that the rates promise each page if the new ranker filled it."""
    query, pair, rank, probability = question.placements
    factor = np.where(pair >= 0, rates.factor[pair], 1.0)
    depth = int(question.log.rank.max(initial=0)) + 1
    keep = rank < depth
    log, answer = question.log, np.zeros(len(question.log.pages))
    value = np.bincount(
        query[keep] * depth + rank[keep], weights=(probability * factor)[keep], minlength=len(log.queries) * depth
    ).reshape(-1, depth)
    for first in np.unique(log.first).tolist():
        positions = np.minimum(np.arange(depth) + first - 1, len(rates.by_position) - 1)
        down_to = np.cumsum(value * rates.by_position[positions], axis=1)
        which = log.first == first
        answer[which] = down_to[log.query[which], log.pages.lengths[which]]
    return answer


def placed_views(question: Question, rates: ClickRates) -> Floats:
    """The clicks that each pair would get at the mean factor, over all pages that the new ranker fills."""
    query, pair, rank, probability = question.placements
    log, views = question.log, np.zeros(len(question.log.pages.pairs))
    depth = int(log.rank.max(initial=0)) + 1
    for first in np.unique(log.first).tolist():
        which = log.first == first
        longer = np.zeros((len(log.queries), depth + 1))
        np.add.at(longer, (log.query[which], log.pages.lengths[which]), 1.0)
        at_least = longer[:, ::-1].cumsum(axis=1)[:, ::-1]  # pages of the query with so many documents
        keep = (pair >= 0) & (rank < depth)
        position = np.minimum(rank[keep] + first - 1, len(rates.by_position) - 1)
        expected = probability[keep] * at_least[query[keep], rank[keep]] * rates.by_position[position]
        views += np.bincount(pair[keep], weights=expected, minlength=len(views))
    return views


class DirectMethod(Estimator):
    """The clicks that a model of click rates promises the new ranker: rate of the position × factor of the document."""

    name = "dm"
    place = 50
    verdict_place = 90
    aliases = ("direct method",)
    formula = "mean over pages of Σ_ranks Σ_documents P(document at rank | new ranker) · click rate(document, position)"
    reference = "Dudík, Langford and Li, Doubly Robust Policy Evaluation and Learning, ICML 2011"
    conditions = (
        "the log was randomised, and the model is right: a click depends on position and document alone, as a product; "
        "the interval holds the noise of the rates, not the error of the model"
    )
    weights_tell = False
    unbiased = False
    prior = Real(1.0, "clicks at the expected rate that each document begins with", low=0, open=True)

    def estimate(self, question: Question) -> PageValues:
        log = question.log
        rates = ClickRates.fit(log, np.ones(len(log.rank)), self.prior)
        weight = (placed_views(question, rates) / rates.expected)[log.pages.pair]
        residual = log.pages.clicked - rates.of_rows(log)
        values = expected_clicks(question, rates) + log.per_page(weight * residual)
        # The weighted residuals do not sum to 0, because of the prior; the estimate is the mean of the promises.
        values -= log.per_page(weight * residual).mean()
        weights = log.per_page(weight) / log.pages.lengths
        return PageValues(values, weights, log.per_page(weight * log.pages.clicked), weight)


class DoublyRobust(Estimator):
    """The direct method, corrected by the weighted errors of its model; each page's model is fitted on other units."""

    name = "dr"
    place = 40
    verdict_place = 20
    aliases = ("doubly robust",)
    formula = "mean of promise(page) + w · (clicks − promise of the model for the list that was shown)"
    reference = "Dudík, Langford and Li, ICML 2011; cross-fitting: Chernozhukov et al., The Econometrics Journal 2018"
    conditions = f"{KNOWN}; the model of clicks may be wrong"
    needs = "whole"
    prior = Real(1.0, "clicks at the expected rate that each document begins with", low=0, open=True)
    folds = Whole(5, "parts of the units; the model for one part is fitted on the others", low=2, high=100)

    def estimate(self, question: Question) -> PageValues:
        log, w = question.log, question.list_weights
        fold = np.unique(log.unit, return_inverse=True)[1] % self.folds
        values = np.zeros(len(log.pages))
        for part in range(self.folds):
            own = fold == part
            if not own.any():
                continue
            rates = ClickRates.fit(log, (~own)[log.page].astype(np.float64), self.prior)
            promised = log.per_page(rates.of_rows(log))
            values[own] = (expected_clicks(question, rates) + question.weighted(w, log.clicks - promised))[own]
        return PageValues(values, w, w * log.clicks, w)
