"""Charts: a title, two axes and marks; written as Vega-Lite, as files drawn from that, or as SVG for a page.

A `Chart` is the only description. `vega_lite` writes it for `.vl.json` and for vl-convert (the extra `plots`), which
draws files; `svg` draws it for a page, without any extra and with the page's colours.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import DataError
from cranfield.base.optional_packages import needed
from cranfield.base.text_layout import in_line
from cranfield.reports import marks as draw
from cranfield.reports.marks import Axis, ChartMark, Frame, Looks, Spec
from cranfield.reports.svg import COLOURS, GREY, n, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


ENDINGS = ("svg", "png", "pdf", "html", "json")
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
CONFIG = {
    "axis": {"labelFontSize": 12, "titleFontSize": 13, "gridColor": "#e5e5e5", "domainColor": "#555555"},
    "legend": {"labelFontSize": 12, "labelLimit": 320},
    "title": {"fontSize": 15, "subtitleFontSize": 12, "subtitleColor": "#444444", "subtitlePadding": 6},
    "view": {"stroke": None},
}
LABELLED = 60  # the maximum number of bars with names
STANDING_IN = "\ue03c"  # replaces < on the way through vl-convert
MARKERS = 12  # the maximum number of points with a shape per curve


@dataclass
class Chart:
    """A chart: title, axes, the rows that most marks share, and the marks from back to front."""

    title: str
    x: Axis
    y: Axis
    rows: list[Spec]
    marks: list[ChartMark]
    subtitle: list[str] = field(default_factory=list)
    width: int = 520
    height: int = 320
    looks: Looks | None = None

    def vega_lite(self) -> Spec:
        """The chart as a Vega-Lite specification."""
        layers = [layer for mark in self.marks for layer in mark.vega_lite(self.x, self.y)]
        head: Spec = {"text": self.title, "anchor": "start", "offset": 12}
        head |= {"subtitle": self.subtitle} if self.subtitle else {}
        shared: Spec = {}
        if self.x.free is not None:  # curves: all layers share one x
            head = {"text": self.title, "subtitle": self.subtitle, "anchor": "start", "offset": 12}
            shared = {"encoding": {"x": self.x.vega_lite()}}
            for layer in layers:
                del layer["encoding"]["x"]
        size = {"width": self.width, "height": self.height, "background": "white"}
        data = {"data": {"values": self.rows}, **shared, "layer": layers}
        return {"$schema": SCHEMA, "title": head, **size, **data, "config": CONFIG}

    def svg(self, identity: str, description: str = "") -> str:
        """The chart as an `<svg>` element with a title, and a description for readers who cannot see it.

        >>> drawing = bar_chart([("q1", 0.2)], "topic", "difference", "By topic").svg("c")
        >>> drawing[:4], drawing.count('<rect class="mark')
        ('<svg', 1)
        """
        frame = Frame(self.x, self.y, self.width, self.height)
        text = description or ". ".join(self.subtitle) or self.title
        return (
            f'<svg class="chart" viewBox="0 0 {n(frame.full_width)} {n(frame.full_height)}" role="img" '
            f'width="{n(frame.full_width)}" height="{n(frame.full_height)}" '
            f'aria-labelledby="{identity}-t {identity}-d"><title id="{identity}-t">{words(self.title)}</title>'
            f'<desc id="{identity}-d">{words(text)}</desc><g transform="translate({n(frame.left)},{n(frame.top)})">'
            f"{frame.axes()}{''.join(mark.svg(frame) for mark in self.marks)}</g></svg>"
        )

    def legend(self) -> str:
        """The names of the colours as a list, each with a sample; empty if the chart has no named colours."""
        samples = self.looks.legend() if self.looks else []
        samples += [sample for mark in self.marks if isinstance(mark, draw.Bars) for sample in mark.legend()]
        return f'<ul class="legend">{"".join(f"<li>{sample}</li>" for sample in samples)}</ul>' if samples else ""


@dataclass
class Panels:
    """Several charts, one above the other."""

    charts: list[Chart]
    spacing: int | None = None

    def vega_lite(self) -> Spec:
        """The charts as one Vega-Lite specification."""
        specs = [chart.vega_lite() for chart in self.charts]
        if self.spacing is None:
            return {"$schema": SCHEMA, "vconcat": specs, "config": CONFIG}
        shared = {"$schema": SCHEMA, "config": CONFIG, "background": "white"} if specs else {}
        inner = [{key: value for key, value in spec.items() if key not in shared} for spec in specs]
        named = any(chart.looks is not None and chart.looks.named for chart in self.charts)
        own = (
            {"resolve": {"scale": dict.fromkeys(draw.CHANNELS, "independent")}} if named else {}
        )  # legends of their own
        return {**shared, "vconcat": inner, "spacing": self.spacing, **own}


def folded_lines(notes: Sequence[str]) -> list[str]:
    """Sentences as the lines of a subtitle."""
    import textwrap

    return [line for note in notes for line in textwrap.wrap(note, 84)]


# files


def rendered(chart: Chart | Panels, ending: str) -> bytes:
    """A chart as the bytes of an .svg, .png, .pdf, .html (which needs no network) or .json (Vega-Lite) file."""
    if ending not in ENDINGS:
        raise DataError(f"a chart is written as {', '.join(f'.{each}' for each in ENDINGS)}, not as {ending!r}")
    spec = _with_backslashes(spelt_out(chart.vega_lite()))
    if ending == "json":
        return (json.dumps(spec, indent=2) + "\n").encode()
    vl_convert = needed("vl_convert", "a .json file holds a chart as Vega-Lite; other charts need")
    if ending == "svg":
        return str(vl_convert.vegalite_to_svg(spec)).encode()
    if ending == "png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=2))
    if ending == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(spec))
    page = str(vl_convert.vegalite_to_html(spelt_out(spec, lambda text: text.replace("<", STANDING_IN)), bundle=True))
    return page.replace(STANDING_IN, "\\u003c").encode()  # a name must not end the script that contains it


def spelt_out(part: Any, change: Callable[[str], str] = in_line) -> Any:
    """A specification with all texts changed; by default control characters, which stop vl-convert, are made visible."""
    if isinstance(part, str):
        return change(part)
    if isinstance(part, dict):
        return {key: spelt_out(each, change) for key, each in part.items()}
    return [spelt_out(each, change) for each in part] if isinstance(part, list) else part


def _with_backslashes(part: Any) -> Any:
    """A specification whose titles keep their backslashes: Vega-Lite puts a field's title into an expression unescaped."""
    if isinstance(part, list):
        return [_with_backslashes(each) for each in part]
    if not isinstance(part, dict):
        return part
    fields = {key: _with_backslashes(each) for key, each in part.items() if key != "values"}
    title = part.get("title")
    if "field" in part and isinstance(title, str) and "\\" in title:
        fields["title"] = title.replace("\\", r"\\")
        if "scale" in part:
            guide = "axis" if "axis" in part else "legend"
            fields[guide] = {**fields.get(guide, {}), "title": title}
    return {**part, **fields}


