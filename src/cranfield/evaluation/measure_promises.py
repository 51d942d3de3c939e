"""Check the promises of a measure on random runs, for authors of measures.

A class claims properties (`low`, `high`, `ideal_is_best`, `monotone` …, see `Measure`). All measures must keep some
promises: a topic's score does not depend on other topics, the names of documents do not matter, and the measure reads
back from its own name. `check` tries them and reports in words which did not hold.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import MeasureError
from cranfield.base.run import Run
from cranfield.evaluation.evaluate import evaluate
from cranfield.evaluation.measures import Choice, Depth, Flag, Inner, Measure, Real, Whole, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cranfield.base.parameters import Parameter

    Judged = dict[str, float]
    Check = Callable[["_Trial"], Iterator[str]]

__all__ = ["check"]

CLOSE = 1e-9


def check(cls: type[Measure], tries: int = 40, seed: int = 0) -> list[str]:
    """The promises that a measure breaks, one sentence each with an example; empty if it keeps them all.

    >>> from cranfield.evaluation.measures import REGISTRY
    >>> check(REGISTRY["nDCG"], tries=5)
    []
    """
    needs = [need for need in cls.needs if need != "baseline"]
    if needs:
        raise MeasureError(f"{cls.name} needs {', '.join(needs)}, which random runs lack")
    broken: dict[str, str] = dict.fromkeys(_missing_parts(cls), "")
    for nth in range(tries):
        trial = _Trial(cls, np.random.default_rng([seed, nth]))
        for each in CHECKS:
            for sentence in each(trial):
                broken.setdefault(sentence, str(trial))
    return [f"{cls.name}: {sentence}{example and f' ({example})'}" for sentence, example in broken.items()]


class _Trial:
    """One measure with random parameters, and a random topic: grades, and the ranked documents."""

    def __init__(self, cls: type[Measure], rng: np.random.Generator) -> None:
        self.rng = rng
        self.measure = cls(**{name: _random_value(each, rng, wild=True) for name, each in cls.parameters.items()})
        self.tame = cls(**{name: _random_value(each, rng, wild=False) for name, each in cls.parameters.items()})
        self.grades, self.ranking = self.topic()

    def topic(self) -> tuple[Judged, list[str]]:
        """Up to twelve documents, some of them unjudged (u…) and some not returned."""
        highest = min(float(each.values.get("max", 4)) for each in (self.measure, self.tame))
        scale = [grade for grade in (0, 0.25, 1, 1.5, 2, 3, 4) if grade <= highest]
        names = [f"{'u' if self.rng.random() < 0.2 else 'd'}{i}" for i in range(self.rng.integers(1, 12))]
        grades = {name: float(self.rng.choice(scale)) for name in names if name[0] == "d"} or {"d": float(scale[-1])}
        returned = [str(name) for name in self.rng.permutation([*names, *grades]) if self.rng.random() < 0.8]
        return grades, list(dict.fromkeys(returned)) or list(grades)

    def score(self, m: Measure, *topics: tuple[Judged, list[str]], **changes: Any) -> list[float]:
        """The values of some topics."""
        qrels = {f"t{i}": grades for i, (grades, _) in enumerate(topics)}
        run = {f"t{i}": {d: -float(r) for r, d in enumerate(ranking)} for i, (_, ranking) in enumerate(topics)}
        old = {topic: {d: -float(i) for i, d in enumerate(grades)} for topic, grades in qrels.items()}
        baseline = Run(old) if "baseline" in m.needs else None
        scores = evaluate(qrels, Run(run), [m], baseline=baseline, warn=False, **changes)
        return scores.values.reshape(-1).tolist()

    def grade(self, document: str) -> float:
        """A document's grade; 0 if it is unjudged."""
        return self.grades.get(document, 0.0)

    def __str__(self) -> str:
        return f"{self.measure} or {self.tame}, grades {self.grades}, returned {' '.join(self.ranking)}"


def _random_value(parameter: Parameter[Any], rng: np.random.Generator, wild: bool) -> Any:
    """A random value; without `wild` the default of each choice, for which claims are made."""
    if isinstance(parameter, Whole):
        return parameter.low + int(rng.integers(0, 15))
    if isinstance(parameter, Depth):
        return None if rng.random() < 0.5 else int(rng.integers(1, 15))
    if isinstance(parameter, Real):
        if parameter.name == "rel":
            return float(rng.choice([0.5, 1, 1.5, 2, 3]))
        low, high = max(parameter.low, -4), min(parameter.high, 4)
        return round(float(rng.uniform(low + 0.01, high - 0.01)), 3)
    if isinstance(parameter, Inner):
        return measure(str(rng.choice(["nDCG@5", "RR", "RBP(p=0.5)"])))
    if isinstance(parameter, Choice) and wild:
        return str(rng.choice(parameter.choices))
    if isinstance(parameter, Flag) and wild:
        return bool(rng.random() < 0.5)
    return parameter.default


