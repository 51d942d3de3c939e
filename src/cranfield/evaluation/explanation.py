"""Explain one score step by step, as a table that a reader can check with a pencil.

This works for every measure: the running total is the measure itself, computed on the first r documents. A measure may
add its own columns (`Measure.trace`), its ideal ranking and the last line of its formula.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from itertools import groupby, pairwise, permutations, product
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cranfield.base.kernels import decode
from cranfield.base.results import Answer, Layout, Lines, Table, plain
from cranfield.base.run import Run
from cranfield.base.text_layout import GAP, counted, cut, cut_end, in_line, width
from cranfield.evaluation.presets import EMPTY, NEGATIVE, NO_RELEVANT, TIES, differences
from cranfield.evaluation.tie_orders import DRAWN, SEED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cranfield.base.conventions import Conventions
    from cranfield.base.qrels import Qrels
    from cranfield.base.results import Part
    from cranfield.evaluation.hits import Hits
    from cranfield.evaluation.measures import Measure
    from cranfield.evaluation.tie_orders import MeanOverOrders

    Listing = list[tuple[str, float]]


TOP = 10  # ranks always shown
MOST_LINES = 20  # rows on a screen, unless all ranks are requested
LONGEST_ID, SHORTEST_ID = 32, 12  # cells of a document's id on a screen
LONGEST_QUERY = 60
MOST = 60  # most ranks to show, unless all are requested
ORDERS = 120  # most orders of ties to try one by one
DIGITS = 4_000  # most digits of the number of orders: Python cannot print longer numbers


class Scorer(Protocol):
    """The part of `Evaluator` that explanations need; importing that class here would be circular."""

    measures: dict[str, Measure]
    qrels: Qrels
    queries: Mapping[str, str]

    def hits(self, run: Any, measure: Measure | None = None) -> Hits:
        """The hits of one run under the conventions of a measure."""

    def conventions_for(self, measure: Measure | None) -> Conventions:
        """The conventions under which a measure is computed."""

    def mean_of(self, measure: Measure, hits: Hits) -> MeanOverOrders:
        """A measure's value for each topic, and its standard error where orders of ties were sampled."""


@dataclass
class RankStep:
    """One rank: the document, its grade, what it adds, and the score down to this rank."""

    rank: int
    document: str | None = None  # None: the run ended above, only the ideal ranking goes on
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
    """A span of ranks that are not shown."""

    first: int
    last: int
    judged: int
    relevant: int
    above_cut: bool  # whether the measure reads these ranks
    added: float | None = None  # the change of the score over these ranks, if known
    only_relevant: bool = False  # whether the judgments name relevant documents only

    def __str__(self) -> str:
        unjudged = self.last - self.first + 1 - self.judged
        others = unjudged if self.only_relevant else 0
        kinds = {
            "unjudged": unjudged - others,
            "not relevant": self.judged - self.relevant + others,
            "relevant": self.relevant,
        }
        parts = [f"{count:,} {kind}" for kind, count in kinds.items() if count]
        if not self.above_cut:
            parts.append("below the cut-off")
        elif self.added is not None and self.added == self.added:
            parts.append(f"{self.added:+.4f}" if round(self.added, 4) else "no change")
        return ", ".join(parts)

    @property
    def ranks(self) -> str:
        """The span of ranks, as text."""
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


@dataclass
class TieEffect:
    """How the order of tied documents can change the score."""

    groups: list[tuple[int, int]]
    orders: int | None  # None: the number is too long to print
    lowest: float | None = None
    highest: float | None = None
    mean: float | None = None  # if there is a formula


