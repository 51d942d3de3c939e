"""Bounds of a score: over the orders of tied documents, or over the grades of unjudged documents.

Every bound is attained by some order or some grades. It is proven that nothing lies beyond a bound if the measure never
falls when a better document moves up, or if every case was tried. Otherwise the bound is the extreme value that a
search found, and is labelled "found". Topics are independent, so the bounds of a mean are the means of the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import inf, nan, nextafter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cranfield.base.errors import ConventionError, MeasureError
from cranfield.base.parameters import Choice, Flag, refuse_below
from cranfield.base.results import Answer, Layout, Table, plain
from cranfield.evaluation.evaluate import MOVED, PLAIN, Evaluator
from cranfield.evaluation.hits import Hits
from cranfield.evaluation.measures import Measure
from cranfield.evaluation.measures.definition import Gain, needs_of, takes_topics_alone
from cranfield.evaluation.tie_orders import EVERY_CASE, Orders, in_parallel, starts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Unpack

    import numpy.typing as npt

    from cranfield.base.conventions import Conventions
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.base.results import Part
    from cranfield.base.run import Run
    from cranfield.evaluation.hits import Judgments
    from cranfield.evaluation.options import EvaluatorOptions
    from cranfield.evaluation.scores import Scores

    Mask = npt.NDArray[np.bool_]

FAMILY = 64  # most unjudged documents per topic for which every number of relevant ones is tried
BINARY = ("precision and recall", "set", "average precision", "first relevant")  # families with binary relevance
RISING = ("P", "CG", "DCG", "ERR", "RR", "Success", "RBP", "NumRelRet")  # a better grade never lowers these measures


def bounds(
    qrels: Any,
    runs: Any,
    measures: str | Measure | Iterable[str | Measure],
    over: Literal["ties", "unjudged"] = "ties",
    *,
    samples: int = 200,
    seed: int = 0,
    **options: Unpack[EvaluatorOptions],
) -> Bounds:
    """The lowest and the highest value of each score over the orders of ties, or over the grades of unjudged documents.

    Takes the arguments of `evaluate`. Where there is no formula and there are too many cases to try, `samples` random
    cases are drawn with `seed`.

    >>> found = bounds({"q": {"a": 1}}, {"q": {"a": 1, "b": 1, "c": 0}}, "RR", over="ties")
    >>> found.low.item(), found.expected.item(), found.high.item()
    (0.5, 0.75, 1.0)
    """
    evaluator = Evaluator(qrels, measures, **options)
    return bounds_of(evaluator, runs, over, samples, seed)


def bounds_of(evaluator: Evaluator, runs: Any, over: str, samples: int = 200, seed: int = 0) -> Bounds:
    """The bounds of runs, with an existing evaluator."""
    if over not in ("ties", "unjudged"):
        raise ConventionError(f"bounds must be over ties or unjudged, got {over!r}")
    refuse_below(1, samples=samples)
    refuse_below(0, seed=seed)
    _refuse(evaluator, over)
    opened = evaluator.open(runs)
    evaluator.warns_of_ties &= over != "ties"  # the bounds themselves show the effect of ties
    scores = evaluator.evaluate(opened)
    ranges = [_ranges(evaluator, run, over, samples, seed) for run in opened]
    whole = {name: np.stack([getattr(each, name) for each in ranges]) for name in _Range.ARRAYS}
    arrays: dict[str, Any] = {name: values[:, :, evaluator.topic_mask] for name, values in whole.items()}
    for name in ("low", "high", "expected"):
        arrays[name][np.broadcast_to(~scores.counted[:, None, :], arrays[name].shape)] = nan
    grades, every = (_scale(evaluator.judgments, valued).tolist() for valued in (False, True))
    valued = [name for name, measure in scores.measures.items() if _values_negative(measure)]
    negative = {name: [grade for grade in every if grade < 0] for name in valued if every[0] < 0}
    return Bounds(over, scores, grades=grades, negative=negative, samples=samples, seed=seed, **arrays)


def _ranges(evaluator: Evaluator, run: Run, over: str, samples: int, seed: int) -> _Range:
    """The ranges of one run, each measure under its own conventions and with the cases that it distinguishes.

    Measures that use labels or groups distinguish documents of one grade. Some measures treat a document of grade -2 as
    judged, others do not.
    """
    every = list(evaluator.measures.values())
    groups: dict[tuple[Conventions, bool], list[int]] = {}
    for m, each in enumerate(every):
        special = bool(needs_of(each) - PLAIN) if over == "ties" else _values_negative(each)
        groups.setdefault((evaluator.conventions_for(each), special), []).append(m)
    answer = _Range(every, evaluator.judgments.size)
    for (_, special), positions in groups.items():
        hits, measures = evaluator.hits(run, every[positions[0]]), [every[m] for m in positions]
        work = _over_orders if over == "ties" else _over_grades
        answer.put(positions, work(hits, measures, special, samples, seed))
    return answer


def _refuse(evaluator: Evaluator, over: str) -> None:
    """Raise an error if a measure uses more of a document than the order or the grade that is varied here."""
    if over == "unjudged" and evaluator.conventions.unjudged == "drop":
        raise ConventionError("bounds over unjudged documents make no sense where unjudged=drop takes them out")
    if over == "unjudged" and evaluator.conventions.ties == "averaged":
        raise ConventionError("bounds over unjudged documents need one order of ties, not the mean over all of them")
    for name, measure in evaluator.measures.items():
        needs = evaluator.sees(measure)
        refused = needs - PLAIN if over == "unjudged" else needs - MOVED
        if refused:
            uses = f"it uses a document's {', '.join(sorted(refused))}"
            limit = "only grades are varied" if over == "unjudged" else "only judged documents are reordered"
            raise MeasureError(f"{name}: no bounds over {over}: {uses}, and {limit}")


@dataclass
class Bounds(Answer):
    """The result of `bounds`: lowest, highest and (over ties) expected values, runs × measures × topics.

    `proven` marks where no case gives less than `low` or more than `high`; elsewhere a search found both. `exact`
    marks where `expected` is the mean over all orders; elsewhere it is the mean of a sample.
    """

    over: str
    scores: Scores
    low: Floats
    high: Floats
    expected: Floats
    proven: Mask
    exact: Mask
    grades: list[float]  # the possible grades of an unjudged document
    negative: dict[str, list[float]]  # measure that uses negative grades → the negative grades possible there
    samples: int
    seed: int

    has_topics = True
    ascii_json = True

    @property
    def assumption(self) -> str:
        """What is varied, whether the ideal ranking changes with it, and what is proven, in words."""
        grades = ", ".join(f"{grade:g}" for grade in self.grades)
        varied, attained = {
            "ties": (
                "documents with equal scores may stand in any order, all equally likely; grades and the ideal ranking do "
                "not change",
                "some order; proven: no order goes beyond",
            ),
            "unjudged": (
                f"each unjudged document that the run returned may have any grade of {grades}{self._lower()}, or all stay "
                "unjudged; the number of relevant documents and the ideal ranking change with them; documents not "
                "returned stay irrelevant",
                "some grades, or by the present score; proven: no grades go beyond",
            ),
        }[self.over]
        return (
            f"{varied}. Every bound is attained by {attained}; found: the most extreme of the cases tried, "
            f"{self.samples} of them random (seed {self.seed})"
        )

    def _lower(self) -> str:
        """The negative grades that some measures use, in words."""
        lower = ", ".join(f"{grade:g}" for grade in next(iter(self.negative.values()), []))
        return f" (for {', '.join(self.negative)} of {lower} too)" if lower else ""

    def sort(self, by: str | Measure = "name") -> Bounds:
        """Sort the runs, as `Scores.sort` does."""
        scores = self.scores.sort(by)
        order = [self.scores.runs.index(run) for run in scores.runs]
        values = {name: getattr(self, name)[order] for name in ("low", "high", "expected", "proven", "exact")}
        return replace(self, scores=scores, **values)

    def basis(self) -> list[str]:
        return [f"assumption: {self.assumption}", *self.scores.basis()]

    def notes(self, shell: bool = False) -> list[str]:
        return self.scores.notes(shell)

    def summary(self, which: str) -> Floats:
        """Runs × measures: `low`, `high` or `expected` over all topics; NaN if the topics' values do not determine it."""
        scores = self.scores
        answer = scores.summarise_values(getattr(self, which))
        for m, (name, measure) in enumerate(scores.measures.items()):
            settled = takes_topics_alone(measure) and (name not in scores.pooled or measure.aggregate != "mean")
            if not settled or (which == "expected" and measure.aggregate not in ("mean", "sum")):
                answer[:, m] = nan
        return answer

    def rows(self, per_topic: bool = False) -> Iterator[dict[str, Any]]:
        """One row per run and measure (and topic, then `all`): the values, and whether they are proven."""
        low, expected, high = (self.summary(which) for which in ("low", "expected", "high"))
        scores = self.scores
        for r, run in enumerate(scores.runs):
            topics = np.flatnonzero(scores.counted[r])
            for m, measure in enumerate(scores.measures):
                for t in topics.tolist() if per_topic else []:
                    at = r, m, t
                    values = self.low[at], scores.values[at], self.expected[at], self.high[at]
                    yield self._row(run, measure, scores.topics[t], values, self.proven[at], self.exact[at])
                values = low[r, m], scores.summary[r, m], expected[r, m], high[r, m]
                proven, exact = self.proven[r, m, topics].all(), self.exact[r, m, topics].all()
                yield self._row(run, measure, "all", values, proven, exact)

    def _row(
        self, run: str, measure: str, topic: str, values: tuple[float, ...], proven: np.bool_, exact: np.bool_
    ) -> dict[str, Any]:
        low, score, expected, high = plain(values)
        row = {"run": run, "measure": measure, "topic": topic, "low": low, "score": score, "expected": expected}
        row |= {"high": high, "bounds": None if low is None else "proven" if proven else "found"}
        row["expectation"] = None if expected is None else "exact" if exact else "sampled"
        if self.over == "unjudged":
            del row["expected"], row["expectation"]
        return row

    def _rows(self, how: Layout) -> list[dict[str, Any]]:
        rows = list(self.rows(how.per_topic))
        if not how.per_topic:
            for row in rows:
                del row["topic"]
        return rows

    def content(self, how: Layout) -> list[Part]:
        rows = self._rows(how)
        cells = [[value if isinstance(value, str) else how.number(value) for value in row.values()] for row in rows]
        return [Table(list(rows[0]), cells, 2 + how.per_topic), f"assumption: {self.assumption}"]

    def plain(self, how: Layout) -> dict[str, Any]:
        """The bounds for JSON: what is varied, the assumption, one row per run and measure (and topic)."""
        rows = plain(self._rows(how), how.digits)
        answer: dict[str, Any] = {"over": self.over, "assumption": self.assumption, "bounds": rows}
        if self.over == "unjudged":
            answer["grades"] = self.grades
            if self.negative:
                answer["negative"] = self.negative
        conventions = self.scores.conventions.to_dict()
        return {**answer, "samples": self.samples, "seed": self.seed, "conventions": conventions}


