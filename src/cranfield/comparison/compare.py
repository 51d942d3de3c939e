"""`compare`: which system is better, by how much, and how certain that is.

Everything is computed from the scores and the settings first. Then the comparison is built as a whole and never changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import LARGEST_SCORE
from cranfield.base.results import Answer, Layout, Part, Table, plain
from cranfield.base.text_layout import listed
from cranfield.comparison.cautions import Caution, all_cautions, grouped_texts
from cranfield.comparison.comparison_text import page, pair_table, screen, visible_pairs
from cranfield.comparison.evidence import ComparisonEvidence, Names, compare_systems
from cranfield.comparison.label_noise import DRAWS, LabelNoise
from cranfield.comparison.label_noise import label_noise as redraw_labels
from cranfield.comparison.pair import RunPair, Unweighted
from cranfield.comparison.score_tables import (
    SEEDS,
    Progress,
    ScoredRuns,
    Shares,
    Systems,
    depths,
    evaluate_with_judged,
    group_runs,
    judged_shares,
)
from cranfield.comparison.settings import read_settings, refuse_unweighable
from cranfield.evaluation.evaluate import Evaluator
from cranfield.evaluation.measures import Measure
from cranfield.evaluation.measures.definition import split
from cranfield.evaluation.options import OptionsWithoutWeights
from cranfield.evaluation.scores import Scores
from cranfield.formats.streams import run_name
from cranfield.stats.tests_by_name import any_test

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Unpack

    from cranfield.comparison.efficiency import Efficiency


DEFAULT_MEASURES = "nDCG@10 AP RR@10"


@dataclass(frozen=True, kw_only=True)
class Comparison(ComparisonEvidence, Answer):
    """The result of `compare`: pairs with their differences, intervals and p-values, and cautions.

    >>> from cranfield import compare
    >>> qrels = {"q1": {"a": 1, "b": 0}, "q2": {"a": 0, "b": 1}}
    >>> runs = {"old": {"q1": {"b": 1}, "q2": {"a": 1}}, "new": {"q1": {"a": 1}, "q2": {"b": 1}}}
    >>> found = compare(qrels, runs, "RR")
    >>> found.pair("old", "new").difference, [caution.code for caution in found.cautions]
    (1.0, ['few-topics', 'coarse'])
    """

    has_topics: ClassVar[bool] = True
    ends_with_limits: ClassVar[bool] = True

    cautions: list[Caution]
    micro: Shares  # measure that is a ratio → run → micro average
    inputs: dict[str, Any] = field(default_factory=dict)  # the names of the files that were read
    efficiency: Efficiency | None = None  # the cost of the runs, if it was measured
    label_noise: LabelNoise | None = None  # the effect of redrawn labels, if requested

    def all_remarks(self) -> list[str]:
        """The remarks of label noise, if it was computed, and those of the comparison."""
        return [*(self.label_noise.remarks if self.label_noise is not None else []), *self.remarks]

    def notes(self, shell: bool = False) -> list[str]:
        return [*self.all_remarks(), *(f"caution: {caution.text}" for caution in self.cautions)]

    def limits(self, shell: bool = False, verbose: bool = False) -> list[str]:
        cautions = grouped_texts(self.cautions, verbose)
        cautions += [] if self.efficiency is None else self.efficiency.notes()
        if shell:
            cautions = [text.replace("missing=skip", "--missing skip") for text in cautions]
        missing = all(caution.code != "missing-topics" for caution in self.cautions)
        notes = [*self.all_remarks(), *self.scores.notes(shell, missing)]
        return [*(f"caution: {text}" for text in cautions), *(f"note: {note}" for note in notes)]

    def basis(self) -> list[str]:
        return self.notes()

    def pair_table(self, how: Layout) -> Table:
        """The table of pairs, one row per visible pair."""
        return pair_table(self, visible_pairs(self, how.every), how)

    def content(self, how: Layout) -> Iterator[Part]:
        write = screen if how.medium == "text" else page
        return write(self, self.efficiency, how, self.label_noise)

    def __repr__(self) -> str:
        return self.to_text(bars=False)

    def plain(self, how: Layout) -> dict[str, Any]:
        settings = ("test", "tests", "correction", "family", "alpha", "level", "interval", "simultaneous")
        more = ("alternative", "resamples", "seed", "rope", "margin")
        answer: dict[str, Any] = {
            **{name: getattr(self, name) for name in (*settings, *more)},
            "runs": self.scores.runs,
            "baselines": self.baselines,
            "groups": {group.name: list(group.runs) for group in self.groups},
            "measures": list(self.scores.measures),
            "topics": len(self.scores.topics),
            "weights": None if self.scores.weights is None else self.scores.weights.plain(self.scores.topics),
            "pairs": [self._plain_pair(pair, how) for pair in self.pairs],
            "spread": plain(self._spread(), how.digits),
            **{name: plain(getattr(self, name), how.digits) for name in ("many", "judged", "micro", "cautions")},
            "remarks": self.remarks,
            "efficiency": None if self.efficiency is None else self.efficiency.plain(how),
            "label_noise": None if self.label_noise is None else self.label_noise.plain(how),
            "inputs": self.inputs,
            "queries": self.scores.queries_of(self.scores.topics) if how.per_topic else {},
            "conventions": None if self.scores.external else self.scores.conventions.to_dict(),
            "versions": versions(),
        }
        return {name: value for name, value in answer.items() if value not in ({}, None)}

    def _plain_pair(self, pair: RunPair, how: Layout) -> dict[str, Any]:
        row = {each.name: getattr(pair, each.name) for each in fields(pair)}
        answer = {name: plain(value, how.digits) for name, value in row.items() if value is not None}
        answer |= {"better": pair.better, "significant": self.significant(pair), "sentence": self.sentence(pair)}
        answer |= {"answer": self.answer(pair) or None} if self.one_sided else {}
        if how.per_topic:
            topics, differences = self.differences(pair)
            answer["per_topic"] = dict(zip(topics, plain(differences, how.digits), strict=True))
        return answer

    def _spread(self) -> dict[str, Any]:
        """For each group and measure: the mean of each run, and their mean and standard deviation."""
        answer: dict[str, Any] = {}
        for group, measure, means, mean, deviation in self.spreads():
            row = {"runs": dict(zip(group.runs, means.tolist(), strict=True)), "mean": mean, "sd": deviation}
            answer.setdefault(group.name, {})[measure] = row
        return answer

    def records(self, how: Layout) -> Iterator[list[Any]]:
        """One row per pair with every p-value, or one row per pair and topic."""
        return self._topic_records() if how.per_topic else self._pair_records()

    def _pair_records(self) -> Iterator[list[Any]]:
        apart = ("outcomes", "equivalence", "weighed_by", "unweighted")
        columns = [each.name for each in fields(RunPair) if each.name not in apart]
        beside = [each.name for each in fields(Unweighted)] if self.weighed_by else []
        others = [name for name in self.tests[1:] if any(name in pair.outcomes for pair in self.pairs)]
        answer_column = ["answer"] if self.one_sided else []
        unweighted = [f"unweighted {name}" for name in beside]
        yield [*columns, "better", "significant", *answer_column, *(f"p {name}" for name in others), *unweighted]
        for pair in self.pairs:
            row = [getattr(pair, name) for name in columns]
            tested = [pair.outcomes[name].p if name in pair.outcomes else None for name in others]
            answer = [self.answer(pair)] if answer_column else []
            alike = [getattr(pair.unweighted, name, None) for name in beside]
            yield [*row, pair.better, "yes" if self.significant(pair) else "no", *answer, *tested, *alike]

    def _topic_records(self) -> Iterator[list[Any]]:
        queries = self.scores.queries
        names = ["measure", "one", "other", "topic", *(["query"] if queries else [])]
        yield [*names, "value one", "value other", "difference"]
        for pair in self.pairs:
            a, b = self.values(pair.one, pair.measure), self.values(pair.other, pair.measure)
            for topic, x, y in zip(self.scores.topics, a.tolist(), b.tolist(), strict=True):
                if x == x and y == y:
                    query = [queries.get(topic, "")] if queries else []
                    yield [pair.measure, pair.one, pair.other, topic, *query, x, y, y - x]


def versions() -> dict[str, str]:
    """The versions of the software that computed the numbers."""
    import platform
    from importlib.metadata import version

    return {
        "cranfield": version("cranfield"),
        "numpy": np.__version__,
        "scipy": version("scipy"),
        "python": platform.python_version(),
    }


class ComparisonOptions(OptionsWithoutWeights, total=False):
    """For type checkers: the keyword options of `compare`, for functions that pass them on."""

    baselines: str | Iterable[str] | None
    tests: str | Iterable[str] | None
    correction: str
    alpha: float
    level: float
    interval: str
    resamples: int | None
    seed: int
    alternative: str
    rope: float | None
    margin: float | None
    simultaneous: bool
    groups: Any
    weights: Any
    label_noise: Any
    label_draws: int
    progress: Progress | None


def compare(
    scores: Any,
    /,
    runs: Any = None,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    baselines: str | Iterable[str] | None = None,
    tests: str | Iterable[str] | None = None,
    correction: str = "holm",
    alpha: float = 0.05,
    level: float = 0.95,
    interval: str = "t",
    resamples: int | None = None,
    seed: int = 0,
    alternative: str = "two-sided",
    rope: float | None = None,
    margin: float | None = None,
    simultaneous: bool = False,
    groups: Any = None,
    weights: Any = None,
    label_noise: Any = None,
    label_draws: int = DRAWS,
    progress: Progress | None = None,
    **conventions: Unpack[OptionsWithoutWeights],
) -> Comparison:
    """Compare systems: differences with intervals and effect sizes, corrected p-values, and cautions.

    `scores` are Scores, or judgments by which `runs` are scored with `measures` first (then the options of `Evaluator`
    are allowed too). Without `baselines` every pair is compared; otherwise each other run with each baseline. The first
    of `tests` decides (default: randomisation, or t with design weights); `all` runs every test. `correction` covers all
    pairs and measures. The default of `resamples` is 100,000, or as many as a p-value needs to be significant after
    correction.

    `alternative` is two-sided, greater, less, better or worse, for a run against its baseline; intervals are then
    one-sided as well. `simultaneous` intervals hold jointly at the level. `rope` is the largest difference that does
    not matter, for the Bayesian test; `margin` is the same for equivalence and non-inferiority. `groups` combine
    several runs of one system, which are compared over topics and seeds: patterns (`"dense.seed*"`,
    `"dense=dense.seed*"`) or a mapping of names to patterns or runs.

    `weights` give the weight of each topic: a mapping, or the name of a column where the judgments are a collection;
    unweighted numbers are in `pair.unweighted`. `DesignWeights` of topics that were sampled from a log make the
    differences describe the traffic of all queries that could be drawn. `label_noise` gives the probabilities of other grades
    (`{topic: {document: {grade: probability}}}`); grades are then redrawn `label_draws` times.

    >>> scores = Scores.from_table([[0.1, 0.3], [0.2, 0.5], [0.4, 0.5], [0.3, 0.4]], ["bm25", "dense"], measure="AP")
    >>> found = compare(scores)
    >>> found.pairs[0].p  # 2 of the 16 ways to choose signs
    0.125
    >>> print(found.sentences()[0])
    dense is ahead of bm25 by 0.175 AP [0.023, 0.327] on 4 topics, 4 up, 0 equal, 0 down, but the data do not settle it \
