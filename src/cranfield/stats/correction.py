"""Corrections for many tests: with enough of them, some are small by chance.

Bonferroni, Holm, Hochberg and Šidák bound the chance of any false alarm in the family; Benjamini and Hochberg, and
Benjamini and Yekutieli, the expected share of false ones among the alarms. A p-value that does not exist (NaN) is not
part of the family and stays NaN.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from cranfield.base.errors import DataError
from cranfield.base.registry import Registry
from cranfield.stats.method import StatisticalMethod

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cranfield.stats.ties import Floats


class Correction(StatisticalMethod, ABC):
    """A correction for multiple testing: how it changes sorted p-values, and which error rate it bounds."""

    registry: ClassVar[Registry[Correction]] = Registry("correction", "corrections", refusal=DataError)

    controls: ClassVar[Literal["nothing", "family-wise error", "false discovery rate"]]
    stepwise: ClassVar[bool] = False  # whether rejected hypotheses lower the bar for the others
    intervals: ClassVar[str] = ""  # the kind of simultaneous intervals at its level; empty if it corrects nothing
    facts = ("controls",)

    @abstractmethod
    def corrected(self, p: Floats) -> Floats:
        """The corrected p-values of p-values in ascending order."""

    def level_of_one(self, alpha: float, tests: int) -> float:
        """The largest p-value that is rejected at alpha among a number of tests, whatever the other p-values are.

        >>> correction("holm").level_of_one(0.05, 10), correction("none").level_of_one(0.05, 10)
        (0.005, 0.05)
        """
        return alpha / tests

    @property
    def corrects(self) -> bool:
        """Whether the correction changes p-values."""
        return self.controls != "nothing"

    def next_level(self, alpha: float, tests: int, rejected: int) -> float:
        """The p-value that one more test needs if some of all tests are already rejected.

        >>> correction("holm").next_level(0.05, 10, 5), correction("bh").next_level(0.05, 10, 3)
        (0.01, 0.02)
        """
        if self.controls == "false discovery rate":
            return (rejected + 1) * self.level_of_one(alpha, tests)
        return self.level_of_one(alpha, max(1, tests - rejected) if self.stepwise else tests)

    def interval_level(self, level: float, tests: int, rejected: int) -> float:
        """The level of each interval so that all of them hold together at `level`.

        If the correction bounds the false discovery rate, this is the level for the rejected tests: the expected share
        of wrong intervals among them is then bounded (false coverage rate; Benjamini and Yekutieli, 2005).

        >>> round(correction("holm").interval_level(0.95, 10, 4), 6), round(correction("bh").interval_level(0.95, 10, 4), 6)
        (0.995, 0.98)
        """
        outside = self.level_of_one(1 - level, tests)
        return 1 - (rejected * outside if self.controls == "false discovery rate" else outside)


def correct(p: npt.ArrayLike, method: str = "holm") -> Floats:
    """The p-values corrected for their number, in the same order and shape; NaNs are not part of the family.

    >>> correct([0.01, 0.04, 0.03], "holm").tolist()
    [0.03, 0.06, 0.06]
    """
    corrector = correction(method)
    values = np.asarray(p, np.float64)
    family = values[~np.isnan(values)]
    if ((family < 0) | (family > 1)).any():
        raise DataError(f"expected p-values between 0 and 1, found {family[(family < 0) | (family > 1)][0]:g}")
    order = np.argsort(family, kind="stable")
    corrected = np.empty(len(family))
    if len(family):
        corrected[order] = np.clip(corrector.corrected(family[order]), 0.0, 1.0)
    answer = np.full(values.shape, np.nan)
    answer[~np.isnan(values)] = corrected
    return answer


def holm_limits(
    p: Sequence[float], limits: Sequence[Callable[[float], float]], tail: float, null: float = 0.0
) -> Floats:
    """Lower limits that hold together, in all but `tail` of cases, and agree with Holm's one-sided tests.

    `p` are the one-sided p-values that effects lie above `null`, and each of `limits` maps a tail probability to an
    effect's lower limit. Limits of effects that Holm rejects stay above the null, and are at least Bonferroni's; the
    others share the rest of the tail (Guilbaud, 2008; Strassburger and Bretz, 2008). For upper limits, change the
    signs.

    >>> ends = [lambda tail: 0.5 - tail, lambda tail: -tail]
    >>> holm_limits([0.001, 0.5], ends, 0.05).tolist()
    [0.475, -0.05]
    """
    tests = len(p)
    rejected = correct(p, "holm") <= tail
    left = tests - int(rejected.sum())
    ends = np.array([limit(tail / (tests if out else left)) for limit, out in zip(limits, rejected, strict=True)])
    return np.where(rejected & ~(ends > null), null, ends)


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


class _FamilyWise(Correction):
    controls = "family-wise error"
    intervals = "Bonferroni"


class Bonferroni(_FamilyWise):
    """Bounds the chance of any false alarm: p times the number of tests. Holm's correction is never weaker."""

    name = "bonferroni"
    title = "Bonferroni"
    reference = "Dunn (1961)"

    def corrected(self, p: Floats) -> Floats:
        return p * len(p)


