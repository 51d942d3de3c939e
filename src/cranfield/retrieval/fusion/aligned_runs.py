"""Several runs aligned by topic and document: the input of every fusion method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import DataError, DuplicateError
from cranfield.base.kernels import RowTable, Strings, decode, encode
from cranfield.base.top_k import Tops, ranked, tops

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats, Ints, Offsets
    from cranfield.base.qrels import Qrels
    from cranfield.base.run import Run


@dataclass(frozen=True)
class Votes:
    """The contributions of runs to entries (a document of a topic), as numbers: one row per run and entry."""

    run: Ints
    entry: Ints
    value: Floats
    count: int  # the number of entries

    @cached_property
    def holders(self) -> Offsets:
        """The number of runs that contribute to each entry."""
        return np.bincount(self.entry, minlength=self.count)

    def total(self) -> Floats:
        """The sum over the runs for each entry, added from small to large, so that the order of runs does not matter."""
        entry, value = self.entry, self.value
        many = np.flatnonzero(self.holders[entry] > 2)
        if len(many):
            sorted_ = many[np.lexsort((value[many], entry[many]))]
            few = np.flatnonzero(self.holders[entry] <= 2)
            entry, value = np.r_[entry[few], entry[sorted_]], np.r_[value[few], value[sorted_]]
        return np.bincount(entry, value, self.count).astype(np.float64, copy=False)

    def fold(self, reduce: np.ufunc) -> Floats:
        """For each entry, the highest (np.maximum) or lowest value among the runs."""
        first = np.cumsum(self.holders) - self.holders
        return reduce.reduceat(self.value[np.argsort(self.entry, kind="stable")], first)

    def median(self) -> Floats:
        """The median over the runs for each entry."""
        value = self.value[np.lexsort((self.value, self.entry))]
        first = np.cumsum(self.holders) - self.holders
        middle: Floats = (value[first + (self.holders - 1) // 2] + value[first + self.holders // 2]) / 2
        return middle


@dataclass(frozen=True, eq=False)
class AlignedRuns(Tops):
    """The rows of all runs by topic, run and rank, so that a list is one block of rows; and their entries."""

    @cached_property
    def starts(self) -> Offsets:
        """The first row of each list: one run's answer to one topic."""
        change = (self.run[1:] != self.run[:-1]) | (self.topic[1:] != self.topic[:-1])
        return np.flatnonzero(np.r_[True, change][: len(self.run)])

    @cached_property
    def sizes(self) -> Offsets:
        """The number of rows of each list."""
        return np.asarray(np.diff(self.starts, append=len(self.run)), np.int64)

    @property
    def size(self) -> Offsets:
        """The length of the list of each row."""
        return np.repeat(self.sizes, self.sizes)

    @cached_property
    def candidates(self) -> Offsets:
        """The number of entries of each topic: the documents that all runs together returned."""
        return np.bincount(self.home, minlength=len(self.topics))

    def each(self, reduce: np.ufunc, values: Floats) -> Floats:
        """For each row, `reduce` (np.maximum, np.add …) over its whole list."""
        if not len(self.starts):
            return values
        return np.repeat(reduce.reduceat(values, self.starts), self.sizes)

    def votes(self, values: Floats) -> Votes:
        """The contribution of each row's run to its entry: one number per row."""
        return Votes(self.run, self.entry, values, len(self.home))

    def votes_of_all(self, values: Floats, missing: Floats) -> Votes:
        """One contribution of each list to every entry of its topic; entries that the list lacks get its `missing`."""
        topic = self.topic[self.starts]
        counts = self.candidates[topic]
        ends = np.cumsum(counts)
        opening = np.cumsum(self.candidates) - self.candidates  # the first entry of each topic
        shift = opening[topic] - (ends - counts)
        entry = (np.repeat(shift, counts) + np.arange(len(counts) and ends[-1])).astype(np.int32)
        value = np.repeat(missing, counts)
        value[self.entry - np.repeat(shift, self.sizes)] = values
        return Votes(np.repeat(self.run[self.starts], counts), entry, value, len(self.home))

    def refuse_infinite(self, what: str) -> None:
        """Raise DataError for a score that cannot be added or scaled."""
        odd = np.flatnonzero(~np.isfinite(self.score))
        if len(odd):
            row = int(odd[0])
            raise DataError(
                f"{self.place(row)}: {what} needs finite scores, found {self.score[row]:g}; a method that reads ranks "
                "(RRF, Borda, …) does not"
            )

    def place(self, row: int) -> str:
        """The run and topic of a row, for messages."""
        return f"{self.names[self.run[row]]}, topic {decode(self.topics[int(self.topic[row])])!r}"

    def of_topics(self, mask: npt.NDArray[np.bool_]) -> AlignedRuns:
        """The same with only some of the topics, which keep their numbers."""
        rows = np.flatnonzero(mask[self.topic])
        entries = np.flatnonzero(mask[self.home])
        renumbered = np.cumsum(mask[self.home], dtype=np.int32) - 1
        return replace(
            self,
            run=self.run[rows],
            topic=self.topic[rows],
            entry=renumbered[self.entry[rows]],
            rank=self.rank[rows],
            score=self.score[rows],
            documents=self.documents.take(entries),
            home=self.home[entries],
        )

    def topics_of(self, qrels: Qrels) -> Offsets:
        """The topic number of each row of the judgments; -1 if no run answers the topic."""
        numbers = {name: i for i, name in enumerate(self.topics)}
        return np.array([numbers.get(name, -1) for name in qrels.table.topics], np.int64)[qrels.topic]

    def grades(self, qrels: Qrels, rel: float) -> npt.NDArray[np.bool_]:
        """Whether the judgments call each entry relevant."""
        rows = zip(self.topics_of(qrels).tolist(), qrels.documents, qrels.grade.tolist(), strict=True)
        relevant = {(topic, document) for topic, document, grade in rows if grade >= rel}
        entries = zip(self.home.tolist(), self.documents, strict=True)
        return np.fromiter((entry in relevant for entry in entries), bool, len(self.home))

    def fused(self, value: Floats, name: str, depth: int | None = None) -> RowTable:
        """The entries with their new scores as the rows of a run, at most `depth` per topic; `name` is their tag."""
        labels, label = Strings.of([encode(name)]), np.zeros(len(value), np.int32)
        whole = RowTable(self.topics, self.home, self.documents, value, labels, label, np.zeros(0, np.int64))
        if depth is None or not len(value) or int(self.candidates.max()) <= depth:
            return whole
        rows = np.sort(ranked(whole, depth)[0])
        documents = self.documents.take(rows)
        return replace(whole, topic=self.home[rows], documents=documents, value=value[rows], label=label[rows])


def lists_of(runs: Sequence[Run]) -> AlignedRuns:
    """Align runs by topic and document. Ranks follow the runs' own order: by score, ties by document id descending."""
    try:
        return AlignedRuns(**vars(tops(runs)))
    except DuplicateError as error:  # it is not known which of the two should count
        raise DuplicateError(error.where, error.line, error.problem) from None
