"""`cranfield eval`: what it prints, where, and with which exit code."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import shutil
from dataclasses import fields
from typing import TYPE_CHECKING, get_args, get_type_hints

import pytest

from cranfield import PRESETS, Conventions, evaluate
from cranfield.cli.options import CONVENTIONS
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from pathlib import Path

FILES = "qrels.txt", "bm25.run", "dense.run"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The examples, to be spoilt."""
    for name in FILES:
        shutil.copy(EXAMPLES / name, tmp_path / name)
    return tmp_path


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.split("\n\n")[0].splitlines()]


def test_the_table_has_a_row_a_run_and_says_how_many_topics_there_are():
    answer = cranfield("eval", *FILES, "-m", "nDCG@10 AP RR@10")
    assert answer.code == 0
    assert answer.out.splitlines()[:3] == [
        "run    nDCG@10      AP   RR@10  judged  retrieved  missing",
        "bm25    0.7033  0.6399  0.6190       7          7        0",
        "dense   0.7565  0.7262  0.7857       7          6        1",
    ]
    assert answer.err == (
        "note: topic 'q6' is judged but missing from dense; it scores 0 (use --missing skip to leave it out)\n"
        "note: AP: dense is ahead of bm25 by the mean, behind by the geometric mean, "
        "which gives hard topics more weight\n"
    )


def test_every_format_says_which_conventions_were_used():
    for shape in ("table", "json", "csv", "tsv", "trec"):
        answer = cranfield("eval", *FILES, "--format", shape, "--as", "trec_eval-9")
        where = answer.out if shape in ("table", "json") else answer.err
        assert "single" in where, shape
        assert "skip" in where, shape
        if shape != "json":
            assert "trec_eval-9" in where, shape


def test_a_colour_never_reaches_a_pipe():
    assert "\x1b" not in cranfield("eval", *FILES).both


def test_per_topic_adds_a_row_a_topic_and_ends_with_all():
    rows = table(cranfield("eval", "qrels.txt", "dense.run", "-m", "RR", "--per-topic").out)
    assert rows[0] == ["run", "topic", "RR"]
    assert [row[1] for row in rows[1:]] == ["q1", "q2", "q3", "q4", "q5", "q6", "q7", "all"]
    skipped = table(cranfield("eval", "qrels.txt", "dense.run", "-m", "RR", "--per-topic", "--missing", "skip").out)
    assert [row[1] for row in skipped[1:]] == ["q1", "q2", "q3", "q4", "q5", "q7", "all"]


def test_measures_may_be_repeated_or_separated_by_commas():
    once = cranfield("eval", *FILES, "-m", "AP RR@10").out
    assert cranfield("eval", *FILES, "-m", "AP", "-m", "RR@10").out == once
    assert cranfield("eval", *FILES, "-m", "AP,RR@10").out == once


def test_without_measures_the_usual_ones_are_taken():
    assert table(cranfield("eval", *FILES).out)[0][1:4] == ["nDCG@10", "AP", "RR@10"]


# the formats


def test_json_is_the_documented_object():
    answer = json.loads(cranfield("eval", "qrels.txt", "bm25.run", "-m", "ndcg_cut_10 AP", "--format", "json").out)
    assert set(answer) == {"measures", "runs", "conventions"}
    assert answer["measures"] == ["ndcg_cut_10", "AP"]  # as typed
    [run] = answer["runs"]
    assert set(run) == {"run", "mean"}
    assert run["run"] == "bm25"
    assert set(run["mean"]) == {"ndcg_cut_10", "AP"}
    assert answer["conventions"] == Conventions().to_dict()


def test_json_holds_topics_only_when_asked():
    answer = json.loads(cranfield("eval", "qrels.txt", "bm25.run", "-m", "RR", "--format", "json", "--per-topic").out)
    assert answer["runs"][0]["topics"]["q2"] == {"RR": 0.5}


