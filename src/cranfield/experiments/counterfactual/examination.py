"""The examination of positions, as `cranfield online position-bias -o` writes it: what the position-based estimator reads."""

from __future__ import annotations

import math

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.parameters import shortened
from cranfield.formats.csv_tables import DETECTED, SeparatedValues, open_table

RANK, EXAMINATION, METHOD = "rank", "examination", "method"


def read_examination(path: str) -> dict[int, float]:
    """The examination of each rank, relative to rank 1; ranks without one are left out.

    A file with several methods is refused: each has another curve.
    """
    file = open_table(path)
    table = SeparatedValues(bytes(file.buffer), path, lambda names: {RANK, EXAMINATION} <= {*names}, DETECTED)
    lacking = [name for name in (RANK, EXAMINATION) if name not in table.names]
    if lacking:
        raise BadLineError(path, 1, f"expected columns rank and examination, found {shortened(', '.join(table.names))}")
    curve: dict[int, float] = {}
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
            curve[rank] = _examination(path, row.line, cells[EXAMINATION], table)
    table.report()
    if not curve:
        raise DataError(f"{path}: expected the examination of each rank, found none")
    return curve


def _rank(path: str, line: int, typed: str) -> int:
    text = typed.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= 1):
        raise BadLineError(path, line, f"expected a rank of 1 or more, found {shortened(typed)!r}")
    return int(text)


def _examination(path: str, line: int, typed: str, table: SeparatedValues) -> float:
    try:
        value = table.numbers.read(typed, line)
    except ValueError as error:
        raise BadLineError(path, line, f"expected a number as examination, {error}") from None
    if not (math.isfinite(value) and 0 < value <= 1e6):
        raise BadLineError(path, line, f"expected an examination above 0, found {shortened(typed)!r}")
    return value
