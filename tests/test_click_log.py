"""Result pages read from an event log: what is joined, what is refused, and what is left out if reading is lenient.

The oracle of counts is a Python loop over the same pages.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import DataError
from cranfield.experiments.clicks import click_log
from cranfield.experiments.clicks.click_log import ClickLog, count_clicks, read_pages
from cranfield.experiments.clicks.result_pages import AFTER, AT, BEFORE, NO_CLICK, ClickCounts, ResultPages
from cranfield.experiments.event import UserEvent
from cranfield.experiments.log import EventLog
from hypotheses import examples

if TYPE_CHECKING:
    from pathlib import Path

    from cranfield.experiments.clicks.result_pages import QueryDocuments


@pytest.fixture
def log(tmp_path: Path) -> Any:
    """A function that makes a log of these events; each gets an id, a time and a unit."""

    def make(*events: dict[str, Any], name: str = "log", packed: bool = True) -> EventLog:
        log = EventLog(tmp_path / name, create=True)
        log.make()
        rows = [
            {"event_id": f"e{number}", "time": f"2026-03-01T00:00:{number:02}Z", "unit": "u", **event}
            for number, event in enumerate(events)
        ]
        log.append([UserEvent.of(row) for row in rows])
        log.seal()
        if packed:
            log.pack()
        return log

    return make


def impression(search: str, shown: list[str] | None, query: str | None = "q", **more: Any) -> dict[str, Any]:
    return {"kind": "impression", "search": search, "shown": shown, "query": query, **more}


def click(search: str, document: str, position: int | None = None, **more: Any) -> dict[str, Any]:
    return {"kind": "click", "search": search, "document": document, "position": position, **more}


def exposure(variant: str, unit: str = "u", experiment: str = "x", **more: Any) -> dict[str, Any]:
    return {"kind": "exposure", "experiment": experiment, "variant": variant, "unit": unit, **more}


def rows(pages: ResultPages) -> list[tuple[str, str, int]]:
    """Query, document, and 1 if it was clicked, for each row."""
    names = pages.pairs.names()
    return [(*names[pair], int(clicked)) for pair, clicked in zip(pages.pair, pages.clicked, strict=True)]


# what is joined


@pytest.mark.parametrize("packed", [True, False])
def test_pages_have_the_clicks_of_their_search(log, packed):
    events = [impression("s1", ["a", "b"]), impression("s2", ["b"], "r"), click("s1", "b", 2), click("s2", "b")]
    read = read_pages(log(*events, packed=packed))
    assert sorted(rows(read.pages)) == [("q", "a", 0), ("q", "b", 1), ("r", "b", 1)]
    assert read.pages.lengths.sum() == 3
    assert read.notes == []


def test_repeated_clicks_on_a_document_count_once(log):
    read = read_pages(log(impression("s", ["a", "b"]), *[click("s", "b", 2)] * 2, click("s", "b")))
    assert rows(read.pages) == [("q", "a", 0), ("q", "b", 1)]


def test_queries_that_differ_in_case_and_blanks_are_one(log):
    read = read_pages(log(impression("s1", ["a"], " Blue  Ray"), impression("s2", ["a"], "blue ray")))
    assert read.pages.pairs.queries == ("blue ray",)
    assert len(read.pages) == 2


def test_the_earliest_impression_with_documents_counts(log):
    late = impression("s", ["b", "a"], time="2026-03-02")
    read = read_pages(log(late, impression("s", None), impression("s", ["a", "b"]), click("s", "a", 1)))
    assert rows(read.pages) == [("q", "a", 1), ("q", "b", 0)]
    assert read.notes == ["left out: 1 impression; if a search has several, the earliest with documents counts"]


def test_documents_that_were_logged_one_by_one_are_a_page(log):
    single = [impression("s", None, document=name, position=rank) for name, rank in (("b", 2), ("a", 1), ("a", 1))]
    read = read_pages(log(*single, click("s", "b")))
    assert rows(read.pages) == [("q", "a", 0), ("q", "b", 1)]


def test_pages_have_the_numbers_of_their_units(log):
    read = read_pages(log(*[impression(f"s{i}", ["a"], unit=f"u{i % 2}") for i in range(4)]))
    assert [read.units[int(number)].as_py() for number in read.pages.unit] == ["u0", "u1", "u0", "u1"]


def test_pages_have_the_variant_of_their_unit_after_its_exposure(log):
    both = [exposure("A", "w"), exposure("B", "w")]
    pages = [impression(f"s{i}", ["a"], unit=unit) for i, unit in enumerate("uvw")]
    read = read_pages(log(impression("early", ["a"]), exposure("B"), *both, *pages))
    assert (read.pages.variants, read.experiment) == (("B",), "x")
    assert read.pages.variant.tolist() == [-1, 0, -1, -1]


def test_an_impression_may_name_its_own_variant(log):
    own = [impression(f"s{i}", ["a"], experiment="x", variant=variant) for i, variant in enumerate("BAB")]
    read = read_pages(log(*own))
    assert [read.pages.variants[number] for number in read.pages.variant] == ["B", "A", "B"]


def test_variants_of_one_of_several_experiments_must_be_asked_for_by_name(log):
    events = [exposure("A"), exposure("B", experiment="y"), impression("s", ["a"])]
    both = log(*events)
    read = read_pages(both)
    assert read.pages.variant is None
    assert read.notes == ["the log has 2 experiments (x, y); pages have variants only if you name one"]
    assert read_pages(both, experiment="y").pages.variants == ("B",)
    with pytest.raises(DataError, match="no exposures to experiment 'z'; there are x, y"):
        read_pages(both, experiment="z")


# what is refused

FAULTS = {
    "a click without an impression": (
        [click("lost", "b", 2)],
        "search 'lost' has a click on 'b', but no impression that says which documents it showed",
        "1 click without an impression",
    ),
    "a click on a document that was not shown": (
        [click("s", "c", 1)],
        "search 's' has a click on 'c', which its page did not show",
        "1 click on a document that its page did not show",
    ),
    "a position that contradicts the page": (
        [click("s", "b", 1)],
        "search 's' has a click on 'b' at position 1, but the page shows it at 2",
        "1 click at a position where its page shows another document",
    ),
    "a position beyond the page": (
        [click("s", "b", 11)],
        "search 's' has a click on 'b' at position 11, but the page shows it at 2",
        "1 click at a position where its page shows another document",
    ),
    "a document twice on a page": (
        [impression("t", ["a", "b", "a"])],
        "the impression of search 't' shows document 'a' twice",
        "1 page that shows a document twice",
    ),
    "an impression without a query": (
        [impression("t", ["a", "b"], None)],
        "the impression of search 't' has no query",
        "1 impression without a query",
    ),
    "a query of blanks": (
        [impression("t", ["a", "b"], "  ")],
        "the impression of search 't' has no query",
        "1 impression without a query",
    ),
    "positions with a hole": (
        [impression("t", None, document=name, position=rank) for name, rank in (("a", 1), ("b", 3))],
        "search 't' shows no document at position 2",
        "1 search whose positions have holes",
    ),
    "positions that begin below 1": (
        [impression("t", None, document="a", position=2)],
        "search 't' shows no document at position 1",
        "1 search whose positions have holes",
    ),
    "a list that begins below the top": (
        [impression("t", ["a", "b"], position=11)],
        "search 't' shows no document at position 1",
        "1 search whose positions have holes",
    ),
    "two documents at one position": (
        [impression("t", None, document=name, position=1) for name in "ab"],
        "search 't' shows 2 documents at position 1",
        "1 search whose positions have holes",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("read", [read_pages, count_clicks])
def test_a_fault_is_refused_with_its_search_or_left_out_and_counted(fault, read, log):
    events, problem, left_out = FAULTS[fault]
    bad = log(impression("s", ["a", "b"]), *events)
    with pytest.raises(DataError) as caught:
        read(bad)
    assert problem in str(caught.value)
    assert "--lenient leaves" in str(caught.value)
    answer = read(bad, lenient=True)
    assert answer.notes == [f"left out: {left_out}"]
    pages = rows(answer.pages) if isinstance(answer, ClickLog) else None
    assert pages in (None, [("q", "a", 0), ("q", "b", 0)])


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([], "the log is empty; cranfield online ingest adds events"),
        ([click("s", "a")], "expected impressions, found 1 event of other kinds"),
        ([impression("s", [])], "expected impressions with the documents shown, found none without a fault"),
        ([impression("s", None)], "expected impressions with the documents shown, found none without a fault"),
    ],
)
def test_a_log_without_pages_is_refused(events, problem, log):
    with pytest.raises(DataError) as caught:
        read_pages(log(*events))
    assert problem in str(caught.value)


def test_memory_that_is_no_size_is_refused(log):
    with pytest.raises(DataError, match="memory: expected a size such as 3GB, found 'much'"):
        read_pages(log(impression("s", ["a"])), memory="much")


# counts


def looped(sessions: list[tuple[str, list[str], list[int]]]) -> Counter[tuple[str, str, int, int, int, bool]]:
    """Views by query, document, rank, previous click, place and click, counted one by one."""
    counts: Counter[tuple[str, str, int, int, int, bool]] = Counter()
    for query, shown, clicks in sessions:
        last = max((rank for rank, each in enumerate(clicks, 1) if each), default=0)
        for rank, document in enumerate(shown, 1):
            previous = max((above for above in range(1, rank) if clicks[above - 1]), default=0)
            place = NO_CLICK if not last else BEFORE if rank < last else AT if rank == last else AFTER
            counts[query, document, rank, previous, place, bool(clicks[rank - 1])] += 1
    return counts


def as_counter(pairs: QueryDocuments, counts: ClickCounts) -> Counter[tuple[str, str, int, int, int, bool]]:
    answer: Counter[tuple[str, str, int, int, int, bool]] = Counter()
    names = pairs.names()
    parts = (counts.pair, counts.rank, counts.previous, counts.place, counts.views, counts.clicks)
    for pair, rank, previous, place, views, clicks in zip(*(part.tolist() for part in parts), strict=True):
        for clicked, number in ((True, clicks), (False, views - clicks)):
            if number:
                answer[*names[pair], rank, previous, place, clicked] += number
    return answer


PAGE = st.permutations(["a", "b", "c", "d", "e"]).flatmap(
    lambda order: st.integers(1, 5).flatmap(
        lambda size: st.tuples(
            st.sampled_from(["q", "r"]),
            st.just(order[:size]),
            st.lists(st.integers(0, 1), min_size=size, max_size=size),
        )
    )
)


@given(st.lists(PAGE, max_size=8))
@examples(100)
def test_counts_against_a_loop_over_pages(sessions):
    pages = ResultPages.of(sessions)
    counts = ClickCounts.of(pages)
    assert as_counter(pages.pairs, counts) == looped(sessions)
    half = len(sessions) // 2
    parts = ClickCounts.of(pages.some(np.arange(half))), ClickCounts.of(pages.some(np.arange(half, len(sessions))))
    assert as_counter(pages.pairs, parts[0].plus(parts[1])) == looped(sessions)
    assert parts[0].plus(parts[1]).pages == len(sessions)


def test_counts_of_many_cells_are_the_same_by_sorting(monkeypatch):
    pages = ResultPages.of([("q", ["a", "b", "c"], [1, 0, 1]), ("q", ["c", "a"], [0, 1])])
    table = ClickCounts.of(pages)
    monkeypatch.setattr("cranfield.experiments.clicks.result_pages.LARGE", 0)
    sorted_counts = ClickCounts.of(pages)
    for name in ("pair", "rank", "previous", "place", "views", "clicks"):
        assert getattr(table, name).tolist() == getattr(sorted_counts, name).tolist()


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_streamed_counts_against_the_counts_of_all_pages(batch, log, monkeypatch):
    monkeypatch.setattr(click_log, "BATCH", batch)
    monkeypatch.setattr(click_log, "AT_ONCE", 3)
    events = []
    for number, shown in enumerate((["c", "a"], ["a"], ["b", "c", "a"], ["d"], ["a", "c"])):
        events += [
            impression(f"s{number}", shown, f"query {number % 2}"),
            click(f"s{number}", "d" if number == 3 else "a"),
        ]
    whole = log(*events)
    pages, counts = read_pages(whole).pages, count_clicks(whole).counts
    assert pages.pairs.names() == counts.pairs.names() == sorted(pages.pairs.names())
    assert as_counter(counts.pairs, counts) == as_counter(pages.pairs, ClickCounts.of(pages))
    assert counts.pages == len(pages) == 5
    of_ranks = count_clicks(whole, other_clicks=False).counts
    assert (of_ranks.knows_other_clicks, counts.knows_other_clicks) == (False, True)
    for name, weights in (("views", of_ranks.views), ("clicks", of_ranks.clicks)):
        table, own = np.zeros((2, len(pages.pairs), 4), np.int64)
        np.add.at(own, (of_ranks.pair, of_ranks.rank), weights)
        np.add.at(table, (counts.pair, counts.rank), getattr(counts, name))
        assert own.tolist() == table.tolist()
