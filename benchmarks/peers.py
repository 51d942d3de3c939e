"""The peers, in an environment of their own: benchmarks/peers, made once with pip from outside.

trec_eval itself is a C program that no package index carries, so it is not measured here; pytrec_eval is its code
behind a Python interface.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME = Path(__file__).parent / "peers"
WANTED = {"pytrec_eval": "pytrec-eval-terrier>=0.5.10", "ir_measures": "ir-measures>=0.4.3", "ranx": "ranx>=0.3.20"}
WANTED_BY_JUDGING = {"crowdkit": "crowd-kit>=1.4"}
ALONE = {"crowd-kit>=1.4": ("attrs", "nltk", "numpy", "pandas", "pyarrow", "scikit-learn", "tqdm")}
"""Peers installed without what they ask for, but with these: the rest (gigabytes of transformers) is for other uses."""
ASK = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def program(name: str = "python") -> str:
    """A program of the peers' environment."""
    return str(HOME / "bin" / name)


def ensure(install: bool = True, wanted: Mapping[str, str] = WANTED) -> dict[str, str]:
    """Install the peers that are missing; say which there are, with their versions."""
    found = versions(wanted)
    missing = [requirement for name, requirement in wanted.items() if name not in found]
    if not install or not missing:
        return found
    if not Path(program()).exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(HOME)], check=True)
    pip = find_pip()
    for requirement in missing if pip else []:
        print(f"installing {requirement} in benchmarks/{HOME.name} …", file=sys.stderr)
        command = [*pip, "--python", program(), "install", "--quiet", "--disable-pip-version-check"]
        steps = [[*ALONE[requirement]], ["--no-deps", requirement]] if requirement in ALONE else [[requirement]]
        if any(subprocess.run([*command, *step], check=False, stdout=sys.stderr).returncode for step in steps):
            print(f"{requirement} could not be installed; its rows are left out", file=sys.stderr)
    return versions(wanted)


def versions(wanted: Mapping[str, str] = WANTED) -> dict[str, str]:
    """The peers that are installed, under the names they are imported by."""
    if not Path(program()).exists():
        return {}
    packages = {name: requirement.split(">=")[0] for name, requirement in wanted.items()}
    command = [program(), "-c", ASK, *packages.values()]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {name: answer[package] for name, package in packages.items() if package in answer}


def find_pip() -> list[str]:
    """A Python whose pip can install into another environment: ours, the one ours was made from, or the system's."""
    for python in (sys.executable, getattr(sys, "_base_executable", None), shutil.which("python3")):
        if (
            python
            and not subprocess.run([python, "-m", "pip", "--version"], check=False, capture_output=True).returncode
        ):
            return [python, "-m", "pip"]
    print("no pip found; peers are left out", file=sys.stderr)
    return []
