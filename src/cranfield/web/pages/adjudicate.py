"""Deciding where people differ: for the lead, with nobody's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.http.refusal import Refusal
from cranfield.judge.event import new_id
from cranfield.web.entry import Done, Page, action, page
from cranfield.web.keys import keys_of
from cranfield.web.render import link, marked
from cranfield.web.roles import LEAD
from cranfield.workspace.adjudicating import AHEAD, decide, docket

if TYPE_CHECKING:
    from cranfield.web.visit import Visit
    from cranfield.workspace.adjudicating import Docket

KEYS = ("skip", "undo", "note", "help")


@page("/adjudicate", LEAD, "adjudicating.docket", table=True, menu=(50, "Adjudicate"))
def adjudicate(visit: Visit) -> Page:
    """The next document on which people differ: the need, the text, what each said, and no names."""
    topic, document = visit.text("topic"), visit.text("document")
    subject = (topic, document) if topic and document else None
    found = docket(visit.site.bench, visit.site.document, visit.name, "" if subject else topic, subject)
    scripts = ("adjudicate.js",) if found.ready else ("live.js",)
    values = found.to_dict() | {"state": "ready" if found.ready else "running"}
    status = 200 if found.ready else 202
    shown = _shown(visit, found, subject is not None)
    return Page("Adjudicate", "adjudicate.html", values, shown, found.to_csv(spreadsheet=True), scripts, status)


def _shown(visit: Visit, found: Docket, alone: bool) -> dict[str, Any]:
    """What only the page needs: the first document as HTML, and what its script goes by."""
    case = found.cases[0] if found.cases else None
    settings = visit.site.accounts.settings(visit.name)
    keys = [each for each in keys_of(settings) if each.name in KEYS]
    text = "" if case is None else marked(case.item.text, case.item.marks)
    script = {
        "topic": found.topic,
        "keys": {each.name: each.key for each in keys},
        "single": bool(settings.get("single_keys", True)),
        "ahead": AHEAD,
        "alone": alone,
    }
    need = {} if case is None else found.needs[case.item.topic]
    queries = {topic: visit.site.query_of(topic) for topic in found.topics}
    more = {"case": case, "text": text, "need": need, "script": script, "keys": keys, "new_id": new_id()}
    return {**more, "queries": queries, "alone": alone}


@action("/adjudicate", LEAD, "adjudicating.decide")
def adjudicated(visit: Visit) -> Done:
    """Keep decisions (or take them back) and give the next documents; each is kept, repeated or refused."""
    rows, have, n, topic = sent(visit, AHEAD)
    if rows is None:
        rows, n = [_posted(visit)], 0
    known = [(str(each[0]), str(each[1])) for each in have if isinstance(each, list) and len(each) == 2]
    found = decide(visit.site.bench, visit.site.document, visit.name, rows, topic, n, known)
    refused = [each.why for each in found.outcomes if not each.kept]
    if refused and "events" not in visit.form:
        raise Refusal(refused[0], 409, safe="What was decided before is kept.", advice="Go back to see the document.")
    left_out = ("last", "ready")
    values = {name: value for name, value in found.to_dict().items() if name not in left_out}
    return Done(link("/adjudicate", topic=topic), values)


def sent(visit: Visit, most: int) -> tuple[list[Any] | None, list[Any], int, str]:
    """What a script sends: events, what it has already, how many it wants, of what; None where a form was sent."""
    if "events" not in visit.form:
        return None, [], most, visit.said("of")
    events, have = visit.form["events"], visit.form.get("have", [])
    account, n = visit.form.get("account", visit.name), visit.form.get("n", most)
    if not isinstance(events, list) or not isinstance(have, list) or type(n) is not int:
        raise Refusal("expected events and have as lists and n as a whole number")
    if account != visit.name:
        raise Refusal(
            f"this was said by {str(account)[:60]}, and you are signed in as {visit.name}",
            403,
            advice="It stays in this browser until its own account signs in.",
        )
    return events, have, min(max(n, 0), most), visit.said("of")


def _posted(visit: Visit) -> dict[str, Any]:
    """What a form without scripts sends."""
    key = visit.said("id") or new_id()
    if visit.said("refers"):
        return {"id": key, "kind": "withdrawal", "refers": visit.said("refers")}
    about = {name: visit.said(name) for name in ("topic", "document", "note") if visit.said(name)}
    overrule = {"overrule": True} if visit.said("overrule") else {}
    return {"id": key, **about, "grade": visit.number("grade"), **overrule}
