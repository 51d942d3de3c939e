"""A worker's linear algebra keeps to one core."""

from __future__ import annotations

import sys


def test_the_settings_are_there_before_numpy_reads_them() -> None:
    imported = list(sys.modules)  # in the order of the first imports
    assert imported.index("one_core") < imported.index("numpy")
