"""Conventions: what each answer does, and that each preset answers as its namesake does.

Answers of programs that are installed are asked for here; those of ranx 0.3.21 and BEIR 2.2.0 were recorded from them
(docs/conventions.md says how).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cranfield import PRESETS, Conventions, correlate, evaluate, explain, explain_as
from cranfield.base.conventions import conventions
from cranfield.base.errors import ConventionError, DataError, DuplicateError, TopicError
from cranfield.evaluation.partial_judgments import Partial
from cranfield.evaluation.presets import PEERS
from cranfield.formats import as_runs
from oracles import per_topic

if TYPE_CHECKING:
    from pathlib import Path

# One small set that asks every question: q2 has no relevant document, q3 none at all in the run, q4 a negative grade
# above the relevant one, q5 itself among its answers; q1's first two documents tie as 32-bit floats only.
QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"a": 0}, "q3": {"a": 1}, "q4": {"a": -1, "b": 1}, "q5": {"a": 1}}
RUN = {"q1": {"a": 1 + 1e-10, "b": 1.0}, "q2": {"a": 1.0}, "q4": {"a": 2.0, "b": 1.0}, "q5": {"q5": 2.0, "a": 1.0}}
ANSWERED = {topic: QRELS[topic] for topic in RUN}


def rr(qrels: Any = None, run: Any = None, measure: str = "RR", **asked: Any) -> dict[str, float]:
    """Value by topic, and the mean."""
    scores = evaluate(qrels or QRELS, run or RUN, measure, **asked)
    topics = {topic: row[measure] for topic, row in per_topic(scores).items()}
    return {**topics, "mean": scores.mean()}


# single answers


def test_defaults_are_those_of_trec_eval_10_with_c() -> None:
    assert rr() == {"q1": 1, "q2": 0, "q3": 0, "q4": 0.5, "q5": 0.5, "mean": pytest.approx(2 / 5)}


def test_ties_may_be_broken_three_ways() -> None:
    qrels, run = {"q": {"b": 1}}, {"q": {"b": 1, "a": 1, "c": 1}}
    ranks = {
        ties: 1 / rr(qrels, run, ties=ties)["mean"]
        for ties in ("document-descending", "document-ascending", "input-order")
    }
    assert ranks == {"document-descending": 2, "document-ascending": 2, "input-order": 1}
    assert rr({"q": {"a": 1}}, run, ties="document-ascending")["mean"] == 1
    assert rr({"q": {"c": 1}}, run, ties="document-descending")["mean"] == 1


def test_scores_may_be_rounded_to_32_bits_before_they_are_compared() -> None:
    assert rr(scores="single")["q1"] == 0.5
    assert rr(scores="double")["q1"] == 1


def test_a_missing_topic_may_count_0_or_not_at_all_or_stop_everything() -> None:
    assert rr(missing="zero")["mean"] == pytest.approx(2 / 5)
    assert rr(missing="skip")["mean"] == pytest.approx(2 / 4)
    assert "q3" not in rr(missing="skip")
    with pytest.raises(TopicError, match="topic 'q3' is judged but missing"):
        rr(missing="error")


def test_a_topic_without_relevant_documents_may_count_0_or_not_at_all() -> None:
    assert rr(no_relevant="zero")["mean"] == pytest.approx(2 / 5)
    assert rr(no_relevant="skip")["mean"] == pytest.approx(2 / 4)
    assert "q2" not in rr(no_relevant="skip")


def test_unjudged_documents_may_be_dropped_and_negative_grades_with_them() -> None:
    qrels, run = {"q": {"a": -1, "b": 1}}, {"q": {"a": 3, "u": 2, "b": 1}}
    assert rr(qrels, run)["mean"] == pytest.approx(1 / 3)
    assert rr(qrels, run, unjudged="drop")["mean"] == 1


def test_a_negative_grade_may_be_a_judgment_of_0() -> None:
    qrels, run = {"q": {"a": -1, "b": 1}}, {"q": {"a": 2, "b": 1}}
    assert rr(qrels, run, "Bpref", negative="unjudged")["mean"] == 1
    assert rr(qrels, run, "Bpref", negative="irrelevant")["mean"] == 0
    assert rr(qrels, run, unjudged="drop", negative="irrelevant")["mean"] == 0.5


@pytest.mark.parametrize(("keep", "expected"), [("first", 1.0), ("last", 0.5), ("best", 1.0)])
def test_one_of_two_equal_documents_may_count(tmp_path: Path, keep: str, expected: float) -> None:
    run = tmp_path / "twice.run"
    run.write_text("q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 a 3 1 t\n")
    assert evaluate({"q": {"a": 1}}, run, "RR", duplicates=keep).mean() == expected
    with pytest.raises(DuplicateError, match=r"twice\.run:3: document 'a' occurs twice for topic 'q'"):
        evaluate({"q": {"a": 1}}, run, "RR")


def test_passages_may_count_as_their_document_and_the_best_one_decides() -> None:
    run = {"q": {"b#1": 3, "a#2": 2.5, "b#7": 2, "a#1": 1}}
    assert rr({"q": {"a": 1}}, run, collapse="#")["mean"] == 0.5
    assert evaluate({"q": {"a": 1}}, run, "NumRet", collapse="#").mean() == 2


def test_a_document_whose_id_is_the_topics_may_be_left_out() -> None:
    assert rr(drop_self=True)["q5"] == 1
    assert rr(drop_self=False)["q5"] == 0.5


# the value itself


def test_conventions_come_from_a_preset_a_mapping_or_single_answers() -> None:
    assert conventions() == Conventions() == conventions("cranfield")
    assert conventions("trec_eval-9", missing="zero") == Conventions(scores="single")
    assert conventions({"ties": "input-order"}, missing="skip") == Conventions(ties="input-order", missing="skip")
    assert Conventions(**conventions("beir").to_dict()) == PRESETS["beir"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"conventions": "trec-eval"}, "no preset 'trec-eval'; there are cranfield, trec_eval-10"),
        (
            {"ties": "random"},
            "ties must be one of document-descending, document-ascending, input-order, averaged, got 'random'",
        ),
        ({"tie": "input-order"}, "no such convention in tie; there are ties, scores, missing"),
        ({"drop_self": "yes"}, "drop_self must be True or False, got 'yes'"),
        ({"collapse": True}, "collapse must be the text to cut document ids at, such as '#', got True"),
    ],
)
def test_a_convention_that_does_not_exist_is_named_with_those_that_do(asked: Any, message: str) -> None:
    with pytest.raises(ConventionError) as error:
        evaluate(QRELS, RUN, "RR", **asked)
    assert str(error.value).startswith(message)


def test_conventions_cannot_be_changed_in_place() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        conventions().ties = "input-order"  # type: ignore[misc]


def test_scores_carry_their_conventions_into_json() -> None:
    scores = evaluate(QRELS, RUN, "RR", conventions="ir_measures")
    assert scores.conventions == PRESETS["ir_measures"]
    assert scores.to_dict()["conventions"]["scores"] == "single"


# presets


def test_every_preset_the_issue_names_is_there() -> None:
    assert set(PRESETS) == {"cranfield", *PEERS}
    assert {"trec_eval-10", "trec_eval-9", "ir_measures", "ranx", "beir"} <= set(PEERS)


def test_preset_ir_measures_against_ir_measures() -> None:
    import ir_measures

    result = ir_measures.calc([ir_measures.RR, ir_measures.Bpref, ir_measures.AP], QRELS, RUN)
    ours = evaluate(QRELS, RUN, "RR Bpref AP", conventions="ir_measures")
    for metric in result.per_query:
        assert per_topic(ours)[metric.query_id][str(metric.measure)] == pytest.approx(metric.value), metric
    assert ours.means() == pytest.approx({str(m): value for m, value in result.aggregated.items()})


TIED = {"q": {"d6": 9, "d1": 9, "d2": 9, "zz": 9, "a1": 9, "d3": 1}}
GRADED = {"q": {"d1": 2, "d2": 1, "d3": 1, "d6": 0, "x": 3}}
BY_SUBTOPIC = [("q", "1", "d1", 1), ("q", "2", "d1", 1), ("q", "1", "d2", 1), ("q", "3", "d6", 1), ("q", "2", "a1", 1)]


@pytest.mark.parametrize("name", ["Compat", "Compat(p=0.8)", "Accuracy", "RR@10", "RR", "Judged@3", "AP", "nDCG@3"])
def test_eval_as_ir_measures_orders_ties_as_each_of_its_providers_does_against_ir_measures(name: str) -> None:
    import ir_measures

    [theirs] = ir_measures.calc_aggregate([ir_measures.parse_measure(name)], GRADED, TIED).values()
    company = evaluate(GRADED, TIED, [name, "P@1", "Bpref"], conventions="ir_measures")
    assert company.mean(name) == pytest.approx(theirs)
    assert company.mean("P@1") == 0  # zz: by descending id, as its trec_eval has it


@pytest.mark.parametrize(
    "name", "alpha_nDCG@3 alpha_DCG@3 ERR_IA@3 nERR_IA@3 NRBP nNRBP AP_IA P_IA@2 StRecall@2".split()
)
@pytest.mark.parametrize("preset", ["ir_measures", "pyndeval"])
def test_diversity_measures_order_ties_by_ascending_id_against_ir_measures(name: str, preset: str) -> None:
    import ir_measures

    qrels = [ir_measures.Qrel(topic, document, grade, label) for topic, label, document, grade in BY_SUBTOPIC]
    run = [ir_measures.ScoredDoc("q", document, score) for document, score in TIED["q"].items()]
    [metric] = ir_measures.iter_calc([ir_measures.parse_measure(name)], qrels, run)
    text = "".join(f"{topic} {label} {document} {grade}\n" for topic, label, document, grade in BY_SUBTOPIC).encode()
    assert evaluate(text, TIED, name, conventions=preset).mean() == pytest.approx(metric.value)
    assert explain_as(text, TIED, name)[preset] == pytest.approx(metric.value)


def test_an_answer_given_beside_a_preset_goes_for_all_measures_and_the_exceptions_are_said() -> None:
    own = evaluate(GRADED, TIED, "Compat P@1", conventions="ir_measures")
    assert own.exceptions == {"Compat": {"ties": "document-ascending", "scores": "double"}}
    assert own.basis()[1].endswith("; Compat: ties=document-ascending, scores=double")
    assert own.to_dict()["exceptions"] == own.exceptions
    settled = evaluate(GRADED, TIED, "Compat", conventions="ir_measures", ties="input-order", scores="single")
    assert settled.exceptions == {}
    assert settled.mean() == evaluate(GRADED, TIED, "Compat", ties="input-order").mean()
    assert "exceptions" not in evaluate(GRADED, TIED, "Compat").to_dict()


RANKED = "7 Q0 a 3 1 t\n7 Q0 b 1 5 t\n7 Q0 c 2 5 t\n8 Q0 a 1 1 t\n"


def test_presets_ndeval_by_the_rank_column_and_traditional_by_score_and_descending_id(tmp_path: Path) -> None:
    run = tmp_path / "a.run"
    run.write_text(RANKED)
    first = {"ndeval": "b", "ndeval-traditional": "c", "pyndeval": "b"}
    for preset, document in first.items():
        found = {d: evaluate(f"7 1 {d} 1\n9 1 x 1\n".encode(), run, "StRecall@1", conventions=preset) for d in "abc"}
        assert {d: scores.mean() for d, scores in found.items()} == {d: float(d == document) for d in "abc"}, preset
    by_rank = RANKED.replace(" a 3 1 ", " a 1 1 ").replace(" b 1 5", " b 3 5")
    run.write_text(by_rank)
    assert evaluate(b"7 1 a 1\n", run, "StRecall@1", conventions="ndeval").mean() == 1
    told = explain(b"7 1 a 1\n", run, "AP_IA", "7", conventions="ndeval")
    assert [step.document for step in told.steps] == ["a", "c", "b"]


@pytest.mark.parametrize("year", ["2009", "2010"])
def test_presets_of_ndeval_on_the_web_track_against_recorded_output(shared: Path, year: str) -> None:
    """The runs' scores fall strictly but for ties, which their rank column has in another order than the ids."""
    folder = shared / "diversity-wt09-10"
    [_, *names], *rows = [line.split("\t") for line in (folder / f"indri.wt{year}.ndeval.tsv").read_text().splitlines()]
    scores = evaluate(folder / f"{year}.diversity.qrels", folder / f"indri.wt{year}.run", names, conventions="pyndeval")
    [means] = [row[1:] for row in rows if row[0] == "amean"]
    assert [f"{scores.mean(name):.6f}" for name in names] == [f"{float(text):.6f}" for text in means]


