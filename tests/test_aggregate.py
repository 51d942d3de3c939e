"""One number of all topics: mean, geometric mean, median and the others, against trec_eval, SciPy and by hand.

`gm_map` and `gm_bpref` are also compared with every recorded output of trec_eval in test_oracle_trec_eval.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cranfield import Evaluator, compare, evaluate, gate, leaderboard, measure, measures
from cranfield.base.errors import ConventionError, MeasureError
from cranfield.evaluation.measures import REGISTRY
from cranfield.evaluation.measures.definition import AGGREGATES, Ratio, aggregated
from shell import cranfield

if TYPE_CHECKING:
    from pathlib import Path

QRELS = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}}
RUN = {"q1": {"a": 2, "x": 1}, "q2": {"x": 2, "b": 1}, "q3": {"x": 4, "y": 3, "z": 2, "c": 1}}  # RR 1, 1/2, 1/4


@pytest.mark.parametrize(
    ("aggregate", "by_hand"),
    [
        ("mean", (1 + 0.5 + 0.25) / 3),
        ("gmean", (1 * 0.5 * 0.25) ** (1 / 3)),
        ("median", 0.5),
        ("min", 0.25),
        ("max", 1.0),
        ("hmean", 3 / (1 + 2 + 4)),
        ("sum", 1.75),
    ],
)
def test_the_grammar_gives_the_number_worked_by_hand(aggregate: str, by_hand: float) -> None:
    scores = evaluate(QRELS, RUN, f"{aggregate}(RR)")
    assert scores.mean() == pytest.approx(by_hand, abs=1e-15)
    assert scores["RR"].tolist() == [1, 0.5, 0.25]


@given(st.lists(st.floats(1e-4, 1), min_size=1, max_size=30))
def test_the_aggregates_against_scipy_and_numpy(values: list[float]) -> None:
    array = np.array(values)
    expected = {
        "mean": array.mean(),
        "gmean": stats.gmean(array),
        "median": np.median(array),
        "min": array.min(),
        "max": array.max(),
        "hmean": stats.hmean(array),
        "sum": array.sum(),
    }
    assert {name: function(array) for name, function in AGGREGATES.items()} == pytest.approx(expected, rel=1e-12)


def test_the_geometric_mean_lifts_0_to_the_floor_of_trec_eval() -> None:
    scores = evaluate({**QRELS, "q4": {"d": 1}}, RUN, "gmean(RR) hmean(RR) min(RR)")
    assert scores.mean("gmean(RR)") == pytest.approx((1 * 0.5 * 0.25 * 1e-5) ** 0.25)
    assert scores.mean("hmean(RR)") == 0
    assert scores.mean("min(RR)") == 0


@pytest.mark.parametrize("measure_name", ["gm_map", "gMAP", "GMAP", "gmean(AP)", "gmean( map )"])
def test_gmap_against_trec_eval(shared: Path, measure_name: str) -> None:
    folder = shared / "trec_eval-test"
    expected = [line.split() for line in (folder / "out.test").read_text().splitlines()]
    [gm_map] = [value for name, topic, value in expected if name == "gm_map" and topic == "all"]
    scores = evaluate(folder / "qrels.test", folder / "results.test", measure_name, conventions="trec_eval-9")
    assert f"{scores.mean():.4f}" == gm_map


@pytest.mark.parametrize("aggregate", list(AGGREGATES))
@pytest.mark.parametrize("inner", ["AP", "AP(rel=2)@100", "nDCG(gain={1:3,2:9})@10", "NumRel", "RBP(p=0.9)"])
def test_an_aggregated_measure_reads_back_from_its_own_name(aggregate: str, inner: str) -> None:
    m = measure(f"{aggregate}({inner})")
    again = measure(str(m))
    assert again == m
    assert hash(again) == hash(m)
    assert list(measures(f"P@1, {m} R@5")) == ["P@1", str(m), "R@5"]
    assert (m == measure(inner)) is (aggregate == type(m).aggregate)


def test_rel_reaches_the_measure_inside() -> None:
    assert measure("gmean(AP)", rel=2) == measure("gmean(AP(rel=2))")


def test_every_measure_that_takes_a_mean_can_take_another_aggregate() -> None:
    for name, cls in REGISTRY.items():
        needed = {key: parameter.example for key, parameter in cls.parameters.items() if parameter.required}
        plain = cls(**needed)
        if type(plain).summarise is type(measure("AP")).summarise:
            assert aggregated(plain, "median").summarise(np.array([1.0, 5.0, 2.0])) == 2, name


def test_a_mistaken_aggregate_says_what_is_expected() -> None:
    with pytest.raises(MeasureError, match=r"the cut-off belongs inside the brackets: gmean\(AP@10\)"):
        measure("gmean(AP)@10")
    with pytest.raises(MeasureError, match=r"median\(gmean\(AP\)\): gmean\(AP\) is one number for all topics already"):
        measure("median(gmean(AP))")
    with pytest.raises(ValueError, match="aggregate must be one of mean, gmean, median, min, max, hmean, got 'mode'"):
        evaluate(QRELS, RUN, "AP", aggregate="mode")


def test_the_argument_changes_means_only_and_says_so_in_the_names() -> None:
    scores = evaluate(QRELS, RUN, "RR NumRet max(P@1)", aggregate="median")
    assert scores.means() == {"median(RR)": 0.5, "NumRet": 8, "max(P@1)": 1}
    assert scores.at(measure="RR", topic="q2") == 0.5
    assert Evaluator(QRELS, "RR", aggregate="mean").evaluate(RUN).means() == {"RR": pytest.approx(1.75 / 3)}


# mean and geometric mean

EASY = {"q1": {"a": 1}, "q2": {"b": 1}}
BOLD = {"q1": {"a": 1.0}, "q2": {**{f"x{i}": 50.0 - i for i in range(19)}, "b": 1.0}}  # AP 1 and 1/20: 0.525
SOLID = {"q1": {"x": 2.0, "a": 1.0}, "q2": {"x": 2.0, "b": 1.0}}  # AP 1/2 twice: 0.5


def test_scores_say_when_mean_and_geometric_mean_rank_two_runs_differently() -> None:
    scores = evaluate(EASY, {"bold": BOLD, "solid": SOLID}, "AP P@1")
    assert scores.mean("AP", "bold") == pytest.approx(0.525)
    assert math.sqrt(1 / 20) < 0.5
    assert scores.reversals() == {"AP": ("bold", "solid")}
    [note] = [note for note in scores.notes() if "geometric" in note]
    assert note.startswith("AP: bold is ahead of solid by the mean, behind by the geometric mean, ")
    assert scores.to_dict()["mean_and_gmean_differ"] == {"AP": ["bold", "solid"]}


@pytest.mark.parametrize("measure", ["gmean(AP)", "gm_map", "RR", "gmean(RR)", "P@1", "nDCG@10", "median(AP)"])
def test_only_the_mean_of_ap_is_held_against_its_geometric_mean(measure: str) -> None:
    scores = evaluate(EASY, {"bold": BOLD, "solid": SOLID}, measure)
    assert scores.reversals() == {}
    assert not any("geometric" in note for note in scores.notes())


def test_scores_are_silent_where_both_means_agree_or_tie() -> None:
    scores = evaluate(EASY, {"solid": SOLID, "same": SOLID}, "RR NumRet median(RR)")
    assert scores.reversals() == {}
    assert "mean_and_gmean_differ" not in scores.to_dict()
    assert evaluate(EASY, BOLD, "RR").reversals() == {}


def test_the_command_takes_an_aggregate_and_prints_the_note_apart_from_the_data() -> None:
    answer = cranfield("eval", "qrels.txt", "bm25.run", "dense.run", "-m", "AP gm_map", "--format", "json")
    means = {row["run"]: row["mean"] for row in json.loads(answer.out)["runs"]}
    assert "note: AP: dense is ahead of bm25 by the mean, behind by the geometric mean" in answer.err
    other = cranfield("eval", "qrels.txt", "bm25.run", "-m", "AP", "--aggregate", "gmean", "--format", "json")
    assert json.loads(other.out)["runs"][0]["mean"] == {"gmean(AP)": means["bm25"]["gm_map"]}
    wrong = cranfield("eval", "qrels.txt", "bm25.run", "--aggregate", "average")
    assert (wrong.code, wrong.out) == (2, "")
    assert "aggregate must be one of" in wrong.err


# micro averages

MICRO_QRELS = {"A": {"a": 1}, "B": {"b": 1, "c": 1, "d": 1, "e": 1}}
MICRO_RUNS = {"one": {"A": {"a": 2}, "B": {"b": 2, "x": 1}}, "two": {"A": {"x": 2}, "B": {"b": 2, "c": 1}}}


def test_a_micro_average_is_typed_around_the_measure_as_the_leaderboard_prints_it():
    scores = evaluate(MICRO_QRELS, MICRO_RUNS, "R@5 micro(R@5) R(average=micro)@5")
    assert scores.means("one") == {"R@5": 0.625, "micro(R@5)": 0.4, "R(average=micro)@5": 0.4}
    assert measure("micro(R@5)") == measure("R(average=micro)@5")
    assert str(measure("R(average=micro)@5")) == "micro(R@5)" == str(measure("micro( R@5 )"))
    assert str(measure("micro(R(rel=2)@5)")) == "micro(R(rel=2)@5)" == str(measure("micro(R@5)", rel=2))
    assert str(measure("median(micro(SetP))")) == "median(micro(SetP))"
    board = leaderboard(MICRO_QRELS, MICRO_RUNS, "R@5 micro(R@5)")
    assert board.to_text().splitlines()[2].count("micro(R@5)") == 1


@pytest.mark.parametrize("cls", [cls for cls in REGISTRY.values() if issubclass(cls, Ratio)], ids=lambda cls: cls.name)
def test_every_ratio_has_a_micro_average_whose_name_reads_back(cls):
    chosen = cls(average="micro", **({"k": 5} if cls.at == "k" else {}))
    assert str(chosen).startswith(f"micro({cls.name}")
    assert measure(str(chosen)) == chosen


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("micro(AP)", r"micro\(AP\): AP is not a ratio; micro averages exist for .*\bR\b"),
        ("micro(micro(R@5))", r"micro\(R@5\) is one number for all topics already"),
        ("micro(median(R@5))", r"median\(R@5\) is one number for all topics already"),
        ("micro(R)@5", r"the cut-off belongs inside the brackets: micro\(R@5\)"),
    ],
)
def test_a_micro_average_that_is_none_is_refused_by_name(typed, said):
    with pytest.raises(MeasureError, match=said):
        measure(typed)


def test_tests_refuse_a_micro_average_by_name():
    [pair] = compare(MICRO_QRELS, MICRO_RUNS, "micro(R@5)").pairs
    assert pair.p != pair.p
    assert pair.reason.startswith("micro(R@5) is a micro average over all topics")
    with pytest.raises(ConventionError, match=r"a gate compares means over topics, and micro\(R@5\) is not one"):
        gate(MICRO_QRELS, MICRO_RUNS["one"], MICRO_RUNS["two"], measures="micro(R@5)")
