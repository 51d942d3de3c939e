"""Fusion that learns: weights tuned on training topics, and cross-validation for every method that is trained.

Weights are searched on a grid of shares that add up to 1: exhaustively if it is small, else one run at a time.
Only the folds are random; their seed is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.kernels import decode
from cranfield.base.parameters import refuse_below
from cranfield.evaluation.evaluate import Evaluator
from cranfield.formats import as_qrels, as_runs
from cranfield.retrieval.fusion import Fusion, chosen_topics, fuse, learn, weights_for
from cranfield.retrieval.fusion.aligned_runs import AlignedRuns, lists_of
from cranfield.retrieval.fusion.method import METHODS, FusionMethod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.base.qrels import Qrels
    from cranfield.base.run import Run

    Progress = Callable[[int, int | None], None]


WHOLE_GRID = 300  # the largest grid that is searched exhaustively
ROUNDS = 20


@dataclass(frozen=True)
class Tuned:
    """Weights tuned on training topics: one per run, their score there, and how many settings were tried."""

    runs: tuple[str, ...]
    weights: tuple[float, ...]
    measure: str
    score: float
    tried: int
    topics: int

    def __str__(self) -> str:
        weights = ", ".join(f"{name} {weight:g}" for name, weight in zip(self.runs, self.weights, strict=True))
        return f"weights: {weights} ({self.measure} {self.score:.4f} on {self.topics} training topics)"


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
    method: str | FusionMethod = "w-sum",
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
    return _training(runs, qrels, fusion, measure, step, rel).tuned(topics)


def fuse_trained(
    runs: Any,
    method: str | FusionMethod,
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
    """Fuse with a trained method, or with tuned weights.

    It learns from the judged `topics` (all by default) and fuses every topic. With `folds`, each fold of the topics is
    fused by a model of the other folds, so that no topic's judgments affect its own ranking.
    """
    if folds is not None and topics is not None:
        raise ConventionError("folds choose the training topics; leave train_topics out")
    fusion = Fusion(METHODS.named(method), norm, depth, name)
    training = _training(runs, qrels, fusion, measure, step, rel, progress)
    return training.whole(topics) if folds is None else training.crossed(folds, seed)


def _training(
    runs: Any,
    qrels: Any,
    fusion: Fusion,
    measure: str,
    step: float,
    rel: float | None,
    progress: Progress | None = None,
) -> _Training:
    """Open runs and judgments, run the sanity checks, and return the training on them."""
    opened, judged = as_runs(runs), as_qrels(qrels)
    Evaluator(judged, measure, rel=rel).warn_of(*opened)
    return _Training(lists_of(opened), judged, fusion, measure, step, rel, progress)


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
    """Fuse as on the command line: with or without weights, or trained if the method learns or its weights are tuned."""
    fusion = METHODS.named(method)
    if qrels is None:
        if topics is not None or training.get("folds") is not None:
            raise ConventionError("training topics and folds need judgments to learn from (--train-qrels)")
        if fusion.needs_weights and weights is None:
            raise ConventionError(f"{fusion.name} needs weights: give --weights, or --train-qrels to tune them")
        return Fused(fuse(runs, fusion, norm=norm, weights=weights, depth=depth, name=name))
    if weights is not None:
        raise ConventionError("weights are given or tuned: leave out --weights or --train-qrels")
    return fuse_trained(runs, fusion, qrels, norm=norm, depth=depth, topics=topics, name=name, **training)


@dataclass(frozen=True)
class _Training:
    """Runs and judgments to train a fusion on; tuned weights maximise `measure` with steps of `step`."""

    lists: AlignedRuns
    qrels: Qrels
    fusion: Fusion
    measure: str = "AP"
    step: float = 0.1
    rel: float | None = None
    progress: Progress | None = None

    def whole(self, topics: Iterable[str] | None) -> Fused:
        """Train on the given topics and fuse every topic."""
        scores, tuned = self.learnt(topics)
        judged = set(self.qrels.topics) if topics is None else set(topics) & set(self.qrels.topics)
        both = sum(decode(topic) in judged for topic in self.lists.topics)
        note = f"{both} of {len(self.lists.topics)} topics were trained on; scores on them are too high (use folds)"
        return Fused(self.fusion.run(self.lists, scores), tuned, (note,))

    def crossed(self, folds: int, seed: int) -> Fused:
        """Fuse each fold with a model trained on the judged topics of the other folds."""
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
        note = f"{folds} folds of {len(names)} topics, seed {seed}: each fused by a model of the other folds"
        return Fused(self.fusion.run(self.lists, scores), tuple(tuned), (note,))

    def learnt(self, topics: Iterable[str] | None) -> tuple[Floats, tuple[Tuned, ...]]:
        """One score per entry from a model trained on some topics, and the tuned weights, if any."""
        if self.fusion.method.trained:
            usual = 1 if self.qrels.relevant_from is None else self.qrels.relevant_from
            learn(self.fusion.method, self.lists, self.qrels, topics, usual if self.rel is None else self.rel)
            return self.fusion.scores(self.lists), ()
        tuned = self.tuned(topics)
        return self.fusion.scores(self.lists, np.array(tuned.weights)), (tuned,)

    def tuned(self, topics: Iterable[str] | None) -> Tuned:
        """The weights that score highest on the given judged topics."""
        runs = self.lists.names
        weights_for(self.fusion.method, [1.0] * len(runs), runs)  # an error for a method without weights
        parts = round(1 / self.step) if 0 < self.step <= 1 else 0
        if not parts or abs(parts * self.step - 1) > 1e-9:
            raise ConventionError(f"step must divide 1, as 0.1 or 0.05 does, got {self.step:g}")
        refuse_below(1, **{"the number of steps": parts})
        judged = set(self.qrels.topics) if topics is None else set(self.qrels.topics) & set(topics)
        if not judged:
            raise DataError(f"{self.qrels.name}: none of the training topics is judged")
        mask = chosen_topics(self.lists, judged)
        lists = self.lists.of_topics(mask)
        names = [decode(name) for name, inside in zip(lists.topics, mask.tolist(), strict=True) if inside]
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
    """The best shares: exhaustively on a small grid, or one coordinate at a time from equal shares."""
    if comb(parts + count - 1, count - 1) <= WHOLE_GRID:
        heads = (shares for shares in product(range(parts + 1), repeat=count - 1) if sum(shares) <= parts)
        grid = ((*shares, parts - sum(shares)) for shares in heads)
        return max(grid, key=lambda shares: (score(shares), -_unequal(shares)))
    best = (parts,) * count
    for _ in range(ROUNDS):
        before = best
        for i in range(count):
            tried = [(*best[:i], share, *best[i + 1 :]) for share in range(parts + 1)]
            best = max(filter(any, tried), key=lambda shares: (score(shares), shares == before, -_unequal(shares)))
        if best == before:
            break
    return best


def _unequal(shares: tuple[int, ...]) -> float:
    """The variance of shares; among shares with the same score, the most even ones win."""
    return float(np.var(np.array(shares) / max(sum(shares), 1)))
