"""Score normalisations, which make the scores of different systems comparable.

Each works on one list at a time (one run's answer to one topic) and keeps or reverses its order. If all scores of a
list are equal, the class says which value they get.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.registry import Registered, Registry

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
    from cranfield.retrieval.fusion.aligned_runs import AlignedRuns, Votes


NORMS: Registry[type[Norm]] = Registry("normalisation", "normalisations", "cranfield.retrieval.fusion")


class Norm(Registered, ABC):
    """A normalisation: a formula that maps each row to a number.

    >>> NORMS.named("zmuv").name
    'z'
    """

    registry = NORMS
    formula: ClassVar[str]
    peers: ClassVar[dict[str, str]] = {}
    reads_scores: ClassVar[bool] = True
    turns_order: ClassVar[bool] = False  # whether the lowest score becomes the highest

    @abstractmethod
    def rows(self, lists: AlignedRuns) -> Floats:
        """The normalised score of each row."""

    def checked_rows(self, lists: AlignedRuns) -> Floats:
        """The normalised score of each row; scores that cannot be normalised are refused."""
        if self.reads_scores:
            lists.refuse_infinite(f"normalisation {self.name}")
        return self.rows(lists)

    def votes(self, lists: AlignedRuns) -> Votes:
        """The contributions of the runs to the entries; by default only to those they returned."""
        return lists.votes(self.checked_rows(lists))


class Unchanged(Norm):
    """Scores as they are."""

    name = "none"
    aliases = ("raw",)
    formula = "s"

    def rows(self, lists: AlignedRuns) -> Floats:
        return lists.score


class MinMax(Norm):
    """From 0 for the lowest score of a list to 1 for the highest; 1 if all are equal."""

    name = "min-max"
    formula = "(s − min) / (max − min)"
    peers = {"ranx": "min-max"}

    def rows(self, lists: AlignedRuns) -> Floats:
        low, high = lists.each(np.minimum, lists.score), lists.each(np.maximum, lists.score)
        return _ratio(high - lists.score if self.turns_order else lists.score - low, high - low, 1.0)


class MinMaxInverted(MinMax):
    """For distances, where the lowest is best: 1 for the lowest of a list, 0 for the highest; 1 if all are equal."""

    name = "min-max-inverted"
    aliases = ("min_max_inverted",)
    formula = "(max − s) / (max − min)"
    peers = {"ranx": "min-max-inverted"}
    turns_order = True


class MaxNorm(Norm):
    """The score divided by the list's highest score, which must be above 0."""

    name = "max"
    formula = "s / max"
    peers = {"ranx": "max"}

    def rows(self, lists: AlignedRuns) -> Floats:
        high = lists.each(np.maximum, lists.score)
        odd = np.flatnonzero(high <= 0)
        if len(odd):
            row = int(odd[0])
            raise DataError(
                f"{lists.place(row)}: max needs a highest score above 0, found {high[row]:g}; use min-max, z or rank"
            )
        return lists.score / high


class SumNorm(Norm):
    """Shifted so that the lowest score is 0, then divided by the sum; equal shares if all are equal."""

    name = "sum"
    formula = "(s − min) / Σ (s − min)"
    peers = {"ranx": "sum"}

    def rows(self, lists: AlignedRuns) -> Floats:
        lifted = lists.score - lists.each(np.minimum, lists.score)
        return _ratio(lifted, lists.each(np.add, lifted), 1.0 / lists.size)


class ZNorm(Norm):
    """Standard deviations above the list's mean (zero mean, unit variance); 0 if all are equal."""

    name = "z"
    aliases = ("zmuv",)
    formula = "(s − mean) / standard deviation"
    peers = {"ranx": "zmuv"}

    def rows(self, lists: AlignedRuns) -> Floats:
        centred = lists.score - lists.each(np.add, lists.score) / lists.size
        spread = np.sqrt(lists.each(np.add, centred**2) / lists.size)
        constant = lists.each(np.maximum, lists.score) == lists.each(np.minimum, lists.score)
        return _ratio(centred, np.where(constant, 0.0, spread), 0.0)


class RankNorm(Norm):
    """By rank only: 1 for the first of n, 1/n for the last."""

    name = "rank"
    formula = "1 − (rank − 1) / n"
    peers = {"ranx": "rank"}
    reads_scores = False

    def rows(self, lists: AlignedRuns) -> Floats:
        return 1 - (lists.rank - 1) / lists.size


class BordaNorm(RankNorm):
    """By rank among the c documents of the topic in all runs; those that a list lacks share the remaining points."""

    name = "borda"
    formula = "1 − (rank − 1) / c; lacking: 1/2 − (n − 1) / 2c"
    peers = {"ranx": "borda"}

    def rows(self, lists: AlignedRuns) -> Floats:
        return 1 - (lists.rank - 1) / lists.candidates[lists.topic]

    def votes(self, lists: AlignedRuns) -> Votes:
        """A list rates every entry of its topic: those that it lacks get the mean of the unfilled places."""
        missing: Floats = 0.5 - (lists.sizes - 1) / (2 * lists.candidates[lists.topic[lists.starts]])
        return lists.votes_of_all(self.rows(lists), missing)


def _ratio(above: Floats, below: Floats, otherwise: Floats | float) -> Floats:
    """A division that gives `otherwise` if the divisor is 0."""
    fine = below > 0
    return np.where(fine, above / np.where(fine, below, 1.0), otherwise)
