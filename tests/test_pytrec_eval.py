"""A script written for pytrec_eval gets the same names, numbers and kinds of errors from cranfield.compat.pytrec_eval."""

from __future__ import annotations

import inspect
import math
import random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import CranfieldError
from cranfield.compat import pytrec_eval as ours
from hypotheses import examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

theirs = pytest.importorskip("pytrec_eval")

QRELS = {"q1": {"d1": 0, "d2": 1, "d3": 0, "d4": 2}, "q2": {"d2": 1, "d3": 1}, "q3": {"a": 0}}
RUN = {
    "q2": {"d1": 1.5, "d2": 0.2, "d3": 0.5},
    "zz": {"d1": 1.0},
    "q1": {"d1": 1.0, "d2": 0.0, "d3": 1.5},
    "q3": {"a": 1.0},
}
MEMORY = {"runid", "relstring"}  # pytrec_eval returns whatever is in memory for these


def assert_same(qrels: Any, run: Any, measures: Any, **options: Any) -> None:
    expected = theirs.RelevanceEvaluator(qrels, measures, **options).evaluate(run)
    found = ours.RelevanceEvaluator(qrels, measures, **options).evaluate(run)
    assert list(found) == list(expected)
    for topic, values in expected.items():
        assert list(found[topic]) == list(values)
        for name in values.keys() - MEMORY:
            assert type(found[topic][name]) is float
            assert found[topic][name] == pytest.approx(values[name], rel=0, abs=1e-12, nan_ok=True), (topic, name)


