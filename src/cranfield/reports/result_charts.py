"""The charts of results: curves, leaderboards, designs, simulations, comparisons.

Nothing is computed here. `chart` dispatches on the class of a result; `figure` makes the charts of a report by the name
that `--chart` takes; `picture` is the chart that a notebook shows above an answer's tables. Its style is part of the
picture, on a white background, because a notebook has its own themes.
"""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.results import Both, html_text
from cranfield.collections.describe import CollectionStats
from cranfield.comparison.design import PowerPlans
from cranfield.comparison.efficiency import Efficiency
from cranfield.comparison.leaderboard import Leaderboard
from cranfield.comparison.stability import Stability
from cranfield.evaluation.curves import IDEAL, KINDS, Curves
from cranfield.experiments.analyze import Analysis
from cranfield.experiments.clicks.click_summary import ClickSummary
from cranfield.pooling.simulation import Simulation
from cranfield.reports.charts import (
    MARKERS,
    Chart,
    Panels,
    bar_chart,
    folded_lines,
    heat_chart,
    histogram_chart,
    interval_chart,
    line_chart,
    scatter_chart,
    strip_chart,
    ticks,
)
from cranfield.reports.marks import Axis, ChartMark, GreyLine, Looks, PointNames, RunLines, RunPoints
from cranfield.reports.svg import COLOURS, GREY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.base.results import Answer
    from cranfield.collections.describe import Distribution
    from cranfield.reports.marks import Spec
    from cranfield.reports.report_content import Report


@singledispatch
def chart(answer: Any) -> Chart | Panels:
    """The chart of a result; ConventionError if it has none.

    >>> chart(3)
    Traceback (most recent call last):
    cranfield.base.errors.ConventionError: there is no chart of an answer of the kind int
    """
    raise ConventionError(f"there is no chart of an answer of the kind {type(answer).__name__}")


@chart.register(Curves)
def curve_chart(curves: Curves) -> Chart:
    """Several curves in one picture, with their areas in the legend."""
    x, y, area, title = KINDS[curves.kind]
    names = {curve.run: f"{curve.run}  ({_area(area, curve.area)})" for curve in curves.curves}
    if IDEAL in names:
        names[IDEAL] = IDEAL
    values: list[Spec] = []
    for curve in curves.curves:
        step, last = (float(curve.x.max()) - float(curve.x.min())) / MARKERS, -1e9
        for i, (at, height) in enumerate(zip(curve.x.tolist(), curve.y.tolist(), strict=True)):
            row = {"run": names[curve.run], "x": at, "y": height, "nth": i, "marked": at - last >= step}
            last = at if row["marked"] else last
            if curve.interpolated is not None:
                row["interpolated"] = float(curve.interpolated[i])
            values.append(row)
    crossing = curves.notes()[: 2 if len(curves.crossings()) > 1 else 1] if curves.crossings() else []
    looks = Looks(list(names.values()))
    marks: list[ChartMark] = [RunLines(values, looks), RunPoints(values, looks, 55)]
    if curves.kind == "pr":
        marks.insert(0, RunLines(values, looks, "interpolated", steps=True))
    if curves.kind == "roc":
        marks.insert(0, GreyLine([{"x": 0, "y": 0}, {"x": 1, "y": 1}]))
    return Chart(
        title,
        _axis("x", x, values, 1 if x != "rank" else None),
        _axis("y", y, values, 1 if curves.kind != "gain" else None),
        values,
        marks,
        [f"mean over {curves.topics} topic{'' if curves.topics == 1 else 's'}", *folded_lines(crossing)],
        height=360,
        looks=looks,
    )


def _area(name: str, value: float) -> str:
    return f"{value:.3f} {name}" if name.startswith("of ") else f"{name} {value:.3f}"


def _axis(field: str, title: str, rows: list[Spec], top: float | None) -> Axis:
    """An axis from 0 to `top`, or one whose ends follow from the data."""
    if top is not None:
        return Axis(field, title, [0, top], ticks(0, top), ".1f", free={"scale": {"domain": [0, top]}})
    numbers = [row[field] for row in rows] or [0.0]
    low, high = min(numbers), max(numbers)
    domain = [low if low < 0 or low >= 1 else 0.0, high if high > low else low + 1]
    if field == "x":
        free = {"axis": {"tickMinStep": 1, "format": "d"}, "scale": {"zero": False}}
        return Axis(field, title, domain, ticks(*domain), "d", free=free)
    return Axis(field, title, domain, ticks(*domain), ".1f", free={})


