"""Estimators with a model of clicks: the direct method, and doubly robust.

The model is plain: the click rate of the position, times how much more than expected the document was clicked for the
query. A document begins with a few clicks at the expected rate, so that rare ones stay near it. Where the model is
wrong, the direct method is wrong; doubly robust corrects it by the weighted errors that it makes on the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.parameters import Real, Whole
from cranfield.experiments.counterfactual.estimator import Estimator, PageValues, Question
from cranfield.experiments.counterfactual.importance_sampling import KNOWN

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.counterfactual.logged_pages import LoggedPages

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
