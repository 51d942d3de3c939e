"""The leaderboard: order, ranks with intervals, tiers, and what stands beside each run."""

from __future__ import annotations

import csv
import io
import json
from importlib import import_module
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import cranfield as library
from cranfield.base.errors import ConventionError, DataError
from cranfield.base.results import Layout
from cranfield.comparison.leaderboard import leaderboard
from cranfield.comparison.score_tables import fewest_topics
from cranfield.evaluation.scores import Scores
from cranfield.formats.collection_folder import BUNDLED
from cranfield.stats.many_groups import randomised_tukey_hsd
from cranfield.stats.rank_intervals import rank_intervals, rank_ranges
from shell import EXAMPLES, cranfield

QRELS, BM25, DENSE = EXAMPLES / "qrels.txt", EXAMPLES / "bm25.run", EXAMPLES / "dense.run"


def table(*shifts: float, topics: int = 40, seed: int = 0, spread: float = 0.05) -> Scores:
    """Runs whose scores lie so far apart, on topics of different difficulty."""
    rng = np.random.default_rng(seed)
    easy = rng.uniform(0.2, 0.6, (topics, 1))
    values = easy + np.array(shifts) + rng.normal(0, spread, (topics, len(shifts)))
    return Scores.from_table(values, [f"s{i}" for i in range(len(shifts))], measure="score")


def test_rows_come_best_first_by_the_first_measure_or_the_one_asked_for():
    board = leaderboard(QRELS, [BM25, DENSE], "R@5 AP")
    assert [row.run for row in board.rows] == ["bm25", "dense"]
    assert [row.run for row in leaderboard(QRELS, [BM25, DENSE], "R@5 AP", sort="map").rows] == ["dense", "bm25"]
    means = library.evaluate(QRELS, [BM25, DENSE], "R@5 AP")
    assert board.row("dense").means == means.means("dense")


def test_where_lower_is_better_the_lowest_is_first():
    qrels = {f"q{i}": {"a": 1} for i in range(6)}
    near = {topic: {"a": 2.0, "b": 1.0} for topic in qrels}
    far = {topic: {"a": 1.0, "b": 2.0} for topic in qrels}
    board = leaderboard(qrels, {"far": far, "near": near}, "FirstRel")
    assert [(row.run, row.rank, row.first_in_redraws, row.tier) for row in board.rows] == [
        ("near", 1, 1.0, "a"),
        ("far", 2, 0.0, "b"),
    ]


def test_equal_runs_share_a_rank_a_share_and_a_letter():
    values = np.random.default_rng(0).uniform(size=(30, 1)) + np.array([0.5, 0.5, 0.0])
    board = leaderboard(Scores.from_table(values, ["a", "b", "c"]))
    assert [(row.rank, row.shared, row.first_in_redraws) for row in board.rows] == [
        (1, True, 0.5),
        (1, True, 0.5),
        (3, False, 0),
    ]
    assert [row.tier for row in board.rows] == ["a", "a", "b"]
    assert "1=" in board.to_text()


def test_intervals_and_shares_against_the_statistics_they_come_from():
    scores = table(0.0, 0.01, 0.03, 0.2)
    values = scores.values[:, 0].T
    redrawn = rank_intervals(values, 0.95, 2000, np.random.default_rng(3))
    holding = [rank_ranges(values, 0.95, 2000, np.random.default_rng(3), together) for together in (True, False)]
    for kind, expected in zip(("simultaneous", "marginal", "bootstrap"), [*holding, redrawn], strict=True):
        board = leaderboard(scores, resamples=2000, seed=3, rank_intervals=kind)
        for i, run in enumerate(scores.runs):
            row = board.row(run)
            assert (row.low, row.high) == (expected.low[i], expected.high[i])
            assert row.first_in_redraws == pytest.approx(redrawn.first[i])
        assert [row.rank for row in board.rows] == [1, 2, 3, 4]
        assert all(row.low <= row.rank <= row.high for row in board.rows if row.low and row.high)
        assert f"({kind}: " in board.how()
        assert board.to_dict()["rank_intervals"] == kind


def test_the_whole_board_holds_at_once_unless_asked_otherwise():
    board = leaderboard(table(0.0, 0.1), resamples=200)
    assert (board.rank_intervals, board.rank_draws) == ("simultaneous", 200)
    assert "95 % intervals for all ranks at once (simultaneous: step-down max-t, 200 redraws" in board.how()