@dataclass
class Explanation(Answer):
    """The explanation of a run's score on one topic. Prints as a table; see `to_text`, `to_markdown`, `to_dict`."""

    ends_with_notes = True

    measure: str
    run: str
    topic: str
    value: float
    formula: str
    worked: str  # the last line of the formula with numbers
    columns: list[str]  # the measure's own columns, in order
    ideal_columns: list[str]
    rows: list[RankStep | Fold]
    returned: int
    unjudged: list[int]  # ranks down to the cut-off
    missed: list[tuple[str, float]]  # documents of a grade above 0 that were not returned, best first
    ties: TieEffect | None
    conventions: Conventions
    preset: str | None = None
    differences: list[str] = field(default_factory=list)  # why the value may differ from the preset's program
    query: str = ""  # of the topic, if known
    full: bool = False  # whether all ranks were requested
    error: float = 0.0  # the standard error of the value, if it is a mean over sampled orders of ties
    only_relevant: bool = False  # whether the judgments name relevant documents only
    in_single: float | None = None  # the value if scores were compared in single precision, if that differs

    @property
    def steps(self) -> list[RankStep]:
        """The ranks shown, without the folds."""
        return [row for row in self.rows if isinstance(row, RankStep)]

    def notes(self, shell: bool = False) -> list[str]:
        """Sentences about unjudged and missing documents and about ties."""
        own = (self._on_unjudged(), self._on_negative(), self._on_missed(), self._on_ties(), self.on_digits())
        return [note for note in (*own, *self.differences) if note]

    def _on_negative(self) -> str:
        ranks = [str(step.rank) for step in self.steps if step.grade is not None and step.grade < 0]
        if not ranks:
            return ""
        treated = "they count as grade 0" if self.conventions.negative == "irrelevant" else "they count as unjudged"
        return f"negative grades at rank {', '.join(ranks)}: {treated}"

    def on_digits(self) -> str:
        """The score in single precision, if it differs."""
        if self.in_single is None:
            return ""
        return (
            f"digits beyond single precision decide: the score would be {self.in_single:.4f} in trec_eval 9, which ties "
            "such scores (--as trec_eval-9)"
        )

    def _on_unjudged(self) -> str:
        if not self.unjudged or (self.only_relevant and self.conventions.unjudged != "drop"):
            return ""
        some = ", ".join(map(str, self.unjudged[:8])) + (" …" if len(self.unjudged) > 8 else "")
        where = f"at rank {some}" if len(self.unjudged) == 1 else f"at ranks {some}"
        treated = "they are removed" if self.conventions.unjudged == "drop" else "they count as not relevant"
        return f"unjudged: {len(self.unjudged)} of the documents above the cut-off, {where}; {treated}"

    def _on_missed(self) -> str:
        if not self.missed:
            return ""
        some = ", ".join(f"{cut(document, 20)} ({grade:g})" for document, grade in self.missed[:3])
        more = " …" if len(self.missed) > 3 else ""
        return f"not returned: {counted(len(self.missed), 'document')} of a grade above 0: {some}{more}"

    def _on_ties(self) -> str:
        ties = self.ties
        if ties is None:
            return ""
        spans = ", ".join(f"{first}–{last}" for first, last in ties.groups[:5]) + (" …" if len(ties.groups) > 5 else "")
        rule = f"they are ordered by document id, {self.conventions.ties.removeprefix('document-')}"
        if self.conventions.ties == "input-order":
            rule = "they keep the order given"
        elif self.conventions.ties == "averaged":
            rule = f"the score is the mean over {self._orders_taken(ties)}"
        if ties.lowest is None or ties.highest is None:
            return f"ties at ranks {spans}; {rule}"
        if math.isclose(ties.lowest, ties.highest, abs_tol=1e-12):
            return f"ties at ranks {spans}: their order does not change the score"
        return (
            f"ties at ranks {spans}; {rule}. Over all orders the score ranges from {ties.lowest:.4f} to "
            f"{ties.highest:.4f}" + ("" if ties.mean is None else f", {ties.mean:.4f} on average")
        )

    def _orders_taken(self, ties: TieEffect) -> str:
        """The orders that a mean was taken over, and the standard error if they were sampled."""
        if self.error:
            return f"{DRAWN} random orders, seed {SEED} (standard error {self.error:.4f})"
        return "their orders" if ties.mean is not None else "all their orders, which were tried one by one"

    def plain(self, how: Layout) -> Any:
        """The explanation for JSON: one entry per rank; `so_far` is the score of the list cut after that rank."""
        answer: dict[str, Any] = {"measure": self.measure, "run": self.run, "topic": self.topic, "value": self.value}
        if self.query:
            answer["query"] = self.query
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
        if self.error:
            answer["standard_error"] = self.error
        return plain(answer, how.digits)

    def title(self) -> str:
        """Measure, run, topic and value."""
        value = "undefined" if math.isnan(self.value) else f"{self.value:.4f}"
        query = f" ({cut_end(in_line(self.query), LONGEST_QUERY)})" if self.query else ""
        return f"{self.measure} of {self.run}, topic {self.topic}{query}: {value}"

    def content(self, how: Layout) -> Iterator[Part]:
        if how.medium == "text":
            yield self.title()
            yield self._for_screen(how)
        else:
            columns = [(name, cells) for name, cells, _ in self._columns(self.steps, how)]
            cells = map(list, zip(*(column for _, column in columns), strict=True))
            blank = [""] * (len(columns) - 2)
            rows = [[row.ranks, f"… {row}", *blank] if isinstance(row, Fold) else next(cells) for row in self.rows]
            head = [name for name, _ in columns]
            if how.medium == "html":
                yield Table(head, rows, names=2, caption=self.title())
            else:
                yield from (self.title(), Table(head, rows, names=2))
        formula = textwrap.wrap(self.formula, how.limit, subsequent_indent="  ") if how.limit else [self.formula]
        yield Lines([line for line in (*formula, self.worked) if line])

    def _for_screen(self, how: Layout) -> Table | Lines:
        """The ranks that matter most, in as many columns as fit the screen; folds span all columns."""
        rows = self.rows if self.full else condensed(self.rows, MOST_LINES, self.only_relevant)
        steps = [row for row in rows if isinstance(row, RankStep)]
        spans: dict[int, list[str]] = {}
        for place, row in enumerate(rows):
            if isinstance(row, Fold):
                before = sum(isinstance(each, RankStep) for each in rows[:place])
                spans.setdefault(before, []).append(f"{row.ranks}  … {row}")
        if not steps:
            return Lines([line for lines in spans.values() for line in lines])
        columns = _fitting(self._columns(steps, how), how.limit)
        cells = [list(row) for row in zip(*(column for _, column in columns), strict=True)]
        return Table([name for name, _ in columns], cells, 2, spans={row: "; ".join(spans[row]) for row in spans})

    def _columns(self, steps: list[RankStep], how: Layout) -> list[tuple[str, list[str], int]]:
        """Name, cells and priority of each column; a narrow screen drops columns of high numbers first."""
        screen = how.medium == "text"
        ties = ["–".join(map(str, step.tied or ())) for step in steps]
        documents = ["–" if step.document is None else step.document for step in steps]
        ranks = [f"{step.rank}{'=' if step.tied and screen else ''}" for step in steps]
        columns = [("rank", ranks, 0), ("document", documents, 0)]
        columns.append(("score", ["" if step.score is None else f"{step.score:g}" for step in steps], 5))
        columns += [("tied", ties, 0)] if any(ties) and not screen else []
        columns.append(("grade", [_grade(step, screen) for step in steps], 1))
        own = [(name, _numbers([step.columns.get(name) for step in steps], how)) for name in self.columns]
        columns += [(name, cells, 2 if (name, cells) == own[-1] else 6) for name, cells in own]
        columns.append(("so far" if screen else f"{self.measure} so far", [_decimals(s.so_far, how) for s in steps], 3))
        if any(step.ideal for step in steps):
            columns.append(("ideal", [step.ideal.get("document", "") for step in steps], 8))
            columns.append(("ideal grade", [f"{step.ideal['grade']:g}" if step.ideal else "" for step in steps], 4))
            best = {name: [step.ideal.get(name) for step in steps] for name in self.ideal_columns}
            columns += [(f"ideal {name}", _numbers(values, how), 7) for name, values in best.items()]
        return columns


