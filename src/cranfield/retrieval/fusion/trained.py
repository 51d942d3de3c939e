"""Fusion methods that learn from judged topics what a rank in each run is worth.

Training and fusing on the same topics flatters the result; `folds` (see `cranfield.tune`) trains on the others.
"""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import Whole
from cranfield.retrieval.fusion.method import FusionMethod

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats, Offsets
    from cranfield.base.qrels import Qrels
    from cranfield.retrieval.fusion.aligned_runs import AlignedRuns, Votes
    from cranfield.retrieval.fusion.normalisations import Norm


class _Learner(FusionMethod):
    """The base of the methods that learn; a deeper rank may be worth more."""

    reference = (
        "Lillis, Zhang, Toolan, Collier, Leonard & Dunnion (2010), Estimating probabilities for effective data fusion"
    )
    trained = True
    keeps_order = False


class MAPFuse(_Learner):
    """A run's mean average precision on the training topics, divided by the document's rank, and summed."""

    name = "MAPFuse"
    formula = "Σ MAP / rank"
    peers = {"ranx": "mapfuse"}
    keeps_order = True

    def train(self, lists: AlignedRuns, qrels: Qrels, rel: float) -> None:
        """The MAP of each run over the topics with a relevant document."""
        relevant, total = _relevant(lists, qrels, rel)
        so_far = np.cumsum(relevant)
        before = np.repeat(so_far[lists.starts] - relevant[lists.starts], lists.sizes)
        precision = relevant * (so_far - before) / lists.rank / np.maximum(total, 1)[lists.topic]
        averages = np.add.reduceat(precision, lists.starts)
        runs = lists.run[lists.starts]
        topics = np.count_nonzero(total)
        # fsum: the result does not depend on the order of topics
        self.maps = np.array([fsum(averages[runs == run]) / topics for run in range(len(lists.names))])

    def votes(self, lists: AlignedRuns, norm: Norm) -> Votes:
        return lists.votes(self.maps[lists.run] / lists.rank)


class PosFuse(_Learner):
    """The share of training topics on which a run has a relevant document at the document's rank, summed.

    Only topics whose list is long enough count; ranks deeper than any list are worth nothing.
    """

    name = "PosFuse"
    formula = "Σ P(relevant at rank)"
    peers = {"ranx": "posfuse"}

    def train(self, lists: AlignedRuns, qrels: Qrels, rel: float) -> None:
        """For each run and rank, the share of long enough training lists with a relevant document there."""
        relevant, _ = _relevant(lists, qrels, rel)
        shape = len(lists.names), int(lists.rank.max(initial=0)) + 1
        cell = lists.run.astype(np.int64) * shape[1] + lists.rank
        deep = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
        hits = np.bincount(cell, relevant, shape[0] * shape[1]).reshape(shape)
        self.shares = np.asarray(hits / np.maximum(deep, 1), np.float64)

    def votes(self, lists: AlignedRuns, norm: Norm) -> Votes:
        deepest = self.shares.shape[1] - 1
        within = lists.rank <= deepest
        return lists.votes(np.where(within, self.shares[lists.run, np.where(within, lists.rank, 0)], 0.0))


