"""Inter-annotator agreement: coefficients by name, with intervals over clusters or items, and why one may not exist.

One class is one coefficient. It reads only patterns (the distinct ways in which items were labelled) and the number of
items of each pattern. All items but those of a cluster are one row of such numbers, and so is a resample of items; one
call computes a coefficient for all rows. So intervals cost about as much for a hundred thousand items as for a hundred.

A coefficient that cannot be computed (one rater, no item with two labels, one label only) is NaN, with a reason in
words.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import Choice, Parameter, number_text, refuse_below
from cranfield.base.registry import Registry
from cranfield.stats.interval_limits import above, below
from cranfield.stats.jackknife import jackknife
from cranfield.stats.method import StatisticalMethod
from cranfield.stats.ratings import Labels as Labels  # also to be imported from here
from cranfield.stats.ratings import Scale, encode, two_columns

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from cranfield.stats.ties import Bools, Floats, Ints

RESAMPLES = 1_000
FEW_ITEMS = 50  # with fewer items, intervals cover less often than their level, also over few clusters
MANY_PATTERNS = 2_000  # with more patterns the acceleration is nearly 0, and the jackknife is costly
BLOCK = 2**22  # numbers of a block of resamples: 32 MB
NEAR = 1e-12  # smaller differences from 1 or 0 are rounding


@dataclass(frozen=True)
class Patterns:
    """The distinct ways in which items were labelled, one row each: how often each label was given.

    If labels come from two sides (such as a person and all others), `counts` are the shares of labels on one side and
    `other` those on the other.
    """

    times: Floats  # how many items have it
    counts: Floats
    other: Floats | None = None
    of_item: Ints | None = None  # the row of each item; -1 if the coefficient ignores the item

    @property
    def sizes(self) -> Floats:
        """How many labels an item of each pattern has."""
        return np.asarray(self.counts.sum(axis=1), np.float64)

    @property
    def labels(self) -> int:
        """How many labels there are in all."""
        one = self.times @ self.counts.sum(axis=1)
        return round(float(one if self.other is None else one + self.times @ self.other.sum(axis=1)))

    @classmethod
    def of(cls, labelled: Bools, one: Floats | Ints, other: Floats | None = None) -> Patterns:
        """Patterns from one row of counts, or of shares on each of two sides, per `labelled` item."""
        first, times, code = distinct_rows(one if other is None else np.hstack([one, other]))
        of_item = np.full(len(labelled), -1)
        of_item[labelled] = code
        return cls(times, one[first].astype(np.float64), None if other is None else other[first], of_item)

    def without_each(self, cluster: Ints, number: int) -> Iterator[Floats]:
        """The number of items per pattern without those of each cluster, one row per cluster, in blocks of rows.

        `cluster` has the code of each item's cluster, from 0 to below `number`.
        """
        assert self.of_item is not None
        labelled, kinds = self.of_item >= 0, len(self.times)
        order = np.argsort(cluster[labelled], kind="stable")
        codes, pattern = cluster[labelled][order], self.of_item[labelled][order]
        block = max(1, BLOCK // kinds)
        for start in range(0, number, block):
            rows = min(block, number - start)
            here = slice(*np.searchsorted(codes, [start, start + rows]))
            cell = (codes[here] - start) * kinds + pattern[here]
            yield self.times - np.bincount(cell, minlength=rows * kinds).reshape(rows, kinds)

    def resamples(self, number: int, rng: np.random.Generator) -> Iterator[Floats]:
        """The number of items per pattern in each resample, one row per resample, in blocks of rows."""
        items, kinds = int(self.times.sum()), len(self.times)
        few = kinds * 8 < items  # a binomial draw costs about eight of whole numbers
        block = max(1, BLOCK // (kinds if few else items))
        pattern = None if few else np.repeat(np.arange(kinds), self.times.astype(np.int64))
        for start in range(0, number, block):
            rows = min(block, number - start)
            if pattern is None:
                yield rng.multinomial(items, self.times / items, rows).astype(np.float64)
            else:
                cells = pattern[rng.integers(0, items, (rows, items))] + kinds * np.arange(rows)[:, None]
                yield np.bincount(cells.ravel(), minlength=rows * kinds).reshape(rows, kinds).astype(np.float64)


PATTERNS: WeakKeyDictionary[Labels, dict[int, Patterns]] = WeakKeyDictionary()


def _patterns_of(labels: Labels, least: int) -> Patterns:
    """The patterns of items with so many labels; all coefficients of the same labels share them."""
    known = PATTERNS.setdefault(labels, {})
    if least not in known:
        counts = labels.counts()
        labelled = counts.sum(axis=1) >= least
        known[least] = Patterns.of(labelled, counts[labelled])
    return known[least]


def distinct_rows(rows: Any) -> tuple[Ints, Floats, Ints]:
    """The first position of each distinct row, its count, and the number of the distinct row of each row."""
    _, codes = np.unique(rows, return_inverse=True)  # NumPy sorts numbers far faster than rows
    codes = codes.reshape(rows.shape)
    base = int(codes.max(initial=0)) + 1
    if rows.shape[1] * math.log2(max(base, 2)) < 62:
        key = codes @ (base ** np.arange(rows.shape[1]))
        _, first, code, times = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    else:
        _, first, code, times = np.unique(codes, axis=0, return_index=True, return_inverse=True, return_counts=True)
    return first, times.astype(np.float64), code.ravel()


@dataclass(frozen=True)
class Agreement:
    """The value of a coefficient with its interval."""

    coefficient: str
    """The name with its parameters, as a user types it."""
    value: float
    """NaN if the coefficient is undefined; `reason` then says why."""
    low: float = math.nan
    high: float = math.nan
    """The interval over clusters, or over items; NaN if it cannot be computed, and `doubts` say why."""
    level: float = 0.95
    observed: float = math.nan
    """The observed agreement; for Krippendorff's alpha, the observed disagreement."""
    expected: float = math.nan
    """The agreement (or disagreement) expected by chance."""
    rates: tuple[tuple[float, ...], ...] = ()
    """The share of each label, with equal weight for each item: one row for each of two raters, or one row for all."""
    items: int = 0
    """The number of items with two labels or more, which agreement is computed from."""
    labels: int = 0
    """The number of labels that the coefficient uses."""
    repeated: int = 0
    """Labels left out because their rater had labelled the item before."""
    clusters: int = 0
    """The number of clusters that were left out in turn for the interval; 0 if the interval is over items."""
    resamples: int = 0
    """The number of resamples of items; 0 if the interval is over clusters."""
    reason: str = ""
    doubts: tuple[str, ...] = ()
    """Why the interval is missing or less reliable: few clusters or items, no disagreement, no value without a cluster."""

    @property
    def defined(self) -> bool:
        """Whether there is a value."""
        return not self.reason


