"""The pages of a log with what is known of how they were chosen: the probabilities of the lists that it shows.

Without such probabilities nothing tells a document that nobody wants from one that nobody was shown. They come from an
attribute of the impressions, or from a declaration that the log was randomised: the documents of each page were
shuffled, or each search drew one of several lists (an A/B test), whose shares are then counted per query.
"""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import real, shortened
from cranfield.base.text_layout import counted
from cranfield.experiments.clicks.page_faults import (
    HOLES,
    MISPLACED,
    NO_QUERY,
    NOT_SHOWN,
    ORPHAN,
    TWICE,
    FaultCounter,
    PageFault,
    holes_problem,
    misplaced_problem,
    no_query_problem,
    not_shown_problem,
    orphan_problem,
    twice_problem,
)
from cranfield.experiments.clicks.result_pages import ResultPages
from cranfield.formats.event_files.logged_bandit import PROPENSITY
from cranfield.formats.query_text import normalised

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.result_pages import Numbers
    from cranfield.experiments.log import EventSource

BATCH = 10_000  # rows read at a time
UNLIKELY = 1e-6  # the chance of a log below which its propensities are wrong
LEAST = 1e-100  # a smaller probability counts as this
SHUFFLED, LISTS = "shuffled", "lists"
RANDOMISED = {
    SHUFFLED: "every order of a page's documents is equally likely",
    LISTS: "each search draws one of several lists, as in an A/B test; shares are counted per query",
}


class Impression(NamedTuple):
    """One result page of a log, and where it was read."""

    where: str
    unit: str
    search: str
    query: str
    shown: tuple[str, ...]
    position: int  # of the first document
    propensity: str | None
    alone: bool = False  # whether it is one document of its page, whose others have impressions of their own


class Click(NamedTuple):
    """A click of a log, and where it was read."""

    where: str
    search: str
    document: str
    position: int | None = None


@dataclass(frozen=True, eq=False)
class Probabilities:
    """How likely the log was to show what it shows; None if that is unknown.

    `whole` has the probability of each page's list, `above` of each row that the page begins with the documents down to
    this row, `at_rank` of each row that its document is at its rank. `counted` says that they are shares of the log itself.
    """

    words: str
    whole: Floats | None = None
    above: Floats | None = None
    at_rank: Floats | None = None
    counted: bool = False


