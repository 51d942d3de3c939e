"""Charts of pooling: what each strategy finds for how much effort."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.report.charts import line_chart

if TYPE_CHECKING:
    from cranfield.pool.simulate import Simulation


def simulation_chart(found: Simulation) -> dict[str, Any]:
    """Relevant documents found by effort, a line a strategy, with the area under each in its name."""
    named = {f"{each.strategy}  ({each.area:.3f})": each for each in sorted(found.replays, key=lambda each: -each.area)}
    series = {}
    for name, each in named.items():
        last = len(each.curve) - 1
        series[name] = ([100 * i / last for i in range(last + 1)], [100 * share for share in each.curve])
    said = f"{len(found.runs)} runs to depth {found.depth}, {found.topics} topics, {found.documents:,} documents"
    return line_chart(
        series,
        "judged, % of the pool",
        "relevant documents found, %",
        "What each strategy finds",
        subtitle=[said],
        x_domain=(0, 100),
        y_domain=(0, 100),
    )
