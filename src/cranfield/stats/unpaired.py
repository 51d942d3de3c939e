"""Tests of two samples that are not paired: Welch's t, Mann and Whitney's U, and the permutation test.

Use them only for two different sets of items: samples measured on the same items are paired, and these tests would
ignore that. The permutation test compares means, but it also reacts to a difference in spread.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, islice
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from cranfield.stats.paired import t_test
from cranfield.stats.ties import NEAR, Floats, mid_ranks, rounding
from cranfield.stats.two_sample_test import SignificanceSettings, SignificanceValues, Test, normal_tails, p_from_tails

if TYPE_CHECKING:
    from collections.abc import Iterator


EXACT_VALUES = 40  # up to so many values in both samples together Mann and Whitney's test is exact; beyond, normal
BLOCK = 1024
ROWS = 256


def welch_error(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The standard error of the difference of two means, and its degrees of freedom (Satterthwaite)."""
    one, other = (x.var(axis=-1, ddof=1) / x.shape[-1] for x in (a, b))
    freedom = (one + other) ** 2 / (one**2 / (a.shape[-1] - 1) + other**2 / (b.shape[-1] - 1))
    return np.sqrt(one + other), freedom


class _Unpaired(Test):
    paired = False


class Welch(_Unpaired):
    """Do two unpaired samples have the same mean? Their spreads may differ. The interval is Welch's."""

    name = "welch"
    title = "Welch's t-test"
    short = "Welch (unpaired)"
    reference = "Welch (1947)"
    aliases = ("unpaired-t", "welch-t")
    p_from = "formula"
    needs_spread = True

    def compute(self, a: Floats, b: Floats, question: SignificanceSettings) -> SignificanceValues:
        return t_test(b.mean(axis=1) - a.mean(axis=1), *welch_error(a, b), question)


class MannWhitney(_Unpaired):
    """Is a value of one unpaired sample as often above a value of the other sample as below it?

    Exact up to 40 values, ties included; beyond, normal with corrections for ties and continuity.
    """

    name = "mann-whitney"
    title = "Mann-Whitney U test"
    short = "Mann-Whitney (unpaired)"
    reference = "Mann and Whitney (1947)"
    aliases = ("u", "mannwhitney", "rank-sum")
    compares = "ranks"
    p_from = "exact or approximate"
    discrete = True

    def compute(self, a: Floats, b: Floats, question: SignificanceSettings) -> SignificanceValues:
        n, m = a.shape[1], b.shape[1]
        ranks = mid_ranks(np.concatenate([a, b], axis=1), rounding(a, b))
        rank_sum = ranks[:, n:].sum(axis=1)
        exact = n + m <= EXACT_VALUES
        if exact:
            doubled = np.sort(np.rint(2 * ranks).astype(np.int64), axis=1)
            tails = [
                rank_sum_tails(row.tobytes(), m, round(2 * own)) for row, own in zip(doubled, rank_sum, strict=True)
            ]
            lower, upper = np.array(tails, np.float64).T
        else:
            deviation = np.sqrt(n * m / (n + m) * ranks.var(axis=1, ddof=1))  # the ranks' own variance allows for ties
            lower, upper = normal_tails(rank_sum, m * (n + m + 1) / 2, deviation)
        p, lean = p_from_tails(lower, upper, question.alternative), rank_sum - m * (n + m + 1) / 2
        return SignificanceValues(p, rank_sum - m * (m + 1) / 2, exact=exact, lean=lean)


class Permutation(_Unpaired):
    """Is the difference of two unpaired means larger than after a random division of all values into two samples?

    All divisions are tried if these are no more than `resamples`, else a random sample.
    """

    name = "permutation"
    title = "permutation test"
    short = "permutation (unpaired)"
    reference = "Pitman (1937); Phipson and Smyth (2010)"
    aliases = ("unpaired-permutation",)
    p_from = "exact or drawn"
    sampled = True

    def compute(self, a: Floats, b: Floats, question: SignificanceSettings) -> SignificanceValues:
        n, m = a.shape[1], b.shape[1]
        both = np.concatenate([a, b], axis=1)
        both = (both - both.mean(axis=1, keepdims=True)) * (-1.0 if question.alternative == "less" else 1.0)
        size = np.abs if question.alternative == "two-sided" else np.asarray
        rounded = NEAR * np.abs(both).sum(axis=1)  # equal but for rounding counts as equal
        least = size(both[:, n:].sum(axis=1)) - rounded
        count = np.zeros(len(a), np.int64)
        for choices in _choices(n, m, question.resamples, question.rng):
            for start in range(0, len(a), ROWS):
                rows = slice(start, start + ROWS)
                count[rows] += (size(both[rows] @ choices.T) >= least[rows, None]).sum(axis=1)
        exact = comb(n + m, n) <= question.resamples
        resamples = comb(n + m, n) if exact else question.resamples
        p = count / resamples if exact else (1 + count) / (1 + resamples)  # never 0: Phipson and Smyth (2010)
        return SignificanceValues(p, b.mean(axis=1) - a.mean(axis=1), exact=exact, resamples=resamples)


@lru_cache(maxsize=4096)
def rank_sum_tails(doubled_ranks: bytes, m: int, rank_sum: int) -> tuple[float, float]:
    """The probabilities that m of these ranks (doubled, as bytes) have at most, or at least, this sum.

    >>> rank_sum_tails(np.array([2, 4, 6, 8]).tobytes(), 2, 6)  # the ranks 1 and 2, of six ways
    (0.16666666666666666, 1.0)
    """
    ways = _ways(doubled_ranks, m)
    return float(ways[: rank_sum + 1].sum() / ways.sum()), float(ways[rank_sum:].sum() / ways.sum())


@lru_cache(maxsize=64)
def _ways(doubled_ranks: bytes, m: int) -> Floats:
    """The number of ways in which m of the ranks sum to 0, 1, 2 …"""
    ranks = np.frombuffer(doubled_ranks, np.int64)
    ways = np.zeros((m + 1, int(ranks[-m:].sum()) + 1))
    ways[0, 0] = 1.0
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, :-rank].copy()
    return np.asarray(ways[m], np.float64)


def _choices(n: int, m: int, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Which m of n + m values make the second sample, as rows of 0 and 1: each choice once if they are few enough."""
    if comb(n + m, m) <= resamples:
        every = combinations(range(n + m), m)
        while some := list(islice(every, BLOCK)):
            choices = np.zeros((len(some), n + m))
            np.put_along_axis(choices, np.array(some), 1.0, axis=1)
            yield choices
        return
    arranged = np.r_[np.zeros(n, np.uint8), np.ones(m, np.uint8)]
    for start in range(0, resamples, BLOCK):
        rows = min(BLOCK, resamples - start)
        yield rng.permuted(np.broadcast_to(arranged, (rows, n + m)), axis=1).astype(np.float64)