# properties of a measure


def _rises(measure: Measure) -> bool:
    """Whether moving a better document up never lowers it; classes claim this for the default of each choice."""
    return measure.monotone and not needs_of(measure) - PLAIN and _as_claimed(measure)


def _as_claimed(measure: Measure) -> bool:
    for name, parameter in measure.parameters.items():
        value = measure.values[name]
        own_gains = isinstance(parameter, Gain) and not isinstance(value, str)
        another = isinstance(parameter, (Choice, Flag)) and value != parameter.default
        # judged_only: a document that moves up never moves down in the condensed list
        if (own_gains or another) and name != "judged_only":
            return False
    return True


def _binary(measure: Measure) -> bool:
    """Whether it uses only binary relevance: known for our own families, checked by enumeration in the tests."""
    if measure.family not in BINARY or not type(measure).__module__.startswith("cranfield."):
        return False
    if "rel" not in measure.values or any(isinstance(each, Gain) for each in measure.parameters.values()):
        return False
    return bool(measure.values.get("gain", "binary") == "binary")


def _values_negative(measure: Measure) -> bool:
    """Whether the measure uses negative grades: they have a gain, or count as relevant."""
    values = [(parameter, measure.values[name]) for name, parameter in measure.parameters.items()]
    gains = [value for parameter, value in values if isinstance(parameter, Gain)]
    own = [grade for gain in gains if not isinstance(gain, str) for grade, _ in gain]
    inner = [value for _, value in values if isinstance(value, Measure)]
    lowest = min([float(measure.values.get("rel", 0)), *own])
    return lowest < 0 or any(map(Gain.signed, gains)) or any(map(_values_negative, inner))


