"""Pairwise preference multileaving: clicks prefer documents over others, and rankings earn credit if they agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.experiments.interleaving.method import Coin, InterleavingMethod, ListEvidence, Lists, MixedList, ranks_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class PairwisePreference(InterleavingMethod):
    """Rank i shows any document among the first i of some ranking; clicks prefer documents over those passed over.

    A document is passed over if it is above the lowest click or right below it. A pair counts if both documents could have
    been at the upper rank, weighted by one over that probability. A ranking earns the worth of the click if it ranks the
    clicked document above the other, half of it if it has neither. Sums are not divided by the number of pairs, which would
    be biased.
    """

    name = "pairwise-preference"
    letter = "w"
    aliases = ("PPM",)
    formula = (
        "Σ over pairs (clicked, passed over) of [ranked so] / Π (1 - 1 / candidates at x), x between their best ranks"
    )
    reference = (
        "Oosterhuis and de Rijke, Sensitive and Scalable Online Evaluation with Theoretical Guarantees, CIKM 2017"
    )
    many = True

    def draw(self, lists: Lists, k: int, coin: Coin) -> MixedList:
        documents: list[Any] = []
        candidates: dict[Any, None] = {}
        sizes = []
        reached: set[Any] = set()
        for rank in range(k):
            for ranking in lists:
                if rank < len(ranking) and ranking[rank] not in reached:
                    candidates[ranking[rank]] = None
                    reached.add(ranking[rank])
            if not candidates:
                break
            sizes.append(len(candidates))
            document = [*candidates][coin.randrange(len(candidates))]
            del candidates[document]
            documents.append(document)
        return MixedList(tuple(documents), ListEvidence(ranks_of(documents, lists), (*map(len, lists), *sizes)))

    def credit(self, evidence: ListEvidence, systems: int, clicks: Mapping[int, float]) -> list[float]:
        lengths, sizes = evidence.more[:systems], evidence.more[systems:]
        credits = [0.0] * systems
        for upper, lower, clicked in _pairs(len(evidence.marks), clicks):
            chance = _chance(evidence.marks, sizes, upper, lower)
            if not chance or _runs_out(evidence.marks, lengths, upper, lower):
                continue
            better, worse = evidence.marks[clicked], evidence.marks[upper + lower - clicked]
            for system, (one, other) in enumerate(zip(better, worse, strict=True)):
                agrees = 0.5 if one == other else float(one and (not other or one < other))  # equal: it has neither
                credits[system] += clicks[clicked] * agrees / chance
        return credits

    def run_out(self, evidence: ListEvidence, systems: int) -> set[int]:
        marks, lengths = evidence.marks, evidence.more[:systems]
        if not all(lengths):
            return set(range(len(marks)))
        ranks = set()
        for rank in range(len(marks)):
            pairs = [(upper, rank) for upper in range(rank)] + [(rank, rank + 1)] * (rank + 1 < len(marks))
            if pairs and all(_runs_out(marks, lengths, upper, lower) for upper, lower in pairs):
                ranks.add(rank)
        return ranks


def _pairs(length: int, clicks: Mapping[int, float]) -> Iterator[tuple[int, int, int]]:
    """Pairs of a clicked document and one passed over: upper rank, lower rank, clicked rank."""
    last = max(clicks, default=-1)
    passed = [rank for rank in range(min(last + 2, length)) if rank not in clicks]
    return ((min(one, other), max(one, other), one) for one in clicks for other in passed)


def _chance(marks: Sequence[Sequence[int]], sizes: Sequence[int], upper: int, lower: int) -> float:
    """The probability that neither document was drawn before both were candidates; 0 if the upper rank excludes one."""
    first, second = sorted(min(rank for rank in marks[place] if rank) - 1 for place in (upper, lower))
    chance = float(second <= upper)
    for candidates in sizes[first:second] if chance else ():
        chance *= 1 - 1 / candidates
    return chance


def _runs_out(marks: Sequence[Sequence[int]], lengths: Sequence[int], upper: int, lower: int) -> bool:
    """Whether a ranking has no document left at the lower rank, with the pair in this or in swapped order."""
    between = [ranks for place, ranks in enumerate(marks[:lower]) if place != upper]
    pair = marks[upper], marks[lower]
    return any(
        sum(ranks[system] > 0 for ranks in between) + max(ranks[system] > 0 for ranks in pair) >= n
        for system, n in enumerate(lengths)
    )
