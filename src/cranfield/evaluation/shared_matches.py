"""Runs scored by several parts of one set of judgments, with one reading of each run.

Finding the judged documents in a run takes most of the time. A part of the judgments has the same documents at the same
ranks, so its hits are those of the whole without the others, under the row numbers of the part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.base.kernels import HitRows, Index, Order
    from cranfield.base.kernels.table import Ints

    Judged = Mapping[str, Mapping[str, float]]


class MatchedRun(Run):
    """A run that remembers its hits in the first index that asks for them, for parts of the same judgments."""

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
        """The same run for a part of the judgments; those of the whole must have been evaluated before."""
        return _PartOfRun(self, part)


class _PartOfRun(Run):
    def __init__(self, run: MatchedRun, part: JudgmentPart) -> None:
        vars(self).update(vars(run))
        self._whole, self._part = run, part

    def hits(self, index: Index, order: Order, threads: int = 1) -> HitRows:
        return self._part.of(self._whole.hits(index, order, threads))


@dataclass(frozen=True, eq=False)
class JudgmentPart:
    """The rows of a part of the judgments: `row` and `topic` by those of the whole, -1 for others; `topics` of the whole."""

    row: Ints
    topic: Ints
    topics: Ints
    others: list[tuple[int, str]]  # the other topics of the whole

    @classmethod
    def each_of(cls, parts: list[Judged], whole: Judged) -> list[JudgmentPart]:
        """The rows of each part; rows are numbered in the order of the mappings, as in `Qrels`."""
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
        kept = np.flatnonzero(row >= 0)
        topic = self.topic[match.topic[kept]]
        if (np.diff(topic) < 0).any():  # within a topic they are by rank already
            order = np.argsort(topic, kind="stable")
            kept, topic = kept[order], topic[order]
        single = match.single[self.row[match.single[:, 1]] >= 0]
        single[:, 0], single[:, 1] = self.topic[single[:, 0]], self.row[single[:, 1]]
        return replace(
            match,
            topic=topic.astype(match.topic.dtype),
            row=row[kept].astype(match.row.dtype),
            rank=match.rank[kept],
            first=match.first[kept],
            last=match.last[kept],
            retrieved=match.retrieved[self.topics],
            others=[*match.others, *(name for code, name in self.others if match.retrieved[code])],
            single=single,
        )