class CoefficientValues(NamedTuple):
    """One entry per resample: the coefficient, the observed agreement and the agreement expected by chance."""

    value: Floats
    observed: Floats
    expected: Floats


def over_chance(observed: Floats, expected: Floats) -> CoefficientValues:
    """(observed − expected) / (1 − expected); NaN if the expected agreement is 1."""
    room = 1 - expected
    value = np.divide(observed - expected, room, out=np.full(len(room), np.nan), where=room > NEAR)
    return CoefficientValues(value, observed, expected)


class LabelDistances(Parameter[Any]):
    """How far two labels are apart: a word, or a square table of disagreements with 0 on its diagonal.

    Typed as rows of numbers with slashes between: `0 1 3/1 0 6/3 6 0`.
    """

    WORDS = ("nominal", "linear", "quadratic", "ordinal")

    @property
    def range(self) -> str:
        return " | ".join(self.WORDS) + ", or a table of disagreements: rows of numbers, 0 on the diagonal"

    def read(self, raw: Any) -> Any:
        if isinstance(raw, str) and raw in self.WORDS:
            return raw
        rows = [row.split() for row in raw.split("/")] if isinstance(raw, str) else raw
        table = np.array(rows, np.float64)
        square = table.ndim == 2 and table.shape[0] == table.shape[1]
        if not (square and table.any() and (table >= 0).all() and np.isfinite(table).all()) or np.diag(table).any():
            raise ValueError
        return tuple(map(tuple, table.tolist()))

    def show(self, value: Any) -> str:
        return value if isinstance(value, str) else "/".join(" ".join(map(number_text, row)) for row in value)


def alike(weights: Any, scale: Scale) -> Floats:
    """How far two labels agree under these weights, from 0 to 1: a square matrix, one row per label.

    Linear and quadratic weights use the labels' numbers, or the positions of names on the scale.

    >>> alike("linear", Scale((0, 1, 2))).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
    """
    if not isinstance(weights, str):
        apart = np.array(weights)
        if len(apart) != len(scale):
            raise ConventionError(f"weights: expected {len(scale)} rows, one a label of the scale, found {len(apart)}")
    elif weights == "nominal":
        apart = 1 - np.eye(len(scale))
    elif weights == "ordinal":  # pairs of labels from one to the other: Gwet (2014)
        steps = np.abs(np.subtract.outer(np.arange(len(scale)), np.arange(len(scale))))
        apart = steps * (steps + 1) / 2
    else:
        gap = np.abs(np.subtract.outer(scale.places, scale.places))
        apart = gap if weights == "linear" else gap**2
    return np.asarray(1 - apart / max(apart.max(initial=0.0), NEAR), np.float64)


