"""Counts of views and clicks from a table: `query,document,rank,views,clicks`.

Many sites have such a table and no log. It does not say which clicks belong to one search, so only models that need nothing
else can be fitted to it: click-through and PBM. Rows of the same query, document and rank add up, as in daily tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.parameters import shortened, whole
from cranfield.experiments.clicks.click_log import CountedClicks
from cranfield.experiments.clicks.result_pages import ClickCounts, QueryDocuments
from cranfield.experiments.offline_agreement import utf8_lines
from cranfield.formats.csv_tables import rows_by_name
from cranfield.formats.query_text import normalised

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS = ("query", "document", "rank", "views", "clicks")
DEEPEST, MOST = 100_000, 10**12  # the largest rank, and the largest number of views
ADVICE = "cranfield online ingest makes a log of a file of events"


def read_counts(path: str) -> CountedClicks:
    """The counts in a CSV or TSV file; DataError with the line for numbers that cannot be counts."""
    lines = utf8_lines(path)
    if not lines:
        raise DataError(f"{path}: the file is empty; expected the columns {', '.join(COLUMNS)}")
    delimiter = "\t" if "\t" in lines[0] else ","
    lacking = [name for name in COLUMNS if name not in lines[0].split(delimiter)]
    if lacking:
        expected = f"expected a table with the columns {', '.join(COLUMNS)}; there is no {lacking[0]}"
        raise DataError(f"{path}:1: {expected} ({ADVICE})")
    sums: dict[tuple[str, str, int], tuple[int, int]] = {}
    repeats = 0
    for line, row in rows_by_name(lines, path, delimiter, COLUMNS):
        query, document = normalised(row["query"] or ""), (row["document"] or "").strip()
        if not query or not document:
            raise BadLineError(path, line, f"expected a query and a document, found {query!r} and {document!r}")
        rank = _number(path, line, row, "rank", 1, DEEPEST)
        views = _number(path, line, row, "views", 0, MOST)
        clicks = _number(path, line, row, "clicks", 0, MOST)
        if clicks > views:
            raise BadLineError(path, line, f"expected no more clicks than views, found {clicks:,} of {views:,}")
        key = query, document, rank
        repeats += key in sums
        before = sums.get(key, (0, 0))
        sums[key] = before[0] + views, before[1] + clicks
    if not any(views for views, _ in sums.values()):
        raise DataError(f"{path}: expected a row with views, found none")
    notes = [f"{repeats:,} rows repeat a query, document and rank; their counts are added up"] if repeats else []
    return CountedClicks(_as_counts(sums), notes)


def _number(path: str, line: int, row: Mapping[str, Any], name: str, least: int, most: int) -> int:
    typed = row[name] or ""
    try:
        number = whole(typed)
    except ValueError:
        raise BadLineError(path, line, f"expected a whole number as {name}, found {shortened(typed)!r}") from None
    if not least <= number <= most:
        raise BadLineError(path, line, f"expected {name} from {least} to {most:,}, found {shortened(typed)!r}")
    return number


def _as_counts(sums: Mapping[tuple[str, str, int], tuple[int, int]]) -> ClickCounts:
    keys = sorted(sums)
    queries = {text: number for number, text in enumerate(sorted({query for query, _, _ in keys}))}
    documents = {name: number for number, name in enumerate(sorted({document for _, document, _ in keys}))}
    numbers: dict[tuple[str, str], int] = {}
    pair = [numbers.setdefault((query, document), len(numbers)) for query, document, _ in keys]
    both = [(queries[query], documents[document]) for query, document in numbers]
    query, document = np.array(both, np.int64).T
    counts = np.array([(rank, *sums[query, document, rank]) for query, document, rank in keys], np.int64)
    pairs = QueryDocuments(tuple(queries), tuple(documents), query, document)
    return ClickCounts.of_ranks(pairs, np.array(pair, np.int64), *counts.T)
