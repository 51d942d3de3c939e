"""Judging in a round as one assessor sees it: the need, the documents that are theirs, how far the work is, their own labels.

What leaves here holds no rank, no name of a run, no label of anybody else, and no sign of what is gold or asked a second time:
the server looks that up when an answer comes (`workspace.answering`).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from cranfield.answer import Answer, Entries, Table, plain
from cranfield.errors import DataError
from cranfield.judge.own import own_count, own_label, own_labels, own_pace, tally
from cranfield.judge.plan import OPEN, Nothing, find_round, plans
from cranfield.judge.rounds import lease
from cranfield.passages import best_passage, marks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.answer import Layout, Part
    from cranfield.collection import Aspect, Document, Grade
    from cranfield.judge.event import Event
    from cranfield.judge.own import Own, Tally
    from cranfield.judge.plan import Lease, Round
    from cranfield.judge.rounds import Outcome
    from cranfield.workspace.bench import Bench

Documents = Callable[[str], "Document | None"]  # by id
Subject = tuple[str, str]  # topic and document

AHEAD = 3  # documents leased at once; an adaptive round gives one
PAGE = 20  # own labels shown at once, and those that the pace comes from
LONGEST = 60_000  # characters of a text that are sent; the page of the document has all of it
LONGEST_TITLE = 200  # characters, in the list of one's labels
SEARCHED = 1_000_000  # characters in which the best passage is looked for
BEFORE = 10_000  # characters sent before the best passage of a longer text
SHARE = 20  # of so many parts of the time at most one goes into counting
BINARY = (0.0, 1.0)  # the grades where neither the round nor the collection names any


class Choice(NamedTuple):
    """A grade one can give: the key that gives it, what it is called and means."""

    grade: float
    key: str
    label: str = ""
    meaning: str = ""


class Question(NamedTuple):
    """A further aspect."""

    name: str
    question: str
    from_grade: float | None
    grades: Sequence[Choice]


class Item(NamedTuple):
    """A document to judge, or as much of its text as is shown at first."""

    topic: str
    document: str
    title: str
    text: str
    marks: Sequence[tuple[int, int]]  # words of the need, as places in `text`
    opens_at: int  # where the best passage begins in `text`
    start: int  # of `text` in the whole
    length: int  # of the whole
    found: bool  # whether the collection has it


class Label(NamedTuple):
    """What the assessor said of a document."""

    id: str
    topic: str
    document: str
    title: str
    kind: str
    grade: float | None
    sure: bool
    note: str
    passage: str
    time: str


class Progress(NamedTuple):
    """How far the round and the assessor are."""

    done: int
    all: int | None
    mine: int
    pace: float | None = None  # seconds a document, from one's last labels
    left: float | None = None  # seconds until the round is done at that pace, by those at work


class Open(NamedTuple):
    """A round that can be chosen."""

    round: str
    state: str
    done: int
    all: int | None
    mine: int


@dataclass(frozen=True)
class Work(Answer):
    """What `work` and `answering.answer` return."""

    round: str = ""
    state: str = ""
    why: str = ""  # there is nothing to judge
    free_at: str | None = None  # when something may come free
    after: str = ""  # the round to pass first
    rounds: Sequence[Open] = ()
    needs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    guidelines: str = ""
    grades: Sequence[Choice] = ()
    aspects: Sequence[Question] = ()
    items: Sequence[Item] = ()
    progress: Progress | None = None
    labels: Sequence[Label] = ()
    more_labels: bool = False
    label: Label | None = None  # of the one document that was asked for
    outcomes: Sequence[Outcome] = ()

    def content(self, how: Layout) -> Iterable[Part]:
        if self.why:
            yield self.why
        if self.rounds:
            rows = [
                [each.round, each.state, f"{each.done}", "" if each.all is None else f"{each.all}"]
                for each in self.rounds
            ]
            yield Table(["round", "state", "labels", "of"], rows, names=2)
        if self.grades:
            texts = [(f"{each.grade:g}", ": ".join(filter(None, (each.label, each.meaning)))) for each in self.grades]
            yield Entries(texts, lead="grades")
        if self.items:
            yield Table(
                ["topic", "document", "title"], [[each.topic, each.document, each.title] for each in self.items]
            )

    def plain(self, how: Layout) -> dict[str, Any]:
        def row(value: Any) -> Any:
            if isinstance(value, tuple) and hasattr(value, "_asdict"):
                return {name: row(part) for name, part in value._asdict().items()}
            return [row(each) for each in value] if isinstance(value, (list, tuple)) else value

        return {name: plain(row(value)) for name, value in vars(self).items()}


def work(
    bench: Bench,
    documents: Documents,
    assessor: str,
    name: str = "",
    subject: Subject | None = None,
    first: int = 0,
    ahead: int = AHEAD,
) -> Work:
    """What an assessor judges next in a round, or in the only one that is open to them; all rounds where there are several.

    With a subject it is about that document: one of theirs in the round, to be judged again, or any at all without a round.
    """
    if subject is not None and not name:
        return Work(**_terms(bench, None), **_shown(bench, documents, [subject]))
    found = _rounds(bench, assessor)
    if not name:
        opened = [each for each in found if each.state == OPEN]
        if len(opened) != 1:
            return Work(rounds=found, why=_no_round(found, opened))
        name = opened[0].round
    with bench.log.reading() as transaction:
        plan, state = find_round(transaction.connection, name)
    plan.refuse(assessor)
    told: Sequence[Lease] | Nothing = [] if subject is not None else lease(bench.log, assessor, name, ahead)
    subjects = [subject] if subject is not None else subjects_of(told)
    own = _own(bench, documents, plan, assessor, subject, first)
    return Work(
        round=name,
        state=state,
        rounds=found,
        guidelines=bench.guideline(),
        **nothing_of(plan, told),
        **own,
        **_terms(bench, plan),
        **_shown(bench, documents, subjects),
    )


def _no_round(found: Sequence[Open], opened: Sequence[Open]) -> str:
    if opened:
        return f"{len(opened)} rounds are open: choose one"
    paused = ", ".join(f"{each.round} is {each.state}" for each in found)
    return f"no round is open to you: {paused}" if paused else "no round is open to you"


def _rounds(bench: Bench, assessor: str) -> list[Open]:
    """The rounds that somebody may judge in, those that are open first."""
    with bench.log.reading() as transaction:
        connection = transaction.connection
        mine = [(plan, state) for plan, state in plans(connection) if not plan.assessors or assessor in plan.assessors]
        counts = {plan.name: own_count(connection, plan.name, assessor) for plan, _ in mine}
    rows = [(plan, state, counted(bench, plan)) for plan, state in mine]
    ordered = sorted(rows, key=lambda row: row[1] != OPEN)
    return [Open(plan.name, state, found.done, found.all, counts[plan.name]) for plan, state, found in ordered]


def subjects_of(told: Sequence[Lease] | Nothing) -> list[Subject]:
    """The documents that were leased, in order."""
    return [] if isinstance(told, Nothing) else [(each.topic, each.document) for each in told]


def nothing_of(plan: Round, told: Sequence[Lease] | Nothing) -> dict[str, Any]:
    """Why there is nothing."""
    if not isinstance(told, Nothing):
        return {}
    return {"why": told.why, "free_at": told.free_at, "after": plan.after}


# the need


def _terms(bench: Bench, plan: Round | None) -> dict[str, Any]:
    """The grades of a round and what they mean, and what else is asked."""
    known = bench.grades()
    return {
        "grades": choices(plan_scale(bench, plan), known),
        "aspects": [_question(each) for each in bench.aspects()],
    }


def plan_scale(bench: Bench, plan: Round | None) -> tuple[float, ...]:
    """The grades that can be given: the round's, else the collection's, else two."""
    return (plan.scale if plan is not None else ()) or tuple(bench.grades()) or BINARY


def choices(scale: Sequence[float], known: Mapping[float, Grade]) -> list[Choice]:
    """Grades with their keys: the grade itself where it is a digit for all of them, else 1 for the lowest and so on.

    >>> [choice.key for choice in choices([2, 0, 1], {})], [choice.key for choice in choices([-2, 0, 0.5], {})]
    (['0', '1', '2'], ['1', '2', '3'])
    """
    ordered = sorted(scale)
    own = all(grade in range(10) for grade in ordered)
    answer = []
    for place, grade in enumerate(ordered, 1):
        key = f"{grade:g}" if own else f"{place % 10}" if place <= 10 else ""
        meant = known.get(grade)
        answer.append(Choice(grade, key, *((meant.label, meant.meaning) if meant else ("", ""))))
    return answer


def _question(aspect: Aspect) -> Question:
    return Question(aspect.name, aspect.question, aspect.from_grade, choices(tuple(aspect.grades), aspect.grades))


def needs_of(bench: Bench, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """What topics ask for."""
    return {topic: _need(bench, topic) for topic in topics}


def _need(bench: Bench, topic: str) -> dict[str, str]:
    """What a topic asks for."""
    topics = bench.topics()
    columns = {} if topics is None else topics.columns
    title = "" if topics is None else topics.queries.get(topic, "")
    more = {name: columns.get(name, {}).get(topic, "") for name in ("description", "narrative")}
    return {"title": title, **more}


# documents


def _shown(bench: Bench, documents: Documents, subjects: Sequence[Subject]) -> dict[str, Any]:
    """Documents with the needs that they are judged by."""
    needs = needs_of(bench, [topic for topic, _ in subjects])
    return {"needs": needs, "items": [item_of(documents, subject, needs[subject[0]]["title"]) for subject in subjects]}


def shown(
    bench: Bench, documents: Documents, subjects: Sequence[Subject], known: Sequence[Subject] = ()
) -> dict[str, Any]:
    """Documents with their needs, without those that the browser has already."""
    return _shown(bench, documents, [each for each in subjects if each not in known])


def item_of(documents: Documents, subject: Subject, query: str) -> Item:
    """A document, as much of it as is shown at first, opened at its best passage."""
    topic, document = subject
    found = documents(document)
    whole = "" if found is None else found.text
    best, start, spans = (_looked if len(whole) <= LONGEST else _look)(whole, query)
    text = whole[start : start + LONGEST]
    title = "" if found is None else found.title
    return Item(topic, document, title, text, spans, best - start, start, len(whole), found is not None)


def _look(whole: str, query: str) -> tuple[int, int, list[tuple[int, int]]]:
    """Where the best passage begins, what is shown begins, and the words of the query stand in that."""
    best = best_passage(whole[:SEARCHED], query)[0] if query and whole else 0
    start = 0 if len(whole) <= LONGEST else min(max(0, best - BEFORE), len(whole) - LONGEST)
    return best, start, marks(whole[start : start + LONGEST], query) if query else []


_looked = lru_cache(1024)(_look)  # several people judge a document; only short ones are kept


# how far


def _own(
    bench: Bench, documents: Documents, plan: Round, assessor: str, subject: Subject | None, first: int
) -> dict[str, Any]:
    """Somebody's progress and their own labels."""
    with bench.log.reading() as transaction:
        said = own_labels(transaction.connection, plan.name, assessor, PAGE + 1, first)
        about = None if subject is None else own_label(transaction.connection, plan.name, assessor, subject)
        own = own_pace(transaction.connection, plan.name, assessor, PAGE)
    return {
        "progress": progress(bench, plan, assessor, own),
        "labels": [_label(documents, event) for event in said[:PAGE]],
        "more_labels": len(said) > PAGE,
        "label": None if about is None else _label(documents, about),
    }


