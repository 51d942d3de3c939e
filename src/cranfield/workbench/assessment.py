"""A round as one assessor sees it: topics, leased documents, progress, and the assessor's own labels.

The browser gets no rank, no name of a run, no label of anybody else, and no sign of gold or repeated documents: the
server looks these up when a label comes in (`workbench.pages.judge`).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from cranfield.base.card import CardPart, CardTemplate, document_card, document_title
from cranfield.base.collection import Document
from cranfield.base.errors import DataError
from cranfield.base.passages import best_passage, marks
from cranfield.base.results import Answer, Entries, Layout, Part, Table, as_dicts, plain
from cranfield.judging.assessor_view import OwnPace, RoundTally, own_count, own_label, own_labels, own_pace, tally
from cranfield.judging.round_plan import OPEN, Lease, NoLease, Round
from cranfield.judging.rounds import lease
from cranfield.workbench.links import link

if TYPE_CHECKING:
    from cranfield.base.collection import Grade
    from cranfield.inputs.workspace import Bench
    from cranfield.judging.event import Event
    from cranfield.judging.event_intake import EventOutcome
    from cranfield.workbench.routes import PageRequest

Documents = Callable[[str], "Document | None"]  # by id
Subject = tuple[str, str]  # topic and document

AHEAD = 3  # documents leased at once; an adaptive round leases one
PAGE = 20  # own labels on a page, and those from which the pace is computed
LONGEST = 60_000  # characters of a text that are sent; the page of the document has all of them
BEFORE = 10_000  # characters sent before the best passage of a longer text
SHARE = 20  # counting takes at most 1/20 of the time
BINARY = (0.0, 1.0)  # the grades if neither the round nor the collection names any


class GradeOption(NamedTuple):
    """A grade to choose: its key on the keyboard, its label and its meaning."""

    grade: float
    key: str
    label: str = ""
    meaning: str = ""


class AspectQuestion(NamedTuple):
    """A question on a further aspect; `from_grade` is the lowest grade for which it is asked."""

    name: str
    question: str
    from_grade: float | None
    grades: Sequence[GradeOption]


class DocumentView(NamedTuple):
    """A document to judge, with the part of its text that is shown first."""

    topic: str
    document: str
    title: str
    text: str
    marks: Sequence[tuple[int, int]]  # spans of query words in `text`
    opens_at: int  # start of the best passage in `text`
    start: int  # of `text` in the whole document
    length: int  # of the whole document
    found: bool  # whether the collection has the document
    above: Sequence[CardPart] = ()  # the fields of the card above the text
    below: Sequence[CardPart] = ()
    text_label: str = ""


class OwnLabel(NamedTuple):
    """A label of the assessor."""

    id: str
    topic: str
    document: str
    title: str
    kind: str
    grade: float | None
    sure: bool
    note: str
    passage: str
    passages: Sequence[tuple[int, int]]  # spans in the whole text
    time: str


class RoundProgress(NamedTuple):
    """The progress of a round and of one assessor in it."""

    done: int
    all: int | None
    mine: int
    pace: float | None = None  # seconds per document, from one's last labels
    left: float | None = None  # seconds until the round is done at that pace, with the people at work


class RoundChoice(NamedTuple):
    """A round of the assessor, with its progress."""

    round: str
    state: str
    done: int
    all: int | None
    mine: int


class ScriptReply(Answer):
    """A reply to the script of a page, which gets every field."""

    def plain(self, how: Layout) -> dict[str, Any]:
        return {name: plain(as_dicts(value)) for name, value in vars(self).items()}


@dataclass(frozen=True)
class JudgingWork(ScriptReply):
    """The reply to an assessor: documents to judge, progress, own labels, and outcomes of submitted labels."""

    round: str = ""
    state: str = ""
    why: str = ""  # why there is nothing to judge
    free_at: str | None = None  # when the next lease ends
    after: str = ""  # the round that must be passed first
    choose: bool = False  # whether people choose their topics
    rounds: Sequence[RoundChoice] = ()
    needs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    guidelines: str = ""
    grades: Sequence[GradeOption] = ()
    aspects: Sequence[AspectQuestion] = ()
    items: Sequence[DocumentView] = ()
    progress: RoundProgress | None = None
    labels: Sequence[OwnLabel] = ()
    more_labels: bool = False
    label: OwnLabel | None = None  # the own label of the requested document
    outcomes: Sequence[EventOutcome] = ()

    def content(self, how: Layout) -> Iterable[Part]:
        if self.why:
            yield self.why
        if self.rounds:
            counts = [(each, "" if each.all is None else f"{each.all}") for each in self.rounds]
            rows = [[each.round, each.state, f"{each.done}", most] for each, most in counts]
            yield Table(["round", "state", "labels", "of"], rows, names=2)
        if self.grades:
            texts = [(f"{each.grade:g}", ": ".join(filter(None, (each.label, each.meaning)))) for each in self.grades]
            yield Entries(texts, lead="grades")
        if self.items:
            rows = [[each.topic, each.document, each.title] for each in self.items]
            yield Table(["topic", "document", "title"], rows)


def work(request: PageRequest, name: str, subject: Subject | None, first: int, ahead: int) -> JudgingWork:
    """The next documents of an assessor in a round, or in the only open one; a list of rounds if several are open.

    With a subject, it is that document: one of the assessor's in the round, to judge again, or any document without a round.
    """
    bench, documents, assessor = request.site.bench, request.site.document, request.name
    if subject is not None and not name:
        return JudgingWork(**terms(bench, None), **document_views(bench, documents, [subject]))
    rounds = rounds_of(bench, assessor)
    if not name:
        open_rounds = [each for each in rounds if each.state == OPEN]
        if len(open_rounds) != 1:
            return JudgingWork(rounds=rounds, why=_no_round(rounds, open_rounds))
        name = open_rounds[0].round
    with bench.log.reading() as transaction:
        plan, state = transaction.find_round(name)
    plan.refuse(assessor)
    leases: Sequence[Lease] | NoLease = [] if subject is not None else lease(bench.log, assessor, name, ahead)
    subjects = [subject] if subject is not None else subjects_of(leases)
    return JudgingWork(
        round=name,
        state=state,
        choose=plan.choose_topics,
        rounds=rounds,
        guidelines=bench.guideline(),
        **reason_for_nothing(plan, leases),
        **_own(bench, documents, plan, assessor, subject, first),
        **terms(bench, plan),
        **document_views(bench, documents, subjects),
    )


def _no_round(rounds: Sequence[RoundChoice], open_rounds: Sequence[RoundChoice]) -> str:
    if open_rounds:
        return f"{len(open_rounds)} rounds are open: choose one"
    paused = ", ".join(f"{each.round} is {each.state}" for each in rounds)
    return f"no round is open to you: {paused}" if paused else "no round is open to you"


def rounds_of(bench: Bench, assessor: str) -> list[RoundChoice]:
    """The rounds of an assessor, open ones first."""
    with bench.log.reading() as transaction:
        rounds = transaction.all_rounds()
        mine = [each for each in rounds if not each[0].assessors or assessor in each[0].assessors]
        counts = {plan.name: own_count(transaction, plan.name, assessor) for plan, _ in mine}
    rows = [(plan, state, cached_tally(bench, plan)) for plan, state in mine]
    ordered = sorted(rows, key=lambda row: row[1] != OPEN)
    return [RoundChoice(plan.name, state, count.done, count.all, counts[plan.name]) for plan, state, count in ordered]


def subjects_of(leases: Sequence[Lease] | NoLease) -> list[Subject]:
    """Topic and document of each lease, in order."""
    return [] if isinstance(leases, NoLease) else [(each.topic, each.document) for each in leases]


def reason_for_nothing(plan: Round, leases: Sequence[Lease] | NoLease) -> dict[str, Any]:
    """The fields of `JudgingWork` that say why there is nothing to judge; empty if there are leases."""
    if not isinstance(leases, NoLease):
        return {}
    return {"why": leases.why, "free_at": leases.free_at, "after": plan.after}


# topics and grades


def terms(bench: Bench, plan: Round | None) -> dict[str, Any]:
    """The grades of a round with their meanings, and the questions on further aspects."""
    return {
        "grades": grade_options(plan_scale(bench, plan), bench.grades()),
        "aspects": [
            AspectQuestion(each.name, each.question, each.from_grade, grade_options(tuple(each.grades), each.grades))
            for each in bench.aspects()
        ],
    }


def plan_scale(bench: Bench, plan: Round | None) -> tuple[float, ...]:
    """The grades to choose from: those of the round, else those of the collection, else 0 and 1."""
    return (plan.scale if plan is not None else ()) or tuple(bench.grades()) or BINARY


def grade_options(scale: Sequence[float], grades: Mapping[float, Grade]) -> list[GradeOption]:
    """Grades with their keys: the grades themselves if all are digits, else 1 for the lowest, 2 for the next …

    >>> [each.key for each in grade_options([2, 0, 1], {})], [each.key for each in grade_options([-2, 0, 0.5], {})]
    (['0', '1', '2'], ['1', '2', '3'])
    """
    ordered = sorted(scale)
    own = all(grade in range(10) for grade in ordered)
    answer = []
    for place, grade in enumerate(ordered, 1):
        key = f"{grade:g}" if own else f"{place % 10}" if place <= 10 else ""
        about = grades.get(grade)
        answer.append(GradeOption(grade, key, *((about.label, about.meaning) if about else ("", ""))))
    return answer


def needs_of(bench: Bench, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """Title, description and narrative of topics; empty texts if they are unknown."""
    table = bench.topics()
    columns = {} if table is None else table.columns
    texts = {"title": {} if table is None else table.queries}
    texts |= {name: columns.get(name, {}) for name in ("description", "narrative")}
    return {topic: {name: column.get(topic, "") for name, column in texts.items()} for topic in topics}


# documents


def document_views(bench: Bench, documents: Documents, subjects: Sequence[Subject]) -> dict[str, Any]:
    """The fields of `JudgingWork` that hold documents and their topics."""
    needs = needs_of(bench, [topic for topic, _ in subjects])
    card = bench.card()
    views = [document_view(documents, subject, needs[subject[0]]["title"], card) for subject in subjects]
    return {"needs": needs, "items": views}


def document_view(
    documents: Documents, subject: Subject, query: str, template: CardTemplate | None = None
) -> DocumentView:
    """A document as an assessor sees it: its card, and its text opened at the best passage."""
    topic, document = subject
    content = documents(document)
    found, content = content is not None, content or Document(document)
    card = document_card(template, content, partial(image_link, document))
    best, start, spans = (_cached_passage if len(content.text) <= LONGEST else _passage)(content.text, query)
    text = content.text[start : start + LONGEST]
    spot = (spans, best - start, start, len(content.text), found)
    return DocumentView(topic, document, card.title, text, *spot, card.above, card.below, card.text_label)


def image_hosts(bench: Bench) -> Sequence[str]:
    """The hosts whose images a page with cards may load."""
    card = bench.card()
    return () if card is None else card.image_hosts


def image_link(document: str, field: str, number: int) -> str:
    """The address of an image of the workspace that a document names."""
    return link("/image", id=document, field=field, n=number)


def _passage(whole: str, query: str) -> tuple[int, int, list[tuple[int, int]]]:
    """Start of the best passage, start of the part to show, and the spans of query words in that part."""
    best = best_passage(whole, query)[0] if query and whole else 0
    start = 0 if len(whole) <= LONGEST else min(max(0, best - BEFORE), len(whole) - LONGEST)
    return best, start, marks(whole[start : start + LONGEST], query) if query else []


_cached_passage = lru_cache(1024)(_passage)  # several people judge a document; only short ones are cached


# progress


def _own(
    bench: Bench, documents: Documents, plan: Round, assessor: str, subject: Subject | None, first: int
) -> dict[str, Any]:
    """The fields of `JudgingWork` that hold the assessor's progress and labels."""
    with bench.log.reading() as transaction:
        labels = own_labels(transaction, plan.name, assessor, PAGE + 1, first)
        about = None if subject is None else own_label(transaction, plan.name, assessor, subject)
        own = own_pace(transaction, plan.name, assessor, PAGE)
    card = bench.card()
    return {
        "progress": round_progress(bench, plan, assessor, own),
        "labels": [own_label_view(documents, event, card) for event in labels[:PAGE]],
        "more_labels": len(labels) > PAGE,
        "label": None if about is None else own_label_view(documents, about, card),
    }


