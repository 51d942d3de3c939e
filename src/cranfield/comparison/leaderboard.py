"""A leaderboard that shows its uncertainty: rank intervals, tiers of systems, and how much of each run is judged.

Rank intervals hold for the whole board. "First in redraws" is how often a system leads when topics are resampled; it is
not the probability of being the best. Systems that share a letter do not differ significantly. By default pairs are
tested as in `compare`, by randomisation with a correction over all pairs; the randomised Tukey HSD and Tukey's normal
HSD test all pairs at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from string import ascii_letters
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Answer, Cell, Layout, Lines, Part, Table, plain
from cranfield.base.text_layout import listed, name_list
from cranfield.comparison.compare import evidence_of
from cranfield.comparison.score_tables import (
    Progress,
    ScoredRuns,
    comparable,
    complete,
    evaluate_with_judged,
    lists_nonrelevant,
    too_few_topics,
    upward_table,
)
from cranfield.comparison.settings import DEFAULT_TEST, default_test, find_named, refuse_shares, refuse_unweighable
from cranfield.evaluation.evaluate import Evaluator
from cranfield.evaluation.scores import Scores
from cranfield.stats.many_groups import letters
from cranfield.stats.rank_intervals import RANK_INTERVALS, RankInterval, first_in_redraws
from cranfield.stats.tests_by_name import TESTS, TESTS_OF_MANY, Test, TestOfMany, find_test
from cranfield.stats.weighted_means import weighted_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Unpack

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats
    from cranfield.evaluation.measures import Measure
    from cranfield.evaluation.options import OptionsWithoutWeights

    Ranks = tuple[int | None, int | None, float]  # the interval of a rank, and how often the run is first in redraws

MOST_TIERS, MOST_NAMED = 4, 6  # in a sentence: tiers, and runs of each
UNRANKED: Ranks = None, None, math.nan
FEW_TOPICS = 50  # with fewer topics, "first in redraws" says little


@dataclass(frozen=True)
class LeaderboardRow:
    """One run on the board."""

    run: str
    rank: int  # by the mean; equal means share the best rank
    shared: bool
    low: int | None  # the interval of the rank
    high: int | None
    first_in_redraws: float  # how often it leads when topics are resampled; NaN if unknown
    tier: str  # runs that share a letter do not differ significantly
    means: dict[str, float]
    micro: dict[str, float]  # for measures that are ratios: the ratio of sums over all topics
    gmean: dict[str, float]  # the geometric mean over topics, beside the mean
    judged: float  # judged@k; NaN where no judgments were given
    topics: int  # the number of topics that the run answers
    weighted: dict[str, float] = field(default_factory=dict)  # weighted means, if any; they decide the ranks


@dataclass(frozen=True)
class Leaderboard(Answer):
    """The result of `leaderboard`: rows, best first.

    >>> qrels = {str(topic): {"a": 1} for topic in range(9)}
    >>> runs = {"good": {topic: {"a": 2, "b": 1} for topic in qrels}, "bad": {topic: {"a": 1, "b": 2} for topic in qrels}}
    >>> board = leaderboard(qrels, runs, "RR")
    >>> [(row.rank, row.run, row.tier, (row.low, row.high)) for row in board.rows]
    [(1, 'good', 'a', (1, 1)), (2, 'bad', 'b', (2, 2))]
    """

    ascii_json: ClassVar[bool] = True

    rows: list[LeaderboardRow]
    measures: list[str]
    sort: str
    k: int
    test: str
    correction: str  # empty if the test covers all runs at once
    alpha: float
    level: float
    rank_intervals: str  # simultaneous, marginal or bootstrap
    rank_draws: int  # redraws for the rank intervals; 0 without intervals
    resamples: int
    seed: int
    scores: Scores
    remarks: list[str] = field(default_factory=list)
    by_design: bool = False  # whether rank intervals come from tests of all pairs, by the design of a sample of topics

    def row(self, run: str) -> LeaderboardRow:
        """The row of a run."""
        rows = {row.run: row for row in self.rows}
        if run not in rows:
            raise DataError(f"no run {run!r} on the board; there are {listed(list(rows), most=10)}")
        return rows[run]

    def how(self) -> str:
        """How ranks and tiers were computed, in one line."""
        corrected = f", {self.correction} over all pairs by this measure" if self.correction else ""
        kind = RANK_INTERVALS[self.rank_intervals]
        ranked = f"by {self.scores.weighted_name(self.sort)}"
        if self.by_design:
            ranked += (
                f"; ranks: {100 * self.level:g} % intervals {kind.promise} ({self.test} tests of all pairs by the variance of "
                "the sampling design, Holm)"
            )
        if self.rank_draws:
            source = f"{kind.way}, {self.rank_draws} redraws of the topics, seed {self.seed}"
            ranked += (
                f"; ranks: {100 * self.level:g} % intervals {kind.promise} ({kind.name}: {source}); first in redraws: "
                f"the share of {self.resamples} redraws that the run leads, not its chance of being best"
            )
        return f"{ranked}; runs that share a letter were not told apart at {self.alpha:g} ({self.test}{corrected})"

    def notes(self, shell: bool = False) -> list[str]:
        """Notes: what was left out, differences in judged@k, and where mean and geometric mean disagree."""
        notes = list(self.remarks)
        shares = {row.run: row.judged for row in self.rows if row.judged == row.judged}
        if lists_nonrelevant(self.scores) and shares and max(shares.values()) - min(shares.values()) >= 0.1:
            least = min(shares, key=lambda run: shares[run])
            notes.append(
                f"judged@{self.k} differs: {least} has {shares[least]:.2f}, others up to {max(shares.values()):.2f}; "
                "unjudged documents count as not relevant, so its scores may be too low"
            )
        return [*notes, *self.scores.notes(shell)]

    def table(self, how: Layout) -> Table:
        """One row per run: rank interval, means, micro averages and geometric means, and judged@k."""
        beside = self._beside()
        best = {name: self._best(name) for name in self.measures}
        rows = []
        for i, row in enumerate(self.rows):
            span = how.undefined if row.low is None else f"{row.low}–{row.high}"
            rank = f"{row.rank}{'=' if row.shared else ''}"
            cells = [Cell(row.run), Cell(rank, float(row.rank)), Cell(span, row.low)]
            cells += [how._replace(digits=2).cell(row.first_in_redraws), Cell(_short(row.tier) or how.undefined)]
            for name, mean in row.means.items():
                cells.append(Cell(how.number(mean), mean, best=len(self.rows) > 1 and mean == best[name]))
            rows.append([*cells, *(how.cell(column[i]) for column in beside.values())])
        means = map(self.scores.unweighted_name, self.measures)
        head = ["run", "rank", "ranks", "first in redraws", "tier", *means, *beside]
        redraws = head.index("first in redraws")
        spare = [] if how.verbose else [*range(len(head) - len(beside), len(head)), redraws]
        return Table(head, rows, title=f"Runs {self.how()}", spare=spare)

    def verdict(self) -> str:
        """Who leads, how many of the others differ significantly from the leader, and on how much that is based."""
        return f"{self._lead()} ({self.scores.judgments_in_words()})"

    def _lead(self) -> str:
        few = too_few_topics(self.scores, len(self.rows), self.alpha)
        if few:
            return few
        first, *others = self.rows
        ahead = [row.run for row in self.rows if row.rank == first.rank]
        value = (first.weighted or first.means)[self.sort]  # what the ranks go by
        mean = f"with {self.scores.weighted_name(self.sort)} {value:.4f}"
        lead = f"{first.run} leads {mean}" if len(ahead) == 1 else f"{name_list(ahead)} share the lead {mean}"
        if not first.tier or not others:
            return lead
        apart = sum(not set(row.tier) & set(first.tier) for row in others)
        number = "all" if apart == len(others) > 1 else f"{apart or 'none'} of {len(others)}" if len(others) > 1 else ""
        if not number:
            return f"{lead}; {others[0].run} {'is' if apart else 'is not'} told apart from it"
        return f"{lead}; {number} others are told apart"

    def tiers(self) -> dict[str, list[str]]:
        """The runs of each letter, best first."""
        letters_ = dict.fromkeys(letter for row in self.rows for letter in row.tier)
        return {letter: [row.run for row in self.rows if letter in row.tier] for letter in letters_}

    def tiers_in_words(self) -> str:
        """Which runs do not differ significantly, the best first; empty if there are no tiers."""
        tiers = self.tiers()
        open_ = {letter: runs for letter, runs in tiers.items() if len(runs) > 1}
        if not tiers or len(self.rows) < 2:
            return ""
        if not open_:
            return "Each run is told apart from every other"
        clauses = [f"{_few_of(runs)} are not told apart (tier {letter})" for letter, runs in open_.items()]
        more = f"; {len(clauses) - MOST_TIERS} further tiers" if len(clauses) > MOST_TIERS else ""
        return "; ".join(clauses[:MOST_TIERS]) + more

    @property
    def usual(self) -> bool:
        """Whether all settings are defaults."""
        settings = self.sort, self.test, self.correction, self.alpha, self.level, self.rank_intervals, self.seed
        default = default_test(self.scores.weights is not None and self.scores.weights.designed)
        return settings == (self.measures[0], default, "holm", 0.05, 0.95, "simultaneous", 0)

    def _beside(self) -> dict[str, list[float]]:
        """The columns after the means, with one number per row.

        The geometric mean is shown for AP only, where it is in common use.
        """
        first = self.rows[0]
        by = [name for name in first.weighted if any(row.weighted[name] == row.weighted[name] for row in self.rows)]
        columns = {self.scores.weighted_name(name): [row.weighted[name] for row in self.rows] for name in by}
        columns |= {f"micro({name})": [row.micro[name] for row in self.rows] for name in first.micro}
        read = [name for name in first.gmean if self.scores.measures[name].name == "AP"]
        columns |= {f"gmean({name})": [row.gmean[name] for row in self.rows] for name in read}
        judged = [row.judged for row in self.rows]
        return columns | ({f"Judged@{self.k}": judged} if any(share == share for share in judged) else {})

    def _best(self, name: str) -> float:
        means = [row.means[name] for row in self.rows if row.means[name] == row.means[name]]
        return (min if self.scores.measures[name].lower_is_better else max)(means, default=math.nan)

    def content(self, how: Layout) -> Iterator[Part]:
        if how.medium == "text":
            yield self.verdict()
        yield self.table(how)
        if how.medium == "html":  # there it is the caption
            return
        if how.states_defaults or not self.usual:
            yield self.how()
        elif self.rank_draws or self.by_design:
            intervals = f"ranks: simultaneous {100 * self.level:g}% intervals"
            yield f"{intervals}; a shared tier letter: not told apart at {self.alpha:g}"
        if self.scores.weights is not None and (
            how.medium != "text" or self.scores.external
        ):  # else see the last lines
            yield self.scores.weights.in_words(self.scores.topics)
        if how.medium == "text" and not self.scores.external and (how.states_defaults or not self.scores.usual):
            yield Lines(self.scores.basis(), dim=True)

    def plain(self, how: Layout) -> dict[str, Any]:
        weights, numbers = self.scores.weights, ("alpha", "level", "rank_intervals", "rank_draws", "resamples", "seed")
        rows: list[dict[str, Any]] = plain(self.rows, how.digits)
        return {
            **{name: getattr(self, name) for name in ("measures", "sort", "test")},
            "correction": self.correction or None,
            **{name: getattr(self, name) for name in numbers},
            "judged_at": self.k,
            **({} if weights is None else {"weights": weights.plain(self.scores.topics)}),
            "rows": [{name: value for name, value in row.items() if name != "weighted" or value} for row in rows],
            "mean_and_gmean_differ": {name: list(pair) for name, pair in self.scores.reversals().items()},
            "notes": self.notes(),
            "conventions": self.scores.conventions.to_dict(),
        }

    def records(self, how: Layout) -> Iterator[list[Any]]:
        beside = self._beside()
        yield ["run", "rank", "rank_low", "rank_high", "first_in_redraws", "tier", *self.measures, *beside]
        for i, row in enumerate(self.rows):
            sure = [row.rank, row.low, row.high, row.first_in_redraws, row.tier]
            yield [row.run, *sure, *row.means.values(), *(column[i] for column in beside.values())]


def leaderboard(
    scores: Any,
    /,
    runs: Any = None,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    sort: str | Measure | None = None,
    k: int = 10,
    test: str | None = None,
    correction: str = "holm",
    alpha: float = 0.05,
    level: float = 0.95,
    rank_intervals: str = "simultaneous",
    resamples: int = 10_000,
    seed: int = 0,
    progress: Progress | None = None,
    weights: Any = None,
    **options: Unpack[OptionsWithoutWeights],
) -> Leaderboard:
    """Rank runs by a measure, with intervals of the ranks.

    Give `Scores`, or judgments, runs and measures as to `evaluate` (then the board also has judged@k and micro
    averages). `sort` is the measure that ranks, the first if not given. `test` is a paired test by name (default:
    randomisation, or t with design weights), whose p-values `correction` corrects over all pairs, as `compare` does, or
    a test of all runs at once: randomised-tukey, tukey. `rank_intervals` hold at `level` for all runs at once
    (simultaneous) or for each run alone (marginal); those by plain bootstrap do not hold where runs are close.
    `resamples` is the number for ranks and for randomised-tukey; paired tests use as many as `compare` needs. `weights`
    give the weight of each topic, as in `compare`: weighted means then rank and separate the runs, and are shown next to
    the others. With design weights, rank intervals come from t tests of all pairs.
    """
    refuse_shares(alpha=alpha, level=level)
    refuse_below(1, **{"judged@k: k": k})
    refuse_below(100, resamples=resamples)
    refuse_below(0, seed=seed)
    pair_test, kind = test_of_pairs(test or DEFAULT_TEST), find_named(RankInterval.named, rank_intervals)
    scored = _scored(scores, runs, measures, k, {**options, "weights": weights}, progress)
    by = scored.scores.weights
    if by is not None:
        pair_test = test_of_pairs(test or default_test(by.designed))
        refuse_unweighable([pair_test], by.by, by.designed)
        if by.designed and kind.name != "simultaneous":
            raise ConventionError(
                f"rank_intervals: with design weights there are simultaneous ones only, got {kind.name}"
            )
    name = list(scored.scores.measures)[scored.scores.sort_column(sort) if sort is not None else 0]
    ordered = scored.scores.sort(name)
    remarks: list[str] = []
    ranks, tiers, draws = [UNRANKED] * len(ordered.runs), [""] * len(ordered.runs), 0
    table = _rankable(ordered, name, remarks)
    by_design = by is not None and by.designed
    if table is not None and by_design:
        reason = _untestable(ordered, name)
        if reason:
            remarks.append(f"no rank intervals and no tiers: {reason}")
        else:
            apart = _apart_by_pairs(ordered, name, str(pair_test), correction, alpha, seed, remarks)
            tiers = letters(ordered.ranking(list(ordered.measures).index(name)) * _up(ordered, name), apart)
            ranks = _ranks_by_pairs(ordered, name, str(pair_test), level, seed)
    elif table is not None:
        w = None if by is None else by.of(ordered.topics)[complete(ordered, name)]
        low, high, draws = kind.ranges(table, level, resamples, np.random.default_rng(seed), w)
        first = first_in_redraws(table, resamples, np.random.default_rng(seed), w)
        ranks = list(zip(low.tolist(), high.tolist(), first.tolist(), strict=True))
        remarks += _few(len(table), kind)
        try:
            if isinstance(pair_test, TestOfMany):
                apart = _apart_at_once(pair_test, table, alpha, resamples, seed, progress)
            else:
                apart = _apart_by_pairs(ordered, name, str(pair_test), correction, alpha, seed, remarks)
            tiers = letters(table.mean(axis=0) if w is None else weighted_mean(table.T, w), apart)
        except DataError as error:
            remarks.append(f"no tiers: {error}")
    rows = _rows(ordered, name, ranks, tiers, scored, f"Judged@{k}")
    corrected = "" if isinstance(pair_test, TestOfMany) else correction
    settings = str(pair_test), corrected, alpha, level, kind.name, draws, resamples, seed
    by_design = by_design and any(row.low is not None for row in rows)
    return Leaderboard(rows, list(ordered.measures), name, k, *settings, ordered, remarks, by_design)


def _scored(
    source: Any, runs: Any, measures: Any, k: int, options: dict[str, Any], progress: Progress | None
) -> ScoredRuns:
    """The scores; with judged@k and micro averages if they are computed now."""
    if isinstance(source, Scores):
        weights = options.pop("weights")
        if runs is not None or measures is not None or options:
            raise ConventionError("Scores already have runs, measures and conventions; give no others")
        return ScoredRuns(source if weights is None else source.weighed(weights), {}, {})
    if runs is None or measures is None:
        raise ConventionError("expected Scores, or judgments with runs and measures")
    return evaluate_with_judged(Evaluator(source, measures, **options), runs, [k], progress)


def test_of_pairs(name: str) -> Test | TestOfMany:
    """Find a test that can separate systems by their means or pair by pair; other names are refused."""
    fit = [one.name for one in tests_of_pairs()]
    try:
        test = find_test(name)
    except DataError:
        test = None
    if test is None or test.name not in fit:
        raise ConventionError(f"test: expected one of {', '.join(fit)}, found {name!r}")
    return test


def tests_of_pairs() -> list[Test | TestOfMany]:
    """Tests of all systems at once that compare means (fewest assumptions first), then paired tests with p-values."""
    together = [one for one in TESTS_OF_MANY.values() if one.pairs and not one.by_order]
    paired = [one for one in TESTS.values() if one.paired and not one.bayesian]
    return [*sorted(together, key=lambda one: one.p_from == "formula"), *paired]


def _few(topics: int, kind: RankInterval) -> list[str]:
    """A caution about "first in redraws" if there are few topics."""
    if topics >= FEW_TOPICS:
        return []
    hint = "first in redraws is a weak hint (of eight equal runs the first leads in half of the redraws)"
    advice = "; go by ranks" if kind.holds else ", and so are ranks"
    return [f"{topics} topics, fewer than {FEW_TOPICS}: {hint}{advice}"]


def _rankable(scores: Scores, name: str, remarks: list[str]) -> Floats | None:
    """Topics × runs for resampling; None with a remark if there are no rank intervals."""
    if not comparable(scores.measures[name]):
        remarks.append(f"{name} is not a mean over topics: there are no rank intervals and no tiers")
        return None
    table = upward_table(scores, name, remarks)
    for what, number in (("topics", len(table)), ("runs", len(scores.runs))):
        if number < 2:
            remarks.append(f"rank intervals and tiers take two {what} or more; found {number}")
            return None
    return table


def _apart_at_once(
    test: TestOfMany, table: Floats, alpha: float, resamples: int, seed: int, progress: Progress | None
) -> npt.NDArray[np.bool_]:
    """Which pairs differ by a test of all runs at once."""
    rng = np.random.default_rng(seed)
    outcome = test(table, level=1 - alpha, resamples=resamples, rng=rng, progress=progress)
    if outcome.reason:
        raise DataError(outcome.reason)
    apart: npt.NDArray[np.bool_] = outcome.differ(alpha)
    np.fill_diagonal(apart, False)
    return apart


def _untestable(scores: Scores, name: str) -> str:
    """Why a sample of topics gives no test of a difference by this measure; empty if it does."""
    there = np.flatnonzero(complete(scores, name)).tolist()
    sample = None if scores.weights is None else scores.weights.sample([scores.topics[t] for t in there])
    return "" if sample is None else sample.no_interval.replace("pair", "topic")


def _ranks_by_pairs(scores: Scores, name: str, test: str, level: float, seed: int) -> list[Ranks]:
    """The interval of each rank from tests of all pairs: 1 + the runs shown to be better, to all − the runs shown to be worse.

    Holm's correction over all pairs makes the intervals hold for all ranks at once.
    """
    apart = _apart_by_pairs(scores, name, test, "holm", 1 - level, seed, [])
    means = scores.ranking(list(scores.measures).index(name)) * _up(scores, name)
    better, worse = ((apart & way).sum(axis=1) for way in (means > means[:, None], means < means[:, None]))
    spans = zip((1 + better).tolist(), (len(means) - worse).tolist(), strict=True)
    return [(low, high, math.nan) for low, high in spans]


def _up(scores: Scores, name: str) -> float:
    """1 if higher is better, -1 if lower is better."""
    return -1.0 if scores.measures[name].lower_is_better else 1.0


def _apart_by_pairs(
    scores: Scores, name: str, test: str, correction: str, alpha: float, seed: int, remarks: list[str]
) -> npt.NDArray[np.bool_]:
    """Which pairs differ by a paired test, corrected over all pairs; without pairs whose test contradicts the mean."""
    place = {run: r for r, run in enumerate(scores.runs)}
    apart = np.zeros((len(place), len(place)), np.bool_)
    scored = ScoredRuns(scores.select(measures=[name]), {}, {})
    evidence = evidence_of(scored, test, correction, alpha=alpha, seed=seed)
    for pair in evidence.pairs:
        one, other = place[pair.one], place[pair.other]
        apart[one, other] = apart[other, one] = evidence.significant(pair) and not pair.contradictory
    torn = [pair for pair in evidence.pairs if evidence.contradictory(pair)]
    if torn:
        some = f"{len(torn):,} pairs differ by {test} against their means"
        remarks.append(f"{some}, as {torn[0].other} and {torn[0].one} do; their letters do not tell them apart")
    return apart


def _rows(
    scores: Scores,
    name: str,
    ranks: list[Ranks],
    tiers: list[str],
    scored: ScoredRuns,
    judged: str,
) -> list[LeaderboardRow]:
    means = scores.summary
    ranked = scores.ranking(list(scores.measures).index(name))
    gmeans = {
        each: scores._aggregate(i, "gmean")
        for i, (each, measure) in enumerate(scores.measures.items())
        if measure.aggregate == "mean" and comparable(measure) and measure.low >= 0
    }
    answered, weighted = scores.counts()[:, 1].tolist(), scores.weights is not None
    rows = []
    for r, run in enumerate(scores.runs):
        equal = np.isclose(ranked, ranked[r], rtol=1e-12, atol=0) | (np.isnan(ranked) & np.isnan(ranked[r]))
        rows.append(
            LeaderboardRow(
                run,
                int(np.argmax(equal)) + 1,
                int(equal.sum()) > 1,
                *ranks[r],
                tiers[r],
                means=dict(zip(scores.measures, means[r].tolist(), strict=True)),
                micro={each: values[run] for each, values in scored.micro.items()},
                gmean={each: float(values[r]) for each, values in gmeans.items()},
                judged=scored.judged.get(judged, {}).get(run, math.nan),
                topics=answered[r],
                weighted=dict(zip(scores.measures, scores.weighted[r].tolist(), strict=True)) if weighted else {},
            )
        )
    return rows


def _few_of(runs: list[str]) -> str:
    """The names for a sentence: all if they are few, else the first ones and the number of others."""
    if len(runs) <= MOST_NAMED:
        return name_list(runs)
    return f"{', '.join(runs[: MOST_NAMED - 1])} and {len(runs) - MOST_NAMED + 1} more"


def _short(tier: str) -> str:
    """The letters of a tier, shortened to a range if there are four or more in a row: abcde becomes a–e."""
    return f"{tier[0]}–{tier[-1]}" if len(tier) >= 4 and tier in ascii_letters else tier
