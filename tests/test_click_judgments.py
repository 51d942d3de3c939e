"""Judgments from clicks: values, intervals, grades and files. Simulated users with known parameters are the main oracle."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

import cranfield as cf
from click_worlds import fit, random_pages, simulated, true_model
from cranfield.base.errors import BadLineError, ConventionError, DataError
from cranfield.experiments.clicks.judgments import judge_by_clicks
from cranfield.experiments.clicks.model import CLICK_MODELS
from cranfield.experiments.clicks.result_pages import ResultPages
from cranfield.experiments.clicks.values import CLICK_VALUES, attractiveness_posteriors
from cranfield.formats.uncertain_qrels import grades_of, has_posteriors, read_uncertain
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from pathlib import Path

LOG = "online/clicks-log"
EXACT = {"DCM": "DCM(exact=yes)", "SDBN": "SDBN(exact=yes)"}
COVERED = [name for name, cls in CLICK_MODELS.items() if cls.values_documents and name != "DocumentCTR"]
WITH_SATISFACTION = ["DBN", "SDBN"]


def pages_of(*sessions: tuple[str, list[int]]) -> ResultPages:
    """Pages of the documents a, b, c … with these clicks."""
    return ResultPages.of([(query, list("abcdefgh"[: len(clicks)]), clicks) for query, clicks in sessions])


# values by hand


def test_a_counted_value_is_the_beta_posterior_of_clicks_and_views() -> None:
    """3 clicks in 10 views at rank 1, with one click in two views before: Beta(4, 8)."""
    pages = pages_of(*[("q", [1])] * 3, *[("q", [0])] * 7)
    for name in ("CM", "DocumentCTR"):
        judged = judge_by_clicks(pages, fitted=fit(CLICK_MODELS.named(name), pages))
        assert (judged.posteriors.alpha[0], judged.posteriors.beta[0]) == pytest.approx((4, 8))
        low, high = judged.posteriors.interval()
        assert (low[0], high[0]) == pytest.approx(stats.beta(4, 8).ppf([0.025, 0.975]).tolist())
        assert (judged.views.tolist(), judged.clicks.tolist()) == ([10], [3])


def test_the_prior_of_a_book_gives_its_printed_value() -> None:
    """14 clicks in 34 views with a prior of .3 that weighs 100 views: 0.328358, as AI-Powered Search prints it."""
    pages = pages_of(*[("q", [1])] * 14, *[("q", [0, 1])] * 20, ("another", [1, 1]))
    model = CLICK_MODELS.named("SDBN(no_click=unexamined,pseudo_clicks=30,pseudo_views=100)")
    judged = judge_by_clicks(pages, fitted=fit(model, pages))
    assert judged.documents[:1] == ["a"]
    assert judged.values[0] == pytest.approx(0.328358, abs=5e-7)


def test_coec_is_clicks_over_the_clicks_of_the_ranks() -> None:
    """Rank 1 is clicked in half of its views, rank 2 in a quarter. a: 1 click, expected 4 × .5; b: 1 click, 4 × .25."""
    sessions = [[1, 0], [0, 0], [0, 0], [0, 1]]
    others = [[1, 0]] * 3 + [[0, 1]]
    pages = pages_of(*[("q", each) for each in sessions], *[("r", each) for each in others])
    judged = judge_by_clicks(pages, "coec", min_views=1)
    rows = dict(zip(zip(judged.topics, judged.documents, strict=True), judged.values.tolist(), strict=True))
    assert rows["q", "a"] == pytest.approx((1 + 1) / (4 * 0.5 + 1))
    assert rows["q", "b"] == pytest.approx((1 + 1) / (4 * 0.25 + 1))


def test_both_is_the_product_of_attractiveness_and_satisfaction() -> None:
    pages, _ = simulated("DBN", 2_000, 5)
    fitted = fit(CLICK_MODELS.named("DBN"), pages)
    names = "attractiveness", "satisfaction", "both"
    attracts, satisfies, both = (CLICK_VALUES.named(each).posteriors(pages, fitted).mean for each in names)
    np.testing.assert_allclose(both, attracts * satisfies)
    np.testing.assert_allclose(satisfies, fitted.satisfaction)


def test_a_model_without_values_of_documents_is_refused() -> None:
    pages = pages_of(("q", [1, 0]), ("q", [0, 1]))
    with pytest.raises(ConventionError, match="same value"):
        judge_by_clicks(pages, fitted=fit(CLICK_MODELS.named("CTR"), pages), min_views=1)
    with pytest.raises(ConventionError, match="has no satisfaction"):
        judge_by_clicks(pages, "satisfaction", fit(CLICK_MODELS.named("PBM(iterations=1)"), pages), min_views=1)


def test_pseudo_counts_are_the_whole_posterior_of_a_document_that_was_never_examined() -> None:
    pages = pages_of(*[("q", [1, 0, 0])] * 20, ("another", [1, 1]))
    for name in ("CM", "SDBN"):
        fitted = fit(CLICK_MODELS.named(name), pages)
        posteriors = attractiveness_posteriors(pages, fitted)
        assert (posteriors.alpha[2], posteriors.beta[2]) == pytest.approx((1, 1))


def curvature(truth: Any, pages: ResultPages, pair: int) -> float:
    """The information about one pair's attractiveness: minus the second derivative of the log-likelihood, numerically."""
    step, logs = 1e-4, []
    for move in (-step, 0.0, step):
        attractiveness = truth.attractiveness.copy()
        attractiveness[pair] += move
        chance = replace(truth, attractiveness=attractiveness).conditional(pages)
        logs.append(float(np.log(np.where(pages.clicked, chance, 1 - chance)).sum()))
    return -(logs[0] - 2 * logs[1] + logs[2]) / step**2


