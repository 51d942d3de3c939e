"""The examination of positions, as `cranfield online position-bias -o` writes it: what the position-based estimator reads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.parameters import shortened
from cranfield.formats.csv_tables import DETECTED, HEAD, NumberReader, SeparatedValues, open_table
from cranfield.formats.streams import json_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cranfield.base.kernels.table import Floats

RANK, EXAMINATION, METHOD = "rank", "examination", "method"
COVARIANCES = "log_covariances"
LIMITS = ("low", "high")
LARGEST = 1e6  # of an examination and of a covariance
NORMAL = 1.959964  # of a 95 % interval


class Examination(NamedTuple):
    """How often a rank is examined, relative to rank 1, and the standard error of that; 0 if it is unknown.

    `covariances` are those of its logarithm with the logarithms of ranks 1, 2, …; without them, errors are independent.
    """

    value: float
    error: float = 0.0
    covariances: tuple[float, ...] = ()


def error_parts(examination: Sequence[Examination]) -> Floats:
    """Independent errors of the logarithms of ranks 1, 2, …: a column for each part, whose squares add up to the variances.

    >>> error_parts([Examination(1.0), Examination(0.5, 0.05)]).tolist()
    [[0.0, 0.0], [0.0, 0.1]]
    """
    size = len(examination)
    if any(len(each.covariances) < size for each in examination):
        return np.diag([each.error / each.value for each in examination])
    covariance = np.array([each.covariances[:size] for each in examination])
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)), np.float64)


def read_examination(path: str) -> dict[int, Examination]:
    """The examination of each rank; ranks without one are left out. Errors follow from the columns low and high.

    The column log_covariances says which errors ranks have in common. A file with several methods is refused: each has
    another curve.
    """
    curve: dict[int, Examination] = {}
    methods: dict[str, int] = {}
    numbers = NumberReader()
    for line, cells in _rows(path):
        methods.setdefault(cells.get(METHOD, ""), line)
        if len(methods) > 1:
            one, other = methods
            raise BadLineError(path, line, f"expected one method, found {one!r} and {other!r}; keep the rows of one")
        rank = _rank(path, line, cells[RANK])
        if rank in curve:
            raise BadLineError(path, line, f"expected each rank once, found {rank} again")
        if cells[EXAMINATION].strip():
            limits = [_number(path, line, name, cells[name], numbers) for name in LIMITS if cells.get(name, "").strip()]
            error = (limits[1] - limits[0]) / (2 * NORMAL) if len(limits) == len(LIMITS) else 0.0
            if not (math.isfinite(error) and error >= 0):
                raise BadLineError(path, line, f"expected finite limits with low below high, found {limits}")
            covariances = _covariances(path, line, cells.get(COVARIANCES, ""), numbers)
            if min(covariances[rank - 1 : rank], default=0.0) < 0:
                raise BadLineError(path, line, f"expected a variance of 0 or more, found {covariances[rank - 1]:g}")
            curve[rank] = Examination(_examination(path, line, cells[EXAMINATION], numbers), error, covariances)
    if not curve:
        raise DataError(f"{path}: expected the examination of each rank, found none")
    return curve


def _rows(path: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV, TSV or JSON lines file, each with its line."""
    file = open_table(path)
    if bytes(file.buffer[:HEAD]).lstrip().startswith(b"{"):
        for line, row in json_rows(path, "a rank with its examination as a JSON object"):
            yield line, _with_columns(path, line, {name: "" if row[name] is None else str(row[name]) for name in row})
        return
    table = SeparatedValues(bytes(file.buffer), path, lambda names: {RANK, EXAMINATION} <= {*names}, DETECTED)
    _with_columns(path, 1, dict.fromkeys(table.names, ""))
    for each in table:
        if len(each.cells) != len(table.names):
            raise BadLineError(path, each.line, f"expected {len(table.names)} columns, found {len(each.cells)}")
        yield each.line, dict(zip(table.names, each.cells, strict=True))
    table.report()


def _with_columns(path: str, line: int, row: dict[str, str]) -> dict[str, str]:
    if not {RANK, EXAMINATION} <= row.keys():
        raise BadLineError(
            path, line, f"expected columns rank and examination, found {shortened(', '.join(row)) or 'none'}"
        )
    return row


def _rank(path: str, line: int, typed: str) -> int:
    text = typed.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= 1):
        raise BadLineError(path, line, f"expected a rank of 1 or more, found {shortened(typed)!r}")
    return int(text)


def _number(path: str, line: int, name: str, typed: str, numbers: NumberReader) -> float:
    try:
        return numbers.read(typed, line)
    except ValueError as error:
        raise BadLineError(path, line, f"expected a number as {name}, {error}") from None


def _covariances(path: str, line: int, typed: str, numbers: NumberReader) -> tuple[float, ...]:
    values = tuple(_number(path, line, COVARIANCES, each, numbers) for each in typed.split())
    if not all(abs(each) <= LARGEST for each in values):
        raise BadLineError(path, line, f"expected {COVARIANCES} from -1e6 to 1e6, found {shortened(typed)!r}")
    return values


def _examination(path: str, line: int, typed: str, numbers: NumberReader) -> float:
    value = _number(path, line, EXAMINATION, typed, numbers)
    if not (math.isfinite(value) and 0 < value <= LARGEST):
        raise BadLineError(path, line, f"expected an examination above 0, found {shortened(typed)!r}")
    return value
