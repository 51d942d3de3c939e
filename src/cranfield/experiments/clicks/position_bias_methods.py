"""Estimates of position bias: how often each rank is examined, relative to another rank. Each method is a class.

All methods assume that a document is clicked if it is examined, which depends on its rank, and attractive, which depends on
the query and the document. To tell the two apart, a document must be seen at several ranks. Randomised methods use only
ranks that chance decided: swaps of two documents, and rankers assigned at random, as in A/B tests and interleaved lists. EM
uses every page and trusts the model.

Errors are over units, because the pages of one unit depend on each other; over pages if the log has no units.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cranfield.base import registry
from cranfield.base.errors import DataError
from cranfield.base.parameters import Real, Whole
from cranfield.base.registry import Registered, Registry
from cranfield.base.text_layout import counted
from cranfield.stats.rate_ratios import (
    RateRatios,
    StratifiedCounts,
    connected_levels,
    influence_of_clusters,
    rate_ratios,
)

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.result_pages import Flags, Numbers, ResultPages

POSITION_BIAS_METHODS: Registry[type[PositionBiasMethod]] = Registry(
    "method of position bias", "position_bias_methods", "cranfield.experiments.clicks.position_bias_methods"
)
ONE_RANKER = (
    "a log with one ranker only: no document was ranked by two variants of an experiment, or by interleaving; run an A/B "
    "test, interleave, or swap ranks"
)


@dataclass(frozen=True, eq=False)
class RankedPages:
    """Result pages with what chance decided about their order.

    Variants of pages (`pages.variant`) are assigned at random. A swap is a pair of ranks that chance exchanged or not.
    """

    pages: ResultPages
    interleaved: Flags | None = None  # whether each page is an interleaved list
    swap: Numbers | None = None  # pages × 2: the two ranks of a swap, the smaller first; 0 without a swap
    swapped: Flags | None = None  # whether each page with a swap shows the two documents exchanged

    @cached_property
    def rank(self) -> Numbers:
        """The rank of each row, from 0."""
        return self.pages.rank - 1

    @cached_property
    def page(self) -> Numbers:
        """The page of each row."""
        return self.pages.page

    @property
    def ranks(self) -> int:
        """The length of the longest page."""
        return int(self.pages.lengths.max(initial=0))

    @cached_property
    def cluster(self) -> Numbers:
        """The unit of each page, by number; without units the page itself."""
        unit = self.pages.unit
        numbers = np.arange(len(self.pages)) if unit is None else np.unique(unit, return_inverse=True)[1]
        return numbers.astype(np.int64)

    @property
    def clusters(self) -> int:
        """The number of units, or of pages without units."""
        return int(self.cluster.max(initial=-1)) + 1

    def rows(self, which: Flags, stratum: Numbers | None = None) -> StratifiedCounts:
        """Some rows of pages as counts; the stratum is the pair of query and document unless another is named."""
        rank, page, clicked = self.rank[which], self.page[which], self.pages.clicked[which].astype(np.float64)
        own = self.pages.pair[which].astype(np.int64) if stratum is None else stratum[which]
        return StratifiedCounts(own, rank, np.ones(len(rank)), clicked, self.cluster[page])

    @cached_property
    def is_interleaved(self) -> Flags:
        """Whether each row is in an interleaved list."""
        none = np.zeros(len(self.pages), np.bool_)
        return (none if self.interleaved is None else self.interleaved)[self.page]

    @cached_property
    def arm(self) -> Numbers:
        """The variant of each row that is not interleaved; -1 without one."""
        variant = self.pages.variant
        if variant is None:
            return np.full(len(self.page), -1)
        return np.where(self.is_interleaved, -1, variant.astype(np.int64)[self.page])

    @cached_property
    def moving(self) -> Flags:
        """Whether each pair was at several ranks under one variant: a change over time or by person, not by chance."""
        return self._pairs_at_several(self.arm >= 0, by_variant=True)

    def _pairs_at_several(self, which: Flags, by_variant: bool) -> Flags:
        """Whether each pair of query and document was at several ranks, under one variant or at all, in some rows."""
        pair = self.pages.pair[which].astype(np.int64)
        arms = int(self.arm.max(initial=-1)) + 1
        place = pair * arms + self.arm[which] if by_variant else pair
        cells = np.unique(place * max(self.ranks, 1) + self.rank[which]) // max(self.ranks, 1)
        several, number = np.unique(cells, return_counts=True)
        flags = np.zeros(len(self.pages.pairs), np.bool_)
        flags[several[number > 1] // (arms if by_variant else 1)] = True
        return flags

    @cached_property
    def harvested(self) -> Flags:
        """Whether chance decided the rank of each row: by variants with a fixed ranking, or by interleaving."""
        arms = np.unique(self.arm[self.arm >= 0])
        fixed = (self.arm >= 0) & ~self.moving[self.pages.pair] if len(arms) > 1 else np.zeros(len(self.page), np.bool_)
        drawn = fixed | self.is_interleaved
        return np.asarray(drawn & self._pairs_at_several(drawn, by_variant=False)[self.pages.pair], np.bool_)

    @cached_property
    def compared(self) -> Flags:
        """Whether each row's pair was seen at several ranks, for whatever reason."""
        every = np.ones(len(self.page), np.bool_)
        return np.asarray(self._pairs_at_several(every, by_variant=False)[self.pages.pair], np.bool_)

    def notes(self) -> list[str]:
        """Sentences on rows that are left out."""
        pairs = len(np.unique(self.pages.pair[self.moving[self.pages.pair]]))
        if not pairs or len(np.unique(self.arm[self.arm >= 0])) < 2:
            return []
        what = f"{counted(pairs, 'pair')} of query and document {'was' if pairs == 1 else 'were'} at several ranks"
        return [f"{what} under one variant; they are not harvested, because chance did not decide these ranks"]


