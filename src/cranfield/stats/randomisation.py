"""Randomisation: if nothing differs, each difference could as well have had the other sign.

The test compares the sum of the differences with the sums under other signs: all 2^n of them if these are no more than
`resamples`, else a random sample, the same for every pair. One table of random signs times the differences is a matrix
product, so thousands of pairs cost little more than one. A sampled p-value counts the data as one of its samples and so
is never 0 (Phipson and Smyth, 2010). Sums equal but for rounding count as equal.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import refuse_below
from cranfield.stats.ties import NEAR, Bools, Floats, differences
from cranfield.stats.two_sample_test import (
    Alternative,
    SignificanceResult,
    SignificanceSettings,
    SignificanceValues,
    Test,
    check_alternative,
)
from cranfield.stats.weighted_means import weighted_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt


BLOCK = 1024  # sign vectors at a time: 110 samples' sums then fit into a core's cache
ROWS = 256
STEP = 256  # sign vectors after which rows that are decided are left
SINGLE = float(np.finfo(np.float32).eps) / 2  # the relative rounding of one operation in single precision
TINY = float(np.finfo(np.float64).tiny)


def enumerable(n: int, resamples: int) -> bool:
    """Whether the number of sign vectors of length n is at most `resamples`.

    >>> enumerable(16, 100_000), enumerable(17, 100_000)
    (True, False)
    """
    return n < 63 and 2**n <= resamples


def _tried(n: int, resamples: int) -> tuple[bool, int]:
    """Whether all sign vectors are tried, and how many."""
    exact = enumerable(n, resamples)
    return exact, 2**n if exact else resamples


def sign_blocks(
    n: int, resamples: int, rng: np.random.Generator, block: int = BLOCK, kind: type[np.floating[Any]] = np.float64
) -> Iterator[npt.NDArray[Any]]:
    """Vectors of n signs in blocks of rows: each of the 2^n once if they are no more than `resamples`, else random."""
    for flipped in _flips(n, resamples, rng, block, kind):
        flipped *= -2.0
        flipped += 1.0
        yield flipped


def _flips(
    n: int, resamples: int, rng: np.random.Generator, block: int = BLOCK, kind: type[np.floating[Any]] = np.float64
) -> Iterator[npt.NDArray[Any]]:
    """The same sign vectors, with 1 for − and 0 for +."""
    exact, total = _tried(n, resamples)
    for start in range(0, total, block):
        rows = min(block, total - start)
        if exact:
            yield ((np.arange(start, start + rows)[:, None] >> np.arange(n)) & 1).astype(kind)
        else:
            draws = rng.integers(0, 256, (rows, -(-n // 8)), np.uint8)
            yield np.unpackbits(draws, axis=1, count=n).astype(kind)


def sign_flip_p(
    differences: Floats, resamples: int, rng: np.random.Generator, alternative: Alternative = "two-sided"
) -> Floats:
    """The p-value of each row of differences: how often other signs give as large a sum. NaN if a value is not finite.

    >>> sign_flip_p(np.array([[1.0, 2.0, 3.0]]), 1000, np.random.default_rng(0)).tolist()  # +++ and −−− of eight
    [0.25]
    """
    _check(resamples, alternative)
    d = np.asarray(differences, np.float64)
    if d.ndim != 2:
        raise DataError(f"expected a table with a row of differences for each pair, found the shape {d.shape}")
    fit = np.logical_and.reduce(np.isfinite(d), axis=1)
    d = np.where(fit[:, None], d, 0.0) * _SIGN[alternative]
    least = _least(d.sum(axis=1), np.abs(d).sum(axis=1), alternative)
    count = np.zeros(len(d), np.int64)
    for signs in sign_blocks(d.shape[1], resamples, rng):
        for start in range(0, len(d), ROWS):
            rows = slice(start, start + ROWS)
            sums = d[rows] @ signs.T
            if alternative == "two-sided":
                np.abs(sums, out=sums)
            count[rows] += _count(np.greater_equal(sums, least[rows, None]))
    return np.where(fit, _share(count, d.shape[1], resamples), np.nan)


def sign_flip_rejects(
    differences: Floats, alpha: float, resamples: int, rng: np.random.Generator, alternative: Alternative = "two-sided"
) -> Bools:
    """Whether `sign_flip_p` of each row is at most alpha, in about half the time: simulations ask thousands of times.

    Sums are computed in single precision, and a row is finished as soon as too many of them certainly reach its own
    sum; a row that depends on rounding is computed again in full.

    >>> sign_flip_rejects(np.array([[1.0, 2.0, 3.0]]), 0.25, 1000, np.random.default_rng(0)).tolist()
    [True]
    """
    n = differences.shape[1]
    if enumerable(n, resamples):
        return sign_flip_p(differences, resamples, rng, alternative) <= alpha
    most = int((_share(np.arange(resamples + 1), n, resamples) <= alpha).sum()) - 1  # sums as large that alpha allows
    d = differences * (_SIGN[alternative] / np.maximum(np.abs(differences).max(axis=1, keepdims=True), TINY))
    size = np.abs(d).sum(axis=1)
    least, margin = _least(d.sum(axis=1), size, alternative), (n + 8) * SINGLE * size
    single, above, below = (part.astype(np.float32) for part in (d, least + margin, least - margin))
    start = rng.bit_generator.state
    surely, perhaps, left = (np.zeros(len(d), np.int64), np.zeros(len(d), np.int64), np.arange(len(d)))
    for signs in sign_blocks(n, resamples, rng, STEP, np.float32):
        sums = single[left] @ signs.T
        if alternative == "two-sided":
            np.abs(sums, out=sums)
        surely[left] += _count(sums >= above[left, None])
        perhaps[left] += _count(sums >= below[left, None])
        left = left[surely[left] <= most]
    rejected: Bools = perhaps <= most
    open_rows = np.flatnonzero((surely <= most) & ~rejected)
    if len(open_rows):
        rng.bit_generator.state = start  # the same signs
        rejected[open_rows] = sign_flip_p(differences[open_rows], resamples, rng, alternative) <= alpha
    return rejected


def sign_flip_p_all(
    table: Floats,
    resamples: int,
    rng: np.random.Generator,
    alternative: Alternative = "two-sided",
    progress: Callable[[int, int | None], None] | None = None,
) -> Floats:
    """The same test for every pair of columns at once: entry [i, j] tests column j against column i.

    The product of signs and table gives the signed sum of every column; the sum of a pair is the difference of two. So
    the matrix product is as small as the table, and a pair costs only its comparisons. Columns are sorted by their
    sums, so that pairs that are too far apart to be reached come last and are skipped. `progress` gets the number of
    finished sign vectors and the total.

    >>> sign_flip_p_all(np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]]), 1000, np.random.default_rng(0)).tolist()
    [[nan, 0.25], [0.25, nan]]
    """
    _check(resamples, alternative)
    x = np.asarray(table, np.float64)
    if x.ndim != 2:
        raise DataError(f"expected a table with a column for each sample, found the shape {x.shape}")
    fit = np.logical_and.reduce(np.isfinite(x), axis=0)
    x = np.where(fit, x, 0.0)
    x = (x - x.mean(axis=1, keepdims=True)) * _SIGN[alternative] if x.size else x  # what is common to a row cancels
    order = np.argsort(x.sum(axis=0), kind="stable")
    x = x[:, order]
    columns, sums, size = x.shape[1], x.sum(axis=0), np.abs(x).sum(axis=0)
    least = _least(sums[None, :] - sums[:, None], size[None, :] + size[:, None], alternative)
    most = sums[None, :] - sums[:, None] + NEAR * (size[None, :] + size[:, None])
    count = np.zeros((columns, columns), np.int64)
    room = np.empty((columns, BLOCK))
    done, total = 0, _tried(x.shape[0], resamples)[1]
    for signs in sign_blocks(x.shape[0], resamples, rng):
        signed = x.T @ signs.T
        ends = _reached(signed, least) if alternative == "two-sided" else [columns] * columns
        for i, end in enumerate(ends):
            later = slice(i + 1, end)
            gap = np.subtract(signed[later], signed[i], out=room[: max(end - i - 1, 0), : len(signs)])
            if alternative == "two-sided":
                np.abs(gap, out=gap)
            else:
                count[later, i] += _count(gap <= most[i, later, None])
            count[i, later] += _count(gap >= least[i, later, None])
        done += len(signs)
        if progress is not None:
            progress(done, total)
    if alternative == "two-sided":
        count += count.T
    p = np.empty(count.shape)
    p[np.ix_(order, order)] = _share(count, x.shape[0], resamples)
    p[~(fit[:, None] & fit)] = np.nan
    np.fill_diagonal(p, np.nan)
    return p


def _reached(signed: Floats, least: Floats) -> list[int]:
    """For each column, the position after the last column whose distance could be as large as the observed one."""
    if not len(signed):
        return []
    largest = np.abs(signed).max(axis=1) * (1 + NEAR)
    within = least <= largest[:, None] + largest
    return (within.shape[1] - np.argmax(within[:, ::-1], axis=1)).tolist()  # type: ignore[no-any-return]


def sign_flip_interval(differences: Floats, question: SignificanceSettings) -> tuple[Floats, ...]:
    """The interval of each row: the shifts that the test does not reject; all lower ends, all upper ends.

    Flipping the signs of some differences raises the sum if and only if their mean is below 0; so the test of a shift
    counts the random subsets with a mean below it, and the interval's ends are quantiles of subset means (Hartigan,
    1969), by weights where there are any. If the tail is smaller than the share of one sample, the end is infinite.
    """
    return question.in_batches(_interval, differences)


def _interval(d: Floats, question: SignificanceSettings) -> tuple[Floats, Floats]:
    means = _subset_means(d, question.resamples, question.rng, question.weights)
    total = means.shape[1]
    empty = int(np.isinf(means[:1]).sum())  # these stand below everything, seen from either end
    first, last = (min(math.floor(total * tail + 1e-9), total - 1) for tail in question.tails)
    from_above = total - 1 - (last - empty)
    low, high = np.empty(len(d)), np.full(len(d), np.inf)
    for row, each in enumerate(means):
        each.partition(sorted({first, min(from_above, total - 1)}))
        low[row] = each[first]
        if last >= empty:
            high[row] = each[from_above]
    return low, high


def _subset_means(d: Floats, resamples: int, rng: np.random.Generator, weights: Floats | None = None) -> Floats:
    """The mean of each random subset of a row; -inf for the empty subset, which is the data itself."""
    d = d if weights is None else d * weights
    exact, tried = _tried(d.shape[1], resamples)
    means = np.full((len(d), tried if exact else tried + 1), -np.inf)
    start = 0
    for subsets in _flips(d.shape[1], resamples, rng):
        size = subsets.sum(axis=1) if weights is None else subsets @ weights
        part = means[:, start : start + len(subsets)]
        np.divide(d @ subsets.T, size, out=part, where=size > 0)
        start += len(subsets)
    return means


_SIGN = {"two-sided": 1.0, "greater": 1.0, "less": -1.0}


def _check(resamples: int, alternative: str) -> None:
    check_alternative(alternative)
    if resamples < 1:
        raise DataError(f"resamples must be at least 1, got {resamples}")
    refuse_below(1, resamples=resamples)


def _least(sums: Floats, size: Floats, alternative: Alternative) -> Floats:
    """The threshold from which a sum counts as at least as large as the observed one."""
    return (np.abs(sums) if alternative == "two-sided" else sums) - NEAR * size


def _count(mask: Bools) -> npt.NDArray[np.uint32]:
    """The number of true values in each row: eight bytes at a time, which cannot overflow within a block."""
    if mask.shape[1] % 8 or mask.shape[1] > 8 * 255:
        return np.asarray(np.add.reduce(mask.view(np.uint8), axis=1, dtype=np.uint32), np.uint32)
    eight = np.add.reduce(mask.view(np.uint64), axis=1)
    return np.asarray(np.add.reduce(eight[:, None].view(np.uint8), axis=1, dtype=np.uint32), np.uint32)


def _share(count: npt.NDArray[np.int64], n: int, resamples: int) -> Floats:
    if enumerable(n, resamples):
        return np.asarray(count / 2.0**n, np.float64)
    return np.asarray((1 + count) / (1 + resamples), np.float64)  # never 0: Phipson and Smyth (2010)


def sign_flip_p_rows(
    a: Floats, b: Floats, resamples: int, rng: np.random.Generator, alternative: Alternative = "two-sided"
) -> Floats:
    """The p-value of each row of b against that of a: the same numbers as `sign_flip_p` of their differences.

    If most pairs of a few different rows are requested, all pairs are computed at once, which costs a fraction.
    """
    rows: dict[bytes, int] = {}
    place = np.array([[rows.setdefault(row.tobytes(), len(rows)) for row in side] for side in (a, b)])
    if len(a) < 2 * len(rows):
        return sign_flip_p(differences(a, b), resamples, rng, alternative)
    table = np.array([np.frombuffer(row, a.dtype) for row in rows])
    p = sign_flip_p_all(table.T, resamples, rng, alternative)[place[0], place[1]]
    return np.where(place[0] == place[1], 1.0, p)


class Randomisation(Test):
    """Is the mean difference larger than it would be if the differences had random signs?

    Assumes nothing about their distribution. If there are at most `resamples` combinations of signs, all are tried, else a
    random sample. The interval contains the shifts that the test does not reject.
    """

    name = "randomisation"
    title = "randomisation test"
    short = "randomisation"
    reference = "Fisher (1935); Phipson and Smyth (2010); Smucker, Allan and Carterette (2007)"
    aliases = ("randomization", "sign-flip", "fisher", "fisher-randomisation")
    p_from = "exact or drawn"
    sampled = True
    interval = "randomisation"
    weighable = True
    shares_draws = True
    power = "simulated"

    def compute(self, a: Floats, b: Floats, question: SignificanceSettings) -> SignificanceValues:
        d, weights = differences(a, b), question.weights
        seed = _seed(question)  # p and interval from the same signs
        p = sign_flip_p(
            d if weights is None else d * weights, question.resamples, np.random.default_rng(seed), question.alternative
        )
        low, high = sign_flip_interval(d, replace(question, rng=np.random.default_rng(seed)))
        return SignificanceValues(p, weighted_mean(d, weights), low, high, *_tried(d.shape[1], question.resamples))

    def without_interval(self, a: Floats, b: Floats, question: SignificanceSettings) -> list[SignificanceResult]:
        a, b, question = self.weighed(a, b, question)
        if question.weights is not None:
            a, b = a * question.weights, b * question.weights
        rng = np.random.default_rng(_seed(question))
        p = sign_flip_p_rows(a, b, question.resamples, rng, question.alternative)
        exact, tried = _tried(a.shape[1], question.resamples)
        figures = SignificanceValues(p, differences(a, b).mean(axis=1), exact=exact, resamples=tried)
        return list(self._outcomes(figures, [""] * len(p), np.ones(len(p), np.bool_)))

    def all_pairs(self, table: Floats, resamples: int, rng: np.random.Generator) -> tuple[Floats, str]:
        return sign_flip_p_all(table, resamples, rng), ""

    def rejects(self, d: Floats, alpha: float, question: SignificanceSettings) -> Bools:
        return sign_flip_rejects(d, alpha, question.resamples, question.rng, question.alternative)

    def smallest_p(self, outcome: SignificanceResult, differing: int, sides: int) -> float:
        return sides / 2**differing if outcome.exact else super().smallest_p(outcome, differing, sides)


def _seed(question: SignificanceSettings) -> int:
    return int(question.rng.integers(2**63))
