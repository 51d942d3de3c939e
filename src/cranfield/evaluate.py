"""Runs × qrels × measures → Scores.

Judgments are indexed once; each run is then one pass over its bytes. `Evaluator` keeps the index for
many runs (a training loop, a leaderboard), `evaluate` is the one call for everything else.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.conventions import Conventions, conventions
from cranfield.errors import DataError, TopicError
from cranfield.formats import as_qrels, as_runs
from cranfield.hits import Judgments, join
from cranfield.measures import measures
from cranfield.scores import Absent, Scores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cranfield.collection import Qrels
    from cranfield.hits import Hits
    from cranfield.measures import Measure
    from cranfield.run import Run

__all__ = ["Evaluator", "evaluate"]


def evaluate(
    qrels: Any,
    runs: Any,
    measures: str | Measure | Iterable[str | Measure],
    *,
    rel: float | None = None,
    topics: Iterable[str] | None = None,
    conventions: Conventions | str | Mapping[str, Any] | None = None,
    threads: int | None = None,
    **changes: Any,
) -> Scores:
    """Score one run or several against judgments.

    `qrels` and each run may be a path, a mapping `{topic: {document: value}}`, a frame (pandas, Polars, pyarrow, DuckDB)
    or a `Qrels` / `Run`. Several runs are a list, or a mapping of names to any of these. Single conventions can be given
    by name: `evaluate(qrels, run, "AP", missing="skip")`.

    >>> scores = evaluate({"q1": {"d1": 1}}, {"q1": {"d1": 0.5, "d2": 0.9}}, "RR nDCG@10")
    >>> scores.mean("RR")
    0.5
    """
    evaluator = Evaluator(qrels, measures, rel=rel, topics=topics, conventions=conventions, threads=threads, **changes)
    return evaluator.evaluate(runs)


class Evaluator:
    """Judgments indexed once, ready to score any number of runs.

    >>> evaluator = Evaluator({"q1": {"d1": 1}}, "RR")
    >>> [evaluator.evaluate(run).mean() for run in ({"q1": {"d1": 1}}, {"q1": {"d1": 1, "d2": 2}})]
    [1.0, 0.5]
    """

    def __init__(
        self,
        qrels: Any,
        measures: str | Measure | Iterable[str | Measure],
        *,
        rel: float | None = None,
        topics: Iterable[str] | None = None,
        conventions: Conventions | str | Mapping[str, Any] | None = None,
        threads: int | None = None,
        **changes: Any,
    ) -> None:
        self.measures = _measures(measures, rel)
        self.conventions = _conventions(conventions, **changes)
        self.qrels: Qrels = as_qrels(qrels)
        if not len(self.qrels):
            raise DataError(f"{self.qrels.name}: no judgments")
        self.judgments = Judgments(self.qrels, self.conventions.negative)
        self.threads = threads or _cores()
        self.wanted = _subset(self.qrels, topics)

    def hits(self, run: Any) -> Hits:
        """One run seen through the judgments."""
        [only] = as_runs(run)
        return self._look(only)[0]

    def evaluate(self, runs: Any, progress: Callable[[int, int], None] | None = None) -> Scores:
        """Score one run or several; `progress` is told after each run how many of how many are done."""
        named = as_runs(runs)
        rows: list[_Row | None] = [None] * len(named)
        names = _distinct([run.name for run in named])

        def work(i: int, threads: int) -> None:
            hits, others, skipped = self._look(named[i], threads)
            rows[i] = _Row(self._score(hits), hits.retrieved, others, skipped)

        _spread(work, len(named), self.threads, progress)
        return self._scores(names, named, [row for row in rows if row is not None])

    def _look(self, run: Run, threads: int | None = None) -> tuple[Hits, list[str], int]:
        found = run.hits(self.qrels.index, self.conventions.order, threads or self.threads)
        return join(found, self.judgments, self.conventions), found.others, len(found.skipped)

    def _score(self, hits: Hits) -> Any:
        values = np.empty((len(self.measures), hits.size))
        for i, measure in enumerate(self.measures.values()):
            values[i] = measure.score(hits)
        return values

    def _scores(self, names: list[str], runs: list[Run], rows: list[_Row]) -> Scores:
        topics = self.qrels.topics
        relevant = {float(m.values["rel"]) for m in self.measures.values() if "rel" in m.values} or {1.0}
        barren = self.judgments.relevant(min(relevant)) == 0
        retrieved = np.array([row.retrieved for row in rows]).reshape(len(rows), len(topics))
        counted = np.broadcast_to(self.wanted, retrieved.shape).copy()
        absent = Absent(no_relevant=_names(topics, barren & self.wanted))
        for name, row, given in zip(names, rows, retrieved, strict=True):
            lacking = _names(topics, (given == 0) & self.wanted)
            if lacking:
                absent.missing[name] = lacking
            if row.others:
                absent.unjudged[name] = row.others
            if row.skipped:
                absent.skipped[name] = row.skipped
        if self.conventions.missing == "error" and absent.missing:
            name, lacking = next(iter(absent.missing.items()))
            hint = 'use missing="zero" to score it 0 or missing="skip" to leave it out'
            raise TopicError(f"topic {lacking[0]!r} is judged but missing from {name} ({hint})")
        if self.conventions.missing == "skip":
            counted &= retrieved > 0
        if self.conventions.no_relevant == "skip":
            counted &= ~barren
        values = np.array([row.values for row in rows]).reshape(len(rows), len(self.measures), len(topics))
        kept = self.wanted if not self.wanted.all() else slice(None)
        return Scores(
            runs=names,
            tags=[run.tag if not hasattr(run.source, "keys") else None for run in runs],
            measures=self.measures,
            topics=[t for t, w in zip(topics, self.wanted, strict=True) if w],
            values=values[:, :, kept],
            counted=counted[:, kept],
            retrieved=retrieved[:, kept],
            absent=absent,
            conventions=self.conventions,
        )


@dataclass
class _Row:
    values: Any
    retrieved: Any
    others: list[str] = field(default_factory=list)
    skipped: int = 0


def _names(topics: list[str], mask: Any) -> list[str]:
    return [topics[i] for i in np.flatnonzero(mask)]


def _subset(qrels: Qrels, topics: Iterable[str] | None) -> Any:
    if topics is None:
        return np.ones(len(qrels.topics), bool)
    wanted = set(topics)
    unknown = wanted - set(qrels.topics)
    if unknown:
        raise TopicError(
            f"topic {min(unknown)!r} is not judged in {qrels.name} ({len(unknown)} of {len(wanted)} are not)"
        )
    return np.array([topic in wanted for topic in qrels.topics])


def _distinct(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    answer = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        answer.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return answer


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _spread(
    work: Callable[[int, int], None], jobs: int, threads: int, progress: Callable[[int, int], None] | None
) -> None:
    """Run the jobs: several at a time with one thread each, or one at a time with all threads if they are few."""
    if jobs < 2 * threads or threads == 1:
        for i in range(jobs):
            work(i, threads)
            if progress:
                progress(i + 1, jobs)
        return
    import threading

    todo = iter(range(jobs))
    lock = threading.Lock()
    done: list[int] = []
    failed: dict[int, BaseException] = {}

    def worker() -> None:
        while not failed:
            with lock:
                i = next(todo, None)
            if i is None:
                return
            try:
                work(i, 1)
            except BaseException as error:  # handed to the caller below
                failed[i] = error
                return
            with lock:
                done.append(i)
                if progress:
                    progress(len(done), jobs)

    pool = [threading.Thread(target=worker, daemon=True) for _ in range(threads)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    if failed:
        raise failed[min(failed)]


_measures = measures
_conventions = conventions
