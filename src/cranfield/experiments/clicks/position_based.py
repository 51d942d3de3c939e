"""Models in which users examine each rank with a probability of its own: PBM and UBM.

A log shows only products of attractiveness and examination. So both are known up to one factor: half the examination with
twice the attractiveness explains the same clicks. `relative` compares examination with that of rank 1.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import DataError
from cranfield.experiments.clicks.em import Expectations, FittedScan, Maximum, by_rank, log_sum, maximise, ratio, sums
from cranfield.experiments.clicks.model import FittedByEM
from cranfield.experiments.clicks.result_pages import ClickCounts, ResultPages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.result_pages import Flags, Numbers

MOST_RANKS = 1_000  # UBM has a parameter for each rank and each rank above it
BLOCK = 2_000_000  # numbers that UBM's marginal probabilities hold at once


@dataclass(frozen=True, eq=False)
class ExaminationCells:
    """Clicked and skipped views by pair and by situation: the rank, and for UBM the rank of the previous click."""

    pair: Numbers
    situation: Numbers
    clicks: Floats
    skips: Floats
    pairs: int
    situations: int

    @classmethod
    def of(cls, counts: ClickCounts, situation: Numbers, situations: int) -> ExaminationCells:
        """The cells of counts, with equal pair and situation added up."""
        codes, cell = np.unique(counts.pair * situations + situation, return_inverse=True)
        views, clicks = counts.by(cell, len(codes))
        pair, place = np.divmod(codes, situations)
        return cls(pair, place, clicks, views - clicks, len(counts.pairs), situations)

    def maximum(self, model: FittedByEM) -> Maximum:
        """The attractiveness of the pairs and the examination of the situations after a model's iterations."""
        start = np.full(self.pairs, model.start), np.full(self.situations, model.start)
        return maximise(model, start, self.expect)

    def expect(self, attractiveness: Floats, examination: Floats) -> Expectations:
        """How many views attracted (of each pair) and were examined (in each situation).

        Attraction and examination are independent, and a click needs both. At a skip, one of them or both were absent.
        """
        attracts, examines = attractiveness[self.pair], examination[self.situation]
        click = attracts * examines
        per_skip = ratio(self.skips, 1 - click)
        attracted = self.clicks + per_skip * (attracts - click)
        examined = self.clicks + per_skip * (examines - click)
        views = self.clicks + self.skips
        return Expectations(
            log_sum(self.clicks, click) + log_sum(self.skips, 1 - click),
            (sums(self.pair, attracted, self.pairs), sums(self.situation, examined, self.situations)),
            (sums(self.pair, views, self.pairs), sums(self.situation, views, self.situations)),
            sums(self.pair, examined, self.pairs),
        )


class PBM(FittedByEM):
    """Position-based model: users examine a rank with the probability of that rank, whatever they clicked above.

    >>> lists = [(["a", "b"], [1, 0]), (["b", "a"], [1, 0]), (["a", "b"], [1, 1])]
    >>> fitted = PBM(iterations=1000).fit(ResultPages.of([("q", *each) for each in lists]))
    >>> fitted.relative().round(2).tolist()
    [1.0, 0.5]
    """

    name = "PBM"
    aliases = ("position-based",)
    formula = "P(click) = attractiveness(query, document) · examination(rank)"
    reference = "Richardson, Dominowska & Ragno (2007); Craswell, Zoeter, Taylor & Ramsey (2008)"

    def fit(self, data: ClickCounts | ResultPages) -> FittedPBM:
        counts = ClickCounts.of(data) if isinstance(data, ResultPages) else data
        cells = ExaminationCells.of(counts, counts.rank - 1, int(counts.rank.max(initial=1)))
        (attractiveness, examination), objective, change, examined = cells.maximum(self)
        return FittedPBM(self, counts.pairs, attractiveness, objective, change, examination, examined=examined)


class UBM(FittedByEM):
    """User browsing model: examination depends on the rank and on the rank of the previous click."""

    name = "UBM"
    aliases = ("user-browsing",)
    formula = (
        "P(click | clicks above) = attractiveness(query, document) · examination(rank, rank of the previous click)"
    )
    reference = "Dupret & Piwowarski (2008)"

    def fit(self, data: ClickCounts | ResultPages) -> FittedUBM:
        counts = ClickCounts.of(data) if isinstance(data, ResultPages) else data
        ranks = int(counts.rank.max(initial=1))
        refuse_long_pages(ranks)
        cells = ExaminationCells.of(counts, (counts.rank - 1) * ranks + counts.previous, ranks * ranks)
        (attractiveness, examination), objective, change, examined = cells.maximum(self)
        table = examination.reshape(ranks, ranks)
        return FittedUBM(self, counts.pairs, attractiveness, objective, change, table, examined=examined)


