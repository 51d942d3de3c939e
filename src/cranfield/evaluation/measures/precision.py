"""Precision, recall and related measures: the share of returned documents that are relevant, and vice versa."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.parameters import Choice, Depth, Flag, Real, Whole
from cranfield.evaluation.hits import ratio
from cranfield.evaluation.measures.definition import Binary, Ratio, traced

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.evaluation.hits import Hits


KENT = "Kent, Berry, Luehrs & Perry (1955), Machine literature searching VIII"
BUCKLEY = "Buckley & Voorhees (2005), Retrieval system evaluation, in TREC: Experiment and Evaluation"
RIJSBERGEN = "van Rijsbergen (1979), Information Retrieval, chapter 7"


class _Ranked(Binary):
    """Measures that depend on how early relevant documents are ranked."""

    family = "precision and recall"


class _AtCut(_Ranked):
    """Measures of the first k ranks."""

    k = Whole(..., "the number of ranks that count (cut-off)")


class _Set(Binary):
    """Measures of the returned set; the order does not matter."""

    family = "set"
    at = None
    normalised = True


def f_measure(precision: Floats, recall: Floats, beta: float) -> Floats:
    """The weighted harmonic mean of precision and recall; `beta` > 1 favours recall."""
    return ratio((1 + beta**2) * precision * recall, beta**2 * precision + recall)


def relevant_down_to(hits: Hits, rel: float, rank: int | Ints) -> dict[str, Floats]:
    """The column of `trace` that marks the relevant documents down to a rank."""
    return traced((hits.grade >= rel) & (hits.rank <= rank), {"relevant": np.ones(len(hits))})


class P(_AtCut):
    """Precision at k: the share of the first k ranks that hold a relevant document.

    It divides by k even where fewer documents were returned; `divide=returned` divides by what was returned
    instead, as OpenSearch and Quepid do.

    Use it to describe the first page that a user sees: lecture 000 calls precision at ten the easiest figure to
    interpret. It is too coarse to compare similar rankings, because the order within the k ranks does not matter. Do
    not use it where topics have fewer than k relevant documents.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 0, "c": 1}}, run, "P@3").mean()
    0.6666666666666666
    """

    formula = "relevant documents at ranks 1…k / k"
    reference = KENT
    peers = {"trec_eval": ("P_{k}",), "ir_measures": ("P", "Precision"), "ranx": ("precision",)}
    divide = Choice("k", "the divisor of a list of fewer than k documents", "returned")
    rewrites = {"divide=returned": ("1…k / k", "1…k / documents at ranks 1…k")}

    def score(self, hits: Hits) -> Floats:
        return ratio(hits.top(self.k).relevant(self.rel).count(), self._whole(hits))

    def _whole(self, hits: Hits) -> int | Ints:
        return self.k if self.divide == "k" else hits.top(self.k).retrieved

    def shares(self, hits: Hits) -> Floats:
        whole = np.broadcast_to(self._whole(hits), (hits.size,))[hits.topic]
        return ratio((hits.grade >= self.rel) & (hits.rank <= self.k), whole)

    def expected(self, hits: Hits) -> Floats:
        """The mean over the orders of ties: from each relevant document's probability to be within the first k."""
        found = hits.relevant(self.rel)
        return ratio(found.sum(found.chance_within(self.k)), self._whole(hits))

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """The documents that count."""
        return relevant_down_to(hits, self.rel, self.k)

    def worked(self, hits: Hits) -> tuple[str, dict[str, Any]]:
        """Relevant documents over the total."""
        relevant = hits.top(self.k).relevant(self.rel).count()
        name = "k" if self.divide == "k" else "documents at ranks 1…k"
        return f"{{relevant}} / {{{name}}}", {"relevant": relevant, name: self._whole(hits)}


