"""A score explained: the table adds up for every measure, folds what matters little, and says what could be otherwise."""

from __future__ import annotations

import json
import math
import pickle
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cranfield
from cranfield import Evaluator, Measure, Run, evaluate, explain, side_by_side
from cranfield.base.errors import CranfieldError, DataError
from cranfield.evaluation.explanation import Fold, RankStep, condensed
from cranfield.evaluation.measures import REGISTRY
from hypotheses import examples
from shell import cranfield as shell
from test_measure_promises import PHASES, drawn, scored, topics

BUNDLED = Path(cranfield.__file__).parent / "collections" / "bundled" / "allotment" / "runs"
QRELS = {"q": {"d1": 3, "d2": 2, "d3": 2, "d4": 1, "d5": 1, "d6": 0, "d7": 0, "d8": -2, "e1": 3, "e2": 2}}
QRELS["q"] |= dict.fromkeys(("e3", "e4", "e5", "e6"), 1)
RUN = {"q": {"d4": 9, "d1": 8, "d6": 8, "u1": 7, "d2": 6, "d8": 5}}


# promises, for every measure


@pytest.mark.parametrize("cls", list(REGISTRY.values()), ids=list(REGISTRY))
@settings(examples(2, thorough=20), phases=PHASES)
@given(data=st.data())
def test_the_last_running_value_is_the_score_for_every_measure(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls))
    company = data.draw(st.lists(topics(m), min_size=1, max_size=2))
    qrels = {f"t{i}": topic.grades for i, topic in enumerate(company)}
    scores = scored(m, qrels, {f"t{i}": topic.run for i, topic in enumerate(company)})
    for topic, given_ in zip(scores.topics, company, strict=True):
        told = scores.explain(topic)
        assert told.returned == len(given_.ranking)
        value = scores.at(topic=topic)
        np.testing.assert_equal(told.value, value)
        np.testing.assert_equal([step for step in told.steps if step.document is not None][-1].so_far, value)
        json.dumps(told.to_dict(), allow_nan=False)
        assert told.to_text()
        assert "<table>" in told.to_html()


@pytest.mark.parametrize("cls", list(REGISTRY.values()), ids=list(REGISTRY))
@settings(examples(2, thorough=20), phases=PHASES)
@given(data=st.data())
def test_contributions_add_up_to_the_score_and_the_formula_ends_in_it(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls))
    topic = data.draw(topics(m))
    told = scored(m, {"q": topic.grades}, {"q": topic.run}).explain("q", full=True)
    if "contribution" in told.columns:
        parts = [step.columns["contribution"] for step in told.steps if "contribution" in step.columns]
        assert math.fsum(parts) == pytest.approx(told.value, abs=1e-9)
    if told.worked and math.isfinite(told.value):
        assert float(told.worked.rpartition("= ")[2]) == pytest.approx(told.value, abs=1e-4)


# worked by hand


def test_ndcg_is_explained_with_gain_discount_and_the_ideal_beside_it() -> None:
    told = explain(QRELS, RUN, "nDCG@10", "q")
    assert told.columns == ["gain", "discount", "gain / discount"]
    third = told.steps[2]
    assert (third.document, third.grade, third.tied) == ("d1", 3, (2, 3))
    assert third.columns == {"gain": 3, "discount": 2, "gain / discount": 1.5}
    assert [step.ideal["grade"] for step in told.steps] == [3, 3, 2, 2, 2, 1, 1, 1, 1, 1]
    assert [step.document for step in told.steps[6:]] == [None] * 4  # the ideal goes on where the run ends
    assert told.worked == "DCG / ideal DCG = 3.2737 / 9.1229 = 0.3588"


def test_average_precision_is_explained_with_the_precision_at_each_relevant_document() -> None:
    told = explain({"q": {"a": 1, "c": 1, "x": 1}}, {"q": {"a": 5, "b": 4, "c": 3}}, "AP")
    assert [step.columns.get("precision") for step in told.steps] == [1, None, pytest.approx(2 / 3)]
    assert [step.so_far for step in told.steps] == pytest.approx([1 / 3, 1 / 3, 5 / 9])
    assert told.worked == "sum of precisions / relevant documents = 1.6667 / 3 = 0.5556"
    assert told.missed == [("x", 1)]


