"""A run: the documents that one system returned for each topic, in order.

The order is by score, highest first. Documents with equal scores are ordered by id, as bytes,
descending, unless the conventions say otherwise; the rank column of a file decides nothing. The
kernels implement this rule, `Order` names its variants.

A run keeps its source (the bytes of a file, a mapping, columns) and passes it to the
kernels, so that scoring a large file never builds seven million Python objects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from mmap import mmap
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cranfield.base.errors import BadLineError, DataError, DuplicateError
from cranfield.base.kernels import (
    FaultError,
    LineFault,
    Order,
    RowTable,
    Strings,
    decode,
    encode,
    hits_of_mapping,
    hits_of_table,
    hits_of_text,
    parse,
    rows_of_mapping,
    top_documents,
)
from cranfield.base.kernels.table import refuse_ids, score_of
from cranfield.base.results import FIRST_TOPICS, preview
from cranfield.base.text_layout import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from cranfield.base.kernels import HitRows, Index, LineLayout, Top
    from cranfield.base.kernels.table import Buffer, Floats, Ints


Array: TypeAlias = "npt.NDArray[Any]"


# ranked lists and pairs


def is_list(value: Any) -> bool:
    """Whether a value can be a ranked list: a list, a tuple or a one-dimensional array."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.names is None
    return isinstance(value, (list, tuple))


def is_pair(value: Any) -> bool:
    """Whether a value can be a document and its score."""
    return isinstance(value, (list, tuple)) and len(value) == 2


def table_of_lists(lists: Mapping[Any, Any]) -> RowTable:
    """The columns of `{topic: documents}`, best first, or of `{topic: (document, score) pairs}`.

    A list of n documents gets the scores n, n - 1, … 1, so that they stay in their order.
    """
    sizes: list[int] = []
    documents: list[str] = []
    scores: list[float] = []
    for topic, ranking in lists.items():
        refuse_ids({topic: ()})
        if not is_list(ranking):
            raise DataError(f"topic {topic!r}: expected a list like those of other topics, found {ranking!r:.60}")
        items = list(ranking)
        paired = bool(items) and is_pair(items[0])
        names = [_paired(topic, rank, item)[0] for rank, item in enumerate(items, 1)] if paired else items
        refuse_ids({topic: names})
        scores += [score_of(topic, *item) for item in items] if paired else range(len(items), 0, -1)
        documents += names
        sizes.append(len(items))
    return _table(list(lists), sizes, documents, np.array(scores, np.float64))


def _paired(topic: str, rank: int, item: Any) -> Any:
    if not is_pair(item):
        raise DataError(f"topic {topic!r}, item {rank}: expected (document, score) as before it, found {item!r:.60}")
    return item


def _table(topics: list[str], sizes: Any, documents: list[str], scores: Floats) -> RowTable:
    number = np.repeat(np.arange(len(topics), dtype=np.int32), sizes)
    return RowTable(Strings.of_text(topics), number, Strings.of_text(documents), scores)


# padded arrays


def table_of_arrays(topics: Any, ids: Any, scores: Any, padding: int | str | None) -> RowTable:
    """The columns of arrays of ids and scores, topics × depth, without padding cells."""
    cells = _array(ids, "ids")
    if cells.ndim != 2:
        raise DataError(f"ids: expected 2 dimensions, topics × depth, found {cells.ndim}")
    names = _names_of(topics)
    if len(names) != len(cells):
        raise DataError(f"ids: expected a row for each of {len(names)} topics, found {len(cells)}")
    filled = ~_padded(cells, padding)
    documents = [_id(cell, f"ids[{row}, {column}]") for cell, row, column in _cells(cells, filled)]
    return _table(names, filled.sum(axis=1), documents, _scores(scores, filled))


def _array(source: Any, what: str) -> Array:
    """A NumPy array from an object with `__array__`, or else with DLPack."""
    try:
        if isinstance(source, np.ma.MaskedArray):
            return source
        if hasattr(source, "__dlpack__") and not hasattr(source, "__array__"):
            return np.from_dlpack(source)
        return np.asarray(source)
    except Exception as error:  # each library has its own error for memory that NumPy cannot read
        raise DataError(f"{what}: expected an array that NumPy can read: {error}") from error


