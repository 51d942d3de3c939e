"""Measures for incomplete judgments: what can be said when many documents were never looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.hits import ratio
from cranfield.measures.measure import Measure
from cranfield.parameters import Choice, Depth, Real, Whole

if TYPE_CHECKING:
    from cranfield.hits import Hits
    from cranfield.kernels.table import Floats

EPSILON = 1e-5  # Yilmaz & Aslam's smoothing, as in trec_eval


class Bpref(Measure):
    """Binary preference: how seldom a judged nonrelevant document stands above a relevant one.

    Unjudged documents are passed over, so it changes little when judgments are incomplete.

    Use it where judgments are thin and a new system returns documents nobody looked at; not where judgments are
    complete, since it ignores how far down the documents stand.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 4, "x": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 0, "c": 1, "d": 0}}, run, "Bpref").mean()
    0.75
    """

    family = "incomplete judgments"
    formula = "1/R · Σ over relevant documents found of (1 − min(n, R) / min(N, R)), n of N judged nonrelevant above"
    reference = "Buckley & Voorhees (2004), Retrieval evaluation with incomplete information, SIGIR"
    peers = {"trec_eval": ("bpref", "gm_bpref = gmean(Bpref)"), "ir_measures": ("BPref",), "ranx": ("bpref",)}
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

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """How many judged nonrelevant documents stand above each relevant one."""
        above = hits.above(hits.nonrelevant(self.rel)).astype(np.float64)
        return {"nonrelevant above": np.where(hits.grade >= self.rel, above, np.nan)}

    def worked(self, hits: Hits) -> tuple[str, dict[str, Any]]:
        """What is counted, and the two bounds."""
        grade, relevant = hits.judgments.grade, hits.n_relevant(self.rel)
        others = hits.judgments.count((grade >= 0) & (grade < self.rel))
        template = "Σ over relevant documents found of (1 − min(n, {R}) / {min(N, R)}) / {R}"
        return template, {"R": relevant, "min(N, R)": np.minimum(others, relevant)}


class infAP(Measure):
    """Inferred average precision: AP estimated from a random sample of the pool. Negative grades are pooled, not judged.

    Use it where a random part of the pool was judged and the rest is marked as pooled; not on ordinary qrels, where it
    equals AP or guesses.

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

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """What stands above each relevant document, and the precision expected there."""
        seen = hits.grade >= self.rel
        pooled, wrong = hits.nth - 1, hits.above(hits.nonrelevant(self.rel))
        relevant = hits.running_sum(seen) - 1
        share = (relevant + EPSILON) / (relevant + wrong + 2 * EPSILON)
        columns: dict[str, Any] = {
            "pooled above": pooled,
            "expected precision": 1 / hits.rank + pooled / hits.rank * share,
        }
        return {name: np.where(seen, values, np.nan) for name, values in columns.items()}


class Judged(Measure):
    """Judged at k: the share of the documents at the first k ranks that were judged. A low value means guesswork.

    A list of fewer than k documents is divided by its length, as ir_measures and the TREC-COVID leaderboards do;
    `divide=k` always divides by k.

    Use it beside every score of a system that was not pooled; not as a score: it rewards resembling the pooled systems.

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

    Use it to see how much of a result is guesswork; not as a score.

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


class Hole(Measure):
    """Hole at k: the share of the first k ranks that hold a document judged for no topic at all.

    Unjudged asks whether a document was judged for this topic, Hole whether anybody ever looked at it: a document
    judged for another topic is none. It divides by k even where fewer documents were returned, as BEIR does.

    Use it to see whether a new kind of system brings documents that the pool never knew, and its score is a lower bound
    (000 warns that calling unjudged documents nonrelevant is safe only with a large pool); not as a measure of quality.

    >>> from cranfield import evaluate
    >>> qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> evaluate(qrels, {"q1": {"a": 3, "b": 2, "c": 1}}, "Hole@3 Unjudged@3", missing="skip").means()
    {'Hole@3': 0.3333333333333333, 'Unjudged@3': 0.6666666666666666}
    """

    family = "incomplete judgments"
    formula = "documents at ranks 1…k that are judged for no topic / k"
    reference = "Thakur, Reimers, Rücklé, Srivastava & Gurevych (2021), BEIR, NeurIPS Datasets and Benchmarks"
    peers = {"beir": ("Hole",)}
    ideal_is_best = False
    monotone = False
    k = Whole(..., "how many ranks are looked at")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        seen = hits.top(self.k)
        if not (seen.retrieved > seen.count()).any():
            return np.zeros(hits.size)
        listing, kept = hits.listing, hits.judgments.kept
        known = kept["documents"] = kept.get("documents") or set(hits.judgments.qrels.documents.text())
        holes = [
            topic
            for topic, rank, document in zip(listing.topic, listing.rank, listing.documents, strict=True)
            if rank <= self.k and document not in known
        ]
        return np.bincount(np.array(holes, np.int64), minlength=hits.size) / self.k
