"""Measures for incomplete judgments: many documents were never judged, or a sample was drawn and judged.

The measures of samples, statAP and xinfAP, use the sampling probabilities of the five-column qrels `prels` and `strata`.
Documents without a probability count as judged with certainty (probability 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.kernels import decode
from cranfield.base.parameters import Choice, Depth, Whole
from cranfield.evaluation.hits import ratio, returned_documents
from cranfield.evaluation.measures.definition import Binary, Measure, traced

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.evaluation.hits import Hits, Judgments


POOLING = "Buckley, Dimmick, Soboroff & Voorhees (2007), Bias and the limits of pooling"
EPSILON = 1e-5  # Yilmaz & Aslam's smoothing, as in trec_eval
RELEVANT, SEEN = 1e-5, 3e-5  # sample_eval's smoothing of relevant / sampled


class _Coverage(Measure):
    """Measures of how many of the first documents are judged; they do not measure quality."""

    family = "incomplete judgments"
    ideal_is_best = False
    monotone = False


class Bpref(Binary):
    """Binary preference: how rarely documents judged nonrelevant rank above relevant ones.

    Unjudged documents are ignored, so it changes little when judgments are incomplete.

    Use it where few documents are judged and a new system returns unjudged ones; not where judgments are complete,
    because it ignores the ranks and reads only the order.

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

    def score(self, hits: Hits) -> Floats:
        found, most = hits.relevant(self.rel), hits.n_relevant(self.rel)
        return self._share(hits, np.minimum(found.above(hits.nonrelevant(self.rel)), most[found.topic]))

    def _share(self, hits: Hits, above: Floats | Ints) -> Floats:
        """The score, from the number of nonrelevant documents above each relevant one, at most R."""
        found, relevant = hits.relevant(self.rel), hits.n_relevant(self.rel)
        bound = np.minimum(hits.judgments.nonrelevant(self.rel), relevant)[found.topic]
        return ratio(found.sum(1 - ratio(above, bound)), relevant)

    def expected(self, hits: Hits) -> Floats:
        """The mean over the orders of ties: none to all nonrelevant documents of the tie come first, equally likely."""
        found, wrong = hits.relevant(self.rel), hits.nonrelevant(self.rel)
        before = found.above(wrong, found.tied_from)
        tied, most = found.above(wrong, found.tied_to + 1) - before, hits.n_relevant(self.rel)[found.topic]
        above = (_sum_of_least(before + tied + 1, most) - _sum_of_least(before, most)) / (tied + 1.0)
        return self._share(hits, above)

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """How many documents judged nonrelevant are above each relevant one."""
        return traced(hits.grade >= self.rel, {"nonrelevant above": hits.above(hits.nonrelevant(self.rel))})

    def worked(self, hits: Hits) -> tuple[str, dict[str, Any]]:
        """The sum and its two bounds."""
        relevant, others = hits.n_relevant(self.rel), hits.judgments.nonrelevant(self.rel)
        template = "Σ over relevant documents found of (1 − min(n, {R}) / {min(N, R)}) / {R}"
        return template, {"R": relevant, "min(N, R)": np.minimum(others, relevant)}


def _sum_of_least(end: Ints, most: Ints) -> Floats:
    """The sum of min(n, most) over n from 0 up to, and without, `end`."""
    n = np.minimum(end, most + 1).astype(np.float64)
    return n * (n - 1) / 2 + (end - n) * most


class infAP(Binary):
    """Inferred average precision: AP estimated from a random sample of the pool. A negative grade: pooled, but not judged.

    Use it where a random part of the pool was judged and the rest is marked as pooled; not on ordinary qrels, where it
    equals AP if everything is judged, and is a guess if not.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 4, "b": 3, "c": 2}}
    >>> round(evaluate({"q": {"a": 1, "b": -1, "c": 1}}, run, "infAP").mean(), 4)
    1.0
    """

    family = "incomplete judgments"
    formula = (
        "1/R · Σ over relevant documents at r of 1/r + pooled above / r · (relevant above + ε) / (judged above + 2ε)"
    )
    reference = "Yilmaz & Aslam (2006), Estimating average precision with incomplete and imperfect judgments, CIKM"
    peers = {"trec_eval": ("infAP",), "ir_measures": ("InfAP",)}
    at = None
    monotone = False

    def score(self, hits: Hits) -> Floats:
        found = hits.relevant(self.rel)
        return ratio(found.sum(self._precision(found, found.nth - 1, hits)), hits.n_relevant(self.rel))

    def _precision(self, found: Hits, relevant: Floats | Ints, hits: Hits) -> Floats:
        """The expected precision at each document, given the number of relevant documents above it."""
        share = (relevant + EPSILON) / (relevant + found.above(hits.nonrelevant(self.rel)) + 2 * EPSILON)
        return np.asarray(1 / found.rank + found.above(hits) / found.rank * share, np.float64)

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """The pooled documents above each relevant document, and the expected precision."""
        relevant = hits.grade >= self.rel
        precision = self._precision(hits, hits.running_sum(relevant) - 1, hits)
        return traced(relevant, {"pooled above": hits.nth - 1, "expected precision": precision})


