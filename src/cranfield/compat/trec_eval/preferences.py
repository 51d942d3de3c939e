"""The 14 preference measures as trec_eval prints them, topic by topic.

The sound ones are those of `cranfield.measures.preferences`. `Rnonrel`, which is meant to look at as many
nonrelevant documents as there are relevant ones, pairs too many of them; that is repeated only here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.measures import measure
from cranfield.measures.preferences import ONLY, kept_only, searched

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.formats.preferences import Preferences
    from cranfield.kernels import Found
    from cranfield.kernels.table import Floats, Ints
    from cranfield.measures.preferences import Compared, Lines


def lines_of(preferences: Preferences, found: Found, deepest: int | None, version: int) -> Lines:
    """Preferences and what a run returned of their documents, numbered as trec_eval does."""
    lines = searched(preferences, found, deepest)
    level = lines.level.astype(np.float32).astype(np.float64) if version == 9 else lines.level
    return replace(lines, names=preferences.documents, level=level)


def value(name: str, topic: Compared) -> float:
    """One measure of one topic, by trec_eval's name."""
    if "Rnonrel" in name:
        return _as_many_nonrelevant(topic, "ret" if name.endswith("_ret") else "")
    return _ours(name)(topic)


@cache
def _ours(name: str) -> Callable[[Compared], float]:
    ours: Any = measure(name)
    return partial(ours.value, only=ONLY[ours.pairs])


def _as_many_nonrelevant(topic: Compared, only: str) -> float:
    """Rnonrel: the mean over groups; a group without a pair makes the sum NaN, and the topic is then worth 0."""
    total = 0.0
    for group, counted in zip(topic.groups, topic.tallies, strict=True):
        both = counted.filled_up(only)
        if both is None and group.copies is not None:
            both = _recount(group.copies, counted.relevant_among(only), topic.returned, only)
        elif both is None:
            both = kept_only(group, group.level == 0, counted.relevant, topic.returned, only)
        fulfilled, possible = both
        total += fulfilled / possible if possible else np.nan
    return total / len(topic.groups) if total > 0 else 0.0


def _recount(copies: tuple[Ints, Floats], most: int, returned: int, only: str) -> tuple[int, int]:
    """One subgroup: pairs among all but the lowest level, and of every document with the first `most` at that level."""
    place, level = copies
    lowest = level == level[-1]
    kept = place < returned if only else np.ones(len(place), bool)
    better, better_level = place[kept & ~lowest], level[kept & ~lowest]
    least = place[lowest][:most]
    least = least[least < returned] if only else least
    stated = better_level[:, None] > better_level[None, :]
    right = (better[:, None] < better[None, :]) & (better[:, None] < returned)
    every = place[kept]
    right_too = (every[:, None] < least[None, :]) & (every[:, None] < returned)
    return int((stated & right).sum() + right_too.sum()), int(stated.sum() + len(every) * len(least))
