"""One topic: two runs side by side, the text in a pane, how the scores came about, and "judge this"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.passages import best_passage, marks
from cranfield.web.asking import ask
from cranfield.web.entry import Done, Page, action, page
from cranfield.web.refusal import Refusal
from cranfield.web.render import link, marked
from cranfield.web.roles import ASSESSOR, VIEWER
from cranfield.workspace.looking import judge_now, topics_of

if TYPE_CHECKING:
    from cranfield.web.visit import Visit

MEASURE = "nDCG@10"
IN_PANE = 6000  # characters of a text


@page("/topic", VIEWER, "workspace.sides", table=True)
def topic(visit: Visit) -> Page:
    """Two runs on one topic side by side; without a topic, the list of topics."""
    bench = visit.site.bench
    name, runs = visit.text("topic"), [run.name for run in bench.runs()]
    if not name:
        rows = topics_of(bench)
        table = "topic,labelled\n" + "".join(f"{each['topic']},{each['labelled']}\n" for each in rows)
        return Page("Topics", "topics.html", {"topics": rows}, table=table)
    if visit.blind:
        raise Refusal(
            "you are asked to judge in an open round",
            403,
            safe="",
            advice="Lists and grades are shown when it is closed.",
        )
    one, other = visit.text("one") or (runs or [""])[0], visit.text("other") or (runs or [""])[-1]
    measure = visit.text("measure", MEASURE)
    asked = ask(visit, "sides", one=one, other=other, topic=name, measures=measure) if runs else None
    answer = asked.answer if asked else None
    known = bench.topics()
    about = {} if known is None else {key: texts.get(name, "") for key, texts in known.columns.items()}
    values = {
        "topic": name,
        "query": visit.site.query_of(name),
        "about": about,
        "one": one,
        "other": other,
        "measure": measure,
        **(asked.values() if asked else {}),
    }
    shown = {
        "runs": runs,
        "asked": asked,
        "lists": _lists(visit, answer) if answer else [],
        "pane": _pane(visit, name),
        "grades": bench.grades(),
        "pair": link("/topic", topic=name, one=one, other=other, measure=measure),
    }
    return Page(f"Topic {name}", "topic.html", values, shown, asked.table if asked else None, ("live.js", "topic.js"))


def _lists(visit: Visit, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Both lists with the titles of their documents."""
    return [
        {
            **each,
            "documents": [{**entry, "title": _title(visit, entry["document"])} for entry in each["documents"]],
        }
        for each in answer["lists"]
    ]


def _title(visit: Visit, identity: str) -> str:
    found = visit.site.document(identity)
    return "" if found is None else found.title or " ".join(found.text[:120].split())


def _pane(visit: Visit, topic: str) -> dict[str, Any] | None:
    """The text of the document that was chosen, from its best passage on."""
    identity = visit.text("document")
    if not identity:
        return None
    found = visit.site.document(identity)
    if found is None:
        return {"id": identity, "title": "", "text": "", "there": False, "more": 0}
    query = visit.site.query_of(topic)
    start = best_passage(found.text, query)[0] if query and len(found.text) > IN_PANE else 0
    text = found.text[start : start + IN_PANE]
    words = marked(text, marks(text, query) if query else [])
    return {"id": identity, "title": found.title, "text": words, "there": True, "more": len(found.text) - len(text)}


@action("/topic", ASSESSOR, "workspace.judge_now")
def judge_this(visit: Visit) -> Done:
    """Label a document of a topic outside any round."""
    if visit.blind:
        raise Refusal("you are asked to judge in an open round", 403, advice="Judge it there, on the page /judge.")
    name, document, grade = visit.said("topic"), visit.said("document"), visit.number("grade")
    if grade is None or not name or not document:
        raise Refusal("a label needs a topic, a document and a grade")
    new = judge_now(visit.site.bench, visit.name, name, document, grade, visit.said("id"))
    back = link(
        "/topic", topic=name, document=document, **{key: visit.said(key) for key in ("one", "other", "measure")}
    )
    return Done(back, {"topic": name, "document": document, "grade": grade, "new": new})
