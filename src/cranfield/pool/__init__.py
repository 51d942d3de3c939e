"""What to judge next, and what the unjudged hide.

`rankings` holds the tops of the runs, `strategy` says what a strategy is, one file a family holds them; `session` hands
documents out and takes labels back, `make` makes pools of it, `statistics` counts before anyone judges.
"""

from __future__ import annotations

from cranfield.pool.make import Pool, pool

__all__ = ["Pool", "pool"]
