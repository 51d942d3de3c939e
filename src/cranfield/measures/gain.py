"""Cumulated gain: graded relevance, discounted by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.hits import ratio
from cranfield.measures.measure import Choice, Depth, Gain, Measure, Real

if TYPE_CHECKING:
    from cranfield.hits import Hits
    from cranfield.kernels.table import Floats, Ints


def discount(rank: Ints, kind: str, base: float) -> Floats:
    """What a gain at a rank is divided by: log2(rank + 1), or Järvelin and Kekäläinen's log_base(rank) from `base` on."""
    if kind == "log2":
        return np.log2(rank + 1.0)
    return np.maximum(np.log(rank) / np.log(base), 1.0)


class CG(Measure):
    """Cumulated gain: what the returned documents are worth, whatever their order.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 3, "b": 2}}, {"q": {"a": 3, "b": 2}}, "CG@10").mean()
    5.0
    """

    family = "gain"
    formula = "Σ over ranks 1…k of gain"
    reference = "Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS"
    high = np.inf
    gain = Gain()
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.top(self.k)
        return found.sum(Gain.of(self.gain, found.grade))


class DCG(Measure):
    """Discounted cumulated gain: what the returned documents are worth, less the further down they stand.

    `discount=jk` is the original of Järvelin and Kekäläinen: ranks below `base` undiscounted, then log_base(rank).

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 3, "b": 1}}, {"q": {"a": 3, "b": 2}}, "DCG").mean(), 2)
    3.63
    """

    family = "gain"
    formula = "Σ over ranks 1…k of gain / log2(rank + 1)"
    reference = "Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS"
    high = np.inf
    peers = {"trec_eval": ("dcg",), "ranx": ("dcg", "dcg_burges = DCG(gain=exp2)")}
    gain = Gain()
    discount = Choice("log2", "how a gain is discounted by its rank", "jk")
    base = Real(2, "the logarithm's base for discount=jk", low=1, open=True)
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.top(self.k)
        return found.sum(Gain.of(self.gain, found.grade) / discount(found.rank, self.discount, self.base))


class nDCG(Measure):
    """Normalised discounted cumulated gain: DCG over the DCG of the best possible ranking.

    The best ranking is made from all judged documents. It is cut at k (`ideal=cut`), left whole (`ideal=all`), or cut at
    the number of documents returned if that is smaller (`ideal=hits`, Elasticsearch's way).

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 1, "b": 3}}, {"q": {"a": 3, "b": 2}}, "nDCG@10").mean(), 4)
    0.7967
    """

    family = "gain"
    formula = "DCG@k / DCG@k of the ideal ranking"
    reference = "Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS"
    peers = {
        "trec_eval": ("ndcg", "ndcg_cut_{k}"),
        "ir_measures": ("NDCG",),
        "ranx": ("ndcg", "ndcg_burges = nDCG(gain=exp2)"),
        "gdeval": ("gdeval_ndcg = nDCG(gain=exp2)",),
    }
    gain = Gain()
    discount = Choice("log2", "how a gain is discounted by its rank", "jk")
    base = Real(2, "the logarithm's base for discount=jk", low=1, open=True)
    ideal = Choice("cut", "where the ideal ranking ends", "all", "hits")
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found, best = hits.top(self.k), self._best(hits)
        return ratio(self._dcg(found), self._dcg(best))

    def _best(self, hits: Hits) -> Hits:
        best = hits.ideal
        if not isinstance(self.gain, str):
            worth = Gain.of(self.gain, best.grade)
            order = np.lexsort((-worth, best.topic))
            best = type(best)(
                best.judgments, best.topic[order], best.rank, best.grade[order], best.rank, best.rank, best.retrieved
            )
        if self.ideal == "hits":
            limit = hits.top(self.k).retrieved
            return best.where(best.rank <= limit[best.topic])
        return best if self.ideal == "all" else best.top(self.k)

    def _dcg(self, hits: Hits) -> Floats:
        return hits.sum(Gain.of(self.gain, hits.grade) / discount(hits.rank, self.discount, self.base))
