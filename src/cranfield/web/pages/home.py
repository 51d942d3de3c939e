"""The first page: what is there, and what to do next."""

from __future__ import annotations

from cranfield.web.asking import ask
from cranfield.web.entry import RANKS, VIEWER, Page, page
from cranfield.web.visit import Visit
from cranfield.workspace.overview import overview


@page("/", VIEWER, "workspace.overview")
def home(visit: Visit) -> Page:
    """The workspace at a glance: collection and its findings, runs, rounds, versions, what to do next."""
    found = overview(visit.site.bench)
    values = found.to_dict()
    mine = [each for each in found.steps if RANKS.index(visit.role) >= RANKS.index(each.role)]
    checked = ask(visit, "check")
    shown = {"steps": [each._asdict() for each in mine], "checked": checked}
    return Page(found.name, "home.html", {**values, "check": checked.values()}, shown, scripts=("live.js",))
