"""Samples instead of whole pools: documents drawn with known probabilities, for infAP, xinfAP and statAP.

How likely each document was to be drawn travels with it into the pool file, and with the labels into the qrels. A
sample is taken whole: stopping half-way, or capping it, would make the probabilities wrong.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.parameters import Real, Text, real, whole
from cranfield.pool.strategy import InOrder, Strategy

if TYPE_CHECKING:
    from cranfield.kernels.table import Floats, Ints
    from cranfield.pool.rankings import Candidates


class Sample(Strategy):
    """Strategies that draw lots, and are done when the sample is."""

    samples = True

    @abstractmethod
    def drawn(self, candidates: Candidates, rng: np.random.Generator) -> Ints:
        """The numbers of the documents drawn."""

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> InOrder:
        """The documents drawn, in random order, and no others."""
        drawn = self.drawn(candidates, rng)
        picker = InOrder(candidates, rng.permutation(drawn))
        picker.picked[:] = True
        picker.picked[drawn] = False
        picker.rest = len(drawn)
        return picker


class Strata(Text):
    """Depths and rates: depths rise, rates are above 0 and no more than 1."""

    @property
    def range(self) -> str:
        return "depth:rate/depth:rate …, where depths rise and rates lie in (0, 1]"

    def read(self, given: Any) -> str:
        edge = 0
        for depth, rate in cuts(str(given)):
            if not 0 < rate <= 1 or depth <= edge:
                raise ValueError
            edge = depth
        return str(given)


def cuts(strata: str) -> list[tuple[int, float]]:
    """The depth and the rate of each stratum.

    >>> cuts("10/100:0.1")
    [(10, 1.0), (100, 0.1)]
    """
    pairs = [part.partition(":") for part in strata.split("/")]
    return [(whole(depth), real(rate or 1)) for depth, _, rate in pairs]


class Stratified(Sample):
    """A stratified sample: the pool is cut into strata by best rank, and each is sampled at its own rate.

    The default judges the top ten of every run and a tenth of the rest. Use it when a pool to the full depth is too
    large and a shallow one would be unfair to deep rankings; score with xinfAP.
    """

    name = "stratified"
    reference = "Yilmaz, Kanoulas & Aslam (2008), A simple and efficient sampling method for estimating AP and NDCG"
    strata = Strata("10:1/100:0.1", "depth:rate of each stratum, from the top; what lies deeper is never drawn")

    def members(self, candidates: Candidates) -> list[tuple[Ints, int]]:
        """The documents of each stratum, and how many of them are drawn."""
        depths, rates = zip(*cuts(self.strata), strict=True)
        best = np.where(candidates.votes > 0, candidates.best_rank, depths[-1])  # what no run returned: the last
        edges = zip((0, *depths), depths, strict=False)
        parts = [np.flatnonzero((best > low) & (best <= high)).astype(np.int32) for low, high in edges]
        return [(part, _share(len(part), rate)) for part, rate in zip(parts, rates, strict=True)]

    def drawn(self, candidates: Candidates, rng: np.random.Generator) -> Ints:
        return np.concatenate([rng.choice(part, size, replace=False) for part, size in self.members(candidates)])

    def chances(self, candidates: Candidates, n: int) -> Floats:
        """Drawn / all of the stratum; 0 for what lies below the last."""
        answer = np.zeros(len(candidates))
        for part, size in self.members(candidates):
            answer[part] = size / max(1, len(part))
        return answer

    def strata_of(self, candidates: Candidates) -> list[str]:
        """The strata are numbered 1, 2, 3 … from the top."""
        answer = [""] * len(candidates)
        for number, (part, _) in enumerate(self.members(candidates), 1):
            for document in part.tolist():
                answer[document] = str(number)
        return answer


class Uniform(Sample):
    """A uniform sample of the pool: every document is drawn with the same probability.

    The sample behind infAP, which needs no probabilities: what was not drawn stands in the qrels with grade -1.
    """

    name = "sample"
    reference = "Yilmaz & Aslam (2006), Estimating average precision with incomplete and imperfect judgments"
    rate = Real(0.1, "the share of the pool to draw", low=1e-6, high=1)

    def drawn(self, candidates: Candidates, rng: np.random.Generator) -> Ints:
        return rng.choice(len(candidates), _share(len(candidates), self.rate), replace=False).astype(np.int32)

    def chances(self, candidates: Candidates, n: int) -> Floats:
        return np.full(len(candidates), _share(len(candidates), self.rate) / max(1, len(candidates)))

    def strata_of(self, candidates: Candidates) -> list[str]:
        return ["1"] * len(candidates)


class Weighted(Sample):
    """A sample with unequal probabilities: documents near the top of many runs are likelier to be drawn.

    The weight of a document is what its ranks are worth to AP, added up over the runs, mixed with an even share, because
    a relevant document drawn against all odds would stand for too many others. Documents are drawn along a line on which
    each takes up its probability (systematic sampling), so that the probabilities are exact. Score with statAP.
    """

    name = "weighted"
    reference = "Aslam & Pavlu (2007), A practical sampling strategy for efficient retrieval evaluation"
    rate = Real(0.1, "the share of the pool to draw", low=1e-6, high=1)
    even = Real(0.5, "how much of the weight all documents share alike", low=1e-3, high=1)

    def chances(self, candidates: Candidates, n: int) -> Floats:
        """In proportion to the weights, none above 1, adding up to the size of the sample."""
        deepest = float(candidates.rank.max(initial=1))
        worth = candidates.weighted(np.log((deepest + 1) / candidates.rank))
        total = worth.sum()
        even = 1 / max(1, len(candidates))
        weight = (1 - self.even) * worth / total + self.even * even if total else np.full(len(candidates), even)
        size = _share(len(candidates), self.rate)
        certain = np.zeros(len(candidates), bool)
        while True:  # who would be drawn more than once is drawn for certain, and leaves the rest to the others
            rest = ~certain
            chance = np.where(certain, 1.0, 0.0)
            chance[rest] = (size - certain.sum()) * weight[rest] / weight[rest].sum() if rest.any() else 0.0
            above = rest & (chance > 1)
            if not above.any():
                return np.minimum(chance, 1.0)
            certain |= above

    def drawn(self, candidates: Candidates, rng: np.random.Generator) -> Ints:
        """Systematically, from a random start, in random order."""
        order = rng.permutation(len(candidates))
        ends = np.cumsum(self.chances(candidates, 0)[order])
        size = round(float(ends[-1])) if len(ends) else 0
        marks = rng.random() + np.arange(size)
        places = np.searchsorted(ends, np.minimum(marks, ends[-1] * (1 - 1e-12)) if size else marks)
        return np.unique(order[places]).astype(np.int32)


def _share(n: int, rate: float) -> int:
    """So many of n: at least one where there is one."""
    return min(n, max(1, round(n * rate))) if n else 0
