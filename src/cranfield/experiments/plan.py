"""The plan of an experiment: a TOML file that is written before the first unit is exposed.

Its hash covers what must not change during the experiment: everything except the traffic, which ramps up, and the
overrides, which analysis leaves out. `PlanTable` declares the keys of the file. Every reader (assignment, service,
analysis) makes the same full check, so a mistake such as an unknown metric is reported at the start.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable  # noqa: TC003  a shape is read by its annotations
from dataclasses import dataclass, field, fields, replace
from datetime import date  # noqa: TC003  a shape is read by its annotations
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import shortened
from cranfield.base.schemas import Between, Count, Expected, OneOf, Share, Text, TomlFile, nearest, value_text
from cranfield.experiments.metrics.metric import DIRECTIONS, ESTIMATES, MetricChoice
from cranfield.formats.event_files.format import FIELDS
from cranfield.formats.streams import files_in

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from cranfield.experiments.interleaving import InterleavingMethod

METHODS = ("fixed", "looks", "sequence")
SPENDING = ("obrien-fleming", "pocock")
DROPS = ("events", "units")
OPEN = "open"
NOT_HASHED = ("path", "traffic", "overrides")
DISTINCT_NAMES = "a list of two names or more, each once, the control first"
LAYER_SLICE = "a share (0.2) or a slice of the layer ([0.2, 0.4])"
LOOK_SHARES = "a number (5) or as rising shares of the horizon that end with 1 ([0.5, 1])"
CLOSE = 1e-6  # tolerance for shares that add up to 1, such as thirds
MOST_LOOKS = 100


class Condition(NamedTuple):
    """An annotation that checks a value: the condition, and the words for it in an error message."""

    holds: Callable[[Any], bool]
    expected: str

    def words(self, kind: str) -> str:
        """The words for the condition in an error message."""
        return self.expected


def _is_window(value: int | str) -> bool:
    """Whether the value is a number of days from a unit's first exposure, or `open`."""
    return value == OPEN if isinstance(value, str) else value >= 1


def _is_slice(value: float | tuple[float, float]) -> bool:
    """Whether the value is a share of a layer, or a slice of it that begins before it ends."""
    return value[0] < value[1] if isinstance(value, tuple) else 0 < value <= 1


def _are_looks(value: int | tuple[float, ...]) -> bool:
    """Whether the value is a number of looks, or their shares of the horizon, which rise to 1."""
    if isinstance(value, int):
        return 1 <= value <= MOST_LOOKS
    rising = all(a < b for a, b in zip((0, *value), value, strict=False))
    return not value or (rising and value[-1] == 1)


def _are_distinct(value: tuple[str, ...]) -> bool:
    """Whether the value has two names or more, each once."""
    return len({*value}) == len(value) >= 2


@dataclass(frozen=True)
class Filter:
    """[[filter]] of a plan's file: leave out matching events, or all units with such an event.

    An event matches if its field equals one of some texts, or if a regular expression is found anywhere in it.
    """

    name: Text
    field: Text
    equals: str | tuple[str, ...] = ()
    matches: Text | None = None
    drop: Annotated[str, OneOf(DROPS)] = DROPS[1]


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
    primary: tuple[MetricChoice, ...] = ()
    guardrails: tuple[MetricChoice, ...] = ()
    filters: tuple[Filter, ...] = ()
    winsorise: Mapping[str, float] = field(default_factory=dict)  # by metric, the quantile that is the highest value
    metrics: tuple[Mapping[str, Any], ...] = ()  # own ones
    interleave: Mapping[str, Any] | None = None
    slices: tuple[str, ...] = ()  # fields of the first exposure, or query, for effects by slice
    rare: int = 10  # units that a slice needs to be reported
    path: str = ""

    @property
    def control(self) -> str:
        """The variant that others are compared with."""
        return next(iter(self.variants))

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems whose lists are interleaved, the control first; empty if the plan does not name them."""
        table = self.interleave or {}
        named = tuple(table.get("systems", ()))
        control = table.get("control", named[0] if named else None)
        return tuple(sorted(named, key=lambda name: name != control))

    @property
    def hash(self) -> str:
        """SHA-256 of the parts that must not change during the experiment, 64 hexadecimal digits."""
        content = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in NOT_HASHED}
        content["variants"] = list(self.variants.items())  # their order says which is the control
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, (MetricChoice, Filter)):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


# reading


@dataclass(frozen=True)
class LayerTable:
    """[layer] of a plan's file."""

    name: Text
    salt: Text | None = None


@dataclass(frozen=True)
class HorizonTable:
    """[horizon] of a plan's file."""

    days: Count | None = None
    units: Count | None = None