def condensed(rows: list[RankStep | Fold], most: int, only_relevant: bool = False) -> list[RankStep | Fold]:
    """At most `most` rows: the first ranks, then relevant documents from the top, and the end; the rest is folded."""
    if len(rows) <= most:
        return rows
    steps = [place for place, row in enumerate(rows) if isinstance(row, RankStep)]
    relevant = [place for place in steps if _adds(rows[place])]
    visible: set[int] = set()
    for place in dict.fromkeys([*steps[:TOP], *steps[-1:], *relevant, *steps[:most]]):
        if _rows_left(len(rows), {*visible, place}) <= most:
            visible.add(place)
    ends = _ends(rows)
    answer: list[RankStep | Fold] = []
    for (folds, above_cut), group in groupby(range(len(rows)), lambda at: (at not in visible, _above_cut(rows[at]))):
        places = list(group)
        if not folds:
            answer += [rows[place] for place in places]
            continue
        some, before = [rows[place] for place in places], ends[places[0] - 1] if places[0] else 0.0
        added = ends[places[-1]] - before if above_cut else None
        answer.append(Fold(_span(some[0])[0], _span(some[-1])[1], *_judged(some), above_cut, added, only_relevant))
    return answer


def _ends(rows: list[RankStep | Fold]) -> list[float]:
    """The score so far at the end of each row."""
    answer: list[float] = []
    for row in rows:
        before = answer[-1] if answer else 0.0
        added = row.added or 0.0 if isinstance(row, Fold) else 0.0 if row.so_far is None else row.so_far - before
        answer.append(before + added)
    return answer