def _names_of(topics: Any) -> list[str]:
    ids = topics if isinstance(topics, (list, tuple)) else _array(topics, "topics").tolist()
    if not isinstance(ids, (list, tuple)):
        raise DataError(f"topics: expected a list of ids, found {topics!r:.60}")
    names = [_id(topic, f"topics[{row}]") for row, topic in enumerate(ids)]
    first = {name: row for row, name in reversed(list(enumerate(names)))}
    for row, name in enumerate(names):
        if first[name] != row:
            raise DataError(f"topics[{row}]: topic {name!r} occurs twice, first at {first[name]}")
    return names


def _id(value: Any, where: str) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(int(value))
    raise DataError(f"{where}: expected an id that is text or a whole number, found {value!r:.60}")


def _cells(cells: Array, filled: Array) -> Any:
    rows, columns = np.nonzero(filled)
    return zip(np.ma.getdata(cells)[filled].tolist(), rows.tolist(), columns.tolist(), strict=True)


def _padded(cells: Array, padding: int | str | None) -> Array:
    """The cells without a document: masked, None, empty text, or equal to `padding`."""
    plain: Array = np.ma.getdata(cells)
    if plain.dtype.kind in "iu":
        same = plain == padding if isinstance(padding, (int, np.integer)) else np.zeros(plain.shape, bool)
    else:
        unused = [cell is None or cell == "" or cell == padding for cell in plain.ravel().tolist()]
        same = np.array(unused, bool).reshape(plain.shape)
    return np.asarray(same | np.ma.getmaskarray(cells))


def _scores(source: Any, filled: Array) -> Floats:
    if source is None:
        order = np.arange(filled.shape[1], 0, -1, dtype=np.float64)
        return np.broadcast_to(order, filled.shape)[filled]
    array = _array(source, "scores")
    if array.shape != filled.shape:
        raise DataError(f"scores: expected the shape of the ids, {filled.shape}, found {array.shape}")
    if array.dtype.kind not in "iuf":
        raise DataError(f"scores: expected numbers, found {array.dtype}; cast them")
    scores: Floats = np.ma.filled(array.astype(np.float64), np.nan)
    wrong = np.argwhere(filled & np.isnan(scores))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise DataError(f"scores[{row}, {column}]: expected a number (row {row}, column {column} from 0), found nan")
    return scores[filled]


@dataclass(eq=False, repr=False)
class TextSource:
    """The bytes of a file of lines, its layout, and the file's name for messages."""

    buffer: Buffer
    layout: LineLayout
    where: str
    lenient: bool = False

    def table(self) -> RowTable:
        """The rows of the file as columns."""
        with self._faults_in_words():
            return parse(self.buffer, self.layout, self.lenient)

    def hits(self, index: Index, order: Order, threads: int) -> HitRows:
        """The hits of the file, if it is a run, in an index of judgments."""
        with self._faults_in_words():
            return hits_of_text(index, self.buffer, self.layout, order, self.lenient, threads)

    def top_documents(self, order: Order, depth: int | None) -> Top | None:
        """The best documents of each topic, if it is a run; None if the fast path of the kernel does not apply."""
        with self._faults_in_words():
            return top_documents(self.buffer, self.layout, order, depth, self.lenient)

    @contextmanager
    def _faults_in_words(self) -> Iterator[None]:
        """Raise DataError at a NUL byte, where programs in C would cut the id, and at a line that a kernel refuses."""
        null = _first_null(self.buffer)
        if null is not None:
            raise BadLineError(self.where, self.line(null), "expected ids without NUL, found one")
        try:
            yield
        except FaultError as error:
            raise bad_line(self, error.fault) from None

    def line(self, offset: int) -> int:
        """The number of the line at an offset."""
        return bytes(self.buffer[:offset]).count(b"\n") + 1


def _first_null(buffer: Buffer) -> int | None:
    """The offset of the first NUL byte; fast, because every file is searched."""
    whole = buffer.obj if isinstance(buffer, memoryview) else buffer
    if isinstance(whole, (bytes, mmap)) and len(whole) == len(buffer):
        place = whole.find(b"\0")
        return None if place < 0 else place
    content = np.frombuffer(buffer, np.uint8) if len(buffer) else np.ones(1, np.uint8)
    return int(np.argmin(content)) if content.min() == 0 else None


