"""A log and a plan → the numbers of units, by SQL on DuckDB: all that the plan's metrics need, in one go.

A unit enters by its first exposure. The log is read once for the events of units that are in, as numbers of units and the
fields that the plan asks for. One table holds a row a unit with the columns of all metrics, each over its own window and, for
covariates, over the time before the first exposure. Sums, squares and products by variant come back as moments;
quantiles, the bootstrap and ranks get counts of values.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from cranfield.errors import DataError
from cranfield.formats.events.format import FIELDS, imported
from cranfield.online.assign import OVERRIDE
from cranfield.online.choice import MEAN_OF_RATIOS
from cranfield.online.log import connect, duckdb_in_words
from cranfield.online.metrics import Metric, metric
from cranfield.online.metrics.own import condition_sql, field_sql, literal
from cranfield.stats.counted import Counted
from cranfield.stats.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.online.choice import Choice
    from cranfield.online.log import EventSource
    from cranfield.online.plan import Plan

COUNTED = ("bootstrap", "mann-whitney")  # estimates that need the units themselves
ALL_TIME, BEFORE = (0.0, None), (None, 0.0)  # windows, in days since the first exposure
SMALL = 1_000_000  # events that one thread adds up, so that the last digit is always the same
MOST_SLICES = 20  # of a field, those with the most units

Window = tuple[float | None, float | None]


@dataclass(frozen=True)
class Asked:
    """A metric as a plan asks for it, and where its columns stand."""

    choice: Choice
    metric: Metric
    guards: bool  # whether it is a guardrail
    place: int = 0
    window: Window = field(default=ALL_TIME)

    @property
    def name(self) -> str:
        """What a report calls it."""
        return str(self.metric)

    @property
    def direction(self) -> str:
        """Which is good."""
        return self.choice.direction or self.metric.direction

    @property
    def counted(self) -> bool:
        """Whether it needs the units themselves."""
        return self.metric.kind == "quantile" or self.choice.estimate in COUNTED

    @property
    def covariate(self) -> bool:
        """Whether it looks at the time before."""
        return self.choice.estimate == "cuped"

    def column(self, what: str) -> str:
        """The name of a column: x and y, xp and yp of the time before, `there` whether there was such a time."""
        return f"m{self.place}_{what}"

    @property
    def columns(self) -> list[str]:
        """Its columns, the numerator first."""
        below = self.metric.denominator is not None
        before = ["xp", *(["yp"] if below else []), "there"] if self.covariate else []
        return [self.column(what) for what in ["x", *(["y"] if below else []), *before]]

    def value(self, column: str) -> str:
        """A column as SQL: 0 of a unit without one; of a mean of ratios the unit's own ratio, over whether it has one."""
        plain = f"coalesce({column}, 0)::DOUBLE"
        if self.choice.estimate != MEAN_OF_RATIOS:
            return plain
        below = f"coalesce({self.column('y')}, 0)"
        own = f"{plain} / {below}" if column == self.column("x") else "1.0"
        return f"CASE WHEN {below} <> 0 THEN {own} ELSE 0.0 END"


def asked_of(plan: Plan) -> tuple[Asked, ...]:
    """The metrics of a plan, primaries first."""
    choices = [*((each, False) for each in plan.primary), *((each, True) for each in plan.guardrails)]
    return tuple(
        Asked(choice, metric(choice.metric, choice.parameters, plan.metrics), guards, i, (0.0, choice.window))
        for i, (choice, guards) in enumerate(choices)
    )


class Heaviest(NamedTuple):
    """The unit with the largest denominator of a ratio in its variant, and its share of the variant's sum."""

    unit: str
    share: float


class Numbers(NamedTuple):
    """What there is of a metric by variant: moments of its columns, or units counted by value."""

    moments: dict[str, Moments]
    counted: dict[str, Counted]
    units: dict[str, int]
    covered: dict[str, int] | None = None  # units that have a value, of a quantile
    heaviest: dict[str, Heaviest] | None = None  # of a ratio of sums


class Filtered(NamedTuple):
    """What a filter left out."""

    name: str
    drop: str
    number: int


