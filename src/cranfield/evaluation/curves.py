"""Curves: precision, recall and gain down the ranking, averaged over topics, for several runs.

The curve of several topics is the mean of their curves at each rank (or recall level, or false-positive rate).
Precision is 0 at recall that is never reached: a curve that ended there would flatter a run that stops early.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import ConventionError
from cranfield.base.notifications import stepwise, tell_used
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Answer, Layout, Table, plain
from cranfield.evaluation.evaluate import Evaluator
from cranfield.evaluation.hits import ratio
from cranfield.evaluation.measures import measure
from cranfield.evaluation.measures.definition import within_doubles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Unpack

    from cranfield.base.kernels.table import Floats
    from cranfield.base.results import Part
    from cranfield.evaluation.hits import Hits
    from cranfield.evaluation.options import OptionsWithoutRel


KINDS = {
    "pr": ("recall", "precision", "AP", "Precision and recall down the ranks"),
    "pr11": ("recall", "precision", "11pt", "Interpolated precision at eleven recall levels"),
    "roc": ("false positive rate", "true positive rate", "AUC", "Receiver operating characteristic"),
    "recall": ("rank", "recall", "mean", "Recall by rank"),
    "gain": ("rank", "gain", "of ideal", "Discounted cumulated gain by rank"),
}
"""Kind → labels of x and y, name of the area, and title."""

IDEAL = "ideal"
ON_A_SCREEN = 11  # points of a long curve
WHOLE_ON_A_SCREEN = 15  # a curve of at most so many points is shown whole
LEVELS = np.arange(11) / 10


@dataclass
class Curve:
    """The points of one run, and the area for the legend. Only `pr` has `interpolated`."""

    run: str
    x: Floats
    y: Floats
    area: float
    interpolated: Floats | None = None
    rank: Floats | None = None  # the rank of each point, if it has one; NaN for added end points


@dataclass
class Curves(Answer):
    """The result of `curves`: one curve per run, all of one kind, and the number of topics."""

    kind: str
    topics: int
    curves: list[Curve]
    negatives: str = ""  # which documents a ROC curve counts as not relevant, in words

    @property
    def axes(self) -> tuple[str, str]:
        """The labels of x and y."""
        return KINDS[self.kind][:2]

    def crossings(self) -> list[tuple[str, str, list[float]]]:
        """Pairs of runs whose curves cross, and the x of each crossing. Touching does not count."""
        runs = [curve for curve in self.curves if curve.run != IDEAL]
        crossings = ((one.run, other.run, _crossings(one, other)) for one, other in combinations(runs, 2))
        return [crossing for crossing in crossings if crossing[2]]

    def notes(self, shell: bool = False) -> list[str]:
        """Where curves cross and what that means; what a ROC curve assumes."""
        x = self.axes[0]
        notes = [
            f"{one} and {other} cross at {x} {', '.join(f'{place:.3g}' for place in places[:3])}"
            f"{' …' if len(places) > 3 else ''}: neither run is better everywhere, and the area hides which is better where"
            for one, other, places in self.crossings()
        ]
        return [*notes, self.negatives] if self.negatives else notes

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per point: run, rank (if it has one), x and y by name, and for `pr` the interpolated precision."""
        return ({"run": curve.run, **point} for curve in self.curves for point in self._points(curve))

    def _points(self, curve: Curve) -> list[dict[str, float | None]]:
        columns: dict[str, list[float | None]] = {}
        if curve.rank is not None:
            columns["rank"] = [int(rank) if rank == rank else None for rank in curve.rank.tolist()]
        x = [int(rank) for rank in curve.x.tolist()] if self.axes[0] == "rank" else curve.x.tolist()
        columns |= zip(self.axes, (x, curve.y.tolist()), strict=True)
        if curve.interpolated is not None:
            columns["interpolated"] = curve.interpolated.tolist()
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def content(self, how: Layout) -> list[Part]:
        head, *rows = self.records(how)
        areas = [[curve.run, how.number(curve.area)] for curve in self.curves]
        points = rows
        if not how.states_defaults:
            points = [row for curve in self.curves for row in _sample_points(rows, curve.run)]
        cells = [[row[0], *(_text(value, how) for value in row[1:])] for row in points]
        rest = f"{len(points)} of {len(rows):,} points" if len(points) < len(rows) else ""
        sizes = Table(["run", KINDS[self.kind][2]], areas, title="Areas")
        return [sizes, Table(head, cells, title="Points", rest=rest)]

    def records(self, how: Layout) -> list[list[Any]]:
        """A header and one row per point."""
        rows = list(self.rows())
        return [list(rows[0]), *(list(row.values()) for row in rows)]

    def plain(self, how: Layout) -> Any:
        """Kind, areas, points by run, and crossings, for JSON."""
        answer = {
            "kind": self.kind,
            "area": KINDS[self.kind][2],
            "topics": self.topics,
            "runs": [{"run": one.run, "area": one.area, "points": self._points(one)} for one in self.curves],
            "crossings": [{"runs": [one, other], "at": places} for one, other, places in self.crossings()],
            "notes": self.notes(),
        }
        return plain(answer, how.digits)


