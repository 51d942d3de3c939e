"""Corrections for many tests: with enough of them, some are small by chance.

Bonferroni, Holm, Hochberg and Šidák bound the chance of any false alarm in the family; Benjamini and Hochberg, and
Benjamini and Yekutieli, the expected share of false ones among the alarms. A p-value that does not exist (NaN) is no
member of the family and stays NaN.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from cranfield.errors import DataError
from cranfield.stats.method import Method

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cranfield.stats.ties import Floats

__all__ = ["CORRECTIONS", "Correction", "correct", "correction", "holm_limits"]


class Correction(Method, ABC):
    """A correction by name: how it changes p-values that stand in ascending order, and what it promises."""

    kind = "correction"
    registry: ClassVar[dict[str, Correction]] = {}

    controls: ClassVar[Literal["nothing", "family-wise error", "false discovery rate"]]
    stepwise: ClassVar[bool] = False  # whether what is rejected makes it easier for the rest
    intervals: ClassVar[str] = ""  # of what kind those are that keep its level; none where it corrects nothing
    facts = ("controls",)

    @abstractmethod
    def corrected(self, p: Floats) -> Floats:
        """The p-values, which stand in ascending order, after correction."""

    def level_of_one(self, alpha: float, tests: int) -> float:
        """The largest p-value that is at most alpha after correction among so many, whatever the others are.

        >>> correction("holm").level_of_one(0.05, 10), correction("none").level_of_one(0.05, 10)
        (0.005, 0.05)
        """
        return alpha / tests

    @property
    def corrects(self) -> bool:
        """Whether it changes anything at all."""
        return self.controls != "nothing"

    def next_level(self, alpha: float, tests: int, rejected: int) -> float:
        """The p-value that one more test would need where so many of all are rejected.

        >>> correction("holm").next_level(0.05, 10, 5), correction("bh").next_level(0.05, 10, 3)
        (0.01, 0.02)
        """
        if self.controls == "false discovery rate":
            return (rejected + 1) * self.level_of_one(alpha, tests)
        return self.level_of_one(alpha, max(1, tests - rejected) if self.stepwise else tests)

    def interval_level(self, level: float, tests: int, rejected: int) -> float:
        """The level of each interval so that all hold together at `level`.

        Where the correction bounds the false discovery rate, the level of those that were rejected, so that of these the
        expected share that is wrong keeps it: the false coverage rate (Benjamini and Yekutieli, 2005).

        >>> round(correction("holm").interval_level(0.95, 10, 4), 6), round(correction("bh").interval_level(0.95, 10, 4), 6)
        (0.995, 0.98)
        """
        outside = self.level_of_one(1 - level, tests)
        return 1 - (rejected * outside if self.controls == "false discovery rate" else outside)


def correct(p: npt.ArrayLike, method: str = "holm") -> Floats:
    """The p-values corrected for their number, in the order and the shape given; NaNs are left out of the family.

    >>> correct([0.01, 0.04, 0.03], "holm").tolist()
    [0.03, 0.06, 0.06]
    """
    chosen = correction(method)
    values = np.asarray(p, np.float64)
    family = values[~np.isnan(values)]
    if ((family < 0) | (family > 1)).any():
        raise DataError(f"expected p-values between 0 and 1, found {family[(family < 0) | (family > 1)][0]:g}")
    order = np.argsort(family, kind="stable")
    corrected = np.empty(len(family))
    if len(family):
        corrected[order] = np.clip(chosen.corrected(family[order]), 0.0, 1.0)
    answer = np.full(values.shape, np.nan)
    answer[~np.isnan(values)] = corrected
    return answer


def holm_limits(
    p: Sequence[float], limits: Sequence[Callable[[float], float]], tail: float, null: float = 0.0
) -> Floats:
    """Lower limits that hold together, in all but `tail` of cases, and agree with Holm's one-sided tests.

    `p` are the one-sided p-values that effects lie above `null`, and each of `limits` gives an effect's lower limit by the
    chance that it leaves out. Those that Holm rejects stay above the null, no lower than where Bonferroni puts them; the
    others share what is left of the tail (Guilbaud, 2008; Strassburger and Bretz, 2008). Upper limits: turn the signs.

    >>> ends = [lambda tail: 0.5 - tail, lambda tail: -tail]
    >>> holm_limits([0.001, 0.5], ends, 0.05).tolist()
    [0.475, -0.05]
    """
    tests = len(p)
    rejected = correct(p, "holm") <= tail
    left = tests - int(rejected.sum())
    return np.array(
        [
            max(null, limit(tail / tests)) if out else limit(tail / left)
            for limit, out in zip(limits, rejected, strict=True)
        ]
    )


def correction(name: str) -> Correction:
    """A correction by its name or an alias.

    >>> correction("bh").title
    'Benjamini-Hochberg'
    """
    return Correction.named(name)


CORRECTIONS = Correction.registry


class Uncorrected(Correction):
    """Leaves p-values as they are: with many tests, some are small by chance."""

    name = "none"
    title = "none"
    short = ""
    controls = "nothing"

    def corrected(self, p: Floats) -> Floats:
        return p

    def level_of_one(self, alpha: float, tests: int) -> float:
        return alpha


class Bonferroni(Correction):
    """Bounds the chance of any false alarm: p times their number. Holm's does more."""

    name = "bonferroni"
    title = "Bonferroni"
    reference = "Dunn (1961)"
    controls = "family-wise error"
    intervals = "Bonferroni"

    def corrected(self, p: Floats) -> Floats:
        return p * len(p)


