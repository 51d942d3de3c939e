"""One score, step by step, as a table one can check with a pencil.

It works for every measure: the running total is the measure itself, computed on the first r documents. A
measure may add columns of its own (`Measure.trace`), its ideal ranking and the last line of its formula.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from itertools import groupby, pairwise, permutations, product
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cranfield.answer import Answer, Layout, Lines, Table, plain
from cranfield.columns import GAP, counted, cut, cut_end, in_line, width
from cranfield.kernels import decode
from cranfield.orders import DRAWN, SEED
from cranfield.peers import EMPTY, NEGATIVE, NO_RELEVANT, TIES, differences
from cranfield.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cranfield.answer import Part
    from cranfield.collection import Qrels
    from cranfield.conventions import Conventions
    from cranfield.hits import Hits
    from cranfield.measures import Measure
    from cranfield.orders import Mean

    Listing = list[tuple[str, float]]


TOP = 10  # ranks always shown
MOST_LINES = 20  # rows on a screen, unless all ranks are asked for
LONGEST_ID, SHORTEST_ID = 32, 12  # cells of a document's id on a screen
LONGEST_QUERY = 60
MOST = 60  # ranks shown at most, unless all are asked for
ORDERS = 120  # orders of ties that are tried out one by one
DIGITS = 4_000  # of the number of orders: Python writes no longer numbers


class Scorer(Protocol):
    """What has to be known of an `Evaluator`, which lies above this room."""

    measures: dict[str, Measure]
    qrels: Qrels
    queries: Mapping[str, str]

    def hits(self, run: Any, measure: Measure | None = None) -> Hits:
        """One run seen through the judgments, as a measure sees it."""

    def conventions_for(self, measure: Measure | None) -> Conventions:
        """The conventions under which a measure is computed."""

    def mean_of(self, measure: Measure, hits: Hits) -> Mean:
        """A measure's value for each topic, and its standard error where orders of ties were drawn."""


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
    relevant: int
    counted: bool  # whether the measure looks so far
    added: float | None = None  # how much the score of the list changes over these ranks, where that is known
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
        if not self.counted:
            parts.append("below the cut-off")
        elif self.added is not None and self.added == self.added:
            parts.append(f"{self.added:+.4f}" if round(self.added, 4) else "nothing added")
        return ", ".join(parts)

    @property
    def ranks(self) -> str:
        """The span of ranks, as text."""
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


