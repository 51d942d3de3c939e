"""A round: who is asked about what, what they answer, and what they are given next (`judge.places` keeps the count)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from cranfield.errors import DataError
from cranfield.judge.adaptive import refuse_strategy
from cranfield.judge.event import RELEVANCE
from cranfield.judge.gold import passed
from cranfield.judge.handing import Desk
from cranfield.judge.places import ANSWERS, owns
from cranfield.judge.plan import OPEN, Asked, Lease, Nothing, Round, find_round
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.judge.event import Event
    from cranfield.judge.log import Log
    from cranfield.judge.records import Transaction


def refuse_round(plan: Round, asked: list[Asked]) -> None:
    """Stop where a round cannot be begun in any log."""
    if not plan.name.strip():
        raise DataError(f"expected a name for the round, found {plan.name!r}")
    if plan.passing is not None and not any(each.role == "gold" for each in asked):
        raise DataError(f"round {plan.name!r} is to be passed, and has no gold to answer: give --gold")
    if plan.strategy:
        refuse_strategy(plan)


def open_round(log: Log, plan: Round, asked: list[Asked]) -> None:
    """Begin a round: all its documents and places, or nothing."""
    record = {
        "record": "round",
        "kind": "round",
        **asdict(plan),
        "items": [tuple(each) for each in asked],
    }
    refuse_round(plan, asked)

    def work(transaction: Transaction) -> None:
        if plan.after and find_round(transaction.connection, plan.after)[0].passing is None:
            raise DataError(f"round {plan.after!r} is not one to pass: open one with --gold and --pass first")
        transaction.apply(record | {"at": transaction.now})

    log.write(work)


def set_state(log: Log, name: str, state: str) -> None:
    """Pause a round, go on with it, or close it; labels of what is out are still taken."""

    def work(transaction: Transaction) -> None:
        find_round(transaction.connection, name)
        transaction.apply({"record": "state", "kind": "state", "round": name, "state": state})

    log.write(work)


def lease(log: Log, assessor: str, name: str = "", n: int = 1) -> list[Lease] | Nothing:
    """Up to n documents for somebody: those that they hold already, then new ones; or why there is none.

    An adaptive round gives one at a time: the next depends on the answer.
    """

    def work(transaction: Transaction) -> list[Lease] | Nothing:
        desk = Desk(transaction, name, assessor)
        desk.plan.refuse(assessor)
        return _given(desk, n)

    return log.write(work)


def _given(desk: Desk, n: int) -> list[Lease] | Nothing:
    plan = desk.plan
    if desk.state != OPEN:
        return Nothing(f"round {plan.name!r} is {desk.state}")
    if plan.after:
        refusal = passed(desk.connection, find_round(desk.connection, plan.after)[0], desk.assessor)
        if refusal is not None:
            return refusal
    most = min(n, 1) if plan.strategy else n
    answer = desk.held(most)
    while True:
        while len(answer) < most and (another := desk.claim()) is not None:
            answer.append(another)
        desk.write()
        told = answer or (desk.nothing() if most > 0 else [])
        if told is not None:  # else something came free between two looks
            return told


class Outcome(NamedTuple):
    """What became of an event: kept, repeated (it was there already), or refused, and why."""

    id: str
    said: str
    reason: str = ""  # of REASONS
    why: str = ""

    @property
    def kept(self) -> bool:
        """Whether the log holds the event."""
        return self.said != REFUSED


KEPT, REPEATED, REFUSED = "kept", "repeated", "refused"
REASONS = {
    "id": "the id is that of an event that says something else",
    "assessor": "it is somebody else's, or of somebody who is not asked",
    "round": "the round is closed, paused, or not there",
    "scale": "the grade is not one of the round's",
    "lease": "the document is not leased to them, or not any more",
    "event": "it refers to an event that is not there, or cannot be taken back",
}


def answer(
    log: Log, events: Sequence[Event], assessor: str, name: str = "", n: int = 1
) -> tuple[list[Outcome], list[Lease] | Nothing]:
    """Keep events of somebody, and lease them up to n documents in all, at once; both are on disk when this returns.

    Unlike `log.add`, one that is refused does not spoil the others, and an answer to a document of a round is kept only
    while the round is open and the document theirs: leased (though its time may be over, if nobody else has taken it),
    answered, or skipped.
    """
    return log.write(lambda transaction: answered(Desk(transaction, name, assessor), events, n, log.name))


def answered(desk: Desk, events: Sequence[Event], n: int, name: str) -> tuple[list[Outcome], list[Lease] | Nothing]:
    """The same within a transaction that does more; `name` is the log's."""
    outcomes = [_taken(desk, event, name) for event in events]
    try:
        desk.plan.refuse(desk.assessor)
    except DataError as error:
        return outcomes, Nothing(str(error))
    return outcomes, _given(desk, n)


