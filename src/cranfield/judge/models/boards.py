"""Runs ranked by people's labels and by a model's, on the same documents: which order, which verdicts, whom it favours.

The judge's own ranking, each topic's documents by its grades, is put on both boards: by its own labels nothing can be better,
so that a system which ranks as the judge does is scored by its own opinion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.collection import Qrels
from cranfield.correlate import correlate, ranked
from cranfield.errors import DataError
from cranfield.evaluate import evaluate
from cranfield.judge.changes import who_is_better
from cranfield.judge.models.estimating import Interval
from cranfield.kernels import Order, decode
from cranfield.run import Run
from cranfield.stats.arms import Estimate, simultaneous

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.judge.models.shared import Shared
    from cranfield.judge.policy import Subject
    from cranfield.scores import Scores
    from cranfield.stats.ties import Floats

FIRST = 5
FUSED = 60  # of reciprocal rank fusion, which breaks ties of the judge's own ranking
OWN = "the judge's own ranking"


class Place(NamedTuple):
    """A run on both boards."""

    run: str
    people: float
    people_place: int
    model: float
    model_place: int


class Turned(NamedTuple):
    """A pair of runs that labels of people and of the model do not tell apart alike."""

    one: str
    other: str
    people: str  # who is better; empty where they are not told apart
    model: str

    @property
    def reversed(self) -> bool:
        """Whether each tells them apart, and not alike."""
        return bool(self.people and self.model)


class Board(NamedTuple):
    """The two leaderboards by a measure."""

    measure: str
    places: list[Place]  # best first, by people
    tau: float
    tau_ap: float
    enters: list[str]  # the top five by the model, and not by people
    leaves: list[str]
    pairs: int
    turned: list[Turned]

    @property
    def reversed(self) -> list[Turned]:
        """Pairs with opposite verdicts."""
        return [each for each in self.turned if each.reversed]

    @property
    def by_people_alone(self) -> int:
        """Pairs that only labels of people tell apart."""
        return sum(not each.model for each in self.turned)

    @property
    def by_model_alone(self) -> int:
        """Pairs that only labels of the model tell apart."""
        return sum(not each.people for each in self.turned)


class Advantage(NamedTuple):
    """What a run gains on the others by the model's labels beyond what it does by people's."""

    run: str
    measure: str
    people: float  # its mean score less that of the others
    model: float
    gain: Interval  # model − people, for all of these at once


class Circular(NamedTuple):
    """The judge's own ranking on both boards."""

    measure: str
    runs: int  # it among them
    people: float
    people_place: int
    model: float
    model_place: int
    beaten_by: list[str]  # runs that are better by people's labels and worse by its own, both told apart


def ranks_of(found: Shared, runs: Sequence[Run]) -> dict[str, dict[Subject, int]]:
    """Where each run has the documents that both labelled; a run that answers none of their topics is refused."""
    wanted: dict[str, set[str]] = {}
    for topic, document in found.subjects:
        wanted.setdefault(topic, set()).add(document)
    answer: dict[str, dict[Subject, int]] = {}
    for run in runs:
        lists = ranked(run, Order())
        if not wanted.keys() & lists.keys():
            told = f"answers none of the {len(wanted):,} topics that people and {found.model!r} both labelled"
            such = f"it has {', '.join(map(repr, list(lists)[:3]))}; they are {', '.join(map(repr, list(wanted)[:3]))}"
            raise DataError(f"{run.name} {told} ({such}); leave it out, or give the run for these topics")
        own = answer[run.name] = {}
        for topic, documents in wanted.items():
            for rank, name in enumerate(lists[topic].documents if topic in lists else (), 1):
                document = decode(name)
                if document in documents:
                    own[topic, document] = rank
    return answer


def scored(found: Shared, runs: Sequence[Run], measures: Sequence[str], warn: bool = True) -> tuple[Scores, Scores]:
    """The runs by people's labels and by the model's, on the same documents."""
    people = evaluate(Qrels(found.grades(found.people), "labels of people"), list(runs), list(measures), warn=warn)
    theirs = Qrels(found.grades(found.predicted), f"labels of {found.model}")
    return people, evaluate(theirs, list(runs), list(measures), warn=False)


