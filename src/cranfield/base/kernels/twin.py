"""The kernels in plain Python and NumPy: the fallback without a compiler, and the reference for tests of the C core.

Every rule that the C core implements (what a line is, what a number is, which of two tied documents comes first) is
stated here in a form that can be read: `_add_lines`, `number`, `document_scores`, `rank`. Each rule also has a fast
path for usual input, which gives the same results and leaves unusual input to the rule.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.kernels.table import (
    FaultError,
    HitRows,
    LineFault,
    RowTable,
    Strings,
    compared,
    decode,
    encode,
    refuse_ids,
    score_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from cranfield.base.kernels.table import Buffer, FieldNumbers, Floats, Ints, LineLayout, Order, Top

BLANK = np.isin(np.arange(256), list(b" \t\n\r\v\f"))
NEWLINE = 10
PIECE = 1 << 20  # bytes read at a time
NULL_SEARCHED = 20000  # documents of a dict: core.c has the same number, and says why not all
NUMBER = re.compile(rb"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)")


def number(text: bytes, finite: bool) -> float | None:
    """Read a decimal number to the nearest double; None if the text is not a number."""
    if not NUMBER.fullmatch(text):
        return None
    value = float(text)
    return None if finite and value in (np.inf, -np.inf) else value


class _Rows:
    """The rows of lines that were read so far."""

    def __init__(self, layout: LineLayout) -> None:
        self.layout = layout
        self.topics: dict[bytes, int] = {}
        self.labels: dict[bytes, int] = {}
        self.documents: list[bytes] = []
        self.columns: list[list[Any]] = [[], [], [], []]  # arrays: topic, value, label, start
        self.skipped: list[LineFault] = []

    def add(self, fields: Sequence[Sequence[bytes]], values: Sequence[float], start: Any) -> None:
        """Add rows: their fields column by column, their values, and the offsets of their lines."""
        layout, number = self.layout, len(values)
        self.documents += fields[layout.document]
        label = _numbers(self.labels, fields[layout.label]) if layout.label >= 0 else np.zeros(number, np.int32)
        value = np.array(values, np.float64)
        row = _numbers(self.topics, fields[layout.topic]), value if layout.descending else -value, label, start
        for column, part in zip(self.columns, row, strict=True):
            column.append(part)

    def table(self) -> RowTable:
        """All rows as columns."""
        kinds = np.int32, np.float64, np.int32, np.int64
        topic, value, label, start = (
            np.concatenate([*parts, np.empty(0, kind)]).astype(kind, copy=False)
            for parts, kind in zip(self.columns, kinds, strict=True)
        )
        names = Strings.of(self.topics), topic, Strings.of(self.documents)
        return RowTable(*names, value, Strings.of(self.labels), label, start, self.skipped)


def _numbers(numbers: dict[bytes, int], names: Sequence[bytes]) -> Ints:
    """The number of each name, in the order of first appearance."""
    stretches = [(numbers.setdefault(name, len(numbers)), len(list(same))) for name, same in groupby(names)]
    number, length = np.array(stretches, np.int32).reshape(-1, 2).T
    return np.repeat(number, length)


def parse(buffer: Buffer, layout: LineLayout, lenient: bool = False) -> RowTable:
    """Read the rows of a buffer. The first bad line raises FaultError; with `lenient`, bad lines are noted and skipped."""
    raw, rows, start = bytes(buffer), _Rows(layout), 0
    while start < len(raw):
        end = raw.find(b"\n", start + PIECE) + 1 or len(raw)
        piece = raw[start:end]
        if not _add_usual(rows, piece, start):
            _add_lines(rows, piece, start, lenient)
        start = end
    return rows.table()


def _add_lines(rows: _Rows, piece: bytes, offset: int, lenient: bool) -> None:
    """Read lines one by one, by the complete rules."""
    layout, end = rows.layout, offset + len(piece)
    lines, values, starts = [], [], []
    for line in piece.removesuffix(b"\n").split(b"\n"):
        here, offset = offset, offset + len(line) + 1
        if layout.comments and line.startswith(b"#"):
            continue
        fields = line.split()
        if not fields and (layout.blanks or offset > end):
            continue
        fault = _fault(fields, layout)
        if fault is not None:
            if not lenient:
                raise FaultError(LineFault(here, fault))
            rows.skipped.append(LineFault(here, fault))
            continue
        lines.append(fields[: layout.fewest])
        values.append(float(fields[layout.value]))
        starts.append(here)
    if lines:
        rows.add(list(zip(*lines, strict=True)), values, np.array(starts, np.int64))


def _add_usual(rows: _Rows, piece: bytes, offset: int) -> bool:
    """Read lines that all have exactly the required columns and a valid number; return False and read none otherwise."""
    layout, number = rows.layout, rows.layout.fewest
    if layout.comments and (piece.startswith(b"#") or b"\n#" in piece):
        return False
    letters = np.frombuffer(piece, np.uint8)
    blank = BLANK[letters]
    begins = np.flatnonzero(~blank & np.concatenate([[True], blank[:-1]]))
    ends = np.flatnonzero(letters == NEWLINE)
    if not piece.endswith(b"\n"):
        ends = np.append(ends, len(piece))
    starts = np.concatenate([[0], ends[:-1] + 1])
    if len(begins) != number * len(ends):
        return False
    # the count of words fits, so each line has its own words only if its first and its last word lie in it
    if (begins[::number] < starts).any() or (begins[number - 1 :: number] > ends).any():
        return False
    words = piece.split()
    fields = [words[column::number] for column in range(number)]
    values = _usual_values(fields[layout.value], layout.finite)
    if values is None:
        return False
    rows.add(fields, values, starts + offset)
    return True


def _usual_values(texts: list[bytes], finite: bool) -> list[float] | None:
    """The number in each text; None if one is not a number. Python's `float` would also accept nan and 1_000."""
    try:
        values = list(map(float, texts))
    except ValueError:
        return None
    array = np.array(values)
    wrong = ~np.isfinite(array) if finite else np.isnan(array)
    return None if wrong.any() or b"_" in b"".join(texts) else values


