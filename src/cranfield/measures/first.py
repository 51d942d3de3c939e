"""Where the user stops: reciprocal rank and expected reciprocal rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.errors import MeasureError
from cranfield.measures.measure import Depth, Measure, Real

if TYPE_CHECKING:
    from cranfield.hits import Hits
    from cranfield.kernels.table import Floats


class RR(Measure):
    """Reciprocal rank: 1 / the rank of the first relevant document, 0 if there is none (MRR is its mean).

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"b": 1}}, {"q": {"a": 3, "b": 2}}, "RR").mean()
    0.5
    """

    family = "first relevant"
    formula = "1 / rank of the first relevant document"
    reference = "Kantor & Voorhees (2000), The TREC-5 confusion track"
    peers = {"trec_eval": ("recip_rank", "recip_rank_cut_{k}"), "ir_measures": ("MRR",), "ranx": ("mrr",)}
    normalised = True
    rel = Real(1, "the lowest relevant grade")
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.top(self.k).relevant(self.rel)
        return found.sum((found.nth == 1) / found.rank)


class ERR(Measure):
    """Expected reciprocal rank: the user stops at a document with a probability that grows with its grade.

    `max` is the highest grade of the scale, not of the topic; a document of that grade stops nearly every user. A
    judgment above it is refused: the scale would be wrong, and so would every score.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 2, "b": 4}}, {"q": {"a": 3, "b": 2}}, "ERR@10").mean(), 4)
    0.5684
    """

    family = "first relevant"
    formula = "Σ over ranks r of 1/r · R(r) · Π over j < r of (1 − R(j)),  R = (2^grade − 1) / 2^max"
    reference = "Chapelle, Metzler, Zhang & Grinspan (2009), Expected reciprocal rank for graded relevance, CIKM"
    peers = {"gdeval": ("err", "ERR")}
    max = Real(4, "the highest grade of the scale", low=0, open=True)
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        highest = hits.judgments.grade.max(initial=0)
        if highest > self.max:
            raise MeasureError(f"ERR: a grade of {highest:g} is above max={self.max:g}; try ERR(max={highest:g})")
        found = hits.top(self.k).relevant(0)
        stop = (np.exp2(found.grade) - 1) / np.exp2(self.max)
        reach = found.product_above(1 - stop)
        return found.sum(reach * stop / found.rank)
