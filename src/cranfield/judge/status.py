"""How far rounds are: who is where, what is out, what is left, and answers to gold."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, func, select

from cranfield.answer import Answer, Table
from cranfield.judge.gold import answers
from cranfield.judge.plan import find_round
from cranfield.judge.policy import PEOPLE
from cranfield.store.tables import events, items, places, rounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy.engine import Connection

    from cranfield.answer import Layout, Part
    from cranfield.judge.log import Log


@dataclass(frozen=True)
class Person:
    """One assessor in a round."""

    assessor: str
    done: int = 0
    out: int = 0  # leased and not over
    skipped: int = 0
    extra: int = 0  # came too late to count
    repeated: int = 0
    gold: int = 0
    gold_right: int = 0
    seconds: float | None = None  # the median on the screen
    last: str = ""


@dataclass(frozen=True)
class RoundStatus:
    """One round: places within the count by state, and its people."""

    name: str
    state: str
    documents: int
    gold: int
    places: int
    done: int
    out: int
    left: int
    extra: int
    strategy: str
    people: list[Person] = field(default_factory=list)


@dataclass(frozen=True, repr=False)
class Status(Answer):
    """All rounds of a log."""

    log: str
    labels: int
    rows: list[RoundStatus]

    def content(self, how: Layout) -> Iterator[Part]:
        if not self.rows:
            yield f"{self.log}: {self.labels:,} labels, no round (cranfield judge round begins one)"
            return
        for each in self.rows:
            adaptive = f", {each.strategy} names more as labels come" if each.strategy else ""
            yield (
                f"round {each.name} is {each.state}: {each.done:,} of {each.places:,} labels, {each.out:,} out, "
                f"{each.left:,} left{adaptive}"
            )
            head = "assessor done out skipped extra repeats gold right seconds last".split()
            rows = [
                [
                    person.assessor,
                    *map(str, (person.done, person.out, person.skipped, person.extra, person.repeated, person.gold)),
                    f"{person.gold_right / person.gold:.0%}" if person.gold else how.undefined,
                    how.undefined if person.seconds is None else f"{person.seconds:.1f}",
                    person.last[:16].replace("T", " ") or how.undefined,
                ]
                for person in each.people
            ]
            if rows:
                yield Table(head, rows)

    def records(self, how: Layout) -> Iterator[Sequence[Any]]:
        """A row a round."""
        yield ["round", "state", "labels", "of", "out", "left", "extra", "strategy"]
        for each in self.rows:
            yield [each.name, each.state, each.done, each.places, each.out, each.left, each.extra, each.strategy]

    def plain(self, how: Layout) -> Any:
        rows = [{**vars(each), "people": [vars(person) for person in each.people]} for each in self.rows]
        return {"log": self.log, "labels": self.labels, "rounds": rows}


def counts(log: Log, name: str) -> dict[str, dict[str, int]]:
    """How many places of a round each person has in each state, by one look at places alone; what is free is nobody's ("")."""
    query = (
        select(places.c.assessor, places.c.state, func.count())
        .where(places.c.round == name)
        .group_by(places.c.assessor, places.c.state)
    )
    answer: dict[str, dict[str, int]] = {}
    with log.reading() as transaction:
        find_round(transaction.connection, name)
        for assessor, state, count in transaction.connection.execute(query):
            answer.setdefault(assessor or "", {})[state] = count
    return answer


def status(log: Log, name: str = "") -> Status:
    """How far every round is, or one."""
    labels = sum(each.side == "adjudication" or each.source in PEOPLE for each in log.said())
    with log.reading() as transaction:
        connection, now = transaction.connection, transaction.now
        if name:
            find_round(connection, name)
        rows = connection.execute(select(rounds).order_by(rounds.c.created)).all()
        return Status(log.name, labels, [_status(connection, row.name, now) for row in rows if name in ("", row.name)])


def _status(connection: Connection, name: str, now: str) -> RoundStatus:
    plan, state = find_round(connection, name)
    on = and_(items.c.round == places.c.round, items.c.item == places.c.item)
    query = (
        select(places, items.c.overlap, items.c.role, events.c.seconds, events.c.time)
        .join(items, on)
        .outerjoin(events, events.c.id == places.c.event)
        .where(places.c.round == name)
    )
    rows = connection.execute(query).all()
    roles = Counter(connection.execute(select(items.c.role).where(items.c.round == name)).scalars())
    inside = [row for row in rows if row.slot < row.overlap]
    done = sum(row.state == "done" for row in inside)
    out = sum(row.state == "leased" and row.until >= now for row in inside)
    right = Counter(each.assessor for each in answers(connection, name) if each.said == each.right)
    names = sorted({row.assessor for row in rows if row.assessor} | set(plan.assessors))
    people = [_person(who, [row for row in rows if row.assessor == who], now, right[who]) for who in names]
    counts = roles["pool"], roles["gold"], len(inside), done, out, len(inside) - done - out
    return RoundStatus(name, state, *counts, sum(row.state == "extra" for row in rows), plan.strategy, people)


def _person(name: str, rows: list[Any], now: str, right: int) -> Person:
    answered = [row for row in rows if row.state == "done"]
    seconds = [row.seconds for row in answered if row.seconds is not None]
    return Person(
        name,
        done=sum(row.role == "pool" and not row.repeat for row in answered),
        out=sum(row.state == "leased" and row.until >= now for row in rows),
        skipped=sum(row.state == "skipped" for row in rows),
        extra=sum(row.state == "extra" for row in rows),
        repeated=sum(bool(row.repeat) for row in answered),
        gold=sum(row.role == "gold" for row in answered),
        gold_right=right,
        seconds=statistics.median(seconds) if seconds else None,
        last=max((row.time for row in answered), default=""),
    )