@dataclass(frozen=True, eq=False)
class LoggedPages:
    """Result pages, the position of the first document of each, and what each page says of its propensity."""

    name: str
    pages: ResultPages
    first: Numbers
    propensity: tuple[tuple[float, ...], ...] | None = None  # of each page: one for the list, or one per document
    whole_length: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))  # before pages were cut
    notes: tuple[str, ...] = ()

    @cached_property
    def query(self) -> Numbers:
        """The number of each page's query."""
        pages = self.pages
        return np.asarray(pages.pairs.query[pages.pair[pages.start[:-1]]], np.int64)

    @property
    def queries(self) -> tuple[str, ...]:
        """The texts of all queries."""
        return self.pages.pairs.queries

    @cached_property
    def page(self) -> Numbers:
        """The number of the page that each row is on."""
        return self.pages.page

    @cached_property
    def rank(self) -> Numbers:
        """The rank of each row on its page, from 1."""
        return self.pages.rank

    @cached_property
    def position(self) -> Numbers:
        """The position of each row on the screen: its rank, unless the page begins further down."""
        return self.rank + self.first[self.page] - 1

    @cached_property
    def unit(self) -> Numbers:
        """The unit of each page; each page is its own unit if the log names none."""
        unit = self.pages.unit
        return np.arange(len(self.pages)) if unit is None else unit.astype(np.int64)

    @cached_property
    def clicks(self) -> Floats:
        """The number of clicks on each page."""
        return self.per_page(self.pages.clicked.astype(np.float64))

    @property
    def single(self) -> bool:
        """Whether every page shows one document."""
        return bool((self.pages.lengths == 1).all())

    @cached_property
    def pages_of_query(self) -> Numbers:
        """The number of pages of each query."""
        return np.bincount(self.query, minlength=len(self.queries))

    def per_page(self, values: Floats) -> Floats:
        """The sum of each page's rows."""
        return np.asarray(np.bincount(self.page, weights=values, minlength=len(self.pages)), np.float64)

    def some(self, which: Any) -> LoggedPages:
        """Some of the pages, by a mask; pairs and queries keep their numbers."""
        places = np.flatnonzero(which)
        propensity = None if self.propensity is None else tuple(self.propensity[i] for i in places.tolist())
        return replace(
            self,
            pages=self.pages.some(places),
            first=self.first[places],
            propensity=propensity,
            whole_length=self.whole_length[places],
        )

    def cut(self, depth: int) -> LoggedPages:
        """The first documents of each page, with the clicks on them."""
        keep = self.rank <= depth
        lengths = np.minimum(self.pages.lengths, depth)
        start = np.concatenate(([0], np.cumsum(lengths)))
        pages = replace(self.pages, start=start, pair=self.pages.pair[keep], clicked=self.pages.clicked[keep])
        return replace(self, pages=pages)

    @cached_property
    def beginnings(self) -> Numbers:
        """A number for each row, equal for pages of one query that begin with the same documents down to this row."""
        numbers, before = np.zeros(len(self.rank), np.int64), self.query.copy()
        for rank in range(1, int(self.rank.max(initial=0)) + 1):
            rows = np.flatnonzero(self.rank == rank)
            code = before[self.page[rows]] * len(self.pages.pairs) + self.pages.pair[rows]
            numbers[rows] = np.unique(code, return_inverse=True)[1]
            before[self.page[rows]] = numbers[rows]
        return numbers

    @cached_property
    def list_numbers(self) -> Numbers:
        """A number for each page, equal for pages of one query that show the same list."""
        last = self.beginnings[self.pages.start[1:] - 1]
        lengths = self.pages.lengths
        code = (lengths * (last.max(initial=0) + 1)) + last
        return np.asarray(np.unique(code, return_inverse=True)[1], np.int64)

    @cached_property
    def repeated_queries(self) -> int:
        """The number of queries with two pages or more."""
        return int((self.pages_of_query > 1).sum())

    @cached_property
    def varied_queries(self) -> int:
        """The number of queries that the log answers with two lists or more."""
        pairs = np.unique(np.stack((self.query, self.list_numbers)), axis=1)
        return int((np.bincount(pairs[0]) > 1).sum()) if len(self.pages) else 0

    # how likely the log was to show this

    def probabilities(self, randomised: str | None = None) -> Probabilities | None:
        """What is known of the randomisation of the log: declared, or by its propensities; None without either."""
        if randomised is not None:
            if randomised not in RANDOMISED:
                raise ConventionError(f"randomised: expected one of {', '.join(RANDOMISED)}, found {randomised!r}")
            self._refuse_single_lists(randomised)
            return self._shuffled() if randomised == SHUFFLED else self._shares()
        return None if self.propensity is None else self._stated()

    def _refuse_single_lists(self, randomised: str) -> None:
        """Raise DataError if the log shows one list for each query, so that it was not randomised."""
        if randomised == SHUFFLED and not (self.whole_length > 1).any():
            raise DataError(
                f"{self.name}: every page shows one document, so no page was shuffled; --propensity names the attribute with "
                "the probability of each"
            )
        if self.varied_queries or (randomised == SHUFFLED and not self.repeated_queries):
            return
        raise DataError(
            f"{self.name}: one list for each query ({len(np.unique(self.query)):,} in all), so a single ranker "
            f"made this log and it was not randomised ({randomised}); "
            "only the position-based estimator reads such a log, with --position-bias FILE"
        )

    def _refuse_unlikely(self, chances: list[float]) -> None:
        """Raise DataError if each query has one list, and the propensities say that chance hardly ever does that."""
        if self.varied_queries:
            return
        again = np.ones(len(chances), np.bool_)
        again[np.unique(self.query, return_index=True)[1]] = False
        if np.log(np.maximum(chances, LEAST))[again].sum() < math.log(UNLIKELY):
            raise DataError(
                f"{self.name}: one list for each query ({len(np.unique(self.query)):,} in all), which the propensities give a "
                f"chance below {UNLIKELY:g}; so a single ranker made this log and its propensities are wrong; "
                "only the position-based estimator reads such a log, with --position-bias FILE"
            )

    def _stated(self) -> Probabilities:
        stated = self.propensity or ()
        if all(set(each) == {1.0} for each in stated):
            raise DataError(
                f"{self.name}: every propensity is 1, so a single ranker made this log; "
                "only the position-based estimator reads such a log, with --position-bias FILE"
            )
        self._refuse_unlikely(
            [math.prod(each[:n]) for each, n in zip(stated, self.pages.lengths.tolist(), strict=True)]
        )
        words = "propensities of the log"
        if (self.whole_length == 1).all():
            single = np.array([each[0] for each in stated], np.float64)
            return Probabilities(words, single, single, single)
        if all(len(each) == n for each, n in zip(stated, self.whole_length.tolist(), strict=True)):
            above = np.concatenate([np.cumprod(each)[:n] for each, n in zip(stated, self.pages.lengths, strict=True)])
            return Probabilities(words, above[self.pages.start[1:] - 1], above)
        if (self.pages.lengths < self.whole_length).any():
            raise DataError(
                f"{self.name}: each page has one propensity, of its whole list, so pages cannot be cut; leave --depth out, "
                "or log a JSON list with the probability of each document after those above it"
            )
        return Probabilities(words, np.array([math.prod(each) for each in stated], np.float64))

    def _shuffled(self) -> Probabilities:
        length = self.whole_length[self.page]
        above = np.ones(len(length))
        for rank in range(1, int(self.rank.max(initial=0)) + 1):
            rows = np.flatnonzero(self.rank == rank)
            before = above[rows - 1] if rank > 1 else 1.0
            above[rows] = before / (length[rows] - rank + 1)
        return Probabilities("shuffled pages", above[self.pages.start[1:] - 1], above, 1.0 / length)

    def _shares(self) -> Probabilities:
        number = self.pages_of_query[self.query].astype(np.float64)
        of_row = number[self.page]

        def shares(codes: Numbers, of: Floats) -> Floats:
            return np.asarray(np.bincount(codes)[codes] / of, np.float64)

        above = np.zeros(len(of_row))
        for rank in range(1, int(self.rank.max(initial=0)) + 1):
            rows = np.flatnonzero(self.rank == rank)
            above[rows] = shares(self.beginnings[rows], of_row[rows])
        at_rank = self.pages.pair.astype(np.int64) * (int(self.rank.max(initial=0)) + 1) + self.rank
        at_rank = np.unique(at_rank, return_inverse=True)[1]
        whole = shares(self.list_numbers, number)
        return Probabilities("shares of lists", whole, above, shares(at_rank, of_row), counted=True)


