"""What an estimator is: a class that turns a log and a new ranker into one value per page, whose mean is the estimate.

The values of a page show how much the page moves the estimate (its influence), so errors and paired differences follow
from them in the same way for every estimator. A class states its conditions; whether a log fulfils them is checked before
it is used.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from cranfield.base import registry
from cranfield.base.errors import ConventionError, DataError
from cranfield.base.registry import Registered, Registry
from cranfield.stats.importance_weights import centred

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.counterfactual.examination import Examination
    from cranfield.experiments.counterfactual.logged_pages import LoggedPages, Probabilities
    from cranfield.experiments.counterfactual.new_ranker import NewRanker, Placements

ESTIMATORS: Registry[type[Estimator]] = Registry(
    "counterfactual estimator",
    "counterfactual_estimators",
    "cranfield.experiments.counterfactual",
    order=lambda cls: cls.place,
)


LEAST = 1e-100  # a smaller probability counts as this: the squares of its weights would be beyond a double
READS = {  # the probabilities of a log, by their names in `Probabilities`
    "whole": "propensity of lists",
    "above": "propensity of beginnings",
    "at_rank": "propensity at ranks",
}


@dataclass(frozen=True, eq=False)
class Question:
    """The clicks of a new ranker, from the pages of a log and what is known of how they came about."""

    log: LoggedPages
    ranker: NewRanker
    probabilities: Probabilities | None = None
    examination: Mapping[int, Examination] = field(default_factory=dict)  # by position, relative to the first

    @cached_property
    def placements(self) -> Placements:
        """Where the ranker puts documents."""
        return self.ranker.placements(self.log)

    @cached_property
    def beginning(self) -> Floats:
        """How likely the ranker begins its list like each page, down to each row; DataError if that is unknown."""
        answer = self.ranker.beginning(self.log)
        if isinstance(answer, str):
            raise DataError(answer)
        return answer

    @cached_property
    def list_weights(self) -> Floats:
        """The probability of each page's list under the new ranker, over its probability in the log."""
        last = self.log.pages.start[1:] - 1
        return np.asarray(self.beginning[last] / _known(self.probabilities, "whole"), np.float64)

    @cached_property
    def prefix_weights(self) -> Floats:
        """The same for the beginning of the list, down to each row."""
        return np.asarray(self.beginning / _known(self.probabilities, "above"), np.float64)

    @cached_property
    def rank_weights(self) -> Floats:
        """For each row: the probability of its document at its rank under the new ranker, over that in the log."""
        size = int(self.log.rank.max(initial=0)) + 1
        new = np.zeros(len(self.log.pages.pairs) * size)
        _, pair, rank, probability = self.placements
        shown = (pair >= 0) & (rank < size)
        new[pair[shown] * size + rank[shown]] = probability[shown]
        own = new[self.log.pages.pair.astype(np.int64) * size + self.log.rank]
        return np.asarray(own / _known(self.probabilities, "at_rank"), np.float64)

    def weighted(self, weights: Floats, rewards: Floats) -> Floats:
        """Weighted rewards of each page, or of each row, with the spread that follows from where the weights come from."""
        if self.probabilities is None or not self.probabilities.counted:
            return weights * rewards
        log = self.log
        by_page = len(weights) == len(log.pages)
        size = int(log.rank.max(initial=0)) + 1
        group = log.query if by_page else log.query[log.page] * size + log.rank
        return centred(weights, rewards, group)

    @cached_property
    def never_shown(self) -> float:
        """The share of the new lists, over all pages, that the log never shows for the query."""
        query, pair, _, probability = self.placements
        mass = probability * self.log.pages_of_query[query]
        return float(mass[pair < 0].sum() / mass.sum()) if mass.sum() > 0 else math.nan


def _known(probabilities: Probabilities | None, name: str) -> Floats:
    values = None if probabilities is None else getattr(probabilities, name)
    if values is None:
        raise ConventionError(f"the probabilities {name} are unknown")  # estimators check this first
    return np.asarray(np.maximum(values, LEAST), np.float64)


class PageValues(NamedTuple):
    """The influence of each page on an estimate, the mean weight of each page, and all single weights.

    `rewards` are each page's clicks by their weights; `bias` is a bound of the estimate's bias, if it has one. `shifts` are
    the changes of the estimate if a quantity that it takes over changes by its standard error, for each of them.
    """

    values: Floats
    weights: Floats
    rewards: Floats
    single: Floats
    bias: float = math.nan
    shifts: Floats = np.zeros(0)


class Estimator(Registered, ABC):
    """How the clicks of a new ranker are estimated from the log of others."""

    registry = ESTIMATORS
    place: ClassVar[int] = 100  # in listings
    formula: ClassVar[str]
    reference: ClassVar[str]
    conditions: ClassVar[str]  # what must be true for the interval to cover the truth
    needs: ClassVar[str | None] = None  # the probabilities of the log that it reads, by their name in `Probabilities`
    needs_examination: ClassVar[bool] = False
    weights_tell: ClassVar[bool] = True  # whether a mean weight other than 1 shows wrong propensities
    unbiased: ClassVar[bool] = True  # whether its interval claims to cover the clicks of the new ranker
    for_lists: ClassVar[bool] = False  # whether pages of one document make it equal to another estimator
    verdict_place: ClassVar[int] = 100  # which estimator the first sentence gives

    @abstractmethod
    def estimate(self, question: Question) -> PageValues:
        """The influence and the weights of each page."""

    def obstacle(self, log: LoggedPages, probabilities: Probabilities | None, examination: Any) -> str:
        """Why the estimator cannot read this log; empty if it can."""
        if self.needs_examination:
            if (log.first != 1).any():
                return "its pages begin at other positions than the first, so a new list has no positions"
            return "" if examination else "it needs --position-bias FILE with the examination of each rank"
        if probabilities is None:
            return (
                "it needs a randomised log: the attribute that --propensity names, or --randomised; "
                "a log of one list per query does not say how users react to other lists"
            )
        if self.needs is not None and getattr(probabilities, self.needs) is None:
            return _lacking(self.needs, probabilities.words)
        return ""


def _lacking(needs: str, words: str) -> str:
    if needs == "above":
        return f"it needs the probability of each document after those above it, as a JSON list; the {words} are of whole lists"
    return f"it needs the probability of each document at its rank, which does not follow from the {words}; see --randomised"


def page(cls: type[Estimator]) -> dict[str, Any]:
    """The description of an estimator, for listings and docs."""
    reads = "examination of ranks" if cls.needs_examination else READS.get(cls.needs or "", "randomised log")
    return registry.page(cls, reads=reads, conditions=cls.conditions)
