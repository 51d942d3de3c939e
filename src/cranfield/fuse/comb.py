"""The Comb family: normalised scores put together by a sum, a mean, an extreme or a median.

The runs that did not return a document say nothing about it: they count neither as 0 in CombMIN, CombMED and CombANZ nor
among the runs that CombMNZ counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cranfield.fuse.method import OfScores
from cranfield.parameters import Real

if TYPE_CHECKING:
    from cranfield.fuse.lists import Lists, Votes
    from cranfield.fuse.norms import Norm
    from cranfield.kernels.table import Floats


class Comb(OfScores):
    """A method of the family; the peers call it by the last letters of its name."""

    reference = "Fox & Shaw (1993), Combination of multiple searches, TREC-2"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        letters = cls.name.removeprefix("Comb").lower()
        if "peers" not in vars(cls):
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


class CombGMNZ(Comb):
    """The sum, times a power of the number of runs that returned the document: γ = 1 is CombMNZ, γ = 0 CombSUM."""

    name = "CombGMNZ"
    aliases = ("gmnz",)
    formula = "n^γ · Σ s"
    reference = "Lee (1997), Analyses of multiple evidence combination, SIGIR"
    peers = {"ranx": "gmnz"}
    gamma = Real(1, "how much agreement counts", low=0)

    def combine(self, votes: Votes) -> Floats:
        return votes.holders**self.gamma * votes.total()


class CombANZ(Comb):
    """The mean over the runs that returned the document."""

    name = "CombANZ"
    aliases = ("anz",)
    formula = "Σ s / n"

    def combine(self, votes: Votes) -> Floats:
        return votes.total() / votes.holders


class CombMAX(Comb):
    """The highest of a document's scores."""

    name = "CombMAX"
    aliases = ("max",)
    formula = "max s"

    def combine(self, votes: Votes) -> Floats:
        return votes.fold(np.maximum)


class CombMIN(Comb):
    """The lowest of a document's scores, among the runs that returned it."""

    name = "CombMIN"
    aliases = ("min",)
    formula = "min s"

    def combine(self, votes: Votes) -> Floats:
        return votes.fold(np.minimum)


class CombMED(Comb):
    """The median of a document's scores, among the runs that returned it."""

    name = "CombMED"
    aliases = ("med",)
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


WU = "Wu & Crestani (2002), Data fusion with estimated weights, CIKM"


class WMNZ(OfScores):
    """CombMNZ whose runs count by their weights: the sum, times the weights of the runs that returned the document."""

    name = "WMNZ"
    formula = "Σ w · Σ s"
    reference = WU
    peers = {"ranx": "wmnz"}
    takes_weights = True
    needs_weights = True

    def fuse(self, lists: Lists, norm: Norm, weights: Floats | None = None) -> Floats:
        if not len(lists.home):
            return np.zeros(0)
        votes = self.votes(lists, norm)
        agreement = votes.holders if weights is None else replace(votes, value=weights[votes.run]).total()
        return agreement * votes.total()


class Mixed(OfScores):
    """Between w-sum and WMNZ: the weighted sum, times the square root of the number of runs that returned the document."""

    name = "Mixed"
    formula = "√n · Σ w · s"
    reference = WU
    peers = {"ranx": "mixed"}
    takes_weights = True
    needs_weights = True

    def combine(self, votes: Votes) -> Floats:
        return np.sqrt(votes.holders) * votes.total()
