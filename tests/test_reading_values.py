"""Runs given as Python values: ranked lists, pairs, padded arrays, and the objects of ranx and ir_measures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import cranfield
from cranfield import Run
from cranfield.base.errors import DataError, DuplicateError, FormatError, MeasureError
from cranfield.formats import as_runs

QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"c": 2}}
NAN = float("nan")


def rr(run: Any, **options: Any) -> list[float]:
    return cranfield.evaluate(QRELS, run, "RR", **options).values[0, 0].tolist()


# ranked lists and pairs


@pytest.mark.parametrize(
    "run",
    [
        {"q1": ["b", "a"], "q2": ["c"]},
        {"q1": ("b", "a"), "q2": ("c",)},
        {"q1": np.array(["b", "a"]), "q2": np.array(["c"], object)},
        {"q1": [("b", 0.9), ("a", 0.5)], "q2": [("c", 1)]},
        {"q1": [["a", 0.5], ["b", 0.9]], "q2": [["c", np.float32(1)]]},
        {"q1": ["b", "a"], "q2": [("c", 0.1)]},
    ],
)
def test_lists_and_pairs_are_a_run(run):
    assert rr(run) == [0.5, 1.0]
    assert cranfield.Evaluator(QRELS, "RR").evaluate(run).values[0, 0].tolist() == [0.5, 1.0]


def test_a_list_keeps_its_order_whatever_the_ids():
    assert Run({"q1": ["a", "c", "b"]}, name="mine")["q1"] == [("a", 3.0), ("c", 2.0), ("b", 1.0)]


def test_pairs_are_ordered_by_score_and_ties_as_the_conventions_say():
    tied = {"q1": [("a", 1.0), ("b", 1.0)], "q2": []}
    assert rr(tied) == [0.5, 0.0]
    assert rr(tied, ties="input-order") == [1.0, 0.0]


def test_several_runs_of_lists_have_names_or_stand_in_a_list():
    first, second = {"q1": ["b", "a"], "q2": ["c"]}, {"q1": ["a"], "q2": []}
    scores = cranfield.evaluate(QRELS, {"bm25": first, "dense": second}, "RR")
    assert (scores.runs, scores["bm25"].tolist(), scores["dense"].tolist()) == (["bm25", "dense"], [0.5, 1], [1, 0])
    assert cranfield.evaluate(QRELS, [first, second], "RR").values[:, 0].tolist() == [[0.5, 1], [1, 0]]
    arrays = ({"q1": np.array(["b", "a"]), "q2": np.array(["c", "d"])} for _ in range(2))
    assert cranfield.evaluate(QRELS, arrays, "RR").values[:, 0].tolist() == [[0.5, 1], [0.5, 1]]


def test_compare_takes_lists():
    qrels = {f"q{i}": {"a": 1} for i in range(8)}
    runs = {"good": {topic: ["a", "b"] for topic in qrels}, "bad": {topic: ["b", "a"] for topic in qrels}}
    [pair] = cranfield.compare(qrels, runs, "RR").pairs
    assert (pair.one, pair.other) == ("good", "bad")
    assert abs(pair.difference) == 0.5


def test_a_document_that_stands_twice_is_refused_by_topic_and_name():
    for run in ({"q1": ["a", "b", "a"], "q2": []}, {"q1": [("a", 1), ("a", 2)]}):
        with pytest.raises(DuplicateError, match="document 'a' occurs twice for topic 'q1'"):
            rr(run)
    assert rr({"q1": ["b", "a", "b"]}, duplicates="first") == [0.5, 0.0]


class Hit(NamedTuple):
    """A row of two fields, as a search function may return."""

    document: str
    score: float


def test_named_pairs_are_pairs():
    assert rr({"q1": [Hit("b", 2), Hit("a", 1)]}) == [0.5, 0.0]


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ({"q1": ["a", 3]}, "topic 'q1', document 3: expected an id that is text, found int"),
        ({"q1": [3, 5]}, "topic 'q1', document 3: expected an id that is text, found int"),
        ({"q1": np.array([3, 5])}, "topic 'q1', document .*3.*: expected an id that is text"),
        ({1: ["a"]}, "topic 1: expected an id that is text, found int"),
        ({"q1": [(0.9, "a")]}, "topic 'q1', document 0.9: expected an id that is text"),
        ({"q1": [("a", 1.0), "b"]}, r"topic 'q1', item 2: expected \(document, score\) as before it, found 'b'"),
        ({"q1": ["b", ("a", 1.0)]}, r"topic 'q1', document \('a', 1.0\): expected an id that is text, found tuple"),
        ({"q1": [("a", NAN)]}, "topic 'q1', document 'a': expected a number as its score, found nan"),
        ({"q1": [("a", "2")]}, "topic 'q1', document 'a': expected a number as its score, found '2'"),
    ],
)
def test_what_is_no_list_is_refused_by_name(run, says):
    with pytest.raises(DataError, match=says):
        as_runs(run)


def test_a_run_of_lists_has_lists_only():
    with pytest.raises(DataError, match="topic 'q2': expected a list like those of other topics"):
        Run({"q1": ["a"], "q2": {"c": 1.0}})


def test_columns_stay_columns():
    columns = {"query_id": ["q1", "q1"], "doc_id": ["a", "b"], "score": [1.0, 2.0]}
    assert rr(columns) == [0.5, 0.0]
    with pytest.raises(FormatError, match="no column for the score"):
        as_runs({"query_id": ["q1"], "doc_id": ["a"]})
    with pytest.raises(FormatError, match="no column for the topic"):
        as_runs({"docno": ["a"], "score": [1.0]})


def test_a_topic_may_be_called_like_a_column():
    assert as_runs({"query": ["a"], "score": ["b"]})[0].to_dict() == {"query": {"a": 1.0}, "score": {"b": 1.0}}


# padded arrays


def test_padded_arrays_are_a_run():
    ids, scores = np.array([[4, 9, -1], [7, -1, -1]]), np.array([[0.5, 0.9, NAN], [1, 5, NAN]], np.float32)
    run = Run.from_arrays(["q1", "q2"], ids, scores, name="faiss")
    assert run.name == "faiss"
    assert run.to_dict() == {"q1": {"4": 0.5, "9": pytest.approx(0.9)}, "q2": {"7": 1.0}}
    assert cranfield.evaluate({"q1": {"4": 1}, "q2": {"7": 1}}, run, "RR").values[0, 0].tolist() == [0.5, 1.0]


@pytest.mark.parametrize("kind", ["i4", "i8", "u8", "U", "O"])
def test_ids_are_whole_numbers_or_text(kind):
    run = Run.from_arrays(np.array([301, 302]), np.array([[3, 1], [2, 0]]).astype(kind), [[1, 2], [2, 1]])
    assert run.to_dict() == {"301": {"3": 1.0, "1": 2.0}, "302": {"2": 2.0, "0": 1.0}}


@pytest.mark.parametrize(
    ("ids", "padding"),
    [
        ([["a", "b"], ["c", ""]], -1),
        (np.array([["a", "b"], ["c", None]], object), -1),
        ([["a", "b"], ["c", "PAD"]], "PAD"),
        (np.ma.masked_equal(np.array([["a", "b"], ["c", "x"]]), "x"), -1),
    ],
)
def test_cells_that_pad_a_row_are_dropped(ids, padding):
    run = Run.from_arrays(["q1", "q2"], ids, [[2, 1], [1, NAN]], padding=padding)
    assert run.to_dict() == {"q1": {"a": 2.0, "b": 1.0}, "q2": {"c": 1.0}}


def test_another_number_or_nothing_pads():
    assert Run.from_arrays(["q"], [[0, 5]], padding=0).to_dict() == {"q": {"5": 1.0}}
    assert list(Run.from_arrays(["q"], [[-1, 5]], padding=None).to_dict()["q"]) == ["-1", "5"]


def test_without_scores_the_columns_are_in_order():
    assert Run.from_arrays(["q1"], [[5, 9, 7]])["q1"] == [("5", 3.0), ("9", 2.0), ("7", 1.0)]


def test_rows_without_documents_are_topics_without_documents():
    assert Run.from_arrays(["q1", "q2"], np.zeros((2, 0), np.int64), np.zeros((2, 0))).to_dict() == {"q1": {}, "q2": {}}


class Arrayed:
    """A tensor that NumPy reads through `__array__`, as torch's."""

    def __init__(self, values: Any) -> None:
        self.values = np.array(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values if dtype is None else self.values.astype(dtype)


class Packed:
    """A tensor that speaks DLPack alone."""

    def __init__(self, values: Any) -> None:
        self.values = np.array(values)

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


class Elsewhere:
    """A tensor in memory that NumPy cannot see."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError("can't convert a cuda tensor to numpy; use .cpu()")


@pytest.mark.parametrize("tensor", [Arrayed, Packed])
def test_tensors_are_read_as_arrays(tensor):
    run = Run.from_arrays(["q1"], tensor([[4, 9, -1]]), tensor([[0.5, 1.5, NAN]]))
    assert run["q1"] == [("9", 1.5), ("4", 0.5)]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((["q1", "q2"], [[1, 2], [3, 4]], [[1, 2], [NAN, 3]]), r"scores\[1, 0\]: .*row 1, column 0 from 0.*found nan"),
        ((["q1", "q2"], [[1, 2]], [[1, 2]]), "a row for each of 2 topics, found 1"),
        ((["q1"], [1, 2], [1, 2]), "expected 2 dimensions, topics × depth, found 1"),
        ((["q1"], [[1, 2]], [[1, 2, 3]]), r"scores: expected the shape of the ids, \(1, 2\), found \(1, 3\)"),
        ((["q1"], [[1, 2]], [["1", "2"]]), "scores: expected numbers"),
        ((["q1"], [[1.0, 2.0]], [[1, 2]]), r"ids\[0, 0\]: expected an id that is text or a whole number, found 1.0"),
        ((["q1"], [[True]], [[1]]), r"ids\[0, 0\]: expected an id"),
        ((["q1"], [[b"a"]], [[1]]), r"ids\[0, 0\]: expected an id"),
        ((["q1", "q1"], [[1], [2]], [[1], [2]]), r"topics\[1\]: topic 'q1' occurs twice, first at 0"),
        ((["q1", None], [[1], [2]], [[1], [2]]), r"topics\[1\]: expected an id"),
        (("q1", [[1]], [[1]]), "topics: expected a list of ids, found 'q1'"),
        ((["q1"], Elsewhere(), [[1]]), r"ids: expected an array that NumPy can read: can't convert a cuda tensor"),
        ((["q1"], [[1], [2, 3]], [[1]]), "ids: expected an array that NumPy can read"),
    ],
)
def test_arrays_that_are_no_run_are_refused(given, says):
    with pytest.raises(DataError, match=says):
        Run.from_arrays(*given)


def test_a_document_twice_in_a_row_of_an_array_is_refused():
    with pytest.raises(DuplicateError, match="document '7' occurs twice for topic 'q1'"):
        cranfield.evaluate(QRELS, Run.from_arrays(["q1"], [[7, 7]]), "RR")


# other libraries' objects


def test_measures_of_ir_measures_are_read_by_their_names():
    ir_measures = pytest.importorskip("ir_measures", reason="ir_measures is not installed")
    given = [ir_measures.nDCG @ 10, ir_measures.P(rel=2) @ 5, "AP", ir_measures.nDCG(dcg="exp-log2") @ 5]
    scores = cranfield.evaluate(QRELS, {"q1": ["a"]}, given)
    assert list(scores.measures) == ["nDCG@10", "P(rel=2)@5", "AP", "nDCG(dcg='exp-log2')@5"]
    assert float(cranfield.evaluate(QRELS, {"q1": ["a"]}, ir_measures.RR)) == 0.5
    assert cranfield.measure(ir_measures.AP(rel=2) @ 100) == cranfield.measure("AP(rel=2)@100")


def test_an_object_of_another_library_is_no_measure():
    with pytest.raises(MeasureError, match="expected a measure's name"):
        cranfield.evaluate(QRELS, {"q1": ["a"]}, [SimpleNamespace()])


class RanxRun:
    """Of the shape of ranx's `Run`, which is not among the packages of the tests: a name, and the lists as `run`."""

    def __init__(self, run: dict[str, dict[str, float]], name: str | None = None) -> None:
        self.run, self.name = run, name


class RanxQrels:
    """The same for its `Qrels`."""

    def __init__(self, qrels: dict[str, dict[str, int]], name: str | None = None) -> None:
        self.qrels, self.name = qrels, name


def test_qrels_and_runs_of_ranx_are_read():
    bm25, unnamed = RanxRun({"q1": {"b": 2.0, "a": 1.0}}, "bm25"), RanxRun({"q2": {"c": 1.0}})
    scores = cranfield.evaluate(RanxQrels(QRELS), [bm25, unnamed], "RR")
    assert scores.runs == ["bm25", "run"]
    assert scores.values[:, 0].tolist() == [[0.5, 0], [0, 1]]
    assert cranfield.evaluate(RanxQrels(QRELS), {"mine": bm25}, "RR").runs == ["mine"]


def test_qrels_of_ranx_are_no_run():
    with pytest.raises(FormatError, match="expected a run, found qrels"):
        as_runs(RanxQrels(QRELS))
