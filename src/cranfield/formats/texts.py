"""Columns of texts, handled as blocks of bytes: gathered, taken, numbered, made from whole numbers.

No text becomes a Python object here, save where a chunk holds one too long to lay out. The trick throughout
is a matrix of cells, one row a text and as wide as the longest of a chunk, and a mask that cuts it to length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cranfield.kernels import Strings

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.kernels.table import Offsets


Array: TypeAlias = npt.NDArray[Any]

CHUNK = 1 << 16  # texts laid out at a time
WIDE = 1 << 24  # bytes of cells, at the most
DIGITS = np.frombuffer(b"".join(b"%04d" % i for i in range(10_000)), np.uint8).reshape(-1, 4)


def packed(lengths: Array, lay: Callable[[int, int, int], Array], one: Callable[[int], bytes]) -> Strings:
    """Texts of these lengths: `lay(start, stop, width)` gives the cells of some, `one(i)` a single text."""
    offsets = _offsets(lengths)
    block = np.empty(int(offsets[-1]), np.uint8)
    for start in range(0, len(lengths), CHUNK):
        stop = min(start + CHUNK, len(lengths))
        part = lengths[start:stop]
        width = int(part.max())
        target = block[offsets[start] : offsets[stop]]
        if width * len(part) > WIDE:
            target[:] = np.frombuffer(b"".join(one(i) for i in range(start, stop)), np.uint8)
        elif width * len(part) == len(target):  # all equally long
            target[:] = lay(start, stop, width).reshape(-1)
        else:
            target[:] = lay(start, stop, width)[np.arange(width) < part[:, None]]
    return _strings(block, offsets)


def cells(source: Array, starts: Offsets, width: int) -> Array:
    """The `width` bytes at each start; what lies beyond the end of the source is 0."""
    if not width or not len(starts):
        return np.zeros((len(starts), width), np.uint8)
    safe = len(source) - width
    if safe >= 0 and int(starts.max()) <= safe:
        found: Array = np.lib.stride_tricks.sliding_window_view(source, width)[starts]
        return found
    base = max(safe, 0)
    tail = np.lib.stride_tricks.sliding_window_view(np.r_[source[base:], np.zeros(width, np.uint8)], width)
    answer = np.empty((len(starts), width), np.uint8)
    late = starts > safe
    answer[late] = tail[np.minimum(starts[late] - base, len(tail) - 1)]
    if not late.all():
        answer[~late] = np.lib.stride_tricks.sliding_window_view(source, width)[starts[~late]]
    return answer


def take(strings: Strings, rows: Array) -> Strings:
    """The texts at `rows`, in that order."""
    block, starts = np.frombuffer(strings.block, np.uint8), strings.offsets[rows]
    return packed(
        np.diff(strings.offsets)[rows],
        lambda start, stop, width: cells(block, starts[start:stop], width),
        lambda i: strings[int(rows[i])],
    )


def joined(parts: list[Strings]) -> Strings:
    """One column after the other."""
    if len(parts) == 1:
        return parts[0]
    lengths = [np.diff(part.offsets) for part in parts]
    blocks = [part.block[part.offsets[0] : part.offsets[-1]] for part in parts]
    return Strings(b"".join(blocks), _offsets(np.concatenate([np.zeros(0, np.int64), *lengths])))


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
    return Strings(b"".join(blocks), _offsets(np.concatenate(counts)))


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
    """The rows whose text differs from the one above; the first does."""
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
    """The row in which each distinct text first appears, in that order, and each row's number among them."""
    lengths = np.diff(strings.offsets)
    width = int(lengths.max(initial=0))
    if len(strings) < 10_000 or width > 64 or b"\0" in bytes(strings.block):
        seen: dict[bytes, int] = {}
        numbers = np.fromiter((seen.setdefault(text, len(seen)) for text in strings), np.int64, len(strings))
        return _first(numbers, len(seen)), numbers
    block, codes = np.frombuffer(strings.block, np.uint8), np.zeros(len(strings), np.uint64)
    for column in range(0, width, 8):  # eight bytes as one number, and the number of the distinct ones so far
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
    """Codes below `size`: where each that occurs first appears, in that order, and each row's number among them."""
    first = _first(codes, size)
    used = np.flatnonzero(first < len(codes))
    used = used[np.argsort(first[used])]
    numbers = np.zeros(size, np.int64)
    numbers[used] = np.arange(len(used))
    return first[used], numbers[codes]


def _first(codes: Array, size: int) -> Array:
    first = np.full(size, len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # the last assignment stays: the first appearance
    return first


def _offsets(lengths: Array) -> Offsets:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _strings(block: Array, offsets: Offsets) -> Strings:
    return Strings(block if len(block) else b"", offsets)
