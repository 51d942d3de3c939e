"""Randomisation tests of all pairs of 110 systems on 249 topics: cranfield beside `scipy.stats.permutation_test`.

SciPy is asked for some pairs, and its time for all of them is extrapolated: all would take it hours.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.agreement import VoidError
from benchmarks.suite import SCRIPTS, Plan, faster
from benchmarks.table import Row
from benchmarks.timing import Contender, Sample, Spread, interleave, peak

if TYPE_CHECKING:
    from collections.abc import Sequence

MATRIX = Path(__file__).resolve().parents[2] / "shared" / "data" / "urbano-robust2004" / "robust2004_ap.csv"
RESAMPLES = 100_000
PAIRS = 3  # that SciPy tests
FASTER = 300.0  # times
ABOVE = 50.0  # megabytes above a process that draws a hundred resamples


def significance(plan: Plan, scale: float = 1.0) -> list[Row]:
    """All pairs with cranfield, a few with SciPy, by turns; time, and memory beside a process that draws few resamples."""
    path = str(MATRIX) if MATRIX.exists() else "-"
    name = "robust2004" if MATRIX.exists() else "made"
    resamples = max(1000, round(RESAMPLES * scale))
    what = f"{resamples:,} permutations of all pairs"

    def asked(who: str, draws: int) -> tuple[str, ...]:
        return (sys.executable, str(SCRIPTS / "significance.py"), who, path, str(draws), str(PAIRS))

    samples = interleave(
        [
            Contender("scipy", asked("scipy", resamples), plan.peer_repeats),
            Contender("cranfield", asked("cranfield", resamples), plan.repeats),
            Contender("few", asked("cranfield", 100), 1),
        ],
        "significance",
    )
    answers = {who: [json.loads(sample.output) for sample in taken] for who, taken in samples.items()}
    agree(answers["cranfield"][0]["p"], [answer["p"] for answer in answers["scipy"]], resamples)
    every = answers["cranfield"][0]["pairs"]
    mine = Spread.of([answer["seconds"] for answer in answers["cranfield"]])
    other = Spread.of([answer["seconds"] / answer["pairs"] * every for answer in answers["scipy"]])
    against = f"scipy.stats.permutation_test, {PAIRS} of {every:,} pairs extrapolated"
    return [
        faster(what, name, "sign_flip_p_all", mine, against, other, FASTER),
        memory(name, samples["cranfield"], samples["few"]),
    ]


def memory(name: str, many: Sequence[Sample], few: Sequence[Sample]) -> Row:
    """What the resamples themselves cost."""
    mine, other = peak(many), peak(few)
    above = (mine.median - other.median) / 1e6
    return Row(
        "peak memory", name, "sign_flip_p_all", mine, "100 permutations", other, above, "MB above", "MB", "≤", ABOVE
    )


def agree(ours: Sequence[float], theirs: Sequence[Any], resamples: int) -> None:
    """Hold the p-values against each other: twice sampled, and SciPy's two-sided p is twice the smaller tail."""
    for p in theirs:
        for mine, other in zip(ours, p, strict=True):
            near = 2 / (1 + resamples) + 6 * math.sqrt(max(mine, 1 / resamples) / resamples)
            if not abs(mine - other) <= near:
                raise VoidError(f"randomisation test: cranfield says p = {mine:g}, SciPy {other:g}")
