"""Events over HTTP at a steady rate: plain asyncio, some connections, each request at its time whatever the last one took.

Latency counts from the time at which a request was due, so that a server that stops for a while is not flattered. Generator
and server share the machine. In the end the log is held against what was confirmed: every event once, none that nobody sent.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.load import Connection, Tally
from benchmarks.table import Row
from benchmarks.timing import Spread

if TYPE_CHECKING:
    from collections.abc import Iterator

PLANS = Path(__file__).parents[1] / "examples" / "online" / "plans"
SECONDS = 60.0
LATE = 0.1  # seconds, of the 99th of a hundred
LOADS = {"batches of 50": (200.0, 50), "single events": (1000.0, 1)}  # requests a second, events in each
CONNECTIONS = 32


@dataclass
class Load(Tally):
    """What came of a load; requests that were confirmed before its end, give or take how late an answer may be."""

    in_time: int = 0


class Wrong(Exception):
    """An event that was confirmed is missing, or one is there twice."""


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`cranfield online serve` as a process, and its port."""
    shutil.copytree(PLANS, folder / "plans", dirs_exist_ok=True)
    command = [sys.executable, "-m", "cranfield", "online", "serve", "plans", "log", "--port", "0", "--pack", "20"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder)
    assert child.stderr is not None
    try:
        for line in child.stderr:
            if found := re.search(r"http://[^ ]*:(\d+)/", line):
                yield child, int(found[1])
                return
        raise RuntimeError("it did not start")
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(60)
        child.stderr.close()


def batch(mark: str, number: int, size: int) -> bytes:
    """Clicks of a few hundred bytes each, as a page sends them."""
    now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    events = (
        f'{{"event_id": "{mark}-{number}-{i}", "time": "{now}.{i:06d}Z", "kind": "click", "unit": "user-{number % 5000}", '
        f'"session": "session-{number % 20000}", "search": "search-{number}", "query": "garden hose", '
        f'"document": "document-{i}", "position": {i + 1}, "attributes": {{"agent": "Mozilla/5.0 (X11; Linux x86_64)"}}}}'
        for i in range(size)
    )
    return b"[" + ", ".join(events).encode() + b"]"


async def client(port: int, numbers: range, mark: str, rate: float, size: int, began: float, tally: Load) -> None:
    """One connection: request n is due n / rate seconds after the beginning; the range ends where the load does."""
    connection = Connection("127.0.0.1", port, {})
    for number in numbers:
        due = began + number / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        status, body = await connection.ask("POST", "/events", batch(mark, number, size))
        tally.seconds.append(time.monotonic() - due)
        if status == 202:
            tally.confirmed.add(f"{mark}-{number}")
            tally.in_time += time.monotonic() <= began + numbers.stop / rate + LATE
        else:
            tally.refused.append(f"{status} {body[:200]!r}")
    connection.close()


def loaded(port: int, rate: float, size: int, seconds: float, mark: str) -> Load:
    """So many requests a second for so long, and what came of them."""
    tally, requests = Load(), round(rate * seconds)

    async def everybody() -> None:
        began = time.monotonic()
        turns = (range(first, requests, CONNECTIONS) for first in range(CONNECTIONS))
        await asyncio.gather(*(client(port, turn, mark, rate, size, began, tally) for turn in turns))

    asyncio.run(everybody())
    return tally


def proven(folder: Path, confirmed: dict[str, int]) -> None:
    """Hold the log against what was confirmed: requests and how many events each had."""
    from cranfield.online.log import Log, connect

    with Log(folder / "log") as log:
        relation = log.relation(connect())
        [(rows, ids)] = relation.aggregate("count(*), count(DISTINCT event_id)").fetchall()
        requests = relation.project("regexp_extract(event_id, '^(.*)-', 1) AS request").aggregate(
            "request, count(*) AS n"
        )
        counts = dict(requests.fetchall())
    lacking = [request for request, size in confirmed.items() if counts.get(request) != size]
    if rows != ids or lacking:
        raise Wrong(f"{rows - ids} events twice, {len(lacking)} confirmed requests not whole in the log")


def measured(seconds: float) -> list[Row]:
    """Each load in turn on a server of its own."""
    rows = []
    for name, (rate, size) in LOADS.items():
        with tempfile.TemporaryDirectory(dir=".") as home:
            folder = Path(home)
            with serving(folder) as (_, port):
                loaded(port, min(rate, 50.0), size, min(2.0, seconds), secrets.token_hex(4))  # until all is imported
                tally = loaded(port, rate, size, seconds, secrets.token_hex(4))
            proven(folder, dict.fromkeys(tally.confirmed, size))
        if tally.refused:
            print(f"{name}: {len(tally.refused)} refused, such as {tally.refused[0]}", file=sys.stderr)
        late = Spread.of([tally.share(0.99)])
        kept = tally.in_time * size / seconds
        where = f"{name}, {seconds:g} s"
        rows += [
            Row("events kept", where, "serve", late, "the bar", None, kept, "a second", "ms", "≥", rate * size),
            Row("p99", where, "serve", late, "the bar", None, late.median * 1e3, "ms", "ms", "≤", LATE * 1e3),
        ]
    return rows
