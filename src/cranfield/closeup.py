"""The tops of runs, topic by topic: what stands where, how it is graded, and what it adds to each score.

What `explain` shows of one score, for all topics of a run at once: the measure's own columns (`Measure.trace`) and the
last line of its formula, over the whole run in one call each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.explanation import added_up, put_in, words_of
from cranfield.kernels import decode
from cranfield.tops import top

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.evaluate import Evaluator
    from cranfield.hits import Hits
    from cranfield.kernels.table import Floats
    from cranfield.measures import Measure
    from cranfield.run import Run
    from cranfield.scores import Scores

    Key = tuple[int, bytes]  # a topic's number in the judgments, and a document
    Step = tuple[float, ...]


@dataclass(frozen=True)
class Arithmetic:
    """How one measure came by a run's scores: of each topic a step a rank, and the last line with its numbers."""

    columns: list[str]
    words: str  # the last line in words, where the measure has one
    steps: list[list[Step | None]]  # None: the document plays no part
    lines: list[str]


@dataclass(frozen=True)
class Closeup:
    """One run, topic by topic, down to a depth."""

    run: str
    documents: list[list[str]]
    grades: list[list[float | None]]  # None: unjudged
    below: list[int]  # documents of a grade above 0 that were returned further down
    missed: list[int]  # and those that were not returned
    deeper: list[dict[str, int]] = field(default_factory=list)  # ranks below the depth of what another run shows
    arithmetic: dict[str, Arithmetic] = field(default_factory=dict)  # by measure


def closeups(scores: Scores, runs: Sequence[str], depth: int) -> list[Closeup]:
    """The tops of some runs of some scores; none where one of the runs cannot be opened again.

    >>> from cranfield import evaluate
    >>> scores = evaluate({"q": {"a": 1, "c": 1}}, {"q": {"b": 2, "a": 1}}, "RR")
    >>> [seen] = closeups(scores, ["run"], 10)
    >>> seen.documents, seen.grades, seen.missed, seen.arithmetic["RR"].lines
    ([['b', 'a']], [[None, 1.0]], [1], ['0.5000 = 0.5000'])
    """
    if not runs or not all(map(scores.holds, runs)):
        return []
    evaluator = scores.opened(runs[0])[0]
    rows = _judged(evaluator)
    near = [_Near(evaluator, scores.opened(run)[1], scores, rows, depth) for run in runs]
    shown = [set().union(*lists) for lists in zip(*(each.documents for each in near), strict=True)]
    return [each.closeup(shown) for each in near]


def _judged(evaluator: Evaluator) -> dict[Key, int]:
    """The first row of each judged document."""
    rows: dict[Key, int] = {}
    for row, key in enumerate(zip(evaluator.qrels.topic.tolist(), evaluator.qrels.documents, strict=True)):
        rows.setdefault(key, row)
    return rows


