"""Make a run from a collection and a system: index the documents, ask the topics, write the run and what it cost.

The run is written whole or not at all. If topics failed, the run is still written, but its tag ends in `-partial`, its
statistics list the failures, and its journal stays, so that `--resume` asks only those topics.

The scores of a run decide the order in which others read it. An engine may know more than its scores show: a second key
broke ties, 64-bit numbers lost their last digits, a re-ranker left the old scores. If scores do not fall strictly, they
are lowered by the smallest step of a 32-bit float, so that every program reads the order of the engine.

Latency is how long a client waits. In a closed loop a client asks when its last answer has come, so the wait begins when
the query is sent. In an open loop queries are due at fixed times, and the wait begins when the query was due. Timing from
the moment of sending would hide the queries that a stalled system held up (coordinated omission). The description of
the machine names neither the computer nor a person.
"""

from __future__ import annotations

import math
import os
import platform
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import ConventionError, CranfieldError, DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Answer, Entries, Layout
from cranfield.base.run import Run
from cranfield.formats import write_run
from cranfield.formats.run_files import JOURNAL, RunStats, write_run_stats
from cranfield.formats.streams import own_mark, run_name, sweep
from cranfield.retrieval.driver import Driven, Journal, Load, drive
from cranfield.retrieval.systems_under_test import Query, System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cranfield.base.collection import Collection, Document, Topic

    Progress = Callable[[int, int | None], None]


PER_DECADE = 5  # bars of the histogram between 1 and 10 ms
KILOBYTE = 1 if sys.platform == "darwin" else 1024  # the unit of ru_maxrss


def latency(seconds: Sequence[float]) -> dict[str, float] | None:
    """Mean, median, 95th and 99th percentile, minimum and maximum in milliseconds; None without values.

    >>> latency([0.001, 0.002, 0.009])["median"]
    2.0
    """
    if not len(seconds):
        return None
    ms = np.asarray(seconds, np.float64) * 1000
    median, p95, p99 = np.percentile(ms, [50, 95, 99])
    values = {"mean": ms.mean(), "median": median, "p95": p95, "p99": p99, "min": ms.min(), "max": ms.max()}
    return {name: round(float(value), 4) for name, value in values.items()}


def histogram(seconds: Sequence[float]) -> dict[str, list[Any]] | None:
    """A histogram of waiting times: edges in milliseconds, five bars per power of ten, and the count of each bar.

    >>> histogram([0.001, 0.0012, 0.009])
    {'edges_ms': [1.0, 1.5849, 2.5119, 3.9811, 6.3096, 10.0], 'counts': [2, 0, 0, 0, 1]}
    """
    if not len(seconds):
        return None
    bars = np.floor(np.round(np.log10(np.maximum(np.asarray(seconds) * 1000, 1e-4)) * PER_DECADE, 9)).astype(int)
    first, last = int(bars.min()), int(bars.max())
    edges = [round(10 ** (bar / PER_DECADE), 4) for bar in range(first, last + 2)]
    return {"edges_ms": edges, "counts": np.bincount(bars - first, minlength=last - first + 1).tolist()}


def timings(driven: Driven, load: Load, journal: Journal) -> dict[str, Any]:
    """The facts about a load: its settings, its duration, and the waiting times."""
    earlier = journal.waits.values()  # timed by an interrupted process
    count = len(driven.waits) or driven.in_one_go
    load_and_time = {
        "loop": "closed" if load.rate is None else "open",
        "clients": load.clients,
        "rate_per_second": load.rate,
        "passes": load.passes,
        "count": count,
        "seconds": round(driven.elapsed, 6),
        "throughput_per_second": round(count / driven.elapsed, 4) if driven.elapsed > 0 and count else None,
        "retries": driven.retries,
        "latency_ms": latency([*earlier, *driven.waits]),
        "histogram": histogram([*earlier, *driven.waits]),
        "warmup": {"count": len(driven.warm), "apart": driven.warm_apart, "latency_ms": latency(driven.warm)},
        "resumed_topics": len(journal.answers),
    }
    return load_and_time if load.rate is None else {**load_and_time, "late": driven.late}


