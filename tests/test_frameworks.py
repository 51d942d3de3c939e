"""Every snippet of docs/frameworks.md runs with the framework that it is about, and prints what the page says.

ir_measures comes with the tests; the others bring torch, numba or Java's bridge along and run in `make test-all` only.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pages import ROOT, Block, blocks
from shell import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "frameworks.md"
HEAVY = {
    "PyTerrier": "pyterrier",
    "BEIR": "beir",
    "sentence-transformers": "sentence_transformers",
    "ranx": "ranx",
}
LIGHT = ("ir_measures", "MTEB")  # MTEB's own format only: the snippet imports nothing of it


def snippets() -> dict[str, Block]:
    """The Python block of each section."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    heads = {number: line.removeprefix("## ") for number, line in enumerate(lines, 1) if line.startswith("## ")}
    code = [block for block in blocks(PAGE) if block.language == "python"]
    return {heads[max(number for number in heads if number < block.line)]: block for block in code}


def printed(block: Block, folder: Path) -> str:
    shutil.copytree(EXAMPLES, folder / "examples")
    command = [sys.executable, "-c", block.text]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder / "examples", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_snippet_of_the_page_is_run_here() -> None:
    assert set(snippets()) == {*HEAVY, *LIGHT}


@pytest.mark.parametrize("name", LIGHT)
def test_a_snippet_of_a_light_framework_prints_what_the_page_says(name: str, tmp_path: Path) -> None:
    block = snippets()[name]
    assert printed(block, tmp_path) == block.printed


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVY)
def test_a_snippet_of_a_heavy_framework_gives_its_number(name: str, tmp_path: Path) -> None:
    """Either what the page says, or two numbers on a line: the framework's and ours."""
    if importlib.util.find_spec(HEAVY[name]) is None:
        pytest.skip(f"{name} is not installed: pip install '.[peers]'")
    block = snippets()[name]
    output = printed(block, tmp_path)
    if block.printed is not None:
        assert output == block.printed
        return
    numbers = [
        float(word) for word in output.replace("{", " ").replace("}", " ").replace(",", " ").split() if "." in word
    ]
    theirs, ours = numbers
    assert ours == pytest.approx(theirs, abs=6e-5)