@pytest.mark.parametrize(("name", "near"), [("PBM", 1e-3), ("UBM", 1e-3), ("DBN", 0.1), ("SDBN", 0.1), ("DCM", 0.1)])
def test_the_size_of_a_posterior_is_the_curvature_of_the_log_likelihood(name: str, near: float) -> None:
    """Exact where examination depends on the clicks above alone; below an unclicked document others tell about it as well."""
    pages, truth = simulated(name, 3_000, 4)
    truth = replace(truth, objective=np.zeros(1))  # as if fitted by EM
    posteriors = attractiveness_posteriors(pages, truth)
    size = posteriors.alpha + posteriors.beta - truth.model.pseudo_views
    for pair in (0, 7, 111):
        a = truth.attractiveness[pair]
        assert size[pair] == pytest.approx(a * (1 - a) * curvature(truth, pages, pair), rel=near)


# coverage


def coverage(name: str, value: str, size: int, logs: int, fitted_as: str = "") -> float:
    """The share of pairs whose interval covers the true value, over simulated logs of 20 queries × 10 documents."""
    shares = []
    for seed in range(logs):
        pages, truth = simulated(name, size, seed)
        fitted = fit(CLICK_MODELS.named(fitted_as or EXACT.get(name, name)), pages)
        low, high = CLICK_VALUES.named(value).posteriors(pages, fitted).interval()
        parts = {"attractiveness": [truth.attractiveness], "satisfaction": [truth.satisfaction]}
        true = np.prod(parts.get(value, [truth.attractiveness, truth.satisfaction]), axis=0)
        shares.append(((low <= true) & (true <= high)).mean())
    return float(np.mean(shares))


@pytest.mark.parametrize("name", COVERED)
def test_intervals_of_attractiveness_cover_the_truth_of_simulated_users(name: str) -> None:
    assert 0.92 <= coverage(name, "attractiveness", 3_000, 2) <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("size", [2_000, 10_000])
@pytest.mark.parametrize("name", COVERED)
def test_intervals_of_attractiveness_cover_the_truth_in_93_to_97_percent(name: str, size: int) -> None:
    assert 0.93 <= coverage(name, "attractiveness", size, 25) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("value", ["satisfaction", "both"])
@pytest.mark.parametrize("name", WITH_SATISFACTION)
def test_intervals_of_satisfaction_cover_the_truth_in_93_to_97_percent(name: str, value: str) -> None:
    assert 0.93 <= coverage(name, value, 10_000, 25) <= 0.97


def test_published_counts_do_not_cover_the_truth_and_a_note_says_so() -> None:
    assert coverage("SDBN", "attractiveness", 10_000, 2, fitted_as="SDBN") < 0.85
    pages, _ = simulated("SDBN", 500, 1)
    for name, told in (("SDBN", True), ("SDBN(exact=yes)", False), ("PBM", False)):
        notes = judge_by_clicks(pages, fitted=fit(CLICK_MODELS.named(name), pages)).notes()
        assert any("published counts are too high" in note for note in notes) == told


