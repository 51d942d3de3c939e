"""Leaderboards by people's labels and by a model's on the same documents: their order, their verdicts, favoured runs.

The judge's own ranking (each topic's documents by its grades) is on both boards. By the judge's own labels no ranking
can be better, so these labels cannot evaluate a system that ranks as the judge does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.kernels import Order, decode
from cranfield.base.qrels import Qrels
from cranfield.base.run import Run
from cranfield.comparison.correlate import correlate, ranked
from cranfield.evaluation.evaluate import evaluate
from cranfield.judging.llm.grade_agreement import ValueInterval
from cranfield.judging.versions import who_is_better
from cranfield.stats.arms import EffectEstimate, simultaneous

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.evaluation.scores import Scores
    from cranfield.judging.llm.label_sample import CommonLabels
    from cranfield.judging.policies import Subject

FIRST = 5
FUSED = 60  # of reciprocal rank fusion, which breaks ties of the judge's own ranking
OWN = "the judge's own ranking"


class RunRanks(NamedTuple):
    """A run's rank and score by people's and by the model's labels."""

    run: str
    people: float
    people_place: int
    model: float
    model_place: int


class SwappedPair(NamedTuple):
    """A pair of runs with different verdicts by people's and by the model's labels."""

    one: str
    other: str
    people: str  # who is better; empty where they are not told apart
    model: str

    @property
    def reversed(self) -> bool:
        """Whether both kinds of labels tell the runs apart, in opposite directions."""
        return bool(self.people and self.model)


class BoardPair(NamedTuple):
    """The leaderboards by people's and by the model's labels, for one measure."""

    measure: str
    places: list[RunRanks]  # best first, by people
    tau: float
    tau_ap: float
    enters: list[str]  # the top five by the model, and not by people
    leaves: list[str]
    pairs: int
    turned: list[SwappedPair]

    @property
    def reversed(self) -> list[SwappedPair]:
        """Pairs with opposite verdicts."""
        return [each for each in self.turned if each.reversed]


class Advantage(NamedTuple):
    """How much more a run leads the others by the model's labels than by people's."""

    run: str
    measure: str
    people: float  # its mean score less that of the others
    model: float
    gain: ValueInterval  # model − people, for all of these at once


class OwnRanking(NamedTuple):
    """The judge's own ranking on both leaderboards."""

    measure: str
    runs: int  # it among them
    people: float
    people_place: int
    model: float
    model_place: int
    beaten_by: list[str]  # runs that are better by people's labels and worse by its own, both told apart


def ranks_of(common: CommonLabels, runs: Sequence[Run]) -> dict[str, dict[Subject, int]]:
    """The ranks of the common documents in each run; DataError for a run that answers none of their topics."""
    by_topic = common.grades(common.people)
    answer: dict[str, dict[Subject, int]] = {}
    for run in runs:
        lists = ranked(run, Order())
        if not by_topic.keys() & lists.keys():
            problem = f"answers none of the {len(by_topic):,} topics that people and {common.model!r} both labelled"
            has, they = (", ".join(map(repr, list(topics)[:3])) for topics in (lists, by_topic))
            such = f"it has {has}; they are {they}"
            raise DataError(f"{run.name} {problem} ({such}); leave it out, or give the run for these topics")
        own = answer[run.name] = {}
        for topic, documents in by_topic.items():
            for rank, name in enumerate(lists[topic].documents if topic in lists else (), 1):
                document = decode(name)
                if document in documents:
                    own[topic, document] = rank
    return answer


def scored(
    common: CommonLabels, runs: Sequence[Run], measures: Sequence[str], warn: bool = True
) -> tuple[Scores, Scores]:
    """The scores of the runs by people's and by the model's labels, on the same documents."""
    people = evaluate(Qrels(common.grades(common.people), "labels of people"), list(runs), list(measures), warn=warn)
    theirs = Qrels(common.grades(common.predicted), f"labels of {common.model}")
    return people, evaluate(theirs, list(runs), list(measures), warn=False)