def own_label_view(documents: Documents, event: Event, template: CardTemplate | None) -> OwnLabel:
    """A label of the assessor with the title of its document."""
    try:
        document = documents(event.document)
    except DataError:
        document = None
    title = "" if document is None else document_title(template, document)
    fields = (event.kind, event.grade, event.sure, event.note, event.passage, event.passages, event.time)
    return OwnLabel(event.id, event.topic, event.document, title, *fields)


def round_progress(bench: Bench, plan: Round, assessor: str, own: OwnPace) -> RoundProgress:
    """The progress of a round and of an assessor in it, with the time that is left at this assessor's pace."""
    count = cached_tally(bench, plan, {assessor: own.done})
    pace = round(statistics.median(own.seconds), 1) if own.seconds else None
    left = None
    if pace is not None and count.all is not None:
        shared = (count.all - count.done) / max(1, count.at_work)
        left = round(pace * max(0, min(shared, count.documents - own.done)), 1)
    return RoundProgress(count.done, count.all, own.done, pace, left)


def cached_tally(bench: Bench, plan: Round, mine: Mapping[str, int] = MappingProxyType({})) -> RoundTally:
    """The progress of a round: the latest count, plus the labels that the assessor has added since."""
    counts = TALLIES.setdefault(bench, {})
    count, begun = counts.get(plan.name), time.monotonic()
    if count is None or begun >= count.until:
        if count is not None:
            counts[plan.name] = count._replace(until=begun + FRESH)  # other threads use it while this one counts
        with bench.log.reading() as transaction:
            fresh = tally(transaction, plan)
        ended = time.monotonic()
        count = counts[plan.name] = CachedTally(ended + max(FRESH, SHARE * (ended - begun)), fresh, {})
    more = sum(n - count.mine.setdefault(assessor, n) for assessor, n in mine.items())
    done = count.tally.done + more
    return count.tally._replace(done=done if count.tally.all is None else min(done, count.tally.all))


class CachedTally(NamedTuple):
    """A tally, until when it is valid, and the number of labels that each person had when it was counted."""

    until: float
    tally: RoundTally
    mine: dict[str, int]


FRESH = 1.0  # seconds for which a tally is valid
TALLIES: WeakKeyDictionary[Bench, dict[str, CachedTally]] = WeakKeyDictionary()
