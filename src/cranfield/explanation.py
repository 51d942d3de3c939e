"""One score, step by step, as a table one can check with a pencil.

It works for every measure: the running total is the measure itself, computed on the first r documents. A
measure may add columns of its own (`Measure.trace`), its ideal ranking and the last line of its formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import permutations, product
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cranfield.answer import Answer, Drawing, Layout, Table, plain
from cranfield.kernels import decode
from cranfield.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cranfield.answer import Part
    from cranfield.collection import Qrels
    from cranfield.conventions import Conventions
    from cranfield.hits import Hits
    from cranfield.kernels.table import Floats
    from cranfield.measures import Measure

    Listing = list[tuple[str, float]]


TOP = 10  # ranks always shown
MOST = 60  # ranks shown at most, unless all are asked for
ORDERS = 120  # orders of ties that are tried out one by one


class Scorer(Protocol):
    """What has to be known of an `Evaluator`, which lies above this room."""

    measures: dict[str, Measure]
    qrels: Qrels
    conventions: Conventions

    def hits(self, run: Any) -> Hits:
        """One run seen through the judgments."""

    def values_of(self, measure: Measure, hits: Hits) -> Floats:
        """A measure's value for each topic."""


@dataclass
class Step:
    """One rank: the document, what the judgments say of it, what it adds, and the score down to here."""

    rank: int
    document: str | None = None  # None: nothing was returned here, and the ideal ranking goes on
    score: float | None = None
    grade: float | None = None  # None: unjudged
    tied: tuple[int, int] | None = None
    columns: dict[str, float] = field(default_factory=dict)
    so_far: float | None = None
    ideal: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        values = {
            "rank": self.rank,
            "document": self.document,
            "score": self.score,
            "grade": self.grade,
            "judged": self.grade is not None,
            "tied": self.tied,
            **self.columns,
            "so_far": self.so_far,
            **({"ideal": self.ideal} if self.ideal else {}),
        }
        return plain(values)  # type: ignore[no-any-return]


@dataclass
class Fold:
    """Ranks that are not shown."""

    first: int
    last: int
    judged: int
    counted: bool  # whether the measure looks so far

    def __str__(self) -> str:
        number = self.last - self.first + 1
        what = "document" if number == 1 else "documents"
        some = f"{number} unjudged {what}" if not self.judged else f"{number} {what}, {self.judged} of them judged"
        return some if self.counted else f"{some}, below the cut-off"

    @property
    def ranks(self) -> str:
        """The span of ranks, as text."""
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


@dataclass
class Ties:
    """What the orders of tied documents could make of the score."""

    groups: list[tuple[int, int]]
    orders: int
    lowest: float | None = None
    highest: float | None = None
    mean: float | None = None  # where a formula is known

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return plain(self)  # type: ignore[no-any-return]


