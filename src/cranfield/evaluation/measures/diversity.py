"""Diversity: does the list serve every meaning of the query, without redundancy?

Judgments are per subtopic (column 2 of the qrels). Subtopics have equal weight, and a subtopic without a relevant
document does not count. The ideal list is built greedily, as in ndeval, because the best list is NP-hard to find. The
greedy list reaches at least 1 − 1/e = 63 % of the best, so a normalised score may exceed 1 (`ideal=exact` tries all
lists if they are few enough). Cut-offs have no limit (ndeval stops at rank 20).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from cranfield.base.errors import MeasureError
from cranfield.base.parameters import Choice, Depth, Real, Whole
from cranfield.evaluation.hits import TieGroups, ratio
from cranfield.evaluation.measures.definition import Binary, Measure

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.evaluation.hits import Hits, Judgments

    Longs = npt.NDArray[np.int64]

CLARKE_2008 = "Clarke, Kolla, Cormack et al. (2008), Novelty and diversity in information retrieval evaluation, SIGIR"
CHAPELLE = "Chapelle, Metzler, Zhang & Grinspan (2009), Expected reciprocal rank for graded relevance, CIKM"
CLARKE_2011 = "Clarke, Craswell, Soboroff & Ashkan (2011), A comparative analysis of cascade measures, WSDM"
CLARKE_2009 = "Clarke, Kolla & Vechtomova (2009), An effectiveness measure for ambiguous queries, ICTIR"
AGRAWAL = "Agrawal, Gollapudi, Halverson & Ieong (2009), Diversifying search results, WSDM"
# Nemhauser, Wolsey & Fisher (1978): the best list gains at most this times the greedy one
BEYOND_GREEDY = math.e / (math.e - 1)
MOST_LISTS = 20_000  # most lists of each length to try for the exact ideal


class SubtopicAnswers(NamedTuple):
    """Each relevant document once per subtopic that it answers, by topic and then by rank."""

    topic: Ints
    rank: Ints
    subtopic: Longs  # numbered over all topics
    nth: Longs  # the number of the answer within its subtopic: 1, 2, 3 …


class Subtopics(NamedTuple):
    """The subtopics that have a relevant document, and the documents that answer them."""

    row: Longs  # the row of the qrels, for each answer
    topic: Ints
    label: Ints
    number: Ints  # of subtopics in each topic
    relevant: Longs  # relevant documents of each topic × label


def _subtopics(judgments: Judgments, rel: float) -> Subtopics:
    """The subtopics at this lowest relevant grade."""

    def work() -> Subtopics:
        qrels = judgments.qrels
        row = np.flatnonzero(qrels.grade >= rel)
        topic, label = qrels.topic[row], qrels.label[row]
        labels = len(qrels.labels)
        relevant = np.bincount(topic.astype(np.int64) * labels + label, minlength=judgments.size * labels)
        subtopics = (relevant.reshape(judgments.size, labels) > 0).sum(axis=1).astype(np.int32)
        return Subtopics(row, topic, label, subtopics, relevant)

    return judgments.once(("subtopics", rel), work)


def _nth(group: Longs) -> Longs:
    """Number the members of each group 1, 2, 3 … in the order given."""
    order = np.argsort(group, kind="stable")
    here = group[order]
    start = np.flatnonzero(np.r_[True, here[1:] != here[:-1]][: len(here)])
    nth = np.empty(len(group), np.int64)
    nth[order] = np.arange(len(group)) - np.repeat(start, np.diff(np.r_[start, len(group)])) + 1
    return nth


class _Greedy:
    """The greedy ideal lists of all topics at once. Documents that answer the same subtopics form a heap.

    Among documents of equal gain, the one with the highest id comes first, as in ndeval: the choice can matter later.
    """

    def __init__(self, judgments: Judgments, subtopics: Subtopics) -> None:
        first, documents = judgments.qrels.index.first, judgments.qrels.documents
        document, which = np.unique(first[subtopics.row], return_inverse=True)
        topic = judgments.qrels.topic[document]
        column = _columns(subtopics.topic, subtopics.label)
        width = int(column.max(initial=-1)) + 1
        covers = np.zeros((len(document), width), bool)
        covers[which, column] = True
        names = [documents[int(row)] for row in document]
        place = np.empty(len(document), np.int64)
        place[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        heap = np.unique(np.c_[topic, np.packbits(covers, axis=1)], axis=0, return_inverse=True)[1].reshape(-1)
        order = np.lexsort((-place, heap))
        self.place = np.r_[place[order], -1]
        start = np.flatnonzero(np.r_[True, np.diff(heap[order]) > 0][: len(order)])
        size = np.diff(np.r_[start, len(order)])
        of = topic[order][start]  # topic of each heap
        at = _nth(of.astype(np.int64)) - 1
        shape = (judgments.size, int(at.max(initial=-1)) + 1)
        self.covers = np.zeros((width, *shape))
        self.covers[:, of, at] = covers[order][start].T
        self.next = np.full(shape, len(order))
        self.next[of, at] = start
        self.left = np.zeros(shape, np.int64)
        self.left[of, at] = size

    def gains(self, alpha: float, k: int | None) -> Floats:
        """The gain at ranks 1 to k, or as far as there are documents."""
        topics, heaps = self.left.shape
        most = int(self.left.sum(axis=1).max(initial=0))
        depth = most if k is None else min(k, most)
        answer = np.zeros((topics, depth))
        if not heaps:
            return answer
        every = np.arange(topics)
        following, left = self.next.copy(), self.left.copy()
        new = np.ones((len(self.covers), topics))  # the gain of one more answer to each subtopic
        for rank in range(depth):
            gain = np.zeros((topics, heaps))
            for covers, worth in zip(self.covers, new, strict=True):  # added one by one, as ndeval does
                gain += covers * worth[:, None]
            gain[left == 0] = -1.0
            best = gain.max(axis=1)
            place = np.where(gain == best[:, None], self.place[np.where(left > 0, following, -1)], -2)
            heap = place.argmax(axis=1)
            some = best >= 0
            answer[:, rank] = np.where(some, best, 0.0)
            left[every, heap] -= some
            following[every, heap] += some
            new *= np.where(some & (self.covers[:, every, heap] > 0), 1 - alpha, 1.0)
        return answer

    def best_of_all(self, alpha: float, discount: Floats, names: list[str]) -> Floats:
        """The highest gain of any list, for each topic."""
        totals = np.zeros(len(names))
        for topic, name in enumerate(names):
            best = self.best(topic, alpha, discount)
            if best is None:
                hint = "use ideal=greedy, or a lower k"
                raise MeasureError(f"ideal=exact: topic {name!r} has too many lists to try; {hint}")
            totals[topic] = best
        return totals

    def best(self, topic: int, alpha: float, discount: Floats) -> float | None:
        """The highest discounted gain of any list of one topic; None if there are too many lists to try.

        The later gain of a list depends only on how many documents it has from each heap. A document is not tried while
        one that answers the same subtopics and more is left: swapping the two could only increase the gain.
        """
        used = self.left[topic] > 0
        covers, left = self.covers[:, topic, used].T, self.left[topic][used]
        contains = (covers[:, None, :] >= covers[None, :, :]).all(axis=2) & (covers.sum(1)[:, None] > covers.sum(1))
        # documents from each heap, for all lists of one length
        used_up, total = np.zeros((1, len(left)), np.int16), np.zeros(1)
        for worth in discount[: int(left.sum())].tolist():
            some = used_up < left
            which, heap = np.nonzero(some & ~(some @ contains))
            if len(which) > MOST_LISTS:
                return None
            gain = (1 - alpha) ** (used_up @ covers) @ covers.T
            longer = used_up[which]
            longer[np.arange(len(which)), heap] += 1
            used_up, same = np.unique(longer, axis=0, return_inverse=True)
            best = np.zeros(len(used_up))
            np.maximum.at(best, same.reshape(-1), total[which] + worth * gain[which, heap])
            total = best
        return float(total.max())


def _columns(topic: Ints, label: Ints) -> Longs:
    """The subtopics of each topic as 0, 1, 2 … in the order of their labels."""
    pair, which = np.unique(topic.astype(np.int64) << 32 | label, return_inverse=True)
    return (_nth(pair >> 32) - 1)[which]


class _BySubtopic(Measure):
    """Measures of subtopics; `rel` and (if it exists) `k` define what counts as an answer."""

    family = "diversity"
    needs = ("labels",)

    def answers(self, hits: Hits) -> SubtopicAnswers:
        """The answers that a run gives at ranks 1 to k."""
        rows, k = hits.labelled, self.values.get("k")
        mask = (rows.grade >= self.values["rel"]) & (rows.rank <= (k or np.inf))
        topic, rank = rows.topic[mask], rows.rank[mask]
        subtopic = topic.astype(np.int64) * len(hits.judgments.qrels.labels) + rows.label[mask]
        return SubtopicAnswers(topic, rank, subtopic, _nth(subtopic))

    def subtopics(self, hits: Hits) -> Subtopics:
        """The subtopics of the judgments."""
        return _subtopics(hits.judgments, self.values["rel"])


class _Novelty(_BySubtopic):
    """The gain of an answer falls with each answer above it to the same subtopic, and with its rank."""

    alpha = Real(0.5, "the share of its worth that a subtopic loses with each answer", low=0, high=1)

    @abstractmethod
    def discount(self, rank: Longs | Ints) -> Floats:
        """The discount of an answer at each rank."""

    def gained(self, hits: Hits) -> Floats:
        """The total gain of a run's answers."""
        found = self.answers(hits)
        return hits.judgments.sum(found.topic, (1 - self.alpha) ** (found.nth - 1.0) * self.discount(found.rank))


