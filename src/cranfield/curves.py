"""Curves: how precision, recall and gain grow down the ranking, averaged over topics, for several runs.

A curve of several topics is the mean of theirs at each rank (or recall level, or false-positive rate). Recall that is
never reached has precision 0: a curve that merely ended there would flatter a run that stops early.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.columns import aligned
from cranfield.errors import ConventionError
from cranfield.evaluate import Evaluator
from cranfield.hits import ratio
from cranfield.measures import measure

if TYPE_CHECKING:
    from collections.abc import Iterator

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
LEVELS = np.arange(11) / 10


@dataclass
class Curve:
    """One run's points, and the area that the legend shows. `interpolated` is there for `pr` only."""

    run: str
    x: Floats
    y: Floats
    area: float
    interpolated: Floats | None = None


@dataclass
class Curves:
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
        shown = [curve for curve in self.curves if curve.run != IDEAL]
        found = []
        for i, one in enumerate(shown):
            for other in shown[i + 1 :]:
                places = _crossed(one, other)
                if places:
                    found.append((one.run, other.run, places))
        return found

    def notes(self) -> list[str]:
        """Where curves cross and what that means, a sentence each; what a ROC curve supposes."""
        x = self.axes[0]
        notes = [
            f"{one} and {other} cross at {x} {', '.join(f'{place:.3g}' for place in places[:3])}"
            f"{' …' if len(places) > 3 else ''}: neither is better throughout, and the area hides which is better where"
            for one, other, places in self.crossings()
        ]
        return [*notes, self.negatives] if self.negatives else notes

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row a point: the run, x and y by name, and for `pr` the interpolated precision."""
        x, y = self.axes
        for curve in self.curves:
            for i in range(len(curve.x)):
                row: dict[str, Any] = {"run": curve.run, x: float(curve.x[i]), y: float(curve.y[i])}
                if curve.interpolated is not None:
                    row["interpolated"] = float(curve.interpolated[i])
                yield row

    def to_dict(self) -> dict[str, Any]:
        """Plain values: kind, axes, areas, points by run, and where curves cross."""
        crossings = [{"runs": [one, other], "at": places} for one, other, places in self.crossings()]
        runs = [
            {
                "run": curve.run,
                "area": curve.area,
                "points": [
                    {k: v for k, v in row.items() if k != "run"} for row in self.rows() if row["run"] == curve.run
                ],
            }
            for curve in self.curves
        ]
        answer = {"kind": self.kind, "area": KINDS[self.kind][2], "topics": self.topics, "runs": runs}
        return {**answer, "crossings": crossings, "notes": self.notes()}

    def to_csv(self, delimiter: str = ",") -> str:
        """A header and a row a point."""
        import csv
        import io

        file = io.StringIO()
        rows = list(self.rows())
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerows([list(rows[0]), *(list(row.values()) for row in rows)])
        return file.getvalue()

    def to_text(self, digits: int = 4, limit: int | None = None) -> str:
        """A table for people: a row a point, and the areas below."""
        rows = list(self.rows())
        cells = [[row["run"], *(_shown(value, digits) for key, value in row.items() if key != "run")] for row in rows]
        areas = [[curve.run, f"{curve.area:.{digits}f}"] for curve in self.curves]
        table = aligned([list(rows[0]), *cells], 1, limit=limit)
        return "\n".join([*table, "", *aligned([["run", KINDS[self.kind][2]], *areas], 1)])

    def __repr__(self) -> str:
        return self.to_text()


def _shown(value: float, digits: int) -> str:
    return str(int(value)) if value == int(value) and value > 1 else f"{value:.{digits}f}"


def curves(
    qrels: Any,
    runs: Any,
    kind: str = "pr",
    *,
    rel: float = 1,
    depth: int = 1000,
    level: str = "exact",
    **options: Any,
) -> Curves:
    """The curves of one run or several, averaged over topics. Takes what `evaluate` takes.

    Kinds: `pr` (precision and recall at each rank, raw and interpolated), `pr11` (interpolated precision at recall 0,
    0.1 … 1), `roc`, `recall` and `gain` (by rank, the ideal beside it). `topics=["q1"]` gives one topic's curve.

    >>> found = curves({"q": {"a": 1, "c": 1}}, {"q": {"a": 3, "b": 2, "c": 1}}, "pr11")
    >>> found.curves[0].y.round(2).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.67, 0.67, 0.67, 0.67, 0.67]
    """
    evaluator = Evaluator(qrels, [measure(f"AP(rel={rel})"), measure(f"11pt(rel={rel}, level={level})")], **options)
    return curves_of(evaluator, runs, kind, rel, depth, level)


def curves_of(
    evaluator: Evaluator, runs: Any, kind: str, rel: float = 1, depth: int = 1000, level: str = "exact"
) -> Curves:
    """The curves of runs, with an evaluator of AP and 11pt that is ready."""
    if kind not in KINDS:
        raise ConventionError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if depth < 1:
        raise ConventionError(f"depth must be 1 or more, got {depth}")
    opened = [run for item in evaluator._items(runs) for run in evaluator.open(item)]
    scores = evaluator.evaluate(opened)
    size = evaluator.judgments.extras.size
    every: list[Curve] = []
    hits = [evaluator.hits(run) for run in opened]
    deepest = min(depth, max(int(each.retrieved.max(initial=1)) for each in hits) or 1)
    for r, name in enumerate(scores.runs):
        counted = np.zeros(evaluator.judgments.size, bool)
        counted[np.flatnonzero(evaluator.wanted)[scores.counted[r]]] = True
        view = _View(hits[r], counted, rel, deepest)
        if kind == "pr":
            every.append(_pr(name, view, float(scores.summary[r, 0])))
        elif kind == "pr11":
            every.append(_pr11(name, view, level, float(scores.summary[r, 1])))
        elif kind == "roc":
            every.append(_roc(name, view, size))
        elif kind == "recall":
            every.append(_recall(name, view))
        else:
            every.append(_gain(name, view))
    if kind == "gain":
        every.append(_ideal(_View(hits[0], evaluator.wanted, rel, deepest)))
    negatives = "" if kind != "roc" else _negatives(size)
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

    def __init__(self, hits: Hits, counted: Any, rel: float, depth: int) -> None:
        self.hits, self.counted, self.rel = hits, counted, rel
        grade = hits.grid(depth)[counted]
        self.grade = np.nan_to_num(grade, nan=0.0)
        self.rank = np.arange(1, depth + 1)
        with np.errstate(invalid="ignore"):
            self.relevant = np.nan_to_num(grade, nan=-np.inf) >= rel
        self.found = np.cumsum(self.relevant, axis=1)
        self.wanted = hits.n_relevant(rel)[counted].astype(np.float64)
        self.recall = ratio(self.found, self.wanted[:, None])


def _mean(values: Floats) -> Floats:
    answer: Floats = values.mean(axis=0) if len(values) else np.zeros(values.shape[1])
    return answer


def _pr(run: str, view: _View, area: float) -> Curve:
    recall, precision = _mean(view.recall), _mean(view.found / view.rank)
    if recall[-1] < 1:  # recall that is never reached has precision 0
        recall, precision = np.r_[recall, recall[-1], 1.0], np.r_[precision, 0.0, 0.0]
    best = np.maximum.accumulate(precision[::-1])[::-1][np.searchsorted(recall, recall)]  # at this recall or more
    return Curve(run, recall, precision, area, best)


def _pr11(run: str, view: _View, level: str, area: float) -> Curve:
    levels = [measure(f"IPrec(rel={view.rel}, level={level})@{recall:g}") for recall in LEVELS.tolist()]
    precision = np.stack([each(view.hits)[view.counted] for each in levels], axis=1)
    return Curve(run, LEVELS, _mean(precision), area)


def _roc(run: str, view: _View, size: int | None) -> Curve:
    """Vertical mean of the topics' curves; one topic's own points where there is one."""
    hits, counted = view.hits, view.counted
    judged_others = hits.judgments.count(hits.judgments.grade < view.rel)[counted]
    known = hits.where(hits.grade < view.rel).count()[counted]
    returned = hits.retrieved[counted]
    found = hits.relevant(view.rel).count()[counted]
    others = (size - view.wanted) if size is not None else judged_others - known + returned - found
    fits = [
        _roc_of(hits, t, view.rel, w, o) for t, w, o in zip(np.flatnonzero(counted), view.wanted, others, strict=True)
    ]
    areas = [float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2)) for x, y in fits]
    if len(fits) == 1:
        return Curve(run, fits[0][0], fits[0][1], areas[0])
    grid = np.linspace(0, 1, 101)
    lines = np.array([_at(grid, x, y) for x, y in fits]).reshape(len(fits), len(grid))
    return Curve(run, np.r_[0.0, grid], np.r_[0.0, _mean(lines)], float(np.mean(areas)) if areas else np.nan)


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


def _recall(run: str, view: _View) -> Curve:
    recall = _mean(view.recall)
    return Curve(run, view.rank.astype(np.float64), recall, float(recall.mean()))


def _gain(run: str, view: _View) -> Curve:
    gain = _mean(np.cumsum(np.maximum(view.grade, 0) / np.log2(view.rank + 1), axis=1))
    ideal = _ideal(view)
    return Curve(run, view.rank.astype(np.float64), gain, float(ratio(gain.sum(), ideal.y.sum())))


def _ideal(view: _View) -> Curve:
    best = view.hits.ideal.grid(len(view.rank))[view.counted]
    gain = _mean(np.cumsum(np.nan_to_num(best, nan=0.0) / np.log2(view.rank + 1), axis=1))
    return Curve(IDEAL, view.rank.astype(np.float64), gain, 1.0)


def _crossed(one: Curve, other: Curve) -> list[float]:
    """Where along x the one that was above comes to lie below."""
    grid = np.union1d(one.x, other.x)
    apart = _at(grid, one.x, one.y) - _at(grid, other.x, other.y)
    clear = np.flatnonzero(np.abs(apart) > 1e-9)
    signs = np.sign(apart[clear])
    turns = np.flatnonzero(np.diff(signs) != 0)
    places = []
    for turn in turns.tolist():
        a, b = clear[turn], clear[turn + 1]
        share = apart[a] / (apart[a] - apart[b])
        places.append(float(grid[a] + share * (grid[b] - grid[a])))
    return places
