"""What a collection holds, and how two of them differ. Nothing here says whether that is good: `check` does."""

from __future__ import annotations

from cranfield.describe.diff import CollectionDiff, diff
from cranfield.describe.stats import CollectionStats, Distribution, stats

__all__ = ["CollectionDiff", "CollectionStats", "Distribution", "diff", "stats"]
