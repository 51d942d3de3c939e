"""The contingency table, micro averages and the other additions to sets, precision, AP and first relevant, against oracles.

The table's oracle is scikit-learn over every document of a collection that is small enough to write down; that of
graded average precision and of recall at a precision is the definition, computed the long way.
"""

from __future__ import annotations

import math
import random
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Extras, Scores, evaluate
from cranfield.base.errors import DataError
from hypotheses import examples
from oracles import proves
from shell import cranfield

SIZE = 12

Grades = dict[str, float]


def collections(topics: int = 1) -> st.SearchStrategy[list[tuple[Grades, list[str]]]]:
    """Topics over a collection of 12 documents: the grades of some, and some of them in the order returned."""
    documents = [f"d{i:02}" for i in range(SIZE)]
    judged = st.dictionaries(st.sampled_from(documents), st.sampled_from([0.0, 1.0, 2.0]), min_size=1)
    returned = st.lists(st.sampled_from(documents), unique=True, min_size=1)
    return st.lists(st.tuples(judged, returned), min_size=topics, max_size=topics)


def scores_of(given_: list[tuple[Grades, list[str]]], measures: str, **options: Any) -> Scores:
    qrels = {f"t{i}": grades for i, (grades, _) in enumerate(given_)}
    run = {f"t{i}": {d: -float(n) for n, d in enumerate(ranking)} for i, (_, ranking) in enumerate(given_)}
    return evaluate(qrels, run, measures, extras=Extras(size=SIZE), **options)


def truth(grades: Grades, returned: list[str]) -> tuple[list[bool], list[bool]]:
    """For each document of the collection, whether it is relevant and whether it was returned."""
    documents = [f"d{i:02}" for i in range(SIZE)]
    return [grades.get(d, 0) >= 1 for d in documents], [d in returned for d in documents]


