"""What a score could have been: over the orders of tied documents, or over the grades of unjudged ones.

Every bound is attained: there is an order, or a way to judge what is unjudged, that gives it. Where a
measure keeps its promise to rise when a better document moves up, or where every case was tried, it is
also proven that nothing lies beyond; elsewhere the bound is the furthest value found by a search, and
says so. Scores of topics are independent, so the bounds of a mean are the means of the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import comb, inf, nan, nextafter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cranfield.columns import aligned
from cranfield.errors import ConventionError, MeasureError
from cranfield.evaluate import Evaluator
from cranfield.hits import Hits, Judgments
from cranfield.measures.measure import Gain, takes_topics_alone
from cranfield.parameters import Choice, Flag
from cranfield.scores import Scores

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy.typing as npt

    from cranfield.kernels.table import Floats, Ints
    from cranfield.measures import Measure

    Mask = npt.NDArray[np.bool_]
    Places = npt.NDArray[np.intp]


EVERY_CASE = 256  # topics with no more cases than this are tried out case by case
FAMILY = 64  # unjudged documents of a topic up to which every number of relevant ones among them is tried
PLAIN = {"size"}  # what a measure may need and still see nothing of a document but its rank and grade
MOVED = PLAIN | {"labels", "probabilities", "baseline"}  # and still see judged documents only
BINARY = ("precision and recall", "set", "average precision", "first relevant")  # families that ask: relevant or not
RISING = ("P", "CG", "DCG", "ERR", "RR", "Success", "RBP", "NumRelRet")  # a better grade never lowers them


def bounds(
    qrels: Any,
    runs: Any,
    measures: str | Measure | Iterable[str | Measure],
    over: Literal["ties", "unjudged"] = "ties",
    *,
    samples: int = 200,
    seed: int = 0,
    **options: Any,
) -> Bounds:
    """The lowest and the highest value of each score over the orders of ties, or over the grades of unjudged documents.

    Takes what `evaluate` takes. Where neither a formula nor trying every case will do, `samples` cases are drawn with
    this `seed`.

    >>> found = bounds({"q": {"a": 1}}, {"q": {"a": 1, "b": 1, "c": 0}}, "RR", over="ties")
    >>> found.low.item(), found.expected.item(), found.high.item()
    (0.5, 0.75, 1.0)
    """
    evaluator = Evaluator(qrels, measures, **options)
    return bounds_of(evaluator, runs, over, samples, seed)


def bounds_of(evaluator: Evaluator, runs: Any, over: str, samples: int = 200, seed: int = 0) -> Bounds:
    """The bounds of runs, with an evaluator that is ready."""
    if over not in ("ties", "unjudged"):
        raise ConventionError(f"bounds must be over ties or unjudged, got {over!r}")
    if samples < 1:
        raise ConventionError(f"samples must be 1 or more, got {samples}")
    _refuse(evaluator, over)
    opened = [run for item in evaluator._items(runs) for run in evaluator.open(item)]
    scores = evaluator.evaluate(opened)
    measures = list(evaluator.measures.values())
    found = [
        (_over_ties if over == "ties" else _over_grades)(evaluator.hits(run), measures, samples, seed) for run in opened
    ]
    kept = evaluator.wanted
    stacked = [np.stack(each)[:, :, kept] for each in zip(*found, strict=True)]
    low, high, expected, proven, exact = stacked
    outside = np.broadcast_to(~scores.counted[:, None, :], low.shape)
    for values in (low, high, expected):
        values[outside] = nan
    scale = _scale(evaluator.judgments)
    return Bounds(over, scores, low, high, expected, proven > 0, exact > 0, scale.tolist(), samples, seed)


def _refuse(evaluator: Evaluator, over: str) -> None:
    """Stop where a measure sees more than the documents that are moved or graded here."""
    if over == "unjudged" and evaluator.conventions.unjudged == "drop":
        raise ConventionError("bounds over unjudged documents make no sense where unjudged=drop takes them out")
    for name, measure in evaluator.measures.items():
        needs = set(_needs(measure))
        if evaluator.judgments.extras.costs is not None and "cost" in measure.parameters:
            needs.add("costs")
        refused = needs - PLAIN if over == "unjudged" else needs - MOVED
        if refused:
            known = "only a grade can be supposed of it" if over == "unjudged" else "only judged documents are moved"
            raise MeasureError(
                f"{name}: no bounds over {over}: it sees a document's {', '.join(sorted(refused))}, {known}"
            )


def _needs(measure: Measure) -> tuple[str, ...]:
    """What the measure and those that it is made from must know."""
    inner = [value for value in measure.values.values() if hasattr(value, "needs")]
    return tuple(dict.fromkeys([*measure.needs, *(need for each in inner for need in _needs(each))]))


@dataclass
class Bounds:
    """What `bounds` returns: lowest, highest and (over ties) expected values, runs × measures × topics.

    `proven` says where no case gives less than `low` or more than `high`; elsewhere both were found by a search.
    `exact` says where `expected` is the mean over all orders; elsewhere it is the mean of a sample.
    """

    over: str
    scores: Scores
    low: Floats
    high: Floats
    expected: Floats
    proven: Mask
    exact: Mask
    grades: list[float]  # what an unjudged document may be
    samples: int
    seed: int

    @property
    def assumption(self) -> str:
        """Which documents, which grades, whether the ideal moves, and what is proven: in words."""
        if self.over == "ties":
            return (
                "documents with equal scores may stand in any order, each as likely; grades and the ideal ranking stay. "
                "Every bound is attained by some order; proven: no order goes beyond; found: the furthest of those "
                f"tried, {self.samples} of them drawn with seed {self.seed}"
            )
        grades = ", ".join(f"{grade:g}" for grade in self.grades)
        return (
            f"each unjudged document that the run returned may have any grade of {grades}; the number of relevant "
            "documents and the ideal ranking move with them; documents not returned stay irrelevant. Every bound is "
            "attained by some grades; proven: no grades go beyond; found: the furthest of those tried, "
            f"{self.samples} of them drawn with seed {self.seed}"
        )

    def summary(self, which: str) -> Floats:
        """Runs × measures: `low`, `high` or `expected` over all topics; NaN where topics do not settle it."""
        values: Floats = getattr(self, which)
        scores = self.scores
        answer = np.array(_with(scores, values).summary)
        for m, (name, measure) in enumerate(scores.measures.items()):
            settled = takes_topics_alone(measure) and (name not in scores.pooled or measure.aggregate != "mean")
            if not settled or (which == "expected" and measure.aggregate not in ("mean", "sum")):
                answer[:, m] = nan
        return answer

    def rows(self, per_topic: bool = False) -> Iterator[dict[str, Any]]:
        """A row a run and measure (and topic, `all` being the last): the values, and how far they are proven."""
        summed = {which: self.summary(which) for which in ("low", "expected", "high")}
        for r, run in enumerate(self.scores.runs):
            for m, measure in enumerate(self.scores.measures):
                for t in np.flatnonzero(self.scores.counted[r]).tolist() if per_topic else []:
                    values = self.low[r, m, t], self.scores.values[r, m, t], self.expected[r, m, t], self.high[r, m, t]
                    certain = bool(self.proven[r, m, t]), bool(self.exact[r, m, t])
                    yield self._row(run, measure, self.scores.topics[t], values, certain)
                kept = self.scores.counted[r]
                values = (
                    summed["low"][r, m],
                    self.scores.summary[r, m],
                    summed["expected"][r, m],
                    summed["high"][r, m],
                )
                certain = bool(self.proven[r, m, kept].all()), bool(self.exact[r, m, kept].all())
                yield self._row(run, measure, "all", values, certain)

    def _row(
        self, run: str, measure: str, topic: str, values: tuple[float, ...], certain: tuple[bool, bool]
    ) -> dict[str, Any]:
        low, score, expected, high = (None if value != value else float(value) for value in values)
        row: dict[str, Any] = {"run": run, "measure": measure, "topic": topic, "low": low, "score": score}
        if self.over == "ties":
            row["expected"] = expected
        row["high"] = high
        row["bounds"] = None if low is None else "proven" if certain[0] else "found"
        if self.over == "ties":
            row["expectation"] = None if expected is None else "exact" if certain[1] else "sampled"
        return row

    def to_dict(self, per_topic: bool = False, digits: int | None = None) -> dict[str, Any]:
        """Plain values: what is varied, the assumption, a row a run and measure, and the conventions."""
        rows = [_rounded(row, digits) for row in self.rows(per_topic)]
        if not per_topic:
            rows = [{key: value for key, value in row.items() if key != "topic"} for row in rows]
        answer: dict[str, Any] = {"over": self.over, "assumption": self.assumption, "bounds": rows}
        if self.over == "unjudged":
            answer["grades"] = self.grades
        return {
            **answer,
            "samples": self.samples,
            "seed": self.seed,
            "conventions": self.scores.conventions.to_dict(),
        }

    def to_json(self, per_topic: bool = False, digits: int | None = None) -> str:
        """`to_dict` as JSON."""
        import json

        return json.dumps(self.to_dict(per_topic, digits), indent=2)

    def to_csv(self, per_topic: bool = False, digits: int | None = None, delimiter: str = ",") -> str:
        """A header and a row a run and measure (and topic)."""
        import csv
        import io

        file = io.StringIO()
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(self._cells(per_topic, digits, ""))
        return file.getvalue()

    def to_tsv(self, per_topic: bool = False, digits: int | None = None) -> str:
        """`to_csv` with tabs."""
        return self.to_csv(per_topic, digits, delimiter="\t")

    def to_text(self, per_topic: bool = False, digits: int = 4, limit: int | None = None) -> str:
        """A table for people."""
        return "\n".join(aligned(list(self._cells(per_topic, digits, "-")), 2 + per_topic, limit=limit))

    def _cells(self, per_topic: bool, digits: int | None, undefined: str) -> Iterator[list[str]]:
        head: list[str] = []
        for row in self.rows(per_topic):
            if not per_topic:
                del row["topic"]
            if not head:
                head = list(row)
                yield head
            yield [_cell(value, digits, undefined) for value in row.values()]

    def __repr__(self) -> str:
        return f"{self.to_text()}\n{self.assumption}"


def _cell(value: Any, digits: int | None, undefined: str) -> str:
    if value is None:
        return undefined
    if isinstance(value, str):
        return value
    return repr(value) if digits is None else f"{value:.{digits}f}"


def _rounded(row: Mapping[str, Any], digits: int | None) -> dict[str, Any]:
    if digits is None:
        return dict(row)
    return {key: round(value, digits) if isinstance(value, float) else value for key, value in row.items()}


def _with(scores: Scores, values: Floats) -> Scores:
    """The same scores with other values."""
    return Scores(
        scores.runs,
        scores.tags,
        scores.measures,
        scores.topics,
        values,
        scores.counted,
        scores.retrieved,
        scores.absent,
        scores.conventions,
    )


# what is known of a measure


def _rises(measure: Measure) -> bool:
    """Whether moving a better document up never lowers it: claimed by the class, for the first of each choice."""
    return measure.monotone and not set(_needs(measure)) - PLAIN and _as_claimed(measure)


def _as_claimed(measure: Measure) -> bool:
    for name, parameter in measure.parameters.items():
        value = measure.values[name]
        if name == "judged_only":  # what moves up in the list moves up, or stays, in the condensed one
            continue
        if isinstance(parameter, Gain):
            if not isinstance(value, str):
                return False
        elif isinstance(parameter, (Choice, Flag)) and value != parameter.default:
            return False
    return True


def _binary(measure: Measure) -> bool:
    """Whether it only asks of a document if it is relevant: known of our own families, by enumeration in the tests."""
    if measure.family not in BINARY or not type(measure).__module__.startswith("cranfield."):
        return False
    if "rel" not in measure.values or any(isinstance(each, Gain) for each in measure.parameters.values()):
        return False
    return bool(measure.values.get("gain", "binary") == "binary")


# bounds as they are found, measures × topics


class _Range:
    """Lowest, highest and mean value seen so far; what is proven and exact."""

    def __init__(self, measures: list[Measure], size: int) -> None:
        shape = len(measures), size
        self.measures = measures
        self.low, self.high = np.full(shape, nan), np.full(shape, nan)
        self.total, self.seen = np.zeros(shape), np.zeros(shape)
        self.proven, self.exact = np.zeros(shape, bool), np.zeros(shape, bool)
        self.expected = np.full(shape, nan)

    def take(self, hits: Hits, counted: Mask | None = None, only: Mask | None = None) -> None:
        """Score a case; `counted` are the topics whose mean it enters, `only` those for which it is a case at all."""
        for m, measure in enumerate(self.measures):
            try:
                values = measure(hits)
            except (_ElsewhereError, TypeError) as error:
                if isinstance(error, TypeError) and "do not come from a run" not in str(error):
                    raise
                raise MeasureError(
                    f"{measure}: no bounds: it sees more of a document than its rank and grade"
                ) from None
            at: Any = slice(None) if only is None else only
            self.low[m, at] = np.fmin(self.low[m, at], values[at])  # a case without a value bounds nothing
            self.high[m, at] = np.fmax(self.high[m, at], values[at])
            if counted is not None:
                self.total[m, counted] += values[counted]
                self.seen[m, counted] += 1

    def done(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Low, high, expected, proven and exact."""
        for values in (self.low, self.high):
            values[np.isinf(values)] = nan
        known = ~np.isnan(self.expected)
        mean = np.divide(self.total, self.seen, out=np.full(self.total.shape, nan), where=self.seen > 0)
        alike = self.proven & (self.low == self.high)
        expected = np.where(known, self.expected, np.where(alike, self.low, mean))
        exact = self.exact | known | alike
        return self.low, self.high, np.clip(expected, self.low, self.high), self.proven * 1.0, exact * 1.0


