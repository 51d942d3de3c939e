"""The contingency table (relevant or not × returned or not) and the rates computed from it.

Unjudged documents count as not relevant. The fourth cell, documents neither relevant nor returned, needs the size of
the collection: `Extras(size=N)` or `--collection-size N`. A rate whose denominator is 0 is 0; the likelihood ratios and
the odds ratio, which would be infinite, are undefined.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import Depth, Real
from cranfield.evaluation.hits import ratio
from cranfield.evaluation.measures.definition import Binary, Ratio

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
    from cranfield.evaluation.hits import Hits

LECTURE = "The table of the lecture (004); Manning, Raghavan & Schütze (2008), Introduction to Information Retrieval, chapter 8"


class Cells(NamedTuple):
    """The four cells, one value per topic each: true and false positives, false and true negatives."""

    tp: Floats
    fp: Floats
    fn: Floats
    tn: Floats

    def total(self, names: str) -> Floats:
        """The sum of the cells in a part of a formula: "FP + TN", or "N" for all four."""
        parts = names.strip("()").lower().split(" + ")
        cells = self if parts == ["n"] else [getattr(self, name) for name in parts]
        return np.asarray(np.sum(cells, axis=0), np.float64)


def cells(hits: Hits, rel: float, k: int | None = None, more: float = 0.0) -> Cells:
    """The table for the first k documents returned; `tn` is NaN if the collection's size is unknown."""
    top = hits.top(k)
    found = top.relevant(rel).count().astype(np.float64)
    noise, missed = top.retrieved - found, hits.n_relevant(rel) - found
    size = hits.judgments.extras.size
    rest = np.full(hits.size, np.nan) if size is None else size - found - noise - missed
    if (rest < 0).any():
        worst = int(np.argmin(rest))
        topic, number = hits.judgments.qrels.topics[worst], int(size or 0) - int(rest[worst])
        problem = f"{number} documents are relevant or returned for topic {topic!r}"
        raise DataError(f"the collection size is given as {size}, but {problem}")
    return Cells(found + more, noise + more, missed + more, rest + more)


class _Share(Ratio):
    """A rate from the table. Its formula names the cells that are added up above and below the line."""

    family = "set"
    reference = LECTURE

    def parts(self, hits: Hits) -> tuple[Floats, Floats]:
        table = cells(hits, self.rel, self.values.get("k"))
        above, below = map(table.total, self.formula.split(" / "))
        return above, below


class _Rate(_Share):
    """A rate that may be cut at rank k."""

    k = Depth()


class _SuccessRate(_Rate):
    """A rate of documents that were rightly left out; returning nothing scores well."""

    needs = ("size",)
    empty_is_zero = False
    normalised = True


class _ErrorRate(_Rate):
    """A rate of error: returning nothing, or everything, may score best."""

    lower_is_better = True
    ideal_is_best = False
    monotone = False


class SetAccuracy(_SuccessRate):
    """Set accuracy: the share of all documents that are rightly returned or rightly left out.

    Use it for filtering, where relevant documents are common; not for search, where nearly every document is
    irrelevant and returning nothing is nearly perfect. The lecture (004) lists it in its confusion matrix. `Accuracy`
    is another measure, ir_measures' share of pairs in the right order.

    >>> from cranfield import Extras, evaluate
    >>> run = {"q": {"a": 3, "c": 2}}
    >>> evaluate({"q": {"a": 1, "b": 1}}, run, "SetAccuracy", extras=Extras(size=10)).mean()
    0.8
    """

    formula = "(TP + TN) / N"


class Prevalence(_Share):
    """Prevalence, or generality: the share of the collection that is relevant. It says nothing about the run.

    Use it to see how hard a topic is: it is the precision of returning everything, the "naive" system of the lecture
    (004). It does not measure a system.

    >>> from cranfield import Extras, evaluate
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 3}}, "Prevalence", extras=Extras(size=10)).mean()
    0.2
    """

    formula = "(TP + FN) / N"
    peers = {"lectures": ("Generality",)}
    at = None
    needs = ("size",)
    empty_is_zero = False


