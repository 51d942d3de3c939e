"""What a consensus method is: a class that turns labels of several raters into one label for each item.

A method scores each label for each item; the highest score stands. Labels that score alike tie, and what happens then is
the caller's choice, the same for all methods: the lower of them, the higher, or none.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from cranfield.errors import ConventionError, DataError
from cranfield.parameters import shortened
from cranfield.registry import Registered, Registry, about

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from cranfield.stats.labels import Labels, Names, Scale
    from cranfield.stats.ties import Bools, Floats, Ints

Ties: TypeAlias = Literal["lower", "higher", "open"]
TIES: tuple[Ties, ...] = get_args(Ties)
NEAR = 1e-9  # scores no further apart are a tie
OPEN = -1  # the code of an item whose tie is left open

METHODS: Registry[Consensus] = Registry("consensus method", "cranfield.stats.consensus")


class Opinion(NamedTuple):
    """What a method's arithmetic gives: items × labels, and what it learnt of the raters."""

    score: Floats  # the highest stands
    posterior: Floats  # how likely each label is; the shares of votes where a method has no model
    value: Floats | None = None  # a number for each item, where it may lie between labels
    reliability: Floats | None = None  # of each rater, from 0 to 1
    iterations: int = 0
    converged: bool = True


@dataclass(frozen=True, eq=False)
class Verdict:
    """One label for each item, how likely each other one is, and what each rater makes of each label."""

    method: str
    """As one would type it."""
    ties: Ties
    items: Names
    raters: Names
    scale: Scale
    code: Ints
    """The label that stands, by its place on the scale; -1 where a tie is left open."""
    value: Floats
    """The same as a number, for `mean(round=no)` one that may lie between labels; NaN where there is none."""
    best: Bools
    """Items × labels: which of them tie for the best."""
    posterior: Floats
    """Items × labels, rows adding up to 1: by the method's model, or the shares of votes."""
    confusion: Floats
    """Raters × labels that stand × labels given: how many items, each spread as its posterior is."""
    reliability: Floats | None = None
    """Of each rater, where the method has such a thing: the share of labels that are more than guesses, or right."""
    iterations: int = 0
    converged: bool = True
    repeated: int = 0
    """Labels left out because their rater had labelled the item before."""

    @property
    def labels(self) -> dict[Hashable, Any]:
        """The label that stands of each item; None where a tie is left open."""
        names = self.scale.names
        return {
            item: None if code == OPEN else names[code]
            for item, code in zip(self.items, self.code.tolist(), strict=True)
        }

    @property
    def tied(self) -> int:
        """How many items have more than one best label."""
        return int((self.best.sum(axis=1) > 1).sum())

    def accuracy(self, truth: Mapping[Any, Any]) -> float:
        """The share of items, of those whose truth is known, that are right: expected where labels tie, whatever the rule.

        >>> from cranfield.stats.labels import Labels
        >>> labels = Labels.of_table([[1, 1, 0], [1, 0, 0]])
        >>> METHODS.named("majority").decide(labels).accuracy({0: 1, 1: 1, 2: 1})  # right, half of a tie, wrong
        0.5
        """
        place = {name: code for code, name in enumerate(self.scale.names)}
        known = [(row, place.get(truth[item])) for row, item in enumerate(self.items) if item in truth]
        if not known:
            raise DataError("none of the items has a known truth")
        right = (float(self.best[row, code]) / self.best[row].sum() for row, code in known if code is not None)
        return math.fsum(right) / len(known)


