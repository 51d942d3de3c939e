"""Deciding where people differ: one document after the other, the widest apart first, and nobody's name.

People are A, B, C … in an order drawn by lot for each document, the same whenever it is looked at. What leaves here holds no
name, no id and no time of a label.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from cranfield.answer import Answer, Table, plain
from cranfield.errors import DataError
from cranfield.judge.disputes import Disputes, decided_count, decision, last_decisions, opinions
from cranfield.judge.event import Event
from cranfield.judge.plan import plans
from cranfield.workspace.assessing import Choice, Item, choices, shown
from cranfield.workspace.sending import keep

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.answer import Layout, Part
    from cranfield.collection import Document
    from cranfield.judge.records import Transaction
    from cranfield.judge.rounds import Outcome
    from cranfield.workspace.bench import Bench

Documents = Callable[[str], "Document | None"]  # by id
Subject = tuple[str, str]  # topic and document

AHEAD = 2  # documents given at once
PATIENCE = 0.3  # seconds
LAST = 10  # own decisions that are listed
SAID = ("topic", "document", "grade", "note", "overrule")
DISPUTES: WeakKeyDictionary[Bench, Disputes] = WeakKeyDictionary()


class Opinion(NamedTuple):
    """What somebody said of a document."""

    who: str  # A, B, C …
    grade: float | None  # None: could not judge
    sure: bool
    note: str
    passage: str


class Decision(NamedTuple):
    """What was decided; `id` is there if it is one's own."""

    topic: str
    document: str
    grade: float | None
    note: str
    id: str = ""


class Case(NamedTuple):
    """A document on which people differ."""

    item: Item
    opinions: Sequence[Opinion]
    grades: Sequence[Choice]
    decision: Decision | None = None


@dataclass(frozen=True)
class Docket(Answer):
    """What `docket` and `decide` return."""

    topic: str = ""  # to which it is limited
    ready: bool = True  # False while the labels are being gone through
    left: int = 0
    decided: int = 0
    topics: Mapping[str, int] = field(default_factory=dict)
    needs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    cases: Sequence[Case] = ()
    last: Sequence[Decision] = ()
    outcomes: Sequence[Outcome] = ()

    def content(self, how: Layout) -> Iterable[Part]:
        yield f"{self.left:,} documents are to be decided, {self.decided:,} are"
        if self.topics:
            yield Table(["topic", "documents"], [[topic, f"{count:,}"] for topic, count in self.topics.items()])

    def plain(self, how: Layout) -> dict[str, Any]:
        return {name: plain(_row(value)) for name, value in vars(self).items()}

    def records(self, how: Layout) -> Iterable[tuple[Any, ...]]:
        yield "topic", "documents"
        yield from self.topics.items()


def _row(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _row(part) for name, part in value._asdict().items()}
    return [_row(each) for each in value] if isinstance(value, (list, tuple)) else value


def docket(
    bench: Bench, documents: Documents, lead: str, topic: str = "", subject: Subject | None = None, n: int = AHEAD
) -> Docket:
    """The next documents to decide about, or a certain one."""
    disputes = DISPUTES.setdefault(bench, Disputes(bench.log))
    if not disputes.ready(PATIENCE):
        return Docket(topic, ready=False)
    disputes.refresh()
    with bench.log.reading() as transaction:
        last = [_decision(event, lead) for event in last_decisions(transaction.connection, lead, LAST)]
    found = [subject] if subject is not None else [each.subject for each in disputes.open(topic, n=n)]
    return _docket(bench, disputes, topic, last=last, **_cases(bench, documents, lead, found))


def decide(
    bench: Bench,
    documents: Documents,
    lead: str,
    said: Sequence[Any],
    topic: str = "",
    n: int = AHEAD,
    have: Sequence[Subject] = (),
) -> Docket:
    """Keep decisions, or take them back, and give what became of each with the next documents."""
    outcomes, kept = keep(bench.log, lead, said, SAID, lambda row, base: _event(bench, row, base), _Refusing(said).why)
    disputes = DISPUTES.setdefault(bench, Disputes(bench.log))
    if not disputes.ready(PATIENCE):
        return Docket(topic, ready=False, outcomes=outcomes)
    disputes.refresh(_subjects(bench, kept))
    found = [each.subject for each in disputes.open(topic, without=have, n=n)]
    return _docket(bench, disputes, topic, outcomes=outcomes, **_cases(bench, documents, lead, found))