def test_five_topics_prove_no_rank_however_far_apart_the_runs():
    board = leaderboard(table(0.0, 0.3, 0.6, topics=5, spread=0.01))
    assert [(row.low, row.high) for row in board.rows] == [(1, 3)] * 3
    assert board.rows[0].first_in_redraws == 1.0
    assert any(note.startswith("5 topics, fewer than 50: first in redraws is a weak hint") for note in board.notes())


def test_from_fifty_topics_on_the_share_of_redraws_needs_no_caution():
    assert not any("weak hint" in note for note in leaderboard(table(0.0, 0.1, topics=50)).notes())
    for kind, said in (("simultaneous", "; go by ranks"), ("bootstrap", ", and so are ranks")):
        board = leaderboard(table(0.0, 0.1, topics=49), rank_intervals=kind)
        assert any("weak hint" in note and note.endswith(said) for note in board.notes())


def test_the_letters_do_not_move_the_rank_intervals():
    scores = table(0.0, 0.01, 0.02, 0.03, 0.05)
    one, other = (leaderboard(scores, test="t", correction=each, resamples=500) for each in ("none", "holm"))
    assert [(row.low, row.high) for row in one.rows] == [(row.low, row.high) for row in other.rows]
    assert [row.tier for row in one.rows] != [row.tier for row in other.rows]


def test_two_runs_share_a_letter_exactly_when_randomised_tukey_does_not_tell_them_apart():
    scores = table(0.0, 0.01, 0.02, 0.03, 0.05, 0.08)
    board = leaderboard(scores, test="randomised-tukey", resamples=3000)
    ordered = scores.select(runs=[row.run for row in board.rows])
    p = randomised_tukey_hsd(ordered.values[:, 0].T, 3000, np.random.default_rng(0)).p
    told = 0
    for i, j in combinations(range(6), 2):
        share = bool(set(board.rows[i].tier) & set(board.rows[j].tier))
        assert share == (p[i, j] > 0.05)
        told += not share
    assert 0 < told < 15


