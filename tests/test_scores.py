"""Scores: what one can ask of them, how they look, and how they go out."""

from __future__ import annotations

import csv
import io
import json
import pickle
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Conventions, Scores, evaluate, measure
from cranfield.base.errors import DataError, MissingExtraError
from cranfield.base.text_layout import aligned, listed, width
from cranfield.evaluation.scores import conventions_in_words, nearest_preset

QRELS = {"q1": {"a": 1, "b": 0, "c": 2}, "q2": {"a": 1, "d": 1}, "q3": {"e": 0, "f": 1}}
FIRST = {"q1": {"a": 3, "b": 2, "c": 1}, "q2": {"d": 3, "x": 2, "a": 1}, "q3": {"e": 2, "f": 1}}
SECOND = {"q1": {"c": 3, "a": 2, "b": 1}, "q2": {"x": 3, "a": 2}}


@pytest.fixture
def one() -> Scores:
    return evaluate(QRELS, {"first": FIRST}, "AP RR P@1")


@pytest.fixture
def two() -> Scores:
    return evaluate(QRELS, {"first": FIRST, "second": SECOND}, "AP RR P@1")


# asking


def test_a_measure_gives_an_array_over_topics(one):
    assert one["RR"].tolist() == [1.0, 1.0, 0.5]
    assert one["AP", "q1"] == pytest.approx((1 + 2 / 3) / 2)


def test_several_runs_give_runs_by_topics(two):
    assert two["RR"].shape == (2, 3)
    assert two["second", "RR"].tolist() == [1.0, 0.5, 0.0]
    assert two["RR", "second"].tolist() == [1.0, 0.5, 0.0]
    assert two["second"].shape == (3, 3)
    assert two["q2"].shape == (2, 3)
    assert two["second", "RR", "q2"] == 0.5


def test_a_measure_answers_to_any_of_its_names(one):
    assert one["map"] is not None
    assert one["map"].tolist() == one["AP"].tolist() == one[measure("AP")].tolist()
    assert one.mean("recip_rank") == one.mean("RR")


def test_the_array_is_runs_by_measures_by_topics(two):
    assert two.shape == np.asarray(two).shape == (2, 3, 3)
    assert np.asarray(two)[1, 1].tolist() == [1.0, 0.5, 0.0]
    assert np.asarray(two, dtype=np.float32).dtype == np.float32
    copied = np.array(two, copy=True)
    copied[:] = 7
    assert two["first", "RR", "q1"] == 1.0


def test_a_name_means_a_measure_before_a_run_before_a_topic():
    scores = evaluate({"AP": {"d": 1}, "RR": {"e": 1}}, {"AP": {"AP": {"d": 1}, "RR": {"x": 2, "e": 1}}}, "AP")
    assert scores["AP"].tolist() == [1.0, 0.5]  # the measure, over topics
    assert scores["AP", "AP"].tolist() == [1.0, 0.5]  # the measure and the run
    assert scores["AP", "AP", "AP"] == 1.0  # and the topic
    assert scores.at(topic="RR") == 0.5
    two = evaluate({"q": {"d": 1}}, {"P@1": {"q": {"x": 1}}, "R@1": {"q": {"d": 1}}}, "P@1 RR")
    assert two["P@1"].tolist() == [[0.0], [1.0]]
    assert two.at(run="P@1").tolist() == [[0.0], [0.0]]


def test_an_unknown_name_is_an_error_that_lists_the_known_ones(two):
    with pytest.raises(DataError, match="no run, measure or topic third; measures are AP, RR, P@1; runs are 'first'"):
        two["third"]
    with pytest.raises(DataError, match=r"which run\?; there are 'first', 'second'"):
        two.mean("AP")
    with pytest.raises(DataError, match="no measure 'nDCG'"):
        two.mean("nDCG", "first")


def test_one_run_and_one_measure_are_a_number():
    assert float(evaluate({"q": {"a": 1}}, {"q": {"b": 2, "a": 1}}, "RR")) == 0.5


