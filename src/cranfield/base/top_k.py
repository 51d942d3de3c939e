"""The top-k documents of several runs, joined: the rank of each document in each run.

Fusion and pools read runs through this and nothing else. A run is read, cut at its depth and released, so that a hundred
runs of a quarter of a million lines are never in memory together. A row is one line of one run; an entry is one
document of one topic, however many runs returned it. Ids stay bytes in one block: joining half a million lines makes no
Python strings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.kernels import Index, Order, Strings, Top
from cranfield.base.kernels.table import compared as compared
from cranfield.base.run import Run, TextSource, duplicate_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from concurrent.futures import Future

    from cranfield.base.kernels.table import Floats, Ints, Offsets, RowTable

Read = TypeVar("Read")
READERS = 2  # runs read in parallel; more would wait for the interpreter's lock


@dataclass(frozen=True, eq=False)
class Tops:
    """The rows of all runs, by topic, then run, then rank, and the entries they name (`documents`, `home`)."""

    names: tuple[str, ...]  # names of the runs
    topics: Strings
    run: Ints
    topic: Ints
    entry: Ints
    rank: Ints
    score: Floats
    documents: Strings  # of each entry; entries are grouped by topic, in the order of their first rows
    home: Ints  # the topic of each entry


def tops(
    runs: Iterable[Run],
    depth: int | None = None,
    depths: Mapping[str, int] | None = None,
    order: Order = Order(),  # noqa: B008
    progress: Callable[[int, int | None], None] | None = None,
) -> Tops:
    """Read runs down to `depth`, or to the depth of a run's name in `depths`, and join them on topic and document."""
    numbers: dict[bytes, int] = {}
    names: list[str] = []
    parts: list[Top] = []
    topic_parts: list[Ints] = []

    def read(run: Run) -> tuple[str, Top]:
        return run.name, top(run, (depths or {}).get(run.name, depth), order)

    for name, part in _ahead(read, runs):
        names.append(name)
        parts.append(part)
        numbers_here = np.array([numbers.setdefault(topic, len(numbers)) for topic in part.topics], np.int32)
        topic_parts.append(numbers_here[part.topic])
        if progress is not None:
            progress(len(names), None)
    if not parts:
        raise DataError("no run given")
    topic = np.concatenate(topic_parts)
    rows = np.argsort(topic, kind="stable")
    run = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part.rank) for part in parts])[rows]
    rank = np.concatenate([part.rank for part in parts])[rows]
    score = np.concatenate([part.score for part in parts])[rows]
    topics, topic = Strings.of(numbers), topic[rows]
    documents = Strings.concatenated([part.documents for part in parts]).take(rows)
    first = Index(topics, topic, documents).first
    new = first == np.arange(len(first))
    entry = (np.cumsum(new, dtype=np.int32) - 1)[first]
    entries = np.flatnonzero(new)
    return Tops(tuple(names), topics, run, topic, entry, rank, score, documents.take(entries), topic[entries])


def top(run: Run, depth: int | None = None, order: Order = Order()) -> Top:  # noqa: B008
    """Read one run down to a depth. A repeated document is an error unless the order says which row counts."""
    quick = run.source.top_documents(order, depth) if isinstance(run.source, TextSource) else None
    if quick is not None:
        return quick
    read = Run(run.source, run.name)  # a copy, so that the run does not keep its rows
    settled = order.collapse or order.drop_self or order.duplicates != "error"
    table = _settled(read, order) if settled else read.table
    rows, rank = ranked(table, depth, order)
    topic, documents = table.topic[rows], table.documents.take(rows)
    again = np.flatnonzero(Index(table.topics, topic, documents).first != np.arange(len(rows)))
    if len(again):
        raise duplicate_row(read, int(rows[again[0]]))
    return Top(table.topics, topic, rank, table.value[rows], documents)


def _settled(run: Run, order: Order) -> RowTable:
    """One row per document, as the order says: passages joined, the topic's own document and duplicates removed."""
    from cranfield.base.kernels.twin import document_scores

    table, best = run.table, []
    by_topic = np.argsort(table.topic, kind="stable")
    ends = np.searchsorted(table.topic[by_topic], np.arange(1, len(table.topics)))
    for name, rows in zip(table.topics, np.split(by_topic, ends), strict=False):
        scores, repeated = document_scores(name, list(table.documents.take(rows)), table.value[rows], order)
        if repeated and order.duplicates == "error" and not order.collapse:
            raise duplicate_row(run, int(rows[repeated[0]]))
        best.append(scores)
    topic = np.repeat(np.arange(len(best), dtype=np.int32), [len(scores) for scores in best])
    documents = Strings.of(document for scores in best for document in scores)
    value = np.array([score for scores in best for score in scores.values()], np.float64)
    return replace(table, topic=topic, documents=documents, value=value, label=topic[:0], start=table.start[:0])


def ranked(table: RowTable, depth: int | None = None, order: Order = Order()) -> tuple[Offsets, Ints]:  # noqa: B008
    """The rows of a run's best documents, by topic and rank, and their ranks; without a depth, of all documents."""
    key, topic, rows = compared(table.value, order), table.topic, np.arange(len(table.topic))
    same = topic[1:] == topic[:-1]
    if (topic[1:] < topic[:-1]).any() or (same & (key[1:] > key[:-1])).any():
        rows = np.lexsort((-key, topic))
        topic, key = topic[rows], key[rows]
        same = topic[1:] == topic[:-1]
    starts = np.flatnonzero(np.r_[True, ~same][: len(topic)])
    sizes = np.diff(np.r_[starts, len(topic)])
    lengths = sizes if depth is None else np.minimum(sizes, depth)
    # the number of documents above each
    above = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    if order.ties != "input":
        tied = np.flatnonzero(np.diff(np.r_[False, same & (key[1:] == key[:-1]), False].astype(np.int8))).reshape(-1, 2)
        reached = tied[:, 0] - starts[np.searchsorted(starts, tied[:, 0], side="right") - 1] < (depth or len(topic))
        for first, last in tied[reached].tolist():
            group = sorted(rows[first : last + 1].tolist(), key=table.documents.__getitem__)
            rows[first : last + 1] = group[::-1] if order.ties == "descending" else group
    return rows[np.repeat(starts, lengths) + above], (above + 1).astype(np.int32)


def _ahead(read: Callable[[Run], Read], runs: Iterable[Run]) -> Iterator[Read]:
    """Read a few runs in parallel and yield them in order: the kernel releases the interpreter's lock."""
    from collections import deque
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(READERS) as readers:
        coming: deque[Future[Read]] = deque()
        for run in runs:
            coming.append(readers.submit(read, run))
            if len(coming) > READERS:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
