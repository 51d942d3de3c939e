"""`python -m benchmarks.shelf`: a million documents by id from disk, and 5 MB of text marked. Bars are shown, and never fail.

The index is made anew for each sample, in a fresh process, and then opened by another one that reads documents drawn by lot.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import importing, table
from benchmarks.suite import SCRIPTS, Plan
from benchmarks.table import Row
from benchmarks.timing import Spread, run
from cranfield.base.passages import best_passage, marks

if TYPE_CHECKING:
    from collections.abc import Sequence

READ = 10_000
LATE, MEMORY = 20.0, 300.0  # milliseconds a document, megabytes
TEXT = 5_000_000  # letters


def documents(plan: Plan, scale: float = 1.0) -> list[Row]:
    """The index made and opened, of a plain file and of a packed one: seconds, milliseconds a document, megabytes."""
    count = max(1000, round(importing.DOCUMENTS * scale))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        plain, packed = Path(folder, "plain"), Path(folder, "packed")
        for each in (plain, packed):
            each.mkdir()
        importing.make(plain / "documents.jsonl", count)
        with (plain / "documents.jsonl").open("rb") as file, gzip.open(packed / "documents.jsonl.gz", "wb", 1) as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
        for collection in (plain, packed):
            rows += measured(collection, Path(folder, "state"), f"{count:,} documents, {collection.name}", plan)
    return rows


def measured(collection: Path, where: Path, name: str, plan: Plan) -> list[Row]:
    """One collection."""
    script = (sys.executable, str(SCRIPTS / "shelf.py"), str(collection), str(where))
    made, opened = [], []
    for _ in range(plan.repeats):
        shutil.rmtree(where, ignore_errors=True)
        made.append(run((*script, "1")))
        opened.append(run((*script, str(READ))))
    size = Spread.of([sum(path.stat().st_size for path in where.rglob("*") if path.is_file())])
    seconds = Spread.of([json.loads(sample.output)["opening"] for sample in made])
    late = Spread.of([json.loads(sample.output)["late"] / 1e3 for sample in opened])
    rows = [
        Row("index made (CPU)", name, "open_shelf", seconds, "size on disk", None, size.median / 1e6, "MB"),
        Row("one by id, p99", name, "get", late, "the bar", None, 1e3 * late.median, "ms", "ms", "≤", LATE),
    ]
    for what, samples in (("making", made), ("open", opened)):
        held = Spread.of([sample.peak for sample in samples])
        rows.append(
            Row(
                f"memory, {what}", name, "open_shelf", held, "the bar", None, held.median / 1e6, "MB", "MB", "≤", MEMORY
            )
        )
    return rows


def passages(plan: Plan, scale: float = 1.0) -> list[Row]:
    """The processor's seconds to mark a long text, and to find its best passage."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(20_000)]
    text = " ".join(rng.choices(words, k=round(TEXT * scale / 6)))[: round(TEXT * scale)]
    rows = []
    for find in (marks, best_passage):
        taken = []
        for _ in range(plan.repeats):
            start = time.process_time()
            find(text, " ".join(words[:5]))
            taken.append(time.process_time() - start)
        mine = Spread.of(taken)
        rows.append(
            Row(f"{find.__name__} (CPU)", f"{len(text):,} letters", "cranfield", mine, "", None, mine.median, "s")
        )
    return rows


SECTIONS = {"documents": documents, "passages": passages}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the sections asked for and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shelf", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=SECTIONS, action="append", help="measure this part only (may be repeated)")
    parser.add_argument("--repeats", type=int, default=3, help="how often each is measured (3)")
    parser.add_argument("--scale", type=float, default=1.0, help="shrink what is made, to try things out (1.0)")
    given = parser.parse_args(arguments)
    plan = Plan(given.repeats, given.repeats)
    print(table.text([row for name in given.only or SECTIONS for row in SECTIONS[name](plan, given.scale)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
