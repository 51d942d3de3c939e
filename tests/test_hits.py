"""Hits: narrowing, sums per topic, and walking down the ranks, each on an example one can count by hand."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Evaluator, Hits, evaluate
from cranfield.evaluation.hits import match_index, ratio, returned_documents
from cranfield.evaluation.measures.gain import nDCG
from hypotheses import examples

if TYPE_CHECKING:
    from pathlib import Path

# rank:             1    2    3    4    5    6
RUN = {"q1": {"a": 9, "u": 8, "b": 7, "c": 6, "d": 5, "v": 4}, "q2": {"e": 3, "f": 2}, "q4": {"w": 1}}
GRADES = {"q1": {"a": 2, "b": 0, "c": 1, "d": -1, "x": 3}, "q2": {"e": 0, "f": 4}, "q3": {"g": 1}, "q4": {"h": 1}}


def hits(**asked: object) -> Hits:
    return Evaluator(GRADES, "AP", **asked).hits(RUN)


def test_only_judged_documents_are_hits_and_they_come_by_topic_and_rank() -> None:
    found = hits()
    assert found.topic.tolist() == [0, 0, 0, 0, 1, 1]
    assert found.rank.tolist() == [1, 3, 4, 5, 1, 2]
    assert found.grade.tolist() == [2, 0, 1, -1, 0, 4]
    assert found.retrieved.tolist() == [6, 2, 0, 1]
    assert (len(found), found.size) == (6, 4)


def test_the_top_k_count_as_all_that_was_retrieved() -> None:
    top = hits().top(3)
    assert top.rank.tolist() == [1, 3, 1, 2]
    assert top.retrieved.tolist() == [3, 2, 0, 1]
    assert hits().top(None).rank.tolist() == hits().rank.tolist()
    assert hits().top(3).top(100).retrieved.tolist() == [3, 2, 0, 1]


def test_a_negative_grade_is_neither_relevant_nor_judged_nonrelevant() -> None:
    found = hits()
    assert found.relevant().rank.tolist() == [1, 4, 2]
    assert found.relevant(2).rank.tolist() == [1, 2]
    assert found.nonrelevant().rank.tolist() == [3, 1]
    assert found.nonrelevant(2).rank.tolist() == [3, 4, 1]
    assert found.judged().rank.tolist() == [1, 3, 4, 1, 2]


def test_sums_and_counts_are_per_topic_and_0_where_there_is_no_hit() -> None:
    found = hits()
    assert found.sum(found.grade).tolist() == [2, 4, 0, 0]
    assert found.sum(1).tolist() == [4, 2, 0, 0]
    assert found.count().tolist() == [4, 2, 0, 0]
    assert found.n_relevant().tolist() == [3, 1, 1, 1]
    assert found.n_relevant(3).tolist() == [1, 1, 0, 0]


def test_the_ideal_run_holds_every_document_of_a_grade_above_0_best_first() -> None:
    ideal = hits().ideal
    assert ideal.grade.tolist() == [3, 2, 1, 4, 1, 1]
    assert ideal.rank.tolist() == [1, 2, 3, 1, 1, 1]
    assert ideal.retrieved.tolist() == [3, 1, 1, 1]


def test_walking_down_the_ranks_starts_anew_in_each_topic() -> None:
    found = hits()
    assert found.nth.tolist() == [1, 2, 3, 4, 1, 2]
    assert found.running_sum([1, 2, 3, 4, 5, 6]).tolist() == [1, 3, 6, 10, 5, 11]
    assert found.running_product([1, 2, 3, 4, 5, 6]).tolist() == [1, 2, 6, 24, 5, 30]
    assert found.product_above([1, 2, 3, 4, 5, 6]).tolist() == [1, 1, 2, 6, 1, 5]
    assert found.relevant().nth.tolist() == [1, 2, 1]


def test_a_grid_holds_the_grade_at_every_rank_down_to_its_depth() -> None:
    nan = np.nan
    expected = [[2, nan, 0], [0, 4, nan], [nan, nan, nan], [nan, nan, nan]]
    np.testing.assert_array_equal(hits().grid(3), expected)
    assert hits().grid(5)[0].tolist()[2:] == [0, 1, -1]


def test_the_total_at_a_rank_adds_up_the_hits_there_and_above() -> None:
    found, topic, rank = hits(), np.array([0, 0, 0, 1, 1, 3]), np.array([0, 1, 4, 1, 9, 2])
    assert found.total_at([1, 2, 3, 4, 5, 6], topic, rank).tolist() == [0, 1, 6, 5, 11, 0]


def test_above_counts_the_others_that_stand_higher_in_the_same_topic() -> None:
    found = hits()
    assert found.relevant().above(found.nonrelevant()).tolist() == [0, 1, 1]
    assert found.above(found).tolist() == [0, 1, 2, 3, 0, 1]


def test_a_condensed_list_counts_ranks_anew_and_forgets_unjudged_documents() -> None:
    condensed = hits().condensed()
    assert condensed.rank.tolist() == [1, 2, 3, 1, 2]
    assert condensed.grade.tolist() == [2, 0, 1, 0, 4]
    assert condensed.retrieved.tolist() == [3, 2, 0, 0]
    assert hits(unjudged="drop").rank.tolist() == condensed.rank.tolist()


def test_each_hit_knows_the_ranks_that_its_tie_group_covers() -> None:
    run = {"q": {"a": 2, "b": 1, "u": 1, "c": 1, "d": 0}}
    found = Evaluator({"q": {"a": 1, "b": 1, "c": 0, "d": 1}}, "AP").hits(run)
    assert found.rank.tolist() == [1, 3, 4, 5]  # u, c, b: ties by id, descending
    assert found.tied_from.tolist() == [1, 2, 2, 5]
    assert found.tied_to.tolist() == [1, 4, 4, 5]
    condensed = found.condensed()
    assert condensed.tied_from.tolist() == [1, 2, 2, 4]
    assert condensed.tied_to.tolist() == [1, 3, 3, 4]


def test_an_empty_run_has_no_hits_and_every_walk_is_empty() -> None:
    found = Evaluator(GRADES, "AP").hits({"q9": {"a": 1.0}})
    assert len(found) == 0
    for values in (found.nth, found.running_sum(1.0), found.product_above(1.0), found.above(found)):
        assert len(values) == 0
    assert len(found.condensed()) == 0
    assert found.sum(1).tolist() == [0, 0, 0, 0]


def test_a_document_judged_under_several_labels_counts_once_with_its_highest_grade(tmp_path: Path) -> None:
    file = tmp_path / "subtopics.qrels"
    file.write_text("q 1 a 1\nq 2 a 3\nq 1 b 0\n")
    found = Evaluator(file, "AP").hits({"q": {"b": 2, "a": 1}})
    assert found.grade.tolist() == [0, 3]
    assert found.n_relevant().tolist() == [1]


def test_views_go_with_their_hits_without_waiting_for_the_collector() -> None:
    gc.disable()
    try:
        found = hits()
        views = [found, found.top(3), found.top(3).relevant(), found.relevant(), found.ideal.top(1), found.condensed()]
        assert all(len(view.relevant(2)) <= len(view) for view in views)
        gone = [weakref.ref(each) for each in (*views, found.judgments)]
        del found, views
        assert [reference() for reference in gone] == [None] * len(gone)
    finally:
        gc.enable()


def test_a_listing_holds_all_that_was_returned_for_judged_topics_and_is_read_once() -> None:
    found = hits()
    topic, rank, documents = returned_documents(found)
    assert documents == ["a", "u", "b", "c", "d", "v", "e", "f", "w"]
    assert topic.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 3]
    assert rank.tolist() == [1, 2, 3, 4, 5, 6, 1, 2, 1]
    assert returned_documents(found.top(2)) is returned_documents(found)


def test_the_listing_of_a_condensed_or_an_ideal_list_is_made_of_its_hits() -> None:
    condensed, ideal = returned_documents(hits().condensed()), returned_documents(hits().ideal)
    assert (condensed.documents, condensed.rank.tolist()) == (["a", "b", "c", "e", "f"], [1, 2, 3, 1, 2])
    assert (ideal.documents, ideal.rank.tolist()) == (["x", "a", "c", "f", "g", "h"], [1, 2, 3, 1, 1, 1])


def test_hits_that_come_from_no_run_and_know_no_document_cannot_be_listed_or_searched() -> None:
    found = hits()
    copied = Hits(found.judgments, *(found.topic, found.rank, found.grade), found.rank, found.rank, found.retrieved)
    for ask in (lambda: returned_documents(copied), lambda: match_index(copied, found.judgments.qrels.index)):
        with pytest.raises(TypeError, match="these hits do not come from a run"):
            ask()


def test_a_run_is_searched_for_the_documents_of_another_index_also_where_its_list_is_condensed() -> None:
    other = Evaluator({"q1": {"v": 1, "a": 1}}, "AP").qrels
    for found in (hits(), hits().condensed(), hits().top(1)):
        where = match_index(found, other.index)
        assert where.rank.tolist() == [1, 6]
        assert match_index(found, other.index) is where


def test_a_ratio_is_0_where_the_whole_is_0() -> None:
    assert ratio([1, 2, 0], [2, 0, 0]).tolist() == [0.5, 0, 0]
    assert ratio([1, 2], 4).tolist() == [0.25, 0.5]
    assert ratio([1, 2], [0, 4], otherwise=9).tolist() == [9, 0.5]


@examples(30)
@given(sizes=st.lists(st.integers(0, 9), min_size=1, max_size=6), seed=st.integers(0, 10**6))
def test_walks_equal_plain_loops_whatever_the_sizes_of_topics(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    qrels = {f"q{t}": {"judged": 0, **{f"d{i}": 1 for i in range(n)}} for t, n in enumerate(sizes)}
    run = {f"q{t}": {f"d{i}": float(rng.random()) for i in range(n)} for t, n in enumerate(sizes)}
    found = Evaluator(qrels, "AP").hits(run)
    values = rng.random(len(found))
    sums, products, place = [], [], 0
    for n in sizes:
        mine = values[place : place + n]
        sums += np.cumsum(mine).tolist()
        products += [float(np.prod(mine[:i])) for i in range(n)]
        place += n
    assert found.running_sum(values).tolist() == pytest.approx(sums)
    assert found.product_above(values).tolist() == pytest.approx(products)


def test_the_ideal_gain_is_worked_out_once_for_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    measures: list[str] = []
    ideal_hits = nDCG.ideal_hits

    def counted(measure: nDCG, hits: Hits) -> Hits:
        measures.append(str(measure))
        return ideal_hits(measure, hits)

    monkeypatch.setattr(nDCG, "ideal_hits", counted)
    runs = {"one": {"q": {"a": 2.0, "b": 1.0}}, "two": {"q": {"b": 2.0, "a": 1.0}}}
    scores = evaluate({"q": {"a": 1, "b": 0}}, runs, "nDCG nDCG@1 nDCG(ideal=hits)")
    assert scores.means("one") == {"nDCG": 1, "nDCG@1": 1, "nDCG(ideal=hits)": 1}
    assert Counter(measures) == {"nDCG": 1, "nDCG@1": 1, "nDCG(ideal=hits)": 2}


def test_a_cut_is_made_once_for_all_measures() -> None:
    whole = hits()
    assert whole.top(1) is whole.top(1)
    assert whole.top(6) is whole
