"""Team draft: captains pick by turns, as for a match in the school yard."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

from cranfield.online.interleave.method import Coin, Drawn, Evidence, Method
from cranfield.parameters import Flag

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.online.interleave.method import Lists


class TeamDraft(Method):
    """In each round every system, in an order left to chance, adds its best document that is not there yet to its team.

    A click counts for the team. Clicks on the top that all rankings share count for nobody: they tell nothing and add noise.
    """

    name = "team-draft"
    letter = "t"
    aliases = ("TDI", "TDM")
    formula = "clicks on documents of each team"
    reference = (
        "Radlinski, Kurup and Joachims, How Does Clickthrough Data Reflect Retrieval Quality?, CIKM 2008; for many: "
        "Schuth et al., Multileaved Comparisons for Fast Online Evaluation, CIKM 2014"
    )
    many = True
    shared = Flag("whether clicks on the top that all rankings share count for the team that drew it")

    def draw(self, lists: Lists, k: int, coin: Coin) -> Drawn:
        tops = [ranking[:k] for ranking in lists]
        members = [set(top) for top in tops]
        credited = 0 if self.shared else shared_top(tops)  # the first rank whose clicks count
        documents: dict[Any, None] = {}
        teams: list[tuple[int]] = []
        nexts = [iter(top) for top in tops]
        while len(documents) < k:
            # Whoever picks n-th must be sure of a pick in every order of the round; a pick that depends on the order
            # would favour the shorter ranking.
            sure = min([len(one) for one in members])
            before = len(documents)
            waiting = list(range(len(tops)))
            while waiting and len(documents) < k:
                system = waiting.pop(coin.randrange(len(waiting)) if len(waiting) > 1 else 0)
                if not members[system]:
                    continue
                document = next(one for one in nexts[system] if one not in documents)
                counts = len(documents) - before < sure and len(documents) >= credited
                teams.append((system + 1 if counts else 0,))
                documents[document] = None
                for one in members:
                    one.discard(document)
            if len(documents) == before:
                break
        return Drawn(tuple(documents), Evidence(tuple(teams)))

    def credit(self, evidence: Evidence, systems: int, clicks: Mapping[int, float]) -> list[float]:
        credits = [0.0] * systems
        for rank, worth in clicks.items():
            [team] = evidence.marks[rank]
            if team:
                credits[team - 1] += worth
        return credits


def shared_top(lists: Sequence[Sequence[Any]]) -> int:
    """How many documents all lists begin with alike.

    >>> shared_top(["abcd", "abdc"])
    2
    """
    first = lists[0]
    return sum(1 for _ in takewhile(lambda row: row.count(row[0]) == len(row), zip(first, *lists[1:], strict=False)))