class _Logarithmic(_Novelty):
    rel = Real(1, "the lowest relevant grade")

    def discount(self, rank: Longs | Ints) -> Floats:
        return np.asarray(1 / np.log2(rank + 1.0), np.float64)


class _Reciprocal(_Novelty):
    alpha = Real(0.5, "the probability that an answer satisfies", low=0, high=1)
    rel = Real(1, "the lowest relevant grade")

    def discount(self, rank: Longs | Ints) -> Floats:
        return np.asarray(1 / rank, np.float64)


class _Patient(_Novelty):
    at = None
    beta = Real(0.5, "the probability of going on to the next rank", low=0, high=1, open=True)
    rel = Real(1, "the lowest relevant grade")

    def discount(self, rank: Longs | Ints) -> Floats:
        return np.asarray(self.beta ** (rank - 1.0), np.float64)


class _PerFullList(_Novelty):
    """The gain divided by that of a list whose every document answers all subtopics."""

    k = Whole(..., "the number of ranks that count (cut-off)")

    def score(self, hits: Hits) -> Floats:
        rank = np.arange(1, self.k + 1)
        full = ((1 - self.alpha) ** (rank - 1.0) * self.discount(rank)).sum()
        return ratio(self.gained(hits), self.subtopics(hits).number * full)


