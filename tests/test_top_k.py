"""The tops of several runs side by side: what both fusion and pools read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Run
from cranfield.base.errors import DataError, DuplicateError
from cranfield.base.kernels import Order, Strings, decode
from cranfield.base.top_k import Tops, tops
from cranfield.formats import as_runs

IDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12)
RUN = st.dictionaries(st.sampled_from("pq"), st.dictionaries(IDS, st.integers(0, 3).map(float), max_size=8), min_size=1)
ORDERS = [
    Order(),
    Order(ties="ascending"),
    Order(ties="input"),
    Order(single=True),
    Order(collapse=b"a"),
    Order(drop_self=True),
]


def lists(found: Tops) -> dict[tuple[str, str], list[tuple[str, float]]]:
    """Each run's documents and scores for each topic, in the order of their ranks."""
    answer: dict[tuple[str, str], list[tuple[str, float]]] = {}
    rows = zip(found.run, found.topic, found.entry, found.rank, found.score, strict=True)
    for run, topic, entry, rank, score in rows:
        assert found.home[entry] == topic
        mine = answer.setdefault((found.names[run], decode(found.topics[int(topic)])), [])
        mine.append((decode(found.documents[int(entry)]), float(score)))
        assert rank == len(mine)
    return answer


@pytest.mark.parametrize("order", ORDERS)
@given(runs=st.lists(RUN, min_size=1, max_size=4), depth=st.sampled_from([1, 2, 5, None]))
def test_every_list_is_what_the_run_itself_ranks_first(order: Order, runs: list, depth: int | None) -> None:
    named = {f"run{i}": Run(run, f"run{i}") for i, run in enumerate(runs)}
    expected = {
        (name, topic): ranking
        for name, run in named.items()
        for topic in run.topics
        if (ranking := run.ranking(topic, order)[:depth])
    }
    assert lists(tops(named.values(), depth, order=order)) == expected


@given(runs=st.lists(RUN, min_size=1, max_size=4))
def test_a_document_of_a_topic_is_one_entry_whoever_returned_it(runs: list) -> None:
    found = tops([Run(run) for run in runs])
    entries = [(int(t), document) for t, document in zip(found.home, found.documents, strict=True)]
    pairs = {(topic, document) for run in runs for topic, documents in run.items() for document in documents}
    assert len(entries) == len(set(entries)) == len(pairs)
    assert entries == sorted(entries, key=lambda entry: entry[0])


def test_a_run_may_have_a_depth_of_its_own() -> None:
    runs = [Run({"q": {"a": 3.0, "b": 2.0}}, "one"), Run({"q": {"c": 3.0, "d": 2.0}}, "two")]
    assert sorted(tops(runs, 1, {"two": 2}).documents) == [b"a", b"c", b"d"]


def test_a_document_that_stands_twice_is_named_with_its_line() -> None:
    with pytest.raises(DuplicateError, match=r":3: document 'd' occurs twice for topic 'q'"):
        tops(as_runs(b"q Q0 d 1 3 t\nq Q0 e 2 2 t\nq Q0 d 3 1 t\n"))
    assert (
        len(tops(as_runs(b"q Q0 d 1 3 t\nq Q0 e 2 2 t\nq Q0 d 3 1 t\n"), 2).rank) == 2
    )  # below the depth it is not read


@pytest.mark.parametrize("twice", ["first", "last", "best"])
def test_of_duplicates_the_one_stays_that_the_order_says_against_single_runs(twice: str) -> None:
    [run] = as_runs(b"q Q0 d 1 1 t\nq Q0 e 2 2 t\nq Q0 d 3 3 t\nq Q0 d 4 2.5 t\np Q0 d 1 1 t\n")
    order = Order(duplicates=twice)
    assert lists(tops([run], order=order)) == {(run.name, topic): run.ranking(topic, order) for topic in "qp"}


def test_leaving_out_a_topic_s_own_document_lets_no_other_stand_twice() -> None:
    run = b"q Q0 q 1 3 t\nq Q0 d 2 2 t\nq Q0 d 3 1 t\n"
    with pytest.raises(DuplicateError, match=r":3: document 'd' occurs twice for topic 'q'"):
        tops(as_runs(run), order=Order(drop_self=True))


def test_no_run_at_all_is_refused() -> None:
    with pytest.raises(DataError, match="no run given"):
        tops([])


def test_a_column_of_strings_is_taken_apart_and_joined_against_lists() -> None:
    words = [b"", b"a", b"\xff\xfe", b"longer than eight bytes", b"a"]
    column = Strings.of(words)
    assert list(column.take(np.array([3, 0, 1, 3]))) == [words[i] for i in (3, 0, 1, 3)]
    assert list(Strings.concatenated([column, column.take(np.array([], int)), column])) == words * 2
