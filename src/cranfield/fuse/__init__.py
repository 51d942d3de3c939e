"""Runs → Run: rank fusion, each method and normalisation one class that says what it does.

What is fused is the union: a document that any run returned for a topic is in the result, and a topic that any run
answered. Scores are added only after a normalisation, as no two systems' scores mean the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import ConventionError, DataError
from cranfield.formats import as_qrels, as_runs
from cranfield.fuse.lists import Lists, lists_of
from cranfield.fuse.method import METHODS as METHODS
from cranfield.fuse.method import Method, method_named
from cranfield.fuse.norms import NORMS as NORMS
from cranfield.fuse.norms import norm_named
from cranfield.kernels import encode
from cranfield.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cranfield.collection import Qrels
    from cranfield.kernels.table import Floats

__all__ = ["METHODS", "NORMS", "fuse", "learn", "merged", "weights_for"]

USUAL_NORM = "min-max"


def fuse(
    runs: Any,
    method: str | Method = "RRF",
    *,
    norm: str | None = None,
    weights: Sequence[float] | None = None,
    depth: int | None = None,
    train: Any = None,
    train_topics: Iterable[str] | None = None,
    rel: float = 1,
    name: str | None = None,
) -> Run:
    """Fuse two runs or more into one.

    `runs` are whatever `evaluate` takes. `norm` (min-max, max, sum, z, rank, borda, none) is for methods of scores, whose
    usual one is min-max; `weights`, one a run, for w-sum, CombSUM, RRF, RBC and Borda. MAPFuse and SlideFuse learn from
    the judgments `train`, all topics or those in `train_topics`; `rel` is the lowest relevant grade. `depth` keeps the
    best documents of each topic.

    >>> a, b = {"q": {"x": 9, "y": 8, "z": 1}}, {"q": {"y": 0.4, "w": 0.3}}
    >>> [document for document, _ in fuse([a, b], "RRF(k=1)")["q"]]
    ['y', 'x', 'w', 'z']
    """
    chosen = method_named(method) if isinstance(method, str) else method
    lists = lists_of(_several(as_runs(runs)))
    if chosen.trained:
        learn(chosen, lists, train, train_topics, rel)
    return merged(lists, chosen, norm, weights_for(chosen, weights, lists.names), depth, name)


def merged(
    lists: Lists,
    method: Method,
    norm: str | None = None,
    weights: Floats | None = None,
    depth: int | None = None,
    name: str | None = None,
) -> Run:
    """The fused run of lists that are already laid side by side, by a method that has learnt what it must."""
    if norm is not None and method.reads == "ranks":
        raise ConventionError(f"{method.name} reads ranks, a normalisation of scores changes nothing; leave norm out")
    if depth is not None and (depth < 1 or depth != int(depth)):
        raise ConventionError(f"depth must be a whole number, 1 or more, got {depth}")
    value = method.fuse(lists, norm_named(norm or USUAL_NORM), weights)
    title = name or f"{method.name}({'+'.join(lists.names)})"
    tag = "_".join((name or method.name).split())
    return Run(lists.fused(value, tag, depth), title, tag)


def learn(method: Method, lists: Lists, qrels: Any, topics: Iterable[str] | None = None, rel: float = 1) -> None:
    """Let a trained method see the judgments of all topics, or of some."""
    if qrels is None:
        raise ConventionError(
            f"{method.name} learns from judgments: give train=qrels (--train-qrels on the command line)"
        )
    known: Qrels = as_qrels(qrels)
    method.train(lists if topics is None else lists.of_topics(chosen_topics(lists, topics)), known, rel)


def chosen_topics(lists: Lists, topics: Iterable[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of the topics are among some that were named; none is an error."""
    wanted = {encode(topic) for topic in topics}
    mask = np.array([topic in wanted for topic in lists.topics], bool)
    if not mask.any():
        raise DataError(f"none of the {len(wanted)} training topics is in the runs")
    return mask


def weights_for(method: Method, weights: Sequence[float] | None, names: Sequence[str]) -> Floats | None:
    """The runs' weights as an array; a method that takes none refuses them."""
    if weights is None:
        return None
    if not method.takes_weights:
        raise ConventionError(f"{method.name} takes no weights; w-sum, CombSUM, RRF, RBC and Borda do")
    given = [float(weight) for weight in weights]
    if len(given) != len(names) or not all(math.isfinite(weight) for weight in given):
        raise ConventionError(f"expected {len(names)} weights, one a run, found {', '.join(map(str, weights))}")
    return np.array(given)


def _several(runs: list[Run]) -> list[Run]:
    if len(runs) < 2:
        raise DataError(f"fusion needs two runs or more, found {len(runs)}")
    return runs
