"""The per-topic values of every measure over qrels: our own measures, with trec_eval's deviations around them.

There is one array over the judged topics for each printed name. A deviation is something that our own measure does not
do: the floor of the geometric mean, the NaN of an empty list, the ideal ranking of gains less than 1 apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.evaluation.hits import Hits, Judgments, ratio
from cranfield.evaluation.measures.average import recall_rank
from cranfield.evaluation.measures.definition import REGISTRY, Gain
from cranfield.evaluation.measures.gain import ndcg_rel, normalised_gain, r_ndcg

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.base.kernels import HitRows
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.base.qrels import Qrels
    from cranfield.compat.trec_eval.catalogue import Request


Pairs = tuple[tuple[str, float], ...]
MOST_LEVELS = 10_000  # above this, grades that no document has are not sorted
LOWEST = 1e-5  # the least value of a topic in a geometric mean
PERSISTENCE = 0.9  # rbp's default
NO_NUMBER = -np.nan  # 0/0 is a negative NaN on the machines whose output is compared, and is printed with its sign


@dataclass
class MeasureInput:
    """The input of the measures: the hits, and the options that change them."""

    hits: Hits
    rel: int
    version: int
    documents: int
    group_topic: Ints | None = None  # where the hits are those of judgment groups, the topic of each

    @property
    def level(self) -> str:
        """The name of the rule that turns a recall level into a number of documents."""
        return f"trec_eval-{self.version}"

    @cached_property
    def precisions(self) -> Floats:
        """Topics × n: the highest precision at the n-th relevant document found or further down; 0 beyond the last."""
        hits = self.hits.relevant(self.rel)
        grid = np.zeros((self.hits.size, 1 + int(hits.nth.max(initial=1))))
        grid[hits.topic, hits.nth - 1] = hits.nth / hits.rank
        return np.maximum.accumulate(grid[:, ::-1], axis=1)[:, ::-1]

    def gained(self, pairs: Pairs) -> tuple[Floats, Hits, Floats]:
        """The gain of each hit, the ideal ranking, and its gains."""
        if pairs:
            return gains_of(pairs, self.hits.grade), *ideal_of(pairs, self.hits.judgments)
        return Gain.of("linear", self.hits.grade), *Gain.ideal("linear", self.hits)


def values(request: Request, view: MeasureInput) -> list[Floats]:
    """One array over topics for each printed name of the measure."""
    computed = _values(request, view)
    if view.group_topic is None:
        return computed
    groups = np.bincount(view.group_topic)  # the mean over each topic's groups, added up in the order of their ids
    return [ratio(np.bincount(view.group_topic, weights=column), groups) for column in computed]


def _values(request: Request, view: MeasureInput) -> list[Floats]:
    if request.kind.name == "iprec_at_recall":
        relevant = view.hits.n_relevant(view.rel)
        return [_precision_from(view, recall_rank(share, relevant, view.level)) for share in request.numbers]
    if request.kind.name in SPECIAL:
        return [SPECIAL[request.kind.name](request, view)]
    cls = REGISTRY[request.kind.ours]
    rel: dict[str, Any] = {"rel": view.rel} if "rel" in cls.parameters else {}
    if request.kind.takes == "nothing":
        return [cls(**rel)(view.hits)]
    return [cls(**rel, **{str(cls.at): number})(view.hits) for number in request.numbers]


# deviations


def _floored(request: Request, view: MeasureInput) -> Floats:
    return np.log(np.maximum(REGISTRY[request.kind.ours](rel=view.rel)(view.hits), LOWEST))


def _precision_from(view: MeasureInput, cut: Floats) -> Floats:
    """The highest precision once `cut` relevant documents are found; NaN for an empty list."""
    best = view.precisions
    column = np.clip(cut - 1, 0, best.shape[1] - 1).astype(np.int64)
    return np.where((cut <= 0) & (view.hits.retrieved == 0), NO_NUMBER, best[np.arange(len(cut)), column])


def _eleven_points(request: Request, view: MeasureInput) -> Floats:
    """11pt_avg: the levels are processed from last to first; a level out of order gets the highest precision of all."""
    relevant, returned = view.hits.n_relevant(view.rel), view.hits.relevant(view.rel).count()
    total, reached = np.zeros(view.hits.size), np.full(view.hits.size, np.inf)
    for share in reversed(request.numbers):
        cut = recall_rank(share, relevant, view.level)
        beyond = (cut > returned) & np.isinf(reached)
        effective = np.where(cut <= reached, cut, 0.0)
        total += np.where(beyond, 0.0, _precision_from(view, effective))
        reached = np.where(beyond, reached, effective)
    return total / len(request.numbers)


def _utility(request: Request, view: MeasureInput) -> Floats:
    weights = dict(zip(("found", "noise", "missed", "rest"), request.numbers, strict=True))
    return REGISTRY["Utility"](rel=view.rel, documents=view.documents, **weights)(view.hits)


def _set_f(request: Request, view: MeasureInput) -> Floats:
    """trec_eval's set_F, whose parameter x is the square of beta."""
    x = request.numbers[0]
    precision, recall = REGISTRY["SetP"](rel=view.rel)(view.hits), REGISTRY["SetR"](rel=view.rel)(view.hits)
    return ratio((x + 1.0) * precision * recall, x * precision + recall)


