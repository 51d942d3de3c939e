"""The base class of consensus methods (label aggregation): labels of several raters become one label per item.

A method scores each label for each item; the label with the highest score wins. For ties the caller chooses, the same way
for all methods: the lower label, the higher label, or none.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import shortened
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
