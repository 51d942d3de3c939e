"""Result pages with their clicks, as arrays, and the counts that most click models are fitted from.

A page is what one search showed: the documents in order, and which of them were clicked. A pair is a query and a document.
Pairs have numbers, so a million pages of ten documents take 50 MB. Ranks count from 1.

The last click of a page divides its documents into those before it, itself, and those after it. Counts by pair, rank,
rank of the previous click and this place suffice for every model except CCM and DBN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats

    Numbers = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

DENSE, SMALL, LARGE = 4, 1_000_000, 40_000_000  # cells of a table of counts: per row, and in all
NO_CLICK, BEFORE, AT, AFTER = range(4)  # the place of a document relative to the last click of its page


@dataclass(frozen=True, eq=False)
class QueryDocuments:
    """The pairs of a log: texts of queries, ids of documents, and the two of each pair by number."""

    queries: tuple[str, ...]
    documents: tuple[str, ...]
    query: Numbers
    document: Numbers

    def __len__(self) -> int:
        return len(self.query)

    def names(self) -> list[tuple[str, str]]:
        """The query and the document of each pair."""
        pairs = zip(self.query.tolist(), self.document.tolist(), strict=True)
        return [(self.queries[q], self.documents[d]) for q, d in pairs]


@dataclass(frozen=True, eq=False)
class ResultPages:
    """Result pages: the pairs they showed, in order, and the clicks. Page i has the rows from start[i] to start[i + 1].

    >>> pages = ResultPages.of([("q", ["a", "b", "c"], [0, 1, 0]), ("q", ["b", "a"], [0, 0])])
    >>> len(pages), pages.rank.tolist(), pages.previous.tolist(), pages.place.tolist()
    (2, [1, 2, 3, 1, 2], [0, 0, 2, 0, 0], [1, 2, 3, 0, 0])
    """

    pairs: QueryDocuments
    start: Numbers
    pair: npt.NDArray[np.int32]
    clicked: Flags
    unit: npt.NDArray[np.int32] | None = None  # the unit of each page, by number
    variant: npt.NDArray[np.int32] | None = None  # the place in `variants` of each page; -1 without a variant
    variants: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, sessions: Iterable[tuple[str, Sequence[str], Sequence[Any]]]) -> ResultPages:
        """Pages from (query, documents in order, whether each was clicked)."""
        queries: dict[str, int] = {}
        documents: dict[str, int] = {}
        numbers: dict[tuple[int, int], int] = {}
        start, pair, clicked = [0], [], []
        for query, shown, clicks in sessions:
            if len(shown) != len(clicks):
                raise DataError(f"expected a click or none for each of {len(shown)} documents, found {len(clicks)}")
            q = queries.setdefault(query, len(queries))
            for document, click in zip(shown, clicks, strict=True):
                d = documents.setdefault(document, len(documents))
                pair.append(numbers.setdefault((q, d), len(numbers)))
                clicked.append(bool(click))
            start.append(len(pair))
        both = np.array(list(numbers), np.int64).reshape(-1, 2)
        pairs = QueryDocuments(tuple(queries), tuple(documents), both[:, 0], both[:, 1])
        return cls(pairs, np.array(start, np.int64), np.array(pair, np.int32), np.array(clicked, np.bool_))

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def lengths(self) -> Numbers:
        """The number of documents of each page."""
        return np.diff(self.start)

    @property
    def page(self) -> Numbers:
        """The page of each row."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def rank(self) -> Numbers:
        """The rank of each row, from 1."""
        return np.asarray(self._rank(np.int64), np.int64)

    def _rank(self, kind: type[np.int32 | np.int64]) -> Any:
        rows: npt.NDArray[Any] = np.arange(1, len(self.pair) + 1, dtype=kind)
        rows -= np.repeat(self.start[:-1].astype(kind), self.lengths)
        return rows

    @property
    def clicks(self) -> Numbers:
        """The number of clicks of each page."""
        return np.diff(np.searchsorted(np.flatnonzero(self.clicked), self.start))

    @property
    def previous(self) -> npt.NDArray[np.int32]:
        """The rank of the previous click on the page; 0 if there is none above."""
        # Between two clicks it is the same: so a page is as many stretches of equal values as it has clicks, and one more.
        clicks, rows = self.clicks, np.flatnonzero(self.clicked)
        page = np.repeat(np.arange(len(self)), clicks)
        starts, values = np.empty(len(self) + len(rows), np.int64), np.zeros(len(self) + len(rows), np.int32)
        after_click = np.arange(len(rows)) + page + 1
        starts[after_click], values[after_click] = rows + 1, rows - self.start[page] + 1
        of_page = np.arange(len(self)) + np.concatenate(([0], np.cumsum(clicks)[:-1]))[: len(self)]
        starts[of_page] = self.start[:-1]
        return np.repeat(values, np.diff(np.append(starts, len(self.clicked))))

    @property
    def last_click(self) -> Numbers:
        """The rank of the last click of each page; 0 without a click."""
        clicks, rows = self.clicks, np.flatnonzero(self.clicked)
        last = np.zeros(len(self), np.int64)
        some = clicks > 0
        last[some] = rows[np.cumsum(clicks)[some] - 1] - self.start[:-1][some] + 1
        return last

    @property
    def place(self) -> npt.NDArray[np.int8]:
        """The place of each row relative to the last click of its page: NO_CLICK, BEFORE, AT or AFTER."""
        last, lengths = self.last_click, self.lengths
        some = last > 0
        stretches = np.where(some, 0, lengths), np.where(some, last - 1, 0), some, np.where(some, lengths - last, 0)
        values = np.tile(np.array([NO_CLICK, BEFORE, AT, AFTER], np.int8), len(self))
        return np.repeat(values, np.stack(stretches, axis=1).ravel())

    def some(self, which: Numbers | Flags) -> ResultPages:
        """Some of the pages, by number or as a mask; the pairs keep their numbers."""
        numbers = np.arange(len(self))[which]
        lengths = self.lengths[numbers]
        start = np.concatenate(([0], np.cumsum(lengths)))
        rows = np.arange(start[-1]) + np.repeat(self.start[:-1][numbers] - start[:-1], lengths)
        unit = None if self.unit is None else self.unit[numbers]
        variant = None if self.variant is None else self.variant[numbers]
        return replace(self, start=start, pair=self.pair[rows], clicked=self.clicked[rows], unit=unit, variant=variant)

    def with_clicks(self, clicked: Flags) -> ResultPages:
        """The same pages with other clicks."""
        return replace(self, clicked=clicked)


