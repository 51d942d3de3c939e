"""Files of runs: the runs of a workspace by name, and the costs next to each run.

A workspace has its runs in the folder `runs/`. `cranfield run` writes the costs to `RUN.stats.json`, and comparisons read
them. That layout has a version; docs/run.md describes it. A field that was not measured is null or left out, never 0.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from cranfield.base.errors import DataError
from cranfield.formats.streams import write_bytes

RUNS = "runs"  # the folder of a workspace's runs
ENDING = ".stats.json"  # of the costs of a run
VERSION = 1  # of the layout of the costs
JOURNAL = ".journal"  # the ending of what `cranfield run` writes next to a run until it is complete


class RunFile(NamedTuple):
    """A file of `runs/`; `name` is the run's name, with the ending of the file if two names would be the same."""

    name: str
    path: str
    size: int
    mtime: float


def run_named(workspace: str, name: str) -> RunFile | None:
    """A run of a workspace by its name or its file name; None if no run has this name."""
    files = listed(os.path.join(workspace, RUNS))
    return next((file for file in files if name in (file.name, os.path.basename(file.path))), None)


def listed(folder: str) -> list[RunFile]:
    """The runs in a folder by name, without hidden files and files that `cranfield run` adds; empty without a folder."""
    from cranfield.formats.streams import run_name

    files = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []
    for entry in entries:
        if entry.name.startswith(".") or entry.name.endswith((ENDING, JOURNAL)):
            continue
        try:
            status = entry.stat()
        except OSError:  # deleted meanwhile, or a broken link
            continue
        if stat.S_ISREG(status.st_mode):
            files.append(RunFile(entry.name, entry.path, status.st_size, status.st_mtime))
    names = Counter(run_name(file.name) for file in files)
    return [file if names[run_name(file.name)] > 1 else file._replace(name=run_name(file.name)) for file in files]


def located(runs: Any, workspace: str) -> Any:
    """The same runs, where paths replace the names of runs of the workspace; an existing path takes precedence."""
    if isinstance(runs, Mapping):
        return {name: located(run, workspace) for name, run in runs.items()} if _are_names(runs.values()) else runs
    if isinstance(runs, (list, tuple)):
        return [located(run, workspace) for run in runs] if _are_names(runs) else runs
    if not isinstance(runs, str) or os.path.lexists(runs):
        return runs
    file = run_named(workspace, runs)
    return runs if file is None else file.path


def _are_names(runs: Any) -> bool:
    return all(isinstance(run, str) for run in runs)


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
