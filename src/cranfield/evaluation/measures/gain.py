"""Cumulated gain: graded relevance, discounted by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.parameters import Choice, Depth, Real, number_text
from cranfield.evaluation.hits import ratio
from cranfield.evaluation.measures.definition import Binary, Gain, Measure, traced

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.evaluation.hits import Hits
    from cranfield.evaluation.measures.definition import Gains


SYNONYMS = {"gains": "gain", "dcg=log2": "gain=linear", "dcg=exp-log2": "gain=exp2"}  # ir_measures' spellings


EXPERIMENT = "Buckley (2008), an experimental measure of trec_eval 9"


class _Gained(Measure):
    """Measures of the gains of documents."""

    family = "gain"
    reference = "Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS"
    gain = Gain()


class _Discounted(_Gained):
    """Measures of gains that are discounted by rank."""

    synonyms = SYNONYMS
    level = "lowest"  # trec_eval's -l leaves gains as they are, ranx's -l2 does not
    discount = Choice("log2", "how a gain is discounted by its rank", "jk")
    base = Real(2, "the base of the logarithm, for discount=jk", low=1, open=True)
    lowest = Real(0, "the lowest grade with a gain; lower grades have gain 0", low=0)
    k = Depth()
    rewrites = {"discount=jk": ("", ",  DCG = Σ gain / max(1, log(rank) / log(base))")}

    def discounts(self, rank: Ints) -> Floats:
        """The divisor of each gain: log2(rank + 1), or Järvelin and Kekäläinen's log_base(rank) from rank `base` on."""
        deepest = int(rank.max(initial=0))
        if deepest < len(rank):  # hits of many topics: compute each rank's logarithm once
            return self._divisors(np.arange(1, deepest + 1, dtype=np.float64))[rank - 1]
        return self._divisors(rank.astype(np.float64))

    def _divisors(self, at: Floats) -> Floats:
        if self.discount == "log2":
            return np.log2(at + 1)
        logarithm: Floats = np.log(at) / np.log(self.base)
        return np.maximum(logarithm, 1.0)

    def worth(self, grade: Floats) -> Floats:
        """The gain of each grade; 0 for grades below `lowest`."""
        gain = Gain.of(self.gain, grade)
        return np.where((grade > 0) & (grade < self.lowest), 0.0, gain) if self.lowest > 0 else gain

    def best(self, hits: Hits) -> Hits:
        """The hits of the best possible run, without a cut-off."""
        if self.lowest > 0 and not isinstance(self.gain, str):
            return hits.judgments.best(self.worth(hits.judgments.grade), 0.0)
        return ideal(hits, self.gain)[0]

    def dcg(self, hits: Hits) -> Floats:
        """The discounted gain of all hits."""
        hits = hits.above_zero() if self.gain in ("linear", "exp2") else hits  # other hits add nothing
        return hits.sum(self.worth(hits.grade) / self.discounts(hits.rank))

    def gained(self, hits: Hits) -> Floats:
        """The discounted gain of each hit; 0 below rank k."""
        return np.where(hits.rank <= (self.k or np.inf), self.worth(hits.grade) / self.discounts(hits.rank), 0.0)

    def expected_dcg(self, hits: Hits) -> Floats:
        """The mean over the orders of ties: each document at the mean discount of its tie group's ranks."""
        counts = averaged(hits, np.r_[0.0, 1 / self.discounts(ranks(hits, self.k))])
        return hits.sum(self.worth(hits.grade) * counts)

    def steps(self, hits: Hits) -> dict[str, Floats]:
        """Gain, discount and their quotient, within the first k ranks."""
        worth, divisor = self.worth(hits.grade), self.discounts(hits.rank)
        columns = {"gain": worth, "discount": divisor, "gain / discount": worth / divisor}
        return traced(hits.rank <= (self.k or np.inf), columns)


def ideal(hits: Hits, gain: Gains) -> tuple[Hits, Floats]:
    """The hits of the best possible run and their gains; documents with a negative gain come last."""
    return Gain.ideal(gain, hits, -np.inf if Gain.signed(gain) else 0.0)


