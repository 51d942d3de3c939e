"""Without an optional package every command works, or prints the exact command that installs it, with exit code 2.

The examples are golden commands, one for each command of the command line, and lines that need a package for sure.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from typing import TYPE_CHECKING

import pytest

from cranfield.base.optional_packages import DISTRIBUTIONS, EXTRAS, install_command
from executions import executed
from pages import ROOT
from recorded import fill_folder, golden_commands
from test_crash import every_command
from without import Ending, Example, run_without

if TYPE_CHECKING:
    from pathlib import Path

    from recorded import Command

OPTIONAL = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
NEEDS = {  # a line that needs a package
    "pyarrow": "convert bm25.run out.parquet",
    "vl_convert": "curve qrels.txt bm25.run -o curve.svg",
    "ir_datasets": "import ir_datasets:vaswani vaswani",
    "sqlalchemy": "gate work.db@spring bm25.run dense.run",
    "psycopg": "judge status postgresql://ann@localhost:9/work",
    "starlette": "serve garden",
    "jinja2": "serve garden",
    "uvicorn": "serve garden",
    "h11": "serve garden",
    "anyio": "serve garden",
    "argon2": "serve garden",
    "markupsafe": "serve garden",
    "duckdb": "online analyze online/shop-log online/shop.toml --gate",
    "bm25s": "run allotment --system bm25s -o out.run",
    "Stemmer": "run allotment --system bm25s -o out.run",
    "tantivy": "run allotment --system tantivy -o out.run",
}
WITHOUT_A_SIGN = {
    "isal": "gzip is unpacked by Python's own module",
    "cryptography": "only the service's tokens need it",
}


def extras_with(module: str) -> set[str]:
    """The extras of pyproject.toml that install a module, by themselves or through another extra."""
    wanted = DISTRIBUTIONS.get(module, module).lower()
    names = {extra: {re.match(r"[\w-]+", each)[0].lower() for each in listed} for extra, listed in OPTIONAL.items()}
    own = {extra for extra, distributions in names.items() if wanted in distributions and extra != "test"}
    return own | {extra for extra, listed in OPTIONAL.items() if {f"cranfield[{each}]" for each in own} & set(listed)}


def words_of(line: str, commands: set[str]) -> str | None:
    """Which command a golden line calls; None for help."""
    words = shlex.split(line)[1:]
    if "--help" in words:
        return None
    named = next((" ".join(words[:n]) for n in (3, 2, 1) if " ".join(words[:n]) in commands), None)
    return named or ("pool make" if words[0] == "pool" else None)


def golden_examples() -> dict[str, tuple[Command, int]]:
    """The golden line of each command that has the fewest lines before it."""
    commands, best = {words for words, _ in every_command()}, {}
    for golden in golden_commands():
        for number, line in enumerate(golden.lines):
            words = words_of(line, commands)
            if words and (words not in best or number < best[words][1]):
                best[words] = golden, number
    assert set(best) == commands
    return best


def prepared(golden: Command, number: int, folder: Path) -> Example:
    """A golden line, in a folder where the lines before it have run."""
    fill_folder(folder, golden)
    for line in golden.lines[:number]:
        executed(*shlex.split(line)[1:], stdin=golden.stdin.encode(), folder=folder)
    line = golden.lines[number]
    code = re.search(rf"^===== \$ {re.escape(line)}\nexit code (\d+)$", golden.record.read_text(), re.MULTILINE)[1]
    return Example(shlex.split(line)[1:], str(folder), int(code), golden.stdin)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    folder = tmp_path_factory.mktemp("examples")
    return [
        prepared(golden, number, folder / words.replace(" ", "-"))
        for words, (golden, number) in golden_examples().items()
    ]


FOR_TESTS = ("test", "peers", "ir_measures")  # the package itself imports none of these unasked


def test_every_optional_package_has_the_extra_of_pyproject():
    assert {module: extra for module, extra in EXTRAS.items() if extra not in extras_with(module)} == {}
    listed = {
        re.match(r"[\w-]+", each)[0].lower() for extra in OPTIONAL for each in OPTIONAL[extra] if extra not in FOR_TESTS
    }
    assert listed - {"cranfield"} == {DISTRIBUTIONS.get(module, module).lower() for module in EXTRAS}


def test_every_optional_package_has_a_line_that_needs_it_or_a_reason_why_not():
    assert set(NEEDS) | set(WITHOUT_A_SIGN) == set(EXTRAS)


def problems(examples: list[Example], endings: list[Ending], packages: list[str]) -> list[str]:
    """The commands that neither worked nor said how to install what they lack."""
    known = {extra for module in packages for extra in extras_with(module)}
    refused = []
    for example, ending in zip(examples, endings, strict=True):
        advice = re.search(r"pip install 'cranfield\[([a-z_,]+)\]'\n$", ending.err)
        advised = ending.code == 2 and advice is not None and known & set(advice[1].split(","))
        if ending.code != example.code and not advised:
            refused.append(f"{' '.join(example.arguments)}: {ending.code} {ending.err}")
    return refused


def certain(package: str, examples: list[Example]) -> list[Example]:
    """The line that needs a package, if there is one; in a folder with a database that has versions."""
    folder = next(example.folder for example in examples if example.arguments[:2] == ["judge", "diff"])
    return [Example(NEEDS[package].split(), folder, 2)] if package in NEEDS else []


def advised(package: str, ending: Ending) -> bool:
    return ending.code == 2 and install_command(EXTRAS[package]) in ending.err


def test_in_a_base_install_every_command_works_or_says_what_to_install(examples):
    packages = [package for package in NEEDS if package != "psycopg"]  # PostgreSQL needs SQLAlchemy first
    lines = [example for package in packages for example in certain(package, examples)]
    endings = run_without(list(EXTRAS), [*examples, *lines])
    of_lines = dict(zip(packages, endings[len(examples) :], strict=True))
    assert problems(examples, endings[: len(examples)], list(EXTRAS)) == []
    assert {package: ending for package, ending in of_lines.items() if not advised(package, ending)} == {}


@pytest.mark.slow
@pytest.mark.parametrize("package", EXTRAS)
def test_without_one_package_every_command_works_or_says_what_to_install(package, examples):
    endings = run_without([package], [*examples, *certain(package, examples)])
    assert package in WITHOUT_A_SIGN or advised(package, endings[-1]), endings[-1]
    assert problems(examples, endings[: len(examples)], [package]) == []
