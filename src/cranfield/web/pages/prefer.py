"""Preferring one of two, blind; and for the lead, what is compared and who won."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.http.refusal import Refusal
from cranfield.judge.event import new_id
from cranfield.judge.pairs import set_comparison
from cranfield.web.entry import Done, Page, action, page
from cranfield.web.keys import is_on, keys_of
from cranfield.web.pages.adjudicate import sent
from cranfield.web.render import link, marked
from cranfield.web.roles import ASSESSOR, LEAD, may
from cranfield.workspace.preferring import AHEAD, begin, every_comparison, prefer, preferences, work

if TYPE_CHECKING:
    from cranfield.web.visit import Visit
    from cranfield.workspace.preferring import Preferring, Side

BRIEF = ("comparisons",)  # what an answer need not say again


@page("/prefer", ASSESSOR, "preferring.work", menu=(20, "Prefer"))
def compare_next(visit: Visit) -> Page:
    """The next two documents or result lists to compare, on sides drawn by lot."""
    found = work(visit.site.bench, visit.site.document, visit.name, visit.text("comparison"))
    scripts = ("prefer.js",) if found.comparison else ()
    return Page("Prefer", "prefer.html", found.to_dict(), _shown(visit, found), scripts=scripts)


def _shown(visit: Visit, found: Preferring) -> dict[str, Any]:
    """What only the page needs: the first pair as HTML, and what its script goes by."""
    settings = visit.site.accounts.settings(visit.name)
    keys = [each for each in keys_of(settings) if is_on(each, "prefer")]
    pair = found.pairs[0] if found.pairs else None
    script = {
        "comparison": found.comparison,
        "keys": {each.name: each.key for each in keys},
        "single": bool(settings.get("single_keys", True)),
        "ahead": AHEAD,
    }
    sides = [] if pair is None else [("A", "left", _marked(pair.left)), ("B", "right", _marked(pair.right))]
    need = {} if pair is None else found.needs[pair.topic]
    return {"pair": pair, "sides": sides, "need": need, "script": script, "keys": keys, "new_id": new_id()}


def _marked(side: Side) -> dict[str, Any]:
    entries = [{"title": each.title, "text": marked(each.text, each.marks)} for each in side.entries]
    more = {"text": marked(side.text, side.marks), "entries": entries}
    return {**side._asdict(), **more, "empty": not side.text, "shown": len(side.text)}


@action("/prefer", ASSESSOR, "preferring.prefer")
def preferred(visit: Visit) -> Done:
    """Keep preferences (or take them back) and give the next pairs; each is kept, repeated or refused."""
    rows, have, n, name = sent(visit, AHEAD)
    if rows is None:
        place = visit.number("pair")
        about = {"pair": -1 if place is None else int(place), "said": visit.said("said")}
        rows, n = [{"id": visit.said("id") or new_id(), **about}], 0
    known = [each for each in have if type(each) is int]
    found = prefer(visit.site.bench, visit.site.document, visit.name, name, rows, n, known)
    refused = [each.why for each in found.outcomes if not each.kept]
    if refused and "events" not in visit.form:
        raise Refusal(refused[0], 409, safe="What was said before is kept.", advice="Go back to see the pair again.")
    values = {key: value for key, value in found.to_dict().items() if key not in BRIEF}
    return Done(link("/prefer", comparison=name), values)


@page("/preferences", LEAD, "preferring.preferences", table=True)
def results(visit: Visit) -> Page:
    """What is compared, who is ahead, and a form to open another comparison."""
    bench, name = visit.site.bench, visit.text("comparison")
    if name:
        found = preferences(bench, name)
        values = {**found.to_dict(), "notes": found.notes()}
        return Page(f"Comparison {name}", "comparison.html", values, {"found": found}, found.to_csv(spreadsheet=True))
    every = every_comparison(bench)
    people = [each.name for each in visit.site.accounts.all() if may(each.role, ASSESSOR) and each.active]
    shown = {
        "every": [each.to_dict() for each in every],
        "runs": [run.name for run in bench.runs()],
        "people": people,
        "name": f"{len(every) + 1}",
    }
    values = {"comparisons": [each.to_dict() for each in every]}
    return Page("Preferences", "preferences.html", values, shown)


@action("/preferences", LEAD, "preferring.begin")
def open_another(visit: Visit) -> Done:
    """Open a comparison of two runs."""
    plan = begin(
        visit.site.bench,
        visit.said("name").strip(),
        visit.said("kind"),
        visit.said("one"),
        visit.said("other"),
        topics=[line.strip() for line in visit.said("topics").splitlines() if line.strip()],
        depth=int(visit.number("depth", 10) or 0),
        per_topic=int(visit.number("per_topic", 3) or 0),
        overlap=int(visit.number("overlap", 1) or 0),
        assessors=[name for name in visit.all_said("assessors") if name],
        seed=int(visit.number("seed", 0) or 0),
    )
    return Done(link("/preferences", comparison=plan.name), {"name": plan.name, "pairs": len(plan.pairs)})


@action("/preferences/state", LEAD, "judge.set_comparison")
def change_state(visit: Visit) -> Done:
    """Pause a comparison, go on with it, or close it."""
    name, state = visit.said("comparison"), visit.said("state")
    set_comparison(visit.site.bench.log, name, state)
    return Done(link("/preferences", comparison=name), {"name": name, "state": state})