# reading


def read_logged_pages(
    name: str,
    impressions: Iterable[Impression],
    clicks: Iterable[Click],
    *,
    attribute: str = PROPENSITY,
    needs_attribute: bool = False,
    lenient: bool = False,
) -> LoggedPages:
    """Pages with their clicks. `lenient` leaves out pages and clicks with a fault, and counts them."""
    faults = FaultCounter(lenient)
    shown, repeats, empty = _pages_by_search(impressions, faults)
    _refuse_lacking_queries(shown, faults)
    clicked: dict[str, set[str]] = {}
    for click in clicks:
        page = shown.get(click.search)
        if page is not None and not page.shown:  # a page that was left out takes its clicks along
            continue
        fault, problem = _fault(click, page)
        if fault is not None:
            faults.refuse(1, fault, f"{click.where}: {problem}")
        else:
            clicked.setdefault(click.search, set()).add(click.document)
    one_by_one = [each for each in shown.values() if each.shown]
    if not one_by_one:
        left_out = f", left out {', '.join(faults.left_out())}" if faults.faults else ""
        raise DataError(f"{name}: expected impressions with the documents that were shown, found none{left_out}")
    nothing: set[str] = set()
    pages = ResultPages.of(
        (normalised(each.query), each.shown, [document in clicked.get(each.search, nothing) for document in each.shown])
        for each in one_by_one
    )
    units = {unit: number for number, unit in enumerate(sorted({each.unit for each in one_by_one}))}
    unit = np.array([units[each.unit] for each in one_by_one], np.int32)
    notes = [
        f"{counted(number, what)} left out: {why}"
        for number, what, why in (
            (repeats, "impression", "the search had one before"),
            (empty, "impression", "no document is shown"),
        )
        if number
    ]
    notes += [f"left out: {each}" for each in faults.left_out()]
    first = np.array([each.position for each in one_by_one], np.int64)
    propensity = _propensities(one_by_one, attribute, needs_attribute)
    return LoggedPages(name, replace(pages, unit=unit), first, propensity, pages.lengths, tuple(notes))


