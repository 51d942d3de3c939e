"""Charts as Vega-Lite specifications, and as SVG, PNG, PDF or HTML files made from them offline.

A specification is the one description of a chart. Chart files are drawn from it by vl-convert (the extra `plots`); the
HTML report draws the same specification with `report.svg`, which knows just the marks and axes used here, needs no
extra and takes the page's colours. So that both draw the same picture, the makers below write domains, ticks and
orders out instead of leaving them to Vega.

Runs differ in colour, in dashes and in the shape of their points, so that a chart can be read without colour. The
colours are those of Okabe and Ito, which people with any kind of colour vision can tell apart.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from cranfield.columns import in_line
from cranfield.errors import DataError
from cranfield.extras import needed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Spec = dict[str, Any]


ENDINGS = ("svg", "png", "pdf", "html", "json")
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
DASHES = [[1, 0], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [14, 4], [3, 6]]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"]
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
LEGEND = {"orient": "bottom", "columns": 2, "symbolSize": 110, "symbolOpacity": 1, "symbolStrokeWidth": 0}
STROKES = {**LEGEND, "symbolType": "stroke", "symbolSize": 600, "symbolStrokeWidth": 2.2}
CONFIG = {
    "axis": {"labelFontSize": 12, "titleFontSize": 13, "gridColor": "#e5e5e5", "domainColor": "#555555"},
    "legend": {"labelFontSize": 12, "labelLimit": 320},
    "title": {"fontSize": 15, "subtitleFontSize": 12, "subtitleColor": "#444444", "subtitlePadding": 6},
    "view": {"stroke": None},
}
GREY = "#999999"
LABELLED = 60  # so many bars still carry their names
STANDING_IN = "\ue03c"  # for a < on the way through vl-convert
MARKERS = 12  # at most so many points of a curve carry a shape


def by_run(order: list[str], values: list[Any], legend: bool = True) -> Spec:
    """How the runs are told apart by a channel: one of the values each, in turn."""
    turn = {id(DASHES): 1, id(SHAPES): 2}.get(id(values), 0)  # the eighth run has the first's colour, not its dashes
    chosen = [values[(i + turn * (i // len(values))) % len(values)] for i in range(len(order))]
    return {
        "field": "run",
        "type": "nominal",
        "title": None,
        "sort": order,
        "scale": {"domain": order, "range": chosen},
        "legend": LEGEND if legend else None,
    }


def folded_lines(notes: Sequence[str]) -> list[str]:
    """Sentences as the lines of a subtitle."""
    import textwrap

    return [line for note in notes for line in textwrap.wrap(note, 84)]


def rendered(spec: dict[str, Any], ending: str) -> bytes:
    """A specification as the bytes of an .svg, .png, .pdf, .html (which needs no network) or .json file."""
    if ending not in ENDINGS:
        raise DataError(f"a chart is written as {', '.join(f'.{each}' for each in ENDINGS)}, not as {ending!r}")
    spec = _with_backslashes(spelt_out(spec))
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
    return page.replace(STANDING_IN, "\\u003c").encode()  # a name must not end the script that it stands in


def spelt_out(part: Any, change: Callable[[str], str] = in_line) -> Any:
    """A specification whose texts can all be seen, or are changed otherwise: a control character ends vl-convert."""
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
    known = {key: _with_backslashes(each) for key, each in part.items() if key != "values"}
    title = part.get("title")
    if "field" in part and isinstance(title, str) and "\\" in title:
        known["title"] = title.replace("\\", r"\\")
        if "scale" in part:
            guide = "axis" if "axis" in part else "legend"
            known[guide] = {**known.get(guide, {}), "title": title}
    return {**part, **known}


# Makers of common charts. They take plain values and know nothing of what these mean.


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
) -> Spec:
    """Lines, a name → (xs, ys) each; `bands` give a name's lows and highs, `rules` are labelled heights across.

    `whole` is for days: the ticks across are whole numbers.

    >>> spec = line_chart({"t-test": ([10, 20], [0.4, 0.7])}, "topics", "power", "Power", y_domain=(0, 1))
    >>> spec["layer"][0]["mark"]["type"], spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    ('line', [0, 1])
    """
    drawn = {name: _points(xs, ys) for name, (xs, ys) in series.items()}
    values: list[Spec] = [
        {"run": name, "x": at, "y": height, "nth": i, "marked": i % max(1, len(pairs) // MARKERS) == 0}
        for name, pairs in drawn.items()
        for i, (at, height) in enumerate(pairs)
    ]
    shades: list[Spec] = []
    for name, (lows, highs) in (bands or {}).items():
        edges = zip([at for at, _ in drawn[name]], lows, highs, strict=True)
        shades += [{"run": name, "x": at, "low": float(low), "high": float(high)} for at, low, high in edges]
    levels = [{"name": name, "level": float(level)} for name, level in (rules or {}).items()]
    heights = [row["y"] for row in values] + [row[k] for row in shades for k in ("low", "high")]
    heights += [row["level"] for row in levels]
    across = _quantity("x", x, [row["x"] for row in values], x_domain, whole=whole)
    height = _quantity("y", y, heights, y_domain)
    order = list(drawn)
    colour = by_run(order, COLOURS) if len(order) > 1 else {"value": COLOURS[0]}
    dash = by_run(order, DASHES, legend=False)
    if not points and len(order) > 1:  # no shapes to tell the lines by: the legend shows their dashes
        colour, dash = ({**encoded, "legend": STROKES} for encoded in (colour, dash))
    nth = {"field": "nth", "type": "quantitative"}
    drawing = {"x": across, "y": height, "color": colour, "strokeDash": dash, "order": nth}
    layers: list[Spec] = [{"mark": {"type": "line", "strokeWidth": 2.2}, "encoding": drawing}]
    if points:
        shape = by_run(order, SHAPES) if len(order) > 1 else {"value": SHAPES[0]}
        mark = {"type": "point", "filled": True, "size": 50, "opacity": 1}
        shown = [{"filter": "datum.marked"}]
        encoding = {"x": across, "y": height, "color": colour, "shape": shape, "tooltip": _hints("run", x=x, y=y)}
        layers.append({"transform": shown, "mark": mark, "encoding": encoding})
    if shades:
        low, high = {**height, "field": "low"}, {"field": "high"}
        band = {"mark": {"type": "area", "opacity": 0.18}, "data": {"values": shades}}
        layers.insert(0, {**band, "encoding": {"x": across, "y": low, "y2": high, "color": colour}})
    return _specification(title, subtitle, values, [*layers, *_labelled_rules(levels, height)])


def _labelled_rules(levels: list[Spec], height: Spec) -> list[Spec]:
    """Lines across at some heights, each with its name at the right end."""
    if not levels:
        return []
    rule = {"mark": {"type": "rule", "strokeDash": [4, 4], "color": GREY}, "data": {"values": levels}}
    text = {"mark": {"type": "text", "align": "right", "dy": -6, "dx": -4}, "data": {"values": levels}}
    at = {**height, "field": "level"}
    return [
        {**rule, "encoding": {"y": at}},
        {**text, "encoding": {"y": at, "x": {"value": 520}, "text": {"field": "name"}}},
    ]


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
) -> Spec:
    """Points with intervals, one (name, value, low, high) below the other; `rule` is a line to compare with.

    `whole` is for ranks: the ticks are whole numbers. An interval that is NaN is not drawn.

    >>> spec = interval_chart([("dense", 0.04, 0.03, 0.05)], "difference", "Against bm25", rule=0)
    >>> [layer["mark"]["type"] for layer in spec["layer"]]
    ['rule', 'rule', 'point']
    """
    values: list[Spec] = [
        {"name": name, "value": _number(value), "low": _number(low), "high": _number(high)}
        for name, value, low, high in rows
    ]
    numbers = [row[key] for row in values for key in ("value", "low", "high") if row[key] is not None]
    numbers += [] if rule is None else [rule]
    across = _quantity("value", x, numbers, domain, whole=whole, format=format)
    down = _names("name", [row[0] for row in rows])
    spans: Spec = {
        "transform": [{"filter": "datum.low !== null"}],
        "mark": {"type": "rule", "strokeWidth": 2.5, "color": COLOURS[0]},
        "encoding": {"y": down, "x": {**across, "field": "low"}, "x2": {"field": "high"}},
    }
    dots: Spec = {
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1, "color": COLOURS[0]},
        "encoding": {"y": down, "x": across, "tooltip": _hints("name", "value", "low", "high")},
    }
    layers = [spans, dots]
    if rule is not None:
        layers.insert(0, _rule_at(rule, across))
    return _specification(title, subtitle, values, layers, height=22 * max(len(rows), 2))


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
) -> Spec:
    """Bars side by side, in the order given. `signs` name what above 0, 0 and below 0 mean, and colour the bars so.

    >>> spec = bar_chart([("q1", 0.2), ("q2", -0.1)], "topic", "difference", "By topic", signs=("up", "equal", "down"))
    >>> [row["sign"] for row in spec["data"]["values"]]
    ['up', 'down']
    """
    values: list[Spec] = [{"name": name, "value": _number(value)} for name, value in rows]
    colour: Spec = {"value": COLOURS[0]}
    if signs is not None:
        for row in values:
            row["sign"] = signs[0] if (row["value"] or 0) > 0 else signs[2] if (row["value"] or 0) < 0 else signs[1]
        present = [sign for sign in signs if any(row["sign"] == sign for row in values)]
        shades = dict(zip(signs, [COLOURS[0], GREY, COLOURS[1]], strict=True))
        scale = {"domain": present, "range": [shades[sign] for sign in present]}
        colour = {"field": "sign", "type": "nominal", "title": None, "scale": scale, "legend": LEGEND}
    numbers = [0.0, *(row["value"] for row in values if row["value"] is not None)]
    across = _names("name", [name for name, _ in rows], title=x, labels=len(rows) <= LABELLED)
    height = _quantity("value", y, numbers, domain, format=format)
    encoding = {"x": across, "y": height, "color": colour, "tooltip": _hints("name", value=y)}
    bars = {"mark": {"type": "bar"}, "encoding": encoding}
    line = {"data": {"values": [{}]}, "mark": {"type": "rule", "color": GREY}, "encoding": {"y": {"datum": 0}}}
    return _specification(title, subtitle, values, [bars, line], width=min(760, max(320, 13 * len(rows))))


def scatter_chart(
    points: Sequence[tuple[str, float, float]],
    x: str,
    y: str,
    title: str,
    *,
    subtitle: Sequence[str] = (),
    domain: tuple[float, float] | None = None,
    diagonal: bool = True,
) -> Spec:
    """Points, a (name, x, y) each, both axes alike where a `diagonal` is drawn.

    >>> spec = scatter_chart([("q1", 0.2, 0.4)], "bm25", "dense", "Topic by topic", domain=(0, 1))
    >>> [layer["mark"]["type"] for layer in spec["layer"]]
    ['line', 'point']
    """
    values: list[Spec] = [{"name": name, "x": _number(a), "y": _number(b)} for name, a, b in points]
    values = [row for row in values if row["x"] is not None and row["y"] is not None]
    xs, ys = [row["x"] for row in values], [row["y"] for row in values]
    both = [*xs, *ys] if diagonal else None
    across = _quantity("x", x, both or xs, domain)
    height = _quantity("y", y, both or ys, domain)
    dots: Spec = {
        "mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.75, "color": COLOURS[0]},
        "encoding": {"x": across, "y": height, "tooltip": _hints("name", x=x, y=y)},
    }
    layers = [dots]
    if diagonal:
        ends = [{"x": end, "y": end} for end in across["scale"]["domain"]]
        line = {"type": "line", "color": GREY, "strokeWidth": 1, "strokeDash": [3, 3]}
        layers.insert(0, {"data": {"values": ends}, "mark": line, "encoding": {"x": across, "y": height}})
    return _specification(title, subtitle, values, layers, width=380, height=380)


def histogram_chart(
    values: Iterable[float],
    x: str,
    title: str,
    *,
    subtitle: Sequence[str] = (),
    bins: int = 20,
    domain: tuple[float, float] | None = None,
    rules: Mapping[str, float] | None = None,
) -> Spec:
    """How often values fall into each of so many equal bins; values that are NaN are left out.

    >>> [row["count"] for row in histogram_chart([0.1, 0.2, 0.9], "nDCG", "", bins=2, domain=(0, 1))["data"]["values"]]
    [2, 1]
    """
    import numpy as np

    kept = np.array([value for value in values if value == value], float)
    low, high = domain or _nice_domain(kept.tolist())
    counts, edges = np.histogram(kept, bins=bins, range=(low, high))
    data = [{"from": float(edges[i]), "to": float(edges[i + 1]), "count": int(count)} for i, count in enumerate(counts)]
    across = _quantity("from", x, [], (low, high))
    height = _quantity("count", "count", [0.0, float(counts.max(initial=1))], None, whole=True)
    encoding = {
        "x": across,
        "x2": {"field": "to"},
        "y": height,
        "y2": {"datum": 0},
        "tooltip": _hints("from", "to", "count"),
    }
    layers: list[Spec] = [{"mark": {"type": "bar", "color": COLOURS[0]}, "encoding": encoding}]
    layers += [_rule_at(at, across) for at in (rules or {}).values()]
    return _specification(title, [*subtitle, *(f"line: {name}" for name in rules or {})], data, layers, height=240)


def strip_chart(
    groups: Mapping[str, Iterable[float]],
    boxes: Mapping[str, tuple[float, float, float, float]],
    x: str,
    title: str,
    *,
    subtitle: Sequence[str] = (),
    domain: tuple[float, float] | None = None,
) -> Spec:
    """A row a group: every value as a thin tick, a box (first quartile, median, third quartile) and the mean as a point.

    >>> spec = strip_chart({"bm25": [0.1, 0.5]}, {"bm25": (0.2, 0.3, 0.4, 0.3)}, "AP", "Scores", domain=(0, 1))
    >>> [layer["mark"]["type"] for layer in spec["layer"]]
    ['bar', 'tick', 'tick', 'point']
    """
    values: list[Spec] = [
        {"name": name, "value": float(value)} for name, items in groups.items() for value in items if value == value
    ]
    across = _quantity("value", x, [row["value"] for row in values], domain)
    down = _names("name", list(groups))
    keys = ("lower", "median", "upper", "mean")
    summary = [{"name": name, **dict(zip(keys, map(_number, box), strict=True))} for name, box in boxes.items()]
    inner = {"values": summary}
    box = {"type": "bar", "color": COLOURS[5], "opacity": 0.35, "size": 16}
    hints = _hints("name", *keys)
    spread = {"y": down, "x": {**across, "field": "lower"}, "x2": {"field": "upper"}, "tooltip": hints}
    middle = {"type": "tick", "color": COLOURS[0], "thickness": 2.5, "size": 16}
    dot = {"type": "point", "filled": True, "shape": "diamond", "size": 70, "opacity": 1, "color": COLOURS[1]}
    layers: list[Spec] = [
        {"data": inner, "mark": box, "encoding": spread},
        {
            "mark": {"type": "tick", "color": COLOURS[0], "opacity": 0.55, "thickness": 1, "size": 10},
            "encoding": {"y": down, "x": across},
        },
        {"data": inner, "mark": middle, "encoding": {"y": down, "x": {**across, "field": "median"}}},
        {"data": inner, "mark": dot, "encoding": {"y": down, "x": {**across, "field": "mean"}}},
    ]
    return _specification(title, subtitle, values, layers, height=26 * max(len(groups), 2))


def heat_chart(
    rows: Sequence[tuple[str, str, float]],
    x: str,
    y: str,
    value: str,
    title: str,
    *,
    subtitle: Sequence[str] = (),
    domain: tuple[float, float] = (0, 1),
) -> Spec:
    """A field of cells, a (column, row, value) each, in the order given; darker is higher.

    >>> heat_chart([("q1", "bm25", 0.5)], "topic", "run", "AP", "")["layer"][0]["mark"]["type"]
    'rect'
    """
    data = [{"x": column, "y": row, "value": _number(number)} for column, row, number in rows]
    columns, lines = list(dict.fromkeys(row[0] for row in rows)), list(dict.fromkeys(row[1] for row in rows))
    scale = {"domain": list(domain), "range": ["#f2f7fb", COLOURS[0]], "interpolate": "lab"}
    colour = {"field": "value", "type": "quantitative", "title": value, "scale": scale}
    encoding = {
        "x": _names("x", columns, title=x, labels=len(columns) <= LABELLED),
        "y": _names("y", lines, title=None),
        "color": colour,
        "tooltip": _hints("x", "y", "value"),
    }
    layers = [{"mark": {"type": "rect"}, "encoding": encoding}]
    width = min(760, max(320, 16 * len(columns)))
    return _specification(title, subtitle, data, layers, width=width, height=20 * max(len(lines), 2))


def _specification(
    title: str, subtitle: Sequence[str], values: list[Spec], layers: list[Spec], width: int = 520, height: int = 320
) -> Spec:
    head: Spec = {"text": title, "anchor": "start", "offset": 12}
    if subtitle:
        head["subtitle"] = folded_lines(subtitle)
    shape = {"width": width, "height": height, "background": "white"}
    return {"$schema": SCHEMA, "title": head, **shape, "data": {"values": values}, "layer": layers, "config": CONFIG}


def _quantity(
    field: str,
    title: str,
    numbers: Sequence[float],
    domain: tuple[float, float] | None,
    *,
    whole: bool = False,
    format: str = "",
) -> Spec:
    """An axis of numbers, its domain and ticks written out."""
    low, high = domain or _nice_domain(numbers)
    places = ticks(low, high, whole=whole)
    digits = max((_decimals(place) for place in places), default=0)
    shown = "d" if digits == 0 and (whole or all(place == int(place) for place in places)) else f".{digits}f"
    sign = "+" if format.startswith("+") and shown != "d" else ""
    axis = {"values": places, "format": f"{sign}{shown}"}
    scale = {"domain": [low, high], "nice": False, "zero": False}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def _names(field: str, order: list[str], title: str | None = None, labels: bool = True) -> Spec:
    """An axis of names, in the order given."""
    axis: Spec = {"labels": labels, "ticks": labels, "labelLimit": 240, "grid": False}
    if title is not None:
        axis["labelAngle"] = -90
    return {"field": field, "type": "nominal", "title": title, "scale": {"domain": order}, "sort": None, "axis": axis}


def _rule_at(at: float, across: Spec) -> Spec:
    where = {**across, "field": "at"}
    mark = {"type": "rule", "color": GREY, "strokeDash": [4, 4]}
    return {"data": {"values": [{"at": at}]}, "mark": mark, "encoding": {"x": where}}


def _hints(*fields: str, **titles: str) -> list[Spec]:
    return [{"field": field} for field in fields] + [{"field": field, "title": said} for field, said in titles.items()]


def _points(xs: Iterable[float], ys: Iterable[float]) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in zip(xs, ys, strict=True)]


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return float(value) if math.isfinite(value) else None


def _nice_domain(numbers: Sequence[float]) -> tuple[float, float]:
    known = [number for number in numbers if math.isfinite(number)]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
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


def _decimals(number: float) -> int:
    text = f"{number:.6f}".rstrip("0")
    return len(text.partition(".")[2])
