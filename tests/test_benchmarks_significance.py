"""The benchmark of significance tests: both sides test the same pairs, and p-values that differ make it void."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the benchmarks are not installed with the package

from benchmarks import agreement, significance, timing
from benchmarks.suite import SCRIPTS, Plan

from cranfield import explain


def test_both_sides_find_the_same_p_against_scipy():
    script = str(SCRIPTS / "significance.py")
    ours, theirs = (
        json.loads(timing.run((sys.executable, script, who, "-", "2000", "4")).output) for who in ("cranfield", "scipy")
    )
    assert (ours["pairs"], theirs["pairs"]) == (5995, 4)
    assert ours["shape"] == [249, 110]
    assert len(set(ours["p"])) > 1
    significance.agree(ours["p"], [theirs["p"]], 2000)


def test_a_comparison_of_different_p_is_void():
    significance.agree([0.05], [[0.051]], 100_000)
    with pytest.raises(agreement.VoidError, match=r"cranfield says p = 0\.05, SciPy 0\.08"):
        significance.agree([0.05], [[0.08]], 100_000)


def test_whole_commands_have_rows_and_bars_only_at_full_size(monkeypatch):
    taken = []
    sample = timing.Sample(2.0, 1.5, 10**7, "")

    def interleave(contenders, title):
        taken.append(contenders[0].command)
        return {contenders[0].name: [sample]}

    monkeypatch.setattr(significance, "interleave", interleave)
    monkeypatch.setattr(significance, "SYSTEMS", 8)
    monkeypatch.setattr(significance, "TIED", 400)
    monkeypatch.setattr(significance, "MANY_TIED", 500)
    rows = significance.commands(Plan([1], 1, 1, 1))
    assert [row.ours for row in rows] == [
        "leaderboard",
        "compare",
        "compare --test all",
        *["explain nDCG@10"] * 2,
        "design",
    ]
    assert [row.verdict for row in rows] == ["met", "met", "met", "missed", "met", "missed"]
    assert [row.result for row in rows] == [1.5, 1.5, 1.5, 2.0, 2.0, 2.0]
    assert all(command[:2] == ("env", "OPENBLAS_NUM_THREADS=1") for command in taken)
    assert {row.bar for row in significance.commands(Plan([1], 1, 1, 1), 0.5)} == {None}


def test_what_whole_commands_read_is_read(tmp_path):
    table = Path(significance.write_table(tmp_path / "table.csv", 4)).read_text().splitlines()
    assert [len(line.split(",")) for line in table] == [5] * (1 + significance.TOPICS)
    qrels, run = significance.write_ties(tmp_path, 1000)
    ties = explain(qrels, run, "nDCG@10").ties
    assert ties is not None
    assert ties.groups == [(1, 1000)]
