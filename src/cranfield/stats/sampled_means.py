"""Means of a population from a sample whose items were drawn with known, unequal probabilities.

Item i was drawn with probability π_i and stands for 1 / π_i items; u_i is its size in the population (such as its
traffic), and its weight in the mean is w_i = u_i / π_i. The mean is Hájek's ratio μ = Σ w y / Σ w. It is linear to the
first order in the residuals e_i = w_i (y_i − μ), whose sum a design of fixed size estimates with Deville's variance,
within each stratum h that was drawn on its own:

    V = Σ_h Σ_i c_i (e_i − ē_h)² / (1 − Σ a_i²),  c_i = 1 − π_i,  a_i = c_i / Σ c,  ē_h = Σ a_i e_i

The squared error of the mean is V / (Σ w)². An item that was certain to be drawn (π = 1) has the factor c = 0: it adds
to the mean and nothing to its error. Under equal probabilities 1 / (1 − Σ a²) is m / (m − 1) for m items, and Student's
error remains if they are small. The mean has Σ_h (m_h − 1) degrees of freedom, where m_h counts the items of stratum h
that were not certain. The formula holds for designs that are close to a random draw of fixed size given their
probabilities (Pareto order sampling; systematic sampling of a shuffled list). Deville (1999); Matei and Tillé (2005).

The decision to know: there is an interval only where the weights of drawn items are nearly even within each stratum, as
when items are drawn in proportion to their size. With uneven weights a few items decide the mean, and the t interval
fails: it covered the mean of 20,000 items of Zipf sizes in 15 to 85 of 100 uniform samples of 200.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cranfield.base.errors import DataError

if TYPE_CHECKING:
    from cranfield.stats.ties import Floats, Ints

EVEN = 0.8  # effective share of drawn items from which on their weights count as even
ALL_CERTAIN = "each pair was certain to be in the sample, so the mean has no sampling error"
ONE_DRAWN = "only one pair of the sample (or of one of its strata) was drawn by chance, so its error is unknown"
UNEVEN = "the sample was not drawn in proportion to the weights, and then intervals of the mean do not hold"
NO_CHANGE = "the pairs that were drawn by chance do not differ, so there is no spread to measure the mean against"


@dataclass(frozen=True, eq=False)
class ProbabilitySample:
    """How the items of a sample were drawn: one weight, inclusion probability and stratum per item.

    >>> sample = ProbabilitySample.of(sizes=[60, 10, 10], inclusion=[1, 0.5, 0.5])
    >>> sample.weights.round(2).tolist(), sample.drawn.tolist(), sample.freedom, round(sample.effective_size, 6)
    ([1.0, 0.33, 0.33], [False, True, True], 1, 25.0)
    """

    weights: Floats
    inclusion: Floats
    strata: Ints

    @classmethod
    def of(cls, sizes: npt.ArrayLike, inclusion: npt.ArrayLike, strata: Any = None) -> ProbabilitySample:
        """A sample of items of these sizes; `strata` may be names, and without them there is one stratum."""
        u, p = np.asarray(sizes, np.float64), np.asarray(inclusion, np.float64)
        if u.ndim != 1 or u.shape != p.shape:
            raise DataError(f"expected a size and an inclusion probability per item, found {u.shape} and {p.shape}")
        for what, values, fine, expected in (
            ("sizes", u, np.isfinite(u) & (u > 0), "finite numbers above 0"),
            ("inclusion probabilities", p, (p > 0) & (p <= 1), "above 0 and at most 1"),
        ):
            if not fine.all():
                place = int(np.argmin(fine))
                raise DataError(f"{what} must be {expected}, got {values[place]:g} at place {place + 1}")
        names = np.zeros(len(u), np.int64) if strata is None else np.unique(np.asarray(strata), return_inverse=True)[1]
        if names.shape != u.shape:
            raise DataError(f"expected a stratum for each of {len(u)} items, found the shape {names.shape}")
        return cls(u / u.max(initial=1e-300) / p, p, names.astype(np.int64))

    def part(self, items: Any) -> ProbabilitySample:
        """The sample of some of the items, chosen by a mask or by their places."""
        return ProbabilitySample(self.weights[items], self.inclusion[items], self.strata[items])

    @cached_property
    def drawn(self) -> npt.NDArray[np.bool_]:
        """Which items were drawn by chance; the others were certain."""
        return np.asarray(self.inclusion < 1, np.bool_)

    @cached_property
    def by_stratum(self) -> list[Ints]:
        """The places of the drawn items of each stratum that has any."""
        return [
            places for h in np.unique(self.strata) if len(places := np.flatnonzero((self.strata == h) & self.drawn))
        ]

    @property
    def freedom(self) -> int:
        """The degrees of freedom of the mean's error; 0 if all items were certain."""
        return sum(len(places) - 1 for places in self.by_stratum)

    @cached_property
    def even(self) -> bool:
        """Whether the weights of drawn items are nearly even within each stratum, so that intervals hold."""
        return all(
            w.sum() ** 2 >= EVEN * len(w) * np.square(w).sum() for w in (self.weights[h] for h in self.by_stratum)
        )

    @property
    def effective_size(self) -> float:
        """So many items of equal variance, drawn one by one from a large population, give as precise a mean.

        That is 1 / Σ (1 − π) p² with p = w / Σ w, and infinite if all items were certain.
        """
        shares = self.weights / self.weights.sum()
        squares = float(((1 - self.inclusion) * np.square(shares)).sum())
        return 1 / squares if squares else float("inf")

    @property
    def no_interval(self) -> str:
        """Why means of this sample have no interval and no test; empty if they have."""
        if not self.by_stratum:
            return ALL_CERTAIN
        if min(map(len, self.by_stratum)) < 2:
            return ONE_DRAWN
        return "" if self.even else UNEVEN


