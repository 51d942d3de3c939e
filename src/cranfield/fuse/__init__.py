"""Runs → Run: rank fusion, each method and normalisation one class that says what it does.

What is fused is the union: a document that any run returned for a topic is in the result, and a topic that any run
answered. Scores are added only after a normalisation, as no two systems' scores mean the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import ConventionError, DataError
from cranfield.formats import as_qrels, as_runs
from cranfield.fuse.lists import Lists, lists_of
from cranfield.fuse.method import METHODS, Method
from cranfield.fuse.norms import NORMS
from cranfield.kernels import encode
from cranfield.parameters import refuse_below
from cranfield.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from cranfield.kernels.table import Floats

__all__ = ["METHODS", "NORMS", "Fusion", "chosen_topics", "fuse", "learn", "methods_that", "weights_for"]

DEFAULT_NORM = "min-max"


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

    `runs` are whatever `evaluate` takes. `norm` is the name of a normalisation, for methods that read scores; the usual one
    is min-max. `weights` are one number per run, for methods that take them. Methods that learn read the judgments `train`,
    of all topics or those in `train_topics`; `rel` is the lowest relevant grade. `depth` keeps the best documents of each
    topic. `cranfield fuse --list` names all methods and normalisations.

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
    """How lists that stand side by side become one run: by a method that has learnt what it must, how deep, called what."""

    method: Method
    norm: str | None = None
    depth: int | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.norm is not None and self.method.reads == "ranks":
            raise ConventionError(
                f"{self.method.name} reads ranks, a normalisation of scores changes nothing; leave norm out"
            )
        refuse_below(1, depth=self.depth)

    def scores(self, lists: Lists, weights: Floats | None = None) -> Floats:
        """One number for each entry."""
        return self.method.fuse(lists, NORMS.named(self.norm or DEFAULT_NORM), weights)

    def run(self, lists: Lists, scores: Floats) -> Run:
        """The entries in the order of their scores."""
        tag = "_".join((self.name or self.method.name).split())
        title = self.name or f"{self.method.name}({'+'.join(lists.names)})"
        return Run(lists.fused(scores, tag, self.depth), title, tag)


def learn(method: Method, lists: Lists, qrels: Any, topics: Iterable[str] | None = None, rel: float = 1) -> None:
    """Let a trained method see the judgments of all topics, or of some."""
    if qrels is None:
        raise ConventionError(f"{method.name} learns from judgments: give train=…")
    method.train(lists if topics is None else lists.of_topics(chosen_topics(lists, topics)), as_qrels(qrels), rel)


def chosen_topics(lists: Lists, topics: Iterable[str]) -> npt.NDArray[np.bool_]:
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
        raise ConventionError(f"{method.name} takes no weights; {methods_that('takes_weights')} do")
    numbers = [float(weight) for weight in weights]
    if len(numbers) != len(names) or not all(map(math.isfinite, numbers)):
        raise ConventionError(f"expected {len(names)} weights, one a run, found {', '.join(map(str, weights))}")
    return np.array(numbers)


def methods_that(*claims: str) -> str:
    """The names of the methods that claim one of these things of themselves, for messages and help.

    >>> methods_that("trained", "needs_weights")
    'w-sum, WMNZ, Mixed, MAPFuse, PosFuse, ProbFuse, SegFuse, BayesFuse and SlideFuse'
    """
    *names, last = (name for name, method in METHODS.items() if any(getattr(method, claim) for claim in claims))
    return f"{', '.join(names)} and {last}" if names else last
