"""The same numbers as other programs: recorded cases of ir_measures, and ir_measures and pytrec_eval themselves."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from conftest import SHARED
from cranfield import Run, evaluate
from cranfield.evaluation.measures import measure
from oracles import per_topic, proves

if TYPE_CHECKING:
    from pathlib import Path

    from cranfield import Scores

Nested = dict[str, dict[str, float]]

# Recorded cases of ir_measures 0.4.3 with its reference providers

ELSEWHERE = {"Accuracy", "Compat", "ERR_IA"}  # compared in the file of their family, test_oracle_*.py
ELSEWHERE |= {"BPM", "INSQ", "INST", "SDCG", "NERR8", "NERR9", "NERR10", "NERR11"}


@cache
def recorded() -> dict[str, Any]:
    file = SHARED / "peer-cases" / "ir_measures.json"
    return json.loads(file.read_text()) if file.exists() else {"cases": [], "qrels": {}, "runs": {}}


def name_of(case: dict[str, Any]) -> str:
    return case["measure"].partition("(")[0].partition("@")[0]


def cases(*names: str) -> list[Any]:
    if not recorded()["cases"]:
        return [pytest.param(None, marks=pytest.mark.skip(reason="needs ../shared/data"))]
    picked = [case for case in recorded()["cases"] if name_of(case) in names]
    keys = ("provider", "measure", "qrels", "run")
    return [pytest.param(case, id=" ".join(case[key] for key in keys)) for case in picked]


def nested(rows: list[list[Any]]) -> Nested:
    answer: Nested = {}
    for topic, document, number, *_ in rows:
        answer.setdefault(topic, {})[document] = number
    return answer


def compare(case: dict[str, Any], text: str) -> None:
    qrels, run = nested(recorded()["qrels"][case["qrels"]]), nested(recorded()["runs"][case["run"]])
    topics = per_topic(evaluate(qrels, Run(run), [text], conventions="ir_measures"))
    tolerance = 5.1e-6 if case["provider"] == "gdeval" else 1e-9  # gdeval prints five decimals
    assert set(topics) == set(case["per_query"])
    for topic, expected in case["per_query"].items():
        assert topics[topic][text] == pytest.approx(expected, abs=tolerance), topic


SAME = (
    "P",
    "AP",
    "RR",
    "Rprec",
    "R",
    "infAP",
    "NumQ",
    "NumRel",
    "NumRet",
    "SetAP",
    "SetP",
    "SetR",
    "Success",
    "RBP",
    "Judged",
    "ERR",
)


@proves(*SAME)
@pytest.mark.parametrize("case", cases(*SAME))
def test_recorded_cases_of_measures_with_the_same_name_against_ir_measures(case: dict[str, Any]) -> None:
    compare(case, case["measure"])


@proves("nDCG")
@pytest.mark.parametrize("case", cases("nDCG"))
def test_recorded_cases_of_ndcg_whose_gdeval_gain_is_exponential_against_ir_measures(case: dict[str, Any]) -> None:
    text = case["measure"]
    compare(case, text.replace("nDCG", "nDCG(dcg='exp-log2')") if case["provider"] == "gdeval" else text)


@proves("IPrec")
@pytest.mark.parametrize("case", cases("IPrec"))
def test_recorded_cases_of_iprec_whose_levels_are_those_of_trec_eval_9_against_ir_measures(
    case: dict[str, Any],
) -> None:
    given = measure(case["measure"])
    compare(case, str(type(given)(**{**given.values, "level": "trec_eval-9"})))


@proves("SetF")
@pytest.mark.parametrize("case", cases("SetF"))
def test_recorded_cases_of_setf_whose_beta_is_our_beta_squared_against_ir_measures(case: dict[str, Any]) -> None:
    compare(case, case["measure"])
    given = measure(case["measure"])
    ours = given.with_values(beta=math.sqrt(given.values["beta"]))
    qrels, run = nested(recorded()["qrels"][case["qrels"]]), nested(recorded()["runs"][case["run"]])
    mean = evaluate(qrels, Run(run), [ours], conventions="ir_measures", scores="single").mean()
    assert (given.values["beta"] == 1) == (mean == evaluate(qrels, Run(run), given, conventions="ir_measures").mean())


def test_recorded_cases_are_all_compared_here_or_in_the_file_of_their_family(shared: Path) -> None:
    compared = len(cases(*SAME)) + len(cases("nDCG")) + len(cases("IPrec")) + len(cases("SetF"))
    assert compared + len(cases(*ELSEWHERE)) == len(recorded()["cases"]) == 118


# The programs themselves, on seeded random data

TREC_EVAL_9 = "trec_eval-9"


def random_data(seed: int, ties: bool) -> tuple[dict[str, dict[str, int]], Nested]:
    """Thirty topics with grades -2…3; every fifth has no relevant document, every seventh is not in the run."""
    rng = np.random.default_rng(seed)
    qrels: dict[str, dict[str, int]] = {}
    run: Nested = {}
    for t in range(30):
        pool = rng.permutation(80)
        grades = rng.choice([-2, -1, 0, 0, 0, 1, 1, 2, 3], 40)
        if t % 5 == 0:
            grades = np.minimum(grades, 0)
        qrels[f"t{t}"] = {f"d{d}": int(g) for d, g in zip(pool[:40], grades, strict=True)}
        if t % 7 != 6:
            returned = rng.permutation(80)[: rng.integers(1, 60)]
            scores = rng.integers(0, 6, len(returned)) / 7 if ties else rng.normal(size=len(returned))
            run[f"t{t}"] = {f"d{d}": float(s) for d, s in zip(returned, scores, strict=True)}
    return qrels, run


KS = (1, 3, 5, 10, 30, 100)
PYTREC_EVAL = {
    "map": "AP",
    "recip_rank": "RR",
    "Rprec": "Rprec",
    "bpref": "Bpref",
    "infAP": "infAP",
    "ndcg": "nDCG",
    "11pt_avg": "11pt(level=trec_eval-9)",
    "set_P": "SetP",
    "set_relative_P": "SetP(relative=True)",
    "set_recall": "SetR",
    "set_map": "SetAP",
    "set_F": "SetF",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRelRet",
    **{f"P_{k}": f"P@{k}" for k in KS},
    **{f"recall_{k}": f"R@{k}" for k in KS},
    **{f"map_cut_{k}": f"AP@{k}" for k in KS},
    **{f"ndcg_cut_{k}": f"nDCG@{k}" for k in KS},
    **{f"success_{k}": f"Success@{k}" for k in KS},
    **{f"iprec_at_recall_{x / 10:.2f}": f"IPrec(level=trec_eval-9)@{x / 10}" for x in range(11)},
}
PYTREC_EVAL_ASKS = {
    *(name for name in PYTREC_EVAL if not name[-1].isdigit()),
    *(f"{name}.{','.join(map(str, KS))}" for name in ("P", "recall", "map_cut", "ndcg_cut", "success")),
    "iprec_at_recall",
}
PROVED_LIVE = tuple(sorted({type(measure(name)).name for name in PYTREC_EVAL.values()}))


@proves(*PROVED_LIVE)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("rel", [1, 2])
def test_random_runs_with_ties_and_negative_grades_against_pytrec_eval(ties: bool, rel: int) -> None:
    import pytrec_eval

    qrels, run = random_data(seed=rel, ties=ties)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, PYTREC_EVAL_ASKS, relevance_level=rel).evaluate(run)
    ours = per_topic(evaluate(qrels, run, list(PYTREC_EVAL.values()), rel=rel, conventions=TREC_EVAL_9))
    assert set(ours) == set(theirs)
    for topic, row in theirs.items():
        assert set(row) == set(PYTREC_EVAL)
        for name, expected in row.items():
            if name == "num_rel" and rel > 1:
                continue  # pytrec_eval, like trec_eval -c, counts grades above 0 whatever the level
            assert ours[topic][PYTREC_EVAL[name]] == pytest.approx(expected, abs=1e-12), (topic, name)


def test_32_bit_scores_tie_where_doubles_do_not_against_pytrec_eval() -> None:
    import pytrec_eval

    qrels, run = {"q": {"a": 1, "b": 0}}, {"q": {"a": 1 + 1e-10, "b": 1.0}}
    [theirs] = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run).values()
    assert theirs["recip_rank"] == evaluate(qrels, run, "RR", scores="single").mean() == 0.5
    assert evaluate(qrels, run, "RR").mean() == 1


IR_MEASURES = [
    "AP", "AP@10", "AP(rel=2)", "nDCG", "nDCG@10", "P@5", "P(rel=2)@10", "R@10", "R(rel=2)@30", "RR", "Rprec", "Rprec(rel=2)",
    "Bpref", "Bpref(rel=2)", "infAP", "Success@3", "SetP", "SetP(rel=2)", "SetR", "SetF", "SetAP", "NumRet", "NumRelRet",
    "P(judged_only=True)@5", "AP(judged_only=True)@10", "nDCG(judged_only=True)@10", "RR(judged_only=True)",
]  # fmt: skip


def their_values(wanted: list[str], qrels: Any, run: Nested) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    import ir_measures

    parsed = {ir_measures.parse_measure(text): text for text in wanted}
    means: dict[str, float] = {}
    topics: dict[str, dict[str, float]] = {}
    for judged_only in (
        False,
        True,
    ):  # asked together, NumRet counts one list or the other as the hash seed will have it
        asked = [m for m, text in parsed.items() if ("judged_only" in text) == judged_only]
        if not asked:
            continue
        result = ir_measures.calc(asked, qrels, run)
        for metric in result.per_query:
            topics.setdefault(metric.query_id, {})[parsed[metric.measure]] = metric.value
        means |= {parsed[m]: value for m, value in result.aggregated.items()}
    return means, topics


def assert_same(ours: Scores, means: dict[str, float], topics: dict[str, dict[str, float]]) -> None:
    mine = per_topic(ours)
    assert set(mine) == set(topics)
    for topic, row in topics.items():
        for name, expected in row.items():
            assert mine[topic][name] == pytest.approx(expected, abs=1e-12), (topic, name)
    for name, expected in means.items():
        assert ours.mean(name) == pytest.approx(expected, abs=1e-12), name


@proves(*sorted({type(measure(name)).name for name in IR_MEASURES}))
@pytest.mark.parametrize("ties", [False, True])
def test_random_runs_with_the_preset_ir_measures_against_ir_measures(ties: bool) -> None:
    qrels, run = random_data(seed=7, ties=ties)
    means, topics = their_values(IR_MEASURES, qrels, run)
    assert_same(evaluate(qrels, run, IR_MEASURES, conventions="ir_measures"), means, topics)


@proves("NumQ", "NumRel")
def test_topics_that_a_run_lacks_count_except_with_the_preset_ir_measures() -> None:
    """trec_eval -c counts them; ir_measures fills in 0, as if nothing had been asked."""
    qrels, run = random_data(seed=7, ties=False)
    means, topics = their_values(["NumQ", "NumRel"], qrels, run)
    ours = evaluate(qrels, run, "NumQ NumRel", conventions="ir_measures")
    for topic in run:
        assert per_topic(ours)[topic] == topics[topic]
    assert ours.means() == means == {"NumQ": len(run), "NumRel": ours.mean("NumRel")}
    complete = evaluate(qrels, run, "NumQ NumRel")
    assert complete.mean("NumQ") == 30
    assert complete.mean("NumRel") == sum(grade > 0 for judged in qrels.values() for grade in judged.values())


@proves("RR")
def test_rr_at_k_breaks_ties_by_ascending_id_against_ir_measures() -> None:
    """One call of ir_measures answers RR and RR@k in different tie orders, and so does its preset."""
    qrels, run = random_data(seed=8, ties=True)
    means, topics = their_values(["RR@10", "RR"], qrels, run)
    ours = evaluate(qrels, run, "RR@10 RR", conventions="ir_measures")
    assert_same(ours, means, topics)
    assert ours.mean("RR@10") != pytest.approx(evaluate(qrels, run, "RR@10", scores="single").mean())


@proves("Judged")
def test_judged_counts_negative_grades_and_breaks_ties_by_ascending_id_against_ir_measures() -> None:
    qrels, run = random_data(seed=9, ties=True)
    means, topics = their_values(["Judged@10", "Judged"], qrels, run)
    assert_same(evaluate(qrels, run, "Judged@10 Judged", conventions="ir_measures"), means, topics)


# One run, ten nDCG@10s: what the field's programs answer for the same small run

GRADES = {"d1": 3, "d2": 2, "d3": 2, "d4": 1, "d5": 1, "d6": 0, "d7": 0, "d8": -2}
GRADES |= {"e1": 3, "e2": 2, "e3": 1, "e4": 1, "e5": 1, "e6": 1}
RETURNED = {"d4": 9, "d1": 8, "d6": 8, "u1": 7, "d2": 6, "d8": 5}
AS_GIVEN = {"ties": "input-order"}
ENGINE = "gain={1:1, 2:3, 3:7, -2:-0.75}"  # 2^grade - 1, below zero too

TEN = {
    "trec_eval_ndcg_cut": ("ndcg_cut_10", {}, ".3588"),
    "trec_eval_ndcg": ("ndcg", {}, ".3482"),
    "ties_in_insertion_order": ("nDCG@10", AS_GIVEN, ".4019"),
    "gdeval": ("nDCG(gain=exp2)@10", {}, ".3337"),
    "elasticsearch": (f"nDCG({ENGINE}, ideal=hits)@10", AS_GIVEN, ".4013"),
    "opensearch_and_quepid_ndcg_cut": (f"nDCG({ENGINE})@10", AS_GIVEN, ".3720"),
    "jarvelin_and_kekalainen": ("nDCG(discount=jk)@10", {}, ".3471"),
    "trec_eval_J": ("nDCG@10", {"unjudged": "drop"}, ".3685"),
    "trec_eval_J_as_a_parameter": ("nDCG(judged_only=True)@10", {}, ".3685"),
    "ap_over_relevant": ("AP@10", {}, ".2061"),
    "ap_over_min_of_relevant_and_k": ("AP(divide=cut)@10", {}, ".2267"),
    "ap_over_found": ("AP(divide=found)@10", {}, ".7556"),
    "p_over_k": ("P@10", {}, ".30"),
    "p_over_returned": ("P(divide=returned)@10", {}, ".50"),
    "err_max_4": ("ERR@10", {}, ".2190"),
    "err_max_3": ("ERR(max=3)@10", {}, ".388"),
    "err_max_3_in_the_order_given": ("ERR(max=3)@10", AS_GIVEN, ".516"),
    "rbp_binary": ("RBP(p=0.8)", {}, ".410"),
    "rbp_raw_grade": ("RBP(p=0.8, gain=grade)", {}, ".748"),
    "rbp_raw_grade_as_ranx_spells_it": ("rbp.8", {}, ".748"),
    "rbp_normalised_by_topic": ("RBP(p=0.8, gain=topic)", {}, ".249"),
}


@proves("nDCG", "AP", "P", "ERR", "RBP")
@pytest.mark.parametrize("case", TEN)
def test_one_run_under_every_preset_against_the_recorded_values_of_each_program(case: str) -> None:
    name, changes, expected = TEN[case]
    value = evaluate({"t": GRADES}, {"t": RETURNED}, [name], **changes).mean()
    assert f"{value:.{len(expected) - 1}f}".removeprefix("0") == expected