def coec_coverage(size: int, logs: int) -> float:
    shares = []
    for seed in range(logs):
        rng = np.random.default_rng(seed)
        pages = random_pages(size, rng)
        truth = true_model("PBM", pages, rng)
        low, high = (
            CLICK_VALUES.named("coec").posteriors(pages.with_clicks(truth.simulate(pages, rng)), None).interval()
        )
        true = truth.attractiveness / truth.attractiveness.mean()  # every document is at every rank as often
        shares.append(((low <= true) & (true <= high)).mean())
    return float(np.mean(shares))


def test_intervals_of_coec_cover_the_truth_of_simulated_users() -> None:
    assert 0.92 <= coec_coverage(3_000, 3) <= 0.98


@pytest.mark.slow
def test_intervals_of_coec_cover_the_truth_in_93_to_97_percent() -> None:
    assert 0.93 <= coec_coverage(10_000, 30) <= 0.97


# grades, topics, what is left out


def test_thresholds_count_how_many_a_value_reaches() -> None:
    pages, _ = simulated("PBM", 2_000, 3)
    fitted = fit(CLICK_MODELS.named("PBM"), pages)
    judged = judge_by_clicks(pages, fitted=fitted, thresholds=[0.1, 0.3])
    values = judged.values
    assert judged.grades.tolist() == [(value >= 0.1) + (value >= 0.3) for value in values.tolist()]
    assert grades_of(np.array([0.1]), [0.1]).tolist() == [1.0]


def test_quantiles_are_shares_of_the_judgments() -> None:
    pages, _ = simulated("PBM", 2_000, 3)
    judged = judge_by_clicks(pages, fitted=fit(CLICK_MODELS.named("PBM"), pages), quantiles=[0.5, 0.9])
    assert [int((judged.grades == grade).sum()) for grade in range(3)] == [100, 80, 20]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"thresholds": [0.3, 0.1]}, "rising"),
        ({"thresholds": [float("nan")]}, "rising"),
        ({"thresholds": [0.1], "quantiles": [0.5]}, "give one of them"),
        ({"quantiles": [1.5]}, "between 0 and 1"),
        ({"min_views": 0}, "min_views"),
    ],
)
def test_grades_that_make_no_sense_are_refused(how: dict, message: str) -> None:
    with pytest.raises(ConventionError, match=message):
        judge_by_clicks(pages_of(*[("q", [1, 0])] * 20), "coec", **how)


def test_rare_pairs_are_left_out_and_counted() -> None:
    pages = pages_of(*[("q", [1, 0])] * 12, *[("r", [1])] * 3)
    judged = judge_by_clicks(pages, "coec")
    assert (set(judged.topics), judged.rare, len(judged)) == ({"q"}, 1, 2)
    assert any("1 document was shown fewer than 10 times" in note for note in judged.notes())
    with pytest.raises(DataError, match="20 times or more for a query .at most 12."):
        judge_by_clicks(pages, "coec", min_views=20)


def test_queries_become_topics_in_their_normal_form_and_others_are_counted() -> None:
    pages = pages_of(*[("usb cable", [1])] * 10, *[("q7", [1])] * 10, *[("red shoes", [0])] * 10)
    judged = judge_by_clicks(pages, "coec", queries={"t1": "  USB  Cable", "Q7": "something else"})
    assert (judged.topics, judged.queries, judged.unknown) == (["t1", "Q7"], ["usb cable", "q7"], 1)
    with pytest.raises(DataError, match="'t1' and 't2' both ask"):
        judge_by_clicks(pages, "coec", queries={"t1": "usb cable", "t2": "USB cable"})
    with pytest.raises(DataError, match="no query of the log is the query of a topic"):
        judge_by_clicks(pages, "coec", queries={"t1": "something else"}, where="topics.tsv")


