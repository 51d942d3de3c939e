"""Prediction-powered scores and differences of runs: few labels by people, many by a model (see `stats`).

If topics were drawn at random, any measure that is a mean over topics can be estimated; the mean is that of a
population of such topics. If documents were drawn, only measures that are sums over documents can; the mean is that of
these very topics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import DataError, MeasureError
from cranfield.base.qrels import Qrels
from cranfield.base.results import Answer, Layout, Lines, Part, Table, as_dicts, plain
from cranfield.base.text_layout import counted, name_list
from cranfield.evaluation.evaluate import Evaluator, evaluate
from cranfield.evaluation.measures import Measure
from cranfield.evaluation.measures import measures as measures_of
from cranfield.evaluation.measures.definition import REGISTRY, takes_topics_alone
from cranfield.judging.llm.grade_agreement import ValueInterval, interval_of, within
from cranfield.judging.policies import nested
from cranfield.judging.round_plan import TOPICS
from cranfield.stats.prediction_powered import LEAST, Predicted, predicted_mean, predicted_total

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.base.run import Run
    from cranfield.judging.llm.label_sample import LabelSample
    from cranfield.judging.policies import Grades, Subject

FILLED = 20  # times that grades which nobody gave are drawn, for an ideal ranking
FEW = 20  # units that people labelled, from which on coverage was measured
NOTHING = 1e-9  # of a score: rounding
SHOWN = 3  # scores and differences that a note names
THIN = 30  # degrees of freedom by documents, below which intervals of scores near 0 or 1 were seen to cover 87 to 93 %


@dataclass(frozen=True)
class EstimateRow:
    """A run's score by a measure, or its difference from another run's."""

    measure: str
    run: str
    other: str  # empty: a score
    both: ValueInterval
    people: ValueInterval
    model: float
    worth: float  # units that people would have had to label for the same precision; NaN without intervals
    approximate: bool = False
    freedom: float = np.nan  # degrees of, of the estimate
    exact: bool = False  # chance has no part in it: people labelled all that counts
    # not where the model's scores vary on too few of the drawn topics: the estimate is people's
    model_used: bool = True

    @property
    def named(self) -> str:
        """The run, or the two runs, of the row."""
        return f"{self.run} − {self.other}" if self.other else self.run


@dataclass(frozen=True, repr=False)
class PredictedScores(Answer):
    """Prediction-powered scores and differences with intervals, next to those by people and by the model alone."""

    log: str
    round: str
    model: str
    unit: str  # topics or documents
    drawn: int  # units that people labelled
    of: int
    level: float
    rows: list[EstimateRow]
    topics: int  # that scores are means over, where documents were drawn
    remarks: list[str]

    def content(self, how: Layout) -> Iterator[Part]:
        yield Lines(self._verdicts(how))
        whose = "topics like these" if self.unit == "topics" else f"these {self.topics:,} topics"
        if all(row.exact for row in self.rows):
            every = f"all {self.of:,} {self.unit}" if self.drawn == self.of else "all that counts"
            yield f"people labelled {every} (round {self.round}): scores are exact for {whose}, and need no model"
        else:
            about = f"people labelled {self.drawn:,} of {self.of:,} {self.unit}, drawn at random (round {self.round})"
            yield f"{about}, {self.model} all that it could; intervals of {self.level:.0%} for {whose}"
            yield "documents outside the pool count as irrelevant"
        yield f"people, model: by their labels alone; worth: {self.unit} that people would have to label for the same precision"
        scores, pairs = ([row for row in self.rows if bool(row.other) == pair] for pair in (False, True))
        # of many runs only the differences from the leader, unless all are requested
        differences = [row for row in pairs if how.every or self._leader(row.measure).run in (row.run, row.other)]
        for rows, what in ((scores, "run"), (differences, "difference")):
            if rows:
                head = ["measure", what, "estimate", "low", "high", "people", "theirs", "model", "worth"]
                yield Table(head, [self._cells(row, how) for row in rows], names=2, left=2, spare=(6,))

    def _cells(self, row: EstimateRow, how: Layout) -> list[Any]:
        signed = bool(row.other)
        low, high = (how.number(end, signed) for end in row.people[1:])
        return [
            f"{row.measure}{' ~' if row.approximate else ''}",
            row.named,
            *(how.cell(number, signed) for number in (*row.both, row.people.value)),
            how.undefined if row.people.low != row.people.low else f"{low} to {high}",
            how.cell(row.model, signed),
            how.undefined if row.worth != row.worth else f"{row.worth:,.0f}",
        ]

    def _verdicts(self, how: Layout) -> list[str]:
        """The verdict: for two runs the difference, for one its score, for several the leader."""
        pairs = [row for row in self.rows if row.other]
        if len({row.named for row in pairs}) > 1:
            return [self._leads(name, how) for name in dict.fromkeys(row.measure for row in pairs)]
        if not pairs:
            return [f"{row.run} by {row.measure}: {_between(row, how)}" for row in self.rows]
        return [f"{_comparison(row, self.unit)} by {row.measure}: {row.named} {_between(row, how)}" for row in pairs]

    def _leader(self, measure: str) -> EstimateRow:
        scores = [row for row in self.rows if row.measure == measure and not row.other]
        return max(scores, key=lambda row: row.both.value)

    def _leads(self, measure: str, how: Layout) -> str:
        """The first run by a measure, and the runs that cannot be told apart from it."""
        first = self._leader(measure)
        pairs = [row for row in self.rows if row.measure == measure and row.other and first.run in (row.run, row.other)]
        alike = [row.other if row.run == first.run else row.run for row in pairs if not row.both.apart]
        if all(row.both.value == 0 for row in pairs):
            return f"no run leads by {measure}: all score {how.number(first.both.value)}"
        apart = ", ahead of each other run by an interval of its own"
        sentence = f", not told apart from {name_list(alike)}" if alike else apart
        return f"{first.run} leads by {measure}{sentence}: {_between(first, how)}"

    def plain(self, how: Layout) -> Any:
        rows = [as_dicts(row) | {"worth_share": row.worth / self.drawn} for row in self.rows]
        return plain({**vars(self), "rows": rows}, how.digits)

    def records(self, how: Layout) -> Iterator[tuple[Any, ...]]:
        yield (
            *("measure", "run", "other", "estimate", "low", "high", "people", "people_low", "people_high"),
            *("model", "worth", "approximate", "model_used"),
        )
        for row in self.rows:
            names, marks = (row.measure, row.run, row.other), (row.approximate, row.model_used)
            yield *names, *row.both, *row.people, row.model, row.worth, *marks

    def notes(self, shell: bool = False) -> list[str]:
        return self.remarks


def _between(row: EstimateRow, how: Layout) -> str:
    value, low, high = (how.number(number, bool(row.other)) for number in row.both)
    if row.exact:
        return f"{value}, exactly"
    return f"{value}, no interval" if np.isnan(row.both.low) else f"{value} [{low}, {high}]"


def _comparison(row: EstimateRow, unit: str) -> str:
    unknown, topics = np.isnan(row.both.low), unit == TOPICS
    constant = unknown and topics and np.isnan(row.people.low)  # people's difference is the same on every topic
    if (row.exact or constant) and abs(row.both.value) < NOTHING:
        return f"{row.run} and {row.other} score the same{'' if row.exact else ' on every topic that was drawn'}"
    first, second = (row.run, row.other) if row.both.value > 0 else (row.other, row.run)
    if constant:
        return f"{first} scores higher than {second}, and by as much on every topic that was drawn"
    if unknown and topics:
        return f"{row.run} and {row.other} differ on too few of the topics that were drawn to tell them apart"
    if unknown:
        return f"too few of the documents that were drawn count to tell {row.run} and {row.other} apart"
    if row.both.apart:
        return f"{first} scores higher than {second}"
    return f"{row.run} and {row.other} are not told apart"


def estimates(sample: LabelSample, runs: Sequence[Run], names: Sequence[str], level: float = 0.95) -> PredictedScores:
    """Prediction-powered estimates of scores and differences, from a sample that people labelled and a model's labels."""
    measures = measures_of(list(names))
    work = _by_topics if sample.by_topics else _by_documents
    rows = list(work(sample, runs, measures, level))
    documents = sum(map(len, sample.frame.values()))
    labelled, of = (len(sample.topics), len(sample.frame)) if sample.by_topics else (len(sample.chances.of), documents)
    names_of_sample = sample.log, sample.chances.round.name, sample.model, sample.chances.round.unit
    notes = [*_notes(sample, rows, labelled), *sample.people.notes()]
    return PredictedScores(*names_of_sample, labelled, of, level, rows, len(sample.frame), notes)