# over the orders of ties


def _over_ties(hits: Hits, measures: list[Measure], samples: int, seed: int) -> tuple[Floats, ...]:
    answers = [np.empty((len(measures), hits.size)) for _ in range(5)]
    for by_document in (False, True):  # measures that see labels or groups tell documents of one grade apart
        chosen = [m for m, each in enumerate(measures) if bool(set(_needs(each)) - PLAIN) == by_document]
        if chosen:
            found = _tied(hits, [measures[m] for m in chosen], samples, seed, by_document)
            for answer, part in zip(answers, found, strict=True):
                answer[chosen] = part
    return tuple(answers)


def _tied(hits: Hits, measures: list[Measure], samples: int, seed: int, by_document: bool) -> tuple[Floats, ...]:
    orders = _Orders(hits, by_document)
    found = _Range(measures, hits.size)
    found.take(hits)
    levels = {float(each.values["rel"]) for each in measures if "rel" in each.values}
    for pivot in sorted({-inf, 0.0, nextafter(0, 1), inf, *levels}):
        for best in (True, False):
            found.take(orders.extreme(pivot, best))
    few, many = orders.counted_out, orders.free & ~orders.counted_out
    found.proven |= ~orders.free | few
    found.exact |= ~orders.free | few
    for m, measure in enumerate(measures):
        found.proven[m] |= _rises(measure)
        formula = measure.expected(hits.condensed() if measure.judged_only else hits)
        if formula is not None:
            found.expected[m] = formula
    for counted, order in orders.every():
        found.take(order, counted)
    settled = found.proven & (~np.isnan(found.expected) | (found.low == found.high))
    if (many & ~settled).any():
        rng = np.random.default_rng(seed)
        for _ in range(samples):
            found.take(orders.drawn(rng), many)
    return found.done()


