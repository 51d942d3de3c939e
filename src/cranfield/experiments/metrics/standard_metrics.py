"""The built-in metrics: ratios over the searches of units, and means or proportions of units.

A search is a result page: the impression with its id, and the clicks on it. It belongs to the day on which it began. A
metric of searches is a ratio of two sums over a unit's searches, so its variance is the one between units.
"""

from __future__ import annotations

from cranfield.base.parameters import Real, Whole
from cranfield.experiments.metrics.metric import Metric, UnitSum, unreadable_number

CLICKED = {"clicked": "true"}


class PerSearch(Metric):
    """A fact of searches, averaged over all searches of all units."""

    kind = "ratio"
    denominator = UnitSum("count(*)")


class ClickThrough(PerSearch):
    """The share of searches with a click."""

    name = "click-through"
    formula = "searches with a click / searches"
    aliases = ("ctr", "click-through-rate")
    reference = "Joachims et al. (2005)"
    click_facts = CLICKED
    numerator = UnitSum("count(clicked)")


class Abandonment(PerSearch):
    """The share of searches without a click. Some result pages may have answered the query directly."""

    name = "abandonment"
    direction = "down"
    formula = "searches without a click / searches"
    reference = "Radlinski et al. (2008)"
    click_facts = CLICKED
    numerator = UnitSum("count(*) - count(clicked)")


class Clicks(PerSearch):
    """Documents clicked at the first k ranks, per search."""

    name = "clicks"
    formula = "distinct documents clicked at ranks 1…k / searches"
    reference = "Radlinski et al. (2008)"
    aliases = ("clicks@k",)
    k = Whole(10, "the number of ranks that count (cut-off)")

    @property
    def click_facts(self) -> dict[str, str]:  # type: ignore[override]
        return {f"clicks_{self.k}": f"count(DISTINCT document) FILTER (position <= {self.k})"}

    @property
    def numerator(self) -> UnitSum:
        return UnitSum(f"sum(clicks_{self.k})")


class Reformulation(PerSearch):
    """The share of searches that are soon followed by another query of the same session."""

    name = "reformulation"
    direction = "down"
    formula = "searches whose next one in the session asks something else within `minutes` / searches"
    reference = "Hassan et al. (2013)"
    minutes = Real(5.0, "how soon the next search must follow", low=0.0, open=True)
    ordered = {
        "next_query": "lead(query) OVER (PARTITION BY number, session ORDER BY began, search)",
        "next_began": "lead(began) OVER (PARTITION BY number, session ORDER BY began, search)",
    }
    denominator = UnitSum("count(*)", "ordered")

    @property
    def numerator(self) -> UnitSum:
        soon = f"epoch_us(next_began) - epoch_us(began) <= {60e6 * self.minutes!r}"
        return UnitSum(f"count(*) FILTER (session IS NOT NULL AND next_query <> query AND {soon})", "ordered")


class TimeToClick(PerSearch):
    """Seconds from a result page to its first click, over searches with one."""

    name = "time-to-click"
    direction = "down"
    formula = "seconds to the first click / searches with a click"
    aliases = ("time-to-first-click",)
    reference = "Chapelle et al. (2012)"
    click_facts = {**CLICKED, "first_click": "min(time)"}
    numerator = UnitSum("sum(greatest(epoch_us(first_click) - epoch_us(began), 0)) / 1e6")
    denominator = UnitSum("count(clicked)")


class ReciprocalRank(PerSearch):
    """One over the highest clicked rank; 0 for a search without a click."""

    name = "reciprocal-rank"
    formula = "Σ 1 / highest clicked rank / searches"
    aliases = ("rr", "max-rr")
    reference = "Radlinski et al. (2008)"
    click_facts = {"highest": "min(position)"}
    numerator = UnitSum("coalesce(sum(1.0 / highest), 0)")


class PSkip(PerSearch):
    """The probability that a document above the lowest click was skipped."""

    name = "pskip"
    direction = "down"
    formula = "ranks not clicked above the lowest click / ranks down to it"
    reference = "Wang et al. (2009)"
    click_facts = {"lowest": "max(position)", "ranks": "count(DISTINCT position)"}
    numerator = UnitSum("coalesce(sum(lowest - ranks), 0)")
    denominator = UnitSum("coalesce(sum(lowest), 0)")


class SuccessRate(PerSearch):
    """The share of searches with a document that was read long enough."""

    name = "success"
    formula = "searches with a dwell of `seconds` or more / searches"
    reference = "Fox et al. (2005)"
    aliases = ("satisfied", "success-rate")
    seconds = Real(30.0, "how long is long enough", low=0.0)

    @property
    def _fact(self) -> str:
        return f"held_{self.seconds!r}".replace(".", "_").replace("-", "_")

    @property
    def facts(self) -> dict[str, str]:
        return {self._fact: f"coalesce(bool_or(kind = 'dwell' AND value >= {self.seconds!r}), false)::INTEGER"}

    @property
    def numerator(self) -> UnitSum:
        return UnitSum(f"sum({self._fact})", unreadable=unreadable_number("kind = 'dwell'", "value"))


# metrics of units


class SearchesPerUnit(Metric):
    """How many searches a unit makes."""

    name = "searches"
    kind = "mean"
    formula = "searches / units"
    aliases = ("searches-per-unit",)
    numerator = UnitSum("count(*)")


class SessionsPerUnit(Metric):
    """Sessions per unit: whether people come back."""

    name = "sessions"
    kind = "mean"
    formula = "sessions / units"
    aliases = ("sessions-per-unit",)
    reference = "Kohavi et al. (2012)"
    numerator = UnitSum("count(DISTINCT session)", "events")


class Conversion(Metric):
    """The share of units with a conversion, such as a purchase or a registration."""

    name = "conversion"
    kind = "proportion"
    formula = "units with a conversion / units"
    aliases = ("conversion-rate",)
    numerator = UnitSum("coalesce(bool_or(kind = 'conversion'), false)::INTEGER", "events")


class Revenue(Metric):
    """The value of the conversions per unit."""

    name = "revenue"
    kind = "mean"
    formula = "Σ values of conversions / units"
    aliases = ("revenue-per-unit",)
    numerator = UnitSum(
        "coalesce(sum(value) FILTER (kind = 'conversion'), 0)",
        "events",
        unreadable_number("kind = 'conversion'", "value"),
    )
