"""The mean of the labels, as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.parameters import Choice
from cranfield.stats.consensus.method import Consensus, Opinion, shares

if TYPE_CHECKING:
    from cranfield.stats.labels import Labels
    from cranfield.stats.ties import Ints


class Mean(Consensus):
    """The label nearest to the mean of the labels, of those on the scale; the two labels on both sides of a half-way mean tie.

    `mean(round=no)` keeps the mean itself, which may lie between two labels: 0.67 of 1, 1 and 0.
    """

    name = "mean"
    title = "mean label"
    aliases = ("average",)
    needs_numbers = True
    once_meant = "mean(round=no)"
    round = Choice("nearest", "what becomes of a mean between two labels", "no")

    def opinion(self, labels: Labels, gold: Ints) -> Opinion:
        assert labels.scale.values is not None
        votes = shares(labels)
        mean = votes @ labels.scale.values
        return Opinion(-np.abs(labels.scale.values - mean[:, None]), votes, mean if self.round == "no" else None)