def _row(
    names: tuple[str, str, str],
    estimate: Predicted,
    level: float,
    measure: Measure,
    near: bool = False,
    exact: bool = False,
) -> EstimateRow:
    """The row of a run, or of two runs, by a measure; `names` are the measure, the run and the other run."""
    both, people = (interval_of(one, level) for one in estimate[:2])
    if exact:
        both, people = (ValueInterval(*[one.value] * 3) for one in (both, people))
    if not names[2]:
        both, people = (within(one, measure.low, measure.high) for one in (both, people))
    worth = float(estimate.worth) if both.low == both.low and people.low == people.low else np.nan
    model, freedom = float(estimate.predicted.value), float(estimate.both.df)
    return EstimateRow(*names, both, people, model, worth, near, freedom, exact, bool(estimate.used))


def _by_topics(
    sample: LabelSample, runs: Sequence[Run], measures: Mapping[str, Measure], level: float
) -> Iterator[EstimateRow]:
    """Estimates with topics as units: scores by people and model on the sample, by the model on all topics."""
    if len(sample.topics) < LEAST:
        problem = f"{counted(len(sample.topics), 'topic')} drawn, expected {LEAST} or more, and better {FEW}"
        raise DataError(f"{sample.log}, round {sample.chances.round.name!r}: {problem}")
    for name, measure in measures.items():
        if measure.aggregate != "mean" or not takes_topics_alone(measure) or measure.values.get("average") == "micro":
            raise MeasureError(
                f"{name} is not a mean over topics, and only means can be estimated; take {measure.name}"
            )
    people = {topic: sample.people.grades[topic] for topic in sample.topics}
    measured = _scores(people, runs, measures, sample.topics, "labels of people")
    every = [*sample.topics, *(topic for topic in sample.frame if topic not in people)]
    predicted = _scores(sample.predicted, runs, measures, every, f"labels of {sample.model}")
    n = len(sample.topics)
    for m, (name, measure) in enumerate(measures.items()):
        for run, other, sign in _pairs(runs):
            y, f = (values[run, m] - sign * values[other, m] for values in (measured, predicted))
            names = name, runs[run].name, runs[other].name if sign else ""
            yield _row(names, predicted_mean(y, f[:n], f), level, measure)


