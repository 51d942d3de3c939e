"""The Comb family: normalised scores put together by a sum, a mean, an extreme or a median.

The runs that did not return a document say nothing about it: they count neither as 0 in CombMIN, CombMED and CombANZ nor
among the runs that CombMNZ counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.fuse.method import OfScores

if TYPE_CHECKING:
    from cranfield.fuse.lists import Votes
    from cranfield.kernels.table import Floats


class Comb(OfScores):
    """A method of the family; the peers call it by the last letters of its name."""

    reference = "Fox & Shaw (1993), Combination of multiple searches, TREC-2"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        letters = cls.name.removeprefix("Comb").lower()
        cls.peers = {"ranx": letters, "trectools": f"combos(strategy='{letters}')"}


class CombSUM(Comb):
    """The sum of a document's scores."""

    name = "CombSUM"
    aliases = ("sum",)
    formula = "Σ s"
    takes_weights = True


class CombMNZ(Comb):
    """The sum, times the number of runs that returned the document: agreement counts twice."""

    name = "CombMNZ"
    aliases = ("mnz",)
    formula = "n · Σ s"

    def combine(self, votes: Votes) -> Floats:
        return votes.holders * votes.total()


class CombANZ(Comb):
    """The mean over the runs that returned the document."""

    name = "CombANZ"
    formula = "Σ s / n"

    def combine(self, votes: Votes) -> Floats:
        return votes.total() / votes.holders


class CombMAX(Comb):
    """The highest of a document's scores."""

    name = "CombMAX"
    formula = "max s"

    def combine(self, votes: Votes) -> Floats:
        return votes.fold(np.maximum)


class CombMIN(Comb):
    """The lowest of a document's scores, among the runs that returned it."""

    name = "CombMIN"
    formula = "min s"

    def combine(self, votes: Votes) -> Floats:
        return votes.fold(np.minimum)


class CombMED(Comb):
    """The median of a document's scores, among the runs that returned it."""

    name = "CombMED"
    formula = "median s"

    def combine(self, votes: Votes) -> Floats:
        return votes.median()


class WSum(OfScores):
    """The sum of a document's scores, each times its run's weight; weights are given, or tuned on training topics."""

    name = "w-sum"
    formula = "Σ w · s"
    reference = "Bartell, Cottrell & Belew (1994), Automatic combination of multiple ranked retrieval systems, SIGIR"
    peers = {"ranx": "wsum"}
    takes_weights = True
    needs_weights = True
