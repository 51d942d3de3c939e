"""The base class of file formats: how a format is recognised, read and written, and its properties.

A format is a subclass of `Format` in a file of `formats/files/`. Nothing else is needed: detection, `check`,
`convert`, the command line, the documentation and the promise tests find it there. A format reads bytes into columns
and writes columns as pieces of bytes; opening, unpacking and replacing files is done elsewhere, once for all.
Formats do not know each other: each says how well a file fits, and the registry compares.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from copy import copy
from enum import IntEnum
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from cranfield.base.errors import DataError, FormatError
from cranfield.base.kernels import LineLayout, RowTable, Strings, decode, encode, run_lines
from cranfield.base.qrels import Duplicates, Extras, FileRow, Qrels
from cranfield.base.registry import Member, Registry
from cranfield.base.run import TextSource
from cranfield.formats.csv_tables import DETECTED, Dialect
from cranfield.formats.streams import Opened, packing_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cranfield.base.kernels.table import Buffer, Ints


Kind: TypeAlias = Literal["run", "qrels", "prefs"]
Kinds: TypeAlias = frozenset[Kind]
Fields: TypeAlias = "Mapping[str, str | Sequence[str]]"  # role of a column → its name in this file
Source: TypeAlias = "TextSource | RowTable | Mapping[str, Mapping[str, float]]"

NOUNS: dict[Kind, str] = {"run": "a run", "qrels": "qrels", "prefs": "preferences"}
BOTH: Kinds = frozenset(("run", "qrels"))
USUAL: Fields = {}  # columns have their usual names

HEAD = 65536  # bytes that decide the format
LOOKED_AT = 20  # lines that decide the format
BATCH = 10_000  # lines written at a time
BLANK = rb"[ \t\n\r\v\f]"
BOM = b"\xef\xbb\xbf"


class Strength(IntEnum):
    """How well a file fits a format, from weak to strong."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> Strength:
        """A strength, and what it means."""
        member = int.__new__(cls, value)
        member._value_, member.meaning = value, meaning
        return member

    POSSIBLE = 1, "the file may begin like this; an error appears only when it is read"
    COUNT = 2, "most lines have the right number of columns"
    COLUMNS = 3, "at least one line has the right columns, with a number as score or grade"
    VALUES = 4, "every line has the right columns, and several columns hold values that only this format allows"
    NAMES = 5, "the first line names the columns"
    SIGNATURE = 6, "the file begins as no other format does"

    def of(self, *kinds: Kind) -> FormatEvidence:
        """Evidence of this strength for a file that may hold these kinds."""
        return FormatEvidence(self, frozenset(kinds))


class FormatEvidence(NamedTuple):
    """How well a file fits a format, and what it may then hold."""

    strength: Strength
    kinds: Kinds


class Head:
    """The start of a file: its bytes, and its first lines with data."""

    def __init__(self, buffer: Buffer) -> None:
        self.raw = bytes(buffer[:HEAD])

    @cached_property
    def lines(self) -> list[bytes]:
        """The first lines without comments; a last line that may be cut off counts only if it is the only one."""
        all_lines = (line for line in self.raw.split(b"\n") if line.strip() and not line.startswith(b"#"))
        lines = list(islice(all_lines, LOOKED_AT + 1))
        if len(lines) > 1 and not self.raw.endswith(b"\n") and len(self.raw) >= HEAD:
            lines.pop()
        return lines[:LOOKED_AT]

    @cached_property
    def rows(self) -> list[list[bytes]]:
        """The lines as columns."""
        return [line.split() for line in self.lines]


FORMATS: Registry[Format] = Registry(
    "format", "file_formats", "cranfield.formats.files", order=lambda each: (each.place, each.name)
)


