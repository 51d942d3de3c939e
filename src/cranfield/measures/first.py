"""Where the user stops: reciprocal rank and expected reciprocal rank."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from cranfield.errors import MeasureError
from cranfield.hits import ratio
from cranfield.measures.measure import Binary, Gain, Measure, traced
from cranfield.parameters import Choice, Depth, Real, Whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.hits import Hits
    from cranfield.kernels.table import Floats, Ints


class _Cascade(Measure):
    """A user who stops at a document with a probability that grows with its grade; `max` is the scale's highest."""

    family = "first relevant"
    k = Depth()

    @abstractmethod
    def stopping(self, grade: Floats) -> Floats:
        """How likely a grade ends the search."""

    def cascade(self, hits: Hits) -> Floats:
        """The expected reciprocal rank of where the user stops."""
        found = hits.top(self.k).relevant(0)
        stop = self.stopping(found.grade)
        return found.sum(found.product_above(1 - stop) * stop / found.rank)

    def expected_cascade(self, hits: Hits) -> Floats:
        """The mean of `cascade` over the orders of ties."""
        return expected_stop(
            hits, np.where(hits.grade >= 0, self.stopping(np.maximum(hits.grade, 0)), 0.0), self._worth
        )

    def _worth(self, rank: Ints) -> Floats:
        return np.where(rank <= (self.k or np.inf), 1 / rank, 0.0)

    def assumed(self, highest: float) -> str:
        """The scale, where it is the default and no judgment reaches its end."""
        top = self.values["max"]
        if "max" in self.typed or highest >= top or highest <= 0:
            return ""
        return (
            f"max={top:g} is assumed, and no judgment is above {highest:g}; say max={highest:g} if the scale ends there"
        )

    def refuse_beyond_scale(self, hits: Hits) -> None:
        """Stop at a judgment above the highest grade of the scale."""
        highest, top = hits.judgments.grade.max(initial=0), self.values["max"]
        if highest > top:
            hint = f"try {self.name}(max={highest:g})"
            raise MeasureError(f"{self.name}: a grade of {highest:g} is above max={top:g}; {hint}")


def expected_stop(hits: Hits, stop: Floats, worth: Callable[[Ints], Floats]) -> Floats:
    """The mean, over the orders of ties, of the sum over ranks of worth(rank) · P(stop here, and nowhere above).

    `stop` is each hit's chance to end the search, 0 for documents without a judgment. Whoever stops at place i of a tie
    goes on past i − 1 of its documents and not past i; on average over the orders the chance to go on past i of them is
    the mean product of 1 − stop over all i of them, which is built up document by document.
    """
    ties, total = hits.ties, np.zeros(hits.size)
    start = np.cumsum(ties.number) - ties.number
    reach = np.ones(hits.size)  # the chance that a user of this topic comes to the group in hand
    for g, topic in enumerate(ties.topic.tolist()):
        if ties.size[g] == 1:
            total[topic] += reach[topic] * stop[start[g]] * float(worth(ties.first[g]))
            reach[topic] *= 1 - stop[start[g]]
            continue
        past = np.ones(int(ties.size[g]) + 1)  # past[i]: the mean chance to go on past i documents of the group
        known = int(ties.size[g] - ties.number[g])  # those that stop nobody come first
        for n, chance in enumerate(stop[start[g] : start[g] + ties.number[g]].tolist(), start=known + 1):
            i = np.arange(1, n + 1)
            past[1 : n + 1] = past[1 : n + 1] * (n - i) / n + (1 - chance) * past[:n] * i / n
        ranks = ties.first[g] + np.arange(int(ties.size[g]))
        total[topic] += reach[topic] * float(np.sum((past[:-1] - past[1:]) * worth(ranks)))
        reach[topic] *= past[-1]
    return total


class _First(Binary):
    """Where the first relevant document stands is all that counts."""

    family = "first relevant"
    reference = "Kantor & Voorhees (2000), The TREC-5 confusion track"
    k = Depth()


class RR(_First):
    """Reciprocal rank: 1 / the rank of the first relevant document, 0 if there is none (MRR is its mean).

    Use it where there is one right answer, or the first is enough: lecture 000 shows that AP then is 1/r, and why 1/r
    is averaged rather than r. Not where users read on, as everything below the first relevant document counts nothing.

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
        """The mean over the orders of ties: each place of the first group with a relevant document may be its place."""
        topic, rank, chance = hits.relevant(self.rel).ties.first_places()
        return hits.judgments.sum(topic, np.where(rank <= (self.k or np.inf), chance / rank, 0))

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """The first relevant document is all that counts."""
        seen = (hits.grade >= self.rel) & (hits.rank <= (self.k or np.inf))
        first = seen & (hits.running_sum(seen) == 1)
        return traced(first, {"contribution": 1 / hits.rank})


class ERR(_Cascade):
    """Expected reciprocal rank: the user stops at a document with a probability that grows with its grade.

    `max` is the highest grade of the scale, not of the topic; a document of that grade stops nearly every user. A
    judgment above it is refused: the scale would be wrong, and so would every score. Where nobody gave `max` and no
    judgment reaches it, a note says which scale is assumed. `stop=linear` is NTCIREVAL's
    R = grade / (max + 1); `unjudged=half` takes an unjudged document for one of half the highest grade, as RRE does.

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
        """The sum over every rank, because every rank may stop the user."""
        depth = int(hits.retrieved.max(initial=0))
        if not depth:
            return np.zeros(hits.size)
        grade = hits.grid(depth)
        rank = np.arange(1, depth + 1)
        stop = self.stopping(np.where(np.isnan(grade), self.max / 2, np.maximum(grade, 0)))
        stop[rank > hits.retrieved[:, None]] = 0
        reach = np.cumprod(np.hstack([np.ones((hits.size, 1)), 1 - stop[:, :-1]]), axis=1)
        total: Floats = np.cumsum(reach * stop / rank, axis=1)[:, -1]
        return total

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """How likely a user is to come so far, and to stop."""
        if self.unjudged == "half":
            return {}
        seen = (hits.grade >= 0) & (hits.rank <= (self.k or np.inf))
        stop = np.where(seen, self.stopping(np.maximum(hits.grade, 0)), 0)
        reach = hits.product_above(1 - stop)
        return traced(seen, {"reach": reach, "stop": stop, "contribution": reach * stop / hits.rank})


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
        """The mean over the orders of ties; the ideal list has none."""
        self.refuse_beyond_scale(hits)
        return ratio(self.expected_cascade(hits), self.cascade(Gain.ideal(self.gain, hits)[0]))

    def stopping(self, grade: Floats) -> Floats:
        worths = [] if isinstance(self.gain, str) else [worth for _, worth in self.gain]
        most = np.max([*worths, *Gain.of(self.gain, np.array([self.max]))])
        return np.asarray(Gain.of(self.gain, grade) / (most + 1), np.float64)


class FirstRel(_First):
    """The rank of the first relevant document. Lower is better.

    A topic without one has no value and is left out of the mean; `unfound=1000` counts it as found at rank 1000. Use it
    for known items, with `median(FirstRel)`, to say how far users must read; not its mean, which the worst topics
    dominate, as lectures 000 and 002 point out: that is why RR is averaged instead.

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
    unfound = Whole(0, "the rank that counts where there is none; 0 leaves the topic out", low=0)

    def score(self, hits: Hits) -> Floats:
        found = hits.top(self.k).relevant(self.rel)
        answer = np.full(hits.size, float(self.unfound) if self.unfound else np.nan)
        first = found.where(found.nth == 1)
        answer[first.topic] = first.rank
        return answer
