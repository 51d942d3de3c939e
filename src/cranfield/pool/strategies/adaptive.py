"""Strategies that learn from labels which runs are worth following, or which document decides: bandits, Hedge, effect."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.parameters import Real, Whole
from cranfield.pool.strategy import Picker, Strategy

if TYPE_CHECKING:
    from cranfield.kernels.table import Floats
    from cranfield.pool.rankings import Candidates

LOSADA = "Losada, Parapar & Barreiro (2016), Feeling lucky? Multi-armed bandits for ordering judgements in pooling"


class Following(Picker):
    """Names the next document of one run at a time, and remembers from which run each came."""

    def __init__(self, candidates: Candidates, rng: np.random.Generator) -> None:
        super().__init__(candidates)
        self.rng = rng
        self.source = np.full(len(candidates), -1, np.int64)
        self._next = [0] * len(candidates.runs)
        self.open = np.array([len(ranked) > 0 for ranked in candidates.lists])

    def choose(self) -> int:
        """The next document of the run that is followed now; runs without one are closed."""
        while True:
            run = self.follow()
            document = self._after(run)
            if document is not None:
                self.source[document] = run
                return document
            self.open[run] = False

    @abstractmethod
    def follow(self) -> int:
        """An open run."""

    def _after(self, run: int) -> int | None:
        ranked, place = self.candidates.lists[run], self._next[run]
        while place < len(ranked) and self.picked[ranked[place]]:
            place += 1
        self._next[run] = place
        return ranked[place] if place < len(ranked) else None

    def highest(self, values: Floats) -> int:
        """One of the open runs with the highest value, drawn at random among equals."""
        shown = np.where(self.open, values, -np.inf)
        best = np.flatnonzero(shown == shown.max())
        return int(best[0] if len(best) == 1 else self.rng.choice(best))


class MoveToFront(Strategy):
    """Move-to-front: stay with a run as long as it yields relevant documents, then go to the run with the fewest failures.

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
    """Runs as arms of a bandit: each relevant document speaks for the run that led to it, each other one against."""

    adaptive = True
    forget = Real(
        1.0, "what an older label counts for when a new one comes: 1 keeps all, 0 the newest alone", low=0, high=1
    )
    share = Whole(
        0, "0: a label counts for the run that was followed; 1: for every run that returned the document", low=0, high=1
    )

    @abstractmethod
    def promise(self, good: Floats, bad: Floats, rng: np.random.Generator) -> Floats:
        """How much each run promises, given what was relevant of it so far and what not; all begin with Beta(1, 1)."""

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
    """Thompson sampling: follow the run whose share, drawn from what is believed of it, comes out highest.

    Explores more than MaxMean, and so misses less when a run starts badly.
    """

    name = "thompson"
    reference = LOSADA

    def promise(self, good: Floats, bad: Floats, rng: np.random.Generator) -> Floats:
        return rng.beta(good + 1, bad + 1)


class Hedge(Strategy):
    """Hedge: weigh the runs by how well they have ranked the labels so far, and judge what the weighted runs rank highest.

    A run loses weight for every non-relevant document near its top and gains for a relevant one.
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
        self.gain = np.zeros(candidates.ranks.shape)  # a document that a run does not have gains it nothing
        self.gain[candidates.run, candidates.document] = 0.5 * np.log(deepest / candidates.rank)
        self.log_weight = np.zeros(len(candidates.runs))
        self.step = -np.log(beta)

    def choose(self) -> int:
        weight = np.exp(self.log_weight - self.log_weight.max())
        value = np.where(self.picked, -np.inf, weight @ self.gain)
        return int(np.argmax(value))

    def tell(self, document: int, relevant: bool) -> None:
        self.log_weight += (1 if relevant else -1) * self.step * self.gain[:, document]


class Effect(Strategy):
    """By effect on the comparison: next is the document whose label would move the runs' AP furthest apart, over all pairs.

    Use it to settle which of a few runs is better with few labels; not to build a collection for others, because what
    all runs agree on is judged last.
    """

    name = "effect"
    reference = "Carterette, Allan & Sitaraman (2006), Minimal test collections for retrieval evaluation"
    adaptive = True

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> Picker:
        return _Effect(candidates)


class _Effect(Picker):
    """AP is a quadratic form in the labels: a relevant document adds, for itself and for every other relevant one, 1 / the
    deeper of the two ranks. Labels not known yet stand at the share of relevant ones found so far. What a label would add
    differs from run to run; where it differs most, it decides most.
    """

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