def sampled_mean(y: Floats, sample: ProbabilitySample) -> Floats:
    """The mean of the population that each row estimates: Σ w y / Σ w."""
    return np.asarray(y @ sample.weights / sample.weights.sum(), np.float64)


def sampled_mean_and_error(y: Floats, sample: ProbabilitySample) -> tuple[Floats, Floats]:
    """The mean of each row and its standard error; NaN if a stratum has a single drawn item, 0 if all are certain.

    >>> y = np.array([[1.0, 2.0, 6.0]])
    >>> mean, error = sampled_mean_and_error(y, ProbabilitySample.of([1, 1, 1], [1e-9] * 3))
    >>> mean.tolist(), error.round(4).tolist()  # with small equal probabilities, Student's
    ([3.0], [1.5275])
    >>> [part.tolist() for part in sampled_mean_and_error(y, ProbabilitySample.of([1, 1, 1], [1, 1, 1]))]
    [[3.0], [0.0]]
    """
    mean = sampled_mean(y, sample)
    residuals = sample.weights * (y - mean[:, None])
    variance = np.zeros(len(y))
    for places in sample.by_stratum:
        if len(places) < 2:
            return mean, np.full(len(y), np.nan)
        c, e = 1 - sample.inclusion[places], residuals[:, places]
        a = c / c.sum()
        centred = e - (e @ a)[:, None]
        variance += np.square(centred) @ c / _rest_of_squares(a)
    return mean, np.sqrt(variance) / sample.weights.sum()


def _rest_of_squares(shares: Floats) -> float:
    """1 − Σ a², without loss of digits where one share is near 1."""
    return float((shares * (shares.sum() - shares)).sum())


def sampled_t_without_each(y: Floats, sample: ProbabilitySample) -> tuple[Floats, Floats]:
    """For each value of a row: the mean of the others, and the absolute value of its t (0 where it has no spread).

    >>> mean, t = sampled_t_without_each(np.array([1.0, 2.0, 6.0]), ProbabilitySample.of([1, 1, 1], [1e-9] * 3))
    >>> mean.tolist(), t.round(3).tolist()
    ([4.0, 3.5, 1.5], [2.0, 1.4, 3.0])
    """
    rows, n = np.atleast_2d(y), y.shape[-1]
    mean, t = np.empty(rows.shape), np.zeros(rows.shape)
    for i in range(n):
        others = np.delete(np.arange(n), i)
        mean[:, i], error = sampled_mean_and_error(rows[:, others], sample.part(others))
        there = error > 0
        t[there, i] = np.abs(mean[there, i]) / error[there]
    return mean.reshape(y.shape), t.reshape(y.shape)
