"""The examination of positions, as `cranfield online position-bias -o` writes it: what the position-based estimator reads."""

from __future__ import annotations

import math
from typing import NamedTuple

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.parameters import shortened
from cranfield.formats.csv_tables import DETECTED, SeparatedValues, open_table

RANK, EXAMINATION, METHOD = "rank", "examination", "method"
LIMITS = ("low", "high")
NORMAL = 1.959964  # of a 95 % interval


class Examination(NamedTuple):
    """How often a rank is examined, relative to rank 1, and the standard error of that; 0 if it is unknown."""

    value: float
    error: float = 0.0


def read_examination(path: str) -> dict[int, Examination]:
    """The examination of each rank; ranks without one are left out. Errors follow from the columns low and high.

    A file with several methods is refused: each has another curve.
    """
    file = open_table(path)
    table = SeparatedValues(bytes(file.buffer), path, lambda names: {RANK, EXAMINATION} <= {*names}, DETECTED)
    lacking = [name for name in (RANK, EXAMINATION) if name not in table.names]
    if lacking:
        raise BadLineError(path, 1, f"expected columns rank and examination, found {shortened(', '.join(table.names))}")
    curve: dict[int, Examination] = {}
    methods: dict[str, int] = {}
    for row in table:
        if len(row.cells) != len(table.names):
            raise BadLineError(path, row.line, f"expected {len(table.names)} columns, found {len(row.cells)}")
        cells = dict(zip(table.names, row.cells, strict=True))
        methods.setdefault(cells.get(METHOD, ""), row.line)
        if len(methods) > 1:
            one, other = methods
            raise BadLineError(
                path, row.line, f"expected one method, found {one!r} and {other!r}; keep the rows of one"
            )
        rank = _rank(path, row.line, cells[RANK])
        if rank in curve:
            raise BadLineError(path, row.line, f"expected each rank once, found {rank} again")
        if cells[EXAMINATION].strip():
            limits = [
                _number(path, row.line, name, cells[name], table) for name in LIMITS if cells.get(name, "").strip()
            ]
            error = (limits[1] - limits[0]) / (2 * NORMAL) if len(limits) == len(LIMITS) else 0.0
            if not (math.isfinite(error) and error >= 0):
                raise BadLineError(path, row.line, f"expected finite limits with low below high, found {limits}")
            curve[rank] = Examination(_examination(path, row.line, cells[EXAMINATION], table), error)
    table.report()
    if not curve:
        raise DataError(f"{path}: expected the examination of each rank, found none")
    return curve


def _rank(path: str, line: int, typed: str) -> int:
    text = typed.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= 1):
        raise BadLineError(path, line, f"expected a rank of 1 or more, found {shortened(typed)!r}")
    return int(text)


def _number(path: str, line: int, name: str, typed: str, table: SeparatedValues) -> float:
    try:
        return table.numbers.read(typed, line)
    except ValueError as error:
        raise BadLineError(path, line, f"expected a number as {name}, {error}") from None


def _examination(path: str, line: int, typed: str, table: SeparatedValues) -> float:
    value = _number(path, line, EXAMINATION, typed, table)
    if not (math.isfinite(value) and 0 < value <= 1e6):
        raise BadLineError(path, line, f"expected an examination above 0, found {shortened(typed)!r}")
    return value