def boards(people: Scores, model: Scores) -> list[BoardPair]:
    """The two leaderboards by each measure, for two runs or more."""
    alike = correlate(people, model, "tau tau-ap", names=("people", "model"))
    first, second = who_is_better(people), who_is_better(model)
    answer = []
    for m, (name, pair) in enumerate(zip(people.measures, alike.pairs, strict=True)):
        places = _run_ranks(people, model, m)
        people_top = {each.run for each in places if each.people_place <= FIRST}
        model_top = {each.run for each in places if each.model_place <= FIRST}
        mine = [key for key in first if key[0] == name]
        turned = [SwappedPair(*key[1:], first[key], second[key]) for key in mine if first[key] != second[key]]
        order = [each.run for each in places]
        enters, leaves = (sorted(some, key=order.index) for some in (model_top - people_top, people_top - model_top))
        values = pair.values["tau"], pair.values["tau-ap"]
        answer.append(BoardPair(name, places, *values, enters, leaves, len(mine), turned))
    return answer


def _run_ranks(people: Scores, model: Scores, m: int) -> list[RunRanks]:
    turn = -1.0 if list(people.measures.values())[m].lower_is_better else 1.0
    means = [scores.summary[:, m] for scores in (people, model)]
    places = [[1 + int((turn * own > turn * value).sum()) for value in own] for own in means]
    rows = zip(people.runs, means[0].tolist(), places[0], means[1].tolist(), places[1], strict=True)
    return sorted((RunRanks(*row) for row in rows), key=lambda each: each.people_place)


def advantages(people: Scores, model: Scores, own: Sequence[str], level: float) -> list[Advantage]:
    """The lead of each of these runs over the mean of the others, by both kinds of labels, over topics."""
    others = [r for r, run in enumerate(people.runs) if run not in own]
    rows: list[tuple[str, str, float, float]] = []
    gains: list[EffectEstimate] = []
    for run in own if others else ():
        for m, name in enumerate(people.measures):
            place = people.runs.index(run)
            sides = [scores.values[:, m] for scores in (people, model)]
            ahead = [values[place] - values[others].mean(axis=0) for values in sides]
            gain = (ahead[1] - ahead[0])[~np.isnan(ahead[0] + ahead[1])]
            if len(gain) < 2 or not gain.std() > 0:
                continue
            error = gain.std(ddof=1) / np.sqrt(len(gain))
            gains.append(EffectEstimate(gain.mean(), np.asarray(error), np.asarray(len(gain) - 1.0)))
            rows.append((run, name, *(float(np.nanmean(side)) for side in ahead)))  # type: ignore[arg-type]
    if not gains:
        return []
    together = simultaneous(gains, 1 - level)
    return [
        Advantage(*row, ValueInterval(float(gain.value), each.low, each.high))
        for row, gain, each in zip(rows, gains, together, strict=True)
    ]


def own_ranking(common: CommonLabels, ranks: Mapping[str, Mapping[Subject, int]]) -> Run:
    """The documents of each topic by the model's grades; ties go by the fused ranks of the runs."""
    fused: dict[Subject, float] = {}
    for own in ranks.values():
        for subject, rank in own.items():
            fused[subject] = fused.get(subject, 0.0) + 1 / (FUSED + rank)
    lists: dict[str, list[tuple[float, float, str]]] = {}
    for (topic, document), grade in zip(common.subjects, common.predicted.tolist(), strict=True):
        lists.setdefault(topic, []).append((-grade, -fused.get((topic, document), 0.0), document))
    return Run({topic: [document for _, _, document in sorted(rows)] for topic, rows in lists.items()}, OWN)


def circular(
    common: CommonLabels, runs: Sequence[Run], measures: Sequence[str], ranks: Mapping[str, Mapping[Subject, int]]
) -> list[OwnRanking]:
    """The judge's own ranking compared with the runs."""
    sides = scored(common, [*runs, own_ranking(common, ranks)], measures, warn=False)
    better = [who_is_better(scores, OWN) for scores in sides]
    answer = []
    for m, name in enumerate(sides[0].measures):
        [own] = [place for place in _run_ranks(*sides, m) if place.run == OWN]
        beaten = [run.name for run in runs if [side[name, OWN, run.name] for side in better] == [run.name, OWN]]
        answer.append(OwnRanking(name, len(sides[0].runs), *own[1:], beaten))
    return answer
