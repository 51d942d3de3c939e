"""What a pooling strategy is: the order in which the candidates of a topic are put before an assessor.

A strategy makes one `Picker` a topic. `pick` names the next document, `tell` brings back its label. Strategies that
do not adapt ignore labels. A picker never names a document twice, names every candidate in the end (a sample: every
one drawn), and with the same seed and the same labels names them in the same order: that is what makes a judging
session resumable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cranfield.registry import Registered, Registry, about

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.kernels.table import Floats
    from cranfield.pool.rankings import Candidates


STRATEGIES: Registry[Strategy] = Registry("pooling strategy", "cranfield.pool.strategies")


class Picker(ABC):
    """Names the documents of one topic in the order in which to judge them."""

    def __init__(self, candidates: Candidates) -> None:
        self.candidates = candidates
        self.picked = np.zeros(len(candidates), bool)
        self.rest = len(candidates)  # documents not picked yet

    def pick(self) -> int | None:
        """The number of the next document, None when all have been named. Labels may still be outstanding."""
        if not self.rest:
            return None
        document = self.choose()
        self.mark(document)
        return document

    def pick_many(self, n: int) -> list[int]:
        """The next n documents, or all that are left, without labels in between."""
        answer: list[int] = []
        while len(answer) < n and (document := self.pick()) is not None:
            answer.append(document)
        return answer

    def mark(self, document: int) -> None:
        """Note that a document need not be named any more."""
        if not self.picked[document]:
            self.picked[document] = True
            self.rest -= 1

    @abstractmethod
    def choose(self) -> int:
        """One of the documents that have not been picked; there is one."""

    def tell(self, document: int, relevant: bool) -> None:  # noqa: B027
        """Learn a label; strategies that do not adapt do nothing."""

    def know(self, document: int, relevant: bool) -> None:
        """Learn a label that was there before: the document need not be judged again."""
        self.mark(document)
        self.tell(document, relevant)


class InOrder(Picker):
    """Names documents in an order fixed beforehand."""

    def __init__(self, candidates: Candidates, order: npt.NDArray[Any]) -> None:
        super().__init__(candidates)
        self._order: list[int] = order.tolist()
        self._place = 0

    def choose(self) -> int:
        while self.picked[self._order[self._place]]:
            self._place += 1
        return self._order[self._place]

    def pick_many(self, n: int) -> list[int]:
        rest = np.array(self._order[self._place :], np.int64)
        chosen = rest[~self.picked[rest]][:n]
        self.picked[chosen] = True
        self.rest -= len(chosen)
        answer: list[int] = chosen.tolist()
        return answer


class Strategy(Registered, ABC):
    """One way to choose what to judge next. Its docstring says what it does and when to use it.

    >>> STRATEGIES.named("rbp(p=0.9)"), STRATEGIES.named("rrf:k=10")
    (rbp(p=0.9), rrf(k=10.0))
    """

    registry = STRATEGIES
    reference: ClassVar[str] = ""
    adaptive: ClassVar[bool] = False  # whether labels change what comes next
    reads: ClassVar[bool] = False  # whether it needs the documents' texts
    samples: ClassVar[bool] = False  # whether it draws a sample and leaves the rest out

    @abstractmethod
    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> Picker:
        """A picker for one topic. `texts` are what strategies that read are given."""

    def chances(self, candidates: Candidates, n: int) -> Floats:
        """How likely each document was to be among the first n: 1 unless the strategy draws lots."""
        return np.ones(len(candidates))

    def strata_of(self, candidates: Candidates) -> list[str] | None:
        """The stratum from which each document is drawn, where there are strata."""
        return None

    def __repr__(self) -> str:
        pairs = [f"{key}={self.values[key]}" for key in self.changed()]
        return f"{self.name}({','.join(pairs)})" if pairs else self.name

    __str__ = __repr__


def catalogue() -> list[dict[str, Any]]:
    """A row for each strategy: what it does, whether it adapts to labels or reads texts, and its options."""
    return [
        {
            "name": name,
            "about": about(cls),
            "adaptive": cls.adaptive,
            "reads": cls.reads,
            "reference": cls.reference,
            "options": {key: (parameter.default, parameter.meaning) for key, parameter in cls.parameters.items()},
        }
        for name, cls in STRATEGIES.items()
    ]