class Gathering:
    """A connection to a log as one plan sees it, up to some time."""

    def __init__(self, log: EventSource, plan: Plan, memory: str | None = None) -> None:
        self.plan = plan
        self.log = log
        self.asked = asked_of(plan)
        self._spill = tempfile.TemporaryDirectory(prefix="cranfield-")
        self.connection = connect()
        try:
            self._open(log, memory)
        except BaseException:
            self.close()
            raise

    def _open(self, log: EventSource, memory: str | None) -> None:
        self.connection.execute(f"SET temp_directory = {literal(self._spill.name)}")
        if memory is not None:
            try:
                self.connection.execute(f"SET memory_limit = {literal(memory)}")
            except imported("duckdb").Error as error:
                said = str(error).splitlines()[0]
                raise DataError(f"memory: expected a size such as 3GB, found {memory!r} ({said})") from None
        with duckdb_in_words(self.plan.name, self.log.files()):
            log.relation(self.connection).create_view("cranfield_events", replace=True)
        if self.one("SELECT count(*) FROM cranfield_events")[0] < SMALL:
            self.connection.execute("SET threads = 1")
        self._expose()

    def close(self) -> None:
        """Forget all of it."""
        self.connection.close()
        self._spill.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds; a sentence where the data do not fit it."""
        with duckdb_in_words(self.plan.name, self.log.files()):
            return self.connection.execute(query, list(values)).fetchall()

    def one(self, query: str, *values: Any) -> tuple[Any, ...]:
        """The only row that a query finds."""
        return self.rows(query, *values)[0]

    # who is in

    def _expose(self) -> None:
        """The table of units with an exposure, whoever they are: the first of it, and how many variants they saw."""
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

    def entry_of(self, nth: int, start: datetime) -> datetime | None:
        """When the how-manieth unit entered; None where it has not."""
        found = self.rows(
            "SELECT first FROM cranfield_exposed WHERE NOT override AND first >= ? ORDER BY first LIMIT 1 OFFSET ?",
            naive(start),
            nth - 1,
        )
        return found[0][0].replace(tzinfo=UTC) if found else None

    def entered_by(self, times: Sequence[datetime], table: str = "all") -> list[list[int]]:
        """How many units of each variant have entered by each of some times; of `all`, filters aside."""
        names = list(self.plan.variants)
        found = []
        for time in times:
            counts = dict(
                self.rows(
                    f"SELECT variant, count(*) FROM cranfield_{table} WHERE first < ? GROUP BY variant", naive(time)
                )
            )
            found.append([counts.get(name, 0) for name in names])
        return found

    def enter(self, start: datetime, until: datetime) -> None:
        """Let units in that were first exposed between two times, and look at their events; overrides stay out."""
        self.let_in(start, until)
        self._see()

    def let_in(self, start: datetime, until: datetime) -> None:
        """The units alone, for those who only count them."""
        self.rows(
            "CREATE OR REPLACE TEMP TABLE cranfield_all AS SELECT * FROM cranfield_exposed "
            "WHERE NOT override AND first >= ? AND first < ?",
            naive(start),
            naive(until),
        )
        self.rows("CREATE OR REPLACE TEMP TABLE cranfield_entered AS SELECT * FROM cranfield_all")
        self.until = until

    def _see(self) -> None:
        """The events of units that are in, up to the time that is looked at: what the plan asks of them, and no more."""
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
        """The fields of events that anything of the plan looks at."""
        asked = " ".join(sql for each in self.asked for sql in each.metric.sql)
        mixed = "credit shown document value" if self.plan.interleave is not None else ""
        said = {*re.findall(r"\w+", f"time kind search position {asked} {mixed} {' '.join(self.plan.slices)}")}
        return [name for name in FIELDS if name in said]

    def filter(self) -> list[Filtered]:
        """Leave out what the plan's filters name, and say how much each took."""
        left_out = []
        for i, each in enumerate(self.plan.filters):
            if each.drop == "units":
                count = self.leave_out(f"SELECT number FROM cranfield_kept WHERE drop_{i}")
            else:
                count = self._dropped("cranfield_kept", f"drop_{i}")
            left_out.append(Filtered(each.name, each.drop, count))
        return left_out

    def events(self) -> int:
        """How many events of the units that are in happened before the time that is looked at."""
        return int(self.one("SELECT count(*) FROM cranfield_kept")[0])

    def events_after(self) -> int:
        """How many events of the units that are in happened after the time that is looked at."""
        query = "SELECT count(*) FROM cranfield_events e JOIN cranfield_entered USING (unit) WHERE e.time >= ?"
        return int(self.one(query, naive(self.until))[0])

    def leave_out(self, which: str) -> int:
        """Leave out the units whose numbers a query gives, with all their events; how many these are."""
        count = self._dropped("cranfield_entered", f"number IN ({which})")
        self._dropped("cranfield_kept", "number NOT IN (SELECT number FROM cranfield_entered)")
        return count

    def _dropped(self, table: str, which: str) -> int:
        return int(self.one(f"DELETE FROM {table} WHERE {which}")[0])

    def counts(self, table: str = "entered") -> dict[str, int]:
        """How many units of each variant are in; `all`: before filters."""
        found = dict(self.rows(f"SELECT variant, count(*) FROM cranfield_{table} GROUP BY variant"))
        return {name: found.get(name, 0) for name in self.plan.variants}

    # their numbers

    def tabulate(self, asked: Iterable[Asked] | None = None, until: datetime | None = None, by: str = "") -> None:
        """Make the table with a row a unit; or, of one metric of searches, a row a unit and value of `by`, such as query."""
        wanted = tuple(self.asked if asked is None else asked)
        parts, joins, columns = [], [], []
        for n, ((source, window), sums) in enumerate(_grouped(wanted).items()):
            key = f"number, {by}" if by else "number"
            chosen = f"{key}{_named(sums)}, true AS there"
            parts.append(f"p{n} AS (SELECT {chosen} FROM {source} WHERE {_within(window)} GROUP BY {key})")
            joins.append(f"{'' if by else 'LEFT '}JOIN p{n} USING (number)")
            columns += [f"p{n}.{name}::DOUBLE AS {name}" for name in sums]
            columns += [
                f"coalesce(p{n}.there, false)::INTEGER AS {each.column('there')}"
                for each in wanted
                if window == BEFORE and each.covariate and each.metric.numerator.source == source
            ]
        shown = ", ".join(["n.*", *([f"p0.{by} AS slice_value"] if by else []), *columns])
        limit = f" WHERE {{}} < TIMESTAMP {literal(str(naive(until)))}" if until else ""
        self.rows(
            "CREATE OR REPLACE TEMP TABLE cranfield_units AS "
            f"WITH events AS NOT MATERIALIZED (SELECT * FROM cranfield_seen{limit.format('time')}), "
            f"{self._searches(wanted)}, {', '.join(parts)} "
            f"SELECT {shown} FROM cranfield_entered n {' '.join(joins)}{limit.format('n.first')}"
        )

    def _searches(self, wanted: Sequence[Asked]) -> str:
        """Searches, with the facts that metrics need; `ordered`: those that need the next one as well."""
        facts, clicks, ordered = (
            _named({name: sql for each in wanted for name, sql in getattr(each.metric, told).items()})
            for told in ("facts", "click_facts", "ordered")
        )
        about = {
            "query": "arg_min(query, time) FILTER (kind = 'impression')",
            "session": "min(session)",
        }
        known = _named({name: sql for name, sql in about.items() if name in self._fields()})
        clicked = "LEFT JOIN clicks USING (number, search)" if clicks else ""
        return (
            f"clicks AS (SELECT number, search{clicks} FROM events WHERE kind = 'click' GROUP BY number, search), "
            "pages AS (SELECT number, search, min(time) FILTER (kind = 'impression') AS began, "
            f"min(since) FILTER (kind = 'impression') AS since{known}{facts} "
            "FROM events WHERE search IS NOT NULL GROUP BY number, search HAVING began IS NOT NULL), "
            f"searches AS (SELECT * FROM pages {clicked}), ordered AS (SELECT *{ordered} FROM searches)"
        )

    def winsorise(self) -> dict[str, tuple[float, int]]:
        """Pull in values beyond the quantiles that the plan names; by column, the highest value and how many units had more.

        Both sums of a ratio are capped, each at its quantile over the units of all variants: a cap on clicks alone would
        take from the variant with the most active units, and its ratio would fall.
        """
        pulled = {}
        for each in self.asked:
            quantile = self.plan.winsorise.get(each.choice.metric)
            if quantile is None:
                continue
            ratio = each.metric.denominator is not None
            for what, called in (("x", ", numerator" if ratio else ""), *((("y", ", denominator"),) if ratio else ())):
                name = each.column(what)
                limit = self.one(f"SELECT quantile_cont({name}, ?) FROM cranfield_units", quantile)[0]
                count = self.one(f"SELECT count(*) FROM cranfield_units WHERE {name} > ?", limit)[0]
                self.rows(f"UPDATE cranfield_units SET {name} = ? WHERE {name} > ?", limit, limit)
                pulled[f"{each.name}{called}"] = (limit, count)
        return pulled

    def numbers(self, each: Asked, where: str = "true") -> Numbers:
        """What there is of a metric, of the units for which a condition holds."""
        by_variant = self._counted(each, where) if each.counted else self._moments(each, where)
        units = dict(self.rows(f"SELECT variant, count(*) FROM cranfield_units WHERE {where} GROUP BY variant"))
        return Numbers(*by_variant, {name: units.get(name, 0) for name in self.plan.variants})

    def numbers_to_decide(self, each: Asked) -> Numbers:
        """What there is of a metric, with what tells whether it can be believed: units covered, the heaviest unit."""
        numbers = self.numbers(each)
        if each.metric.kind == "quantile":
            column = each.column("x")
            rows = self.rows(f"SELECT variant, count({column}) FROM cranfield_units GROUP BY variant")
            counts = dict(rows)
            return numbers._replace(covered={name: counts.get(name, 0) for name in self.plan.variants})
        if each.metric.denominator is None:
            return numbers
        below = each.value(each.column("y"))
        rows = self.rows(
            f"SELECT variant, arg_max(unit, {below}), max({below}) / sum({below}) FROM cranfield_units "
            f"GROUP BY variant HAVING sum({below}) > 0"
        )
        return numbers._replace(heaviest={variant: Heaviest(unit, share) for variant, unit, share in rows})

    def _moments(self, each: Asked, where: str) -> tuple[dict[str, Moments], dict[str, Counted]]:
        names = each.columns
        pairs = [(one, other) for i, one in enumerate(names) for other in names[i:]]
        sums = [f"avg({each.value(name)})" for name in names]
        sums += [f"covar_samp({each.value(a)}, {each.value(b)})" for a, b in pairs]
        found = {
            name: Moments.from_covariances(0, dict.fromkeys(names, 0.0), dict.fromkeys(pairs, 0.0))
            for name in self.plan.variants
        }
        query = f"SELECT variant, count(*), {', '.join(sums)} FROM cranfield_units WHERE {where} GROUP BY variant"
        for variant, n, *values in self.rows(query):
            means = dict(zip(names, values, strict=False))
            covariances = {pair: value or 0.0 for pair, value in zip(pairs, values[len(names) :], strict=True)}
            if variant in found:
                found[variant] = Moments.from_covariances(n, means, covariances)
        return found, {}

    def _counted(self, each: Asked, where: str) -> tuple[dict[str, Moments], dict[str, Counted]]:
        x, *y = (each.column(what) for what in ("x", "y") if each.column(what) in each.columns)
        shown = ", ".join(f"coalesce({name}, 0)::DOUBLE" for name in y)
        lacking = each.metric.counts_if.replace("x", x, 1) or "true"
        value = f"{x}::DOUBLE" if each.metric.counts_if else f"coalesce({x}, 0)::DOUBLE"
        rows: dict[str, list[Any]] = {name: [] for name in self.plan.variants}
        chosen = f"variant, {value}{', ' + shown if y else ''}, count(*)"
        query = f"SELECT {chosen} FROM cranfield_units WHERE {where} AND {lacking} GROUP BY ALL"
        for variant, *values, n in self.rows(query):
            rows.setdefault(variant, []).append((values, n))
        counted = {
            name: Counted.of([values for values, _ in own], [n for _, n in own])
            for name, own in rows.items()
            if sum(n for _, n in own) > 1
        }
        return {}, counted

    def slices_of(self, i: int, name: str, least: int) -> tuple[list[tuple[str, str]], int]:
        """The values of a field that enough units have, each as a condition; and how many values are too rare to tell."""
        column = "slice_value" if name == "query" else f"slice_{i}"
        query = f"SELECT {column}, count(DISTINCT unit) AS n FROM cranfield_units WHERE {column} IS NOT NULL GROUP BY 1"
        enough = self.rows(f"{query} HAVING n >= {least} ORDER BY n DESC, 1 LIMIT {MOST_SLICES}")
        rare = self.one(f"SELECT count(*) FROM ({query} HAVING n < {least})")[0]
        return [(value, f"{column} = {literal(value)}") for value, _ in enough], rare


