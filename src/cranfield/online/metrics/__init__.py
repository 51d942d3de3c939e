"""Metrics of experiments, each one class: what of a unit is added up, and which direction is good."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cranfield.errors import ConventionError
from cranfield.online.choice import MANN_WHITNEY, MEAN_OF_RATIOS
from cranfield.online.metrics.metric import METRICS, Metric, Sum, catalogue, page
from cranfield.online.metrics.own import Own

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.online.choice import Choice

__all__ = ["METRICS", "Metric", "Own", "Sum", "catalogue", "metric", "page", "problem"]


def metric(name: str, parameters: Mapping[str, Any] | None = None, own: Sequence[Mapping[str, Any]] = ()) -> Metric:
    """A metric by what a plan calls it: one of its own, or ours with parameters behind the name or beside it.

    >>> str(metric("clicks@3")), str(metric("success", {"seconds": 10}))
    ('clicks(k=3)', 'success(seconds=10)')
    """
    declared = next((each for each in own if each.get("name") == name), None)
    if declared is not None:
        if parameters:
            raise ConventionError(
                f"{name}: expected no parameters beside a metric of the plan, found {next(iter(parameters))!r}"
            )
        return Own(declared)
    chosen = METRICS.named(re.sub(r"@(\d+)$", r"(k=\1)", name.strip()))
    given = {**{key: chosen.values[key] for key in chosen.typed}, **(parameters or {})}
    return type(chosen)(**given)


def problem(choice: Choice, own: Sequence[Mapping[str, Any]]) -> str | None:
    """What is wrong with a metric that a plan names, in words; None where nothing is."""
    try:
        for each in own:
            Own(each)
        chosen = metric(choice.metric, choice.parameters, own)
    except ConventionError as error:
        return str(error)
    if choice.estimate == MEAN_OF_RATIOS and chosen.denominator is None:
        return f"{choice.metric}: expected a ratio with estimate = {MEAN_OF_RATIOS!r}, found a {chosen.kind}"
    if choice.estimate == MANN_WHITNEY and chosen.denominator is not None:
        told = f"expected one value per unit with estimate = {MANN_WHITNEY!r}, found a ratio of sums"
        return f"{choice.metric}: {told}; take 'bootstrap'"
    if choice.estimate == MANN_WHITNEY and choice.relative:
        return (
            f"{choice.metric}: expected relative = false with estimate = {MANN_WHITNEY!r}, which has no relative effect"
        )
    return None
