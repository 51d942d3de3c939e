"""Topics and documents.

The pages are the list of topics, one topic with two runs side by side, the text of a document and a form to judge it, one
document in full, and the history of its labels.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.card import document_card, document_title
from cranfield.base.errors import DataError
from cranfield.base.passages import best_passage, marks
from cranfield.base.results import Answer, Cell, Layout, Part, Table, plain
from cranfield.http.refusal import NotFound, Refusal
from cranfield.inputs.selection import LOG
from cranfield.judging.event import Event
from cranfield.judging.event_intake import refuse_unknown_ids
from cranfield.judging.log_queries import blame, count_current, documents_labelled_by_people
from cranfield.workbench.access_control import ASSESSOR, VIEWER
from cranfield.workbench.assessment import image_hosts, image_link
from cranfield.workbench.job_answers import MEASURES, JobAnswer, answer_page, ask, ask_scores, judgment_options
from cranfield.workbench.jobs import Failed
from cranfield.workbench.keyboard_shortcuts import keys_on
from cranfield.workbench.links import link
from cranfield.workbench.pages.guidelines import current_hash
from cranfield.workbench.rendering import marked, marked_around
from cranfield.workbench.routes import NOTHING, PARTS, ActionResult, Page, PageRequest, action, page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cranfield.inputs.workspace import Bench
    from cranfield.workbench.site import Site


def topics_with_counts(bench: Bench, blind: bool = False) -> list[dict[str, Any]]:
    """Every topic with its query and the number of documents that people have labelled; without that number if `blind`."""
    table = bench.topics()
    labelled = {} if blind else documents_labelled_by_people(bench.database)
    queries = {} if table is None else dict(table.queries)
    return [
        {"topic": topic, "query": queries.get(topic, ""), "labelled": None if blind else labelled.get(topic, 0)}
        for topic in dict.fromkeys([*queries, *sorted(labelled)])
    ]


def judge_now(site: Site, assessor: str, topic: str, document: str, grade: float, id: str = "") -> bool:
    """Label a document outside any round; False if this person has already given it the same grade."""
    bench = site.bench
    scale = bench.grades()
    if scale and grade not in scale:
        grades = ", ".join(f"{each:g}" for each in scale)
        raise DataError(f"expected a grade of {grades}, found {grade:g}")
    label = {"topic": topic, "document": document, "grade": grade, "assessor": assessor, "id": id}
    event = Event.of({**label, "list": "topic", "guideline": current_hash(bench)})
    refusal = refuse_unknown_ids(event, site.known_ids())
    if refusal is not None:
        raise DataError(refusal[1])

    def is_new(labels: list[Event]) -> bool:
        return not any(each.assessor == assessor and each.grade == grade and not each.repeat for each in labels)

    return bench.log.add_if(event, is_new)


BY_DIFFERENCE = "difference"


class TopicRow(NamedTuple):
    """A topic, and the scores of two runs if two are selected."""

    topic: str
    query: str
    labelled: int | None  # None: the reader judges blind
    one: float | None = None
    other: float | None = None
    difference: float | None = None


@dataclass(frozen=True)
class TopicList(Answer):
    """The list of topics; `to` gives the page of a topic."""

    rows: Sequence[TopicRow]
    runs: tuple[str, str] | None
    to: Callable[[str], str]

    def content(self, how: Layout) -> Iterator[Part]:
        counted = any(row.labelled is not None for row in self.rows)
        head = ["topic", "query", *([*self.runs, "difference"] if self.runs else []), *["labelled here"] * counted]
        rows = []
        for row in self.rows:
            cells = [Cell(row.topic, to=self.to(row.topic)), Cell(row.query)]
            if self.runs:
                cells += [how.cell(row.one), how.cell(row.other), how.cell(row.difference, signed=True)]
            rows.append([*cells, *[Cell(str(row.labelled), row.labelled)] * counted])
        yield Table(head, rows, 1, 2, keys=[{"topic": row.topic} for row in self.rows])

    def plain(self, how: Layout) -> Any:
        names = TopicRow._fields if self.runs else TopicRow._fields[:3]
        rows = [{name: getattr(row, name) for name in names} for row in self.rows]
        return plain({"topics": rows}, how.digits)


IN_PANE = 6000  # characters of a text
CARRIED = ("measures", "judgments", "policy", "order")  # parameters that links to other topics carry along
SCRIPTS = ("live.js", "sort.js", "topic.js")


@page("/topic", VIEWER, "jobs.ask sides", table=True, menu=("look", 30, "Topics"), reveals=PARTS)
def topic(request: PageRequest) -> Page:
    """Two runs on one topic side by side; without a topic, the list of topics."""
    name = request.text("topic")
    if name or request.text("one"):
        request.refuse_blind()  # lists, run names and grades
    return _one_topic(request, name) if name else _all_topics(request)


def _all_topics(request: PageRequest) -> Page:
    """Every topic; with two runs, those on which they differ most come first."""
    names = [run.name for run in request.site.bench.runs()]
    one, other = request.text("one"), request.text("other")
    job = ask_scores(request, "compare", one=one, other=other) if one and other and one != other else None
    listing = _listing(request, one, other, job)
    values = {"one": one, "other": other, **(job.values() if job else {}), **listing.to_dict()}
    values.pop("answer", None)  # the topics hold the part of it that is shown
    context = {
        "listing": listing,
        "job": job,
        "runs": [] if request.blind else names,
        "words": request.text("words"),
        **judgment_options(request),
    }
    status = job.page_status(request) if job else 200
    return Page("Topics", "topics.html", values, context, listing.to_csv(spreadsheet=True), SCRIPTS, status)


def _listing(request: PageRequest, one: str, other: str, job: JobAnswer | None) -> TopicList:
    """Topics in the order of their file; with the scores of a comparison, the largest gain first.

    The list has only topics whose id or query contains all `words` of the request.
    """
    answer = job.answer if job else None
    topics = {row["topic"]: TopicRow(**row) for row in topics_with_counts(request.site.bench, request.blind)}
    names = ("one", "other", "difference")
    first = {
        row["topic"]: topics.get(row["topic"], TopicRow(row["topic"], "", 0))._replace(**{k: row[k] for k in names})
        for row in (answer["topics"] if answer else ())
    }
    rows = (first | {topic: row for topic, row in topics.items() if topic not in first}).values()
    search = request.text("words").casefold().split()
    matches = [row for row in rows if all(word in f"{row.topic} {row.query}".casefold() for word in search)]
    along = {key: request.text(key) for key in CARRIED} | ({"order": BY_DIFFERENCE} if job else {})

    def to(topic: str) -> str:
        return link("/topic", topic=topic, one=one, other=other, **along)

    return TopicList(matches, (one, other) if answer else None, to)


def _one_topic(request: PageRequest, name: str) -> Page:
    bench = request.site.bench
    runs = [run.name for run in bench.runs()]
    one, other = request.text("one") or "".join(runs[:1]), request.text("other") or "".join(runs[1:2] or runs[:1])
    measure = request.text("measure") or (request.text("measures") or MEASURES).split()[0]
    job, unjudged = _side_by_side(request, name, one, other, measure) if runs else (None, "")
    answer = job.answer if job else None
    table = bench.topics()
    values = {
        "topic": name,
        "query": request.site.query_of(name),
        "about": {} if table is None else {key: texts.get(name, "") for key, texts in table.columns.items()},
        "one": one,
        "other": other,
        "measure": measure,
        **({"unjudged": unjudged} if unjudged else {}),
        **_judged(request, name),
    }
    along = {"one": one, "other": other} | {key: request.text(key) for key in ("measure", *CARRIED)}
    before, after = _around(request, name, one, other)
    context = {
        "runs": runs,
        "unjudged": unjudged,
        "lists": _lists(request, answer) if answer else [],
        "pane": _pane(request, name),
        "grades": bench.grades(),
        "along": along,
        "pair": link("/topic", topic=name, **along),
        "before": before and link("/topic", topic=before, **along),
        "after": after and link("/topic", topic=after, **along),
        **keys_on({} if request.account is None else request.account.settings, "topic")[1],
        **judgment_options(request),
    }
    return answer_page(request, f"Topic {name}", "topic.html", values, context, job, SCRIPTS)


def _judged(request: PageRequest, topic: str) -> dict[str, str]:
    """The numbers of current judgments of the topic; empty if the page scores by other judgments."""
    if request.text("judgments") not in ("", LOG):
        return {}
    counts = count_current(request.site.bench.database, topic)
    return {"judged": counts.in_words().partition(", on ")[0]}


def _side_by_side(request: PageRequest, name: str, one: str, other: str, measure: str) -> tuple[JobAnswer, str]:
    """Both lists with scores; if nothing of the topic is judged, the lists alone and the reason."""
    try:
        job = ask_scores(request, "sides", one=one, other=other, topic=name, measures=measure)
        if not isinstance(job.state, Failed):
            return job, ""
        why = job.why
    except DataError as error:
        why = request.site.public_text(str(error))
    return ask(request, "lists", one=one, other=other, topic=name), why


def _around(request: PageRequest, name: str, one: str, other: str) -> tuple[str, str]:
    """The topics before and after: by the difference of both runs if the query says so, else as in their file.

    Empty at the ends, and if the topic is not in the list.
    """
    table = request.site.bench.topics()
    topics = [] if table is None else list(table.queries)
    if request.text("order") == BY_DIFFERENCE and one != other:
        with suppress(DataError):  # nothing is judged
            compared = ask_scores(request, "compare", one=one, other=other).answer
            topics = [row["topic"] for row in compared["topics"]] if compared else topics
    if name not in topics:
        return "", ""
    place = topics.index(name)
    return "".join(topics[max(place - 1, 0) : place]), "".join(topics[place + 1 : place + 2])


def _lists(request: PageRequest, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Both lists with the titles of their documents, and the number of unjudged documents."""
    return [
        {
            **each,
            "documents": [{**entry, "title": _title(request, entry["document"])} for entry in each["documents"]],
            "unjudged": sum(not entry["judged"] for entry in each["documents"]),
        }
        for each in answer["lists"]
    ]


