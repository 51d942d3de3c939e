"""The top-k lists of runs, topic by topic: the documents, their grades, and what each adds to the scores.

This is `explain` for all topics of a run at once: the measure's own columns (`Measure.trace`) and the last line of its
formula, computed over the whole run in one call each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.kernels import decode
from cranfield.base.top_k import top
from cranfield.evaluation.explanation import fill_template, sum_in_words, template_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.base.run import Run
    from cranfield.evaluation.evaluate import Evaluator
    from cranfield.evaluation.hits import Hits
    from cranfield.evaluation.measures import Measure
    from cranfield.evaluation.scores import Scores

    Key = tuple[int, bytes]  # a topic's number in the judgments, and a document
    RankColumns = tuple[float, ...]


@dataclass(frozen=True)
class Arithmetic:
    """How one measure computed a run's scores: for each topic the columns of each rank, and the last line with numbers."""

    columns: list[str]
    words: str  # the last line in words, if the measure has one
    steps: list[list[RankColumns | None]]  # None: the document does not count
    lines: list[str]


@dataclass(frozen=True)
class RunTopics:
    """The top-k list of one run for each topic."""

    run: str
    documents: list[list[str]]
    grades: list[list[float | None]]  # None: unjudged
    below: list[int]  # number of documents of a grade above 0 that were returned below the depth
    missed: list[int]  # number of documents of a grade above 0 that were not returned
    deeper: list[dict[str, int]] = field(default_factory=list)  # ranks of documents that another run has in its top k
    arithmetic: dict[str, Arithmetic] = field(default_factory=dict)  # by measure


def topic_views(scores: Scores, runs: Sequence[str], depth: int) -> list[RunTopics]:
    """The top-k lists of some runs; an empty list if one of the runs cannot be opened again.

    >>> from cranfield import evaluate
    >>> scores = evaluate({"q": {"a": 1, "c": 1}}, {"q": {"b": 2, "a": 1}}, "RR")
    >>> [view] = topic_views(scores, ["run"], 10)
    >>> view.documents, view.grades, view.missed, view.arithmetic["RR"].lines
    ([['b', 'a']], [[None, 1.0]], [1], ['0.5000 = 0.5000'])
    """
    if not runs or not all(map(scores.can_reopen, runs)):
        return []
    evaluator = scores.reopen(runs[0])[0]
    rows = _judged(evaluator)
    near = [_RunTop(evaluator, scores.reopen(run)[1], scores, rows, depth) for run in runs]
    visible = [set().union(*lists) for lists in zip(*(each.documents for each in near), strict=True)]
    return [each.view(visible) for each in near]


def _judged(evaluator: Evaluator) -> dict[Key, int]:
    """The first row of each judged document."""
    rows: dict[Key, int] = {}
    for row, key in enumerate(zip(evaluator.qrels.topic.tolist(), evaluator.qrels.documents, strict=True)):
        rows.setdefault(key, row)
    return rows


class _RunTop:
    """One run with its top k documents per topic, as rows of the judgments (-1: unjudged)."""

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
        lists = zip(self.topics, self.documents, strict=True)
        self.rows = [[rows.get((t, document), -1) for document in documents] for t, documents in lists]

    def view(self, visible: Sequence[set[bytes]]) -> RunTopics:
        """The view of this run; `visible` holds for each topic the documents that any run has in its top k."""
        of_row = self.evaluator.judgments.of_row
        grades = [[float(of_row[row]) if row >= 0 else None for row in rows] for rows in self.rows]
        below, missed = self._elsewhere(grades)
        measures = self.evaluator.measures
        arithmetic = {name: self._arithmetic(name, measures[name]) for name in self.scores.measures if name in measures}
        documents = [list(map(decode, documents)) for documents in self.documents]
        return RunTopics(self.run.name, documents, grades, below, missed, self._deeper(visible), arithmetic)

    def _deeper(self, visible: Sequence[set[bytes]]) -> list[dict[str, int]]:
        """For each topic, the ranks of documents that another run shows and this run returned further down."""
        deeper: dict[str, dict[str, int]] = {topic: {} for topic in self.scores.topics}
        lists = zip(self.scores.topics, visible, self.documents, strict=True)
        missing = {topic: every.difference(listed) for topic, every, listed in lists}
        if any(missing.values()):
            whole = top(self.run, None, self.evaluator.conventions.order)
            names = whole.topics.text()
            for t, rank, document in zip(whole.topic.tolist(), whole.rank.tolist(), whole.documents, strict=True):
                if document in missing.get(names[t], ()):
                    deeper[names[t]][decode(document)] = rank
        return list(deeper.values())

    def _elsewhere(self, grades: list[list[float | None]]) -> tuple[list[int], list[int]]:
        """For each topic, how many documents of a grade above 0 are below the depth, and how many are missing."""
        hits, judgments = self.evaluator.hits(self.run), self.evaluator.judgments
        returned = np.bincount(hits.topic[hits.grade > 0], minlength=hits.size)[self.topics]
        there = judgments.count(judgments.grade > 0)[self.topics]
        visible = np.array([sum(grade is not None and grade > 0 for grade in of_topic) for of_topic in grades])
        return (returned - visible).tolist(), (there - returned).tolist()

    def _arithmetic(self, name: str, measure: Measure) -> Arithmetic:
        hits = self.evaluator.hits(self.run, measure)
        hits = hits.condensed() if measure.judged_only else hits
        with measure.within_doubles(hits.judgments):
            trace, (template, numbers) = measure.trace(hits), measure.worked(hits)
        place = np.full(len(self.evaluator.qrels), -1)
        place[hits.row] = np.arange(len(hits.row))
        columns = list(trace.values())
        steps = [[_rank_columns(columns, int(place[row])) if row >= 0 else None for row in rows] for rows in self.rows]
        lines = self._lines(hits, name, trace, template, numbers)
        return Arithmetic(list(trace), template_words(template), steps, lines)

    def _lines(
        self, hits: Hits, name: str, trace: dict[str, Floats], template: str, numbers: dict[str, Any]
    ) -> list[str]:
        """The last line of the calculation for each topic; empty if there is none or ties are averaged."""
        measure, values = self.evaluator.measures[name], self.scores.at(run=self.run.name, measure=name)
        tied = np.zeros(hits.size, bool)
        if self.evaluator.conventions_for(measure).ties == "averaged":
            tied[hits.topic[hits.tied_to > hits.tied_from]] = True
        contributions = np.nan_to_num(trace.get("contribution", np.zeros(len(hits.topic))))
        ends = np.r_[0, np.cumsum(np.bincount(hits.topic, minlength=hits.size))]
        lines = []
        for t, value in zip(self.topics, values.tolist(), strict=True):
            if tied[t] or value != value:
                lines.append("")
            elif template:
                lines.append(fill_template(template, numbers, t, value))
            else:
                parts = contributions[ends[t] : ends[t + 1]].tolist()
                lines.append(sum_in_words([part for part in parts if part], value))
        return lines


def _rank_columns(columns: list[Floats], i: int) -> RankColumns | None:
    """The measure's columns for one hit; None if there is no hit or it does not count."""
    values = tuple(float(column[i]) for column in columns) if i >= 0 else ()
    return values if any(value == value for value in values) else None
