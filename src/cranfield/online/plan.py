"""The plan of an experiment: a TOML file that says everything before the first unit is seen.

Its hash covers what must not change on the way, which is all but the traffic, which ramps up, and the overrides, which are
left out of analysis. Metrics stay data here: `metric_problem` is where those who know them are asked.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from dataclasses import dataclass, field, fields
from datetime import date
from typing import TYPE_CHECKING, Any, NoReturn

from cranfield.errors import BadLineError, DataError
from cranfield.formats.events.format import FIELDS
from cranfield.formats.streams import files_in, reason
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

METHODS = ("fixed", "looks", "sequence")
DIRECTIONS = ("up", "down")
ESTIMATES = ("plain", "cuped", "bootstrap", "mann-whitney")
SPENDING = ("obrien-fleming", "pocock")
DROPS = ("events", "units")
OPEN = "open"
NOT_HASHED = ("path", "traffic", "overrides")
CLOSE = 1e-6  # that shares may miss 1 by: thirds have no end


@dataclass(frozen=True)
class Choice:
    """A metric of a plan: its name and parameters, the good direction, the margin, the window in days, what estimate decides."""

    metric: str
    direction: str | None = None  # the metric's own, unless told
    margin: float | None = None
    relative: bool = False  # whether the margin is a share of the control's value
    window: int | None = None  # a unit's first so many days; None: open
    estimate: str = "plain"
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Filter:
    """Events that are left out, or all events of units that have such: those whose field is one of some, or matches."""

    name: str
    field: str
    equals: tuple[str, ...] = ()
    matches: str | None = None  # a regular expression, found anywhere
    drop: str = "units"


@dataclass(frozen=True)
class Plan:
    """An experiment. The first variant is the control; `traffic` is a slice of its layer."""

    name: str
    salt: str
    layer: str
    layer_salt: str
    traffic: tuple[float, float]
    variants: Mapping[str, float]  # and their shares
    unit: str = "user"
    overrides: Mapping[str, str] = field(default_factory=dict)
    holdout: str | None = None  # the variant whose units enter no other experiment
    aa: bool = False  # whether all variants are the same
    start: str | None = None
    days: int | None = None
    units: int | None = None
    method: str = "fixed"
    looks: tuple[float, ...] = ()  # shares of the horizon
    spending: str = SPENDING[0]
    tuned: int | None = None  # units at which a confidence sequence is tightest
    alpha: float = 0.05
    primary: tuple[Choice, ...] = ()
    guardrails: tuple[Choice, ...] = ()
    filters: tuple[Filter, ...] = ()
    winsorise: Mapping[str, float] = field(default_factory=dict)  # by metric, the quantile that is the highest value
    metrics: tuple[Mapping[str, Any], ...] = ()  # own ones
    interleave: Mapping[str, Any] | None = None
    slices: tuple[str, ...] = ()  # fields of the first exposure, or query, by whose values effects are told as well
    rare: int = 10  # units that a value, or a query, needs to appear anywhere
    path: str = ""

    @property
    def control(self) -> str:
        """The variant that others are compared with."""
        return next(iter(self.variants))

    @property
    def hash(self) -> str:
        """SHA-256 of what must not change on the way, 64 hexadecimal digits."""
        kept = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in NOT_HASHED}
        kept["variants"] = list(self.variants.items())  # their order says which is the control
        return hashlib.sha256(json.dumps(kept, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, (Choice, Filter)):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def metric_problem(choice: Choice, own: Sequence[Mapping[str, Any]]) -> str | None:
    """What is wrong with a metric that a plan names, beside those that it defines itself; here nobody knows any."""
    return None


# reading


class _Text:
    """A TOML file: what it holds, and on which line."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                self.text = file.read().decode()
        except OSError as error:
            raise DataError(f"{path}: {reason(error)}") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: expected utf-8, found byte {error.object[error.start]:#04x}") from None
        try:
            self.data: dict[str, Any] = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"at line (\d+)", str(error))
            number = int(line[1]) if line else self.text.count("\n") + 1
            raise BadLineError(path, number, f"expected TOML ({error})") from None

    def refuse(self, problem: str, table: str = "", key: str = "", number: int = 0) -> NoReturn:
        """Stop with a sentence, and the line where the key stands if it is found."""
        line = self._line(table, key, number)
        raise BadLineError(self.path, line, problem) if line else DataError(f"{self.path}: {problem}")

    def _line(self, table: str, key: str, number: int) -> int | None:
        """The line of a key in the how-manieth table of a name; of the table where the key is not found."""
        inside, seen, head = "", -1, None
        for line, text in enumerate(self.text.splitlines(), 1):
            if found := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]\]?", text):
                inside = found[1].strip("\"'")
                seen += inside == table
                head = line if inside == table and seen == number else head
            elif found := re.match(r"\s*(\"[^\"]*\"|'[^']*'|[\w-]+)\s*[.=]", text):
                name = found[1].strip("\"'")
                if name == key and inside == table and (not table or seen == number):
                    return line
                if not inside and name == table:  # an inline table
                    head = line
        return head