def averaged(hits: Hits, weight: Floats) -> Floats:
    """For each hit, the mean weight of the ranks that its tie group covers; `weight[r]` belongs to rank r."""
    upto = np.cumsum(weight)
    end = len(weight) - 1
    first, last = np.minimum(hits.tied_from - 1, end), np.minimum(hits.tied_to, end)
    return (upto[last] - upto[first]) / (hits.tied_to - hits.tied_from + 1)


def ranks(hits: Hits, k: int | None) -> Ints:
    """1, 2 … down to the deepest rank or the cut-off."""
    depth = int(hits.retrieved.max(initial=0))
    return np.arange(1, min(depth, k or depth) + 1, dtype=np.int32)


def ndcg_rel(hits: Hits, gain: Floats, best: Hits, worth: Floats) -> Floats:
    """The mean of nDCG at the rank of each document with a gain above 0; at the list's end for documents not found."""
    step, ideal_step = gain / np.log2(hits.rank + 1.0), worth / np.log2(best.rank + 1.0)
    found, total = hits.where(gain > 0), best.count()
    returned = found.sum(hits.running_sum(step)[gain > 0] / best.total_at(ideal_step, found.topic, found.rank))
    unseen = ratio((total - found.count()) * hits.sum(step), best.sum(ideal_step))
    return ratio(returned + unseen, total)


def r_ndcg(hits: Hits, gain: Floats, best: Hits, worth: Floats, slack: int = 0) -> Floats:
    """The mean of nDCG where the ideal gain changes, and at the end of a list longer than the ideal by over `slack`."""
    step, ideal_step = gain / np.log2(hits.rank + 1.0), worth / np.log2(best.rank + 1.0)
    last = np.r_[(np.diff(best.topic) != 0) | (np.diff(worth) != 0), True][: len(best)]
    ends = best.where(last & (worth > 0))
    total = ends.sum(hits.total_at(step, ends.topic, ends.rank) / best.total_at(ideal_step, ends.topic, ends.rank))
    longer = (hits.retrieved > best.count() + slack) & (best.count() > 0)
    total = total + np.where(longer, ratio(hits.sum(step), best.sum(ideal_step)), 0.0)
    return ratio(total, ends.count() + longer)


def normalised_gain(hits: Hits, gain: Floats, best: Hits, worth: Floats) -> Floats:
    """Each gain divided by the logarithm of how far the run lags behind the ideal, over the total ideal gain."""
    beyond = np.maximum(hits.rank - best.count()[hits.topic], 0)
    lag = best.total_at(np.maximum(worth, 1.0), hits.topic, hits.rank) + beyond - hits.running_sum(gain)
    scored = hits.where(gain != 0)
    return ratio(scored.sum(gain[gain != 0] / np.log2(2.0 + lag[gain != 0])), best.sum(worth))


class CG(_Gained):
    """Cumulated gain: the total gain of the returned documents; their order does not matter.

    Use it to say how much a user gains who reads k documents to the end (lecture 001). Do not use it to compare rankings,
    because it ignores their order, nor to average over topics with different numbers of relevant documents.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 3, "b": 2}}, {"q": {"a": 3, "b": 2}}, "CG@10").mean()
    5.0
    """

    formula = "Σ over ranks 1…k of gain"
    high = np.inf
    synonyms = SYNONYMS
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        found = hits.top(self.k)
        return found.sum(Gain.of(self.gain, found.grade))

    def shares(self, hits: Hits) -> Floats:
        return np.where(hits.rank <= (self.k or np.inf), Gain.of(self.gain, hits.grade), 0.0)

    def expected(self, hits: Hits) -> Floats:
        """The mean over the orders of ties."""
        return hits.sum(Gain.of(self.gain, hits.grade) * averaged(hits, np.r_[0.0, np.ones(len(ranks(hits, self.k)))]))

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """The gain of each document."""
        return traced(hits.rank <= (self.k or np.inf), {"contribution": Gain.of(self.gain, hits.grade)})


