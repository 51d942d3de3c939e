"""Pairwise preferences, and methods that estimate the strength of each item from them.

Wins alone can compare only items that are linked by chains of wins in both directions: an item that never lost has no
finite strength, nor has one that never won. Every result names these groups (strongly connected components).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import Real, Whole
from cranfield.base.registry import Registered, Registry
from cranfield.stats.ratings import encode

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from cranfield.stats.ratings import Names
    from cranfield.stats.ties import Floats, Ints


METHODS_OF_PREFERENCES: Registry[type[OfPreferences]] = Registry(
    "method of preferences", "preference_methods", "cranfield.stats.consensus"
)


@dataclass(frozen=True, eq=False)
class PairwisePreferences:
    """Comparisons of two items: entry i says that `items[above[i]]` beat `items[below[i]]`, or that they tied.

    A tie counts as half a win for each. One line may stand for several raters.

    >>> PairwisePreferences.of([("a", "b"), ("b", "c")], ties=[("a", "c")]).wins().toarray().tolist()
    [[0.0, 1.0, 0.5], [0.0, 0.0, 1.0], [0.5, 0.0, 0.0]]
    """

    above: Ints
    below: Ints
    tied: Ints  # 1 for a tie
    items: Names

    @classmethod
    def of(
        cls, wins: Iterable[tuple[Hashable, Hashable]], ties: Iterable[tuple[Hashable, Hashable]] = ()
    ) -> PairwisePreferences:
        """From pairs of winner and loser, and pairs that tied."""
        won, tied_pairs = list(wins), list(ties)
        pairs = [*won, *tied_pairs]
        for one, other in pairs:
            if one == other:
                raise DataError(f"item {one!r} is compared with itself")
        names, code = encode([name for pair in pairs for name in pair])
        tied = np.repeat([0, 1], [len(won), len(tied_pairs)])
        return cls(code[::2], code[1::2], tied, names)

    def __len__(self) -> int:
        return len(self.above)

    def wins(self) -> Any:
        """How often each item (row) beat each other (column), as a sparse table; a tie is half a win for each."""
        from scipy.sparse import coo_array  # type: ignore[import-untyped, unused-ignore]

        number = len(self.items)
        row, column = np.r_[self.above, self.below[self.tied == 1]], np.r_[self.below, self.above[self.tied == 1]]
        value = np.r_[np.where(self.tied == 1, 0.5, 1.0), np.full(int(self.tied.sum()), 0.5)]
        table = coo_array((value, (row, column)), (number, number)).tocsr()
        table.sum_duplicates()
        return table


class Strengths(NamedTuple):
    """The strength of each item by one method; higher is better."""

    method: str
    items: Names
    strength: Floats
    component: Ints
    """The component of each item. Items of one component are linked by chains of wins in both directions."""
    comparable: bool
    """Whether strengths of different components may be compared."""
    iterations: int = 0
    converged: bool = True

    @property
    def components(self) -> list[tuple[Hashable, ...]]:
        """The items of each component, the largest first."""
        groups = [
            tuple(self.items[item] for item in np.flatnonzero(self.component == number))
            for number in range(int(self.component.max(initial=-1)) + 1)
        ]
        return sorted(groups, key=lambda group: -len(group))


class OfPreferences(Registered, ABC):
    """A method that computes one strength per item from preferences."""

    registry = METHODS_OF_PREFERENCES
    title: ClassVar[str]
    reference: ClassVar[str] = ""

    @abstractmethod
    def strengths(self, preferences: PairwisePreferences) -> Strengths:
        """One number per item; higher is better."""


def components(wins: Any) -> Ints:
    """The number of each item's strongly connected component in the graph of wins."""
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped, unused-ignore]

    return np.asarray(connected_components(wins, directed=True, connection="strong")[1], np.int64)


NEAR = 1e-9  # of the slope, for each comparison
HALVINGS = 40
ROUNDING = 1e-13  # of a likelihood


class BradleyTerry(OfPreferences):
    """Strengths such that the log odds of beating another are the difference of the two; ties are half wins.

    With a prior, each item is also compared `prior` times with an item of strength 0 and wins half of the time: all
    strengths are finite and comparable. Without a prior (prior=0), strengths exist only within a component (items
    linked by chains of wins in both directions). Each component then has a mean of 0, and the strength of an item alone
    in its component has no meaning.

    >>> wins = PairwisePreferences.of([("a", "b")] * 3 + [("b", "a")])
    >>> BradleyTerry(prior=0).strengths(wins).strength.round(4).tolist()  # log 3 apart
    [0.5493, -0.5493]
    """

    name = "bradley-terry"
    title = "Bradley and Terry's model"
    aliases = ("bt",)
    reference = "Bradley and Terry (1952)"
    prior = Real(1, "comparisons of each item with one of strength 0, half of them won", low=0)
    passes = Whole(200, "how many steps are taken at the most")

    def strengths(self, preferences: PairwisePreferences) -> Strengths:
        wins = preferences.wins()
        component = components(wins)
        told_apart = wins if self.prior else _within(wins, component)
        won = np.asarray(told_apart.sum(axis=1), np.float64).ravel() + self.prior / 2
        strength, steps, converged = _newton(_pairs(told_apart), won, self.prior, component, self.passes)
        return Strengths(str(self), preferences.items, strength, component, self.prior > 0, steps, converged)