def _judged(rows: list[RankStep | Fold]) -> tuple[int, int]:
    """The number of judged and of relevant documents in some rows."""
    judged = [row.judged if isinstance(row, Fold) else int(row.grade is not None) for row in rows]
    return sum(judged), sum(row.relevant if isinstance(row, Fold) else int(_adds(row)) for row in rows)


def _adds(row: RankStep | Fold) -> bool:
    return isinstance(row, RankStep) and row.grade is not None and row.grade > 0


def _rows_left(number: int, visible: set[int]) -> int:
    """The number of rows if those between the visible ones are folded into one each."""
    places = [-1, *sorted(visible), number]
    return len(visible) + sum(after - before > 1 for before, after in pairwise(places))


def _span(row: RankStep | Fold) -> tuple[int, int]:
    return (row.rank, row.rank) if isinstance(row, RankStep) else (row.first, row.last)


def _above_cut(row: RankStep | Fold) -> bool:
    return isinstance(row, RankStep) or row.above_cut


def _fitting(columns: list[tuple[str, list[str], int]], limit: int | None) -> list[tuple[str, list[str]]]:
    """The columns that fit the screen; document ids are shortened in the middle to the space that is left."""
    widths = [max(width(in_line(text)) for text in (name, *cells)) for name, cells, _ in columns]
    at = [name for name, _, _ in columns].index("document")
    ids = [i for i, (name, _, _) in enumerate(columns) if name in ("document", "ideal")]
    for i in ids:
        widths[i] = min(widths[i], LONGEST_ID if limit is None else SHORTEST_ID)
    visible = {i for i, (_, _, spare) in enumerate(columns) if not spare}
    for i in sorted(range(len(columns)), key=lambda i: columns[i][2]):
        across = sum(widths[j] + len(GAP) for j in {*visible, i}) - len(GAP)
        visible |= {i} if limit is None or across <= limit else set()
    if limit is not None:
        room = limit - sum(widths[j] + len(GAP) for j in visible) + len(GAP)
        widths[at] = min(widths[at] + max(room, 0), LONGEST_ID)
    answer = []
    for i in sorted(visible):
        name, cells, _ = columns[i]
        answer.append((name, [cut(in_line(cell), widths[i]) for cell in cells] if i in ids else cells))
    return answer


def _grade(step: RankStep, screen: bool = False) -> str:
    unjudged = "?" if screen else "unjudged"
    return "" if step.document is None else unjudged if step.grade is None else f"{step.grade:g}"


def _numbers(values: list[float | None], how: Layout) -> list[str]:
    """A column of numbers, without decimals where all of them are whole."""
    if all(value is None or float(value).is_integer() for value in values):
        return ["" if value is None else f"{value:.0f}" for value in values]
    return [_decimals(value, how) for value in values]


def _decimals(value: float | None, how: Layout) -> str:
    return "" if value is None or value != value else how.number(value)


# computing an explanation


