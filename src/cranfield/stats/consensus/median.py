"""The label in the middle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.stats.consensus.method import Consensus, Opinion, shares

if TYPE_CHECKING:
    from cranfield.stats.labels import Labels
    from cranfield.stats.ties import Ints


class Median(Consensus):
    """The label in the middle of those given, in the order of the scale; the two middle ones of an even number tie."""

    name = "median"
    title = "median label"

    def opinion(self, labels: Labels, gold: Ints) -> Opinion:
        counts = labels.counts()
        number = counts.sum(axis=1, keepdims=True)
        upto = np.cumsum(counts, axis=1)
        before = upto - counts
        middle = (counts > 0) & (2 * upto >= number) & (2 * before <= number)
        return Opinion(middle.astype(np.float64), shares(labels))
