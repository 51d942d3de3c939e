"""Users of the cascade: from the top down, a click as likely as the grade says, and after it perhaps an end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.online.users.model import User
from cranfield.parameters import Real

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.kernels.table import Floats


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
    click_irrelevant = Real(0.0, "how likely a click on an irrelevant document is", low=0, high=1)
    click_relevant = Real(1.0, "how likely a click on a document of the highest grade is", low=0, high=1)
    stop_irrelevant = Real(0.0, "how likely a click on an irrelevant document is the last", low=0, high=1)
    stop_relevant = Real(0.0, "how likely a click on a document of the highest grade is the last", low=0, high=1)

    def clicks(self, gains: Floats, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
        shown = ~np.isnan(gains)
        gain = np.where(shown, gains, 0.0)
        click = self.click_irrelevant + gain * (self.click_relevant - self.click_irrelevant)
        stop = self.stop_irrelevant + gain * (self.stop_relevant - self.stop_irrelevant)
        wanted = shown & (rng.random(gains.shape) < click)
        last = wanted & (rng.random(gains.shape) < stop)
        stopped_before: npt.NDArray[np.int64] = np.cumsum(last, axis=-1) - last
        return np.asarray(wanted & (stopped_before == 0), np.bool_)


class Navigational(Perfect):
    """Looks for one document: clicks on little else, and is done when it is found."""

    name = "navigational"
    click_irrelevant = Real(0.05, Perfect.click_irrelevant.meaning, low=0, high=1)
    click_relevant = Real(0.95, Perfect.click_relevant.meaning, low=0, high=1)
    stop_irrelevant = Real(0.2, Perfect.stop_irrelevant.meaning, low=0, high=1)
    stop_relevant = Real(0.9, Perfect.stop_relevant.meaning, low=0, high=1)


class Informational(Perfect):
    """Wants to know about something: clicks on much, and often goes on."""

    name = "informational"
    click_irrelevant = Real(0.4, Perfect.click_irrelevant.meaning, low=0, high=1)
    click_relevant = Real(0.9, Perfect.click_relevant.meaning, low=0, high=1)
    stop_irrelevant = Real(0.1, Perfect.stop_irrelevant.meaning, low=0, high=1)
    stop_relevant = Real(0.5, Perfect.stop_relevant.meaning, low=0, high=1)


class Blind(Perfect):
    """Clicks without looking, on every second document: whatever finds a difference with such users is wrong."""

    name = "random"
    aliases = ("blind",)
    click_irrelevant = Real(0.5, Perfect.click_irrelevant.meaning, low=0, high=1)
    click_relevant = Real(0.5, Perfect.click_relevant.meaning, low=0, high=1)
