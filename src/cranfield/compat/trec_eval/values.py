"""The per-topic values of every measure over qrels: our own measures, with trec_eval's deviations around them.

Each function returns one array over the judged topics for each name that is printed. A deviation is
something our own measure does not do: the geometric mean's floor, the NaN of an empty list, the ideal
ranking of gains less than 1 apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.compat.trec_eval.gains import gains_of, ideal_of, levels_of
from cranfield.hits import Hits, Judgments, ratio
from cranfield.measures.average import recall_rank
from cranfield.measures.gain import ideal, ndcg_rel, normalised_gain, r_ndcg
from cranfield.measures.measure import REGISTRY, Gain

if TYPE_CHECKING:
    from cranfield.collection import Qrels
    from cranfield.compat.trec_eval.catalogue import Asked
    from cranfield.kernels import Found
    from cranfield.kernels.table import Floats, Ints


LOWEST = 1e-5  # what a topic counts at least in a geometric mean
PERSISTENCE = 0.9  # rbp's default
NO_NUMBER = -np.nan  # 0/0 is a negative NaN on the machines whose output is compared, and is printed with its sign


@dataclass
class View:
    """A run seen through judgments, and the options that change what is seen."""

    hits: Hits
    rel: int
    version: int
    documents: int
    _gained: dict[Any, Any] = field(default_factory=dict)

    @property
    def level(self) -> str:
        """How a recall level becomes a number of documents."""
        return f"trec_eval-{self.version}"

    @cached_property
    def precisions(self) -> Floats:
        """Topics × n: the highest precision at the n-th relevant document found or further down; 0 beyond the last."""
        found = self.hits.relevant(self.rel)
        grid = np.zeros((self.hits.size, 1 + int(found.nth.max(initial=1))))
        grid[found.topic, found.nth - 1] = found.nth / found.rank
        best: Floats = np.maximum.accumulate(grid[:, ::-1], axis=1)[:, ::-1]
        return best

    def gained(self, pairs: tuple[tuple[str, float], ...]) -> tuple[Floats, Hits, Floats]:
        """The gain of each hit, the ideal ranking, and its gains."""
        if pairs not in self._gained:
            if pairs:
                self._gained[pairs] = gains_of(pairs, self.hits.grade), *ideal_of(pairs, self.hits.judgments)
            else:
                self._gained[pairs] = Gain.of("linear", self.hits.grade), *ideal(self.hits, "linear")
        answer: tuple[Floats, Hits, Floats] = self._gained[pairs]
        return answer


def values(asked: Asked, view: View) -> list[Floats]:
    """One array over topics for each printed name of the measure."""
    special = SPECIAL.get(asked.kind.name)
    if special is not None:
        return special(asked, view)  # type: ignore[no-any-return]
    cls = REGISTRY[asked.kind.ours]
    given: dict[str, Any] = {"rel": view.rel} if "rel" in cls.parameters else {}
    if asked.kind.takes == "nothing":
        return [cls(**given)(view.hits)]
    return [cls(**given, **{str(cls.at): number})(view.hits) for number in asked.numbers]


# deviations


def _floored(asked: Asked, view: View) -> list[Floats]:
    return [np.log(np.maximum(REGISTRY[asked.kind.ours](rel=view.rel)(view.hits), LOWEST))]


def _interpolated(asked: Asked, view: View) -> list[Floats]:
    relevant = view.hits.n_relevant(view.rel)
    return [_precision_from(view, recall_rank(share, relevant, view.level)) for share in asked.numbers]


def _precision_from(view: View, cut: Floats) -> Floats:
    """The highest precision once `cut` relevant documents are found; an empty list has none to give."""
    best = view.precisions
    column = np.clip(cut - 1, 0, best.shape[1] - 1).astype(np.int64)
    return np.where((cut <= 0) & (view.hits.retrieved == 0), NO_NUMBER, best[np.arange(len(cut)), column])


def _eleven_points(asked: Asked, view: View) -> list[Floats]:
    """The levels are walked from the last to the first; one out of order takes the highest precision of all."""
    relevant, found = view.hits.n_relevant(view.rel), view.hits.relevant(view.rel).count()
    total, reached = np.zeros(view.hits.size), np.full(view.hits.size, np.inf)
    for share in reversed(asked.numbers):
        cut = recall_rank(share, relevant, view.level)
        beyond = (cut > found) & np.isinf(reached)
        effective = np.where(cut <= reached, cut, 0.0)
        total += np.where(beyond, 0.0, _precision_from(view, effective))
        reached = np.where(beyond, reached, effective)
    return [total / len(asked.numbers)]


def _utility(asked: Asked, view: View) -> list[Floats]:
    found, noise, missed, rest = asked.numbers
    cls = REGISTRY["Utility"]
    weights = {"found": found, "noise": noise, "missed": missed, "rest": rest}
    return [cls(rel=view.rel, documents=view.documents, **weights)(view.hits)]


def _relative_set_precision(asked: Asked, view: View) -> list[Floats]:
    return [REGISTRY["SetP"](rel=view.rel, relative=True)(view.hits)]


def _set_f(asked: Asked, view: View) -> list[Floats]:
    """Its x is the square of beta."""
    x = asked.numbers[0]
    precision, recall = REGISTRY["SetP"](rel=view.rel)(view.hits), REGISTRY["SetR"](rel=view.rel)(view.hits)
    return [ratio((x + 1.0) * precision * recall, x * precision + recall)]


def _dcg(asked: Asked, view: View) -> list[Floats]:
    gain, _, _ = view.gained(asked.pairs)
    return [view.hits.sum(gain / np.log2(view.hits.rank + 1.0))]


def _ideal_dcg(asked: Asked, view: View) -> list[Floats]:
    _, best, worth = view.gained(asked.pairs)
    return [best.sum(worth / np.log2(best.rank + 1.0))]


def _ndcg(asked: Asked, view: View) -> list[Floats]:
    return [ratio(_dcg(asked, view)[0], _ideal_dcg(asked, view)[0])]


def _ndcg_rel(asked: Asked, view: View) -> list[Floats]:
    with np.errstate(divide="ignore", invalid="ignore"):
        value = ndcg_rel(view.hits, *view.gained(asked.pairs))
    return [np.where(value > 0, value, 0.0)]


def _r_ndcg(asked: Asked, view: View) -> list[Floats]:
    """A list just one longer than the ideal has no end of its own; without a relevant document it is 0."""
    gain, best, worth = view.gained(asked.pairs)
    value = r_ndcg(view.hits, gain, best, worth, slack=1)
    value = np.where(best.count() == 0, NO_NUMBER, value)
    return [np.where(view.hits.n_relevant(view.rel) == 0, 0.0, value)]


def _normalised_gain(asked: Asked, view: View) -> list[Floats]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return [normalised_gain(view.hits, *view.gained(asked.pairs))]


def _persistence(asked: Asked) -> float:
    return next((number for key, number in reversed(asked.pairs) if key == "p"), PERSISTENCE)


def _rbp(asked: Asked, view: View) -> list[Floats]:
    """Gains outside 0…1 are brought into it, topic by topic. The original never sets its minimum and maximum."""
    hits, p = view.hits, _persistence(asked)
    gain = gains_of(asked.pairs, hits.grade)
    low, high = _gain_range(asked, hits.judgments)
    wide = ((low < 0) | (high > 1))[hits.topic]
    gain = np.where(wide & (hits.grade >= 0), ratio(gain - low[hits.topic], (high - low)[hits.topic]), gain)
    return [(1.0 - p) * hits.sum(gain * p ** (hits.rank - 1.0))]


def _gain_range(asked: Asked, judgments: Judgments) -> tuple[Floats, Floats]:
    """The lowest and the highest gain of each topic's grades, 0 and the highest grade if none were given."""
    low, high = np.zeros(judgments.size), np.zeros(judgments.size)
    np.maximum.at(high, judgments.topic, judgments.grade)
    if any(key != "p" for key, _ in asked.pairs):
        for topic, highest in enumerate(high.tolist()):
            gains = [gain for _, gain in levels_of(asked.pairs, np.array([highest]))]
            low[topic], high[topic] = min(gains), max(gains)
    return low, high


