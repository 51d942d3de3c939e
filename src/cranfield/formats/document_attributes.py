"""Attributes of documents from text files: reading costs, and the groups that a document belongs to.

Costs: a line names a document and its cost (`d17 34.5`) in seconds, words or characters, whichever the measure expects.
The cost files of cwl_eval look the same but name a type of result instead of a document.

Groups (of authors, sources, regions …): a line names a document, a group and, if the document belongs to it only in
part, its share: `d17 women 0.5`. A document may have several lines. A missing share is 1.
"""

from __future__ import annotations

import math
from typing import Any

from cranfield.base.errors import BadLineError, DataError, DuplicateError
from cranfield.base.kernels import decode
from cranfield.formats.format import is_number
from cranfield.formats.streams import data_lines, opened


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
        document, cost = decode(cells[0]), _amount(cells[1], "a cost of 0 or more", content.where, number)
        if document in costs:
            raise DuplicateError(content.where, number, f"document {document!r} has a cost already")
        costs[document] = cost
    if not costs:
        raise DataError(f"{content.where}: expected a document and its cost on each line, found none")
    return costs


def read_groups(source: Any) -> dict[str, dict[str, float]]:
    """Read a file of group labels: document, group and perhaps share, separated by white space, or all by tabs.

    >>> read_groups(b"d1 europe\\nd2 europe 0.5\\nd2 asia 0.5\\n# a comment\\n")
    {'d1': {'europe': 1.0}, 'd2': {'europe': 0.5, 'asia': 0.5}}
    """
    content = opened(source)
    groups: dict[str, dict[str, float]] = {}
    for number, line in data_lines(content.buffer):
        document, group, share = _cells(line, content.where, number)
        if group in groups.setdefault(document, {}):
            raise DuplicateError(content.where, number, f"document {document!r} is put into group {group!r} twice")
        groups[document][group] = share
    if not groups:
        raise DataError(f"{content.where}: expected a document and its group on each line, found none")
    return groups


def _cells(line: bytes, where: str, number: int) -> tuple[str, str, float]:
    """A line's document, group and share. If a line has a tab, only tabs separate, so that names may contain blanks."""
    cells = [cell.strip() for cell in line.split(b"\t")] if b"\t" in line else line.split()
    if not 2 <= len(cells) <= 3 or not all(cells):
        count = sum(map(bool, cells))
        raise BadLineError(where, number, f"expected 2 or 3 columns (document group share), found {count}")
    share = _amount(cells[2], "a share of 0 or more in column 3", where, number) if len(cells) > 2 else 1.0
    return decode(cells[0]), decode(cells[1]), share


def _amount(cell: bytes, expected: str, where: str, number: int) -> float:
    """The number in a cell; BadLineError if it is negative, infinite or not a number."""
    amount = float(cell) if is_number(cell) else math.nan
    if not 0 <= amount < math.inf:
        raise BadLineError(where, number, f"expected {expected}, found {decode(cell)!r}")
    return amount
