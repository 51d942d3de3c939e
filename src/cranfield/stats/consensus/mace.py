"""MACE: raters either know the label or guess, each in a way of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.parameters import Real, Whole
from cranfield.stats.consensus.method import Consensus, Opinion, shares

if TYPE_CHECKING:
    from cranfield.stats.labels import Labels
    from cranfield.stats.ties import Floats, Ints


class MACE(Consensus):
    """The likeliest label where a rater gives the true one or, not knowing it, one out of habit (variational Bayes).

    Starts from the shares of votes, so that nothing is drawn. `prior` is how many known and as many guessed labels each
    rater begins with, `habit` how often each label was guessed before.
    """

    name = "mace"
    title = "MACE"
    reference = "Hovy, Berg-Kirkpatrick, Vaswani and Hovy (2013)"
    models_raters = True
    prior = Real(0.5, "labels known, and as many guessed, that each rater begins with", low=0, open=True)
    habit = Real(0.1, "guesses of each label that each rater begins with", low=0, open=True)
    passes = Whole(1000, "how often the model is fitted again at the most")
    near = Real(1e-5, "it is done when no chance changes by more", low=0, open=True)

    def opinion(self, labels: Labels, gold: Ints) -> Opinion:
        posterior, known = shares(labels), np.full(len(labels), 0.5)
        cell = labels.item * len(labels.scale) + labels.label
        for done in range(1, self.passes + 1):
            right = posterior.ravel()[cell] * known
            log_known, log_guessed = self.fitted(labels, right)
            odds = np.exp(log_known - log_guessed)
            known = odds / (1 + odds)
            before, posterior = posterior, _posterior(labels, cell, np.log1p(odds), gold)
            if np.abs(posterior - before).max(initial=0.0) <= self.near:
                break
        raters = len(labels.raters)
        right = posterior.ravel()[cell] * known
        trust = (np.bincount(labels.rater, right, minlength=raters) + self.prior) / (
            np.bincount(labels.rater, minlength=raters) + 2 * self.prior
        )
        converged = bool(np.abs(posterior - before).max(initial=0.0) <= self.near)
        return Opinion(posterior, posterior, reliability=trust, iterations=done, converged=converged)

    def fitted(self, labels: Labels, right: Floats) -> tuple[Floats, Floats]:
        """For each label, the mean log chance that its rater knows the true one, and that its rater guesses this one."""
        from scipy.special import digamma  # type: ignore[import-untyped, unused-ignore]

        raters, scale = len(labels.raters), len(labels.scale)
        knows = np.bincount(labels.rater, right, minlength=raters) + self.prior
        guesses = np.bincount(labels.rater, 1 - right, minlength=raters) + self.prior
        habits = np.bincount(labels.rater * scale + labels.label, 1 - right, minlength=raters * scale)
        habits = habits.reshape(raters, scale) + self.habit
        log_habit = digamma(habits) - digamma(habits.sum(axis=1, keepdims=True))
        log_guessed = digamma(guesses)[labels.rater] + log_habit[labels.rater, labels.label]
        return digamma(knows)[labels.rater], log_guessed


def _posterior(labels: Labels, cell: Ints, gain: Floats, gold: Ints) -> Floats:
    """A vote in which each label weighs how much likelier it is where it is true."""
    scale = len(labels.scale)
    score = np.bincount(cell, gain, minlength=len(labels.items) * scale).reshape(-1, scale)
    known = np.flatnonzero(gold >= 0)
    score[known] = -np.inf
    score[known, gold[known]] = 0.0
    chance = np.exp(score - score.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(chance / chance.sum(axis=1, keepdims=True), np.float64)
