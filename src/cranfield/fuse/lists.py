"""Several runs laid side by side: which document stands where in which list.

All fusion reads this and nothing else. A row is one line of one run; an entry is one document of one topic, however
many runs returned it. Rows stand by topic, then run, then rank, so that a list is one stretch of rows, and ids stay
bytes in one block: joining half a million lines makes no Python strings.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import DataError, DuplicateError
from cranfield.formats.format import ranked
from cranfield.kernels import Index, Strings, Table, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from cranfield.collection import Qrels
    from cranfield.kernels.table import Floats, Ints
    from cranfield.run import Run


@dataclass(frozen=True)
class Votes:
    """What each run says of each entry, as numbers that can be put together: one row a run and entry."""

    run: Ints
    entry: Ints
    value: Floats
    count: int  # entries

    @cached_property
    def holders(self) -> npt.NDArray[np.int64]:
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
        found: Floats = reduce.reduceat(self.value[np.argsort(self.entry, kind="stable")], first)
        return found

    def median(self) -> Floats:
        """For each entry, the middle value, or the mean of the two in the middle."""
        value = self.value[np.lexsort((self.value, self.entry))]
        first = np.cumsum(self.holders) - self.holders
        found: Floats = (value[first + (self.holders - 1) // 2] + value[first + self.holders // 2]) / 2
        return found


@dataclass(frozen=True)
class Lists:
    """The rows of all runs (`run`, `topic`, `entry`, `rank`, `score`) and the entries they name (`documents`, `home`)."""

    names: tuple[str, ...]  # the runs'
    topics: Strings
    run: Ints
    topic: Ints
    entry: Ints
    rank: Ints
    score: Floats
    documents: Strings  # of each entry
    home: Ints  # the topic of each entry

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """The first row of each list: one run's answer to one topic."""
        change = (self.run[1:] != self.run[:-1]) | (self.topic[1:] != self.topic[:-1])
        return np.flatnonzero(np.r_[True, change][: len(self.run)])

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """How many rows each list has."""
        found: npt.NDArray[np.int64] = np.diff(np.r_[self.starts, len(self.run)])
        return found

    @property
    def size(self) -> npt.NDArray[np.int64]:
        """For each row, how long its list is."""
        found: npt.NDArray[np.int64] = np.repeat(self.sizes, self.sizes)
        return found

    @cached_property
    def candidates(self) -> npt.NDArray[np.int64]:
        """How many entries each topic has: what all runs together returned for it."""
        found: npt.NDArray[np.int64] = np.bincount(self.home, minlength=len(self.topics))
        return found

    def each(self, reduce: np.ufunc, values: Floats) -> Floats:
        """For each row, what `reduce` makes of its whole list: np.maximum, np.add …"""
        if not len(self.starts):
            return values
        found: Floats = np.repeat(reduce.reduceat(values, self.starts), self.sizes)
        return found

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
        return Lists(
            self.names,
            self.topics,
            self.run[rows],
            self.topic[rows],
            renumbered[self.entry[rows]].astype(np.int32),
            self.rank[rows],
            self.score[rows],
            gathered(self.documents, entries),
            self.home[entries],
        )

    def grades(self, qrels: Qrels, rel: float) -> npt.NDArray[np.bool_]:
        """For each entry, whether the judgments call it relevant."""
        numbers = {name: i for i, name in enumerate(self.topics)}
        known = np.array([numbers.get(name, -1) for name in qrels.table.topics], np.int64)
        keys = {
            (int(known[t]), document)
            for t, document, grade in zip(qrels.topic.tolist(), qrels.documents, qrels.grade.tolist(), strict=True)
            if grade >= rel and known[t] >= 0
        }
        return np.fromiter(
            (pair in keys for pair in zip(self.home.tolist(), self.documents, strict=True)), bool, len(self.home)
        )

    def fused(self, value: Floats, name: str, depth: int | None = None) -> Table:
        """The entries with their new scores as the rows of a run, the best `depth` of each topic; `name` is their tag."""
        everything = Table(
            self.topics,
            self.home,
            self.documents,
            value,
            Strings.of([name.encode()]),
            np.zeros(len(value), np.int32),
            np.zeros(0, np.int64),
        )
        if depth is None or not len(value) or int(self.candidates.max()) <= depth:
            return everything
        order, rank = ranked(everything)
        kept = np.sort(order[rank <= depth])
        return Table(
            self.topics,
            self.home[kept],
            gathered(self.documents, kept),
            value[kept],
            everything.labels,
            everything.label[kept],
            everything.start,
        )