def _sample_points(rows: list[list[Any]], run: str) -> list[list[Any]]:
    """A few evenly spaced points of a run's curve, including both ends."""
    own = [row for row in rows if row[0] == run]
    last = len(own) - 1
    if last < WHOLE_ON_A_SCREEN:
        return own
    return [own[round(i * last / (ON_A_SCREEN - 1))] for i in range(ON_A_SCREEN)]


def _text(value: float | None, how: Layout) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else how.number(value)


def curves(
    qrels: Any,
    runs: Any,
    kind: str = "pr",
    *,
    rel: float = 1,
    depth: int = 1000,
    level: str = "exact",
    **options: Unpack[OptionsWithoutRel],
) -> Curves:
    """The curves of one run or several, averaged over topics. Takes the arguments of `evaluate`.

    Kinds: `pr` (precision and recall at each rank, raw and interpolated), `pr11` (interpolated precision at recall 0,
    0.1 … 1), `roc`, `recall`, and `gain` (by rank, together with the ideal). `topics=["q1"]` gives one topic's curve.

    >>> found = curves({"q": {"a": 1, "c": 1}}, {"q": {"a": 3, "b": 2, "c": 1}}, "pr11")
    >>> found.curves[0].y.round(2).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.67, 0.67, 0.67, 0.67, 0.67]
    """
    if kind not in KINDS:
        raise ConventionError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    refuse_below(1, depth=depth)
    evaluator = Evaluator(qrels, [measure(f"AP(rel={rel})"), measure(f"11pt(rel={rel}, level={level})")], **options)
    opened = evaluator.open(runs)
    scores = evaluator.evaluate(opened)
    hits = [evaluator.hits(run) for run in stepwise(opened)]
    deepest = min(depth, max(int(each.retrieved.max(initial=1)) for each in hits) or 1)
    every = []
    for r, run in enumerate(scores.runs):
        topics = np.zeros(evaluator.judgments.size, bool)
        topics[np.flatnonzero(evaluator.topic_mask)[scores.counted[r]]] = True
        view = _CurveInput(hits[r], topics, rel, deepest, level, scores.summary[r].tolist())
        with within_doubles(f"curve {kind}", evaluator.judgments):
            every.append(Curve(run, *_CURVE_OF_KIND[kind](view)))
    if kind == "gain":
        ranks = np.arange(1, deepest + 1, dtype=np.float64)
        every.append(Curve(IDEAL, ranks, _ideal_gain(hits[0], evaluator.topic_mask, ranks), 1.0))
    negatives = _negatives(evaluator.judgments.extras.size) if kind == "roc" else ""
    return Curves(kind, int(evaluator.topic_mask.sum()), every, negatives)


def _negatives(size: int | None) -> str:
    """The documents that a ROC curve counts as not relevant, in words."""
    tell_used("collection_size")
    if size is not None:
        return f"the other of the {size} documents count as not relevant; documents not returned follow in random order"
    return (
        "the other documents that were returned or judged count as not relevant; documents not returned follow in random "
        "order (give the collection's size to count all)"
    )


