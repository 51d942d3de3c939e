"""Data frames of any library → columns for the kernels: through Arrow if the frame supports it, else as plain arrays.

No Arrow library is needed: objects with the Arrow PyCapsule interface are read through ctypes and NumPy. Data is
copied before the producer's memory is released, and everything that the producer handed over is released once, also if a
column cannot be used. Frames may hold seven million rows: ids never become Python objects here, except those of a
topic's first row in each block, and a topic is looked up only if it differs from the row above.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_int, c_int64, c_void_p
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cranfield.base.errors import CranfieldError, DataError, FormatError
from cranfield.base.kernels import RowTable, Strings
from cranfield.base.kernels.table import CHUNK, cells, offsets_of, packed
from cranfield.formats.format import USUAL
from cranfield.formats.named_columns import NamedColumns, find, id_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cranfield.base.kernels.table import Ints
    from cranfield.formats.format import Fields, Kind


@contextmanager
def arrow_in_words(where: str) -> Iterator[None]:
    """Raise DataError instead of any error of Arrow or of the system while a Parquet file is read."""
    try:
        yield
    except (CranfieldError, MemoryError):
        raise
    except Exception as error:
        from pyarrow import ArrowException  # type: ignore[import-untyped, import-not-found, unused-ignore]

        if isinstance(error, OSError) and error.errno is not None:
            raise DataError(f"{where}: {os.strerror(error.errno).lower()}") from error
        if not isinstance(error, (ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError)):
            raise
        raise DataError(f"{where}: corrupt Parquet file ({' '.join(str(error).split())})") from error


Array: TypeAlias = npt.NDArray[Any]

SIGNS = ("__arrow_c_stream__", "__arrow_c_array__", "fetchnumpy", "collect_schema")  # of Arrow, DuckDB and Polars
NUMBERS = {  # Arrow's letters for types of numbers, and NumPy's names
    letter.encode(): name
    for letter, name in zip("cCsSiIlLefg", "i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8".split(), strict=True)
}
DIGITS = (np.arange(10_000)[:, None] // [1000, 100, 10, 1] % 10 + ord("0")).astype(np.uint8)


class Coded(NamedTuple):
    """A dictionary-encoded column: row i holds `values[codes[i]]`."""

    codes: Array
    values: Strings | Array


Piece: TypeAlias = "Strings | Array | Coded"


class CellPlace(NamedTuple):
    """The frame, column and row of a value, for messages."""

    where: str
    column: str
    row: int = 0  # the number of the batch's first row

    def refuse_nulls(self, null: Array | None) -> None:
        """Stop at the first row that has no value."""
        if null is not None and null.any():
            row = self.row + int(np.argmax(null)) + 1
            raise DataError(f"{self.where}: row {row}: no value in column {self.column!r} (null)")

    def wrong(self, problem: str) -> FormatError:
        """The error for a column of an unusable type."""
        return FormatError(f"{self.where}: column {self.column!r} {problem}")


def is_frame(value: Any) -> bool:
    """Whether an object has named columns: an Arrow producer, a pandas-like frame, a DuckDB result, a structured array."""
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


def table_of_frame(frame: Any, kind: Kind, where: str, fields: Fields = USUAL) -> RowTable:
    """The topics, documents and scores or grades of a frame; rows that lack one of them are refused."""
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):  # a Polars query that has not run yet
        frame = frame.collect()
    if not hasattr(frame, "__arrow_c_stream__") and not hasattr(frame, "__arrow_c_array__"):
        return _of_arrays(frame, kind, where, fields)
    if hasattr(frame, "columns") and hasattr(frame, "loc"):  # pandas turns every column into Arrow: only those needed
        frame = frame[find([name for name in frame.columns if isinstance(name, str)], kind, where, fields).used]
    try:
        stream = Stream(frame, where)
    except DataError:
        raise
    except Exception:  # pandas without pyarrow, or a column of mixed types that Arrow refuses
        if not hasattr(frame, "columns"):
            raise
        return _of_arrays(frame, kind, where, fields)
    with stream:
        names = stream.names
        columns = find(names, kind, where, fields)
        gathered = _Columns(columns, kind, where)
        for pieces in stream.pieces([names.index(name) for name in columns.used]):
            gathered.add(pieces)
    return gathered.table()


def _of_arrays(frame: Any, kind: Kind, where: str, fields: Fields) -> RowTable:
    if hasattr(frame, "fetchnumpy"):
        try:
            frame = frame.fetchnumpy()
        except Exception as error:  # a connection without a result, or whose result was read before
            raise DataError(f"{where}: the result could not be read: {error}") from error
    names = getattr(getattr(frame, "dtype", None), "names", None) or getattr(frame, "columns", None)
    columns = find(frame if names is None else names, kind, where, fields)
    pieces = [_piece_of(frame[name], CellPlace(where, name)) for name in columns.used]
    if len({len(piece) for piece in pieces}) > 1:
        lengths = ", ".join(f"{name}: {len(piece)}" for name, piece in zip(columns.used, pieces, strict=True))
        raise FormatError(f"{where}: the columns are not equally long ({lengths})")
    gathered = _Columns(columns, kind, where)
    gathered.add(pieces)
    return gathered.table()


class _Columns:
    """Collects the pieces of a frame's columns."""

    def __init__(self, columns: NamedColumns, kind: Kind, where: str) -> None:
        self.kind = kind
        self.descending = columns.descending
        self.places = [CellPlace(where, name) for name in columns.used]
        self._topics: dict[bytes, int] = {}
        self._labels: dict[bytes, int] = {}
        self._topic: list[Ints] = []
        self._label: list[Ints] = []
        self._documents: list[Strings] = []
        self._value: list[Array] = []

    def add(self, pieces: list[Piece]) -> None:
        """Append one batch: topic, document, value and, if there is one, the label."""
        self._topic.append(_numbered(pieces[0], self._topics, self.places[0]))
        self._documents.append(_ids(pieces[1], self.places[1]))
        self._value.append(self._numbers(pieces[2], self.places[2]))
        if len(pieces) > 3:
            self._label.append(_numbered(pieces[3], self._labels, self.places[3]))

    def _numbers(self, piece: Piece, place: CellPlace) -> Array:
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
            problem = f"expected a number as its {what} in column {place.column!r}, found {value[row]}"
            raise DataError(f"{place.where}: row {number}: {problem}")
        return value if self.descending else -value

    def table(self) -> RowTable:
        """The columns."""
        return RowTable(
            Strings.of(self._topics),
            _concatenated(self._topic, np.int32),
            Strings.concatenated(self._documents),
            _concatenated(self._value, np.float64),
            Strings.of(self._labels),
            _concatenated(self._label, np.int32),
            np.zeros(0, np.int64),
        )


