"""A table of values, blocks × groups: every group was tried on every block, and every cell holds a number.

All statistics of many groups start here, so that invalid tables (missing or infinite cells, a single row) are refused
in one place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import DataError

if TYPE_CHECKING:
    from cranfield.stats.ties import Floats


def block_table(table: Any, blocks: int = 2, groups: int = 2) -> Floats:
    """The table as numbers; DataError for missing cells and for too few blocks or groups.

    >>> block_table([[1, 2], [3, 5]]).shape
    (2, 2)
    """
    values = np.array(table, np.float64)
    if values.ndim != 2:
        raise DataError(f"expected a table of blocks × groups, found an array of shape {values.shape}")
    if len(values) < blocks:
        raise DataError(f"expected at least {blocks} blocks (rows), found {len(values)}")
    if values.shape[1] < groups:
        raise DataError(f"expected at least {groups} groups (columns), found {values.shape[1]}")
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise DataError(
            f"expected a number in every cell, found {values[row, column]} in block {row + 1} of group {column + 1}; "
            "leave that block or group out"
        )
    return values


def even(means: Floats, values: Floats) -> Floats:
    """Means rounded to fewer digits, so that the order of summation does not break ties."""
    scale = float(np.abs(values).max()) or 1.0
    return np.asarray(np.rint(means / scale * 2.0**40), np.float64)


def no_error(values: Floats, error: float) -> bool:
    """Whether a sum of squared residuals is only rounding."""
    rounding = 16 * np.finfo(np.float64).eps * float(np.abs(values).max(initial=0.0))
    return bool(error <= values.size * rounding**2)


def probability(name: str, value: float) -> float:
    """Raise DataError unless a number lies strictly between 0 and 1."""
    if not 0 < value < 1:
        raise DataError(f"{name} must lie between 0 and 1, ends excluded, got {value}")
    return float(value)


def refuse_no_resamples(resamples: int) -> None:
    """Raise DataError if there are no resamples."""
    if resamples < 1:
        raise DataError(f"resamples must be 1 or more, got {resamples}")