def cost_of(price_per_hour: float | None, throughput: float | None) -> dict[str, float]:
    """What a thousand queries cost at this throughput on a machine with this price.

    >>> cost_of(3.6, 10.0)
    {'price_per_hour': 3.6, 'per_thousand_queries': 0.1}
    """
    if price_per_hour is None or not throughput:
        return {}
    return {
        "price_per_hour": price_per_hour,
        "per_thousand_queries": float(f"{price_per_hour / 3600 * 1000 / throughput:.6g}"),
    }


def machine() -> dict[str, Any]:
    """Cores, processor, memory and system."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    facts: dict[str, Any] = {
        "cores": cores,
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        facts["memory_gb"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    return facts


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")
    except OSError:
        return platform.processor() or "unknown"


def forget_peak() -> None:
    """Reset the peak memory of this process, if the system (Linux) allows it."""
    with suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def peak_memory() -> int | None:
    """The peak memory of this process in bytes: since `forget_peak` on Linux, since its start elsewhere."""
    with suppress(OSError, StopIteration), open("/proc/self/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILOBYTE


def size_on_disk(folder: str) -> int:
    """The bytes of all files in a folder."""
    return sum(os.path.getsize(os.path.join(here, name)) for here, _, names in os.walk(folder) for name in names)


def falls(scores: Sequence[float]) -> bool:
    """Whether each score is below the one before it, as 32-bit floats."""
    short = _short(scores)
    return bool((short[1:] < short[:-1]).all())


def rises(scores: Sequence[float]) -> bool:
    """Whether any score is above the one before it."""
    return any(later > earlier for earlier, later in zip(scores, scores[1:], strict=False))


def falling(scores: Sequence[float]) -> list[float]:
    """The scores, each lowered as far as needed to be below the one before it; 1/rank if that is impossible.

    >>> falling([3.0, 2.0, 1.5]), falling([2.0, 2.0, 1.0])
    ([3.0, 2.0, 1.5], [2.0, 1.9999998807907104, 1.0])
    """
    lowered: list[float] = []
    bound, lowest = np.float32(np.inf), np.float32(-np.inf)
    for score, short in zip(scores, _short(scores), strict=True):
        if lowered and not short < bound:
            with np.errstate(over="ignore"):  # below the smallest 32-bit float is −∞
                short = np.nextafter(bound, lowest)
            score = float(short)
        lowered.append(float(score))
        bound = short
    return lowered if falls(lowered) else [1.0 / rank for rank in range(1, len(lowered) + 1)]


def _short(scores: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    with np.errstate(over="ignore"):
        return np.asarray(scores, np.float64).astype(np.float32)


PARTIAL = "-partial"


@dataclass(frozen=True, repr=False)
class Produced(Answer):
    """A run, what it cost, and remarks."""

    run: Run
    stats: RunStats
    remarks: tuple[str, ...]

    def content(self, how: Layout) -> Iterator[Entries]:
        yield Entries(list(_facts(self.stats)), margin=12, indent=0)

    def records(self, how: Layout) -> Iterator[tuple[str, str]]:
        yield "figure", "value"
        yield from _facts(self.stats)

    def plain(self, how: Layout) -> dict[str, Any]:
        return dict(vars(self.stats))

    def notes(self, shell: bool = False) -> list[str]:
        return list(self.remarks)


def _facts(stats: RunStats) -> Iterator[tuple[str, str]]:
    """The measurements as labels and texts."""
    yield "run", f"{stats.run}: {stats.topics['answered']} of {stats.topics['asked']} topics, {stats.system}"
    index, queries = stats.index, stats.queries
    if index:
        size = f", {_bytes(index['bytes'])} on disk" if index["bytes"] else ""
        speed = f"{index['documents_per_second']:,.0f} per second" if index["documents_per_second"] else ""
        yield "index", f"{index['documents']:,} documents in {index['seconds']:.2f} s, {speed}{size}"
    wait = queries.get("latency_ms")
    if wait:
        named = ", ".join(f"{name} {wait[name]:.3g}" for name in ("mean", "median", "p95", "p99"))
        rate = f"open loop, {queries['rate_per_second']:g} per second" if queries["loop"] == "open" else "closed loop"
        yield "latency", f"{named} ms ({rate}, {_n(queries['clients'], 'client')})"
    if stats.throughput:
        yield "throughput", f"{stats.throughput:,.1f} queries per second, {_n(queries['count'], 'query', 'queries')}"
    if stats.memory:
        peak, before = (_bytes(stats.memory[f"{when}_bytes"]) for when in ("peak", "before"))
        yield "memory", f"{peak} at most, {before} before"
    if stats.cost:
        yield "cost", f"{stats.cost['per_thousand_queries']:g} for 1000 queries"


def _bytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"


def _n(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


@dataclass(frozen=True)
class _Task:
    """A system, the topics to ask it, and the settings."""

    collection: Collection
    system: System
    spec: str  # without secrets
    queries: Sequence[Query]
    others: Sequence[Query]  # topics of the collection that are not asked
    k: int
    fields: Sequence[str]
    load: Load

    def head(self) -> dict[str, Any]:
        """The first line of the journal, which identifies the task."""
        name = self.collection.name
        return {"journal": 1, "system": self.spec, "collection": name, "k": self.k, "fields": list(self.fields)}


def produce(
    collection: Collection,
    system: System,
    spec: str,
    output: str,
    *,
    k: int = 1000,
    fields: Sequence[str] = ("title",),
    name: str | None = None,
    topics: Iterable[str] | None = None,
    load: Load | None = None,
    resume: bool = False,
    price_per_hour: float | None = None,
    made_at: str = "",
    progress: Progress | None = None,
) -> Produced:
    """Index the documents if the system needs them, ask the topics, and write the run and its statistics."""
    refuse_below(1, k=k)
    if price_per_hour is not None and not 0 <= price_per_hour < math.inf:
        raise ConventionError(f"the price of an hour must be 0 or more, got {price_per_hour:g}")
    if output == "-":
        raise ConventionError("a run is written to a file, next to its journal and its statistics; found -")
    every = queries_of(collection.topics, fields)
    queries = _selected(every, topics, collection.name)
    if not queries:
        raise DataError(f"{collection.name}: no topics, so there is nothing to ask")
    selection = {query.id for query in queries}
    others = [query for query in every if query.id not in selection]
    task = _Task(collection, system, system.described(spec), queries, others, k, fields, load or Load())
    title = name or run_name(output)
    journal = Journal(output + JOURNAL, task.head(), resume)
    try:
        driven, stats = _drive(task, title, journal, progress)
        stats.cost, stats.made_at = cost_of(price_per_hour, stats.throughput), made_at
        if not driven.answers:
            topic, why = next(iter(driven.failed.items()))
            raise DataError(f"{task.spec}: no topic was answered, nothing is written; topic {topic!r}: {why}")
        run, stats.order = _run(driven, title, stats.complete, system.keeps_order)
        write_run(run, output)
        write_run_stats(stats, output)
    except BaseException:
        journal.keep()
        raise
    (journal.discard if stats.complete else journal.keep)()
    return Produced(run, stats, tuple(_remarks(stats, driven, task.load, output, journal)))


def queries_of(topics: Iterable[Topic], fields: Sequence[str]) -> list[Query]:
    """The queries: the topics' fields, joined. Empty fields are left out; a field that a topic lacks is an error."""
    queries = []
    for topic in topics:
        own = {"title": topic.title, "description": topic.description, "narrative": topic.narrative}
        texts = {**topic.fields, **own}
        for name in fields:
            if name not in texts:
                raise ConventionError(f"topic {topic.id!r} has no field {name!r}; it has {', '.join(texts)}")
        queries.append(Query(topic.id, " ".join(str(texts[name]) for name in fields if texts[name]), topic))
    return queries


