"""Can these judgments score a run that did not contribute to them?

Each run, or each team's runs, is left out in turn: the judgments that exist only because of it are taken away, and
it is scored like a stranger. What it loses is what a new run would lose (Zobel 1998); the mean loss is an estimate of
the bias, and adding it to a new run's score a correction for it (Webber & Park 2009). How deep the pool was is the
caller's to say: what a run returned deeper was not judged for its sake.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.answer import Answer, Lines, Table, plain
from cranfield.errors import ConventionError, DataError
from cranfield.formats import as_runs
from cranfield.pool.partial import Partial, rows_of
from cranfield.pool.rankings import rankings as leading_of
from cranfield.stats.correlation import tau_ap_a, tau_b

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Unpack

    import numpy.typing as npt

    from cranfield.answer import Layout, Part
    from cranfield.collection import Qrels
    from cranfield.evaluate import OptionsWithoutRel
    from cranfield.kernels.table import Floats, Ints
    from cranfield.pool.rankings import Rankings
    from cranfield.pool.thin import Readings


COLUMNS = ("left out", "drop", "drop %", "rank", "left out", "unique", "unique relevant")
SMALL, LARGE = 0.01, 0.05  # relative drops: below the first a collection is fit for reuse, above the second it is not


@dataclass(frozen=True)
class Left:
    """One run scored without what its team alone contributed, by one measure."""

    run: str
    team: str
    measure: str
    score: float
    without: float
    rank: int  # 1 is best; equal scores share the better rank
    rank_without: int
    unique: int  # judged documents that only this team returned within the depth
    unique_relevant: int

    @property
    def drop(self) -> float:
        """What the run loses, 0 or more where the measure is fair; negative where it gains."""
        return self.score - self.without

    @property
    def relative(self) -> float:
        """The drop as a share of the score."""
        return self.drop / self.score if self.score else 0.0

    def cells(self, how: Layout) -> list[str]:
        """The row of a table."""
        scores = how.number(self.score), how.number(self.without), how.number(self.drop, signed=True)
        counts = self.rank, self.rank_without, self.unique, self.unique_relevant
        return [self.run, self.team, *scores, f"{self.relative:+.1%}", *map(str, counts)]

    def plain(self) -> dict[str, Any]:
        """All but the measure, and what follows from it."""
        kept = {name: value for name, value in vars(self).items() if name != "measure"}
        return {**kept, "drop": self.drop, "relative": self.relative}


@dataclass(frozen=True, repr=False)
class Reuse(Answer):
    """What leaving out each run, or each team, does to scores and ranks."""

    rows: list[Left]
    measures: list[str]
    teams: int
    depth: int
    tau: dict[str, float]  # measure → tau between the official ranking and that of the scores without own contributions
    tau_ap: dict[str, float]
    bias: dict[str, tuple[float, float]]  # measure → mean drop, and its standard error over teams
    lower_is_better: tuple[str, ...] = ()

    def of(self, measure: str) -> list[Left]:
        """The rows of one measure, best run first."""
        return sorted((row for row in self.rows if row.measure == measure), key=lambda row: (row.rank, row.run))

    def worst(self, measure: str) -> Left:
        """The row with the largest drop."""
        sign = -1 if measure in self.lower_is_better else 1
        return max(self.of(measure), key=lambda row: sign * row.relative)

    def corrected(self, measure: str, score: float) -> float:
        """A new run's score with the mean drop added."""
        return score + self.bias[measure][0]

    def verdict(self, measure: str) -> str:
        """In words: whether a run that did not contribute can be trusted by this measure."""
        worst, moved = self.worst(measure), [row for row in self.of(measure) if row.rank != row.rank_without]
        drops = np.array([row.relative for row in self.of(measure)])
        usual, most = float(np.median(np.abs(drops))), abs(worst.relative)  # a run of next to nothing may lose it all
        facts = (
            f"a left-out run loses {usual:.1%} of its {measure} (median), {most:.1%} at most ({worst.run}); "
            f"{len(moved)} of {len(drops)} change rank, tau {self.tau[measure]:.3f}"
        )
        if most <= SMALL and not moved:
            return f"Fit for reuse: {facts}."
        if usual <= SMALL and most <= LARGE:
            return f"Fit for reuse with care: {facts}. A new run may be scored a little too low."
        if usual <= LARGE:
            return (
                f"Doubtful: {facts}. Judge what a new run brings to its top before trusting a small difference, or read "
                "measures for incomplete judgments beside it."
            )
        return (
            f"Not fit for reuse as it is: {facts}. A new run is likely to be scored far too low; have its unjudged top "
            "documents judged first."
        )

    def content(self, how: Layout) -> Iterator[Part]:
        """A verdict a measure, then their tables."""
        alone = all(row.team == row.run for row in self.rows)  # then teams say nothing
        lines, tables = [], []
        for measure in self.measures:
            table = [["run", "team", measure, *COLUMNS], *(row.cells(how) for row in self.of(measure))]
            table = [row[:1] + row[2:] for row in table] if alone else table
            spare = () if how.told else (table[0].index("unique"), table[0].index("drop"))
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
        """A row for each run and measure."""
        *names, drop, relative = self.rows[0].plain()
        yield [*names, "measure", drop, relative]
        for row in self.rows:
            *values, drop, relative = row.plain().values()
            yield [*values, row.measure, drop, relative]


