"""What a gate asks of the gains of topics: one class is one question, its test, and the words for what came out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from cranfield.errors import ConventionError
from cranfield.stats.method import Method

State: TypeAlias = Literal["passed", "failed", "undecided"]

ONE_TOPIC = "but on one topic, from which chance cannot be told"


@dataclass(frozen=True)
class Finding:
    """What the topics say by one measure: the mean loss, and the test of it against what is allowed."""

    n: int
    drop: float  # the mean loss, below 0 where it rose
    allowed: float  # the loss that the test holds it against
    bound: float = math.nan  # the end of the one-sided interval of the mean gain
    p: float = math.nan
    level: float = 0.95  # of the interval
    even: bool = False  # every topic gained the same: the signs decide
    corrected: float = math.nan
    tests: int = 1  # measures that the p-value was corrected for

    @property
    def moved(self) -> str:
        """What became of the mean."""
        if self.drop == 0:
            return "it stayed the same"
        return f"it {'fell' if self.drop > 0 else 'rose'} by {abs(self.drop):.4f}"

    @property
    def chance(self) -> str:
        """The p-value, corrected too where it was."""
        corrected = f", Holm {shown_p(self.corrected)}" if self.tests > 1 else ""
        return f"{_equals(self.p)}{corrected}"

    @property
    def evidence(self) -> str:
        """The p-value and the number of topics."""
        return f"{self.chance}, {self.n} topics"

    @property
    def by_signs(self) -> str:
        """Why there is no interval."""
        return f"all {self.n} differences are equal, and by signs alone {_equals(self.p)}"


class GateQuestion(Method, ABC):
    """A question by name: which loss is tested against, from which side, and what the answer means."""

    kind = "question"
    registry: ClassVar[dict[str, GateQuestion]] = {}
    refusal = ConventionError

    alternative: ClassVar[Literal["less", "greater"]] = "less"  # that the mean gain is, compared with the allowed loss
    one_suffices: ClassVar[bool] = True  # one measure fails the gate, so p-values are corrected for their number
    end: ClassVar[str] = "at best"  # which end of the interval of the difference is shown
    shows: ClassVar[str]  # what a significant test shows

    def allowed(self, max_drop: float) -> float:
        """The loss that the mean is held against."""
        return max_drop

    @abstractmethod
    def answer(self, found: Finding, significant: bool) -> tuple[State, str]:
        """Whether the measure passes, and why."""

    @abstractmethod
    def how(self, test: str, alpha: float, measures: int) -> str:
        """How the gate decides, in one line."""


class _Fall(GateQuestion):
    """Fails where a fall is shown: the gate is open until there is evidence."""

    def answer(self, found: Finding, significant: bool) -> tuple[State, str]:
        if found.drop <= 0:
            return "passed", "it did not fall"
        if found.drop <= found.allowed:
            return "passed", f"{found.moved}, within the {found.allowed:g} allowed"
        fell = found.moved + (f", more than the {found.allowed:g} allowed" if found.allowed else "")
        if found.n == 1:
            return "undecided", f"{fell}, {ONE_TOPIC}"
        if found.even:
            return "failed" if significant else "undecided", f"{fell}; {found.by_signs}"
        if significant:
            return "failed", f"{fell}, and not by chance ({found.evidence})"
        return "passed", f"{fell}, but on {found.n} topics that may be chance ({found.chance})"

    def how(self, test: str, alpha: float, measures: int) -> str:
        corrected = f" after Holm's correction for {measures} measures" if measures > 1 else ""
        return f"fails where a one-sided test ({test}) shows that {self.shows}: p of {alpha:g} or less{corrected}"


class Drop(_Fall):
    """Is it worse at all? Fails where any fall is shown, however small, and lets pass what may be chance."""

    name = "drop"
    title = "worse at all?"
    shows = "the mean fell"

    def allowed(self, max_drop: float) -> float:
        return 0.0


class MaxDrop(_Fall):
    """Is it worse by more than is allowed? Fails where that is shown, and lets pass what may be chance."""

    name = "max-drop"
    title = "worse by more than is allowed?"
    shows = "the mean fell by more than is allowed"


class NonInferior(GateQuestion):
    """Is it within what is allowed? Fails unless that is shown by every measure, so few topics fail."""

    name = "non-inferior"
    title = "within what is allowed?"
    alternative = "greater"
    one_suffices = False
    end = "at worst"
    shows = "the mean fell by no more than is allowed"

    def answer(self, found: Finding, significant: bool) -> tuple[State, str]:
        within = f"within the {found.allowed:g} allowed"
        if found.n == 1:
            return "undecided", f"{found.moved}, {ONE_TOPIC}"
        if found.even:
            state: State = "passed" if significant else "undecided" if found.drop < found.allowed else "failed"
            return state, f"{found.moved}; {found.by_signs}"
        end = f"it rises by {found.bound:.4f} or more" if found.bound > 0 else f"it falls by {-found.bound:.4f} at most"
        more = f": with {100 * found.level:g} % confidence {end}" if math.isfinite(found.bound) else ""
        if significant:
            return "passed", f"{found.moved}, and that it stays {within} is shown{more} ({found.evidence})"
        return "failed", f"{found.moved}, but that it stays {within} is not shown{more} ({found.evidence})"

    def how(self, test: str, alpha: float, measures: int) -> str:
        every = " by every measure, which needs no correction" if measures > 1 else ""
        return f"passes where a one-sided test ({test}) shows that {self.shows}: p of {alpha:g} or less{every}"


QUESTIONS = GateQuestion.registry


def shown_p(value: float) -> str:
    """A p-value as text; a small one is never shown as 0."""
    return "-" if math.isnan(value) else f"{value:.4f}" if value >= 0.00005 else "<0.0001"


def _equals(p: float) -> str:
    """A p-value in a sentence: p = 0.0123, p < 0.0001."""
    shown = shown_p(p)
    return f"p < {shown[1:]}" if shown.startswith("<") else f"p = {shown}"
