"""The highest label that anybody gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.stats.consensus.method import Consensus, Opinion, shares

if TYPE_CHECKING:
    from cranfield.stats.labels import Labels
    from cranfield.stats.ties import Ints


class Max(Consensus):
    """The highest label that anybody gave, in the order of the scale: one rater is enough."""

    name = "max"
    title = "highest label"
    aliases = ("highest", "maximum")

    def opinion(self, labels: Labels, gold: Ints) -> Opinion:
        votes = shares(labels)
        return Opinion(np.where(votes > 0, np.arange(1.0, len(labels.scale) + 1), 0.0), votes)
