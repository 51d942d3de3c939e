"""Curves: how precision, recall and gain grow down the ranking, averaged over topics, for several runs.

A curve of several topics is the mean of theirs at each rank (or recall level, or false-positive rate). Recall that is
never reached has precision 0: a curve that merely ended there would flatter a run that stops early.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.answer import Answer, Layout, Table, plain
from cranfield.errors import ConventionError
from cranfield.evaluate import Evaluator
from cranfield.hearing import tell_used
from cranfield.hits import ratio
from cranfield.measures import measure
from cranfield.measures.measure import within_doubles
from cranfield.parameters import refuse_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Unpack

    from cranfield.answer import Part
    from cranfield.evaluate import OptionsWithoutRel
    from cranfield.hits import Hits
    from cranfield.kernels.table import Floats


KINDS = {
    "pr": ("recall", "precision", "AP", "Precision and recall down the ranks"),
    "pr11": ("recall", "precision", "11pt", "Interpolated precision at eleven recall levels"),
    "roc": ("false positive rate", "true positive rate", "AUC", "Receiver operating characteristic"),
    "recall": ("rank", "recall", "mean", "Recall by rank"),
    "gain": ("rank", "gain", "of ideal", "Discounted cumulated gain by rank"),
}
"""Kind → what lies along x and y, what the area is called, and the title."""

IDEAL = "ideal"
ON_A_SCREEN = 11  # points of a long curve
WHOLE_ON_A_SCREEN = 15  # points of a curve that is shown whole: leaving out a few of them would save nothing
LEVELS = np.arange(11) / 10


@dataclass
class Curve:
    """One run's points, and the area that the legend shows. `interpolated` is there for `pr` only."""

    run: str
    x: Floats
    y: Floats
    area: float
    interpolated: Floats | None = None
    rank: Floats | None = None  # of each point, where it is that of a rank; NaN at the ends that belong to none


