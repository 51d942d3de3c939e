"""Strategies with a fixed order, independent of labels: by depth, by a fused score, at random."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.parameters import Real
from cranfield.pooling.strategy import InOrder, Strategy

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
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
