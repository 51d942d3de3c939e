"""Users who walk down a page from rank 1 until they stop: what is certain, what is hidden, and what they click.

They have examined everything down to their last click. What they examined in the tail of the page is hidden. The tail is
the rows after the last click, or all rows of a page without clicks. The silence of a row is the probability that neither
it nor any row below is clicked, once the row is examined. Silence is computed upwards and examination downwards, for all
pages at once.

The rows of tails are stored by their distance from the end of the page, the longest tails first. So each distance is one
slice, and the rows below it are a prefix of the slice before.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from cranfield.experiments.clicks.em import FittedScan, by_rank, ratio, sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.result_pages import Flags, Numbers, ResultPages


@dataclass(frozen=True, eq=False)
class Tails:
    """The tails of all pages that have one.

    >>> from cranfield.experiments.clicks.result_pages import ResultPages
    >>> tails = Tails.of(ResultPages.of([("q", ["a", "b", "c"], [1, 0, 0]), ("q", ["c", "a"], [0, 0])]))
    >>> tails.head.tolist(), tails.pair.tolist(), tails.first.tolist()
    ([0, -1], [2, 0, 1, 2], [2, 3])
    """

    head: Numbers  # the pair of the last click of each page; -1 without a click
    pair: Numbers  # of each row
    first: Numbers  # the first row of each page's tail
    end: tuple[int, ...]  # where the slices end: 0, then the number of rows at distance 0, at distance 0 or 1, …
    pairs: int

    @classmethod
    def of(cls, pages: ResultPages) -> Tails:
        """The tails of pages."""
        last, lengths = pages.last_click, pages.lengths
        size = lengths - last
        longest_first = np.argsort(-size, kind="stable")
        order = longest_first[size[longest_first] > 0]
        size, bottom = size[order], pages.start[order + 1] - 1
        above = np.maximum(pages.start[order] + last[order] - 1, 0)
        head = np.where(last[order] > 0, pages.pair[above], -1) if len(pages.pair) else np.zeros(0, np.int64)
        widths = np.searchsorted(-size, -np.arange(1, int(size.max(initial=0)) + 1), side="right")
        end = (0, *np.cumsum(widths).tolist())
        pair = np.empty(end[-1], np.intp)
        for distance, (start, stop) in enumerate(pairwise(end)):
            pair[start:stop] = pages.pair[bottom[: stop - start] - distance]
        first = np.array(end, np.int64)[size - 1] + np.arange(len(size))
        return cls(head.astype(np.int64), pair, first, end, len(pages.pairs))

    @property
    def clicked(self) -> Flags:
        """Whether each page has a click above its tail."""
        return self.head >= 0

    def silence(self, attractiveness: Floats, after_skip: float) -> Floats:
        """The silence of each row, if users examine the row below a skip with this probability."""
        silence = 1 - attractiveness[self.pair]
        for (start, stop), (below, _) in zip(self._slices()[1:], self._slices(), strict=False):
            here = silence[start:stop]
            here *= 1 - after_skip + after_skip * silence[below : below + len(here)]
        return silence

    def examined(self, silence: Floats, after_skip: float, first: Floats) -> Floats:
        """The probability that each row is examined, given the clicks, from that of the first row of each tail."""
        examined = np.empty(len(self.pair))
        examined[self.first] = first
        for (start, stop), (below, _) in reversed(list(zip(self._slices()[1:], self._slices(), strict=False))):
            next_row = slice(below, below + stop - start)
            silent = after_skip * silence[next_row]
            examined[next_row] = examined[start:stop] * ratio(silent, 1 - after_skip + silent)
        return examined

    def _slices(self) -> list[tuple[int, int]]:
        return list(pairwise(self.end))

    def by_pair(self, examined: Floats) -> Floats:
        """The expected number of examined rows of each pair."""
        return sums(self.pair, examined, self.pairs)

    def steps(self, examined: Floats) -> tuple[float, float]:
        """How many rows below a skip were examined, and below how many examined skips there is a row."""
        bottom = self.end[1] if len(self.end) > 1 else 0
        return float(examined.sum() - examined[self.first].sum()), float(examined[bottom:].sum())


@dataclass(frozen=True, eq=False)
class Heads:
    """What is certain: rows down to the last click of their page, counted by pair."""

    views: Floats  # examined rows of each pair
    clicks: Floats
    passed_clicks: Floats  # clicks that are not the last of their page
    passed_skips: float  # skips above the last click

    @classmethod
    def of(cls, pages: ResultPages) -> Heads:
        """The counts of pages."""
        row = np.arange(len(pages.pair))
        last = pages.start[:-1] + pages.last_click - 1  # the row of the last click; the row above the page without one
        last_of_page = np.repeat(last, pages.lengths)
        examined, passed = row <= last_of_page, pages.clicked & (row < last_of_page)
        views, clicks, passed_clicks = (
            np.bincount(pages.pair[which], minlength=len(pages.pairs)).astype(np.float64)
            for which in (examined, pages.clicked, passed)
        )
        return cls(views, clicks, passed_clicks, float(views.sum() - clicks.sum()))


@dataclass(frozen=True, eq=False)
class FittedChain(FittedScan):
    """A fitted model whose users go on to the next rank with a probability that depends only on this rank."""

    @property
    @abstractmethod
    def after_skip(self) -> float:
        """The probability that the next rank is examined after an examined rank without a click."""

    @property
    @abstractmethod
    def after_click(self) -> Floats:
        """The probability that the next rank is examined after a click on each pair."""

    def marginal(self, pages: ResultPages) -> Floats:
        goes_on = (1 - self.attractiveness) * self.after_skip + self.attractiveness * self.after_click
        chances, examined = np.zeros(len(pages.pair)), np.ones(len(pages))
        for which, rows in by_rank(pages):
            pair = pages.pair[rows]
            chances[rows] = examined[which] * self.attractiveness[pair]
            examined[which] *= goes_on[pair]
        return chances

    def walk(self, pages: ResultPages, look: Callable[[Numbers, Floats], Flags]) -> Floats:
        after_click, after_skip = self.after_click, self.after_skip
        chances, examined = np.zeros(len(pages.pair)), np.ones(len(pages))
        for which, rows in by_rank(pages):
            pair = pages.pair[rows]
            click = examined[which] * self.attractiveness[pair]
            chances[rows] = click
            # after a skip, the probability that the user was still reading there
            still = ratio(examined[which] - click, 1 - click)
            examined[which] = np.where(look(rows, click), after_click[pair], after_skip * still)
        return chances
