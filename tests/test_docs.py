"""Every example in README.md, CONTRIBUTING.md and docs/ runs, and prints what the page says.

A ```python block runs after the earlier ones of its page (as a doctest, if it starts with >>>); a bare ``` block right
below it holds what it prints. tests/pages.py says what a ```console block is. All of it runs in a copy of examples/.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from subprocess import PIPE
from typing import TYPE_CHECKING

import pytest

from cranfield.evaluation.measures import REGISTRY
from cranfield.evaluation.presets import PEERS
from cranfield.stats.tests_by_name import TESTS, TESTS_OF_MANY
from pages import FENCE, PAGES, ROOT, blocks, commands, current, fits, run, same
from shell import EXAMPLES, Answer, copy_folder, generator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A process that has loaded what most pages use runs each page in a fork of itself: a page sees what a fresh Python would
# show it, and starting one takes longer than most pages run.
DRIVER = """
import contextlib, doctest, io, json, os, sys, traceback, warnings
import scipy.stats
import cranfield

for name in cranfield.__all__:
    getattr(cranfield, name)


def run(page, blocks):
    printed, names = [], {"__name__": "__docs__"}
    for line, code in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            if code.startswith(">>>"):
                test = doctest.DocTestParser().get_doctest(code, names, page, page, line)
                test.globs = names
                if doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False).failed:
                    return {"failure": out.getvalue()}
            else:
                exec(compile("\\n" * line + code, page, "exec"), names)
        printed.append(out.getvalue())
    return {"printed": printed}


warnings.simplefilter("ignore", cranfield.DataWarning)  # the examples have ties, and standard error is no part of the pages

for request in sys.stdin:
    page, folder, blocks = json.loads(request)
    reader, writer = os.pipe()
    if not os.fork():
        os.chdir(folder)
        try:
            answer = run(page, blocks)
        except BaseException:
            answer = {"failure": traceback.format_exc()}
        with open(writer, "w") as file:
            json.dump(answer, file)
        os._exit(0)
    os.close(writer)
    with open(reader) as file:
        print(file.read() or '{"failure": "the page ended Python"}', flush=True)
    os.wait()
"""


class Pages:
    """Runs the Python blocks of pages."""

    def __init__(self) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a process with threads is not to be forked
        command = [sys.executable, "-W", "error", "-c", DRIVER]
        self.process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=environment)

    def printed(self, page: str, folder: Path, code: list[tuple[int, str]]) -> list[str]:
        """What each block prints, run one after the other in a folder."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([page, str(folder), code]) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "printed" in answer, answer["failure"]
        return answer["printed"]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def pages() -> Iterator[Pages]:
    pages = Pages()
    with pages.process:
        yield pages


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy_folder(EXAMPLES, tmp_path / "examples")
    return tmp_path / "examples"


def identity(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_python_on_the_page_prints_what_it_says(page, folder, pages):
    code = [block for block in blocks(page) if block.language == "python"]
    if not code:
        pytest.skip("no Python on this page")
    if page.name == "frameworks.md":
        pytest.skip("test_frameworks.py runs its snippets, each with its framework")
    answer = pages.printed(page.name, folder, [(block.line, block.text) for block in code])
    for block, printed in zip(code, answer, strict=True):
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
            assert answer.both or page.name != "cli.md", f"{line} prints nothing: a poor example"
            assert fits(shown, answer), f"{page.name}:{block.line}: {line} prints (make golden)\n{answer.both}"


@pytest.mark.parametrize(
    ("code", "problem"),
    [("1 / 0\n", "ZeroDivisionError"), (">>> 1\n2\n", "Failed example"), ("import os; os._exit(0)", "ended Python")],
)
def test_python_that_fails_is_noticed_and_does_no_harm(code, problem, pages, tmp_path):
    with pytest.raises(AssertionError, match=problem):
        pages.printed("page", tmp_path, [(1, code)])
    assert pages.printed("page", tmp_path, [(1, "a = 1\n"), (3, "print(a)\n")]) == ["", "1\n"]


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


@pytest.mark.parametrize("name", ["generate_cli", "generate_plugins", "generate_tests"])
def test_a_generated_page_is_current(name):
    module = generator(name)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run make docs"


def test_the_readme_counts_what_there_is():
    ours = [measure for measure in REGISTRY.values() if measure.__module__.startswith("cranfield.")]
    counts = {
        "measures under their usual names": len(ours),
        "other programs' conventions": len(PEERS),
        "tests, corrections": len(TESTS) + len(TESTS_OF_MANY),
    }
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {what: re.findall(rf"(\d+) {what}", text) for what in counts} == {
        what: [str(n)] for what, n in counts.items()
    }


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_links_to_files_lead_somewhere(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []
