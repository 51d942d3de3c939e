"""Measures for incomplete judgments: what can be said when many documents were never looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.hits import ratio
from cranfield.measures.measure import Choice, Depth, Measure, Real, Whole

if TYPE_CHECKING:
    from cranfield.hits import Hits
    from cranfield.kernels.table import Floats

EPSILON = 1e-5  # Yilmaz & Aslam's smoothing, as in trec_eval


class Bpref(Measure):
    """Binary preference: how seldom a judged nonrelevant document stands above a relevant one.

    Unjudged documents are passed over, so it changes little when judgments are incomplete.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 4, "x": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 0, "c": 1, "d": 0}}, run, "Bpref").mean()
    0.75
    """

    family = "incomplete judgments"
    formula = "1/R · Σ over relevant documents found of (1 − min(n, R) / min(N, R)), n of N judged nonrelevant above"
    reference = "Buckley & Voorhees (2004), Retrieval evaluation with incomplete information, SIGIR"
    peers = {"trec_eval": ("bpref",), "ir_measures": ("BPref",), "ranx": ("bpref",)}
    at = None
    normalised = True
    rel = Real(1, "the lowest relevant grade")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found, wrong = hits.relevant(self.rel), hits.nonrelevant(self.rel)
        grade = hits.judgments.grade
        relevant = hits.n_relevant(self.rel)
        bound = np.minimum(hits.judgments.count((grade >= 0) & (grade < self.rel)), relevant)[found.topic]
        above = np.minimum(found.above(wrong), relevant[found.topic])
        return ratio(found.sum(1 - ratio(above, bound)), relevant)


class infAP(Measure):
    """Inferred average precision: AP estimated from a random sample of the pool. Negative grades are pooled, not judged.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 4, "b": 3, "c": 2}}
    >>> round(evaluate({"q": {"a": 1, "b": -1, "c": 1}}, run, "infAP").mean(), 4)
    1.0
    """

    family = "incomplete judgments"
    formula = "1/R · Σ over relevant documents at r of 1/r + pooled above / r · (rel + ε) / (rel + nonrel + 2ε)"
    reference = "Yilmaz & Aslam (2006), Estimating average precision with incomplete and imperfect judgments, CIKM"
    peers = {"trec_eval": ("infAP",), "ir_measures": ("InfAP",)}
    at = None
    monotone = False
    rel = Real(1, "the lowest relevant grade")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.relevant(self.rel)
        pooled = found.above(hits)
        relevant, wrong = found.nth - 1, found.above(hits.nonrelevant(self.rel))
        share = (relevant + EPSILON) / (relevant + wrong + 2 * EPSILON)
        return ratio(found.sum(1 / found.rank + pooled / found.rank * share), hits.n_relevant(self.rel))


class Judged(Measure):
    """Judged at k: the share of the documents at the first k ranks that were judged. A low value means guesswork.

    A list of fewer than k documents is divided by its length, as ir_measures and the TREC-COVID leaderboards do;
    `divide=k` always divides by k.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 0}}, {"q": {"a": 3, "b": 2}}, "Judged@2").mean()
    0.5
    """

    family = "incomplete judgments"
    formula = "judged documents at ranks 1…k / documents at ranks 1…k"
    reference = "Buckley, Dimmick, Soboroff & Voorhees (2007), Bias and the limits of pooling"
    ideal_is_best = False
    monotone = False
    divide = Choice("returned", "what the number of judged documents is divided by", "k")
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        seen = hits.top(self.k)
        return ratio(seen.judged().count(), self.k if self.divide == "k" and self.k else seen.retrieved)


class Unjudged(Measure):
    """Unjudged at k: the share of the first k ranks that hold a document nobody has judged. High values are a warning.

    It divides by k even where fewer documents were returned, as if judged ones filled the list.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 0}}, {"q": {"a": 3, "b": 2}}, "Unjudged@2").mean()
    0.5
    """

    family = "incomplete judgments"
    formula = "unjudged documents at ranks 1…k / k"
    reference = "Buckley, Dimmick, Soboroff & Voorhees (2007), Bias and the limits of pooling"
    peers = {"trec_eval": ("unj_{k}",)}
    ideal_is_best = False
    monotone = False
    k = Whole(..., "how many ranks are looked at")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        seen = hits.top(self.k)
        return (seen.retrieved - seen.judged().count()) / self.k