def test_a_rank_that_stands_twice_or_a_run_without_ranks_is_refused_by_scores_rank(tmp_path: Path) -> None:
    run = tmp_path / "a.run"
    run.write_text(RANKED.replace("c 2", "c 1"))
    with pytest.raises(DataError, match=r"a\.run: rank 1 occurs twice for topic '7'"):
        evaluate(b"7 1 a 1\n", run, "AP_IA", conventions="ndeval")
    with pytest.raises(DataError, match="goes by the rank column of a TREC file, and there is none"):
        evaluate({"7": {"a": 1}}, {"7": {"a": 1.0}}, "AP", scores="rank")
    run.write_text("7\ta\t2\n7\tb\t1\n")
    assert evaluate({"7": {"b": 1}}, run, "RR", scores="rank").mean() == 1  # MS MARCO has nothing but ranks


def test_lists_are_compared_and_pools_made_by_the_rank_column_where_the_conventions_say_so(tmp_path: Path) -> None:
    run, other = tmp_path / "a.run", tmp_path / "b.run"
    run.write_text("7 Q0 a 1 1 t\n7 Q0 b 2 2 t\n")
    other.write_text("7 Q0 a 1 2 t\n7 Q0 b 2 1 t\n")
    assert correlate([run, other], kinds="tau").value() == -1
    assert correlate([run, other], kinds="tau", conventions="ndeval").value() == 1
    assert Partial({"7": {"a": 1}}, as_runs(run), "RR", scores="rank").values().item() == 1
    assert Partial({"7": {"a": 1}}, as_runs(run), "RR").values().item() == 0.5


