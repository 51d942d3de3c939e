"""What an assessor's browser says of documents, made events of the log: one request keeps them and brings the next documents.

A browser says little: id, topic, document, grade, and so on. Who it is, where the document stands in the round, whether it is
asked a second time and by which guidelines is known here. The same said twice is one event, whatever the hour of the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError, UnavailableError
from cranfield.judge.event import RELEVANCE, Event
from cranfield.judge.own import Place, known_events, own_places
from cranfield.judge.plan import find_round
from cranfield.judge.rounds import KEPT, REFUSED, REPEATED, Outcome
from cranfield.judge.rounds import answer as keep
from cranfield.parameters import shortened
from cranfield.workspace.assessing import (
    AHEAD,
    Work,
    nothing_of,
    plan_scale,
    progress,
    shown,
    subjects_of,
)
from cranfield.workspace.sending import MOST, check, id_of, said_at, says_the_same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.judge.plan import Round
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
    plan, state, places = None, "", {}
    if name:
        with bench.log.reading() as transaction:
            plan, state = find_round(transaction.connection, name)
            places = own_places(transaction.connection, name, assessor, _subjects(said))
    events, outcomes = _Maker(bench, plan, assessor, now or datetime.now(UTC), places).events(said)
    if plan is None:
        outcomes |= _kept_in_no_round(bench, events)
        return Work(outcomes=_in_order(bench, said, events, outcomes))
    found, told = keep(bench.log, events, assessor, name, min(max(n, 0), AHEAD))
    outcomes |= {each.id: each for each in found}
    return Work(
        round=name,
        state=state,
        outcomes=_in_order(bench, said, events, outcomes),
        progress=progress(bench, plan, assessor),
        **nothing_of(plan, told if n > 0 else []),
        **shown(bench, documents, subjects_of(told) if n > 0 else [], have),
    )


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


def _subjects(said: Sequence[Any]) -> list[Subject]:
    """The documents that are spoken of."""
    pairs = [(row.get("topic"), row.get("document")) for row in said if isinstance(row, Mapping)]
    return [(topic, document) for topic, document in pairs if isinstance(topic, str) and isinstance(document, str)]


class _Maker:
    """Events of what somebody says in one request."""

    def __init__(
        self, bench: Bench, plan: Round | None, assessor: str, now: datetime, places: Mapping[Subject, Sequence[Place]]
    ) -> None:
        self.bench, self.plan, self.assessor, self.now, self.places = bench, plan, assessor, now, places
        self.aspects = {each.name: each for each in bench.aspects()}

    def events(self, said: Sequence[Any]) -> tuple[list[Event], dict[str, Outcome]]:
        """The events, and what is refused because it is none."""
        events: dict[str, Event] = {}
        refused = {}
        for row in said:
            key = id_of(row)
            try:
                events.setdefault(key, self._event(row, len(events)))
            except DataError as error:
                refused[key] = Outcome(key, REFUSED, "event", str(error))
        return list(events.values()), refused

    def _event(self, row: Any, place: int) -> Event:
        check(row, FURTHER)
        if row.get("kind", "judgment") not in KINDS:
            raise DataError(f"expected a kind of {', '.join(KINDS)}, found {shortened(str(row['kind']))!r}")
        event = Event.of({name: row[name] for name in SAID if row.get(name) is not None}, assessor=self.assessor)
        event = replace(event, time=said_at(row, self.now + timedelta(microseconds=place)))
        if event.kind == "withdrawal":
            return event
        self._check_grade(event)
        if self.plan is None:
            return event
        about = self._place(event, row.get("changes"))
        if about is not None:
            event = replace(event, rank=about.item + 1, repeat=about.repeat)
        return replace(event, round=self.plan.name, list=f"round {self.plan.name}", guideline=self.plan.guideline)

    def _check_grade(self, event: Event) -> None:
        """Refuse an aspect that nobody asks about, and a grade that is not offered; the round itself checks its scale."""
        if event.grade is None:
            return
        scale = plan_scale(self.bench, self.plan)
        if event.aspect != RELEVANCE:
            aspect = self.aspects.get(event.aspect)
            if aspect is None:
                raise DataError(f"there is no aspect {shortened(event.aspect)!r} to judge here")
            scale = tuple(aspect.grades)
        if event.grade not in scale:
            raise DataError(f"expected a grade of {', '.join(f'{each:g}' for each in scale)}, found {event.grade:g}")

    def _place(self, event: Event, changes: Any) -> Place | None:
        """The document as the assessor has it: the label that is changed, else what they hold, else what they have said."""
        found = self.places.get((event.topic, event.document), [])
        order = {"leased": 1, "done": 2, "extra": 2, "skipped": 2}
        return min(
            found, key=lambda place: (place.event != changes, order.get(place.state, 3), place.repeat), default=None
        )