def test_means_leave_out_what_does_not_count():
    scores = evaluate(QRELS, SECOND, "RR", missing="skip")
    assert scores.mean() == 0.75
    assert np.isnan(scores["RR", "q3"])
    assert scores.to_dict(per_topic=True)["runs"][0]["topics"].keys() == {"q1", "q2"}
    assert {topic for _, topic, _, _ in scores.rows()} == {"q1", "q2"}


def test_a_mean_over_no_topic_is_undefined():
    scores = evaluate(QRELS, {"run": {"other": {"a": 1}}}, "RR NumRet", missing="skip")
    assert np.isnan(scores.mean("RR"))
    assert scores.to_dict()["runs"][0]["mean"] == {"RR": None, "NumRet": None}
    assert scores.to_text().splitlines()[1].split() == ["run", "-", "-", "3", "0", "3"]


def test_a_mean_adds_topics_in_byte_order_as_trec_eval_does():
    values = {"b": 1, "a": 3, "B": 7, "10": 9, "9": 6}
    qrels = {topic: {f"d{i}": 1 for i in range(n)} for topic, n in values.items()}
    run = {topic: {f"d{i}": -i for i in range(0, n, 2)} for topic, n in values.items()}
    scores = evaluate(qrels, run, "R@100")
    total = 0.0
    for topic in sorted(values):
        total += scores["R@100", topic]
    assert scores.mean() == total / 5


def test_select_keeps_the_order_asked_for(two):
    part = two.select(runs=["second", "first"], measures=["RR"], topics=["q3", "q1"])
    assert (part.runs, list(part.measures), part.topics) == (["second", "first"], ["RR"], ["q3", "q1"])
    assert part["RR"].tolist() == [[0.0, 1.0], [0.5, 1.0]]
    assert part.absent.missing == {"second": ["q3"]}
    assert two.select(topics=["q1"]).absent.missing == {}


def test_sort_puts_the_best_first_and_the_undefined_last():
    runs = {"b": FIRST, "a": SECOND, "c": {"other": {"x": 1}}}
    scores = evaluate(QRELS, runs, "AP", missing="skip")
    means = [scores.mean("AP", run) for run in scores.sort("AP").runs]
    assert means[0] > means[1]
    assert np.isnan(means[2])
    assert scores.sort("map").runs == scores.sort("AP").runs
    assert scores.sort("name").runs == ["a", "b", "c"]


def test_equality_compares_numbers_not_objects(two):
    again = evaluate(QRELS, {"first": FIRST, "second": SECOND}, "AP RR P@1")
    assert two == again
    assert two != evaluate(QRELS, {"first": FIRST, "second": SECOND}, "AP RR P@1", missing="skip")
    assert two != two.select(runs=["first"])
    assert two != "scores"
    skipped = evaluate(QRELS, SECOND, "AP", missing="skip")
    assert skipped == evaluate(QRELS, SECOND, "AP", missing="skip")  # undefined equals undefined here


def test_pickled_and_read_back_is_the_same(two):
    again = pickle.loads(pickle.dumps(two))
    assert again == two
    assert again.absent == two.absent
    assert repr(again) == repr(two)


# looking


def test_it_prints_as_a_table_with_topics_and_conventions(two):
    assert repr(two).splitlines() == [
        "run         AP      RR     P@1  judged  retrieved  missing",
        "first   0.7222  0.8333  0.6667       3          3        0",
        "second  0.4167  0.5000  0.3333       3          2        1",
        "conventions: cranfield",
    ]


def test_counts_print_without_decimals(one):
    scores = evaluate(QRELS, FIRST, "NumRet AP")
    assert scores.to_text(digits=2).splitlines()[1].split()[:3] == ["run", "8", "0.72"]
    assert scores.to_csv().splitlines()[1].startswith("run,8,0.72")


