"""Fusion that learns: weights tuned on training topics, and cross-validation for every method that is trained.

Weights are searched on a grid of shares that add up to 1, all of it where it is small and one run at a time where it is
not. No chance is involved but in the folds, whose seed is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import ConventionError, DataError
from cranfield.evaluate import Evaluator
from cranfield.formats import as_qrels, as_runs
from cranfield.fuse import chosen_topics, fuse, learn, merged, weights_for
from cranfield.fuse.lists import lists_of
from cranfield.fuse.method import Method, method_named
from cranfield.kernels import decode
from cranfield.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cranfield.collection import Qrels
    from cranfield.fuse.lists import Lists
    from cranfield.kernels.table import Floats

    Progress = Callable[[int, int | None], None]


WHOLE_GRID = 300  # points up to which all of them are tried
ROUNDS = 20


@dataclass(frozen=True)
class Tuned:
    """Weights found on training topics: one a run, their score there, and how many were tried."""

    runs: tuple[str, ...]
    weights: tuple[float, ...]
    measure: str
    score: float
    tried: int
    topics: int


@dataclass(frozen=True)
class Fused:
    """A fused run and how it was trained: the weights of each fold (or of the one training), and sentences to show."""

    run: Run
    tuned: tuple[Tuned, ...] = ()
    notes: tuple[str, ...] = ()


def tune(
    runs: Any,
    qrels: Any,
    measure: str = "AP",
    *,
    method: str | Method = "w-sum",
    norm: str | None = None,
    topics: Iterable[str] | None = None,
    step: float = 0.1,
    rel: float | None = None,
) -> Tuned:
    """Find the weights of a fusion that score highest on judged topics, all of them or some.

    >>> a, b = {"1": {"x": 2, "y": 1}}, {"1": {"y": 2, "x": 1}}
    >>> tune([a, b], {"1": {"y": 1}}, "RR").score
    1.0
    """
    chosen = method_named(method) if isinstance(method, str) else method
    opened = as_runs(runs)
    return _tuned(lists_of(opened), chosen, norm, as_qrels(qrels), measure, topics, step, rel, None)


def _tuned(
    lists: Lists,
    method: Method,
    norm: str | None,
    qrels: Qrels,
    measure: str,
    topics: Iterable[str] | None,
    step: float,
    rel: float | None,
    progress: Progress | None,
) -> Tuned:
    weights_for(method, [1.0] * len(lists.names), lists.names)  # refuses a method without weights
    parts = round(1 / step) if 0 < step <= 1 else 0
    if not parts or abs(parts * step - 1) > 1e-9:
        raise ConventionError(f"step must divide 1, as 0.1 or 0.05 does, got {step:g}")
    judged = set(qrels.topics)
    given = judged if topics is None else judged & set(topics)
    if not given:
        raise DataError(f"{qrels.name}: none of the training topics is judged")
    mask = chosen_topics(lists, given)
    training = lists.of_topics(mask)
    names = [decode(name) for name, kept in zip(lists.topics, mask.tolist(), strict=True) if kept]
    evaluator = Evaluator(qrels, measure, rel=rel, topics=names, threads=1)
    if len(evaluator.measures) != 1:
        raise ConventionError(f"tuning wants one measure, found {', '.join(evaluator.measures)}")
    scored: dict[tuple[int, ...], float] = {}

    def score(shares: tuple[int, ...]) -> float:
        if shares not in scored:
            run = merged(training, method, norm, np.array(shares) / max(sum(shares), 1))
            scored[shares] = float(evaluator.evaluate(run))
            if progress is not None:
                progress(len(scored), None)
        return scored[shares]

    best = _search(score, len(lists.names), parts)
    found = tuple(share / sum(best) for share in best)
    return Tuned(lists.names, found, next(iter(evaluator.measures)), scored[best], len(scored), len(names))


def _search(score: Callable[[tuple[int, ...]], float], count: int, parts: int) -> tuple[int, ...]:
    """The best shares: all of a small grid, or one coordinate at a time from equal shares."""
    if comb(parts + count - 1, count - 1) <= WHOLE_GRID:
        return max(_grid(count, parts), key=lambda shares: (score(shares), -_unequal(shares)))
    best = (parts,) * count
    for _ in range(ROUNDS):
        before = best
        for i in range(count):
            tried = [(*best[:i], share, *best[i + 1 :]) for share in range(parts + 1)]
            best = max(
                (shares for shares in tried if any(shares)),
                key=lambda shares: (score(shares), shares == before, -_unequal(shares)),
            )
        if best == before:
            break
    return best


def _grid(count: int, parts: int) -> Iterator[tuple[int, ...]]:
    for shares in product(range(parts + 1), repeat=count - 1):
        if sum(shares) <= parts:
            yield (*shares, parts - sum(shares))


def _unequal(shares: tuple[int, ...]) -> float:
    """How far shares are from equal: of two that score the same, the more even one is taken."""
    return float(np.var(np.array(shares) / max(sum(shares), 1)))


def fuse_trained(
    runs: Any,
    method: str | Method,
    qrels: Any,
    *,
    norm: str | None = None,
    depth: int | None = None,
    topics: Iterable[str] | None = None,
    folds: int | None = None,
    seed: int = 0,
    measure: str = "AP",
    step: float = 0.1,
    rel: float = 1,
    name: str | None = None,
    progress: Progress | None = None,
) -> Fused:
    """Fuse with a method that learns (MAPFuse, SlideFuse, or tuned weights).

    It learns from the judged `topics` (all, if left out) and fuses every topic. With `folds`, each fold of the topics is
    fused by what was learnt from the others, so that no topic's own judgments touch its ranking.
    """
    chosen = method_named(method) if isinstance(method, str) else method
    opened, judgments = as_runs(runs), as_qrels(qrels)
    lists = lists_of(opened)

    def learnt(training: Iterable[str] | None) -> Tuned | None:
        if chosen.trained:
            learn(chosen, lists, judgments, training, rel)
            return None
        return _tuned(lists, chosen, norm, judgments, measure, training, step, rel, progress)

    if folds is None:
        tuned = learnt(topics)
        run = merged(lists, chosen, norm, _weights(tuned), depth, name)
        return Fused(run, () if tuned is None else (tuned,), tuple(_flattered(lists, judgments, topics)))
    if topics is not None:
        raise ConventionError("folds choose the training topics; leave train_topics out")
    return _crossed(lists, chosen, norm, depth, name, judgments, folds, seed, learnt)


def fuse_files(
    runs: list[Run],
    method: str,
    norm: str | None,
    weights: Sequence[float] | None,
    depth: int | None,
    qrels: str | None,
    topics: list[str] | None,
    name: str | None,
    **training: Any,
) -> Fused:
    """Fuse as the command line asks: by given weights or none, or trained where the method learns or has weights to tune."""
    chosen = method_named(method)
    if qrels is None:
        if topics is not None or training.get("folds") is not None:
            raise ConventionError("training topics and folds need judgments to learn from (--train-qrels)")
        if chosen.name == "w-sum" and weights is None:
            raise ConventionError("w-sum needs weights: give --weights, or --train-qrels to tune them")
        return Fused(fuse(runs, chosen, norm=norm, weights=weights, depth=depth, name=name))
    if weights is not None:
        raise ConventionError("weights are given or tuned: leave out --weights or --train-qrels")
    return fuse_trained(runs, chosen, qrels, norm=norm, depth=depth, topics=topics, name=name, **training)


def _crossed(
    lists: Lists,
    method: Method,
    norm: str | None,
    depth: int | None,
    name: str | None,
    qrels: Qrels,
    folds: int,
    seed: int,
    learnt: Callable[[Iterable[str] | None], Tuned | None],
) -> Fused:
    names = [decode(topic) for topic in lists.topics]
    if not 2 <= folds <= len(names):
        raise ConventionError(f"folds must be between 2 and the number of topics ({len(names)}), got {folds}")
    fold = np.random.default_rng(seed).permutation(np.arange(len(names)) % folds)
    value = np.zeros(len(lists.home))
    found: list[Tuned] = []
    judged = set(qrels.topics)
    for number in range(folds):
        others = [topic for topic, at in zip(names, fold.tolist(), strict=True) if at != number and topic in judged]
        if not others:
            raise DataError(f"{qrels.name}: no judged topic is left to train on for fold {number + 1}; use fewer folds")
        tuned = learnt(others)
        found += [] if tuned is None else [tuned]
        run = merged(lists, method, norm, _weights(tuned))
        mine = fold[lists.home] == number
        value[mine] = run.table.value[mine]
    title = name or f"{method.name}({'+'.join(lists.names)})"
    tag = "_".join((name or method.name).split())
    said = f"{folds} folds of {len(names)} topics, seed {seed}: each fused by what the other folds taught"
    return Fused(Run(lists.fused(value, tag, depth), title, tag), tuple(found), (said,))


def _weights(tuned: Tuned | None) -> Floats | None:
    return None if tuned is None else np.array(tuned.weights)


def _flattered(lists: Lists, qrels: Qrels, topics: Iterable[str] | None) -> Sequence[str]:
    """Say that the result is not to be scored on what it was trained on."""
    trained = set(qrels.topics) if topics is None else set(topics) & set(qrels.topics)
    both = sum(decode(topic) in trained for topic in lists.topics)
    return [
        f"{both} of {len(lists.topics)} topics were trained on; scored on them, the fused run is flattered (folds help)"
    ]