class FallOut(_ErrorRate):
    """Fall-out, or false positive rate: the share of the non-relevant documents that the run returned.

    Lower is better. Use it with recall, as the two axes of a ROC curve, and at k to compare noise; not alone, as
    returning nothing scores best, and not to compare collections: it shrinks as they grow. In the lecture's confusion
    matrix (004) it is the probability of a false alarm. torchmetrics divides by the documents passed to it that are
    not relevant, not by those of the collection.

    >>> from cranfield import Extras, evaluate
    >>> run = {"q": {"a": 3, "c": 2, "d": 1}}
    >>> evaluate({"q": {"a": 1, "b": 1}}, run, "FallOut FallOut@2", extras=Extras(size=10)).means()
    {'FallOut': 0.25, 'FallOut@2': 0.125}
    """

    formula = "FP / (FP + TN)"
    peers = {"lectures": ("FPR",), "torchmetrics": ("RetrievalFallOut",)}
    needs = ("size",)


class Specificity(_SuccessRate):
    """Specificity, or true negative rate: the share of the non-relevant documents that the run left out.

    It is 1 − fall-out. Use it where leaving out is the task (filtering, screening); not for ranked search over a large
    collection, where every system is near 1. The lecture (004) calls it selectivity as well.

    >>> from cranfield import Extras, evaluate
    >>> run = {"q": {"a": 3, "c": 2, "d": 1}}
    >>> evaluate({"q": {"a": 1, "b": 1}}, run, "Specificity", extras=Extras(size=10)).mean()
    0.75
    """

    formula = "TN / (FP + TN)"
    peers = {"lectures": ("TNR", "Selectivity")}


class MissRate(_ErrorRate):
    """Miss rate, or false negative rate: the share of the relevant documents that the run did not return; 1 − recall.

    Lower is better. Use it where one missed document is the failure (patents, systematic reviews, discovery); not
    alone, as returning everything scores best. It is FNR in the lecture's confusion matrix (004).

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 1, "x": 1, "y": 1}}, {"q": {"a": 3, "c": 2}}, "MissRate").mean()
    0.75
    """

    formula = "FN / (TP + FN)"
    peers = {"lectures": ("FNR",)}
    empty_is_zero = False


class NPV(_SuccessRate):
    """Negative predictive value: the share of the documents not returned that are indeed not relevant.

    Use it to say how safe it is to stop reading, as in screening; not to compare search systems over a large
    collection, where it is near 1 for all. From the lecture's confusion matrix (004).

    >>> from cranfield import Extras, evaluate
    >>> run = {"q": {"a": 3, "c": 2}}
    >>> evaluate({"q": {"a": 1, "b": 1}}, run, "NPV", extras=Extras(size=10)).mean()
    0.875
    """

    formula = "TN / (TN + FN)"


class FDR(_ErrorRate):
    """False discovery rate: the share of the returned documents that are not relevant; 1 − precision. Empty list: 0.

    Lower is better. Use it where each wrong answer costs (alerts, filtering); not alone, as returning nothing scores
    best. From the lecture's confusion matrix (004).

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "c": 2}}, "FDR").mean()
    0.5
    """

    formula = "FP / (TP + FP)"


class FOR(_ErrorRate):
    """False omission rate: the share of the documents not returned that are relevant; 1 − NPV.

    Lower is better. Use it to estimate how many relevant documents a reader who stops here misses (the elusion of legal
    discovery); not to compare collections: it shrinks as they grow. From the lecture's confusion matrix (004).

    >>> from cranfield import Extras, evaluate
    >>> run = {"q": {"a": 3, "c": 2}}
    >>> evaluate({"q": {"a": 1, "b": 1}}, run, "FOR", extras=Extras(size=10)).mean()
    0.125
    """

    formula = "FN / (TN + FN)"
    peers = {"e-discovery": ("Elusion",)}
    needs = ("size",)
    empty_is_zero = False


class _Likelihood(Binary):
    """Ratios of two rates: undefined if the second rate is 0, unless the cells are smoothed."""

    family = "set"
    reference = LECTURE
    needs = ("size",)
    high = np.inf
    ideal_is_best = False
    monotone = False
    empty_is_zero = False
    smooth = Real(0, "added to each of the four cells (0.5 is Haldane's correction)", low=0)
    k = Depth()

    @abstractmethod
    def odds(self, table: Cells) -> tuple[Floats, Floats]:
        """Numerator and denominator; the ratio is undefined if the denominator is 0."""

    def score(self, hits: Hits) -> Floats:
        return ratio(*self.odds(cells(hits, self.rel, self.k, self.smooth)), otherwise=np.nan)


