"""Parse, join and rank runs, the part that must be fast: in C if a compiler was found, else in NumPy.

Both kernels have the same entry points and the same results; `CRANFIELD_KERNEL=numpy` chooses the NumPy kernel. A
kernel knows only bytes, numbers and lines. The packages above it know what they mean (topics, grades, conventions).
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from cranfield.base.kernels.table import FaultError as FaultError
from cranfield.base.kernels.table import FieldNumbers as FieldNumbers
from cranfield.base.kernels.table import HitRows as HitRows
from cranfield.base.kernels.table import LineFault as LineFault
from cranfield.base.kernels.table import LineLayout as LineLayout
from cranfield.base.kernels.table import Order as Order
from cranfield.base.kernels.table import RowTable as RowTable
from cranfield.base.kernels.table import Strings as Strings
from cranfield.base.kernels.table import Top as Top
from cranfield.base.kernels.table import decode as decode
from cranfield.base.kernels.table import encode as encode

if TYPE_CHECKING:  # both kernels have the same interface
    from types import ModuleType

    from cranfield.base.kernels.twin import Index as Index
    from cranfield.base.kernels.twin import hits_of_mapping as hits_of_mapping
    from cranfield.base.kernels.twin import hits_of_table as hits_of_table
    from cranfield.base.kernels.twin import hits_of_text as hits_of_text
    from cranfield.base.kernels.twin import named as named
    from cranfield.base.kernels.twin import parse as parse
    from cranfield.base.kernels.twin import rows_of_mapping as rows_of_mapping
    from cranfield.base.kernels.twin import run_lines as run_lines
    from cranfield.base.kernels.twin import top_documents as top_documents


def _choose() -> ModuleType:
    if os.environ.get("CRANFIELD_KERNEL") != "numpy":
        try:
            return importlib.import_module("cranfield.base.kernels.native")
        except ImportError:  # no compiler was found when it was installed
            pass
    return importlib.import_module("cranfield.base.kernels.twin")


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
    top_documents = _kernel.top_documents


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