def read_plan(path: str, check: Callable[[Choice, Sequence[Mapping[str, Any]]], str | None] | None = None) -> Plan:
    """The plan in a TOML file; DataError with file and line at anything that is not understood."""
    file = _Text(path)
    known = {
        *("name", "salt", "layer", "traffic", "variants", "unit", "overrides", "holdout", "aa", "start", "horizon"),
        *("method", "looks", "spending", "tuned", "alpha", "primary", "guardrail", "filter", "winsorise", "metric"),
        *("interleave", "slices", "rare"),
    }
    _refuse_unknown(file, file.data, known)
    name = _word(file, file.data, "name")
    salt = _salt(file, file.data, name)
    layer, layer_salt = _layer(file, name, salt)
    variants = _variants(file)
    plan = Plan(
        name=name,
        salt=salt,
        layer=layer,
        layer_salt=layer_salt,
        traffic=_traffic(file),
        variants=variants,
        overrides=_overrides(file, variants),
        holdout=_one_of(file, "holdout", None, tuple(variants)),
        primary=_choices(file, "primary", check or metric_problem),
        guardrails=_choices(file, "guardrail", check or metric_problem),
        filters=_filters(file),
        winsorise=_winsorise(file),
        metrics=tuple(_tables(file, "metric")),
        interleave=_table(file, "interleave") if "interleave" in file.data else None,
        slices=_slices(file),
        rare=_count(file, file.data, "rare") or 10,
        path=path,
        **_rules(file),
    )
    _refuse_inconsistent(file, plan)
    return plan


def read_plans(paths: Sequence[str]) -> tuple[Plan, ...]:
    """The plans in files and folders, which fit together: see `refuse_together`."""
    plans = tuple(map(read_plan, files_in(paths, ".toml", "plan")))
    refuse_together(plans)
    return plans


def refuse_together(plans: Sequence[Plan]) -> None:
    """Stop where plans cannot stand side by side: names or salts twice, slices of a layer that overlap."""
    for i, plan in enumerate(plans):
        for other in plans[:i]:
            both = f"{plan.path or plan.name}: "
            if plan.name == other.name:
                raise DataError(f"{both}experiment {plan.name!r} is also in {other.path or other.name}")
            if plan.salt == other.salt:
                raise DataError(
                    f"{both}salt {plan.salt!r} is also that of {other.name!r}, so that both split units alike"
                )
            if plan.layer == other.layer and plan.layer_salt != other.layer_salt:
                raise DataError(f"{both}layer {plan.layer!r} has another salt in {other.path or other.name}")
            if plan.layer != other.layer and plan.layer_salt == other.layer_salt:
                raise DataError(
                    f"{both}layers {plan.layer!r} and {other.layer!r} have one salt, so that they do not overlap"
                )
            if {plan.salt, other.salt} & {plan.layer_salt, other.layer_salt}:
                raise DataError(f"{both}a layer's salt is an experiment's, so that traffic decides the variant")
            if plan.layer == other.layer and max(plan.traffic[0], other.traffic[0]) < min(
                plan.traffic[1], other.traffic[1]
            ):
                slices = " and ".join(f"{each.name!r} {list(each.traffic)}" for each in (other, plan))
                raise DataError(f"{both}slices of layer {plan.layer!r} overlap: {slices}")


