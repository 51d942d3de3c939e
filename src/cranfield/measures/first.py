"""Where the user stops: reciprocal rank and expected reciprocal rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.errors import MeasureError
from cranfield.hits import ratio
from cranfield.measures.measure import Gain, Measure
from cranfield.parameters import Choice, Depth, Real, Whole

if TYPE_CHECKING:
    from cranfield.hits import Hits
    from cranfield.kernels.table import Floats


class RR(Measure):
    """Reciprocal rank: 1 / the rank of the first relevant document, 0 if there is none (MRR is its mean).

    Use it where there is one right answer, or the first is enough: lecture 000 shows that AP then is 1/r, and why 1/r
    is averaged rather than r. Not where users read on, as everything below the first relevant document counts nothing.

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

    def expected(self, hits: Hits) -> Floats:
        """The mean over the orders of ties: each place of the first group with a relevant document may be its place."""
        ties = hits.relevant(self.rel).ties.topmost()
        group, place = ties.places()
        chance = ties.number[group] / (ties.size[group] - place) * ties.none_before()  # that the first one stands here
        rank = ties.first[group] + place
        shown = rank <= (self.k or np.inf)
        total = np.bincount(ties.topic[group][shown], weights=(chance / rank)[shown], minlength=hits.size)
        return np.asarray(total, np.float64)

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """The first relevant document is all that counts."""
        seen = (hits.grade >= self.rel) & (hits.rank <= (self.k or np.inf))
        first = seen & (hits.running_sum(seen) == 1)
        return {"contribution": np.where(first, 1 / hits.rank, np.nan)}


class ERR(Measure):
    """Expected reciprocal rank: the user stops at a document with a probability that grows with its grade.

    `max` is the highest grade of the scale, not of the topic; a document of that grade stops nearly every user. A
    judgment above it is refused: the scale would be wrong, and so would every score. `stop=linear` is NTCIREVAL's
    R = grade / (max + 1); `unjudged=half` takes an unjudged document for one of half the highest grade, as RRE does.

    Use it where grades matter and a very good document ends the search, as in web search; not where users collect
    several documents, which it hardly rewards. Lecture 002 gives the formula.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 2, "b": 4}}, {"q": {"a": 3, "b": 2}}, "ERR@10").mean(), 4)
    0.5684
    """

    family = "first relevant"
    formula = "Σ over ranks r of 1/r · R(r) · Π over j < r of (1 − R(j)),  R = (2^grade − 1) / 2^max"
    reference = "Chapelle, Metzler, Zhang & Grinspan (2009), Expected reciprocal rank for graded relevance, CIKM"
    peers = {"gdeval": ("err", "ERR")}
    max = Real(4, "the highest grade of the scale", low=0, open=True)
    stop = Choice("exp2", "how a grade becomes the probability of stopping", "linear")
    unjudged = Choice("irrelevant", "what an unjudged document is: irrelevant, or half the highest grade", "half")
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        highest = hits.judgments.grade.max(initial=0)
        if highest > self.max:
            raise MeasureError(f"ERR: a grade of {highest:g} is above max={self.max:g}; try ERR(max={highest:g})")
        if self.unjudged == "half":
            return self._with_unjudged(hits.top(self.k))
        found = hits.top(self.k).relevant(0)
        stop = self._stop(found.grade)
        return found.sum(found.product_above(1 - stop) * stop / found.rank)

    def _stop(self, grade: Floats) -> Floats:
        if self.stop == "linear":
            return grade / (self.max + 1)
        probability: Floats = (np.exp2(grade) - 1) / np.exp2(self.max)
        return probability

    def _with_unjudged(self, hits: Hits) -> Floats:
        """The sum over every rank, because every rank may stop the user."""
        depth = int(hits.retrieved.max(initial=0))
        if not depth:
            return np.zeros(hits.size)
        grade = hits.grid(depth)
        rank = np.arange(1, depth + 1)
        stop = self._stop(np.where(np.isnan(grade), self.max / 2, np.maximum(grade, 0)))
        stop[rank > hits.retrieved[:, None]] = 0
        reach = np.cumprod(np.hstack([np.ones((hits.size, 1)), 1 - stop[:, :-1]]), axis=1)
        total: Floats = np.cumsum(reach * stop / rank, axis=1)[:, -1]
        return total

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """How likely a user is to come so far, and to stop."""
        if self.unjudged == "half":
            return {}
        seen = (hits.grade >= 0) & (hits.rank <= (self.k or np.inf))
        stop = np.where(seen, self._stop(np.maximum(hits.grade, 0)), 0)
        reach = hits.product_above(1 - stop)
        columns = {"reach": reach, "stop": stop, "contribution": reach * stop / hits.rank}
        return {name: np.where(seen, values, np.nan) for name, values in columns.items()}