def _rbp_residual(asked: Asked, view: View) -> list[Floats]:
    """0 where all that was returned is judged, although ranks below the end of the list remain."""
    hits, p = view.hits, _persistence(asked)
    seen = hits.judged()
    unjudged = hits.retrieved - seen.count()
    value = 1.0 - (1.0 - p) * seen.sum(p ** (seen.rank - 1.0))
    return [np.where(unjudged > 0, value, 0.0)]


SPECIAL: dict[str, Any] = {
    "gm_map": _floored,
    "gm_bpref": _floored,
    "iprec_at_recall": _interpolated,
    "utility": _utility,
    "11pt_avg": _eleven_points,
    "G": _normalised_gain,
    "dcg": _dcg,
    "ideal_dcg": _ideal_dcg,
    "ndcg": _ndcg,
    "ndcg_rel": _ndcg_rel,
    "Rndcg": _r_ndcg,
    "set_relative_P": _relative_set_precision,
    "set_F": _set_f,
    "rbp": _rbp,
    "rbp_resid": _rbp_residual,
}


def relevance_strings(hits: Hits, depth: float) -> list[str]:
    """The grades of the first documents as characters: `-` unpooled, `.` pooled but not judged, `>` above 9."""
    length = np.clip(hits.retrieved, 0, max(int(depth), 0))
    deepest = int(length.max(initial=0))
    grid = np.full((hits.size, deepest), ord("-"), np.uint8)
    seen = hits.where(hits.rank <= deepest)
    signs = np.where(seen.grade > 9, ord(">"), ord("0") + seen.grade)
    grid[seen.topic, seen.rank - 1] = np.where(seen.grade < 0, ord("."), signs).astype(np.uint8)
    return [row[:size].tobytes().decode("ascii") for row, size in zip(grid, length.tolist(), strict=True)]


