"""Ratios of rates between levels, compared within strata: click rates of ranks, on the same items.

Each row has a stratum, a level, an exposure (views), a count (clicks) and a cluster (unit). The expected count is exposure ×
rate of the stratum × rate of the level. The ratios of levels maximise the likelihood of a Poisson model given the total of
each stratum (Hausman, Hall and Griliches, 1984), which needs only the mean to be right (Wooldridge, 1999). The strata's
rates drop out, so many strata with few counts do no harm, as they do if each rate is fitted.

Errors come from the contributions of clusters, enlarged because a stratum's rate fits its own counts (Bell and McCaffrey,
2002). Two estimates from the same clusters can be compared, because each keeps these contributions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.base.errors import DataError

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.stats.ties import Floats

    Integers = npt.NDArray[np.int64]

STEPS = 200  # of Newton's method; a concave likelihood takes about ten
NEAR = 1e-9


class StratifiedCounts(NamedTuple):
    """Rows of counts: stratum, level, exposure, count and cluster of each; all but exposures and counts are numbers from 0."""

    stratum: Integers
    level: Integers
    exposure: Floats
    counts: Floats
    cluster: Integers


@dataclass(frozen=True, eq=False)
class RateRatios:
    """The logarithm of each level's rate, relative to the first level that it is connected to.

    `reference` is that level, -1 if the level has none. `seen` numbers the groups of levels that share strata, with or
    without counts. `influence` holds the contribution of each cluster to each logarithm.
    """

    log: Floats
    reference: Integers
    seen: Integers
    influence: Floats  # clusters × levels

    @property
    def error(self) -> Floats:
        """The standard error of each logarithm."""
        return np.asarray(np.sqrt(np.square(self.influence).sum(axis=0)), np.float64)

    @property
    def covariance(self) -> Floats:
        """The covariances of the logarithms: levels × levels."""
        return np.asarray(self.influence.T @ self.influence, np.float64)


def rate_ratios(rows: StratifiedCounts, levels: int, clusters: int) -> RateRatios:
    """The ratios of rates between levels, by the conditional likelihood within strata.

    >>> rows = StratifiedCounts(*(np.array(each) for each in ([0, 0], [0, 1], [100.0, 100.0], [40.0, 10.0], [0, 1])))
    >>> np.exp(rate_ratios(rows, 2, 2).log).round(6).tolist()
    [1.0, 0.25]
    """
    log, influence = np.full(levels, np.nan), np.zeros((clusters, levels))
    seen, groups = connected_levels(rows, levels)
    reference = np.full(levels, -1)
    for group in range(int(groups.max(initial=-1)) + 1):
        members = np.flatnonzero(groups == group)
        reference[members], log[members[0]] = members[0], 0.0
        if len(members) < 2:
            continue
        inside = groups[rows.level] == group
        own = StratifiedCounts(*(column[inside] for column in rows))
        log[members], influence[:, members] = _fit(own, members, clusters)
    return RateRatios(log, reference, seen, influence)


def connected_levels(rows: StratifiedCounts, levels: int) -> tuple[Integers, Integers]:
    """Two numbers of each level: the group that shares strata with it, and the group that their counts connect too.

    Counts connect two levels if each has a count in a stratum of the other, directly or over other levels; without that,
    the ratio would be 0 or infinite. Groups are numbered by their first level. A level without any row has -1.
    """
    from scipy.sparse import csr_array  # type: ignore[import-untyped, unused-ignore]
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped, unused-ignore]

    strata = int(rows.stratum.max(initial=-1)) + 1
    shape = (strata, levels)
    views = csr_array((np.ones(len(rows.level)), (rows.stratum, rows.level)), shape=shape)
    positive = rows.counts > 0
    clicks = csr_array((np.ones(int(positive.sum())), (rows.stratum[positive], rows.level[positive])), shape=shape)
    _, seen = connected_components((views.T @ views).toarray() > 0, directed=False)
    _, groups = connected_components((clicks.T @ views).toarray() > 0, directed=True, connection="strong")
    there = np.bincount(rows.level, minlength=levels) > 0
    with_counts = there & (np.bincount(rows.level, rows.counts, minlength=levels) > 0)
    return _numbered(seen, there), _numbered(groups, with_counts)


def sums_of(numbers: Integers, values: Floats, size: int = 0) -> Floats:
    """The sum of values for each number."""
    return np.asarray(np.bincount(numbers, values, size), np.float64)


def distinct(numbers: Integers) -> tuple[Integers, Integers]:
    """The distinct numbers in order, and the place of each number among them, as `numpy.unique`, which sorts, finds them.

    >>> [each.tolist() for each in distinct(np.array([7, 2, 7]))]
    [[2, 7], [1, 0, 1]]
    """
    largest = int(numbers.max(initial=-1))
    if largest > 4 * len(numbers):
        values, places = np.unique(numbers, return_inverse=True)
        return values, places
    there = np.zeros(largest + 1, np.bool_)
    there[numbers] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[numbers]


def _numbered(groups: Integers, there: npt.NDArray[np.bool_]) -> Integers:
    """Groups numbered by their first level; -1 for a level that is not there."""
    numbers: dict[int, int] = {}
    return np.array(
        [
            numbers.setdefault(group, len(numbers)) if ok else -1
            for group, ok in zip(groups.tolist(), there.tolist(), strict=True)
        ],
        np.int64,
    )


def _fit(rows: StratifiedCounts, members: Integers, clusters: int) -> tuple[Floats, Floats]:
    """The logarithms of connected levels, and the influence of each cluster on them."""
    from scipy.sparse import csr_array

    place = np.searchsorted(members, rows.level)
    total = np.bincount(rows.stratum, rows.counts)
    several = total > 0
    inside = several[rows.stratum]
    strata, stratum = distinct(rows.stratum[inside])
    level, exposure, count = place[inside], rows.exposure[inside], rows.counts[inside]
    total, size = total[strata], len(members)
    cell, of_row = distinct(stratum * size + level)
    of_stratum, of_level = np.divmod(cell, size)
    exposures, counts = sums_of(of_row, exposure), sums_of(of_row, count)
    by_level = np.bincount(of_level, counts, minlength=size)

    def shares(log: Floats) -> tuple[Floats, Floats]:
        """The expected share of each cell in its stratum, and the exposure of each stratum times the rates of levels."""
        rates = exposures * np.exp(log[of_level])
        sums = sums_of(of_stratum, rates)
        return rates / sums[of_stratum], sums

    def likelihood(log: Floats) -> float:
        sums = np.bincount(of_stratum, exposures * np.exp(log[of_level]))
        return float(by_level @ log - total @ np.log(sums))

    log: Floats = np.zeros(size)
    best = likelihood(log)
    for _ in range(STEPS):
        share, sums = shares(log)
        table = csr_array((share, (of_stratum, of_level)), shape=(len(strata), size))
        expected = np.bincount(of_level, total[of_stratum] * share, minlength=size)
        information = np.diag(expected) - (table.T @ (table * total[:, None])).toarray()
        step = np.zeros(size)
        step[1:] = np.linalg.solve(information[1:, 1:], (by_level - expected)[1:])
        if np.abs(step).max() < NEAR:
            break
        while (after := likelihood(log + step)) < best - NEAR and np.abs(step).max() > NEAR:
            step /= 2
        log, best = log + step, after
    else:
        raise DataError("the ratios of rates do not converge; the counts at some levels are too few")
    rate = total / sums
    weight = exposure * np.exp(log[level])
    residual = count - rate[stratum] * weight
    return log, influence_of_clusters(
        StratifiedCounts(stratum, level, weight, residual, rows.cluster[inside]), table, information, clusters
    )


def influence_of_clusters(rows: StratifiedCounts, shares: object, information: Floats, clusters: int) -> Floats:
    """The contribution of each cluster to each level's logarithm, relative to the first level: clusters × levels.

    The counts of `rows` are residuals, their exposures the weights of rows in the fit of the stratum's rate. `shares` is
    the share of each level in its stratum's weight.
    """
    from scipy.sparse import csr_array

    stratum, level, weight, residual, cluster = rows
    strata, size = shares.shape  # type: ignore[attr-defined]
    group, of_row = distinct(cluster * strata + stratum)
    whose, where = np.divmod(group, strata)
    sums, weights = np.bincount(of_row, residual), np.bincount(of_row, weight)
    left = 1 - weights / np.bincount(stratum, weight, minlength=strata)[where]
    more = np.where(left > NEAR, 1 / np.sqrt(np.maximum(left, NEAR)) - 1, 0.0)
    own = residual + (more * sums / weights)[of_row] * weight
    direct = np.bincount(cluster * size + level, own, minlength=clusters * size).reshape(clusters, size)
    fitted = csr_array((sums * (1 + more), (whose, where)), shape=(clusters, strata)) @ shares
    scores = direct - fitted.toarray()
    influence = np.zeros((clusters, size))
    influence[:, 1:] = np.linalg.solve(information[1:, 1:], scores[:, 1:].T).T
    return influence