@dataclass
class Curves(Answer):
    """What `curves` returns: a curve a run, of one kind, over so many topics."""

    kind: str
    topics: int
    curves: list[Curve]
    negatives: str = ""  # what a ROC curve takes for the documents that are not relevant

    @property
    def axes(self) -> tuple[str, str]:
        """What lies along x and y."""
        return KINDS[self.kind][:2]

    def crossings(self) -> list[tuple[str, str, list[float]]]:
        """Pairs of runs whose curves cross, and where along x. Touching is no crossing."""
        runs = [curve for curve in self.curves if curve.run != IDEAL]
        crossings = ((one.run, other.run, _crossed(one, other)) for one, other in combinations(runs, 2))
        return [crossing for crossing in crossings if crossing[2]]

    def notes(self, shell: bool = False) -> list[str]:
        """Where curves cross and what that means, a sentence each; what a ROC curve supposes."""
        x = self.axes[0]
        notes = [
            f"{one} and {other} cross at {x} {', '.join(f'{place:.3g}' for place in places[:3])}"
            f"{' …' if len(places) > 3 else ''}: neither is better throughout, and the area hides which is better where"
            for one, other, places in self.crossings()
        ]
        return [*notes, self.negatives] if self.negatives else notes

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row a point: the run, the rank where a point has one, x and y by name, and for `pr` the interpolated precision."""
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
        shown = rows if how.told else [row for curve in self.curves for row in _some(rows, curve.run)]
        cells = [[row[0], *(_text(value, how) for value in row[1:])] for row in shown]
        rest = f"{len(shown)} of {len(rows):,} points" if len(shown) < len(rows) else ""
        sizes = Table(["run", KINDS[self.kind][2]], areas, title="Areas")
        return [sizes, Table(head, cells, title="Points", rest=rest)]

    def records(self, how: Layout) -> list[list[Any]]:
        """A header and a row a point."""
        rows = list(self.rows())
        return [list(rows[0]), *(list(row.values()) for row in rows)]

    def plain(self, how: Layout) -> Any:
        """Kind, axes, areas, points by run, and where curves cross."""
        answer = {
            "kind": self.kind,
            "area": KINDS[self.kind][2],
            "topics": self.topics,
            "runs": [{"run": one.run, "area": one.area, "points": self._points(one)} for one in self.curves],
            "crossings": [{"runs": [one, other], "at": places} for one, other, places in self.crossings()],
            "notes": self.notes(),
        }
        return plain(answer, how.digits)


def _some(rows: list[list[Any]], run: str) -> list[list[Any]]:
    """A few points of a run's curve, those of its ends among them."""
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
    """The curves of one run or several, averaged over topics. Takes what `evaluate` takes.

    Kinds: `pr` (precision and recall at each rank, raw and interpolated), `pr11` (interpolated precision at recall 0,
    0.1 … 1), `roc`, `recall` and `gain` (by rank, the ideal beside it). `topics=["q1"]` gives one topic's curve.

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
    hits = [evaluator.hits(run) for run in opened]
    deepest = min(depth, max(int(each.retrieved.max(initial=1)) for each in hits) or 1)
    every = []
    for r, run in enumerate(scores.runs):
        counted = np.zeros(evaluator.judgments.size, bool)
        counted[np.flatnonzero(evaluator.wanted)[scores.counted[r]]] = True
        view = _View(hits[r], counted, rel, deepest, level, scores.summary[r].tolist())
        with within_doubles(f"curve {kind}", evaluator.judgments):
            every.append(Curve(run, *_DRAWN[kind](view)))
    if kind == "gain":
        ranks = np.arange(1, deepest + 1, dtype=np.float64)
        every.append(Curve(IDEAL, ranks, _ideal_gain(hits[0], evaluator.wanted, ranks), 1.0))
    negatives = ""
    if kind == "roc":
        tell_used("collection_size")
        negatives = _negatives(evaluator.judgments.extras.size)
    return Curves(kind, int(evaluator.wanted.sum()), every, negatives)


def _negatives(size: int | None) -> str:
    if size is not None:
        return f"not relevant are all others of the {size} documents; those not returned follow in random order"
    return (
        "not relevant are the documents returned or judged that are not relevant; those not returned follow in random "
        "order (give the collection's size to count all)"
    )


class _View:
    """What a curve is made from: topics × ranks, the topics that count only."""

    def __init__(self, hits: Hits, counted: Any, rel: float, depth: int, level: str, means: list[float]) -> None:
        self.hits, self.counted, self.rel, self.level = hits, counted, rel, level
        self.ap, self.eleven_points = means
        self.size = hits.judgments.extras.size
        grade = hits.grid(depth)[counted]
        self.grade = np.nan_to_num(grade, nan=0.0)
        self.ranks = np.arange(1, depth + 1, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            relevant = np.nan_to_num(grade, nan=-np.inf) >= rel
        self.retrieved = np.cumsum(relevant, axis=1)  # relevant documents, down to each rank
        self.wanted = hits.n_relevant(rel)[counted].astype(np.float64)
        self.recall = ratio(self.retrieved, self.wanted[:, None])


def _mean(values: Floats) -> Floats:
    answer: Floats = values.mean(axis=0) if len(values) else np.zeros(values.shape[1])
    return answer


def _pr(view: _View) -> tuple[Floats, Floats, float, Floats, Floats]:
    recall, precision, ranks = _mean(view.recall), _mean(view.retrieved / view.ranks), view.ranks
    if recall[-1] < 1:  # recall that is never reached has precision 0
        recall, precision = np.r_[recall, recall[-1], 1.0], np.r_[precision, 0.0, 0.0]
        ranks = np.r_[ranks, np.nan, np.nan]
    best = np.maximum.accumulate(precision[::-1])[::-1][np.searchsorted(recall, recall)]  # at this recall or more
    return recall, precision, view.ap, best, ranks


def _pr11(view: _View) -> tuple[Floats, Floats, float]:
    levels = [measure(f"IPrec(rel={view.rel}, level={view.level})@{recall:g}") for recall in LEVELS.tolist()]
    precision = np.stack([each(view.hits)[view.counted] for each in levels], axis=1)
    return LEVELS, _mean(precision), view.eleven_points


def _roc(view: _View) -> tuple[Floats, Floats, float]:
    """Vertical mean of the topics' curves; one topic's own points where there is one."""
    hits, counted = view.hits, view.counted
    if view.size is not None:
        others = view.size - view.wanted
    else:
        judged = hits.judgments.count(hits.judgments.grade < view.rel)
        known, relevant = hits.where(hits.grade < view.rel).count(), hits.relevant(view.rel).count()
        others = (judged - known + hits.retrieved - relevant)[counted]
    lines = [
        _roc_of(hits, t, view.rel, w, o) for t, w, o in zip(np.flatnonzero(counted), view.wanted, others, strict=True)
    ]
    areas = [float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2)) for x, y in lines]
    if len(lines) == 1:
        return *lines[0], areas[0]
    grid = np.linspace(0, 1, 101)
    heights = np.array([_at(grid, x, y) for x, y in lines]).reshape(len(lines), len(grid))
    return np.r_[0.0, grid], np.r_[0.0, _mean(heights)], float(np.mean(areas)) if areas else np.nan


def _roc_of(hits: Hits, topic: Any, rel: float, wanted: float, others: float) -> tuple[Floats, Floats]:
    """One topic's false and true positive rates after each rank, and straight on to (1, 1) for what was not returned."""
    relevant = np.zeros(int(hits.retrieved[topic]), bool)
    mine = (hits.topic == topic) & (hits.grade >= rel)
    relevant[hits.rank[mine] - 1] = True
    true, false = np.cumsum(relevant), np.cumsum(~relevant)
    x, y = ratio(np.r_[0, false, others], max(others, 1)), ratio(np.r_[0, true, wanted], max(wanted, 1))
    return np.minimum(x, 1.0), y