def _fault(fields: list[bytes], layout: LineLayout) -> Any:
    if not fields:
        return "blank"
    if len(fields) < layout.fewest or (layout.most is not None and len(fields) > layout.most):
        return "columns"
    if number(fields[layout.value], layout.finite) is None:
        return "value"
    return None


class Index:
    """An index of judged documents. `first[i]` is the first row with the topic and document of row i."""

    def __init__(self, topics: Strings, topic: Ints, documents: Strings) -> None:
        self.topics = topics
        self.topic = topic
        self.documents = documents
        self.number = {name: i for i, name in enumerate(topics)}
        self.rows: list[dict[bytes, int]] = [{} for _ in self.number]
        first = [self.rows[t].setdefault(d, i) for i, (t, d) in enumerate(zip(topic.tolist(), documents, strict=True))]
        self.first: Ints = np.array(first, np.int32)
        self._text: list[dict[str, int] | None] = [None] * len(self.rows)

    def rows_of_text(self, topic: int) -> dict[str, int]:
        """The rows of a topic's documents by their ids as text."""
        rows = self._text[topic]
        if rows is None:
            rows = self._text[topic] = {decode(name): row for name, row in self.rows[topic].items()}
        return rows


def hits_of_text(
    index: Index, buffer: Buffer, layout: LineLayout, order: Order, lenient: bool = False, threads: int = 1
) -> HitRows:
    """The hits of a run in a text buffer. A malformed line is reported before a duplicate."""
    table = parse(buffer, layout, lenient)
    hits = hits_of_table(index, table, order)
    hits.skipped = table.skipped
    if len(table.label) and layout.label >= 0:
        hits.tag = decode(table.labels[int(table.label[-1])])
    return hits


