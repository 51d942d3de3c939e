"""The result pages of an event log: impressions joined with the clicks of their searches.

DuckDB joins, and the pages come back in batches of Arrow lists, whose texts become numbers without a Python loop over pages.
`read_pages` keeps all pages; `count_clicks` keeps only their counts, so its memory depends on the pairs of query and
document. Pairs are sorted by query and document, so that equal logs give equal numbers, in whatever order they were written.

A click without an impression, a click on a document that the page did not show, and a position that contradicts the page
would bias every model. Each is an error that names the search, or is left out and counted if reading is lenient.

Many sites have no log, but a table `query,document,rank,views,clicks`. It does not say which clicks belong to one search, so
only models that need nothing else can be fitted to it: click-through and PBM. Rows of the same query, document and rank add
up, as in daily tables.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.parameters import shortened, whole
from cranfield.base.text_layout import counted
from cranfield.experiments.clicks.page_faults import (
    HOLES,
    MISPLACED,
    NO_QUERY,
    NOT_SHOWN,
    ORPHAN,
    TWICE,
    FaultCounter,
    holes_problem,
    misplaced_problem,
    no_query_problem,
    not_shown_problem,
    orphan_problem,
    twice_problem,
)
from cranfield.experiments.clicks.result_pages import ClickCounts, QueryDocuments, ResultPages
from cranfield.experiments.log import connect, duckdb_in_words
from cranfield.experiments.metrics.plan_metrics import literal
from cranfield.experiments.offline_agreement import utf8_lines
from cranfield.formats.csv_tables import rows_by_name
from cranfield.formats.event_files.format import imported
from cranfield.formats.query_text import normalised

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from cranfield.experiments.clicks.result_pages import Flags, Numbers
    from cranfield.experiments.log import EventSource

BATCH = 100_000  # pages
AT_ONCE = 4_000_000  # rows of pages that are counted together; larger blocks take more memory and no less time
BITS = 32  # a pair's code is the number of its query, shifted by these, plus the number of its document


class ClickLog(NamedTuple):
    """The pages of a log, the ids of their units by number (an Arrow array), and notes on what was left out or decided."""

    pages: ResultPages
    notes: list[str]
    units: Any = None
    experiment: str | None = None  # the one that `pages.variant` belongs to
    searches: Any = None  # the id of each page's search (an Arrow array)


class CountedClicks(NamedTuple):
    """The counts of a log, and notes on what was left out or decided."""

    counts: ClickCounts
    notes: list[str]


def read_pages(
    log: EventSource, *, lenient: bool = False, memory: str | None = None, experiment: str | None = None
) -> ClickLog:
    """All result pages of a log, with units, and with the variants of an experiment: by default the log's only one.

    A page has a variant if its impression names one, or if its unit was exposed to one variant only, and before the page.
    """
    arrow = imported("pyarrow")
    reading = _Reading(lenient)
    with _opened(log, memory) as queries:
        experiment = _experiment(queries, experiment, reading)
        batches = list(_batches(queries, reading, experiment, units=True))
    every = _concatenated(batches)
    units = arrow.chunked_array([each.units for each in batches]).dictionary_encode().combine_chunks()
    variants = arrow.chunked_array([each.variants for each in batches]).dictionary_encode().combine_chunks()
    names, order = np.unique(np.array(variants.dictionary.to_pylist(), np.object_), return_inverse=True)
    variant = None
    if experiment is not None:
        index = variants.indices.fill_null(-1).to_numpy()
        variant = np.append(order, -1)[index].astype(np.int32)
    pages = ResultPages(
        reading.vocabulary.pairs(),
        every.start,
        reading.vocabulary.sorted_numbers()[every.pair],
        every.clicked,
        units.indices.to_numpy().astype(np.int32),
        variant,
        tuple(names.tolist()) if experiment is not None else (),
    )
    searches = arrow.chunked_array([each.searches for each in batches])
    return ClickLog(pages, reading.remarks(), units.dictionary, experiment, searches)


def count_clicks(
    log: EventSource, *, lenient: bool = False, memory: str | None = None, other_clicks: bool = True
) -> CountedClicks:
    """The counts of a log's result pages, read in one pass; memory is for pairs, not for pages.

    Without `other_clicks`, they are by pair and rank alone: fewer, and enough for some models.
    """
    reading = _Reading(lenient)
    counts: ClickCounts | None = None
    with _opened(log, memory) as queries:
        for batch in _joined(_batches(queries, reading)):
            pages = ResultPages(reading.vocabulary.unsorted_pairs(), batch.start, batch.pair, batch.clicked)
            own = ClickCounts.of(pages, other_clicks)
            counts = own if counts is None else counts.plus(own)
    assert counts is not None  # a log without pages is refused
    numbers = reading.vocabulary.sorted_numbers().astype(np.int64)
    counts = replace(counts, pairs=reading.vocabulary.pairs(), pair=numbers[counts.pair])
    return CountedClicks(counts, reading.remarks())


# numbers of texts


@dataclass
class _Numbering:
    """The numbers of distinct values, in the order in which the log shows them."""

    values: Any = None  # an Arrow array

    def __len__(self) -> int:
        return 0 if self.values is None else len(self.values)

    def numbers(self, values: Any) -> tuple[Numbers, Numbers]:
        """The number of each distinct value of an Arrow array, and for each value which of them it is; -1 for null."""
        arrow = imported("pyarrow")
        encoded = values.dictionary_encode()
        distinct = encoded.dictionary
        if self.values is None:
            self.values = distinct
        else:
            new = self.known(distinct) < 0
            if new.any():
                self.values = arrow.concat_arrays([self.values, distinct.filter(arrow.array(new))])
        return self.known(distinct), encoded.indices.fill_null(-1).to_numpy()

    def number(self, values: Any) -> Numbers:
        """The number of each value of an Arrow array without nulls."""
        numbers, which = self.numbers(values)
        return numbers[which]

    def known(self, values: Any) -> Numbers:
        """The number of each value; -1 if it has none yet."""
        if self.values is None:
            return np.full(len(values), -1)
        index = imported("pyarrow.compute").index_in(values, value_set=self.values)
        return np.asarray(index.fill_null(-1).to_numpy(), np.int64)


@dataclass
class _Vocabulary:
    """The numbers of queries, documents and pairs, in the order in which the log shows them."""

    typed: _Numbering = field(default_factory=_Numbering)  # queries as users typed them
    query_of: list[int] = field(default_factory=list)  # the number of each of these after normalisation
    queries: dict[str, int] = field(default_factory=dict)  # by normalised text
    documents: _Numbering = field(default_factory=_Numbering)
    codes: _Numbering = field(default_factory=_Numbering)

    def query_numbers(self, typed: Any) -> Numbers:
        """The number of the normalised query of each row; -1 if it has none."""
        numbers, which = self.typed.numbers(typed)
        for text in self.typed.values[len(self.query_of) :].to_pylist() if len(self.typed) else []:
            normal = normalised(text)
            self.query_of.append(self.queries.setdefault(normal, len(self.queries)) if normal else -1)
        return np.append(np.array(self.query_of, np.int64)[numbers], -1)[which]

    def pair_numbers(self, queries: Numbers, documents: Numbers) -> Any:
        """The number of each pair, from the numbers of its query and document."""
        return self.codes.number(imported("pyarrow").array((queries << BITS) | documents)).astype(np.int32)

    def _parts(self) -> tuple[Numbers, Numbers]:
        codes = np.zeros(0, np.int64) if self.codes.values is None else self.codes.values.to_numpy()
        return codes >> BITS, codes & ((1 << BITS) - 1)

    def unsorted_pairs(self) -> QueryDocuments:
        """The pairs by their numbers so far, without texts."""
        return QueryDocuments((), (), *self._parts())

    def _texts(self) -> tuple[list[str], list[str]]:
        """The queries and the documents by number."""
        return list(self.queries), [] if self.documents.values is None else self.documents.values.to_pylist()

    def _ranks(self) -> tuple[Numbers, Numbers]:
        """The numbers of queries and documents in the order of their texts."""
        queries, documents = self._texts()
        return _places(queries), _places(documents)

    def _order(self) -> Numbers:
        (queries, documents), (query, document) = self._ranks(), self._parts()
        return np.lexsort((documents[document], queries[query]))

    def sorted_numbers(self) -> Any:
        """The number of each pair when pairs are sorted by query and document."""
        order = self._order()
        numbers = np.empty(len(order), np.int32)
        numbers[order] = np.arange(len(order))
        return numbers

    def pairs(self) -> QueryDocuments:
        """The pairs, sorted by query and document."""
        (queries, documents), (query, document) = self._ranks(), self._parts()
        order = self._order()
        query_texts, document_ids = (tuple(sorted(each)) for each in self._texts())
        return QueryDocuments(query_texts, document_ids, queries[query][order], documents[document][order])


def _places(texts: Sequence[str]) -> Numbers:
    """The place of each text when they are sorted."""
    places = np.empty(len(texts), np.int64)
    places[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return places


# batches of pages


class _Batch(NamedTuple):
    """Some pages, with the numbers of their pairs."""

    start: Numbers
    pair: Any
    clicked: Flags
    units: Any = None
    variants: Any = None
    searches: Any = None


def _concatenated(batches: Sequence[_Batch]) -> _Batch:
    """Batches as one, without units, variants and searches."""
    lengths = np.concatenate([np.diff(each.start) for each in batches])
    pair, clicked = (np.concatenate([each[place] for each in batches]) for place in (1, 2))
    return _Batch(np.concatenate(([0], np.cumsum(lengths))), pair, clicked)


def _joined(batches: Iterator[_Batch]) -> Iterator[_Batch]:
    """Batches joined to fewer of more rows."""
    group: list[_Batch] = []
    for batch in batches:
        group.append(batch)
        if sum(len(each.pair) for each in group) >= AT_ONCE:
            yield _concatenated(group)
            group = []
    if group:
        yield _concatenated(group)


@dataclass
class _Reading(FaultCounter):
    """What a reading has seen: the faults that were left out, the vocabulary, and notes."""

    vocabulary: _Vocabulary = field(default_factory=_Vocabulary)
    notes: list[str] = field(default_factory=list)

    def remarks(self) -> list[str]:
        """The notes, then the number of faults of each kind."""
        return [*self.notes, *(f"left out: {each}" for each in self.left_out())]


def _batches(
    queries: _Queries, reading: _Reading, experiment: str | None = None, units: bool = False
) -> Iterator[_Batch]:
    """The pages of the log, in batches."""
    queries.check(reading)
    pages = 0
    for rows in queries.stream(experiment, units):
        batch = _page_batch(rows, reading)
        pages += len(batch.start) - 1
        yield batch
    if not pages:
        left_out = f", left out {', '.join(reading.left_out())}" if reading.faults else ""
        problem = "expected impressions with the documents shown, found none without a fault"
        raise DataError(f"{queries.where}: {problem}{left_out}")


def _page_batch(rows: Any, reading: _Reading) -> _Batch:
    """The pages of an Arrow batch: their documents as numbers, and which were clicked."""
    rows = _with_impressions(rows, reading)
    query, usable = _query_numbers(rows, reading)
    start, document = _document_numbers(rows.column("shown"), reading.vocabulary.documents)
    usable &= _without_duplicates(rows, start, document, reading)
    if not usable.all():
        rows, query = rows.filter(imported("pyarrow").array(usable)), query[usable]
        start, document = _document_numbers(rows.column("shown"), reading.vocabulary.documents)
    clicked = _clicked(rows, start, document, reading)
    pair = reading.vocabulary.pair_numbers(np.repeat(query, np.diff(start)), document)
    return _Batch(start, pair, clicked, rows.column("unit"), rows.column("variant"), rows.column("search"))


def _with_impressions(rows: Any, reading: _Reading) -> Any:
    """The rows that have an impression; clicks of the others are a fault."""
    lacking = rows.column("shown").is_null()
    if lacking.true_count:
        orphans = rows.filter(lacking)
        first = orphans.slice(0, 1).to_pylist()[0]
        clicks = sum(len(each) for each in orphans.column("documents").to_pylist())
        reading.refuse(clicks, ORPHAN, orphan_problem(first["search"], first["documents"][0]))
        rows = rows.filter(rows.column("shown").is_valid())
    return rows


def _query_numbers(rows: Any, reading: _Reading) -> tuple[Numbers, Flags]:
    """The number of each page's normalised query, and whether it has one."""
    query = reading.vocabulary.query_numbers(rows.column("query"))
    usable = np.asarray(query >= 0)
    if not usable.all():
        search = rows.column("search")[int(np.argmin(usable))].as_py()
        reading.refuse(int((~usable).sum()), NO_QUERY, no_query_problem(search))
    return query, usable


