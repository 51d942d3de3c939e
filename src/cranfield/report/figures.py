"""Charts of answers: what is drawn of a curve, a board, a plan, a comparison, in one place.

Nothing is computed here: a curve's points come with what is drawn. `chart` knows each kind of answer by its class, and
`figure` the charts of a report by the name that `--chart` takes.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.compare.efficiency import Efficiency
from cranfield.compare.leaderboard import Leaderboard
from cranfield.curves import IDEAL, KINDS, Curves
from cranfield.describe import CollectionStats
from cranfield.design import Plans
from cranfield.errors import ConventionError, DataError
from cranfield.online.analyze import Analysis
from cranfield.pool.simulate import Simulation
from cranfield.report.charts import (
    COLOURS,
    CONFIG,
    DASHES,
    GREY,
    MARKERS,
    SCHEMA,
    SHAPES,
    bar_chart,
    by_run,
    folded_lines,
    heat_chart,
    histogram_chart,
    interval_chart,
    line_chart,
    scatter_chart,
    strip_chart,
)
from cranfield.stability import Stability

if TYPE_CHECKING:
    from cranfield.describe import Distribution
    from cranfield.report.charts import Spec
    from cranfield.report.reporting import Report


@singledispatch
def chart(answer: Any) -> Spec:
    """The Vega-Lite specification of an answer.

    >>> chart(3)
    Traceback (most recent call last):
    cranfield.errors.ConventionError: there is no chart of an answer of the kind int
    """
    raise ConventionError(f"there is no chart of an answer of the kind {type(answer).__name__}")


@chart.register(Curves)
def _curves(curves: Curves) -> Spec:
    """Several curves in one picture, with their areas in the legend."""
    x, y, area, title = KINDS[curves.kind]
    names = {curve.run: f"{curve.run}  ({_area(area, curve.area)})" for curve in curves.curves}
    if IDEAL in names:
        names[IDEAL] = IDEAL
    values = []
    for curve in curves.curves:
        step, last = (float(curve.x.max()) - float(curve.x.min())) / MARKERS, -1e9
        for i, (at, height) in enumerate(zip(curve.x.tolist(), curve.y.tolist(), strict=True)):
            row = {"run": names[curve.run], "x": at, "y": height, "nth": i, "marked": at - last >= step}
            last = at if row["marked"] else last
            if curve.interpolated is not None:
                row["interpolated"] = float(curve.interpolated[i])
            values.append(row)
    order = list(names.values())
    crossing = curves.notes()[: 2 if len(curves.crossings()) > 1 else 1] if curves.crossings() else []
    return {
        "$schema": SCHEMA,
        "title": {
            "text": title,
            "subtitle": [
                f"mean over {curves.topics} topic{'' if curves.topics == 1 else 's'}",
                *folded_lines(crossing),
            ],
            "anchor": "start",
            "offset": 12,
        },
        "width": 520,
        "height": 360,
        "background": "white",
        "data": {"values": values},
        "encoding": {"x": _axis("x", x, 1 if x != "rank" else None)},
        "layer": _layers(curves.kind, y, order),
        "config": CONFIG,
    }


def _area(name: str, value: float) -> str:
    return f"{value:.3f} {name}" if name.startswith("of ") else f"{name} {value:.3f}"


def _layers(kind: str, y: str, order: list[str]) -> list[Spec]:
    height = _axis("y", y, 1 if kind != "gain" else None)
    dash, colour = by_run(order, DASHES, legend=False), by_run(order, COLOURS)
    line = {
        "mark": {"type": "line", "strokeWidth": 2.2},
        "encoding": {
            "y": height,
            "color": colour,
            "strokeDash": dash,
            "order": {"field": "nth", "type": "quantitative"},
        },
    }
    points = {
        "transform": [{"filter": "datum.marked"}],
        "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
        "encoding": {"y": height, "color": colour, "shape": by_run(order, SHAPES)},
    }
    layers: list[Spec] = [line, points]
    if kind == "pr":
        best = {"field": "interpolated", "type": "quantitative", "title": y}
        steps = {
            "mark": {"type": "line", "interpolate": "step-before", "strokeWidth": 1, "opacity": 0.55},
            "encoding": {"y": best, "color": colour, "order": {"field": "nth", "type": "quantitative"}},
        }
        layers.insert(0, steps)
    if kind == "roc":
        rule = {
            "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
            "mark": {"type": "line", "color": "#999999", "strokeWidth": 1, "strokeDash": [3, 3]},
            "encoding": {"y": {"field": "y", "type": "quantitative"}, "color": {"value": "#999999"}},
        }
        layers.insert(0, rule)
    return layers


def _axis(field: str, title: str, top: float | None) -> Spec:
    axis: Spec = {"field": field, "type": "quantitative", "title": title}
    if top is not None:
        axis["scale"] = {"domain": [0, top]}
    elif field == "x":
        axis["axis"] = {"tickMinStep": 1, "format": "d"}
        axis["scale"] = {"zero": False}
    return axis


@chart.register(Leaderboard)
def _board(board: Leaderboard) -> Spec:
    """The ranks of a leaderboard with their intervals, best above."""
    rows = [(row.run, row.rank, row.low or row.rank, row.high or row.rank) for row in board.rows]
    title = f"Ranks by {board.sort}, with {100 * board.level:g} % intervals ({board.rank_intervals})"
    return interval_chart(rows, "rank", title, domain=(1, max(2, len(rows))), whole=True)


@chart.register(Plans)
def _power(plans: Plans) -> Spec:
    """Power by number of topics, a line a test (and measure, where there are several)."""
    several = len(plans.plans) > 1
    series = {}
    for plan in plans.plans:
        for each in plan.tests:
            points = [(size, y) for size, y in zip(plan.sizes, each.curve, strict=True) if not math.isnan(y)]
            name = f"{plan.measure}: {each.test}" if several else each.test
            if points:
                series[name] = [x for x, _ in points], [y for _, y in points]
    first = plans.plans[0]
    facts = [f"{plan.measure or 'to find'}: difference {plan.difference:.4g}, {plan.about}" for plan in plans.plans]
    wanted = {f"power {first.power:g}": first.power}
    return line_chart(
        series, "topics", "power", "Power by number of topics", subtitle=facts, y_domain=(0, 1), rules=wanted
    )


@chart.register(Stability)
def _stability(stability: Stability) -> Spec:
    """The one part that was asked for."""
    if len(stability.parts) != 1 or stability.parts[0] not in STABILITY_PARTS:
        drawn = ", ".join(STABILITY_PARTS)
        raise ConventionError(f"a chart shows one part, one of {drawn}; found {', '.join(stability.parts)}")
    return STABILITY_PARTS[stability.parts[0]](stability)


def _levels(stability: Stability) -> Spec:
    """Achieved significance levels: the p-values of all pairs, sorted; the lower a curve, the more is told apart."""
    series = {}
    for each in sorted(stability.discrimination, key=lambda each: -each.power):
        ranks = [i + 1.0 for i in range(len(each.levels))]
        series[f"{each.measure} ({100 * each.power:.1f} %)"] = ranks, list(each.levels)
    test = stability.settings["test"]
    alpha = stability.settings["alpha"]
    alone = list(series) if len(series) == 1 else []  # a single line has no legend
    said = [*alone, f"p-values of all pairs of runs by {test}, largest first; in brackets the share below {alpha:g}"]
    rules = {f"alpha {alpha:g}": alpha}
    title = "Achieved significance levels"
    return line_chart(
        series, "pairs of runs, by p", "p", title, subtitle=said, y_domain=(0, 1), rules=rules, points=False
    )


def _halves(stability: Stability) -> Spec:
    kinds = list(dict.fromkeys(each.kind for each in stability.halves))
    shown = [each for each in stability.halves if each.kind == kinds[0]]
    series = {each.measure: _columns([point[:2] for point in each.curve]) for each in shown}
    bands = None
    if len(shown) == 1:
        kept = [point for point in shown[0].curve if not math.isnan(point[1])]
        bands = {shown[0].measure: ([point[2] for point in kept], [point[3] for point in kept])}
    title = f"Agreement of two separate sets of topics ({kinds[0]})"
    return line_chart(series, "topics in each set", kinds[0], title, bands=bands)


def _components(stability: Stability) -> Spec:
    series = {}
    for each in stability.generalisability:
        series[f"{each.measure}: Eρ²"] = _columns([(size, e_rho2) for size, e_rho2, _ in each.curve])
        series[f"{each.measure}: Φ"] = _columns([(size, phi) for size, _, phi in each.curve])
    target = stability.settings["target"]
    title = "Reliability by number of topics (D-study)"
    return line_chart(series, "topics", "coefficient", title, y_domain=(0, 1), rules={f"{target:g}": target})


def _qrels(stability: Stability) -> Spec:
    name, points = next(iter(stability.means.items()))
    row = stability.qrels[0]
    values = ", ".join(f"{kind} {value:.3f}" for kind, value in row.values.items() if not math.isnan(value))
    return scatter_chart(
        points, row.first, row.second, f"{name} of each run under two sets of judgments", subtitle=[values]
    )


def _columns(points: list[Any]) -> tuple[list[float], list[float]]:
    kept = [(float(x), float(y)) for x, y in points if not math.isnan(y)]
    return [x for x, _ in kept], [y for _, y in kept]


STABILITY_PARTS = {"discrimination": _levels, "halves": _halves, "generalisability": _components, "qrels": _qrels}


SHARED = ("$schema", "config", "background")  # said once for the whole picture


@chart.register(CollectionStats)
def _distributions(stats: CollectionStats) -> Spec:
    """A histogram of each distribution that holds anything, one above the other."""
    histograms = [_histogram(one, stats.name) for one in stats.distributions.values() if len(one.values)]
    shared = {key: histograms[0][key] for key in SHARED if histograms and key in histograms[0]}
    inner = [{key: value for key, value in each.items() if key not in SHARED} for each in histograms]
    return {**shared, "vconcat": inner, "spacing": 28}


def _histogram(one: Distribution, name: str) -> Spec:
    bins = one.bins()
    low, width = bins[0][0], (bins[1][0] - bins[0][0]) if len(bins) > 1 else 1
    high = low + width * len(bins)
    beyond = bins[-1][1] >= high
    quantiles = one.quantiles()
    said = f"{one.unit}; mean {one.mean:.1f}, median {quantiles['median']:g}, maximum {quantiles['maximum']:g}"
    return histogram_chart(
        [min(value, bins[-1][0]) for value in one.values.tolist()],
        one.name,
        f"{name}: {one.name}",
        subtitle=[said, *(["the last bar holds all beyond it"] if beyond else [])],
        bins=len(bins),
        domain=(low, high),
    )


@chart.register(Simulation)
def _simulation(simulation: Simulation) -> Spec:
    """Relevant documents found by effort, a line a strategy, with the area under each in its name."""
    named = {
        f"{each.strategy}  ({each.area:.3f})": each for each in sorted(simulation.replays, key=lambda each: -each.area)
    }
    series = {}
    for name, each in named.items():
        last = len(each.curve) - 1
        series[name] = ([100 * i / last for i in range(last + 1)], [100 * share for share in each.curve])
    pool = f"{len(simulation.runs)} runs to depth {simulation.depth}, {simulation.topics} topics"
    return line_chart(
        series,
        "judged, % of the pool",
        "relevant documents found, %",
        "What each strategy finds",
        subtitle=[f"{pool}, {simulation.documents:,} documents"],
        x_domain=(0, 100),
        y_domain=(0, 100),
    )


@chart.register(Efficiency)
def _efficiency(efficiency: Efficiency) -> Spec:
    """Score against latency, a line through the Pareto front; runs without a latency are left out and named in the subtitle."""
    known = [row for row in efficiency.rows if row.latency is not None]
    x = f"{efficiency.latency} latency (ms)"
    said = [f"Pareto front: {', '.join(efficiency.front)}"] if efficiency.front else []
    spec = scatter_chart(
        [(row.run, row.latency or 0.0, row.score) for row in known],
        x,
        efficiency.measure,
        f"{efficiency.measure} against {efficiency.latency} latency",
        subtitle=[*said, *efficiency.notes()],
        diagonal=False,
    )
    across, height = (spec["layer"][-1]["encoding"][axis] for axis in "xy")
    front = sorted((row.latency, row.score) for row in known if row.on_front)
    line = {"type": "line", "color": GREY, "strokeWidth": 1.5, "strokeDash": [4, 3]}
    values = [{"x": wait, "y": score} for wait, score in front]
    labels = {
        "mark": {"type": "text", "align": "center", "dy": -10, "fontSize": 12},
        "encoding": {"x": across, "y": height, "text": {"field": "name"}},
    }
    spec["layer"] = [
        {"data": {"values": values}, "mark": line, "encoding": {"x": across, "y": height}},
        *spec["layer"],
        labels,
    ]
    return spec


# the charts of a report

BESIDE = 34  # letters of two names that fit beside an axis
CURVES = 7  # so many runs are told apart at once by colour


@chart.register(Analysis)
def _experiment(analysis: Analysis) -> Spec:
    """The interval of each primary over time, and the effect by day since the first exposure."""
    primaries = {each.metric for each in analysis.findings if not each.guards}
    drawn = []
    for points, x, title in (
        (analysis.history, "days since the start", "so far, by day"),
        (analysis.since, "day since the first exposure", "on each day since the first exposure"),
    ):
        for metric in sorted(primaries & {each.metric for each in points}):
            own = [each for each in points if each.metric == metric]
            names = dict.fromkeys(each.variant for each in own)
            lines = {name: _of_variant(own, name) for name in names}
            bands = {
                name: (
                    [e.effect.low for e in own if e.variant == name],
                    [e.effect.high for e in own if e.variant == name],
                )
                for name in names
            }
            drawn.append(
                line_chart(
                    lines,
                    x,
                    "difference",
                    f"{metric}: difference {title}",
                    bands=bands,
                    rules={"no difference": 0.0},
                    whole=True,
                )
            )
    if not drawn:
        raise ConventionError("there is no history to draw: ask for it (history=True), at a look or after the horizon")
    return drawn[0] if len(drawn) == 1 else {"$schema": SCHEMA, "vconcat": drawn, "config": CONFIG}


def _of_variant(points: list[Any], name: str) -> tuple[list[float], list[float]]:
    own = [each for each in points if each.variant == name]
    return [each.day for each in own], [each.effect.value for each in own]


def figure(
    report: Report, name: str, measure: str | None = None, one: str | None = None, other: str | None = None
) -> Spec:
    """A chart's specification. `measure` is the first if not given, `one` and `other` the pair that is shown first."""
    if name not in CHARTS:
        raise ConventionError(f"chart must be one of {', '.join(CHARTS)}, got {name!r}")
    chosen = report.measures[0] if measure is None else measure
    if chosen not in report.measures:
        raise DataError(f"no measure {chosen!r} in this comparison; there are {', '.join(report.measures)}")
    drawn: Spec = CHARTS[name](report, chosen, *report.shown_pair(one, other))
    return drawn


