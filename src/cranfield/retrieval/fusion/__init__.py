"""Rank fusion: several runs → one run. Each method and normalisation is one class.

The result is the union: every document that any run returned for a topic, and every topic that any run
answered. Scores are added only after a normalisation, as no two systems' scores mean the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.kernels import encode
from cranfield.base.parameters import refuse_below
from cranfield.base.run import Run
from cranfield.base.text_layout import name_list
from cranfield.formats import as_qrels, as_runs
from cranfield.retrieval.fusion.aligned_runs import AlignedRuns, lists_of
from cranfield.retrieval.fusion.method import METHODS, FusionMethod
from cranfield.retrieval.fusion.normalisations import NORMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats

__all__ = ["METHODS", "NORMS", "Fusion", "chosen_topics", "fuse", "learn", "methods_that", "weights_for"]

DEFAULT_NORM = "min-max"


def fuse(
    runs: Any,
    method: str | FusionMethod = "RRF",
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

    `runs` are anything that `evaluate` takes. `norm` is the name of a normalisation for methods that read scores
    (default min-max). `weights` has one number per run for methods with weights. Methods that learn read the judgments
    `train` of all topics or of `train_topics`; `rel` is the lowest relevant grade. `depth` limits the documents per
    topic. `cranfield fuse --list` lists all methods and normalisations.

    >>> a, b = {"q": {"x": 9, "y": 8, "z": 1}}, {"q": {"y": 0.4, "w": 0.3}}
    >>> [document for document, _ in fuse([a, b], "RRF(k=1)")["q"]]
    ['y', 'x', 'w', 'z']
    """
    fusion = Fusion(METHODS.named(method), norm, depth, name)
    opened = as_runs(runs)
    if len(opened) < 2:
        raise DataError(f"fusion needs two runs or more, found {len(opened)}")
    lists = lists_of(opened)
    if fusion.method.trained:
        learn(fusion.method, lists, train, train_topics, rel)
    return fusion.run(lists, fusion.scores(lists, weights_for(fusion.method, weights, lists.names)))


@dataclass(frozen=True)
class Fusion:
    """A fusion ready to use: the (trained) method, its settings, the depth, and the name of the result."""

    method: FusionMethod
    norm: str | None = None
    depth: int | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.norm is not None and self.method.reads == "ranks":
            raise ConventionError(
                f"{self.method.name} reads ranks, a normalisation of scores changes nothing; leave norm out"
            )
        refuse_below(1, depth=self.depth)

    def scores(self, lists: AlignedRuns, weights: Floats | None = None) -> Floats:
        """One score per entry."""
        return self.method.fuse(lists, NORMS.named(self.norm or DEFAULT_NORM), weights)

    def run(self, lists: AlignedRuns, scores: Floats) -> Run:
        """The entries as a run in the order of their scores."""
        tag = "_".join((self.name or self.method.name).split())
        title = self.name or f"{self.method.name}({'+'.join(lists.names)})"
        return Run(lists.fused(scores, tag, self.depth), title, tag)


def learn(
    method: FusionMethod, lists: AlignedRuns, qrels: Any, topics: Iterable[str] | None = None, rel: float = 1
) -> None:
    """Train a method on the judgments of all topics, or of some."""
    if qrels is None:
        raise ConventionError(f"{method.name} learns from judgments: give train=…")
    method.train(lists if topics is None else lists.of_topics(chosen_topics(lists, topics)), as_qrels(qrels), rel)


def chosen_topics(lists: AlignedRuns, topics: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Which topics of the runs have these ids; DataError if none has."""
    ids = {encode(topic) for topic in topics}
    mask = np.array([topic in ids for topic in lists.topics], bool)
    if not mask.any():
        raise DataError(f"none of the {len(ids)} training topics is in the runs")
    return mask


def weights_for(method: FusionMethod, weights: Sequence[float] | None, names: Sequence[str]) -> Floats | None:
    """The runs' weights as an array; an error if the method has no weights."""
    if weights is None:
        return None
    if not method.takes_weights:
        raise ConventionError(f"{method.name} takes no weights; {methods_that('takes_weights')} do")
    numbers = [float(weight) for weight in weights]
    if len(numbers) != len(names) or not all(map(math.isfinite, numbers)):
        raise ConventionError(f"expected {len(names)} weights, one per run, found {', '.join(map(str, weights))}")
    return np.array(numbers)


def methods_that(*claims: str) -> str:
    """The names of the methods with one of these properties, for messages and help.

    >>> methods_that("trained", "needs_weights")
    'w-sum, WMNZ, Mixed, MAPFuse, PosFuse, ProbFuse, SegFuse, BayesFuse and SlideFuse'
    """
    return name_list([name for name, method in METHODS.items() if any(getattr(method, claim) for claim in claims)])
