"""Critical values for several looks at the data: one look at the end, planned looks, or any number of looks.

A `LookRule` converts a one-sided error rate into a critical value in standard errors; its intervals hold at all of its
looks together. `Fixed` is the ordinary test with one look. `GroupSequentialRule` spends the error rate over looks by a
function of the share of the plan that has passed (Lan and DeMets, 1983). The correlations between looks follow from the
observed information (Lan and DeMets, 1989); intervals are the repeated ones of Jennison and Turnbull (1989). `Sequence`
allows any number of looks: the normal mixture, which is the mSPRT of Johari et al. (2015), tuned to be tightest at a
planned size (Howard et al., 2021). For means and ratios it holds in the limit of many units (Waudby-Smith et al., 2024).

Crossing probabilities are integrated numerically (Armitage, McPherson and Rowe, 1969). Estimates are assumed to have
independent increments. If the same units keep adding data, successive estimates are more similar than that, and the
rules are conservative.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import Real, Text, Whole, real
from cranfield.base.registry import Registry
from cranfield.stats.block_tables import probability
from cranfield.stats.method import StatisticalMethod

if TYPE_CHECKING:
    from collections.abc import Sequence as Several

    from cranfield.stats.ties import Floats

FAR = 8.0  # standard deviations from the middle at which a density is cut
SAME = 1e-9  # a look that adds less than this share of information sees the estimate of the look before it
CLOSE = 1e-3  # a look that adds less than this share of information counts as if it added this much
MOST_NODES = 1024
LEAST_SPENT = 1e-15  # a look that may spend less than this cannot decide


class Spending(StatisticalMethod, ABC):
    """How much of the error rate is spent once a share of the information is available."""

    registry: ClassVar[Registry[Spending]] = Registry("spending function", "spending_functions", refusal=DataError)

    @abstractmethod
    def spent(self, share: Floats, tail: float) -> Floats:
        """The error rate spent on one side, out of `tail`, at a share of the information from 0 to 1."""


SPENDINGS = Spending.registry


def spending(name: str) -> Spending:
    """A spending function by its name or an alias.

    >>> spending("pocock").spent(np.array([0.5, 1.0]), 0.025).round(5).tolist()
    [0.0155, 0.025]
    """
    return Spending.named(name)


class OBrienFleming(Spending):
    """Spends hardly anything early and nearly all at the end, where the test is almost the fixed one; the default."""

    name = "obrien-fleming"
    title = "O'Brien-Fleming type"
    reference = "Lan and DeMets (1983)"
    aliases = ("obf", "of")

    def spent(self, share: Floats, tail: float) -> Floats:
        from scipy.special import ndtr, ndtri  # type: ignore[import-untyped, unused-ignore]

        with np.errstate(divide="ignore"):
            return np.asarray(2 * ndtr(ndtri(tail / 2) / np.sqrt(share)), np.float64)


class Pocock(Spending):
    """About the same bound at every look: stops early more often, but needs a larger effect at the end."""

    name = "pocock"
    title = "Pocock type"
    reference = "Lan and DeMets (1983)"

    def spent(self, share: Floats, tail: float) -> Floats:
        return np.asarray(tail * np.log1p((math.e - 1) * share), np.float64)


class Power(Spending):
    """A power of the share: 1 spends in proportion, 3 is close to O'Brien and Fleming's."""

    name = "power"
    title = "power family"
    reference = "Kim and DeMets (1987)"
    aliases = ("linear", "kim-demets")
    rho = Real(1.0, "the power to which the share of information is raised", low=0.0, open=True)

    def spent(self, share: Floats, tail: float) -> Floats:
        return np.asarray(tail * share**self.rho, np.float64)


class LookRule(ABC):
    """The critical values for looks that the rule allows."""

    @abstractmethod
    def critical(self, tail: float) -> float:
        """The critical value in standard errors for this one-sided error rate."""

    @abstractmethod
    def tail(self, z: Floats) -> Floats:
        """The smallest one-sided error rate at which z standard errors are significant; 1 for z at or below 0."""


@dataclass(frozen=True)
class Fixed(LookRule):
    """One look, at the end.

    >>> round(Fixed().critical(0.025), 4)
    1.96
    """

    def critical(self, tail: float) -> float:
        from scipy.special import ndtri

        return float(-ndtri(_one_side(tail)))

    def tail(self, z: Floats) -> Floats:
        from scipy.special import ndtr

        return np.asarray(ndtr(-np.asarray(z)), np.float64)


FIXED = Fixed()


@dataclass(frozen=True)
class GroupSequentialRule(LookRule):
    """Planned looks; the rule is that of the latest look.

    `shares` is the information at each look so far, as it was observed: looks may be uneven, more or fewer than
    planned. Their ratios give the correlation of the estimates of two looks. `spend_at` is the share of the plan that
    had passed at each look (of its days, or of its units); the error rate is spent by it. Without it, errors are spent
    by the information, and a share of 1 or more spends all that is left. The `last` look always spends all that is
    left.

    >>> [round(GroupSequentialRule((0.5, 1.0)[: k + 1]).critical(0.025), 3) for k in range(2)]
    [2.963, 1.969]
    >>> round(GroupSequentialRule((0.5, 1.05, 1.6), spend_at=(1 / 3, 2 / 3, 1.0)).critical(0.025), 3)
    1.995
    """

    shares: tuple[float, ...]
    by: str = "obrien-fleming"
    last: bool = False
    spend_at: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        spending(self.by)
        _spend_at(_shares(self.shares), self.spend_at)

    def critical(self, tail: float) -> float:
        return float(bounds(self.shares, self.by, _one_side(tail), last=self.last, spend_at=self.spend_at)[-1])

    def spends(self, tail: float) -> float:
        """How much of the error rate this look may spend.

        >>> f"{GroupSequentialRule((1 / 14,)).spends(0.025):.0e}"
        '5e-17'
        """
        due = _due(_shares(self.shares), self.by, _one_side(tail), self.last, self.spend_at)
        return float(due[-1] - (due[-2] if len(due) > 1 else 0.0))

    def tail(self, z: Floats) -> Floats:
        flat = [self._least(float(each)) for each in np.ravel(z)]
        return np.array(flat, np.float64).reshape(np.shape(z))

    def _least(self, z: float) -> float:
        """The error rate by bisection, on a logarithmic scale."""
        if not z > 0:
            return math.nan if math.isnan(z) else 1.0
        low, high = math.log(1e-12), math.log(0.5)
        if self._reached(low, z):
            return math.exp(low)
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if self._reached(middle, z) else (middle, high)
        return math.exp(high)

    def _reached(self, log_tail: float, z: float) -> bool:
        bound = self.critical(math.exp(log_tail))
        return math.isfinite(bound) and bound <= z


@dataclass(frozen=True)
class Sequence(LookRule):
    """Any number of looks at any time. `share` is the number of units so far over the planned number.

    The error rate of both sides together is at most twice the tail. One side alone is bounded by tail / Φ(√(−2 ln 2
    tail)): 2.52 % for 2.5 %, 5.1 % for 5 %. `alpha` is the two-sided level at which the interval is narrowest when the
    share is 1.

    >>> [round(Sequence(share).critical(0.025), 3) for share in (0.1, 0.5, 1.0, 2.0)]
    [3.855, 3.084, 3.035, 3.061]
    """

    share: float
    alpha: float = 0.05

    def __post_init__(self) -> None:
        probability("alpha", self.alpha)
        if not (self.share > 0 and math.isfinite(self.share)):
            raise DataError(
                f"a confidence sequence needs units at hand and a planned number, got a share of {self.share}"
            )

    @property
    def mixed(self) -> float:
        """The available information in units of the mixture's precision."""
        twice = -2 * math.log(self.alpha)
        return self.share * (twice + math.log1p(twice))

    def critical(self, tail: float) -> float:
        g = self.mixed
        return math.sqrt((1 + 1 / g) * (math.log1p(g) - 2 * math.log(2 * _one_side(tail))))

    def tail(self, z: Floats) -> Floats:
        g = self.mixed
        chance = np.minimum(0.5 * math.sqrt(1 + g) * np.exp(-0.5 * np.square(z) * g / (1 + g)), 1.0)
        return np.asarray(np.where(np.asarray(z) <= 0, 1.0, chance), np.float64)