class DCG(_Discounted):
    """Discounted cumulated gain: the total gain of the returned documents, discounted by rank.

    `discount=jk` is the original of Järvelin and Kekäläinen: ranks below `base` undiscounted, then log_base(rank). Use it
    on one topic, or to look into nDCG: a gain further down counts for less, since users may not get there (lecture 001).
    Not to average over topics: those with many good documents would dominate (lecture 001), so normalise (nDCG).

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 3, "b": 1}}, {"q": {"a": 3, "b": 2}}, "DCG").mean(), 2)
    3.63
    """

    formula = "Σ over ranks 1…k of gain / log2(rank + 1)"
    high = np.inf
    peers = {"trec_eval": ("dcg",), "ranx": ("dcg", "dcg_burges = DCG(gain=exp2)")}
    rewrites = {"discount=jk": ("log2(rank + 1)", "max(1, log(rank) / log(base))")}

    def score(self, hits: Hits) -> Floats:
        return self.dcg(hits.top(self.k))

    def shares(self, hits: Hits) -> Floats:
        return self.gained(hits)

    def expected(self, hits: Hits) -> Floats:
        return self.expected_dcg(hits)

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """Gain, discount and contribution."""
        columns = self.steps(hits)
        columns["contribution"] = columns.pop("gain / discount")
        return columns


class nDCG(_Discounted):
    """Normalised discounted cumulated gain: DCG over the DCG of the best possible ranking.

    The best ranking is made from all judged documents. It is cut at k (`ideal=cut`), left whole (`ideal=all`), or cut at
    the number of documents returned if that is smaller (`ideal=hits`, Elasticsearch's way). A negative grade gains
    nothing, or with `gain=signed` and `gain=signed-exp2` costs something, in the ideal ranking as well. With `lowest=2` a
    grade of 1 gains nothing either, as in ranx's `ndcg-l2`; `rel` has no effect.
    NTCIREVAL prints this measure as MSnDCG; its own nDCG is `discount=jk`. Use it for graded judgments and the top of
    the list: at 10 it is the usual choice for web search (lecture 003), and every topic counts alike (lecture 001). Not
    where judgments are so few that the ideal ranking is unknown. Before you compare tools, compare their gain and ideal.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 1, "b": 3}}, {"q": {"a": 3, "b": 2}}, "nDCG@10").mean(), 4)
    0.7967
    """

    formula = "DCG@k / DCG@k of the ideal ranking"
    peers = {
        "trec_eval": ("ndcg", "ndcg_cut_{k}"),
        "ir_measures": ("NDCG",),
        "ranx": ("ndcg", "ndcg_burges = nDCG(gain=exp2)"),
        "gdeval": ("gdeval_ndcg = nDCG(gain=exp2)",),
        "NTCIREVAL": ("MSnDCG",),
    }
    normalised = True
    shares_alone = False  # the ideal ranking is made from all judgments
    ideal = Choice("cut", "where the ideal ranking ends", "all", "hits")
    rewrites = {
        "ideal=all": ("/ DCG@k of the ideal ranking", "/ DCG of the whole ideal ranking"),
        "ideal=hits": ("/ DCG@k of the ideal ranking", "/ DCG@n of the ideal ranking,  n the documents at ranks 1…k"),
    }

    def score(self, hits: Hits) -> Floats:
        return ratio(self.dcg(hits.top(self.k)), self.ideal_dcg(hits))

    def shares(self, hits: Hits) -> Floats:
        return ratio(self.gained(hits), self.ideal_dcg(hits)[hits.topic])

    def ideal_dcg(self, hits: Hits) -> Floats:
        """The DCG of the ideal ranking; computed once for all runs, unless the ideal ends where a run ends."""
        if self.ideal == "hits":
            return self.dcg(self.ideal_hits(hits))
        return hits.judgments.once(("ideal DCG", self), lambda: self.dcg(self.ideal_hits(hits)))

    def ideal_hits(self, hits: Hits) -> Hits:
        best = self.best(hits)
        if self.ideal == "hits":
            limit = hits.top(self.k).retrieved
            return best.where(best.rank <= limit[best.topic])
        return best if self.ideal == "all" else best.top(self.k)

    def expected(self, hits: Hits) -> Floats:
        """The mean over the orders of ties, as in scikit-learn; the ideal ranking has no ties."""
        return ratio(self.expected_dcg(hits), self.ideal_dcg(hits))

    def trace(self, hits: Hits) -> dict[str, Floats]:
        return self.steps(hits)

    def worked(self, hits: Hits) -> tuple[str, dict[str, Any]]:
        """DCG over ideal DCG."""
        numbers = {"DCG": self.dcg(hits.top(self.k)), "ideal DCG": self.ideal_dcg(hits)}
        return "{DCG} / {ideal DCG}", numbers