def _selected(queries: list[Query], topics: Iterable[str] | None, where: str) -> list[Query]:
    if topics is None:
        return queries
    ids = list(topics)
    by_id = {query.id: query for query in queries}
    for topic in ids:
        if topic not in by_id:
            raise DataError(f"{where}: no topic {topic!r}; it has {len(by_id)} others")
    return [by_id[topic] for topic in ids]


def _drive(task: _Task, title: str, journal: Journal, progress: Progress | None) -> tuple[Driven, RunStats]:
    """Index the documents and ask the topics; returns the answers and their cost."""
    system, collection = task.system, task.collection
    sweep(tempfile.gettempdir(), "cranfield-")
    with tempfile.TemporaryDirectory(prefix=f"cranfield-{own_mark()}") as folder:
        forget_peak()
        before = peak_memory()
        index = _indexed(task, folder, progress) if system.indexes else {}
        driven = drive(system, task.queries, task.k, task.load, journal, progress, task.others)
        peak = peak_memory() if system.in_process else None  # unknown for an engine in another process
    from cranfield import __version__

    answered = [query.id for query in task.queries if query.id in driven.answers]
    return driven, RunStats(
        run=title,
        system=task.spec,
        collection={"name": collection.name, "documents": collection.n_documents, "topics": len(task.queries)},
        k=task.k,
        fields=list(task.fields),
        complete=not driven.failed,
        topics={
            "asked": len(task.queries),
            "answered": len(answered),
            "empty": sum(not driven.answers[topic] for topic in answered),
            "failed": dict(driven.failed),
        },
        index=index,
        queries=timings(driven, task.load, journal),
        memory={} if peak is None or before is None else {"peak_bytes": peak, "before_bytes": before},
        machine=machine(),
        versions={"cranfield": __version__, "python": platform.python_version(), **system.versions()},
    )


