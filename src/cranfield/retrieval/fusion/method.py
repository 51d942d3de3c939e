"""The base class of fusion methods: a formula, parameters with ranges, and promises that are tested.

A method computes one number per entry (a document of a topic that some run returned). Methods of scores read
normalised scores, methods of ranks only ranks. Users type `RRF(k=10)`, in upper or lower case.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from cranfield.base.errors import ConventionError
from cranfield.base.registry import Registered, Registry, about
from cranfield.retrieval.fusion.normalisations import NORMS, Norm

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
    from cranfield.base.qrels import Qrels
    from cranfield.retrieval.fusion.aligned_runs import AlignedRuns, Votes


METHODS: Registry[type[FusionMethod]] = Registry("fusion method", "fusion_methods", "cranfield.retrieval.fusion")


class FusionMethod(Registered, ABC):
    """A way to fuse several rankings into one.

    >>> str(METHODS.named("rrf(k=10)"))
    'RRF(k=10)'
    """

    registry = METHODS
    formula: ClassVar[str]
    reference: ClassVar[str]
    peers: ClassVar[dict[str, str]] = {}
    reads: ClassVar[Literal["scores", "ranks"]] = "ranks"
    takes_weights: ClassVar[bool] = False
    needs_weights: ClassVar[bool] = False
    trained: ClassVar[bool] = False  # whether it learns from judgments
    keeps_order: ClassVar[bool] = True  # promise: a run fused with itself keeps its order

    def __str__(self) -> str:
        settings = [f"{key}={parameter.show(self.values[key])}" for key, parameter in self.parameters.items()]
        return f"{self.name}({', '.join(settings)})" if settings else self.name

    @abstractmethod
    def votes(self, lists: AlignedRuns, norm: Norm) -> Votes:
        """The contributions of the runs to the entries."""

    def combine(self, votes: Votes) -> Floats:
        """One number per entry: by default the sum of the contributions."""
        return votes.total()

    def fuse(self, lists: AlignedRuns, norm: Norm, weights: Floats | None = None) -> Floats:
        """One number per entry; `weights` are those of the runs."""
        if not len(lists.home):
            return np.zeros(0)
        votes = self.votes(lists, norm)
        return self.combine(votes if weights is None else replace(votes, value=votes.value * weights[votes.run]))

    def train(self, lists: AlignedRuns, qrels: Qrels, rel: float) -> None:
        """Learn from judged topics; called only if the method is `trained`."""
        raise ConventionError(f"{self.name} has nothing to learn from judgments")


class OfScores(FusionMethod):
    """A method that reads normalised scores."""

    reads = "scores"

    def votes(self, lists: AlignedRuns, norm: Norm) -> Votes:
        return norm.votes(lists)


def catalogue() -> dict[str, list[dict[str, str]]]:
    """Methods and normalisations: how to type each, what it does, its formula, reference, and names in other tools."""

    def row(cls: type[FusionMethod | Norm], usage: str, **more: str) -> dict[str, str]:
        peers = {f"in {peer}": name for peer, name in cls.peers.items()}
        return {"usage": usage, "about": about(cls), "formula": cls.formula, **more, **peers}

    methods = [row(cls, str(cls()), reference=cls.reference) for cls in METHODS.values()]
    return {"methods": methods, "normalisations": [row(cls, cls.name) for cls in NORMS.values()]}