class PositionBiasMethod(Registered, ABC):
    """A way to estimate how often each rank is examined."""

    registry = POSITION_BIAS_METHODS
    formula: ClassVar[str]
    reference: ClassVar[str]
    evidence: ClassVar[str]  # what separates rank from relevance: methods with the same evidence are not compared
    usual: ClassVar[bool] = True  # whether it is among the default methods
    trust: ClassVar[int]  # the answer comes from the method with the lowest number

    @abstractmethod
    def lacking(self, log: RankedPages) -> str:
        """Why the log does not serve this method; empty if it does."""

    @abstractmethod
    def estimate(self, log: RankedPages) -> RateRatios:
        """The logarithm of how often each rank is examined, with the influence of each unit."""

    def checked_estimate(self, log: RankedPages) -> RateRatios:
        """The estimate; DataError if the log does not serve this method."""
        if problem := self.lacking(log):
            raise DataError(f"{self.name}: {problem}")
        return self.estimate(log)


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

    def lacking(self, log: RankedPages) -> str:
        if log.swap is None or log.swapped is None or not log.swap.any():
            return "no impression has the attributes swap and swapped, which name two ranks exchanged at random"
        return ""

    def estimate(self, log: RankedPages) -> RateRatios:
        if log.swap is None or log.swapped is None:
            raise DataError(f"{self.name}: {self.lacking(log)}")
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

    def lacking(self, log: RankedPages) -> str:
        return "" if log.harvested.any() else ONE_RANKER

    def estimate(self, log: RankedPages) -> RateRatios:
        return rate_ratios(log.rows(log.harvested), log.ranks, log.clusters)


