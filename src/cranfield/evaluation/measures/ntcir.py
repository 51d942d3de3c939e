"""The measures of NTCIR: graded relevance with the blended ratio, and users who stop at a relevant document.

The blended ratio at rank r is (relevant documents + beta · gain) / (r + beta · ideal gain), each counted down to r. It is
a precision that uses grades and never exceeds 1. As at NTCIR, documents with a gain above 0 are relevant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.parameters import Choice, Depth, Real
from cranfield.evaluation.hits import ratio
from cranfield.evaluation.measures.definition import Gain, Measure

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
    from cranfield.evaluation.hits import Hits
    from cranfield.evaluation.measures.definition import Gains

ONE_GOOD = "Sakai (2007), On the properties of evaluation metrics for finding one highly relevant document, IPSJ TOD"
BLENDED = "(count + beta · gain) / (rank + beta · ideal gain)"


def relevant(hits: Hits, gain: Gains) -> tuple[Hits, Floats]:
    """The hits with a gain above 0, and the gain of each."""
    worth = Gain.of(gain, hits.grade)
    return hits.where(worth > 0), worth[worth > 0]


def blended(found: Hits, worth: Floats, best: Hits, best_worth: Floats, beta: float) -> Floats:
    """The blended ratio at the rank of each relevant document found."""
    reachable = best.total_at(best_worth, found.topic, found.rank)
    return (found.nth + beta * found.running_sum(worth)) / (found.rank + beta * reachable)


def preferred(found: Hits, worth: Floats) -> Floats:
    """For each hit, the rank of its topic's first hit of the highest gain: the preferred rank, where users stop."""
    highest = np.zeros(found.size)
    np.maximum.at(highest, found.topic, worth)
    rank = np.full(found.size, np.inf)
    top = worth == highest[found.topic]
    np.minimum.at(rank, found.topic[top], found.rank[top])
    return rank[found.topic]


class _Blended(Measure):
    """Measures of the blended ratio at one relevant document or at all of them."""

    family = "gain"
    reference = ONE_GOOD
    normalised = True
    monotone = False
    beta = Real(1, "the weight of gain, next to the number of relevant documents", low=0)
    gain = Gain()
    k = Depth()

    def ratios(self, hits: Hits) -> tuple[Hits, Floats, Floats]:
        """The relevant documents within the first k ranks, their gains, and the blended ratio at each."""
        found, worth = relevant(hits.top(self.k), self.gain)
        return found, worth, blended(found, worth, *Gain.ideal(self.gain, hits), self.beta)


class Q(_Blended):
    """Q-measure: the blended ratio at the rank of each relevant document, averaged over all relevant documents.

    Average precision for graded judgments: `beta=0` is average precision, a larger one lets grades count for more. With
    a cut-off it divides by min(R, k), as NTCIREVAL does. Use it where average precision would be used but grades matter
    (why they should: lecture 003), above all when missing a highly relevant document should cost more; not where only
    the first page counts (nDCG@k). Do not compare it with published AP: below rank R it differs even for binary
    judgments. With a large beta, moving up a document of a low grade can lower the score, because the ideal list has
    more gain there.

    >>> from cranfield import evaluate
    >>> run = {"q": {"x": 4, "a": 3, "b": 2}}
    >>> evaluate({"q": {"a": 1, "b": 1}}, run, "Q").mean()  # (2/4 + 4/5) / 2
    0.65
    """

    formula = f"1/R · Σ over relevant documents found of {BLENDED}"
    reference = "Sakai (2004), New performance metrics based on multigrade relevance, NTCIR-4"
    peers = {"NTCIREVAL": ("Q-measure", "QMeasure", "Qmeasure")}
    rewrites = {"k": ("1/R", "1/min(R, k)")}

    def score(self, hits: Hits) -> Floats:
        found, _, blend = self.ratios(hits)
        return ratio(found.sum(blend), Gain.ideal(self.gain, hits)[0].top(self.k).count())


class Omeasure(_Blended):
    """O-measure: the blended ratio at the first relevant document: reciprocal rank for graded judgments.

    Use it for a user who wants one document and takes the first that is relevant (reciprocal rank's user in lecture
    003), where a better first document should score more; not where the user goes on to the best one (Pmeasure, Pplus),
    nor for topics with many answers. A poor document put above a good one can lower it.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 3}}, {"q": {"a": 3, "b": 2}}, "Omeasure").mean()  # (1 + 1) / (1 + 3)
    0.5
    """

    formula = "(1 + beta · gain) / (rank + beta · ideal gain) at the first relevant document"
    peers = {"NTCIREVAL": ("O-measure", "OMeasure", "O")}

    def score(self, hits: Hits) -> Floats:
        found, _, blend = self.ratios(hits)
        return found.sum((found.nth == 1) * blend)


