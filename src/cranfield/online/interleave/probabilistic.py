"""Probabilistic interleaving: every document may come next, the better its rank the likelier."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cranfield.online.interleave.method import Coin, Drawn, Evidence, Method, places, scored
from cranfield.parameters import Real

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.online.interleave.method import Lists


class Probabilistic(Method):
    """At each rank a system is drawn, and from it a document with a chance of 1 / rank^τ among those not yet shown.

    A click earns every system the chance that it was the one drawn, given the list: the mean over all ways in which the
    list can have come about, at a cost linear in k. More lists are possible than with team draft, also bad ones.
    """

    name = "probabilistic"
    letter = "p"
    aliases = ("PI", "PM")
    formula = "Σ over clicks of P(system | list) = P_s(d) / Σ P_s'(d), P_s(d) = rank_s(d)^-τ / Σ over documents not yet shown"
    reference = (
        "Hofmann, Whiteson and de Rijke, A Probabilistic Method for Inferring Preferences from Clicks, CIKM 2011; for many: "
        "Schuth et al., Probabilistic Multileave for Online Retrieval Evaluation, SIGIR 2015"
    )
    many = True
    tau = Real(3, "how fast a document's chance falls with its rank", low=0, high=30)

    def draw(self, lists: Lists, k: int, coin: Coin) -> Drawn:
        tables = [places(ranking) for ranking in lists]
        weights = [list(chances(len(ranking), self.tau)) for ranking in lists]
        left = [*map(len, lists)]
        documents: list[Any] = []
        marks = []
        while len(documents) < k and any(left):
            able = [system for system, n in enumerate(left) if n]
            system = able[coin.randrange(len(able))] if len(able) > 1 else able[0]
            document = coin.choices(lists[system], weights[system])[0]
            documents.append(document)
            ranks = tuple([table.get(document, 0) for table in tables])
            marks.append(ranks)
            for number, rank in enumerate(ranks):
                if rank:
                    weights[number][rank - 1] = 0.0
                    left[number] -= 1
        return Drawn(tuple(documents), Evidence(tuple(marks), tuple(map(len, lists))))

    def credit(self, evidence: Evidence, systems: int, clicks: Mapping[int, float]) -> list[float]:
        return scored(self.shares(evidence), systems, clicks)

    def shares(self, evidence: Evidence) -> list[list[float]]:
        """Of each rank, the chance of each system to have been the one drawn; nothing where one had no document left."""
        chance = [(0.0, *chances(n, self.tau)) for n in evidence.more]  # by rank; none of a document that is not there
        rows: list[list[float]] = []
        rest = [
            sum(chance[system][rank] for rank in set(range(1, n + 1)).difference(ranks[system] for ranks in evidence.marks))
            for system, n in enumerate(evidence.more)
        ]
        for ranks in reversed(evidence.marks):  # sums from the last rank up: differences would lose digits
            own = [one[rank] for one, rank in zip(chance, ranks, strict=True)]
            rest = [a + b for a, b in zip(rest, own, strict=True)]
            if not all(rest):
                rows.append([0.0] * len(own))
                continue
            drawn = [a / b for a, b in zip(own, rest, strict=True)]
            total = sum(drawn)
            rows.append([one / total for one in drawn])
        return rows[::-1]


@lru_cache(maxsize=1024)
def chances(n: int, tau: float) -> Sequence[float]:
    """What each rank of n weighs."""
    return tuple([rank**-tau for rank in range(1, n + 1)])
