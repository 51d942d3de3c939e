"""One topic: two runs side by side, the text in a pane, how the scores came about, and "judge this"; and the list of topics."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError
from cranfield.http.refusal import Refusal
from cranfield.passages import best_passage, marks
from cranfield.web.asking import MEASURES, ask, ask_scores, judged
from cranfield.web.entry import Done, Page, action, page
from cranfield.web.keys import keys_of
from cranfield.web.render import link, marked
from cranfield.web.roles import ASSESSOR, VIEWER
from cranfield.workspace.jobs import Failed
from cranfield.workspace.looking import judge_now
from cranfield.workspace.topic_list import BY_DIFFERENCE, around, topic_list

if TYPE_CHECKING:
    from cranfield.web.asking import Asked
    from cranfield.web.visit import Visit
    from cranfield.workspace.topic_list import TopicList

IN_PANE = 6000  # characters of a text
KEPT = ("measures", "judgments", "policy", "order")  # what goes along from topic to topic
SCRIPTS = ("live.js", "sort.js", "topic.js")


@page("/topic", VIEWER, "workspace.sides", table=True, menu=(80, "Topics"))
def topic(visit: Visit) -> Page:
    """Two runs on one topic side by side; without a topic, the list of topics."""
    name = visit.text("topic")
    if visit.blind and (name or visit.text("one")):
        raise Refusal(
            "you are asked to judge in a round that is not closed",
            403,
            safe="",
            advice="Lists and grades are shown when it is closed.",
        )
    return _one_topic(visit, name) if name else _all_topics(visit)


def _all_topics(visit: Visit) -> Page:
    """Every topic, those on which two chosen runs differ most first."""
    names = [run.name for run in visit.site.bench.runs()]
    one, other = visit.text("one"), visit.text("other")
    asked = ask_scores(visit, "compare", one=one, other=other) if one and other and one != other else None
    found = _listed(visit, one, other, asked, visit.text("words"))
    values = {"one": one, "other": other, **(asked.values() if asked else {}), **found.to_dict()}
    values.pop("answer", None)  # the topics hold what is shown of it
    shown = {
        "found": found,
        "asked": asked,
        "runs": [] if visit.blind else names,
        "words": visit.text("words"),
        "measures": visit.text("measures") or MEASURES,
        **judged(visit),
    }
    status = asked.told(visit) if asked else 200
    return Page("Topics", "topics.html", values, shown, found.to_csv(spreadsheet=True), SCRIPTS, status)


def _listed(visit: Visit, one: str, other: str, asked: Asked | None, words: str = "") -> TopicList:
    answer = asked.answer if asked else None
    along = {key: visit.text(key) for key in KEPT} | ({"order": BY_DIFFERENCE} if asked else {})
    return topic_list(
        visit.site.bench,
        lambda topic: link("/topic", topic=topic, one=one, other=other, **along),
        runs=(one, other),
        scores=answer["topics"] if answer else None,
        words=words,
    )


def _one_topic(visit: Visit, name: str) -> Page:
    bench = visit.site.bench
    runs = [run.name for run in bench.runs()]
    one, other = visit.text("one") or "".join(runs[:1]), visit.text("other") or "".join(runs[1:2] or runs[:1])
    measure = visit.text("measure") or (visit.text("measures") or MEASURES).split()[0]
    asked, unjudged = _sides(visit, name, one, other, measure) if runs else (None, "")
    answer = asked.answer if asked else None
    known = bench.topics()
    values = {
        "topic": name,
        "query": visit.site.query_of(name),
        "about": {} if known is None else {key: texts.get(name, "") for key, texts in known.columns.items()},
        "one": one,
        "other": other,
        "measure": measure,
        **({"unjudged": unjudged} if unjudged else {}),
        **(asked.values() if asked else {}),
    }
    along = {"one": one, "other": other, "measure": visit.text("measure"), **{key: visit.text(key) for key in KEPT}}
    before, after = _around(visit, name, one, other)
    shown = {
        "runs": runs,
        "asked": asked,
        "unjudged": unjudged,
        "lists": _lists(visit, answer) if answer else [],
        "pane": _pane(visit, name),
        "grades": bench.grades(),
        "along": along,
        "pair": link("/topic", topic=name, **along),
        "before": before and link("/topic", topic=before, **along),
        "after": after and link("/topic", topic=after, **along),
        "keys": {each.name: each.key for each in keys_of(_settings(visit)) if each.page == "topic"},
        "single": bool(_settings(visit).get("single_keys", True)),
        **judged(visit),
    }
    table, status = (asked.table, asked.told(visit)) if asked else (None, 200)
    return Page(f"Topic {name}", "topic.html", values, shown, table, SCRIPTS, status)


def _settings(visit: Visit) -> Any:
    return {} if visit.account is None else visit.account.settings


def _sides(visit: Visit, name: str, one: str, other: str, measure: str) -> tuple[Asked, str]:
    """Both lists with scores; without, and why, where nothing of the topic is judged."""
    try:
        asked = ask_scores(visit, "sides", one=one, other=other, topic=name, measures=measure)
        if not isinstance(asked.state, Failed):
            return asked, ""
        why = asked.why
    except DataError as error:
        why = visit.site.told(str(error))
    return ask(visit, "lists", one=one, other=other, topic=name), why


def _around(visit: Visit, name: str, one: str, other: str) -> tuple[str, str]:
    """The topics before and after: by the difference of both runs if that is asked for and known, else as in their file."""
    scores = None
    if visit.text("order") == BY_DIFFERENCE and one != other:
        with suppress(DataError):  # nothing is judged
            compared = ask_scores(visit, "compare", one=one, other=other).answer
            scores = compared["topics"] if compared else None
    return around(visit.site.bench, name, scores)


def _lists(visit: Visit, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Both lists with the titles of their documents, and how many of each are unjudged."""
    return [
        {
            **each,
            "documents": [{**entry, "title": _title(visit, entry["document"])} for entry in each["documents"]],
            "unjudged": sum(not entry["judged"] for entry in each["documents"]),
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
        raise Refusal(
            "you are asked to judge in a round that is not closed", 403, advice="Judge it there, on the page /judge."
        )
    name, document, grade = visit.said("topic"), visit.said("document"), visit.number("grade")
    if grade is None or not name or not document:
        raise Refusal("a label needs a topic, a document and a grade")
    new = judge_now(visit.site.bench, visit.name, name, document, grade, visit.said("id"))
    along = {key: visit.said(key) for key in ("one", "other", "measure", *KEPT)}
    back = link("/topic", topic=name, document=document, **along)
    return Done(f"{back}#pane", {"topic": name, "document": document, "grade": grade, "new": new})
