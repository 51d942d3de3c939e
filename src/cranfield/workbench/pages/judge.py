"""The page on which an assessor judges: one document after the other, with its topic in view.

A browser sends little: id, topic, document, grade, and so on. The server adds the assessor, the position of the document in the
round, whether it is a repeat, and the guidelines. One request adds labels and returns the next documents.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.judging.assessor_view import OwnPace, own_assignments, own_pace
from cranfield.judging.event import RELEVANCE, Event, new_id, passage_text
from cranfield.judging.rounds import Leaseholder, answer_within, lease, topic_choices
from cranfield.workbench.access_control import ASSESSOR
from cranfield.workbench.assessment import (
    AHEAD,
    PAGE,
    JudgingWork,
    document_views,
    image_hosts,
    needs_of,
    plan_scale,
    reason_for_nothing,
    round_progress,
    subjects_of,
    work,
)
from cranfield.workbench.browser_events import (
    LONGEST,
    MOST,
    in_order,
    read_rows,
    refuse_first,
    script_events,
    subjects_in,
    submit_alone,
)
from cranfield.workbench.keyboard_shortcuts import keys_on
from cranfield.workbench.links import link
from cranfield.workbench.pages.guidelines import guidelines_shown, with_guidelines
from cranfield.workbench.rendering import marked_around
from cranfield.workbench.routes import NOTHING, ActionResult, Page, PageRequest, action, page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.inputs.workspace import Bench
    from cranfield.judging.event_intake import EventOutcome
    from cranfield.judging.log import Transaction
    from cranfield.judging.round_plan import Lease, NoLease, Round
    from cranfield.workbench.assessment import Subject


KINDS = ("judgment", "cannot-judge", "skip", "note", "withdrawal")
EVENT_FIELDS = (
    *("id", "kind", "topic", "document", "grade", "sure", "note", "passage", "passages", "seconds", "aspect", "refers"),
    "guideline",
)
ROW_FIELDS = (*(name for name in EVENT_FIELDS if name not in ("id", "kind", "refers", "seconds")), "changes", "time")
MOST_PASSAGES = 100  # of a label
SERVER_FIELDS = ("time", "repeat", "list", "rank", "guideline")  # `changes` in a row is the id of the label before


def submit_labels(
    request: PageRequest, name: str, rows: Sequence[Any], n: int, have: Sequence[Subject] = ()
) -> JudgingWork:
    """Add the labels of an assessor, in a round or outside any; return the outcome of each and the next documents.

    A refused label does not affect the others. `have` are documents whose texts the browser has already.
    """
    bench, assessor, known = request.site.bench, request.name, request.site.known_ids()
    rows = with_guidelines(bench, rows)
    texts = texts_with_passages(request, rows)
    if not name:
        events, outcomes = read_rows(rows, ROW_FIELDS, partial(_event, bench, assessor, texts, None), known)
        outcomes |= {event.id: submit_alone(bench.log, event, SERVER_FIELDS) for event in events}
        return JudgingWork(outcomes=in_order(rows, outcomes))

    def work(
        transaction: Transaction,
    ) -> tuple[Round, str, list[Event], dict[str, EventOutcome], list[Lease] | NoLease, OwnPace]:
        desk = Leaseholder(transaction, name, assessor)
        events, refused = read_rows(rows, ROW_FIELDS, partial(_event, bench, assessor, texts, desk), known)
        outcomes, leases = answer_within(desk, events, min(max(n, 0), AHEAD), bench.log.name, SERVER_FIELDS)
        own = own_pace(transaction, name, assessor, PAGE)
        return desk.plan, desk.state, events, refused | {each.id: each for each in outcomes}, leases, own

    plan, state, labelled, outcomes, leases, own = bench.log.write(work)
    request.site.trainer.want(plan, {event.topic for event in labelled})
    leases = leases if n > 0 else []
    return JudgingWork(
        round=name,
        state=state,
        outcomes=in_order(rows, outcomes),
        progress=round_progress(bench, plan, assessor, own),
        **reason_for_nothing(plan, leases),
        **document_views(bench, request.site.document, [each for each in subjects_of(leases) if each not in have]),
    )


def texts_with_passages(request: PageRequest, rows: Sequence[Any]) -> dict[str, str]:
    """The texts of the documents in which rows mark passages; read before the log is locked."""
    marked = [row.get("document") for row in rows if isinstance(row, dict) and row.get("passages")]
    documents = [request.site.document(each) for each in dict.fromkeys(marked[:MOST]) if isinstance(each, str)]
    return {each.id: each.text for each in documents if each is not None}


def with_passage_text(event: Event, texts: Mapping[str, str]) -> Event:
    """The event with the text of its passages; DataError if they are not in the document."""
    if not event.passages:
        return event
    text = texts.get(event.document, "")
    if len(event.passages) > MOST_PASSAGES:
        raise DataError(f"expected at most {MOST_PASSAGES} passages, found {len(event.passages)}")
    if event.passages[-1][1] > len(text):
        raise DataError(f"expected passages within {len(text):,} characters, found {list(event.passages[-1])}")
    return replace(event, passage=passage_text(text, event.passages)[: LONGEST["passage"]])


def _event(
    bench: Bench,
    assessor: str,
    texts: Mapping[str, str],
    desk: Leaseholder | None,
    row: Mapping[str, Any],
    time: str,
) -> Event:
    """The event of a row; `desk` is that of the round, None outside any round."""
    if row.get("kind", "judgment") not in KINDS:
        raise DataError(f"expected a kind of {', '.join(KINDS)}, found {shortened(str(row['kind']))!r}")
    fields = {name: row[name] for name in EVENT_FIELDS if row.get(name) is not None}
    event = with_passage_text(Event.of(fields, assessor=assessor, time=time), texts)
    if event.kind == "withdrawal":
        return event
    plan = None if desk is None else desk.plan
    refuse_grade(bench, event, plan)
    if desk is None or plan is None:
        return event
    assigned = _assignment(desk, event, row.get("changes"))
    position = {} if assigned is None else {"rank": assigned.item + 1, "repeat": bool(assigned.repeat)}
    guideline = event.guideline or plan.guideline
    return replace(event, round=plan.name, list=f"round {plan.name}", guideline=guideline, **position)


def refuse_grade(bench: Bench, event: Event, plan: Round | None) -> None:
    """Raise DataError for an unknown aspect or grade; the round itself checks its scale."""
    if event.grade is None:
        return
    scale = plan_scale(bench, plan)
    if event.aspect != RELEVANCE:
        grades = {each.name: each.grades for each in bench.aspects()}
        if event.aspect not in grades:
            raise DataError(f"there is no aspect {shortened(event.aspect)!r} to judge here")
        scale = tuple(grades[event.aspect])
    if event.grade not in scale:
        raise DataError(f"expected a grade of {', '.join(f'{each:g}' for each in scale)}, found {event.grade:g}")


def _assignment(desk: Leaseholder, event: Event, changes: Any) -> Any:
    """The assessor's assignment of a document: that of the changed label, else one they hold, else an answered one."""
    subject = event.topic, event.document
    leased = [row for row in desk.mine() if (row.topic, row.document) == subject] if changes is None else []
    if leased:
        return min(leased, key=lambda row: row.repeat)
    assignments = own_assignments(desk.transaction, desk.plan.name, desk.assessor, subject)
    order = {"leased": 1, "done": 2, "extra": 2, "skipped": 2}
    return min(
        assignments, key=lambda each: (each.event != changes, order.get(each.state, 3), each.repeat), default=None
    )