def test_runs_scored_under_parts_of_the_judgments_follow_the_exceptions_of_a_preset() -> None:
    qrels = {"q": {**GRADED["q"], "zz": -1}}
    names = ["Compat", "P@1", "Judged@3", "RR@5"]
    partly = Partial(qrels, as_runs(TIED), names, conventions="ir_measures").values()
    assert np.array_equal(partly, evaluate(qrels, TIED, names, conventions="ir_measures").values)


def test_preset_ir_measures_keeps_the_last_of_two_equal_documents_against_ir_measures(tmp_path: Path) -> None:
    import ir_measures

    run = tmp_path / "twice.run"
    run.write_text("q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 a 3 1 t\n")
    theirs = ir_measures.calc_aggregate(
        [ir_measures.RR], [ir_measures.Qrel("q", "a", 1)], ir_measures.read_trec_run(str(run))
    )
    assert evaluate({"q": {"a": 1}}, run, "RR", conventions="ir_measures").mean() == theirs[ir_measures.RR] == 0.5


def beir(qrels: Any, run: Any, measure: str) -> float:
    """What BEIR's evaluate does: it takes the topic out of its own answers and averages what pytrec_eval returns."""
    import pytrec_eval

    others = {topic: {d: s for d, s in found.items() if d != topic} for topic, found in run.items()}
    values = [row[measure] for row in pytrec_eval.RelevanceEvaluator(qrels, {measure}).evaluate(others).values()]
    return sum(values) / len(values)