def over(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


RATES = "SetAccuracy Prevalence FallOut Specificity MissRate NPV FDR FOR SetP SetR"


def rates(tn: float, fp: float, fn: float, tp: float) -> dict[str, float]:
    """The lecture's table (004), cell by cell."""
    return {
        "SetAccuracy": (tp + tn) / (tn + fp + fn + tp),
        "Prevalence": (tp + fn) / (tn + fp + fn + tp),
        "FallOut": over(fp, fp + tn),
        "Specificity": over(tn, fp + tn),
        "MissRate": over(fn, tp + fn),
        "NPV": over(tn, tn + fn),
        "FDR": over(fp, tp + fp),
        "FOR": over(fn, tn + fn),
        "SetP": over(tp, tp + fp),
        "SetR": over(tp, tp + fn),
    }


@proves("SetAccuracy", "Prevalence", "FallOut", "Specificity", "MissRate", "NPV", "FDR", "FOR")
@examples(30)
@given(given_=collections())
def test_the_rates_of_the_contingency_table_against_scikit_learn(given_: list[tuple[Grades, list[str]]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    relevant, returned = truth(*given_[0])
    tn, fp, fn, tp = metrics.confusion_matrix(relevant, returned, labels=[False, True]).ravel().tolist()
    assert scores_of(given_, RATES).means() == pytest.approx(rates(tn, fp, fn, tp), abs=1e-12)
    assert scores_of(given_, "SetAccuracy").mean() == pytest.approx(metrics.accuracy_score(relevant, returned))


@proves("LRplus", "LRminus", "DOR")
@examples(30)
@given(given_=collections())
def test_likelihood_ratios_and_the_odds_ratio_against_scikit_learn(given_: list[tuple[Grades, list[str]]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    relevant, returned = truth(*given_[0])
    tn, fp, fn, tp = metrics.confusion_matrix(relevant, returned, labels=[False, True]).ravel().tolist()
    found = scores_of(given_, "LRplus LRminus DOR").means()
    table = rates(tn, fp, fn, tp)
    assert math.isnan(found["LRplus"]) == (fp == 0)
    assert math.isnan(found["LRminus"]) == (tn == 0)
    assert math.isnan(found["DOR"]) == (fp * fn == 0)
    if tp + fn and fp and tn:
        plus, minus = metrics.class_likelihood_ratios(relevant, returned)
        assert (found["LRplus"], found["LRminus"]) == pytest.approx((plus, minus))
        assert found["LRplus"] == pytest.approx(table["SetR"] / table["FallOut"])
    if fp and fn and tn and tp:
        assert found["DOR"] == pytest.approx(found["LRplus"] / found["LRminus"])
    smooth = scores_of(given_, "DOR(smooth=0.5)").mean()
    assert smooth == pytest.approx((tp + 0.5) * (tn + 0.5) / (fp + 0.5) / (fn + 0.5))


@proves("AUROC")
@examples(30)
@given(given_=collections())
def test_the_area_under_the_roc_curve_against_scikit_learn(given_: list[tuple[Grades, list[str]]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    grades, ranking = given_[0]
    relevant, _ = truth(grades, ranking)
    score = [-ranking.index(d) if d in ranking else -SIZE for d in (f"d{i:02}" for i in range(SIZE))]
    found = scores_of(given_, "AUROC").mean()
    if not any(relevant) or all(relevant):
        assert found == 0
    else:
        assert found == pytest.approx(metrics.roc_auc_score(relevant, score))


@proves("AUROC")
def test_the_area_under_the_roc_curve_against_exact_enumeration_of_all_pairs() -> None:
    rng = random.Random(5)
    for _ in range(30):
        ranking = rng.sample([f"d{i:02}" for i in range(SIZE)], rng.randint(1, SIZE))
        grades = {f"d{i:02}": float(rng.random() < 0.4) for i in range(SIZE)}
        place = {d: ranking.index(d) if d in ranking else SIZE for d in grades}
        pairs = [(a, b) for a in grades for b in grades if grades[a] >= 1 > grades[b]]
        right = sum((place[a] < place[b]) + (place[a] == place[b]) / 2 for a, b in pairs)
        assert scores_of([(grades, ranking)], "AUROC").mean() == pytest.approx(over(right, len(pairs)))


@proves("FallOut")
def test_fall_out_at_k_equals_fall_out_of_the_list_cut_by_hand() -> None:
    grades = {"d00": 1.0, "d01": 0.0, "d02": 1.0}
    found = [scores_of([(grades, ["d00", "d01", "d03"])], f"FallOut@{k}").mean() for k in (1, 2, 3)]
    assert found == pytest.approx([0, 1 / 10, 2 / 10])


def test_the_naive_system_that_returns_everything_against_lecture_004() -> None:
    everything = [({"d00": 1.0, "d01": 1.0}, [f"d{i:02}" for i in range(SIZE)])]
    found = scores_of(everything, "SetP Prevalence MissRate FallOut AUROC").means()
    assert found["SetP"] == found["Prevalence"] == pytest.approx(2 / SIZE)  # R/N
    assert (found["MissRate"], found["FallOut"]) == (0, 1)


def test_a_collection_smaller_than_what_is_known_of_it_is_refused() -> None:
    with pytest.raises(DataError, match="given as 2, but 3 documents are relevant or returned for topic 'q'"):
        evaluate({"q": {"a": 1}}, {"q": {"b": 2, "c": 1}}, "FallOut", extras=Extras(size=2))
    with pytest.raises(DataError, match="FallOut needs the number of documents in the collection"):
        evaluate({"q": {"a": 1}}, {"q": {"b": 2}}, "FallOut")
    assert evaluate({"q": {"a": 1}}, {"q": {"b": 2}}, "MissRate FDR").means() == {"MissRate": 1, "FDR": 1}


# micro and macro (lecture 004)

MICRO = " ".join(
    f"{name}(average=micro)" for name in "SetP SetR SetF SetAccuracy FallOut Specificity MissRate NPV FDR FOR".split()
)


@proves("SetP", "SetR", "SetF")
@examples(20)
@given(given_=collections(3))
def test_micro_averages_against_scikit_learn_on_the_pooled_documents(given_: list[tuple[Grades, list[str]]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    pairs = [truth(*topic) for topic in given_]
    relevant, returned = (np.concatenate([pair[i] for pair in pairs]) for i in (0, 1))
    tn, fp, fn, tp = metrics.confusion_matrix(relevant, returned, labels=[False, True]).ravel().tolist()
    pooled = rates(tn, fp, fn, tp)
    pooled["SetF"] = over(2 * tp, 2 * tp + fp + fn)
    found = scores_of(given_, MICRO).means()
    assert found == pytest.approx({name: pooled[name.partition("(")[0]] for name in found}, abs=1e-12)


@proves("SetP", "SetR", "R")
def test_micro_and_macro_averages_against_lecture_004() -> None:
    qrels = {"A": {"a": 1, "b": 1, "c": 1, "e": 1}, "B": {"x": 1}}
    run = {"A": {"a": 2, "z": 1}, "B": {"x": 9, "y": 8, "w": 7, "v": 6}}
    names = "SetP SetP(average=micro) SetR SetR(average=micro) R@1 R(average=micro)@1"
    scores = evaluate(qrels, run, names)
    # A: TP 1, FP 1, FN 3.  B: TP 1, FP 3, FN 0.
    assert scores.means() == {
        "SetP": (1 / 2 + 1 / 4) / 2,
        "SetP(average=micro)": 2 / 6,
        "SetR": (1 / 4 + 1) / 2,
        "SetR(average=micro)": 2 / 5,
        "R@1": (1 / 4 + 1) / 2,
        "R(average=micro)@1": 2 / 5,
    }
    assert scores["SetP(average=micro)"].tolist() == scores["SetP"].tolist()  # a topic's own value stays
    assert scores.select(topics=["B"]).mean("SetP(average=micro)") == 1 / 4
    assert scores.select(measures=["SetR(average=micro)"]).mean() == 2 / 5
    skipped = evaluate(qrels, {"A": run["A"]}, "SetP(average=micro) SetR(average=micro)", missing="skip")
    assert skipped.means() == {"SetP(average=micro)": 1 / 2, "SetR(average=micro)": 1 / 4}
    zero = evaluate(qrels, {"A": run["A"]}, "SetP(average=micro) SetR(average=micro)")
    assert zero.means() == {"SetP(average=micro)": 1 / 2, "SetR(average=micro)": 1 / 5}
    assert evaluate(qrels, run, "median(SetP(average=micro))").mean() == 3 / 8  # asked for otherwise


# precision and recall


@proves("RelativeP")
def test_capped_recall_has_the_name_and_the_formula_of_beir() -> None:
    qrels = {"q": {f"r{i}": 1 for i in range(30)}, "s": {"x": 1, "y": 1}}
    run = {"q": {f"r{i}": -i for i in range(8)}, "s": {"a": 3, "x": 2, "b": 1}}
    scores = evaluate(qrels, run, "R_cap@10")
    assert scores["R_cap@10"].tolist() == [8 / 10, 1 / 2]  # found / min(relevant, k)


@proves("RecallAtP")
@examples(30)
@given(
    given_=collections(),
    least=st.sampled_from([0, 0.2, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 1]),
    k=st.none() | st.integers(1, 8),
)
def test_recall_at_a_precision_against_a_search_over_all_cuts(
    given_: list[tuple[Grades, list[str]]], least: float, k: int | None
) -> None:
    grades, ranking = given_[0]
    relevant = sum(grade >= 1 for grade in grades.values())
    found = [sum(grades.get(d, 0) >= 1 for d in ranking[:cut]) for cut in range(1, len(ranking[:k]) + 1)]
    reached = [over(n, relevant) for cut, n in enumerate(found, 1) if n / cut >= least]
    name = f"RecallAtP(precision={least})" + (f"@{k}" if k else "")
    assert scores_of(given_, name).mean() == pytest.approx(max(reached, default=0))


# average precision


def graded_average_precision(grades: list[float], missed: list[float], users: dict[float, float]) -> float:
    """Robertson, Kanoulas & Yilmaz (2010), equation by equation: users hold thresholds with these probabilities."""

    def share(grade: float) -> float:
        return sum(p for threshold, p in users.items() if threshold <= grade)

    total = sum(
        sum(share(min(grades[m], grades[n])) for m in range(n + 1)) / (n + 1)
        for n in range(len(grades))
        if grades[n] > 0
    )
    return over(total, sum(map(share, [*grades, *missed])))


@proves("GAP")
@examples(30)
@given(
    grades=st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]), min_size=1, max_size=8),
    missed=st.lists(st.sampled_from([1.0, 2.0, 3.0]), max_size=3),
)
def test_graded_average_precision_against_the_paper_s_equations(grades: list[float], missed: list[float]) -> None:
    qrels = {"q": {f"d{i}": grade for i, grade in enumerate([*grades, *missed])}}
    run = {"q": {f"d{i}": -i for i in range(len(grades))}}
    scores = evaluate(qrels, run, "GAP GAP(gain={1:0.2,2:0.3,3:1}) GAP(gain=exp2) AP")
    equal = graded_average_precision(grades, missed, {1: 1 / 3, 2: 1 / 3, 3: 1 / 3})
    given_ = graded_average_precision(grades, missed, {1: 0.2, 2: 0.1, 3: 0.7})
    doubling = graded_average_precision(grades, missed, {1: 1 / 7, 2: 2 / 7, 3: 4 / 7})
    assert list(scores.means().values())[:3] == pytest.approx([equal, given_, doubling])
    binary = evaluate({"q": {d: float(g > 0) for d, g in qrels["q"].items()}}, run, "GAP AP").means()
    assert binary["GAP"] == pytest.approx(binary["AP"])


# first relevant


@proves("nERR")
@pytest.mark.parametrize(
    ("file", "measure", "run"),
    [
        ("res_test_compute.txt", "nERR(max=3)@1000", "sample.res"),
        ("res_test_compute_cutoff.txt", "nERR(max=3)@0002", "sample.res"),
        ("res_test_compute_grade.txt", "nERR(max=3, gain={1:1,2:4,3:9})@1000", "sample.res"),
        ("res_test_compute_label_j.txt", "nERR(max=3, judged_only=True)@1000", "sample.res"),
    ],
)
def test_normalised_err_against_ntcireval(shared: Any, file: str, measure: str, run: str) -> None:
    folder = shared / "peer-cases" / "ntcireval"
    rows = [line.split() for line in (folder / "sample.rel").read_text().splitlines()]
    qrels = {"q": {document: float(level.removeprefix("L")) for document, level in rows}}
    ranking = (folder / run).read_text().split()
    printed = dict(line.split("=") for line in (folder / file).read_text().splitlines() if line.startswith(" nERR"))
    [[name, value]] = printed.items()
    assert name.strip() == f"nERR@{measure.rpartition('@')[2]}"
    found = evaluate(qrels, {"q": {d: -float(i) for i, d in enumerate(ranking)}}, measure).mean()
    assert f"{found:.4f}" == value.strip()


@proves("FirstRel")
def test_the_rank_of_the_first_relevant_document_against_reciprocal_rank() -> None:
    rng = random.Random(11)
    qrels, run = {}, {}
    for t in range(40):
        ranking = [f"d{i}" for i in rng.sample(range(30), 12)]
        qrels[f"t{t:02}"] = {f"d{i}": float(rng.random() < 0.1) for i in range(30)}
        run[f"t{t:02}"] = {d: -float(i) for i, d in enumerate(ranking)}
    scores = evaluate(qrels, run, "FirstRel median(FirstRel) FirstRel(unfound=100) RR")
    known = [1 / value for value in scores["RR"] if value]
    assert 10 < len(known) < 40
    assert np.isnan(scores["FirstRel"]).tolist() == (scores["RR"] == 0).tolist()
    assert scores.mean("FirstRel") == pytest.approx(statistics.fmean(known))
    assert scores.mean("median(FirstRel)") == pytest.approx(statistics.median(known))
    late = [*known, *[100.0] * (40 - len(known))]
    assert scores.mean("FirstRel(unfound=100)") == pytest.approx(statistics.fmean(late))


def test_the_best_run_is_the_lowest_where_lower_is_better() -> None:
    qrels = {"q": {"a": 1, "b": 1}}
    runs = {"early": {"q": {"a": 2.0, "x": 1.0}}, "late": {"q": {"x": 2.0, "a": 1.0}}, "never": {"q": {"x": 2.0}}}
    scores = evaluate(qrels, runs, "FirstRel RR")
    assert scores.sort("FirstRel").runs == ["early", "late", "never"]
    assert scores.sort("RR").runs == ["early", "late", "never"]
    marked = scores.to_text(style=lambda kind, text: f"<{text}>" if kind == "best" else text)
    assert [line.count("<") for line in marked.splitlines()[:4]] == [0, 2, 0, 0]


# the command line


def test_the_size_of_the_collection_comes_from_an_option(tmp_path: Any) -> None:
    (tmp_path / "a.qrels").write_text("q 0 a 1\nq 0 b 1\n")
    (tmp_path / "a.run").write_text("q Q0 a 1 3 t\nq Q0 c 2 2 t\nq Q0 d 3 1 t\n")
    files = [str(tmp_path / "a.qrels"), str(tmp_path / "a.run")]
    answer = cranfield("eval", *files, "-m", "FallOut Utility(rest=1)", "--collection-size", "10", "--format", "csv")
    assert answer.out.splitlines()[1].split(",")[1:3] == ["0.25", "5.0"]
    refused = cranfield("eval", *files, "-m", "FallOut")
    assert refused.code == 3
    assert "FallOut needs the number of documents in the collection (--collection-size N" in refused.err
