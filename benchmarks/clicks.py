"""Click models from a compacted log of simulated searches: CPU seconds and memory of each registered model, and their growth.

Each model runs in a process of its own, which reads the log and fits the model with 50 iterations on one core. The time
includes reading and leaves out the start of Python and the imports. The log is written by another process, because a child
inherits the memory peak of its parent. 2,000 queries, of Zipf's frequencies, have 20 documents each. A search
shows ten of them in random order.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.table import Row
from benchmarks.timing import KILOBYTE, Spread

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
SEARCHES = (100_000, 300_000, 1_000_000)
QUERIES, DOCUMENTS, SHOWN, ITERATIONS = 2_000, 20, 10, 50
BARS = {"CM": 4.0, "SDBN": 4.0, "DCM": 4.0, "PBM": 3.0, "UBM": 10.0, "DBN": 120.0}  # seconds, of a million searches
MOST_MEMORY = 2_000.0  # MB


def click_models(repeats: int) -> list[Row]:
    """From a log to each click model: CPU seconds, and the memory of the process."""
    from cranfield.experiments.clicks.model import CLICK_MODELS

    rows = []
    for count in SEARCHES:
        with tempfile.TemporaryDirectory() as folder:
            log = str(Path(folder, "log"))
            run("write", log, str(count))
            for name in CLICK_MODELS:
                samples = [tuple(map(float, run("fit", log, name).split())) for _ in range(min(repeats, 3))]
                seconds, memory = (Spread.of([sample[place] for sample in samples]) for place in (0, 1))
                largest = count == SEARCHES[-1]
                bar, limit = (BARS.get(name), MOST_MEMORY) if largest else (None, None)
                where, sign = f"{count:,} searches", "≤"
                own = (where, name, seconds, "", None, seconds.median, "s", "s")
                rows.append(Row("log to click model", *own, sign if bar else "", bar))
                held = (where, name, memory, "", None, memory.median / 1e6, "MB", "MB")
                rows.append(Row("memory of it", *held, sign if limit else "", limit))
    return rows


def run(*arguments: str) -> str:
    """What this module prints as a program."""
    command = [sys.executable, "-m", "benchmarks.clicks", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def fit(log: str, name: str) -> float:
    """Read a log and fit a model; returns the CPU seconds."""
    from cranfield.experiments.clicks.click_log import count_clicks, read_pages
    from cranfield.experiments.clicks.model import CLICK_MODELS
    from cranfield.experiments.log import EventLog
    from cranfield.formats.event_files.format import imported

    for library in ("duckdb", "pyarrow.compute", "pyarrow.parquet"):
        imported(library)
    cls = CLICK_MODELS[name]
    model = cls(iterations=ITERATIONS, tolerance=0) if "iterations" in cls.parameters else cls()
    start = time.process_time()
    data: Any
    if model.needs_pages:
        data = read_pages(EventLog(log)).pages
    else:
        data = count_clicks(EventLog(log), other_clicks=model.reads_other_clicks).counts
    model.fit(data)
    return time.process_time() - start


def write_log(folder: str, searches: int) -> None:
    """A compacted log of users who examine ranks less and less."""
    from cranfield.experiments.log import EventLog
    from cranfield.formats.event_files.format import imported

    pa = imported("pyarrow")
    rng = np.random.default_rng(1)
    weight = 1 / np.arange(1, QUERIES + 1)
    query = rng.choice(QUERIES, searches, p=weight / weight.sum())
    order = np.argsort(rng.random((searches, DOCUMENTS)), axis=1)[:, :SHOWN]
    attractiveness, examination = rng.uniform(0.05, 0.6, (QUERIES, DOCUMENTS)), np.arange(1, SHOWN + 1) ** -0.7
    page, rank = np.nonzero(rng.random((searches, SHOWN)) < attractiveness[query[:, None], order] * examination)
    documents = pa.array([f"d{number:05d}" for number in range(QUERIES * DOCUMENTS)])
    shown = documents.take(pa.array((query[:, None] * DOCUMENTS + order).ravel()))
    texts = {
        "search": pa.array([f"s{number:07d}" for number in range(searches)]),
        "unit": pa.array([f"u{number:06d}" for number in rng.integers(0, searches // 3 + 1, searches)]),
        "time": pa.array(np.datetime64("2026-03-01", "us") + np.arange(searches) * 50_000).cast(
            pa.timestamp("us", "UTC")
        ),
    }
    impressions = {
        **texts,
        "event_id": pa.array([f"i{number}" for number in range(searches)]),
        "kind": pa.array(["impression"] * searches),
        "query": pa.array([f"query number {number}" for number in range(QUERIES)]).take(pa.array(query)),
        "shown": pa.ListArray.from_arrays(pa.array(np.arange(searches + 1) * SHOWN, pa.int32()), shown),
    }
    clicks = {
        **{name: values.take(pa.array(page)) for name, values in texts.items()},
        "event_id": pa.array([f"c{number}" for number in range(len(page))]),
        "kind": pa.array(["click"] * len(page)),
        "document": documents.take(pa.array(query[page] * DOCUMENTS + order[page, rank])),
        "position": pa.array(rank + 1, pa.int32()),
    }
    events = pa.concat_tables([_as_events(impressions), _as_events(clicks)]).sort_by("time")
    log = EventLog(folder, create=True)
    log.make()
    part = Path(folder, "day=2026-03-01", "1.parquet")
    part.parent.mkdir()
    with log.alone():
        log.change_parts([(str(part), events)])


def _as_events(columns: dict[str, Any]) -> Any:
    """Columns as a table of the schema of events; those that are missing are null."""
    from cranfield.formats.event_files.format import arrow_schema, imported

    pa, schema = imported("pyarrow"), arrow_schema()
    count = len(columns["kind"])
    arrays = [columns[one.name] if one.name in columns else pa.nulls(count, one.type) for one in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def main(arguments: Sequence[str]) -> None:
    """Write a log of so many searches, or print the CPU seconds and the bytes of one fit."""
    what, log, value = arguments
    if what == "write":
        write_log(log, int(value))
    else:
        print(fit(log, value), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILOBYTE)


if __name__ == "__main__":
    main(sys.argv[1:])
