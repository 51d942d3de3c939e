"""Models in which users examine each rank with a probability of its own: PBM and UBM.

A log shows only products of attractiveness and examination. So both are known up to one factor: half the examination with
twice the attractiveness explains the same clicks. `relative` compares examination with that of rank 1. The comparison needs
documents that were shown at both ranks, or a chain of such documents; without one, only the prior would speak.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import Flag
from cranfield.experiments.clicks.em import Expectations, FittedScan, Maximum, by_rank, log_sum, maximise, ratio, sums
from cranfield.experiments.clicks.model import FittedByEM
from cranfield.experiments.clicks.result_pages import as_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.result_pages import ClickCounts, Flags, Numbers, ResultPages

RELATIVE = "relative to rank 1"
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

    @cached_property
    def _skipped(self) -> tuple[Numbers, Numbers, Floats]:
        """The pair, the situation and the number of the skips: a click has no hidden state, so clicks enter as sums."""
        some = self.skips > 0
        return self.pair[some], self.situation[some], self.skips[some]

    @cached_property
    def _clicks(self) -> tuple[Floats, Floats]:
        return sums(self.pair, self.clicks, self.pairs), sums(self.situation, self.clicks, self.situations)

    @cached_property
    def _views(self) -> tuple[Floats, Floats]:
        views = self.clicks + self.skips
        return sums(self.pair, views, self.pairs), sums(self.situation, views, self.situations)

    def maximum(self, model: FittedByEM) -> Maximum:
        """The attractiveness of the pairs and the examination of the situations after a model's iterations."""
        start = np.full(self.pairs, model.start), np.full(self.situations, model.start)
        return maximise(model, start, self.expect)

    def expect(self, attractiveness: Floats, examination: Floats) -> Expectations:
        """How many views attracted (of each pair) and were examined (in each situation).

        Attraction and examination are independent, and a click needs both. At a skip, one of them or both were absent.
        """
        pair, situation, skips = self._skipped
        clicks, situation_clicks = self._clicks
        attracts, examines = attractiveness[pair], examination[situation]
        click = attracts * examines
        skip = 1 - click
        per_skip = ratio(skips, skip)
        examined = per_skip * (examines - click)
        return Expectations(
            log_sum(clicks, attractiveness) + log_sum(situation_clicks, examination) + log_sum(skips, skip),
            (
                clicks + sums(pair, per_skip * (attracts - click), self.pairs),
                situation_clicks + sums(situation, examined, self.situations),
            ),
            self._views,
            clicks + sums(pair, examined, self.pairs),
        )

    @property
    def connected(self) -> Numbers:
        """The lowest situation that each one is connected with by pairs seen in both; -1 for one that did not occur.

        >>> from cranfield.experiments.clicks.result_pages import ClickCounts, ResultPages
        >>> pages = ResultPages.of([("q", ["a", "b", "c"], [0, 1, 0]), ("q", ["b", "a", "c"], [0, 0, 0])])
        >>> counts = ClickCounts.of(pages)
        >>> ExaminationCells.of(counts, counts.rank, 4).connected.tolist()
        [-1, 1, 1, 3]
        """
        lowest = np.full(self.situations, -1)
        lowest[self.situation] = self.situation
        while True:
            of_pair = np.full(self.pairs, self.situations)
            np.minimum.at(of_pair, self.pair, lowest[self.situation])
            new = lowest.copy()
            np.minimum.at(new, self.situation, of_pair[self.pair])
            if np.array_equal(new, lowest):
                return lowest
            lowest = new


def anchored_parameter() -> Flag:
    """The parameter that settles the factor which the log leaves open."""
    return Flag("scale to an examination of 1 at rank 1, so that attractiveness is the click probability there")


class PBM(FittedByEM):
    """Position-based model: users examine a rank with the probability of that rank, whatever they clicked above.

    >>> from cranfield.experiments.clicks.result_pages import ResultPages
    >>> lists = [(["a", "b"], [1, 0]), (["b", "a"], [1, 0]), (["a", "b"], [1, 1])]
    >>> fitted = PBM(iterations=1000).fit(ResultPages.of([("q", *each) for each in lists]))
    >>> fitted.relative().round(2).tolist()
    [1.0, 0.61]
    """

    name = "PBM"
    aliases = ("position-based",)
    reads_other_clicks = False
    formula = "P(click) = attractiveness(query, document) · examination(rank)"
    anchored = anchored_parameter()
    reference = "Richardson, Dominowska & Ragno (2007); Craswell, Zoeter, Taylor & Ramsey (2008)"

    def fit(self, data: ClickCounts | ResultPages) -> FittedPBM:
        counts = as_counts(data)
        cells = ExaminationCells.of(counts, counts.rank - 1, int(counts.rank.max(initial=1)))
        (attractiveness, examination), objective, change, examined = cells.maximum(self)
        what = (attractiveness, objective, change, examination, cells.connected)
        fitted = FittedPBM(self, counts.pairs, *what, examined=examined)
        return fitted.scaled() if self.anchored else fitted


