"""Commands in a Python that lacks packages: run as a program, it reads what to run from standard input as JSON.

A package is absent from the start of the process, so that no module of cranfield holds anything of it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple


class Example(NamedTuple):
    """A command line, the folder that it runs in, and the exit code that it has where everything is installed."""

    arguments: list[str]
    folder: str
    code: int
    stdin: str = ""


class Ending(NamedTuple):
    code: int
    err: str


def run_without(packages: list[str], examples: list[Example]) -> list[Ending]:
    """How each example ends where these packages are not installed; the folders stay as they are."""
    task = json.dumps({"packages": packages, "examples": examples})
    program = [sys.executable, "-W", "ignore", str(Path(__file__).resolve())]
    ran = subprocess.run(program, input=task, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return [Ending(*each) for each in json.loads(ran.stdout)]


def main() -> None:
    task = json.load(sys.stdin)
    sys.modules.update(dict.fromkeys(task["packages"]))  # None: the import fails as if there were no such package
    from shell import cranfield

    endings = []
    for arguments, folder, _, stdin in task["examples"]:
        with tempfile.TemporaryDirectory() as copy:
            shutil.copytree(folder, copy, dirs_exist_ok=True)
            answer = cranfield(*arguments, folder=Path(copy), stdin=stdin.encode(), crashes=True)
        endings.append(Ending(answer.code, answer.err))
    json.dump(endings, sys.stdout)


if __name__ == "__main__":
    main()
