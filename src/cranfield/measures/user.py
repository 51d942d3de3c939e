"""User models: a user who walks down the list and stops with some probability."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.hits import ratio
from cranfield.measures.measure import Choice, Depth, Measure, Real

if TYPE_CHECKING:
    from cranfield.hits import Hits
    from cranfield.kernels.table import Floats


class RBP(Measure):
    """Rank-biased precision: the expected rate of gain of a user who goes on to the next rank with probability p.

    `gain=binary` counts grades of `rel` or more as 1; `gain=grade` takes grade / `max`; `gain=topic` takes grade /
    the topic's highest grade, as trec_eval 10 does.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 1, "c": 1}}, {"q": {"a": 3, "b": 2, "c": 1}}, "RBP(p=0.5)").mean(), 4)
    0.625
    """

    family = "user models"
    formula = "(1 − p) · Σ over ranks r of gain(r) · p^(r − 1)"
    reference = "Moffat & Zobel (2008), Rank-biased precision for measurement of retrieval effectiveness, TOIS"
    peers = {"trec_eval": ("rbp = RBP(p=0.9, gain=topic)",), "ranx": ("rbp{p} = RBP(gain=grade)",)}
    p = Real(0.8, "the probability of going on to the next rank", low=0, high=1, open=True)
    rel = Real(1, "the lowest relevant grade (gain=binary)")
    gain = Choice("binary", "what a grade is worth", "grade", "topic")
    max = Real(1, "the grade that is worth 1 (gain=grade)", low=0, open=True)
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.top(self.k).relevant(self.rel if self.gain == "binary" else 0)
        if self.gain == "binary":
            worth = np.ones(len(found))
        elif self.gain == "grade":
            worth = found.grade / self.max
        else:
            highest = np.zeros(hits.size)
            np.maximum.at(highest, hits.judgments.topic, hits.judgments.grade)
            worth = ratio(found.grade, highest[found.topic])
        return (1 - self.p) * found.sum(worth * self.p ** (found.rank - 1.0))


class RBPresidual(Measure):
    """The residual of rank-biased precision: how much RBP could still grow if all that was not judged were relevant.

    That is the weight of the unjudged documents returned and of all ranks below the end of the list.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "c": 0}}, {"q": {"a": 3, "b": 2, "c": 1}}, "RBPresidual(p=0.5)").mean()
    0.375
    """

    family = "user models"
    formula = "p^n + (1 − p) · Σ over ranks r ≤ n of unjudged documents of p^(r − 1),  n documents returned"
    reference = "Moffat & Zobel (2008), Rank-biased precision for measurement of retrieval effectiveness, TOIS"
    peers = {"trec_eval": ("rbp_resid = RBPresidual(p=0.9)",)}
    at = None
    ideal_is_best = False
    monotone = False
    empty_is_zero = False
    p = Real(0.8, "the probability of going on to the next rank", low=0, high=1, open=True)

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        seen = hits.judged()
        return 1 - (1 - self.p) * seen.sum(self.p ** (seen.rank - 1.0))