def _concatenated(parts: list[Array], kind: Any) -> Any:
    return parts[0].astype(kind, copy=False) if len(parts) == 1 else np.concatenate([np.zeros(0, kind), *parts])


def _numbered(piece: Piece, numbers: dict[bytes, int], place: CellPlace) -> Ints:
    """The number of each row's id, in order of first appearance; new ids are added to `numbers`."""
    if isinstance(piece, Coded):
        starts = None
        first, codes = in_order(piece.codes, len(piece.values))
        values = _ids(piece.values, place)
        ids = [values[i] for i in piece.codes[first].tolist()]
    elif isinstance(piece, Strings):
        starts = changes(piece)
        first, codes = distinct(piece.take(starts))
        ids = [piece[i] for i in starts[first].tolist()]
    else:
        whole = _whole(piece, place)
        starts = np.flatnonzero(np.r_[True, whole[1:] != whole[:-1]][: len(whole)])
        distinct_numbers, codes = np.unique(whole[starts], return_inverse=True)
        first, codes = in_order(codes, len(distinct_numbers))
        ids = list(of_whole_numbers(whole[starts[first]]))
    of_starts = np.array([numbers.setdefault(name, len(numbers)) for name in ids], np.int32)[codes]
    return of_starts if starts is None else np.repeat(of_starts, np.diff(np.r_[starts, len(piece)]))


def _ids(piece: Piece, place: CellPlace) -> Strings:
    if isinstance(piece, Strings):
        return piece
    if isinstance(piece, Coded):
        return _ids(piece.values, place).take(piece.codes)
    return of_whole_numbers(_whole(piece, place))


def _whole(numbers: Array, place: CellPlace) -> Array:
    if not len(numbers):
        return np.zeros(0, np.int64)
    if numbers.dtype.kind not in "iu":
        raise place.wrong(f"holds ids as {numbers.dtype}, expected text or whole numbers; cast it")
    return numbers


def _piece_of(values: Any, place: CellPlace) -> Piece:
    """A column that is not Arrow: an array, or an object that makes one."""
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


def _of_objects(values: list[Any], place: CellPlace) -> Piece:
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


# Arrow: the structures are those of its C data interface, https://arrow.apache.org/docs/format/CDataInterface.html


