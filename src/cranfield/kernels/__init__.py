"""Parse, join, rank: the only hot part, in C where a compiler was found and in NumPy where not.

Both kernels have the same entry points and the same results; `CRANFIELD_KERNEL=numpy` chooses the twin.
A kernel knows bytes, numbers and lines. What they mean (topics, grades, conventions) is said above it.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from cranfield.kernels.table import Fault, FaultError, Found, Layout, Order, Strings, Table, Top, Wanted, decode, encode

if TYPE_CHECKING:  # both kernels look the same
    from types import ModuleType

    from cranfield.kernels.twin import (
        Index,
        hits_of_mapping,
        hits_of_table,
        hits_of_text,
        named,
        parse,
        rows_of_mapping,
        run_lines,
        tops,
    )

__all__ = [
    "NATIVE",
    "Fault",
    "FaultError",
    "Found",
    "Index",
    "Layout",
    "Order",
    "Strings",
    "Table",
    "Top",
    "Wanted",
    "decode",
    "encode",
    "hits_of_mapping",
    "hits_of_table",
    "hits_of_text",
    "named",
    "parse",
    "processors",
    "rows_of_mapping",
    "run_lines",
    "tops",
]


def _choose() -> ModuleType:
    if os.environ.get("CRANFIELD_KERNEL") != "numpy":
        try:
            return importlib.import_module("cranfield.kernels.native")
        except ImportError:  # no compiler was found when it was installed
            pass
    return importlib.import_module("cranfield.kernels.twin")


_kernel: Any = _choose()
NATIVE: bool = _kernel.__name__.endswith(".native")

if not TYPE_CHECKING:
    Index = _kernel.Index
    parse = _kernel.parse
    hits_of_text = _kernel.hits_of_text
    hits_of_table = _kernel.hits_of_table
    hits_of_mapping = _kernel.hits_of_mapping
    named = _kernel.named
    rows_of_mapping = _kernel.rows_of_mapping
    run_lines = _kernel.run_lines
    tops = _kernel.tops


def processors() -> int:
    """How many of the machine's processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