class LRplus(_Likelihood):
    """Positive likelihood ratio: how many times likelier a relevant document is to be returned than another one.

    Use it to compare, over topics of different prevalence, how strongly being returned indicates relevance; not where
    fall-out is often 0: such topics have no value and drop out of the mean. From the lecture's confusion matrix (004).

    >>> from cranfield import Extras, evaluate
    >>> run = {"q": {"a": 3, "c": 2}}
    >>> evaluate({"q": {"a": 1, "b": 1}}, run, "LRplus", extras=Extras(size=10)).mean()
    4.0
    """

    formula = "recall / fall-out = (TP / (TP + FN)) / (FP / (FP + TN))"
    peers = {"lectures": ("LR+",)}
    undefined = "nothing irrelevant was returned"

    def odds(self, table: Cells) -> tuple[Floats, Floats]:
        return ratio(table.tp, table.tp + table.fn), ratio(table.fp, table.fp + table.tn)


class LRminus(_Likelihood):
    """Negative likelihood ratio: how many times likelier a relevant document is to be left out than another one.

    Lower is better; below 1, left-out documents are less likely to be relevant than others. Use it with LRplus. Over a
    large collection it says no more than the miss rate, because specificity is near 1. From the lecture's confusion matrix (004).

    >>> from cranfield import Extras, evaluate
    >>> run = {"q": {"a": 3, "c": 2}}
    >>> round(evaluate({"q": {"a": 1, "b": 1}}, run, "LRminus", extras=Extras(size=10)).mean(), 4)
    0.5714
    """

    formula = "miss rate / specificity = (FN / (TP + FN)) / (TN / (FP + TN))"
    peers = {"lectures": ("LR-",)}
    lower_is_better = True
    undefined = "all irrelevant documents were returned"

    def odds(self, table: Cells) -> tuple[Floats, Floats]:
        return ratio(table.fn, table.tp + table.fn), ratio(table.tn, table.fp + table.tn)


class DOR(_Likelihood):
    """Diagnostic odds ratio: the odds of a relevant document to be returned, over those of any other; LR+ / LR−.

    Use it as one number for a yes-or-no decision that does not depend on prevalence; not for rankings, and not
    unsmoothed where a cell is often empty. From the lecture's confusion matrix (004).

    >>> from cranfield import Extras, evaluate
    >>> run = {"q": {"a": 3, "c": 2}}
    >>> evaluate({"q": {"a": 1, "b": 1}}, run, "DOR DOR(smooth=0.5)", extras=Extras(size=10)).means()
    {'DOR': 7.0, 'DOR(smooth=0.5)': 5.0}
    """

    formula = "TP · TN / (FP · FN)"
    reference = "Glas, Lijmer, Prins, Bonsel & Bossuyt (2003), The diagnostic odds ratio, J Clin Epidemiol"
    undefined = "nothing irrelevant was returned, or nothing relevant missed"

    def odds(self, table: Cells) -> tuple[Floats, Floats]:
        return table.tp * table.tn, table.fp * table.fn


class AUROC(Binary):
    """Area under the ROC curve: the probability that a relevant document of the collection ranks above another
    document.

    Documents that were not returned are tied below all returned ones; pairs of tied documents count one half. Use it to
    compare rankers that score every document, as it does not depend on prevalence; not for search, where the top of the
    list matters and millions of easy negatives push every system towards 1. The rates of its curve are in the lecture's
    table (004).

    >>> from cranfield import Extras, evaluate
    >>> run = {"q": {"a": 3, "c": 2, "b": 1}}
    >>> evaluate({"q": {"a": 1, "b": 1}}, run, "AUROC", extras=Extras(size=7)).mean()
    0.9
    """

    family = "set"
    formula = "pairs (relevant, other) in the right order, ties as one half / all such pairs in the collection"
    reference = "Hanley & McNeil (1982), The meaning and use of the area under a ROC curve, Radiology"
    peers = {"scikit-learn": ("roc_auc_score",), "torchmetrics": ("RetrievalAUROC",)}
    at = None
    needs = ("size",)
    normalised = True
    empty_is_zero = False

    def score(self, hits: Hits) -> Floats:
        table, found = cells(hits, self.rel), hits.relevant(self.rel)
        below = (table.fp + table.tn)[found.topic] - (found.rank - found.nth)
        return ratio(found.sum(below) + table.fn * table.tn / 2, (table.tp + table.fn) * (table.fp + table.tn))