def _label(documents: Documents, event: Event) -> Label:
    try:
        document = documents(event.document)
    except DataError:
        document = None
    title = "" if document is None else document.title[:LONGEST_TITLE]
    fields = (event.kind, event.grade, event.sure, event.note, event.passage, event.time)
    return Label(event.id, event.topic, event.document, title, *fields)


def progress(bench: Bench, plan: Round, assessor: str, own: Own) -> Progress:
    """How far the round is, how far somebody is in it, and how long the rest takes at their pace."""
    found = counted(bench, plan, {assessor: own.done})
    pace = round(statistics.median(own.seconds), 1) if own.seconds else None
    left = None
    if pace is not None and found.all is not None:
        shared = (found.all - found.done) / max(1, found.at_work)
        left = round(pace * max(0, min(shared, found.documents - own.done)), 1)
    return Progress(found.done, found.all, own.done, pace, left)


def counted(bench: Bench, plan: Round, mine: Mapping[str, int] = MappingProxyType({})) -> Tally:
    """How far a round is: counted a moment ago, and what somebody has added since."""
    known = COUNTED.setdefault(bench, {})
    count, begun = known.get(plan.name), time.monotonic()
    if count is None or begun >= count.until:
        if count is not None:
            known[plan.name] = count._replace(until=begun + FRESH)  # one counts; the others go by this meanwhile
        with bench.log.reading() as transaction:
            found = tally(transaction.connection, plan, transaction.now)
        ended = time.monotonic()
        count = known[plan.name] = Count(ended + max(FRESH, SHARE * (ended - begun)), found, {})
    more = sum(n - count.mine.setdefault(assessor, n) for assessor, n in mine.items())
    done = count.tally.done + more
    return count.tally._replace(done=done if count.tally.all is None else min(done, count.tally.all))


class Count(NamedTuple):
    """A tally, until when it is good, and what people had done when they were first looked at since."""

    until: float
    tally: Tally
    mine: dict[str, int]


FRESH = 1.0  # seconds for which a tally is good
COUNTED: WeakKeyDictionary[Bench, dict[str, Count]] = WeakKeyDictionary()
