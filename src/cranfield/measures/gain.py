"""Cumulated gain: graded relevance, discounted by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cranfield.hits import ratio
from cranfield.measures.measure import Choice, Depth, Gain, Measure, Real

if TYPE_CHECKING:
    from cranfield.hits import Hits
    from cranfield.kernels.table import Floats, Ints


Gains: TypeAlias = "str | tuple[tuple[float, float], ...]"
SYNONYMS = {"gains": "gain", "dcg=log2": "gain=linear", "dcg=exp-log2": "gain=exp2"}  # ir_measures' spellings


def discount(rank: Ints, kind: str, base: float) -> Floats:
    """What a gain at a rank is divided by: log2(rank + 1), or Järvelin and Kekäläinen's log_base(rank) from `base` on."""
    at = rank.astype(np.float64)
    if kind == "log2":
        return np.log2(at + 1)
    logarithm: Floats = np.log(at) / np.log(base)
    return np.maximum(logarithm, 1.0)


def ideal(hits: Hits, gain: Gains) -> tuple[Hits, Floats]:
    """The hits of the best possible run for these gains, and the gain of each."""
    best = hits.ideal if isinstance(gain, str) else hits.judgments.best(Gain.of(gain, hits.judgments.grade))
    return best, Gain.of(gain, best.grade)


def total_at(hits: Hits, values: Floats, topic: Ints, rank: Ints) -> Floats:
    """For each pair of a topic and a rank, the sum of the values of the hits at that rank and above."""
    depth = 1 + int(hits.rank.max(initial=0))
    place = hits.topic.astype(np.int64) * depth + hits.rank
    start = np.searchsorted(place, topic.astype(np.int64) * depth)
    here = np.searchsorted(place, topic.astype(np.int64) * depth + np.minimum(rank, depth - 1), side="right")
    return np.where(here > start, np.r_[0.0, hits.running_sum(values)][here], 0.0)


def ndcg_rel(hits: Hits, gain: Floats, best: Hits, worth: Floats) -> Floats:
    """nDCG at each document of a gain above 0, at the list's end for those not found; the mean of them."""
    step, ideal_step = gain / np.log2(hits.rank + 1.0), worth / np.log2(best.rank + 1.0)
    found, wanted = hits.where(gain > 0), best.count()
    seen = found.sum(hits.running_sum(step)[gain > 0] / total_at(best, ideal_step, found.topic, found.rank))
    unseen = ratio((wanted - found.count()) * hits.sum(step), best.sum(ideal_step))
    return ratio(seen + unseen, wanted)


def r_ndcg(hits: Hits, gain: Floats, best: Hits, worth: Floats, slack: int = 0) -> Floats:
    """nDCG where the ideal gain changes, and at the end of a list longer than the ideal one by more than `slack`."""
    step, ideal_step = gain / np.log2(hits.rank + 1.0), worth / np.log2(best.rank + 1.0)
    ends = best.where(np.r_[(np.diff(best.topic) != 0) | (np.diff(worth) != 0), True][: len(best)])
    total = ends.sum(
        total_at(hits, step, ends.topic, ends.rank) / total_at(best, ideal_step, ends.topic, ends.rank),
    )
    longer = (hits.retrieved > best.count() + slack) & (best.count() > 0)
    total = total + np.where(longer, ratio(hits.sum(step), best.sum(ideal_step)), 0.0)
    return ratio(total, ends.count() + longer)


def normalised_gain(hits: Hits, gain: Floats, best: Hits, worth: Floats) -> Floats:
    """Each gain over the logarithm of how far the run lags behind, over the total ideal gain."""
    beyond = np.maximum(hits.rank - best.count()[hits.topic], 0)
    lag = total_at(best, np.maximum(worth, 1.0), hits.topic, hits.rank) + beyond - hits.running_sum(gain)
    scored = hits.where(gain != 0)
    return ratio(scored.sum(gain[gain != 0] / np.log2(2.0 + lag[gain != 0])), best.sum(worth))


class CG(Measure):
    """Cumulated gain: what the returned documents are worth, whatever their order.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 3, "b": 2}}, {"q": {"a": 3, "b": 2}}, "CG@10").mean()
    5.0
    """

    family = "gain"
    formula = "Σ over ranks 1…k of gain"
    reference = "Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS"
    high = np.inf
    synonyms = SYNONYMS
    gain = Gain()
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.top(self.k)
        return found.sum(Gain.of(self.gain, found.grade))


class DCG(Measure):
    """Discounted cumulated gain: what the returned documents are worth, less the further down they stand.

    `discount=jk` is the original of Järvelin and Kekäläinen: ranks below `base` undiscounted, then log_base(rank).

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 3, "b": 1}}, {"q": {"a": 3, "b": 2}}, "DCG").mean(), 2)
    3.63
    """

    family = "gain"
    formula = "Σ over ranks 1…k of gain / log2(rank + 1)"
    reference = "Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS"
    high = np.inf
    peers = {"trec_eval": ("dcg",), "ranx": ("dcg", "dcg_burges = DCG(gain=exp2)")}
    synonyms = SYNONYMS
    gain = Gain()
    discount = Choice("log2", "how a gain is discounted by its rank", "jk")
    base = Real(2, "the logarithm's base for discount=jk", low=1, open=True)
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.top(self.k)
        return found.sum(Gain.of(self.gain, found.grade) / discount(found.rank, self.discount, self.base))


