"""User models: a user reads down the list, continues with some probability, and collects gain and cost on the way.

All follow the C/W/L framework. A model defines how likely its user sees each rank, usually from the probability C of
continuing to the next rank. There are five outputs: total gain (ETU), total cost (ETC), ranks seen (ED), and gain and
cost per rank seen (EU, the default score, and EC). Ranks below the end of a list are seen too: they hold nothing, and
the residual says what they could hold.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cranfield.base.parameters import Choice, Depth, Flag, Real, Whole, number_text
from cranfield.evaluation.hits import ratio, returned_documents
from cranfield.evaluation.measures.definition import Measure, traced

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.evaluation.hits import Hits

CELLS = 1 << 18  # cells of a grid of topics × ranks per block: 2 MB for each array
SCALE = {"max_rel": "max", "min_rel": "min"}  # ir_measures' spellings
NOTHING = (np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))  # topics, ranks and costs
NOT_ERR = "Azzopardi, Mackenzie & Moffat (2021), ERR is not C/W/L, ICTIR"


def outputs(formula: str, views: str) -> dict[str, tuple[str, str]]:
    """How each output rewrites the formula of a model whose users see rank r with probability V(r)."""
    gain = "gain = (grade − min) / (max − min), from 0 to 1"
    sums = {"EU": "Σ V(r) · gain(r) / Σ V(r)", "ETU": "Σ V(r) · gain(r)"}
    sums |= {"EC": "Σ V(r) · cost(r) / Σ V(r)", "ETC": "Σ V(r) · cost(r)", "ED": "Σ V(r)"}
    return {f"output={name}": (formula, f"{total},  V(r) = {views},  {gain}") for name, total in sums.items()}


class _UserModel(Measure):
    """A user model: it has five outputs, and a residual for each."""

    family = "user models"
    output = Choice("EU", "expected utility, total utility, cost, total cost, or depth", "ETU", "EC", "ETC", "ED")
    residual = Flag("report the residual: what the output would gain if every unjudged document had gain 1")
    cost = Real(1, "the cost of a rank whose cost is unknown", low=0, open=True)
    rewrites = {"residual=True": ("", ",  as the increase if all that is unjudged were worth 1")}

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        if self.output != "EU" or self.residual:
            self.low, self.high, self.empty_is_zero = -np.inf, np.inf, False


def residual(hits: Hits, p: float) -> Floats:
    """The weight of all ranks without a judged document, for a user who continues with probability p."""
    judged = hits.judged()
    return 1 - (1 - p) * judged.sum(p ** (judged.rank - 1.0))


def costs(hits: Hits, unknown: float) -> tuple[Ints, Ints, Floats]:
    """The topic, rank and cost of every document returned; `unknown` is the cost of documents without one.

    Without any costs the lists are empty: every document then costs `unknown`.
    """
    by_document = hits.judgments.extras.costs
    if by_document is None:
        return NOTHING
    topic, rank, documents = returned_documents(hits)
    return topic, rank, np.array([by_document.get(document, unknown) for document in documents], np.float64)


class RBP(_UserModel):
    """Rank-biased precision: the expected rate of gain of a user who goes on to the next rank with probability p.

    `gain=binary` counts grades of `rel` or more as 1; `gain=grade` takes grade / `max`; `gain=topic` takes grade / the
    topic's highest grade, as trec_eval 10 does. There is no last rank: all five outputs are those of the endless list,
    whose ranks past the end (or past k) are worth nothing in the score, and count fully in the residual. Use it where
    the user reads from the top and may leave at any rank (lecture 003 describes such users for reciprocal rank and AP,
    too), and where judgments are few: the residual says how much the missing judgments leave open. Choose p to fit the
    users of the system: 0.5 sees 2 ranks, 0.8 sees 5, 0.95 sees 20 on average.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 1, "c": 1}}, {"q": {"a": 3, "b": 2, "c": 1}}, "RBP(p=0.5)").mean(), 4)
    0.625
    >>> round(evaluate({"q": {"a": 1, "c": 1}}, {"q": {"a": 3, "b": 2, "c": 1}}, "RBP(p=0.5, output=ETU)").mean(), 4)
    1.25
    """

    formula = "(1 − p) · Σ over ranks r of gain(r) · p^(r − 1)"
    reference = "Moffat & Zobel (2008), Rank-biased precision for measurement of retrieval effectiveness, TOIS"
    peers = {"trec_eval": ("rbp = RBP(p=0.9, gain=topic)",), "ranx": ("rbp{p} = RBP(gain=grade)",)}
    peers |= {"--as ranx": ("rbp@{p} = RBP(gain=grade, p=0.{p})",)}
    level = "lowest"
    p = Real(0.8, "the probability of going on to the next rank", low=0, high=1, open=True)
    rel = Real(1, "the lowest relevant grade (gain=binary)")
    gain = Choice("binary", "the gain of a grade", "grade", "topic")
    max = Real(1, "the grade that is worth 1 (gain=grade)", low=0, open=True)
    lowest = Real(0, "the lowest grade with a gain (gain=grade, topic)", low=0)
    k = Depth()
    rewrites = {
        "output=ETU": ("(1 − p) · Σ", "Σ"),
        "output=EC": ("gain(r)", "cost(r)"),
        "output=ETC": (formula, "Σ over ranks r of cost(r) · p^(r − 1)"),
        "output=ED": (formula, "1 / (1 − p)"),
        "gain=binary": ("", ",  gain = 1 for grades of rel or more, else 0"),
        "gain=grade": ("", ",  gain = grade / max"),
        "gain=topic": ("", ",  gain = grade / highest grade of the topic"),
    }

    def beyond(self, highest: float) -> str:
        """Grades above `max` have a gain above 1."""
        if self.gain != "grade" or highest <= self.max:
            return ""
        gain = f"a grade of {number_text(highest)} has gain {highest / self.max:g}"
        return f"max={number_text(self.max)}, and {gain}; set max={number_text(highest)}"

    def score(self, hits: Hits) -> Floats:
        expected_depth = 1 / (1 - self.p)
        if self.output == "ED":
            return np.full(hits.size, 0.0 if self.residual else expected_depth)
        if self.output in ("EC", "ETC"):
            rate = np.zeros(hits.size) if self.residual else self._cost(hits)
        else:
            rate = residual(hits.top(self.k), self.p) if self.residual else self._utility(hits)
        return rate * expected_depth if self.output in ("ETU", "ETC") else rate

    def expected(self, hits: Hits) -> Floats | None:
        """The mean over the orders of ties: each document gets the mean weight of its tie group's ranks."""
        if self.output != "EU" or self.residual or self.gain == "topic":
            return None
        found = hits.relevant(self._least)
        end = np.minimum(found.tied_to, self.k or np.inf)
        weight = np.maximum(self.p ** (found.tied_from - 1.0) - self.p**end, 0) / (found.tied_to - found.tied_from + 1)
        return found.sum(weight if self.gain == "binary" else weight * found.grade / self.max)

    def shares(self, hits: Hits) -> Floats | None:
        if self.output != "EU" or self.residual or self.gain == "topic":
            return None
        mask = (hits.grade >= self._least) & (hits.rank <= (self.k or np.inf))
        return np.where(mask, (1 - self.p) * self._worth(hits) * self.p ** (hits.rank - 1.0), 0.0)

    @property
    def _least(self) -> float:
        """The lowest grade with a gain."""
        return self.rel if self.gain == "binary" else self.lowest

    def _utility(self, hits: Hits) -> Floats:
        found = hits.top(self.k).relevant(self._least)
        return (1 - self.p) * found.sum(self._worth(found) * self.p ** (found.rank - 1.0))

    def _worth(self, hits: Hits) -> Floats:
        if self.gain == "binary":
            return np.ones(len(hits))
        if self.gain == "grade":
            return ratio(hits.grade, self.max)
        highest = np.zeros(hits.size)
        np.maximum.at(highest, hits.judgments.topic, hits.judgments.grade)
        return ratio(hits.grade, highest[hits.topic])

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """The gain of the document, and the share of users who see it."""
        if self.output != "EU" or self.residual:
            return {}
        mask = (hits.grade >= self._least) & (hits.rank <= (self.k or np.inf))
        worth, weight = self._worth(hits), (1 - self.p) * self.p ** (hits.rank - 1.0)
        return traced(mask, {"gain": worth, "weight": weight, "contribution": worth * weight})

    def _cost(self, hits: Hits) -> Floats:
        """The expected cost per rank: known costs, and `cost` for all other ranks."""
        topic, rank, cost = costs(hits, self.cost)
        more = np.where(rank <= (self.k or np.inf), (cost - self.cost) * self.p ** (rank - 1.0), 0)
        return self.cost + (1 - self.p) * hits.judgments.sum(topic, more)


