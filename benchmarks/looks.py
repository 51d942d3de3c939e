"""Looks at a log of a million labels, timed: what each page of a workbench reads, and the qrels that stand."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert

from benchmarks.logs import places, server
from benchmarks.table import Row
from benchmarks.timing import Spread
from cranfield.judging import open_log
from cranfield.judging.event import DEFAULTS
from cranfield.judging.log_queries import about, decide_log, mine, waiting
from cranfield.store import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.suite import Plan
    from cranfield.judging.database_log import DatabaseLog

LABELS, TOPICS, PEOPLE, MANY = 1_000_000, 250, 50, 20_000
TIME = "2026-03-01T00:00:00.{:06d}Z"
STANDING = tables.standing.c.keys()


def looks(plan: Plan, scale: float = 1.0) -> list[Row]:
    """Each look at each kind of database."""
    rows: list[Row] = []
    count = max(1000, round(LABELS * scale))
    with tempfile.TemporaryDirectory(dir=".") as folder, server() as url:
        for kind, place in places(Path(folder), url):
            if kind == "JSON lines":
                continue
            log: Any = open_log(place)
            load(log, count)
            for what, look in looked_at(log, count).items():
                taken = Spread.of([seconds(look) for _ in range(plan.repeats)])
                where = f"{kind}, {count:,} labels"
                rows.append(Row(what, where, "cranfield", taken, "", None, taken.median * 1e3, "ms", "ms"))
            log.close()
    return rows


def looked_at(log: DatabaseLog, count: int) -> dict[str, Callable[[], Any]]:
    """What pages ask for."""
    return {
        "how far the log goes": log.place,
        "events since a place": lambda: waiting(log, count - 1000),
        "my last 50 labels": lambda: mine(log, "a7"),
        "all about a document": lambda: about(log, "q7", "d7"),
        "all of a topic": lambda: about(log, "q7"),
        "qrels by latest": lambda: decide_log(log, "latest"),
        "qrels by majority": lambda: decide_log(log, "majority"),
    }


def seconds(work: Callable[[], Any]) -> float:
    """How long some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def load(log: DatabaseLog, count: int) -> None:
    """Labels of many people, two on each document, straight into the tables."""
    for start in range(0, count, MANY):
        rows = list(made(start, min(start + MANY, count)))
        stand = [
            {name: row[name] for name in STANDING if name in row} | {"side": "label", "event": row["id"]}
            for row in rows
        ]
        log.database.write(lambda connection, rows=rows: connection.execute(insert(tables.events), rows))  # type: ignore[misc]
        log.database.write(lambda connection, stand=stand: connection.execute(insert(tables.standing), stand))  # type: ignore[misc]


def made(start: int, end: int) -> Iterator[dict[str, Any]]:
    """Rows of events."""
    for number in range(start, end):
        time = TIME.format(number % 1_000_000)
        yield DEFAULTS | {
            "id": f"e{number:09d}",
            "topic": f"q{number // 2 % TOPICS}",
            "document": f"d{number // 2}",
            "grade": float(number % 3 % 2),
            "assessor": f"a{number % PEOPLE}",
            "time": time,
            "received": time,
        }