class AgreementCoefficient(StatisticalMethod, ABC):
    """A coefficient of agreement: its computation, its description and its properties."""

    registry: ClassVar[Registry[AgreementCoefficient]] = Registry(
        "coefficient", "agreement_coefficients", refusal=DataError
    )
    facts = ("corrected", "two_raters", "counts_scale")

    corrected: ClassVar[bool] = True  # for chance: independent raters agree to about 0
    two_raters: ClassVar[bool] = False  # it distinguishes two raters, and compares only two
    counts_scale: ClassVar[bool] = False  # unused labels of the scale change the value
    lowest: ClassVar[float] = -1.0  # the lowest possible value; the highest is 1
    forms: ClassVar[tuple[str, ...]] = ("",)  # the parameters of each form in a list of all coefficients

    @abstractmethod
    def figures(self, patterns: Patterns, draws: Floats, scale: Scale) -> CoefficientValues:
        """The coefficient for each row of `draws`: how many items of each pattern there are."""

    def patterns(self, labels: Labels) -> Patterns:
        """The patterns of labels without repeats; by default of items with two labels or more."""
        return _patterns_of(labels, 2)

    def undefined(self, labels: Labels) -> str:
        """Why the coefficient is undefined for these labels; empty if it is defined."""
        if len(labels.raters) < 2:
            return "no labels" if not len(labels) else f"one rater only, {labels.raters[0]}"
        if np.bincount(labels.item).max() < 2:
            return "no item has labels of two raters"
        return ""

    def without_value(self, patterns: Patterns, scale: Scale) -> str:
        """Why the value is NaN although there are labels to compare: the agreement expected by chance is 1."""
        used = np.flatnonzero(_rates(patterns, patterns.times[None])[0].sum(axis=0))
        if len(used) == 1:
            return f"one label only, {scale.names[used[0]]}: chance would agree as well"
        return "the weights tell no two of the labels given apart: chance would agree as well"


def coefficient(name: str) -> AgreementCoefficient:
    """A coefficient by its name or an alias, with the parameters that were typed.

    >>> str(coefficient("kappa(weights=linear)")), coefficient("alpha").title
    ('cohen(weights=linear)', "Krippendorff's alpha")
    """
    return AgreementCoefficient.named(name)


def title_of(name: str) -> str:
    """A coefficient in words.

    >>> title_of("krippendorff(metric=ordinal)"), title_of("fleiss")
    ("Krippendorff's alpha (ordinal)", "Fleiss' kappa")
    """
    title, values = coefficient(name).title, re.findall(r"=([^,()]+)", name)
    return f"{title} ({', '.join(values)})" if values else title


COEFFICIENTS = AgreementCoefficient.registry
LOWEST_OF_WORD = (
    (0.8, "high"),
    (0.667, "moderate"),
    (-math.inf, "low"),
)  # Krippendorff (2004): reliable, tentative, neither


def agreement_in_words(one: Agreement) -> str:
    """How good an agreement is, by Krippendorff's limits; the interval decides what is better than chance.

    Empty for a coefficient without a value, and for one that is not corrected for chance.

    >>> agreement_in_words(Agreement("krippendorff", 0.85, 0.82, 0.88))
    'high'
    >>> agreement_in_words(Agreement("krippendorff", 0.3, -0.1, 0.5))
    'not shown to be better than chance'
    """
    if not one.defined or not coefficient(one.coefficient).corrected:
        return ""
    if below(one.low, one.high):
        return "worse than chance"
    if one.value <= 0:
        return "no better than chance"
    if not (math.isnan(one.low) or above(one.low, one.high)):
        return "not shown to be better than chance"
    word, worst = _word_of(one.value), _word_of(one.value if math.isnan(one.low) else one.low)
    if word == "low":
        return word if math.isnan(one.low) else "low, but better than chance"
    return word if word == worst else f"{word}, perhaps only {worst}"


def _word_of(value: float) -> str:
    return next(word for lowest, word in LOWEST_OF_WORD if value >= lowest)


def all_forms() -> list[str]:
    """All coefficients with their parameters, as a user would type them."""
    return [f"{name}({form})" if form else name for name, one in COEFFICIENTS.items() for form in one.forms]


def _rates(patterns: Patterns, draws: Floats) -> Floats:
    """The shares of labels in each resample, with equal weight for each item: resamples × sides × labels."""
    number = draws.sum(axis=1, keepdims=True)
    sides = [patterns.counts] if patterns.other is None else [patterns.counts, patterns.other]
    return np.stack([draws @ (side / side.sum(axis=1, keepdims=True)) / number for side in sides], axis=1)


def _pairs_alike(patterns: Patterns, near: Floats) -> Floats:
    """The agreement of an item's labels, averaged over its pairs of raters; 0 with one label."""
    counts, sizes = patterns.counts, patterns.sizes
    agreeing = (counts @ near * counts).sum(axis=1) - sizes
    pairs = sizes * (sizes - 1)
    return np.asarray(np.divide(agreeing, pairs, out=np.zeros(len(sizes)), where=pairs > 0), np.float64)


