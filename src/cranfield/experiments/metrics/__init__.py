"""Metrics of experiments, each one class: what is summed per unit, and which direction is good."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError
from cranfield.experiments.metrics.metric import MANN_WHITNEY, MEAN_OF_RATIOS, METRICS, Metric, UnitSum, catalogue, page
from cranfield.experiments.metrics.plan_metrics import PlanMetric

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.experiments.metrics.metric import MetricChoice

__all__ = ["METRICS", "Metric", "PlanMetric", "UnitSum", "catalogue", "metric_named", "metric_problem", "page"]


def metric_named(
    name: str, parameters: Mapping[str, Any] | None = None, own: Sequence[Mapping[str, Any]] = ()
) -> Metric:
    """The metric that a plan names: one that the plan defines, or a built-in one with its parameters.

    >>> str(metric_named("clicks@3")), str(metric_named("success", {"seconds": 10}))
    ('clicks(k=3)', 'success(seconds=10)')
    """
    declared = next((each for each in own if each.get("name") == name), None)
    if declared is not None:
        if parameters:
            raise ConventionError(
                f"{name}: expected no parameters for a metric of the plan, found {next(iter(parameters))!r}"
            )
        return PlanMetric(declared)
    member = METRICS.named(re.sub(r"@(\d+)$", r"(k=\1)", name.strip()))
    values = {**{key: member.values[key] for key in member.typed}, **(parameters or {})}
    return type(member)(**values)


def metric_problem(choice: MetricChoice, own: Sequence[Mapping[str, Any]]) -> str | None:
    """What is wrong with a metric that a plan names; None if it is valid."""
    try:
        member = metric_named(choice.metric, choice.parameters, own)
    except ConventionError as error:
        return str(error)
    if choice.estimate == MEAN_OF_RATIOS and member.denominator is None:
        return f"{choice.metric}: expected a ratio with estimate = {MEAN_OF_RATIOS!r}, found a {member.kind}"
    if choice.estimate == MANN_WHITNEY and member.denominator is not None:
        expected = f"expected one value per unit with estimate = {MANN_WHITNEY!r}"
        return f"{choice.metric}: {expected}, found a ratio of sums; use 'bootstrap'"
    if choice.estimate == MANN_WHITNEY and choice.relative:
        return (
            f"{choice.metric}: expected relative = false with estimate = {MANN_WHITNEY!r}, which has no relative effect"
        )
    return None
