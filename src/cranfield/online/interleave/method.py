"""What a method of interleaving is: a class that draws a list from rankings, and shares out clicks among their systems.

What `draw` remembers of a list is all that `credit` sees: whole numbers, a few a rank, so that they fit into a token.
Clicks are worth something each, by rank from 0. A method promises what its class says: above all that a user who clicks
without looking prefers neither system, at any rank.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from cranfield import registry
from cranfield.registry import Registered, Registry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Lists = Sequence[Sequence[Any]]  # a system's documents, the best first, none twice

METHODS: Registry[Method] = Registry("interleaving method", "cranfield.online.interleave")


class Coin(Protocol):
    """What leaves things to chance: a `random.Random`, or in a test whatever tries every side."""

    def randrange(self, stop: int, /) -> int:
        """One of 0 … stop - 1, each as likely."""
        ...

    def choices(
        self,
        population: Sequence[Any],
        weights: Sequence[float] | None = None,
        *,
        cum_weights: Sequence[float] | None = None,
        k: int = 1,
    ) -> list[Any]:
        """Some of a population, with these chances."""
        ...


class Evidence(NamedTuple):
    """What is remembered of a list: `marks`, as many of each rank, and what else the method needs."""

    marks: tuple[tuple[int, ...], ...]
    more: tuple[int, ...] = ()


class Drawn(NamedTuple):
    """A list to show, and what is remembered of it."""

    documents: tuple[Any, ...]
    evidence: Evidence


class Method(Registered, ABC):
    """A way to make one list of several rankings, and to tell from clicks on it which ranking is better.

    >>> str(METHODS.named("Probabilistic(tau=1)"))
    'probabilistic(tau=1)'
    """

    registry = METHODS
    letter: ClassVar[str]  # what stands for it in a token, for good
    formula: ClassVar[str]
    reference: ClassVar[str]
    many: ClassVar[bool] = False  # whether it takes more than two rankings
    blind_user_prefers_neither: ClassVar[bool] = True  # promises that clicks that do not look favour nobody
    fills: ClassVar[bool] = True  # promises k documents as long as any ranking has one left

    @abstractmethod
    def draw(self, lists: Lists, k: int, coin: Coin) -> Drawn:
        """A list of k documents, or as many as there are."""

    @abstractmethod
    def credit(self, evidence: Evidence, systems: int, clicks: Mapping[int, float]) -> list[float]:
        """What each system earns by clicks, each worth something above 0, at ranks from 0."""

    def run_out(self, evidence: Evidence, systems: int) -> set[int]:
        """The ranks, from 0, whose clicks earn nothing because a ranking had run out; none where lists end there."""
        return set()


def places(ranking: Sequence[Any]) -> dict[Any, int]:
    """Each document's rank, from 1."""
    return dict(zip(ranking, range(1, len(ranking) + 1), strict=True))


def ranks_of(documents: Sequence[Any], lists: Lists) -> tuple[tuple[int, ...], ...]:
    """Of each document its rank in each list, 0 where a list lacks it."""
    tables = [places(ranking).get for ranking in lists]
    return tuple([tuple([rank(document, 0) for rank in tables]) for document in documents])


def catalogue() -> list[dict[str, Any]]:
    """All that is said about each method."""
    return [page(cls) for cls in METHODS.values()]


def page(cls: type[Method]) -> dict[str, Any]:
    """All that is said about a method."""
    return registry.page(
        cls,
        rankings="two or more" if cls.many else "two",
        blind_user_prefers_neither=cls.blind_user_prefers_neither,
        fills=cls.fills,
    )