class Pmeasure(_Blended):
    """P-measure: the blended ratio at the best document found, the one of the highest gain nearest the top.

    Relevant documents above it count too. Use it for a user who looks for one very good document and recognises it; not
    for a user who takes the first relevant one (Omeasure). The best document is the best one *returned*: a run is not
    punished for better documents that it missed, and relevant documents above the best one raise the score. NTCIR
    prints it as P-measure; `P` is precision here.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 3}}, {"q": {"a": 3, "b": 2}}, "Pmeasure").mean()  # (2 + 4) / (2 + 4)
    1.0
    """

    formula = f"{BLENDED} at the first document of the highest gain found"
    peers = {"NTCIREVAL": ("P-measure", "PMeasure")}
    ideal_is_best = False

    def score(self, hits: Hits) -> Floats:
        found, worth, blend = self.ratios(hits)
        return found.sum((found.rank == preferred(found, worth)) * blend)


class Pplus(_Blended):
    """P+: the blended ratio averaged over the relevant documents down to the best one found.

    Users are equally likely to stop at each of these documents, while P-measure's users all go on to the best one. Use
    it for users who want one very good document, if the documents on the way count too; not for topics where users want
    everything relevant (Q, AP). The best document is the best one *returned*.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 3}}, {"q": {"a": 3, "b": 2}}, "Pplus").mean()  # (2/4 + 6/6) / 2
    0.75
    """

    formula = f"mean of {BLENDED} over relevant documents down to the first of the highest gain found"
    peers = {"NTCIREVAL": ("P-plus", "P+", "PPlusMeasure", "P-plus-measure")}
    ideal_is_best = False  # where better documents were not returned, the road to the best one may weigh more than it

    def score(self, hits: Hits) -> Floats:
        found, worth, blend = self.ratios(hits)
        passed = found.rank <= preferred(found, worth)
        return ratio(found.sum(passed * blend), found.sum(passed))


class Stops(Gain):
    """How likely users stop at a grade, relative to other grades: its gain, or another gain or table."""

    def __init__(self) -> None:
        super().__init__()
        self.default, self.meaning = "gain", "how likely users stop at a grade, relative to others (stop=gu)"

    @property
    def range(self) -> str:
        return "gain (the gain of the grade) | " + super().range

    def in_formula(self, value: Gains) -> str:
        return "gain" if value == "gain" else super().in_formula(value)

    def read(self, value: Any) -> Gains:
        return "gain" if value == "gain" else super().read(value)


class NCU(Measure):
    """Normalised cumulative utility: what a population of users, who stop at various relevant documents, get on average.

    Who stops where: `stop=gu` is graded-uniform (at each relevant document, in proportion to its gain), `stop=rb` is
    rank-biased (at the n-th relevant document found, in proportion to gamma^(n − 1)). What users get there: `utility=P`
    is precision, `utility=BR` the blended ratio. NTCIREVAL prints the four as NCUgu,P, NCUgu,BR, NCUrb,P and NCUrb,BR.
    Average precision and Q-measure are the members whose users stop uniformly. Use it to see how far a result depends
    on the assumed users; not as the main number of a report, because few readers know it.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 3}}, {"q": {"b": 3, "x": 2}}, "NCU").mean()  # 3/4 of the users stop at b
    0.75
    """

    family = "gain"
    formula = "Σ over relevant documents found of P(stop here) · utility(rank)"
    reference = (
        "Sakai & Robertson (2008), Modelling a user population for designing information retrieval metrics, EVIA"
    )
    peers = {
        "NTCIREVAL": (
            "NCUguP = NCU(stop=gu, utility=P)",
            "NCUguBR = NCU(stop=gu, utility=BR)",
            "NCUrbP = NCU(stop=rb, utility=P)",
            "NCUrbBR = NCU(stop=rb, utility=BR)",
        )
    }
    at = None
    normalised = True
    monotone = False
    stop = Choice("gu", "where users stop: graded-uniform or rank-biased", "rb")
    utility = Choice("P", "what users get where they stop: precision or the blended ratio", "BR")
    beta = Real(1, "the weight of gain, next to the number of relevant documents (utility=BR)", low=0)
    gamma = Real(0.95, "the share of users who go on to the next relevant document (stop=rb)", low=0, high=1)
    stops = Stops()
    gain = Gain()
    rewrites = {
        "stop=gu": ("", ",  P(stop here) = stops / Σ of stops over all relevant documents"),
        "stop=rb": ("", ",  P(stop here) = gamma^(count − 1) / Σ over i ≤ R of gamma^(i − 1)"),
        "utility=P": ("", ",  utility = count / rank"),
        "utility=BR": ("", f",  utility = {BLENDED}"),
    }

    def score(self, hits: Hits) -> Floats:
        found, worth = relevant(hits, self.gain)
        best, best_worth = Gain.ideal(self.gain, hits)
        beta = self.beta if self.utility == "BR" else 0.0
        stop, stop_if_all = self._stop(found), self._stop(best)
        return ratio(found.sum(stop * blended(found, worth, best, best_worth, beta)), best.sum(stop_if_all))

    def _stop(self, hits: Hits) -> Floats:
        """The relative number of users who stop at each relevant document."""
        if self.stop == "rb":
            return np.asarray(self.gamma ** (hits.nth - 1.0), np.float64)
        return Gain.of(self.gain if self.stops == "gain" else self.stops, hits.grade)