def _pages_by_search(impressions: Iterable[Impression], faults: FaultCounter) -> tuple[dict[str, Impression], int, int]:
    """The page of each search, and the numbers of impressions left out: repeated ones, and ones without documents.

    A page with a fault that was left out has no documents.
    """
    shown: dict[str, Impression] = {}
    alone: dict[str, list[Impression]] = {}
    repeats = empty = 0
    for each in impressions:
        if each.alone:
            alone.setdefault(each.search, []).append(each)
            continue
        empty += not each.shown
        repeats += each.search in shown
        if each.shown and each.search not in shown:
            twice = len(set(each.shown)) < len(each.shown)
            if twice:
                faults.refuse(1, TWICE, f"{each.where}: {twice_problem(each.search, each.shown)}")
            shown[each.search] = each._replace(shown=()) if twice else each
    for search, documents in alone.items():
        if search in shown:
            repeats += len(documents)
        else:
            shown[search] = _assembled(documents, faults)
    return shown, repeats, empty


def _assembled(documents: list[Impression], faults: FaultCounter) -> Impression:
    """The page whose documents came one by one, each with its position; without documents if it was left out."""
    first, places = documents[0], sorted({(each.position, each.shown[0]) for each in documents})
    positions, shown = [place for place, _ in places], tuple(document for _, document in places)
    if positions != [*range(1, len(positions) + 1)]:
        faults.refuse(1, HOLES, f"{first.where}: {holes_problem(first.search, positions)}")
        shown = ()
    elif len(set(shown)) < len(shown):
        faults.refuse(1, TWICE, f"{first.where}: {twice_problem(first.search, shown)}")
        shown = ()
    if len({each.propensity for each in documents}) > 1:
        raise DataError(
            f"{first.where}: the impressions of search {shortened(first.search)!r} have different propensities; log one "
            "impression with `shown` and the probability of the page"
        )
    return first._replace(shown=shown, position=1)


def _refuse_lacking_queries(shown: dict[str, Impression], faults: FaultCounter) -> None:
    """Take the documents of pages without a query, if others have one: a log without any is one of a single question."""
    lacking = [each for each in shown.values() if not normalised(each.query)]
    if len(lacking) == len(shown):
        return
    for each in lacking:
        faults.refuse(1, NO_QUERY, f"{each.where}: {no_query_problem(each.search)}")
        shown[each.search] = each._replace(shown=())


def _fault(click: Click, page: Impression | None) -> tuple[PageFault | None, str]:
    """The fault of a click in words; None if it has none."""
    if page is None:
        return ORPHAN, orphan_problem(click.search, click.document)
    if click.document not in page.shown:
        return NOT_SHOWN, not_shown_problem(click.search, click.document)
    position = page.position + page.shown.index(click.document)
    if click.position is not None and click.position != position:
        return MISPLACED, misplaced_problem(click.search, click.document, click.position, position)
    return None, ""


