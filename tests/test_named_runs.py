"""NAME=path: a run is called what it was given for, wherever a command takes runs."""

from __future__ import annotations

import shutil

import pytest

from cranfield.inputs.inputs import Inputs, path_of
from shell import EXAMPLES, cranfield

RUNS = ("old=bm25.run", "new=dense.run")
VERBS = {
    "eval": ["qrels.txt", *RUNS],
    "compare": ["qrels.txt", *RUNS, "--baseline", "old"],
    "leaderboard": ["qrels.txt", *RUNS],
    "gate": ["qrels.txt", *RUNS],
    "explain": ["qrels.txt", "old=bm25.run", "--topic", "q1"],
    "curve": ["qrels.txt", *RUNS],
    "pool": [*RUNS, "--depth", "2", "--depth", "old=3"],
    "correlate": RUNS,
    "stability": ["qrels.txt", *RUNS, "--of", "lists"],
    "reuse": ["qrels.txt", *RUNS],
    "reproduce": ["qrels.txt", *RUNS],
    "design": ["qrels.txt", *RUNS, "--test", "t"],
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_calls_a_run_by_its_name(verb):
    answer = cranfield(verb, *VERBS[verb])
    assert answer.code == 0, answer.both
    assert "old" in answer.out
    assert "bm25" not in answer.out.replace("bm25.run", "")


def test_fuse_and_check_read_a_run_that_has_a_name(tmp_path):
    assert cranfield("fuse", *RUNS, "-o", str(tmp_path / "fused.run")).code == 0
    assert cranfield("check", *RUNS, "--qrels", "qrels.txt").code == cranfield("check", "bm25.run", "dense.run").code


def test_a_file_whose_name_has_an_equals_sign_comes_first(tmp_path):
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    shutil.copy(EXAMPLES / "dense.run", tmp_path / "k=bm25.run")
    (tmp_path / "k=3").mkdir()
    shutil.copy(EXAMPLES / "bm25.run", tmp_path / "k=3" / "a.run")
    answer = cranfield("eval", "qrels.txt", "k=bm25.run", "k=3/a.run", "-m", "AP", "--format", "csv", folder=tmp_path)
    scores = dict(line.split(",")[:2] for line in answer.out.splitlines()[1:])
    plain = cranfield("eval", "qrels.txt", "dense.run", "bm25.run", "-m", "AP", "--format", "csv", folder=tmp_path)
    assert list(scores) == ["k=bm25", "a"]
    assert [*scores.values()] == [line.split(",")[1] for line in plain.out.splitlines()[1:]]
    assert cranfield("eval", "qrels.txt", "k=*.run", folder=tmp_path).out.splitlines()[1].startswith("k=bm25")


def test_standard_input_can_have_a_name():
    run = (EXAMPLES / "bm25.run").read_bytes()
    assert cranfield("eval", "qrels.txt", "new=-", stdin=run).out.splitlines()[1].startswith("new")
    assert cranfield("eval", "-", "new=-", stdin=run).code == 3
    assert Inputs(runs=["new=-"]).streams


def test_a_name_with_a_slash_is_a_path():
    assert path_of("runs/k=3.run") == "runs/k=3.run"
    assert path_of("a=b=c.run") == "b=c.run"
    assert path_of("=a.run") == "=a.run"


def test_one_name_for_a_run_keeps_the_others_as_they_are():
    answer = cranfield("eval", "qrels.txt", "dense=bm25.run", "dense.run", "--format", "csv")
    assert [line.split(",")[0] for line in answer.out.splitlines()[1:]] == ["dense", "dense#2"]