class Holm(_FamilyWise):
    """Bounds the chance of any false alarm, whatever the tests have in common; the default."""

    name = "holm"
    title = "Holm"
    reference = "Holm (1979)"
    stepwise = True

    def corrected(self, p: Floats) -> Floats:
        return np.asarray(np.maximum.accumulate(p * _left(p)), np.float64)


class Hochberg(_FamilyWise):
    """Bounds the chance of any false alarm for independent or positively dependent tests."""

    name = "hochberg"
    title = "Hochberg"
    reference = "Hochberg (1988)"
    stepwise = True

    def corrected(self, p: Floats) -> Floats:
        return _from_the_largest(p * _left(p))


class Sidak(_FamilyWise):
    """Bounds the chance of any false alarm for independent or positively dependent tests: 1 − (1 − p)^m."""

    name = "sidak"
    title = "Šidák"
    short = "Sidak"
    intervals = "Sidak"
    reference = "Šidák (1967)"

    def corrected(self, p: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(-np.expm1(len(p) * np.log1p(-p)), np.float64)  # keeps the digits of a small p

    def level_of_one(self, alpha: float, tests: int) -> float:
        return -math.expm1(math.log1p(-alpha) / tests)


class _FalseDiscovery(Correction):
    controls = "false discovery rate"
    intervals = "false coverage rate"

    def corrected(self, p: Floats) -> Floats:
        return _from_the_largest(p * len(p) / np.arange(1, len(p) + 1))


class BenjaminiHochberg(_FalseDiscovery):
    """Bounds the expected share of false alarms among the alarms, for independent or positively dependent tests."""

    name = "benjamini-hochberg"
    title = "Benjamini-Hochberg"
    reference = "Benjamini and Hochberg (1995)"
    aliases = ("bh", "fdr", "fdr-bh")


class BenjaminiYekutieli(_FalseDiscovery):
    """Bounds the expected share of false alarms among the alarms, whatever the tests have in common."""

    name = "benjamini-yekutieli"
    title = "Benjamini-Yekutieli"
    reference = "Benjamini and Yekutieli (2001)"
    aliases = ("by", "fdr-by")

    def corrected(self, p: Floats) -> Floats:
        return np.minimum(1.0, super().corrected(p) * _harmonic(len(p)))

    def level_of_one(self, alpha: float, tests: int) -> float:
        return alpha / (tests * _harmonic(tests))


def _harmonic(number: int) -> float:
    """1 + 1/2 + … + 1/number."""
    return float((1 / np.arange(1, number + 1)).sum())


def _left(p: Floats) -> Floats:
    """For each p-value in ascending order, the number of p-values that are at least as large."""
    return np.arange(len(p), 0, -1, dtype=np.float64)


def _from_the_largest(p: Floats) -> Floats:
    return np.asarray(np.minimum.accumulate(p[::-1])[::-1], np.float64)