class _PerIdeal(_Novelty):
    """The gain divided by that of the ideal list."""

    normalised = True
    high = BEYOND_GREEDY
    ideal = Choice("greedy", "the ideal list: greedy as in ndeval, or the best there is", "exact")
    rewrites = {"ideal=exact": ("greedy ideal list", "best of all possible lists")}

    def score(self, hits: Hits) -> Floats:
        judgments, rel, k = hits.judgments, self.values["rel"], self.values.get("k")
        greedy = judgments.once(("greedy", rel), lambda: _Greedy(judgments, self.subtopics(hits)))
        gains = judgments.once(("greedy", rel, self.alpha, k), lambda: greedy.gains(self.alpha, k))
        weight = self.discount(np.arange(1, gains.shape[1] + 1))
        if self.ideal == "exact":
            key = ("best", rel, self.alpha, weight.tobytes())
            most = judgments.once(key, lambda: greedy.best_of_all(self.alpha, weight, judgments.qrels.topics))
        else:  # added one by one, so a topic's sum does not depend on other topics, whose lists may be longer
            most = np.cumsum(np.c_[np.zeros(hits.size), gains * weight], axis=1)[:, -1]
        return ratio(self.gained(hits), most)


class alpha_DCG(_PerFullList, _Logarithmic):
    """α-DCG: discounted gain where each further document on a subtopic is worth 1 − alpha of the one before it.

    The sum is divided by that of an imaginary list whose every document answers all subtopics, so that topics can be
    averaged. ndeval does the same (except @1, by mistake). Use it to compare runs on the same topics when documents of
    several meanings are wanted (the diversity task: complete coverage, no redundancy, lecture 002); not to see how far
    a run is from the best possible list, because no real list may reach 1 (use alpha_nDCG).

    >>> from cranfield import evaluate
    >>> qrels = b"q 1 a 1\\nq 1 b 1\\nq 2 c 1\\n"
    >>> round(evaluate(qrels, {"q": {"a": 3, "b": 2, "c": 1}}, "alpha_DCG@3").mean(), 4)  # (1+.5/1.585+1/2)/(2·1.44)
    0.6302
    """

    formula = "Σ over ranks r ≤ k of Σ over subtopics answered of (1−α)^(answers above)/log2(r+1), over N·Σ (1−α)^(r−1)/log2(r+1)"
    reference = CLARKE_2008
    peers = {"ndeval": ("alpha-DCG",), "ir_measures": ("α_DCG@{k}",)}


