"""`python -m benchmarks.agreement_coverage`: how often the intervals of `judge agree` hold the true value.

Documents come in topics. Topics differ in how many of their documents are relevant, in how hard they are, in how each assessor
grades them, and in how many documents were judged. The true value is that of very many topics of the same kind.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.stats.agreement import Patterns, all_forms, coefficient, interval_over_clusters
from cranfield.stats.ratings import Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.stats.agreement import AgreementCoefficient
    from cranfield.stats.ties import Floats, Ints

POPULATION, PARTS = 60_000, 20  # topics that stand for all, and in how many parts they are drawn
CUTS = np.array([0.0, 0.7, 1.4])  # from one grade to the next


class World(NamedTuple):
    """How labels come about: grades are what is left of a number between cuts, after errors."""

    raters: int = 2
    level: float = -0.3  # of relevance: the mean of the numbers
    rates: float = 0.6  # how far topics differ in how many documents are relevant
    error: float = 0.5  # of one label
    hardness: float = 0.5  # how far topics differ in the size of errors: a spread of logarithms
    bias: float = 0.4  # how far one assessor's grades are moved, topic by topic
    documents: float = 20.0  # of a topic, in the middle
    spread: float = 0.3  # of the logarithm of their number
    labelled: float = 1.0  # the share of labels that are there

    def draw(self, topics: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """The topic of each document, and its grades: documents × raters, -1 where a label is missing."""
        number = np.maximum(2, np.rint(self.documents * np.exp(self.spread * rng.standard_normal(topics)))).astype(int)
        topic = np.repeat(np.arange(topics), number)
        size = (len(topic), self.raters)
        true = self.level + self.rates * rng.standard_normal(topics)[topic] + rng.standard_normal(len(topic))
        bias = self.bias * rng.standard_normal((topics, self.raters))
        error = self.error * np.exp(self.hardness * rng.standard_normal(topics))
        grades = np.searchsorted(CUTS, true[:, None] + bias[topic] + error[topic, None] * rng.standard_normal(size))
        return topic, np.where(rng.random(size) < self.labelled, grades, -1)


WORLDS = {
    "all effects": World(),
    "no effects": World(rates=0.0, hardness=0.0, bias=0.0, spread=0.0),
    "hard topics": World(rates=0.0, hardness=0.9, bias=0.0),
    "biased assessors": World(hardness=0.0, bias=0.8),
    "unequal topics": World(spread=0.8),
    "very unequal topics": World(spread=1.2),
    "few relevant": World(level=-1.3),
    "near full agreement": World(error=0.15, bias=0.15),
    "few documents": World(documents=5.0),
    "three assessors, labels missing": World(raters=3, labelled=0.7),
}


@cache
def kinds(name: str, raters: int) -> tuple[Floats, Floats | None, Ints]:
    """Every pattern of grades that a coefficient tells apart, and the pattern of each way to grade; -1 where it looks away."""
    chosen = coefficient(name)
    grades = np.stack(np.unravel_index(np.arange(5**raters), (5,) * raters), axis=1) - 1
    labels = np.vstack([np.eye(4), np.zeros(4)])  # the last for a missing label
    if chosen.two_raters:
        sides = labels[grades[:, 0]], labels[grades[:, 1]]
        seen = (grades >= 0).all(axis=1)
        return sides[0][seen], sides[1][seen], np.where(seen, np.cumsum(seen) - 1, -1)
    counts = labels[grades].sum(axis=1)
    seen = counts.sum(axis=1) >= (1 if chosen.counts_scale else 2)
    rows, code = np.unique(counts[seen], axis=0, return_inverse=True)
    of_way = np.full(len(grades), -1)
    of_way[seen] = code.ravel()
    return rows, None, of_way


def patterns_of(chosen: AgreementCoefficient, grades: Ints) -> Patterns:
    """What a coefficient sees of grades."""
    one, other, of_way = kinds(str(chosen), grades.shape[1])
    of_item = of_way[np.ravel_multi_index(tuple(grades.T + 1), (5,) * grades.shape[1])]
    times = np.bincount(of_item[of_item >= 0], minlength=len(one)).astype(np.float64)
    return Patterns(times, one, other, of_item)


SCALE = Scale((0, 1, 2, 3))


@cache
def truths(world: World) -> dict[str, float]:
    """Every coefficient of very many topics."""
    rng = np.random.default_rng(1)
    methods = [one for one in map(coefficient, all_forms()) if world.raters == 2 or not one.two_raters]
    times = {str(one): np.zeros(len(kinds(str(one), world.raters)[0])) for one in methods}
    for _ in range(PARTS):
        _, grades = world.draw(POPULATION // PARTS, rng)
        for one in methods:
            times[str(one)] += patterns_of(one, grades).times
    answer = {}
    for one in methods:
        patterns = Patterns(times[str(one)], *kinds(str(one), world.raters)[:2])
        answer[str(one)] = float(one.figures(patterns, patterns.times[None], SCALE).value[0])
    return answer


class Coverage(NamedTuple):
    """How often intervals held, of those that there were; the share of trials without one; half the width of the middle one."""

    held: float
    without: float
    reach: float


def coverage(world: World, topics: int, trials: int, names: Sequence[str], seed: int = 4) -> dict[str, Coverage]:
    """The coverage of 95 % intervals over topics, coefficient by coefficient, on the same trials."""
    rng = np.random.default_rng(seed)
    methods = [one for one in map(coefficient, names) if world.raters == 2 or not one.two_raters]
    ends: dict[str, list[tuple[float, float]]] = {str(one): [] for one in methods}
    for _ in range(trials):
        topic, grades = world.draw(topics, rng)
        for one in methods:
            interval = interval_over_clusters(one, patterns_of(one, grades), SCALE, topic, 0.95)
            assert interval is not None
            ends[str(one)].append(interval[:2])
    return {str(one): _coverage(np.array(ends[str(one)]), truths(world)[str(one)]) for one in methods}


def _coverage(ends: Floats, true: float) -> Coverage:
    low, high = ends[~np.isnan(ends[:, 0])].T
    held = float(((low <= true) & (true <= high)).mean()) if len(low) else np.nan
    return Coverage(held, 1 - len(low) / len(ends), float(np.median(high - low) / 2) if len(low) else np.nan)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of each world."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agreement_coverage", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--trials", type=int, default=2000, help="of each row (2000)")
    parser.add_argument("--topics", type=int, nargs="+", default=[25, 50, 100], help="numbers of topics (25 50 100)")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS), help="kinds of topics (all)")
    typed = parser.parse_args(arguments)
    for name in typed.worlds:
        world = WORLDS[name]
        for topics in typed.topics:
            for which, one in coverage(world, topics, typed.trials, all_forms()).items():
                row = f"{one.held:.3f}  without {one.without:.3f}  ± {one.reach:.3f}"
                print(f"{name:32} {topics:4}  {which:30} {truths(world)[which]:6.3f}  {row}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
