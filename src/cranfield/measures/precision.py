"""Precision, recall and their relatives: how much of what was returned is relevant, how much of what is relevant was returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.hits import ratio
from cranfield.measures.measure import Choice, Flag, Measure, Real, Whole

if TYPE_CHECKING:
    from cranfield.hits import Hits
    from cranfield.kernels.table import Floats


def f_measure(precision: Floats, recall: Floats, beta: float) -> Floats:
    """The weighted harmonic mean of precision and recall; `beta` > 1 favours recall."""
    return ratio((1 + beta**2) * precision * recall, beta**2 * precision + recall)


class P(Measure):
    """Precision at k: the share of the first k ranks that hold a relevant document.

    It divides by k even where fewer documents were returned; `divide=returned` divides by what was returned
    instead, as OpenSearch and Quepid do.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 0, "c": 1}}, run, "P@3").mean()
    0.6666666666666666
    """

    family = "precision and recall"
    formula = "relevant documents at ranks 1…k / k"
    reference = "Kent, Berry, Luehrs & Perry (1955), Machine literature searching VIII"
    peers = {
        "trec_eval": ("P_{k}",),
        "ir_measures": ("P", "Precision"),
        "ranx": ("precision",),
    }
    rel = Real(1, "the lowest relevant grade")
    divide = Choice("k", "what a list of fewer than k documents is divided by", "returned")
    k = Whole(..., "how many ranks are looked at")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        seen = hits.top(self.k)
        return ratio(seen.relevant(self.rel).count(), self.k if self.divide == "k" else seen.retrieved)


class R(Measure):
    """Recall at k: the share of the topic's relevant documents that stand within the first k ranks.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 0, "x": 1}}, run, "R@3").mean()
    0.5
    """

    family = "precision and recall"
    formula = "relevant documents at ranks 1…k / relevant documents"
    reference = "Kent, Berry, Luehrs & Perry (1955), Machine literature searching VIII"
    peers = {
        "trec_eval": ("recall_{k}",),
        "ir_measures": ("R", "Recall"),
        "ranx": ("recall",),
    }
    rel = Real(1, "the lowest relevant grade")
    k = Whole(..., "how many ranks are looked at")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        return ratio(hits.top(self.k).relevant(self.rel).count(), hits.n_relevant(self.rel))


class F(Measure):
    """F at k: the weighted harmonic mean of precision and recall at k. A beta above 1 favours recall.

    Unlike the arithmetic mean it gives no credit for returning everything.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2}}
    >>> round(evaluate({"q": {"a": 1, "x": 1, "y": 1}}, run, "F@2").mean(), 4)
    0.4
    """

    family = "precision and recall"
    formula = "(1 + beta²) · P · R / (beta² · P + R)"
    reference = "van Rijsbergen (1979), Information Retrieval, chapter 7"
    peers = {"ranx": ("f1",)}
    rel = Real(1, "the lowest relevant grade")
    beta = Real(1, "how many times recall matters as much as precision", low=0, open=True)
    k = Whole(..., "how many ranks are looked at")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.top(self.k).relevant(self.rel).count()
        return f_measure(found / self.k, ratio(found, hits.n_relevant(self.rel)), self.beta)


class SetP(Measure):
    """Set precision: the share of all that was returned that is relevant.

    `relative` divides by the best that a list of this length could reach: it need not be longer than there are relevant
    documents.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "c": 2}}, "SetP").mean()
    0.5
    """

    family = "set"
    formula = "relevant documents returned / documents returned"
    reference = "Kent, Berry, Luehrs & Perry (1955), Machine literature searching VIII"
    peers = {
        "trec_eval": ("set_P", "set_relative_P = SetP(relative=True)"),
        "ir_measures": ("SetRelP = SetP(relative=True)",),
    }
    at = None
    normalised = True
    rel = Real(1, "the lowest relevant grade")
    relative = Flag("divide by no more than the number of relevant documents")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        returned = np.minimum(hits.retrieved, hits.n_relevant(self.rel)) if self.relative else hits.retrieved
        return ratio(hits.relevant(self.rel).count(), returned)


class SetAP(Measure):
    """Set average precision: set precision times set recall, average precision for a list without an order.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "c": 2}}, "SetAP").mean()
    0.25
    """

    family = "set"
    formula = "P · R"
    reference = "Buckley & Voorhees (2005), Retrieval system evaluation, in TREC: Experiment and Evaluation"
    peers = {"trec_eval": ("set_map",)}
    at = None
    normalised = True
    rel = Real(1, "the lowest relevant grade")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.relevant(self.rel).count().astype(np.float64)
        return ratio(found * found, hits.retrieved * hits.n_relevant(self.rel).astype(np.float64))


class SetR(Measure):
    """Set recall: the share of the relevant documents that was returned at all.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "c": 2}}, "SetR").mean()
    0.5
    """

    family = "set"
    formula = "relevant documents returned / relevant documents"
    reference = "Kent, Berry, Luehrs & Perry (1955), Machine literature searching VIII"
    peers = {"trec_eval": ("set_recall",)}
    at = None
    normalised = True
    rel = Real(1, "the lowest relevant grade")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        return ratio(hits.relevant(self.rel).count(), hits.n_relevant(self.rel))


class SetF(Measure):
    """Set F: the weighted harmonic mean of set precision and set recall. A beta above 1 favours recall.

    trec_eval's `set_F_x` takes x = beta², and ir_measures hands its beta over as that x.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "c": 2}}, "SetF").mean()
    0.5
    """

    family = "set"
    formula = "(1 + beta²) · P · R / (beta² · P + R)"
    reference = "van Rijsbergen (1979), Information Retrieval, chapter 7"
    peers = {"trec_eval": ("set_F",)}
    at = None
    normalised = True
    rel = Real(1, "the lowest relevant grade")
    beta = Real(1, "how many times recall matters as much as precision", low=0, open=True)

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.relevant(self.rel).count()
        return f_measure(ratio(found, hits.retrieved), ratio(found, hits.n_relevant(self.rel)), self.beta)


class Rprec(Measure):
    """R-precision: precision at rank R, where R is the number of relevant documents of the topic.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 0, "c": 1}}, run, "Rprec").mean()
    0.5
    """

    family = "precision and recall"
    formula = "relevant documents at ranks 1…R / R"
    reference = "Buckley & Voorhees (2005), Retrieval system evaluation, in TREC: Experiment and Evaluation"
    peers = {"trec_eval": ("Rprec",), "ir_measures": ("RPrec",), "ranx": ("r-precision", "r_precision")}
    at = None
    normalised = True
    rel = Real(1, "the lowest relevant grade")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        relevant = hits.n_relevant(self.rel)
        found = hits.relevant(self.rel)
        return ratio(found.sum(found.rank <= relevant[found.topic]), relevant)


class Success(Measure):
    """Success at k, or hit rate: 1 if a relevant document stands within the first k ranks, else 0.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"b": 1}}, {"q": {"a": 3, "b": 2}}, "Success@1 Success@2").means()
    {'Success@1': 0.0, 'Success@2': 1.0}
    """

    family = "precision and recall"
    formula = "1 if a relevant document is at ranks 1…k, else 0"
    reference = "Craswell & Hawking (2004), Overview of the TREC web track"
    peers = {"trec_eval": ("success_{k}",), "ranx": ("hit_rate",), "ir_measures": ("HitRate",)}
    normalised = True
    rel = Real(1, "the lowest relevant grade")
    k = Whole(..., "how many ranks are looked at")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        return np.minimum(hits.top(self.k).relevant(self.rel).count(), 1).astype(np.float64)


class RelativeP(Measure):
    """Relative precision at k: the relevant documents within the first k ranks, over the most that could stand there.

    Precision as long as k is no more than the number of relevant documents, recall beyond.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "x": 1}}, run, "RelativeP@1 RelativeP@3").means()
    {'RelativeP@1': 1.0, 'RelativeP@3': 0.5}
    """

    family = "precision and recall"
    formula = "relevant documents at ranks 1…k / min(k, relevant documents)"
    reference = "Buckley & Voorhees (2005), Retrieval system evaluation, in TREC: Experiment and Evaluation"
    peers = {"trec_eval": ("relative_P_{k}",)}
    normalised = True
    rel = Real(1, "the lowest relevant grade")
    k = Whole(..., "how many ranks are looked at")

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        return ratio(hits.top(self.k).relevant(self.rel).count(), np.minimum(hits.n_relevant(self.rel), self.k))


class RprecMult(Measure):
    """Precision at a multiple of R, the number of relevant documents of the topic.

    A system that leads at small multiples and falls behind at large ones favours precision over recall.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 4, "b": 3, "c": 2, "d": 1}}
    >>> evaluate({"q": {"a": 1, "c": 1}}, run, "RprecMult@0.5 RprecMult@2.0").means()
    {'RprecMult@0.5': 1.0, 'RprecMult@2.0': 0.5}
    """

    family = "precision and recall"
    formula = "relevant documents at ranks 1…c / c,  c = ⌊multiple · R + 0.9⌋"
    reference = "Buckley & Voorhees (2005), Retrieval system evaluation, in TREC: Experiment and Evaluation"
    peers = {"trec_eval": ("Rprec_mult_{multiple}",)}
    at = "multiple"
    rel = Real(1, "the lowest relevant grade")
    multiple = Real(1, "how many times R the cut-off is", low=0)

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        cut = np.floor(self.multiple * hits.n_relevant(self.rel).astype(np.float64) + 0.9)
        found = hits.relevant(self.rel)
        return ratio(found.sum(found.rank <= cut[found.topic]), cut)


class Utility(Measure):
    """Utility: what the returned set is worth, as a weighted sum of the four cells of the contingency table.

    The last weight needs to know how many documents the collection holds.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "c": 2, "d": 1}}
    >>> evaluate({"q": {"a": 1, "b": 1}}, run, "Utility Utility(found=3,missed=-1)").means()
    {'Utility': -1.0, 'Utility(found=3,missed=-1)': 0.0}
    """

    family = "set"
    formula = "found · relevant returned + noise · others returned + missed · relevant not returned + rest · others not returned"
    reference = "Lewis (1995), Evaluating and optimizing autonomous text classification systems, SIGIR"
    peers = {"trec_eval": ("utility",)}
    at = None
    low, high = -np.inf, np.inf
    empty_is_zero = False  # with other weights than the default ones
    rel = Real(1, "the lowest relevant grade")
    found = Real(1, "what a relevant document returned is worth")
    noise = Real(-1, "what any other document returned is worth")
    missed = Real(0, "what a relevant document not returned is worth")
    rest = Real(0, "what any other document not returned is worth")
    documents = Whole(0, "how many documents the collection holds", low=0)

    def score(self, hits: Hits) -> Floats:
        """One value a topic."""
        found = hits.relevant(self.rel).count().astype(np.float64)
        returned, relevant = hits.retrieved.astype(np.float64), hits.n_relevant(self.rel).astype(np.float64)
        gained = self.found * found + self.noise * (returned - found)
        return gained + self.missed * (relevant - found) + self.rest * (self.documents + found - returned - relevant)