class _Orders:
    """The orders that ties leave open: extreme ones, all of them where they are few, and random ones."""

    def __init__(self, hits: Hits, by_document: bool) -> None:
        self.hits = hits
        ties = hits.ties
        self.group = np.repeat(np.arange(len(ties.size)), ties.number)  # of each hit
        self.start = np.cumsum(ties.number) - ties.number  # the first hit of each group
        self.kind = hits.row.astype(np.float64) if by_document else hits.grade
        self.ties = ties
        self.ways = [self._ways(g) for g in range(len(ties.size))]
        self.free = np.zeros(hits.size, bool)
        self.free[ties.topic[[way > 1 for way in self.ways]]] = True
        cases = [1] * hits.size
        for topic, ways in zip(ties.topic.tolist(), self.ways, strict=True):
            cases[topic] *= ways
        self.cases = np.array([min(number, EVERY_CASE + 1) for number in cases])
        self.counted_out = self.free & (self.cases <= EVERY_CASE)

    def _kinds(self, g: int) -> dict[float, list[int]]:
        """The hits of a group by what a measure sees of them."""
        kinds: dict[float, list[int]] = {}
        for hit in range(int(self.start[g]), int(self.start[g] + self.ties.number[g])):
            kinds.setdefault(float(self.kind[hit]), []).append(hit)
        return kinds

    def _ways(self, g: int) -> int:
        """In how many orders a group can stand that a measure could tell apart."""
        left = int(self.ties.size[g])
        if left == 1:
            return 1
        ways = 1
        for hits in self._kinds(g).values():
            ways *= comb(left, len(hits))
            left -= len(hits)
        return ways

    def _ranked(self, rank: Ints) -> Hits:
        """The hits at other ranks."""
        hits = self.hits
        order = np.lexsort((rank, hits.topic))
        return Hits(
            hits.judgments,
            hits.topic[order],
            rank[order],
            hits.grade[order],
            hits.tied_from[order],
            hits.tied_to[order],
            hits.retrieved,
            hits.row[order],
        )

    def extreme(self, pivot: float, best: bool) -> Hits:
        """Hits of grade `pivot` or more at the top of their ties, the best first, the others at the bottom; or reversed."""
        hits = self.hits
        up = hits.grade >= pivot if best else hits.grade < pivot
        order = np.lexsort((-hits.grade if best else hits.grade, ~up, self.group))
        group = self.group[order]
        nth = np.arange(len(order)) - self.start[group]
        top = self.ties.first[group] + nth
        bottom = self.ties.first[group] + self.ties.size[group] - self.ties.number[group] + nth
        rank = np.empty(len(order), np.int32)
        rank[order] = np.where(up[order], top, bottom)
        return self._ranked(rank)

    def drawn(self, rng: np.random.Generator) -> Hits:
        """Every group in a random order."""
        group, place = self.ties.places()
        shuffled = place[np.lexsort((rng.random(len(place)), group))]
        first_place = np.cumsum(self.ties.size) - self.ties.size
        nth = np.arange(len(self.group)) - self.start[self.group]
        rank = self.ties.first[self.group] + shuffled[first_place[self.group] + nth]
        return self._ranked(rank.astype(np.int32))

    def every(self) -> Iterator[tuple[Mask, Hits]]:
        """All orders of the topics that have few, side by side; with each the topics for which it is a new one."""
        cases = {int(t): self._cases(int(t)) for t in np.flatnonzero(self.counted_out)}
        for i in range(max(map(len, cases.values()), default=0)):
            rank = self.hits.rank.copy()
            new = np.zeros(self.hits.size, bool)
            for topic, orders in cases.items():
                if i < len(orders):
                    new[topic] = True
                    for hit, place in orders[i]:
                        rank[hit] = place
            yield new, self._ranked(rank)

    def _cases(self, topic: int) -> list[list[tuple[int, int]]]:
        """All orders of one topic: the rank of each hit that may move."""
        groups = [g for g in np.flatnonzero(self.ties.topic == topic).tolist() if self.ways[g] > 1]
        cases = product(*(self._group_cases(g) for g in groups))
        return [[moved for group in case for moved in group] for case in cases]

    def _group_cases(self, g: int) -> list[list[tuple[int, int]]]:
        kinds = list(self._kinds(g).values())
        first = int(self.ties.first[g])
        return list(_placed(kinds, list(range(first, first + int(self.ties.size[g])))))


