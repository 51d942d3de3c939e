"""Average precision and interpolated precision: the whole ranking in one number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.parameters import Choice, Depth, Real
from cranfield.evaluation.hits import ratio
from cranfield.evaluation.measures.definition import Binary, Gain, Measure, traced

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.evaluation.hits import Hits


class _Binary(Binary):
    """Average precision and related measures for binary judgments."""

    family = "average precision"
    normalised = True


class AP(_Binary):
    """Average precision: precision at the rank of each relevant document, averaged over all relevant documents.

    Relevant documents that were not returned count as precision 0. `divide` says over how many to average when the
    list is cut: all relevant documents (trec_eval), no more than k of them (Vespa, Kaggle), or only those found.

    Use it to compare rankings as a whole with binary judgments: lecture 000 calls it the standard measure, because it
    depends on the rank of every relevant document. Not where grades differ (nDCG, GAP), where users look at the first
    page only (P@k, RR), or where many documents are unjudged. Dividing by the documents found instead of all relevant
    ones is a common mistake; the lecture warns of it. Its geometric mean, gmean(AP), depends most on hard topics.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 5, "b": 4, "c": 3}}
    >>> round(evaluate({"q": {"a": 1, "c": 1, "x": 1}}, run, "AP").mean(), 4)
    0.5556
    """

    formula = "Σ over relevant documents found (relevant documents down to here / rank) / relevant documents"
    reference = "Buckley & Voorhees (2000), Evaluating evaluation measure stability, SIGIR"
    peers = {
        "trec_eval": ("map", "map_cut_{k}", "gm_map = gmean(AP)"),
        "ir_measures": ("MAP",),
        "lectures": ("gMAP = gmean(AP)", "GMAP = gmean(AP)"),
        "ranx": ("map",),
    }
    divide = Choice(
        "relevant", "the divisor: all relevant documents, no more than k of them, or those found", "cut", "found"
    )
    rewrites = {
        "divide=cut": (" / rank) / relevant documents", " / rank) / min(k, relevant documents)"),
        "divide=found": (" / rank) / relevant documents", " / rank) / relevant documents found"),
    }
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        return ratio(self._precisions(hits), self._whole(hits))

    def _precisions(self, hits: Hits) -> Floats:
        found = hits.top(self.k).relevant(self.rel)
        return found.sum(found.nth / found.rank)

    def _whole(self, hits: Hits) -> Ints:
        if self.divide == "found":
            return hits.top(self.k).relevant(self.rel).count()
        whole = hits.n_relevant(self.rel)
        return np.minimum(whole, self.k) if self.divide == "cut" and self.k is not None else whole

    def expected(self, hits: Hits) -> Floats | None:
        """The mean over the orders of ties, also with a cut-off; no formula for `divide=found`."""
        if self.divide == "found":
            return None
        ties = hits.relevant(self.rel).ties
        group, rank, step = ties.precisions()
        within = np.where(rank <= (self.k or np.inf), step, 0)
        return ratio(hits.judgments.sum(ties.topic[group], within), self._whole(hits))

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """The number of relevant documents down to this rank, and the precision."""
        relevant = (hits.grade >= self.rel) & (hits.rank <= (self.k or np.inf))
        nth = hits.running_sum(relevant)
        return traced(relevant, {"relevant": nth, "precision": nth / hits.rank})

    def worked(self, hits: Hits) -> tuple[str, dict[str, Any]]:
        """The precisions over the number of documents."""
        whole = {"relevant": "relevant documents", "cut": "at most k of them", "found": "relevant documents found"}
        name, total = whole[self.divide], self._precisions(hits)
        return f"{{sum of precisions}} / {{{name}}}", {"sum of precisions": total, name: self._whole(hits)}


def recall_rank(recall: float, relevant: Ints, level: str) -> Floats:
    """The number of relevant documents that reach a recall level; trec_eval's versions round differently."""
    target = recall * relevant.astype(np.float64)
    if level == "trec_eval-9":
        return np.floor(target + 0.9)
    if level == "trec_eval-10":
        return np.floor(target + 0.5)
    return np.ceil(target - 1e-9)  # 0.1 · 10 is 1 despite rounding errors


class _Interpolated(_Binary):
    """Measures of interpolated precision at recall levels."""

    reference = "Manning, Raghavan & Schütze (2008), Introduction to Information Retrieval, chapter 8"
    level = Choice("exact", "rule that turns a recall level into a number of documents", "trec_eval-9", "trec_eval-10")
    rewrites = {
        f"level=trec_eval-{version}": ("", f",  a level x is reached with ⌊x · R + {half}⌋ relevant documents")
        for version, half in ((9, 0.9), (10, 0.5))
    }

    def precision(self, hits: Hits, recall: float) -> Floats:
        """The highest precision at any rank that reaches the recall level; 0 if it is never reached."""
        found = hits.relevant(self.rel)
        target = recall_rank(recall, hits.n_relevant(self.rel), self.level)
        answer = np.zeros(hits.size)
        np.maximum.at(answer, found.topic, np.where(found.nth >= target[found.topic], found.nth / found.rank, 0))
        return answer


