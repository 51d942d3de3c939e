"""The values of judgments from clicks, each with a posterior.

The posterior of a parameter of a click model is the Beta distribution with the fitted value as its mean and with the
information of the log: a page counts as much as it tells about the parameter, if all other parameters are known. For
models that are fitted by counting examined documents, this is clicks and views plus the pseudo-counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cranfield.base.errors import ConventionError
from cranfield.base.parameters import Real
from cranfield.base.registry import Registered, Registry
from cranfield.experiments.clicks.em import FittedScan
from cranfield.stats.posteriors import BetaPosteriors, GammaPosteriors

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.model import FittedClickModel
    from cranfield.experiments.clicks.result_pages import ResultPages
    from cranfield.stats.posteriors import Posteriors

CLICK_VALUES: Registry[type[ClickValue]] = Registry(
    "value of clicks", "click_values", "cranfield.experiments.clicks.values"
)
TINY = 1e-12


class ClickValue(Registered, ABC):
    """The value that clicks give a document for a query."""

    registry = CLICK_VALUES
    formula: ClassVar[str]
    reference: ClassVar[str]
    of_model: ClassVar[bool] = True  # whether it is a parameter of a click model

    @abstractmethod
    def posteriors(self, pages: ResultPages, fitted: FittedClickModel | None) -> Posteriors:
        """The posterior of the value of each pair."""


class Attractiveness(ClickValue):
    """The probability that a user who examines the document clicks on it."""

    name = "attractiveness"
    formula = "P(click | examined)"
    reference = "Chuklin, Markov and de Rijke (2015)"

    def posteriors(self, pages: ResultPages, fitted: FittedClickModel | None) -> BetaPosteriors:
        return attractiveness_posteriors(pages, _fitted(self, fitted))


class Satisfaction(ClickValue):
    """The probability that a user who clicks on the document is satisfied and stops."""

    name = "satisfaction"
    formula = "P(satisfied | click)"
    reference = "Chapelle and Zhang (2009)"

    def posteriors(self, pages: ResultPages, fitted: FittedClickModel | None) -> BetaPosteriors:
        return satisfaction_posteriors(pages, _fitted(self, fitted))


class Both(ClickValue):
    """The probability that a user who examines the document clicks on it and is satisfied."""

    name = "both"
    formula = "P(click | examined) · P(satisfied | click)"
    reference = "Chapelle and Zhang (2009)"
    aliases = ("product", "relevance")

    def posteriors(self, pages: ResultPages, fitted: FittedClickModel | None) -> BetaPosteriors:
        model = _fitted(self, fitted)
        return attractiveness_posteriors(pages, model).times(satisfaction_posteriors(pages, model))


class Coec(ClickValue):
    """Clicks over expected clicks: 1 is a document that gets the clicks which its ranks get on average.

    The clicks that are expected at a rank are the click-through rate of that rank, over all queries.
    """

    name = "coec"
    formula = "(clicks + prior) / (Σ click-through rate of the ranks where it was shown + prior)"
    reference = "Zhang and Jones (2007)"
    of_model = False
    prior = Real(
        1.0, "expected clicks, and as many clicks, that every document has before the log is read", 0, open=True
    )

    def posteriors(self, pages: ResultPages, fitted: FittedClickModel | None) -> GammaPosteriors:
        rank = pages.rank
        views = np.bincount(rank)
        rate = np.bincount(rank, weights=pages.clicked) / np.maximum(views, 1)
        pairs = len(pages.pairs)
        clicks = np.bincount(pages.pair, weights=pages.clicked, minlength=pairs)
        expected = np.bincount(pages.pair, weights=rate[rank], minlength=pairs)
        shape, size = clicks + self.prior, expected + self.prior
        chance = np.clip((shape / size)[pages.pair] * rate[rank], 0, 1)  # of a click, on each row
        by_pair = np.bincount(pages.pair, weights=chance, minlength=pairs)
        spread = np.bincount(pages.pair, weights=chance * (1 - chance), minlength=pairs)
        # a click happens once or not at all: the count varies less than a Poisson count of the same mean
        narrower = np.where(by_pair > 0, np.maximum(spread, TINY) / np.maximum(by_pair, TINY), 1.0)
        narrower = np.maximum(narrower, 0.05)
        prior = self.prior / narrower
        return GammaPosteriors(shape / narrower, size / narrower, prior, prior)


def _fitted(value: ClickValue, fitted: FittedClickModel | None) -> FittedClickModel:
    if fitted is None:
        raise ConventionError(f"{value.name} is a parameter of a click model; name the model")
    return fitted


def attractiveness_posteriors(pages: ResultPages, fitted: FittedClickModel) -> BetaPosteriors:
    """The posterior of each pair's attractiveness, as a probability of a click at rank 1.

    Some models know attractiveness and examination only up to one factor; the click at rank 1 needs none. A click tells
    1 / a² about the attractiveness a. No click tells (e / (1 − p))², where p is its probability given the clicks above, and
    e = p / a; below an examined document, e is 1.
    """
    if not fitted.model.values_documents:
        raise ConventionError(f"{fitted.model.name} gives all documents of a rank the same value; take another model")
    if isinstance(fitted, FittedScan) and not len(fitted.objective):  # counted: clicks in examined views
        return _posteriors_of_views(fitted.attractiveness, fitted.examined, fitted)
    chance = np.clip(fitted.conditional(pages), 0, 1 - TINY)
    rank, a = pages.rank, np.clip(fitted.attractiveness, TINY, 1 - TINY)
    if len(rank):  # page 0 begins with row 0
        a = np.clip(a * min(chance[0] / a[pages.pair[0]], 1 / a.max()), TINY, 1 - TINY)
    own = a[pages.pair]
    if fitted.model.from_the_top:  # users came down to the last click, and examined everything on the way
        chance = np.where(rank <= np.repeat(pages.last_click, pages.lengths), own, chance)
    information = np.where(pages.clicked, 1 / own**2, (chance / own / (1 - chance)) ** 2)
    information = _by_pair(pages, information, len(a))
    return _posteriors(a, information, fitted)


def satisfaction_posteriors(pages: ResultPages, fitted: FittedClickModel) -> BetaPosteriors:
    """The posterior of each pair's satisfaction.

    A click that another one follows did not satisfy: it tells 1 / (1 − s)² about the satisfaction s. After the last
    click there is no further one with probability s + (1 − s) t, which tells ((1 − t) / (s + (1 − s) t))².
    """
    if fitted.satisfaction is None:
        raise ConventionError(
            f"{fitted.model.name} has no satisfaction of each document; judge by attractiveness, or take another model"
        )
    s = np.clip(fitted.satisfaction, TINY, 1 - TINY)
    last = np.repeat(pages.last_click, pages.lengths)
    rank = pages.rank
    without = np.log1p(-np.clip(fitted.conditional(pages), 0, 1 - TINY))
    silent = np.exp(np.bincount(pages.page, weights=np.where(rank > last, without, 0.0), minlength=len(pages)))
    silent_after = np.repeat(silent, pages.lengths)
    own = s[pages.pair]
    further = np.clip((silent_after - own) / (1 - own), 0, 1)  # no click follows, if this one did not satisfy
    information = np.where(
        rank == last, ((1 - further) / np.maximum(own + (1 - own) * further, TINY)) ** 2, 1 / (1 - own) ** 2
    )
    information = _by_pair(pages, np.where(pages.clicked, information, 0.0), len(s))
    return _posteriors(s, information, fitted)


def _by_pair(pages: ResultPages, values: Floats, pairs: int) -> Floats:
    """The sums of values over the rows of each pair."""
    return np.bincount(pages.pair, weights=values, minlength=pairs).astype(np.float64)


def _posteriors(values: Floats, information: Floats, fitted: FittedClickModel) -> BetaPosteriors:
    """The posteriors of values about which the log has this information: that of so many examined views."""
    return _posteriors_of_views(values, values * (1 - values) * information, fitted)


def _posteriors_of_views(values: Floats, views: Floats, fitted: FittedClickModel) -> BetaPosteriors:
    """The posteriors of values that are shares of so many examined views, and of the pseudo-views of the model."""
    values = np.clip(values, TINY, 1 - TINY)
    prior = fitted.model.pseudo_views
    size = views + max(prior, 1e-6)  # without pseudo-views, a trace of one where the log says nothing
    return BetaPosteriors.of_mean(values, size, fitted.model.pseudo_clicks / prior if prior else 0.5, prior)
