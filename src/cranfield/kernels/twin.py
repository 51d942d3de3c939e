"""The kernels in plain Python and NumPy: what runs where no compiler was found, and what the C core is checked against.

Slow and short on purpose. Every rule that the C core implements (what a line is, what a number is,
which of two tied documents comes first) is stated here in a form that can be read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import DataError
from cranfield.kernels.table import Fault, FaultError, Found, Strings, Table, decode, encode, refuse_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.kernels.table import Buffer, Floats, Ints, Layout, Order, Top, Wanted

NUMBER = re.compile(rb"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)")


def number(text: bytes, finite: bool) -> float | None:
    """Read a decimal number to the nearest double; None if it is none."""
    if not NUMBER.fullmatch(text):
        return None
    value = float(text)
    return None if finite and value in (np.inf, -np.inf) else value


def parse(buffer: Buffer, layout: Layout, lenient: bool = False) -> Table:
    """Read the rows of a buffer; the first bad line raises FaultError, or is noted and passed over if `lenient`."""
    topics: dict[bytes, int] = {}
    labels: dict[bytes, int] = {}
    topic, label, start = [], [], []
    documents, values = [], []
    skipped: list[Fault] = []
    offset = 0
    for line in bytes(buffer).split(b"\n"):
        here, offset = offset, offset + len(line) + 1
        if layout.comments and line.startswith(b"#"):
            continue
        fields = line.split()
        if not fields and (layout.blanks or offset > len(buffer)):
            continue
        fault = _fault(fields, layout)
        if fault is not None:
            if not lenient:
                raise FaultError(Fault(here, fault))
            skipped.append(Fault(here, fault))
            continue
        value = number(fields[layout.value], layout.finite)
        assert value is not None
        topic.append(topics.setdefault(fields[layout.topic], len(topics)))
        documents.append(fields[layout.document])
        values.append(value if layout.descending else -value)
        label.append(labels.setdefault(fields[layout.label], len(labels)) if layout.label >= 0 else 0)
        start.append(here)
    return Table(
        Strings.of(topics),
        np.array(topic, np.int32),
        Strings.of(documents),
        np.array(values, np.float64),
        Strings.of(labels),
        np.array(label, np.int32),
        np.array(start, np.int64),
        skipped,
    )


def _fault(fields: list[bytes], layout: Layout) -> Any:
    if not fields:
        return "blank"
    if len(fields) < layout.fewest or (layout.most is not None and len(fields) > layout.most):
        return "columns"
    if number(fields[layout.value], layout.finite) is None:
        return "value"
    return None


class Index:
    """Judged documents, ready to be looked up. `first[i]` is the first row of row i's topic and document."""

    def __init__(self, topics: Strings, topic: Ints, documents: Strings) -> None:
        self.topics = topics
        self.topic = topic
        self.documents = documents
        self.number = {name: i for i, name in enumerate(topics)}
        self.rows: list[dict[bytes, int]] = [{} for _ in self.number]
        first = [self.rows[t].setdefault(d, i) for i, (t, d) in enumerate(zip(topic.tolist(), documents, strict=True))]
        self.first: Ints = np.array(first, np.int32)


def hits_of_text(
    index: Index, buffer: Buffer, layout: Layout, order: Order, lenient: bool = False, threads: int = 1
) -> Found:
    """The hits of a run in a text buffer. Malformed lines come before duplicates when both are wrong."""
    table = parse(buffer, layout, lenient)
    found = hits_of_table(index, table, order)
    found.skipped = table.skipped
    if len(table.label) and layout.label >= 0:
        found.tag = decode(table.labels[int(table.label[-1])])
    return found


def hits_of_table(index: Index, table: Table, order: Order) -> Found:
    """The hits of a run in columns; its topics may be scattered."""
    lines: dict[int, list[int]] = {}
    for i, t in enumerate(table.topic.tolist()):
        lines.setdefault(t, []).append(i)
    documents = list(table.documents)
    parts: dict[int, tuple[list[bytes], Floats]] = {}
    others, again = [], []
    for t, rows in lines.items():
        name = table.topics[t]
        if name not in index.number:
            others.append(decode(name))
            continue
        scores, repeated = counted(name, [documents[i] for i in rows], table.value[rows], order)
        if order.duplicates == "error" and not order.collapse:
            again += [int(table.start[rows[i]]) if len(table.start) else rows[i] for i in repeated]
        if scores:
            parts[index.number[name]] = list(scores), np.array(list(scores.values()))
    if again:
        raise FaultError(Fault(min(again), "duplicate"))
    return _found(index, parts, others, order)


