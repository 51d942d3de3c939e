"""Strategies that adapt to labels: they learn which runs to follow, or which document decides (bandits, Hedge, effect)."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.parameters import Real, Whole
from cranfield.pooling.strategy import Picker, Strategy

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
    from cranfield.pooling.strategy import Candidates

LOSADA = "Losada, Parapar & Barreiro (2016), Feeling lucky? Multi-armed bandits for ordering judgements in pooling"


class Following(Picker):
    """Picks the next document of one run at a time, and remembers the run of each document."""

    def __init__(self, candidates: Candidates, rng: np.random.Generator) -> None:
        super().__init__(candidates)
        self.rng = rng
        self.source = np.full(len(candidates), -1, np.int64)
        self._rest = list(map(iter, candidates.lists))
        self.open = np.array([len(ranked) > 0 for ranked in candidates.lists])

    def choose(self) -> int:
        """The next document of the run that is followed now; runs without further documents are closed."""
        while True:
            run = self.follow()
            for document in self._rest[run]:
                if not self.picked[document]:
                    self.source[document] = run
                    return document
            self.open[run] = False

    @abstractmethod
    def follow(self) -> int:
        """The run to follow: one of the open runs."""

    def highest(self, values: Floats) -> int:
        """One of the open runs with the highest value, at random among equals."""
        open_values = np.where(self.open, values, -np.inf)
        best = np.flatnonzero(open_values == open_values.max())
        return int(best[0] if len(best) == 1 else self.rng.choice(best))


class MoveToFront(Strategy):
    """Move-to-front: follow a run while it yields relevant documents, then the run with the fewest failures.

    Use it when labels come back one by one; it needs no parameter and finds relevant documents early.
    """

    name = "move-to-front"
    reference = "Cormack, Palmer & Clarke (1998), Efficient construction of large test collections"
    adaptive = True

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> Picker:
        return _MoveToFront(candidates, rng)


class _MoveToFront(Following):
    def __init__(self, candidates: Candidates, rng: np.random.Generator) -> None:
        super().__init__(candidates, rng)
        self.failures = np.zeros(len(candidates.runs))
        self.current = -1

    def follow(self) -> int:
        if self.current < 0 or not self.open[self.current]:
            self.current = self.highest(-self.failures)
        return self.current

    def tell(self, document: int, relevant: bool) -> None:
        run = int(self.source[document])
        if run >= 0 and not relevant:
            self.failures[run] += 1
            if run == self.current:
                self.current = -1


class Bandit(Strategy):
    """Runs as arms of a bandit: each relevant document is a success of the run that led to it, any other a failure."""

    adaptive = True
    forget = Real(
        1.0, "the weight of older labels when a new one arrives: 1 keeps all, 0 only the newest", low=0, high=1
    )
    share = Whole(
        0, "0: a label counts for the run that was followed; 1: for every run that returned the document", low=0, high=1
    )

    @abstractmethod
    def promise(self, good: Floats, bad: Floats, rng: np.random.Generator) -> Floats:
        """A value per run, higher for runs to follow, from its relevant and other documents so far; the prior is Beta(1, 1)."""

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> Picker:
        return _Bandit(candidates, rng, self)


class _Bandit(Following):
    def __init__(self, candidates: Candidates, rng: np.random.Generator, strategy: Bandit) -> None:
        super().__init__(candidates, rng)
        self.strategy = strategy
        self.good = np.zeros(len(candidates.runs))
        self.bad = np.zeros(len(candidates.runs))

    def follow(self) -> int:
        return self.highest(self.strategy.promise(self.good, self.bad, self.rng))

    def tell(self, document: int, relevant: bool) -> None:
        has = self.candidates.ranks[:, document] > 0
        runs = has if self.strategy.share else np.arange(len(has)) == self.source[document]
        for counts, one in ((self.good, relevant), (self.bad, not relevant)):
            counts[runs] = self.strategy.forget * counts[runs] + one


class MaxMean(Bandit):
    """MaxMean: follow the run with the highest share of relevant documents so far, by the mean of its Beta distribution.

    Greedy, and hard to beat when runs differ in quality.
    """

    name = "maxmean"
    reference = LOSADA

    def promise(self, good: Floats, bad: Floats, rng: np.random.Generator) -> Floats:
        return (good + 1) / (good + bad + 2)


class Thompson(Bandit):
    """Thompson sampling: draw a share from each run's Beta distribution and follow the run with the highest.

    It explores more than MaxMean, and so misses less when a run starts badly.
    """

    name = "thompson"
    reference = LOSADA

    def promise(self, good: Floats, bad: Floats, rng: np.random.Generator) -> Floats:
        return rng.beta(good + 1, bad + 1)


class Hedge(Strategy):
    """Hedge: weight the runs by how well they ranked the labels so far, and judge what the weighted runs rank highest.

    A run loses weight for every non-relevant document near its top and gains weight for a relevant one.
    """

    name = "hedge"
    reference = "Aslam, Pavlu & Savell (2003), A unified model for metasearch, pooling, and system evaluation"
    adaptive = True
    beta = Real(0.1, "how strongly a label moves the weights: the smaller, the more", low=1e-6, high=1)

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> Picker:
        return _Hedge(candidates, self.beta)


class _Hedge(Picker):
    def __init__(self, candidates: Candidates, beta: float) -> None:
        super().__init__(candidates)
        deepest = float(candidates.rank.max(initial=1)) + 1
        self.gain = np.zeros(candidates.ranks.shape)  # a document that a run lacks does not change its weight
        self.gain[candidates.run, candidates.document] = 0.5 * np.log(deepest / candidates.rank)
        self.log_weight = np.zeros(len(candidates.runs))
        self.step = -np.log(beta)

    def choose(self) -> int:
        weight = np.exp(self.log_weight - self.log_weight.max())
        value = np.where(self.picked, -np.inf, weight @ self.gain)
        return int(np.argmax(value))

    def tell(self, document: int, relevant: bool) -> None:
        self.log_weight += (1 if relevant else -1) * self.step * self.gain[:, document]


class EffectStrategy(Strategy):
    """By effect on the comparison: the next label is the one that would move the runs' AP furthest apart, over all pairs.

    Use it to decide with few labels which of a few runs is better. Do not use it to build a collection, because
    documents that all runs agree on are judged last.
    """

    name = "effect"
    reference = "Carterette, Allan & Sitaraman (2006), Minimal test collections for retrieval evaluation"
    adaptive = True

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> Picker:
        return _Effect(candidates)


class _Effect(Picker):
    """AP as a quadratic form in the labels.

    A relevant document adds 1 / rank for itself and for every other relevant one, with the deeper of the two ranks.
    Unknown labels count as the share of relevant labels so far. The effect of a label differs between runs; the
    document with the largest difference decides most.
    """

    def __init__(self, candidates: Candidates) -> None:
        super().__init__(candidates)
        self.belief = np.full(len(candidates), 0.5)
        self.labelled = np.zeros(len(candidates), bool)
        self.relevant = 0
        self.judged = 0

    def choose(self) -> int:
        added = np.stack([self._added(ranked) for ranked in self.candidates.lists])
        n = len(added)
        # the sum of |a - b| over all pairs, from the sorted values
        spread = (np.arange(1 - n, n, 2)[:, None] * np.sort(added, axis=0)).sum(axis=0) if n > 1 else added[0]
        return int(np.argmax(np.where(self.picked, -np.inf, spread)))

    def _added(self, ranked: list[int]) -> Floats:
        """What each document would add to the sum of precisions of one run if it were relevant."""
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
        self.labelled[document] = True
        self.judged += 1
        self.relevant += relevant
        self.belief[~self.labelled] = (self.relevant + 1) / (self.judged + 2)
        self.belief[document] = relevant
