"""Balanced interleaving: both rankings from the top, by turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.online.interleave.method import Coin, Drawn, Evidence, Method, ranks_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.online.interleave.method import Lists


class Balanced(Method):
    """Both rankings from the top by turns, a coin says who begins; the list's top always holds as much of one as of the other.

    It stops where a ranking is at its end, as published. Biased: of abcd and bcda, a user who clicks any one rank prefers
    the second by ½. Use it to repeat old experiments only.
    """

    name = "balanced"
    letter = "b"
    aliases = ("BI",)
    formula = "clicks within the top r of each ranking, r the better rank of the lowest clicked document"
    reference = "Joachims, Optimizing Search Engines using Clickthrough Data, KDD 2002"
    blind_user_prefers_neither = False  # the lists of a pair that differ by a shift show the same documents last
    fills = False

    def draw(self, lists: Lists, k: int, coin: Coin) -> Drawn:
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
        shown = tuple(documents)
        return Drawn(shown, Evidence(ranks_of(shown, (one, other))))

    def credit(self, evidence: Evidence, systems: int, clicks: Mapping[int, float]) -> list[float]:
        if not clicks:
            return [0.0] * systems
        top = min(rank for rank in evidence.marks[max(clicks)] if rank)
        clicked = [(evidence.marks[rank], worth) for rank, worth in clicks.items()]
        return [sum(worth for ranks, worth in clicked if 0 < ranks[system] <= top) for system in range(systems)]
