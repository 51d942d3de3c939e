"""Metrics that a plan defines itself, without SQL: the kind of event, its field, and which events count.

[[metric]]
name = "depth"            # of scrolling
kind = "mean"             # or ratio, proportion, quantile
event = "scroll"          # the kind of event
field = "attributes.px"   # a number of the event; without a field, events are counted
each = "max"              # how a unit's numbers are combined: sum, max, min, mean
where = {field = "application", equals = ["web"]}
over = {event = "impression"}   # the denominator of a ratio: event, field, each, where
q = 0.9                   # for a quantile
direction = "up"
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import shortened
from cranfield.base.schemas import Between, OneOf, Text, check
from cranfield.experiments.metrics.metric import DIRECTIONS, KINDS, Metric, UnitSum, unreadable_number
from cranfield.formats.event_files.format import FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping

EACH = {"sum": "sum", "max": "max", "min": "min", "mean": "avg"}
Each = Annotated[str, OneOf(tuple(EACH))]


@dataclass(frozen=True)
class WhereTable:
    """`where` of a metric: which events count."""

    field: Text
    equals: str | tuple[str | int | float | bool, ...] = ()
    matches: Text | None = None


@dataclass(frozen=True)
class OverTable:
    """`over` of a ratio: its denominator."""

    event: Text
    field: Text | None = None
    each: Each | None = None
    where: WhereTable | None = None


@dataclass(frozen=True)
class MetricTable:
    """[[metric]] of a plan."""

    name: Text
    event: Text
    kind: Annotated[str, OneOf(KINDS)] = KINDS[0]
    field: Text | None = None
    each: Each | None = None
    where: WhereTable | None = None
    over: OverTable | None = None
    q: Annotated[float, Between(0, 1, above=True, below=True)] = 0.5
    direction: Annotated[str, OneOf(DIRECTIONS)] = DIRECTIONS[0]


class PlanMetric(Metric):
    """A metric that a plan defines."""

    formula = "as the plan defines it"
    numerator: UnitSum = UnitSum("")  # of every metric its own, as is the denominator
    denominator: UnitSum | None = None

    def __init__(self, declared: Mapping[str, Any]) -> None:
        super().__init__()
        self.declared = declared
        try:
            table = check(dict(declared), MetricTable, f"metric {shortened(declared.get('name', ''))}".strip())
        except DataError as error:
            raise ConventionError(str(error)) from None
        self.name = table.name  # type: ignore[misc]
        self.kind = table.kind  # type: ignore[misc]
        self.direction = table.direction  # type: ignore[misc]
        self.q = table.q
        if (self.kind == "ratio") != (table.over is not None):
            raise ConventionError(f"metric {self.name}: expected `over` with kind = 'ratio' and with no other")
        self.numerator = _sum(self.name, table, self.kind)
        self.denominator = None if table.over is None else _sum(f"{self.name}, over", table.over, "ratio")
        self.counts_if = "x IS NOT NULL" if self.kind == "quantile" else ""


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def field_sql(name: str) -> str:
    """The SQL of an event field: a column, or an attribute by name."""
    if name.startswith("attributes."):
        return f"attributes[{literal(name.removeprefix('attributes.'))}]"
    if name not in FIELDS:
        raise ConventionError(f"expected a field of {', '.join(FIELDS)}, or attributes.NAME, found {shortened(name)!r}")
    return name


def condition_sql(field: str, equals: Any = (), matches: str | None = None) -> str:
    """The SQL condition that a field equals one of some texts or matches a regular expression; false if it is missing."""
    if matches is not None:
        return f"coalesce(regexp_matches({field_sql(field)}::VARCHAR, {literal(matches)}), false)"
    texts = ", ".join(literal(str(each)) for each in equals)
    return f"coalesce({field_sql(field)}::VARCHAR IN ({texts}), false)"


def _sum(name: str, table: MetricTable | OverTable, kind: str) -> UnitSum:
    """The sum over a unit's events; for a proportion, whether there is such an event."""
    try:
        which = " AND ".join([f"kind = {literal(table.event)}", *_where(table.where)])
        if kind == "proportion":
            if table.field is not None or table.each is not None:
                raise ConventionError(
                    "expected neither field nor each for a proportion, which asks whether there is such an event"
                )
            return UnitSum(f"coalesce(bool_or({which}), false)::INTEGER", "events")
        nothing = "NULL" if kind == "quantile" else "0"
        if table.field is None:
            if table.each is not None:
                raise ConventionError("expected each only together with field: without a field, events are counted")
            count = f"count(*) FILTER ({which})"
            return UnitSum(f"nullif({count}, 0)" if kind == "quantile" else count, "events")
        source = field_sql(table.field)
        number = f"TRY_CAST({source} AS DOUBLE)"
        unreadable = unreadable_number(which, source)
        return UnitSum(
            f"coalesce({EACH[table.each or 'sum']}({number}) FILTER ({which}), {nothing})", "events", unreadable
        )
    except ConventionError as error:
        raise ConventionError(f"metric {name}: {error}") from None


def _where(where: WhereTable | None) -> list[str]:
    if where is None:
        return []
    equals = (where.equals,) if isinstance(where.equals, str) else where.equals
    if bool(equals) == (where.matches is not None):
        raise ConventionError("expected either equals or matches in where")
    wrong = pattern_problem(where.matches or "")
    if wrong:
        raise ConventionError(f"expected a regular expression as matches ({wrong})")
    return [condition_sql(where.field, equals, where.matches)]


BEYOND_RE2 = re.compile(r"(?<!\\)(?:\\\\)*(\(\?(?:<?[=!]|>|P=|\()|\\[1-9])")


def pattern_problem(pattern: str) -> str | None:
    """What is wrong with a regular expression for DuckDB, which has no lookaround or backreference; None if it is valid."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    beyond = BEYOND_RE2.search(pattern)
    return f"{beyond[1]} is not known to DuckDB" if beyond else None