@dataclass(frozen=True, repr=False)
class Strangers(Answer):
    """Runs that did not contribute, read in every way, with the mean drop of left-out runs added to their scores."""

    read: Readings
    reuse: Reuse
    holes: int  # documents to judge that were written

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
    """Each run's team: that of the first pattern that fits, or the run itself.

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
) -> Reuse:
    """Score each run without the judgments that exist because of it alone, or with `teams` because of its team.

    `depth`, or `depths` by the run's name, is how deep the runs were pooled; `teams` map runs, by name or pattern, to who
    sent them in. `tops` are the tops of the same runs, where they are at hand. `options` are those of `evaluate`.

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
            places = int(ranks[r, m]), int(ranks_without[r, m])
            rows.append(
                Left(run, team_of[run], measure, float(scores[r]), float(lower[r]), *places, *unique[number[r]])
            )
        tau[measure] = tau_b(up * scores, up * lower)
        tau_ap[measure] = tau_ap_a(up * scores, up * lower)
        bias[measure] = _mean_by_team(scores - lower, number)
    falling = tuple(name for name, measure in partial.measures.items() if measure.lower_is_better)
    return Reuse(rows, list(partial.measures), len(names), max(rankings.depths), tau, tau_ap, bias, falling)


def _left_out(
    partial: Partial, full: Floats, team: npt.NDArray[Any], sole: Ints, rel: float
) -> tuple[Floats, npt.NDArray[np.int64], list[tuple[int, int]]]:
    """Runs × measures: scores and ranks without the own team's judgments; how many, and how many relevant, each team has."""
    without, ranks = np.full_like(full, np.nan), np.zeros(full.shape, np.int64)
    first = partial.qrels.index.first == np.arange(len(sole))
    relevant = partial.qrels.grade >= rel
    unique = []
    for t in range(team.max() + 1):
        mine, members = sole == t, team == t
        unique.append((int((mine & first).sum()), int((mine & first & relevant).sum())))
        part = partial.means(~mine) if mine.any() else full
        without[members] = part[members]
        ranks[members] = _ranks(part * partial.upwards)[members]
    return without, ranks, unique


def _sole_team(qrels: Qrels, rankings: Rankings, team: npt.NDArray[Any]) -> Ints:
    """For each judgment the only team that returned its document within the depth; -1 where none or several did."""
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
    """1 + how many runs are better, by each measure."""
    ranks: npt.NDArray[np.int64] = 1 + (scores[None, :, :] > scores[:, None, :]).sum(axis=1)
    return ranks


def _mean_by_team(drops: Floats, team: npt.NDArray[Any]) -> tuple[float, float]:
    """The mean over teams of their runs' mean drop, and its standard error."""
    each = np.array([drops[team == t].mean() for t in np.unique(team)])
    error = float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else float("nan")
    return float(each.mean()), error