def test_a_wide_table_is_cut_into_blocks_that_repeat_the_names(two):
    lines = two.to_text(limit=30, verbose=True, limits=False).split("\n\nscored on")[0].splitlines()
    assert all(len(line) <= 30 for line in lines)
    assert [line.split() for line in lines if line.startswith("run")] == [
        ["run", "AP", "RR", "P@1"][:4],
        ["run", "judged", "retrieved"],
        ["run", "missing"],
    ]
    table, _, conventions = two.to_text(limit=3, verbose=True, limits=False).rpartition("\n\n")
    assert table.count("\n\n") == 5  # never fewer than one column a block
    assert "conventions: " in conventions


def test_a_screen_that_is_too_narrow_does_without_the_counts(two):
    head = two.to_text(limit=40).splitlines()[0]
    assert head.split() == ["run", "AP", "RR", "P@1", "missing"]


def test_styles_mark_the_head_and_the_best_means(two):
    text = two.to_text(style=lambda kind, cell: f"<{kind}:{cell.strip()}>")
    assert text.splitlines()[0].startswith("<head:run>  <head:AP>")
    assert text.count("<best:") == 3
    assert "<best:" not in two.select(runs=["first"]).to_text(style=lambda kind, cell: f"<{kind}:{cell}>")


def test_html_is_escaped_and_has_header_cells():
    scores = evaluate({"<q>": {"d": 1}}, {"<b>run</b>": {"other": {"d": 1}}}, "AP")
    html = scores._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;run&lt;/b&gt;" in html
    assert '<th scope="row"' in html
    assert '<th scope="col">' in html
    assert "<caption>" in html
    assert "answers none of the 1 judged topics" in html


@given(st.lists(st.lists(st.text(max_size=6), min_size=3, max_size=3), min_size=1, max_size=5))
def test_columns_line_up_whatever_they_hold(rows):
    lines = aligned(rows, names=1, style=lambda r, c, cell: cell if c == 2 else cell + "|")
    ends = [[width(part) for part in line.split("|  ")[:2]] for line in lines if line.count("|  ") == 2]
    if not any("|" in cell for row in rows for cell in row):
        assert all(end == ends[0] for end in ends)


def test_no_rows_are_no_lines():
    assert aligned([]) == []


def test_a_list_of_names_is_cut_after_a_few():
    assert listed(["a", "b"]) == "'a', 'b'"
    assert listed([str(i) for i in range(9)]) == "'0', '1', '2', '3', '4' and 4 more"


# saying


def test_a_missing_topic_is_reported_as_in_the_style_guide(two):
    assert two.notes() == [
        """topic 'q3' is judged but missing from second; it scores 0 (use missing="skip" to leave it out)"""
    ]
    assert two.notes(shell=True)[0].endswith("(use --missing skip to leave it out)")


def test_several_missing_topics_share_a_sentence():
    qrels = {str(i): {"d": 1} for i in range(8)}
    scores = evaluate(qrels, {"run": {"0": {"d": 1}}}, "AP", missing="skip")
    assert scores.notes() == [
        "7 topics are judged but missing from run ('1', '2', '3', '4', '5' and 2 more); they are left out "
        '(use missing="zero" to score them 0)'
    ]


def test_many_runs_that_lack_topics_share_a_sentence():
    qrels = {"1": {"d": 1}, "2": {"d": 1}, "3": {"d": 1}}
    runs = {f"r{i}": {"1": {"d": 1}, **({"2": {"d": 1}} if i else {})} for i in range(6)}
    [note] = evaluate(qrels, runs, "AP").notes()
    assert note == (
        "6 runs lack judged topics (1 to 2 each; r0 lacks '2', '3'); they score 0 (use missing=\"skip\" to leave them out)"
    )