# parts of a plan


def _refuse_unknown(file: _Text, table: Mapping[str, Any], known: set[str], name: str = "", number: int = 0) -> None:
    for key in table:
        if key not in known:
            where = f" in [{name}]" if name else ""
            file.refuse(
                f"expected keys of {', '.join(sorted(known))}{where}, found {shortened(key)!r}", name, key, number
            )


def _table(file: _Text, name: str) -> dict[str, Any]:
    table = file.data.get(name, {})
    if not isinstance(table, dict):
        file.refuse(f"expected a table [{name}], found {shortened(table)}", "", name)
    return table


def _tables(file: _Text, name: str) -> list[dict[str, Any]]:
    tables = file.data.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        file.refuse(f"expected tables [[{name}]], found {shortened(tables)}", name)
    return tables


def _word(file: _Text, table: Mapping[str, Any], key: str, otherwise: str = "", name: str = "", number: int = 0) -> str:
    value = table.get(key, otherwise)
    if not isinstance(value, str) or not value.strip():
        found = shortened(repr(value)) if key in table else "none"
        file.refuse(f"expected text as {key}, found {found}", name, key, number)
    return value


def _salt(file: _Text, table: Mapping[str, Any], otherwise: str, name: str = "") -> str:
    salt = _word(file, table, "salt", otherwise, name)
    if "/" in salt:
        key = "salt" if "salt" in table else "name"
        file.refuse(f"expected a salt without /, which ends it, found {shortened(salt)!r}", name, key)
    return salt


def _layer(file: _Text, name: str, salt: str) -> tuple[str, str]:
    """The name and the salt of the layer; an experiment without one has a layer of its own."""
    if "layer" not in file.data:
        return name, f"{salt}-layer"
    table = _table(file, "layer")
    _refuse_unknown(file, table, {"name", "salt"}, "layer")
    layer = _word(file, table, "name", name="layer")
    layer_salt = _salt(file, table, f"{layer}-layer", "layer")
    if layer_salt == salt:
        file.refuse(
            f"expected a salt of the layer other than the experiment's {salt!r}, or traffic decides the variant",
            "layer",
            "salt",
        )
    return layer, layer_salt