class ArrowSchema(Structure):
    """The type and the name of a column."""


ArrowSchema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_void_p),
    *((name, c_int64) for name in ("flags", "n_children")),
    ("children", POINTER(POINTER(ArrowSchema))),
    ("dictionary", POINTER(ArrowSchema)),
    ("release", CFUNCTYPE(None, POINTER(ArrowSchema))),
    ("private_data", c_void_p),
]


class ArrowArray(Structure):
    """The buffers of a column, or of all columns of a batch."""


ArrowArray._fields_ = [
    *((name, c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(ArrowArray))),
    ("dictionary", POINTER(ArrowArray)),
    ("release", CFUNCTYPE(None, POINTER(ArrowArray))),
    ("private_data", c_void_p),
]


class ArrowArrayStream(Structure):
    """A producer of batches."""


ArrowArrayStream._fields_ = [
    ("get_schema", CFUNCTYPE(c_int, POINTER(ArrowArrayStream), POINTER(ArrowSchema))),
    ("get_next", CFUNCTYPE(c_int, POINTER(ArrowArrayStream), POINTER(ArrowArray))),
    ("get_last_error", CFUNCTYPE(c_char_p, POINTER(ArrowArrayStream))),
    ("release", CFUNCTYPE(None, POINTER(ArrowArrayStream))),
    ("private_data", c_void_p),
]


class Stream:
    """The batches of a frame. Use it in a `with` statement; `pieces` yields the wanted columns of each batch."""

    def __init__(self, frame: Any, where: str) -> None:
        self.where = where
        self._schema = ArrowSchema()
        self._stream: ArrowArrayStream | None = None
        self._array: ArrowArray | None = None
        if hasattr(frame, "__arrow_c_stream__"):
            self._capsule = frame.__arrow_c_stream__()
            self._stream = _pointed(self._capsule, b"arrow_array_stream", ArrowArrayStream)
            self._call(self._stream.get_schema, self._schema)
        else:
            self._capsule = schema, array = frame.__arrow_c_array__()
            self._array = _pointed(array, b"arrow_array", ArrowArray)
            self._schema = _pointed(schema, b"arrow_schema", ArrowSchema)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        for structure in (self._array, self._schema, self._stream):
            _release(structure)

    def _call(self, function: Callable[..., int], answer: Structure) -> None:
        assert self._stream is not None
        failure = function(ctypes.byref(self._stream), ctypes.byref(answer))
        if failure:
            words = self._stream.get_last_error(ctypes.byref(self._stream))
            problem = words.decode("utf-8", "replace") if words else f"error {failure}"
            raise DataError(f"{self.where}: the frame could not be read: {problem}")

    @property
    def names(self) -> list[str]:
        """The column names."""
        if self._schema.format != b"+s":
            format = (self._schema.format or b"").decode()
            problem = f"expected a table with named columns, found one Arrow column of type {format!r}"
            raise FormatError(f"{self.where}: {problem}")
        children = (self._schema.children[i].contents for i in range(self._schema.n_children))
        return [(child.name or b"").decode("utf-8", "replace") for child in children]

    def pieces(self, columns: list[int]) -> Iterator[list[Piece]]:
        """The wanted columns of each batch, copied; the batch is released before the next is asked for."""
        row = 0
        for batch in self._batches():
            try:
                yield [self._piece(batch, i, row) for i in columns]
                row += batch.length
            finally:
                _release(batch)

    def _batches(self) -> Iterator[ArrowArray]:
        if self._stream is None:
            assert self._array is not None
            yield self._array
            return
        while True:
            batch = ArrowArray()
            self._call(self._stream.get_next, batch)
            if not batch.release:
                return
            yield batch

    def _piece(self, batch: ArrowArray, column: int, row: int) -> Piece:
        schema, array = self._schema.children[column].contents, batch.children[column].contents
        place = CellPlace(self.where, (schema.name or b"").decode("utf-8", "replace"), row)
        place.refuse_nulls(_nulls(batch, batch.offset, batch.length))
        return _decoded(schema, array, batch.offset, batch.length, place)


def _pointed(capsule: Any, name: bytes, kind: Any) -> Any:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    return kind.from_address(get(capsule, name))


def _release(structure: Any) -> None:
    """Release a structure. The producer's callback clears `release`, so a capsule does not release it again."""
    if structure is not None and structure.release:
        structure.release(ctypes.byref(structure))


