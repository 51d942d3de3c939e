"""Systems under test: engines in this process, commands and HTTP engines, which are queried and timed to make runs.

`system(SPEC)` makes a system, `drive` asks it a collection's topics. An engine's package is imported only when the
engine is used.
"""

from __future__ import annotations

from cranfield.retrieval.systems_under_test import SYSTEMS, Query, System, catalogue, specs, system

__all__ = ["SYSTEMS", "Query", "System", "catalogue", "specs", "system"]
