"""Runs scored by parts of one set of judgments; each run is read only once.

`Partial` scores as if only some of the judgments existed. `MatchedRun` is a run that several people's judgments score.
Finding the judged documents in a run takes most of the time. A part of the judgments has the same documents at the same
ranks, so its hits are those of the whole without the others, under the row numbers of the part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.run import Run
from cranfield.evaluation.evaluate import Evaluator
from cranfield.evaluation.hits import Judgments, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from cranfield.base.kernels import HitRows, Index, Order
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.base.qrels import Qrels
    from cranfield.evaluation.measures import Measure

    Judged = Mapping[str, Mapping[str, float]]


class MatchedRun(Run):
    """A run that stores its hits in the index of all judgments, so that parts of these judgments can reuse them."""

    def __init__(self, run: Run) -> None:
        vars(self).update(vars(run))
        self._index: Index | None = None
        self._matches: dict[Order, HitRows] = {}

    def hits(self, index: Index, order: Order, threads: int = 1) -> HitRows:
        if self._index is None:
            self._index = index
        match = self._matches.get(order)
        if match is None:
            match = self._matches[order] = super().hits(self._index, order, threads)
        return match

    def within(self, part: JudgmentPart) -> Run:
        """The same run for a part of the judgments; evaluate the run by all judgments first."""
        return _PartOfRun(self, part)


class _PartOfRun(Run):
    def __init__(self, run: MatchedRun, part: JudgmentPart) -> None:
        vars(self).update(vars(run))
        self._whole, self._part = run, part

    def hits(self, index: Index, order: Order, threads: int = 1) -> HitRows:
        return self._part.of(self._whole.hits(index, order, threads))


@dataclass(frozen=True, eq=False)
class JudgmentPart:
    """Row numbers of a part of the judgments: `row` and `topic` map numbers of the whole to the part (-1: not in it)."""

    row: Ints
    topic: Ints
    topics: Ints  # of the part, as numbers of the whole
    others: list[tuple[int, str]]  # the other topics of the whole

    @classmethod
    def each_of(cls, parts: list[Judged], whole: Judged) -> list[JudgmentPart]:
        """One `JudgmentPart` per part of `whole`; `Qrels` numbers rows in the same way, in the order of the mappings."""
        starts = np.cumsum([0, *map(len, whole.values())]).tolist()
        number = {topic: code for code, topic in enumerate(whole)}
        places = {
            topic: dict(zip(own, range(start, start + len(own)), strict=True))
            for (topic, own), start in zip(whole.items(), starts, strict=False)
        }
        answer = []
        for part in parts:
            rows = [places[topic][document] for topic, own in part.items() for document in own]
            row = np.full(starts[-1], -1, np.int32)
            row[rows] = np.arange(len(rows), dtype=np.int32)
            topics = np.array([number[topic] for topic in part], np.int32)
            topic = np.full(len(number), -1, np.int32)
            topic[topics] = np.arange(len(topics), dtype=np.int32)
            answer.append(cls(row, topic, topics, [(code, name) for name, code in number.items() if name not in part]))
        return answer

    def of(self, match: HitRows) -> HitRows:
        """The hits of the part among those of the whole."""
        row = self.row[match.row]
        positions = np.flatnonzero(row >= 0)
        topic = self.topic[match.topic[positions]]
        if (np.diff(topic) < 0).any():  # within a topic they are by rank already
            order = np.argsort(topic, kind="stable")
            positions, topic = positions[order], topic[order]
        single = match.single[self.row[match.single[:, 1]] >= 0]
        single[:, 0], single[:, 1] = self.topic[single[:, 0]], self.row[single[:, 1]]
        return replace(
            match,
            topic=topic.astype(match.topic.dtype),
            row=row[positions].astype(match.row.dtype),
            rank=match.rank[positions],
            first=match.first[positions],
            last=match.last[positions],
            retrieved=match.retrieved[self.topics],
            others=[*match.others, *(name for code, name in self.others if match.retrieved[code])],
            single=single,
        )


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
