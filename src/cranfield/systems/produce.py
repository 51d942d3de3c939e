"""A collection and a system → a run, and what it cost: index, ask, write.

The run is written whole. One that lacks topics because they failed is still written, its tag ends in `-partial`, its
statistics say which topics failed and why, and its journal stays, so that `--resume` asks only those.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Entries, Layout
from cranfield.errors import ConventionError, CranfieldError, DataError
from cranfield.formats import write_run
from cranfield.formats.run_stats import RunStats, write_run_stats
from cranfield.formats.streams import run_name
from cranfield.run import Run
from cranfield.systems import machine, timing
from cranfield.systems.drive import Driven, Load, drive
from cranfield.systems.journal import ENDING, Journal
from cranfield.systems.system import Query, System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cranfield.answer import Part
    from cranfield.collection import Collection, Document, Topic

    Progress = Callable[[int, int | None], None]


PARTIAL = "-partial"


@dataclass(frozen=True)
class Produced(Answer):
    """A run, its statistics, and sentences to show."""

    run: Run
    stats: RunStats
    remarks: tuple[str, ...]

    def content(self, how: Layout) -> list[Part]:
        return [Entries(list(_facts(self.stats)), indent=0, margin=12)]

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


def queries_of(topics: Iterable[Topic], fields: Sequence[str]) -> list[Query]:
    """What is searched for: the topics' fields, joined; an empty one is left out, one that a topic has not got is refused."""
    found = []
    for topic in topics:
        known = {
            **topic.fields,
            "title": topic.title,
            "description": topic.description,
            "narrative": topic.narrative,
        }
        for name in fields:
            if name not in known:
                raise ConventionError(f"topic {topic.id!r} has no field {name!r}; it has {', '.join(known)}")
        text = " ".join(str(known[name]) for name in fields if known[name])
        found.append(Query(topic.id, text, topic))
    return found


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
    if k < 1:
        raise ConventionError(f"k must be 1 or more, got {k}")
    if price_per_hour is not None and not 0 <= price_per_hour < math.inf:
        raise ConventionError(f"the price of an hour must be 0 or more, got {price_per_hour:g}")
    if output == "-":
        raise ConventionError("a run is written to a file, as its journal and its statistics lie beside it; found -")
    queries = _chosen(queries_of(collection.topics, fields), topics, collection.name)
    if not queries:
        raise DataError(f"{collection.name}: no topics, so there is nothing to ask")
    how, spec = load or Load(), system.described(spec)
    title = name or run_name(output)
    asked = {"journal": 1, "system": spec, "collection": collection.name, "k": k, "fields": list(fields)}
    journal = Journal(output + ENDING, asked, resume)
    try:
        with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
            machine.forget_peak()
            before = machine.peak_memory()
            index = _indexed(system, spec, collection, folder, progress)
            driven = drive(system, queries, k, how, journal, progress)
            memory = _memory(system, before)
    except BaseException:
        journal.keep()
        raise
    stats = _stats(title, spec, collection, queries, k, fields, index, driven, journal, how, memory)
    stats.cost = timing.cost(price_per_hour, stats.throughput)
    stats.versions, stats.made_at = machine.versions(system.versions()), made_at
    if not driven.answers:
        journal.keep()
        first = next(iter(driven.failed.items()))
        raise DataError(f"{spec}: no topic was answered, nothing is written; topic {first[0]!r}: {first[1]}")
    run = _run(driven, title, stats.complete)
    try:
        write_run(run, output)
        write_run_stats(stats, output)
    except BaseException:
        journal.keep()
        raise
    (journal.discard if stats.complete else journal.keep)()
    return Produced(run, stats, tuple(_notes(stats, driven, how, output, journal)))


def _chosen(queries: list[Query], topics: Iterable[str] | None, where: str) -> list[Query]:
    if topics is None:
        return queries
    wanted = list(topics)
    known = {query.id: query for query in queries}
    for topic in wanted:
        if topic not in known:
            raise DataError(f"{where}: no topic {topic!r}; it has {len(known)} others")
    return [known[topic] for topic in wanted]


