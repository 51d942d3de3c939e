"""Can these judgments score a run that did not contribute to them?

Each run (or each team's runs) is left out in turn: the judgments that exist only because of it are removed, and it is
scored like an outside run. Its loss is what a new run would lose (Zobel 1998). The mean loss estimates the bias;
adding it to a new run's score corrects for it (Webber & Park 2009). The caller says how deep the pool was.

A run on a thin pool is scored in several ways, with advice which to trust. Most measures count unjudged documents as
not relevant, condensed ones remove them, bpref skips them, infAP estimates them in a sampled pool, bounds leave them
open. If these agree, the holes do not matter; if they differ, there are too few judgments to say.
"""

from __future__ import annotations

import fnmatch
from dataclasses import astuple, dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.kernels import Order
from cranfield.base.notifications import stepwise
from cranfield.base.results import Answer, Lines, Rows, Table, plain
from cranfield.base.text_layout import counted
from cranfield.evaluation.bounds import bounds_of
from cranfield.evaluation.evaluate import Evaluator
from cranfield.evaluation.partial_judgments import Partial, rows_of
from cranfield.formats import as_qrels, as_runs
from cranfield.formats.run_files import located
from cranfield.pooling.strategy import rankings as leading_of
from cranfield.stats.correlation import tau_ap_a, tau_b

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Unpack

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.base.qrels import Qrels
    from cranfield.base.results import Layout, Part
    from cranfield.base.run import Run
    from cranfield.evaluation.options import OptionsWithoutRel
    from cranfield.formats.pool_files import PoolItem
    from cranfield.pooling.strategy import Rankings


JUDGED, SPARSE = 0.95, 0.5  # shares of judged documents in the top-k: enough, and too few
UNDRAWN = 0.1  # the minimum share of -1 in the qrels of a sampled pool
READINGS = "Bpref infAP RBP(p=0.8) RBP(p=0.8,residual=True)"
SHARES = "Judged@10 Judged@100"


@dataclass(frozen=True)
class ScoreReading:
    """One measure of one run: the score, the score over judged documents only, and its lower and upper bound."""

    score: float
    condensed: float
    low: float
    high: float


@dataclass(frozen=True)
class Thin:
    """One run, scored in every way of treating unjudged documents."""

    run: str
    measures: dict[str, ScoreReading]
    bpref: float
    inferred: float  # infAP; meaningful only if the pool was sampled
    judged: float  # share of the top 10
    judged_deep: float  # share of the top 100
    rbp: float
    residual: float
    sampled: bool  # whether the qrels list pooled documents that were not judged

    @property
    def readable(self) -> str:
        """Whether the scores can be trusted: yes, with care, or not yet."""
        return "yes" if self.sampled or self.judged >= JUDGED else "with care" if self.judged >= SPARSE else "not yet"

    def advice(self, shell: bool = True) -> str:
        """Which number to trust; with `shell`, hints name options of the command line."""
        first, reading = next(iter(self.measures.items()))
        open_ = f"its unjudged documents leave {first} open from {reading.low:.4f} to {reading.high:.4f}"
        if self.sampled:
            return f"{self.run}: the pool was sampled (grades of -1): read infAP {self.inferred:.4f}; {open_}."
        if self.judged >= JUDGED and self.judged_deep >= JUDGED:
            shares = f"{self.judged:.0%} of the top 10 and {self.judged_deep:.0%} of the top 100 are judged"
            return f"{self.run}: {shares}: read {first} as it is."
        if self.judged >= JUDGED:
            return (
                f"{self.run}: the top 10 is judged ({self.judged:.0%}), the top 100 is not ({self.judged_deep:.0%}): read "
                f"measures cut at 10; for {first} also read the condensed value and bpref."
            )
        if self.judged >= SPARSE:
            return (
                f"{self.run}: {1 - self.judged:.0%} of the top 10 is unjudged: {first} is too low. Compare condensed values and "
                f"bpref, which favour no contributor as much, and have the holes judged; {open_}."
            )
        return (
            f"{self.run}: only {self.judged:.0%} of the top 10 is judged: no number says how good it is; {open_}. "
            f"Have its top judged first{' (--holes writes a pool)' if shell else ''}."
        )