def explain_topic(
    evaluator: Scorer, run: Run, name: str, topic: str, full: bool = False, preset: str | None = None
) -> Explanation:
    """Explain the score of one run on one topic by one of the evaluator's measures."""
    case = _Case(evaluator, run, name, topic)
    measure, value, best = case.measure, case.value, case.best
    k = measure.values.get("k")
    cut = k or len(case.listing)
    with measure.within_doubles(case.hits.judgments):
        ties = case.ties(cut)
        settled = case.conventions.ties != "averaged" or ties is None
        return Explanation(
            measure=str(measure),
            run=run.name,
            topic=topic,
            value=value,
            formula=measure.formula_with_values(),
            worked=case.worked(value) if settled else "",
            columns=list(measure.trace(case.hits)),
            ideal_columns=[] if best is None else [name for name in measure.trace(best) if name != "discount"],
            rows=case.rows(value, k if isinstance(k, int) else None, full),
            returned=len(case.listing),
            unjudged=[rank for rank, grade in enumerate(case.graded[:cut], 1) if grade is None],
            missed=case.missed(),
            ties=ties,
            conventions=case.conventions,
            preset=preset,
            differences=differences(preset or "", {"": measure}, case.facts(ties)).get("", []),
            query=evaluator.queries.get(topic, ""),
            full=full,
            error=case.error,
            only_relevant=case.only_relevant,
            in_single=case.in_single(),
        )


