"""No command prints or writes anything else than what is recorded in tests/golden/; `make golden` records it again."""

from __future__ import annotations

import difflib
import shlex
from pathlib import Path

import click
import pytest

import cranfield
from cranfield.cli import cli
from pages import ROOT
from recorded import GOLDEN, answered, golden_commands, rounded, violations

COMMANDS = golden_commands()


@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_a_command_answers_what_is_recorded(command, tmp_path):
    assert command.record.exists(), "nothing is recorded: make golden"
    expected = command.record.read_bytes().decode("utf-8", "surrogateescape")
    expected, found = rounded(expected), rounded(answered(command, tmp_path))
    if found != expected:
        lines = difflib.unified_diff(expected.splitlines(), found.splitlines(), "recorded", "now", n=2, lineterm="")
        shown = "\n".join(list(lines)[:80])
        pytest.fail(f"{command.name} has another answer; if it is meant: make golden\n{shown}", pytrace=False)


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


@pytest.mark.parametrize("path", tree(cli), ids=" ".join)
def test_every_command_and_its_help_are_recorded(path):
    lines = [shlex.split(line)[1:] for command in COMMANDS for line in command.lines]
    starts = [line for line in lines if tuple(line[: len(path)]) == path]
    assert [*path, "--help"] in starts
    assert [line for line in starts if "--help" not in line]


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
