"""The share of comparisons that an item won."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.stats.consensus.preference import OfPreferences, Preferences, Strengths, components

if TYPE_CHECKING:
    from cranfield.stats.ties import Floats


class WinRate(OfPreferences):
    """The share of an item's comparisons that it won, ties by half; whom it met is not allowed for.

    >>> WinRate().strengths(Preferences.of([("a", "b"), ("b", "c")], ties=[("a", "c")])).strength.tolist()
    [0.75, 0.5, 0.25]
    """

    name = "win-rate"
    title = "win rate"

    def strengths(self, preferences: Preferences) -> Strengths:
        wins = preferences.wins()
        won, lost = np.asarray(wins.sum(axis=1)).ravel(), np.asarray(wins.sum(axis=0)).ravel()
        rate: Floats = won / np.maximum(won + lost, 1e-300)
        return Strengths(str(self), preferences.items, rate, components(wins), True)