@chart.register(Leaderboard)
def _board(board: Leaderboard) -> Chart:
    """The ranks of a leaderboard with their intervals, best first."""
    rows = [(row.run, row.rank, row.low or row.rank, row.high or row.rank) for row in board.rows]
    title = f"Ranks by {board.sort}, with {100 * board.level:g} % intervals ({board.rank_intervals})"
    return interval_chart(rows, "rank", title, domain=(1, max(2, len(rows))), whole=True)


@chart.register(PowerPlans)
def _power(plans: PowerPlans) -> Chart:
    """Power by number of topics, one line per test (and measure, if there are several)."""
    several = len(plans.plans) > 1
    series = {}
    for plan in plans.plans:
        for each in plan.tests:
            points = [(size, y) for size, y in zip(plan.sizes, each.curve, strict=True) if not math.isnan(y)]
            name = f"{plan.measure}: {each.test}" if several else each.test
            if points:
                series[name] = _columns(points)
    first = plans.plans[0]
    facts = [f"{plan.measure or 'to find'}: difference {plan.difference:.4g}, {plan.about}" for plan in plans.plans]
    powers = {f"power {first.power:g}": first.power}
    title = "Power by number of topics"
    return line_chart(series, "topics", "power", title, subtitle=facts, y_domain=(0, 1), rules=powers)


@chart.register(Stability)
def _stability(stability: Stability) -> Chart:
    """The chart of the one requested part."""
    if len(stability.parts) != 1 or stability.parts[0] not in STABILITY_PARTS:
        parts = ", ".join(STABILITY_PARTS)
        raise ConventionError(f"a chart shows one part, one of {parts}; found {', '.join(stability.parts)}")
    return STABILITY_PARTS[stability.parts[0]](stability)


def _levels(stability: Stability) -> Chart:
    """Achieved significance levels: the sorted p-values of all pairs; a lower curve separates more pairs."""
    series = {}
    for each in sorted(stability.discrimination, key=lambda each: -each.power):
        ranks = [i + 1.0 for i in range(len(each.levels))]
        series[f"{each.measure} ({100 * each.power:.1f} %)"] = ranks, list(each.levels)
    test, alpha = stability.settings["test"], stability.settings["alpha"]
    alone = list(series) if len(series) == 1 else []  # a single line has no legend
    shown = f"p-values of all pairs of runs by {test}, largest first; in brackets the share below {alpha:g}"
    subtitle, rules = [*alone, shown], {f"alpha {alpha:g}": alpha}
    title = "Achieved significance levels"
    return line_chart(
        series, "pairs of runs, by p", "p", title, subtitle=subtitle, y_domain=(0, 1), rules=rules, points=False
    )


def _halves(stability: Stability) -> Chart:
    kinds = list(dict.fromkeys(each.kind for each in stability.halves))
    halves = [each for each in stability.halves if each.kind == kinds[0]]
    series = {each.measure: _columns([point[:2] for point in each.curve]) for each in halves}
    bands = None
    if len(halves) == 1:
        points = [point for point in halves[0].curve if not math.isnan(point[1])]
        bands = {halves[0].measure: ([point[2] for point in points], [point[3] for point in points])}
    title = f"Agreement of two separate sets of topics ({kinds[0]})"
    return line_chart(series, "topics in each set", kinds[0], title, bands=bands)


def _components(stability: Stability) -> Chart:
    series = {}
    for each in stability.generalisability:
        series[f"{each.measure}: Eρ²"] = _columns([(size, e_rho2) for size, e_rho2, _ in each.curve])
        series[f"{each.measure}: Φ"] = _columns([(size, phi) for size, _, phi in each.curve])
    target = stability.settings["target"]
    title = "Reliability by number of topics (D-study)"
    return line_chart(series, "topics", "coefficient", title, y_domain=(0, 1), rules={f"{target:g}": target})


