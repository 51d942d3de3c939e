"""Optimised interleaving: a linear program says how often each list is shown.

The program is solved once for each pair of rankings and kept; a draw from its solution takes no more than a coin. Of up to
2^k lists, no more than k + 1 have a chance above 0.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.errors import DataError
from cranfield.online.interleave.method import Coin, Drawn, Evidence, Method, ran_out, ranks_of, scored
from cranfield.parameters import Choice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.kernels.table import Floats
    from cranfield.online.interleave.method import Lists

MOST_LISTS = 20_000  # k = 14 of rankings that share nothing
EXACT = 1e-9  # how far a rank's expected credit may be from 0
KEPT = 4096  # plans


class Optimised(Method):
    """Lists are shown as often as a linear program says: no rank favours a system, and clicks tell the two apart best.

    A list is allowed if each of its tops is made of a top of one ranking and a top of the other. Where no chances of the lists
    make every rank fair there is no solution, and an error says so: that is so of most pairs with credit=binary.
    """

    name = "optimised"
    letter = "o"
    aliases = ("optimized", "OI")
    formula = (
        "max Σ p_L s_L with Σ p_L = 1 and Σ p_L δ_L(i) = 0 at each rank i; δ: rank_B - rank_A, 1/rank_A - 1/rank_B, or its sign"
    )
    reference = "Radlinski and Craswell, Optimized Interleaving for Online Retrieval Evaluation, WSDM 2013"
    credits = Choice("inverse", "what a click earns: by inverse rank, rank difference, or sign", "difference", "binary")

    def draw(self, lists: Lists, k: int, coin: Coin) -> Drawn:
        plan = planned(tuple(lists[0][:k]), tuple(lists[1][:k]), k, self.credits)
        drawn: Drawn = coin.choices(plan.lists, cum_weights=plan.sums)[0]
        return drawn

    def credit(self, evidence: Evidence, systems: int, clicks: Mapping[int, float]) -> list[float]:
        rows = [(max(gain, 0.0), max(-gain, 0.0)) for gain in gains(evidence, self.credits)]
        return scored(rows, systems, clicks)


class Plan(NamedTuple):
    """The lists that have a chance, and the sums of their chances."""

    lists: tuple[Drawn, ...]
    sums: tuple[float, ...]


def gains(evidence: Evidence, how: str) -> list[float]:
    """What a click at each rank earns the first system, or if below 0 the second; nothing where a ranking has run out."""
    one, other = evidence.more
    fair = ran_out(evidence.marks, evidence.more)
    ranks = [(a or one + 1, b or other + 1) for a, b in evidence.marks[:fair]]  # what is not there stands below the rest
    if how == "inverse":
        earned = [1 / a - 1 / b for a, b in ranks]
    elif how == "difference":
        earned = [float(b - a) for a, b in ranks]
    else:
        earned = [float((b > a) - (b < a)) for a, b in ranks]
    return earned + [0.0] * (len(evidence.marks) - fair)


@lru_cache(maxsize=KEPT)
def planned(one: tuple[Any, ...], other: tuple[Any, ...], k: int, how: str) -> Plan:
    """The plan of two rankings."""
    lists = [
        Drawn(documents, Evidence(ranks_of(documents, (one, other)), (len(one), len(other))))
        for documents in allowed(one, other, k)
    ]
    table = np.array([gains(drawn.evidence, how) for drawn in lists]).reshape(len(lists), -1)
    chances = solved(table, np.array([sensitivity(row) for row in table.tolist()]))
    if chances is None:
        advice = "credits=inverse or credits=difference" if how == "binary" else "team-draft"
        raise DataError(
            f"optimised interleaving with credits={how} has no solution for these two rankings at k={k}: no chances of the "
            f"{len(lists)} lists make every rank fair; use {advice}"
        )
    kept = np.flatnonzero(chances)
    return Plan(tuple(lists[i] for i in kept), tuple(accumulate(chances[kept].tolist())))


def allowed(one: Sequence[Any], other: Sequence[Any], k: int) -> list[tuple[Any, ...]]:
    """All lists of which each document is the best of one ranking or the other that is not there yet."""
    lists: list[tuple[tuple[Any, ...], int, int]] = [((), 0, 0)]
    for _ in range(min(k, len({*one, *other}))):
        longer: dict[tuple[Any, ...], tuple[int, int]] = {}
        for documents, i, j in lists:
            while i < len(one) and one[i] in documents:
                i += 1
            while j < len(other) and other[j] in documents:
                j += 1
            for following in (*one[i : i + 1], *other[j : j + 1]):
                longer[(*documents, following)] = (i, j)
        if len(longer) > MOST_LISTS:
            raise DataError(
                f"optimised interleaving of these two rankings at k={k} would weigh more than {MOST_LISTS:,} lists; use a "
                "smaller k (10 makes 1,024 at the most), or team-draft"
            )
        lists = [(documents, *at) for documents, at in longer.items()]
    return [documents for documents, _, _ in lists]


def sensitivity(gain: Sequence[float]) -> float:
    """How well a list tells two systems apart: the entropy of who wins a click at rank i with a chance as 1/i, ties apart."""
    by_rank = [1 / rank for rank in range(1, len(gain) + 1)]
    first = sum(chance for chance, one in zip(by_rank, gain, strict=True) if one > 0)
    second = sum(chance for chance, one in zip(by_rank, gain, strict=True) if one < 0)
    if not first or not second:
        return 0.0
    share = first / (first + second)
    entropy = -share * math.log2(share) - (1 - share) * math.log2(1 - share)
    return entropy * (first + second) / sum(by_rank)


def solved(gain: Floats, worth: Floats) -> Floats | None:
    """The chances of the lists (rows of `gain`, by rank), or None where none make every rank fair."""
    from scipy.optimize import linprog

    fair = np.vstack([gain.T, np.ones(len(gain))])
    wanted = np.append(np.zeros(gain.shape[1]), 1.0)
    answer = linprog(-worth, A_eq=fair, b_eq=wanted, bounds=(0, 1), method="highs")
    if answer.x is None:
        return None
    # The solver is content with 1e-7; on the lists it has chosen, the equations can be solved to the last digit.
    chosen = np.flatnonzero(answer.x > 1e-10)
    exact, *_ = np.linalg.lstsq(fair[:, chosen], wanted, rcond=None)
    chances = np.zeros(len(gain))
    chances[chosen] = np.clip(exact, 0.0, None)
    chances /= chances.sum()
    return chances if np.abs(fair @ chances - wanted).max() < EXACT else None