def differences(report: Report, measure: str, one: str, other: str) -> Spec:
    """The difference on each topic, the largest gain first."""
    gain = report.values(other, measure) - report.values(one, measure)
    topics = report.comparison.scores.topics
    rows = sorted(
        [(topic, value) for topic, value in zip(topics, gain.tolist(), strict=True) if value == value],
        key=lambda row: -row[1],
    )
    signs = f"{other} better", "equal", f"{one} better"
    title = f"{measure}: {other} against {one}, topic by topic"
    y = f"{other} − {one}" if len(other) + len(one) <= BESIDE else "other − one"
    signs = signs[::-1] if report.lower_is_better(measure) else signs
    return _with_queries(bar_chart(rows, "topic", y, title, signs=signs), report)


def scatter(report: Report, measure: str, one: str, other: str) -> Spec:
    """A point a topic: the one system's score across, the other's up."""
    columns = report.values(one, measure).tolist(), report.values(other, measure).tolist()
    points = list(zip(report.comparison.scores.topics, *columns, strict=True))
    where = "below" if report.lower_is_better(measure) else "above"
    title = f"{measure}: a point a topic; {where} the line {other} is better"
    return _with_queries(scatter_chart(points, one, other, title, domain=report.domain(measure)), report)


def _with_queries(spec: Spec, report: Report) -> Spec:
    """A chart of topics whose marks say what was asked, where that is known."""
    rows = [row for row in spec["data"]["values"] if report.queries.get(row["name"])]
    for row in rows:
        row["query"] = report.queries[row["name"]]
    for layer in spec["layer"] if rows else []:
        if "tooltip" in layer["encoding"]:
            layer["encoding"]["tooltip"].insert(1, {"field": "query", "type": "nominal"})
    return spec


