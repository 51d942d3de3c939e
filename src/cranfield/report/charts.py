"""Charts as Vega-Lite specifications, and as SVG, PNG or HTML files made from them offline.

Runs differ in colour, in dashes and in the shape of their points, so that a chart can be read without colour. The
colours are those of Okabe and Ito, which people with any kind of colour vision can tell apart.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cranfield.curves import IDEAL, KINDS
from cranfield.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    from cranfield.curves import Curves

__all__ = ["ENDINGS", "chart", "rendered"]

ENDINGS = ("svg", "png", "html", "json")
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
DASHES = [[1, 0], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [14, 4], [3, 6]]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"]
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
LEGEND = {"orient": "bottom", "columns": 2, "symbolSize": 110, "symbolOpacity": 1, "symbolStrokeWidth": 0}
MARKERS = 12  # at most so many points of a curve carry a shape


def chart(curves: Curves) -> dict[str, Any]:
    """The Vega-Lite specification of several curves in one picture, with their areas in the legend."""
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
            "subtitle": [f"mean over {curves.topics} topic{'' if curves.topics == 1 else 's'}", *_folded(crossing)],
            "anchor": "start",
            "offset": 12,
        },
        "width": 520,
        "height": 360,
        "background": "white",
        "data": {"values": values},
        "encoding": {"x": _axis("x", x, 1 if x != "rank" else None)},
        "layer": _layers(curves.kind, y, order),
        "config": {
            "axis": {"labelFontSize": 12, "titleFontSize": 13, "gridColor": "#e5e5e5", "domainColor": "#555555"},
            "legend": {"labelFontSize": 12, "labelLimit": 320},
            "title": {"fontSize": 15, "subtitleFontSize": 12, "subtitleColor": "#444444", "subtitlePadding": 6},
            "view": {"stroke": None},
        },
    }


def _area(name: str, value: float) -> str:
    return f"{value:.3f} {name}" if name.startswith("of ") else f"{name} {value:.3f}"


def _layers(kind: str, y: str, order: list[str]) -> list[dict[str, Any]]:
    height = _axis("y", y, 1 if kind != "gain" else None)
    dash, colour = _by_run(order, DASHES, legend=False), _by_run(order, COLOURS)
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
        "encoding": {"y": height, "color": colour, "shape": _by_run(order, SHAPES)},
    }
    layers: list[dict[str, Any]] = [line, points]
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


def _axis(field: str, title: str, top: float | None) -> dict[str, Any]:
    axis: dict[str, Any] = {"field": field, "type": "quantitative", "title": title}
    if top is not None:
        axis["scale"] = {"domain": [0, top]}
    elif field == "x":
        axis["axis"] = {"tickMinStep": 1, "format": "d"}
        axis["scale"] = {"zero": False}
    return axis


def _by_run(order: list[str], values: list[Any], legend: bool = True) -> dict[str, Any]:
    chosen = [values[i % len(values)] for i in range(len(order))]
    return {
        "field": "run",
        "type": "nominal",
        "title": None,
        "sort": order,
        "scale": {"domain": order, "range": chosen},
        "legend": LEGEND if legend else None,
    }


def _folded(notes: list[str]) -> list[str]:
    import textwrap

    return [line for note in notes for line in textwrap.wrap(note, 84)]


def rendered(spec: dict[str, Any], ending: str) -> bytes:
    """A specification as the bytes of an .svg, .png, .html (which needs no network) or .json file."""
    if ending not in ENDINGS:
        raise DataError(f"a chart is written as {', '.join(f'.{each}' for each in ENDINGS)}, not as {ending!r}")
    if ending == "json":
        return (json.dumps(spec, indent=2) + "\n").encode()
    try:
        import vl_convert  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise MissingExtraError(
            "charts are drawn by vl-convert-python, which is not installed (pip install 'cranfield[plots]'); "
            "a .json file holds the Vega-Lite specification without it"
        ) from None
    if ending == "svg":
        return str(vl_convert.vegalite_to_svg(spec)).encode()
    if ending == "png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=2))
    return str(vl_convert.vegalite_to_html(spec, bundle=True)).encode()
