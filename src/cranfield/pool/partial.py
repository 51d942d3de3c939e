"""Runs scored again and again under parts of the same judgments, without reading a run twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.evaluate import Evaluator
from cranfield.hits import Judgments, join

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from cranfield.collection import Qrels
    from cranfield.conventions import Conventions
    from cranfield.kernels import Found
    from cranfield.kernels.table import Floats
    from cranfield.measures import Measure
    from cranfield.run import Run


class Partial:
    """Runs seen through judgments once, and scored as if only some of the judgments had been made."""

    def __init__(
        self, qrels: Any, runs: Iterable[Run], measures: str | Iterable[str | Measure], **options: Any
    ) -> None:
        self.evaluator = Evaluator(qrels, measures, **options)
        self.qrels = self.evaluator.qrels
        self.runs: list[str] = []
        self.opened: list[Run] = []
        self.joined: list[Found] = []
        self.apart: list[dict[Conventions, Found]] = []  # for measures under conventions of their own
        usual = self.evaluator.conventions
        own = map(self.evaluator.conventions_for, self.measures.values())
        self.rules = list(dict.fromkeys([usual, *own]))
        for run in runs:
            ordered = usual.ordered(run)
            self.runs.append(run.name)
            self.opened.append(ordered)
            self.joined.append(self._found(ordered, usual))
            self.apart.append({rule: self._found(ordered, rule) for rule in self.rules[1:]})
        self.evaluator.warn_of(*self.opened)

    def _found(self, run: Run, rule: Conventions) -> Found:
        return run.hits(self.qrels.index, rule.order, self.evaluator.threads)

    @property
    def measures(self) -> dict[str, Measure]:
        """The measures, by name."""
        return self.evaluator.measures

    @property
    def upwards(self) -> Floats:
        """One a measure: 1 where higher is better, -1 where lower is."""
        return np.array([-1.0 if measure.lower_is_better else 1.0 for measure in self.measures.values()])

    def values(self, kept: npt.NDArray[np.bool_] | None = None) -> Floats:
        """Runs × measures × topics, under the judgments that `kept` marks (one a row of the qrels), or all."""
        whole = self.evaluator.judgments
        answer = np.empty((len(self.runs), len(self.measures), whole.size))
        seen = {rule: whole.under(rule.negative) for rule in self.rules}
        judgments = seen if kept is None else {rule: _part(each, kept) for rule, each in seen.items()}
        for r, apart in enumerate(self.apart):
            found = {self.rules[0]: self.joined[r], **apart}
            hits = {rule: join(here, judgments[rule], rule) for rule, here in found.items()}
            for m, measure in enumerate(self.measures.values()):
                answer[r, m] = self.evaluator.values_of(measure, hits[self.evaluator.conventions_for(measure)])
        return answer

    def means(self, kept: npt.NDArray[np.bool_] | None = None) -> Floats:
        """Runs × measures: the means over topics; undefined values are left out."""
        values = self.values(kept)
        answer = np.full(values.shape[:2], np.nan)
        for m, measure in enumerate(self.measures.values()):
            for r, row in enumerate(values[:, m]):
                known = row[~np.isnan(row)]
                if len(known):
                    answer[r, m] = measure.summarise(known)
        return answer


def _part(judgments: Judgments, kept: npt.NDArray[np.bool_]) -> Judgments:
    """The judgments that are kept; the others are as if nobody had looked."""
    mine = kept[judgments.row]
    part = judgments.only(judgments.row[mine], judgments.topic[mine], judgments.grade[mine])
    part.of_row = np.where(kept, judgments.of_row, -1.0)
    return part


def rows_of(qrels: Qrels) -> dict[str, dict[str, int]]:
    """The row of each judged document, topic by topic; the first of those that were judged under several labels."""
    topics = qrels.topics
    rows: dict[str, dict[str, int]] = {topic: {} for topic in topics}
    for row, (topic, document) in enumerate(zip(qrels.topic.tolist(), qrels.documents.text(), strict=True)):
        rows[topics[topic]].setdefault(document, row)
    return rows
