"""Input and output of the kernels: plain values around NumPy arrays, the same for both kernels.

Ids are bytes and are decoded only for display: real files hold ids in any encoding,
and most lines never need to become Python strings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from cranfield.base.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

Buffer: TypeAlias = Any  # anything with the buffer protocol: bytes, memoryview, mmap
Floats: TypeAlias = "npt.NDArray[np.float64]"
Ints: TypeAlias = "npt.NDArray[np.int32]"
Offsets: TypeAlias = "npt.NDArray[np.int64]"

CHUNK = 1 << 16  # strings copied at a time
WIDE = 1 << 24  # bytes of a matrix of strings, at the most


def decode(raw: bytes) -> str:
    """Turn an id's bytes into text that `encode` turns back into the same bytes, whatever they are."""
    return raw.decode("utf-8", "surrogateescape")


def refuse_ids(run: Mapping[Any, Iterable[Any]]) -> None:
    """Raise DataError at a topic or document id that is not text."""
    for topic, documents in run.items():
        if not isinstance(topic, str):
            raise DataError(f"topic {topic!r}: expected an id that is text, found {type(topic).__name__}")
        if set(map(type, documents)) <= {str}:
            continue
        for document in documents:
            if not isinstance(document, str):
                where = f"topic {topic!r}, document {document!r}"
                raise DataError(f"{where}: expected an id that is text, found {type(document).__name__}")


def score_of(topic: str, document: str, raw: Any) -> float:
    """A score as a float; DataError if it is not a number."""
    try:
        score = math.nan if isinstance(raw, (str, bytes)) else float(raw)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if math.isnan(score):
        raise DataError(f"topic {topic!r}, document {document!r}: expected a number as its score, found {raw!r:.60}")
    return score


def encode(text: str) -> bytes:
    """Turn an id into bytes; a lone surrogate that does not stand for a byte is encoded as it is."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


class Strings:
    """A column of byte strings: one block of bytes, and where each string starts in it."""

    __slots__ = ("_text", "block", "offsets")

    def __init__(self, block: Buffer, offsets: Offsets, text: list[str] | None = None) -> None:
        self.block = memoryview(block).cast("B")
        self.offsets = offsets
        self._text = text

    @classmethod
    def of(cls, values: Iterable[bytes]) -> Strings:
        """A column of these byte strings."""
        items = list(values)
        return cls(b"".join(items), offsets_of(np.fromiter(map(len, items), np.int64, len(items))))

    @classmethod
    def of_text(cls, values: list[str]) -> Strings:
        """A column of these texts, which `text()` returns again without decoding."""
        text = "".join(values)
        if not text.isascii():
            column = cls.of(encode(value) for value in values)
            column._text = values
            return column
        return cls(text.encode(), offsets_of([len(value) for value in values]), values)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> bytes:
        return bytes(self.block[self.offsets[i] : self.offsets[i + 1]])

    def __iter__(self) -> Iterator[bytes]:
        block = bytes(self.block)
        ends = self.offsets.tolist()
        return (block[start:end] for start, end in zip(ends, ends[1:], strict=False))

    @classmethod
    def concatenated(cls, columns: Sequence[Strings]) -> Strings:
        """The concatenation of several columns."""
        if len(columns) == 1:
            return columns[0]
        ends = np.cumsum([0, *(int(column.offsets[-1]) for column in columns)])
        offsets = [column.offsets[:-1] + end for column, end in zip(columns, ends, strict=False)]
        block = b"".join(column.block[: int(column.offsets[-1])] for column in columns)
        return cls(block, np.concatenate([*offsets, ends[-1:]]))

    def take(self, rows: npt.NDArray[Any]) -> Strings:
        """The strings at `rows`, in that order, without a Python object for each."""
        source, starts = np.frombuffer(self.block, np.uint8), self.offsets[rows]
        return packed(
            self.offsets[rows + 1] - starts, lambda start, stop, width: cells(source, starts[start:stop], width)
        )

    def text(self) -> list[str]:
        """All strings, decoded once."""
        if self._text is None:
            block, ends = bytes(self.block), self.offsets.tolist()
            if block.isascii():
                whole = block.decode()
                self._text = [whole[start:end] for start, end in zip(ends, ends[1:], strict=False)]
            else:
                self._text = [decode(item) for item in self]
        return self._text


def offsets_of(lengths: npt.ArrayLike) -> Offsets:
    """Where strings of these lengths start in their block, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def packed(lengths: npt.NDArray[Any], lay: Callable[[int, int, int], npt.NDArray[Any]]) -> Strings:
    """A column of strings of these lengths. `lay(start, stop, width)` returns a matrix with one row per string.

    The matrix is as wide as the longest of its strings; a mask cuts off what lies behind the others.
    """
    offsets = offsets_of(lengths)
    block = np.empty(int(offsets[-1]), np.uint8)
    start = 0
    while start < len(lengths):
        stop = min(start + CHUNK, len(lengths))
        while stop > start + 1 and int(lengths[start:stop].max()) * (stop - start) > WIDE:
            stop = (start + stop) // 2
        part, target = lengths[start:stop], block[offsets[start] : offsets[stop]]
        width = int(part.max())
        laid = lay(start, stop, width)
        target[:] = laid.reshape(-1) if laid.size == len(target) else laid[np.arange(width) < part[:, None]]
        start = stop
    return Strings(block if len(block) else b"", offsets)


