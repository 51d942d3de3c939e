"""An event: one statement of an assessor about documents, and the only kind of fact in a log of judgments.

Events are only added. The current labels are a function of the set of events (`judging.current_labels`), whatever their
order. So two logs can be merged, and a browser that was offline can send its events late.
"""

from __future__ import annotations

import json
import re
import secrets
import sys
import time as clock
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

KINDS: dict[str, tuple[str, ...]] = {  # each with the fields that it cannot do without
    "judgment": ("topic", "document", "grade"),
    "preference": ("topic", "document", "other", "grade"),
    "skip": ("topic", "document"),
    "cannot-judge": ("topic", "document"),
    "adjudication": ("topic", "document", "grade"),
    "withdrawal": ("refers",),
    "note": ("topic", "note"),
}
ADJUDICATION = "adjudication"
MODEL = "model"  # its labels never adjudicate
COLLECTION = "collection"  # the judgments in the collection's own file, which no person of this log gave
CLICKS = "clicks"  # judgments from clicks, which count only on request, and only for documents that nobody judged
SOURCES = ("human", MODEL, "import", COLLECTION, CLICKS)
OF_COLLECTION = ("judgment", "withdrawal")  # kinds of events whose source is the collection
OF_CLICKS = ("judgment", "withdrawal")  # kinds of events whose source are clicks
RELEVANCE = "relevance"
LISTS = "result-list"  # the aspect of preferences between the lists of two runs; may go on behind a colon
NUMBERS = ("grade", "seconds")
IDS = ("id", "topic", "document", "other", "assessor", "round", "refers")  # without NUL, as everywhere
LAST_RANK = 2**31 - 1  # a column of whole numbers holds it
SURROGATE = re.compile("[\ud800-\udfff]")
ORIGIN = re.compile(r"(?P<file>.*) (?P<digest>sha256:[0-9a-f]{64}) line \d+", re.DOTALL)
PREFERENCES = {1.0: "document", 0.0: "neither", -1.0: "other"}


Span: TypeAlias = tuple[int, int]
LAST_POSITION = 2**53 - 1  # the largest whole number that is exact in a browser
SPANS = re.compile(r"\d{1,16}-\d{1,16}(?: \d{1,16}-\d{1,16})*")
JOINED = " […] "  # between the texts of several passages


def spans_of(value: Any) -> tuple[Span, ...]:
    """Passages as pairs of start and end in the order of the text; from such pairs, or from the text of `spans_text`.

    >>> spans_of([[40, 52], [3, 9]]), spans_of("3-9 40-52")
    (((3, 9), (40, 52)), ((3, 9), (40, 52)))
    """
    if value == ():  # of nearly every event
        return ()
    if isinstance(value, str):
        if value and not SPANS.fullmatch(value):
            raise DataError(f"expected passages such as 3-9 40-52, found {shortened(value)!r}")
        value = [[int(position) for position in part.split("-")] for part in value.split()]
    spans: list[Any] = list(value) if isinstance(value, (list, tuple)) else [None]
    for span in spans:
        pair = isinstance(span, (list, tuple)) and len(span) == 2 and all(type(each) is int for each in span)
        if not pair or not 0 <= span[0] < span[1] <= LAST_POSITION:
            raise DataError(f"expected passages as pairs of start and end, start first, found {value!r:.60}")
    ordered = sorted((start, end) for start, end in spans)
    for one, other in pairwise(ordered):
        if other[0] < one[1]:
            raise DataError(f"expected passages that do not overlap, found {list(one)} and {list(other)}")
    return tuple(ordered)


def spans_text(spans: Iterable[Span]) -> str:
    """Passages as one text, for tables.

    >>> spans_text([(3, 9), (40, 52)])
    '3-9 40-52'
    """
    return " ".join(f"{start}-{end}" for start, end in spans)


def passage_text(text: str, spans: Iterable[Span]) -> str:
    """The marked passages of a text as one text.

    >>> passage_text("Nothing but tea and water.", [(12, 15), (20, 25)])
    'tea […] water'
    """
    return JOINED.join(text[start:end] for start, end in spans)


def of_lists(aspect: str) -> bool:
    """Whether an aspect is about result lists: `document` and `other` are then runs, and no qrels are made of it."""
    return aspect.partition(":")[0] == LISTS


def new_id() -> str:
    """A new event id; ids of one machine sort in the order of their creation."""
    return f"{clock.time_ns():016x}-{secrets.token_hex(8)}"


