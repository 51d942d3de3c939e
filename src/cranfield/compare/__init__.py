"""Scores → Comparison: which system is better, by how much, and how sure are we.

A comparison is made of pairs: one run against another by one measure. What is uncertain is said beside the numbers, and
a number that cannot be had is replaced by its reason, never by another number.
"""

from __future__ import annotations

from cranfield.compare.cautions import Caution
from cranfield.compare.comparison import Comparison, compare
from cranfield.compare.pair import Pair

__all__ = ["Caution", "Comparison", "Pair", "compare"]
