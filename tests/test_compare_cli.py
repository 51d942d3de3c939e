"""`cranfield compare` as typed: runs, tables, groups, formats, exit codes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from cranfield import compare
from cranfield.base.errors import BadLineError, DataError
from cranfield.formats.collection_folder import BUNDLED
from cranfield.formats.score_table import read_score_table
from shell import EXAMPLES, cranfield

RUNS = ("qrels.txt", "bm25.run", "dense.run")


def test_two_runs_are_compared_verdict_first_then_table_bars_and_limits():
    answer = cranfield("compare", *RUNS, "-m", "nDCG@10 AP")
    assert answer.code == 0
    verdict, nothing, head, first, *_ = answer.both.splitlines()
    assert (
        verdict
        == "dense is ahead of bm25 by 0.053 nDCG@10 and 0.086 AP on 7 topics, but the data do not settle it (28 judgments)"
    )
    assert nothing == ""
    assert head.split() == "measure bm25 dense diff 95% low 95% high d_z W/T/L p Holm".split()
    assert first.split() == "nDCG@10 0.7033 0.7565 +0.0531 -0.2642 +0.3705 +0.15 5/0/2 0.72 1".split()
    assert answer.out.count("topic by topic") == 1
    assert answer.err.startswith("caution: 7 topics are few")
    assert len(answer.err.splitlines()) == 5
    assert "dense does not answer 1 of the 7 topics" in answer.err  # and the note that says the same is not repeated
    assert "is judged but missing" not in answer.err


def test_what_is_usual_is_told_where_it_is_asked_for_and_in_files(tmp_path):
    usual = ("Holm over 2 p-values", "seed 0", "conventions: cranfield (ties=document-descending")
    short = cranfield("compare", *RUNS, "-m", "nDCG@10 AP")
    assert not [words for words in usual if words in short.both]
    verbose = cranfield("compare", *RUNS, "-m", "nDCG@10 AP", "--verbose")
    assert all(words in verbose.out for words in usual)
    assert verbose.out.count("topic by topic") == 2
    assert "more: --verbose" not in verbose.err
    cranfield("compare", *RUNS, "-m", "nDCG@10 AP", "-o", tmp_path / "compared.txt")
    written = (tmp_path / "compared.txt").read_text(encoding="utf-8")
    assert all(words in written for words in (*usual, "caution: 7 topics are few", "dense does not answer 1"))


def test_pairs_go_one_way_within_a_table_and_csv_keeps_their_order():
    names = [f"runs/{name}.run" for name in ("bm25", "fusion", "phrase")]
    folder = Path(BUNDLED) / "allotment"
    screen = cranfield("compare", "allotment", *names, "-m", "nDCG@10", folder=folder).out
    rows = [line.split() for line in screen.splitlines() if line.startswith("nDCG@10")]
    assert [row[1:3] for row in rows] == [["bm25", "fusion"], ["phrase", "bm25"], ["phrase", "fusion"]]
    assert all(row[5].startswith("+") for row in rows)
    assert screen.startswith(
        "fusion leads by nDCG@10 (beats 2 of 2 others); 3 of 3 differences are significant (74 topics and 2,894 judgments)\n"
    )
    data = cranfield("compare", "allotment", *names, "-m", "nDCG@10", "--format", "csv", folder=folder).out
    pairs = [(row["one"], row["other"]) for row in csv.DictReader(io.StringIO(data))]
    assert pairs == [("bm25", "fusion"), ("bm25", "phrase"), ("fusion", "phrase")]


def test_against_a_baseline_the_verdict_says_who_beats_it():
    names = [f"runs/{name}.run" for name in ("bm25", "fusion", "phrase")]
    folder = Path(BUNDLED) / "allotment"
    screen = cranfield("compare", "allotment", *names, "--baseline", "bm25", folder=folder).out
    assert screen.splitlines()[:3] == [
        "nDCG@10: fusion beats bm25; bm25 beats phrase",
        "AP: fusion beats bm25; bm25 beats phrase",
        "RR@10: bm25 beats phrase; 1 not settled (74 topics and 2,894 judgments)",
    ]


def test_the_command_line_says_what_the_library_says():
    found = compare(str(EXAMPLES / "qrels.txt"), [str(EXAMPLES / run) for run in RUNS[1:]], "nDCG@10 AP RR@10")
    data = json.loads(cranfield("compare", *RUNS, "--format", "json").out)
    assert [pair["p"] for pair in data["pairs"]] == [pair.p for pair in found.pairs]
    assert data["inputs"] == {"qrels": "qrels.txt", "runs": {"bm25": "bm25.run", "dense": "dense.run"}}


def test_every_format_is_written(tmp_path):
    for shape in ("text", "json", "csv", "tsv", "markdown"):
        path = tmp_path / shape
        answer = cranfield("compare", *RUNS, "-m", "AP", "--format", shape, "-o", path)
        assert (answer.code, answer.out) == (0, "")
        assert "bm25" in path.read_text(encoding="utf-8")


def test_csv_has_rows_only_and_cautions_go_to_the_other_stream():
    answer = cranfield("compare", *RUNS, "-m", "AP", "--format", "csv")
    assert len(list(csv.DictReader(io.StringIO(answer.out)))) == 1
    assert "caution: 7 topics are few" in answer.err
    per_topic = cranfield("compare", *RUNS, "-m", "AP", "--format", "tsv", "--per-topic")
    assert len(per_topic.out.splitlines()) == 8


@pytest.mark.parametrize("name", ["bm25", "bm25.run"])
def test_a_baseline_is_named_by_run_or_file(name):
    answer = cranfield("compare", "qrels.txt", "dense.run", "bm25.run", "-m", "AP", "--baseline", name, "--no-bars")
    assert answer.out.splitlines()[2].startswith("measure    bm25   dense")


def test_all_tests_are_shown_with_where_their_p_values_come_from():
    answer = cranfield("compare", *RUNS, "-m", "Success@1", "--test", "all", "--resamples", "1000")
    for name in ("randomisation", "paired t", "Wilcoxon", "sign test", "BCa", "Bayesian", "McNemar", "Welch"):
        assert name in answer.out
    assert "exact" in answer.out
    assert "1,000 drawn" in answer.out


def test_a_margin_asks_for_equivalence_in_words():
    answer = cranfield("compare", *RUNS, "-m", "AP", "--margin", "0.05")
    assert "the data do not show that dense and bm25 are equivalent within 0.05 AP" in answer.out


def test_the_same_conventions_as_those_of_eval_are_taken():
    answer = cranfield("compare", *RUNS, "-m", "AP", "--missing", "skip", "--as", "trec_eval-9", "--rel", "2")
    assert answer.code == 0
    assert "missing=skip" in answer.out
    assert "on 6 topics" in answer.out


def test_a_measure_of_risk_takes_the_baseline():
    answer = cranfield("compare", *RUNS, "-m", "URisk(of=AP)", "--baseline", "bm25.run")
    assert answer.code == 0
    assert "URisk" in answer.out


def seeds(folder, number: int = 3) -> None:
    lines = (EXAMPLES / "dense.run").read_text().splitlines()
    for seed in range(number):
        rng = np.random.default_rng(seed)
        rows = [line.split() for line in lines]
        text = "".join(" ".join([*row[:4], str(float(row[4]) + rng.normal(0, 0.1)), "d"]) + "\n" for row in rows)
        (folder / f"dense.seed{seed}.run").write_text(text)


def test_the_files_of_a_group_need_not_be_named_twice(tmp_path):
    seeds(tmp_path)
    pattern = str(tmp_path / "dense.seed*.run")
    alone = cranfield("compare", "qrels.txt", "bm25.run", "--group", pattern, "-m", "AP", "--format", "json")
    both = cranfield(
        "compare", "qrels.txt", "bm25.run", pattern, "--group", "dense.seed*", "-m", "AP", "--format", "json"
    )
    assert alone.code == both.code == 0, alone.err
    assert json.loads(alone.out)["pairs"] == json.loads(both.out)["pairs"]
    assert json.loads(alone.out)["groups"] == {"dense.seed*": ["dense.seed0", "dense.seed1", "dense.seed2"]}


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["qrels.txt", "bm25.run"], 3, "expected two systems or more to compare, found 1: 'bm25'"),
        (["qrels.txt"], 2, "expected QRELS RUN..., or --table FILE"),
        ([*RUNS, "--test", "magic"], 2, "no test 'magic'"),
        ([*RUNS, "--correction", "magic"], 2, "no correction 'magic'"),
        ([*RUNS, "--baseline", "magic"], 2, "no run 'magic' for the baseline"),
        ([*RUNS, "--alpha", "5"], 2, "alpha must be between 0 and 1"),
        ([*RUNS, "--group", "magic*"], 3, "magic*: no file matches"),
        ([*RUNS, "--digits", "-1"], 2, "--digits must be 0 or more"),
        ([*RUNS, "--table", "topics.tsv"], 2, "--table FILE holds scores already"),
        (["--table", "nowhere.csv"], 3, "nowhere.csv"),
    ],
)
def test_what_cannot_be_compared_is_one_line_and_an_exit_code(arguments, code, problem):
    answer = cranfield("compare", *arguments)
    assert answer.code == code
    assert problem in answer.err
    assert answer.out == ""


def test_bars_are_ascii_where_the_output_cannot_show_blocks(monkeypatch):
    import sys

    from cranfield.cli.output import ascii_only

    class Latin:
        encoding = "latin-1"

    monkeypatch.setattr(sys, "stdout", Latin())
    assert ascii_only(None)
    assert not ascii_only("file.txt")


# tables of scores


def write(folder, text: str, name: str = "scores.csv") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_table_of_scores_is_compared_without_runs(tmp_path):
    path = write(tmp_path, "topic,bm25,dense\n301,0.1,0.3\n302,0.2,0.5\n303,0.4,0.5\n")
    answer = cranfield("compare", "--table", path, "-m", "AP")
    assert answer.code == 0
    assert "dense is ahead of bm25 by 0.200 AP" in answer.out
    assert "conventions: unknown, the scores were computed elsewhere" in answer.out


def test_what_eval_writes_per_topic_is_compared_to_the_same_numbers(tmp_path):
    path = tmp_path / "scores.csv"
    cranfield("eval", *RUNS, "-m", "nDCG@10 AP", "--per-topic", "--format", "csv", "-o", path)
    there = json.loads(cranfield("compare", "--table", path, "--format", "json").out)
    here = json.loads(cranfield("compare", *RUNS, "-m", "nDCG@10 AP", "--format", "json").out)
    assert [pair["p"] for pair in there["pairs"]] == [pair["p"] for pair in here["pairs"]]
    assert [pair["difference"] for pair in there["pairs"]] == [pair["difference"] for pair in here["pairs"]]


def test_a_table_without_topics_numbers_them(tmp_path):
    found = read_score_table(write(tmp_path, "a;b\n0,5\n".replace(",", ";") + "0.25;NA\n"))
    assert (found.runs, found.topics) == (["a", "b"], ["1", "2"])
    assert np.isnan(found.tables[""][1, 1])


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("topic,a\n1,x\n", BadLineError, "scores.csv:2: expected a number or an empty cell, found 'x'"),
        ("topic,a\n1,0.5,0.6\n", BadLineError, "expected 2 columns as in the header, found 3"),
        ("topic,a\n1,inf\n", BadLineError, "expected a finite number"),
        ("topic,a\n1,1\n1,2\n", BadLineError, "topic '1' occurs twice"),
        ("topic,a,a\n1,1,2\n", DataError, "found 'a' twice"),
        ("topic,a\n", DataError, "expected a header and one row per topic"),
        ("topic\n1\n2\n", DataError, "expected one column per run"),
        ("run,topic,AP\nx,1,0.5\nx,1,0.5\n", BadLineError, "topic '1' of 'x' occurs twice"),
    ],
)
def test_a_table_that_cannot_be_read_says_where(tmp_path, text, error, problem):
    with pytest.raises(error, match=problem):
        read_score_table(write(tmp_path, text))


def test_robust_2004_is_read_whole(shared):
    found = read_score_table(str(shared / "urbano-robust2004" / "robust2004_ap.csv"))
    assert found.tables[""].shape == (249, 110)
    assert (found.topics[0], found.runs[0]) == ("301", "sys1")


@pytest.mark.slow
def test_all_pairs_of_robust_2004_are_compared(shared):
    path = str(shared / "urbano-robust2004" / "robust2004_ap.csv")
    answer = cranfield("compare", "--table", path, "--resamples", "2000", "--format", "csv")
    assert len(answer.out.splitlines()) == 5996


def test_real_runs_are_compared(shared):
    folder = shared / "trec-covid-r3"
    runs = [folder / "runs" / name for name in ("covidex.r3.t5_lr", "r3.fusion1")]
    answer = cranfield("compare", folder / "qrels.covid-round3.txt", *runs, "-m", "nDCG@10", "--no-bars")
    assert answer.out.startswith("covidex.r3.t5_lr beats r3.fusion1 by 0.238 nDCG@10 on 40 topics (12,713 judgments)\n")
    assert "-0.2381  -0.3269   -0.1493" in answer.out
    assert "caution: Judged@10 is low for r3.fusion1 85%" in answer.err
