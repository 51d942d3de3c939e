"""Result pages with what chance decided about their order: variants of an A/B test, interleaving, swaps of two ranks.

A document that chance put at several ranks shows what the rank does to clicks. A variant whose ranking of a query changed
over time, or differs between people, put a document at several ranks without chance; such pairs are not harvested.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.base.text_layout import counted
from cranfield.experiments.clicks.click_log import read_pages
from cranfield.experiments.log import connect, duckdb_in_words
from cranfield.stats.rate_ratios import StratifiedCounts, distinct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.experiments.clicks.result_pages import Flags, Numbers, ResultPages
    from cranfield.experiments.log import EventSource

SWAP, SWAPPED = "swap", "swapped"  # attributes of an impression
TRUTH = {"true": True, "false": False}


@dataclass(frozen=True, eq=False)
class RankedPages:
    """Result pages with what chance decided about their order. Variants (`pages.variant`) are assigned at random.

    A swap is a pair of ranks whose documents chance exchanged or not.
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

    @cached_property
    def ranks(self) -> int:
        """The length of the longest page."""
        return int(self.pages.lengths.max(initial=0))

    @cached_property
    def cluster(self) -> Numbers:
        """The unit of each page, by number; without units the page itself."""
        unit = self.pages.unit
        numbers = np.arange(len(self.pages)) if unit is None else np.unique(unit, return_inverse=True)[1]
        return np.asarray(numbers, np.int64)

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
    def compared(self) -> Flags:
        """Whether each row's pair was seen at several ranks, for whatever reason."""
        every = np.ones(len(self.page), np.bool_)
        return self._at_several(every)

    def top(self, depth: int) -> RankedPages:
        """The first ranks of each page; swaps with ranks below are left out."""
        rows = self.rank < depth
        start = np.concatenate(([0], np.cumsum(np.minimum(self.pages.lengths, depth))))
        pages = replace(self.pages, start=start, pair=self.pages.pair[rows], clicked=self.pages.clicked[rows])
        swap = None if self.swap is None else np.where(self.swap[:, 1:] <= depth, self.swap, 0)
        return RankedPages(pages, self.interleaved, swap, self.swapped)

    # rankers assigned at random

    @cached_property
    def in_interleaving(self) -> Flags:
        """Whether each row is in an interleaved list."""
        none = np.zeros(len(self.pages), np.bool_)
        return (none if self.interleaved is None else self.interleaved)[self.page]

    @cached_property
    def arm(self) -> Numbers:
        """The variant of each row that is not interleaved; -1 without one."""
        variant = self.pages.variant
        if variant is None:
            return np.full(len(self.page), -1)
        return np.where(self.in_interleaving, -1, variant.astype(np.int64)[self.page])

    @property
    def arms(self) -> int:
        """The number of variants with pages that are not interleaved."""
        return len(np.unique(self.arm[self.arm >= 0]))

    @cached_property
    def moving(self) -> Flags:
        """Whether each pair was at several ranks under one variant, so that not only chance decided its rank."""
        which = self.arm >= 0
        size = int(self.arm.max(initial=-1)) + 1
        several = _with_several(self.pages.pair[which] * size + self.arm[which], self.rank[which], self.ranks)
        flags = np.zeros(len(self.pages.pairs), np.bool_)
        flags[several // max(size, 1)] = True
        return flags

    @cached_property
    def by_variant(self) -> Flags:
        """Whether each row is one of a document that several variants show at different ranks, each at a fixed one."""
        fixed = (self.arm >= 0) & ~self.moving[self.pages.pair]
        return self._at_several(fixed) if self.arms > 1 else np.zeros(len(self.page), np.bool_)

    @cached_property
    def by_interleaving(self) -> Flags:
        """Whether each row is one of a document that interleaved lists show at several ranks."""
        return self._at_several(self.in_interleaving)

    def harvested(self) -> StratifiedCounts:
        """The rows whose rank chance decided, by pair of query and document; interleaved lists are strata of their own."""
        stratum = self.pages.pair + len(self.pages.pairs) * self.in_interleaving.astype(np.int64)
        return self.rows(self.by_variant | self.by_interleaving, stratum)

    def _at_several(self, which: Flags) -> Flags:
        """The rows among some whose pair is at several ranks in these."""
        flags = np.zeros(len(self.pages.pairs), np.bool_)
        flags[_with_several(self.pages.pair[which].astype(np.int64), self.rank[which], self.ranks)] = True
        return np.asarray(which & flags[self.pages.pair], np.bool_)

    def notes(self) -> list[str]:
        """Sentences on documents that are not harvested."""
        pairs = int(self.moving.sum())
        if not pairs or self.arms < 2:
            return []
        were = "was" if pairs == 1 else "were"
        return [
            f"{counted(pairs, 'pair')} of query and document {were} at several ranks under one variant and {were} not "
            "harvested: chance did not decide these ranks"
        ]


def _with_several(subject: Numbers, rank: Numbers, ranks: int) -> Numbers:
    """The subjects that are at several ranks."""
    cells = distinct(subject.astype(np.int64) * max(ranks, 1) + rank)[0] // max(ranks, 1)
    several, number = np.unique(cells, return_counts=True)
    return np.asarray(several[number > 1], np.int64)


# reading


class RankedLog(NamedTuple):
    """The pages of a log with what chance decided, and notes on what was left out or decided."""

    pages: RankedPages
    notes: list[str]


def read_ranked_pages(log: EventSource, **reading: Any) -> RankedLog:
    """The pages of a log, with interleaved lists (by their tokens) and swaps (by attributes); `reading` as `read_pages`.

    An impression with a swap has the attributes `swap` (two ranks, as in 1-4) and `swapped` (true or false).
    """
    read = read_pages(log, **reading)
    place = {search: number for number, search in enumerate(read.searches.to_pylist())}
    interleaved, swap = np.zeros(len(place), np.bool_), np.zeros((len(place), 2), np.int64)
    swapped = np.zeros(len(place), np.bool_)
    lengths = read.pages.lengths
    for search, has_token, ranks, exchanged in _drawn_searches(log):
        number = place.get(search)
        if number is None:
            continue
        interleaved[number] = has_token
        if ranks is not None or exchanged is not None:
            swap[number] = _two_ranks(search, ranks, int(lengths[number]))
            swapped[number] = _truth(search, exchanged)
    pages = RankedPages(read.pages, interleaved, swap, swapped)
    return RankedLog(pages, [*read.notes, *pages.notes()])


def _drawn_searches(log: EventSource) -> Iterable[tuple[str, bool, str | None, str | None]]:
    """The searches with a token or a swap: whether it has a token, the two ranks, and whether they are exchanged."""
    query = (
        "SELECT search, bool_or(credit IS NOT NULL), arg_min(attributes['swap'], time), "
        "arg_min(attributes['swapped'], time) FROM cranfield_events WHERE kind = 'impression' AND (credit IS NOT NULL OR "
        "attributes['swap'] IS NOT NULL OR attributes['swapped'] IS NOT NULL) GROUP BY search ORDER BY search"
    )
    connection = connect()
    try:
        with duckdb_in_words(str(getattr(log, "folder", "the log")), log.files()):
            log.relation(connection).create_view("cranfield_events", replace=True)
            return connection.execute(query).fetchall()
    finally:
        connection.close()


def _two_ranks(search: str, typed: str | None, length: int) -> tuple[int, int]:
    where = f"search {shortened(search)!r}"
    numbers = re.fullmatch(r"\s*([0-9]{1,9})\s*[-,]\s*([0-9]{1,9})\s*", typed or "")
    if numbers is None:
        value = "none" if typed is None else repr(shortened(typed))
        raise DataError(f"{where}: expected two ranks as attribute {SWAP}, such as 1-4, found {value}")
    low, high = sorted(map(int, numbers.groups()))
    if low == high or low < 1 or high > length:
        expected = f"expected two different ranks from 1 to {length}, the length of its page"
        raise DataError(f"{where}: {expected}, as attribute {SWAP}, found {shortened(typed)!r}")
    return low, high


def _truth(search: str, typed: str | None) -> bool:
    if typed not in TRUTH:
        value = "none" if typed is None else repr(shortened(typed))
        raise DataError(
            f"search {shortened(search)!r}: expected true or false as attribute {SWAPPED}, which says whether the ranks of "
            f"{SWAP} are exchanged, found {value}"
        )
    return TRUTH[typed]
