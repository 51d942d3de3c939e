"""What a metric of an experiment is: a class that says which numbers of a unit it needs, and what is made of them.

A unit is what was randomised. A metric names a numerator, for a ratio also a denominator, each an SQL aggregate over the
searches or the events of one unit; facts of a search are SQL aggregates over its events, or over its clicks alone, which are
few. Which events these are, the
metric's window or the time before the first exposure, is for whoever gathers them, once for all metrics of a plan.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from cranfield import registry
from cranfield.registry import Registered, Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

METRICS: Registry[Metric] = Registry("metric", "cranfield.online.metrics")
KINDS = ("mean", "ratio", "proportion", "quantile")


class Sum(NamedTuple):
    """A number of a unit: an aggregate over rows of `source`; 0 of a unit that has none.

    Rows are its `searches`, the same as `ordered` with what follows each, or its `events`. `unreadable` is a condition on
    events: those whose number is missing, infinite or not a number.
    """

    expression: str
    source: str = "searches"
    unreadable: str = ""

    @property
    def of_searches(self) -> bool:
        """Whether it is one of searches."""
        return self.source != "events"


def unreadable_number(which: str, field: str) -> str:
    """The condition for events of some kind whose field holds something, but no finite number."""
    return f"({which} AND {field} IS NOT NULL AND coalesce(NOT isfinite(TRY_CAST({field} AS DOUBLE)), true))"


class Metric(Registered, ABC):
    """What is measured of units, and how it is averaged over them.

    >>> str(METRICS.named("clicks(k=3)"))
    'clicks(k=3)'
    """

    registry = METRICS
    kind: ClassVar[str]  # of KINDS
    direction: ClassVar[str] = "up"  # which is good
    formula: ClassVar[str]
    reference: ClassVar[str] = ""
    click_facts: ClassVar[Mapping[str, str]] = {}  # aggregates over the clicks of one search, NULL where there is none
    ordered: ClassVar[Mapping[str, str]] = {}  # facts of a search that need the unit's next one: window expressions
    q: float = 0.5  # of a quantile

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts of a search that it needs: SQL aggregates over the events of one search."""
        return {}

    @property
    @abstractmethod
    def numerator(self) -> Sum:
        """What is added up over units."""

    @property
    def denominator(self) -> Sum | None:
        """What the sum is divided by; None: the number of units."""
        return None

    @property
    def sql(self) -> list[str]:
        """All that it asks of events."""
        sums = [each.expression for each in (self.numerator, self.denominator) if each is not None]
        return [*sums, *self.facts.values(), *self.click_facts.values(), *self.ordered.values()]

    @property
    def unreadable(self) -> list[str]:
        """Conditions on events whose number cannot be read."""
        sums = [self.numerator, *([] if self.denominator is None else [self.denominator])]
        return [each.unreadable for each in sums if each.unreadable]

    @property
    def counts_if(self) -> str:
        """What a unit must have to count, as SQL over the numerator `x`; empty where every unit counts."""
        return ""


def page(cls: type[Metric]) -> dict[str, Any]:
    """All that is said about a metric."""
    return registry.page(cls, kind=cls.kind, direction=cls.direction)


def catalogue() -> list[dict[str, Any]]:
    """All that is said about each metric."""
    return [page(cls) for cls in METRICS.values()]
