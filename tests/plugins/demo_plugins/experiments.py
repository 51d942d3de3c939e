"""A method of interleaving, a metric and models of experiments, a method of position bias, a counterfactual estimator."""

import numpy as np

from cranfield.experiments.clicks.click_through import DocumentCTR
from cranfield.experiments.clicks.position_bias_methods import PositionBiasMethod
from cranfield.experiments.counterfactual.estimator import Estimator, PageValues
from cranfield.experiments.interleaving.method import InterleavingMethod, ListEvidence, MixedList
from cranfield.experiments.metrics.metric import ClickThrough
from cranfield.experiments.simulated_world import User
from cranfield.stats.rate_ratios import RateRatios


class Alternate(InterleavingMethod):
    """By turns, without a coin. A name for an example."""

    name = "alternate"
    letter = "~"
    formula = "clicks on odd ranks, clicks on even ranks"
    reference = "nobody (2026)"

    def draw(self, lists, k, coin):
        documents = tuple(dict.fromkeys(one for pair in zip(*lists, strict=False) for one in pair))[:k]
        return MixedList(documents, ListEvidence(((),) * len(documents)))

    def credit(self, evidence, systems, clicks):
        return [sum(worth for rank, worth in clicks.items() if rank % 2 == side) for side in range(2)]


class Curiosity(ClickThrough):
    """The share of searches with a click, under another name. A name for an example."""

    name = "curiosity"
    aliases = ("nosiness",)


class Top(User):
    """Clicks on whatever stands first. A name for an example."""

    name = "top"
    formula = "rank 1"
    reference = "nobody (2026)"

    def clicks(self, gains, rng):
        return np.arange(gains.shape[1]) == np.zeros(len(gains))[:, None]


class Patient(DocumentCTR):
    """Click-through of patient users, who look at everything. A name for an example."""

    name = "patient"
    formula = "clicks / views"


class Tireless(PositionBiasMethod):
    """Users who examine every rank. A name for an example."""

    name = "tireless"
    formula = "1"
    reference = "nobody (2026)"
    evidence = "faith"
    randomised = False
    usual = False
    trust = 9

    def obstacle(self, log):
        return ""

    def estimate(self, log):
        every = np.zeros(log.ranks)
        return RateRatios(every, every.astype(int), every.astype(int), np.zeros((log.clusters, log.ranks)))


class EveryClick(Estimator):
    """Each page counts as it is, whoever made it. A name for an example."""

    name = "every-click"
    formula = "mean of clicks"
    reference = "nobody (2026)"
    conditions = "the new ranker is the old one"
    unbiased = False

    def estimate(self, question):
        weights = np.ones(len(question.log.pages))
        return PageValues(question.log.clicks, weights, question.log.clicks, weights)