def cells(source: npt.NDArray[Any], starts: Offsets, width: int) -> npt.NDArray[Any]:
    """The `width` bytes from each start; bytes beyond the end of the source are 0."""
    if not width or not len(starts):
        return np.zeros((len(starts), width), np.uint8)
    safe = len(source) - width
    if safe >= 0 and int(starts.max()) <= safe:
        return _windows(source, width)[starts]
    base = max(safe, 0)
    tail = _windows(np.r_[source[base:], np.zeros(width, np.uint8)], width)
    answer = np.empty((len(starts), width), np.uint8)
    late = starts > safe
    answer[late] = tail[np.minimum(starts[late] - base, len(tail) - 1)]
    if not late.all():
        answer[~late] = _windows(source, width)[starts[~late]]
    return answer


def _windows(source: npt.NDArray[Any], width: int) -> npt.NDArray[Any]:
    """All stretches of `width` bytes, without a copy; NumPy's own function for this takes ten times as long."""
    return np.ndarray((len(source) - width + 1, width), np.uint8, source, strides=(1, 1))


class LineLayout(NamedTuple):
    """The meaning of each column of a file of white-space separated lines, counted from 0."""

    columns: str  # for messages: "topic Q0 document rank score tag"
    topic: int
    document: int
    value: int
    label: int = -1  # the run's tag, or the qrels' second column; -1 where there is none
    most: int | None = None  # the most columns allowed; the fewest is what `columns` names
    descending: bool = True  # False where the value is a rank, so that smaller comes first
    finite: bool = False  # grades must be finite, scores only not NaN
    comments: bool = True  # lines that start with # are skipped
    blanks: bool = True  # blank lines are skipped

    @property
    def fewest(self) -> int:
        """The number of columns a line must have."""
        return len(self.columns.split())


class Order(NamedTuple):
    """How the documents of a topic are ordered, and which of them count."""

    ties: Literal["descending", "ascending", "input"] = "descending"  # by document id, as bytes; or as given
    single: bool = False  # compare scores as 32-bit floats, as trec_eval 9 does
    duplicates: Literal["error", "first", "last", "best"] = "error"
    collapse: bytes = b""  # cut document ids here: doc#3 counts as doc, and its best passage decides
    drop_self: bool = False  # leave out a document whose id is the topic's


def compared(scores: Floats, order: Order) -> Floats:
    """The scores as the order compares them; beyond the range of 32-bit floats they are infinite, as in trec_eval 9."""
    with np.errstate(over="ignore"):
        return scores.astype(np.float32).astype(np.float64) if order.single else scores


class LineFault(NamedTuple):
    """A line that cannot be used: its offset in the buffer, and the reason."""

    offset: int
    why: Literal["columns", "value", "duplicate", "blank"]


class FaultError(Exception):
    """Raised by a kernel at a bad line; the caller knows the file's name and writes the message."""

    def __init__(self, fault: LineFault) -> None:
        super().__init__(fault)
        self.fault = fault


@dataclass(eq=False, repr=False)
class RowTable:
    """The rows of a file. `topic` and `label` number the distinct ids in the order of their first line."""

    topics: Strings
    topic: Ints
    documents: Strings
    value: Floats
    labels: Strings = field(default_factory=lambda: Strings.of([]))
    label: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    start: Offsets = field(default_factory=lambda: np.zeros(0, np.int64))  # of each row's line, where there was a file
    skipped: list[LineFault] = field(default_factory=list)

    def take(self, rows: npt.NDArray[Any]) -> RowTable:
        """The table of these rows, in that order."""
        label = self.label[rows] if len(self.label) else self.label
        start = self.start[rows] if len(self.start) else self.start
        topic, documents, value = self.topic[rows], self.documents.take(rows), self.value[rows]
        return replace(self, topic=topic, documents=documents, value=value, label=label, start=start)


@dataclass(eq=False, repr=False)
class HitRows:
    """The judged documents that a run returned, by topic and then by rank; `row` numbers the index's rows.

    `single` has a row (topic, row, rank, first, last) for each hit that ties with more documents when scores are
    compared as 32-bit floats: the rank that it would have then. It is empty if scores are compared as 32-bit floats
    anyway, or if ties keep the input order.
    """

    topic: Ints
    row: Ints
    rank: Ints
    first: Ints  # the ranks that the document's tie group covers
    last: Ints
    retrieved: Ints  # documents returned for each topic of the index
    others: list[str]  # topics of the run that the index does not know
    tag: str | None = None  # the last line's
    skipped: list[LineFault] = field(default_factory=list)
    single: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 5), np.int32))


class Top(NamedTuple):
    """The best documents of every topic of one run, by topic and rank."""

    topics: Strings
    topic: Ints
    rank: Ints
    score: Floats
    documents: Strings


class FieldNumbers(NamedTuple):
    """The number of the field that holds each part of a row, counted from 0; a label of -1 means no label."""

    topic: int
    document: int
    value: int
    label: int
    descending: bool  # False where the value is a rank
