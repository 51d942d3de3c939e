"""Events that are to be added, held against those that are there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from cranfield.errors import DataError
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cranfield.judge.event import Event


ORIGIN = re.compile(r"(?P<file>.*) (?P<digest>sha256:[0-9a-f]{64}) line \d+", re.DOTALL)


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
            _refuse_same_bytes(event, before, name)
            other = next(
                field for field in event.row() | before.row() if getattr(event, field) != getattr(before, field)
            )
            had, says = getattr(before, other), getattr(event, other)
            told = f"its {other} was {had!r} and is now {says!r}"
            raise DataError(
                f"{name}: an event with the id {shortened(event.id)!r} is there and says something else: {told}"
            )
    return list(new.values()), repeated


def same_bytes(other: str, whose: str = "") -> str:
    """The sentence on a file that is a copy of another."""
    before = f", added before as labels of {whose!r}" if whose else ""
    return f"the same bytes as {other}{before}: a copy does not hold a second person's labels"


def _refuse_same_bytes(event: Event, before: Event, name: str) -> None:
    """Refuse a label from a file that was added before as somebody else's, or under another name."""
    new, known = (ORIGIN.fullmatch(each.origin) for each in (event, before))
    if new is None or known is None or new["digest"] != known["digest"]:
        return
    if new["file"] != known["file"] or event.assessor != before.assessor:
        raise DataError(f"{name}: {new['file']}: {same_bytes(known['file'], before.assessor)}")


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