class IdealDCG(_Discounted):
    """The discounted cumulated gain of the best possible ranking: what nDCG divides by. It is the same for every run.

    Use it to see how much there was to find, topic by topic (lecture 001 works one out by hand); not to compare systems.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 1, "b": 3}}, {"q": {"a": 3}}, "IdealDCG").mean(), 2)
    3.63
    """

    formula = "DCG@k of the ideal ranking"
    high = np.inf
    empty_is_zero = False
    peers = {"trec_eval": ("ideal_dcg",)}

    def score(self, hits: Hits) -> Floats:
        return self.dcg(self.best(hits).top(self.k))


class nDCGrel(_Gained):
    """nDCG averaged over the relevant documents: nDCG at the rank of each, and at the list's end for those not found.

    nDCG depends on the cut-off. This measure takes the ranks of the topic's own relevant documents as cut-offs. Use it
    where topics have very different numbers of relevant documents; not for the first page alone, nor to compare with
    published nDCG.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 1, "b": 1}}, {"q": {"x": 3, "a": 2}}, "nDCGrel").mean(), 4)
    0.3869
    """

    formula = "mean over documents of a gain above 0 of nDCG@rank"
    peers = {"trec_eval": ("ndcg_rel",)}
    at = None
    normalised = True
    monotone = False  # a document that moves up is looked at earlier, when others have not been found yet

    def score(self, hits: Hits) -> Floats:
        return ndcg_rel(hits, Gain.of(self.gain, hits.grade), *ideal(hits, self.gain))


class Rndcg(_Gained):
    """nDCG averaged over the ends of the gain levels: what R-precision is to precision, for graded judgments.

    With 5 documents of grade 2 and 10 of grade 1 it is the mean of nDCG@5, nDCG@15 and, if more than 15 documents were
    returned, nDCG of the whole list. trec_eval omits the last one if exactly one more document was returned (16 here),
    because of an error in its loop. `cranfield trec_eval` repeats this, and so does `end=trec_eval`, which the presets
    of trec_eval set. Use it where no single cut-off suits all topics; not where users read a fixed number of results.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 2, "b": 1}}, {"q": {"b": 2, "a": 1}}, "Rndcg").mean(), 4)
    0.6799
    """

    formula = (
        "mean of nDCG@c, c the number of documents of each gain above 0 or more; and at the list's end if it is longer"
    )
    peers = {"trec_eval": ("Rndcg",)}
    rewrites = {"end=trec_eval": ("if it is longer", "if it is longer by two documents or more")}
    at = None
    normalised = True
    end = Choice(
        "counts", "whether the end of a list counts if the list is one document longer than the ideal one", "trec_eval"
    )

    def score(self, hits: Hits) -> Floats:
        slack = 1 if self.end == "trec_eval" else 0
        return r_ndcg(hits, Gain.of(self.gain, hits.grade), *ideal(hits, self.gain), slack)


