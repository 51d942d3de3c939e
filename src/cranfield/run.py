"""A run: what one system answered, in order.

The order is by score, highest first. Documents with equal scores are ordered by id, as bytes,
descending, unless the conventions say otherwise; the rank column of a file decides nothing. The
kernels implement this rule, `Order` names its variants.

A run keeps what it was made from (the bytes of a file, a mapping, columns) and hands that to the
kernels, so that scoring a large file never builds seven million Python objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from mmap import mmap
from typing import TYPE_CHECKING

import numpy as np

from cranfield.answer import FIRST_TOPICS, amount, preview
from cranfield.errors import BadLineError, DataError, DuplicateError
from cranfield.kernels import (
    Fault,
    FaultError,
    Order,
    Strings,
    Table,
    decode,
    encode,
    hits_of_mapping,
    hits_of_table,
    hits_of_text,
    parse,
    rows_of_mapping,
    tops,
)
from cranfield.kernels.table import refuse_ids
from cranfield.lists import is_list, table_of_arrays, table_of_lists

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy.typing as npt

    from cranfield.kernels import Found, Index, Layout, Top
    from cranfield.kernels.table import Buffer, Ints


@dataclass
class Text:
    """The bytes of a file of lines, its layout, and the name to use in messages."""

    buffer: Buffer
    layout: Layout
    where: str
    lenient: bool = False

    def table(self) -> Table:
        """Its rows as columns."""
        self._refuse_null()
        try:
            return parse(self.buffer, self.layout, self.lenient)
        except FaultError as error:
            raise bad_line(self, error.fault) from None

    def hits(self, index: Index, order: Order, threads: int) -> Found:
        """What a kernel finds of an index in it, were it a run."""
        self._refuse_null()
        try:
            return hits_of_text(index, self.buffer, self.layout, order, self.lenient, threads)
        except FaultError as error:
            raise bad_line(self, error.fault) from None

    def tops(self, order: Order, depth: int | None) -> Top | None:
        """The best documents of each topic, were it a run; None where that takes a closer look than a kernel's."""
        self._refuse_null()
        try:
            return tops(self.buffer, self.layout, order, depth, self.lenient)
        except FaultError as error:
            raise bad_line(self, error.fault) from None

    def _refuse_null(self) -> None:
        """Stop at a NUL: no id holds one, and programs in C would take an id for its beginning."""
        null = _first_null(self.buffer)
        if null is not None:
            raise BadLineError(self.where, self.line(null), "expected ids without NUL, found one")

    def line(self, offset: int) -> int:
        """The number of the line that starts there."""
        return bytes(self.buffer[:offset]).count(b"\n") + 1


def _first_null(buffer: Buffer) -> int | None:
    """Where the first NUL stands: one quick pass, as every file is looked through."""
    whole = buffer.obj if isinstance(buffer, memoryview) else buffer
    if isinstance(whole, (bytes, mmap)) and len(whole) == len(buffer):
        place = whole.find(b"\0")
        return None if place < 0 else place
    content = np.frombuffer(buffer, np.uint8) if len(buffer) else np.ones(1, np.uint8)
    return int(np.argmin(content)) if content.min() == 0 else None


def refuse_null(source: Mapping[str, Any] | Text | Table, name: str) -> None:
    """Stop at a topic or document whose id holds a NUL; a file is looked at when it is read."""
    if isinstance(source, Table):
        for what, ids in (("topic", source.topics), ("document", source.documents)):
            if _first_null(ids.block) is not None:  # maybe between two ids
                _refuse_null_ids(ids.text(), what, name)
    elif isinstance(source, Mapping):
        _refuse_null_ids(source, "topic", name)
        for documents in source.values():
            _refuse_null_ids(documents, "document", name)


def _refuse_null_ids(ids: Any, what: str, name: str) -> None:
    try:
        if "\0" not in "".join(ids):  # a thousand ids in some microseconds
            return
    except TypeError:  # ids that are no text, which are refused in other words
        return
    odd = next(each for each in ids if "\0" in each)
    raise DataError(f"{name}: expected ids without NUL, found {what} {odd!r}")


