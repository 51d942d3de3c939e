"""Groups of runs: several runs of one system that differ by chance alone, such as by the seed of its training.

A pattern names the runs; the group then stands in their place. Two groups are compared over topics and over seeds at
once: the average of five lucky seeds is not the system, so the spread over seeds belongs into the error of the mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cranfield.columns import listed
from cranfield.errors import DataError
from cranfield.formats.streams import run_name
from cranfield.stats.method import SignificanceTest

if TYPE_CHECKING:
    from cranfield.compare.comparison import Comparison, Pair
    from cranfield.compare.outcomes import Asked
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


def parsed(given: Any) -> dict[str, str | tuple[str, ...]]:
    """Groups as given: a pattern or several, `NAME=PATTERN`, or a mapping of names to patterns or to runs.

    >>> parsed(["dense.seed*.run", "sparse=splade-?"])
    {'dense.seed*': 'dense.seed*', 'sparse': 'splade-?'}
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): wanted if isinstance(wanted, str) else tuple(wanted) for name, wanted in given.items()}
    texts: Iterable[str] = [given] if isinstance(given, str) else given
    answer: dict[str, str | tuple[str, ...]] = {}
    for text in texts:
        name, equals, pattern = text.partition("=")
        pattern = run_name(pattern if equals else text)
        answer[name if equals else pattern] = pattern
    return answer


def grouped(runs: list[str], given: Any) -> list[Group]:
    """The groups that were asked for, with the runs that they match; a run can be in one only."""
    answer: list[Group] = []
    owner: dict[str, str] = {}
    for name, wanted in parsed(given).items():
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


def contenders(runs: list[str], groups: list[Group]) -> list[str]:
    """What is compared: each run that is in no group, and each group in the place of its first run."""
    owner = {run: group.name for group in groups for run in group.runs}
    return list(dict.fromkeys(owner.get(run, run) for run in runs))


def spread(scores: Scores, group: Group, measure: str) -> tuple[Floats, float, float]:
    """The mean of each of its runs, their mean, and their standard deviation (NaN for a single run)."""
    column = scores.summary[:, list(scores.measures).index(measure)]
    means = column[[scores.runs.index(run) for run in group.runs]]
    return means, float(np.mean(means)), float(np.std(means, ddof=1)) if len(means) > 1 else float("nan")


def over_seeds(found: Comparison, pair: Pair, given: Asked) -> Pair:
    """A pair of which one side or both are groups, with the test that knows topic and seed variance.

    Its interval takes the place of the one over topics. A topic that one of the runs lacks is left out.
    """
    from cranfield.compare.outcomes import direction
    from cranfield.stats.replicates import crossed_difference
    from cranfield.stats.test import Outcome

    pair = replace(pair, test=SEEDS, p=float("nan"), low=float("nan"), high=float("nan"))
    if pair.n < 2:
        reason = "one topic only; a test needs two or more" if pair.n else "no topic has a value for both"
        return replace(pair, reason=reason)
    a, b = (found.table(name, pair.measure) for name in (pair.one, pair.other))
    there = ~(np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1))
    turn = direction(given.alternative, found.lower_is_better(pair.measure))
    tested = crossed_difference(a[there], b[there], given.level, turn)
    both = crossed_difference(a[there], b[there], given.level)
    reason = tested.reason if tested.p != tested.p else ""
    extra = {"df": tested.df, "p over topics only": tested.p_blocks}
    outcome = Outcome(SEEDS, tested.p, tested.statistic, tested.low, tested.high, reason=tested.reason, extra=extra)
    return replace(pair, p=tested.p, low=both.low, high=both.high, reason=reason, outcomes={SEEDS: outcome})
