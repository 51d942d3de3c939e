"""The command line runs from a zip file of the package, without its native core, and says that once."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

import cranfield
from shell import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOTE = "runs without its native core"


def zipped(folder: Path) -> None:
    """The package as pure Python: all its files but the compiled core."""
    home = os.path.dirname(cranfield.__file__)
    with zipfile.ZipFile(folder / "cranfield.pyz", "w") as packed:
        packed.writestr("__main__.py", "from cranfield.cli import main\nmain()\n")
        for here, _, names in os.walk(home):
            for name in names:
                path = os.path.join(here, name)
                if not name.endswith((".so", ".pyd", ".pyc")):
                    packed.write(path, os.path.join("cranfield", os.path.relpath(path, home)))


@pytest.fixture
def archive(made_once: Callable[..., Path]) -> str:
    return str(made_once("zipped", zipped) / "cranfield.pyz")


def run(*command: str, folder: Path = EXAMPLES, **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if name not in ("CRANFIELD_KERNEL", "PYTHONPATH")}
    env = {**plain, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=folder, env=env, check=False)


def test_a_zip_file_prints_the_same_help_and_says_nothing_of_its_core(archive: str) -> None:
    zipped, unpacked = run(archive, "--help"), run("-m", "cranfield", "--help")
    assert (zipped.returncode, zipped.stdout, zipped.stderr) == (0, unpacked.stdout, "")
    assert "eval" in zipped.stdout
    help_of_eval = run(archive, "eval", "--help")
    assert (help_of_eval.returncode, help_of_eval.stderr) == (0, "")


def test_eval_from_a_zip_file_prints_the_same_numbers_and_says_once_that_it_lacks_its_core(archive: str) -> None:
    zipped = run(archive, "eval", "qrels.txt", "bm25.run", "dense.run", "-m", "nDCG@10 AP")
    unpacked = run("-m", "cranfield", "eval", "qrels.txt", "bm25.run", "dense.run", "-m", "nDCG@10 AP")
    assert (zipped.returncode, zipped.stdout) == (0, unpacked.stdout)
    assert zipped.stderr.count(NOTE) == 1
    assert NOTE not in unpacked.stderr


def test_the_twin_that_was_asked_for_is_no_news() -> None:
    chosen = run("-m", "cranfield", "eval", "qrels.txt", "bm25.run", "-m", "AP", CRANFIELD_KERNEL="numpy")
    assert chosen.returncode == 0
    assert NOTE not in chosen.stderr


def test_reports_findings_prompts_and_the_bundled_collection_are_read_from_a_zip_file(
    archive: str, tmp_path: Path
) -> None:
    code = (
        "import sys, os; sys.path.insert(0, sys.argv[1])\n"
        "from cranfield.base import package_files\n"
        "from cranfield.cli import cli\n"
        "from cranfield.judging.llm.questions import bundled, read_prompt\n"
        "from cranfield.retrieval.http_template import templates\n"
        "for line in sys.argv[3:]:\n"
        "    try:\n"
        "        cli.main(line.split(), prog_name='cranfield')\n"
        "    except SystemExit as stop:\n"
        "        print('left with', stop.code)\n"
        "print(len([read_prompt(name) for name in bundled()]), 'elasticsearch' in templates())\n"
        "print(package_files.folder('collections/bundled'), file=open(sys.argv[2], 'w'))\n"
    )
    where = str(tmp_path / "where")
    report = tmp_path / "report.html"
    lines = (
        f"report qrels.txt bm25.run dense.run -m AP -o {report}",
        "check qrels.txt bm25.run",
        "collection stats allotment",
        "collection list",
    )
    zipped = run("-c", code, archive, where, *lines)
    assert zipped.returncode == 0, zipped.stderr
    assert zipped.stdout.count("left with 0") == len(lines), zipped.stdout + zipped.stderr
    assert zipped.stderr.count(NOTE) == 1
    assert "<svg" in report.read_text()
    assert zipped.stdout.splitlines()[-1].endswith("True")
    copy = (tmp_path / "where").read_text().strip()
    assert copy.endswith("bundled")
    assert not os.path.exists(copy)  # removed with the process
