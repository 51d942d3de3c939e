"""Assign randomisation units to experiments and variants by hashing alone, so that any program can do the same.

The point of a unit under a salt is the first 13 hexadecimal digits of SHA-256 of `salt/unit` in UTF-8, over 16^13: a number
from 0 up to 1 that a double holds exactly. The layer's salt decides whether the unit is in an experiment's slice of traffic,
the experiment's salt its variant. More traffic therefore never moves a unit to another variant.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import DataError
from cranfield.base.results import Layout, Part, Rows, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.experiments.event import UserEvent
    from cranfield.experiments.plan import Plan

DIGITS = 13  # hexadecimal: 52 bits, which a double holds
WHOLE = 16.0**DIGITS
OVERRIDE = "override"  # the attribute that marks an exposure by override
PLAN = "plan"  # the attribute with the hash of the plan


class Assignment(NamedTuple):
    """The variant of a unit in an experiment; analysis leaves overrides out."""

    experiment: str
    variant: str
    override: bool = False

    def exposure(self, plan: str = "") -> dict[str, Any]:
        """The fields of an exposure event; with the plan's hash, analysis can detect that the plan changed."""
        attributes = {**({PLAN: plan} if plan else {}), **({OVERRIDE: "true"} if self.override else {})}
        fields: dict[str, Any] = {"experiment": self.experiment, "variant": self.variant}
        return fields | ({"attributes": attributes} if attributes else {})


def point(salt: str, unit: str) -> float:
    """The point of a unit under a salt, from 0 up to 1.

    >>> point("ranker-2026", "alice")
    0.5096528845604891
    """
    if "/" in salt or not salt:
        raise DataError(f"expected a salt without /, which ends it, found {salt!r:.60}")
    try:
        text = f"{salt}/{unit}".encode()
    except UnicodeEncodeError:
        raise DataError(f"expected a unit in Unicode, found {unit!a:.60}") from None
    return int(hashlib.sha256(text).hexdigest()[:DIGITS], 16) / WHOLE


def variant_at(shares: Mapping[str, float], where: float) -> str:
    """The variant at a point: the shares divide the line from 0 to 1, in their order.

    >>> variant_at({"a": 0.5, "b": 0.5}, 0.5)
    'b'
    """
    names, widths = list(shares), list(shares.values())
    for i, name in enumerate(names[:-1]):
        if where < math.fsum(widths[: i + 1]):
            return name
    return names[-1]


def assign_one(plan: Plan, unit: str) -> Assignment | None:
    """The variant of a unit in one experiment, regardless of other experiments; None if the unit is not in its traffic."""
    if not unit:
        raise DataError("expected a unit, found an empty text")
    if unit in plan.overrides:
        return Assignment(plan.name, plan.overrides[unit], True)
    first, last = plan.traffic
    if not first <= point(plan.layer_salt, unit) < last:
        return None
    return Assignment(plan.name, variant_at(plan.variants, point(plan.salt, unit)))


def assign(plans: Sequence[Plan], unit: str) -> list[Assignment]:
    """The experiments and variants of a unit.

    A held-out unit is in no other experiment. A unit with an override is in no other experiment of that layer, except by
    another override.
    """
    candidates = [(plan, one) for plan in plans if (one := assign_one(plan, unit)) is not None]
    held_out = any(plan.holdout == one.variant for plan, one in candidates if plan.holdout)
    occupied = {plan.layer for plan, one in candidates if one.override}
    return [
        one
        for plan, one in candidates
        if one.override or (plan.layer not in occupied and (not held_out or plan.holdout is not None))
    ]


def refuse_contradiction(plans: Sequence[Plan], event: UserEvent) -> None:
    """Raise DataError if an event's variant is not the one assigned to its unit.

    Events of unknown experiments pass, and so do exposures by override, which analysis leaves out.
    """
    if event.variant is None or event.experiment not in {plan.name for plan in plans}:
        return
    if (event.attributes or {}).get(OVERRIDE) == "true":
        return
    own = next((one for one in assign(plans, event.unit) if one.experiment == event.experiment), None)
    if own is None or own.variant != event.variant:
        variant = "" if own is None else f"in variant {own.variant!r} of "
        place = f"is {variant or 'not in '}{event.experiment!r}"
        raise DataError(f"unit {event.unit!r:.60} {place}, and the event says variant {event.variant!r:.60}")


class UnitAssignment(NamedTuple):
    """A unit with one of its assignments; None if it is in no experiment."""

    unit: str
    assignment: Assignment | None


@dataclass(frozen=True)
class Assignments(Rows[UnitAssignment]):
    """The experiments and variants of several units."""

    rows: tuple[UnitAssignment, ...]

    def content(self, how: Layout) -> Iterable[Part]:
        yield Table(["unit", "experiment", "variant", "override"], list(self._texts("-")), names=3)

    def _texts(self, nothing: str) -> Iterable[list[str]]:
        for unit, one in self.rows:
            if one is None:
                yield [unit, nothing, nothing, nothing]
            else:
                yield [unit, one.experiment, one.variant, "yes" if one.override else "no"]

    def records(self, how: Layout) -> Iterable[Sequence[Any]]:
        return [["unit", "experiment", "variant", "override"], *self._texts("")]

    def plain(self, how: Layout) -> list[dict[str, Any]]:
        nothing = {"experiment": None, "variant": None, "override": False}
        return [{"unit": unit, **(nothing if one is None else one._asdict())} for unit, one in self.rows]


def assignments(plans: Sequence[Plan], units: Iterable[str]) -> Assignments:
    """The assignments of several units, one row each; a unit without any has a row as well."""
    return Assignments(tuple(UnitAssignment(unit, one) for unit in units for one in assign(plans, unit) or (None,)))
