"""Stability of a leaderboard: under another measure, other judgments, the other half of the topics, or fewer topics.

There are five parts, each with its own table and computed from Scores alone: agreement of measures, agreement of two
sets of judgments, split halves, discriminative power with achieved significance levels, and generalisability. Rankings
have the best run first, also for measures where lower is better. AP correlation is the symmetric variant with ties
(`tau-ap-b`), because neither ranking is the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Answer, Layout, Lines, Part, Table, plain
from cranfield.base.text_layout import listed
from cranfield.comparison.correlate import coefficient
from cranfield.comparison.leaderboard import test_of_pairs
from cranfield.comparison.score_tables import Progress, comparable, upward_table
from cranfield.comparison.settings import known_names, refuse_shares
from cranfield.evaluation.scores import Scores
from cranfield.stats.correlation import COEFFICIENTS
from cranfield.stats.overlap import rbo
from cranfield.stats.reliability import (
    blocks_needed,
    d_study,
    discrimination,
    g_study,
    split_half,
    split_sizes,
    swap_rates,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cranfield.base.kernels.table import Floats

    Means = dict[str, list[tuple[str, float, float]]]  # measure → run, under one, under the other
    ByTopics = Callable[[str, Floats, Mapping[str, Any]], list[Any]]  # measure, topics × runs, settings → rows


DEFAULT_KINDS = ("tau", "tau-ap-b", "rbo")
MOST_FLIPS = 5  # pairs of runs that are named for each measure


@dataclass(frozen=True)
class RankingAgreement:
    """Two rankings of the same runs: by two measures, or by one measure under two sets of judgments."""

    first: str
    second: str
    runs: int
    values: dict[str, float]  # coefficient → value; NaN where it is undefined
    changed: int  # number of runs with another rank
    largest: int  # the largest change of rank
    moved: str  # the run with the largest change, in words
    both: int = 0  # pairs that both separate, in the same order
    one: int = 0  # pairs that only one of the two separates
    opposite: int = 0  # pairs that both separate, in opposite order
    pairs: int = 0
    flips: tuple[tuple[str, str, str], ...] = ()  # run, run, and what happened


@dataclass(frozen=True)
class Halves:
    """Split-half reliability by a measure."""

    measure: str
    kind: str
    topics: int  # in each half
    trials: int
    mean: float
    low: float
    high: float
    stepped_up: float  # Spearman–Brown, of all topics; NaN for rank correlations
    curve: tuple[tuple[int, float, float, float], ...] = ()  # topics in each set, mean, low, high
    reason: str = ""


@dataclass(frozen=True)
class Discriminative:
    """How well a measure separates runs."""

    measure: str
    test: str
    alpha: float
    power: float  # discriminative power: the share of pairs with p below alpha
    significant: int
    pairs: int
    needed: float  # every pair with a larger difference was significant
    swaps: float  # how often two halves of the topics disagree about a pair
    levels: tuple[float, ...]  # p-values, largest first: the achieved significance level curve
    reason: str = ""


@dataclass(frozen=True)
class Generalisable:
    """A G-study and a D-study by a measure."""

    measure: str
    topics: int
    runs: int
    shares: dict[str, float]  # parts of the variance: runs, topics, residual
    e_rho2: float
    e_rho2_low: float
    e_rho2_high: float
    phi: float
    phi_low: float
    phi_high: float
    target: float
    needed_e_rho2: float  # topics for the target; inf where no number reaches it
    needed_phi: float
    curve: tuple[tuple[int, float, float], ...] = ()  # topics, Eρ², Φ
    negative: tuple[str, ...] = ()  # components that came out below 0 and were set to 0


@dataclass(frozen=True)
class Stability(Answer):
    """The result of `stability`: the requested parts.

    >>> table = np.random.default_rng(1).normal([0.3, 0.4, 0.5], 0.05, (40, 3))
    >>> found = stability(Scores.from_table(table, ["a", "b", "c"]), parts="discrimination", test="t")
    >>> found.discrimination[0].power
    1.0
    """

    ascii_json: ClassVar[bool] = True

    parts: list[str]
    settings: dict[str, Any]
    measures: list[RankingAgreement] = field(default_factory=list)
    qrels: list[RankingAgreement] = field(default_factory=list)
    halves: list[Halves] = field(default_factory=list)
    discrimination: list[Discriminative] = field(default_factory=list)
    generalisability: list[Generalisable] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    means: Means = field(default_factory=dict)

    def notes(self, shell: bool = False) -> list[str]:
        rows: list[Halves | Discriminative] = [*self.halves, *self.discrimination]
        notes = [*self.remarks, *(f"{row.measure}: {row.reason}" for row in rows if row.reason)]
        for study in self.generalisability:
            if study.negative:
                negative = ", ".join(study.negative)
                notes.append(f"{study.measure}: the variance of {negative} came out below 0; it is set to 0")
        return list(dict.fromkeys(notes))

    def content(self, how: Layout) -> Iterator[Part]:
        for part in self.parts:
            table = PARTS[part].table(getattr(self, part), self.settings, how)
            if table.rows:
                yield table._replace(caption=f"{part}: {PARTS[part].question}")
                yield Lines(_flips_in_words(self.qrels) if part == "qrels" else [])

    def plain(self, how: Layout) -> dict[str, Any]:
        rows = {part: plain(getattr(self, part), how.digits) for part in self.parts}
        return {"parts": self.parts, "settings": self.settings, **rows, "notes": self.notes()}

    def records(self, how: Layout) -> Iterable[list[Any]]:
        """The rows of the only requested part; for curves, one row per point."""
        if len(self.parts) != 1:
            raise ConventionError(f"a table holds one part; choose one of {', '.join(self.parts)}")
        return PARTS[self.parts[0]].records(getattr(self, self.parts[0]))


def stability(
    scores: Scores,
    others: Scores | None = None,
    *,
    parts: str | Iterable[str] | None = None,
    kinds: str | Iterable[str] = DEFAULT_KINDS,
    test: str = "randomised-tukey",
    alpha: float = 0.05,
    level: float = 0.95,
    target: float = 0.95,
    trials: int = 500,
    resamples: int = 10_000,
    seed: int = 0,
    p: float = 0.9,
    names: tuple[str, str] = ("first", "second"),
    progress: Progress | None = None,
) -> Stability:
    """How stable the ranking of the runs is. `parts` are names of `PARTS`; default: all that are possible.

    `others` are the same runs under other judgments; `names` are the labels of the two. `kinds` are names of
    correlations and `rbo`, the rank-biased overlap of the two orders with patience `p`. `test` is the test that
    separates runs: randomised-tukey, tukey, or a paired test, uncorrected as in achieved significance levels. `trials`
    is the number of random splits; `target` is the reliability for which the number of topics is computed.
    """
    if not isinstance(scores, Scores) or not isinstance(others, (Scores, type(None))):
        raise DataError("expected Scores; evaluate the runs first")
    names_of_parts = _parts_by_name(parts, scores, others)
    coefficients = known_names("kinds", kinds, [*COEFFICIENTS, "rbo"])
    refuse_shares(alpha=alpha, level=level, target=target, p=p)
    refuse_below(10, trials=trials)
    refuse_below(100, resamples=resamples)
    refuse_below(0, seed=seed)
    if len(scores.runs) < 2:
        raise DataError(f"expected two runs or more, found {len(scores.runs)}")
    test = str(test_of_pairs(test))
    settings = {"kinds": coefficients, "test": test, "alpha": alpha, "level": level, "target": target}
    settings |= {"trials": trials, "resamples": resamples, "seed": seed, "p": p}
    remarks = []
    if len(scores.runs) < 5:
        remarks.append(f"correlations of {len(scores.runs)} runs take few values and say little; give more runs")
    rows: dict[str, Any] = {}
    for i, part in enumerate(names_of_parts):
        study = PARTS[part].by_topics
        if study is not None:
            rows[part] = _by_topics(part, study, scores, settings, remarks)
        elif part == "measures":
            rows[part] = _by_measures(scores, settings, remarks)
        elif others is not None:
            rows[part], rows["means"] = _by_qrels(scores, others, names, settings, remarks)
        if progress is not None:
            progress(i + 1, len(names_of_parts))
    return Stability(names_of_parts, settings, remarks=remarks, **rows)


def _parts_by_name(parts: str | Iterable[str] | None, scores: Scores, others: Scores | None) -> list[str]:
    if parts is None:
        possible = {"measures": len(scores.measures) > 1, "qrels": others is not None}
        return [part for part in PARTS if possible.get(part, True)]
    names = known_names("parts", parts, list(PARTS))
    if "qrels" in names and others is None:
        raise ConventionError("qrels: expected other judgments as well (others=…), found none")
    if "measures" in names and len(scores.measures) < 2:
        raise ConventionError("measures: expected two measures or more to compare, found one")
    return [part for part in PARTS if part in names]


# two rankings


def _upward_means(scores: Scores, name: str) -> Floats:
    up = -1.0 if scores.measures[name].lower_is_better else 1.0
    answer: Floats = up * scores.summary[:, list(scores.measures).index(name)]
    return answer


def _by_measures(scores: Scores, settings: Mapping[str, Any], remarks: list[str]) -> list[RankingAgreement]:
    means = {name: _upward_means(scores, name) for name in scores.measures}
    return [
        _agreement((one, other), scores.runs, means[one], means[other], settings, remarks)
        for one, other in combinations(means, 2)
    ]


def _agreement(
    names: tuple[str, str], runs: list[str], x: Floats, y: Floats, settings: Mapping[str, Any], remarks: list[str]
) -> RankingAgreement:
    first, second = names
    there = ~(np.isnan(x) | np.isnan(y))
    if not there.all():
        absent = [run for run, present in zip(runs, there, strict=True) if not present]
        remarks.append(f"{listed(absent)} have no {first} or no {second} and are left out")
    runs, x, y = [run for run, present in zip(runs, there, strict=True) if present], x[there], y[there]
    values = {}
    for kind in settings["kinds"]:
        values[kind], reason = _coefficient(kind, runs, x, y, settings["p"])
        if reason:
            remarks.append(f"{kind} of {first} and {second} is undefined: {reason}")
    before, after = (1 + (means > means[:, None]).sum(axis=1) for means in (x, y))  # equal means share the best rank
    change = np.abs(after - before)
    far = int(np.argmax(change)) if len(change) else 0
    moved = f"{runs[far]}: {before[far]} → {after[far]}" if len(change) and change[far] else "-"
    largest = int(change.max(initial=0))
    return RankingAgreement(first, second, len(x), values, int((change > 0).sum()), largest, moved)


def _coefficient(kind: str, runs: list[str], x: Floats, y: Floats, p: float) -> tuple[float, str]:
    """One coefficient of two rankings of the runs, and the reason if it is undefined."""
    if kind == "rbo":
        if len(runs) < 2:
            return math.nan, f"there is nothing to order: expected two runs or more, found {len(runs)}"
        one, other = (dict(zip(runs, means.tolist(), strict=True)) for means in (x, y))
        return rbo(one, other, p).ext, ""
    return coefficient(kind, x, y)


def _by_qrels(
    scores: Scores, others: Scores, names: tuple[str, str], settings: Mapping[str, Any], remarks: list[str]
) -> tuple[list[RankingAgreement], Means]:
    """The agreement of two sets of judgments by each measure, and the mean of each run under both."""
    both = [run for run in scores.runs if run in others.runs]
    alone = [run for run in [*scores.runs, *others.runs] if run not in both]
    if alone:
        remarks.append(f"runs {listed(alone)} are scored on one side only and left out")
    shared = [name for name in scores.measures if name in others.measures]
    if len(both) < 2 or not shared:
        least = "two runs" if len(both) < 2 else "a measure"
        raise DataError(f"the two have too little in common: expected {least} or more")
    sides = scores.select(runs=both), others.select(runs=both)
    rows, means = [], {}
    for name in shared:
        x, y = (_upward_means(side, name) for side in sides)
        up = -1.0 if scores.measures[name].lower_is_better else 1.0
        means[name] = [(run, float(up * a), float(up * b)) for run, a, b in zip(both, x, y, strict=True)]
        labels = f"{name} ({names[0]})", f"{name} ({names[1]})"
        row = _agreement(labels, both, x, y, settings, remarks)
        if comparable(scores.measures[name]):
            tables = [upward_table(side, name, remarks) for side in sides]
            row = _with_flips(row, tables, both, names, settings)
        rows.append(row)
    return rows, means


def _with_flips(
    row: RankingAgreement, tables: list[Floats], runs: list[str], names: tuple[str, str], settings: Mapping[str, Any]
) -> RankingAgreement:
    """Add which pairs of runs the two sets of judgments separate: both, only one, or both in opposite order."""
    if min(map(len, tables)) < 2:
        return row
    levels = [_levels(table, settings)[0] for table in tables]
    means = [table.mean(axis=0) for table in tables]
    counts = {"both": 0, "one": 0, "opposite": 0}
    flips: list[tuple[str, str, str]] = []
    pairs = list(combinations(range(len(runs)), 2))
    for i, j in pairs:
        apart = [bool(p[i, j] <= settings["alpha"]) for p in levels]
        order = [bool(mean[i] > mean[j]) for mean in means]
        if all(apart):
            counts["both" if order[0] == order[1] else "opposite"] += 1
        elif any(apart):
            counts["one"] += 1
        if any(apart) and (order[0] != order[1] or not all(apart)):
            sides = [
                f"{runs[i if first else j]} is better by {name}" if tells else f"not told apart by {name}"
                for tells, first, name in zip(apart, order, names, strict=True)
            ]
            flips.append((runs[i], runs[j], "; ".join(sides)))
    return replace(row, **counts, pairs=len(pairs), flips=tuple(flips))  # type: ignore[arg-type]


# each measure by its topics


def _by_topics(
    part: str, study: ByTopics, scores: Scores, settings: Mapping[str, Any], remarks: list[str]
) -> list[Any]:
    """The rows of a part that analyses one measure at a time, topic by topic."""
    rows = []
    for name, measure in scores.measures.items():
        if not comparable(measure):
            remarks.append(f"{name} is not a mean over topics; {part} leaves it out")
            continue
        table = upward_table(scores, name, remarks)
        if len(table) < 4:
            remarks.append(f"{name}: {part} takes four topics or more; found {len(table)}")
            continue
        rows += study(name, table, settings)
    return rows


def _levels(table: Floats, settings: Mapping[str, Any]) -> tuple[Floats, str]:
    """The p-values of all pairs of columns, as a square matrix; NaN with a reason if there are none."""
    rng = np.random.default_rng(settings["seed"])
    return test_of_pairs(settings["test"]).all_pairs(table, settings["resamples"], rng)


def _discriminative(name: str, table: Floats, settings: Mapping[str, Any]) -> list[Discriminative]:
    p, reason = _levels(table, settings)
    means = table.mean(axis=0)
    study = discrimination(p, means[:, None] - means, settings["alpha"])
    if study.without and not reason:
        some = f"{study.without} of {study.pairs} pairs"
        reason = f"{some} have no p-value (equal on every topic) and count as not told apart"
    rng = np.random.default_rng(settings["seed"])
    swaps = swap_rates(table, trials=settings["trials"], rng=rng).overall
    counts = study.alpha, study.power, study.significant, study.pairs, study.needed
    return [Discriminative(name, settings["test"], *counts, swaps, tuple(study.levels.tolist()), reason)]


def _halves(name: str, table: Floats, settings: Mapping[str, Any]) -> list[Halves]:
    answer = []
    level, trials = settings["level"], settings["trials"]
    sizes = _sizes(len(table) // 2)
    for kind in dict.fromkeys(each for each in (*settings["kinds"], "pearson") if each != "rbo"):
        rng = np.random.default_rng(settings["seed"])
        split = split_half(table, kind, trials, rng, level)
        steps = split_sizes(table, sizes, kind, max(20, trials // 5), rng, level)
        curve = tuple((each.size, each.mean, each.low, each.high) for each in steps)
        reason = split.reason
        if split.undefined and not reason:
            reason = f"{kind} is undefined for {split.undefined} of {trials} splits, which are left out"
        numbers = split.mean, split.low, split.high, split.stepped_up if split.mean > 0 else math.nan
        answer.append(Halves(name, kind, split.size, trials, *numbers, curve, reason))
    return answer


def _sizes(most: int, number: int = 8) -> list[int]:
    """A few sizes up to the largest, evenly spaced."""
    return sorted({max(1, round(most * i / number)) for i in range(1, number + 1)})


def _generalisable(name: str, table: Floats, settings: Mapping[str, Any]) -> list[Generalisable]:
    study = g_study(table)
    here = d_study(study, level=settings["level"])
    named = {"groups": "runs", "blocks": "topics"}
    shares = {named.get(part, part): share for part, share in study.shares.items()}
    target = settings["target"]
    needed = float(blocks_needed(study, target, "e_rho2")), float(blocks_needed(study, target, "phi"))
    most = max(2 * len(table), *(min(number, 10 * len(table)) for number in needed if math.isfinite(number)), 10)
    coefficients = here.e_rho2, here.e_rho2_low, here.e_rho2_high, here.phi, here.phi_low, here.phi_high
    curve = []
    for size in sorted({1, 2, 5, *_sizes(round(most), 12)}):
        there = d_study(study, size)
        curve.append((size, there.e_rho2, there.phi))
    negative = tuple(named.get(part, part) for part in study.negative)
    topics, runs = table.shape
    return [Generalisable(name, topics, runs, shares, *coefficients, target, *needed, tuple(curve), negative)]


# how it looks


def _number(how: Layout, value: float, digits: int | None = None) -> str:
    if math.isinf(value):
        return "never"
    return (how if digits is None else how._replace(digits=digits)).number(value)


def _span(how: Layout, low: float, high: float) -> str:
    return how.undefined if math.isnan(low) else f"{low:.3f}–{high:.3f}"


def _measures_table(agreements: list[RankingAgreement], settings: Mapping[str, Any], how: Layout) -> Table:
    kinds = settings["kinds"]
    rows = []
    for each in agreements:
        values = [_number(how, each.values[kind]) for kind in kinds]
        rows.append([each.first, each.second, *values, str(each.runs), str(each.changed), str(each.largest)])
    return Table(["first", "second", *kinds, "runs", "ranks changed", "largest"], rows, names=2)


def _qrels_table(agreements: list[RankingAgreement], settings: Mapping[str, Any], how: Layout) -> Table:
    kinds = settings["kinds"]
    columns = ["told apart by both", "by one alone", "in opposite order", "pairs"]
    rows = []
    for each in agreements:
        values = [_number(how, each.values[kind]) for kind in kinds]
        counts = [str(each.both), str(each.one), str(each.opposite), str(each.pairs)] if each.pairs else ["-"] * 4
        rows.append([_measure_of(each), *values, f"{each.changed} of {each.runs}", each.moved, *counts])
    return Table(["measure", *kinds, "ranks changed", "largest change", *columns], rows)


def _measure_of(row: RankingAgreement) -> str:
    """The name of the measure without the name of the judgments."""
    return row.first.rpartition(" (")[0]


def _flips_in_words(rows: list[RankingAgreement]) -> list[str]:
    lines = []
    for row in rows:
        lines += [f"  {_measure_of(row)}: {one} and {other}: {what}" for one, other, what in row.flips[:MOST_FLIPS]]
        if len(row.flips) > MOST_FLIPS:
            lines.append(f"  … and {len(row.flips) - MOST_FLIPS} pairs more")
    return lines


def _halves_table(halves: list[Halves], settings: Mapping[str, Any], how: Layout) -> Table:
    level = f"{100 * settings['level']:g} % of splits"
    rows = []
    for each in halves:
        numbers = _number(how, each.mean), _span(how, each.low, each.high), _number(how, each.stepped_up)
        rows.append([each.measure, each.kind, *numbers, str(each.topics)])
    head = ["measure", "coefficient", "mean", level, "all topics (Spearman–Brown)", "topics per half"]
    return Table(head, rows, spare=() if how.states_defaults else (len(head) - 1,))


def _discrimination_table(measures: list[Discriminative], settings: Mapping[str, Any], how: Layout) -> Table:
    rows = []
    for each in sorted(measures, key=lambda each: -each.power):
        apart = f"{each.significant} of {each.pairs}"
        numbers = [_number(how, value) for value in (each.needed, each.swaps)]
        rows.append([each.measure, _number(how, each.power), apart, *numbers])
    return Table(["measure", "discriminative power", "pairs told apart", "difference needed", "swap rate"], rows)


def _generalisability_table(studies: list[Generalisable], settings: Mapping[str, Any], how: Layout) -> Table:
    target = f"for {settings['target']:g}"
    rows = []
    for each in studies:
        shares = [f"{_number(how, 100 * each.shares[part], 1)} %" for part in ("runs", "topics", "residual")]
        span = _span(how, each.e_rho2_low, each.e_rho2_high)
        needed = [_number(how, number, 0) for number in (each.needed_e_rho2, each.needed_phi)]
        rows.append([each.measure, *shares, _number(how, each.e_rho2), span, _number(how, each.phi), *needed])
    head = ["measure", "runs", "topics", "residual", "Eρ²", "interval", "Φ", f"topics {target}: Eρ²", "Φ "]
    return Table(head, rows)


def _agreement_rows(rows: list[RankingAgreement]) -> Iterator[list[Any]]:
    counts = ["runs", "changed", "largest", "both", "one", "opposite", "pairs"]
    yield ["first", "second", *(rows[0].values if rows else []), *counts]
    for each in rows:
        yield [each.first, each.second, *each.values.values(), *(getattr(each, key) for key in counts)]


def _halves_rows(halves: list[Halves]) -> Iterator[list[Any]]:
    yield ["measure", "coefficient", "topics", "mean", "low", "high"]
    yield from ([each.measure, each.kind, *point] for each in halves for point in each.curve)


def _levels_rows(measures: list[Discriminative]) -> Iterator[list[Any]]:
    yield ["measure", "pair", "p"]
    yield from ([each.measure, i, p] for each in measures for i, p in enumerate(each.levels, 1))


def _d_study_rows(studies: list[Generalisable]) -> Iterator[list[Any]]:
    yield ["measure", "topics", "e_rho2", "phi"]
    yield from ([each.measure, *point] for each in studies for point in each.curve)


@dataclass(frozen=True)
class Section:
    """A part of `stability`: its question, table, rows for spreadsheets, and its analysis of one measure, if any."""

    question: str
    table: Callable[[list[Any], Mapping[str, Any], Layout], Table]
    records: Callable[[list[Any]], Iterator[list[Any]]]
    by_topics: ByTopics | None = None


PARTS = {
    "measures": Section("do the measures rank the runs alike?", _measures_table, _agreement_rows),
    "qrels": Section(
        "do two sets of judgments rank the runs alike, and find the same differences?", _qrels_table, _agreement_rows
    ),
    "halves": Section(
        "does one half of the topics rank the runs as the other does?", _halves_table, _halves_rows, _halves
    ),
    "discrimination": Section(
        "how many pairs of runs does a measure tell apart?", _discrimination_table, _levels_rows, _discriminative
    ),
    "generalisability": Section(
        "how much of the variance is the runs', and how many topics make a ranking reliable?",
        _generalisability_table,
        _d_study_rows,
        _generalisable,
    ),
}
