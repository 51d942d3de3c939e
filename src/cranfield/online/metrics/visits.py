"""Metrics of units themselves: how often they come, and what they do there in the end."""

from __future__ import annotations

from cranfield.online.metrics.metric import Metric, Sum, unreadable_number


class Searches(Metric):
    """Searches of a unit."""

    name = "searches"
    kind = "mean"
    formula = "searches / units"
    aliases = ("searches-per-unit",)

    @property
    def numerator(self) -> Sum:
        return Sum("count(*)")


class Sessions(Metric):
    """Sessions of a unit: whether people come back."""

    name = "sessions"
    kind = "mean"
    formula = "sessions / units"
    aliases = ("sessions-per-unit",)
    reference = "Kohavi et al. (2012)"

    @property
    def numerator(self) -> Sum:
        return Sum("count(DISTINCT session)", "events")


class Conversion(Metric):
    """The share of units that buy, sign up, or whatever a conversion is."""

    name = "conversion"
    kind = "proportion"
    formula = "units with a conversion / units"
    aliases = ("conversion-rate",)

    @property
    def numerator(self) -> Sum:
        return Sum("coalesce(bool_or(kind = 'conversion'), false)::INTEGER", "events")


class Revenue(Metric):
    """What the conversions of a unit are worth."""

    name = "revenue"
    kind = "mean"
    formula = "Σ values of conversions / units"
    aliases = ("revenue-per-unit",)

    @property
    def numerator(self) -> Sum:
        unreadable = unreadable_number("kind = 'conversion'", "value")
        return Sum("coalesce(sum(value) FILTER (kind = 'conversion'), 0)", "events", unreadable)