class _CurveInput:
    """The data of one run's curve: topics × ranks, for the topics that count."""

    def __init__(self, hits: Hits, topics: Any, rel: float, depth: int, level: str, means: list[float]) -> None:
        self.hits, self.topics, self.rel, self.level = hits, topics, rel, level
        self.ap, self.eleven_points = means
        self.size = hits.judgments.extras.size
        grade = hits.grid(depth)[topics]
        self.grade = np.nan_to_num(grade, nan=0.0)
        self.ranks = np.arange(1, depth + 1, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            relevant = np.nan_to_num(grade, nan=-np.inf) >= rel
        self.retrieved = np.cumsum(relevant, axis=1)  # relevant documents down to each rank
        self.n_relevant = hits.n_relevant(rel)[topics].astype(np.float64)
        self.recall = ratio(self.retrieved, self.n_relevant[:, None])


def _mean(values: Floats) -> Floats:
    return values.mean(axis=0) if len(values) else np.zeros(values.shape[1])


def _pr(view: _CurveInput) -> tuple[Floats, Floats, float, Floats, Floats]:
    recall, precision, ranks = _mean(view.recall), _mean(view.retrieved / view.ranks), view.ranks
    if recall[-1] < 1:  # precision is 0 at recall that is never reached
        recall, precision = np.r_[recall, recall[-1], 1.0], np.r_[precision, 0.0, 0.0]
        ranks = np.r_[ranks, np.nan, np.nan]
    best = np.maximum.accumulate(precision[::-1])[::-1][np.searchsorted(recall, recall)]  # at this recall or more
    return recall, precision, view.ap, best, ranks


def _pr11(view: _CurveInput) -> tuple[Floats, Floats, float]:
    levels = [measure(f"IPrec(rel={view.rel}, level={view.level})@{recall:g}") for recall in LEVELS.tolist()]
    precision = np.stack([each(view.hits)[view.topics] for each in levels], axis=1)
    return LEVELS, _mean(precision), view.eleven_points


def _roc(view: _CurveInput) -> tuple[Floats, Floats, float]:
    """The vertical mean of the topics' curves; a single topic keeps its own points."""
    hits, topics = view.hits, view.topics
    if view.size is not None:
        others = view.size - view.n_relevant
    else:
        judged = hits.judgments.count(hits.judgments.grade < view.rel)
        nonrelevant, relevant = hits.where(hits.grade < view.rel).count(), hits.relevant(view.rel).count()
        others = (judged - nonrelevant + hits.retrieved - relevant)[topics]
    every = zip(np.flatnonzero(topics), view.n_relevant, others, strict=True)
    lines = [_roc_of(hits, topic, view.rel, n_relevant, rest) for topic, n_relevant, rest in every]
    areas = [float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2)) for x, y in lines]
    if len(lines) == 1:
        return *lines[0], areas[0]
    grid = np.linspace(0, 1, 101)
    heights = np.array([np.interp(grid, x, y) for x, y in lines]).reshape(len(lines), len(grid))
    return np.r_[0.0, grid], np.r_[0.0, _mean(heights)], float(np.mean(areas)) if areas else np.nan


def _roc_of(hits: Hits, topic: Any, rel: float, n_relevant: float, others: float) -> tuple[Floats, Floats]:
    """One topic's false and true positive rates after each rank, then a straight line to (1, 1)."""
    relevant = np.zeros(int(hits.retrieved[topic]), bool)
    mine = (hits.topic == topic) & (hits.grade >= rel)
    relevant[hits.rank[mine] - 1] = True
    true, false = np.cumsum(relevant), np.cumsum(~relevant)
    x, y = ratio(np.r_[0, false, others], max(others, 1)), ratio(np.r_[0, true, n_relevant], max(n_relevant, 1))
    return np.minimum(x, 1.0), y


def _recall(view: _CurveInput) -> tuple[Floats, Floats, float]:
    recall = _mean(view.recall)
    return view.ranks, recall, float(recall.mean())


def _gain(view: _CurveInput) -> tuple[Floats, Floats, float]:
    gain = _discounted(np.maximum(view.grade, 0), view.ranks)
    ideal = _ideal_gain(view.hits, view.topics, view.ranks)
    return view.ranks, gain, float(ratio(gain.sum(), ideal.sum()))


def _ideal_gain(hits: Hits, topics: Any, ranks: Floats) -> Floats:
    return _discounted(np.nan_to_num(hits.ideal.grid(len(ranks))[topics], nan=0.0), ranks)


def _discounted(gain: Floats, ranks: Floats) -> Floats:
    """The mean over topics of the discounted gain down to each rank."""
    return _mean(np.cumsum(gain / np.log2(ranks + 1), axis=1))


_CURVE_OF_KIND: dict[str, Callable[[_CurveInput], Any]]
_CURVE_OF_KIND = {"pr": _pr, "pr11": _pr11, "roc": _roc, "recall": _recall, "gain": _gain}


def _crossings(one: Curve, other: Curve) -> list[float]:
    """The x at which the curves change order."""
    grid = np.union1d(one.x, other.x)
    apart = np.interp(grid, one.x, one.y) - np.interp(grid, other.x, other.y)  # at a vertical step, the later end
    clear = np.flatnonzero(np.abs(apart) > 1e-9)
    turns = np.flatnonzero(np.diff(np.sign(apart[clear])) != 0)
    a, b = clear[turns], clear[turns + 1]
    places: list[float] = (grid[a] + apart[a] / (apart[a] - apart[b]) * (grid[b] - grid[a])).tolist()
    return places
