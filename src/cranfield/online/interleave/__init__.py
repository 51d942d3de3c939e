"""Rankings → one list to show, and what to remember of it: each method one class in one file.

A ranking that names a document twice counts its first place. Rankings may be of any length, also empty: the list goes on with
what others have, and what is placed after one has run out earns no credit, for no click there could be fair. A list is
shorter than k where all rankings together have fewer documents.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Cell, Layout, Part, Table
from cranfield.errors import ConventionError, DataError
from cranfield.online.interleave.method import METHODS, Coin, Evidence, Method
from cranfield.online.interleave.packed import packed
from cranfield.online.token import Keys, seal
from cranfield.parameters import refuse_below, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["METHODS", "Coin", "Interleaved", "Method", "interleave"]

MOST_SYSTEMS = 1_000


def interleave(
    rankings: Mapping[str, Sequence[Any]] | Sequence[Sequence[Any]],
    k: int,
    coin: Coin,
    method: str | Method = "team-draft",
    **parameters: Any,
) -> Interleaved:
    """One list of k documents from two rankings or more, and what to remember of it.

    `rankings` are lists of documents, the best first, by the names of their systems, or without names (A, B, …). `coin` is
    a `random.Random`. `method` is team-draft, probabilistic, pairwise-preference, or for two rankings optimised or balanced.

    >>> import random
    >>> shown = interleave({"bm25": ["a", "b", "c"], "dense": ["b", "d", "a"]}, 3, random.Random(1))
    >>> shown.documents, shown.teams
    (('a', 'b', 'c'), ('bm25', 'dense', 'bm25'))
    """
    chosen = method_of(method, **parameters) if isinstance(method, str) else method
    systems, lists = _named(rankings)
    refuse_below(1, k=k)
    if len(lists) < 2 or (len(lists) > 2 and not chosen.many):
        raise DataError(f"{chosen.name} interleaves {_takes(chosen)}, found {len(lists)}")
    if not hasattr(coin, "randrange"):
        raise ConventionError(f"coin must be a random.Random or like one, found {type(coin).__name__}")
    drawn = chosen.draw(lists, k, coin)
    return Interleaved(drawn.documents, systems, chosen, drawn.evidence)


def method_of(typed: str, **parameters: Any) -> Method:
    """A method by what one types, with parameters by name."""
    return _method(typed, tuple([(key, str(value)) for key, value in parameters.items()]))


@lru_cache(maxsize=256)
def _method(typed: str, parameters: tuple[tuple[str, str], ...]) -> Method:
    named = METHODS.named(typed)
    return type(named)(**{**named.values, **dict(parameters)}) if parameters else named


def _takes(method: Method) -> str:
    if method.many:
        return "two rankings or more"
    return f"two rankings (for more: {', '.join(name for name, each in METHODS.items() if each.many)})"


def _named(rankings: Any) -> tuple[tuple[str, ...], list[list[Any]]]:
    """The systems' names, and their documents without repeats."""
    if isinstance(rankings, Mapping):
        systems, lists = tuple(map(str, rankings)), [*rankings.values()]
    else:
        lists = [*rankings]
        systems = _lettered(len(lists))
    if len(set(systems)) < len(systems) or len(systems) > MOST_SYSTEMS:
        raise DataError(f"expected {MOST_SYSTEMS:,} rankings at the most, each by its own name, found {len(systems)}")
    for system, ranking in zip(systems, lists, strict=True):
        if type(ranking) is not list and (
            isinstance(ranking, (str, bytes, Mapping)) or not isinstance(ranking, Iterable)
        ):
            raise DataError(f"ranking {system}: expected a list of documents, found {shortened(repr(ranking))}")
    try:
        return systems, [list(dict.fromkeys(ranking)) for ranking in lists]
    except TypeError as error:
        raise DataError(f"expected lists of documents' ids, found what cannot be one ({error})") from None


@lru_cache
def _lettered(n: int) -> tuple[str, ...]:
    """Names for rankings that have none."""
    return tuple([*string.ascii_uppercase, *(f"S{i}" for i in range(27, n + 1))][:n])


@dataclass(frozen=True, eq=False)
class Interleaved(Answer):
    """What `interleave` returns: the documents to show, in order, and what `credit` needs to know."""

    documents: tuple[Any, ...]
    systems: tuple[str, ...]
    method: Method
    evidence: Evidence

    def earned(self, clicks: Mapping[int, float]) -> dict[str, float]:
        """What clicks at ranks from 1, each with what it is worth, earn every system."""
        from_0 = {rank - 1: worth for rank, worth in clicks.items()}
        return dict(zip(self.systems, self.method.credit(self.evidence, len(self.systems), from_0), strict=True))

    @property
    def teams(self) -> tuple[str | None, ...]:
        """The system for which a single click on each document speaks most; None where it speaks for none or several alike."""
        return tuple(map(self._team, range(1, len(self.documents) + 1)))

    def _team(self, rank: int) -> str | None:
        credits = self.earned({rank: 1.0})
        most = max(credits.values())
        best = [system for system, one in credits.items() if one > most - 1e-9]
        return best[0] if len(best) == 1 else None

    @property
    def token(self) -> str:
        """Sealed with the usual keys (`Keys.usual`), for any search and without end."""
        return self.seal(Keys.usual())

    def seal(self, keys: Keys, search: str = "", expires: float | None = None, plan: str = "") -> str:
        """The token to log: whoever has the keys gets teams and credit from it, and nobody else.

        `plan` is the name of the experiment: `analyze` leaves out and counts tokens that name another one.
        """
        return seal(packed(self.method, self.systems, self.evidence, plan), keys, search, expires)

    def content(self, how: Layout) -> Iterable[Part]:
        yield f"{self.method} of {', '.join(self.systems)}: {len(self.documents)} documents"
        head = ["rank", "document", "a click is for", *self.systems]
        rows: list[list[Cell | str]] = []
        for rank, (document, team) in enumerate(zip(self.documents, self.teams, strict=True), 1):
            credits = self.earned({rank: 1.0}).values()
            rows.append([str(rank), str(document), team or "-", *(how.cell(one) for one in credits)])
        yield Table(head, rows, names=2, left=3, title="what a single click earns each system")

    def plain(self, how: Layout) -> dict[str, Any]:
        lines = [
            {"rank": rank, "document": document, "team": team, "credit": self.earned({rank: 1.0})}
            for rank, (document, team) in enumerate(zip(self.documents, self.teams, strict=True), 1)
        ]
        return {"method": str(self.method), "systems": list(self.systems), "documents": lines}
