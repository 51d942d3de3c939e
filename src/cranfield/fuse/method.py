"""What a fusion method is: a class with a formula, parameters with ranges, and the promises it keeps.

A method makes one number for each entry, a document of a topic that some run returned. Methods of scores read what a
normalisation makes of them, methods of ranks the places alone. `RRF(k=10)` is how one is typed, in any case of letters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from cranfield.errors import ConventionError
from cranfield.fuse.norms import NORMS
from cranfield.registry import Registered, Registry, about

if TYPE_CHECKING:
    from cranfield.collection import Qrels
    from cranfield.fuse.lists import Lists, Votes
    from cranfield.fuse.norms import Norm
    from cranfield.kernels.table import Floats


METHODS: Registry[Method] = Registry("fusion method", "cranfield.fuse")


class Method(Registered, ABC):
    """A way to make one ranking of several.

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
    keeps_order: ClassVar[bool] = True  # promises that a run fused with itself keeps its order

    def __str__(self) -> str:
        shown = [f"{key}={parameter.show(self.values[key])}" for key, parameter in self.parameters.items()]
        return f"{self.name}({', '.join(shown)})" if shown else self.name

    @abstractmethod
    def votes(self, lists: Lists, norm: Norm) -> Votes:
        """What each run says of each entry."""

    def combine(self, votes: Votes) -> Floats:
        """One number for each entry: the sum, unless told otherwise."""
        return votes.total()

    def fuse(self, lists: Lists, norm: Norm, weights: Floats | None = None) -> Floats:
        """One number for each entry; `weights` are the runs'."""
        if not len(lists.home):
            return np.zeros(0)
        votes = self.votes(lists, norm)
        return self.combine(votes if weights is None else replace(votes, value=votes.value * weights[votes.run]))

    def train(self, lists: Lists, qrels: Qrels, rel: float) -> None:
        """Learn from judged topics; a method that is not `trained` is never asked to."""
        raise ConventionError(f"{self.name} has nothing to learn from judgments")


class OfScores(Method):
    """A method that reads normalised scores."""

    reads = "scores"

    def votes(self, lists: Lists, norm: Norm) -> Votes:
        return norm.votes(lists)


def catalogue() -> dict[str, list[dict[str, str]]]:
    """Methods and normalisations: how each is typed, what it does, its formula, its reference, the peers' names."""

    def row(cls: type[Method | Norm], usage: str, **more: str) -> dict[str, str]:
        peers = {f"in {peer}": name for peer, name in cls.peers.items()}
        return {"usage": usage, "about": about(cls), "formula": cls.formula, **more, **peers}

    methods = [row(cls, str(cls()), reference=cls.reference) for cls in METHODS.values()]
    return {"methods": methods, "normalisations": [row(cls, cls.name) for cls in NORMS.values()]}
