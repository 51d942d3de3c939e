"""Fusion that learns: weights tuned on training topics, and cross-validation for every method that is trained.

Weights are searched on a grid of shares that add up to 1, all of it where it is small and one run at a time where it is
not. No chance is involved but in the folds, whose seed is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import ConventionError, DataError
from cranfield.evaluate import Evaluator
from cranfield.formats import as_qrels, as_runs
from cranfield.fuse import Fusion, chosen_topics, fuse, learn, weights_for
from cranfield.fuse.lists import lists_of
from cranfield.fuse.method import METHODS
from cranfield.kernels import decode
from cranfield.parameters import refuse_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cranfield.collection import Qrels
    from cranfield.fuse.lists import Lists
    from cranfield.fuse.method import Method
    from cranfield.kernels.table import Floats
    from cranfield.run import Run

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

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {weight:g}" for name, weight in zip(self.runs, self.weights, strict=True))
        return f"weights: {shown} ({self.measure} {self.score:.4f} on {self.topics} training topics)"


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
    fusion = Fusion(METHODS.named(method), norm)
    opened, judged = _sane(as_runs(runs), as_qrels(qrels), measure, rel)
    return _Training(lists_of(opened), judged, fusion, measure, step, rel).tuned(topics)


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
    rel: float | None = None,
    name: str | None = None,
    progress: Progress | None = None,
) -> Fused:
    """Fuse with a method that learns, or with weights that are tuned.

    It learns from the judged `topics` (all, if left out) and fuses every topic. With `folds`, each fold of the topics is
    fused by what was learnt from the others, so that no topic's own judgments touch its ranking.
    """
    if folds is not None and topics is not None:
        raise ConventionError("folds choose the training topics; leave train_topics out")
    fusion = Fusion(METHODS.named(method), norm, depth, name)
    opened, judged = _sane(as_runs(runs), as_qrels(qrels), measure, rel)
    training = _Training(lists_of(opened), judged, fusion, measure, step, rel, progress)
    return training.whole(topics) if folds is None else training.crossed(folds, seed)


def _sane(runs: list[Run], qrels: Qrels, measure: str, rel: float | None) -> tuple[list[Run], Qrels]:
    """Runs and judgments as they are, after the sanity checks have said what is odd about them."""
    Evaluator(qrels, measure, rel=rel).warn_of(*runs)
    return runs, qrels


def fuse_files(
    runs: list[Run],
    method: str,
    norm: str | None,
    weights: Sequence[float] | None,
    depth: int | None,
    qrels: str | Qrels | None,
    topics: list[str] | None,
    name: str | None,
    **training: Any,
) -> Fused:
    """Fuse as the command line asks: by given weights or none, or trained where the method learns or has weights to tune."""
    chosen = METHODS.named(method)
    if qrels is None:
        if topics is not None or training.get("folds") is not None:
            raise ConventionError("training topics and folds need judgments to learn from (--train-qrels)")
        if chosen.needs_weights and weights is None:
            raise ConventionError(f"{chosen.name} needs weights: give --weights, or --train-qrels to tune them")
        return Fused(fuse(runs, chosen, norm=norm, weights=weights, depth=depth, name=name))
    if weights is not None:
        raise ConventionError("weights are given or tuned: leave out --weights or --train-qrels")
    return fuse_trained(runs, chosen, qrels, norm=norm, depth=depth, topics=topics, name=name, **training)


@dataclass(frozen=True)
class _Training:
    """Lists and judgments to learn a fusion from; `measure`, `step` and `rel` say what tuned weights aim at."""

    lists: Lists
    qrels: Qrels
    fusion: Fusion
    measure: str = "AP"
    step: float = 0.1
    rel: float | None = None
    progress: Progress | None = None

    def whole(self, topics: Iterable[str] | None) -> Fused:
        """What is learnt from some topics, or all, fuses every topic."""
        scores, tuned = self.learnt(topics)
        judged = set(self.qrels.topics) if topics is None else set(topics) & set(self.qrels.topics)
        both = sum(decode(topic) in judged for topic in self.lists.topics)
        flattered = (
            f"{both} of {len(self.lists.topics)} topics were trained on; scored on them, the fused run is flattered"
        )
        return Fused(self.fusion.run(self.lists, scores), tuned, (f"{flattered} (folds help)",))

    def crossed(self, folds: int, seed: int) -> Fused:
        """Each fold is fused by what the judged topics of the others teach."""
        names, judged = [decode(topic) for topic in self.lists.topics], set(self.qrels.topics)
        if not 2 <= folds <= len(names):
            raise ConventionError(f"folds must be between 2 and the number of topics ({len(names)}), got {folds}")
        refuse_below(0, seed=seed)
        fold = np.random.default_rng(seed).permutation(np.arange(len(names)) % folds)
        scores = np.zeros(len(self.lists.home))
        tuned: list[Tuned] = []
        for number in range(folds):
            others = [topic for topic, at in zip(names, fold.tolist(), strict=True) if at != number and topic in judged]
            if not others:
                raise DataError(
                    f"{self.qrels.name}: no judged topic is left to train on for fold {number + 1}; use fewer folds"
                )
            mine = fold[self.lists.home] == number
            all_scores, weights = self.learnt(others)
            scores[mine] = all_scores[mine]
            tuned += weights
        note = f"{folds} folds of {len(names)} topics, seed {seed}: each fused by what the other folds taught"
        return Fused(self.fusion.run(self.lists, scores), tuple(tuned), (note,))

    def learnt(self, topics: Iterable[str] | None) -> tuple[Floats, tuple[Tuned, ...]]:
        """One score for each entry by what some topics teach, and the weights that were tuned for it, if any."""
        if self.fusion.method.trained:
            usual = 1 if self.qrels.relevant_from is None else self.qrels.relevant_from
            learn(self.fusion.method, self.lists, self.qrels, topics, usual if self.rel is None else self.rel)
            return self.fusion.scores(self.lists), ()
        tuned = self.tuned(topics)
        return self.fusion.scores(self.lists, np.array(tuned.weights)), (tuned,)

    def tuned(self, topics: Iterable[str] | None) -> Tuned:
        """The weights that score highest on some judged topics, or all."""
        runs = self.lists.names
        weights_for(self.fusion.method, [1.0] * len(runs), runs)  # refuses a method without weights
        parts = round(1 / self.step) if 0 < self.step <= 1 else 0
        if not parts or abs(parts * self.step - 1) > 1e-9:
            raise ConventionError(f"step must divide 1, as 0.1 or 0.05 does, got {self.step:g}")
        refuse_below(1, **{"the number of steps": parts})
        judged = set(self.qrels.topics) if topics is None else set(self.qrels.topics) & set(topics)
        if not judged:
            raise DataError(f"{self.qrels.name}: none of the training topics is judged")
        mask = chosen_topics(self.lists, judged)
        lists = self.lists.of_topics(mask)
        names = [decode(name) for name, kept in zip(lists.topics, mask.tolist(), strict=True) if kept]
        evaluator = Evaluator(self.qrels, self.measure, rel=self.rel, topics=names, threads=1, warn=False)
        if len(evaluator.measures) != 1:
            raise ConventionError(f"tuning wants one measure, found {', '.join(evaluator.measures)}")
        whole, tried = replace(self.fusion, depth=None), dict[tuple[int, ...], float]()

        def score(shares: tuple[int, ...]) -> float:
            if shares not in tried:
                weights = np.array(shares) / max(sum(shares), 1)
                tried[shares] = float(evaluator.evaluate(whole.run(lists, whole.scores(lists, weights))))
                if self.progress is not None:
                    self.progress(len(tried), None)
            return tried[shares]

        best = _search(score, len(runs), parts)
        weights = tuple(share / sum(best) for share in best)
        return Tuned(runs, weights, next(iter(evaluator.measures)), tried[best], len(tried), len(names))


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