def refuse_null(source: Mapping[str, Any] | TextSource | RowTable, name: str) -> None:
    """Raise DataError at a topic or document id with a NUL character; files are searched when they are read."""
    if isinstance(source, RowTable):
        for what, ids in (("topic", source.topics), ("document", source.documents)):
            if _first_null(ids.block) is not None:  # it may lie between two ids
                _refuse_null_ids(ids.text(), what, name)
    elif isinstance(source, Mapping):
        _refuse_null_ids(source, "topic", name)
        for documents in source.values():
            _refuse_null_ids(documents, "document", name)


def _refuse_null_ids(ids: Any, what: str, name: str) -> None:
    try:
        if "\0" not in "".join(ids):  # a thousand ids in some microseconds
            return
    except TypeError:  # ids that are not text have an error message of their own
        return
    odd = next(each for each in ids if "\0" in each)
    raise DataError(f"{name}: expected ids without NUL, found {what} {odd!r}")


class Run:
    """The ranked documents of one system. Make a run from a mapping, or with `read_run` from a file or a frame.

    >>> run = Run({"q1": {"d1": 0.5, "d2": 0.9}}, name="bm25")
    >>> run["q1"]
    [('d2', 0.9), ('d1', 0.5)]

    Lists of documents, best first, and lists of (document, score) pairs are accepted too.

    >>> Run({"q1": ["d2", "d1"]})["q1"]
    [('d2', 2.0), ('d1', 1.0)]
    """

    source: Mapping[str, Mapping[str, float]] | TextSource | RowTable

    def __init__(
        self, source: Mapping[str, Any] | TextSource | RowTable, name: str = "run", tag: str | None = None
    ) -> None:
        if not isinstance(source, (Mapping, TextSource, RowTable)):
            raise DataError(f"a run is made from {{topic: {{document: score}}}}, found {type(source).__name__}")
        if isinstance(source, Mapping) and any(map(is_list, source.values())):
            source = table_of_lists(source)
        refuse_null(source, name)
        self.source = source
        self.name = name
        self._tag = tag
        self._table: RowTable | None = None
        self._unread = False  # whether documents of a mapping are still to be searched for NUL

    @classmethod
    def unread(cls, source: Mapping[str, Mapping[str, float]], name: str = "run", tag: str | None = None) -> Run:
        """A run whose ids are searched for NUL later, when they are read: a separate pass would cost a third of scoring."""
        _refuse_null_ids(source, "topic", name)
        run = cls({}, name, tag)
        run.source, run._unread = source, True
        return run

    @classmethod
    def from_arrays(
        cls, topics: Any, ids: Any, scores: Any = None, *, padding: int | str | None = -1, name: str = "run"
    ) -> Run:
        """A run from arrays, topics × depth, as vector indexes return them: NumPy's, or any with `__array__` or DLPack.

        Ids are whole numbers or text. Cells whose id is `padding`, empty, None or masked are left out, whatever their score.
        Higher scores are better, so give distances negated; without scores, the columns are in order.

        >>> Run.from_arrays(["q1"], [[7, 3, -1]], [[0.9, 0.5, float("nan")]])["q1"]
        [('7', 0.9), ('3', 0.5)]
        """
        return cls(table_of_arrays(topics, ids, scores, padding), name)

    @property
    def tag(self) -> str | None:
        """The system's own name for the run: the last column of the last line."""
        if self._tag is None and not isinstance(self.source, Mapping) and len(self.table.labels):
            self._tag = decode(self.table.labels[int(self.table.label[-1])])
        return self._tag

    def renamed(self, name: str) -> Run:
        """The same run under another name."""
        run = copy(self)
        run.name = name
        return run

    def by_rank(self) -> Run:
        """The same run, ordered by the rank column of its file instead of the scores; a rank may occur once per topic."""
        source = self.source
        if not isinstance(source, TextSource) or "rank" not in source.layout.columns.split():
            raise DataError(f"{self.name}: scores=rank goes by the rank column of a TREC file, and there is none")
        rank = source.layout.columns.split().index("rank")
        if source.layout.value == rank:
            return self
        layout = source.layout._replace(value=rank, descending=False)
        run = Run(replace(source, layout=layout), self.name, self._tag)
        _refuse_ranks_twice(run.table, source.where)
        return run

    @property
    def table(self) -> RowTable:
        """The rows as columns, in input order."""
        if self._table is None:
            if self._unread:
                refuse_null(self.source, self.name)
                self._unread = False
            self._table = table_of(self.source, "a run", "score")
        return self._table

    @property
    def topics(self) -> list[str]:
        """The topics of the run, in input order."""
        return list(self.source) if isinstance(self.source, Mapping) else self.table.topics.text()

    def empty_answers(self, topics: list[str], retrieved: Ints, order: Order) -> npt.NDArray[np.bool_]:
        """The topics for which the run returns an empty list. That is an answer, unlike a missing topic.

        A mapping may say `{"q2": {}}`, and an order that drops the topic's own id may leave nothing. A line of text
        always names a document.
        """
        nothing = np.asarray(retrieved == 0)
        if not nothing.any() or (isinstance(self.source, TextSource) and not order.drop_self):
            return np.zeros(len(topics), np.bool_)
        named = set(self.topics)
        return nothing & np.fromiter((topic in named for topic in topics), np.bool_, len(topics))

    def __len__(self) -> int:
        return len(self.table.value)

    def __iter__(self) -> Iterator[str]:
        return iter(self.topics)

    def __contains__(self, topic: object) -> bool:
        return topic in self.topics

    def __getitem__(self, topic: str) -> list[tuple[str, float]]:
        return self.ranking(topic)

    def ranking(self, topic: str, order: Order = Order()) -> list[tuple[str, float]]:  # noqa: B008
        """One topic's documents and scores, best first."""
        from cranfield.base.kernels.twin import document_scores, rank

        if topic not in self:
            raise DataError(f"{self.name}: no topic {topic!r}; it has {len(self.topics)} others")
        numbers = {name: i for i, name in enumerate(self.table.topics)}
        rows = np.flatnonzero(self.table.topic == numbers[encode(topic)])
        names = list(self.table.documents.take(rows))
        scores, _ = document_scores(encode(topic), names, self.table.value[rows], order)
        ranked = list(scores.items())
        best, _, _ = rank(list(scores), np.array(list(scores.values())), order)
        return [(decode(document), score) for document, score in (ranked[i] for i in best)]

    def to_dict(self) -> dict[str, dict[str, float]]:
        """The run as `{topic: {document: score}}`, in input order; if a document is repeated, its last row counts."""
        topics = self.table.topics.text()
        answer: dict[str, dict[str, float]] = {topic: {} for topic in topics}
        rows = zip(self.table.topic.tolist(), self.table.documents, self.table.value.tolist(), strict=True)
        for t, document, score in rows:
            answer[topics[t]][decode(document)] = score
        return answer

    def hits(self, index: Index, order: Order, threads: int = 1) -> HitRows:
        """The judged documents that the run returned, with their ranks: the join with an index of judgments."""
        source = self.source
        if isinstance(source, TextSource):
            hits = source.hits(index, order, threads)
            self._tag = self._tag or hits.tag
            return hits
        if isinstance(source, Mapping) and not (order.collapse or order.drop_self):
            return self._hits_of_mapping(index, source, order)
        try:
            hits = hits_of_table(index, self.table, order)
        except FaultError as error:
            raise duplicate_row(self, error.fault.offset) from None
        hits.skipped = self.table.skipped
        return hits

    def _hits_of_mapping(self, index: Index, source: Mapping[str, Mapping[str, float]], order: Order) -> HitRows:
        try:
            hits = hits_of_mapping(index, source, order)
        except ValueError:
            refuse_null(source, self.name)  # the kernel stops at a NUL without naming the id
            raise
        if self._unread:
            for topic in hits.others:  # the kernel reads the judged topics only
                _refuse_null_ids(source[topic], "document", self.name)
            self._unread = False
        return hits

    def _repr_html_(self) -> str:
        """The view of a notebook: counts, and the best documents of the first topics."""
        caption = f"Run {self.name}: {counted(len(self.topics), 'topic')}, {counted(len(self), 'document')}"
        rows = []
        for topic in self.topics[:FIRST_TOPICS]:
            ranking = self[topic]
            best = ", ".join(f"{document} ({score:g})" for document, score in ranking[:FIRST_DOCUMENTS])
            rows.append([topic, f"{len(ranking):,}", best])
        return preview(caption, ["topic", "documents", "the best (score)"], rows, len(self.topics))

    def __repr__(self) -> str:
        return f"<Run {self.name}>"


