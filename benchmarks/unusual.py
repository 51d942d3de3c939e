"""Runs that are not as most systems write them: other lines in TREC's format, and other formats. Processor time, one thread."""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.suite import SCRIPTS, Plan, cranfield_command
from benchmarks.table import Row
from benchmarks.timing import Contender, Spread, cpu, interleave, run

if TYPE_CHECKING:
    from benchmarks.sets import DataSet

LINES = {"shuffled within topics": 65.0, "scores of 17 digits": 65.0}  # nanoseconds a line
FORMATS = {"csv": 0.2, "jsonl": 0.3}  # seconds a million rows
ROWS = 1_000_000
DEPTH = 1000


def lines(plan: Plan, data: DataSet) -> list[Row]:
    """Nanoseconds a line for each kind of lines, in one process."""
    print(f"{data.name}: unusual lines …", file=sys.stderr)
    script = (sys.executable, str(SCRIPTS / "lines.py"), str(plan.repeats), str(data.qrels), str(data.run))
    taken = {kind: Spread.of(each) for kind, each in json.loads(run(script).output).items()}
    usual = taken["usual"]
    return [
        Row(
            "ns a line (CPU), read and joined",
            data.name,
            kind,
            mine,
            "usual lines",
            usual,
            mine.median * 1e9,
            "ns",
            "ns",
            "≤" if kind in LINES else "",
            LINES.get(kind),
        )
        for kind, mine in taken.items()
    ]


def make(folder: Path, rows: int) -> None:
    """The same run as CSV, as JSON lines and in TREC's format, and judgments of each topic's first document."""
    rng = random.Random(0)
    judgments = []
    names = ("run.csv", "run.jsonl", "run.trec")
    with (
        (folder / names[0]).open("w") as csv,
        (folder / names[1]).open("w") as objects,
        (folder / names[2]).open("w") as trec,
    ):
        csv.write("topic,document,score\n")
        for i in range(rows):
            topic, rank = divmod(i, DEPTH)
            document, score = f"d{rng.randrange(10**7)}x{rank}", 30 - rank / 50 - rng.random() / 100
            csv.write(f"{topic},{document},{score:.6f}\n")
            objects.write(f'{{"topic": "{topic}", "document": "{document}", "score": {score:.6f}}}\n')
            trec.write(f"{topic} Q0 {document} {rank + 1} {score:.6f} made\n")
            if rank == 0:
                judgments.append(f"{topic} 0 {document} 1\n")
    (folder / "qrels.txt").write_text("".join(judgments))


def formats(plan: Plan, five: DataSet, scale: float = 1.0) -> list[Row]:
    """`cranfield eval` of a run in other formats, less what it takes on five topics."""
    rows = max(DEPTH, round(ROWS * scale))
    options = ("-m", "nDCG@10 AP RR@10", "--threads", "1")
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        make(folder, rows)
        start = Contender(
            "start", (*cranfield_command(), "eval", str(five.qrels), str(five.run), *options), plan.repeats
        )
        asked = [
            Contender(
                kind,
                (*cranfield_command(), "eval", str(folder / "qrels.txt"), str(folder / f"run.{kind}"), *options),
                plan.repeats,
            )
            for kind in ("trec", *FORMATS)
        ]
        taken = {name: cpu(samples) for name, samples in interleave([start, *asked], "formats").items()}
    begin = taken.pop("start")
    return [
        Row(
            f"{rows:,} rows, CPU above the start",
            "made",
            f"cranfield eval, {kind}",
            mine,
            "five topics",
            begin,
            mine.median - begin.median,
            "s",
            "s",
            "≤" if kind in FORMATS else "",
            FORMATS.get(kind) if scale == 1 else None,
        )
        for kind, mine in taken.items()
    ]
