"""Inter-annotator agreement, and adjudication: the lead decides where people differ, the largest difference first.

For adjudication, labels are anonymous: people are A, B, C … in a random order per document, which stays the same when the
page is loaded again. The page holds no name, no id and no time of a label.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from cranfield.base.errors import DataError
from cranfield.base.results import Layout, Part, Table
from cranfield.judging.agreement import VIEWS
from cranfield.judging.disagreements import Disputes, decided_count, decision, last_decisions, opinions
from cranfield.judging.event import Event, new_id
from cranfield.reports.tables import letter
from cranfield.workbench.access_control import LEAD
from cranfield.workbench.assessment import (
    DocumentView,
    GradeOption,
    ScriptReply,
    Subject,
    document_views,
    grade_options,
    image_hosts,
)
from cranfield.workbench.browser_events import refuse_first, refuse_withdrawal, script_events, subjects_in, submit_rows
from cranfield.workbench.job_answers import answer_page, ask
from cranfield.workbench.keyboard_shortcuts import keys_on
from cranfield.workbench.links import link
from cranfield.workbench.pages.guidelines import current_hash
from cranfield.workbench.rendering import marked
from cranfield.workbench.routes import ActionResult, Page, PageRequest, action, page

if TYPE_CHECKING:
    from cranfield.inputs.workspace import Bench
    from cranfield.judging.event_intake import EventOutcome, Refusal
    from cranfield.judging.log import Transaction


AHEAD = 2  # documents sent at once
PATIENCE = 0.3  # seconds that a page waits for the list of disputes
MEASURE = "nDCG@10"  # ranks the runs by the labels of each person
LAST = 10  # own decisions in the list
ROW_FIELDS = ("topic", "document", "grade", "note", "overrule")
DISPUTES: WeakKeyDictionary[Bench, Disputes] = WeakKeyDictionary()


class AnonymousLabel(NamedTuple):
    """The label of one person, without the name."""

    who: str  # A, B, C …
    grade: float | None  # None: cannot judge
    sure: bool
    note: str
    passage: str


class LeadDecision(NamedTuple):
    """A decision on a document; `id` is filled in if it is one's own."""

    topic: str
    document: str
    grade: float | None
    note: str
    id: str = ""


class DisputedDocument(NamedTuple):
    """A document on which people differ, with their labels and the grades to choose from."""

    item: DocumentView
    opinions: Sequence[AnonymousLabel]
    grades: Sequence[GradeOption]
    decision: LeadDecision | None = None


@dataclass(frozen=True)
class AdjudicationList(ScriptReply):
    """The next documents to decide about, and how many are left."""

    topic: str = ""  # only this topic; empty: all
    ready: bool = True  # False while the list of disputes is computed
    left: int = 0
    decided: int = 0
    topics: Mapping[str, int] = field(default_factory=dict)
    needs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    cases: Sequence[DisputedDocument] = ()
    last: Sequence[LeadDecision] = ()
    outcomes: Sequence[EventOutcome] = ()

    def content(self, how: Layout) -> Iterable[Part]:
        yield f"{self.left:,} documents to decide, {self.decided:,} decided"
        if self.topics:
            yield Table(["topic", "documents"], [[topic, f"{count:,}"] for topic, count in self.topics.items()])

    def records(self, how: Layout) -> Iterable[tuple[Any, ...]]:
        yield "topic", "documents"
        yield from self.topics.items()


def next_disputes(request: PageRequest, topic: str, subject: Subject | None = None) -> AdjudicationList:
    """The next documents to decide about, or the one that `subject` names."""
    bench = request.site.bench
    disputes = DISPUTES.setdefault(bench, Disputes(bench.log))
    if not disputes.ready(PATIENCE):
        return AdjudicationList(topic, ready=False)
    disputes.refresh()
    with bench.log.reading() as transaction:
        last = [_decision(event, request.name) for event in last_decisions(transaction, request.name, LAST)]
    subjects = [subject] if subject is not None else [each.subject for each in disputes.open(topic, n=AHEAD)]
    return _list(bench, disputes, topic, last=last, **_cases(request, subjects))