class Run:
    """What one system answered. Make one from a mapping, or with `read_run` from a file or a frame.

    >>> run = Run({"q1": {"d1": 0.5, "d2": 0.9}}, name="bm25")
    >>> run["q1"]
    [('d2', 0.9), ('d1', 0.5)]

    Lists of documents, best first, and lists of (document, score) pairs will do as well.

    >>> Run({"q1": ["d2", "d1"]})["q1"]
    [('d2', 2.0), ('d1', 1.0)]
    """

    source: Mapping[str, Mapping[str, float]] | Text | Table

    def __init__(self, source: Mapping[str, Any] | Text | Table, name: str = "run", tag: str | None = None) -> None:
        if not isinstance(source, (Mapping, Text, Table)):
            raise DataError(f"a run is made from {{topic: {{document: score}}}}, found {type(source).__name__}")
        if isinstance(source, Mapping) and any(map(is_list, source.values())):
            source = table_of_lists(source)
        refuse_null(source, name)
        self._hold(source, name, tag)

    def _hold(self, source: Mapping[str, Any] | Text | Table, name: str, tag: str | None, unread: bool = False) -> None:
        self.source = source
        self.name = name
        self._tag = tag
        self._table: Table | None = None
        self._unread = unread  # whether documents of a mapping are still to be searched for NUL

    @classmethod
    def unread(cls, source: Mapping[str, Mapping[str, float]], name: str = "run", tag: str | None = None) -> Run:
        """A run whose documents are searched for NUL when they are read: to read each id twice would cost a third of scoring."""
        _refuse_null_ids(source, "topic", name)
        run = cls.__new__(cls)
        run._hold(source, name, tag, unread=True)
        return run

    @classmethod
    def from_arrays(
        cls, topics: Any, ids: Any, scores: Any = None, *, padding: int | str | None = -1, name: str = "run"
    ) -> Run:
        """A run from arrays, topics × depth, as vector indexes answer: NumPy's, or what `__array__` or DLPack makes one.

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
        run = Run.__new__(Run)
        run._hold(self.source, name, self._tag, self._unread)
        run._table = self._table
        return run

    def by_rank(self) -> Run:
        """The same run ordered by the rank column of its file, whatever the scores say; each rank may stand once."""
        source = self.source
        columns = source.layout.columns.split() if isinstance(source, Text) else []
        if not isinstance(source, Text) or "rank" not in columns:
            raise DataError(f"{self.name}: scores=rank goes by the rank column of a TREC file, and there is none")
        rank = columns.index("rank")
        if source.layout.value == rank:
            return self
        layout = source.layout._replace(value=rank, descending=False)
        run = Run(replace(source, layout=layout), self.name, self._tag)
        _refuse_ranks_twice(run.table, source.where)
        return run

    @property
    def table(self) -> Table:
        """The rows as columns, in the order given."""
        if self._table is None:
            if self._unread:
                refuse_null(self.source, self.name)
                self._unread = False
            self._table = table_of(self.source, "a run", "score")
        return self._table

    @property
    def topics(self) -> list[str]:
        """The topics answered, in the order given."""
        return list(self.source) if isinstance(self.source, Mapping) else self.table.topics.text()

    def empty_answers(self, topics: list[str], retrieved: Ints, order: Order) -> npt.NDArray[np.bool_]:
        """Of these topics, those that the run names and returns nothing for: an answer, unlike a topic it lacks.

        A mapping may say `{"q2": {}}`, and an order that drops the topic's own id may leave nothing. A line of text
        always names a document.
        """
        nothing = np.asarray(retrieved == 0)
        if not nothing.any() or (isinstance(self.source, Text) and not order.drop_self):
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
        from cranfield.kernels.twin import counted, rank

        if topic not in self:
            raise DataError(f"{self.name}: no topic {topic!r}; it has {len(self.topics)} others")
        numbers = {name: i for i, name in enumerate(self.table.topics)}
        rows = np.flatnonzero(self.table.topic == numbers[encode(topic)])
        names = list(self.table.documents.take(rows))
        scores, _ = counted(encode(topic), names, self.table.value[rows], order)
        ranked = list(scores.items())
        best, _, _ = rank(list(scores), np.array(list(scores.values())), order)
        return [(decode(document), score) for document, score in (ranked[i] for i in best)]

    def to_dict(self) -> dict[str, dict[str, float]]:
        """The run as `{topic: {document: score}}`, in the order given; the last of two equal documents stays."""
        topics = self.table.topics.text()
        answer: dict[str, dict[str, float]] = {topic: {} for topic in topics}
        rows = zip(self.table.topic.tolist(), self.table.documents, self.table.value.tolist(), strict=True)
        for t, document, score in rows:
            answer[topics[t]][decode(document)] = score
        return answer

    def hits(self, index: Index, order: Order, threads: int = 1) -> Found:
        """The judged documents that the run returned, and where: the join with an index of judgments."""
        source = self.source
        if isinstance(source, Text):
            found = source.hits(index, order, threads)
            self._tag = self._tag or found.tag
            return found
        if isinstance(source, Mapping) and not (order.collapse or order.drop_self):
            return self._hits_of_mapping(index, source, order)
        try:
            found = hits_of_table(index, self.table, order)
        except FaultError as error:
            raise duplicate_row(self, error.fault.offset) from None
        found.skipped = self.table.skipped
        return found

    def _hits_of_mapping(self, index: Index, source: Mapping[str, Mapping[str, float]], order: Order) -> Found:
        try:
            found = hits_of_mapping(index, source, order)
        except ValueError:
            refuse_null(source, self.name)  # the kernel stops at a NUL and does not say where
            raise
        if self._unread:
            for topic in found.others:  # the kernel reads the judged topics only
                _refuse_null_ids(source[topic], "document", self.name)
            self._unread = False
        return found

    def _repr_html_(self) -> str:
        """What a notebook shows: how much there is, and the best documents of the first topics."""
        caption = f"Run {self.name}: {amount(len(self.topics), 'topic')}, {amount(len(self), 'document')}"
        rows = []
        for topic in self.topics[:FIRST_TOPICS]:
            ranking = self[topic]
            best = ", ".join(f"{document} ({score:g})" for document, score in ranking[:FIRST_DOCUMENTS])
            rows.append([topic, f"{len(ranking):,}", best])
        return preview(caption, ["topic", "documents", "the best (score)"], rows, len(self.topics))

    def __repr__(self) -> str:
        return f"<Run {self.name}>"


FIRST_DOCUMENTS = 3  # of each topic, in a notebook


def table_of(source: Mapping[str, Mapping[str, float]] | Text | Table, what: str, value: str) -> Table:
    """Whatever it is as columns. `what` and `value` name it in messages: "a run", "score"."""
    if isinstance(source, Table):
        return source
    if isinstance(source, Text):
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
    return Table(
        Strings.of_text(list(source)),
        np.repeat(np.arange(len(source), dtype=np.int32), sizes),
        Strings.of_text(documents),
        np.array(values, np.float64),
    )


def _refuse_ranks_twice(table: Table, where: str) -> None:
    """Stop at two documents of a topic with the same rank: nobody knows which comes first."""
    order = np.lexsort((table.value, table.topic))
    topic, rank = table.topic[order], table.value[order]
    twice = np.flatnonzero((topic[1:] == topic[:-1]) & (rank[1:] == rank[:-1]))
    if len(twice):
        at = int(twice[0])
        name = decode(table.topics[int(topic[at])])
        raise DataError(f"{where}: rank {abs(rank[at]):g} stands twice for topic {name!r}; scores=rank needs each once")


def _refuse_odd(topic: str, rows: Mapping[str, float], value: str) -> None:
    """Stop at a document that is no text or a value that is no number; grades must be finite, scores only not NaN."""
    usual = set(map(type, rows)) <= {str} and set(map(type, rows.values())) <= {int, float, bool}
    if usual and not any(number != number or number in INFINITE for number in rows.values()):
        return
    for document, number in rows.items():
        try:
            fine = isinstance(document, str) and not isinstance(number, (str, bytes)) and float(number) == float(number)
            fine = fine and (value == "score" or abs(float(number)) != np.inf)
        except (TypeError, ValueError, OverflowError):
            fine = False
        if not isinstance(document, str):
            refuse_ids({topic: rows})
        if not fine:
            kind = "a finite grade" if value == "grade" else "a number as its score"
            raise DataError(f"topic {topic!r}, document {document!r}: expected {kind}, found {number!r}")


INFINITE = (float("inf"), float("-inf"))
ONE_COUNTS = "duplicates=first, last or best says which line counts"


def duplicate_row(run: Run, row: int) -> BadLineError:
    """The error to raise at a row that names a document again for its topic."""
    if isinstance(run.source, Text):
        return bad_line(run.source, Fault(int(run.table.start[row]), "duplicate"))
    topic = decode(run.table.topics[int(run.table.topic[row])])
    document = decode(run.table.documents[row])
    return DuplicateError(run.name, row + 1, f"document {document!r} stands twice for topic {topic!r}", ONE_COUNTS)


def bad_line(source: Text, fault: Fault) -> BadLineError:
    """Word what is wrong with a line: where, what was expected, what was found."""
    buffer, layout = source.buffer, source.layout
    raw = bytes(buffer[fault.offset : fault.offset + 65536]).partition(b"\n")[0]
    fields = raw.split()
    columns = f"expected {layout.fewest} columns ({layout.columns})"
    if fault.why == "blank":
        problem = f"{columns}, found a blank line"
    elif fault.why == "columns":
        problem = f"{columns}, found {len(fields)}"
    elif fault.why == "value":
        name = layout.columns.split()[layout.value]
        shown = decode(fields[layout.value])[:60]
        kind = "a finite number" if layout.finite else "a number"
        problem = f"expected {kind} in column {layout.value + 1} ({name}), found {shown!r}"
    else:
        topic, document = decode(fields[layout.topic]), decode(fields[layout.document])
        problem = f"document {document!r} stands twice for topic {topic!r}"
    line = source.line(fault.offset)
    if fault.why == "duplicate":
        return DuplicateError(source.where, line, problem, ONE_COUNTS)
    return BadLineError(source.where, line, problem)
