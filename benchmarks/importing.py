"""A million synthetic documents of 60 words from JSON lines into a collection's folder: rate and memory.

Beside it, the least that any importer in Python does: parse each line as JSON and write it again.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from benchmarks.suite import Plan, cranfield_command
from benchmarks.table import Row
from benchmarks.timing import Contender, Spread, interleave, peak, seconds

DOCUMENTS, WORDS = 1_000_000, 60
RATE, MEMORY = 40.0, 300.0  # thousand documents a second at the least, megabytes at the most
FLOOR = """import json, sys
with open(sys.argv[1]) as source, open(sys.argv[2], "w") as target:
    for line in source:
        target.write(json.dumps(json.loads(line)) + chr(10))
"""


def make(path: Path, documents: int) -> None:
    """Write documents of random words, the same ones every time."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(20_000)]
    with path.open("w") as file:
        for i in range(documents):
            text = " ".join(rng.choices(words, k=WORDS))
            file.write(f'{{"id": "d{i}", "title": "{text[:30]}", "text": "{text}"}}\n')


def importing(plan: Plan, scale: float = 1.0) -> list[Row]:
    """Seconds and memory of `cranfield import`, and seconds of the bare loop, by turns."""
    documents = max(1000, round(DOCUMENTS * scale))
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "documents.jsonl"), Path(folder, "collection")
        make(source, documents)
        ours = " ".join(f"'{word}'" for word in (*cranfield_command(), "import", str(source), str(target)))
        samples = interleave(
            [
                Contender(
                    "loop", (sys.executable, "-c", FLOOR, str(source), str(Path(folder, "copy"))), plan.peer_repeats
                ),
                Contender("import", ("sh", "-c", f"rm -rf '{target}' && {ours}"), plan.repeats),
            ],
            "import",
        )
        size = Spread.of([source.stat().st_size])
    mine, other, held = seconds(samples["import"]), seconds(samples["loop"]), peak(samples["import"])
    what, name = "import", f"{documents:,} documents"
    rate = documents / mine.median / 1e3
    loop = "json.loads and json.dumps"
    return [
        Row(what, name, "cranfield import", mine, loop, other, rate, "thousand/s", "s", "≥", RATE),
        Row(
            "peak memory", name, "cranfield import", held, "file size", size, held.median / 1e6, "MB", "MB", "≤", MEMORY
        ),
    ]