# Makers of common charts. They take plain values and do not know what these mean.


def line_chart(
    series: Mapping[str, tuple[Iterable[float], Iterable[float]]],
    x: str,
    y: str,
    title: str,
    *,
    subtitle: Sequence[str] = (),
    bands: Mapping[str, tuple[Iterable[float], Iterable[float]]] | None = None,
    x_domain: tuple[float, float] | None = None,
    y_domain: tuple[float, float] | None = None,
    rules: Mapping[str, float] | None = None,
    points: bool = True,
    whole: bool = False,
) -> Chart:
    """Lines, one name → (xs, ys) each; `bands` give a name's lows and highs, `rules` are labelled heights.

    With `whole` (for days), the ticks of the x axis are whole numbers.

    >>> chart = line_chart({"t-test": ([10, 20], [0.4, 0.7])}, "topics", "power", "Power", y_domain=(0, 1))
    >>> [type(mark).__name__ for mark in chart.marks], chart.y.domain
    (['RunLines', 'RunPoints'], [0, 1])
    """
    points_of = {name: list(zip(map(float, xs), map(float, ys), strict=True)) for name, (xs, ys) in series.items()}
    rows: list[Spec] = [
        {"run": name, "x": at, "y": height, "nth": i, "marked": i % max(1, len(pairs) // MARKERS) == 0}
        for name, pairs in points_of.items()
        for i, (at, height) in enumerate(pairs)
    ]
    shades: list[Spec] = []
    for name, (lows, highs) in (bands or {}).items():
        edges = zip([at for at, _ in points_of[name]], lows, highs, strict=True)
        shades += [{"run": name, "x": at, "low": float(low), "high": float(high)} for at, low, high in edges]
    levels = [{"name": name, "level": float(level)} for name, level in (rules or {}).items()]
    heights = [row["y"] for row in rows] + [row[k] for row in shades for k in ("low", "high")]
    heights += [row["level"] for row in levels]
    looks = Looks(list(points_of), len(points_of) > 1, points)
    marks: list[ChartMark] = [draw.Band(shades, looks)] if shades else []
    marks += [draw.RunLines(rows, looks)]
    marks += [draw.RunPoints(rows, looks, hints=_hints("run", x=x, y=y))] if points else []
    marks += [draw.Levels(levels)] if levels else []
    across = _quantity("x", x, [row["x"] for row in rows], x_domain, whole=whole)
    height = _quantity("y", y, heights, y_domain)
    return Chart(title, across, height, rows, marks, folded_lines(subtitle), looks=looks)


def interval_chart(
    rows: Sequence[tuple[str, float, float, float]],
    x: str,
    title: str,
    *,
    subtitle: Sequence[str] = (),
    domain: tuple[float, float] | None = None,
    rule: float | None = None,
    whole: bool = False,
    format: str = ".3f",
) -> Chart:
    """Points with intervals, one (name, value, low, high) below the other; `rule` is a line to compare with.

    With `whole` (for ranks), the ticks are whole numbers. An interval that is NaN is not drawn.

    >>> chart = interval_chart([("dense", 0.04, 0.03, 0.05)], "difference", "Against bm25", rule=0)
    >>> [type(mark).__name__ for mark in chart.marks]
    ['UprightRule', 'Spans', 'Points']
    """
    keys = ("value", "low", "high")
    data: list[Spec] = [{"name": name, **dict(zip(keys, map(_number, ends), strict=True))} for name, *ends in rows]
    numbers = [row[key] for row in data for key in keys if row[key] is not None]
    numbers += [] if rule is None else [rule]
    across = _quantity("value", x, numbers, domain, whole=whole, format=format)
    marks: list[ChartMark] = [] if rule is None else [draw.UprightRule([{"at": rule}])]
    marks += [draw.Spans(data), draw.Points(data, 80, "value", "name", hints=_hints("name", *keys))]
    names, height = Axis("name", None, [row[0] for row in rows]), 22 * max(len(rows), 2)
    return Chart(title, across, names, data, marks, folded_lines(subtitle), height=height)


def bar_chart(
    rows: Sequence[tuple[str, float]],
    x: str,
    y: str,
    title: str,
    *,
    subtitle: Sequence[str] = (),
    domain: tuple[float, float] | None = None,
    signs: tuple[str, str, str] | None = None,
    format: str = ".2f",
) -> Chart:
    """Bars side by side, in the order given. `signs` name values above 0, 0 and below 0, and colour the bars.

    >>> chart = bar_chart([("q1", 0.2), ("q2", -0.1)], "topic", "difference", "By topic", signs=("up", "equal", "down"))
    >>> [row["sign"] for row in chart.rows]
    ['up', 'down']
    """
    data: list[Spec] = [{"name": name, "value": _number(value)} for name, value in rows]
    shades: Spec | None = None
    if signs is not None:
        for row in data:
            row["sign"] = signs[0] if (row["value"] or 0) > 0 else signs[2] if (row["value"] or 0) < 0 else signs[1]
        colours = zip(signs, [COLOURS[0], GREY, COLOURS[1]], strict=True)
        shades = {sign: colour for sign, colour in colours if any(row["sign"] == sign for row in data)}
    numbers = [0.0, *(row["value"] for row in data if row["value"] is not None)]
    across = Axis("name", x, [name for name, _ in rows], labels=len(rows) <= LABELLED)
    height = _quantity("value", y, numbers, domain, format=format)
    marks: list[ChartMark] = [draw.Bars(data, shades, hints=_hints("name", value=y)), draw.ZeroLine([{}])]
    return Chart(title, across, height, data, marks, folded_lines(subtitle), width=min(760, max(320, 13 * len(rows))))


def scatter_chart(
    points: Sequence[tuple[str, float, float]],
    x: str,
    y: str,
    title: str,
    *,
    subtitle: Sequence[str] = (),
    domain: tuple[float, float] | None = None,
    diagonal: bool = True,
) -> Chart:
    """Points, one (name, x, y) each; with a `diagonal`, both axes have the same domain.

    >>> chart = scatter_chart([("q1", 0.2, 0.4)], "bm25", "dense", "Topic by topic", domain=(0, 1))
    >>> [type(mark).__name__ for mark in chart.marks]
    ['GreyLine', 'Points']
    """
    data: list[Spec] = [{"name": name, "x": _number(a), "y": _number(b)} for name, a, b in points]
    data = [row for row in data if row["x"] is not None and row["y"] is not None]
    xs, ys = [row["x"] for row in data], [row["y"] for row in data]
    both = [*xs, *ys] if diagonal else None
    across, height = _quantity("x", x, both or xs, domain), _quantity("y", y, both or ys, domain)
    marks: list[ChartMark] = [draw.GreyLine([{"x": end, "y": end} for end in across.domain])] if diagonal else []
    marks += [draw.Points(data, 45, opacity=0.75, hints=_hints("name", x=x, y=y))]
    return Chart(title, across, height, data, marks, folded_lines(subtitle), 380, 380)


def histogram_chart(
    values: Iterable[float],
    x: str,
    title: str,
    *,
    subtitle: Sequence[str] = (),
    bins: int = 20,
    domain: tuple[float, float] | None = None,
    rules: Mapping[str, float] | None = None,
) -> Chart:
    """The number of values in each of `bins` equal bins; NaN values are left out.

    >>> [row["count"] for row in histogram_chart([0.1, 0.2, 0.9], "nDCG", "", bins=2, domain=(0, 1)).rows]
    [2, 1]
    """
    import numpy as np

    finite = np.array([value for value in values if value == value], float)
    low, high = domain or _nice_domain(finite.tolist())
    counts, edges = np.histogram(finite, bins=bins, range=(low, high))
    data = [{"from": float(edges[i]), "to": float(edges[i + 1]), "count": int(count)} for i, count in enumerate(counts)]
    height = _quantity("count", "count", [0.0, float(counts.max(initial=1))], None, whole=True)
    marks: list[ChartMark] = [draw.Bins(data, hints=_hints("from", "to", "count"))]
    marks += [draw.UprightRule([{"at": at}]) for at in (rules or {}).values()]
    lines = folded_lines([*subtitle, *(f"line: {name}" for name in rules or {})])
    return Chart(title, _quantity("from", x, [], (low, high)), height, data, marks, lines, height=240)


def strip_chart(
    groups: Mapping[str, Iterable[float]],
    boxes: Mapping[str, tuple[float, float, float, float]],
    x: str,
    title: str,
    *,
    subtitle: Sequence[str] = (),
    domain: tuple[float, float] | None = None,
) -> Chart:
    """One row per group: values as thin ticks, a box (first quartile, median, third quartile) and the mean as a point.

    >>> chart = strip_chart({"bm25": [0.1, 0.5]}, {"bm25": (0.2, 0.3, 0.4, 0.3)}, "AP", "Scores", domain=(0, 1))
    >>> [type(mark).__name__ for mark in chart.marks]
    ['Boxes', 'Ticks', 'Ticks', 'Points']
    """
    values = ((name, float(value)) for name, items in groups.items() for value in items)
    data: list[Spec] = [{"name": name, "value": value} for name, value in values if value == value]
    keys = ("lower", "median", "upper", "mean")
    summary = [{"name": name, **dict(zip(keys, map(_number, box), strict=True))} for name, box in boxes.items()]
    marks: list[ChartMark] = [
        draw.Boxes(summary, hints=_hints("name", *keys)),
        draw.Ticks(data, opacity=0.55),
        draw.Ticks(summary, "median", 16, 2.5, own_rows=True),
        draw.Points(summary, 70, "mean", "name", colour=COLOURS[1], shape="diamond", own_rows=True),
    ]
    across, height = _quantity("value", x, [row["value"] for row in data], domain), 26 * max(len(groups), 2)
    return Chart(title, across, Axis("name", None, list(groups)), data, marks, folded_lines(subtitle), height=height)


def heat_chart(
    rows: Sequence[tuple[str, str, float]],
    x: str,
    y: str,
    value: str,
    title: str,
    *,
    subtitle: Sequence[str] = (),
    domain: tuple[float, float] = (0, 1),
) -> Chart:
    """A table of shades, one (column, row, value) per cell, in the order given; darker is higher.

    >>> heat_chart([("q1", "bm25", 0.5)], "topic", "run", "AP", "").rows
    [{'x': 'q1', 'y': 'bm25', 'value': 0.5}]
    """
    data = [{"x": column, "y": row, "value": _number(number)} for column, row, number in rows]
    columns, lines = list(dict.fromkeys(row[0] for row in rows)), list(dict.fromkeys(row[1] for row in rows))
    across = Axis("x", x, columns, labels=len(columns) <= LABELLED)
    marks: list[ChartMark] = [draw.HeatCells(data, value, domain, hints=_hints("x", "y", "value"))]
    width, height = min(760, max(320, 16 * len(columns))), 20 * max(len(lines), 2)
    return Chart(title, across, Axis("y", None, lines), data, marks, folded_lines(subtitle), width, height)


# axes


def _quantity(
    field: str,
    title: str,
    numbers: Sequence[float],
    domain: tuple[float, float] | None,
    *,
    whole: bool = False,
    format: str = "",
) -> Axis:
    """An axis of numbers with explicit domain and ticks."""
    low, high = domain or _nice_domain(numbers)
    places = ticks(low, high, whole=whole)
    digits = max((len(f"{place:.6f}".rstrip("0").partition(".")[2]) for place in places), default=0)
    number_format = "d" if digits == 0 and (whole or all(place == int(place) for place in places)) else f".{digits}f"
    sign = "+" if format.startswith("+") and number_format != "d" else ""
    return Axis(field, title, [low, high], places, f"{sign}{number_format}")


def _hints(*fields: str, **titles: str) -> list[Spec]:
    titled = ({"field": field, "title": title} for field, title in titles.items())
    return [*({"field": field} for field in fields), *titled]


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return float(value) if math.isfinite(value) else None


def _nice_domain(numbers: Sequence[float]) -> tuple[float, float]:
    finite = [number for number in numbers if math.isfinite(number)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    if low == high:
        low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    step = _step(low, high)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _step(low: float, high: float, most: int = 8) -> float:
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * (1 - 1e-9))


def ticks(low: float, high: float, most: int = 8, whole: bool = False) -> list[float]:
    """Round numbers from low to high, at most about `most` of them.

    >>> ticks(0, 1), ticks(-0.2, 0.3), ticks(1, 14, whole=True)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [-0.2, -0.1, 0.0, 0.1, 0.2, 0.3], [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0])
    """
    step = max(_step(low, high, most), 1.0) if whole else _step(low, high, most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]