class Raw(AgreementCoefficient):
    """The share of pairs of raters who gave an item the same label, averaged over items; no correction for chance."""

    name = "raw"
    title = "raw agreement"
    aliases = ("percent", "observed")
    corrected = False
    lowest = 0.0

    def figures(self, patterns: Patterns, draws: Floats, scale: Scale) -> CoefficientValues:
        observed = draws @ _pairs_alike(patterns, np.eye(len(scale))) / draws.sum(axis=1)
        return CoefficientValues(observed, observed, np.full(len(draws), np.nan))


class _OfTwo(AgreementCoefficient):
    two_raters = True

    def undefined(self, labels: Labels) -> str:
        if len(labels.raters) > 2:
            return f"it compares two raters, and there are {len(labels.raters)}: take pairs, or fleiss or krippendorff"
        return super().undefined(labels)

    def patterns(self, labels: Labels) -> Patterns:
        eye = np.eye(len(labels.scale))
        one, other = (eye[column] for column in two_columns(labels))
        return Patterns.of(np.bincount(labels.item, minlength=len(labels.items)) == 2, one, other)


class Cohen(_OfTwo):
    """Agreement of two raters beyond the agreement by chance that follows from each rater's own rates of labels.

    Weights count a near miss in part: by the gap between labels (linear), its square, or a table of disagreements. It
    is low if one label prevails, however often the two agree.
    """

    name = "cohen"
    title = "Cohen's kappa"
    short = "kappa"
    reference = "Cohen (1960); weighted: Cohen (1968)"
    aliases = ("kappa", "cohen-kappa", "weighted-kappa")
    forms = ("", "weights=linear", "weights=quadratic")
    weights = LabelDistances("nominal", "how far labels are apart")

    def figures(self, patterns: Patterns, draws: Floats, scale: Scale) -> CoefficientValues:
        near = alike(self.weights, scale)
        assert patterns.other is not None
        observed = draws @ (patterns.counts @ near * patterns.other).sum(axis=1) / draws.sum(axis=1)
        one, other = np.moveaxis(_rates(patterns, draws), 1, 0)
        return over_chance(observed, (one @ near * other).sum(axis=1))


class Scott(_OfTwo):
    """Agreement of two raters beyond the agreement by chance that follows from the rates of labels of both together."""

    name = "scott"
    title = "Scott's pi"
    short = "pi"
    reference = "Scott (1955)"
    aliases = ("pi", "scott-pi")

    def figures(self, patterns: Patterns, draws: Floats, scale: Scale) -> CoefficientValues:
        assert patterns.other is not None
        observed = draws @ (patterns.counts * patterns.other).sum(axis=1) / draws.sum(axis=1)
        both = _rates(patterns, draws).mean(axis=1)
        return over_chance(observed, (both**2).sum(axis=1))


class Fleiss(AgreementCoefficient):
    """Agreement of any number of raters (who may differ between items) beyond chance, given the rates of all labels.

    Only items with two labels or more count, each with the same weight, however many labels it has.
    """

    name = "fleiss"
    title = "Fleiss' kappa"
    reference = "Fleiss (1971)"
    aliases = ("fleiss-kappa",)

    def figures(self, patterns: Patterns, draws: Floats, scale: Scale) -> CoefficientValues:
        observed = draws @ _pairs_alike(patterns, np.eye(len(scale))) / draws.sum(axis=1)
        rates = _rates(patterns, draws)[:, 0]
        return over_chance(observed, (rates**2).sum(axis=1))


class _Gwet(AgreementCoefficient):
    counts_scale = True  # chance spreads over the whole scale

    def patterns(self, labels: Labels) -> Patterns:
        """All items: an item with one label shows nothing about agreement, but shows how common labels are."""
        return _patterns_of(labels, 1)

    def _figures(self, patterns: Patterns, draws: Floats, near: Floats) -> CoefficientValues:
        several = (patterns.sizes >= 2).astype(np.float64)
        items = draws @ several
        observed = np.divide(
            draws @ (_pairs_alike(patterns, near) * several), items, out=np.full(len(draws), np.nan), where=items > 0
        )
        rates, labels = _rates(patterns, draws)[:, 0], len(near)
        spread = near.sum() / (labels * (labels - 1)) if labels > 1 else math.inf
        with np.errstate(invalid="ignore"):
            return over_chance(observed, np.nan_to_num(spread * (rates * (1 - rates)).sum(axis=1), nan=1.0))

    def without_value(self, patterns: Patterns, scale: Scale) -> str:
        return f"the scale has one label only, {scale.names[0]}"


class AC1(_Gwet):
    """Agreement beyond chance, if raters guess only on items that are hard to label; high if one label prevails.

    The rates of labels come from all items, including those with one label.
    """

    name = "ac1"
    title = "Gwet's AC1"
    short = "AC1"
    reference = "Gwet (2008)"
    aliases = ("gwet", "gwet-ac1")

    def figures(self, patterns: Patterns, draws: Floats, scale: Scale) -> CoefficientValues:
        return self._figures(patterns, draws, np.eye(len(scale)))