class alpha_nDCG(_PerIdeal, _Logarithmic):
    """α-nDCG: α-DCG divided by that of an ideal list, in which each next document adds the most.

    The ideal list is built greedily, as in ndeval. It is not always the best list, so a run can slightly exceed 1 (on
    the topics of TREC's Web track 2009 the best list gains up to 1.6 % more). `ideal=exact` takes the best list, and
    raises an error if there are too many lists to try. Without @k the ideal holds every relevant document. Use it where
    queries are ambiguous or have several sides (lecture 002) and judgments say which side a document answers; not when
    subtopics differ in weight, because here they count the same.

    >>> from cranfield import evaluate
    >>> qrels = b"q 1 a 1\\nq 1 b 1\\nq 2 c 1\\n"
    >>> round(evaluate(qrels, {"q": {"a": 3, "b": 2, "c": 1}}, "alpha_nDCG@3").mean(), 4)  # ideal: c, b, a
    0.9652
    """

    formula = "α-DCG of the run / α-DCG of the greedy ideal list, both cut at k"
    reference = CLARKE_2008
    peers = {"ndeval": ("alpha-nDCG",), "ir_measures": ("α_nDCG@{k}",)}
    k = Depth()


class ERR_IA(_PerFullList, _Reciprocal):
    """Intent-aware expected reciprocal rank: ERR for each subtopic, averaged over them, as a share of what is possible.

    A user stops at a document on their subtopic with probability alpha. As in ndeval the sum is divided by that of an
    imaginary list whose every document answers all subtopics, so it depends on k and can fall as k grows. Use it when a
    user wants one good answer to one meaning of the query; not when all sides are wanted by the same user (StRecall,
    alpha_nDCG).

    >>> from cranfield import evaluate
    >>> qrels = b"q 1 a 1\\nq 1 b 1\\nq 2 c 1\\n"
    >>> round(evaluate(qrels, {"q": {"a": 3, "b": 2, "c": 1}}, "ERR_IA@3").mean(), 4)  # (1 + .5/2 + 1/3) / (2·1.3333)
    0.5938
    """

    formula = "Σ over ranks r ≤ k of Σ over subtopics answered of (1−α)^(answers above) / r, over N·Σ (1−α)^(r−1)/r"
    reference = CHAPELLE
    peers = {"ndeval": ("ERR-IA",)}