def _qrels(stability: Stability) -> Chart:
    name, points = next(iter(stability.means.items()))
    row = stability.qrels[0]
    values = ", ".join(f"{kind} {value:.3f}" for kind, value in row.values.items() if not math.isnan(value))
    title = f"{name} of each run under two sets of judgments"
    return scatter_chart(points, row.first, row.second, title, subtitle=[values])


def _columns(points: list[Any]) -> tuple[list[float], list[float]]:
    finite = [(float(x), float(y)) for x, y in points if not math.isnan(y)]
    return [x for x, _ in finite], [y for _, y in finite]


STABILITY_PARTS = {"discrimination": _levels, "halves": _halves, "generalisability": _components, "qrels": _qrels}


@chart.register(CollectionStats)
def _distributions(stats: CollectionStats) -> Panels:
    """A histogram of each distribution with values, one above the other."""
    return Panels([_histogram(one, stats.name) for one in stats.distributions.values() if len(one.values)], spacing=28)


def _histogram(one: Distribution, name: str) -> Chart:
    bins = one.bins()
    low, width = bins[0][0], (bins[1][0] - bins[0][0]) if len(bins) > 1 else 1
    high = low + width * len(bins)
    beyond = bins[-1][1] >= high
    quantiles = one.quantiles()
    subtitle = f"{one.unit}; mean {one.mean:.1f}, median {quantiles['median']:g}, maximum {quantiles['maximum']:g}"
    return histogram_chart(
        [min(value, bins[-1][0]) for value in one.values.tolist()],
        one.name,
        f"{name}: {one.name}",
        subtitle=[subtitle, *(["the last bar holds all beyond it"] if beyond else [])],
        bins=len(bins),
        domain=(low, high),
    )


@chart.register(Simulation)
def _simulation(simulation: Simulation) -> Chart:
    """Relevant documents found by effort, one line per strategy, with the area under each in its name."""
    series = {}
    for each in sorted(simulation.replays, key=lambda each: -each.area):
        last, shares = len(each.curve) - 1, [100 * share for share in each.curve]
        series[f"{each.strategy}  ({each.area:.3f})"] = [100 * i / last for i in range(last + 1)], shares
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
def efficiency_chart(efficiency: Efficiency) -> Chart:
    """Score against latency, with a line through the Pareto front; the subtitle names runs without a latency."""
    with_latency = [row for row in efficiency.rows if row.latency is not None]
    x = f"{efficiency.latency} latency (ms)"
    subtitle = [f"Pareto front: {', '.join(efficiency.front)}"] if efficiency.front else []
    result = scatter_chart(
        [(row.run, row.latency or 0.0, row.score) for row in with_latency],
        x,
        efficiency.measure,
        f"{efficiency.measure} against {efficiency.latency} latency",
        subtitle=[*subtitle, *efficiency.notes()],
        diagonal=False,
    )
    front = sorted((row.latency, row.score) for row in with_latency if row.on_front)
    line = GreyLine([{"x": wait, "y": score} for wait, score in front], 1.5, [4, 3])
    result.marks = [line, *result.marks, PointNames(result.rows)]
    return result


# the charts of a report

BESIDE = 34  # letters of two names that fit next to an axis
CURVES = 7  # the maximum number of runs with different colours


@chart.register(Analysis)
def _experiment(analysis: Analysis) -> Chart | Panels:
    """The interval of each primary metric over time, and the effect by day since the first exposure."""
    primaries = {each.metric for each in analysis.findings if not each.guards}
    panels = []
    for points, x, title in (
        (analysis.history, "days since the start", "so far, by day"),
        (analysis.since, "day since the first exposure", "on each day since the first exposure"),
    ):
        for metric in sorted(primaries & {each.metric for each in points}):
            by_variant: dict[str, list[Any]] = {}
            for each in points:
                if each.metric == metric:
                    by_variant.setdefault(each.variant, []).append(each)
            lines = {name: ([e.day for e in own], [e.effect.value for e in own]) for name, own in by_variant.items()}
            ends = {
                name: ([e.effect.low for e in own], [e.effect.high for e in own]) for name, own in by_variant.items()
            }
            heading, none = f"{metric}: difference {title}", {"no difference": 0.0}
            panels.append(line_chart(lines, x, "difference", heading, bands=ends, rules=none, whole=True))
    if not panels:
        raise ConventionError("there is no history to draw: request it (history=True), at a look or after the horizon")
    return panels[0] if len(panels) == 1 else Panels(panels)


