"""Krippendorff's alpha of two raters with its interval: arguments are the number of items, of resamples, and of topics.

With topics the interval leaves out each in turn; with 0 topics it resamples items.

Prints the seconds from three columns in memory to the interval.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter, process_time

import numpy as np


def main(items: str, resamples: str, topics: str = "0") -> None:
    from scipy import special  # type: ignore[import-untyped, unused-ignore]  # noqa: F401 (loaded before the clock starts)

    from cranfield.stats.agreement import Labels, agreement

    number, rng = int(items), np.random.default_rng(0)
    truth = rng.choice(4, number, p=[0.6, 0.2, 0.1, 0.1])
    said = [np.where(rng.random(number) < 0.8, truth, rng.integers(0, 4, number)).tolist() for _ in range(2)]
    names = [f"item-{item}" for item in range(number)] * 2
    cluster_of = {name: item % int(topics) for item, name in enumerate(names[:number])} if int(topics) else None
    start, cpu = perf_counter(), process_time()
    labels = Labels.of(["ann"] * number + ["bob"] * number, names, said[0] + said[1])
    found = agreement(labels, "krippendorff(metric=ordinal)", cluster_of=cluster_of, resamples=int(resamples))
    taken = {"seconds": perf_counter() - start, "cpu": process_time() - cpu}
    print(json.dumps({**taken, "alpha": found.value, "low": found.low, "high": found.high}))


if __name__ == "__main__":
    main(*sys.argv[1:])
