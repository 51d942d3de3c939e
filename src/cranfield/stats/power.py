"""Power analysis: power, sample size and the smallest detectable difference.

A `Design` says how differences will be tested and how they vary: by a standard deviation, or by a sample of your own.
The t-test and the sign test are computed exactly; the randomisation test and Wilcoxon's are simulated, by drawing from
the sample after it was shifted to the wanted difference. Each deviation from the sample's mean is used once upward and
once downward, so that with a wanted difference of 0 the null hypotheses of all tests (about mean, median or
pseudomedian) are true, even if the sample is skewed. Deviations are smoothed a little, as in a kernel estimate;
otherwise the smallest shift would lift every deviation above its mirror image. Differences of exactly 0 stay 0, because
blocks without a difference would not begin to have one; the other differences carry the whole shift. All calculations
of one design use the same draws, so that a power curve is smooth and a search ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, isfinite, lgamma, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import refuse_below
from cranfield.stats.block_tables import probability
from cranfield.stats.tests_by_name import TESTS
from cranfield.stats.two_sample_test import Alternative, Prospect, SignificanceSettings, check_alternative

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cranfield.stats.ties import Floats

MOST = 10_000_000  # maximum number of blocks in a formula
MOST_SIMULATED = 20_000
LOT = 250  # simulated experiments at a time


@dataclass(frozen=True)
class Design:
    """How differences will be tested, and how they vary: give `sd`, or a `sample` of differences.

    >>> design = Design("t", sd=0.2)
    >>> sample_size(design, difference=0.05), round(power(design, 50, 0.05), 3)
    (128, 0.41)
    """

    test: str = "t"
    sd: float | None = None
    sample: Any = None
    alpha: float = 0.05
    alternative: Alternative = "two-sided"
    trials: int = 2_000  # simulated experiments
    resamples: int = 1_000  # of the randomisation test in each of them
    seed: int = 0

    def __post_init__(self) -> None:
        by_formula, simulated = power_tests()
        if self.test not in by_formula + simulated:
            raise DataError(f"power: expected a test of {', '.join(by_formula + simulated)}, found {self.test!r}")
        check_alternative(self.alternative)
        if (self.sd is None) == (self.sample is None):
            raise DataError("power: give either the standard deviation of the differences or a sample of them")
        if self.sd is not None and not (self.sd > 0 and isfinite(self.sd)):
            raise DataError(f"power: the standard deviation of the differences must be above 0, got {self.sd}")
        probability("alpha", self.alpha)
        for name, value in (("trials", self.trials), ("resamples", self.resamples)):
            if value < 1:
                raise DataError(f"power: {name} must be 1 or more, got {value}")
        refuse_below(1, trials=self.trials, resamples=self.resamples)
        if self.sample is not None and np.ptp(self.values) == 0:
            raise DataError(f"power: all {len(self.values)} differences are {self.values[0]:g}; they tell no variance")

    @cached_property
    def values(self) -> Floats:
        """The sample as numbers."""
        sample = np.asarray(self.sample, np.float64)
        if sample.ndim != 1 or len(sample) < 2:
            raise DataError(f"power: expected a sequence of two differences or more, found the shape {sample.shape}")
        if not np.isfinite(sample).all():
            raise DataError("power: expected numbers as differences, found NaN or infinity; leave those out")
        return sample

    @property
    def spread(self) -> float:
        """The standard deviation of the differences."""
        return float(self.sd) if self.sd is not None else float(self.values.std(ddof=1))

    @property
    def simulated(self) -> bool:
        """Whether power is estimated by simulation."""
        return TESTS[self.test].power == "simulated"

    def prospect(self, difference: float) -> Prospect:
        """The distribution of future differences with this mean."""
        effect = difference / self.spread
        if self.sample is None:
            from scipy.special import ndtr  # type: ignore[import-untyped, unused-ignore]

            return Prospect(effect, float(ndtr(effect)), 0.0)
        outlook = self.outlook(difference)
        return Prospect(effect, outlook.up, outlook.tied)

    def outlook(self, difference: float) -> Outlook:
        """The distribution of future differences by the sample, shifted to the mean; zeros stay 0."""
        differing = int((self.values != 0).sum())
        deviations, distance = self._mirrored
        centres = deviations + difference * len(self.values) / differing
        return Outlook(centres, 2 * (len(self.values) - differing), distance)

    @cached_property
    def _mirrored(self) -> tuple[Floats, float]:
        """The deviations of nonzero differences from their mean, in both directions, and the width of the smoothing.

        The width follows Silverman's rule; deviations are shrunk so that the standard deviation stays the same.
        """
        moved = self.values[self.values != 0]
        deviations, n = moved - moved.mean(), len(moved)
        if not deviations.any():
            return np.zeros(2 * n), 0.0
        sd, width = float(deviations.std(ddof=1)), float(np.ptp(np.quantile(deviations, [0.25, 0.75])))
        smear = 0.9 * min(sd, width / 1.34 or sd) * n**-0.2
        shrink = sd / sqrt(float(np.square(deviations).mean()) + smear**2)
        return np.concatenate([deviations, -deviations]) * shrink, sqrt(3) * smear * shrink


@dataclass(frozen=True)
class Outlook:
    """A distribution of differences: uniform within a distance around one of some centres, or exactly 0."""

    centres: Floats
    zeros: int
    distance: float

    @property
    def tied(self) -> float:
        """The chance of 0."""
        lasting = len(self.centres) if self.distance else np.count_nonzero(self.centres)
        return 1 - lasting / (self.zeros + len(self.centres))

    @property
    def up(self) -> float:
        """The probability that a nonzero difference is above 0."""
        if not self.distance:  # they all lie in one place
            return float(np.heaviside(self.centres[0], 0.5))
        return float(np.clip(0.5 + self.centres / (2 * self.distance), 0.0, 1.0).mean())

    def draw(self, lot: tuple[int, int], seed: list[int]) -> Floats:
        """Random differences; a larger sample begins with the smaller one of the same seed."""
        seat = np.random.default_rng(seed).integers(0, len(self.centres) + self.zeros, lot)
        step = np.random.default_rng([*seed, 1]).random(lot, np.float32)
        step -= np.float32(0.5)
        step *= np.float32(2 * self.distance)
        if self.zeros:
            step *= seat < len(self.centres)
        return np.asarray(np.append(self.centres, np.zeros(self.zeros))[seat] + step, np.float64)


def power_tests() -> tuple[list[str], list[str]]:
    """The tests whose power is known by a formula, and those for which it is simulated."""
    by_formula = [one.name for one in TESTS.values() if one.power == "formula"]
    return by_formula, [one.name for one in TESTS.values() if one.power == "simulated"]


def power(design: Design, n: int, difference: float) -> float:
    """The chance that a true mean difference is found with n blocks.

    >>> round(power(Design("sign", sd=1.0), 20, 0.5244005127080409), 4)  # P(up) = 0.7: 15 of 20 or more, or 5 or fewer
    0.4164
    """
    _check(n, difference)
    if design.simulated:
        *_, (detected, _) = _simulated(design, n, difference)
        return detected / design.trials
    return TESTS[design.test].power_at(n, design.prospect(difference), design.alpha, design.alternative)


def sample_size(design: Design, difference: float, power: float = 0.8) -> int:
    """The smallest number of blocks from which on the difference is found with at least this power.

    >>> sample_size(Design("t", sd=1.0), difference=0.5), sample_size(Design("sign", sd=1.0), difference=0.5)
    (34, 61)
    """
    probability("power", power)
    toward = {"two-sided": abs(difference), "greater": difference, "less": -difference}[design.alternative]
    if not toward > 0:
        raise DataError(f"sample size: no number of blocks finds a difference of {difference:g} ({design.alternative})")
    most = MOST_SIMULATED if design.simulated else MOST
    return _smallest(lambda n: _holds(design, n, difference, power), most, f"a difference of {difference:g}")


def detectable_difference(design: Design, n: int, power: float = 0.8) -> float:
    """The smallest mean difference that n blocks find with this power; its sign is the alternative's.

    >>> round(detectable_difference(Design("t", sd=0.2), 50), 4)
    0.0808
    """
    probability("power", power)
    sign = -1.0 if design.alternative == "less" else 1.0

    def enough(difference: float) -> bool:
        if difference > 1e6 * design.spread:
            raise DataError(f"{design.test} cannot reach p < {design.alpha:g} with {n} blocks, whatever the difference")
        return _reaches(design, n, sign * difference, power)

    return sign * _least(enough, design.spread / sqrt(n), 14 if design.simulated else 60)


def power_curve(design: Design, sizes: Iterable[int], difference: float) -> Floats:
    """The power at each number of blocks.

    >>> power_curve(Design("t", sd=0.2), [25, 50, 100, 200], 0.05).round(3).tolist()
    [0.225, 0.41, 0.697, 0.94]
    """
    return np.array([power(design, int(n), difference) for n in sizes])


def anova_power(n: int, groups: int, spread: float, sd: float, alpha: float = 0.05, *, crossed: bool = True) -> float:
    """The chance that ANOVA finds that not all groups are equal when the best and the worst lie `spread` apart.

    The other groups are assumed to lie half-way, the hardest case (Sakai, 2016). `sd` is that of the residuals. With
    crossed=False it is a one-way ANOVA without blocks, and `sd` is that of the values within a group.

    >>> round(anova_power(50, 5, spread=0.1, sd=0.15), 3)
    0.755
    """
    if n < 2 or groups < 2:
        raise DataError(f"power: expected two blocks and two groups or more, got {n} and {groups}")
    if not (sd > 0 and isfinite(sd)) or not isfinite(spread):
        raise DataError(f"power: expected a spread and a standard deviation above 0, got {spread} and {sd}")
    probability("alpha", alpha)
    from scipy.special import fdtri  # type: ignore[import-untyped, unused-ignore]
    from scipy.stats import ncf  # type: ignore[import-untyped, unused-ignore]

    between, within = groups - 1, (groups - 1) * (n - 1) if crossed else groups * (n - 1)
    noncentrality = n * spread**2 / (2 * sd**2)
    if noncentrality == 0:
        return alpha
    return float(ncf.sf(fdtri(between, within, 1 - alpha), between, within, noncentrality))


def anova_sample_size(
    groups: int, spread: float, sd: float, power: float = 0.8, alpha: float = 0.05, *, crossed: bool = True
) -> int:
    """The smallest number of blocks with which ANOVA finds a spread between best and worst with this power.

    >>> anova_sample_size(5, spread=0.1, sd=0.15)
    55
    """
    probability("power", power)
    if not abs(spread) > 0:
        raise DataError("sample size: no number of blocks finds a spread of 0")
    enough = lambda n: anova_power(n, groups, spread, sd, alpha, crossed=crossed) >= power  # noqa: E731
    return _smallest(enough, MOST, f"a spread of {spread:g}")


def anova_detectable(n: int, groups: int, sd: float, power: float = 0.8, alpha: float = 0.05) -> float:
    """The smallest spread between best and worst that ANOVA finds on n blocks with this power.

    >>> round(anova_detectable(55, 5, sd=0.15), 3)
    0.1
    """
    return _least(lambda spread: anova_power(n, groups, spread, sd, alpha) >= power, sd, 50)


def interval_width(n: int, sd: float, level: float = 0.95) -> float:
    """The expected full width of the t interval of a mean difference.

    >>> round(interval_width(50, 0.2), 4)
    0.1131
    """
    if n < 2:
        raise DataError(f"interval width: expected two blocks or more, got {n}")
    probability("level", level)
    from scipy.special import stdtrit

    shrink = sqrt(2 / (n - 1)) * exp(lgamma(n / 2) - lgamma((n - 1) / 2))  # an estimated sd is too small on average
    return float(2 * stdtrit(n - 1, (1 + level) / 2) * shrink * sd / sqrt(n))


def width_sample_size(width: float, sd: float, level: float = 0.95) -> int:
    """The smallest number of blocks whose interval is expected to be at most this wide (Sakai, 2016).

    >>> width_sample_size(0.1, 0.2)
    64
    """
    if not (width > 0 and sd > 0 and isfinite(sd)):
        raise DataError(f"sample size: expected a width and a standard deviation above 0, got {width} and {sd}")
    return _smallest(lambda n: interval_width(n, sd, level) <= width, MOST, f"a width of {width:g}")


def _check(n: int, difference: float) -> None:
    if n < 2:
        raise DataError(f"power: expected two blocks or more, got {n}")
    if not isfinite(difference):
        raise DataError(f"power: the difference must be a number, got {difference}")


def _holds(design: Design, n: int, difference: float, target: float) -> bool:
    """Whether n blocks suffice. The power of a discrete test zigzags, so a few larger numbers must suffice too."""
    teeth = 6 if TESTS[design.test].discrete else 1
    return all(_reaches(design, n + i, difference, target) for i in range(teeth))


def smallest(enough: Callable[[int], bool], most: int) -> int | None:
    """The smallest sufficient number from 2 on: doubled until it suffices, then bisection; None beyond `most`."""
    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > most:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _smallest(enough: Callable[[int], bool], most: int, what: str) -> int:
    number = smallest(enough, most)
    if number is None:
        raise DataError(f"sample size: {what} needs more than {most:,} blocks")
    return number


def _least(enough: Callable[[float], bool], guess: float, steps: int) -> float:
    """The smallest sufficient number: a guess is doubled until it suffices, then bisection."""
    low, high = 0.0, guess
    while not enough(high):
        low, high = high, 2 * high
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _simulated(design: Design, n: int, difference: float) -> Iterator[tuple[int, int]]:
    """The number of simulated experiments that found the difference so far, and how many remain."""
    detected = 0
    outlook = None if design.sample is None else design.outlook(difference)
    for start in range(0, design.trials, LOT):
        rng = np.random.default_rng([design.seed, start])
        lot = (n, min(LOT, design.trials - start))  # drawn block by block: n + 1 blocks begin as n do
        if outlook is None:
            differences = rng.standard_normal(lot) * design.spread + difference
        else:
            differences = outlook.draw(lot, [design.seed, start, 2])
        question = SignificanceSettings(design.alternative, 0.95, design.resamples, rng)
        detected += int(TESTS[design.test].rejects(np.ascontiguousarray(differences.T), design.alpha, question).sum())
        yield detected, design.trials - start - lot[1]


def _reaches(design: Design, n: int, difference: float, target: float) -> bool:
    """Whether the power is at least the target; a simulation ends as soon as that is certain."""
    if not design.simulated:
        return power(design, n, difference) >= target
    _check(n, difference)
    for detected, left in _simulated(design, n, difference):
        if detected / design.trials >= target:
            return True
        if (detected + left) / design.trials < target:
            return False
    return False