@dataclass
class Explanation(Answer):
    """How a run came by its score on one topic. Prints as a table; see `to_text`, `to_markdown`, `to_html`, `to_dict`."""

    ends_with_notes = True

    measure: str
    run: str
    topic: str
    value: float
    formula: str
    worked: str  # the formula's last line with numbers put in
    columns: list[str]  # the measure's own, in order
    ideal_columns: list[str]
    rows: list[Step | Fold]
    returned: int
    unjudged: list[int]  # ranks, down to the cut-off
    missed: list[tuple[str, float]]  # documents of a grade above 0 that were not returned, best first
    ties: Ties | None
    conventions: Conventions
    preset: str | None = None

    @property
    def steps(self) -> list[Step]:
        """The ranks shown, without the folds."""
        return [row for row in self.rows if isinstance(row, Step)]

    def notes(self, shell: bool = False) -> list[str]:
        """What is unjudged, what is missing, what ties could change: a sentence each."""
        notes = (self._on_unjudged(), self._on_negative(), self._on_missed(), self._on_ties())
        return [note for note in notes if note]

    def _on_negative(self) -> str:
        ranks = [str(step.rank) for step in self.steps if step.grade is not None and step.grade < 0]
        if not ranks:
            return ""
        treated = "a judgment of 0" if self.conventions.negative == "irrelevant" else "no judgment of relevance"
        return f"negative grades at rank {', '.join(ranks)}: {treated}"

    def _on_unjudged(self) -> str:
        if not self.unjudged:
            return ""
        some = ", ".join(map(str, self.unjudged[:8])) + (" …" if len(self.unjudged) > 8 else "")
        where = f"at rank {some}" if len(self.unjudged) == 1 else f"at ranks {some}"
        treated = "they are taken out" if self.conventions.unjudged == "drop" else "they count as not relevant"
        return f"unjudged: {len(self.unjudged)} of the documents looked at, {where}; {treated}"

    def _on_missed(self) -> str:
        if not self.missed:
            return ""
        some = ", ".join(f"{document} ({grade:g})" for document, grade in self.missed[:5])
        return f"not returned: {len(self.missed)} documents of a grade above 0: {some}" + (
            " …" if len(self.missed) > 5 else ""
        )

    def _on_ties(self) -> str:
        ties = self.ties
        if ties is None:
            return ""
        spans = ", ".join(f"{first}–{last}" for first, last in ties.groups[:5]) + (" …" if len(ties.groups) > 5 else "")
        rule = {
            "input-order": "they keep the order given",
            "averaged": "the score is the mean over their orders",
        }.get(
            self.conventions.ties, f"they are ordered by document id, {self.conventions.ties.removeprefix('document-')}"
        )
        if ties.lowest is None or ties.highest is None:
            return f"ties at ranks {spans}; {rule}"
        if math.isclose(ties.lowest, ties.highest, abs_tol=1e-12):
            return f"ties at ranks {spans}: no order of them changes the score"
        return (
            f"ties at ranks {spans}; {rule}. Over all their orders the score goes from {ties.lowest:.4f} to "
            f"{ties.highest:.4f}" + ("" if ties.mean is None else f", {ties.mean:.4f} on average")
        )

    def plain(self, how: Layout) -> Any:
        """Measure, value, formula, a row a rank, and what could be otherwise. `so_far`: of the list cut after that rank."""
        answer: dict[str, Any] = {"measure": self.measure, "run": self.run, "topic": self.topic, "value": self.value}
        if self.preset is not None:
            answer["as"] = {self.preset: self.value}
        folds = [row for row in self.rows if isinstance(row, Fold)]
        answer |= {
            "formula": self.formula,
            "worked": self.worked,
            "steps": [step.to_dict() for step in self.steps],
            "folded": [{"from": fold.first, "to": fold.last, "judged": fold.judged} for fold in folds],
            "returned": self.returned,
            "unjudged": self.unjudged,
            "not_returned": [{"document": document, "grade": grade} for document, grade in self.missed],
            "ties": self.ties,
            "conventions": self.conventions.to_dict(),
        }
        return plain(answer, how.digits)

    def title(self) -> str:
        """What this is, and the value."""
        value = "undefined" if math.isnan(self.value) else f"{self.value:.4f}"
        return f"{self.measure} of {self.run}, topic {self.topic}: {value}"

    def content(self, how: Layout) -> Iterator[Part]:
        formula = [line for line in (self.formula, self.worked) if line]
        head, rows = self._table(how)
        if how.medium == "html":
            yield from formula
            yield Table(head, rows, names=2, caption=self.title())
            return
        indent = "  " if how.medium == "text" else ""
        yield Drawing(self.title(), [f"{indent}{line}" for line in formula])
        if rows:
            yield Table(head, rows, names=2)

    def _table(self, how: Layout) -> tuple[list[str], list[list[str]]]:
        """The head, and a row a rank or fold."""
        steps = self.steps
        documents = [step.document if step.document is not None else "–" for step in steps]
        columns = [
            ("rank", [str(step.rank) for step in steps]),
            ("document", documents),
            ("score", ["" if step.score is None else f"{step.score:g}" for step in steps]),
        ]
        if any(step.tied for step in steps):
            columns.append(("tied", ["–".join(map(str, step.tied or ())) for step in steps]))
        columns.append(("grade", [_grade(step) for step in steps]))
        columns += [(name, _numbers([step.columns.get(name) for step in steps], how)) for name in self.columns]
        columns.append((f"{self.measure} so far", [_decimals(step.so_far, how) for step in steps]))
        if any(step.ideal for step in steps):
            columns.append(("ideal", [step.ideal.get("document", "") for step in steps]))
            columns.append(("ideal grade", [f"{step.ideal['grade']:g}" if step.ideal else "" for step in steps]))
            best = {name: [step.ideal.get(name) for step in steps] for name in self.ideal_columns}
            columns += [(f"ideal {name}", _numbers(values, how)) for name, values in best.items()]
        cells = map(list, zip(*(column for _, column in columns), strict=True))
        blank = [""] * (len(columns) - 2)
        rows = [[row.ranks, f"… {row}", *blank] if isinstance(row, Fold) else next(cells) for row in self.rows]
        return [name for name, _ in columns], rows


def _grade(step: Step) -> str:
    return "" if step.document is None else "unjudged" if step.grade is None else f"{step.grade:g}"


def _numbers(values: list[float | None], how: Layout) -> list[str]:
    """A column of numbers, without decimals where all of them are whole."""
    if all(value is None or float(value).is_integer() for value in values):
        return ["" if value is None else f"{value:.0f}" for value in values]
    return [_decimals(value, how) for value in values]


def _decimals(value: float | None, how: Layout) -> str:
    return "" if value is None or value != value else how.number(value)