def random_case(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Qrels and a run with ties, ties at 32 bits only, missing topics, topics that are not judged, negative grades."""
    draw = random.Random(seed)
    documents = [f"d{i}" for i in range(draw.choice([3, 25, 150]))]
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for topic in ("1", "10", "2", "x"):
        judged = draw.sample(documents, draw.randint(1, len(documents)))
        qrels[topic] = {document: draw.choice([-2, -1, 0, 0, 0, 1, 1, 2, 3]) for document in judged}
        qrels[topic][judged[0]] = draw.choice([0, 1])  # pytrec_eval crashes where every grade is negative
        if draw.random() < 0.85:
            returned = draw.sample(documents, draw.randint(1, len(documents)))
            scores = [draw.random(), float(draw.randint(0, 4)), 1 + 1e-9 * draw.randint(0, 3), -draw.random()]
            run[topic if draw.random() < 0.9 else f"{topic}?"] = {d: draw.choice(scores) for d in returned}
    return qrels, run


@pytest.mark.parametrize("seed", range(40))
def test_all_measures_of_random_runs_against_pytrec_eval(seed: int) -> None:
    qrels, run = random_case(seed)
    level, judged_only = 1 + seed % 3 // 2, seed % 4 == 3
    assert_same(qrels, run, theirs.supported_measures, relevance_level=level, judged_docs_only_flag=judged_only)


SPELLINGS = (
    "P_1 P.3,7 recall_2 ndcg_cut.1,4 map_cut_3 success_2 relative_P.2 iprec_at_recall_0.35 set_F.2 Rprec_mult_0.7,1.3 "
    "11pt_avg_0.2,0.9 utility.1,2,3,4 map ndcg bpref infAP gm_map num_ret Rndcg G binG set_map recip_rank"
)


@given(
    st.dictionaries(
        st.sampled_from(["1", "2"]),
        st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-1, 4), min_size=1).filter(
            lambda d: max(d.values()) >= 0
        ),
        min_size=1,
    ),
    st.dictionaries(
        st.sampled_from(["1", "2", "3"]),
        st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-4, 4, width=16) | st.integers(-3, 3), min_size=1),
    ),
    st.sets(st.sampled_from(SPELLINGS.split()), min_size=1),
    st.integers(1, 3),
    st.booleans(),
)
@examples(60)
def test_small_runs_with_parameters_against_pytrec_eval(
    qrels: Any, run: Any, measures: set[str], level: int, judged_only: bool
) -> None:
    assert_same(qrels, run, measures, relevance_level=level, judged_docs_only_flag=judged_only)


@pytest.mark.parametrize("nickname", ["official", "set", "all_trec"])
def test_nicknames_against_pytrec_eval(nickname: str) -> None:
    assert_same(QRELS, RUN, {nickname})
    assert_same(QRELS, RUN, [nickname, "P_3", "ndcg_cut.2,1"])


def test_names_and_signatures_are_those_of_pytrec_eval() -> None:
    assert ours.supported_measures == theirs.supported_measures
    assert ours.supported_nicknames == theirs.supported_nicknames
    assert set(theirs.__all__) <= set(ours.__all__)
    for name in ("parse_run", "parse_qrel", "compute_aggregated_measure"):
        assert list(inspect.signature(getattr(ours, name)).parameters) == list(
            inspect.signature(getattr(theirs, name)).parameters
        )
    for method in ("__init__", "evaluate"):
        mine, other = (inspect.signature(getattr(m.RelevanceEvaluator, method)) for m in (ours, theirs))
        assert [(p.name, p.default) for p in mine.parameters.values()] == [
            (p.name, p.default) for p in other.parameters.values()
        ]


@pytest.mark.parametrize(
    "measures",
    [
        ["map", "map"],
        set(),
        {"P_5.7"},
        {"ndcg_cut_10abc"},
        {"recall", "recall_10", "recall.5"},
        {"binG_5"},
        {"set_F_0.5"},
    ],
    ids=lambda names: " ".join(sorted(names)) or "none",
)
def test_odd_spellings_of_measures_against_pytrec_eval(measures: Any) -> None:
    assert_same(QRELS, RUN, measures)


@pytest.mark.parametrize("measures", [{"foo"}, {"P_"}, {"map_cut_abc"}, {"prefs"}, "map", {1}, None], ids=str)
def test_measures_that_pytrec_eval_refuses_are_refused_with_its_type_of_error(measures: Any) -> None:
    with pytest.raises((ValueError, TypeError)) as expected:
        theirs.RelevanceEvaluator(QRELS, measures)
    with pytest.raises(expected.type):
        ours.RelevanceEvaluator(QRELS, measures)


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ("P_0", "P: expected a cut-off of 1 or more, found '0'"),
        ("ndcg_5", "ndcg: expected name=number, found '5'"),
        ("iprec_at_recall_0.10,0.1", "the cut-off 0.1 is given twice"),
        ("utility_2", "utility: expected 4 weights, all different, found 1"),
    ],
)
def test_parameters_that_crash_pytrec_eval_are_value_errors(measure: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ours.RelevanceEvaluator(QRELS, {measure})


BAD_QRELS: list[Any] = [{"q": {"d": 1.0}}, {"q": {"d": "1"}}, {1: {"d": 1}}, {"q": {1: 1}}, {"q": [("d", 1)]}, []]


@pytest.mark.parametrize("qrels", BAD_QRELS, ids=repr)
def test_judgments_of_other_types_raise_what_pytrec_eval_raises(qrels: Any) -> None:
    with pytest.raises((TypeError, AttributeError)) as expected:
        theirs.RelevanceEvaluator(qrels, {"map"})
    with pytest.raises(expected.type):
        ours.RelevanceEvaluator(qrels, {"map"})


BAD_RUNS: list[Any] = [
    {"q1": {"d": "1"}},
    {"q1": {"d": None}},
    {"q1": {1: 1.0}},
    {1: {"d": 1.0}},
    {"q1": [("d", 1.0)]},
    {"q1": 3},
]


@pytest.mark.parametrize("run", BAD_RUNS, ids=repr)
def test_runs_of_other_types_raise_what_pytrec_eval_raises(run: Any) -> None:
    with pytest.raises(TypeError):
        theirs.RelevanceEvaluator(QRELS, {"map"}).evaluate(run)
    with pytest.raises(TypeError) as found:
        ours.RelevanceEvaluator(QRELS, {"map"}).evaluate(run)
    assert isinstance(found.value, CranfieldError)
    assert str(found.value)


@pytest.mark.parametrize("level", ["1", 1.0, 0])
def test_a_relevance_level_that_is_no_positive_whole_number_is_a_type_error(level: Any) -> None:
    for module in (theirs, ours):
        with pytest.raises(TypeError):
            module.RelevanceEvaluator(QRELS, {"map"}, level)


def test_a_score_that_is_no_number_is_refused_where_pytrec_eval_orders_it_by_chance() -> None:
    with pytest.raises(ValueError, match="topic 'q1', document 'd1': expected a number as its score, found nan"):
        ours.RelevanceEvaluator(QRELS, {"map"}).evaluate({"q1": {"d1": math.nan}})


def test_a_grade_too_large_to_be_exact_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a document \\(text\\) and a whole number"):
        ours.RelevanceEvaluator({"q": {"d": 2**70}}, {"map"})


@pytest.mark.parametrize("nothing", [{}, None, [], {"zz": {"a": 1.0}}], ids=repr)
def test_a_run_without_a_judged_topic_gives_nothing(nothing: Any) -> None:
    assert ours.RelevanceEvaluator(QRELS, {"map"}).evaluate(nothing) == {}
    assert theirs.RelevanceEvaluator(QRELS, {"map"}).evaluate(nothing) == {}


def test_topics_judged_empty_are_left_out_against_pytrec_eval() -> None:
    assert_same({"q1": {}, "q2": {"d2": 1}}, RUN, {"map", "ndcg"})
    assert_same({}, RUN, {"map"})


def test_an_answer_without_documents_scores_0() -> None:
    assert ours.RelevanceEvaluator(QRELS, {"map", "num_ret"}).evaluate({"q1": {}}) == {
        "q1": {"num_ret": 0.0, "map": 0.0}
    }


def test_a_topic_with_negative_grades_only_scores_0_where_pytrec_eval_crashes() -> None:
    found = ours.RelevanceEvaluator({"q": {"a": -1}}, theirs.supported_measures - MEMORY).evaluate(
        {"q": {"a": 1.0, "b": 2.0}}
    )
    assert (found["q"]["map"], found["q"]["num_ret"], found["q"]["num_rel"]) == (0.0, 2.0, 0.0)


def test_scores_are_compared_as_32_bit_floats_against_pytrec_eval() -> None:
    run = {"q1": {"d2": 1.00000001, "d3": 1.0, "d1": 1.000000001}}
    assert_same(QRELS, run, {"recip_rank", "map"})
    assert ours.RelevanceEvaluator(QRELS, {"recip_rank"}).evaluate(run) == {"q1": {"recip_rank": 0.5}}


def test_ids_beyond_ascii_tie_like_bytes_against_pytrec_eval() -> None:
    documents = ["é", "z", "日本", "a", "\U0001f600", "\uffff"]
    assert_same(
        {"q": {d: i % 2 for i, d in enumerate(documents)}}, {"q": dict.fromkeys(documents, 1.0)}, {"map", "P_1,2,3"}
    )


def test_any_mapping_and_any_number_will_do() -> None:
    run = {"q1": MappingProxyType({"d1": np.float32(1), "d2": np.int64(2)})}
    assert ours.RelevanceEvaluator(MappingProxyType(QRELS), {"recip_rank"}).evaluate(MappingProxyType(run)) == {
        "q1": {"recip_rank": 1.0}
    }


def test_an_evaluator_gives_the_same_again_and_again() -> None:
    evaluator = ours.RelevanceEvaluator(QRELS, ours.supported_measures)
    first = evaluator.evaluate(RUN)
    evaluator.evaluate({"q1": {"d4": 1.0}})
    assert evaluator.evaluate(RUN) == first


# reading and adding up

RUN_LINES = ["q1 Q0 d1 1 9.5 bm25\n", "q1\tQ0\td2 2  -7e-1 bm25", "q2 0 d1 x inf t\r\n"]
QREL_LINES = ["q1 0 d1 1\n", " q1 0\td2 -2", "q2 x d1 0\r\n"]


def test_lines_are_read_as_pytrec_eval_reads_them() -> None:
    assert ours.parse_run(RUN_LINES) == theirs.parse_run(RUN_LINES)
    assert ours.parse_qrel(QREL_LINES) == theirs.parse_qrel(QREL_LINES)
    assert list(ours.parse_run(RUN_LINES)) == ["q1", "q2"]
    assert ours.parse_run([])["unknown"] == {}


BAD_LINES: list[tuple[str, list[str]]] = [
    ("parse_run", ["q1 Q0 d1 1 9.5"]),
    ("parse_run", ["q1 Q0 d1 1 9.5 a b"]),
    ("parse_run", ["q1 Q0 d1 1 high bm25"]),
    ("parse_run", [""]),
    ("parse_run", ["q1 Q0 d1 1 9.5 a", "q1 Q0 d1 2 8.5 a"]),
    ("parse_qrel", ["q1 0 d1"]),
    ("parse_qrel", ["q1 0 d1 1.5"]),
    ("parse_qrel", ["q1 0 d1 1", "q1 0 d1 1"]),
]


@pytest.mark.parametrize(("name", "lines"), BAD_LINES, ids=str)
def test_bad_lines_raise_what_pytrec_eval_raises_and_name_the_line(name: str, lines: list[str]) -> None:
    with pytest.raises((ValueError, AssertionError)) as expected:
        getattr(theirs, name)(lines)
    with pytest.raises(expected.type, match=f"<lines>:{len(lines)}: ") as found:
        getattr(ours, name)(lines)
    assert isinstance(found.value, CranfieldError)


@pytest.mark.parametrize("measure", ["num_ret", "num_rel_ret", "gm_map", "gm_bpref", "map", "P_5", "ndcg"])
@given(st.lists(st.floats(-12, 100), min_size=1, max_size=20))
def test_aggregated_measures_against_pytrec_eval(measure: str, values: list[float]) -> None:
    assert ours.compute_aggregated_measure(measure, values) == theirs.compute_aggregated_measure(measure, values)


# real data


@pytest.mark.parametrize(
    ("qrels", "run"),
    [
        ("trec_eval-test/qrels.test", "trec_eval-test/results.test"),
        ("trec-covid-r3/qrels.covid-round3.txt", "trec-covid-r3/runs/UIowaS_Rd3MLReRank"),
        ("webtrack2012-baselines/qrels.web.151-200.txt", "webtrack2012-baselines/ql.results-catb-filtered.txt"),
    ],
)
def test_real_runs_against_pytrec_eval(qrels: str, run: str, shared: Path) -> None:
    read: Callable[[str], list[str]] = lambda name: (shared / name).read_text().splitlines()  # noqa: E731
    judged, returned = ours.parse_qrel(read(qrels)), ours.parse_run(read(run))
    assert judged == theirs.parse_qrel(read(qrels))
    assert returned == theirs.parse_run(read(run))
    for options in ({}, {"relevance_level": 2}, {"judged_docs_only_flag": True}):
        assert_same(judged, returned, theirs.supported_measures, **options)
