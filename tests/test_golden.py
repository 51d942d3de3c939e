"""No command prints or writes anything else than what is recorded in tests/golden/; `make golden` records it again."""

from __future__ import annotations

import difflib
import shlex
from functools import cache
from pathlib import Path

import click
import pytest

import cranfield
from cranfield.base.text_layout import width
from cranfield.cli import cli
from pages import ROOT
from recorded import (
    GOLDEN,
    SCREENS,
    answered,
    golden_commands,
    golden_screens,
    recorded_screen,
    rounded,
    seen,
    violations,
)
from shell import cranfield as run

COMMANDS, SCREENS_SHOWN = golden_commands(), golden_screens()


@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_a_command_answers_what_is_recorded(command, tmp_path):
    assert command.record.exists(), "nothing is recorded: make golden"
    expected = command.record.read_bytes().decode("utf-8", "surrogateescape")
    expected, found = rounded(expected), rounded(answered(command, tmp_path))
    if found != expected:
        lines = difflib.unified_diff(expected.splitlines(), found.splitlines(), "recorded", "now", n=2, lineterm="")
        shown = "\n".join(list(lines)[:80])
        pytest.fail(f"{command.name} has another answer; if it is meant: make golden\n{shown}", pytrace=False)


@pytest.mark.parametrize("screen", SCREENS_SHOWN, ids=[screen.record.stem for screen in SCREENS_SHOWN])
def test_a_screen_is_as_recorded_no_wider_than_its_columns_and_not_too_long(screen, tmp_path):
    answers = seen(screen, tmp_path)
    wide = [line for answer in answers for line in answer.splitlines() if width(line) > screen.columns]
    assert wide == []
    if screen.most_lines is not None:
        assert len(answers[-1].splitlines()) <= screen.most_lines
    assert screen.record.exists(), "nothing is recorded: make golden"
    expected = rounded(screen.record.read_text(encoding="utf-8"))
    found = rounded(recorded_screen(screen, answers, tmp_path))
    if found != expected:
        lines = difflib.unified_diff(expected.splitlines(), found.splitlines(), "recorded", "now", n=2, lineterm="")
        pytest.fail("another screen; if it is meant: make golden\n" + "\n".join(list(lines)[:80]), pytrace=False)


def test_no_screen_is_left_of_a_command_that_is_gone():
    assert {path.name for path in SCREENS.glob("*.txt")} == {screen.record.name for screen in SCREENS_SHOWN}


def test_fourteen_runs_on_a_leaderboard_fit_a_screen(shared):
    folder = shared / "trec-covid-r3"
    names = folder / "qrels.covid-round3.txt", str(folder / "runs" / "*")
    for columns in (80, 120):
        lines = run("leaderboard", *names, columns=columns).both.splitlines()
        assert lines[0].startswith("warning: PRF, sab20.3.rocchio: tied documents can move a mean")
        assert any(
            line.startswith("covidex.r3.t5_lr leads with nDCG@10 0.7740; 8 of 13 others are told apart")
            for line in lines
        )
        assert len(lines) <= 32
        assert max(map(width, lines)) <= columns


def test_what_is_recorded_comes_from_this_checkout():
    assert Path(cranfield.__file__).is_relative_to(ROOT / "src"), "another cranfield is imported: set PYTHONPATH=src"


def test_no_recording_is_left_of_a_command_that_is_gone():
    assert {path.name for path in GOLDEN.glob("*.txt")} == {command.record.name for command in COMMANDS}


def tree(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command that can be called, as words."""
    if not isinstance(command, click.Group):
        return [path]
    inner = {
        name: command.get_command(click.Context(command), name)
        for name in command.list_commands(click.Context(command))
    }
    return [each for name, one in inner.items() if one is not None for each in tree(one, (*path, name))]


@cache
def recorded_lines() -> tuple[list[list[str]], list[list[str]]]:
    """The arguments of every recorded command, and of the command that each screen shows last."""
    lines = [shlex.split(line)[1:] for command in COMMANDS for line in command.lines]
    return lines, [shlex.split(screen.lines[-1])[1:] for screen in SCREENS_SHOWN]


@pytest.mark.parametrize("path", tree(cli), ids=" ".join)
def test_every_command_and_its_help_are_recorded(path):
    lines, screens = recorded_lines()
    starts = [line for line in lines if tuple(line[: len(path)]) == path]
    assert [*path, "--help"] in starts
    assert [line for line in starts if "--help" not in line]
    assert [line for line in screens if tuple(line[: len(path)]) == path]


RECORD = """===== $ cranfield eval
exit code 0
===== stdout (words)
run   AP
bm25  -0.5
===== stderr
note: few topics
===== file a.csv
run,AP
===== file a.tex
\\textbf{bm25} & -0.5 \\\\
"""


def test_layout_is_free_where_people_read():
    other = RECORD.replace("run   AP\nbm25  -0.5", "| run | AP |\n|---|---:|\n| **bm25** | −0.5 |")
    other = other.replace("note: few topics", "note:\n few topics").replace("\\textbf{bm25} & -0.5", "bm25 & $-0.5$")
    assert other != RECORD
    assert violations("x", RECORD, other) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("exit code 0", "exit code 1", "x: $ cranfield eval: $ cranfield eval is not the same"),
        ("bm25  -0.5", "bm25  0.5", "x: $ cranfield eval: stdout (words) lost -0.5, won 0.5"),
        ("few topics", "topics", "x: $ cranfield eval: stderr lost few, won nothing"),
        ("run,AP", "run, AP", "x: $ cranfield eval: file a.csv is not the same"),
        ("& -0.5", "& -0.6", "x: $ cranfield eval: file a.tex lost -0.5, won -0.6"),
        ("===== stderr\nnote: few topics\n", "", "x: gone: stderr"),
    ],
)
def test_words_numbers_and_data_are_not(old, new, problem):
    assert violations("x", RECORD, RECORD.replace(old, new)) == [problem]