# files and the command


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Judgments of the example log in every format with columns."""
    for ending in ("csv", "tsv", "jsonl"):
        path = tmp_path / f"clicks.{ending}"
        answer = cranfield("online", "qrels", LOG, "--topics-file", "topics.tsv", "-o", path)
        assert answer.code == 0, answer.err
    return tmp_path


def test_every_format_is_read_as_the_same_qrels(written: Path) -> None:
    tables = [cf.read_qrels(str(written / f"clicks.{ending}")).to_dict() for ending in ("csv", "tsv", "jsonl")]
    assert tables[0] == tables[1] == tables[2]
    answer = cranfield("online", "qrels", LOG, "--topics-file", "topics.tsv", "--format", "json")
    rows = json.loads(answer.out)["judgments"]
    assert tables[0] == {
        topic: {row["document"]: row["grade"] for row in rows if row["topic"] == topic} for topic in tables[0]
    }
    assert all(0 <= row["low"] <= row["value"] <= row["high"] <= 1 for row in rows)


def test_every_format_keeps_the_posterior(written: Path) -> None:
    one, *others = (read_uncertain(str(written / f"clicks.{ending}")) for ending in ("csv", "tsv", "jsonl"))
    values = cf.read_qrels(str(written / "clicks.csv")).to_dict()
    assert [values[t][d] for t, d in one.subjects] == pytest.approx(one.posteriors.mean.tolist())
    assert one.posteriors.prior_alpha.tolist() == [1.0] * len(one.subjects)
    for other in others:
        assert other.subjects == one.subjects
        assert other.posteriors.alpha.tolist() == one.posteriors.alpha.tolist()
    assert has_posteriors(str(written / "clicks.jsonl"))
    assert not has_posteriors(str(EXAMPLES / "qrels.txt"))


@pytest.mark.parametrize("command", ["eval", "compare", "leaderboard"])
def test_commands_take_the_file_as_qrels(written: Path, command: str) -> None:
    runs = [EXAMPLES / "bm25.run", EXAMPLES / "dense.run"]
    answer = cranfield(command, written / "clicks.csv", *runs, "-m", "nDCG@10", "--format", "json")
    assert answer.code == 0, answer.err
    if command == "eval":
        plain = cf.read_qrels(str(written / "clicks.csv")).to_dict()
        expected = cf.evaluate(plain, str(runs[0]), "nDCG@10").mean()
        assert f"{expected:.10f}"[:10] in answer.out


def test_values_below_1_are_gains_of_graded_measures_and_no_topic_seems_without_relevance(written: Path) -> None:
    runs = [EXAMPLES / "bm25.run", EXAMPLES / "dense.run"]
    graded = cranfield("eval", written / "clicks.csv", *runs, "-m", "nDCG@10")
    assert "no relevant document" not in graded.err
    assert "too few topics" not in cranfield("compare", written / "clicks.csv", *runs, "-m", "nDCG@10").out
    binary = cranfield("eval", written / "clicks.csv", *runs, "-m", "AP")
    assert "7 topics have no relevant document" in binary.err


def test_a_report_takes_the_file_as_qrels(written: Path) -> None:
    runs = [EXAMPLES / "bm25.run", EXAMPLES / "dense.run"]
    answer = cranfield("report", written / "clicks.csv", *runs, "-m", "nDCG@10", "-o", written / "report.html")
    assert answer.code == 0, answer.err
    assert "nDCG@10" in (written / "report.html").read_text(encoding="utf-8")


def test_trec_qrels_need_ids_of_topics(tmp_path: Path) -> None:
    refused = cranfield("online", "qrels", LOG, "-o", tmp_path / "clicks.qrels")
    assert refused.code in (2, 3)
    assert "ids without blanks" in refused.err
    assert "--topics-file" in refused.err
    assert not (tmp_path / "clicks.qrels").exists()
    named = cranfield("online", "qrels", LOG, "--topics-file", "topics.tsv", "-o", tmp_path / "clicks.qrels")
    assert named.code == 0, named.err
    assert set(cf.read_qrels(str(tmp_path / "clicks.qrels")).topics) == {f"q{number}" for number in range(1, 8)}


def test_the_grades_of_a_graded_file_are_those_of_its_thresholds(tmp_path: Path) -> None:
    path = tmp_path / "clicks.csv"
    assert cranfield("online", "qrels", LOG, "--thresholds", "0.2,0.5", "-o", path).code == 0
    uncertain = read_uncertain(str(path))
    assert uncertain.thresholds == (0.2, 0.5)
    grades = cf.read_qrels(str(path)).to_dict()
    expected = uncertain.grades(uncertain.posteriors.mean).tolist()
    assert [grades[t][d] for t, d in uncertain.subjects] == expected
    assert set(expected) == {0.0, 1.0, 2.0}


HEAD = "topic,document,grade,posterior,alpha,beta,prior_alpha,prior_beta,thresholds\n"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("q,d,1,beta,0,2,0,0,\n", "2: expected alpha above 0, found '0'"),
        ("q,d,1,beta,x,2,0,0,\n", "2: expected alpha above 0, found 'x'"),
        ("q,d,1,beta,nan,2,0,0,\n", "2: expected alpha above 0"),
        ("q,d,1,beta,1e999,2,0,0,\n", "2: expected alpha above 0"),
        ("q,d,1,beta,1,2,3,0,\n", "2: expected prior_alpha from 0 to 1, found '3'"),
        ("q,d,1,beta,1,2,0,-1,\n", "2: expected prior_beta from 0 to 2"),
        ("q,d,1,cauchy,1,2,0,0,\n", "expected a posterior of beta or gamma, found 'cauchy'"),
        ("q,d,1,beta,1,2,0,0,0.5 0.1\n", "expected rising thresholds"),
        ("q,d,1,beta,1,2,0,0,high\n", "expected thresholds as numbers"),
        ("q,d,1,beta,1,2,0,0,\nq,e,1,gamma,1,2,0,0,\n", "3: expected one posterior"),
        ("q,d,1,beta,1\n", "2: expected 9 columns, found 5"),
        ("", "no judgments"),
    ],
)
def test_a_file_with_a_wrong_posterior_is_refused_by_its_line(tmp_path: Path, rows: str, message: str) -> None:
    path = tmp_path / "clicks.csv"
    path.write_text(HEAD + rows)
    with pytest.raises((DataError, BadLineError)) as refused:
        read_uncertain(str(path))
    assert message in str(refused.value)


def test_options_that_change_nothing_are_refused() -> None:
    for options in (
        ["--of", "coec", "--model", "PBM"],
        ["bm25.run"],
        ["--rel", "2"],
        ["--thresholds", "0.1", "--quantiles", "0.5"],
        ["--thresholds", "many"],
    ):
        answer = cranfield("online", "qrels", LOG, *options)
        assert answer.code == 2, (options, answer.err)


def test_values_without_a_lowest_relevant_grade_get_a_note_that_names_rel(tmp_path: Path) -> None:
    path = tmp_path / "clicks.csv"
    assert cranfield("online", "qrels", LOG, "--topics-file", "topics.tsv", "-o", path).code == 0
    scored = cranfield("eval", path, "bm25.run", "-m", "nDCG@10 AP")
    assert "no grade reaches the lowest relevant one; the highest is 0.7308 (--rel sets it)" in scored.err
    assert "--rel sets it" not in cranfield("eval", path, "bm25.run", "-m", "nDCG@10 AP", "--rel", "0.3").err
    compared = cranfield("compare", path, "bm25.run", "dense.run", "-m", "nDCG@10 AP", "--no-bars").out
    assert "0 with a relevant document (the highest grade is 0.7308: choose a lower rel), and it takes 6" in compared
    assert "--rel sets it" not in cranfield("eval", path, "bm25.run", "-m", "nDCG@10").err


def test_values_from_clicks_are_not_taken_for_reversed_codes(tmp_path: Path) -> None:
    path = tmp_path / "clicks.csv"
    assert cranfield("online", "qrels", LOG, "--topics-file", "topics.tsv", "-o", path).code == 0
    assert "grades-reversed" not in cranfield("check", path).out


def test_a_prior_of_30_clicks_in_100_views(tmp_path: Path) -> None:
    """14 clicks in 34 examined views give (14 + 30) / (34 + 100) = .328358 with a prior of .3 and the weight 100."""
    log = tmp_path / "log"
    rows = [
        f"{i},q,{rank},{document},{clicked}"
        for i in range(34)
        for rank, document, clicked in ((0, "d", i < 14), (1, "e", True))
    ]
    (tmp_path / "pages.csv").write_text("\n".join(["sess_id,query,rank,clicked_doc_id,clicked", *rows, ""]))
    assert cranfield("online", "ingest", log, tmp_path / "pages.csv", "--time", "2026-01-01").code == 0
    model = "SDBN(no_click=unexamined, pseudo_clicks=30, pseudo_views=100)"
    found = json.loads(cranfield("online", "qrels", log, "--model", model, "--format", "json").out)
    row = next(each for each in found["judgments"] if each["document"] == "d")
    assert row["value"] == pytest.approx(0.328358, abs=5e-7)
    assert [row["low"], row["high"]] == pytest.approx(stats.beta(44, 90).ppf([0.025, 0.975]).tolist())