def test_err_is_explained_with_who_comes_so_far_and_who_stops() -> None:
    told = explain({"q": {"a": 2, "b": 4}}, {"q": {"a": 3, "b": 2}}, "ERR@10")
    assert [step.columns["reach"] for step in told.steps] == pytest.approx([1, 13 / 16])
    assert [step.columns["stop"] for step in told.steps] == pytest.approx([3 / 16, 15 / 16])
    assert told.worked == "0.1875 + 0.3809 = 0.5684"


def test_rbp_is_explained_with_the_weight_of_each_rank() -> None:
    told = explain({"q": {"a": 1, "c": 1}}, {"q": {"a": 3, "b": 2, "c": 1}}, "RBP(p=0.5)")
    assert [step.columns.get("weight") for step in told.steps] == [0.5, None, 0.125]
    assert told.worked == "0.5000 + 0.1250 = 0.6250"


def test_bpref_is_explained_with_the_nonrelevant_documents_above() -> None:
    run = {"q": {"a": 4, "x": 3, "b": 2, "c": 1}}
    told = explain({"q": {"a": 1, "b": 0, "c": 1, "d": 0}}, run, "Bpref")
    assert [step.columns.get("nonrelevant above") for step in told.steps] == [0, None, None, 1]


# what could be otherwise


def test_what_is_unjudged_missing_and_tied_is_said() -> None:
    unjudged, negative, missed, ties = explain(QRELS, RUN, "nDCG@10").notes()
    assert negative == "negative grades at rank 6: they count as unjudged"
    assert unjudged == "unjudged: 1 of the documents above the cut-off, at rank 4; they count as not relevant"
    assert missed.startswith("not returned: 8 documents of a grade above 0: e1 (3), d3 (2)")
    assert ties.startswith("ties at ranks 2–3; they are ordered by document id, descending. Over all orders")
    assert ties.endswith("the score ranges from 0.3588 to 0.4019, 0.3804 on average")


@pytest.mark.parametrize("name", ["nDCG@3", "AP", "RR", "Bpref", "infAP", "ERR", "P@2"])
def test_lowest_and_highest_over_tie_orders_against_exact_enumeration(name: str) -> None:
    grades = {"a": 1, "b": 0, "c": 3, "d": 0}
    tied = ["a", "b", "c", "u"]
    values = []
    for order in permutations(tied):
        run = {"q": {**{document: 9 - i for i, document in enumerate(order)}, "d": 1}}
        values.append(evaluate({"q": grades}, run, name).mean())
    told = explain({"q": grades}, {"q": {**dict.fromkeys(tied, 5), "d": 1}}, name)
    assert told.ties is not None
    assert told.ties.lowest == pytest.approx(min(values))
    assert told.ties.highest == pytest.approx(max(values))


def test_many_ties_are_bounded_by_the_best_and_the_worst_order_of_a_monotone_measure() -> None:
    grades = {f"d{i}": i % 2 for i in range(12)}
    told = explain({"q": grades}, {"q": dict.fromkeys(grades, 1.0)}, "RR")
    assert told.ties is not None
    assert told.ties.groups == [(1, 12)]
    assert (told.ties.lowest, told.ties.highest) == (pytest.approx(1 / 7), 1)
    assert explain({"q": grades}, {"q": dict.fromkeys(grades, 1.0)}, "infAP").ties.highest is None  # type: ignore[union-attr]


def test_ties_of_documents_that_are_alike_change_nothing() -> None:
    told = explain({"q": {"a": 1, "b": 1}}, {"q": {"a": 1, "b": 1}}, "AP")
    assert told.notes() == ["ties at ranks 1–2: their order does not change the score"]


# what is shown


