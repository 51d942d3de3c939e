"""The base class of experiment metrics: which numbers of a unit a metric needs, and how they are averaged.

A unit is a user or a session, whichever was randomised. A metric has a numerator, a ratio also a denominator: SQL aggregates
over the searches or the events of one unit. Facts of a search are SQL aggregates over its events, or over its clicks alone,
which are few. A metric does not choose the events (its window, the time before the exposure): `unit_queries` does so for
all metrics at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from cranfield.base import registry
from cranfield.base.registry import Registered, Registry

if TYPE_CHECKING:
    from collections.abc import Mapping


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
        """The number of a unit whose sum is the denominator; None if the number of units is."""
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