def curves(report: Report, measure: str, one: str, other: str) -> Spec:
    """Precision at recall levels, of the best runs where there are many."""
    drawn = report.curves
    if drawn is None:
        raise DataError("no precision-recall curves: the comparison was made from scores, not from runs")
    return chart(Curves(drawn.kind, drawn.topics, shown_curves(report)))


def shown_curves(report: Report) -> list[Any]:
    """The curves of the best systems' runs, and of the baselines."""
    if report.curves is None:
        return []
    runs = [run for name in report.systems for run in report.comparison.runs_of(name)]
    wanted = [run for name in report.comparison.baselines for run in report.comparison.runs_of(name)][:CURVES]
    wanted += [run for run in runs if run not in wanted][: CURVES - len(wanted)]
    return [curve for curve in sorted(report.curves.curves, key=lambda c: runs.index(c.run)) if curve.run in wanted]


def distribution(report: Report, measure: str, one: str = "", other: str = "") -> Spec:
    """How a measure's values spread over topics, a row a system."""
    groups = {name: report.values(name, measure).tolist() for name in report.systems}
    title = f"{measure} over topics"
    said = ["a tick a topic; the box holds the middle half; the bar is the median, the diamond the mean"]
    return strip_chart(groups, quartiles(report, measure), measure, title, subtitle=said, domain=report.domain(measure))