@dataclass
class Ties:
    """What the orders of tied documents could make of the score."""

    groups: list[tuple[int, int]]
    orders: int | None  # None: a number too long to be written
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
    differences: list[str] = field(default_factory=list)  # where the value is not that of the preset's program
    query: str = ""  # what the topic asks, where that is known
    full: bool = False  # whether every rank was asked for
    error: float = 0.0  # the standard error of the value, where it is a mean over orders of ties that were drawn
    only_relevant: bool = False  # whether the judgments name relevant documents only
    in_single: float | None = None  # the value if scores were compared in single precision, where that is another

    @property
    def steps(self) -> list[Step]:
        """The ranks shown, without the folds."""
        return [row for row in self.rows if isinstance(row, Step)]

    def notes(self, shell: bool = False) -> list[str]:
        """What is unjudged, what is missing, what ties could change: a sentence each."""
        own = (self._on_unjudged(), self._on_negative(), self._on_missed(), self._on_ties(), self.on_digits())
        return [note for note in (*own, *self.differences) if note]

    def _on_negative(self) -> str:
        ranks = [str(step.rank) for step in self.steps if step.grade is not None and step.grade < 0]
        if not ranks:
            return ""
        treated = "a judgment of 0" if self.conventions.negative == "irrelevant" else "no judgment of relevance"
        return f"negative grades at rank {', '.join(ranks)}: {treated}"

    def on_digits(self) -> str:
        """What single precision would make of the score, if that is something else."""
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
        treated = "they are taken out" if self.conventions.unjudged == "drop" else "they count as not relevant"
        return f"unjudged: {len(self.unjudged)} of the documents looked at, {where}; {treated}"

    def _on_missed(self) -> str:
        if not self.missed:
            return ""
        some = ", ".join(f"{cut(document, 20)} ({grade:g})" for document, grade in self.missed[:3])
        return f"not returned: {counted(len(self.missed), 'document')} of a grade above 0: {some}" + (
            " …" if len(self.missed) > 3 else ""
        )

    def _on_ties(self) -> str:
        ties = self.ties
        if ties is None:
            return ""
        spans = ", ".join(f"{first}–{last}" for first, last in ties.groups[:5]) + (" …" if len(ties.groups) > 5 else "")
        rule = {
            "input-order": "they keep the order given",
            "averaged": f"the score is the mean over {self._orders_taken(ties)}",
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

    def _orders_taken(self, ties: Ties) -> str:
        """Which orders a mean was taken over, and how sure it is then."""
        if self.error:
            return f"{DRAWN} of their orders, drawn with seed {SEED} (standard error {self.error:.4f})"
        return "their orders" if ties.mean is not None else "their orders, all of which were tried"

    def plain(self, how: Layout) -> Any:
        """Measure, value, formula, a row a rank, and what could be otherwise. `so_far`: of the list cut after that rank."""
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
        """What this is, and the value."""
        value = "undefined" if math.isnan(self.value) else f"{self.value:.4f}"
        asked = f" ({cut_end(in_line(self.query), LONGEST_QUERY)})" if self.query else ""
        return f"{self.measure} of {self.run}, topic {self.topic}{asked}: {value}"

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
        """The ranks that matter most, in as many columns as the screen has room for; folds go across all of them."""
        rows = self.rows if self.full else condensed(self.rows, MOST_LINES, self.only_relevant)
        steps = [row for row in rows if isinstance(row, Step)]
        spans: dict[int, list[str]] = {}
        for place, row in enumerate(rows):
            if isinstance(row, Fold):
                before = sum(isinstance(each, Step) for each in rows[:place])
                spans.setdefault(before, []).append(f"{row.ranks}  … {row}")
        if not steps:
            return Lines([line for lines in spans.values() for line in lines])
        columns = _fitting(self._columns(steps, how), how.limit)
        cells = [list(row) for row in zip(*(column for _, column in columns), strict=True)]
        return Table([name for name, _ in columns], cells, 2, spans={row: "; ".join(spans[row]) for row in spans})

    def _columns(self, steps: list[Step], how: Layout) -> list[tuple[str, list[str], int]]:
        """Names and cells, and a number each: the higher, the sooner a narrow screen does without it."""
        screen = how.medium == "text"
        ties = ["–".join(map(str, step.tied or ())) for step in steps]
        documents = ["–" if step.document is None else step.document for step in steps]
        ranks = [f"{step.rank}{'=' if step.tied and screen else ''}" for step in steps]
        columns = [("rank", ranks, 0), ("document", documents, 0)]
        columns.append(("score", ["" if step.score is None else f"{step.score:g}" for step in steps], 5))
        if any(ties) and not screen:
            columns.append(("tied", ties, 0))
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


def condensed(rows: list[Step | Fold], most: int, only_relevant: bool = False) -> list[Step | Fold]:
    """So many rows at the most: the first ranks, then the relevant documents from the top, and the end; the rest is folded."""
    if len(rows) <= most:
        return rows
    steps = [place for place, row in enumerate(rows) if isinstance(row, Step)]
    relevant = [place for place in steps if _adds(rows[place])]
    kept: set[int] = set()
    for place in dict.fromkeys([*steps[:TOP], *steps[-1:], *relevant, *steps[:most]]):
        if _rows_left(len(rows), {*kept, place}) <= most:
            kept.add(place)
    ends = _ends(rows)
    answer: list[Step | Fold] = []
    for (folds, looked), group in groupby(range(len(rows)), lambda place: (place not in kept, _counted(rows[place]))):
        places = list(group)
        if not folds:
            answer += [rows[place] for place in places]
            continue
        some, before = [rows[place] for place in places], ends[places[0] - 1] if places[0] else 0.0
        added = ends[places[-1]] - before if looked else None
        answer.append(Fold(_span(some[0])[0], _span(some[-1])[1], *_judged(some), looked, added, only_relevant))
    return answer


def _ends(rows: list[Step | Fold]) -> list[float]:
    """The score so far at the end of each row."""
    answer: list[float] = []
    for row in rows:
        before = answer[-1] if answer else 0.0
        added = row.added or 0.0 if isinstance(row, Fold) else 0.0 if row.so_far is None else row.so_far - before
        answer.append(before + added)
    return answer


def _judged(rows: list[Step | Fold]) -> tuple[int, int]:
    """How many documents of some rows are judged, and how many relevant."""
    judged = [row.judged if isinstance(row, Fold) else int(row.grade is not None) for row in rows]
    return sum(judged), sum(row.relevant if isinstance(row, Fold) else int(_adds(row)) for row in rows)


def _adds(row: Step | Fold) -> bool:
    return isinstance(row, Step) and row.grade is not None and row.grade > 0


def _rows_left(number: int, kept: set[int]) -> int:
    """How many rows there are when those between the kept ones become one each."""
    places = [-1, *sorted(kept), number]
    return len(kept) + sum(after - before > 1 for before, after in pairwise(places))


def _span(row: Step | Fold) -> tuple[int, int]:
    return (row.rank, row.rank) if isinstance(row, Step) else (row.first, row.last)


def _counted(row: Step | Fold) -> bool:
    return True if isinstance(row, Step) else row.counted


def _fitting(columns: list[tuple[str, list[str], int]], limit: int | None) -> list[tuple[str, list[str]]]:
    """The columns that a screen has room for, the documents' ids cut in the middle to what is left."""
    widths = [max(width(in_line(text)) for text in (name, *cells)) for name, cells, _ in columns]
    at = [name for name, _, _ in columns].index("document")
    ids = [i for i, (name, _, _) in enumerate(columns) if name in ("document", "ideal")]
    for i in ids:
        widths[i] = min(widths[i], LONGEST_ID if limit is None else SHORTEST_ID)
    kept = {i for i, (_, _, spare) in enumerate(columns) if not spare}
    for i in sorted(range(len(columns)), key=lambda i: columns[i][2]):
        across = sum(widths[j] + len(GAP) for j in {*kept, i}) - len(GAP)
        kept |= {i} if limit is None or across <= limit else set()
    if limit is not None:
        room = limit - sum(widths[j] + len(GAP) for j in kept) + len(GAP)
        widths[at] = min(widths[at] + max(room, 0), LONGEST_ID)
    answer = []
    for i in sorted(kept):
        name, cells, _ = columns[i]
        answer.append((name, [cut(in_line(cell), widths[i]) for cell in cells] if i in ids else cells))
    return answer


def _grade(step: Step, screen: bool = False) -> str:
    unjudged = "?" if screen else "unjudged"
    return "" if step.document is None else unjudged if step.grade is None else f"{step.grade:g}"


def _numbers(values: list[float | None], how: Layout) -> list[str]:
    """A column of numbers, without decimals where all of them are whole."""
    if all(value is None or float(value).is_integer() for value in values):
        return ["" if value is None else f"{value:.0f}" for value in values]
    return [_decimals(value, how) for value in values]


def _decimals(value: float | None, how: Layout) -> str:
    return "" if value is None or value != value else how.number(value)


# how it comes about


def walk(
    evaluator: Scorer, run: Run, name: str, topic: str, full: bool = False, preset: str | None = None
) -> Explanation:
    """Explain one topic's score of one run by one of the evaluator's measures."""
    case = _Case(evaluator, run, name, topic)
    with case.measure.within_doubles(case.hits.judgments):
        return _explained(case, run.name, full, preset)


def _explained(case: _Case, run: str, full: bool, preset: str | None) -> Explanation:
    measure, value = case.measure, case.value
    k = measure.values.get("k")
    cut = k or len(case.listing)
    ties = case.ties(cut)
    settled = case.conventions.ties != "averaged" or ties is None
    return Explanation(
        measure=str(measure),
        run=run,
        topic=case.topic,
        value=value,
        formula=measure.formula_with_values(),
        worked=case.worked(value) if settled else "",
        columns=list(measure.trace(case.hits)),
        ideal_columns=[] if case.best is None else [name for name in measure.trace(case.best) if name != "discount"],
        rows=case.rows(value, k if isinstance(k, int) else None, full),
        returned=len(case.listing),
        unjudged=[rank for rank, grade in enumerate(case.graded[:cut], 1) if grade is None],
        missed=case.missed(),
        ties=ties,
        conventions=case.conventions,
        preset=preset,
        differences=differences(preset or "", {"": measure}, case.facts(ties)).get("", []),
        query=case.evaluator.queries.get(case.topic, ""),
        full=full,
        error=case.error,
        only_relevant=case.only_relevant,
        in_single=case.in_single(),
    )


class _Case:
    """One topic's ranking before one measure: what every line of an explanation is made from."""

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
        self.grades: dict[str, float] = {}  # of several judgments for one document the highest
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
        """Each rank of the ideal ranking: its document, the grade, and the measure's own columns."""
        answer: dict[int, dict[str, Any]] = {}
        for i, document, values in self._traced(best):
            answer[int(best.rank[i])] = {"document": document, "grade": float(best.grade[i]), **values}
        return answer

    def _tied(self) -> tuple[list[int], list[int]]:
        """For each rank the first and the last of those whose documents have the same score."""
        key = np.array([-score for _, score in self.listing], np.float64)
        if self.conventions.scores == "single":
            with np.errstate(over="ignore"):
                key = key.astype(np.float32).astype(np.float64)
        ordered = np.sort(key)
        above = np.searchsorted(ordered, key, side="left")
        return (above + 1).tolist(), np.searchsorted(ordered, key, side="right").tolist()

    def score(self, listing: Listing) -> float:
        """The measure of another list of documents for the topic."""
        return self._scored(self.evaluator.hits(Run({self.topic: dict(listing)}), self.measure))[0]

    def _scored(self, hits: Hits) -> tuple[float, float]:
        """The score of hits and its standard error, above 0 where orders of ties were drawn."""
        value, error = self.evaluator.mean_of(self.measure, hits)
        return float(value[self.t]), float(error[self.t])

    def in_single(self) -> float | None:
        """The score if scores were compared in single precision; None where it would be the same."""
        if self.conventions.scores != "double" or not self.conventions.ties.startswith("document"):
            return None
        with np.errstate(over="ignore"):
            scores = [np.float32(score) for _, score in self.listing]
        if all(above > below for above, below in pairwise(scores)):
            return None
        listing = [(document, float(score)) for (document, _), score in zip(self.listing, scores, strict=True)]
        value = self.score(listing) if np.isfinite(scores).all() else self.value
        return None if round(value, 4) == round(self.value, 4) or math.isnan(value) else value

    def facts(self, ties: Ties | None) -> list[str]:
        """What the topic has of that which makes a program's number differ."""
        grades = list(self.grades.values())
        holds = {
            TIES: ties is not None,
            NEGATIVE: any(grade < 0 for grade in grades),
            NO_RELEVANT: not any(grade >= float(self.measure.values.get("rel", 1)) for grade in grades),
            EMPTY: self.returned and not self.listing,
        }
        return [fact for fact, there in holds.items() if there]

    def step(self, rank: int) -> Step:
        """One rank of the run, or of the ideal ranking where that goes on."""
        ideal = self.ideal.get(rank, {})
        if rank > len(self.listing):
            return Step(rank, ideal=ideal)
        (document, score), tied = self.listing[rank - 1], (self.first[rank - 1], self.last[rank - 1])
        columns = self.columns.get(document, {})
        ties = tied if tied[1] > tied[0] else None
        return Step(rank, document, score, self.graded[rank - 1], ties, columns, self.score(self.listing[:rank]), ideal)

    def _traced(self, hits: Hits) -> Iterator[tuple[int, str, dict[str, float]]]:
        """The topic's hits: position, document, and the measure's own columns."""
        trace = self.measure.trace(hits)
        for i in np.flatnonzero(hits.topic == self.t).tolist():
            values = {name: float(column[i]) for name, column in trace.items() if column[i] == column[i]}
            yield i, decode(self.evaluator.qrels.documents[int(hits.row[i])]), values

    def rows(self, value: float, cut: int | None, full: bool) -> list[Step | Fold]:
        """The rows of the table, with the score so far in each."""
        deepest = max(len(self.listing), max(self.ideal, default=0))
        shown = range(1, deepest + 1) if full else self._shown(deepest, cut)
        rows: list[Step | Fold] = []
        for above, rank in pairwise([0, *shown, deepest + 1]):
            for first, last, looked in _stretches(above + 1, min(rank - 1, len(self.listing)), cut):
                before = rows[-1].so_far if rows and isinstance(rows[-1], Step) else None
                rows.append(self.step(first) if looked and first == last else self._fold(first, last, looked, before))
            rows += [self.step(rank)] if rank <= deepest else []
        ends = [row.so_far for row in rows if isinstance(row, Step) and row.so_far is not None][-1:]
        if cut is not None and not np.array_equal(ends, [value] * len(ends), equal_nan=True):
            return self.rows(value, None, full)  # what stands below the cut-off counts as well: show the end
        return rows

    def _fold(self, first: int, last: int, looked: bool, before: float | None) -> Fold:
        """Ranks that are not shown, and what they add together to the score before them."""
        grades = [grade for grade in self.graded[first - 1 : last] if grade is not None]
        relevant = sum(grade > 0 for grade in grades)
        start = self.score(self.listing[: first - 1]) if before is None and looked else before or 0.0
        added = self.score(self.listing[:last]) - start if looked else None
        return Fold(first, last, len(grades), relevant, looked, added, self.only_relevant)

    def _shown(self, deepest: int, cut: int | None) -> list[int]:
        """The ranks that matter: the top ones, those of judged documents as far as the measure looks, and the end."""
        top, end = min(cut or TOP, MOST), len(self.listing) if cut is None else 0
        judged = [rank for rank, grade in enumerate(self.graded[:cut], 1) if grade is not None]
        shown = list(range(1, min(top, deepest) + 1))
        shown += [rank for rank in judged if rank > top][: max(MOST - len(shown), 0)]
        return shown if end <= top or end in shown else [*shown, end]

    def missed(self) -> list[tuple[str, float]]:
        """Documents of a grade above 0 that were not returned, best first."""
        returned = {document for document, _ in self.listing}
        missed = [(d, grade) for d, grade in self.grades.items() if grade > 0 and d not in returned]
        return sorted(missed, key=lambda pair: -pair[1])

    def ties(self, cut: int) -> Ties | None:
        """The tie groups that reach above the cut-off, and the lowest and highest score that their orders give."""
        every = dict.fromkeys(zip(self.first, self.last, strict=True))
        spans = sorted((first, last) for first, last in every if last > first and first <= cut)
        if not spans:
            return None
        groups = {(first, last): set(self.graded[first - 1 : last]) for first, last in spans}
        moving = [span for span in spans if self.measure.needs or len(groups[span]) > 1]  # where the order can matter
        lowest, highest = self._over_orders(moving)
        expected = self.measure.expected(self.hits)
        mean = None if expected is None else float(expected[self.t])
        return Ties(spans, _number_of_orders(spans), lowest, highest, mean)

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
        """The last line of the calculation: in words, with numbers put in, and the value."""
        template, numbers = self.measure.worked(self.hits)
        if template:
            return f"{words_of(template)} = {put_in(template, numbers, self.t, value)}"
        columns = [self.columns.get(document, {}) for document, _ in self.listing]
        return added_up([values["contribution"] for values in columns if values.get("contribution")], value)


def words_of(template: str) -> str:
    """The last line of a calculation in words.

    >>> words_of("{DCG} / {ideal DCG}")
    'DCG / ideal DCG'
    """
    return template.replace("{", "").replace("}", "")


def put_in(template: str, numbers: dict[str, Any], topic: int, value: float) -> str:
    """The same with a topic's numbers in it, each of them one for all or one a topic, and what comes out."""
    line = template
    for name, values in numbers.items():
        line = line.replace(f"{{{name}}}", _number(np.asarray(values).reshape(-1)[topic if np.ndim(values) else 0]))
    return f"{line} = {_number(value)}"


def added_up(parts: list[float], value: float) -> str:
    """Contributions as a sum; empty where they do not add up to the value.

    >>> added_up([0.5, 0.25], 0.75), added_up([0.5], 0.75)
    ('0.5000 + 0.2500 = 0.7500', '')
    """
    if not parts or not math.isclose(sum(parts), value, rel_tol=1e-9, abs_tol=1e-12):
        return ""
    some = [_number(part) for part in parts[:12]]
    return f"{' + '.join(some)}{' + …' if len(parts) > 12 else ''} = {_number(value)}"


def _stretches(first: int, last: int, cut: int | None) -> list[tuple[int, int, bool]]:
    """The ranks from first to last, divided at the cut-off: those that the measure looks at, and the others."""
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