@dataclass(frozen=True, repr=False)
class Readings(Rows[Thin]):
    """Several runs, each scored in every way, with advice."""

    rows: list[Thin]

    def content(self, how: Layout) -> Iterator[Part]:
        head = ["run"]
        for name in self.rows[0].measures:
            head += [name, f"{name} condensed", f"{name} low", f"{name} high"]
        head += ["bpref", "infAP", "judged@10", "judged@100", "RBP(p=0.8)", "residual"]
        rows = []
        for each in self.rows:
            values = [value for reading in each.measures.values() for value in astuple(reading)]
            values += [each.bpref, each.inferred, each.judged, each.judged_deep, each.rbp, each.residual]
            rows.append([each.run, *map(how.number, values)])
        yield Lines([each.advice() for each in self.rows])
        yield Table(head, rows)

    def plain(self, how: Layout) -> Any:
        return plain([{**vars(each), "advice": each.advice()} for each in self.rows], how.digits)


def thin(qrels: Any, runs: Any, measures: Any = "AP nDCG@10", *, seed: int = 0, **options: Any) -> Readings:
    """Score each run in every way of treating unjudged documents. `options` are those of `evaluate`.

    >>> [read] = thin({"q": {"a": 1, "b": 0}}, {"q": {"x": 3, "a": 2, "b": 1}}, "AP")
    >>> read.measures["AP"].score, read.measures["AP"].condensed, read.judged
    (0.5, 1.0, 0.6666666666666666)
    """
    judgments = as_qrels(qrels)
    opened = as_runs(runs if judgments.workspace is None else located(runs, judgments.workspace))
    whole = Evaluator(judgments, measures, **options)
    bounds = bounds_of(whole, opened, "unjudged", seed=seed)
    options["warn"] = False  # the note was given before
    condensed = Evaluator(judgments, measures, **{**options, "unjudged": "drop"}).evaluate(opened)
    others = Evaluator(judgments, READINGS, **options).evaluate(opened)
    # of the returned documents
    shares = Evaluator(judgments, SHARES, **{**options, "missing": "skip"}).evaluate(opened)
    sampled = was_sampled(judgments)
    answer = []
    for r, run in enumerate(others.runs):
        readings = {
            name: ScoreReading(
                float(bounds.scores.summary[r, m]),
                float(condensed.summary[r, m]),
                float(np.nanmean(bounds.low[r, m])),
                float(np.nanmean(bounds.high[r, m])),
            )
            for m, name in enumerate(bounds.scores.measures)
        }
        bpref, inferred, rbp, residual = others.summary[r].tolist()
        judged, deep = shares.summary[r].tolist()
        answer.append(Thin(run, readings, bpref, inferred, judged, deep, rbp, residual, sampled))
    return Readings(answer)


def was_sampled(qrels: Qrels) -> bool:
    """Whether qrels list pooled documents that were not sampled: at least a tenth of -1, and no other negative grade.

    A few grades of -1, or any of -2, mark junk in some collections.
    """
    if qrels.extras.probabilities:
        return True
    undrawn = float((qrels.grade == -1).mean()) if len(qrels) else 0.0
    return undrawn >= UNDRAWN and not bool((qrels.grade < -1).any())


def holes(
    qrels: Qrels,
    runs: Iterable[Run],
    depth: int = 10,
    order: Order = Order(),  # noqa: B008
) -> list[PoolItem]:
    """The documents to judge next: the unjudged ones in the top-k of runs, by their weight in RBP."""
    tops = leading_of(runs, depth, order=order)
    items: list[PoolItem] = []
    for topic, judged in qrels.to_dict().items():
        if topic in tops.candidates:
            candidates = tops[topic]
            weight = candidates.weighted(0.2 * 0.8 ** (candidates.rank - 1.0))
            weightiest = np.argsort(-weight, kind="stable").tolist()
            unjudged = [i for i in weightiest if judged.get(candidates.documents[i], -1.0) < 0]
            items += candidates.items(unjudged, count(1))
    return items


