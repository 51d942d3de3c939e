"""The costs of a run: `RUN.stats.json` next to the run, written by `cranfield run` and read by comparisons.

The layout has a version; docs/run.md describes it. A field that was not measured is null or left out, never 0.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any

from cranfield.base.errors import DataError
from cranfield.formats.streams import write_bytes

VERSION = 1
ENDING = ".stats.json"


@dataclass
class RunStats:
    """How a run was made: the system, its index, its queries, the costs, and the machine.

    >>> RunStats("bm25", "bm25s", queries={"latency_ms": {"median": 1.5}}).latency("median")
    1.5
    """

    run: str
    system: str
    collection: dict[str, Any] = field(default_factory=dict)  # name, documents, topics
    k: int = 1000
    fields: list[str] = field(default_factory=list)  # of a topic that make up the query
    complete: bool = True
    topics: dict[str, Any] = field(default_factory=dict)  # asked, answered, empty, failed {topic: why}
    order: dict[str, Any] = field(default_factory=dict)  # by (score, list), tied_topics, rising_topics
    index: dict[str, Any] = field(default_factory=dict)  # documents, seconds, documents_per_second, bytes
    queries: dict[str, Any] = field(default_factory=dict)  # loop, clients, latency_ms, histogram, throughput …
    memory: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    made_at: str = ""
    version: int = VERSION

    def latency(self, which: str) -> float | None:
        """A latency in milliseconds (mean, median, p95, p99, min, max), if it was measured."""
        return _number(self.queries.get("latency_ms") or {}, which)

    @property
    def throughput(self) -> float | None:
        """Queries answered per second."""
        return _number(self.queries, "throughput_per_second")

    @property
    def cost_per_thousand(self) -> float | None:
        """What a thousand queries cost, if a price was given."""
        return _number(self.cost, "per_thousand_queries")


def _number(values: dict[str, Any], name: str) -> float | None:
    value = values.get(name)
    return None if value is None else float(value)


def stats_path(run: str | os.PathLike[str]) -> str:
    """The path of a run's statistics.

    >>> stats_path("runs/bm25.run")
    'runs/bm25.run.stats.json'
    """
    return os.fspath(run) + ENDING


def read_run_stats(run: str | os.PathLike[str]) -> RunStats | None:
    """The statistics next to a run file; None if there are none."""
    path = stats_path(run)
    if not os.path.exists(path):
        return None
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected the statistics of a run as JSON: {error}") from error
    version = content.get("version") if isinstance(content, dict) else type(content).__name__
    if version != VERSION:
        raise DataError(f"{path}: expected version {VERSION} of the layout, found {version!r}; make the run again")
    try:
        return RunStats(**{name: content[name] for name in RunStats.__dataclass_fields__ if name in content})
    except TypeError as error:
        raise DataError(f"{path}: expected run and system, found {', '.join(content)}") from error


def write_run_stats(stats: RunStats, run: str | os.PathLike[str]) -> None:
    """Write the statistics next to a run file, whole or not at all."""
    text = json.dumps(asdict(stats), indent=2, ensure_ascii=False, allow_nan=False)
    write_bytes(stats_path(run), [text.encode("utf-8", "surrogateescape"), b"\n"])
