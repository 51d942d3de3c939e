"""Effectiveness and efficiency: the score and the cost of each run, and the runs on the Pareto front.

A run is on the Pareto front if no other run is at least as good and at least as fast, and better in one of the two. Runs
without statistics keep their scores and are not on the front.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import DataError
from cranfield.base.results import Answer, Cell, Layout, Part, Table, plain
from cranfield.formats.run_files import RunStats, read_run_stats

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cranfield.evaluation.scores import Scores


LATENCIES = ("mean", "median", "p95", "p99")
COLUMNS: dict[str, Callable[[RunStats], float | None]] = {
    **{f"{name} ms": methodcaller("latency", name) for name in LATENCIES},
    "queries/s": lambda stats: stats.throughput,
    "index s": lambda stats: stats.index.get("seconds"),
    "docs/s": lambda stats: stats.index.get("documents_per_second"),
    "index MB": lambda stats: _megabytes(stats.index.get("bytes")),
    "peak MB": lambda stats: _megabytes(stats.memory.get("peak_bytes")),
    "cost/1000": lambda stats: stats.cost_per_thousand,
}
"""The columns of costs that may have been measured."""


def _megabytes(size: float | None) -> float | None:
    return None if size is None else size / 1e6


def short_number(value: float) -> str:
    """A number with four digits, or whole thousands.

    >>> short_number(0.34444), short_number(14483.2)
    ('0.3444', '14,483')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


@dataclass(frozen=True)
class Cost:
    """One run: its score, its latency in milliseconds if known, and whether it is on the front."""

    run: str
    score: float
    latency: float | None
    on_front: bool
    stats: RunStats | None = None

    def cells(self) -> dict[str, float | None]:
        """A number for each of COLUMNS; None if not measured."""
        stats = self.stats
        return {name: None if stats is None else number(stats) for name, number in COLUMNS.items()}


@dataclass(frozen=True)
class Efficiency(Answer):
    """The runs with their costs, and the measure and latency that define the front."""

    measure: str
    latency: str
    rows: tuple[Cost, ...]

    @property
    def measured(self) -> bool:
        """Whether anything was measured at all."""
        return any(row.latency is not None for row in self.rows)

    @property
    def front(self) -> list[str]:
        """The runs on the front, fastest first."""
        front = [row for row in self.rows if row.on_front]
        return [row.run for row in sorted(front, key=lambda row: (row.latency or 0.0, row.run))]

    def columns(self) -> list[str]:
        """The columns for which some run has a number."""
        return [name for name in COLUMNS if any(row.cells()[name] is not None for row in self.rows)]

    def notes(self, shell: bool = False) -> list[str]:
        """Sentences about anything that makes the numbers hard to compare."""
        stats_by_run = {row.run: row.stats for row in self.rows if row.stats is not None}
        partial = [run for run, stats in stats_by_run.items() if not stats.complete]
        notes = [f"{run} is partial: topics failed while it was made" for run in partial]
        lacking = [row.run for row in self.rows if row.latency is None]
        if lacking and stats_by_run:
            notes.append(f"no latency is known for {', '.join(lacking)}: not on the front")
        timed = [stats for run, stats in stats_by_run.items() if run not in lacking]
        if len({str(sorted(stats.machine.items())) for stats in timed}) > 1:
            notes.append("the runs were timed on different machines; their latencies do not compare")
        load = ("loop", "clients", "rate_per_second")
        if len({str([stats.queries.get(key) for key in load]) for stats in timed}) > 1:
            notes.append("the runs were timed under different loads; their latencies do not compare")
        return notes

    def table(self, how: Layout) -> Table:
        """One row per run: name, score, costs, and a mark for runs on the front."""
        names = self.columns()
        unknown, on_front = (how.undefined, "on it") if how.medium == "html" else ("", "*")
        rows = []
        for row in self.rows:
            numbers = [row.cells()[name] for name in names]
            measured = [Cell(unknown) if number is None else Cell(short_number(number), number) for number in numbers]
            front = Cell(on_front if row.on_front else "", float(row.on_front))
            rows.append([Cell(row.run), how.cell(row.score), *measured, front])
        return Table(["run", self.measure, *names, "front"], rows)

    def content(self, how: Layout) -> Iterator[Part]:
        yield self.table(how)

    def plain(self, how: Layout) -> dict[str, Any]:
        rows = [{"run": row.run, self.measure: row.score, "on_front": row.on_front, **row.cells()} for row in self.rows]
        facts = {"measure": self.measure, "latency": self.latency, "front": self.front}
        return dict(plain({**facts, "runs": rows, "notes": self.notes()}, how.digits))


def pareto_front(points: Sequence[tuple[float, float | None]]) -> list[bool]:
    """Whether each point (score, cost) is on the Pareto front; a point without a cost never is.

    >>> pareto_front([(0.4, 1.0), (0.5, 9.0), (0.4, 3.0), (0.6, None)])
    [True, True, False, False]
    """
    costs = [(score, cost) for score, cost in points if cost is not None]
    return [
        cost is not None and not any(s >= score and c <= cost and (s > score or c < cost) for s, c in costs)
        for score, cost in points
    ]


def efficiency(
    scores: Scores, stats: Mapping[str, RunStats | None], measure: str | None = None, latency: str = "median"
) -> Efficiency:
    """Join the mean scores of runs with their costs, by the names of the runs."""
    if latency not in LATENCIES:
        raise DataError(f"a latency is one of {', '.join(LATENCIES)}, not {latency!r}")
    name = measure or next(iter(scores.measures))
    means = [scores.mean(name, run) for run in scores.runs]
    stats_of_runs = [stats.get(run) for run in scores.runs]
    waits = [None if one is None else one.latency(latency) for one in stats_of_runs]
    turn = -1 if scores.measures[name].lower_is_better else 1
    front = pareto_front([(turn * score, wait) for score, wait in zip(means, waits, strict=True)])
    rows = zip(scores.runs, means, waits, front, stats_of_runs, strict=True)
    return Efficiency(name, latency, tuple(Cost(*row) for row in rows))


def read_stats_of_files(names: Sequence[str], files: Sequence[str | os.PathLike[str]]) -> dict[str, RunStats | None]:
    """Read the statistics files next to the run files, by the names of the runs; None for a run without one."""
    return {name: read_run_stats(file) for name, file in zip(names, files, strict=True)}


def efficiency_of_files(scores: Scores, files: Mapping[str, str] | None) -> Efficiency | None:
    """The efficiency of runs from the statistics files next to their run files; None if nothing was timed."""
    paths = {run: file for run, file in (files or {}).items() if file != "-"}
    costs = efficiency(scores, read_stats_of_files(list(paths), list(paths.values())))
    return costs if costs.measured else None