# ranges, measures × topics


class _Range:
    """The lowest, highest and mean value of the cases so far, and what is proven and exact."""

    ARRAYS = ("low", "high", "expected", "proven", "exact")

    def __init__(self, measures: list[Measure], size: int) -> None:
        shape = len(measures), size
        self.measures = measures
        self.low, self.high, self.expected = (np.full(shape, nan) for _ in range(3))
        self.total, self.number = np.zeros(shape), np.zeros(shape)
        self.proven, self.exact = np.zeros(shape, bool), np.zeros(shape, bool)

    def take(self, hits: Hits, in_mean: Mask | None = None, only: Mask | None = None) -> None:
        """Score a case; `in_mean` are the topics whose mean it enters, `only` those for which it is valid."""
        for m, measure in enumerate(self.measures):
            try:
                values = measure(hits)
            except (_ElsewhereError, TypeError) as error:
                if isinstance(error, TypeError) and "do not come from a run" not in str(error):
                    raise
                reason = "it uses more of a document than its rank and grade"
                raise MeasureError(f"{measure}: no bounds: {reason}") from None
            at: Any = slice(None) if only is None else only
            self.low[m, at] = np.fmin(self.low[m, at], values[at])  # ignore undefined values
            self.high[m, at] = np.fmax(self.high[m, at], values[at])
            if in_mean is not None:
                self.total[m, in_mean] += values[in_mean]
                self.number[m, in_mean] += 1

    def settled(self) -> _Range:
        """Finish after the last case: expected values by formula, from equal bounds, or as the mean of the cases."""
        for values in (self.low, self.high):
            values[np.isinf(values)] = nan
        by_formula = ~np.isnan(self.expected)
        mean = np.divide(self.total, self.number, out=np.full(self.total.shape, nan), where=self.number > 0)
        alike = self.proven & (self.low == self.high)
        expected = np.where(by_formula, self.expected, np.where(alike, self.low, mean))
        self.expected = np.clip(expected, self.low, self.high)
        self.exact |= by_formula | alike
        return self

    def put(self, positions: list[int], part: _Range) -> None:
        """Copy the ranges of some of the measures."""
        for name in self.ARRAYS:
            getattr(self, name)[positions] = getattr(part, name)


