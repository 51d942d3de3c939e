"""Measures of a user who stops at a relevant document: reciprocal rank and expected reciprocal rank."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import MeasureError
from cranfield.base.parameters import Choice, Depth, Real, Whole
from cranfield.evaluation.hits import ratio
from cranfield.evaluation.measures.definition import Binary, Gain, Measure, traced

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.evaluation.hits import Hits


class _Cascade(Measure):
    """A user who stops at a document with a probability that grows with its grade; `max` is the highest grade."""

    family = "first relevant"
    k = Depth()

    @abstractmethod
    def stopping(self, grade: Floats) -> Floats:
        """The probability that a user stops at a document of this grade."""

    def cascade(self, hits: Hits) -> Floats:
        """The expected reciprocal rank at which the user stops."""
        found = hits.top(self.k).relevant(0)
        stop = self.stopping(found.grade)
        return found.sum(found.product_above(1 - stop) * stop / found.rank)

    def expected_cascade(self, hits: Hits) -> Floats:
        """The mean of `cascade` over the orders of ties."""
        stop = np.where(hits.grade >= 0, self.stopping(np.maximum(hits.grade, 0)), 0.0)
        return expected_stop(hits, stop, self._worth)

    def _worth(self, rank: Ints) -> Floats:
        return np.where(rank <= (self.k or np.inf), 1 / rank, 0.0)

    def assumed(self, highest: float) -> str:
        """The assumed scale, if `max` is the default and no judgment reaches it."""
        top = self.values["max"]
        if "max" in self.typed or highest >= top or highest <= 0:
            return ""
        hint = f"set max={highest:g} if the scale ends there"
        return f"max={top:g} is assumed, and no judgment is above {highest:g}; {hint}"

    def refuse_beyond_scale(self, hits: Hits) -> None:
        """Raise MeasureError if a judgment is above the highest grade of the scale."""
        highest, top = hits.judgments.grade.max(initial=0), self.values["max"]
        if highest > top:
            hint = f"try {self.name}(max={highest:g})"
            raise MeasureError(f"{self.name}: a grade of {highest:g} is above max={top:g}; {hint}")


def expected_stop(hits: Hits, stop: Floats, worth: Callable[[Ints], Floats]) -> Floats:
    """The mean, over the orders of ties, of the sum over ranks of worth(rank) · P(stop here, and nowhere above).

    `stop` is each hit's probability to end the search, 0 for unjudged documents. A user who stops at place i of a tie
    passes i − 1 of its documents but not i. Averaged over the orders, the probability to pass i documents is the mean
    product of 1 − stop over all sets of i documents. It is built up document by document.
    """
    ties, total = hits.ties, np.zeros(hits.size)
    start = np.cumsum(ties.number) - ties.number
    reach = np.ones(hits.size)  # the probability that a user of this topic reaches the current group
    for g, topic in enumerate(ties.topic.tolist()):
        if ties.size[g] == 1:
            total[topic] += reach[topic] * stop[start[g]] * float(worth(ties.first[g]))
            reach[topic] *= 1 - stop[start[g]]
            continue
        past = np.ones(int(ties.size[g]) + 1)  # past[i]: the mean probability to pass i documents of the group
        unjudged = int(ties.size[g] - ties.number[g])  # documents that stop nobody come first
        for n, chance in enumerate(stop[start[g] : start[g] + ties.number[g]].tolist(), start=unjudged + 1):
            i = np.arange(1, n + 1)
            past[1 : n + 1] = past[1 : n + 1] * (n - i) / n + (1 - chance) * past[:n] * i / n
        ranks = ties.first[g] + np.arange(int(ties.size[g]))
        total[topic] += reach[topic] * float(np.sum((past[:-1] - past[1:]) * worth(ranks)))
        reach[topic] *= past[-1]
    return total


class _First(Binary):
    """Only the rank of the first relevant document counts."""

    family = "first relevant"
    reference = "Kantor & Voorhees (2000), The TREC-5 confusion track"
    k = Depth()


class RR(_First):
    """Reciprocal rank: 1 / the rank of the first relevant document, 0 if there is none (MRR is its mean).

    Use it where there is one right answer, or the first is enough: lecture 000 shows that AP then is 1/r, and why 1/r
    is averaged rather than r. Not where users read on: nothing below the first relevant document counts.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"b": 1}}, {"q": {"a": 3, "b": 2}}, "RR").mean()
    0.5
    """

    formula = "1 / rank of the first relevant document"
    peers = {"trec_eval": ("recip_rank", "recip_rank_cut_{k}"), "ir_measures": ("MRR",), "ranx": ("mrr",)}
    normalised = True

    def score(self, hits: Hits) -> Floats:
        found = hits.top(self.k).relevant(self.rel)
        return found.sum((found.nth == 1) / found.rank)

    def expected(self, hits: Hits) -> Floats:
        """The mean over the orders of ties: the first relevant document may take any place of its tie group."""
        topic, rank, chance = hits.relevant(self.rel).ties.first_places()
        return hits.judgments.sum(topic, np.where(rank <= (self.k or np.inf), chance / rank, 0))

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """Only the first relevant document contributes."""
        relevant = (hits.grade >= self.rel) & (hits.rank <= (self.k or np.inf))
        first = relevant & (hits.running_sum(relevant) == 1)
        return traced(first, {"contribution": 1 / hits.rank})


class ERR(_Cascade):
    """Expected reciprocal rank: the user stops at a document with a probability that grows with its grade.

    `max` is the highest grade of the scale, not of the topic; a document of that grade stops nearly every user. A
    judgment above it is an error: the scale would be wrong, and so would every score. If `max` was not set and no
    judgment reaches its default, a note names the scale that is assumed. `stop=linear` is NTCIREVAL's
    R = grade / (max + 1); `unjudged=half` treats an unjudged document as one of half the highest grade, as RRE does.

    Use it where grades matter and a very good document ends the search, as in web search; not where users collect
    several documents, which it hardly rewards. Lecture 002 gives the formula.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 2, "b": 4}}, {"q": {"a": 3, "b": 2}}, "ERR@10").mean(), 4)
    0.5684
    """

    formula = "Σ over ranks r of 1/r · R(r) · Π over j < r of (1 − R(j)),  R = (2^grade − 1) / 2^max"
    reference = "Chapelle, Metzler, Zhang & Grinspan (2009), Expected reciprocal rank for graded relevance, CIKM"
    peers = {"gdeval": ("err", "ERR")}
    max = Real(4, "the highest grade of the scale", low=0, open=True)
    stop = Choice("exp2", "how a grade becomes the probability of stopping", "linear")
    unjudged = Choice("irrelevant", "what an unjudged document is: irrelevant, or half the highest grade", "half")
    rewrites = {
        "stop=linear": ("(2^grade − 1) / 2^max", "grade / (max + 1)"),
        "unjudged=half": ("", ",  grade = max / 2 where unjudged"),
    }

    def score(self, hits: Hits) -> Floats:
        self.refuse_beyond_scale(hits)
        return self._with_unjudged(hits.top(self.k)) if self.unjudged == "half" else self.cascade(hits)

    def expected(self, hits: Hits) -> Floats | None:
        """The mean over the orders of ties; no formula for `unjudged=half`."""
        self.refuse_beyond_scale(hits)
        return None if self.unjudged == "half" else self.expected_cascade(hits)

    def stopping(self, grade: Floats) -> Floats:
        if self.stop == "linear":
            return grade / (self.max + 1)
        probability: Floats = np.exp2(grade - self.max) - np.exp2(-self.max)  # (2^grade − 1) / 2^max, for any max
        return probability

    def _with_unjudged(self, hits: Hits) -> Floats:
        """The sum over all ranks, because every document may stop the user."""
        depth = int(hits.retrieved.max(initial=0))
        if not depth:
            return np.zeros(hits.size)
        grade = hits.grid(depth)
        rank = np.arange(1, depth + 1)
        stop = self.stopping(np.where(np.isnan(grade), self.max / 2, np.maximum(grade, 0)))
        stop[rank > hits.retrieved[:, None]] = 0
        reach = np.cumprod(np.hstack([np.ones((hits.size, 1)), 1 - stop[:, :-1]]), axis=1)
        return np.cumsum(reach * stop / rank, axis=1)[:, -1]

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """The probability that a user reaches the document, and stops there."""
        if self.unjudged == "half":
            return {}
        judged = (hits.grade >= 0) & (hits.rank <= (self.k or np.inf))
        stop = np.where(judged, self.stopping(np.maximum(hits.grade, 0)), 0)
        reach = hits.product_above(1 - stop)
        return traced(judged, {"reach": reach, "stop": stop, "contribution": reach * stop / hits.rank})


class nERR(_Cascade):
    """Normalised expected reciprocal rank, as NTCIR computes it: ERR over the ERR of the ideal list, cut at the same rank.

    The chance to stop is gain / (gain of `max` + 1), unlike ERR's, so that nERR is not ERR over its ideal. ir_measures'
    NERR8 to NERR11 are other measures. Use it where one good document is enough and topics have different best documents;
    not to compare with published ERR values. Lecture 002 gives ERR's cascade.

    >>> from cranfield import evaluate
    >>> run = {"q": {"b": 2, "a": 1}}
    >>> round(evaluate({"q": {"a": 3, "b": 0}}, run, "nERR(max=3)@10").mean(), 4)
    0.5
    """

    formula = "ERR / ERR of the ideal list,  R = gain / (gain(max) + 1)"
    reference = "Sakai (2014), Metrics, statistics, tests, in Bridging Between Information Retrieval and Databases"
    peers = {"NTCIREVAL": ("nERR",)}
    normalised = True
    gain = Gain()
    max = Real(4, "the highest grade of the scale", low=0, open=True)

    def score(self, hits: Hits) -> Floats:
        self.refuse_beyond_scale(hits)
        return ratio(self.cascade(hits), self.cascade(Gain.ideal(self.gain, hits)[0]))

    def expected(self, hits: Hits) -> Floats:
        """The mean over the orders of ties; the ideal list has no ties."""
        self.refuse_beyond_scale(hits)
        return ratio(self.expected_cascade(hits), self.cascade(Gain.ideal(self.gain, hits)[0]))

    def stopping(self, grade: Floats) -> Floats:
        worths = [] if isinstance(self.gain, str) else [worth for _, worth in self.gain]
        most = np.max([*worths, *Gain.of(self.gain, np.array([self.max]))])
        return np.asarray(Gain.of(self.gain, grade) / (most + 1), np.float64)


class FirstRel(_First):
    """The rank of the first relevant document. Lower is better.

    A topic without a relevant document in the list has no value and is left out of the mean; `unfound=1000` counts it
    as found at rank 1000. Use it for known items, with `median(FirstRel)`, to say how far users must read. Do not use
    its mean, which the worst topics dominate; for this reason RR is averaged instead (lectures 000 and 002).

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2}, "r": {"a": 3, "b": 2}}
    >>> evaluate({"q": {"b": 1}, "r": {"x": 1}}, run, "FirstRel FirstRel(unfound=10)").means()
    {'FirstRel': 2.0, 'FirstRel(unfound=10)': 6.0}
    """

    formula = "rank of the first relevant document"
    low, high = 1, np.inf
    lower_is_better = True
    ideal_is_best = False
    monotone = False
    empty_is_zero = False
    undefined = "no relevant document was returned (unless `unfound` gives its rank)"
    unfound = Whole(0, "the rank of a topic without a relevant document; 0 leaves the topic out", low=0)

    def score(self, hits: Hits) -> Floats:
        found = hits.top(self.k).relevant(self.rel)
        answer = np.full(hits.size, float(self.unfound) if self.unfound else np.nan)
        first = found.where(found.nth == 1)
        answer[first.topic] = first.rank
        return answer