def _placed(kinds: list[list[int]], ranks: list[int]) -> Iterator[list[tuple[int, int]]]:
    """Every way to give ranks to hits, those of one kind being alike."""
    from itertools import combinations

    if not kinds:
        yield []
        return
    for chosen in combinations(ranks, len(kinds[0])):
        left = [rank for rank in ranks if rank not in chosen]
        for rest in _placed(kinds[1:], left):
            yield [*zip(kinds[0], chosen, strict=True), *rest]


# over the grades of unjudged documents


def _scale(judgments: Judgments) -> Floats:
    """The grades that an unjudged document may have: 0 and those that the judges gave."""
    given = np.unique(judgments.grade[judgments.grade >= 0])
    scale: Floats = np.union1d([0.0], given if given.max(initial=0) > 0 else [1.0])
    return scale


def _over_grades(hits: Hits, measures: list[Measure], samples: int, seed: int) -> tuple[Floats, ...]:
    open_ = _Open(hits)
    scale = _scale(hits.judgments)
    found = _Range(measures, hits.size)
    number = np.bincount(open_.topic, minlength=hits.size)
    few = np.array([float(len(scale)) ** float(min(n, 20)) <= EVERY_CASE for n in number.tolist()])
    most = int(number.max(initial=0))
    steps = (
        range(most + 1) if most <= FAMILY else sorted({0, most, *np.geomspace(1, most, FAMILY).astype(int).tolist()})
    )
    for relevant in steps:
        for top in (True, False):
            chosen = open_.nth <= relevant if top else open_.nth > number[open_.topic] - relevant
            found.take(open_.graded(np.where(chosen, scale[-1], 0.0)))
    for m, measure in enumerate(measures):
        rising = measure.name in RISING and measure.values.get("gain") not in ("topic",) and _rises(measure)
        family = _rises(measure) and _binary(measure)
        found.proven[m] = few | rising | (family & (number <= FAMILY if most > FAMILY else True))
    for only, case in open_.every(scale, few, number):
        found.take(case, only=only)
    if not found.proven.all():
        rng = np.random.default_rng(seed)
        for _ in range(samples):
            found.take(open_.graded(scale[rng.integers(len(scale), size=len(open_.topic))]))
    return found.done()