def _number(value: Any, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def _traffic(file: _Text) -> tuple[float, float]:
    traffic = file.data.get("traffic", 1.0)
    ends = [0.0, traffic] if not isinstance(traffic, list) else traffic
    if len(ends) != 2 or not all(_number(end, 0, 1) for end in ends) or not ends[0] < ends[1]:
        file.refuse(
            f"expected traffic as a share (0.2) or a slice of the layer ([0.2, 0.4]), found {shortened(traffic)}",
            key="traffic",
        )
    return float(ends[0]), float(ends[1])


def _variants(file: _Text) -> dict[str, float]:
    shares = _table(file, "variants")
    for name, share in shares.items():
        if not _number(share, 0, 1) or not share:
            file.refuse(
                f"expected a share between 0 and 1 for variant {name!r}, found {shortened(share)}", "variants", name
            )
    least = 1 if "interleave" in file.data else 2
    if len(shares) < least:
        file.refuse(f"expected {least} variants or more with their shares, found {len(shares)}", "variants")
    total = math.fsum(shares.values())
    if abs(total - 1) > CLOSE:
        file.refuse(f"expected shares of variants that add up to 1, found {total:.10g}", "variants")
    return {name: float(share) for name, share in shares.items()}


def _overrides(file: _Text, variants: Mapping[str, float]) -> dict[str, str]:
    overrides = _table(file, "overrides")
    for unit, variant in overrides.items():
        if variant not in variants:
            said = f"expected a variant of {', '.join(variants)} for unit {unit!r}, found {shortened(variant)!r}"
            file.refuse(said, "overrides", unit)
    return overrides


def _one_of(file: _Text, key: str, otherwise: str | None, values: Sequence[str]) -> Any:
    value = file.data.get(key, otherwise)
    if value != otherwise and value not in values:
        file.refuse(f"expected {key} of {', '.join(values)}, found {shortened(value)!r}", key=key)
    return value


def _count(file: _Text, table: Mapping[str, Any], key: str, name: str = "") -> int | None:
    value = table.get(key)
    if value is not None and (type(value) is not int or value < 1):
        file.refuse(f"expected {key} as a whole number of 1 or more, found {shortened(value)}", name, key)
    return value


def _rules(file: _Text) -> dict[str, Any]:
    """When an experiment begins and ends, and by which method it is decided."""
    horizon = _table(file, "horizon")
    _refuse_unknown(file, horizon, {"days", "units"}, "horizon")
    start = file.data.get("start")
    if start is not None and not isinstance(start, date):
        file.refuse(f"expected start as a date such as 2026-03-01, found {shortened(start)!r}", key="start")
    alpha, aa = file.data.get("alpha", 0.05), file.data.get("aa", False)
    if not _number(alpha, 0, 0.5) or not alpha:
        file.refuse(f"expected alpha between 0 and 0.5, found {shortened(alpha)}", key="alpha")
    if not isinstance(aa, bool):
        file.refuse(f"expected true or false as aa, found {shortened(aa)}", key="aa")
    return {
        "unit": _word(file, file.data, "unit", "user"),
        "aa": aa,
        "start": None if start is None else start.isoformat(),
        "days": _count(file, horizon, "days", "horizon"),
        "units": _count(file, horizon, "units", "horizon"),
        "method": _one_of(file, "method", METHODS[0], METHODS),
        "looks": _looks(file),
        "spending": _one_of(file, "spending", SPENDING[0], SPENDING),
        "tuned": _count(file, file.data, "tuned"),
        "alpha": float(alpha),
    }


def _looks(file: _Text) -> tuple[float, ...]:
    """Looks as shares of the horizon, from a number of equal steps or a list; the last is the horizon."""
    looks = file.data.get("looks", [])
    if type(looks) is int and 1 <= looks <= 100:
        return tuple((i + 1) / looks for i in range(looks))
    rising = isinstance(looks, list) and all(_number(each, 0, 1) and each for each in looks)
    if not rising or any(a >= b for a, b in zip(looks, looks[1:], strict=False)) or (looks and looks[-1] != 1):
        said = "expected looks as a number (5) or as rising shares of the horizon that end with 1 ([0.5, 1])"
        file.refuse(f"{said}, found {shortened(looks)}", key="looks")
    return tuple(map(float, looks))


def _choices(
    file: _Text, kind: str, check: Callable[[Choice, Sequence[Mapping[str, Any]]], str | None]
) -> tuple[Choice, ...]:
    own = _tables(file, "metric")
    choices = []
    for number, table in enumerate(_tables(file, kind)):

        def refuse(problem: str, key: str, number: int = number) -> NoReturn:
            file.refuse(problem, kind, key, number)

        rest = {key: value for key, value in table.items() if key not in {each.name for each in fields(Choice)}}
        direction, margin, window = table.get("direction"), table.get("margin"), table.get("window", OPEN)
        estimate, relative = table.get("estimate", ESTIMATES[0]), table.get("relative", False)
        if direction is not None and direction not in DIRECTIONS:
            refuse(f"expected direction of {', '.join(DIRECTIONS)}, found {shortened(direction)!r}", "direction")
        if margin is not None and (not _number(margin, 0, math.inf) or not margin or not math.isfinite(margin)):
            refuse(f"expected a margin above 0, found {shortened(margin)}", "margin")
        if kind == "guardrail" and margin is None:
            refuse("expected a margin: how much worse a guardrail may become", "metric")
        if window != OPEN and (type(window) is not int or window < 1):
            refuse(f"expected a window of days or {OPEN!r}, found {shortened(window)!r}", "window")
        if estimate not in ESTIMATES:
            refuse(f"expected an estimate of {', '.join(ESTIMATES)}, found {shortened(estimate)!r}", "estimate")
        if not isinstance(relative, bool):
            refuse(f"expected true or false as relative, found {shortened(relative)}", "relative")
        metric = _word(file, table, "metric", name=kind, number=number)
        days = None if window == OPEN else window
        choice = Choice(metric, direction, margin, relative, days, estimate, rest)
        problem = check(choice, own)
        if problem:
            refuse(problem, "metric")
        choices.append(choice)
    return tuple(choices)


def _filters(file: _Text) -> tuple[Filter, ...]:
    filters = []
    for number, table in enumerate(_tables(file, "filter")):
        _refuse_unknown(file, table, {each.name for each in fields(Filter)}, "filter", number)
        name = _word(file, table, "name", name="filter", number=number)
        looked_at = _word(file, table, "field", name="filter", number=number)
        if looked_at not in FIELDS and not looked_at.startswith("attributes."):
            wanted = f"expected a field of {', '.join(FIELDS)}, or attributes.NAME"
            file.refuse(f"{wanted}, found {shortened(looked_at)!r}", "filter", "field", number)
        equals, matches, drop = table.get("equals", []), table.get("matches"), table.get("drop", "units")
        equals = [equals] if isinstance(equals, str) else equals
        if not isinstance(equals, list) or not all(isinstance(each, str) for each in equals):
            file.refuse(f"expected texts as equals, found {shortened(equals)}", "filter", "equals", number)
        if bool(equals) == (matches is not None):
            file.refuse("expected either equals or matches in a filter", "filter", "name", number)
        try:
            re.compile(matches or "")
        except (re.error, TypeError) as error:
            file.refuse(f"expected a regular expression as matches ({error})", "filter", "matches", number)
        if drop not in DROPS:
            file.refuse(f"expected drop of {', '.join(DROPS)}, found {shortened(drop)!r}", "filter", "drop", number)
        filters.append(Filter(name, looked_at, tuple(equals), matches, drop))
    return tuple(filters)


def _winsorise(file: _Text) -> dict[str, float]:
    table = _table(file, "winsorise")
    for metric, quantile in table.items():
        if not _number(quantile, 0.5, 1):
            said = f"expected a quantile between 0.5 and 1 for {metric!r}, found {shortened(quantile)}"
            file.refuse(said, "winsorise", metric)
    return {metric: float(quantile) for metric, quantile in table.items()}


def _slices(file: _Text) -> tuple[str, ...]:
    slices = file.data.get("slices", [])
    known = ("query", "application")
    texts = isinstance(slices, list) and all(isinstance(each, str) for each in slices)
    if not texts or not all(each in known or each.startswith("attributes.") for each in slices):
        file.refuse(
            f"expected slices as a list of {', '.join(known)} or attributes.NAME, found {shortened(slices)}",
            key="slices",
        )
    return tuple(dict.fromkeys(slices))


def _refuse_inconsistent(file: _Text, plan: Plan) -> None:
    """Stop at parts that are sound each and not together."""
    if (plan.method == "looks") != bool(plan.looks):
        file.refuse(
            f'expected looks with method = "looks" and with no other, found method = {plan.method!r}', key="method"
        )
    if plan.tuned is not None and plan.method != "sequence":
        file.refuse(f'expected tuned only with method = "sequence", found method = {plan.method!r}', key="tuned")
    seen: set[str] = set()
    for choice in (*plan.primary, *plan.guardrails):
        key = json.dumps([choice.metric, choice.parameters, choice.window], sort_keys=True, default=_plain)
        if key in seen:
            file.refuse(f"expected each metric once, found {choice.metric!r} twice", key="metric")
        seen.add(key)
