"""How sure a share is: the exact interval of Clopper and Pearson (1934), which never holds less often than it says."""

from __future__ import annotations

from cranfield.errors import DataError


def share_interval(count: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Between which shares `count` of `total` may lie; all that there are where nothing was counted.

    >>> [round(end, 3) for end in share_interval(8, 10)]
    [0.444, 0.975]
    """
    from scipy.special import betaincinv  # type: ignore[import-untyped, unused-ignore]

    if not 0 <= count <= total or not 0 < level < 1:
        raise DataError(
            f"expected a count from 0 to the total and a level within 0 and 1, got {count}, {total}, {level}"
        )
    tail = (1 - level) / 2
    low = float(betaincinv(count, total - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 1 - tail)) if count < total else 1.0
    return low, high
