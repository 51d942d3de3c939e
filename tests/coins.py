"""A coin that falls on every side: what is left to chance, tried in all ways, each with its probability."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Made = TypeVar("Made")


class Scripted:
    """Falls as a script says, then on the first side; remembers how it fell, and how likely that was."""

    def __init__(self, script: Sequence[int]) -> None:
        self.script = script
        self.falls: list[tuple[int, int]] = []  # the side, and how many there were
        self.chance: Any = Fraction(1)

    def _fall(self, sides: int) -> int:
        side = self.script[len(self.falls)] if len(self.falls) < len(self.script) else 0
        self.falls.append((side, sides))
        return side

    def randrange(self, stop: int) -> int:
        self.chance *= Fraction(1, stop)
        return self._fall(stop)

    def choices(
        self, population: Sequence[Any], weights: Any = None, *, cum_weights: Any = None, k: int = 1
    ) -> list[Any]:
        if cum_weights is not None:
            weights = [after - before for before, after in zip([0, *cum_weights], cum_weights, strict=False)]
        possible = [i for i, weight in enumerate(weights) if weight]
        chosen = possible[self._fall(len(possible))]
        self.chance = self.chance * weights[chosen] / sum(weights)
        return [population[chosen]]


def every(make: Callable[[Scripted], Made]) -> Iterator[tuple[Any, Made]]:
    """All that can be made with a coin, with the probability of each way."""
    script: list[int] = []
    while True:
        coin = Scripted(script)
        made = make(coin)
        yield coin.chance, made
        falls = coin.falls
        while falls and falls[-1][0] == falls[-1][1] - 1:
            falls.pop()
        if not falls:
            return
        script = [*(side for side, _ in falls[:-1]), falls[-1][0] + 1]
