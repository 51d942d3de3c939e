"""Compact letter display: groups that share a letter do not differ. By insert and absorb (Piepho, 2004).

A letter stands for a set of groups of which no two differ, as large as can be; one that says nothing which the others
do not say is dropped. After z come the capitals, then
letters with a number (a1 … Z1, a2 …), so that a string of letters reads back without doubt.
"""

from __future__ import annotations

from string import ascii_letters
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["letters"]

MOST = 2_000


def letters(means: Any, differ: Any) -> list[str]:
    """The letters of each group: two share one exactly when they do not differ; a is the best, that of the highest mean.

    >>> letters([0.3, 0.5, 0.4], [[False, True, False], [True, False, False], [False, False, False]])
    ['b', 'a', 'ab']
    """
    values, apart = np.asarray(means, np.float64), np.asarray(differ, bool)
    if values.ndim != 1 or apart.shape != (len(values), len(values)):
        raise DataError(
            f"expected a mean for each group and a groups × groups matrix, found {values.shape} and {apart.shape}"
        )
    if np.isnan(values).any():
        raise DataError("expected a mean for each group, found NaN; leave that group out")
    if (apart != apart.T).any() or apart.diagonal().any():
        raise DataError("expected a symmetric matrix of differences in which no group differs from itself")
    order = np.argsort(-values, kind="stable")
    sets = sorted(_needed([_members(one) for one in _together(apart[np.ix_(order, order)])], len(values)))
    display = [""] * len(values)
    for letter, members in zip(_alphabet(), sets, strict=False):
        for member in members:
            display[order[member]] += letter
    return display


def _together(apart: Any) -> list[int]:
    """The largest sets of groups of which no two differ, as bits: split at each pair that does, drop what others hold."""
    sets = [(1 << len(apart)) - 1] if len(apart) else []
    for i, j in np.argwhere(np.triu(apart)).tolist():
        both = (1 << i) | (1 << j)
        kept = [one for one in sets if one & both != both]
        split = [one & ~bit for one in sets if one & both == both for bit in (1 << i, 1 << j)]
        for one in split:
            if not any(one & other == one for other in kept):
                kept.append(one)
        sets = kept
        if len(sets) > MOST:
            raise DataError(f"these differences need more than {MOST} letters: no display of them is readable")
    return sets


def _needed(sets: list[list[int]], groups: int) -> list[list[int]]:
    """The sets without those whose every pair stands together in another one too; the smallest are tried first."""
    times = np.zeros((groups, groups), np.int64)
    for members in sets:
        times[np.ix_(members, members)] += 1
    kept = []
    for members in sorted(sets, key=lambda one: (len(one), one)):
        pairs = np.ix_(members, members)
        if (times[pairs] > 1).all():
            times[pairs] -= 1
        else:
            kept.append(members)
    return kept


def _members(bits: int) -> list[int]:
    return [i for i in range(bits.bit_length()) if bits >> i & 1]


def _alphabet() -> Iterator[str]:
    number = 0
    while True:
        yield from (f"{letter}{number or ''}" for letter in ascii_letters)
        number += 1