@dataclass(frozen=True)
class ChoiceTable:
    """[[primary]] or [[guardrail]] of a plan's file; its other keys are parameters of the metric."""

    metric: Text
    direction: Annotated[str, OneOf(DIRECTIONS)] | None = None
    margin: Annotated[int | float, Between(0, above=True), Expected("a number above 0")] | None = None  # as typed
    relative: bool = False
    window: Annotated[int | str, Condition(_is_window, f"a window of days or {OPEN!r}")] = OPEN
    estimate: Annotated[str, OneOf(ESTIMATES)] = ESTIMATES[0]


@dataclass(frozen=True)
class InterleaveTable:
    """[interleave] of a plan's file; its other keys are parameters of the method."""

    method: Text = "team-draft"
    systems: Annotated[tuple[Text, ...], Condition(_are_distinct, DISTINCT_NAMES)] | None = None
    control: Text | None = None
    credit: Text = "clicks"
    margin: Annotated[float, Between(0, 0.5, above=True)] | None = None


@dataclass(frozen=True)
class PlanTable:
    """All keys of a plan's file."""

    name: Text
    variants: dict[Text, Annotated[float, Between(0, 1, above=True), Expected("a share between 0 and 1")]]
    salt: Text | None = None
    layer: LayerTable | None = None
    traffic: Annotated[float | tuple[Share, Share], Condition(_is_slice, LAYER_SLICE)] = 1.0
    unit: Text = "user"
    overrides: dict[Text, str] = field(default_factory=dict)
    holdout: str | None = None
    aa: bool = False
    start: date | None = None
    horizon: HorizonTable = HorizonTable()
    method: Annotated[str, OneOf(METHODS)] = METHODS[0]
    looks: Annotated[int | tuple[float, ...], Condition(_are_looks, LOOK_SHARES)] = ()
    spending: Annotated[str, OneOf(SPENDING)] = SPENDING[0]
    tuned: Count | None = None
    alpha: Annotated[float, Between(0, 0.5, above=True)] = 0.05
    primary: tuple[dict[str, Any], ...] = ()
    guardrail: tuple[dict[str, Any], ...] = ()
    filter: tuple[Filter, ...] = ()
    winsorise: dict[str, Annotated[float, Between(0.5, 1), Expected("a quantile from 0.5 to 1")]] = field(
        default_factory=dict
    )
    metric: tuple[dict[str, Any], ...] = ()
    interleave: dict[str, Any] | None = None
    slices: tuple[Text, ...] = ()
    rare: Count = 10


File = TomlFile[PlanTable]
AS_TYPED = ("name", "unit", "overrides", "holdout", "aa", "method", "spending", "tuned", "rare")  # the same in a Plan
INTERLEAVE_KEYS = tuple(each.name for each in fields(InterleaveTable))  # others are parameters of the method


def read_plan(path: str) -> Plan:
    """The plan in a TOML file, checked as a whole; DataError names file and line of a mistake."""
    file = TomlFile(path, PlanTable)
    table = file.value
    salt = _salt(file, table.salt or table.name, "salt" if table.salt else "name")
    layer, layer_salt = _layer(file, salt)
    _refuse_variants(file)
    plan = Plan(
        **{name: getattr(table, name) for name in AS_TYPED},
        salt=salt,
        layer=layer,
        layer_salt=layer_salt,
        traffic=_traffic(table.traffic),
        variants={name: float(share) for name, share in table.variants.items()},
        start=None if table.start is None else table.start.isoformat(),
        days=table.horizon.days,
        units=table.horizon.units,
        looks=_looks(table.looks),
        alpha=float(table.alpha),
        primary=_choices(file, "primary"),
        guardrails=_choices(file, "guardrail"),
        filters=_filters(file),
        winsorise={metric: float(quantile) for metric, quantile in table.winsorise.items()},
        metrics=_own_metrics(file),
        interleave=_interleave(file),
        slices=_slices(file),
        path=path,
    )
    _refuse_inconsistent(file, plan)
    return plan


def read_plans(paths: Sequence[str]) -> tuple[Plan, ...]:
    """The plans in files and folders; they must be compatible (`refuse_together`)."""
    plans = tuple(map(read_plan, files_in(paths, ".toml", "plan")))
    refuse_together(plans)
    return plans


