"""The kernels in C, and the threads that drive them.

The C core reads one stretch of a buffer at a time without the GIL; stretches are cut where the topic
changes. If a topic has lines in several stretches (as in a file sorted by document), its lines are read again together.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.kernels import _core
from cranfield.base.kernels.table import (
    FaultError,
    HitRows,
    LineFault,
    RowTable,
    Strings,
    Top,
    decode,
    encode,
    refuse_ids,
)
from cranfield.base.worker_threads import work_through

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cranfield.base.kernels.table import Buffer, FieldNumbers, Ints, LineLayout, Offsets, Order

WHY: dict[int, Any] = {1: "columns", 2: "value", 3: "duplicate", 4: "blank"}
TIES = {"descending": 0, "ascending": 1, "input": 2}
TWICE = {"error": 0, "first": 1, "last": 2, "best": 3}
SEGMENT = np.dtype([("start", "i8"), ("stop", "i8"), ("hits", "i8"), ("topic", "i4"), ("retrieved", "i4")])
SMALL = 1 << 20  # bytes: below this a second thread costs more than it saves


def _layout(layout: LineLayout) -> tuple[int, ...]:
    most = -1 if layout.most is None else layout.most
    flags = (layout.descending, layout.finite, layout.comments, layout.blanks)
    return (layout.fewest, most, layout.topic, layout.document, layout.value, layout.label, *flags)


def _order(order: Order) -> tuple[Any, ...]:
    return (TIES[order.ties], order.single, TWICE[order.duplicates], order.drop_self, order.collapse)


def _strings(names: tuple[bytes, bytes]) -> Strings:
    return Strings(names[0], np.frombuffer(names[1], np.int64))


def _faults(raw: bytes) -> list[LineFault]:
    return [LineFault(offset, WHY[why]) for offset, why in np.frombuffer(raw, np.int64).reshape(-1, 2).tolist()]


def parse(buffer: Buffer, layout: LineLayout, lenient: bool = False) -> RowTable:
    """Read the rows of a buffer. The first bad line raises FaultError; with `lenient`, bad lines are noted and skipped."""
    fault, offset, rows, start, skipped = _core.parse(buffer, _layout(layout), lenient)
    if fault:
        raise FaultError(LineFault(offset, WHY[fault]))
    return _table(rows, np.frombuffer(start, np.int64), _faults(skipped))


def _table(rows: tuple[Any, ...], start: Offsets, skipped: list[LineFault]) -> RowTable:
    topics, topic, documents, value, labels, label = rows
    return RowTable(
        _strings(topics),
        np.frombuffer(topic, np.int32),
        _strings(documents),
        np.frombuffer(value, np.float64),
        _strings(labels),
        np.frombuffer(label, np.int32),
        start,
        skipped,
    )


def named(
    buffer: Buffer, start: int, separator: bytes, fields: Sequence[bytes], numbers: FieldNumbers
) -> RowTable | None:
    """The rows of lines of separated values, or of objects (no separator), from `start` on; None if any is unusual."""
    rows = _core.named(buffer, start, separator, len(fields), tuple(fields), tuple(numbers))
    return None if rows is None else _table(rows, np.zeros(0, np.int64), [])


def top_documents(
    buffer: Buffer, layout: LineLayout, order: Order, depth: int | None, lenient: bool = False
) -> Top | None:
    """The best documents of each topic of a run; None if the fast path does not apply (see `base.top_k`)."""
    if order.collapse or order.drop_self or order.single or order.duplicates != "error":
        return None
    answer = _core.tops(buffer, _layout(layout), _order(order), len(buffer) if depth is None else depth, lenient)
    if answer is None:
        return None
    fault, offset, topics, topic, rank, score, documents, _ = answer
    if fault:
        raise FaultError(LineFault(offset, WHY[fault]))
    columns = np.frombuffer(topic, np.int32), np.frombuffer(rank, np.int32), np.frombuffer(score, np.float64)
    return Top(_strings(topics), *columns, _strings(documents))


def rows_of_mapping(source: Mapping[str, Mapping[str, float]], finite: bool) -> RowTable | None:
    """A dict of dicts as columns; None if it holds anything but texts and plain numbers (see `twin.rows_of_mapping`)."""
    rows = _core.dicts(source, finite) if type(source) is dict else None
    if rows is None:
        return None
    sizes, names, documents, offsets, value = rows
    topic = np.repeat(np.arange(len(source), dtype=np.int32), np.frombuffer(sizes, np.int64))
    ids = Strings(documents, np.frombuffer(offsets, np.int64), names)
    return RowTable(Strings.of_text(list(source)), topic, ids, np.frombuffer(value, np.float64))


def run_lines(topics: Strings, documents: Strings, labels: Strings, columns: Sequence[Any]) -> bytes:
    """The lines `topic Q0 document rank score label`; the columns number topic and document, then rank, score, label."""
    kinds = (np.int32, np.int64, np.int32, np.float64, np.int32)
    texts = [part for ids in (topics, documents, labels) for part in (ids.block, ids.offsets)]
    return bytes(_core.lines(*texts, *(np.ascontiguousarray(c, k) for c, k in zip(columns, kinds, strict=True))))


class Index:
    """An index of judged documents. `first[i]` is the first row with the topic and document of row i."""

    def __init__(self, topics: Strings, topic: Ints, documents: Strings) -> None:
        self.topics = topics
        self.topic = np.ascontiguousarray(topic, np.int32)
        self.documents = documents
        if not ((self.topic >= 0) & (self.topic < len(topics))).all() or (np.diff(self.topic) < 0).any():
            raise ValueError("an index wants its rows grouped by topic")
        self.capsule, first = _core.index(topics.block, topics.offsets, self.topic, documents.block, documents.offsets)
        self.first: Ints = np.frombuffer(first, np.int32)

    @cached_property
    def number(self) -> dict[bytes, int]:
        """The number of each topic."""
        return {name: i for i, name in enumerate(self.topics)}

    @cached_property
    def names(self) -> tuple[list[str], list[str], frozenset[str]]:
        """Topics and documents as text, for runs in dicts."""
        topics = self.topics.text()
        return topics, self.documents.text(), frozenset(topics)


def hits_of_text(
    index: Index, buffer: Buffer, layout: LineLayout, order: Order, lenient: bool = False, threads: int = 1
) -> HitRows:
    """The hits of a run in a text buffer. A malformed line is reported before a duplicate."""
    shape, rule, size = _layout(layout), _order(order), len(buffer)
    pieces = threads if size > SMALL else 1
    cuts = [0, *(_core.boundary(buffer, size * i // pieces) for i in range(1, pieces)), size]
    stretches = [(cuts[i], max(cuts[i], cuts[i + 1])) for i in range(pieces)]
    scan = partial(_core.scan, index.capsule, buffer)
    parts = _in_threads([partial(scan, *stretch, shape, rule, lenient) for stretch in stretches])
    bad = [(part[1], part[0]) for part in parts if part[0]]
    if bad:
        offset, fault = min(bad)
        raise FaultError(LineFault(offset, WHY[fault]))
    again = [part[2] for part in parts if part[2] >= 0]
    segments = np.concatenate([np.frombuffer(part[3], SEGMENT) for part in parts])
    hits, single = (np.concatenate([_rows(part[column]) for part in parts]) for column in (4, 8))
    segments, hits, single = _gather_scattered(index, buffer, segments, (hits, single), (shape, rule, lenient), again)
    if again:
        raise FaultError(LineFault(min(again), "duplicate"))
    retrieved = np.zeros(len(index.topics), np.int32)
    judged = segments[segments["topic"] >= 0]
    retrieved[judged["topic"]] = judged["retrieved"]
    others = dict.fromkeys(name for part in parts for name in _strings(part[5]).text())
    tags = [part[7] for part in parts if part[7] is not None]
    skipped = [fault for part in parts for fault in _faults(part[6])]
    result = _hit_rows(hits, retrieved, list(others), single)
    result.tag = decode(tags[-1]) if tags else None
    result.skipped = skipped
    return result


def _gather_scattered(
    index: Index, buffer: Buffer, segments: Any, hits: tuple[Any, Any], how: tuple[Any, ...], again: list[int]
) -> tuple[Any, Any, Any]:
    """Read topics whose lines lie in several segments again, each topic as a whole."""
    times = np.bincount(segments["topic"][segments["topic"] >= 0], minlength=len(index.topics))
    scattered = np.flatnonzero(times > 1)
    if not len(scattered):
        return segments, *hits
    whole = np.isin(segments["topic"], scattered, invert=True)
    pieces = [segments[whole]]
    hit_rows, single = ([rows[np.isin(rows[:, 0], scattered, invert=True)]] for rows in hits)
    rest = segments[~whole]
    rest = rest[np.argsort(rest["topic"], kind="stable")]
    ends = np.cumsum(times[scattered])
    for topic, start, end in zip(scattered.tolist(), (ends - times[scattered]).tolist(), ends.tolist(), strict=True):
        lines = rest[start:end]
        stretches = np.ascontiguousarray(np.column_stack([lines["start"], lines["stop"]]), np.int64)
        part = _core.gather(index.capsule, topic, buffer, stretches, *how)
        if part[2] >= 0:
            again.append(part[2])
        pieces.append(np.frombuffer(part[3], SEGMENT))
        hit_rows.append(_rows(part[4]))
        single.append(_rows(part[8]))
    return np.concatenate(pieces), np.concatenate(hit_rows), np.concatenate(single)


def _rows(hits: bytes) -> Any:
    return np.frombuffer(hits, np.int32).reshape(-1, 5)


def _in_threads(jobs: list[Callable[[], Any]]) -> list[Any]:
    """Run the jobs at the same time."""
    answers: list[Any] = [None] * len(jobs)
    places = iter(range(len(jobs)))

    def work(place: int) -> None:
        answers[place] = jobs[place]()

    work_through(lambda: next(places, None), work, len(jobs))
    return answers


def hits_of_table(index: Index, table: RowTable, order: Order) -> HitRows:
    """The hits of a run in columns; the rows need not be grouped by topic."""
    names = list(table.topics)
    numbers = np.array([index.number.get(name, -1) for name in names], np.int32)
    topic = numbers[table.topic] if len(names) else np.zeros(0, np.int32)
    place = np.flatnonzero(topic >= 0)
    topic = topic[place]
    if (np.diff(topic) < 0).any():
        by_topic = np.argsort(topic, kind="stable")
        topic, place = topic[by_topic], place[by_topic]
    documents = table.documents
    twice, retrieved, hits, single = _core.columns(
        index.capsule, topic, place.astype(np.int64), documents.block, documents.offsets, table.value, _order(order)
    )
    if twice >= 0:
        raise FaultError(LineFault(int(table.start[twice]) if len(table.start) else twice, "duplicate"))
    used = np.zeros(len(names), bool)
    used[table.topic] = True
    others = [decode(name) for name, t, u in zip(names, numbers.tolist(), used.tolist(), strict=True) if t < 0 and u]
    return _hit_rows(_rows(hits), np.frombuffer(retrieved, np.int32), others, _rows(single))


def hits_of_mapping(index: Index, run: Mapping[str, Mapping[str, float]], order: Order) -> HitRows:
    """The hits of a run in a dict of dicts."""
    topics, documents, judged = index.names
    answers = run if isinstance(run, dict) else dict(run)
    try:
        retrieved, hits, single = _core.mapping(index.capsule, topics, documents, answers, _order(order))
        others = [topic for topic in answers if topic not in judged and encode(topic) not in index.number]
    except (TypeError, AttributeError):
        refuse_ids(answers)
        raise
    except LookupError as error:
        refuse_ids(answers)
        topic, document, score = error.args
        expected = "expected a number as its score"
        raise DataError(f"topic {topic!r}, document {document!r}: {expected}, found {score!r}") from None
    return _hit_rows(_rows(hits), np.frombuffer(retrieved, np.int32), others, _rows(single))


def _hit_rows(hits: Any, retrieved: Ints, others: list[str], single: Any) -> HitRows:
    if (np.diff(hits[:, 0]) < 0).any():
        hits = hits[np.argsort(hits[:, 0], kind="stable")]
    if len(single):
        single = single[np.lexsort((single[:, 2], single[:, 0]))]
    topic, row, rank, first, last = np.ascontiguousarray(hits.T)
    return HitRows(topic, row, rank, first, last, retrieved, others, single=single)
