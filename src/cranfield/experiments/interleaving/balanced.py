"""Balanced interleaving: take documents from both rankings by turns, from the top."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.experiments.interleaving.method import Coin, InterleavingMethod, ListEvidence, Lists, MixedList, ranks_of

if TYPE_CHECKING:
    from collections.abc import Mapping


class Balanced(InterleavingMethod):
    """Takes documents from both rankings by turns, from the top; a coin decides which ranking begins.

    The list ends where a ranking ends, as published. The method is biased: for abcd and bcda, a user who clicks any one
    rank prefers the second by ½. Use it only to repeat old experiments.
    """

    name = "balanced"
    letter = "b"
    aliases = ("BI",)
    formula = "clicks within the top r of each ranking, r the better rank of the lowest clicked document"
    reference = "Joachims, Optimizing Search Engines using Clickthrough Data, KDD 2002"
    blind_user_prefers_neither = False  # lists of rankings that differ by a shift end with the same documents
    fills = False

    def draw(self, lists: Lists, k: int, coin: Coin) -> MixedList:
        one, other = lists[0][:k], lists[1][:k]
        first = coin.randrange(2) == 0
        documents: dict[Any, None] = {}
        i = j = 0
        while len(documents) < k and i < len(one) and j < len(other):
            if i < j or (i == j and first):
                documents[one[i]] = None
                i += 1
            else:
                documents[other[j]] = None
                j += 1
        order = tuple(documents)
        return MixedList(order, ListEvidence(ranks_of(order, (one, other))))

    def credit(self, evidence: ListEvidence, systems: int, clicks: Mapping[int, float]) -> list[float]:
        if not clicks:
            return [0.0] * systems
        top = min(rank for rank in evidence.marks[max(clicks)] if rank)
        clicked = [(evidence.marks[rank], worth) for rank, worth in clicks.items()]
        return [sum(worth for ranks, worth in clicked if 0 < ranks[system] <= top) for system in range(systems)]