# judgment groups


class Groups:
    """The same run seen through each judgment group of each topic; a measure is averaged over a topic's groups."""

    def __init__(self, qrels: Qrels, found: Found, options: Any) -> None:
        names = sorted(range(len(qrels.labels)), key=list(qrels.labels).__getitem__)
        place = np.empty(len(names), np.int64)
        place[names] = np.arange(len(names))
        key = qrels.topic.astype(np.int64) * max(len(names), 1) + place[qrels.label]
        groups, group = np.unique(key, return_inverse=True)
        self.topic = (groups // max(len(names), 1)).astype(np.int32)
        self.size = len(qrels.topics)
        self.hits = self._join(qrels, found, group.astype(np.int32))
        if options.deepest is not None:
            self.hits = self.hits.top(options.deepest)
        if options.judged_only:
            self.hits = self.hits.condensed()

    def _join(self, qrels: Qrels, found: Found, group: Ints) -> Hits:
        grade = np.trunc(qrels.grade)
        every = np.arange(len(grade), dtype=np.int32)
        judgments = Judgments(qrels, qrels.extras, len(self.topic), grade, every, group, grade)
        hit = np.full(len(group), -1, np.int64)
        hit[found.row] = np.arange(len(found.row))
        hit = hit[qrels.index.first]
        rows = np.flatnonzero(hit >= 0)
        rows = rows[np.lexsort((found.rank[hit[rows]], group[rows]))]
        at = hit[rows]
        columns = (group[rows], found.rank[at], judgments.grade[rows], found.first[at], found.last[at])
        return Hits(judgments, *columns, found.retrieved[self.topic])

    def mean(self, values: Floats) -> Floats:
        """The mean over each topic's groups, added up in the order of their ids."""
        total = np.bincount(self.topic, weights=values, minlength=self.size)
        return ratio(total, np.bincount(self.topic, minlength=self.size))
