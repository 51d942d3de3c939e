"""Frames of any library → columns for the kernels: Arrow where the frame speaks it, plain arrays where not.

Frames may hold seven million rows: ids never become Python objects here, except those of a topic's first
row in each stretch. A topic is looked up only where it differs from the row above.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import DataError, FormatError
from cranfield.formats.arrow import Coded, Place, Stream
from cranfield.formats.named import Columns, find, id_of
from cranfield.formats.texts import changes, distinct, in_order, joined, of_whole_numbers, take
from cranfield.kernels import Strings, Table

if TYPE_CHECKING:
    from cranfield.formats.arrow import Piece
    from cranfield.formats.format import Kind
    from cranfield.formats.texts import Array
    from cranfield.kernels.table import Ints


SIGNS = ("__arrow_c_stream__", "__arrow_c_array__", "fetchnumpy", "collect_schema")  # of Arrow, DuckDB and Polars


def is_frame(value: Any) -> bool:
    """Whether it holds named columns: an Arrow producer, a pandas-like frame, a DuckDB result, a structured array."""
    if isinstance(value, type):
        return False
    if isinstance(value, Mapping):
        return bool(value) and all(map(_is_column, value.values()))
    return (
        any(hasattr(value, sign) for sign in SIGNS)
        or (hasattr(value, "columns") and hasattr(value, "__getitem__"))
        or bool(getattr(getattr(value, "dtype", None), "names", None))
    )


def _is_column(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (
        hasattr(value, "__len__") and hasattr(value, "__array__") and not hasattr(value, "columns")
    )


def table_of_frame(frame: Any, kind: Kind, where: str) -> Table:
    """The topics, documents and scores or grades of a frame; rows without one of them are refused."""
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):  # a Polars query that has not run yet
        frame = frame.collect()
    if not hasattr(frame, "__arrow_c_stream__") and not hasattr(frame, "__arrow_c_array__"):
        return _of_arrays(frame, kind, where)
    if hasattr(frame, "columns") and hasattr(frame, "loc"):  # pandas turns every column into Arrow: only those needed
        frame = frame[find([name for name in frame.columns if isinstance(name, str)], kind, where).used]
    try:
        stream = Stream(frame, where)
    except DataError:
        raise
    except Exception:  # pandas without pyarrow, or a column of mixed types that Arrow refuses
        if not hasattr(frame, "columns"):
            raise
        return _of_arrays(frame, kind, where)
    with stream:
        names = stream.names
        columns = find(names, kind, where)
        gathered = _Columns(columns, kind, where)
        for pieces in stream.pieces([names.index(name) for name in columns.used]):
            gathered.add(pieces)
    return gathered.table()


def _of_arrays(frame: Any, kind: Kind, where: str) -> Table:
    if hasattr(frame, "fetchnumpy"):
        try:
            frame = frame.fetchnumpy()
        except Exception as error:  # a connection without a result, or with one that was read before
            raise DataError(f"{where}: the result could not be read: {error}") from error
    names = getattr(getattr(frame, "dtype", None), "names", None) or getattr(frame, "columns", None)
    columns = find(frame if names is None else names, kind, where)
    pieces = [_piece_of(frame[name], Place(where, name)) for name in columns.used]
    if len({len(piece) for piece in pieces}) > 1:
        shown = ", ".join(f"{name}: {len(piece)}" for name, piece in zip(columns.used, pieces, strict=True))
        raise FormatError(f"{where}: the columns are not equally long ({shown})")
    gathered = _Columns(columns, kind, where)
    gathered.add(pieces)
    return gathered.table()


class _Columns:
    """The pieces of a frame's columns, put together."""

    def __init__(self, columns: Columns, kind: Kind, where: str) -> None:
        self.kind = kind
        self.descending = columns.descending
        self.places = [Place(where, name) for name in columns.used]
        self._topics: dict[bytes, int] = {}
        self._labels: dict[bytes, int] = {}
        self._topic: list[Ints] = []
        self._label: list[Ints] = []
        self._documents: list[Strings] = []
        self._value: list[Array] = []

    def add(self, pieces: list[Piece]) -> None:
        """Append one batch: topic, document, value and, where there is one, the label."""
        self._topic.append(_numbered(pieces[0], self._topics, self.places[0]))
        self._documents.append(_ids(pieces[1], self.places[1]))
        self._value.append(self._numbers(pieces[2], self.places[2]))
        if len(pieces) > 3:
            self._label.append(_numbered(pieces[3], self._labels, self.places[3]))

    def _numbers(self, piece: Piece, place: Place) -> Array:
        if isinstance(piece, Coded) and not isinstance(piece.values, Strings):
            piece = piece.values[piece.codes]
        if isinstance(piece, Strings) and not len(piece):
            piece = np.zeros(0)
        if isinstance(piece, (Strings, Coded)):
            raise place.wrong("holds text, expected numbers; cast it")
        if piece.dtype == bool and self.kind == "run":
            raise place.wrong("holds true and false, expected numbers; cast it")
        value: Array = piece.astype(np.float64)
        bad = ~np.isfinite(value) if self.kind == "qrels" else np.isnan(value)
        if bad.any():
            what, row = "score" if self.kind == "run" else "grade", int(np.argmax(bad))
            number = sum(map(len, self._value)) + row + 1
            raise DataError(
                f"{place.where}: row {number}: expected a number as its {what} in column {place.column!r}, found {value[row]}"
            )
        return value if self.descending else -value

    def table(self) -> Table:
        """The columns."""
        return Table(
            Strings.of(self._topics),
            _joined(self._topic, np.int32),
            joined(self._documents),
            _joined(self._value, np.float64),
            Strings.of(self._labels),
            _joined(self._label, np.int32),
            np.zeros(0, np.int64),
        )


