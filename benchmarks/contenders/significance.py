"""Randomisation tests of all pairs of systems: cranfield for all of them, SciPy for some.

Arguments: cranfield or scipy, a CSV of topics × systems (or a hyphen: values made from a fixed seed), resamples, how
many pairs SciPy tests. Prints the seconds of the tests alone, how many pairs were tested, and the p-values of the
pairs that SciPy tests.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter
from typing import Any

import numpy as np

TOPICS, SYSTEMS = 249, 110


def table(path: str) -> Any:
    if path != "-":
        return np.genfromtxt(path, delimiter=",", skip_header=1)[:, 1:]
    rng = np.random.default_rng(0)
    logit = rng.normal(-1, 1, (TOPICS, 1)) + rng.normal(0, 0.5, SYSTEMS) + rng.normal(0, 0.8, (TOPICS, SYSTEMS))
    return 1 / (1 + np.exp(-logit))


def chosen(systems: int, pairs: int) -> list[tuple[int, int]]:
    """Pairs spread over the table."""
    every = [(i, j) for i in range(systems) for j in range(i + 1, systems)]
    return every[:: max(1, len(every) // pairs)][:pairs]


def with_cranfield(values: Any, resamples: int, some: list[tuple[int, int]]) -> tuple[float, int, list[float]]:
    from cranfield.stats.randomisation import sign_flip_p_all

    start = perf_counter()
    p = sign_flip_p_all(values, resamples, np.random.default_rng(0))
    taken = perf_counter() - start
    return taken, values.shape[1] * (values.shape[1] - 1) // 2, [float(p[i, j]) for i, j in some]


def with_scipy(values: Any, resamples: int, some: list[tuple[int, int]]) -> tuple[float, int, list[float]]:
    """One sample of differences in batches of a thousand: the fastest of the ways that SciPy offers."""
    from scipy.stats import permutation_test  # type: ignore[import-untyped, unused-ignore]

    permutation_test((values[:20, 0],), np.mean, permutation_type="samples", n_resamples=100, vectorized=True)
    start = perf_counter()
    p = [
        permutation_test(
            (values[:, j] - values[:, i],),
            np.mean,
            permutation_type="samples",
            n_resamples=resamples,
            vectorized=True,
            batch=1000,
        ).pvalue
        for i, j in some
    ]
    return perf_counter() - start, len(some), [float(one) for one in p]


def main(who: str, path: str, resamples: str, pairs: str) -> None:
    values = table(path)
    some = chosen(values.shape[1], int(pairs))
    tested = with_cranfield if who == "cranfield" else with_scipy
    seconds, count, p = tested(values, int(resamples), some)
    print(json.dumps({"seconds": seconds, "pairs": count, "p": p, "shape": values.shape}))


main(*sys.argv[1:])
