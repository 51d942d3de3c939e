"""The queries of a log with their searches and units: what topics are drawn from.

The log is an event log, a file of events in any format that `online ingest` reads, or a table of queries. DuckDB counts the
searches of an event log; a search is one result page of one unit. Spellings with the same normal form are one query. Queries
that look like personal data, or that few units searched for, are left out, and only their number is reported.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import BadLineError, DataError, FormatError
from cranfield.base.parameters import refuse_below, shortened, whole
from cranfield.experiments.ingest import ingest
from cranfield.experiments.log import EventLog, EventSource, connect, duckdb_in_words
from cranfield.formats.csv_tables import SeparatedValues, open_table
from cranfield.formats.event_files.format import event_format, imported
from cranfield.formats.query_text import normalised, personal_data
from cranfield.formats.topic_tables import TEXTS
from cranfield.pooling.topic_sampling import NO_QUERY, LeftOut, QueryTraffic, few_units

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.formats.csv_tables import TableRow

MIN_UNITS = 5
FREQUENCIES = ("frequency", "searches", "count", "freq", "volume", "n")  # columns of a table with a row for each query
COUNTS_OF_UNITS = ("units", "users", "clients", "sessions")
UNITS = (
    "unit",
    "user",
    "user_id",
    "client_id",
    "session",
    "session_id",
    "sess_id",
)  # of a table with a row for each search
MOST_SEARCHES = 10**15  # of one query: sums stay below 2^63
# A page without a query is counted, so that shares are of all searches; an event without its page is not a search.
SEARCHES = """
    CREATE OR REPLACE TEMP TABLE cranfield_searches AS
    SELECT unit, coalesce(arg_min(query, (time, event_id)), '') AS query
    FROM cranfield_events WHERE search IS NOT NULL GROUP BY unit, search
    HAVING count(query) > 0 OR bool_or(kind = 'impression')
"""
BY_FORM = """
    SELECT form, count(*), sum(n)::BIGINT, sum(n * n)::DOUBLE
    FROM (SELECT form, unit, count(*) AS n FROM cranfield_searches JOIN cranfield_forms USING (query) GROUP BY form, unit)
    GROUP BY form
