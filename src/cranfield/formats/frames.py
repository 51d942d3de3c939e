"""Frames of any library → columns for the kernels: Arrow where the frame speaks it, plain arrays where not.

Frames may hold seven million rows: ids never become Python objects here, except those of a topic's first
row in each stretch. A topic is looked up only where it differs from the row above.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import DataError, FormatError
from cranfield.formats.columns import Columns, find
from cranfield.formats.texts import changes, distinct, in_order, joined, of_whole_numbers, take
from cranfield.kernels import Strings, Table, encode

if TYPE_CHECKING:
    from cranfield.formats.arrow import Piece, Stream
    from cranfield.formats.format import Kind
    from cranfield.formats.texts import Array
    from cranfield.kernels.table import Ints


def is_frame(given: Any) -> bool:
    """Whether it holds named columns: an Arrow producer, a pandas-like frame, a DuckDB result, a structured array."""
    if isinstance(given, type):
        return False
    if isinstance(given, Mapping):
        return bool(given) and all(_is_column(value) for value in given.values())
    return (
        any(
            hasattr(given, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "fetchnumpy", "collect_schema")
        )
        or (hasattr(given, "columns") and hasattr(given, "__getitem__"))
        or bool(getattr(getattr(given, "dtype", None), "names", None))
    )


def _is_column(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (
        hasattr(value, "__len__") and hasattr(value, "__array__") and not hasattr(value, "columns")
    )


def table_of_frame(frame: Any, kind: Kind, where: str) -> Table:
    """The topics, documents and scores or grades of a frame; rows without one of them are refused."""
    from cranfield.formats.arrow import Stream

    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):  # a Polars query that has not run yet
        frame = frame.collect()
    if not hasattr(frame, "__arrow_c_stream__") and not hasattr(frame, "__arrow_c_array__"):
        return _of_arrays(frame, kind, where)
    if hasattr(frame, "columns") and hasattr(
        frame, "loc"
    ):  # pandas turns every column into Arrow: leave out the others
        names = find([name for name in frame.columns if isinstance(name, str)], kind, where)
        frame = frame[names.used]
    try:
        stream = Stream(frame, where)
    except DataError:
        raise
    except Exception:  # pandas without pyarrow, or a column of mixed types that Arrow refuses
        if not hasattr(frame, "columns"):
            raise
        return _of_arrays(frame, kind, where)
    return _of_stream(stream, kind)


def _of_stream(opened: Stream, kind: Kind) -> Table:
    with opened as stream:
        names = stream.names
        columns = find(names, kind, stream.where)
        gathered = _Columns(columns, kind, stream.where)
        for pieces in stream.pieces([names.index(name) for name in columns.used]):
            gathered.add(pieces)
    return gathered.table()


def _of_arrays(frame: Any, kind: Kind, where: str) -> Table:
    if hasattr(frame, "fetchnumpy"):
        frame = _fetched(frame, where)
    names = getattr(getattr(frame, "dtype", None), "names", None) or getattr(frame, "columns", None)
    columns = find(frame if names is None else names, kind, where)
    gathered = _Columns(columns, kind, where)
    pieces = [_piece_of(frame[name], where, name) for name in columns.used]
    sizes = {name: len(piece) for name, piece in zip(columns.used, pieces, strict=True)}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise FormatError(f"{where}: the columns are not equally long ({shown})")
    gathered.add(pieces)
    return gathered.table()


def _fetched(result: Any, where: str) -> Any:
    try:
        return result.fetchnumpy()
    except Exception as error:  # a connection without a result, or with one that was read before
        raise DataError(f"{where}: the result could not be read: {error}") from error


class _Columns:
    """The pieces of a frame's columns, put together."""

    def __init__(self, columns: Columns, kind: Kind, where: str) -> None:
        self.columns = columns
        self.kind = kind
        self.where = where
        self.rows = 0
        self._topics, self._labels = _Numbers(where, columns.topic), _Numbers(where, columns.label or "")
        self._topic: list[Ints] = []
        self._label: list[Ints] = []
        self._documents: list[Strings] = []
        self._value: list[Array] = []

    def add(self, pieces: list[Piece]) -> None:
        """Append one batch: topic, document, value and, where there is one, the label."""
        self._topic.append(self._topics.of(pieces[0]))
        self._documents.append(_ids(pieces[1], self.where, self.columns.document))
        self._value.append(self._numbers(pieces[2]))
        if len(pieces) > 3:
            self._label.append(self._labels.of(pieces[3]))
        self.rows += len(self._value[-1])

    def _numbers(self, piece: Piece) -> Array:
        from cranfield.formats.arrow import Coded

        if isinstance(piece, Coded) and not isinstance(piece.values, Strings):
            piece = piece.values[piece.codes]
        name, what = self.columns.value, "score" if self.kind == "run" else "grade"
        if isinstance(piece, Strings) and not len(piece):
            piece = np.zeros(0)
        if isinstance(piece, (Strings, Coded)):
            raise FormatError(f"{self.where}: column {name!r} holds text, expected numbers; cast it")
        if piece.dtype == bool and self.kind == "run":
            raise FormatError(f"{self.where}: column {name!r} holds true and false, expected numbers; cast it")
        value: Array = piece.astype(np.float64)
        bad = ~np.isfinite(value) if self.kind == "qrels" else np.isnan(value)
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"{self.where}: row {self.rows + row + 1}: expected a number as its {what} in column {name!r}, found {value[row]}"
            )
        return value if self.columns.descending else -value

    def table(self) -> Table:
        """The columns."""
        return Table(
            Strings.of(self._topics.numbers),
            _joined(self._topic, np.int32),
            joined(self._documents),
            _joined(self._value, np.float64),
            Strings.of(self._labels.numbers),
            _joined(self._label, np.int32),
            np.zeros(0, np.int64),
        )