def long_run() -> dict[str, dict[str, float]]:
    return {"q": {f"n{i:03}": float(-i) for i in range(1, 101)}}


def test_a_long_list_is_folded_to_its_top_and_its_judged_documents() -> None:
    told = explain({"q": {"n052": 1, "n100": 0}}, long_run(), "AP")
    assert [step.rank for step in told.steps] == [*range(1, 11), 52, 100]
    text = told.to_text()
    assert "11–51" in text
    assert "… 41 unjudged, no change" in text
    assert len(explain({"q": {"n052": 1}}, long_run(), "AP", full=True).steps) == 100


def test_what_stands_below_the_cut_off_is_folded_too() -> None:
    told = explain({"q": {"n002": 1, "n052": 1}}, long_run(), "P@5")
    assert [step.rank for step in told.steps] == [1, 2, 3, 4, 5]
    assert "6–100  … 94 not relevant, 1 relevant, below the cut-off" in told.to_text()
    assert told.to_dict()["folded"] == [{"from": 6, "to": 100, "judged": 1}]


def test_the_conventions_are_those_asked_for() -> None:
    given_ = explain(QRELS, RUN, "nDCG@10", ties="input-order")
    assert [step.document for step in given_.steps[:3]] == ["d4", "d1", "d6"]
    assert round(given_.value, 4) == 0.4019
    averaged = explain(QRELS, RUN, "nDCG@10", ties="averaged")
    assert round(averaged.value, 4) == 0.3804
    assert averaged.ties is not None
    assert averaged.worked == ""
    dropped = explain(QRELS, RUN, "nDCG@10", unjudged="drop")
    assert round(dropped.value, 4) == 0.3685
    assert dropped.steps[3].document == "u1"


def test_duplicates_passages_and_the_topic_itself_are_treated_as_in_the_score(tmp_path: Path) -> None:
    run = tmp_path / "twice.run"
    run.write_text("q Q0 a#1 1 3 t\nq Q0 b#1 2 2 t\nq Q0 a#2 3 1 t\nq Q0 q 4 9 t\n")
    told = explain({"q": {"b": 1}}, run, "RR", collapse="#", drop_self=True)
    assert [(step.document, step.score) for step in told.steps] == [("a", 3), ("b", 2)]
    assert told.value == evaluate({"q": {"b": 1}}, run, "RR", collapse="#", drop_self=True).mean() == 0.5


def test_a_topic_that_the_run_lacks_is_explained_as_an_empty_list() -> None:
    told = explain({"q": {"a": 1}, "silent": {"b": 2}}, {"q": {"a": 1}}, "AP", "silent")
    assert (told.value, told.returned, told.steps) == (0, 0, [])
    assert told.notes() == ["not returned: 1 document of a grade above 0: b (2)"]


# from Scores


def test_scores_explain_themselves_from_mappings_files_and_frames(tmp_path: Path) -> None:
    file = tmp_path / "a.run"
    file.write_text("q Q0 d4 1 9 t\nq Q0 d1 2 8 t\nq Q0 d6 3 8 t\n")
    for runs in (RUN, file, str(file), [file], {"mine": str(file)}, Run(RUN), [file, Run(RUN, name="b")]):
        scores = evaluate(QRELS, runs, "AP nDCG@10")
        for name in scores.runs:
            told = scores.explain("q", "ndcg_cut_10", run=name)
            assert told.run == name
            assert told.value == scores.at(name, "nDCG@10", "q")
    chosen = evaluate(QRELS, [file, Run(RUN, name="b")], "AP").select(runs=["b"])
    assert chosen.explain("q").run == "b"