def _missing_parts(cls: type[Measure]) -> Iterator[str]:
    """What the class lacks for its documentation page."""
    definition = (cls.__doc__ or "").partition("\n\n")[0].strip()
    if not definition.endswith(".") or cls.__doc__ == Measure.__doc__:
        yield "the docstring must begin with a paragraph that defines the measure"
    for name in ("formula", "reference"):
        if not getattr(cls, name, ""):
            yield f"it has no {name}"
    if cls.at is not None and cls.at not in cls.parameters:
        yield f"its parameters lack {cls.at!r}, which follows the @ (or set at = None)"


def _bounds(trial: _Trial) -> Iterator[str]:
    m = trial.measure
    [value] = trial.score(m, (trial.grades, trial.ranking))
    if not (math.isnan(value) and getattr(m, "undefined", False)) and not (m.low - CLOSE <= value <= m.high + CLOSE):
        yield f"a score lies outside {m.low:g} to {m.high:g}"


def _ideal(trial: _Trial) -> Iterator[str]:
    ideal = sorted(trial.ranking, key=trial.grade, reverse=True)
    one, best = trial.score(trial.tame, (trial.grades, trial.ranking), (trial.grades, ideal))
    if trial.tame.ideal_is_best and one > best + CLOSE:
        yield "a ranking beats the ideal one (ideal_is_best)"


def _monotone(trial: _Trial) -> Iterator[str]:
    ranking, rel = trial.ranking, trial.tame.values.get("rel", 1)

    def better(one: str, other: str) -> bool:
        return trial.grade(one) > trial.grade(other) if other in trial.grades else trial.grade(one) >= rel

    places = range(len(ranking))
    swaps = [(i, j) for i in places for j in places if i < j and better(ranking[j], ranking[i])]
    if trial.tame.monotone and swaps:
        i, j = swaps[trial.rng.integers(len(swaps))]
        improved = list(ranking)
        improved[i], improved[j] = improved[j], improved[i]
        one, other = trial.score(trial.tame, (trial.grades, ranking), (trial.grades, improved))
        if other < one - CLOSE:
            yield "moving a better document up lowers the score (monotone)"


def _silence(trial: _Trial) -> Iterator[str]:
    if trial.measure.empty_is_zero and any(trial.score(trial.measure, (trial.grades, []))):
        yield "a topic without an answer scores something (empty_is_zero)"


def _company(trial: _Trial) -> Iterator[str]:
    topics = [(trial.grades, trial.ranking), trial.topic(), trial.topic()]
    together = trial.score(trial.measure, *topics)
    if not _same(together, [trial.score(trial.measure, topic)[0] for topic in topics]):
        yield "a topic scores differently alone and with other topics"
    if not _same(together[::-1], trial.score(trial.measure, *topics[::-1])):
        yield "the order of topics matters"


def _names(trial: _Trial) -> Iterator[str]:
    documents = sorted({*trial.grades, *trial.ranking})
    alias = dict(zip(documents, (f"n{i}" for i in trial.rng.permutation(len(documents))), strict=True))
    renamed = {alias[d]: grade for d, grade in trial.grades.items()}, [alias[d] for d in trial.ranking]
    if not _same(*(trial.score(trial.measure, topic) for topic in ((trial.grades, trial.ranking), renamed))):
        yield "the names of documents matter"


def _condensed(trial: _Trial) -> Iterator[str]:
    judged = [document for document in trial.ranking if document in trial.grades]
    with_flag, without = (trial.measure.with_values(judged_only=flag) for flag in (True, False))
    if judged and not _same(
        trial.score(with_flag, (trial.grades, trial.ranking)), trial.score(without, (trial.grades, judged))
    ):
        yield "judged_only differs from the score of the list without unjudged documents"


def _reads_back(trial: _Trial) -> Iterator[str]:
    if measure(str(trial.measure)) != trial.measure:
        yield "it does not read back from its own name"


def _same(one: list[float], other: list[float]) -> bool:
    return bool(np.array_equal(one, other, equal_nan=True))


CHECKS: tuple[Check, ...] = (_bounds, _ideal, _monotone, _silence, _company, _names, _condensed, _reads_back)
