"""A depth pool over a hundred runs: process start → the pool on disk, with seconds and the most memory held.

No peer makes such a pool from files in one step, so the bars are plain seconds and megabytes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.table import Row
from benchmarks.timing import Contender, Spread, interleave, peak

if TYPE_CHECKING:
    from benchmarks.sets import DataSet
    from benchmarks.suite import Plan

DEPTH = 100
SECONDS = 2.5
MEGABYTES = 1000.0


def pool(plan: Plan, data: DataSet) -> list[Row]:
    """Time and memory of `cranfield pool` over all runs of a set; the bars are those of a hundred runs."""
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder) / "pool.jsonl")
        runs = [str(run) for run in data.runs]
        command = (sys.executable, "-m", "cranfield", "pool", *runs, "--depth", str(DEPTH), "-o", target)
        taken = interleave([Contender("cranfield", command, plan.repeats)], data.name)["cranfield"]
    time = Spread.of([sample.seconds for sample in taken])
    memory = peak(taken)
    full = data.name == "L"
    what = f"{len(runs)} runs → pool of depth {DEPTH}"
    return [
        row(what, data.name, time, time.median, "s", SECONDS if full else None),
        row("peak memory", data.name, memory, memory.median / 1e6, "MB", MEGABYTES if full else None),
    ]


def row(what: str, name: str, mine: Spread, result: float, unit: str, bar: float | None) -> Row:
    """A row without another side: the result is the measurement itself."""
    return Row(what, name, "cranfield pool", mine, "the bar", None, result, unit, unit, "≤" if bar else "", bar)
