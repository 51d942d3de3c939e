"""Several runs laid side by side, and what each says of each document: all that a fusion reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cranfield.errors import DataError, DuplicateError
from cranfield.kernels import Strings, Table, decode, encode
from cranfield.tops import Tops, ranked, tops

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from cranfield.collection import Qrels
    from cranfield.kernels.table import Floats, Ints, Offsets
    from cranfield.run import Run


@dataclass(frozen=True)
class Votes:
    """What each run says of each entry, as numbers that can be put together: one row a run and entry."""

    run: Ints
    entry: Ints
    value: Floats
    count: int  # entries

    @cached_property
    def holders(self) -> Offsets:
        """How many runs say something of each entry."""
        return np.bincount(self.entry, minlength=self.count)

    def total(self) -> Floats:
        """For each entry, the sum over the runs: from small to large, so that their order cannot change its last digit."""
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
        """For each entry, the middle value, or the mean of the two in the middle."""
        value = self.value[np.lexsort((self.value, self.entry))]
        first = np.cumsum(self.holders) - self.holders
        middle: Floats = (value[first + (self.holders - 1) // 2] + value[first + self.holders // 2]) / 2
        return middle


@dataclass(frozen=True, eq=False)
class Lists(Tops):
    """The rows of all runs, by topic, run and rank, so that a list is one stretch of them; and their entries."""

    @cached_property
    def starts(self) -> Offsets:
        """The first row of each list: one run's answer to one topic."""
        change = (self.run[1:] != self.run[:-1]) | (self.topic[1:] != self.topic[:-1])
        return np.flatnonzero(np.r_[True, change][: len(self.run)])

    @cached_property
    def sizes(self) -> Offsets:
        """How many rows each list has."""
        sizes: Offsets = np.diff(np.r_[self.starts, len(self.run)])
        return sizes

    @property
    def size(self) -> Offsets:
        """For each row, how long its list is."""
        return np.repeat(self.sizes, self.sizes)

    @cached_property
    def candidates(self) -> Offsets:
        """How many entries each topic has: what all runs together returned for it."""
        return np.bincount(self.home, minlength=len(self.topics))

    def each(self, reduce: np.ufunc, values: Floats) -> Floats:
        """For each row, what `reduce` makes of its whole list: np.maximum, np.add …"""
        if not len(self.starts):
            return values
        return np.repeat(reduce.reduceat(values, self.starts), self.sizes)

    def votes(self, values: Floats) -> Votes:
        """A number for each row as what its run says of its entry."""
        return Votes(self.run, self.entry, values, len(self.home))

    def votes_of_all(self, values: Floats, missing: Floats) -> Votes:
        """The same where a list speaks of all its topic's entries: of those that it lacks, what `missing` holds for it."""
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
        """Stop at a score that cannot be added or scaled."""
        odd = np.flatnonzero(~np.isfinite(self.score))
        if len(odd):
            row = int(odd[0])
            raise DataError(
                f"{self.place(row)}: {what} needs finite scores, found {self.score[row]:g}; a method that reads ranks "
                "(RRF, Borda, …) does not"
            )

    def place(self, row: int) -> str:
        """Where a row stands, for messages."""
        return f"{self.names[self.run[row]]}, topic {decode(self.topics[int(self.topic[row])])!r}"

    def of_topics(self, wanted: npt.NDArray[np.bool_]) -> Lists:
        """The same with only some of the topics; they keep their numbers."""
        rows = np.flatnonzero(wanted[self.topic])
        entries = np.flatnonzero(wanted[self.home])
        renumbered = np.cumsum(wanted[self.home], dtype=np.int32) - 1
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
        """For each row of the judgments the number of its topic here; -1 where no run answers it."""
        numbers = {name: i for i, name in enumerate(self.topics)}
        return np.array([numbers.get(name, -1) for name in qrels.table.topics], np.int64)[qrels.topic]

    def grades(self, qrels: Qrels, rel: float) -> npt.NDArray[np.bool_]:
        """For each entry, whether the judgments call it relevant."""
        rows = zip(self.topics_of(qrels).tolist(), qrels.documents, qrels.grade.tolist(), strict=True)
        relevant = {(topic, document) for topic, document, grade in rows if grade >= rel}
        entries = zip(self.home.tolist(), self.documents, strict=True)
        return np.fromiter((entry in relevant for entry in entries), bool, len(self.home))

    def fused(self, value: Floats, name: str, depth: int | None = None) -> Table:
        """The entries with their new scores as the rows of a run, the best `depth` of each topic; `name` is their tag."""
        labels, label = Strings.of([encode(name)]), np.zeros(len(value), np.int32)
        whole = Table(self.topics, self.home, self.documents, value, labels, label, np.zeros(0, np.int64))
        if depth is None or not len(value) or int(self.candidates.max()) <= depth:
            return whole
        kept = np.sort(ranked(whole, depth)[0])
        documents = self.documents.take(kept)
        return replace(whole, topic=self.home[kept], documents=documents, value=value[kept], label=label[kept])


def lists_of(runs: Sequence[Run]) -> Lists:
    """Join runs on topic and document. Ranks follow the runs' own order: by score, ties by document id descending."""
    try:
        return Lists(**vars(tops(runs)))
    except DuplicateError as error:  # nothing here says which of the two would count
        raise DuplicateError(error.where, error.line, error.problem) from None
