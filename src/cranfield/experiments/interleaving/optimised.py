"""Optimised interleaving: a linear program decides how often each list is shown.

The program is solved once per pair of rankings and cached; a draw from its solution takes one random number. At most
k + 1 of up to 2^k lists have a probability above 0.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import Choice
from cranfield.experiments.interleaving.method import Coin, InterleavingMethod, ListEvidence, Lists, MixedList, ranks_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.base.kernels.table import Floats

MOST_LISTS = 20_000  # k = 14 for rankings without common documents
EXACT = 1e-9  # tolerance for the expected credit of a rank, which must be 0
CACHE_SIZE = 4096  # pairs of rankings
NOTHING = object()


class Optimised(InterleavingMethod):
    """A linear program decides how often each list is shown: no rank favours a system, and clicks discriminate best.

    A list is allowed if each of its documents is the best remaining one of either ranking. If no probabilities of the lists make
    every rank fair, there is no solution and an error says so; with credits=binary that is the case for most pairs.
    """

    name = "optimised"
    letter = "o"
    aliases = ("optimized", "OI")
    formula = "max Σ p_L s_L, Σ p_L = 1, Σ p_L δ_L(i) = 0 at each rank i; δ: 1/rank_A - 1/rank_B, rank_B - rank_A, or its sign"
    reference = "Radlinski and Craswell, Optimized Interleaving for Online Retrieval Evaluation, WSDM 2013"
    credits = Choice("inverse", "what a click earns: by inverse rank, rank difference, or sign", "difference", "binary")

    def draw(self, lists: Lists, k: int, coin: Coin) -> MixedList:
        n = min(k, *map(len, lists))  # ranks that both have: the program is about these
        distribution = list_distribution(tuple(lists[0][:n]), tuple(lists[1][:n]), self.credits)
        mixed: MixedList = coin.choices(distribution.lists, cum_weights=distribution.sums)[0]
        return mixed if n == k else fill_up(mixed, lists, k)

    def credit(self, evidence: ListEvidence, systems: int, clicks: Mapping[int, float]) -> list[float]:
        [n] = evidence.more  # below rank n a ranking has run out
        gains = [worth * gain(evidence.marks[rank], n, self.credits) for rank, worth in clicks.items() if rank < n]
        return [sum((one for one in gains if one > 0), 0.0), -sum((one for one in gains if one < 0), 0.0)]

    def run_out(self, evidence: ListEvidence, systems: int) -> set[int]:
        [n] = evidence.more
        return set(range(n, len(evidence.marks)))


class ListDistribution(NamedTuple):
    """The lists with a probability above 0, and their cumulative probabilities."""

    lists: tuple[MixedList, ...]
    sums: tuple[float, ...]


def gain(ranks: Sequence[int], n: int, how: str) -> float:
    """The credit of a click on a document with these ranks: above 0 for the first system, below 0 for the second."""
    a, b = (rank or n + 1 for rank in ranks)  # a missing document ranks below the rest
    if how == "inverse":
        return 1 / a - 1 / b
    return float(b - a) if how == "difference" else float((b > a) - (b < a))


def fill_up(mixed: MixedList, lists: Lists, k: int) -> MixedList:
    """The list, filled up with the rankings' remaining documents by rank; these earn no credit."""
    levels = zip_longest(*lists, fillvalue=NOTHING)
    every = dict.fromkeys([*mixed.documents, *(one for level in levels for one in level if one is not NOTHING)])
    documents = tuple(every)[:k]
    marks, more = mixed.evidence
    return MixedList(documents, ListEvidence((*marks, *[(0, 0)] * (len(documents) - len(marks))), more))


@lru_cache(maxsize=CACHE_SIZE)
def list_distribution(one: tuple[Any, ...], other: tuple[Any, ...], how: str) -> ListDistribution:
    """The distribution over the lists of two rankings; rankings and lists have the same length."""
    k = len(one)
    lists = allowed_lists(one, other)
    every = tuple(dict.fromkeys((*one, *other)))
    number = {document: i for i, document in enumerate(every)}
    gains = np.array([gain(ranks, k, how) for ranks in ranks_of(every, (one, other))])
    table = gains[np.array([[number[document] for document in each] for each in lists], int)]
    chances = solve_chances(table, sensitivity(table))
    if chances is None:
        advice = "credits=inverse or credits=difference" if how == "binary" else "team-draft"
        raise DataError(
            f"optimised interleaving with credits={how} has no solution for these two rankings at k={k}: no probabilities of "
            f"the {len(lists)} lists make every rank fair; use {advice}"
        )
    possible = np.flatnonzero(chances).tolist()
    mixed = tuple(MixedList(lists[i], ListEvidence(ranks_of(lists[i], (one, other)), (k,))) for i in possible)
    return ListDistribution(mixed, tuple(accumulate(chances[possible].tolist())))


def allowed_lists(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[Any, ...]]:
    """All lists in which each document is the best remaining one of either ranking; as long as the rankings."""
    k = len(one)
    lists: dict[tuple[Any, ...], tuple[int, int]] = {(): (0, 0)}  # with the next position in both rankings
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
                f"optimised interleaving of these two rankings at k={k} has more than {MOST_LISTS:,} lists; use a "
                "smaller k (10 makes at most 1,024), or team-draft"
            )
        lists = longer
    return [*lists]


def sensitivity(gains: Floats) -> Floats:
    """The sensitivity of each list: the entropy of the winner of one click, which is at rank i with weight 1/i."""
    by_rank = 1 / np.arange(1, gains.shape[1] + 1)
    first, second = (gains > 0) @ by_rank, (gains < 0) @ by_rank
    decided = first + second
    share = first / np.where(decided > 0, decided, 1.0)
    inside = np.where((first > 0) & (second > 0), share, 0.5)
    entropy = -inside * np.log2(inside) - (1 - inside) * np.log2(1 - inside)
    answer: Floats = np.where((first > 0) & (second > 0), entropy * decided, 0.0)
    return answer


def solve_chances(gains: Floats, worth: Floats) -> Floats | None:
    """The probabilities of the lists (rows of `gains`, by rank), or None if none make every rank fair."""
    from scipy.optimize import linprog  # type: ignore[import-untyped, unused-ignore]

    fair = np.vstack([gains.T, np.ones(len(gains))])
    targets = np.append(np.zeros(gains.shape[1]), 1.0)
    answer = linprog(-worth, A_eq=fair, b_eq=targets, bounds=(0, 1), method="highs")
    if answer.x is None:
        return None
    # The solver stops at 1e-7; for the lists it has selected, the equations can be solved to the last digit.
    support = np.flatnonzero(answer.x > 1e-10)
    exact, *_ = np.linalg.lstsq(fair[:, support], targets, rcond=None)
    chances = np.zeros(len(gains))
    chances[support] = np.clip(exact, 0.0, None)
    chances /= chances.sum()
    return chances if np.abs(fair @ chances - targets).max() < EXACT else None
