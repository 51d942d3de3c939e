"""Estimates of position bias: how often each rank is examined, relative to another rank. Each method is a class.

All methods assume that a document is clicked if it is examined, which depends on its rank, and attractive, which depends on
the query and the document. To tell the two apart, a document must be seen at several ranks. Randomised methods use only
ranks that chance decided: swaps of two documents, and rankers assigned at random, as in A/B tests and interleaved lists. EM
uses every page and trusts the model.

Errors are over units, because the pages of one unit depend on each other; over pages if the log has no units.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cranfield.base import registry
from cranfield.base.errors import DataError
from cranfield.base.parameters import Real, Whole
from cranfield.base.registry import Registered, Registry
from cranfield.experiments.clicks.position_based import PBM, ExaminationCells
from cranfield.stats.rate_ratios import (
    RateRatios,
    StratifiedCounts,
    connected_levels,
    distinct,
    influence_of_clusters,
    rate_ratios,
    sums_of,
)

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.ranked_pages import RankedPages
    from cranfield.experiments.clicks.result_pages import Numbers

POSITION_BIAS_METHODS: Registry[type[PositionBiasMethod]] = Registry(
    "method of position bias", "position_bias_methods", "cranfield.experiments.clicks.position_bias_methods"
)
MIN_VIEWS = 50  # of a pair of query and document, on average, for an interval of EM: it is biased below
ONE_RANKER = (
    "a log with one ranker only: no document was ranked by two variants of an experiment, or by interleaving; run an A/B "
    "test, interleave, or swap ranks"
)


class PositionBiasMethod(Registered, ABC):
    """A way to estimate how often each rank is examined."""

    registry = POSITION_BIAS_METHODS
    formula: ClassVar[str]
    reference: ClassVar[str]
    evidence: ClassVar[str]  # what separates rank from relevance: methods with the same evidence are not compared
    randomised: ClassVar[bool] = True  # whether chance decided the ranks that are compared
    usual: ClassVar[bool] = True  # whether it is among the default methods
    trust: ClassVar[int]  # the answer comes from the method with the lowest number

    @abstractmethod
    def obstacle(self, log: RankedPages) -> str:
        """Why the log does not serve this method; empty if it does."""

    @abstractmethod
    def estimate(self, log: RankedPages) -> RateRatios:
        """The logarithm of how often each rank is examined, with the influence of each unit."""

    def checked_estimate(self, log: RankedPages) -> RateRatios:
        """The estimate; DataError if the log does not serve this method."""
        if problem := self.obstacle(log):
            raise DataError(f"{self.name}: {problem}")
        try:
            return self.estimate(log)
        except np.linalg.LinAlgError:
            raise DataError(f"{self.name}: too few clicks on documents that were seen at several ranks") from None


class Swaps(PositionBiasMethod):
    """Compares clicks at two ranks whose documents were exchanged at random, on half of the pages or any other share.

    An impression says so by the attributes `swap` (the two ranks, as in 1-4) and `swapped` (true or false).
    """

    name = "swaps"
    aliases = ("randpair", "fairpairs")
    formula = "rate at rank j / rate at rank i, over documents ranked i (and over those ranked j) before the swap"
    reference = "Joachims, Swaminathan and Schnabel, Unbiased Learning-to-Rank with Biased Feedback, WSDM 2017"
    evidence = "swaps"
    trust = 1

    def obstacle(self, log: RankedPages) -> str:
        if log.swap is None or log.swapped is None or not log.swap.any():
            return "no impression has the attributes swap and swapped, which name two ranks exchanged at random"
        return ""

    def estimate(self, log: RankedPages) -> RateRatios:
        if log.swap is None or log.swapped is None:
            raise DataError(f"{self.name}: {self.obstacle(log)}")
        low, high = (log.swap[:, side][log.page] - 1 for side in (0, 1))
        which = (log.rank == low) | (log.rank == high)
        before = np.where(log.swapped[log.page], low + high - log.rank, log.rank)  # the rank without the swap
        stratum = (low * log.ranks + high) * log.ranks + before
        return rate_ratios(log.rows(which & (low >= 0), stratum), log.ranks, log.clusters)


class Harvested(PositionBiasMethod):
    """Compares clicks on the same document at several ranks, where rankers or interleaving were assigned at random.

    Ranks are compared within each pair of query and document, so a ranker may show better documents than another.
    """

    name = "harvested"
    aliases = ("intervention-harvesting",)
    formula = "max Σ clicks · log (views · θ(rank) / Σ over ranks of views · θ), within each pair of query and document"
    reference = (
        "Agarwal, Zaitsev, Wang, Li, Najork and Joachims, Estimating Position Bias without Intrusive Interventions, "
        "WSDM 2019; the likelihood: Hausman, Hall and Griliches, Econometrica 1984"
    )
    evidence = "rankers"
    trust = 2

    def obstacle(self, log: RankedPages) -> str:
        return "" if log.by_variant.any() or log.by_interleaving.any() else ONE_RANKER

    def estimate(self, log: RankedPages) -> RateRatios:
        return rate_ratios(log.harvested(), log.ranks, log.clusters)


class AllPairs(Harvested):
    """Compares every two ranks, over the documents that one ranker puts at the first and another ranker at the second.

    Clicks are weighted by one over the pages of the rankers that put the document there. Needs an A/B test.
    """

    name = "all-pairs"
    aliases = ("allpairs",)
    formula = "the ratios θ that fit the weighted clicks of every two ranks, Σ clicks / pages of the rankers"
    reference = (
        "Agarwal, Zaitsev, Wang, Li, Najork and Joachims, Estimating Position Bias without Intrusive Interventions, "
        "WSDM 2019, with a Poisson instead of a binomial likelihood"
    )
    usual = False
    trust = 3
    farthest: ClassVar[int | None] = None  # the largest distance of two ranks that are compared

    def obstacle(self, log: RankedPages) -> str:
        if log.by_variant.any():
            return ""
        if log.by_interleaving.any():
            return "needs an A/B test; for interleaved lists, the share of pages that show a rank is not known: use harvested"
        return ONE_RANKER

    def estimate(self, log: RankedPages) -> RateRatios:
        rows, arm = log.rows(log.by_variant), log.arm[log.by_variant]
        variants = log.arm[log.rank == 0]
        pages = np.bincount(variants[variants >= 0], minlength=int(arm.max()) + 1)
        key = rows.stratum * log.ranks + rows.level
        place, armed = np.divmod(np.unique(key * len(pages) + arm), len(pages))
        pages_there = np.bincount(place, pages[armed], minlength=int(key.max()) + 1)
        weighted = rows._replace(exposure=1 / pages_there[key], counts=rows.counts / pages_there[key])
        return rate_ratios(self._by_pair_of_ranks(weighted, np.unique(key), log.ranks), log.ranks, log.clusters)

    def _by_pair_of_ranks(self, rows: StratifiedCounts, places: Numbers, ranks: int) -> StratifiedCounts:
        """Each row once for each other rank of its document; the stratum is the pair of ranks."""
        pairs, at = np.divmod(places, ranks)
        there = np.zeros((int(pairs.max()) + 1, ranks), np.bool_)
        there[pairs, at] = True
        parts = []
        for other in range(ranks):
            near = self.farthest is None or np.abs(rows.level - other) <= self.farthest
            which = there[rows.stratum, other] & (rows.level != other) & near
            low, high = np.minimum(rows.level, other), np.maximum(rows.level, other)
            parts.append(StratifiedCounts(*(column[which] for column in rows._replace(stratum=low * ranks + high))))
        return StratifiedCounts(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class AdjacentChain(AllPairs):
    """All-pairs with neighbouring ranks only: the ratio of two ranks is the product of the ratios between them."""

    name = "adjacent-chain"
    formula = "Π over neighbours of weighted clicks at rank k + 1 / weighted clicks at rank k"
    trust = 4
    farthest = 1


class EM(PositionBiasMethod):
    """Fits the position-based model to all pages by expectation and maximisation.

    It needs no randomisation, but then trusts the model to separate rank from relevance: a document whose rank changed
    because its relevance changed misleads it. It also fits a rate of each pair of query and document, and is biased if
    pairs have few views.
    """

    name = "em"
    aliases = ("pbm",)
    formula = "P(click) = θ(rank) · attractiveness(query, document)"
    reference = "Chuklin, Markov and de Rijke, Click Models for Web Search, 2015; Wang et al., WSDM 2018"
    evidence = "model"
    randomised = False
    trust = 5
    iterations = Whole(5000, "iterations at the most")
    tolerance = Real(1e-4, "change of every parameter below which the iterations end", low=0, open=True)
    pseudo_clicks = Real(0.1, "clicks that every parameter has before the log is read", low=0)
    pseudo_views = Real(0.2, "views that every parameter has before the log is read", low=0)

    def obstacle(self, log: RankedPages) -> str:
        if log.compared.any():
            return ""
        return "a log with one ranker only: every document was seen at one rank, so rank and relevance cannot be told apart"

    def estimate(self, log: RankedPages) -> RateRatios:
        rows = log.rows(log.compared)
        strata, stratum = distinct(rows.stratum)
        rows = rows._replace(stratum=stratum)
        seen, groups = connected_levels(rows, log.ranks)
        attractive, examined = self._fit(rows, len(strata), log.ranks)
        answer, influence = np.full(log.ranks, np.nan), np.zeros((log.clusters, log.ranks))
        reference = np.full(log.ranks, -1)
        for group in range(int(groups.max(initial=-1)) + 1):
            members = np.flatnonzero(groups == group)
            reference[members] = members[0]
            answer[members] = np.log(examined[members] / examined[members[0]])
            if len(members) > 1:
                influence[:, members] = _binomial_influence(rows, members, examined, attractive, log.clusters)
        if len(rows.level) < MIN_VIEWS * len(strata):
            influence[:] = np.nan
        return RateRatios(answer, reference, seen, influence)

    def _fit(self, rows: StratifiedCounts, strata: int, ranks: int) -> tuple[Floats, Floats]:
        """The attractiveness of each stratum, and how often each rank is examined."""
        cell, of_row = distinct(rows.stratum * ranks + rows.level)
        stratum, rank = np.divmod(cell, ranks)
        clicks, views = sums_of(of_row, rows.counts), sums_of(of_row, rows.exposure)
        cells = ExaminationCells(stratum, rank, clicks, views - clicks, strata, ranks)
        maximum = cells.maximum(PBM(**self.values))
        if maximum.change >= self.tolerance:
            raise DataError(
                f"{self.name}: the model does not converge: after {self.iterations:,} iterations a parameter still "
                f"changes by {maximum.change:.2g}; raise iterations or tolerance, as in 'em(tolerance=1e-3)'"
            )
        attractive, examined = maximum.parameters
        return attractive, examined


def _binomial_influence(
    rows: StratifiedCounts, members: Numbers, examined: Floats, attractive: Floats, clusters: int
) -> Floats:
    """The influence of each cluster on the logarithms of connected ranks, by the efficient score of the binomial model."""
    from scipy.sparse import csr_array  # type: ignore[import-untyped, unused-ignore]

    inside = np.isin(rows.level, members)
    strata, stratum = distinct(rows.stratum[inside])
    level, size = np.searchsorted(members, rows.level[inside]), len(members)
    clicked = np.minimum(examined[rows.level[inside]] * attractive[rows.stratum[inside]], 1 - 1e-6)
    weight = clicked / (1 - clicked)
    positive = weight > 0
    stratum, level, weight, clicked = stratum[positive], level[positive], weight[positive], clicked[positive]
    count, cluster = rows.counts[inside][positive], rows.cluster[inside][positive]
    total = np.bincount(stratum, weight, minlength=len(strata))
    by_level = np.bincount(level, weight, minlength=size)
    table = csr_array((weight / total[stratum], (stratum, level)), shape=(len(strata), size))
    information = np.diag(by_level) - (table.T @ (table * total[:, None])).toarray()
    residual = (count - clicked) / (1 - clicked)
    return influence_of_clusters(
        StratifiedCounts(stratum, level, weight, residual, cluster), table, information, clusters
    )


def page(cls: type[PositionBiasMethod]) -> dict[str, Any]:
    """The description of a method, for listings and docs."""
    return {**registry.page(cls), "evidence": cls.evidence}
