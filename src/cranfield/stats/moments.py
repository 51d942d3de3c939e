"""Sufficient statistics of several columns of numbers: how many rows, their means, their squares and products.

Means, ratios of sums, their variances and the effect of covariates all follow from these, so a database only has to
send sums. Products are kept centred, about the means: two `Moments` of different rows are added without loss of digits.
Raw sums of large numbers that vary little lose digits. Use sums of x − shift with a `shift` close to the mean, or
variances and covariances as databases compute them.

All fields may have leading axes, one entry for each of many tables of the same columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.stats.ties import Floats

LOST = 1e-9  # a variance that is negative by more than this share of the squares is a mistake, not rounding


@dataclass(frozen=True)
class Moments:
    """How many rows, the means of their columns, and the centred sums of squares and products.

    >>> one = Moments.of(x=[1.0, 2.0, 3.0], y=[2.0, 4.0, 9.0])
    >>> float(one.n), one.mean.tolist(), one.covariance.tolist()
    (3.0, [2.0, 5.0], [[1.0, 3.5], [3.5, 13.0]])
    >>> both = one + Moments.of(x=[6.0], y=[5.0])
    >>> float(both.n), both.mean.tolist()
    (4.0, [3.0, 5.0])
    """

    names: tuple[str, ...]
    n: Floats
    mean: Floats  # … × columns
    products: Floats  # … × columns × columns: Σ (x − mean of x)(y − mean of y)

    @classmethod
    def of(cls, **columns: Any) -> Moments:
        """The moments of columns of equal length, one row per unit (the last axis)."""
        table = np.stack(np.broadcast_arrays(*(np.asarray(values, np.float64) for values in columns.values())))
        if not np.isfinite(table).all():
            row = int(np.argwhere(~np.isfinite(table))[0][-1])
            raise DataError(f"moments: expected finite numbers, found NaN or infinity in row {row + 1}; leave it out")
        n = table.shape[-1]
        mean = table.mean(axis=-1) if n else np.zeros(table.shape[:-1])
        centred = table - mean[..., None]
        products = np.einsum("i...k,j...k->...ij", centred, centred)
        return cls(tuple(columns), np.full(products.shape[:-2], float(n)), np.moveaxis(mean, 0, -1), products)

    @classmethod
    def from_sums(
        cls,
        n: float,
        sums: Mapping[str, float],
        products: Mapping[tuple[str, str], float],
        shift: Mapping[str, float] | None = None,
    ) -> Moments:
        """The moments from raw sums Σx and sums of products Σxy, including squares; of x − shift if a shift is given.

        >>> arm = Moments.from_sums(3, {"x": 6.0}, {("x", "x"): 14.0})
        >>> arm.mean.tolist(), arm.covariance.tolist()
        ([2.0], [[1.0]])
        """
        names = tuple(sums)
        total = _finite("sums", [sums[name] for name in names])
        raw = _symmetric(names, products)
        _refuse_count(n)
        mean = total / n if n else np.zeros(len(names))
        centred = raw - n * np.outer(mean, mean)
        lost = np.diag(centred) < -LOST * np.diag(raw)
        if lost.any():
            name = names[int(lost.argmax())]
            raise DataError(
                f"moments: the squares of {name!r} are smaller than its sum allows; are they of the same rows?"
            )
        centred[np.diag_indices(len(names))] = np.maximum(np.diag(centred), 0.0)
        moved = np.array([(shift or {}).get(name, 0.0) for name in names])
        return cls(names, np.asarray(float(n)), mean + moved, centred)

    @classmethod
    def from_covariances(
        cls, n: float, means: Mapping[str, float], covariances: Mapping[tuple[str, str], float]
    ) -> Moments:
        """The moments from sample variances and covariances (over n − 1), as databases compute them.

        >>> Moments.from_covariances(3, {"x": 2.0}, {("x", "x"): 1.0}).products.tolist()
        [[2.0]]
        """
        names = tuple(means)
        _refuse_count(n)
        products = _symmetric(names, covariances) * max(n - 1, 0)
        return cls(names, np.asarray(float(n)), _finite("means", [means[name] for name in names]), products)

    @property
    def covariance(self) -> Floats:
        """Sample variances and covariances, over n − 1; NaN for fewer than two rows."""
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = np.where(self.n > 1, self.n - 1, np.nan)
            return np.asarray(self.products / freedom[..., None, None], np.float64)

    def place(self, name: str) -> int:
        """The position of a column."""
        if name not in self.names:
            raise DataError(f"moments: expected a column of {', '.join(self.names)}, found {name!r}")
        return self.names.index(name)

    def __add__(self, other: Moments) -> Moments:
        """The moments of the rows of both (Chan, Golub and LeVeque, 1983)."""
        if self.names != other.names:
            raise DataError(f"moments: expected the same columns, found {self.names} and {other.names}")
        n = self.n + other.n
        apart = other.mean - self.mean
        share = np.divide(other.n, n, out=np.zeros(np.shape(n)), where=n > 0)
        between = (self.n * share)[..., None, None] * apart[..., :, None] * apart[..., None, :]
        mean = self.mean + share[..., None] * apart
        return Moments(self.names, np.asarray(n, np.float64), mean, self.products + other.products + between)


def _symmetric(names: tuple[str, ...], products: Mapping[tuple[str, str], float]) -> Floats:
    table = np.empty((len(names), len(names)))
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            value = products.get((one, other), products.get((other, one)))
            if value is None:
                raise DataError(f"moments: expected the product of {one!r} and {other!r}, found none")
            table[i, j] = value
    return _finite("products", table)


def _finite(what: str, values: Any) -> Floats:
    numbers = np.array(values, np.float64)
    if not np.isfinite(numbers).all():
        raise DataError(f"moments: expected finite {what}, found NaN or infinity")
    return numbers


def _refuse_count(n: float) -> None:
    if not (n >= 0 and n == int(n)):
        raise DataError(f"moments: expected a number of rows, found {n}")
