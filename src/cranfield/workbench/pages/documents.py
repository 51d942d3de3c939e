"""The pages of one document, and of its labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cranfield.base.passages import best_passage, marks
from cranfield.http.refusal import NotFound
from cranfield.judging.log_queries import blame
from cranfield.workbench.access_control import VIEWER
from cranfield.workbench.rendering import marked_around
from cranfield.workbench.routes import Page, page

if TYPE_CHECKING:
    from cranfield.workbench.routes import PageRequest

LONGEST = 400_000  # characters shown at once


@page("/document", VIEWER, "site.document")
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
    values = {"id": content.id, "title": content.title, "text": content.text, "fields": fields}
    values |= {"topic": topic, "query": query}
    before, after = marked_around(cut, spans, best_passage(cut, query)[0] if spans else 0)
    context = {"before": before, "after": after, "left": len(content.text) - len(cut)}
    return Page(content.title or content.id, "document.html", values, context)


@page("/label", VIEWER, "judging.blame", table=True)
def label(request: PageRequest) -> Page:
    """The history of a label: every event on it, and which one is current."""
    topic, document = request.required("topic"), request.required("document")
    history = blame(request.site.bench.log, topic, document)
    if request.blind:
        history = replace(history, events=[event for event in history.events if event.assessor == request.name])
    values = {**history.to_dict(), "query": request.site.query_of(topic), "blind": request.blind}
    table = history.to_csv(spreadsheet=True) if history.events else "time\n"
    return Page(f"Labels of {document}", "label.html", values, {"blame": history}, table)