LAST_LABEL = 10**6  # the largest offset into the list of one's labels


@page("/judge", ASSESSOR, "assessment.work", menu=("judge", 10, "Judge"), reveals=NOTHING)
def judge(request: PageRequest) -> Page:
    """The next document to judge with its topic, the progress, and one's own labels; leases up to three documents."""
    topic, document = request.text("topic"), request.text("document")
    subject = (topic, document) if topic and document else None
    first, ahead = request.whole("labels", 0, most=LAST_LABEL), request.whole("ahead", AHEAD, most=AHEAD)
    answer = work(request, request.text("round"), subject, first, ahead)
    title = "Judge" if not answer.items else answer.items[0].title or answer.items[0].document
    scripts = ("judge.js", "guidelines.js") if answer.round or answer.items else ("waiting.js",)
    hosts = image_hosts(request.site.bench)
    context = _context(request, answer, first, subject)
    return Page(title, "judge.html", answer.to_dict(), context, scripts=scripts, image_hosts=hosts)


def _context(request: PageRequest, answer: JudgingWork, first: int, subject: tuple[str, str] | None) -> dict[str, Any]:
    """The template values: the first document as HTML, and the settings of the script."""
    item = answer.items[0] if answer.items else None
    keys, for_script = keys_on(request.site.accounts.settings(request.name), "judge")
    script = {
        "round": answer.round,
        "grades": [each._asdict() for each in answer.grades],
        "aspects": [{**each._asdict(), "grades": [one._asdict() for one in each.grades]} for each in answer.aspects],
        **for_script,
        "at": None if item is None else [item.topic, item.document],
        "alone": subject is not None,
        "ahead": AHEAD,
        "passages": MOST_PASSAGES,
    }
    before, after = ("", "") if item is None else marked_around(item.text, item.marks, item.opens_at)
    return {
        "item": item,
        "text_before": before,
        "text_after": after,
        **guidelines_shown(request),
        "need": {} if item is None else answer.needs[item.topic],
        "script": script,
        "keys": keys,
        "new_id": new_id(),
        "first": first,
    }