"""


class FormCounts(NamedTuple):
    """The units of a query, its searches, and the sum of the squared searches of each unit."""

    units: int
    searches: int
    squares: float


@dataclass
class SpellingCounts:
    """The searches of each spelling, and what is known about the units of each normal form."""

    where: str
    spellings: dict[str, dict[str, int]] = field(default_factory=dict)  # normal form → spelling → searches
    forms: dict[str, FormCounts] | None = None  # None if nothing says who searched
    cells: dict[str, dict[str, str]] = field(default_factory=dict)  # spelling → the user's columns
    by_query: bool = False  # whether they come from a table with a row for each query

    def add(self, spelling: str, searches: int) -> None:
        """Count searches of a spelling; white space is squeezed."""
        squeezed = " ".join(spelling.split())
        of_form = self.spellings.setdefault(normalised(squeezed), {})
        of_form[squeezed] = of_form.get(squeezed, 0) + searches


def read_traffic(path: str, *, min_units: int | None = None) -> QueryTraffic:
    """The traffic of queries from an event log, a file of events, or a table of queries (from standard input as -).

    `min_units` is 5 by default, if the log says who searched; queries of fewer units are left out.
    """
    refuse_below(1, min_units=min_units)
    counts = _counts_in(path)
    if counts.forms is None and min_units is not None:
        columns = ", ".join(COUNTS_OF_UNITS if counts.by_query else UNITS)
        expected = f"expected a column of units ({columns}) for min_units={min_units}, found none"
        raise DataError(f"{path}: {expected}; add the column, or leave that out")
    return _frame(counts, None if counts.forms is None else min_units or MIN_UNITS)


def _counts_in(path: str) -> SpellingCounts:
    if os.path.isdir(path):
        with EventLog(path) as log:
            return counts_of_log(log, path)
    if path == "-":  # events are read in two passes
        return counts_of_table(path)
    try:
        event_format(path)
    except FormatError:
        return counts_of_table(path)
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder, EventLog(f"{folder}/log", create=True) as log:
        now = datetime.now(UTC)
        ingest(log, [path], now=now, time=now.isoformat())  # the time of sessions without times is not used here
        return counts_of_log(log, path)


# event logs


def counts_of_log(log: EventSource, where: str) -> SpellingCounts:
    """The searches of an event log by spelling and by unit, counted by DuckDB."""
    connection = connect()
    try:
        with duckdb_in_words(where, log.files()):
            log.relation(connection).create_view("cranfield_events", replace=True)
            connection.execute(SEARCHES)
            rows = connection.execute(
                "SELECT query, count(*) FROM cranfield_searches GROUP BY query ORDER BY query"
            ).fetchall()
        counts = SpellingCounts(where)
        for query, searches in rows:
            counts.add(query, searches)
        arrow = imported("pyarrow")
        forms = [normalised(query) for query, _ in rows]
        table = {"query": [query for query, _ in rows], "form": forms}
        connection.register(
            "cranfield_forms", arrow.table({name: arrow.array(texts, arrow.string()) for name, texts in table.items()})
        )
        with duckdb_in_words(where, log.files()):
            counts.forms = {form: FormCounts(*numbers) for form, *numbers in connection.execute(BY_FORM).fetchall()}
    finally:
        connection.close()
    if not counts.spellings:
        raise DataError(f"{where}: expected searches (events with search and query), found none")
    return counts


# tables of queries


def counts_of_table(path: str) -> SpellingCounts:
    """The searches in a table: a row for each query with its frequency, or a row for each search."""
    file = open_table(path)
    path = file.where
    table = SeparatedValues(bytes(file.buffer), path, _names_queries)
    names = [name.lower() for name in table.names]
    query = next((names.index(name) for name in TEXTS if name in names), None)
    if query is None:
        found = ", ".join(table.names)[:100] or "an empty file"
        raise DataError(f"{path}:1: expected a header with a column query (or {', '.join(TEXTS[2:7])}), found {found}")
    rows = list(_even_rows(table, path))
    if not rows:
        raise DataError(f"{path}: expected a row for each query or for each search, found none")
    frequency = next((names.index(name) for name in FREQUENCIES if name in names), None)
    if frequency is None:
        units = next((names.index(name) for name in UNITS if name in names), None)
        counts = _by_search(path, rows, query, units)
    else:
        units = next((names.index(name) for name in COUNTS_OF_UNITS if name in names), None)
        counts = _by_query(path, rows, query, frequency, units)
        others = [i for i in range(len(names)) if i not in (query, frequency, units)]
        for row in rows:
            counts.cells[" ".join(row.cells[query].split())] = {table.names[i]: row.cells[i] for i in others}
    table.report()
    return counts


def _names_queries(names: Sequence[str]) -> bool:
    return any(name.lower() in TEXTS for name in names)


def _even_rows(table: SeparatedValues, path: str) -> Iterable[TableRow]:
    for row in table:
        if len(row.cells) != len(table.names):
            raise BadLineError(path, row.line, f"expected {len(table.names)} columns, found {len(row.cells)}")
        yield row


def _by_search(path: str, rows: Sequence[TableRow], query: int, unit: int | None) -> SpellingCounts:
    counts = SpellingCounts(path)
    searches: Counter[tuple[str, str]] = Counter()  # of each normal form and unit
    for row in rows:
        counts.add(row.cells[query], 1)
        if unit is not None:
            searches[normalised(row.cells[query]), row.cells[unit]] += 1
    if unit is not None:
        totals: dict[str, list[int]] = {}
        for (form, _), number in searches.items():
            totals.setdefault(form, []).append(number)
        counts.forms = {
            form: FormCounts(len(each), sum(each), float(sum(n * n for n in each))) for form, each in totals.items()
        }
    return counts


def _by_query(path: str, rows: Sequence[TableRow], query: int, frequency: int, units: int | None) -> SpellingCounts:
    counts = SpellingCounts(path, by_query=True)
    lines: dict[str, int] = {}
    of_form: dict[str, int] = {}  # the units of the spelling with the most: those of several spellings may be the same
    for row in rows:
        spelling = " ".join(row.cells[query].split())
        if spelling in lines:
            problem = f"expected each query once, found {shortened(spelling)!r} here and in line {lines[spelling]}"
            raise BadLineError(path, row.line, f"{problem}; add their searches up")
        lines[spelling] = row.line
        searches = _count(path, row, frequency, "searches of the query")
        counts.add(spelling, searches)
        if units is not None:
            number = _count(path, row, units, "units")
            if number > searches:
                problem = f"expected at most as many units as searches ({searches:,}), found {number:,}"
                raise BadLineError(path, row.line, problem)
            form = normalised(spelling)
            of_form[form] = max(of_form.get(form, 0), number)
    if units is not None:
        totals = {form: sum(counts.spellings[form].values()) for form in of_form}
        # Without the searches of each unit, they are taken to be alike.
        counts.forms = {form: FormCounts(n, totals[form], totals[form] ** 2 / n) for form, n in of_form.items()}
    return counts


def _count(path: str, row: TableRow, column: int, what: str) -> int:
    typed = row.cells[column]
    try:
        number = whole(typed)
    except ValueError:
        number = 0
    if not 1 <= number <= MOST_SEARCHES:
        problem = f"expected the number of {what}, a whole number of 1 or more, found {shortened(typed)!r}"
        raise BadLineError(path, row.line, f"{problem}; leave queries without searches out")
    return number


# the frame


def _frame(counts: SpellingCounts, min_units: int | None) -> QueryTraffic:
    """The queries that topics may be drawn from, and what was left out."""
    left_out: dict[str, list[int]] = {}
    forms: list[str] = []
    others: dict[str, int] = {}
    totals = {form: sum(spellings.values()) for form, spellings in counts.spellings.items()}
    for form, searches in totals.items():
        reason = _reason(form, counts.forms, min_units)
        if reason is None:
            forms.append(form)
        else:
            left_out.setdefault(reason, []).append(searches)
            others[form] = searches
    gone = tuple(LeftOut(reason, len(each), sum(each)) for reason, each in sorted(left_out.items()))
    if not forms:
        why = "; ".join(f"{each.queries:,}: {each.reason}" for each in gone)
        advice = "; min_units=1 keeps the queries of single units" if min_units not in (None, 1) else ""
        raise DataError(f"{counts.where}: no query is left to draw from ({why}){advice}")
    forms.sort(key=lambda form: (-totals[form], form))
    spellings = {
        form: dict(sorted(counts.spellings[form].items(), key=lambda item: (-item[1], item[0]))) for form in forms
    }
    queries = tuple(next(iter(spellings[form])) for form in forms)
    return QueryTraffic(
        counts.where,
        tuple(forms),
        queries,
        np.array([totals[form] for form in forms], np.int64),
        {form: each for form, each in spellings.items() if len(each) > 1},
        _columns(queries, counts.cells),
        gone,
        min_units,
        _repeats(forms, counts.forms),
        others,
    )


def _reason(form: str, forms: Mapping[str, FormCounts] | None, min_units: int | None) -> str | None:
    """Why a query is left out; None if it stays."""
    if not form:
        return NO_QUERY
    kind = personal_data(form)
    if kind is not None:
        return f"the query looks like a {kind}"
    if forms is not None and min_units is not None and forms[form].units < min_units:
        return few_units(min_units)
    return None


def _columns(queries: Sequence[str], cells: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """The user's columns, with the values of the most frequent spelling."""
    names: Any = next(iter(cells.values()), {})
    return {name: [cells[query][name] for query in queries] for name in names}


def _repeats(forms: Sequence[str], counts: Mapping[str, FormCounts] | None) -> float:
    """The mean number of searches for the same query by the unit of a search."""
    if counts is None:
        return 1.0
    return sum(counts[form].squares for form in forms) / sum(counts[form].searches for form in forms)
