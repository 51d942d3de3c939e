"""Dawid and Skene's model: each rater has a table of how often each true label is given as each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.parameters import Real, Whole
from cranfield.stats.consensus.method import Consensus, Opinion, shares

if TYPE_CHECKING:
    from typing import Any

    from cranfield.stats.labels import Labels
    from cranfield.stats.ties import Floats, Ints

LEAST = 0.01  # labels added to each cell of the table of all raters, so that nothing is impossible


class Model(NamedTuple):
    """How common labels are, and the logarithm of each rater's table: (rater, label given) × true label."""

    log_rates: Floats
    log_tables: Floats


class DawidSkene(Consensus):
    """The likeliest label under a table for each rater of how often each true label is given as each other (EM).

    Tables start from the shares of votes. Each rater's is moved towards that of all raters together, by `smoothing`
    labels for each true label, so that a rater of few labels is taken for an average one. A rater who
    errs in a steady way is put right, so that an item's unanimous label need not stand.
    """

    name = "dawid-skene"
    title = "Dawid and Skene's model"
    aliases = ("ds",)
    reference = "Dawid and Skene (1979)"
    models_raters = True
    keeps_unanimity = "of all"
    smoothing = Real(0.1, "so many labels of an average rater are added for each true label", low=0)
    passes = Whole(1000, "how often the model is fitted again at the most")
    near = Real(1e-5, "it is done when no chance changes by more", low=0, open=True)

    def opinion(self, labels: Labels, gold: Ints) -> Opinion:
        from scipy.sparse import csr_array  # type: ignore[import-untyped, unused-ignore]

        scale = len(labels.scale)
        cell = labels.rater * scale + labels.label
        shape = (len(labels.items), len(labels.raters) * scale)
        given = csr_array((np.ones(len(labels)), (labels.item, cell)), shape)
        by_cell = given.T.tocsr()
        posterior = _pinned(shares(labels), gold)
        for done in range(1, self.passes + 1):
            before, posterior = posterior, _pinned(_posterior(given, self.fitted(by_cell, posterior)), gold)
            if np.abs(posterior - before).max(initial=0.0) <= self.near:
                return Opinion(posterior, posterior, iterations=done)
        return Opinion(posterior, posterior, iterations=self.passes, converged=False)

    def fitted(self, by_cell: Any, posterior: Floats) -> Model:
        """The model that these chances of the items' labels make likeliest."""
        scale = posterior.shape[1]
        counts = (by_cell @ posterior).reshape(-1, scale, scale)  # rater, label given, true label
        everyone = counts.sum(axis=0) + LEAST
        everyone /= everyone.sum(axis=0)
        counts += self.smoothing * everyone + 1e-9 * everyone
        tables = np.log(counts / counts.sum(axis=1, keepdims=True)).reshape(-1, scale)
        rates = posterior.sum(axis=0) + LEAST
        return Model(np.log(rates / rates.sum()), tables)


def _posterior(given: Any, model: Model) -> Floats:
    log = given @ model.log_tables + model.log_rates
    chance = np.exp(log - log.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(chance / chance.sum(axis=1, keepdims=True), np.float64)


def _pinned(posterior: Floats, gold: Ints) -> Floats:
    """The same with certainty where the true label is known."""
    known = np.flatnonzero(gold >= 0)
    posterior[known] = 0.0
    posterior[known, gold[known]] = 1.0
    return posterior
