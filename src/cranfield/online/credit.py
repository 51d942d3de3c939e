"""Clicks on an interleaved list → which system they prefer.

Clicks are ranks from 1, as events have them; a mapping also says what each is worth: seconds, money. What is worth nothing is
no click. Credit is by search; what many searches say together is for statistics.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Cell, Layout, Part, Table, plain
from cranfield.errors import ConventionError, DataError
from cranfield.online.interleave import Interleaved
from cranfield.online.interleave.packed import Contents, unpacked
from cranfield.online.token import Keys, unseal
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Callable

SATISFIED = 30.0  # seconds on a document: Fox et al., Evaluating Implicit Measures to Improve Web Search, TOIS 2005
EQUAL = 1e-9  # credits that differ by less differ by rounding

WORTH: dict[str, Callable[[float | None, float], float]] = {
    "clicks": lambda value, enough: 1.0,
    "dwell": lambda value, enough: float(value is not None and value >= enough),
    "conversion": lambda value, enough: float(value is None or value > 0),
    "weights": lambda value, enough: 1.0 if value is None else value,
}
"""What a click is worth, by what is counted: itself, whether it was long enough, whether it sold, or what is said."""


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
    """Which system clicks on an interleaved list prefer, and by how much.

    `shown` is what `interleave` returned, or its token (with the `keys` and the `search` that it was sealed with, `at` when it
    had to be fresh). `clicks` are ranks from 1, or ranks and values. `by` clicks counts each rank once; by dwell those of
    `enough` seconds; by conversion those that sold something; by weights each for its value.

    >>> import random
    >>> from cranfield.online.interleave import interleave
    >>> shown = interleave({"bm25": ["a", "b", "c"], "dense": ["b", "d", "a"]}, 3, random.Random(1))
    >>> credit(shown, [1, 3]).winner
    'bm25'
    >>> credit(shown, {1: 5.0, 2: 40.0}, by="dwell").credits
    {'bm25': 0.0, 'dense': 1.0}
    """
    if by not in WORTH:
        raise ConventionError(f"credit by {by!r}: expected one of {', '.join(WORTH)}")
    if isinstance(shown, Interleaved):
        contents = Contents(shown.method, shown.systems, shown.evidence)
    else:
        contents = unpacked(unseal(shown, keys or Keys.usual(), search, at))
    return preferred(contents, worth_of(clicks, by, len(contents.evidence.marks), enough))


def preferred(contents: Contents, worth: Mapping[int, float]) -> Preference:
    """Which system clicks prefer, by what each clicked rank, from 0, is worth."""
    method, systems, evidence, _ = contents
    return Preference(dict(zip(systems, method.credit(evidence, len(systems), worth), strict=True)))


def worth_of(
    clicks: Iterable[int] | Mapping[int, float | None], by: str, shown: int, enough: float = SATISFIED
) -> dict[int, float]:
    """What each clicked rank is worth, from rank 0 on; those worth nothing left out. `shown` documents were shown."""
    if by == "dwell" and not isinstance(clicks, Mapping):
        raise DataError("credit by dwell needs the seconds of each click: {rank: seconds}")
    values = clicks if isinstance(clicks, Mapping) else dict.fromkeys(clicks)
    answer = {}
    for rank, value in values.items():
        try:
            place = operator.index(rank)
        except TypeError:
            place = 0
        if not shown:
            raise DataError(
                f"a click at rank {shortened(rank)}: the list that was shown is empty, nothing on it is clicked"
            )
        if not 1 <= place <= shown:
            raise DataError(
                f"a click at rank {shortened(rank)}: expected a whole number from 1 to {shown}, what was shown"
            )
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise DataError(f"the click at rank {place}: expected a value of 0 or more, found {value}")
        if (worth := WORTH[by](value, enough)) > 0:
            answer[place - 1] = worth
    return answer


@dataclass(frozen=True)
class Preference(Answer):
    """What clicks on one list say: the credit of each system."""

    credits: dict[str, float]

    @property
    def best(self) -> list[str]:
        """The systems with the most credit: several where they tie."""
        most = max(self.credits.values())
        return [system for system, one in self.credits.items() if one >= most - _slack(most)]

    @property
    def winner(self) -> str | None:
        """The one with the most credit; None where it ties with another."""
        return self.best[0] if len(self.best) == 1 else None

    @property
    def tie(self) -> bool:
        """Whether all systems have the same credit."""
        return len(self.best) == len(self.credits)

    @property
    def pairs(self) -> dict[tuple[str, str], float]:
        """Of every two systems, by how much the first has more credit; what is but rounding is 0."""
        return {pair: self.difference(*pair) for pair in combinations(self.credits, 2)}

    def difference(self, one: str, other: str) -> float:
        """The credit of one system less that of another; what is but rounding is 0."""
        a, b = self.credits[one], self.credits[other]
        return 0.0 if abs(a - b) <= _slack(max(a, b)) else a - b

    def content(self, how: Layout) -> Iterable[Part]:
        yield f"{self.winner} is preferred" if self.winner else f"a tie of {', '.join(self.best)}"
        rows = [(name, Cell(how.number(one), one, name == self.winner)) for name, one in self.credits.items()]
        yield Table(["system", "credit"], rows)

    def plain(self, how: Layout) -> dict[str, Any]:
        pairs = [{"system": a, "against": b, "difference": by} for (a, b), by in self.pairs.items()]
        answer: dict[str, Any] = plain({"winner": self.winner, "credits": self.credits, "pairs": pairs}, how.digits)
        return answer


def _slack(credit: float) -> float:
    return EQUAL * max(1.0, credit)
