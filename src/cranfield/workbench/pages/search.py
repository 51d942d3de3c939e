"""Search and judge: an assessor looks for documents of a topic with queries of their own, and judges results in place.

The results follow from the query and the documents alone. The page shows no labels but the assessor's own,
so it is open to assessors who judge blind. If an open round has assigned the document to the assessor, the label belongs to
that round; otherwise it belongs to none. The event records the query as its list, and the rank of the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.card import document_card
from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.base.passages import best_passage, marks
from cranfield.base.results import Entries, Layout, Table
from cranfield.http.refusal import NotFound
from cranfield.judging.assessor_view import own_current_labels, own_open_round
from cranfield.judging.event import Event, new_id
from cranfield.judging.event_intake import EventOutcome, submit
from cranfield.judging.rounds import Leaseholder, answer_within
from cranfield.retrieval.document_search import LONGEST_QUERY, search_documents, search_list
from cranfield.workbench.access_control import ASSESSOR
from cranfield.workbench.assessment import ScriptReply, image_hosts, image_link, needs_of, own_label_view, terms
from cranfield.workbench.browser_events import in_order, read_rows, refuse_first, script_events
from cranfield.workbench.job_answers import ask
from cranfield.workbench.keyboard_shortcuts import keys_on
from cranfield.workbench.links import link
from cranfield.workbench.pages.guidelines import guidelines_shown, with_guidelines
from cranfield.workbench.pages.judge import label_rows, refuse_grade, texts_with_passages, with_passage_text
from cranfield.workbench.questions.collection import ready_index
from cranfield.workbench.rendering import marked
from cranfield.workbench.routes import NOTHING, ActionResult, Page, PageRequest, action, page

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.base.card import CardPart, CardTemplate
    from cranfield.base.results import Part
    from cranfield.judging.log import Transaction
    from cranfield.workbench.assessment import AspectQuestion, GradeOption, OwnLabel
    from cranfield.workbench.site import Site

RESULTS = 10  # on a page
LAST_RESULT = 1000
SEARCHED = 1_000_000  # characters in which the snippet is searched
SNIPPET = 320  # characters
SEARCHED = 1_000_000  # characters of a text in which the snippet is looked for
TOPICS = 200  # that the list of topics shows at once
KINDS = ("judgment", "cannot-judge", "note", "withdrawal")
LABEL_FIELDS = ("topic", "document", "grade", "sure", "note", "passage", "passages", "aspect", "guideline")
ROW_FIELDS = (*LABEL_FIELDS, "query", "rank", "time")
SERVER_FIELDS = ("time", "round", "guideline")  # in which an event that is sent again may differ


class SearchResult(NamedTuple):
    """A document that a search returned, with the part of its text that fits best, and the assessor's own label."""

    document: str
    rank: int
    title: str
    snippet: str
    marks: Sequence[tuple[int, int]]  # spans of query words in `snippet`
    length: int  # of the whole text
    label: OwnLabel | None
    fields: Sequence[CardPart] = ()  # of the card


@dataclass(frozen=True)
class SearchWork(ScriptReply):
    """The reply to an assessor who searches: the need, the results with own labels, and the grades to choose from."""

    topic: str = ""
    query: str = ""
    first: int = 0
    more: bool = False  # whether there are results behind these
    need: Mapping[str, str] = field(default_factory=dict)
    grades: Sequence[GradeOption] = ()
    aspects: Sequence[AspectQuestion] = ()
    results: Sequence[SearchResult] = ()

    def content(self, how: Layout) -> Iterable[Part]:
        yield Entries([("topic", self.topic), ("query", self.query)])
        rows = [[f"{each.rank}", each.document, each.title] for each in self.results]
        yield Table(["rank", "document", "title"], rows)


