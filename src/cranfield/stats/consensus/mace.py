"""MACE: raters either know the label or guess, each in a way of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.parameters import Choice, Real, Whole
from cranfield.stats.consensus.method import Consensus, Opinion, shares, undisputed

if TYPE_CHECKING:
    from cranfield.stats.labels import Labels
    from cranfield.stats.ties import Floats, Ints

LEAST = 0.01  # items added to each label's, so that nothing is impossible


class MACE(Consensus):
    """The likeliest label where a rater gives the true one or, not knowing it, one out of habit (variational Bayes).

    Starts from the shares of votes, so that nothing is drawn. How common labels are is learnt, so that an item's unanimous
    label need not stand; where no item is disputed, all stand. Its authors take all labels for equally likely
    (`rates=even`): an item's unanimous label stands then, but a label that prevails is taken for a habit of guessing.
    """

    name = "mace"
    title = "MACE"
    reference = "Hovy, Berg-Kirkpatrick, Vaswani and Hovy (2013)"
    models_raters = True
    keeps_unanimity = "of all"
    prior = Real(0.5, "labels known, and as many guessed, that each rater begins with", low=0, open=True)
    habit = Real(0.1, "guesses of each label that each rater begins with", low=0, open=True)
    rates = Choice("learnt", "how common labels are before any is seen", "even")
    passes = Whole(1000, "how often the model is fitted again at the most")
    near = Real(1e-5, "it is done when no chance changes by more", low=0, open=True)

    def opinion(self, labels: Labels, gold: Ints) -> Opinion:
        cell = labels.item * len(labels.scale) + labels.label
        posterior, known = shares(labels), np.full(len(labels), 0.5)
        learnt = self.rates == "learnt" and not undisputed(posterior, gold)
        converged, done = False, 0
        while not converged and done < self.passes:
            log_known, log_guessed = self.fitted(labels, posterior.ravel()[cell] * known)
            odds = np.exp(log_known - log_guessed)
            rates = posterior.sum(axis=0) + LEAST if learnt else np.ones(len(labels.scale))
            before, posterior = posterior, _posterior(labels, cell, np.log1p(odds), np.log(rates), gold)
            known = odds / (1 + odds)
            converged, done = bool(np.abs(posterior - before).max(initial=0.0) <= self.near), done + 1
        knows, guesses = self.of_raters(labels, posterior.ravel()[cell] * known)
        return Opinion(posterior, posterior, None, knows / (knows + guesses), done, converged)

    def of_raters(self, labels: Labels, right: Floats) -> tuple[Floats, Floats]:
        """How many labels each rater knew and guessed, with those that one begins with."""
        raters = len(labels.raters)
        known, guessed = (np.bincount(labels.rater, share, minlength=raters) for share in (right, 1 - right))
        return known.astype(np.float64) + self.prior, guessed.astype(np.float64) + self.prior

    def fitted(self, labels: Labels, right: Floats) -> tuple[Floats, Floats]:
        """For each label, the mean log chance that its rater knows the true one, and that its rater guesses this one."""
        from scipy.special import digamma  # type: ignore[import-untyped, unused-ignore]

        raters, scale = len(labels.raters), len(labels.scale)
        knows, guesses = self.of_raters(labels, right)
        cell = labels.rater * scale + labels.label
        habits = np.bincount(cell, 1 - right, minlength=raters * scale).reshape(raters, scale) + self.habit
        log_habit = digamma(habits) - digamma(habits.sum(axis=1, keepdims=True))
        log_guessed = digamma(guesses)[labels.rater] + log_habit[labels.rater, labels.label]
        return digamma(knows)[labels.rater], log_guessed


def _posterior(labels: Labels, cell: Ints, gain: Floats, log_rates: Floats, gold: Ints) -> Floats:
    """A vote in which each label weighs how much likelier it is where it is true."""
    scale = len(labels.scale)
    gains = np.bincount(cell, gain, minlength=len(labels.items) * scale).reshape(len(labels.items), scale)
    score = gains + log_rates
    known = np.flatnonzero(gold >= 0)
    score[known] = -np.inf
    score[known, gold[known]] = 0.0
    chance = np.exp(score - score.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(chance / chance.sum(axis=1, keepdims=True), np.float64)
