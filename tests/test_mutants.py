"""The list of `make mutants` names functions that exist, and a mutant that changes a result is noticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mutants

SOURCE = Path(__file__).resolve().parent.parent / "src"
LISTED = mutants.functions(mutants.HERE / "mutants.txt", [])


def test_the_list_has_a_hundred_functions_that_can_be_broken():
    assert len(set(LISTED)) == 100
    for function in LISTED:
        assert mutants.mutants(function, SOURCE), function
        assert all((mutants.HERE / name).exists() for name in function.tests), function


def test_the_same_code_gets_the_same_mutants():
    first, second = (mutants.mutants(LISTED[0], SOURCE) for _ in range(2))
    assert [(each.line, each.change) for each in first] == [(each.line, each.change) for each in second]


def test_a_broken_formula_is_noticed_and_a_sound_one_is_not(tmp_path):
    package = tmp_path / "src" / "cranfield"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "sums.py").write_text("def total(a, b):\n    return a + b\n\n\ndef idle(a):\n    return 0 if a else 0\n")
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_sums.py").write_text(
        "from cranfield.sums import total\n\n\ndef test_total():\n    assert total(2, 3) == 5\n"
    )
    listed = tmp_path / "list.txt"
    listed.write_text("sums.py total test_sums.py\nsums.py idle test_sums.py\n")
    options = ["--source", package.parent, "--tests", tests, "--list", listed, "--jobs", "1"]
    answer = subprocess.run([sys.executable, mutants.__file__, *options], capture_output=True, text=True, timeout=120)
    *alive, summary = answer.stdout.splitlines()
    assert [line.rpartition(": ")[0] for line in alive] == ["survived: sums.py:6 idle"] * 3, answer.stderr
    assert summary == "4 mutants of 2 functions, 3 survived"


def test_tests_that_fail_without_a_mutant_are_reported(tmp_path):
    (tmp_path / "src" / "cranfield").mkdir(parents=True)
    (tmp_path / "src" / "cranfield" / "__init__.py").write_text("def one():\n    return 1\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_one.py").write_text("def test_one():\n    assert False\n")
    listed = tmp_path / "list.txt"
    listed.write_text("__init__.py one test_one.py\n")
    options = ["--source", tmp_path / "src", "--tests", tmp_path / "tests", "--list", listed, "--jobs", "1"]
    answer = subprocess.run([sys.executable, mutants.__file__, *options], capture_output=True, text=True, timeout=120)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == "test_one.py fails although nothing is broken: it notices no mutant\n"