@chart.register(ClickSummary)
def _clicks(summary: ClickSummary) -> Panels:
    """Clicks by rank with the examination of ranks, and below it click-through by judged grade if there are two."""
    by_grade = [clicks_by_grade(summary)] if len(summary.grades) > 1 else []
    return Panels([clicks_by_rank(summary), *by_grade], spacing=28)


def clicks_by_rank(summary: ClickSummary) -> Chart:
    """The share of clicked pages by rank, and examination in the same unit: relative to rank 1, times the clicks there."""
    first, ranks = summary.ranks[0], [float(row.rank) for row in summary.ranks]
    series = {"clicks": (ranks, [row.share for row in summary.ranks])}
    bands = {"clicks": _ends(summary.ranks, "share", "low", "high")} if first.low == first.low else {}
    subtitle = [f"band: {100 * summary.level:g} % interval"] if bands else []
    examined = _columns([(row.rank, row.examination * first.share) for row in summary.ranks])
    if examined[0]:
        series[f"examination, by {summary.model}"] = examined
        subtitle.append("examination is scaled to the clicks at rank 1")
    drawing = line_chart(
        series,
        "rank",
        "share of pages with a click",
        "Clicks and examination by rank" if len(series) > 1 else "Clicks by rank",
        subtitle=["; ".join(subtitle)] if subtitle else [],
        bands=bands,
        x_domain=(0.5, ranks[-1] + 0.5),
        y_domain=_from_zero(series, bands),
        whole=True,
    )
    return _with_ticks(drawing, ranks)


def clicks_by_grade(summary: ClickSummary) -> Chart:
    """Click-through by judged grade, as it is and corrected for position, each with its interval where there is one."""
    names = {"per view": ("share", "low", "high")}
    if any(row.corrected == row.corrected for row in summary.grades):
        names[f"corrected for position, by {summary.model}"] = ("corrected", "corrected_low", "corrected_high")
    grades = [row.grade for row in summary.grades]
    series = {name: (grades, [float(getattr(row, each[0])) for row in summary.grades]) for name, each in names.items()}
    bands = {name: _ends(summary.grades, *each) for name, each in names.items()}
    margin = (grades[-1] - grades[0]) / 12 or 0.5
    drawing = line_chart(
        series,
        "judged grade",
        "click-through",
        "Click-through by judged grade",
        subtitle=[f"means over queries; band: {100 * summary.level:g} % interval"],
        bands=bands,
        x_domain=(grades[0] - margin, grades[-1] + margin),
        y_domain=_from_zero(series, bands),
        whole=all(grade == int(grade) for grade in grades),
    )
    return _with_ticks(drawing, grades)


def _ends(rows: Sequence[Any], value: str, low: str, high: str) -> tuple[list[float], list[float]]:
    """The ends of the intervals of rows; a row without an interval has its value at both."""
    columns = [[float(getattr(row, name)) for row in rows] for name in (value, low, high)]
    values, *ends = columns
    lows, highs = ([v if e != e else e for v, e in zip(values, column, strict=True)] for column in ends)
    return lows, highs


def _with_ticks(drawing: Chart, places: list[float]) -> Chart:
    """A chart with a tick at each of a few places, all of which have a value."""
    if len(places) <= MARKERS:
        drawing.x = replace(drawing.x, ticks=places)
    return drawing


def _from_zero(
    series: Mapping[str, tuple[list[float], list[float]]], bands: Mapping[str, tuple[list[float], list[float]]]
) -> tuple[float, float]:
    """The ends of an axis from 0 that holds lines and bands."""
    top = max(value for _, column in (*series.values(), *bands.values()) for value in column)
    if not top > 0:
        return 0.0, 1.0
    step = ticks(0, top)[1]
    return 0.0, math.ceil(top / step - 1e-9) * step


