"""SQL on DuckDB: from an event log and a plan to statistics per variant, for all metrics of the plan at once.

A unit (randomisation unit: user, session) enters by its first exposure. The log is read once, for the events of units in
the experiment and the fields that the plan needs. One table has a row per unit and the columns of all metrics, each over
its own window and, for covariates, over the time before the first exposure. Means and covariances per variant come back as
moments; quantiles, the bootstrap and ranks get counts of values.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from cranfield.base.errors import DataError
from cranfield.experiments.assignment import OVERRIDE
from cranfield.experiments.log import EventSource, connect, duckdb_in_words
from cranfield.experiments.metrics import Metric, metric_named
from cranfield.experiments.metrics.metric import MEAN_OF_RATIOS, MetricChoice
from cranfield.experiments.metrics.plan_metrics import condition_sql, field_sql, literal
from cranfield.formats.event_files.format import FIELDS, imported
from cranfield.stats.moments import Moments
from cranfield.stats.unit_effects import DistinctRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.experiments.plan import Plan

UNIT_ESTIMATES = ("bootstrap", "mann-whitney")  # estimates that need the units themselves
ALL_TIME, BEFORE = (0.0, None), (None, 0.0)  # windows, in days since the first exposure
SMALL = 1_000_000  # events that one thread adds up, so that sums are the same to the last digit
MOST_SLICES = 20  # per field, those with the most units

Window = tuple[float | None, float | None]


@dataclass(frozen=True)
class PlannedMetric:
    """A metric of a plan, with its window and the number of its columns."""

    choice: MetricChoice
    definition: Metric
    guards: bool  # whether it is a guardrail
    place: int = 0
    window: Window = field(default=ALL_TIME)

    @property
    def name(self) -> str:
        """The metric's name in reports."""
        return str(self.definition)

    @property
    def direction(self) -> str:
        """The good direction: up or down."""
        return self.choice.direction or self.definition.direction

    @property
    def needs_values(self) -> bool:
        """Whether the metric needs counts of the units' values, instead of moments."""
        return self.definition.kind == "quantile" or self.choice.estimate in UNIT_ESTIMATES

    @property
    def covariate(self) -> bool:
        """Whether the estimate uses the time before the first exposure (CUPED)."""
        return self.choice.estimate == "cuped"

    def column(self, what: str) -> str:
        """The name of a column: x, y (the sums), xp, yp (before the exposure), there (whether a unit has a past before it)."""
        return f"m{self.place}_{what}"

    @property
    def columns(self) -> list[str]:
        """The metric's columns, the numerator first."""
        below = self.definition.denominator is not None
        before = ["xp", *(["yp"] if below else []), "there"] if self.covariate else []
        return [self.column(what) for what in ["x", *(["y"] if below else []), *before]]

    def value(self, column: str) -> str:
        """A column as SQL, 0 for a unit without a value.

        For a mean of ratios, the numerator is the unit's own ratio and the denominator whether the unit has one.
        """
        plain = f"coalesce({column}, 0)::DOUBLE"
        if self.choice.estimate != MEAN_OF_RATIOS:
            return plain
        below = f"coalesce({self.column('y')}, 0)"
        own = f"{plain} / {below}" if column == self.column("x") else "1.0"
        return f"CASE WHEN {below} <> 0 THEN {own} ELSE 0.0 END"


def planned_metrics(plan: Plan) -> tuple[PlannedMetric, ...]:
    """The metrics of a plan, primaries first."""
    metrics = []
    for i, choice in enumerate((*plan.primary, *plan.guardrails)):
        definition = metric_named(choice.metric, choice.parameters, plan.metrics)
        metrics.append(PlannedMetric(choice, definition, i >= len(plan.primary), i, (0.0, choice.window)))
    return tuple(metrics)


class HeaviestUnit(NamedTuple):
    """The unit with the largest denominator of a ratio in its variant, and its share of the variant's sum."""

    unit: str
    share: float


class VariantStatistics(NamedTuple):
    """The statistics of a metric per variant: moments of its columns, or counts of the units' values."""

    moments: dict[str, Moments]
    values: dict[str, DistinctRows]
    units: dict[str, int]
    covered: dict[str, int] | None = None  # for a quantile: units that have a value
    heaviest: dict[str, HeaviestUnit] | None = None  # for a ratio of sums