def boards(people: Scores, model: Scores) -> list[Board]:
    """The two leaderboards by each measure, of two runs or more."""
    alike = correlate(people, model, "tau tau-ap", names=("people", "model"))
    first, second = who_is_better(people), who_is_better(model)
    answer = []
    for m, (name, pair) in enumerate(zip(people.measures, alike.pairs, strict=True)):
        places = _places(people, model, m)
        people_top = {each.run for each in places if each.people_place <= FIRST}
        model_top = {each.run for each in places if each.model_place <= FIRST}
        mine = [key for key in first if key[0] == name]
        turned = [Turned(*key[1:], first[key], second[key]) for key in mine if first[key] != second[key]]
        order = [each.run for each in places]
        enters, leaves = (sorted(some, key=order.index) for some in (model_top - people_top, people_top - model_top))
        values = pair.values["tau"], pair.values["tau-ap"]
        answer.append(Board(name, places, *values, enters, leaves, len(mine), turned))
    return answer


def _places(people: Scores, model: Scores, m: int) -> list[Place]:
    turn = -1.0 if list(people.measures.values())[m].lower_is_better else 1.0
    means = [scores.summary[:, m] for scores in (people, model)]
    places = [[1 + int((turn * own > turn * value).sum()) for value in own] for own in means]
    rows = zip(people.runs, means[0].tolist(), places[0], means[1].tolist(), places[1], strict=True)
    return sorted((Place(*row) for row in rows), key=lambda each: each.people_place)


def advantages(people: Scores, model: Scores, own: Sequence[str], level: float) -> list[Advantage]:
    """By how much each of some runs is ahead of the mean of the others, by both, over topics."""
    others = [r for r, run in enumerate(people.runs) if run not in own]
    rows: list[tuple[str, str, float, float]] = []
    gains: list[Estimate] = []
    for run in own if others else ():
        for m, name in enumerate(people.measures):
            ahead = [_ahead(scores.values[:, m], people.runs.index(run), others) for scores in (people, model)]
            gain = (ahead[1] - ahead[0])[~np.isnan(ahead[0] + ahead[1])]
            if len(gain) < 2 or not gain.std() > 0:
                continue
            error = gain.std(ddof=1) / np.sqrt(len(gain))
            gains.append(Estimate(gain.mean(), np.asarray(error), np.asarray(len(gain) - 1.0)))
            rows.append((run, name, *(float(np.nanmean(side)) for side in ahead)))  # type: ignore[arg-type]
    if not gains:
        return []
    together = simultaneous(gains, 1 - level)
    return [
        Advantage(*row, Interval(float(gain.value), each.low, each.high))
        for row, gain, each in zip(rows, gains, together, strict=True)
    ]


def _ahead(values: Floats, own: int, others: Sequence[int]) -> Floats:
    return np.asarray(values[own] - values[others].mean(axis=0), np.float64)


def own_ranking(found: Shared, ranks: Mapping[str, Mapping[Subject, int]]) -> Run:
    """Each topic's documents by the model's grades; of equal ones, what the runs together rank higher comes first."""
    fused: dict[Subject, float] = {}
    for own in ranks.values():
        for subject, rank in own.items():
            fused[subject] = fused.get(subject, 0.0) + 1 / (FUSED + rank)
    lists: dict[str, list[tuple[float, float, str]]] = {}
    for (topic, document), grade in zip(found.subjects, found.predicted.tolist(), strict=True):
        lists.setdefault(topic, []).append((-grade, -fused.get((topic, document), 0.0), document))
    return Run({topic: [document for _, _, document in sorted(rows)] for topic, rows in lists.items()}, OWN)


def circular(
    found: Shared, runs: Sequence[Run], measures: Sequence[str], ranks: Mapping[str, Mapping[Subject, int]]
) -> list[Circular]:
    """The judge's own ranking among the runs."""
    sides = scored(found, [*runs, own_ranking(found, ranks)], measures, warn=False)
    better = [who_is_better(scores, OWN) for scores in sides]
    answer = []
    for m, name in enumerate(sides[0].measures):
        [own] = [place for place in _places(*sides, m) if place.run == OWN]
        beaten = [run.name for run in runs if [side[name, OWN, run.name] for side in better] == [run.name, OWN]]
        answer.append(Circular(name, len(sides[0].runs), *own[1:], beaten))
    return answer
