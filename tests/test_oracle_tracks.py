"""Published results of real evaluations: TREC-COVID, CODEC, the web track, Cranfield and CACM logs."""

from __future__ import annotations

import csv
from functools import cache
from typing import TYPE_CHECKING

import pytest

from conftest import SHARED
from cranfield import evaluate
from cranfield.base.errors import BadLineError, DuplicateError
from oracles import geometric_mean, per_topic, printed, proves, wide_run

if TYPE_CHECKING:
    from pathlib import Path

    from cranfield import Scores


def table(path: Path, delimiter: str = "\t") -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


# TREC-COVID round 3: `trec_eval -c -M1000`, version 9 with its 32-bit scores

COVID_RUNS = [
    "CincyMedIR-1",
    "CincyMedIR-12",
    "CincyMedIR-9",
    "PRF",
    "UIowaS_Rd3MLReRank",
    "UPrrf20maxens-r3",
    "covidex.r3.t5_lr",
    "fusionofruns",
    "l2r",
    "r3.fusion1",
    "sab20.3.rocchio",
    "sim_run",
    "xj4wang_run1",
    "xj4wang_run2",
]
NIST = "num_q num_ret num_rel num_rel_ret map bpref ndcg_cut_10 P_5 P_10 P_15 P_20 P_30 Rprec"
RBP5 = "RBP(p=0.5, gain=grade, max=2)"
LEADERBOARD = {"ndcg@10": "ndcg_cut_10", "P@5": "P_5", "rbp_p5": RBP5, "bpref": "bpref", "map": "map"}


@cache
def covid(run: str, scores: str = "single") -> Scores:
    folder = SHARED / "trec-covid-r3"
    conventions = {"scores": scores, "missing": "zero"}
    wanted = [NIST, RBP5]
    return evaluate(folder / "qrels.covid-round3.txt", folder / "runs" / run, wanted, conventions=conventions)


@proves("NumQ", "NumRet", "NumRel", "NumRelRet", "AP", "Bpref", "nDCG", "P", "Rprec")
@pytest.mark.parametrize("run", COVID_RUNS)
def test_thirteen_values_per_run_against_nist_reports_of_trec_covid(shared: Path, run: str) -> None:
    means = covid(run).means()
    rows = [row for row in table(shared / "trec-covid-r3" / "nist_reports.tsv") if row["run"] == run]
    assert len(rows) == 13
    for row in rows:
        assert printed(means[row["measure"]], like=row["value"]) == row["value"], row


@proves("nDCG", "P", "RBP", "Bpref", "AP")
@pytest.mark.parametrize("run", COVID_RUNS)
def test_the_effectiveness_columns_against_the_trec_covid_leaderboard(shared: Path, run: str) -> None:
    means = covid(run).means()
    [row] = [row for row in table(shared / "trec-covid-r3" / "leaderboard.csv", ",") if row["run"] == run]
    for column, measure in LEADERBOARD.items():
        assert printed(means[measure], like=row[column]) == row[column], column


@proves("Judged")
@pytest.mark.parametrize("run", COVID_RUNS)
def test_judged_at_k_breaks_ties_by_ascending_id_against_the_trec_covid_leaderboard(shared: Path, run: str) -> None:
    """Its J@k columns come from another program than the rest: two runs' tie orders show it."""
    folder = shared / "trec-covid-r3"
    wanted = {f"J@{k}": f"Judged@{k}" for k in (5, 10, 1000)}
    qrels, file = folder / "qrels.covid-round3.txt", folder / "runs" / run
    means = evaluate(qrels, file, list(wanted.values()), ties="document-ascending").means()
    [row] = [row for row in table(folder / "leaderboard.csv", ",") if row["run"] == run]
    for column, measure in wanted.items():
        assert printed(means[measure], like=row[column]) == row[column], column


@proves("RBP")
def test_official_rbp_of_one_run_with_32_bit_scores_against_the_trec_covid_leaderboard(shared: Path) -> None:
    assert round(covid("UIowaS_Rd3MLReRank", "single").mean(RBP5), 4) == 0.7405
    assert round(covid("UIowaS_Rd3MLReRank", "double").mean(RBP5), 4) == 0.7374


# CODEC

CODEC_QRELS = {"map": "binary", "recall_1000": "binary", "ndcg_cut_10": "ndcg"}
CODEC_RUNS = [
    "ance-maxp",
    "ance-maxp+t5-maxp",
    "bm25+rm3-tuned",
    "bm25+rm3-tuned+t5-maxp",
    "bm25-tuned",
    "bm25-tuned+t5-maxp",
]
CODEC_TWICE = ["bm25+rm3-tuned", "entity-feedback-tuned_42"]


@proves("AP", "R", "nDCG")
@pytest.mark.parametrize("run", CODEC_RUNS)
def test_published_values_count_the_last_of_two_repeated_documents_against_the_codec_table(
    shared: Path, run: str
) -> None:
    folder = shared / "codec-document"
    name = f"document_{run}.run"
    rows = [row for row in table(folder / "published.tsv") if row["run"] == name]
    assert len(rows) == 3
    for row in rows:
        qrels = folder / f"document_{CODEC_QRELS[row['measure']]}.qrels"
        mean = evaluate(qrels, folder / name, row["measure"], duplicates="last").mean()
        assert printed(mean, like=row["value"]) == row["value"], row


