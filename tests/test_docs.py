"""Every example in README.md, CONTRIBUTING.md and docs/ runs, and prints what the page says.

A ```python block runs after the earlier ones of its page (as a doctest, if it starts with >>>); a bare ``` block right
below it holds what it prints. A
```console block holds `$ cranfield …` lines, each followed by what it prints (on stdout, or on both streams) if that is
shown. `...` alone on a line stands for anything. All of it runs in a copy of examples/.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from shell import EXAMPLES, cranfield, generator

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    path
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if path.exists()
]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)

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


class Block(NamedTuple):
    line: int
    language: str
    text: str
    printed: str | None  # a bare block right below


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    answer = []
    for i, match in enumerate(found):
        below = found[i + 1] if i + 1 < len(found) else None
        follows = below is not None and not below[1] and not text[match.end() : below.start()].strip()
        printed = below[2] if follows and below is not None else None
        answer.append(Block(text[: match.start()].count("\n") + 1, match[1], match[2], printed))
    return answer


def same(shown: str, printed: str) -> bool:
    """Whether what the page shows is what was printed, `...` on a line being anything."""
    parts = re.split(r"^\.\.\.$\n?", shown, flags=re.MULTILINE)
    return re.fullmatch("(?s:.*)".join(map(re.escape, parts)).rstrip("\\\n") + r"\s*", printed) is not None


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


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block, and what is shown below each."""
    parts = re.split(r"^\$ (.*(?:\\\n.*)*)\n?", block.text, flags=re.MULTILINE)
    assert not parts[0].strip(), "a console block starts with $"
    return list(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_commands_on_the_page_print_what_it_says(page, folder):
    console = [block for block in blocks(page) if block.language == "console"]
    if not console:
        pytest.skip("no command on this page")
    for block in console:
        for line, shown in commands(block):
            program, *arguments = shlex.split(line.replace("\\\n", " "))
            assert program == "cranfield", f"{page.name}:{block.line}: {line}"
            answer = cranfield(*arguments, folder=folder)
            if shown.strip():
                fits = same(shown, answer.out) or same(shown, answer.both)
                assert fits, f"{page.name}:{block.line}: {line} prints\n{answer.both}"
            else:
                assert answer.code == 0, f"{page.name}:{block.line}: {line}\n{answer.err}"


def test_the_comparison_itself_can_fail():
    assert same("a\n...\nd\n", "a\nb\nc\nd\n")
    assert same("a\n", "a\n")
    assert not same("a\n", "b\n")
    assert not same("a\n", "a\nb\n")
    assert not same("a\n...\nd\n", "a\nb\n")


@pytest.mark.parametrize("name", ["generate_cli", "generate_tests"])
def test_a_generated_page_is_current(name):
    module = generator(name)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run make docs"


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_links_to_files_lead_somewhere(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []
