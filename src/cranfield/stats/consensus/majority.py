"""The label that most raters gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.stats.consensus.method import Consensus, Opinion, shares

if TYPE_CHECKING:
    from cranfield.stats.labels import Labels
    from cranfield.stats.ties import Ints


class Majority(Consensus):
    """The label that most raters gave; all raters count alike."""

    name = "majority"
    title = "majority vote"
    aliases = ("mode", "plurality")

    def opinion(self, labels: Labels, gold: Ints) -> Opinion:
        votes = shares(labels)
        return Opinion(votes, votes)
