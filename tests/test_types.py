"""What type checkers find: misspelt conventions, which would otherwise wait until the program runs."""

from __future__ import annotations

import sys
from dataclasses import fields
from inspect import isfunction, signature
from subprocess import run
from typing import TYPE_CHECKING, get_type_hints

import pytest

import cranfield
from cranfield import Conventions, Evaluator, compare
from cranfield.base.conventions import ConventionChanges
from cranfield.comparison.compare import ComparisonOptions
from cranfield.evaluation.options import (
    EvaluatorOptions,
    OptionsWithoutBaseline,
    OptionsWithoutRel,
    OptionsWithoutWeights,
)
from pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FINE = """
from cranfield import Evaluator, bounds, compare, curves, design, evaluate, explain, gate, leaderboard
from cranfield import report, reuse, side_by_side, simulate
from cranfield.base.conventions import conventions

qrels, answers = {"q": {"d": 1}}, {"q": {"d": 1.0}}
evaluate(qrels, answers, "AP", missing="skip", collapse="#", drop_self=True)
Evaluator(qrels, "AP", ties="averaged")
conventions("trec_eval-9", missing="zero")
compare(qrels, [answers], "AP", tests="t", rel=2, missing="skip", lenient=True)
report(qrels, [answers], "AP", tests="t", missing="skip", weights={"q": 2})
gate(qrels, answers, answers, "AP", alpha=0.1, ties="averaged", grades="1=0,2=1")
leaderboard(qrels, [answers], "AP", missing="skip", conventions="trec_eval-9")
explain(qrels, answers, "AP", "q", missing="skip", baseline=answers)
curves(qrels, answers, rel=2, topics=["q"], unjudged="drop")
"""
WRONG = """
evaluate(qrels, answers, "AP", missing="skp")
evaluate(qrels, answers, "AP", mising="skip")
Evaluator(qrels, "AP", ties="average")
Evaluator(qrels, "AP", drop_self="yes")
conventions("trec_eval-9", scores="float")
bounds(qrels, answers, "AP", missing="skp")
compare(qrels, [answers], "AP", missing="skp")
compare(qrels, [answers], "AP", mising="skip")
curves(qrels, answers, mising="skip")
design(qrels, [answers], mising="skip")
explain(qrels, answers, "AP", missing="skp")
gate(qrels, answers, answers, mising="skip")
leaderboard(qrels, [answers], "AP", missing="skp")
report(qrels, [answers], "AP", mising="skip")
report(qrels, [answers], "AP", unjudged="dropp")
reuse(qrels, [answers], mising="skip")
side_by_side(qrels, answers, answers, ties="average")
simulate(qrels, [answers], mising="skip")
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
    assert get_type_hints(ConventionChanges) == {
        one.name: get_type_hints(Conventions)[one.name] for one in fields(Conventions)
    }


def test_what_type_checkers_know_of_options_is_what_evaluator_and_compare_take() -> None:
    assert named(Evaluator) == set(EvaluatorOptions.__annotations__) - set(ConventionChanges.__annotations__)
    assert named(compare) == set(ComparisonOptions.__annotations__) - set(OptionsWithoutWeights.__annotations__)
    options = set(EvaluatorOptions.__annotations__)
    assert set(OptionsWithoutWeights.__annotations__) == options - {"weights"}
    assert set(OptionsWithoutBaseline.__annotations__) == options - {"baseline"}
    assert set(OptionsWithoutRel.__annotations__) == options - {"rel"}


def named(taker: Callable[..., object]) -> set[str]:
    """The parameters that are given by name."""
    return {name for name, one in signature(taker).parameters.items() if one.kind is one.KEYWORD_ONLY}


OWN_OPTIONS = {"pool": "those of a session"}


@pytest.mark.parametrize("name", cranfield.__all__)
def test_a_public_function_that_takes_conventions_names_them_to_type_checkers(name: str) -> None:
    """`**options: Any` would take anything."""
    taker = getattr(cranfield, name)
    if isfunction(taker) and name not in OWN_OPTIONS:
        open_ended = [one for one in signature(taker).parameters.values() if one.kind is one.VAR_KEYWORD]
        assert [one.annotation for one in open_ended if "Unpack" not in str(one.annotation)] == []
