"""Average precision and interpolated precision: the whole ranking in one number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.hits import ratio
from cranfield.measures.measure import Choice, Depth, Measure, Real

if TYPE_CHECKING:
    from cranfield.hits import Hits
    from cranfield.kernels.table import Floats, Ints


class AP(Measure):
    """Average precision: precision at the rank of each relevant document, averaged over all relevant documents.

    Relevant documents that were not returned count as precision 0. `divide` says over how many to average when the
    list is cut: all relevant documents (trec_eval), no more than k of them (Vespa, Kaggle), or only those found.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 5, "b": 4, "c": 3}}
    >>> round(evaluate({"q": {"a": 1, "c": 1, "x": 1}}, run, "AP").mean(), 4)
    0.5556
    """

    family = "average precision"
    formula = "Σ over relevant documents found (relevant documents down to here / rank) / relevant documents"
    reference = "Buckley & Voorhees (2000), Evaluating evaluation measure stability, SIGIR"
    peers = {
        "trec_eval": ("map", "map_cut_{k}"),
        "ir_measures": ("MAP",),
        "ranx": ("map",),
    }
    normalised = True
    rel = Real(1, "the lowest relevant grade")
    divide = Choice("relevant", "over how many documents it averages", "cut", "found")
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.top(self.k).relevant(self.rel)
        whole: Floats | Ints = hits.n_relevant(self.rel)
        if self.divide == "found":
            whole = found.count()
        elif self.divide == "cut" and self.k is not None:
            whole = np.minimum(whole, self.k)
        return ratio(found.sum(found.nth / found.rank), whole)


def recall_rank(recall: float, relevant: Ints, level: str) -> Floats:
    """How many relevant documents must be found to reach a recall level; trec_eval's versions round differently."""
    wanted = recall * relevant.astype(np.float64)
    if level == "trec_eval-9":
        return np.floor(wanted + 0.9)
    if level == "trec_eval-10":
        return np.floor(wanted + 0.5)
    return np.ceil(wanted - 1e-9)  # 0.1 · 10 is 1, whatever the doubles say


def interpolated(hits: Hits, rel: float, recall: float, level: str) -> Floats:
    """The highest precision at any rank that reaches the recall level; 0 where it is never reached."""
    found = hits.relevant(rel)
    wanted = recall_rank(recall, hits.n_relevant(rel), level)
    reached = found.where(found.nth >= wanted[found.topic])
    answer = np.zeros(hits.size)
    np.maximum.at(answer, reached.topic, found.nth[found.nth >= wanted[found.topic]] / reached.rank)
    return answer


class IPrec(Measure):
    """Interpolated precision: the highest precision at any recall of at least the level given.

    A level is reached when that share of the relevant documents has been found; trec_eval 9 and 10 round the number
    of documents differently, which `level` repeats.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 5, "b": 4, "c": 3}}
    >>> evaluate({"q": {"a": 1, "c": 1}}, run, "IPrec@0.5 IPrec@1.0").means()
    {'IPrec@0.5': 1.0, 'IPrec@1.0': 0.6666666666666666}
    """

    family = "average precision"
    formula = "max over ranks r with recall(r) ≥ recall of P@r; 0 if there is none"
    reference = "Manning, Raghavan & Schütze (2008), Introduction to Information Retrieval, chapter 8"
    peers = {"trec_eval": ("iprec_at_recall_{recall}",)}
    at = "recall"
    normalised = True
    rel = Real(1, "the lowest relevant grade")
    level = Choice("exact", "how a recall level becomes a number of documents", "trec_eval-9", "trec_eval-10")
    recall = Real(..., "the recall level", low=0, high=1)  # type: ignore[arg-type]

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        return interpolated(hits, self.rel, self.recall, self.level)


class ElevenPoint(Measure):
    """Eleven-point average precision: interpolated precision averaged over recall 0, 0.1, … 1.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 5, "b": 4, "c": 3}}
    >>> round(evaluate({"q": {"a": 1, "c": 1}}, run, "11pt").mean(), 4)
    0.8485
    """

    name = "11pt"
    family = "average precision"
    formula = "mean of IPrec at recall 0, 0.1, … 1"
    reference = "Manning, Raghavan & Schütze (2008), Introduction to Information Retrieval, chapter 8"
    peers = {"trec_eval": ("11pt_avg",)}
    at = None
    normalised = True
    rel = Real(1, "the lowest relevant grade")
    level = Choice("exact", "how a recall level becomes a number of documents", "trec_eval-9", "trec_eval-10")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        total = np.zeros(hits.size)
        for tenth in range(11):  # one level after the other: NumPy's own sum depends on the number of topics
            total += interpolated(hits, self.rel, tenth / 10, self.level)
        return total / 11


class YAAP(Measure):
    """Yet another average precision: a log-odds of average precision, which is fairer to average over topics.

    A topic on which one system finds nearly everything, or nearly nothing, counts as much as one in the middle.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 5, "b": 4}}
    >>> round(evaluate({"q": {"a": 1, "b": 1, "x": 1}}, run, "YAAP").mean(), 4)
    0.4055
    """

    family = "average precision"
    formula = (
        "ln((1 + S) / (1 + R − S)),  S = Σ over relevant documents found of (relevant documents down to here / rank)"
    )
    reference = "Robertson (2012), On smoothing average precision, ECIR"
    peers = {"trec_eval": ("yaap",)}
    at = None
    low, high = -np.inf, np.inf
    empty_is_zero = False
    rel = Real(1, "the lowest relevant grade")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.relevant(self.rel)
        total = found.sum(found.nth / found.rank)
        return np.log((1 + total) / (1 + hits.n_relevant(self.rel) - total))