def quartiles(report: Report, measure: str) -> dict[str, tuple[float, float, float, float]]:
    """Lower quartile, median, upper quartile and mean of each system."""
    boxes = {}
    for name in report.systems:
        values = report.values(name, measure)
        known = values[~np.isnan(values)]
        low, middle, high = np.percentile(known, [25, 50, 75]).tolist() if len(known) else [np.nan] * 3
        boxes[name] = low, middle, high, report.mean(name, measure)
    return boxes


def intervals(report: Report, measure: str, one: str = "", other: str = "") -> Spec:
    """The mean difference of each system to the reference, with its interval."""
    percent = f"{100 * report.comparison.level:g} %"
    kind = "one-sided " if report.comparison.one_sided else ""
    kind += "simultaneous " if report.comparison.simultaneous else ""
    title = f"{measure}: mean difference to {report.reference}, {kind}{percent} intervals"
    return interval_chart(interval_rows(report, measure), f"difference to {report.reference}", title, rule=0.0)


def interval_rows(report: Report, measure: str) -> list[tuple[str, float, float, float]]:
    """Each compared system's difference to the reference and its interval, as system − reference."""
    rows = []
    for name in report.systems:
        pair = report.pair(measure, report.reference, name) if name != report.reference else None
        if pair is not None and pair.one == report.reference:
            rows.append((name, pair.difference, pair.low, pair.high))
    finite = [end for row in rows for end in row[1:] if np.isfinite(end)]
    edge = 1.2 * max(map(abs, finite), default=0.0)  # an open end is drawn to beyond the others
    return [(name, middle, max(low, -edge), min(high, edge)) for name, middle, low, high in rows]


