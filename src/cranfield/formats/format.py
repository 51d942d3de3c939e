"""What a format is: its names, how it is recognised, and how it is read and written.

A format is one subclass with one instance in the registry; detection, the option's choices, the table
in the documentation and the promise tests come from it. A format reads bytes into whatever a run or
qrels are made from, and writes columns as pieces of bytes; opening, unpacking and moving files into
place is done once, outside.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from cranfield.collection import Extras
from cranfield.errors import FormatError
from cranfield.kernels import Strings, Table, decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cranfield.kernels.table import Buffer, Ints
    from cranfield.run import Text


Kind: TypeAlias = Literal["run", "qrels", "prefs"]
Kinds: TypeAlias = frozenset[Kind]
Source: TypeAlias = "Text | Table | Mapping[str, Mapping[str, float]]"

BOTH: Kinds = frozenset({"run", "qrels"})
RUN_ONLY: Kinds = frozenset({"run"})
QRELS_ONLY: Kinds = frozenset({"qrels"})
NEITHER: Kinds = frozenset()

BLANK = re.compile(rb"[ \t\n\r\v\f]")
BOM = b"\xef\xbb\xbf"


class Format(ABC):
    """A way of writing runs or judgments down."""

    name: ClassVar[str]
    about: ClassVar[str]  # one line
    kinds: ClassVar[tuple[Kind, ...]]
    endings: ClassVar[tuple[str, ...]] = ()  # usual endings, for choosing how to write
    examples: ClassVar[Mapping[Kind, bytes]]
    scores: ClassVar[bool] = True  # False where a run keeps its order only
    labels: ClassVar[tuple[Kind, ...]] = ("run", "qrels")  # where a run's tags and the second column of qrels are kept
    twice: ClassVar[bool] = True  # whether a document can stand twice for a topic, under two labels
    words: ClassVar[bool] = False  # ids must be single words, as white space separates columns

    @abstractmethod
    def sniff(self, head: bytes) -> Kinds:
        """What a file that starts like this may hold; nothing if it is not in this format."""

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

    def refuse(self, table: Table, kind: Kind, where: str) -> None:
        """Raise FormatError for rows that this format cannot hold, before anything is written."""
        if self.words:
            plain_words(table.topics, f"{where}: topic", self.name)
            plain_words(table.documents, f"{where}: document", self.name)
            plain_words(table.labels, f"{where}: {'tag' if kind == 'run' else 'label'}", self.name)
            _no_comment(table.topics, where, self.name)

    def __repr__(self) -> str:
        return f"<Format {self.name}>"


def plain_words(ids: Strings, what: str, name: str) -> None:
    """Refuse ids that are empty or hold white space: they would be read back as something else."""
    if not len(ids):
        return
    empty = np.flatnonzero(np.diff(ids.offsets) == 0)
    if len(empty):
        raise FormatError(f"{what} {int(empty[0]) + 1} has an empty id, which {name} cannot hold; use csv or jsonl")
    found = BLANK.search(ids.block)
    if found:
        i = int(np.searchsorted(ids.offsets, found.start(), "right")) - 1
        raise FormatError(f"{what} {decode(ids[i])!r} holds white space, which {name} cannot hold; use csv or jsonl")


def _no_comment(topics: Strings, where: str, name: str) -> None:
    for topic in topics:
        if topic.startswith((b"#", BOM)):
            raise FormatError(
                f"{where}: topic {decode(topic)!r} would be read back as a comment or a byte order mark in {name}; "
                "use csv or jsonl"
            )


def ranked(table: Table) -> tuple[Any, Ints]:
    """The rows of a run by topic and rank, and those ranks: score descending, then document id descending."""
    order = np.lexsort((-table.value, table.topic))
    topic, value = table.topic[order], table.value[order]
    new_topic = np.r_[True, topic[1:] != topic[:-1]][: len(topic)]
    new_value = new_topic | np.r_[True, value[1:] != value[:-1]][: len(topic)]
    starts = np.flatnonzero(new_value)
    ends = np.r_[starts[1:], len(topic)]
    documents = table.documents
    for start, end in zip(starts[ends - starts > 1], ends[ends - starts > 1], strict=True):
        order[start:end] = sorted(order[start:end].tolist(), key=documents.__getitem__, reverse=True)
    first = np.flatnonzero(new_topic)
    sizes = np.diff(np.r_[first, len(topic)])
    rank = np.arange(len(topic)) - np.repeat(first, sizes) + 1
    return order, rank.astype(np.int32)