class _Near:
    """One run before the judgments, with the top of each topic as rows of the judgments (-1: unjudged)."""

    def __init__(self, evaluator: Evaluator, run: Run, scores: Scores, rows: dict[Key, int], depth: int) -> None:
        self.evaluator, self.run, self.scores = evaluator, run, scores
        number = {topic: t for t, topic in enumerate(evaluator.qrels.topics)}
        self.topics = [number[topic] for topic in scores.topics]
        listed: dict[str, list[bytes]] = {topic: [] for topic in scores.topics}
        best = top(run, depth, evaluator.conventions.order)
        names = best.topics.text()
        for t, document in zip(best.topic.tolist(), best.documents, strict=True):
            if names[t] in listed:
                listed[names[t]].append(document)
        self.documents = list(listed.values())
        self.rows = [
            [rows.get((t, document), -1) for document in documents]
            for t, documents in zip(self.topics, self.documents, strict=True)
        ]

    def closeup(self, shown: Sequence[set[bytes]]) -> Closeup:
        """All of it; `shown` are the documents of each topic that any run has at its top."""
        of_row = self.evaluator.judgments.of_row
        grades = [[float(of_row[row]) if row >= 0 else None for row in rows] for rows in self.rows]
        below, missed = self._elsewhere(grades)
        measures = self.evaluator.measures
        known = {name: self._arithmetic(name, measures[name]) for name in self.scores.measures if name in measures}
        documents = [list(map(decode, documents)) for documents in self.documents]
        return Closeup(self.run.name, documents, grades, below, missed, self._deeper(shown), known)

    def _deeper(self, shown: Sequence[set[bytes]]) -> list[dict[str, int]]:
        """For each topic, the ranks of documents that another run shows and this one has further down."""
        deeper: dict[str, dict[str, int]] = {topic: {} for topic in self.scores.topics}
        lists = zip(self.scores.topics, shown, self.documents, strict=True)
        wanted = {topic: every.difference(listed) for topic, every, listed in lists}
        if any(wanted.values()):
            whole = top(self.run, None, self.evaluator.conventions.order)
            names = whole.topics.text()
            for t, rank, document in zip(whole.topic.tolist(), whole.rank.tolist(), whole.documents, strict=True):
                if document in wanted.get(names[t], ()):
                    deeper[names[t]][decode(document)] = rank
        return list(deeper.values())

    def _elsewhere(self, grades: list[list[float | None]]) -> tuple[list[int], list[int]]:
        """How many documents of a grade above 0 stand below what is shown, and how many nowhere."""
        hits, judgments = self.evaluator.hits(self.run), self.evaluator.judgments
        returned = np.bincount(hits.topic[hits.grade > 0], minlength=hits.size)[self.topics]
        there = judgments.count(judgments.grade > 0)[self.topics]
        shown = np.array([sum(grade is not None and grade > 0 for grade in of_topic) for of_topic in grades])
        return (returned - shown).tolist(), (there - returned).tolist()

    def _arithmetic(self, name: str, measure: Measure) -> Arithmetic:
        hits = self.evaluator.hits(self.run, measure)
        hits = hits.condensed() if measure.judged_only else hits
        with measure.within_doubles(hits.judgments):
            trace, (template, numbers) = measure.trace(hits), measure.worked(hits)
        place = np.full(len(self.evaluator.qrels), -1)
        place[hits.row] = np.arange(len(hits.row))
        columns = list(trace.values())
        steps = [[_step(columns, int(place[row])) if row >= 0 else None for row in rows] for rows in self.rows]
        lines = self._lines(hits, name, trace, template, numbers)
        return Arithmetic(list(trace), words_of(template), steps, lines)

    def _lines(
        self, hits: Hits, name: str, trace: dict[str, Floats], template: str, numbers: dict[str, Any]
    ) -> list[str]:
        """The last line of each topic; empty where there is none, or ties are averaged over their orders."""
        measure, values = self.evaluator.measures[name], self.scores.at(run=self.run.name, measure=name)
        tied = np.zeros(hits.size, bool)
        if self.evaluator.conventions_for(measure).ties == "averaged":
            tied[hits.topic[hits.tied_to > hits.tied_from]] = True
        given = np.nan_to_num(trace.get("contribution", np.zeros(len(hits.topic))))
        ends = np.r_[0, np.cumsum(np.bincount(hits.topic, minlength=hits.size))]
        lines = []
        for t, value in zip(self.topics, values.tolist(), strict=True):
            if tied[t] or value != value:
                lines.append("")
            elif template:
                lines.append(put_in(template, numbers, t, value))
            else:
                lines.append(added_up([part for part in given[ends[t] : ends[t + 1]].tolist() if part], value))
        return lines


def _step(columns: list[Floats], i: int) -> Step | None:
    """What the calculation does with one hit; None where there is no hit, or it plays no part."""
    values = tuple(float(column[i]) for column in columns) if i >= 0 else ()
    return values if any(value == value for value in values) else None