class Judged(_Coverage):
    """Judged at k: the share of the documents at the first k ranks that were judged. A low value means that scores of
    the run are guesswork.

    A list of fewer than k documents is divided by its length, as ir_measures and the TREC-COVID leaderboards do;
    `divide=k` always divides by k.

    Report it next to every score of a system that was not pooled. It is not a score itself: it is high for systems that
    resemble the pooled ones.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 0}}, {"q": {"a": 3, "b": 2}}, "Judged@2").mean()
    0.5
    """

    formula = "judged documents at ranks 1…k / documents at ranks 1…k"
    reference = POOLING
    divide = Choice("returned", "the divisor: the number of documents returned (at most k), or k", "k")
    rewrites = {"divide=k": ("/ documents at ranks 1…k", "/ k")}
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        top = hits.top(self.k)
        return ratio(top.judged().count(), self.k if self.divide == "k" and self.k else top.retrieved)


class Unjudged(_Coverage):
    """Unjudged at k: the share of the first k ranks that hold a document nobody has judged. High values are a warning.

    It divides by k even where fewer documents were returned, as if judged ones filled the list.

    Use it to see how much of a result is guesswork; not as a score.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 0}}, {"q": {"a": 3, "b": 2}}, "Unjudged@2").mean()
    0.5
    """

    formula = "unjudged documents at ranks 1…k / k"
    reference = POOLING
    peers = {"trec_eval": ("unj_{k}",)}
    k = Whole(..., "the number of ranks that count (cut-off)")

    def score(self, hits: Hits) -> Floats:
        top = hits.top(self.k)
        return (top.retrieved - top.judged().count()) / self.k


class Hole(_Coverage):
    """Hole at k: the share of the first k ranks that hold a document judged for no topic at all.

    Unjudged asks whether a document was judged for this topic, Hole whether anybody ever looked at it: a document
    judged for another topic is not a hole. It divides by k even where fewer documents were returned, as BEIR does.

    Use it to see whether a new kind of system returns documents that the pool never had; its scores are then lower
    bounds (lecture 000: only with a large pool is it safe to call unjudged documents nonrelevant). It does not measure
    quality.

    >>> from cranfield import evaluate
    >>> qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> evaluate(qrels, {"q1": {"a": 3, "b": 2, "c": 1}}, "Hole@3 Unjudged@3", missing="skip").means()
    {'Hole@3': 0.3333333333333333, 'Unjudged@3': 0.6666666666666666}
    """

    formula = "documents at ranks 1…k that are judged for no topic / k"
    reference = "Thakur, Reimers, Rücklé, Srivastava & Gurevych (2021), BEIR, NeurIPS Datasets and Benchmarks"
    peers = {"beir": ("Hole",)}
    k = Whole(..., "the number of ranks that count (cut-off)")

    def score(self, hits: Hits) -> Floats:
        top = hits.top(self.k)
        if not (top.retrieved > top.count()).any():
            return np.zeros(hits.size)
        judged = hits.judgments.once("documents", lambda: set(hits.judgments.qrels.documents.text()))
        returned = zip(*returned_documents(hits), strict=True)
        holes = [topic for topic, rank, document in returned if rank <= self.k and document not in judged]
        return np.bincount(np.array(holes, np.int64), minlength=hits.size) / self.k


def sampled(judgments: Judgments) -> tuple[Floats, Ints]:
    """For each row of the index, the probability with which its document was sampled, and its stratum's number.

    Strata are numbered in the order of their names. Documents without an entry have probability 1.
    """

    def work() -> tuple[Floats, Ints]:
        probabilities, qrels = judgments.extras.probabilities or {}, judgments.qrels
        keys = [(qrels.topics[topic], decode(qrels.documents[row])) for row, topic in enumerate(qrels.topic.tolist())]
        each = [probabilities.get(key, (1.0, "")) for key in keys]
        numbers = {name: i for i, name in enumerate(sorted({name for _, name in each}))}
        return np.array([p for p, _ in each], np.float64), np.array([numbers[name] for _, name in each], np.int32)

    return judgments.once("sampled", work)


class _Sampled(Binary):
    """Estimates of average precision. They can exceed 1, because each sampled document represents documents that were
    not sampled.
    """

    family = "average precision"
    needs = ("probabilities",)
    high = np.inf
    ideal_is_best = False
    monotone = False
    k = Depth()

    def relevant(self, judgments: Judgments, stands_for: Floats) -> Floats:
        """The estimated number of relevant documents: each sampled one counts as many documents as it represents."""
        relevant = judgments.grade >= self.rel
        return judgments.sum(judgments.topic[relevant], stands_for[judgments.row[relevant]])


