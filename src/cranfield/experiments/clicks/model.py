"""What a click model is: a class that is fitted to result pages, and then gives click probabilities and simulates clicks.

A model is one class in the file of its family. Its parameters (start values, pseudo-counts, iterations …) are declared in its
body and typed in brackets: `PBM(iterations=100)`. A fitted model has an attractiveness for each pair of query and
document; other parameters depend on the family.

Two probabilities of a click at a rank matter: the marginal one, which knows no clicks, and the conditional one, which knows the
clicks above. Perplexity uses the first, log-likelihood the second.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cranfield.base import registry
from cranfield.base.errors import DataError
from cranfield.base.parameters import Real, Whole
from cranfield.base.registry import Registered, Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.result_pages import Flags, Numbers, QueryDocuments, ResultPages

CLICK_MODELS: Registry[type[ClickModel]] = Registry("click model", "click_models", "cranfield.experiments.clicks")
STILL_CHANGING = 0.01  # the change of a parameter in the last iteration from which on its estimate is not given


class ClickModel(Registered, ABC):
    """How users examine a list and click, with parameters that are estimated from a log."""

    registry = CLICK_MODELS
    formula: ClassVar[str]
    reference: ClassVar[str]
    reads_pages: ClassVar[bool] = False  # whether counts are not enough, so that the pages must stay in memory
    reads_other_clicks: ClassVar[bool] = True  # whether it matters where the other clicks of a page were
    values_documents: ClassVar[bool] = True  # whether documents have an attractiveness of their own
    from_the_top: ClassVar[bool] = False  # whether users examine every document above one that they examine
    pseudo_clicks = Real(1.0, "clicks that every parameter has before the log is read", low=0)
    pseudo_views = Real(2.0, "views that every parameter has before the log is read", low=0)

    @property
    def needs_pages(self) -> bool:
        """Whether counts are not enough for the model with these parameters."""
        return self.reads_pages

    @abstractmethod
    def fit(self, data: Any) -> FittedClickModel:
        """The model fitted to `ClickCounts`, or to `ResultPages` if it `reads_pages`."""


class FittedByEM(ClickModel):
    """A model that is fitted by expectation and maximisation."""

    start = Real(0.5, "the value of every parameter before the first iteration", low=0, high=1, open=True)
    # Simulated logs in varied order needed 20 to 500 iterations for this tolerance (docs/clicks.md).
    iterations = Whole(500, "iterations at the most")
    tolerance = Real(1e-4, "change of every parameter below which the iterations end; 0 makes all of them", low=0)


@dataclass(frozen=True, eq=False)
class FittedClickModel(ABC):
    """The parameters of a model, estimated from a log."""

    model: ClickModel
    pairs: QueryDocuments
    attractiveness: Floats  # of each pair
    objective: Floats  # EM's objective after each iteration: the log-likelihood plus the log-prior; empty without EM
    change: float  # the largest change of a parameter in the last iteration; 0 without EM

    rank_parameters: ClassVar[tuple[str, ...]] = ()  # the parameters that have a value, or a row, for each rank

    @property
    def satisfaction(self) -> Floats | None:
        """The probability that a click on each pair satisfies; None if the model has no such parameter."""
        return None

    def check(self) -> list[str]:
        """Raise DataError if the log does not determine the parameters; return sentences about what limits them."""
        refuse_unconverged(self)
        tolerance = self.model.values.get("tolerance", 0)
        if 0 < tolerance <= self.change:
            count = len(self.objective)
            return [
                f"{self.model.name} has not quite converged: a parameter still changed by {self.change:.1g} in iteration"
                f" {count}; more iterations: {self.model.name}(iterations={10 * count})"
            ]
        return []

    @abstractmethod
    def parameters(self) -> Mapping[str, Floats]:
        """The parameters that belong to ranks or to the whole log, by name."""

    @abstractmethod
    def marginal(self, pages: ResultPages) -> Floats:
        """The probability of a click on each row, knowing no clicks."""

    @abstractmethod
    def conditional(self, pages: ResultPages) -> Floats:
        """The probability of a click on each row, knowing the clicks above on its page."""

    @abstractmethod
    def simulate(self, pages: ResultPages, rng: np.random.Generator) -> Flags:
        """Clicks of simulated users on the pages."""

    def page_log_likelihoods(self, pages: ResultPages) -> Floats:
        """The log-likelihood of each page: the mean over its rows of log P(click or not | clicks above).

        A click that is impossible under the model makes it -inf.
        """
        logs = log_probabilities(self.conditional(pages), pages.clicked)
        return np.bincount(pages.page, logs, len(pages)) / np.maximum(pages.lengths, 1)

    def log_likelihood(self, pages: ResultPages) -> float:
        """The mean log-likelihood of the pages."""
        return float(np.mean(self.page_log_likelihoods(pages)))

    def perplexity(self, pages: ResultPages) -> Floats:
        """The perplexity of each rank: 2 to the mean -log₂ P(click or not), knowing no clicks. 1 is perfect, 2 a coin."""
        logs = log_probabilities(self.marginal(pages), pages.clicked)
        rank = pages.rank - 1
        return np.asarray(np.exp(-np.bincount(rank, logs) / np.maximum(np.bincount(rank), 1)), np.float64)


def log_probabilities(chances: Floats, clicked: Flags) -> Floats:
    """The log of the probability of what happened on each row; -inf where that is 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(clicked, np.log(chances), np.log1p(-chances)), np.float64)


def refuse_single_clicks(clicks_before_others: Floats | Numbers) -> None:
    """Raise DataError if no page has two clicks."""
    if not clicks_before_others.any():
        raise DataError(
            "no page of the log has two clicks, so nothing shows whether users read on after a click; "
            "fit CM or PBM, or log every click of a search"
        )


def refuse_unconverged(fitted: FittedClickModel) -> None:
    """Raise DataError if the parameters still changed a lot when EM's iterations ended."""
    if fitted.change >= STILL_CHANGING:
        count = len(fitted.objective)
        raise DataError(
            f"{fitted.model} did not converge: a parameter still changed by {fitted.change:.3g} in iteration {count};"
            f" expected less than {STILL_CHANGING:g}. Allow more iterations, like {fitted.model.name}(iterations={10 * count})"
        )


def page(cls: type[ClickModel]) -> dict[str, Any]:
    """The description of a model, for listings and docs."""
    exact = "counts; exact by EM" if "exact" in cls.parameters else "EM"
    return registry.page(cls, fitted=exact if issubclass(cls, FittedByEM) else "counts")
