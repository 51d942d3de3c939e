"""The base class of fusion methods, with the methods that need no training: of scores (the Comb family), then of ranks.

A method computes one number per entry (a document of a topic that some run returned). Methods of scores read
normalised scores, methods of ranks only ranks. Users type `RRF(k=10)`, in upper or lower case.
In the Comb family, runs that did not return a document do not count for it: neither as 0 in CombMIN, CombMED and CombANZ
nor among the runs that CombMNZ counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from cranfield.base.errors import ConventionError
from cranfield.base.parameters import Real
from cranfield.base.registry import Registered, Registry, about
from cranfield.retrieval.fusion import normalisations
from cranfield.retrieval.fusion.normalisations import NORMS, Norm

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats
    from cranfield.base.qrels import Qrels
    from cranfield.retrieval.fusion.aligned_runs import AlignedRuns, Votes
    from cranfield.retrieval.fusion.normalisations import Norm


BLOCK = 1 << 19  # pairs of documents compared at a time: they stay in the cache
METHODS: Registry[type[FusionMethod]] = Registry("fusion method", "fusion_methods", "cranfield.retrieval.fusion")


class FusionMethod(Registered, ABC):
    """A way to fuse several rankings into one.

    >>> str(METHODS.named("rrf(k=10)"))
    'RRF(k=10)'
    """

    registry = METHODS
    formula: ClassVar[str]
    reference: ClassVar[str]
    peers: ClassVar[dict[str, str]] = {}
    reads: ClassVar[Literal["scores", "ranks"]] = "ranks"
    takes_weights: ClassVar[bool] = False
    needs_weights: ClassVar[bool] = False
    trained: ClassVar[bool] = False  # whether it learns from judgments
    keeps_order: ClassVar[bool] = True  # promise: a run fused with itself keeps its order

    def __str__(self) -> str:
        settings = [f"{key}={parameter.show(self.values[key])}" for key, parameter in self.parameters.items()]
        return f"{self.name}({', '.join(settings)})" if settings else self.name

    @abstractmethod
    def votes(self, lists: AlignedRuns, norm: Norm) -> Votes:
        """The contributions of the runs to the entries."""

    def combine(self, votes: Votes) -> Floats:
        """One number per entry: by default the sum of the contributions."""
        return votes.total()

    def fuse(self, lists: AlignedRuns, norm: Norm, weights: Floats | None = None) -> Floats:
        """One number per entry; `weights` are those of the runs."""
        if not len(lists.home):
            return np.zeros(0)
        votes = self.votes(lists, norm)
        return self.combine(votes if weights is None else replace(votes, value=votes.value * weights[votes.run]))

    def train(self, lists: AlignedRuns, qrels: Qrels, rel: float) -> None:
        """Learn from judged topics; called only if the method is `trained`."""
        raise ConventionError(f"{self.name} has nothing to learn from judgments")


class OfScores(FusionMethod):
    """A method that reads normalised scores."""

    reads = "scores"

    def votes(self, lists: AlignedRuns, norm: Norm) -> Votes:
        return norm.votes(lists)


def catalogue() -> dict[str, list[dict[str, str]]]:
    """Methods and normalisations: how to type each, what it does, its formula, reference, and names in other tools."""

    def row(cls: type[FusionMethod | Norm], usage: str, **more: str) -> dict[str, str]:
        peers = {f"in {peer}": name for peer, name in cls.peers.items()}
        return {"usage": usage, "about": about(cls), "formula": cls.formula, **more, **peers}

    methods = [row(cls, str(cls()), reference=cls.reference) for cls in METHODS.values()]
    return {"methods": methods, "normalisations": [row(cls, cls.name) for cls in NORMS.values()]}


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


class RRF(FusionMethod):
    """Reciprocal rank fusion: 1 / (k + rank), summed."""

    name = "RRF"
    formula = "Σ 1 / (k + rank)"
    reference = "Cormack, Clarke & Büttcher (2009), Reciprocal rank fusion outperforms Condorcet …, SIGIR"
    peers = {"ranx": "rrf", "trectools": "reciprocal_rank_fusion"}
    takes_weights = True
    k = Real(60, "added to every rank: the higher, the less the first ranks stand out", low=0)

    def votes(self, lists: AlignedRuns, norm: Norm) -> Votes:
        return lists.votes(1 / (self.k + lists.rank))


class ISR(FusionMethod):
    """Inverse square rank: 1 / rank², summed, times the number of runs that returned the document."""

    name = "ISR"
    formula = "n · Σ 1 / rank²"
    reference = (
        "Mourão, Martins & Magalhães (2015), Multimodal medical information retrieval with unsupervised rank fusion"
    )
    peers = {"ranx": "isr"}

    def votes(self, lists: AlignedRuns, norm: Norm) -> Votes:
        return lists.votes(1 / lists.rank.astype(np.float64) ** 2)

    def combine(self, votes: Votes) -> Floats:
        return votes.holders * votes.total()


class LogISR(ISR):
    """Inverse square rank with the logarithm of the number of runs; a document that one run returned gets ln(1 + σ)."""

    name = "LogISR"
    formula = "ln(n + σ) · Σ 1 / rank²"
    peers = {"ranx": "log_isr, and logn_isr for σ > 0"}
    aliases = ("logn_isr",)
    of_alias = {"logn_isr": {"sigma": 0.01}}
    sigma = Real(0, "keeps a document of one run above 0", low=0, high=1)

    def combine(self, votes: Votes) -> Floats:
        return np.asarray(np.log(votes.holders + self.sigma) * votes.total(), np.float64)


class RBC(FusionMethod):
    """Rank-biased centroids: the weight that rank-biased precision gives to a document's rank, summed."""

    name = "RBC"
    formula = "Σ (1 − φ) φ^(rank − 1)"
    reference = (
        "Bailey, Moffat, Scholer & Thomas (2017), Retrieval consistency in the presence of query variations, SIGIR"
    )
    peers = {"ranx": "rbc", "trectools": "rank_biased_precision_fusion"}
    takes_weights = True
    phi = Real(0.8, "the patience of the reader", low=0, high=1, open=True)

    def votes(self, lists: AlignedRuns, norm: Norm) -> Votes:
        return lists.votes((1 - self.phi) * np.power(self.phi, lists.rank - 1.0))


