"""How often intervals hold the difference by true labels, where labels are assessors': `python -m benchmarks.label_noise`.

Topics have documents of true grades 0 to 2; two runs rank them by grade and noise, part of which they share; assessors of
unlike skill label each document by tables of errors. What is looked for is the mean difference by true grades over the
population of topics. The ordinary interval takes the labels that stand for the truth; the other is that of
`compare --label-noise`. The last two columns are the share of assessors in the variance of a difference: as the redraws
say, and as labelling the same topics twice says.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.stats.bootstrap import redrawn_mean
from cranfield.stats.consensus.method import METHODS
from cranfield.stats.ratings import Labels, Scale

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    Array = npt.NDArray[Any]

DOCUMENTS, ASSESSORS, DRAWS, DEPTH = 100, 6, 50, 10
DISCOUNT = 1 / np.log2(np.arange(2, DEPTH + 2))
REACHED = np.r_[0, np.cumsum(DISCOUNT)]
POPULATION = 40_000


class Case(NamedTuple):
    """One row of the table."""

    topics: int
    right: float  # how often an assessor gives the true grade, on average
    labels: int = 3  # a document
    policy: str = "dawid-skene"
    better: float = 0.3  # how much more the second run knows
    single: float = 0.0  # the share of documents with one label
    hard: float = 0.0  # the share of documents that look alike to everybody, and wrong


class Trial(NamedTuple):
    """One experiment: errors of both estimates, half the widths of both intervals, and two shares."""

    error: float
    reach: float
    error_allowed: float
    reach_allowed: float
    share: float
    true_share: float


def topics(n: int, better: float, rng: np.random.Generator) -> tuple[Array, list[Array]]:
    """True grades, topics × documents, and the order in which each of two runs returns the documents."""
    relevant, u = rng.beta(2, 8, (n, 1)), rng.random((n, DOCUMENTS))
    grades = (u < relevant).astype(np.int8) + (u < 0.4 * relevant)
    shared = rng.normal(0, 0.7, grades.shape)
    orders = []
    for knows in (0.9, 0.9 + better):
        slope = knows + rng.normal(0, 0.4, (n, 1))
        orders.append(np.argsort(-(slope * grades + shared + rng.normal(0, 0.7, grades.shape)), axis=1))
    return grades, orders


def ndcg(grades: Array, order: Array) -> Array:
    """nDCG@10 with linear gains, whatever stands before topics × documents."""
    top = np.take_along_axis(grades, np.broadcast_to(order[:, :DEPTH], (*grades.shape[:-1], DEPTH)), -1)
    best = REACHED[np.minimum((grades > 0).sum(-1), DEPTH)] + REACHED[np.minimum((grades == 2).sum(-1), DEPTH)]
    return np.where(best > 0, top @ DISCOUNT / np.where(best > 0, best, 1), 0)


def ap(grades: Array, order: Array) -> Array:
    """Average precision."""
    found = np.take_along_axis(grades, np.broadcast_to(order, grades.shape), -1) > 0
    precision = np.cumsum(found, -1) / np.arange(1, DOCUMENTS + 1)
    return np.asarray((precision * found).sum(-1) / np.maximum(found.sum(-1), 1))


MEASURES: dict[str, Callable[[Array, Array], Array]] = {"nDCG@10": ndcg, "AP": ap}


def difference(measure: str, grades: Array, orders: Sequence[Array]) -> Array:
    """The second run less the first, topic by topic."""
    return MEASURES[measure](grades, orders[1]) - MEASURES[measure](grades, orders[0])


def tables_of_errors(right: float, rng: np.random.Generator) -> Array:
    """Assessors × true grade × grade given; some lean to the strict side, some to the lenient."""
    tables = []
    for _ in range(ASSESSORS):
        own = np.clip(right + rng.uniform(-0.06, 0.06), 0.4, 0.99)
        wrong, strict = 1 - own, rng.uniform(0.3, 0.7)
        tables.append(
            [
                [own, 0.8 * wrong, 0.2 * wrong],
                [wrong * strict, own, wrong * (1 - strict)],
                [0.2 * wrong, 0.8 * wrong, own],
            ]
        )
    return np.array(tables)


def labelled(grades: Array, tables: Array, case: Case, rng: np.random.Generator) -> Labels:
    """Labels of so many assessors for each document, who are drawn anew for each."""
    true = grades.ravel()
    who = np.argsort(rng.random((len(true), ASSESSORS)), 1)[:, : case.labels]
    given = (rng.random((*who.shape, 1)) > np.cumsum(tables[who, true[:, None]], -1)).sum(-1)
    kept = np.ones(who.shape, bool)
    kept[rng.random(len(true)) < case.single, 1:] = False
    item = np.broadcast_to(np.arange(len(true))[:, None], who.shape)
    names = tuple(range(ASSESSORS)), tuple(range(len(true)))
    return Labels.sorted(who[kept], item[kept], given[kept], names, Scale((0, 1, 2)))


def apparent(grades: Array, hard: float, rng: np.random.Generator) -> Array:
    """The grades as they look to everybody: hard documents look one grade better or worse than they are."""
    one_off = np.where(grades == 1, 2 * (rng.random(grades.shape) < 0.5), 1).astype(grades.dtype)
    return np.where(rng.random(grades.shape) < hard, one_off, grades)


def decided(labels: Labels, policy: str, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The grades that stand, and how likely each is; a document with one label is sure."""
    verdict = METHODS.named(policy).decide(labels)
    single = np.bincount(labels.item, minlength=len(labels.items)) == 1
    chance = np.where(single[:, None], np.eye(3)[verdict.code], verdict.posterior)
    return verdict.code.reshape(shape).astype(np.int8), chance