COLUMNS = ("left out", "drop", "drop %", "rank", "left out", "unique", "unique relevant")
SMALL, LARGE = 0.01, 0.05  # relative drops: below the first a collection is reusable, above the second it is not


@dataclass(frozen=True)
class LeftOutRun:
    """One run scored by one measure without the judgments that only its team contributed."""

    run: str
    team: str
    measure: str
    score: float
    without: float
    rank: int  # 1 is best; equal scores share the better rank
    rank_without: int
    unique: int  # judged documents that no other team returned within the depth
    unique_relevant: int

    @property
    def drop(self) -> float:
        """What the run loses; negative if it gains."""
        return self.score - self.without

    @property
    def relative(self) -> float:
        """The drop as a share of the score."""
        return self.drop / self.score if self.score else 0.0

    def cells(self, how: Layout) -> list[str]:
        """The row as cells of a table."""
        scores = how.number(self.score), how.number(self.without), how.number(self.drop, signed=True)
        counts = self.rank, self.rank_without, self.unique, self.unique_relevant
        return [self.run, self.team, *scores, f"{self.relative:+.1%}", *map(str, counts)]

    def plain(self) -> dict[str, Any]:
        """The fields of the row except the measure, with the drops."""
        fields = {name: value for name, value in vars(self).items() if name != "measure"}
        return {**fields, "drop": self.drop, "relative": self.relative}


@dataclass(frozen=True, repr=False)
class PoolReuse(Answer):
    """How scores and ranks change when each run, or each team, is left out."""

    rows: list[LeftOutRun]
    measures: list[str]
    teams: int
    depth: int
    tau: dict[str, float]  # measure → tau between the official ranking and the ranking of left-out runs
    tau_ap: dict[str, float]
    bias: dict[str, tuple[float, float]]  # measure → mean drop, and its standard error over teams
    lower_is_better: tuple[str, ...] = ()
    topics: int = 0
    judgments: int = 0

    def of(self, measure: str) -> list[LeftOutRun]:
        """The rows of one measure, best run first."""
        return sorted((row for row in self.rows if row.measure == measure), key=lambda row: (row.rank, row.run))

    def worst(self, measure: str) -> LeftOutRun:
        """The row with the largest drop."""
        sign = -1 if measure in self.lower_is_better else 1
        return max(self.of(measure), key=lambda row: sign * row.relative)

    def corrected(self, measure: str, score: float) -> float:
        """A new run's score plus the mean drop."""
        return score + self.bias[measure][0]

    def verdict(self, measure: str) -> str:
        """A sentence: whether scores of an outside run can be trusted by this measure."""
        worst, moved = self.worst(measure), [row for row in self.of(measure) if row.rank != row.rank_without]
        drops = np.array([row.relative for row in self.of(measure)])
        usual, most = float(np.median(np.abs(drops))), abs(worst.relative)  # a run with a tiny score may lose all of it
        facts = (
            f"a left-out run loses {usual:.1%} of its {measure} (median), {most:.1%} at most ({worst.run}); "
            f"{len(moved)} of {len(drops)} change rank, tau {self.tau[measure]:.3f} "
            f"({counted(self.topics, 'topic')} and {counted(self.judgments, 'judgment')})"
        )
        if most <= SMALL and not moved:
            return f"Fit for reuse: {facts}."
        if usual <= SMALL and most <= LARGE:
            return f"Fit for reuse with care: {facts}. A new run may be scored a little too low."
        if usual <= LARGE:
            return (
                f"Doubtful: {facts}. Judge what a new run brings to its top before trusting a small difference, or read "
                "measures for incomplete judgments as well."
            )
        return (
            f"Not fit for reuse as it is: {facts}. A new run is likely to be scored far too low; have its unjudged top "
            "documents judged first."
        )

    def content(self, how: Layout) -> Iterator[Part]:
        """One verdict per measure, then the tables."""
        alone = all(row.team == row.run for row in self.rows)  # every run is its own team
        lines, tables = [], []
        for measure in self.measures:
            table = [["run", "team", measure, *COLUMNS], *(row.cells(how) for row in self.of(measure))]
            table = [row[:1] + row[2:] for row in table] if alone else table
            spare = () if how.states_defaults else (table[0].index("unique"), table[0].index("drop"))
            tables.append(Table(table[0], table[1:], spare=spare))
            mean, error = self.bias[measure]
            bias = f"mean drop {how.number(mean, signed=True)} (standard error {how.number(error)})"
            lines += [self.verdict(measure), f"{bias}, tau_AP {self.tau_ap[measure]:.3f}"]
        yield Lines(lines)
        yield from tables

    def plain(self, how: Layout) -> Any:
        measures = {
            measure: {
                "verdict": self.verdict(measure),
                "tau": self.tau[measure],
                "tau_ap": self.tau_ap[measure],
                "mean_drop": self.bias[measure][0],
                "standard_error": self.bias[measure][1],
                "largest_drop": self.worst(measure).run,
                "runs": [row.plain() for row in self.of(measure)],
            }
            for measure in self.measures
        }
        return plain({"depth": self.depth, "teams": self.teams, "measures": measures}, how.digits)

    def records(self, how: Layout) -> Iterator[list[Any]]:
        """One row per run and measure."""
        *names, drop, relative = self.rows[0].plain()
        yield [*names, "measure", drop, relative]
        for row in self.rows:
            *values, drop, relative = row.plain().values()
            yield [*values, row.measure, drop, relative]