class _Case:
    """One topic's ranking and one measure: the data for every line of an explanation."""

    def __init__(self, evaluator: Scorer, run: Run, name: str, topic: str) -> None:
        self.evaluator, self.topic = evaluator, topic
        self.measure = evaluator.measures[name]
        self.conventions = evaluator.conventions_for(self.measure)
        self.t = evaluator.qrels.topics.index(topic)
        self.returned = topic in run
        self.listing: Listing = run.ranking(topic, self.conventions.order) if self.returned else []
        hits = evaluator.hits(Run({topic: dict(self.listing)}), self.measure)
        self.hits = hits.condensed() if self.measure.judged_only else hits
        self.only_relevant = hits.judgments.only_relevant(float(self.measure.values.get("rel", 1)))
        self.value, self.error = self._scored(hits)
        qrels = evaluator.qrels
        self.grades: dict[str, float] = {}  # the highest of several judgments for one document
        for row in np.flatnonzero(qrels.topic == self.t).tolist():
            document, grade = decode(qrels.documents[row]), float(qrels.grade[row])
            self.grades[document] = max(grade, self.grades.get(document, grade))
        self.graded = [self.grades.get(document) for document, _ in self.listing]  # None: unjudged
        with self.measure.within_doubles(hits.judgments):
            self.best = self.measure.ideal_hits(self.hits)
            self.columns = {document: values for _, document, values in self._traced(self.hits)}
            self.ideal = {} if self.best is None else self._ideal(self.best)
        self.first, self.last = self._tied()

    def _ideal(self, best: Hits) -> dict[int, dict[str, Any]]:
        """For each rank of the ideal ranking: document, grade, and the measure's own columns."""
        return {
            int(best.rank[i]): {"document": document, "grade": float(best.grade[i]), **values}
            for i, document, values in self._traced(best)
        }

    def _tied(self) -> tuple[list[int], list[int]]:
        """For each rank, the first and the last rank of its tie group."""
        key = np.array([-score for _, score in self.listing], np.float64)
        if self.conventions.scores == "single":
            with np.errstate(over="ignore"):
                key = key.astype(np.float32).astype(np.float64)
        ordered = np.sort(key)
        above = np.searchsorted(ordered, key, side="left")
        return (above + 1).tolist(), np.searchsorted(ordered, key, side="right").tolist()

    def score(self, listing: Listing) -> float:
        """The score of another list of documents for this topic."""
        return self._scored(self.evaluator.hits(Run({self.topic: dict(listing)}), self.measure))[0]

    def _scored(self, hits: Hits) -> tuple[float, float]:
        """The score of hits and its standard error, which is above 0 where orders of ties were sampled."""
        value, error = self.evaluator.mean_of(self.measure, hits)
        return float(value[self.t]), float(error[self.t])

    def in_single(self) -> float | None:
        """The score if scores were compared in single precision; None if it would be the same."""
        if self.conventions.scores != "double" or not self.conventions.ties.startswith("document"):
            return None
        with np.errstate(over="ignore"):
            scores = [np.float32(score) for _, score in self.listing]
        if all(above > below for above, below in pairwise(scores)):
            return None
        listing = [(document, float(score)) for (document, _), score in zip(self.listing, scores, strict=True)]
        value = self.score(listing) if np.isfinite(scores).all() else self.value
        return None if round(value, 4) == round(self.value, 4) or math.isnan(value) else value

    def facts(self, ties: TieEffect | None) -> list[str]:
        """The facts of this topic that can make another program's number differ."""
        grades = list(self.grades.values())
        holds = {
            TIES: ties is not None,
            NEGATIVE: any(grade < 0 for grade in grades),
            NO_RELEVANT: not any(grade >= float(self.measure.values.get("rel", 1)) for grade in grades),
            EMPTY: self.returned and not self.listing,
        }
        return [fact for fact, there in holds.items() if there]

    def step(self, rank: int) -> RankStep:
        """One rank of the run, or of the ideal ranking below the run's end."""
        ideal = self.ideal.get(rank, {})
        if rank > len(self.listing):
            return RankStep(rank, ideal=ideal)
        (document, score), first, last = self.listing[rank - 1], self.first[rank - 1], self.last[rank - 1]
        ties = (first, last) if last > first else None
        columns, so_far = self.columns.get(document, {}), self.score(self.listing[:rank])
        return RankStep(rank, document, score, self.graded[rank - 1], ties, columns, so_far, ideal)

    def _traced(self, hits: Hits) -> Iterator[tuple[int, str, dict[str, float]]]:
        """The topic's hits: position, document, and the measure's own columns of each."""
        trace = self.measure.trace(hits)
        for i in np.flatnonzero(hits.topic == self.t).tolist():
            values = {name: float(column[i]) for name, column in trace.items() if column[i] == column[i]}
            yield i, decode(self.evaluator.qrels.documents[int(hits.row[i])]), values

    def rows(self, value: float, cut: int | None, full: bool) -> list[RankStep | Fold]:
        """The rows of the table, with the score so far in each."""
        deepest = max(len(self.listing), max(self.ideal, default=0))
        ranks = range(1, deepest + 1) if full else self._visible_ranks(deepest, cut)
        rows: list[RankStep | Fold] = []
        for above, rank in pairwise([0, *ranks, deepest + 1]):
            for first, last, above_cut in _stretches(above + 1, min(rank - 1, len(self.listing)), cut):
                before = rows[-1].so_far if rows and isinstance(rows[-1], RankStep) else None
                single = above_cut and first == last
                rows.append(self.step(first) if single else self._fold(first, last, above_cut, before))
            rows += [self.step(rank)] if rank <= deepest else []
        ends = [row.so_far for row in rows if isinstance(row, RankStep) and row.so_far is not None][-1:]
        if cut is not None and not np.array_equal(ends, [value] * len(ends), equal_nan=True):
            return self.rows(value, None, full)  # ranks below the cut-off count as well: show the end
        return rows

    def _fold(self, first: int, last: int, above_cut: bool, before: float | None) -> Fold:
        """A span of ranks that are not shown, and how much they add to the score."""
        grades = [grade for grade in self.graded[first - 1 : last] if grade is not None]
        relevant = sum(grade > 0 for grade in grades)
        start = self.score(self.listing[: first - 1]) if before is None and above_cut else before or 0.0
        added = self.score(self.listing[:last]) - start if above_cut else None
        return Fold(first, last, len(grades), relevant, above_cut, added, self.only_relevant)

    def _visible_ranks(self, deepest: int, cut: int | None) -> list[int]:
        """The ranks to show: the first ones, those of judged documents above the cut-off, and the end."""
        top, end = min(cut or TOP, MOST), len(self.listing) if cut is None else 0
        judged = [rank for rank, grade in enumerate(self.graded[:cut], 1) if grade is not None]
        ranks = list(range(1, min(top, deepest) + 1))
        ranks += [rank for rank in judged if rank > top][: max(MOST - len(ranks), 0)]
        return ranks if end <= top or end in ranks else [*ranks, end]

    def missed(self) -> list[tuple[str, float]]:
        """Documents of a grade above 0 that were not returned, best first."""
        returned = {document for document, _ in self.listing}
        missed = [(d, grade) for d, grade in self.grades.items() if grade > 0 and d not in returned]
        return sorted(missed, key=lambda pair: -pair[1])

    def ties(self, cut: int) -> TieEffect | None:
        """The tie groups that reach above the cut-off, and the lowest and highest score that their orders give."""
        every = dict.fromkeys(zip(self.first, self.last, strict=True))
        spans = sorted((first, last) for first, last in every if last > first and first <= cut)
        if not spans:
            return None
        groups = {(first, last): set(self.graded[first - 1 : last]) for first, last in spans}
        # groups whose order can matter
        moving = [span for span in spans if self.measure.needs or len(groups[span]) > 1]
        lowest, highest = self._over_orders(moving)
        expected = self.measure.expected(self.hits)
        mean = None if expected is None else float(expected[self.t])
        return TieEffect(spans, _number_of_orders(spans), lowest, highest, mean)

    def _over_orders(self, spans: list[tuple[int, int]]) -> tuple[float, float] | tuple[None, None]:
        documents = [document for document, _ in self.listing]
        number = _number_of_orders(spans)
        if number is not None and number <= ORDERS:
            orders = list(_orders(documents, spans))
        elif self.measure.monotone and self.conventions.ties != "averaged":
            orders = [self._by_grade(documents, spans, sign) for sign in (1, -1)]
        else:
            return None, None
        values = [self.score([(d, float(-rank)) for rank, d in enumerate(order)]) for order in orders]
        return (None, None) if np.isnan(values).any() else (min(values), max(values))

    def _by_grade(self, documents: list[str], spans: list[tuple[int, int]], sign: int) -> list[str]:
        order = list(documents)
        for first, last in spans:
            order[first - 1 : last] = sorted(order[first - 1 : last], key=lambda d: sign * self.grades.get(d, 0))
        return order

    def worked(self, value: float) -> str:
        """The last line of the calculation: in words, with numbers, and the value."""
        template, numbers = self.measure.worked(self.hits)
        if template:
            return f"{template_words(template)} = {fill_template(template, numbers, self.t, value)}"
        columns = [self.columns.get(document, {}) for document, _ in self.listing]
        return sum_in_words([values["contribution"] for values in columns if values.get("contribution")], value)