def _propensities(pages: list[Impression], attribute: str, needed: bool) -> tuple[tuple[float, ...], ...] | None:
    """The propensities of all pages; None if no page has any."""
    lacking = [each for each in pages if each.propensity is None]
    if len(lacking) == len(pages):
        if needed:
            raise DataError(
                f"{pages[0].where}: no impression has the attribute {attribute!r}; --propensity names the attribute that "
                "holds the probability of the page, --randomised declares a randomised log"
            )
        return None
    if lacking:
        where = lacking[0].where
        raise DataError(
            f"{where}: no {attribute}, which other impressions have ({counted(len(lacking), 'page')} of {len(pages):,} "
            "without); take these pages out, or log the probability of every page"
        )
    return tuple(_propensity(each, attribute) for each in pages)


def _propensity(page: Impression, attribute: str) -> tuple[float, ...]:
    """The propensity of a list, or of each of its documents after those above it."""
    text = page.propensity or ""
    numbers: list[Any] = []
    try:
        numbers = [real(text)]
    except ValueError:
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
            numbers = value if isinstance(value, list) else []
    usual = all(isinstance(each, (int, float)) and not isinstance(each, bool) and 0 < each <= 1 for each in numbers)
    if not usual or not numbers:
        expected = f"expected a {attribute} above 0, up to 1"
        raise DataError(f"{page.where}: {expected}, found {shortened(text)!r}; correct the event or take its page out")
    if len(numbers) not in (1, len(page.shown)):
        expected = f"expected as {attribute} one number, or one for each of {len(page.shown)} documents"
        raise DataError(f"{page.where}: {expected}, found {len(numbers)}")
    return tuple(map(float, numbers))


def _impression(
    where: str,
    unit: str,
    search: str,
    query: str,
    shown: Sequence[str] | None,
    document: str | None,
    position: int | None,
    propensity: str | None,
) -> Impression:
    """An impression of a whole page, or of one document of it."""
    if not shown and document is not None and position is not None:
        return Impression(where, unit, search, query, (document,), position, propensity, alone=True)
    return Impression(where, unit, search, query, tuple(shown or ()), position or 1, propensity)


def pages_of_log(log: EventSource, name: str, attribute: str | None, lenient: bool) -> LoggedPages:
    """The pages of an event log."""
    from cranfield.experiments.log import connect, duckdb_in_words

    connection = connect()
    with duckdb_in_words(name, log.files()):
        log.relation(connection).create_view("cranfield_events", replace=True)
        clicks = connection.execute(
            "SELECT event_id, search, document, position FROM cranfield_events WHERE kind = 'click' ORDER BY time, event_id"
        ).fetchall()

    def where(event: str) -> str:
        return f"{name}: event {shortened(event)!r}"

    def impressions() -> Iterator[Impression]:
        with duckdb_in_words(name, log.files()):
            connection.execute(
                "SELECT event_id, unit, search, coalesce(query, ''), shown, document, position, attributes[?] "
                "FROM cranfield_events "
                "WHERE kind = 'impression' ORDER BY time, event_id",
                [attribute or PROPENSITY],
            )
        while True:
            with duckdb_in_words(name, log.files()):
                rows = connection.fetchmany(BATCH)
            if not rows:
                return
            for event, *rest in rows:
                yield _impression(where(event), *rest)

    return read_logged_pages(
        name,
        impressions(),
        (Click(where(event), *rest) for event, *rest in clicks),
        attribute=attribute or PROPENSITY,
        needs_attribute=attribute is not None,
        lenient=lenient,
    )


def pages_of_events(name: str, events: Iterator[tuple[int, Any]], attribute: str | None, lenient: bool) -> LoggedPages:
    """The pages of the events of a file, each with its line."""
    impressions: list[Impression] = []
    clicks: list[Click] = []
    for line, event in events:
        where = f"{name}:{line}"
        if event.kind == "impression":
            attributes: Mapping[str, str] = event.attributes or {}
            propensity = attributes.get(attribute or PROPENSITY)
            page = (
                event.unit,
                event.search,
                event.query or "",
                event.shown,
                event.document,
                event.position,
                propensity,
            )
            impressions.append(_impression(where, *page))
        elif event.kind == "click":
            clicks.append(Click(where, event.search, event.document, event.position))
    return read_logged_pages(
        name,
        impressions,
        clicks,
        attribute=attribute or PROPENSITY,
        needs_attribute=attribute is not None,
        lenient=lenient,
    )