def _at(grid: Floats, x: Floats, y: Floats) -> Floats:
    """The height of a curve at each x of a grid; where it goes straight up or down, that of its later end."""
    answer: Floats = np.interp(grid, x, y)
    return answer


def _recall(view: _View) -> tuple[Floats, Floats, float]:
    recall = _mean(view.recall)
    return view.ranks, recall, float(recall.mean())


def _gain(view: _View) -> tuple[Floats, Floats, float]:
    gain = _discounted(np.maximum(view.grade, 0), view.ranks)
    ideal = _ideal_gain(view.hits, view.counted, view.ranks)
    return view.ranks, gain, float(ratio(gain.sum(), ideal.sum()))


def _ideal_gain(hits: Hits, counted: Any, ranks: Floats) -> Floats:
    return _discounted(np.nan_to_num(hits.ideal.grid(len(ranks))[counted], nan=0.0), ranks)


def _discounted(gain: Floats, ranks: Floats) -> Floats:
    """The mean over topics of the discounted gain down to each rank."""
    return _mean(np.cumsum(gain / np.log2(ranks + 1), axis=1))


_DRAWN: dict[str, Callable[[_View], Any]]
_DRAWN = {"pr": _pr, "pr11": _pr11, "roc": _roc, "recall": _recall, "gain": _gain}


def _crossed(one: Curve, other: Curve) -> list[float]:
    """Where along x the one that was above comes to lie below."""
    grid = np.union1d(one.x, other.x)
    apart = _at(grid, one.x, one.y) - _at(grid, other.x, other.y)
    clear = np.flatnonzero(np.abs(apart) > 1e-9)
    turns = np.flatnonzero(np.diff(np.sign(apart[clear])) != 0)
    a, b = clear[turns], clear[turns + 1]
    places: list[float] = (grid[a] + apart[a] / (apart[a] - apart[b]) * (grid[b] - grid[a])).tolist()
    return places
