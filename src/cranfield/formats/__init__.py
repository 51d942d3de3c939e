"""Files and frames → Run and Qrels, and back. One class per format, in `files/`; the content decides."""

from __future__ import annotations

from cranfield.formats.format import FORMATS
from cranfield.formats.runs_and_qrels import (
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
