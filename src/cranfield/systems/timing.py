"""How long answers took: percentiles, a histogram, throughput, and what that costs.

A latency is what the one who asked had to wait. In a closed loop a client asks when its last answer has come, so the
wait begins when the query is sent. In an open loop queries are due at fixed times whether the system keeps up or not,
and the wait begins when the query was due: a system that stalls for a second makes all that were due in that second
wait, and timing them from when they were finally sent would leave that out (coordinated omission).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


PER_DECADE = 5  # bars of the histogram between 1 and 10 ms


def latency(seconds: Sequence[float]) -> dict[str, float] | None:
    """Mean, median, 95th and 99th percentile, least and most, in milliseconds; None of nothing.

    >>> latency([0.001, 0.002, 0.009])["median"]
    2.0
    """
    if not len(seconds):
        return None
    ms = np.asarray(seconds, np.float64) * 1000
    middle, high, higher = (float(x) for x in np.percentile(ms, [50, 95, 99]))
    found = {"mean": float(ms.mean()), "median": middle, "p95": high, "p99": higher}
    found |= {"min": float(ms.min()), "max": float(ms.max())}
    return {name: round(value, 4) for name, value in found.items()}


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


def summary(
    waits: Sequence[float], elapsed: float, *, clients: int, rate: float | None, passes: int, retries: int
) -> dict[str, Any]:
    """All that is said of a load: what it was, how long it took, and how long each had to wait."""
    return {
        "loop": "closed" if rate is None else "open",
        "clients": clients,
        "rate_per_second": rate,
        "passes": passes,
        "count": len(waits),
        "seconds": round(elapsed, 6),
        "throughput_per_second": round(len(waits) / elapsed, 4) if elapsed > 0 and len(waits) else None,
        "retries": retries,
        "latency_ms": latency(waits),
        "histogram": histogram(waits),
    }


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