def test_scores_that_have_travelled_say_that_they_cannot_be_explained() -> None:
    scores = evaluate(QRELS, RUN, "AP")
    copy = pickle.loads(pickle.dumps(scores))
    assert copy == scores
    with pytest.raises(DataError, match="do not hold the run 'run' itself"):
        copy.explain("q")
    evaluator = Evaluator(QRELS, "AP")
    for passing in (evaluator.evaluate(Run(RUN, name=f"r{i}") for i in range(2)), evaluator.evaluate(iter([RUN, RUN]))):
        with pytest.raises(DataError, match=f"do not hold the run '{passing.runs[1]}' itself"):
            passing.explain("q", run=passing.runs[1])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"topic": "x"}, "topic 'x' is not judged in qrels; there are 2 others"),
        ({}, "which topic? qrels judges 2, such as 'q'"),
    ],
)
def test_a_topic_that_is_not_there_is_named(asked: Any, message: str) -> None:
    with pytest.raises(CranfieldError) as error:
        explain({**QRELS, "r": {"a": 1}}, RUN, "AP", **asked)
    assert str(error.value) == message


# renderings and the command


def test_an_explanation_is_rendered_as_text_markdown_and_html() -> None:
    told = explain({"q": {"a|<b>": 1}}, {"q": {"a|<b>": 1}}, "AP")
    assert repr(told).startswith("AP of run, topic q: 1.0000\n")
    assert "| 1 | a\\|\\<b\\> | 1 | 1 | 1 | 1 | 1.0000 |" in told.to_markdown()
    assert '<th scope="row" class="n">a|&lt;b&gt;</th>' in told._repr_html_()
    assert told.to_html(page=True).startswith("<!doctype html>")


def test_the_command_prints_all_four_formats(tmp_path: Path) -> None:
    asked = ("explain", "nDCG@10", "qrels.txt", "bm25.run", "--topic", "q1")
    assert shell(*asked).out.startswith("nDCG@10 of bm25, topic q1: 0.9079\n")
    assert "| ---: |" in shell(*asked, "--format", "markdown").out
    assert json.loads(shell(*asked, "--format", "json").out)["value"] == pytest.approx(0.9079, abs=5e-5)
    file = tmp_path / "told.html"
    assert shell(*asked, "--format", "html", "-o", file).out == ""
    assert "<caption>nDCG@10 of bm25, topic q1: 0.9079</caption>" in file.read_text(encoding="utf-8")


def test_the_command_says_what_is_wrong() -> None:
    assert shell("explain", "AP", "qrels.txt", "bm25.run").code == 3
    assert "which topic?" in shell("explain", "AP", "qrels.txt", "bm25.run").err
    assert shell("explain", "APP", "qrels.txt", "bm25.run", "--topic", "q1").code == 2
    assert shell("explain", "AP", "qrels.txt", "*.run", "--topic", "q1").code == 3
    assert shell("explain", "AP", "qrels.txt", "bm25.run", "--as", "all", "--missing", "skip").code == 2


def test_presets_read_tables_as_eval_does(tmp_path: Path) -> None:
    """Delimiter, decimal sign, grades and the text of queries: `--as all` ended in a crash with each of them."""
    (tmp_path / "judged.csv").write_text("query;document;grade\nBuy BEES;a;2\nBuy BEES;b;5\n")
    (tmp_path / "run.csv").write_text("query;document;score\nBuy BEES;a;1,5\nBuy BEES;b;0,5\n")
    (tmp_path / "topics.csv").write_text("topic;query\nq1;buy bees\n")
    options = ("--delimiter", "semicolon", "--encoding", "utf-8", "--decimal", "comma", "--grades", "2=0,5=1")
    words = ("judged.csv", "run.csv", "-m", "RR", *options, "--topics-file", "topics.csv", "--ignore-case")
    views = shell("explain", *words, "--as", "all", "--topic", "q1", "--format", "json", folder=tmp_path)
    assert views.code == 0, views.err
    assert json.loads(views.out)["as"]["trec_eval-10"] == 0.5


def test_explain_is_public_and_documented() -> None:
    assert cranfield.explain is explain
    assert "rank by rank" in (explain.__doc__ or "")