class RBPresidual(Measure):
    """The residual of rank-biased precision: how much RBP could still grow if all that was not judged were relevant.

    That is the weight of the unjudged documents returned and of all ranks below the end of the list. Report it next to
    every RBP: if two systems differ by less than their residuals, these judgments cannot separate them. It does not
    measure quality.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "c": 0}}, {"q": {"a": 3, "b": 2, "c": 1}}, "RBPresidual(p=0.5)").mean()
    0.375
    """

    family = "user models"
    formula = "p^n + (1 − p) · Σ over ranks r ≤ n of unjudged documents of p^(r − 1),  n documents returned"
    reference = "Moffat & Zobel (2008), Rank-biased precision for measurement of retrieval effectiveness, TOIS"
    peers = {"trec_eval": ("rbp_resid = RBPresidual(p=0.9)",)}
    at = None
    ideal_is_best = False
    monotone = False
    empty_is_zero = False
    p = Real(0.8, "the probability of going on to the next rank", low=0, high=1, open=True)

    def score(self, hits: Hits) -> Floats:
        return residual(hits, self.p)


def views_from_continuation(going_on: Floats) -> Floats:
    """The probability that each rank is seen: the product of the continuation probabilities above it."""
    chances = np.ones_like(going_on)
    np.cumprod(going_on[:, :-1], axis=1, out=chances[:, 1:])
    return chances