class _Open:
    """The unjudged documents that a run returned, and the run as it is once they are judged."""

    def __init__(self, hits: Hits) -> None:
        judged = hits.judged()
        self.hits, self.judged = hits, judged
        deepest = hits.retrieved.astype(np.int64)
        topic = np.repeat(np.arange(hits.size, dtype=np.int32), deepest)
        rank = (np.arange(len(topic)) - np.repeat(np.cumsum(deepest) - deepest, deepest) + 1).astype(np.int32)
        place = (np.cumsum(deepest) - deepest)[judged.topic] + judged.rank - 1
        unknown = np.ones(len(topic), bool)
        unknown[place] = False
        self.topic, self.rank = topic[unknown], rank[unknown]
        number = np.bincount(self.topic, minlength=hits.size)
        self.nth = np.arange(len(self.topic)) - (np.cumsum(number) - number)[self.topic] + 1
        self.all_topics, self.all_ranks, self.unknown, self.place = topic, rank, unknown, place
        self.row = np.empty(len(topic), np.int32)  # new documents get rows of their own behind those of the judgments
        self.row[place] = judged.row
        self.row[unknown] = len(hits.judgments.of_row) + np.arange(len(self.topic))
        returned = hits.where(hits.grade < 0).row  # negative grades that now get another
        self.kept = ~np.isin(hits.judgments.row, returned)

    def graded(self, grade: Floats) -> Hits:
        """The run where each unjudged document has been given a grade; the judgments hold it as well."""
        grades = np.empty(len(self.all_topics))
        grades[self.place] = self.judged.grade
        grades[self.unknown] = grade
        judgments = _completed(self.hits.judgments, self.kept, self.topic, grade)
        return Hits(
            judgments,
            self.all_topics,
            self.all_ranks,
            grades,
            self.all_ranks,
            self.all_ranks,
            self.hits.retrieved,
            self.row,
        )

    def every(self, scale: Floats, few: Mask, number: Places) -> Iterator[tuple[Mask, Hits]]:
        """All grades for the topics that have few unjudged documents, side by side."""
        cases = {t: list(product(scale.tolist(), repeat=int(number[t]))) for t in np.flatnonzero(few).tolist()}
        start = np.cumsum(number) - number
        for i in range(max(map(len, cases.values()), default=0)):
            grade = np.zeros(len(self.topic))
            new = np.zeros(self.hits.size, bool)
            for topic, each in cases.items():
                if i < len(each):
                    new[topic] = True
                    grade[start[topic] : start[topic] + number[topic]] = each[i]
            yield new, self.graded(grade)


class _ElsewhereError(Exception):
    """A measure looked up a document of which only the grade is supposed."""


class _NoQrels:
    """Stands for the judgments' file where grades are only supposed."""

    def __getattr__(self, name: str) -> Any:
        raise _ElsewhereError


def _completed(judgments: Judgments, kept: Mask, topic: Ints, grade: Floats) -> Judgments:
    """Judgments with more documents judged."""
    row = np.r_[judgments.row[kept], len(judgments.of_row) + np.arange(len(topic))]
    topics, grades = np.r_[judgments.topic[kept], topic], np.r_[judgments.grade[kept], grade]
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
