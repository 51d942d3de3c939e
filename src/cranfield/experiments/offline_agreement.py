"""Agreement of offline measures with users' preferences, over pairs of systems (`cranfield online bridge`).

A measure agrees on a pair if users prefer the system with the higher mean. Means are over topics. The interval of the share
of pairs comes from a bootstrap of topics, offline and online together, or is Wilson's if preferences per topic are unknown.
Pairs share systems: Wilson's interval treats them as independent, and is too narrow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import BadLineError, ConventionError, DataError
from cranfield.base.parameters import real, refuse_below, shortened
from cranfield.base.results import Cell, Layout, Lines, Part, Rows, Table, plain
from cranfield.base.text_layout import counted
from cranfield.experiments.simulated_world import SIGNALS, World, method_named, users_named
from cranfield.formats.csv_tables import rows_by_name
from cranfield.formats.streams import opened
from cranfield.stats.bootstrap import resample_counts
from cranfield.stats.correlation import tau_b
from cranfield.stats.proportions import wilson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats
    from cranfield.evaluation.scores import Scores
    from cranfield.experiments.simulated_world import User

    Pair = tuple[str, str]

INTERLEAVED = "interleaved"
ALL = "all"
RESAMPLES = 2_000
LEVEL = 0.95
NONE = 1e-12  # a smaller difference is a rounding error
COLUMNS = ("system", "against", "preference")


@dataclass(frozen=True)
class Signal:
    """Users' preferences by pair, above 0 for the first system: one number per topic (NaN: unknown), or a single one."""

    name: str
    topics: tuple[str, ...]  # empty if there is a single number per pair
    preferences: Mapping[Pair, Floats]


def simulate_signals(
    world: World,
    users: str | User = "navigational",
    methods: Sequence[str] = ("team-draft",),
    *,
    searches: int = 100,
    seed: int = 0,
) -> list[Signal]:
    """The preferences of simulated users, by each interleaving method and each A/B metric; `searches` per topic."""
    refuse_below(0, seed=seed)
    refuse_below(1, searches=searches)
    model, rng = users_named(users), np.random.default_rng(seed)
    topics = np.repeat(np.arange(len(world.topics)), searches)
    names = {(i, j): (world.systems[i], world.systems[j]) for i, j in combinations(range(len(world.systems)), 2)}

    def by_topic(values: Floats) -> Floats:
        """The mean over the searches of each topic."""
        return np.asarray(values.reshape(len(world.topics), searches).mean(axis=1), np.float64)

    signals = []
    for method in map(method_named, methods):
        preferences = {pair: world.preferences(model, pair, topics, rng, method) for pair in names}
        means = {names[pair]: by_topic(values) for pair, values in preferences.items()}
        signals.append(Signal(f"{INTERLEAVED}, {method}", world.topics, means))
    clicks = [world.clicks(model, system, topics, rng) for system in range(len(world.systems))]
    for name, measured in SIGNALS.items():
        levels = [by_topic(measured(each)) for each in clicks]
        differences = {pair: levels[i] - levels[j] for (i, j), pair in names.items()}
        signals.append(Signal(f"A/B, {name}", world.topics, differences))
    return signals


def read_preferences(path: str) -> list[Signal]:
    """Preferences from a CSV or TSV file: system, against, preference, and optionally topic and signal.

    A preference is above 0 if `system` is preferred; a row without a topic is about all topics.
    """
    lines = utf8_lines(path)
    delimiter = "\t" if lines and "\t" in lines[0] else ","
    by_signal: dict[str, dict[Pair, dict[str, list[float]]]] = {}
    for line, row in rows_by_name(lines, path, delimiter, COLUMNS, ", and topic and signal"):
        one, other, topic, number = _read(path, line, row)
        by_topic = by_signal.setdefault((row.get("signal") or "users").strip(), {})
        flip = (other, one) in by_topic
        pair = (other, one) if flip else (one, other)
        by_topic.setdefault(pair, {}).setdefault(topic, []).append(-number if flip else number)
    if not by_signal:
        raise DataError(f"{path}: expected a preference on each line, found none")
    return [_signal(path, name, by_pair) for name, by_pair in by_signal.items()]