def submit_decisions(
    request: PageRequest, rows: Sequence[Any], topic: str, n: int, have: Sequence[Subject] = ()
) -> AdjudicationList:
    """Add decisions or withdraw them; return the outcome of each and the next documents."""
    bench, objects = request.site.bench, [row for row in rows if isinstance(row, Mapping)]
    refuse = partial(_refusal, {row.get("id") for row in objects if row.get("overrule") is True})
    known = request.site.known_ids()
    outcomes, events = submit_rows(bench.log, request.name, rows, ROW_FIELDS, partial(_event, bench), refuse, known)
    disputes = DISPUTES.setdefault(bench, Disputes(bench.log))
    if not disputes.ready(PATIENCE):
        return AdjudicationList(topic, ready=False, outcomes=outcomes)
    disputes.refresh(_subjects(bench, events))
    subjects = [each.subject for each in disputes.open(topic, without=have, n=n)]
    return _list(bench, disputes, topic, outcomes=outcomes, **_cases(request, subjects))


def _list(bench: Bench, disputes: Disputes, topic: str, **more: Any) -> AdjudicationList:
    with bench.log.reading() as transaction:
        decided = decided_count(transaction)
    topics = disputes.by_topic()
    left = topics.get(topic, 0) if topic else sum(topics.values())
    return AdjudicationList(topic, left=left, decided=decided, topics=topics, **more)


def _subjects(bench: Bench, events: Sequence[Event]) -> list[Subject]:
    """The documents of decisions, and of decisions that were withdrawn."""
    with bench.log.reading() as transaction:
        withdrawn = transaction.events_by_id([event.refers for event in events if event.refers])
    return [(event.topic, event.document) for event in (*events, *withdrawn.values()) if event.topic]


def _cases(request: PageRequest, subjects: Sequence[Subject]) -> dict[str, Any]:
    bench = request.site.bench
    views, scale = document_views(bench, request.site.document, subjects), _scale(bench)
    cases = []
    for item in views["items"]:
        with bench.log.reading() as transaction:
            labels = opinions(transaction, item.topic, item.document)
            current = decision(transaction, item.topic, item.document)
        if not labels:
            raise DataError(f"nobody has labelled {item.document!r:.100} for topic {item.topic!r:.100}")
        grades = scale or tuple(sorted({event.grade for event in labels if event.grade is not None}))
        by_lead = None if current is None else _decision(current, request.name)
        cases.append(DisputedDocument(item, _anonymous(labels), grade_options(grades, bench.grades()), by_lead))
    return {"needs": views["needs"], "cases": cases}


def _scale(bench: Bench) -> tuple[float, ...]:
    """The grades of the collection, else those of all rounds; empty if neither names any."""
    if bench.grades():
        return tuple(bench.grades())
    with bench.log.reading() as transaction:
        return tuple(sorted({grade for plan, _ in transaction.all_rounds() for grade in plan.scale}))


def _anonymous(labels: Sequence[Event]) -> list[AnonymousLabel]:
    """Labels in a random but fixed order, with letters for names."""

    def order(event: Event) -> bytes:
        text = "\0".join((event.topic, event.document, event.assessor))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

    return [
        AnonymousLabel(letter(place).upper(), event.grade, event.sure, event.note, event.passage)
        for place, event in enumerate(sorted(labels, key=order))
    ]


def _decision(event: Event, lead: str) -> LeadDecision:
    own = event.assessor == lead
    return LeadDecision(event.topic, event.document, event.grade, event.note, event.id if own else "")


def _event(bench: Bench, row: Mapping[str, Any], base: dict[str, Any]) -> Event:
    fields = {name: row[name] for name in ("topic", "document", "grade", "note") if row.get(name) is not None}
    fields |= {"kind": "adjudication", "list": "adjudicate", "guideline": current_hash(bench)}
    event = Event.of(fields, **base)
    scale = _scale(bench)
    if scale and event.grade not in scale:
        grades = ", ".join(f"{each:g}" for each in sorted(scale))
        raise DataError(f"expected a grade of {grades}, found {event.grade:g}")
    return event