def test_more_orders_of_ties_than_can_be_written_are_no_number() -> None:
    run = {"q": dict.fromkeys([*QRELS["q"], *(f"u{i}" for i in range(3000))], 1.0)}
    told = explain(QRELS, run, "nDCG@10")
    assert told.ties is not None
    assert told.ties.groups == [(1, 3014)]
    assert told.ties.orders is None
    assert json.loads(told.to_json())["ties"]["orders"] is None
    assert explain(QRELS, RUN, "nDCG@10").to_dict()["ties"]["orders"] == 2


def test_only_the_ranks_shown_are_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long list takes no more calculations than a short one."""
    calls = []
    values_of = Evaluator.values_of
    monkeypatch.setattr(Evaluator, "values_of", lambda *given: calls.append(1) or values_of(*given))
    run = {"q": {**{f"u{i}": 1.0 for i in range(2000)}, **dict.fromkeys(QRELS["q"], 0.5)}}
    told = explain(QRELS, run, "nDCG@10")
    assert len(calls) < 20
    assert told.steps[0].tied == (1, 2000)


def test_the_measure_follows_as_an_option_and_may_still_stand_first() -> None:
    old, new = (
        shell("explain", *words, "--topic", "q1")
        for words in (("AP", "qrels.txt", "bm25.run"), ("qrels.txt", "bm25.run", "-m", "AP"))
    )
    assert (new.code, new.out) == (0, old.out)
    assert shell("explain", "qrels.txt", "bm25.run", "--topic", "q1").out.startswith("nDCG@10 of bm25")
    assert (
        shell("explain", "allotment", "bm25.run", "-m", "AP").code == 3
    )  # a collection that comes along is no measure
    for words in (
        ("qrels.txt",),
        ("qrels.txt", "a", "b", "c", "-m", "AP"),
        ("AP", "qrels.txt", "bm25.run", "-m", "RR"),
    ):
        refused = shell("explain", *words)
        assert refused.code == 2
        found = [word for word in words if word not in ("-m", words[-1])] or words
        assert f"expected QRELS RUN or QRELS RUN RUN, found {len(found)}" in refused.err


# a screen, and two runs side by side


def crowd(shuffled: int) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Judgments and a run of a thousand documents with ids of 40 characters, many of them tied."""
    names = np.array([f"collection-of-long-ids-{i:07}-{i * 7919 % 10**9:09}" for i in range(1400)])
    drawn_from = np.random.default_rng(7)
    grades = {str(name): int(drawn_from.integers(0, 4)) for name in drawn_from.choice(names, 300, replace=False)}
    order = np.random.default_rng(shuffled).permutation(names)[:1000]
    assert {len(name) for name in names} == {40}
    return {"13": grades}, {"13": {str(name): round(20 - i / 60, 1) for i, name in enumerate(order)}}


@pytest.mark.parametrize("name", ["nDCG@10", "AP", "nDCG", "P@50", "RBP", "Bpref", "ERR@100", "infAP", "RR"])
def test_an_explanation_of_a_thousand_documents_fits_a_screen(name: str) -> None:
    qrels, run = crowd(1)
    told = explain(qrels, run, name, queries={"13": "what is asked " * 20})
    lines = told.to_text(limit=80).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(f"{name} of run, topic 13 (what is asked")
    assert told.to_dict()["steps"][0]["document"] in run["13"]
    if told.steps[0].tied:
        assert any(line.startswith("1= ") for line in lines)


def test_folds_count_what_they_hide_and_what_that_adds() -> None:
    qrels, run = crowd(1)
    told = explain(qrels, run, "AP")
    shown = condensed(told.rows, 20)
    assert len(shown) <= 20
    ends = [row.so_far for row in shown if isinstance(row, RankStep)]
    assert ends[-1] == told.value
    before = 0.0
    for row, below in pairwise(shown):
        before = row.so_far if isinstance(row, RankStep) else before + row.added
        if isinstance(below, RankStep) and not below.grade:
            assert below.so_far == pytest.approx(before)
    judged = sum(row.judged if isinstance(row, Fold) else row.grade is not None for row in shown)
    assert judged == len(qrels["13"].keys() & run["13"].keys())