class Format(Member, ABC):
    """A file format of runs or judgments. The docstring of a subclass is its paragraph in the documentation."""

    registry = FORMATS
    about: ClassVar[str]  # one line
    kinds: ClassVar[tuple[Kind, ...]] = ("run", "qrels")
    place: ClassVar[float] = 100  # its place in lists
    endings: ClassVar[tuple[str, ...]] = ()  # usual endings, for choosing how to write
    examples: ClassVar[Mapping[Kind, bytes]] = {}  # empty if the format is not text
    layouts: ClassVar[Mapping[Kind, LineLayout]] = {}  # the columns, if white space separates them
    is_text: ClassVar[bool] = True  # whether `check` looks at characters and line ends
    quotes: ClassVar[bool] = False  # whether double quotes may hold line breaks
    scores: ClassVar[bool] = True  # False where a run keeps its order only
    labels: ClassVar[tuple[Kind, ...]] = ("run", "qrels")  # kinds with labels: a run's tags, column 2 of qrels
    twice: ClassVar[bool] = True  # whether a topic can have a document twice, under two labels
    any_bytes: ClassVar[bool] = True  # False where ids must be UTF-8
    samples: ClassVar[bool] = False  # whether it says how documents were sampled
    fields: Fields = USUAL  # the column names of this file, if columns have names
    dialect: Dialect = DETECTED  # the dialect of this file, if it is delimited

    @classmethod
    def entry(cls) -> Self:
        """The registry holds one object for each format."""
        return cls()

    def naming(self, fields: Fields, dialect: Dialect = DETECTED) -> Self:
        """The same format for files with these column names and this dialect."""
        if not fields and dialect is DETECTED:
            return self
        other = copy(self)
        other.fields, other.dialect = fields, dialect
        return other

    def sniff(self, head: Head) -> FormatEvidence | None:
        """How well a file with this start fits the format; None if it does not fit, or the format is never detected."""
        return None

    @abstractmethod
    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Source:
        """The columns of a run or of qrels. Text may be returned unread; the kernels read it."""

    @abstractmethod
    def write(self, table: RowTable, kind: Kind, tag: str) -> Iterator[bytes]:
        """The bytes of a file. Rows are ordered; `tag` is used if a run's rows have none."""

    def extras(self, buffer: Buffer, where: str, lenient: bool = False) -> Extras:
        """Further data in a qrels file, such as sampling probabilities; most formats have none."""
        return Extras()

    def write_with_extras(self, table: RowTable, extras: Extras) -> Iterator[bytes]:
        """The bytes of a qrels file, with the extras if the format has a place for them."""
        return self.write(table, "qrels", "")

    def file_rows(self, buffer: Buffer, kind: Kind, where: str) -> Iterator[FileRow] | None:
        """The rows of a file with their line numbers, for messages; None if rows have no lines of their own."""
        return None

    def read_qrels(self, file: Opened, name: str, lenient: bool = False, duplicates: Duplicates = "error") -> Qrels:
        """The judgments and extras of a file; DataError if there are none."""
        source = self.read(file.buffer, "qrels", file.where, lenient)
        qrels = Qrels(source, name, duplicates, lambda: self.file_rows(file.buffer, "qrels", file.where), file.where)
        qrels.extras = self.extras(file.buffer, file.where, lenient)
        if not len(qrels):
            raise DataError(f"{file.where}: no judgments{'' if len(file.buffer) else ' (the file is empty)'}")
        return qrels

    def refuse(self, table: RowTable, kind: Kind, where: str) -> None:
        """Raise FormatError for rows that this format cannot hold, before anything is written."""
        if self.layouts:
            _words_only(table.topics, f"{where}: topic", self.name)
            _words_only(table.documents, f"{where}: document", self.name)
            _words_only(table.labels, f"{where}: {'tag' if kind == 'run' else 'label'}", self.name)
            _refuse_first_bytes(table.topics, where, self.name)

    def __repr__(self) -> str:
        return f"<Format {self.name}>"


class LineFormat(Format):
    """A format of lines with columns separated by white space: the bytes go to the kernels unchanged."""

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> TextSource:
        return TextSource(buffer, self.layouts[kind], where, lenient)


