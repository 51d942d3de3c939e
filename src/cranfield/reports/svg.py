"""Pieces of SVG for the charts of a page: text, outlines, colours as classes.

Colours become classes (`c0` … `c6`, `grey`), so that a page decides what they are in light, dark and print.
"""

from __future__ import annotations

import math
from html import escape
from typing import Any

from cranfield.base.text_layout import in_line

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
GREY = "#999999"
LETTER = 7.8  # the width of a letter at 12 px, in a wide font
TITLE = 8.5  # the width of a letter of an axis title, at 13 px
LONGEST = 30  # letters of a name next to an axis


def words(text: str) -> str:
    """A text for SVG: escaped, with control characters made visible."""
    return escape(in_line(text))


def tone(colour: str) -> str:
    """The class of a colour."""
    return f"c{COLOURS.index(colour)}" if colour in COLOURS else "grey"


def opacity(share: float) -> str:
    """The attribute of an opacity; none if it is 1."""
    return f' opacity="{share}"' if share != 1 else ""


def dashed(dash: list[int] | None) -> str:
    """The attribute of a dashed line; none if it is solid."""
    return f' stroke-dasharray="{" ".join(map(str, dash))}"' if dash and dash != [1, 0] else ""


def stroke(path: str, colour: str, width: float, dash: list[int] | None = None, share: float = 1) -> str:
    """A line along a path, as a mark of the chart."""
    return f'<path class="mark line {tone(colour)}" stroke-width="{width}"{dashed(dash)}{opacity(share)} d="{path}"/>'


def fill(colour: str, share: float = 1) -> str:
    """The attributes of a filled mark."""
    return f'class="mark fill {tone(colour)}"{opacity(share)}'


def box(look: str, x: tuple[float, float], y: tuple[float, float]) -> str:
    """A rectangle between two ends on each axis; never so flat that it cannot be seen."""
    wide, high = abs(x[1] - x[0]), max(abs(y[1] - y[0]), 0.6)
    return f'<rect {look} x="{n(min(x))}" y="{n(min(y))}" width="{n(wide)}" height="{n(high)}"/>'


def point(look: str, x: float, y: float, size: float, shape: str = "circle") -> str:
    """A symbol of this area around a point."""
    if shape == "circle":
        return f'<circle {look} cx="{n(x)}" cy="{n(y)}" r="{n(math.sqrt(size / math.pi))}"/>'
    return f'<path {look} d="{symbol(shape, x, y, size)}"/>'


def text_at(x: float, y: float, text: str, anchor: str, look: str = "", turn: bool = False) -> str:
    """A text, upright or turned by 90 degrees."""
    look = (f' class="{look}"' if look else "") + f' text-anchor="{anchor}"'
    if turn:
        return f'<text{look} transform="translate({n(x)},{n(y)}) rotate(-90)">{words(text)}</text>'
    return f'<text{look} x="{n(x)}" y="{n(y)}">{words(text)}</text>'


def trace(points: list[tuple[float, float]], steps: bool = False) -> str:
    """A path through points; with `steps`, up first and then across."""
    start, *rest = [(n(x), n(y)) for x, y in points] or [("0", "0")]
    return f"M{start[0]} {start[1]}" + "".join(f"V{y}H{x}" if steps else f"L{x} {y}" for x, y in rest)


def symbol(shape: str | None, x: float, y: float, size: float) -> str:
    """The outline of a symbol of this area around a point."""
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
        return f"M{n(x - r)} {n(y)}a{n(r)} {n(r)} 0 1 0 {n(2 * r)} 0a{n(r)} {n(r)} 0 1 0 {n(-2 * r)} 0z"
    return trace([(x + r * a, y + r * b) for a, b in corners]) + "z"


def with_hint(shape: str, row: dict[str, Any], hints: list[dict[str, Any]]) -> str:
    """A mark with its name and values as a title, which a browser shows under the pointer."""
    facts: list[str] = []
    for hint in hints:
        value = row.get(hint["field"])
        if hint["field"] == "query":  # follows the topic's id
            facts[-1] += f" ({value})" if value else ""
        elif value is not None:
            text = _short(value) if isinstance(value, float) else str(value)
            facts.append(text if hint["field"] in ("name", "run") else f"{hint.get('title', hint['field'])} {text}")
    title = words(": ".join([facts[0], ", ".join(facts[1:])]) if len(facts) > 1 else "".join(facts))
    return shape.replace("/>", f"><title>{title}</title></{shape[1:].partition(' ')[0]}>") if title else shape


def _short(value: float) -> str:
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def cut(text: str, longest: float = LONGEST) -> str:
    """A long name without its middle: names of runs often differ at their ends."""
    text, half = in_line(text), int(longest) // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[1 - half :]}"


def n(number: float) -> str:
    """A number in few letters."""
    text = f"{number + 1e-7:.1f}".removesuffix(".0")  # page.js rounds halves up as well
    return "0" if text == "-0" else text