class Holm(Correction):
    """Bounds the chance of any false alarm, whatever the tests have in common; the default."""

    name = "holm"
    title = "Holm"
    reference = "Holm (1979)"
    controls = "family-wise error"
    stepwise = True
    intervals = "Bonferroni"

    def corrected(self, p: Floats) -> Floats:
        return np.asarray(np.maximum.accumulate(p * _left(p)), np.float64)


class Hochberg(Correction):
    """Bounds the chance of any false alarm for independent or positively dependent tests."""

    name = "hochberg"
    title = "Hochberg"
    reference = "Hochberg (1988)"
    controls = "family-wise error"
    stepwise = True
    intervals = "Bonferroni"

    def corrected(self, p: Floats) -> Floats:
        return _from_the_largest(p * _left(p))


class Sidak(Correction):
    """Bounds the chance of any false alarm for independent or positively dependent tests: 1 − (1 − p)^m."""

    name = "sidak"
    title = "Šidák"
    short = "Sidak"
    intervals = "Sidak"
    reference = "Šidák (1967)"
    controls = "family-wise error"

    def corrected(self, p: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(-np.expm1(len(p) * np.log1p(-p)), np.float64)  # keeps the digits of a small p

    def level_of_one(self, alpha: float, tests: int) -> float:
        return -math.expm1(math.log1p(-alpha) / tests)


class BenjaminiHochberg(Correction):
    """Bounds the expected share of false alarms among the alarms, for independent or positively dependent tests."""

    name = "benjamini-hochberg"
    title = "Benjamini-Hochberg"
    reference = "Benjamini and Hochberg (1995)"
    aliases = ("bh", "fdr", "fdr-bh")
    controls = "false discovery rate"
    intervals = "false coverage rate"

    def corrected(self, p: Floats) -> Floats:
        return _step_up(p)


class BenjaminiYekutieli(Correction):
    """Bounds the expected share of false alarms among the alarms, whatever the tests have in common."""

    name = "benjamini-yekutieli"
    title = "Benjamini-Yekutieli"
    reference = "Benjamini and Yekutieli (2001)"
    aliases = ("by", "fdr-by")
    controls = "false discovery rate"
    intervals = "false coverage rate"

    def corrected(self, p: Floats) -> Floats:
        return np.minimum(1.0, _step_up(p) * _harmonic(len(p)))

    def level_of_one(self, alpha: float, tests: int) -> float:
        return alpha / (tests * _harmonic(tests))


def _harmonic(number: int) -> float:
    """1 + 1/2 + … + 1/number."""
    return float((1 / np.arange(1, number + 1)).sum())


def _left(p: Floats) -> Floats:
    """For each p-value in ascending order, how many are no smaller than it."""
    return np.arange(len(p), 0, -1, dtype=np.float64)


def _step_up(p: Floats) -> Floats:
    return _from_the_largest(p * len(p) / np.arange(1, len(p) + 1))


def _from_the_largest(p: Floats) -> Floats:
    return np.asarray(np.minimum.accumulate(p[::-1])[::-1], np.float64)
