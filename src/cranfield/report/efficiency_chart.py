"""Effectiveness against latency: a point a run, and a line through those that nothing else beats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.report.charts import GREY, scatter_chart

if TYPE_CHECKING:
    from cranfield.compare.efficiency import Efficiency

__all__ = ["efficiency_chart"]


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
        "mark": {"type": "text", "align": "left", "dx": 8, "dy": -6, "fontSize": 12},
        "encoding": {"x": across, "y": height, "text": {"field": "name"}},
    }
    spec["layer"] = [
        {"data": {"values": values}, "mark": line, "encoding": {"x": across, "y": height}},
        *spec["layer"],
        labels,
    ]
    return spec