def counted(topic: bytes, documents: list[bytes], values: Floats, order: Order) -> tuple[dict[bytes, float], list[int]]:
    """The documents of a topic that count, with their scores, in order of first appearance; and the places of repeats."""
    scores: dict[bytes, float] = {}
    repeated = []
    for i, (document, value) in enumerate(zip(documents, values.tolist(), strict=True)):
        if order.collapse:
            document = document.split(order.collapse, 1)[0]
        if order.drop_self and document == topic:
            continue
        if document not in scores:
            scores[document] = value
            continue
        repeated.append(i)
        if order.collapse or order.duplicates == "best":
            scores[document] = max(value, scores[document])
        elif order.duplicates == "last":
            scores[document] = value
    return scores, repeated


def hits_of_mapping(index: Index, run: Mapping[str, Mapping[str, float]], order: Order) -> Found:
    """The hits of a run in a dict of dicts."""
    refuse_ids(run)
    topics: dict[bytes, int] = {}
    numbers, names, values = [], [], []
    for topic, documents in run.items():
        if encode(topic) not in index.number:
            continue
        t = topics.setdefault(encode(topic), len(topics))
        for document, score in documents.items():
            values.append(_score(topic, document, score))
            numbers.append(t)
            names.append(encode(document))
    table = Table(Strings.of(topics), np.array(numbers, np.int32), Strings.of(names), np.array(values, np.float64))
    found = hits_of_table(index, table, order)
    found.others = [topic for topic in run if encode(topic) not in index.number]
    return found


def _score(topic: str, document: str, score: float) -> float:
    try:
        value = float(score)
    except (TypeError, ValueError, OverflowError):
        value = np.nan
    if isinstance(score, (str, bytes)) or value != value:
        raise DataError(f"topic {topic!r}, document {document!r}: expected a number as its score, found {score!r}")
    return value


def rank(documents: list[bytes], scores: Floats, order: Order) -> tuple[list[int], Ints, Ints]:
    """The order of a topic's documents: positions best first, and for each rank the span of its tie group."""
    with np.errstate(over="ignore"):  # beyond a 32-bit float's range a score is infinite, as in trec_eval 9
        key = scores.astype(np.float32).astype(np.float64) if order.single else scores
    best = list(range(len(documents)))
    if order.ties != "input":
        best.sort(key=documents.__getitem__, reverse=order.ties == "descending")
    best.sort(key=key.tolist().__getitem__, reverse=True)
    ranked = key[best]
    new = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    size = np.diff(np.r_[new, len(best)])
    first = np.repeat(new + 1, size)
    last = np.repeat(new + size, size)
    return best, first.astype(np.int32), last.astype(np.int32)


def _found(index: Index, parts: dict[int, tuple[list[bytes], Floats]], others: Iterable[str], order: Order) -> Found:
    columns: list[list[int]] = [[], [], [], [], []]
    retrieved = np.zeros(len(index.rows), np.int32)
    for t in sorted(parts):
        documents, scores = parts[t]
        retrieved[t] = len(documents)
        best, first, last = rank(documents, scores, order)
        rows = index.rows[t]
        for position, i in enumerate(best):
            row = rows.get(documents[i])
            if row is not None:
                for column, value in zip(columns, (t, row, position + 1, first[position], last[position]), strict=True):
                    column.append(int(value))
    topic, row_, rank_, first_, last_ = (np.array(column, np.int32) for column in columns)
    return Found(topic, row_, rank_, first_, last_, retrieved, list(others))


# What the C core does beside: quick ways through what is usual. Here the careful ways, which stand above the kernels, do it.


def named(buffer: Buffer, start: int, separator: bytes, fields: Sequence[bytes], wanted: Wanted) -> Table | None:
    """The rows of separated values or objects, if that is quick: here it never is."""


def tops(buffer: Buffer, layout: Layout, order: Order, depth: int | None, lenient: bool = False) -> Top | None:
    """The best documents of every topic of a run, if that is quick: here it never is."""


def rows_of_mapping(source: Mapping[str, Mapping[str, float]], finite: bool) -> Table | None:
    """A dict of dicts as columns, if that is quick: here it never is."""


def run_lines(topics: Strings, documents: Strings, labels: Strings, columns: Sequence[Any]) -> bytes:
    """The lines `topic Q0 document rank score label`; the columns number topic and document, then rank, score, label."""
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return b"".join(
        b"%b Q0 %b %d %r %b\n" % (topics[t], documents[d], rank, score, labels[n]) for t, d, rank, score, n in rows
    )
