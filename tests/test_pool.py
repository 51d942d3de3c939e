"""Pools: which documents, in which order, before whom."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Run
from cranfield.base.errors import ConventionError, DataError
from cranfield.base.kernels import Order
from cranfield.formats import as_runs
from cranfield.formats.label_files import Judgment
from cranfield.formats.pool_files import pool_lines, read_pool
from cranfield.pooling.pool import pool, session, tiers_of
from cranfield.pooling.strategy import rankings, statistics
from hypotheses import examples

if TYPE_CHECKING:
    from pathlib import Path

RUNS = {
    "one": {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"x": 1.0}},
    "two": {"q1": {"d": 9.0, "a": 8.0, "b": 7.0}},
}
RUN = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3).map(float), min_size=1)
ANY_RUNS = st.lists(st.dictionaries(st.sampled_from(["q1", "q2"]), RUN, min_size=1), min_size=1, max_size=4)


def named(runs: list[dict[str, dict[str, float]]]) -> list[Run]:
    return [Run(run, f"run{i}") for i, run in enumerate(runs)]


def test_a_depth_pool_is_the_union_of_the_tops() -> None:
    made = pool(RUNS, depth=2, order="priority")
    assert {topic: set(made[topic]) for topic in made.topics} == {"q1": {"a", "b", "d"}, "q2": {"x"}}
    item = next(item for item in made if item.document == "a")
    assert (item.rank, item.runs, item.probability) == (1, ("one", "two"), 1.0)


@given(runs=ANY_RUNS, depth=st.integers(1, 9))
def test_the_lectures_bounds_hold_for_every_topic_against_the_lecture(
    runs: list[dict[str, dict[str, float]]], depth: int
) -> None:
    found = rankings(named(runs), depth)
    for topic, candidates in found.candidates.items():
        returned = [min(depth, len(run[topic])) for run in runs if topic in run]
        assert max(returned) <= len(candidates) <= sum(returned) <= len(runs) * depth


@given(runs=ANY_RUNS, depth=st.integers(1, 9))
def test_tops_against_the_rankings_of_single_runs(runs: list[dict[str, dict[str, float]]], depth: int) -> None:
    found = rankings(named(runs), depth)
    for topic, candidates in found.candidates.items():
        for number, run in enumerate(runs):
            expected = [document for document, _ in Run(run).ranking(topic)][:depth] if topic in run else []
            assert [candidates.documents[i] for i in candidates.lists[number]] == expected


@pytest.mark.parametrize("order", [Order(ties="ascending"), Order(ties="input"), Order(single=True)])
def test_ties_are_ordered_as_the_conventions_say_against_single_runs(order: Order) -> None:
    run = {"q": {"b": 1.0, "a": 1.0, "c": 1.0 + 1e-12, "d": 0.5}}
    found = rankings([Run(run, "r")], 2, order=order)["q"]
    assert found.documents == [document for document, _ in Run(run).ranking("q", order)][:2]


def test_a_run_may_have_a_depth_of_its_own() -> None:
    made = pool(RUNS, depth=1, depths={"two": 3}, order="document")
    assert made["q1"] == ["a", "b", "d"]
    with pytest.raises(DataError, match="no run is called that"):
        pool(RUNS, depths={"three": 3})


def test_a_cap_takes_the_first_by_priority() -> None:
    assert pool(RUNS, depth=3, cap=1, order="priority")["q1"] == ["a"]


def test_a_budget_is_spread_evenly_and_what_a_topic_leaves_goes_to_others() -> None:
    made = pool(RUNS, depth=3, budget=4)
    assert Counter(item.topic for item in made) == {"q1": 3, "q2": 1}


def test_judged_documents_are_left_out_or_kept() -> None:
    judged = {"q1": {"a": 1.0}}
    assert set(pool(RUNS, qrels=judged)["q1"]) == {"b", "c", "d"}
    assert set(pool(RUNS, qrels=judged, keep_judged=True)["q1"]) == {"a", "b", "c", "d"}


def test_a_runs_priority_comes_before_all_else() -> None:
    assert set(pool(RUNS, depth=3, cap=3, priorities={"two": 1}, order="priority")["q1"]) == {"a", "b", "d"}
    teams = {"one": "uni", "two": "firm"}
    assert pool(RUNS, depth=3, cap=1, priorities={"uni": 1}, teams=teams, order="priority")["q1"] == ["a"]


def test_a_priority_that_fits_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="'three'.*runs are one, two"):
        tiers_of(["one", "two"], {"three": 1}, {})


def test_the_order_is_shuffled_by_the_seed_and_tells_nothing_of_ranks() -> None:
    runs = {"r": {"q": {f"d{i:03}": float(-i) for i in range(100)}}}
    first, again, other = (pool(runs, seed=seed)["q"] for seed in (0, 0, 1))
    assert first == again != other
    ranks = [int(document[1:]) for document in first]
    assert abs(np.corrcoef(ranks, range(100))[0, 1]) < 0.3
    assert pool(runs, order="priority")["q"] == sorted(first)


def test_whole_topics_go_to_assessors_evenly() -> None:
    sizes = {"q1": 9, "q2": 5, "q3": 4, "q4": 1}
    runs = {"r": {topic: {f"d{i}": float(i) for i in range(n)} for topic, n in sizes.items()}}
    made = pool(runs, assessors=["ann", "bob"])
    assert len({(item.topic, item.assessor) for item in made}) == 4
    assert Counter(item.assessor for item in made) == {"ann": 10, "bob": 9}


def test_a_written_pool_reads_back_the_same(tmp_path: Path) -> None:
    made = pool({"rün": {"q": {"dö": 1.0, 'a"b': 2.0}}}, assessors=["ann"])
    path = tmp_path / "pool.jsonl"
    path.write_bytes(b"".join(pool_lines(made)))
    assert read_pool(path) == made.items


@pytest.mark.parametrize("line", ["{", '{"topic": "q"}', "[1]", '{"topic":"q","document":"d","probability":0}'])
def test_a_bad_line_of_a_pool_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    path.write_text('{"topic": "q", "document": "d"}\n' + line + "\n")
    with pytest.raises(DataError, match=r"pool.jsonl:2: expected"):
        read_pool(path)


def test_a_document_that_stands_twice_is_refused_unless_the_conventions_say_which_counts() -> None:
    twice = b"q Q0 d 1 2.0 t\nq Q0 d 2 1.0 t\n"
    with pytest.raises(DataError, match="'d' occurs twice for topic 'q'"):
        rankings(as_runs(twice), 10)
    assert rankings(as_runs(twice), 10, order=Order(duplicates="first"))["q"].documents == ["d"]


def test_ids_of_any_bytes_and_lengths_are_kept() -> None:
    long = "x" * 100
    runs = as_runs(b"q Q0 \xff\xfe 1 3 t\nq Q0 " + long.encode() + b" 2 2 t\nq Q0 d 3 1 t\n")
    assert rankings(runs, 10)["q"].documents == [b"\xff\xfe".decode("utf-8", "surrogateescape"), long, "d"]


def test_strategies_that_adapt_ask_for_the_size_of_a_batch() -> None:
    with pytest.raises(ConventionError, match="--next N"):
        pool(RUNS, strategy="maxmean")
    assert len(pool(RUNS, strategy="maxmean", next=1)) == 2


def test_labels_bring_the_next_batch() -> None:
    first = pool(RUNS, strategy="move-to-front", next=1)
    labels = [Judgment(item.topic, item.document, 1.0) for item in first]
    second = pool(RUNS, strategy="move-to-front", next=1, labels=labels)
    assert {item.document for item in first}.isdisjoint(second[item.topic][0] for item in second)


@pytest.mark.parametrize(("option", "value"), [("cap", 0), ("next", 0), ("budget", 0), ("order", "rank")])
def test_options_out_of_range_are_refused(option: str, value: object) -> None:
    with pytest.raises(ConventionError, match=option):
        pool(RUNS, **{option: value})  # type: ignore[arg-type]


def test_statistics_count_overlap_and_hours() -> None:
    found = statistics(rankings(as_runs(RUNS), 2), seconds=3600)
    assert found.sizes == {"q1": 3, "q2": 1}
    assert found.hours == 4.0
    assert found.unique == {"one": 2, "two": 1}
    assert found.overlap[0][1] == pytest.approx((1 / 3 + 0) / 2)  # q1: one of three documents; q2: none
    assert "4 documents for 2 topics" in found.to_text()
    assert json.loads(json.dumps(found.to_dict()))["documents"] == 4


@examples(25)
@given(runs=ANY_RUNS, depth=st.integers(1, 5))
def test_the_diversity_of_contributors_lies_between_one_and_their_number(
    runs: list[dict[str, dict[str, float]]], depth: int
) -> None:
    found = statistics(rankings(named(runs), depth))
    assert 1 <= found.diversity <= len(runs)
    assert 0 <= found.mean_overlap <= 1


TRECTOOLS = {1: (430, "4413cefd6e91d77c"), 10: (3300, "d26bfb031b4eeb69"), 50: (14208, "017c41273db9f2db")}


@pytest.mark.parametrize("depth", TRECTOOLS)
def test_depth_pools_against_trectools(depth: int, shared: Path) -> None:
    """Recorded from trectools 0.0.50, which leaves ties in the order given: make_pool(runs, strategy="topX", topX=k)."""
    paths = sorted((shared / "trec-covid-r3" / "runs").iterdir())
    found = rankings(as_runs([str(path) for path in paths]), depth, order=Order(ties="input"))
    lines = sorted(f"{topic} {document}" for topic, part in found.candidates.items() for document in part.documents)
    assert (len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]) == TRECTOOLS[depth]


def test_a_pool_refuses_budgets_readers_without_texts_and_clashing_names():
    one, two = Run({"q": {"a": 2, "b": 1}}, "same"), Run({"q": {"c": 2}}, "same")
    with pytest.raises(ConventionError, match="budget must be 1 or more, got 0"):
        session([one], depth=2, strategy="move-to-front", budget=0)
    with pytest.raises(ConventionError, match="reads documents"):
        session([one], depth=2, strategy="cal")
    with pytest.raises(DataError, match="two runs are called 'same'"):
        pool([one, two], depth=2)
    with pytest.raises(DataError, match="a depth is given for 'other', but no run is called that"):
        pool([one], depth=2, depths={"other": 3})
    with pytest.raises(DataError, match="other: a depth must be 1 or more, got 0"):
        pool([one], depth=2, depths={"other": 0})
    with pytest.raises(ConventionError, match="assessors must have different names"):
        pool([one], depth=2, assessors=["ann", "ann"])


def test_a_pool_in_the_order_of_documents_and_shuffled_has_the_same_documents():
    run = Run({"q": {f"d{i}": float(i) for i in range(9)}}, "run")
    documents = [f"d{i}" for i in range(9)]
    assert [item.document for item in pool([run], depth=9, order="document")] == documents
    assert sorted(item.document for item in pool([run], depth=9, order="shuffled", seed=3)) == documents