def figure(
    report: Report, name: str, measure: str | None = None, one: str | None = None, other: str | None = None
) -> Chart:
    """A chart of the report. `measure` defaults to the first, `one` and `other` to the pair that is shown first."""
    if name not in CHARTS:
        raise ConventionError(f"chart must be one of {', '.join(CHARTS)}, got {name!r}")
    own_measure = report.measures[0] if measure is None else measure
    if own_measure not in report.measures:
        raise DataError(f"no measure {own_measure!r} in this comparison; there are {', '.join(report.measures)}")
    result: Chart = CHARTS[name](report, own_measure, *report.shown_pair(one, other))
    return result


def differences(report: Report, measure: str, one: str, other: str) -> Chart:
    """The difference on each topic, the largest gain first."""
    gain = report.values(other, measure) - report.values(one, measure)
    topics = report.comparison.scores.topics
    defined = [(topic, value) for topic, value in zip(topics, gain.tolist(), strict=True) if value == value]
    rows = sorted(defined, key=lambda row: -row[1])
    signs = f"{other} better", "equal", f"{one} better"
    title = f"{measure}: {other} against {one}, topic by topic"
    y = f"{other} − {one}" if len(other) + len(one) <= BESIDE else "other − one"
    signs = signs[::-1] if report.lower_is_better(measure) else signs
    return _with_queries(bar_chart(rows, "topic", y, title, signs=signs), report)


def scatter(report: Report, measure: str, one: str, other: str) -> Chart:
    """One point per topic: one system's score on the x axis, the other's on the y axis."""
    columns = report.values(one, measure).tolist(), report.values(other, measure).tolist()
    points = list(zip(report.comparison.scores.topics, *columns, strict=True))
    where = "below" if report.lower_is_better(measure) else "above"
    title = f"{measure}: one point per topic; {where} the line {other} is better"
    return _with_queries(scatter_chart(points, one, other, title, domain=report.domain(measure)), report)


def _with_queries(chart: Chart, report: Report) -> Chart:
    """A chart of topics whose marks show the queries, if known."""
    rows = [row for row in chart.rows if report.queries.get(row["name"])]
    for row in rows:
        row["query"] = report.queries[row["name"]]
    for mark in chart.marks if rows else []:
        if mark.hints:
            mark.hints.insert(1, {"field": "query", "type": "nominal"})
    return chart


def curves(report: Report, measure: str, one: str, other: str) -> Chart:
    """Precision at recall levels, of the best runs if there are many."""
    curves = report.curves
    if curves is None:
        raise DataError("no precision-recall curves: the comparison was made from scores, not from runs")
    return curve_chart(Curves(curves.kind, curves.topics, shown_curves(report)))


def shown_curves(report: Report) -> list[Any]:
    """The curves of the best systems' runs, and of the baselines."""
    if report.curves is None:
        return []
    runs = [run for name in report.systems for run in report.comparison.runs_of(name)]
    selection = [run for name in report.comparison.baselines for run in report.comparison.runs_of(name)][:CURVES]
    selection += [run for run in runs if run not in selection][: CURVES - len(selection)]
    return [curve for curve in sorted(report.curves.curves, key=lambda c: runs.index(c.run)) if curve.run in selection]


def distribution(report: Report, measure: str, one: str = "", other: str = "") -> Chart:
    """The spread of a measure's values over topics, one row per system."""
    groups = {name: report.values(name, measure).tolist() for name in report.systems}
    title, boxes, domain = f"{measure} over topics", quartiles(report, measure), report.domain(measure)
    subtitle = ["one tick per topic; the box is the middle half, the bar the median, the diamond the mean"]
    return strip_chart(groups, boxes, measure, title, subtitle=subtitle, domain=domain)


def quartiles(report: Report, measure: str) -> dict[str, tuple[float, float, float, float]]:
    """Lower quartile, median, upper quartile and mean of each system."""
    boxes = {}
    for name in report.systems:
        values = report.values(name, measure)
        defined = values[~np.isnan(values)]
        low, middle, high = np.percentile(defined, [25, 50, 75]).tolist() if len(defined) else [np.nan] * 3
        boxes[name] = low, middle, high, report.mean(name, measure)
    return boxes