def test_tiers_by_paired_t_tests_with_holm_against_scipy():
    scores = table(0.0, 0.01, 0.03, 0.05, topics=25)
    board = leaderboard(scores, test="t", correction="holm")
    pairs = list(combinations(scores.runs, 2))
    p = np.array([stats.ttest_rel(scores.at(run=a), scores.at(run=b)).pvalue for a, b in pairs])
    order = np.argsort(p)
    holm = np.empty(len(p))
    holm[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    told = 0
    for (a, b), corrected in zip(pairs, holm, strict=True):
        apart = not set(board.row(a).tier) & set(board.row(b).tier)
        assert apart == (corrected <= 0.05)
        told += apart
    assert 0 < told < len(pairs)
    assert "(t, holm over all pairs by this measure)" in board.how()


def test_a_run_that_answers_no_topic_gets_no_tier_and_the_reason_is_said():
    qrels = {f"q{i}": {"a": 1} for i in range(9)}
    board = leaderboard(qrels, {"good": {topic: {"a": 1} for topic in qrels}, "stranger": {"x": {"a": 1}}}, "RR")
    assert [row.tier for row in board.rows] == ["", ""]
    assert any(note.startswith("no tiers: stranger answers none of the 9 topics") for note in board.notes())


def test_the_display_in_a_notebook_holds_the_table_and_how_it_came_about():
    board = leaderboard(QRELS, {"<b>": BM25, "dense": DENSE}, "R@5 AP")
    html = board._repr_html_().replace(' class="best"', "")
    assert html.count("<tr>") == 1 + len(board.rows)
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "<td>0.9643</td><td>0.6399</td><td>0.9474</td>" in html  # R@5, AP, micro(R@5) of bm25, as in the docs
    assert "were not told apart at 0.05 (randomisation, holm over all pairs by this measure)" in html


def test_micro_and_macro_averages_and_the_geometric_mean_stand_beside_the_mean():
    board = leaderboard(QRELS, [BM25, DENSE], "R@5 AP")
    other = library.evaluate(QRELS, [BM25, DENSE], "R(average=micro)@5 gmean(AP)")
    for run in ("bm25", "dense"):
        micro, gmean = other.means(run).values()
        assert board.row(run).micro == {"R@5": micro}
        assert board.row(run).gmean["AP"] == gmean
    assert "micro(R@5)" in board.to_text()
    assert "gmean(AP)" in board.to_text()


def test_it_says_when_much_less_of_a_run_is_judged():
    qrels = {f"q{i}": {"a": 1, "b": 0} for i in range(4)}
    runs = {"old": {t: {"a": 2, "b": 1} for t in qrels}, "new": {t: {"x": 3, "y": 2, "a": 1} for t in qrels}}
    [note] = [note for note in leaderboard(qrels, runs, "RR").notes() if note.startswith("judged@10 differs")]
    assert note.startswith("judged@10 differs: new has 0.33, others up to 1.00")


def test_the_best_mean_of_each_measure_is_marked_whichever_way_is_better():
    board = leaderboard(QRELS, [BM25, DENSE], "AP FirstRel")
    shown = board.table(Layout(digits=4))
    best = {name: [row[shown.head.index(name)].best for row in shown.cells()] for name in board.measures}
    means = {name: [row.means[name] for row in board.rows] for name in board.measures}
    assert best["AP"] == [mean == max(means["AP"]) for mean in means["AP"]]
    assert best["FirstRel"] == [mean == min(means["FirstRel"]) for mean in means["FirstRel"]]


def test_its_text_ends_with_how_it_came_about():
    board = leaderboard(table(0.0, 0.1))
    assert board.to_text(verbose=True, limits=False).endswith(f"\n\n{board.how()}")
    usual = board.to_text(limits=False)
    assert usual.startswith(f"{board.verdict()}\n\n")
    assert "a shared tier letter: not told apart at 0.05" in usual
    other = leaderboard(table(0.0, 0.1), alpha=0.01)
    assert other.to_text(limits=False).endswith(f"\n\n{other.how()}")


def test_the_verdict_says_who_leads_and_from_how_many_it_is_told_apart():
    assert leaderboard(table(0.0, 0.1)).verdict().endswith("told apart from it (40 topics)")
    board = leaderboard(table(0.0, 0.1, 0.5))
    first, *others = board.rows
    apart = sum(not set(row.tier) & set(first.tier) for row in others)
    assert board.verdict().startswith(f"{first.run} leads with score {first.means['score']:.4f}; ")
    assert board.verdict().endswith(f"{'all' if apart == 2 else f'{apart} of 2'} others are told apart (40 topics)")


@pytest.mark.parametrize("runs", [2, 3])
def test_no_run_is_said_to_lead_where_no_scores_could_tell_two_runs_apart(runs):
    fewest = fewest_topics(runs, 0.05)
    for topics in range(2, fewest + 1):
        # each run is better than the one before it on every topic
        rows = [[0.1 * run + 0.001 * topic for run in range(runs)] for topic in range(topics)]
        board = leaderboard(library.Scores.from_table(rows), resamples=100)
        assert (len({row.tier for row in board.rows}) == runs) == (topics == fewest)
        assert ("leads" in board.verdict()) == (topics == fewest)
        if topics < fewest:
            few = f"too few topics to say which run is better: {topics}, and it takes {fewest}"
            assert board.verdict().startswith(few)


def test_topics_without_a_relevant_document_do_not_count():
    qrels = {str(topic): {"a": int(topic < 5), "b": 0} for topic in range(20)}
    runs = {"one": {topic: ["a", "b"] for topic in qrels}, "two": {topic: ["b", "a"] for topic in qrels}}
    verdict = leaderboard(qrels, runs, "RR").verdict()
    assert verdict.startswith("too few topics to say which run is better: 5 with a relevant document, and it takes 6")
    assert verdict.endswith("(20 topics, 15 without a relevant document, and 40 judgments)")


@pytest.mark.slow
def test_equal_runs_are_rarely_told_apart_on_few_topics():
    rng, folder = np.random.default_rng(1), Path(BUNDLED) / "allotment"
    runs = [folder / "runs" / f"{name}.run" for name in ("bm25", "fusion")]
    values = library.evaluate("allotment", runs, "nDCG@10").values[:, 0, :]
    apart = 0
    for _ in range(300):
        scores = values[:, rng.choice(values.shape[1], 7, replace=False)].copy()
        exchanged = rng.random(7) < 0.5
        scores[:, exchanged] = scores[::-1, exchanged]
        one, other = leaderboard(library.Scores.from_table(scores.T), resamples=100).rows
        apart += one.tier != other.tier
    assert apart / 300 <= 0.08  # 0.05, and more than two standard errors


def test_it_says_when_mean_and_geometric_mean_rank_differently():
    board = leaderboard(QRELS, [BM25, DENSE], "AP")
    assert board.to_dict()["mean_and_gmean_differ"] == {"AP": ["dense", "bm25"]}
    assert any("geometric mean" in note for note in board.notes())


def test_judged_at_k_is_that_of_the_topics_answered():
    board = leaderboard(QRELS, [BM25, DENSE], "AP", k=5)
    scores = library.evaluate(QRELS, [BM25, DENSE], "Judged@5", missing="skip")
    assert board.row("dense").judged == pytest.approx(scores.mean(run="dense"))
    assert board.row("bm25").judged == pytest.approx(scores.mean(run="bm25"))
    assert "Judged@5" in board.to_text()
    assert "Judged" not in leaderboard(table(0.0, 0.1)).to_text()


def test_means_and_judged_at_10_against_the_published_leaderboard(shared):
    """Round 3 of TREC-COVID."""
    folder = shared / "trec-covid-r3"
    lines = (folder / "leaderboard.csv").read_text().splitlines()
    published = {row["run"]: row for row in csv.DictReader(lines)}
    paths = [path for path in sorted((folder / "runs").iterdir()) if path.name in published]
    board = leaderboard(
        folder / "qrels.covid-round3.txt", paths, "nDCG@10 AP", resamples=200, conventions="trec_eval-9"
    )
    assert len(board.rows) > 10
    for row in board.rows:
        known = published[row.run]
        found = row.means["nDCG@10"], row.means["AP"]
        assert found == pytest.approx([float(known[name]) for name in ("ndcg@10", "map")], abs=6e-5), row.run
        if row.run not in ("UIowaS_Rd3MLReRank", "l2r"):  # their ties were counted in another order there
            assert row.judged == pytest.approx(float(known["J@10"]), abs=6e-5)
    order = sorted(board.rows, key=lambda row: -float(published[row.run]["ndcg@10"]))
    assert [row.run for row in order] == [row.run for row in board.rows]


def test_topics_without_a_value_in_some_run_are_left_out_of_ranks_and_said_to_be():
    scores = table(0.0, 0.3, topics=10)
    scores.values[0, 0, 3] = np.nan
    board = leaderboard(scores)
    assert any("1 of 10 topics have no score in some run ('4')" in note for note in board.notes())


def test_what_cannot_be_had_is_said_instead():
    one = leaderboard(table(0.0))
    assert (one.rows[0].low, one.rows[0].tier) == (None, "")
    assert np.isnan(one.rows[0].first_in_redraws)
    assert any("two runs or more; found 1" in note for note in one.notes())
    assert any("two topics or more" in note for note in leaderboard(table(0.0, 0.1, topics=1)).notes())
    board = leaderboard(QRELS, [BM25, DENSE], "gmean(AP)")
    assert any("not a mean over topics" in note for note in board.notes())


def test_constant_scores_give_no_silent_tiers():
    board = leaderboard(Scores.from_table(np.tile([0.5, 0.25], (8, 1)), ["a", "b"]), test="tukey")
    assert [row.tier for row in board.rows] == ["", ""]
    assert any("no tiers" in note for note in board.notes())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"alpha": 0}, "alpha must lie between"),
        ({"level": 1}, "level must lie between"),
        ({"k": 0}, "k must be 1 or more"),
        ({"resamples": 5}, "resamples must be 100 or more"),
        ({"runs": ["a"]}, "give no others"),
        ({"scores": {"q": {"a": 1}}}, "expected Scores, or judgments with runs and measures"),
        ({"test": "guess"}, "expected one of randomised-tukey, max-t, tukey, randomisation, t"),
        ({"test": "bayes"}, "found 'bayes'"),
        ({"test": "welch"}, "found 'welch'"),
        ({"rank_intervals": "wide"}, "no rank interval 'wide'; there are simultaneous, marginal, bootstrap"),
    ],
)
def test_what_makes_no_sense_is_refused(given, said):
    with pytest.raises(ConventionError, match=said):
        leaderboard(given.pop("scores", table(0.0, 0.1)), **given)