class AC2(_Gwet):
    """AC1 with weights, which count a near miss in part."""

    name = "ac2"
    title = "Gwet's AC2"
    short = "AC2"
    reference = "Gwet (2014)"
    aliases = ("gwet-ac2",)
    weights = LabelDistances("quadratic", "how far labels are apart")

    def figures(self, patterns: Patterns, draws: Floats, scale: Scale) -> CoefficientValues:
        near = alike(self.weights, scale)
        if not np.array_equal(near, near.T):
            raise ConventionError("ac2: weights must be symmetric, as it does not tell raters apart")
        return self._figures(patterns, draws, near)


class Krippendorff(AgreementCoefficient):
    """1 minus the disagreement within items over that among all labels; any number of raters, missing labels allowed.

    The metric defines the distance of two labels: 0 or 1 (nominal), the number of labels between them (ordinal), their
    difference (interval), or its ratio to their sum (ratio). Items with one label only are left out.
    """

    name = "krippendorff"
    title = "Krippendorff's alpha"
    short = "alpha"
    reference = "Krippendorff (2011)"
    aliases = ("alpha", "krippendorff-alpha")
    forms = ("", "metric=ordinal", "metric=interval", "metric=ratio")
    metric = Choice("nominal", "how far labels are apart", "ordinal", "interval", "ratio")

    def undefined(self, labels: Labels) -> str:
        if self.metric in ("interval", "ratio"):
            if labels.scale.values is None:
                return f"the metric {self.metric} needs numbers for labels"
            if self.metric == "ratio" and (labels.scale.values < 0).any():
                return "the metric ratio needs labels of 0 or more"
        return super().undefined(labels)

    def figures(self, patterns: Patterns, draws: Floats, scale: Scale) -> CoefficientValues:
        counts, sizes = patterns.counts, patterns.sizes
        total = draws @ counts
        number = total.sum(axis=1)
        if self.metric == "ordinal":
            observed, expected = _of_ranks(patterns, draws, total)
        else:
            apart = self._apart(scale)
            observed = draws @ ((counts @ apart * counts).sum(axis=1) / (sizes - 1))
            expected = (total @ apart * total).sum(axis=1)
        observed, expected = observed / number, expected / (number * (number - 1))
        value = 1 - np.divide(observed, expected, out=np.full(len(draws), np.nan), where=expected > 0)
        return CoefficientValues(value, observed, expected)

    def _apart(self, scale: Scale) -> Floats:
        """The disagreement of two labels, for the metrics that do not depend on how common labels are."""
        if self.metric == "nominal" or scale.values is None:
            return 1 - np.eye(len(scale))
        gap = np.subtract.outer(scale.values, scale.values)
        if self.metric == "interval":
            return np.asarray(gap**2, np.float64)
        total = np.add.outer(scale.values, scale.values)
        return np.asarray(np.divide(gap, total, out=np.zeros(gap.shape), where=total > 0) ** 2, np.float64)


def _of_ranks(patterns: Patterns, draws: Floats, total: Floats) -> tuple[Floats, Floats]:
    """The ordinal metric: the squared distance between the middle ranks that two labels have among all labels given.

    Each resample has its own ranks. Σ o (r − s)² is computed as 2 Σ n r² minus the products within items.
    """
    rank = np.cumsum(total, axis=1) - total / 2
    spread = (total * rank**2).sum(axis=1)
    sums, squares = patterns.counts @ rank.T, patterns.counts @ rank.T**2
    shared = (draws.T * (sums**2 - squares) / (patterns.sizes[:, None] - 1)).sum(axis=0)
    all_spread = total.sum(axis=1) * spread
    expected = all_spread - (total * rank).sum(axis=1) ** 2
    return 2 * (spread - shared), 2 * np.where(expected > NEAR * all_spread, expected, 0.0)


# intervals


class AgreementInterval(NamedTuple):
    """The interval of a coefficient, its limitations, and the number of clusters (0 if it is over items)."""

    low: float = math.nan
    high: float = math.nan
    doubts: tuple[str, ...] = ()
    clusters: int = 0


def _no_interval(reason: str, clusters: int = 0) -> AgreementInterval:
    """An interval that could not be computed, with the reason."""
    return AgreementInterval(doubts=(f"{reason}: no interval",), clusters=clusters)


def _constant(value: float, patterns: Patterns) -> str:
    """What does not vary, so that there is no interval over clusters or items; empty if something varies."""
    if len(patterns.times) < 2:
        return "all items were labelled in the same way"
    return "no disagreement was seen" if value >= 1 - NEAR else ""


