"""What type checkers find: misspelt conventions, which would otherwise wait until the program runs."""

from __future__ import annotations

import sys
from dataclasses import fields
from subprocess import run
from typing import TYPE_CHECKING, get_type_hints

import pytest

from cranfield import Conventions
from cranfield.conventions import Changes
from pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path

FINE = """
from cranfield import Evaluator, evaluate
from cranfield.conventions import conventions

qrels, answers = {"q": {"d": 1}}, {"q": {"d": 1.0}}
evaluate(qrels, answers, "AP", missing="skip", collapse="#", drop_self=True)
Evaluator(qrels, "AP", ties="averaged")
conventions("trec_eval-9", missing="zero")
"""
WRONG = """
evaluate(qrels, answers, "AP", missing="skp")
evaluate(qrels, answers, "AP", mising="skip")
Evaluator(qrels, "AP", ties="average")
Evaluator(qrels, "AP", drop_self="yes")
conventions("trec_eval-9", scores="float")
"""


def test_mypy_finds_every_misspelt_convention_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "snippet.py").write_text(FINE + WRONG)
    command = [sys.executable, "-m", "mypy", str(tmp_path / "snippet.py")]  # strict, and what `make lint` found is kept
    checked = run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    wrong = {int(line.split(":")[1]) for line in checked.stdout.splitlines() if "snippet.py" in line}
    start = len(FINE.splitlines())
    assert wrong == {start + 1 + i for i in range(1, len(WRONG.splitlines()))}, checked.stdout + checked.stderr


def test_what_type_checkers_know_of_conventions_is_what_there_is() -> None:
    assert get_type_hints(Changes) == {one.name: get_type_hints(Conventions)[one.name] for one in fields(Conventions)}
