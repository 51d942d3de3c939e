"""Measure cranfield beside its peers and print one table of ratios. Bars are shown with a verdict, but never fail.

Exit code 0 when everything was measured, 1 when two contenders did not compute the same means, 3 when a program that
is measured failed.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import driving, importing, peers, pool, sets, significance, suite, table, unusual
from benchmarks.agreement import VoidError
from benchmarks.timing import FailedError

HISTORY = Path(__file__).parent / "history.jsonl"
SECTIONS = ("start", "files", "unusual", "dicts", "significance", "import", "driving", "pool")
RIVALS = ("pytrec_eval", "ir_measures", "ranx")


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--quick", action="store_true", help="only the small set S")
    parser.add_argument("--large", action="store_true", help="also L: 100 runs, 25 million lines, 1.1 GB on disk")
    parser.add_argument(
        "--slow", action="store_true", help="also the peers that need minutes: ir_measures and ranx on L"
    )
    parser.add_argument("--sets", help="these sets and no others, with commas: S,M,L")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="measure this part only (may be repeated)")
    parser.add_argument("--repeats", type=int, default=5, help="how often cranfield is measured (5)")
    parser.add_argument("--peer-repeats", type=int, default=3, help="how often each peer is (3)")
    parser.add_argument("--starts", type=int, default=suite.STARTS, help="how often each start is (15)")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, with commas (1,2)")
    parser.add_argument("--scale", type=float, default=1.0, help="shrink the sets, to try things out (1.0)")
    parser.add_argument("--ties", type=float, help="the chance that a score equals the one above it (0.015)")
    parser.add_argument("--order", choices=sets.ORDERS, help="the order of a run's lines (sorted)")
    parser.add_argument("--no-peers", action="store_true", help="measure cranfield alone; install nothing")
    parser.add_argument("--data", type=Path, default=sets.ROOT, help="where the sets are kept")
    parser.add_argument(
        "--history", type=Path, help="where to add the result (benchmarks/history.jsonl, full size only)"
    )
    parser.add_argument("--report", action="store_true", help="print the newest result as Markdown; measure nothing")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    given = options(arguments)
    if given.report:
        try:
            print(table.markdown(table.last(given.history or HISTORY)))
        except FileNotFoundError as error:
            print(error, file=sys.stderr)
            return 3
        return 0
    try:
        entry = measure(given)
    except VoidError as error:
        print(f"void: {error}", file=sys.stderr)
        return 1
    except FailedError as error:
        print(f"stopped: {error}", file=sys.stderr)
        return 3
    for line in entry["sets"]:
        print(line)
    print(f"{table.describe(entry['machine'])}; kernel: {entry['kernel']}\n")
    print(table.text([table.Row.read(row) for row in entry["rows"]]))
    history = given.history or (HISTORY if usual(given) else None)
    if history:
        table.append(history, entry)
    return 0


def usual(given: argparse.Namespace) -> bool:
    """Whether a result belongs in the history: the sets as documented, with peers, and all parts."""
    return given.scale == 1 and given.ties is None and not (given.order or given.no_peers or given.only or given.sets)


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Make the sets, install the peers, measure, and put it all into one entry."""
    plan = suite.Plan(given.repeats, given.peer_repeats, tuple(map(int, given.threads.split(","))), given.starts)
    names = given.sets.split(",") if given.sets else sizes(given)
    versions = {} if given.no_peers else peers.ensure()
    five, *chosen = [
        sets.ensure(sets.spec(name, given.scale, given.ties, given.order), given.data) for name in ["five", *names]
    ]
    suite.prepare(plan, versions, five)
    parts = given.only or SECTIONS
    rows: list[table.Row] = []
    if "start" in parts:
        rows += suite.start(plan, five)
    for data in chosen:
        if "files" in parts:
            rows += suite.files(plan, data, RIVALS if data.name != "L" or given.slow else RIVALS[:1])
        if "unusual" in parts and data.name == "S":
            rows += unusual.lines(plan, data) + unusual.formats(plan, five, given.scale)
        if "dicts" in parts and data.name != "L":
            rows += suite.dicts(plan, data)
        if "pool" in parts and data.name == "L":
            rows += pool.pool(plan, data)
    if "significance" in parts:
        rows += significance.significance(plan, given.scale)
        rows += significance.commands(plan, given.scale)
    if "import" in parts:
        rows += importing.importing(plan, given.scale)
    if "driving" in parts:
        rows += driving.driving(plan, given.scale)
    return {
        **circumstances(versions),
        "sets": [sets.describe(data) for data in [five, *chosen]],
        "rows": [row.plain() for row in table.together(rows)],
    }


def sizes(given: argparse.Namespace) -> list[str]:
    """The sets that the options ask for."""
    return ["S", *([] if given.quick else ["M"]), *(["L"] if given.large else [])]


def circumstances(versions: dict[str, str]) -> dict[str, Any]:
    """When, what and where."""
    asked = (
        "import cranfield as c, numpy, cranfield.base.kernels as k; print(c.__version__, numpy.__version__, k.NATIVE)"
    )
    answer = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True).stdout
    version, numpy, native = answer.split()
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "version": version,
        "commit": commit(),
        "kernel": "C core" if native == "True" else "NumPy twin",
        "peers": versions,
        "machine": machine(numpy),
    }


def machine(numpy: str) -> dict[str, Any]:
    """What speeds depend on, and nothing that names a computer."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cores": cores,
        "processor": processor(),
        "memory_gb": round(memory / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": numpy,
    }


def processor() -> str:
    """The processor's name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def commit() -> str | None:
    """The commit that was measured, with a + if files were changed since; None outside a checkout."""
    asked = ["git", "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        done = subprocess.run(asked, check=False, capture_output=True, text=True, cwd=Path(__file__).parent)
    except OSError:
        return None
    return done.stdout.strip() or None


if __name__ == "__main__":
    sys.exit(main())
