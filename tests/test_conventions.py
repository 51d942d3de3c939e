"""Conventions: what each answer does, and that each preset answers as its namesake does.

Answers of programs that are installed are asked for here; those of ranx 0.3.21 and BEIR 2.2.0 were recorded from them
(docs/conventions.md says how).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from cranfield import PRESETS, Conventions, evaluate
from cranfield.conventions import conventions
from cranfield.errors import ConventionError, DuplicateError, TopicError
from cranfield.peers import PEERS
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
    with pytest.raises(DuplicateError, match=r"twice\.run:3: document 'a' stands twice for topic 'q'"):
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
    for measure in ("recip_rank", "bpref", "map", "ndcg"):
        assert evaluate(QRELS, RUN, measure, conventions="beir").mean() == pytest.approx(beir(QRELS, RUN, measure))


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