def hits_of_table(index: Index, table: RowTable, order: Order) -> HitRows:
    """The hits of a run in columns; the rows need not be grouped by topic."""
    documents = list(table.documents)
    by_topic = np.argsort(table.topic, kind="stable")
    ends = np.searchsorted(table.topic[by_topic], np.arange(len(table.topics) + 1)).tolist()
    parts: dict[int, Part] = {}
    others, again = [], []
    for t, name in enumerate(table.topics):
        rows = by_topic[ends[t] : ends[t + 1]]
        if name not in index.number:
            others += [decode(name)] if len(rows) else []
            continue
        ids = [documents[i] for i in rows.tolist()]
        names, scores, repeated = _scored_documents(ids, table.value[rows], name, order)
        if order.duplicates == "error" and not order.collapse:
            again += [int(table.start[rows[i]]) if len(table.start) else int(rows[i]) for i in repeated]
        if names:
            number = index.number[name]
            parts[number] = names, scores, index.rows[number]
    if again:
        raise FaultError(LineFault(min(again), "duplicate"))
    return _hit_rows(index, parts, others, order)


def _scored_documents(
    documents: list[bytes], values: Floats, topic: bytes, order: Order
) -> tuple[list[bytes], Floats, list[int]]:
    """Like `document_scores`, with documents and scores in separate lists; a fast path if no document occurs twice."""
    if not (order.collapse or order.drop_self) and len(set(documents)) == len(documents):
        return documents, values, []
    scores, repeated = document_scores(topic, documents, values, order)
    return list(scores), np.array(list(scores.values())), repeated


def document_scores(
    topic: bytes, documents: list[bytes], values: Floats, order: Order
) -> tuple[dict[bytes, float], list[int]]:
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


def hits_of_mapping(index: Index, run: Mapping[str, Mapping[str, float]], order: Order) -> HitRows:
    """The hits of a run in a dict of dicts."""
    refuse_ids(run)
    parts: dict[int, Part] = {}
    others, again, searched = [], 0, 0
    for topic, documents in run.items():
        t = index.number.get(encode(topic))
        if t is None:
            others.append(topic)
            continue
        names: list[Any] = list(documents)
        scores = _scores(topic, documents)
        rows: Mapping[Any, int] = index.rows[t]
        together = "".join(names)
        if searched < NULL_SEARCHED and "\0" in together:
            raise ValueError("NUL in an id")  # run.py words it
        searched += len(names)
        if together.isascii():  # two texts may stand for the same bytes otherwise
            rows = index.rows_of_text(t)
        else:
            names, scores, repeated = _scored_documents([encode(name) for name in names], scores, encode(topic), order)
            if repeated and order.duplicates == "error":
                raise FaultError(LineFault(again + repeated[0], "duplicate"))
        again += len(documents)
        if names:
            parts[t] = names, scores, rows
    return _hit_rows(index, parts, others, order)


def _scores(topic: str, documents: Mapping[str, float]) -> Floats:
    values = documents.values()
    if set(map(type, values)) <= {int, float}:
        try:
            scores = np.fromiter(values, np.float64, len(documents))
        except OverflowError:
            scores = np.array([np.nan])
        if not np.isnan(scores).any():
            return scores
    return np.array([score_of(topic, document, score) for document, score in documents.items()], np.float64)


def rank(documents: list[bytes], scores: Floats, order: Order) -> tuple[list[int], Ints, Ints]:
    """The order of a topic's documents: positions, best first, and the ranks that each tie group covers."""
    key = compared(scores, order)
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


Part = tuple[list[Any], "Floats", "Mapping[Any, int]"]  # a topic's documents and scores, and the rows of those judged


