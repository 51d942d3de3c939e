"""Numbers for byte strings: equal strings have equal keys, different ones hardly ever (64 bits), without Python objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from cranfield.kernels import Strings

    Array = npt.NDArray[Any]


def words(data: Array, at: Array, left: Array) -> Array:
    """Eight bytes from each offset as one number, with those beyond `left` set to 0. `data` needs 8 spare bytes."""
    windows = np.ndarray((max(len(data) - 7, 0),), "V8", data, strides=(1,))
    raw = windows[np.minimum(at, len(windows) - 1)].view("<u8")
    kept = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
    masked: Array = raw & kept[np.clip(left, 0, 8)]
    return masked


def spread(keys: Array, more: Array) -> Array:
    """Mix another number into each key, so that equal pairs have equal keys and others hardly ever."""
    keys = (keys ^ more) * np.uint64(0x9E3779B97F4A7C15)
    mixed: Array = keys ^ (keys >> np.uint64(29))
    return mixed


def keys(strings: Strings, folded: bool = False) -> Array:
    """A 64-bit key for each string; `folded` takes upper for lower case letters."""
    data = np.r_[np.frombuffer(strings.block, np.uint8), np.zeros(8, np.uint8)]
    if folded:
        data[(data >= ord("A")) & (data <= ord("Z"))] |= 0x20
    start, length = strings.offsets[:-1], np.diff(strings.offsets)
    keys = spread(np.zeros(len(start), np.uint64), length.astype(np.uint64))
    for done in range(0, int(length.max(initial=0)), 8):
        rows = np.flatnonzero(length > done) if done else slice(None)
        keys[rows] = spread(keys[rows], words(data, start[rows] + done, length[rows] - done))
    return keys