class R(_AtCut, Ratio):
    """Recall at k: the share of the topic's relevant documents that are within the first k ranks.

    `micro(R@50)` (`average=micro`) pools the topics: all relevant documents found over all there are.

    Use it where missed documents matter, and for a first stage whose k documents are reranked; not where users need one
    good answer, and not with k far below the number of relevant documents, where RelativeP is fairer. Lecture 004 works
    it out rank by rank.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 0, "x": 1}}, run, "R@3").mean()
    0.5
    """

    formula = "relevant documents at ranks 1…k / relevant documents"
    reference = KENT
    peers = {"trec_eval": ("recall_{k}",), "ir_measures": ("R", "Recall"), "ranx": ("recall",)}

    def parts(self, hits: Hits) -> tuple[Ints, Ints]:
        return hits.top(self.k).relevant(self.rel).count(), hits.n_relevant(self.rel)

    def expected(self, hits: Hits) -> Floats:
        """The mean over the orders of ties."""
        found = hits.relevant(self.rel)
        return ratio(found.sum(found.chance_within(self.k)), hits.n_relevant(self.rel))

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """The documents that count."""
        return relevant_down_to(hits, self.rel, self.k)

    def worked(self, hits: Hits) -> tuple[str, dict[str, Any]]:
        """Relevant documents over the total."""
        found, relevant = self.parts(hits)
        return "{relevant found} / {relevant}", {"relevant found": found, "relevant": relevant}


class F(_AtCut):
    """F at k: the weighted harmonic mean of precision and recall at k. A beta above 1 favours recall.

    Unlike the arithmetic mean it gives no credit for returning everything.

    Use it as one number for both where k is fixed; not where one of the two clearly matters more, unless beta is set to
    show this. Lecture 000 shows why the harmonic mean and not the arithmetic one.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2}}
    >>> round(evaluate({"q": {"a": 1, "x": 1, "y": 1}}, run, "F@2").mean(), 4)
    0.4
    """

    formula = "(1 + beta²) · P · R / (beta² · P + R)"
    reference = RIJSBERGEN
    peers = {"ranx": ("f1",)}
    beta = Real(1, "how many times recall matters as much as precision", low=0, open=True)

    def score(self, hits: Hits) -> Floats:
        found = hits.top(self.k).relevant(self.rel).count()
        return f_measure(found / self.k, ratio(found, hits.n_relevant(self.rel)), self.beta)


class SetP(_Set, Ratio):
    """Set precision: the share of the returned documents that are relevant.

    `micro(SetP)` pools the topics before dividing, as the lecture (004) shows: a topic then counts by how much was
    returned for it. `relative` divides by the highest precision that a list of this length can reach.

    Use it for results without an order (Boolean search, filters); not for rankings, nor alone: one sure document scores
    1, the "miraculous" system of lecture 004.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "c": 2}}, "SetP").mean()
    0.5
    """

    formula = "relevant documents returned / documents returned"
    reference = KENT
    peers = {
        "trec_eval": ("set_P", "set_relative_P = SetP(relative=True)"),
        "ir_measures": ("SetRelP = SetP(relative=True)",),
        "ranx": ("precision",),
    }
    relative = Flag("divide by the highest precision that a list of this length can reach")
    rewrites = {"relative=True": ("/ documents returned", "/ min(documents returned, relevant documents)")}

    def parts(self, hits: Hits) -> tuple[Ints, Ints]:
        returned = np.minimum(hits.retrieved, hits.n_relevant(self.rel)) if self.relative else hits.retrieved
        return hits.relevant(self.rel).count(), returned


class SetAP(_Set):
    """Set average precision: set precision times set recall, average precision for a list without an order.

    Use it for sets where both errors count, as a stricter F; not where F's scale is what readers expect, and not for
    rankings: that is AP.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "c": 2}}, "SetAP").mean()
    0.25
    """

    formula = "P · R"
    reference = BUCKLEY
    peers = {"trec_eval": ("set_map",)}

    def score(self, hits: Hits) -> Floats:
        found = hits.relevant(self.rel).count().astype(np.float64)
        return ratio(found * found, hits.retrieved * hits.n_relevant(self.rel).astype(np.float64))


class SetR(_Set, Ratio):
    """Set recall: the share of the relevant documents that were returned.

    `micro(SetR)` pools the topics before dividing: a topic then counts by how many relevant documents it has.

    Use it where everything relevant must be found; not alone, as returning everything scores 1, the "naive" system of
    lecture 004.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "c": 2}}, "SetR").mean()
    0.5
    """

    formula = "relevant documents returned / relevant documents"
    reference = KENT
    peers = {"trec_eval": ("set_recall",), "ranx": ("recall",)}

    def parts(self, hits: Hits) -> tuple[Ints, Ints]:
        return hits.relevant(self.rel).count(), hits.n_relevant(self.rel)


