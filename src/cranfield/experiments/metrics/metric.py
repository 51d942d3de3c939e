"""The base class of experiment metrics, with the built-in ones: which numbers of a unit they need, and how they average.

A unit is a user or a session, whichever was randomised. A metric has a numerator, a ratio also a denominator: SQL aggregates
over the searches or the events of one unit. Facts of a search are SQL aggregates over its events, or over its clicks alone,
which are few. A metric does not choose the events (its window, the time before the exposure): `unit_queries` does so for
all metrics at once.

A search is a result page: the impression with its id, and the clicks on it. It belongs to the day on which it began. A
metric of searches is a ratio of two sums over a unit's searches, so its variance is the one between units.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from cranfield.base import registry
from cranfield.base.parameters import Real, Whole
from cranfield.base.registry import Registered, Registry

if TYPE_CHECKING:
    from collections.abc import Mapping


CLICKED = {"clicked": "true"}  # a fact of searches
DIRECTIONS = ("up", "down")
MEAN_OF_RATIOS, MANN_WHITNEY = "mean-of-ratios", "mann-whitney"
ESTIMATES = ("plain", "cuped", "bootstrap", MANN_WHITNEY, MEAN_OF_RATIOS)


@dataclass(frozen=True)
class MetricChoice:
    """A metric that a plan names: name, parameters, good direction, margin, window in days, and the deciding estimate."""

    metric: str
    direction: str | None = None  # None: the metric's own
    margin: float | None = None
    relative: bool = False  # whether the margin is a share of the control's value
    window: int | None = None  # the first days of each unit; None: open
    estimate: str = ESTIMATES[0]
    parameters: Mapping[str, Any] = field(default_factory=dict)


METRICS: Registry[type[Metric]] = Registry("metric", "experiment_metrics", "cranfield.experiments.metrics")
KINDS = ("mean", "ratio", "proportion", "quantile")


class UnitSum(NamedTuple):
    """A sum per unit: an SQL aggregate over rows of `source`, 0 for a unit without rows.

    The source is `searches`, `ordered` (searches with facts about the next one) or `events`. `unreadable` is a condition
    on events: their number is missing, infinite or not a number.
    """

    expression: str
    source: str = "searches"
    unreadable: str = ""

    @property
    def of_searches(self) -> bool:
        """Whether the rows are searches."""
        return self.source != "events"


def unreadable_number(which: str, field: str) -> str:
    """The SQL condition for events of some kind whose field is present but is not a finite number."""
    return f"({which} AND {field} IS NOT NULL AND coalesce(NOT isfinite(TRY_CAST({field} AS DOUBLE)), true))"


class Metric(Registered, ABC):
    """A quantity measured per unit, and how it is averaged over units.

    >>> str(METRICS.named("clicks(k=3)"))
    'clicks(k=3)'
    """

    registry = METRICS
    kind: ClassVar[str]  # of KINDS
    direction: ClassVar[str] = "up"  # which is good
    formula: ClassVar[str]
    reference: ClassVar[str] = ""
    click_facts: ClassVar[Mapping[str, str]] = {}  # aggregates over the clicks of one search, NULL if there are none
    ordered: ClassVar[Mapping[str, str]] = {}  # window expressions about the unit's next search
    q: float = 0.5  # of a quantile
    counts_if: str = ""  # an SQL condition on the numerator `x`: which units count; empty: all

    @property
    def facts(self) -> Mapping[str, str]:
        """The facts of a search that the metric needs: SQL aggregates over the events of one search."""
        return {}

    @property
    @abstractmethod
    def numerator(self) -> UnitSum:
        """The number of a unit that is added up over all units."""

    @property
    def denominator(self) -> UnitSum | None:
        """The quantity of a unit whose sum is the denominator; None if the denominator is the number of units."""
        return None

    @property
    def sql(self) -> list[str]:
        """All SQL expressions of the metric."""
        sums = [each.expression for each in (self.numerator, self.denominator) if each is not None]
        return [*sums, *self.facts.values(), *self.click_facts.values(), *self.ordered.values()]

    @property
    def unreadable(self) -> list[str]:
        """The SQL conditions for events whose number cannot be read."""
        return [each.unreadable for each in (self.numerator, self.denominator) if each is not None and each.unreadable]


def page(cls: type[Metric]) -> dict[str, Any]:
    """The description of a metric, for listings and docs."""
    return registry.page(cls, kind=cls.kind, direction=cls.direction)


def catalogue() -> list[dict[str, Any]]:
    """The descriptions of all metrics."""
    return [page(cls) for cls in METRICS.values()]


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