def _joined(parts: list[Array], kind: Any) -> Any:
    return parts[0].astype(kind, copy=False) if len(parts) == 1 else np.concatenate([np.zeros(0, kind), *parts])


def _numbered(piece: Piece, numbers: dict[bytes, int], place: Place) -> Ints:
    """The number of each row's id, in the order in which ids first appear; new ones are added to `numbers`."""
    if isinstance(piece, Coded):
        starts = None
        first, codes = in_order(piece.codes, len(piece.values))
        values = _ids(piece.values, place)
        ids = [values[i] for i in piece.codes[first].tolist()]
    elif isinstance(piece, Strings):
        starts = changes(piece)
        first, codes = distinct(take(piece, starts))
        ids = [piece[i] for i in starts[first].tolist()]
    else:
        whole = _whole(piece, place)
        starts = np.flatnonzero(np.r_[True, whole[1:] != whole[:-1]][: len(whole)])
        distinct_numbers, codes = np.unique(whole[starts], return_inverse=True)
        first, codes = in_order(codes, len(distinct_numbers))
        ids = list(of_whole_numbers(whole[starts[first]]))
    found = np.array([numbers.setdefault(name, len(numbers)) for name in ids], np.int32)[codes]
    return found if starts is None else np.repeat(found, np.diff(np.r_[starts, len(piece)]))


def _ids(piece: Piece, place: Place) -> Strings:
    if isinstance(piece, Strings):
        return piece
    if isinstance(piece, Coded):
        return take(_ids(piece.values, place), piece.codes)
    return of_whole_numbers(_whole(piece, place))


def _whole(numbers: Array, place: Place) -> Array:
    if not len(numbers):
        return np.zeros(0, np.int64)
    if numbers.dtype.kind not in "iu":
        raise place.wrong(f"holds ids as {numbers.dtype}, expected text or whole numbers; cast it")
    return numbers


def _piece_of(values: Any, place: Place) -> Piece:
    """A column that is no Arrow: an array, or what makes one."""
    if hasattr(values, "isna"):
        place.refuse_nulls(np.asarray(values.isna()))
    values = values.to_numpy() if hasattr(values, "to_numpy") else values
    if isinstance(values, np.ma.MaskedArray):
        place.refuse_nulls(np.ma.getmaskarray(values))
        values = values.data
    array: Array = np.asarray(values)
    if array.ndim != 1:
        raise place.wrong(f"has {array.ndim} dimensions, expected one")
    return array if array.dtype.kind in "iufb" else _of_objects(array.tolist(), place)


def _of_objects(values: list[Any], place: Place) -> Piece:
    """A column of Python objects: all text, or all numbers."""
    if all(type(value) is str for value in values):
        return Strings.of_text(values)
    place.refuse_nulls(np.array([value is None or type(value).__name__ in ("NAType", "NaTType") for value in values]))
    if any(isinstance(value, (str, bytes)) for value in values):
        ids = []
        for row, value in enumerate(values):
            try:
                ids.append(id_of(value))
            except DataError as error:
                raise DataError(f"{place.where}: row {row + 1}: column {place.column!r}: {error}") from None
        return Strings.of(ids)
    numbers = np.asarray(values)
    if numbers.dtype.kind in "iufb":
        return numbers
    try:
        return np.array([float(value) for value in values])  # decimal.Decimal, fractions.Fraction
    except (TypeError, ValueError) as error:
        raise FormatError(f"{place.where}: column {place.column!r}: expected text or numbers ({error})") from error
