"""Every example in README.md, CONTRIBUTING.md and docs/ runs, and prints what the page says.

A ```python block runs after the earlier ones of its page (as a doctest, if it starts with >>>); a bare ``` block right
below it holds what it prints. tests/pages.py says what a ```console block is. All of it runs in a copy of examples/.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pages import FENCE, PAGES, ROOT, blocks, commands, current, fits, run, same
from shell import EXAMPLES, Answer, generator

if TYPE_CHECKING:
    from pathlib import Path

DRIVER = """
import contextlib, doctest, io, json, sys
answers, names = [], {"__name__": "__docs__"}
for line, code in json.load(sys.stdin):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if code.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(code, names, sys.argv[1], sys.argv[1], line)
            test.globs = names
            failed = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False).failed
        else:
            failed = exec(compile("\\n" * line + code, sys.argv[1], "exec"), names)
    if failed:
        sys.exit(out.getvalue())
    answers.append(out.getvalue())
json.dump(answers, sys.stdout)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    return tmp_path / "examples"


def identity(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_python_on_the_page_prints_what_it_says(page, folder):
    code = [block for block in blocks(page) if block.language == "python"]
    if not code:
        pytest.skip("no Python on this page")
    given = json.dumps([(block.line, block.text) for block in code])
    command = [sys.executable, "-W", "error", "-c", DRIVER, page.name]
    answer = subprocess.run(command, input=given, capture_output=True, text=True, cwd=folder, timeout=120)
    assert answer.returncode == 0, answer.stderr
    for block, printed in zip(code, json.loads(answer.stdout), strict=True):
        if block.printed is not None:
            assert same(block.printed, printed), f"{page.name}:{block.line} prints\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_commands_on_the_page_print_what_it_says(page, folder):
    console = [block for block in blocks(page) if block.language == "console"]
    if not console:
        pytest.skip("no command on this page")
    for block in console:
        for line, shown in commands(block.text):
            answer = run(line, folder)
            assert fits(shown, answer), f"{page.name}:{block.line}: {line} prints (make golden)\n{answer.both}"


def test_the_comparison_itself_can_fail():
    assert same("a\n...\nd\n", "a\nb\nc\nd\n")
    assert same("a\n", "a\n")
    assert not same("a\n", "b\n")
    assert not same("a\n", "a\nb\n")
    assert not same("a\n...\nd\n", "a\nb\n")


def test_what_a_page_shows_is_written_again_only_where_that_is_safe():
    answer = Answer(0, "a\nb\n", "note\n", "note\na\nb\n")
    for kept in ("a\nb\n\n", "note\na\nb\n", "a\n...\n", "c\n...\n", ""):
        assert current(kept, answer) == kept
    assert current("a\nc\n\n", answer) == "a\nb\n\n"
    assert current("note\na\nc\n", answer) == "note\na\nb\n"


@pytest.mark.parametrize("name", ["generate_cli", "generate_tests"])
def test_a_generated_page_is_current(name):
    module = generator(name)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run make docs"


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_links_to_files_lead_somewhere(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []
