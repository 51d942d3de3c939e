"""Metrics that a plan defines itself, without a line of SQL: which kind of event, which field of it, which of them.

[[metric]]
name = "depth"            # of scrolling
kind = "mean"             # or ratio, proportion, quantile
event = "scroll"          # the kind of event
field = "attributes.px"   # a number of it; without one, events are counted
each = "max"              # what is made of a unit's numbers: sum, max, min, mean
where = {field = "application", equals = ["web"]}
over = {event = "impression"}   # of a ratio: event, field, each, where of what it is divided by
q = 0.9                   # of a quantile
direction = "up"
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cranfield.errors import ConventionError
from cranfield.formats.events.format import FIELDS
from cranfield.online.metrics.metric import KINDS, Metric, Sum
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

EACH = {"sum": "sum", "max": "max", "min": "min", "mean": "avg"}
KNOWN = ("name", "kind", "event", "field", "each", "where", "over", "q", "direction")
PART = ("event", "field", "each", "where")


class Own(Metric):
    """A metric of a plan."""

    formula = "as the plan says"

    def __init__(self, declared: Mapping[str, Any]) -> None:
        super().__init__()
        self.declared = declared
        self.name = _text(declared, "name")  # type: ignore[misc]
        self._refuse(declared, KNOWN)
        self.kind = _one_of(declared, "kind", KINDS, "mean")  # type: ignore[misc]
        self.direction = _one_of(declared, "direction", ("up", "down"), "up")  # type: ignore[misc]
        self.q = declared.get("q", 0.5)
        if type(self.q) not in (int, float) or not 0 < self.q < 1:
            raise ConventionError(f"metric {self.name}: expected q between 0 and 1, found {shortened(self.q)}")
        if (self.kind == "ratio") != ("over" in declared):
            raise ConventionError(f"metric {self.name}: expected `over` with kind = 'ratio' and with no other")
        self._numerator = _sum(self.name, declared, self.kind)
        self._denominator = self._over(declared["over"]) if self.kind == "ratio" else None

    def _refuse(self, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
        unknown = [key for key in table if key not in known]
        if unknown:
            raise ConventionError(
                f"metric {self.name}: expected keys of {', '.join(known)}, found {shortened(unknown[0])!r}"
            )

    def _over(self, over: Any) -> Sum:
        if not isinstance(over, dict):
            raise ConventionError(f"metric {self.name}: expected over as a table, found {shortened(over)}")
        self._refuse(over, PART)
        return _sum(f"{self.name}, over", over, "ratio")

    @property
    def numerator(self) -> Sum:
        return self._numerator

    @property
    def denominator(self) -> Sum | None:
        return self._denominator

    @property
    def counts_if(self) -> str:
        return "x IS NOT NULL" if self.kind == "quantile" else ""


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def field_sql(name: str) -> str:
    """A field of an event as SQL: one of its columns, or an attribute by name."""
    if name.startswith("attributes."):
        return f"attributes[{literal(name.removeprefix('attributes.'))}]"
    if name not in FIELDS:
        raise ConventionError(f"expected a field of {', '.join(FIELDS)}, or attributes.NAME, found {shortened(name)!r}")
    return name


def condition_sql(field: str, equals: Any = (), matches: str | None = None) -> str:
    """Whether a field is one of some texts, or a regular expression is found in it; false where there is no field."""
    if matches is not None:
        return f"coalesce(regexp_matches({field_sql(field)}::VARCHAR, {literal(matches)}), false)"
    texts = ", ".join(literal(str(each)) for each in equals)
    return f"coalesce({field_sql(field)}::VARCHAR IN ({texts}), false)"


def _sum(name: str, declared: Mapping[str, Any], kind: str) -> Sum:
    """What is added up of a unit's events; of a proportion whether there is one at all."""
    try:
        wanted = [f"kind = {literal(_text(declared, 'event'))}", *_where(declared.get("where"))]
        which = " AND ".join(wanted)
        if kind == "proportion":
            if "field" in declared or "each" in declared:
                raise ConventionError(
                    "expected neither field nor each of a proportion, which asks whether there is one"
                )
            return Sum(f"coalesce(bool_or({which}), false)::INTEGER", "events")
        nothing = "NULL" if kind == "quantile" else "0"
        if "field" not in declared:
            if "each" in declared:
                raise ConventionError("expected each only beside field: without one, events are counted")
            counted = f"count(*) FILTER ({which})"
            return Sum(f"nullif({counted}, 0)" if kind == "quantile" else counted, "events")
        each = EACH[_one_of(declared, "each", tuple(EACH), "sum")]
        number = f"TRY_CAST({field_sql(_text(declared, 'field'))} AS DOUBLE)"
        return Sum(f"coalesce({each}({number}) FILTER ({which}), {nothing})", "events")
    except ConventionError as error:
        raise ConventionError(f"metric {name}: {error}") from None


def _where(where: Any) -> list[str]:
    if where is None:
        return []
    if not isinstance(where, dict) or not {*where} <= {"field", "equals", "matches"}:
        raise ConventionError(f"expected where as a table of field, equals, matches, found {shortened(where)}")
    equals, matches = where.get("equals", []), where.get("matches")
    equals = [equals] if isinstance(equals, str) else equals
    if bool(equals) == (matches is not None):
        raise ConventionError("expected either equals or matches in where")
    if matches is not None:
        try:
            re.compile(matches)
        except (re.error, TypeError) as error:
            raise ConventionError(f"expected a regular expression as matches ({error})") from None
    return [condition_sql(_text(where, "field"), equals, matches)]


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ConventionError(f"expected text as {key}, found {'none' if value is None else shortened(value)}")
    return value


def _one_of(table: Mapping[str, Any], key: str, values: tuple[str, ...], otherwise: str) -> str:
    value = table.get(key, otherwise)
    if value not in values:
        raise ConventionError(f"expected {key} of {', '.join(values)}, found {shortened(value)!r}")
    return str(value)
