"""Models of simulated users, each one class: from the gains of a list's documents to clicks.

A user sees only the gain of each document, from 0 (irrelevant) to 1 (the highest grade). Lists are rows of one length;
shorter lists are padded with NaN. The models here are cascade models: users read from the top, click with a probability by
grade, and may stop after each click.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cranfield.base.parameters import Real
from cranfield.base.registry import Registered, Registry

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats


USERS: Registry[type[User]] = Registry("model of users", "user_models", "cranfield.experiments.user_models")


class User(Registered, ABC):
    """A model of how a user reads a list and clicks.

    >>> str(USERS.named("Navigational(stop_relevant=1)"))
    'navigational(stop_relevant=1)'
    """

    registry = USERS
    formula: ClassVar[str]
    reference: ClassVar[str]

    @abstractmethod
    def clicks(self, gains: Floats, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
        """The clicks: searches × ranks, in the shape of the gains."""


MEANINGS = (
    "how likely a click on an irrelevant document is",
    "how likely a click on a document of the highest grade is",
    "how likely a click on an irrelevant document is the last",
    "how likely a click on a document of the highest grade is the last",
)


def probabilities(*defaults: float) -> tuple[Real, ...]:
    """The parameters of a cascade model: click on an irrelevant or relevant document, stop after such a click."""
    return tuple(Real(default, meaning, low=0, high=1) for default, meaning in zip(defaults, MEANINGS, strict=True))


class Perfect(User):
    """Clicks on every relevant document and on nothing else, to the end of the list."""

    name = "perfect"
    formula = (
        "at each rank until stopped: P(click) = c₀ + g (c₁ - c₀); after a click: P(stop) = s₀ + g (s₁ - s₀); "
        "g = grade / highest grade"
    )
    reference = (
        "Guo, Liu and Wang, Efficient Multiple-Click Models in Web Search, WSDM 2009; values: Hofmann, Whiteson and "
        "de Rijke, A Probabilistic Method for Inferring Preferences from Clicks, CIKM 2011"
    )
    click_irrelevant, click_relevant, stop_irrelevant, stop_relevant = probabilities(0.0, 1.0, 0.0, 0.0)

    def clicks(self, gains: Floats, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
        present = ~np.isnan(gains)
        gain = np.where(present, gains, 0.0)
        click = self.click_irrelevant + gain * (self.click_relevant - self.click_irrelevant)
        stop = self.stop_irrelevant + gain * (self.stop_relevant - self.stop_irrelevant)
        clicked = present & (rng.random(gains.shape) < click)
        last = clicked & (rng.random(gains.shape) < stop)
        stopped_before: npt.NDArray[np.int64] = np.cumsum(last, axis=-1) - last
        return np.asarray(clicked & (stopped_before == 0), np.bool_)


class Navigational(Perfect):
    """Looks for one document: clicks on little else, and stops after it."""

    name = "navigational"
    click_irrelevant, click_relevant, stop_irrelevant, stop_relevant = probabilities(0.05, 0.95, 0.2, 0.9)


class Informational(Perfect):
    """Wants to learn about a subject: clicks often, and often goes on."""

    name = "informational"
    click_irrelevant, click_relevant, stop_irrelevant, stop_relevant = probabilities(0.4, 0.9, 0.1, 0.5)


class Blind(Perfect):
    """Clicks at random, on every second document: a test that detects a difference with such users is wrong."""

    name = "random"
    aliases = ("blind",)
    click_irrelevant, click_relevant, stop_irrelevant, stop_relevant = probabilities(0.5, 0.5, 0.0, 0.0)
