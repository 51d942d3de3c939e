"""Click models on the command line: quality on held-out searches, the comparison of models, counts from tables, faults.

Oracles: the library's own functions, split by hand; simulated users, whose best model is known.
"""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cranfield.base.errors import ConventionError, DataError
from cranfield.experiments.clicks.cascade import CM, DCM, SDBN, FittedDCM, FittedSDBN
from cranfield.experiments.clicks.click_log import ClickLog, count_clicks, read_counts, read_pages
from cranfield.experiments.clicks.click_through import CTR, DocumentCTR, RankCTR
from cranfield.experiments.clicks.fits import compare_models, fit_model, hold_out, leads, quality
from cranfield.experiments.clicks.model import CLICK_MODELS
from cranfield.experiments.clicks.result_pages import ClickCounts, QueryDocuments, ResultPages
from cranfield.experiments.log import EventLog
from shell import cranfield

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
LOG, COUNTS = str(EXAMPLES / "online" / "clicks-log"), str(EXAMPLES / "online" / "click-counts.csv")


@pytest.fixture(scope="module")
def example() -> ClickLog:
    return read_pages(EventLog(LOG))


# what is held out


def test_units_are_held_out_whole_and_stay_on_their_side(example):
    split = hold_out(example, 0.25)
    assert not set(split.fitted.unit) & set(split.tested.unit)
    assert len(split.fitted) + len(split.tested) == len(example.pages)
    held_out = {example.units[int(unit)].as_py() for unit in set(split.tested.unit)}
    assert 0.15 < len(held_out) / len(example.units) < 0.35
    half = ClickLog(example.pages.some(np.arange(900)), [], example.units)
    earlier = hold_out(half, 0.25)
    assert {example.units[int(unit)].as_py() for unit in set(earlier.tested.unit)} <= held_out
    assert set(hold_out(example, 0.25, seed=1).tested.unit) != set(split.tested.unit)


def test_a_log_of_one_unit_cannot_be_split():
    pages = ResultPages.of([("q", ["a"], [1]), ("q", ["a"], [0])])
    with pytest.raises(DataError, match="--holdout 0 skips the test"):
        hold_out(ClickLog(pages, []), 0.5)
    with pytest.raises(ConventionError, match="holdout must be between 0 and 1, got 1"):
        hold_out(ClickLog(pages, []), 1.0)


def test_quality_against_the_definition_page_by_page(example):
    split = hold_out(example, 0.25)
    fitted = fit_model(SDBN(), split.fitted)
    own, logs = quality(fitted, split.tested)
    conditional, marginal = fitted.conditional(split.tested), fitted.marginal(split.tested)
    means, at_rank = [], {}
    for page in range(len(split.tested)):
        rows = range(split.tested.start[page], split.tested.start[page + 1])
        clicks = [bool(split.tested.clicked[row]) for row in rows]
        pairs = list(zip(rows, clicks, strict=True))
        means.append(np.mean([math.log(conditional[row] if click else 1 - conditional[row]) for row, click in pairs]))
        for rank, (row, click) in enumerate(pairs):
            at_rank.setdefault(rank, []).append(math.log2(marginal[row] if click else 1 - marginal[row]))
    assert logs == pytest.approx(means, abs=1e-12)
    assert own.log_likelihood == pytest.approx(np.mean(means), abs=1e-12)
    assert own.perplexity_at_rank == pytest.approx(
        [2 ** -np.mean(at_rank[rank]) for rank in sorted(at_rank)], abs=1e-12
    )


# simulated users