@page("/search", ASSESSOR, "document_search.search_documents", menu=("judge", 15, "Search"), reveals=NOTHING)
def search(request: PageRequest) -> Page:
    """Search the documents for a topic and judge the results in place; without a topic, the list of topics."""
    topic = request.text("topic")
    if not topic:
        return _topics(request)
    if not _is_topic(request.site, topic):
        raise NotFound(f"the collection has no topic {shortened(topic)!r}", "The list of topics: /search")
    need = needs_of(request.site.bench, [topic])[topic]
    query = request.text("query") if "query" in request.query else need["title"]
    first = request.whole("from", 0, most=LAST_RESULT)
    folder = ready_index(request.site.bench)
    job = ask(request, "search-index") if folder is None else None
    folder = folder or ready_index(request.site.bench)  # the job may have ended while the page waited for it
    answer = _work(request, topic, need, query, first, folder)
    state = job.values() if job is not None and folder is None else {}
    status = job.page_status(request) if job is not None and folder is None else 200
    values = {**answer.to_dict(), **state}
    context = {**_context(request, answer), "job": None if folder else job}
    scripts = ("search.js", "guidelines.js") if folder else ("live.js",)
    hosts = image_hosts(request.site.bench)
    return Page("Search", "search.html", values, context, scripts=scripts, status=status, image_hosts=hosts)


def _topics(request: PageRequest) -> Page:
    """The topics to choose from: those whose id or title contains all words."""
    table = request.site.bench.topics()
    queries = {} if table is None else table.queries
    words = request.text("words").casefold().split()
    rows = [
        {"topic": topic, "title": title}
        for topic, title in queries.items()
        if all(word in f"{topic} {title}".casefold() for word in words)
    ]
    values = {"topics": rows, "has_documents": request.site.bench.collection is not None}
    return Page("Search", "search_topics.html", values, {"words": request.text("words"), "most": TOPICS})


def _is_topic(site: Site, topic: str) -> bool:
    table = site.bench.topics()
    return table is not None and topic in table.queries


def _work(
    request: PageRequest, topic: str, need: Mapping[str, str], query: str, first: int, folder: str | None
) -> SearchWork:
    bench = request.site.bench
    best = [] if folder is None else search_documents(folder, query, first + RESULTS + 1)
    documents = best[first : first + RESULTS]
    with bench.log.reading() as transaction:
        labels = own_current_labels(transaction, request.name, topic, documents)
    result = partial(_result, request.site, bench.card(), query, labels)
    results = [result(each, rank) for rank, each in enumerate(documents, first + 1)]
    more = len(best) > first + RESULTS
    return SearchWork(topic, query, first, more, need, results=[each for each in results if each], **terms(bench, None))


def _result(
    site: Site, template: CardTemplate | None, query: str, labels: Mapping[str, Event], document: str, rank: int
) -> SearchResult | None:
    """A result with its snippet; None if the document is gone since the index was built."""
    content = site.document(document)
    if content is None:
        return None
    text, words = content.text, query[:LONGEST_QUERY]
    start, end = best_passage(text, words, SNIPPET)
    snippet = text[start:end]
    label = labels.get(document)
    own = None if label is None else own_label_view(site.document, label, template)
    card = document_card(template, content, partial(image_link, document))
    about = (card.title, snippet, marks(snippet, words), len(content.text), own)
    return SearchResult(document, rank, *about, [*card.above, *card.below])


def _context(request: PageRequest, answer: SearchWork) -> dict[str, Any]:
    keys, for_script = keys_on(request.site.accounts.settings(request.name), "search")
    here = {"topic": answer.topic, "query": answer.query}
    script = {
        **here,
        **for_script,
        "grades": [each._asdict() for each in answer.grades],
        "labels": {each.document: each.label._asdict() for each in answer.results if each.label is not None},
    }
    return {
        "snippets": {each.document: marked(each.snippet, each.marks) for each in answer.results},
        "ids": {each.document: new_id() for each in answer.results},
        "keys": keys,
        "script": script,
        "longest": LONGEST_QUERY,
        **guidelines_shown(request),
        "before": link("/search", **here, **{"from": max(0, answer.first - RESULTS) or None}) if answer.first else "",
        "after": link("/search", **here, **{"from": answer.first + RESULTS}) if answer.more else "",
    }