def refuse_long_pages(ranks: int) -> None:
    """Raise DataError if UBM would have too many parameters."""
    if ranks > MOST_RANKS:
        raise DataError(
            f"UBM has a parameter for each rank and each rank above it: expected {MOST_RANKS:,} documents on a page at the"
            f" most, found {ranks:,}; use PBM, or cut the pages"
        )


@dataclass(frozen=True, eq=False)
class FittedPositionBased(FittedScan):
    """What PBM and UBM have in common once fitted."""

    examination: Floats

    def parameters(self) -> Mapping[str, Floats]:
        return {"examination": self.examination}

    @abstractmethod
    def relative(self) -> Floats:
        """The examination of each rank relative to rank 1; NaN if nobody examines rank 1."""


def relative_to_first(examination: Floats) -> Floats:
    """Each value over the first one; NaN if that is 0."""
    return examination / examination[0] if examination[0] > 0 else np.full(len(examination), np.nan)


@dataclass(frozen=True, eq=False)
class FittedPBM(FittedPositionBased):
    """PBM with its parameters: the examination of each rank."""

    def relative(self) -> Floats:
        return relative_to_first(self.examination)

    def marginal(self, pages: ResultPages) -> Floats:
        rank = pages.rank
        unseen = np.full(max(int(rank.max(initial=0)) - len(self.examination), 0), self.unseen)
        examination: Floats = np.concatenate((self.examination, unseen))
        return np.asarray(self.attractiveness[pages.pair] * examination[rank - 1], np.float64)

    def walk(self, pages: ResultPages, look: Callable[[Numbers, Floats], Flags]) -> Floats:
        chances = self.marginal(pages)
        look(np.arange(len(chances)), chances)
        return chances


@dataclass(frozen=True, eq=False)
class FittedUBM(FittedPositionBased):
    """UBM with its parameters: the examination by rank (rows) and rank of the previous click (columns; 0: none)."""

    def relative(self) -> Floats:
        return relative_to_first(self.examination[:, 0])

    def table(self, ranks: int) -> Floats:
        """The examination of at least so many ranks, with the value of an unseen parameter where there is none."""
        refuse_long_pages(ranks)
        size = len(self.examination)
        table: Floats = np.full((max(ranks, size),) * 2, self.unseen)
        table[:size, :size] = self.examination
        return table

    def walk(self, pages: ResultPages, look: Callable[[Numbers, Floats], Flags]) -> Floats:
        table = self.table(int(pages.lengths.max(initial=1)))
        chances, previous = np.zeros(len(pages.pair)), np.zeros(len(pages), np.int64)
        for rank, (which, rows) in enumerate(by_rank(pages), 1):
            chances[rows] = self.attractiveness[pages.pair[rows]] * table[rank - 1, previous[which]]
            clicked = look(rows, chances[rows])
            previous[which[clicked]] = rank
        return chances

    def marginal(self, pages: ResultPages) -> Floats:
        longest = int(pages.lengths.max(initial=1))
        table, answer = self.table(longest), np.zeros(len(pages.pair))
        size = max(BLOCK // (longest + 1), 1)
        for first in range(0, len(pages), size):
            some = pages.some(np.arange(first, min(first + size, len(pages))))
            row = pages.start[first]
            answer[row : row + len(some.pair)] = self.marginal_of(some, table)
        return answer

    def marginal_of(self, pages: ResultPages, table: Floats) -> Floats:
        """The marginal probabilities, by the distribution of the previous click at each rank."""
        chances = np.zeros(len(pages.pair))
        previous = np.zeros((len(pages), len(table) + 1))
        previous[:, 0] = 1
        for rank, (which, rows) in enumerate(by_rank(pages), 1):
            click = self.attractiveness[pages.pair[rows], None] * table[rank - 1, :rank] * previous[which, :rank]
            chances[rows] = click.sum(axis=1)
            previous[which, :rank] -= click
            previous[which, rank] = chances[rows]
        return chances
