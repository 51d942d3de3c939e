"""Score normalisations: what makes the scores of different systems fit to be added.

Each works on one list at a time, one run's answer to one topic, and keeps its order or turns it round. A list whose
scores are all equal says nothing about its documents but that they were returned; what it becomes is stated with each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cranfield.errors import DataError
from cranfield.registry import Registered, Registry

if TYPE_CHECKING:
    from cranfield.fuse.lists import Lists, Votes
    from cranfield.kernels.table import Floats


NORMS: Registry[Norm] = Registry("normalisation", "cranfield.fuse")


class Norm(Registered, ABC):
    """A normalisation: a formula that makes a number of each row.

    >>> NORMS.named("zmuv").name
    'z'
    """

    registry = NORMS
    formula: ClassVar[str]
    peers: ClassVar[dict[str, str]] = {}
    reads_scores: ClassVar[bool] = True
    turns_order: ClassVar[bool] = False  # whether the lowest score becomes the highest

    @abstractmethod
    def rows(self, lists: Lists) -> Floats:
        """A number for each row."""

    def checked_rows(self, lists: Lists) -> Floats:
        """A number for each row; scores that cannot be normalised are refused."""
        if self.reads_scores:
            lists.refuse_infinite(f"normalisation {self.name}")
        return self.rows(lists)

    def votes(self, lists: Lists) -> Votes:
        """What each run says of each entry: nothing of one that it did not return, unless told otherwise."""
        return lists.votes(self.checked_rows(lists))


class Unchanged(Norm):
    """Scores as they are."""

    name = "none"
    aliases = ("raw",)
    formula = "s"

    def rows(self, lists: Lists) -> Floats:
        return lists.score


class MinMax(Norm):
    """From 0 for the lowest score of a list to 1 for the highest; 1 where all are equal."""

    name = "min-max"
    formula = "(s − min) / (max − min)"
    peers = {"ranx": "min-max"}

    def rows(self, lists: Lists) -> Floats:
        low, high = lists.each(np.minimum, lists.score), lists.each(np.maximum, lists.score)
        return _ratio(lists.score - low, high - low, 1.0)


class MinMaxInverted(Norm):
    """For distances, the lowest of which is best: 1 for the lowest of a list, 0 for the highest; 1 where all are equal."""

    name = "min-max-inverted"
    aliases = ("min_max_inverted",)
    formula = "(max − s) / (max − min)"
    peers = {"ranx": "min-max-inverted"}
    turns_order = True

    def rows(self, lists: Lists) -> Floats:
        low, high = lists.each(np.minimum, lists.score), lists.each(np.maximum, lists.score)
        return _ratio(high - lists.score, high - low, 1.0)


class Max(Norm):
    """The share of a list's highest score, which must be above 0."""

    name = "max"
    formula = "s / max"
    peers = {"ranx": "max"}

    def rows(self, lists: Lists) -> Floats:
        high = lists.each(np.maximum, lists.score)
        odd = np.flatnonzero(high <= 0)
        if len(odd):
            row = int(odd[0])
            raise DataError(
                f"{lists.place(row)}: max needs a highest score above 0, found {high[row]:g}; use min-max, z or rank"
            )
        return lists.score / high


class Sum(Norm):
    """Lifted so that the lowest score is 0, then the share of the sum; equal shares where all are equal."""

    name = "sum"
    formula = "(s − min) / Σ (s − min)"
    peers = {"ranx": "sum"}

    def rows(self, lists: Lists) -> Floats:
        lifted = lists.score - lists.each(np.minimum, lists.score)
        return _ratio(lifted, lists.each(np.add, lifted), 1.0 / lists.size)


class Z(Norm):
    """Standard deviations above the list's mean (zero mean, unit variance); 0 where all are equal."""

    name = "z"
    aliases = ("zmuv",)
    formula = "(s − mean) / standard deviation"
    peers = {"ranx": "zmuv"}

    def rows(self, lists: Lists) -> Floats:
        centred = lists.score - lists.each(np.add, lists.score) / lists.size
        spread = np.sqrt(lists.each(np.add, centred**2) / lists.size)
        constant = lists.each(np.maximum, lists.score) == lists.each(np.minimum, lists.score)
        return _ratio(centred, np.where(constant, 0.0, spread), 0.0)


class Rank(Norm):
    """By rank alone: 1 for the first of n, 1/n for the last."""

    name = "rank"
    formula = "1 − (rank − 1) / n"
    peers = {"ranx": "rank"}
    reads_scores = False

    def rows(self, lists: Lists) -> Floats:
        return 1 - (lists.rank - 1) / lists.size


class Borda(Norm):
    """By rank among the c documents that all runs return for the topic; those that a list lacks share what is left."""

    name = "borda"
    formula = "1 − (rank − 1) / c; lacking: 1/2 − (n − 1) / 2c"
    peers = {"ranx": "borda"}
    reads_scores = False

    def rows(self, lists: Lists) -> Floats:
        return 1 - (lists.rank - 1) / lists.candidates[lists.topic]

    def votes(self, lists: Lists) -> Votes:
        """A list speaks of every entry of its topic: those that it lacks get the mean of the places it does not fill."""
        missing: Floats = 0.5 - (lists.sizes - 1) / (2 * lists.candidates[lists.topic[lists.starts]])
        return lists.votes_of_all(self.rows(lists), missing)


def _ratio(above: Floats, below: Floats, otherwise: Floats | float) -> Floats:
    """A division that gives `otherwise` where the divisor is 0."""
    fine = below > 0
    return np.where(fine, above / np.where(fine, below, 1.0), otherwise)
