"""Rows as CSV for people: no cell is computed by a spreadsheet."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from cranfield.answer import defused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def csv_of(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A header and rows.

    >>> csv_of(["id", "n"], [("=1+1", 2), ("a,b", 3)])
    'id,n\\n\\'=1+1,2\\n"a,b",3\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([defused(str(cell)) for cell in row] for row in rows)
    return text.getvalue()