def refuse_together(plans: Sequence[Plan]) -> None:
    """Raise DataError if plans are incompatible: the same name or salt, or overlapping slices of a layer."""
    for i, plan in enumerate(plans):
        for other in plans[:i]:
            both = f"{plan.path or plan.name}: "
            if plan.name == other.name:
                raise DataError(f"{both}experiment {plan.name!r} is also in {other.path or other.name}")
            if plan.salt == other.salt:
                again = f"salt {plan.salt!r} is also that of {other.name!r}, so both would split units alike"
                raise DataError(f"{both}{again}")
            if plan.layer == other.layer and plan.layer_salt != other.layer_salt:
                raise DataError(f"{both}layer {plan.layer!r} has another salt in {other.path or other.name}")
            if plan.layer != other.layer and plan.layer_salt == other.layer_salt:
                raise DataError(
                    f"{both}layers {plan.layer!r} and {other.layer!r} have the same salt, so they are not independent"
                )
            if {plan.salt, other.salt} & {plan.layer_salt, other.layer_salt}:
                raise DataError(f"{both}a layer has the salt of an experiment, so traffic would decide the variant")
            begin, end = max(plan.traffic[0], other.traffic[0]), min(plan.traffic[1], other.traffic[1])
            if plan.layer == other.layer and begin < end:
                slices = " and ".join(f"{each.name!r} {list(each.traffic)}" for each in (other, plan))
                raise DataError(f"{both}slices of layer {plan.layer!r} overlap: {slices}")


# parts of a plan


def _salt(file: File, salt: str, *keys: str) -> str:
    if "/" in salt:
        file.refuse(f"expected a salt without /, which ends it, found {shortened(salt)!r}", *keys)
    return salt


def _layer(file: File, salt: str) -> tuple[str, str]:
    """The name and salt of the layer; an experiment without [layer] has its own layer."""
    layer = file.value.layer
    if layer is None:
        return file.value.name, f"{salt}-layer"
    layer_salt = _salt(file, layer.salt or f"{layer.name}-layer", "layer", "salt" if layer.salt else "name")
    if layer_salt == salt:
        problem = f"expected a salt of the layer other than the experiment's {salt!r}, or traffic decides the variant"
        file.refuse(problem, "layer", "salt")
    return layer.name, layer_salt


def _traffic(traffic: float | tuple[float, float]) -> tuple[float, float]:
    ends = traffic if isinstance(traffic, tuple) else (0.0, traffic)
    return float(ends[0]), float(ends[1])


def _refuse_variants(file: File) -> None:
    """Refuse too few variants, shares that do not add up to 1, and names of variants that do not exist."""
    table = file.value
    least = 1 if table.interleave is not None else 2
    if len(table.variants) < least:
        file.refuse(f"expected {least} variants or more with their shares, found {len(table.variants)}", "variants")
    total = math.fsum(table.variants.values())
    if abs(total - 1) > CLOSE:
        file.refuse(f"expected shares of variants that add up to 1, found {total:.10g}", "variants")
    names = ", ".join(table.variants)
    for unit, variant in table.overrides.items():
        if variant not in table.variants:
            problem = f"expected a variant of {names} for unit {unit!r}, found {shortened(variant)!r}"
            file.refuse(problem, "overrides", unit)
    if table.holdout is not None and table.holdout not in table.variants:
        file.refuse(f"expected holdout of {names}, found {shortened(table.holdout)!r}", "holdout")


def _looks(looks: int | tuple[float, ...]) -> tuple[float, ...]:
    """Looks as shares of the horizon, from a number of equal steps or a list."""
    if isinstance(looks, int):
        return tuple((i + 1) / looks for i in range(looks))
    return tuple(map(float, looks))


def _own_metrics(file: File) -> tuple[dict[str, Any], ...]:
    """The metrics that the plan defines itself."""
    from cranfield.experiments.metrics import PlanMetric

    for number, table in enumerate(file.value.metric):
        try:
            PlanMetric(table)
        except ConventionError as error:
            file.refuse(str(error), "metric", number)
    return file.value.metric


def _choices(file: File, kind: str) -> tuple[MetricChoice, ...]:
    from cranfield.experiments.metrics import metric_problem

    tables: tuple[dict[str, Any], ...] = getattr(file.value, kind)
    own = _own_metrics(file)
    names = [each.name for each in fields(ChoiceTable)]
    choices = []
    for number, table in enumerate(tables):
        rest = {key: value for key, value in table.items() if key not in names}
        options = file.part({key: value for key, value in table.items() if key in names}, ChoiceTable, kind, number)
        window = options.window if isinstance(options.window, int) else None
        choice = MetricChoice(
            options.metric, options.direction, options.margin, options.relative, window, options.estimate, rest
        )
        wrong = metric_problem(choice, own)
        if wrong:
            _refuse_typo(file, wrong, rest, names, "metric", kind, number)
        if kind == "guardrail" and options.margin is None:
            file.refuse("expected a margin: how much worse the guardrail may become", kind, number, "metric")
        choices.append(choice)
    return tuple(choices)


def _refuse_typo(
    file: File, problem: str, rest: Collection[str], names: Sequence[str], own: str, *where: str | int
) -> NoReturn:
    """Refuse a metric or a method; the message suggests the key of the table that a parameter (`rest`) resembles."""
    typo = next((f"; did you mean {near!r}?" for key in rest if (near := nearest(key, names))), "")
    file.refuse(f"{problem}{typo}", *where, *(rest if typo else [own]))


