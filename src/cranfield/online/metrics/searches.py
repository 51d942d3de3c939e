"""Metrics of searches: each a ratio of two sums over the searches of units, so that its variance is one between units.

A search is a result page: the impression of its id, and what was clicked on it. It belongs to the day on which it began.
"""

from __future__ import annotations

from cranfield.online.metrics.metric import Metric, Sum, unreadable_number
from cranfield.parameters import Real, Whole

CLICKED = {"clicked": "true"}
SEARCHES = Sum("count(*)")


class PerSearch(Metric):
    """A fact of searches, averaged over all searches of all units."""

    kind = "ratio"

    @property
    def denominator(self) -> Sum:
        return SEARCHES


class ClickThrough(PerSearch):
    """The share of searches with a click."""

    name = "click-through"
    formula = "searches with a click / searches"
    aliases = ("ctr", "click-through-rate")
    reference = "Joachims et al. (2005)"
    click_facts = CLICKED

    @property
    def numerator(self) -> Sum:
        return Sum("count(clicked)")


class Abandonment(PerSearch):
    """The share of searches without a click. A page may also have answered without one."""

    name = "abandonment"
    direction = "down"
    formula = "searches without a click / searches"
    reference = "Radlinski et al. (2008)"
    click_facts = CLICKED

    @property
    def numerator(self) -> Sum:
        return Sum("count(*) - count(clicked)")


class Clicks(PerSearch):
    """Documents clicked at the first k ranks, by search."""

    name = "clicks"
    formula = "distinct documents clicked at ranks 1…k / searches"
    reference = "Radlinski et al. (2008)"
    aliases = ("clicks@k",)
    k = Whole(10, "how many ranks are looked at")

    @property
    def click_facts(self) -> dict[str, str]:  # type: ignore[override]
        return {f"clicks_{self.k}": f"count(DISTINCT document) FILTER (position <= {self.k})"}

    @property
    def numerator(self) -> Sum:
        return Sum(f"sum(clicks_{self.k})")


class Reformulation(PerSearch):
    """The share of searches that are followed by another query of the same session soon."""

    name = "reformulation"
    direction = "down"
    formula = "searches whose next one in the session asks something else within `minutes` / searches"
    reference = "Hassan et al. (2013)"
    minutes = Real(5.0, "how soon the next search must follow", low=0.0, open=True)
    ordered = {
        "next_query": "lead(query) OVER (PARTITION BY number, session ORDER BY began, search)",
        "next_began": "lead(began) OVER (PARTITION BY number, session ORDER BY began, search)",
    }

    @property
    def numerator(self) -> Sum:
        soon = f"epoch_us(next_began) - epoch_us(began) <= {60e6 * self.minutes!r}"
        return Sum(f"count(*) FILTER (session IS NOT NULL AND next_query <> query AND {soon})", "ordered")

    @property
    def denominator(self) -> Sum:
        return Sum("count(*)", "ordered")


class TimeToClick(PerSearch):
    """Seconds from a result page to its first click, over searches with one."""

    name = "time-to-click"
    direction = "down"
    formula = "seconds to the first click / searches with a click"
    aliases = ("time-to-first-click",)
    reference = "Chapelle et al. (2012)"

    click_facts = {**CLICKED, "first_click": "min(time)"}

    @property
    def numerator(self) -> Sum:
        return Sum("sum(greatest(epoch_us(first_click) - epoch_us(began), 0)) / 1e6")

    @property
    def denominator(self) -> Sum:
        return Sum("count(clicked)")


class ReciprocalRank(PerSearch):
    """One over the highest rank that was clicked, 0 of a search without a click."""

    name = "reciprocal-rank"
    formula = "Σ 1 / highest clicked rank / searches"
    aliases = ("rr", "max-rr")
    reference = "Radlinski et al. (2008)"

    click_facts = {"highest": "min(position)"}

    @property
    def numerator(self) -> Sum:
        return Sum("coalesce(sum(1.0 / highest), 0)")


class PSkip(PerSearch):
    """The chance that a document above the lowest click was passed over."""

    name = "pskip"
    direction = "down"
    formula = "ranks not clicked above the lowest click / ranks down to it"
    reference = "Wang et al. (2009)"

    click_facts = {"lowest": "max(position)", "ranks": "count(DISTINCT position)"}

    @property
    def numerator(self) -> Sum:
        return Sum("coalesce(sum(lowest - ranks), 0)")

    @property
    def denominator(self) -> Sum:
        return Sum("coalesce(sum(lowest), 0)")


class Success(PerSearch):
    """The share of searches with a document that held its reader."""

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
    def numerator(self) -> Sum:
        return Sum(f"sum({self._fact})", unreadable=unreadable_number("kind = 'dwell'", "value"))
