"""How stable is a leaderboard: under another measure, other judgments, the other half of the topics, fewer topics?

Five parts, each a table of its own and each made from Scores alone: agreement of measures, agreement of two sets of
judgments, split halves, discriminative power with achieved significance levels, and generalisability. Rankings are
compared with the best first, also by measures of which lower is better. AP correlation is the symmetric variant that
knows ties (`tau-ap-b`): neither side is the truth here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.columns import aligned, listed
from cranfield.compare.leaderboard import comparable, telling_test, upward_table
from cranfield.errors import ConventionError, DataError
from cranfield.scores import Scores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cranfield.kernels.table import Floats

    Progress = Callable[[int, int | None], None]


PARTS = {
    "measures": "do the measures rank the runs alike?",
    "qrels": "do two sets of judgments rank the runs alike, and find the same differences?",
    "halves": "does one half of the topics rank the runs as the other does?",
    "discrimination": "how many pairs of runs does a measure tell apart?",
    "generalisability": "how much of the variance is the runs', and how many topics make a ranking reliable?",
}
USUAL = ("tau", "tau-ap-b", "rbo")


@dataclass(frozen=True)
class Agreement:
    """Two rankings of the same runs: by two measures, or by one measure under two sets of judgments."""

    first: str
    second: str
    runs: int
    values: dict[str, float]  # coefficient → value; NaN where it is undefined
    changed: int  # runs with another rank
    largest: int  # the largest change of rank
    moved: str  # the run with the largest change, in words
    both: int = 0  # pairs that both tell apart, in the same order
    one: int = 0  # pairs that one of the two alone tells apart
    opposite: int = 0  # pairs that both tell apart, in opposite order
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
    """How well a measure tells runs apart."""

    measure: str
    test: str
    alpha: float
    power: float  # discriminative power: the share of pairs with p below alpha
    significant: int
    pairs: int
    needed: float  # every pair further apart than this was told apart
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


@dataclass
class Stability:
    """What `stability` returns: the parts that were asked for.

    >>> table = np.random.default_rng(1).normal([0.3, 0.4, 0.5], 0.05, (40, 3))
    >>> found = stability(Scores.from_table(table, ["a", "b", "c"]), parts="discrimination", test="t")
    >>> found.discrimination[0].power
    1.0
    """

    parts: list[str]
    settings: dict[str, Any]
    measures: list[Agreement] = field(default_factory=list)
    qrels: list[Agreement] = field(default_factory=list)
    halves: list[Halves] = field(default_factory=list)
    discrimination: list[Discriminative] = field(default_factory=list)
    generalisability: list[Generalisable] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    means: dict[str, list[tuple[str, float, float]]] = field(
        default_factory=dict
    )  # measure → run, under one, under other

    def notes(self) -> list[str]:
        """What was left out and why, a sentence each."""
        said = list(self.remarks)
        said += [f"{each.measure}: {each.reason}" for each in self.halves if each.reason]
        said += [f"{each.measure}: {each.reason}" for each in self.discrimination if each.reason]
        for study in self.generalisability:
            if study.negative:
                said.append(
                    f"{study.measure}: the variance of {', '.join(study.negative)} came out below 0; it is set to 0"
                )
        return list(dict.fromkeys(said))

    def to_dict(self) -> dict[str, Any]:
        """Plain values; an undefined one is None."""
        answer: dict[str, Any] = {"parts": self.parts, "settings": self.settings}
        for part in self.parts:
            answer[part] = [_plain(vars(row)) for row in getattr(self, part)]
        return {**answer, "notes": self.notes()}

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        import json

        return json.dumps(self.to_dict(), indent=2)

    def to_csv(self, delimiter: str = ",") -> str:
        """One part as a table, numbers in full; where a part has curves, a row a point."""
        import csv
        import io

        if len(self.parts) != 1:
            raise ConventionError(f"a table holds one part; choose one of {', '.join(self.parts)}")
        file = io.StringIO()
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(_CURVES[self.parts[0]](self))
        return file.getvalue()

    def to_tsv(self) -> str:
        """`to_csv` with tabs."""
        return self.to_csv("\t")

    def to_text(self, limit: int | None = None) -> str:
        """For people: a table a part, under its question."""
        blocks = []
        for part in self.parts:
            rows = _TABLES[part](self)
            if len(rows) > 1:
                left = 2 if part in ("measures",) else 1
                below = _flip_lines(self.qrels) if part == "qrels" else []
                blocks.append("\n".join([f"{part}: {PARTS[part]}", *aligned(rows, left, limit=limit), *below]))
        return "\n\n".join(blocks)

    def __repr__(self) -> str:
        return self.to_text()


def stability(
    scores: Scores,
    others: Scores | None = None,
    *,
    parts: str | Iterable[str] | None = None,
    kinds: str | Iterable[str] = USUAL,
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
    """How stable the ranking of the runs is: `parts` are names of `PARTS`, all that can be had if not given.

    `others` are the same runs under other judgments (`names` tells the two apart). `kinds` are correlations by name and
    `rbo`, rank-biased overlap of the two orders with patience `p`. `test` is what tells runs apart: randomised-tukey,
    tukey, or a paired test, uncorrected as in achieved significance levels. `trials` is the number of random splits,
    `target` the reliability for which topics are counted.
    """
    if not isinstance(scores, Scores) or not isinstance(others, (Scores, type(None))):
        raise DataError("expected Scores; evaluate the runs first")
    wanted = _wanted(parts, scores, others)
    coefficients = kinds.replace(",", " ").split() if isinstance(kinds, str) else list(kinds)
    _refuse(coefficients, {"alpha": alpha, "level": level, "target": target, "p": p}, trials, resamples)
    if len(scores.runs) < 2:
        raise DataError(f"expected two runs or more, found {len(scores.runs)}")
    test = str(telling_test(test))
    settings = {"kinds": coefficients, "test": test, "alpha": alpha, "level": level, "target": target}
    settings |= {"trials": trials, "resamples": resamples, "seed": seed, "p": p}
    found = Stability(wanted, settings)
    if len(scores.runs) < 5:
        found.remarks.append(f"correlations of {len(scores.runs)} runs take few values and say little; give more runs")
    steps = _Steps(progress, len(wanted) * len(scores.measures))
    if "measures" in wanted:
        found.measures = _by_measures(scores, found)
        steps.tell(len(scores.measures))
    if "qrels" in wanted and others is not None:
        found.qrels = _by_qrels(scores, others, names, found, steps)
    for part, make in (("halves", _halves), ("discrimination", _discriminative), ("generalisability", _generalisable)):
        for name, measure in scores.measures.items() if part in wanted else ():
            if not comparable(measure):
                found.remarks.append(f"{name} is no mean over topics; {part} leaves it out")
                continue
            table = upward_table(scores, name, found.remarks)
            if len(table) < 4:
                found.remarks.append(f"{name}: {part} takes four topics or more; found {len(table)}")
                continue
            getattr(found, part).extend(make(name, table, found.settings))
            steps.tell(1)
    return found


class _Steps:
    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def tell(self, steps: int) -> None:
        self.done += steps
        if self.progress is not None:
            self.progress(self.done, self.total)


def _wanted(parts: str | Iterable[str] | None, scores: Scores, others: Scores | None) -> list[str]:
    if parts is None:
        possible = {"measures": len(scores.measures) > 1, "qrels": others is not None}
        return [part for part in PARTS if possible.get(part, True)]
    asked = parts.replace(",", " ").split() if isinstance(parts, str) else list(parts)
    unknown = [part for part in asked if part not in PARTS]
    if unknown or not asked:
        raise ConventionError(f"parts: expected some of {', '.join(PARTS)}, found {' '.join(asked)!r}")
    if "qrels" in asked and others is None:
        raise ConventionError("qrels: expected other judgments as well (--other-qrels QRELS, others=…), found none")
    if "measures" in asked and len(scores.measures) < 2:
        raise ConventionError("measures: expected two measures or more to compare, found one")
    return [part for part in PARTS if part in asked]


def _refuse(kinds: list[str], shares: dict[str, float], trials: int, resamples: int) -> None:
    from cranfield.stats.correlation import COEFFICIENTS

    known = [*COEFFICIENTS, "rbo"]
    if not kinds or any(kind not in known for kind in kinds):
        raise ConventionError(f"kinds: expected some of {', '.join(known)}, found {' '.join(kinds)!r}")
    for what, value in shares.items():
        if not 0 < value < 1:
            raise ConventionError(f"{what} must lie between 0 and 1, got {value:g}")
    if trials < 10:
        raise ConventionError(f"trials must be 10 or more, got {trials}")
    if resamples < 100:
        raise ConventionError(f"resamples must be 100 or more, got {resamples}")


# two rankings


def _upward_means(scores: Scores, name: str) -> Floats:
    up = -1.0 if scores.measures[name].lower_is_better else 1.0
    answer: Floats = up * scores.summary[:, list(scores.measures).index(name)]
    return answer


def _by_measures(scores: Scores, found: Stability) -> list[Agreement]:
    means = {name: _upward_means(scores, name) for name in scores.measures}
    return [
        _agreement((one, other), scores.runs, means[one], means[other], found) for one, other in combinations(means, 2)
    ]


def _agreement(names: tuple[str, str], runs: list[str], x: Floats, y: Floats, found: Stability) -> Agreement:
    first, second = names
    there = ~(np.isnan(x) | np.isnan(y))
    if not there.all():
        absent = [run for run, kept in zip(runs, there, strict=True) if not kept]
        found.remarks.append(f"{listed(absent)} have no {first} or no {second} and are left out")
    runs, x, y = [run for run, kept in zip(runs, there, strict=True) if kept], x[there], y[there]
    values = {}
    for kind in found.settings["kinds"]:
        values[kind], reason = _alike(kind, runs, x, y, found.settings["p"])
        if reason:
            found.remarks.append(f"{kind} of {first} and {second} is undefined: {reason}")
    before, after = _ranks(x), _ranks(y)
    change = np.abs(after - before)
    far = int(np.argmax(change)) if len(change) else 0
    moved = f"{runs[far]}: {before[far]} → {after[far]}" if len(change) and change[far] else "-"
    largest = int(change.max(initial=0))
    return Agreement(first, second, len(x), values, int((change > 0).sum()), largest, moved)


def _alike(kind: str, runs: list[str], x: Floats, y: Floats, p: float) -> tuple[float, str]:
    """One coefficient of two rankings of the runs, and why it is undefined where it is."""
    from cranfield.stats.correlation import correlation, undefined
    from cranfield.stats.overlap import rbo

    if kind == "rbo":
        if len(runs) < 2:
            return math.nan, f"there is nothing to order: expected two runs or more, found {len(runs)}"
        one, other = (dict(zip(runs, means.tolist(), strict=True)) for means in (x, y))
        return rbo(one, other, p).ext, ""
    reason = undefined(kind, x, y)
    return (math.nan, reason) if reason else (correlation(kind, x, y), "")


def _ranks(means: Floats) -> Any:
    """Ranks from 1, equal means sharing the best."""
    return np.array([1 + int((means > value).sum()) for value in means], np.int64)


def _by_qrels(
    scores: Scores, others: Scores, names: tuple[str, str], found: Stability, steps: _Steps
) -> list[Agreement]:
    both = [run for run in scores.runs if run in others.runs]
    alone = [run for run in [*scores.runs, *others.runs] if run not in both]
    if alone:
        found.remarks.append(f"runs {listed(alone)} are scored on one side only and left out")
    shared = [name for name in scores.measures if name in others.measures]
    if len(both) < 2 or not shared:
        what = "run" if len(both) < 2 else "measure"
        raise DataError(
            f"the two have too little in common: expected {'two runs' if what == 'run' else 'a measure'} or more"
        )
    one, other = scores.select(runs=both), others.select(runs=both)
    answer = []
    for name in shared:
        x, y = _upward_means(one, name), _upward_means(other, name)
        up = -1.0 if one.measures[name].lower_is_better else 1.0
        found.means[name] = [(run, float(up * a), float(up * b)) for run, a, b in zip(both, x, y, strict=True)]
        labels = f"{name} ({names[0]})", f"{name} ({names[1]})"
        row = _agreement(labels, both, x, y, found)
        answer.append(_with_flips(row, one, other, name, both, names, found) if comparable(one.measures[name]) else row)
        steps.tell(1)
    return answer


def _with_flips(
    row: Agreement, one: Scores, other: Scores, name: str, runs: list[str], names: tuple[str, str], found: Stability
) -> Agreement:
    """Which pairs of runs the two tell apart: both, one alone, or both the other way round."""
    tables = [upward_table(each, name, found.remarks) for each in (one, other)]
    if min(map(len, tables)) < 2:
        return row
    alpha = found.settings["alpha"]
    levels = [_levels(table, found.settings)[0] for table in tables]
    means = [table.mean(axis=0) for table in tables]
    counts = {"both": 0, "one": 0, "opposite": 0}
    flips: list[tuple[str, str, str]] = []
    for i, j in combinations(range(len(runs)), 2):
        apart = [bool(p[i, j] <= alpha) for p in levels]
        order = [bool(mean[i] > mean[j]) for mean in means]
        if all(apart):
            counts["both" if order[0] == order[1] else "opposite"] += 1
        elif any(apart):
            counts["one"] += 1
        if any(apart) and (order[0] != order[1] or not all(apart)):
            flips.append((runs[i], runs[j], _flipped(apart, order, names, runs[i], runs[j])))
    return Agreement(**{**vars(row), **counts, "pairs": len(runs) * (len(runs) - 1) // 2, "flips": tuple(flips)})


def _flipped(apart: list[bool], order: list[bool], names: tuple[str, str], one: str, other: str) -> str:
    said = []
    for tells, first, name in zip(apart, order, names, strict=True):
        ahead = one if first else other
        said.append(f"{ahead} is better by {name}" if tells else f"not told apart by {name}")
    return "; ".join(said)


# all pairs


def _levels(table: Floats, settings: Mapping[str, Any]) -> tuple[Floats, str]:
    """The p-values of all pairs of columns, as a square; NaN with a reason where there are none."""
    rng = np.random.default_rng(settings["seed"])
    return telling_test(settings["test"]).all_pairs(table, settings["resamples"], rng)


def _discriminative(name: str, table: Floats, settings: Mapping[str, Any]) -> list[Discriminative]:
    from cranfield.stats.discrimination import discrimination, swap_rates

    p, reason = _levels(table, settings)
    means = table.mean(axis=0)
    found = discrimination(p, means[:, None] - means, settings["alpha"])
    if found.without and not reason:
        reason = (
            f"{found.without} of {found.pairs} pairs have no p-value (equal on every topic) and count as not told apart"
        )
    rng = np.random.default_rng(settings["seed"])
    swaps = swap_rates(table, trials=settings["trials"], rng=rng).overall
    levels = tuple(found.levels.tolist())
    return [
        Discriminative(
            name,
            settings["test"],
            found.alpha,
            found.power,
            found.significant,
            found.pairs,
            found.needed,
            swaps,
            levels,
            reason,
        )
    ]


# halves and components


def _halves(name: str, table: Floats, settings: Mapping[str, Any]) -> list[Halves]:
    from cranfield.stats.halves import split_half, split_sizes

    answer = []
    level, trials = settings["level"], settings["trials"]
    sizes = _sizes(len(table) // 2)
    for kind in dict.fromkeys(each for each in (*settings["kinds"], "pearson") if each != "rbo"):
        rng = np.random.default_rng(settings["seed"])
        found = split_half(table, kind, trials, rng, level)
        steps = split_sizes(table, sizes, kind, max(20, trials // 5), rng, level)
        curve = tuple((each.size, each.mean, each.low, each.high) for each in steps)
        reason = found.reason
        if found.undefined and not reason:
            reason = f"{kind} is undefined for {found.undefined} of {trials} splits, which are left out"
        numbers = found.mean, found.low, found.high, found.stepped_up if found.mean > 0 else math.nan
        answer.append(Halves(name, kind, found.size, trials, *numbers, curve, reason))
    return answer


def _sizes(most: int, number: int = 8) -> list[int]:
    """A few sizes up to the largest, evenly spaced."""
    return sorted({max(1, round(most * i / number)) for i in range(1, number + 1)})


def _generalisable(name: str, table: Floats, settings: Mapping[str, Any]) -> list[Generalisable]:
    from cranfield.stats.generalisability import blocks_needed, d_study, g_study

    study = g_study(table)
    here = d_study(study, level=settings["level"])
    words = {"groups": "runs", "blocks": "topics"}
    shares = {words.get(part, part): share for part, share in study.shares.items()}
    target = settings["target"]
    needed = [float(blocks_needed(study, target, "e_rho2")), float(blocks_needed(study, target, "phi"))]
    most = max(2 * len(table), *(min(number, 10 * len(table)) for number in needed if math.isfinite(number)), 10)
    curve = []
    for size in sorted({1, 2, 5, *_sizes(round(most), 12)}):
        there = d_study(study, size)
        curve.append((size, there.e_rho2, there.phi))
    return [
        Generalisable(
            name,
            len(table),
            table.shape[1],
            shares,
            here.e_rho2,
            here.e_rho2_low,
            here.e_rho2_high,
            here.phi,
            here.phi_low,
            here.phi_high,
            target,
            needed[0],
            needed[1],
            tuple(curve),
            tuple(words.get(part, part) for part in study.negative),
        )
    ]


# how it looks


def _number(value: float, form: str = ".4f") -> str:
    return "-" if math.isnan(value) else "never" if math.isinf(value) else format(value, form)


def _measures_table(found: Stability) -> list[list[str]]:
    kinds = found.settings["kinds"]
    rows = [["first", "second", *kinds, "runs", "ranks changed", "largest"]]
    for each in found.measures:
        values = [_number(each.values[kind]) for kind in kinds]
        rows.append([each.first, each.second, *values, str(each.runs), str(each.changed), str(each.largest)])
    return rows


def _qrels_table(found: Stability) -> list[list[str]]:
    kinds = found.settings["kinds"]
    told = ["told apart by both", "by one alone", "in opposite order", "pairs"]
    rows = [["measure", *kinds, "ranks changed", "largest change", *told]]
    for each in found.qrels:
        values = [_number(each.values[kind]) for kind in kinds]
        counts = [str(each.both), str(each.one), str(each.opposite), str(each.pairs)] if each.pairs else ["-"] * 4
        rows.append([each.first.rpartition(" (")[0], *values, f"{each.changed} of {each.runs}", each.moved, *counts])
    return rows


def _flip_lines(rows: list[Agreement], most: int = 5) -> list[str]:
    lines = []
    for each in rows:
        for one, other, what in each.flips[:most]:
            lines.append(f"  {each.first.rpartition(' (')[0]}: {one} and {other}: {what}")
        if len(each.flips) > most:
            lines.append(f"  … and {len(each.flips) - most} pairs more")
    return lines


def _halves_table(found: Stability) -> list[list[str]]:
    level = f"{100 * found.settings['level']:g} % of splits"
    rows = [["measure", "coefficient", "mean", level, "all topics (Spearman–Brown)", "topics a half"]]
    for each in found.halves:
        span = "-" if math.isnan(each.low) else f"{each.low:.3f}–{each.high:.3f}"
        rows.append([each.measure, each.kind, _number(each.mean), span, _number(each.stepped_up), str(each.topics)])
    return rows


def _discrimination_table(found: Stability) -> list[list[str]]:
    rows = [["measure", "discriminative power", "pairs told apart", "difference needed", "swap rate"]]
    for each in sorted(found.discrimination, key=lambda each: -each.power):
        told = f"{each.significant} of {each.pairs}"
        rows.append([each.measure, f"{each.power:.4f}", told, _number(each.needed), _number(each.swaps)])
    return rows


def _generalisability_table(found: Stability) -> list[list[str]]:
    target = f"for {found.settings['target']:g}"
    rows = [["measure", "runs", "topics", "residual", "Eρ²", "interval", "Φ", f"topics {target}: Eρ²", "Φ "]]
    for each in found.generalisability:
        shares = [_number(100 * each.shares[part], ".1f") + " %" for part in ("runs", "topics", "residual")]
        span = "-" if math.isnan(each.e_rho2_low) else f"{each.e_rho2_low:.3f}–{each.e_rho2_high:.3f}"
        needed = [_number(each.needed_e_rho2, ".0f"), _number(each.needed_phi, ".0f")]
        rows.append([each.measure, *shares, _number(each.e_rho2), span, _number(each.phi), *needed])
    return rows


_TABLES: dict[str, Callable[[Stability], list[list[str]]]] = {
    "measures": _measures_table,
    "qrels": _qrels_table,
    "halves": _halves_table,
    "discrimination": _discrimination_table,
    "generalisability": _generalisability_table,
}


def _agreement_rows(rows: list[Agreement]) -> list[list[Any]]:
    kinds = list(rows[0].values) if rows else []
    counts = ["runs", "changed", "largest", "both", "one", "opposite", "pairs"]
    table: list[list[Any]] = [["first", "second", *kinds, *counts]]
    for each in rows:
        values = map(_full, each.values.values())
        table += [[each.first, each.second, *values, *(getattr(each, key) for key in counts)]]
    return table


def _halves_rows(found: Stability) -> list[list[Any]]:
    rows: list[list[Any]] = [["measure", "coefficient", "topics", "mean", "low", "high"]]
    for each in found.halves:
        rows += [[each.measure, each.kind, size, *map(_full, numbers)] for size, *numbers in each.curve]
    return rows


def _levels_rows(found: Stability) -> list[list[Any]]:
    rows: list[list[Any]] = [["measure", "pair", "p"]]
    for each in found.discrimination:
        rows += [[each.measure, i, repr(p)] for i, p in enumerate(each.levels, 1)]
    return rows


def _d_study_rows(found: Stability) -> list[list[Any]]:
    rows: list[list[Any]] = [["measure", "topics", "e_rho2", "phi"]]
    for each in found.generalisability:
        rows += [[each.measure, size, _full(e_rho2), _full(phi)] for size, e_rho2, phi in each.curve]
    return rows


_CURVES: dict[str, Callable[[Stability], list[list[Any]]]] = {
    "measures": lambda found: _agreement_rows(found.measures),
    "qrels": lambda found: _agreement_rows(found.qrels),
    "halves": _halves_rows,
    "discrimination": _levels_rows,
    "generalisability": _d_study_rows,
}


def _full(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def _plain(value: Any) -> Any:
    """NaN and infinity as None, all the way down."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
