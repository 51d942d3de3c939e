"""Preferences: which of two items raters put above the other, and what a method that makes strengths of them is.

Only items that chains of wins link both ways can be told apart by wins alone: an item that never lost has no finite
strength, nor has one that never won. Such groups, the strongly connected components, come with every answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from cranfield.errors import DataError
from cranfield.registry import Registered, Registry
from cranfield.stats.labels import encode

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from cranfield.stats.labels import Names
    from cranfield.stats.ties import Floats, Ints

METHODS_OF_PREFERENCES: Registry[OfPreferences] = Registry("method of preferences", "cranfield.stats.consensus")


@dataclass(frozen=True, eq=False)
class Preferences:
    """Comparisons of two items: entry i says that `items[above[i]]` beat `items[below[i]]`, or that they tied.

    A tie counts as half a win for each. One line may stand for several raters.

    >>> Preferences.of([("a", "b"), ("b", "c")], ties=[("a", "c")]).wins().toarray().tolist()
    [[0.0, 1.0, 0.5], [0.0, 0.0, 1.0], [0.5, 0.0, 0.0]]
    """

    above: Ints
    below: Ints
    tied: Ints  # 1 where neither is above
    items: Names

    @classmethod
    def of(
        cls, wins: Iterable[tuple[Hashable, Hashable]], ties: Iterable[tuple[Hashable, Hashable]] = ()
    ) -> Preferences:
        """From pairs of winner and loser, and pairs that tied."""
        won, drawn = list(wins), list(ties)
        pairs = [*won, *drawn]
        for one, other in pairs:
            if one == other:
                raise DataError(f"item {one!r} is compared with itself")
        names, code = encode([name for pair in pairs for name in pair])
        tied = np.repeat([0, 1], [len(won), len(drawn)])
        return cls(code[::2], code[1::2], tied, names)

    def __len__(self) -> int:
        return len(self.above)

    def wins(self) -> Any:
        """How often each item (row) beat each other (column), as a sparse table; a tie is half a win for each."""
        from scipy.sparse import coo_array  # type: ignore[import-untyped, unused-ignore]

        number = len(self.items)
        row, column = np.r_[self.above, self.below[self.tied == 1]], np.r_[self.below, self.above[self.tied == 1]]
        value = np.r_[np.where(self.tied == 1, 0.5, 1.0), np.full(int(self.tied.sum()), 0.5)]
        table = coo_array((value, (row, column)), (number, number)).tocsr()
        table.sum_duplicates()
        return table


class Strengths(NamedTuple):
    """What a method makes of preferences: a number for each item, higher being better."""

    method: str
    items: Names
    strength: Floats
    component: Ints
    """Items of one number are linked by chains of wins both ways; others can be told apart by who beat whom alone."""
    comparable: bool
    """Whether strengths of different components may be compared."""
    iterations: int = 0
    converged: bool = True

    @property
    def components(self) -> list[tuple[Hashable, ...]]:
        """The items of each component, the largest first."""
        groups = [
            tuple(self.items[item] for item in np.flatnonzero(self.component == number))
            for number in range(int(self.component.max(initial=-1)) + 1)
        ]
        return sorted(groups, key=lambda group: -len(group))


class OfPreferences(Registered, ABC):
    """A way from preferences to one number for each item."""

    registry = METHODS_OF_PREFERENCES
    title: ClassVar[str]
    reference: ClassVar[str] = ""

    @abstractmethod
    def strengths(self, preferences: Preferences) -> Strengths:
        """One number for each item; higher is better."""


def components(wins: Any) -> Ints:
    """Which strongly connected component of the wins each item is in."""
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped, unused-ignore]

    return np.asarray(connected_components(wins, directed=True, connection="strong")[1], np.int64)