def test_topics_without_relevant_documents_and_topics_without_judgments_are_reported():
    qrels = {"1": {"d": 1}, "2": {"d": 0}}
    run = {"1": {"d": 1}, "2": {"d": 1}, "8": {"d": 1}, "9": {"d": 1}}
    assert evaluate(qrels, run, "AP").notes() == [
        """topic '2' has no relevant document; it scores 0 (use no_relevant="skip" to leave it out)""",
        "2 topics of run are not judged ('8', '9'); they are left out",
    ]
    assert evaluate(qrels, run, "AP", no_relevant="skip").notes(shell=True)[0] == (
        "topic '2' has no relevant document; it is left out (use --no-relevant zero to score it 0)"
    )
    runs = {f"r{i}": run for i in range(7)}
    assert evaluate(qrels, runs, "AP").notes()[1] == (
        "7 runs answer topics that are not judged (2 in all; r0 has '8', '9'); they are left out"
    )


def test_a_run_for_other_topics_is_noticed():
    assert evaluate({"1": {"d": 1}, "2": {"d": 1}}, {"7": {"d": 1}}, "AP").notes()[0] == (
        "run answers none of the 2 judged topics; is it a run for these judgments?"
    )


def test_conventions_are_said_in_full_and_in_short():
    assert conventions_in_words(Conventions(collapse="#", drop_self=True)) == (
        "ties=document-descending, scores=double, missing=zero, no_relevant=zero, unjudged=irrelevant, "
        "negative=unjudged, duplicates=error, collapse=#, drop_self"
    )
    assert conventions_in_words(Conventions()).startswith("cranfield (ties=")
    assert nearest_preset(Conventions(unjudged="drop")) == "cranfield with unjudged=drop"


# going out


def test_as_a_dict_it_has_the_shape_of_the_documentation(one):
    given = one.to_dict()
    assert set(given) == {"measures", "runs", "conventions"}
    assert given["measures"] == ["AP", "RR", "P@1"]
    [run] = given["runs"]
    assert set(run) == {"run", "mean"}
    assert run["mean"] == one.means()
    [run] = one.to_dict(per_topic=True)["runs"]
    assert run["topics"]["q3"] == {"AP": 0.5, "RR": 0.5, "P@1": 0.0}
    assert given["conventions"] == Conventions().to_dict()


def test_what_is_absent_is_told_to_programs_too(two):
    assert two.to_dict()["absent"] == {"missing": {"second": ["q3"]}}


def test_json_reads_back_to_the_dict(two):
    assert json.loads(two.to_json(per_topic=True)) == two.to_dict(per_topic=True)
    assert json.loads(two.to_json(digits=1))["runs"][0]["mean"]["AP"] == 0.7


def test_json_is_valid_whatever_bytes_an_id_holds():
    scores = evaluate({"caf\udce9": {"d": 1}, "é": {"d": 1}}, {"caf\udce9": {"d": 1}}, "AP")
    text = scores.to_json(per_topic=True)
    assert text.encode()
    assert list(json.loads(text)["runs"][0]["topics"]) == ["caf\udce9", "é"]
    assert "é" in evaluate({"é": {"d": 1}}, {"é": {"d": 1}}, "AP").to_json(per_topic=True)


def test_csv_holds_the_numbers_in_full(two):
    rows = list(csv.DictReader(io.StringIO(two.to_csv())))
    assert [float(row["AP"]) for row in rows] == [two.mean("AP", run) for run in two.runs]
    assert [row["missing"] for row in rows] == ["0", "1"]
    topics = list(csv.DictReader(io.StringIO(two.to_csv(per_topic=True))))
    assert [row["topic"] for row in topics] == ["q1", "q2", "q3"] * 2
    assert float(topics[4]["RR"]) == 0.5
    assert two.to_csv(digits=2).splitlines()[1] == "first,0.72,0.83,0.67,3,3,0"


def test_csv_quotes_names_that_hold_commas():
    scores = evaluate({"q": {"d": 1}}, {"a,b": {"q": {"d": 1}}}, ["AP(rel=1, divide=cut)@5"])
    [row] = csv.DictReader(io.StringIO(scores.to_csv()))
    assert row["run"] == "a,b"
    assert row["AP(rel=1, divide=cut)@5"] == "1.0"
    assert scores.to_tsv().splitlines()[0].split("\t")[:2] == ["run", "AP(rel=1, divide=cut)@5"]