def _dcg(request: Request, view: MeasureInput) -> Floats:
    gain, _, _ = view.gained(request.pairs)
    return view.hits.sum(gain / np.log2(view.hits.rank + 1.0))


def _ideal_dcg(request: Request, view: MeasureInput) -> Floats:
    _, best, worth = view.gained(request.pairs)
    return best.sum(worth / np.log2(best.rank + 1.0))


def _ndcg(request: Request, view: MeasureInput) -> Floats:
    return ratio(_dcg(request, view), _ideal_dcg(request, view))


def _ndcg_rel(request: Request, view: MeasureInput) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        value = ndcg_rel(view.hits, *view.gained(request.pairs))
    return np.where(value > 0, value, 0.0)


def _r_ndcg(request: Request, view: MeasureInput) -> Floats:
    """Rndcg: the last document of a list that is one longer than the ideal does not count; 0 without relevant documents."""
    gain, best, worth = view.gained(request.pairs)
    value = r_ndcg(view.hits, gain, best, worth, slack=1)
    value = np.where(best.count() == 0, NO_NUMBER, value)
    return np.where(view.hits.n_relevant(view.rel) == 0, 0.0, value)


def _normalised_gain(request: Request, view: MeasureInput) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return normalised_gain(view.hits, *view.gained(request.pairs))


def _persistence(request: Request) -> float:
    return next((number for key, number in reversed(request.pairs) if key == "p"), PERSISTENCE)


def _rbp(request: Request, view: MeasureInput) -> Floats:
    """RBP, with gains outside 0…1 scaled topic by topic. The original never sets its minimum and maximum."""
    hits, p = view.hits, _persistence(request)
    gain = gains_of(request.pairs, hits.grade)
    low, high = _gain_range(request, hits.judgments)
    wide = ((low < 0) | (high > 1))[hits.topic]
    gain = np.where(wide & (hits.grade >= 0), ratio(gain - low[hits.topic], (high - low)[hits.topic]), gain)
    return (1.0 - p) * hits.sum(gain * p ** (hits.rank - 1.0))


def _gain_range(request: Request, judgments: Judgments) -> tuple[Floats, Floats]:
    """The lowest and the highest gain of each topic's grades; 0 and the highest grade if no gains were given."""
    low, high = np.zeros(judgments.size), np.zeros(judgments.size)
    np.maximum.at(high, judgments.topic, judgments.grade)
    if any(key != "p" for key, _ in request.pairs):
        for topic, highest in enumerate(high.tolist()):
            gains = [gain for _, gain in levels_of(request.pairs, np.array([highest]))]
            low[topic], high[topic] = min(gains), max(gains)
    return low, high


def _rbp_residual(request: Request, view: MeasureInput) -> Floats:
    """The residual of RBP: 0 if all returned documents are judged, although ranks below the end of the list remain."""
    hits, p = view.hits, _persistence(request)
    judged = hits.judged()
    unjudged = hits.retrieved - judged.count()
    value = 1.0 - (1.0 - p) * judged.sum(p ** (judged.rank - 1.0))
    return np.where(unjudged > 0, value, 0.0)


SPECIAL: dict[str, Callable[[Request, MeasureInput], Floats]] = {
    "gm_map": _floored,
    "gm_bpref": _floored,
    "utility": _utility,
    "11pt_avg": _eleven_points,
    "G": _normalised_gain,
    "dcg": _dcg,
    "ideal_dcg": _ideal_dcg,
    "ndcg": _ndcg,
    "ndcg_rel": _ndcg_rel,
    "Rndcg": _r_ndcg,
    "set_relative_P": lambda request, view: REGISTRY["SetP"](rel=view.rel, relative=True)(view.hits),
    "set_F": _set_f,
    "rbp": _rbp,
    "rbp_resid": _rbp_residual,
}


# gains given on the command line, and the ideal ranking that trec_eval makes of them: it sorts gains with a comparison
# that returns their difference as a whole number, so gains less than 1 apart count as equal and the ideal ranking may not
# be ideal. Printed output cannot match without repeating that: this is glibc's merge sort with that comparison.


