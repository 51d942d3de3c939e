"""The benchmark of labels: what it measures runs, its rows have bars at full size, and different answers make it void."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the benchmarks are not installed with the package

from benchmarks import judging, peers, timing
from benchmarks.agreement import VoidError
from benchmarks.suite import SCRIPTS, Plan


def test_a_small_run_without_peers_prints_what_was_measured(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(judging, "PRODUCT", tmp_path / "nowhere")
    sections = ["--only", "consensus", "--only", "coefficients"]
    assert judging.main(["--no-peers", "--repeats", "1", "--scale", "0.01", *sections]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Dawid-Skene, 24,000 labels, 0.9" in printed
    assert "crowd-kit is not installed" in printed
    assert "alpha, 1,000 resamples 1,000 × 2" in printed
    assert "alpha, 50 topics 1,000 × 2" in printed


def test_rows_have_bars_only_at_full_size(monkeypatch):
    answers = {
        "crowdkit": {"seconds": 8.0, "cpu": 8.0, "right": 0.9, "labels": 10},
        "cranfield": {"seconds": 1.0, "cpu": 1.0, "right": 0.9, "labels": 10},
    }

    def interleave(contenders, title):
        return {one.name: [timing.Sample(1.0, 1.0, 1, json.dumps(answers[one.name]))] for one in contenders}

    monkeypatch.setattr(judging, "interleave", interleave)
    [row] = judging.consensus(Plan(1, 1, usable={"crowdkit"}))
    assert (row.result, row.bar, row.verdict) == (8, 10, "missed")
    for full, small in zip(*(judging.coefficients(Plan(1, 1), scale) for scale in (1.0, 0.5)), strict=True):
        assert (full.verdict, small.verdict) == ("met", "")
    answers["crowdkit"]["right"] = 0.8
    with pytest.raises(VoidError, match="Dawid-Skene: right are crowdkit 0.8000, cranfield 0.9000"):
        judging.consensus(Plan(1, 1, usable={"crowdkit"}))
    monkeypatch.setattr(judging.peers, "ensure", lambda wanted: {"crowdkit": "1.4"})
    assert judging.main(["--only", "consensus"]) == 1


def test_the_scripts_of_the_benchmark_answer(tmp_path):
    (tmp_path / "answer.csv").write_text("question,worker,answer\nx,1,0\nx,2,0\ny,1,1\ny,2,1\n")
    (tmp_path / "truth.csv").write_text("question,truth\nx,0\ny,1\n")
    files = (str(tmp_path / "answer.csv"), str(tmp_path / "truth.csv"))
    answer = json.loads(timing.run((sys.executable, str(SCRIPTS / "consensus.py"), "cranfield", *files)).output)
    assert (answer["right"], answer["labels"]) == (1, 4)


def test_a_peer_without_its_heavy_dependencies_names_what_it_needs():
    assert set(peers.ALONE) <= set(peers.WANTED_BY_JUDGING.values())
    assert not any("transformers" in needed for every in peers.ALONE.values() for needed in every)
