"""Charts of leaderboards, of stability and of power, made with the makers of common charts.

Nothing is computed here: a curve's points come with what is drawn.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cranfield.errors import ConventionError
from cranfield.report.charts import interval_chart, line_chart, scatter_chart

if TYPE_CHECKING:
    from cranfield.compare.leaderboard import Leaderboard
    from cranfield.design import Plans
    from cranfield.stability import Stability


def rank_chart(board: Leaderboard) -> dict[str, Any]:
    """The ranks of a leaderboard with their intervals, best above."""
    rows = [(row.run, row.rank, row.low or row.rank, row.high or row.rank) for row in board.rows]
    title = f"Ranks by {board.sort}, with {100 * board.level:g} % intervals"
    return interval_chart(rows, "rank", title, domain=(1, max(2, len(rows))), whole=True)


def power_chart(plans: Plans) -> dict[str, Any]:
    """Power by number of topics, a line a test (and measure, where there are several)."""
    several = len(plans.plans) > 1
    series = {}
    for plan in plans.plans:
        for each in plan.tests:
            points = [(size, y) for size, y in zip(plan.sizes, each.curve, strict=True) if not math.isnan(y)]
            name = f"{plan.measure}: {each.test}" if several else each.test
            if points:
                series[name] = [x for x, _ in points], [y for _, y in points]
    first = plans.plans[0]
    facts = [f"{plan.measure or 'to find'}: difference {plan.difference:.4g}, {plan.about}" for plan in plans.plans]
    wanted = {f"power {first.power:g}": first.power}
    return line_chart(
        series, "topics", "power", "Power by number of topics", subtitle=facts, y_domain=(0, 1), rules=wanted
    )


def stability_chart(found: Stability) -> dict[str, Any]:
    """The one part that was asked for."""
    if len(found.chosen) != 1 or found.chosen[0] not in _CHARTS:
        drawn = ", ".join(_CHARTS)
        raise ConventionError(f"a chart shows one part, one of {drawn}; found {', '.join(found.chosen)}")
    return _CHARTS[found.chosen[0]](found)


def _levels(found: Stability) -> dict[str, Any]:
    """Achieved significance levels: the p-values of all pairs, sorted; the lower a curve, the more is told apart."""
    series = {}
    for each in sorted(found.discrimination, key=lambda each: -each.power):
        ranks = [i + 1.0 for i in range(len(each.levels))]
        series[f"{each.measure} ({100 * each.power:.1f} %)"] = ranks, list(each.levels)
    test = found.settings["test"]
    alpha = found.settings["alpha"]
    alone = list(series) if len(series) == 1 else []  # a single line has no legend
    said = [*alone, f"p-values of all pairs of runs by {test}, largest first; in brackets the share below {alpha:g}"]
    rules = {f"alpha {alpha:g}": alpha}
    title = "Achieved significance levels"
    return line_chart(
        series, "pairs of runs, by p", "p", title, subtitle=said, y_domain=(0, 1), rules=rules, points=False
    )


def _halves(found: Stability) -> dict[str, Any]:
    kinds = list(dict.fromkeys(each.kind for each in found.halves))
    shown = [each for each in found.halves if each.kind == kinds[0]]
    series = {each.measure: _columns([point[:2] for point in each.curve]) for each in shown}
    bands = None
    if len(shown) == 1:
        kept = [point for point in shown[0].curve if not math.isnan(point[1])]
        bands = {shown[0].measure: ([point[2] for point in kept], [point[3] for point in kept])}
    title = f"Agreement of two separate sets of topics ({kinds[0]})"
    return line_chart(series, "topics in each set", kinds[0], title, bands=bands)


def _components(found: Stability) -> dict[str, Any]:
    series = {}
    for each in found.generalisability:
        series[f"{each.measure}: Eρ²"] = _columns([(size, e_rho2) for size, e_rho2, _ in each.curve])
        series[f"{each.measure}: Φ"] = _columns([(size, phi) for size, _, phi in each.curve])
    target = found.settings["target"]
    title = "Reliability by number of topics (D-study)"
    return line_chart(series, "topics", "coefficient", title, y_domain=(0, 1), rules={f"{target:g}": target})


def _qrels(found: Stability) -> dict[str, Any]:
    name, points = next(iter(found.means.items()))
    row = found.qrels[0]
    values = ", ".join(f"{kind} {value:.3f}" for kind, value in row.values.items() if not math.isnan(value))
    return scatter_chart(
        points, row.first, row.second, f"{name} of each run under two sets of judgments", subtitle=[values]
    )


def _columns(points: list[Any]) -> tuple[list[float], list[float]]:
    kept = [(float(x), float(y)) for x, y in points if not math.isnan(y)]
    return [x for x, _ in kept], [y for _, y in kept]


_CHARTS = {"discrimination": _levels, "halves": _halves, "generalisability": _components, "qrels": _qrels}
