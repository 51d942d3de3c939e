"""Votes that weigh what their raters got right of items whose label is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.parameters import Real
from cranfield.stats.consensus.method import Consensus, Opinion, shares

if TYPE_CHECKING:
    from cranfield.stats.labels import Labels
    from cranfield.stats.ties import Floats, Ints

SUREST = 1 - 1e-6  # no rater is taken to be always right


class GoldWeighted(Consensus):
    """A vote in which raters weigh by the log odds of being right, learnt from items whose label is known.

    What a rater got right is moved towards the mean of all, by `smoothing` answers of an average rater. Whoever does no
    better than chance weighs nothing; where all of an item's raters weigh nothing, they weigh alike.
    """

    name = "gold-weighted"
    title = "gold-weighted vote"
    aliases = ("gold",)
    reference = "Nitzan and Paroush (1982)"
    models_raters = True
    needs_gold = True
    smoothing = Real(2, "so many answers of an average rater are added to each rater's", low=0)

    def opinion(self, labels: Labels, gold: Ints) -> Opinion:
        right = self.rightness(labels, gold)
        scale = max(len(labels.scale), 2)
        weight = np.maximum(0.0, np.log(right * (scale - 1) / (1 - right)))
        cell = labels.item * len(labels.scale) + labels.label
        votes = shares(labels)
        score = np.bincount(cell, weight[labels.rater], minlength=votes.size).reshape(votes.shape)
        some = score.sum(axis=1, keepdims=True) > 0
        chance = np.exp(score - score.max(axis=1, keepdims=True, initial=0.0))
        posterior = np.where(some, chance / np.maximum(chance.sum(axis=1, keepdims=True), 1e-300), votes)
        return Opinion(np.where(some, score, votes), posterior, reliability=right)

    def rightness(self, labels: Labels, gold: Ints) -> Floats:
        """The share of gold items that each rater got right, smoothed; raters without any have the mean of all."""
        asked = gold[labels.item] >= 0
        raters = len(labels.raters)
        number = np.bincount(labels.rater[asked], minlength=raters)
        correct = np.bincount(labels.rater[asked & (gold[labels.item] == labels.label)], minlength=raters)
        mean = correct.sum() / number.sum() if number.sum() else 1 / max(len(labels.scale), 1)
        total = number + self.smoothing
        share = np.divide(correct + self.smoothing * mean, total, out=np.full(raters, mean), where=total > 0)
        return np.asarray(np.clip(share, 1 - SUREST, SUREST), np.float64)
