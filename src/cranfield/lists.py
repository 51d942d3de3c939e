"""Ranked lists, pairs and padded arrays → the columns of a run: what search code has in hand before there is a file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cranfield.errors import DataError
from cranfield.kernels import Strings, Table
from cranfield.kernels.table import refuse_ids

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.kernels.table import Floats


Array: TypeAlias = npt.NDArray[Any]


# ranked lists and pairs


def is_list(value: Any) -> bool:
    """Whether it may be a ranked list: a list, a tuple, a plain array of one dimension."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.names is None
    return isinstance(value, (list, tuple))


def is_pair(value: Any) -> bool:
    """Whether it may be a document and its score."""
    return isinstance(value, (list, tuple)) and len(value) == 2


def table_of_lists(lists: Mapping[Any, Any]) -> Table:
    """The columns of `{topic: documents}`, best first, or of `{topic: (document, score) pairs}`.

    A list of n documents gets the scores n, n - 1, … 1, so that they stay in their order.
    """
    sizes: list[int] = []
    documents: list[str] = []
    scores: list[float] = []
    for topic, given in lists.items():
        refuse_ids({topic: ()})
        if not is_list(given):
            raise DataError(f"topic {topic!r}: expected a list like those of other topics, found {given!r:.60}")
        items = list(given)
        paired = bool(items) and is_pair(items[0])
        names = [_paired(topic, rank, item)[0] for rank, item in enumerate(items, 1)] if paired else items
        refuse_ids({topic: names})
        scores += [_score(topic, *item) for item in items] if paired else range(len(items), 0, -1)
        documents += names
        sizes.append(len(items))
    return _table(list(lists), sizes, documents, np.array(scores, np.float64))


def _paired(topic: str, rank: int, item: Any) -> Any:
    if not is_pair(item):
        raise DataError(f"topic {topic!r}, item {rank}: expected (document, score) as before it, found {item!r:.60}")
    return item


def _score(topic: str, document: str, given: Any) -> float:
    try:
        score = math.nan if isinstance(given, (str, bytes)) else float(given)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if math.isnan(score):
        raise DataError(f"topic {topic!r}, document {document!r}: expected a number as its score, found {given!r:.60}")
    return score


def _table(topics: list[str], sizes: Any, documents: list[str], scores: Floats) -> Table:
    number = np.repeat(np.arange(len(topics), dtype=np.int32), sizes)
    return Table(Strings.of_text(topics), number, Strings.of_text(documents), scores)


# padded arrays


def table_of_arrays(topics: Any, ids: Any, scores: Any, padding: int | str | None) -> Table:
    """The columns of ids and scores, topics × depth, less the cells that only pad a row."""
    cells = _array(ids, "ids")
    if cells.ndim != 2:
        raise DataError(f"ids: expected 2 dimensions, topics × depth, found {cells.ndim}")
    names = _names_of(topics)
    if len(names) != len(cells):
        raise DataError(f"ids: expected a row for each of {len(names)} topics, found {len(cells)}")
    kept = ~_padded(cells, padding)
    documents = [_id(cell, f"ids[{row}, {column}]") for cell, row, column in _cells(cells, kept)]
    return _table(names, kept.sum(axis=1), documents, _scores(scores, kept))


def _array(given: Any, what: str) -> Array:
    """An array from whatever makes one: through `__array__`, or DLPack where there is no such thing."""
    try:
        if isinstance(given, np.ma.MaskedArray):
            return given
        if hasattr(given, "__dlpack__") and not hasattr(given, "__array__"):
            return np.from_dlpack(given)
        return np.asarray(given)
    except Exception as error:  # each library has its own for memory that NumPy cannot see
        raise DataError(f"{what}: expected an array that NumPy can read: {error}") from error


def _names_of(topics: Any) -> list[str]:
    given = topics if isinstance(topics, (list, tuple)) else _array(topics, "topics").tolist()
    if not isinstance(given, (list, tuple)):
        raise DataError(f"topics: expected a list of ids, found {topics!r:.60}")
    names = [_id(topic, f"topics[{row}]") for row, topic in enumerate(given)]
    first = {name: row for row, name in reversed(list(enumerate(names)))}
    for row, name in enumerate(names):
        if first[name] != row:
            raise DataError(f"topics[{row}]: topic {name!r} stands twice, first at {first[name]}")
    return names


def _id(value: Any, where: str) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(int(value))
    raise DataError(f"{where}: expected an id that is text or a whole number, found {value!r:.60}")


def _cells(cells: Array, kept: Array) -> Any:
    rows, columns = np.nonzero(kept)
    return zip(np.ma.getdata(cells)[kept].tolist(), rows.tolist(), columns.tolist(), strict=True)


def _padded(cells: Array, padding: int | str | None) -> Array:
    """The cells without a document: masked, None, empty text, or equal to `padding`."""
    plain: Array = np.ma.getdata(cells)
    if plain.dtype.kind in "iu":
        same = plain == padding if isinstance(padding, (int, np.integer)) else np.zeros(plain.shape, bool)
    else:
        unused = [cell is None or cell == "" or cell == padding for cell in plain.ravel().tolist()]
        same = np.array(unused, bool).reshape(plain.shape)
    return np.asarray(same | np.ma.getmaskarray(cells))


def _scores(given: Any, kept: Array) -> Floats:
    if given is None:
        order = np.arange(kept.shape[1], 0, -1, dtype=np.float64)
        return np.broadcast_to(order, kept.shape)[kept]
    array = _array(given, "scores")
    if array.shape != kept.shape:
        raise DataError(f"scores: expected the shape of the ids, {kept.shape}, found {array.shape}")
    if array.dtype.kind not in "iuf":
        raise DataError(f"scores: expected numbers, found {array.dtype}; cast them")
    scores: Floats = np.ma.filled(array.astype(np.float64), np.nan)
    wrong = np.argwhere(kept & np.isnan(scores))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise DataError(f"scores[{row}, {column}]: expected a number (row {row}, column {column} from 0), found nan")
    return scores[kept]
