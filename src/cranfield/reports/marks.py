"""The marks of charts: each writes itself as a layer of Vega-Lite and draws itself as SVG.

A mark holds rows of plain values. Vega-Lite is for chart files and `.vl.json`, SVG for pages; neither is read back.
So that both show the same picture, axes have explicit domains, ticks and orders.

Runs differ in colour, in dashes and in the shape of their points, so that a chart can be read without colour. The
colours are those of Okabe and Ito, which people with any kind of colour vision can distinguish.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from cranfield.reports import svg
from cranfield.reports.svg import COLOURS, GREY, n

if TYPE_CHECKING:
    from collections.abc import Callable

Spec = dict[str, Any]
DASHES = [[1, 0], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [14, 4], [3, 6]]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"]
CHANNELS: dict[str, tuple[list[Any], int]] = {"color": (COLOURS, 0), "strokeDash": (DASHES, 1), "shape": (SHAPES, 2)}
LEGEND = {"orient": "bottom", "columns": 2, "symbolSize": 110, "symbolOpacity": 1, "symbolStrokeWidth": 0}
STROKES = {**LEGEND, "symbolType": "stroke", "symbolSize": 600, "symbolStrokeWidth": 2.2}
NTH = {"field": "nth", "type": "quantitative"}


@dataclass(frozen=True)
class Axis:
    """An axis of numbers with ticks, or (without ticks) of names in their order."""

    field: str
    title: str | None
    domain: list[Any]
    ticks: list[float] | None = None
    format: str = ""
    labels: bool = True
    free: Spec | None = None  # scale and axis in Vega-Lite, if Vega chooses the ticks

    def of(self, field: str) -> Axis:
        """The same axis for another field."""
        return replace(self, field=field)

    def vega_lite(self) -> Spec:
        """The axis as a channel of Vega-Lite."""
        if self.free is not None:
            return {"field": self.field, "type": "quantitative", "title": self.title, **self.free}
        if self.ticks is None:
            axis: Spec = {"labels": self.labels, "ticks": self.labels, "labelLimit": 240, "grid": False}
            axis |= {} if self.title is None else {"labelAngle": -90}
            scale: Spec = {"scale": {"domain": self.domain}, "sort": None}
            return {"field": self.field, "type": "nominal", "title": self.title, **scale, "axis": axis}
        scale = {"scale": {"domain": self.domain, "nice": False, "zero": False}}
        axis = {"axis": {"values": self.ticks, "format": self.format}}
        return {"field": self.field, "type": "quantitative", "title": self.title, **scale, **axis}

    def scale(self, start: float, end: float) -> Callable[[Any], float]:
        """The function from a value to its position between start and end."""
        if self.ticks is None:
            place = {name: i + 0.5 for i, name in enumerate(self.domain)}
            return lambda name: start + place[name] / max(len(self.domain), 1) * (end - start)
        low, high = self.domain
        return lambda value: start + (value - low) / (high - low) * (end - start)

    def texts(self) -> list[tuple[Any, str]]:
        """The labelled values with their labels."""
        if self.ticks is None:
            return [(name, svg.cut(name)) for name in self.domain] if self.labels else []
        shape = ".0f" if self.format == "d" else self.format
        return [(value, f"{value:{shape}}".replace("-", "−")) for value in self.ticks]


class Frame:
    """The positions of a drawing: two scales, and the room for names and numbers next to them."""

    def __init__(self, x: Axis, y: Axis, width: float, height: float) -> None:
        self.x, self.y, self.width, self.height = x, y, float(width), float(height)
        self.across = x.scale(0, self.width)
        self.up = y.scale(0, self.height) if y.ticks is None else y.scale(self.height, 0)
        self.left = 14 + _longest(y) * svg.LETTER + (18 if y.title else 0)
        self.below = 22 + (_longest(x) * svg.LETTER - 8 if x.ticks is None else 0) + (20 if x.title else 0)
        self.top, self.right = 8.0, 14.0
        self.full_width, self.full_height = self.left + self.width + self.right, self.top + self.height + self.below

    def axes(self) -> str:
        """Grid, labels and titles."""
        grid, labels = [], []
        for value, text in self.x.texts():
            at = self.across(value)
            if self.x.ticks is None:
                labels.append(svg.text_at(at + 4, self.height + 6, text, "end", turn=True))
            else:
                grid.append(f"M{n(at)} 0V{n(self.height)}")
                labels.append(svg.text_at(at, self.height + 16, text, "middle"))
        for value, text in self.y.texts():
            at = self.up(value)
            if self.y.ticks is not None:
                grid.append(f"M0 {n(at)}H{n(self.width)}")
            labels.append(svg.text_at(-8, at + 4, text, "end"))
        if self.x.title:
            title = svg.cut(self.x.title, self.width / svg.TITLE)
            labels.append(svg.text_at(self.width / 2, self.height + self.below - 6, title, "middle", "name"))
        if self.y.title:
            title = svg.cut(self.y.title, self.height / svg.TITLE)
            labels.append(svg.text_at(12 - self.left, self.height / 2, title, "middle", "name", turn=True))
        edge = f'<path class="edge" d="M0 0V{n(self.height)}H{n(self.width)}"/>'
        lines = f'<path class="grid" d="{"".join(grid)}"/>' if grid else ""
        return f'<g aria-hidden="true">{lines}{edge}{"".join(labels)}</g>'


def _longest(axis: Axis) -> int:
    return max((len(text) for _, text in axis.texts()), default=0)


@dataclass(frozen=True)
class Looks:
    """How the runs of a chart differ: a colour, dashes and a shape each; `named` runs have a legend."""

    order: list[str]
    named: bool = True
    shapes: bool = True

    def colour(self, run: str) -> str:
        """The colour of a run."""
        return str(self._look("color")[run]) if self.named else COLOURS[0]

    def dash(self, run: str) -> list[int]:
        """The dash pattern of a run's line."""
        return list(self._look("strokeDash")[run])

    def shape(self, run: str) -> str:
        """The shape of a run's points."""
        return str(self._look("shape")[run]) if self.named else SHAPES[0]

    def vega_lite(self, channel: str) -> Spec:
        """The colours, dashes or shapes as a channel of Vega-Lite."""
        if channel != "strokeDash" and not self.named:
            return {"value": CHANNELS[channel][0][0]}
        strokes = STROKES if self.named and not self.shapes else None  # without shapes the legend shows the dashes
        scale = {"domain": self.order, "range": list(self._look(channel).values())}
        names = {"field": "run", "type": "nominal", "title": None, "sort": self.order}
        return {**names, "scale": scale, "legend": strokes if channel == "strokeDash" else strokes or LEGEND}

    def _look(self, channel: str) -> Spec:
        """A value for each run; the eighth run has the first's colour but other dashes and another shape."""
        values, turn = CHANNELS[channel]
        return {name: values[(i + turn * (i // len(values))) % len(values)] for i, name in enumerate(self.order)}

    def legend(self) -> list[str]:
        """The entries of the legend in a page."""
        samples = []
        for run in self.order if self.named else []:
            colour = svg.tone(self.colour(run))
            dots = f'<path class="fill {colour}" d="{svg.symbol(self.shape(run), 14, 7, 50)}"/>' if self.shapes else ""
            line = f'<path class="line {colour}" d="M0 7H28"{svg.dashed(self.dash(run))}/>'
            samples.append(f'<svg width="28" height="14" aria-hidden="true">{line}{dots}</svg>{svg.words(run)}')
        return samples


@dataclass
class ChartMark(ABC):
    """One kind of mark with its rows; `hints` are the fields that a mark shows under the pointer."""

    rows: list[Spec]
    hints: list[Spec] = field(default_factory=list, kw_only=True)

    @abstractmethod
    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        """The mark as layers of Vega-Lite."""

    @abstractmethod
    def svg(self, frame: Frame) -> str:
        """The elements of the mark within a frame, for a page."""


@dataclass
class RunLines(ChartMark):
    """One line per run; the plain ones of a chart, or thin steps behind them."""

    looks: Looks
    y: str = "y"
    steps: bool = False

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        colour = self.looks.vega_lite("color")
        if self.steps:
            mark: Spec = {"type": "line", "interpolate": "step-before", "strokeWidth": 1, "opacity": 0.55}
            height = replace(y.of(self.y), free={})
            return [{"mark": mark, "encoding": _at(x, height, color=colour, order=NTH)}]
        looks = {"color": colour, "strokeDash": self.looks.vega_lite("strokeDash"), "order": NTH}
        return [{"mark": {"type": "line", "strokeWidth": 2.2}, "encoding": _at(x, y, **looks)}]

    def svg(self, frame: Frame) -> str:
        paths = []
        for run, rows in _by_run(self.rows).items():
            path = svg.trace([(frame.across(row["x"]), frame.up(row[self.y])) for row in rows], self.steps)
            look = (1, None, 0.55) if self.steps else (2.2, self.looks.dash(run))
            paths.append(svg.stroke(path, self.looks.colour(run), *look))
        return "".join(paths)


@dataclass
class Band(ChartMark):
    """A shaded area per run between `low` and `high`."""

    looks: Looks

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        encoding = _at(x, y.of("low"), y2={"field": "high"}, color=self.looks.vega_lite("color"))
        return [{"mark": {"type": "area", "opacity": 0.18}, "data": {"values": self.rows}, "encoding": encoding}]

    def svg(self, frame: Frame) -> str:
        paths = []
        for run, rows in _by_run(self.rows).items():
            edge = [(frame.across(row["x"]), frame.up(row["low"])) for row in rows]
            edge += [(frame.across(row["x"]), frame.up(row["high"])) for row in reversed(rows)]
            paths.append(f'<path {svg.fill(self.looks.colour(run), 0.18)} d="{svg.trace(edge)}z"/>')
        return "".join(paths)


@dataclass
class RowMark(ChartMark):
    """A mark that draws one shape per row, with the hints of that row."""

    def svg(self, frame: Frame) -> str:
        shapes = [(self.shape_of(row, frame), row) for row in self.rows]
        return "".join(svg.with_hint(shape, row, self.hints) for shape, row in shapes if shape)

    @abstractmethod
    def shape_of(self, row: Spec, frame: Frame) -> str:
        """The shape of one row; empty if the row is not drawn."""


@dataclass
class RunPoints(RowMark):
    """Points on the lines of runs, at the rows that are `marked`."""

    looks: Looks
    size: int = 50

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        mark = {"type": "point", "filled": True, "size": self.size, "opacity": 1}
        looks = {"color": self.looks.vega_lite("color"), "shape": self.looks.vega_lite("shape")}
        encoding = _at(x, y, **looks, **_tooltip(self.hints))
        return [{"transform": [{"filter": "datum.marked"}], "mark": mark, "encoding": encoding}]

    def shape_of(self, row: Spec, frame: Frame) -> str:
        if not row["marked"]:
            return ""
        look, shape = svg.fill(self.looks.colour(row["run"])), self.looks.shape(row["run"])
        return svg.point(look, frame.across(row["x"]), frame.up(row["y"]), self.size, shape)


@dataclass
class GreyLine(ChartMark):
    """A thin dashed line through points, for comparison."""

    width: float = 1
    dash: list[int] = field(default_factory=lambda: [3, 3])

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        mark = {"type": "line", "color": GREY, "strokeWidth": self.width, "strokeDash": self.dash}
        encoding = _at(x, y)
        if y.free is not None:
            encoding = {**encoding, "y": {"field": "y", "type": "quantitative"}, "color": {"value": GREY}}
        return [{"data": {"values": self.rows}, "mark": mark, "encoding": encoding}]

    def svg(self, frame: Frame) -> str:
        points = [(frame.across(row["x"]), frame.up(row["y"])) for row in self.rows]
        return svg.stroke(svg.trace(points), GREY, self.width, self.dash) if points else ""


@dataclass
class Levels(ChartMark):
    """Horizontal lines at some heights, each with its name at the right end."""

    right: ClassVar[int] = 520

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        data, at = {"data": {"values": self.rows}}, y.of("level").vega_lite()
        rule = {"type": "rule", "strokeDash": [4, 4], "color": GREY}
        text = {"type": "text", "align": "right", "dy": -6, "dx": -4}
        label = {"y": at, "x": {"value": self.right}, "text": {"field": "name"}}
        return [{"mark": rule, **data, "encoding": {"y": at}}, {"mark": text, **data, "encoding": label}]

    def svg(self, frame: Frame) -> str:
        heights = [(frame.up(row["level"]), row["name"]) for row in self.rows]
        lines = [_rule(f"M0 {n(y)}H{n(frame.width)}", [4, 4]) for y, _ in heights]
        return "".join(lines + [svg.text_at(self.right - 4, y - 6, name, "end") for y, name in heights])


@dataclass
class UprightRule(ChartMark):
    """A vertical line, at the value `at` of its one row."""

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        mark = {"type": "rule", "color": GREY, "strokeDash": [4, 4]}
        return [{"data": {"values": self.rows}, "mark": mark, "encoding": {"x": x.of("at").vega_lite()}}]

    def svg(self, frame: Frame) -> str:
        return "".join(_rule(f"M{n(frame.across(row['at']))} 0V{n(frame.height)}", [4, 4]) for row in self.rows)


@dataclass
class ZeroLine(ChartMark):
    """A horizontal line at 0."""

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        mark = {"type": "rule", "color": GREY}
        return [{"data": {"values": [{}]}, "mark": mark, "encoding": {"y": {"datum": 0}}}]

    def svg(self, frame: Frame) -> str:
        return _rule(f"M0 {n(frame.up(0))}H{n(frame.width)}")


@dataclass
class Spans(ChartMark):
    """Intervals from `low` to `high`, one per name; rows without an interval are left out."""

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        mark = {"type": "rule", "strokeWidth": 2.5, "color": COLOURS[0]}
        encoding = _at(x.of("low"), y, x2={"field": "high"})
        return [{"transform": [{"filter": "datum.low !== null"}], "mark": mark, "encoding": encoding}]

    def svg(self, frame: Frame) -> str:
        rows = [row for row in self.rows if row["low"] is not None and row["high"] is not None]
        paths = [(frame.across(row["low"]), frame.up(row["name"]), frame.across(row["high"])) for row in rows]
        return "".join(_rule(f"M{n(x)} {n(y)}H{n(x2)}", colour=COLOURS[0], width=2.5) for x, y, x2 in paths)


@dataclass
class Points(RowMark):
    """Points at two fields, one per row."""

    size: int
    x: str = "x"
    y: str = "y"
    opacity: float = 1
    colour: str = COLOURS[0]
    shape: str = "circle"
    own_rows: bool = False

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        shape = {} if self.shape == "circle" else {"shape": self.shape}
        look = {"size": self.size, "opacity": self.opacity, "color": self.colour}
        data = {"data": {"values": self.rows}} if self.own_rows else {}
        encoding = _at(x.of(self.x), y, **_tooltip(self.hints))
        return [{**data, "mark": {"type": "point", "filled": True, **shape, **look}, "encoding": encoding}]

    def shape_of(self, row: Spec, frame: Frame) -> str:
        if row[self.x] is None or row[self.y] is None:
            return ""
        look, at = svg.fill(self.colour, self.opacity), (frame.across(row[self.x]), frame.up(row[self.y]))
        return svg.point(look, *at, self.size, self.shape)


@dataclass
class PointNames(ChartMark):
    """The name of each row above its point."""

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        mark = {"type": "text", "align": "center", "dy": -10, "fontSize": 12}
        return [{"mark": mark, "encoding": _at(x, y, text={"field": "name"})}]

    def svg(self, frame: Frame) -> str:
        places = [(frame.across(row["x"]), frame.up(row["y"]) - 10, row["name"]) for row in self.rows]
        return "".join(svg.text_at(x, y, name, "middle") for x, y, name in places)


@dataclass
class Bars(RowMark):
    """Vertical bars from 0, one per name; `shades` colour them by the field `sign`."""

    shades: Spec | None = None

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        colour: Spec = {"value": COLOURS[0]}
        if self.shades is not None:
            scale = {"domain": list(self.shades), "range": list(self.shades.values())}
            colour = {"field": "sign", "type": "nominal", "title": None, "scale": scale, "legend": LEGEND}
        return [{"mark": {"type": "bar"}, "encoding": _at(x, y, color=colour, **_tooltip(self.hints))}]

    def shape_of(self, row: Spec, frame: Frame) -> str:
        if row["value"] is None:
            return ""
        x, half = frame.across(row["name"]), frame.width / max(len(frame.x.domain), 1) * 0.42
        look = svg.fill(COLOURS[0] if self.shades is None else self.shades[row["sign"]])
        return svg.box(look, (x - half, x + half), (frame.up(row["value"]), frame.up(0)))

    def legend(self) -> list[str]:
        """The entries of the legend in a page."""
        box = '<rect class="fill {}" width="12" height="12" y="1"/>'
        sample = f'<svg width="12" height="14" aria-hidden="true">{box}</svg>'
        return [sample.format(svg.tone(colour)) + svg.words(sign) for sign, colour in (self.shades or {}).items()]


@dataclass
class Bins(RowMark):
    """The bars of a histogram, between `from` and `to`."""

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        ends = {"x": x.vega_lite(), "x2": {"field": "to"}, "y": y.vega_lite(), "y2": {"datum": 0}}
        return [{"mark": {"type": "bar", "color": COLOURS[0]}, "encoding": {**ends, **_tooltip(self.hints)}}]

    def shape_of(self, row: Spec, frame: Frame) -> str:
        ends = (frame.across(row["from"]), frame.across(row["to"])), (frame.up(row["count"]), frame.up(0))
        return svg.box(svg.fill(COLOURS[0]), *ends)


@dataclass
class Boxes(RowMark):
    """Horizontal boxes from `lower` to `upper`, one per name."""

    thick: ClassVar[int] = 16

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        mark = {"type": "bar", "color": COLOURS[5], "opacity": 0.35, "size": self.thick}
        encoding = _at(x.of("lower"), y, x2={"field": "upper"}, **_tooltip(self.hints))
        return [{"data": {"values": self.rows}, "mark": mark, "encoding": encoding}]

    def shape_of(self, row: Spec, frame: Frame) -> str:
        if row["lower"] is None:
            return ""
        y, half = frame.up(row["name"]), min(self.thick, frame.height / max(len(frame.y.domain), 1)) / 2
        ends = (frame.across(row["lower"]), frame.across(row["upper"])), (y - half, y + half)
        return svg.box(svg.fill(COLOURS[5], 0.35), *ends)


@dataclass
class Ticks(ChartMark):
    """Short vertical strokes at the values of a field, as one path: there may be thousands."""

    x: str = "value"
    size: int = 10
    thickness: float = 1
    opacity: float = 1
    own_rows: bool = False

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        shade = {} if self.opacity == 1 else {"opacity": self.opacity}
        mark = {"type": "tick", "color": COLOURS[0], **shade, "thickness": self.thickness, "size": self.size}
        data = {"data": {"values": self.rows}} if self.own_rows else {}
        return [{**data, "mark": mark, "encoding": _at(x.of(self.x), y)}]

    def svg(self, frame: Frame) -> str:
        rows = [row for row in self.rows if row[self.x] is not None]
        places = [(frame.across(row[self.x]), frame.up(row["name"]) - self.size / 2) for row in rows]
        path = "".join(f"M{n(x)} {n(y)}v{n(self.size)}" for x, y in places)
        look = f'class="mark line {svg.tone(COLOURS[0])}" stroke-width="{self.thickness}"{svg.opacity(self.opacity)}'
        return f'<path {look} d="{path}"/>' if path else ""


@dataclass
class HeatCells(RowMark):
    """A table of shades: darker is higher; `value` is the title of the scale."""

    value: str
    domain: tuple[float, float]

    def vega_lite(self, x: Axis, y: Axis) -> list[Spec]:
        scale = {"domain": list(self.domain), "range": ["#f2f7fb", COLOURS[0]], "interpolate": "lab"}
        colour = {"field": "value", "type": "quantitative", "title": self.value, "scale": scale}
        places = {"x": x.vega_lite(), "y": y.vega_lite()}
        return [{"mark": {"type": "rect"}, "encoding": {**places, "color": colour, **_tooltip(self.hints)}}]

    def shape_of(self, row: Spec, frame: Frame) -> str:
        wide, high = frame.width / len(frame.x.domain) / 2, frame.height / len(frame.y.domain) / 2
        low, top = self.domain
        share = 0.0 if row["value"] is None else min(1.0, max(0.0, (row["value"] - low) / (top - low)))
        look = f'class="mark fill c0" opacity="{n(0.05 + 0.95 * share)}"'
        x, y = frame.across(row["x"]), frame.up(row["y"])
        return svg.box(look, (x - wide, x + wide), (y - high, y + high))


def _at(x: Axis, y: Axis, **channels: Any) -> Spec:
    """The channels of a layer; names come first, as they do in the file."""
    places = {"y": y.vega_lite(), "x": x.vega_lite()} if y.ticks is None else {"x": x.vega_lite(), "y": y.vega_lite()}
    return {**places, **channels}


def _tooltip(hints: list[Spec]) -> Spec:
    return {"tooltip": hints} if hints else {}


def _by_run(rows: list[Spec]) -> dict[str, list[Spec]]:
    groups: dict[str, list[Spec]] = {}
    for row in rows:
        groups.setdefault(row["run"], []).append(row)
    return groups


def _rule(path: str, dash: list[int] | None = None, colour: str = GREY, width: float = 1) -> str:
    return f'<path class="mark line {svg.tone(colour)}"{svg.dashed(dash)} stroke-width="{width}" d="{path}"/>'
