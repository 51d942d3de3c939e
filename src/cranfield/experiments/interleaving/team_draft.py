"""Team draft interleaving: systems pick documents by turns, in random order within each round."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

from cranfield.base.parameters import Flag
from cranfield.experiments.interleaving.method import Coin, InterleavingMethod, ListEvidence, Lists, MixedList

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


ORDERS = ((0, 1), (1, 0))  # of two


class TeamDraft(InterleavingMethod):
    """In each round, every system in random order adds its best document that is not yet in the list to its team.

    A click counts for the team of the document. If all rankings begin with the same documents, clicks on these do not
    count: they carry no information, only noise.
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

    def draw(self, lists: Lists, k: int, coin: Coin) -> MixedList:
        tops = [ranking[:k] for ranking in lists]
        short = [set(top) for top in tops if len(top) < k]  # remaining documents of rankings that may run out
        credited = 0 if self.shared else shared_top(tops)  # the first rank whose clicks count
        documents: dict[Any, None] = {}
        teams: list[tuple[int]] = []
        nexts = [0] * len(tops)
        while len(documents) < k and any(map(int.__lt__, nexts, map(len, tops))):
            # A pick earns credit only if it is certain in every order of the round: a pick that depends on the order
            # would favour the shorter ranking.
            sure = len(documents) + (min(map(len, short)) if short else k)
            for system in shuffled(len(tops), coin):
                top, at = tops[system], nexts[system]
                while at < len(top) and top[at] in documents:
                    at += 1
                nexts[system] = at
                if at == len(top):
                    continue
                if len(documents) == k:
                    break
                teams.append((system + 1 if credited <= len(documents) < sure else 0,))
                documents[top[at]] = None
                for left in short:
                    left.discard(top[at])
        # where credit begins separates a shared top from a ranking that ran out
        more = () if all(team for [team] in teams) else (credited,)
        return MixedList(tuple(documents), ListEvidence(tuple(teams), more))

    def credit(self, evidence: ListEvidence, systems: int, clicks: Mapping[int, float]) -> list[float]:
        credits = [0.0] * systems
        for rank, worth in clicks.items():
            [team] = evidence.marks[rank]
            if team:
                credits[team - 1] += worth
        return credits

    def run_out(self, evidence: ListEvidence, systems: int) -> set[int]:
        teams = [team for [team] in evidence.marks]
        # tokens of earlier versions do not say where credit begins: ranks above the first team are a shared top
        [start] = evidence.more or [next((rank for rank, team in enumerate(teams) if team), len(teams))]
        return {rank for rank, team in enumerate(teams) if not team and rank >= start}


def shuffled(n: int, coin: Coin) -> Sequence[int]:
    """The numbers 0 to n - 1 in random order."""
    if n == 2:
        return ORDERS[coin.randrange(2)]
    rest = list(range(n))
    return [rest.pop(coin.randrange(len(rest))) for _ in range(n)]


def shared_top(lists: Sequence[Sequence[Any]]) -> int:
    """The number of documents with which all lists begin alike.

    >>> shared_top(["abcd", "abdc"])
    2
    """
    return len([*takewhile(lambda documents: len({*documents}) == 1, zip(*lists, strict=False))])
