"""A leaderboard with honesty: how sure each rank is, which systems cannot be told apart, and how much of each is judged.

Ranks get intervals and a chance of being first by drawing the topics again (bootstrap). Systems that share a letter
were not told apart at the level given. By default the pairs are tested as `compare` tests them, by randomisation with a
correction over all pairs; the randomised Tukey HSD and its normal twin test all pairs at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.columns import aligned, listed
from cranfield.errors import ConventionError, DataError
from cranfield.evaluate import Evaluator
from cranfield.measures import measure as _measure
from cranfield.measures.measure import micro_average, takes_topics_alone
from cranfield.scores import Scores
from cranfield.stats.testing import TESTS, TESTS_OF_MANY, TestOfMany, find_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from cranfield.kernels.table import Floats
    from cranfield.measures import Measure
    from cranfield.stats.ranks import RankIntervals
    from cranfield.stats.testing import Test

    Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Row:
    """One run on the board."""

    run: str
    rank: int  # by the mean; equal means share the best rank
    shared: bool
    low: int | None  # the interval of the rank
    high: int | None
    first: float  # the chance of being first; NaN where it cannot be had
    tier: str  # runs that share a letter were not told apart
    means: dict[str, float]
    micro: dict[str, float]  # of measures that are ratios: the ratio of the topics' sums, beside the mean of the ratios
    gmean: dict[str, float]  # the geometric mean over topics, beside the mean
    judged: float  # judged@k; NaN where no judgments were given
    topics: int  # that the run answers


@dataclass
class Leaderboard:
    """What `leaderboard` returns: rows, best first.

    >>> qrels = {str(topic): {"a": 1} for topic in range(9)}
    >>> runs = {"good": {topic: {"a": 2, "b": 1} for topic in qrels}, "bad": {topic: {"a": 1, "b": 2} for topic in qrels}}
    >>> board = leaderboard(qrels, runs, "RR")
    >>> [(row.rank, row.run, row.tier, row.first) for row in board.rows]
    [(1, 'good', 'a', 1.0), (2, 'bad', 'b', 0.0)]
    """

    rows: list[Row]
    measures: list[str]
    sort: str
    k: int
    test: str
    correction: str
    alpha: float
    level: float
    resamples: int
    seed: int
    scores: Scores = field(repr=False)
    remarks: list[str] = field(default_factory=list)

    def row(self, run: str) -> Row:
        """The row of a run."""
        found = [row for row in self.rows if row.run == run]
        if not found:
            raise DataError(f"no run {run!r} on the board; there are {listed([row.run for row in self.rows], most=10)}")
        return found[0]

    def how(self) -> str:
        """How ranks and tiers came about, in one line."""
        corrected = "" if self.test in TESTS_OF_MANY else f", {self.correction} over all pairs by this measure"
        return (
            f"by {self.sort}; ranks with {100 * self.level:g} % intervals and P(first) by bootstrap over topics "
            f"({self.resamples} draws, seed {self.seed}); runs that share a letter were not told apart at {self.alpha:g} "
            f"({self.test}{corrected})"
        )

    def notes(self, shell: bool = False) -> list[str]:
        """What was left out, what is doubtful, and where mean and geometric mean disagree."""
        said = list(self.remarks)
        shares = [row.judged for row in self.rows if row.judged == row.judged]
        if shares and max(shares) - min(shares) >= 0.1:
            least = min((row for row in self.rows if row.judged == row.judged), key=lambda row: row.judged)
            said.append(
                f"judged@{self.k} differs: {least.run} has {least.judged:.2f}, others up to {max(shares):.2f}; unjudged "
                "documents count as not relevant, so its scores may be too low"
            )
        return [*said, *self.scores.notes(shell)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; an undefined one is None."""
        return {
            "measures": self.measures,
            "sort": self.sort,
            "test": self.test,
            "correction": None if self.test in TESTS_OF_MANY else self.correction,
            "alpha": self.alpha,
            "level": self.level,
            "resamples": self.resamples,
            "seed": self.seed,
            "judged_at": self.k,
            "rows": [_plain(vars(row)) for row in self.rows],
            "mean_and_gmean_differ": {name: list(pair) for name, pair in self.scores.turned().items()},
            "notes": self.notes(),
            "conventions": self.scores.conventions.to_dict(),
        }

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        import json

        return json.dumps(self.to_dict(), indent=2)

    def to_csv(self, delimiter: str = ",") -> str:
        """A header and a row a run, numbers in full."""
        import csv
        import io

        file = io.StringIO()
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(self._cells(repr, "", apart=True))
        return file.getvalue()

    def to_tsv(self) -> str:
        """`to_csv` with tabs."""
        return self.to_csv("\t")

    def to_text(self, digits: int = 4, limit: int | None = None) -> str:
        """A table for people."""
        return "\n".join(aligned(self._cells(lambda value: f"{value:.{digits}f}", "-"), limit=limit))

    def to_markdown(self, digits: int = 4) -> str:
        """The same as a Markdown table, with how it came about and the notes below."""
        head, *rows = self._cells(lambda value: f"{value:.{digits}f}", "–")
        lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
        table = "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
        notes = "".join(f"- {note}\n" for note in self.notes())
        return f"{table}\n\n{self.how()}\n" + (f"\n{notes}" if notes else "")

    def _cells(self, show: Callable[[float], str], undefined: str, apart: bool = False) -> list[list[str]]:
        """The table as text; `apart` puts the ends of the interval into columns of their own, for programs."""

        def shown(value: float) -> str:
            return undefined if math.isnan(value) else show(value)

        extra = [(kind, name) for kind in ("micro", "gmean") for name in self._columns(kind)]
        interval = ["rank_low", "rank_high"] if apart else ["ranks"]
        head = ["run", "rank", *interval, "P(first)", "tier", *self.measures]
        head += [f"{kind}({name})" for kind, name in extra]
        judged = any(row.judged == row.judged for row in self.rows)
        rows = [[*head, f"Judged@{self.k}"] if judged else head]
        for row in self.rows:
            ends = [undefined if end is None else str(end) for end in (row.low, row.high)]
            span = ends if apart else [undefined if row.low is None else f"{row.low}–{row.high}"]
            first = undefined if math.isnan(row.first) else repr(row.first) if apart else f"{row.first:.2f}"
            rank = f"{row.rank}{'=' if row.shared and not apart else ''}"
            tier = (row.tier if apart else _short(row.tier)) or undefined
            cells = [row.run, rank, *span, first, tier, *(shown(row.means[m]) for m in self.measures)]
            cells += [shown(getattr(row, kind)[name]) for kind, name in extra]
            rows.append([*cells, shown(row.judged)] if judged else cells)
        return rows

    def _columns(self, kind: str) -> list[str]:
        """The measures that show this average in the table: of geometric means only AP's, the one the field reads."""
        known = [name for name in self.measures if any(name in getattr(row, kind) for row in self.rows)]
        if kind == "micro":
            return known
        return [name for name in known if self.scores.measures[name].name == "AP"]

    def cells(self, digits: int = 4) -> list[list[str]]:
        """The table as text: a header, and a row a run."""
        return self._cells(lambda value: f"{value:.{digits}f}", "–")

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from cranfield.compare.notebook import board_to_html

        return board_to_html(self)