class _Numbers:
    """Numbers the ids of a column in the order in which they first appear."""

    def __init__(self, where: str, column: str) -> None:
        self.where = where
        self.column = column
        self.numbers: dict[bytes, int] = {}

    def of(self, piece: Piece) -> Ints:
        """The numbers of a batch's rows."""
        from cranfield.formats.arrow import Coded

        if isinstance(piece, Coded):
            first, numbers = in_order(piece.codes, len(piece.values))
            ids = self._ids(piece.values)
            return self._numbered([ids[i] for i in piece.codes[first].tolist()])[numbers]
        if isinstance(piece, Strings):
            starts = changes(piece)
            first, numbers = distinct(take(piece, starts))
            found = self._numbered([piece[i] for i in starts[first].tolist()])[numbers]
            return np.repeat(found, np.diff(np.r_[starts, len(piece)]))
        whole = _whole(piece, self.where, self.column)
        starts = np.flatnonzero(np.r_[True, whole[1:] != whole[:-1]][: len(whole)])
        values, codes = np.unique(whole[starts], return_inverse=True)
        first, numbers = in_order(codes, len(values))
        found = self._numbered(list(of_whole_numbers(whole[starts[first]])))[numbers]
        return np.repeat(found, np.diff(np.r_[starts, len(whole)]))

    def _ids(self, values: Strings | Array) -> Strings:
        return _ids(values, self.where, self.column)

    def _numbered(self, ids: list[bytes]) -> Ints:
        """The numbers of some ids; new ones are appended."""
        numbers = self.numbers
        return np.array([numbers.setdefault(name, len(numbers)) for name in ids], np.int32)


def _ids(piece: Piece, where: str, column: str) -> Strings:
    from cranfield.formats.arrow import Coded

    if isinstance(piece, Strings):
        return piece
    if isinstance(piece, Coded):
        return take(_ids(piece.values, where, column), piece.codes)
    return of_whole_numbers(_whole(piece, where, column))


def _whole(numbers: Array, where: str, column: str) -> Array:
    if not len(numbers):
        return np.zeros(0, np.int64)
    if numbers.dtype.kind not in "iu":
        raise FormatError(
            f"{where}: column {column!r} holds ids as {numbers.dtype}, expected text or whole numbers; cast it"
        )
    return numbers


def _joined(parts: list[Array], kind: Any) -> Any:
    return parts[0].astype(kind, copy=False) if len(parts) == 1 else np.concatenate([np.zeros(0, kind), *parts])


def _piece_of(values: Any, where: str, column: str) -> Piece:
    """A column that is no Arrow: an array, or what makes one."""
    if hasattr(values, "isna") and values.isna().any():
        row = int(np.argmax(np.asarray(values.isna())))
        raise DataError(f"{where}: row {row + 1}: no value in column {column!r} (null)")
    given = values.to_numpy() if hasattr(values, "to_numpy") else values
    if isinstance(given, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(given)
        if masked.any():
            raise DataError(f"{where}: row {int(np.argmax(masked)) + 1}: no value in column {column!r} (null)")
        given = given.data
    array: Array = np.asarray(given)
    if array.ndim != 1:
        raise FormatError(f"{where}: column {column!r} has {array.ndim} dimensions, expected one")
    if array.dtype.kind in "iufb":
        return array
    return _of_objects(array.tolist(), where, column)


def _of_objects(values: list[Any], where: str, column: str) -> Piece:
    """A column of Python objects: all text, or all numbers."""
    if all(type(value) is str for value in values):
        joined = "".join(values)
        if joined.isascii():
            offsets = np.zeros(len(values) + 1, np.int64)
            np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
            return Strings(joined.encode(), offsets)
        return Strings.of(map(encode, values))
    for row, value in enumerate(values):
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            raise DataError(f"{where}: row {row + 1}: no value in column {column!r} (null)")
    return _of_mixed(values, where, column)


def _of_mixed(values: list[Any], where: str, column: str) -> Piece:
    from cranfield.formats.rows import id_of

    if any(isinstance(value, (str, bytes)) for value in values):
        ids = []
        for row, value in enumerate(values):
            try:
                ids.append(id_of(value))
            except DataError as error:
                raise DataError(f"{where}: row {row + 1}: column {column!r}: {error}") from None
        return Strings.of(ids)
    numbers = np.asarray(values)
    if numbers.dtype.kind in "iufb":
        return numbers
    try:
        return np.array([float(value) for value in values])  # decimal.Decimal, fractions.Fraction
    except (TypeError, ValueError) as error:
        raise FormatError(f"{where}: column {column!r}: expected text or numbers ({error})") from error
