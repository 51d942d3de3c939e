"""How well a model's grades match people's: agreement, the best constant answer, errors by grade, and biases.

Intervals are over topics (`stats.jackknife`), since documents of a topic depend on each other. Wherever two people
labelled a document, the agreement between people is shown next to that of the model: one person also seems to
over-grade documents that another calls irrelevant, because some of those labels are slips.

A bias is an error that goes with length, rank or run. It must be measured among equally relevant documents, and only
people's labels, with their slips, tell which are. Within one of people's grades a perfect judge would seem biased: if
long documents are relevant more often, a long one that a person calls irrelevant is more often a slip. Two people's
labels of a document tell how many labels are slips (`stats.jackknife.effect_beside`), so only such documents are used
if there are any. With one label each, errors must go with length both overall and within people's grades: the first is
0 for a judge as good as another person, the second for one that ignores relevance. A judge better than people fails
both; then less is reported.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.judging.agreement import MAIN
from cranfield.stats import jackknife
from cranfield.stats.agreement import AgreementCoefficient, agreement_of_pairs, coefficient
from cranfield.stats.arms import EffectEstimate, simultaneous
from cranfield.stats.interval_limits import above, below
from cranfield.stats.jackknife import mean_of_items, pairs_of_counts, sums_by_cluster, without_each

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cranfield.base.run import Run
    from cranfield.judging.llm.label_sample import CommonLabels
    from cranfield.judging.policies import Subject
    from cranfield.stats.ties import Bools, Floats

    Ranks = Mapping[str, Mapping[Subject, int]]  # of each run
    Biases = Iterator[tuple["Bias", EffectEstimate]]  # each without its interval, and the estimate of its effect


LEAST_SHARE = 1e-9  # an error below this share of what is estimated is none


class ValueInterval(NamedTuple):
    """A value and its interval; the ends are NaN if nothing varies."""

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan

    @property
    def apart(self) -> bool:
        """Whether the interval excludes 0."""
        return self.above() or self.below()

    def above(self, number: float = 0.0) -> bool:
        """Whether the interval lies above a number."""
        return above(self.low, self.high, number)

    def below(self, number: float = 0.0) -> bool:
        """Whether the interval lies below a number."""
        return below(self.low, self.high, number)


def interval_of(estimate: EffectEstimate, level: float) -> ValueInterval:
    """The interval of an estimate."""
    value, error = float(estimate.value), float(estimate.error)
    if not error > LEAST_SHARE * max(1.0, abs(value)):
        return ValueInterval(value)
    low, high = estimate.interval(level)
    return ValueInterval(value, float(low), float(high))


def within(interval: ValueInterval, lowest: float, highest: float) -> ValueInterval:
    """The interval, clipped to the possible range; the estimate itself always stays inside.

    >>> within(ValueInterval(0.9, 0.7, 1.1), 0, 1)
    ValueInterval(value=0.9, low=0.7, high=1.0)
    """
    low, high = min(interval.value, lowest), max(interval.value, highest)
    return ValueInterval(interval.value, *np.clip(interval[1:], low, high).tolist())


TOP = 10
LENGTH, RANK, RUN = "length", "rank", "run"
NOTHING = 1e-12
LEAST_NAME = 3  # characters of a model's name that a run's name is searched for
WORD = re.compile(r"[^\W_]+")
DATE = re.compile(r"(?<!\d)(20\d\d)-?(0[1-9]|1[0-2])(?:-?(0[1-9]|[12]\d|3[01]))?(?!\d)")


class Bias(NamedTuple):
    """How much errors grow, in grades: per doubling of length or rank, or for documents in a run's top."""

    kind: str
    name: str  # the run's
    documents: int
    effect: ValueInterval  # for all of them at once
    sure: bool  # two people labelled: a judge that is merely sharper than people, or duller, is not taken to be biased


def biases_of(common: CommonLabels, lengths: Mapping[str, int], ranks: Ranks, level: float) -> list[Bias]:
    """Biases by length, rank and run, as far as known; the intervals hold simultaneously (Holm)."""
    length = np.array([lengths.get(document, 0) for document in common.documents], np.float64)
    best = _by_logarithm(RANK, common, _best(common, ranks))
    every = [*_by_logarithm(LENGTH, common, length), *best, *_by_run(common, ranks)]
    estimates = [each for each in every if np.isfinite(each[1].error) and each[1].error > NOTHING]
    together = simultaneous([effect for _, effect in estimates], 1 - level) if estimates else []
    return [
        bias._replace(effect=ValueInterval(float(effect.value), held.low, held.high))
        for (bias, effect), held in zip(estimates, together, strict=True)
    ]


def _best(common: CommonLabels, ranks: Ranks) -> Floats:
    """The best rank of each document over the runs; 0 where none returned it."""
    of_runs = ([own[subject] for own in ranks.values() if subject in own] for subject in common.subjects)
    return np.array([min(each, default=0) for each in of_runs], np.float64)