def leaderboard(
    scores: Any,
    runs: Any = None,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    sort: str | Measure | None = None,
    k: int = 10,
    test: str = "randomisation",
    correction: str = "holm",
    alpha: float = 0.05,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> Leaderboard:
    """Rank runs by a measure, and say how sure the ranks are.

    Give `Scores`, or judgments, runs and measures as to `evaluate` (then judged@k and micro averages are there as
    well). `sort` is the measure that ranks, the first if not given. `test` is a paired test by
    name (randomisation, t …), whose p-values `correction` corrects over all pairs, as `compare` does, or one of all runs
    at once: randomised-tukey, tukey. `resamples` are for ranks and for randomised-tukey; `compare` knows how many it needs.
    """
    _refuse(alpha, level, k, resamples)
    chosen = telling_test(test)
    given, extras = _scored(scores, runs, measures, k, options, progress)
    m = given._measure(sort) if sort is not None else 0
    name = list(given.measures)[m]
    ordered = given.sort(name)
    remarks: list[str] = []
    sure, tiers = _sure(ordered, name, chosen, correction, alpha, level, resamples, seed, remarks, progress)
    rows = _rows(ordered, name, sure, tiers, extras, k)
    corrected = "" if isinstance(chosen, TestOfMany) else correction
    return Leaderboard(
        rows, list(given.measures), name, k, str(chosen), corrected, alpha, level, resamples, seed, ordered, remarks
    )


def _refuse(alpha: float, level: float, k: int, resamples: int) -> None:
    for name, value in (("alpha", alpha), ("level", level)):
        if not 0 < value < 1:
            raise ConventionError(f"{name} must lie between 0 and 1, got {value:g}")
    if k < 1:
        raise ConventionError(f"judged@k: k must be 1 or more, got {k}")
    if resamples < 100:
        raise ConventionError(f"resamples must be 100 or more, got {resamples}")


def _scored(
    given: Any, runs: Any, measures: Any, k: int, options: dict[str, Any], progress: Progress | None
) -> tuple[Scores, Scores | None]:
    """The scores asked for, and those that stand beside them: judged@k and micro averages."""
    if isinstance(given, Scores):
        if runs is not None or measures is not None or options:
            raise ConventionError("Scores hold their runs, measures and conventions; give no others beside them")
        return given, None
    if runs is None or measures is None:
        raise ConventionError("expected Scores, or judgments with runs and measures")
    evaluator = Evaluator(given, measures, **options)
    wanted = dict(evaluator.measures)
    beside = {f"micro {name}": micro for name, each in wanted.items() if (micro := micro_average(each)) is not None}
    beside[f"judged {k}"] = judged = _measure(f"Judged@{k}")
    evaluator.never_averaged |= {judged}  # the same whatever becomes of ties, but for those that k divides
    evaluator.measures = {**wanted, **beside}
    everything = evaluator.evaluate(runs, progress)
    evaluator.measures = wanted
    return everything.select(measures=list(wanted)), everything


def comparable(measure: Measure) -> bool:
    """Whether the measure's number for a run is a mean (or sum) over topics, so that topics can be drawn and tested."""
    usual = measure.aggregate in ("mean", "sum") and takes_topics_alone(measure)
    return usual and measure.values.get("average") != "micro"


def telling_test(name: str) -> Test | TestOfMany:
    """What can tell systems apart by their means or pair by pair, by its name; any other name is refused."""
    fit = [one.name for one in telling_tests()]
    try:
        chosen = find_test(name)
    except DataError:
        chosen = None
    if chosen is None or chosen.name not in fit:
        raise ConventionError(f"test: expected one of {', '.join(fit)}, found {name!r}")
    return chosen


def telling_tests() -> list[Test | TestOfMany]:
    """Tests of all systems at once that compare means, those that assume least first; then the paired tests with a p."""
    together = [one for one in TESTS_OF_MANY.values() if one.pairs and not one.by_order]
    paired = [one for one in TESTS.values() if one.paired and not one.bayesian]
    return [*sorted(together, key=lambda one: one.p_from == "formula"), *paired]


def upward_table(scores: Scores, measure: str, remarks: list[str]) -> Floats:
    """Topics × runs, higher always being better; topics without a value in some run are left out, and said to be."""
    m = scores._measure(measure)
    table = scores.values[:, m].T * (-1.0 if list(scores.measures.values())[m].lower_is_better else 1.0)
    there: npt.NDArray[np.bool_] = np.all(~np.isnan(table), axis=1)
    if not there.all():
        lacking = [topic for topic, kept in zip(scores.topics, there, strict=True) if not kept]
        what = f"{len(lacking)} of {len(there)} topics have no {measure} in some run"
        remark = f"{what} ({listed(lacking, most=3)}); ranks and tests leave them out"
        remarks.extend([remark] if remark not in remarks else [])
    answer: Floats = table[there]
    return answer


def _sure(
    scores: Scores,
    name: str,
    test: Test | TestOfMany,
    correction: str,
    alpha: float,
    level: float,
    resamples: int,
    seed: int,
    remarks: list[str],
    progress: Progress | None,
) -> tuple[RankIntervals | None, list[str]]:
    """Intervals of ranks, and letters; none of them, with a remark, where they cannot be had."""
    from cranfield.stats.ranks import rank_intervals

    nothing = [""] * len(scores.runs)
    if not comparable(scores.measures[name]):
        remarks.append(f"{name} is no mean over topics: there are no rank intervals and no tiers")
        return None, nothing
    table = upward_table(scores, name, remarks)
    if len(table) < 2 or len(scores.runs) < 2:
        what = "topic" if len(table) < 2 else "run"
        number = len(table) if what == "topic" else len(scores.runs)
        remarks.append(f"rank intervals and tiers take two {what}s or more; found {number}")
        return None, nothing
    sure = rank_intervals(table, level, resamples, np.random.default_rng(seed))
    return sure, _tiers(scores, table, name, test, correction, alpha, resamples, seed, remarks, progress)


def _tiers(
    scores: Scores,
    table: Floats,
    name: str,
    test: Test | TestOfMany,
    correction: str,
    alpha: float,
    resamples: int,
    seed: int,
    remarks: list[str],
    progress: Progress | None,
) -> list[str]:
    from cranfield.stats.letters import letters

    nothing = [""] * len(scores.runs)
    if isinstance(test, TestOfMany):
        rng = np.random.default_rng(seed)
        found = test(table, level=1 - alpha, resamples=resamples, rng=rng, progress=progress)
        if found.reason:
            remarks.append(f"no tiers: {found.reason}")
            return nothing
        differ = found.differ(alpha)
    try:
        if not isinstance(test, TestOfMany):
            differ = _pairwise(scores, name, str(test), correction, alpha, seed)
        np.fill_diagonal(differ, False)
        return letters(table.mean(axis=0), differ)
    except DataError as error:
        remarks.append(f"no tiers: {error}")
        return nothing


def _pairwise(scores: Scores, name: str, test: str, correction: str, alpha: float, seed: int) -> Any:
    """Which pairs differ by a paired test, corrected over all pairs."""
    from cranfield.compare.pairs import compare

    found = compare(scores.select(measures=[name]), tests=test, correction=correction, alpha=alpha, seed=seed)
    places = {run: r for r, run in enumerate(scores.runs)}
    differ = np.zeros((len(places), len(places)), bool)
    for pair in found.pairs:
        one, other = places[pair.one], places[pair.other]
        differ[one, other] = differ[other, one] = pair.corrected <= alpha
    return differ


def _rows(
    scores: Scores, name: str, sure: RankIntervals | None, tiers: list[str], beside: Scores | None, k: int
) -> list[Row]:
    means = scores.summary
    m = list(scores.measures).index(name)
    gmeans = {
        each: scores._aggregate(i, "gmean")
        for i, (each, measure) in enumerate(scores.measures.items())
        if measure.aggregate == "mean" and comparable(measure) and measure.low >= 0
    }
    answered = scores.counts()[:, 1].tolist()
    r_of = {} if beside is None else {run: r for r, run in enumerate(beside.runs)}
    rows = []
    for r, run in enumerate(scores.runs):
        equal = np.isclose(means[:, m], means[r, m], rtol=1e-12, atol=0) | (
            np.isnan(means[:, m]) & np.isnan(means[r, m])
        )
        extra = {} if beside is None else beside.means(run)
        rows.append(
            Row(
                run,
                int(np.argmax(equal)) + 1,
                int(equal.sum()) > 1,
                None if sure is None else int(sure.low[r]),
                None if sure is None else int(sure.high[r]),
                math.nan if sure is None else float(sure.first[r]),
                tiers[r],
                dict(zip(scores.measures, means[r].tolist(), strict=True)),
                {key.removeprefix("micro "): value for key, value in extra.items() if key.startswith("micro ")},
                {each: float(values[r]) for each, values in gmeans.items()},
                math.nan if beside is None else _judged(beside, r_of[run], k),
                answered[r],
            )
        )
    return rows


def _judged(scores: Scores, r: int, k: int) -> float:
    """judged@k over the topics that the run answers: what it does not return is not unjudged."""
    values = scores.values[r, list(scores.measures).index(f"judged {k}")]
    answered = (scores.retrieved[r] > 0) & ~np.isnan(values)
    return float(values[answered].mean()) if answered.any() else math.nan


def _short(tier: str) -> str:
    """Four letters or more in a row as their first and last: abcde is a–e."""
    import re
    from string import ascii_letters

    parts = re.findall(r"[A-Za-z]\d*", tier)
    if len(parts) < 4 or any(len(part) > 1 for part in parts) or tier not in ascii_letters:
        return tier
    return f"{tier[0]}–{tier[-1]}"


def _plain(values: Any) -> Any:
    """NaN as None, all the way down."""
    if isinstance(values, dict):
        return {key: _plain(value) for key, value in values.items()}
    return None if isinstance(values, float) and math.isnan(values) else values
