"""Corrections for many tests: with enough of them, some are small by chance.

Bonferroni, Holm, Hochberg and Šidák bound the chance of any false alarm in the family; Benjamini and Hochberg, and
Benjamini and Yekutieli, the expected share of false ones among the alarms. A p-value that does not exist (NaN) is no
member of the family and stays NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from cranfield.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CORRECTIONS", "Correction", "correct", "correction"]

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Correction:
    """A correction by name: how it changes p-values that stand in ascending order, and what it promises."""

    name: str
    title: str
    about: str
    compute: Callable[[Floats], Floats]
    aliases: tuple[str, ...] = ()


def correct(p: npt.ArrayLike, method: str = "holm") -> Floats:
    """The p-values corrected for their number, in the order and the shape given; NaNs are left out of the family.

    >>> correct([0.01, 0.04, 0.03], "holm").tolist()
    [0.03, 0.06, 0.06]
    """
    chosen = correction(method)
    given = np.asarray(p, np.float64)
    family = given[~np.isnan(given)]
    if ((family < 0) | (family > 1)).any():
        raise DataError(f"expected p-values between 0 and 1, found {family[(family < 0) | (family > 1)][0]:g}")
    order = np.argsort(family, kind="stable")
    corrected = np.empty(len(family))
    if len(family):
        corrected[order] = np.clip(chosen.compute(family[order]), 0.0, 1.0)
    answer = np.full(given.shape, np.nan)
    answer[~np.isnan(given)] = corrected
    return answer


def correction(name: str) -> Correction:
    """A correction by its name or an alias.

    >>> correction("bh").title
    'Benjamini-Hochberg'
    """
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-").replace("š", "s").replace("á", "a")
    for one in CORRECTIONS.values():
        if wanted == one.name or wanted in one.aliases:
            return one
    raise DataError(f"no correction {name!r}; there are {', '.join(CORRECTIONS)}")


def _left(p: Floats) -> Floats:
    """For each p-value in ascending order, how many are no smaller than it."""
    return np.arange(len(p), 0, -1, dtype=np.float64)


def _holm(p: Floats) -> Floats:
    return np.asarray(np.maximum.accumulate(p * _left(p)), np.float64)


def _hochberg(p: Floats) -> Floats:
    return _from_the_largest(p * _left(p))


def _sidak(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(len(p) * np.log1p(-p)), np.float64)  # 1 − (1 − p)^m, with the digits of a small p


def _benjamini_hochberg(p: Floats) -> Floats:
    return _from_the_largest(p * len(p) / np.arange(1, len(p) + 1))


def _benjamini_yekutieli(p: Floats) -> Floats:
    return np.minimum(1.0, _benjamini_hochberg(p) * float((1 / np.arange(1, len(p) + 1)).sum()))


def _from_the_largest(p: Floats) -> Floats:
    return np.asarray(np.minimum.accumulate(p[::-1])[::-1], np.float64)


_ANY = "Bounds the chance of any false alarm"
CORRECTIONS: dict[str, Correction] = {
    one.name: one
    for one in (
        Correction("none", "none", "Leaves p-values as they are: with many tests, some are small by chance.", np.copy),
        Correction(
            "bonferroni", "Bonferroni", f"{_ANY}: p times their number. Holm's does more.", lambda p: p * len(p)
        ),
        Correction("holm", "Holm", f"{_ANY}, whatever the tests have in common; the default.", _holm),
        Correction("hochberg", "Hochberg", f"{_ANY} for independent or positively dependent tests.", _hochberg),
        Correction("sidak", "Šidák", f"{_ANY} for independent or positively dependent tests: 1 − (1 − p)^m.", _sidak),
        Correction(
            "benjamini-hochberg",
            "Benjamini-Hochberg",
            "Bounds the expected share of false alarms among the alarms, for independent or positively dependent tests.",
            _benjamini_hochberg,
            ("bh", "fdr", "fdr-bh"),
        ),
        Correction(
            "benjamini-yekutieli",
            "Benjamini-Yekutieli",
            "Bounds the expected share of false alarms among the alarms, whatever the tests have in common.",
            _benjamini_yekutieli,
            ("by", "fdr-by"),
        ),
    )
}