def test_an_unknown_run_is_refused_by_name():
    with pytest.raises(DataError, match="no run 'x' on the board"):
        leaderboard(table(0.0, 0.1)).row("x")


def test_the_same_seed_gives_the_same_board():
    scores = table(0.0, 0.01, 0.02)
    assert leaderboard(scores, seed=4).to_json() == leaderboard(scores, seed=4).to_json()


def test_averaged_ties_do_not_stop_the_board():
    qrels = {"q": {"a": 1}, "r": {"b": 1}}
    tied = {"q": {"a": 1.0, "b": 1.0}, "r": {"b": 1.0, "a": 1.0}}
    board = leaderboard(qrels, {"x": tied, "y": tied}, "AP", conventions={"ties": "averaged"})
    assert board.rows[0].means["AP"] == pytest.approx(0.75)


# how it looks


def test_many_letters_in_a_row_are_shortened_for_people_only():
    rng = np.random.default_rng(1)
    values = rng.uniform(size=(60, 1)) + np.linspace(0, 0.6, 16) + rng.normal(0, 0.12, (60, 16))
    board = leaderboard(Scores.from_table(values), test="randomised-tukey", resamples=500)
    assert any(len(row.tier) >= 4 for row in board.rows)
    longest = max((row.tier for row in board.rows), key=len)
    assert f"{longest[0]}–{longest[-1]}" in board.to_text()
    assert longest in board.to_csv()