class G(_Gained):
    """Normalised gain: each document's gain, discounted by how far the run lags behind the ideal one at its rank.

    A document that ranks low only because better ones rank above it loses nothing. Use it to repeat trec_eval's output;
    not as the main number of a report, because hardly anyone uses it.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 2, "b": 1}}, {"q": {"b": 2, "a": 1}}, "G").mean(), 4)
    0.877
    """

    formula = (
        "Σ gain / log2(2 + Σ max(ideal gain, 1) − Σ gain) / Σ ideal gain, the inner sums down to and with this rank"
    )
    reference = EXPERIMENT
    peers = {"trec_eval": ("G",)}
    at = None
    monotone = False

    def score(self, hits: Hits) -> Floats:
        return normalised_gain(hits, Gain.of(self.gain, hits.grade), *ideal(hits, self.gain))


class binG(Binary):
    """Binary normalised gain: each relevant document counts less the more nonrelevant ones are above it.

    Use it to repeat trec_eval's output, or for a user who minds useless documents more than depth; not as the main
    number of a report, because hardly anyone uses it.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "x": 2, "b": 1}}, "binG").mean(), 4)
    0.8155
    """

    family = "gain"
    formula = "1/R · Σ over relevant documents found of 1 / log2(2 + nonrelevant documents above)"
    reference = EXPERIMENT
    peers = {"trec_eval": ("binG",)}
    at = None
    normalised = True

    def score(self, hits: Hits) -> Floats:
        found = hits.relevant(self.rel)
        return ratio(found.sum(1 / np.log2(2.0 + found.rank - found.nth)), hits.n_relevant(self.rel))


PREL = ((0.0, 1.0, 2.0, 3.0, 4.0), (0.0, 0.07, 0.14, 0.41, 0.61))  # Yandex's five grades, as ROMIP took them over


class pFound(Measure):
    """pFound: the probability that a user finds a satisfying document before losing patience.

    At each rank the user is satisfied with the probability of the grade, or else breaks off with probability `stop`.
    `gain=yandex` is the table of its authors, 0.07, 0.14, 0.41, 0.61 for grades 1 to 4 (in proportion between, 0.61
    above); `gain=grade` takes the grade itself as a probability over `max`, as CatBoost does with `max=1`. Use it for
    web search where one good answer is enough: ERR's cascade (lecture 002) with a user who can also give up. Not for
    topics where all answers are wanted.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"b": 1}}, {"q": {"a": 3, "b": 2}}, "pFound(gain=grade)").mean()
    0.85
    """

    family = "gain"
    formula = "Σ over ranks r of p(r) · Π over j < r of (1 − stop) · (1 − p(j)),  p the probability of the grade"
    reference = "Gulin, Karpovich, Raskovalov & Segalovich (2009), Yandex at ROMIP'2009"
    peers = {"CatBoost": ("PFound = pFound(gain=grade)",)}
    stop = Real(0.15, "the probability of giving up at a rank", low=0, high=1)
    gain = Choice("yandex", "the probability that a grade satisfies the user", "grade")
    max = Real(1, "the grade that satisfies everyone (gain=grade)", low=0, open=True)
    k = Depth()
    rewrites = {
        "gain=yandex": ("p the probability of the grade", "p = 0.07, 0.14, 0.41, 0.61 for grades 1 to 4"),
        "gain=grade": ("p the probability of the grade", "p = grade / max, at most 1"),
    }

    def beyond(self, highest: float) -> str:
        """Grades above the end of the scale get the gain of the highest grade."""
        top = PREL[0][-1] if self.gain == "yandex" else self.max
        if highest <= top or (self.gain == "grade" and "max" in self.typed):
            return ""
        hint = "" if self.gain == "yandex" else f"; set max={number_text(highest)}"
        return f"the scale ends at {number_text(top)}, and grades up to {number_text(highest)} have the same gain{hint}"

    def score(self, hits: Hits) -> Floats:
        found = hits.top(self.k).relevant(0)
        enough = np.interp(found.grade, *PREL) if self.gain == "yandex" else np.minimum(found.grade / self.max, 1.0)
        looking = found.product_above(1 - enough) * (1 - self.stop) ** (found.rank - 1.0)
        return found.sum(enough * looking)