class Consensus(Registered, ABC):
    """A way to one label for each item, and what it promises.

    >>> str(METHODS.named("Dawid_Skene(smoothing=2)"))
    'dawid-skene(smoothing=2)'
    """

    registry = METHODS
    title: ClassVar[str]
    reference: ClassVar[str] = ""
    models_raters: ClassVar[bool] = False  # how good raters are weighs in
    keeps_unanimity: ClassVar[Literal["of an item", "of all"]] = "of an item"
    needs_numbers: ClassVar[bool] = False  # labels that are names have no mean
    needs_gold: ClassVar[bool] = False
    once_meant: ClassVar[str] = ""  # what its bare name meant in versions that were frozen earlier, if something else

    @abstractmethod
    def opinion(self, labels: Labels, gold: Ints) -> Opinion:
        """Scores for labels without repeats; `gold` has the code of each item's true label, -1 where it is not known."""

    def decide(self, labels: Labels, *, ties: Ties = "lower", gold: Mapping[Any, Hashable] | None = None) -> Verdict:
        """One label for each item. An item whose true label is given as `gold` has that."""
        if ties not in TIES:
            raise ConventionError(f"ties must be {' | '.join(TIES)}, got {shortened(ties)}")
        if self.needs_gold and not gold:
            raise ConventionError(f"{self.name} needs gold: true labels of some items")
        if self.needs_numbers and labels.scale.values is None:
            raise DataError(f"{self.name} needs numbers for labels, found {shortened(labels.scale.names[0])}")
        once = labels.once()
        truth = gold_codes(once, gold or {})
        opinion = self.opinion(once, truth)
        known = truth >= 0
        posterior = np.where(known[:, None], _sure(truth, len(labels.scale)), opinion.posterior)
        best = np.where(known[:, None], posterior > 0, _best(opinion.score))
        code = chosen_of(best, ties)
        return Verdict(
            str(self),
            ties,
            once.items,
            once.raters,
            labels.scale,
            code,
            _values(labels.scale, code, known, opinion.value),
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
        """What it does, in a sentence or two."""
        return about(cls)


def gold_codes(labels: Labels, gold: Mapping[Any, Hashable]) -> Ints:
    """The code of each item's true label, -1 where it is not known."""
    place = {name: code for code, name in enumerate(labels.scale.names)}
    for item, name in gold.items():
        if name not in place:
            raise DataError(f"gold of item {item!r}: label {shortened(name)} is not on the scale")
    return np.array([place[gold[item]] if item in gold else OPEN for item in labels.items], np.int64)


def _sure(code: Ints, labels: int) -> Floats:
    """Certainty of one label for each item; nonsense where its code is -1."""
    return np.asarray(np.eye(labels)[code], np.float64) if labels else np.zeros((len(code), 0))


def _best(score: Floats) -> Bools:
    top = score.max(axis=1, keepdims=True, initial=-math.inf)
    return np.asarray(score >= top - NEAR * np.maximum(1.0, np.abs(top)), np.bool_)


def chosen_of(best: Bools, ties: Ties) -> Ints:
    """The label that stands of those that tie for the best.

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


def _values(scale: Scale, code: Ints, known: Bools, value: Floats | None) -> Floats:
    """The number of each item: the method's own, or that of the label that stands."""
    if scale.values is None:
        return np.full(len(code), math.nan)
    standing = np.where(code == OPEN, math.nan, scale.values[code] if len(scale) else math.nan)
    return standing if value is None else np.where(known, standing, value)


def shares(labels: Labels) -> Floats:
    """The share of an item's labels that each label of the scale has: items × labels."""
    counts = labels.counts()
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), np.float64)


def undisputed(votes: Floats, gold: Ints) -> bool:
    """Whether no item has two different labels, or a true one besides: then nothing can be learnt of errors."""
    return bool((gold < 0).all() and ((votes == 0) | (votes == 1)).all())


def confusions(labels: Labels, posterior: Floats) -> Floats:
    """How many items of each true label each rater gave each label, items spread as their posterior is."""
    raters, scale = len(labels.raters), len(labels.scale)
    cell = labels.rater * scale + labels.label
    columns = [
        np.bincount(cell, posterior[labels.item, true], minlength=raters * scale).reshape(raters, scale)
        for true in range(scale)
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((raters, 0, 0))