# over the orders of ties


def _over_orders(hits: Hits, measures: list[Measure], by_document: bool, samples: int, seed: int) -> _Range:
    orders = Orders(hits, by_document, EVERY_CASE)
    answer = _Range(measures, hits.size)
    answer.take(hits)
    levels = {float(each.values["rel"]) for each in measures if "rel" in each.values}
    for pivot in sorted({-inf, 0.0, nextafter(0, 1), inf, *levels}):
        for best in (True, False):
            answer.take(orders.extreme(pivot, best))
    few, many = orders.enumerable, orders.free & ~orders.enumerable
    answer.proven |= ~orders.free | few
    answer.exact |= ~orders.free | few
    for m, measure in enumerate(measures):
        answer.proven[m] |= _rises(measure)
        formula = measure.expected(hits.condensed() if measure.judged_only else hits)
        if formula is not None:
            answer.expected[m] = formula
    for new_topics, order in orders.every():
        answer.take(order, new_topics)
    settled = answer.proven & (~np.isnan(answer.expected) | (answer.low == answer.high))
    if (many & ~settled).any():
        rng = np.random.default_rng(seed)
        for _ in range(samples):
            answer.take(orders.random_order(rng.random(int(orders.ties.size.sum()))), many)
    return answer.settled()


# over the grades of unjudged documents


def _scale(judgments: Judgments, valued: bool) -> Floats:
    """The possible grades of an unjudged document: 0 and those of the judgments; negative ones only if `valued`."""
    grades = np.unique(judgments.grade if valued else judgments.grade[judgments.grade >= 0])
    return np.union1d([0.0], grades if grades.max(initial=0) > 0 else np.r_[grades, 1.0])


