"""Judging: one document after the other, with the need in view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.http.refusal import Refusal
from cranfield.judge.event import new_id
from cranfield.web.entry import Done, Page, action, page
from cranfield.web.keys import keys_of
from cranfield.web.render import link, marked
from cranfield.web.roles import ASSESSOR
from cranfield.workspace.answering import answer, asked_beside
from cranfield.workspace.assessing import AHEAD, work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.web.visit import Visit
    from cranfield.workspace.assessing import Work

DAYS_ON = 10**6  # the last page of labels that can be asked for


@page("/judge", ASSESSOR, "assessing.work", menu=(10, "Judge"))
def judge(visit: Visit) -> Page:
    """The next document to judge, the need, how far the work is, and one's own labels; holds up to three documents."""
    topic, document = visit.text("topic"), visit.text("document")
    subject = (topic, document) if topic and document else None
    first, ahead = visit.whole("labels", 0, most=DAYS_ON), visit.whole("ahead", AHEAD, most=AHEAD)
    found = work(visit.site.bench, visit.site.document, visit.name, visit.text("round"), subject, first, ahead)
    values = found.to_dict()
    title = "Judge" if not found.items else found.items[0].title or found.items[0].document
    script = "judge.js" if found.round or found.items else "waiting.js"
    return Page(title, "judge.html", values, _shown(visit, found, first, subject), scripts=(script,))


def _shown(visit: Visit, found: Work, first: int, subject: tuple[str, str] | None) -> dict[str, Any]:
    """What only the page needs: the first document as HTML, and what its script goes by."""
    item = found.items[0] if found.items else None
    settings = visit.site.accounts.settings(visit.name)
    keys = [each for each in keys_of(settings) if each.page == "judge"]
    script = {
        "round": found.round,
        "grades": [each._asdict() for each in found.grades],
        "aspects": [{**each._asdict(), "grades": [one._asdict() for one in each.grades]} for each in found.aspects],
        "keys": {each.name: each.key for each in keys},
        "single": bool(settings.get("single_keys", True)),
        "at": None if item is None else [item.topic, item.document],
        "alone": subject is not None,
        "ahead": AHEAD,
    }
    before, after = "", ""
    if item is not None:
        spans, cut = item.marks, item.opens_at
        before = marked(item.text[:cut], [span for span in spans if span[1] <= cut])
        after = marked(item.text[cut:], [(start - cut, end - cut) for start, end in spans if start >= cut])
    return {
        "item": item,
        "text_before": before,
        "text_after": after,
        "need": {} if item is None else found.needs[item.topic],
        "script": script,
        "keys": keys,
        "new_id": new_id(),
        "first": first,
    }


@action("/judge", ASSESSOR, "answering.answer")
def judged(visit: Visit) -> Done:
    """Keep judgments (or skips, notes, withdrawals) and give the next documents; each is kept, repeated or refused."""
    if "events" in visit.form:
        return _sent(visit)
    return _posted(visit)


def _sent(visit: Visit) -> Done:
    """What a script sends."""
    events, have = visit.form["events"], visit.form.get("have", [])
    account, n = visit.form.get("account", visit.name), visit.form.get("n", AHEAD)
    if not isinstance(events, list) or not isinstance(have, list) or type(n) is not int:
        raise Refusal("expected events and have as lists and n as a whole number")
    if account != visit.name:
        raise Refusal(
            f"these are judgments of {str(account)[:60]}, and you are signed in as {visit.name}",
            403,
            advice="They stay in this browser until their own account signs in.",
        )
    known = [(str(each[0]), str(each[1])) for each in have if isinstance(each, list) and len(each) == 2]
    found = answer(visit.site.bench, visit.site.document, visit.name, visit.said("round"), events, n, known)
    return Done(link("/judge", round=found.round), _brief(found))


def _brief(found: Work) -> Mapping[str, Any]:
    """What changes with an answer; grades and guidelines are known."""
    left_out = ("rounds", "guidelines", "grades", "aspects", "labels", "more_labels", "label")
    return {name: value for name, value in found.to_dict().items() if name not in left_out}


def _posted(visit: Visit) -> Done:
    """What a form without scripts sends: one document, and then the next."""
    name, kind = visit.said("round"), visit.said("kind") or "judgment"
    about = {key: visit.said(key) for key in ("topic", "document")}
    said: dict[str, Any] = {
        "id": visit.said("id") or new_id(),
        "kind": kind,
        **about,
        "sure": visit.said("unsure") != "on",
    }
    said |= {key: visit.said(key) for key in ("note", "changes") if visit.said(key)}
    if kind == "judgment":
        said["grade"] = visit.number("grade")
    rows = [said]
    for aspect in asked_beside(visit.site.bench, said.get("grade")):
        given = visit.number(f"aspect-{aspect}")
        if given is not None:
            rows.append({"id": f"{said['id'][:60]}-{len(rows)}", **about, "aspect": aspect, "grade": given})
    found = answer(visit.site.bench, visit.site.document, visit.name, name, rows, 0)
    refused = [each.why for each in found.outcomes if not each.kept]
    if refused:
        raise Refusal(
            refused[0], 409, safe="What was said before is kept.", advice="Go back to see the document again."
        )
    alone = {} if name else about
    return Done(link("/judge", round=name, **alone), _brief(found))
