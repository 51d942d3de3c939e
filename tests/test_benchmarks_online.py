"""The benchmark of online evaluation: every section runs and has its rows; whether bars are met is not for a test."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the benchmarks are not installed with the package

import pytest
from benchmarks import events, online

from cranfield.experiments.interleaving import METHODS


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


def test_a_small_load_on_the_service_is_confirmed_and_found_in_the_log(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(events, "LOADS", {"batches of 5": (20.0, 5)})
    monkeypatch.setattr(events, "SECONDS", 60.0)
    assert online.main(["--only", "service", "--seconds", "0.5"]) == 0
    printed = capsys.readouterr().out
    assert "≥ 100 a second" in printed
    assert "≤ 100 ms" in printed


def test_a_log_without_a_confirmed_event_makes_the_measurement_void(tmp_path):
    from cranfield.experiments.event import UserEvent
    from cranfield.experiments.log import EventLog

    with EventLog(tmp_path / "log", create=True) as log:
        log.append([UserEvent(event_id=f"a-1-{i}", time="2026-03-01", kind="x", unit="u") for i in range(2)])
    events.proven(tmp_path, {"a-1": 2})
    with pytest.raises(events.Wrong, match="1 confirmed requests not whole"):
        events.proven(tmp_path, {"a-1": 2, "a-2": 2})


def test_a_small_log_is_brought_to_a_verdict(capsys, monkeypatch):
    monkeypatch.setattr(online, "EVENTS", (3_000,))
    assert online.main(["--repeats", "1", "--only", "analysis"]) == 0
    assert "3,000 events" in capsys.readouterr().out
