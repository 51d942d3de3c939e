"""Events over HTTP at a steady rate: plain asyncio, some connections, each request at its time whatever the last one took.

Latency counts from the time at which a request was due, so that a server that stops for a while is not flattered. Generator
and server share the machine. In the end the log is held against what was confirmed: every event once, none that nobody sent.
"""

from __future__ import annotations

import asyncio
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
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
PATIENT = 0.2  # the same under a crowd of strangers
STRANGER = "127.0.0.2"  # another address of this machine
NAME = "events.example"
IDLE, SLOW = 1000, 100  # connections of strangers
AGAIN = 5.0, 10.0  # seconds until one that was closed is opened again
LOADS = {"batches of 50": (200.0, 50), "single events": (1000.0, 1)}  # requests a second, events in each
CONNECTIONS = 32


@dataclass
class Load(Tally):
    """What came of a load; requests that were confirmed before its end, give or take how late an answer may be."""

    in_time: int = 0


class Wrong(Exception):
    """An event that was confirmed is missing, or one is there twice."""


@contextmanager
def serving(folder: Path, *options: str, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`cranfield online serve` as a process, and its port; behind a proxy the address that is printed has none."""
    shutil.copytree(PLANS, folder / "plans", dirs_exist_ok=True)
    command = [sys.executable, "-m", "cranfield", "online", "serve", "plans", "log", "--port", str(port)]
    child = subprocess.Popen([*command, "--pack", "20", *options], stderr=subprocess.PIPE, text=True, cwd=folder)
    assert child.stderr is not None
    try:
        for line in child.stderr:
            if found := re.search(r"https?://[^ /]+?(?::(\d+))?/$", line):
                yield child, int(found[1] or port)
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


async def client(
    port: int,
    numbers: range,
    mark: str,
    rate: float,
    size: int,
    began: float,
    tally: Load,
    headers: dict[str, str] | None = None,
) -> None:
    """One connection: request n is due n / rate seconds after the beginning; the range ends where the load does."""
    connection = Connection("127.0.0.1", port, headers or {})
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


def loaded(port: int, rate: float, size: int, seconds: float, mark: str, headers: dict[str, str] | None = None) -> Load:
    """So many requests a second for so long, and what came of them."""
    tally, requests = Load(), round(rate * seconds)

    async def everybody() -> None:
        began = time.monotonic()
        turns = (range(first, requests, CONNECTIONS) for first in range(CONNECTIONS))
        await asyncio.gather(*(client(port, turn, mark, rate, size, began, tally, headers) for turn in turns))

    asyncio.run(everybody())
    return tally


def proven(folder: Path, confirmed: dict[str, int]) -> None:
    """Hold the log against what was confirmed: requests and how many events each had."""
    from cranfield.experiments.log import EventLog, connect

    with EventLog(folder / "log") as log:
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


@contextmanager
def strangers(port: int, idle: int, slow: int) -> Iterator[None]:
    """Connections from another address, in a process of their own, that are held until the load ends."""
    code = f"from benchmarks.events import hold; hold({port}, {idle}, {slow})"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
    )
    assert child.stdout is not None
    try:
        child.stdout.readline()
        yield
    finally:
        child.terminate()
        child.wait(60)
        child.stdout.close()


def hold(port: int, idle: int, slow: int) -> None:
    """Hold connections that say nothing, and some that send a body without a token, a byte a second. Those that the server has
    closed are opened again after some seconds. Says a line when all were opened once."""
    import select

    head = f"POST /events HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\nContent-Length: 50000\r\n\r\n["
    there: dict[int, tuple[socket.socket, bool]] = {}
    due = [(0.0, number < slow) for number in range(idle + slow)]
    watched, ready = select.poll(), False
    while True:
        now = time.monotonic()
        again, due = [each for each in due if each[0] <= now], [each for each in due if each[0] > now]
        for _, is_slow in again:
            raw = socket.socket()
            raw.bind((STRANGER, 0))
            raw.connect(("127.0.0.1", port))
            there[raw.fileno()] = raw, is_slow
            watched.register(raw, select.POLLIN)
            if is_slow:
                with suppress(OSError):
                    raw.sendall(head.encode())
        if not ready:
            print("ready", flush=True)
            ready = True
        for number, _ in watched.poll(1000):
            raw, is_slow = there.pop(number)
            watched.unregister(number)
            raw.close()
            due.append((time.monotonic() + random.uniform(*AGAIN), is_slow))
        for raw, is_slow in there.values():
            if is_slow:
                with suppress(OSError):
                    raw.send(b" ")


def crowded(seconds: float, idle: int = IDLE, slow: int = SLOW) -> list[Row]:
    """Single events with a token while a stranger holds idle and slow connections."""
    from cranfield.experiments.service_tokens import ApplicationTokens

    rate = 200.0
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(dir=".") as home:
        folder = Path(home)
        headers = {"Host": NAME, "Authorization": f"Bearer {ApplicationTokens(str(folder / 'log')).new('bench')}"}
        proxy = ("--behind-proxy", "127.0.0.3", "--allow-host", NAME)  # which demands tokens; nobody comes through it
        with serving(folder, *proxy, port=port):
            loaded(port, 50.0, 1, min(2.0, seconds), secrets.token_hex(4), headers)
            with strangers(port, idle, slow):
                loaded(port, 50.0, 1, min(5.0, seconds), secrets.token_hex(4), headers)  # until all of them are there
                tally = loaded(port, rate, 1, seconds, secrets.token_hex(4), headers)
        proven(folder, dict.fromkeys(tally.confirmed, 1))
    if tally.refused:
        print(f"strangers: {len(tally.refused)} refused, such as {tally.refused[0]}", file=sys.stderr)
    where = f"single events, {idle:,} idle and {slow:,} slow strangers, {seconds:g} s"
    late = [Spread.of([tally.share(share)]) for share in (0.5, 0.99)]
    kept = tally.in_time / seconds
    return [
        Row("events kept", where, "serve", late[1], "the bar", None, kept, "a second", "ms", "≥", rate),
        Row("median", where, "serve", late[0], "", None, late[0].median * 1e3, "ms", "ms", "", None),
        Row("p99", where, "serve", late[1], "the bar", None, late[1].median * 1e3, "ms", "ms", "≤", PATIENT * 1e3),
    ]
