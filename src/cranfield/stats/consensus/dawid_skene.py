"""Dawid and Skene's model: each rater has a table of how often each true label is given as each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.parameters import Real, Whole
from cranfield.stats.consensus.method import Consensus, Opinion, shares, undisputed

if TYPE_CHECKING:
    from typing import Any

    from cranfield.stats.labels import Labels
    from cranfield.stats.ties import Floats, Ints

LEAST = 0.01  # labels added to each cell of the table of all raters, so that nothing is impossible
RIGHT = 1.0  # and more to the cells of right labels: where the data do not tell, raters are taken to know


class Model(NamedTuple):
    """How common labels are, and the raters' tables, as logarithms: true label × (rater, label given).

    Labels stand in rows throughout: NumPy adds up few long rows far faster than many short ones.
    """

    log_rates: Floats
    log_tables: Floats


class DawidSkene(Consensus):
    """The likeliest label under a table for each rater of how often each true label is given as each other (EM).

    Tables start from the shares of votes. Each rater's is moved towards that of all raters together, by `smoothing`
    labels for each true label, so that a rater of few labels is taken for an average one. A rater who errs in a steady
    way is put right, so that an item's unanimous label need not stand; where no item is disputed, all stand.
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

        votes, scale = shares(labels), len(labels.scale)
        if undisputed(votes, gold):
            return Opinion(votes, votes)
        cell = labels.rater * scale + labels.label
        shape = (len(labels.items), len(labels.raters) * scale)
        given = csr_array((np.ones(len(labels)), (labels.item, cell)), shape)
        by_cell = given.T.tocsr()
        chances = _pinned(np.ascontiguousarray(votes.T), gold)
        converged, done = False, 0
        while not converged and done < self.passes:
            before, chances = chances, _pinned(_chances(given, self.fitted(by_cell, chances)), gold)
            converged, done = bool(np.abs(chances - before).max(initial=0.0) <= self.near), done + 1
        return Opinion(chances.T, chances.T, iterations=done, converged=converged)

    def fitted(self, by_cell: Any, chances: Floats) -> Model:
        """The model that these chances of the labels (rows) of the items make likeliest."""
        scale = len(chances)
        counts = np.stack([by_cell @ row for row in chances]).reshape(scale, -1, scale)
        everyone = counts.sum(axis=1) + LEAST + RIGHT * np.eye(scale)
        everyone /= everyone.sum(axis=1, keepdims=True)
        counts += (self.smoothing + LEAST) * everyone[:, None]
        tables = np.log(counts / counts.sum(axis=2, keepdims=True)).reshape(scale, -1)
        rates = chances.sum(axis=1) + LEAST
        return Model(np.log(rates / rates.sum()), tables)


def _chances(given: Any, model: Model) -> Floats:
    log = np.stack([given @ table + rate for table, rate in zip(model.log_tables, model.log_rates, strict=True)])
    log -= log.max(axis=0, initial=-np.inf)
    chances = np.exp(log, out=log)
    return np.asarray(chances / chances.sum(axis=0), np.float64)


def _pinned(chances: Floats, gold: Ints) -> Floats:
    """The same with certainty where the true label is known."""
    known = np.flatnonzero(gold >= 0)
    chances[:, known] = 0.0
    chances[gold[known], known] = 1.0
    return chances
