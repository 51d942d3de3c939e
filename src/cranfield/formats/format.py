"""What a format is: how it is recognised, read and written, and what others need to know of it.

A format is a subclass of `Format` in a file of `formats/known/`. Being defined there is all it takes: detection, `check`,
`convert`, the command line, the documentation and the promise tests find it. A format reads bytes into whatever a run or
qrels are made from, and writes columns as pieces of bytes; opening, unpacking and moving files into place is done once,
outside. No format knows of another: each says how much speaks for it, and the registry compares.
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

from cranfield.collection import Duplicates, Extras, FileRow, Qrels
from cranfield.errors import DataError, FormatError
from cranfield.formats.streams import Opened, packing_of
from cranfield.formats.tables import DETECTED, Dialect
from cranfield.kernels import Layout, Strings, Table, decode, encode, run_lines
from cranfield.run import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cranfield.kernels.table import Buffer, Ints


Kind: TypeAlias = Literal["run", "qrels", "prefs"]
Kinds: TypeAlias = frozenset[Kind]
Fields: TypeAlias = "Mapping[str, str | Sequence[str]]"  # what a column is, and what it is called here
Source: TypeAlias = "Text | Table | Mapping[str, Mapping[str, float]]"

NOUNS: dict[Kind, str] = {"run": "a run", "qrels": "qrels", "prefs": "preferences"}
BOTH: Kinds = frozenset(("run", "qrels"))
USUAL: Fields = {}  # columns have their usual names

HEAD = 65536  # bytes that decide
LOOKED_AT = 20  # lines that decide
BATCH = 10_000  # lines written at a time
BLANK = re.compile(rb"[ \t\n\r\v\f]")
BOM = b"\xef\xbb\xbf"


class Strength(IntEnum):
    """How much speaks for a format, from little to much."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> Strength:
        """A strength, and what it means."""
        member = int.__new__(cls, value)
        member._value_, member.meaning = value, meaning
        return member

    POSSIBLE = 1, "it may begin like this; reading says where it is wrong"
    COUNT = 2, "most lines have as many columns"
    COLUMNS = 3, "a line has its columns, with a number where one belongs"
    VALUES = 4, "every line has its columns, and several of them hold what only they may"
    NAMES = 5, "the first line names the columns"
    SIGNATURE = 6, "the file begins with what no other format begins with"

    def of(self, *kinds: Kind) -> Evidence:
        """Evidence of this strength for a file that may hold these."""
        return Evidence(self, frozenset(kinds))


class Evidence(NamedTuple):
    """How much speaks for a format, and what a file in it may then hold."""

    strength: Strength
    kinds: Kinds


class Head:
    """The start of a file: its bytes, and the first lines of it that hold data."""

    def __init__(self, buffer: Buffer) -> None:
        self.raw = bytes(buffer[:HEAD])

    @cached_property
    def lines(self) -> list[bytes]:
        """The first lines but for comments; a last line that may be cut off counts only if it is the only one."""
        lines = [line for line in self.raw.split(b"\n") if line.strip() and not line.startswith(b"#")]
        if len(lines) > 1 and not self.raw.endswith(b"\n") and len(self.raw) >= HEAD:
            lines.pop()
        return lines[:LOOKED_AT]

    @cached_property
    def rows(self) -> list[list[bytes]]:
        """The lines as columns."""
        return [line.split() for line in self.lines]


DEFINED: list[type[Format]] = []  # every format, in the order of definition


class Format(ABC):
    """A way of writing runs or judgments down. The docstring of a subclass is its paragraph in the documentation."""

    name: ClassVar[str]
    about: ClassVar[str]  # one line
    kinds: ClassVar[tuple[Kind, ...]] = ("run", "qrels")
    place: ClassVar[float] = 100  # where it stands in lists
    endings: ClassVar[tuple[str, ...]] = ()  # usual endings, for choosing how to write
    examples: ClassVar[Mapping[Kind, bytes]] = {}  # none where there is no text to show
    layouts: ClassVar[Mapping[Kind, Layout]] = {}  # which column is what, where white space separates them
    is_text: ClassVar[bool] = True  # whether there are characters and line ends to check
    quotes: ClassVar[bool] = False  # whether double quotes may hold line breaks
    scores: ClassVar[bool] = True  # False where a run keeps its order only
    labels: ClassVar[tuple[Kind, ...]] = ("run", "qrels")  # where a run's tags and the second column of qrels are kept
    twice: ClassVar[bool] = True  # whether a document can stand twice for a topic, under two labels
    any_bytes: ClassVar[bool] = True  # False where ids must be UTF-8
    samples: ClassVar[bool] = False  # whether it says how documents were sampled
    fields: Fields = USUAL  # where columns have names, those of this file
    dialect: Dialect = DETECTED  # where values are separated, how this file is written

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            DEFINED.append(cls)

    def naming(self, fields: Fields, dialect: Dialect = DETECTED) -> Self:
        """The same format for files whose columns are called like this, and are written in this dialect."""
        if not fields and dialect is DETECTED:
            return self
        other = copy(self)
        other.fields, other.dialect = fields, dialect
        return other

    def sniff(self, head: Head) -> Evidence | None:
        """What speaks for this format in a file that starts like this; None where it is never guessed, or does not fit."""
        return None

    @abstractmethod
    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Source:
        """What a run or qrels are made from. Text may be returned unread; the kernels read it."""

    @abstractmethod
    def write(self, table: Table, kind: Kind, tag: str) -> Iterator[bytes]:
        """The bytes of a file. Rows come ordered; `tag` stands in where a run's rows carry none."""

    def known(self, buffer: Buffer, where: str, lenient: bool = False) -> Extras:
        """What a file of qrels says beyond judgments: nothing, in most formats."""
        return Extras()

    def write_known(self, table: Table, extras: Extras) -> Iterator[bytes]:
        """The bytes of a file of qrels, with what else is known where the format has a place for it."""
        return self.write(table, "qrels", "")

    def file_rows(self, buffer: Buffer, kind: Kind, where: str) -> Iterator[FileRow] | None:
        """The rows of a file with their lines, to say where one stands; None where rows have no lines of their own."""
        return None

    def read_qrels(self, file: Opened, name: str, lenient: bool = False, duplicates: Duplicates = "error") -> Qrels:
        """The judgments in a file, with what else it says; DataError where there are none."""
        source = self.read(file.buffer, "qrels", file.where, lenient)
        qrels = Qrels(source, name, duplicates, lambda: self.file_rows(file.buffer, "qrels", file.where), file.where)
        qrels.extras = self.known(file.buffer, file.where, lenient)
        if not len(qrels):
            raise DataError(f"{file.where}: no judgments{'' if len(file.buffer) else ' (the file is empty)'}")
        return qrels

    def refuse(self, table: Table, kind: Kind, where: str) -> None:
        """Raise FormatError for rows that this format cannot hold, before anything is written."""
        if self.layouts:
            _words_only(table.topics, f"{where}: topic", self.name)
            _words_only(table.documents, f"{where}: document", self.name)
            _words_only(table.labels, f"{where}: {'tag' if kind == 'run' else 'label'}", self.name)
            _refuse_first_bytes(table.topics, where, self.name)

    def __repr__(self) -> str:
        return f"<Format {self.name}>"


