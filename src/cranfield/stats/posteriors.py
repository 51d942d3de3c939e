"""Posterior distributions of many quantities at once: Beta for probabilities, Gamma for rates.

Each is a family with two parameters per quantity, called alpha and beta in files. Quantities are independent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from cranfield.base.errors import DataError
from cranfield.stats.block_tables import probability

if TYPE_CHECKING:
    from cranfield.stats.ties import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Posteriors(ABC):
    """Independent posteriors of one family, with the parameters alpha and beta of each."""

    alpha: Floats
    beta: Floats
    family: ClassVar[str]

    def __post_init__(self) -> None:
        for name in ("alpha", "beta"):
            values = getattr(self, name)
            wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
            if len(wrong):
                raise DataError(f"expected {name} above 0 in each posterior, found {values[wrong[0]]:g}")

    def __len__(self) -> int:
        return len(self.alpha)

    def some(self, which: Ints | Bools) -> Self:
        """Some of the posteriors, by number or as a mask."""
        return type(self)(self.alpha[which], self.beta[which])

    @property
    @abstractmethod
    def mean(self) -> Floats:
        """The mean of each."""

    @property
    @abstractmethod
    def variance(self) -> Floats:
        """The variance of each."""

    @abstractmethod
    def quantile(self, share: float) -> Floats:
        """The value below which this share of each posterior lies."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Floats:
        """A random value from each."""

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """The equal-tailed interval of each."""
        probability("level", level)
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)


class BetaPosteriors(Posteriors):
    """Posteriors of probabilities.

    >>> one = BetaPosteriors.of_mean(np.array([0.25]), np.array([8.0]))
    >>> one.alpha.tolist(), one.beta.tolist(), one.mean.tolist()
    ([2.0], [6.0], [0.25])
    >>> [round(float(end[0]), 3) for end in one.interval()]
    [0.037, 0.579]
    """

    family = "beta"

    @classmethod
    def of_mean(cls, mean: Floats, size: Floats) -> Self:
        """Posteriors with these means, each worth as many observations as `size` says."""
        return cls(mean * size, (1 - mean) * size)

    @property
    def mean(self) -> Floats:
        return np.asarray(self.alpha / (self.alpha + self.beta), np.float64)

    @property
    def variance(self) -> Floats:
        return np.asarray(self.mean * (1 - self.mean) / (self.alpha + self.beta + 1), np.float64)

    def quantile(self, share: float) -> Floats:
        from scipy.special import betaincinv  # type: ignore[import-untyped, unused-ignore]

        return np.asarray(betaincinv(self.alpha, self.beta, share), np.float64)

    def draw(self, rng: np.random.Generator) -> Floats:
        return rng.beta(self.alpha, self.beta)

    def times(self, other: BetaPosteriors) -> BetaPosteriors:
        """The Beta posteriors with the mean and the variance of the products of two.

        >>> one = BetaPosteriors(np.array([2.0]), np.array([2.0]))
        >>> one.times(BetaPosteriors(np.array([1e9]), np.array([1.0]))).mean.round(3).tolist()
        [0.5]
        """
        mean = self.mean * other.mean
        square = (self.variance + self.mean**2) * (other.variance + other.mean**2)
        size = mean * (1 - mean) / (square - mean**2) - 1
        return BetaPosteriors.of_mean(mean, size)


class GammaPosteriors(Posteriors):
    """Posteriors of rates: alpha is the shape, beta the rate.

    >>> one = GammaPosteriors(np.array([4.0]), np.array([2.0]))
    >>> one.mean.tolist(), one.variance.tolist(), [round(float(end[0]), 3) for end in one.interval()]
    ([2.0], [1.0], [0.545, 4.384])
    """

    family = "gamma"

    @property
    def mean(self) -> Floats:
        return np.asarray(self.alpha / self.beta, np.float64)

    @property
    def variance(self) -> Floats:
        return np.asarray(self.alpha / self.beta**2, np.float64)

    def quantile(self, share: float) -> Floats:
        from scipy.special import gammaincinv  # type: ignore[import-untyped, unused-ignore]

        return np.asarray(gammaincinv(self.alpha, share) / self.beta, np.float64)

    def draw(self, rng: np.random.Generator) -> Floats:
        return rng.gamma(self.alpha, 1 / self.beta)


FAMILIES: dict[str, type[Posteriors]] = {cls.family: cls for cls in (BetaPosteriors, GammaPosteriors)}