class SetF(_Set, Ratio):
    """Set F: the weighted harmonic mean of set precision and set recall. A beta above 1 favours recall.

    `micro(SetF)` is F of the micro-averaged precision and recall. trec_eval's `set_F_x` takes x = beta², and
    ir_measures passes its beta as that x.

    Use it to compare sets by one number; not for rankings. Lecture 000 contrasts it with the arithmetic mean, which
    gives 0.5 to returning everything.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "c": 2}}, "SetF").mean()
    0.5
    """

    formula = "(1 + beta²) · P · R / (beta² · P + R)"
    reference = RIJSBERGEN
    peers = {"trec_eval": ("set_F",), "ranx": ("f1",)}
    beta = Real(1, "how many times recall matters as much as precision", low=0, open=True)

    def parts(self, hits: Hits) -> tuple[Floats, Floats]:
        found = hits.relevant(self.rel).count().astype(np.float64)
        relevant = hits.n_relevant(self.rel).astype(np.float64)
        return (1 + self.beta**2) * found, self.beta**2 * relevant + hits.retrieved

    def score(self, hits: Hits) -> Floats:
        if self.average == "micro":
            return super().score(hits)
        found = hits.relevant(self.rel).count()  # trec_eval's order of operations, to the last digit
        return f_measure(ratio(found, hits.retrieved), ratio(found, hits.n_relevant(self.rel)), self.beta)


class Rprec(_Ranked):
    """R-precision: precision at rank R, where R is the number of relevant documents of the topic.

    Use it where topics have very different numbers of relevant documents, because its cut-off is that number, so that
    every topic can reach 1; not to describe what users see, because they do not look at R documents. On the
    precision-recall curve of lecture 000 it is where the two are equal.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 0, "c": 1}}, run, "Rprec").mean()
    0.5
    """

    formula = "relevant documents at ranks 1…R / R"
    reference = BUCKLEY
    peers = {"trec_eval": ("Rprec",), "ir_measures": ("RPrec",), "ranx": ("r-precision", "r_precision")}
    at = None
    normalised = True

    def score(self, hits: Hits) -> Floats:
        return ratio(*self._parts(hits))

    def _parts(self, hits: Hits) -> tuple[Floats, Ints]:
        relevant, found = hits.n_relevant(self.rel), hits.relevant(self.rel)
        return found.sum(found.rank <= relevant[found.topic]), relevant

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """Which documents count: the relevant ones down to rank R."""
        return relevant_down_to(hits, self.rel, hits.n_relevant(self.rel)[hits.topic])

    def worked(self, hits: Hits) -> tuple[str, dict[str, Any]]:
        """Relevant documents over the total."""
        within, relevant = self._parts(hits)
        return "{relevant down to rank R} / {R}", {"relevant down to rank R": within, "R": relevant}

    def expected(self, hits: Hits) -> Floats:
        """The mean over the orders of ties."""
        relevant, found = hits.n_relevant(self.rel), hits.relevant(self.rel)
        return ratio(found.sum(found.chance_within(relevant[found.topic])), relevant)


class Success(_Ranked):
    """Success at k, or hit rate: 1 if a relevant document is within the first k ranks, else 0.

    Without k it asks whether a relevant document was returned at all.

    Use it where one answer is enough (known items, question answering, suggestions); not where users want several, nor
    to tell good systems apart, as it soon reaches 1. Lecture 000 describes such searches for a known item.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"b": 1}}, {"q": {"a": 3, "b": 2}}, "Success@1 Success@2").means()
    {'Success@1': 0.0, 'Success@2': 1.0}
    """

    formula = "1 if a relevant document is at ranks 1…k, else 0"
    reference = "Craswell & Hawking (2004), Overview of the TREC web track"
    peers = {"trec_eval": ("success_{k}",), "ranx": ("hit_rate",), "ir_measures": ("HitRate",)}
    peers |= {"--as beir": ("Accuracy@{k}", "accuracy@{k}")}
    normalised = True
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        return np.minimum(hits.top(self.k).relevant(self.rel).count(), 1).astype(np.float64)

    def expected(self, hits: Hits) -> Floats:
        """The mean over the orders of ties: the probability that a relevant document is within the first k."""
        topic, rank, chance = hits.relevant(self.rel).ties.first_places()
        return hits.judgments.sum(topic, np.where(rank <= (self.k or np.inf), chance, 0))


