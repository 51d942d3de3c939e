"""What driving an HTTP engine adds to a query, over a bare client loop measured in the same run."""

from __future__ import annotations

import json
import sys

from benchmarks.suite import SCRIPTS, Plan
from benchmarks.table import Row
from benchmarks.timing import Spread, run

QUERIES = 500
ADDED = {100: 1.0, 1000: 1.0}  # hits in an answer → milliseconds a query at the most


def driving(plan: Plan, scale: float = 1.0) -> list[Row]:
    """A row for each size of an answer; the result is the median of the differences, turn by turn."""
    queries = max(20, round(QUERIES * scale))
    rows = []
    for hits, bar in ADDED.items():
        script = (sys.executable, str(SCRIPTS / "driving.py"), str(queries), str(hits), str(plan.repeats))
        taken = json.loads(run(script).output)
        mine, other = (Spread.of([ms / 1e3 for ms in taken[side]]) for side in ("driven", "bare"))
        added = Spread.of([a - b for a, b in zip(taken["driven"], taken["bare"], strict=True)]).median
        name = f"{hits} hits"
        loop = "http.client and json.loads"
        rows.append(Row("a query over HTTP", name, "drive", mine, loop, other, added, "ms", "ms", "≤", bar))
    return rows
