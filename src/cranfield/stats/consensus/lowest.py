"""The lowest label that anybody gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.stats.consensus.method import Consensus, Opinion, shares

if TYPE_CHECKING:
    from cranfield.stats.labels import Labels
    from cranfield.stats.ties import Ints


class Min(Consensus):
    """The lowest label that anybody gave, in the order of the scale: all raters must be above it."""

    name = "min"
    title = "lowest label"
    aliases = ("lowest", "minimum")

    def opinion(self, labels: Labels, gold: Ints) -> Opinion:
        votes = shares(labels)
        return Opinion(np.where(votes > 0, np.arange(float(len(labels.scale)), 0, -1), 0.0), votes)