class RelativeP(_AtCut):
    """Relative precision at k: the relevant documents within the first k ranks, over the most that could be there.

    Precision as long as k is no more than the number of relevant documents, recall beyond. BEIR calls it capped recall,
    R_cap. Use it where topics have more relevant documents than k, so that recall at k could never reach 1; not where
    all relevant documents must be found (recall).

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "x": 1}}, run, "RelativeP@1 RelativeP@3").means()
    {'RelativeP@1': 1.0, 'RelativeP@3': 0.5}
    """

    formula = "relevant documents at ranks 1…k / min(k, relevant documents)"
    reference = BUCKLEY
    peers = {"trec_eval": ("relative_P_{k}",), "beir": ("R_cap", "Recall_cap")}
    normalised = True

    def score(self, hits: Hits) -> Floats:
        return ratio(hits.top(self.k).relevant(self.rel).count(), np.minimum(hits.n_relevant(self.rel), self.k))


class RecallAtP(_Ranked):
    """Recall at fixed precision: the highest recall that any cut of the list reaches with at least this precision.

    Use it where a certain share of wrong answers is acceptable, to see how much a user can then find; not where users
    look at a fixed number of results. torchmetrics averages the topics' curves first and reads recall off the mean
    curve; here every topic has its own cut.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 4, "b": 3, "c": 2, "d": 1}}
    >>> evaluate({"q": {"a": 1, "d": 1, "x": 1, "y": 1}}, run, "RecallAtP(precision=0.5) RecallAtP(precision=0.8)").means()
    {'RecallAtP(precision=0.5)': 0.5, 'RecallAtP(precision=0.8)': 0.25}
    """

    formula = "max over ranks r with P@r ≥ precision of R@r; 0 if there is none"
    reference = "Manning, Raghavan & Schütze (2008), Introduction to Information Retrieval, chapter 8"
    peers = {"torchmetrics": ("RetrievalRecallAtFixedPrecision",)}
    synonyms = {"min_precision": "precision", "max_k": "k"}
    normalised = True
    precision = Real(0.5, "the precision to keep", low=0, high=1)
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        found = hits.top(self.k).relevant(self.rel)
        most = np.zeros(hits.size)
        np.maximum.at(most, found.topic, np.where(found.nth / found.rank >= self.precision, found.nth, 0))
        return ratio(most, hits.n_relevant(self.rel))


class RprecMult(_Ranked):
    """Precision at a multiple of R, the number of relevant documents of the topic.

    A system that leads at small multiples and falls behind at large ones favours precision over recall.

    Use it to see whether a system's lead lies at the top or further down; not as the one number of a report. Lecture
    000 makes the same point with precision-recall curves that cross.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 4, "b": 3, "c": 2, "d": 1}}
    >>> evaluate({"q": {"a": 1, "c": 1}}, run, "RprecMult@0.5 RprecMult@2.0").means()
    {'RprecMult@0.5': 1.0, 'RprecMult@2.0': 0.5}
    """

    formula = "relevant documents at ranks 1…c / c,  c = ⌊multiple · R + 0.9⌋"
    reference = BUCKLEY
    peers = {"trec_eval": ("Rprec_mult_{multiple}",)}
    at = "multiple"
    multiple = Real(1, "the cut-off as a multiple of R", low=0)

    def score(self, hits: Hits) -> Floats:
        cut = np.floor(self.multiple * hits.n_relevant(self.rel).astype(np.float64) + 0.9)
        found = hits.relevant(self.rel)
        return ratio(found.sum(found.rank <= cut[found.topic]), cut)


class Utility(Binary):
    """Utility: what the returned set is worth, as a weighted sum of the four cells of the contingency table.

    The last weight needs the number of documents in the collection: `documents`, or else the collection's size.

    Use it where what each right and wrong answer earns or costs is known (filtering, alerts); not to average over
    topics with very different numbers of documents: it has no bounds, so the largest topics decide. Lecture 000 asks
    for measures that follow the users' actual utility.

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
    may_use = ("size",)
    found = Real(1, "the worth of a relevant document that is returned")
    noise = Real(-1, "the worth of any other document that is returned")
    missed = Real(0, "the worth of a relevant document that is not returned")
    rest = Real(0, "the worth of any other document that is not returned")
    documents = Whole(0, "the number of documents in the collection", low=0)

    def score(self, hits: Hits) -> Floats:
        found = hits.relevant(self.rel).count().astype(np.float64)
        returned, relevant = hits.retrieved.astype(np.float64), hits.n_relevant(self.rel).astype(np.float64)
        gained = self.found * found + self.noise * (returned - found)
        documents = self.documents or hits.judgments.extras.size or 0
        return gained + self.missed * (relevant - found) + self.rest * (documents + found - returned - relevant)
