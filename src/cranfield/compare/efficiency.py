"""Effectiveness and efficiency side by side: what each run scores, what it cost, and which runs nothing else beats.

A run is on the Pareto front if no other run is at least as good and at least as fast and better in one of the two. Runs
without statistics keep their scores and stand outside the front: what was not measured is not compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Cell, Layout, Part, Table, plain
from cranfield.errors import DataError
from cranfield.formats.run_stats import RunStats, read_run_stats

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cranfield.scores import Scores


LATENCIES = ("mean", "median", "p95", "p99")
COLUMNS: dict[str, Callable[[RunStats], float | None]] = {
    "mean ms": lambda stats: stats.latency("mean"),
    "median ms": lambda stats: stats.latency("median"),
    "p95 ms": lambda stats: stats.latency("p95"),
    "p99 ms": lambda stats: stats.latency("p99"),
    "queries/s": lambda stats: stats.throughput,
    "index s": lambda stats: stats.index.get("seconds"),
    "docs/s": lambda stats: stats.index.get("documents_per_second"),
    "index MB": lambda stats: _megabytes(stats.index.get("bytes")),
    "peak MB": lambda stats: _megabytes(stats.memory.get("peak_bytes")),
    "cost/1000": lambda stats: stats.cost_per_thousand,
}
"""What may have been measured of a run."""


def _megabytes(size: float | None) -> float | None:
    return None if size is None else size / 1e6


def shown(value: float) -> str:
    """A measured number for people: four digits, or whole thousands.

    >>> shown(0.34444), shown(14483.2)
    ('0.3444', '14,483')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


@dataclass(frozen=True)
class Cost:
    """One run: its score, its latency in milliseconds if that is known, and whether it is on the front."""

    run: str
    score: float
    latency: float | None
    on_front: bool
    stats: RunStats | None = None

    def cells(self) -> dict[str, float | None]:
        """A number for each of COLUMNS; None where nothing was measured."""
        stats = self.stats
        return {name: None if stats is None else number(stats) for name, number in COLUMNS.items()}


@dataclass(frozen=True)
class Efficiency(Answer):
    """The runs in the order given, the measure and the latency that they were compared by."""

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
        chosen = [row for row in self.rows if row.on_front]
        return [row.run for row in sorted(chosen, key=lambda row: (row.latency or 0.0, row.run))]

    def columns(self) -> list[str]:
        """Those of COLUMNS that some run has a number for."""
        return [name for name in COLUMNS if any(row.cells()[name] is not None for row in self.rows)]

    def notes(self, shell: bool = False) -> list[str]:
        """What makes the numbers hard to compare, a sentence each."""
        known = {row.run: row.stats for row in self.rows if row.stats is not None}
        notes = [
            f"{run} is partial: topics failed while it was made" for run, stats in known.items() if not stats.complete
        ]
        lacking = [row.run for row in self.rows if row.latency is None]
        if lacking and known:
            notes.append(f"no latency is known of {', '.join(lacking)}, which says nothing of the front")
        timed = [stats for run, stats in known.items() if run not in lacking]
        if len({str(sorted(stats.machine.items())) for stats in timed}) > 1:
            notes.append("the runs were timed on different machines; their latencies do not compare")
        load = ("loop", "clients", "rate_per_second")
        if len({str([stats.queries.get(key) for key in load]) for stats in timed}) > 1:
            notes.append("the runs were timed under different loads; their latencies do not compare")
        return notes

    def table(self, how: Layout) -> Table:
        """A row a run: name, score, what was measured, and a star, or words on a page, for those on the front."""
        names = self.columns()
        unknown, on_front = (how.undefined, "on it") if how.medium == "html" else ("", "*")
        rows = []
        for row in self.rows:
            numbers = [row.cells()[name] for name in names]
            measured = [Cell(unknown) if number is None else Cell(shown(number), number) for number in numbers]
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
    """For each (score, cost), whether no other is at least as good in both and better in one; an unknown cost is not on it.

    >>> pareto_front([(0.4, 1.0), (0.5, 9.0), (0.4, 3.0), (0.6, None)])
    [True, True, False, False]
    """
    known = [(score, cost) for score, cost in points if cost is not None]
    return [
        cost is not None and not any(s >= score and c <= cost and (s > score or c < cost) for s, c in known)
        for score, cost in points
    ]


def efficiency(
    scores: Scores, stats: Mapping[str, RunStats | None], measure: str | None = None, latency: str = "median"
) -> Efficiency:
    """Join the mean scores of runs with what they cost, by the runs' names."""
    if latency not in LATENCIES:
        raise DataError(f"a latency is one of {', '.join(LATENCIES)}, not {latency!r}")
    name = measure or next(iter(scores.measures))
    means = [scores.mean(name, run) for run in scores.runs]
    known = [stats.get(run) for run in scores.runs]
    waits = [None if one is None else one.latency(latency) for one in known]
    turn = -1 if scores.measures[name].lower_is_better else 1
    front = pareto_front([(turn * score, wait) for score, wait in zip(means, waits, strict=True)])
    rows = zip(scores.runs, means, waits, front, known, strict=True)
    return Efficiency(name, latency, tuple(Cost(*row) for row in rows))


def stats_beside(names: Sequence[str], files: Sequence[str | os.PathLike[str]]) -> dict[str, RunStats | None]:
    """The statistics that lie beside run files, by the runs' names; None where there are none."""
    return {name: read_run_stats(file) for name, file in zip(names, files, strict=True)}


def beside(scores: Scores, files: Mapping[str, str] | None) -> Efficiency | None:
    """The efficiency of runs whose statistics lie beside their files; None where nothing was timed."""
    known = {run: file for run, file in (files or {}).items() if file != "-"}
    costs = efficiency(scores, stats_beside(list(known), list(known.values())))
    return costs if costs.measured else None
