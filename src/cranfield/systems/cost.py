"""What a run cost: how long answers took, the memory held, what that costs, and the machine that all of it depends on.

A latency is what the one who asked had to wait. In a closed loop a client asks when its last answer has come, so the
wait begins when the query is sent. In an open loop queries are due at fixed times whether the system keeps up or not,
and the wait begins when the query was due: a system that stalls for a second makes all that were due in that second
wait, and timing them from when they were finally sent would leave that out (coordinated omission). Of the machine nothing
is said that names a computer or a person.
"""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.systems.drive import Driven, Load
    from cranfield.systems.journal import Journal

PER_DECADE = 5  # bars of the histogram between 1 and 10 ms
KILOBYTE = 1 if sys.platform == "darwin" else 1024  # the unit of ru_maxrss


def latency(seconds: Sequence[float]) -> dict[str, float] | None:
    """Mean, median, 95th and 99th percentile, least and most, in milliseconds; None of nothing.

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
    """How many answers took how long: edges in milliseconds, five bars for each power of ten, and a count a bar.

    >>> histogram([0.001, 0.0012, 0.009])
    {'edges_ms': [1.0, 1.5849, 2.5119, 3.9811, 6.3096, 10.0], 'counts': [2, 0, 0, 0, 1]}
    """
    if not len(seconds):
        return None
    bars = np.floor(np.round(np.log10(np.maximum(np.asarray(seconds) * 1000, 1e-4)) * PER_DECADE, 9)).astype(int)
    first, last = int(bars.min()), int(bars.max())
    edges = [round(10 ** (bar / PER_DECADE), 4) for bar in range(first, last + 2)]
    return {"edges_ms": edges, "counts": np.bincount(bars - first, minlength=last - first + 1).tolist()}


def summary(driven: Driven, load: Load, journal: Journal) -> dict[str, Any]:
    """All that is said of a load: what it was, how long it took, and how long each had to wait."""
    earlier = journal.waits.values()  # timed by a process that was cut short
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


def cost(price_per_hour: float | None, throughput: float | None) -> dict[str, float]:
    """What a thousand queries cost at this throughput on a machine of this price.

    >>> cost(3.6, 10.0)
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
    """Let the count of the most memory held begin anew, where the system (Linux) allows that."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        pass


def peak_memory() -> int | None:
    """The most memory this process held, in bytes: since `forget_peak` on Linux, since its start elsewhere."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILOBYTE


def size_on_disk(folder: str) -> int:
    """The bytes of all files in a folder."""
    return sum(os.path.getsize(os.path.join(here, name)) for here, _, names in os.walk(folder) for name in names)