class FilterCount(NamedTuple):
    """A filter and how many units or events it left out."""

    name: str
    drop: str
    number: int


class UnitQueries:
    """A DuckDB connection to an event log, with the queries for one plan's experiment up to some time."""

    def __init__(self, log: EventSource, plan: Plan, memory: str | None = None) -> None:
        self.plan = plan
        self.log = log
        self.metrics = planned_metrics(plan)
        self._spill = tempfile.TemporaryDirectory(prefix="cranfield-")
        self.connection = connect()
        try:
            self._open(memory)
        except BaseException:
            self.close()
            raise

    def _open(self, memory: str | None) -> None:
        self.connection.execute(f"SET temp_directory = {literal(self._spill.name)}")
        if memory is not None:
            try:
                self.connection.execute(f"SET memory_limit = {literal(memory)}")
            except imported("duckdb").Error as error:
                problem = str(error).splitlines()[0]
                raise DataError(f"memory: expected a size such as 3GB, found {memory!r} ({problem})") from None
        with duckdb_in_words(self.plan.name, self.log.files()):
            self.log.relation(self.connection).create_view("cranfield_events", replace=True)
        if self.count("SELECT count(*) FROM cranfield_events") < SMALL:
            self.connection.execute("SET threads = 1")
        self._expose()

    def close(self) -> None:
        """Close the connection and remove its temporary files."""
        self.connection.close()
        self._spill.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query; DataError if DuckDB cannot compute it."""
        with duckdb_in_words(self.plan.name, self.log.files()):
            return self.connection.execute(query, list(values)).fetchall()

    def one(self, query: str, *values: Any) -> tuple[Any, ...]:
        """The only row of a query."""
        return self.rows(query, *values)[0]

    # units in the experiment

    def _expose(self) -> None:
        """Make the table of all exposed units: their first exposure, its variant, and how many variants they saw."""
        slices = "".join(
            f", arg_min({field_sql(name)}::VARCHAR, time) AS slice_{i}"
            for i, name in enumerate(self.plan.slices)
            if name != "query"
        )
        forced = f"coalesce(attributes[{literal(OVERRIDE)}], 'false') = 'true'"
        by_hand = ", ".join(literal(unit) for unit in self.plan.overrides) or "NULL"
        self.rows(
            "CREATE OR REPLACE TEMP TABLE cranfield_exposed AS SELECT row_number() OVER ()::INTEGER AS number, * "
            "FROM (SELECT unit, min(time) AS first, "
            "arg_min(variant, time) AS variant, count(DISTINCT variant) AS variants, "
            f"bool_or({forced}) OR coalesce(unit IN ({by_hand}), false) AS override{slices} "
            "FROM cranfield_events WHERE kind = 'exposure' AND experiment = ? GROUP BY unit)",
            self.plan.name,
        )

    def first_exposure(self) -> datetime | None:
        """When the first unit entered."""
        first = self.one("SELECT min(first) FROM cranfield_exposed WHERE NOT override")[0]
        return None if first is None else first.replace(tzinfo=UTC)

    def exposed_before(self, time: datetime) -> int:
        """The number of units first exposed before some time."""
        return self.count("SELECT count(*) FROM cranfield_exposed WHERE NOT override AND first < ?", naive(time))

    def entry_of(self, nth: int, start: datetime) -> datetime | None:
        """When the n-th unit since `start` entered; None if there are fewer."""
        query = "SELECT first FROM cranfield_exposed WHERE NOT override AND first >= ? ORDER BY first LIMIT 1 OFFSET ?"
        rows = self.rows(query, naive(start), nth - 1)
        return rows[0][0].replace(tzinfo=UTC) if rows else None

    def entered_by(self, times: Sequence[datetime], table: str = "all") -> list[list[int]]:
        """The number of units per variant that had entered by each time; the table `all` ignores filters."""
        query = f"SELECT variant, count(*) FROM cranfield_{table} WHERE first < ? GROUP BY variant"
        return [[*self._by_variant(query, naive(time)).values()] for time in times]

    def _by_variant(self, query: str, *values: Any) -> dict[str, int]:
        """The counts of a query for each variant of the plan."""
        counts = dict(self.rows(query, *values))
        return {name: counts.get(name, 0) for name in self.plan.variants}

    def let_in(self, start: datetime, until: datetime) -> None:
        """Select the units first exposed between two times, without overrides; their events are not read yet."""
        chosen = "SELECT * FROM cranfield_exposed WHERE NOT override AND first >= ? AND first < ?"
        self.rows(f"CREATE OR REPLACE TEMP TABLE cranfield_all AS {chosen}", naive(start), naive(until))
        self.rows("CREATE OR REPLACE TEMP TABLE cranfield_entered AS SELECT * FROM cranfield_all")
        self.until = until

    def enter(self, start: datetime, until: datetime) -> None:
        """Select the units first exposed between two times, and read their events until the second time.

        Only the event fields that the plan needs are read.
        """
        self.let_in(start, until)
        fields = "".join(f", e.{name}" for name in self._fields())
        drops = "".join(
            f", {condition_sql(each.field, each.equals, each.matches)} AS drop_{i}"
            for i, each in enumerate(self.plan.filters)
        )
        self.rows(
            "CREATE OR REPLACE TEMP VIEW cranfield_theirs AS SELECT e.*, n.number, n.first "
            "FROM cranfield_events e JOIN cranfield_entered n USING (unit) "
            f"WHERE e.time < TIMESTAMP {literal(str(naive(self.until)))}"
        )
        self.rows(
            f"CREATE OR REPLACE TEMP TABLE cranfield_kept AS SELECT number, first, hash(event_id) AS id{fields}{drops} "
            "FROM cranfield_theirs e"
        )
        self.rows(
            "CREATE OR REPLACE TEMP VIEW cranfield_seen AS "
            "SELECT *, (epoch_us(time) - epoch_us(first)) / 86400e6 AS since FROM cranfield_kept"
        )

    def _fields(self) -> list[str]:
        """The event fields that the plan needs."""
        expressions = " ".join(sql for each in self.metrics for sql in each.definition.sql)
        mixed = "credit shown document value" if self.plan.interleave is not None else ""
        words = {*re.findall(r"\w+", f"time kind search position {expressions} {mixed} {' '.join(self.plan.slices)}")}
        return [name for name in FIELDS if name in words]

    def filter(self) -> list[FilterCount]:
        """Apply the plan's filters; the number of units or events that each left out."""
        left_out = []
        for i, each in enumerate(self.plan.filters):
            if each.drop == "units":
                count = self.leave_out(f"SELECT number FROM cranfield_kept WHERE drop_{i}")
            else:
                count = self.count(f"DELETE FROM cranfield_kept WHERE drop_{i}")
            left_out.append(FilterCount(each.name, each.drop, count))
        return left_out

    def count(self, query: str, *values: Any) -> int:
        """The number of rows that a query counts or deletes."""
        return int(self.one(query, *values)[0])

    def events(self) -> int:
        """The number of events of the selected units until the end of the analysed time."""
        return self.count("SELECT count(*) FROM cranfield_kept")

    def events_after(self) -> int:
        """The number of events of the selected units after the end of the analysed time."""
        query = "SELECT count(*) FROM cranfield_events e JOIN cranfield_entered USING (unit) WHERE e.time >= ?"
        return self.count(query, naive(self.until))

    def leave_out(self, which: str) -> int:
        """Leave out the units whose numbers a query selects, with all their events; returns how many."""
        count = self.count(f"DELETE FROM cranfield_entered WHERE number IN ({which})")
        self.rows("DELETE FROM cranfield_kept WHERE number NOT IN (SELECT number FROM cranfield_entered)")
        return count

    def counts(self, table: str = "entered") -> dict[str, int]:
        """The number of units per variant; the table `all` ignores filters."""
        return self._by_variant(f"SELECT variant, count(*) FROM cranfield_{table} GROUP BY variant")

    # statistics per variant

    def tabulate(
        self, metrics: Iterable[PlannedMetric] | None = None, until: datetime | None = None, by: str = ""
    ) -> None:
        """Make the table with one row per unit; with `by` (query) one row per unit and value, for a metric of searches."""
        chosen_metrics = tuple(self.metrics if metrics is None else metrics)
        parts, joins, columns = [], [], []
        for n, ((source, window), sums) in enumerate(_columns_by_source(chosen_metrics).items()):
            key = f"number, {by}" if by else "number"
            grouped = f"{key}{_select_columns(sums)}, true AS there"
            parts.append(f"p{n} AS (SELECT {grouped} FROM {source} WHERE {_within(window)} GROUP BY {key})")
            joins.append(f"{'' if by else 'LEFT '}JOIN p{n} USING (number)")
            columns += [f"p{n}.{name}::DOUBLE AS {name}" for name in sums]
            columns += [
                f"coalesce(p{n}.there, false)::INTEGER AS {each.column('there')}"
                for each in chosen_metrics
                if window == BEFORE and each.covariate and each.definition.numerator.source == source
            ]
        selection = ", ".join(["n.*", *([f"p0.{by} AS slice_value"] if by else []), *columns])
        limit = f" WHERE {{}} < TIMESTAMP {literal(str(naive(until)))}" if until else ""
        self.rows(
            "CREATE OR REPLACE TEMP TABLE cranfield_units AS "
            f"WITH events AS NOT MATERIALIZED (SELECT * FROM cranfield_seen{limit.format('time')}), "
            f"{self._searches(chosen_metrics)}, {', '.join(parts)} "
            f"SELECT {selection} FROM cranfield_entered n {' '.join(joins)}{limit.format('n.first')}"
        )

    def _searches(self, metrics: Sequence[PlannedMetric]) -> str:
        """The SQL of searches with the facts that metrics need; `ordered` adds facts about the unit's next search."""
        facts, clicks, ordered = (
            _select_columns({name: sql for each in metrics for name, sql in getattr(each.definition, facts_of).items()})
            for facts_of in ("facts", "click_facts", "ordered")
        )
        about = {"query": "arg_min(query, time) FILTER (kind = 'impression')", "session": "min(session)"}
        session_columns = _select_columns({name: sql for name, sql in about.items() if name in self._fields()})
        clicked = "LEFT JOIN clicks USING (number, search)" if clicks else ""
        return (
            f"clicks AS (SELECT number, search{clicks} FROM events WHERE kind = 'click' GROUP BY number, search), "
            "pages AS (SELECT number, search, min(time) FILTER (kind = 'impression') AS began, "
            f"min(since) FILTER (kind = 'impression') AS since{session_columns}{facts} "
            "FROM events WHERE search IS NOT NULL GROUP BY number, search HAVING began IS NOT NULL), "
            f"searches AS (SELECT * FROM pages {clicked}), ordered AS (SELECT *{ordered} FROM searches)"
        )

    def winsorise(self) -> dict[str, tuple[float, int]]:
        """Cap values at the plan's quantiles; returns the cap per column and how many units were above it.

        Both sums of a ratio are capped, each at its quantile over the units of all variants. A cap on clicks alone would
        lower the ratio of the variant with the most active units.
        """
        pulled = {}
        for each in self.metrics:
            quantile = self.plan.winsorise.get(each.choice.metric)
            if quantile is None:
                continue
            ratio = each.definition.denominator is not None
            for what, called in (("x", ", numerator" if ratio else ""), *((("y", ", denominator"),) if ratio else ())):
                name = each.column(what)
                limit = self.one(f"SELECT quantile_cont({name}, ?) FROM cranfield_units", quantile)[0]
                count = self.one(f"SELECT count(*) FROM cranfield_units WHERE {name} > ?", limit)[0]
                self.rows(f"UPDATE cranfield_units SET {name} = ? WHERE {name} > ?", limit, limit)
                pulled[f"{each.name}{called}"] = (limit, count)
        return pulled

    def numbers(self, each: PlannedMetric, where: str = "true") -> VariantStatistics:
        """The statistics of a metric over the units that meet a condition."""
        by_variant = self._value_counts(each, where) if each.needs_values else self._moments(each, where)
        query = f"SELECT variant, count(*) FROM cranfield_units WHERE {where} GROUP BY variant"
        return VariantStatistics(*by_variant, self._by_variant(query))

    def numbers_to_decide(self, each: PlannedMetric) -> VariantStatistics:
        """The statistics of a metric with what its health checks need: units covered, the heaviest unit."""
        numbers = self.numbers(each)
        if each.definition.kind == "quantile":
            query = f"SELECT variant, count({each.column('x')}) FROM cranfield_units GROUP BY variant"
            return numbers._replace(covered=self._by_variant(query))
        if each.definition.denominator is None:
            return numbers
        below = each.value(each.column("y"))
        rows = self.rows(
            f"SELECT variant, arg_max(unit, {below}), max({below}) / sum({below}) FROM cranfield_units "
            f"GROUP BY variant HAVING sum({below}) > 0"
        )
        return numbers._replace(heaviest={variant: HeaviestUnit(unit, share) for variant, unit, share in rows})

    def _moments(self, each: PlannedMetric, where: str) -> tuple[dict[str, Moments], dict[str, DistinctRows]]:
        names = each.columns
        pairs = [(one, other) for i, one in enumerate(names) for other in names[i:]]
        sums = [f"avg({each.value(name)})" for name in names]
        sums += [f"covar_samp({each.value(a)}, {each.value(b)})" for a, b in pairs]
        nobody = Moments.from_covariances(0, dict.fromkeys(names, 0.0), dict.fromkeys(pairs, 0.0))
        moments = dict.fromkeys(self.plan.variants, nobody)
        query = f"SELECT variant, count(*), {', '.join(sums)} FROM cranfield_units WHERE {where} GROUP BY variant"
        for variant, n, *values in self.rows(query):
            means = dict(zip(names, values, strict=False))
            covariances = {pair: value or 0.0 for pair, value in zip(pairs, values[len(names) :], strict=True)}
            if variant in moments:
                moments[variant] = Moments.from_covariances(n, means, covariances)
        return moments, {}

    def _value_counts(self, each: PlannedMetric, where: str) -> tuple[dict[str, Moments], dict[str, DistinctRows]]:
        x, *y = (each.column(what) for what in ("x", "y") if each.column(what) in each.columns)
        denominator = ", ".join(f"coalesce({name}, 0)::DOUBLE" for name in y)
        lacking = each.definition.counts_if.replace("x", x, 1) or "true"
        value = f"{x}::DOUBLE" if each.definition.counts_if else f"coalesce({x}, 0)::DOUBLE"
        rows: dict[str, list[Any]] = {name: [] for name in self.plan.variants}
        selection = f"variant, {value}{', ' + denominator if y else ''}, count(*)"
        query = f"SELECT {selection} FROM cranfield_units WHERE {where} AND {lacking} GROUP BY ALL"
        for variant, *values, n in self.rows(query):
            rows.setdefault(variant, []).append((values, n))
        values_by_variant = {
            name: DistinctRows.of([values for values, _ in own], [n for _, n in own])
            for name, own in rows.items()
            if sum(n for _, n in own) > 1
        }
        return {}, values_by_variant

    def slices_of(self, i: int, name: str, least: int) -> tuple[list[tuple[str, str]], int]:
        """The values of a field with at least `least` units, each with its SQL condition; and the number of rarer ones."""
        column = "slice_value" if name == "query" else f"slice_{i}"
        query = f"SELECT {column}, count(DISTINCT unit) AS n FROM cranfield_units WHERE {column} IS NOT NULL GROUP BY 1"
        enough = self.rows(f"{query} HAVING n >= {least} ORDER BY n DESC, 1 LIMIT {MOST_SLICES}")
        rare = self.one(f"SELECT count(*) FROM ({query} HAVING n < {least})")[0]
        return [(value, f"{column} = {literal(value)}") for value, _ in enough], rare


def naive(time: datetime) -> datetime:
    """A time in UTC without time zone, as DuckDB's TIMESTAMP needs it."""
    return time.astimezone(UTC).replace(tzinfo=None)


def midnight(time: datetime) -> datetime:
    """The beginning of a time's day in UTC."""
    return time.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _select_columns(columns: Mapping[str, str]) -> str:
    """The SQL of named columns, each after a comma."""
    return "".join(f", {sql} AS {name}" for name, sql in columns.items())


def _within(window: Window) -> str:
    start, end = window
    bounds = [f"since >= {start!r}"] if start is not None else []
    return " AND ".join([*bounds, *([f"since < {float(end)!r}"] if end is not None else [])])


def _columns_by_source(metrics: Iterable[PlannedMetric]) -> dict[tuple[str, Window], dict[str, str]]:
    """The columns by their source (searches, events) and window."""
    groups: dict[tuple[str, Window], dict[str, str]] = {}
    for each in metrics:
        below = each.definition.denominator
        for what, part in (("x", each.definition.numerator), *((("y", below),) if below else ())):
            groups.setdefault((part.source, each.window), {})[each.column(what)] = part.expression
            if each.covariate:
                groups.setdefault((part.source, BEFORE), {})[each.column(f"{what}p")] = part.expression
    return groups
