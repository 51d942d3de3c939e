"""How far rounds are: who is where, what is out, what is left, and answers to gold."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import case, func, select

from cranfield.answer import Answer, Table
from cranfield.judge.gold import answers
from cranfield.judge.plan import find_round
from cranfield.judge.policy import PEOPLE
from cranfield.store.tables import events, items, places, rounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy.engine import Connection

    from cranfield.answer import Layout, Part
    from cranfield.judge.gold import GoldAnswer
    from cranfield.judge.log import Log

LATEST = 200  # labels of a person that say how quick they are


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
    seconds: float | None = None  # the median on the screen, of the latest labels
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


def status(log: Log, name: str = "") -> Status:
    """How far every round is, or one, and how many labels of people stand."""
    labels = sum(each.side == "adjudication" or each.source in PEOPLE for each in log.said())
    return Status(log.name, labels, round_statuses(log, name))


def round_statuses(log: Log, name: str = "") -> list[RoundStatus]:
    """How far every round is, or one: counted by the database, however large the round is."""
    with log.reading() as transaction:
        connection, now = transaction.connection, transaction.now
        if name:
            find_round(connection, name)
        names = connection.execute(select(rounds.c.name).order_by(rounds.c.created)).scalars().all()
        return [_status(connection, each, now) for each in names if name in ("", each)]


def _status(connection: Connection, name: str, now: str) -> RoundStatus:
    plan, state = find_round(connection, name)
    waits = case((places.c.until >= now, 1), else_=0).label("waits")
    kinds = places.c.assessor, places.c.state, places.c.repeat, places.c.counted, waits
    grouped = select(*kinds, func.count().label("n")).where(places.c.round == name).group_by(*kinds)
    rows = [_Places(*row) for row in connection.execute(grouped)]
    by_role = select(items.c.role, func.count()).where(items.c.round == name).group_by(items.c.role)
    roles = {row[0]: row[1] for row in connection.execute(by_role)}
    inside = [row for row in rows if row.counted]
    total = sum(row.n for row in inside)
    done = sum(row.n for row in inside if row.state == "done")
    out = sum(row.n for row in inside if row.out)
    gold = answers(connection, name) if "gold" in roles else []
    names = sorted({row.assessor for row in rows if row.assessor} | set(plan.assessors))
    people = [_person(connection, name, who, rows, gold) for who in names]
    extra = sum(row.n for row in rows if row.state == "extra")
    counts = roles.get("pool", 0), roles.get("gold", 0), total, done, out, total - done - out
    return RoundStatus(name, state, *counts, extra, plan.strategy, people)


class _Places(NamedTuple):
    """So many places of one person that are alike."""

    assessor: str | None
    state: str
    repeat: bool
    counted: bool
    waits: int  # whether the lease is not over
    n: int

    @property
    def out(self) -> bool:
        return self.state == "leased" and bool(self.waits)


def _person(connection: Connection, name: str, who: str, rows: list[_Places], gold: list[GoldAnswer]) -> Person:
    mine = [row for row in rows if row.assessor == who]
    asked = [answer for answer in gold if answer.assessor == who]
    latest = select(events.c.seconds, events.c.time).where(
        events.c.assessor == who, events.c.round == name, events.c.kind.in_(("judgment", "cannot-judge"))
    )
    said = connection.execute(latest.order_by(events.c.seq.desc()).limit(LATEST)).all()
    seconds = [row.seconds for row in said if row.seconds is not None]

    def count(state: str, repeat: bool | None = None) -> int:
        return sum(row.n for row in mine if row.state == state and repeat in (None, row.repeat))

    return Person(
        who,
        done=count("done", repeat=False) - len(asked),
        out=sum(row.n for row in mine if row.out),
        skipped=count("skipped"),
        extra=count("extra"),
        repeated=count("done", repeat=True),
        gold=len(asked),
        gold_right=sum(answer.said == answer.right for answer in asked),
        seconds=statistics.median(seconds) if seconds else None,
        last=max((row.time for row in said), default=""),
    )
