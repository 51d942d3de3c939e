"""Optimised interleaving: a linear program says how often each list is shown.

The program is solved once for each pair of rankings and kept; a draw from its solution takes no more than a coin. Of up to
2^k lists, no more than k + 1 have a chance above 0.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.errors import DataError
from cranfield.online.interleave.method import Coin, Drawn, Evidence, Method, ranks_of
from cranfield.parameters import Choice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.kernels.table import Floats
    from cranfield.online.interleave.method import Lists

MOST_LISTS = 20_000  # k = 14 of rankings that share nothing
EXACT = 1e-9  # how far a rank's expected credit may be from 0
KEPT = 4096  # plans
NOTHING = object()


class Optimised(Method):
    """Lists are shown as often as a linear program says: no rank favours a system, and clicks tell the two apart best.

    A list is allowed if each of its tops is made of a top of one ranking and a top of the other. Where no chances of the lists
    make every rank fair there is no solution, and an error says so: that is so of most pairs with credits=binary.
    """

    name = "optimised"
    letter = "o"
    aliases = ("optimized", "OI")
    formula = "max Σ p_L s_L, Σ p_L = 1, Σ p_L δ_L(i) = 0 at each rank i; δ: 1/rank_A - 1/rank_B, rank_B - rank_A, or its sign"
    reference = "Radlinski and Craswell, Optimized Interleaving for Online Retrieval Evaluation, WSDM 2013"
    credits = Choice("inverse", "what a click earns: by inverse rank, rank difference, or sign", "difference", "binary")

    def draw(self, lists: Lists, k: int, coin: Coin) -> Drawn:
        n = min(k, *map(len, lists))  # ranks that both have: the program is about these
        plan = planned(tuple(lists[0][:n]), tuple(lists[1][:n]), self.credits)
        drawn: Drawn = coin.choices(plan.lists, cum_weights=plan.sums)[0]
        return drawn if n == k else filled(drawn, lists, k)

    def credit(self, evidence: Evidence, systems: int, clicks: Mapping[int, float]) -> list[float]:
        [n] = evidence.more  # below rank n a ranking has run out
        gains = [worth * gain(evidence.marks[rank], n, self.credits) for rank, worth in clicks.items() if rank < n]
        return [sum((one for one in gains if one > 0), 0.0), -sum((one for one in gains if one < 0), 0.0)]

    def run_out(self, evidence: Evidence, systems: int) -> set[int]:
        [n] = evidence.more
        return set(range(n, len(evidence.marks)))


class Plan(NamedTuple):
    """The lists that have a chance, and the sums of their chances."""

    lists: tuple[Drawn, ...]
    sums: tuple[float, ...]


def gain(ranks: Sequence[int], n: int, how: str) -> float:
    """What a click on a document with these ranks earns the first system, or if below 0 the second."""
    a, b = (rank or n + 1 for rank in ranks)  # what is not there stands below the rest
    if how == "inverse":
        return 1 / a - 1 / b
    return float(b - a) if how == "difference" else float((b > a) - (b < a))


def filled(drawn: Drawn, lists: Lists, k: int) -> Drawn:
    """The list with what the rankings have left, the better rank first, for nobody's credit."""
    levels = zip_longest(*lists, fillvalue=NOTHING)
    every = dict.fromkeys([*drawn.documents, *(one for level in levels for one in level if one is not NOTHING)])
    documents = tuple(every)[:k]
    marks, more = drawn.evidence
    return Drawn(documents, Evidence((*marks, *[(0, 0)] * (len(documents) - len(marks))), more))


@lru_cache(maxsize=KEPT)
def planned(one: tuple[Any, ...], other: tuple[Any, ...], how: str) -> Plan:
    """The plan of two rankings of the same length, which is that of the list."""
    k = len(one)
    lists = allowed(one, other)
    every = tuple(dict.fromkeys((*one, *other)))
    number = {document: i for i, document in enumerate(every)}
    gains = np.array([gain(ranks, k, how) for ranks in ranks_of(every, (one, other))])
    table = gains[np.array([[number[document] for document in each] for each in lists], int)]
    chances = solved(table, sensitivity(table))
    if chances is None:
        advice = "credits=inverse or credits=difference" if how == "binary" else "team-draft"
        raise DataError(
            f"optimised interleaving with credits={how} has no solution for these two rankings at k={k}: no chances of the "
            f"{len(lists)} lists make every rank fair; use {advice}"
        )
    kept = np.flatnonzero(chances).tolist()
    drawn = tuple(Drawn(lists[i], Evidence(ranks_of(lists[i], (one, other)), (k,))) for i in kept)
    return Plan(drawn, tuple(accumulate(chances[kept].tolist())))


def allowed(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[Any, ...]]:
    """All lists of the rankings' length of which each document is the best of one or the other that is not there yet."""
    k = len(one)
    lists: dict[tuple[Any, ...], tuple[int, int]] = {(): (0, 0)}  # and how far both rankings are used up
    for _ in range(k):
        longer: dict[tuple[Any, ...], tuple[int, int]] = {}
        for documents, (i, j) in lists.items():
            while one[i] in documents:
                i += 1
            while other[j] in documents:
                j += 1
            longer[(*documents, one[i])] = longer[(*documents, other[j])] = (i, j)
        if len(longer) > MOST_LISTS:
            raise DataError(
                f"optimised interleaving of these two rankings at k={k} would weigh more than {MOST_LISTS:,} lists; use a "
                "smaller k (10 makes 1,024 at the most), or team-draft"
            )
        lists = longer
    return [*lists]


def sensitivity(gains: Floats) -> Floats:
    """How well each list tells two systems apart: the entropy of who wins a click at rank i with a chance as 1/i, ties apart."""
    by_rank = 1 / np.arange(1, gains.shape[1] + 1)
    first, second = (gains > 0) @ by_rank, (gains < 0) @ by_rank
    decided = first + second
    share = first / np.where(decided > 0, decided, 1.0)
    inside = np.where((first > 0) & (second > 0), share, 0.5)
    entropy = -inside * np.log2(inside) - (1 - inside) * np.log2(1 - inside)
    answer: Floats = np.where((first > 0) & (second > 0), entropy * decided, 0.0)
    return answer


def solved(gains: Floats, worth: Floats) -> Floats | None:
    """The chances of the lists (rows of `gains`, by rank), or None where none make every rank fair."""
    from scipy.optimize import linprog  # type: ignore[import-untyped, unused-ignore]

    fair = np.vstack([gains.T, np.ones(len(gains))])
    wanted = np.append(np.zeros(gains.shape[1]), 1.0)
    answer = linprog(-worth, A_eq=fair, b_eq=wanted, bounds=(0, 1), method="highs")
    if answer.x is None:
        return None
    # The solver is content with 1e-7; on the lists it has chosen, the equations can be solved to the last digit.
    chosen = np.flatnonzero(answer.x > 1e-10)
    exact, *_ = np.linalg.lstsq(fair[:, chosen], wanted, rcond=None)
    chances = np.zeros(len(gains))
    chances[chosen] = np.clip(exact, 0.0, None)
    chances /= chances.sum()
    return chances if np.abs(fair @ chances - wanted).max() < EXACT else None
