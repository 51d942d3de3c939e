"""One document, and everything that was said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cranfield.http.refusal import NotFound
from cranfield.judge.blame import blame
from cranfield.passages import best_passage, marks
from cranfield.web.entry import Page, page
from cranfield.web.render import marked
from cranfield.web.roles import VIEWER

if TYPE_CHECKING:
    from cranfield.web.visit import Visit

LONGEST = 400_000  # characters shown at once


@page("/document", VIEWER, "shelf.get")
def document(visit: Visit) -> Page:
    """The text of a document, the words of a topic's query marked in it."""
    identity, topic = visit.needed("id"), visit.text("topic")
    found = visit.site.document(identity)
    if found is None:
        raise NotFound(
            f"the collection has no document {identity[:100]!r}", "A run may name documents that the collection lacks."
        )
    query = visit.site.query_of(topic)
    cut = found.text if visit.text("all") else found.text[:LONGEST]
    spans = marks(cut, query) if query else []
    fields = {name: value for name, value in found.fields.items() if isinstance(value, (str, int, float))}
    values = {
        "id": found.id,
        "title": found.title,
        "text": found.text,
        "fields": fields,
        "topic": topic,
        "query": query,
    }
    start, _ = best_passage(cut, query) if spans else (0, 0)
    shown = {
        "before": marked(cut[:start], [(a, b) for a, b in spans if b <= start]),
        "after": marked(cut[start:], [(a - start, b - start) for a, b in spans if a >= start]),
        "left": len(found.text) - len(cut),
    }
    return Page(found.title or found.id, "document.html", values, shown)


@page("/label", VIEWER, "judge.blame", table=True)
def label(visit: Visit) -> Page:
    """Every event on a label: who said what when, and what of it stands."""
    topic, document = visit.needed("topic"), visit.needed("document")
    found = blame(visit.site.bench.log, topic, document)
    if visit.blind:
        found = replace(found, events=[event for event in found.events if event.assessor == visit.name])
    values = {**found.to_dict(), "query": visit.site.query_of(topic), "blind": visit.blind}
    table = found.to_csv(spreadsheet=True) if found.events else "time\n"
    return Page(f"Labels of {document}", "label.html", values, {"blame": found}, table)
