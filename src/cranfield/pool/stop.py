"""When to stop judging: how many relevant documents are still unfound, and what going on would cost.

Two ways to know. A sample with known probabilities estimates the total whatever the order of judging. The order itself
tells something too: where a strategy brings up relevant documents first, they turn up no faster later than of late. So
what is left is bounded from above by the share among the labels made last, and not from below, as the rate may fall to
nothing any moment. What is likely is read from the curve: the rate falls as a power of the effort (a Poisson process, as
in reliability growth).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.answer import Lines, Rows, Table, plain
from cranfield.errors import ConventionError
from cranfield.formats.judgments import latest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from cranfield.answer import Layout, Part
    from cranfield.formats.judgments import Judgment
    from cranfield.formats.pools import Item


EARLY = 10  # labels before which nothing is said
RECENT = 0.5  # the share of the labels, the last, that speaks for what is to come
SELDOM = ": fewer than chance allows, do not stop by it"
CLUMP = 3.0  # relevant documents come in clumps (copies, one run's good stretch): so many labels say as much as one


@dataclass(frozen=True)
class Stopping:
    """What is known of one topic: labels so far, the relevant documents still unfound, and whether to stop."""

    topic: str
    size: int  # documents in the pool
    judged: int
    relevant: int
    unfound: float
    low: float
    high: float
    method: str  # "sample", "curve", or "complete"
    stop: bool
    reason: str

    @property
    def recall(self) -> float:
        """The share found, by the estimate."""
        total = self.relevant + self.unfound
        return self.relevant / total if total else 1.0

    @property
    def recall_low(self) -> float:
        """The share found if as many are unfound as the interval allows."""
        total = self.relevant + self.high
        return self.relevant / total if total else 1.0


@dataclass(frozen=True, repr=False)
class Stoppings(Rows[Stopping]):
    """All topics of a pool; `seconds` and `price` are what a judgment takes and costs, where that is known."""

    rows: list[Stopping]
    seconds: float | None = None
    price: float | None = None
    hindsight: tuple[int, int] = (0, 0)  # topics whose bound at half of their labels held since, of so many
    level: float = 0.95

    def content(self, how: Layout) -> Iterator[Part]:
        head = "topic pool judged relevant unfound low high recall".split()
        rows = []
        for each in self.rows:
            counts = each.size, each.judged, each.relevant
            estimates = [f"{value:.1f}" for value in (each.unfound, each.low, each.high)]
            shares = [f"{value:.3f}" for value in (each.recall, each.recall_low)]
            verdict = each.method, "yes" if each.stop else "no", each.reason
            rows.append([each.topic, *map(str, counts), *estimates, *shares, *verdict])
        yield Lines([self._effort(), *([self._measured()] if self.hindsight[1] else [])])
        spare = () if how.told else (head.index("judged"), len(head) + 1, head.index("low"), head.index("high"))
        yield Table([*head, "at least", "by", "stop", "why"], rows, tail=True, spare=spare)

    def _measured(self) -> str:
        from scipy.stats import binom  # type: ignore[import-untyped, unused-ignore]

        held, tried = self.hindsight
        count = f"the upper bound held for {held} of {tried} topics ({self.level:.0%} are claimed)"
        seldom = binom.cdf(held, tried, self.level) < 0.01
        return f"measured here: at half of their labels {count}{SELDOM if seldom else ''}"

    def _effort(self) -> str:
        open_ = [each for each in self.rows if not each.stop]
        judged, left = sum(each.judged for each in self.rows), sum(each.size - each.judged for each in open_)
        stopped = len(self.rows) - len(open_)
        effort = f"{stopped} of {len(self.rows)} topics can stop; {judged:,} judged, up to {left:,} to go"
        if self.seconds is not None:
            spent, to_come = judged * self.seconds / 3600, left * self.seconds / 3600
            effort += f"; {spent:,.1f} hours spent, up to {to_come:,.1f} to come"
        if self.price is not None:
            effort += f"; {judged * self.price:,.2f} spent, up to {left * self.price:,.2f} to come"
        return effort

    def plain(self, how: Layout) -> Any:
        rows = ({**vars(each), "recall": each.recall, "recall_low": each.recall_low} for each in self.rows)
        return plain(list(rows), how.digits)


def stopping(
    labels: Iterable[Judgment],
    pool: Iterable[Item],
    *,
    target: float = 0.95,
    rel: float = 1,
    level: float = 0.95,
    seconds: float | None = None,
    price: float | None = None,
) -> Stoppings:
    """For each topic of a pool, whether the labels so far (in the order in which they were made) reach a recall.

    A topic whose pool was sampled is estimated from the probabilities, another from the curve of its labels.
    """
    if not 0 < target <= 1 or not 0 < level < 1:
        raise ConventionError(f"target and level must lie between 0 and 1, got {target} and {level}")
    grades = latest(labels)
    items: dict[str, list[Item]] = {}
    for item in pool:
        items.setdefault(item.topic, []).append(item)
    flags = {topic: _flags(part, grades.get(topic, {}), rel) for topic, part in items.items()}
    rows = [
        _topic(topic, part, grades.get(topic, {}), flags[topic], target, rel, level) for topic, part in items.items()
    ]
    tried = [held(flags[each.topic], level) for each in rows if each.method != "sample"]
    known = [each for each in tried if each is not None]
    return Stoppings(rows, seconds, price, (sum(known), len(known)), level)


def _flags(items: list[Item], labels: Mapping[str, float], rel: float) -> npt.NDArray[np.bool_]:
    """Which labels say relevant, in the order in which they were made."""
    inside = {item.document for item in items}
    return np.array([grade >= rel for document, grade in labels.items() if document in inside], bool)


def _topic(
    topic: str,
    items: list[Item],
    labels: Mapping[str, float],
    flags: npt.NDArray[np.bool_],
    target: float,
    rel: float,
    level: float,
) -> Stopping:
    judged, relevant = len(flags), int(flags.sum())
    facts = topic, len(items), judged, relevant
    if judged >= len(items):
        return Stopping(*facts, 0.0, 0.0, 0.0, "complete", True, "every document of the pool is judged")
    if any(item.priority == 0 for item in items):
        unfound, low, high = from_sample(items, labels, rel, level)
        method = "sample"
    elif judged < EARLY:
        rest = float(len(items) - judged)
        return Stopping(*facts, rest, 0.0, rest, "curve", False, f"fewer than {EARLY} labels say nothing yet")
    else:
        unfound, low, high = from_curve(flags, len(items), level)
        method = "curve"
    likely = relevant / (relevant + high) if relevant + high > 0 else 1.0
    if likely >= target:
        return Stopping(*facts, unfound, low, high, method, True, f"{likely:.0%} found even at the upper bound")
    if method == "curve" and knee(flags):
        return Stopping(*facts, unfound, low, high, method, True, "the curve of finds has a knee behind it")
    return Stopping(*facts, unfound, low, high, method, False, f"at the upper bound only {likely:.0%} are found")


# estimates


def from_sample(
    items: Sequence[Item], labels: Mapping[str, float], rel: float = 1, level: float = 0.95
) -> tuple[float, float, float]:
    """Unfound relevant documents and their interval, from what was drawn of each stratum.

    The share of each stratum gets a Wilson interval with the correction for a finite pool; the strata are added up by
    the method of variance estimates recovery (Zou & Donner 2008). Without strata each document has a probability of
    its own, and `from_chances` says what is left.
    """
    from scipy.stats import norm  # type: ignore[import-untyped, unused-ignore]

    if any(not item.stratum for item in items):
        return from_chances(items, labels, rel, level)
    z = float(norm.ppf(0.5 + level / 2))
    groups: dict[tuple[str, float], list[Item]] = {}
    for item in items:
        groups.setdefault((item.stratum, item.probability), []).append(item)
    total = found = 0.0
    below = above = 0.0
    for members in groups.values():
        known = [labels[item.document] >= rel for item in members if item.document in labels]
        size, n, hits = len(members), len(known), sum(known)
        found += hits
        if n == size:
            total += hits
            continue
        share, low, high = _wilson(hits, n, size, z)
        total += size * share
        below += (size * (share - low)) ** 2
        above += (size * (high - share)) ** 2
    unfound = max(0.0, total - found)
    return unfound, max(0.0, total - below**0.5 - found), max(unfound, total + above**0.5 - found)


def from_chances(
    items: Sequence[Item], labels: Mapping[str, float], rel: float = 1, level: float = 0.95
) -> tuple[float, float, float]:
    """Unfound relevant documents and their interval, from documents drawn with unequal probabilities.

    A relevant document drawn with probability p stands for 1/p - 1 that were not (Horvitz & Thompson 1952). The interval
    is that of a weighted sum of Poisson counts (Fay & Feuer 1997), which leans to the safe side.
    """
    from scipy.stats import chi2  # type: ignore[import-untyped, unused-ignore]

    drawn = [item for item in items if item.priority > 0]
    known = [item for item in drawn if item.document in labels]
    rest = float(sum(item.document not in labels for item in items))
    if not known:
        return rest / 2, 0.0, rest
    done = len(known) / len(drawn)  # the sample is laid out in random order: so far it is a sample of the sample
    weight = np.array([1 / (item.probability * done) - 1 for item in known if labels[item.document] >= rel])
    most = max(1 / (item.probability * done) - 1 for item in items)
    total, spread = float(weight.sum()), float((weight**2).sum())
    tail = (1 - level) / 2
    low = spread / (2 * total) * float(chi2.ppf(tail, 2 * total**2 / spread)) if spread else 0.0
    if most <= 0:  # all were drawn for certain
        return 0.0, 0.0, 0.0
    above, wider = total + most, spread + most**2
    high = wider / (2 * above) * float(chi2.ppf(1 - tail, 2 * above**2 / wider))
    unfound = min(rest, total)
    return unfound, min(low, unfound), min(rest, max(high, unfound))


def _wilson(hits: int, n: int, size: int, z: float) -> tuple[float, float, float]:
    if n == 0:
        return 0.5, 0.0, 1.0
    share = hits / n
    spread = z * z * (size - n) / max(1, size - 1) / n  # nothing is uncertain once all are drawn
    return share, *_wilson_ends(share, spread)


def _wilson_ends(share: float, spread: float) -> tuple[float, float]:
    """The ends of Wilson's interval about a share; the spread is z² / n, or what takes its place."""
    middle = (share + spread / 2) / (1 + spread)
    half = float(np.sqrt(spread * (share * (1 - share) + spread / 4))) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def from_curve(relevant: npt.NDArray[np.bool_], size: int, level: float = 0.95) -> tuple[float, float, float]:
    """Unfound relevant documents, 0, and how many they are at most, from the places of the relevant ones in the order of judging.

    With finds at efforts t₁ … tₙ of T, the rate falls as tᵇ⁻¹ with b = n / Σ log(T / t), so that after `size`
    documents n (size / T)ᵇ would have been found (Crow 1974). The bound does not lean on that curve. It takes the last half
    of the labels and what is left as two samples of one share, as if the rate fell no more: Wilson's upper end for what
    is left, one-sided, each document counting for a third of one, as relevant documents come in clumps (Kish 1965).
    """
    from scipy.stats import norm

    places = np.flatnonzero(relevant) + 0.5
    n, judged = len(places), len(relevant)
    rest = size - judged
    recent = relevant[judged - int(np.ceil(RECENT * judged)) :]
    z2 = float(norm.ppf(level)) ** 2 if level > 0.5 else 0.0
    spread = z2 * CLUMP * (1 / len(recent) + 1 / rest)
    high = min(float(rest), float(np.ceil(rest * _wilson_ends(float(recent.mean()), spread)[1] - 1e-9)))
    if n == 0:
        return 0.0, 0.0, high
    steepness = min(1.0, n / float(np.log(judged / places).sum()))  # never faster than at random
    return min(high, n * ((size / judged) ** steepness - 1)), 0.0, high