def test_trec_text_is_laid_out_as_trec_eval_does():
    scores = evaluate({"9": {"d": 1}, "10": {"d": 1}}, {"bm25": {"9": {"d": 1}, "10": {"x": 2, "d": 1}}}, "map num_ret")
    assert scores.to_trec(per_topic=True) == (
        "map                   \t10\t0.5000\n"
        "num_ret               \t10\t2\n"
        "map                   \t9\t1.0000\n"
        "num_ret               \t9\t1\n"
        "runid                 \tall\tbm25\n"
        "map                   \tall\t0.7500\n"
        "num_ret               \tall\t3\n"
    )
    assert scores.to_trec().splitlines()[0].startswith("runid")


def test_rows_and_columns_agree(two):
    columns = two.to_columns()
    assert list(zip(*columns.values(), strict=True)) == list(two.rows())
    assert len(columns["value"]) == 2 * 3 * 3
    empty = evaluate(QRELS, {"x": {"d": 1}}, "AP", missing="skip").to_columns()
    assert empty == {"run": [], "topic": [], "measure": [], "value": []}


@pytest.mark.parametrize("read", [pl.DataFrame, pa.table, lambda scores: duckdb.arrow(pa.table(scores)).pl()])
def test_arrow_reaches_the_frame_libraries(read, two):
    frame = read(two)
    names = frame.column_names if isinstance(frame, pa.Table) else frame.columns
    assert list(names) == ["run", "topic", "measure", "value"]
    values = frame["value"].to_pylist() if isinstance(frame, pa.Table) else frame["value"].to_list()
    assert values == two.to_columns()["value"]


def test_columns_make_a_pandas_frame(two):
    frame = pd.DataFrame(two.to_columns())
    mean = frame[frame.measure == "RR"].groupby("run").value.mean()
    assert mean["second"] == 0.5


def test_scores_go_out_as_frames_of_three_libraries(two):
    columns = two.to_columns()
    assert two.to_pandas().to_dict("list") == columns
    assert two.to_polars().to_dict(as_series=False) == columns
    assert two.to_arrow().to_pydict() == columns
    nothing = evaluate(QRELS, {"x": {"d": 1}}, "AP", missing="skip")
    assert nothing.to_polars().is_empty()
    assert nothing.to_pandas().empty


def test_frame_libraries_take_scores_as_they_are_and_numpy_the_array(two):
    frame = pd.DataFrame(two)
    assert frame.equals(two.to_pandas())
    assert list(frame.columns) == ["run", "topic", "measure", "value"]
    assert frame["value"].dtype == np.float64
    assert pl.DataFrame(two).equals(two.to_polars())
    assert pa.table(two).equals(two.to_arrow())
    assert np.asarray(two).shape == two.shape == (2, 3, 3)


def test_scores_are_rows_by_number_and_arrays_by_name():
    skipped = evaluate(QRELS, {"first": FIRST, "second": SECOND}, "AP RR", missing="skip")
    rows = list(skipped.rows())
    assert [skipped[i] for i in range(len(skipped))] == rows == list(skipped)
    assert len(rows) == 2 * (3 + 2)
    assert (
        skipped[-1] == ("second", "q2", "RR", 0.5) == (rows[-1].run, rows[-1].topic, rows[-1].measure, rows[-1].value)
    )
    with pytest.raises(IndexError, match="no row 10; there are 10"):
        skipped[10]


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_a_library_that_is_not_there_is_named(name, one, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=rf"{name} is not installed: pip install {name}"):
        getattr(one, f"to_{name.removeprefix('py')}")()


def test_arrow_spells_out_bytes_that_are_no_text():
    table = pa.table(evaluate({"caf\udce9": {"d": 1}}, {"caf\udce9": {"d": 1}}, "AP"))
    assert table["topic"].to_pylist() == ["caf\\udce9"]


def test_without_pyarrow_the_way_out_is_named(one, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"to_columns.*cranfield\[parquet\]"):
        one.__arrow_c_stream__()