def interval_over_clusters(
    statistic: AgreementCoefficient, patterns: Patterns, scale: Scale, cluster: Ints, level: float
) -> AgreementInterval | None:
    """The interval by leaving out each cluster in turn (Tukey, 1958); None if one cluster has all items of two labels.

    `cluster` has a code for each item. The error is that of log(1 − value), whose estimates are less skewed, and t-distributed
    with one degree of freedom less than there are clusters that count (`_clusters_that_count`).
    """
    assert patterns.of_item is not None
    labelled = patterns.of_item >= 0
    several = np.append(patterns_of_several(patterns), False)[patterns.of_item]
    code = np.zeros(len(cluster), np.int64)
    names, code[labelled] = np.unique(cluster[labelled], return_inverse=True)
    items = np.bincount(code[several], minlength=len(names))
    clusters = int(np.count_nonzero(items))
    if clusters < 2:
        return None
    value = float(statistic.figures(patterns, patterns.times[None], scale).value[0])
    constant = _constant(value, patterns)
    if constant:
        return _no_interval(constant, clusters)
    rows = patterns.without_each(code, len(names))
    without = np.concatenate([statistic.figures(patterns, draws, scale).value for draws in rows])
    if np.isnan(without).any():
        return _no_interval("without one of the clusters there is no value", clusters)
    if without.max() >= 1 - NEAR:
        return _no_interval("one cluster alone has all disagreement", clusters)
    shortfall = np.log1p(-without)
    estimate = jackknife(np.log1p(-value), shortfall, max(_clusters_that_count(shortfall, items) - 1, 1.0), log=True)
    if not estimate.error > NEAR:
        return _no_interval("all clusters agree alike", clusters)
    high, low = (-float(end) for end in estimate.interval(level))
    return AgreementInterval(max(low, min(statistic.lowest, value)), high, _few_items(int(items.sum())), clusters)


def _clusters_that_count(figures: Floats, items: Ints) -> float:
    """The effective number of clusters: this many of equal weight would estimate the error as well.

    It is below the number of clusters if some clusters have most of the items (Kish, 1965), or if a few clusters cause
    most of the error. The variance of a variance depends on the fourth moment of the clusters' contributions, which is
    3 times the square of the second for normal ones.
    """
    by_items = items.sum() ** 2 / np.square(items, dtype=np.float64).sum()
    squares = np.square(figures - figures.mean())
    by_error = 3 * squares.sum() ** 2 / max(np.square(squares).sum(), np.finfo(np.float64).tiny)
    return float(min(by_items, by_error))


def interval_of(
    statistic: AgreementCoefficient,
    patterns: Patterns,
    scale: Scale,
    resamples: int,
    level: float,
    rng: np.random.Generator,
) -> AgreementInterval:
    """The BCa bootstrap interval (bias-corrected and accelerated; Efron, 1987) over items, treated as independent."""
    value = float(statistic.figures(patterns, patterns.times[None], scale).value[0])
    constant = _constant(value, patterns)
    if constant:
        return _no_interval(constant)
    blocks = [statistic.figures(patterns, draws, scale).value for draws in patterns.resamples(resamples, rng)]
    values = np.concatenate(blocks)
    finite = np.sort(values[~np.isnan(values)])
    doubts = _few_items(int(patterns.times[patterns_of_several(patterns)].sum()))
    if len(finite) < resamples:
        doubts += (f"{resamples - len(finite):,} of {resamples:,} resamples have no value",)
    if len(finite) < 2:
        return AgreementInterval(doubts=doubts)
    tails = _corrected_tails(value, finite, _acceleration(statistic, patterns, scale), level)
    low, high = np.quantile(finite, tails)
    return AgreementInterval(float(low), float(high), doubts)


def patterns_of_several(patterns: Patterns) -> Bools:
    """Whether each pattern has two labels or more."""
    return np.ones(len(patterns.times), np.bool_) if patterns.other is not None else patterns.sizes >= 2


def _few_items(items: int) -> tuple[str, ...]:
    few = f"{items} items: with fewer than {FEW_ITEMS}, an interval contains the true value less often than its level says"
    return (few,) if items < FEW_ITEMS else ()


def _acceleration(statistic: AgreementCoefficient, patterns: Patterns, scale: Scale) -> float:
    """The acceleration of BCa: how the spread changes with the value, from the values without each item in turn."""
    kinds = len(patterns.times)
    if kinds > MANY_PATTERNS:
        return 0.0
    without = statistic.figures(patterns, patterns.times - np.eye(kinds), scale).value
    some = ~np.isnan(without)
    times, values = patterns.times[some], without[some]
    if not len(values):
        return 0.0
    gap = np.average(values, weights=times) - values
    spread = float(times @ gap**2)
    return float(times @ gap**3) / (6 * spread**1.5) if spread > 0 else 0.0


def _corrected_tails(value: float, resampled: Floats, acceleration: float, level: float) -> Floats:
    """The shares of resamples that the interval leaves below each of its ends."""
    from scipy.special import ndtr, ndtri  # type: ignore[import-untyped, unused-ignore]

    number = len(resampled)
    below = (np.count_nonzero(resampled < value - NEAR) + np.count_nonzero(resampled <= value + NEAR)) / (2 * number)
    bias = ndtri(min(max(below, 1 / (number + 1)), number / (number + 1)))
    ends = bias + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    return np.asarray(ndtr(bias + ends / (1 - acceleration * ends)), np.float64)


