"""Posterior distributions of many quantities at once: Beta for probabilities, Gamma for rates.

Each is a family with two parameters per quantity, called alpha and beta in files. Quantities are independent. The prior is a
part of both parameters. It draws estimates towards its own mean, so an estimate from other data of the same size (`redraw`)
is drawn as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from cranfield.base.errors import DataError
from cranfield.stats.block_tables import probability

if TYPE_CHECKING:
    from cranfield.stats.ties import Bools, Floats, Ints

NEAR = 1e-9  # what rounding may add


@dataclass(frozen=True, eq=False)
class Posteriors(ABC):
    """Independent posteriors of one family, with the parameters alpha and beta of each, and the prior's part of both."""

    alpha: Floats
    beta: Floats
    prior_alpha: Floats = field(default_factory=lambda: np.zeros(1))
    prior_beta: Floats = field(default_factory=lambda: np.zeros(1))
    family: ClassVar[str]

    def __post_init__(self) -> None:
        for name in ("alpha", "beta"):
            values = getattr(self, name)
            wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
            if len(wrong):
                raise DataError(f"expected {name} above 0 in each posterior, found {values[wrong[0]]:g}")
            prior = np.broadcast_to(getattr(self, f"prior_{name}"), values.shape)
            wrong = np.flatnonzero(~((prior >= 0) & (prior <= values * (1 + NEAR))))
            if len(wrong):
                both = f"{prior[wrong[0]]:g} of {values[wrong[0]]:g}"
                raise DataError(f"expected a prior from 0 to the whole of {name}, found {both}")
            object.__setattr__(self, f"prior_{name}", prior)

    def __len__(self) -> int:
        return len(self.alpha)

    def some(self, which: Ints | Bools) -> Self:
        """Some of the posteriors, by number or as a mask."""
        return type(self)(self.alpha[which], self.beta[which], self.prior_alpha[which], self.prior_beta[which])

    @property
    @abstractmethod
    def mean(self) -> Floats:
        """The expected value of each quantity."""

    @property
    @abstractmethod
    def variance(self) -> Floats:
        """The expected squared distance of each quantity from its mean."""

    @abstractmethod
    def quantile(self, share: float) -> Floats:
        """The value below which this share of each posterior lies."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Floats:
        """A random value from each."""

    @abstractmethod
    def estimate(self, values: Floats) -> Floats:
        """The means of the posteriors that data with these values would give."""

    def redraw(self, rng: np.random.Generator) -> Floats:
        """Other estimates of the same quantities: a random value from each, drawn towards the prior as its mean was."""
        return self.estimate(self.draw(rng))

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
    def of_mean(
        cls, mean: Floats, size: Floats, prior_mean: Floats | float = 0.5, prior_size: Floats | float = 0.0
    ) -> Self:
        """Posteriors with these means, each worth as many observations as `size` says, the prior's among them."""
        alpha, beta = mean * size, (1 - mean) * size
        prior = np.minimum(prior_mean * prior_size, alpha), np.minimum((1 - prior_mean) * prior_size, beta)
        return cls(alpha, beta, *prior)

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

    def estimate(self, values: Floats) -> Floats:
        size, prior = self.alpha + self.beta, self.prior_alpha + self.prior_beta
        return np.asarray((values * (size - prior) + self.prior_alpha) / size, np.float64)

    @property
    def prior_share(self) -> Floats:
        """The prior's share of the observations."""
        return np.asarray((self.prior_alpha + self.prior_beta) / (self.alpha + self.beta), np.float64)

    def times(self, other: BetaPosteriors) -> BetaPosteriors:
        """The Beta posteriors with the mean and the variance of the products of two.

        Their prior is the product of the two priors' means, with the larger of the two shares.

        >>> one = BetaPosteriors(np.array([2.0]), np.array([2.0]))
        >>> one.times(BetaPosteriors(np.array([1e9]), np.array([1.0]))).mean.round(3).tolist()
        [0.5]
        """
        mean = self.mean * other.mean
        square = (self.variance + self.mean**2) * (other.variance + other.mean**2)
        size = mean * (1 - mean) / (square - mean**2) - 1
        share, priors = np.maximum(self.prior_share, other.prior_share), np.ones(len(mean))
        for each in (self, other):
            both = each.prior_alpha + each.prior_beta
            priors = priors * np.divide(each.prior_alpha, both, out=np.full(len(mean), 0.5), where=both > 0)
        return BetaPosteriors.of_mean(mean, size, priors, share * size)


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

    def estimate(self, values: Floats) -> Floats:
        return np.asarray((values * (self.beta - self.prior_beta) + self.prior_alpha) / self.beta, np.float64)


FAMILIES: dict[str, type[Posteriors]] = {cls.family: cls for cls in (BetaPosteriors, GammaPosteriors)}
