"""Consensus methods (label aggregation): labels of several raters become one label per item.

A method scores each label for each item; the label with the highest score wins. For ties the caller chooses, the same way
for all methods: the lower label, the higher label, or none. The base class comes first, then the built-in methods: models
of raters (Dawid and Skene, MACE), weighted and plain votes, means.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import Choice, Real, Whole, shortened
from cranfield.base.registry import Registered, Registry, about

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from cranfield.stats.ratings import Labels, Names, Scale
    from cranfield.stats.ties import Bools, Floats, Ints

Ties: TypeAlias = Literal["lower", "higher", "open"]
TIES: tuple[Ties, ...] = get_args(Ties)
NEAR = 1e-9  # scores with a smaller difference tie
OPEN = -1  # the code of an item with an open tie

METHODS: Registry[type[Consensus]] = Registry("consensus method", "consensus_methods", "cranfield.stats.consensus")


class ConsensusEstimate(NamedTuple):
    """The result of a method's computation: scores of items × labels, and estimates about the raters."""

    score: Floats  # the highest wins
    posterior: Floats  # the probability of each label; the shares of votes if the method has no model
    value: Floats | None = None  # a number per item, if it may lie between labels
    reliability: Floats | None = None  # of each rater, from 0 to 1
    iterations: int = 0
    converged: bool = True


@dataclass(frozen=True, eq=False)
class ConsensusLabels:
    """One label per item, the probability of each label, and the confusion matrix of each rater."""

    method: str
    """The name with its parameters, as a user types it."""
    ties: Ties
    items: Names
    raters: Names
    scale: Scale
    code: Ints
    """The consensus label of each item, as its position on the scale; -1 for an open tie."""
    value: Floats
    """The consensus label as a number, which may lie between labels for `mean(round=no)`; NaN for an open tie."""
    best: Bools
    """Items × labels: which labels have the highest score."""
    posterior: Floats
    """Items × labels: the probability of each label by the method's model, or its share of the votes."""
    confusion: Floats
    """Raters × consensus labels × labels given: the number of items, with each item split by its posterior."""
    reliability: Floats | None = None
    """One number per rater, if the method estimates it: the share of labels that are right, or not guessed."""
    iterations: int = 0
    converged: bool = True
    repeated: int = 0
    """Labels left out because their rater had labelled the item before."""

    @property
    def labels(self) -> dict[Hashable, Any]:
        """The consensus label of each item; None for an open tie."""
        names = self.scale.names
        return {
            item: None if code == OPEN else names[code]
            for item, code in zip(self.items, self.code.tolist(), strict=True)
        }

    @property
    def tied(self) -> int:
        """The number of items with several best labels."""
        return int((self.best.sum(axis=1) > 1).sum())


class Consensus(Registered, ABC):
    """A consensus method and its properties.

    >>> str(METHODS.named("Dawid_Skene(smoothing=2)"))
    'dawid-skene(smoothing=2)'
    """

    registry = METHODS
    title: ClassVar[str]
    reference: ClassVar[str] = ""
    models_raters: ClassVar[bool] = False  # whether it weights raters by their quality
    keeps_unanimity: ClassVar[Literal["of an item", "of all"]] = "of an item"
    needs_numbers: ClassVar[bool] = False  # labels that are names have no mean
    needs_gold: ClassVar[bool] = False
    once_meant: ClassVar[str] = ""  # what the bare name meant in earlier frozen versions, if it differed

    @abstractmethod
    def opinion(self, labels: Labels, gold: Ints) -> ConsensusEstimate:
        """Scores from labels without repeats; `gold` is the code of each item's true label, -1 if unknown."""

    def decide(
        self, labels: Labels, *, ties: Ties = "lower", gold: Mapping[Any, Hashable] | None = None
    ) -> ConsensusLabels:
        """The consensus labels. An item with a true label in `gold` keeps that label."""
        if ties not in TIES:
            raise ConventionError(f"ties must be {' | '.join(TIES)}, got {shortened(ties)}")
        if self.needs_gold and not gold:
            raise ConventionError(f"{self.name} needs gold: true labels of some items")
        if self.needs_numbers and labels.scale.values is None:
            raise DataError(f"{self.name} needs numbers for labels, found {shortened(labels.scale.names[0])}")
        once = labels.once()
        truth = gold_codes(once, gold or {})
        opinion = self.opinion(once, truth)
        is_gold = truth >= 0
        posterior = np.array(opinion.posterior, np.float64)
        posterior[is_gold] = np.eye(len(labels.scale))[truth[is_gold]]
        best = np.where(is_gold[:, None], posterior > 0, _best(opinion.score))
        code = chosen_of(best, ties)
        return ConsensusLabels(
            str(self),
            ties,
            once.items,
            once.raters,
            labels.scale,
            code,
            _values(labels.scale, code, is_gold, opinion.value),
            best,
            posterior,
            confusions(once, posterior),
            opinion.reliability,
            opinion.iterations,
            opinion.converged,
            labels.repeated,
        )

    @classmethod
    def about(cls) -> str:
        """A short description of the method."""
        return about(cls)


