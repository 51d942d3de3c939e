"""A value of clicks and a rule of click preferences."""

import numpy as np

from cranfield.experiments.clicks.preferences import PreferenceRule
from cranfield.experiments.clicks.values import ClickValue
from cranfield.stats.posteriors import BetaPosteriors


class Charm(ClickValue):
    """Half of everything. A name for an example."""

    name = "charm"
    formula = "1 / 2"
    reference = "nobody (2026)"
    of_model = False

    def posteriors(self, pages, fitted):
        ones = np.ones(len(pages.pairs))
        return BetaPosteriors(ones, ones)


class TopClick(PreferenceRule):
    """A click at rank 1 beats everything below. A name for an example."""

    name = "top-click"
    formula = "click at rank 1 > everything below"

    def losers(self, clicked, rank):
        below = (np.arange(clicked.shape[1]) > 0) & (rank == 0)
        return np.broadcast_to(below, clicked.shape)