FIRST_DOCUMENTS = 3  # per topic, in a notebook


def table_of(source: Mapping[str, Mapping[str, float]] | TextSource | RowTable, what: str, value: str) -> RowTable:
    """The source as columns. `what` and `value` are words for messages: "a run", "score"."""
    if isinstance(source, RowTable):
        return source
    if isinstance(source, TextSource):
        return source.table()
    quick = rows_of_mapping(source, finite=value == "grade")
    if quick is not None:
        return quick
    sizes: list[int] = []
    documents: list[str] = []
    values: list[float] = []
    for topic, rows in source.items():
        if not isinstance(topic, str) or not isinstance(rows, Mapping):
            raise DataError(f"{what} maps a topic's id (text) to {{document: {value}}}, found {topic!r}: {rows!r:.60}")
        _refuse_odd(topic, rows, value)
        sizes.append(len(rows))
        documents += rows
        values += rows.values()
    return _table(list(source), sizes, documents, np.array(values, np.float64))


def _refuse_ranks_twice(table: RowTable, where: str) -> None:
    """Raise DataError if two documents of a topic have the same rank: their order is unknown."""
    order = np.lexsort((table.value, table.topic))
    topic, rank = table.topic[order], table.value[order]
    twice = np.flatnonzero((topic[1:] == topic[:-1]) & (rank[1:] == rank[:-1]))
    if len(twice):
        at = int(twice[0])
        name = decode(table.topics[int(topic[at])])
        raise DataError(f"{where}: rank {abs(rank[at]):g} occurs twice for topic {name!r}; scores=rank needs each once")