def _refusal(overruling: Collection[Any], transaction: Transaction, event: Event) -> Refusal | None:
    """Why the log refuses a decision: nobody labelled the document, or somebody else has decided meanwhile; else None."""
    if event.kind == "withdrawal":
        return refuse_withdrawal(transaction, event, "adjudication", "decision")
    if not opinions(transaction, event.topic, event.document):
        return "event", f"nobody has labelled {event.document!r:.100} for topic {event.topic!r:.100}"
    current = decision(transaction, event.topic, event.document)
    if current is not None and current.assessor != event.assessor and event.id not in overruling:
        return "event", f"someone has decided it meanwhile: {current.grade:g}"
    return None


@page("/adjudicate", LEAD, "next_disputes", table=True, menu=("decide", 20, "Adjudicate"))
def adjudicate(request: PageRequest) -> Page:
    """The next document on which people differ: its topic, its text and the labels, without names."""
    topic, document = request.text("topic"), request.text("document")
    subject = (topic, document) if topic and document else None
    answer = next_disputes(request, "" if subject else topic, subject)
    scripts = ("adjudicate.js",) if answer.ready else ("live.js",)
    values = answer.to_dict() | {"state": "ready" if answer.ready else "running"}
    status = 200 if answer.ready else 202
    context = _context(request, answer, subject is not None)
    table, hosts = answer.to_csv(spreadsheet=True), image_hosts(request.site.bench)
    return Page("Adjudicate", "adjudicate.html", values, context, table, scripts, status, hosts)


def _context(request: PageRequest, answer: AdjudicationList, alone: bool) -> dict[str, Any]:
    """The template values: the first document as HTML, and the settings of the script."""
    case = answer.cases[0] if answer.cases else None
    keys, for_script = keys_on(request.site.accounts.settings(request.name), "adjudicate")
    text = "" if case is None else marked(case.item.text, case.item.marks)
    script = {"topic": answer.topic, **for_script, "ahead": AHEAD, "alone": alone}
    need = {} if case is None else answer.needs[case.item.topic]
    queries = {topic: request.site.query_of(topic) for topic in answer.topics}
    more = {"case": case, "text": text, "need": need, "script": script, "keys": keys, "new_id": new_id()}
    return {**more, "queries": queries, "alone": alone}


@action("/adjudicate", LEAD, "submit_decisions")
def post_decisions(request: PageRequest) -> ActionResult:
    """Add decisions or withdraw them, and return the next documents; each is kept, repeated or refused."""
    topic = request.form_field("of")
    if "events" in request.form:
        rows, have, n = script_events(request, AHEAD)
        answer = submit_decisions(request, rows, topic, n, subjects_in(have))
    else:
        answer = submit_decisions(request, [_form_row(request)], topic, 0)
        refuse_first(answer.outcomes, "Go back to see the document.")
    values = {name: value for name, value in answer.to_dict().items() if name not in ("last", "ready")}
    return ActionResult(link("/adjudicate", topic=topic), values)


def _form_row(request: PageRequest) -> dict[str, Any]:
    """The decision or withdrawal of a form without scripts."""
    key = request.form_field("id") or new_id()
    if request.form_field("refers"):
        return {"id": key, "kind": "withdrawal", "refers": request.form_field("refers")}
    about = {name: request.form_field(name) for name in ("topic", "document", "note") if request.form_field(name)}
    overrule = {"overrule": True} if request.form_field("overrule") else {}
    return {"id": key, **about, "grade": request.number("grade"), **overrule}


@page("/agreement", LEAD, "jobs.ask agree", table=True, menu=("decide", 10, "Agreement"))
def agreement(request: PageRequest) -> Page:
    """Inter-annotator agreement with intervals, confusions, drift over time, and how each person's labels rank runs."""
    round, by, measure = request.text("round"), request.text("by"), request.text("measure", MEASURE)
    job = ask(request, "agree", round=round, by=by, measures=measure)
    values = {"round": round, "by": by, "measure": measure}
    with request.site.bench.log.reading() as transaction:
        rounds = [plan.name for plan, _ in transaction.all_rounds()]
    context = {"rounds": rounds, "views": VIEWS, "apart": job.answer["contradictions"] if job.answer else 0}
    return answer_page(request, "Agreement", "agreement.html", values, context, job, ("live.js",))
