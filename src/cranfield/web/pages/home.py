"""The first page: what is there, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.web.asking import ask
from cranfield.web.entry import Page, page
from cranfield.web.roles import VIEWER
from cranfield.workspace.overview import overview

if TYPE_CHECKING:
    from cranfield.web.visit import Visit


@page("/", VIEWER, "workspace.overview")
def home(visit: Visit) -> Page:
    """The workspace at a glance: collection and its findings, runs, rounds, versions, what to do next."""
    found = overview(visit.site.bench)
    steps = [each._asdict() for each in found.steps if visit.may(each.role)]
    checked = ask(visit, "check")
    values = {**found.to_dict(), "next": steps, "check": checked.values()}
    return Page(found.name, "home.html", values, {"checked": checked}, scripts=("live.js", "sort.js"))