class nERR_IA(_PerIdeal, _Reciprocal):
    """Normalised intent-aware ERR: ERR-IA divided by that of the greedy ideal list.

    The ideal list is that of alpha_nDCG, and a run can slightly exceed 1. Use it like ERR_IA, where topics differ in
    how many relevant documents they have; not to compare with values of ERR_IA.

    >>> from cranfield import evaluate
    >>> qrels = b"q 1 a 1\\nq 1 b 1\\nq 2 c 1\\n"
    >>> round(evaluate(qrels, {"q": {"a": 3, "b": 2, "c": 1}}, "nERR_IA@3").mean(), 4)  # (1+1/4+1/3) / (1+1/2+1/6)
    0.95
    """

    formula = "ERR-IA of the run / ERR-IA of the greedy ideal list, both cut at k"
    reference = CLARKE_2011
    peers = {"ndeval": ("nERR-IA",)}
    k = Depth()


class NRBP(_Patient):
    """Novelty- and rank-biased precision: α-DCG's gain under the patience of rank-biased precision.

    A user looks for one subtopic, goes on to the next rank with probability beta, and each further answer to the same
    subtopic is worth 1 − alpha of the one before. The sum is divided by that of a list whose every document answers all
    subtopics. Use it to model ambiguous queries with users of known patience; not for deep lists: at the usual beta of
    one half the tenth rank weighs 0.2 % of the first.

    >>> from cranfield import evaluate
    >>> qrels = b"q 1 a 1\\nq 1 b 1\\nq 2 c 1\\n"
    >>> round(evaluate(qrels, {"q": {"a": 3, "b": 2, "c": 1}}, "NRBP").mean(), 4)  # .75/2 · (1 + .5/2 + 1/4)
    0.5625
    """

    formula = "(1 − (1−α)·β) / N · Σ over ranks r of β^(r−1) · Σ over subtopics answered of (1−α)^(answers above)"
    reference = CLARKE_2009

    def score(self, hits: Hits) -> Floats:
        return ratio((1 - (1 - self.alpha) * self.beta) * self.gained(hits), self.subtopics(hits).number)


class nNRBP(_PerIdeal, _Patient):
    """Normalised NRBP: novelty- and rank-biased precision divided by that of the greedy ideal list.

    Use it like NRBP, where topics differ in how many relevant documents they have; not to compare with values of NRBP.
    A run can slightly exceed 1, because the greedy list is not always the best.

    >>> from cranfield import evaluate
    >>> qrels = b"q 1 a 1\\nq 1 b 1\\nq 2 c 1\\n"
    >>> round(evaluate(qrels, {"q": {"a": 3, "b": 2, "c": 1}}, "nNRBP").mean(), 4)  # (1+1/4+1/4) / (1+1/2+1/8)
    0.9231
    """

    formula = "NRBP of the run / NRBP of the greedy ideal list"
    reference = CLARKE_2009