def test_json_is_null_where_a_value_is_undefined(folder):
    (folder / "other.run").write_text("q99 Q0 doc-001 1 1.0 other\n")
    answer = cranfield("eval", "qrels.txt", "other.run", "--missing", "skip", "--format", "json", folder=folder)
    assert json.loads(answer.out)["runs"][0]["mean"] == {"nDCG@10": None, "AP": None, "RR@10": None}


def test_csv_and_tsv_are_data_and_nothing_else():
    scores = evaluate(EXAMPLES / "qrels.txt", [EXAMPLES / "bm25.run", EXAMPLES / "dense.run"], "AP")
    for shape, delimiter in (("csv", ","), ("tsv", "\t")):
        answer = cranfield("eval", *FILES, "-m", "AP", "--format", shape)
        rows = list(csv.DictReader(io.StringIO(answer.out), delimiter=delimiter))
        assert [float(row["AP"]) for row in rows] == [scores.mean("AP", run) for run in ("bm25", "dense")]


def test_trec_lines_are_those_of_trec_eval_against_our_own_drop_in():
    theirs = cranfield("trec_eval", "-m", "map", "-m", "num_ret", "-q", "qrels.txt", "bm25.run").out
    ours = cranfield("eval", "qrels.txt", "bm25.run", "-m", "num_ret map", "--format", "trec", "--per-topic").out
    assert [line for line in ours.splitlines() if not line.startswith("runid")] == theirs.splitlines()


def test_digits_are_decimals():
    assert table(cranfield("eval", *FILES, "-m", "AP", "--digits", "2").out)[1][1] == "0.64"
    assert (
        cranfield("eval", *FILES, "-m", "AP", "--digits", "1", "--format", "csv").out.splitlines()[1][:9] == "bm25,0.6,"
    )
    answer = cranfield("eval", *FILES, "--digits", "-1")
    assert answer.code == 2
    assert "--digits must be 0 or more" in answer.err


def test_sort_orders_the_runs():
    assert [row[0] for row in table(cranfield("eval", *FILES, "--sort", "AP").out)[1:]] == ["dense", "bm25"]
    assert [row[0] for row in table(cranfield("eval", *FILES, "--sort", "name").out)[1:]] == ["bm25", "dense"]
    answer = cranfield("eval", *FILES, "--sort", "P@5")
    assert answer.code == 2
    assert "--sort must be one of nDCG@10, AP, RR@10, got 'P@5'" in answer.err


def test_output_goes_to_a_file_whole(folder):
    answer = cranfield("eval", *FILES, "-o", "scores.txt", folder=folder)
    assert (answer.code, answer.out) == (0, "")
    assert (folder / "scores.txt").read_text().startswith("run ")
    assert sorted(os.listdir(folder)) == sorted([*FILES, "scores.txt"])


def test_a_failure_leaves_the_old_file_as_it_was(folder):
    (folder / "scores.txt").write_text("old")
    (folder / "bm25.run").write_text("q1 Q0 doc-1\n")
    assert cranfield("eval", *FILES, "-o", "scores.txt", folder=folder).code == 3
    assert (folder / "scores.txt").read_text() == "old"
    answer = cranfield("eval", "qrels.txt", "dense.run", "-o", "no/such/folder.txt", folder=folder)
    assert answer.code == 3
    assert answer.err.splitlines()[-1].startswith("cranfield: no/such/folder.txt: cannot be written")


# which files


def test_runs_may_be_patterns_and_their_order_is_that_of_the_alphabet():
    assert [row[0] for row in table(cranfield("eval", "qrels.txt", "*.run").out)[1:]] == ["bm25", "dense", "tied"]
    answer = cranfield("eval", "qrels.txt", "*.nothing")
    assert answer.code == 3
    assert answer.err == "cranfield: *.nothing: no file matches\n"


def test_a_run_may_come_from_standard_input():
    given = (EXAMPLES / "bm25.run").read_bytes()
    answer = cranfield("eval", "qrels.txt", "-", "dense.run", "-m", "AP", stdin=given)
    assert [row[:2] for row in table(answer.out)[1:]] == [["stdin", "0.6399"], ["dense", "0.7262"]]
    judged = (EXAMPLES / "qrels.txt").read_bytes()
    assert table(cranfield("eval", "-", "bm25.run", "-m", "AP", stdin=judged).out)[1][1] == "0.6399"
    answer = cranfield("eval", "-", "-")
    assert answer.code == 3
    assert "standard input can be read once only" in answer.err


