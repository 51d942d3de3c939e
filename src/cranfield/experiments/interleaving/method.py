"""Interleaving methods: draw a list from rankings, and credit clicks to their systems.

`credit` sees only the evidence that `draw` keeps of a list: a few whole numbers per rank, which fit into a token. Clicks
have a worth by rank, from 0. The class attributes of a method are promises. The most important: a user who clicks at random
prefers neither system, at any rank.

The base class comes first, then each method with the functions that only it needs. Optimised interleaving solves a linear
program once per pair of rankings and caches the solution; a draw from it takes one random number. At most k + 1 of up to
2^k lists have a probability above 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, takewhile, zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from cranfield.base import registry
from cranfield.base.errors import DataError
from cranfield.base.parameters import Choice, Flag, Real
from cranfield.base.registry import Registered, Registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.base.kernels.table import Floats

Lists = Sequence[Sequence[Any]]  # a system's documents, the best first, none twice
METHODS: Registry[type[InterleavingMethod]] = Registry(
    "interleaving method", "interleaving_methods", "cranfield.experiments.interleaving"
)


class Coin(Protocol):
    """A source of random choices: a `random.Random`, or in a test an object that tries every outcome."""

    def randrange(self, stop: int, /) -> int:
        """A random number from 0 to stop - 1, all equally likely."""
        ...

    def choices(
        self,
        population: Sequence[Any],
        weights: Sequence[float] | None = None,
        *,
        cum_weights: Sequence[float] | None = None,
        k: int = 1,
    ) -> list[Any]:
        """A random sample of a population with these weights."""
        ...


class ListEvidence(NamedTuple):
    """The evidence of a list for credit: equally many numbers (`marks`) per rank, and numbers about the whole list (`more`)."""

    marks: tuple[tuple[int, ...], ...]
    more: tuple[int, ...] = ()


class MixedList(NamedTuple):
    """A list to show, and the evidence for its credit."""

    documents: tuple[Any, ...]
    evidence: ListEvidence


class InterleavingMethod(Registered, ABC):
    """A way to mix several rankings into one list, and to infer from clicks which ranking is better.

    >>> str(METHODS.named("Probabilistic(tau=1)"))
    'probabilistic(tau=1)'
    """

    registry = METHODS
    letter: ClassVar[str]  # the method's letter in tokens; never change it
    formula: ClassVar[str]
    reference: ClassVar[str]
    many: ClassVar[bool] = False  # whether it takes more than two rankings
    blind_user_prefers_neither: ClassVar[bool] = True  # promise: random clicks favour no system
    fills: ClassVar[bool] = True  # promise: the list has k documents as long as any ranking has one left

    @abstractmethod
    def draw(self, lists: Lists, k: int, coin: Coin) -> MixedList:
        """A list of k documents, or fewer if there are not enough."""

    @abstractmethod
    def credit(self, evidence: ListEvidence, systems: int, clicks: Mapping[int, float]) -> list[float]:
        """The credit of each system for clicks: a mapping of ranks (from 0) to their worth (above 0)."""

    def run_out(self, evidence: ListEvidence, systems: int) -> set[int]:
        """The ranks, from 0, whose clicks earn nothing because a ranking had run out."""
        return set()


def ranks_by_document(ranking: Sequence[Any]) -> dict[Any, int]:
    """Each document's rank, from 1."""
    return dict(zip(ranking, range(1, len(ranking) + 1), strict=True))


def ranks_of(documents: Sequence[Any], lists: Lists) -> tuple[tuple[int, ...], ...]:
    """Per document, its rank in each list; 0 if a list lacks it."""
    tables = [ranks_by_document(ranking).get for ranking in lists]
    return tuple([tuple([rank(document, 0) for rank in tables]) for document in documents])


def catalogue() -> list[dict[str, Any]]:
    """The descriptions of all methods."""
    return [page(cls) for cls in METHODS.values()]


def page(cls: type[InterleavingMethod]) -> dict[str, Any]:
    """The description of a method, for listings and docs."""
    return registry.page(
        cls,
        rankings="two or more" if cls.many else "two",
        blind_user_prefers_neither=cls.blind_user_prefers_neither,
        fills=cls.fills,
    )


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
    """Whether a ranking may run out of documents before the lower rank, with the pair in its order or swapped."""
    between = [ranks for place, ranks in enumerate(marks[:lower]) if place != upper]
    pair = marks[upper], marks[lower]
    return any(
        sum(ranks[system] > 0 for ranks in between) + max(ranks[system] > 0 for ranks in pair) >= n
        for system, n in enumerate(lengths)
    )


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
