"""`make bench-web`: the workbench under load, timed from the outside. Bars are shown, and never fail.

Fifty assessors judge over HTTP on each database, with pauses and without; a browser judges by keys; pages are asked for in
a workspace of a million labels and of a hundred runs. Generator and server share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import table
from benchmarks.large_workspace import make_large
from benchmarks.load import Connection, Tally, judged
from benchmarks.logs import server as postgres
from benchmarks.suite import Plan
from benchmarks.table import Row
from benchmarks.timing import Spread
from cranfield.commands.judging import lists_of
from cranfield.inputs.workspace import make_example, open_bench
from cranfield.judging.adaptive_choice import find_models
from cranfield.judging.event import COLLECTION, Event
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from cranfield.store.accounts import Accounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PEOPLE = 50
SECONDS = 60.0
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
LATE, RATE = 0.1, 200.0  # seconds at the 95th percentile; judgments a second
KEY, PAINT = 0.05, 1.0
LEARNING = 0.1  # seconds from a key to the next document while a model is trained
FIRST, PAGE_CPU = 1.0, 10.0  # seconds: of the first content, and of CPU for the answer after one new label
MADE, FREEZE_CPU, FREEZE_MEMORY = 60.0, 6.0, 500.0  # seconds, seconds, megabytes
LOCK, BUSY = 100.0, 50.0  # milliseconds: a writer's wait, and a judgment during a freeze


class Wrong(Exception):
    """A judgment that was confirmed is missing, or one is there twice."""


@contextmanager
def serving(folder: Path, db: str | None = None) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`cranfield serve` with accounts as a process, and its port."""
    command = [sys.executable, "-m", "cranfield", "serve", str(folder), "--port", "0", "--accounts"]
    child = subprocess.Popen([*command, *(["--db", db] if db else [])], stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    try:
        for line in child.stderr:
            found = re.search(r"http://[^ ]*:(\d+)/", line)
            if found:
                yield child, int(found[1])
                break
        else:
            raise RuntimeError("the server did not start")
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(30)
        child.stderr.close()


def prepared(folder: Path, db: str | None, people: int, documents: int) -> list[str]:
    """A workspace with a round of so many documents, and the secrets of so many assessors."""
    if not folder.exists():
        make_example(folder)
    bench = open_bench(folder, db)
    known = [f"d{number:03d}" for number in range(1, 333)]
    topics = [f"{topic}" for topic in range(101, 175)]
    asked = [RoundItem(topics[i // 332 % 74], known[i % 332]) for i in range(min(documents, 332 * 74))]
    open_round(bench.log, Round(name="1"), asked)
    accounts = Accounts(bench.database)
    secrets = []
    for number in range(people):
        accounts.create(f"a{number}", "assessor", "no password")
        secrets.append(accounts.begin(f"a{number}"))
    bench.close()
    return secrets


def proven(folder: Path, db: str | None, tally: Tally, sent: set[str]) -> None:
    """Stop where a confirmed judgment is not in the log just once."""
    bench = open_bench(folder, db)
    ids = [event.id for event in bench.log.events() if event.kind == "judgment" and event.source != COLLECTION]
    bench.close()
    missing, doubled, strange = tally.confirmed - set(ids), len(ids) - len(set(ids)), set(ids) - sent
    if missing or doubled or strange:
        raise Wrong(
            f"{len(missing)} confirmed judgments are missing, {doubled} are doubled, {len(strange)} are strange"
        )


def places(url: str | None) -> list[tuple[str, str | None]]:
    """Each kind of database."""
    return [("SQLite", None), *([] if url is None else [("PostgreSQL", url)])]


def assessors(plan: Plan, scale: float = 1.0) -> list[Row]:
    """Fifty assessors with a judgment a second each, and without pauses."""
    rows = []
    people, seconds = max(2, round(PEOPLE * min(1.0, scale * 5))), max(2.0, SECONDS * scale)
    with postgres() as url, tempfile.TemporaryDirectory(dir=".") as home:
        for kind, db in places(url):
            folder = Path(home) / kind
            cookies = prepared(folder, db, people, 24_000)
            sent: set[str] = set()
            for pause in (1.0, 0.0):
                with serving(folder, db) as (_, port):
                    named = [f"cranfield-{port}={secret}" for secret in cookies]
                    took = seconds if pause else seconds / 3
                    tally = judged(("127.0.0.1", port), named, took, pause)
                sent |= tally.sent
                proven(folder, db, tally, sent)
                rows += _rows(kind, people, pause, tally, took)
    return rows


def _rows(kind: str, people: int, pause: float, tally: Tally, took: float) -> list[Row]:
    where = f"{kind}, {people} assessors"
    if tally.refused:
        print(f"{where}: {len(tally.refused)} refused, such as {tally.refused[0]}", file=sys.stderr)
    late = Spread.of([tally.share(0.95)])
    if pause:
        what = f"a judgment a second each, {took:.0f} s, p95"
        return [Row(what, where, "serve", late, "the bar", None, late.median * 1e3, "ms", "ms", "≤", LATE * 1e3)]
    rate = len(tally.confirmed) / took
    return [Row("judgments without pauses", where, "serve", late, "the bar", None, rate, "a second", "ms", "≥", RATE)]


@contextmanager
def judging_page(port: int, secret: str) -> Iterator[Any]:
    """`/judge` in Chromium; None if there is no browser."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        print("no browser, or no playwright: keys are not measured", file=sys.stderr)
        yield None
        return
    with sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        context = opened.new_context(base_url=f"http://127.0.0.1:{port}")
        context.add_cookies([{"name": f"cranfield-{port}", "value": secret, "url": f"http://127.0.0.1:{port}"}])
        page = context.new_page()
        page.goto("/judge")
        page.evaluate(PAINTED)
        yield page
        opened.close()


def browser(plan: Plan, scale: float = 1.0) -> list[Row]:
    """Keys pressed in Chromium: until the next document is painted; and the first paint of the page."""
    with tempfile.TemporaryDirectory(dir=".") as home:
        folder = Path(home) / "w"
        [secret] = prepared(folder, None, 1, 500)
        with serving(folder) as (_, port), judging_page(port, secret) as page:
            if page is None:
                return []
            first = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1e3
            taken = [page.evaluate(PRESS) / 1e3 for _ in range(max(5, round(100 * scale)))]
    taken.sort()
    late = Spread.of([taken[int(0.95 * len(taken))]])
    paint = Spread.of([first])
    return [
        Row(
            f"a key until the next document is painted, p95 of {len(taken)}",
            "Chromium",
            "/judge",
            late,
            "the bar",
            None,
            late.median * 1e3,
            "ms",
            "ms",
            "≤",
            KEY * 1e3,
        ),
        Row("first paint", "Chromium", "/judge", paint, "the bar", None, paint.median, "s", "ms", "≤", PAINT),
    ]


def learning(plan: Plan, scale: float = 1.0) -> list[Row]:
    """Keys pressed in Chromium in a round whose model is trained meanwhile, with the labels of others as well."""
    presses = max(5, round(100 * scale))
    with tempfile.TemporaryDirectory(dir=".") as home:
        folder = Path(home) / "w"
        secret, *others = _learning_round(folder)
        with serving(folder) as (_, port), ThreadPoolExecutor(1) as beside:
            named = [f"cranfield-{port}={each}" for each in others]
            tally = beside.submit(judged, ("127.0.0.1", port), named, 0.4 * presses, 1.0)
            with judging_page(port, secret) as page:
                taken = [] if page is None else sorted(page.evaluate(PRESS) / 1e3 for _ in range(presses))
            confirmed = len(tally.result().confirmed)
        with closing(open_bench(folder)) as bench, bench.log.reading() as transaction:
            trained = sum(each.labels for each in find_models(transaction, "1"))
    if not taken:
        return []
    where = f"Chromium, and {len(others)} people with {confirmed} labels; {trained} labels in the models"
    rows = []
    for name, quantile, bar in (("p50", 0.5, None), ("p95", 0.95, LEARNING)):
        late = Spread.of([taken[int(quantile * len(taken))]])
        what = f"a key until the next document, cal, {name} of {len(taken)}"
        limit = ("≤", bar * 1e3) if bar else ()
        rows.append(Row(what, where, "/judge", late, "the bar", None, late.median * 1e3, "ms", "ms", *limit))
    return rows


def _learning_round(folder: Path) -> list[str]:
    """A workspace with an adaptive round that reads documents, and the secrets of ten assessors."""
    make_example(folder)
    with closing(open_bench(folder)) as bench:
        lists = lists_of([run.path for run in bench.runs()], 100, None)
        open_round(bench.log, Round(name="1", strategy="cal", lists=lists), [])
        accounts = Accounts(bench.database)
        for number in range(10):
            accounts.create(f"a{number}", "assessor", "no password")
        return [accounts.begin(f"a{number}") for number in range(10)]


# the policy of the pages forbids what Playwright's wait_for_function does with a string
PAINTED = """async () => {
  while (!performance.getEntriesByName("first-contentful-paint").length) await new Promise(requestAnimationFrame);
}"""

# press 1, wait until it is another document, then until that was painted; a pause as of somebody who reads
PRESS = """async () => {
  const shown = () => document.getElementById("doc-id").textContent;
  const before = shown(), began = performance.now();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "1", code: "Digit1", bubbles: true }));
  while ((!shown() || shown() === before) && performance.now() - began < 2000) await new Promise(requestAnimationFrame);
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const took = performance.now() - began;
  await new Promise((done) => setTimeout(done, 500));
  return took;
}"""


def large(plan: Plan, scale: float = 1.0) -> list[Row]:
    """A million labels and a hundred runs: a freeze, each page at once and after one new label, a freeze while people judge."""
    rows = []
    with postgres() as url, tempfile.TemporaryDirectory(dir=".") as home:
        for kind, db in places(url):
            folder, began = Path(home) / kind, time.perf_counter()
            make_large(folder, db, scale)
            took = time.perf_counter() - began
            rows.append(_row("the workspace is made", kind, took, MADE))
            lead, cookies = _accounts(folder, db)
            rows += _frozen_alone(kind, folder, db)
            with serving(folder, db) as (child, port):
                rows += asyncio.run(_pages(kind, folder, db, child.pid, port, lead))
            rows += _frozen_while_judging(kind, folder, db, lead, cookies, max(6.0, SECONDS * scale / 2))
    return rows


def _row(what: str, where: str, value: float, bar: float, unit: str = "s") -> Row:
    """One figure beside its bar: seconds, milliseconds or megabytes."""
    spread = Spread.of([value * {"s": 1, "ms": 1e-3, "MB": 1e6}[unit]])
    return Row(what, where, "serve", spread, "the bar", None, value, unit, unit, "≤", bar)


def _accounts(folder: Path, db: str | None) -> tuple[str, list[str]]:
    """The secrets of a lead and of the assessors."""
    bench = open_bench(folder, db)
    accounts = Accounts(bench.database)
    accounts.create("lead", "lead", "no password")
    names = [f"b{number}" for number in range(PEOPLE)]
    for name in names:
        accounts.create(name, "assessor", "no password")
    secrets = accounts.begin("lead"), [accounts.begin(name) for name in names]
    bench.close()
    return secrets


FREEZE = """
import resource, sys
from cranfield.inputs.workspace import open_bench
from cranfield.judging.versions import freeze
bench = open_bench(sys.argv[1], sys.argv[2] or None)
before = resource.getrusage(resource.RUSAGE_SELF)
freeze(bench.log, "alone", "latest")
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, after.ru_maxrss / 1024)
"""


def _frozen_alone(kind: str, folder: Path, db: str | None) -> Iterator[Row]:
    """CPU and memory of a freeze, and the longest wait of somebody who writes without pause meanwhile."""
    longest, done = 0.0, threading.Event()

    def write_without_pause() -> None:
        nonlocal longest
        bench = open_bench(folder, db)
        while not done.wait(0.002):
            began = time.perf_counter()
            bench.log.write(lambda transaction: transaction.add([], bench.log.name))
            longest = max(longest, time.perf_counter() - began)
        bench.close()

    writer = threading.Thread(target=write_without_pause)
    writer.start()
    command = [sys.executable, "-c", FREEZE, str(folder), db or ""]
    used = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    done.set()
    writer.join()
    yield _row("freeze by latest, CPU", kind, float(used[0]), FREEZE_CPU)
    yield _row("freeze by latest, memory", kind, float(used[1]), FREEZE_MEMORY, "MB")
    yield _row("the longest wait of a writer during a freeze", kind, longest * 1e3, LOCK, "ms")


def _frozen_while_judging(
    kind: str, folder: Path, db: str | None, lead: str, cookies: list[str], seconds: float
) -> Iterator[Row]:
    """How late judgments are while a lead freezes a version."""
    with serving(folder, db) as (_, port):
        post = threading.Timer(seconds / 5, lambda: asyncio.run(_freeze_now(port, lead)))
        post.start()
        tally = judged(("127.0.0.1", port), [f"cranfield-{port}={cookie}" for cookie in cookies], seconds, 1.0)
        post.join()
    yield _row(
        f"a judgment a second each during a freeze, {seconds:.0f} s, p95", kind, tally.share(0.95) * 1e3, BUSY, "ms"
    )


async def _freeze_now(port: int, lead: str) -> None:
    connection = Connection("127.0.0.1", port, {"Cookie": f"cranfield-{port}={lead}"}, patience=600.0)
    status, values = await connection.post("/versions.json", {"name": "busy", "policy": "latest"})
    if status != 200:
        print(f"the freeze answers {status}: {values}", file=sys.stderr)
    connection.close()


PAGES = (
    "/",
    "/rounds",
    "/round?name=1",
    "/runs",
    "/compare?one=run0&other=run1",
    "/topic",
    "/topic?topic=7",
    "/label?topic=7&document=d7",
    "/agreement",
    "/adjudicate",
    "/versions",
    "/version?name=alone",
    "/judge",
)


async def _pages(kind: str, folder: Path, db: str | None, pid: int, port: int, secret: str) -> list[Row]:
    """Each page as soon as it answers, and the CPU until its answer is there, at first and after one new label."""
    connection = Connection("127.0.0.1", port, {"Cookie": f"cranfield-{port}={secret}"})
    bench = open_bench(folder, db)
    rows = []
    for path in PAGES:
        name = path.partition("?")[0]
        await _settled(connection, path, pid)
        bench.log.add([Event(topic="7", document="d7", grade=1, assessor="a14")])
        now = bench.log.place()
        first, _ = await _answered(connection, path)
        _, used = await _settled(connection, f"{path}{'&' if '?' in path else '?'}of={now}", pid)
        rows.append(_row(f"page {name}, first content", kind, first, FIRST))
        rows.append(_row(f"page {name}, CPU of its answer after one new label", kind, used, PAGE_CPU))
    bench.close()
    connection.close()
    return rows


async def _answered(connection: Connection, path: str) -> tuple[float, bytes]:
    began = time.perf_counter()
    body = await connection.get(path)
    return time.perf_counter() - began, body


async def _settled(connection: Connection, path: str, pid: int) -> tuple[bytes, float]:
    """A page once its jobs are done, and the CPU that the server and its workers used for it."""
    before, began = _cpu(pid), time.perf_counter()
    body = await connection.get(path)
    while b"data-job" in body and time.perf_counter() - began < 600:
        await asyncio.sleep(0.5)
        body = await connection.get(path)
    return body, _cpu(pid) - before


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process and its children have used."""
    own = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task").glob("*/children")
    pids = [int(child) for path in children for child in path.read_text().split()]
    ticks = sum(map(int, own[11:15]))  # its own, and those of children that have ended
    return ticks / os.sysconf("SC_CLK_TCK") + sum(map(_cpu, pids))


def documents(plan: Plan, scale: float = 1.0) -> list[Row]:
    """A million documents by id."""
    from benchmarks.shelf import documents as by_id

    return by_id(plan, scale)


SECTIONS: dict[str, Callable[[Plan, float], list[Row]]] = {
    "assessors": assessors,
    "browser": browser,
    "documents": documents,
    "large": large,
    "learning": learning,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the sections asked for and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.web", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=SECTIONS, action="append", help="measure this part only (may be repeated)")
    parser.add_argument("--repeats", type=int, default=3, help="how often a document's index is made (3)")
    parser.add_argument("--scale", type=float, default=1.0, help="shrink what is made, to try things out (1.0)")
    given = parser.parse_args(arguments)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        rows = [row for name in given.only or SECTIONS for row in SECTIONS[name](Plan(given.repeats, 0), given.scale)]
    except Wrong as error:
        print(f"void: {error}", file=sys.stderr)
        return 1
    print(table.text(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
