"""Columns out of any frame with the Arrow PyCapsule interface, read through ctypes and NumPy.

No Arrow library is needed. Whatever is kept is copied before the producer's memory is released, and
everything that was handed over is released once, also when a column cannot be used. The structures are
those of the Arrow C data interface: https://arrow.apache.org/docs/format/CDataInterface.html
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_int, c_int64, c_void_p
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from cranfield.errors import DataError, FormatError
from cranfield.formats.texts import Array, cells, packed
from cranfield.kernels import Strings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType


class ArrowSchema(Structure):
    """The type and the name of a column."""


ArrowSchema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(ArrowSchema))),
    ("dictionary", POINTER(ArrowSchema)),
    ("release", CFUNCTYPE(None, POINTER(ArrowSchema))),
    ("private_data", c_void_p),
]


class ArrowArray(Structure):
    """The buffers of a column, or of all columns of a batch."""


ArrowArray._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
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

NUMBERS = {
    b"c": np.int8,
    b"C": np.uint8,
    b"s": np.int16,
    b"S": np.uint16,
    b"i": np.int32,
    b"I": np.uint32,
    b"l": np.int64,
    b"L": np.uint64,
    b"e": np.float16,
    b"f": np.float32,
    b"g": np.float64,
}


class Coded(NamedTuple):
    """A dictionary-encoded column: row i holds `values[codes[i]]`."""

    codes: Array
    values: Strings | Array


Piece: TypeAlias = "Strings | Array | Coded"


class Place(NamedTuple):
    """Where a value stands, for messages."""

    where: str
    column: str
    row: int = 0  # the number of the batch's first row

    def refuse_nulls(self, null: Array | None) -> None:
        """Stop at the first row that has no value."""
        if null is not None and null.any():
            row = self.row + int(np.argmax(null)) + 1
            raise DataError(f"{self.where}: row {row}: no value in column {self.column!r} (null)")

    def wrong(self, problem: str) -> FormatError:
        """The error for a column that cannot be used."""
        return FormatError(f"{self.where}: column {self.column!r} {problem}")


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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for structure in (self._array, self._schema, self._stream):
            _release(structure)

    def _call(self, function: Callable[..., int], answer: Structure) -> None:
        assert self._stream is not None
        failure = function(ctypes.byref(self._stream), ctypes.byref(answer))
        if failure:
            words = self._stream.get_last_error(ctypes.byref(self._stream))
            said = words.decode("utf-8", "replace") if words else f"error {failure}"
            raise DataError(f"{self.where}: the frame could not be read: {said}")

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        if self._schema.format != b"+s":
            shown = (self._schema.format or b"").decode()
            raise FormatError(
                f"{self.where}: expected a table with named columns, found one Arrow column of type {shown!r}"
            )
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
        place = Place(self.where, (schema.name or b"").decode("utf-8", "replace"), row)
        place.refuse_nulls(_nulls(batch, batch.offset, batch.length))
        return _decoded(schema, array, batch.offset, batch.length, place)


def _pointed(capsule: Any, name: bytes, kind: Any) -> Any:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    return kind.from_address(get(capsule, name))


def _release(structure: Any) -> None:
    """Hand a structure back. The producer's callback clears `release`, so that a capsule does not do it again."""
    if structure is not None and structure.release:
        structure.release(ctypes.byref(structure))


def _bytes(array: ArrowArray, buffer: int, size: int, start: int = 0) -> Array:
    """A part of a buffer, not copied."""
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
    """Which rows have no value; None where all have one."""
    if not count or array.null_count == 0 or not array.n_buffers or not array.buffers[0]:
        return None
    null: Array = _bits(array, 0, start, count) == 0
    return null


def _decoded(schema: ArrowSchema, array: ArrowArray, offset: int, count: int, place: Place) -> Piece:
    start, form = array.offset + offset, schema.format
    place.refuse_nulls(np.ones(count, bool) if form == b"n" else _nulls(array, start, count))
    if not schema.dictionary:
        return _plain(form, array, start, count, place)
    codes = _values(array, 1, NUMBERS[form], start, count).astype(np.int64)
    values, form = array.dictionary.contents, schema.dictionary.contents.format
    null = _nulls(values, values.offset, values.length)
    place.refuse_nulls(None if null is None else null[codes])
    return Coded(codes, _plain(form, values, values.offset, values.length, place))


def _plain(form: bytes, array: ArrowArray, start: int, count: int, place: Place) -> Strings | Array:
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
    raise FormatError(
        f"{place.where}: column {place.column!r}: expected text or numbers, found Arrow type {form.decode()!r}; cast it"
    )


def _texts(array: ArrowArray, kind: Any, start: int, count: int) -> Strings:
    if not count:
        return Strings(b"", np.zeros(1, np.int64))
    offsets = _values(array, 1, kind, start, count + 1).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    return Strings(_bytes(array, 2, last - first, first).tobytes(), offsets - first)


def _views(array: ArrowArray, start: int, count: int) -> Strings:
    """Texts of up to 12 bytes stand in the view itself, longer ones in one of the buffers that follow."""
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

    def one(row: int) -> bytes:
        source, begin = (raw, row * 16 + 4) if lengths[row] <= 12 else (outer[which[row]], begins[row])
        return source[begin : begin + lengths[row]].tobytes()

    return packed(lengths, lay, one)


def _decimals(form: bytes, array: ArrowArray, start: int, count: int) -> Array:
    """Decimal numbers to the nearest double."""
    _, scale, *bits = (int(part) for part in form[2:].split(b","))
    width = (bits[0] if bits else 128) // 8
    raw = _bytes(array, 1, width * count, width * start).tobytes()
    ten = 10 ** abs(scale)
    whole = (int.from_bytes(raw[i : i + width], "little", signed=True) for i in range(0, len(raw), width))
    return np.array([value / ten if scale >= 0 else float(value * ten) for value in whole], np.float64)
