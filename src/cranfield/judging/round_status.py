"""The progress of rounds: labels, leases, open assignments, and each assessor's answers to gold."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, case, func, select

from cranfield.base.results import Answer, Layout, Lines, Part, Table, as_dicts
from cranfield.judging.assignments import GoldAnswer, answers_to_gold
from cranfield.judging.event import RELEVANCE
from cranfield.judging.policies import PEOPLE
from cranfield.judging.round_changes import SkippedDocument, history, skipped_by_all
from cranfield.judging.round_plan import find_round, working_hours
from cranfield.store.tables import events, items, places, rounds, standing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy.engine import Connection, Row

    from cranfield.judging.log import Log

RECENT = 10_000  # labels from which the pace of people is estimated
LATEST = 200  # labels of a person that say how quick they are
GUESS = 60.0  # seconds per label, before anybody has labelled
SHOWN = 10  # skipped documents that the status names


@dataclass(frozen=True)
class AssessorStatus:
    """One assessor's numbers in a round."""

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
    """One round: its assignments by state, and its assessors."""

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
    hours_left: float = 0.0  # of one person, at the pace of the latest labels
    skipped_by_all: list[SkippedDocument] = field(default_factory=list)
    changes: list[dict[str, str]] = field(default_factory=list)
    people: list[AssessorStatus] = field(default_factory=list)


@dataclass(frozen=True, repr=False)
class Status(Answer):
    """The progress of all rounds of a log."""

    log: str
    labels: int
    rows: list[RoundStatus]

    def content(self, how: Layout) -> Iterator[Part]:
        if not self.rows:
            yield f"{self.log}: {self.labels:,} labels, no round (cranfield judge round begins one)"
            return
        for each in self.rows:
            adaptive = f", {each.strategy} names more as labels come" if each.strategy else ""
            counts = f"{each.done:,} of {each.places:,} labels, {each.out:,} out, {each.left:,} left"
            lines = [
                f"round {each.name} is {each.state}: {counts}, {each.hours_left:,.1f} hours of one person{adaptive}"
            ]
            for change in each.changes:
                who = f" by {change['by']}" if change["by"] else ""
                lines.append(f"changed {change['at'][:16].replace('T', ' ')}{who}: {change['what']}")
            if each.skipped_by_all:
                subjects = ", ".join(f"{one.topic} {one.document}" for one in each.skipped_by_all[:SHOWN])
                more = f" and {len(each.skipped_by_all) - SHOWN:,} more" if len(each.skipped_by_all) > SHOWN else ""
                lines.append(f"skipped by everyone, for the lead to decide: {subjects}{more}")
            yield Lines(lines)
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
        """One row per round."""
        yield ["round", "state", "labels", "of", "out", "left", "extra", "strategy"]
        for each in self.rows:
            yield [each.name, each.state, each.done, each.places, each.out, each.left, each.extra, each.strategy]

    def plain(self, how: Layout) -> Any:
        return {"log": self.log, "labels": self.labels, "rounds": as_dicts(self.rows)}


def status(log: Log, name: str = "") -> Status:
    """The progress of every round, or of one, and the number of current labels by people."""
    with log.reading() as transaction:
        labels = labels_of_people(transaction.connection)
    return Status(log.name, labels, round_statuses(log, name))


def labels_of_people(connection: Connection) -> int:
    """The number of people's current labels and adjudications of relevance."""
    c = standing.c
    graded = c.aspect == RELEVANCE, c.grade.is_not(None), c.source.in_(PEOPLE)
    sides = (c.side == "adjudication") | ((c.side == "label") & ~c.repeat)
    return int(connection.execute(select(func.count()).select_from(standing).where(*graded, sides)).scalar_one())