def instant(when: str | datetime | None = None) -> str:
    """A time as events store it: UTC, to the microsecond, so that text order is order in time.

    >>> instant("2026-03-01T10:00:00+02:00")
    '2026-03-01T08:00:00.000000Z'
    """
    if when is None:
        when = datetime.now(UTC)
    elif isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError:
            expected = "expected a time such as 2026-03-01T10:00:00Z"
            raise DataError(f"{expected}, found {shortened(when)!r}") from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    try:
        when = when.astimezone(UTC)
    except OverflowError:
        raise DataError(f"expected a time of the years 1 to 9999 in UTC, found {when.isoformat()!r}") from None
    return when.isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One statement: who said what about which document, when, and in which list it was shown.

    A preference of 1 is for `document`, of -1 for `other`, of 0 for neither. `repeat` marks a label that the same person
    gave a second time, for self-agreement; it is never counted with the first.

    >>> Event(topic="q1", document="d7", grade=2, assessor="ann", id="a", time="2026-03-01").line()
    '{"topic": "q1", "document": "d7", "grade": 2, "assessor": "ann", "time": "2026-03-01T00:00:00.000000Z", "id": "a"}'
    """

    topic: str = ""
    document: str = ""
    other: str = ""
    grade: float | None = None
    assessor: str = ""
    time: str = ""
    id: str = ""
    kind: str = "judgment"
    aspect: str = RELEVANCE
    sure: bool = True
    note: str = ""
    passage: str = ""  # the text of the marked passages, or the text that decided
    passages: tuple[Span, ...] = ()  # start and end of each marked passage in the document's text, in code points
    source: str = "human"
    seconds: float | None = None  # on the screen
    list: str = ""  # the list in which it was shown
    rank: int | None = None
    round: str = ""
    guideline: str = ""  # the hash of the assessor's guidelines
    refers: str = ""  # to the event that is withdrawn
    repeat: bool = False
    origin: str = ""  # file, its hash and the line an import came from

    def __post_init__(self) -> None:
        object.__setattr__(self, "passages", spans_of(self.passages))
        problem = _problem(self)
        if problem:
            raise DataError(problem)
        object.__setattr__(self, "id", self.id or new_id())
        object.__setattr__(self, "time", instant(self.time or None))
        for name in NUMBERS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, float(getattr(self, name)) + 0.0)  # no negative zero

    @property
    def subject(self) -> tuple[str, str, str, str]:
        """Topic, document, other document and aspect; the same for a pair in either order."""
        one, other = sorted((self.document, self.other)) if self.other else (self.document, "")
        return self.topic, one, other, self.aspect

    def row(self) -> dict[str, Any]:
        """The fields whose values are not the defaults; whole numbers as integers."""
        return {
            name: int(value) if isinstance(value, float) and value == int(value) else value
            for name, value in ((name, getattr(self, name)) for name in DEFAULTS)
            if value != DEFAULTS[name]
        }

    def line(self) -> str:
        """One line of JSON; text that is not Unicode is escaped."""
        row = self.row()
        odd = any(SURROGATE.search(text) for text in row.values() if isinstance(text, str))
        return json.dumps(row, ensure_ascii=odd)

    @classmethod
    def of(cls, row: Any, **more: Any) -> Event:
        """The event of a JSON object; unknown fields are an error, since they would be lost."""
        if not isinstance(row, dict):
            raise DataError("expected a JSON object with topic, document and grade")
        unknown = row.keys() - DEFAULTS.keys()
        if unknown:
            raise DataError(f"expected fields of {', '.join(DEFAULTS)}, found {shortened(min(unknown))!r}")
        texts = {name: str(row[name]) for name in TEXTS & row.keys() if type(row[name]) is int}
        return cls(**{**more, **row, **texts})

    @classmethod
    def of_before(cls, row: dict[str, Any]) -> Event:
        """The event of a line of a log; adjudications by a model, which earlier versions wrote, are read but never current."""
        if (row.get("kind"), row.get("source")) != (ADJUDICATION, MODEL):
            return cls.of(row)
        event = cls.of({name: value for name, value in row.items() if name != "source"})
        object.__setattr__(event, "source", MODEL)
        return event


DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Event)}
TEXTS = {name for name, value in DEFAULTS.items() if isinstance(value, str)}


def decided_by_a_model(event: Event) -> bool:
    """Whether an event is an adjudication by a model, which never counts."""
    return event.kind == ADJUDICATION and event.source == MODEL


def _problem(event: Event) -> str | None:
    """What is wrong with an event, or None."""
    for name in TEXTS:
        if not isinstance(getattr(event, name), str):
            return f"expected text as {name}, found {getattr(event, name)!r:.60}"
        if name in IDS and "\0" in getattr(event, name):
            return f"expected text without NUL as {name}, found {getattr(event, name)!r:.60}"
    needed = KINDS.get(event.kind)
    if needed is None:
        return f"expected a kind of {', '.join(KINDS)}, found {shortened(event.kind)!r}"
    lacking = [name for name in needed if getattr(event, name) in ("", None)]
    if lacking:
        return f"a {event.kind} needs {', '.join(needed)}; there is no {lacking[0]}"
    if event.source not in SOURCES:
        return f"expected a source of {', '.join(SOURCES)}, found {shortened(event.source)!r}"
    if decided_by_a_model(event):
        return "an adjudication is a person's, found one of a model; a label of a model is a judgment"
    if event.source == COLLECTION and event.kind not in OF_COLLECTION:
        return f"the collection gives judgments of its own, found a {event.kind}"
    if event.source == CLICKS and event.kind not in OF_CLICKS:
        return f"clicks give judgments, found a {event.kind}"
    return _bad_number(event) or _bad_preference(event)


def _bad_number(event: Event) -> str | None:
    for name in NUMBERS:
        value = getattr(event, name)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is not None and not (number and abs(value) <= sys.float_info.max):
            return f"expected a finite number as {name}, found {value!r:.60}"
    if event.seconds is not None and event.seconds < 0:
        return f"expected seconds of 0 or more, found {event.seconds!r}"
    if event.rank is not None and (type(event.rank) is not int or not 1 <= event.rank <= LAST_RANK):
        return f"expected a rank of 1 or more, found {event.rank!r:.60}"
    for name in ("sure", "repeat"):
        if not isinstance(getattr(event, name), bool):
            return f"expected true or false as {name}, found {getattr(event, name)!r:.60}"
    return None


def _bad_preference(event: Event) -> str | None:
    if of_lists(event.aspect) and event.kind not in ("preference", "withdrawal"):
        return f"the aspect {shortened(event.aspect)!r} is for preferences between result lists, found a {event.kind}"
    if event.kind != "preference":
        other = shortened(event.other)
        return f"a {event.kind} is about one document, found the other {other!r}" if event.other else None
    if event.grade not in PREFERENCES:
        return f"expected a preference of 1 (document), -1 (other) or 0 (neither), found {event.grade!r}"
    if event.document == event.other:
        return f"a preference is between two documents, found {shortened(event.document)!r} twice"
    return None


class AddedEvents(NamedTuple):
    """How many events were new, and how many were in the log already."""

    new: int
    repeated: int


def conflict(event: Event, before: Event, server_fields: Collection[str] = ()) -> str:
    """How an event contradicts the event of the same id in the log; empty if both say the same."""
    for field in DEFAULTS:
        had, says = getattr(before, field), getattr(event, field)
        if had != says and field not in server_fields:
            change = f"its {field} was {had!r} and is now {says!r}"
            return f"an event with the id {shortened(event.id)!r} is there and says something else: {change}"
    return ""


def new_events(events: Iterable[Event], log_events: Mapping[str, Event], name: str) -> tuple[list[Event], int]:
    """The events that a log does not hold yet, and how many it does; DataError for an id with other content."""
    new: dict[str, Event] = {}
    repeated = 0
    for event in events:
        before = log_events.get(event.id) or new.get(event.id)
        if before is None:
            new[event.id] = event
            continue
        problem = conflict(event, before)
        if problem:
            _refuse_same_bytes(event, before, name)
            raise DataError(f"{name}: {problem}")
        repeated += 1
    return list(new.values()), repeated


def same_bytes(other: str, whose: str = "") -> str:
    """The message about a file that is a copy of another."""
    before = f", added before as labels of {whose!r}" if whose else ""
    return f"the same bytes as {other}{before}: a copy does not hold a second person's labels"


def _refuse_same_bytes(event: Event, before: Event, name: str) -> None:
    """Refuse a label from a file that was added before for another assessor, or under another name."""
    new, old = (ORIGIN.fullmatch(each.origin) for each in (event, before))
    if new is None or old is None or new["digest"] != old["digest"]:
        return
    if new["file"] != old["file"] or event.assessor != before.assessor:
        raise DataError(f"{name}: {new['file']}: {same_bytes(old['file'], before.assessor)}")


def refuse_unknown_withdrawals(new: Collection[Event], log_events: Mapping[str, Event], name: str) -> None:
    """Refuse a withdrawal of an event that neither the log nor the new events hold, or of another withdrawal."""
    new_by_id = {event.id: event for event in new}
    for event in new:
        if event.kind != "withdrawal":
            continue
        before = log_events.get(event.refers) or new_by_id.get(event.refers)
        if before is None:
            raise DataError(f"{name}: there is no event {shortened(event.refers)!r} to withdraw")
        if before.kind == "withdrawal":
            raise DataError(f"{name}: {shortened(event.refers)!r} is a withdrawal itself; judge again instead")
