"""What an assessor's browser says of documents, made events of the log: one request keeps them and brings the next documents.

A browser says little: id, topic, document, grade, and so on. Who it is, where the document stands in the round, whether it is
asked a second time and by which guidelines is known here. The same said twice is one event, whatever the hour of the second.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.errors import DataError, UnavailableError
from cranfield.judge.event import RELEVANCE, Event
from cranfield.judge.handing import Desk
from cranfield.judge.own import known_events, own_pace, own_places
from cranfield.judge.rounds import KEPT, REFUSED, REPEATED, Outcome, answered
from cranfield.parameters import shortened
from cranfield.workspace.assessing import (
    AHEAD,
    PAGE,
    Work,
    nothing_of,
    plan_scale,
    progress,
    shown,
    subjects_of,
)
from cranfield.workspace.sending import MOST, check, id_of, said_at, says_the_same

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.engine import Row

    from cranfield.judge.own import Own, Place
    from cranfield.judge.plan import Lease, Nothing, Round
    from cranfield.judge.records import Transaction
    from cranfield.workspace.assessing import Documents, Subject
    from cranfield.workspace.bench import Bench

KINDS = ("judgment", "cannot-judge", "skip", "note", "withdrawal")
SAID = ("id", "kind", "topic", "document", "grade", "sure", "note", "passage", "seconds", "aspect", "refers")
FURTHER = (*(name for name in SAID if name not in ("id", "kind", "refers", "seconds")), "changes", "time")
ADDED = (
    "time",
    "repeat",
    "list",
    "rank",
    "guideline",
)  # what the server says of an event; `changes` is the label before


def answer(
    bench: Bench,
    documents: Documents,
    assessor: str,
    name: str,
    said: Sequence[Any],
    n: int = AHEAD,
    have: Sequence[Subject] = (),
    now: datetime | None = None,
) -> Work:
    """Keep what an assessor says in a round, or in none, and give what became of each with the next documents.

    One that is refused spoils no other. `have` are documents whose texts the browser has already.
    """
    if len(said) > MOST:
        raise DataError(f"expected at most {MOST} events at once, found {len(said)}")
    maker = _Maker(bench, assessor, now or datetime.now(UTC))
    if not name:
        events, outcomes = maker.events(said, None)
        outcomes |= _kept_in_no_round(bench, events)
        return Work(outcomes=_in_order(bench, said, events, outcomes))

    def kept(transaction: Transaction) -> _Kept:
        desk = Desk(transaction, name, assessor)
        events, refused = maker.events(said, desk)
        found, told = answered(desk, events, min(max(n, 0), AHEAD), bench.log.name)
        own = own_pace(transaction.connection, name, assessor, PAGE)
        return _Kept(desk.plan, desk.state, events, refused | {each.id: each for each in found}, told, own)

    found = bench.log.write(kept)
    told = found.told if n > 0 else []
    return Work(
        round=name,
        state=found.state,
        outcomes=_in_order(bench, said, found.events, found.outcomes),
        progress=progress(bench, found.plan, assessor, found.own),
        **nothing_of(found.plan, told),
        **shown(bench, documents, subjects_of(told), have),
    )


class _Kept(NamedTuple):
    """What one transaction did and saw: everything that an answer is made of, read and written on one connection."""

    plan: Round
    state: str
    events: list[Event]
    outcomes: dict[str, Outcome]
    told: list[Lease] | Nothing
    own: Own


def asked_beside(bench: Bench, grade: float | None) -> list[str]:
    """The aspects that a grade calls for."""
    return [] if grade is None else [each.name for each in bench.aspects() if each.asked_at(grade)]


def _kept_in_no_round(bench: Bench, events: Sequence[Event]) -> dict[str, Outcome]:
    """Add events of no round one by one."""
    outcomes = {}
    for event in events:
        with bench.log.reading() as transaction:
            own = known_events(transaction.connection, [event.id, event.refers])
        if event.kind == "withdrawal" and event.refers in own and own[event.refers].assessor != event.assessor:
            outcomes[event.id] = Outcome(event.id, REFUSED, "assessor", "it is somebody else's")
        elif event.id in own:
            outcomes[event.id] = Outcome(event.id, REFUSED, "id", "an event of that id says something else")
        else:
            try:
                bench.log.add([event])
                outcomes[event.id] = Outcome(event.id, KEPT)
            except UnavailableError:
                raise  # it may be kept when it is sent again
            except DataError as error:
                outcomes[event.id] = Outcome(event.id, REFUSED, "event", str(error))
    return outcomes


def _in_order(
    bench: Bench, said: Sequence[Any], events: Sequence[Event], outcomes: Mapping[str, Outcome]
) -> list[Outcome]:
    """What became of each thing said, in order; what was said before and is said again is no other event."""
    made = {event.id: event for event in events}
    doubted = [key for key, each in outcomes.items() if each.reason == "id" and key in made]
    known: Mapping[str, Event] = {}
    if doubted:
        with bench.log.reading() as transaction:
            known = known_events(transaction.connection, doubted)
    same = {key for key in doubted if key in known and says_the_same(known[key], made[key], ADDED)}
    ids = dict.fromkeys(id_of(each) for each in said)
    return [Outcome(key, REPEATED) if key in same else outcomes[key] for key in ids]


class _Maker:
    """Events of what somebody says in one request."""

    def __init__(self, bench: Bench, assessor: str, now: datetime) -> None:
        self.bench, self.assessor, self.now = bench, assessor, now
        self.aspects = {each.name: each for each in bench.aspects()}

    def events(self, said: Sequence[Any], desk: Desk | None) -> tuple[list[Event], dict[str, Outcome]]:
        """The events, of the round at whose desk it is said, and what is refused because it is none."""
        events: dict[str, Event] = {}
        refused = {}
        for row in said:
            key = id_of(row)
            try:
                events.setdefault(key, self._event(row, len(events), desk))
            except DataError as error:
                refused[key] = Outcome(key, REFUSED, "event", str(error))
        return list(events.values()), refused

    def _event(self, row: Any, place: int, desk: Desk | None) -> Event:
        check(row, FURTHER)
        if row.get("kind", "judgment") not in KINDS:
            raise DataError(f"expected a kind of {', '.join(KINDS)}, found {shortened(str(row['kind']))!r}")
        told = {name: row[name] for name in SAID if row.get(name) is not None}
        event = Event.of(told, assessor=self.assessor, time=said_at(row, self.now + timedelta(microseconds=place)))
        if event.kind == "withdrawal":
            return event
        plan = None if desk is None else desk.plan
        self._check_grade(event, plan)
        if desk is None or plan is None:
            return event
        about = _place(desk, event, row.get("changes"))
        where: dict[str, Any] = {} if about is None else {"rank": about.item + 1, "repeat": bool(about.repeat)}
        return replace(event, round=plan.name, list=f"round {plan.name}", guideline=plan.guideline, **where)

    def _check_grade(self, event: Event, plan: Round | None) -> None:
        """Refuse an aspect that nobody asks about, and a grade that is not offered; the round itself checks its scale."""
        if event.grade is None:
            return
        scale = plan_scale(self.bench, plan)
        if event.aspect != RELEVANCE:
            aspect = self.aspects.get(event.aspect)
            if aspect is None:
                raise DataError(f"there is no aspect {shortened(event.aspect)!r} to judge here")
            scale = tuple(aspect.grades)
        if event.grade not in scale:
            raise DataError(f"expected a grade of {', '.join(f'{each:g}' for each in scale)}, found {event.grade:g}")


def _place(desk: Desk, event: Event, changes: Any) -> Place | Row[Any] | None:
    """The document as the assessor has it: the label that is changed, else what they hold, else what they have said."""
    subject = event.topic, event.document
    held = [row for row in desk.mine() if (row.topic, row.document) == subject] if changes is None else []
    if held:
        return min(held, key=lambda row: row.repeat)
    found = own_places(desk.connection, desk.plan.name, desk.assessor, subject)
    order = {"leased": 1, "done": 2, "extra": 2, "skipped": 2}
    return min(found, key=lambda place: (place.event != changes, order.get(place.state, 3), place.repeat), default=None)