def bounds(
    shares: Several[float],
    by: str = "obrien-fleming",
    tail: float = 0.025,
    *,
    last: bool = False,
    spend_at: Several[float] | None = None,
) -> Floats:
    """The bound at each look, in standard errors, that spends `tail` on one side; infinite where a look cannot decide.

    >>> bounds([0.2, 0.4, 0.6, 0.8, 1.0]).round(3).tolist()
    [4.877, 3.357, 2.68, 2.29, 2.031]
    """
    information = _shares(shares)
    due = _due(information, by, _one_side(tail), last, spend_at)
    return np.array(_bounds(information, tuple(due.tolist())))


def _due(shares: tuple[float, ...], by: str, tail: float, last: bool, spend_at: Several[float] | None) -> Floats:
    """The error rate that may be spent by each look."""
    due = spending(by).spent(np.minimum(_spend_at(shares, spend_at), 1.0), tail)
    if last:
        due[-1] = tail
    return due


@lru_cache(maxsize=1024)
def _bounds(shares: tuple[float, ...], due: tuple[float, ...]) -> tuple[float, ...]:
    """The bounds that spend the error rate of each look. A look without new information adds to the one before it."""
    before, walk = _RandomWalk(), _RandomWalk()
    spent_before = spent = 0.0
    bounds: list[float] = []
    for (share, fresh, ahead), by_now in zip(_steps(shares), due, strict=True):
        if fresh:
            before, spent_before = walk, spent
        bound = before.bound(share, by_now - spent_before)
        spent = by_now if math.isfinite(bound) else spent_before
        walk = before.on(share, bound, ahead)
        bounds.append(bound)
    return tuple(bounds)


