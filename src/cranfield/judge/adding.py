"""Events that are to be added, held against those that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cranfield.errors import DataError
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cranfield.judge.event import Event


class Added(NamedTuple):
    """How many events were new, and how many were there already."""

    new: int
    known: int


def sorted_out(events: Iterable[Event], known: dict[str, Event], name: str) -> tuple[list[Event], int]:
    """The events that are new, and how many say what is known; one that says something else is refused."""
    new: dict[str, Event] = {}
    repeated = 0
    for event in events:
        before = known.get(event.id) or new.get(event.id)
        if before is None:
            new[event.id] = event
        elif before == event:
            repeated += 1
        else:
            other = next(
                field for field in event.row() | before.row() if getattr(event, field) != getattr(before, field)
            )
            had, says = getattr(before, other), getattr(event, other)
            told = f"its {other} was {had!r} and is now {says!r}"
            raise DataError(
                f"{name}: an event with the id {shortened(event.id)!r} is there and says something else: {told}"
            )
    return list(new.values()), repeated


def refuse_unknown_withdrawals(events: Iterable[Event], kind_of: Callable[[str], str | None], name: str) -> None:
    """A withdrawal must be of an event that is there, and not of another withdrawal."""
    for event in events:
        if event.kind != "withdrawal":
            continue
        kind = kind_of(event.refers)
        if kind is None:
            raise DataError(f"{name}: there is no event {shortened(event.refers)!r} to withdraw")
        if kind == "withdrawal":
            raise DataError(f"{name}: {shortened(event.refers)!r} is a withdrawal itself; judge again instead")