def _over_grades(hits: Hits, measures: list[Measure], valued: bool, samples: int, seed: int) -> _Range:
    unjudged = _Unjudged(hits, valued)
    number = unjudged.number
    scale = _scale(hits.judgments, valued)
    answer = _Range(measures, hits.size)
    answer.take(hits)  # the present score; no grade gives it for a measure that skips unjudged documents
    few = np.array([float(len(scale)) ** float(min(n, 20)) <= EVERY_CASE for n in number.tolist()])
    most = int(number.max(initial=0))
    numbers = np.arange(most + 1)  # of relevant documents among the unjudged ones
    if most > FAMILY:
        numbers = np.unique(np.r_[0, np.geomspace(1, most, FAMILY).astype(int), most])
    for relevant in numbers.tolist():
        for top in (True, False):
            relevant_mask = unjudged.nth <= relevant if top else unjudged.nth > number[unjudged.topic] - relevant
            answer.take(unjudged.graded(np.where(relevant_mask, scale[-1], scale[0])))
    for m, measure in enumerate(measures):
        rises = _rises(measure) and not (valued and measure.judged_only)  # a negative grade removes it from the list
        rising = rises and measure.name in RISING and measure.values.get("gain") != "topic"
        family = rises and _binary(measure)
        answer.proven[m] = few | rising | (family & (number <= FAMILY if most > FAMILY else True))
    for only, case in unjudged.every(scale, few):
        answer.take(case, only=only)
    if not answer.proven.all():
        rng = np.random.default_rng(seed)
        for _ in range(samples):
            answer.take(unjudged.graded(scale[rng.integers(len(scale), size=len(unjudged.topic))]))
    return answer.settled()


class _Unjudged:
    """The unjudged documents that a run returned, and the hits of the run once they are judged."""

    def __init__(self, hits: Hits, valued: bool) -> None:
        judged = hits if valued else hits.judged()
        self.hits, self.judged = hits, judged
        retrieved = hits.retrieved.astype(np.int64)
        start = starts(retrieved)
        self.all_topics = np.repeat(np.arange(hits.size, dtype=np.int32), retrieved)
        self.all_ranks = (np.arange(len(self.all_topics)) - np.repeat(start, retrieved) + 1).astype(np.int32)
        self.place = start[judged.topic] + judged.rank - 1  # positions of the judged documents
        self.unknown = np.ones(len(self.all_topics), bool)
        self.unknown[self.place] = False
        self.topic = self.all_topics[self.unknown]
        self.number = np.bincount(self.topic, minlength=hits.size)
        self.start = starts(self.number)
        self.nth = np.arange(len(self.topic)) - self.start[self.topic] + 1
        self.row = np.empty(len(self.all_topics), np.int32)
        self.row[self.place] = judged.row
        # after the rows of the judgments
        self.row[self.unknown] = len(hits.judgments.of_row) + np.arange(len(self.topic))
        regraded = hits.where((hits.grade < 0) & (not valued)).row  # negative grades that are replaced
        self.unchanged = ~np.isin(hits.judgments.row, regraded)

    def graded(self, grade: Floats) -> Hits:
        """The hits if the unjudged documents have these grades; the judgments then contain these documents too."""
        grades = np.empty(len(self.all_topics))
        grades[self.place] = self.judged.grade
        grades[self.unknown] = grade
        judgments, ranks = _with_more_grades(self.hits.judgments, self.unchanged, self.topic, grade), self.all_ranks
        return Hits(judgments, self.all_topics, ranks, grades, ranks, ranks, self.hits.retrieved, self.row)

    def every(self, scale: Floats, few: Mask) -> Iterator[tuple[Mask, Hits]]:
        """All combinations of grades for the topics with few unjudged documents, in parallel."""
        cases = {t: list(product(scale.tolist(), repeat=int(self.number[t]))) for t in np.flatnonzero(few).tolist()}
        for new, grades in in_parallel(cases, self.hits.size):
            grade = np.zeros(len(self.topic))
            for topic, each in grades.items():
                grade[self.start[topic] : self.start[topic] + self.number[topic]] = each
            yield new, self.graded(grade)


class _ElsewhereError(Exception):
    """A measure looked up a document for which only a grade is assumed."""


class _NoQrels:
    """Placeholder for the qrels where grades are assumed."""

    def __getattr__(self, name: str) -> Any:
        raise _ElsewhereError


def _with_more_grades(judgments: Judgments, unchanged: Mask, topic: Ints, grade: Floats) -> Judgments:
    """Judgments with additional judged documents."""
    row = np.r_[judgments.row[unchanged], len(judgments.of_row) + np.arange(len(topic))]
    topics, grades = np.r_[judgments.topic[unchanged], topic], np.r_[judgments.grade[unchanged], grade]
    order = np.argsort(topics, kind="stable")
    nowhere: Any = _NoQrels()
    return replace(
        judgments,
        qrels=nowhere,
        of_row=np.r_[judgments.of_row, grade],
        row=row[order].astype(np.int32),
        topic=topics[order].astype(np.int32),
        grade=grades[order],
    )
