"""Strategies that learn which runs are worth following: move-to-front, Hedge, and bandits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.pool.strategy import Picker, Strategy

if TYPE_CHECKING:
    from cranfield.kernels.table import Floats
    from cranfield.pool.rankings import Candidates


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

    def follow(self) -> int:
        """An open run."""
        raise AssertionError("every picker of this kind says which run to follow")

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
        """All runs begin alike."""
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
    options = {
        "forget": (float, 1.0, "what an older label counts for when a new one comes: 1 keeps all, 0 the newest alone"),
        "share": (
            int,
            0,
            "0: a label counts for the run that was followed; 1: for every run that returned the document",
        ),
    }

    forget: float
    share: int

    def check(self) -> None:
        """Shares of what is known, and a choice."""
        self.within("forget", 0, 1)
        self.within("share", 0, 1)


class _Bandit(Following):
    def __init__(self, candidates: Candidates, rng: np.random.Generator, options: Bandit) -> None:
        super().__init__(candidates, rng)
        self.good = np.zeros(len(candidates.runs))
        self.bad = np.zeros(len(candidates.runs))
        self.forget, self.share = options.forget, options.share

    def tell(self, document: int, relevant: bool) -> None:
        has = self.candidates.ranks[:, document] > 0
        told = has if self.share else np.arange(len(has)) == self.source[document]
        for counts, one in ((self.good, relevant), (self.bad, not relevant)):
            counts[told] = self.forget * counts[told] + one


class MaxMean(Bandit):
    """MaxMean: follow the run with the highest share of relevant documents so far, by the mean of its Beta distribution.

    Greedy, and hard to beat when runs differ in quality.
    """

    name = "maxmean"
    reference = (
        "Losada, Parapar & Barreiro (2016), Feeling lucky? Multi-armed bandits for ordering judgements in pooling"
    )

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> Picker:
        """Every run begins with Beta(1, 1)."""
        return _MaxMean(candidates, rng, self)


class _MaxMean(_Bandit):
    def follow(self) -> int:
        return self.highest((self.good + 1) / (self.good + self.bad + 2))


class Thompson(Bandit):
    """Thompson sampling: follow the run whose share, drawn from what is believed of it, comes out highest.

    Explores more than MaxMean, and so misses less when a run starts badly.
    """

    name = "thompson"
    reference = (
        "Losada, Parapar & Barreiro (2016), Feeling lucky? Multi-armed bandits for ordering judgements in pooling"
    )

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> Picker:
        """Every run begins with Beta(1, 1)."""
        return _Thompson(candidates, rng, self)


class _Thompson(_Bandit):
    def follow(self) -> int:
        return self.highest(self.rng.beta(self.good + 1, self.bad + 1))


class Hedge(Strategy):
    """Hedge: weigh the runs by how well they have ranked the labels so far, and judge what the weighted runs rank highest.

    A run loses weight for every non-relevant document near its top and gains for a relevant one.
    """

    name = "hedge"
    reference = "Aslam, Pavlu & Savell (2003), A unified model for metasearch, pooling, and system evaluation"
    adaptive = True
    options = {"beta": (float, 0.1, "how strongly a label moves the weights: the smaller, the more")}

    beta: float

    def check(self) -> None:
        """With beta 1 no label would matter."""
        self.within("beta", 1e-6, 1)

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> Picker:
        """All runs begin with the same weight."""
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