@dataclass(frozen=True, repr=False)
class OutsideRuns(Answer):
    """Runs that did not contribute, scored in every way, with the mean drop of left-out runs added to their scores."""

    read: Readings
    reuse: PoolReuse
    holes: int  # the number of documents written to the file of holes

    def content(self, how: Layout) -> Iterator[Part]:
        """The corrected scores, the readings, and the advice."""
        rows = []
        for each in self.read:
            for name, reading in each.measures.items():
                corrected = self.reuse.bias[name][0], self.reuse.corrected(name, reading.score)
                values = reading.score, *corrected, reading.low, reading.high
                rows.append([each.run, name, *map(how.number, values)])
        yield Table(["new run", "measure", "score", "mean drop", "corrected", "low", "high"], rows, names=2)
        yield from self.read.content(how)

    def plain(self, how: Layout) -> Any:
        rows = self.read.plain(how)
        for row, each in zip(rows, self.read, strict=True):
            scores = {name: self.reuse.corrected(name, reading.score) for name, reading in each.measures.items()}
            row["corrected"] = plain(scores, how.digits)
        return rows


def teams_of(runs: Iterable[str], patterns: Mapping[str, str]) -> dict[str, str]:
    """The team of each run: that of the first matching pattern, or the run itself.

    >>> teams_of(["uw1", "uw2", "kth"], {"uw*": "Waterloo"})
    {'uw1': 'Waterloo', 'uw2': 'Waterloo', 'kth': 'kth'}
    """
    return {
        run: next((team for pattern, team in patterns.items() if fnmatch.fnmatchcase(run, pattern)), run)
        for run in runs
    }