def template_words(template: str) -> str:
    """The template of a calculation's last line, in words.

    >>> template_words("{DCG} / {ideal DCG}")
    'DCG / ideal DCG'
    """
    return template.replace("{", "").replace("}", "")


def fill_template(template: str, numbers: dict[str, Any], topic: int, value: float) -> str:
    """Fill a template with a topic's numbers (one for all topics, or one per topic) and append the result."""
    line = template
    for name, values in numbers.items():
        line = line.replace(f"{{{name}}}", _number(np.asarray(values).reshape(-1)[topic if np.ndim(values) else 0]))
    return f"{line} = {_number(value)}"


def sum_in_words(parts: list[float], value: float) -> str:
    """Contributions written as a sum; empty if they do not add up to the value.

    >>> sum_in_words([0.5, 0.25], 0.75), sum_in_words([0.5], 0.75)
    ('0.5000 + 0.2500 = 0.7500', '')
    """
    if not parts or not math.isclose(sum(parts), value, rel_tol=1e-9, abs_tol=1e-12):
        return ""
    some = [_number(part) for part in parts[:12]]
    return f"{' + '.join(some)}{' + …' if len(parts) > 12 else ''} = {_number(value)}"


def _stretches(first: int, last: int, cut: int | None) -> list[tuple[int, int, bool]]:
    """The ranks from first to last, split at the cut-off; True marks the part that the measure reads."""
    end = last if cut is None else cut
    parts = [(first, min(last, end), True), (max(first, end + 1), last, False)]
    return [part for part in parts if part[0] <= part[1]]


def _number_of_orders(spans: list[tuple[int, int]]) -> int | None:
    sizes = [last - first + 1 for first, last in spans]
    if sum(math.lgamma(size + 1) for size in sizes) / math.log(10) > DIGITS:
        return None
    return math.prod(map(math.factorial, sizes))


def _orders(documents: list[str], spans: list[tuple[int, int]]) -> Iterator[list[str]]:
    for arranged in product(*(permutations(documents[first - 1 : last]) for first, last in spans)):
        order = list(documents)
        for (first, last), group in zip(spans, arranged, strict=True):
            order[first - 1 : last] = group
        yield order


def _number(value: Any) -> str:
    number = float(value)
    if not math.isfinite(number):
        return "undefined" if number != number else "∞"
    return f"{number:.0f}" if number == int(number) and abs(number) < 1e15 else f"{number:.4f}"