def test_compressed_files_are_read_as_they_are_and_named_without_it(folder):
    for pack, ending in ((gzip.compress, ".gz"), (bz2.compress, ".bz2"), (lzma.compress, ".xz")):
        for name in ("qrels.txt", "bm25.run"):
            (folder / f"{name}{ending}").write_bytes(pack((folder / name).read_bytes()))
        answer = cranfield("eval", f"qrels.txt{ending}", f"bm25.run{ending}", folder=folder)
        assert table(answer.out)[1][:2] == ["bm25", "0.7033"]


def test_runs_of_the_same_name_are_told_apart_by_their_folder(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        shutil.copy(folder / "bm25.run", folder / name / "bm25.run")
    answer = cranfield("eval", "qrels.txt", "a/bm25.run", "b/bm25.run", "dense.run", folder=folder)
    assert [row[0] for row in table(answer.out)[1:]] == ["a/bm25", "b/bm25", "dense"]
    twice = cranfield("eval", "qrels.txt", "bm25.run", "bm25.run", folder=folder)
    assert [row[0] for row in table(twice.out)[1:]] == ["bm25", "bm25#2"]


def test_a_topics_file_names_a_topic_in_the_first_word_of_a_line(folder):
    (folder / "topics.txt").write_text("# chosen by hand\nq2\tsecond topic\n\n  q1 first\nq2\n")
    rows = table(cranfield("eval", "qrels.txt", "bm25.run", "--topics", "topics.txt", "--per-topic", folder=folder).out)
    assert [row[1] for row in rows[1:]] == ["q1", "q2", "all"]
    (folder / "topics.txt").write_text("q2\nq77\n")
    answer = cranfield("eval", "qrels.txt", "bm25.run", "--topics", "topics.txt", folder=folder)
    assert answer.code == 3
    assert "topic 'q77' is not judged in qrels" in answer.err
    (folder / "topics.txt").write_text("# nothing\n")
    answer = cranfield("eval", "qrels.txt", "bm25.run", "--topics", "topics.txt", folder=folder)
    assert "topics.txt: expected a topic's id on each line, found none" in answer.err


def test_a_format_may_be_named(folder):
    (folder / "run.tsv").write_text("q1\tdoc-017\t1\nq1\tdoc-003\t2\n")
    answer = cranfield("eval", "qrels.txt", "run.tsv", "--run-format", "msmarco", "-m", "P@2", folder=folder)
    assert answer.code == 0
    answer = cranfield("eval", "qrels.txt", "bm25.run", "--qrels-format", "nonsense")
    assert answer.code == 2
    assert "no format 'nonsense'" in answer.err


# what counts


def test_bounds_are_sorted_as_scores_are():
    arguments = "eval", "qrels.txt", "dense.run", "bm25.run", "-m", "AP", "--bounds", "unjudged"
    rows, turned = (table(cranfield(*arguments, *sort).out) for sort in ((), ("--sort", "name")))
    assert turned[0] == rows[0]
    assert turned[1:3] == rows[2:0:-1]


def test_rel_is_the_lowest_relevant_grade():
    assert table(cranfield("eval", "qrels.txt", "bm25.run", "-m", "P@5", "--rel", "3").out)[1][1] == "0.1714"


@pytest.mark.parametrize("name", [field.name for field in fields(Conventions)])
def test_every_convention_is_an_option_whose_help_lists_its_answers(name):
    choices = get_args(get_type_hints(Conventions)[name])
    if name == "drop_self":
        assert "--drop-self" in cranfield("eval", "--help-all").out
        return
    shown, _ = CONVENTIONS[name]
    assert shown == ("|".join(choices) if choices else "SEP")
    for choice in choices:
        flag = f"--{name.replace('_', '-')}"
        answer = cranfield("eval", *FILES, flag, choice, "--format", "json")
        if (name, choice) == ("missing", "error"):
            assert answer.code == 3
        else:
            assert json.loads(answer.out)["conventions"][name] == choice
    if choices:
        answer = cranfield("eval", *FILES, f"--{name.replace('_', '-')}", "nonsense")
        assert answer.code == 2
        assert answer.err.startswith(f"cranfield: --{name.replace('_', '-')} must be one of {choices[0]}")


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_can_be_chosen(preset):
    answer = cranfield("eval", "qrels.txt", "bm25.run", "--as", preset, "--format", "json")
    assert json.loads(answer.out)["conventions"] == PRESETS[preset].to_dict()


def test_a_preset_s_answer_can_be_changed():
    answer = cranfield("eval", *FILES, "--as", "beir", "--keep-self", "--missing", "zero", "--format", "json")
    given = json.loads(answer.out)["conventions"]
    assert (given["drop_self"], given["missing"], given["scores"]) == (False, "zero", "single")


def test_passages_are_collapsed_and_a_topic_s_own_document_dropped(folder):
    (folder / "passages.run").write_text(
        "q3 Q0 doc-051#2 1 9 p\nq3 Q0 doc-005#1 2 8 p\nq3 Q0 doc-005#4 3 9.5 p\nq3 Q0 q3 4 99 p\n"
    )
    (folder / "topics.txt").write_text("q3")
    common = "eval", "qrels.txt", "passages.run", "-m", "RR", "--topics", "topics.txt"
    assert table(cranfield(*common, folder=folder).out)[1][1] == "0.0000"
    assert table(cranfield(*common, "--collapse", "#", folder=folder).out)[1][1] == "0.5000"
    assert table(cranfield(*common, "--collapse", "#", "--drop-self", folder=folder).out)[1][1] == "1.0000"


# what goes wrong


def test_a_malformed_line_is_named_and_the_exit_code_is_3(folder):
    with (folder / "bm25.run").open("a") as file:
        file.write("q7 Q0 doc-001 5 high bm25\n")
    answer = cranfield("eval", *FILES, folder=folder)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err == "cranfield: bm25.run:28: expected a number in column 5 (score), found 'high'\n"
    lenient = cranfield("eval", *FILES, "--lenient", folder=folder)
    assert lenient.code == 0
    assert "note: 1 malformed line of bm25 skipped\n" in lenient.err


def test_a_missing_file_is_exit_code_3_and_wrong_usage_2():
    answer = cranfield("eval", "qrels.txt", "nowhere.run")
    assert (answer.code, answer.err) == (3, "cranfield: nowhere.run: no such file or directory\n")
    assert cranfield("eval", "qrels.txt").code == 2
    assert cranfield("eval", *FILES, "--nonsense").code == 2
    assert cranfield("eval", *FILES, "-m", "nDGC@10").code == 2
    assert cranfield("eval", *FILES, "-m", "RBP(p=2)").err.startswith("cranfield: RBP: p must be between 0 and 1")
    assert cranfield("eval", *FILES, "--as", "trec_eval-7").code == 2
    assert cranfield("eval", *FILES, "--threads", "0").code == 2


def test_ids_of_any_bytes_come_out_as_they_went_in(tmp_path):
    (tmp_path / "qrels.txt").write_bytes(b"caf\xe9 0 d 1\n")
    (tmp_path / "a.run").write_bytes(b"caf\xe9 Q0 d 1 1 a\n")
    for shape in ("csv", "tsv", "trec"):
        answer = cranfield("eval", "qrels.txt", "a.run", "--per-topic", "--format", shape, folder=tmp_path)
        assert "caf\udce9" in answer.out, shape
    assert "caf\\udce9" in cranfield("eval", "qrels.txt", "a.run", "--per-topic", folder=tmp_path).out
    answer = cranfield("eval", "qrels.txt", "a.run", "--per-topic", "--format", "json", folder=tmp_path)
    assert list(json.loads(answer.out)["runs"][0]["topics"]) == ["caf\udce9"]