def _bytes(array: ArrowArray, buffer: int, size: int, start: int = 0) -> Array:
    """A slice of a buffer, not copied."""
    address = array.buffers[buffer] if buffer < array.n_buffers else None
    if not size or not address:
        return np.zeros(0, np.uint8)
    return np.frombuffer(memoryview((c_char * size).from_address(address + start)).cast("B"), np.uint8)


def _values(array: ArrowArray, buffer: int, kind: Any, start: int, count: int) -> Array:
    size = np.dtype(kind).itemsize
    return _bytes(array, buffer, count * size, start * size).view(kind)


def _bits(array: ArrowArray, buffer: int, start: int, count: int) -> Array:
    first, last = start // 8, -(-(start + count) // 8)
    bits = np.unpackbits(_bytes(array, buffer, last - first, first), bitorder="little")
    return bits[start - first * 8 : start - first * 8 + count]


def _nulls(array: ArrowArray, start: int, count: int) -> Array | None:
    """Which rows have no value; None if all have one."""
    if not count or array.null_count == 0 or not array.n_buffers or not array.buffers[0]:
        return None
    null: Array = _bits(array, 0, start, count) == 0
    return null


def _decoded(schema: ArrowSchema, array: ArrowArray, offset: int, count: int, place: CellPlace) -> Piece:
    start, form = array.offset + offset, schema.format
    place.refuse_nulls(np.ones(count, bool) if form == b"n" else _nulls(array, start, count))
    if not schema.dictionary:
        return _plain(form, array, start, count, place)
    codes = _values(array, 1, NUMBERS[form], start, count).astype(np.int64)
    values, form = array.dictionary.contents, schema.dictionary.contents.format
    null = _nulls(values, values.offset, values.length)
    place.refuse_nulls(None if null is None else null[codes])
    return Coded(codes, _plain(form, values, values.offset, values.length, place))


def _plain(form: bytes, array: ArrowArray, start: int, count: int, place: CellPlace) -> Strings | Array:
    if form in NUMBERS:
        return _values(array, 1, NUMBERS[form], start, count).copy()
    if form == b"b":
        return _bits(array, 1, start, count).astype(bool)
    if form in (b"u", b"z", b"U", b"Z"):
        return _texts(array, np.int32 if form in (b"u", b"z") else np.int64, start, count)
    if form in (b"vu", b"vz"):
        return _views(array, start, count)
    if form.startswith(b"w:"):
        width = int(form[2:])
        return Strings(_bytes(array, 1, width * count, width * start).tobytes(), np.arange(count + 1) * width)
    if form.startswith(b"d:"):
        return _decimals(form, array, start, count)
    if form == b"n":
        return np.zeros(0)
    problem = f"expected text or numbers, found Arrow type {form.decode()!r}"
    raise FormatError(f"{place.where}: column {place.column!r}: {problem}; cast it")


def _texts(array: ArrowArray, kind: Any, start: int, count: int) -> Strings:
    if not count:
        return Strings(b"", np.zeros(1, np.int64))
    offsets = _values(array, 1, kind, start, count + 1).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    return Strings(_bytes(array, 2, last - first, first).tobytes(), offsets - first)


def _views(array: ArrowArray, start: int, count: int) -> Strings:
    """Texts of up to 12 bytes are in the view itself, longer ones in one of the buffers that follow."""
    raw = _bytes(array, 1, 16 * count, 16 * start)
    views = raw.view(np.int32).reshape(-1, 4)
    lengths, which, begins = views[:, 0].astype(np.int64), views[:, 2], views[:, 3].astype(np.int64)
    sizes = _values(array, int(array.n_buffers) - 1, np.int64, 0, int(array.n_buffers) - 3).tolist()
    outer = [_bytes(array, 2 + i, size) for i, size in enumerate(sizes)]

    def lay(start: int, stop: int, width: int) -> Array:
        rows = np.arange(start, stop)
        laid = cells(raw, rows * 16 + 4, width)
        outside = np.flatnonzero(lengths[start:stop] > 12)
        for i in np.unique(which[start + outside]).tolist():
            held = outside[which[start + outside] == i]
            laid[held] = cells(outer[i], begins[start + held], width)
        return laid

    return packed(lengths, lay)


def _decimals(form: bytes, array: ArrowArray, start: int, count: int) -> Array:
    """Decimal numbers as the nearest doubles."""
    _, scale, *bits = (int(part) for part in form[2:].split(b","))
    width = (bits[0] if bits else 128) // 8
    raw = _bytes(array, 1, width * count, width * start).tobytes()
    ten = 10 ** abs(scale)
    whole = (int.from_bytes(raw[i : i + width], "little", signed=True) for i in range(0, len(raw), width))
    return np.array([value / ten if scale >= 0 else float(value * ten) for value in whole], np.float64)


