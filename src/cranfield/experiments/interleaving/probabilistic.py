"""Probabilistic interleaving: every document may come next; a better rank makes it more likely."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from cranfield.base.parameters import Real
from cranfield.experiments.interleaving.method import InterleavingMethod, ListEvidence, MixedList, ranks_by_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.experiments.interleaving.method import Coin, Lists


class Probabilistic(InterleavingMethod):
    """At each rank, draws a system and from it a document not yet shown, with a probability proportional to 1 / rank^τ.

    A click gives each system the probability, given the list, that the document was drawn from this system. That is the
    mean over all ways to draw the list, at a cost linear in k. More lists are possible than with team draft, and some are
    bad.
    """

    name = "probabilistic"
    letter = "p"
    aliases = ("PI", "PM")
    formula = (
        "Σ over clicks of P(system | list) = P_s(d) / Σ P_s'(d), P_s(d) = rank_s(d)^-τ / Σ over documents not yet shown"
    )
    reference = (
        "Hofmann, Whiteson and de Rijke, A Probabilistic Method for Inferring Preferences from Clicks, CIKM 2011; for many: "
        "Schuth et al., Probabilistic Multileave for Online Retrieval Evaluation, SIGIR 2015"
    )
    many = True
    tau = Real(3, "how fast a document's chance falls with its rank", low=0, high=30)

    def draw(self, lists: Lists, k: int, coin: Coin) -> MixedList:
        tables = [ranks_by_document(ranking) for ranking in lists]
        weights = [list(chances(len(ranking), self.tau)) for ranking in lists]
        left = [*map(len, lists)]
        documents: list[Any] = []
        marks = []
        systems = range(len(lists))
        while len(documents) < k:
            able = systems if all(left) else [system for system in systems if left[system]]
            if not able:
                break
            system = able[coin.randrange(len(able))]
            document = coin.choices(lists[system], weights[system])[0]
            documents.append(document)
            ranks = tuple([table.get(document, 0) for table in tables])
            marks.append(ranks)
            for number, rank in enumerate(ranks):
                if rank:
                    weights[number][rank - 1] = 0.0
                    left[number] -= 1
        return MixedList(tuple(documents), ListEvidence(tuple(marks), tuple(map(len, lists))))

    def credit(self, evidence: ListEvidence, systems: int, clicks: Mapping[int, float]) -> list[float]:
        chance, rest = self._weights(evidence)
        credits = [0.0] * systems
        for rank, worth in clicks.items():
            if all(left[rank] for left in rest):  # none had run out
                odds = [own[rank] / left[rank] for own, left in zip(chance, rest, strict=True)]
                total = sum(odds)
                credits = [one + worth * share / total for one, share in zip(credits, odds, strict=True)]
        return credits

    def run_out(self, evidence: ListEvidence, systems: int) -> set[int]:
        _, rest = self._weights(evidence)
        return {rank for rank in range(len(evidence.marks)) if not all(left[rank] for left in rest)}

    def _weights(self, evidence: ListEvidence) -> tuple[list[list[float]], list[list[float]]]:
        """Per system and rank, the weight of the document there, and the sum over documents not yet shown."""
        chance, rest = [], []
        for n, ranks in zip(evidence.more, zip(*evidence.marks, strict=True), strict=False):
            weights = (0.0, *chances(n, self.tau))  # by rank; 0 for a missing document
            unseen = sum([weights[rank] for rank in range(1, n + 1) if rank not in ranks])
            own = [weights[rank] for rank in ranks]
            chance.append(own)
            # summing small terms first keeps precision
            rest.append([*accumulate(reversed(own), initial=unseen)][:0:-1])
        return chance, rest


@lru_cache(maxsize=1024)
def chances(n: int, tau: float) -> Sequence[float]:
    """The weights of n ranks: rank^-tau."""
    return tuple([rank**-tau for rank in range(1, n + 1)])