def _refuse_odd(topic: str, rows: Mapping[str, float], value: str) -> None:
    """Raise DataError at an id that is not text or an invalid value: grades must be finite, scores must not be NaN."""
    usual = set(map(type, rows)) <= {str} and set(map(type, rows.values())) <= {int, float, bool}
    if usual and not any(number != number or number in INFINITE for number in rows.values()):
        return
    refuse_ids({topic: rows})
    for document, number in rows.items():
        try:
            fine = math.isfinite(number) or (value == "score" and not math.isnan(number))
        except (TypeError, ValueError, OverflowError):
            fine = False
        if not fine:
            kind = "a finite grade" if value == "grade" else "a number as its score"
            raise DataError(f"topic {topic!r}, document {document!r}: expected {kind}, found {number!r}")


INFINITE = (float("inf"), float("-inf"))
ONE_COUNTS = "duplicates=first, last or best says which line counts"


def duplicate_row(run: Run, row: int) -> BadLineError:
    """The error about a row that repeats a document of its topic."""
    if isinstance(run.source, TextSource):
        return bad_line(run.source, LineFault(int(run.table.start[row]), "duplicate"))
    topic = decode(run.table.topics[int(run.table.topic[row])])
    document = decode(run.table.documents[row])
    return DuplicateError(run.name, row + 1, f"document {document!r} occurs twice for topic {topic!r}", ONE_COUNTS)


def bad_line(source: TextSource, fault: LineFault) -> BadLineError:
    """The error about a bad line: where it is, what was expected, what was found."""
    buffer, layout = source.buffer, source.layout
    raw = bytes(buffer[fault.offset : fault.offset + 65536]).partition(b"\n")[0]
    fields = raw.split()
    line = source.line(fault.offset)
    if fault.why == "duplicate":
        topic, document = decode(fields[layout.topic]), decode(fields[layout.document])
        problem = f"document {document!r} occurs twice for topic {topic!r}"
        return DuplicateError(source.where, line, problem, ONE_COUNTS)
    if fault.why == "value":
        name = layout.columns.split()[layout.value]
        field = decode(fields[layout.value])[:60]
        kind = "a finite number" if layout.finite else "a number"
        problem = f"expected {kind} in column {layout.value + 1} ({name}), found {field!r}"
    else:
        count = "a blank line" if fault.why == "blank" else len(fields)
        problem = f"expected {layout.fewest} columns ({layout.columns}), found {count}"
    return BadLineError(source.where, line, problem)