def _filters(file: File) -> tuple[Filter, ...]:
    from cranfield.experiments.metrics.plan_metrics import pattern_problem

    filters = []
    for number, table in enumerate(file.value.filter):
        if table.field not in FIELDS and not table.field.startswith("attributes."):
            expected = f"expected a field of {', '.join(FIELDS)}, or attributes.NAME"
            file.refuse(f"{expected}, found {shortened(table.field)!r}", "filter", number, "field")
        equals = (table.equals,) if isinstance(table.equals, str) else table.equals
        if bool(equals) == (table.matches is not None):
            file.refuse("expected either equals or matches in a filter", "filter", number, "name")
        wrong = pattern_problem(table.matches or "")
        if wrong:
            file.refuse(f"expected a regular expression as matches ({wrong})", "filter", number, "matches")
        filters.append(replace(table, equals=equals))
    return tuple(filters)


def _interleave(file: File) -> dict[str, Any] | None:
    """The [interleave] table, checked: systems and control, method and its parameters, credit and margin."""
    from cranfield.experiments.click_credit import WORTH

    table, name = file.value.interleave, "interleave"
    if table is None:
        return None
    options = file.part({key: table[key] for key in INTERLEAVE_KEYS if key in table}, InterleaveTable, name)
    systems = options.systems or ()
    if options.control is not None and options.control not in systems:
        expected = f"of {', '.join(systems)}" if systems else "with systems"
        file.refuse(f"expected a control {expected}, found {shortened(options.control)!r}", name, "control")
    if options.credit not in WORTH:
        file.refuse(f"expected credit of {', '.join(WORTH)}, found {shortened(options.credit)!r}", name, "credit")
    try:
        method = interleaving_method(table)
    except ConventionError as error:
        rest = [key for key in table if key not in INTERLEAVE_KEYS]
        _refuse_typo(file, str(error), rest, INTERLEAVE_KEYS, "method", name)
    if len(systems) > 2 and not method.many:
        file.refuse(f"{method.name} interleaves two systems, found {len(systems)}", name, "systems")
    return table


def interleaving_method(table: Mapping[str, Any]) -> InterleavingMethod:
    """The method that an [interleave] table names, with its parameters; team draft by default."""
    from cranfield.experiments.interleaving import method_of

    parameters = {key: value for key, value in table.items() if key not in INTERLEAVE_KEYS}
    return method_of(str(table.get("method", "team-draft")), **parameters)


def _slices(file: File) -> tuple[str, ...]:
    slices = file.value.slices
    if not all(each in ("query", "application") or each.startswith("attributes.") for each in slices):
        problem = "expected slices as a list of query, application or attributes.NAME"
        file.refuse(f"{problem}, found {value_text(list(slices))}", "slices")
    return tuple(dict.fromkeys(slices))


def _refuse_inconsistent(file: File, plan: Plan) -> None:
    """Refuse parts of a plan that contradict each other."""
    if (plan.method == "looks") != bool(plan.looks):
        file.refuse(f'expected looks with method = "looks" and with no other, found method = {plan.method!r}', "method")
    if plan.tuned is not None and plan.method != "sequence":
        file.refuse(f'expected tuned only with method = "sequence", found method = {plan.method!r}', "tuned")
    keys: set[str] = set()
    for choice in (*plan.primary, *plan.guardrails):
        key = json.dumps([choice.metric, choice.parameters, choice.window], sort_keys=True, default=_plain)
        if key in keys:
            file.refuse(f"expected each metric once, found {choice.metric!r} twice")
        keys.add(key)
    for name in plan.winsorise:
        if name not in {choice.metric for choice in (*plan.primary, *plan.guardrails)}:
            problem = f"expected a metric of the plan in [winsorise], found {shortened(name)!r}"
            file.refuse(problem, "winsorise", name)
    _refuse_undecidable(file, plan)


def _refuse_undecidable(file: File, plan: Plan) -> None:
    """Refuse a plan that `analyze` would refuse at the end. A plan without metrics is valid: it only assigns units."""
    if plan.guardrails and not plan.primary and plan.interleave is None:
        file.refuse("expected a [[primary]] metric, which decides, in addition to guardrails; found none", "guardrail")
    measured = plan.primary or plan.interleave is not None
    if measured and plan.days is None and plan.units is None:
        file.refuse("expected a [horizon] of days or units, which ends the experiment; found none", "horizon")
    if plan.method == "sequence" and plan.tuned is None and plan.units is None:
        file.refuse('expected tuned, or units in [horizon], with method = "sequence"; found none', "method")
