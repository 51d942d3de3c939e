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
    from cranfield.online import Keys, credit, interleave
    from cranfield.online.interleave import METHODS
    from cranfield.online.interleave.optimised import planned

    pairs, coin, keys = rankings(), random.Random(1), Keys.new()
    planned(*map(tuple, pairs[0]), "inverse")  # which also imports the solver
    planned.cache_clear()
    plans = [cpu(lambda pair=pair: planned(*map(tuple, pair), "inverse")) for pair in pairs]  # type: ignore[misc]
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


SECTIONS: dict[str, Callable[[int], list[Row]]] = {"interleaving": interleaving, "service": service}


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