def _by_logarithm(kind: str, common: CommonLabels, values: Floats) -> Biases:
    """Errors against the logarithm of a value; documents without a value are left out."""
    positive = values > 0
    if positive.sum() >= 2:
        part = common.only(positive)
        bias = Bias(kind, "", len(part), ValueInterval(), bool(part.twice.any()))
        yield bias, _effect(part, np.log2(values[positive]))


def _by_run(common: CommonLabels, ranks: Ranks) -> Biases:
    """The model's errors on each run's top documents, compared with those on the top documents of the other runs."""
    tops = {name: {subject for subject, rank in own.items() if rank <= TOP} for name, own in ranks.items()}
    within = {name: np.array([each in own for each in common.subjects], np.bool_) for name, own in tops.items()}
    union = np.logical_or.reduce([*within.values(), np.zeros(len(common), np.bool_)])
    part = common.only(union)
    for name, inside in within.items():
        if inside.any() and not inside[union].all():
            bias = Bias(RUN, name, int(inside.sum()), ValueInterval(), bool(part.twice.any()))
            yield bias, _effect(part, inside[union].astype(np.float64))


def _effect(common: CommonLabels, x: Floats) -> EffectEstimate:
    """How much the model's grade grows with x among equally relevant documents; the error is NaN if that is unknown."""
    twice = common.twice
    if twice.any():
        part, grades = common.only(twice), np.array(common.scale.names, np.float64)
        return jackknife.effect_beside(x[twice], part.predicted, part.counts, grades, part.topic)
    plain = jackknife.slope_within(x, common.error, np.zeros(len(common), np.int64), common.topic)
    codes = np.unique(common.people, return_inverse=True)[1]
    within = jackknife.slope_within(x, common.error, codes, common.topic)
    first, second = (abs(float(each.value)) / max(float(each.error), NOTHING) for each in (plain, within))
    agree = float(plain.value) * float(within.value) >= 0
    return (plain if first < second else within) if agree else replace(within, error=np.asarray(np.nan))


def bare(name: str) -> str:
    """A model's name without its maker, its date and all but letters and digits.

    >>> bare("openai/gpt-4o-mini-2024-07-18"), bare("Qwen2.5:7b")
    ('gpt4omini', 'qwen257b')
    """
    return "".join(WORD.findall(DATE.sub("", name.rpartition("/")[2]).lower()))


def _has_words(text: str, name: str) -> bool:
    """Whether consecutive words of a text form a name."""
    words = WORD.findall(text.lower())
    starts = range(len(words))
    return any(name == "".join(words[start:end]) for start in starts for end in range(start + 1, len(words) + 1))


def own_runs(models: Iterable[str], runs: Sequence[Run], named: Sequence[str]) -> list[str]:
    """The runs that use the judge's own model: those given, and those whose name or tag contains the model's name."""
    runs_by_name = {run.name: run for run in runs}
    for name in named:
        if name not in runs_by_name:
            there = ", ".join(map(shortened, list(runs_by_name)[:10])) or "none"
            raise DataError(f"--own {shortened(name)}: no such run; there are {there}")
    short = {bare(model) for model in models}
    names = {
        run.name
        for run in runs
        for name in short
        if len(name) >= LEAST_NAME and any(_has_words(text, name) for text in (run.name, run.tag or ""))
    }
    return [name for name in runs_by_name if name in names or name in named]


COEFFICIENTS = ("raw", "cohen(weights=linear)", MAIN)
UNKNOWN = ValueInterval()


class ModelAgreement(NamedTuple):
    """A coefficient between the model and people, and among people."""

    coefficient: str
    every: ValueInterval  # the model and a person, on all documents
    model: ValueInterval  # the same on the documents that two people labelled
    people: ValueInterval  # two people, on these
    difference: ValueInterval  # model − people


class ConstantAnswer(NamedTuple):
    """The model compared with the best constant answer."""

    figure: str  # share right, or mean absolute error
    answer: float
    model: ValueInterval
    constant: ValueInterval
    difference: ValueInterval  # model − constant


class GradeError(NamedTuple):
    """The mean difference between the model's and people's grades at one of people's grades; NaN: over all."""

    grade: float
    documents: int
    error: ValueInterval
    person: float  # what another person does, where two people labelled


class ErrorRate(NamedTuple):
    """The share of irrelevant documents that the model grades this high, or of relevant ones that it misses."""

    kind: str  # false positives, false negatives
    grade: float  # at least this; of false negatives below this
    documents: int
    share: ValueInterval
    person: float


def intervals(estimate: EffectEstimate, level: float) -> list[ValueInterval]:
    """The interval of each of several estimates."""
    values, errors = np.atleast_1d(estimate.value), np.atleast_1d(estimate.error)
    each = (EffectEstimate(value, error, estimate.df) for value, error in zip(values, errors, strict=True))
    return [interval_of(one, level) for one in each]