def walk(
    evaluator: Scorer, run: Run, name: str, topic: str, full: bool = False, preset: str | None = None
) -> Explanation:
    """Explain one topic's score of one run by one of the evaluator's measures."""
    measure = evaluator.measures[name]
    t = evaluator.qrels.topics.index(topic)
    listing = run.ranking(topic, evaluator.conventions.order) if topic in run else []

    def score(given: Listing) -> float:
        return float(evaluator.values_of(measure, evaluator.hits(Run({topic: dict(given)})))[t])

    hits = evaluator.hits(Run({topic: dict(listing)}))
    seen = hits.condensed() if measure.judged_only else hits
    steps = _steps(evaluator, listing, topic)
    columns = _add_columns(evaluator, measure, seen, t, steps)
    ideal_columns = _add_ideal(evaluator, measure, seen, t, steps)
    value = score(listing)
    cut = measure.values.get("k") or len(listing)
    ties = _ties(evaluator, measure, listing, steps, cut, score)
    expected = measure.expected(seen) if ties is not None else None
    if ties is not None and expected is not None:
        ties.mean = float(expected[t])
    settled = evaluator.conventions.ties != "averaged" or ties is None
    return Explanation(
        measure=str(measure),
        run=run.name,
        topic=topic,
        value=value,
        formula=measure.formula,
        worked=_worked(measure, seen, t, steps, value) if settled else "",
        columns=columns,
        ideal_columns=ideal_columns,
        rows=_shown(steps, listing, measure.values.get("k"), full, score),
        returned=len(listing),
        unjudged=[step.rank for step in steps[: min(cut, len(listing))] if step.grade is None],
        missed=_missed(evaluator, topic, listing),
        ties=ties,
        conventions=evaluator.conventions,
        preset=preset,
    )


def _shown(
    steps: list[Step], listing: Listing, k: Any, full: bool, score: Callable[[Listing], float]
) -> list[Step | Fold]:
    """The rows of the table, with the score so far in each."""
    rows = _folded(steps, len(listing), k, full)
    here = [row for row in rows if isinstance(row, Step) and row.document is not None]
    for step in here:
        step.so_far = score(listing[: step.rank])
    if here and not _same(here[-1].so_far, score(listing)):
        return _shown(steps, listing, None, full, score)  # what stands below the cut-off counts as well: show the end
    return rows


def _grades(evaluator: Scorer, topic: str) -> dict[str, float]:
    """The judgments of a topic; of several for one document the highest."""
    qrels, t = evaluator.qrels, evaluator.qrels.topics.index(topic)
    grades: dict[str, float] = {}
    for row in np.flatnonzero(qrels.topic == t).tolist():
        document, grade = decode(qrels.documents[row]), float(qrels.grade[row])
        grades[document] = max(grade, grades.get(document, grade))
    return grades


def _missed(evaluator: Scorer, topic: str, listing: Listing) -> list[tuple[str, float]]:
    returned = {document for document, _ in listing}
    missed = [(d, g) for d, g in _grades(evaluator, topic).items() if g > 0 and d not in returned]
    return sorted(missed, key=lambda pair: -pair[1])


def _same(one: float | None, other: float) -> bool:
    return one is not None and (one == other or (one != one and other != other))


def _steps(evaluator: Scorer, listing: Listing, topic: str) -> list[Step]:
    grades = _grades(evaluator, topic)
    key = np.array([score for _, score in listing], np.float64)
    if evaluator.conventions.scores == "single":
        with np.errstate(over="ignore"):
            key = key.astype(np.float32).astype(np.float64)
    steps = []
    for i, (document, score) in enumerate(listing):
        first, last = int((key > key[i]).sum()) + 1, int((key >= key[i]).sum())
        tied = (first, last) if last > first else None
        steps.append(Step(i + 1, document, score, grades.get(document), tied))
    return steps


def _of_topic(evaluator: Scorer, hits: Hits, t: int) -> Iterable[tuple[int, str]]:
    """The hits of a topic: their position among the hits, and their document."""
    for i in np.flatnonzero(hits.topic == t).tolist():
        yield i, decode(evaluator.qrels.documents[int(hits.row[i])])


def _add_columns(evaluator: Scorer, measure: Measure, hits: Hits, t: int, steps: list[Step]) -> list[str]:
    """Put the measure's own columns beside the documents they are about."""
    trace = measure.trace(hits)
    by_document = {step.document: step for step in steps}
    for i, document in _of_topic(evaluator, hits, t):
        step = by_document[document]
        step.columns = {name: float(values[i]) for name, values in trace.items() if values[i] == values[i]}
    return list(trace)