class nERR(Measure):
    """Normalised expected reciprocal rank, as NTCIR computes it: ERR over the ERR of the ideal list, cut at the same rank.

    The chance to stop is gain / (gain of `max` + 1), unlike ERR's, so that nERR is not ERR over its ideal. ir_measures'
    NERR8 to NERR11 are other measures. Use it where one good document is enough and topics have different best documents;
    not to compare with published ERR values. Lecture 002 gives ERR's cascade.

    >>> from cranfield import evaluate
    >>> run = {"q": {"b": 2, "a": 1}}
    >>> round(evaluate({"q": {"a": 3, "b": 0}}, run, "nERR(max=3)@10").mean(), 4)
    0.5
    """

    family = "first relevant"
    formula = "ERR / ERR of the ideal list,  R = gain / (gain(max) + 1)"
    reference = "Sakai (2014), Metrics, statistics, tests, in Bridging Between Information Retrieval and Databases"
    peers = {"NTCIREVAL": ("nERR",)}
    normalised = True
    gain = Gain()
    max = Real(4, "the highest grade of the scale", low=0, open=True)
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        highest = hits.judgments.grade.max(initial=0)
        if highest > self.max:
            raise MeasureError(f"nERR: a grade of {highest:g} is above max={self.max:g}; try nERR(max={highest:g})")
        ideal = hits.judgments.best(Gain.of(self.gain, hits.judgments.grade))
        return ratio(self.cascade(hits), self.cascade(ideal))

    def cascade(self, hits: Hits) -> Floats:
        """ERR with this measure's chance to stop."""
        found = hits.top(self.k).relevant(0)
        worths = [] if isinstance(self.gain, str) else [worth for _, worth in self.gain]
        most = np.max([*worths, *Gain.of(self.gain, np.array([self.max]))])
        stop = Gain.of(self.gain, found.grade) / (most + 1)
        return found.sum(found.product_above(1 - stop) * stop / found.rank)


class FirstRel(Measure):
    """The rank of the first relevant document. Lower is better.

    A topic without one has no value and is left out of the mean; `unfound=1000` counts it as found at rank 1000. Use it
    for known items, with `median(FirstRel)`, to say how far users must read; not its mean, which the worst topics
    dominate, as lectures 000 and 002 point out: that is why RR is averaged instead.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2}, "r": {"a": 3, "b": 2}}
    >>> evaluate({"q": {"b": 1}, "r": {"x": 1}}, run, "FirstRel FirstRel(unfound=10)").means()
    {'FirstRel': 2.0, 'FirstRel(unfound=10)': 6.0}
    """

    family = "first relevant"
    formula = "rank of the first relevant document"
    reference = "Kantor & Voorhees (2000), The TREC-5 confusion track"
    low, high = 1, np.inf
    lower_is_better = True
    ideal_is_best = False
    monotone = False
    empty_is_zero = False
    undefined = "no relevant document was returned (unless `unfound` gives its rank)"
    rel = Real(1, "the lowest relevant grade")
    unfound = Whole(0, "the rank that counts where there is none; 0 leaves the topic out", low=0)
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.top(self.k).relevant(self.rel)
        answer = np.full(hits.size, float(self.unfound) if self.unfound else np.nan)
        first = found.where(found.nth == 1)
        answer[first.topic] = first.rank
        return answer