def fits(row: list[bytes], layout: LineLayout) -> bool:
    """Whether a line has the columns of a layout, with a number as score or grade."""
    return len(row) == layout.fewest and is_number(row[layout.value])


def is_number(text: bytes | str) -> bool:
    """Whether a text looks like a number; the kernels have the final word."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and b"_" not in text if isinstance(text, bytes) else text.isascii() and "_" not in text


# writing


def whole(value: float) -> int | float:
    """A whole number without a decimal point; as text it reads back as the same double.

    >>> whole(2.0), whole(0.1)
    (2, 0.1)
    """
    return int(value) if value.is_integer() and abs(value) < 1e15 and str(value) != "-0.0" else value


def rows_of(table: RowTable, kind: Kind, tag: str = "", text: bool = False) -> Iterator[tuple[Any, ...]]:
    """The rows as they are written.

    A run comes by rank (topic, document, rank, score, tag), qrels in their order (topic, label, document, grade). Ids
    are bytes, or text if requested; `tag` and 0 replace missing labels.
    """
    ids: Any = Strings.text if text else list
    topics, documents = ids(table.topics), ids(table.documents)
    labelled, label = _labels(table, tag if kind == "run" else "0")
    labels = ids(labelled)
    if kind == "run":
        for t, i, r, score, which in zip(*(column.tolist() for column in _by_rank(table, label)), strict=True):
            yield topics[t], documents[i], r, score, labels[which]
        return
    for t, which, document, grade in zip(
        table.topic.tolist(), label.tolist(), documents, table.value.tolist(), strict=True
    ):
        yield topics[t], labels[which], document, whole(grade)


def run_in_lines(table: RowTable, tag: str) -> Iterator[bytes]:
    """The lines of a run by rank in TREC's format, in batches."""
    labels, label = _labels(table, tag)
    columns = _by_rank(table, label)
    for first in range(0, len(label), BATCH):
        yield run_lines(table.topics, table.documents, labels, [column[first : first + BATCH] for column in columns])


def _labels(table: RowTable, otherwise: str) -> tuple[Strings, Ints]:
    """The distinct labels and the label number of each row; one label for all rows if the table has none."""
    if len(table.labels):
        return table.labels, table.label
    return Strings.of([encode(otherwise)]), np.zeros(len(table.value), np.int32)


def _by_rank(table: RowTable, label: Ints) -> tuple[Any, ...]:
    """Topic, row, rank, score and label number of each document, ordered by topic and rank."""
    from cranfield.base.top_k import ranked  # this one is not needed for reading

    order, rank = ranked(table)
    return table.topic[order], order, rank, table.value[order], label[order]


def in_batches(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join lines to batches."""
    rest = iter(lines)
    while batch := b"".join(islice(rest, BATCH)):
        yield batch


def _words_only(ids: Strings, what: str, name: str) -> None:
    """Refuse ids that are empty or contain white space: they would be read back differently."""
    if not len(ids):
        return
    empty = np.flatnonzero(np.diff(ids.offsets) == 0)
    if len(empty):
        raise FormatError(f"{what} {int(empty[0]) + 1} has an empty id, which {name} cannot hold; use csv or jsonl")
    blank = re.search(BLANK, ids.block)
    if blank:
        i = int(np.searchsorted(ids.offsets, blank.start(), "right")) - 1
        raise FormatError(f"{what} {decode(ids[i])!r} holds white space, which {name} cannot hold; use csv or jsonl")


def _refuse_first_bytes(topics: Strings, where: str, name: str) -> None:
    """Refuse topic ids whose first bytes would turn the line, or the file, into something else."""
    for row, topic in enumerate(topics):
        if topic.startswith((b"#", BOM)) or (row == 0 and packing_of(topic)):
            raise FormatError(
                f"{where}: topic {decode(topic)!r} would be read back as a comment, a byte order mark or a packed file "
                f"in {name}; use csv or jsonl"
            )