@action("/search", ASSESSOR, "submit_search_labels", reveals=NOTHING)
def post_search(request: PageRequest) -> ActionResult:
    """Add labels of search results; each is kept, repeated or refused."""
    if "events" in request.form:
        rows = script_events(request, 0).events
        outcomes = submit_search_labels(request, rows)
        return ActionResult("/search", {"outcomes": [each._asdict() for each in outcomes]})
    about = {name: request.form_field(name) for name in ("topic", "query")}
    if request.form_field("kind") == "withdrawal":
        rows = [
            {"id": request.form_field("id") or new_id(), "kind": "withdrawal", "refers": request.form_field("refers")}
        ]
    else:
        place = {"query": about["query"], "rank": request.whole_form_field("rank", 1, 1, LAST_RESULT + RESULTS)}
        rows = [{**row, **place} for row in label_rows(request)]
    outcomes = submit_search_labels(request, rows)
    refuse_first(outcomes, "Go back to see the results again.")
    first = request.whole_form_field("from", 0, most=LAST_RESULT) or None
    back = link("/search", **about, **{"from": first})
    anchor = f"#r{request.form_field('rank')}" if request.form_field("rank").isdigit() else ""
    return ActionResult(f"{back}{anchor}", {"outcomes": [each._asdict() for each in outcomes]})


def submit_search_labels(request: PageRequest, rows: Sequence[Any]) -> list[EventOutcome]:
    """Add an assessor's labels of search results, each in a transaction of its own; return their outcomes."""
    known = request.site.known_ids()
    rows = with_guidelines(request.site.bench, rows)
    texts = texts_with_passages(request, rows)
    events, outcomes = read_rows(rows, ROW_FIELDS, partial(_event, request.name, texts), known)
    log = request.site.bench.log
    for event in events:
        outcomes[event.id] = log.write(partial(_submit, request, event))
    return in_order(rows, outcomes)


def _event(assessor: str, texts: Mapping[str, str], row: Mapping[str, Any], time: str) -> Event:
    """The event of a row; `texts` are those of documents with marked passages."""
    if row.get("kind", "judgment") not in KINDS:
        raise DataError(f"expected a kind of {', '.join(KINDS)}, found {shortened(str(row['kind']))!r}")
    fields = {
        name: row[name] for name in (*LABEL_FIELDS, "id", "kind", "refers", "seconds") if row.get(name) is not None
    }
    event = with_passage_text(Event.of(fields, assessor=assessor, time=time), texts)
    if event.kind == "withdrawal":
        return event
    return replace(event, list=search_list(str(row.get("query") or "")), rank=row.get("rank"))


def _submit(request: PageRequest, event: Event, transaction: Transaction) -> EventOutcome:
    """Submit an event in the round in which the document is the assessor's, or outside any."""
    bench, assessor = request.site.bench, request.name
    if event.kind == "withdrawal":
        target = transaction.events_by_id([event.refers]).get(event.refers)
        name = "" if target is None or target.assessor != assessor else target.round
    else:
        name = own_open_round(transaction, assessor, (event.topic, event.document))
    if not name:
        try:
            refuse_grade(bench, event, None)
        except DataError as error:
            return EventOutcome(event.id, "refused", "scale", str(error))
        transaction.alone()
        return submit(transaction, event, bench.log.name, server_fields=SERVER_FIELDS)
    desk = Leaseholder(transaction, name, assessor)
    if event.kind != "withdrawal":
        event = replace(event, round=name, guideline=event.guideline or desk.plan.guideline)
    return answer_within(desk, [event], 0, bench.log.name, SERVER_FIELDS)[0][0]