class Pairs(NamedTuple):
    """The number of comparisons of each pair of items."""

    one: Ints
    other: Ints
    times: Floats


def _pairs(wins: Any) -> Pairs:
    from scipy.sparse import triu  # type: ignore[import-untyped, unused-ignore]

    met = triu(wins + wins.T, 1).tocoo()
    return Pairs(met.row.astype(np.int64), met.col.astype(np.int64), met.data)


def _within(wins: Any, component: Ints) -> Any:
    """The wins within components."""
    from scipy.sparse import coo_array

    table = wins.tocoo()
    same = component[table.row] == component[table.col]
    return coo_array((table.data[same], (table.row[same], table.col[same])), table.shape).tocsr()


def _newton(pairs: Pairs, won: Floats, prior: float, component: Ints, passes: int) -> tuple[Floats, int, bool]:
    """The maximum of the concave likelihood by Newton's method with step halving; how many steps, and if it converged."""
    from scipy.sparse.linalg import spsolve  # type: ignore[import-untyped, unused-ignore]

    strength = np.zeros(len(won))
    if not len(won):
        return strength, 0, True
    height = _log_likelihood(strength, pairs, won, prior)
    for done in range(1, passes + 1):
        slope, bend = _derivatives(strength, pairs, won, prior, component)
        if np.abs(slope).max() <= NEAR * max(1.0, float(won.max())):
            return _centred(strength, component, prior), done - 1, True
        step = spsolve(bend, slope)
        for _ in range(HALVINGS):
            higher = _log_likelihood(strength + step, pairs, won, prior)
            if higher >= height - ROUNDING * abs(height):
                break
            step = step / 2
        strength, height = strength + step, higher
    return _centred(strength, component, prior), passes, False


def _centred(strength: Floats, component: Ints, prior: float) -> Floats:
    """The strengths with a mean of 0 in each component: without a prior only differences within one are identified."""
    if prior:
        return strength
    mean = np.bincount(component, strength) / np.bincount(component)
    return np.asarray(strength - mean[component], np.float64)


def _log_likelihood(strength: Floats, pairs: Pairs, won: Floats, prior: float) -> float:
    either = np.logaddexp(strength[pairs.one], strength[pairs.other])
    return float(won @ strength - pairs.times @ either - prior * np.logaddexp(strength, 0).sum())


def _derivatives(strength: Floats, pairs: Pairs, won: Floats, prior: float, component: Ints) -> tuple[Floats, Any]:
    """The gradient and the negative Hessian; without a prior one item of each component is held fixed."""
    from scipy.sparse import coo_array
    from scipy.special import expit  # type: ignore[import-untyped, unused-ignore]

    number = len(won)
    chance = expit(strength[pairs.one] - strength[pairs.other])
    against = prior * expit(strength)
    slope = won - np.bincount(pairs.one, pairs.times * chance, minlength=number)
    slope -= np.bincount(pairs.other, pairs.times * (1 - chance), minlength=number) + against
    weight = pairs.times * chance * (1 - chance)
    diagonal = against * expit(-strength)
    for side in (pairs.one, pairs.other):
        diagonal += np.bincount(side, weight, minlength=number)
    if not prior:
        diagonal[np.unique(component, return_index=True)[1]] += 1.0  # any number: differences alone count
    every = np.arange(number)
    row, column = np.r_[every, pairs.one, pairs.other], np.r_[every, pairs.other, pairs.one]
    bend = coo_array((np.r_[diagonal, -weight, -weight], (row, column)), (number, number)).tocsc()
    return slope, bend


class WinRate(OfPreferences):
    """The share of an item's comparisons that it won, a tie counting half; the strength of its opponents is ignored.

    >>> WinRate().strengths(PairwisePreferences.of([("a", "b"), ("b", "c")], ties=[("a", "c")])).strength.tolist()
    [0.75, 0.5, 0.25]
    """

    name = "win-rate"
    title = "win rate"

    def strengths(self, preferences: PairwisePreferences) -> Strengths:
        wins = preferences.wins()
        won, lost = np.asarray(wins.sum(axis=1)).ravel(), np.asarray(wins.sum(axis=0)).ravel()
        rate: Floats = won / np.maximum(won + lost, 1e-300)
        return Strengths(str(self), preferences.items, rate, components(wins), True)