def _title(request: PageRequest, identity: str) -> str:
    content = request.site.document(identity)
    if content is None:
        return ""
    return document_title(request.site.bench.card(), content) or " ".join(content.text[:120].split())


def _pane(request: PageRequest, topic: str) -> dict[str, Any] | None:
    """The text of the selected document, from its best passage on; None if none is selected."""
    identity = request.text("document")
    if not identity:
        return None
    content = request.site.document(identity)
    if content is None:
        return {"id": identity, "title": "", "text": "", "there": False, "more": 0}
    query = request.site.query_of(topic)
    start = best_passage(content.text, query)[0] if query and len(content.text) > IN_PANE else 0
    text = content.text[start : start + IN_PANE]
    words = marked(text, marks(text, query) if query else [])
    title = document_title(request.site.bench.card(), content)
    return {"id": identity, "title": title, "text": words, "there": True, "more": len(content.text) - len(text)}


@action("/topic", ASSESSOR, "judge_now")
def judge_this(request: PageRequest) -> ActionResult:
    """Label a document of a topic outside any round."""
    name, document, grade = request.form_field("topic"), request.form_field("document"), request.number("grade")
    if grade is None or not name or not document:
        raise Refusal("a label needs a topic, a document and a grade")
    new = judge_now(request.site, request.name, name, document, grade, request.form_field("id"))
    along = {key: request.form_field(key) for key in ("one", "other", "measure", *CARRIED)}
    back = link("/topic", topic=name, document=document, **along)
    return ActionResult(f"{back}#pane", {"topic": name, "document": document, "grade": grade, "new": new})