def utf8_lines(path: str) -> list[str]:
    """The lines of a file in UTF-8, with or without a byte-order mark; DataError if it has another encoding."""
    try:
        return bytes(opened(path).buffer).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected utf-8, found byte {error.object[error.start]:#04x}") from None


def _read(path: str, line: int, row: Mapping[str, Any]) -> tuple[str, str, str, float]:
    one, other = ((row[name] or "").strip() for name in ("system", "against"))
    if not one or not other or one == other:
        raise BadLineError(path, line, f"expected two systems, found {one!r} and {other!r}")
    typed = row["preference"]
    try:
        return one, other, (row.get("topic") or "").strip(), real(typed or "")
    except ValueError:
        raise BadLineError(path, line, f"expected a number as preference, found {shortened(typed)!r}") from None


def _signal(path: str, name: str, by_pair: Mapping[Pair, Mapping[str, list[float]]]) -> Signal:
    topics = sorted({topic for by_topic in by_pair.values() for topic in by_topic})
    if "" in topics and len(topics) > 1:
        raise DataError(f"{path}: expected a topic on every line of {name!r} or on none")
    preferences = {
        pair: np.array([np.mean(by_topic[topic]) if topic in by_topic else np.nan for topic in topics], np.float64)
        for pair, by_topic in by_pair.items()
    }
    return Signal(name, () if topics == [""] else tuple(topics), preferences)


class MeasureAgreement(NamedTuple):
    """How often a measure agrees with a signal, on the topics of one class."""

    signal: str
    measure: str
    topics: str  # the class
    number: int  # of topics
    pairs: int  # that differ by both
    agree: int
    low: float
    high: float
    tau: float  # Kendall's tau of the two orders of systems
    left_out: int  # pairs that tie by either, or differ by too little

    @property
    def share(self) -> float:
        """The share of pairs on which both agree."""
        return self.agree / self.pairs if self.pairs else math.nan


@dataclass(frozen=True)
class Bridge(Rows[MeasureAgreement]):
    """How well each offline measure agrees with users' preferences."""

    rows: tuple[MeasureAgreement, ...]
    column: str | None
    least: float
    by_topic: bool
    systems: tuple[str, ...]

    def best(self, signal: str) -> list[MeasureAgreement]:
        """The measures that agree with a signal on the most pairs, over all topics."""
        rows = [each for each in self.rows if each.signal == signal and each.topics == ALL and each.pairs]
        most = max((each.share for each in rows), default=math.nan)
        return [each for each in rows if each.share == most]

    def content(self, how: Layout) -> Iterable[Part]:
        yield Lines([self._verdict(signal) for signal in dict.fromkeys(each.signal for each in self.rows)])
        classes = [self.column] if self.column else []
        head = ["users", "measure", *classes, "topics", "pairs", "agree", "share", "low", "high", "tau"]
        rows: list[list[Cell | str]] = []
        for each in self.rows:
            names = [each.signal, each.measure, *([each.topics] if classes else [])]
            numbers = (how.cell(number) for number in (each.share, each.low, each.high, each.tau))
            rows.append([*names, str(each.number), str(each.pairs), str(each.agree), *numbers])
        yield Table(head, rows, names=2 + len(classes), left=2 + len(classes), title="agreement of measures with users")

    def _verdict(self, signal: str) -> str:
        best = self.best(signal)
        if not best:
            return f"{signal}: no pair of systems differs"
        verb = "agrees" if len(best) == 1 else "agree"
        pairs = f"{best[0].agree} of {counted(best[0].pairs, 'pair')}"
        return f"{signal}: {' and '.join(each.measure for each in best)} {verb} on {pairs}"

    def notes(self, shell: bool = False) -> list[str]:
        notes = []
        out = max((each.left_out for each in self.rows if each.topics == ALL), default=0)
        if out:
            why = f"tie or differ by less than {self.least:g}" if self.least else "tie"
            notes.append(f"up to {counted(out, 'pair')} that {why} by a measure or by users are left out")
        if not self.by_topic:
            notes.append("intervals are Wilson's, over pairs: pairs share systems, so they are too narrow")
        if len(self.systems) == 2:
            notes.append("two systems make one pair; you need more systems to distinguish measures")
        return notes

    def plain(self, how: Layout) -> Any:
        rows = [{**each._asdict(), "share": each.share} for each in self.rows]
        values = {"systems": self.systems, "by": self.column, "least": self.least, "agreement": rows}
        return plain(values, how.digits)


def bridge(
    scores: Scores,
    signals: Sequence[Signal],
    *,
    classes: Mapping[str, str] | None = None,
    column: str | None = None,
    least: float = 0.0,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Bridge:
    """How often each measure agrees with users' preferences, over all topics and by class of topics.

    Pairs whose means differ by less than `least` are left out.
    """
    refuse_below(1, resamples=resamples)
    if not (math.isfinite(least) and least >= 0):
        raise ConventionError(f"least must be 0 or more, got {least:g}")
    names = set(scores.runs)
    rows = []
    for signal in signals:
        pairs = [pair for pair in signal.preferences if names.issuperset(pair)]
        if not pairs:
            raise DataError(
                f"{signal.name}: no preference is about two of the runs {', '.join(scores.runs)}; "
                "systems go by the names of runs"
            )
        for measure in scores.measures:
            for name, topics in _classes(scores.topics, signal, classes):
                sides = _pair_differences(scores, measure, signal, pairs, topics)
                named = (signal.name, measure, name, len(topics))
                rows.append(_agreement(sides, pairs, named, least, resamples, seed))
    by_topic = all(signal.topics for signal in signals)
    return Bridge(tuple(rows), column if classes else None, least, by_topic, tuple(scores.runs))


def _classes(
    topics: Sequence[str], signal: Signal, classes: Mapping[str, str] | None
) -> Iterable[tuple[str, list[str]]]:
    """The topics of each class that a signal covers, then all its topics; a signal without topics has no classes."""
    spoken = set(signal.topics)
    shared = [topic for topic in topics if topic in spoken] if signal.topics else list(topics)
    if not shared:
        raise DataError(f"{signal.name}: no preference is about a judged topic; topics go by their ids")
    if classes and signal.topics:
        for name in sorted({classes[topic] for topic in shared if topic in classes}):
            yield name, [topic for topic in shared if classes.get(topic) == name]
    yield ALL, shared


def _pair_differences(
    scores: Scores, measure: str, signal: Signal, pairs: list[Pair], topics: list[str]
) -> tuple[Floats, Floats]:
    """The differences of each pair offline and online, pairs × topics (NaN: unknown)."""
    places = [scores.topics.index(topic) for topic in topics]
    better = -1.0 if scores.measures[measure].lower_is_better else 1.0
    of_run = {run: better * np.asarray(scores.at(run=run, measure=measure))[places] for pair in pairs for run in pair}
    offline = np.array([of_run[one] - of_run[other] for one, other in pairs])
    own = [signal.topics.index(topic) for topic in topics] if signal.topics else [0]
    return offline, np.array([signal.preferences[pair][own] for pair in pairs])


def _agreement(
    sides: tuple[Floats, Floats],
    pairs: list[Pair],
    named: tuple[str, str, str, int],
    least: float,
    resamples: int,
    seed: int,
) -> MeasureAgreement:
    offline, online = (_means(side, np.ones((1, side.shape[1])))[0] for side in sides)
    differing = (np.abs(offline) > max(NONE, least - NONE)) & (np.abs(online) > NONE)
    agree = differing & (np.sign(offline) == np.sign(online))
    total, number = int(differing.sum()), int(agree.sum())
    if not total:
        low, high = math.nan, math.nan
    elif sides[0].shape == sides[1].shape and named[3] > 1:
        low, high = _bootstrap_interval(sides[0][differing], sides[1][differing], resamples, seed)
    else:
        low, high = (float(end) for end in wilson(number, total, 1.959964))
    return MeasureAgreement(*named, total, number, low, high, _tau(pairs, offline, online), len(pairs) - total)


def _means(values: Floats, weights: Floats) -> Floats:
    """The mean of each pair under each row of weights: resamples × pairs; unknown topics are ignored."""
    there = (~np.isnan(values)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num((weights @ np.nan_to_num(values).T) / (weights @ there.T))


def _bootstrap_interval(offline: Floats, online: Floats, resamples: int, seed: int) -> tuple[float, float]:
    """The bootstrap interval (over topics) of the share of pairs that agree; a tie counts a half."""
    shares: list[npt.NDArray[np.float64]] = []
    for counts in resample_counts(offline.shape[1], resamples, np.random.default_rng(seed)):
        signs = [
            np.where(np.abs(mean) > NONE, np.sign(mean), 0.0)
            for mean in (_means(offline, counts), _means(online, counts))
        ]
        shares.append(((1 + signs[0] * signs[1]) / 2).mean(axis=1))
    low, high = np.quantile(np.concatenate(shares), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _tau(pairs: Sequence[Pair], offline: Floats, online: Floats) -> float:
    """Kendall's tau-b between the two orders of systems, each by a system's mean lead over the others."""
    names = sorted({name for pair in pairs for name in pair})
    orders = []
    for differences in (offline, online):
        leads: dict[str, list[float]] = {name: [] for name in names}
        for (one, other), difference in zip(pairs, differences.tolist(), strict=True):
            leads[one].append(difference)
            leads[other].append(-difference)
        orders.append([float(np.mean(leads[name])) for name in names])
    constant = any(max(order) - min(order) < NONE for order in orders)
    return math.nan if constant or len(names) < 2 else float(tau_b(*orders))