def test_preset_beir_against_pytrec_eval_used_as_beir_uses_it() -> None:
    for measure in ("bpref", "map", "ndcg"):
        assert evaluate(QRELS, RUN, measure, conventions="beir").mean() == pytest.approx(beir(QRELS, RUN, measure))


def test_preset_beir_sorts_a_list_for_reciprocal_rank_as_its_own_mrr_does() -> None:
    tied = {"q": {"a": 1.0, "b": 1.0, "c": 1.0 + 1e-10}}
    for relevant in "abc":
        ranking = sorted(tied["q"], key=lambda document: tied["q"][document], reverse=True)
        ours = evaluate({"q": {relevant: 1}}, tied, "RR", conventions="beir").mean()
        assert ours == 1 / (1 + ranking.index(relevant))


def test_preset_beir_against_values_recorded_from_beir() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"b": 1, "q2": 1}, "q3": {"c": 0}, "q4": {"z": 1}}
    run = {"q1": {"x": 2.0, "a": 1.0}, "q2": {"q2": 3.0, "b": 2.0}, "q3": {"c": 1.0}}
    recorded = {"NDCG@1": 0.33333, "NDCG@10": 0.41469, "MAP@1": 0.16667, "MAP@10": 0.33333}
    recorded |= {"Recall@1": 0.16667, "Recall@10": 0.5, "P@1": 0.33333, "P@10": 0.06667}
    means = evaluate(qrels, run, list(recorded), conventions="beir").means()
    assert {name: round(value, 5) for name, value in means.items()} == recorded