def reuse(
    qrels: Any,
    runs: Any,
    measures: Any = "AP nDCG@10",
    *,
    depth: int = 100,
    depths: Mapping[str, int] | None = None,
    tops: Rankings | None = None,
    teams: Mapping[str, str] | None = None,
    rel: float = 1,
    **options: Unpack[OptionsWithoutRel],
) -> PoolReuse:
    """Score each run without the judgments that exist only because of it, or of its team.

    `depth`, or `depths` by run name, is how deep the runs were pooled; `teams` map runs, by name or pattern, to their
    team. `tops` are the top-k of the same runs, if already read. `options` are those of `evaluate`.

    >>> found = reuse({"q": {"a": 1, "b": 1, "c": 0}}, {"one": {"q": {"a": 2, "c": 1}}, "two": {"q": {"b": 2}}}, "AP")
    >>> [(row.run, row.score, row.without, row.unique_relevant) for row in found.of("AP")]
    [('one', 0.5, 0.0, 1), ('two', 0.5, 0.0, 1)]
    """
    opened = as_runs(runs)
    partial = Partial(qrels, opened, measures, rel=None if rel == 1 else rel, **options)
    if len(partial.runs) < 2:
        raise DataError("leaving one run out needs two runs or more, found one")
    rankings = tops or leading_of(partial.opened, depth, depths, partial.evaluator.conventions.order)
    if partial.runs != rankings.runs:
        raise ConventionError("the runs and their tops must be the same runs in the same order")
    team_of = teams_of(partial.runs, teams or {})
    names = list(dict.fromkeys(team_of.values()))
    if len(names) < 2:
        raise DataError(f"leaving one team out needs two teams or more, found {names[0]!r} alone")
    number = np.array([names.index(team_of[run]) for run in partial.runs])
    full = partial.means()
    without, ranks_without, unique = _left_out(partial, full, number, _sole_team(partial.qrels, rankings, number), rel)
    ranks = _ranks(full * partial.upwards)
    rows, tau, tau_ap, bias = [], {}, {}, {}
    for m, measure in enumerate(partial.measures):
        scores, lower, up = full[:, m], without[:, m], partial.upwards[m]
        for r, run in enumerate(partial.runs):
            numbers = float(scores[r]), float(lower[r]), int(ranks[r, m]), int(ranks_without[r, m])
            rows.append(LeftOutRun(run, team_of[run], measure, *numbers, *unique[number[r]]))
        tau[measure] = tau_b(up * scores, up * lower)
        tau_ap[measure] = tau_ap_a(up * scores, up * lower)
        bias[measure] = _mean_by_team(scores - lower, number)
    falling = tuple(name for name, measure in partial.measures.items() if measure.lower_is_better)
    basis = len(partial.qrels.topics), len(partial.qrels)
    return PoolReuse(rows, list(partial.measures), len(names), max(rankings.depths), tau, tau_ap, bias, falling, *basis)


def _left_out(
    partial: Partial, full: Floats, team: npt.NDArray[Any], sole: Ints, rel: float
) -> tuple[Floats, npt.NDArray[np.int64], list[tuple[int, int]]]:
    """Runs × measures: scores and ranks without the run's team; and how many (relevant) judgments only each team contributed."""
    without, ranks = np.full_like(full, np.nan), np.zeros(full.shape, np.int64)
    first = partial.qrels.index.first == np.arange(len(sole))
    relevant = partial.qrels.grade >= rel
    unique = []
    for t in stepwise(range(team.max() + 1)):
        mine, members = sole == t, team == t
        unique.append((int((mine & first).sum()), int((mine & first & relevant).sum())))
        part = partial.means(~mine) if mine.any() else full
        without[members] = part[members]
        ranks[members] = _ranks(part * partial.upwards)[members]
    return without, ranks, unique


def _sole_team(qrels: Qrels, rankings: Rankings, team: npt.NDArray[Any]) -> Ints:
    """The only team that returned the document of each judgment within the depth; -1 if none or several did."""
    sole = np.full(len(qrels), -1, np.int32)
    for topic, rows in rows_of(qrels).items():
        if topic not in rankings.candidates:
            continue
        candidates = rankings[topic]
        low = np.full(len(candidates), np.iinfo(np.int32).max)
        high = np.full(len(candidates), -1)
        np.minimum.at(low, candidates.document, team[candidates.run])
        np.maximum.at(high, candidates.document, team[candidates.run])
        for document, row in rows.items():
            number = candidates.number.get(document)
            if number is not None and low[number] == high[number]:
                sole[row] = low[number]
    first: Ints = qrels.index.first
    return sole[first]


def _ranks(scores: Floats) -> npt.NDArray[np.int64]:
    """1 + the number of better runs, by each measure."""
    return np.asarray(1 + (scores[None, :, :] > scores[:, None, :]).sum(axis=1), np.int64)


def _mean_by_team(drops: Floats, team: npt.NDArray[Any]) -> tuple[float, float]:
    """The mean over teams of their runs' mean drop, and its standard error."""
    each = np.array([drops[team == t].mean() for t in np.unique(team)])
    error = float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else float("nan")
    return float(each.mean()), error