@page("/judge/topics", ASSESSOR, "rounds.topic_choices", menu=("judge", 10, ""), reveals=NOTHING)
def choose_topic(request: PageRequest) -> Page:
    """The topics of a round in which people choose: how much is left for you, and which ones others are judging."""
    name, bench = request.required("round"), request.site.bench
    choices = topic_choices(bench.log, request.name, name)
    titles = needs_of(bench, [each.topic for each in choices])
    topics = [{**each._asdict(), "title": titles[each.topic]["title"]} for each in choices]
    return Page("Choose a topic", "judge_topics.html", {"round": name, "topics": topics})


@action("/judge/topics", ASSESSOR, "rounds.lease", reveals=NOTHING)
def go_to_topic(request: PageRequest) -> ActionResult:
    """Choose a topic of a round; documents of other topics that you have not judged go to others."""
    name, topic = request.form_field("round"), request.form_field("topic")
    lease(request.site.bench.log, request.name, name, 1, topic)
    return ActionResult(link("/judge", round=name), {"round": name, "topic": topic})


@action("/judge", ASSESSOR, "submit_labels", reveals=NOTHING)
def post_judgments(request: PageRequest) -> ActionResult:
    """Add judgments, skips, notes or withdrawals, and return the next documents; each is kept, repeated or refused."""
    if "events" not in request.form:
        return _from_form(request)
    rows, have, n = script_events(request, AHEAD)
    answer = submit_labels(request, request.form_field("round"), rows, n, subjects_in(have))
    return ActionResult(link("/judge", round=answer.round), _brief(answer))


def _brief(answer: JudgingWork) -> Mapping[str, Any]:
    """The values that change with each reply, without grades and guidelines."""
    left_out = ("rounds", "guidelines", "grades", "aspects", "labels", "more_labels", "label")
    return {name: value for name, value in answer.to_dict().items() if name not in left_out}


def _from_form(request: PageRequest) -> ActionResult:
    """Add the label of a form without scripts, and go on to the next document."""
    name, rows = request.form_field("round"), label_rows(request)
    answer = submit_labels(request, name, rows, 0)
    refuse_first(answer.outcomes, "Go back to see the document again.")
    alone = {} if name else {key: rows[0][key] for key in ("topic", "document")}
    return ActionResult(link("/judge", round=name, **alone), _brief(answer))


def label_rows(request: PageRequest) -> list[dict[str, Any]]:
    """The events of a form without scripts: a label, and one for each further aspect that is answered."""
    kind = request.form_field("kind") or "judgment"
    about = {key: request.form_field(key) for key in ("topic", "document")}
    label: dict[str, Any] = {"id": request.form_field("id") or new_id(), "kind": kind, **about}
    label["sure"] = request.form_field("unsure") != "on"
    label |= {key: request.form_field(key) for key in ("note", "changes") if request.form_field(key)}
    if kind == "judgment":
        label["grade"] = request.number("grade")
    rows, relevance = [label], label.get("grade")
    aspects = request.site.bench.aspects()
    for aspect in [each.name for each in aspects if relevance is not None and each.asked_at(relevance)]:
        grade = request.number(f"aspect-{aspect}")
        if grade is not None:
            rows.append({"id": f"{label['id'][:60]}-{len(rows)}", **about, "aspect": aspect, "grade": grade})
    return rows