RANX = {"map": 0.5833333333333333, "ndcg@10": 0.6199062332840657, "mrr": 0.5, "precision@5": 0.4, "recall@5": 1.0}
RANX |= {"bpref": 0.0, "rbp.80": 0.4159999999999999, "hits@2": 1.0, "f1@5": 0.5714285714285715, "r-precision": 0.5}
RANX |= {"hit_rate@2": 1.0, "dcg@10": 1.6309297535714575, "dcg_burges@10": 2.1309297535714578}
RANX |= {"ndcg_burges@10": 0.58688267143572}


def test_preset_ranx_judges_a_negative_grade_irrelevant_against_values_recorded_from_ranx() -> None:
    qrels, run = {"q1": {"a": -2, "b": 1, "c": 2}}, {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}}
    assert evaluate(qrels, run, list(RANX), conventions="ranx").means() == pytest.approx(RANX)
    assert evaluate(qrels, run, "bpref").mean() == 1


def test_preset_ranx_keeps_a_few_ties_in_the_order_given_against_values_recorded_from_ranx(tmp_path: Path) -> None:
    recorded = {"abc": 2, "acb": 3, "bac": 1, "bca": 1, "cab": 3, "cba": 2}  # order given → rank of b
    for order, rank in recorded.items():
        run = {"q": dict.fromkeys(order, 1.0)}
        assert evaluate({"q": {"b": 1}}, run, "mrr", conventions="ranx").mean() == pytest.approx(1 / rank)


def test_preset_ranx_compares_doubles_and_counts_topics_without_relevant_documents_against_recorded_values() -> None:
    close = {"q": {"a": 1.0, "b": 1.0 + 1e-12}}
    assert evaluate({"q": {"a": 1}}, close, "mrr", conventions="ranx").mean() == 0.5
    barren = {"q1": {"a": 1}, "q2": {"a": 0}}
    assert evaluate(barren, {"q1": {"a": 1}, "q2": {"a": 1}}, "mrr", conventions="ranx").mean() == 0.5


def test_preset_ranx_stops_at_a_missing_topic_and_keeps_the_last_duplicate_as_ranx_does(tmp_path: Path) -> None:
    with pytest.raises(TopicError):
        evaluate(QRELS, RUN, "mrr", conventions="ranx")
    run = tmp_path / "twice.run"
    run.write_text("q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 a 3 1 t\n")
    assert evaluate({"q": {"a": 1}}, run, "mrr", conventions="ranx").mean() == 0.5


def test_preset_trec_eval_10_stops_at_a_missing_topic_and_9_leaves_it_out(shared: Path) -> None:
    """As exit codes 4 and 0 of the recorded outputs 028.v10 and 027.v9 say; values: test_oracle_trec_eval.py."""
    qrels, run = shared / "cacm" / "cacm.qrels", shared / "cacm" / "cacm_core_1"
    with pytest.raises(TopicError):
        evaluate(qrels, run, "map", conventions="trec_eval-10")
    assert round(evaluate(qrels, run, "map", conventions="trec_eval-9").mean(), 4) == 0.2208


@pytest.mark.parametrize("version", ["trec_eval-9", "trec_eval-10"])
def test_preset_trec_eval_refuses_a_document_that_stands_twice(shared: Path, version: str) -> None:
    """As exit code 4 of the recorded outputs 045.v9 and 046.v10 says."""
    folder = shared / "codec-document"
    with pytest.raises(DuplicateError):
        evaluate(folder / "document_ndcg.qrels", folder / "document_bm25+rm3-tuned.run", "map", conventions=version)
