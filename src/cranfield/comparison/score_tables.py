"""The scores that a comparison needs: with judged@k and micro averages, groups of runs, and tables of topics × runs.

Judged@k and micro averages are computed in the same pass over the runs. Tests need a table of topics × runs, which
exists only for measures that are means over topics.

A group combines runs that differ only by chance, such as by the seed of a training. Groups are compared over topics and
over seeds: the average of five lucky seeds is not the system, so the spread over seeds belongs to the error of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.registry import Registry
from cranfield.base.text_layout import listed
from cranfield.evaluation.measures import Measure, measure
from cranfield.evaluation.measures.definition import micro_average, takes_topics_alone
from cranfield.formats.streams import run_name
from cranfield.stats.method import SignificanceTest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats
    from cranfield.evaluation.evaluate import Evaluator
    from cranfield.evaluation.hits import Hits
    from cranfield.evaluation.scores import Scores
    from cranfield.stats.sampled_means import ProbabilitySample


Progress: TypeAlias = "Callable[[int, int | None], None]"
Shares: TypeAlias = "dict[str, dict[str, float]]"  # a measure → run → a number


@dataclass(frozen=True)
class ScoredRuns:
    """Scores with judged@k and micro averages."""

    scores: Scores
    judged: Shares  # Judged@k → run → share of judged documents among its first k
    micro: Shares  # measure that is a ratio → run → micro average


def evaluate_with_judged(
    evaluator: Evaluator, runs: Any, depths: Iterable[int], progress: Progress | None = None
) -> ScoredRuns:
    """Score runs, together with judged@k at these depths and the micro averages of ratios."""
    own = evaluator.measures
    micros = {name: micro_average(each) for name, each in own.items()}
    ratios = {name: micro for name, micro in micros.items() if micro is not None and micro not in own.values()}
    judged = {f"Judged@{k}": measure(f"Judged@{k}") for k in depths}
    added = {name: each for name, each in judged.items() if name not in own}
    evaluator.in_order_given(added.values())  # ties matter only for groups that the cut-off divides
    evaluator.measures = {**own, **added, **{f"micro {name}": each for name, each in ratios.items()}}
    everything = evaluator.evaluate(runs, progress)
    evaluator.measures = own
    sums = {name: {run: everything.mean(f"micro {name}", run) for run in everything.runs} for name in ratios}
    return ScoredRuns(everything.select(measures=list(own)), _shares(everything, judged), sums)


def depths(measures: Mapping[str, Measure]) -> list[int]:
    """The depths for judged@k: the cut-offs of the measures, or 10."""
    return sorted({int(each.values.get("k") or 10) if each.at == "k" else 10 for each in measures.values()})


def judged_shares(scores: Scores) -> Shares:
    """Judged@k of runs that were scored before, at the depths of the measures; empty if unknown.

    It is taken from the scores if they contain it; otherwise the runs are read again, if possible.
    """
    measures = {f"Judged@{k}": measure(f"Judged@{k}") for k in depths(scores.measures)}
    shares = _shares(scores, [name for name in measures if name in scores.measures])
    lacking = {name: each for name, each in measures.items() if name not in shares}
    if not lacking or scores._origin is None:
        return shares
    evaluator, sources = scores._origin
    for run, (source, place) in sources.items():
        hits = evaluator.hits(evaluator.open(source)[place])
        for name, judged_at_k in lacking.items():
            shares.setdefault(name, {})[run] = mean_of_answered(evaluator, hits, judged_at_k)
    return shares


def mean_of_answered(evaluator: Evaluator, hits: Hits, share: Measure) -> float:
    """The mean of a measure over the judged topics that a run answers; NaN if it answers none."""
    return _mean(share(hits)[evaluator.topic_mask & (hits.retrieved > 0)])


def lists_nonrelevant(scores: Scores) -> bool:
    """Whether some documents were judged not relevant; if not, unjudged and rejected documents look the same."""
    return scores._origin is None or scores._origin[0].lists_nonrelevant


def _shares(scores: Scores, names: Iterable[str]) -> Shares:
    """For each run, the mean over the topics that it answers."""
    shares: Shares = {}
    for name in names:
        column = scores.values[:, list(scores.measures).index(name)]
        shares[name] = {run: _mean(column[r][scores.retrieved[r] > 0]) for r, run in enumerate(scores.runs)}
    return shares


def _mean(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


# topic by topic


def no_mean(scores: Scores, name: str) -> str:
    """The reason why a measure is not a mean over topics; empty if it is one."""
    measure = scores.measures[name]
    if name in scores.pooled and measure.aggregate == "mean":
        return f"{name} is a micro average over all topics, so single topics have no difference"
    if not takes_topics_alone(measure):
        return f"{name} has its own aggregate over topics, so single topics have no difference"
    if measure.aggregate not in ("mean", "sum"):
        return f"{name} is not a mean over topics; compare the inner measure to test its mean"
    return ""


def comparable(measure: Measure) -> bool:
    """Whether the measure is a mean (or sum) over topics, so that topics can be resampled and tested."""
    usual = measure.aggregate in ("mean", "sum") and takes_topics_alone(measure)
    return usual and measure.values.get("average") != "micro"


def complete(scores: Scores, name: str) -> npt.NDArray[np.bool_]:
    """A mask of the topics that have a value in every run."""
    return np.asarray(~np.isnan(scores.values[:, scores._measure(name)]).any(axis=0), np.bool_)


def upward_table(scores: Scores, name: str, remarks: list[str]) -> Floats:
    """Topics × runs, signed so that higher is better; topics without a value in some run are left out with a remark."""
    m = scores._measure(name)
    table = scores.values[:, m].T * (-1.0 if list(scores.measures.values())[m].lower_is_better else 1.0)
    there = complete(scores, name)
    if not there.all():
        lacking = [topic for topic, has_value in zip(scores.topics, there, strict=True) if not has_value]
        what = f"{len(lacking)} of {len(there)} topics have no {name} in some run"
        remark = f"{what} ({listed(lacking, most=3)}); ranks and tests leave them out"
        remarks.extend([remark] if remark not in remarks else [])
    return np.asarray(table[there], np.float64)


class OverSeeds(SignificanceTest):
    """Is the mean difference 0, measured against the spread over topics and over seeds?"""

    registry: ClassVar[Registry[OverSeeds]] = Registry("test of groups of runs", "tests", refusal=DataError)

    name = "seeds"
    title = "crossed t over topics and seeds"
    p_from = "formula"


SEEDS = OverSeeds.name


@dataclass(frozen=True)
class RunGroup:
    """Several runs of one system: its name and its runs."""

    name: str
    runs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Systems:
    """The systems to compare: scores, and groups of runs of one system."""

    scores: Scores
    groups: list[RunGroup]

    def system_names(self) -> list[str]:
        """The names of the systems: each run outside groups, and each group in place of its first run."""
        owner = {run: group.name for group in self.groups for run in group.runs}
        return list(dict.fromkeys(owner.get(run, run) for run in self.scores.runs))

    @property
    def weighed_by(self) -> str:
        """The name of the topic weights; empty if there are none."""
        return "" if self.scores.weights is None else self.scores.weights.by

    @property
    def topic_weights(self) -> Floats | None:
        """The weight of each topic; None without weights."""
        return self.weights_of(self.scores.topics)

    def weights_of(self, topics: list[str]) -> Floats | None:
        """The weights of some topics; None without weights."""
        return None if self.scores.weights is None else self.scores.weights.of(topics)

    @property
    def designed(self) -> bool:
        """Whether the weights come from the design of a sample of topics."""
        return self.scores.weights is not None and self.scores.weights.designed

    def sample_of(self, topics: list[str]) -> ProbabilitySample | None:
        """How some topics were sampled; None without design weights."""
        return None if self.scores.weights is None else self.scores.weights.sample(topics)

    def lower_is_better(self, measure: str) -> bool:
        """Whether a lower value of this measure is better."""
        return self.scores.measures[measure].lower_is_better

    def runs_of(self, name: str) -> tuple[str, ...]:
        """The runs of a group, or the run itself."""
        return next((group.runs for group in self.groups if group.name == name), (name,))

    def has_seeds(self, *names: str) -> bool:
        """Whether one of these systems is a group of several runs."""
        return any(len(self.runs_of(name)) > 1 for name in names)

    def mean(self, name: str, measure: str) -> float:
        """The mean of a run by a measure, or the mean over the runs of a group."""
        return float(np.mean([self.scores.mean(measure, run) for run in self.runs_of(name)]))

    def spreads(self) -> Iterator[tuple[RunGroup, str, Floats, float, float]]:
        """For each group and measure: the mean of each run, their mean, their standard deviation (NaN for one run)."""
        for group in self.groups:
            rows = [self.scores.runs.index(run) for run in group.runs]
            for m, name in enumerate(self.scores.measures):
                means = self.scores.summary[rows, m]
                deviation = float(np.std(means, ddof=1)) if len(means) > 1 else float("nan")
                yield group, name, means, float(np.mean(means)), deviation

    def table(self, name: str, measure: str) -> Floats:
        """Topics × runs: the values of a run, or of all runs of a group; NaN for missing values."""
        index = list(self.scores.measures).index(measure)
        rows = [self.scores.runs.index(run) for run in self.runs_of(name)]
        return self.scores.values[rows, index].T

    def common_tables(self, one: str, other: str, measure: str) -> tuple[Floats, Floats]:
        """The tables of two systems, on the topics for which all their runs have a value."""
        a, b = self.table(one, measure), self.table(other, measure)
        there = ~(np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1))
        return a[there], b[there]

    def values(self, name: str, measure: str) -> Floats:
        """The value of each topic of a run, or the mean over the runs of a group; NaN if a run has none."""
        return np.asarray(self.table(name, measure).mean(axis=1), np.float64)


def parse_groups(typed: Any) -> dict[str, str | tuple[str, ...]]:
    """Read groups: one or several patterns, `NAME=PATTERN`, or a mapping of names to patterns or runs.

    >>> parse_groups(["dense.seed*.run", "sparse=splade-?"])
    {'dense.seed*': 'dense.seed*', 'sparse': 'splade-?'}
    """
    if typed is None:
        return {}
    if isinstance(typed, Mapping):
        return {
            str(name): selection if isinstance(selection, str) else tuple(selection)
            for name, selection in typed.items()
        }
    texts: Iterable[str] = [typed] if isinstance(typed, str) else typed
    answer: dict[str, str | tuple[str, ...]] = {}
    for text in texts:
        name, equals, pattern = text.partition("=")
        pattern = run_name(pattern if equals else text)
        answer[name if equals else pattern] = pattern
    return answer


def group_runs(runs: list[str], typed: Any) -> list[RunGroup]:
    """The requested groups with their runs; a run can be in one group only."""
    answer: list[RunGroup] = []
    owner: dict[str, str] = {}
    for name, selection in parse_groups(typed).items():
        if isinstance(selection, str):
            members = tuple(run for run in runs if fnmatchcase(run, selection))
        else:
            unknown = [run for run in selection if run not in runs]
            if unknown:
                raise DataError(f"group {name}: no run {unknown[0]!r}; there are {listed(runs, most=10)}")
            members = selection
        if not members:
            raise DataError(f"group {name}: no run matches {selection!r}; runs are {listed(runs, most=10)}")
        for run in members:
            if run in owner:
                raise DataError(f"run {run!r} is in two groups, {owner[run]} and {name}; expected one")
            owner[run] = name
        if name in runs and name not in members:
            raise DataError(f"group {name}: a run has this name too; give the group another: NAME=PATTERN")
        answer.append(RunGroup(name, members))
    return answer


def fewest_topics(runs: int, alpha: float) -> int:
    """The fewest topics on which any two of these runs could be told apart.

    If a run is better on each of n topics, the randomisation test still gives a p-value of 2 / 2^n. Corrected over all
    pairs of runs, this must not exceed alpha.

    >>> fewest_topics(2, 0.05), fewest_topics(3, 0.05), fewest_topics(10, 0.05)
    (6, 7, 11)
    """
    pairs = max(1, runs * (runs - 1) // 2)
    return 1 + math.ceil(math.log2(pairs / alpha))


def too_few_topics(scores: Scores, systems: int, alpha: float) -> str:
    """Why no run may be said to lead: there are too few topics with a relevant document; empty if there are enough."""
    enough, topics = fewest_topics(systems, alpha), scores.informative_topics
    if topics >= enough:
        return ""
    kind = "" if scores.relevant is None else " with a relevant document"
    highest = scores.absent.highest_grade
    low = "" if highest is None else f" (the highest grade is {highest:.4g}: choose a lower rel)"
    return f"too few topics to say which run is better: {topics:,}{kind}{low}, and it takes {enough}"
