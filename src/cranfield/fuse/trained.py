"""Methods that learn from judged topics what a rank in each run is worth.

Training and fusing on the same topics flatters the result; `folds` (see `cranfield.tune`) trains on the others.
"""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from cranfield.errors import DataError
from cranfield.fuse.method import Method
from cranfield.parameters import Whole

if TYPE_CHECKING:
    from cranfield.collection import Qrels
    from cranfield.fuse.lists import Lists, Votes
    from cranfield.fuse.norms import Norm
    from cranfield.kernels.table import Floats, Offsets


class MAPFuse(Method):
    """A run's mean average precision on the training topics, divided by the document's rank, and summed."""

    name = "MAPFuse"
    formula = "Σ MAP / rank"
    reference = (
        "Lillis, Zhang, Toolan, Collier, Leonard & Dunnion (2010), Estimating probabilities for effective data fusion"
    )
    peers = {"ranx": "mapfuse"}
    trained = True

    def train(self, lists: Lists, qrels: Qrels, rel: float) -> None:
        """The MAP of each run over the topics with a relevant document."""
        relevant = lists.grades(qrels, rel)[lists.entry].astype(np.float64)
        total = _relevant(lists, qrels, rel)
        seen = np.cumsum(relevant)
        before = np.repeat(seen[lists.starts] - relevant[lists.starts], lists.sizes)
        precision = relevant * (seen - before) / lists.rank / np.maximum(total, 1)[lists.topic]
        averages = np.add.reduceat(precision, lists.starts)
        runs = lists.run[lists.starts]
        topics = np.count_nonzero(total)
        # fsum: the same whatever the order of the topics, which is that of the runs
        self.maps = np.array([fsum(averages[runs == run]) / topics for run in range(len(lists.names))])

    def votes(self, lists: Lists, norm: Norm) -> Votes:
        return lists.votes(self.maps[lists.run] / lists.rank)


class SlideFuse(Method):
    """The share of relevant documents that a run has around the document's rank on the training topics, summed.

    The share is the mean over the ranks at most `window` away; window 0 is PosFuse. A share may rise with the rank, so a
    run fused with itself need not keep its order.
    """

    name = "SlideFuse"
    formula = "Σ mean of P(relevant at rank r) over |r − rank| ≤ window"
    reference = (
        "Lillis, Toolan, Collier & Dunnion (2008), Extending probabilistic data fusion using sliding windows, ECIR"
    )
    peers = {"ranx": "slidefuse"}
    trained = True
    keeps_order = False
    window = Whole(5, "how many ranks to each side", low=0)

    def train(self, lists: Lists, qrels: Qrels, rel: float) -> None:
        """For each run and rank, the share of training topics with a relevant document there, of those that go so deep."""
        _relevant(lists, qrels, rel)
        relevant = lists.grades(qrels, rel)[lists.entry]
        shape = len(lists.names), int(lists.rank.max(initial=0)) + 1
        cell = lists.run.astype(np.int64) * shape[1] + lists.rank
        deep = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
        hits = np.bincount(cell, relevant, shape[0] * shape[1]).reshape(shape)
        self.shares: Floats = hits / np.maximum(deep, 1)

    def votes(self, lists: Lists, norm: Norm) -> Votes:
        """The window ends where the list does."""
        window, deepest = self.window, self.shares.shape[1] - 1
        low = np.maximum(lists.rank - window, 1)
        high = np.minimum(lists.rank.astype(np.int64) + window, lists.size)
        total = np.zeros(len(lists.rank))
        for away in range(-min(window, deepest), min(window, deepest) + 1):
            near = lists.rank + away
            seen = (near >= low) & (near <= high) & (near <= deepest)
            total += np.where(seen, self.shares[lists.run, np.where(seen, near, 0)], 0)
        return lists.votes(total / (high - low + 1))


def _relevant(lists: Lists, qrels: Qrels, rel: float) -> Offsets:
    """How many relevant documents the judgments know for each topic; some topic must have one."""
    used = np.zeros(len(lists.topics) + 1, bool)
    used[lists.topic] = True
    topic = lists.topics_of(qrels)[qrels.grade >= rel]
    counts = np.bincount(topic[used[topic] & (topic >= 0)], minlength=len(lists.topics))
    if not counts.any():
        raise DataError(f"{qrels.name}: no training topic of the runs has a document of grade {rel:g} or more")
    return counts
