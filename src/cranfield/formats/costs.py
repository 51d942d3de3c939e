"""Costs: what each document costs to read, in seconds, words or characters, whichever the measure wants.

A line names a document and its cost: `d17 34.5`. cwl_eval's cost files look the same but name a type of result, which
stands in the second column of its runs; here a cost belongs to a document.
"""

from __future__ import annotations

import math
from typing import Any

from cranfield.errors import BadLineError, DataError, DuplicateError
from cranfield.formats.format import is_number
from cranfield.formats.streams import data_lines, opened
from cranfield.kernels import decode

__all__ = ["read_costs"]


def read_costs(source: Any) -> dict[str, float]:
    """Read a file of costs: document and cost, separated by white space.

    >>> read_costs(b"d1 12\\nd2 3.5\\n# a comment\\n")
    {'d1': 12.0, 'd2': 3.5}
    """
    content = opened(source)
    costs: dict[str, float] = {}
    for number, line in data_lines(content.buffer):
        cells = line.split()
        if len(cells) != 2:
            raise BadLineError(content.where, number, f"expected 2 columns (document cost), found {len(cells)}")
        document, cost = decode(cells[0]), float(cells[1]) if is_number(cells[1]) else math.nan
        if not 0 <= cost < math.inf:
            raise BadLineError(content.where, number, f"expected a cost of 0 or more, found {decode(cells[1])!r}")
        if document in costs:
            raise DuplicateError(content.where, number, f"document {document!r} has a cost already")
        costs[document] = cost
    if not costs:
        raise DataError(f"{content.where}: expected a document and its cost on each line, found none")
    return costs