class ProbFuse(_Learner):
    """Each list in segments of equal length: a segment's share of relevant documents, divided by its number, summed.

    A list of n documents has segments of ⌈n / segments⌉. The share of a segment is the mean over the training topics.
    """

    name = "ProbFuse"
    formula = "Σ P(relevant in segment i) / i"
    reference = "Lillis, Toolan, Collier & Dunnion (2006), ProbFuse: a probabilistic approach to data fusion, SIGIR"
    peers = {"ranx": "probfuse"}
    segments = Whole(25, "how many segments a list has", low=1)

    def train(self, lists: AlignedRuns, qrels: Qrels, rel: float) -> None:
        """For each run and segment, the mean over topics of the share of its documents that are relevant."""
        relevant, _ = _relevant(lists, qrels, rel)
        cell = np.repeat(np.arange(len(lists.sizes)), lists.sizes) * self.segments + self._segment(lists)
        count = len(lists.sizes) * self.segments
        sizes = np.maximum(np.bincount(cell, minlength=count), 1)
        shares = (np.bincount(cell, relevant, count) / sizes).reshape(-1, self.segments)
        runs, topics = lists.run[lists.starts], len(np.unique(lists.topic))
        # fsum: the result does not depend on the order of topics
        by_run = [shares[runs == run].T for run in range(len(lists.names))]
        self.shares = np.array([[fsum(column) / topics for column in columns] for columns in by_run])

    def _segment(self, lists: AlignedRuns) -> Offsets:
        """The segment number of each row, from 0."""
        return np.asarray((lists.rank - 1) // np.ceil(lists.size / self.segments), np.int64)

    def votes(self, lists: AlignedRuns, norm: Norm) -> Votes:
        segment = self._segment(lists)
        return lists.votes(self.shares[lists.run, segment] / (segment + 1))


class _BySegments(_Learner):
    """The base of methods that learn the precision of segments of ranks, the same for all lists."""

    def learn_precisions(self, lists: AlignedRuns, qrels: Qrels, rel: float, ends: Offsets) -> None:
        """For each run and segment, the mean precision over the training topics; `ends` are the last ranks."""
        relevant, _ = _relevant(lists, qrels, rel)
        self.ends = ends
        segment = self.segment(lists)
        inside = segment < len(ends)
        cell = lists.run[inside].astype(np.int64) * len(ends) + segment[inside]
        hits = np.bincount(cell, relevant[inside], len(lists.names) * len(ends)).reshape(-1, len(ends))
        self.precisions: Floats = hits / (np.diff(ends, prepend=0) * len(np.unique(lists.topic)))

    def segment(self, lists: AlignedRuns) -> Offsets:
        """The segment number of each row, from 0; one past the last for deeper ranks."""
        return np.searchsorted(self.ends, lists.rank)

    def learnt(self, values: Floats, lists: AlignedRuns, deeper: float) -> Floats:
        """The learnt value of each row's segment; `deeper` for ranks below the last segment."""
        segment = self.segment(lists)
        inside = segment < len(self.ends)
        return np.where(inside, values[lists.run, np.where(inside, segment, 0)], deeper)


class SegFuse(_BySegments):
    """Segments that grow down the list: a segment's share of relevant documents, times the normalised score plus 1.

    Segments end at ranks 5, 15, 35, 75 …, the k-th at 10 · 2^(k − 1) − 5. The share is that of the whole segment, even
    if a list ends before it.
    """

    name = "SegFuse"
    reads = "scores"
    formula = "Σ P(relevant in segment) · (s + 1)"
    reference = "Shokouhi (2007), Segmentation of search engine results for effective data-fusion, ECIR"
    peers = {"ranx": "segfuse"}

    def train(self, lists: AlignedRuns, qrels: Qrels, rel: float) -> None:
        deepest = int(lists.rank.max(initial=1))
        count = int(np.ceil(np.log2((deepest + 5) / 10))) + 1 if deepest > 5 else 1
        self.learn_precisions(lists, qrels, rel, 10 * 2 ** np.arange(count) - 5)

    def votes(self, lists: AlignedRuns, norm: Norm) -> Votes:
        if norm.turns_order:
            raise ConventionError(f"{self.name} learns from ranks, which {norm.name} turns round; use another norm")
        return lists.votes(self.learnt(self.precisions, lists, 0.0) * (norm.checked_rows(lists) + 1))


CUT_OFFS = np.array([5, 10, 15, 20, 30, 100, 200, 500, 1000])  # as in trec_eval's table of precisions
LEAST = 0.001  # replaces a probability of 0; 1 minus this replaces 1


class BayesFuse(_BySegments):
    """The log odds of relevance at a run's ranks, learnt from precisions between usual cut-offs, summed.

    A document that a run did not return, or returned below rank 1000, gets the odds of 0.001.
    """

    name = "BayesFuse"
    formula = "Σ ln(P / (1 − P)),  P = P(relevant between cut-offs), 0.001 where it is 0"
    reference = "Aslam & Montague (2001), Models for metasearch, SIGIR"
    peers = {"ranx": "bayesfuse"}

    def train(self, lists: AlignedRuns, qrels: Qrels, rel: float) -> None:
        self.learn_precisions(lists, qrels, rel, CUT_OFFS)
        likely = np.where(self.precisions == 0, LEAST, self.precisions)
        self.odds: Floats = np.log(likely / np.where(likely == 1, LEAST, 1 - likely))

    def votes(self, lists: AlignedRuns, norm: Norm) -> Votes:
        unseen = float(np.log(LEAST / (1 - LEAST)))
        return lists.votes_of_all(self.learnt(self.odds, lists, unseen), np.full(len(lists.sizes), unseen))


class SlideFuse(PosFuse):
    """The share of relevant documents of a run around the document's rank on the training topics, summed.

    The share is the mean over the ranks at most `window` away; `PosFuse` has a window of 0. A share may rise with the
    rank, so a run fused with itself may change its order.
    """

    name = "SlideFuse"
    formula = "Σ mean of P(relevant at rank r) over |r − rank| ≤ window"
    reference = (
        "Lillis, Toolan, Collier & Dunnion (2008), Extending probabilistic data fusion using sliding windows, ECIR"
    )
    peers = {"ranx": "slidefuse"}
    window = Whole(5, "how many ranks to each side", low=0)

    def votes(self, lists: AlignedRuns, norm: Norm) -> Votes:
        """The mean share over the window of each row, which is cut at the ends of the list."""
        window, deepest = self.window, self.shares.shape[1] - 1
        low = np.maximum(lists.rank - window, 1)
        high = np.minimum(lists.rank.astype(np.int64) + window, lists.size)
        total = np.zeros(len(lists.rank))
        for away in range(-min(window, deepest), min(window, deepest) + 1):
            near = lists.rank + away
            in_window = (near >= low) & (near <= high) & (near <= deepest)
            total += np.where(in_window, self.shares[lists.run, np.where(in_window, near, 0)], 0)
        return lists.votes(total / (high - low + 1))


def _relevant(lists: AlignedRuns, qrels: Qrels, rel: float) -> tuple[Floats, Offsets]:
    """1 for each row with a relevant document, else 0; and the number of relevant documents of each topic.

    DataError if no topic has a relevant document.
    """
    used = np.zeros(len(lists.topics) + 1, bool)
    used[lists.topic] = True
    topic = lists.topics_of(qrels)[qrels.grade >= rel]
    counts = np.bincount(topic[used[topic] & (topic >= 0)], minlength=len(lists.topics))
    if not counts.any():
        raise DataError(f"{qrels.name}: no training topic of the runs has a document of grade {rel:g} or more")
    return lists.grades(qrels, rel)[lists.entry].astype(np.float64), counts