class statAP(_Sampled):
    """Statistical average precision: AP estimated from documents that were sampled with known, unequal probabilities.

    Each sampled relevant document stands for 1 / probability documents: itself, and those that were not drawn. The
    estimate can exceed 1. Use it with qrels of the Million Query track and similar ones (`prels`); not with pooled qrels,
    where it is AP. Lectures 000 and 002 describe pooling, which this kind of sampling refines.

    >>> from cranfield import Extras, evaluate
    >>> sampled = {("q", "a"): (1.0, ""), ("q", "c"): (0.5, "")}
    >>> run, qrels = {"q": {"a": 3, "b": 2, "c": 1}}, {"q": {"a": 1, "c": 1}}
    >>> round(evaluate(qrels, run, "statAP", extras=Extras(probabilities=sampled)).mean(), 4)
    0.7778
    """

    formula = (
        "Σ over relevant documents found of (1 + Σ above of 1/π) / rank / π, over Σ over relevant documents of 1/π"
    )
    reference = "Aslam & Pavlu (2007), A practical sampling strategy for efficient retrieval evaluation"
    peers = {"statAP_MQ_eval": ("statMAP",)}

    def score(self, hits: Hits) -> Floats:
        stands_for = 1 / sampled(hits.judgments)[0]
        found = hits.top(self.k).relevant(self.rel)
        weight = stands_for[found.row]
        precision = (1 + found.running_sum(weight) - weight) / found.rank
        return ratio(found.sum(precision * weight), self.relevant(hits.judgments, stands_for))


class xinfAP(_Sampled):
    """Extended inferred average precision: AP estimated from a pool whose strata were sampled at different rates.

    A negative grade marks a document that is in the pool and was not drawn. Precision above a relevant document is
    estimated stratum by stratum from the documents drawn above it, and each relevant document drawn stands for its
    share of the stratum. Use it with qrels that name strata (`strata`, as NIST's sample_eval reads them); without strata,
    use infAP. sample_eval prints this measure as infAP, reads 1000 ranks and divides by at most 1000:
    `xinfAP(divide=cut)@1000`. Lectures 000 and 002 describe pooling, which this makes cheaper.

    >>> from cranfield import Extras, evaluate
    >>> strata = {("q", "a"): (1.0, "top"), ("q", "b"): (0.5, "rest"), ("q", "c"): (0.5, "rest")}
    >>> run, qrels = {"q": {"a": 3, "b": 2, "c": 1}}, {"q": {"a": 1, "b": -1, "c": 1}}
    >>> round(evaluate(qrels, run, "xinfAP", extras=Extras(probabilities=strata)).mean(), 4)
    0.8518
    """

    formula = (
        "1/R · Σ over strata s of N(s)/n(s) · Σ over relevant documents of s at rank r of "
        "(1 + Σ over strata t of pooled above · (relevant above + ε) / (drawn above + 3ε)) / r,  "
        "R = Σ over s of N(s)/n(s) · relevant"
    )
    reference = (
        "Yilmaz, Kanoulas & Aslam (2008), A simple and efficient sampling method for estimating AP and NDCG, SIGIR"
    )
    divide = Choice("relevant", "the divisor: all relevant documents, or no more than k", "cut")
    rewrites = {"divide=cut": ("1/R · ", "1/min(R, k) · ")}

    def score(self, hits: Hits) -> Floats:
        top = hits.top(self.k)
        found = top.relevant(self.rel)
        stratum = sampled(hits.judgments)[1]
        above = np.ones(len(found))
        for s in np.unique(stratum[top.row]):
            pooled = top.where(stratum[top.row] == s)
            relevant, judged = found.above(pooled.relevant(self.rel)), found.above(pooled.judged())
            above += found.above(pooled) * (relevant + RELEVANT) / (judged + SEEN)
        stands_for = self._stands_for(hits.judgments)
        every = self.relevant(hits.judgments, stands_for)
        if self.divide == "cut" and self.k is not None:
            every = np.minimum(every, self.k)
        return ratio(found.sum(stands_for[found.row] * above / found.rank), every)

    def _stands_for(self, judgments: Judgments) -> Floats:
        """For each row of the index, how many documents of its stratum each sampled one stands for."""
        stratum = sampled(judgments)[1]
        many = int(stratum.max(initial=0)) + 1
        place = judgments.topic.astype(np.int64) * many + stratum[judgments.row]
        pooled = np.bincount(place, minlength=judgments.size * many)
        judged = np.bincount(place[judgments.grade >= 0], minlength=judgments.size * many)
        answer = np.zeros(len(stratum))
        answer[judgments.row] = ratio(pooled, judged)[place]
        return answer
