"""Click-through rates as click models: of the whole log, by rank, and by document. Every other model must beat them.

They count clicks over views and explain nothing: a document that was shown lower is clicked less, and so looks worse.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cranfield.experiments.clicks.em import FittedScan, PseudoCounts
from cranfield.experiments.clicks.model import ClickModel
from cranfield.experiments.clicks.result_pages import as_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.result_pages import ClickCounts, Flags, Numbers, ResultPages


class _Rates(ClickModel):
    """Clicks over views for each value of some key."""

    reads_other_clicks = False
    reference = "Chuklin, Markov and de Rijke, Click Models for Web Search, 2015, section 3.1 and 3.2"

    def _rates(self, counts: ClickCounts, key: Numbers, size: int) -> Floats:
        views, clicks = counts.by(key, size)
        return PseudoCounts.of(self).mode(clicks, views, np.full(size, 0.5))

    @abstractmethod
    def fit(self, data: ClickCounts | ResultPages) -> FittedClickThrough: ...


class CTR(_Rates):
    """Click-through rate of the log: every document at every rank is clicked with the same probability.

    >>> from cranfield.experiments.clicks.result_pages import ResultPages
    >>> fitted = CTR().fit(ResultPages.of([("q", ["a", "b"], [1, 0]), ("q", ["a", "b"], [1, 1])]))
    >>> fitted.rates.round(4).tolist()
    [0.6667]
    """

    name = "CTR"
    aliases = ("GCTR", "click-through")
    values_documents = False
    formula = "P(click) = clicks / views"

    def fit(self, data: ClickCounts | ResultPages) -> FittedClickThrough:
        counts = as_counts(data)
        rates = self._rates(counts, np.zeros_like(counts.rank), 1)
        attractiveness = np.full(len(counts.pairs), rates[0])
        return FittedClickThrough(self, counts.pairs, attractiveness, NOTHING, 0.0, rates, examined=_views(counts))


class RankCTR(_Rates):
    """Click-through rate of each rank: users click on ranks, whatever documents are there.

    >>> from cranfield.experiments.clicks.result_pages import ResultPages
    >>> fitted = RankCTR().fit(ResultPages.of([("q", ["a", "b"], [1, 0]), ("q", ["b", "a"], [1, 1])]))
    >>> fitted.rates.tolist()
    [0.75, 0.5]
    """

    name = "RankCTR"
    aliases = ("RCTR",)
    values_documents = False
    formula = "P(click) = clicks / views, both at the rank"

    def fit(self, data: ClickCounts | ResultPages) -> FittedClickThrough:
        counts = as_counts(data)
        rates = self._rates(counts, counts.rank - 1, int(counts.rank.max(initial=1)))
        attractiveness = np.ones(len(counts.pairs))
        return FittedClickThrough(self, counts.pairs, attractiveness, NOTHING, 0.0, rates, examined=_views(counts))


class DocumentCTR(_Rates):
    """Click-through rate of each document for each query: users examine every rank.

    >>> from cranfield.experiments.clicks.result_pages import ResultPages
    >>> fitted = DocumentCTR().fit(ResultPages.of([("q", ["a", "b"], [1, 0]), ("q", ["b", "a"], [1, 1])]))
    >>> fitted.attractiveness.tolist()
    [0.75, 0.5]
    """

    name = "DocumentCTR"
    aliases = ("DCTR",)
    formula = "P(click) = clicks / views, both of the document for the query"

    def fit(self, data: ClickCounts | ResultPages) -> FittedClickThrough:
        counts = as_counts(data)
        rates = self._rates(counts, counts.pair, len(counts.pairs))
        return FittedClickThrough(self, counts.pairs, rates, NOTHING, 0.0, rates, examined=_views(counts))


NOTHING = np.zeros(0)


def _views(counts: ClickCounts) -> Floats:
    return counts.by(counts.pair, len(counts.pairs))[0]


@dataclass(frozen=True, eq=False)
class FittedClickThrough(FittedScan):
    """Click-through rates: one of the log, one for each rank, or one for each pair."""

    rates: Floats

    rank_parameters = ("click-through",)

    def parameters(self) -> Mapping[str, Floats]:
        if isinstance(self.model, DocumentCTR):
            return {}
        return {"click-through of the log" if isinstance(self.model, CTR) else "click-through": self.rates}

    def marginal(self, pages: ResultPages) -> Floats:
        if isinstance(self.model, DocumentCTR):
            return self.rates[pages.pair]
        if isinstance(self.model, CTR):
            return np.full(len(pages.pair), self.rates[0])
        rank = pages.rank
        unseen = np.full(max(int(rank.max(initial=0)) - len(self.rates), 0), self.unseen)
        return np.concatenate((self.rates, unseen))[rank - 1]

    def walk(self, pages: ResultPages, look: Callable[[Numbers, Floats], Flags]) -> Floats:
        chances = self.marginal(pages)
        look(np.arange(len(chances)), chances)
        return chances
