"""Systems under test: engines in this process, commands, HTTP engines; driven, timed and written down as runs.

`system(SPEC)` makes one, `drive` asks it a collection's topics. An engine's package is imported when that engine is
asked for, and not before.
"""

from __future__ import annotations

from cranfield.systems.system import SYSTEMS, Query, System, catalogue, specs, system

__all__ = ["SYSTEMS", "Query", "System", "catalogue", "specs", "system"]
