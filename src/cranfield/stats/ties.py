"""Values that differ only by rounding are equal: 0.4 − 0.3 and 0.2 − 0.1 are one tie, not two ranks.

Without this, tests on values such as 0.1, 0.2, 0.3 depend on the last bit of a subtraction. Two numbers count as equal
if they differ by less than 10⁻¹² of the largest value they were computed from.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cranfield.base.errors import DataError

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
NEAR = 1e-12


def rounding(a: Floats, b: Floats) -> Floats:
    """For each row, the gap below which two numbers computed from its values count as equal."""
    largest = np.maximum(np.abs(a).max(axis=-1, initial=0.0), np.abs(b).max(axis=-1, initial=0.0))
    return np.asarray(NEAR * largest, np.float64)


def two_samples(a: npt.ArrayLike, b: npt.ArrayLike, paired: bool = True) -> tuple[Floats, Floats]:
    """Two sequences of numbers, of equal length if they are pairs; anything else is refused."""
    one, other = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if one.ndim != 1 or other.ndim != 1:
        raise DataError(f"expected two sequences of numbers, found {one.shape} and {other.shape}")
    if paired and len(one) != len(other):
        raise DataError(f"expected pairs, as many values in b as in a, found {len(one)} and {len(other)}")
    return one, other


def differences(a: Floats, b: Floats) -> Floats:
    """b − a; pure rounding errors become 0.

    >>> differences(np.array([0.3, 0.5]), np.array([0.1 + 0.2, 0.75])).tolist()
    [0.0, 0.25]
    """
    d: Floats = np.asarray(b - a, np.float64)
    near = np.maximum(np.abs(a), np.abs(b))
    near *= NEAR
    d[np.abs(d) <= near] = 0.0
    return d


def mid_ranks(x: Floats, near: Floats | float = 0.0) -> Floats:
    """The rank of each value within its row, from 1; values within `near` of each other share their mean rank.

    >>> mid_ranks(np.array([[3.0, 1.0, 3.0, 2.0]])).tolist()
    [[3.5, 1.0, 3.5, 2.0]]
    """
    first, last = tied_ranks(x, near)
    return np.asarray((first + last) / 2, np.float64)


def tied_ranks(x: Floats, near: Floats | float = 0.0) -> tuple[Floats, Floats]:
    """The first and last rank of each value's group of ties within its row; rank 1 is the smallest value.

    >>> [ranks.tolist() for ranks in tied_ranks(np.array([[3.0, 1.0, 3.0, 2.0]]))]
    [[[3.0, 1.0, 3.0, 2.0]], [[4.0, 1.0, 4.0, 2.0]]]
    """
    order = np.argsort(x, axis=-1, kind="stable")
    ordered = np.take_along_axis(x, order, axis=-1)
    first = np.ones(x.shape, np.bool_)
    first[..., 1:] = np.diff(ordered, axis=-1) > np.asarray(near)[..., None]
    place = np.arange(1, x.shape[-1] + 1, dtype=np.float64)
    start = np.maximum.accumulate(np.where(first, place, 0.0), axis=-1)  # the first rank of each value's group
    last = np.ones(x.shape, np.bool_)
    last[..., :-1] = first[..., 1:]
    end = np.where(last, place, np.inf)
    end = np.minimum.accumulate(end[..., ::-1], axis=-1)[..., ::-1]
    ranks = np.empty(x.shape), np.empty(x.shape)
    for put, ranked in zip(ranks, (start, end), strict=True):
        np.put_along_axis(put, order, ranked, axis=-1)
    return ranks