@pytest.mark.parametrize("shape", ["text", "json", "csv", "tsv", "markdown"])
def test_every_format_goes_to_a_file_as_to_the_screen(tmp_path, shape):
    command = ["leaderboard", QRELS, BM25, DENSE, "-m", "nDCG@10 AP R@5", "--format", shape]
    printed = cranfield(*command)
    assert printed.code == 0
    cranfield(*command, "-o", tmp_path / "out")
    if shape != "text":
        assert (tmp_path / "out").read_text() == printed.out
        return
    assert (tmp_path / "out").read_text().startswith("".join(printed.out.splitlines(keepends=True)[:5]))
    assert "redraws of the topics, seed 0" in (tmp_path / "out").read_text()


def test_json_and_csv_hold_the_same_numbers():
    told = json.loads(cranfield("leaderboard", QRELS, BM25, DENSE, "-m", "AP", "--format", "json").out)
    rows = list(
        csv.DictReader(io.StringIO(cranfield("leaderboard", QRELS, BM25, DENSE, "-m", "AP", "--format", "csv").out))
    )
    for one, other in zip(told["rows"], rows, strict=True):
        assert one["run"] == other["run"]
        assert one["means"]["AP"] == float(other["AP"])
        assert (one["low"], one["high"]) == (int(other["rank_low"]), int(other["rank_high"]))
        assert one["first_in_redraws"] == float(other["first_in_redraws"])


def test_a_chart_of_ranks_is_drawn(tmp_path):
    answer = cranfield("leaderboard", QRELS, BM25, DENSE, "-o", tmp_path / "ranks.vl.json")
    assert answer.code == 0
    spec = json.loads((tmp_path / "ranks.vl.json").read_text())
    assert [row["name"] for row in spec["data"]["values"]] == ["dense", "bm25"]


def test_a_table_of_scores_stands_in_for_judgments_and_runs(tmp_path):
    (tmp_path / "ap.csv").write_text("topic,x,y\n1,0.1,0.3\n2,0.2,0.5\n3,0.3,0.3\n")
    (tmp_path / "topics").write_text("1\n2\n")
    told = json.loads(cranfield("leaderboard", "--table", tmp_path / "ap.csv", "-m", "AP", "--format", "json").out)
    assert [(row["run"], row["means"]["AP"]) for row in told["rows"]] == [
        ("y", pytest.approx(1.1 / 3)),
        ("x", pytest.approx(0.2)),
    ]
    some = ["leaderboard", "--table", tmp_path / "ap.csv", "--topics", tmp_path / "topics", "--format", "json"]
    assert json.loads(cranfield(*some).out)["rows"][0]["means"]["ap"] == pytest.approx(0.4)
    for wrong in ([QRELS, BM25], ["--missing", "skip"]):
        assert cranfield("leaderboard", "--table", tmp_path / "ap.csv", *wrong).code == 2
    assert cranfield("leaderboard").code == 2


@pytest.mark.parametrize("test", ["t", pytest.param("randomisation", marks=pytest.mark.slow)])
def test_a_hundred_systems_at_once(test, shared):
    table = shared / "urbano-robust2004" / "robust2004_ap.csv"
    answer = cranfield("leaderboard", "--table", table, "--test", test, "--resamples", 200)
    assert answer.code == 0
    assert len(answer.out.splitlines()) == 115


def test_no_cautions_are_computed_for_it(monkeypatch):
    """They would take as long as the tests, and nobody would see them."""
    wanted = [row.tier for row in leaderboard(table(0, 0.1, 0.2)).rows]
    monkeypatch.setattr(import_module("cranfield.comparison.cautions"), "RULES", [lambda evidence: 1 / 0])
    assert [row.tier for row in leaderboard(table(0, 0.1, 0.2)).rows] == wanted
