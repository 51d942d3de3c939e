"""A file under check: its bytes and rows, and the line of each offset.

Files may hold many million lines, so a check works on columns of numbers and blocks of bytes; ids
become Python text only where they are shown.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cranfield.base.errors import DataError
from cranfield.base.findings import SHOWN, Finding, show
from cranfield.base.kernels import LineLayout, RowTable, Strings, decode
from cranfield.formats.csv_tables import DELIMITERS, HEAD, as_utf8, header_text
from cranfield.formats.streams import Opened, open_buffer, salvaged, wide_encoding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cranfield.formats.csv_tables import Dialect


Kind = Literal["run", "qrels"]
Array: TypeAlias = npt.NDArray[Any]

CHUNK = 1 << 23  # bytes checked at a time


class CheckedFile:
    """The bytes of a file, and its rows once its format is recognised."""

    def __init__(self, where: str, buffer: Any = b"") -> None:
        self.where = where
        self.buffer = buffer
        self.data: npt.NDArray[np.uint8] = np.frombuffer(buffer, np.uint8)
        self.kind: Kind | None = None
        self.layout: LineLayout | None = None
        none, whole = Strings.of([]), np.zeros(0, np.int32)
        self.rows = RowTable(none, whole, none, np.zeros(0), none, whole, np.zeros(0, np.int64))

    def recode(self, dialect: Dialect) -> Opened:
        """Recode a delimited table to UTF-8; other files and mixed encodings stay."""
        if dialect.encoding is None and self._is_utf8():
            return Opened(self.buffer, self.where, "")
        try:
            text, encoding = as_utf8(bytes(self.buffer), self.where, dialect.encoding)
        except DataError:
            return Opened(self.buffer, self.where, "")
        if not any(sign in header_text(text[:HEAD]) for sign in DELIMITERS):
            return Opened(self.buffer, self.where, "")
        self.buffer, self.data = text, np.frombuffer(text, np.uint8)
        return Opened(text, self.where, "", encoding)

    def _is_utf8(self) -> bool:
        raw = bytes(self.buffer)
        if wide_encoding(raw[:64]):
            return False
        try:
            return raw.isascii() or bool(raw.decode())
        except UnicodeDecodeError:
            return False

    # findings

    def finding(self, code: str, detail: str, count: int = 1, at: Sequence[tuple[int, str]] = ()) -> Finding:
        """A finding with its detail, its count, and the offset and text of its first lines."""
        lines = [self.line(offset) for offset, _ in at[:SHOWN]]
        examples = [f"line {line:,}: {text}" for line, (_, text) in zip(lines, at, strict=False) if text]
        return Finding.of(code, self.where, detail, count, line=lines[0] if lines else None, examples=examples)

    def of_rows(self, code: str, detail: str, rows: Array, text: Callable[[int], str]) -> Iterator[Finding]:
        """A finding about rows of the table, if there are any; `text` describes a row."""
        start = self.rows.start
        if len(rows) and len(start):
            yield self.finding(code, detail, len(rows), [(int(start[row]), text(int(row))) for row in rows[:SHOWN]])
        elif len(rows):
            examples = [f"row {row + 1:,}: {text(int(row))}" for row in rows[:SHOWN]]
            yield Finding.of(code, self.where, detail, len(rows), examples=examples)

    def of_row(self, code: str, detail: str, count: int, row: int) -> Finding:
        """A finding that occurs first in a row of the table."""
        return self.finding(code, detail, count, [(int(self.rows.start[row]), "")] if len(self.rows.start) else [])

    # bytes and lines

    @cached_property
    def newlines(self) -> Array:
        """The offsets of line feeds."""
        return self.where_bytes(10)

    @cached_property
    def line_starts(self) -> Array:
        """The offset of each line."""
        starts: Array = np.r_[np.zeros(1, np.int64), self.newlines + 1]
        return starts[starts < len(self.data)]

    def line(self, offset: int) -> int:
        """The number of the line that holds an offset, counted from 1."""
        return int(np.searchsorted(self.newlines, offset)) + 1

    def text(self, offset: int) -> bytes:
        """The line that starts at an offset."""
        return bytes(self.data[offset : offset + 65536]).split(b"\n", 1)[0]

    def chunks(self) -> Iterable[tuple[int, npt.NDArray[np.uint8]]]:
        """The offset and bytes of each chunk."""
        for at in range(0, len(self.data), CHUNK):
            yield at, self.data[at : at + CHUNK]

    def where_bytes(self, *values: int) -> Array:
        """The offsets of the bytes of these values."""
        matches = bytes_among(values)
        offsets = [np.flatnonzero(matches[part]) + at for at, part in self.chunks()]
        return np.concatenate([np.zeros(0, np.int64), *offsets])

    def line_starts_at(self, offsets: Array) -> Array:
        """The starts of the lines that hold these offsets, each once."""
        return np.unique(self.line_starts[np.searchsorted(self.newlines, offsets)])

    @cached_property
    def histogram(self) -> Array:
        """How often each byte occurs."""
        return byte_counts(self.data)

    # the rows, for messages and for comparison

    def topic(self, row: int) -> str:
        """The topic of a row."""
        return decode(self.rows.topics[int(self.rows.topic[row])])

    def document(self, row: int) -> str:
        """The document of a row."""
        return decode(self.rows.documents[row])

    def pair(self, row: int) -> str:
        """The topic and the document of a row, in words."""
        return f"topic {show(self.topic(row))}, document {show(self.document(row))}"

    def line_of_row(self, row: int) -> int:
        """The line of a row; the row's number where there are no lines."""
        return self.line(int(self.rows.start[row])) if len(self.rows.start) else row + 1

    @cached_property
    def keys(self) -> Array:
        """A number for each document's id; equal ids have equal numbers."""
        return keys(self.rows.documents)

    def repeats(self, *columns: Array) -> tuple[Array, Array]:
        """The rows that repeat the topic, document (and further columns) of an earlier row, and those earlier rows."""
        key = self.keys
        for column in (self.rows.topic, *columns):
            key = spread(key, column.astype(np.uint64))
        ordered = np.sort(key)
        if not (ordered[1:] == ordered[:-1]).any():
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        _, first, back = np.unique(key, return_index=True, return_inverse=True)
        again = np.flatnonzero(first[back] != np.arange(len(key)))
        return again, first[back][again]

    @cached_property
    def depth(self) -> Array:
        """How many rows each topic has."""
        return np.bincount(self.rows.topic, minlength=len(self.rows.topics))


