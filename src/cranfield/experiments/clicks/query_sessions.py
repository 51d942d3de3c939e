"""The sessions of each query: queries with too few of them say little about their documents.

A query with one session is refused by default. Its documents would get values that hardly differ from the start values, next to
values from thousands of sessions, and nobody would see the difference.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened

if TYPE_CHECKING:
    from cranfield.experiments.clicks.click_log import ClickLog, CountedClicks
    from cranfield.experiments.clicks.result_pages import ClickCounts, Flags, Numbers, QueryDocuments, ResultPages


def pages_of_queries(log: ClickLog, least: int | None) -> tuple[ResultPages, list[str]]:
    """The pages of queries with enough sessions, and the notes of the log; with no minimum, one session is an error."""
    pages = log.pages
    first = pages.start[:-1]
    query = pages.pairs.query[pages.pair[first]]
    enough, notes = _enough(pages.pairs, np.bincount(query, minlength=len(pages.pairs.queries)), least)
    return (pages if enough.all() else pages.some(enough[query])), [*log.notes, *notes]


def counts_of_queries(counted: CountedClicks, least: int | None) -> tuple[ClickCounts, list[str]]:
    """The same for counts; the sessions of a query are its views at the rank that has the most."""
    counts = counted.counts
    query = counts.pairs.query[counts.pair]
    ranks, rank = np.unique(counts.rank, return_inverse=True)
    size = len(counts.pairs.queries)
    views = np.bincount(query * len(ranks) + rank, counts.views, size * len(ranks)).reshape(size, -1)
    enough, notes = _enough(counts.pairs, views.max(axis=1).astype(np.int64), least)
    which = enough[query]
    names = ("pair", "rank", "previous", "place", "views", "clicks")
    some = {name: getattr(counts, name)[which] for name in names}
    pages = int(some["views"][some["rank"] == 1].sum())
    return replace(counts, pages=pages, **some), [*counted.notes, *notes]


def _enough(pairs: QueryDocuments, sessions: Numbers, least: int | None) -> tuple[Flags, list[str]]:
    """Whether each query has enough sessions, and a note about those that have not."""
    needed = 2 if least is None else least
    few = np.flatnonzero((sessions > 0) & (sessions < needed))
    if not len(few):
        return np.ones(len(sessions), np.bool_), []
    if least is None:
        more = f", and so have {len(few) - 1:,} more queries" if len(few) > 1 else ""
        raise DataError(
            f"query {shortened(pairs.queries[few[0]])!r} has one session{more}; --min-sessions 2 leaves such queries out, "
            "--min-sessions 1 accepts them"
        )
    if len(few) == (sessions > 0).sum():
        raise DataError(f"no query has {needed:,} sessions; the most are {sessions.max():,} (--min-sessions)")
    queries = "1 query" if len(few) == 1 else f"{len(few):,} queries"
    enough = np.ones(len(sessions), np.bool_)
    enough[few] = False
    return enough, [f"left out: {queries} with fewer than {needed:,} sessions ({sessions[few].sum():,} in all)"]