def ranks(report: Report, measure: str, one: str = "", other: str = "") -> Spec:
    """The rank of each run by its mean, and the ranks that it may truly have."""
    rows = rank_rows(report, measure)
    board = report.leaderboards[measure]
    title = f"{measure}: rank, with its {100 * board.level:g} % interval ({board.rank_intervals})"
    return interval_chart(rows, "rank", title, domain=(0.5, len(rows) + 0.5), whole=True)


def rank_rows(report: Report, measure: str) -> list[tuple[str, float, float, float]]:
    """System, rank, lowest and highest rank."""
    if measure not in report.leaderboards:
        raise DataError(f"no rank intervals by {measure}: the report was made without its leaderboard")
    nothing = float("nan")
    return [
        (row.run, float(row.rank), nothing if row.low is None else row.low, nothing if row.high is None else row.high)
        for row in report.leaderboards[measure].rows
    ]


def topics(report: Report, measure: str, one: str = "", other: str = "") -> Spec:
    """Every system's score on every topic as shades, the hardest topic to the right."""
    names = report.comparison.scores.topics
    table = np.array([report.values(system, measure) for system in report.systems])
    turn = 1 if report.lower_is_better(measure) else -1
    order = np.argsort(turn * np.nan_to_num(table).mean(axis=0), kind="stable").tolist()
    rows = [(names[t], system, float(table[s, t])) for s, system in enumerate(report.systems) for t in order]
    high = float(np.nanmax(table, initial=0.0)) or 1.0
    domain = report.domain(measure) or (min(0.0, float(np.nanmin(table, initial=0.0))), high)
    return heat_chart(rows, "topic", "run", measure, f"{measure}: every run on every topic", domain=domain)


CHARTS = {
    "differences": differences,
    "scatter": scatter,
    "pr": curves,
    "distribution": distribution,
    "ranks": ranks,
    "topics": topics,
    "intervals": intervals,
}
"""What `--chart` takes."""
