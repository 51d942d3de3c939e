"""Trust bias: users click on examined documents at the top more readily, whatever these are. An affine model of each rank.

A document that is clicked with probability x at rank 1 is clicked with probability α·x + β at rank k. Without trust bias, β
is 0 and α is the examination. With it, the ratio of clicks at two ranks depends on the documents, and (click − β) / α
corrects a click (Vardasbi, Oosterhuis and de Rijke, CIKM 2020; Agarwal, Wang, Li, Bendersky and Najork, WWW 2019). Only the
model relative to rank 1 can be estimated from clicks: α is 1 and β is 0 there.

The estimate is the line through click-through rates at rank k and at rank 1 of the same documents, over documents. Rates
of few views are uncertain, which would flatten the line; products of clicks by different units are free of that error.
Intervals come from leaving out each query in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.stats.jackknife import without_each
from cranfield.stats.rate_ratios import sums_of
from cranfield.stats.sequential import FIXED

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.ranked_pages import RankedPages
    from cranfield.experiments.clicks.result_pages import Numbers
    from cranfield.stats.arms import EffectEstimate
    from cranfield.stats.rate_ratios import StratifiedCounts

LEAST_QUERIES = 20  # with documents that were seen at both ranks
# A line is not determined if documents are alike, or if their spread is hardly known. The second criterion alone decides
# in most logs, because a rule on the estimated spread would select the logs that overestimate it.
CLEAR = 4.0  # standard errors from 0 of the spread between documents
PRECISE = 0.05  # the largest standard error of the spread, as a share of the squared click rate at rank 1


class TrustBias(NamedTuple):
    """The affine model of a rank relative to rank 1, with intervals and the p-value of β = 0."""

    rank: int
    alpha: float
    alpha_low: float
    alpha_high: float
    beta: float
    beta_low: float
    beta_high: float
    p: float
    queries: int


def trust_bias(log: RankedPages, level: float = 0.95) -> list[TrustBias]:
    """The affine model of each rank that shares enough documents with rank 1, by ranks that chance decided."""
    rows = log.harvested()
    if not len(rows.level):
        return []
    answer = [TrustBias(1, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, np.nan, 0)]
    for rank in np.unique(rows.level[rows.level > 0]).tolist():
        sums, queries = _sums_by_query(rows, rank, np.tile(log.pages.pairs.query, 2))
        line = without_each(sums, _line) if queries >= LEAST_QUERIES else None
        if line is not None and _is_determined(line):
            answer.append(_affine(rank + 1, line, level, queries))
    return answer if len(answer) > 1 else []


def _is_determined(line: EffectEstimate) -> bool:
    """Whether the spread between documents is known well enough for a line."""
    if not (np.isfinite(line.value).all() and np.isfinite(line.error).all()):
        return False
    _, _, spread, rate = line.value
    error = line.error[2]
    return bool(0 < CLEAR * error < spread and error < PRECISE * rate**2)


def _affine(rank: int, line: EffectEstimate, level: float, queries: int) -> TrustBias:
    (low, high), p = line.interval(level), line.p(FIXED)
    alpha, beta = ((float(line.value[i]), float(low[i]), float(high[i])) for i in (0, 1))
    return TrustBias(rank, *alpha, *beta, float(p[1]), queries)


def _sums_by_query(rows: StratifiedCounts, rank: int, query: Numbers) -> tuple[Floats, int]:
    """Weighted sums over the documents of each query: 1, both click rates, the first one squared, and their product."""
    inside = (rows.level == 0) | (rows.level == rank)
    pairs, pair = np.unique(rows.stratum[inside], return_inverse=True)
    group, of_row = np.unique(rows.cluster[inside] * len(pairs) + pair, return_inverse=True)
    whose = group % len(pairs)
    top = rows.level[inside] == 0
    views, clicks = (
        [sums_of(of_row, each * side) for side in (top, ~top)] for each in (rows.exposure[inside], rows.counts[inside])
    )

    def by_pair(values: Floats) -> Floats:
        return sums_of(whose, values, len(pairs))

    def of_different(one: Floats, other: Floats) -> Floats:
        """Σ over two different units of the product."""
        return by_pair(one) * by_pair(other) - by_pair(one * other)

    views_squared, views_both = of_different(views[0], views[0]), of_different(views[0], views[1])
    usable = (views_squared > 0) & (views_both > 0)
    first, second = by_pair(views[0])[usable], by_pair(views[1])[usable]
    weight = first * second / (first + second)
    columns = (
        np.ones(len(weight)),
        by_pair(clicks[0])[usable] / first,
        by_pair(clicks[1])[usable] / second,
        (of_different(clicks[0], clicks[0])[usable] / views_squared[usable]),
        (of_different(clicks[0], clicks[1])[usable] / views_both[usable]),
    )
    numbers, place = np.unique(query[pairs[usable]], return_inverse=True)
    sums = np.zeros((len(numbers), len(columns)))
    np.add.at(sums, place, np.column_stack([weight * column for column in columns]))
    return sums, len(numbers)


def _line(sums: Floats) -> Floats:
    """The slope α, the intercept β, the spread between documents and the click rate at rank 1, for each row of sums."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second, squared, product = (sums[:, 1:] / sums[:, :1]).T
        spread = squared - first * first
        alpha = (product - first * second) / spread
    return np.stack([alpha, second - alpha * first, spread, first], axis=1)
