"""Strategies that depend on no label: orders by depth, by a fused score or at random, and samples of the pool.

Samples have known probabilities, for infAP, xinfAP and statAP. The probability of each document is written to the pool
file and, with the labels, to the qrels. A sample must be judged completely: stopping early or capping it would make the
probabilities wrong.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.parameters import Real, Text, real, whole
from cranfield.pooling.strategy import InOrder, Strategy

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.pooling.strategy import Candidates


class ByPriority(Strategy):
    """Strategies with a priority per document, highest first; ties in the order of the runs."""

    @abstractmethod
    def priority(self, candidates: Candidates, rng: np.random.Generator) -> Floats:
        """The priority of each document."""

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> InOrder:
        return InOrder(candidates, np.argsort(-self.priority(candidates, rng), kind="stable"))


class DepthStrategy(ByPriority):
    """Depth-k pooling, rank by rank: every run's first document, then every run's second, and so on.

    The classical pool of TREC; it can be stopped anywhere. Use it when labels come back late or all contributors must
    be treated alike; adaptive strategies find more relevant documents with the same effort. Lectures 000, 002 and 004
    describe it.
    """

    name = "depth"
    reference = "Spärck Jones & van Rijsbergen (1975), Report on the need for and provision of an ideal test collection"

    def priority(self, candidates: Candidates, rng: np.random.Generator) -> Floats:
        """The best rank; among equal ranks, the document that more runs returned comes first."""
        return -candidates.best_rank + candidates.votes / (1.0 + len(candidates.runs))


class RRFStrategy(ByPriority):
    """By reciprocal rank fusion of the runs: 1 / (k + rank), summed.

    Take the first N for a pool of a given size. Documents that many runs agree on come first.
    """

    name = "rrf"
    reference = "Cormack, Clarke & Büttcher (2009), Reciprocal rank fusion outperforms Condorcet"
    k = Real(60.0, "added to every rank: the higher, the less the very top counts", low=0)

    def priority(self, candidates: Candidates, rng: np.random.Generator) -> Floats:
        return candidates.weighted(1 / (self.k + candidates.rank))


class RBPStrategy(ByPriority):
    """By the weight of the document in rank-biased precision, summed over the runs.

    The documents that the scores of the runs depend on most are judged first (method A of the paper).
    """

    name = "rbp"
    reference = "Moffat, Webber & Zobel (2007), Strategic system comparisons via targeted relevance judgments"
    p = Real(0.8, "the user's persistence", low=0, high=1)

    def priority(self, candidates: Candidates, rng: np.random.Generator) -> Floats:
        return candidates.weighted((1 - self.p) * self.p ** (candidates.rank - 1.0))


class CombMNZStrategy(ByPriority):
    """By CombMNZ: the scores of each run scaled to 0..1, summed, times the number of runs that returned the document."""

    name = "combmnz"
    reference = "Fox & Shaw (1994), Combination of multiple searches"

    def priority(self, candidates: Candidates, rng: np.random.Generator) -> Floats:
        """Scores scaled between the lowest (0) and highest (1) of the run's pooled documents; equal scores become 1."""
        low = np.full(len(candidates.runs), np.inf)
        high = np.full(len(candidates.runs), -np.inf)
        np.minimum.at(low, candidates.run, candidates.score)
        np.maximum.at(high, candidates.run, candidates.score)
        width = (high - low)[candidates.run]
        flat = ~(width > 0) | ~np.isfinite(width)
        above = candidates.score - low[candidates.run]
        scaled = np.where(flat, 1.0, above / np.where(flat, 1.0, width))
        return candidates.weighted(scaled) * candidates.votes


class RandomStrategy(ByPriority):
    """At random: every candidate is equally likely to be next.

    The sample behind infAP, and the yardstick for the others.
    """

    name = "random"

    def priority(self, candidates: Candidates, rng: np.random.Generator) -> Floats:
        return rng.random(len(candidates))

    def chances(self, candidates: Candidates, n: int) -> Floats:
        return np.full(len(candidates), min(1.0, n / max(1, len(candidates))))


class SamplingStrategy(Strategy):
    """Strategies that sample the pool and stop when the sample is complete."""

    samples = True

    @abstractmethod
    def draw(self, candidates: Candidates, rng: np.random.Generator) -> Ints:
        """The numbers of the sampled documents."""

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> InOrder:
        """A picker of only the sampled documents, in random order."""
        numbers = self.draw(candidates, rng)
        picker = InOrder(candidates, rng.permutation(numbers))
        picker.picked[:] = True
        picker.picked[numbers] = False
        picker.rest = len(numbers)
        return picker


class StrataParameter(Text):
    """A parameter with the depth and the rate of each stratum: depths must rise, rates lie above 0 and at most at 1."""

    @property
    def range(self) -> str:
        return "depth:rate/depth:rate …, where depths rise and rates lie in (0, 1]"

    def read(self, value: Any) -> str:
        edge = 0
        for depth, rate in cuts(str(value)):
            if not 0 < rate <= 1 or depth <= edge:
                raise ValueError
            edge = depth
        return str(value)


def cuts(strata: str) -> list[tuple[int, float]]:
    """The depth and the rate of each stratum.

    >>> cuts("10/100:0.1")
    [(10, 1.0), (100, 0.1)]
    """
    pairs = [part.partition(":") for part in strata.split("/")]
    return [(whole(depth), real(rate or 1)) for depth, _, rate in pairs]