def lists_of(runs: Sequence[Run]) -> Lists:
    """Join runs on topic and document. Ranks follow the runs' own order: by score, ties by document id descending."""
    topics, numbers = _topics(runs)
    parts = [_rows(run.table, number) for run, number in zip(runs, numbers, strict=True)]
    run = np.repeat(np.arange(len(runs), dtype=np.int32), [len(part[0]) for part in parts])
    topic, rank, score = (np.concatenate([part[i] for part in parts]) for i in range(3))
    documents = _joined([part[3] for part in parts])
    order = np.argsort(topic, kind="stable")
    if (np.diff(order) != 1).any():
        run, topic, rank, score, documents = (
            run[order],
            topic[order],
            rank[order],
            score[order],
            gathered(documents, order),
        )
    first = Index(topics, topic, documents).first
    new = first == np.arange(len(first))
    entry = (np.cumsum(new, dtype=np.int32) - 1)[first].astype(np.int32) if len(first) else first
    entries = np.flatnonzero(new)
    found = Lists(
        tuple(one.name for one in runs),
        topics,
        run,
        topic,
        entry,
        rank,
        score,
        gathered(documents, entries),
        topic[entries],
    )
    _refuse_twice(found)
    return found


def _topics(runs: Iterable[Run]) -> tuple[Strings, list[Ints]]:
    """All topics in the order of their first run, and each run's topics by their numbers there."""
    numbers: dict[bytes, int] = {}
    known = [np.array([numbers.setdefault(name, len(numbers)) for name in run.table.topics], np.int32) for run in runs]
    return Strings.of(numbers), known


def _rows(table: Table, number: Ints) -> tuple[Ints, Ints, Floats, Strings]:
    order, rank = ranked(table)
    documents = table.documents if (np.diff(order) == 1).all() else gathered(table.documents, order)
    topic = number[table.topic[order]] if len(order) else np.zeros(0, np.int32)
    return topic, rank, table.value[order], documents


def _joined(columns: Sequence[Strings]) -> Strings:
    if len(columns) == 1:
        return columns[0]
    ends = np.cumsum([0, *(int(column.offsets[-1]) for column in columns)])
    offsets = [column.offsets[:-1] + end for column, end in zip(columns, ends, strict=False)]
    block = b"".join(column.block[: int(column.offsets[-1])] for column in columns)
    return Strings(block, np.concatenate([*offsets, ends[-1:]]))


def gathered(column: Strings, rows: npt.NDArray[Any]) -> Strings:
    """`column.take(rows)` without a Python object for each string."""
    lengths = np.diff(column.offsets)[rows]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    where = np.repeat(column.offsets[:-1][rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
    return Strings(np.frombuffer(column.block, np.uint8)[where].tobytes(), offsets)


def _refuse_twice(lists: Lists) -> None:
    """A run that names a document twice for a topic has no one rank for it."""
    order = np.argsort(lists.entry, kind="stable")  # within an entry by run
    twice = (np.diff(lists.entry[order]) == 0) & (np.diff(lists.run[order]) == 0)
    if not twice.any():
        return
    row = int(order[1:][twice].min())
    document = decode(lists.documents[int(lists.entry[row])])
    topic = decode(lists.topics[int(lists.topic[row])])
    problem = f"document {document!r} stands twice for topic {topic!r}"
    raise DuplicateError(lists.names[lists.run[row]], int(lists.rank[row]), problem)