OLD = {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "u": 1.0}, "r": {"x": 1.0}}
NEW = {"q": {"c": 4.0, "a": 3.0, "d": 2.0}, "r": {"x": 1.0}}
JUDGED = {"q": {"a": 1, "b": 0, "c": 2, "d": 0}, "r": {"x": 1}}


def test_two_lists_side_by_side_tell_moves_and_what_each_rank_adds() -> None:
    sides = side_by_side(JUDGED, {"old": OLD}, {"new": NEW}, "nDCG@10")
    assert sides.most_different_of == 2
    assert [entry.move for entry in sides.lists[1]] == [2, -1, None]
    assert [entry.elsewhere for entry in sides.lists[0]] == [2, None, 1, None]
    for told, entries in zip((sides.one, sides.other), sides.lists, strict=True):
        assert sum(entry.added or 0 for entry in entries) == pytest.approx(told.value)
        assert told.value == pytest.approx(
            evaluate(JUDGED, {told.run: OLD if told.run == "old" else NEW}, "nDCG@10").at(topic="q")
        )
    lines = sides.to_text(limit=80).splitlines()
    assert (
        lines[0]
        == f"nDCG@10 of topic q: old {sides.one.value:.4f}, new {sides.other.value:.4f} ({sides.difference:+.4f})"
    )
    assert lines[3].split() == [
        "1",
        "1",
        "a",
        f"{sides.lists[0][0].added:+.4f}",
        "2",
        "c",
        f"{sides.lists[1][0].added:+.4f}",
        "↑2",
    ]
    assert lines[4].split()[:4] == ["2", "0", "b", "gone"]
    assert lines[-1] == "the grade stands before each document (? unjudged: 1 and 0 of the first 4)"
    assert "+2" in sides.to_text(limit=80, ascii_only=True)


@pytest.mark.parametrize("name", ["nDCG@10", "AP", "P@50"])
def test_two_lists_of_a_thousand_documents_fit_a_screen(name: str) -> None:
    (qrels, one), (_, other) = crowd(1), crowd(2)
    sides = side_by_side(qrels, {"a-name-that-goes-on-and-on": one}, {"another-name-of-a-run": other}, name)
    lines = sides.to_text(limit=80).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert json.loads(sides.to_json())["lists"][1]["documents"][0]["document"] in other["13"]


def test_the_command_lays_two_runs_side_by_side() -> None:
    two = shell("explain", "qrels.txt", "bm25.run", "dense.run", "--topic", "q1")
    assert two.out.startswith("nDCG@10 of topic q1: bm25 0.9079, dense ")
    assert shell("explain", "nDCG@10", "qrels.txt", "bm25.run", "dense.run", "--topic", "q1").out == two.out
    assert "differ most on this one" in shell("explain", "qrels.txt", "bm25.run", "dense.run").out
    told = json.loads(shell("explain", "qrels.txt", "bm25.run", "dense.run", "--topic", "q1", "--format", "json").out)
    assert [each["run"] for each in told["lists"]] == ["bm25", "dense"]
    assert told["difference"] == pytest.approx(told["lists"][1]["value"] - told["lists"][0]["value"])
    assert [each["run"] for each in told["explanations"]] == ["bm25", "dense"]
    titled = shell(
        "explain", "allotment", *(BUNDLED / f"{run}.run" for run in ("bm25", "fusion")), "--topic", "147"
    ).out
    assert titled.startswith("nDCG@10 of topic 147 (bonfire rules): bm25 0.3751, fusion 0.8192 (+0.4441)")
    assert "3 d258  Bonfires" in titled


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("qrels.txt", "bm25.run", "dense.run", "--as", "all"), 2),
        (("qrels.txt", "bm25.run", "dense.run", "--topic", "nowhere"), 3),
        (("qrels.txt",), 2),
    ],
)
def test_two_runs_that_cannot_be_laid_side_by_side_are_refused(words: tuple[str, ...], code: int) -> None:
    assert shell("explain", *words).code == code