def _steps(shares: tuple[float, ...]) -> list[tuple[float, bool, float]]:
    """The information at each look, whether it is new, and how much the next look adds."""
    fresh = [True, *(other > one * (1 + SAME) for one, other in pairwise(shares))]
    rising: list[float] = []
    for share, new in zip(shares, fresh, strict=True):
        rising.append(max(share, rising[-1] * (1 + CLOSE)) if new and rising else rising[-1] if rising else share)
    ahead = [other - one if new else math.inf for (one, other), new in zip(pairwise(rising), fresh[1:], strict=True)]
    return list(zip(rising, fresh, [*ahead, math.inf], strict=True))


def information(units: Several[float], times: Several[float]) -> tuple[float, ...]:
    """The information at each look, up to a factor: it grows like the units, or like the time if that grows more.

    Between two looks new units come, and known units add to their numbers. Both make the second estimate differ from
    the first, so the larger growth is a bound on how much they differ.

    >>> [round(each, 3) for each in information([10, 40, 44], [1, 2, 3])]
    [0.167, 0.667, 1.0]
    """
    growth = [1.0 for _ in units[:1]]
    for unit, time in zip(pairwise(units), pairwise(times), strict=True):
        growth.append(growth[-1] * max(unit[1] / unit[0], time[1] / time[0]))
    return tuple(each / growth[-1] for each in growth)