class AllPairs(Harvested):
    """Compares each two ranks over the documents that some ranker puts at the one and another ranker at the other.

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

    def lacking(self, log: RankedPages) -> str:
        if self._rows(log).any():
            return ""
        return "needs two variants of an A/B test; the share of pages on which interleaving shows a rank is not known"

    def estimate(self, log: RankedPages) -> RateRatios:
        which = self._rows(log)
        rows, arm = log.rows(which), log.arm[which]
        pages = np.bincount(log.arm[log.pages.start[:-1][log.pages.lengths > 0]].clip(-1) + 1, minlength=arm.max() + 2)
        cells = np.unique(np.stack([rows.stratum, arm, rows.level]), axis=1)
        key = rows.stratum * log.ranks + rows.level
        shown = np.bincount(cells[0] * log.ranks + cells[2], pages[cells[1] + 1], minlength=int(key.max()) + 1)
        weighted = rows._replace(exposure=1 / shown[key], count=rows.count / shown[key])
        places = np.unique(cells[0] * log.ranks + cells[2])
        return rate_ratios(self._by_pair_of_ranks(weighted, places, log.ranks), log.ranks, log.clusters)

    def _rows(self, log: RankedPages) -> Flags:
        fixed = (log.arm >= 0) & log.harvested
        return np.asarray(fixed & log._pairs_at_several(fixed, by_variant=False)[log.pages.pair], np.bool_)

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
    trust = 5
    iterations = Whole(2000, "iterations at the most")
    tolerance = Real(1e-5, "change of every parameter below which the iterations end", low=0)
    pseudo_clicks = Real(1.0, "clicks that every parameter has before the log is read", low=0)
    pseudo_views = Real(2.0, "views that every parameter has before the log is read", low=0)

    def lacking(self, log: RankedPages) -> str:
        if log.compared.any():
            return ""
        return "a log with one ranker only: every document was seen at one rank, so rank and relevance cannot be told apart"

    def estimate(self, log: RankedPages) -> RateRatios:
        rows = log.rows(log.compared)
        strata, stratum = np.unique(rows.stratum, return_inverse=True)
        rows = rows._replace(stratum=stratum)
        seen, groups = connected_levels(rows, log.ranks)
        examined, attractive = self._fit(rows, log.ranks)
        with np.errstate(divide="ignore"):
            log_examined = np.log(examined)
        answer, influence = np.full(log.ranks, np.nan), np.zeros((log.clusters, log.ranks))
        reference = np.full(log.ranks, -1)
        for group in range(int(groups.max(initial=-1)) + 1):
            members = np.flatnonzero(groups == group)
            reference[members] = members[0]
            answer[members] = log_examined[members] - log_examined[members[0]]
            if len(members) > 1:
                influence[:, members] = _binomial_influence(rows, members, examined, attractive, log.clusters)
        return RateRatios(answer, reference, seen, influence)

    def _fit(self, rows: StratifiedCounts, ranks: int) -> tuple[Floats, Floats]:
        """How often each rank is examined, and the attractiveness of each stratum."""
        cell, of_row = np.unique(rows.stratum * ranks + rows.level, return_inverse=True)
        stratum, rank = np.divmod(cell, ranks)
        clicks = np.bincount(of_row, rows.count)
        passed = np.bincount(of_row) - clicks
        by_rank = np.maximum(np.bincount(rank, clicks + passed, minlength=ranks), 1) + self.pseudo_views
        by_stratum = np.bincount(stratum, clicks + passed) + self.pseudo_views
        examined, attractive = np.full(ranks, 0.5), np.full(len(by_stratum), 0.5)
        for _ in range(self.iterations):
            both = examined[rank] * attractive[stratum]
            unseen = 1 - both
            more = passed * (examined[rank] - both) / unseen, passed * (attractive[stratum] - both) / unseen
            new = (np.bincount(rank, clicks + more[0], minlength=ranks) + self.pseudo_clicks) / by_rank
            news = (np.bincount(stratum, clicks + more[1]) + self.pseudo_clicks) / by_stratum
            change = max(np.abs(new - examined).max(), np.abs(news - attractive).max())
            examined, attractive = new, news
            if change < self.tolerance:
                return examined, attractive
        raise DataError(
            f"{self.name}: no convergence after {self.iterations:,} iterations (largest change {change:.2g}); "
            "raise iterations or tolerance, as in em(tolerance=1e-4)"
        )


def _binomial_influence(
    rows: StratifiedCounts, members: Numbers, examined: Floats, attractive: Floats, clusters: int
) -> Floats:
    """The influence of each cluster on the logarithms of connected ranks, by the efficient score of the binomial model."""
    from scipy.sparse import csr_array  # type: ignore[import-untyped, unused-ignore]

    inside = np.isin(rows.level, members)
    strata, stratum = np.unique(rows.stratum[inside], return_inverse=True)
    level, size = np.searchsorted(members, rows.level[inside]), len(members)
    clicked = np.minimum(examined[rows.level[inside]] * attractive[rows.stratum[inside]], 1 - 1e-6)
    weight = clicked / (1 - clicked)
    known = weight > 0
    stratum, level, weight, clicked = stratum[known], level[known], weight[known], clicked[known]
    count, cluster = rows.count[inside][known], rows.cluster[inside][known]
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
    return registry.page(cls)
