"""The systems that are compared: runs, and groups of runs that differ by chance alone, such as by the seed of a training.

A pattern names the runs of a group, which then stands in their place. Groups are compared over topics and over seeds at
once: the average of five lucky seeds is not the system, so the spread over seeds belongs into the error of the mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cranfield.columns import listed
from cranfield.errors import DataError
from cranfield.formats.streams import run_name
from cranfield.stats.method import SignificanceTest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.kernels.table import Floats
    from cranfield.scores import Scores


class OverSeeds(SignificanceTest):
    """Is the mean difference 0, measured against the spread over topics and over seeds?"""

    kind = "test of groups of runs"
    registry: ClassVar[dict[str, OverSeeds]] = {}

    name = "seeds"
    title = "crossed t over topics and seeds"
    p_from = "formula"


SEEDS = OverSeeds.name


@dataclass(frozen=True)
class Group:
    """Several runs of one system: its name and its runs."""

    name: str
    runs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Systems:
    """Scores, and which of their runs are runs of one system."""

    scores: Scores
    groups: list[Group]

    def contenders(self) -> list[str]:
        """What is compared: each run that is in no group, and each group in the place of its first run."""
        owner = {run: group.name for group in self.groups for run in group.runs}
        return list(dict.fromkeys(owner.get(run, run) for run in self.scores.runs))

    @property
    def weighed_by(self) -> str:
        """What the topics are weighed by; empty where they are not."""
        return "" if self.scores.weights is None else self.scores.weights.by

    @property
    def topic_weights(self) -> Floats | None:
        """The weight of each topic, where not all count alike."""
        return self.weights_of(self.scores.topics)

    def weights_of(self, topics: list[str]) -> Floats | None:
        """The weights of some topics, where not all count alike."""
        return None if self.scores.weights is None else self.scores.weights.of(topics)

    def lower_is_better(self, measure: str) -> bool:
        """Whether a lower value of this measure is better."""
        return self.scores.measures[measure].lower_is_better

    def runs_of(self, name: str) -> tuple[str, ...]:
        """The runs of a group, or the run of that name."""
        return next((group.runs for group in self.groups if group.name == name), (name,))

    def seeded(self, *names: str) -> bool:
        """Whether one of these is a group of several runs."""
        return any(len(self.runs_of(name)) > 1 for name in names)

    def mean(self, name: str, measure: str) -> float:
        """The number of a run by a measure, or the mean over the runs of a group."""
        return float(np.mean([self.scores.mean(measure, run) for run in self.runs_of(name)]))

    def spreads(self) -> Iterator[tuple[Group, str, Floats, float, float]]:
        """Of each group and measure: the mean of each run, their mean, their standard deviation (NaN for a single run)."""
        for group in self.groups:
            rows = [self.scores.runs.index(run) for run in group.runs]
            for m, measure in enumerate(self.scores.measures):
                means = self.scores.summary[rows, m]
                deviation = float(np.std(means, ddof=1)) if len(means) > 1 else float("nan")
                yield group, measure, means, float(np.mean(means)), deviation

    def table(self, name: str, measure: str) -> Floats:
        """Topics × runs: the values of a run, or of all runs of a group; NaN where there is none."""
        index = list(self.scores.measures).index(measure)
        rows = [self.scores.runs.index(run) for run in self.runs_of(name)]
        return self.scores.values[rows, index].T

    def common_tables(self, one: str, other: str, measure: str) -> tuple[Floats, Floats]:
        """The tables of two systems, on the topics for which all their runs have a value."""
        a, b = self.table(one, measure), self.table(other, measure)
        there = ~(np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1))
        return a[there], b[there]

    def values(self, name: str, measure: str) -> Floats:
        """The value of each topic of a run, or the mean over the runs of a group; NaN where one of them has none."""
        answer: Floats = self.table(name, measure).mean(axis=1)
        return answer


def parsed(typed: Any) -> dict[str, str | tuple[str, ...]]:
    """Groups as given: a pattern or several, `NAME=PATTERN`, or a mapping of names to patterns or to runs.

    >>> parsed(["dense.seed*.run", "sparse=splade-?"])
    {'dense.seed*': 'dense.seed*', 'sparse': 'splade-?'}
    """
    if typed is None:
        return {}
    if isinstance(typed, Mapping):
        return {str(name): wanted if isinstance(wanted, str) else tuple(wanted) for name, wanted in typed.items()}
    texts: Iterable[str] = [typed] if isinstance(typed, str) else typed
    answer: dict[str, str | tuple[str, ...]] = {}
    for text in texts:
        name, equals, pattern = text.partition("=")
        pattern = run_name(pattern if equals else text)
        answer[name if equals else pattern] = pattern
    return answer


def grouped(runs: list[str], typed: Any) -> list[Group]:
    """The groups that were asked for, with the runs that they match; a run can be in one only."""
    answer: list[Group] = []
    owner: dict[str, str] = {}
    for name, wanted in parsed(typed).items():
        if isinstance(wanted, str):
            members = tuple(run for run in runs if fnmatchcase(run, wanted))
        else:
            unknown = [run for run in wanted if run not in runs]
            if unknown:
                raise DataError(f"group {name}: no run {unknown[0]!r}; there are {listed(runs, most=10)}")
            members = wanted
        if not members:
            raise DataError(f"group {name}: no run matches {wanted!r}; runs are {listed(runs, most=10)}")
        for run in members:
            if run in owner:
                raise DataError(f"run {run!r} is in two groups, {owner[run]} and {name}; expected one")
            owner[run] = name
        if name in runs and name not in members:
            raise DataError(f"group {name}: a run has this name too; give the group another: NAME=PATTERN")
        answer.append(Group(name, members))
    return answer