def _hit_rows(index: Index, parts: Mapping[int, Part], others: Iterable[str], order: Order) -> HitRows:
    single, in_single = [np.empty((0, 5), np.int32)], order._replace(single=True)
    retrieved = np.zeros(len(index.rows), np.int32)
    columns = [np.empty((0, 5), np.int32)]
    for t in sorted(parts):
        retrieved[t] = len(parts[t][0])
        columns.append(_hits(t, *parts[t], order))
        if not order.single and order.ties != "input" and _ties_in_single(parts[t][1], in_single):
            single.append(_moved(columns[-1], _hits(t, *parts[t], in_single)))
    topic, row, rank, first, last = np.concatenate(columns).T.copy()
    return HitRows(topic, row, rank, first, last, retrieved, list(others), single=np.concatenate(single))


def _ties_in_single(scores: Floats, in_single: Order) -> bool:
    """Whether scores that differ are equal as 32-bit floats."""
    falling = np.sort(scores)
    singles = compared(falling, in_single)
    return bool(((falling[1:] != falling[:-1]) & (singles[1:] == singles[:-1])).any())


def _moved(hits: Ints, single: Ints) -> Ints:
    """The hits whose tie group grows when scores are compared as 32-bit floats."""
    sizes = dict(zip(hits[:, 1].tolist(), (hits[:, 4] - hits[:, 3]).tolist(), strict=True))
    larger = [last - first > sizes[row] for _, row, _, first, last in single.tolist()]
    return np.asarray(single[np.array(larger, np.bool_)], np.int32)


def _hits(topic: int, documents: list[Any], scores: Floats, rows: Mapping[Any, int], order: Order) -> Ints:
    """The judged documents of a topic, by rank: topic, row, rank, and the ranks that its tie group covers.

    The same ranks as by `rank`, but names are put in order only where a judged document is tied.
    """
    key = compared(scores, order)
    places = [place for place, document in enumerate(documents) if document in rows]
    best = np.argsort(-key, kind="stable")
    falling = -key[best]
    above = np.searchsorted(falling, -key[places], "left")
    last = np.searchsorted(falling, -key[places], "right")
    ranks = above + 1
    tied = np.flatnonzero(last > ranks)
    if len(tied):
        placed = _ranks_in_ties({(int(above[i]), int(last[i])) for i in tied}, best, documents, order)
        ranks[tied] = [placed[places[i]] for i in tied.tolist()]
    row = [rows[documents[place]] for place in places]
    hits = np.stack([np.full(len(places), topic), row, ranks, above + 1, last], axis=1).astype(np.int32)
    return np.asarray(hits[np.argsort(ranks)], np.int32)


def _ranks_in_ties(
    groups: Iterable[tuple[int, int]], best: npt.NDArray[np.int64], documents: list[Any], order: Order
) -> dict[int, int]:
    """The ranks of the documents at these positions, and the first and last rank of their group of equal scores."""
    ranks: dict[int, int] = {}
    for start, end in groups:
        group = best[start:end].tolist()
        if order.ties != "input":
            group.sort(key=documents.__getitem__, reverse=order.ties == "descending")
        ranks |= zip(group, range(start + 1, end + 1), strict=True)
    return ranks


# Fast paths of the C core for the usual input. This kernel has none, so that the callers take their general path.


def named(
    buffer: Buffer, start: int, separator: bytes, fields: Sequence[bytes], numbers: FieldNumbers
) -> RowTable | None:
    """Always None: the caller reads separated values and objects itself."""


def top_documents(
    buffer: Buffer, layout: LineLayout, order: Order, depth: int | None, lenient: bool = False
) -> Top | None:
    """Always None: the caller ranks the rows itself."""


def rows_of_mapping(source: Mapping[str, Mapping[str, float]], finite: bool) -> RowTable | None:
    """Always None: the caller converts a dict of dicts itself."""


def run_lines(topics: Strings, documents: Strings, labels: Strings, columns: Sequence[Any]) -> bytes:
    """The lines `topic Q0 document rank score label`; the columns number topic and document, then rank, score, label."""
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return b"".join(
        b"%b Q0 %b %d %r %b\n" % (topics[t], documents[d], rank, score, labels[n]) for t, d, rank, score, n in rows
    )