# columns of texts as blocks of bytes: no text becomes a Python object


def of_whole_numbers(numbers: Array) -> Strings:
    """Whole numbers as decimal text.

    >>> list(of_whole_numbers(np.array([0, -7, 12345])))
    [b'0', b'-7', b'12345']
    """
    blocks, counts = [], [np.zeros(0, np.int64)]
    for start in range(0, len(numbers), CHUNK):
        part = numbers[start : start + CHUNK]
        negative = part < 0
        size = part.astype(np.uint64)
        size[negative] = ~size[negative] + np.uint64(1)  # also right for the least int64
        laid = _digits(size)
        width = laid.shape[1]
        count = width - np.argmax(laid != 48, axis=1)
        count[size == 0] = 1
        signed = np.concatenate([np.zeros((len(part), 1), np.uint8), laid], axis=1)
        signed[np.flatnonzero(negative), (width - count)[negative]] = 45
        count = count + negative
        blocks.append(signed[np.arange(width + 1) > (width - count)[:, None]].tobytes())
        counts.append(count)
    return Strings(b"".join(blocks), offsets_of(np.concatenate(counts)))


def _digits(size: Array) -> Array:
    """The decimal digits with leading zeros, four at a time."""
    groups = []
    while True:
        if size.dtype == np.uint64 and int(size.max(initial=0)) < 1 << 32:
            size = size.astype(np.uint32)  # divides faster
        size, rest = np.divmod(size, size.dtype.type(10_000))
        groups.append(DIGITS[rest])
        if not size.any():
            return np.concatenate(groups[::-1], axis=1)


def changes(strings: Strings) -> Array:
    """The rows whose text differs from the row above; the first row counts as different."""
    block, lengths = np.frombuffer(strings.block, np.uint8), np.diff(strings.offsets)
    differs = np.ones(len(strings), bool)
    differs[1:] = lengths[1:] != lengths[:-1]
    for start in range(1, len(strings), CHUNK):
        stop = min(start + CHUNK, len(strings))
        ends = strings.offsets[start : stop + 1]
        here = block[ends[0] : ends[-1]]
        before = np.arange(ends[0], ends[-1]) - np.repeat(lengths[start:stop], lengths[start:stop])
        unequal = np.zeros(len(here) + 1, np.int64)
        np.cumsum(here != block[np.maximum(before, 0)], out=unequal[1:])
        differs[start:stop] |= np.diff(unequal[ends - ends[0]]) > 0
    return np.flatnonzero(differs)


def distinct(strings: Strings) -> tuple[Array, Array]:
    """The first row of each distinct text, and the number of each row's text among them."""
    lengths = np.diff(strings.offsets)
    width = int(lengths.max(initial=0))
    if len(strings) < 10_000 or width > 64 or b"\0" in bytes(strings.block):
        number_of: dict[bytes, int] = {}
        numbers = np.fromiter((number_of.setdefault(text, len(number_of)) for text in strings), np.int64, len(strings))
        return _first(numbers, len(number_of)), numbers
    block, codes = np.frombuffer(strings.block, np.uint8), np.zeros(len(strings), np.uint64)
    for column in range(0, width, 8):  # eight bytes as one number, combined with the number of the texts so far
        part = np.zeros((len(strings), 8), np.uint8)
        for start in range(0, len(strings), CHUNK):
            rows = slice(start, start + CHUNK)
            laid = cells(block, strings.offsets[:-1][rows] + column, 8)
            laid[np.arange(column, column + 8) >= lengths[rows, None]] = 0
            part[rows] = laid
        eight = np.unique(part.view(np.uint64)[:, 0], return_inverse=True)[1]
        if column:
            eight = np.unique(codes << np.uint64(32) | eight.astype(np.uint64), return_inverse=True)[1]
        codes = eight.astype(np.uint64)
    return in_order(codes.astype(np.int64), int(codes.max(initial=0)) + 1)


def in_order(codes: Array, size: int) -> tuple[Array, Array]:
    """For codes below `size`: the first row of each code that occurs, in order, and each row's number among them."""
    first = _first(codes, size)
    used = np.flatnonzero(first < len(codes))
    used = used[np.argsort(first[used])]
    numbers = np.zeros(size, np.int64)
    numbers[used] = np.arange(len(used))
    return first[used], numbers[codes]


def _first(codes: Array, size: int) -> Array:
    first = np.full(size, len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # assigned from the back, so the first appearance stays
    return first