def _pairs(runs: Sequence[Run]) -> Iterator[tuple[int, int, int]]:
    """Every run alone, then every run minus each earlier one."""
    yield from ((place, place, 0) for place in range(len(runs)))
    yield from ((other, one, 1) for one, other in combinations(range(len(runs)), 2))


def _scores(grades: Grades, runs: Sequence[Run], measures: Iterable[str], topics: Sequence[str], whose: str) -> Floats:
    """Runs × measures × topics; a topic without labels scores 0, like one without a relevant document."""
    scores = evaluate(Qrels(grades, whose), list(runs), list(measures))
    if np.isnan(scores.values).any():
        _, m, t = np.argwhere(np.isnan(scores.values))[0]
        name, topic = list(measures)[m], scores.topics[t]
        raise DataError(f"{name} has no value on topic {topic!r} by {whose}; take a measure that always has one")
    place = {topic: i for i, topic in enumerate(scores.topics)}
    padded = np.concatenate([scores.values, np.zeros((*scores.values.shape[:2], 1))], axis=-1)
    return np.asarray(padded[..., [place.get(topic, -1) for topic in topics]], np.float64)


def _by_documents(
    sample: LabelSample, runs: Sequence[Run], measures: Mapping[str, Measure], level: float
) -> Iterator[EstimateRow]:
    """Estimates with documents as units, from each document's contribution to a score by people's and by the model's grade."""
    units = _Units(sample)
    for name, measure in measures.items():
        weights, predicted = (_shares(grades, runs, name, measure) for grades in (units.most, units.model))
        filled = units.filled(1 if measure.shares_alone else FILLED)
        mixed = np.mean([_shares(grades, runs, name, measure) for grades in filled], axis=0)
        for run, other, sign in _pairs(runs):
            d, size = units.labelled_units, len(sample.frame)
            w, f, y = ((each[run] - sign * each[other]) / size for each in (weights, predicted, mixed))
            total = predicted_total(y[d], f[d], w[d], units.chance, every=f, weights=w)
            names = name, runs[run].name, runs[other].name if sign else ""
            by_chance = w[units.by_chance] if measure.shares_alone or not w.any() else units.by_chance
            exact, near = not np.any(by_chance), not measure.shares_alone and bool(units.by_chance.any())
            yield _row(names, _or_none(total, w[d]), level, measure, near, exact)


def _or_none(estimate: Predicted, weight: Floats) -> Predicted:
    """The estimate, without intervals if too few documents of the sample contribute to the score."""
    if np.count_nonzero(weight) >= LEAST:
        return estimate
    unknown = np.full(estimate.worth.shape, np.nan)
    both, measured = (replace(each, error=unknown) for each in (estimate.both, estimate.measured))
    return estimate._replace(both=both, measured=measured)