def round_statuses(log: Log, name: str = "") -> list[RoundStatus]:
    """The progress of every round, or of one, counted by the database."""
    with log.reading() as transaction:
        connection, now = transaction.connection, transaction.now
        if name:
            find_round(connection, name)
        names = connection.execute(select(rounds.c.name).order_by(rounds.c.created)).scalars().all()
        seconds, _ = _pace(connection)
        return [_status(connection, each, now, seconds) for each in names if name in ("", each)]


def _status(connection: Connection, name: str, now: str, seconds: float) -> RoundStatus:
    plan, state = find_round(connection, name)
    c = places.c
    out_now = case((and_(c.state == "leased", c.until >= now), 1), else_=0).label("out")
    kinds = c.assessor, c.state, c.repeat, c.counted, out_now
    rows = connection.execute(select(*kinds, func.count().label("n")).where(c.round == name).group_by(*kinds)).all()
    by_role = select(items.c.role, func.count()).where(items.c.round == name).group_by(items.c.role)
    roles = {row[0]: row[1] for row in connection.execute(by_role)}
    total, done = _total(rows, counted=True), _total(rows, counted=True, state="done")
    out = _total(rows, counted=True, out=True)
    gold = answers_to_gold(connection, name) if "gold" in roles else []
    names = sorted({row.assessor for row in rows if row.assessor} | set(plan.assessors))
    people = [_person(connection, name, who, rows, gold) for who in names]
    counts = roles.get("pool", 0), roles.get("gold", 0), total, done, out, total - done - out
    return RoundStatus(
        name,
        state,
        *counts,
        _total(rows, state="extra"),
        plan.strategy,
        working_hours(total - done, seconds),
        skipped_by_all(connection, plan),
        [each.words() for each in history(connection, name)],
        people,
    )


def _total(rows: Sequence[Row[Any]], **fields: Any) -> int:
    """The number of assignments in the rows with these values."""
    return sum(row.n for row in rows if all(getattr(row, name) == value for name, value in fields.items()))


def _person(
    connection: Connection, name: str, who: str, rows: Sequence[Row[Any]], gold: list[GoldAnswer]
) -> AssessorStatus:
    answers = [answer for answer in gold if answer.assessor == who]
    here = events.c.assessor == who, events.c.round == name, events.c.kind.in_(("judgment", "cannot-judge"))
    latest = select(events.c.seconds, events.c.time).where(*here)
    labels = connection.execute(latest.order_by(events.c.seq.desc()).limit(LATEST)).all()
    seconds = [row.seconds for row in labels if row.seconds is not None]
    return AssessorStatus(
        who,
        done=_total(rows, assessor=who, state="done", repeat=False) - len(answers),
        out=_total(rows, assessor=who, out=True),
        skipped=_total(rows, assessor=who, state="skipped"),
        extra=_total(rows, assessor=who, state="extra"),
        repeated=_total(rows, assessor=who, state="done", repeat=True),
        gold=len(answers),
        gold_right=sum(answer.grade == answer.right for answer in answers),
        seconds=statistics.median(seconds) if seconds else None,
        last=max((row.time for row in labels), default=""),
    )


def gold_answers(log: Log, round: str = "") -> list[GoldAnswer]:
    """The answers to the gold of one round, or of all rounds of a log."""
    if not log.has_records():
        return []
    with log.reading() as transaction:
        names = [round] if round else [plan.name for plan, _ in transaction.all_rounds()]
        return [answer for name in names for answer in answers_to_gold(transaction.connection, name)]


def label_pace(log: Log) -> tuple[float, str]:
    """The seconds per label that planning and status count with, and where they come from."""
    with log.reading() as transaction:
        return _pace(transaction.connection)


def _pace(connection: Connection) -> tuple[float, str]:
    measured = events.c.kind == "judgment", events.c.source == "human", events.c.seconds.is_not(None)
    query = select(events.c.seconds).where(*measured).order_by(events.c.seq.desc()).limit(RECENT)
    seconds = connection.execute(query).scalars().all()
    return (statistics.median(seconds), "the median so far") if seconds else (GUESS, "a guess: nobody has labelled yet")
