"""Comparisons of orders: of a ranking with the ideal one, with a baseline's, and pair by pair.

These measures do not add up gains. Compat measures how far down two lists agree; Accuracy counts pairs in the right
order; RPP, LexiRecall and LexiPrecision compare at which recall levels a run is ahead of a baseline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.parameters import Choice, Depth, Flag, Real
from cranfield.evaluation.hits import ratio
from cranfield.evaluation.measures.definition import Binary, Measure

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.evaluation.hits import Hits


LEAST_LOG2 = -1075  # 2 to the power of this, and of anything below, is 0 as a double


class Accuracy(Binary):
    """Pairwise accuracy: the share of pairs of a relevant and another document that are in the right order.

    Only returned documents (down to rank k) count; unjudged documents count as not relevant, unless `judged_only`. A
    list without a relevant document scores 0, or is left out of the mean with `nothing_found=skip`, as in ir_measures.
    A list of relevant documents only scores 1. The accuracy of a contingency table is another measure, SetAccuracy.

    Use it to see whether a ranker that was trained on pairs learnt them; not to compare systems: documents that were
    not returned cost nothing, and a swap at the end of the list counts as much as a swap at the top.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "c": 1}}, {"q": {"a": 4, "b": 3, "c": 2, "d": 1}}, "Accuracy").mean()
    0.75
    """

    family = "preferences"
    formula = "pairs (relevant, other) returned with the relevant document first / all such pairs"
    reference = "MacAvaney, Macdonald & Ounis (2022), Streamlining evaluation with ir-measures, ECIR"
    peers = {"ir_measures": ("Accuracy",)}
    normalised = True
    monotone = False  # a relevant document that moves into the first k brings pairs of its own
    undefined = "no relevant document was returned (`nothing_found=skip`)"
    rewrites = {"nothing_found=skip": ("", ";  no value for a list without a relevant document")}
    nothing_found = Choice("zero", "a list without a relevant document scores 0, or has no value", "skip")
    k = Depth()

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.empty_is_zero = self.nothing_found == "zero"

    def score(self, hits: Hits) -> Floats:
        top = hits.top(self.k)
        found = top.relevant(self.rel)
        relevant = found.count().astype(np.float64)
        pairs = relevant * (top.retrieved - relevant)
        wrong = found.sum(found.rank - found.nth)
        without = np.where(relevant > 0, 1.0, np.nan if self.nothing_found == "skip" else 0.0)
        return np.where(pairs > 0, 1 - ratio(wrong, pairs), without)


class Compat(Measure):
    """Compatibility: rank-biased overlap with the ideal ranking that is nearest to the run.

    Ideal rankings put higher grades first and are free within a grade, so documents of one grade are taken in the
    run's own order, those not returned last. `normalize` divides by the overlap of the ideal ranking with itself,
    which is below 1 where it is shorter than the ranks compared. The ranks compared are those of the longer of both
    lists, as in ir_measures; with @k they are 1 to k, also where both lists have ended, as in the authors' own program
    (`Compat@1000`). The two rules differ most for short lists, because the overlap does not change below their end.

    Use it where judgments are an order rather than amounts (preferences, crowds, many grades), because it asks for no
    gain; not for binary judgments, where AP or RBP are simpler.

    >>> from cranfield import evaluate
    >>> qrels = {"q": {"a": 2, "b": 1}}
    >>> round(evaluate(qrels, {"q": {"b": 2, "a": 1}}, "Compat(p=0.5)").mean(), 4)  # (0/1 + .5 · 2/2) / (1 + .5)
    0.3333
    """

    family = "preferences"
    formula = "RBO(run, ideal) / RBO(ideal, ideal),  RBO = Σ over d ≤ D of p^(d−1) · overlap at d / d / Σ over d ≤ D of p^(d−1)"
    reference = "Clarke, Vtyurina & Smucker (2021), Assessing top-k preferences, TOIS"
    peers = {"ir_measures": ("Compat",), "papers": ("Compatibility", "compatibility")}
    synonyms = {"depth": "k"}
    normalised = True
    p = Real(0.95, "the probability of going on to the next rank", low=0, high=1, open=True)
    normalize = Flag("divide by the overlap of the ideal ranking with itself", default=True)
    k = Depth("how many ranks are compared")
    rewrites = {"normalize=False": (" / RBO(ideal, ideal)", "")}

    def score(self, hits: Hits) -> Floats:
        found, ideal = hits.where(hits.grade > 0), hits.ideal
        longer = np.maximum(hits.retrieved, ideal.retrieved)
        depth = longer if self.k is None else np.full(hits.size, min(self.k, self._weightless(longer)))
        weight = self.p ** np.arange(int(depth.max(initial=0)), dtype=np.float64)
        ranks = np.arange(1, len(weight) + 1)
        upto = np.r_[0.0, np.cumsum(weight / ranks)]  # what a document adds that both lists have at rank 1
        both = np.minimum(np.maximum(found.rank, _ideal_rank(found, ideal)) - 1, depth[found.topic])
        overlap = found.sum(upto[depth[found.topic]] - upto[both])
        if not self.normalize:
            return ratio(overlap, np.r_[0.0, np.cumsum(weight)][depth])
        least = np.minimum(ideal.rank - 1, depth[ideal.topic])
        return ratio(overlap, ideal.sum(upto[depth[ideal.topic]] - upto[least]))

    def _weightless(self, longer: Ints) -> int:
        """A rank below the end of all lists from which on p^(rank − 1) is 0 as a double."""
        return max(int(longer.max(initial=0)), 2 + int(LEAST_LOG2 / np.log2(self.p)))


def _ideal_rank(found: Hits, ideal: Hits) -> npt.NDArray[np.intp]:
    """The rank of each hit in the ideal ranking: after all higher grades, and after equal grades that the run ranks higher."""
    order = np.lexsort((found.rank, -found.grade, found.topic))
    # Both lists are now ordered by topic and falling grade; `begins` is where each grade begins in the ideal list.
    levels, level = np.unique(np.r_[-ideal.grade, -found.grade], return_inverse=True)
    ideal_key = ideal.topic.astype(np.int64) * len(levels) + level[: len(ideal)]
    key = (found.topic.astype(np.int64) * len(levels) + level[len(ideal) :])[order]
    begins = np.searchsorted(ideal_key, key)
    nth = np.arange(len(key)) - np.searchsorted(key, key)
    start = np.searchsorted(ideal.topic, found.topic[order])
    answer = np.empty(len(key), np.intp)
    answer[order] = begins - start + nth + 1
    return answer


def _places(hits: Hits, rel: float) -> Floats:
    """Topics × relevant documents: the rank of the first, the second … relevant document; infinite if not found."""
    found = hits.relevant(rel)
    answer = np.full((hits.size, int(hits.n_relevant(rel).max(initial=0))), np.inf)
    answer[found.topic, found.nth - 1] = found.rank
    return answer


class _Paired(Binary):
    """Measures of which run is preferred: the scored run or the baseline."""

    family = "preferences"
    at = None
    needs = ("baseline",)
    low, high = -1.0, 1.0
    empty_is_zero = False

    def sooner(self, hits: Hits) -> Floats:
        """Topics × n: 1 if the run finds its n-th relevant document before the baseline does, −1 if after, else 0."""
        baseline: Hits = hits.judgments.extras.baseline
        other_hits = baseline.condensed() if self.judged_only else baseline
        mine, other = _places(hits, self.rel), _places(other_hits, self.rel)
        return (mine < other).astype(np.float64) - (mine > other)


class RPP(_Paired):
    """Recall-paired preference: how much more often the run reaches a recall level at a higher rank than the baseline.

    The run's i-th relevant document is compared with the baseline's, whichever documents they are: 1 for the one that
    comes first, −1 for the other, averaged over all relevant documents. A document that was not found comes last.

    Use it to separate runs with equal nDCG or AP. Do not use it as a score: it only says which of two runs is
    preferred, and preferences among three runs can be circular.

    >>> from cranfield import evaluate
    >>> qrels, old = {"q": {"a": 1, "b": 1, "c": 1}}, {"q": {"a": 4, "x": 3, "b": 2, "y": 1}}
    >>> evaluate(qrels, {"q": {"x": 4, "a": 3, "b": 2, "c": 1}}, "RPP", baseline=old).mean()  # −1, 0 and 1
    0.0
    """

    formula = "Σ over i of w(i) · sign(rank of the baseline's i-th relevant document − rank of the run's),  Σ w = 1"
    reference = "Diaz & Ferraro (2022), Offline retrieval evaluation without evaluation metrics, SIGIR"
    peers = {"pref_eval": ("rpp", "invrpp = RPP(weights=inverse)", "dcgrpp = RPP(weights=dcg)")}
    weights = Choice("uniform", "the weights of recall levels: equal, 1/i, or 1/log2(i + 1)", "inverse", "dcg")
    rewrites = {
        "weights=uniform": ("", ",  w(i) the same for all i"),
        "weights=inverse": ("", ",  w(i) in proportion to 1 / i"),
        "weights=dcg": ("", ",  w(i) in proportion to 1 / log2(i + 1)"),
    }

    def score(self, hits: Hits) -> Floats:
        sooner = self.sooner(hits)
        i = np.arange(1, sooner.shape[1] + 1)
        weight = {"uniform": np.ones(len(i)), "inverse": 1 / i, "dcg": 1 / np.log2(i + 1)}[self.weights]
        whole = np.r_[0.0, np.cumsum(weight)][hits.n_relevant(self.rel)]
        # cumsum, so a topic's sum does not depend on other topics
        return ratio(np.cumsum(sooner * weight, axis=1)[:, -1] if len(i) else 0.0, whole)


def _decided(sooner: Floats) -> Floats:
    """The first nonzero value of each row; 0 if there is none."""
    if not sooner.shape[1]:
        return np.zeros(len(sooner))
    return np.asarray(sooner[np.arange(len(sooner)), np.argmax(sooner != 0, axis=1)], np.float64)


class LexiRecall(_Paired):
    """Lexicographic recall: 1 if the run finds the last relevant document before the baseline does, −1 if after.

    Where both find it at the same rank, or neither finds it, the last but one decides, and so on; 0 if all are alike.

    Use it where every relevant document must be found (patents, medicine, law) and recall ties too often; not with
    shallow runs, where most of the relevant documents are in neither.

    >>> from cranfield import evaluate
    >>> qrels, old = {"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "x": 2, "b": 1}}
    >>> evaluate(qrels, {"q": {"x": 3, "b": 2, "a": 1}}, "LexiRecall", baseline=old).mean()  # 3 = 3, but 2 is after 1
    -1.0
    """

    formula = "sign(rank of the baseline's i-th relevant document − rank of the run's) at the last i where they differ"
    reference = "Diaz, Ekstrand & Mitra (2023), Recall, robustness, and lexicographic evaluation"
    peers = {"pref_eval": ("lexirecall",)}

    def score(self, hits: Hits) -> Floats:
        return _decided(self.sooner(hits)[:, ::-1])


class LexiPrecision(_Paired):
    """Lexicographic precision: 1 if the run finds its first relevant document before the baseline does, −1 if after.

    Where both find it at the same rank the second decides, and so on; 0 if all are alike.

    Use it in place of RR, which ties on most topics of good systems; not where users want a single relevant document,
    because there RR is right to call such systems equal.

    >>> from cranfield import evaluate
    >>> qrels, old = {"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "x": 2, "b": 1}}
    >>> evaluate(qrels, {"q": {"b": 3, "a": 2, "x": 1}}, "RR LexiPrecision", baseline=old).means()
    {'RR': 1.0, 'LexiPrecision': 1.0}
    """

    formula = "sign(rank of the baseline's i-th relevant document − rank of the run's) at the first i where they differ"
    reference = "Diaz (2023), Best-case retrieval evaluation: improving the sensitivity of reciprocal rank"
    peers = {"pref_eval": ("lexiprecision",)}

    def score(self, hits: Hits) -> Floats:
        return _decided(self.sooner(hits))
