"""The data sets, and where their files are. They are made once (see `generate`) and used again while nothing changed.

This module stays free of NumPy: it is loaded by the process that starts and times all others, and on
Linux a child's peak memory begins at what its parent held when it was started.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

VERSION = 1  # raise it when the generator changes: files of another version are made anew
SEED = 20240229
ROOT = Path(__file__).parent / "data"
ORDERS = ("sorted", "within", "scattered")


@dataclass(frozen=True)
class Spec:
    """What a set shall look like. `ties` is the chance that a document's score equals that of the one above it."""

    name: str
    kind: str  # "news": ids like FBIS4-12345, pooled and graded 0-3; "passages": numeric ids, about one judged a topic
    topics: int
    runs: int = 1
    depth: int = 1000
    ties: float = 0.015
    order: str = "sorted"  # by topic and rank; or shuffled within each topic; or over the whole file
    seed: int = SEED
    first: int = 0  # the number of the first system, so that L's runs are not S's

    @property
    def folder(self) -> str:
        """The set's folder: its name, and what differs from the usual."""
        usual = SPECS[self.name]
        names = ("topics", "runs", "depth", "ties", "order", "seed")
        odd = [f"{name}={getattr(self, name)}" for name in names if getattr(self, name) != getattr(usual, name)]
        return "-".join([self.name, *odd])


SPECS = {
    "five": Spec("five", "news", topics=5),
    "S": Spec("S", "news", topics=250),
    "M": Spec("M", "passages", topics=6980),
    "L": Spec("L", "news", topics=250, runs=100, first=1),
}


def spec(name: str, scale: float = 1.0, ties: float | None = None, order: str | None = None) -> Spec:
    """One of the sets, smaller if `scale` is below 1, with another share of ties or another order of lines."""
    usual = SPECS[name]
    few = usual.topics if name == "five" else max(5, round(usual.topics * scale))
    runs = usual.runs if usual.runs == 1 else max(4, round(usual.runs * scale))
    return Spec(
        name,
        usual.kind,
        few,
        runs,
        ties=usual.ties if ties is None else ties,
        order=order or usual.order,
        first=usual.first,
    )


@dataclass(frozen=True)
class DataSet:
    """The files of a set, and what was counted while they were written."""

    name: str
    qrels: Path
    runs: list[Path]
    facts: dict[str, Any]

    @property
    def run(self) -> Path:
        """The first run."""
        return self.runs[0]

    @property
    def bytes(self) -> int:
        """The size of the runs."""
        return int(self.facts["run_bytes"])


def stamp(wanted: Spec) -> dict[str, Any]:
    """What a folder must say of itself to be used again."""
    return {"version": VERSION, **asdict(wanted)}


def load(wanted: Spec, root: Path = ROOT) -> DataSet | None:
    """The set as it lies in `root`, or None if it is not there or not what is wanted."""
    folder = root / wanted.folder
    try:
        made = json.loads((folder / "stamp.json").read_text())
    except (OSError, ValueError):
        return None
    facts = made.pop("facts", None)
    if facts is None or made != stamp(wanted):
        return None
    return DataSet(wanted.name, folder / "qrels.txt", sorted(folder.glob("*.run")), facts)


def ensure(wanted: Spec, root: Path = ROOT) -> DataSet:
    """The set, made first if need be, in a process of its own."""
    found = load(wanted, root)
    if found is None:
        print(f"making {root.name}/{wanted.folder} …", file=sys.stderr)
        command = [sys.executable, "-m", "benchmarks.generate", json.dumps(asdict(wanted)), str(root)]
        subprocess.run(command, check=True, cwd=Path(__file__).parents[1])
        found = load(wanted, root)
    if found is None:
        raise RuntimeError(f"{wanted.folder}: made, but its stamp.json is not what was asked for")
    return found


def describe(data: DataSet) -> str:
    """One line: ids, judged a topic, ties, line order, size."""
    f = data.facts
    runs = f"{f['runs']} runs of " if f["runs"] > 1 else ""
    return (
        f"{data.name}: {runs}{f['topics']:,} topics, {f['lines']:,} lines in all, {f['run_bytes'] / 1e6:,.1f} MB; ids like "
        f"{f['example']}; {f['judged_least']}–{f['judged_most']} judged a topic (mean {f['judged_mean']:.2f}), "
        f"grades {f['grades']}, {f['relevant_mean']:.2f} relevant; {f['judged_retrieved']:.0%} of the judged are retrieved; "
        f"{f['tied']:.1%} of the documents tied; lines {WORDS[f['order']]}"
    )


WORDS = {
    "sorted": "sorted by topic and rank",
    "within": "shuffled within each topic",
    "scattered": "shuffled over the whole file",
}