class Stratified(SamplingStrategy):
    """A stratified sample: the pool is divided into strata by best rank, and each is sampled at its own rate.

    The default judges the top ten of every run and a tenth of the rest. Use it when a pool to the full depth is too
    large and a shallow one would be unfair to deep rankings; score with xinfAP.
    """

    name = "stratified"
    reference = "Yilmaz, Kanoulas & Aslam (2008), A simple and efficient sampling method for estimating AP and NDCG"
    strata = StrataParameter(
        "10:1/100:0.1", "depth:rate of each stratum, from the top; deeper documents are never drawn"
    )

    def members(self, candidates: Candidates) -> list[tuple[Ints, int]]:
        """The documents of each stratum, and how many of them are sampled."""
        depths, rates = zip(*cuts(self.strata), strict=True)
        # documents that no run returned are in the last stratum
        best = np.where(candidates.votes > 0, candidates.best_rank, depths[-1])
        edges = zip((0, *depths), depths, strict=False)
        parts = [np.flatnonzero((best > low) & (best <= high)).astype(np.int32) for low, high in edges]
        return [(part, _share(len(part), rate)) for part, rate in zip(parts, rates, strict=True)]

    def draw(self, candidates: Candidates, rng: np.random.Generator) -> Ints:
        return np.concatenate([rng.choice(part, size, replace=False) for part, size in self.members(candidates)])

    def chances(self, candidates: Candidates, n: int) -> Floats:
        """The sampled share of the stratum; 0 below the last stratum."""
        answer = np.zeros(len(candidates))
        for part, size in self.members(candidates):
            answer[part] = size / max(1, len(part))
        return answer

    def strata_of(self, candidates: Candidates) -> list[str]:
        """The strata, numbered 1, 2, 3 … from the top."""
        answer = [""] * len(candidates)
        for number, (part, _) in enumerate(self.members(candidates), 1):
            for document in part.tolist():
                answer[document] = str(number)
        return answer


class Uniform(SamplingStrategy):
    """A uniform sample of the pool: every document has the same probability.

    The sample for infAP, which needs no probabilities: documents outside the sample have grade -1 in the qrels.
    """

    name = "sample"
    reference = "Yilmaz & Aslam (2006), Estimating average precision with incomplete and imperfect judgments"
    rate = Real(0.1, "the share of the pool to draw", low=1e-6, high=1)

    def draw(self, candidates: Candidates, rng: np.random.Generator) -> Ints:
        return rng.choice(len(candidates), _share(len(candidates), self.rate), replace=False).astype(np.int32)

    def chances(self, candidates: Candidates, n: int) -> Floats:
        return np.full(len(candidates), _share(len(candidates), self.rate) / max(1, len(candidates)))

    def strata_of(self, candidates: Candidates) -> list[str]:
        return ["1"] * len(candidates)


class Weighted(SamplingStrategy):
    """A sample with unequal probabilities: documents near the top of many runs are more likely.

    The weight of a document is the value of its ranks for AP, summed over the runs, mixed with an equal share; without
    the mix, an unlikely relevant document would represent too many others. Systematic sampling along a line of the
    probabilities makes them exact. Score with statAP.
    """

    name = "weighted"
    reference = "Aslam & Pavlu (2007), A practical sampling strategy for efficient retrieval evaluation"
    rate = Real(0.1, "the share of the pool to draw", low=1e-6, high=1)
    even = Real(0.5, "the part of the weight that is the same for all documents", low=1e-3, high=1)

    def chances(self, candidates: Candidates, n: int) -> Floats:
        """Probabilities in proportion to the weights, at most 1, which add up to the size of the sample."""
        deepest = float(candidates.rank.max(initial=1))
        worth = candidates.weighted(np.log((deepest + 1) / candidates.rank))
        total = worth.sum()
        even = 1 / max(1, len(candidates))
        weight = (1 - self.even) * worth / total + self.even * even if total else np.full(len(candidates), even)
        size = _share(len(candidates), self.rate)
        certain = np.zeros(len(candidates), bool)
        while True:  # documents with a probability above 1 get 1, and the others share the rest
            rest = ~certain
            chance = np.where(certain, 1.0, 0.0)
            chance[rest] = (size - certain.sum()) * weight[rest] / weight[rest].sum() if rest.any() else 0.0
            above = rest & (chance > 1)
            if not above.any():
                return np.minimum(chance, 1.0)
            certain |= above

    def draw(self, candidates: Candidates, rng: np.random.Generator) -> Ints:
        """A systematic sample from a random start, over the documents in random order."""
        order = rng.permutation(len(candidates))
        ends = np.cumsum(self.chances(candidates, 0)[order])
        size = round(float(ends[-1])) if len(ends) else 0
        marks = rng.random() + np.arange(size)
        places = np.searchsorted(ends, np.minimum(marks, ends[-1] * (1 - 1e-12)) if size else marks)
        return np.unique(order[places]).astype(np.int32)


def _share(n: int, rate: float) -> int:
    """The number of documents to sample from n at this rate: at least one, unless n is 0."""
    return min(n, max(1, round(n * rate))) if n else 0