def bytes_among(values: Iterable[int]) -> npt.NDArray[np.bool_]:
    """A boolean table of 256 entries: whether each byte is among the values."""
    return np.isin(np.arange(256), list(values))


IS_WHITE = bytes_among(b" \t\n\r\x0b\x0c")


def byte_counts(data: npt.NDArray[np.uint8]) -> Array:
    """How often each byte occurs; counted in pairs, which is twice as fast."""
    pairs = np.zeros(65536, np.int64)
    even = data[: len(data) & ~1].view(np.uint16)
    for at in range(0, len(even), CHUNK):
        pairs += np.bincount(even[at : at + CHUNK], minlength=65536)
    grid = pairs.reshape(256, 256)
    counts: Array = grid.sum(0) + grid.sum(1) + np.bincount(data[len(data) & ~1 :], minlength=256)
    return counts


def unpacked(path: str | os.PathLike[str], where: str) -> tuple[Any, str]:
    """The unpacked bytes of a file; for a damaged packed file the readable part, and the error."""
    try:
        return open_buffer(path), ""
    except DataError as error:
        salvage = salvaged(where) if os.path.isfile(where) else b""
        if not salvage:
            raise
        return salvage, str(error).removeprefix(f"{where}: ")


# numbers for byte strings: equal strings have equal keys, different ones hardly ever (64 bits), without Python objects


def words(data: Array, at: Array, left: Array) -> Array:
    """Eight bytes from each offset as one number, with those beyond `left` set to 0. `data` needs 8 spare bytes."""
    windows = np.ndarray((max(len(data) - 7, 0),), "V8", data, strides=(1,))
    raw = windows[np.minimum(at, len(windows) - 1)].view("<u8")
    masks = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
    masked: Array = raw & masks[np.clip(left, 0, 8)]
    return masked


def spread(keys: Array, more: Array) -> Array:
    """Mix another number into each key, so that equal pairs have equal keys and others hardly ever."""
    keys = (keys ^ more) * np.uint64(0x9E3779B97F4A7C15)
    mixed: Array = keys ^ (keys >> np.uint64(29))
    return mixed


def keys(strings: Strings, folded: bool = False) -> Array:
    """A 64-bit key for each string; with `folded`, upper and lower case are the same."""
    data = np.r_[np.frombuffer(strings.block, np.uint8), np.zeros(8, np.uint8)]
    if folded:
        data[(data >= ord("A")) & (data <= ord("Z"))] |= 0x20
    start, length = strings.offsets[:-1], np.diff(strings.offsets)
    keys = spread(np.zeros(len(start), np.uint64), length.astype(np.uint64))
    for done in range(0, int(length.max(initial=0)), 8):
        rows = np.flatnonzero(length > done) if done else slice(None)
        keys[rows] = spread(keys[rows], words(data, start[rows] + done, length[rows] - done))
    return keys