def sorted_gains(gains: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """(grade, gain) by gain as trec_eval sorts them: ascending, and in input order if the difference is below 1.

    >>> sorted_gains([(1, 0.5), (2, 1.5), (0, 0.0)])
    [(1, 0.5), (0, 0.0), (2, 1.5)]
    """
    if len(gains) < 2:
        return gains
    half = len(gains) // 2
    left, right = sorted_gains(gains[:half]), sorted_gains(gains[half:])
    merged = []
    while left and right:
        first = left if int(left[0][1] - right[0][1]) <= 0 else right
        merged.append(first.pop(0))
    return merged + left + right


def levels_of(pairs: Pairs, grades: Floats) -> list[tuple[int, float]]:
    """The grades of a topic and their gains, sorted as trec_eval sorts them: those given first, then the others."""
    stated = [(int(key), gain) for key, gain in pairs if key != "p"]
    named = {grade for grade, _ in stated}
    highest = int(grades.max(initial=-1))
    others = range(highest + 1) if highest < MOST_LEVELS else sorted({int(g) for g in grades if g >= 0})
    return sorted_gains([*stated, *((grade, float(grade)) for grade in others if grade not in named)])


def gains_of(pairs: Pairs, grade: Floats) -> Floats:
    """The gain of each grade; the first of two gains for the same grade counts."""
    gain = np.maximum(grade, 0.0)
    for key, worth in reversed(pairs):
        if key != "p":
            gain[grade == int(key)] = worth
    return gain


def ideal_of(pairs: Pairs, judgments: Judgments) -> tuple[Hits, Floats]:
    """The ideal ranking and the gain at each of its ranks: from the last of the sorted levels to the first of gain 0."""
    sizes = np.zeros(judgments.size, np.int32)
    gains: list[float] = []
    order = np.argsort(judgments.topic, kind="stable")
    bounds = np.searchsorted(judgments.topic[order], np.arange(judgments.size + 1))
    for topic, (start, end) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
        grades = judgments.grade[order[start:end]]
        ideal = _ideal_gains(levels_of(pairs, grades), grades)
        sizes[topic] = len(ideal)
        gains += ideal
    worth = np.array(gains, np.float64)
    topics = np.repeat(np.arange(judgments.size, dtype=np.int32), sizes)
    rank = (np.arange(len(worth)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1).astype(np.int32)
    return Hits(judgments, topics, rank, worth, rank, rank, sizes), worth


def _ideal_gains(levels: list[tuple[int, float]], grades: Floats) -> list[float]:
    if not levels or levels[-1][1] <= 0:
        return []
    ideal: list[float] = []
    earlier: set[int] = set()
    for grade, gain in reversed(levels):
        size = int((grades == grade).sum()) if grade not in earlier else 0
        earlier.add(grade)
        if size and gain <= 0:
            break
        ideal += [gain] * size
    return ideal


# signs


def relevance_strings(hits: Hits, depth: float) -> list[str]:
    """The grades of the first documents as characters: `-` unpooled, `.` pooled but not judged, `>` above 9."""
    length = np.clip(hits.retrieved, 0, max(int(depth), 0))
    deepest = int(length.max(initial=0))
    grid = np.full((hits.size, deepest), ord("-"), np.uint8)
    top = hits.where(hits.rank <= deepest)
    signs = np.where(top.grade > 9, ord(">"), ord("0") + top.grade)
    grid[top.topic, top.rank - 1] = np.where(top.grade < 0, ord("."), signs).astype(np.uint8)
    return [row[:size].tobytes().decode("ascii") for row, size in zip(grid, length.tolist(), strict=True)]


# judgment groups


def by_group(qrels: Qrels, match: HitRows) -> tuple[Hits, Ints]:
    """The hits of each judgment group of each topic, as if groups were topics, and the topic of each group."""
    labels = list(qrels.labels)
    place = np.argsort(sorted(range(len(labels)), key=labels.__getitem__))
    key = qrels.topic.astype(np.int64) * max(len(labels), 1) + place[qrels.label]
    groups, number = np.unique(key, return_inverse=True)
    group, topic = number.astype(np.int32), (groups // max(len(labels), 1)).astype(np.int32)
    grade, every = np.trunc(qrels.grade), np.arange(len(group), dtype=np.int32)
    judgments = Judgments(qrels, qrels.extras, len(topic), grade, every, group, grade)
    hit = np.full(len(group), -1, np.int64)
    hit[match.row] = np.arange(len(match.row))
    hit = hit[qrels.index.first]
    rows = np.flatnonzero(hit >= 0)
    rows = rows[np.lexsort((match.rank[hit[rows]], group[rows]))]
    at = hit[rows]
    columns = (group[rows], match.rank[at], grade[rows], match.first[at], match.last[at])
    return Hits(judgments, *columns, match.retrieved[topic]), topic