def _document_numbers(lists: Any, known: _Numbering) -> tuple[Numbers, Numbers]:
    """Where each list starts, and the number of each document."""
    lengths = lists.value_lengths().to_numpy().astype(np.int64)
    return np.concatenate(([0], np.cumsum(lengths))), known.number(lists.flatten())


def _without_duplicates(rows: Any, start: Numbers, document: Numbers, reading: _Reading) -> Flags:
    """Whether each page shows every document once."""
    usable, lengths = np.ones(len(start) - 1, np.bool_), np.diff(start)
    for length in np.unique(lengths):
        own = np.flatnonzero(lengths == length)
        table = document[start[own][:, None] + np.arange(length)].astype(np.int32)
        table.sort(axis=1)
        usable[own] = ~(table[:, 1:] == table[:, :-1]).any(axis=1)
    if not usable.all():
        first = int(np.argmin(usable))
        problem = twice_problem(rows.column("search")[first].as_py(), rows.column("shown")[first].as_py())
        reading.refuse(int((~usable).sum()), TWICE, problem)
    return usable


def _clicked(rows: Any, start: Numbers, document: Numbers, reading: _Reading) -> Flags:
    """Whether each row of the pages was clicked, checked against documents and positions of the clicks."""
    clicked = np.zeros(len(document), np.bool_)
    lists = rows.column("documents")
    number = lists.value_lengths().fill_null(0).to_numpy().astype(np.int64)
    page = np.repeat(np.arange(len(number)), number)
    if not len(page):
        return clicked
    encoded = lists.flatten().dictionary_encode()
    wanted = reading.vocabulary.documents.known(encoded.dictionary)[encoded.indices.to_numpy()]
    position = rows.column("positions").flatten().fill_null(0).to_numpy().astype(np.int64)
    first, length = start[page], np.diff(start)[page]
    within = (position >= 1) & (position <= length)
    row = np.where(within, first + position - 1, -1)
    right = within & (document[row] == wanted)
    row[~right] = -1
    lost = np.flatnonzero(~right)
    row[lost] = _row_of(first[lost], length[lost], document, wanted[lost])
    absent, contradicted = row < 0, (row >= 0) & ~right & (position > 0)
    for fault, which in ((NOT_SHOWN, absent), (MISPLACED, contradicted)):
        if which.any():
            at = int(np.argmax(which))
            search, name = rows.column("search")[int(page[at])].as_py(), lists.flatten()[at].as_py()
            problem = (
                not_shown_problem(search, name)
                if fault is NOT_SHOWN
                else misplaced_problem(search, name, int(position[at]), int(row[at] - first[at]) + 1)
            )
            reading.refuse(int(which.sum()), fault, problem)
    clicked[row[~(absent | contradicted)]] = True
    return clicked


