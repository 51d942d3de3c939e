"""A file under examination: its bytes and rows, what was found in them, and the way back from an offset to its line.

Files may hold many million lines, so a check works on columns of numbers and blocks of bytes; ids
become Python text only where they are shown.
"""

from __future__ import annotations

import os
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cranfield.check.findings import CODES, Finding
from cranfield.check.keys import keys, spread
from cranfield.errors import DataError
from cranfield.formats import open_buffer
from cranfield.kernels import Layout, Strings, Table, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


Kind = Literal["run", "qrels"]
Array: TypeAlias = npt.NDArray[Any]

SHOWN = 5  # how many lines a finding names
CHUNK = 1 << 23  # bytes looked at in one go


class File:
    """A file's bytes and rows, what was found in them so far, and the way back from an offset to its line."""

    def __init__(self, where: str, buffer: Any = b"") -> None:
        self.where = where
        self.buffer = buffer
        self.data: npt.NDArray[np.uint8] = np.frombuffer(buffer, np.uint8)
        self.kind: Kind | None = None
        self.layout: Layout | None = None
        self.rows: Table = _no_rows()
        self.findings: list[Finding] = []

    def add(self, code: str, detail: str, count: int = 1, at: Sequence[tuple[int, str]] = ()) -> None:
        """Report a problem: what exactly was found, how often, and the offset and text of its first lines."""
        lines = [self.line(offset) for offset, _ in at[:SHOWN]]
        examples = [f"line {line:,}: {text}" for line, (_, text) in zip(lines, at, strict=False) if text]
        self.report(code, detail, count, lines[0] if lines else None, examples)

    def add_rows(self, code: str, detail: str, rows: Array, text: Callable[[int], str]) -> None:
        """Report a problem of some rows of the table, each told by `text`."""
        start = self.rows.start
        if len(start):
            self.add(code, detail, len(rows), [(int(start[row]), text(int(row))) for row in rows[:SHOWN]])
        else:
            examples = [f"row {row + 1:,}: {text(int(row))}" for row in rows[:SHOWN]]
            self.report(code, detail, len(rows), None, examples)

    def add_names(self, code: str, detail: str, names: Sequence[str]) -> None:
        """Report a problem of some ids that stand on no single line."""
        shown = ", ".join(show(name) for name in names[:SHOWN]) + (" …" if len(names) > SHOWN else "")
        self.report(code, f"{detail}: {shown}", len(names), None, [])

    def report(self, code: str, detail: str, count: int, line: int | None, examples: Sequence[str]) -> None:
        """Report a problem in full."""
        known = CODES[code]
        message = f"{known.what}{': ' if detail else ''}{detail}. {known.advice}"
        self.findings.append(Finding(self.where, line, known.severity, code, message, count, tuple(examples)))

    def found(self, *codes: str) -> bool:
        """Whether one of these problems was reported."""
        return any(finding.code in codes for finding in self.findings)

    @cached_property
    def newlines(self) -> Array:
        """Where the line feeds are."""
        return self.where_bytes(10)

    @cached_property
    def line_starts(self) -> Array:
        """Where each line starts."""
        starts: Array = np.r_[np.zeros(1, np.int64), self.newlines + 1]
        return starts[starts < len(self.data)]

    def line(self, offset: int) -> int:
        """The number of the line that holds an offset, counted from 1."""
        return int(np.searchsorted(self.newlines, offset)) + 1

    def text(self, offset: int) -> bytes:
        """The line that starts at an offset."""
        return bytes(self.data[offset : offset + 65536]).split(b"\n", 1)[0]

    def chunks(self) -> Iterable[tuple[int, npt.NDArray[np.uint8]]]:
        """The bytes, in pieces, and where each piece starts."""
        for at in range(0, len(self.data), CHUNK):
            yield at, self.data[at : at + CHUNK]

    def where_bytes(self, *wanted: int) -> Array:
        """The offsets of the bytes of these values."""
        chosen = bytes_among(wanted)
        return np.concatenate(
            [np.zeros(0, np.int64), *(np.flatnonzero(chosen[part]) + at for at, part in self.chunks())]
        )

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
        """The rows whose topic and document (and further columns) came before, and the rows where they first came."""
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
    """A table of 256 truths: which bytes are among the values."""
    return np.isin(np.arange(256), list(values))


def byte_counts(data: npt.NDArray[np.uint8]) -> Array:
    """How often each byte occurs; counted in pairs, which is twice as fast."""
    pairs = np.zeros(65536, np.int64)
    even = data[: len(data) & ~1].view(np.uint16)
    for at in range(0, len(even), CHUNK):
        pairs += np.bincount(even[at : at + CHUNK], minlength=65536)
    grid = pairs.reshape(256, 256)
    counts: Array = grid.sum(0) + grid.sum(1) + np.bincount(data[len(data) & ~1 :], minlength=256)
    return counts


IS_WHITE = bytes_among(b" \t\n\r\x0b\x0c")


def _no_rows() -> Table:
    none = Strings.of([])
    whole = np.zeros(0, np.int32)
    return Table(none, whole, none, np.zeros(0), none, whole, np.zeros(0, np.int64))


def show(text: str) -> str:
    """An id or a line as a message quotes it."""
    return repr(text if len(text) <= 60 else text[:57] + "…")


def n_of(count: int, word: str) -> str:
    """A count and its noun: 1 line, 12 lines."""
    return f"{count:,} {word if count == 1 else word + 's'}"


def unpack(path: str | os.PathLike[str], where: str) -> tuple[Any, str]:
    """A file's bytes, unpacked; and what is wrong with a packed file of which only a part could be."""
    try:
        return open_buffer(path), ""
    except DataError as error:
        kept = _salvage(where) if os.path.isfile(where) else b""
        if not kept:
            raise
        return kept, str(error).removeprefix(f"{where}: ")


PACKERS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ": "lzma", b"\x28\xb5\x2f\xfd": "backports.zstd"}


def _salvage(path: str) -> bytes:
    """What can be unpacked of a damaged file."""
    import importlib

    with open(path, "rb") as file:
        head = file.read(6)
    module = next((name for start, name in PACKERS.items() if head.startswith(start)), None)
    if module is None:
        return b""
    if sys.version_info >= (3, 14):
        module = module.replace("backports", "compression")
    parts: list[bytes] = []
    with importlib.import_module(module).open(path, "rb") as packed:
        try:
            while part := packed.read1(1 << 16):
                parts.append(part)
        except Exception:  # each codec has its own; the first of them was reported already
            pass
    return b"".join(parts)
