"""Effectiveness against latency: a table of what runs cost, and a point a run with a line through the Pareto front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.compare.efficiency import shown
from cranfield.report.charts import GREY, scatter_chart
from cranfield.report.tables import Cell, Table, number

if TYPE_CHECKING:
    from cranfield.compare.efficiency import Efficiency


def cost_table(found: Efficiency, digits: int = 4) -> Table:
    """A row a run: its score, what was measured, and whether it is on the front."""
    names = found.columns()
    rows = []
    for row in found.rows:
        cells = row.cells()
        measured = [Cell("–") if (value := cells[name]) is None else Cell(shown(value), value) for name in names]
        front = Cell("on it" if row.on_front else "", float(row.on_front))
        rows.append([Cell(row.run), Cell(number(row.score, digits), row.score), *measured, front])
    caption = f"{found.measure} and what the runs cost"
    return Table(caption, ["run", found.measure, *names, "front"], rows)


def efficiency_chart(found: Efficiency) -> dict[str, Any]:
    """The Vega-Lite specification; runs without a latency are left out and named in the subtitle."""
    known = [row for row in found.rows if row.latency is not None]
    x = f"{found.latency} latency (ms)"
    said = [f"Pareto front: {', '.join(found.front)}"] if found.front else []
    spec = scatter_chart(
        [(row.run, row.latency or 0.0, row.score) for row in known],
        x,
        found.measure,
        f"{found.measure} against {found.latency} latency",
        subtitle=[*said, *found.notes()],
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