LONGEST = 400_000  # characters shown at once


@page("/document", VIEWER, "site.document", menu=("look", 30, ""), reveals=NOTHING)
def document(request: PageRequest) -> Page:
    """The text of a document, with the words of a topic's query marked."""
    identity, topic = request.required("id"), request.text("topic")
    content = request.site.document(identity)
    if content is None:
        advice = "A run may name documents that the collection lacks."
        raise NotFound(f"the collection has no document {identity[:100]!r}", advice)
    query = request.site.query_of(topic)
    cut = content.text if request.text("all") else content.text[:LONGEST]
    spans = marks(cut, query) if query else []
    fields = {name: value for name, value in content.fields.items() if isinstance(value, (str, int, float))}
    template = request.site.bench.card()
    card = document_card(template, content, partial(image_link, identity))
    values = {"id": content.id, "title": card.title, "text": content.text, "fields": fields}
    values |= {"topic": topic, "query": query, **({} if template is None else {"card": card._asdict()})}
    before, after = marked_around(cut, spans, best_passage(cut, query)[0] if spans else 0)
    context = {"before": before, "after": after, "left": len(content.text) - len(cut), "card": template and card}
    scripts, hosts = () if template is None else ("card.js",), image_hosts(request.site.bench)
    return Page(card.title or content.id, "document.html", values, context, scripts=scripts, image_hosts=hosts)


@page("/label", VIEWER, "judging.blame", table=True, menu=("look", 30, ""), reveals=PARTS)
def label(request: PageRequest) -> Page:
    """The history of a label: every event on it, and which one is current."""
    topic, document = request.required("topic"), request.required("document")
    history = blame(request.site.bench.log, topic, document)
    if request.blind:
        history = replace(history, events=list(_own_events(history.events, request.name)))
    used = {event.guideline for event in history.events}
    versions = {key: version for key, version in history.versions.items() if key in used}
    values = {**history.to_dict(), "query": request.site.query_of(topic), "blind": request.blind}
    table = history.to_csv(spreadsheet=True) if history.events else "time\n"
    return Page(f"Labels of {document}", "label.html", values, {"blame": history, "versions": versions}, table)


def _own_events(events: Sequence[Event], assessor: str) -> Iterator[Event]:
    """An assessor's own events without their position in the round and without the mark of repeats.

    Both are the server's: the position would reveal gold and the order of the pool.
    """
    return (replace(event, rank=None, repeat=False) for event in events if event.assessor == assessor)
