"""Randomisation tests of all pairs of 110 systems on 249 topics: cranfield beside `scipy.stats.permutation_test`.

SciPy is asked for some pairs, and its time for all of them is extrapolated: all would take it hours. Whole commands
that test, rank or explain stand beside bars in seconds of a processor, with one thread for matrices.
"""

from __future__ import annotations

import json
import math
import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.agreement import VoidError
from benchmarks.suite import SCRIPTS, Plan, faster
from benchmarks.table import Row
from benchmarks.timing import Contender, Sample, Spread, cpu, interleave, peak, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

MATRIX = Path(__file__).resolve().parents[2] / "shared" / "data" / "urbano-robust2004" / "robust2004_ap.csv"
EXAMPLE = [
    str(Path(__file__).resolve().parents[1] / "examples" / name) for name in ("qrels.txt", "bm25.run", "dense.run")
]
RESAMPLES = 100_000
PAIRS = 3  # that SciPy tests
FASTER = 300.0  # times
ABOVE = 50.0  # megabytes above a process that draws a hundred resamples
TOPICS, SYSTEMS, FEW_SYSTEMS = 250, 110, 20
TIED, MANY_TIED, JUDGED = 100_000, 1_000_000, 200  # documents of one topic with one score, and how many are judged


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


# whole commands


def commands(plan: Plan, scale: float = 1.0) -> list[Row]:
    """What `leaderboard`, `compare` and `explain` cost on many systems, or on many ties; the bars are those of full size.

    `explain` and `design` are waited for: theirs are seconds of the clock.
    """
    systems, few, tied = (max(4, round(size * scale)) for size in (SYSTEMS, FEW_SYSTEMS, TIED))
    topics = max(25, round(TOPICS * min(1.0, scale)))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        many, some = (write_table(Path(folder) / f"{number}.csv", number, topics) for number in (systems, few))
        ties, more = (write_ties(Path(folder), number) for number in (tied, max(4, round(MANY_TIED * scale))))
        for what, name, line, unit, bar in (
            ("leaderboard", f"{systems} × {topics}", ("leaderboard", "--table", many), "s of CPU", 4.0),
            ("compare", f"{systems} × {topics}", ("compare", "--table", many), "s of CPU", 3.5),
            (
                "compare --test all",
                f"{few} × {topics}",
                ("compare", "--table", some, "--test", "all"),
                "s of CPU",
                10.0,
            ),
            ("explain nDCG@10", f"{tied:,} ties", ("explain", "nDCG@10", *ties), "s", 1.0),
            ("explain nDCG@10", f"{max(4, round(MANY_TIED * scale)):,} ties", ("explain", "nDCG@10", *more), "s", 10.0),
            ("design", "two example runs", ("design", *EXAMPLE), "s", 1.2),
        ):
            command = ("env", "OPENBLAS_NUM_THREADS=1", sys.executable, "-m", "cranfield", *line)
            taken = interleave([Contender(what, command, plan.repeats)], name)[what]
            work = seconds(taken) if unit == "s" else cpu(taken)
            limit = bar if scale >= 1 else None
            sign = "≤" if limit else ""
            rows.append(Row("whole command", name, what, work, "the bar", None, work.median, unit, "s", sign, limit))
    return rows


def write_table(path: Path, systems: int, topics: int = TOPICS) -> str:
    """Scores like average precision: topics are hard or easy, systems good or bad, and one in twelve finds nothing."""
    chance = random.Random(systems)
    skill = [chance.gauss(0, 0.5) for _ in range(systems)]
    lines = [",".join(["topic", *(f"s{number}" for number in range(systems))])]
    for topic in range(topics):
        ease = chance.gauss(-1, 1)
        logits = [ease + own + chance.gauss(0, 0.7) for own in skill]
        scores = [0.0 if chance.random() < 1 / 12 else 1 / (1 + math.exp(-logit)) for logit in logits]
        lines.append(",".join([f"q{topic}", *(f"{score:.4f}" for score in scores)]))
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def write_ties(folder: Path, documents: int) -> tuple[str, str]:
    """Judgments and a run of one topic whose documents all have the same score."""
    qrels, run = folder / f"{documents}.qrels", folder / f"{documents}.run"
    step = max(1, documents // JUDGED)
    qrels.write_text("".join(f"q 0 d{number:07} {number // step % 4}\n" for number in range(0, documents, step)))
    run.write_text("".join(f"q Q0 d{number:07} {number + 1} 1 made\n" for number in range(documents)))
    return str(qrels), str(run)