def _indexed(
    system: System, spec: str, collection: Collection, folder: str, progress: Progress | None
) -> dict[str, Any]:
    if not system.needs_documents:
        return {}
    count = 0

    def counted() -> Iterator[Document]:
        nonlocal count
        for document in collection.documents():
            count += 1
            if progress is not None and count % 100 == 0:
                progress(count, None)
            yield document

    start = time.perf_counter()
    try:
        system.index(counted(), folder)
    except CranfieldError:
        raise
    except Exception as error:  # a full disk, or a mistake in somebody's function
        raise DataError(f"{spec}: indexing failed: {type(error).__name__}: {error}") from error
    if not count:
        raise DataError(f"{collection.name}: no documents, so there is nothing to find")
    seconds = time.perf_counter() - start
    size = machine.size_on_disk(folder)
    return {
        "documents": count,
        "seconds": round(seconds, 6),
        "documents_per_second": round(count / seconds, 2) if seconds > 0 else None,
        "bytes": size or None,
    }


def _memory(system: System, before: int | None) -> dict[str, Any]:
    """The most memory held while indexing and asking; of an engine elsewhere nothing is known."""
    peak = machine.peak_memory()
    if not system.in_process or peak is None or before is None:
        return {}
    return {"peak_bytes": peak, "before_bytes": before}


def _run(driven: Driven, title: str, complete: bool) -> Run:
    tag = "_".join(title.split()) + ("" if complete else PARTIAL)
    answers: dict[str, dict[str, float]] = {}
    for topic, hits in driven.answers.items():
        rows: dict[str, float] = {}
        for document, score in hits:
            rows.setdefault(document, score)  # an engine that returns a document twice keeps its better place
        answers[topic] = rows
    return Run(answers, title, tag)


def _stats(
    title: str,
    spec: str,
    collection: Collection,
    queries: Sequence[Query],
    k: int,
    fields: Sequence[str],
    index: dict[str, Any],
    driven: Driven,
    journal: Journal,
    how: Load,
    memory: dict[str, Any],
) -> RunStats:
    answered = [query.id for query in queries if query.id in driven.answers]
    asked = timing.summary(
        driven.waits, driven.elapsed, clients=how.clients, rate=how.rate, passes=how.passes, retries=driven.retries
    )
    asked["warmup"] = {"count": len(driven.warm), "latency_ms": timing.latency(driven.warm)}
    asked["resumed_topics"] = len(journal.answers)
    if journal.waits:  # timed by the process that was cut short
        every = [*journal.waits.values(), *driven.waits]
        asked["latency_ms"], asked["histogram"] = timing.latency(every), timing.histogram(every)
    if how.rate is not None:
        asked["late"] = driven.late
    if not driven.waits and driven.elapsed and len(answered) > len(journal.answers):  # answered in one go
        asked["count"] = len(answered) - len(journal.answers)
        asked["throughput_per_second"] = round(asked["count"] / driven.elapsed, 4)
    return RunStats(
        run=title,
        system=spec,
        collection={"name": collection.name, "documents": collection.n_documents, "topics": len(queries)},
        k=k,
        fields=list(fields),
        complete=not driven.failed,
        topics={
            "asked": len(queries),
            "answered": len(answered),
            "empty": sum(not driven.answers[topic] for topic in answered),
            "failed": dict(driven.failed),
        },
        index=index,
        queries=asked,
        memory=memory,
        machine=machine.machine(),
    )


def _notes(stats: RunStats, driven: Driven, how: Load, output: str, journal: Journal) -> list[str]:
    notes = []
    if journal.answers:
        now = len(driven.waits) or stats.queries["count"]
        notes.append(
            f"{_n(len(journal.answers), 'topic')} came from the journal; "
            f"throughput and cost are those of the {_n(now, 'query', 'queries')} asked now"
        )
    if stats.topics["empty"]:
        notes.append(f"no document was found for {_n(stats.topics['empty'], 'topic')}")
    if driven.late:
        notes.append(
            f"{driven.late} of {len(driven.waits)} queries were sent late, as all {how.clients} clients were busy; their "
            "wait counts from when they were due"
        )
    if driven.failed:
        topic, why = next(iter(driven.failed.items()))
        notes.append(
            f"PARTIAL: {len(driven.failed)} of {stats.topics['asked']} topics failed (topic {topic!r}: {why}); "
            f"{output} holds the others, {os.path.basename(journal.path)} is kept for --resume"
        )
    return notes


def _n(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