def crossing(shares: Several[float], bounds: Several[float], drift: float = 0.0) -> Floats:
    """The probability to cross the upper bound for the first time, at each look.

    `drift` is the effect, in standard errors at a share of 1.

    >>> float(crossing([0.5, 1.0], [2.963, 1.969]).sum().round(4))
    0.025
    >>> float(crossing([1.0], [1.96], drift=2.8016).sum().round(3))
    0.8
    """
    looks = _shares(shares)
    if len(bounds) != len(looks):
        raise DataError(f"expected a bound for each of {len(looks)} looks, found {len(bounds)}")
    before, walk, lowest = _RandomWalk(), _RandomWalk(), math.inf
    chances: list[float] = []
    for (share, fresh, ahead), bound in zip(_steps(looks), bounds, strict=True):
        if fresh:
            before, lowest = walk, math.inf
        reached = before.beyond(share, lowest, drift)
        lowest = min(lowest, bound)
        chances.append(before.beyond(share, lowest, drift) - reached)
        walk = before.on(share, lowest, ahead, drift)
    return np.array(chances)


class LookSchedule(StatisticalMethod, ABC):
    """The planned looks of an experiment: the rule at each look, and the power by the end."""

    registry: ClassVar[Registry[LookSchedule]] = Registry("method", "looking_methods", refusal=DataError)

    @property
    @abstractmethod
    def shares(self) -> tuple[float, ...]:
        """The shares of the planned information at the planned looks; the last is 1."""

    @abstractmethod
    def rule(self, shares: Several[float], *, last: bool = False, alpha: float = 0.05) -> LookRule:
        """The rule at the latest look, given the observed shares so far; `last` if no other look will follow.

        `alpha` is the two-sided level of the plan, to which a confidence sequence is tuned.
        """

    def bounds(self, tail: float, alpha: float = 0.05) -> Floats:
        """The bound at each planned look, in standard errors."""
        looks = range(1, len(self.shares) + 1)
        return np.array([self.rule(self.shares[:k], alpha=alpha).critical(tail) for k in looks])

    def detection_chances(self, drift: float, tail: float, alpha: float = 0.05) -> Floats:
        """For each planned look, the probability to detect an effect there first; in standard errors at the end."""
        return crossing(self.shares, self.bounds(tail, alpha).tolist(), drift)


SCHEDULES = LookSchedule.registry


def schedule(name: str) -> LookSchedule:
    """A method by its name, with the parameters typed after it.

    >>> schedule("looks(looks=2)").bounds(0.025).round(3).tolist()
    [2.963, 1.969]
    """
    return LookSchedule.named(name)


class AtTheEnd(LookSchedule):
    """One look, at the horizon: the highest power, but no result before."""

    name = "fixed"
    title = "fixed horizon"
    shares = (1.0,)

    def rule(self, shares: Several[float], *, last: bool = False, alpha: float = 0.05) -> LookRule:
        return FIXED


class AtLooks(LookSchedule):
    """A few planned looks, each of which may end the experiment: nearly the same power, and often an earlier result."""

    name = "looks"
    title = "group-sequential looks"
    reference = "Lan and DeMets (1983)"
    looks = Whole(5, "how many looks there are, evenly spaced", low=1, high=200)
    at = Text("", "their shares of the planned information instead, with slashes between: 0.3/0.6/1")
    by = Text("obrien-fleming", "the spending function")

    @property
    def shares(self) -> tuple[float, ...]:
        if not self.at:
            return tuple((k + 1) / self.looks for k in range(self.looks))
        try:
            shares = _shares([real(share) for share in self.at.split("/")])
        except ValueError:
            raise DataError(
                f"looks: expected rising shares with slashes between, such as 0.3/0.6/1, found {self.at!r}"
            ) from None
        if shares[-1] != 1:
            raise DataError(f"looks: expected 1 as the last share, found {self.at!r}")
        return shares

    def rule(self, shares: Several[float], *, last: bool = False, alpha: float = 0.05) -> LookRule:
        planned = self.shares[: len(shares)]  # looks beyond the plan spend by their information
        return GroupSequentialRule(tuple(shares), self.by, last, planned if len(planned) == len(shares) else None)


