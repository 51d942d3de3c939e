"""The 14 preference measures as trec_eval prints them, topic by topic.

The sound ones are those of `cranfield.measures.preferences`. `Rnonrel`, which is meant to look at as many
nonrelevant documents as there are relevant ones, pairs too many of them; that is repeated only here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cranfield.compat.trec_eval.options import StopError
from cranfield.errors import ContradictionError, DataError
from cranfield.measures.preferences import kept_only, mean_over_groups, pair, searched, simple

if TYPE_CHECKING:
    from cranfield.formats.preferences import Preferences
    from cranfield.kernels import Found
    from cranfield.kernels.table import Floats, Ints
    from cranfield.measures.preferences import Compared


ABORTED = 134


class Comparison:
    """Preferences and what a run returned of their documents; topics are compared one at a time, as each takes room."""

    def __init__(self, preferences: Preferences, found: Found, deepest: int | None, version: int) -> None:
        self.preferences = preferences
        lines = searched(preferences, found, deepest)
        level = lines.level.astype(np.float32).astype(np.float64) if version == 9 else lines.level
        self.lines = replace(lines, names=preferences.documents, level=level)

    def topic(self, topic: int) -> Compared:
        """One topic's preferences against the run; StopError if they make no sense."""
        try:
            compared = self.lines.compared(topic)
        except DataError as error:
            code = ABORTED if isinstance(error, ContradictionError) else 4
            raise StopError(code, f"topic {self.preferences.topics[topic]!r}: {error}") from error
        assert compared is not None  # a topic is there because it has a line
        return compared


def value(name: str, topic: Compared) -> float:
    """One measure of one topic, by trec_eval's name."""
    base, _, only = name.removeprefix("prefs_").partition("_")
    if base == "num":
        wanted = only.removeprefix("prefs_")
        if wanted == "poss":
            return float(sum(one.possible() for one in topic.tallies))
        return float(sum(one.fulfilled("ret" if wanted == "ful_ret" else "") for one in topic.tallies))
    if only.startswith("Rnonrel"):
        return _as_many_nonrelevant(topic, "ret" if only.endswith("ret") else "")
    if base == "simp":
        return simple(topic.tallies, only)
    if base == "pair":
        return pair(topic.groups, topic.returned, only)
    return mean_over_groups(topic.tallies, only)


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