def grid(topic: Ints, rank: Ints, values: Floats, rows: slice, depth: int, rest: float) -> Floats:
    """The values of some topics at ranks 1…depth; `rest` where there is none. Topics must ascend."""
    answer = np.full((rows.stop - rows.start, depth), rest)
    part = slice(*np.searchsorted(topic, (rows.start, rows.stop)))
    within = rank[part] <= depth
    answer[topic[part][within] - rows.start, rank[part][within] - 1] = values[part][within]
    return answer


class _RankWalk(_UserModel):
    """A user model that is computed rank by rank on a grid of topics × ranks, one block of topics at a time."""

    synonyms = SCALE
    # whether costs change the user's behaviour; otherwise they only enter EC and ETC
    minds_cost: ClassVar[bool] = False
    min = Real(0, "grades up to this one have gain 0")
    max = Real(1, "grades from this one on have gain 1; grades between min and max in proportion", low=0, open=True)
    rewrites = outputs("Σ W(r) · gain(r)", "Π over j < r of C(j)")

    def beyond(self, highest: float) -> str:
        """Grades above `max` get the gain of `max`, which is a surprise if `max` is the default."""
        if "max" in self.typed or highest <= self.max:
            return ""
        gain = f"grades up to {number_text(highest)} have the same gain"
        return f"max={number_text(self.max)} is assumed, and {gain}; set max={number_text(highest)}"

    @abstractmethod
    def views(self, gain: Floats, cost: Floats) -> Floats:
        """The probability that each rank is seen, topics × ranks."""

    @abstractmethod
    def reach(self, hits: Hits) -> int:
        """The last rank that a user can see."""

    def calibrate(self, gain: Floats, cost: Floats) -> tuple[Floats, Floats]:
        return gain, cost

    def score(self, hits: Hits) -> Floats:
        value = self._walk(hits, unjudged=0.0)
        return self._walk(hits, unjudged=1.0) - value if self.residual else value

    def _walk(self, hits: Hits, unjudged: float) -> Floats:
        judged, depth = hits.judged(), self.reach(hits)
        paid = self.minds_cost or self.output in ("EC", "ETC")
        paid_at = costs(hits, self.cost) if paid else NOTHING
        worth, step = self._worth(judged.grade), max(1, CELLS // depth)
        answer = np.empty(hits.size)
        for start in range(0, hits.size, step):
            rows = slice(start, min(start + step, hits.size))
            gain = grid(judged.topic, judged.rank, worth, rows, depth, unjudged)
            gain, cost = self.calibrate(gain, grid(*paid_at, rows, depth, self.cost))
            answer[rows] = self._output(self.views(gain, cost), gain, cost)
        return answer

    def _worth(self, grade: Floats) -> Floats:
        between = ratio(grade - self.min, self.max - self.min)
        return np.where(grade >= self.max, 1.0, np.where(grade <= self.min, 0.0, between))

    def _output(self, views: Floats, gain: Floats, cost: Floats) -> Floats:
        depth: Floats = views.sum(axis=1)
        if self.output == "ED":
            return depth
        total: Floats = (views * (cost if self.output in ("EC", "ETC") else gain)).sum(axis=1)
        return total if self.output in ("ETU", "ETC") else ratio(total, depth)


class _Cut(_RankWalk):
    """Nobody looks further down than rank k."""

    k = Whole(..., "the number of ranks that count (cut-off)")

    def reach(self, hits: Hits) -> int:
        return self.k


class _Deep(_RankWalk):
    """Models without a cut-off; the computation ends at rank `depth`."""

    at = None
    depth = Whole(1000, "the last rank that a user can see")

    def reach(self, hits: Hits) -> int:
        return self.depth


class _Costly(_Deep):
    """Models whose users react to the costs of documents."""

    minds_cost = True
    ideal_is_best = False
    monotone = False


def growing_patience(depth: int, target: float) -> Floats:
    """The continuation probability of INSQ's user at each rank, which does not depend on what was found."""
    far = np.arange(1.0, depth + 1) + 2 * target
    return np.asarray(((far - 1) / far) ** 2, np.float64)


class INSQ(_Deep):
    """INSQ: a user who wants T relevant documents and becomes more patient further down the list.

    The chance of going on is ((r + 2T − 1) / (r + 2T))², whatever has been found. Use it where people look for more
    than one thing and read on for long, because it gives deep ranks more weight than RBP; not to model people who stop
    when they have enough (INST).

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1}}, {"q": {"a": 1}}, "INSQ(depth=2)").mean()  # 1 / (1 + (2/3)²)
    0.6923076923076923
    """

    formula = "Σ W(r) · gain(r),  C(r) = ((r + 2T − 1) / (r + 2T))²"
    reference = "Moffat, Scholer & Thomas (2012), Models and metrics: IR evaluation as a user process, ADCS"
    peers = {"cwl_eval": ("INSQ-T={T}",)}
    T = Real(1, "how much gain the user wants", low=0, open=True)

    def views(self, gain: Floats, cost: Floats) -> Floats:
        return np.broadcast_to(views_from_continuation(growing_patience(gain.shape[1], self.T)[None]), gain.shape)


class INST(_Deep):
    """INST: a user who wants T relevant documents, and is less likely to go on the more of them are found.

    The chance of going on is ((r + T + T(r) − 1) / (r + T + T(r)))², where T(r) is the number still wanted at rank r.
    Use it where users know how many documents they need (T) and go on until they have them: T can be 1 for a known
    item, and 10 for a survey. Do not use it where T is unknown, nor to compare scores with different T, which describe
    different users.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1}}, {"q": {"a": 1}}, "INST(depth=2)").mean()  # 1 / (1 + (1/2)²)
    0.8
    """

    formula = "Σ W(r) · gain(r),  C(r) = ((r + 2T − G(r) − 1) / (r + 2T − G(r)))²,  G(r) the gain down to rank r"
    reference = "Bailey, Moffat, Scholer & Thomas (2015), User variability and IR system evaluation, SIGIR"
    peers = {"cwl_eval": ("INST-T={T}",)}
    T = Real(1, "how much gain the user wants", low=0.5)

    def views(self, gain: Floats, cost: Floats) -> Floats:
        effort = np.arange(1.0, gain.shape[1] + 1) + 2 * self.T - np.cumsum(gain, axis=1)
        return views_from_continuation(((effort - 1) / effort) ** 2)


class BPM(_RankWalk):
    """Bejewelled player model: a user who stops as soon as a gain of T is reached or a cost of k is spent.

    Without costs a rank costs 1, and k is a number of ranks. With T above what can be found it is precision at k, with
    T = 1 and binary gains the reciprocal rank within k. This is the static model of cwl_eval, whose user does not
    change T and k while reading. Use it where both T and k are known. One more relevant document can lower the score.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"b": 1, "c": 1}}, {"q": {"a": 3, "b": 2, "c": 1}}, "BPM@10").mean()
    0.5
    """

    formula = "gain / ranks, both down to the first rank where the gain is T or the cost is k"
    reference = "Zhang, Liu, Li, Zhang, Xu & Ma (2017), Evaluating web search with a bejeweled player model, SIGIR"
    peers = {"cwl_eval": ("BPM-Static-T={T}-K={k}",)}
    minds_cost = True
    monotone = False
    T = Real(1, "how much gain the user wants", low=0, open=True)
    k = Whole(..., "the user's budget: a number of ranks, or a cost")
    rewrites = outputs(formula, "1 down to the first rank where the gain is T or the cost is k, below it 0")

    def reach(self, hits: Hits) -> int:
        """The last rank that a user can see: k; with costs, at least 1000."""
        free = hits.judgments.extras.costs is None and self.cost >= 1
        return self.k if free else max(self.k, 1000)

    def views(self, gain: Floats, cost: Floats) -> Floats:
        wanting = (np.cumsum(gain, axis=1) < self.T) & (np.cumsum(cost, axis=1) < self.k)
        return views_from_continuation(wanting.astype(np.float64))


class NERR8(_Cut):
    """Nearly expected reciprocal rank, equation 8: a user who stops at a document with its gain as the probability.

    ERR is not a weighted precision. Critics of ERR define four weighted precisions that come close to it; this one is
    cut at k. Use it, or NERR9 to NERR11, to compare a user like ERR's with other user models in the same unit, the rate
    of gain; not in place of published ERR.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"b": 1}}, {"q": {"a": 3, "b": 2}}, "NERR8@10").mean()
    0.5
    """

    formula = "Σ W(r) · gain(r),  C(r) = 1 − gain(r) above rank k, else 0"
    reference = NOT_ERR
    peers = {"cwl_eval": ("NERR-EQ8@k={k}",)}

    def views(self, gain: Floats, cost: Floats) -> Floats:
        return views_from_continuation(1 - gain)


class NERR9(_Cut):
    """Nearly expected reciprocal rank, equation 9: like NERR8, but rank r is seen 1/r times as often.

    Use it like NERR8, where deep ranks should count for less; not in place of published ERR.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"b": 1}}, {"q": {"a": 3, "b": 2}}, "NERR9@10").mean(), 4)  # (1/2) / (1 + 1/2)
    0.3333
    """

    formula = "Σ W(r) · gain(r),  C(r) = r / (r + 1) · (1 − gain(r)) above rank k, else 0"
    reference = NOT_ERR
    peers = {"cwl_eval": ("NERR-EQ9@k={k}",)}

    def views(self, gain: Floats, cost: Floats) -> Floats:
        rank = np.arange(1.0, gain.shape[1] + 1)
        return views_from_continuation(rank / (rank + 1) * (1 - gain))


class NERR10(_Deep):
    """Nearly expected reciprocal rank, equation 10: RBP's user, who in addition stops at relevant documents.

    Use it like NERR8, where lists have no natural end; not in place of published ERR.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"b": 1}}, {"q": {"a": 3, "b": 2}}, "NERR10(p=0.5)").mean(), 4)  # (1/2) / (1 + 1/2)
    0.3333
    """

    formula = "Σ W(r) · gain(r),  C(r) = p · (1 − gain(r))"
    reference = NOT_ERR
    peers = {"cwl_eval": ("NERR-EQ10@phi={p}",)}
    p = Real(0.9, "the probability of going on where nothing was found", low=0, high=1, open=True)

    def views(self, gain: Floats, cost: Floats) -> Floats:
        return views_from_continuation(self.p * (1 - gain))


class NERR11(_Deep):
    """Nearly expected reciprocal rank, equation 11: INSQ's user, who in addition stops at relevant documents.

    Use it like NERR8, where T is known; not in place of published ERR.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"b": 1}}, {"q": {"a": 3, "b": 2}}, "NERR11").mean(), 4)  # (4/9) / (1 + 4/9)
    0.3077
    """

    formula = "Σ W(r) · gain(r),  C(r) = ((r + 2T − 1) / (r + 2T))² · (1 − gain(r))"
    reference = NOT_ERR
    peers = {"cwl_eval": ("NERR-EQ11@T={T}",)}
    T = Real(1, "how much gain the user wants", low=0, open=True)

    def views(self, gain: Floats, cost: Floats) -> Floats:
        return views_from_continuation(growing_patience(gain.shape[1], self.T) * (1 - gain))


class SDCG(_Cut):
    """Scaled discounted cumulated gain: DCG@k over the DCG@k of k documents of the highest gain.

    nDCG divides by the best list that the topic allows (lecture 001), SDCG by the best list of any topic: a topic with
    one relevant document cannot reach 1. Use it where equal scores should mean equal gain on every topic, and where it
    is not known how many relevant documents there are; not where every topic should be able to reach 1 (nDCG).

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 1}}, {"q": {"a": 1}}, "SDCG@2").mean(), 4)  # 1 / (1 + 1/log2(3))
    0.6131
    """

    family = "gain"
    formula = "Σ gain / log2(rank + 1) over Σ 1 / log2(rank + 1), both over ranks 1…k"
    reference = "Moffat, Bailey, Scholer & Thomas (2017), Incorporating user expectations and behavior into the measurement of search effectiveness, TOIS"  # noqa: E501
    peers = {"cwl_eval": ("NDCG-k@{k}",)}
    rewrites = outputs(formula, "1 / log2(r + 1) at ranks 1…k")

    def views(self, gain: Floats, cost: Floats) -> Floats:
        return np.broadcast_to(1 / np.log2(np.arange(2.0, gain.shape[1] + 2)), gain.shape)


SKIM, READ, PER_WORD = 4.4, 7.8, 0.018  # seconds for a snippet, for a document at least, and for each of its words
CLICK_RELEVANT, CLICK_OTHER, SAVE = 0.64, 0.39, 0.77  # Smucker & Clarke (2012)


class TBG(_Costly):
    """Time-biased gain: gains count for less the later they come, half as much after each half-life.

    Time is what was spent on the documents above: their costs, in seconds. `time=words` takes costs as lengths in words
    and calibrates as the authors did: 4.4 s for a snippet, 7.8 s and 0.018 s per word for a document that is opened
    (64% of the relevant, 39% of the others), a gain of 0.64 · 0.77 for a relevant document. The authors' own score is
    `output=ETU`, the gain in all; EU is the same per document seen, comparable with other user models. All lists are
    taken to go on to rank `depth` with documents of `cost`, as cwl_eval does, which changes EU and ED.

    Use it where documents differ in length or reading speed matters; not without measured lengths or reading times.

    >>> from cranfield import Extras, evaluate
    >>> paid = Extras(costs={"a": 224, "b": 10})
    >>> evaluate({"q": {"b": 1}}, {"q": {"a": 3, "b": 2}}, "TBG(output=ETU)", extras=paid).mean()
    0.5
    """

    formula = "Σ gain(r) · 2^(−t(r) / halflife),  t(r) the time spent above rank r  (EU: over Σ 2^(−t(r) / halflife))"
    reference = "Smucker & Clarke (2012), Time-based calibration of effectiveness measures, SIGIR"
    peers = {"cwl_eval": ("TBG-H@{halflife}",)}
    needs = ("costs",)
    halflife = Real(224, "the time after which half of the users have left", low=0, open=True)
    time = Choice("cost", "the meaning of costs: times, or lengths in words from which times are computed", "words")
    rewrites = {
        **outputs(formula, "2^(−t(r) / halflife),  t(r) the time spent above rank r"),
        "time=cost": ("", ",  time = cost"),
        "time=words": (
            "",
            f",  time = {SKIM} + ({READ} + {PER_WORD} · words) · {CLICK_RELEVANT}, or · {CLICK_OTHER} where the gain is 0,"
            f"  gains times {CLICK_RELEVANT} · {SAVE}",
        ),
    }

    def calibrate(self, gain: Floats, cost: Floats) -> tuple[Floats, Floats]:
        if self.time == "cost":
            return gain, cost
        opened = np.where(gain > 0, CLICK_RELEVANT, CLICK_OTHER)
        return gain * (CLICK_RELEVANT * SAVE), SKIM + (READ + PER_WORD * cost) * opened

    def views(self, gain: Floats, cost: Floats) -> Floats:
        return np.exp2(-(np.cumsum(cost, axis=1) - cost) / self.halflife)


class Umeasure(_Costly):
    """U-measure: gains count for less the more text was read before, down to nothing after L characters.

    Costs are lengths. `position=end` is the original: a document's gain counts where its text ends; `position=start`,
    as in cwl_eval, where it begins. The authors' own score is `output=ETU`, the gain in all; EU is the same per
    document seen. Use it where lists, summaries and sessions of different lengths are to be compared by the text that
    was read; not without lengths. All lists are taken to go on to rank `depth` with documents of `cost`.

    >>> from cranfield import Extras, evaluate
    >>> paid = Extras(costs={"a": 600, "b": 200})
    >>> evaluate({"q": {"b": 1}}, {"q": {"a": 3, "b": 2}}, "Umeasure(L=1000, output=ETU)", extras=paid).mean()
    0.4
    """

    formula = "Σ gain(r) · max(0, 1 − t(r) / L),  t(r) the text read above rank r  (EU: over Σ max(0, 1 − t(r) / L))"
    reference = "Sakai & Dou (2013), Summaries, ranked retrieval and sessions, SIGIR"
    peers = {"cwl_eval": ("U-L@{L}",), "NTCIR": ("U-measure", "UMeasure")}
    needs = ("costs",)
    L = Real(132000, "the length of text after which no user is left", low=0, open=True)
    position = Choice("start", "the place in a document's text where its gain counts", "end")
    rewrites = {
        **outputs(formula, "max(0, 1 − t(r) / L),  t(r) the text read above rank r"),
        "position=end": ("read above rank r", "read down to the end of rank r"),
    }

    def views(self, gain: Floats, cost: Floats) -> Floats:
        read = np.cumsum(cost, axis=1)
        return np.maximum(0.0, 1 - (read if self.position == "end" else read - cost) / self.L)


class IFT(_Costly):
    """Information foraging: a user who leaves as the goal T comes near, or as the rate of gain falls below A.

    `b1` and `b2` say how likely the user goes on regardless. `R1` and `R2` say how strictly the user heeds the goal and
    the rate; 0 means not at all. With `stop=goal` or `stop=rate` the user heeds only one of the two. Use it where
    behaviour was logged and can set these parameters; not with the defaults, which are only an example.

    >>> from cranfield import evaluate
    >>> round(evaluate({"q": {"a": 1}}, {"q": {"a": 1}}, "IFT(stop=goal, R1=0, b1=1, depth=2)").mean(), 4)  # 1/(1 + 1/2)
    0.6667
    """

    formula = "Σ W(r) · gain(r),  C = (1 − 1 / (1 + b1 · e^((T − G) R1))) · 1 / (1 + b2 · e^((A − G/K) R2)),  G gain, K cost down to r"  # noqa: E501
    reference = "Azzopardi, Thomas & Craswell (2018), Measuring the utility of search engine result pages, SIGIR"
    peers = {
        "cwl_eval": (
            "IFT-C1-C2-T={T}-b1={b1}-R1={R1}-A={A}-b2={b2}-R2={R2}",
            "IFT-C1-T={T}-b1={b1}-R1={R1} = IFT(stop=goal)",
            "IFT-C2-A={A}-b2={b2}-R2={R2} = IFT(stop=rate)",
        )
    }
    T = Real(2, "how much gain the user wants", low=0)
    b1 = Real(0.9, "how likely the user goes on, whatever the gain so far", low=0)
    R1 = Real(1, "how strictly the user heeds the goal", low=0)
    A = Real(0.2, "the rate of gain that the user expects", low=0)
    b2 = Real(0.9, "how likely the user stops, whatever the rate of gain", low=0)
    R2 = Real(1, "how strictly the user heeds the rate of gain", low=0)
    stop = Choice("both", "what makes the user leave: the goal, the rate of gain, or both", "goal", "rate")
    rewrites = {
        "stop=goal": (" · 1 / (1 + b2 · e^((A − G/K) R2))", ""),
        "stop=rate": ("(1 − 1 / (1 + b1 · e^((T − G) R1))) · ", ""),
    }

    def views(self, gain: Floats, cost: Floats) -> Floats:
        gained = np.cumsum(gain, axis=1)
        going_on = np.ones_like(gain)
        if self.stop != "rate":
            going_on *= 1 - 1 / (1 + self.b1 * growth((self.T - gained) * self.R1))
        if self.stop != "goal":
            rate = ratio(gained, np.cumsum(cost, axis=1))
            going_on *= 1 / (1 + self.b2 * growth((self.A - rate) * self.R2))
        return views_from_continuation(going_on)


def growth(exponent: Floats) -> Floats:
    """e to the exponent, which is limited so that the result does not overflow."""
    return np.exp(np.minimum(exponent, 700.0))