class _Units:
    """The documents of the sampling frame, in one order, with the sampling probabilities of those that people graded.

    Documents outside the frame that people labelled are added, with probability 1.
    """

    def __init__(self, sample: LabelSample) -> None:
        chances: dict[Subject, float] = dict(sample.chances.of)
        self.documents: dict[str, list[str]] = {}  # by topic
        for topic, inside in sample.frame.items():
            frame = set(inside)
            beside = [document for document in sample.people.grades.get(topic, {}) if document not in frame]
            chances |= {(topic, document): 1.0 for document in beside}
            self.documents[topic] = [*inside, *beside]
        self.order = [(topic, document) for topic, own in self.documents.items() for document in own]
        self.people = sample.people.grades
        predicted = sample.predicted
        self.model = {t: {d: predicted.get(t, {}).get(d, 0.0) for d in own} for t, own in self.documents.items()}
        highest = max(grade for each in (self.people, self.model) for own in each.values() for grade in own.values())
        self.most = {topic: dict.fromkeys(own, highest) for topic, own in self.documents.items()}
        self.labelled_units = [place for place, subject in enumerate(self.order) if subject in chances]
        self.chance = np.array([chances[self.order[place]] for place in self.labelled_units])
        # which documents are labelled by sampling alone, or not at all
        self.by_chance = np.array([chances.get(subject, 0.0) < 1 for subject in self.order], np.bool_)
        self.seed = sample.chances.round.seed

    def filled(self, times: int) -> Iterator[Grades]:
        """People's grades; missing ones are drawn from people's grades of documents that the model graded the same."""
        rng = np.random.default_rng(self.seed)
        predicted = np.array([self.model[topic][document] for topic, document in self.order])
        people_grades = np.array([self.people[self.order[i][0]][self.order[i][1]] for i in self.labelled_units])
        groups = []
        for grade in np.unique(predicted):
            alike = predicted[self.labelled_units] == grade
            alike = alike if alike.any() else np.ones(len(people_grades), np.bool_)
            weight = 1 / self.chance[alike]
            groups.append((np.flatnonzero(predicted == grade), people_grades[alike], weight / weight.sum()))
        for _ in range(times):
            grades = np.empty(len(predicted))
            for places, choice, weight in groups:
                grades[places] = rng.choice(choice, len(places), p=weight)
            grades[self.labelled_units] = people_grades
            yield nested(zip(self.order, grades.tolist(), strict=True))


def _shares(grades: Grades, runs: Sequence[Run], name: str, measure: Measure) -> Floats:
    """Runs × documents: the contribution of each document to the score of its topic."""
    judged = Evaluator(Qrels(grades), measure, warn=False)
    answer = np.zeros((len(runs), len(judged.qrels)))
    for i, run in enumerate(runs):
        hits = judged.hits(run)
        shares = None if measure.judged_only else measure.shares(hits)
        if shares is None:
            sums = ", ".join(each for each, measure in REGISTRY.items() if measure.shares is not Measure.shares)
            problem = f"{name} is not a sum over documents, and documents were drawn; take one of {sums}"
            raise MeasureError(f"{problem}, or draw topics: judge round --sample-topics N")
        answer[i, hits.row] = shares
    return answer


def _notes(sample: LabelSample, rows: Sequence[EstimateRow], labelled: int) -> list[str]:
    notes = []
    near = list(dict.fromkeys(row.measure for row in rows if row.approximate))
    if near:
        notes.append(f"~ {', '.join(near)}: approximate, as the ideal ranking is a guess where people did not label")
    lacking = sample.unlabelled
    if any(lacking):
        note = f"{sample.model} has no label for {lacking[0]:,} documents that were drawn and {lacking[1]:,} others"
        notes.append(f"{note}: they are predicted to be irrelevant")
    thin = list(dict.fromkeys(row.measure for row in rows if row.freedom < THIN and not row.exact))
    if thin and not sample.by_topics:
        few = f"few of the documents that were drawn count for {', '.join(thin)}"
        notes.append(f"{few}: intervals cover less than they say")
    if labelled < FEW and not all(row.exact for row in rows):
        notes.append(f"{labelled} {sample.chances.round.unit} are few: intervals were validated from {FEW} on")
    unused = list(dict.fromkeys(f"{row.measure} of {row.named}" for row in rows if not row.model_used))
    if unused:
        names = unused if len(unused) <= SHOWN else [*unused[:SHOWN], f"{len(unused) - SHOWN} more"]
        notes.append(f"by people alone, as {sample.model} tells too few of the drawn topics apart: {name_list(names)}")
    if any(row.both.low != row.both.low for row in rows):
        topics, documents = "people's scores differ on too few topics", "fewer than three drawn documents count"
        few = topics if sample.by_topics else documents
        notes.append(f"no interval where nothing varies, or {few}")
    if len({row.named for row in rows if row.other and not row.exact}) > 1:
        notes.append("each interval holds on its own, not all of them jointly")
    return notes
