"""Every hidden state of a user on a short list, one by one: the oracle of click models.

A world is one assignment of all hidden states with its probability. Nothing here knows the formulas of expectation and
maximisation: expectations are sums over worlds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FLAGS = (False, True)


@dataclass(frozen=True)
class World:
    """Hidden states and clicks by rank (from 0), and their probability."""

    probability: float
    attracted: tuple[bool, ...]
    examined: tuple[bool, ...]
    clicks: tuple[bool, ...]
    satisfied: tuple[bool, ...] = ()  # drawn for every rank; it matters where there is a click
    goes_on: tuple[bool, ...] = ()  # drawn for every rank; it matters where the rank is examined


def position_worlds(attractiveness: Sequence[float], examination: Callable[[int, int], float]) -> list[World]:
    """Users who examine each rank by itself: PBM and UBM. `examination` takes the rank and that of the click above (0: none)."""
    answer = []
    for attracted in product(FLAGS, repeat=len(attractiveness)):
        for examined in product(FLAGS, repeat=len(attractiveness)):
            chances, previous = [], 0
            for rank, (a, e) in enumerate(zip(attracted, examined, strict=True), 1):
                chances += [chance(attractiveness[rank - 1], a), chance(examination(rank, previous), e)]
                previous = rank if a and e else previous
            clicks = tuple(a and e for a, e in zip(attracted, examined, strict=True))
            answer.append(World(prod(chances), attracted, examined, clicks))
    return answer


def chain_worlds(
    attractiveness: Sequence[float], satisfaction: Sequence[float], goes_on: Callable[[int, bool, bool], float]
) -> list[World]:
    """Users who walk down from rank 1 until they stop: cascade, DCM, SDBN, DBN, CCM.

    `goes_on` is the probability of examining the next rank after this rank (from 1), whether it was clicked, and whether the
    click satisfied.
    """
    answer = []
    size = len(attractiveness)
    for attracted, satisfied, steps in product(*[list(product(FLAGS, repeat=size))] * 3):
        chances, examined, clicks, reads = [], [], [], True
        for rank, (a, s, on) in enumerate(zip(attracted, satisfied, steps, strict=True), 1):
            click = reads and a
            examined.append(reads)
            clicks.append(click)
            chances += [chance(attractiveness[rank - 1], a), chance(satisfaction[rank - 1], s)]
            chances.append(chance(goes_on(rank, click, click and s), on))
            reads = reads and on
        answer.append(World(prod(chances), attracted, tuple(examined), tuple(clicks), satisfied, steps))
    return answer


def chance(probability: float, happens: bool) -> float:
    """The probability of an event or of its opposite."""
    return probability if happens else 1 - probability


def with_clicks(worlds: list[World], clicks: Sequence[object]) -> list[World]:
    """The worlds with these clicks at the first ranks."""
    wanted = tuple(map(bool, clicks))
    return [world for world in worlds if world.clicks[: len(wanted)] == wanted]


def total(worlds: list[World]) -> float:
    """The probability of some worlds together."""
    return sum(world.probability for world in worlds)


def expected(worlds: list[World], value: Callable[[World], float]) -> float:
    """The mean of a number over worlds."""
    return sum(world.probability * value(world) for world in worlds) / total(worlds)


def expected_states(worlds: list[World], state: str) -> list[float]:
    """The probability of a hidden state at each rank."""
    return [
        expected(worlds, lambda world, rank=rank: getattr(world, state)[rank]) for rank in range(len(worlds[0].clicks))
    ]


def click_chances(worlds: list[World], clicks: Sequence[object] | None = None) -> list[float]:
    """The probability of a click at each rank: given the clicks above, or knowing none."""
    ranks = range(len(worlds[0].clicks))
    above = [worlds if clicks is None else with_clicks(worlds, clicks[:rank]) for rank in ranks]
    return [expected_states(above[rank], "clicks")[rank] for rank in ranks]