def _taken(desk: Desk, event: Event, name: str) -> Outcome:
    """Keep one event, or say why not."""
    transaction = desk.transaction
    fills = event.round == desk.plan.name and event.kind in ANSWERS and event.aspect == RELEVANCE
    place = desk.holds(event) if fills else None
    if place is not None and _refusal(desk, event, held=True) is None and transaction.take(event, place):
        desk.filled(place)
        return Outcome(event.id, KEPT)
    known = transaction.known([event.id]).get(event.id)
    if known is not None:
        if known == event:
            return Outcome(event.id, REPEATED)
        return Outcome(event.id, REFUSED, "id", f"an event with the id {shortened(event.id)!r} says something else")
    refusal = _refusal(desk, event, held=place is not None)
    if refusal is not None:
        return Outcome(event.id, REFUSED, *refusal)
    desk.changed()
    try:
        transaction.try_to_add(event, name)
    except DataError as error:
        return Outcome(event.id, REFUSED, "event", str(error))
    return Outcome(event.id, KEPT)


def _refusal(desk: Desk, event: Event, held: bool) -> tuple[str, str] | None:
    """Why an event is not kept: one of REASONS, and a sentence."""
    if event.assessor != desk.assessor:
        return "assessor", f"it is of {event.assessor or 'nobody'}, and was sent by {desk.assessor}"
    about = event
    if event.kind == "withdrawal":
        found = desk.transaction.known([event.refers]).get(event.refers)
        if found is None:
            return "event", f"there is no event {shortened(event.refers)!r} to withdraw"
        if found.assessor != desk.assessor:
            return "assessor", f"{shortened(event.refers)!r} is of {found.assessor or 'nobody'}"
        about = found
    if not about.round or about.kind not in (*ANSWERS, "skip"):
        return None
    plan, state = desk.plan, desk.state
    if about.round != plan.name:
        try:
            plan, state = find_round(desk.connection, about.round)
        except DataError as error:
            return "round", str(error)
    if state != OPEN:
        return "round", f"round {plan.name!r} is {state}"
    if about is not event:
        return None
    for reason, grade in (("assessor", None), ("scale", event.grade if event.aspect == RELEVANCE else None)):
        try:
            plan.refuse(event.assessor, grade)
        except DataError as error:
            return reason, str(error)
    if held or owns(desk.connection, event):
        return None
    told = f"topic {shortened(event.topic)!r}, document {shortened(event.document)!r}"
    return "lease", f"{told} is not leased to {event.assessor} in round {plan.name!r}, or not any more"


def release(log: Log, assessor: str, name: str = "", leases: Sequence[Lease] | None = None) -> int:
    """Give back what somebody holds in a round and has not answered, or some of it; how many documents that were."""

    def work(transaction: Transaction) -> int:
        desk = Desk(transaction, name, assessor)
        wanted = None if leases is None else {(each.item, each.slot) for each in leases}
        back = [place for place in desk.mine() if wanted is None or (place.item, place.slot) in wanted]
        for place in back:
            at = {"round": desk.plan.name, "item": place.item, "slot": place.slot, "assessor": assessor}
            transaction.apply({"record": "release", "kind": "release", **at})
        return len(back)

    return log.write(work)
