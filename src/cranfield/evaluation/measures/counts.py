"""Counts: how many topics, documents and relevant documents there are. They are added up over topics, not averaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cranfield.base.parameters import Depth
from cranfield.evaluation.measures.definition import Binary, Measure

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
    from cranfield.evaluation.hits import Hits


class _Count(Measure):
    """Base of the counts."""

    family = "counts"
    aggregate = "sum"
    high = np.inf
    at: ClassVar[str | None] = None
    reference = "Buckley & Voorhees (2005), Retrieval system evaluation, in TREC: Experiment and Evaluation"
    ideal_is_best = False


class NumQ(_Count):
    """The number of topics evaluated.

    Use it to see over how many topics a mean was taken; not to compare systems.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1}, "r": {"b": 1}}, {"q": {"a": 3}}, "NumQ").mean()
    2.0
    """

    formula = "1 for each topic"
    peers = {"trec_eval": ("num_q",)}
    empty_is_zero = False

    def score(self, hits: Hits) -> Floats:
        return np.ones(hits.size)


class NumRet(_Count):
    """The number of documents returned.

    Use it to see how deep a run goes before trusting a measure that looks deep; not as a score.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1}}, {"q": {"a": 3, "b": 2}}, "NumRet").mean()
    2.0
    """

    formula = "documents returned"
    peers = {"trec_eval": ("num_ret",)}

    def score(self, hits: Hits) -> Floats:
        return hits.retrieved.astype(np.float64)


class NumRel(_Count, Binary):
    """The number of relevant documents judged.

    Use it to see how much there is to find; it says nothing about a system.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 2}}, {"q": {"a": 3}}, "NumRel").mean()
    2.0
    """

    formula = "documents judged `rel` or more"
    peers = {"trec_eval": ("num_rel",)}
    empty_is_zero = False

    def score(self, hits: Hits) -> Floats:
        return hits.n_relevant(self.rel).astype(np.float64)


class NumRelRet(_Count, Binary):
    """The number of relevant documents returned.

    Use it for recall-minded work on one collection; not across collections, whose numbers of relevant documents differ.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 2}}, {"q": {"a": 3}}, "NumRelRet").mean()
    1.0
    """

    formula = "documents returned and judged `rel` or more"
    peers = {"trec_eval": ("num_rel_ret",), "ir_measures": ("NumRet(rel={rel})",), "ranx": ("hits",)}
    at = "k"
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        return hits.top(self.k).relevant(self.rel).count().astype(np.float64)


class NumNonrelRet(_Count, Binary):
    """The number of documents returned that were judged and found not relevant.

    Use it to see how many documents judged not relevant a run returns; not without the number of documents returned.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 0}}, {"q": {"a": 3, "b": 2, "c": 1}}, "NumNonrelRet").mean()
    1.0
    """

    formula = "documents returned and judged 0 or more but below `rel`"
    peers = {"trec_eval": ("num_nonrel_judged_ret",)}

    def score(self, hits: Hits) -> Floats:
        return hits.nonrelevant(self.rel).count().astype(np.float64)
