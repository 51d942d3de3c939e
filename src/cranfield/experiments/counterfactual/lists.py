"""Estimators for lists that read less than the whole list: a document's rank, the documents above it, or its examination."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import Flag
from cranfield.experiments.counterfactual.estimator import Estimator, PageValues, Question
from cranfield.experiments.counterfactual.examination import error_parts

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats


LARGEST_STEP = 0.5  # of the logarithm of an examination


def _by_row(question: Question, weights: Floats) -> PageValues:
    """The values of an estimator that weighs each row."""
    log = question.log
    values = log.per_page(question.weighted(weights, log.pages.clicked.astype(np.float64)))
    rewards = log.per_page(weights * log.pages.clicked)
    return PageValues(values, log.per_page(weights) / log.pages.lengths, rewards, weights)


class ItemPosition(Estimator):
    """Each click counts by how much more likely the new ranker puts the document at this rank."""

    name = "item-position"
    place = 60
    verdict_place = 10
    for_lists = True
    formula = "mean of Σ_ranks w · click, w = P(document at rank | new ranker) / P(document at rank | log)"
    reference = "Li et al., Offline Evaluation of Ranking Policies with Click Models, KDD 2018"
    conditions = (
        "the log was randomised; a click depends on the document and its rank, not on the other documents of the page"
    )
    needs = "at_rank"

    def estimate(self, question: Question) -> PageValues:
        return _by_row(question, question.rank_weights)


class Cascade(Estimator):
    """Each click counts by how much more likely the new ranker begins its list with the documents down to the click."""

    name = "cascade"
    place = 70
    verdict_place = 50
    for_lists = True
    aliases = ("rips", "reward interaction ips")
    formula = "mean of Σ_ranks w · click, w = P(documents down to this rank | new ranker) / P(the same | log)"
    reference = "McInerney et al., Counterfactual Evaluation of Slate Recommendations (RIPS), KDD 2020"
    conditions = "the log was randomised; a click depends on the document and those above it, not on those below"
    needs = "above"
    normalised = Flag("divide the weights of each rank by their mean, as McInerney et al. do")

    def estimate(self, question: Question) -> PageValues:
        log, weights = question.log, question.prefix_weights
        plain = _by_row(question, weights)
        if not self.normalised:
            return plain
        size = int(log.rank.max(initial=0)) + 1
        pages = np.bincount(log.rank, minlength=size)
        total = np.bincount(log.rank, weights=weights, minlength=size)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.bincount(log.rank, weights=weights * log.pages.clicked, minlength=size) / total
            scale = pages / total
        if not (total[1:] > 0).all():
            raise DataError("no page begins like the new lists down to every rank; lower --depth")
        residual = log.pages.clicked - mean[log.rank]
        values = mean[log.rank] + question.weighted(scale[log.rank] * weights, residual)
        return plain._replace(values=log.per_page(values))


class PositionBased(Estimator):
    """Each click counts by the examination of the document's new position, over that of the positions it had."""

    name = "position-based"
    place = 80
    verdict_place = 60
    aliases = ("pbm",)
    formula = "mean over pages of Σ_documents examination(new position) · clicks(document) / Σ_pages examination(its position)"
    reference = "Joachims et al., Unbiased Learning-to-Rank with Biased Feedback, WSDM 2017; Li et al., KDD 2018"
    conditions = (
        "a click needs examination, which depends on the position alone, and attraction, which depends on query and document "
        "alone; the examination is known; no randomisation is needed, but documents that were never shown count as unclicked"
    )
    needs_examination = True
    weights_tell = False

    def estimate(self, question: Question) -> PageValues:
        examined, errors = self._of_positions(question)
        plain = self._with(question, examined)
        slopes = [
            self._slope(question, examined, place, each) for place, each in enumerate(np.linalg.norm(errors, axis=1))
        ]
        return plain._replace(shifts=errors.T @ np.array(slopes, np.float64))

    def _slope(self, question: Question, examined: Floats, place: int, error: float) -> float:
        """The change of the estimate by the logarithm of the examination of a position, over about its standard error."""
        if not error > 0:
            return 0.0
        step = np.zeros(len(examined))
        step[place] = min(error, LARGEST_STEP)
        up, down = (self._with(question, examined * np.exp(sign * step)).values.mean() for sign in (1, -1))
        return float((up - down) / 2 / step[place])

    @staticmethod
    def _with(question: Question, examined: Floats) -> PageValues:
        """The values of the pages with this examination by position."""
        log = question.log
        query, pair, rank, probability = question.placements
        shown = pair >= 0
        new = np.bincount(
            pair[shown], weights=probability[shown] * examined[rank[shown]], minlength=len(log.pages.pairs)
        )
        own = examined[log.position]
        total = np.bincount(log.pages.pair, weights=own, minlength=len(log.pages.pairs))
        clicks = np.bincount(log.pages.pair, weights=log.pages.clicked, minlength=len(log.pages.pairs))
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(total > 0, clicks / total, 0.0)
            scale = np.where(total > 0, log.pages_of_query[log.pages.pairs.query] * new / total, 0.0)
        pair_of_row = log.pages.pair
        of_query = np.bincount(log.pages.pairs.query, weights=new * rate, minlength=len(log.queries))
        values = of_query[log.query] + log.per_page(scale[pair_of_row] * (log.pages.clicked - rate[pair_of_row] * own))
        weights = scale[pair_of_row]
        all_new = np.bincount(query, weights=probability * examined[rank], minlength=len(log.queries))[log.query]
        return PageValues(
            values, log.per_page(weights * own) / all_new, log.per_page(weights * log.pages.clicked), weights
        )

    @staticmethod
    def _of_positions(question: Question) -> tuple[Floats, Floats]:
        """The examination by position (from 0) and the parts of its errors; DataError if one is needed that is unknown."""
        log = question.log
        deepest = max(int(log.position.max(initial=1)), int(question.placements.rank.max(initial=1)))
        lacking = [position for position in range(1, deepest + 1) if position not in question.examination]
        if lacking and lacking[0] == 1:
            raise DataError(
                "the examination of position 1 is unknown; give a row of rank 1 in the file of --position-bias"
            )
        if lacking:
            raise DataError(
                f"the examination of position {lacking[0]} is unknown, and pages of {log.name} have {deepest} positions; "
                f"--depth {lacking[0] - 1} leaves out the positions below"
            )
        each = [question.examination[position] for position in range(1, deepest + 1)]
        errors = np.zeros((deepest + 1, deepest))
        errors[1:] = error_parts(each)
        return np.array([0.0, *(one.value for one in each)]), errors