class UBM(FittedByEM):
    """User browsing model: examination depends on the rank and on the rank of the previous click."""

    name = "UBM"
    aliases = ("user-browsing",)
    formula = (
        "P(click | clicks above) = attractiveness(query, document) · examination(rank, rank of the previous click)"
    )
    anchored = anchored_parameter()
    reference = "Dupret & Piwowarski (2008)"

    def fit(self, data: ClickCounts | ResultPages) -> FittedUBM:
        counts = as_counts(data)
        ranks = int(counts.rank.max(initial=1))
        refuse_long_pages(ranks)
        cells = ExaminationCells.of(counts, (counts.rank - 1) * ranks + counts.previous, ranks * ranks)
        (attractiveness, examination), objective, change, examined = cells.maximum(self)
        table, connected = examination.reshape(ranks, ranks), cells.connected.reshape(ranks, ranks)
        what = (attractiveness, objective, change, table, connected)
        fitted = FittedUBM(self, counts.pairs, *what, examined=examined)
        return fitted.scaled() if self.anchored else fitted


def refuse_long_pages(ranks: int) -> None:
    """Raise DataError if UBM would have too many parameters."""
    if ranks > MOST_RANKS:
        raise DataError(
            f"UBM has a parameter for each rank and each rank above it: expected {MOST_RANKS:,} documents on a page at the"
            f" most, found {ranks:,}; use PBM, or cut the pages"
        )


@dataclass(frozen=True, eq=False)
class FittedPositionBased(FittedScan):
    """The common part of fitted PBM and UBM."""

    examination: Floats
    connected: Numbers
    """The lowest situation that each one is connected with, as in `ExaminationCells.connected`."""

    rank_parameters = ("examination", RELATIVE)

    def parameters(self) -> Mapping[str, Floats]:
        return {"examination": self.examination, RELATIVE: self.relative()}

    @property
    @abstractmethod
    def without_click_above(self) -> tuple[Floats, Numbers]:
        """The examination of each rank if nothing is clicked above, and what the rank is connected with."""

    def relative(self) -> Floats:
        """The examination of each rank relative to rank 1; NaN if no documents connect the two."""
        examination, connected = self.without_click_above
        comparable = (connected == connected[0]) & (examination[0] > 0)
        answer = np.full(len(examination), np.nan)
        answer[comparable] = examination[comparable] / examination[0]
        return answer

    def scaled(self) -> Self:
        """The same model with an examination of 1 at rank 1. Ranks that are examined more than rank 1 exceed 1."""
        first = float(self.examination.flat[0])
        if first <= 0:
            return self
        return replace(self, attractiveness=self.attractiveness * first, examination=self.examination / first)

    def check(self) -> list[str]:
        _, connected = self.without_click_above
        alone = [rank for rank, each in enumerate(connected.tolist(), 1) if each not in (-1, connected[0])]
        if alone and len(alone) == len(connected) - 1:
            raise DataError(
                f"{self.model.name}: no document was shown both at rank 1 and at another rank, so this log cannot tell"
                " attractiveness from examination. Log results in varied order (swap or interleave them), or use a model of"
                " users who read down the page, like DBN"
            )
        cautions = super().check()
        if alone:
            which = f"rank {alone[0]}" if len(alone) == 1 else f"ranks {', '.join(map(str, alone[:5]))}"
            cautions.append(
                f"{self.model.name}: no documents connect rank 1 with {which}{' …' if len(alone) > 5 else ''}; examination and"
                " attractiveness are not comparable between them"
            )
        return cautions


@dataclass(frozen=True, eq=False)
class FittedPBM(FittedPositionBased):
    """PBM with its parameters: the examination of each rank."""

    @property
    def without_click_above(self) -> tuple[Floats, Numbers]:
        return self.examination, self.connected

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

    @property
    def without_click_above(self) -> tuple[Floats, Numbers]:
        return self.examination[:, 0], self.connected[:, 0]

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