def _row_of(first: Numbers, length: Numbers, document: Numbers, wanted: Numbers) -> Numbers:
    """The row of each wanted document within the rows of its page; -1 if the page does not have it."""
    each = np.repeat(np.arange(len(first)), length)
    rows = np.arange(len(each)) - np.repeat(np.cumsum(length) - length, length) + first[each]
    same = document[rows] == wanted[each]
    answer = np.full(len(first), -1, np.int64)
    answer[each[same]] = rows[same]
    return answer


# queries


@dataclass
class _Queries:
    """A connection to a log, and the SQL of its pages and clicks."""

    connection: DuckDBPyConnection
    log: EventSource
    where: str

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query; DataError if DuckDB cannot compute it."""
        with duckdb_in_words(self.where, self.log.files()):
            return self.connection.execute(query, list(values)).fetchall()

    def check(self, reading: _Reading) -> None:
        """Make the view cranfield_pages: for each search its earliest impression with documents. Refuse empty logs."""
        events, impressions = self.rows("SELECT count(*), count(*) FILTER (kind = 'impression') FROM cranfield_events")[
            0
        ]
        if not events:
            raise DataError(f"{self.where}: the log is empty; cranfield online ingest adds events")
        if not impressions:
            advice = "log an impression with the documents shown for every search"
            raise DataError(
                f"{self.where}: expected impressions, found {counted(events, 'event')} of other kinds; {advice}"
            )
        self.connection.execute(f"CREATE TEMP VIEW cranfield_lists AS {LISTS}")
        singles, later = "document IS NOT NULL AND position IS NOT NULL", "len(shown) > 0 AND position > 1"
        count = f"count(*) FILTER ({singles}), count(*) FILTER ({later}), min(search) FILTER ({later})"
        single, below, search = self.rows(f"SELECT {count} FROM cranfield_events WHERE kind = 'impression'")[0]
        if below:  # the second page of a search, or a document in the middle of a page: its ranks are not 1, 2, …
            first = self.rows(f"SELECT min(position) FROM cranfield_events WHERE search = ? AND {later}", search)[0][0]
            reading.refuse(below, HOLES, holes_problem(search, [first]))
        if single:
            self._refuse_holes(reading)
            self.connection.execute(f"CREATE OR REPLACE TEMP VIEW cranfield_lists AS {LISTS} UNION ALL {ASSEMBLED}")
        earliest, one_each = "", "SELECT count(*), count(DISTINCT search) FROM"
        every, searches = self.rows(f"{one_each} cranfield_events WHERE kind = 'impression'")[0]
        if every > searches:  # only then are the lists themselves looked at
            lists, searches = self.rows(f"{one_each} cranfield_lists")[0]
            if lists > searches:
                earliest = " QUALIFY row_number() OVER (PARTITION BY search ORDER BY time, event_id) = 1"
                several = "if a search has several, the earliest with documents counts"
                reading.notes.append(f"left out: {counted(lists - searches, 'impression')}; {several}")
        self.connection.execute(f"CREATE TEMP VIEW cranfield_pages AS SELECT * FROM cranfield_lists{earliest}")

    def _refuse_holes(self, reading: _Reading) -> None:
        """Refuse searches whose documents came one by one at positions with holes; leave them out if lenient."""
        bad = self.rows(f"SELECT search, positions FROM ({POSITIONS}) WHERE NOT {WHOLE} ORDER BY search")
        if bad:
            reading.refuse(len(bad), HOLES, holes_problem(*bad[0]))

    def experiments(self) -> list[str]:
        """The experiments of exposures and impressions."""
        named = "SELECT DISTINCT experiment FROM cranfield_events WHERE kind IN ('exposure', 'impression')"
        return [name for (name,) in self.rows(f"{named} AND experiment IS NOT NULL AND variant IS NOT NULL ORDER BY 1")]

    def stream(self, experiment: str | None, units: bool) -> Iterator[Any]:
        """Arrow batches of pages with their clicks; clicks without a page have no `shown`. Units may be left out."""
        # DuckDB joins texts twice as fast as it makes lists; no id contains the separator.
        clicks = (
            f"SELECT search, string_agg(document, {SEPARATOR}) AS documents, "
            f"string_agg(coalesce(position, 0)::VARCHAR, {SEPARATOR}) AS positions FROM cranfield_events "
            "WHERE kind = 'click' GROUP BY search"
        )
        variant, joined = "NULL::VARCHAR", ""
        if experiment is not None:
            self.connection.execute(
                f"CREATE OR REPLACE TEMP VIEW cranfield_exposed AS {EXPOSED} {literal(experiment)} GROUP BY unit"
            )
            joined = " LEFT JOIN cranfield_exposed AS x ON p.unit = x.unit"
            variant = (
                f"CASE WHEN p.experiment = {literal(experiment)} AND p.variant IS NOT NULL THEN p.variant "
                "WHEN x.variants = 1 AND p.time >= x.first THEN x.variant END"
            )
        unit = "p.unit" if units else "NULL"
        query = (
            f"SELECT coalesce(p.search, c.search) AS search, {unit} AS unit, p.query, p.shown, {variant} AS variant, "
            f"c.documents, c.positions FROM cranfield_pages AS p{joined} FULL JOIN ({clicks}) AS c ON p.search = c.search"
        )
        with duckdb_in_words(self.where, self.log.files()):
            for batch in self.connection.sql(query).to_arrow_reader(BATCH):
                yield _with_lists(batch)


def _with_lists(batch: Any) -> Any:
    """A batch whose clicks are lists again."""
    arrow, compute = imported("pyarrow"), imported("pyarrow.compute")
    columns = {name: batch.column(name) for name in batch.schema.names}
    documents, positions = (compute.split_pattern(columns[name], "\0") for name in ("documents", "positions"))
    columns |= {"documents": documents, "positions": positions.cast(arrow.list_(arrow.int32()))}
    return arrow.RecordBatch.from_pydict(columns)


SEPARATOR = "chr(0)"  # events reject it in texts
LISTS = (
    "SELECT event_id, search, unit, query, shown, experiment, variant, time FROM cranfield_events "
    "WHERE kind = 'impression' AND len(shown) > 0 AND coalesce(position, 1) = 1"
)
ONE_BY_ONE = (  # an impression of a single document
    "kind = 'impression' AND coalesce(len(shown), 0) = 0 AND document IS NOT NULL AND position IS NOT NULL"
)
POSITIONS = (
    "SELECT min(event_id) AS event_id, search, arg_min(unit, time) AS unit, arg_min(query, time) AS query, "
    "list(document ORDER BY position) AS shown, arg_min(experiment, time) AS experiment, "
    "arg_min(variant, time) AS variant, min(time) AS time, list(position) AS positions FROM (SELECT min(event_id) AS "
    "event_id, min(time) AS time, search, min(unit) AS unit, min(query) AS query, min(experiment) AS experiment, "
    f"min(variant) AS variant, document, position FROM cranfield_events WHERE {ONE_BY_ONE} "
    "GROUP BY search, document, position) GROUP BY search"
)
WHOLE = "(list_min(positions) = 1 AND list_max(positions) = len(positions) AND list_unique(positions) = len(positions))"
ASSEMBLED = f"SELECT * EXCLUDE positions FROM ({POSITIONS}) WHERE {WHOLE}"
EXPOSED = (
    "SELECT unit, min(time) AS first, arg_min(variant, time) AS variant, count(DISTINCT variant) AS variants "
    "FROM cranfield_events WHERE kind = 'exposure' AND experiment ="
)


def _experiment(queries: _Queries, experiment: str | None, reading: _Reading) -> str | None:
    """The experiment whose variants the pages get: the named one, or the only one; otherwise None."""
    names = queries.experiments()
    if experiment is not None and experiment not in names:
        there = f"there are {', '.join(map(shortened, names))}" if names else "there is none"
        raise DataError(f"{queries.where}: no exposures to experiment {shortened(experiment)!r}; {there}")
    if experiment is None and len(names) > 1:
        named = ", ".join(map(shortened, names))
        reading.notes.append(
            f"the log has {len(names)} experiments ({named}); pages have variants only if you name one"
        )
    return experiment if experiment is not None else names[0] if len(names) == 1 else None


@contextmanager
def _opened(log: EventSource, memory: str | None) -> Iterator[_Queries]:
    """A connection with the events of a log as cranfield_events. One thread reads, so that the order never changes."""
    where = str(getattr(log, "folder", "the log"))
    with tempfile.TemporaryDirectory(prefix="cranfield-") as spill:
        connection = connect()
        try:
            connection.execute(f"SET temp_directory = {literal(spill)}")
            connection.execute("SET threads = 1")
            if memory is not None:
                try:
                    connection.execute(f"SET memory_limit = {literal(memory)}")
                except (imported("duckdb").Error, RuntimeError) as error:  # std::bad_cast, for a lone surrogate
                    problem = str(error).splitlines()[0]
                    raise DataError(f"memory: expected a size such as 3GB, found {memory!r} ({problem})") from None
            with duckdb_in_words(where, log.files()):
                log.relation(connection).create_view("cranfield_events", replace=True)
            yield _Queries(connection, log, where)
        finally:
            connection.close()


# tables of counts

COLUMNS = ("query", "document", "rank", "views", "clicks")
LARGEST_RANK, MOST_VIEWS = 100_000, 10**12  # the largest rank, and the largest number of views
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
        rank = _number(path, line, row, "rank", 1, LARGEST_RANK)
        views = _number(path, line, row, "views", 0, MOST_VIEWS)
        clicks = _number(path, line, row, "clicks", 0, MOST_VIEWS)
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
