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


FOX = "Fox & Shaw (1993), Combination of multiple searches, TREC-2"


class CombSUM(OfScores):
    """The sum of a document's scores."""

    name = "CombSUM"
    formula = "Σ s"
    reference = FOX
    peers = {"ranx": "sum", "trectools": "combos(strategy='sum')"}
    takes_weights = True


class CombMNZ(OfScores):
    """The sum, times the number of runs that returned the document: agreement counts twice."""

    name = "CombMNZ"
    formula = "n · Σ s"
    reference = FOX
    peers = {"ranx": "mnz", "trectools": "combos(strategy='mnz')"}

    def combine(self, votes: Votes) -> Floats:
        """One number for each entry."""
        return votes.holders * votes.total()


class CombANZ(OfScores):
    """The mean over the runs that returned the document."""

    name = "CombANZ"
    formula = "Σ s / n"
    reference = FOX
    peers = {"ranx": "anz", "trectools": "combos(strategy='anz')"}

    def combine(self, votes: Votes) -> Floats:
        """One number for each entry."""
        return votes.total() / votes.holders


class CombMAX(OfScores):
    """The highest of a document's scores."""

    name = "CombMAX"
    formula = "max s"
    reference = FOX
    peers = {"ranx": "max", "trectools": "combos(strategy='max')"}

    def combine(self, votes: Votes) -> Floats:
        """One number for each entry."""
        return votes.fold(np.maximum)


class CombMIN(OfScores):
    """The lowest of a document's scores, among the runs that returned it."""

    name = "CombMIN"
    formula = "min s"
    reference = FOX
    peers = {"ranx": "min", "trectools": "combos(strategy='min')"}

    def combine(self, votes: Votes) -> Floats:
        """One number for each entry."""
        return votes.fold(np.minimum)


class CombMED(OfScores):
    """The median of a document's scores, among the runs that returned it."""

    name = "CombMED"
    formula = "median s"
    reference = FOX
    peers = {"ranx": "med", "trectools": "combos(strategy='med')"}

    def combine(self, votes: Votes) -> Floats:
        """One number for each entry."""
        return votes.median()


class WSum(OfScores):
    """The sum of a document's scores, each times its run's weight; weights are given, or tuned on training topics."""

    name = "w-sum"
    formula = "Σ w · s"
    reference = "Bartell, Cottrell & Belew (1994), Automatic combination of multiple ranked retrieval systems, SIGIR"
    peers = {"ranx": "wsum"}
    takes_weights = True
