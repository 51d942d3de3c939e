"""When to stop judging: how many relevant documents are still unfound, and what further labels would cost.

There are two ways to estimate. A sample with known probabilities estimates the total, whatever the order of judging.
The order of judging helps as well: a strategy that finds relevant documents first will not find them faster later. So
the share of relevant documents among the last labels is an upper bound for the rest. There is no lower bound, as the
rate may drop to zero. The point estimate comes from the curve: the rate falls as a power of the effort (a Poisson
process, as in reliability growth).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import ConventionError
from cranfield.base.results import Lines, Rows, Table, plain
from cranfield.formats.label_files import latest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from cranfield.base.results import Layout, Part
    from cranfield.formats.label_files import Judgment
    from cranfield.formats.pool_files import PoolItem


EARLY = 10  # the minimum number of labels for an estimate
RECENT = 0.5  # the share of last labels that predicts the rest
SELDOM = ": significantly fewer, so do not rely on the bound"
CLUMP = 3.0  # design effect: relevant documents are clustered (copies), so this many labels count as one


@dataclass(frozen=True)
class Stopping:
    """The state of one topic: labels so far, the estimated unfound relevant documents, and whether to stop."""

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
        """The estimated recall."""
        return _recall(self.relevant, self.unfound)

    @property
    def recall_low(self) -> float:
        """The recall at the upper bound of unfound documents."""
        return _recall(self.relevant, self.high)


def _recall(relevant: int, unfound: float) -> float:
    """The share of relevant documents that were found; 1 if nothing is relevant."""
    return relevant / (relevant + unfound) if relevant + unfound else 1.0


@dataclass(frozen=True, repr=False)
class Stoppings(Rows[Stopping]):
    """The stopping decisions for all topics of a pool; `seconds` and `price` are those of one judgment, if known."""

    rows: list[Stopping]
    seconds: float | None = None
    price: float | None = None
    # number of topics whose bound at half of the labels held, and number of topics tried
    hindsight: tuple[int, int] = (0, 0)
    level: float = 0.95

    def content(self, how: Layout) -> Iterator[Part]:
        head = [*"topic pool judged relevant unfound low high recall".split(), "at least", "by", "stop", "why"]
        rows = []
        for each in self.rows:
            counts = each.size, each.judged, each.relevant
            estimates = [f"{value:.1f}" for value in (each.unfound, each.low, each.high)]
            shares = [f"{value:.3f}" for value in (each.recall, each.recall_low)]
            verdict = each.method, "yes" if each.stop else "no", each.reason
            rows.append([each.topic, *map(str, counts), *estimates, *shares, *verdict])
        yield Lines([self._effort(), *([self._measured()] if self.hindsight[1] else [])])
        spare = [] if how.states_defaults else [head.index(name) for name in ("judged", "by", "low", "high")]
        yield Table(head, rows, tail=True, spare=spare)

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
    pool: Iterable[PoolItem],
    *,
    target: float = 0.95,
    rel: float = 1,
    level: float = 0.95,
    seconds: float | None = None,
    price: float | None = None,
) -> Stoppings:
    """For each topic of a pool, whether the labels so far (in their order) reach a target recall.

    Topics with a sampled pool are estimated from the probabilities, the others from the curve of their labels.
    """
    if not 0 < target <= 1 or not 0 < level < 1:
        raise ConventionError(f"target and level must lie between 0 and 1, got {target} and {level}")
    grades = latest(labels)
    items: dict[str, list[PoolItem]] = {}
    for item in pool:
        items.setdefault(item.topic, []).append(item)
    own = {topic: grades.get(topic, {}) for topic in items}
    flags = {topic: _flags(part, own[topic], rel) for topic, part in items.items()}
    rows = [_topic(topic, part, own[topic], flags[topic], target, rel, level) for topic, part in items.items()]
    tried = [held(flags[each.topic], level) for each in rows if each.method != "sample"]
    outcomes = [each for each in tried if each is not None]
    return Stoppings(rows, seconds, price, (sum(outcomes), len(outcomes)), level)


def _flags(items: list[PoolItem], labels: Mapping[str, float], rel: float) -> npt.NDArray[np.bool_]:
    """Which labels say relevant, in the order of judging."""
    inside = {item.document for item in items}
    return np.array([grade >= rel for document, grade in labels.items() if document in inside], bool)


def _topic(
    topic: str,
    items: list[PoolItem],
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
    likely = _recall(relevant, high)
    if likely >= target:
        return Stopping(*facts, unfound, low, high, method, True, f"{likely:.0%} found even at the upper bound")
    if method == "curve" and knee(flags):
        return Stopping(*facts, unfound, low, high, method, True, "the curve of finds has a knee behind it")
    return Stopping(*facts, unfound, low, high, method, False, f"at the upper bound only {likely:.0%} are found")


# estimates


def from_sample(
    items: Sequence[PoolItem], labels: Mapping[str, float], rel: float = 1, level: float = 0.95
) -> tuple[float, float, float]:
    """Unfound relevant documents and their interval, from the sample of each stratum.

    The share of each stratum gets a Wilson interval with finite population correction; the strata are combined by the
    method of variance estimates recovery (Zou & Donner 2008). Without strata, each document has its own probability,
    and `from_chances` is used.
    """
    from scipy.stats import norm  # type: ignore[import-untyped, unused-ignore]

    if any(not item.stratum for item in items):
        return from_chances(items, labels, rel, level)
    z = float(norm.ppf(0.5 + level / 2))
    groups: dict[tuple[str, float], list[PoolItem]] = {}
    for item in items:
        groups.setdefault((item.stratum, item.probability), []).append(item)
    total = relevant = below = above = 0.0
    for members in groups.values():
        flags = [labels[item.document] >= rel for item in members if item.document in labels]
        size, n, hits = len(members), len(flags), sum(flags)
        relevant += hits
        if n == size:
            total += hits
            continue
        share, low, high = _wilson(hits, n, size, z)
        total += size * share
        below += (size * (share - low)) ** 2
        above += (size * (high - share)) ** 2
    unfound = max(0.0, total - relevant)
    return unfound, max(0.0, total - below**0.5 - relevant), max(unfound, total + above**0.5 - relevant)


def from_chances(
    items: Sequence[PoolItem], labels: Mapping[str, float], rel: float = 1, level: float = 0.95
) -> tuple[float, float, float]:
    """Unfound relevant documents and their interval, from a sample with unequal probabilities.

    A relevant document with probability p represents 1/p - 1 documents outside the sample (Horvitz & Thompson 1952).
    The interval is that of a weighted sum of Poisson counts (Fay & Feuer 1997), which is conservative.
    """
    from scipy.stats import chi2  # type: ignore[import-untyped, unused-ignore]

    sample = [item for item in items if item.priority > 0]
    labelled = [item for item in sample if item.document in labels]
    rest = float(sum(item.document not in labels for item in items))
    if not labelled:
        return rest / 2, 0.0, rest
    done = len(labelled) / len(sample)  # the sample is in random order, so the labels so far are a sample of it
    weight = np.array([1 / (item.probability * done) - 1 for item in labelled if labels[item.document] >= rel])
    most = max(1 / (item.probability * done) - 1 for item in items)
    total, spread = float(weight.sum()), float((weight**2).sum())
    tail = (1 - level) / 2
    low = spread / (2 * total) * float(chi2.ppf(tail, 2 * total**2 / spread)) if spread else 0.0
    if most <= 0:  # all had probability 1
        return 0.0, 0.0, 0.0
    above, wider = total + most, spread + most**2
    high = wider / (2 * above) * float(chi2.ppf(1 - tail, 2 * above**2 / wider))
    unfound = min(rest, total)
    return unfound, min(low, unfound), min(rest, max(high, unfound))


def _wilson(hits: int, n: int, size: int, z: float) -> tuple[float, float, float]:
    if n == 0:
        return 0.5, 0.0, 1.0
    share = hits / n
    spread = z * z * (size - n) / max(1, size - 1) / n  # a complete stratum has no uncertainty
    return share, *_wilson_ends(share, spread)


def _wilson_ends(share: float, spread: float) -> tuple[float, float]:
    """The ends of Wilson's interval about a share; `spread` is z² / n or its replacement."""
    middle = (share + spread / 2) / (1 + spread)
    half = float(np.sqrt(spread * (share * (1 - share) + spread / 4))) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def from_curve(relevant: npt.NDArray[np.bool_], size: int, level: float = 0.95) -> tuple[float, float, float]:
    """Unfound relevant documents with bounds, from the positions of relevant ones in the order of judging.

    With finds at efforts t₁ … tₙ of T, the rate falls as tᵇ⁻¹ with b = n / Σ log(T / t), so that after `size` documents
    n (size / T)ᵇ would have been found (Crow 1974). The upper bound does not use that curve. It treats the last half of
    the labels and the rest as two samples of the same share: Wilson's one-sided upper end for the rest, with each
    document counting as a third, because relevant documents are clustered (Kish 1965). The lower bound is 0.
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
    steepness = min(1.0, n / float(np.log(judged / places).sum()))  # never faster than random order
    return min(high, n * ((size / judged) ** steepness - 1)), 0.0, high


def held(relevant: npt.NDArray[np.bool_], level: float = 0.95) -> bool | None:
    """Whether the bound at half of the labels held for the later labels; None if half of them are too few."""
    half = len(relevant) // 2
    if half < EARLY:
        return None
    return bool(relevant[half:].sum() <= from_curve(relevant[:half], len(relevant), level)[2])


def knee(relevant: npt.NDArray[np.bool_]) -> bool:
    """Whether the curve of finds has a sharp knee, after which little is found (Cormack & Grossman 2016).

    The slope up to the knee must be 156 - min(found, 150) times the slope after it, with as many documents judged after
    as before.
    """
    so_far = np.cumsum(relevant)
    n = len(so_far)
    if n < 2 or not so_far[-1]:
        return False
    x = np.arange(1, n + 1)
    distance = so_far - so_far[-1] * x / n  # height of the curve above the line to its end
    place = int(np.argmax(distance)) + 1
    if place * 2 > n:
        return False
    before = so_far[place - 1] / place
    after = (1 + so_far[-1] - so_far[place - 1]) / (n - place)
    return bool(before / after >= 156 - min(int(so_far[-1]), 150))


# effort


def effort_for(relevant: npt.NDArray[np.bool_], recall: float) -> int:
    """The number of documents to judge in this order for that recall; 0 if nothing is relevant.

    >>> effort_for(np.array([True, False, True, False]), 0.95)
    3
    """
    so_far = np.cumsum(relevant)
    if not len(so_far) or not so_far[-1]:
        return 0
    return int(np.searchsorted(so_far, np.ceil(recall * so_far[-1] - 1e-9))) + 1


def wss(relevant: npt.NDArray[np.bool_], recall: float = 0.95) -> float:
    """Work saved over sampling: the share that need not be judged at that recall, minus the saving of a random order.

    >>> wss(np.array([True] + [False] * 9), 0.95)
    0.85
    """
    n = len(relevant)
    return round((n - effort_for(relevant, recall)) / n - (1 - recall), 12) if n else 0.0


def ncg(relevant: npt.NDArray[np.bool_], effort: int) -> float:
    """Normalised cumulative gain: relevant documents found with that effort, divided by the possible maximum.

    >>> ncg(np.array([True, False, True, True]), 2)
    0.5
    """
    most = min(effort, int(relevant.sum()))
    return float(relevant[:effort].sum()) / most if most else 0.0
