"""Files and frames → Run and Qrels, and back. One self-describing file per format, in `known/`; detected by content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.formats.reading import (
    as_qrels,
    as_runs,
    detect,
    expand,
    qrels_in,
    read_qrels,
    read_run,
    write_qrels,
    write_run,
)
from cranfield.formats.streams import open_buffer, run_name

if TYPE_CHECKING:
    from cranfield.formats.registry import FORMATS as FORMATS

__all__ = [
    "FORMATS",
    "as_qrels",
    "as_runs",
    "detect",
    "expand",
    "open_buffer",
    "qrels_in",
    "read_qrels",
    "read_run",
    "run_name",
    "write_qrels",
    "write_run",
]


def __getattr__(name: str) -> Any:
    if name != "FORMATS":
        raise AttributeError(f"module 'cranfield.formats' has no attribute {name!r}")
    from cranfield.formats.registry import FORMATS  # loads every format

    return FORMATS
