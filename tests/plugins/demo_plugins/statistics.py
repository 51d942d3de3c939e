"""Tests, a correction, a spending function, a method of looking, a coefficient of agreement, consensus methods."""

import numpy as np

from cranfield.stats.agreement import Fleiss
from cranfield.stats.consensus.method import Majority
from cranfield.stats.correction import Correction
from cranfield.stats.many_groups import Pairwise, TestOfMany
from cranfield.stats.sequential import AtLooks, Pocock
from cranfield.stats.tests_by_name import Test
from cranfield.stats.two_sample_test import SignificanceValues


class Weather(Test):
    """Was it a sunny day for the second sample? A name for an example."""

    name = "weather"
    title = "test of the weather forecast"
    short = "weather forecast"
    reference = "nobody (2026)"
    aliases = ("sunshine",)
    p_from = "formula"
    interval = "sunny"

    def compute(self, a, b, question):
        mean = (b - a).mean(axis=1)
        return SignificanceValues(np.full(len(a), 0.03125), mean, mean - 1, mean + 1)


class Moon(TestOfMany):
    """Every pair, by the phase of the moon. A name for an example."""

    name = "moon"
    title = "test of the moon"
    reference = "nobody (2026)"
    p_from = "formula"

    def compute(self, table, level):
        means = table.mean(axis=0)
        square = np.full((len(means), len(means)), 0.03125)
        apart = means[None] - means[:, None]
        return Pairwise(self.name, means, apart, apart, square, apart - 1, apart + 1, 0.5, level)


class Doubled(Correction):
    """Twice every p-value, however many there are. A name for an example."""

    name = "doubled"
    title = "Doubling"
    short = "doubled"
    reference = "nobody (2026)"
    aliases = ("twice",)
    controls = "family-wise error"

    def corrected(self, p):
        return 2 * p


class HalfAtOnce(Pocock):
    """Spends half at once, the rest with time. A name for an example."""

    name = "half"
    title = "half at once"

    def spent(self, share, tail):
        return tail * (share > 0) * (1 + share) / 2


class Monthly(AtLooks):
    """A look a month. A name for an example."""

    name = "monthly"
    title = "monthly looks"


class Handshake(Fleiss):
    """Fleiss' kappa, shaken by hand. A name for an example."""

    name = "handshake"
    title = "shaken kappa"
    aliases = ("shake",)


class Dictator(Majority):
    """The vote, said aloud. A name for an example."""

    name = "dictator"
    title = "dictator's vote"
