"""Scores of runs under parts of the same judgments; each run is read only once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.evaluation.evaluate import Evaluator
from cranfield.evaluation.hits import Judgments, join

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats
    from cranfield.base.qrels import Qrels
    from cranfield.base.run import Run
    from cranfield.evaluation.measures import Measure


class Partial:
    """Runs joined with judgments once, and scored as if only some of the judgments existed."""

    def __init__(
        self, qrels: Any, runs: Iterable[Run], measures: str | Iterable[str | Measure], **options: Any
    ) -> None:
        self.evaluator = Evaluator(qrels, measures, **options)
        self.qrels = self.evaluator.qrels
        usual = self.evaluator.conventions
        own = map(self.evaluator.conventions_for, self.measures.values())  # some measures have their own conventions
        self.rules = list(dict.fromkeys([usual, *own]))
        index, threads = self.qrels.index, self.evaluator.threads
        self.opened = list(map(usual.ordered, runs))
        self.runs = [run.name for run in self.opened]
        self.hits = [{rule: run.hits(index, rule.order, threads) for rule in self.rules} for run in self.opened]
        self.evaluator.warn_of(*self.opened)

    @property
    def measures(self) -> dict[str, Measure]:
        """The measures, by name."""
        return self.evaluator.measures

    @property
    def upwards(self) -> Floats:
        """One number per measure: 1 if higher is better, -1 if lower is."""
        return np.array([-1.0 if measure.lower_is_better else 1.0 for measure in self.measures.values()])

    def values(self, rows: npt.NDArray[np.bool_] | None = None) -> Floats:
        """Runs × measures × topics under the judgments that `rows` marks (one flag per row of the qrels), or under all."""
        whole = self.evaluator.judgments
        answer = np.empty((len(self.runs), len(self.measures), whole.size))
        whole_under = {rule: whole.under(rule.negative) for rule in self.rules}
        judgments = whole_under if rows is None else {rule: _part(each, rows) for rule, each in whole_under.items()}
        for r, by_rule in enumerate(self.hits):
            hits = {rule: join(here, judgments[rule], rule) for rule, here in by_rule.items()}
            for m, measure in enumerate(self.measures.values()):
                answer[r, m] = self.evaluator.values_of(measure, hits[self.evaluator.conventions_for(measure)])
        return answer

    def means(self, rows: npt.NDArray[np.bool_] | None = None) -> Floats:
        """Runs × measures: the mean over the topics for which the measure is defined."""
        values = self.values(rows)
        answer = np.full(values.shape[:2], np.nan)
        for m, measure in enumerate(self.measures.values()):
            for r, row in enumerate(values[:, m]):
                defined = row[~np.isnan(row)]
                if len(defined):
                    answer[r, m] = measure.summarise(defined)
        return answer


def _part(judgments: Judgments, rows: npt.NDArray[np.bool_]) -> Judgments:
    """Only the judgments that `rows` marks; all other documents count as unjudged."""
    mine = rows[judgments.row]
    part = judgments.only(judgments.row[mine], judgments.topic[mine], judgments.grade[mine])
    part.of_row = np.where(rows, judgments.of_row, -1.0)
    return part


def rows_of(qrels: Qrels) -> dict[str, dict[str, int]]:
    """The qrels row of each judged document by topic; the first row if it is judged under several labels."""
    topics = qrels.topics
    rows: dict[str, dict[str, int]] = {topic: {} for topic in topics}
    for row, (topic, document) in enumerate(zip(qrels.topic.tolist(), qrels.documents.text(), strict=True)):
        rows[topics[topic]].setdefault(document, row)
    return rows
