"""The 14 preference measures as trec_eval prints them, topic by topic.

The sound ones are those of `cranfield.measures.preferences`. `Rnonrel`, which is meant to look at as many
nonrelevant documents as there are relevant ones, pairs too many of them; that is repeated only here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.compat.trec_eval.options import StopError
from cranfield.errors import ContradictionError, DataError
from cranfield.measures.preferences import mean_over_groups, pair, prefer, simple, tally

if TYPE_CHECKING:
    from cranfield.formats.preferences import Preferences
    from cranfield.kernels import Found
    from cranfield.kernels.table import Floats, Ints
    from cranfield.measures.preferences import Group, Tally

__all__ = ["Compared", "Comparison", "value"]

ABORTED = 134


class Compared:
    """One topic's preferences against the run: its groups, their tallies, and how many judged documents came back."""

    def __init__(self, groups: list[Group], returned: int) -> None:
        self.groups = groups
        self.returned = returned
        self.tallies: list[Tally] = [tally(group, returned) for group in groups]


class Comparison:
    """Preferences and what a run returned of their documents; topics are compared one at a time, as each takes room."""

    def __init__(self, preferences: Preferences, found: Found, deepest: int | None, version: int) -> None:
        self.preferences = preferences
        self.level = preferences.level
        if version == 9:
            self.level = self.level.astype(np.float32).astype(np.float64)
        kept = np.ones(len(found.rank), bool) if deepest is None else found.rank <= deepest
        topic, row = found.topic[kept], found.row[kept]
        self.returned = np.bincount(topic, minlength=len(preferences.topics))
        starts = np.cumsum(self.returned) - self.returned
        self.nth = np.full(len(preferences), -1, np.int32)  # in which order a topic's judged documents came back
        self.nth[row] = np.arange(len(row)) - starts[topic]
        self.bounds = np.searchsorted(preferences.topic, np.arange(len(self.returned) + 1))

    def topic(self, topic: int) -> Compared:
        """One topic's preferences against the run; StopError if they make no sense."""
        rows, returned = slice(int(self.bounds[topic]), int(self.bounds[topic + 1])), int(self.returned[topic])
        place = self._places(rows, returned)
        group, subgroup = self.preferences.group[rows], self.preferences.subgroup[rows]
        try:
            return Compared(_groups(place, self.level[rows], group, subgroup), returned)
        except DataError as error:
            code = ABORTED if isinstance(error, ContradictionError) else 4
            raise StopError(code, f"topic {self.preferences.topics[topic]!r}: {error}") from error

    def _places(self, rows: slice, returned: int) -> Ints:
        """The number of each row's document: returned ones by rank, then the others by id."""
        place: Ints = self.nth[self.preferences.index.first[rows]].copy()
        documents = {i: self.preferences.documents[rows.start + i] for i in np.flatnonzero(place < 0).tolist()}
        number = {name: returned + i for i, name in enumerate(sorted(set(documents.values())))}
        for i, name in documents.items():
            place[i] = number[name]
        return place


def _groups(place: Ints, level: Floats, group: Ints, subgroup: Ints) -> list[Group]:
    size = int(place.max()) + 1
    ends = np.flatnonzero(np.diff(group)) + 1  # rows are ordered by group
    parts = zip(np.split(place, ends), np.split(level, ends), np.split(subgroup, ends), strict=True)
    return [prefer(*part, size=size) for part in parts]


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