class IPrec(_Interpolated):
    """Interpolated precision: the highest precision at any recall of at least the level given.

    A recall level is reached when that share of the relevant documents has been found. trec_eval 9 and trec_eval 10
    round this number of documents differently; `level` chooses the rule.

    Use it to draw curves that can be averaged over topics, as lecture 002 explains: raw precision jumps up and down,
    the interpolated one never rises. Do not use it as a single figure: it is not the list's precision at that rank.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 5, "b": 4, "c": 3}}
    >>> evaluate({"q": {"a": 1, "c": 1}}, run, "IPrec@0.5 IPrec@1.0").means()
    {'IPrec@0.5': 1.0, 'IPrec@1.0': 0.6666666666666666}
    """

    formula = "max over ranks r with recall(r) ≥ recall of P@r; 0 if there is none"
    peers = {"trec_eval": ("iprec_at_recall_{recall}",)}
    at = "recall"
    recall = Real(..., "the recall level", low=0, high=1)  # type: ignore[arg-type]

    def score(self, hits: Hits) -> Floats:
        return self.precision(hits, self.recall)


class ElevenPoint(_Interpolated):
    """Eleven-point average precision: interpolated precision averaged over recall 0, 0.1, … 1.

    Use it to compare with papers from before AP was common; not in new work: AP measures the same without
    interpolation. Lecture 002 gives the standard recall levels.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 5, "b": 4, "c": 3}}
    >>> round(evaluate({"q": {"a": 1, "c": 1}}, run, "11pt").mean(), 4)
    0.8485
    """

    name = "11pt"
    formula = "mean of IPrec at recall 0, 0.1, … 1"
    peers = {"trec_eval": ("11pt_avg",)}
    at = None

    def score(self, hits: Hits) -> Floats:
        total = np.zeros(hits.size)
        for tenth in range(11):  # added one by one: NumPy's sum would depend on the number of topics
            total += self.precision(hits, tenth / 10)
        return total / 11


class YAAP(_Binary):
    """Yet another average precision: the log-odds of average precision, which is fairer to average over topics.

    On the plain scale, differences between systems near 0 or 1 hardly change the mean; as log-odds they count as much as
    differences in the middle.

    Use it for statistical tests that want values without a ceiling; not to report to readers, as it has no bounds.
    Lecture 000 raises the question how best to average AP over topics.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 5, "b": 4}}
    >>> round(evaluate({"q": {"a": 1, "b": 1, "x": 1}}, run, "YAAP").mean(), 4)
    0.4055
    """

    formula = (
        "ln((1 + S) / (1 + R − S)),  S = Σ over relevant documents found of (relevant documents down to here / rank)"
    )
    reference = "Robertson (2012), On smoothing average precision, ECIR"
    peers = {"trec_eval": ("yaap",)}
    at = None
    low, high = -np.inf, np.inf
    normalised = False
    empty_is_zero = False

    def score(self, hits: Hits) -> Floats:
        found = hits.relevant(self.rel)
        total = found.sum(found.nth / found.rank)
        return np.log((1 + total) / (1 + hits.n_relevant(self.rel) - total))


class GAP(Measure):
    """Graded average precision: average precision over users with different thresholds of relevance.

    Each grade is some user's threshold; the measure adds up average precision's numerator over the thresholds, weighted
    by how many users have them, and divides by the most it could be. `gain` gives the share of users for whom a grade is
    relevant. With `linear`, each threshold has equally many users. A table such as {1:0.3,2:1} says that 30 % accept
    grade 1 and the others only grade 2; only proportions count. On binary grades it is AP. Use it where grades matter and
    the whole ranking does; not for the top of the list alone, where nDCG@k is read more easily. The lectures (000, 003)
    give nDCG for several levels of judgment, and AP for two.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 0, "c": 2}}, run, "GAP GAP(gain={1:0.5,2:1})").means()
    {'GAP': 0.6666666666666666, 'GAP(gain={1:0.5,2:1})': 0.6666666666666666}
    """

    family = "average precision"
    formula = "Σ over ranks n of 1/n · Σ over m ≤ n of min(gain(m), gain(n)) / Σ over all documents of gain"
    reference = "Robertson, Kanoulas & Yilmaz (2010), Extending average precision to graded relevance judgments, SIGIR"
    normalised = True
    gain = Gain()
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        found = hits.top(self.k)
        share = np.maximum(Gain.of(self.gain, found.grade), 0)
        total, below = np.zeros(hits.size), np.zeros(hits.size)
        # only the topic's own thresholds, so its value does not depend on other topics
        for level in np.unique(share[share > 0]):
            there = np.bincount(found.topic[share == level], minlength=hits.size) > 0
            reached = found.where(share >= level)
            total += np.where(there, (level - below) * reached.sum(reached.nth / reached.rank), 0)
            below[there] = level
        judgments = hits.judgments
        return ratio(total, judgments.sum(judgments.topic, np.maximum(Gain.of(self.gain, judgments.grade), 0)))