class Borda(FusionMethod):
    """An election among c documents: a run's first gets c points, its second c − 1; the rest share the remaining points."""

    name = "Borda"
    aliases = ("bordafuse", "w_bordafuse")
    formula = "Σ (c − rank + 1); lacking: (c − n + 1) / 2"
    reference = "Aslam & Montague (2001), Models for metasearch, SIGIR"
    peers = {"ranx": "bordafuse, and w_bordafuse with weights"}
    takes_weights = True

    def votes(self, lists: AlignedRuns, norm: Norm) -> Votes:
        """The points of every candidate, returned or not."""
        votes = normalisations.BordaNorm().votes(lists)
        votes.value[:] *= lists.candidates[lists.home[votes.entry]]
        return votes


class Condorcet(Borda):
    """An election by pairs: how many documents a majority of the runs ranks below this one; a draw is half a win.

    With weights, each run has as many votes as its weight. A run ranks returned documents above others and has no
    opinion on two that it did not return. A document that beats all others comes first; within a cycle of majorities,
    the number of wins decides.
    """

    name = "Condorcet"
    aliases = ("condorcetfuse", "w_condorcet")
    formula = "#{d' : more runs rank d above d' than below} + ½ #{d' : as many}"
    reference = "Montague & Aslam (2002), Condorcet fusion for improved retrieval, CIKM; Copeland (1951) for the count"
    peers = {"ranx": "condorcet, and w_condorcet with weights"}

    def fuse(self, lists: AlignedRuns, norm: Norm, weights: Floats | None = None) -> Floats:
        value = np.zeros(len(lists.home))
        opening = np.cumsum(lists.candidates) - lists.candidates
        ends = np.r_[np.searchsorted(lists.topic, np.arange(len(lists.topics) + 1))]
        for t, (first, count) in enumerate(zip(opening.tolist(), lists.candidates.tolist(), strict=True)):
            rows = slice(int(ends[t]), int(ends[t + 1]))
            rank_type = np.int16 if lists.rank[rows].max(initial=0) < np.iinfo(np.int16).max else np.int32
            place = np.full((len(lists.names), count), np.iinfo(rank_type).max, rank_type)
            place[lists.run[rows], lists.entry[rows] - first] = lists.rank[rows]
            value[first : first + count] = _wins(place, weights)
        return value


def _wins(place: npt.NDArray[np.int16 | np.int32], weights: Floats | None = None) -> Floats:
    """For each document (column), the number of others that it beats, plus half of its draws."""
    count = place.shape[1]
    wins = np.zeros(count)
    step = max(1, BLOCK // max(count, 1))
    draw = 0.0 if weights is None else 1e-9 * float(np.abs(weights).sum())  # weights of 0.1 + 0.2 and 0.3 are a draw
    for start in range(0, count, step):
        rows = slice(start, start + step)
        lead = _majority(place, rows) if weights is None else _weighted_majority(place, rows, weights)
        wins[rows] = np.count_nonzero(lead > draw, 1) + (np.count_nonzero(np.abs(lead) <= draw, 1) - 1) / 2
    return wins


def _majority(place: npt.NDArray[np.int16 | np.int32], rows: slice) -> npt.NDArray[np.int8 | np.int32]:
    """For some documents, by how many runs each leads each other document: runs that rank it above minus runs below."""
    shape = place[0][rows].size, place.shape[1]
    lead: npt.NDArray[np.int8 | np.int32] = np.zeros(shape, np.int8 if len(place) < 128 else np.int32)
    for row in place:
        mine = row[rows, None]
        lead += (mine < row).view(np.int8)  # booleans as 0 and 1, added without a conversion
        lead -= (mine > row).view(np.int8)
    return lead


def _weighted_majority(place: npt.NDArray[np.int16 | np.int32], rows: slice, weights: Floats) -> Floats:
    """The same, counting each run by its weight."""
    lead = np.zeros((place[0][rows].size, place.shape[1]))
    for row, weight in zip(place, weights.tolist(), strict=True):
        mine = row[rows, None]
        lead += weight * ((mine < row).astype(np.float64) - (mine > row))
    return lead