class LineFormat(Format):
    """A format of lines whose columns white space separates: the bytes go to the kernels as they are."""

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Text:
        return Text(buffer, self.layouts[kind], where, lenient)


def fits(row: list[bytes], layout: Layout) -> bool:
    """Whether a line has a layout's columns, and a number where its score or grade stands."""
    return len(row) == layout.fewest and is_number(row[layout.value])


def is_number(text: bytes | str) -> bool:
    """Whether it looks like a number; what counts in the end is decided by the kernels."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and b"_" not in text if isinstance(text, bytes) else text.isascii() and "_" not in text


# writing


def whole(value: float) -> int | float:
    """A whole number without its point; as text it reads back to the same double.

    >>> whole(2.0), whole(0.1)
    (2, 0.1)
    """
    return int(value) if value.is_integer() and abs(value) < 1e15 and str(value) != "-0.0" else value


def rows_of(table: Table, kind: Kind, tag: str = "", text: bool = False) -> Iterator[tuple[Any, ...]]:
    """The rows as they are written: a run's by rank (topic, document, rank, score, tag), those of qrels (topic, label,
    document, grade) as they come. Ids are bytes, or text if wanted; `tag` and 0 stand in for labels that are not there.
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


def run_in_lines(table: Table, tag: str) -> Iterator[bytes]:
    """The lines of a run by rank, as TREC has them, many together."""
    labels, label = _labels(table, tag)
    columns = _by_rank(table, label)
    for first in range(0, len(label), BATCH):
        yield run_lines(table.topics, table.documents, labels, [column[first : first + BATCH] for column in columns])


def _labels(table: Table, otherwise: str) -> tuple[Strings, Ints]:
    """The labels and the number of each row's; one label for all where the table has none."""
    if len(table.labels):
        return table.labels, table.label
    return Strings.of([encode(otherwise)]), np.zeros(len(table.value), np.int32)


def _by_rank(table: Table, label: Ints) -> tuple[Any, ...]:
    """The topic, the row, the rank, the score and the label's number of each document, by topic and rank."""
    from cranfield.tops import ranked  # not needed to read

    order, rank = ranked(table)
    return table.topic[order], order, rank, table.value[order], label[order]


def in_batches(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines, many together."""
    rest = iter(lines)
    while batch := b"".join(islice(rest, BATCH)):
        yield batch


def _words_only(ids: Strings, what: str, name: str) -> None:
    """Refuse ids that are empty or hold white space: they would be read back as something else."""
    if not len(ids):
        return
    empty = np.flatnonzero(np.diff(ids.offsets) == 0)
    if len(empty):
        raise FormatError(f"{what} {int(empty[0]) + 1} has an empty id, which {name} cannot hold; use csv or jsonl")
    blank = BLANK.search(ids.block)
    if blank:
        i = int(np.searchsorted(ids.offsets, blank.start(), "right")) - 1
        raise FormatError(f"{what} {decode(ids[i])!r} holds white space, which {name} cannot hold; use csv or jsonl")


def _refuse_first_bytes(topics: Strings, where: str, name: str) -> None:
    """Refuse topics that would make something else of their line, or of the file."""
    for row, topic in enumerate(topics):
        if topic.startswith((b"#", BOM)) or (row == 0 and packing_of(topic)):
            raise FormatError(
                f"{where}: topic {decode(topic)!r} would be read back as a comment, a byte order mark or a packed file "
                f"in {name}; use csv or jsonl"
            )
