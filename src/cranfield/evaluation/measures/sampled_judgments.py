"""Average precision estimated from judgments of a sample: documents were drawn by strata, or with known probabilities.

Both measures use the sampling probabilities of the five-column qrels `prels` and `strata`. Documents without a
probability count as judged with certainty (probability 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.kernels import decode
from cranfield.base.parameters import Choice, Depth
from cranfield.evaluation.hits import ratio
from cranfield.evaluation.measures.definition import Binary

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.evaluation.hits import Hits, Judgments

RELEVANT, SEEN = 1e-5, 3e-5  # sample_eval's smoothing of relevant / sampled


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
    share of the stratum. Use it with qrels that name strata (`strata`, as NIST's sample_eval reads them); not where
    strata are unknown: that is infAP. sample_eval prints it as infAP, reads 1000 ranks and never divides by more:
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
