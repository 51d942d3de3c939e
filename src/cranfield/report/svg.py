"""Draws the charts of `report.charts` as SVG inside a page: no extra, no script, and the page's own colours.

It reads Vega-Lite, but only the few marks, channels and axes that the makers of `report.charts` write; anything else is
our own mistake and stops. Colours become classes (`c0` … `c6`, `grey`), so that a page decides what they are in light,
dark and print. Each mark says its values as a `title`, which a browser shows under the pointer.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

from cranfield.report.charts import COLOURS, GREY, spelt_out, ticks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


Spec = dict[str, Any]
LETTER = 7.8  # the width of a letter at 12 px, in a wide font
TITLE = 8.5  # the same of an axis's title, at 13 px
LONGEST = 30  # letters of a name beside an axis


def svg(spec: Spec, identity: str, description: str = "") -> str:
    """A specification as an `<svg>` element with a title and a description for those who do not see it.

    >>> from cranfield.report.charts import bar_chart
    >>> drawn = svg(bar_chart([("q1", 0.2)], "topic", "difference", "By topic"), "c")
    >>> drawn[:4], drawn.count('<rect class="mark')
    ('<svg', 1)
    """
    spec, description = spelt_out([spec, description])
    layers = list(_layers(spec))
    frame = _Frame(spec, layers)
    marks = "".join(_drawn(layer, frame) for layer in layers)
    title = spec["title"]["text"]
    said = description or ". ".join(spec["title"].get("subtitle", [])) or title
    return (
        f'<svg class="chart" viewBox="0 0 {_n(frame.full_width)} {_n(frame.full_height)}" role="img" '
        f'width="{_n(frame.full_width)}" height="{_n(frame.full_height)}" '
        f'aria-labelledby="{identity}-t {identity}-d"><title id="{identity}-t">{escape(title)}</title>'
        f'<desc id="{identity}-d">{escape(said)}</desc>'
        f'<g transform="translate({_n(frame.left)},{_n(frame.top)})">{frame.axes()}{marks}</g></svg>'
    )


def legend(spec: Spec) -> str:
    """The names behind the colours as a list, each with a sample; empty where there is one name only."""
    spec = spelt_out(spec)
    colours = _looks(spec, "color")
    if not colours:
        return ""
    dashes, shapes = _looks(spec, "strokeDash"), _looks(spec, "shape")
    line = any(layer["mark"]["type"] == "line" for layer in spec["layer"])
    items = [
        f"<li>{_sample(colour, dashes.get(name), line, shapes.get(name))}{escape(name)}</li>"
        for name, colour in colours.items()
    ]
    return f'<ul class="legend">{"".join(items)}</ul>'


def _looks(spec: Spec, channel: str) -> dict[str, Any]:
    """Which name has which colour, dashes or shape."""
    for layer in _layers(spec):
        given = layer["encoding"].get(channel, {})
        if given.get("type") == "nominal":
            return dict(zip(given["scale"]["domain"], given["scale"]["range"], strict=True))
    return {}


def _sample(colour: str, dash: list[int] | None, line: bool, shape: str | None) -> str:
    tone = _class(colour)
    if not line:
        box = f'<rect class="fill {tone}" width="12" height="12" y="1"/>'
        return f'<svg width="12" height="14" aria-hidden="true">{box}</svg>'
    dots = f'<path class="fill {tone}" d="{_symbol(shape, 14, 7, 50)}"/>' if shape else ""
    stroke = f'<path class="line {tone}" d="M0 7H28"{_dashed(dash)}/>'
    return f'<svg width="28" height="14" aria-hidden="true">{stroke}{dots}</svg>'


def _layers(spec: Spec) -> Iterator[Spec]:
    """Each layer with the encoding and the data that it shares with the others, filtered."""
    for layer in spec["layer"]:
        values = layer.get("data", spec["data"])["values"]
        for step in layer.get("transform", []):
            field = step["filter"].removeprefix("datum.").partition(" ")[0]
            values = [row for row in values if row.get(field) not in (None, False)]
        yield {**layer, "encoding": {**spec.get("encoding", {}), **layer["encoding"]}, "values": values}


class _Frame:
    """Where things are: two scales, and the room that names and numbers take beside them."""

    def __init__(self, spec: Spec, layers: list[Spec]) -> None:
        self.width, self.height = float(spec["width"]), float(spec["height"])
        self.x = self._axis(layers, "x")
        self.y = self._axis(layers, "y")
        self.across = _scale(self.x, 0, self.width)
        self.up = _scale(self.y, self.height, 0) if self.y["type"] == "quantitative" else _scale(self.y, 0, self.height)
        names = [_cut(text) for _, text in _places(self.y, self.up)]
        self.left = 14 + max((len(name) for name in names), default=0) * LETTER + (18 if self.y.get("title") else 0)
        below = [_cut(text) for _, text in _places(self.x, self.across)]
        turned = self.x["type"] == "nominal"
        self.below = 22 + (max((len(name) for name in below), default=0) * LETTER - 8 if turned else 0)
        self.below += 20 if self.x.get("title") else 0
        self.top, self.right = 8.0, 14.0
        self.full_width, self.full_height = self.left + self.width + self.right, self.top + self.height + self.below

    @staticmethod
    def _axis(layers: list[Spec], channel: str) -> Spec:
        """The axis that all layers share: the first that says what it is."""
        return next(e for e in (layer["encoding"].get(channel, {}) for layer in layers) if "type" in e)

    def axes(self) -> str:
        grid, labels = [], []
        for at, text in _places(self.x, self.across):
            if self.x["type"] == "quantitative":
                grid.append(f"M{_n(at)} 0V{_n(self.height)}")
                labels.append(_text(at, self.height + 16, text, "middle"))
            else:
                labels.append(_text(at + 4, self.height + 6, text, "end", turn=True))
        for at, text in _places(self.y, self.up):
            if self.y["type"] == "quantitative":
                grid.append(f"M0 {_n(at)}H{_n(self.width)}")
            labels.append(_text(-8, at + 4, text, "end"))
        if self.x.get("title"):
            title = _cut(self.x["title"], self.width / TITLE)
            labels.append(_text(self.width / 2, self.height + self.below - 6, title, "middle", "name"))
        if self.y.get("title"):
            where = f'transform="translate({_n(12 - self.left)},{_n(self.height / 2)}) rotate(-90)"'
            labels.append(
                f'<text class="name" text-anchor="middle" {where}>{escape(_cut(self.y["title"], self.height / TITLE))}</text>'
            )
        edge = f'<path class="edge" d="M0 0V{_n(self.height)}H{_n(self.width)}"/>'
        lines = f'<path class="grid" d="{"".join(grid)}"/>' if grid else ""
        return f'<g aria-hidden="true">{lines}{edge}{"".join(labels)}</g>'


def _scale(axis: Spec, start: float, end: float) -> Callable[[Any], float]:
    domain = axis["scale"]["domain"]
    if axis["type"] == "nominal":
        place = {name: i + 0.5 for i, name in enumerate(domain)}
        return lambda name: start + place[name] / max(len(domain), 1) * (end - start)
    low, high = domain
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _places(axis: Spec, scale: Callable[[Any], float]) -> list[tuple[float, str]]:
    """Where the labels stand, and what they say."""
    given = axis.get("axis", {})
    domain = axis["scale"]["domain"]
    if axis["type"] == "nominal":
        return [(scale(name), _cut(name)) for name in domain] if given.get("labels", True) else []
    shape = given.get("format", ".1f")
    values = given.get("values") or ticks(*domain)
    return [(scale(v), (f"{v:.0f}" if shape == "d" else f"{v:{shape}}").replace("-", "−")) for v in values]


def _drawn(layer: Spec, frame: _Frame) -> str:
    kind = layer["mark"]["type"]
    if kind in ("line", "area"):
        return _paths(layer, frame)
    draw = {"bar": _bar, "rect": _bar, "rule": _rule, "tick": _tick, "point": _point, "text": _label}[kind]
    if kind == "tick" and "tooltip" not in layer["encoding"]:
        return _ticks(layer, frame)
    marks = []
    for row in layer["values"]:
        shape = draw(row, layer, frame)
        if shape:
            hint = _hint(row, layer)
            marks.append(
                shape.replace("/>", f"><title>{hint}</title></{shape[1:].partition(' ')[0]}>") if hint else shape
            )
    return "".join(marks)


def _at(row: Spec, channel: Spec | None, scale: Callable[[Any], float]) -> float | None:
    if channel is None:
        return None
    if "value" in channel:
        return float(channel["value"])
    value = channel["datum"] if "datum" in channel else row.get(channel["field"])
    return None if value is None else scale(value)


def _bar(row: Spec, layer: Spec, frame: _Frame) -> str:
    encoding, mark = layer["encoding"], layer["mark"]
    x, x2 = _at(row, encoding["x"], frame.across), _at(row, encoding.get("x2"), frame.across)
    y, y2 = _at(row, encoding["y"], frame.up), _at(row, encoding.get("y2"), frame.up)
    if x is None or y is None:
        return ""
    if encoding["x"].get("type") == "nominal":
        half = frame.width / len(frame.x["scale"]["domain"]) * (0.5 if mark["type"] == "rect" else 0.42)
        x, x2 = x - half, x + half
    if encoding["y"].get("type") == "nominal":
        full = frame.height / len(frame.y["scale"]["domain"])
        half = min(mark.get("size", full), full) / 2
        y, y2 = y - half, y + half
    y2 = frame.up(0) if y2 is None else y2
    x2 = frame.across(0) if x2 is None else x2
    left, top, wide, high = min(x, x2), min(y, y2), abs(x2 - x), abs(y2 - y)
    look = _heat(row, encoding["color"]) if mark["type"] == "rect" else _fill(row, layer)
    return f'<rect {look} x="{_n(left)}" y="{_n(top)}" width="{_n(wide)}" height="{_n(max(high, 0.6))}"/>'


def _rule(row: Spec, layer: Spec, frame: _Frame) -> str:
    encoding = layer["encoding"]
    x, y = _at(row, encoding.get("x"), frame.across), _at(row, encoding.get("y"), frame.up)
    x2 = _at(row, encoding.get("x2"), frame.across)
    look = f'class="mark line {_class(layer["mark"].get("color", GREY))}"{_dashed(layer["mark"].get("strokeDash"))}'
    look += f' stroke-width="{layer["mark"].get("strokeWidth", 1)}"'
    if x is None and y is not None:
        return f'<path {look} d="M0 {_n(y)}H{_n(frame.width)}"/>'
    if x is not None and y is None:
        return f'<path {look} d="M{_n(x)} 0V{_n(frame.height)}"/>'
    return f'<path {look} d="M{_n(x)} {_n(y)}H{_n(x2)}"/>' if None not in (x, y, x2) else ""


def _tick(row: Spec, layer: Spec, frame: _Frame) -> str:
    return _ticks({**layer, "values": [row]}, frame)


def _ticks(layer: Spec, frame: _Frame) -> str:
    """All ticks as one path: there may be thousands."""
    half = layer["mark"]["size"] / 2
    path = []
    for row in layer["values"]:
        x, y = _at(row, layer["encoding"]["x"], frame.across), _at(row, layer["encoding"]["y"], frame.up)
        if x is not None and y is not None:
            path.append(f"M{_n(x)} {_n(y - half)}v{_n(2 * half)}")
    mark = layer["mark"]
    look = f'class="mark line {_class(mark["color"])}" stroke-width="{mark["thickness"]}"{_opacity(mark)}'
    return f'<path {look} d="{"".join(path)}"/>' if path else ""


def _point(row: Spec, layer: Spec, frame: _Frame) -> str:
    encoding, mark = layer["encoding"], layer["mark"]
    x, y = _at(row, encoding["x"], frame.across), _at(row, encoding["y"], frame.up)
    if x is None or y is None:
        return ""
    shape = _by(row, encoding["shape"]) if "shape" in encoding else mark.get("shape", "circle")
    if shape == "circle":
        return f'<circle {_fill(row, layer)} cx="{_n(x)}" cy="{_n(y)}" r="{_n(math.sqrt(mark["size"] / math.pi))}"/>'
    return f'<path {_fill(row, layer)} d="{_symbol(shape, x, y, mark["size"])}"/>'


def _label(row: Spec, layer: Spec, frame: _Frame) -> str:
    encoding, mark = layer["encoding"], layer["mark"]
    x, y = _at(row, encoding["x"], frame.across), _at(row, encoding["y"], frame.up)
    if x is None or y is None:
        return ""
    anchor = {"right": "end", "left": "start"}.get(mark.get("align", ""), "middle")
    return _text(x + mark.get("dx", 0), y + mark.get("dy", 0), str(row[encoding["text"]["field"]]), anchor)


def _paths(layer: Spec, frame: _Frame) -> str:
    """One line or one band for each colour."""
    encoding, mark = layer["encoding"], layer["mark"]
    field = encoding.get("color", {}).get("field")
    groups: dict[Any, list[Spec]] = {}
    for row in layer["values"]:
        groups.setdefault(row.get(field) if field else None, []).append(row)
    paths = []
    for rows in groups.values():
        pairs = [(_at(row, encoding["x"], frame.across), _at(row, encoding["y"], frame.up)) for row in rows]
        known = [(x, y) for x, y in pairs if x is not None and y is not None]
        tone = _class(_by(rows[0], encoding["color"]) if "color" in encoding else mark["color"])
        if mark["type"] == "area":
            back = [(_at(r, encoding["x"], frame.across), _at(r, encoding["y2"], frame.up)) for r in reversed(rows)]
            known += [(x, y) for x, y in back if x is not None and y is not None]
            paths.append(f'<path class="mark fill {tone}"{_opacity(mark)} d="{_trace(known)}z"/>')
            continue
        dash = _by(rows[0], encoding["strokeDash"]) if "strokeDash" in encoding else mark.get("strokeDash")
        trace = _trace(known, mark.get("interpolate") == "step-before")
        wide = f' stroke-width="{mark.get("strokeWidth", 2)}"'
        paths.append(f'<path class="mark line {tone}"{wide}{_dashed(dash)}{_opacity(mark)} d="{trace}"/>')
    return "".join(paths)


def _trace(points: list[tuple[float, float]], steps: bool = False) -> str:
    start, *rest = [(_n(x), _n(y)) for x, y in points] or [("0", "0")]
    return f"M{start[0]} {start[1]}" + "".join(f"V{y}H{x}" if steps else f"L{x} {y}" for x, y in rest)


def _symbol(shape: str | None, x: float, y: float, size: float) -> str:
    """A shape of that area around a point."""
    r = math.sqrt(size) / 2
    outlines: dict[str, list[tuple[float, float]]] = {
        "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        "diamond": [(0, -1.45), (1.2, 0), (0, 1.45), (-1.2, 0)],
        "triangle-up": [(0, -1.3), (1.3, 1), (-1.3, 1)],
        "triangle-down": [(0, 1.3), (1.3, -1), (-1.3, -1)],
        "triangle-right": [(1.3, 0), (-1, 1.3), (-1, -1.3)],
        "cross": [
            *[(-0.4, -1.3), (0.4, -1.3), (0.4, -0.4), (1.3, -0.4), (1.3, 0.4), (0.4, 0.4)],
            *[(0.4, 1.3), (-0.4, 1.3), (-0.4, 0.4), (-1.3, 0.4), (-1.3, -0.4), (-0.4, -0.4)],
        ],
    }
    corners = outlines.get(shape or "circle")
    if corners is None:
        return f"M{_n(x - r)} {_n(y)}a{_n(r)} {_n(r)} 0 1 0 {_n(2 * r)} 0a{_n(r)} {_n(r)} 0 1 0 {_n(-2 * r)} 0z"
    return _trace([(x + r * a, y + r * b) for a, b in corners]) + "z"


def _by(row: Spec, channel: Spec) -> Any:
    if "value" in channel:
        return channel["value"]
    return channel["scale"]["range"][channel["scale"]["domain"].index(row[channel["field"]])]


def _fill(row: Spec, layer: Spec) -> str:
    colour = _by(row, layer["encoding"]["color"]) if "color" in layer["encoding"] else layer["mark"]["color"]
    return f'class="mark fill {_class(colour)}"{_opacity(layer["mark"])}'


def _heat(row: Spec, channel: Spec) -> str:
    low, high = channel["scale"]["domain"]
    value = row[channel["field"]]
    share = 0.0 if value is None else min(1.0, max(0.0, (value - low) / (high - low)))
    return f'class="mark fill c0" opacity="{_n(0.05 + 0.95 * share)}"'


def _class(colour: str) -> str:
    return f"c{COLOURS.index(colour)}" if colour in COLOURS else "grey"


def _opacity(mark: Spec) -> str:
    return f' opacity="{mark["opacity"]}"' if mark.get("opacity", 1) != 1 else ""


def _dashed(dash: list[int] | None) -> str:
    return f' stroke-dasharray="{" ".join(map(str, dash))}"' if dash and dash != [1, 0] else ""


def _hint(row: Spec, layer: Spec) -> str:
    """What a mark says of itself: its name, and what else it stands for."""
    said: list[str] = []
    for channel in layer["encoding"].get("tooltip", []):
        value = row.get(channel["field"])
        if channel["field"] == "query":  # stands beside the topic's id
            said[-1] += f" ({value})" if value else ""
        elif value is not None:
            text = _short(value) if isinstance(value, float) else str(value)
            said.append(
                text if channel["field"] in ("name", "run") else f"{channel.get('title', channel['field'])} {text}"
            )
    return escape(": ".join([said[0], ", ".join(said[1:])]) if len(said) > 1 else "".join(said))


def _short(value: float) -> str:
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _text(x: float, y: float, text: str, anchor: str, tone: str = "", turn: bool = False) -> str:
    look = (f' class="{tone}"' if tone else "") + f' text-anchor="{anchor}"'
    if turn:
        return f'<text{look} transform="translate({_n(x)},{_n(y)}) rotate(-90)">{escape(text)}</text>'
    return f'<text{look} x="{_n(x)}" y="{_n(y)}">{escape(text)}</text>'


def _cut(text: str, longest: float = LONGEST) -> str:
    """A long name without its middle: names of runs often differ at their ends."""
    half = int(longest) // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[1 - half :]}"


def _n(number: float | None) -> str:
    """A number in few letters."""
    text = f"{(number or 0) + 1e-7:.1f}".removesuffix(".0")  # page.js rounds halves up as well
    return "0" if text == "-0" else text
