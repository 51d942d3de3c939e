"""`make bench-online`: what online evaluation costs: calls in CPU time, the service from the outside. Bars never fail.

Each section is a function of how often to measure that returns rows; a new one is a line in SECTIONS. The bars are those of a
quiet machine.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import TYPE_CHECKING

from benchmarks import events, table
from benchmarks.clicks import click_models
from benchmarks.table import Row
from benchmarks.timing import Spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

K, PAIRS, DOCUMENTS = 10, 40, 15
DRAWS = 500  # in one measurement
BARS = {"team-draft": 20.0, "balanced": 20.0, "probabilistic": 60.0, "optimised": 20.0}  # µs
PLAN_BAR = 40.0  # ms


def interleaving(repeats: int) -> list[Row]:
    """Two lists of ten: drawing a list (of probabilistic with its credit), planning, sealing, opening."""
    from cranfield.experiments import Keys, credit, interleave
    from cranfield.experiments.interleaving import METHODS
    from cranfield.experiments.interleaving.method import list_distribution

    pairs, coin, keys = rankings(), random.Random(1), Keys.new()
    list_distribution(*map(tuple, pairs[0]), "inverse")  # which also imports the solver
    list_distribution.cache_clear()
    plans = [cpu(lambda pair=pair: list_distribution(*map(tuple, pair), "inverse")) for pair in pairs]  # type: ignore[misc]
    rows = [micro("plan", "optimised", plans, PLAN_BAR, "ms")]
    for name in METHODS:

        def draw(name: str = name) -> None:
            for turn in range(DRAWS):
                shown = interleave(pairs[turn % PAIRS], K, coin, name)
                if name == "probabilistic":
                    credit(shown, [1, 4])

        what = "list and credit" if name == "probabilistic" else "list"
        rows.append(micro(what, name, [cpu(draw) / DRAWS for _ in range(repeats)], BARS.get(name)))
    for name in METHODS:
        shown = [interleave(pair, K, coin, name) for pair in pairs]
        tokens = [each.seal(keys) for each in shown]
        sealed = [cpu(lambda: [each.seal(keys) for each in shown]) / PAIRS for _ in range(repeats)]  # noqa: B023
        opened = [cpu(lambda: [credit(each, [1, 4], keys=keys) for each in tokens]) / PAIRS for _ in range(repeats)]  # noqa: B023
        what = f"{name}, {max(map(len, tokens))} characters"
        rows += [micro("token sealed", what, sealed), micro("token opened, credit", what, opened)]
    return rows


def rankings() -> list[tuple[list[str], list[str]]]:
    """Pairs of ten of fifteen documents."""
    rng, documents = random.Random(0), [f"document-{i}" for i in range(DOCUMENTS)]
    return [(rng.sample(documents, K), rng.sample(documents, K)) for _ in range(PAIRS)]


def cpu(work: Callable[[], object]) -> float:
    """Seconds of CPU that something takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def micro(what: str, kind: str, seconds: Sequence[float], bar: float | None = None, unit: str = "µs") -> Row:
    """A row whose result is the median of CPU times."""
    mine = Spread.of(seconds)
    result = mine.median * {"µs": 1e6, "ms": 1e3}[unit]
    sign = "≤" if bar is not None else ""
    return Row(what, "two lists of 10", kind, mine, "", None, result, unit, unit, sign, bar)


def service(repeats: int) -> list[Row]:
    """Events over HTTP at a steady rate."""
    return events.measured(events.SECONDS)


def strangers(repeats: int) -> list[Row]:
    """Events over HTTP while a stranger holds idle and slow connections."""
    return events.crowded(events.SECONDS)