@dataclass(frozen=True, eq=False)
class ClickCounts:
    """Views and clicks by pair, rank, rank of the previous click (0: none) and place relative to the last click.

    >>> counts = ClickCounts.of(ResultPages.of([("q", ["a", "b"], [0, 1]), ("q", ["a", "b"], [0, 1])]))
    >>> counts.rank.tolist(), counts.place.tolist(), counts.views.tolist(), counts.clicks.tolist()
    ([1, 2], [1, 2], [2, 2], [0, 2])
    """

    pairs: QueryDocuments
    pages: int
    pair: Numbers
    rank: Numbers
    previous: Numbers
    place: Numbers
    views: Numbers
    clicks: Numbers
    knows_other_clicks: bool = True  # whether `previous` and `place` say anything

    @classmethod
    def of_ranks(
        cls, pairs: QueryDocuments, pair: Numbers, rank: Numbers, views: Numbers, clicks: Numbers
    ) -> ClickCounts:
        """Counts by pair and rank alone, as in a table of views and clicks; each page has one view of rank 1."""
        pages = int(views[rank == 1].sum())
        nowhere = np.zeros_like(rank)
        return cls(pairs, pages, pair, rank, nowhere, nowhere, views, clicks, knows_other_clicks=False)

    @classmethod
    def of(cls, pages: ResultPages, other_clicks: bool = True) -> ClickCounts:
        """The counts of these pages; without the other clicks of a page, by pair and rank alone."""
        rank = pages._rank(np.int32 if len(pages.pair) < 2**31 - 1 else np.int64)
        parts = (pages.pair, rank, *((pages.previous, pages.place) if other_clicks else ()))
        return cls._added(pages.pairs, len(pages), parts, None, pages.clicked)

    def plus(self, other: ClickCounts) -> ClickCounts:
        """The sum of two counts over the same pairs."""
        if self.knows_other_clicks != other.knows_other_clicks:
            raise DataError("counts with and without the other clicks of a page cannot be added")
        own, theirs = self._keys(), other._keys()
        keys = tuple(np.concatenate(both) for both in zip(own, theirs, strict=True))
        views, clicks = (np.concatenate(both) for both in ((self.views, other.views), (self.clicks, other.clicks)))
        pairs = self.pairs if len(self.pairs) >= len(other.pairs) else other.pairs
        return self._added(pairs, self.pages + other.pages, keys, views, clicks)

    def _keys(self) -> tuple[Numbers, ...]:
        return self.pair, self.rank, *((self.previous, self.place) if self.knows_other_clicks else ())

    @classmethod
    def _added(
        cls,
        pairs: QueryDocuments,
        pages: int,
        keys: Sequence[npt.NDArray[np.integer[Any]]],
        views: Numbers | None,
        clicks: Numbers | Flags,
    ) -> ClickCounts:
        """Rows with equal keys added up; `views` is None if each row is one view."""
        sizes = [int(key.max(initial=0)) + 1 for key in keys]
        cells = math.prod(sizes)
        code: npt.NDArray[Any] = keys[0].astype(np.int32 if cells < 2**31 else np.int64)
        for key, size in zip(keys[1:], sizes[1:], strict=True):
            code *= size
            code += key.astype(code.dtype, copy=False)
        if cells <= min(max(DENSE * len(code), SMALL), LARGE):  # a table of all cells is faster than sorting
            every_view, every_click = (_sums(code, each, cells) for each in (views, clicks))
            distinct = np.flatnonzero(every_view)
            own = every_view[distinct], every_click[distinct]
        else:
            distinct, inverse = np.unique(code, return_inverse=True)
            own = _sums(inverse, views, len(distinct)), _sums(inverse, clicks, len(distinct))
        values = []
        for size in reversed(sizes[1:]):
            distinct, value = np.divmod(distinct, size)
            values.append(value)
        rank, *others = reversed(values)
        nowhere = np.zeros_like(rank)
        previous, place = others or (nowhere, nowhere)
        return cls(pairs, pages, distinct, rank, previous, place, *own, knows_other_clicks=bool(others))

    def by(self, key: Numbers, size: int, which: Flags | None = None) -> tuple[Floats, Floats]:
        """The views and the clicks for each value of a key below `size`, of all cells or of some.

        >>> counts = ClickCounts.of(ResultPages.of([("q", ["a", "b"], [0, 1])]))
        >>> [each.tolist() for each in counts.by(counts.rank, 3)]
        [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
        """
        mask = slice(None) if which is None else which
        views, clicks = (
            np.bincount(key[mask], weights=each[mask], minlength=size).astype(np.float64)
            for each in (self.views, self.clicks)
        )
        return views, clicks


def as_counts(data: ClickCounts | ResultPages) -> ClickCounts:
    """The counts of pages; counts unchanged."""
    return ClickCounts.of(data) if isinstance(data, ResultPages) else data


def _sums(code: Numbers, weights: Numbers | Flags | None, size: int) -> Numbers:
    """The sums of whole numbers for each code below `size`; of flags, how many are set."""
    if weights is None:
        return np.bincount(code, minlength=size)
    if weights.dtype == np.bool_:
        return np.bincount(code[weights], minlength=size)
    return np.bincount(code, weights, size).astype(np.int64)