def _docket(bench: Bench, disputes: Disputes, topic: str, **more: Any) -> Docket:
    with bench.log.reading() as transaction:
        decided = decided_count(transaction.connection)
    topics = disputes.by_topic()
    left = topics.get(topic, 0) if topic else sum(topics.values())
    return Docket(topic, left=left, decided=decided, topics=topics, **more)


def _subjects(bench: Bench, kept: Sequence[Event]) -> list[Subject]:
    """What decisions, and those that were taken back, are about."""
    with bench.log.reading() as transaction:
        taken_back = transaction.known([event.refers for event in kept if event.refers])
    return [(event.topic, event.document) for event in (*kept, *taken_back.values()) if event.topic]


def _cases(bench: Bench, documents: Documents, lead: str, subjects: Sequence[Subject]) -> dict[str, Any]:
    texts = shown(bench, documents, list(subjects))
    scale = _scale(bench)
    cases = []
    for item in texts["items"]:
        with bench.log.reading() as transaction:
            said = opinions(transaction.connection, item.topic, item.document)
            made = decision(transaction.connection, item.topic, item.document)
        if not said:
            raise DataError(f"nobody has labelled {item.document!r:.100} for topic {item.topic!r:.100}")
        grades = scale or tuple(sorted({event.grade for event in said if event.grade is not None}))
        mine = None if made is None else _decision(made, lead)
        cases.append(Case(item, _by_lot(said), choices(grades, bench.grades()), mine))
    return {"needs": texts["needs"], "cases": cases}


def _scale(bench: Bench) -> tuple[float, ...]:
    """The grades that can be given: the collection's, else those of all rounds; empty where nobody named any."""
    if bench.grades():
        return tuple(bench.grades())
    with bench.log.reading() as transaction:
        return tuple(sorted({grade for plan, _ in plans(transaction.connection) for grade in plan.scale}))


def _by_lot(said: Sequence[Event]) -> list[Opinion]:
    """Labels in an order drawn by lot, with letters for names."""

    def lot(event: Event) -> bytes:
        text = "\0".join((event.topic, event.document, event.assessor))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

    return [
        Opinion(_letter(place), event.grade, event.sure, event.note, event.passage)
        for place, event in enumerate(sorted(said, key=lot))
    ]


def _letter(place: int) -> str:
    """A to Z, then AA, AB …

    >>> _letter(0), _letter(25), _letter(26)
    ('A', 'Z', 'AA')
    """
    return (_letter(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)


def _decision(event: Event, lead: str) -> Decision:
    own = event.assessor == lead
    return Decision(event.topic, event.document, event.grade, event.note, event.id if own else "")


def _event(bench: Bench, row: Mapping[str, Any], base: dict[str, Any]) -> Event:
    said = {name: row[name] for name in ("topic", "document", "grade", "note") if row.get(name) is not None}
    event = Event.of({"kind": "adjudication", "list": "adjudicate", **said}, **base)
    scale = _scale(bench)
    if scale and event.grade not in scale:
        told = ", ".join(f"{each:g}" for each in sorted(scale))
        raise DataError(f"expected a grade of {told}, found {event.grade:g}")
    return event


class _Refusing:
    """Why a decision cannot be kept: nobody labelled the document, or somebody has decided meanwhile."""

    def __init__(self, said: Sequence[Any]) -> None:
        rows = [row for row in said if isinstance(row, Mapping)]
        self.overruling = {row.get("id") for row in rows if row.get("overrule") is True}

    def why(self, transaction: Transaction, event: Event) -> str:
        if event.kind == "withdrawal":
            there = transaction.known([event.refers]).get(event.refers)
            return (
                "" if there is not None and there.kind == "adjudication" else "there is no such decision to take back"
            )
        connection = transaction.connection
        if not opinions(connection, event.topic, event.document):
            return f"nobody has labelled {event.document!r:.100} for topic {event.topic!r:.100}"
        made = decision(connection, event.topic, event.document)
        if made is not None and made.assessor != event.assessor and event.id not in self.overruling:
            return f"somebody has decided it meanwhile: {made.grade:g}"
        return ""