def intervals(report: Report, measure: str, one: str = "", other: str = "") -> Chart:
    """The mean difference of each system to the reference, with its interval."""
    percent = f"{100 * report.comparison.level:g} %"
    kind = "one-sided " if report.comparison.one_sided else ""
    kind += "simultaneous " if report.comparison.simultaneous else ""
    title = f"{measure}: mean difference to {report.reference}, {kind}{percent} intervals"
    return interval_chart(interval_rows(report, measure), f"difference to {report.reference}", title, rule=0.0)


def interval_rows(report: Report, measure: str) -> list[tuple[str, float, float, float]]:
    """The difference of each compared system to the reference and its interval, as system − reference."""
    rows = []
    for name in report.systems:
        pair = report.pair(measure, report.reference, name) if name != report.reference else None
        if pair is not None and pair.one == report.reference:
            rows.append((name, pair.difference, pair.low, pair.high))
    finite = [end for row in rows for end in row[1:] if np.isfinite(end)]
    edge = 1.2 * max(map(abs, finite), default=0.0)  # an open end is drawn beyond the others
    return [(name, middle, max(low, -edge), min(high, edge)) for name, middle, low, high in rows]


def ranks(report: Report, measure: str, one: str = "", other: str = "") -> Chart:
    """The rank of each run by its mean, with its interval."""
    if measure not in report.leaderboards:
        raise DataError(f"no rank intervals by {measure}: the report was made without its leaderboard")
    board = report.leaderboards[measure]
    ends = [[math.nan if end is None else float(end) for end in (row.low, row.high)] for row in board.rows]
    rows = [(row.run, float(row.rank), low, high) for row, (low, high) in zip(board.rows, ends, strict=True)]
    title = f"{measure}: rank, with its {100 * board.level:g} % interval ({board.rank_intervals})"
    return interval_chart(rows, "rank", title, domain=(0.5, len(rows) + 0.5), whole=True)


def topics(report: Report, measure: str, one: str = "", other: str = "") -> Chart:
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


OURS = ".cranfield-chart"
STYLE = (
    f"{OURS}{{background:#fff;color:#1a1f26;margin:0 0 1em;padding:.5em;display:inline-block}}"
    f"{OURS} figcaption{{font-weight:bold}}{OURS} figcaption span{{display:block;font-weight:normal;font-size:.9em}}"
    f"{OURS} svg.chart{{max-width:100%;height:auto;overflow:visible}}{OURS} text{{font:12px sans-serif;fill:#56606d}}"
    f"{OURS} text.name{{font-size:13px;fill:#1a1f26}}{OURS} .grid{{stroke:#d9dee5;fill:none}}"
    f"{OURS} .edge{{stroke:#8a8f96;fill:none}}{OURS} .line{{fill:none;stroke:var(--c)}}{OURS} .fill{{fill:var(--c)}}"
    f"{OURS} .legend{{display:flex;flex-wrap:wrap;gap:.2em 1.2em;list-style:none;padding:0;margin:.3em 0 0}}"
    + "".join(f"{OURS} .c{i}{{--c:{colour}}}" for i, colour in enumerate(COLOURS))
    + f"{OURS} .grey{{--c:{GREY}}}"
)


def picture(answer: Answer | None) -> str:
    """The charts of an answer as a piece of HTML; "" if it has none."""
    figures = "".join(map(_figure, charts_of(answer)))
    return f"<style>{STYLE}</style>{figures}" if figures else ""


def charts_of(answer: Answer | None) -> list[Chart]:
    """The charts of an answer, one below the other; of several answers, those of the first."""
    if isinstance(answer, Both):
        return charts_of(answer.first)
    if chart.dispatch(type(answer)) is chart.dispatch(object):
        return []
    try:
        result = chart(answer)
    except ConventionError:
        return []
    return result.charts if isinstance(result, Panels) else [result]


def _figure(chart: Chart) -> str:
    content = json.dumps(chart.vega_lite(), sort_keys=True).encode()
    identity = f"cranfield-{zlib.crc32(content):08x}"  # a page may have many charts
    below = " ".join(chart.subtitle)
    more = f"<span>{html_text(below)}</span>" if below else ""
    caption = f"<figcaption>{html_text(chart.title)}{more}</figcaption>"
    return f'<figure class="{OURS[1:]}">{caption}{chart.svg(identity)}{chart.legend()}</figure>'