def _add_ideal(evaluator: Scorer, measure: Measure, hits: Hits, t: int, steps: list[Step]) -> list[str]:
    """Put the ideal ranking beside the run's; it may go on where the run ends."""
    best = measure.ideal_hits(hits)
    if best is None:
        return []
    trace = measure.trace(best)
    for i, document in _of_topic(evaluator, best, t):
        rank = int(best.rank[i])
        while len(steps) < rank:
            steps.append(Step(len(steps) + 1))
        values = {name: float(column[i]) for name, column in trace.items() if column[i] == column[i]}
        steps[rank - 1].ideal = {"document": document, "grade": float(best.grade[i]), **values}
    return [name for name in trace if name != "discount"]


def _folded(steps: list[Step], returned: int, k: Any, full: bool) -> list[Step | Fold]:
    """The steps that matter, and folds in place of the others."""
    cut = k if isinstance(k, int) else None
    if full:
        return list(steps)
    top = min(cut or TOP, MOST)
    rows: list[Step | Fold] = []
    shown = 0
    for step in steps:
        near = step.rank <= top
        counts = cut is None or step.rank <= cut
        ends = step.rank == returned and cut is None
        if near or ends or (counts and step.grade is not None and shown < MOST):
            rows.append(step)
            shown += 1
        elif step.document is not None:
            _fold(rows, step, counts)
    lone = [isinstance(row, Fold) and row.counted and row.first == row.last for row in rows]
    return [
        steps[row.first - 1] if alone and isinstance(row, Fold) else row for row, alone in zip(rows, lone, strict=True)
    ]


def _fold(rows: list[Step | Fold], step: Step, counted: bool) -> None:
    last = rows[-1] if rows else None
    if not isinstance(last, Fold) or last.counted != counted:
        last = Fold(step.rank, step.rank, 0, counted)
        rows.append(last)
    last.last = step.rank
    last.judged += step.grade is not None


def _ties(
    evaluator: Scorer,
    measure: Measure,
    listing: Listing,
    steps: list[Step],
    cut: int,
    score: Callable[[Listing], float],
) -> Ties | None:
    """The tie groups that reach above the cut-off, and the lowest and highest score that their orders give."""
    spans = sorted({step.tied for step in steps if step.tied is not None and step.tied[0] <= cut})
    if not spans:
        return None
    moving = [span for span in spans if measure.needs or _mixed(steps[span[0] - 1 : span[1]])]
    orders = math.prod(math.factorial(last - first + 1) for first, last in spans)
    plain = evaluator.conventions.ties != "averaged"
    documents = [document for document, _ in listing]

    def of(order: list[str]) -> float:
        return score([(document, float(-rank)) for rank, document in enumerate(order)])

    if math.prod(math.factorial(last - first + 1) for first, last in moving) <= ORDERS:
        values = np.array([of(order) for order in _orders(documents, moving)])
        if np.isnan(values).any():
            return Ties(spans, orders)
        return Ties(spans, orders, float(values.min()), float(values.max()))
    if not (measure.monotone and plain):
        return Ties(spans, orders)
    ends = []
    for sign in (1, -1):
        order = list(documents)
        for first, last in moving:
            order[first - 1 : last] = sorted(
                order[first - 1 : last], key=lambda d: sign * (steps[documents.index(d)].grade or 0)
            )
        ends.append(of(order))
    return Ties(spans, orders, min(ends), max(ends))


def _mixed(group: list[Step]) -> bool:
    """Whether the order of a tie group can matter: not if all of its documents are alike."""
    return len({step.grade for step in group}) > 1


def _orders(documents: list[str], spans: list[tuple[int, int]]) -> Iterable[list[str]]:
    for arranged in product(*(permutations(documents[first - 1 : last]) for first, last in spans)):
        order = list(documents)
        for (first, last), group in zip(spans, arranged, strict=True):
            order[first - 1 : last] = group
        yield order


def _worked(measure: Measure, hits: Hits, t: int, steps: list[Step], value: float) -> str:
    """The last line of the calculation: in words, with numbers put in, and the value."""
    template, numbers = measure.worked(hits)
    end = _number(value)
    if template:
        put_in = template
        for name, given in numbers.items():
            put_in = put_in.replace(f"{{{name}}}", _number(np.asarray(given).reshape(-1)[t if np.ndim(given) else 0]))
        return f"{template.replace('{', '').replace('}', '')} = {put_in} = {end}"
    parts = [step.columns["contribution"] for step in steps if step.columns.get("contribution")]
    if not parts or not math.isclose(sum(parts), value, rel_tol=1e-9, abs_tol=1e-12):
        return ""
    some = [_number(part) for part in parts[:12]]
    return f"{' + '.join(some)}{' + …' if len(parts) > 12 else ''} = {end}"


def _number(value: Any) -> str:
    number = float(value)
    if not math.isfinite(number):
        return "undefined" if number != number else "∞"
    return f"{number:.0f}" if number == int(number) and abs(number) < 1e15 else f"{number:.4f}"
