"""Bradley and Terry's model: an item beats another with the odds of their strengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.parameters import Real, Whole
from cranfield.stats.consensus.preference import OfPreferences, Preferences, Strengths, components

if TYPE_CHECKING:
    from cranfield.stats.ties import Floats, Ints

NEAR = 1e-9  # of the slope, for each comparison
HALVINGS = 40
ROUNDING = 1e-13  # of a likelihood


class Fit(NamedTuple):
    """Strengths that make the comparisons likeliest, after so many steps."""

    strength: Floats
    iterations: int
    converged: bool


class BradleyTerry(OfPreferences):
    """Strengths such that the log odds of beating another are the difference of the two; ties are half wins.

    With a prior, each item has met an item of strength 0 so many times more, winning half: every strength is finite, and
    all may be compared. Without one (prior=0) the likeliest strengths exist only within a component of items that chains
    of wins link both ways; each component has its own mean of 0, and an item alone in its component says nothing.

    >>> wins = Preferences.of([("a", "b")] * 3 + [("b", "a")])
    >>> BradleyTerry(prior=0).strengths(wins).strength.round(4).tolist()  # log 3 apart
    [0.5493, -0.5493]
    """

    name = "bradley-terry"
    title = "Bradley and Terry's model"
    aliases = ("bt",)
    reference = "Bradley and Terry (1952)"
    prior = Real(1, "comparisons of each item with one of strength 0, half of them won", low=0)
    passes = Whole(200, "how many steps are taken at the most")

    def strengths(self, preferences: Preferences) -> Strengths:
        wins = preferences.wins()
        component = components(wins)
        told_apart = wins if self.prior else _within(wins, component)
        won = np.asarray(told_apart.sum(axis=1), np.float64).ravel() + self.prior / 2
        fit = _newton(_pairs(told_apart), won, self.prior, component, self.passes)
        return Strengths(
            str(self), preferences.items, fit.strength, component, self.prior > 0, fit.iterations, fit.converged
        )


class Pairs(NamedTuple):
    """How often two items met, each pair once."""

    one: Ints
    other: Ints
    times: Floats


def _pairs(wins: Any) -> Pairs:
    from scipy.sparse import triu  # type: ignore[import-untyped, unused-ignore]

    met = triu(wins + wins.T, 1).tocoo()
    return Pairs(met.row.astype(np.int64), met.col.astype(np.int64), met.data)


def _within(wins: Any, component: Ints) -> Any:
    """The wins over items of the winner's own component."""
    from scipy.sparse import coo_array

    table = wins.tocoo()
    same = component[table.row] == component[table.col]
    return coo_array((table.data[same], (table.row[same], table.col[same])), table.shape).tocsr()


def _newton(pairs: Pairs, won: Floats, prior: float, component: Ints, passes: int) -> Fit:
    """The highest point of the likelihood, which is concave, by Newton's steps, halved where they overshoot."""
    from scipy.sparse.linalg import spsolve  # type: ignore[import-untyped, unused-ignore]

    strength = np.zeros(len(won))
    if not len(won):
        return Fit(strength, 0, True)
    height = _log_likelihood(strength, pairs, won, prior)
    for done in range(1, passes + 1):
        slope, bend = _derivatives(strength, pairs, won, prior, component)
        if np.abs(slope).max() <= NEAR * max(1.0, float(won.max())):
            return Fit(_centred(strength, component, prior), done - 1, True)
        step = spsolve(bend, slope)
        for _ in range(HALVINGS):
            higher = _log_likelihood(strength + step, pairs, won, prior)
            if higher >= height - ROUNDING * abs(height):
                break
            step = step / 2
        strength, height = strength + step, higher
    return Fit(_centred(strength, component, prior), passes, False)


def _centred(strength: Floats, component: Ints, prior: float) -> Floats:
    """Without a prior, only differences within a component mean anything: each has a mean of 0."""
    if prior:
        return strength
    mean = np.bincount(component, strength) / np.bincount(component)
    return np.asarray(strength - mean[component], np.float64)


def _log_likelihood(strength: Floats, pairs: Pairs, won: Floats, prior: float) -> float:
    either = np.logaddexp(strength[pairs.one], strength[pairs.other])
    return float(won @ strength - pairs.times @ either - prior * np.logaddexp(strength, 0).sum())


def _derivatives(strength: Floats, pairs: Pairs, won: Floats, prior: float, component: Ints) -> tuple[Floats, Any]:
    """The slope, and the bend turned upside down; without a prior one item of each component stays in its place."""
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