def gold_codes(labels: Labels, gold: Mapping[Any, Hashable]) -> Ints:
    """The code of each item's true label, -1 if unknown."""
    place = {name: code for code, name in enumerate(labels.scale.names)}
    for item, name in gold.items():
        if name not in place:
            raise DataError(f"gold of item {item!r}: label {shortened(name)} is not on the scale")
    return np.array([place[gold[item]] if item in gold else OPEN for item in labels.items], np.int64)


def _best(score: Floats) -> Bools:
    top = score.max(axis=1, keepdims=True, initial=-math.inf)
    return np.asarray(score >= top - NEAR * np.maximum(1.0, np.abs(top)), np.bool_)


def chosen_of(best: Bools, ties: Ties) -> Ints:
    """The winning label of each item, ties resolved by the rule.

    >>> best = np.array([[True, False, True]])
    >>> [chosen_of(best, rule).tolist() for rule in TIES]
    [[0], [2], [-1]]
    """
    if not best.size:
        return np.zeros(len(best), np.int64)
    first = best.argmax(axis=1)
    last = best.shape[1] - 1 - best[:, ::-1].argmax(axis=1)
    if ties == "open":
        return np.where(first == last, first, OPEN)
    return np.asarray(first if ties == "lower" else last, np.int64)


def _values(scale: Scale, code: Ints, is_gold: Bools, value: Floats | None) -> Floats:
    """The number of each item: the method's own, or the value of the consensus label."""
    if scale.values is None:
        return np.full(len(code), math.nan)
    standing = np.where(code == OPEN, math.nan, scale.values[code] if len(scale) else math.nan)
    return standing if value is None else np.where(is_gold, standing, value)


def shares(labels: Labels) -> Floats:
    """The share of each label among the labels of an item: items × labels."""
    counts = labels.counts()
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), np.float64)


def undisputed(votes: Floats, gold: Ints) -> bool:
    """Whether all items are unanimous and none has a true label: then errors of raters cannot be estimated."""
    return bool((gold < 0).all() and ((votes == 0) | (votes == 1)).all())