(the 95% interval (t) excludes 0, but the test is not significant); randomisation p = 0.12
    """
    if weights is not None and label_noise is not None:
        raise ConventionError("weights and label_noise cannot be combined: give one of them")
    options: dict[str, Any] = {**conventions} if weights is None else {**conventions, "weights": weights}
    scored = _scored(scores, runs, measures, options, progress)
    numbers: dict[str, Any] = {"alpha": alpha, "level": level, "interval": interval, "seed": seed}
    numbers |= {"alternative": alternative, "rope": rope, "margin": margin, "simultaneous": simultaneous}
    evidence = evidence_of(scored, tests, correction, resamples, baselines=baselines, groups=groups, **numbers)
    noise = None if label_noise is None else redraw_labels(evidence, label_noise, label_draws, progress)
    return Comparison(**vars(evidence), cautions=all_cautions(evidence), micro=scored.micro, label_noise=noise)


def evidence_of(
    scored: ScoredRuns,
    tests: str | Iterable[str] | None,
    correction: str,
    resamples: int | None = None,
    *,
    baselines: str | Iterable[str] | None = None,
    groups: Any = None,
    **numbers: Any,
) -> ComparisonEvidence:
    """The comparison without cautions, which may take as long as the tests themselves."""
    _refuse_infinite(scored.scores)
    systems = Systems(scores=scored.scores, groups=group_runs(scored.scores.runs, groups))
    names = systems.system_names()
    if len(names) < 2:
        raise DataError(f"expected two systems or more to compare, found {len(names)}: {listed(names)}")
    baseline_names = _baselines(baselines, systems)
    others = [name for name in names if name not in baseline_names]
    against_baselines = [(one, other) for one in baseline_names for other in others]
    names_of_pairs = against_baselines or list(combinations(names, 2))
    p_values = len(names_of_pairs) * len(scored.scores.measures)
    by = systems.weighed_by
    if by and systems.has_seeds(*names):
        refuse_unweighable([any_test(SEEDS)], by, systems.designed)
    weighing: dict[str, Any] = {"weighed_by": by, "designed": systems.designed}
    settings = read_settings(tests, correction, resamples, systems=len(names), p_values=p_values, **weighing, **numbers)
    _refuse_strangers(systems, names_of_pairs)
    return compare_systems(systems, settings, names_of_pairs, baseline_names, scored.judged)


def _scored(
    scores: Any, runs: Any, measures: Any, conventions: dict[str, Any], progress: Progress | None = None
) -> ScoredRuns:
    """The scores (the runs are scored if necessary), the shares of judged documents, and micro averages."""
    if isinstance(scores, Scores):
        weights = conventions.pop("weights", None)
        if runs is not None or conventions:
            raise ConventionError("Scores already contain their runs and conventions; do not pass others with them")
        selected = scores if measures is None else scores.select(measures=_list(measures))
        selected = selected if weights is None else selected.weighed(weights)
        return ScoredRuns(selected, judged_shares(selected), {})
    if runs is None:
        raise DataError("expected Scores, or judgments and runs; found no runs")
    evaluator = Evaluator(scores, measures or DEFAULT_MEASURES, **conventions)
    return evaluate_with_judged(evaluator, runs, depths(evaluator.measures), progress)


def _list(measures: Any) -> list[Any]:
    items = [measures] if isinstance(measures, (str, Measure)) else list(measures)
    return [part for item in items for part in (split(item) if isinstance(item, str) else [item])]


def _baselines(names_typed: str | Iterable[str] | None, systems: Systems) -> list[str]:
    """The names of the baselines; a file name, or a run of a group, works too."""
    names = systems.system_names()
    system = {run: group.name for group in systems.groups for run in group.runs} | {name: name for name in names}
    answer = []
    for typed in [names_typed] if isinstance(names_typed, str) else names_typed or ():
        name = system.get(typed) or system.get(run_name(typed))
        if name is None:
            raise ConventionError(f"no run {typed!r} for the baseline; there are {listed(names, most=10)}")
        answer.append(name)
    return list(dict.fromkeys(answer))


def _refuse_infinite(scores: Scores) -> None:
    """Raise DataError for infinite or nearly infinite scores, which have no mean and no difference."""
    infinite = np.argwhere(np.abs(scores.values) > LARGEST_SCORE)
    if len(infinite):
        r, m, t = infinite[0].tolist()
        what = f"{list(scores.measures)[m]} of {scores.runs[r]} on topic {scores.topics[t]!r}"
        value = scores.values[r, m, t]
        expected = "a finite number" if np.isinf(value) else f"a score of at most {LARGEST_SCORE:g}"
        raise DataError(f"{what}: expected {expected}, found {value:g}; leave the topic or the run out")


def _refuse_strangers(systems: Systems, pairs: Names) -> None:
    """Raise DataError if a run answers no topic, or two runs share no topic: they are runs for different topics."""
    scores = systems.scores
    answered = dict(zip(scores.runs, scores.retrieved > 0, strict=True))
    silent = [run for run in scores.runs if not answered[run].any()]
    if silent and not scores.external:
        raise DataError(
            f"{silent[0]} answers none of the {len(scores.topics)} topics ({listed(scores.topics, most=3)}); "
            "leave it out, or give the run for these topics (are they numbered alike?)"
        )
    there = {name: np.any([answered[run] for run in systems.runs_of(name)], axis=0) for pair in pairs for name in pair}
    for one, other in pairs:
        if there[one].any() and there[other].any() and not (there[one] & there[other]).any():
            raise DataError(
                f"{one} and {other} answer no topic in common ({there[one].sum()} and {there[other].sum()} topics); "
                "are they runs for the same topics?"
            )
