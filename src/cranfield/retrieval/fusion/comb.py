"""The Comb family: normalised scores combined by a sum, a mean, an extreme or a median.

Runs that did not return a document do not count for it: neither as 0 in CombMIN, CombMED and CombANZ nor
among the runs that CombMNZ counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cranfield.base.parameters import Real
from cranfield.retrieval.fusion.method import OfScores

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
    from cranfield.retrieval.fusion.aligned_runs import AlignedRuns, Votes
    from cranfield.retrieval.fusion.normalisations import Norm


class Comb(OfScores):
    """The base of the family; the last letters of the name are an alias, and the name in other tools."""

    reference = "Fox & Shaw (1993), Combination of multiple searches, TREC-2"

    def __init_subclass__(cls) -> None:
        letters = cls.name.removeprefix("Comb").lower()
        if "aliases" not in vars(cls):
            cls.aliases = (letters,)
        if "peers" not in vars(cls):
            cls.peers = {"ranx": letters, "trectools": f"combos(strategy='{letters}')"}
        super().__init_subclass__()


class CombSUM(Comb):
    """The sum of a document's scores."""

    name = "CombSUM"
    formula = "Σ s"
    takes_weights = True


class CombMNZ(Comb):
    """The sum, times the number of runs that returned the document: agreement counts twice."""

    name = "CombMNZ"
    formula = "n · Σ s"

    def combine(self, votes: Votes) -> Floats:
        return votes.holders * votes.total()


class CombGMNZ(Comb):
    """The sum, times a power of the number of runs that returned the document: γ = 1 is CombMNZ, γ = 0 CombSUM."""

    name = "CombGMNZ"
    formula = "n^γ · Σ s"
    reference = "Lee (1997), Analyses of multiple evidence combination, SIGIR"
    peers = {"ranx": "gmnz"}
    gamma = Real(1, "how much agreement counts", low=0)

    def combine(self, votes: Votes) -> Floats:
        return votes.holders**self.gamma * votes.total()


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
    extreme: ClassVar[np.ufunc] = np.maximum

    def combine(self, votes: Votes) -> Floats:
        return votes.fold(self.extreme)


class CombMIN(CombMAX):
    """The lowest of a document's scores, among the runs that returned it."""

    name = "CombMIN"
    formula = "min s"
    extreme = np.minimum


class CombMED(Comb):
    """The median of a document's scores, among the runs that returned it."""

    name = "CombMED"
    formula = "median s"

    def combine(self, votes: Votes) -> Floats:
        return votes.median()


class _Weighted(OfScores):
    """The base of methods whose weights are given or tuned."""

    reference = "Wu & Crestani (2002), Data fusion with estimated weights, CIKM"
    takes_weights = True
    needs_weights = True


class WSum(_Weighted):
    """The sum of a document's scores, each times its run's weight; weights are given or tuned on training topics."""

    name = "w-sum"
    formula = "Σ w · s"
    reference = "Bartell, Cottrell & Belew (1994), Automatic combination of multiple ranked retrieval systems, SIGIR"
    peers = {"ranx": "wsum"}


class WMNZ(_Weighted):
    """CombMNZ with weights: the sum, times the weights of the runs that returned the document."""

    name = "WMNZ"
    formula = "Σ w · Σ s"
    peers = {"ranx": "wmnz"}

    def fuse(self, lists: AlignedRuns, norm: Norm, weights: Floats | None = None) -> Floats:
        if not len(lists.home):
            return np.zeros(0)
        votes = self.votes(lists, norm)
        agreement = votes.holders if weights is None else replace(votes, value=weights[votes.run]).total()
        return agreement * votes.total()


class Mixed(_Weighted):
    """Between w-sum and WMNZ: the weighted sum, times the square root of the number of runs that returned the document."""

    name = "Mixed"
    formula = "√n · Σ w · s"
    peers = {"ranx": "mixed"}

    def combine(self, votes: Votes) -> Floats:
        return np.sqrt(votes.holders) * votes.total()