def _indexed(task: _Task, folder: str, progress: Progress | None) -> dict[str, Any]:
    count = 0

    def documents() -> Iterator[Document]:
        nonlocal count
        for document in task.collection.documents():
            count += 1
            if progress is not None and count % 100 == 0:
                progress(count, None)
            yield document

    start = time.perf_counter()
    try:
        task.system.index(documents(), folder)
    except CranfieldError:
        raise
    except Exception as error:  # a full disk, or an error in the user's function
        raise DataError(f"{task.spec}: indexing failed: {type(error).__name__}: {error}") from error
    if not count:
        if next(iter(task.collection.documents()), None) is None:
            raise DataError(f"{task.collection.name}: no documents, so there is nothing to find")
        return {}  # the user's `index` consumed no documents: there is no indexing rate
    seconds = time.perf_counter() - start
    return {
        "documents": count,
        "seconds": round(seconds, 6),
        "documents_per_second": round(count / seconds, 2) if seconds > 0 else None,
        "bytes": size_on_disk(folder) or None,
    }


def _run(driven: Driven, title: str, complete: bool, keeps_order: bool) -> tuple[Run, dict[str, Any]]:
    """The run, and what decides its order: the scores, or the list if the scores do not fall."""
    tag = "_".join(title.split()) + ("" if complete else PARTIAL)
    answers: dict[str, dict[str, float]] = {}
    for topic, hits in driven.answers.items():
        rows = answers.setdefault(topic, {})
        for document, score in hits:
            rows.setdefault(document, score)  # a document that an engine returns twice keeps its better place
    if not keeps_order:
        return Run(answers, title, tag), {"by": "score"}
    tied = rising = 0
    for topic, rows in answers.items():
        scores = list(rows.values())
        if not falls(scores):
            rising += rises(scores)
            tied += not rises(scores)
            answers[topic] = dict(zip(rows, falling(scores), strict=True))
    return Run(answers, title, tag), {"by": "list", "tied_topics": tied, "rising_topics": rising}


def _remarks(stats: RunStats, driven: Driven, load: Load, output: str, journal: Journal) -> Iterator[str]:
    if journal.answers:
        now = len(driven.waits) or stats.queries["count"]
        yield (
            f"{_n(len(journal.answers), 'topic')} came from the journal; "
            f"throughput and cost are those of the {_n(now, 'query', 'queries')} asked now"
        )
    if journal.damaged:
        yield f"{_n(journal.damaged, 'line')} of the journal could not be read; their topics were asked again"
    if stats.topics["empty"]:
        yield f"no document was found for {_n(stats.topics['empty'], 'topic')}"
    tied, rising = stats.order.get("tied_topics", 0), stats.order.get("rising_topics", 0)
    if tied or rising:
        yield (
            f"scores tie in {_n(tied, 'topic')} and rise in {_n(rising, 'topic')}; the order of the list was kept, and "
            "scores lowered to follow it"
        )
    if driven.late:
        yield (
            f"{driven.late} of {len(driven.waits)} queries were sent late, as all {load.clients} clients were busy; their "
            "wait counts from when they were due"
        )
    if driven.failed:
        topic, why = next(iter(driven.failed.items()))
        yield (
            f"PARTIAL: {len(driven.failed)} of {stats.topics['asked']} topics failed (topic {topic!r}: {why}); "
            f"{output} holds the others, {os.path.basename(journal.path)} is kept for --resume"
        )