@pytest.mark.parametrize("run", CODEC_TWICE)
def test_a_codec_run_that_names_a_document_twice_is_refused_unless_one_says_which_to_keep(
    shared: Path, run: str
) -> None:
    folder = shared / "codec-document"
    with pytest.raises(DuplicateError, match="occurs twice for topic"):
        evaluate(folder / "document_ndcg.qrels", folder / f"document_{run}.run", "AP")


# The web track's gdeval

WEB = [
    f"{model}.results-{part}" for model in ("ql", "rm") for part in ("cata", "cata-filtered", "catb", "catb-filtered")
]


def compare_with_gdeval(scores: Scores, rows: list[dict[str, str]], k: int) -> None:
    topics = {**per_topic(scores), "amean": scores.means()}
    assert set(topics) == {row["topic"] for row in rows}
    for row in rows:
        assert printed(topics[row["topic"]][f"nDCG(gain=exp2)@{k}"], like="0.00000") == row[f"ndcg@{k}"], row
        assert printed(topics[row["topic"]][f"ERR@{k}"], like="0.00000") == row[f"err@{k}"], row


@proves("nDCG", "ERR")
@pytest.mark.parametrize("run", WEB)
def test_graded_measures_at_20_against_gdeval(shared: Path, run: str) -> None:
    folder = shared / "webtrack2012-baselines"
    scores = evaluate(
        folder / "qrels.web.151-200.txt",
        folder / f"{run}.txt",
        "nDCG(gain=exp2)@20 ERR@20",
        missing="skip",
        no_relevant="skip",
    )
    compare_with_gdeval(scores, table(folder / f"{run}.gdeval.csv", ","), 20)


@proves("nDCG", "ERR")
def test_graded_measures_at_10_over_all_judged_topics_against_gdeval_with_c_and_k(shared: Path) -> None:
    folder = shared / "webtrack2012-baselines"
    run = "rm.results-catb-filtered"
    scores = evaluate(
        folder / "qrels.web.151-200.txt", folder / f"{run}.txt", "nDCG(gain=exp2)@10 ERR@10", no_relevant="skip"
    )
    compare_with_gdeval(scores, table(folder / f"{run}.k10.c.gdeval.csv", ","), 10)


# Cranfield and CACM logs

RERANKED = [(boost, top) for boost in ("0.5", "1.0", "2.0") for top in (50, 100)]


@proves("AP", "P", "R")
@pytest.mark.parametrize(("boost", "top"), RERANKED)
def test_reranked_cranfield_runs_with_a_seventh_column_against_trec_eval_logs(
    shared: Path, boost: str, top: int
) -> None:
    """An id of the runs holds a blank (`.I 1`), so that trec_eval took the rank for the score; so must we here."""
    folder = shared / "cranfield-runs-rerank"
    run = wide_run(folder / f"cran_results_rerank_boost{boost}_top{top}.txt")
    scores = evaluate(folder / "cranqrel.tcd-corrected", run, "map P_5 recall_1000", missing="skip")
    means = {**scores.means(), "gm_map": geometric_mean(scores["map"][scores.counted[0]])}
    lines = (folder / f"metrics_rerank_b{boost}_t{top}.txt").read_text().splitlines()
    assert len(lines) == 4
    for line in lines:
        measure, _, expected = line.split()
        assert printed(means[measure], like=expected) == expected, measure


def test_a_cranfield_run_with_a_blank_in_an_id_is_refused_with_its_line(shared: Path) -> None:
    folder = shared / "cranfield-runs-rerank"
    with pytest.raises(BadLineError, match=r"top50\.txt:4093: expected 6 columns"):
        evaluate(folder / "cranqrel.tcd-corrected", folder / "cran_results_rerank_boost0.5_top50.txt", "AP")


def our_name(trec_eval_8: str) -> str:
    if trec_eval_8.startswith("ircl_prn."):
        return f"IPrec@{trec_eval_8.removeprefix('ircl_prn.')}"
    if trec_eval_8[1:].isdigit():
        return f"P@{trec_eval_8[1:]}"
    return {"R-prec": "Rprec"}.get(trec_eval_8, trec_eval_8)


@proves("NumQ", "NumRet", "NumRel", "NumRelRet", "AP", "Rprec", "Bpref", "RR", "IPrec", "P")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_line_of_the_cacm_logs_against_trec_eval_8(shared: Path, number: int) -> None:
    """Interpolated precision is cut at the exact ceiling of recall × relevant, as version 8 did."""
    folder = shared / "cacm"
    text = (folder / f"trec_eval_result_{number}.txt").read_text()
    lines = [line.split() for line in text.splitlines() if line.strip()]
    assert len(lines) > 1400
    wanted = [our_name(measure) for measure, topic, _ in lines if topic == "all" and measure != "gm_ap"]
    scores = evaluate(folder / "cacm.qrels", folder / f"cacm_core_{number}", wanted, missing="skip", scores="single")
    topics = {**per_topic(scores), "all": scores.means()}
    topics["all"]["gm_ap"] = geometric_mean(scores["map"][scores.counted[0]])
    assert set(topics) == {topic for _, topic, _ in lines}
    for measure, topic, expected in lines:
        assert printed(topics[topic][our_name(measure)], like=expected) == expected, (topic, measure)
