"""A collection and a system → a run, and what it cost: index, ask, write.

The run is written whole. One that lacks topics because they failed is still written, its tag ends in `-partial`, its
statistics say which topics failed and why, and its journal stays, so that `--resume` asks only those.
"""

from __future__ import annotations

import math
import os
import platform
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Entries
from cranfield.errors import ConventionError, CranfieldError, DataError
from cranfield.formats import write_run
from cranfield.formats.run_stats import RunStats, write_run_stats
from cranfield.formats.streams import own_mark, run_name, sweep
from cranfield.parameters import refuse_below
from cranfield.run import Run
from cranfield.systems import cost
from cranfield.systems.drive import Driven, Load, drive
from cranfield.systems.journal import ENDING, Journal
from cranfield.systems.order import falling, falls, rises
from cranfield.systems.system import Query, System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cranfield.answer import Layout
    from cranfield.collection import Collection, Document, Topic

    Progress = Callable[[int, int | None], None]


PARTIAL = "-partial"


@dataclass(frozen=True, repr=False)
class Produced(Answer):
    """A run, what it cost, and what to know beside it."""

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
    """What was measured, and how to say it."""
    yield "run", f"{stats.run}: {stats.topics['answered']} of {stats.topics['asked']} topics, {stats.system}"
    index, queries = stats.index, stats.queries
    if index:
        size = f", {_bytes(index['bytes'])} on disk" if index["bytes"] else ""
        speed = f"{index['documents_per_second']:,.0f} a second" if index["documents_per_second"] else ""
        yield "index", f"{index['documents']:,} documents in {index['seconds']:.2f} s, {speed}{size}"
    wait = queries.get("latency_ms")
    if wait:
        named = ", ".join(f"{name} {wait[name]:.3g}" for name in ("mean", "median", "p95", "p99"))
        rate = f"open loop, {queries['rate_per_second']:g} a second due" if queries["loop"] == "open" else "closed loop"
        yield "latency", f"{named} ms ({rate}, {_n(queries['clients'], 'client')})"
    if stats.throughput:
        yield "throughput", f"{stats.throughput:,.1f} queries a second, {_n(queries['count'], 'query', 'queries')}"
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
    """What is asked of what."""

    collection: Collection
    system: System
    spec: str  # as it may be written down
    queries: Sequence[Query]
    others: Sequence[Query]  # of the collection, that are not asked for
    k: int
    fields: Sequence[str]
    load: Load

    def head(self) -> dict[str, Any]:
        """What the journal says it belongs to."""
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
        raise ConventionError("a run is written to a file, as its journal and its statistics lie beside it; found -")
    every = queries_of(collection.topics, fields)
    queries = _chosen(every, topics, collection.name)
    if not queries:
        raise DataError(f"{collection.name}: no topics, so there is nothing to ask")
    asked = {query.id for query in queries}
    others = [query for query in every if query.id not in asked]
    task = _Task(collection, system, system.described(spec), queries, others, k, fields, load or Load())
    title = name or run_name(output)
    journal = Journal(output + ENDING, task.head(), resume)
    try:
        driven, stats = _asked(task, title, journal, progress)
        stats.cost, stats.made_at = cost.cost(price_per_hour, stats.throughput), made_at
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
    """What is searched for: the topics' fields, joined; an empty one is left out, one that a topic has not got is refused."""
    queries = []
    for topic in topics:
        own = {"title": topic.title, "description": topic.description, "narrative": topic.narrative}
        known = {**topic.fields, **own}
        for name in fields:
            if name not in known:
                raise ConventionError(f"topic {topic.id!r} has no field {name!r}; it has {', '.join(known)}")
        queries.append(Query(topic.id, " ".join(str(known[name]) for name in fields if known[name]), topic))
    return queries


def _chosen(queries: list[Query], topics: Iterable[str] | None, where: str) -> list[Query]:
    if topics is None:
        return queries
    wanted = list(topics)
    known = {query.id: query for query in queries}
    for topic in wanted:
        if topic not in known:
            raise DataError(f"{where}: no topic {topic!r}; it has {len(known)} others")
    return [known[topic] for topic in wanted]


def _asked(task: _Task, title: str, journal: Journal, progress: Progress | None) -> tuple[Driven, RunStats]:
    """Index and ask; the answers, and what they cost."""
    system, collection = task.system, task.collection
    sweep(tempfile.gettempdir(), "cranfield-")
    with tempfile.TemporaryDirectory(prefix=f"cranfield-{own_mark()}") as folder:
        cost.forget_peak()
        before = cost.peak_memory()
        index = _indexed(task, folder, progress) if system.indexes else {}
        driven = drive(system, task.queries, task.k, task.load, journal, progress, task.others)
        peak = cost.peak_memory() if system.in_process else None  # of an engine elsewhere nothing is known
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
        queries=cost.summary(driven, task.load, journal),
        memory={} if peak is None or before is None else {"peak_bytes": peak, "before_bytes": before},
        machine=cost.machine(),
        versions={"cranfield": __version__, "python": platform.python_version(), **system.versions()},
    )


def _indexed(task: _Task, folder: str, progress: Progress | None) -> dict[str, Any]:
    count = 0

    def counted() -> Iterator[Document]:
        nonlocal count
        for document in task.collection.documents():
            count += 1
            if progress is not None and count % 100 == 0:
                progress(count, None)
            yield document

    start = time.perf_counter()
    try:
        task.system.index(counted(), folder)
    except CranfieldError:
        raise
    except Exception as error:  # a full disk, or a mistake in somebody's function
        raise DataError(f"{task.spec}: indexing failed: {type(error).__name__}: {error}") from error
    if not count:
        if next(iter(task.collection.documents()), None) is None:
            raise DataError(f"{task.collection.name}: no documents, so there is nothing to find")
        return {}  # somebody's own `index` that takes none: there is no rate of indexing
    seconds = time.perf_counter() - start
    return {
        "documents": count,
        "seconds": round(seconds, 6),
        "documents_per_second": round(count / seconds, 2) if seconds > 0 else None,
        "bytes": cost.size_on_disk(folder) or None,
    }


def _run(driven: Driven, title: str, complete: bool, keeps_order: bool) -> tuple[Run, dict[str, Any]]:
    """The run, and what decides its order: the scores, or the list where they do not fall."""
    tag = "_".join(title.split()) + ("" if complete else PARTIAL)
    answers: dict[str, dict[str, float]] = {}
    for topic, hits in driven.answers.items():
        rows = answers.setdefault(topic, {})
        for document, score in hits:
            rows.setdefault(document, score)  # an engine that returns a document twice keeps its better place
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
        yield f"{_n(journal.damaged, 'line')} of the journal could not be read; what is missing was asked again"
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
