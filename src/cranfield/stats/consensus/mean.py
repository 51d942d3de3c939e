"""The mean of the labels, as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.stats.consensus.method import Consensus, Opinion, shares

if TYPE_CHECKING:
    from cranfield.stats.labels import Labels
    from cranfield.stats.ties import Ints


class Mean(Consensus):
    """The mean of the labels, which may lie between two; the label that stands is the one nearest to it."""

    name = "mean"
    title = "mean label"
    aliases = ("average",)
    needs_numbers = True

    def opinion(self, labels: Labels, gold: Ints) -> Opinion:
        assert labels.scale.values is not None
        votes = shares(labels)
        mean = votes @ labels.scale.values
        return Opinion(-np.abs(labels.scale.values - mean[:, None]), votes, mean)