def model_agreement(common: CommonLabels, level: float) -> list[ModelAgreement]:
    """The agreement by each coefficient."""
    with_model = pairs_of_counts(common.own_counts, common.counts)
    among = pairs_of_counts(common.counts)
    every, both = sums_by_cluster(common.topic, with_model), None
    if common.twice.any():
        twice = common.twice
        both = sums_by_cluster(common.topic[twice], with_model[twice], among[twice])
    return [_agreement_by(coefficient(name), common, every, both, level) for name in COEFFICIENTS]


def _agreement_by(
    coefficient_used: AgreementCoefficient, common: CommonLabels, every: Floats, both: Floats | None, level: float
) -> ModelAgreement:
    def alone(sums: Floats) -> Floats:
        return agreement_of_pairs(coefficient_used, sums, common.scale)

    def beside(sums: Floats) -> Floats:
        model, people = alone(sums[:, : every.shape[1]]), alone(sums[:, every.shape[1] :])
        return np.stack([model, people, model - people], axis=-1)

    [whole] = intervals(without_each(every, alone), level)
    parts = [UNKNOWN] * 3 if both is None else intervals(without_each(both, beside), level)
    every_one, model, people = (within(one, -1.0, 1.0) for one in (whole, *parts[:2]))
    return ModelAgreement(str(coefficient_used), every_one, model, people, parts[2])


def constants(common: CommonLabels, level: float) -> list[ConstantAnswer]:
    """The model compared with two constants: the one most often right, and the one with the smallest error."""
    grades = np.unique(common.people)
    right, off = (common.people == grades[:, None]), np.abs(common.people - grades[:, None])
    often, nearest = int(right.mean(axis=1).argmax()), int(off.mean(axis=1).argmin())
    span = float(np.ptp(np.array(common.scale.names, np.float64)))

    def beside(answer: float, model: Floats | Bools, constant: Floats | Bools, most: float) -> tuple[Any, ...]:
        values = np.stack([model, constant, model.astype(np.float64) - constant], axis=-1)
        sums = sums_by_cluster(common.topic, values, 1.0)
        parts = intervals(without_each(sums, lambda rows: rows[:, :3] / rows[:, 3:]), level)
        return float(answer), *(within(part, 0.0, most) for part in parts[:2]), within(parts[2], -most, most)

    return [
        ConstantAnswer("share right", *beside(grades[often], common.predicted == common.people, right[often], 1.0)),
        ConstantAnswer("mean absolute error", *beside(grades[nearest], np.abs(common.error), off[nearest], span)),
    ]


def errors(common: CommonLabels, level: float) -> list[GradeError]:
    """The mean errors over all documents, then by people's grade."""
    among, values = _among(common), np.array(common.scale.names)
    steps = values - values[:, None]
    most = float(np.abs(steps).max())

    def mean(here: Bools) -> ValueInterval:
        return within(interval_of(mean_of_items(common.error[here], common.topic[here]), level), -most, most)

    rows = [GradeError(np.nan, len(common), mean(np.ones(len(common), np.bool_)), np.nan)]
    for grade in np.unique(common.people):
        here, code = common.people == grade, int(np.searchsorted(values, grade))
        person = _share(among[code] * steps[code], among[code])
        rows.append(GradeError(float(grade), int(here.sum()), mean(here), person))
    return rows


def error_rates(common: CommonLabels, rel: float, level: float) -> list[ErrorRate]:
    """The rates of over-graded irrelevant documents and of missed relevant ones."""
    among, values = _among(common), np.array(common.scale.names)
    below, relevant = common.people < rel, common.people >= rel

    def share(wrong: Bools, here: Bools) -> ValueInterval:
        return within(interval_of(mean_of_items(wrong[here], common.topic[here]), level), 0.0, 1.0)

    rows = []
    for grade in values[values >= rel] if below.any() else ():
        wrong = share(common.predicted >= grade, below)
        person = _share(among[values < rel][:, values >= grade], among[values < rel])
        rows.append(ErrorRate("false positives", float(grade), int(below.sum()), wrong, person))
    if relevant.any():
        wrong = share(common.predicted < rel, relevant)
        person = _share(among[values >= rel][:, values < rel], among[values >= rel])
        rows.append(ErrorRate("false negatives", rel, int(relevant.sum()), wrong, person))
    return rows


def _among(common: CommonLabels) -> Floats:
    """The counts of pairs of people's labels of the same document: one person's grade × the other's grade."""
    return np.asarray(pairs_of_counts(common.counts).sum(axis=0).reshape(len(common.scale), -1), np.float64)


def _share(part: Floats, whole: Floats) -> float:
    total = float(whole.sum())
    return float(part.sum()) / total if total > 0 else np.nan
