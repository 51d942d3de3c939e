"""Position bias of a log: the examination of each rank by several methods, where they disagree, and trust bias.

The answer is the curve of the method that assumes least: swaps, then harvested interventions, then EM. A curve never crosses a
gap. Ranks are connected if documents were seen at both, directly or over other ranks; each curve is relative to its first
rank. Two methods with different evidence are compared rank by rank, by the units that both use, with Holm's correction.

Trust bias means that users click on examined documents at the top more readily, whatever these are. A document that is clicked
with probability x at rank 1 is clicked with probability α·x + β at rank k. Without trust bias, β is 0 and α is the
examination. With it, the ratio of clicks at two ranks depends on the documents, and (click − β) / α corrects a click
(Vardasbi, Oosterhuis and de Rijke, CIKM 2020; Agarwal, Wang, Li, Bendersky and Najork, WWW 2019). Only the model relative
to rank 1 can be estimated from clicks: α is 1 and β is 0 there. The estimate is the line through the click-through rates of
the same documents at rank k and at rank 1. Rates of few views are uncertain, which would flatten the line; products of
clicks by different units are free of that error. Intervals come from leaving out each query in turn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Answer, Cell, Table, plain
from cranfield.base.text_layout import counted
from cranfield.experiments.clicks.position_bias_methods import ONE_RANKER, POSITION_BIAS_METHODS
from cranfield.stats.correction import correct
from cranfield.stats.jackknife import without_each
from cranfield.stats.rate_ratios import sums_of
from cranfield.stats.sequential import FIXED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.base.results import Layout, Part
    from cranfield.experiments.clicks.position_bias_methods import PositionBiasMethod
    from cranfield.experiments.clicks.ranked_pages import RankedPages
    from cranfield.experiments.clicks.result_pages import Numbers
    from cranfield.stats.arms import EffectEstimate
    from cranfield.stats.rate_ratios import RateRatios, StratifiedCounts

LEVEL = 0.95
ALPHA = 0.05
NAMED_RANK = 5  # the rank in the first sentence, or the last one above it
MARGIN = 0.05  # methods that share units may agree to a few per cent, and differ significantly
LARGEST_LOG = 700.0  # of a limit; the exponential of a larger one overflows
MOST_CELLS = 50_000_000  # units times ranks: an array of this size takes 400 MB
SHOWN = 10  # ranks of the table on a screen
COLUMNS = ("rank", "examination", "low", "high", "method", "relative_to", "alpha", "beta")
COVARIANCES = "log_covariances"  # with ranks 1, 2, … of the file


class RankExamination(NamedTuple):
    """How often a rank is examined, relative to another rank, by one method; None without an estimate."""

    method: str
    rank: int
    relative_to: int | None
    examination: float | None
    low: float | None
    high: float | None


class MethodDisagreement(NamedTuple):
    """Two methods that differ by more than the margin at a rank, and the p-value, corrected for the number of comparisons."""

    rank: int
    one: str
    other: str
    p: float


@dataclass(frozen=True, repr=False)
class PositionBias(Answer):
    """How often each rank is examined, relative to the first rank that it is connected to."""

    method: str  # of the answer
    methods: tuple[str, ...]
    rows: tuple[RankExamination, ...]
    views: tuple[int, ...]
    clicks: tuple[int, ...]
    pages: int
    units: int | None  # None if the log has none
    alpha: float
    gaps: tuple[str, ...]
    disagreements: tuple[MethodDisagreement, ...]
    comparisons: int  # of two methods at a rank
    trust: tuple[TrustBias, ...]
    cautions: tuple[str, ...]
    covariance: Floats = field(compare=False)  # ranks × ranks, of the answer's logarithms; NaN without intervals
    remarks: list[str] = field(default_factory=list)

    ends_with_limits = True

    @property
    def curve(self) -> dict[int, RankExamination]:
        """The answer by rank: the ranks that are connected to rank 1, or else to the first rank that has others."""
        own = [row for row in self.rows if row.method == self.method and row.examination is not None]
        sizes = {row.relative_to: sum(other.relative_to == row.relative_to for other in own) for row in own}
        first = next((reference for reference, size in sizes.items() if size > 1), None)
        return {row.rank: row for row in own if row.relative_to == first}

    @property
    def examination(self) -> dict[int, float]:
        """The examination by rank, by the method of the answer."""
        return {rank: float(row.examination or 0.0) for rank, row in self.curve.items()}

    def content(self, how: Layout) -> Iterator[Part]:
        yield self._verdict()
        yield self._table(how)
        if self.trust:
            head = ["rank", "alpha", "95% interval", "beta", "95% interval", "queries"]
            rows: list[list[Cell | str]] = []
            for each in self.trust if how.every else self.trust[:SHOWN]:
                alpha = _cells(each.alpha, each.alpha_low, each.alpha_high, how)
                beta = _cells(each.beta, each.beta_low, each.beta_high, how)
                first = each.rank == 1
                queries = Cell("" if first else f"{each.queries:,}", float(each.queries))
                rows.append([str(each.rank), *([*alpha[:1], "", *beta[:1], ""] if first else alpha + beta), queries])
            caption = "Trust bias: a document clicked with probability x at rank 1 is clicked with alpha · x + beta."
            yield Table(head, rows, caption=caption)

    def _verdict(self) -> str:
        curve = self.curve
        row = next(row for rank, row in reversed(curve.items()) if rank <= max(NAMED_RANK, [*curve][1]))
        interval = "" if row.low is None else f" [{row.low:.3f}, {row.high:.3f}]"
        basis = counted(self.pages, "page") if self.units is None else counted(self.units, "unit")
        sentence = (
            f"Rank {row.rank} is examined {row.examination:.3f}{interval} times as often as rank {row.relative_to}"
        )
        return f"{sentence} ({self.method}, {basis})."

    def _table(self, how: Layout) -> Table:
        by_place = {(row.method, row.rank): row for row in self.rows}
        head = ["rank", "views", "clicks", *(name for method in self.methods for name in (method, "95% interval"))]
        ranks = range(1, len(self.views) + 1)
        several = len({row.relative_to for row in self.rows if row.examination is not None}) > 1
        if several:
            head.insert(1, "relative to")
        rows: list[list[Cell | str]] = []
        for rank in ranks if how.every else ranks[:SHOWN]:
            counts = [Cell(f"{each[rank - 1]:,}", float(each[rank - 1])) for each in (self.views, self.clicks)]
            estimates: list[Cell | str] = []
            for method in self.methods:
                row = by_place[method, rank]
                cells = _cells(row.examination, row.low, row.high, how)
                estimates += [cells[0], ""] if row.relative_to == rank else cells
            reference = by_place[self.method, rank].relative_to
            rows.append([str(rank), *([str(reference or how.undefined)] if several else []), *counts, *estimates])
        more = len(self.views) - len(rows)
        rest = f"… {counted(more, 'more rank')}: --format csv has all" if more else ""
        return Table(head, rows, title="examination by rank", rest=rest)

    def notes(self, shell: bool = False) -> list[str]:
        """Gaps, disagreements and trust bias, then what was left out."""
        return [*self.gaps, *self._disagreement(), *self._trust_bias(), *self.cautions, *self.remarks]

    def _disagreement(self) -> Iterator[str]:
        for one, other in dict.fromkeys((each.one, each.other) for each in self.disagreements):
            own = [each for each in self.disagreements if (each.one, each.other) == (one, other)]
            p = min(each.p for each in own)
            where = in_words([each.rank for each in own])
            disagree = f"{one} and {other} disagree by more than {MARGIN:.0%} at {where}"
            yield f"{disagree} (smallest p = {p:.2g}, Holm); {one} assumes less"

    def _trust_bias(self) -> Iterator[str]:
        ranks = [each.rank for each in self.trust if each.rank > 1]
        p = correct([each.p for each in self.trust if each.rank > 1]).tolist() if ranks else []
        biased = [rank for rank, each in zip(ranks, p, strict=True) if each < self.alpha]
        if biased:
            yield (
                f"trust bias at {in_words(biased)}: beta differs from 0 (Holm), so one examination does not fit all "
                "documents; correct clicks with alpha and beta"
            )

    def records(self, how: Layout) -> Iterator[Sequence[Any]]:
        yield COLUMNS
        for row in self.rows:
            yield self._record(row)

    def file_rows(self) -> Iterator[Sequence[Any]]:
        """A head and a row for each rank, by the method of the answer; ranks that are not on its curve are empty.

        Ranks have errors in common, since all are relative to one rank. So each row has its covariances with the others.
        """
        curve = self.curve
        known = bool(np.isfinite(self.covariance).all())
        yield [*COLUMNS, COVARIANCES]
        for rank in range(1, len(self.views) + 1):
            row = curve.get(rank) or RankExamination(self.method, rank, None, None, None, None)
            with_others = self.covariance[rank - 1].tolist() if known and rank in curve else []
            shared = [each if other in curve else 0.0 for other, each in enumerate(with_others, 1)]
            yield [
                *("" if value is None else value for value in self._record(row)),
                " ".join(f"{x:.8g}" for x in shared),
            ]

    def _record(self, row: RankExamination) -> list[Any]:
        affine = next(([each.alpha, each.beta] for each in self.trust if each.rank == row.rank), [None, None])
        return [row.rank, row.examination, row.low, row.high, row.method, row.relative_to, *affine]

    def plain(self, how: Layout) -> dict[str, Any]:
        facts = ("method", "methods", "pages", "units", "alpha", "comparisons")
        tables = {
            "examination": [each._asdict() for each in self.rows],
            "trust_bias": [each._asdict() for each in self.trust],
            "disagreements": [each._asdict() for each in self.disagreements],
            "views": self.views,
            "clicks": self.clicks,
        }
        values = {name: getattr(self, name) for name in facts}
        return {**plain({**values, "level": LEVEL, **tables}, how.digits), "notes": self.notes()}


def _cells(value: float | None, low: float | None, high: float | None, how: Layout) -> list[Cell | str]:
    """A number and its interval, with three decimals."""
    number = how.undefined if value is None else f"{value:.3f}"
    interval = how.undefined if low is None or high is None else f"[{low:.3f}, {high:.3f}]"
    return [Cell(number, value), interval]


def position_bias(
    log: RankedPages,
    methods: Sequence[str | PositionBiasMethod] = (),
    *,
    alpha: float = ALPHA,
    depth: int | None = None,
    remarks: Sequence[str] = (),
) -> PositionBias:
    """How often each rank of a log is examined, by methods; without names, by the usual methods that the log serves.

    Only the first `depth` ranks of each page are compared. `alpha` is the significance level of the tests for disagreements
    and for trust bias.
    """
    refuse_alpha(alpha)
    refuse_below(1, depth=depth)
    log = log if depth is None else log.top(depth)
    if log.clusters * log.ranks > MOST_CELLS:
        raise DataError(
            f"expected units times ranks of {MOST_CELLS:,} at the most, found {log.clusters:,} times {log.ranks:,}; "
            "compare fewer ranks with depth (-k)"
        )
    if not log.pages.clicked.any():
        raise DataError("the log has no clicks on its result pages, so no rank can be compared")
    selected = _methods(log, methods)
    estimates = [method.checked_estimate(log) for method in selected]
    names = tuple(map(str, selected))
    rows = tuple(row for name, each in zip(names, estimates, strict=True) for row in _rows(name, each))
    disagreements, comparisons = _disagreements(selected, estimates, alpha)
    views = np.bincount(log.rank, minlength=log.ranks)
    clicks = np.bincount(log.rank[log.pages.clicked], minlength=log.ranks)
    cautions = [*_cautions(selected, estimates, log), *([] if methods else _lacking_notes(log))]
    answer = PositionBias(
        names[0],
        names,
        rows,
        tuple(views.tolist()),
        tuple(clicks.tolist()),
        len(log.pages),
        None if log.pages.unit is None else log.clusters,
        alpha,
        tuple(_gaps(estimates[0], clicks)),
        disagreements,
        comparisons,
        tuple(trust_bias(log)),
        tuple(cautions),
        estimates[0].covariance,
        [*remarks],
    )
    if not answer.curve:
        raise DataError(f"{names[0]}: no two ranks can be compared; {'; '.join(answer.gaps)}")
    return answer


def refuse_alpha(alpha: float) -> None:
    """Raise ConventionError if a significance level is not between 0 and 1."""
    if not 0 < alpha < 1:
        raise ConventionError(f"alpha must be between 0 and 1, got {alpha:g}")


def _methods(log: RankedPages, names: Sequence[str | PositionBiasMethod]) -> list[PositionBiasMethod]:
    """The methods, the one that assumes least first; DataError if the log serves none."""
    selected = [POSITION_BIAS_METHODS.named(name) for name in names]
    if not selected:
        usual = [cls() for cls in POSITION_BIAS_METHODS.values() if cls.usual]
        selected = [method for method in usual if not method.obstacle(log)]
        if not selected:
            raise DataError(f"{ONE_RANKER}; every document was seen at one rank only")
    return sorted({str(method): method for method in selected}.values(), key=lambda method: method.trust)


def _lacking_notes(log: RankedPages) -> list[str]:
    """A sentence if chance decided no rank, so that only EM is left."""
    usual = [cls() for cls in POSITION_BIAS_METHODS.values() if cls.usual]
    if any(method.randomised and not method.obstacle(log) for method in usual):
        return []
    return ["chance decided no rank of this log: em trusts its model to tell rank and relevance apart; an A/B test, "
            "interleaving or swaps would test it"]  # fmt: skip


def _rows(method: str, estimate: RateRatios) -> Iterator[RankExamination]:
    """The examination of each rank with its interval."""
    from scipy.special import ndtri  # type: ignore[import-untyped, unused-ignore]

    reach = float(ndtri((1 + LEVEL) / 2))
    error = estimate.error
    for place, (log, reference) in enumerate(zip(estimate.log.tolist(), estimate.reference.tolist(), strict=True)):
        if reference < 0 or not math.isfinite(log):
            yield RankExamination(method, place + 1, None, None, None, None)
            continue
        half = reach * float(error[place])
        low, high = (None, None) if math.isnan(half) else (math.exp(log - half), math.exp(min(log + half, LARGEST_LOG)))
        if reference == place:
            low = high = 1.0
        yield RankExamination(method, place + 1, reference + 1, math.exp(log), low, high)


def _disagreements(
    methods: Sequence[PositionBiasMethod], estimates: Sequence[RateRatios], alpha: float
) -> tuple[tuple[MethodDisagreement, ...], int]:
    """The ranks at which methods with different evidence differ by more than the margin, and the number of comparisons."""
    from scipy.special import ndtr

    tests: list[MethodDisagreement] = []
    for (one, first), (other, second) in combinations(zip(methods, estimates, strict=True), 2):
        if one.evidence == other.evidence:
            continue
        difference = first.log - second.log
        error = np.sqrt(np.square(first.influence - second.influence).sum(axis=0))
        same = (first.reference == second.reference) & (first.reference >= 0) & (error > 0)
        for place in np.flatnonzero(same & np.isfinite(difference) & np.isfinite(error)).tolist():
            beyond = max(float(abs(difference[place])) - math.log1p(MARGIN), 0.0)
            p = 2 * float(ndtr(-beyond / error[place]))
            tests.append(MethodDisagreement(place + 1, str(one), str(other), p))
    corrected = correct([each.p for each in tests]).tolist() if tests else []
    significant = (each._replace(p=p) for each, p in zip(tests, corrected, strict=True) if p < alpha)
    return tuple(significant), len(tests)


def _cautions(
    methods: Sequence[PositionBiasMethod], estimates: Sequence[RateRatios], log: RankedPages
) -> Iterator[str]:
    """Sentences on estimates without an interval."""
    for method, estimate in zip(methods, estimates, strict=True):
        if np.isnan(estimate.influence).any():
            views = log.compared.sum() / len(np.unique(log.pages.pair[log.compared]))
            yield (
                f"{method} has no interval: {views:.1f} views per pair of query and document are too few; its estimate is "
                "biased"
            )


def _gaps(estimate: RateRatios, clicks: Numbers) -> Iterator[str]:
    """Sentences on ranks that are not connected."""
    without = [place + 1 for place in np.flatnonzero(clicks == 0).tolist()]
    if without:
        yield f"{in_words(without)} {'has' if len(without) == 1 else 'have'} no clicks"
    places = [place for place in range(len(clicks)) if clicks[place]]
    seen = _grouped(places, [int(each) if each >= 0 else -place - 1 for place, each in enumerate(estimate.seen)])
    if len(seen) > 1:
        yield f"{_named_parts(seen)} are not connected: no document was seen at {'both' if len(seen) == 2 else 'two of them'}"
    for ranks in seen:
        parts = _grouped([rank - 1 for rank in ranks], [
            int(each) if each >= 0 else -place - 1 for place, each in enumerate(estimate.reference)
        ])  # fmt: skip
        if len(parts) > 1:
            yield f"{_named_parts(parts)} are not connected: too few clicks on documents that were seen at both"


def _grouped(places: Sequence[int], groups: Sequence[int]) -> list[list[int]]:
    """The ranks of each group, in order."""
    ranks: dict[int, list[int]] = {}
    for place in places:
        ranks.setdefault(groups[place], []).append(place + 1)
    return list(ranks.values())


def _named_parts(groups: Sequence[Sequence[int]]) -> str:
    *others, last = (in_words(group) for group in groups)
    return f"{', '.join(others)} and {last}"


def in_words(ranks: Sequence[int]) -> str:
    """Ranks in words.

    >>> in_words([1, 2, 3, 7]), in_words([4])
    ('ranks 1–3 and 7', 'rank 4')
    """
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    texts = [f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    listed = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
    return f"rank{'s' if len(ranks) > 1 else ''} {listed}"


# trust bias

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
