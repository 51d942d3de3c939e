"""How far a model's grades are people's: agreement beside people's own, the best constant answer, errors by grade.

Intervals are over topics (`stats.clustered`), as documents of a topic hang together. What another person does stands beside
what the model does wherever two people labelled a document: of two people one seems to over-grade what the other calls
irrelevant as well, since some of that was a slip of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.judge.agreeing import MAIN
from cranfield.judge.models.interval import Interval, interval_of, within
from cranfield.stats.agreement import agreement_of_pairs, coefficient
from cranfield.stats.arms import Estimate
from cranfield.stats.clustered import mean_of_items, pairs_of_counts, sums_by_cluster, without_each

if TYPE_CHECKING:
    from cranfield.judge.models.shared import Shared
    from cranfield.stats.agreement import Coefficient
    from cranfield.stats.ties import Bools, Floats

COEFFICIENTS = ("raw", "cohen(weights=linear)", MAIN)
UNKNOWN = Interval()


class Agreed(NamedTuple):
    """A coefficient between the model and people, and among people."""

    coefficient: str
    every: Interval  # the model and a person, on all documents
    model: Interval  # the same on the documents that two people labelled
    people: Interval  # two people, on these
    difference: Interval  # model − people


class Constant(NamedTuple):
    """The model beside the constant answer that is best by a figure."""

    figure: str  # share right, or mean absolute error
    answer: float
    model: Interval
    constant: Interval
    difference: Interval  # model − constant


class GradeError(NamedTuple):
    """The mean of the model's grades less people's, where people gave a grade; NaN: over all."""

    grade: float
    documents: int
    error: Interval
    person: float  # what another person does, where two people labelled


class Mistaken(NamedTuple):
    """Of what people call irrelevant, the share that the model grades so high; or of what is relevant, the share it misses."""

    kind: str  # false positives, false negatives
    grade: float  # at least this; of false negatives below this
    documents: int
    share: Interval
    person: float


def intervals(estimate: Estimate, level: float) -> list[Interval]:
    """Each of several estimates."""
    values, errors = np.atleast_1d(estimate.value), np.atleast_1d(estimate.error)
    each = (Estimate(value, error, estimate.df) for value, error in zip(values, errors, strict=True))
    return [interval_of(one, level) for one in each]


def agreed(found: Shared, level: float) -> list[Agreed]:
    """By each coefficient."""
    with_model = pairs_of_counts(found.own_counts, found.counts)
    among = pairs_of_counts(found.counts)
    every, both = sums_by_cluster(found.topic, with_model), None
    if found.twice.any():
        twice = found.twice
        both = sums_by_cluster(found.topic[twice], with_model[twice], among[twice])
    return [_agreed(coefficient(name), found, every, both, level) for name in COEFFICIENTS]


def _agreed(chosen: Coefficient, found: Shared, every: Floats, both: Floats | None, level: float) -> Agreed:
    def alone(sums: Floats) -> Floats:
        return agreement_of_pairs(chosen, sums, found.scale)

    def beside(sums: Floats) -> Floats:
        model, people = alone(sums[:, : every.shape[1]]), alone(sums[:, every.shape[1] :])
        return np.stack([model, people, model - people], axis=-1)

    [whole] = intervals(without_each(every, alone), level)
    parts = [UNKNOWN] * 3 if both is None else intervals(without_each(both, beside), level)
    every_one, model, people = (within(one, -1.0, 1.0) for one in (whole, *parts[:2]))
    return Agreed(str(chosen), every_one, model, people, parts[2])


def constants(found: Shared, level: float) -> list[Constant]:
    """The constant that is right most often, and the one that is least far off, each beside the model."""
    grades = np.unique(found.people)
    right, off = (found.people == grades[:, None]), np.abs(found.people - grades[:, None])
    often, nearest = int(right.mean(axis=1).argmax()), int(off.mean(axis=1).argmin())
    span = float(np.ptp(np.array(found.scale.names, np.float64)))
    return [
        _beside("share right", grades[often], found.predicted == found.people, right[often], 1.0, found, level),
        _beside("mean absolute error", grades[nearest], np.abs(found.error), off[nearest], span, found, level),
    ]


def _beside(
    figure: str,
    answer: float,
    model: Floats | Bools,
    constant: Floats | Bools,
    most: float,
    found: Shared,
    level: float,
) -> Constant:
    values = np.stack([model, constant, model.astype(np.float64) - constant], axis=-1)
    sums = sums_by_cluster(found.topic, values, 1.0)
    parts = intervals(without_each(sums, lambda rows: rows[:, :3] / rows[:, 3:]), level)
    one, other = (within(part, 0.0, most) for part in parts[:2])
    return Constant(figure, float(answer), one, other, within(parts[2], -most, most))


def errors(found: Shared, level: float) -> list[GradeError]:
    """Over all documents, then by people's grade."""
    among, values = _among(found), np.array(found.scale.names)
    steps = values - values[:, None]
    most = float(np.abs(steps).max())

    def mean(here: Bools) -> Interval:
        return within(interval_of(mean_of_items(found.error[here], found.topic[here]), level), -most, most)

    rows = [GradeError(np.nan, len(found), mean(np.ones(len(found), np.bool_)), np.nan)]
    for grade in np.unique(found.people):
        here, code = found.people == grade, int(np.searchsorted(values, grade))
        rows.append(
            GradeError(float(grade), int(here.sum()), mean(here), _share(among[code] * steps[code], among[code]))
        )
    return rows


def mistaken(found: Shared, rel: float, level: float) -> list[Mistaken]:
    """What is graded too high of what people call irrelevant, and what is missed of the relevant."""
    among, values = _among(found), np.array(found.scale.names)
    below, relevant = found.people < rel, found.people >= rel
    rows = []
    for grade in values[values >= rel] if below.any() else ():
        share = mean_of_items(found.predicted[below] >= grade, found.topic[below])
        person = _share(among[values < rel][:, values >= grade], among[values < rel])
        rows.append(Mistaken("false positives", float(grade), int(below.sum()), _share_of(share, level), person))
    if relevant.any():
        share = mean_of_items(found.predicted[relevant] < rel, found.topic[relevant])
        person = _share(among[values >= rel][:, values < rel], among[values >= rel])
        rows.append(Mistaken("false negatives", rel, int(relevant.sum()), _share_of(share, level), person))
    return rows


def _share_of(estimate: Estimate, level: float) -> Interval:
    return within(interval_of(estimate, level), 0.0, 1.0)


def _among(found: Shared) -> Floats:
    """How often one person gave a grade where another gave one: grades × grades."""
    return np.asarray(pairs_of_counts(found.counts).sum(axis=0).reshape(len(found.scale), -1), np.float64)


def _share(part: Floats, whole: Floats) -> float:
    total = float(whole.sum())
    return float(part.sum()) / total if total > 0 else np.nan
