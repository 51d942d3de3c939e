"""The benchmark of online evaluation: every section runs and has its rows; whether bars are met is not for a test."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the benchmarks are not installed with the package

from benchmarks import online

from cranfield.online.interleave import METHODS


def test_a_small_run_prints_a_row_for_every_method(capsys, monkeypatch):
    monkeypatch.setattr(online, "PAIRS", 2)
    monkeypatch.setattr(online, "DRAWS", 4)
    assert online.main(["--repeats", "1", "--only", "interleaving"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in METHODS)
    assert "≤ 20 µs" in printed
    assert "≤ 40 ms" in printed


def test_every_method_with_a_bar_exists():
    assert {*online.BARS} <= {*METHODS}


def test_a_small_log_is_brought_to_a_verdict(capsys, monkeypatch):
    monkeypatch.setattr(online, "EVENTS", (3_000,))
    assert online.main(["--repeats", "1", "--only", "analysis"]) == 0
    assert "3,000 events" in capsys.readouterr().out