def simulated(model: Any, pages: int, rng: np.random.Generator, log: ResultPages | None = None) -> ResultPages:
    """Clicks of users of a known model: 4 queries of 6 documents in random order, three searches of each unit."""
    queries, documents = 4, 6
    query = rng.integers(queries, size=pages)
    order = np.argsort(rng.random((pages, documents)), axis=1)
    both = np.divmod(np.arange(queries * documents), documents)
    pairs = QueryDocuments(tuple("pqrs"), tuple("abcdef"), *both)
    rows = (query[:, None] * documents + order).ravel().astype(np.int32)
    start, unit = np.arange(pages + 1) * documents, (np.arange(pages) // 3).astype(np.int32)
    shown = ResultPages(pairs, start, rows, np.zeros(len(rows), np.bool_), unit)
    return shown.with_clicks(model.simulate(shown, rng))


def true_sdbn(seed: int = 5) -> FittedSDBN:
    rng = np.random.default_rng(seed)
    none = QueryDocuments((), (), np.zeros(0, np.int64), np.zeros(0, np.int64))
    return FittedSDBN(SDBN(), none, rng.uniform(0.05, 0.6, 24), np.zeros(0), 0.0, rng.uniform(0.2, 0.8, 24))


def test_the_model_of_the_simulated_users_explains_their_clicks_best():
    pages = simulated(true_sdbn(), 6_000, np.random.default_rng(1))
    models = [cls() for cls in (CTR, RankCTR, DocumentCTR, CM, DCM)]
    answer = compare_models([*models, SDBN(exact=True)], hold_out(ClickLog(pages, []), 0.25))
    assert answer.scores[0].model == "SDBN(exact=True)"
    assert answer.rivals == []
    assert "SDBN(exact=True) explains the held-out searches best." in answer.to_text()
    assert answer.scores[-1].quality.impossible > 0


def coverage(draws: int, seed: int) -> float:
    """How often all simultaneous intervals of leads hold the leads on a million other searches."""
    rng = np.random.default_rng(seed)
    users = true_sdbn()
    models = [fit_model(cls(), simulated(users, 3_000, rng)) for cls in (CTR, RankCTR, DocumentCTR, DCM, SDBN)]
    large = simulated(users, 200_000, rng)
    truth = [model.log_likelihood(large) for model in models]
    hits = 0
    for _ in range(draws):
        test = simulated(users, 600, rng)
        logs = [model.page_log_likelihoods(test) for model in models]
        best = int(np.argmax([np.mean(each) for each in logs]))
        own = leads(logs, best, test)
        inside = [lead.low <= truth[best] - other <= lead.high for lead, other in zip(own, truth, strict=True)]
        hits += all(inside[:best] + inside[best + 1 :])
    return hits / draws


@pytest.mark.parametrize("draws", [200, pytest.param(2_000, marks=pytest.mark.slow)])
def test_intervals_of_leads_hold_at_once_whichever_model_is_best(draws):
    assert coverage(draws, 7) >= (0.95 if draws == 2_000 else 0.93)


# counts


def test_counts_of_a_table_against_the_log_that_it_was_made_from(example):
    counts = read_counts(COUNTS).counts
    rank = CLICK_MODELS.named("RankCTR")
    assert rank.fit(counts).rates == pytest.approx(rank.fit(ClickCounts.of(example.pages)).rates, abs=1e-12)
    table, log = (json.loads(cranfield("online", "clicks", source, "--format", "json").out) for source in (COUNTS, LOG))
    assert table["pages"] == log["pages"] == 1800
    assert table["parameters"]["examination"] == pytest.approx(log["parameters"]["examination"], abs=1e-9)
    values = [[row["attractiveness"] for row in answer["pairs"]] for answer in (table, log)]
    assert values[0] == pytest.approx(values[1], abs=1e-9)


def test_rows_of_the_same_document_and_rank_add_up(tmp_path):
    path = tmp_path / "counts.tsv"
    path.write_text("query\tdocument\trank\tviews\tclicks\nMug\ta\t1\t5\t2\n mug\ta\t1\t7\t0\nmug\tb\t2\t12\t1\n")
    counted = read_counts(str(path))
    assert counted.counts.views.tolist() == [12, 12]
    assert counted.counts.pages == 12
    assert counted.notes == ["1 rows repeat a query, document and rank; their counts are added up"]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("q,a,1,10,11", ":3: expected no more clicks than views, found 11 of 10"),
        ("q,a,1,-1,0", ":3: expected views from 0 to 1,000,000,000,000, found '-1'"),
        ("q,a,1,10,-2", ":3: expected clicks from 0 to 1,000,000,000,000, found '-2'"),
        ("q,a,1,10,0.5", ":3: expected a whole number as clicks, found '0.5'"),
        ("q,a,1,nan,0", ":3: expected a whole number as views, found 'nan'"),
        ("q,a,1,1e99,0", ":3: expected a whole number as views, found '1e99'"),
        ("q,a,1,9999999999999,0", ":3: expected views from 0 to 1,000,000,000,000"),
        ("q,a,0,10,1", ":3: expected rank from 1 to 100,000, found '0'"),
        ("q,a,1,10", ":3: expected a whole number as clicks, found ''"),
        (" ,a,1,10,1", ":3: expected a query and a document, found '' and 'a'"),
        ("q,,1,10,1", ":3: expected a query and a document, found 'q' and ''"),
    ],
)
def test_counts_that_are_no_counts_are_refused_by_row(row, problem, tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text(f"query,document,rank,views,clicks\nq,b,1,5,1\n{row}\n")
    answer = cranfield("online", "clicks", path)
    assert answer.code == 3
    assert problem in answer.err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is empty; expected the columns query, document, rank, views, clicks"),
        (
            "query,document,rank,views\nq,a,1,2\n",
            "there is no clicks (cranfield online ingest makes a log of a file of events)",
        ),
        ("query,document,rank,views,clicks\n", "expected a row with views, found none"),
        ("query,document,rank,views,clicks\nq,a,1,0,0\n", "expected a row with views, found none"),
    ],
)
def test_a_table_without_counts_is_refused(text, problem, tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_counts(str(path))
    assert problem in str(caught.value)


@pytest.mark.parametrize("name", CLICK_MODELS.built_in())
def test_a_model_that_reads_other_clicks_is_not_fitted_to_a_table_of_counts(name):
    answer = cranfield("online", "clicks", COUNTS, "--model", name)
    if CLICK_MODELS[name].reads_other_clicks:
        assert answer.code == 3
        assert f"{name} needs to know which clicks belong to one search" in answer.err
    else:
        assert answer.code == 0


def test_nothing_of_a_table_of_counts_can_be_held_out():
    for more in (("--holdout", "0.5"), ("--model", "all")):
        answer = cranfield("online", "clicks", COUNTS, *more)
        assert answer.code == 2
        assert "a table of counts has no searches to hold out" in answer.err


# the command


def test_all_models_are_compared_and_the_first_is_best(example):
    answer = cranfield("online", "clicks", LOG, "--model", "all", "--format", "json")
    content = json.loads(answer.out)
    assert {row["model"] for row in content["models"]} == set(CLICK_MODELS)
    likelihoods = [row["log_likelihood"] for row in content["models"] if row["log_likelihood"] is not None]
    assert likelihoods == sorted(likelihoods, reverse=True)
    assert content["best"] == content["models"][0]["model"]
    cascade = next(row for row in content["models"] if row["model"] == "CM")
    assert cascade["log_likelihood"] is None
    assert cascade["impossible"] > 0
    text = cranfield("online", "clicks", LOG, "--model", "all")
    assert text.out.startswith(f"{content['best']} explains the held-out searches best")
    assert "CM: 102 of 547 searches have clicks that are impossible under the model" in text.err


def test_a_model_that_the_log_does_not_determine_comes_last_with_its_reason(tmp_path):
    log = made_log(tmp_path, [("q", ["a", "b"], [n % 2, (n + 1) % 2]) for n in range(12)])
    answer = cranfield("online", "clicks", log, "--model", "all", "--format", "json")
    reasons = {row["model"]: row["problem"] for row in json.loads(answer.out)["models"]}
    for name in ("DCM", "SDBN"):
        assert reasons[name].startswith("no page of the log has two clicks")
    assert reasons["DocumentCTR"] == ""


def test_models_with_the_same_problem_share_a_note(tmp_path):
    log = made_log(tmp_path, [("q", ["a", "b"], [n % 2, (n + 1) % 2]) for n in range(12)])
    answer = cranfield("online", "clicks", log, "--model", "all")
    assert answer.err.count("no page of the log has two clicks") == 1
    assert "DCM, SDBN, CCM and DBN were not fitted: no page" in answer.err


def test_a_log_without_a_click_is_refused_by_every_model(tmp_path):
    log = made_log(tmp_path, [("q", [["a", "b"], ["b", "a"]][n % 2], [0, 0]) for n in range(12)])
    for name in (*CLICK_MODELS, "all"):
        answer = cranfield("online", "clicks", log, "--model", name, "--holdout", "0.5")
        assert answer.code == 3
        assert "expected clicks, found none" in answer.err


def test_a_table_without_a_click_is_refused(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("query,document,rank,views,clicks\nmug,a,1,10,0\nmug,a,2,10,0\n")
    answer = cranfield("online", "clicks", str(path), "--model", "DocumentCTR")
    assert (answer.code, answer.out) == (3, "")
    assert "expected clicks, found none" in answer.err


def test_models_cannot_be_compared_without_held_out_searches():
    answer = cranfield("online", "clicks", LOG, "--model", "ALL", "--holdout", "0")
    assert answer.code == 2
    assert "models are compared on held-out searches; --holdout must be above 0 for --model all" in answer.err


def test_a_chart_is_of_one_model_and_of_a_log(tmp_path):
    for log, model, problem in (
        (LOG, "All", "a chart shows one click model"),
        (COUNTS, "PBM", "a chart needs a log; this is a table of counts"),
    ):
        answer = cranfield("online", "clicks", log, "--model", model, "-o", str(tmp_path / "clicks.svg"))
        assert answer.code == 2
        assert problem in answer.err
    assert not (tmp_path / "clicks.svg").exists()


def test_a_table_of_counts_may_come_from_standard_input():
    content = Path(COUNTS).read_bytes()
    assert cranfield("online", "clicks", "-", stdin=content).out == cranfield("online", "clicks", COUNTS).out


def test_pairs_are_the_same_in_every_format(example):
    rows = list(
        csv.DictReader(io.StringIO(cranfield("online", "clicks", LOG, "--model", "SDBN", "--format", "csv").out))
    )
    pairs = json.loads(cranfield("online", "clicks", LOG, "--model", "SDBN", "--format", "json").out)["pairs"]
    fitted = SDBN().fit(ClickCounts.of(example.pages))
    assert [(row["query"], row["document"]) for row in rows] == fitted.pairs.names()
    for row, pair, own, satisfied in zip(rows, pairs, fitted.attractiveness, fitted.satisfaction, strict=True):
        assert float(row["attractiveness"]) == pair["attractiveness"] == pytest.approx(own, abs=1e-12)
        assert float(row["satisfaction"]) == pair["satisfaction"] == pytest.approx(satisfied, abs=1e-12)


@pytest.mark.parametrize("model", ["SDBN", "UBM", "RankCTR", "DBN"])
def test_parameters_are_the_same_whether_or_not_searches_are_held_out(model):
    answers = [
        json.loads(cranfield("online", "clicks", LOG, "--model", model, "--holdout", share, "--format", "json").out)
        for share in ("0", "0.25")
    ]
    assert (answers[0]["held_out"], answers[1]["held_out"]["pages"]) == (None, 547)
    assert answers[0]["parameters"] == answers[1]["parameters"]
    assert answers[0]["pairs"] == answers[1]["pairs"]
    assert answers[0]["pages"] == answers[1]["pages"] == 1800


def test_streamed_counts_give_the_same_model(example):
    streamed = DCM().fit(count_clicks(EventLog(LOG)).counts)
    assert streamed.attractiveness == pytest.approx(DCM().fit(ClickCounts.of(example.pages)).attractiveness, abs=1e-12)
    assert isinstance(streamed, FittedDCM)


def test_an_exact_fit_is_for_models_with_published_counts_that_differ():
    exact = json.loads(cranfield("online", "clicks", LOG, "--model", "SDBN", "--exact", "--format", "json").out)
    typed = json.loads(cranfield("online", "clicks", LOG, "--model", "SDBN(exact=yes)", "--format", "json").out)
    assert exact == typed
    counted = json.loads(cranfield("online", "clicks", LOG, "--model", "SDBN", "--format", "json").out)
    mean = [np.mean([row["attractiveness"] for row in answer["pairs"]]) for answer in (counted, exact)]
    assert mean[0] > mean[1]
    refused = cranfield("online", "clicks", LOG, "--model", "PBM", "--exact")
    assert refused.code == 2
    assert "exact is for DCM and SDBN" in refused.err


def made_log(folder: Path, sessions: list[tuple[str, list[str], list[int]]]) -> Path:
    """A log of these sessions, each of its own unit, from a file of sessions."""
    rows = ["session,query,rank,document,clicked"]
    for number, (query, shown, clicks) in enumerate(sessions):
        rows += [
            f"{number},{query},{rank},{document},{click}"
            for rank, (document, click) in enumerate(zip(shown, clicks, strict=True), 1)
        ]
    (folder / "sessions.csv").write_text("\n".join(rows) + "\n")
    done = cranfield("online", "ingest", folder / "log", folder / "sessions.csv", "--time", "2026-01-01")
    assert done.code == 0, done.err
    return folder / "log"


def test_a_query_with_one_session_is_refused_left_out_or_accepted(tmp_path):
    sessions = [("mug", ["a", "b"], [n % 2, n % 3 == 0]) for n in range(30)]
    log = made_log(tmp_path, [*sessions, ("rare cup", ["c"], [1])])
    refused = cranfield("online", "clicks", log)
    assert refused.code == 3
    assert (
        "query 'rare cup' has one session; --min-sessions 2 leaves such queries out, --min-sessions 1 accepts"
        in refused.err
    )
    left_out = cranfield("online", "clicks", log, "--min-sessions", "2", "--holdout", "0", "--model", "DocumentCTR")
    assert left_out.code == 0
    assert "30 searches of 1 query" in left_out.out
    assert "left out: 1 query with fewer than 2 sessions (1 in all)" in left_out.err
    accepted = cranfield("online", "clicks", log, "--min-sessions", "1", "--holdout", "0", "--model", "DocumentCTR")
    assert "31 searches of 2 queries" in accepted.out
    none = cranfield("online", "clicks", log, "--min-sessions", "31")
    assert none.code == 3
    assert "no query has 31 sessions; the most are 30" in none.err


def test_a_query_with_one_view_in_a_table_of_counts_is_refused(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("query,document,rank,views,clicks\nmug,a,1,9,3\nmug,b,2,9,2\nrare,c,1,1,0\nrare,d,2,1,0\n")
    refused = cranfield("online", "clicks", path, "--model", "DocumentCTR")
    assert (refused.code, "query 'rare' has one session" in refused.err) == (3, True)
    left_out = cranfield("online", "clicks", path, "--model", "DocumentCTR", "--min-sessions", "2")
    assert "9 searches of 1 query, 2 pairs" in left_out.out


def test_a_model_that_does_not_converge_is_refused():
    answer = cranfield("online", "clicks", LOG, "--model", "PBM(iterations=1)")
    assert answer.code == 3
    assert "PBM(iterations=1) did not converge" in answer.err


def test_sessions_of_one_click_are_refused_by_models_that_read_on(tmp_path):
    log = made_log(tmp_path, [("mug", ["a", "b"], [n % 2, (n + 1) % 2]) for n in range(12)])
    for name in ("DCM", "SDBN"):
        answer = cranfield("online", "clicks", log, "--model", name)
        assert answer.code == 3
        assert "no page of the log has two clicks" in answer.err
        assert "fit CM or PBM" in answer.err


def test_faults_of_the_log_are_counted_if_reading_is_lenient(tmp_path):
    log = made_log(tmp_path, [("mug", ["a", "b"], [n % 2, n % 3 == 0]) for n in range(30)])
    stray = tmp_path / "stray.jsonl"
    stray.write_text(
        '{"event_id": "x", "time": "2026-01-01", "kind": "click", "unit": "u", "search": "s", "document": "a"}\n'
    )
    assert cranfield("online", "ingest", log, stray).code == 0
    refused = cranfield("online", "clicks", log, "--model", "CTR")
    assert refused.code == 3
    assert "search 's' has a click on 'a', but no impression" in refused.err
    lenient = cranfield("online", "clicks", log, "--model", "CTR", "--lenient")
    assert lenient.code == 0
    assert "left out: 1 click without an impression" in lenient.err


def test_every_model_has_a_page_with_its_formula():
    listing = cranfield("online", "click-models").out
    for name, cls in CLICK_MODELS.items():
        assert name in listing
        page = cranfield("online", "click-models", name).out
        assert cls.formula.split()[0] in page
        assert cls.reference.split(",")[0] in page
