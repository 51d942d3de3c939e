"""Judge what decides the comparison: the document whose label most changes which run wins.

AP is a quadratic form in the labels (Carterette, Allan & Sitaraman 2006): a relevant document adds, for itself and for
every other relevant one, 1 / the deeper of the two ranks. Labels not known yet stand at the share of relevant ones
found so far. What a label would add differs from run to run; where it differs most, it decides most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.pool.strategy import Picker, Strategy

if TYPE_CHECKING:
    from cranfield.kernels.table import Floats
    from cranfield.pool.rankings import Candidates


class Effect(Strategy):
    """By effect on the comparison: next is the document whose label would move the runs' AP furthest apart, over all pairs.

    Use it to settle which of a few runs is better with few labels; not to build a collection for others, because what
    all runs agree on is judged last.
    """

    name = "effect"
    reference = "Carterette, Allan & Sitaraman (2006), Minimal test collections for retrieval evaluation"
    adaptive = True

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> Picker:
        """Nothing is known yet."""
        return _Effect(candidates)


class _Effect(Picker):
    def __init__(self, candidates: Candidates) -> None:
        super().__init__(candidates)
        self.belief = np.full(len(candidates), 0.5)
        self.known = np.zeros(len(candidates), bool)
        self.found = 0
        self.judged = 0

    def choose(self) -> int:
        added = np.stack([self._added(ranked) for ranked in self.candidates.lists])
        n = len(added)
        # the sum of |a - b| over all pairs, from the sorted values
        spread = (np.arange(1 - n, n, 2)[:, None] * np.sort(added, axis=0)).sum(axis=0) if n > 1 else added[0]
        return int(np.argmax(np.where(self.picked, -np.inf, spread)))

    def _added(self, ranked: list[int]) -> Floats:
        """What each document would add to the sum of precisions of one run, were it relevant."""
        answer = np.zeros(len(self.belief))
        if not ranked:
            return answer
        rank = np.arange(1, len(ranked) + 1)
        belief = self.belief[ranked]
        above = np.cumsum(belief) - belief
        below = np.cumsum((belief / rank)[::-1])[::-1] - belief / rank
        answer[ranked] = (1 + above) / rank + below
        return answer

    def tell(self, document: int, relevant: bool) -> None:
        self.known[document] = True
        self.judged += 1
        self.found += relevant
        self.belief[~self.known] = (self.found + 1) / (self.judged + 2)
        self.belief[document] = relevant