def naive(time: datetime) -> datetime:
    """A time in UTC as DuckDB's TIMESTAMP has it."""
    return time.astimezone(UTC).replace(tzinfo=None)


def midnight(time: datetime) -> datetime:
    """The beginning of a time's day in UTC."""
    return time.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def day_windows(days: int) -> list[Window]:
    """The first days after the first exposure, one by one."""
    return [(float(n), float(n + 1)) for n in range(days)]


def days(number: float) -> timedelta:
    """So many days."""
    return timedelta(days=number)


def _named(columns: Mapping[str, str]) -> str:
    """Columns of a SELECT that has others before them."""
    return "".join(f", {sql} AS {name}" for name, sql in columns.items())


def _within(window: Window) -> str:
    start, end = window
    bounds = [f"since >= {start!r}"] if start is not None else []
    return " AND ".join([*bounds, *([f"since < {float(end)!r}"] if end is not None else [])])


def _grouped(asked: Iterable[Asked]) -> dict[tuple[str, Window], dict[str, str]]:
    """Which columns come from which rows: of searches or events, of which window."""
    groups: dict[tuple[str, Window], dict[str, str]] = {}
    for each in asked:
        below = each.metric.denominator
        for what, part in (("x", each.metric.numerator), *((("y", below),) if below else ())):
            groups.setdefault((part.source, each.window), {})[each.column(what)] = part.expression
            if each.covariate:
                groups.setdefault((part.source, BEFORE), {})[each.column(f"{what}p")] = part.expression
    return groups
