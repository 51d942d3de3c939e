"""Whether a model's errors go with what has nothing to do with relevance: length, rank, the run that returned a document.

Documents must be compared that are equally relevant, and of that there are only people's labels, with their slips. Within one
grade of people's a faultless judge would seem biased: where long documents are more often relevant, a long one that a person
calls irrelevant is more often a slip, which another person corrects. Two people's labels of a document tell how much of a
label is slips (`stats.clustered.effect_beside`), and only documents that two people labelled are looked at where there are any.
With one label each, errors must go with length as they are and within people's grades: the first is 0 for a judge that is
another person, the second for one that knows nothing of relevance. A judge that is sharper than people fails both, so that
less is said then.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.errors import DataError
from cranfield.judge.models.interval import Interval
from cranfield.parameters import shortened
from cranfield.stats.arms import simultaneous
from cranfield.stats.clustered import effect_beside, slope_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cranfield.judge.models.shared import Shared
    from cranfield.judge.policy import Subject
    from cranfield.run import Run
    from cranfield.stats.arms import Estimate
    from cranfield.stats.ties import Bools, Floats

    Ranks = Mapping[str, Mapping[Subject, int]]  # of each run

TOP = 10
LENGTH, RANK, RUN = "length", "rank", "run"
NOTHING = 1e-12
LEAST_NAME = 3  # characters of a model's name that a run's name is searched for
WORD = re.compile(r"[^\W_]+")
DATE = re.compile(r"(?<!\d)(20\d\d)-?(0[1-9]|1[0-2])(?:-?(0[1-9]|[12]\d|3[01]))?(?!\d)")


class Bias(NamedTuple):
    """By how much errors rise with something, in grades: for twice the length or rank, or in a run's top."""

    kind: str
    name: str  # the run's
    documents: int
    effect: Interval  # for all of them at once
    sure: bool  # two people labelled: a judge that is merely sharper than people, or duller, is not taken to be biased


class _Measured(NamedTuple):
    kind: str
    name: str
    documents: int
    effect: Estimate
    sure: bool


def biased(found: Shared, lengths: Mapping[str, int], ranks: Ranks, level: float) -> list[Bias]:
    """By length, by rank and by run, as far as these are known; intervals hold for all at once, by Holm's procedure."""
    length = np.array([lengths.get(document, 0) for document in found.documents], np.float64)
    every = [
        *_by_logarithm(LENGTH, found, length),
        *_by_logarithm(RANK, found, _best(found, ranks)),
        *_by_run(found, ranks),
    ]
    told = [each for each in every if np.isfinite(each.effect.error) and each.effect.error > NOTHING]
    together = simultaneous([each.effect for each in told], 1 - level) if told else []
    return [
        Bias(each.kind, each.name, each.documents, Interval(float(each.effect.value), held.low, held.high), each.sure)
        for each, held in zip(told, together, strict=True)
    ]


def _best(found: Shared, ranks: Ranks) -> Floats:
    """The best rank of each document over the runs; 0 where none returned it."""
    best: dict[Subject, int] = {}
    for own in ranks.values():
        for subject, rank in own.items():
            best[subject] = min(rank, best.get(subject, rank))
    return np.array([best.get(subject, 0) for subject in found.subjects], np.float64)


def _by_logarithm(kind: str, found: Shared, values: Floats) -> Iterator[_Measured]:
    """Errors against the logarithm; documents without a value are left out."""
    known = values > 0
    if known.sum() >= 2:
        part = found.only(known)
        yield _Measured(kind, "", len(part), _effect(part, np.log2(values[known])), bool(part.twice.any()))


def _by_run(found: Shared, ranks: Ranks, top: int = TOP) -> Iterator[_Measured]:
    """Errors in each run's top less those in the tops of the others."""
    within = {name: _member(found, {s for s, rank in own.items() if rank <= top}) for name, own in ranks.items()}
    union = np.logical_or.reduce([*within.values(), np.zeros(len(found), np.bool_)])
    part = found.only(union)
    for name, inside in within.items():
        if inside.any() and not inside[union].all():
            effect = _effect(part, inside[union].astype(np.float64))
            yield _Measured(RUN, name, int(inside.sum()), effect, bool(part.twice.any()))


def _effect(found: Shared, x: Floats) -> Estimate:
    """By how much the model's grade rises with x among equally relevant documents; NaN where that is not told."""
    twice = found.twice
    if twice.any():
        part, grades = found.only(twice), np.array(found.scale.names, np.float64)
        return effect_beside(x[twice], part.predicted, part.counts, grades, part.topic)
    plain = slope_within(x, found.error, np.zeros(len(found), np.int64), found.topic)
    within = slope_within(x, found.error, np.unique(found.people, return_inverse=True)[1], found.topic)
    first, second = (abs(float(each.value)) / max(float(each.error), NOTHING) for each in (plain, within))
    agree = float(plain.value) * float(within.value) >= 0
    return (plain if first < second else within) if agree else replace(within, error=np.asarray(np.nan))


def _member(found: Shared, subjects: set[Subject]) -> Bools:
    return np.array([subject in subjects for subject in found.subjects], np.bool_)


def bare(name: str) -> str:
    """A model's name without its maker, its date and all but letters and digits.

    >>> bare("openai/gpt-4o-mini-2024-07-18"), bare("Qwen2.5:7b")
    ('gpt4omini', 'qwen257b')
    """
    return "".join(WORD.findall(DATE.sub("", name.rpartition("/")[2]).lower()))


def _has_words(text: str, name: str) -> bool:
    """Whether some words of a text, one behind the other, are a name."""
    words = WORD.findall(text.lower())
    starts = range(len(words))
    return any(name == "".join(words[start:end]) for start in starts for end in range(start + 1, len(words) + 1))


def own_runs(models: Iterable[str], runs: Sequence[Run], named: Sequence[str]) -> list[str]:
    """The runs that are built on the judge's own model: those named, and those whose name or tag holds the model's
    as whole words."""
    known = {run.name: run for run in runs}
    for name in named:
        if name not in known:
            there = ", ".join(map(shortened, list(known)[:10])) or "none"
            raise DataError(f"--own {shortened(name)}: no such run; there are {there}")
    short = {bare(model) for model in models}
    found = {
        run.name
        for run in runs
        for name in short
        if len(name) >= LEAST_NAME and any(_has_words(text, name) for text in (run.name, run.tag or ""))
    }
    return [name for name in known if name in found or name in named]