# the questions


def agreement(
    labels: Labels,
    statistic: str | AgreementCoefficient = "krippendorff",
    *,
    cluster_of: Mapping[Any, Hashable] | Ints | None = None,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Agreement:
    """How far raters agree by one coefficient, with an interval; without one if `resamples` is 0.

    With `cluster_of`, the cluster of each item (by its name, or as numbers in the order of `labels.items`), the interval
    comes from leaving out each cluster in turn. Without it, or with one cluster, it comes from resampling items, as if
    these were independent. If a rater labelled an item several times, the first label counts.

    >>> found = agreement(Labels.of_confusion([[20, 5], [10, 15]]), "cohen")
    >>> round(found.value, 3), found.observed, found.expected, found.rates
    (0.4, 0.7, 0.5, ((0.5, 0.5), (0.6, 0.4)))
    >>> agreement(Labels.of_confusion([[20, 0], [0, 0]]), "cohen").reason
    'one label only, 0: chance would agree as well'
    """
    one = coefficient(statistic) if isinstance(statistic, str) else statistic
    once = labels.once()
    reason = one.undefined(once)
    if reason:
        return Agreement(str(one), math.nan, level=level, repeated=labels.repeated, reason=reason)
    answer = _measured(one, one.patterns(once), once, cluster_of, resamples, level, rng)
    return replace(answer, repeated=labels.repeated)


def _measured(
    one: AgreementCoefficient,
    patterns: Patterns,
    labels: Labels,
    cluster_of: Mapping[Any, Hashable] | Ints | None,
    resamples: int,
    level: float,
    rng: np.random.Generator | None,
) -> Agreement:
    """A coefficient of the patterns of labels, with its interval."""
    scale = labels.scale
    if not 0 < level < 1:
        raise DataError(f"level must be between 0 and 1, got {level}")
    refuse_below(0, resamples=resamples)
    figures = one.figures(patterns, patterns.times[None], scale)
    value = float(figures.value[0])
    result = Agreement(
        str(one),
        value,
        level=level,
        observed=float(figures.observed[0]),
        expected=float(figures.expected[0]),
        rates=tuple(map(tuple, _rates(patterns, patterns.times[None])[0].tolist())),
        items=int(patterns.times[patterns_of_several(patterns)].sum()),
        labels=patterns.labels,
    )
    if math.isnan(value):
        return replace(result, reason=one.without_value(patterns, scale))
    if not resamples:
        return result
    if cluster_of is not None:
        if not isinstance(cluster_of, np.ndarray):
            _, cluster_of = encode([cluster_of[item] for item in labels.items])
        interval = interval_over_clusters(one, patterns, scale, cluster_of, level)
        if interval is not None:
            return replace(result, **interval._asdict())
    source = np.random.default_rng(0) if rng is None else rng
    interval = interval_of(one, patterns, scale, resamples, level, source)
    return replace(result, **interval._asdict(), resamples=resamples)


def by_pair(
    labels: Labels, statistic: str | AgreementCoefficient = "cohen", **how: Any
) -> dict[tuple[Hashable, Hashable], Agreement]:
    """The agreement of every two raters who have an item in common; `how` has the options of `agreement`.

    >>> found = by_pair(Labels.of_table([[0, 1, 1], [0, 1, 0], [1, 0, None]]), "raw", resamples=0)
    >>> {pair: round(one.value, 2) for pair, one in found.items()}
    {(0, 1): 0.67, (0, 2): 0.0, (1, 2): 0.0}
    """
    pairs = [(one, other) for one in range(len(labels.raters)) for other in _met(labels, one) if other > one]
    return {
        (labels.raters[one], labels.raters[other]): agreement(labels.pair(one, other), statistic, **how)
        for one, other in pairs
    }


def _met(labels: Labels, rater: int) -> list[int]:
    """The raters who share an item with this one."""
    shared = np.isin(labels.item, labels.item[labels.rater == rater])
    return [int(other) for other in np.unique(labels.rater[shared]) if other != rater]


def by_group(
    labels: Labels, group_of: Mapping[Any, Hashable], statistic: str | AgreementCoefficient = "krippendorff", **how: Any
) -> dict[Hashable, Agreement]:
    """The agreement within each group of items, on the common scale."""
    return {name: agreement(part, statistic, **how) for name, part in labels.groups(group_of).items()}


def against_the_rest(
    labels: Labels, statistic: str | AgreementCoefficient = "cohen", **how: Any
) -> dict[Hashable, Agreement]:
    """Each rater against all others, by a coefficient of two raters; the others' labels of an item share its weight.

    >>> found = against_the_rest(Labels.of_table([[0, 1, 1, 0], [0, 1, 0, 0], [1, 0, 1, 1]]), resamples=0)
    >>> {rater: round(one.observed, 3) for rater, one in found.items()}  # raw agreement
    {0: 0.5, 1: 0.375, 2: 0.125}
    """
    one = coefficient(statistic) if isinstance(statistic, str) else statistic
    if not one.two_raters:
        fitting = ", ".join(name for name, each in COEFFICIENTS.items() if each.two_raters)
        raise ConventionError(f"{one.name} does not tell two sides apart: take {fitting}, or leave each rater out")
    once = labels.once()
    return {name: _against(once, code, one, **how) for code, name in enumerate(once.raters)}


def _against(labels: Labels, rater: int, one: AgreementCoefficient, **how: Any) -> Agreement:
    mine = labels.rater == rater
    items, own = labels.item[mine], labels.label[mine]
    others = labels.counts()[items].astype(np.float64)
    others[np.arange(len(own)), own] -= 1
    several = others.sum(axis=1) > 0
    if not several.any():
        reason = "nobody else labelled its items" if len(labels.raters) > 1 else "there is no other rater"
        return Agreement(str(one), math.nan, level=how.get("level", 0.95), reason=reason)
    shares = others[several] / others[several].sum(axis=1, keepdims=True)
    labelled = np.zeros(len(labels.items), np.bool_)
    labelled[items[several]] = True
    patterns = Patterns.of(labelled, np.eye(len(labels.scale))[own[several]], shares)
    settings = {"cluster_of": None, "resamples": RESAMPLES, "level": 0.95, "rng": None, **how}
    return _measured(one, patterns, labels, **settings)


def without_each(
    labels: Labels, statistic: str | AgreementCoefficient = "krippendorff", **how: Any
) -> dict[Hashable, Agreement]:
    """The agreement without each rater in turn. If it rises, that rater differs from the others."""
    return {name: agreement(labels.without(name), statistic, **how) for name in labels.raters}


def with_oneself(
    labels: Labels, statistic: str | AgreementCoefficient = "krippendorff", **how: Any
) -> dict[Hashable, Agreement]:
    """Intra-rater agreement: each rater's repeated labels of the same items. Raters without repeats are left out.

    >>> labels = Labels.of(["ann"] * 5, ["x", "x", "y", "y", "z"], [0, 0, 1, 0, 1])
    >>> with_oneself(labels, "raw", resamples=0)["ann"].value
    0.5
    """
    occasions, rater = labels.repeats()
    cluster_of = how.pop("cluster_of", None)
    clusters = None if cluster_of is None else {unit: cluster_of[unit[1]] for unit in occasions.items}  # type: ignore[index]
    parts = {labels.raters[code]: occasions.only(rater[occasions.item] == code) for code in np.unique(rater)}
    return {name: agreement(part, statistic, cluster_of=clusters, **how) for name, part in parts.items()}


class _OfLabel(AgreementCoefficient):
    """Specific agreement: among pairs in which one rater gave a label, the share in which the other gave it too."""

    corrected = False
    lowest = 0.0
    title = "specific agreement"

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code

    def figures(self, patterns: Patterns, draws: Floats, scale: Scale) -> CoefficientValues:
        counts = patterns.counts[:, self.code]
        both, one = draws @ (counts * (counts - 1)), draws @ (counts * (patterns.sizes - 1))
        value = np.divide(both, one, out=np.full(len(draws), np.nan), where=one > 0)
        return CoefficientValues(value, value, np.full(len(draws), np.nan))

    def without_value(self, patterns: Patterns, scale: Scale) -> str:
        return f"nobody gave the label {scale.names[self.code]} to an item with two labels"

    def __str__(self) -> str:
        return self.title


def by_label(labels: Labels, **how: Any) -> dict[Hashable, Agreement]:
    """The specific agreement on each label: among pairs in which one rater gave it, the share in which both did.

    >>> found = by_label(Labels.of_confusion([[118, 5], [2, 0]]), resamples=0)
    >>> {label: round(one.value, 3) for label, one in found.items()}  # 2 × 118 / (123 + 120), and none of 7
    {0: 0.971, 1: 0.0}
    """
    return {name: agreement(labels, _OfLabel(code), **how) for code, name in enumerate(labels.scale.names)}


def agreement_of_pairs(statistic: AgreementCoefficient, times: Floats, scale: Scale) -> Floats:
    """A coefficient for each row of `times`: how often one side gave a label when the other gave one.

    >>> agreement_of_pairs(coefficient("cohen"), np.array([[20.0, 5.0, 10.0, 15.0]]), Scale((0, 1))).round(3).tolist()
    [0.4]
    """
    labels = np.eye(len(scale))
    one, other = np.repeat(labels, len(scale), axis=0), np.tile(labels, (len(scale), 1))
    every = np.ones(len(one))
    patterns = Patterns(every, one, other) if statistic.two_raters else Patterns(every, one + other)
    return statistic.figures(patterns, times, scale).value
