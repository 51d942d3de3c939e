"""Counts against the shares they should have (sample ratio mismatch): at one look, or at repeated looks.

For one look, it is Pearson's chi-square test. For repeated looks, it is a martingale: the likelihood of the counts
under shares from a Dirichlet distribution around the planned shares, over that under the planned shares (Lindon and
Malek, 2022). One over its maximum so far is a p-value that is valid at any time. With two shares this is a sequential
sign test; its interval contains all shares that are not rejected yet.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import DataError
from cranfield.stats.block_tables import probability
from cranfield.stats.paired import sign_tails
from cranfield.stats.two_sample_test import p_from_tails

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.stats.ties import Floats

CONCENTRATION = 1_000.0
"""The concentration of the Dirichlet distribution around the planned shares. For two equal shares, 1,000 is a standard
deviation of 1.6 points; a smaller mismatch takes tens of thousands of units to detect."""
SIGN_CONCENTRATION = 20.0  # of wins and losses: a standard deviation of 11 points
STEPS = 60


def chi_square_p(counts: Any, shares: Sequence[float]) -> Floats:
    """Pearson's test that counts have these shares, for one look; one p-value per row of counts.

    >>> round(float(chi_square_p([5_000, 5_200], [0.5, 0.5])), 4)
    0.0477
    """
    table, planned = _checked(counts, shares)
    total = table.sum(axis=-1, keepdims=True)
    from scipy.special import chdtrc  # type: ignore[import-untyped, unused-ignore]

    expected = total * planned
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(total > 0, np.square(table - expected) / expected, 0.0).sum(axis=-1)
    return np.asarray(chdtrc(len(planned) - 1, statistic), np.float64)


def exact_p(counts: Sequence[int], shares: Sequence[float]) -> float:
    """An exact test that counts have these shares, for one look and for counts too small for Pearson's test.

    Each count is tested by the binomial distribution on both sides, and the smallest p-value is multiplied by the
    number of tests (Bonferroni), so the error rate is at most alpha.

    >>> round(exact_p([9, 1], [0.5, 0.5]), 4), round(exact_p([0, 1], [0.99, 0.01]), 4)
    (0.0215, 0.02)
    """
    from scipy.special import bdtr, bdtrc

    table, planned = _checked(counts, shares)
    total = int(table.sum())
    below = [float(bdtr(n, total, share)) for n, share in zip(table, planned, strict=True)]
    above = [float(bdtrc(n - 1, total, share)) if n else 1.0 for n, share in zip(table, planned, strict=True)]
    tests = 2 * (len(planned) if len(planned) > 2 else 1)  # two counts need one test: the second follows from the first
    return min(1.0, tests * min(*below, *above))


def log_evidence(counts: Any, shares: Sequence[float], concentration: float = CONCENTRATION) -> Floats:
    """The logarithm of the martingale: how much more likely the counts are under shares around the planned ones."""
    table, planned = _checked(counts, shares)
    if not (concentration > 0 and math.isfinite(concentration)):
        raise DataError(f"the concentration must be a positive number, got {concentration}")
    from scipy.special import gammaln

    prior = concentration * planned
    mixed = gammaln(concentration) - gammaln(table.sum(axis=-1) + concentration)
    return np.asarray(
        mixed + (gammaln(table + prior) - gammaln(prior) - table * np.log(planned)).sum(axis=-1), np.float64
    )


def anytime_p(counts: Any, shares: Sequence[float], concentration: float = CONCENTRATION) -> float:
    """The p-value, at any time, that counts have these shares. Give the counts of every look so far, one row each.

    >>> round(anytime_p([[500, 520], [5_000, 5_600]], [0.5, 0.5]), 6)
    1e-06
    """
    table = np.atleast_2d(np.asarray(counts, np.float64))
    if (np.diff(table, axis=0) < 0).any():
        raise DataError("expected counts that grow from look to look, the first look first")
    return float(min(1.0, math.exp(-float(log_evidence(table, shares, concentration).max()))))


def anytime_share(
    wins: float, losses: float, level: float = 0.95, concentration: float = SIGN_CONCENTRATION
) -> tuple[float, float]:
    """The interval of the share of wins, valid at any number of looks; ties count for neither.

    It excludes ½ exactly if `anytime_p([wins, losses], [0.5, 0.5], concentration)` is below 1 − level.

    >>> [round(end, 3) for end in anytime_share(60, 40)]
    [0.455, 0.734]
    """
    outside = 1 - probability("level", level)
    _checked([wins, losses], [0.5, 0.5])
    total = wins + losses
    if not total:
        return 0.0, 1.0
    low, high = (_end(wins, losses, far, wins / total, outside, concentration) for far in (0.0, 1.0))
    return low, high


def exact_share(wins: int, losses: int, level: float = 0.95) -> tuple[float, float]:
    """The interval of the share of wins by Clopper and Pearson (1934), for one look; it covers at least at its level.

    >>> [round(end, 3) for end in exact_share(8, 2)]
    [0.444, 0.975]
    """
    from scipy.special import betaincinv

    tail = (1 - probability("level", level)) / 2
    _checked([wins, losses], [0.5, 0.5])
    low = float(betaincinv(wins, losses + 1, tail)) if wins else 0.0
    high = float(betaincinv(wins + 1, losses, 1 - tail)) if losses else 1.0
    return low, high


def sign_p(wins: int, losses: int) -> float:
    """The sign test of wins against losses, for one look; ties count for neither.

    >>> round(sign_p(15, 5), 4)
    0.0414
    """
    _checked([wins, losses], [0.5, 0.5])
    return float(p_from_tails(*sign_tails(wins, losses), "two-sided"))


def _end(wins: float, losses: float, far: float, near: float, outside: float, concentration: float) -> float:
    """The end of the interval, by bisection between a rejected and an accepted share."""
    if near == far:
        return far
    # the mixture is around ½ for every share, so that the martingale has one numerator
    even = float(log_evidence([wins, losses], [0.5, 0.5], concentration)) + (wins + losses) * math.log(0.5)
    for _ in range(STEPS):
        middle = (far + near) / 2
        likelihood = wins * math.log(middle) + losses * math.log1p(-middle)
        far, near = (middle, near) if even - likelihood >= -math.log(outside) else (far, middle)
    return near


def _checked(counts: Any, shares: Sequence[float]) -> tuple[Floats, Floats]:
    table, planned = np.asarray(counts, np.float64), np.asarray(shares, np.float64)
    if planned.ndim != 1 or len(planned) < 2 or not (planned > 0).all() or not np.isfinite(planned).all():
        raise DataError(f"expected two shares or more, each above 0, found {list(shares)}")
    if table.shape[-1:] != planned.shape:
        raise DataError(
            f"expected a count for each of {len(planned)} shares, found {table.shape[-1] if table.ndim else 1}"
        )
    if not (np.isfinite(table) & (table >= 0)).all():
        raise DataError("expected counts of 0 or more, found another number")
    return table, planned / planned.sum()
