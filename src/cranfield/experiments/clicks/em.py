"""Expectation and maximisation as all click models use it: the prior of a parameter, the iterations, the scan by rank.

Pseudo-counts are a prior. A parameter with c clicks in v views before the log is read has the prior Beta(1 + c, 1 + v − c),
and (c + successes) / (v + trials) is the mode of its posterior. So the iterations never lower the log-likelihood plus
Σ c·log p + (v − c)·log(1 − p) over all parameters p. That sum is the objective.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.base.errors import ConventionError
from cranfield.experiments.clicks.model import FittedClickModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.model import ClickModel, FittedByEM
    from cranfield.experiments.clicks.result_pages import Flags, Numbers, ResultPages


class PseudoCounts(NamedTuple):
    """The clicks and the views that a parameter has before the log is read.

    >>> PseudoCounts(1, 2).mode(np.array([14.0]), np.array([34.0]), np.array([0.5])).round(4).tolist()
    [0.4167]
    """

    clicks: float
    views: float

    @classmethod
    def of(cls, model: ClickModel) -> PseudoCounts:
        """The pseudo-counts of a model; ConventionError if there are more clicks than views."""
        if model.pseudo_clicks > model.pseudo_views:
            raise ConventionError(
                f"{model.name}: pseudo_clicks must be {model.pseudo_views:g} (pseudo_views) at the most,"
                f" got {model.pseudo_clicks:g}"
            )
        return cls(model.pseudo_clicks, model.pseudo_views)

    def mode(self, successes: Floats, trials: Floats, old: Floats) -> Floats:
        """The most likely value of each parameter; the old value where there are no trials at all."""
        tried = trials + self.views
        values = np.divide(successes + self.clicks, tried, out=old.astype(np.float64), where=tried > 0)
        return np.minimum(values, 1.0)  # sums of posteriors may exceed the trials by a rounding error

    def log_density(self, values: Floats) -> float:
        """The log-prior of the parameters, without its constant."""
        return log_sum(self.clicks, values) + log_sum(self.views - self.clicks, 1 - values)


def log_sum(weights: Floats | float, values: Floats) -> float:
    """Σ weight · log(value); a weight of 0 counts nothing, even with a value of 0."""
    counted = np.broadcast_to(np.asarray(weights, np.float64), values.shape) > 0
    if not counted.any():
        return 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(values, out=np.zeros(values.shape), where=counted)
    return float(np.sum(weights * logs))


def ratio(part: Floats, whole: Floats) -> Floats:
    """part / whole; 0 where the whole is 0, because what has no probability has no expectation."""
    return np.divide(part, whole, out=np.zeros(np.broadcast_shapes(part.shape, whole.shape)), where=whole > 0)


def sums(key: Numbers, weights: Floats, size: int) -> Floats:
    """The sum of the weights for each key below `size`."""
    return np.bincount(key, weights, size).astype(np.float64, copy=False)


class Expectations(NamedTuple):
    """What the hidden states are expected to be, given the clicks and the parameters."""

    log_likelihood: float  # of the parameters from which the expectations come
    successes: tuple[Floats, ...]  # for each kind of parameter
    trials: tuple[Floats, ...]
    examined: Floats  # the number of examined views of each pair


class Maximum(NamedTuple):
    """Where the iterations ended."""

    parameters: tuple[Floats, ...]
    objective: Floats  # after each iteration
    change: float  # the largest change of a parameter in the last iteration
    examined: Floats  # the expected number of examined views of each pair


def maximise(model: FittedByEM, parameters: tuple[Floats, ...], expect: Callable[..., Expectations]) -> Maximum:
    """The parameters after a model's iterations, from the function that computes expectations from parameters."""
    prior = PseudoCounts.of(model)
    objective: list[float] = []
    change = np.inf
    expectations = expect(*parameters)
    while len(objective) < model.iterations and change >= model.tolerance:
        counts = zip(expectations.successes, expectations.trials, parameters, strict=True)
        new = tuple(prior.mode(*each) for each in counts)
        change = max(float(np.max(np.abs(n - o), initial=0)) for n, o in zip(new, parameters, strict=True))
        parameters, expectations = new, expect(*new)
        objective.append(expectations.log_likelihood + sum(map(prior.log_density, parameters)))
    return Maximum(parameters, np.array(objective), change, expectations.examined)


@dataclass(frozen=True, eq=False)
class FittedScan(FittedClickModel):
    """A fitted model whose users walk down a page: what a rank is clicked with follows from the clicks above."""

    examined: Floats = field(default_factory=lambda: np.zeros(0), kw_only=True)
    """The expected number of examined views of each pair."""

    @property
    def unseen(self) -> float:
        """The value of a parameter that the log says nothing about."""
        prior = PseudoCounts.of(self.model)
        return prior.clicks / prior.views if prior.views else float(self.model.values.get("start", 0.5))

    @abstractmethod
    def walk(self, pages: ResultPages, look: Callable[[Numbers, Floats], Flags]) -> Floats:
        """The probability of a click on each row, rank by rank; `look` says which of some rows are clicked."""

    def conditional(self, pages: ResultPages) -> Floats:
        return self.walk(pages, lambda rows, _: pages.clicked[rows])

    def simulate(self, pages: ResultPages, rng: np.random.Generator) -> Flags:
        clicked = np.zeros(len(pages.pair), np.bool_)

        def look(rows: Numbers, chances: Floats) -> Flags:
            clicked[rows] = rng.random(len(rows)) < chances
            return clicked[rows]

        self.walk(pages, look)
        return clicked


def by_rank(pages: ResultPages) -> Iterator[tuple[Numbers, Numbers]]:
    """For each rank, the pages that have it and their rows.

    >>> from cranfield.experiments.clicks.result_pages import ResultPages
    >>> pages = ResultPages.of([("q", ["a"], [0]), ("q", ["a", "b"], [0, 0])])
    >>> [(which.tolist(), rows.tolist()) for which, rows in by_rank(pages)]
    [([0, 1], [0, 1]), ([1], [2])]
    """
    lengths = pages.lengths
    which = np.arange(len(pages))
    for rank in range(int(lengths.max(initial=0))):
        which = which[lengths[which] > rank]
        yield which, pages.start[which] + rank