def trial(case: Case, truth: dict[str, float], rng: np.random.Generator) -> dict[str, Trial]:
    """Draw topics, label them, and look whether the truth is held."""
    grades, orders = topics(case.topics, case.better, rng)
    tables = tables_of_errors(case.right, rng)
    seen = apparent(grades, case.hard, rng) if case.hard else grades
    standing, chance = decided(labelled(seen, tables, case, rng), case.policy, grades.shape)
    again, _ = decided(labelled(seen, tables, case, rng), case.policy, grades.shape)
    bounds = np.cumsum(chance, axis=1)[:, :-1]
    draws = [(rng.random((len(bounds), 1)) >= bounds).sum(1).reshape(grades.shape) for _ in range(DRAWS)]
    redraws = np.array(draws, np.int8)
    answer = {}
    for measure in MEASURES:
        d, second = (difference(measure, each, orders) for each in (standing, again))
        usual = redrawn_mean(d, np.stack([d, d]))
        found = redrawn_mean(d, difference(measure, redraws, orders))
        answer[measure] = Trial(
            usual.difference - truth[measure],
            (usual.high - usual.low) / 2,
            found.corrected - truth[measure],
            (found.high - found.low) / 2,
            found.share_of_labels,
            float(np.square(d - second).mean() / 2 / d.var(ddof=1)),
        )
    return answer


def truths(better: float) -> dict[str, float]:
    """The mean differences of the population."""
    if not better:
        return dict.fromkeys(MEASURES, 0.0)
    grades, orders = topics(POPULATION, better, np.random.default_rng(99))
    return {measure: float(difference(measure, grades, orders).mean()) for measure in MEASURES}


def row(case: Case, trials: int, seed: int = 1) -> list[str]:
    """A line of the table for each measure."""
    rng, truth = np.random.default_rng(seed), truths(case.better)
    found = [trial(case, truth, rng) for _ in range(trials)]
    lines = []
    for measure in MEASURES:
        columns = dict(zip(Trial._fields, np.array([each[measure] for each in found]).T, strict=True))
        mean = {name: float(values.mean()) for name, values in columns.items()}
        one, hard = (f"{share:.0%}" if share else "–" for share in (case.single, case.hard))
        cells = [case.policy, case.right, case.labels, one, hard, case.topics, measure, f"{truth[measure]:+.3f}"]
        for kind in ("", "_allowed"):
            error, reach = columns[f"error{kind}"], columns[f"reach{kind}"]
            cells += [f"{(np.abs(error) <= reach).mean():.3f}", f"{error.mean():+.3f}", f"{reach.mean():.3f}"]
        cells += [f"{mean['share']:.1%}", f"{mean['true_share']:.1%}"]
        lines.append(" | ".join(map(str, cells)))
    return lines


def cases() -> list[Case]:
    """Those of the docs."""
    main = [
        Case(n, right, policy=policy)
        for policy in ("dawid-skene", "majority")
        for right in (0.93, 0.75)
        for n in (25, 50, 200)
    ]
    more = [Case(50, 0.75, labels, policy) for policy in ("dawid-skene", "majority") for labels in (2, 5)]
    rest = [Case(50, 0.75, policy=policy, better=0.0) for policy in ("dawid-skene", "majority")]
    shared = [Case(50, right, hard=0.1) for right in (0.93, 0.75)]
    return [*main, *more, *rest, Case(50, 0.75, single=0.75), *shared]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400, help="of each case; half as many with 200 topics")
    trials = parser.parse_args().trials
    print(
        "policy | right | labels | single | hard | topics | measure | true "
        "| held | bias | ± | held | bias | ± | share | true share"
    )
    for case in cases():
        print("\n".join(row(case, trials // (1 + case.topics // 200))), flush=True)


if __name__ == "__main__":
    main()
