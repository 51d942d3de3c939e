"""The base class of interleaving methods: draw a list from rankings, and credit clicks to their systems.

`credit` sees only the evidence that `draw` keeps of a list: a few whole numbers per rank, which fit into a token. Clicks
have a worth by rank, from 0. The class attributes of a method are promises. The most important: a user who clicks at random
prefers neither system, at any rank.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from cranfield.base import registry
from cranfield.base.registry import Registered, Registry

Lists = Sequence[Sequence[Any]]  # a system's documents, the best first, none twice
METHODS: Registry[type[InterleavingMethod]] = Registry(
    "interleaving method", "interleaving_methods", "cranfield.experiments.interleaving"
)


class Coin(Protocol):
    """A source of random choices: a `random.Random`, or in a test an object that tries every outcome."""

    def randrange(self, stop: int, /) -> int:
        """A random number from 0 to stop - 1, all equally likely."""
        ...

    def choices(
        self,
        population: Sequence[Any],
        weights: Sequence[float] | None = None,
        *,
        cum_weights: Sequence[float] | None = None,
        k: int = 1,
    ) -> list[Any]:
        """A random sample of a population with these weights."""
        ...


class ListEvidence(NamedTuple):
    """The evidence of a list for credit: equally many numbers (`marks`) per rank, and numbers about the whole list (`more`)."""

    marks: tuple[tuple[int, ...], ...]
    more: tuple[int, ...] = ()


class MixedList(NamedTuple):
    """A list to show, and the evidence for its credit."""

    documents: tuple[Any, ...]
    evidence: ListEvidence


class InterleavingMethod(Registered, ABC):
    """A way to mix several rankings into one list, and to infer from clicks which ranking is better.

    >>> str(METHODS.named("Probabilistic(tau=1)"))
    'probabilistic(tau=1)'
    """

    registry = METHODS
    letter: ClassVar[str]  # the method's letter in tokens; never change it
    formula: ClassVar[str]
    reference: ClassVar[str]
    many: ClassVar[bool] = False  # whether it takes more than two rankings
    blind_user_prefers_neither: ClassVar[bool] = True  # promise: random clicks favour no system
    fills: ClassVar[bool] = True  # promise: the list has k documents as long as any ranking has one left

    @abstractmethod
    def draw(self, lists: Lists, k: int, coin: Coin) -> MixedList:
        """A list of k documents, or fewer if there are not enough."""

    @abstractmethod
    def credit(self, evidence: ListEvidence, systems: int, clicks: Mapping[int, float]) -> list[float]:
        """The credit of each system for clicks: a mapping of ranks (from 0) to their worth (above 0)."""

    def run_out(self, evidence: ListEvidence, systems: int) -> set[int]:
        """The ranks, from 0, whose clicks earn nothing because a ranking had run out."""
        return set()


def ranks_by_document(ranking: Sequence[Any]) -> dict[Any, int]:
    """Each document's rank, from 1."""
    return dict(zip(ranking, range(1, len(ranking) + 1), strict=True))


def ranks_of(documents: Sequence[Any], lists: Lists) -> tuple[tuple[int, ...], ...]:
    """Per document, its rank in each list; 0 if a list lacks it."""
    tables = [ranks_by_document(ranking).get for ranking in lists]
    return tuple([tuple([rank(document, 0) for rank in tables]) for document in documents])


def catalogue() -> list[dict[str, Any]]:
    """The descriptions of all methods."""
    return [page(cls) for cls in METHODS.values()]


def page(cls: type[InterleavingMethod]) -> dict[str, Any]:
    """The description of a method, for listings and docs."""
    return registry.page(
        cls,
        rankings="two or more" if cls.many else "two",
        blind_user_prefers_neither=cls.blind_user_prefers_neither,
        fills=cls.fills,
    )
