"""The 14 preference measures as trec_eval prints them, topic by topic.

The sound ones are those of `cranfield.measures.preferences`. `Rnonrel`, which is meant to look at as many
nonrelevant documents as there are relevant ones, pairs too many of them; that is repeated only here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.compat.trec_eval.options import StopError
from cranfield.errors import ContradictionError, DataError
from cranfield.measures.preferences import Lines, mean_over_groups, pair, searched, simple

if TYPE_CHECKING:
    from cranfield.formats.preferences import Preferences
    from cranfield.kernels import Found
    from cranfield.kernels.table import Floats, Ints
    from cranfield.measures.preferences import Compared, Group


ABORTED = 134


class Comparison:
    """Preferences and what a run returned of their documents; topics are compared one at a time, as each takes room."""

    def __init__(self, preferences: Preferences, found: Found, deepest: int | None, version: int) -> None:
        self.preferences = preferences
        self.lines = _ById(preferences, searched(preferences, found, deepest))
        if version == 9:
            self.lines.level = self.lines.level.astype(np.float32).astype(np.float64)

    def topic(self, topic: int) -> Compared:
        """One topic's preferences against the run; StopError if they make no sense."""
        try:
            found = self.lines.compared(topic)
        except DataError as error:
            code = ABORTED if isinstance(error, ContradictionError) else 4
            raise StopError(code, f"topic {self.preferences.topics[topic]!r}: {error}") from error
        assert found is not None  # a topic is there because it has a line
        return found


class _ById(Lines):
    """Lines whose documents that did not come back are numbered by id, as trec_eval does."""

    def __init__(self, preferences: Preferences, lines: Lines) -> None:
        self.__dict__.update(vars(lines))
        self.documents = preferences.documents

    def unseen(self, first: Ints) -> Ints:
        """The documents that did not come back, by id."""
        return np.array(sorted(set(first.tolist()), key=self.documents.__getitem__), first.dtype)


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
        relevant = counted.relevant_returned if only else counted.relevant
        nonrelevant = counted.nonrelevant_returned if only else counted.nonrelevant
        spare = relevant - nonrelevant
        if spare >= 0:
            fulfilled = counted.fulfilled(only) + counted.relevant_returned * spare
            possible = counted.possible(only) + counted.relevant * spare
        elif group.copies is not None:
            fulfilled, possible = _recount(group.copies, relevant, topic.returned, only)
        else:
            fulfilled, possible = _recount_partial(group, counted.relevant, topic.returned, only)
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


def _recount_partial(group: Group, most: int, returned: int, only: str) -> tuple[int, int]:
    """Several subgroups: the preferences left when only the first `most` nonrelevant documents are kept."""
    size = min(returned, len(group.level)) if only else len(group.level)
    level = group.level[:size]
    kept = np.flatnonzero((level != 0) | (np.cumsum(level == 0) <= most))
    above, below = np.nonzero(group.prefers[np.ix_(kept, kept)])
    above, below = kept[above], kept[below]
    return int(((above < below) & (above < returned)).sum()), len(above)
