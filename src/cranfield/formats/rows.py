"""Rows, one Python object each, → columns: for CSV, JSON and lists of named tuples.

Slow beside the kernels and the frames, and the only way for text that has to be unquoted first.
"""

from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import BadLineError, DataError, FormatError
from cranfield.formats.columns import Columns, find
from cranfield.kernels import Fault, Strings, Table, decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cranfield.formats.format import Kind


CHUNK = 4096  # rows handled at a time
HUGE = 1e300


class Gathered:
    """Rows gathered one by one; topics and labels are numbered as they first appear."""

    def __init__(self, columns: Columns, kind: Kind, where: str, lenient: bool = False) -> None:
        self.columns = columns
        self.kind = kind
        self.where = where
        self.lenient = lenient
        self._known: tuple[dict[str, int], dict[str, int]] = ({}, {})  # topics and labels met in columns
        self._topics: dict[bytes, int] = {}
        self._labels: dict[bytes, int] = {}
        self._topic, self._label, self._value = array("i"), array("i"), array("d")
        self._documents: list[bytes] = []
        self._skipped: list[Fault] = []

    def add(self, topic: bytes, document: bytes, value: float, label: bytes | None) -> None:
        """Append one row."""
        self._topic.append(self._topics.setdefault(topic, len(self._topics)))
        self._documents.append(document)
        self._value.append(value if self.columns.descending else -value)
        if label is not None:
            self._label.append(self._labels.setdefault(label, len(self._labels)))

    def add_columns(
        self, topics: Sequence[str], documents: Sequence[str], values: Sequence[float], labels: Sequence[str]
    ) -> None:
        """Append many rows whose values are known to be good; no labels where there are none."""
        self._topic.extend(_numbered(topics, self._known[0], self._topics))
        self._label.extend(_numbered(labels, self._known[1], self._labels))
        try:
            self._documents.extend(map(str.encode, documents))
        except UnicodeEncodeError:
            del self._documents[len(self._value) :]
            self._documents.extend(map(encode, documents))
        self._value.extend(values if self.columns.descending else [-value for value in values])

    def bad(self, line: int, problem: str) -> None:
        """Stop at a bad row, or note it and go on if lenient."""
        if not self.lenient:
            raise BadLineError(self.where, line, problem)
        self._skipped.append(Fault(line, "value"))

    def table(self) -> Table:
        """The columns."""
        return Table(
            Strings.of(self._topics),
            np.array(self._topic, np.int32),
            Strings.of(self._documents),
            np.array(self._value, np.float64),
            Strings.of(self._labels),
            np.array(self._label, np.int32),
            np.zeros(0, np.int64),
            self._skipped,
        )


def _numbered(names: Sequence[str], known: dict[str, int], numbers: dict[bytes, int]) -> Iterator[int]:
    for name in dict.fromkeys(names):
        if name not in known:
            known[name] = numbers.setdefault(encode(name), len(numbers))
    return map(known.__getitem__, names)


def id_of(value: Any) -> bytes:
    """An id's bytes: text as it is, a whole number as its digits; anything else is a DataError."""
    if isinstance(value, str):
        return encode(value)
    if isinstance(value, bytes):
        return value
    try:
        if not isinstance(value, bool) and type(value).__name__ != "bool_":
            return b"%d" % operator.index(value)
    except TypeError:
        pass
    raise DataError(f"expected an id (text or a whole number), found {value!r:.60}")


def number_of(value: Any, kind: Kind) -> float:
    """A score or a grade: a number that is not NaN, and finite in qrels; anything else is a DataError."""
    refused = (str, bytes, bool) if kind == "run" else (str, bytes)
    try:
        number = math.nan if isinstance(value, refused) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if number != number or (kind == "qrels" and math.isinf(number)):
        raise DataError(f"expected a number as its {'score' if kind == 'run' else 'grade'}, found {value!r:.60}")
    return number


def is_row(given: Any) -> bool:
    """Whether it is one row: a mapping of names to plain values, or a named tuple."""
    if isinstance(given, tuple):
        return hasattr(given, "_fields")
    return (
        isinstance(given, Mapping)
        and bool(given)
        and not any(isinstance(value, (Mapping, list, tuple, np.ndarray)) for value in given.values())
    )


def table_of_rows(rows: Iterable[tuple[int, Any]], kind: Kind, where: str, lenient: bool = False) -> Table:
    """Columns from numbered rows, each a mapping or a named tuple; the first row's names count for all."""
    gathered: Gathered | None = None
    numbered = _as_mappings(rows, where)
    while chunk := list(islice(numbered, CHUNK)):
        if gathered is None:
            line, row = chunk[0]
            gathered = Gathered(find(row, kind, f"{where}:{line}"), kind, where, lenient)
        if not _added_at_once(gathered, chunk):
            for line, row in chunk:
                _add(gathered, line, row)
    if gathered is None:
        gathered = Gathered(Columns("", "", "", None, True), kind, where)
    return gathered.table()


def _added_at_once(gathered: Gathered, chunk: list[tuple[int, Mapping[str, Any]]]) -> bool:
    """Append rows of the usual types, column by column; False if any is unusual, and nothing is appended."""
    names = gathered.columns
    try:
        topics, documents, values, *labels = [[row[name] for _, row in chunk] for name in names.used]
    except KeyError:
        return False
    ids = {*map(type, topics), *map(type, documents), *(type(label) for column in labels for label in column)}
    if ids != {str} or not {*map(type, values)} <= {float, int}:
        return False
    if not all(-HUGE < value < HUGE for value in values):  # NaN, infinite, or a whole number beyond any double
        return False
    gathered.add_columns(topics, documents, values, labels[0] if labels else ())
    return True


def _add(gathered: Gathered, line: int, row: Mapping[str, Any]) -> None:
    names, kind = gathered.columns, gathered.kind
    try:
        label = None if names.label is None else id_of(row[names.label])
        gathered.add(id_of(row[names.topic]), id_of(row[names.document]), number_of(row[names.value], kind), label)
    except KeyError as error:
        gathered.bad(line, f"expected a field {error.args[0]!r} as in the first row, found {', '.join(row)}")
    except DataError as error:
        gathered.bad(line, str(error))


def _as_mappings(rows: Iterable[tuple[int, Any]], where: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for line, row in rows:
        if isinstance(row, Mapping):
            yield line, row
        elif hasattr(row, "_fields"):
            yield line, dict(zip(row._fields, row, strict=True))
        else:
            raise FormatError(f"{where}:{line}: expected a row with named fields, found {row!r:.60}")


def texts(strings: Strings) -> list[str]:
    """A column as Python text that `encode` turns back into the same bytes."""
    return [decode(item) for item in strings]