EVENTS = (1_000_000, 10_000_000)
METRICS = ("click-through", "clicks", "reformulation", "time-to-click", "pskip", "success", "sessions", "revenue")
PLAN = """name = "bench"
start = 2025-03-01
[variants]
control = 0.5
new = 0.5
[horizon]
days = 14
"""
MADE = """
COPY (
  WITH searches AS (
    SELECT i, i % {units} AS u, TIMESTAMP '2025-02-25' + to_microseconds((hash(i) % 1468800000000)::BIGINT) AS at_,
    hash(i + 7) % 100 < 40 AS clicked FROM range({searches}) t(i)
  ), events AS (
    SELECT 'x' || u AS event_id, TIMESTAMP '2025-03-01' + to_microseconds((hash(u) % 1036800000000)::BIGINT) AS time,
      'exposure' AS kind, u, NULL AS i, NULL AS value, 'bench' AS experiment,
      CASE WHEN u % 2 = 0 THEN 'control' ELSE 'new' END AS variant FROM range({units}) t(u)
    UNION ALL SELECT 'i' || i, at_, 'impression', u, i, NULL, NULL, NULL FROM searches
    UNION ALL SELECT 'c' || i, at_ + to_seconds(1 + (hash(i + 3) % 40)::BIGINT), 'click', u, i, NULL, NULL, NULL
    FROM searches WHERE clicked
    UNION ALL SELECT 'd' || i, at_ + to_seconds(50), 'dwell', u, i, (hash(i) % 80)::DOUBLE, NULL, NULL FROM searches WHERE clicked
    UNION ALL SELECT 'b' || i, at_ + to_seconds(400), 'conversion', u, i, 20.0, NULL, NULL FROM searches
    WHERE clicked AND i % 9 = 0
  )
  SELECT event_id, time AT TIME ZONE 'UTC' AS time, kind, 'u' || u AS unit, 'v' || u || '-' || dayofyear(time) AS session,
    CASE WHEN i IS NULL THEN NULL ELSE 's' || i END AS search, CASE WHEN kind = 'impression' THEN 'q' || (i % 1000) END AS query,
    NULL::VARCHAR[] AS shown, NULL::VARCHAR AS credit, CASE WHEN kind IN ('click', 'dwell') THEN 'd' || (i % 500) END AS document,
    CASE WHEN kind = 'click' THEN (1 + i % 10)::INTEGER END AS position, value, experiment, variant,
    NULL::VARCHAR AS application, NULL::MAP(VARCHAR, VARCHAR) AS attributes, time::DATE AS day
  FROM events
) TO '{folder}' (FORMAT parquet, PARTITION_BY (day), COMPRESSION zstd, OVERWRITE_OR_IGNORE)
"""


def analysis(repeats: int) -> list[Row]:
    """A log with the time before, all kinds of metrics, one of them with CUPED: from Parquet to the verdict."""
    import tempfile
    from datetime import UTC, datetime
    from pathlib import Path

    from cranfield.commands.experiments import analyze
    from cranfield.experiments.log import connect

    rows = []
    for count in EVENTS:
        with tempfile.TemporaryDirectory() as folder:
            log, plan = Path(folder, "log"), Path(folder, "plan.toml")
            (log / "segments").mkdir(parents=True)
            searches = round(count / 1.94)
            connection = connect()
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(MADE.format(units=max(searches // 6, 2), searches=searches, folder=log))
            connection.close()
            cuped = '[[guardrail]]\nmetric = "searches"\nestimate = "cuped"\nmargin = 1\n'
            plan.write_text(PLAN + "".join(f'[[primary]]\nmetric = "{name}"\n' for name in METRICS) + cuped)
            now = datetime(2026, 1, 1, tzinfo=UTC)
            times = [cpu(lambda: analyze(str(log), str(plan), now=now, memory="3GB")) for _ in range(min(repeats, 3))]  # noqa: B023
        mine = Spread.of(times)
        rows.append(
            Row("log to verdict", f"{count:,} events", f"{len(METRICS) + 1} metrics", mine, "", None, mine.median, "s")
        )
    return rows


SECTIONS: dict[str, Callable[[int], list[Row]]] = {
    "interleaving": interleaving,
    "analysis": analysis,
    "click models": click_models,
    "service": service,
    "strangers": strangers,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the sections asked for and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.online", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=SECTIONS, action="append", help="measure this part only (may be repeated)")
    parser.add_argument("--repeats", type=int, default=5, help="how often each is measured (5)")
    parser.add_argument("--seconds", type=float, default=events.SECONDS, help="how long the service is under load (60)")
    given = parser.parse_args(arguments)
    events.SECONDS = given.seconds
    print(table.text([row for name in given.only or SECTIONS for row in SECTIONS[name](given.repeats)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