class AtAnyTime(LookSchedule):
    """Any number of looks at any time: the lowest power, but no waiting."""

    name = "sequence"
    title = "confidence sequence"
    reference = "Robbins (1970); Johari et al. (2015); Howard et al. (2021)"
    peeks = Whole(30, "how often it is looked at, for planning only", low=1, high=1_000)

    @property
    def shares(self) -> tuple[float, ...]:
        return tuple((k + 1) / self.peeks for k in range(self.peeks))

    def rule(self, shares: Several[float], *, last: bool = False, alpha: float = 0.05) -> LookRule:
        return Sequence(_shares(shares)[-1], alpha)


@dataclass(frozen=True)
class _RandomWalk:
    """The distribution of a random walk (with or without drift) that has stayed below every bound so far."""

    share: float = 0.0
    places: Floats = field(default_factory=lambda: np.zeros(1))  # of nodes: at first all mass is at 0
    masses: Floats = field(default_factory=lambda: np.ones(1))

    def beyond(self, share: float, bound: float, drift: float = 0.0) -> float:
        """The probability to have stayed below so far and to be beyond the bound at this share."""
        from scipy.special import ndtr

        step = share - self.share
        return float(self.masses @ ndtr((self.places + drift * step - bound * math.sqrt(share)) / math.sqrt(step)))

    def bound(self, share: float, chance: float) -> float:
        """The bound that is exceeded with this probability."""
        from scipy.optimize import brentq  # type: ignore[import-untyped, unused-ignore]

        if chance < LEAST_SPENT:
            return math.inf
        if self.beyond(share, -FAR) <= chance:
            return -FAR
        return float(brentq(lambda bound: self.beyond(share, bound) - chance, -FAR, 2 * FAR, xtol=1e-10))

    def on(self, share: float, bound: float, ahead: float, drift: float = 0.0) -> _RandomWalk:
        """The walk at this share, on a grid fine enough for this step and the next."""
        step, deviation = share - self.share, math.sqrt(share)
        low, high = drift * share - FAR * deviation, min(bound * deviation, drift * share + FAR * deviation)
        high = max(high, low + 1e-9)
        steps = 2 * (high - low) / math.sqrt(min(step, ahead))
        x, weights = legendre_nodes(min(64 * math.ceil(max(steps, 1) / 64), MOST_NODES))
        nodes = low + (high - low) * (x + 1) / 2
        apart = (nodes[:, None] - self.places - drift * step) / math.sqrt(step)
        density = np.exp(-0.5 * apart**2) @ self.masses / math.sqrt(2 * math.pi * step)
        return _RandomWalk(share, nodes, density * weights * (high - low) / 2)


@lru_cache(maxsize=32)
def legendre_nodes(number: int) -> tuple[Floats, Floats]:
    """The nodes and weights of the Gauss-Legendre quadrature on −1 … 1."""
    return np.polynomial.legendre.leggauss(number)


def _shares(looks: Several[float]) -> tuple[float, ...]:
    shares = tuple(float(share) for share in looks)
    rising = all(one <= other for one, other in zip(shares, shares[1:], strict=False))
    if not shares or not rising or not shares[0] > 0 or not math.isfinite(shares[-1]):
        raise DataError(f"looks: expected shares of the planned information, above 0 and rising, found {list(shares)}")
    return shares


def _spend_at(shares: tuple[float, ...], spend_at: Several[float] | None) -> tuple[float, ...]:
    """The share of the plan that had passed at each look; by default the share of the information."""
    if spend_at is None:
        return shares
    if len(spend_at) != len(shares):
        raise DataError(f"looks: expected the share of the plan at each of {len(shares)} looks, found {len(spend_at)}")
    return _shares(spend_at)


def _one_side(tail: float) -> float:
    if not 0 < tail <= 0.5:
        raise DataError(f"the chance of an error on one side must be above 0 and at most 0.5, got {tail}")
    return tail
