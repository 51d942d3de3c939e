"""Credit: which system the clicks on an interleaved list prefer.

Clicks are ranks from 1, as in events; a mapping also gives each click a value: seconds, money. A click of value 0 does
not count. Credit is per search; statistics over many searches are elsewhere (`list_preferences`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import shortened
from cranfield.base.results import Answer, Cell, Layout, Part, Table, plain
from cranfield.experiments.interleaving import Interleaved
from cranfield.experiments.interleaving.token import Keys, TokenContents, decode_contents, unseal

if TYPE_CHECKING:
    from collections.abc import Callable

SATISFIED = 30.0  # seconds on a document: Fox et al., Evaluating Implicit Measures to Improve Web Search, TOIS 2005
EQUAL = 1e-9  # a smaller difference of credits is a rounding error

WORTH: dict[str, Callable[[float | None, float], float]] = {
    "clicks": lambda value, enough: 1.0,
    "dwell": lambda value, enough: float(value is not None and value >= enough),
    "conversion": lambda value, enough: float(value is None or value > 0),
    "weights": lambda value, enough: 1.0 if value is None else value,
}
"""The worth of a click by its value: 1; 1 if the dwell was long enough; 1 if it sold something; or the value itself."""


def credit(
    shown: str | Interleaved,
    clicks: Iterable[int] | Mapping[int, float | None],
    by: str = "clicks",
    *,
    enough: float = SATISFIED,
    keys: Keys | None = None,
    search: str = "",
    at: float | None = None,
) -> Preference:
    """Which system the clicks on an interleaved list prefer, and by how much.

    `shown` is the result of `interleave`, or its token (with the `keys` and the `search` that it was sealed with; `at` is
    the time at which it must not have expired). `clicks` are ranks from 1, or ranks and values. `by` says which clicks
    count: clicks (each rank once), dwell (`enough` seconds or more), conversion (sold something), weights (by value).

    >>> import random
    >>> from cranfield.experiments.interleaving import interleave
    >>> shown = interleave({"bm25": ["a", "b", "c"], "dense": ["b", "d", "a"]}, 3, random.Random(1))
    >>> credit(shown, [1, 3]).winner
    'bm25'
    >>> credit(shown, {1: 5.0, 2: 40.0}, by="dwell").credits
    {'bm25': 0.0, 'dense': 1.0}
    """
    if by not in WORTH:
        raise ConventionError(f"credit by {by!r}: expected one of {', '.join(WORTH)}")
    if isinstance(shown, Interleaved):
        contents = TokenContents(shown.method, shown.systems, shown.evidence)
    else:
        contents = decode_contents(unseal(shown, keys or Keys.usual(), search, at))
    return preference_from(contents, worth_of(clicks, by, len(contents.evidence.marks), enough))


def preference_from(contents: TokenContents, worth: Mapping[int, float]) -> Preference:
    """The preference that results from the worth of the clicks by rank; ranks count from 0."""
    method, systems, evidence, _ = contents
    return Preference(dict(zip(systems, method.credit(evidence, len(systems), worth), strict=True)))


def worth_of(
    clicks: Iterable[int] | Mapping[int, float | None], by: str, length: int, enough: float = SATISFIED
) -> dict[int, float]:
    """The worth of the clicks by rank, counted from 0, without clicks worth nothing; `length` is the length of the list."""
    if by == "dwell" and not isinstance(clicks, Mapping):
        raise DataError("credit by dwell needs the seconds of each click: {rank: seconds}")
    values = clicks if isinstance(clicks, Mapping) else dict.fromkeys(clicks)
    answer = {}
    for rank, value in values.items():
        try:
            place = operator.index(rank)
        except TypeError:
            place = 0
        if not length:
            raise DataError(f"a click at rank {shortened(rank)}: the list that was shown is empty")
        if not 1 <= place <= length:
            raise DataError(
                f"a click at rank {shortened(rank)}: expected a whole number from 1 to {length}, the length of the list"
            )
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise DataError(f"the click at rank {place}: expected a value of 0 or more, found {value}")
        if (worth := WORTH[by](value, enough)) > 0:
            answer[place - 1] = worth
    return answer


@dataclass(frozen=True)
class Preference(Answer):
    """The credit of each system for the clicks on one list."""

    credits: dict[str, float]

    @property
    def best(self) -> list[str]:
        """The systems with the most credit; several if they tie."""
        most = max(self.credits.values())
        return [system for system, one in self.credits.items() if one >= most - _slack(most)]

    @property
    def winner(self) -> str | None:
        """The system with the most credit; None if several tie."""
        return self.best[0] if len(self.best) == 1 else None

    @property
    def tie(self) -> bool:
        """Whether all systems have the same credit."""
        return len(self.best) == len(self.credits)

    @property
    def pairs(self) -> dict[tuple[str, str], float]:
        """The difference of credit for every two systems, the first less the second."""
        return {pair: self.difference(*pair) for pair in combinations(self.credits, 2)}

    def difference(self, one: str, other: str) -> float:
        """The credit of one system less that of another; rounding errors become 0."""
        a, b = self.credits[one], self.credits[other]
        return 0.0 if abs(a - b) <= _slack(max(a, b)) else a - b

    def content(self, how: Layout) -> Iterable[Part]:
        yield f"{self.winner} is preferred" if self.winner else f"a tie of {', '.join(self.best)}"
        rows = [(name, Cell(how.number(one), one, name == self.winner)) for name, one in self.credits.items()]
        yield Table(["system", "credit"], rows)

    def plain(self, how: Layout) -> Any:
        pairs = [{"system": a, "against": b, "difference": by} for (a, b), by in self.pairs.items()]
        return plain({"winner": self.winner, "credits": self.credits, "pairs": pairs}, how.digits)


def _slack(credit: float) -> float:
    return EQUAL * max(1.0, credit)
