"""Preferences fulfilled: how often a run puts the preferred of two documents first.

A preference is fulfilled when the preferred document ranks higher, or when it alone was returned. Where
judges disagree every one of them is counted. Preferences are pairs, so they are not seen through
`Hits`: a topic's are tallied into `Tally` values, one for each judgment group, and the measures are
ratios of these. Buckley (2008), trec_eval 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cranfield.errors import ContradictionError, DataError

if TYPE_CHECKING:
    from cranfield.kernels.table import Floats, Ints

__all__ = ["Group", "Tally", "mean_over_groups", "pair", "prefer", "simple", "tally", "times"]

Matrix = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Group:
    """One judgment group's preferences: `prefers[i, j]` says that document i is preferred to document j.

    Documents are numbered by rank: 0 for the first returned, those not returned last. `copies` holds them once for
    each line of a group with a single subgroup, by level (best first) and rank; it is None where there are several.
    """

    prefers: Matrix
    level: Floats  # of each document; NaN where this group says nothing of it
    copies: tuple[Ints, Floats] | None


@dataclass(frozen=True)
class Tally:
    """How many preferences a group has and how many a run fulfils, by how many of the two documents were returned."""

    fulfilled_both: int
    possible_both: int
    fulfilled_one: int
    possible_one: int
    possible_none: int
    relevant: int
    nonrelevant: int
    relevant_returned: int
    nonrelevant_returned: int

    def fulfilled(self, only: str = "") -> int:
        """Preferences fulfilled: all, or `only="ret"`, those between documents that were both returned."""
        return self.fulfilled_both + (self.fulfilled_one if only != "ret" else 0)

    def possible(self, only: str = "") -> int:
        """All preferences; `only="ret"`: both documents returned; `only="imp"`: at least one."""
        if only == "ret":
            return self.possible_both
        return self.possible_both + self.possible_one + (self.possible_none if only != "imp" else 0)


def prefer(place: Ints, level: Floats, subgroup: Ints, size: int) -> Group:
    """The preferences of one group from the lines that make it up; `place` numbers their documents by rank.

    Several subgroups say only part of the order; what follows from them by way of a third document is added.

    >>> group = prefer(np.array([0, 1, 1, 2]), np.array([2.0, 1.0, 2.0, 1.0]), np.array([0, 0, 1, 1]), 3)
    >>> group.prefers.astype(int).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    """
    levels = np.full(size, np.nan)
    prefers = np.zeros((size, size), bool)
    if (subgroup == subgroup[0]).all():
        order = np.lexsort((place, -level))
        place, level = place[order], level[order]
        levels[place] = level
        if (levels[place] != level).any():
            raise DataError("a judgment group gives one document two levels")
        prefers[np.ix_(place, place)] = level[:, None] > level[None, :]
        return Group(prefers, levels, (place, level))
    for inner in np.unique(subgroup):
        here = subgroup == inner
        _note_levels(levels, place[here], level[here])
        higher = level[here][:, None] > level[here][None, :]
        above, below = np.nonzero(higher)
        prefers[place[here][above], place[here][below]] = True
    prefers = _closure(prefers)
    if (prefers & prefers.T).any():
        raise ContradictionError("a judgment group prefers each of two documents to the other")
    return Group(prefers, levels, None)


def _note_levels(levels: Floats, place: Ints, level: Floats) -> None:
    """Keep the levels of documents; relevant in one subgroup and not in another is a mistake."""
    for where, given in zip(place.tolist(), level.tolist(), strict=True):
        before = levels[where]
        if (before > 0 and given == 0) or (before == 0 and given > 0):
            raise DataError("a judgment group calls one document both relevant and not relevant")
        levels[where] = given


def _closure(prefers: Matrix) -> Matrix:
    """All that follows: if a is preferred to b and b to c, then a to c."""
    while True:
        further = prefers | (prefers.astype(np.float32) @ prefers.astype(np.float32) > 0)
        np.fill_diagonal(further, False)
        if (further == prefers).all():
            return further
        prefers = further


def tally(group: Group, returned: int) -> Tally:
    """Count a group's preferences; the first `returned` documents are those that the run returned.

    >>> found = tally(prefer(np.array([0, 1, 2]), np.array([1.0, 0.0, 1.0]), np.zeros(3, int), 3), returned=2)
    >>> found.fulfilled(), found.possible(), found.possible("ret")
    (1, 2, 1)
    """
    stated = times(group)
    both, alone = stated[:returned, :returned], stated[:returned, returned:].sum()
    place, level = group.copies or (np.flatnonzero(~np.isnan(group.level)), group.level[~np.isnan(group.level)])
    relevant, nonrelevant = level > 0, (level <= 0 if group.copies else level == 0)
    return Tally(
        int(np.triu(both).sum()),
        int(both.sum()),
        int(alone),
        int(alone + stated[returned:, :returned].sum()),
        int(stated[returned:, returned:].sum()),
        int(relevant.sum()),
        int(nonrelevant.sum()),
        int((relevant & (place < returned)).sum()),
        int((nonrelevant & (place < returned)).sum()),
    )


def times(group: Group) -> Counts | Matrix:
    """How often each preference is stated: once, unless a group with one subgroup repeats a line."""
    if group.copies is None:
        return group.prefers
    lines = np.bincount(group.copies[0], minlength=len(group.level))
    return group.prefers if lines.max() == 1 else group.prefers * np.outer(lines, lines)


def simple(tallies: list[Tally], only: str = "") -> float:
    """Preferences fulfilled over preferences possible, all groups together."""
    possible = sum(one.possible(only) for one in tallies)
    return sum(one.fulfilled(only) for one in tallies) / possible if possible else 0.0


def mean_over_groups(tallies: list[Tally], only: str = "") -> float:
    """Preferences fulfilled over preferences possible in each group, averaged over the groups."""
    shares = [one.fulfilled(only) / one.possible(only) if one.possible(only) else 0.0 for one in tallies]
    return sum(shares) / len(shares)


def pair(groups: list[Group], returned: int, only: str = "") -> float:
    """For each pair of documents the share of its preferences that is fulfilled, averaged over the pairs.

    A pair of which neither document was returned counts as 0; `only="imp"` leaves it out, `only="ret"` also those of
    which one was not.
    """
    counts = sum((times(group).astype(np.int32) for group in groups[1:]), times(groups[0]).astype(np.int32))
    right, stated = np.triu(counts), np.triu(counts + counts.T)
    # Added up as trec_eval does: both returned, then one of them.
    areas = [np.s_[:returned, :returned], np.s_[:returned, returned:], np.s_[returned:, returned:]]
    areas = areas[: {"ret": 1, "imp": 2}.get(only, 3)]
    pairs = sum(int(np.count_nonzero(stated[area])) for area in areas)
    total = 0.0
    for area in areas[:2]:
        some = stated[area] > 0
        total = float(np.cumsum(np.r_[total, right[area][some] / stated[area][some]])[-1])
    return total / pairs if pairs else 0.0