class AP_IA(_BySubtopic, Binary):
    """Intent-aware average precision: the average precision of each subtopic, averaged over the subtopics.

    Use it when every meaning of the query matters and the whole list counts; not to reward novelty: the tenth document
    on one subtopic still gains.

    >>> from cranfield import evaluate
    >>> qrels = b"q 1 a 1\\nq 1 b 1\\nq 2 c 1\\n"
    >>> round(evaluate(qrels, {"q": {"a": 3, "b": 2, "c": 1}}, "AP_IA").mean(), 4)  # (1 + 1/3) / 2
    0.6667
    """

    formula = "1/N · Σ over subtopics s of AP where only the documents that answer s are relevant"
    reference = AGRAWAL
    peers = {"ndeval": ("MAP-IA",), "ir_measures": ("MAP_IA",)}
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        found, subtopics = self.answers(hits), self.subtopics(hits)
        precision = found.nth / found.rank / subtopics.relevant[found.subtopic]
        return ratio(hits.judgments.sum(found.topic, precision), subtopics.number)

    def expected(self, hits: Hits) -> Floats:
        """The mean over the orders of ties, from that of each subtopic's average precision."""
        ties, subtopics = _ties_by_subtopic(hits, self.rel), self.subtopics(hits)
        labels = len(hits.judgments.qrels.labels)
        group, rank, precision = ties.precisions()
        subtopic = ties.topic[group]
        within = np.where(rank <= (self.k or np.inf), precision / subtopics.relevant[subtopic], 0.0)
        return ratio(hits.judgments.sum((subtopic // labels).astype(np.int32), within), subtopics.number)


def _ties_by_subtopic(hits: Hits, rel: float) -> TieGroups:
    """The tie groups of the answers to each subtopic; `topic` is the subtopic's number over all topics."""
    rows = hits.labelled
    relevant = np.flatnonzero(rows.grade >= rel)
    subtopic = rows.topic[relevant].astype(np.int64) * len(hits.judgments.qrels.labels) + rows.label[relevant]
    order = np.argsort(subtopic, kind="stable")
    subtopic, hit = subtopic[order], rows.hit[relevant[order]]
    first, last = hits.tied_from[hit], hits.tied_to[hit]
    nth = _nth(subtopic)
    start = np.flatnonzero(np.r_[True, (np.diff(subtopic) != 0) | (np.diff(first) != 0)][: len(hit)])
    number = np.diff(np.r_[start, len(hit)])
    return TieGroups(subtopic[start], first[start], last[start] - first[start] + 1, number, nth[start] - 1)


class P_IA(_BySubtopic, Binary):
    """Intent-aware precision at k: precision at k for each subtopic, averaged over the subtopics.

    Use it for a first page that should serve every meaning; not to reward novelty. Few lists can reach 1: every
    document would have to answer every subtopic.

    >>> from cranfield import evaluate
    >>> qrels = b"q 1 a 1\\nq 1 b 1\\nq 2 c 1\\n"
    >>> evaluate(qrels, {"q": {"a": 3, "b": 2, "c": 1}}, "P_IA@2").mean()  # (2/2 + 0/2) / 2
    0.5
    """

    formula = "1/(N·k) · Σ over ranks r ≤ k of the subtopics that the document at r answers"
    reference = AGRAWAL
    peers = {"ndeval": ("P-IA",)}
    k = Whole(..., "the number of ranks that count (cut-off)")

    def score(self, hits: Hits) -> Floats:
        return ratio(hits.judgments.sum(self.answers(hits).topic, 1), self.subtopics(hits).number) / self.k


class StRecall(_BySubtopic, Binary):
    """Subtopic recall: the share of the subtopics that the first k documents answer.

    Use it to see coverage alone (lecture 002: together the pages should cover the query completely); not to compare
    orders within the first k ranks, which it ignores.

    >>> from cranfield import evaluate
    >>> qrels = b"q 1 a 1\\nq 1 b 1\\nq 2 c 1\\n"
    >>> evaluate(qrels, {"q": {"a": 3, "b": 2, "c": 1}}, "StRecall@2").mean()
    0.5
    """

    formula = "subtopics answered at ranks 1…k / N subtopics with a relevant document"
    reference = "Zhai, Cohen & Lafferty (2003), Beyond independent relevance, SIGIR"
    peers = {"ndeval": ("strec",), "papers": ("S-recall", "SRecall", "I-rec")}
    normalised = True
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        found = self.answers(hits)
        return ratio(hits.judgments.sum(found.topic, found.nth == 1), self.subtopics(hits).number)
