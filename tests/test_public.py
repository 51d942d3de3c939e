"""The public list is a test: a name that appears or goes is a decision, and the changelog says so."""

from __future__ import annotations

import ast
import builtins
import importlib
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cranfield
from cranfield.base import errors

PUBLIC = [
    "Document",
    "Topic",
    "Collection",
    "read_collection",
    "Qrels",
    "Extras",
    "Run",
    "read_qrels",
    "read_run",
    "Hits",
    "Measure",
    "measure",
    "measures",
    "Conventions",
    "PRESETS",
    "Evaluator",
    "evaluate",
    "Scores",
    "DesignWeights",
    "bounds",
    "curves",
    "fuse",
    "tune",
    "slices",
    "explain",
    "explain_as",
    "side_by_side",
    "correlate",
    "rbo",
    "reproduce",
    "compare",
    "Comparison",
    "leaderboard",
    "Leaderboard",
    "stability",
    "design",
    "gate",
    "Gate",
    "pool",
    "Pool",
    "session",
    "simulate",
    "reuse",
    "report",
    "CranfieldError",
    "DataWarning",
]


def test_the_public_names_are_these():
    assert sorted(cranfield.__all__) == sorted(PUBLIC)
    assert sorted(cranfield._HOMES) == sorted(PUBLIC)


def test_a_type_checker_finds_every_public_name_where_it_is_loaded_from():
    tree = ast.parse(Path(cranfield.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and "cranfield." in str(node.module)]
    found = {name.asname: str(node.module).removeprefix("cranfield.") for node in imports for name in node.names}
    assert found == cranfield._HOMES


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_its_home_module_s(name):
    home = importlib.import_module(f"cranfield.{cranfield._HOMES[name]}")
    assert getattr(cranfield, name) is getattr(home, name)
    assert name in getattr(home, "__all__", [name])


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_says_what_it_is(name):
    value = getattr(cranfield, name)
    if name.isupper():
        return  # a table: the comment above it speaks
    assert value.__doc__
    assert value.__module__.startswith("cranfield.")
    assert value.__doc__.strip().splitlines()[0].endswith(".")


FIRST_OF_ALL = """
import sys
for name in sys.argv[1:]:
    for module in [module for module in sys.modules if module.partition(".")[0] == "cranfield"]:
        del sys.modules[module]
    import cranfield
    print(name, type(getattr(cranfield, name)).__name__)
"""


def test_a_public_name_comes_first_thing_in_a_fresh_python():
    """Also `evaluate` and `measures`, which share their name with a module."""
    command = [sys.executable, "-c", FIRST_OF_ALL, *PUBLIC]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    kinds = dict(line.split() for line in answer.stdout.splitlines())
    assert list(kinds) == PUBLIC
    assert [name for name, kind in kinds.items() if kind == "module"] == []


def test_a_public_name_stays_itself_after_its_module_was_imported():
    code = (
        "import cranfield.evaluation.evaluate, cranfield.evaluation.measures.gain, cranfield\n"
        "from cranfield.evaluation.measures import REGISTRY\n"
        "assert callable(cranfield.evaluate) and callable(cranfield.measures) and REGISTRY\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_dir_lists_every_public_name():
    assert set(PUBLIC) <= set(dir(cranfield))


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = cranfield.nonsense


def drawn(text: str) -> dict[str, tuple[str, str]]:
    """The tree as drawn: class → (parent, the built-in in brackets)."""
    tree: dict[str, tuple[str, str]] = {}
    path: list[str] = []
    for line in text.splitlines():
        match = re.match(r"([│├└─ ]*)(\w+(?:Error|Warning))\b(?: \((\w+)\))?", line)
        if match:
            depth = len(match[1]) // 4
            path[depth:] = [match[2]]
            tree[match[2]] = (path[depth - 1] if depth else "", match[3] or "")
    return tree


def built(cls: type) -> tuple[str, str]:
    """The same of a class: its parent in the tree, and the built-in it inherits besides."""
    ours = [base.__name__ for base in cls.__bases__ if base.__module__ == errors.__name__]
    others = [base.__name__ for base in cls.__bases__ if base.__module__ != errors.__name__ and base is not Exception]
    return "".join(ours), "".join(others)


ERRORS = {name: cls for name, cls in vars(errors).items() if isinstance(cls, type)}


def test_the_errors_are_as_drawn_in_the_docstring():
    assert drawn(errors.__doc__ or "") == {name: built(cls) for name, cls in ERRORS.items()}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_says_what_it_is_and_survives_a_process_border(name):
    cls = ERRORS[name]
    assert cls.__doc__
    arguments = ("bm25.run", 7, "expected 6 columns") if issubclass(cls, errors.BadLineError) else ("a sentence",)
    error = cls(*arguments)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (cls, str(error))


def test_children_of_the_tree_are_caught_as_the_built_in_they_resemble():
    for name, (_, like) in drawn(errors.__doc__ or "").items():
        if like:
            assert issubclass(getattr(errors, name), getattr(builtins, like))


def test_the_version_is_that_of_the_changelog():
    text = (Path(__file__).resolve().parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[?{re.escape(cranfield.__version__)}\b", text, re.M)