def confusions(labels: Labels, posterior: Floats) -> Floats:
    """The expected confusion matrix of each rater, with items weighted by their posterior."""
    raters, scale = len(labels.raters), len(labels.scale)
    cell = labels.rater * scale + labels.label
    columns = [
        np.bincount(cell, posterior[labels.item, true], minlength=raters * scale).reshape(raters, scale)
        for true in range(scale)
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((raters, 0, 0))


LEAST = 0.01  # labels added to each cell of the table of all raters, so that nothing is impossible
RIGHT = 1.0  # and more to the cells of right labels: where the data do not tell, raters are taken to know


class DawidSkene(Consensus):
    """The most likely label, if each rater has a table of how often each true label is given as each label (EM).

    Tables start from the shares of votes. Each rater's table is smoothed towards that of all raters by `smoothing`
    labels per true label, so that a rater with few labels counts as an average one. The method corrects systematic
    errors of a rater, so even a unanimous label may change; if no item is disputed, no label changes.
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

    def opinion(self, labels: Labels, gold: Ints) -> ConsensusEstimate:
        from scipy.sparse import csr_array  # type: ignore[import-untyped, unused-ignore]

        votes, scale = shares(labels), len(labels.scale)
        if undisputed(votes, gold):
            return ConsensusEstimate(votes, votes)
        cell = labels.rater * scale + labels.label
        shape = (len(labels.items), len(labels.raters) * scale)
        by_item = csr_array((np.ones(len(labels)), (labels.item, cell)), shape)
        by_cell = by_item.T.tocsr()
        chances = _pinned(np.ascontiguousarray(votes.T), gold)
        converged, done = False, 0
        while not converged and done < self.passes:
            before, chances = chances, _pinned(_chances(by_item, *self.fitted(by_cell, chances)), gold)
            converged, done = bool(np.abs(chances - before).max(initial=0.0) <= self.near), done + 1
        return ConsensusEstimate(chances.T, chances.T, iterations=done, converged=converged)

    def fitted(self, by_cell: Any, chances: Floats) -> tuple[Floats, Floats]:
        """The most likely rates of labels and tables of raters (true label × rater and label), as logarithms.

        `chances` has one row per label: NumPy adds up few long rows far faster than many short ones.
        """
        scale = len(chances)
        counts = np.stack([by_cell @ row for row in chances]).reshape(scale, -1, scale)
        everyone = counts.sum(axis=1) + LEAST + RIGHT * np.eye(scale)
        everyone /= everyone.sum(axis=1, keepdims=True)
        counts += (self.smoothing + LEAST) * everyone[:, None]
        tables = np.log(counts / counts.sum(axis=2, keepdims=True)).reshape(scale, -1)
        rates = chances.sum(axis=1) + LEAST
        return np.log(rates / rates.sum()), tables


def _chances(by_item: Any, log_rates: Floats, log_tables: Floats) -> Floats:
    log = np.stack([by_item @ table + rate for table, rate in zip(log_tables, log_rates, strict=True)])
    log -= log.max(axis=0, initial=-np.inf)
    chances = np.exp(log, out=log)
    return np.asarray(chances / chances.sum(axis=0), np.float64)


def _pinned(chances: Floats, gold: Ints) -> Floats:
    """The same probabilities, with certainty for items whose true label is known."""
    gold_items = np.flatnonzero(gold >= 0)
    chances[:, gold_items] = 0.0
    chances[gold[gold_items], gold_items] = 1.0
    return chances


SUREST = 1 - 1e-6  # no rater is taken to be always right


class GoldWeighted(Consensus):
    """A vote in which raters weigh by the log odds of being right, learnt from items whose label is known.

    Each rater's share of right answers is smoothed towards the mean by `smoothing` answers of an average rater. Raters
    who are no better than chance get weight 0; if all raters of an item have weight 0, they count equally.
    """

    name = "gold-weighted"
    title = "gold-weighted vote"
    aliases = ("gold",)
    reference = "Nitzan and Paroush (1982)"
    models_raters = True
    needs_gold = True
    smoothing = Real(2, "so many answers of an average rater are added to each rater's", low=0)

    def opinion(self, labels: Labels, gold: Ints) -> ConsensusEstimate:
        right = self.rightness(labels, gold)
        scale = max(len(labels.scale), 2)
        weight = np.maximum(0.0, np.log(right * (scale - 1) / (1 - right)))
        cell = labels.item * len(labels.scale) + labels.label
        votes = shares(labels)
        score = np.bincount(cell, weight[labels.rater], minlength=votes.size).reshape(votes.shape)
        some = score.sum(axis=1, keepdims=True) > 0
        chance = np.exp(score - score.max(axis=1, keepdims=True, initial=0.0))
        posterior = np.where(some, chance / np.maximum(chance.sum(axis=1, keepdims=True), 1e-300), votes)
        return ConsensusEstimate(np.where(some, score, votes), posterior, reliability=right)

    def rightness(self, labels: Labels, gold: Ints) -> Floats:
        """The share of gold items that each rater got right, smoothed; raters without any have the mean of all."""
        on_gold = gold[labels.item] >= 0
        raters = len(labels.raters)
        number = np.bincount(labels.rater[on_gold], minlength=raters)
        correct = np.bincount(labels.rater[on_gold & (gold[labels.item] == labels.label)], minlength=raters)
        mean = correct.sum() / number.sum() if number.sum() else 1 / max(len(labels.scale), 1)
        total = number + self.smoothing
        share = np.divide(correct + self.smoothing * mean, total, out=np.full(raters, mean), where=total > 0)
        return np.asarray(np.clip(share, 1 - SUREST, SUREST), np.float64)


class _Extreme(Consensus):
    step: ClassVar[int]  # 1: the highest label has the highest score; -1: the lowest

    def opinion(self, labels: Labels, gold: Ints) -> ConsensusEstimate:
        votes = shares(labels)
        return ConsensusEstimate(np.where(votes > 0, np.arange(1.0, len(labels.scale) + 1)[:: self.step], 0.0), votes)


class HighestLabel(_Extreme):
    """The highest label that anybody gave, in the order of the scale: one rater is enough."""

    name = "max"
    title = "highest label"
    aliases = ("highest", "maximum")
    step = 1


class LowestLabel(_Extreme):
    """The lowest label that anybody gave, in the order of the scale: all raters must be above it."""

    name = "min"
    title = "lowest label"
    aliases = ("lowest", "minimum")
    step = -1


LEAST_RATE = 0.01  # items added to each label's, so that nothing is impossible


class MACE(Consensus):
    """The most likely label, if a rater either knows the true label or guesses by habit (variational Bayes).

    It starts from the shares of votes, so nothing is random. The rates of labels are learnt, so even a unanimous label
    may change; if no item is disputed, no label changes. Its authors treat all labels as equally likely (`rates=even`):
    then unanimous labels never change, but a prevailing label is mistaken for a habit of guessing.
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

    def opinion(self, labels: Labels, gold: Ints) -> ConsensusEstimate:
        cell = labels.item * len(labels.scale) + labels.label
        posterior, knowledge = shares(labels), np.full(len(labels), 0.5)
        learnt = self.rates == "learnt" and not undisputed(posterior, gold)
        converged, done = False, 0
        while not converged and done < self.passes:
            log_known, log_guessed = self.fitted(labels, posterior.ravel()[cell] * knowledge)
            odds = np.exp(log_known - log_guessed)
            rates = posterior.sum(axis=0) + LEAST_RATE if learnt else np.ones(len(labels.scale))
            before, posterior = posterior, _posterior(labels, cell, np.log1p(odds), np.log(rates), gold)
            knowledge = odds / (1 + odds)
            converged, done = bool(np.abs(posterior - before).max(initial=0.0) <= self.near), done + 1
        knows, guesses = self.of_raters(labels, posterior.ravel()[cell] * knowledge)
        return ConsensusEstimate(posterior, posterior, None, knows / (knows + guesses), done, converged)

    def of_raters(self, labels: Labels, right: Floats) -> tuple[Floats, Floats]:
        """How many labels each rater knew and guessed, including the counts of the prior."""
        raters = len(labels.raters)
        knows, guessed = (np.bincount(labels.rater, share, minlength=raters) for share in (right, 1 - right))
        return knows.astype(np.float64) + self.prior, guessed.astype(np.float64) + self.prior

    def fitted(self, labels: Labels, right: Floats) -> tuple[Floats, Floats]:
        """For each label, the mean log probability that its rater knows the true one, and that the rater guesses it."""
        from scipy.special import digamma  # type: ignore[import-untyped, unused-ignore]

        raters, scale = len(labels.raters), len(labels.scale)
        knows, guesses = self.of_raters(labels, right)
        cell = labels.rater * scale + labels.label
        habits = np.bincount(cell, 1 - right, minlength=raters * scale).reshape(raters, scale) + self.habit
        log_habit = digamma(habits) - digamma(habits.sum(axis=1, keepdims=True))
        log_guessed = digamma(guesses)[labels.rater] + log_habit[labels.rater, labels.label]
        return digamma(knows)[labels.rater], log_guessed


def _posterior(labels: Labels, cell: Ints, gain: Floats, log_rates: Floats, gold: Ints) -> Floats:
    """A vote in which each label is weighted by how much more likely it is if it is true."""
    scale = len(labels.scale)
    gains = np.bincount(cell, gain, minlength=len(labels.items) * scale).reshape(len(labels.items), scale)
    score = gains + log_rates
    gold_items = np.flatnonzero(gold >= 0)
    score[gold_items] = -np.inf
    score[gold_items, gold[gold_items]] = 0.0
    chance = np.exp(score - score.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(chance / chance.sum(axis=1, keepdims=True), np.float64)


class Majority(Consensus):
    """The label that most raters gave; all raters count alike."""

    name = "majority"
    title = "majority vote"
    aliases = ("mode", "plurality")

    def opinion(self, labels: Labels, gold: Ints) -> ConsensusEstimate:
        votes = shares(labels)
        return ConsensusEstimate(votes, votes)


class MeanLabel(Consensus):
    """The label on the scale nearest to the mean of the labels; if the mean is half-way between two labels, they tie.

    `mean(round=no)` keeps the mean itself, which may lie between two labels: 0.67 of 1, 1 and 0.
    """

    name = "mean"
    title = "mean label"
    aliases = ("average",)
    needs_numbers = True
    once_meant = "mean(round=no)"
    round = Choice("nearest", "what becomes of a mean between two labels", "no")

    def opinion(self, labels: Labels, gold: Ints) -> ConsensusEstimate:
        assert labels.scale.values is not None
        votes = shares(labels)
        mean = votes @ labels.scale.values
        return ConsensusEstimate(
            -np.abs(labels.scale.values - mean[:, None]), votes, mean if self.round == "no" else None
        )


class Median(Consensus):
    """The median of the labels, in the order of the scale; of an even number, the two middle labels tie."""

    name = "median"
    title = "median label"

    def opinion(self, labels: Labels, gold: Ints) -> ConsensusEstimate:
        counts = labels.counts()
        number = counts.sum(axis=1, keepdims=True)
        upto = np.cumsum(counts, axis=1)
        before = upto - counts
        middle = (counts > 0) & (2 * upto >= number) & (2 * before <= number)
        return ConsensusEstimate(middle.astype(np.float64), shares(labels))