def held(relevant: npt.NDArray[np.bool_], level: float = 0.95) -> bool | None:
    """Whether the bound at half of the labels held for those made since; None where half of them say nothing yet."""
    half = len(relevant) // 2
    if half < EARLY:
        return None
    return bool(relevant[half:].sum() <= from_curve(relevant[:half], len(relevant), level)[2])


def knee(relevant: npt.NDArray[np.bool_]) -> bool:
    """Whether the curve of finds bends so sharply that going on is idle (the knee method of Cormack & Grossman 2016).

    The slope up to the knee must be 156 - min(found, 150) times the slope after it, and as many judged after as before.
    """
    found = np.cumsum(relevant)
    n = len(found)
    if n < 2 or not found[-1]:
        return False
    x = np.arange(1, n + 1)
    distance = found - found[-1] * x / n  # how far the curve stands above the line to its end
    place = int(np.argmax(distance)) + 1
    if place * 2 > n:
        return False
    before = found[place - 1] / place
    after = (1 + found[-1] - found[place - 1]) / (n - place)
    return bool(before / after >= 156 - min(int(found[-1]), 150))


# effort


def effort_for(relevant: npt.NDArray[np.bool_], recall: float) -> int:
    """How many documents must be judged in this order to find that share of the relevant ones; 0 where there is none.

    >>> effort_for(np.array([True, False, True, False]), 0.95)
    3
    """
    found = np.cumsum(relevant)
    if not len(found) or not found[-1]:
        return 0
    return int(np.searchsorted(found, np.ceil(recall * found[-1] - 1e-9))) + 1


def wss(relevant: npt.NDArray[np.bool_], recall: float = 0.95) -> float:
    """Work saved over sampling: the share that need not be judged at that recall, less what chance would save.

    >>> wss(np.array([True] + [False] * 9), 0.95)
    0.85
    """
    n = len(relevant)
    return round((n - effort_for(relevant, recall)) / n - (1 - recall), 12) if n else 0.0


def ncg(relevant: npt.NDArray[np.bool_], effort: int) -> float:
    """Normalised cumulative gain: relevant documents found with that effort, over the most that it could have found.

    >>> ncg(np.array([True, False, True, True]), 2)
    0.5
    """
    most = min(effort, int(relevant.sum()))
    return float(relevant[:effort].sum()) / most if most else 0.0
