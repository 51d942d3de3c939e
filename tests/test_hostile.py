"""The generator of hostile inputs reaches every slot, repeats itself by its seed, and sees every fault that is planted."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import pytest

import hostile
from cranfield.cli import cli
from hostile import Case, Outcome, cases, commands, faults, places, run_case, slots

pytestmark = pytest.mark.skipif(os.name != "posix", reason="forks")


@pytest.fixture
def scratch(tmp_path):
    hostile._place[:] = [hostile._Place(tmp_path, {})]
    return tmp_path


def test_every_command_has_a_line_that_works():
    assert {words for words, _ in commands()} == set(hostile.bases())
    assert len(list(commands())) >= 74


def test_every_slot_has_its_turn_before_one_has_two(scratch, monkeypatch):
    monkeypatch.setattr(hostile, "_hostile_path", lambda *rest: ("x", False, {}))
    named = [(case.slot.command, case.slot.name) for case in cases(seed=3, number=len(slots()))]
    assert len(named) == len(set(named)) == len(slots())


def test_a_seed_gives_the_same_cases(scratch, monkeypatch):
    monkeypatch.setattr(hostile, "_hostile_path", lambda rng, *rest: (str(rng.random()), False, {}))
    one, two, other = ([str(case) for case in cases(seed, 50)] for seed in (1, 1, 2))
    assert one == two != other


def test_places_are_those_that_click_fills():
    command = dict(commands())["gate"]
    words = ("qrels.txt", "-m", "AP", "a.run", "--lenient", "b.run", "--max-drop", "0.1")
    where = places(command, words)
    with click.Context(cli) as parent:
        filled = command.make_context("gate", list(words), parent).params
    for name in ("qrels", "baseline", "candidate"):
        assert [words[place] for place in where[name]] == [filled[name]]
    assert [words[place] for place in where["max_drop"]] == list(filled["max_drop"])


def _case(line: str, unusable: bool = False, command: str = "eval") -> Case:
    slot = next(slot for slot in slots() if slot.command == command)
    return Case(0, slot, hostile.bases()[command][0], tuple(line.split()), unusable, {})


def _planted(monkeypatch, action):
    monkeypatch.setattr(hostile, "command_line", lambda words: action())


def _crash():
    raise ZeroDivisionError("planted")


def _print_and_refuse():
    print("nDCG@10 0.5")
    sys.exit(3)


def _leave_a_file():
    Path("half-written").write_text("half", encoding="ascii")
    sys.exit(3)


def _leave_a_temporary_file():
    tempfile.NamedTemporaryFile(delete=False).close()
    sys.exit(0)


@pytest.mark.parametrize(
    ("action", "fault"),
    [
        (_crash, "traceback"),
        (lambda: sys.exit(70), "ended with 70"),
        (lambda: sys.exit(1), "exit 1 without a verdict"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "ended with -9"),
        (lambda: sys.exit(0), "accepted"),
        (_print_and_refuse, "numbers printed"),
        (_leave_a_file, "left behind"),
        (_leave_a_temporary_file, "left behind"),
    ],
)
def test_a_planted_fault_is_seen(action, fault, scratch, monkeypatch):
    _planted(monkeypatch, action)
    case = _case("eval qrels.txt bm25.run", unusable=True)
    assert any(each.startswith(fault) for each in faults(case, run_case(case)))


def test_a_refusal_in_words_is_no_fault(scratch):
    case = _case("eval qrels.txt none.run", unusable=True)
    outcome = run_case(case)
    assert outcome.code == 3
    assert "none.run: no such file" in outcome.err
    assert faults(case, outcome) == []


@pytest.mark.parametrize(
    ("command", "out", "is_fault"),
    [
        ("gate", "failed: nDCG@10 fell by 0.1\n", False),
        ("gate", "", True),
        ("online analyze", "stop: clicks fell\n", False),
        ("eval", "failed\n", True),
    ],
)
def test_an_exit_of_1_is_a_verdict_only_where_a_verdict_is_printed(command, out, is_fault):
    outcome = Outcome(1, 0.1, 100.0, out, "", [])
    assert bool(faults(_case(command, command=command), outcome)) == is_fault


def test_a_verdict_in_a_packed_file_is_a_verdict(scratch, monkeypatch):
    def fail():
        Path("out.gz").write_bytes(gzip.compress(b"failed: nDCG@10 fell by 0.1"))
        sys.exit(1)

    _planted(monkeypatch, fail)
    case = _case("gate", command="gate")
    assert faults(case, run_case(case)) == []


def test_seconds_and_memory_are_limited():
    case = _case("eval qrels.txt bm25.run")
    assert faults(case, Outcome(2, 11.0, 100.0, "", "", [])) != []
    assert faults(case, Outcome(2, 1.0, 1001.0, "", "", [])) != []
    assert faults(case, Outcome(2, 1.0, 100.0, "", "", [])) == []


def test_twelve_hostile_inputs_cause_no_fault_and_their_seconds_and_memory_are_printed():
    program = [sys.executable, hostile.__file__, "--cases", "12", "--seed", "26", "--jobs", "1"]
    done = subprocess.run(program, capture_output=True, text=True, errors="backslashreplace", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^slowest: \d+\.\d s \(at most 10\)", done.stdout, re.MULTILINE)
    assert re.search(r"^largest: \d+ MB \(at most 1000\)", done.stdout, re.MULTILINE)
