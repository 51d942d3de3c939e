"""Interleaving: mix rankings into one list to show, and keep the evidence for credit. Each method is one class in one file.

If a ranking names a document twice, the first rank counts. Rankings may have any length, also 0: the list goes on with
documents of the others. Documents placed after a ranking has run out earn no credit, as no click there would be fair. A
list is shorter than k if all rankings together have fewer documents.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import refuse_below, shortened
from cranfield.base.results import Answer, Cell, Layout, Part, Table
from cranfield.experiments.interleaving.method import METHODS, Coin, InterleavingMethod, ListEvidence
from cranfield.experiments.interleaving.token import Keys, encode_contents, seal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["METHODS", "Coin", "Interleaved", "InterleavingMethod", "interleave"]

MOST_SYSTEMS = 1_000


def interleave(
    rankings: Mapping[str, Sequence[Any]] | Sequence[Sequence[Any]],
    k: int,
    coin: Coin,
    method: str | InterleavingMethod = "team-draft",
    **parameters: Any,
) -> Interleaved:
    """Mix two or more rankings into one list of k documents.

    `rankings` are lists of documents, best first, by system name, or without names (A, B, …). `coin` is a `random.Random`.
    `method` is team-draft, probabilistic or pairwise-preference; for two rankings also optimised or balanced.

    >>> import random
    >>> shown = interleave({"bm25": ["a", "b", "c"], "dense": ["b", "d", "a"]}, 3, random.Random(1))
    >>> shown.documents, shown.teams
    (('a', 'b', 'c'), ('bm25', 'dense', 'bm25'))
    """
    mixer = method_of(method, **parameters) if isinstance(method, str) else method
    systems, lists = _named(rankings)
    refuse_below(1, k=k)
    if len(lists) < 2 or (len(lists) > 2 and not mixer.many):
        others = ", ".join(name for name, each in METHODS.items() if each.many)
        expected = "two rankings or more" if mixer.many else f"two rankings (for more: {others})"
        raise DataError(f"{mixer.name} interleaves {expected}, found {len(lists)}")
    if not hasattr(coin, "randrange"):
        raise ConventionError(f"coin must be a random.Random or compatible, found {type(coin).__name__}")
    mixed = mixer.draw(lists, k, coin)
    return Interleaved(mixed.documents, systems, mixer, mixed.evidence)


def method_of(typed: str, **parameters: Any) -> InterleavingMethod:
    """The interleaving method with this name and these parameters."""
    return _method(typed, tuple([(key, str(value)) for key, value in parameters.items()]))


@lru_cache(maxsize=256)
def _method(typed: str, parameters: tuple[tuple[str, str], ...]) -> InterleavingMethod:
    named = METHODS.named(typed)
    return type(named)(**{**named.values, **dict(parameters)}) if parameters else named


def _named(rankings: Any) -> tuple[tuple[str, ...], list[list[Any]]]:
    """The systems' names, and their documents without duplicates."""
    if isinstance(rankings, Mapping):
        systems, lists = tuple(map(str, rankings)), [*rankings.values()]
    else:
        lists = [*rankings]
        systems = _lettered(len(lists))
    if len(set(systems)) < len(systems) or len(systems) > MOST_SYSTEMS:
        raise DataError(f"expected at most {MOST_SYSTEMS:,} rankings with different names, found {len(systems)}")
    for system, ranking in zip(systems, lists, strict=True):
        if type(ranking) is not list and (
            isinstance(ranking, (str, bytes, Mapping)) or not isinstance(ranking, Iterable)
        ):
            raise DataError(f"ranking {system}: expected a list of documents, found {shortened(repr(ranking))}")
    try:
        return systems, [list(dict.fromkeys(ranking)) for ranking in lists]
    except TypeError as error:
        raise DataError(f"expected lists of document ids, found a value that cannot be one ({error})") from None


@lru_cache
def _lettered(n: int) -> tuple[str, ...]:
    """The names of unnamed rankings: A, B, …"""
    return tuple([*string.ascii_uppercase, *(f"S{i}" for i in range(27, n + 1))][:n])


@dataclass(frozen=True, eq=False)
class Interleaved(Answer):
    """The result of `interleave`: the documents to show, in order, and the evidence that `credit` needs."""

    documents: tuple[Any, ...]
    systems: tuple[str, ...]
    method: InterleavingMethod
    evidence: ListEvidence

    def earned(self, clicks: Mapping[int, float]) -> dict[str, float]:
        """The credit of every system for clicks: a mapping of ranks (from 1) to what a click is worth."""
        from_0 = {rank - 1: worth for rank, worth in clicks.items()}
        return dict(zip(self.systems, self.method.credit(self.evidence, len(self.systems), from_0), strict=True))

    @property
    def teams(self) -> tuple[str | None, ...]:
        """Per document, the system that gains most from a single click on it; None if no system or several do."""
        return tuple(team for _, _, team, _ in self._clicks())

    def _clicks(self) -> Iterator[tuple[int, Any, str | None, dict[str, float]]]:
        """The rank of each document, the document, its team, and the credit of each system for a click on it alone."""
        for rank, document in enumerate(self.documents, 1):
            credits = self.earned({rank: 1.0})
            best = [system for system, one in credits.items() if one > max(credits.values()) - 1e-9]
            yield rank, document, best[0] if len(best) == 1 else None, credits

    @property
    def token(self) -> str:
        """The token, sealed with the usual keys (`Keys.usual`), for any search and without expiry."""
        return self.seal(Keys.usual())

    def seal(self, keys: Keys, search: str = "", expires: float | None = None, plan: str = "") -> str:
        """The token to log; only the holders of the keys can read teams and credit from it.

        `plan` is the name of the experiment: `analyze` leaves out tokens that name another one, and counts them.
        """
        return seal(encode_contents(self.method, self.systems, self.evidence, plan), keys, search, expires)

    def content(self, how: Layout) -> Iterable[Part]:
        yield f"{self.method} of {', '.join(self.systems)}: {len(self.documents)} documents"
        head = ["rank", "document", "a click is for", *self.systems]
        rows: list[list[Cell | str]] = [
            [str(rank), str(document), team or "-", *map(how.cell, credits.values())]
            for rank, document, team, credits in self._clicks()
        ]
        yield Table(head, rows, names=2, left=3, title="credit per system for a single click")

    def plain(self, how: Layout) -> dict[str, Any]:
        lines = [dict(zip(("rank", "document", "team", "credit"), each, strict=True)) for each in self._clicks()]
        return {"method": str(self.method), "systems": list(self.systems), "documents": lines}
