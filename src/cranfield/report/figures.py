"""The charts of a report, by name: what `--chart` takes, and what the page shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.curves import Curves
from cranfield.errors import ConventionError, DataError
from cranfield.report.charts import bar_chart, chart, heat_chart, interval_chart, scatter_chart, strip_chart

if TYPE_CHECKING:
    from cranfield.report.report import Report


BESIDE = 34  # letters of two names that fit beside an axis
CURVES = 7  # so many runs are told apart at once by colour


def figure(
    report: Report, name: str, measure: str | None = None, one: str | None = None, other: str | None = None
) -> dict[str, Any]:
    """A chart's specification. `measure` is the first if not given, `one` and `other` the pair that is shown first."""
    if name not in CHARTS:
        raise ConventionError(f"chart must be one of {', '.join(CHARTS)}, got {name!r}")
    chosen = report.measures[0] if measure is None else measure
    if chosen not in report.measures:
        raise DataError(f"no measure {chosen!r} in this comparison; there are {', '.join(report.measures)}")
    drawn: dict[str, Any] = CHARTS[name](report, chosen, *report.shown_pair(one, other))
    return drawn


def differences(report: Report, measure: str, one: str, other: str) -> dict[str, Any]:
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
    return bar_chart(rows, "topic", y, title, signs=signs[::-1] if report.lower_is_better(measure) else signs)


def scatter(report: Report, measure: str, one: str, other: str) -> dict[str, Any]:
    """A point a topic: the one system's score across, the other's up."""
    columns = report.values(one, measure).tolist(), report.values(other, measure).tolist()
    points = list(zip(report.comparison.scores.topics, *columns, strict=True))
    where = "below" if report.lower_is_better(measure) else "above"
    title = f"{measure}: a point a topic; {where} the line {other} is better"
    return scatter_chart(points, one, other, title, domain=report.domain(measure))


def curves(report: Report, measure: str, one: str, other: str) -> dict[str, Any]:
    """Precision at recall levels, of the best runs where there are many."""
    found = report.curves
    if found is None:
        raise DataError("no precision-recall curves: the comparison was made from scores, not from runs")
    return chart(Curves(found.kind, found.topics, shown_curves(report)))


def shown_curves(report: Report) -> list[Any]:
    """The curves of the best systems' runs, and of the baselines."""
    if report.curves is None:
        return []
    runs = [run for name in report.systems for run in report.comparison.runs_of(name)]
    wanted = [run for name in report.comparison.baselines for run in report.comparison.runs_of(name)][:CURVES]
    wanted += [run for run in runs if run not in wanted][: CURVES - len(wanted)]
    return [curve for curve in sorted(report.curves.curves, key=lambda c: runs.index(c.run)) if curve.run in wanted]


def distribution(report: Report, measure: str, one: str = "", other: str = "") -> dict[str, Any]:
    """How a measure's values spread over topics, a row a system."""
    groups = {name: report.values(name, measure).tolist() for name in report.systems}
    title = f"{measure} over topics"
    said = ["a tick a topic; the box holds the middle half; the bar is the median, the diamond the mean"]
    return strip_chart(groups, quartiles(report, measure), measure, title, subtitle=said, domain=report.domain(measure))


def quartiles(report: Report, measure: str) -> dict[str, tuple[float, float, float, float]]:
    """Lower quartile, median, upper quartile and mean of each system."""
    found = {}
    for name in report.systems:
        values = report.values(name, measure)
        known = values[~np.isnan(values)]
        low, middle, high = np.percentile(known, [25, 50, 75]).tolist() if len(known) else [np.nan] * 3
        found[name] = low, middle, high, report.mean(name, measure)
    return found


def intervals(report: Report, measure: str, one: str = "", other: str = "") -> dict[str, Any]:
    """The mean difference of each system to the reference, with its interval."""
    percent = f"{100 * report.comparison.level:g} %"
    title = f"{measure}: mean difference to {report.reference}, {percent} intervals"
    return interval_chart(interval_rows(report, measure), f"difference to {report.reference}", title, rule=0.0)


def interval_rows(report: Report, measure: str) -> list[tuple[str, float, float, float]]:
    """Each compared system's difference to the reference and its interval, as system − reference."""
    rows = []
    for name in report.systems:
        pair = report.pair(measure, report.reference, name) if name != report.reference else None
        if pair is not None and pair.one == report.reference:
            rows.append((name, pair.difference, pair.low, pair.high))
    return rows


def ranks(report: Report, measure: str, one: str = "", other: str = "") -> dict[str, Any]:
    """The ranks that each system takes when topics are drawn anew."""
    rows = rank_rows(report, measure)
    title = f"{measure}: rank, with its {100 * report.comparison.level:g} % interval over topics"
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


def topics(report: Report, measure: str, one: str = "", other: str = "") -> dict[str, Any]:
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