class nDCG(Measure):
    """Normalised discounted cumulated gain: DCG over the DCG of the best possible ranking.

    The best ranking is made from all judged documents. It is cut at k (`ideal=cut`), left whole (`ideal=all`), or cut at
    the number of documents returned if that is smaller (`ideal=hits`, Elasticsearch's way).

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 1, "b": 3}}, {"q": {"a": 3, "b": 2}}, "nDCG@10").mean(), 4)
    0.7967
    """

    family = "gain"
    formula = "DCG@k / DCG@k of the ideal ranking"
    reference = "Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS"
    peers = {
        "trec_eval": ("ndcg", "ndcg_cut_{k}"),
        "ir_measures": ("NDCG",),
        "ranx": ("ndcg", "ndcg_burges = nDCG(gain=exp2)"),
        "gdeval": ("gdeval_ndcg = nDCG(gain=exp2)",),
    }
    normalised = True
    synonyms = SYNONYMS
    gain = Gain()
    discount = Choice("log2", "how a gain is discounted by its rank", "jk")
    base = Real(2, "the logarithm's base for discount=jk", low=1, open=True)
    ideal = Choice("cut", "where the ideal ranking ends", "all", "hits")
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found, best = hits.top(self.k), self._best(hits)
        return ratio(self._dcg(found), self._dcg(best))

    def _best(self, hits: Hits) -> Hits:
        best = hits.ideal
        if not isinstance(self.gain, str):
            best = hits.judgments.best(Gain.of(self.gain, hits.judgments.grade))
        if self.ideal == "hits":
            limit = hits.top(self.k).retrieved
            return best.where(best.rank <= limit[best.topic])
        return best if self.ideal == "all" else best.top(self.k)

    def _dcg(self, hits: Hits) -> Floats:
        return hits.sum(Gain.of(self.gain, hits.grade) / discount(hits.rank, self.discount, self.base))


class IdealDCG(Measure):
    """The discounted cumulated gain of the best possible ranking: what nDCG divides by. It is the same for every run.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 1, "b": 3}}, {"q": {"a": 3}}, "IdealDCG").mean(), 2)
    3.63
    """

    family = "gain"
    formula = "DCG@k of the ideal ranking"
    reference = "Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS"
    high = np.inf
    empty_is_zero = False
    peers = {"trec_eval": ("ideal_dcg",)}
    synonyms = SYNONYMS
    gain = Gain()
    discount = Choice("log2", "how a gain is discounted by its rank", "jk")
    base = Real(2, "the logarithm's base for discount=jk", low=1, open=True)
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        best = ideal(hits, self.gain)[0].top(self.k)
        return best.sum(Gain.of(self.gain, best.grade) / discount(best.rank, self.discount, self.base))


class nDCGrel(Measure):
    """nDCG averaged over the relevant documents: nDCG at the rank of each, and at the list's end for those not found.

    nDCG rises and falls with the cut-off, at other cut-offs for every topic; this asks where it matters.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 1, "b": 1}}, {"q": {"x": 3, "a": 2}}, "nDCGrel").mean(), 4)
    0.3869
    """

    family = "gain"
    formula = "mean over documents of a gain above 0 of nDCG@rank"
    reference = "Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS"
    peers = {"trec_eval": ("ndcg_rel",)}
    at = None
    normalised = True
    gain = Gain()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        return ndcg_rel(hits, Gain.of(self.gain, hits.grade), *ideal(hits, self.gain))


class Rndcg(Measure):
    """nDCG averaged over the ends of the gain levels: what R-precision is to precision, for graded judgments.

    With 5 documents of grade 2 and 10 of grade 1 it is the mean of nDCG@5, nDCG@15 and, if more than 15 documents were
    returned, nDCG of the whole list.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 2, "b": 1}}, {"q": {"b": 2, "a": 1}}, "Rndcg").mean(), 4)
    0.6799
    """

    family = "gain"
    formula = (
        "mean of nDCG@c, c the number of documents of each gain above 0 or more; and at the list's end if it is longer"
    )
    reference = "Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS"
    peers = {"trec_eval": ("Rndcg",)}
    at = None
    normalised = True
    gain = Gain()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        return r_ndcg(hits, Gain.of(self.gain, hits.grade), *ideal(hits, self.gain))


class G(Measure):
    """Normalised gain: each document's gain, discounted by how far the run lags behind the ideal one at its rank.

    Between average precision and nDCG: a document that comes late because better ones came first loses nothing.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 2, "b": 1}}, {"q": {"b": 2, "a": 1}}, "G").mean(), 4)
    0.877
    """

    family = "gain"
    formula = (
        "Σ gain / log2(2 + Σ max(ideal gain, 1) − Σ gain) / Σ ideal gain, the inner sums down to and with this rank"
    )
    reference = "Buckley (2008), an experimental measure of trec_eval 9"
    peers = {"trec_eval": ("G",)}
    at = None
    monotone = False
    gain = Gain()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        return normalised_gain(hits, Gain.of(self.gain, hits.grade), *ideal(hits, self.gain))


class binG(Measure):
    """Binary normalised gain: each relevant document counts less the more nonrelevant ones stand above it.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "x": 2, "b": 1}}, "binG").mean(), 4)
    0.8155
    """

    family = "gain"
    formula = "1/R · Σ over relevant documents found of 1 / log2(2 + nonrelevant documents above)"
    reference = "Buckley (2008), an experimental measure of trec_eval 9"
    peers = {"trec_eval": ("binG",)}
    at = None
    normalised = True
    rel = Real(1, "the lowest relevant grade")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.relevant(self.rel)
        return ratio(found.sum(1 / np.log2(2.0 + found.rank - found.nth)), hits.n_relevant(self.rel))
